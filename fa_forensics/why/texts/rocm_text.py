"""Answers about AMD GPUs: no code for the gfx target, no device, and HIP's other errors."""

from __future__ import annotations

import re

from fa_forensics.facts.amd_gpus import amd_family, amd_target
from fa_forensics.facts.owner import title_of
from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.texts.needing import needing

KIND = "rocm"

_GFX = re.compile(r"\bgfx(?:9\d[0-9a-f]|1[0-2]\d\d|8\d\d)\b")
_LIST = "-c 'import torch; print(torch.version.hip, torch.cuda.get_arch_list())'"


def about_rocm(seen: Seen) -> bool:
    """Whether the text is about torch for ROCm: it says so, or names an AMD GPU and no other."""
    versions = seen.versions
    if "rocm" in (seen.torch or "") or "rocm" in versions:
        return "+cu" not in (seen.torch or "")
    return ("gfx" in versions or "amd_gpu" in versions) and "gpu" not in versions


def is_torch_itself(seen: Seen) -> bool:
    """Whether torch's own binary is what does not load."""
    imported, file = seen.mention.detail.get("import", ""), seen.mention.file or ""
    return imported == "torch._C" or "/torch/lib/" in file or "/torch/_C." in file


def cuda_build_on_rocm(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of CUDA, or of torch for CUDA, where torch is built for ROCm."""
    who = needing(seen)
    cause = (
        f"{soname} is of CUDA, and this torch is a build for ROCm, which has none: {who} is a "
        "build for NVIDIA GPUs. Nothing of CUDA is to be installed or copied; that extension has "
        "to be a build for ROCm, as torch is."
    )
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'"
    look = f"fa-forensics env --python {seen.python}" if not seen.elsewhere else "fa-forensics env"
    return seen.answer(
        KIND, "FA202", cause, owner=owner, direction="none", confidence="high",
        help=(ask, look),
        notes=(
            "torchvision and torchaudio come from the same index as torch (.../whl/rocmX.Y); the "
            "default index has them for CUDA. Other packages are built from source on this torch.",
        ),
    )  # fmt: skip


def torch_of_rocm(seen: Seen, soname: str, owner: str) -> Answer:
    """A library of ROCm that torch's own binary needs."""
    cause = (
        f"{soname} belongs to {title_of(owner)}, and it is torch itself that needs it: this torch "
        "is a build for AMD GPUs that has ROCm's libraries outside of itself, and the loader does "
        "not find that one. No NVIDIA package has it."
    )
    from_pip = "rocm_sdk" in seen.versions
    if from_pip:
        cause += (
            " The text names ROCm's packages for pip: these put their libraries into "
            "site-packages/_rocm_sdk_*/lib, where the loader does not look unless torch loads them "
            "from there first, as wheels made for these packages do."
        )
    else:
        cause += (
            " Either it is not installed, or it is of another ROCm release, or it lies where the "
            "loader does not look, as the libraries of ROCm's packages for pip do "
            "(site-packages/_rocm_sdk_*/lib)."
        )
    stem = soname.split(".so")[0]
    site = f"{seen.python} -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"
    by_pip = f"find \"$({site})\" -path '*_rocm_sdk_*' -name '{stem}.so*'"
    system = (
        "ls -d /opt/rocm*; cat /opt/rocm*/.info/version",
        f"find /opt/rocm*/ -name '{stem}.so*'",
    )
    helps = (by_pip, *system) if from_pip else (*system, by_pip)
    return seen.answer(
        KIND, "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(*helps, f"{seen.pip} list | grep -iE 'torch|rocm'"),
        notes=(
            *by_its_number(soname),
            "Where a command finds it under that very name: LD_LIBRARY_PATH has to name its "
            "directory, and those of the ROCm libraries that it needs itself (of pip's packages "
            "_rocm_sdk_core/lib and _rocm_sdk_libraries_*/lib), before Python starts.",
            "Where none does: ROCm's package with that library, of the release that torch names in "
            "its version, or a wheel of torch that brings ROCm's libraries or asks pip for them.",
        ),
    )  # fmt: skip


def release_of_soname(soname: str) -> str | None:
    """The ROCm releases that have a library under this number: "5.x"."""
    names: dict[str, str] = read_table("rocm_sonames.json")["names"]
    return names.get(soname)


def by_its_number(soname: str) -> tuple[str, ...]:
    """What the number in the name tells, as a note."""
    releases = release_of_soname(soname)
    if releases is None:
        return ()
    other = (
        " Newer ones have libamdhip64.so in its place."
        if not soname.startswith("libamdhip64")
        else ""
    )
    return (
        f"{soname} is the HIP runtime of ROCm {releases}, and what asks for it was built with that "
        f"ROCm.{other} Another number is another interface: a build for the ROCm that is "
        "installed, or that ROCm, is the way out, and no link from one name to the other.",
    )


def rccl(seen: Seen, name: str, demangled: str | None) -> Answer:
    """A name of NCCL's that a build for ROCm lacks: there it comes from RCCL."""
    file = (seen.mention.file or "").rsplit("/", 1)[-1] or "the file"
    cause = (
        f"On ROCm the names of NCCL come from RCCL (librccl.so): {file} was built with headers "
        f"that have {name}, and the RCCL that is loaded is older than them, or none is linked. No "
        "NVIDIA package plays a part."
    )
    return seen.answer(
        KIND, "FA204", cause, symbol=name, demangled=demangled, owner="rccl", direction="unknown",
        confidence="high",
        help=("ls -l /opt/rocm*/lib/librccl.so*",
              *((f"readelf -d {seen.mention.file} | grep NEEDED",) if seen.mention.file else ())),
        notes=("A torch of one's own build has to be built and run with one RCCL, or with "
               "USE_NCCL=0 without it.",),
    )  # fmt: skip


def needs_rccl(seen: Seen) -> bool:
    """Whether a name of NCCL's is RCCL's, by the file that lacks it or by the text."""
    return "_hip" in (seen.mention.file or "") or about_rocm(seen)


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
        own = "/torch/lib/" in seen.mention.line
        copy = "The rocBLAS that torch brings" if own else "The rocBLAS of this system's ROCm"
        cause = (
            f"{copy} has no kernels (Tensile library) for {which}: that build of ROCm leaves the "
            "target out. The file is not damaged."
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


def no_toolkit(seen: Seen) -> Answer:
    """A build for AMD GPUs that finds no ROCm to build with."""
    cause = (
        "A build for AMD GPUs needs ROCm's compiler, headers and device libraries, and does not "
        "find them: torch's wheel brings the libraries that run, not those."
    )
    return seen.answer(
        KIND, "FA883", cause, owner="hip", direction="none", confidence="high",
        help=("ls -d /opt/rocm*; command -v hipcc",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'"),
        notes=("ROCM_PATH and ROCM_HOME name the directory; its release should be that of torch.",),
    )  # fmt: skip


def on_amd(seen: Seen) -> bool:
    """Whether the text is of a machine with an AMD GPU, and its torch is not one for ROCm."""
    versions = seen.versions
    amd = "gfx" in versions or "amd_gpu" in versions or "rocm" in versions
    return amd and "gpu" not in versions and "rocm" not in (seen.torch or "")


def not_for_rocm(seen: Seen) -> Answer:
    """torch looks for NVIDIA's driver, or for no GPU at all, on a machine with an AMD GPU."""
    cause = (
        "The machine has an AMD GPU, and this torch is not built for ROCm: the default index has "
        "torch for NVIDIA GPUs or for the CPU. A torch from torch's own index for ROCm takes its "
        "place; no driver of NVIDIA is missing."
    )
    return seen.answer(
        KIND, "FA601", cause, owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
              "rocminfo | grep -m1 gfx"),
        notes=("None in the first line is a torch that is not built for ROCm.",),
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


def _not_started(seen: Seen) -> Answer:
    """``shared object initialization failed``: the runtime does not take the code object."""
    torch, rocm = seen.torch or "", seen.versions.get("rocm", "")
    own = re.search(r"\+rocm(\d{1,2}\.\d{1,2})", torch)
    cause = (
        "The HIP runtime found GPU code and could not load it. Most often the code was compiled by "
        "a newer ROCm than the runtime that is loaded: torch's wheels bring a HIP runtime of their "
        "own, and an extension is compiled with the system's ROCm."
    )
    differ = own is not None and bool(rocm) and not rocm.startswith(own[1])
    if own is not None and differ:
        cause += f" Here torch brings that of ROCm {own[1]}, and the text names ROCm {rocm}."
    package = package_in(seen)
    return seen.answer(
        KIND, "FA504", cause, owner=package or "hip", direction="none",
        confidence="medium" if differ else "low",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
            "cat /opt/rocm*/.info/version; hipcc --version",
            "AMD_LOG_LEVEL=3 python YOUR_PROGRAM.py 2>&1 | grep -iE 'code object|error'",
        ),
        notes=(
            "Two ways out: a torch for the ROCm that is installed, or the extension compiled with "
            "the ROCm that torch was built with.",
            "Code for another gfx target says so in other words as a rule "
            "(hipErrorInvalidDeviceFunction, hipErrorNoBinaryForGpu).",
        ),
    )  # fmt: skip


def hip_error(seen: Seen) -> Answer:
    """HIP's errors: those that are about code, and those that say nothing of it."""
    if seen.mention.detail.get("sort") == "not-started":
        return _not_started(seen)
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
    "rocm-no-toolkit": no_toolkit,
    "rocm-fault": fault,
    "hip-error": hip_error,
}
