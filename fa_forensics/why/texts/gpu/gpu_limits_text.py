"""Answers about what a GPU cannot do, and about kernels that a build left out for it."""

from __future__ import annotations

import re

from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table, parse_capability
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.gpu_remedy import rebuild
from fa_forensics.why.seen import Answerer, Seen, package_of
from fa_forensics.why.texts.clues import gpus_of, inspect_for, named, named_gpu, package_in
from fa_forensics.why.texts.gpu.gpu_refusals import TORCH_ARCHS, build_of
from fa_forensics.why.texts.gpu.own_set import own_set
from fa_forensics.why.texts.gpu.sage_text import PACKAGE, refused_by_sage
from fa_forensics.why.texts.python.not_imported import not_imported

KIND = "gpu-arch"

_FP8 = lazily(r"fp8|e4m3|e5m2|float8", re.IGNORECASE)
_BF16 = lazily(r"bf16|bfloat16", re.IGNORECASE)
HALF = (
    "float16 in place of bfloat16 is the way out on such a GPU: --dtype half, fp16=True, "
    "torch_dtype=torch.float16, as the program calls it."
)
_NO_FP8 = (
    "Another type is the way out on such a GPU: a checkpoint or a setting without FP8 "
    "(float16, int8)."
)
_OTHER_PATH = (
    "What is left is a release of Triton, or of the package whose kernel this is, that still "
    "serves this GPU, or the package's path without Triton and torch.compile."
)


def _dotted(number: str) -> str:
    """``80`` or ``8.0`` or ``sm_90a`` → 8.0, 9.0a."""
    found = re.search(r"(\d{1,2})\.?(\d)([af]?)$", number.replace(" ", "").replace(",", "."))
    return f"{found[1]}.{found[2]}{found[3]}" if found else number


def _older(gpu: Gpu, needs: str) -> bool:
    return gpu.capability < parse_capability(_dotted(needs).rstrip("af"))


def feature(seen: Seen) -> Answer:
    """``Feature '.bf16' requires .target sm_80 or higher``, and what Triton says of old GPUs."""
    detail = seen.mention.detail
    needs, name = detail.get("needs", ""), detail.get("feature", "")
    if not needs or needs[-1] in "af":
        return own_set(seen, needs, name)
    gpu = next((gpu for gpu in gpus_of(seen)[:1] if _older(gpu, needs)), None)
    which = named(gpu) if gpu else "one that is older than that"
    least = _dotted(needs)
    if name == "triton":
        cause = (
            f"Triton's compiler does not serve this GPU: torch.compile asks for compute capability "
            f"7.0 or newer, newer releases of Triton for {_dotted('80')}, and the code is compiled "
            f"for {named(gpu) if gpu else 'an older one'}."
        )
    else:
        quoted = f'"{name}"' if name else "an instruction"
        cause = (
            f"The code that is compiled uses {quoted}, which GPUs have from compute capability "
            f"{least} on, and it is compiled for {which}."
        )
    cause += (
        " The GPU cannot do it: no newer ptxas, CUDA or driver and no architecture list "
        "changes that."
    )
    note = HALF if _BF16.search(name) else _NO_FP8 if _FP8.search(name) else _OTHER_PATH
    return seen.answer(
        KIND, "FA509", cause, owner=None, direction="none",
        confidence="high" if name != "triton" or needs == "70" else "medium",
        help=(f"{seen.python} {TORCH_ARCHS}",), notes=(note,),
    )  # fmt: skip


def shared_memory(seen: Seen) -> Answer:
    """Triton's ``out of resource: shared memory, Required: 106496, Hardware limit: 101376``."""
    required, limit = seen.mention.detail.get("required"), seen.mention.detail.get("limit")
    numbers = f" ({required} bytes, this GPU gives {limit})" if required and limit else ""
    cause = (
        f"A Triton kernel asks for more shared memory than a block may have on this GPU{numbers}: "
        "its block sizes or stages were chosen for a GPU with more. It is not the GPU's main "
        "memory, and no driver, CUDA or rebuild changes it."
    )
    return seen.answer(
        KIND, "FA509", cause, owner="triton", direction="none", confidence="high",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=(
            "The way out is in the kernel or its settings: smaller block sizes, fewer num_stages, "
            "a smaller head dimension, or a release of the package that is tuned for this GPU.",
        ),
    )  # fmt: skip


def left_out(seen: Seen) -> Answer:
    """A package's own words for: this build has no kernel for this GPU."""
    detail = seen.mention.detail
    if "lacking" in detail:
        return _arch_mismatch(seen, detail["lacking"])
    if "target" in detail or "Arch conditional" in seen.mention.line:
        return _without_target(seen, detail.get("target", ""))
    if "range" in detail:
        return _cutlass_range(seen)
    if "flag" in detail:
        return not_imported(seen)
    gpus = gpus_of(seen)[:1]
    package = _package(seen)
    version = detail.get("ggml")
    if version:  # llama.cpp counts 860 for 8.6
        gpus = tuple(
            g for g in [named_gpu(f"{int(version) // 100}.{int(version) % 100 // 10}")] if g
        )
    kernel, built = detail.get("kernel"), detail.get("built")
    what = f"{package or 'the package'}" + (f"'s {kernel}" if kernel else "")
    which = named(gpus[0]) if gpus else "this GPU"
    cause = f"The build of {what} that is installed holds no kernel for {which}"
    cause += f"; it has those for {built.strip(' ,')}" if built else ""
    cause += (
        ". Its release or its architecture list left that GPU out; torch, its C++ ABI and the "
        "driver play no part."
    )
    if package == "tinycudann" and gpus:
        cause = (
            f"The tinycudann that is installed has no module for {which} or lower: it was built "
            "for newer GPUs, on another machine as a rule. Torch, its C++ ABI and the driver play "
            "no part."
        )
    advice = rebuild(build_of(seen, package), (), gpus) if gpus and package else None
    helps = list(advice.help) if advice else []
    notes = [*_rebuilds(package, gpus)]
    if package == "tinycudann" and gpus:
        number = capability_text(gpus[0].capability).replace(".", "")
        helps = [
            f"TCNN_CUDA_ARCHITECTURES={number} {seen.pip} install --no-cache-dir "
            "--no-build-isolation --force-reinstall --no-deps "
            '"git+https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch"'
        ]
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none", confidence="high",
        help=(*helps, f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, gpus, package)),
        notes=tuple(notes),
    )  # fmt: skip


def _rebuilds(package: str | None, gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    if package == "tinycudann":
        return (
            "tiny-cuda-nn makes one module for each compute capability that it is built for (those "
            "of the GPUs that it sees, where it is not told), and loads the highest that is not "
            "above the GPU's, with a warning where it is a lower one: none that is built is low "
            "enough here.",
        )
    if package is None:
        return ()
    number = capability_text(gpus[0].capability) if gpus else "X.Y"
    return (
        f"Another release may still have it or have it again; a build from source with "
        f'TORCH_CUDA_ARCH_LIST="{number}" has it where the kernel itself supports the GPU.',
    )


def _package(seen: Seen) -> str | None:
    detail = seen.mention.detail
    if detail.get("package"):
        return detail["package"]
    if "ggml" in detail:
        return "llama.cpp"
    kernel = detail.get("kernel", "")
    if re.search(r"cutlass|scaled|moe|nvfp4|marlin", kernel):
        # vLLM's words; sgl-kernel has them from there.
        return (
            "sgl-kernel"
            if "sgl" in seen.mention.line or "pkg:sgl-kernel" in seen.versions
            else "vllm"
        )
    return package_in(seen)


def _cutlass_range(seen: Seen) -> Answer:
    """``FATAL: kernel `fmha_cutlassF_bf16_aligned` is for sm80-sm100, but was built for sm50``."""
    detail = seen.mention.detail
    built = _dotted(detail.get("built", ""))
    low, _, high = detail["range"].replace("sm", "").partition("-")
    cause = (
        f"The kernel is for compute capability {_dotted(low)} up to below {_dotted(high)}, and "
        f"what the GPU took is the code that was compiled for {built}: the build has none of a "
        "fitting architecture for this GPU. It belongs to torch or to xformers, whichever called "
        "it."
    )
    notes = [
        "Either the build's architecture list is too short for a GPU that could run it (code for "
        f"{built} runs as PTX then), or the GPU is outside that range and the kernel not for it.",
    ]
    if "bf16" in seen.mention.line:
        notes.append(HALF)
    return seen.answer(
        KIND, "FA504", cause, owner=package_in(seen), direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}", f"{seen.python} -m xformers.info"),
        notes=tuple(notes),
    )  # fmt: skip


def _without_target(seen: Seen, target: str) -> Answer:
    """CUTLASS: the kernel was compiled for sm_90 where it takes sm_90a."""
    cause = (
        "A CUTLASS kernel runs that was compiled without the instructions it is made of: the build "
        "lacks the GPU's own target with an a (9.0a, 10.0a, 12.0a), or the GPU runs a kernel that "
        "was made for another one."
    )
    gpus = gpus_of(seen)[:1]
    own = f"{capability_text(gpus[0].capability)}a" if gpus else ""
    if not target and own and gpus[0].capability >= (9, 0):
        target = own
    if target:
        cause = (
            "A CUTLASS kernel runs that was compiled without the instructions it is made of: the "
            f"build lacks the target {_dotted(target)}, or the GPU runs a kernel that was made for "
            "another one."
        )
    notes = [
        "The driver and torch's own release play no part; a build with that target, or a "
        "release of the package that has kernels for this GPU, does."
    ]
    if target and _dotted(target) == own:
        family = gpu_table().family(gpus[0].capability)
        arch = own.replace(".", "")
        notes.append(
            f'From source it is TORCH_CUDA_ARCH_LIST="{own}", with the a, in place of {own[:-1]}; '
            f"-gencode options that a project writes itself need it too (sm_{arch})."
        )
        if family is not None:
            notes.append(
                f"Compiling for {own} takes the nvcc of CUDA {family.since_cuda} or newer."
            )
    return seen.answer(
        KIND, "FA504", cause, owner=package_in(seen), direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, gpus, package_in(seen))),
        notes=tuple(notes),
    )  # fmt: skip


def _arch_mismatch(seen: Seen, library: str) -> Answer:
    """``CUBLAS_STATUS_ARCH_MISMATCH``: the library has no kernel for this GPU and type."""
    name = {"CUBLAS": "cuBLAS", "CUDNN": "cuDNN"}[library.upper()]
    gpus = gpus_of(seen)[:1]
    which = named(gpus[0]) if gpus else "this GPU"
    cause = (
        f"{name} has nothing for {which}: its release does not serve that GPU, or not with the "
        "type that was asked for (bfloat16 takes 8.0, FP8 takes 8.9)."
    )
    return seen.answer(
        KIND, "FA509", cause, owner=name.lower(), direction="none", confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.version.cuda, "
              "torch.backends.cudnn.version(), torch.cuda.get_device_capability())'",),
        notes=(f"{name} comes with torch's wheels: another type, or a torch whose CUDA version "
               "serves the GPU, is the way out.",),
    )  # fmt: skip


def _of_family(name: str) -> str:
    """The least compute capability of a family: "Hopper" → 9.0."""
    rows = [f for f in gpu_table().families if name.lower() in f.architecture.lower()]
    return capability_text(min(f.capability for f in rows)) if rows else ""


def capability_refused(seen: Seen) -> Answer:
    """A package's own check of the compute capability."""
    detail = seen.mention.detail
    needs, name = detail.get("needs", ""), detail.get("feature", "")
    if detail.get("family"):
        needs = _of_family(detail["family"])
    least = _dotted(needs)
    package = "torch" if detail.get("most") or "_scaled_mm" in name else package_in(seen)
    if "from" in detail:  # the check's own file says whose it is
        package = package_of(detail["from"]) or package
    gpu = next((gpu for gpu in gpus_of(seen)[:1]), None)
    older = gpu is not None and bool(needs) and _older(gpu, needs)
    newer = gpu is not None and not older and bool(detail.get("most"))
    if gpu is not None and not needs and not detail.get("family") and package == PACKAGE:
        return refused_by_sage(seen, gpu)
    which = "the GPU at hand" if gpu is None or not (older or newer) else named(gpu)
    if detail.get("most"):
        asks = f"serves compute capability {least} to {_dotted(detail['most'])}"
    elif detail.get("family"):
        asks = f"is made for {detail['family']} GPUs (compute capability {least})"
    elif needs:
        asks = f"asks for compute capability {least} or newer"
    else:
        older, asks = True, "does not serve it"
    what = {"bf16": "bfloat16"}.get(name.lower(), name) or package or "the package"
    cause = f"A check refuses {which} before any kernel runs: {what} {asks}."
    if newer:
        cause += " A newer release may serve it."
    else:
        cause += " No driver, CUDA toolkit or rebuild changes that."
    notes = []
    doubtful = gpu is not None and not older and not newer
    if _BF16.search(name):
        notes.append(HALF)
    elif _FP8.search(name) or "_scaled_mm" in name:
        notes.append(_NO_FP8)
    elif "attention" in name.lower():
        notes.append(
            "torch then takes another of its attention kernels, unless the program allows this one "
            "alone."
        )
    if doubtful and gpu is not None:
        notes.append(
            f"The GPU named, {named(gpu)}, is no older than that: either the process ran on "
            "another GPU, or the check asks for something else too (a type, a size, a feature of "
            "that architecture alone). The line of code that raised it tells."
        )
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none",
        confidence="high" if older or newer else "low" if doubtful else "medium",
        help=(f"{seen.python} {TORCH_ARCHS}",), notes=tuple(notes),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "gpu-feature": feature,
    "shared-memory": shared_memory,
    "kernel-left-out": left_out,
    "capability-refused": capability_refused,
}
