"""Answers about a file that the loader refuses: damaged, for another machine, or by its headers."""

from __future__ import annotations

import os
import re

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base, package_in, pip_name, version_of

DAMAGED, MACHINE, LOADER = "damaged-file", "wrong-machine", "elf-loader"

#: What GNU ld reads as a script where the loader wants a library.
_SCRIPTS = re.compile(r"lib(?:c|m|pthread|ncurses|termcap|bsd|tinfo|gcc_s|stdc\+\+)\.so$")
#: auditwheel and its like put a hash into the names of the libraries that they copy.
_COPIED = re.compile(r"-[0-9a-f]{8}\.so")
_ELF = b"\x7fELF"
_STARTS = (
    (b"version https://git-lfs", "a Git LFS pointer: the real file was not fetched"),
    (b"<", "a page of HTML or XML: the download failed and its error page was kept"),
    (b"PK", "a zip archive"),
    (b"MZ", "a Windows library"),
    (b"/* GNU ld script", "a script of the linker, not a library"),
    (b"\0\0\0\0", "zeros: the copy or the disk failed"),
)


def invalid_elf(seen: Seen) -> Answer:
    """``invalid ELF header``: the first bytes are none of a library."""
    path = _path(seen)
    found = _first_bytes(seen, path)
    owner = _owner(seen, path)
    name = base(path) or "The file"
    cause = f"{name} is no ELF file: its first bytes are not 7f 45 4c 46"
    confidence = "high"
    if found is not None and found.startswith(_ELF):
        cause = (
            f"{path} begins as an ELF file does now: it was replaced since, or another file of "
            "that name was loaded."
        )
        confidence = "medium"
    elif found is not None:
        cause += f", it starts with {found[:8].hex(' ') or 'nothing'}{_looks(found)}."
    else:
        cause += (
            ". What it holds instead (zeros, an HTML page, a Git LFS pointer, half a download), "
            "the first command shows."
        )
    if _SCRIPTS.search(path):
        cause = (
            f"{name} is a script for the linker, as development packages install it; the library "
            "itself has a number after .so."
        )
    return seen.answer(
        DAMAGED, "FA208", cause, owner=owner, direction="none", confidence=confidence,
        help=(_peek(path), *_reinstall(seen, owner)), notes=_innocent(owner, seen),
    )  # fmt: skip


def too_short(seen: Seen) -> Answer:
    """``file too short``: empty, or cut off."""
    path = _path(seen)
    owner = _owner(seen, path)
    cause = (
        f"{base(path) or 'The file'} is empty or cut off: a download, a copy or a full disk ended "
        "it, or it is a Git LFS pointer."
    )
    return seen.answer(
        DAMAGED, "FA102", cause, owner=owner, direction="none", confidence="high",
        help=(_peek(path), *_reinstall(seen, owner)), notes=_innocent(owner, seen),
    )  # fmt: skip


def wrong_class(seen: Seen) -> Answer:
    """``wrong ELF class: ELFCLASS32``, ``Exec format error``: another machine's file."""
    path = _path(seen)
    owner = _owner(seen, path)
    name = base(path) or "The file"
    bits = re.search(r"ELFCLASS(32|64)", seen.mention.line)
    what = f"a {bits[1]}-bit file" if bits else "a file for another machine"
    cause = f"{name} is {what}, and this Python is not: a wheel or a copy for another platform."
    machine = _machine_in(name)
    if machine is not None:
        cause += f" Its name says {machine}."
    return seen.answer(
        MACHINE, "FA101", cause, owner=owner, direction="none", confidence="high",
        help=(
            f"{seen.python} -c 'import platform; print(platform.machine(), "
            "platform.architecture())'",
            f"fa-forensics inspect {_quoted(path)}",
        ),
        notes=("No setting makes it load; get the build for this machine.",),
    )  # fmt: skip


def static_tls(seen: Seen) -> Answer:
    """``cannot allocate memory in static TLS block``: not a matter of memory."""
    path = _path(seen)
    name = base(path)
    cause = (
        f"{name or 'The library'} keeps thread-local variables in the block that is sized when the "
        "process starts, and what is left of that block does not hold them: too much was loaded "
        "before it. It is not a lack of memory."
    )
    if "any more object" in seen.mention.line:
        cause = (
            "glibc before 2.22 takes a fixed number of libraries with such thread-local variables "
            "into one process, and they are used up: too much was loaded before this one. It is "
            "not a lack of memory."
        )
    first = f"{seen.python} -c 'import torch, MODULE'"
    if path and "..." not in path:
        first = (
            f"{seen.python} -c 'import ctypes; ctypes.CDLL({_python_text(path)}, "
            "ctypes.RTLD_GLOBAL); import torch'"
        )
    second = (
        f"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2000000 {seen.python} -c 'import torch'"
    )
    notes = (
        f"What helps is to load {name or 'that library'} earlier: import the package that needs "
        "it, or torch, before all others, as the first command does.",
        "The second makes the block larger (glibc 2.32 and later); it must be set before the "
        "process starts. A Jupyter kernel does not read the shell's settings: put it under "
        '"env" of its kernel.json.',
    )
    owner = "torch" if _is_torchs(path) else owner_of_library(name) if name else None
    return seen.answer(
        LOADER, "FA107", cause, owner=owner or _owner(seen, path) or name or None,
        direction="none", confidence="high", help=(first, second), notes=notes,
    )  # fmt: skip


def executable_stack(seen: Seen) -> Answer:
    """``cannot enable executable stack as shared object requires``."""
    path = _path(seen)
    name = base(path) or "The file"
    line = seen.mention.line
    reason = "this system refuses that"
    if "Permission denied" in line:
        reason = "a security module (SELinux) or a hardened kernel refuses that"
    elif "Invalid argument" in line:
        reason = "glibc 2.41 and later refuse that in dlopen"
    cause = (
        f"{name} asks for an executable stack (a flag in its headers), and {reason}. The file's "
        "permissions play no part: chmod changes nothing."
    )
    return seen.answer(
        LOADER, "FA105", cause, owner=_owner(seen, path), direction="none", confidence="high",
        help=(
            f"readelf -lW {_quoted(path)} | grep GNU_STACK",
            f"patchelf --clear-execstack {_quoted(path)}",
        ),
        notes=(
            "RWE in the first command's line is the flag; the second clears it (patchelf 0.18 or "
            "newer), which is safe for code that compilers made. A newer release of the package "
            "may be built without it.",
        ),
    )  # fmt: skip


def misaligned(seen: Seen) -> Answer:
    """``ELF load command address/offset not properly aligned`` and its like."""
    path = _path(seen)
    name = base(path) or "The file"
    line = seen.mention.line
    copied = _COPIED.search(name) is not None
    notes: list[str] = []
    if "page-aligned" in line or "not page-aligned" in line:
        cause = (
            f"The segments of {name} are aligned for smaller pages than this kernel has (4 KB "
            "against 64 KB, as some aarch64 systems have), so that it cannot be mapped."
        )
        helps = ["getconf PAGESIZE", f"readelf -lW {_quoted(path)}"]
    else:
        cause = (
            f"A segment of {name} lies at an address and an offset that do not agree modulo its "
            "alignment, so that it cannot be mapped: a tool rewrote the file (patchelf, as wheel "
            "repair runs it), or the file is damaged."
        )
        helps = [f"readelf -lW {_quoted(path)}"]
        notes.append("Shown by the first command: offset and address of each LOAD line.")
        notes.append("A build of one's own: repair the wheel again with another patchelf.")
    if copied:
        notes.insert(0, "The hash in its name says that wheel repair (auditwheel) copied it in.")
    owner = _owner(seen, path)
    return seen.answer(
        LOADER, "FA104", cause, owner=owner, direction="none", confidence="high",
        help=(*helps, *_reinstall(seen, owner)), notes=tuple(notes),
    )  # fmt: skip


def _first_bytes(seen: Seen, path: str) -> bytes | None:
    """What the file here begins with; None where it is not this machine's or cannot be read."""
    if seen.elsewhere or not os.path.isabs(path) or not os.path.isfile(path):
        return None
    try:
        return read_bounded(path, 64)
    except (OSError, ForensicsError):
        return None  # then the answer says how to look


def _looks(start: bytes) -> str:
    for prefix, words in _STARTS:
        if start.lstrip().startswith(prefix):
            return f" ({words})"
    return ""


def _owner(seen: Seen, path: str) -> str | None:
    """The package that the damaged file belongs to: torch's own files are torch's.

    A library of NVIDIA, MKL or the like is its own, wherever torch found it: ``torch/lib/../..``
    leads out of torch.
    """
    whole = os.path.normpath(path) if path.startswith("/") else path
    if _is_torchs(whole):
        return "torch"
    if (library := owner_of_library(base(whole))) is not None:
        return library
    return package_in(seen) or _folder(whole)


def _is_torchs(path: str) -> bool:
    """Whether a file is one of torch's own, by its place or its name."""
    if re.search(r"(?:^|/)torch/(?:lib|bin)/|(?:^|/)torch/_C\b", path):
        return True
    return base(path).startswith(("libtorch_", "libtorch.", "libc10", "libcaffe2", "libshm."))


def _folder(path: str) -> str | None:
    """The directory below site-packages."""
    found = re.search(r"/(?:site|dist)-packages/([\w.-]+?)(?:\.libs)?/", path)
    return found[1] if found else None


def _innocent(owner: str | None, seen: Seen) -> tuple[str, ...]:
    path = os.path.normpath(_path(seen))
    if re.search(r"/(?:ana|mini|mamba|micromamba)?conda\d?/|/miniforge|/mambaforge", path) and (
        "site-packages" not in path
    ):
        return (
            "conda installed it: conda list shows which package of conda has such a library, and "
            "conda install --force-reinstall PACKAGE puts it back.",
            "Releases and flavours play no part: the file itself is broken.",
        )
    if owner in ("cuda-driver", "nvml"):
        return (
            "The driver's libraries come into a container from its host; an image that was made "
            "from a running container keeps them as empty files. Remove those from the image, and "
            "start it with the NVIDIA container toolkit.",
        )
    if owner == "torch":
        return (
            "The damaged file is torch's own: the extension that was imported is innocent, and "
            "the releases of both play no part.",
        )
    return ("Releases and flavours play no part: the file itself is broken.",)


def _reinstall(seen: Seen, owner: str | None) -> tuple[str, ...]:
    name = pip_name(seen, owner)
    if name is None:
        return ()
    version = seen.torch if name == "torch" else version_of(seen, name)
    pinned = f"{name}=={version}" if version and "+" not in version else name
    return (f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {pinned}",)


def _peek(path: str) -> str:
    return f"head -c 64 {_quoted(path)} | xxd"


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path) if path and "..." not in path else "/path/to/the/file.so"


def _python_text(path: str) -> str:
    """A path as a text of Python inside of single quotes of the shell."""
    plain = re.fullmatch(r"[\w./+@~-]+", path)
    return f'"{path}"' if plain else '"/path/to/the/library.so"'


def _machine_in(name: str) -> str | None:
    found = re.search(r"-(x86_64|aarch64|ppc64le|s390x|arm|i[3-6]86)-", name)
    return found[1] if found else None


def map_refused(seen: Seen) -> Answer:
    """``failed to map segment from shared object``: the kernel refuses to map it as code."""
    path = _path(seen)
    name = base(path) or "the file"
    why = "its file system is mounted noexec (often /tmp), or a security module forbids it"
    if "Cannot allocate memory" in seen.mention.line:
        why = "address space or memory is used up (ulimit -v, a container's limit)"
    cause = f"The kernel refuses to map {name} as code: {why}. The file itself is not at fault."
    return seen.answer(
        LOADER, "FA890", cause, owner=_owner(seen, path), direction="none", confidence="medium",
        help=(f"findmnt -T {_quoted(path)} -o TARGET,OPTIONS", "ulimit -v"),
        notes=("TORCH_EXTENSIONS_DIR and TMPDIR can name a directory that allows execution.",),
    )  # fmt: skip


def damaged_elf(seen: Seen) -> Answer:
    """The loader's other complaints about a file's tables."""
    path = _path(seen)
    owner = _owner(seen, path)
    cause = (
        f"{base(path) or 'The file'} is an ELF file that the loader cannot use: it is damaged, was "
        "rewritten by a tool, or is no shared library at all (an object file, a program)."
    )
    return seen.answer(
        DAMAGED, "FA104", cause, owner=owner, direction="none", confidence="high",
        help=(f"fa-forensics inspect {_quoted(path)}", *_reinstall(seen, owner)),
        notes=_innocent(owner, seen),
    )  # fmt: skip


def processor_level(seen: Seen) -> Answer:
    """``CPU ISA level is lower than required``, ``Illegal instruction``: an older processor."""
    path = _path(seen)
    cause = (
        f"{base(path) or 'The code'} was compiled for a newer processor than this one has (AVX2, "
        "AVX-512 or the like)."
    )
    return seen.answer(
        MACHINE, "FA101", cause, owner=_owner(seen, path), direction="none",
        confidence="high" if "ISA" in seen.mention.line else "medium",
        help=("grep -m1 -o -w -e avx -e avx2 -e avx512f /proc/cpuinfo; lscpu",),
        notes=("A virtual machine may hide what the processor has.",),
    )  # fmt: skip


def _path(seen: Seen) -> str:
    """The file that the message is about."""
    return seen.mention.file or seen.mention.library or ""


ANSWERERS: dict[str, Answerer] = {
    "invalid-elf": invalid_elf,
    "file-too-short": too_short,
    "wrong-elf-class": wrong_class,
    "wrong-machine": wrong_class,
    "static-tls": static_tls,
    "exec-stack": executable_stack,
    "misaligned": misaligned,
    "map-refused": map_refused,
    "damaged-elf": damaged_elf,
    "cpu-level": processor_level,
}
