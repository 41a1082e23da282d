"""The GPUs that a build compiles for: torch's list of names, and who asks for what."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.build_archs import own_lists
from fa_forensics.facts.gpus import Family, Gpu, capability_text, gpu_table, parse_capability
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.arch_choice import before, by_toolkit, runs_instead
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_command,
    build_variables,
    on_windows,
    package_built,
    unnamed,
    with_toolkit,
)
from fa_forensics.why.texts.clues import called, cuda_version, named_gpu, pip_name, version_of
from fa_forensics.why.torch_names.history import order_key

KIND, COMPILE = "gpu-arch", "FA883"

_ENTRY = r"\d{1,2}\.\d[af]?(?:\+PTX)?"
_LIST = lazily(rf"{_ENTRY}(?:[;, ]{{1,3}}{_ENTRY})*")


def asked_in_full(seen: Seen) -> str:
    """``compute_100a`` → "10.0a", ``10.1+PTX`` → "10.1"; "" where it is no such number."""
    arch = seen.mention.detail.get("arch", "")
    found = re.search(r"(?<![\d.])(\d{1,2})\.(\d)([af]?)", arch) or re.search(
        r"(\d{1,2})(\d)([af]?)$", arch
    )
    return f"{found[1]}.{found[2]}{found[3]}" if found else ""


def in_full(seen: Seen, number: str) -> str:
    """A capability as nvcc was asked for it: with the letter, where the message has one."""
    asked = asked_in_full(seen)
    return asked if asked.rstrip("af") == number else number


def the_list(seen: Seen) -> str:
    """TORCH_CUDA_ARCH_LIST as the text has it, "" where it names none."""
    told = _LIST.match(seen.versions.get("env:TORCH_CUDA_ARCH_LIST", "").strip("'\" "))
    return told[0] if told else ""


def list_lacks(seen: Seen, number: str) -> bool:
    """Whether the text has a TORCH_CUDA_ARCH_LIST without the target that was refused."""
    told, plain = the_list(seen), (asked_in_full(seen) or number).rstrip("af")
    later = seen.paste.version_lines.get("env:TORCH_CUDA_ARCH_LIST", 0) > seen.mention.number
    gpu = named_gpu(seen.versions.get("gpu", ""))
    if later and gpu is not None and capability_text(gpu.capability) == plain:
        return False  # the list came after the refusal, to get around it
    return bool(told) and plain not in _entries(told)


def _entries(told: str) -> list[str]:
    return [one.split("+")[0].rstrip("af") for one in re.split(r"[;, ]+", told)]


def instead(
    seen: Seen, number: str, can: Callable[[Family], bool], who: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) to build for an older target that runs on the same GPU, or without it.

    ``who`` says who compiles it; "" for the nvcc of the CUDA that came with that target.
    """
    told, asked = the_list(seen), asked_in_full(seen) or number
    if list_lacks(seen, number):
        return (), ()
    rest = [one for one in re.split(r"[;, ]+", told) if one and one.split("+")[0] != asked]
    entry = None if asked[-1] in "af" else runs_instead(parse_capability(number), can)
    notes: list[str] = []
    on, gpu = number, other_gpu(seen, number)
    if gpu is not None:  # the code is to run on that one
        on = capability_text(gpu.capability)
        own = gpu_table().family(gpu.capability)
        entry = on if own is not None and can(own) else runs_instead(gpu.capability, can)
    if entry is not None and entry != on:
        if not who:
            made = gpu_table().family(parse_capability(entry))
            who = f"the nvcc of CUDA {made.since_cuda if made else 'X.Y'} or newer compiles it"
        notes.append(
            f"Code for {entry} runs on {on} too, and {who}: {entry} in place of {number} in "
            "the list builds without a newer one."
        )
    if told and rest and "+PTX" in told and not any("+PTX" in one for one in rest):
        rest[-1] += "+PTX"
    if entry is not None and entry not in [one.split("+")[0] for one in rest]:
        rest.append(entry)
    if not rest:
        return (), tuple(notes)
    return with_list(seen, ";".join(rest)), tuple(notes)


def other_gpu(seen: Seen, number: str) -> Gpu | None:
    """The GPU that the text names, where it is of another capability than what was refused."""
    gpu = named_gpu(seen.versions.get("gpu", ""))
    plain = (asked_in_full(seen) or number).rstrip("af")
    return gpu if gpu is not None and capability_text(gpu.capability) != plain else None


def with_list(seen: Seen, value: str, package: str | None = None) -> tuple[str, ...]:
    """Build again with a list of targets; nothing for a package that reads no such list."""
    told, package = package, package or package_built(seen)
    if told is None and package == "flash-attn" and seen.mention.what == "no-kernel-image":
        package = None  # it is only named, has a variable of its own, and refuses older GPUs
    if own_lists(package or ""):
        return ()
    if seen.mention.detail.get("jit") and not on_windows(seen):
        return (" ".join((f'TORCH_CUDA_ARCH_LIST="{value}"', seen.python, "YOUR_PROGRAM.py")),)
    from fa_forensics.rules.remedy import at_tag, row_of

    row = row_of(package) if package else None
    name = (pip_name(seen, package) if package else "") or "PACKAGE"
    variable = "TORCH_CUDA_ARCH_LIST"
    if row is not None and row.get("requirement"):
        name = f"{row['requirement']}{at_tag(row, version_of(seen, package or '') or '')}"
    if row is not None and row.get("arch_variable"):
        variable, value = str(row["arch_variable"]), value.replace(".", "")
    again = (
        f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps {name}"
    )
    again = f"{build_variables(seen, package)}{again}"
    if on_windows(seen):
        return " ".join(("set", f'"{variable}={value}"')), again
    return (f'{variable}="{value}" {again}',)


def _own_toolkit(gpu: Gpu, number: str) -> str:
    """What compiles for the GPU itself, where that is newer than what was refused."""
    family = gpu_table().family(gpu.capability)
    if family is None or gpu.capability < parse_capability(number):
        return ""
    return f" Code for the GPU itself takes the nvcc of CUDA {family.since_cuda} or newer."


def leave_out(seen: Seen, number: str) -> str:
    """How to build without a target: by the list, or, where the list has it not, elsewhere."""
    told, asked = the_list(seen), asked_in_full(seen) or number
    if list_lacks(seen, number):
        return (
            f"TORCH_CUDA_ARCH_LIST in the text ({told}) does not have {asked}: the package's own "
            "build files ask for it. Another release of the package, or its own option that leaves "
            "those kernels out, is the way out where that GPU is not there."
        )
    from fa_forensics.rules.remedy import row_of

    row = row_of(package_built(seen) or "")
    gpu = other_gpu(seen, number)
    if gpu is not None and not told and (row is None or not row.get("arch_variable")):
        said = (
            f"{number} is not for {called(gpu)}, the GPU of the text, and can be left out. Where "
            "no TORCH_CUDA_ARCH_LIST is set, a -gencode line of the project's own build files "
            f"(setup.py) asks for {number}: the variable does not take that out, the line itself "
            "has to go."
        )
        return said + _own_toolkit(gpu, number)
    if row is not None and row.get("arch_variable"):
        return (
            f"Without a GPU of that kind, leave {number} out: {row['arch_variable']}, which takes "
            "such numbers without their dot."
        )
    return (
        f"Without a GPU of that kind, leave {number} out: TORCH_CUDA_ARCH_LIST, or "
        "FLASH_ATTN_CUDA_ARCHS for flash-attn."
    )


def toolkit_that_can(
    seen: Seen, since: str, number: str
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """(commands, notes, whether a newer torch may have to come first).

    The commands name another toolkit of the machine, where one is told that compiles it.
    """
    calls = not list_lacks(seen, number)
    calls = calls and (seen.torch_cuda or "").split(".")[0] != since.split(".")[0]
    notes: list[str] = []
    nvcc = seen.mention.detail.get("nvcc", "")
    if nvcc.startswith("/usr/bin/"):
        notes.append(
            f"{nvcc} is the toolkit of the distribution (package nvidia-cuda-toolkit), often older "
            "than one in /usr/local/cuda: CUDA_HOME and PATH decide which is taken."
        )
    if "driver_cuda" in seen.versions:
        notes.append(
            f"The CUDA {seen.versions['driver_cuda']} of nvidia-smi is the newest that the driver "
            "runs; it says nothing of the toolkit."
        )
    needed, mine = cuda_version(since), cuda_version(seen.versions.get("cuda"))
    other: tuple[str, ...] = ()
    if needed is not None:
        known = mine is not None and mine < needed
        can = by_toolkit(mine) if known and mine is not None else before(needed)
        who = "this nvcc compiles it" if known else ""
        other, more = instead(seen, number, can, who)
        other, more = ((), ()) if runs_deepspeed(seen) else (other, more)
        notes += more
    told = (*seen.mention.detail.get("others", "").split(), seen.torch_cuda or "")
    fitting = [one for one in told if needed and (cuda_version(one) or (0, 0)) >= needed]
    look = () if on_windows(seen) else ("ls -d /usr/local/cuda*",)
    again, more = build_or_run(seen)
    notes += more
    if not fitting:
        notes.append(
            f"X.Y is a toolkit of CUDA {since} or newer among those that are listed; where there "
            "is none, one has to be installed first."
        )
        *first, last = again
        helps = (*look, *first, *with_toolkit(seen, "X.Y", last), *other)
        return helps, tuple(notes), calls
    *first, last = again
    return (*look, *first, *with_toolkit(seen, fitting[0], last), *other), tuple(notes), False


def runs_deepspeed(seen: Seen) -> bool:
    """Whether it is DeepSpeed that compiles as it runs, for the GPUs that it finds."""
    detail = seen.mention.detail
    return bool(detail.get("jit")) and package_built(seen) == "deepspeed"


def build_or_run(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) to build again: by pip, or by the run where it compiles as it runs."""
    detail, package = seen.mention.detail, package_built(seen)
    if not detail.get("jit") or on_windows(seen):
        again = f"{build_variables(seen, package)}{build_command(seen)}"
        return (again,), unnamed(again)
    made = detail.get("made", "*")
    note = (
        "It is compiled as the program runs, so CUDA_HOME has to be set for the run itself; the "
        "command before removes what was half made."
    )
    if runs_deepspeed(seen):
        note += (
            " DeepSpeed empties TORCH_CUDA_ARCH_LIST for that and takes the GPUs that it finds; "
            "DS_BUILD_OPS=1 (or one operation's, DS_BUILD_FUSED_ADAM=1) with pip install compiles "
            "beforehand, and goes by the list."
        )
    gone = f"rm -rf ~/.cache/torch_extensions/*/{made}"
    return (gone, " ".join((seen.python, "YOUR_PROGRAM.py"))), (note,)


def helper_lacks(seen: Seen, ask: str) -> Answer | None:
    """``Unknown CUDA arch (10.1)``: by the releases of torch that know the entry."""
    asked = asked_in_full(seen)
    if not asked:
        return None
    rows = build_names()["helper_archs"]
    torch = re.match(r"\d+\.\d+", seen.torch or "")
    mine = f" (torch {seen.torch})" if torch else ""
    if asked not in rows:
        cause = (
            f"torch's build helper{mine} does not know compute capability {asked}, and no torch on "
            "record does: the entry of TORCH_CUDA_ARCH_LIST, or of the list that the package sets, "
            "is mistyped, or is for a newer torch than these."
        )
        return _helper(seen, cause, ask, "medium", asked)
    first, last = rows[asked]
    if last and (not torch or order_key(torch[0]) > order_key(last)):
        cause = (
            f"torch's build helper{mine} does not know {asked} any more: torch {first} to {last} "
            "took that entry of TORCH_CUDA_ARCH_LIST, or of the list that the package sets."
        )
        new = build_names()["renumbered"].get(asked.rstrip("a"))
        notes: tuple[str, ...] = ()
        if new:
            notes = (
                f"CUDA 13 gave compute capability {asked} the number {new}: with it and a newer "
                f"torch the entry is {new}; without such a GPU leave it out.",
            )
        return _helper(seen, cause, ask, "high" if torch else "medium", asked, notes)
    if torch and order_key(torch[0]) >= order_key(first):
        return None
    cause = (
        f"torch's build helper{mine} does not know compute capability {asked}: torch {first} and "
        "newer take it."
    )
    limit = torch[0] if torch else None

    def can(family: Family) -> bool:
        row = rows.get(capability_text(family.capability))
        if row is None or (row[1] and limit is not None):
            return False
        key = order_key(row[0])
        return key <= order_key(limit) if limit else key < order_key(first)

    who = "this torch knows it" if limit else "an older torch knows it"
    commands, more = instead(seen, asked, can, who)
    return _helper(seen, cause, ask, "high", asked, (*more, *_toolkit_too(seen, asked)), commands)


def _toolkit_too(seen: Seen, asked: str) -> tuple[str, ...]:
    """Where the nvcc that the text names does not compile for the entry either."""
    plain = asked.rstrip("af")
    family = gpu_table().family(parse_capability(plain))
    mine = cuda_version(seen.versions.get("cuda"))
    since = cuda_version(family.since_cuda) if family is not None else None
    if family is None or mine is None or since is None or mine >= since:
        return ()
    return (
        f"The nvcc of CUDA {seen.versions['cuda']} does not compile for {plain} either: that takes "
        f"CUDA {family.since_cuda} or newer.",
    )


def _helper(
    seen: Seen,
    cause: str,
    ask: str,
    confidence: str,
    asked: str,
    more: tuple[str, ...] = (),
    commands: tuple[str, ...] = (),
) -> Answer:
    renumbered = asked.rstrip("a") in build_names()["renumbered"]
    look = "echo %TORCH_CUDA_ARCH_LIST%" if on_windows(seen) else "echo $TORCH_CUDA_ARCH_LIST"
    return seen.answer(
        KIND, COMPILE, cause, owner="torch", direction="none", confidence=confidence,
        help=(ask, look, f"grep -rnF '{asked}' setup.py CMakeLists.txt", *commands),
        notes=(
            "The list of names is torch's own (TORCH_CUDA_ARCH_LIST is held against it), whatever "
            "nvcc is there and whether or not a GPU is seen.",
            *more,
            *(() if renumbered else (leave_out(seen, asked),)),
        ),
    )  # fmt: skip
