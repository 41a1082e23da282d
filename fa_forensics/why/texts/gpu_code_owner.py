"""Whose GPU code a message is about, and what else says the same: words that tell it."""

from __future__ import annotations

import re

from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import cuda_version, words_of

#: Projects that compile FlashAttention 3 into their own files, by the path of its sources.
_BUNDLED = re.compile(
    r"[/\\](?P<name>xformers|vllm|sgl-kernel|sglang)[/\\][^\n]{0,200}hopper[/\\.]"
)
_DISTRIBUTIONS = {"sglang": "sgl-kernel"}
#: The words of bitsandbytes' own check of each call: "Error X at line 233 in file Y/csrc/ops.cu".
_BITSANDBYTES = re.compile(r"at line \[?[\d ]{1,12}\]? in file [^\n]{0,200}csrc/ops\.(?:cu|hip)")


def bundler(seen: Seen) -> str | None:
    """The package whose own copy of FlashAttention 3 a message is about."""
    found = _BUNDLED.search(words_of(seen))
    return _DISTRIBUTIONS.get(found["name"], found["name"]) if found else None


def own_copy(package: str) -> str:
    """What to know of such a copy."""
    return (
        f"The path is that of the copy of FlashAttention 3 that {package} compiles into its own "
        f"files: no flash-attn that is installed plays a part. A release of {package} that does "
        "not take it for this GPU is the way out, or its setting without FlashAttention 3."
    )


def of_bitsandbytes(seen: Seen) -> str | None:
    """bitsandbytes, by the words that its compiled part has for a call that failed."""
    return "bitsandbytes" if _BITSANDBYTES.search(words_of(seen)) else None


def two_runtimes(seen: Seen) -> str | None:
    """What a toolkit of another CUDA than torch's does: each runtime knows its own kernels alone.

    Up to CUDA 10 each minor release has a runtime of its own (libcudart.so.10.0, .10.1); since
    CUDA 11 all of a major version share one.
    """
    if seen.mention.what != "invalid-device-function":
        return None
    toolkit, torch = cuda_version(seen.versions.get("cuda")), cuda_version(seen.torch_cuda)
    if toolkit is None or torch is None:
        return None
    if toolkit[0] == torch[0] and (toolkit == torch or torch[0] >= 11):
        return None
    return (
        f"The text names CUDA {toolkit[0]}.{toolkit[1]} beside torch's {torch[0]}.{torch[1]}. An "
        "extension that is compiled with that toolkit brings another CUDA runtime into the process "
        "than torch's, which knows nothing of its kernels and says the same: it is to be built "
        f"with the nvcc of CUDA {torch[0]}.{torch[1]} (CUDA_HOME), or taken from a wheel for it."
    )
