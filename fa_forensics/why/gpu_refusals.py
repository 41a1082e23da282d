"""GPUs that a package's own check refuses, and architectures that a compiler does not know."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.flash_limits import Limits, all_limits
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.report import Answer
from fa_forensics.rules.gpu_remedy import Build, rebuild
from fa_forensics.why.clues import (
    called,
    distribution_of,
    flash_rows,
    gpus_of,
    jobs_of,
    package_in,
    raw_python,
    version_of,
)
from fa_forensics.why.seen import Answerer, Seen

KIND = "gpu-arch"

#: Tells torch's own code and the extension's apart.
TORCH_ARCHS = (
    "-c 'import torch; print(torch.__version__, torch.cuda.get_device_capability(), "
    "torch.cuda.get_arch_list())'"
)


def build_of(seen: Seen, package: str | None) -> Build:
    """Where a rebuild would happen."""
    return Build(raw_python(seen), distribution_of(seen, package), seen.torch_cuda, jobs_of(seen))


def ampere_only(seen: Seen) -> Answer:
    """``FlashAttention only supports Ampere GPUs or newer.``: the package's own check."""
    package = package_in(seen) or "flash-attn"
    rows = _by_refusal(seen.mention.line) or flash_rows(seen, package)
    gpus = gpus_of(seen)[:1]
    if gpus and rows and not any(row.accepts(gpus[0].capability) for row in rows):
        return refused(seen, gpus[0], package, rows)
    accepted = f"accepts {_gpus_words(rows[-1])} alone" if rows else "accepts newer GPUs alone"
    cause = (
        f"A check in {package} itself raised this before any kernel ran: it {accepted}, and the "
        "GPU that the tensors are on is none of these. A rebuild or another architecture list "
        "changes nothing."
    )
    notes = [
        "On Turing (7.5): FlashAttention 1 (flash-attn 1.x) takes it; on Volta and older no "
        "FlashAttention does. torch's own scaled_dot_product_attention needs none of them.",
    ]
    if gpus:
        notes.append(
            f"The GPU named, {called(gpus[0])}, would be accepted: the tensors were on another one."
        )
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none",
        confidence="medium" if gpus else "high",
        help=(f"{seen.python} {TORCH_ARCHS}",), notes=tuple(notes),
    )  # fmt: skip


def _by_refusal(line: str) -> tuple[Limits, ...]:
    """The rows whose own words a message has, where they are those of one generation."""
    rows = tuple(row for row in all_limits() if row.refusal.rstrip(".") in line)
    return rows if len({row.id for row in rows}) == 1 else ()


def _gpus_words(row: Limits) -> str:
    """``compute capability 8.0 and newer``, ``8.x, 9.0``."""
    words = [f"{gpu[:-1]} and newer" if gpu.endswith("+") else gpu for gpu in row.gpus]
    return f"compute capability {', '.join(words)}"


def refused(seen: Seen, gpu: Gpu, package: str | None, rows: Sequence[Limits]) -> Answer:
    """FlashAttention's own check does not let this GPU through."""
    row = rows[-1]
    version = version_of(seen, package) if package else None
    release = f" ({package} {version})" if version else ""
    advice = rebuild(build_of(seen, package), rows, (gpu,))
    cause = (
        f"{row.name}{release} refuses {called(gpu)} by a check of its own: it accepts "
        f"{_gpus_words(row)} alone."
    )
    if not advice.helps:
        cause += " No rebuild and no architecture list changes that."
    helps = advice.help or (f"{seen.python} {TORCH_ARCHS}",)
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none", confidence="high",
        help=helps, notes=advice.notes,
    )  # fmt: skip


def compiler_lacks_arch(seen: Seen) -> Answer:
    """``nvcc fatal : Unsupported gpu architecture 'compute_120'``."""
    gpus = gpus_of(seen)[:1]
    cuda = seen.mention.detail.get("cuda") or seen.versions.get("cuda")
    mine = f"the nvcc of CUDA {cuda}" if cuda else "the nvcc that was found"
    if not gpus:
        return seen.answer(
            KIND, "FA883",
            f"{mine[0].upper() + mine[1:]} does not know the architecture asked for.",
            owner="nvcc", direction="none", confidence="medium", help=("nvcc --version",),
        )  # fmt: skip
    family = gpu_table().family(gpus[0].capability)
    number = capability_text(gpus[0].capability)
    notes: list[str] = []
    cause = f"{mine[0].upper() + mine[1:]} does not compile for compute capability {number}"
    if family is not None:
        cause += f": that takes CUDA {family.since_cuda} or newer"
        cause += f", up to {family.last_cuda}." if family.last_cuda else "."
        notes.append(
            "The toolkit that compiles must also be of torch's own CUDA major version, so a newer "
            "torch may have to come first."
        )
        notes.append(
            f"Without a GPU of that kind, leave {number} out: TORCH_CUDA_ARCH_LIST, or "
            "FLASH_ATTN_CUDA_ARCHS for flash-attn."
        )
    else:
        cause += "."
    return seen.answer(
        KIND, "FA883", cause, owner="nvcc", direction="none", confidence="high",
        help=("nvcc --version", f"{seen.python} {TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "ampere-only": ampere_only,
    "arch-unsupported-by-nvcc": compiler_lacks_arch,
}
