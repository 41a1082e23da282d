"""A package that takes its compiled files out of a ready-made wheel of another commit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.python_api import torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, NEWER, OLDER, UNKNOWN
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Commands that take another vllm, or another torch, than the tree is of.
_OTHERS = lazily(r"install --upgrade |--force-reinstall |\"torch[=>]=|^rm -rf build")
#: Notes on those.
_ON_OTHERS = lazily(
    r"No package is named|A file that was compiled|Every torch since|The command |One of the two"
    r"|The package index has torch|Another build of"
    r"|torch [\d.]+(?: \S [\d.]+)? ha(?:s|ve) this name|In 2\.2\.0 the name"
    r"|The published vllm"
)


def of_another_commit(answer: Answer, paste: Paste) -> Answer:
    """A source tree of vLLM with the compiled files of another commit's wheel; others as they are.

    vLLM's setup.py reads VLLM_PRECOMPILED_WHEEL_LOCATION (an address or a file), and takes the
    newest wheel where neither that nor its own commit's is there.
    """
    used = paste.versions.get("env:VLLM_USE_PRECOMPILED", "").lower()
    if used not in ("1", "true") or answer.kind not in DRIFT or not is_torch(answer.owner or ""):
        return answer
    release = _release(paste)
    shown = release or "X.Y.Z"
    wheel = " ".join(('VLLM_PRECOMPILED_WHEEL_LOCATION="$PWD/$(ls', f'vllm-{shown}-*.whl)"'))
    commands = (
        f"python -m pip download --no-deps vllm=={shown}",
        f"VLLM_USE_PRECOMPILED=1 {wheel} python -m pip install --editable .",
        "env -u VLLM_USE_PRECOMPILED python -m pip install --editable .",
    )
    kept = [text for text in answer.help if not _OTHERS.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    note = (
        "With VLLM_USE_PRECOMPILED nothing is compiled: the files come out of a ready-made wheel "
        "of vLLM, the newest one where none of the tree's own commit is found, and that is built "
        f"for the torch of its day. The wheel of {release}, the release of the tree, fits it and "
        "its torch; the command that begins with env -u compiles the tree itself, with the torch "
        "that it pins."
        if release
        else "With VLLM_USE_PRECOMPILED nothing is compiled: the files come out of a ready-made "
        "wheel of vLLM, the newest one where none of the tree's own commit is found, and that is "
        "built for the torch of its day. X.Y.Z is the release that the tree was made from, whose "
        "wheel fits it and its torch; the command that begins with env -u compiles the tree "
        "itself, with the torch that it pins."
    )
    kept_notes = [n for n in answer.notes if not _ON_OTHERS.match(n)]
    answer = _by_its_torch(answer, release)
    return replace(answer, help=(*kept[:at], *commands, *kept[at:]), notes=(note, *kept_notes))


def _release(paste: Paste) -> str:
    """The release of vLLM that the tree is, as the text has it; "" where it names none."""
    told = paste.versions.get("flag:checkout", "") or paste.versions.get("pkg:vllm", "")
    found = re.match(r"v?(\d{1,2}\.\d{1,3}\.\d{1,3}(?:\.post\d)?)(?![\w.+])", told)
    return found[1] if found is not None else ""


def _by_its_torch(answer: Answer, release: str) -> Answer:
    """The direction by the torch that the tree's release pins, where the text names no torch."""
    torch = torch_of("vllm", release) if release else None
    if torch is None or answer.direction != UNKNOWN or not answer.exported_by:
        return answer
    first, last = answer.exported_by[0], answer.exported_by[-1]
    if order_key(torch) < order_key(first):
        age, direction = "a newer", NEWER
    elif order_key(torch) > order_key(last):
        age, direction = "an older", OLDER
    else:
        return answer
    cause = answer.cause
    cause += f" vllm {release} pins torch {torch}, which has no such name: where that is installed,"
    cause += f" the file was built for {age} torch."
    return replace(answer, cause=cause, direction=direction)
