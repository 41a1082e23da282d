"""Answers where the message names no symbol, and another copy of CUDA's libraries is at work."""

from __future__ import annotations

import re

from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, UNKNOWN
from fa_forensics.why.nvidia.places import toolkit_of_path
from fa_forensics.why.seen import Answerer, Seen

KIND, CODE = "versioned-symbol", "FA204"

#: Said of each error of cuBLAS that comes of memory.
_MEMORY = ("NOT_INITIALIZED", "ALLOC_FAILED")
#: And of those that an earlier failure on the GPU leaves behind.
_LATE = ("EXECUTION_FAILED", "INTERNAL_ERROR", "MAPPING_ERROR")


#: How NVIDIA's libraries are written; ``CUDNN_STATUS_`` begins with the name.
_TITLES = {
    "cublas": "cuBLAS", "cudnn": "cuDNN", "cusolver": "cuSOLVER", "cusparse": "cuSPARSE",
    "curand": "cuRAND", "cufft": "cuFFT",
}  # fmt: skip


def library_status(seen: Seen) -> Answer:
    """``CUBLAS_STATUS_... when calling cublasGemmEx(...)``, and its like: no name is missing."""
    status = seen.mention.detail["status"].replace("EXEC_FAILED", "EXECUTION_FAILED")
    owner = seen.mention.detail.get("owner", "cublas").lower()
    title = _TITLES[owner]
    call = seen.mention.detail.get("call", f"a call of {title}'s")
    causes = {
        "NOT_INITIALIZED": f"the GPU's memory is full when {title} starts, which is the commonest",
        "INITIALIZATION_FAILED": "the GPU's memory is full when it starts, or the driver is ill",
        "ALLOC_FAILED": "the GPU's memory is full, which is the commonest",
        "INVALID_VALUE": "the call itself is refused, as a regression of one release of torch does",
        "ARCH_MISMATCH": f"this release of {title} does not serve the GPU, which is older or newer",
    }
    first = causes.get(
        status, f"an earlier kernel failed, and {title} is only the next to notice it"
    )
    if status.startswith(("NOT_SUPPORTED", "BAD_PARAM")):
        first = f"the GPU, or this release of {title}, does not have that type or shape"
    other = ", or the cuBLASLt that it opens," if owner == "cublas" else ""
    if owner == "cudnn":
        other = ", or a part of it that it opens,"
    copies = (
        f"the {title} that is loaded{other} is not the one that torch brings: a toolkit's or an "
        "image's copy on LD_LIBRARY_PATH goes before it"
    )
    likely = [copies, first] if status == "INVALID_VALUE" else [first, copies]
    cause = (
        f"{title} refuses {call} with {status}: every symbol was found, and this is an error of "
        f"the run. Two causes are to be told apart. Either {likely[0]}; or {likely[1]}."
    )
    without = f"env -u LD_LIBRARY_PATH {seen.python} YOUR_SCRIPT.py"
    helps = [without, "echo $LD_LIBRARY_PATH", f"{seen.pip} list | grep -iE '^torch |{owner}'"]
    if status in _MEMORY:
        helps = ["nvidia-smi", *helps]
    if status in _LATE:
        helps = ["env CUDA_LAUNCH_BLOCKING=1 python YOUR_SCRIPT.py", *helps]
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="low", help=tuple(helps),
        notes=(
            "Where it works without LD_LIBRARY_PATH, that variable is the cause: unset it for this "
            "program, in a container with ENV or --env LD_LIBRARY_PATH=. Where it does not, "
            f"python -m pip check tells whether nvidia-{owner} is the version that torch asks for, "
            "and another release of torch is the next thing to try. No extension has to be built "
            "again.",
        ),
    )  # fmt: skip


def loader_trace(seen: Seen) -> Answer:
    """LD_DEBUG shows which copy a wheel's library is given."""
    library, path = seen.mention.library or "", seen.mention.detail["path"]
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    owner = owner_of_library(library)
    toolkit = toolkit_of_path(path)
    folder = path.rpartition("/")[0]
    cause = (
        f"The loader's trace shows it: {name}, a wheel's library, needs {library}, and is given "
        f"{path}, which belongs to no wheel"
        f"{f' and is of CUDA {toolkit}' if toolkit else ''}. NVIDIA's wheels fit one another, and "
        "a library of an older release in one's place lacks names that the others ask for."
    )
    if seen.mention.detail.get("variable"):
        cause += f" LD_LIBRARY_PATH names {folder}, and goes before the wheels' own directories."
    module = "jax" if "jax" in seen.mention.line or _about_jax(seen) else "torch"
    wheel = re.sub(r"^lib|\.so.*$", "", library).lower()
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NEWER, confidence="medium",
        help=(f"env -u LD_LIBRARY_PATH {seen.python} -c 'import {module}'", "echo $LD_LIBRARY_PATH",
              f"{seen.pip} list | grep -iE 'nvidia|{wheel}'"),
        notes=(
            f"{folder} has to leave LD_LIBRARY_PATH for this program (unload the module, or unset "
            "the variable); wheels need no toolkit of the system. Where something else in the "
            f"process needs that toolkit, the directory of the wheel with {library} goes before "
            "it.",
        ),
    )  # fmt: skip


def _about_jax(seen: Seen) -> bool:
    return any(m.what == "jax-library" for m in seen.paste.mentions) or "pkg:jax" in seen.versions


def jax_library(seen: Seen) -> Answer:
    """``Unable to load cuSPARSE. Is it installed?``: JAX opens NVIDIA's libraries by name."""
    title = seen.mention.detail["title"]
    name = title.lower().removeprefix("cu")
    owner = "cu" + name if title.lower().startswith("cu") and title != "CUDA" else None
    cause = (
        f"JAX opens {title} by its name and cannot: the wheel that has it (of the extra cuda12 or "
        "cuda13) is not installed, or a library that it needs comes from elsewhere and is of "
        "another release: a toolkit's or an SDK's copy on LD_LIBRARY_PATH goes before the wheels' "
        "own. torch has no part in this."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner or "cudart", direction=UNKNOWN, confidence="medium",
        help=(f"env -u LD_LIBRARY_PATH {seen.python} -c 'import jax; print(jax.devices())'",
              f"{seen.pip} list | grep -iE 'jax|nvidia'",
              f"LD_DEBUG=libs {seen.python} -c 'import jax; jax.devices()' 2>&1 | "
              f"grep -E 'calling init: .*(cu|nv){name[:4]}'"),
        notes=(
            "Where the first command shows the GPU, LD_LIBRARY_PATH is to be unset for this "
            f"program. Where it does not, {title_of(owner) if owner else title} comes with "
            'pip install --upgrade "jax[cuda12]", or "jax[cuda13]" for CUDA 13.',
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "cublas-status": library_status,
    "jax-library": jax_library,
    "loader-trace": loader_trace,
}
