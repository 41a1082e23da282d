"""A torch that no index has, by the text: a command of an index's would take its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: A command that brings a torch, with the release named or without.
_BRINGS = lazily(
    r"-m\spip\sinstall\s(?:--[\w-]{1,30}\s){0,6}(?:[^\n-][^\n]{0,80}\s)?[\"']?torch(?:[=<>~!\"'\s]|$)"
)
_ON_IT = lazily(
    r"(?:One of the two commands|The command that installs torch|The commands? (?!that))"
)


def torch_stays(answer: Answer, paste: Paste) -> Answer:
    """The answer without commands that put an index's torch over one of the text's own making."""
    rocm = "flag:torch-rocm" in paste.versions
    if not (rocm or "flag:torch-source" in paste.versions):
        return answer
    left = tuple(text for text in answer.help if "rocm" in text or not _BRINGS.search(text))
    if len(left) == len(answer.help):
        return answer
    own = "was built from source" if "flag:torch-source" in paste.versions else "is one for ROCm"
    note = (
        f"The torch in the text {own}, and a torch of the package index or of torch's own index "
        "for CUDA would take its place. It is changed where it comes from, by a build with what "
        "is named above; the index's torch is for a virtual environment of its own, with all "
        "other packages built for it."
    )
    kept = (text for text in answer.notes if not _ON_IT.match(text))
    return replace(answer, help=left, notes=(note, *kept))
