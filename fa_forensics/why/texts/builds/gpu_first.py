"""A build whose torch is too old for the GPU: torch goes first, and the toolkit follows it."""

from __future__ import annotations

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.gpus import Gpu, gpu_table
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_command,
    build_variables,
    package_built,
    unnamed,
    which_toolkit,
    with_toolkit,
)
from fa_forensics.why.texts.clues import called, gpus_of
from fa_forensics.why.texts.gpu.torch_for_gpu import covers, torch_index

KIND, CODE = "wrong-torch", "FA884"


def torch_too_old(seen: Seen, toolkit: str | None, torch: str | None) -> Answer | None:
    """No nvcc of torch's CUDA compiles for the text's GPU; None where one does, or none is told."""
    told = seen.elsewhere or any(key in seen.versions for key in ("gpu", "capability", "sm"))
    gpus = gpus_of(seen) if told and torch else ()
    family = gpu_table().family(gpus[0].capability) if gpus else None
    if torch is None or family is None:
        return None
    gpu = gpus[0]
    if family.last_cuda is not None and parse_cuda(torch) > parse_cuda(family.last_cuda):
        return _too_new(seen, gpu, toolkit, torch, family.last_cuda)
    if parse_cuda(family.since_cuda) <= parse_cuda(torch):
        return None
    fits = toolkit is not None and parse_cuda(toolkit) >= parse_cuda(family.since_cuda)
    cause = (
        f"torch was built with CUDA {torch}, and nvcc is of another CUDA, which torch's build "
        f"helper refuses across major versions. But {called(gpu)} needs CUDA "
        f"{family.since_cuda} or newer: neither that torch nor an nvcc of its CUDA has code for "
        "it, so that torch has to be replaced first, by a build for a newer CUDA, and then what is "
        "to be compiled is compiled on that."
    )
    if fits:
        cause += f" The nvcc of CUDA {toolkit} does for both and stays."
    wanted = _torch_for(gpu, toolkit if fits else family.since_cuda)
    package = package_built(seen)
    build = f"{build_variables(seen, package)}{build_command(seen)}"
    helps = [which_toolkit(seen)]
    notes = list(unnamed(build))
    cuda = toolkit if fits and toolkit else family.since_cuda
    if wanted is not None:
        first, minors = wanted
        helps.append(torch_index(seen, f"torch=={minors[-1]}.*", first))
        notes.append(
            f"On torch's own index torch {minors[0]} to {minors[-1]} have a build for CUDA {first} "
            "with code for that GPU; where the program asks for one of these, that one is to be "
            "taken, and torchvision and torchaudio with it from the same address."
        )
        cuda = first if not fits else cuda
    helps += with_toolkit(seen, cuda, build)
    notes.append(
        "CUDA_HOME names a toolkit of the new torch's CUDA major version that has code for the "
        "GPU; TORCH_CUDA_ARCH_LIST, where it is set, has to name the GPU too."
    )
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _too_new(seen: Seen, gpu: Gpu, toolkit: str | None, torch: str, last: str) -> Answer:
    """An old GPU, which the CUDA of torch leaves out."""
    fits = toolkit is not None and parse_cuda(toolkit) <= parse_cuda(last)
    cause = (
        f"torch was built with CUDA {torch}, and nvcc is of another CUDA, which torch's build "
        f"helper refuses across major versions. But CUDA {last} is the last that compiles for "
        f"{called(gpu)}: a toolkit of torch's own CUDA gives no code for it. A torch that is "
        "built for an older CUDA has to take its place first."
    )
    wanted = _torch_for(gpu, toolkit if fits else last)
    build = f"{build_variables(seen, package_built(seen))}{build_command(seen)}"
    helps = [which_toolkit(seen)]
    cuda = toolkit if fits and toolkit else last
    if wanted is not None:
        first, minors = wanted
        helps.append(torch_index(seen, f"torch=={minors[-1]}.*", first))
        cuda = toolkit if fits and toolkit else first
    helps += with_toolkit(seen, cuda, build)
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none", confidence="high",
        help=tuple(helps),
        notes=(
            *unnamed(build),
            "torchvision and torchaudio have to come from the same address as torch; CUDA_HOME "
            "names a toolkit of the new torch's CUDA major version.",
        ),
    )  # fmt: skip


def _torch_for(gpu: Gpu, cuda: str | None) -> tuple[str, list[str]] | None:
    """(a CUDA version, the minor releases of torch with a build for it that has the GPU).

    Of the toolkit's major version: its own number where torch has that, else the lowest.
    """
    if cuda is None:
        return None
    found: dict[str, list[str]] = {}
    for minor in torch_minors():
        for one in cuda_of_minor(minor):
            same = parse_cuda(one)[0] == parse_cuda(cuda)[0]
            if same and covers(torch_archs(minor, one) or (), gpu):
                found.setdefault(one, []).append(minor)
    if not found:
        return None
    first = cuda if cuda in found else min(found, key=parse_cuda)
    return first, found[first]
