"""What torch loads itself through ctypes when it is imported, and how its wheels get lost."""

from __future__ import annotations

import re

from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import of_old_driver, told_cuda
from fa_forensics.why.texts.libraries.cpu_extension import loaded_by_path, on_cpu
from fa_forensics.why.texts.libraries.inside_torch import has_cuda_inside
from fa_forensics.why.texts.libraries.needing import package_of_text
from fa_forensics.why.torch_names.history import order_key

#: What libtorch_global_deps.so is linked with. The runtime and cuSPARSE are not taken for its:
#: PyG's extensions need these too, and torch.ops.load_library opens them by ctypes as well.
_OF_TORCH = ("cublas", "cublasLt", "cudnn", "cufft", "curand")
#: The first torch release whose wheels take CUDA from wheels of NVIDIA.
_FROM_WHEELS = "1.13.0"
#: The last torch of PyTorch's index for CUDA 11.8.
_LAST_118 = "2.7.1"
#: Names of packages that say nothing of an extension.
_NO_EXTENSION = lazily(
    r"(?:named|pkg):(?:nvidia[\w.-]*|torch(?:vision|audio)?|pytorch(?:-cuda)?|triton|numpy|pip|uv"
    r"|setuptools|cudatoolkit|ninja|conda)"
)


def is_preloaded(seen: Seen, owner: str | None, major: str | None) -> bool:
    """Whether the line is most likely of torch's own import: an OSError, and no extension is named.

    torch opens libtorch_global_deps.so by ctypes, whose message is an OSError; what Python
    imports raises an ImportError.
    """
    here = seen.place.environment
    if not loaded_by_path(seen) or owner not in _OF_TORCH or (here and here.torch):
        return False
    detail = seen.mention.detail
    told = seen.mention.file or detail.get("import") or detail.get("by") or detail.get("board")
    if told or detail.get("torch_loads") or package_of_text(seen) or "flag:pyg" in seen.versions:
        return False
    names = (key for key in seen.versions if key.startswith(("named:", "pkg:")))
    if not all(_NO_EXTENSION.fullmatch(name) for name in names) or has_cuda_inside(seen):
        return False
    if seen.torch and order_key(seen.torch) < order_key(_FROM_WHEELS):
        return False
    other = None if seen.torch_cuda else told_cuda(seen)
    cuda = (seen.torch_cuda or (other[0] if other else "")).split(".")[0]
    return major in ("11", "12", "13") and cuda in ("", major)


def without_deps(seen: Seen) -> bool:
    """Whether the text installs without what packages depend on."""
    return "flag:no-deps" in seen.versions


NO_DEPS = (
    " The text installs with --no-deps, which leaves out the wheels that torch depends on: torch "
    "has to be installed again without that option, since others of NVIDIA's are missing with it."
)


def other_builds(seen: Seen, major: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): torch for an old driver, and torch for a machine without a GPU."""
    release = (seen.torch or "").partition("+")[0]
    whole = bool(re.fullmatch(r"\d+\.\d+\.\d+", release))
    helps, notes = [], []
    again = f"{seen.pip} install --force-reinstall --no-cache-dir"
    old = of_old_driver(seen, major)
    if old is not None and old[0] == "11":
        known = whole and order_key("2.0.0") <= order_key(release) <= order_key(_LAST_118)
        torch = f'"torch=={release}"' if known else "torch"
        helps.append("".join((again, " ", torch, index_option("cu118"))))
        notes.append(
            f"{old[1][0].upper()}{old[1][1:]}: a torch for CUDA {major} does not use the GPU with "
            "it. The command with cu118 installs one for CUDA 11.8, which needs the driver "
            "450.80.02 or newer."
        )
    if on_cpu(seen):
        torch = f'"torch=={release}"' if whole else "torch"
        helps.append("".join((again, " ", torch, index_option("cpu"))))
        notes.append(
            "The text has no GPU: torch for the CPU, which the command with whl/cpu installs, "
            "needs none of CUDA's libraries. The library itself needs no GPU to be there."
        )
    return tuple(helps), tuple(notes)
