"""Answers about files that are whole and that the loader or the kernel refuses all the same."""

from __future__ import annotations

import re
import shlex

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base
from fa_forensics.why.texts.files.file_text import owner_of, path_of, quoted

LOADER, MACHINE, REWRITTEN = "elf-loader", "wrong-machine", "FA104"


def map_refused(seen: Seen) -> Answer:
    """``failed to map segment from shared object``: the kernel refuses to map it as code."""
    path = path_of(seen)
    name = base(path) or "the file"
    line = seen.mention.line
    if re.search(r"restore segment prot|segment writable|additional memory\sprotection", line):
        return _text_relocations(seen, path)
    if "flag:rlimit-as" in seen.versions or "flag:ulimit-v" in seen.versions:
        return _address_limit(seen, path, name)
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


def _address_limit(seen: Seen, path: str, name: str) -> Answer:
    """The text itself limits the address space of the process (setrlimit(2), RLIMIT_AS)."""
    inside = "flag:rlimit-as" in seen.versions
    who = "the program's own resource.setrlimit(RLIMIT_AS)" if inside else "ulimit -v"
    cause = (
        f"The kernel refuses to map {name}: the text sets a limit on the address space of the "
        f"process ({who}), and torch with its CUDA libraries maps more than that. The file, its "
        "file system and its release are not at fault."
    )
    raised = "ulimit -v unlimited; ulimit -v"
    if inside:
        raised = "grep -rn 'RLIMIT_AS' --include='*.py' . | head"
    return seen.answer(
        LOADER, "FA890", cause, owner=owner_of(seen, path), direction="none", confidence="high",
        help=(raised, f"{seen.python} -c 'import resource, torch; "
              "print(resource.getrlimit(resource.RLIMIT_AS))'"),
        notes=(
            "The line that sets the limit is what has to go, or to allow several gigabytes more: "
            "address space is what is mapped, not what is in use. A limit set by a login node or a "
            "batch system is raised in the job's own request.",
            "To limit the memory in use, a limit of the control group serves: systemd-run --user "
            "--scope -p MemoryMax=4G, docker run --memory, or the job's own. Where no GPU is used, "
            "torch's build for the CPU alone (its index whl/cpu) maps a small part.",
        ),
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
    "map-refused": map_refused,
    "loader-inconsistent": inconsistent,
    "cpu-level": processor_level,
    "bus-error": bus_error,
}
