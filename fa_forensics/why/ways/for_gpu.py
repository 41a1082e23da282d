"""Commands for a torch that has no code for the GPU that the text names: they are left out."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key

_PINNED = lazily(r'"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})[^"]{0,20}"')
#: Notes on a command for the extension and one for torch, and on that torch.
_ON_TORCH = lazily(
    r"(?:One of the two commands|Another build of the extension|Installing another torch|torch "
    r"[\d.]{3,9} has (?:the file's flavour|no build for the CUDA)|The package index has torch)"
)
_FIRST_DOES = lazily(r"One of the two commands is enough: the first (?P<does>[^;]{1,200});")


def with_code_for_it(answer: Answer, place: Place) -> Answer:
    """The answer without commands for a torch before the first with code for the text's GPU."""
    since = place.told.gpu_since if place.told is not None else ""
    if not since or answer.kind not in DRIFT:
        return answer
    gone = [text for text in answer.help if _before(text, since)]
    if not gone:
        return answer
    left = tuple(text for text in answer.help if text not in gone)
    kept = [
        f"The command {found['does']}." if (found := _FIRST_DOES.match(note)) else note
        for note in answer.notes
        if not _ON_TORCH.match(note) or _FIRST_DOES.match(note)
    ]
    note = (
        f"An older torch is no way out here: the first with code for the GPU in the text is torch "
        f"{since}. What is changed is the package of the file."
    )
    return replace(answer, help=left, notes=(note, *kept))


def _before(command: str, since: str) -> bool:
    found = _PINNED.search(command)
    return found is not None and order_key(found["release"]) < order_key(since)
