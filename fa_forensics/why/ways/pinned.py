"""A torch that another package of the text asks for: it is not exchanged for the failing file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.python_api import torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import Place
from fa_forensics.why.seen import directory_of, file_of
from fa_forensics.why.ways.prereleases import is_prerelease

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Distributions each release of which asks for one torch (Requires-Dist: torch==).
_PINNING = ("vllm",)
_INSTALLS = lazily(r"-m\spip\sinstall")
_TORCH = lazily(r'install\s(?:--[\w-]+\s){0,4}"torch(?:==|>=|<)[\d.,<>=]+"')
#: Notes on a command for the extension and one for torch.
_ON_TORCH = lazily(
    r"(?:One of the two commands|Another build of the extension|torch [\d.]{3,9} has the file's "
    r"flavour|The package index has torch)"
)


def without_its_torch(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer without commands for another torch, where a package of the text asks for its own.

    Any other answer as it is, as is one that has no other way out than torch.
    """
    file = file_of(paste)
    name = next((one for one in _PINNING if paste.versions.get(f"pkg:{one}")), None)
    if name is None or not file or answer.kind not in DRIFT or directory_of(file) == name:
        return answer
    if is_prerelease(paste, name):
        return answer  # a wheel that was built on another torch than the release asks for
    left = tuple(text for text in answer.help if not _TORCH.search(text))
    if len(left) == len(answer.help) or not any(map(_INSTALLS.search, left)):
        return answer
    version = paste.versions[f"pkg:{name}"]
    own = torch_of(name, version)
    minor = own and own.split(".")[:2]
    if place.present is not None and minor and place.present.release.split(".")[:2] != minor:
        return answer  # the torch that is there is not the one asked for
    which = f"{name} {version} asks for torch {own}" if own else f"Each {name} asks for one torch"
    note = f"{which}: another torch is no way out beside it, so the file is what is built again."
    kept = (text for text in answer.notes if not _ON_TORCH.match(text))
    return replace(answer, help=left, notes=(note, *kept))
