"""Which release of a package an old CUDA still compiles, and which toolkit does."""

from __future__ import annotations

import re
from typing import NamedTuple

from fa_forensics.facts.numbers import minor_numbers
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import version_of


class Fitting(NamedTuple):
    """What torch's CUDA means for a build.

    command: pip's, with the release that this CUDA compiles; "" where it compiles none.
    cuda: the toolkit to take: torch's own, or a newer one of its major version.
    notes: why, in sentences.
    """

    command: str
    cuda: str
    notes: tuple[str, ...]


def fitting(seen: Seen, package: str | None, cuda: str | None, command: str) -> Fitting:
    """The build as torch's CUDA allows it: the newest release may want a newer nvcc."""
    same = Fitting(command, cuda or "X.Y", ())
    if not package or not cuda:
        return same
    by_name = re.search(rf" {re.escape(package)}$", command)
    if by_name is not None and (spans := _spans(seen, package)):
        return _of_a_span(package, cuda, command[: by_name.start()], spans) or same
    least = _least(seen, package)
    if not least or minor_numbers(cuda) >= minor_numbers(least):
        return same
    if cuda.split(".")[0] == least.split(".")[0]:
        return Fitting(command, least, (
            f"{package} is compiled with nvcc of CUDA {least} or newer: a toolkit of that minor "
            f"version goes with a torch for CUDA {cuda}, which is of the same major version.",
        ))  # fmt: skip
    return Fitting("", cuda, (
        f"{package} is compiled with nvcc of CUDA {least} or newer, and torch's own check refuses "
        f"that with a torch for CUDA {cuda}: no toolkit serves both, so that torch has to be a "
        f"build for CUDA {least.split('.')[0]} or newer first.",
    ))  # fmt: skip


def _of_a_span(
    package: str, cuda: str, head: str, spans: tuple[tuple[str, str], ...]
) -> Fitting | None:
    """None where the newest release compiles; else the last releases that do."""
    least = spans[-1][1]
    if minor_numbers(cuda) >= minor_numbers(least):
        return None
    first = next(i for i, (_, wants) in enumerate(spans)
                 if minor_numbers(wants) > minor_numbers(cuda))  # fmt: skip
    if first == 0:
        return Fitting("", cuda, (
            f"No release of {package} is compiled with a CUDA before {spans[0][1]}: torch has to "
            "be a build for a newer CUDA first.",
        ))  # fmt: skip
    below = re.sub(r"^(\d+\.\d+)\.0$", r"\1", spans[first][0])
    return Fitting(f'{head} "{package}<{below}"', cuda, (
        f"The newest {package} is compiled with CUDA {least} or newer, and for a newer torch than "
        f"one of CUDA {cuda}: the command takes the last release before {below}, which asks for "
        f"CUDA {spans[first - 1][1]} or newer. Where the program needs a newer one, torch has to "
        "be newer too.",
    ))  # fmt: skip


def _spans(seen: Seen, package: str) -> tuple[tuple[str, str], ...]:
    """(first release, the oldest CUDA that compiles it), oldest first; () where it is told."""
    from fa_forensics.facts.flash_limits import limits_of, release_key

    if package != "flash-attn" or version_of(seen, package) is not None:
        return ()
    start = ((), (0, 0))
    rows = sorted(limits_of(package, None, None), key=lambda row: release_key(row.since) or start)
    return tuple((row.since, row.min_cuda) for row in rows if row.min_cuda)


def _least(seen: Seen, package: str) -> str:
    """The oldest CUDA that compiles a package; "" where none is stated for the release there."""
    from fa_forensics.facts.flash_limits import release_key
    from fa_forensics.rules.remedy import row_of

    row, told = row_of(package), version_of(seen, package)
    since = release_key(str(row.get("min_cuda_since", ""))) if row is not None else None
    own = release_key(told) if told else None
    if since is not None and own is not None and own < since:
        return ""
    return str(row.get("min_cuda", "")) if row is not None else ""
