"""NVRTC's second library, which it opens by the name of its own CUDA release."""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.cuda_names import first_torch_with
from fa_forensics.facts.python_api import partner_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import cuda_of_index, torch_again, wheel_of
from fa_forensics.why.texts.libraries.inside_torch import has_cuda_inside
from fa_forensics.why.texts.libraries.wheels_path import toolkit_on_path, torch_lib_on_path
from fa_forensics.why.torch_names.history import order_key


def nvrtc_builtins(seen: Seen) -> Answer:
    """``failed to open libnvrtc-builtins.so.11.1``."""
    soname = (seen.mention.library or "libnvrtc-builtins.so").rsplit("/", 1)[-1]
    version = re.search(r"\.so\.(\d{1,2})\.(\d{1,2})", soname)
    number = f"{version[1]}.{version[2]}" if version else ""
    of = f" ({number})" if number else ""
    cause = (
        f"NVRTC, CUDA's run-time compiler, opens {soname} by that very name at run time, when it "
        "first compiles a kernel, not at import torch, so it stands in no list of needed "
        "libraries. It fits "
        f"the libnvrtc of exactly its own version{of}, and lies beside it: the libnvrtc that was "
        "loaded is not the one whose builtins are on the loader's path, or its wheel is not whole."
    )
    hashed = has_cuda_inside(seen, number) and _is_hashed(seen)
    if hashed:
        cause = (
            f"NVRTC, CUDA's run-time compiler, opens {soname} by that very name when it first "
            f"compiles a kernel. torch {seen.torch} has CUDA inside, and its libnvrtc-builtins "
            "most likely under a name with a hash in it (libnvrtc-builtins-2dc4bf68.so.11.8 in "
            "2.0.0+cu118), which NVRTC does not look for: installing the same build again changes "
            "nothing."
        )
    if number:
        cause += (
            f" The libnvrtc that asks is of CUDA {number}: most often that of a torch for CUDA "
            f"{number} (+{cuda_label(number)}). Another CUDA release on the system does not bring "
            "that name, and upgrading it does not help."
        )
    wheel = _wheel(seen, version[1], version[2]) if version else None
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    commands = [ask, "find / -name 'libnvrtc*' -not -path '/proc/*' 2>/dev/null"]
    if wheel:
        commands.insert(0, f'{seen.pip} install --force-reinstall "{wheel}=={number}.*"')
    elif seen.torch and not hashed:
        commands.insert(0, _torch_again(seen, number))
    if number:
        commands += [toolkit_on_path(number)]
        commands += [] if hashed else [torch_lib_on_path(seen.python)]
    return seen.answer(
        "missing-library", "FA202", cause, owner="nvrtc", direction=NONE, confidence="medium",
        help=tuple(commands), notes=(_OF_TOOLKIT, _notes(number)[-1]) if hashed else _notes(number),
    )  # fmt: skip


#: Said of a torch whose own builtins are not found by their name.
_OF_TOOLKIT = (
    "The command with export is for a machine with a CUDA toolkit of that very release (NVIDIA's "
    "package cuda-nvrtc of it is enough). The other way is a newer release of torch: from 2.2 on "
    "its wheels take NVIDIA's, which has the plain name."
)


def _is_hashed(seen: Seen) -> bool:
    """Whether torch's packing put a hash into the name (pytorch/pytorch#99781: 2.0.0+cu118)."""
    release = (seen.torch or "").partition("+")[0]
    return order_key("1.13.0") <= order_key(release) <= order_key("2.0.0")


def _torch_again(seen: Seen, number: str) -> str:
    """Install the same build of torch again: plain releases of PyPI are for another CUDA."""
    release = (seen.torch or "").partition("+")[0]
    if not number or _in_wheels(number):
        return torch_again(seen, release, number)
    label = cuda_label(number)
    return (
        f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}+{label}" '
        "-f https://download.pytorch.org/whl/torch_stable.html"
    )


def _wheel(seen: Seen, major: str, minor: str) -> str | None:
    """The wheel that the libnvrtc of a CUDA release comes with, where torch takes it from one."""
    number = f"{major}.{minor}"
    of_index = cuda_of_index(seen, (seen.torch or "").partition("+")[0])
    of_torch = "" if of_index == number else number
    if not _in_wheels(number) or has_cuda_inside(seen, of_torch):
        return None
    # NVRTC has kept one soname since CUDA 11.2, and one for each major version since 12.
    soname = "libnvrtc.so.11.2" if major == "11" else f"libnvrtc.so.{major}"
    return wheel_of(seen, soname, major)


def _in_wheels(number: str) -> bool:
    """Whether NVIDIA's wheels have that CUDA release: they begin with 11.7."""
    return order_key(f"{number}.0") >= order_key("11.7.0")


def _notes(number: str) -> tuple[str, ...]:
    """Which directory goes first, and which other torch there is."""
    check = (
        "Another version of the builtins under that name makes NVRTC misbehave: the number is a "
        "check."
    )
    if not number:
        return (check,)
    ways = (
        f"Where find shows {number}'s builtins, their directory goes on LD_LIBRARY_PATH before "
        f"the program starts: that of a CUDA {number} toolkit, of the wheel, or torch/lib (the "
        "export commands). Where a LD_LIBRARY_PATH that is set brings the libnvrtc of another "
        "toolkit, that directory has to leave it instead."
    )
    first = first_torch_with(number)
    if first is None or _in_wheels(number):
        return (ways, check)
    other = (
        f"Where no such file is there, another build of torch is the way out, for {number} again "
        f"(torch {first} was the first of these) or for a newer CUDA, as cu113 and newer: each "
        "brings the builtins of its own release."
    )
    return (ways, other, check)


def nvrtc_of_cudnn(seen: Seen, soname: str) -> Answer | None:
    """cuDNN 8 in PyTorch's own builds for CUDA 11.8 opens NVRTC by its bare name; None for others.

    pytorch/pytorch#97041 is on torch 2.0.0+cu118, with a workaround in 2.0.1 (#99451).
    """
    opener = (seen.mention.file or "").rsplit("/", 1)[-1]
    label = seen.versions.get("torch", "").partition("+")[2]
    if soname != "libnvrtc.so" or not opener.startswith("libcudnn_") or label != "cu118":
        return None
    torch = (seen.torch or "").partition("+")[0]
    if torch != "2.0.0":
        return None
    cause = (
        f"{opener} opens NVRTC by the name {soname}, which only a CUDA toolkit has: torch {torch}"
        f"+{label} brings the library in torch/lib, under a name with a hash, where that name is "
        "not found. It is a known fault of that very build (pytorch/pytorch#97041), and torch "
        "2.0.1 has a workaround for it. cuDNN itself is there."
    )
    partners = "".join(
        f" {name}=={release}"
        for name in ("torchvision", "torchaudio")
        if f"pkg:{name}" in seen.versions and (release := partner_of(name, "2.0.1"))
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="nvrtc", direction=NONE, confidence="medium",
        help=(
            f"{seen.pip} install torch==2.0.1{partners}{index_option(label)}",
            "find / -name 'libnvrtc.so*' -not -path '/proc/*' 2>/dev/null",
            toolkit_on_path("11.8"),
        ),
        notes=(
            "The command with export is for a machine that has the CUDA 11.8 toolkit, or its "
            "package cuda-nvrtc-dev-11-8: another toolkit's library of that name is not to be "
            "used. What else was built on torch (torchvision, torchaudio) goes with torch 2.0.1.",
        ),
    )  # fmt: skip


def fault_of_2_0(seen: Seen, soname: str) -> tuple[str, ...]:
    """The fault of one build, where cuDNN 8 opens NVRTC and no torch is named."""
    opener = (seen.mention.file or "").rsplit("/", 1)[-1]
    if soname != "libnvrtc.so" or seen.torch or not opener.endswith(".so.8"):
        return ()
    return (
        "Where torch is 2.0.0+cu118, it is a known fault of that very build "
        "(pytorch/pytorch#97041), and torch 2.0.1 has a workaround for it: pip install torch==2.0.1"
        " --index-url https://download.pytorch.org/whl/cu118 puts it right without a toolkit.",
    )
