"""A wheel that no package index has: a pre-release, which its maker built on one torch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.python_api import torch_of
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import TORCH_INDEX, index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import OLDER, UNKNOWN

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
    if not _of_a_nightly(paste, name):
        return answer  # its maker took a release of torch, as far as anything is told
    here = f"flag:built-from-source:{name}" in paste.versions or "torch" in told
    if here or not is_prerelease(paste, name) or not any(map(_OTHERS.search, answer.help)):
        return answer
    label = "cpu" if _on_a_mac(paste) else _label(paste, told)
    index = f"{TORCH_INDEX}nightly/{label or 'cuXYZ'}"
    # The newest nightly of torch beside a pre-release of its family would be a pair of two days.
    both = f"torch {name}" if name in FAMILY else "torch"
    get = f"python -m pip install --pre --force-reinstall --no-cache-dir {both}"
    other = paste.versions.get("nightly", "")
    note, how = (
        _of_family(name, told, label) if name in FAMILY else _words(name, told, label, other)
    )
    kept = tuple(n for n in answer.notes if not _ON_OTHERS.match(n))
    helps = [text for text in answer.help if not _OTHERS.search(text) or _is_pair(text, name)]
    at = 1 if helps and "print(torch" in helps[0] else 0
    typed = " ".join((get, "--index-url", index))
    if pinned := _of_the_past(answer):
        answer, typed = _by_its_pair(answer, paste, name), _from_index(pinned, other)
        how = (
            f"torch {answer.interval} alone ha{'s' if len(answer.exported_by) == 1 else 've'} the "
            "name, which no nightly of today has: a wheel that was built on a nightly of that time "
            "is helped by that very one (torch==VERSION from the nightly index, while it is kept "
            "there). torchvision and torchaudio are taken from the same place as torch."
        )
    helps.insert(at, typed)
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, how, *kept))


def _words(name: str, told: str, label: str, other: str) -> tuple[str, str]:
    """(what such a wheel is, what the command takes); ``other`` is the CUDA of the text's torch."""
    note = (
        f"{name} {told} is a pre-release: whoever built that wheel did so on one torch, most "
        "likely a nightly, and from the index for one CUDA, which the wheel's name tells. "
        "That very torch, or a wheel that was built for the one that is there, puts it right; "
        "a release of the package index would take the place of both."
    )
    ends = "" if label else ", cuXYZ being the CUDA in the wheel's name"
    how = (
        f"The command takes the newest nightly{ends}; where the wheel is of an earlier day, the "
        "nightly of that day is torch==VERSION from the same index. torchvision and torchaudio are "
        "taken from there too."
    )
    if label and other.startswith("cu") and other != label:
        how = (
            f"The wheel is for {label} and the torch in the text is a nightly for {other}: the "
            f"nightlies of two indexes need not be of one day, nor of one state of torch. {how}"
        )
    return note, how


def _of_family(name: str, told: str, label: str) -> tuple[str, str]:
    """The same for a package that is built with torch, day by day."""
    note = (
        f"{name} {told} is a pre-release, built on torch's pre-release of that day: each of the "
        "two fits the other of its own day alone."
    )
    ends = "" if label else " (cuXYZ is the CUDA of the torch that is there)"
    return note, f"The command takes the newest nightlies of torch and {name} together{ends}."


#: Packages whose nightlies are built with torch's, day by day.
FAMILY = ("torchvision", "torchaudio")


def _of_a_nightly(paste: Paste, name: str) -> bool:
    """Whether a pre-release is one built on a nightly of torch: by its maker, or by the text."""
    if name in FAMILY or "nightly" in paste.versions:
        return True
    return _NIGHTLY.search(paste.versions.get("torch", "")) is not None


_NIGHTLY = lazily(r"\d\.?dev\d{8}")


def _on_a_mac(paste: Paste) -> bool:
    """Whether the text is of macOS, whose nightlies are those without CUDA."""
    if "flag:macos-told" in paste.versions:
        return True
    return any(mention.detail.get("os") == "macOS" for mention in paste.mentions[:20])


def _is_pair(command: str, name: str) -> bool:
    """Whether a command takes the newest releases of torch and of its own partner together."""
    return name in FAMILY and f" --upgrade --no-cache-dir torch {name}" in command


def _of_the_past(answer: Answer) -> str:
    """The command for the last torch with a name that newer ones have no more; "" for none."""
    if not answer.exported_by or "and later" in answer.interval:
        return ""
    return next((text for text in answer.help if _PINNED.search(text)), "")


_PINNED = lazily(r"install \"torch==[\d.]+\"$")


def _from_index(command: str, label: str) -> str:
    """A command for one torch with the index of the CUDA that the text's nightly is for."""
    found = re.search(r"==([\d.]+)", command)
    if found is None or not re.fullmatch(r"cu\d{2,3}", label):
        return command
    if cuda_of_label(label) not in cuda_builds(minor_of(found[1])):
        return command
    return f"{command}{index_option(label)}"


def _by_its_pair(answer: Answer, paste: Paste, name: str) -> Answer:
    """That a nightly is the newer one, where that number's release is for a torch before it."""
    number = re.match(r"\d+\.\d+\.\d+", paste.versions.get(f"pkg:{name}", ""))
    pair = torch_of(name, number[0]) if number is not None else None
    if "nightly" not in paste.versions or pair not in answer.exported_by:
        return answer
    if number is None or answer.direction != UNKNOWN:
        return answer
    cause = (
        f"{answer.cause} {name} {number[0]} is for torch {pair}, which has the name, and a nightly "
        "of that time is newer than it: most likely the nightly is too new for the file."
    )
    return replace(answer, cause=cause, direction=OLDER)


def _label(paste: Paste, told: str) -> str:
    """The CUDA of the wheel as indexes are named; "" where the text does not tell it."""
    found = _CUDA.search(told)
    label = f"cu{found[1]}" if found else paste.versions.get("flag:prebuilt", "")
    return label if re.fullmatch(r"cu\d{2,3}", label) else ""
