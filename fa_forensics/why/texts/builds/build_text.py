"""Answers about builds: another torch or toolkit than at run time, a compiler that stopped.

The code of a build failure is the build's own (FA883 to FA885, FA887); the kind says what is
to be put right: a library that the linker does not find is a missing library here too.
"""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.owner import is_rocm, owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.compiler_ends import tool_stopped
from fa_forensics.why.texts.builds.header_text import missing_header
from fa_forensics.why.texts.builds.mixed_text import home_is_a_list
from fa_forensics.why.texts.builds.toolkit_commands import (
    toolkit_library,
    what_to_build,
    with_jobs,
)
from fa_forensics.why.texts.clues import jobs_of, package_in, words_of

ENVIRONMENT = "wrong-torch"
COMPILE, MIXED, MEMORY, NO_FILE = "FA883", "FA884", "FA885", "FA887"

_NOT_FOUND = lazily(r"cannot find -l:?(?P<library>[\w.+-]+)")
_HEADER = lazily(r"(?P<header>[\w./+-]+\.(?:h|hpp|cuh)):? ?: No such file")

#: Which library a -lNAME means, and whose development files bring it.
_CUDA_NAMES = ("cuda", "cudart", "curand", "cublas", "cusparse", "cusolver", "cufft", "nvrtc")


def jit_build_failed(seen: Seen) -> Answer:
    """``ninja: build stopped``, ``Error building extension``, ``ld: cannot find -lcurand``."""
    line, detail = seen.mention.line, seen.mention.detail
    found = _NOT_FOUND.search(line)
    library = seen.mention.library or detail.get("library") or (found["library"] if found else "")
    listed = home_is_a_list(seen)
    if listed is not None and (_of_cuda(library) or detail.get("header")):
        return listed
    if library:
        return _library(seen, library.removeprefix("lib").split(".so")[0])
    header = _HEADER.search(line)
    if header is not None or detail.get("header"):
        return missing_header(seen, detail.get("header") or (header["header"] if header else ""))
    if detail.get("reason") == "fatal":
        return tool_stopped(seen, _again(seen))
    if "ninja" in line.lower() and re.search(r"required|not found|No such file", line):
        return _no_ninja(seen)
    if detail.get("reason") == "wheel":
        return _no_reason(seen)
    if detail.get("reason") == "command" and not file_named(seen):
        return _no_reason(seen)
    cause = (
        "A compiler run failed, so that the extension was never built; the messages after it only "
        'say that the file is missing. The first line with "error:" above this one has the '
        "reason."
    )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner=package_in(seen), direction="none", confidence="medium",
        help=_again(seen), notes=_ranks_note(),
    )  # fmt: skip


def _no_reason(seen: Seen) -> Answer:
    """pip and uv only say that a build ended; why stands above, where it was pasted."""
    package = package_in(seen) or seen.mention.detail.get("package")
    raised = seen.mention.detail.get("raised")
    if raised:
        cause = (
            f'The build of {package or "the package"} ended with "{raised[:200].rstrip(". ")}", an '
            "error of its own build files, not of a compiler. No installed file is shown to be at "
            "fault."
        )
        return seen.answer(
            ENVIRONMENT, COMPILE, cause, owner=package, direction="unknown", confidence="low",
            help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
                  "nvcc --version; gcc --version; echo CUDA_HOME=$CUDA_HOME"),
        )  # fmt: skip
    cause = (
        f"The build of {package or 'the package'} ended, and this text does not say why: the first "
        'line with "error", "fatal" or "Killed" above these has the reason. No installed file is '
        "shown to be at fault."
    )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner=package, direction="unknown", confidence="low",
        help=(f"{seen.pip} install -v --no-build-isolation --no-cache-dir {what_to_build(seen)} "
              "2>&1 | tee build.log",
              "grep -n -m 8 -iE 'error|fatal|killed|not found' build.log"),
    )  # fmt: skip


def _of_cuda(library: str) -> bool:
    return library.removeprefix("lib").split(".so")[0] in _CUDA_NAMES


def _library(seen: Seen, library: str) -> Answer:
    """The linker does not find a library: the extension was never made."""
    file = f"lib{library}.so"
    if is_rocm(owner_of_library(file) or ""):
        from fa_forensics.why.texts.builds.rocm_build import library_not_there

        return library_not_there(seen, f"/opt/rocm/lib/{file}")
    cause = f"The linker found no {file} while the extension was built, so that it was never made."
    notes: list[str] = []
    if file_named(seen):
        cause += " That the extension's own file cannot be opened afterwards only follows from it."
        notes += _ranks_note()
    helps = [f"find / -name {shlex.quote(file + '*')} -not -path '/proc/*' 2>/dev/null"]
    if library == "cuda":
        helps.insert(0, "ldconfig -p | grep libcuda")
        notes += _DRIVERS
    elif library in _CUDA_NAMES:
        notes.append(
            f"{file} (without a number) comes with the development files of the CUDA toolkit; the "
            "pip wheels bring the numbered library alone. Where the toolkit is there, CUDA_HOME "
            "must name it."
        )
        more, said = toolkit_library(seen, library)
        helps += more
        notes += said
    if library != "cuda" and re.search(r"conda[\w-]{0,30}/bin/|compiler_compat", seen.mention.line):
        package = "cuda-cudart-dev" if library == "cudart" else f"lib{library}-dev"
        of_cuda = (
            f" There the package {package} brings it, in the release of that environment's CUDA."
            if library in _CUDA_NAMES
            else ""
        )
        notes.append(
            f"The linker is conda's, which looks in its own environment first.{of_cuda} "
            "LIBRARY_PATH with the directory of the file lets it look there."
        )
    return seen.answer(
        "missing-library", COMPILE, cause, owner=file, direction="none", confidence="high",
        help=(*helps, *_again(seen)), notes=tuple(notes),
    )  # fmt: skip


#: What to link with in place of the driver's own library.
_DRIVERS = (
    "libcuda is the NVIDIA driver's own library, which comes with the driver as libcuda.so.1; the "
    "plain name, which the linker wants, is not everywhere beside it, and no pip wheel has it. "
    "Under WSL both are in /usr/lib/wsl/lib: LIBRARY_PATH with that directory lets the linker look "
    "there.",
    "Triton links its launcher with -lcuda where it runs. The toolkit has a stand-in to link with "
    "in lib64/stubs: LIBRARY_PATH=$CUDA_HOME/lib64/stubs tells the linker alone; LD_LIBRARY_PATH "
    "must not name that directory.",
)


def file_named(seen: Seen) -> bool:
    """Whether a file that a JIT build should have made is told of too."""
    return bool(seen.mention.file) or any(m.what == "missing-own-file" for m in seen.paste.mentions)


def _no_ninja(seen: Seen) -> Answer:
    return seen.answer(
        ENVIRONMENT, COMPILE,
        "The build needs the program ninja, which is not found on PATH.",
        owner="ninja", direction="none", confidence="high",
        help=(f"{seen.pip} install ninja",
              f"command -v ninja; {seen.python} -c 'import sysconfig; "
              'print(sysconfig.get_path("scripts"))\''),
        notes=("Where the package ninja is installed, its program is in the directory that the "
               "second command prints; an IDE or a service that runs Python without activating "
               "the environment does not have that on PATH.",),
    )  # fmt: skip


def _ranks_note() -> tuple[str, ...]:
    return (
        "With several ranks one of them builds and the others wait: its message is the cause, and "
        "may stand far above. Half-made files stay in ~/.cache/torch_extensions; remove the "
        "directory of this extension there before the next try.",
    )


def _again(seen: Seen) -> tuple[str, ...]:
    """Build once more, alone and in plain sight."""
    file = seen.mention.file or ""
    found = re.search(r"(\S*torch_extensions/[\w.-]+/[\w.-]+)", file)
    if found is not None and "..." not in found[1] and "/.." not in found[1]:
        from fa_forensics.why.texts.files.file_text import remove_cache

        return (remove_cache(found[1]),)
    return ()


def isolation(seen: Seen) -> Answer:
    """A pip log in which the build took a torch of its own."""
    built, running = seen.versions.get("build_torch"), seen.torch
    built = seen.mention.detail.get("torch") or seen.mention.version or built
    package = package_in(seen)
    cause = "pip built the extension in an environment of its own"
    if built:
        cause += f", into which it fetched torch {built}"
    if running:
        cause += f"; the torch that runs is {running}"
    cause += (
        ". The extension is compiled for the torch of the build, and its import fails with "
        "undefined symbols, even where a try block hides them behind another message."
    )
    direction = _direction(built, running)
    name = package or "PACKAGE"
    return seen.answer(
        ENVIRONMENT, MIXED, cause, owner=package, direction=direction,
        confidence="high" if built else "medium",
        help=(
            f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
            f"{name}",
        ),
        notes=("--no-build-isolation compiles with the torch that is installed.",),
    )  # fmt: skip


def _direction(built: str | None, running: str | None) -> str:
    from fa_forensics.why.torch_names.history import order_key

    if not built or not running:
        return "unknown"
    one, other = order_key(_plain(built)), order_key(_plain(running))
    if one == other:
        return "none"
    return "file-newer" if one > other else "file-older"


def _plain(version: str) -> str:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return found[0] if found else "0"


def out_of_memory(seen: Seen) -> Answer:
    """``Killed`` while nvcc runs: each job of flash-attn takes several gigabytes."""
    from fa_forensics.facts.flash_limits import build_costs

    package = package_in(seen)
    memory = build_costs()[0] >> 30
    jobs = jobs_of(seen)
    value = jobs if jobs is not None else 2
    name = package or "PACKAGE"
    cause = (
        "The kernel ended a compiler run for lack of memory: too many ran at once. A job may take "
        f"several gigabytes; one of flash-attn takes up to {memory}."
    )
    return seen.answer(
        ENVIRONMENT, MEMORY, cause, owner=package, direction="none", confidence="medium",
        help=with_jobs(seen, value, f"{seen.pip} install --no-build-isolation {name}"),
        notes=(
            *((
                "nvcc itself ran several compilers here (--threads): NVCC_THREADS=1 where the "
                "package's build goes by it.",
            ) if re.search(r"--threads[ =]?[2-9]", words_of(seen)) else ()),
            "Choose MAX_JOBS so that there is room for each job; in a container its own limit "
            "counts. dmesg shows which process the kernel ended.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "jit-build-failed": jit_build_failed,
    "build-isolation": isolation,
    "out-of-memory-build": out_of_memory,
}
