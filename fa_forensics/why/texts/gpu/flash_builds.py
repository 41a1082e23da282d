"""How FlashAttention's files are built again for a GPU: its own, and those of its csrc/."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.build_archs import PartOfFlash, parts_of_flash
from fa_forensics.facts.flash_limits import Limits
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import NONE, code_for, fit, what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import cuda_version, inspect_for, words_of
from fa_forensics.why.texts.gpu.gpu_code_owner import bundler, own_copy, printed_by_fa3, shown
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS

_NEEDS_NONE = (
    "torch's own scaled_dot_product_attention (SDPA) needs no FlashAttention package: programs "
    "with a choice of attention can be set to it."
)

#: A source file of one of the extensions below csrc/ that flash-attn's own build does not compile.
_PART = lazily(
    r"flash[-_]attention[^\s]{0,80}[/\\\\]csrc[/\\\\](?P<folder>layer_norm|fused_dense_lib|xentropy|"
    r"rotary|ft_attention|fused_softmax)[/\\\\]"
)


def part_of_flash(seen: Seen, gpus: Sequence[Gpu]) -> Answer | None:
    """No code for a GPU in an extension of flash-attention's csrc/, which is built by itself.

    csrc/layer_norm/setup.py and its like pass -gencode for 7.0, 8.0 and 9.0 and read no variable
    of FlashAttention's; csrc/fused_dense_lib leaves the list to torch.
    """
    found = _PART.search(words_of(seen))
    if found is None:
        return None
    folder = found["folder"]
    part = parts_of_flash()[folder]
    gpu = gpus[0] if gpus else None
    if gpu is not None and _compiled_for(seen, part, gpu):
        return _of_other_build(seen, folder, gpu)
    family = seen.versions.get("gpu_family", "")
    which = (
        f"{shown(seen, gpu)}, which runs {what_would_run(gpu.capability)}" if gpu else "this GPU"
    )
    if gpu is None and family:
        which = f"the {family} GPU that the text names ({_capabilities(family)})"
    own = bool(part.targets)
    cause = (
        f"{part.module}, an extension of its own in flash-attention's repository (csrc/{folder}), "
        f"holds no code for {which}"
    )
    if own:
        cause += (
            ": its setup.py passes a fixed list, compute capability 7.0 and 8.0, and 9.0 from CUDA "
            "11.8 on"
        )
    cause += ". Torch and the driver play no part, and neither does flash-attn itself."
    again = _build_of_part(seen, folder, gpu, own)
    notes = _notes_of_part(folder, gpu, own)
    return seen.answer(
        KIND, "FA504", cause, owner=part.module, direction="none",
        confidence="high" if gpu or family else "medium",
        help=(f"{seen.python} {TORCH_ARCHS}", *again), notes=tuple(notes),
    )  # fmt: skip


def _compiled_for(seen: Seen, part: PartOfFlash, gpu: Gpu) -> bool:
    """Whether its setup.py's list has code that runs on a GPU, with the CUDA that the text tells.

    Without one told, what takes a newer CUDA than the oldest of the list does not count.
    """
    told = cuda_version(seen.versions.get("cuda") or seen.torch_cuda)
    since = min((cuda_version(one.since) or (0, 0) for one in part.targets), default=(0, 0))
    made = [one for one in part.targets if (cuda_version(one.since) or (0, 0)) <= (told or since)]
    return any(
        fit(code_for(f"sm_{one.capability[0]}{one.capability[1]}"), gpu.capability).runs != NONE
        for one in made
    )


def _of_other_build(seen: Seen, folder: str, gpu: Gpu) -> Answer:
    """The list of its setup.py covers the GPU: the file was not made by it, or is not the one."""
    part = parts_of_flash()[folder]
    cause = (
        f"The call is in {part.module}, an extension of its own in flash-attention's repository "
        f"(csrc/{folder}), and the list in its setup.py has code that runs on {shown(seen, gpu)}: "
        "the file that is loaded is not of such a build (an older one, or one for a list of "
        "somebody's own), or an earlier call of another file failed and is reported here."
    )
    command = (
        f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
        f'"{_address(folder)}"'
    )
    return seen.answer(
        KIND, "FA504", cause, owner=part.module, direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (gpu,), part.module), command),
        notes=(
            "inspect shows what the file that is loaded holds; CUDA_LAUNCH_BLOCKING=1 before the "
            "program has the call that fails reported where it is made.",
        ),
    )  # fmt: skip


def _address(folder: str) -> str:
    return f"git+https://github.com/Dao-AILab/flash-attention#subdirectory=csrc/{folder}"


def _build_of_part(seen: Seen, folder: str, gpu: Gpu | None, own: bool) -> tuple[str, ...]:
    """Its build from the repository, with the target added."""
    number = capability_text(gpu.capability).replace(".", "") if gpu else "XY"
    address = _address(folder)
    install = (
        f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
        f'"{address}"'
    )
    if own:
        flags = f"-gencode arch=compute_{number},code=sm_{number}"
        if on_windows(seen):
            return f'set "NVCC_APPEND_FLAGS={flags}"', install
        return (f"NVCC_APPEND_FLAGS='{flags}' {install}",)
    value = capability_text(gpu.capability) if gpu else "X.Y"
    if on_windows(seen):
        return f'set "TORCH_CUDA_ARCH_LIST={value}"', install
    return (f'TORCH_CUDA_ARCH_LIST="{value}" {install}',)


def _notes_of_part(folder: str, gpu: Gpu | None, own: bool) -> list[str]:
    """What to know of such a build, and what does without it."""
    other = parts_of_flash()[folder].instead
    notes = [] if gpu else [
        f"{'XY' if own else 'X.Y'} is the GPU's compute capability"
        f"{' without its dot' if own else ''}, as the first command prints it."
    ]  # fmt: skip
    if own:
        notes.append(
            "That setup.py reads neither FLASH_ATTN_CUDA_ARCHS nor TORCH_CUDA_ARCH_LIST; "
            "NVCC_APPEND_FLAGS is nvcc's own variable and adds the target. In a source directory "
            f"the same is a pair of cc_flag lines more in csrc/{folder}/setup.py."
        )
    notes.append(
        f"To build flash-attn again does not touch it. Without it: {other}, which needs no such "
        "build."
    )
    row = gpu_table().family(gpu.capability) if gpu is not None else None
    if gpu is not None and row is not None:
        notes.append(
            f"Compiling for {capability_text(gpu.capability)} takes the nvcc of CUDA "
            f"{row.since_cuda} or newer."
        )
    return notes


def gpu_at_hand(seen: Seen) -> str:
    """What the text tells of the GPU, where it gives no name: its family, or nothing."""
    family = seen.versions.get("gpu_family", "")
    if not family:
        return "the GPU at hand; the text does not name the GPU"
    return f"the GPU at hand, of which the text says {family} ({_capabilities(family)})"


def _capabilities(family: str) -> str:
    """``compute capability 10.0, 10.3, 11.0, 12.0 or 12.1`` for Blackwell."""
    rows = [one for one in gpu_table().families if one.architecture.lower() == family.lower()]
    numbers = [capability_text(one.capability) for one in rows]
    if not numbers:
        return family
    *first, last = numbers
    return f"compute capability {', '.join(first) + ' or ' if first else ''}{last}"


def flash_again(
    seen: Seen, package: str | None, row: Limits
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """FlashAttention's own variable, on Windows and elsewhere, and what needs no build."""
    install = (
        f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
        f"{package}"
    )
    choices = ", ".join(row.arch_choices)
    said = (
        f"XY is one of {choices}, which are all that {row.arch_variable} takes: the greatest that "
        "is not above the GPU's compute capability without its dot, as the first command prints "
        "it (80 for 8.x, 100 for 10.x, 120 for 12.x). Where torch's own list does not "
        "cover the GPU, another torch comes first."
    )
    if not on_windows(seen):
        variables = f"{row.arch_variable}=XY FLASH_ATTENTION_FORCE_BUILD=TRUE"
        return (f"{variables} {install}",), (said, _NEEDS_NONE)
    commands = (f"set {row.arch_variable}=XY", "set FLASH_ATTENTION_FORCE_BUILD=TRUE", install)
    wheel = (
        "The project has no wheels for Windows: one that somebody else made holds the GPUs that it "
        "was made for, and one that was made with this GPU in its list is the other way out."
    )
    return commands, (said, wheel, _NEEDS_NONE)


def hopper_alone(seen: Seen, row: Limits) -> Answer:
    """FlashAttention 3 without a GPU named: what its build can hold at all says enough."""
    cause = (
        f'{row.name} is compiled for {" and ".join(row.archs)} alone, and code with an "a" runs '
        "on that one part, here compute capability 9.0 (H100, H200), without PTX to fall back on. "
        "On Blackwell (10.x, 12.x) no rebuild and no architecture list helps."
    )
    bundled = bundler(seen)
    owner = bundled or row.distributions[0]
    return seen.answer(
        KIND, "FA504", cause, owner=owner, direction="none", confidence="high",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (), owner)),
        notes=(
            *((own_copy(bundled),) if bundled else printed_by_fa3(seen)),
            "FlashAttention 2 (flash-attn), FlashAttention 4 (flash-attn-4) and torch's own "
            "scaled_dot_product_attention serve other GPUs.",
        ),
    )  # fmt: skip
