"""Hold cuobjdump's list against the native one, entry by entry and in order.

The native list is the truth, cuobjdump the witness. Where it stops or misnames an image for a
known reason of its own, the reason is told (``data/cuobjdump_limits.json``); any other
difference is reported as a disagreement.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fa_forensics.facts.fatbin.images import DeviceCode, Image

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa_forensics.facts.fatbin.cuobjdump import Listing
    from fa_forensics.facts.fatbin.provenance import Toolkit

AGREES, DISAGREES, STOPPED, ABSENT = "agrees", "disagrees", "stopped", "absent"
MAX_DIFFERENCES = 20
LIMITS_FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "data",
    "cuobjdump_limits.json",
)

_NO_DEVICE_CODE = "does not contain device code"
_ELF_KINDS = ("cubin", "unknown-16")
_PTX_KINDS = ("ptx", "relocatable-ptx")


class CuobjdumpReport(NamedTuple):
    """What the witness is worth for this file.

    status: ``agrees``, ``disagrees``, ``stopped`` (it listed less, or nothing, and says so) or
    ``absent`` (not found, or it cannot be run). ``detail`` is one sentence for people,
    ``differences`` one for each image on which the lists differ.
    """

    status: str
    path: str | None
    version: str | None
    detail: str
    differences: tuple[str, ...] = ()


class _Compared(NamedTuple):
    differences: tuple[str, ...]
    misnamed: tuple[str, ...]  # reasons for tolerated differences
    listed: int
    stopped_at: Image | None  # the first image that it did not list


def compare(
    code: DeviceCode, listing: Listing | None, toolkits: Sequence[Toolkit] = ()
) -> CuobjdumpReport:
    """Judge a listing; None stands for a cuobjdump that was not found.

    ``toolkits`` (from ``provenance``) tell whether a known limit can be the reason of a stop.
    """
    if listing is None:
        detail = "cuobjdump was not found, so the native list has no second witness"
        return CuobjdumpReport(ABSENT, None, None, detail)
    exe, version = listing.exe, listing.version
    name = f"cuobjdump {version}" if version else "cuobjdump"
    if listing.not_run is not None:
        return CuobjdumpReport(ABSENT, exe, version, listing.not_run)
    if listing.unreadable is not None:
        detail = f"the output of {name} could not be read: {listing.unreadable}"
        return CuobjdumpReport(STOPPED, exe, version, detail)
    limits = read_limits()
    total = sum(image.cuobjdump_name_arch is not None for image in code.images)
    compared = _compare_lists(code, listing, limits["misnames"])
    if listing.exit_code == 0 or (_NO_DEVICE_CODE in listing.message and not total):
        return _finished(code, listing, compared, name)
    if compared.differences:
        return _disagreement(listing, compared, name)
    return CuobjdumpReport(
        STOPPED, exe, version, _why_stopped(code, listing, compared, toolkits, limits, total)
    )


def read_limits() -> Mapping[str, Any]:
    """The shipped table of cuobjdump's limits."""
    import json

    with open(LIMITS_FILE, encoding="utf-8") as file:
        limits: dict[str, Any] = json.load(file)
    return limits


def _finished(
    code: DeviceCode, listing: Listing, compared: _Compared, name: str
) -> CuobjdumpReport:
    differences = list(compared.differences)
    for what, kinds, shown in (("ELF", _ELF_KINDS, listing.elf), ("PTX", _PTX_KINDS, listing.ptx)):
        here = sum(image.kind in kinds for image in code.images)
        if here != len(shown):
            differences.append(f"{len(shown)} {what} images by cuobjdump, {here} here")
    if differences:
        return _disagreement(listing, compared._replace(differences=tuple(differences)), name)
    if not compared.listed:
        detail = f"{name} finds no cubin and no PTX either"
    else:
        detail = f"{name} lists the same {_images(compared.listed)} in the same order"
    if compared.misnamed:
        detail += f"; {'; '.join(compared.misnamed)}"
    return CuobjdumpReport(AGREES, listing.exe, listing.version, detail)


def _disagreement(listing: Listing, compared: _Compared, name: str) -> CuobjdumpReport:
    differences = compared.differences
    detail = f"{name} lists other GPU code: {differences[0]}"
    if len(differences) > 1:
        detail += f", and {len(differences) - 1} more differences"
    return CuobjdumpReport(
        DISAGREES, listing.exe, listing.version, detail, differences[:MAX_DIFFERENCES]
    )


def _compare_lists(
    code: DeviceCode, listing: Listing, misnames: Sequence[Mapping[str, Any]]
) -> _Compared:
    """Compare the images that were listed. Counts are compared where it finished."""
    differences: list[str] = []
    misnamed: dict[str, None] = {}
    rest = {"ELF": list(listing.elf), "PTX": list(listing.ptx)}
    done = {"ELF": 0, "PTX": 0}
    stopped_at = None
    for image in code.images:
        what = "ELF" if image.kind in _ELF_KINDS else "PTX" if image.kind in _PTX_KINDS else None
        if what is None:
            continue
        if done[what] >= len(rest[what]):
            stopped_at = stopped_at or image
            continue
        shown = rest[what][done[what]]
        done[what] += 1
        if shown == image.cuobjdump_name_arch:
            continue
        reason = _misname(image, shown, listing.version, misnames)
        if reason is not None:
            misnamed[reason] = None
        else:
            differences.append(
                f"{what} image {done[what]} is {shown} by cuobjdump, "
                f"{image.cuobjdump_name_arch} here"
            )
    for what, names in rest.items():
        if listing.exit_code != 0 and len(names) > done[what]:
            differences.append(f"{len(names)} {what} images by cuobjdump, {done[what]} here")
    return _Compared(tuple(differences), tuple(misnamed), done["ELF"] + done["PTX"], stopped_at)


def _misname(
    image: Image, shown: str, version: str | None, misnames: Sequence[Mapping[str, Any]]
) -> str | None:
    """The known reason for which cuobjdump shows this image so, or None."""
    for rule in misnames:
        if (
            f"{shown}{rule['drops']}" == image.cuobjdump_name_arch
            and image.kind == rule["kind"]
            and rule.get("image_abi") in (None, image.abi)
            and _within(version, rule["cuobjdump"])
        ):
            sentence: str = rule["sentence"]
            return sentence
    return None


def _why_stopped(
    code: DeviceCode,
    listing: Listing,
    compared: _Compared,
    toolkits: Sequence[Toolkit],
    limits: Mapping[str, Any],
    total: int,
) -> str:
    """One sentence: how far it came, why it went no further, and what holds all the same."""
    name = f"cuobjdump {listing.version}" if listing.version else "cuobjdump"
    came = f"{name} listed {compared.listed} of {_images(total)}"
    if listing.exit_code is None:
        reason = f"it did not finish within {listing.seconds:.0f} s and was ended"
    else:
        known = _known_stop(code, listing, compared.stopped_at, toolkits, limits["stops"])
        said = listing.message.partition(":")[2].strip() or f"exit code {listing.exit_code}"
        reason = known or f'it said "{said}"'
    whole = "the native list is whole" if not code.problems else "see the native list's problems"
    if compared.listed:
        whole = f"what it listed is the same here, and {whole}"
    return f"{came}: {reason}; {whole}"


def _known_stop(
    code: DeviceCode,
    listing: Listing,
    image: Image | None,
    toolkits: Sequence[Toolkit],
    stops: Sequence[Mapping[str, Any]],
) -> str | None:
    for rule in stops:
        if (
            rule["message"] in listing.message
            and _within(listing.version, rule["cuobjdump"])
            and rule.get("found_by") in (None, code.found_by)
            and (rule.get("image_abi") is None or (image and rule["image_abi"] == image.abi))
            and (
                rule.get("image_toolkits") is None
                or _made_by(image, toolkits, rule["image_toolkits"])
            )
        ):
            sentence: str = rule["sentence"]
            return sentence
    return None


def _made_by(image: Image | None, toolkits: Sequence[Toolkit], span: Sequence[str | None]) -> bool:
    """Whether cubins of this image's architecture were made by a toolkit within ``span``."""
    return image is not None and any(
        image.arch in toolkit.archs and _within(toolkit.release, span) for toolkit in toolkits
    )


def _within(version: str | None, span: Sequence[str | None]) -> bool:
    """Whether a version such as ``12.4`` lies in [first, last]; None there is open."""
    first, last = span
    if version is None:
        return first is None and last is None
    number = _number(version)
    return (first is None or number >= _number(first)) and (last is None or number <= _number(last))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition(" ")[0].split("."))


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"
