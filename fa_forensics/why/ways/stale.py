"""A build in a checkout that took the objects of an earlier one: they are of the torch before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import OLDER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.seen import directory_of, file_of
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.builds import in_source_tree, is_module, old_modules_gone

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_OTHERS = lazily(
    r"install --upgrade |^rm -rf build|-m pip install [^\n]{0,80}--no-build-isolation"
    r"|\"torch[=>]=|/path/to/the/failing"
)
_ON_OTHERS = lazily(
    r"(?:One of the two|Another build of|A file that was|[\w-]+ and torch have|The command that b"
    r"|The text says that it was built from source|Installing another torch"
    r"|torch [\d.]{3,9} has no build for the CUDA)"
)


def left_by_a_build(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer where a text tells of a build in a checkout that there was one for another torch.

    It says that it was built again in the same one, or that torch was changed and that a package
    of the checkout was built from source.
    """
    older = answer.kind == "symbol-drift" and answer.direction in (OLDER, UNKNOWN)
    gone = _torch_before(answer, paste, place)
    if not older or not ("flag:same-checkout" in paste.versions or gone):
        return answer
    kept = [text for text in answer.help if not _OTHERS.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    clean = f"rm -rf build *.egg-info && {old_modules_gone(file_of(paste))}"
    again = "python -m pip install --no-build-isolation --no-deps --no-cache-dir -e ."
    helps = (*kept[:at], f"python setup.py clean --all; {clean} && {again}", *kept[at:])
    notes = tuple(n for n in answer.notes if not _ON_OTHERS.match(n))
    if not gone:
        return replace(answer, help=helps, notes=(_AGAIN, *notes))
    cause = (
        f"torch {gone} exports it, and the text says that torch was upgraded from that one: the "
        "file is left from a build for it, and the torch that is loaded is newer."
    )
    return replace(
        answer, cause=cause, direction=OLDER, confidence="high", help=helps, notes=(_LEFT, *notes)
    )


_AGAIN = (
    "The text says that it was built again in the same checkout, behind a change of torch: "
    "setup.py takes what build/ has from the build before, and that is of the torch of then. "
    "The command is for that checkout, removes it and compiles all of it again."
)
_LEFT = (
    "The file was built in a checkout, where setup.py takes what build/ has from the build before: "
    "to build again without removing that changes nothing. The command is for that checkout, "
    "removes it and compiles all of it for the torch that is there."
)


def _torch_before(answer: Answer, paste: Paste, place: Place) -> str:
    """The torch that was there before, which has the name; "" where the file is of no checkout."""
    gone, file = paste.versions.get("before:torch", ""), file_of(paste)
    if not gone or not answer.exported_by:
        return ""
    had = {order_key(release)[:3] for release in answer.exported_by}
    if order_key(gone)[:3] not in had:
        return ""
    if place.present is not None and place.present.release in answer.exported_by:
        return ""
    name = directory_of(file) if file else None
    built = [key for key in paste.versions if key.startswith("flag:built-from-source:")]
    own = f"flag:built-from-source:{name}" in built or (name is None and len(built) == 1)
    here = "-packages/" not in file and (in_source_tree(file) or (own and is_module(file)))
    return gone if here or "flag:same-checkout" in paste.versions else ""
