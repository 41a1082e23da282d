"""Answers about files that are whole and that the loader or the kernel refuses all the same."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.system_releases import number, system_named
from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base
from fa_forensics.why.texts.files.file_text import is_torchs, owner_of, path_of, quoted
from fa_forensics.why.texts.gpu.jetson_text import is_jetson, jetpack_of

LOADER, MACHINE, REWRITTEN = "elf-loader", "wrong-machine", "FA104"

_TOP = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w{0,60})/")
#: The libraries that a wheel brings beside its package: ``scikit_learn.libs/libgomp-...``.
_LIBS = re.compile(r"(?:^|/)(?P<name>[A-Za-z][\w-]{0,60})\.libs/")
_TUNABLE = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2000000"


def static_tls(seen: Seen) -> Answer:
    """``cannot allocate memory in static TLS block``: not a matter of memory."""
    path = path_of(seen)
    name = base(path)
    if "any more object" in seen.mention.line:
        return _old_static_tls(seen, path)
    paths = _all_of_them(seen)
    if len(paths) > 1:
        return _together(seen, paths)
    cause = (
        f"{name or 'The library'} keeps thread-local variables in the block that is sized when the "
        "process starts, and what is left of that block does not hold them: most likely too much "
        "was loaded before it. It is not a lack of memory."
    )
    failing = failing_module(seen, path)
    module = failing or "MODULE"
    first = f"{seen.python} -c 'import {'torch,MODULE' if module == 'torch' else module}'"
    if path.startswith("/") or (path and "/" not in path):
        module = failing or _module(seen, path)
        first = (
            f"{seen.python} -c 'import ctypes; ctypes.CDLL({_python_text(path)}, "
            f"ctypes.RTLD_GLOBAL); import {module}'"
        )
    second, larger = _larger(seen, path, module)
    notes = (
        _earlier(name or "that library", failing),
        *(("MODULE is what the program imports and fails at.",) if module == "MODULE" else ()),
        "Where the program cannot be changed, it is run from such a line: import runpy; "
        'runpy.run_path("PROGRAM.py", run_name="__main__") stands in place of the last import. In '
        "a notebook the line goes into the first cell, after the kernel was started again.",
        *_very_file(path),
        *(larger or (_SMALL_BLOCK,)),
    )
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, path), direction="none", confidence="high",
        help=(first, *second), notes=notes,
    )  # fmt: skip


def _earlier(library: str, failing: str) -> str:
    """What helps: the package whose import fails goes first."""
    if failing in ("", "torch"):
        return (
            f"What helps is to load {library} earlier: import the package that needs it, or torch, "
            "before all others, as the first command does."
        )
    return (
        f"What helps is to load {library} earlier: import {failing} before torch and all others, "
        "in the first line of the program, as the first command does."
    )


#: glibc before 2.32 has no setting for it; 1,664 bytes: csu/libc-tls.c, TLS_STATIC_SURPLUS.
_SMALL_BLOCK = (
    "A glibc before 2.32 keeps 1,664 bytes of that block free, and a library that needs more fails "
    "even where it is the first: then the file named in LD_PRELOAD, or a system with glibc 2.32 or "
    "newer, is what helps."
)


def _very_file(path: str) -> tuple[str, ...]:
    """A library by its own path, before the process starts: no other copy serves."""
    if not path.startswith("/") and _LIBS.search(path) is None:
        return ()
    return (
        "Where no line of the program can be changed, LD_PRELOAD with the path of that very file "
        'does the same, set before the process starts (for a Jupyter kernel under "env" of its '
        "kernel.json); another copy of the library does not.",
    )


def _all_of_them(seen: Seen) -> tuple[str, ...]:
    """The libraries that the text tells this of; which comes first changes from try to try."""
    found = (m.file or "" for m in seen.paste.mentions if m.what == "static-tls")
    return tuple(dict.fromkeys(path for path in found if path.startswith("/")))[:4]


def _together(seen: Seen, paths: tuple[str, ...]) -> Answer:
    """Two libraries fail in turn: whichever is not loaded first."""
    names = " and ".join(base(path) for path in paths)
    cause = (
        f"{names} keep thread-local variables in the block that is sized when the process starts, "
        "and what is left of that block does not hold those of all: whichever is loaded last "
        "fails, so loading one of them earlier only moves the error to the other. It is not a lack "
        "of memory."
    )
    module = _module(seen, paths[0])
    files = ", ".join(map(_python_text, paths))
    first = (
        f"{seen.python} -c 'import ctypes; [ctypes.CDLL(f, ctypes.RTLD_GLOBAL) for f in ({files})]"
        f"; import {module}'"
    )
    second, larger = _larger(seen, paths[0], module)
    notes = (
        "All of them have to be loaded before everything else, as the first command does: in a "
        "notebook, in its first cell. Where that code cannot be changed, LD_PRELOAD with their "
        "paths, a colon between them, does the same; for a Jupyter kernel it stands under "
        '"env" of its kernel.json.',
        *larger,
    )
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, paths[0]), direction="none",
        confidence="high", help=(first, *second), notes=notes,
    )  # fmt: skip


#: Pythons that came with the system, or that use its glibc without a doubt.
_OF_SYSTEM = re.compile(r"^/(?:usr|opt/ros)/|/\.local/lib/python")


def _larger(seen: Seen, path: str, module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(command, note) that make the block larger; () where the system's glibc has no such setting.

    Distributions with glibc 2.32 or later have Python 3.8 or later.
    """
    glibc, python = _told_glibc(seen), seen.python_version or ""
    old = bool(glibc) and number(glibc) < (2, 32)
    old = old or bool(_OF_SYSTEM.search(path) and python and number(python) < (3, 8))
    if old:
        return (), ()
    note = (
        "The second makes the block larger (glibc 2.32 and later); it must be set before the "
        "process starts. A Jupyter kernel does not read the shell's settings: put it under "
        '"env" of its kernel.json.'
    )
    return (f"{_TUNABLE} {seen.python} -c 'import {module}'",), (note,)


def _told_glibc(seen: Seen) -> str:
    """The glibc that the text tells, by its number, its system's name or its JetPack; else ""."""
    versions = seen.versions
    row = jetpack_of(seen) if is_jetson(seen) else None
    system = system_named(" ".join((versions.get("os", ""), versions.get("system", ""))))
    return versions.get("glibc") or (row["glibc"] if row else system[1] if system else "")


def _old_static_tls(seen: Seen, path: str) -> Answer:
    """The same of a glibc that counts libraries, not bytes; no setting changes its number."""
    cause = (
        "glibc before 2.22 takes a fixed number of libraries with such thread-local variables "
        "into one process, and they are used up: too much was loaded before this one. It is "
        "not a lack of memory."
    )
    module = failing_module(seen, path)
    modules = "torch,MODULE" if module == "torch" else f"{module or 'MODULE'},torch"
    told = _earlier("that library", module)
    unknown = () if module else ("MODULE is what the program imports and fails at.",)
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, path), direction="none", confidence="high",
        help=(f"{seen.python} -c 'import {modules}'", "ldd --version | head -1"),
        notes=(
            f"{told} A system with glibc 2.22 or newer does not have that limit.",
            *unknown,
        ),
    )  # fmt: skip


def _tls_owner(seen: Seen, path: str) -> str | None:
    name = base(path)
    owner = "torch" if is_torchs(path) else owner_of_library(name) if name else None
    if owner is None and (libs := _LIBS.search(path)) is not None:
        return libs["name"].replace("_", "-")
    owner = owner or owner_of(seen, path)
    return owner or name or failing_module(seen, path) or None


def failing_module(seen: Seen, path: str) -> str:
    """The module of the package that has the library, or whose import fails; "" if not told."""
    libs = _LIBS.search(path)
    if libs is not None:
        own = libs["name"].replace("_", "-").lower()
        return str(read_table("import_names.json")["names"].get(own, own.replace("-", "_")))
    found = _TOP.search(path)
    if found is not None:
        return found[1]
    named = seen.mention.detail.get("import", "").split(".")[0]
    return named if re.fullmatch(r"[A-Za-z]\w{0,60}", named) else ""


def _module(seen: Seen, path: str) -> str:
    """The module whose import shows whether it helped: the library's own package, else torch."""
    failing = failing_module(seen, path)
    if failing:
        return failing
    lists = {key.partition(":")[2] for key in seen.versions if key.startswith(("pkg:", "named:"))}
    about_torch = seen.torch or "torch" in f"{' '.join(lists)} {seen.mention.line}"
    return "torch" if about_torch or not seen.versions else "MODULE"


def _python_text(path: str) -> str:
    """A path as a text of Python inside of single quotes of the shell."""
    plain = re.fullmatch(r"[\w./+@~-]+", path)
    return f'"{path}"' if plain and "..." not in path else '"/path/to/the/library.so"'


def map_refused(seen: Seen) -> Answer:
    """``failed to map segment from shared object``: the kernel refuses to map it as code."""
    path = path_of(seen)
    name = base(path) or "the file"
    line = seen.mention.line
    if re.search(r"restore segment prot|segment writable|additional memory\sprotection", line):
        return _text_relocations(seen, path)
    noexec = "its file system is mounted noexec (often /tmp), or a security module forbids it"
    memory = "address space or memory is used up (ulimit -v, a container's limit)"
    look, limit = _mounted(path), "ulimit -v"
    notes: tuple[str, ...] = (
        "ulimit -v prints the limit on address space in kilobytes: torch with its CUDA libraries "
        "maps several gigabytes. Login nodes and batch systems set one; a compute node, or a job "
        "with more memory, has another.",
        _IN_CONTAINER,
    )
    if re.search(r"[Cc]annot allocate memory", line):
        why, helps = memory, (limit, "free -g")
    elif re.search(r"not\spermitted|[Pp]ermission denied", line) or _scratch(f"{path} {line}"):
        why, helps = noexec, (look, limit)
        notes = (
            "TORCH_EXTENSIONS_DIR, TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR and TMPDIR can name a "
            "directory that allows execution.",
            "docker run --tmpfs mounts noexec unless told otherwise: --tmpfs /tmp:exec.",
        )
    else:
        cause = (
            f"The kernel refuses to map {name}. Two causes fit: {memory}; or {noexec}. The file "
            "itself is not at fault, and no release is. The commands tell the two apart."
        )
        return seen.answer(
            LOADER, "FA890", cause, owner=owner_of(seen, path), direction="none",
            confidence="medium", help=(limit, look), notes=(*notes, _NOEXEC),
        )  # fmt: skip
    cause = f"The kernel refuses to map {name} as code: {why}. The file itself is not at fault."
    return seen.answer(
        LOADER, "FA890", cause, owner=owner_of(seen, path), direction="none", confidence="medium",
        help=helps, notes=notes,
    )  # fmt: skip


#: docker and cgroup v2 (kernel documentation, memory.max).
_IN_CONTAINER = (
    "A container or a hosting account has a limit of its own, which ulimit does not print: cat "
    "/sys/fs/cgroup/memory.max shows it, docker run --memory raises it. Where no GPU is used, "
    "torch's build for the CPU alone (its index whl/cpu) maps a small part of that."
)
_NOEXEC = (
    "noexec among the options of the mount is the other cause: the environment has to lie on a "
    "file system that is mounted with exec."
)


def _scratch(words: str) -> bool:
    """Whether a file lies where systems forbid execution: built at run time, in /tmp or a cache."""
    places = r"(?<![\w.])/(?:tmp|var/tmp|dev/shm)\b|/\.cache/|/\.triton/|cuda_utils\.so|noexec"
    return re.search(places, words) is not None


def _mounted(path: str) -> str:
    """How the file system of a file is mounted; a bare name has to be found first."""
    if path and "/" not in path:
        return (
            f"find / -name {shlex.quote(path)} -not -path '/proc/*' "
            "-exec findmnt -T {} -o TARGET,OPTIONS ';' 2>/dev/null"
        )
    return f"findmnt -T {quoted(path)} -o TARGET,OPTIONS"


def _text_relocations(seen: Seen, path: str) -> Answer:
    """``cannot restore segment prot after reloc: Permission denied``."""
    cause = (
        f"{base(path) or 'The file'} has to be changed in memory where its code is (text "
        "relocations: parts of it were compiled without -fPIC), and a security module (SELinux) "
        "or a hardened kernel refuses that. No symbol and no release plays a part."
    )
    return seen.answer(
        LOADER, "FA890", cause, owner=owner_of(seen, path), direction="none", confidence="medium",
        help=(f"readelf -dW {quoted(path)} | grep TEXTREL", "getenforce"),
        notes=(
            "A line of the first command shows such relocations: a build with -fPIC has none. "
            "Under SELinux, the file's label textrel_shlib_t (chcon -t) allows them for that one "
            "file.",
        ),
    )  # fmt: skip


def inconsistent(seen: Seen) -> Answer:
    """``Inconsistency detected by ld.so``: an assertion of the loader itself."""
    detail = seen.mention.detail
    place, said = detail.get("place", ""), detail.get("said", "")
    look = (
        f"LD_DEBUG=files {seen.python} -c 'import MODULE' 2>&1 | tail -20",
        "readelf -dVW FILE",
    )
    if "dl-version" in place or "bitmask" in said:
        cause = (
            "A library that was just being loaded contradicts itself: it asks for versions of a "
            "library that it no longer lists, or its table of names is out of place. A tool "
            "rewrote the file (patchelf in an old release, as wheel repair runs it; upx, strip)."
        )
        return seen.answer(
            "damaged-file", REWRITTEN, cause, owner=None, direction="none", confidence="medium",
            help=look,
            notes=(
                "The last file that the first command names is the one; the second shows what it "
                "lists. A build of one's own: repair the wheel again with a newer patchelf; else "
                "install that package again, in another release.",
            ),
        )  # fmt: skip
    cause = (
        "The loader stopped at a check of its own. Two causes fit: parts of two glibcs are in one "
        "process (a libc.so.6 or libpthread.so.0 on LD_LIBRARY_PATH or in a package, beside the "
        "system's ld.so), or a fault of that glibc release"
    )
    cause += (
        ": before 2.34, threads that start while a library is opened lead to this one."
        if "dl-tls" in place else "."
    )  # fmt: skip
    return seen.answer(
        LOADER, REWRITTEN, cause, owner="libc", direction="unknown", confidence="low",
        help=(look[0], "echo $LD_LIBRARY_PATH; ldd --version | head -1"),
        notes=("Each of libc, libm, libdl, libpthread and librt in the first command's lines has "
               "to come from the same directory of the system.",),
    )  # fmt: skip


def processor_level(seen: Seen) -> Answer:
    """``CPU ISA level is lower than required``, ``Illegal instruction``: an older processor."""
    path = path_of(seen)
    cause = (
        f"{base(path) or 'The code'} was compiled for a newer processor than this one has (AVX2, "
        "AVX-512 or the like)."
    )
    return seen.answer(
        MACHINE, "FA101", cause, owner=owner_of(seen, path), direction="none",
        confidence="high" if "ISA" in seen.mention.line else "medium",
        help=("grep -m1 -o -w -e avx -e avx2 -e avx512f /proc/cpuinfo; lscpu",),
        notes=(
            "A virtual machine may hide what the processor has: the processor type host (Proxmox, "
            "KVM) hands it on. On a Mac with Apple Silicon, a Python for Intel under Rosetta lacks "
            "AVX; one for arm64 is the way out.",
            "Another release of the package may ask for less; a build from source on this machine "
            "asks for what it has.",
        ),
    )  # fmt: skip


def bus_error(seen: Seen) -> Answer:
    """``Bus error``: memory that is mapped from a file, and not there."""
    cause = (
        "A bus error is memory that was mapped from a file and cannot be had: the shared memory "
        "in /dev/shm is full (data loaders, NCCL; a container has 64 MB of it by default), or a "
        "file that is in use was cut off (a full disk, a file that was overwritten). No library "
        "was refused by the loader."
    )
    return seen.answer(
        "unrecognised", "FA899", cause, owner=None, direction="unknown", confidence="low",
        help=("df -h /dev/shm /tmp ~", f"{seen.python} -X faulthandler SCRIPT.py"),
        notes=("docker run --shm-size=8g (or --ipc=host) makes /dev/shm larger. The second command "
               "says in which import or call it happens.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "static-tls": static_tls,
    "map-refused": map_refused,
    "loader-inconsistent": inconsistent,
    "cpu-level": processor_level,
    "bus-error": bus_error,
}
