"""Several targets in one run: which come first, who gets one line, and the closing count."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.facts import is_archive_member
from fa_forensics.render.lang import Say, columns, lay_out, plain
from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    file_name,
    flow,
    pieces,
    short_path,
)
from fa_forensics.report import (
    FAILS,
    INCONCLUSIVE,
    LINKS,
    LOADS,
    NO_GPU_CODE,
    Skipped,
    TargetReport,
)

#: Mark, word and colour of each verdict.
VERDICTS = {
    LOADS: ("ok", "loads", "green"),
    LINKS: ("~~", "links", "yellow"),
    FAILS: ("!!", "fails", "red"),
    NO_GPU_CODE: ("!!", "no GPU code", "red"),
    INCONCLUSIVE: ("??", "inconclusive", "yellow"),
}
#: The verdicts as they are counted, bad ones first: the words for one file and for more.
_COUNTED = {
    FAILS: ("fails", "fail"),
    NO_GPU_CODE: ("without GPU code", "without GPU code"),
    INCONCLUSIVE: ("inconclusive", "inconclusive"),
    LINKS: ("links", "link"),
    LOADS: ("loads", "load"),
}
#: The rule that was skipped where this machine has no GPU to judge for: it is said with --verbose.
GPUS = "gpus"
#: How many files a count names.
_NAMED = 10


def told(target: TargetReport) -> list[Skipped]:
    """What was skipped and concerns the file; that a machine has no GPU does not."""
    return [skip for skip in target.skipped if skip.rule != GPUS]


def is_healthy(target: TargetReport) -> bool:
    """Whether it loads or links, was read whole, and nothing above a note was found."""
    quiet = all(finding.severity == "note" for finding in target.findings)
    return target.verdict in (LOADS, LINKS) and quiet and target.problem is None


def names_of(targets: Sequence[TargetReport]) -> list[list[str]]:
    """What each is called in one line: its file name, with more of its path where two share it.

    The archive is named where not all lie in one. Parts, each of them unbreakable.
    """
    short = [file_name(target.member or target.path) for target in targets]
    seen: dict[str, int] = {}
    for name in short:
        seen[name] = seen.get(name, 0) + 1
    homes = {target.path if is_archive_member(target) else "" for target in targets}
    out = []
    for target, name in zip(targets, short, strict=True):
        inside = is_archive_member(target)
        if seen[name] > 1:
            name = (target.member if inside else None) or short_path(target.path)
        place = [f"in {escape(file_name(target.path))}"] if inside and len(homes) > 1 else []
        out.append([escape(name), *place])
    return out


def healthy_lines(
    target: TargetReport, name: list[str], paint: Paint, width: int, say: Say = plain
) -> list[str]:
    """Verdict, name and as much of the headline as one line holds: whole clauses of it.

    It is more than one line only where the name alone is wider than the window. What
    could not be looked at is named, so that nothing reads as better than it is.
    """
    mark, word, style = VERDICTS[target.verdict]
    first = f"{mark} {say(word)}:"
    rules = list(dict.fromkeys(escape(s.rule) for s in told(target)))
    aside = f" ({say('skipped')}: {', '.join(rules)})" if rules else ""
    lines = flow(name, width, f"{first} ", "   ")
    said = shortened(say(target.headline), width - columns(lines[-1] + " - " + aside))
    lines[-1] += (f" - {said}" if said else "") + aside
    lines[0] = paint(first, style) + lines[0][len(first) :]
    return lines


def shortened(headline: str, room: int) -> str:
    """The headline, escaped, in at most ``room`` columns: whole clauses, else words and dots.

    Empty where not even the first word and the dots fit. A C++ name is never cut.
    """
    parts = pieces(escape(headline.strip().removesuffix(".")))
    text = " ".join(parts)
    if columns(text) <= room:
        return text
    if columns(text) > len(text):
        return _cut(text, room)
    for end in range(len(parts) - 1, 0, -1):
        clause = " ".join(parts[:end])
        if clause[-1] in ",;" and len(clause) - 1 <= room:
            return clause[:-1]
    for end in range(len(parts) - 1, 0, -1):
        clause = " ".join(parts[:end])
        if len(clause) + len(" ...") <= room:
            return f"{clause} ..."
    return ""


def _cut(text: str, room: int) -> str:
    """As ``shortened``, of a text in a script without blanks between its words."""
    lines = lay_out(text, room - len(" ..."), "", "")
    if columns(lines[0]) + len(" ...") > room:
        return ""
    clause = max(lines[0].rfind(mark) for mark in "\uff0c\uff1b\uff1a")
    return lines[0][:clause] if clause > 0 else f"{lines[0]} ..."


def summary(
    targets: Sequence[TargetReport], names: Sequence[list[str]], say: Say = plain
) -> list[str]:
    """``12 files: 8 fail (a.so, b.so, ...), 4 load`` in parts; bad ones first and by name."""
    groups = []
    firsts = [name[0] for name in names]
    # The lines above say which archive; here only names that two share need it.
    called = [n[0] if firsts.count(n[0]) == 1 else " ".join(n) for n in names]
    for verdict, words in _COUNTED.items():
        members = [i for i, target in enumerate(targets) if target.verdict == verdict]
        if members:
            parts = pieces(say(f"{len(members)} {words[len(members) > 1]}"))
            if verdict not in (LOADS, LINKS):
                parts += _named([called[i] for i in members])
            groups.append(parts)
    for group in groups[:-1]:
        group[-1] += ","
    return [say(f"{counted(len(targets), 'file')}:"), *(part for group in groups for part in group)]


def _named(names: list[str]) -> list[str]:
    shown = names[:_NAMED]
    if len(names) > _NAMED:
        shown.append(f"{len(names) - _NAMED} more")
    shown = [name + "," for name in shown[:-1]] + shown[-1:]
    return [f"({shown[0]}", *shown[1:-1], f"{shown[-1]})"] if shown[1:] else [f"({shown[0]})"]
