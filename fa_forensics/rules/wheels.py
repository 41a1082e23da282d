"""FA84x: wheels: the labels of a file name, the environment, and what lies inside.

Pure: facts in, checks out. A check that found nothing wrong says so too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fa_forensics.facts.package import BuildTags
from fa_forensics.facts.wheel_matrix import CXX11, PRE_CXX11, WheelBuild
from fa_forensics.facts.wheel_tags import TagHost, misfit
from fa_forensics.report import Evidence, Finding, TargetReport
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, WRONG
from fa_forensics.report_wheels import Check

_CUDART = re.compile(r"libcudart(?:-\w+)?\.so\.(\d+)")


@dataclass(frozen=True, slots=True)
class WheelClaims:
    """What a wheel's file name and metadata claim.

    ``metadata_tags`` are those of its WHEEL file, None where that was not read.
    """

    name: str
    version: str
    python_tags: tuple[str, ...]
    abi_tags: tuple[str, ...]
    platform_tags: tuple[str, ...]
    labels: BuildTags
    official: WheelBuild | None
    metadata_tags: tuple[str, ...] | None
    requires_python: str | None
    metadata_version: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What the wheel would be installed beside.

    ``torch`` is the release ("2.6.0"), ``cuda`` "12.4", "" for a torch without CUDA; None
    where it is not known. ``glibc`` is this machine's.
    """

    host: TagHost
    torch: str | None
    cuda: str | None
    flavour: str | None
    glibc: str | None


def label_checks(claims: WheelClaims, place: Place) -> tuple[Check, ...]:
    """What the name alone says against or for a wheel."""
    checks = [_tags(claims, place.host), _metadata(claims)]
    checks += [_torch_label(claims, place), _cuda_label(claims, place), _abi_label(claims, place)]
    checks += [_nightly(claims), _floor(claims, place), _known(claims)]
    return tuple(check for check in checks if check is not None)


def content_checks(
    claims: WheelClaims, place: Place, targets: Sequence[TargetReport]
) -> tuple[Check, ...]:
    """The labels held against what the extensions themselves say."""
    readable = [target for target in targets if target.elf is not None]
    checks = [_flavour_of_content(claims, readable), _cuda_of_content(claims, place, readable)]
    checks.append(_torch_of_content(claims, readable))
    return tuple(check for check in checks if check is not None)


def _wrong(subject: str, finding: Finding) -> Check:
    return Check(subject, WRONG, finding.title, finding)


def _tags(claims: WheelClaims, host: TagHost) -> Check:
    problem = misfit(host, claims.python_tags, claims.abi_tags, claims.platform_tags)
    tags = "-".join(
        ".".join(part) for part in (claims.python_tags, claims.abi_tags, claims.platform_tags)
    )
    if problem is None:
        return Check("tags", OK, f"{tags} fits Python {host.python}{host.abiflags} on this machine")
    finding = Finding(
        code="FA840",
        severity="error",
        confidence="high",
        title=f"pip will refuse the wheel here: {problem}",
        evidence=(Evidence(f"tags {tags} in the file name"),),
        notes=("Renaming the file does not change what is in it.",),
    )
    return _wrong("tags", finding)


def _metadata(claims: WheelClaims) -> Check | None:
    """FA847: the WHEEL file and the file name disagree: the file was renamed."""
    if claims.metadata_tags is None:
        return None
    inside = set(claims.metadata_tags)
    name = {
        f"{p}-{a}-{m}"
        for p in claims.python_tags
        for a in claims.abi_tags
        for m in claims.platform_tags
    }
    # flash-attn's own releases add the labels to the name alone: pip takes that.
    version = claims.metadata_version
    other = version is not None and _public(version) != _public(claims.version)
    if not other and (not inside or not name or inside & name or _only_platform(inside, name)):
        return Check("metadata", OK, "the metadata inside agrees with the file name")
    evidence = [Evidence(f"file name: {claims.version}, {', '.join(sorted(name)) or 'no tags'}")]
    inside_text = ", ".join(sorted(inside)) or "no tags"
    evidence.append(Evidence(f"inside: {version or 'no version'}, {inside_text}", table="WHEEL"))
    finding = Finding(
        code="FA847",
        severity="warning",
        confidence="high",
        title="the metadata inside the wheel disagrees with its file name: it was renamed",
        evidence=tuple(evidence),
        notes=("What is inside decides whether it loads.",),
    )
    return _wrong("metadata", finding)


def _only_platform(inside: set[str], name: set[str]) -> bool:
    """Whether tags differ in the platform alone: auditwheel renames linux to manylinux."""
    return {tag.rpartition("-")[0] for tag in inside} >= {tag.rpartition("-")[0] for tag in name}


def _public(version: str) -> str:
    return version.partition("+")[0]


def _torch_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.torch
    if label is None:
        return None
    if place.torch is None:
        return Check(
            "torch label", COULD_NOT_LOOK, f"it is labelled for torch {label}; no torch is here"
        )
    if label.split(".")[:2] == place.torch.split(".")[:2]:
        return Check("torch label", OK, f"it is labelled for torch {label}, here is {place.torch}")
    finding = Finding(
        code="FA841",
        severity="error",
        confidence="medium",
        title=f"the wheel is labelled for torch {label}, here is torch {place.torch}",
        evidence=(Evidence(f"version {claims.version}"),),
        notes=(
            "C++ names of torch change from one minor release to the next; a wheel for another one "
            "may fail with an undefined symbol, or crash.",
        ),
    )
    return _wrong("torch label", finding)


def _cuda_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.cuda
    if label is None:
        return None
    if place.cuda is None:
        return Check(
            "CUDA label", COULD_NOT_LOOK, f"it is labelled for CUDA {label}; torch's is not known"
        )
    if place.cuda.partition(".")[0] == label.partition(".")[0]:
        return Check("CUDA label", OK, f"it is labelled for CUDA {label}, torch has {place.cuda}")
    return _wrong("CUDA label", _other_cuda(f"labelled for CUDA {label}", place.cuda, ()))


def _other_cuda(what: str, cuda: str, evidence: tuple[Evidence, ...]) -> Finding:
    here = f"CUDA {cuda}" if cuda else "no CUDA"
    return Finding(
        code="FA842",
        severity="error",
        confidence="high",
        title=f"the wheel is {what}, the torch here has {here}",
        evidence=evidence,
        notes=(
            "Libraries of one CUDA major version do not serve files that were built for another: "
            "their names differ (libcudart.so.12, libcudart.so.13).",
        ),
    )


def _abi_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.cxx11_abi
    if label is None:
        return None
    flavour = CXX11 if label else PRE_CXX11
    text = f"cxx11abi{'TRUE' if label else 'FALSE'}"
    if place.flavour is None:
        return Check("ABI label", COULD_NOT_LOOK, f"it is labelled {text}; torch's is not known")
    if flavour == place.flavour:
        return Check("ABI label", OK, f"it is labelled {text}, the torch here is {place.flavour}")
    finding = Finding(
        code="FA843",
        severity="error",
        confidence="medium",
        title=f"the wheel is labelled {text}, the torch here is {place.flavour}",
        evidence=(Evidence(f"version {claims.version}"),),
        notes=("A label can be wrong; what is inside decides.",),
    )
    return _wrong("ABI label", finding)


def _nightly(claims: WheelClaims) -> Check | None:
    official = claims.official
    if official is None or not official.nightly:
        return None
    finding = Finding(
        code="FA845",
        severity="warning",
        confidence="high",
        title=f"the wheel was built on the nightly torch {official.torch_built} and is named after "
        f"torch {official.torch}, which came later",
        evidence=(Evidence(f"torch {official.torch_built} in the release's build matrix"),),
        notes=("What changed until the release may be missing from it; a later release is safer.",),
    )
    return _wrong("built on", finding)


def _floor(claims: WheelClaims, place: Place) -> Check | None:
    needs = claims.official.glibc if claims.official is not None else None
    if needs is None:
        return None
    if place.glibc is None:
        return Check("glibc", COULD_NOT_LOOK, f"wheels of this release need glibc {needs}")
    if _numbers(needs) <= _numbers(place.glibc):
        return Check(
            "glibc", OK, f"wheels of this release need glibc {needs}, here is {place.glibc}"
        )
    finding = Finding(
        code="FA846",
        severity="error",
        confidence="high",
        title=f"wheels of this release need glibc {needs}, here is {place.glibc}",
        notes=(
            "glibc is part of the operating system: an older release of the wheel, or a newer "
            "container, is the way out.",
        ),
    )
    return _wrong("glibc", finding)


def _known(claims: WheelClaims) -> Check | None:
    """Whether a wheel with the labels of official ones is one of them."""
    labelled = claims.labels.torch is not None and claims.labels.cxx11_abi is not None
    if claims.official is not None:
        return Check("origin", OK, "its name is one of the official release's build matrix")
    if not labelled or not re.fullmatch(r"flash[-_]attn", claims.name, re.IGNORECASE):
        return None
    return Check(
        "origin", NOTE, "its name is in no official release's build matrix: somebody else built it"
    )


def _flavour_of_content(claims: WheelClaims, targets: Sequence[TargetReport]) -> Check | None:
    """FA844: an ``abiFALSE`` label over cxx11 code, or the other way round."""
    label = claims.labels.cxx11_abi
    shown = [t for t in targets if t.cxx11_abi in (CXX11, PRE_CXX11)]
    if not shown:
        if label is None or not targets:
            return None
        return Check("ABI inside", COULD_NOT_LOOK, "no name in it shows a std::string flavour")
    found = sorted({target.cxx11_abi for target in shown})
    said = CXX11 if label else PRE_CXX11
    if label is None or found == [said]:
        agrees = ", as labelled" if label is not None else ""
        return Check("ABI inside", OK, f"its code is {' and '.join(found)}{agrees}")
    wrong = next(target for target in shown if target.cxx11_abi != said)
    finding = Finding(
        code="FA844",
        severity="warning",
        confidence="high",
        title=f"the label cxx11abi{'TRUE' if label else 'FALSE'} is wrong: the code inside is "
        f"{wrong.cxx11_abi}",
        evidence=(
            Evidence(f"{_file(wrong)} needs torch names with the {wrong.cxx11_abi} std::string"),
        ),
        notes=("The loader knows no labels: only a torch of that flavour loads this file.",),
    )
    return _wrong("ABI inside", finding)


def _cuda_of_content(
    claims: WheelClaims, place: Place, targets: Sequence[TargetReport]
) -> Check | None:
    """FA842 or FA848: the libcudart that the files need, against torch's CUDA and the label."""
    needs: dict[str, str] = {}
    for target in targets:
        needed = (target.elf or {}).get("needed")
        for soname in needed if isinstance(needed, list | tuple) else ():
            found = _CUDART.fullmatch(str(soname))
            if found:
                needs.setdefault(found[1], _file(target))
    if not needs:
        return None
    label = claims.labels.cuda
    majors = " and ".join(sorted(needs))
    evidence = tuple(Evidence(f"{file} needs libcudart.so.{m}") for m, file in needs.items())
    if place.cuda is not None and place.cuda.partition(".")[0] not in needs:
        finding = _other_cuda(f"built for CUDA {majors}", place.cuda, evidence)
        return _wrong("CUDA inside", finding)
    if label is not None and label.partition(".")[0] not in needs:
        finding = Finding(
            code="FA848",
            severity="warning",
            confidence="high",
            title=f"the label CUDA {label} is wrong: the code inside is for CUDA {majors}",
            evidence=evidence,
        )
        return _wrong("CUDA inside", finding)
    if place.cuda is None:
        return Check("CUDA inside", NOTE, f"its code is for CUDA {majors}")
    return Check("CUDA inside", OK, f"its code is for CUDA {majors}, torch has {place.cuda}")


def _torch_of_content(claims: WheelClaims, targets: Sequence[TargetReport]) -> Check | None:
    """FA848: the torch of the label is not one that the code links with."""
    label = claims.labels.torch
    placed = [t for t in targets if t.releases is not None and t.releases.symbols]
    if not placed:
        return None
    texts = sorted({t.releases.links_text for t in placed if t.releases is not None})
    links = set.intersection(*(set(t.links_with) for t in placed))
    said = (
        f"its code links with torch {'; '.join(text for text in texts if text) or '(none known)'}"
    )
    if label is None or _of_minor(links, label):
        return Check("torch inside", OK if links else NOTE, said)
    finding = Finding(
        code="FA848",
        severity="warning",
        confidence="high",
        title=f"the label torch {label} is wrong: {said}",
        evidence=tuple(Evidence(f"{_file(t)}: {t.headline}") for t in placed[:3]),
    )
    return _wrong("torch inside", finding)


def _of_minor(releases: set[str], label: str) -> bool:
    minor = ".".join(label.split(".")[:2])
    return any(".".join(release.split(".")[:2]) == minor for release in releases)


def _file(target: TargetReport) -> str:
    return (target.member or target.path).rpartition("/")[2]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
