"""A failing file that is on this machine: which torch has all the names that it needs."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import intervals
from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: The release of the command, in the note on it.
_IN_NOTES = lazily(r"(\bin torch |--torch )(\d{1,2}(?:\.\d{1,3}){2})(?=[ ,])")
_TORCH = lazily(r"\"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})\"")


def of_the_file_here(answer: Answer, paste: Paste, place: Place, tables: Tables) -> Answer:
    """The answer with a torch that has all names of the file, where that can be read here.

    The message gives one name, which more releases have than all that the file needs. A file
    under that path which does not need the name is another one, and is left out.
    """
    typed = next((found for text in answer.help if (found := _TORCH.search(text))), None)
    file = file_of(paste)
    if typed is None or answer.kind not in DRIFT or not answer.symbol or not os.path.isabs(file):
        return answer
    releases = _with_all_names(file, answer.symbol, place, tables)
    if not releases or typed["release"] in releases or tables.ages is None:
        return answer
    asked = order_key(typed["release"])
    newer = [one for one in releases if order_key(one) > asked]
    wanted = newer[0] if newer else releases[-1]
    runs = intervals(releases, tables.ages.releases(place.machine))
    spans = ", ".join(a if a == b else f"{a} \u2013 {b}" for a, b in runs)
    note = (
        f"The file is on this machine, and was asked for the file's other names: torch {spans} "
        "have all that it needs of torch, as published."
    )
    old = typed["release"]
    helps = [text.replace(f'"torch=={old}"', f'"torch=={wanted}"') for text in answer.help]
    notes = [
        _IN_NOTES.sub(lambda m: f"{m[1]}{wanted}" if m[2] == old else m[0], text)
        for text in answer.notes
    ]
    return replace(answer, help=tuple(helps), notes=(note, *notes))


def _with_all_names(file: str, symbol: str, place: Place, tables: Tables) -> tuple[str, ...]:
    """The releases that export each name of torch's that the file needs; () where unknown."""
    from fa_forensics.facts.dependents import needed_names

    ages = tables.ages
    names = needed_names(file) if os.path.isfile(file) else None
    if ages is None or names is None or symbol not in names:
        return ()
    of_torch = [name for name in names if is_torch(owner_of(name, None, demangle(name)))]
    # A name of torch's that no release has comes from the file's package, or from a nightly.
    return ages.exporting_all(of_torch, place.machine)[0]
