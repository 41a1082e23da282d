"""Answers to mentions of a library: not found, of another version, mixed with another copy."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace

from fa_forensics.facts.owner import is_cuda, owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.files.own_file import missing_own_file
from fa_forensics.why.texts.libraries.brought_text import torches_bringing, wheel_of
from fa_forensics.why.texts.libraries.missing_library import missing_library
from fa_forensics.why.texts.symbol_text import symbol_of_text

VERSIONED, OTHER_COPY = "versioned-symbol", "FA204"


def could_not_load(seen: Seen) -> Answer:
    """``Could not load library libcudnn_cnn_infer.so.8. Error: ...``."""
    if seen.mention.symbol and not seen.mention.library:
        return _no_handle(seen)
    if seen.mention.symbol:
        other = _of_another_library(seen)
        return other if other is not None else cudnn_mix(seen)
    sought = seen.mention.detail.get("sought") or seen.mention.library or ""
    if sought.rsplit("/", 1)[-1].startswith("libcudnn"):
        return _cudnn_part(seen, sought.rsplit("/", 1)[-1])
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


#: The cuDNN that a soname is a part of: ``libcudnn_ops.so.9.1.0`` is one of cuDNN 9.
_CUDNN_MAJOR = re.compile(r"libcudnn\w{0,30}\.so\.(?P<major>\d{1,2})")

_WHEELS_ON_PATH = (
    "export LD_LIBRARY_PATH=$({python} -c 'import nvidia.cublas.lib as a, nvidia.cudnn.lib as b; "
    'print(a.__path__[0] + ":" + b.__path__[0])\')'
)


def _cudnn_part(seen: Seen, soname: str) -> Answer:
    found = _CUDNN_MAJOR.match(soname)
    major = found["major"] if found else ""
    cause = (
        f"cuDNN loads its parts at run time, by name, and {soname} is not on the loader's path: "
        "cuDNN is installed in part, or in another place than the one that was loaded first."
    )
    if major:
        cause += (
            f" It has to be cuDNN {major}: the parts of another major version have other contents "
            "and do not count, under whatever name."
        )
    notes = ["pip's torch brings a whole cuDNN along; a copy of the system is not needed."]
    helps = [
        f"{seen.pip} list | grep -iE 'cudnn|ctranslate2|onnxruntime|^torch '",
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; "
        "print(torch.backends.cudnn.version())'",
    ]
    if major in ("8", "9"):
        if _goes_with_torch(seen, major):
            helps.append(f'{seen.pip} install "nvidia-cudnn-cu12=={major}.*"')
        helps.append(_WHEELS_ON_PATH.format(python=seen.python))
        notes.append(
            "ctranslate2 (faster-whisper, WhisperX) brings the head of cuDNN and no parts of it: "
            "from 4.5.0 on it needs those of cuDNN 9, before those of cuDNN 8. In a process with "
            "torch both have to need the same: torch has cuDNN 9 since 2.4.0."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _goes_with_torch(seen: Seen, major: str) -> bool:
    """Whether installing this cuDNN leaves the torch that is there its own: there is one for all.

    Where no torch is told, only the newer one is offered.
    """
    present = seen.place.present
    if present is None:
        return major == "9"
    return present.release in torches_bringing(seen, f"libcudnn.so.{major}")


def _no_handle(seen: Seen) -> Answer:
    """``Cannot load symbol cudnnCreate``: what cuDNN says after it did not find a part."""
    cause = (
        f"cuDNN looked for {seen.mention.symbol} in a part of its own that it could not open "
        "before: the line above names that part. The symbol itself is not missing from anything."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=(f"{seen.pip} list | grep -i cudnn", _WHEELS_ON_PATH.format(python=seen.python)),
    )  # fmt: skip


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


#: The directories of the loader itself.
_SYSTEM_PLACE = re.compile(r"(?:/usr)?/lib(?:64)?/")


def cudnn_mix(seen: Seen) -> Answer:
    """Parts of two cuDNN releases in one process."""
    detail = seen.mention.detail
    cause = (
        "Parts of two cuDNN releases are in one process. cuDNN's libraries fit those of the very "
        "same release alone, and one part came from another directory than the others: a system "
        "or toolkit copy on LD_LIBRARY_PATH, or a second one that pip or conda added."
    )
    built, found = detail.get("built"), detail.get("found")
    built, found = built or detail.get("built2"), found or detail.get("found2")
    if built and found:
        cause += f" torch was built with {_dotted(built)}, {_dotted(found)} is loaded."
    answer = None
    if seen.mention.symbol:
        answer = symbol_of_text(seen)
    odd = detail.get("odd", "")
    if odd:
        cause += f" In the text it is {odd}: the other parts lie in another directory."
    notes = (
        "Remove the copy that was added, or take it off LD_LIBRARY_PATH: pip's torch brings a "
        "whole cuDNN along. Adding further nvidia packages makes another mix.",
    )
    commands = (
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; "
        "print(torch.backends.cudnn.version())'",
        "echo $LD_LIBRARY_PATH",
        f"{seen.pip} list | grep -i cudnn",
    )
    if _SYSTEM_PLACE.match(odd):
        commands = (
            f"dpkg -S {shlex.quote(odd)} || rpm -qf {shlex.quote(odd)}",
            f"ls -l {shlex.quote(os.path.dirname(odd))}/libcudnn*",
            commands[2],
        )
        notes = (
            "That is the system's own directory, which the loader searches last and without "
            "LD_LIBRARY_PATH: cuDNN asked for a part that its own release does not have, or has "
            "not installed whole, and was given the system's. Remove the package that the first "
            "command names, or bring it to the very release of torch's cuDNN.",
        )
    if answer is not None and answer.kind == VERSIONED:
        return replace(
            answer, code=OTHER_COPY, cause=cause, direction=UNKNOWN, notes=notes, help=commands
        )
    return seen.answer(
        VERSIONED, OTHER_COPY, cause, owner="cudnn", direction=UNKNOWN, confidence="high",
        help=commands, notes=notes,
    )  # fmt: skip


def _dotted(text: str) -> str:
    """``8, 9, 2`` as people write it."""
    return re.sub(r"\s*,\s*", ".", text.strip())


def nvrtc_builtins(seen: Seen) -> Answer:
    """``failed to open libnvrtc-builtins.so.11.1``."""
    soname = (seen.mention.library or "libnvrtc-builtins.so").rsplit("/", 1)[-1]
    version = re.search(r"\.so\.(\d{1,2})\.(\d{1,2})", soname)
    number = f"{version[1]}.{version[2]}" if version else ""
    cause = (
        f"NVRTC, CUDA's run-time compiler, opens {soname} by that very name at run time, so it "
        "stands in no list of needed libraries. It fits the libnvrtc of exactly its own version"
        f"{f' ({number})' if number else ''}, and lies beside it: the libnvrtc that was loaded is "
        "not the one whose builtins are on the loader's path, or its wheel is not whole."
    )
    wheel = wheel_of(seen, f"libnvrtc.so.{version[1]}", version[1]) if version else None
    commands = [f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch'"]
    if wheel and version:
        commands.insert(0, f'{seen.pip} install --force-reinstall "{wheel}=={number}.*"')
    elif seen.torch:
        release = seen.torch.partition("+")[0]
        again = f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
        commands.insert(0, again)
    return seen.answer(
        "missing-library", "FA202", cause, owner="nvrtc", direction=NONE, confidence="medium",
        help=(*commands, "find / -name 'libnvrtc*' 2>/dev/null"),
        notes=("Another version of the builtins under that name makes NVRTC misbehave: the number "
               "is a check.",),
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


ANSWERERS: dict[str, Answerer] = {
    "missing-library": missing_library,
    "missing-own-file": missing_own_file,
    "could-not-load-library": could_not_load,
    "cudnn-mix": cudnn_mix,
    "torchcodec-banner": torchcodec,
    "nvrtc-builtins": nvrtc_builtins,
    "several-cuda-runtimes": several_runtimes,
    "nccl": nccl,
}
