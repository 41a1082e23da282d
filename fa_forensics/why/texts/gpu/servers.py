"""Programs that serve models and bring compiled parts of their own: vLLM, LMDeploy, SGLang."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import called, inspect_for, package_in
from fa_forensics.why.texts.gpu.gpu_code_owner import shown
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS

#: What a program's compiled part is installed by, and the image that has both.
_PROGRAMS = {
    "vllm": ("vllm", "vllm/vllm-openai"),
    "lmdeploy": ("lmdeploy", "openmmlab/lmdeploy"),
    "sglang": ("sgl-kernel", "lmsysorg/sglang"),
}
#: The least compute capability that such a part serves, and its targets' list in CMakeLists.txt.
#: vLLM's and SGLang's documents: 7.0 and 7.5; LMDeploy's: V100 (7.0) and newer.
_LEAST = {"vllm": (7, 0), "lmdeploy": (7, 0), "sgl-kernel": (7, 5), "sglang": (7, 5)}
#: Newer builds add newer GPUs alone: those below this one only ever go (CUDA 13 has no 7.0).
_GOING = (7, 5)
#: Packages of which a text may name one beside such a program without its being concerned.
_BESIDE = ("torch", "torchvision", "torchaudio", "triton", "numpy", "transformers", "accelerate",
           "kernels", "pybind11", "ninja", "sglang", "vllm", "lmdeploy")  # fmt: skip


def program_of(seen: Seen) -> str | None:
    """The one such program that a text names, or whose image it runs: "vllm"."""
    image = seen.versions.get("server_image", "")
    found = [
        name
        for name, (_, place) in _PROGRAMS.items()
        if f"named:{name}" in seen.versions
        or f"pkg:{name}" in seen.versions
        or image.startswith(place)
    ]
    return found[0] if len(found) == 1 else None


def of_server(seen: Seen) -> str | None:
    """The package with the compiled part of a program that the text is about.

    None where it names another package with compiled code too.
    """
    from fa_forensics.rules.remedy import row_of

    name = program_of(seen)
    if name is None or package_in(seen) not in (None, name):
        return None
    keys = [key.partition(":")[2] for key in seen.versions if key.startswith(("named:", "pkg:"))]
    part = _PROGRAMS[name][0]
    others = (one for one in keys if one not in (*_BESIDE, part) and row_of(one) is not None)
    return None if any(others) else part


def told_by_name(seen: Seen, package: str | None) -> bool:
    """Whether such a program is only named: nothing shows that its own part failed."""
    detail = seen.mention.detail
    if package is None or any(detail.get(key) for key in ("asked", "part", "call", "project")):
        return False
    return package_in(seen) is None and of_server(seen) == package


def server_cause(seen: Seen, package: str, gpu: Gpu, torch_has: bool) -> str:
    """The cause where the text only names the program."""
    runs = f"{called(gpu)}, which runs {what_would_run(gpu.capability)}"
    if torch_has:
        return (
            f"The compiled part of {package}, or of an extension that it calls, holds no code for "
            f"{runs}; torch itself has code for it."
        )
    if package == "lmdeploy":
        return (
            f"TurboMind, the compiled part of lmdeploy, holds no code for {runs}; or torch has "
            "none, where lmdeploy runs with its PyTorch backend."
        )
    where = "in that image" if "server_image" in seen.versions else "that it came with"
    return f"The compiled part of {package}, or the torch {where}, holds no code for {runs}."


def newer_server(seen: Seen, package: str | None, gpu: Gpu | None) -> tuple[str, ...]:
    """The command that takes a newer build of such a program; () for another package."""
    if package not in ("vllm", "lmdeploy") or on_windows(seen):
        return ()
    if gpu is not None and gpu.capability < _GOING:
        return ()  # a newer one has code for fewer old GPUs, and its torch too
    image = _PROGRAMS[package][1]
    if "server_image" in seen.versions:
        return (" ".join(("docker", "pull", f"{image}:latest")),)
    return (f"{seen.pip} install --upgrade --no-cache-dir {package}",)


def server_notes(seen: Seen, package: str | None, gpu: Gpu | None) -> tuple[str, ...]:
    """What to know of the builds of such a program."""
    if gpu is not None and gpu.capability < _GOING:
        return _older_gpus(package)
    family = gpu_table().family(gpu.capability) if gpu is not None else None
    since = family.since_cuda if family is not None else None
    with_cuda = f" built with CUDA {since} or newer" if since else ""
    if package == "vllm":
        where = (
            "In the image, torch and vLLM are of one build: another torch in it breaks vLLM."
            if "server_image" in seen.versions
            else "Each release of vLLM is compiled for one torch and brings that along."
        )
        return (
            f"{where} A newer wheel or image (vllm/vllm-openai){with_cuda} has code for more GPUs, "
            "in torch and in vLLM alike. From source its CMake build reads TORCH_CUDA_ARCH_LIST.",
        )
    if package == "lmdeploy":
        number = ""
        if gpu is not None:
            number = f" (-DCMAKE_CUDA_ARCHITECTURES={gpu.capability[0]}{gpu.capability[1]}"
            number += "a-real)" if gpu.capability >= (9, 0) else "-real)"
        return (
            "The compiled part of LMDeploy is TurboMind (_turbomind), for the targets of its own "
            f"wheel; torch plays no part in it. A wheel{with_cuda} has them: a newer release, or "
            "the file of the same release with +cu and that CUDA in its name on the project's "
            "release page, where there is one.",
            "LMDeploy is built by CMake, which does not read TORCH_CUDA_ARCH_LIST: from source it "
            f"takes the GPUs that its CMakeLists.txt lists for the nvcc that is found{number}. "
            "Until then --backend pytorch does without TurboMind.",
        )
    return ()


def _older_gpus(package: str | None) -> tuple[str, ...]:
    """What to know of an old GPU that such a program still serves."""
    if package not in ("vllm", "lmdeploy"):
        return ()
    return (
        f"A newer release of {package} is not the way out: newer builds, and the torch that comes "
        "along, have code for fewer old GPUs and not for more. An older release with the torch of "
        "its time may have it, or another engine (llama.cpp, Ollama with a GGUF model).",
    )


def too_old_for(seen: Seen, package: str | None, gpu: Gpu) -> Answer | None:
    """The answer where such a program does not serve a GPU as old as that; else None."""
    name = package if package in _LEAST else None
    name = name or (of_server(seen) if package is None else None)
    if name is None or gpu.capability >= _LEAST[name]:
        return None
    least, number = capability_text(_LEAST[name]), capability_text(gpu.capability)
    cause = (
        f"No wheel and no image of {name} has code for {shown(seen, gpu)}: {name} is made for "
        f"compute capability {least} and newer. Neither the driver nor torch's C++ ABI plays a "
        "part."
    )
    notes = [
        f"A newer {name} does not help: newer builds, and the torch that comes along, have code "
        "for fewer old GPUs and not for more.",
        f"The ways out: another engine that serves this GPU (llama.cpp, llama-box or Ollama with a "
        f"GGUF model), or a GPU of compute capability {least} or newer.",
    ]
    if name == "vllm":
        notes.append(
            f"A build of one's own takes more than a variable: {number} has to be added to "
            "CUDA_SUPPORTED_ARCHS in the CMakeLists.txt of vLLM's source, which otherwise drops it "
            "from TORCH_CUDA_ARCH_LIST, with a torch and an nvcc (up to CUDA 12.9) that still "
            "serve it; people have run older releases of vLLM so. Newer kernels (FlashAttention, "
            "Marlin, Triton's) stay out of reach."
        )
    return seen.answer(
        KIND, "FA504", cause, owner=name, direction="none",
        confidence="medium" if told_by_name(seen, package or name) else "high",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (gpu,), name)),
        notes=tuple(notes),
    )  # fmt: skip


def with_its_program(seen: Seen, answer: Answer, gpu: Gpu) -> Answer:
    """torch lacks the GPU: a program that is compiled for that torch is replaced with it."""
    name = program_of(seen)
    newer = newer_server(seen, name, gpu)
    if name != "vllm" or on_windows(seen):
        return answer
    helps = [text for text in answer.help if "torch==" not in text]
    notes = (*server_notes(seen, name, gpu), *answer.notes)
    return replace(answer, help=(*newer, *helps), notes=notes)
