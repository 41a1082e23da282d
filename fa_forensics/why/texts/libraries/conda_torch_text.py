"""A missing name of a CUDA library where torch is conda's: the libraries are conda's packages."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import first_by_line
from fa_forensics.why.texts.libraries.conda_copies_text import package_of_conda
from fa_forensics.why.ways.commands import without_path

#: Libraries whose soname's number is the major version of conda's package of the same name.
_OF_CONDA = lazily(r"(?P<stem>lib(?:cublas|cufft|curand|cusolver|cusparse))\.so\.(?P<major>\d\d)")
#: Libraries whose wheels for CUDA 12 have the number of the CUDA toolkit.
_NUMBERED_AS_CUDA = ("cudart", "nvrtc", "nvJitLink", "cupti", "cublas", "cublasLt")
#: What a judgement says of the wheel that pip's torch of that release brings.
_OF_PIPS_TORCH = lazily(
    r"(?:; |, and )nvidia-[\w-]{3,40} [\d.]{3,20}, brought by torch [^\n]{0,400}"
)


_NO_PIP = " pip's wheels have no part in it."
#: Said where no file shows which copy is loaded.
_PERHAPS_PIP = (
    " Where pip list shows an nvidia wheel with that library as well (another package brought it), "
    "there are two copies, and the first that is loaded counts: the directory of the newer one "
    "goes first on LD_LIBRARY_PATH when Python starts, or the older one goes."
)


def of_conda_torch(answer: Answer, seen: Seen) -> Answer:
    """torch is conda's: its CUDA libraries are packages of conda, with versions of their own."""
    detail = seen.mention.detail
    found = _OF_CONDA.fullmatch(seen.mention.version or "")
    stem = found["stem"] if found else ""
    word = stem or (answer.owner or "cuda")
    helps = [f"conda list | grep -iE '{word}|pytorch|cuda'"]
    mixed = bool(detail.get("pip_too"))
    cause = answer.cause if mixed else _OF_PIPS_TORCH.sub(_OLDER, answer.cause)
    held = "" if mixed else _held(answer, detail.get("conda_cuda", ""))
    cause += _of_another_number(seen, found) if found and not held else ""
    # conda-forge has one package for each library since CUDA 12.0, nvidia's channel since 11.3.
    old = found is not None and int(found["major"]) < 12
    channel = "nvidia" if detail.get("conda_cuda") or old else "conda-forge"
    package = package_of_conda(answer)
    if found and not package:
        major = int(found["major"])
        package = f"{stem}>={major},<{major + 1}"
    if package and not held:
        helps.append(f'conda install -c {channel} "{package}"')
    note = (
        "conda's torch takes CUDA's libraries from other packages of conda (cudatoolkit, or one "
        "package for each library): these have to be of the CUDA that the build of torch names."
    )
    if not mixed:
        note += _NO_PIP if seen.mention.file else ""
    if wanted := detail.get("conda_cuda"):
        note += f" The text installs it for CUDA {wanted}."
    note += "" if mixed or seen.mention.file else _PERHAPS_PIP
    kept = [c for c in answer.help if mixed or " pip " not in c]
    if not any("env -u LD_LIBRARY_PATH" in c for c in kept):
        kept.insert(0, without_path(seen.place))
    if seen.mention.file:
        helps.append(f"ldd {shlex.quote(seen.mention.file)} | grep {stem or word}")
    notes = [n for n in answer.notes if not _ABOUT_WHEELS.match(n)]
    if mixed:
        cause = cause.replace(", brought by torch ", ", brought by pip's torch ")
        return replace(answer, cause=cause, help=(*helps, *_of_pip(answer, seen), *kept),
                       notes=(note, _MIXED, *notes))  # fmt: skip
    if held:
        cause += (
            f" The text has pytorch-cuda {detail['conda_cuda']}, which goes with CUDA's libraries "
            "of that release alone: they are older than the name."
        )
        helps.append(f'conda create -n NAME -c conda-forge pytorch-gpu "cuda-version>={held},<13"')
        notes.insert(0, _HELD)
    return replace(answer, cause=cause, help=(*helps, *kept), notes=(note, *notes))


def _of_another_number(seen: Seen, found: re.Match[str]) -> str:
    """That conda's library can be of another major version, under another name; with a blank."""
    stem, there = found["stem"], seen.mention.detail.get("conda_has", "")
    if there.startswith(f"{found['major']}."):
        return ""
    if there:
        return (
            f" The text has {stem} {there} of conda, whose library is of another major version "
            f"than {found[0]}: the environment has none of that name, and the one that is loaded "
            "is from outside it."
        )
    return (
        f" Where the first command shows a {stem} of another major version than {found['major']}, "
        f"the environment has no {found[0]} at all, and the one that is loaded is from outside it."
    )


#: In place of what is said of pip's wheels.
_OLDER = ": the copy that is loaded is older than that."
#: Said where conda's torch is held to an older CUDA than the name is of.
_HELD = (
    "Beside that pytorch-cuda conda installs no newer one of its libraries. A new environment with "
    "conda-forge's torch for a newer CUDA (the command with conda create; NAME is its name), or "
    "with pip's torch and NVIDIA's wheels, is one way; an older release of the package that fails, "
    "which was built with an older CUDA, is the other."
)


def _held(answer: Answer, cuda: str) -> str:
    """The CUDA that a name came with, where conda's torch is held to an older one; "" else."""
    since = first_by_line(answer.interval).get("12", "")
    numbered = answer.owner in _NUMBERED_AS_CUDA and answer.direction == NEWER
    if not (numbered and since and re.fullmatch(r"12\.\d", cuda)):
        return ""
    return since if parse_cuda(cuda) < parse_cuda(since) else ""


#: Said where one text installs with conda and with pip.
_MIXED = (
    "The text installs with pip as well: what depends on torch can have brought pip's torch in the "
    "place of conda's, or NVIDIA's wheels beside it, and the libraries of the two are of different "
    "releases. The list of pip shows that; the newer library of the two has to be the one that is "
    "found, or the environment is made anew with torch from one of them alone."
)


def _of_pip(answer: Answer, seen: Seen) -> tuple[str, ...]:
    """The wheel that has the name, where the commands do not install it already."""
    since = _SINCE_12.search(answer.interval or "")
    if since is None or any(" install " in text for text in answer.help):
        return ()
    return (
        f"{seen.pip} list | grep -iE '^torch |nvidia'",
        f'{seen.pip} install "{since["wheel"]}>={since["version"]},<13"',
    )


#: The first version with a name, of a wheel for CUDA 12 that is numbered as CUDA is.
_SINCE_12 = lazily(r"(?P<wheel>nvidia-[a-z-]{3,30}-cu12) (?P<version>12\.[\d.]{1,12}) and later")


#: Remarks that hold for pip's torch alone.
_ABOUT_WHEELS = lazily(
    r"torch's wheels need no|Of\sthe\storches\son\sthe\spackage\sindex\s|torch asks for "
    r"|A newer release of the same major version serves torch"
)
