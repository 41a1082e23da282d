"""What a text tells of the copy of a CUDA library that lacks a name: a toolkit's, or conda's."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace

from fa_forensics.atlas.builds import release_key
from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.nvidia.cuda_origin import THIS_COPY
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import first_by_line

#: The lib directory of conda itself or of an environment of it, without what Python installs.
_CONDA_LIB = lazily(
    r"(?P<folder>/[\w./+~-]{0,200}(?:/envs/[\w.-]{1,60}|/(?:mini|ana|micro)?(?:conda|forge|mamba)\d?)"
    r"/lib)/lib[\w+]{1,40}\.so[\d.]{0,12}"
)
#: The first CUDA of which wheels are on record.
_FIRST_ON_RECORD = "11.7"
#: Libraries that toolkits have, by the owner's name.
_OF_TOOLKITS = (
    "cudart", "cublas", "cublasLt", "cusparse", "nvJitLink", "nvrtc", "cusolver", "cupti",
)  # fmt: skip


def with_its_copy(answer: Answer, seen: Seen) -> Answer:
    """The answer with the place of the older copy, where the text tells one."""
    if answer.direction != NEWER or answer.owner is None:
        return answer
    if THIS_COPY in answer.notes and (root := _program_of(seen.mention.file or "")):
        return _of_program(answer, seen, root)
    own_build = seen.mention.detail.get("own_build", "")
    if own_build:
        return _own_build(answer, own_build)
    found = _CONDA_LIB.fullmatch(os.path.normpath(seen.mention.file or "."))
    if found is not None:
        from fa_forensics.why.texts.libraries.conda_copies_text import of_conda_library

        return of_conda_library(answer, seen, found["folder"])
    return _of_system_cudnn(answer, seen) if answer.owner == "cudnn" else _of_toolkit(answer, seen)


def _of_system_cudnn(answer: Answer, seen: Seen) -> Answer:
    """The cuDNN that the text has beside the wheels is older than the name."""
    there = seen.mention.detail.get("cudnn", "")
    known = cuda_name_since("cudnn", answer.symbol or "")
    firsts = [known] if known else [*first_by_line(answer.interval).values()]
    same = [one for one in firsts if there and one.split(".")[0] == there.split(".")[0]]
    if not same or release_key(there) >= min(map(release_key, same)):
        return answer
    cause = answer.cause + (
        f" The text has cuDNN {there}: it is older than that, and is most likely the copy that is "
        "loaded. Its directory (/usr/local/cuda/lib64, or that of its archive) has to leave "
        "LD_LIBRARY_PATH, or the wheel's own goes before it."
    )
    return replace(answer, cause=cause)


#: A program's own directory of libraries, beside its bin: ``/opt/dorado/bin/../lib/libnvrtc.so``.
_OF_PROGRAM = lazily(r"(?P<root>/[^\s:]{1,300})/bin/\.\./lib(?:64)?/[^/\s]{1,80}")
#: The CUDA in the name of such a directory: "v0.3.0-Debug.cuda118".
_CUDA_IN_NAME = lazily(r"[._-]cu(?:da)?[_-]?(?P<major>1[0-9])\.?(?P<minor>\d)(?!\d)")


def _program_of(file: str) -> str:
    """The directory of the program that brings a library along; "" for none."""
    found = _OF_PROGRAM.fullmatch(file)
    if found is None or "-packages/" in file or "/envs/" in file:
        return ""
    root = found["root"]
    return "" if re.search(r"conda|/usr(?:/local)?$|/cuda[^/]{0,20}$", root) else root


def _of_program(answer: Answer, seen: Seen, root: str) -> Answer:
    """A compiled program brings that copy itself, in lib beside its bin."""
    file = os.path.normpath(seen.mention.file or "")
    folder, _, name = file.rpartition("/")
    stem = name.split(".so")[0]
    found = _CUDA_IN_NAME.search(root)
    cuda = f"{found['major']}.{found['minor']}" if found else ""
    told = re.match(r"\d{1,2}\.\d", (seen.versions.get("cuda") or "").strip())
    cuda = cuda or (told[0] if told else "")
    of = f"CUDA {cuda}" if cuda else "the CUDA that it was built with"
    cause = answer.cause + (
        f" It is the program's own, in {folder} beside its bin: what was packed there is not the "
        f"{stem} of {of}. What asked for the name is there; no torch and no driver has a part in "
        "this."
    )
    toolkit = f"/usr/local/cuda-{cuda}" if cuda else "/usr/local/cuda"
    helps = (
        f"ls -l {shlex.quote(folder)}/{stem}*; readelf -d {shlex.quote(file)} | grep SONAME",
        f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null",
        f"env LD_LIBRARY_PATH={toolkit}/lib64${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} PROGRAM",
        answer.help[-1],
    )
    notes = (
        f"Whoever packs the program puts the {stem} of {of} there, with what belongs to it "
        f"(libnvrtc-builtins beside libnvrtc); who only runs it takes another release of it. Until "
        "then that toolkit's directory on LD_LIBRARY_PATH goes before it, if the program does not "
        "have its own directory as RPATH.",
    )
    return replace(answer, cause=cause, help=helps, notes=notes)


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
        f" The text has CUDA {toolkit}: {title_of(owner)} of that one is older, and is most "
        "likely the copy that is loaded. Its directory (/usr/local/cuda/lib64 and the like) has to "
        "leave LD_LIBRARY_PATH, or the wheel's own goes before it."
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
        "env LD_LIBRARY_PATH=$PWD/build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PROGRAM"
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
