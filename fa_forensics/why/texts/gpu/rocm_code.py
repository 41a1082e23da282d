"""Answers about code for AMD GPUs: none for the gfx target, or not loaded by the HIP runtime."""

from __future__ import annotations

import re

from fa_forensics.facts.amd_gpus import (
    AmdFamily,
    amd_families,
    amd_family,
    amd_names,
    amd_target,
    torch_wheels,
)
from fa_forensics.facts.build_archs import rocm_option
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import jobs_of, package_in, raw_python, version_of
from fa_forensics.why.texts.gpu.gpu_code_owner import of_bitsandbytes

KIND = "rocm"

_GFX = lazily(r"\bgfx(?:9\d[0-9a-f]|1[0-2]\d\d|8\d\d)\b")
#: A list of targets, which is never the GPU: "gfx1100;gfx1101".
_TARGETS = lazily(r"\bgfx\w{3,5}(?:;gfx\w{3,5})+|\['gfx[^\]\n]{1,400}\]")
#: Prints the targets that torch itself has code for.
LIST = "-c 'import torch; print(torch.version.hip, torch.cuda.get_arch_list())'"


def target_of(seen: Seen) -> str | None:
    """The gfx target that the text names, by itself or by the GPU's name."""
    detail = seen.mention.detail
    for key in ("target", "target2", "sm"):
        if detail.get(key, "").startswith("gfx"):
            return detail[key]
    line = _TARGETS.sub(" ", seen.mention.line)
    found = _GFX.search(line) or _GFX.search(seen.versions.get("gfx", ""))
    if found is not None:
        return found[0]
    name = seen.versions.get("amd_gpu")
    return amd_target(name) if name else None


def no_code(seen: Seen) -> Answer:
    """``HIP error: invalid device function``, ``Cannot read TensileLibrary.dat``."""
    target, library = target_of(seen), seen.mention.detail.get("library_of")
    which = f"this GPU ({target})" if target else "this AMD GPU's gfx target"
    if library == "rocblas":
        return _of_rocblas(seen, target, which)
    if library == "hipblaslt":
        cause = (
            f"hipBLASLt has no kernels for {which}. torch goes on with hipBLAS: it is a warning, "
            "unless the program asked for hipBLASLt."
        )
        return seen.answer(
            KIND, "FA504", cause, owner="hipblaslt", direction="none", confidence="high",
            help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}"),
            notes=("TORCH_BLAS_PREFER_HIPBLASLT=0 keeps torch from trying.",),
        )  # fmt: skip
    package = of_bitsandbytes(seen) or package_in(seen) or _attention(seen)
    if seen.mention.detail.get("loaded") and target:
        return _for_another(seen, package, target, seen.mention.detail["loaded"])
    name = package or "the extension whose kernel was started, or torch itself,"
    if package is None and target and _nightly_before(seen, target):
        name = "most likely torch itself, a nightly from before the first release that has it,"
    cause = (
        f"There is no code for {which}: {name} was built for other targets. Machine code of "
        "AMD GPUs is for one target, and there is no PTX to fall back on."
    )
    release = _release(seen)
    if package is None and target and release and torch_wheels().lacks(target, release):
        cause = (
            f"There is no code for {which}: torch {release} itself has none, if it is one of "
            "torch's own wheels for ROCm, and no extension is the first cause. Machine code of AMD "
            "GPUs is for one target, and there is no PTX to fall back on."
        )
    if (built := _built_list(seen)) and target not in built:
        only = "the GPU's is not among them" if target else "it runs on GPUs of these alone"
        cause += f" The text lists what was built: {', '.join(built)}; {only}."
    file = seen.mention.file or package
    look = (f"fa-forensics inspect {file}",) if file else ()
    command, notes = _ways_out(seen, target)
    again, build = _built_again(seen, package, target)
    return seen.answer(
        KIND, "FA504", cause, owner=package or _owner(seen, target), direction="none",
        confidence="medium",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}", *command, *again, *look),
        notes=(
            *notes,
            "The second command lists torch's own targets: where the GPU's is among them, it is "
            "the extension that lacks it, and it has to be built again.",
            *build,
            *_space_in_path(seen),
        ),
    )  # fmt: skip


def _built_list(seen: Seen) -> tuple[str, ...]:
    """The targets of a list in the text, "gfx1100;gfx1101": those that something was built for."""
    return tuple(_GFX.findall(seen.versions.get("gfx_built", "")))[:12]


def _attention(seen: Seen) -> str | None:
    """FlashAttention, where the text names it by its own or the repository's name alone."""
    named = "named:flash-attn" in seen.versions or "flag:flash-attention" in seen.versions
    others = any(key.startswith("pkg:") for key in seen.versions)
    return "flash-attn" if named and not others else None


def _for_another(seen: Seen, package: str | None, target: str, loaded: str) -> Answer:
    """The HIP runtime says for which target the code is that was handed to it."""
    whose = f"{package} or of a library that it calls" if package else "an extension or of torch"
    cause = (
        f"The code that was loaded is for {_of_target(loaded)}, and the GPU is "
        f"{_of_target(target)}: a kernel of {whose} is there for {loaded} alone. Machine code of "
        "AMD GPUs is for one target, and there is no PTX to fall back on."
    )
    set_already = target in (seen.versions.get("env:GPU_ARCHS", ""),
                             seen.versions.get("env:PYTORCH_ROCM_ARCH", ""))  # fmt: skip
    again, build = ((), ()) if set_already else _built_again(seen, package, target)
    notes: list[str] = []
    if set_already:
        notes.append(
            f"The build was told {target} already, as the text says: that kernel was not compiled "
            "then, it comes as finished machine code (as the assembler kernels of Composable "
            "Kernel and AITER do), which no list of targets changes. Another release or branch "
            f"that has it for {target}, or leaves it out there, is the way out."
        )
    if package == "flash-attn":
        notes.append(
            "FlashAttention's other backend on ROCm compiles its kernels as it runs, with Triton: "
            "FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE, for the build (pip install) and for the run."
        )
    file = seen.mention.file or package
    return seen.answer(
        KIND, "FA504", cause, owner=package or "hip", direction="none", confidence="medium",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}", *again,
              *((f"fa-forensics inspect {file}",) if file else ())),
        notes=(*notes, *_in_wheels(seen, target)[:1], *build),
    )  # fmt: skip


def _of_target(target: str) -> str:
    """``gfx90a (MI210, MI250, MI250X)``."""
    names = amd_names(target)
    return f"{target} ({', '.join(names[:3])})" if names else target


def _built_again(
    seen: Seen, package: str | None, target: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) to build a package for a target: by what its own build reads."""
    row = row_of(package) if package else None
    option = rocm_option(package) if package else None
    value = target or "gfxNNNN"
    named = "" if target else " gfxNNNN is the target that the first command prints."
    if option is not None and option.startswith("-D"):
        return (), (
            f"{package} is built by CMake, which does not read PYTORCH_ROCM_ARCH: from its source, "
            f'cmake -DCOMPUTE_BACKEND=hip {option}="{value}" -S . and make, then pip install . '
            f"there.{named} A newer release of {package} may have the target in its wheels.",
        )
    variable = option or "PYTORCH_ROCM_ARCH"
    if row is not None and not row["source_build"]:
        return (), (
            f"{package} is published built only, and for CUDA or for few targets: a build of its "
            "source repository with the target, or a newer release, is the way out.",
        )
    if row is None or package is None:
        said = f"A build from source takes {variable}={value} in its environment.{named}"
        return (), (said,)
    version = version_of(seen, package) or ""
    command = rebuild_command(raw_python(seen), package, version, row, jobs_of(seen))
    also = "" if option is None else f" {package}'s own build reads {variable}, and no other."
    return (f"{variable}={value} {command}",), (
        f"The command with {variable} compiles {package} for that target.{also}{named}",
    )


def _of_rocblas(seen: Seen, target: str | None, which: str) -> Answer:
    """``Cannot read .../TensileLibrary.dat``."""
    own = "/torch/lib/" in seen.mention.line
    copy = "The rocBLAS that torch brings" if own else "The rocBLAS of this system's ROCm"
    cause = (
        f"{copy} has no kernels (Tensile library) for {which}: that build of ROCm leaves the "
        "target out. The file is not damaged."
    )
    command, notes = _ways_out(seen, target)
    # Those speak of kernels of torch and of extensions, and it is rocBLAS that lacks its own here.
    notes = [note for note in notes if not re.search(r"the\sextension\sthat\slacks", note)]
    return seen.answer(
        KIND, "FA504", cause, owner="rocblas", direction="none", confidence="high",
        help=("rocminfo | grep -m1 gfx", f"{seen.python} {LIST}", *command),
        notes=(
            *notes,
            "A torch for a newer ROCm may have it. ROCBLAS_TENSILE_LIBPATH names the directory of "
            "another rocBLAS of the same release that has the target.",
        ),
    )  # fmt: skip


def _owner(seen: Seen, target: str | None) -> str:
    """torch, where its own wheels lack a target, and else the runtime that says so."""
    if target is None:
        return "hip"
    release = _release(seen)
    lacks = torch_wheels().first(target) is None or _nightly_before(seen, target) is not None
    return "torch" if lacks or (release and torch_wheels().lacks(target, release)) else "hip"


def _release(seen: Seen) -> str | None:
    """The release of a torch that is one of torch's own wheels for ROCm, as far as it is told."""
    found = re.match(r"(\d+\.\d+(?:\.\d+)?)\+rocm", seen.torch or "")
    return found[1] if found else None


def _ways_out(seen: Seen, target: str | None) -> tuple[tuple[str, ...], list[str]]:
    """(a command, notes) about a target: which wheels have it, and what it can pass for."""
    family = amd_family(target) if target else None
    passes = family is not None and target != family.runs_as
    notes = [*_in_wheels(seen, target)] if target else []
    if target is None:
        notes += [
            f"{', '.join(sorted(one.targets - {one.runs_as}))} share their instructions with "
            f"{one.runs_as}, which most builds have: HSA_OVERRIDE_GFX_VERSION={one.version} makes "
            "them pass for that. AMD does not support it."
            for one in amd_families()
        ]
    told = seen.versions.get("env:HSA_OVERRIDE_GFX_VERSION")
    if told is not None:
        return (), [*notes, *_override_told(target, family, told)]
    if family is None or not passes:
        return (), notes
    notes.insert(
        0,
        f"{target} shares its instructions with {family.runs_as}, which most builds have: "
        f"HSA_OVERRIDE_GFX_VERSION={family.version} makes it pass for that. AMD does not support "
        "it.",
    )
    if on_windows(seen):
        return (), [*notes, "ROCm for Windows does not read HSA_OVERRIDE_GFX_VERSION."]
    return (f"HSA_OVERRIDE_GFX_VERSION={family.version} {seen.python} YOUR_PROGRAM.py",), notes


def override_for(seen: Seen) -> str | None:
    """What HSA_OVERRIDE_GFX_VERSION takes for the GPU that the text names, where it helps."""
    target = target_of(seen)
    family = amd_family(target) if target else None
    if family is None or target == family.runs_as or on_windows(seen):
        return None
    return None if "env:HSA_OVERRIDE_GFX_VERSION" in seen.versions else family.version


def _nightly_before(seen: Seen, target: str) -> str | None:
    """The date of a nightly of the very release that first has a target; None for another torch."""
    since = torch_wheels().first(target) or "none"
    found = re.match(rf"{re.escape(since)}\.\d\.?(?:dev|a)(\d{{8}})", seen.torch or "")
    return found[1] if found else None


def _known_with(target: str, release: str | None) -> bool:
    return release is not None and torch_wheels().has(target, release)


def _in_wheels(seen: Seen, target: str) -> list[str]:
    """Whether torch's own wheels for ROCm have code for a target."""
    since, release = torch_wheels().first(target), _release(seen)
    if since is None:
        return [
            f"None of torch's own wheels for ROCm from torch 2.1 on has code for {target}; older "
            "ones are not on record, and the list of the command tells. A build from source has, "
            "or wheels that others make for it.",
            "ROCm's own libraries (rocBLAS, rocRAND, rocSPARSE), which torch calls, need code for "
            f"{target} too: those of a newer ROCm may have none, and no build of torch adds it.",
        ]
    if torch_wheels().in_all_known(target) and not _known_with(target, release):
        return [
            f"torch's own wheels for ROCm have code for {target} in all releases of which it is "
            f"known, {since} and newer, and older ones may have it too: where the list of the "
            "command has it, it is the extension that lacks it."
        ]
    if release is not None and torch_wheels().has(target, release):
        return [
            f"torch's own wheels for ROCm have code for {target} from {since} on, torch {release} "
            "too: most likely it is the extension that lacks it."
        ]
    nightly = _nightly_before(seen, target)
    if nightly is not None:
        return [
            f"torch's own wheels for ROCm have code for {target} from {since} on. The torch here "
            f"is a nightly from before that release ({nightly}), which can be older than the "
            f"change: torch {since} or newer from torch's own index for ROCm (.../whl/rocmX.Y) "
            "comes first, before anything is built again."
        ]
    if release is not None:
        return [
            f"torch's own wheels for ROCm have code for {target} from {since} on, and torch "
            f"{release} has none: torch {since} or newer from torch's own index for ROCm "
            "(.../whl/rocmX.Y) is the way out, and extensions built for that one."
        ]
    return [
        f"torch's own wheels for ROCm have code for {target} from {since} on: with an older torch, "
        "a newer one from torch's own index for ROCm (.../whl/rocmX.Y) comes first."
    ]


def _override_told(target: str | None, family: AmdFamily | None, told: str) -> list[str]:
    """What to know where the text sets HSA_OVERRIDE_GFX_VERSION itself."""
    if target is None:
        return [
            f"HSA_OVERRIDE_GFX_VERSION={told} in the text makes the GPU pass for another: take it "
            "off to see its own target, and set it only for a GPU of that family."
        ]
    if family is None:
        return [
            f"HSA_OVERRIDE_GFX_VERSION={told} in the text makes {target} pass for a GPU of another "
            "family, whose code need not run on it and for which AMD promises nothing. Where it "
            "works, it serves until a torch with code for the GPU's own target is there; where the "
            "error comes with it, try without."
        ]
    if told != family.version:
        return [
            f"HSA_OVERRIDE_GFX_VERSION={told} in the text is of another family: for {target} it is "
            f"{family.version}."
        ]
    return [
        f"HSA_OVERRIDE_GFX_VERSION={told} is set already, as the text says: then code for "
        f"{family.runs_as} is missing too, or the variable does not reach the process."
    ]


def _space_in_path(seen: Seen) -> tuple[str, ...]:
    """ROCm legacy-rocm-build issues 3894 and 4329: a blank in the path hides the code."""
    if not re.search(r"\w \w.{0,200}/site-packages/", seen.mention.detail.get("frame", "")):
        return ()
    return (
        "The path of this environment has a blank in it: the HIP runtime of ROCm 6 finds no code "
        "below such a path and says the same. An environment in a path without blanks rules it "
        "out.",
    )


def not_started(seen: Seen) -> Answer:
    """``shared object initialization failed``: the runtime does not take the code object."""
    torch, rocm = seen.torch or "", seen.versions.get("system_rocm", seen.versions.get("rocm", ""))
    own = re.search(r"\+rocm(\d{1,2}\.\d{1,2})", torch)
    differ = own is not None and bool(rocm) and not rocm.startswith(own[1])
    package = package_in(seen)
    ways = (
        "Two ways out: a torch for the ROCm that is installed, or the extension compiled with "
        "the ROCm that torch was built with."
    )
    helps = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
        "cat /opt/rocm*/.info/version; hipcc --version",
        "AMD_LOG_LEVEL=3 python YOUR_PROGRAM.py 2>&1 | grep -iE 'code object|error'",
    ]
    if own is not None and differ:
        newer = tuple(map(int, rocm.split(".")[:2])) > tuple(map(int, own[1].split(".")))
        cause = (
            f"The HIP runtime found GPU code and could not load it. torch {torch} brings the HIP "
            f"runtime of ROCm {own[1]}, and the text names ROCm {rocm}, whose hipcc compiles "
            f"{package or 'an extension'}: most likely the code was compiled by "
            f"{'a newer' if newer else 'another'} ROCm than the runtime that is loaded, which does "
            "not take it."
        )
        helps.append(
            f"{seen.pip} install --force-reinstall --no-cache-dir torch torchvision torchaudio"
            f"{index_option(f'rocm{rocm}')}"
        )
        ways = (
            f"Two ways out: a torch for ROCm {rocm}, as the last command gets it where torch's own "
            f"index has one for that (else of the nearest older ROCm {rocm.partition('.')[0]}), "
            f"and the extension compiled again on it; or the extension compiled with ROCm {own[1]} "
            "(ROCM_HOME names its directory, where several are installed), and torch stays."
        )
    else:
        cause = (
            "The HIP runtime found GPU code and could not load it. Most often the code was "
            "compiled by a newer ROCm than the runtime that is loaded: torch's wheels bring a HIP "
            "runtime of their own, and an extension is compiled with the system's ROCm."
        )
    return seen.answer(
        KIND, "FA504", cause, owner=package or "hip", direction="none",
        confidence="medium" if differ else "low", help=tuple(helps),
        notes=(
            ways,
            "Code for another gfx target says so in other words as a rule "
            "(hipErrorInvalidDeviceFunction, hipErrorNoBinaryForGpu).",
        ),
    )  # fmt: skip
