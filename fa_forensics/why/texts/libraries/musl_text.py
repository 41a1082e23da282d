"""Answers about files for one C library on a system with the other: glibc and musl (Alpine)."""

from __future__ import annotations

from fa_forensics.facts.owner import OWN, owner_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base, package_in

KIND, CODE = "missing-library", "FA202"

#: glibc's own libraries and its loader, by the names that musl does not have.
_OF_GLIBC = lazily(
    r"ld-linux[\w.-]{0,20}\.so\.\d$|lib(?:c|m|dl|rt|pthread|util|resolv|mvec|anl)\.so\.\d$"
)
_OF_MUSL = lazily(r"libc\.musl-\w{2,20}\.so\.1$|ld-musl-\w{2,20}\.so\.1$")
#: Libraries that Alpine has in packages of their own.
_APK = (("libstdc++", "libstdc++"), ("libgcc_s", "libgcc"), ("libgomp", "libgomp"))


def between_c_libraries(seen: Seen, soname: str) -> Answer | None:
    """A missing library that tells of the other C library; None for any other one."""
    if _OF_MUSL.fullmatch(soname):
        return _musl_file(seen, soname)
    if seen.mention.detail.get("libc") != "musl":
        return None
    if _OF_GLIBC.fullmatch(soname):
        return _glibc_file(seen, f"It asks for {soname}, which is glibc's.")
    package = next((name for start, name in _APK if soname.startswith(start)), None)
    if package is None:
        return None
    asked = base(seen.mention.detail.get("needed_by")) or "The file"
    cause = (
        f"{asked} needs {soname}, and this system, one with musl (Alpine), has not installed it: "
        "its package is small and apart there."
    )
    return seen.answer(
        KIND, CODE, cause, owner=None, direction="none", confidence="medium",
        help=(f"apk add {package}",),
        notes=(_NO_TORCH,),
    )  # fmt: skip


_NO_TORCH = (
    "A file that was built for glibc asks for more after that: wheels with a manylinux tag, and "
    "all of torch's, are for glibc; for Alpine they would be tagged musllinux."
)


def relocation_on_musl(seen: Seen) -> Answer | None:
    """``Error relocating X: __memcpy_chk: symbol not found``; None for a name of anybody else."""
    symbol = seen.mention.symbol or ""
    if symbol.startswith("_Z") or owner_of(symbol, None, "") not in ("libc", OWN):
        return None
    return _glibc_file(
        seen, f"It asks for {symbol}, which glibc has and musl does not.", symbol=symbol
    )


def _glibc_file(seen: Seen, why: str, symbol: str | None = None) -> Answer:
    file = base(seen.mention.file or seen.mention.detail.get("needed_by")) or "The file"
    cause = (
        f"{file} was built for glibc, and this system's C library is musl (Alpine Linux and images "
        f"that are based on it). {why} Neither the release of torch nor CUDA plays a part, and a "
        "package that imitates glibc there does not reach far enough."
    )
    return seen.answer(
        KIND, CODE, cause, owner="libc", direction="none", confidence="high", symbol=symbol,
        help=("docker run --rm -it python:3.11-slim bash",
              f"{seen.pip} install --no-cache-dir {package_in(seen) or 'torch'}"),
        notes=(
            "The way out is an image with glibc, Debian's or Ubuntu's (python:3.11-slim in place "
            "of python:3.11-alpine), and the packages installed anew there. torch has no wheels "
            "for musl.",
        ),
    )  # fmt: skip


def _musl_file(seen: Seen, soname: str) -> Answer:
    cause = (
        f"{soname} is musl's C library, Alpine's: the file that asks for it was built on Alpine "
        "Linux, or comes from a wheel tagged musllinux, and this system has glibc."
    )
    name = package_in(seen) or _only_named(seen)
    again = f"{seen.pip} install --force-reinstall --no-cache-dir {name or 'PACKAGE'}"
    notes = (
        "pip never takes a musllinux wheel on a system with glibc: the file came in a wheel whose "
        "tag says linux alone, of a project's own index, or in a directory of packages that was "
        "copied out of an Alpine image.",
        "The first command without that index (-f, --index-url, --extra-index-url) takes the "
        "wheel for glibc, where the package index has one. From the same index the same file comes "
        "back: the second command compiles it here.",
    )
    own = f"{seen.pip} install --force-reinstall --no-cache-dir --no-binary {name} {name}"
    return seen.answer(
        KIND, CODE, cause, owner=name, direction="none", confidence="high",
        help=(again, own if name else own.replace("None", "PACKAGE")), notes=notes,
    )  # fmt: skip


def _only_named(seen: Seen) -> str | None:
    """The one package that the text lists, torch's family aside."""
    family = ("torch", "torchvision", "torchaudio", "pip")
    named = {key[4:] for key in seen.versions if key.startswith("pkg:")}.difference(family)
    return next(iter(named)) if len(named) == 1 else None
