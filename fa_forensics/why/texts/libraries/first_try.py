"""torch's first try to load a CUDA library, after which it looks for NVIDIA's wheels itself."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import major_of, there_already, torch_again
from fa_forensics.why.texts.libraries.inside_torch import has_cuda_inside
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel, wheels_on_path


def of_first_try(seen: Seen, soname: str, owner: str | None, wheel: str) -> Answer:
    """The message of ctypes.CDLL in torch/__init__.py, where torch and the wheels lie apart.

    torch since 2.0.0 takes it as the sign to look through sys.path, and raises another
    exception where it finds nothing.
    """
    cuda = major_of(wheel)
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part."
    )
    number = re.search(r"\.so\.(\d{1,2})", soname)
    if number is not None and number[1] != cuda:
        cause += (
            f" {soname} is the one of CUDA {cuda}: this library has numbers of its own, and a CUDA "
            f"{number[1]} does not bring it."
        )
    release = (seen.torch or "").partition("+")[0]
    if release == _WITH_CUFILE:
        return _looks_for_cufile(seen, cause, owner, wheel)
    cause += (
        " The line is of torch's first try, which asks the loader alone. torch since 2.0.0 then "
        f"looks for NVIDIA's wheels in all directories of packages, so that {wheel} in lib beside "
        "a torch in lib64 would be found: where torch does not start, that wheel or another one "
        "of NVIDIA's is not installed for this Python, or not whole. The exception after this "
        "one names what was looked for, and where."
    )
    again = f"{seen.pip} install --force-reinstall --no-cache-dir torch"
    if re.fullmatch(r"\d+\.\d+\.\d+", release):
        again = torch_again(seen, release)
    word = re.split(r"[._]", soname.removeprefix("lib"))[0]
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
        help=(
            f"{seen.pip} show -f {wheel} | grep -E '^Location|lib{word}'",
            f"{seen.pip} list | grep -iE '^(torch|nvidia)'; {seen.pip} check | grep -i torch",
            again,
            wheels_on_path(seen.python, folder_of_wheel(wheel)),
        ),
        notes=(
            "Where the first command shows nothing, the third installs torch with all its wheels "
            "of NVIDIA; in a container the image is built again with that step, without --no-deps "
            "and from the index that torch itself comes from.",
            "Where it shows the library, another wheel is the one that is missing (the second "
            "command), or this torch is older than 2.0.0: then the last command puts the library "
            "where the loader looks.",
            *(() if release else (_OF_250,)),
            *there_already(seen),
        ),
    )  # fmt: skip


#: torch/__init__.py of 2.5.0 looks for libcufile.so too (pytorch issue 138324); 2.5.1 does not.
_WITH_CUFILE = "2.5.0"
_OF_250 = (
    "Where torch is 2.5.0 and lies in lib64 apart from the wheels, they may all be whole: that "
    "release looks for cuFile too, which none of its wheels brings, and ends there. torch 2.5.1 or "
    "2.4.1, or a virtual environment, is the way out of that."
)
#: The wheels that torch 2.5.0 loads, in the order in which one needs another.
_FOLDERS = (
    "cuda_runtime", "cuda_nvrtc", "cuda_cupti", "nvjitlink", "cublas", "cudnn", "cufft", "curand",
    "cusparse", "cusolver", "nccl", "nvtx",
)  # fmt: skip


def _looks_for_cufile(seen: Seen, cause: str, owner: str | None, wheel: str) -> Answer:
    """torch 2.5.0 apart from its wheels: it ends where it looks for a library that none brings."""
    cause += (
        " The line is of torch's first try, which asks the loader alone. torch 2.5.0 then looks "
        "for NVIDIA's wheels in all directories of packages, and for cuFile too, which none of its "
        "wheels brings: with torch in lib64 and the wheels in lib (pip as root on RHEL, Alma, "
        "Rocky, Amazon Linux) it ends there, though all wheels are whole. torch 2.5.1 does not "
        f"look for it. Where torch and the wheels lie in one directory, {wheel} is not installed "
        "for this Python, or not whole."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
        help=(
            f"{seen.pip} show -f torch {wheel} | grep -E '^(Name|Version|Location)'",
            torch_again(seen, "2.5.1"),
            "python3 -m venv ENV && ENV/bin/python -m pip install torch",
            wheels_on_path(seen.python, *_FOLDERS),
        ),
        notes=(
            "In a virtual environment lib64 is lib, so that torch finds the wheels beside itself. "
            "torchvision and torchaudio are to be of torch's release: 0.20.1 and 2.5.1.",
            "The command with export serves where torch 2.5.0 has to stay.",
            *there_already(seen),
        ),
    )  # fmt: skip


def of_torch_not_whole(seen: Seen, soname: str, owner: str | None) -> Answer | None:
    """The answer for a torch with CUDA inside, to which no wheel belongs; None for others."""
    if not has_cuda_inside(seen):
        return None
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part. "
        "That build of torch has CUDA's libraries inside, in torch/lib, and no wheel of NVIDIA's "
        "belongs to it: torch is not whole."
    )
    word = re.split(r"[._]", soname.removeprefix("lib"))[0]
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
        help=(
            f"{seen.pip} show -f torch | grep -E '^Location|lib{word}'",
            torch_again(seen, (seen.torch or "").partition("+")[0]),
        ),
        notes=there_already(seen),
    )  # fmt: skip
