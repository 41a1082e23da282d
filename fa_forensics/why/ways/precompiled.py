"""A package that takes its compiled files out of a ready-made wheel of another commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.owner import is_torch
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Commands that take another vllm, or another torch, than the tree is of.
_OTHERS = lazily(r"install --upgrade |--force-reinstall |\"torch[=>]=|^rm -rf build")
#: Notes on those.
_ON_OTHERS = lazily(
    r"No package is named|A file that was compiled|Every torch since|The command |One of the two"
    r"|The package index has torch|Another build of"
    r"|torch [\d.]+(?: \S [\d.]+)? ha(?:s|ve) this name"
)


def of_another_commit(answer: Answer, paste: Paste) -> Answer:
    """A source tree of vLLM with the compiled files of another commit's wheel; others as they are.

    vLLM's setup.py reads VLLM_PRECOMPILED_WHEEL_LOCATION (an address or a file), and takes the
    newest wheel where neither that nor its own commit's is there.
    """
    used = paste.versions.get("env:VLLM_USE_PRECOMPILED", "").lower()
    if used not in ("1", "true") or answer.kind not in DRIFT or not is_torch(answer.owner or ""):
        return answer
    wheel = " ".join(('VLLM_PRECOMPILED_WHEEL_LOCATION="$PWD/$(ls', 'vllm-X.Y.Z-*.whl)"'))
    commands = (
        "python -m pip download --no-deps vllm==X.Y.Z",
        f"VLLM_USE_PRECOMPILED=1 {wheel} python -m pip install --editable .",
        "env -u VLLM_USE_PRECOMPILED python -m pip install --editable .",
    )
    kept = [text for text in answer.help if not _OTHERS.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    note = (
        "With VLLM_USE_PRECOMPILED nothing is compiled: the files come out of a ready-made wheel "
        "of vLLM, the newest one where none of the tree's own commit is found, and that is built "
        "for the torch of its day. X.Y.Z is the release that the tree was made from, whose wheel "
        "fits it and its torch; the command that begins with env -u compiles the tree itself, with "
        "the torch that it pins."
    )
    notes = (n for n in answer.notes if not _ON_OTHERS.match(n))
    return replace(answer, help=(*kept[:at], *commands, *kept[at:]), notes=(note, *notes))
