"""A build in a checkout that took the objects of an earlier one: they are of the torch before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import OLDER, UNKNOWN
from fa_forensics.why.seen import file_of
from fa_forensics.why.ways.builds import old_modules_gone

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_OTHERS = lazily(r"install --upgrade |\"torch[=>]=|/path/to/the/failing")
_ON_OTHERS = lazily(r"(?:One of the two|Another build of|A file that was|[\w-]+ and torch have)")


def left_by_a_build(answer: Answer, paste: Paste) -> Answer:
    """The answer where the text says that it was built again in the same checkout."""
    older = answer.kind == "symbol-drift" and answer.direction in (OLDER, UNKNOWN)
    if "flag:same-checkout" not in paste.versions or not older:
        return answer
    kept = [text for text in answer.help if not _OTHERS.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    gone = f"rm -rf build *.egg-info && {old_modules_gone(file_of(paste))}"
    again = "python -m pip install --no-build-isolation --no-deps --no-cache-dir -e ."
    helps = (*kept[:at], f"python setup.py clean --all; {gone} && {again}", *kept[at:])
    note = (
        "The text says that it was built again in the same checkout, behind a change of torch: "
        "setup.py takes what build/ has from the build before, and that is of the torch of then. "
        "The command is for that checkout, removes it and compiles all of it again."
    )
    notes = tuple(n for n in answer.notes if not _ON_OTHERS.match(n))
    return replace(answer, help=helps, notes=(note, *notes))
