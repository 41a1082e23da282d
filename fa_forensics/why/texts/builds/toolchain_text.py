"""Answers about what a build needs and does not find: toolkit, compiler, a file for this system."""

from __future__ import annotations

import re

from fa_forensics.facts.torch_index import index_option, is_on_index
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.least_cuda import fitting
from fa_forensics.why.texts.builds.mixed_text import home_is_a_list, on_amd
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_command,
    build_variables,
    cuda_of_build,
    on_windows,
    package_built,
    prebuilt,
    unnamed,
    which_toolkit,
    with_toolkit,
)
from fa_forensics.why.texts.clues import package_in

KIND, CODE = "wrong-torch", "FA883"


def no_toolkit(seen: Seen) -> Answer:
    """``CUDA_HOME environment variable is not set``, ``nvcc: not found``."""
    cuda = cuda_of_build(seen)
    if (tool := seen.mention.detail.get("tool")) is not None:
        return _not_whole(seen, tool)
    if _on_a_mac(seen):
        return _no_cuda_there(seen)
    listed = home_is_a_list(seen)
    if listed is not None:
        return listed
    if seen.mention.detail.get("amd") or seen.versions.get("rocm"):
        return on_amd(seen)
    cause = (
        "The build needs nvcc and found no CUDA toolkit: torch's wheels bring the runtime "
        "libraries, not the compiler."
    )
    wanted = (
        f"CUDA {cuda.split('.')[0]} (torch here is built with {cuda})" if cuda else "torch's CUDA"
    )
    if seen.mention.detail.get("unset"):
        cause += (
            " setup.py went on without asking, so that its own message is of a value that was "
            "never set."
        )
    conda, package = _of_conda(seen), package_built(seen)
    fits = fitting(seen, package, cuda, build_command(seen))
    again = f"{build_variables(seen, package)}{fits.command}" if fits.command else ""
    return seen.answer(
        KIND, CODE, cause, owner="nvcc", direction="none", confidence="high",
        help=(which_toolkit(seen),
              f"{seen.python} -c 'import torch; print(torch.version.cuda)'",
              *((f"CUDA_HOME=$CONDA_PREFIX {fits.command}",)
                if conda and again else ()),
              *(() if conda or not again else with_toolkit(seen, fits.cuda, again) if cuda
                else _of_open_cuda(seen, again))),
        notes=(
            *conda,
            *fits.notes,
            f"A toolkit of {wanted} is what fits; where it is there, CUDA_HOME must name it. A "
            "prebuilt wheel for this torch needs none.",
            *_where_from(seen, cuda and fits.cuda, bool(conda)),
            "torch.version.cuda None in the second line means that torch itself has no CUDA: a "
            "build for the CPU, or one for ROCm.",
            *(unnamed(again) if cuda or conda else ()),
            *_two_builds(seen, cuda),
            *(prebuilt(seen, package) if again else ()),
        ),
    )  # fmt: skip


def _of_open_cuda(seen: Seen, again: str) -> tuple[str, ...]:
    """The build with the toolkit of whichever CUDA torch has; () where the text has no torch."""
    return with_toolkit(seen, "X.Y", again) if seen.torch_cuda else ()


def _two_builds(seen: Seen, cuda: str | None) -> tuple[str, ...]:
    """That torch can be the package index's build, or one for the CUDA that the text names."""
    if cuda or not seen.torch_cuda:
        return ()
    return (
        f"X.Y is what the second command prints. The package index has that torch for CUDA "
        f"{seen.torch_cuda}; the text has CUDA {seen.versions['cuda'].strip()}, so that torch may "
        "be a build for that major version, of conda or of PyTorch's own index: its helper refuses "
        "a toolkit of another one.",
    )


def _where_from(seen: Seen, cuda: str | None, conda: bool) -> tuple[str, ...]:
    """What brings a toolkit with nvcc."""
    if on_windows(seen):
        return ()
    wanted = ".".join(cuda.split(".")[:2]) if cuda else "X.Y"
    if conda:
        return (f"conda install -c nvidia cuda-nvcc={wanted} cuda-cudart-dev={wanted} brings it.",)
    return (
        f"Where there is none: the package cuda-toolkit-{wanted.replace('.', '-')} of NVIDIA's "
        f"repository for the system brings it without a driver, conda install -c nvidia "
        f"cuda-toolkit={wanted} does in conda (CUDA_HOME=$CONDA_PREFIX then), and in a container "
        "an image whose name has devel; those with runtime or base have no nvcc.",
    )


def _on_a_mac(seen: Seen) -> bool:
    told = f"{seen.mention.line} {seen.mention.file or ''} {seen.versions.get('os', '')}"
    return re.search(r"/private/var/folders/|macosx?[-_ ]\d|macOS|Darwin", told) is not None


def _no_cuda_there(seen: Seen) -> Answer:
    cause = (
        "The text is of macOS, for which there is no CUDA: this extension cannot be built there, "
        "and no toolkit to install changes that. It takes Linux or Windows with an NVIDIA GPU, or "
        "the package's own way without its CUDA code, where it has one."
    )
    return seen.answer(
        KIND, CODE, cause, owner="nvcc", direction="none", confidence="high",
        help=(f"{seen.python} -c 'import torch, platform; print(platform.platform(), "
              "torch.backends.mps.is_available())'",),
    )  # fmt: skip


def _of_conda(seen: Seen) -> tuple[str, ...]:
    """Where conda's nvcc is, for texts that show conda."""
    torch = seen.versions.get("torch", "")
    notes = []
    if re.search(r"\.post\d{3}", torch):
        notes.append(
            f"torch {torch} has a version of conda-forge, and prebuilt wheels of extensions are "
            "for torch's own builds."
        )
    if notes or re.search(r"conda|(?<![\w-])mamba(?![-_]?ssm)|miniforge", seen.mention.line):
        notes.append(
            "conda's nvcc (package cuda-nvcc, with cuda-cudart-dev for the headers) is in "
            "$CONDA_PREFIX/bin: CUDA_HOME has to name that prefix where it is built."
        )
    return tuple(notes)


def _not_whole(seen: Seen, tool: str) -> Answer:
    """nvcc starts other programs of its toolkit, by their place beside it."""
    cause = (
        f"nvcc ran and did not find {tool}, a program of the same toolkit that it starts: the nvcc "
        "on PATH is a part of a toolkit alone (one package of pip or conda, a file copied or "
        "linked out of its directory), or the installation is not whole."
    )
    return seen.answer(
        KIND, CODE, cause, owner="nvcc", direction="none", confidence="high",
        help=(f"command -v nvcc {tool}; readlink -f $(command -v nvcc)", "ls -d /usr/local/cuda*",
              "nvcc --version"),
        notes=("CUDA_HOME should name the directory of a whole toolkit, and its bin come first on "
               "PATH.",),
    )  # fmt: skip


#: What setup.py files of extensions import besides torch.
BUILD_TOOLS = frozenset(
    ("packaging", "ninja", "wheel", "setuptools", "psutil", "numpy", "pybind11", "Cython", "cmake",
     "setuptools_scm", "pkg_resources", "einops")
)  # fmt: skip


def build_tool(seen: Seen, module: str) -> Answer:
    """setup.py imports something that the environment of the build does not have."""
    package = package_in(seen) or seen.mention.detail.get("package")
    cause = (
        f"{package or 'The package'} imports {module} when it is built, and the environment of the "
        "build has none: its build requirements do not name it, or pip was told to build without "
        "isolation and it is not installed."
    )
    wanted = {"Cython": "cython"}.get(module, module)
    tools = [tool for tool in ("packaging", "ninja", "wheel", "setuptools") if tool != wanted]
    return seen.answer(
        "wrong-torch", "FA884", cause, owner=package, direction="none", confidence="high",
        help=(
            f"{seen.pip} install {' '.join([wanted, *tools])}",
            build_command(seen),
        ),
        notes=(
            "--no-build-isolation builds with what is installed, torch too, which must be there "
            "first.",
        ),
    )  # fmt: skip


def compiler_unsupported(seen: Seen) -> Answer:
    """``unsupported GNU version! gcc versions later than 12 are not supported``."""
    newest, least = seen.mention.detail.get("newest"), seen.mention.detail.get("least")
    have = seen.mention.detail.get("have") or seen.versions.get("gcc")
    span = seen.mention.detail.get("range")
    mine = f" (gcc {have})" if have else ""
    if newest:
        cause = (
            f"nvcc refuses the host compiler{mine}: it takes gcc up to {newest}. A newer toolkit "
            f"takes a newer gcc; an older gcc beside this one is the other way out."
        )
        command = f"NVCC_PREPEND_FLAGS='-ccbin g++-{newest}' CC=gcc-{newest} CXX=g++-{newest}"
        helps: tuple[str, ...] = (f"{command} {build_command(seen)}",)
    elif span:
        toolkit = seen.mention.detail.get("toolkit", "")
        cause = (
            f"The host compiler{mine} is not one that CUDA {toolkit} takes: it takes gcc {span}. "
            "Another gcc beside this one is enough; CC and CXX name it."
        )
        helps = ("ls /usr/bin/g++*", f"CC=gcc-N CXX=g++-N {build_command(seen)}")
    else:
        wanted = f"gcc {least} or newer" if least else "a newer compiler"
        cause = f"The host compiler{mine} is too old for torch's headers: they take {wanted}."
        helps = ("gcc --version; ls /usr/bin/g++*",)
    return seen.answer(
        KIND, CODE, cause, owner="gcc", direction="none", confidence="high", help=helps,
    )  # fmt: skip


def pin_broken(seen: Seen) -> Answer:
    """pip's ``X requires torch==A, but you have torch B``: what X was built for is gone."""
    detail = seen.mention.detail
    package = detail.get("package") or "PACKAGE"
    wants, has = detail.get("wants", ""), detail.get("has", "")
    release = f" {detail['release']}" if detail.get("release") else ""
    cause = (
        f"{package}{release} asks for torch{wants}, and torch {has} is installed: as a rule pip "
        f"put it there for another package. A compiled part of {package} that was built for "
        f"torch{wants} need not load with it."
    )
    helps = [f"fa-forensics inspect {package}"]
    mine, theirs = has.partition("+")[2], detail.get("release", "").partition("+")[2]
    kinds = [_KIND_OF_BUILD.fullmatch(label) for label in (mine, theirs)]
    if kinds[0] and kinds[1] and kinds[0][1] != kinds[1][1]:  # +cu118 beside +rocm5.4.2, or +cpu
        return _of_two_indexes(seen, package, cause, has)
    if wants.startswith("==") and "," not in wants:
        release = wants.strip("= ").partition("+")[0]
        index = index_option(mine) if is_on_index(release, mine) else ""
        helps.insert(0, f'{seen.pip} install "torch{wants}"{index}')
    return seen.answer(
        "wrong-torch", "FA606", cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps),
        notes=(
            "The other way out is a release of the package for the torch that is installed.",
            "What the package asks for is in its metadata; what its binary needs, inspect reads.",
        ),
    )  # fmt: skip


#: The labels of PyTorch's own indexes; +pt20cu118, +computecanada and +git1234567 are none.
_KIND_OF_BUILD = lazily(r"(cpu|xpu|cu(?=\d)|rocm)[\d.]{0,8}")


def _of_two_indexes(seen: Seen, package: str, cause: str, has: str) -> Answer:
    """A package and torch are builds for another kind of machine each."""
    label = has.partition("+")[2]
    cause += (
        f" The labels behind the numbers differ too: the two are builds for different machines "
        f"(CUDA, ROCm, the CPU), so that {package} is to be taken from the index of torch's own "
        "build, and torch stays."
    )
    again: tuple[str, ...] = ()
    if package in ("torchvision", "torchaudio", "torchtext") and is_on_index(has, label):
        again = (
            f"{seen.pip} uninstall -y {package} && {seen.pip} install --no-cache-dir "
            f'"torch=={has}" {package}{index_option(label)}',
        )
    return seen.answer(
        "wrong-torch", "FA606", cause, owner=package, direction="unknown", confidence="medium",
        help=(*again, f"fa-forensics inspect {package}"),
        notes=("With torch's number told, pip takes the release that is made for it.",) if again
        else (),
    )  # fmt: skip


def _no_host_compiler(seen: Seen) -> Answer:
    detail = seen.mention.detail
    program = detail.get("program") or detail.get("program2") or detail.get("program3") or "gcc"
    cause = (
        f"The build needs a C++ compiler ({program}), and there is none of that name: nothing was "
        "compiled. A CUDA toolkit brings none."
    )
    return seen.answer(
        KIND, CODE, cause, owner="gcc", direction="none", confidence="high",
        help=("command -v gcc g++ c++; echo CC=$CC CXX=$CXX",),
        notes=("The system's package g++ (gcc-c++), or conda's gxx, is enough. A name such as "
               "x86_64-conda-linux-gnu-cc comes from CC or CXX, or from the Python that was built "
               "with it.",),
    )  # fmt: skip


def no_compiler(seen: Seen) -> Answer:
    """Triton's ``Failed to find C compiler``."""
    if not seen.mention.detail.get("triton"):
        return _no_host_compiler(seen)
    cause = (
        "Triton compiles a small launcher in C where it runs, and finds no C compiler: neither CC "
        "names one, nor is there a gcc or clang on PATH."
    )
    return seen.answer(
        KIND, CODE, cause, owner="gcc", direction="none", confidence="high",
        help=("command -v gcc clang; echo CC=$CC",),
        notes=("A system's package gcc, or conda's c-compiler, is enough; Python's development "
               "files (Python.h) are needed beside it.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "compiler-missing": no_compiler,
    "torch-pin-broken": pin_broken,
    "cuda-home-missing": no_toolkit,
    "gcc-unsupported": compiler_unsupported,
}
