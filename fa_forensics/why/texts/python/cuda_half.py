"""Compiled modules that are not there: a package's half for the GPU, one whose import failed."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows, with_variable
from fa_forensics.why.texts.clues import raw_python, version_of

ABSENT, CAUGHT = "FA880", "FA886"

#: PyG's packages, and the first release whose two halves are no modules of Python any more
#: (setup.py and __init__.py of these packages): before it, each was NAME_cpu and NAME_cuda.
_HALVES = {
    "torch-scatter": "2", "torch-sparse": "0.5", "torch-cluster": "1.5", "torch-spline-conv": "1.2",
}  # fmt: skip


#: Options for a package that is there already, with what it needs.
_ANEW = lazily(r"--force-reinstall --no-deps\s")


def cuda_half(seen: Seen, package: str | None, module: str) -> Answer | None:
    """``No module named 'torch_scatter.scatter_cuda'``: only the half for the CPU was built."""
    last = module.split(".")[-1]
    before = _HALVES.get(package or "")
    if package is None or before is None or not last.endswith("_cuda"):
        return None
    version = version_of(seen, package)
    name = f"{package}=={version}" if version else f'"{package}<{before}"'
    cause = (
        f"{package} was built without its half for CUDA: it takes {last} where torch sees a GPU, "
        f"imports {last.removesuffix('_cuda')}_cpu before it, and that one was found. Its setup.py "
        "leaves the CUDA half out, without an error, where it finds no CUDA toolkit (no nvcc on "
        "PATH, CUDA_HOME not set) or, by release, no GPU while it builds. Built again in the same "
        "surroundings, or taken from pip's cache, it comes out the same."
    )
    again = (
        f"{raw_python(seen)} -m pip install -v --no-build-isolation --no-cache-dir "
        f"--force-reinstall --no-deps {name}"
    )
    # The installer of the toolkit for Windows sets CUDA_PATH and PATH itself.
    toolkit = ("CUDA_HOME=/usr/local/cuda", "PATH=/usr/local/cuda/bin:$PATH")
    settings = ("FORCE_CUDA=1", *(() if on_windows(seen) else toolkit), "MAX_JOBS=4")
    both = " &" if on_windows(seen) else ";"
    return seen.answer(
        "damaged-file", ABSENT, cause, owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; from torch.utils.cpp_extension import CUDA_HOME; "
            "print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), CUDA_HOME)'"
            f"{both} nvcc --version",
            *with_variable(seen, " ".join(settings), again),
        ),
        notes=(
            "The first command has to print a CUDA_HOME, and nvcc the major version of torch's "
            "CUDA; without a toolkit of that version the last builds the CPU half again. "
            "FORCE_CUDA counts in releases that know it, and is ignored by others.",
            f"Releases from {before} on have no module of that name: they are another program to "
            "the code that imports it, and ask for a newer torch.",
        ),
    )  # fmt: skip


def import_told(seen: Seen, module: str, package: str | None, again: tuple[str, ...]) -> Answer:
    """A name that is not defined, and the text's own import that says why: it is not installed."""
    cause = (
        f"The compiled module {module} is not installed for the Python that ran: the import in the "
        "text says so. The NameError only follows: the code that uses the module had caught the "
        "error of its import and went on without it."
    )
    notes: Mapping[str, tuple[str, ...]] = {"selective_scan_cuda": (_OF_VMAMBA,)}
    return seen.answer(
        "damaged-file", ABSENT, cause, owner=package, direction="none",
        confidence="high" if package else "medium",
        help=(*(_ANEW.sub("", text) for text in again),
              f"{seen.python} -c 'import torch; import {module}'"),
        notes=notes.get(module, ()),
    )  # fmt: skip


_OF_VMAMBA = (
    "It comes with mamba-ssm. What VMamba builds in its own kernels/selective_scan goes by other "
    "names (selective_scan_cuda_oflex, selective_scan_cuda_core): with one of these as its backend "
    "it needs no mamba-ssm."
)
