"""A package whose compiled module is a distribution of its own: that part is built again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.seen import file_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste


def of_its_part(answer: Answer, paste: Paste, name: str | None) -> Answer:
    """The answer with the part in place of the whole, where the file lies in the part's directory.

    The whole fetched from a repository would leave the part as it is, of another release.
    """
    row = row_of(name) if name else None
    part = row.get("part") if row is not None else None
    if row is None or not isinstance(part, Mapping):
        return answer
    if f"/{part['folder']}/" not in file_of(paste):
        return answer
    told = paste.versions.get(f"pkg:{part['distribution']}") or paste.versions.get(f"pkg:{name}")
    release = (told or "").partition("+")[0]
    plain = re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){1,3}(?:\.post\d{1,3})?", release) is not None
    wanted = f"{part['source']}=={release if plain else 'X.Y.Z'}"
    whole = re.compile(rf"{re.escape(str(row['requirement']))}(?:@\S{{1,60}})?$")
    source = str(part["distribution"])
    helps = tuple(whole.sub(f"--no-binary {source} {wanted}", text) for text in answer.help)
    if helps == answer.help:
        return answer
    which = "" if plain else f" X.Y.Z is the release that pip show {name} has."
    note = (
        f"The file is of {part['source']}, a distribution of its own beside {name}, which pip "
        "compiles from its source: that one is built again, in the very release of the others, "
        f"since {name} refuses parts of two releases.{which}"
    )
    return replace(answer, help=helps, notes=(note, *answer.notes))
