"""Answers to mentions of a library: not found, of another version, mixed with another copy."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.owner import is_cuda, owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.files.own_file import missing_own_file
from fa_forensics.why.texts.libraries.cudnn_text import cudnn_mix, cudnn_part, no_handle
from fa_forensics.why.texts.libraries.missing_library import missing_library
from fa_forensics.why.texts.libraries.nvrtc_text import nvrtc_builtins
from fa_forensics.why.texts.symbol_text import symbol_of_text

VERSIONED, OTHER_COPY = "versioned-symbol", "FA204"


def could_not_load(seen: Seen) -> Answer:
    """``Could not load library libcudnn_cnn_infer.so.8. Error: ...``."""
    if seen.mention.symbol and not seen.mention.library:
        return no_handle(seen)
    if seen.mention.symbol:
        other = _of_another_library(seen)
        return other if other is not None else cudnn_mix(seen)
    sought = seen.mention.detail.get("sought") or seen.mention.library or ""
    if sought.rsplit("/", 1)[-1].startswith("libcudnn"):
        return cudnn_part(seen, sought.rsplit("/", 1)[-1])
    opener = seen.mention.file or (seen.mention.library if seen.mention.library != sought else None)
    mention = replace(seen.mention, library=sought, file=opener)
    return missing_library(replace(seen, mention=mention))


def _of_another_library(seen: Seen) -> Answer | None:
    """cuDNN opens NVRTC and cuBLAS too: a name that one of these lacks is no mix of cuDNNs."""
    asked = owner_of_library((seen.mention.file or "").rsplit("/", 1)[-1])
    if asked is None or asked == "cudnn" or not is_cuda(asked):
        return None
    answer = symbol_of_text(seen)
    if answer.owner != asked:
        return None
    opener = (seen.mention.library or "").rsplit("/", 1)[-1]
    note = (
        f"{opener} opens that library at run time, by its name, and takes the first that the "
        f"loader finds: {opener} itself is there, and is not what is missing."
    )
    return replace(answer, notes=(*answer.notes, note))


def torchcodec(seen: Seen) -> Answer:
    """``Could not load libtorchcodec``, without the exceptions that follow in the whole text."""
    cause = (
        "torchcodec comes in parts for several FFmpeg releases, and none of them loads. Two causes "
        "are common: no FFmpeg with shared libraries is where the loader looks, or torchcodec was "
        "built for another torch than the one that is there. The exceptions below that line, one "
        "a part, tell them apart: paste them too."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="torchcodec", direction=UNKNOWN, confidence="low",
        help=(f"{seen.pip} list | grep -iE '^torch'", "ldconfig -p | grep -E 'libav(util|codec)'",
              f"{seen.python} -c 'import torchcodec'"),
    )  # fmt: skip


def several_runtimes(seen: Seen) -> Answer:
    """Two CUDA runtimes in one process or one environment."""
    cause = (
        "Several copies of the CUDA runtime (libcudart) are found: which one is used depends on "
        "LD_LIBRARY_PATH and on who loads first. A process needs the one that torch brings, no "
        "other."
    )
    return seen.answer(
        VERSIONED, "FA605", cause, owner="cudart", direction=UNKNOWN, confidence="medium",
        help=("echo $LD_LIBRARY_PATH", f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch'"),
    )  # fmt: skip


def nccl(seen: Seen) -> Answer:
    """An error that NCCL reports at run time: no matter of symbols."""
    cause = (
        "NCCL reports an error while it runs: every symbol was found. Its own log, with "
        "NCCL_DEBUG=INFO, names the cause a few lines earlier (network, shared memory, a driver "
        "error, a rank that died first)."
    )
    return seen.answer(
        "unrecognised", "FA899", cause, owner="nccl", direction=NONE, confidence="low",
        help=("env NCCL_DEBUG=INFO python YOUR_SCRIPT.py",),
    )  # fmt: skip


def not_there_or_not_opened(not_there: Answerer) -> Answerer:
    """The answerer of a file that is not there, behind what else the system can say of one."""

    def answer(seen: Seen) -> Answer:
        reason = seen.mention.detail.get("reason", "")
        if reason and not re.match(r"(?i)no such file\b", reason):
            from fa_forensics.why.texts.files.not_opened import not_opened

            found = not_opened(seen)
            if found is not None:
                return found
        return not_there(seen)

    return answer


ANSWERERS: dict[str, Answerer] = {
    "missing-library": not_there_or_not_opened(missing_library),
    "missing-own-file": not_there_or_not_opened(missing_own_file),
    "could-not-load-library": could_not_load,
    "cudnn-mix": cudnn_mix,
    "torchcodec-banner": torchcodec,
    "nvrtc-builtins": nvrtc_builtins,
    "several-cuda-runtimes": several_runtimes,
    "nccl": nccl,
}
