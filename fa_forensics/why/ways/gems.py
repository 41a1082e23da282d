"""Ruby gems on libtorch: a torch without Python, and remedies without pip."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: An extension of a gem: .../gems/torchaudio-0.1.2/lib/torchaudio/ext.so
_GEM = lazily(r"/gems/(?P<name>[A-Za-z][\w-]{0,60}?)-(?P<version>\d[\w.]{0,30})/")
_OF_PYTHON = lazily(r"\bpip |\bpython\b|^rm -rf build")


def gem_of(paste: Paste) -> str:
    """The gem that the failing file is of; "" for none."""
    file = file_of(paste)
    found = _GEM.search(file)
    return found["name"] if found is not None else ""


def _release_of(paste: Paste) -> str:
    """The release of that gem, by the same path: a newer one asks for a newer torch-rb."""
    found = _GEM.search(file_of(paste))
    return f" -v {found['version']}" if found is not None else ""


def in_ruby(answer: Answer, paste: Paste, place: Place, gem: str) -> Answer:
    """The answer with what mends a gem: the download of libtorch, and the gem built on it.

    ``--with-torch-dir`` and the cxx11 download: torch.rb's README, installation.
    """
    if answer.owner is None or not is_torch(answer.owner):
        return answer
    release = place.present.release if place.present is not None else ""
    which = f" {release}" if release else ""
    look = [text for text in answer.help if not _OF_PYTHON.search(text)]
    again = f"gem install {gem}{_release_of(paste)} -- --with-torch-dir=/path/to/libtorch"
    note = (
        "Ruby loads the libtorch that the gem was built with (--with-torch-dir, or the system's), "
        "no torch of Python's: torch-rb and the gems on it are installed again for that one."
    )
    if answer.direction == FLAVOUR:
        new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
        wanted = "libtorch-cxx11-abi-shared-with-deps" if new else "libtorch-shared-with-deps"
        other = "libtorch-shared-with-deps" if new else "libtorch-cxx11-abi-shared-with-deps"
        note = (
            f"Ruby's gems are linked with a libtorch of PyTorch's downloads. The one that fits is "
            f"{wanted}{which}; {other}, which most likely is there instead, has the other flavour "
            "(up to 2.6.0; later downloads are all cxx11). Unpack it in its place, then the gem is "
            "built again: no pip and no torch of Python's plays a part."
        )
    notes = [note]
    if gem != "torch-rb":
        notes.append(
            "torch-rb is linked with a libtorch as well: both have to be built on the same one, in "
            "the releases that go with it (gem list shows those that are there)."
        )
    kept = (n for n in answer.notes if not n.startswith(_OF_PIP))
    return replace(answer, help=(again, *look), notes=(*notes, *kept))


#: How notes on what pip installs begin.
_OF_PIP = (
    "The command", "One of the two", "Compiled on that machine", "Where pip", "Another build of",
    "torch ", "The package index", "Installing another",
)  # fmt: skip
