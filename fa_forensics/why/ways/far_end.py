"""A torch that is typed for one name of a file, and the file's other names."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.atlas.builds import intervals, minor_of
from fa_forensics.facts.python_api import torches_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import OLDER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key

#: The release in which the name of every function with an optional parameter changed
#: (c10::optional became std::optional), so that hardly a file fits on both of its sides.
_CHANGE = "2.2.0"
_TORCH = lazily(r"\"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})\"")
#: Notes that tell the file's torch by another sign, or the same of its other names.
_TOLD = ("was built for torch", "for the file's other names", "compiled with")


def not_at_the_far_end(answer: Answer, place: Place, tables: Tables, package: str | None) -> Answer:
    """The answer for a file older than torch, with the torch that most releases of it want.

    One name tells a span of releases, which is said; so is a change that parts the span.
    """
    if place.told is None or answer.kind != "symbol-drift" or tables.ages is None:
        return answer
    if answer.direction not in (OLDER, UNKNOWN) or any(w in n for n in answer.notes for w in _TOLD):
        return answer
    typed = next((found for text in answer.help if (found := _TORCH.search(text))), None)
    release = typed["release"] if typed is not None else ""
    known = tables.ages.releases(place.machine)
    if release not in answer.exported_by or release not in known:
        return answer
    runs = intervals(answer.exported_by, known)
    first, last = next(
        (run for run in runs if order_key(run[0]) <= order_key(release) <= order_key(run[1])),
        (release, release),
    )
    having = [r for r in answer.exported_by if order_key(first) <= order_key(r) <= order_key(last)]
    minors = dict.fromkeys(minor_of(one) for one in having)
    if len(minors) < 2:
        return answer
    nearer = _before_the_change(having, release, place, tables)
    of = [order_key(one) < order_key(_CHANGE) for one in torches_of(package or "") if one in having]
    wanted = nearer if sum(of) * 2 > len(of) else release
    helps = tuple(
        _TORCH.sub(f'"torch=={wanted}"', text) if _TORCH.search(text) else text
        for text in answer.help
    )
    notes = [
        f"torch {first} \u2013 {last} have this name; for the file's other names it has to be near "
        "the one it was built on (fa-forensics inspect tells that of a file for Linux)."
    ]
    if nearer != release:
        other = release if wanted == nearer else nearer
        notes.append(
            "In 2.2.0 the name of every function with an optional parameter changed: a file "
            f"that was built on torch {minor_of(other)} needs {other} in place of {wanted}."
        )
    return replace(answer, help=helps, notes=(*answer.notes, *notes))


def _before_the_change(having: list[str], release: str, place: Place, tables: Tables) -> str:
    """The last release before the change that serves the text's Python; else the one given."""
    python = place.told.python if place.told is not None else None
    if minor_of(release) != minor_of(_CHANGE) or tables.ages is None:
        return release
    before = [one for one in having if order_key(one) < order_key(_CHANGE)]
    builds = (tables.ages.build(one, place.machine) for one in reversed(before))
    fitting = (b for b in builds if b is not None and (not python or python in b.pythons))
    found = next(fitting, None)
    return found.release if found is not None else release
