"""Answers to a linker that refuses a file or its code: the extension was never built."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.builds.link_inputs import fetched, object_again, title_of_input
from fa_forensics.why.texts.clues import base, package_in
from fa_forensics.why.texts.files.driver_file import FROM_HOST, OF_DRIVER
from fa_forensics.why.texts.files.file_text import is_torchs
from fa_forensics.why.texts.files.machine_text import host_of, host_words, other_machine_remedy
from fa_forensics.why.texts.files.put_back import put_back

STOPPED = "FA883"
LOADER, DAMAGED, MACHINE, MISSING = (
    "elf-loader",
    "damaged-file",
    "wrong-machine",
    "missing-library",
)

#: Configure anew, with what torch's own CMake files say.
_CMAKE = (
    "cmake -DCMAKE_PREFIX_PATH=\"$(python -c 'import torch; "
    "print(torch.utils.cmake_prefix_path)')\" ."
)


def linker_refuses(seen: Seen) -> Answer:
    """What a linker says of a file or of its code; by the sort of complaint."""
    return _SORTS[seen.mention.detail["sort"]](seen)


def _stopped(seen: Seen, kind: str, cause: str, *helps: str, **fields: object) -> Answer:
    given: dict[str, object] = {
        "owner": package_in(seen), "direction": "none", "confidence": "high", **fields,
    }  # fmt: skip
    code = str(given.pop("code", STOPPED))
    return seen.answer(kind, code, cause, help=helps, **given)


def _pic(seen: Seen) -> Answer:
    """``relocation R_X86_64_32 ... can not be used when making a shared object``."""
    file = seen.mention.file or ""
    name = base(file)
    library = name.endswith(".a")
    what = name if library else "An object file on the link line"
    cause = (
        f"{what} was compiled without -fPIC, so that its code cannot go into a shared library: the "
        "linker stops there, at build time. No symbol is missing, and no release is wrong."
    )
    if library and name.startswith("libpython"):
        return _stopped(
            seen, LOADER, cause,
            f"{seen.python} -c 'import sysconfig; print(sysconfig.get_config_var(\"LDLIBRARY\"), "
            "sysconfig.get_config_var(\"CFLAGS\"))'",
            _beside(file), owner="python",
            notes=(
                "That Python was built without --enable-shared: its static libpython is meant for "
                "programs. Build it again with ./configure --enable-shared (or CFLAGS=-fPIC); an "
                "extension module by itself needs no libpython on its link line.",
            ),
        )  # fmt: skip
    if library:
        return _stopped(
            seen, LOADER, cause, _beside(file), owner=owner_of_library(name) or package_in(seen),
            notes=(
                "Link the shared form of that library (.so) where the command shows one, or build "
                "the static one again with -fPIC (CMake: -DCMAKE_POSITION_INDEPENDENT_CODE=ON).",
            ),
        )  # fmt: skip
    return _stopped(
        seen, LOADER, cause, "grep -rn fPIC Makefile CMakeLists.txt setup.py",
        confidence="medium",
        notes=(
            "Compile it again with -fPIC, for nvcc -Xcompiler -fPIC, from an empty build "
            "directory. torch.utils.cpp_extension and shared libraries of CMake do so by "
            "themselves; Makefiles and static libraries of CMake do not.",
        ),
    )  # fmt: skip


def _beside(file: str) -> str:
    """The shared form of a static library, where it lies beside it."""
    name = base(file).removesuffix(".a")
    if file.startswith("/"):
        return f"ls -l {shlex.quote(file.removesuffix('.a'))}*"
    return f"find / -name {shlex.quote(name + '.*')} -not -path '/proc/*' 2>/dev/null"


def _range(seen: Seen) -> Answer:
    """``relocation truncated to fit``: the output is too large for its own distances."""
    relocation = seen.mention.detail.get("relocation", "")
    kind = f" ({relocation})" if relocation else ""
    cause = (
        f"What is linked is too large: distances within it{kind} are kept in 32 bits, which reach "
        "2 GB, and one is longer. Too much GPU code or too many static libraries go into one "
        "file. It stops the build; no symbol is missing, and no release is wrong."
    )
    notes = [
        "TORCH_CUDA_ARCH_LIST (CMake: CMAKE_CUDA_ARCHITECTURES) with the number of the one GPU "
        "that it is for, and an empty build directory, make it several times smaller.",
        "Shared cuDNN, cuBLAS and NCCL in place of static ones take off more; DEBUG=1 and -g add "
        "to it.",
    ]
    # GNU ld asks for that flag by name; "truncated to fit" stays the same with it (ld 2.40).
    if "relink with --no-relax" in seen.mention.line:
        notes.append("LDFLAGS=-Wl,--no-relax gets past this one message, not past the size.")
    return _stopped(
        seen, LOADER, cause, "nvidia-smi --query-gpu=compute_cap --format=csv,noheader",
        "find . -name '*.o' -size +50M -exec ls -lh {} +", notes=tuple(notes),
        confidence="high" if "truncated" in seen.mention.line else "medium",
    )  # fmt: skip


def _not_named(seen: Seen) -> Answer:
    """``DSO missing from command line``: a library that only came in through another one."""
    library = base(seen.mention.file)
    flag = "-l" + library.removeprefix("lib").split(".so")[0] if library else "-lNAME"
    what = library or "The library in the message"
    cause = (
        f"The code uses names of {what} itself, and that library is not on the link line: another "
        "library brought it along, and the linker takes nothing from there. It is found, and it "
        "is not too old."
    )
    torchs = is_torchs(library)
    owner = "torch" if torchs else owner_of_library(library) if library else None
    helps = [f"LDFLAGS={flag} {seen.pip} install -v --no-build-isolation --no-cache-dir ./"]
    note = f"In setup.py it is libraries=[{flag[2:]!r}], in CMake target_link_libraries."
    if torchs:
        flags = " ".join(dict.fromkeys((flag, "-ltorch", "-ltorch_cpu", "-lc10")))
        helps = [
            f'{seen.python} -c \'import torch.utils.cpp_extension as c; print(*("-L" + p for p in '
            f'c.library_paths()), "{flags}")\'',
            _CMAKE,
        ]
        note = (
            "The first command prints what belongs on the link line, for a Makefile, a build.rs or "
            "the like; torch.utils.cpp_extension puts it there by itself, and in CMake it is "
            "target_link_libraries with TORCH_LIBRARIES. libtorch has been in several files since "
            "torch 1.5: -ltorch alone names none of the code."
        )
    return _stopped(seen, MISSING, cause, *helps, owner=owner or package_in(seen), notes=(note,))


_STUBS = (
    "For linking, the toolkit has a stand-in for the driver's library in lib64/stubs (libcuda.so, "
    "libnvidia-ml.so): with that directory in LIBRARY_PATH the linker needs no driver."
)


def _truncated(seen: Seen, file: str, owner: str | None) -> Answer:
    """``file not recognized: File truncated``: the linker's word for a damaged file."""
    name = base(file) or "The file in the message"
    look = (f"file {_quoted(file)}", f"head -c 64 {_quoted(file)} | xxd")
    if owner in OF_DRIVER:
        return _stopped(
            seen, DAMAGED, f"{name} cannot be read by the linker: it is empty or cut off.",
            f"ls -lL {_quoted(file)}", owner=owner, notes=(FROM_HOST, _STUBS),
        )  # fmt: skip
    cause = (
        f"{name} cannot be read by the linker: it is empty or cut off. A download, a copy, a full "
        "disk or a build that was stopped ended it."
    )
    gone, rest = object_again(file)
    if not gone and not rest and file.startswith("/"):
        gone, rest = put_back(seen, owner, file)
        rest = rest if gone else ()
        folder = _quoted(file.rpartition("/")[0] or "/")
        gone = (f"ls -lL {_quoted(file)}; df -h {folder}", *gone)
    return _stopped(
        seen, DAMAGED, cause, *look, *gone, owner=owner, notes=rest,
        code=STOPPED if name.endswith((".o", ".obj")) else "FA102",
    )  # fmt: skip


def _format(seen: Seen) -> Answer:
    """``file not recognized``, ``File in wrong format``: no file for this linker."""
    file = seen.mention.file or ""
    name = base(file) or "The file in the message"
    owner = owner_of_library(name) or package_in(seen)
    look = (f"file {_quoted(file)}", f"head -c 64 {_quoted(file)} | xxd")
    gone, rest = object_again(file)
    if "truncated" in seen.mention.detail.get("why", "").lower():
        return _truncated(seen, file, owner)
    cause = (
        f"{name} is nothing that the linker can use: it is for another machine (aarch64 against "
        "x86_64, 32 bit against 64), or no library at all (a Git LFS pointer, a text, an error "
        "page), or an object that another compiler made (-flto). The first command tells which."
    )
    if name.endswith(".o"):
        cause = (
            f"{name} is no object that the linker can use: it is empty or half written (a build "
            "that was stopped, a full disk), for another machine, or another compiler made it "
            "(-flto). An earlier build left it. The first command tells which."
        )
    if re.search(r"linker\sscript", seen.mention.line):
        return _a_text(seen, file, name, owner)
    sure = re.search(
        r"wrong\sformat|incompatible with elf|architecture of input", seen.mention.line
    )
    torchs, host = is_torchs(file), host_of(seen)
    helps: tuple[str, ...] = (*look, *gone)
    owner = owner or title_of_input(name)
    if sure and (by_build := fetched(seen, file)) is not None and not torchs:
        cause, ways, notes = by_build
        return _stopped(seen, MACHINE, cause, look[0], *ways, owner=owner, notes=notes)
    if sure:
        cause = (
            f"{name} is for another machine than the rest of the link line "
            "(aarch64 against x86_64, or 32 bit against 64)."
        )
    if torchs and host and host != "x86_64":
        cause = (
            f"{name} is for another machine than the one that it is linked on, which by the text "
            f"is {host_words(seen)}: libtorch's archives for Linux were made for x86-64."
        )
        sure = sure or re.search("not recogni", seen.mention.line)
    if sure and (torchs or host):
        ways, notes = other_machine_remedy(seen, "torch" if torchs else owner)
        helps, rest = (look[0], *gone, *ways), (*rest, *notes)
    return _stopped(
        seen, MACHINE if sure else DAMAGED, cause, *helps, owner=owner, notes=rest,
        confidence="high" if sure else "medium",
    )  # fmt: skip


def _a_text(seen: Seen, file: str, name: str, owner: str | None) -> Answer:
    """``file format not recognized; treating as linker script``: it holds no code at all."""
    folder = file.rpartition("/")[0]
    there = shlex.quote(folder) if folder and "..." not in folder else "/path/to/the/repository"
    notes = [
        "The command with head shows it: a line that begins with version https://git-lfs is such a "
        "pointer. A ZIP archive of a repository holds pointers too: clone it with git and Git LFS.",
        "Where the first bytes are zeros or an error page, fetch that file anew; an object that an "
        "earlier build left half written goes away with the build directory.",
    ]
    return _stopped(
        seen, DAMAGED,
        f"{name} is a text or is cut off, and no library: the linker found neither an archive nor "
        "an object in it, and read it as a script. In a source tree it is most likely a Git LFS "
        "pointer, three lines in place of a file that was not fetched.",
        f"head -c 200 {_quoted(file)}", f"cd {there} && git lfs install && git lfs pull",
        owner=owner, notes=tuple(notes), confidence="medium",
    )  # fmt: skip


def _mac(seen: Seen) -> Answer:
    """``ignoring file X``: Apple's ld goes on without it, and then misses all its names."""
    file, detail = seen.mention.file or "", seen.mention.detail
    name, torchs = base(file), is_torchs(file)
    owner = "torch" if torchs else owner_of_library(name) or package_in(seen)
    have, need = detail.get("have", ""), detail.get("need", "")
    if detail.get("elf"):
        cause = (
            f"{name} is a library for Linux: its first bytes, 7f 45 4c 46, are those of an ELF "
            "file, and macOS links and loads Mach-O files (.dylib) alone. The file is whole; the "
            "download for another system was taken."
        )
    else:
        cause = f"{name} is for another processor than what is linked"
        cause += f": it is for {have}, and {need} is being linked." if have and need else "."
    cause += (
        " The linker leaves it out, so that undefined symbols that it reports then follow from "
        "this."
    )
    helps = [f"file {_quoted(file)}"]
    notes = ["What is linked must be for macOS and for the same processor as the program."]
    if torchs:
        helps += [
            f"{seen.pip} install --force-reinstall --no-cache-dir torch",
            _CMAKE,
        ]
        notes = [
            "libtorch's archive for macOS has .dylib files, for arm64 or for x86_64 by its name. "
            "The wheel of torch for the Python of that Mac has the same libraries, headers and "
            "CMake files in its own directory, which is what the command with cmake names."
        ]
    return _stopped(
        seen, MACHINE, cause, *helps, owner=owner, notes=tuple(notes),
        confidence="high" if torchs or detail.get("elf") else "medium",
    )  # fmt: skip


def _incompatible(seen: Seen) -> Answer:
    """``skipping incompatible X when searching for -lY``, and then no other Y."""
    file, flag = seen.mention.file or "", seen.mention.detail["flag"]
    cause = (
        f"The linker did find {base(file) or 'a library'} for {flag}, passed it over because it is "
        "for another machine (32 bit, or another processor), and found no other. It stops the "
        "build; nothing is missing at run time."
    )
    name = flag.removeprefix("-l")
    if is_torchs(file):
        ways, notes = other_machine_remedy(seen, "torch")
        host = host_words(seen)
        if host:
            cause += (
                f" The text is from {host}; libtorch's archives for Linux were made for x86-64."
            )
        return _stopped(
            seen, MACHINE, cause, f"uname -m; file -L {_quoted(file)}", *ways, owner="torch",
            notes=notes,
        )  # fmt: skip
    return _stopped(
        seen, MACHINE, cause, f"file -L {_quoted(file)}",
        f"find / -name {shlex.quote(f'lib{name}.so*')} -not -path '/proc/*' 2>/dev/null",
        owner=owner_of_library(f"lib{name}.so") or package_in(seen),
        notes=(
            "The directory of the right one belongs on the link line before it: -L, LIBRARY_PATH "
            "or library_dirs in setup.py (lib64 in place of lib, in CUDA toolkits).",
        ),
    )  # fmt: skip


def _old_linker(seen: Seen) -> Answer:
    """``unrecognized relocation (0x2a)``: a linker that is older than what it is given."""
    name = base(seen.mention.file) or "a file on the link line"
    cause = (
        f"The linker (binutils) is older than the compiler or the linker that made {name}: it does "
        "not know a sort of entry in it. The file is in order, and torch has no part in it."
    )
    return _stopped(
        seen, LOADER, cause, "command -v ld gcc; ld --version | head -1; gcc --version | head -1",
        "conda install -c conda-forge binutils", confidence="medium",
        notes=(
            "Two linkers are the usual reason: conda's ld goes before the system's, or an old "
            "system has its gcc from elsewhere. gcc and ld of one source fit one another; the "
            "second command is for a conda environment. Relocations 0x29 and 0x2a need binutils "
            "2.26.",
        ),
    )  # fmt: skip


def _disk(seen: Seen) -> Answer:
    cause = (
        "The disk was full while the linker wrote: the extension was never built. Nothing is wrong "
        "with the code or with a release."
    )
    return _stopped(
        seen, DAMAGED, cause, "df -h . /tmp ~",
        notes=("TMPDIR names another place for what is temporary; what the build left half made "
               "must go before the next try.",),
    )  # fmt: skip


def _quoted(path: str) -> str:
    if path and "..." not in path:
        return quoted(path)
    return f"/path/to/{shlex.quote(base(path))}" if base(path) else "/path/to/the/file"


_SORTS: dict[str, Callable[[Seen], Answer]] = {
    "pic": _pic,
    "range": _range,
    "not-named": _not_named,
    "format": _format,
    "incompatible": _incompatible,
    "mac": _mac,
    "old-linker": _old_linker,
    "disk": _disk,
}

ANSWERERS: dict[str, Answerer] = {"linker-refuses": linker_refuses}
