"""What a text's words say of its torch: who built it, its flavour, and how new it can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: From this release on the package index's own wheels are cxx11 as well.
ALL_CXX11 = (2, 7, 0, False)


def torch_of_text(paste: Paste, version: str | None) -> tuple[str, str]:
    """(the std::string flavour of the text's torch, who built it); "" for what it does not say.

    Builds of conda-forge, of distributions and of NVIDIA's containers take the compiler's own
    std::string, which is cxx11.
    """
    told = paste.versions.get("cxx11_abi")
    maker = paste.versions.get("torch_by", "")
    if told in ("True", "False"):
        return ("cxx11" if told == "True" else "pre-cxx11"), maker
    if _is_wheel(version):
        return "", ""
    if maker:
        return "cxx11", maker
    if "ngc" in paste.versions and (version is None or is_image_number(version)):
        return "cxx11", "that of NVIDIA's container"
    return "", ""


def told_glibc(paste: Paste) -> str:
    """The glibc that a text tells, by its number or by its system's name; "" for none."""
    from fa_forensics.facts.system_releases import system_named

    versions = paste.versions
    named = system_named(versions.get("os", ""))
    return versions.get("glibc") or (named[1] if named is not None else "")


#: 2.1 and 2.1.0: the torches of NVIDIA's images are of no patch release, and have no label.
_OF_AN_IMAGE = lazily(r"\d{1,2}\.\d{1,2}(?:\.0)?")


def is_image_number(version: str) -> bool:
    """Whether a version beside the name of NVIDIA's image is most likely that of its torch."""
    return _OF_AN_IMAGE.fullmatch(version) is not None


def is_rocm(versions: Mapping[str, str]) -> bool:
    """Whether a text's versions tell of a torch for ROCm, or of an AMD GPU."""
    named = any(key in versions for key in ("rocm", "gfx", "flag:torch-rocm"))
    return named or "+rocm" in versions.get("torch", "")


def _is_wheel(version: str | None) -> bool:
    """Whether a version is one of PyTorch's own builds: 2.4.0+cu121, as only those are called."""
    return "+cu" in (version or "") or "+cpu" in (version or "")


def first_for_gpu(paste: Paste) -> str:
    """The first torch with code for the GPU that a text names; "" where it names none."""
    from fa_forensics.errors import ForensicsError
    from fa_forensics.facts.gpus import parse_gpu
    from fa_forensics.facts.torch_archs import first_torch

    named = paste.versions.get("capability") or paste.versions.get("gpu")
    try:
        gpus = parse_gpu(named) if named else ()
    except ForensicsError:
        return ""  # a GPU that no table knows says nothing of torch
    return first_torch(min(gpu.capability for gpu in gpus)) if gpus else ""


def first_for_package(paste: Paste) -> tuple[str, str]:
    """(the first torch that a package of the text has wheels for, the package and its release).

    ("", "") where none is named with a release whose wheels are on record.
    """
    version = paste.versions.get("pkg:flash-attn", "").partition("+")[0]
    least = paste.versions.get("least:torch", "")
    if not version:
        return least, f"torch>={least}" if least else ""
    from fa_forensics.facts.wheel_matrix import builds

    minors = {build.torch for build in builds() if build.release.lstrip("v") == version}
    if not minors:
        return "", ""
    return f"{min(minors, key=order_key)}.0", f"flash-attn {version}"


#: A release of the second half of a month is not the torch of most of that month's reports.
_MIDDLE = 16


def report_day(paste: Paste, tables: Tables, version: str | None) -> tuple[str, str]:
    """(the month of the report, the newest torch that there was then); "" for both where none.

    A text that names a torch of a later day is not of that month.
    """
    date = paste.versions.get("date", "")
    if not date or tables.ages is None:
        return "", ""
    builds = tables.ages.builds("x86_64")
    # Whoever has nightlies is ahead of the releases.
    until = f"{date}-32" if "nightly" in paste.versions else f"{date}-{_MIDDLE}"
    out = [b.release for b in builds if b.date and b.date < until]
    if not out or len(out) == len(builds):
        return "", ""
    last = max(out, key=order_key)
    later = version is not None and order_key(version)[:2] > order_key(last)[:2]
    return ("", "") if later else (date, last)
