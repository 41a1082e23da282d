"""A CUDA library of conda that is given another release of the one it asks for."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.nvidia.cuda_origin import NO_TOOLKIT, usual_copy
from fa_forensics.why.seen import Seen, directory_of
from fa_forensics.why.texts.libraries.needing import package_needing
from fa_forensics.why.ways.commands import inspect_command

#: The search path of conda's own torch: from torch/lib up to the environment's lib. The torch
#: of PyPI looks in ../../nvidia alone (readelf -d of both).
_RPATH_OF_CONDA = lazily(r"/torch/lib/(?:\.\./){4}lib\w")
_NOT_TORCH = lazily(r"-packages/(?P<name>(?!torch/|nvidia/)[A-Za-z_]\w{1,60})/")
#: The first version with the name, of NVIDIA's wheels for CUDA 12.
_SINCE_12 = lazily(r"-cu12 (?P<version>12\.\d{1,2})\.\d[\d.]{0,9} and later")
#: What conda's channels call the package of a library, for CUDA 12 and newer.
_PACKAGES = {
    "nvJitLink": "libnvjitlink",
    "cudart": "cuda-cudart",
    "nvrtc": "cuda-nvrtc",
    "cublas": "libcublas",
    "cublasLt": "libcublas",
    "cusparse": "libcusparse",
    "cusolver": "libcusolver",
}
_LIST = "conda list | grep -iE 'cublas|cusparse|nvjitlink|cudatoolkit|torch|cuda'"


def of_conda_library(answer: Answer, seen: Seen, folder: str) -> Answer:
    """A library in conda's lib directory asks for a name, and is given another release's copy."""
    if _RPATH_OF_CONDA.search(seen.mention.file or ""):
        return _of_condas_torch(answer, seen, folder)
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    if not seen.mention.version and owner_of_library(name) == answer.owner:
        return _conda_itself(answer, seen, folder)
    if _shows_torch(seen):
        return _beside_pips_torch(answer, seen, folder)
    return _beside_another(answer, seen, folder)


def _shows_torch(seen: Seen) -> bool:
    """Whether the text has torch at all, so that it can be what was loaded before."""
    shown = seen.torch is not None or "named:torch" in seen.versions
    return shown or "/torch/" in (seen.mention.file or "")


def _of_condas_torch(answer: Answer, seen: Seen, folder: str) -> Answer:
    """torch is conda's, and its environment has CUDA libraries of two releases."""
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    wanted = seen.mention.version or title_of(answer.owner or "")
    cause = answer.cause.replace(usual_copy(answer.owner or ""), "here most likely of conda")
    cause += (
        f" The path of {name} goes up from torch/lib into the environment ({folder}), which is how "
        f"conda's own torch finds CUDA's libraries: {name} is of one package of conda, and the "
        f"{wanted} that is loaded is of another one, with another release of CUDA (cudatoolkit "
        "beside libcublas and the other packages of pytorch-cuda), or LD_LIBRARY_PATH brings it "
        "from outside. One environment can hold one release of CUDA alone."
    )
    stem = wanted.split(".so")[0]
    own = name.split(".so")[0]
    helps = [_LIST, f"ls -l {_beside(folder, own)} {_beside(folder, stem)}",
             f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch'"]  # fmt: skip
    if "named:cudatoolkit" in seen.versions or seen.mention.detail.get("cudatoolkit"):
        helps.append("conda remove cudatoolkit")
    notes = (
        "Of the CUDA packages in that list, those of one release stay, the one that torch's build "
        "names: the other is removed (conda remove shows first what goes with it). Where they "
        "cannot be told apart, a new environment, with torch from conda alone or from pip alone, "
        "is the short way.",
        *_not_of_wheels(answer),
    )
    helps.append(inspect_command(seen.place, (seen.mention.file or "",)))
    return replace(answer, cause=cause, notes=notes, help=tuple(helps))


def _not_of_wheels(answer: Answer) -> tuple[str, ...]:
    """The remarks that hold without pip's torch."""
    about = re.compile(r"Of\sthe\storches\son\sthe\spackage\sindex\s|torch asks for ")
    return tuple(n for n in answer.notes if n != NO_TOOLKIT and not about.match(n))


def _beside_pips_torch(answer: Answer, seen: Seen, folder: str) -> Answer:
    """torch is in the text: its own copy of the library is most likely the one in the process."""
    owner = answer.owner or ""
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    package = _NOT_TORCH.search(seen.mention.file or "")
    module = package["name"] if package else _module(seen)
    wanted = seen.mention.version or f"lib{owner}"
    cause = answer.cause.replace(usual_copy(owner), "here most likely torch's own")
    cause += (
        f" {name} is conda's ({folder}) and counts on conda's {wanted}: the one that is in the "
        "process is most likely of pip's torch (torch/lib, or a wheel of NVIDIA), which was loaded "
        "first, or of a toolkit on LD_LIBRARY_PATH. Both have to come from one place."
    )
    notes = (
        "Where the first command works, the order is what counts: that import goes before torch. "
        "What lasts is one source: torch from conda as well (conda install -c conda-forge "
        f"pytorch-gpu in place of pip's), or {module} from pip like torch.",
        *(note for note in answer.notes if note != NO_TOOLKIT),
    )
    helps = (
        f"{seen.python} -c 'import {module}, torch'",
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import {module}'",
        _LIST,
        f"{seen.pip} list | grep -iE '^torch |nvidia'",
        inspect_command(seen.place, (seen.mention.file or "",)),
    )
    return replace(answer, cause=cause, notes=notes, help=helps)


def _beside(folder: str, stem: str) -> str:
    """What a shell takes for the files of one library in a directory of the text."""
    return f"{shlex.quote(f'{folder}/{stem}')}.so*"


def _beside_another(answer: Answer, seen: Seen, folder: str) -> Answer:
    """Nothing of torch is in the text: what brought the other copy is not told."""
    owner = answer.owner or ""
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    wanted = seen.mention.version or f"lib{owner}"
    module = _module(seen)
    cause = answer.cause + (
        f" {name} is conda's ({folder}) and counts on a {wanted} of its own release. Two causes "
        "fit: a directory on LD_LIBRARY_PATH (a toolkit's, as /usr/local/cuda/lib64 of an image) "
        "or a package that was imported before (torch of pip, a wheel of NVIDIA) has brought an "
        f"older one; or conda's own package of {wanted} is older than that of {name}."
    )
    helps = [
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import {module}'",
        f"echo $LD_LIBRARY_PATH; ls -l {_beside(folder, wanted.split('.so')[0])}; "
        "ls -d /usr/local/cuda*",
        _LIST,
    ]
    if package := package_of_conda(answer):
        helps.append(f'conda install -c conda-forge "{package}"')
    notes = (
        "Where the first command works, LD_LIBRARY_PATH is the cause: it is to be unset for this "
        "program, which in a notebook has to be done before the kernel starts. Where it does not, "
        f"conda's package of {wanted} has to become as new as that of {name}.",
        *_not_of_wheels(answer),
    )
    helps.append(inspect_command(seen.place, (seen.mention.file or "",)))
    return replace(answer, cause=cause, notes=notes, help=tuple(helps))


def _conda_itself(answer: Answer, seen: Seen, folder: str) -> Answer:
    """The message is of conda's own copy: that one lacks the name."""
    name = (seen.mention.file or "").rsplit("/", 1)[-1]
    cause = answer.cause + (
        f" {name} is conda's, in {folder}: its package there is older than what asks for the name "
        "was built with."
    )
    package = package_of_conda(answer)
    helps = [_LIST, *([f'conda install -c conda-forge "{package}"'] if package else [])]
    helps += ["echo $LD_LIBRARY_PATH", inspect_command(seen.place, (seen.mention.file or "",))]
    notes = (
        "Where torch is pip's, it brings the library along, and conda's package of it can go "
        "(conda remove), unless another package of conda's needs it.",
    )
    return replace(answer, cause=cause, help=tuple(helps), notes=notes, confidence="medium")


def package_of_conda(answer: Answer) -> str:
    """What conda is asked for, to get a library for CUDA 12 with the name; "" where unknown."""
    since = _SINCE_12.search(answer.interval or "")
    name = _PACKAGES.get(answer.owner or "", "")
    return f"{name}>={since['version']},<13" if name and since is not None else ""


def _module(seen: Seen) -> str:
    """What is imported when it fails, as the text tells it."""
    detail = seen.mention.detail
    told = (detail.get("import") or detail.get("imported", "")).partition(".")[0]
    if told:
        return told
    name = package_needing(seen) or directory_of(seen.mention.file or "") or ""
    return name.replace("-", "_") or "MODULE"
