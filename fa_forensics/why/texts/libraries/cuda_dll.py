"""A library of CUDA or cuDNN that Windows does not find, by its own name for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.nvidia.without_torch import releases_for
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.libraries.cudnn_there import is_before_cudnn_9

#: The packages that open these libraries by name, and torch, as findstr takes them.
_LIST = "ctranslate2 onnxruntime torch nvidia"


#: Said where the text does not name the package that opens the file.
_PERHAPS = (
    "The command for ctranslate2 is for programs that have it: faster-whisper and WhisperX do."
)


def cuda_dll(seen: Seen) -> Answer:
    """``Could not locate cudnn_ops64_9.dll``, ``Library cublas64_12.dll is not found``."""
    detail, dll = seen.mention.detail, seen.mention.library or ""
    stem, number = detail.get("stem", ""), detail.get("number", "")
    cudnn = stem.startswith("cudnn")
    major = number if cudnn or len(number) < 3 else number[:2]
    title = f"cuDNN {major}" if cudnn else f"CUDA {major}"
    cause = (
        f"{dll} is a library of {title} for Windows, and it is in none of the directories where "
        "Windows looks (PATH, and those that a package adds)."
    )
    named = _names_ctranslate2(seen)
    if named:
        cause += (
            f" CTranslate2 opens it by that name; it does not link torch. {_lines(_row(), cudnn)}"
        )
    else:
        cause += (
            " What opens it by that name is torch's own cuDNN, or a package such as CTranslate2 "
            "(faster-whisper, WhisperX) or ONNX Runtime, which does not link torch."
        )
    own = _of_torch(seen, cudnn)
    other = bool(own) and own != major
    row = _row() if named or other else None
    if other:
        cause += (
            f" The text has torch {seen.torch}, which brings {'cuDNN' if cudnn else 'CUDA'} {own}: "
            f"its files do not count for {title}."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn" if cudnn else stem.removesuffix("Lt"),
        direction=NONE, confidence="medium", help=_commands(seen, dll, major, cudnn, other, row),
        notes=(*_notes(seen, major, cudnn, other), *((_PERHAPS,) if other and not named else ())),
    )  # fmt: skip


def _commands(
    seen: Seen, dll: str, major: str, cudnn: bool, other: bool, row: Mapping[str, Any] | None
) -> tuple[str, ...]:
    helps = [f"where {dll}", f'{seen.pip} list | findstr /i "{_LIST}"']
    if row is not None and other:
        fitting = _fitting(seen, row, major, cudnn)
        helps += [f'{seen.pip} install "{fitting}"'] if fitting else []
    cuda = major if not cudnn else _cuda(seen)
    wheel = f"nvidia-cudnn-cu{cuda}=={major}.*" if cudnn else f"nvidia-cublas-cu{cuda}"
    if cuda in ("11", "12"):
        helps.append(f'{seen.pip} install "{wheel}"')
    return tuple(helps)


def _cuda(seen: Seen) -> str:
    """The CUDA major version of the text, which cuDNN's wheels are named for."""
    told = (seen.torch_cuda or seen.versions.get("cuda") or "12").split(".")[0]
    return told if told in ("11", "12") else "12"


def _fitting(seen: Seen, row: Mapping[str, Any], major: str, cudnn: bool) -> str:
    """The CTranslate2 for the cuDNN, or the CUDA, that torch brings."""
    if not cudnn:
        return releases_for(row, (seen.torch_cuda or "").split(".")[0]) or ""
    since = next(first for number, first in row["cudnn"] if number == "9")
    name = row["install"]
    if major == "8":
        return f"{name}>={since}"
    lower = releases_for(row, (seen.torch_cuda or "").split(".")[0]) or name
    return lower if "<" in lower else f"{lower},<{since}" if ">" in lower else f"{lower}<{since}"


def _notes(seen: Seen, major: str, cudnn: bool, other: bool) -> tuple[str, ...]:
    folder = "cudnn" if cudnn else "cublas"
    place = (
        f"NVIDIA's wheels for Windows have their DLLs in site-packages\\nvidia\\{folder}\\bin: "
        "that directory has to be on PATH before Python starts, as the bin directory of a CUDA "
        f"toolkit is ({'cuDNN ' if cudnn else ''}{major} there serves too). Other numbers under "
        "that name do not count."
    )
    torch = (
        "The commands that install are two ways where there are two: one of them is to be taken. "
        "Nothing of torch is to be replaced."
        if other
        else "A torch for CUDA of the same number has the file in torch\\lib: what opens it finds "
        "it there after import torch, or with that directory on PATH."
    )
    return (place, torch)


def _of_torch(seen: Seen, cudnn: bool) -> str:
    """The cuDNN, or the CUDA, that the torch of the text brings; "" where that is not told."""
    if not seen.torch:
        return ""
    if cudnn:
        return "8" if is_before_cudnn_9(seen) else "9"
    told = "torch_cuda" in seen.versions or "+cu" in seen.versions.get("torch", "")
    return (seen.torch_cuda or "").split(".")[0] if told else ""


def _names_ctranslate2(seen: Seen) -> bool:
    """Whether the text tells of CTranslate2, or of a package that is made on it."""
    detail = seen.mention.detail
    named = ("ctranslate2", "faster-whisper", "whisperx")
    told = any(f"named:{one}" in seen.versions or f"pkg:{one}" in seen.versions for one in named)
    return told or detail.get("by") == "ctranslate2" or bool(detail.get("used_by"))


def _row() -> Mapping[str, Any]:
    rows = read_table("without_torch.json")["rows"]
    found: Mapping[str, Any] = next(row for row in rows if row["title"] == "CTranslate2")
    return found


def _lines(row: Mapping[str, Any], cudnn: bool) -> str:
    """Which of its releases are for which cuDNN or CUDA."""
    (old, _), (new, since) = row["cudnn" if cudnn else "cuda"][-2:]
    what = "cuDNN" if cudnn else "CUDA"
    return f"It is for {what} {new} since {since}, and for {what} {old} before."


ANSWERERS: dict[str, Answerer] = {"cuda-dll": cuda_dll}
