"""What the text's own versions say of a command: another release in it, a wheel beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.package import build_tags
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import DRIFT, FLAVOUR
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_PLAIN = lazily(r"\d{1,4}(?:\.\d{1,4}){1,3}")
#: Wheels of the text that are spoken of.
_MOST = 3


def beside_it(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with what is to be known of the text's own releases and wheels.

    ``name`` is the failing file's package, None where it is not known.
    """
    if answer.kind not in DRIFT:
        return answer
    notes = [*_other_release(answer, paste, place, name), *_other_wheels(paste, place, name)]
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    if answer.direction == FLAVOUR and new and "flag:on-conda" in paste.versions:
        notes.append(_ON_CONDA)
    return replace(answer, notes=(*notes, *answer.notes)) if notes else answer


#: Said of a file that the text says was compiled against conda's torch.
_ON_CONDA = (
    "The text says that it was compiled against conda's torch: conda-forge's is cxx11, and what is "
    "compiled with its headers and libraries is too. A build of one's own is compiled in the very "
    "environment that it runs in, against pip's torch, with --no-build-isolation."
)


def _other_release(answer: Answer, paste: Paste, place: Place, name: str | None) -> list[str]:
    """That the command compiles another release than the text's, chosen by the torch there."""
    row = row_of(name) if name else None
    own = paste.versions.get(f"pkg:{name}", "")
    older = (row or {}).get("older")
    if row is None or not isinstance(older, list) or not _PLAIN.fullmatch(own):
        return []
    if place.present is None:
        return []
    source = re.compile(rf"{re.escape(str(row['requirement']))}@v?([\d.]{{3,20}})$")
    taken = next((found[1] for text in answer.help if (found := source.search(text))), "")
    if not taken or taken == own or order_key(own) > order_key(taken):
        return []
    return [
        f"The text has {name} {own}, which is of the time of an older torch: the command takes "
        f"{taken}, whose sources are for {place.present.text} too. "
        f"Where the program needs {own} itself, it needs a torch of that time with it."
    ]


def _other_wheels(paste: Paste, place: Place, name: str | None) -> list[str]:
    """Wheels of other packages in the text that are for another torch than the one there."""
    if place.present is None or not name:
        return []
    there = minor_of(place.present.release)
    wrong = []
    for key, version in paste.versions.items():
        torch = build_tags(version).torch if key.startswith("pkg:") else None
        other = key.removeprefix("pkg:")
        if torch is not None and other != name and minor_of(torch) != there:
            wrong.append(f"{other} {version}")
    if not wrong:
        return []
    return [
        f"Not built for {place.present.text}, by its name, is {' and '.join(wrong[:_MOST])} in the "
        "text too: it has to be exchanged as well, or fails next."
    ]
