"""A copy of a CUDA library that lacks a name, where the text shows that it need not be older."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.atlas.builds import release_key
from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.nvidia.cuda_origin import BESIDE, OLDER_THAN_THAT
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.libraries.brought_text import first_by_line
from fa_forensics.why.texts.libraries.own_torch_cuda import ABOUT_WHEELS, WHEEL_OF_TORCH

#: Libraries whose wheels have the number of the CUDA toolkit itself, and since which CUDA.
_NUMBERED = {"cudart": 11, "nvrtc": 11, "nvJitLink": 12, "cupti": 11, "cublas": 12, "cublasLt": 12}
#: The first of NVIDIA's wheels without a CUDA in its name that has the name.
_SINCE_13 = lazily(r"nvidia-[a-z-]{3,30} (?P<version>13\.\d{1,2})\.[\d.]{1,9} and later")
#: A version of torch as a build of its sources has it, and one of a night.
_OF_SOURCES = lazily(r"\d[\d.]{1,10}a\d|\d[\w.]{1,20}\+git")
#: The torch libraries of a source tree: below no directory of packages.
_IN_TREE = lazily(r"[^\s:]{0,200}/pytorch[^/\s]{0,20}/(?:torch|build)/lib/lib\w{2,30}\.so")


def doubted(answer: Answer, seen: Seen) -> Answer:
    """The answer without "it is older", where the text has a library as new as the name.

    A build of one's own, a preview's toolkit or a distribution's torch has its library from
    elsewhere than a wheel, and that one can lack a name that its headers declare.
    """
    if answer.direction != NEWER or answer.code != "FA204":
        return answer
    built = _of_no_wheel(seen)
    brought = bool(built) and WHEEL_OF_TORCH.search(answer.cause) is not None
    reason = _as_new(answer, seen) + built
    if not reason or not (brought or OLDER_THAN_THAT in answer.cause):
        return answer
    title = title_of(answer.owner or "")
    cause = answer.cause.replace(BESIDE, "").replace(OLDER_THAN_THAT, ".")
    cause = WHEEL_OF_TORCH.sub(".", cause) if brought else cause
    cause += (
        f"{reason} Two causes fit: another, older copy of {title} than the one that is meant is "
        "loaded (of LD_LIBRARY_PATH, of another wheel, of conda or of the system); or the one "
        "that is meant is loaded and lacks the name, because the headers that the file was "
        "compiled with are of another release than the library, as those of a preview can be."
    )
    if not built or "nightly" in seen.versions:
        return replace(answer, cause=cause, confidence="medium")
    file = seen.mention.file or ""
    shown = quoted(file) if file.startswith("/") and "..." not in file else ""
    stem = f"lib{(answer.owner or '').lower()}"
    helps = (
        f"ldd {shown or '/path/to/the/failing.so'} | grep -i {stem}",
        f"echo $LD_LIBRARY_PATH; ldconfig -p | grep -i {stem}",
        answer.help[-1],
    )
    kept = tuple(n for n in answer.notes if not ABOUT_WHEELS.match(n))
    return replace(answer, cause=cause, help=helps, notes=kept, confidence="medium")


def _as_new(answer: Answer, seen: Seen) -> str:
    """That the text has a release of the library which has the name; "" where it does not."""
    owner, versions = answer.owner or "", seen.versions
    file = seen.mention.file or ""
    if "torch/lib/" not in file or "nvidia/" in file:
        return ""  # a library of NVIDIA's own, or a file whose compiler the text tells
    title = title_of(owner)
    own = seen.mention.detail.get(owner.lower(), "") or versions.get(owner.lower(), "")
    lines = [*first_by_line(answer.interval).values()]
    if owner in ("cudnn", "nccl"):
        same = [one for one in lines if one.split(".")[0] == own.split(".")[0]]
        if same and release_key(own) >= min(map(release_key, same)):
            return f" The text has {title} {own}, which is not older than the first with the name."
        return ""
    told = re.match(r"\d{1,2}\.\d{1,2}", (seen.torch_cuda or versions.get("cuda") or "").strip())
    if told is None or parse_cuda(told[0])[0] < _NUMBERED.get(owner, 99):
        return ""
    since = _first(answer, told[0].split(".")[0])
    if not since or parse_cuda(told[0]) < parse_cuda(since):
        return ""
    return f" The text has CUDA {told[0]}, which is not older than the first with the name."


def _first(answer: Answer, major: str) -> str:
    """The first CUDA of one major version whose library has the name."""
    known = cuda_name_since(answer.owner or "", answer.symbol or "")
    if known:
        return known
    newest = _SINCE_13.search(answer.interval or "")
    if major == "13" and newest is not None:
        return newest["version"]
    return first_by_line(answer.interval).get(major, "")


def _of_no_wheel(seen: Seen) -> str:
    """That the text's torch is none of the package index; "" where nothing says so."""
    file, torch = seen.mention.file or "", seen.versions.get("torch", "")
    by = seen.versions.get("torch_by", "")
    if by:
        return f" The torch in the text is {by}, whose libraries of NVIDIA are not those of pip."
    if "nightly" in seen.versions:
        return " The torch in the text is a nightly, which can be newer than what is on record."
    tree = _IN_TREE.match(file) and "-packages/" not in file and "..." not in file
    if "flag:torch-source" in seen.versions or tree or _OF_SOURCES.match(torch):
        return " torch was built from source, with the libraries of a toolkit or of the system."
    return ""
