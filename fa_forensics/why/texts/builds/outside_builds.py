"""Answers to builds on Windows, and to what is no question of files at all."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import build_command
from fa_forensics.why.texts.builds.windows_build import link_error, newer_visual_studio

COMPILE = "FA883"


def windows_build(seen: Seen) -> Answer:
    """A build on Windows: Visual Studio's compiler is absent, too new, or not set up."""
    detail = seen.mention.detail
    sort = detail.get("sort")
    notes: list[str] = []
    helps: tuple[str, ...] = ("where cl", "nvcc --version")
    if sort in ("long", "command", "std", "decode"):
        return _windows_itself(seen, sort)
    if sort == "link":
        return link_error(seen)
    if sort == "newer":
        told = newer_visual_studio(seen)
        if told is not None:
            return told
        span = (
            f" (it takes {detail['range'].replace(' and ', ' to ')})" if detail.get("range") else ""
        )
        cause = (
            f"nvcc refuses Visual Studio's compiler{span}: the one that was found is of another "
            "release than this CUDA toolkit takes, most often a newer one. The build tools of a "
            "Visual Studio that it takes, beside the other, or a newer toolkit of torch's CUDA "
            "major version is the way out."
        )
        notes.append(
            "A command prompt of that Visual Studio (vcvars64.bat) decides which cl is taken; "
            "-allow-unsupported-compiler only silences the check."
        )
    elif sort == "stl":
        cause = (
            f"The headers of this Visual Studio ask for {detail.get('wants', 'a newer CUDA')} or "
            "newer: the CUDA toolkit is older than the compiler takes. An older MSVC toolset "
            "(Visual Studio Installer, individual components; vcvars64.bat -vcvars_ver=14.38), or "
            "a newer toolkit of torch's CUDA major version, is the way out."
        )
    elif sort == "sdk":
        cause = (
            "The command prompt is that of Visual Studio, and DISTUTILS_USE_SDK is not set: "
            "setuptools would look for a compiler of its own, and torch's helper refuses that."
        )
        helps = (
            "set DISTUTILS_USE_SDK=1",
            build_command(seen),
        )
    else:
        cause = (
            "A build on Windows needs Visual Studio's C++ compiler (cl.exe), and it is not "
            "installed or not on PATH. The Build Tools for Visual Studio with the C++ workload "
            "bring it; the x64 Native Tools prompt (vcvars64.bat) puts it on PATH. Another "
            "compiler does not do."
        )
        helps = ("where cl",)
        notes.append("A prebuilt wheel for this torch, CUDA and Python needs no compiler.")
    return _windows(seen, cause, helps, tuple(notes), "high")


def _windows_itself(seen: Seen, sort: str) -> Answer:
    """Long paths, other character sets, and cl that stumbles over torch's headers."""
    if sort == "long":
        return _long_path(seen)
    if sort == "command":
        cause = (
            "A command line is longer than Windows takes (32,767 characters): too many files or "
            "options in one run of a program. ninja hands them on in files; short directories for "
            "the source and the environment shorten each of them."
        )
        return _windows(seen, cause, (f"{seen.pip} install ninja",), (), "medium")
    if sort == "std":
        cause = (
            "cl says that std is ambiguous, in torch's headers as nvcc hands them on: releases of "
            "Visual Studio, CUDA and torch that do not fit one another, not the package's source. "
            "Another MSVC toolset or CUDA release is the way out."
        )
        return _windows(seen, cause, ("where cl", "nvcc --version"), (), "medium")
    cause = (
        "torch's build helper could not read what the compiler printed, since it is in another "
        "character set (a localized Visual Studio): the compiler's own error stands behind "
        "this one and is not shown."
    )
    notes = ("VSLANG=1033 takes Visual Studio's English language pack.",)
    return _windows(seen, cause, ("chcp 65001", "set VSLANG=1033", "where cl"), notes, "medium")


def _long_path(seen: Seen) -> Answer:
    """Nobody compiles yet: pip or git writes a file whose path Windows does not take."""
    length = seen.mention.detail.get("length")
    here = f", and this one has {length}" if length else ""
    cause = (
        f"A path is longer than Windows takes (260 characters{here}): a file deep in the source "
        "could not be written. Nothing was compiled, and no file is missing from the package."
    )
    return seen.answer(
        "windows", COMPILE, cause, owner="Windows", direction="none", confidence="high",
        help=(
            "reg add HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem /v LongPathsEnabled "
            "/t REG_DWORD /d 1 /f",
            "git config --global core.longpaths true",
        ),
        notes=("The first command takes a prompt of an administrator and a new session after it; "
               "the second is for a clone of the source. A shorter directory for TEMP helps only "
               "where it saves enough characters.",
               "A prebuilt wheel for this torch, CUDA and Python has no such paths."),
    )  # fmt: skip


def _windows(
    seen: Seen, cause: str, helps: tuple[str, ...], notes: tuple[str, ...], confidence: str
) -> Answer:
    return seen.answer(
        "windows", COMPILE, cause, owner="msvc", direction="none", confidence=confidence,
        help=helps, notes=notes,
    )  # fmt: skip


_RUN_TIME = {
    "memory": (
        "The GPU's memory ran out while the program ran: a smaller batch, model or context is the "
        "way out, not another build. This is no question of binaries."
    ),
    "triton": (
        "torch.compile makes its kernels with Triton, and finds none that works: it is not "
        "installed (torch's wheels for CUDA on Linux bring it, those for Windows, macOS and the "
        "CPU do not), or its own import fails. What the first command prints is the cause."
    ),
    "assertion": (
        "A kernel stopped at an assertion of its own, most often an index out of range in the "
        "data. This is no question of binaries; with CUDA_LAUNCH_BLOCKING=1 the traceback names "
        "the call."
    ),
    "timeout": (
        "A rank waited for the others until the time was up: one of them hangs, is slower, or "
        "ended. This is no question of binaries; the first error of any rank is the cause."
    ),
    "conflict": (
        "The packages that were asked for have requirements that no set of releases meets: nothing "
        "was installed. This is no question of binaries; the lines around name the requirements."
    ),
    "managed": (
        "The system's own Python is kept by its package manager, and pip refuses to change it: a "
        "virtual environment is the way out. This is no question of binaries."
    ),
    "network": (
        "A download or a git clone failed: the network, a proxy, a certificate or the server. "
        "Nothing was compiled, and this is no question of binaries."
    ),
    "disk": "The disk is full: pip and compilers need room in TMPDIR and in their caches.",
    "cache": (
        "The directory of a compiler's cache belongs to another user, or may not be written. It is "
        "a matter of the file system, not of binaries: the owner changed, or a directory of one's "
        "own (TORCH_EXTENSIONS_DIR for JIT builds of extensions, TORCHINDUCTOR_CACHE_DIR, "
        "TRITON_CACHE_DIR)."
    ),
    "host-memory": (
        "The machine's own memory, not the GPU's, was too small for what the program asked for: a "
        "smaller batch or data set is the way out. This is no question of binaries."
    ),
}


def run_time(seen: Seen) -> Answer:
    """What is no question of files at all, said in one sentence."""
    sort = seen.mention.detail.get("sort", "")
    helps = {
        "memory": ("nvidia-smi",),
        "triton": (f"{seen.python} -c 'import triton; print(triton.__version__)'",),
        "assertion": ("CUDA_LAUNCH_BLOCKING=1 python SCRIPT.py",),
        "managed": (f"{seen.python} -m venv venv && . venv/bin/activate",),
        "network": (f"{seen.pip} config list; env | grep -i proxy",),
        "disk": ("df -h ${TMPDIR:-/tmp} ~/.cache",),
        "cache": ("ls -ld /tmp/torch_extensions ~/.cache/torch_extensions; id",
                  "export TORCH_EXTENSIONS_DIR=$HOME/torch_extensions"),
        "host-memory": ("free -h",),
    }  # fmt: skip
    return seen.answer(
        "unrecognised", "FA897", _RUN_TIME[sort], owner=None, direction="unknown",
        confidence="high" if sort != "assertion" else "medium", help=helps.get(sort, ()),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "windows-build": windows_build,
    "run-time": run_time,
}
