"""Packages of torch's family that conda installed, from two of its channels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place
from fa_forensics.why.seen import directory_of, file_of
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_FAMILY = ("torchaudio", "torchvision", "torchtext")
#: The last torch that the channel pytorch has (pytorch issue 138506).
_LAST_OF_CHANNEL = "2.5.1"
_OF_THE_INDEX = lazily(
    r"\"torch[=>]=|\sinstall\s--force-reinstall\s--no-deps|\s--upgrade\s|^rm\s-rf\sbuild"
)
_ON_INDEX = lazily(
    r"(?:Compiled on that machine|Where pip|The command that begins|Of the wheels on PyPI"
    r"|torch [\d.]{3,9}(?: and later)? ha(?:s|ve) (?:the file's|no wheel)|No wheel of torch that"
    r"|One of the two|Another build of|The command takes both|The package index has)"
)


def of_one_channel(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer where the text shows conda's build of torch beside one of its family."""
    build = paste.versions.get("flag:conda-build", "")
    if answer.direction != FLAVOUR or not build:
        return answer
    file = file_of(paste)
    name = directory_of(file) if file else None
    named = [one for one in _FAMILY if f"pkg:{one}" in paste.versions]
    name = name or (named[0] if len(named) == 1 else None)
    if name not in _FAMILY:
        return answer
    torch = place.present.release if place.present is not None else ""
    own = paste.versions.get(f"pkg:{name}", "")
    if "+" in own or "pyenv" in file:
        return answer  # compiled by somebody, on conda's torch: none of conda's packages
    channel = "conda-forge"
    if torch and place.machine == "x86_64" and order_key(torch) <= order_key(_LAST_OF_CHANNEL):
        channel = "pytorch"
    pins = [f"{channel}::pytorch={torch}" if torch else f"{channel}::pytorch"]
    pins.append(f"{channel}::{name}={own}" if own else f"{channel}::{name}")
    only = " cpuonly" if channel == "pytorch" and "cpu" in build else ""
    kept = [text for text in answer.help if not _OF_THE_INDEX.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    kept[at:at] = [
        "conda list --show-channel-urls | grep -iE 'torch'",
        f"conda install -c {channel} {' '.join(pins)}{only}",
    ]
    which = (
        f"the one of {name} is a pre-cxx11 one, as those of the channel pytorch and of pip were up "
        "to 2.6, and torch is a cxx11 one, as conda-forge's are"
    )
    if mentions_cxx11(answer.symbol or "", answer.demangled or ""):
        which = (
            f"the one of {name} is a cxx11 one, as conda-forge's are, and torch is a pre-cxx11 "
            "one, as those of the channel pytorch and of pip were up to 2.6"
        )
    note = (
        f"{build} in the text is a build of conda's, so pip's wheels are no measure: most likely "
        f"the builds of {name} and torch come from two makers; {which}. conda list shows the "
        "channel of each (pypi is pip's), and the command after it takes both from one."
    )
    notes = (n for n in answer.notes if not _ON_INDEX.match(n))
    return replace(answer, help=tuple(dict.fromkeys(kept)), notes=(note, *notes))
