"""What a text tells of the copy of a CUDA library that lacks a name: a toolkit's, or conda's."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import first_by_line

#: The lib directory of conda itself or of an environment of it, without what Python installs.
_CONDA_LIB = re.compile(
    r"(?P<folder>/[\w./+~-]{0,200}(?:/envs/[\w.-]{1,60}|/(?:mini|ana|micro)?(?:conda|forge|mamba)\d?)"
    r"/lib)/lib[\w+]{1,40}\.so[\d.]{0,12}"
)
#: The first CUDA of which wheels are on record.
_FIRST_ON_RECORD = "11.7"
#: Libraries that toolkits have, by the owner's name.
_OF_TOOLKITS = ("cudart", "cublas", "cublasLt", "cusparse", "nvJitLink", "nvrtc", "cusolver")


def with_its_copy(answer: Answer, seen: Seen) -> Answer:
    """The answer with the place of the older copy, where the text tells one."""
    if answer.direction != NEWER or answer.owner is None:
        return answer
    own_build = seen.mention.detail.get("own_build", "")
    if own_build:
        return _own_build(answer, own_build)
    found = _CONDA_LIB.fullmatch(os.path.normpath(seen.mention.file or "."))
    if found is not None:
        from fa_forensics.why.texts.libraries.conda_copies_text import of_conda_library

        return of_conda_library(answer, seen, found["folder"])
    return _of_toolkit(answer, seen)


def _of_toolkit(answer: Answer, seen: Seen) -> Answer:
    """The toolkit or image that the text names is older than the name."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    owner = answer.owner or ""
    numbers = re.match(r"\d{1,2}\.\d{1,2}", toolkit)
    if owner not in _OF_TOOLKITS or numbers is None:
        return answer
    toolkit = numbers[0]
    since = _first_cuda(answer, toolkit)
    if since is None or parse_cuda(toolkit) >= parse_cuda(since):
        return answer
    if "LD_LIBRARY_PATH" not in answer.cause:
        return answer
    cause = answer.cause + (
        f" The text has CUDA {toolkit}: its {title_of(owner)} is older than that, and is most "
        "likely the copy that is loaded. Its directory (/usr/local/cuda/lib64, or a system one) "
        "has to leave LD_LIBRARY_PATH, or the wheel's own goes before it."
    )
    return replace(answer, cause=cause)


def _first_cuda(answer: Answer, toolkit: str) -> str | None:
    """The first CUDA toolkit with the name, as far as it is known."""
    known = cuda_name_since(answer.owner or "", answer.symbol or "")
    if known is not None:
        return known
    lines = first_by_line(answer.interval)
    major = toolkit.split(".")[0]
    if major == "11":
        return _FIRST_ON_RECORD if "11" in lines else None
    return lines.get(major)


def _own_build(answer: Answer, program: str) -> Answer:
    """A program or a library that was built by hand: the loader finds the system's older one."""
    word = (answer.owner or "").lower()
    title = title_of(answer.owner or "")
    cause = answer.cause + (
        f" The text is of {program}, without torch: what was compiled with a newer {title} finds "
        f"an older lib{word}.so when it starts, most often the system's. The loader takes what "
        "LD_LIBRARY_PATH names before that."
    )
    helps = (
        f"ldconfig -p | grep {word}",
        f"ldd PROGRAM | grep {word}",
        "env LD_LIBRARY_PATH=$PWD/build/lib:$LD_LIBRARY_PATH PROGRAM"
        if word == "nccl"
        else f"find / -name 'lib{word}.so*' -not -path '/proc/*' 2>/dev/null",
    )
    notes = (
        f"Put the lib directory of the {title} that the program was built with first (for NCCL "
        "build/lib of its source, and NCCL_HOME=.../build when nccl-tests is compiled), or remove "
        f"the older package of the system (apt-get remove lib{word}2 lib{word}-dev). No other CUDA "
        "is needed.",
    )
    return replace(answer, cause=cause, help=helps, notes=notes)
