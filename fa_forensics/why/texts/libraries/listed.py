"""Which package of those that a text merely lists may be the one that misses a library."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.facts.python_api import is_older, torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_of_line

#: torch, what people install and list with it, and what is written in Python alone.
_OF_TORCH = (
    "torch", "torchvision", "torchaudio", "triton", "numpy", "setuptools", "pip", "uv", "pytorch",
    "pytorch-cuda", "cudatoolkit", "ninja", "transformers", "accelerate", "diffusers", "peft",
    "kernels", "pybind11",
)  # fmt: skip
#: The libraries of CUDA 11 and newer that have the CUDA major version in their names.
_MAJOR = lazily(r"lib(?:cudart|nvrtc|cublas|cublasLt)\.so\.(1[1-9])(?:\.0)?$")
_LABEL = lazily(r"\+(?:\w{1,20}\.)?(?:pt\d{1,3})?(cu\d{2,3})")


def named_alone(seen: Seen) -> str:
    """The one package of a list that may need the library; "" where the text shows whose it is.

    A list does not say who failed: sentences tell it as a guess (see ``is_guess``).
    """
    if seen.mention.detail.get("import") or seen.mention.detail.get("by") or seen.mention.file:
        return ""
    if other := _built_for_another(seen):
        return other
    keys = [key for key in seen.versions if key.startswith(("pkg:", "named:"))]
    names = {key.partition(":")[2] for key in keys}
    left = {name for name in names if name not in _OF_TORCH and not name.startswith("nvidia-")}
    return left.pop() if len(left) == 1 else ""


def wanted_cuda(soname: str) -> str:
    """The CUDA of a library's name: "10.1", "12"; "" where it carries none."""
    major = _MAJOR.search(soname)
    return exact_toolkit(soname) or (major[1] if major is not None else "")


def _built_for_another(seen: Seen) -> str:
    """The one listed package whose own version is of another CUDA, or another torch, than torch's.

    "" for none or several.
    """
    wanted = wanted_cuda((seen.mention.library or "").rsplit("/", 1)[-1])
    if not wanted or seen.torch is None:
        return ""
    listed = {k[4:]: v for k, v in seen.versions.items() if k.startswith("pkg:")}
    labels = {name: label[1] for name, v in listed.items() if (label := _LABEL.search(v))}
    start = f"{wanted}."
    if not f"{seen.torch_cuda or ''}.".startswith(start):
        found = [n for n, one in labels.items() if f"{cuda_of_label(one)}.".startswith(start)]
        if found:
            return found[0] if len(found) == 1 else ""
    unpaired = [name for name in ("torchvision", "torchaudio") if is_unpaired(seen, name)]
    return unpaired[0] if len(unpaired) == 1 else ""


def is_unpaired(seen: Seen, name: str) -> bool:
    """Whether the text's release of a package was built for another minor release of torch.

    False for torchaudio before 0.10, which had no code for CUDA.
    """
    release = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
    if name == "torchaudio" and is_older(release, "0.10.0"):
        return False
    built = torch_of(name, release)
    loaded = re.match(r"\d\.\d{1,2}", seen.torch or "")
    return built is not None and loaded is not None and minor_of(built) != loaded[0]


def is_guess(seen: Seen) -> bool:
    """Whether the package that misses the library is known by a list or a passing word alone."""
    detail = seen.mention.detail
    if seen.mention.file or detail.get("import"):
        return False
    return bool(detail.get("by_words")) or not detail.get("by")


def as_guess(answer: Answer, seen: Seen, soname: str, title: str) -> Answer:
    """An answer for a package, said as a guess where a list or a passing word alone names it."""
    if not is_guess(seen) or package_of_line(seen) is not None:
        return answer
    guess = (
        f"The text does not say what asks for {soname}: of the packages that it lists, most likely "
        f"{title}. "
    )
    if seen.mention.detail.get("by_words"):
        guess = (
            f"The text names {title}, and shows no file, step or import of it: whether that is "
            f"what asks for {soname} is not told. Where it is: "
        )
    return replace(answer, cause=f"{guess}{answer.cause}")
