"""What a text adds to a missing name of a CUDA library: conda's packages, and who compiled."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.seen import Seen

#: Libraries whose wheels, and conda packages, have the number of the CUDA toolkit itself.
_NUMBERED_AS_CUDA = ("cudart", "nvrtc", "nvJitLink", "cupti")
#: Libraries whose soname's number is the major version of conda's package of the same name.
_OF_CONDA = re.compile(
    r"(?P<stem>lib(?:cublas|cufft|curand|cusolver|cusparse))\.so\.(?P<major>\d\d)"
)
#: The first version that has a name, of the line for one CUDA major version.
_SINCE = re.compile(r"-cu(?P<line>\d\d) (?P<version>\d{1,2}\.\d{1,2})[\d.]{0,9} and later")


def with_text(answer: Answer, seen: Seen) -> Answer:
    """An answer on a CUDA library's name, with what the text says of conda and of the compiler."""
    if answer.provider is not None or answer.code != "FA204":
        return answer
    if seen.mention.detail.get("conda"):
        return _of_conda(answer, seen)
    return _compiled(answer, seen)


def _of_conda(answer: Answer, seen: Seen) -> Answer:
    """torch is conda's: its CUDA libraries are packages of conda, with versions of their own."""
    detail = seen.mention.detail
    found = _OF_CONDA.fullmatch(seen.mention.version or "")
    stem = found["stem"] if found else ""
    word = stem or (answer.owner or "cuda")
    helps = [f"conda list | grep -iE '{word}|pytorch|cuda'"]
    cause = answer.cause
    there = detail.get("conda_has", "")
    if found and there and not there.startswith(f"{found['major']}."):
        cause += (
            f" The text has {stem} {there} of conda, whose library is of another major version "
            f"than {found[0]}: the environment has none of that name, and the one that is loaded "
            "is from outside it."
        )
    if found:
        major = int(found["major"])
        channel = "nvidia" if detail.get("conda_cuda") else "conda-forge"
        helps.append(f'conda install -c {channel} "{stem}>={major},<{major + 1}"')
    note = (
        "conda's torch takes CUDA's libraries from other packages of conda (cudatoolkit, or one "
        "package for each library), and pip's wheels have no part in it: these have to be of the "
        "CUDA that the build of torch names."
    )
    if wanted := detail.get("conda_cuda"):
        note += f" The text installs it for CUDA {wanted}."
    kept = [c for c in answer.help if " pip " not in c]
    if seen.mention.file:
        helps.append(f"ldd {seen.mention.file} | grep {stem or word}")
    notes = [n for n in answer.notes if not _ABOUT_WHEELS.match(n)]
    return replace(answer, cause=cause, help=(*helps, *kept), notes=(note, *notes))


#: Remarks that hold for pip's torch alone.
_ABOUT_WHEELS = re.compile(r"torch's wheels need no|torch [\d.\u2013 and,later]+ brings? a version")


def _compiled(answer: Answer, seen: Seen) -> Answer:
    """The text names the toolkit that compiled: it is the one that knows the name."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    if answer.owner not in _NUMBERED_AS_CUDA or not re.fullmatch(
        r"\d{1,2}\.\d{1,2}[\d.]*", toolkit
    ):
        return answer
    file = seen.mention.file or ""
    lines = {m["line"]: m["version"] for m in _SINCE.finditer(answer.interval or "")}
    since = lines.get(toolkit.split(".")[0])
    if since is None or answer.direction != NEWER:
        return answer
    if re.search(r"/(?:torch/lib|nvidia)/", file):
        return answer  # nobody compiled that here
    if parse_cuda(toolkit) < parse_cuda(since):
        return answer
    title = title_of(answer.owner or "")
    cause = answer.cause + (
        f" The text has CUDA {toolkit}, which has the name: what that compiles needs "
        f"{title} of CUDA {since} or newer, and the one that is loaded, most often torch's, is of "
        "an older CUDA."
    )
    notes = (
        f"Two ways lead out: compile with a toolkit that is no newer than torch's CUDA, or take a "
        f"torch for CUDA {since} or newer.",
        f"The name is one of {title}: the NVIDIA driver has no part in this.",
    )
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    kept = [c for c in answer.help if "env -u" not in c]
    return replace(answer, cause=cause, help=(ask, "nvcc --version", *kept),
                   notes=(*notes, *answer.notes))  # fmt: skip
