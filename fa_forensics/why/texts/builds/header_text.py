"""Answers to ``fatal error: x.h: No such file``: who brings a header, and which torch has it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from fa_forensics.errors import AtlasDamaged
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows, which_toolkit
from fa_forensics.why.texts.builds.windows_build import without_libs
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.atlas.headers import Headers

ENVIRONMENT, COMPILE = "wrong-torch", "FA883"


@lru_cache(maxsize=1)
def _headers() -> Headers | None:
    """The table of torch's headers; None where it cannot be read."""
    from fa_forensics.atlas.headers import Headers

    try:
        return Headers.open()
    except AtlasDamaged:
        return None


def releases_with(key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the releases whose headers have a name or a header, all on record), as far as known."""
    table = _headers()
    if table is None:
        return (), ()
    lacking = set(table.without(key))
    having = tuple(r for r in table.releases if r not in lacking) if table.has(key) else ()
    return having, table.releases


#: What is left of THC in the wheels of torch 2.4.0 to 2.15.0 (torch/include/THC).
_STILL_THERE = ("THCAtomics.cuh", "THCDeviceUtils.cuh")


def missing_header(seen: Seen, header: str) -> Answer:
    """The compiler found no such header."""
    name = header.rpartition("/")[2]
    cause = f"The compiler found no {name} while the extension was built, so it was never made."
    if re.match(r"THC?/|THC?[.A-Z]", header) and name not in _STILL_THERE:
        return _torch_gave_up(seen, header)
    row = header_row(header)
    if row is None and re.match(r"(?:ATen|c10|torch|caffe2)/", header):
        return _torch_header(seen, header)
    helps = [f"find / -name {shlex.quote(name)} -not -path '/proc/*' 2>/dev/null"]
    notes, owner = [], package_in(seen)
    if row is not None and "cuda" in row:
        notes, owner = _of_the_toolkit(row), "cuda-toolkit"
        if re.search(r"conda|mamba|miniforge|/envs/", seen.mention.line):
            notes.append(
                "conda's toolkit has its headers in $CONDA_PREFIX/targets/x86_64-linux/include: "
                "where the file is there, CPATH with that directory lets gcc find it."
            )
        helps.append(which_toolkit(seen))
        nvcc = seen.mention.detail.get("nvcc", "")
        if re.search(r"conda|mamba|miniforge|/envs/", nvcc):
            notes.append(
                f"{nvcc} is a conda environment's: its package brings the compiler alone. conda's "
                "package cuda-libraries-dev, in the release of that nvcc, brings these headers."
            )
    elif row is not None:
        notes.append(str(row["other"]))
    if name == "Python.h" and on_windows(seen):
        return without_libs(seen, name)
    if name == "Python.h":
        helps = [f"{seen.python} -c 'import sys, sysconfig; print(sys.version, "
                 'sysconfig.get_path("include"))\'']  # fmt: skip
        if re.search(
            r"/tmp\w*/(?:main|cuda_utils|driver|launcher|__triton\w*)\.c", seen.mention.line
        ):
            owner = "triton"
            notes.append(
                "The file that was compiled is Triton's launcher, which it builds where it runs: a "
                "compiler and these headers are needed at run time."
            )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner=owner, direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def header_row(header: str) -> Mapping[str, str] | None:
    """What is known of a header that is not torch's, by the longest beginning of its path."""
    path = header.replace("\\", "/").lower()
    rows: Mapping[str, Mapping[str, str]] = build_names()["headers"]
    for text in (path, path.rpartition("/")[2]):
        fitting = [key for key in rows if text.startswith(key)]
        if fitting:
            return rows[max(fitting, key=len)]
    return None


def _of_the_toolkit(row: Mapping[str, str]) -> list[str]:
    since = row["cuda"]
    if since:
        return [
            f"It comes with CUDA toolkits since {since}, not with torch's wheels: the toolkit of "
            "this build is older, or not whole. CUDA_HOME must name one of torch's CUDA major "
            "version that has it."
        ]
    notes = [
        "It comes with the CUDA toolkit (not with torch's wheels); CUDA_HOME must name a whole "
        "one: a single package of pip or conda has no headers of the others."
    ]
    if row.get("moved"):
        notes.append(
            f"CUDA {row['moved']} moved it to include/cccl, which nvcc finds by itself and gcc and "
            "cl do not: a package that is older than that needs a toolkit before "
            f"{row['moved']}, or that directory in CPATH."
        )
    if row.get("gone"):
        notes.append(f"Without nvtx3/ before it, it is gone since CUDA {row['gone']}.")
    return notes


def _torch_header(seen: Seen, header: str) -> Answer:
    """A header below torch's include directory."""
    having, known = releases_with(header)
    name = header.rpartition("/")[2]
    direction, confidence = "unknown", "medium"
    if not having:
        cause = (
            f"{header} is a path of torch's headers, and no torch on record has it: the source is "
            "for an older torch than these, or for a build of torch of its own."
        )
    elif len(having) == len(known):
        direction = "none"
        cause = (
            f"The compiler found no {name}, which every torch on record has: torch's include "
            "directory is not on the compiler's line, or the build runs with a Python that has no "
            "torch."
        )
    else:
        older = having[-1] != known[-1]
        direction, confidence = ("file-older" if older else "file-newer"), "high"
        span = f"up to {having[-1]}" if older else f"since {having[0]}"
        cause = (
            f"{header} is in torch {span}; the torch of this build does not have it, so the source "
            f"was written for {'an older' if older else 'a newer'} torch."
        )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner=package_in(seen) or "torch", direction=direction,
        confidence=confidence,
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
              f"find $({seen.python} -c 'import torch; print(torch.__path__[0])')/include "
              f"-name {name}"),
    )  # fmt: skip


def _torch_gave_up(seen: Seen, header: str) -> Answer:
    """A header of TH or THC, the C part of torch that went with 1.11."""
    cause = (
        f"{header} is a header of torch's TH and THC part, which torch gave up by 1.11: the "
        "source was written for an older torch, so that it was never compiled."
    )
    python = ".".join((seen.python_version or "").split(".")[:2])
    where = "Its wheels are for Python 3.6 to 3.9."
    if python and order_key(python) >= order_key(_WITHOUT_WHEELS):
        where = (
            f"It has no wheels for Python {python}: an environment with Python 3.9 has to be made."
        )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner=package_in(seen) or "torch", direction="file-older",
        confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__)'",
              "grep -rnE 'THC|THTensor|TH/' --include='*.cu' --include='*.cuh' --include='*.cpp' "
              "--include='*.h' ."),
        notes=(_PORTED,
               "The other way out is torch 1.10.2, the last with these headers, which has no code "
               f"for Hopper and newer GPUs. {where}"),
    )  # fmt: skip


#: torch 1.10 is the last release with the headers, and has wheels for Python 3.6 to 3.9.
_WITHOUT_WHEELS = "3.10"
#: What took the place of THC's functions in the sources that were ported.
_PORTED = (
    "A release or a fork of the package that is written for this torch is the way out, where there "
    "is one. Else the source is ported, which is a few lines in each file that the second command "
    "lists: without the include of THC/THC.h, THCState and THCudaCheck; AT_CUDA_CHECK (of "
    "ATen/cuda/Exceptions.h) and at::cuda::getCurrentCUDAStream() (of ATen/cuda/CUDAContext.h) in "
    "their place, c10::cuda::CUDACachingAllocator::raw_alloc for THCudaMalloc, ATen/ceil_div.h for "
    "THCCeilDiv, and ATen/cuda/Atomic.cuh for THCAtomics.cuh."
)
