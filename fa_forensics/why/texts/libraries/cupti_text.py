"""CUPTI of one CUDA release, which no wheel of torch's and no cudatoolkit of conda's brings.

Up to CUDA 11 its name has the minor version too. In a toolkit it lies in extras/CUPTI/lib64, which
is on no path by itself (NVIDIA, CUPTI documentation). pytorch/vision issue 5635: a nightly of
torch was linked with it, where others have it inside.
"""

from __future__ import annotations

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import there_already
from fa_forensics.why.texts.libraries.needing import needing, package_of_text
from fa_forensics.why.texts.libraries.wheels_path import wheels_on_path

_CUPTI = lazily(r"libcupti\.so\.(?P<toolkit>(?:9|1[01])\.\d)")
#: The wheels nvidia-cuda-cupti-cu11, by the number in the library's name.
_WHEELS = {"11.7": "11.7.101", "11.8": "11.8.87"}


def cupti_of_one_release(seen: Seen, soname: str, owner: str | None) -> Answer | None:
    """The answer for ``libcupti.so.10.2`` where torch itself is not shown to ask; else None."""
    match = _CUPTI.fullmatch(soname)
    if match is None:
        return None
    cuda = match["toolkit"]
    detail = seen.mention.detail
    named = seen.mention.file or detail.get("import") or detail.get("by") or package_of_text(seen)
    who = needing(seen) if named else "what was imported"
    folder = f"/usr/local/cuda-{cuda}/extras/CUPTI/lib64"
    cause = (
        f"{who[0].upper()}{who[1:]} is linked with CUPTI, the profilers' library of CUDA {cuda}: "
        f"it needs {soname}, which is not found. It is a part of the CUDA {cuda} toolkit, in "
        f"{folder}, which is on no path by itself."
    )
    wheel = _WHEELS.get(cuda)
    if wheel is None:
        cause += (
            " No wheel has it, and conda's cudatoolkit does not either. torch's releases have "
            "CUPTI inside: where import torch alone fails so, this torch is a nightly, or a build "
            "of one's own, that was linked with it, and a release, or a nightly of another day, is "
            "the other way out."
        )
    python = seen.python
    helps = [
        f"{python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
        "find / -name 'libcupti.so*' -not -path '/proc/*' 2>/dev/null",
        f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
    ]
    if wheel is not None:
        helps[2:] = [
            f"{seen.pip} install nvidia-cuda-cupti-cu11=={wheel}",
            wheels_on_path(python, "cuda_cupti"),
        ]
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(*helps, seen.inspect_command()),
        notes=(
            "The directory that the second command finds goes on LD_LIBRARY_PATH. The library of "
            "another CUDA release under this name does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip
