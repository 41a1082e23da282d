"""``ranks`` as text: the ranks that are missing, then what differs between the others."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.compare import Who, difference_blocks
from fa_forensics.render.style import counted, escape, painter, sentence
from fa_forensics.report_compare import RanksReport

#: Runs of ranks, and hosts, that are named one by one.
_RUNS, _HOSTS = 6, 3


def ranks_text(report: RanksReport, color: bool, verbose: bool, width: int) -> str:
    """The whole report, with a line feed at its end."""
    paint = painter(color)
    blocks = [_head(report, width)]
    lines = []
    for rank in report.absent:
        if rank.finding is None:
            continue
        text = f"{rank.finding.title}: {rank.detail}"
        word = f"error[{rank.finding.code}]: "
        wrapped = sentence(text, width, word, "   ")
        wrapped[0] = paint(word.rstrip(), "red") + wrapped[0][len(word.rstrip()) :]
        lines += wrapped
    blocks.append(lines)
    who = ranks_named(report, verbose)
    blocks += difference_blocks(report.comparison, who, color, verbose, width)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(report: RanksReport, width: int) -> list[str]:
    hosts = {rank.host for rank in report.ranks if rank.host}
    text = f"{len(report.answered)} of {counted(report.world_size, 'rank')} answered"
    text += f", on {counted(len(hosts), 'host')}" if hosts else ""
    lines = sentence(text, width, "ranks: ", "       ")
    if report.comparison.reports:
        first = report.comparison.reports[0]
        lines += sentence(f"{first.name}: {first.about}", width, "ranks: ", "       ")
    return lines


def ranks_named(report: RanksReport, verbose: bool) -> Who:
    """How the ranks that hold a value are named: "ranks 0-6, 8 (node1, node2)"."""
    hosts = {rank.rank: rank.host for rank in report.ranks}

    def who(places: Sequence[int]) -> str:
        ranks = [report.answered[place] for place in places]
        runs = intervals(ranks)
        shown = runs if verbose else runs[:_RUNS]
        text = ", ".join(shown) + (f" and {len(runs) - len(shown)} more" if runs != shown else "")
        there = sorted({hosts.get(rank) or "an unknown host" for rank in ranks})
        names = ", ".join(there[:_HOSTS])
        more = f" and {len(there) - _HOSTS} more hosts" if len(there) > _HOSTS else ""
        return escape(f"rank{'s' if len(ranks) != 1 else ''} {text} ({names}{more})")

    return who


def intervals(numbers: Sequence[int]) -> list[str]:
    """Numbers as runs: 0, 1, 2, 5 give "0-2" and "5"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]
