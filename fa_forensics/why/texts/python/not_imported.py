"""A package whose module for a GPU did not come when it was imported, for whichever reason."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import gpus_of, package_in, raw_python
from fa_forensics.why.texts.gpu.gpu_refusals import TORCH_ARCHS
from fa_forensics.why.texts.gpu.sage_text import PACKAGE, build_notes, served_by


def not_imported(seen: Seen) -> Answer:
    """``SM89 kernel is not available``: the flag of an import that may have failed for any reason.

    SageAttention (core.py) imports each of its modules in a try that catches everything, and
    takes the one for 8.9 on 12.0 too.
    """
    package, flag = package_in(seen), seen.mention.detail["flag"]
    arch = f"sm_{flag}"
    row = row_of(package) if package else None
    name = package or "the package"
    cause = (
        f"When it was imported, {name} tried to load its module for {arch} and did not get it. "
        "Either the build left it out, or the file is there and does not load, most often because "
        "it was built for another torch; the message hides which. The first command says so."
    )
    module = ""
    if row is not None:
        modules = [str(one) for one in row["modules"] if str(one).endswith(f"sm{flag}")]  # type: ignore[attr-defined]
        module = f"{row['import']}.{modules[0]}" if modules else str(row["import"])
    gpu = next(iter(gpus_of(seen)[:1]), None) if package == PACKAGE else None
    cause += served_by(gpu, flag) if gpu is not None else ""
    helps = [f"{seen.python} -c 'import torch, {module}'"] if module else []
    helps += [f"fa-forensics inspect {package or '/path/to/the/extension.so'}"]
    if package and row is not None and row["source_build"]:
        helps.append(f"{seen.pip} uninstall -y {package}")
        helps.append(rebuild_command(raw_python(seen), package, "", row))
    helps.append(f"{seen.python} {TORCH_ARCHS}")
    notes = [
        *(build_notes(gpu) if gpu is not None else ()),
        "The name of the module does not say that the GPU has to be of that capability: newer "
        "GPUs are served by modules that are named after an older one.",
        "After a change of torch it has to be built again for the new one, with the old copy "
        "(pip uninstall) and the old build directory out of the way (rm -rf build, in a source "
        "directory).",
    ]
    return seen.answer(
        "gpu-arch", "FA504", cause, owner=package, direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def feature_left_out(seen: Seen) -> Answer:
    """Words of FlashAttention where its build was told to leave something out."""
    package = package_in(seen) or "flash-attn"
    feature = seen.mention.detail.get("feature", "").strip()
    cause = (
        f'{package} is loaded and runs on this GPU, and its build left out "{feature}": a setting '
        "of the build (FLASH_ATTENTION_DISABLE_..., FLASHATTENTION_DISABLE_...) does so. Neither "
        "torch nor the driver nor the GPU plays a part."
    )
    return seen.answer(
        "gpu-arch", "FA507", cause, owner=package, direction="none", confidence="high",
        help=(f"{seen.pip} show {package}", "env | grep -i FLASH_\\?ATTENTION_DISABLE"),
        notes=(
            "A wheel of somebody else, or a copy that another package brings, may be built for "
            "inference alone. A build without that setting, or the project's own wheel, has it.",
        ),
    )  # fmt: skip


def triton_without_libcuda(seen: Seen) -> Answer:
    """Triton's ``libcuda.so cannot found!``: triton/backends/nvidia/driver.py, libcuda_dirs."""
    cause = (
        "Triton compiles a small file of its own against the driver's library when it starts, and "
        "ldconfig lists no libcuda.so.1 that it can link with: the process has no NVIDIA driver (a "
        "container without --gpus, a machine without GPU), or the driver's directory is none that "
        "ldconfig knows (WSL, NixOS, a driver handed in by hand)."
    )
    return seen.answer(
        "gpu-driver", "FA209", cause, owner="cuda-driver", direction="none", confidence="medium",
        help=("ldconfig -p | grep libcuda.so", "nvidia-smi",
              "ls /usr/lib/wsl/lib/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1"),
        notes=(
            "Where the library is there, TRITON_LIBCUDA_PATH names its directory, as "
            "/usr/lib/wsl/lib under WSL; releases of Triton from before that look for a "
            "libcuda.so without a number, which a newer Triton does not need.",
            "A container has the driver's library from the host alone, through NVIDIA's container "
            "toolkit: docker run --gpus all (with --runtime=nvidia where the toolkit is set up "
            "so). Where nvidia-smi works in it, ldconfig, run there as root, lists what was handed "
            "in; Triton before 3.0 also wants the plain name libcuda.so in that directory, the "
            "link that the driver's own installer makes beside libcuda.so.1.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "feature-left-out": feature_left_out,
    "triton-no-libcuda": triton_without_libcuda,
}
