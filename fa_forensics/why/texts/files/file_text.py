"""Answers about a file that the loader refuses because it is damaged or no library at all."""

from __future__ import annotations

import os
import re

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why import shell
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base, package_in
from fa_forensics.why.texts.files.driver_file import FROM_HOST, OF_DRIVER, empty_of_driver
from fa_forensics.why.texts.files.put_back import put_back, reinstall

DAMAGED = "damaged-file"

#: What GNU ld reads as a script where the loader wants a library.
_SCRIPTS = lazily(r"lib(?:c|m|pthread|ncurses|termcap|bsd|tinfo|gcc_s|stdc\+\+)\.so$")
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
    path = path_of(seen)
    found = _first_bytes(seen, path)
    owner = owner_of(seen, path)
    name = base(path) or "The file"
    jit = JIT_CACHE.search(path)
    if jit is not None and found is None:
        return _half_written(seen, path, jit["folder"], "FA208")
    if seen.mention.detail.get("pointer") or (found or b"").startswith(_STARTS[0][0]):
        return _pointer(seen, path, owner, found)
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
            ". What it holds instead (zeros, an HTML page, a Git LFS pointer, half a download, a "
            "library of another system), the first command shows."
        )
    if _SCRIPTS.search(path):
        cause = (
            f"{name} is a script for the linker, as development packages install it; the library "
            "itself has a number after .so."
        )
    return _damaged(seen, "FA208", cause, path, owner, confidence)


def _damaged(
    seen: Seen, code: str, cause: str, path: str, owner: str | None, confidence: str = "high"
) -> Answer:
    """A broken file: look at it and at the room on its disk, then have it put back."""
    helps, notes = put_back(seen, owner, path)
    if _SCRIPTS.search(path):
        helps, notes = (), ()
    room = quoted(os.path.dirname(path)) if path.startswith("/") and "..." not in path else "."
    look = _peek(path) if code == "FA208" else f"ls -lL {quoted(path)}; df -h {room}"
    return seen.answer(
        DAMAGED, code, cause, owner=owner, direction="none", confidence=confidence,
        help=(look, *helps), notes=(*_innocent(owner, path), *notes),
    )  # fmt: skip


def too_short(seen: Seen) -> Answer:
    """``file too short``: empty, or cut off."""
    path = path_of(seen)
    owner = owner_of(seen, path)
    if seen.mention.detail.get("pointer"):
        return _pointer(seen, path, owner)
    reason = seen.mention.detail.get("reason", "").lower()
    if "directory" in reason:
        return _directory(seen, path, owner)
    cause = (
        f"{base(path) or 'The file'} is empty or cut off: a download, a copy or a full disk ended "
        "it."
    )
    if re.search(r"cannot\sread\sfile\sdata", seen.mention.line):  # an empty file is "too short"
        cause = (
            f"{base(path) or 'The file'} is cut off, or its disk cannot be read: a download, a "
            "copy or a full disk ended it, or the disk fails."
        )
    jit = JIT_CACHE.search(path)
    if jit is not None and not reason.startswith(("input/output", "stale", "remote", "transport")):
        return _half_written(seen, path, jit["folder"])
    if reason.startswith(("input/output", "stale", "remote", "transport")):
        cause = (
            f"{base(path) or 'The file'} cannot be read from where it lies: the disk or the "
            "network file system fails. Its release plays no part."
        )
    elif owner in OF_DRIVER:
        return empty_of_driver(seen, path, owner)
    return _damaged(seen, "FA102", cause, path, owner)


#: Builds that a program makes at run time and keeps.
JIT_CACHE = lazily(
    r"(?P<folder>(?:\S*/)?(?:\.triton/cache|torchinductor_[\w.-]+|torch_extensions"
    r"|\.cache/(?:flashinfer|vllm|keops[\w.]*|tvm-ffi|bitblas[\w.+-]*|tilelang)|\.tilelang"
    r"|\.deep_gemm|\.aiter))(?:/|$)"
)
#: What names another place for each, by a part of the directory's name.
_CACHE_SETTINGS = (
    (".triton", "TRITON_CACHE_DIR"), ("torchinductor", "TORCHINDUCTOR_CACHE_DIR"),
    ("torch_extensions", "TORCH_EXTENSIONS_DIR"), ("flashinfer", "FLASHINFER_WORKSPACE_BASE"),
    ("vllm", "VLLM_CACHE_ROOT"), ("keops", "KEOPS_CACHE_FOLDER"),
    ("tilelang", "TILELANG_CACHE_DIR"), ("deep_gemm", "DG_JIT_CACHE_DIR"),
    ("aiter", "AITER_JIT_DIR"),
)  # fmt: skip


def _half_written(seen: Seen, path: str, folder: str, code: str = "FA102") -> Answer:
    """A library in a cache of compiled code: another process writes it, or one died over it."""
    state = "is empty or cut off" if code == "FA102" else "does not begin as a library does"
    cause = (
        f"{base(path)} {state}, and it was compiled on this machine into a cache. Most "
        "often another process is still writing it while this one loads it (several processes or "
        "nodes share the cache), or an earlier one was stopped over it or filled the disk. The "
        "installed packages are whole."
    )
    named = next((name for part, name in _CACHE_SETTINGS if part in folder), "")
    of = f" ({named} names its place)" if named else ""
    return seen.answer(
        DAMAGED, code, cause, owner=None, direction="none", confidence="medium",
        help=(
            remove_cache(folder),
            f"df -h {quoted(os.path.dirname(folder)) if folder[0] == '/' else '~ /tmp'}",
        ),
        notes=(
            "With no process of the program running, remove that directory: it is compiled again. "
            f"Where several processes start together, a cache for each{of}, or one that compiles "
            "before the others, avoids it.",
        ),
    )  # fmt: skip


def lfs_pointer(seen: Seen) -> Answer:
    """A Git LFS pointer that somebody printed, without what refused it."""
    path = path_of(seen)
    return _pointer(seen, path, owner_of(seen, path))


def _pointer(seen: Seen, path: str, owner: str | None, found: bytes | None = None) -> Answer:
    """The three lines by which Git LFS stands for a file that was not fetched."""
    name = base(path) or "The file"
    cause = (
        f"{name} is a Git LFS pointer: a text of three lines in place of the file, which was not "
        "fetched when the repository was cloned or packed. It is neither damaged by a build nor "
        "for another machine."
    )
    if found is not None:
        cause = f"{name} is no ELF file: its first bytes are not 7f 45 4c 46"
        cause += f", it starts with {found[:8].hex(' ')}{_looks(found)}."
    folder = os.path.dirname(path)
    there = quoted(folder) if folder and "..." not in folder else "/path/to/the/repository"
    helps: tuple[str, ...] = (f"cd {there} && git lfs install && git lfs pull",)
    if "/site-packages/" in path or "/dist-packages/" in path:
        helps = (*helps, *reinstall(seen, owner))
    size = seen.mention.detail.get("size")
    notes: tuple[str, ...] = (
        "A ZIP archive of a repository, as web pages offer it, holds such pointers too: clone it "
        "with git and Git LFS, or take the file from a release.",
    )
    if size:
        notes = (f"By its third line, the real file has {size} bytes.", *notes)
    return seen.answer(
        DAMAGED, "FA208", cause, owner=owner, direction="none", confidence="high",
        help=(_peek(path), *helps), notes=notes,
    )  # fmt: skip


def _directory(seen: Seen, path: str, owner: str | None) -> Answer:
    """``cannot read file data: Is a directory``: a volume that Docker made for lack of a file."""
    cause = (
        f"{base(path) or 'What was opened'} is a directory: where a container's volume names a "
        "file that the host does not have, Docker makes a directory of that name."
    )
    return seen.answer(
        DAMAGED, "FA102", cause, owner=owner, direction="none", confidence="high",
        help=(f"ls -ld {quoted(path)}",),
        notes=("The file has to be there on the host before the container starts; the driver's "
               "libraries come from the NVIDIA container toolkit, not from volumes.",),
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


def owner_of(seen: Seen, path: str) -> str | None:
    """The package that the damaged file belongs to: torch's own files are torch's.

    A library of NVIDIA, MKL or the like is its own, wherever torch found it: ``torch/lib/../..``
    leads out of torch.
    """
    whole = os.path.normpath(path) if path.startswith(("/", "...")) else path
    if is_torchs(whole):
        return "torch"
    if (library := owner_of_library(base(whole))) is not None:
        return library
    return package_in(seen) or _folder(whole)


def is_torchs(path: str) -> bool:
    """Whether a file is one of torch's own, by its place or its name.

    ``torch/lib/../../../../libcurand.so.10`` leads out of torch, into conda's environment.
    """
    path = os.path.normpath(path) if "/../" in path else path
    if re.search(r"(?:^|/)torch/(?:lib|bin)/|(?:^|/)torch/_C\b", path):
        return True
    return base(path).startswith(("libtorch_", "libtorch.", "libc10", "libcaffe2", "libshm."))


def brought_along(path: str) -> bool:
    """Whether a library of torch's lies in a directory of no Python's: a program's own copy."""
    return (
        "/" in path and "-packages" not in path and re.search(r"(?:^|/)torch/", path) is None
        and "conda" not in path and "/envs/" not in path
    )  # fmt: skip


_BROUGHT = (
    "The file lies in no Python's site-packages: it is a copy of torch's library that a program "
    "brings in its own directory, or one of an archive of libtorch. That program's download (its "
    "release archive, unpacked anew) or that archive puts it back; pip's torch is another copy. "
    "Where it lies in a git clone and begins with version https://git-lfs, it is a pointer: git "
    "lfs install && git lfs pull there fetches the file."
)


_OF_PROGRAM = (
    "The file lies in no Python's site-packages: where a program brings it in its own directory, "
    "that program's release archive, fetched or unpacked anew on a disk with room, puts it back, "
    "and pip does not."
)


def _folder(path: str) -> str | None:
    """The directory below site-packages."""
    found = re.search(r"/(?:site|dist)-packages/([\w.-]+?)(?:\.libs)?/", path)
    return found[1] if found else None


def _innocent(owner: str | None, path: str) -> tuple[str, ...]:
    if owner in OF_DRIVER:
        return (FROM_HOST,)
    if owner == "torch" and brought_along(path):
        return (_BROUGHT,)
    if owner == "torch":
        return (
            "The damaged file is torch's own: the extension that was imported is innocent, and "
            "the releases of both play no part.",
        )
    whole = ("Releases and flavours play no part: the file itself is broken.",)
    known = owner is not None and row_of(owner) is not None and path.startswith("/")
    return (*whole, _OF_PROGRAM) if known and brought_along(path) else whole


def _peek(path: str) -> str:
    return f"head -c 64 {quoted(path)} | xxd"


def remove_cache(folder: str) -> str:
    """Remove a directory of compiled code; the shell has to see a ``~`` before it unquoted."""
    return f"rm -r {shell.quoted(folder)}"


def quoted(path: str) -> str:
    """A path for a shell; a stand-in where the text has none or cut it."""
    if not path or "..." in path:
        return "/path/to/the/file.so"
    return shell.quoted(path if "/" in path or "\\" in path else f"/path/to/{path}")


def damaged_elf(seen: Seen) -> Answer:
    """The loader's other complaints about a file's tables."""
    path = path_of(seen)
    owner = owner_of(seen, path)
    cause = (
        f"{base(path) or 'The file'} is an ELF file that the loader cannot use: it is damaged, was "
        "rewritten by a tool, or is no shared library at all (an object file, a program)."
    )
    helps, notes = put_back(seen, owner, path)
    return seen.answer(
        DAMAGED, "FA104", cause, owner=owner, direction="none", confidence="high",
        help=(f"fa-forensics inspect {quoted(path)}", *helps),
        notes=(*_innocent(owner, path), *notes),
    )  # fmt: skip


def path_of(seen: Seen) -> str:
    """The file that the message is about."""
    return seen.mention.file or seen.mention.library or ""


ANSWERERS: dict[str, Answerer] = {
    "invalid-elf": invalid_elf,
    "file-too-short": too_short,
    "lfs-pointer": lfs_pointer,
    "damaged-elf": damaged_elf,
}
