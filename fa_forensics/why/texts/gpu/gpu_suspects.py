"""Who may lack the code for a GPU, and what its build took: by all that the text names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.build_archs import own_lists
from fa_forensics.facts.gpus import Gpu, capability_text, parse_capability
from fa_forensics.facts.package import normalized
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors
from fa_forensics.rules.coverage import NONE, code_for, fit
from fa_forensics.rules.gpu_remedy import rebuild
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.build_targets import the_list
from fa_forensics.why.texts.clues import called, pip_name
from fa_forensics.why.texts.gpu.gpu_refusals import build_of
from fa_forensics.why.texts.gpu.torch_for_gpu import covers
from fa_forensics.why.torch_names.history import order_key

#: What torch itself brings, and what has no code for GPUs in its own files.
_NO_SUSPECTS = ("torch", "torchvision", "torchaudio", "triton", "numpy", "transformers",
                "accelerate", "ninja", "pybind11", "kernels")  # fmt: skip


def told_package(seen: Seen) -> str | None:
    """The package whose installation stands beside the error: ``pip install causal-conv1d``."""
    name = seen.mention.detail.get("asked")
    if name is None:
        return None
    return pip_name(seen, name.replace("-", "_")) or pip_name(seen, name) or name


def with_own_list(seen: Seen) -> str | None:
    """The package with a -gencode list of its own that the text names alone, without a version.

    causal-conv1d comes along with mamba-ssm, and its list is the same.
    """
    from fa_forensics.rules.remedy import row_of

    names = [key.removeprefix("named:") for key in seen.versions if key.startswith("named:")]
    names = [one for one in names if one not in _NO_SUSPECTS and row_of(one) is not None]
    if not names or not all(own_lists(one) for one in names):
        return None
    return "mamba-ssm" if "mamba-ssm" in names else names[0]


def named_module(seen: Seen, gpu: Gpu, package: str | None) -> str | None:
    """What a compiled module tells that the text names by its bare name; None for none.

    Other projects have copies of it: VMamba's selective_scan is built in a directory of its own.
    """
    from fa_forensics.why.texts.python.python_text import row_of_module

    module = seen.versions.get("flag:named-module", "")
    row = row_of_module(module) if module and package is None else None
    if row is None:
        return None
    number = numbered(gpu).replace(".", "")
    return (
        f"The text names {module}, and most likely that is the extension: {row['distribution']} "
        "has a compiled module of that name, and so have projects with a copy of its source, "
        "which compile it in a directory of their own. Where its setup.py passes a -gencode list "
        "of its own, TORCH_CUDA_ARCH_LIST changes nothing: that list gets "
        f"arch=compute_{number},code=sm_{number}, and the module is built again after rm -rf build."
    )


def suspects(seen: Seen) -> tuple[str, ...]:
    """The packages with GPU code of their own that the text lists: "xformers 0.0.30"."""
    from fa_forensics.rules.remedy import row_of

    found: list[str] = []
    if seen.mention.detail.get("prints", "").startswith("ms_deform"):
        return ()  # a project's own copy of the operator, which no package of a list has
    for key, version in seen.versions.items():
        name = key.removeprefix("pkg:")
        if key == name or normalized(name) in _NO_SUSPECTS or name.startswith("nvidia-"):
            continue
        if row_of(name) is not None:
            found.append(f"{name} {version}")
    return tuple(found)


def listed_packages(others: Sequence[str]) -> str:
    """The packages of ``suspects`` in a note."""
    return (
        f"Packages with GPU code of their own that the text names: {', '.join(others)}. inspect "
        "shows which of them lacks it."
    )


def built_for(seen: Seen, gpu: Gpu) -> str | None:
    """That the text's TORCH_CUDA_ARCH_LIST makes no code for a GPU; None where it makes some."""
    told = the_list(seen)
    entries = [one for one in re.split(r"[;, ]+", told) if one]
    if not entries or list_has(seen, gpu):
        return None
    return (
        f"A build with TORCH_CUDA_ARCH_LIST={told}, as the text has it, makes machine code for "
        f"{'these' if len(entries) > 1 else 'that'} alone, and none of it runs on {called(gpu)}."
    )


def list_has(seen: Seen, gpu: Gpu) -> bool:
    """Whether the text's TORCH_CUDA_ARCH_LIST makes code that runs on a GPU."""
    for entry in (one for one in re.split(r"[;, ]+", the_list(seen)) if one):
        number = entry.split("+")[0].replace(".", "")
        codes = [f"sm_{number}", *([f"compute_{number}"] if "+PTX" in entry else [])]
        if any(fit(code_for(code), gpu.capability).runs != NONE for code in codes):
            return True
    return False


def two_gpus(seen: Seen) -> str | None:
    """What to know of a name that two GPUs have: "TITAN X"."""
    name = seen.versions.get("gpu", "")
    row = read_table("gpus.json")["ambiguous"].get(name.upper().removeprefix("NVIDIA "))
    if row is None:
        return None
    which = " and ".join(f"{number} ({full})" for number, full in row.items())
    numbers = " or ".join(f'"{number}"' for number in row)
    return (
        f"{name} is the name of two GPUs, of compute capability {which}: TORCH_CUDA_ARCH_LIST is "
        f"{numbers}, as the first command says."
    )


def both_covered(seen: Seen) -> str:
    """The list for both GPUs of one name, where torch has code for both: "5.2;6.1"; else "".

    Where the text does not tell torch's CUDA, each of its wheels has to have it.
    """
    name = seen.versions.get("gpu", "").upper().removeprefix("NVIDIA ")
    row = read_table("gpus.json")["ambiguous"].get(name)
    torch = re.match(r"\d{1,2}\.\d{1,3}", seen.torch or "")
    if row is None or torch is None:
        return ""
    minor, first = torch[0], torch_minors()[0]
    # Older builds than those on record have these GPUs' code as the first ones do.
    minor = first if order_key(minor) < order_key(first) else minor
    lists = [torch_archs(minor, cuda) for cuda in cuda_of_minor(minor)]
    gpus = [Gpu(full, parse_capability(number)) for number, full in row.items()]
    every = bool(lists) and all(covers(one or (), gpu) for one in lists for gpu in gpus)
    return ";".join(row) if every else ""


def second_of_mamba(
    seen: Seen, package: str | None, gpu: Gpu
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): causal-conv1d, which mamba-ssm calls, lacks the same GPU as a rule."""
    if package != "mamba-ssm":
        return (), ()
    advice = rebuild(build_of(seen, "causal-conv1d"), (), (gpu,))
    if not any("NVCC_APPEND_FLAGS" in command for command in advice.help):
        return (), ()
    return advice.help, (
        f"mamba-ssm calls causal-conv1d where that is installed, whose -gencode list has nothing "
        f"for {numbered(gpu)} either: it is built again in the same way.",
    )


def numbered(gpu: Gpu) -> str:
    """``8.6``."""
    return capability_text(gpu.capability)
