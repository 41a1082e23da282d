"""Whose GPU code a message is about, and what else says the same: words that tell it."""

from __future__ import annotations

import re

from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.package import normalized
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors
from fa_forensics.patterns import lazily
from fa_forensics.rules.coverage import what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import (
    called,
    cuda_version,
    named,
    package_by_words,
    package_in,
    words_of,
)
from fa_forensics.why.texts.gpu.torch_for_gpu import covers

#: Projects that compile FlashAttention 3 into their own files, by the path of its sources.
_BUNDLED = lazily(r"[/\\](?P<name>xformers|vllm|sgl-kernel|sglang)[/\\][^\n]{0,200}hopper[/\\.]")
#: Where xformers has it, below whatever directory somebody cloned xformers into.
_OF_XFORMERS = lazily(r"[/\\]third_party[/\\]flash-attention[/\\]hopper[/\\]")
_AS_XFORMERS = lazily(
    r"[/\\]xf(?:rm|ormer)\w{0,12}[/\\]third_party[/\\]flash-attention[/\\]hopper[/\\]"
)
_DISTRIBUTIONS = {"sglang": "sgl-kernel"}
#: The words of bitsandbytes' own check of each call: "Error X at line 233 in file Y/csrc/ops.cu".
_BITSANDBYTES = lazily(r"at line \[?[\d ]{1,12}\]? in file [^\n]{0,200}csrc/ops\.(?:cu|hip)")


#: How a program is set to do without it: xformers/ops/fmha/dispatch.py, vLLM's envs.py.
_WITHOUT_FA3 = {
    "xformers": (
        " xformers.ops.fmha.dispatch._set_use_fa3(False) in the program, before the first call, "
        "is that setting. xformers 0.0.30 to 0.0.32 take FlashAttention 3 on newer GPUs "
        "too, 0.0.33 and later do not."
    ),
    "vllm": " That is VLLM_FLASH_ATTN_VERSION=2.",
}


def bundler(seen: Seen) -> str | None:
    """The package whose own copy of FlashAttention 3 a message is about."""
    words = words_of(seen)
    if (_OF_XFORMERS if "named:xformers" in seen.versions else _AS_XFORMERS).search(words):
        return "xformers"
    found = _BUNDLED.search(words)
    return _DISTRIBUTIONS.get(found["name"], found["name"]) if found else None


def own_copy(package: str) -> str:
    """What to know of such a copy."""
    return (
        f"The path is that of the copy of FlashAttention 3 that {package} compiles into its own "
        f"files: no flash-attn that is installed plays a part. A release of {package} that does "
        "not take it for this GPU is the way out, or its setting without FlashAttention 3."
        f"{_WITHOUT_FA3.get(package, '')}"
    )


#: FlashAttention 3 prints an error of its launches itself and ends the program (hopper/
#: cuda_check.h); FlashAttention 2 hands it to torch, which raises (C10_CUDA_CHECK).
_PRINTED = lazily(r"CUDA error \((?P<path>[^\s()]{0,200})flash_(?:fwd|bwd)_\w{1,40}\.h:\d")


def printed_by_fa3(seen: Seen) -> tuple[str, ...]:
    """What tells FlashAttention 3, where nothing but the form of its message does; else ()."""
    found = _PRINTED.search(words_of(seen))
    if found is None or bundler(seen) is not None:
        return ()
    said = (
        "The form CUDA error (file:line) is FlashAttention 3's, which prints it and ends the "
        "program. FlashAttention 2 (flash-attn) has a file of that name too and raises through "
        "torch: it is not what failed, and to build it again changes nothing."
    )
    if "/build/source/" in found["path"]:
        said += (
            " A path below /build/source is a Nix build's, as those of Hugging Face's kernels are "
            "(kernels-community/flash-attn3, fetched at run time): the program's attention set to "
            "flash_attention_2 or sdpa takes its place."
        )
    else:
        said += " The program's attention has to be set to another one than FlashAttention 3."
    return (said,)


#: A call of a compiled module, as a traceback shows it: ``out = awq_inference_engine.gemm(``.
_CALL = lazily(r"(?<![\w.])([A-Za-z_]\w{2,60})\.[A-Za-z_]\w{0,80}\(")
_COMPILED = lazily(r"_C$|(?:^|_)(?:cuda|ext|cpp|kernels?|engine|binding)$|^cuda_\w", re.IGNORECASE)


def called_module(seen: Seen) -> str | None:
    """The compiled module whose function the last step of the traceback calls, by its name."""
    detail = seen.mention.detail
    found = _CALL.search(detail.get("code") or detail.get("call", ""))
    return found[1] if found is not None and _COMPILED.search(found[1]) else None


#: A call of anything that is not torch's own: "x.f(", "f(".
_ANY_CALL = lazily(r"(?<![\w.])(?!torch\.|F\.|nn\.)[A-Za-z_][\w.]{0,80}\(")


def plain_torch(seen: Seen) -> bool:
    """Whether the last step is an operation of torch's own: ``grads = grads[sel]``.

    Its file tells then whose Python code ran, and not whose kernel failed.
    """
    detail = seen.mention.detail
    code = detail.get("code", "")
    if seen.mention.file or not code or detail.get("call") or detail.get("asked"):
        return False
    return _ANY_CALL.search(code) is None and re.search(r"=|\[|torch\.|return ", code) is not None


def package_shown(seen: Seen) -> str | None:
    """The package that a message is about; llm-awq has a module of an early AutoAWQ's name too."""
    package = package_in(seen)
    told = {"pkg:autoawq", "named:autoawq"} & seen.versions.keys()
    return None if package == "autoawq" and not told and called_module(seen) else package


def in_every_torch(gpu: Gpu) -> bool:
    """Whether all of torch's own wheels on record have code for a GPU."""
    lists = [torch_archs(minor, cuda) for minor in torch_minors() for cuda in cuda_of_minor(minor)]
    return bool(lists) and all(covers(archs or (), gpu) for archs in lists)


def sure_of_package(seen: Seen, gpu: Gpu, torch_open: bool) -> bool:
    """Whether the package lacks the code and not torch, where torch's own list may be open.

    A name that stands in a call alone tells what ran last, and that can be torch's kernel.
    """
    if called_module(seen) is None or package_shown(seen) is not None:
        return True
    return not torch_open or in_every_torch(gpu)


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


def shown(seen: Seen, gpu: Gpu) -> str:
    """A GPU in a sentence: a list of a family's names, for a bare capability, is nobody's GPU."""
    return named(gpu) if "," in gpu.name and not seen.gpu else called(gpu)


#: What around a message shows whose code ran; "asked" is a pip line beside it, and shows nothing.
_SHOWS = ("part", "call", "code", "prints", "stack", "trace")


def listed_alone(seen: Seen, package: str | None) -> bool:
    """Whether a package only stands among the versions of a text, or in a pip line beside.

    No path, no step of the traceback and no word of the message names it then: another extension
    may be the one that failed.
    """
    if package is None or seen.package is not None or of_bitsandbytes(seen) is not None:
        return False
    detail = seen.mention.detail
    if any(detail.get(key) for key in _SHOWS) or called_module(seen) is not None:
        return False
    if normalized(detail.get("project", "")) == package:
        return False
    said = (seen.mention.line, seen.mention.file or "")
    words = "\n".join((*said, *(text for key, text in detail.items() if key != "asked")))
    spoken = "flash" in words.lower() and package.startswith("flash")
    return not spoken and package_by_words(words) is None


def most_likely(seen: Seen, gpu: Gpu, file: str, torch_has: bool) -> str:
    """The cause where a package is only listed in the text: likely, and not shown."""
    beside = "another extension does" if torch_has else "another extension does, or torch itself"
    return (
        f"Something holds no code for {shown(seen, gpu)}, which runs "
        f"{what_would_run(gpu.capability)}: most likely {file}, the package with GPU code of its "
        f"own that the text names, but nothing in the message says whose kernel it was; else "
        f"{beside}."
    )
