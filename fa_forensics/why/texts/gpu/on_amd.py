"""A library of CUDA that is missed on a machine with an AMD GPU."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen

_SGL_KERNEL = (
    "The sgl-kernel of the package index is for CUDA alone: for ROCm it is built in the directory "
    "sgl-kernel of SGLang's source (python setup_rocm.py install), or taken with SGLang's image "
    "for ROCm.",
)


def cuda_build_on_amd(seen: Seen, soname: str, owner: str | None, who: str) -> Answer:
    """The text tells of an AMD GPU, and not of a torch for ROCm: both have to be builds for it."""
    cause = (
        f"{soname} is of CUDA, for NVIDIA GPUs, and the text is of an AMD GPU: {who} is a build "
        "for NVIDIA, as the package index has it, and cannot run there. Nothing of CUDA is to be "
        "installed or copied, and no driver of NVIDIA is missing: that package has to be a build "
        "for ROCm, and torch one too."
    )
    return seen.answer(
        "rocm", "FA202", cause, owner=owner, direction="none", confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
              "rocminfo | grep -m1 gfx; ls -d /opt/rocm*"),
        notes=(
            *(_SGL_KERNEL if "sgl-kernel" in who else ()),
            "None in the first line is a torch that is not built for ROCm: one from torch's own "
            "index (.../whl/rocmX.Y) comes first.",
            "Where the project has no wheels for ROCm under a name or an index of their own, it is "
            "built from its source on that torch, if it serves AMD GPUs at all.",
        ),
    )  # fmt: skip
