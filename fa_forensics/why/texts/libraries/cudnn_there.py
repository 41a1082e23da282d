"""A part of cuDNN that the text itself shows, in a directory where the loader does not look."""

from __future__ import annotations

import os
import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path
from fa_forensics.why.torch_names.history import order_key

_SONAME = lazily(r"libcudnn\w{0,40}\.so[.\d]{0,20}")
#: The first torch with cuDNN 9, and the month in which it came out (2024-07-24).
_FIRST_WITH_9, _SINCE = "2.4.0", "2024-08"


def cudnn_there(seen: Seen, soname: str) -> Answer | None:
    """The answer where the text shows the file that is not found; None for others."""
    path = seen.mention.detail.get("present", "")
    if not path or _SONAME.fullmatch(soname) is None:
        return None
    folder = os.path.dirname(path)
    number = re.search(r"\.so\.(\d{1,2})", soname)
    of = f" {number[1]}" if number is not None else ""
    cause = (
        f"{soname}, a part of cuDNN{of}, is there: the text has {path}. Nothing is to be "
        "installed; the loader does not look into that directory by itself, and what asks for the "
        "library asks by its name alone. LD_LIBRARY_PATH has to name the directory when Python "
        "starts."
    )
    folders = [folder]
    if folder.endswith("/nvidia/cudnn/lib"):
        folders.append(f"{folder.removesuffix('cudnn/lib')}cublas/lib")
        cause += (
            " It is the directory of NVIDIA's wheel, which torch knows and CTranslate2, ONNX "
            "Runtime and the like do not."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=(
            folder_on_path(seen.python, *folders),
            f"{seen.python} -c 'import ctypes; ctypes.CDLL(\"{soname}\")'",
            f"{seen.pip} list | grep -iE 'cudnn|cublas|ctranslate2|onnxruntime|^torch '",
        ),
        notes=(
            "The variable is read once, at the start of a program: export stands in the same shell "
            "before it (or in ~/.bashrc, a service's unit, an image's ENV); a value without export "
            "and one that Python sets itself come too late. The second command, in that shell, "
            "says nothing where the loader finds the library.",
            "One process has one cuDNN: where torch is in it too, the directory has to be that of "
            "torch's own cuDNN. A copy of another Python, or of another major version, does not "
            "count.",
        ),
    )  # fmt: skip


def is_before_cudnn_9(seen: Seen) -> bool:
    """Whether the text is of a torch, or of a month, before torch 2.4.0, the first with cuDNN 9."""
    if seen.torch:
        return order_key(seen.torch) < order_key(_FIRST_WITH_9)
    return "" < seen.versions.get("date", "") < _SINCE
