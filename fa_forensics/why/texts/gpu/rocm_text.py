"""Answers about AMD GPUs: no code for the gfx target, no device, and HIP's other errors."""

from __future__ import annotations

import re

from fa_forensics.facts.owner import title_of
from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import words_of
from fa_forensics.why.texts.gpu.cuda_alike import amd_alone
from fa_forensics.why.texts.gpu.on_amd import cuda_build_on_amd
from fa_forensics.why.texts.gpu.rocm_code import LIST, no_code, not_started, override_for
from fa_forensics.why.texts.libraries.needing import needing
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path

KIND = "rocm"


def about_rocm(seen: Seen) -> bool:
    """Whether the text is about torch for ROCm: it says so, or names an AMD GPU and no other."""
    versions = seen.versions
    if "rocm" in (seen.torch or "") or "rocm" in versions:
        return "+cu" not in (seen.torch or "")
    return amd_alone(seen)


def is_torch_itself(seen: Seen) -> bool:
    """Whether torch's own binary is what does not load."""
    imported, file = seen.mention.detail.get("import", ""), seen.mention.file or ""
    return imported == "torch._C" or "/torch/lib/" in file or "/torch/_C." in file


def cuda_build_on_rocm(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of CUDA, or of torch for CUDA, where torch is built for ROCm."""
    who = needing(seen)
    if "rocm" not in (seen.torch or "") and "rocm" not in seen.versions:
        return cuda_build_on_amd(seen, soname, owner, who)
    cause = (
        f"{soname} is of CUDA, and this torch is a build for ROCm, which has none: {who} is a "
        "build for NVIDIA GPUs. Nothing of CUDA is to be installed or copied; that extension has "
        "to be a build for ROCm, as torch is."
    )
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'"
    found = re.match(r"rocm\d\.\d", (seen.torch or "").partition("+")[2])
    index = found[0] if found else "rocmX.Y"
    loaded = () if "load_library" not in words_of(seen) else (
        "The frame above that of torch/_ops.py, which called load_library, is in the package "
        "that the file is of.",
    )  # fmt: skip
    look = f"fa-forensics env --python {seen.python}" if not seen.elsewhere else "fa-forensics env"
    return seen.answer(
        KIND, "FA202", cause, owner=owner, direction="none", confidence="high",
        help=(ask, look),
        notes=(
            *loaded,
            f"torchvision and torchaudio come from the same index as torch (.../whl/{index}); the "
            "default index has them for CUDA. Other packages are built from source on this torch.",
        ),
    )  # fmt: skip


def _of_torch(seen: Seen, soname: str, owner: str) -> tuple[str, bool]:
    """(who needs a library of ROCm, as a sentence; whether it is torch itself, a nightly)."""
    if not is_torch_itself(seen):
        return (
            f"{soname} belongs to {title_of(owner)}. The text does not say what needs it: most "
            "likely torch itself, in a build for AMD GPUs, and else an extension that was built "
            "for them. No NVIDIA package has it."
        ), False
    if re.search(r"\.dev\d{8}\+rocm", seen.torch or ""):
        return (
            f"{soname} belongs to {title_of(owner)}, and it is torch itself that needs it: torch "
            f"{seen.torch} is a nightly for AMD GPUs that does not bring that library, and the "
            "loader does not find it elsewhere. No NVIDIA package has it."
        ), True
    return (
        f"{soname} belongs to {title_of(owner)}, and it is torch itself that needs it: this torch "
        "is a build for AMD GPUs that has ROCm's libraries outside of itself, and the loader does "
        "not find that one. No NVIDIA package has it."
    ), False


_SYSDEPS = "rocm-sysdeps"
_OF_ONE_DATE = (
    "torch and ROCm's packages for pip (rocm-sdk-core, rocm-sdk-libraries-*) belong together: both "
    "come from one index, torch in the build that names that ROCm. A nightly of torch that does "
    "not load a library of these packages is at fault: another nightly of both is the way out."
)


def torch_of_rocm(seen: Seen, soname: str, owner: str) -> Answer:
    """A library of ROCm that torch's own binary needs."""
    cause, nightly = _of_torch(seen, soname, owner)
    from_pip = "rocm_sdk" in seen.versions or owner == _SYSDEPS
    if owner == _SYSDEPS:
        cause += (
            " It is in site-packages/_rocm_sdk_core/lib/rocm_sysdeps/lib, where the loader does "
            "not look unless torch loads it from there first, as wheels made for these packages "
            "do; a library of the system without rocm_sysdeps in its name is not the same."
        )
    elif from_pip:
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
    at_fault = (
        "Wheels of torch's own index bring ROCm's libraries in torch/lib: where one of these "
        "(a nightly, say) lacks a library that it needs, the wheel is at fault, and another "
        "nightly or the last release is the way out."
    )
    return seen.answer(
        KIND, "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(*helps, f"{seen.pip} list | grep -iE 'torch|rocm'"),
        notes=(
            *((_OF_ONE_DATE,) if from_pip else (at_fault,) if nightly else ()),
            *by_its_number(soname),
            "Where a command finds it under that very name: LD_LIBRARY_PATH has to name its "
            "directory, and those of the ROCm libraries that it needs itself (of pip's packages "
            "_rocm_sdk_core/lib and _rocm_sdk_libraries_*/lib), before Python starts.",
            "Where none does: ROCm's package with that library, of the release that torch names in "
            "its version, or a wheel of torch that brings ROCm's libraries or asks pip for them.",
            *(() if nightly or from_pip else (at_fault,)),
        ),
    )  # fmt: skip


def release_of_soname(soname: str) -> str | None:
    """The ROCm releases that have a library under this number: "5.x"."""
    names: dict[str, str] = read_table("rocm_sonames.json")["names"]
    return names.get(soname)


def by_its_number(soname: str) -> tuple[str, ...]:
    """What the name and the number in it tell, as a note."""
    if soname.startswith("librocprofiler-"):
        package = soname.split(".so")[0].removeprefix("lib").removesuffix("-roctx")
        return (
            f"ROCm's package with it for the system is {package}, of the very ROCm that torch "
            "names in its version.",
        )
    if soname.startswith("libhipfile.so"):
        return (
            "hipFile is in ROCm from 7.14 on, for pip in rocm-sdk-core: an older ROCm has none.",
        )
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


def other_release(seen: Seen, soname: str, who: str) -> str | None:
    """The cause where the text's torch is for another ROCm than the library is of."""
    releases, torch = release_of_soname(soname), seen.torch or ""
    found = re.search(r"\+rocm(\d{1,2})\.\d", torch)
    mine = found[1] if found else seen.versions.get("rocm", "").partition(".")[0]
    if releases is None or not mine or not re.match(r"\d{1,2}\.x", releases):
        return None
    if releases.startswith(f"{mine}."):
        return None
    here = f"torch {torch} is one for ROCm {mine}" if found else f"the text has ROCm {mine}"
    return (
        f"{soname} is the HIP runtime of ROCm {releases}: {who} was built for that ROCm, and "
        f"{here}, whose runtime has another number in its name. A build for ROCm {mine} has to "
        f"take its place: the project's wheel for this torch and ROCm {mine}, or one from source "
        "on this torch; or torch becomes one for "
        f"ROCm {releases}."
    )


#: Said of a library of torch's builds for ROCm, where nothing tells which GPU there is.
AMD_OR_NOT = (
    "Which of the two is wrong goes by the GPU. On an AMD GPU, where the build for ROCm was "
    "chosen: None in the first line means that torch has to become one for ROCm, as the second "
    "command gets it; its ROCm (X.Y) and its release are those that the extension's wheel names. "
    "On an NVIDIA GPU or none: the extension's build for CUDA or for the CPU. No system package of "
    "ROCm has that library."
)


def same_release(seen: Seen, soname: str, owner: str, who: str) -> Answer | None:
    """The ROCm that the text names has a library of this very number: a matter of the path."""
    releases, mine = release_of_soname(soname), seen.versions.get("rocm", "")
    major = mine.partition(".")[0]
    if releases is None or not major or releases != f"{major}.x" or "rocm" in (seen.torch or ""):
        return None
    stem = soname.split(".so")[0]
    cause = (
        f"{soname} is the HIP runtime (ROCm) of ROCm {releases}, and the text has ROCm {mine}, "
        f"whose library bears that very name: either it is not installed, or it lies where the "
        f"loader does not look, in /opt/rocm/lib or, up to ROCm 5, /opt/rocm/hip/lib. "
        f"{who[0].upper()}{who[1:]} was built for AMD GPUs, and nothing of NVIDIA's is missing."
    )
    return seen.answer(
        KIND, "FA202", cause, owner=owner, direction="none",
        confidence="high",
        help=(
            f"ls -l /opt/rocm*/lib/{stem}.so* /opt/rocm*/hip/lib/{stem}.so*",
            folder_on_path(seen.python, "/opt/rocm/lib", "/opt/rocm/hip/lib"),
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
        ),
        notes=(
            "Where the first command lists it, the second makes it found before Python starts; for "
            "good, its directory goes into a file in /etc/ld.so.conf.d, and ldconfig is run.",
            f"Where it lists none, the HIP runtime of ROCm {mine} is to be installed. A torch from "
            f"torch's own index for ROCm {major} (.../whl/rocm{major}.Y) brings a runtime of its "
            "own.",
        ),
    )  # fmt: skip


def _find_rccl(seen: Seen) -> str:
    """Look for RCCL beside torch, in the packages of ROCm for Python, and in a system's ROCm."""
    file = seen.mention.file or ""
    found = re.match(r"(/[\w./+@~-]{1,300}/(?:site|dist)-packages)/", file)
    site = found[1] if found is not None else ""
    places = " ".join((site, "/opt/rocm*")).strip()
    return f"find {places} -name 'librccl.so*' 2>/dev/null; {seen.pip} list | grep -iE 'rocm|torch'"


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
        help=(_find_rccl(seen),
              *((f"readelf -d {seen.mention.file} | grep NEEDED",) if seen.mention.file else ())),
        notes=("A torch of one's own build has to be built and run with one RCCL, or with "
               "USE_NCCL=0 without it.",),
    )  # fmt: skip


def needs_rccl(seen: Seen) -> bool:
    """Whether a name of NCCL's is RCCL's, by the file that lacks it or by the text."""
    return "_hip" in (seen.mention.file or "") or about_rocm(seen)


def on_amd(seen: Seen) -> bool:
    """Whether the text is of a machine with an AMD GPU, and its torch is not one for ROCm."""
    versions = seen.versions
    amd = amd_alone(seen) or ("rocm" in versions and not {"gpu", "gpus"} & versions.keys())
    return amd and "rocm" not in (seen.torch or "")


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
        help=("echo $HSA_OVERRIDE_GFX_VERSION; rocminfo | grep -m1 gfx", f"{seen.python} {LIST}"),
        notes=("AMD_SERIALIZE_KERNEL=3 makes the traceback point at the kernel that did it.",),
    )  # fmt: skip


def _miopen(seen: Seen) -> Answer:
    """``MIOpen(HIP): Error ...``, ``miopenStatusUnknownError``: the library of convolutions."""
    built = re.search(r"[Cc]ode object build failed|COMPILATION|\[Compile\]", seen.mention.line)
    cause = (
        "MIOpen, ROCm's library of convolutions, failed. It compiles kernels where it runs and "
        "keeps them: the message says no more. A target that this ROCm does not serve, kept "
        "kernels of another release, and a cache that cannot be written fit."
    )
    if built:
        cause = (
            "MIOpen, ROCm's library of convolutions, failed. It compiles kernels where it runs and "
            "keeps them: here the compiling failed, because this ROCm does not serve the GPU's gfx "
            "target, or because its compiler and headers are of another release or not there."
        )
    command = (
        (f"HSA_OVERRIDE_GFX_VERSION={override} {seen.python} YOUR_PROGRAM.py",)
        if (override := override_for(seen))
        else ()
    )
    return seen.answer(
        KIND, "FA899", cause, owner="miopen", direction="none", confidence="low",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}",
              "rm -r ~/.cache/miopen ~/.config/miopen", *command),
        notes=(
            "The third command removes what MIOpen keeps: it makes it again. MIOPEN_USER_DB_PATH "
            "and MIOPEN_CUSTOM_CACHE_DIR name directories that can be written.",
            "MIOPEN_LOG_LEVEL=5 and the lines above this one, with [Compile] or [BuildHip], say "
            "what failed.",
        ),
    )  # fmt: skip


def hip_error(seen: Seen) -> Answer:
    """HIP's errors: those that are about code, and those that say nothing of it."""
    if seen.mention.detail.get("sort") == "not-started":
        return not_started(seen)
    if seen.mention.detail.get("sort") == "code":
        return no_code(seen)
    if "miopen" in seen.mention.line.lower():
        return _miopen(seen)
    return seen.answer(
        KIND, "FA899",
        "The HIP runtime (ROCm) reports an error of its own; the text does not say more.",
        owner="hip", direction="none", confidence="low",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}"),
        notes=(
            "The error may come from an earlier call: AMD_SERIALIZE_KERNEL=3 makes the traceback "
            "point at the right one.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "rocm-no-device": no_device,
    "rocm-fault": fault,
    "hip-error": hip_error,
}
