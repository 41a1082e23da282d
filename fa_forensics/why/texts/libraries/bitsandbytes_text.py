"""Answers to the words of bitsandbytes, which looks for its compiled libraries itself."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.bitsandbytes_files import (
    misnamed,
    nothing_there,
    other_rocm,
)
from fa_forensics.why.texts.libraries.brought_text import there_already, wheel_of


def no_cuda_binary(seen: Seen) -> Answer:
    """bitsandbytes found no library for torch's CUDA version and goes on with its CPU library."""
    file = (seen.mention.file or "").rpartition("/")[2]
    wrong = misnamed(seen, file)
    if wrong is not None:
        return wrong
    number = re.search(r"_rocm(\d{2,3})", file or seen.mention.line)
    if _no_library_at_all(seen):
        return nothing_there(seen, file) if number is None else other_rocm(seen, number[1])
    if number is not None:
        return _no_rocm_binary(seen, number[1])
    missing = f" ({file})" if file else ""
    cause = (
        f"bitsandbytes has no library{missing} for the CUDA version of this torch, or did not find "
        "the CUDA runtime, and goes on with its CPU library: what is missing later follows from "
        "that."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="medium",
        help=(
            f"{seen.python} -m bitsandbytes",
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
        ),
        notes=("Each release holds libraries for the CUDA versions of its time.",),
    )  # fmt: skip


def of_bitsandbytes(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer | None:
    """A library of CUDA that bitsandbytes misses; None where another package misses it.

    It imports torch itself and takes libbitsandbytes_cudaNNN.so by torch.version.cuda, or by
    BNB_CUDA_VERSION (bitsandbytes/cextension.py), so that neither the order of imports nor a
    build for another CUDA can be what is wrong.
    """
    detail = seen.mention.detail
    named = (seen.mention.file or "", seen.mention.line, detail.get("by"), detail.get("import"))
    if major is None or not any("bitsandbytes" in (text or "") for text in named):
        return None
    stem = soname.removeprefix("lib").split(".so")[0]
    wheel = wheel_of(seen, soname, major) or f"nvidia-{stem}-cu{major}"
    own = (seen.torch_cuda or "").split(".")[0]
    cause = (
        "bitsandbytes imports torch itself and loads the one of its libraries that is for torch's "
        f"CUDA: that it asks for {soname} says that torch is a build for CUDA {major} here, or "
        f"that BNB_CUDA_VERSION names such a one. The library of CUDA {major} is not where the "
        "loader looks: this torch brings none under that name, and the CUDA of the system is "
        "another one or is not on the path."
    )
    if own and own != major:
        cause += f" The text has torch for CUDA {own}, so that BNB_CUDA_VERSION is the likelier."
    folder = wheel.removeprefix("nvidia-").rpartition("-cu")[0].replace("-", "_") or stem
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'; "
            "echo BNB_CUDA_VERSION=$BNB_CUDA_VERSION",
            f"{seen.pip} install {wheel}",
            f"export LD_LIBRARY_PATH=$({seen.python} -c 'import nvidia.{folder} as a; "
            "print(list(a.__path__)[0])')/lib:$LD_LIBRARY_PATH",
            f"{seen.python} -m bitsandbytes",
        ),
        notes=(
            "The second and third command give it that library. The way that lasts is a torch for "
            "the CUDA of today, with a bitsandbytes of its time: it then takes another one of its "
            "libraries by itself. Where BNB_CUDA_VERSION is set, unset it.",
            "Another release of bitsandbytes alone changes nothing, and a library of another CUDA "
            f"major version under the name {soname} does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _no_rocm_binary(seen: Seen, number: str) -> Answer:
    """The name is ten times the major number plus the minor one: ROCm 7.2 is 72, 7.14 is 84."""
    from fa_forensics.why.texts.clues import cuda_version

    rocm = cuda_version(seen.versions.get("rocm"))
    if rocm is None:
        rocm = cuda_version(seen.versions.get("torch", "").partition("+rocm")[2])
    file = f"libbitsandbytes_rocm{number}.so"
    cause = (
        f"bitsandbytes looks for {file}, its library for the ROCm of this torch, and the release "
        "that is installed has none of that name: its wheels hold libraries for some releases of "
        "ROCm alone. Nothing is damaged."
    )
    if rocm is not None and str(rocm[0] * 10 + rocm[1]) == number and rocm[1] >= 10:
        cause += (
            f" It makes {number} of ROCm {rocm[0]}.{rocm[1]}: there is no ROCm "
            f"{number[0]}.{number[1:]} to install."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="high" if seen.mention.file else "medium",
        help=(
            f"{seen.python} -c 'import torch, importlib.util as u, os; print(torch.version.hip, "
            'sorted(f for f in os.listdir(u.find_spec("bitsandbytes").submodule_search_locations'
            '[0]) if "rocm" in f))\'',
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
        ),
        notes=(
            "The number in the name is ten times the major number plus the minor one: 72 is ROCm "
            "7.2, and 84 would be 7.14.",
            "BNB_ROCM_VERSION names another one of those that the first command lists (72 for "
            "ROCm 7.2): one of the same major release as torch's ROCm, the nearest.",
            "From source it is cmake -DCOMPUTE_BACKEND=hip -S . and make, with that ROCm's hipcc, "
            "then pip install . there.",
        ),
    )  # fmt: skip


def _no_library_at_all(seen: Seen) -> bool:
    """Whether the CPU library, which every wheel has, is missing beside the CUDA one."""
    return seen.mention.detail.get("cpu") == "missing"
