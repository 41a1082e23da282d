"""What to rebuild with, for the GPUs at hand, or the plain statement that no rebuild helps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from fa_forensics.facts.build_archs import OwnTarget, own_list, own_lists
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.flash_limits import Limits, all_limits, first_accepting
from fa_forensics.facts.gpus import Capability, Gpu, capability_text, gpu_table
from fa_forensics.facts.package import Distribution, normalized
from fa_forensics.rules.arch_choice import by_toolkit, runs_instead
from fa_forensics.rules.coverage import NATIVE, code_for, fit
from fa_forensics.rules.remedy import rebuild_command, row_of

#: FlashAttention 4 on 12.x: flash-attention's pull request 2634, among others, is open.
_IN_PART = ", with fewer of its functions than on 9.0 and 10.0"
_WITHOUT = (
    "torch's own scaled_dot_product_attention runs on this GPU without any FlashAttention package"
)
_BUILD_TOOL = "torch's build helper, which most extensions use, reads TORCH_CUDA_ARCH_LIST"


class Advice(NamedTuple):
    """Whether a rebuild can help, what to know of it, and the command."""

    helps: bool
    notes: tuple[str, ...]
    help: tuple[str, ...] = ()


class Build(NamedTuple):
    """Where a rebuild would happen: interpreter, the file's package, torch's CUDA, MAX_JOBS."""

    python: str
    distribution: Distribution | None
    torch_cuda: str | None
    jobs: int | None


def rebuild(build: Build, limits: Sequence[Limits], gpus: Sequence[Gpu]) -> Advice:
    """How to get code for these GPUs. ``limits``: the FlashAttention rows of the file, if any."""
    capabilities = sorted({gpu.capability for gpu in gpus})
    if limits:
        return _flash(build, limits, capabilities)
    notes = _toolkit_notes(build, capabilities)
    name = build.distribution.name if build.distribution else None
    value = ";".join(compiled_as(build, capability) for capability in capabilities)
    row = row_of(name) if name else None
    if name is not None and row is not None and own_lists(name):
        return _own_targets(build, row, name, capabilities)
    if name is None or build.distribution is None or row is None or not row["source_build"]:
        if row is not None and row.get("capability_option"):
            numbers = ";".join(f"{c[0]}{c[1]}" for c in capabilities)
            said = (
                f"{name} is built by CMake, which does not read TORCH_CUDA_ARCH_LIST: from its "
                f'source, cmake -DCOMPUTE_BACKEND=cuda {row["capability_option"]}="{numbers}" -S . '
                "and make, then pip install . there."
            )
            return Advice(True, (said, *notes))
        if row is not None and name is not None:
            return _built_only(build, row, name, capabilities)
        said = f'{_BUILD_TOOL}: build it from source with TORCH_CUDA_ARCH_LIST="{value}".'
        return Advice(True, (said[0].upper() + said[1:], *notes))
    variable = f"TORCH_CUDA_ARCH_LIST={shlex.quote(value)}"
    if row.get("arch_variable"):
        # The package's own, which takes the numbers without a dot.
        variable = f"{row['arch_variable']}={shlex.quote(value.replace('.', ''))}"
    command = _command(build, row, name, variable)
    return Advice(True, tuple(notes), (command,))


def _built_only(
    build: Build, row: dict[str, object], name: str, capabilities: list[Capability]
) -> Advice:
    """The index has wheels alone: no variable changes what is in them."""
    if row.get("by_cuda"):
        said = (
            f"{name} is published built, for each release and each CUDA of torch: torch and {name} "
            "of one release, from the same index, for a CUDA that has code for this GPU, are the "
            "way out."
        )
        return Advice(True, (said,))
    since = [gpu_table().family(capability) for capability in capabilities]
    cuda = max((f.since_cuda for f in since if f is not None), key=parse_cuda, default=None)
    with_cuda = f" with CUDA {cuda} or newer" if cuda and parse_cuda(cuda) >= (11, 8) else ""
    said = (
        f"{name} is published built only, so that pip compiles nothing and TORCH_CUDA_ARCH_LIST "
        f"does nothing: a newer release, built{with_cuda} for this GPU, has the code, where the "
        "project serves the GPU at all; else a build of its source repository with the GPU in its "
        "own list."
    )
    return Advice(True, (said,), (rebuild_command(build.python, name, "", row),))


def _own_targets(
    build: Build, row: dict[str, object], name: str, capabilities: list[Capability]
) -> Advice:
    """The build file passes its own -gencode list: torch then adds none of its variable's."""
    version = build.distribution.version if build.distribution else ""
    used = own_list(name, version)
    said = (
        f"TORCH_CUDA_ARCH_LIST has no effect here: {name}'s setup.py passes its own -gencode "
        "list, and torch then adds none."
    )
    notes, flags = [said], []
    for capability in capabilities:
        here = capability_text(capability)
        target = _in_list(used.targets if used else (), capability, build.torch_cuda)
        if target is not None:
            known = capability_text(target.capability)
            runs = f"{known}, whose code runs on {here}" if known != here else here
            upto = f", up to {target.last}" if target.last else ""
            notes.append(
                f"That list has {runs}, where the nvcc that compiles is of CUDA {target.since} or "
                f"newer{upto}."
            )
            continue
        number = compiled_as(build, capability).replace(".", "")
        flags.append(f"-gencode arch=compute_{number},code=sm_{number}")
        notes.append(
            f"That list{f' of {name} {version}' if version else ''} has nothing that runs on "
            f"{here}: NVCC_APPEND_FLAGS is nvcc's own variable and adds it, where the sources "
            "compile for it."
        )
        notes += _toolkit_notes(build, [capability])
    variables = [f"NVCC_APPEND_FLAGS={shlex.quote(' '.join(flags))}"] if flags else []
    return Advice(True, tuple(notes), (_command(build, row, name, *variables),))


def _in_list(
    targets: Sequence[OwnTarget], capability: Capability, cuda: str | None
) -> OwnTarget | None:
    """The entry whose code runs on a GPU: its own, or the one that the oldest CUDA makes.

    Of those that torch's CUDA cannot make only where there is no other.
    """
    running = [
        one
        for one in targets
        if fit(code_for(f"sm_{one.capability[0]}{one.capability[1]}"), capability).runs == NATIVE
    ]
    mine = parse_cuda(cuda) if cuda else None
    if mine is not None:
        running = [
            one
            for one in running
            if (one.last is None or mine <= parse_cuda(one.last))
            and mine[0] >= parse_cuda(one.since)[0]
        ]
    return min(running, key=lambda one: (parse_cuda(one.since), one.last is not None), default=None)


def _flash(build: Build, limits: Sequence[Limits], capabilities: list[Capability]) -> Advice:
    """FlashAttention: its own check first, then what its build can compile."""
    newest = limits[-1]
    never = [c for c in capabilities if first_accepting(newest.id, c) is None]
    if never:
        return Advice(False, (_no_rebuild(newest, never[0]), *_alternatives(newest, never[0])))
    unserved = [c for c in capabilities if not _choices(newest, c)]
    if newest.arch_variable is None and newest.id == "fa3" and unserved:
        gpu = capability_text(unserved[0])
        said = (
            f"No rebuild can help: the build of {newest.name} compiles for "
            f"{' and '.join(newest.archs)} alone, and neither runs on compute capability {gpu}."
        )
        return Advice(False, (said, *_alternatives(newest, unserved[0])))
    return _flash_command(build, limits, capabilities)


def _flash_command(
    build: Build, limits: Sequence[Limits], capabilities: list[Capability]
) -> Advice:
    used = limits[-1]
    notes: list[str] = []
    version = build.distribution.version if build.distribution else ""
    if not all(used.accepts(c) for c in capabilities):
        notes.append(_accepted_since(build, used, capabilities))
        version = ""
        used = [row for row in all_limits() if row.id == used.id][-1]
    name = build.distribution.name if build.distribution else used.distributions[0]
    row = row_of(name)
    notes += _toolkit_notes(build, capabilities)
    if row is None or not row["source_build"]:
        # No source on the index: only its makers can add code for another GPU.
        notes.append(f"{name} is published built only; a newer release may hold more code.")
        return Advice(True, tuple(notes), (rebuild_command(build.python, name, version, row),))
    variables = [*_flash_variables(used, capabilities), "FLASH_ATTENTION_FORCE_BUILD=TRUE"]
    notes.append(
        "TORCH_CUDA_ARCH_LIST has no effect here: flash-attn's setup.py passes its own -gencode "
        "flags, and torch then adds none."
    )
    return Advice(True, tuple(notes), (_command(build, row, name, *variables, version=version),))


def _accepted_since(build: Build, used: Limits, capabilities: list[Capability]) -> str:
    """From which release on the check lets the refused GPUs pass: a number of flash-attn's own.

    Packages made from its source count their releases themselves: of these it says no number.
    """
    refused = [c for c in capabilities if not used.accepts(c)]
    since = max(first_accepting(used.id, c) or "" for c in refused)
    texts = " and ".join(capability_text(c) for c in refused)
    gpu = "this GPU" if capabilities == refused[:1] else f"compute capability {texts}"
    name = build.distribution.name if build.distribution else used.distributions[0]
    if normalized(name) == normalized(used.distributions[0]):
        return f"Releases from {since} on accept {gpu}; the command gets the newest."
    return (
        f"{used.name} accepts {gpu} from its own release {since} on; the command gets the newest "
        f"release of {name}, which helps if that was made from such a one."
    )


def _flash_variables(used: Limits, capabilities: list[Capability]) -> list[str]:
    """FLASH_ATTN_CUDA_ARCHS where the release has it; nvcc's own variable for Tegra parts."""
    variables = []
    wanted = {choice for c in capabilities for choice in _choices(used, c)[:1]}
    if used.arch_variable is not None:
        value = ";".join(sorted(wanted or {"80"}, key=int))
        variables.append(f"{used.arch_variable}={shlex.quote(value)}")
    extra = [c for c in capabilities if not _choices(used, c)]
    if extra:
        numbers = [f"{c[0]}{c[1]}" for c in extra]
        flags = " ".join(f"-gencode arch=compute_{n},code=sm_{n}" for n in numbers)
        variables.append(f"NVCC_APPEND_FLAGS={shlex.quote(flags)}")
    return variables


def _choices(limits: Limits, capability: Capability) -> list[str]:
    """Of what this release can compile, the numbers whose code runs on a GPU, newest first."""
    numbers = [arch.removeprefix("sm_") for arch in limits.archs]
    running = [
        number for number in numbers if fit(code_for(f"sm_{number}"), capability).runs == NATIVE
    ]
    return sorted(running, key=lambda n: int(n.rstrip("af")), reverse=True)


def _no_rebuild(limits: Limits, capability: Capability) -> str:
    return (
        f"No rebuild can help: {limits.name} itself refuses compute capability "
        f'{capability_text(capability)} ("{limits.refusal.rstrip(".")}"), whatever code it holds.'
    )


def _alternatives(limits: Limits, capability: Capability) -> tuple[str, ...]:
    """Other generations that take this GPU, and torch's own attention."""
    others: dict[str, str] = {}
    for row in all_limits():
        compiled = not row.archs or _choices(row, capability)
        if row.id != limits.id and row.accepts(capability) and compiled:
            others[row.name] = row.distributions[0]
    named = [
        f"{name} ({package}) takes this GPU"
        + (_IN_PART if package == "flash-attn-4" and capability[0] == 12 else "")
        for name, package in others.items()
    ]
    return (f"{'; '.join([*named, _WITHOUT])}.",)


def _toolkit_notes(build: Build, capabilities: list[Capability]) -> list[str]:
    """Which nvcc compiles for these GPUs, and whether this torch's CUDA is one of them."""
    notes = []
    for capability in capabilities:
        family = gpu_table().family(capability)
        if family is None:
            continue
        here = capability_text(capability)
        if build.torch_cuda is not None:
            mine = parse_cuda(build.torch_cuda)
            if mine < parse_cuda(family.since_cuda) and compiled_as(build, capability) != here:
                notes.append(
                    f"The torch here is built with CUDA {build.torch_cuda}, whose nvcc does not "
                    f"know {here} (CUDA {family.since_cuda} or newer does): code for "
                    f"{compiled_as(build, capability)} runs on it too, and is what it can compile."
                )
                continue
            if mine < parse_cuda(family.since_cuda):
                notes.append(
                    f"The torch here is built with CUDA {build.torch_cuda}, which does not know "
                    f"compute capability {here}: CUDA {family.since_cuda} or newer does, and "
                    "a torch built with that comes first."
                )
                continue
            if family.last_cuda and mine > parse_cuda(family.last_cuda):
                notes.append(
                    f"The torch here is built with CUDA {build.torch_cuda}, which compiles for "
                    f"compute capability {here} no more: CUDA {family.last_cuda} was the last."
                )
                continue
        notes.append(
            f"Compiling for {here} takes the nvcc of CUDA {family.since_cuda} or newer"
            + (f", up to {family.last_cuda}." if family.last_cuda else ".")
        )
    return notes


def compiled_as(build: Build, capability: Capability) -> str:
    """The target to build for: the GPU's own, or an older one that runs on it and can be made."""
    here, family = capability_text(capability), gpu_table().family(capability)
    if build.torch_cuda is None or family is None:
        return here
    mine = parse_cuda(build.torch_cuda)
    if mine >= parse_cuda(family.since_cuda):
        return here
    return runs_instead(capability, by_toolkit(mine)) or here


def _command(
    build: Build, row: dict[str, object], name: str, *variables: str, version: str | None = None
) -> str:
    """A pip command with these variables and as many jobs as the machine can bear."""
    jobs = build.jobs if build.jobs is not None else 4
    kept = [
        word
        for word in str(row.get("environment") or "").split()
        if not word.startswith(("MAX_JOBS=", "FLASH_ATTENTION_FORCE_BUILD="))
    ]
    environment = " ".join([*variables, *kept, f"MAX_JOBS={jobs}"])
    if version is None:
        version = build.distribution.version if build.distribution else ""
    return rebuild_command(build.python, name, version, {**row, "environment": environment})
