"""A torch that no index has, by the text: a command of an index's would take its place."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.seen import file_of, package_of
from fa_forensics.why.ways.for_gpu import without_commands

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: A command that brings a torch, with the release named or without.
_BRINGS = lazily(
    r"-m\spip\sinstall\s(?:--[\w-]{1,30}\s){0,6}(?:[^\n-][^\n]{0,80}\s)?[\"']?torch(?:[=<>~!\"'\s]|$)"
)
_ON_IT = lazily(
    r"(?:One of the two commands|The command that installs torch|The commands? (?!that)"
    r"|The package index has [\w-]{1,40} from )"
)

#: What a text says of torch that is none of an index for CUDA, and how a sentence says it.
_MADE = {
    "flag:torch-source": "was built from source",
    "flag:torch-rocm": "is one for ROCm",
    "flag:torch-xpu": "is one for Intel's GPUs (XPU)",
}


def torch_stays(answer: Answer, paste: Paste) -> Answer:
    """The answer without commands that put an index's torch over one of the text's own making."""
    if of_a_servers_image(paste):
        return _of_the_image(answer)
    own = next((said for flag, said in _MADE.items() if flag in paste.versions), None)
    if own is None:
        return answer
    left = tuple(
        text for text in answer.help if re.search("rocm|xpu", text) or not _BRINGS.search(text)
    )
    if len(left) == len(answer.help):
        return answer
    note = (
        f"The torch in the text {own}, and a torch of the package index or of torch's own index "
        "for CUDA would take its place. It is changed where it comes from, by a build with what "
        "is named above; the index's torch is for a virtual environment of its own, with all "
        "other packages built for it."
    )
    name = package_of(file_of(paste))
    if name in _FAMILY:
        note = (
            f"The torch in the text {own}, and a torch of the package index or of torch's own "
            f"index for CUDA would take its place. It is {name} that is changed: the release of it "
            "from where that torch is from (its index, its channel), or a build of it for that "
            "torch with --no-build-isolation."
        )
    kept = (text for text in answer.notes if not _ON_IT.match(text))
    return replace(answer, help=left, notes=(note, *kept))


#: Packages that whoever gives out a torch gives out with it.
_FAMILY = ("torchvision", "torchaudio")


#: Where the images of vLLM and SGLang have their packages.
_THEIRS = lazily(r"/usr/(?:local/)?lib/python3\.\d{1,2}/dist-packages/")


def of_a_servers_image(paste: Paste) -> bool:
    """Whether the file is one of an image of vLLM's, SGLang's or LMDeploy's, by the text."""
    named = "server_image" in paste.versions or "flag:server-image" in paste.versions
    file = file_of(paste)
    return named and ("/" not in file or _THEIRS.match(file) is not None)


def _of_the_image(answer: Answer) -> Answer:
    """The answer without commands that change an image's torch, which its server is built for."""
    gone = [text for text in answer.help if _BRINGS.search(text)]
    if answer.kind not in DRIFT or not gone:
        return answer
    note = (
        "The server in the image is compiled for the image's own torch, which therefore stays: "
        "what is changed is the package of the file, for that torch."
    )
    return without_commands(answer, gone, note)
