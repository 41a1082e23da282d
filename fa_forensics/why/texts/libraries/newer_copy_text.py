"""A newer copy of a CUDA library before the old one: a wheel's own, a toolkit's; or a new build."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.nvidia.cuda_age import HOME_OF_TORCH
from fa_forensics.why.nvidia.without_torch import row_without_torch
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path, wheels_on_path

#: A library of a wheel of NVIDIA, whose others lie beside it.
_OF_WHEEL = lazily(r"/.{0,300}-packages/nvidia/(?P<folder>\w{2,30})/lib/lib[\w.]{2,60}")
#: The wheels of one CUDA, and the directory of each below site-packages/nvidia.
_LINE = lazily(r"(?P<name>nvidia-(?P<short>[a-z-]{3,20})-cu(?P<major>1[12])) [\d.]+ and later")
_LINE_13 = lazily(r"nvidia-(?P<short>[a-z-]{3,20}) 13\.[\d.]+ and later")
#: Images with a torch of their own, in which pip's torch is a second one.
_IMAGES = lazily(r"^/opt/conda/|^/usr/local/lib/python3")
#: What keeps compiled files, and where.
_CACHES = {
    "flashinfer": "~/.cache/flashinfer",
    "torch_extensions": "~/.cache/torch_extensions",
    "vllm": "~/.cache/vllm",
    "tvm-ffi": "~/.cache/tvm-ffi",
    "tilelang": "~/.cache/tilelang",
}


def with_newer_copy(answer: Answer, seen: Seen) -> Answer:
    """The answer with a command that brings a newer copy, where the text shows which."""
    if answer.direction != NEWER or answer.owner is None:
        return answer
    cache = seen.mention.detail.get("jit", "")
    if cache and not _NVIDIA.search(seen.mention.file or ""):
        return _compiled_at_run_time(answer, seen, cache)
    found = _OF_WHEEL.fullmatch(os.path.normpath(seen.mention.file or "."))
    asked = seen.mention.version or ""
    if found is not None and _beside(answer.owner, found["folder"]) and asked.startswith("lib"):
        return _of_wheel_itself(answer, seen)
    if "/torch/lib/" in (seen.mention.file or ""):
        return _wheels_before_all(answer, seen)
    return _first_on_path(answer, seen)


def _wheels_before_all(answer: Answer, seen: Seen) -> Answer:
    """torch's own file is given an older copy than the wheel's that it is meant to find."""
    number = re.search(r"\.so\.(\d{1,2})(?:\.0)?$", seen.mention.version or "")
    lines = list(_LINE.finditer(answer.interval or ""))
    line = next((one for one in lines if number and one["major"] == number[1]), None)
    newest = _LINE_13.search(answer.interval or "") if number and number[1] == "13" else None
    at = next((i for i, c in enumerate(answer.help) if c.startswith("env -u ")), None)
    if _OF_CONDA.search(seen.mention.file or ""):
        return answer  # no wheel of NVIDIA is there
    if (line is None and newest is None) or at is None or seen.mention.detail.get("board"):
        return answer
    folder = line["short"].replace("-", "_") if line is not None else "cu13"
    helps = [*answer.help]
    own = os.path.dirname(os.path.normpath(seen.mention.file or ""))
    if number and number[1] == "11" and own.startswith("/") and _brings_its_own(seen):
        helps.insert(at + 1, folder_on_path(seen.python, own))
        note = (
            "Where LD_LIBRARY_PATH has to stay, torch/lib goes first in it (the command with "
            "export), for the program that is started after it: a torch for this CUDA from "
            "pytorch.org's index up to 2.1 holds the library there, and no wheel of NVIDIA brings "
            "it."
        )
        return replace(answer, help=tuple(helps), notes=(note, *answer.notes))
    helps.insert(at + 1, wheels_on_path(seen.python, folder))
    note = (
        "Where LD_LIBRARY_PATH has to stay, the directory of the wheel goes first in it (the "
        "command with export), for the program that is started after it."
    )
    notes = [note]
    if number and number[1] == "11" and seen.torch is None:
        notes.append(
            f"Where pip lists no wheel of {title_of(answer.owner or '')}, torch is one that holds "
            "the library itself (pytorch.org's index), where torch/lib is that directory, or "
            "conda's, whose libraries lie in $CONDA_PREFIX/lib: conda list | grep -i cuda shows "
            "them, and the package with the older one is to be of torch's CUDA."
        )
    return replace(answer, help=tuple(helps), notes=(*notes, *answer.notes))


def _brings_its_own(seen: Seen) -> bool:
    """Whether torch is a wheel of pytorch.org's index for CUDA 11 that holds NVIDIA's libraries.

    Up to 2.1 those have them in torch/lib; the package index's (CUDA 11.7, without a label, from
    1.13 to 2.0) ask for NVIDIA's wheels.
    """
    cuda, release = seen.torch_cuda or "", re.match(r"(\d+)\.(\d+)", seen.torch or "")
    if release is not None and (int(release[1]), int(release[2])) >= (2, 2):
        return False
    told = "torch_cuda" in seen.versions or "+cu" in seen.versions.get("torch", "")
    return told and cuda.startswith("11.") and (cuda != "11.7" or "+cu117" in (seen.torch or ""))


#: A library in conda's lib directory, by the way that conda's own torch goes to it.
_OF_CONDA = lazily(r"/torch/lib/(?:\.\./){4}lib\w")
_NVIDIA = lazily(r"/nvidia/|/torch/lib/|^lib(?:cu|nv)")


def _beside(owner: str, folder: str) -> bool:
    """Whether the library that lacks the name is brought by the very wheel that asks for it."""
    return folder in ("cublas", "cu13") and owner in ("cublas", "cublasLt")


def _of_wheel_itself(answer: Answer, seen: Seen) -> Answer:
    """cuBLAS of a wheel is given another cuBLASLt than the one that lies beside it."""
    file = os.path.normpath(seen.mention.file or "")
    folder, name = file.rsplit("/", 1)
    cause = answer.cause + (
        f" {name} is of a wheel of NVIDIA, and the right {seen.mention.version} lies beside it, in "
        f"{folder}: the older one was found before that."
    )
    helps = [*answer.help]
    helps.insert(1, folder_on_path(seen.python, folder))
    notes = [
        "Where LD_LIBRARY_PATH has to stay, that directory goes first in it (the second command). "
        "The variable is read when a process starts: in a notebook it has to be set before the "
        "kernel is started."
    ]
    if _IMAGES.match(file):
        notes.append(
            "Where an image has its own torch (Kaggle, a container), that wheel came with a torch "
            "that pip installed in place of it: the image's torch, kept by a constraint of pip "
            "(pip install -c, with the version that the image has), does not need it."
        )
    return replace(answer, cause=cause, help=tuple(helps), notes=(*notes, *answer.notes))


def _first_on_path(answer: Answer, seen: Seen) -> Answer:
    """A file asks for the name in a library by its soname, and only an old one may be there."""
    asked = seen.mention.version or ""
    asking = owner_of_library((seen.mention.file or "").rsplit("/", 1)[-1])
    lines = list(_LINE.finditer(answer.interval or ""))
    number = re.search(r"\.so\.(1[12])(?:\.0)?$", asked)
    line = next((one for one in lines if number and one["major"] == number[1]), None)
    typed = any(" install " in text for text in answer.help)
    if line is None or typed or asking is not None or not seen.mention.file:
        return answer
    if row_without_torch(seen.mention.file) is not None or seen.mention.detail.get("board"):
        return answer
    folder = line["short"].replace("-", "_")
    install = f"{seen.pip} install {line['name']}"
    export = wheels_on_path(seen.python, folder)
    note = (
        "Where the first command fails too, the old copy is the only one: a newer one has to stand "
        f"first on LD_LIBRARY_PATH, that of the wheel {line['name']} (the commands with install "
        "and export) or of a newer toolkit of the same CUDA major version."
    )
    helps = [*answer.help]
    helps[-1:-1] = [install, export]
    return replace(answer, help=tuple(helps), notes=(note, *answer.notes))


def _compiled_at_run_time(answer: Answer, seen: Seen, cache: str) -> Answer:
    """The program compiles the file itself, with the nvcc that it finds."""
    cause = answer.cause + (
        f" The file is compiled at run time and kept in {_CACHES[cache]}: with the nvcc that was "
        "found then, which is newer than the CUDA of torch. With the nvcc of torch's CUDA, and "
        "without what was kept, it is compiled to fit."
    )
    home = HOME_OF_TORCH.replace("{python}", seen.python)
    remove = f"rm -rf {_CACHES[cache]}"
    kept = [c for c in answer.help if '"torch==' not in c]
    return replace(answer, cause=cause, help=("nvcc --version; echo CUDA_HOME=$CUDA_HOME",
                                              home, remove, *kept))  # fmt: skip
