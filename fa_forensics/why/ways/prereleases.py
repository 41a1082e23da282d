"""A wheel that no package index has: a pre-release, which its maker built on one torch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_PRERELEASE = lazily(r"\d(?:\.?dev|rc)\d")
#: Commands for what the package index has, or for sources that nobody has who took a wheel.
_OTHERS = lazily(r"install --upgrade\b|^rm -rf build|\"torch[=>]=|--no-build-isolation")
#: Notes on those.
_ON_OTHERS = lazily(
    r"(?:One of the two commands|Another build of|The command (?:installs|gets|compiles|that b)"
    r"|No package is named|A file that was compiled|Every torch since|Where pip compiled"
    r"|torch [\d.]{3,9}(?: \S [\d.]{3,9})? ha(?:s|ve) this name)"
)
_CUDA = lazily(r"\+cu(\d{2,3})(?!\d)")


def is_prerelease(paste: Paste, name: str) -> bool:
    """Whether the text has a package in a version that is no release."""
    return _PRERELEASE.search(paste.versions.get(f"pkg:{name}", "")) is not None


def of_its_maker(answer: Answer, paste: Paste, name: str) -> Answer:
    """The answer for a wheel that no package index has; any other as it is.

    What the index has is another file for another torch, and its sources are not there.
    """
    told = paste.versions.get(f"pkg:{name}", "")
    # A wheel whose number names its torch is no riddle: 0.3.0.dev20250522+torch2.6.
    if (row_of(name) or {}).get("names_torch"):
        return answer  # its wheels ask for the torch that they were built on
    here = f"flag:built-from-source:{name}" in paste.versions or "torch" in told
    if here or not is_prerelease(paste, name) or not any(map(_OTHERS.search, answer.help)):
        return answer
    label = _label(paste, told)
    index = f"https://download.pytorch.org/whl/nightly/{label or 'cuXYZ'}"
    get = "python -m pip install --pre --force-reinstall --no-cache-dir torch"
    note = (
        f"{name} {told} is no release of the package index: whoever built that wheel did so on one "
        "torch, often a nightly, and from the index for one CUDA, which the wheel's name tells. "
        "That very torch, or a wheel that was built for the one that is there, puts it right; "
        "what the index has would take the place of both."
    )
    ends = "" if label else ", cuXYZ being the CUDA in the wheel's name"
    how = (
        f"The command takes the newest nightly{ends}; where the wheel is of an earlier day, the "
        "nightly of that day is torch==VERSION from the same index. torchvision and torchaudio are "
        "taken from there too."
    )
    other = paste.versions.get("nightly", "")
    if label and other.startswith("cu") and other != label:
        how = (
            f"The wheel is for {label} and the torch in the text is a nightly for {other}: the "
            f"nightlies of two indexes need not be of one day, nor of one state of torch. {how}"
        )
    kept = tuple(n for n in answer.notes if not _ON_OTHERS.match(n))
    helps = [text for text in answer.help if not _OTHERS.search(text)]
    at = 1 if helps and "print(torch" in helps[0] else 0
    helps.insert(at, " ".join((get, "--index-url", index)))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, how, *kept))


def _label(paste: Paste, told: str) -> str:
    """The CUDA of the wheel as indexes are named; "" where the text does not tell it."""
    found = _CUDA.search(told)
    label = f"cu{found[1]}" if found else paste.versions.get("flag:prebuilt", "")
    return label if re.fullmatch(r"cu\d{2,3}", label) else ""
