"""Answers about AMD GPUs: no code for the gfx target, no device, and HIP's other errors."""

from __future__ import annotations

import re

from fa_forensics.facts.amd_gpus import amd_family, amd_target
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in

KIND = "rocm"

_GFX = re.compile(r"\bgfx(?:9\d[0-9a-f]|1[0-2]\d\d|8\d\d)\b")
_LIST = "-c 'import torch; print(torch.version.hip, torch.cuda.get_arch_list())'"


def target_of(seen: Seen) -> str | None:
    """The gfx target that the text names, by itself or by the GPU's name."""
    detail = seen.mention.detail
    for key in ("target", "target2", "sm"):
        if detail.get(key, "").startswith("gfx"):
            return detail[key]
    found = _GFX.search(seen.mention.line) or _GFX.search(seen.versions.get("gfx", ""))
    if found is not None:
        return found[0]
    name = seen.versions.get("amd_gpu")
    return amd_target(name) if name else None


def no_code(seen: Seen) -> Answer:
    """``HIP error: invalid device function``, ``Cannot read TensileLibrary.dat``."""
    target, library = target_of(seen), seen.mention.detail.get("library_of")
    which = f"this GPU ({target})" if target else "this AMD GPU's gfx target"
    help_ = ["rocminfo | grep -m1 gfx", f"{seen.python} {_LIST}"]
    notes = []
    if library == "rocblas":
        owner, package = "rocblas", None
        cause = (
            f"rocBLAS, here the copy that torch brings, has no kernels (Tensile library) for "
            f"{which}: the build of ROCm leaves that target out. The file is not damaged."
        )
        notes.append(
            "A torch for a newer ROCm may have it. ROCBLAS_TENSILE_LIBPATH names the directory of "
            "another rocBLAS of the same release that has the target."
        )
    elif library == "hipblaslt":
        owner, package = "hipblaslt", None
        cause = (
            f"hipBLASLt has no kernels for {which}. torch goes on with hipBLAS: it is a warning, "
            "unless the program asked for hipBLASLt."
        )
        notes.append("TORCH_BLAS_PREFER_HIPBLASLT=0 keeps torch from trying.")
    else:
        owner, package = "hip", package_in(seen)
        name = package or "the extension whose kernel was started, or torch itself,"
        cause = (
            f"There is no code for {which}: {name} was built for other targets. Machine code of "
            "AMD GPUs is for one target, and there is no PTX to fall back on."
        )
        notes.append(
            "The second command lists torch's own targets: where the GPU's is among them, it is "
            "the extension that lacks it, and it has to be built again."
        )
        if target:
            notes.append(
                f"A build from source takes PYTORCH_ROCM_ARCH={target} in its environment."
            )
        else:
            notes.append("A build from source takes PYTORCH_ROCM_ARCH with the target's name.")
        file = seen.mention.file or package
        if file:
            help_.append(f"fa-forensics inspect {file}")
    notes += _override(target)
    return seen.answer(
        KIND, "FA504", cause, owner=package or owner, direction="none",
        confidence="high" if library else "medium", help=tuple(help_), notes=tuple(notes),
    )  # fmt: skip


def _override(target: str | None) -> list[str]:
    family = amd_family(target) if target else None
    if family is None or target == family.runs_as:
        return []
    return [
        f"{target} shares its instructions with {family.runs_as}, which most builds have: "
        f"HSA_OVERRIDE_GFX_VERSION={family.version} makes it pass for that. AMD does not support "
        "it."
    ]


def unknown_target(seen: Seen) -> Answer:
    """clang of ROCm does not know a gfx target."""
    target = target_of(seen)
    cause = (
        f"The compiler of this ROCm does not know {target or 'the target that was asked for'}: its "
        "release is older than the GPU, or has dropped it."
    )
    return seen.answer(
        KIND, "FA883", cause, owner="hip", direction="none", confidence="high",
        help=("hipcc --version", "rocminfo | grep -m1 gfx"),
        notes=("The list of targets comes from PYTORCH_ROCM_ARCH, or from the GPUs that the build "
               "sees.",),
    )  # fmt: skip


def no_device(seen: Seen) -> Answer:
    """``No HIP GPUs are available``, ``/dev/kfd: Permission denied``."""
    cause = (
        "ROCm finds no GPU that this process may use: the amdgpu driver's device files (/dev/kfd, "
        "/dev/dri) are not there or not open to this user, the GPU is hidden "
        "(HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES), or this ROCm does not serve it."
    )
    return seen.answer(
        KIND, "FA209", cause, owner="hip", direction="none", confidence="medium",
        help=("ls -l /dev/kfd /dev/dri; id", "rocminfo | head -40",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'"),
        notes=(
            "The user has to be in the groups render and video; a container needs "
            "--device=/dev/kfd --device=/dev/dri --group-add video.",
            "None in the last line is a torch that is not built for ROCm.",
        ),
    )  # fmt: skip


def fault(seen: Seen) -> Answer:
    """``Memory access fault by GPU node-1 on address ...``."""
    cause = (
        "A kernel on the AMD GPU touched memory that is not its own. That is a fault of a kernel, "
        "or code for another target: HSA_OVERRIDE_GFX_VERSION set to a family that the GPU is not "
        "of, or a library built for another one."
    )
    return seen.answer(
        KIND, "FA509", cause, owner="hip", direction="none", confidence="low",
        help=("echo $HSA_OVERRIDE_GFX_VERSION; rocminfo | grep -m1 gfx", f"{seen.python} {_LIST}"),
        notes=("AMD_SERIALIZE_KERNEL=3 makes the traceback point at the kernel that did it.",),
    )  # fmt: skip


def hip_error(seen: Seen) -> Answer:
    """HIP's errors: those that are about code, and those that say nothing of it."""
    if seen.mention.detail.get("sort") == "code":
        return no_code(seen)
    return seen.answer(
        KIND, "FA899",
        "The HIP runtime (ROCm) reports an error of its own; the text does not say more.",
        owner="hip", direction="none", confidence="low",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {_LIST}"),
        notes=(
            "The error may come from an earlier call: AMD_SERIALIZE_KERNEL=3 makes the traceback "
            "point at the right one.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "rocm-unknown-target": unknown_target,
    "rocm-no-device": no_device,
    "rocm-fault": fault,
    "hip-error": hip_error,
}
