"""GPUs that a package's own check refuses, and architectures that a compiler does not know."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.flash_limits import Limits, all_limits, first_accepting
from fa_forensics.facts.gpus import Capability, Gpu, capability_text, gpu_table, parse_capability
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.gpu_remedy import Build, rebuild
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.build_targets import (
    helper_lacks,
    in_full,
    leave_out,
    runs_deepspeed,
    toolkit_that_can,
)
from fa_forensics.why.texts.clues import (
    called,
    cuda_version,
    distribution_of,
    flash_rows,
    gpus_of,
    jobs_of,
    package_in,
    raw_python,
    version_of,
)
from fa_forensics.why.texts.gpu.nvrtc_lacks import nvrtc_lacks
from fa_forensics.why.texts.gpu.ptxas_text import ptxas_commands, ptxas_notes

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
    if _exactly(seen.mention.line):
        return _backward_of_fa1(seen)
    package = package_in(seen) or "flash-attn"
    rows: Sequence[Limits] = _by_refusal(seen.mention.line)
    names = [name for row in rows for name in row.distributions]
    if rows and package not in names:
        package = names[0]
    rows = rows or flash_rows(seen, package)
    gpus = gpus_of(seen)[:1] or one_of_two(seen, rows)
    if gpus and rows and not any(row.accepts(gpus[0].capability) for row in rows):
        return refused(seen, gpus[0], package, rows)
    stopping = [row for row in rows if gpus and not row.accepts(gpus[0].capability)]
    if stopping and len(stopping) < len(rows):
        return _of_an_older_release(refused(seen, gpus[0], package, stopping), stopping[-1])
    accepted = f"accepts {_gpus_words(rows[-1])} alone" if rows else "accepts newer GPUs alone"
    older = next(
        (row for row in reversed(rows[:-1]) if row.before and row.gpus != rows[-1].gpus), None
    )
    if older is not None and not gpus:
        accepted = f"accepts {_gpus_words(rows[-1])} alone (its newest releases)"
    cause = (
        f"A check in {package} itself raised this before any kernel ran: it {accepted}, and the "
        "GPU that the tensors are on is none of these. A rebuild or another architecture list "
        "changes nothing."
    )
    notes = (
        []
        if rows and rows[-1].id == "fa4"
        else [
            "On Turing (7.5): FlashAttention 1 (flash-attn 1.x) takes it; on Volta and older no "
            "FlashAttention does. torch's own scaled_dot_product_attention runs on both without "
            "any FlashAttention package.",
        ]
    )
    if gpus:
        notes.append(
            f"The GPU named, {called(gpus[0])}, is one that this check lets pass: the process ran "
            "on another one, or another release of the package did."
        )
    if older is not None and not gpus:
        notes.append(
            f"{package} before {older.before} accepts {_gpus_words(older)} alone and says the same "
            "of every GPU that is newer: there an older copy runs (an old release, or the one in "
            "another package, as xformers has), and a newer release of it is the way out."
        )
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none",
        confidence="medium" if gpus or older else "high",
        help=(f"{seen.python} {TORCH_ARCHS}",), notes=tuple(notes),
    )  # fmt: skip


def _of_an_older_release(answer: Answer, row: Limits) -> Answer:
    """The answer where no release is told, and a newer one than those that refuse takes the GPU."""
    since = f"from {row.before} on take" if row.before else "that are newer take"
    cause = (
        f"{answer.cause} Releases {since} it, so that an older copy is what runs: an old "
        f"{answer.owner}, or the copy that another package brings along (xformers has one)."
    )
    return replace(answer, cause=cause, confidence="medium")


def one_of_two(seen: Seen, rows: Sequence[Limits]) -> tuple[Gpu, ...]:
    """Of two GPUs of one name ("RTX 5000") the one that a check refuses, where it is one."""
    name = seen.versions.get("gpu", "").upper().removeprefix("NVIDIA ")
    two = read_table("gpus.json")["ambiguous"].get(name, {})
    found = [Gpu(full, parse_capability(number)) for number, full in two.items()]
    # A check that refuses the one and takes the other tells which of them it is.
    stopped = [gpu for gpu in found if not any(row.accepts(gpu.capability) for row in rows)]
    return tuple(stopped) if rows and len(stopped) == 1 else ()


def by_build_file(seen: Seen) -> Answer:
    """A package's own setup.py raises: its list of GPUs is none that torch or nvcc has."""
    detail, gpus = seen.mention.detail, gpus_of(seen)[:1]
    package = package_in(seen)
    file = detail["frame"].replace("\\", "/")
    project = package or file.split("/")[-2]
    which = called(gpus[0]) if gpus else "the GPU that the build sees"
    row = detail.get("row")
    cause = (
        f"The build file of {project} raises this itself ({file.rsplit('/', 1)[-1]}"
        f"{f', line {row}' if row else ''}): its own list of GPUs lacks {which}. Neither torch nor "
        "the driver refuses it, and no other torch changes that; a warning of torch about the GPU "
        "beside it is not the cause."
    )
    helps = [f"grep -nE 'capability|sm_|compute_|gencode' {shlex.quote(file)}"]
    notes = [
        "A newer state of the project's source may have the GPU in its list. A list that is "
        "extended by hand helps only where the kernels are written for that GPU.",
    ]
    if gpus and gpus[0].capability >= (9, 0):
        own = f"{capability_text(gpus[0].capability)}a"
        notes.append(
            f"Kernels for FP4, FP8 or wgmma take the target with an a ({own}): code for "
            "another capability of the same major number does not hold them."
        )
    return seen.answer(
        KIND, "FA507", cause, owner=project, direction="none", confidence="high",
        help=(*helps, f"{seen.python} {TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


#: ``Expected is_sm80 || is_sm90``: 8.0 and 9.0 themselves. The check of the GPU says is_sm8x.
_EXACTLY = lazily(r"Expected is_sm(?:80|90)(?: (?:\|\||or) is_sm(?:80|90))* to be true")


def _exactly(line: str) -> bool:
    return _EXACTLY.search(line) is not None


def _backward_of_fa1(seen: Seen) -> Answer:
    """FlashAttention 1's second check, before the backward pass of large heads."""
    gpus = gpus_of(seen)[:1]
    which = f", and {called(gpus[0])} is another one" if gpus and not _large(gpus[0]) else ""
    cause = (
        "A check in FlashAttention 1 (flash-attn before 2.0) raised this before any kernel ran: "
        "its backward pass for head dimensions over 64 runs on compute capability 8.0 and 9.0 "
        f"alone (A100, H100), for want of shared memory on others{which}. Forward, and for head "
        "dimensions up to 64, other GPUs serve. A rebuild or another architecture list changes "
        "nothing."
    )
    return seen.answer(
        KIND, "FA507", cause, owner="flash-attn", direction="none", confidence="high",
        help=(
            f'{seen.pip} install --no-build-isolation "flash-attn>=2"',
            f"{seen.python} {TORCH_ARCHS}",
        ),
        notes=(
            "FlashAttention 2 has that limit at larger head dimensions only (over 192). Inference "
            "alone needs no backward pass.",
        ),
    )  # fmt: skip


def _large(gpu: Gpu) -> bool:
    return gpu.capability in ((8, 0), (9, 0))


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
    notes = advice.notes
    if not advice.helps:
        cause += " No rebuild and no architecture list changes that."
        notes = (*notes, _SETTING)
    if row.id == "fa2" and first_accepting("fa1", gpu.capability) is not None:
        notes = (*notes, _FIRST_GENERATION)
    helps = advice.help or (f"{seen.python} {TORCH_ARCHS}",)
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none", confidence="high",
        help=helps, notes=notes,
    )  # fmt: skip


_SETTING = (
    "The program that calls it has to be told: its setting of the attention goes to torch's own "
    "(sdpa) or to another that serves this GPU (xformers), where it has the choice."
)
_FIRST_GENERATION = (
    "FlashAttention 1 (flash-attn 1.x, of 2023) is compiled from source, on the torch of its time, "
    "and its functions have other names than those of flash-attn 2."
)


#: Who said that it does not know an architecture: what to call it, its owner, how to ask it, and
#: what else is to be known of it.
_COMPILERS = {
    "ptxas": (
        "ptxas", "ptxas", "", "",
    ),
    "torch": (
        "torch's build helper", "torch", "{python} -c 'import torch; print(torch.__version__)'",
        "The list of names is torch's own (TORCH_CUDA_ARCH_LIST is held against it): a newer torch "
        "knows newer GPUs, whatever nvcc is there.",
    ),
    "nvcc": (
        "the nvcc", "nvcc", "nvcc --version",
        "The toolkit that compiles must also be of torch's own CUDA major version, so a newer "
        "torch may have to come first.",
    ),
}  # fmt: skip


def lacks_arch(seen: Seen) -> Answer:
    """A compiler of CUDA's does not know an architecture: NVRTC, or one that is a program."""
    said = (seen.mention.detail.get("compiler") or seen.mention.line).lower()
    return nvrtc_lacks(seen) if "nvrtc" in said else compiler_lacks_arch(seen)


def compiler_lacks_arch(seen: Seen) -> Answer:
    """``nvcc fatal : Unsupported gpu architecture 'compute_120'``, and its like."""
    gpus = gpus_of(seen)[:1]
    said = (seen.mention.detail.get("compiler") or seen.mention.line).lower()
    found = next((name for name in ("ptxas", "torch") if name in said), "nvcc")
    code = "FA510" if found == "ptxas" else "FA883"
    name, owner, ask, note = _COMPILERS[found]
    cuda = seen.versions.get("cuda")
    if found == "nvcc":
        name = f"the nvcc of CUDA {cuda}" if cuda else "the nvcc that was found"
    name = name if name[0].isupper() or found == "ptxas" else name[0].upper() + name[1:]
    asks, own_notes = _ptxas(seen, gpus) if found == "ptxas" else (
        (ask.format(python=seen.python),), (note,),
    )  # fmt: skip
    helps = (*asks, f"{seen.python} {TORCH_ARCHS}")
    asked = _asked(seen)
    if found == "torch" and (told := helper_lacks(seen, asks[0])) is not None:
        return told
    if asked in gpu_table().gone:
        return _dropped(seen, name, owner, capability_text(asked), gpu_table().gone[asked])
    if not gpus:
        return seen.answer(
            KIND, code, f"{name} does not know the architecture that was asked for.",
            owner=owner, direction="none", confidence="medium", help=helps, notes=own_notes,
        )  # fmt: skip
    family = gpu_table().family(gpus[0].capability)
    number = in_full(seen, capability_text(gpus[0].capability))
    mine, since = cuda_version(cuda), family.since_cuda if family is not None else ""
    since = gpu_table().own_targets.get(number, since)
    if found == "nvcc" and mine is not None and since and mine >= parse_cuda(since):
        name = "The nvcc that was found"  # the CUDA of the text is not the one that ran
    last = family.last_cuda if family is not None else None
    if found == "nvcc" and last and (mine is None or mine > parse_cuda(last)):
        return _dropped(seen, name, owner, number, last)
    cause = f"{name} does not compile for compute capability {number}"
    if found == "torch":
        cause = f"{name} does not know compute capability {number}: this torch is older than it"
    elif family is not None:
        cause += f": that takes CUDA {since} or newer"
        cause += f", up to {family.last_cuda}" if family.last_cuda else ""
    notes = [*own_notes]
    if found == "torch" and family is not None:
        notes.append(f"The nvcc of CUDA {since} or newer compiles for compute capability {number}.")
    if mine is not None and family is not None and mine >= parse_cuda(since):
        notes.insert(
            0,
            f"The CUDA {cuda} that the text names would compile for it: the compiler that ran is "
            "another, older one (of CUDA_HOME, of PATH, or one that a package brings).",
        )
    if found == "nvcc" and family is not None:
        commands, more, calls_for_torch = toolkit_that_can(seen, since, number)
        if not calls_for_torch:
            notes.remove(note)
        helps, notes = (*helps, *commands), [*notes, *more]
    if found in ("nvcc", "torch") and not runs_deepspeed(seen):
        notes.append(leave_out(seen, number))
    return seen.answer(
        KIND, code, f"{cause}.", owner=owner, direction="none", confidence="high", help=helps,
        notes=tuple(notes),
    )  # fmt: skip


def _ptxas(seen: Seen, gpus: Sequence[Gpu]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to ask of ptxas, and what to know of it with the CUDA that the target takes."""
    since = _ptxas_since(seen, gpus)
    return ptxas_commands(seen, since), ptxas_notes(seen, gpus[0] if gpus else None, since)


def _ptxas_since(seen: Seen, gpus: Sequence[Gpu]) -> str:
    """The first CUDA whose ptxas compiles for the target, "" where it is not told."""
    if not gpus:
        return ""
    family = gpu_table().family(gpus[0].capability)
    number = in_full(seen, capability_text(gpus[0].capability))
    return gpu_table().own_targets.get(number, family.since_cuda if family else "")


def _asked(seen: Seen) -> Capability:
    """The capability that was asked for, also one that no table of GPUs has any more."""
    found = re.search(r"(\d{1,2})\.?(\d)", seen.mention.detail.get("arch", ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _dropped(seen: Seen, name: str, owner: str, number: str, last: str) -> Answer:
    """The toolkit is too new: it has dropped an old architecture."""
    cause = (
        f"{name} is too new for compute capability {number}: CUDA {last} is the last that compiles "
        "for it."
    )
    return seen.answer(
        KIND, "FA883", cause, owner=owner, direction="none", confidence="high",
        help=("nvcc --version", f"{seen.python} {TORCH_ARCHS}"),
        notes=(
            f"Without a GPU of that kind, take {number} out of the list: TORCH_CUDA_ARCH_LIST, "
            "CMAKE_CUDA_ARCHITECTURES, or the -gencode options that the package's own setup.py or "
            "CMakeLists.txt writes.",
            f"For a GPU of that kind it takes a toolkit up to CUDA {last}, and a torch that was "
            "built with one of that major version.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "ampere-only": ampere_only,
    "gpu-refused-by-build": by_build_file,
    "arch-unsupported-by-nvcc": lacks_arch,
}
