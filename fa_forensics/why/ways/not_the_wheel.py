"""Where the version of a package says nothing of the failing file: another copy, or no wheel."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_RELEASE = lazily(r"\d{1,2}\.\d{1,3}\.\d{1,3}")
#: A file of its own source directory: whole paths alone, and none below site-packages.
_IN_ITS_SOURCE = lazily(r"/(?:(?!-packages/|\.egg/|torch_extensions/)[^\n]){1,500}$")
_BY_PIP = lazily(r"(?:Where pip compiled|[^\n]{0,400}without --no-build-isolation)")


def banner_torch(paste: Paste, key: str) -> str:
    """The release of torch in a banner: ``built_torch`` or ``here_torch``; "" for none."""
    told = next((m.detail[key] for m in paste.mentions if m.detail.get(key)), "")
    found = _RELEASE.match(told)
    return found[0] if found is not None else ""


def may_be_taken_again(answer: Answer, name: str, version: str, place: Place) -> bool:
    """Whether the release of a text is for the torch there, and its failing file of another build.

    The published wheel of that release then lacks no name of that torch.
    """
    torch, present = torch_of(name, version), place.present
    if torch is None or present is None or not present.published or not _PLAIN.fullmatch(version):
        return False
    if (partner_of(name, present.release) or "*").endswith("*"):
        return False  # by the minor version alone: its patch releases may be of other nightlies
    have = {minor_of(release) for release in answer.exported_by}
    return minor_of(torch) == minor_of(present.release) and minor_of(torch) not in have


def own_release_again(answer: Answer, name: str, version: str, place: Place) -> tuple[str, ...]:
    """The commands with that release in place of another one that belongs to the same torch."""
    if not may_be_taken_again(answer, name, version, place):
        return answer.help
    wanted = re.compile(rf"(--force-reinstall --no-deps --no-cache-dir {re.escape(name)}==)[\w.]+$")
    return tuple(wanted.sub(rf"\g<1>{version}", text) for text in answer.help)


_PLAIN = lazily(r"\d{1,3}(?:\.\d{1,4}){1,3}(?:\.post\d{1,3})?")


def of_another_copy(paste: Paste, name: str, version: str, torch: str) -> str:
    """That a release in the text is not the copy whose banner it shows; "" where it may be.

    ``torch`` is the one that the release is for by its number.
    """
    built = banner_torch(paste, "built_torch")
    if not built or built == torch:
        return ""
    return (
        f"{name} {version}, which the text names too, is for torch {torch} by its number, and the "
        f"one that printed the banner was built for torch {built}: it is another copy, or was "
        "compiled from source."
    )


def of_a_nightly(name: str, version: str, torch: str) -> str:
    """What the number of a pre-release says of its torch."""
    return (
        f"{name} {version} is a pre-release: it is for a torch of {torch.rpartition('.')[0]} of "
        "its own day, a nightly or a release candidate, and no release of that number need fit."
    )


def compiled_there(paste: Paste, name: str, file: str) -> bool:
    """Whether a file was compiled from source where it lies: the wheel's torch is not its own."""
    if f"flag:built-from-source:{name}" in paste.versions:
        return True
    return _IN_ITS_SOURCE.match(file) is not None


def from_its_source(answer: Answer, place: Place) -> Answer:
    """The answer with where the flavour of a file came from that was compiled there."""
    told = place.told
    old = not mentions_cxx11(answer.symbol or "", answer.demangled or "")
    container = told is not None and told.abi == "cxx11"
    known = any(_BY_PIP.match(note) for note in answer.notes)
    if answer.direction != FLAVOUR or not old or not container or known:
        return answer
    note = (
        "It was compiled from source, and without --no-build-isolation pip takes a torch of the "
        "package index for that and not the one that is there: up to 2.6 those are pre-cxx11, "
        "which is the file's flavour."
    )
    return replace(answer, notes=(note, *answer.notes))
