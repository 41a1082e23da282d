"""Which package a text shows, or names, as the one that asks for a library."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

_FRAME_PACKAGE = lazily(r"(?:site|dist)-packages/(?P<name>[A-Za-z_]\w{1,60})/")
#: Packages that look for libraries themselves, and are named where no frame shows them.
_LOOKS_ITSELF = (
    "onnxruntime", "torchcodec", "torchaudio", "ctranslate2", "faster_whisper", "faster-whisper",
)  # fmt: skip
#: Packages that people name without a frame of theirs, of which one alone counts.
_OF_PYG = ("torch_scatter", "torch_sparse", "torch_cluster", "torch_spline_conv")
#: What makes a line one that installs or lists packages: it does not say who failed.
_LISTED = lazily(r"\binstall\b|[=<>~]=|\.whl\b|^-r\b", re.IGNORECASE)
#: A name with its version, as lists have them: it does not say who failed either.
_WITH_VERSION = lazily(
    r"(?<![\w./-])[a-z][\w.-]{1,40}(?:\[\w{1,20}\])?(?: version)?[ \t:=(|]{1,60}"
    r"v?\d{1,4}\.\d[\w.+-]*"
)
#: A sentence that says what is not there: it names nobody who asks.
_DENIED = lazily(
    r"(?:\bnot|n't|\bnever|\bwithout|\bnor)(?: \w{1,20}){0,2} [a-z][\w-]{1,40}"
    r"(?:,? (?:nor|or) [a-z][\w-]{1,40})?"
)
_WHISPER = lazily(r"ctranslate2|faster[-_]whisper")


#: What bitsandbytes prints when it is imported: ``CUDA SETUP: CUDA runtime path found``.
_SETUP = lazily(r"CUDA[_ ]SETUP: ")


def package_of_frame(line: Line) -> str:
    """The package of the traceback's last step that is not torch's or Python's own."""
    return _of_frame(line) or _of_words(line)


def who_asks(line: Line) -> dict[str, str]:
    """``by``, the package, and ``by_words``, where it is named near the line and no step has it."""
    shown = _of_frame(line)
    spoken = "" if shown else _of_words(line)
    return {"by": shown or spoken, **({"by_words": "yes"} if spoken else {})}


def _of_frame(line: Line) -> str:
    before = _before(line)
    names = _FRAME_PACKAGE.findall(before[before.rfind("Traceback ") + 1 :])
    found = next((str(name) for name in reversed(names) if name != "torch"), "")
    return found or ("bitsandbytes" if _SETUP.search(before) else "")


def _of_words(line: Line) -> str:
    near = f"{_before(line)}{line.source.text[line.start : line.start + 800]}".lower()
    plain = "\n".join(one for one in near.split("\n") if not _LISTED.search(one))
    told = _DENIED.sub(" ", _WITH_VERSION.sub(" ", plain))
    if "onnxruntime" in told and _WHISPER.search(told):
        return ""  # either may ask for it
    found = next((name for name in _LOOKS_ITSELF if name in told), "")
    alone = [one for one in _OF_PYG if one in told or one.replace("_", "-") in told]
    return found or (alone[0] if len(alone) == 1 else "")


def _before(line: Line) -> str:
    return line.source.text[max(0, line.start - 1_500) : line.start]
