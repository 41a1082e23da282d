"""Whether an official wheel serves the GPUs at hand, by what its release's build compiles."""

from __future__ import annotations

from collections.abc import Iterator

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.flash_limits import Limits, limits_of
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table, parse_gpu
from fa_forensics.facts.wheel_matrix import PACKAGE, WheelBuild
from fa_forensics.rules.coverage import NATIVE, code_for, fit


def gpu_cautions(build: WheelBuild, gpus: tuple[Gpu, ...]) -> Iterator[str]:
    """Sentences on the GPUs that a wheel has no code for, or that its release refuses."""
    for limits in limits_of(PACKAGE, build.release, None):
        archs = compiled(limits, build.cuda_built)
        for gpu in gpus:
            here = f"{gpu.name} (compute capability {capability_text(gpu.capability)})"
            if not limits.accepts(gpu.capability):
                yield f"{PACKAGE} {build.release} itself refuses {here}"
            elif not any(fit(code_for(arch), gpu.capability).runs == NATIVE for arch in archs):
                yield (
                    f"it has no code for {here}: with CUDA {build.cuda_built} the release's build "
                    f"makes {', '.join(archs)}"
                )


def compiled(limits: Limits, cuda: str) -> tuple[str, ...]:
    """What a release's build makes with a toolkit: nvcc knows a GPU from some release on."""
    toolkit = parse_cuda(".".join(cuda.split(".")[:2]))
    found = []
    for arch in limits.archs:
        family = gpu_table().family(parse_gpu(arch)[0].capability)
        if family is None or parse_cuda(family.since_cuda) <= toolkit:
            found.append(arch)
    return tuple(found)
