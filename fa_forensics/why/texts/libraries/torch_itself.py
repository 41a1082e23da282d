"""A library of CUDA that torch itself, or perhaps torch itself, does not find."""

from __future__ import annotations

import re
import shlex

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.another_torch import another_torch, is_of_another_cuda
from fa_forensics.why.texts.libraries.brought_text import (
    brought_by_torch,
    known_releases,
    major_of,
    there_already,
    torch_again,
    wheel_of,
    wheels_of,
)
from fa_forensics.why.texts.libraries.first_try import of_first_try, of_torch_not_whole
from fa_forensics.why.texts.libraries.preloaded import NO_DEPS, other_builds, without_deps
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel, wheels_on_path
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "missing-library", "FA202"

#: torch's own file, from which it loads its libraries, in a traceback's steps.
_TORCH_INIT = lazily(r"(?:^|/)torch/__init__\.py$")
#: CUPTI's name carries the minor version up to CUDA 11.
_CUPTI = lazily(r"libcupti\.so\.(?P<toolkit>(?:9|1[01])\.\d)")
_CUDNN = lazily(r"libcudnn\w{0,40}\.so\.(\d{1,2})")
#: The first torch release whose wheels take CUDA from wheels of NVIDIA.
_FROM_WHEELS = "1.13.0"


def is_torch_itself(seen: Seen) -> bool:
    """Whether it is torch's own import that failed, before any extension's."""
    detail = seen.mention.detail
    if _TORCH_INIT.search(detail.get("frame", "")) or detail.get("import") in ("torch", "torch._C"):
        return True
    if "/torch/lib/" in (seen.mention.file or ""):
        return True
    named = seen.mention.file or detail.get("import") or detail.get("by")
    return bool(detail.get("torch_fails")) and not named


def _wanted(soname: str) -> str | None:
    """The one CUDA toolkit whose library has the name: "11.2" for ``libcupti.so.11.2``."""
    minor = _CUPTI.fullmatch(soname)
    return minor["toolkit"] if minor else exact_toolkit(soname)


def of_torch_itself(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer:
    """torch does not find a library of CUDA that it needs itself."""
    if seen.mention.detail.get("conda"):
        return conda_torch(seen, soname, owner)
    wanted = _wanted(soname)
    if wanted is not None and is_of_another_cuda(seen, wanted):
        return another_torch(seen, soname, owner, wanted)
    own = major or (seen.torch_cuda or "").split(".")[0] or (wanted or "").split(".")[0]
    wheels = _wheels(seen, soname, own)
    if wheels and _SPLIT.search(seen.mention.detail.get("frame", "")):
        return _in_another_directory(seen, soname, owner, wheels[0])
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part."
    )
    if seen.mention.detail.get("board") and wheels:
        return _on_board(seen, soname, owner)
    jetson = bool(seen.mention.detail.get("board") and not wheels and own)
    if jetson:
        cause += _of_board(seen, wanted or own)
    elif not wheels and (own or "0").isdigit() and 0 < int(own or "0") < 11:
        cause += (
            f" torch's wheels for CUDA {own} have it inside; a torch that needs it from outside "
            "is one of conda, which gets it from the package cudatoolkit, or was built for a "
            "system (Jetson, NGC, a distribution) with exactly that CUDA toolkit."
        )
    elif not wheels:
        cause += (
            " No wheel brings a library of that name: this torch is one of conda, which gets it "
            "from the package cudatoolkit, or was built for a system (Jetson, NGC, a "
            "distribution), with the very CUDA toolkit that has it."
        )
    else:
        bringer = wheels[0]
        if soname.endswith(".so") and seen.torch_cuda is None:
            bringer = f"a wheel such as {bringer}"
        cause += (
            f" A torch from PyPI gets it from {bringer}, which is not installed whole, or lies in "
            "another directory of packages than torch; a torch that was built for a system "
            "(Jetson, NGC, a distribution) takes it from that system's CUDA toolkit, in the "
            "version it was built with, or has it handed into the container."
        )
    if wheels and without_deps(seen):
        cause += NO_DEPS
    if wanted is not None and not jetson:
        cause += (
            " The name carries the minor version: the library of another CUDA release does not "
            "count."
        )
    helps, more = other_builds(seen, own) if wheels else ((), ())
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*_commands(seen, soname, wheels, wanted), *helps),
        notes=(*_notes(seen, wheels), *more, *there_already(seen)),
    )  # fmt: skip


#: torch as root's pip installs it on RHEL and its kin: compiled packages apart from all others.
_SPLIT = lazily(r"/lib64/python3\.\d{1,2}/(?:site|dist)-packages/torch/")


#: What torch looks for in all directories of packages when its first try fails, since 2.0.0
#: (cuda_libs in torch/__init__.py; cuSPARSELt, NVSHMEM and cuFile came later).
_LOOKED_FOR = ("cublas", "cudnn", "nvrtc", "cudart", "cupti", "cufft", "curand", "cusolver",
               "cusparse", "nccl")  # fmt: skip


_OF_NVIDIA = (
    "dnf finds libcusparselt0 only where NVIDIA's repository for CUDA is set up (cuda-rhel9.repo "
    "and the like)."
)


def _in_another_directory(seen: Seen, soname: str, owner: str | None, wheel: str) -> Answer:
    """torch lies in lib64, and NVIDIA's wheels, which are no compiled packages, in lib."""
    if (inside := of_torch_not_whole(seen, soname, owner)) is not None:
        return inside
    if seen.mention.detail.get("ctypes") and (owner or "") in _LOOKED_FOR:
        return of_first_try(seen, soname, owner, wheel)
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part. "
        f"torch lies in lib64, and pip puts {wheel} into lib on such a system (RHEL, Rocky, Alma, "
        "Amazon Linux, openSUSE), so that it is not beside torch, where torch looks. "
        "When that fails, torch looks through all directories of packages, for the libraries in a "
        "list of its own: this one is not in the list of that torch, or torch does not get there, "
        "since a CUDA of the system has those that it loads first."
    )
    if owner == "cusparseLt":
        cause += (
            " Release candidates of 2.6 and the nightlies before have no cuSPARSELt in it; 2.6.0 "
            "does (pytorch pull request 144477)."
        )
    word = re.split(r"[._]", soname.removeprefix("lib"))[0]
    helps = [
        f"{seen.pip} show -f {wheel} | grep -E '^Location|lib{word}'",
        wheels_on_path(seen.python, folder_of_wheel(wheel)),
        "python3 -m venv ENV && ENV/bin/python -m pip install torch",
    ]
    if "cusparselt" in soname.lower():
        helps.insert(2, "dnf install libcusparselt0")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(
            "Where the first command shows the library, the wheel is there and installing it again "
            "changes nothing. In an environment of venv lib64 is a link to lib, and torch finds "
            "its wheels; newer torch releases look through all directories of packages.",
            *((_OF_NVIDIA,) if "cusparselt" in soname.lower() else ()),
            *there_already(seen),
        ),
    )  # fmt: skip


def _of_board(seen: Seen, wanted: str) -> str:
    """What CUDA is on a Jetson, which its JetPack release brings and nothing else."""
    there = (seen.versions.get("cuda") or "").strip()
    words = (
        f" This torch is a build for CUDA {wanted}, and on a Jetson CUDA comes with the JetPack "
        "release alone: the board has a JetPack with another CUDA, or, in a container, the library "
        "was not handed in. NVIDIA's wheel of torch for the JetPack that is on the board has to "
        "replace this one."
    )
    if there and not f"{there}.".startswith(f"{wanted}."):
        words += f" The text has CUDA {there}."
    return words


def _wheels(seen: Seen, soname: str, own: str) -> tuple[str, ...]:
    """The wheels that can be meant: one where the CUDA of torch is told, else all."""
    if own:
        wheel = wheel_of(seen, soname, own)
        return () if wheel is None else (wheel,)
    table = seen.tables.libraries
    if table is None:
        return ()
    sonames = [soname]
    if soname.endswith(".so"):
        sonames = [name for name in table.sonames() if name.startswith(f"{soname}.")]
    rows = (row for name in sonames for row in table.releases(name))
    names = dict.fromkeys(row.distribution for row in rows)
    return tuple(sorted(names, key=lambda name: (major_of(name) != "12", name)))


def _commands(
    seen: Seen, soname: str, wheels: tuple[str, ...], wanted: str | None
) -> tuple[str, ...]:
    look = f"ldconfig -p | grep {shlex.quote(soname.split('.so')[0])}"
    helps = [f"{seen.pip} list | grep -iE '^(torch|nvidia|cuda)'"]
    if not wheels and seen.mention.detail.get("board"):
        return ("cat /etc/nv_tegra_release; ls -d /usr/local/cuda*", look, *helps)
    if not wheels:
        of_conda = f'conda install "cudatoolkit={wanted}"' if wanted else ""
        return (*helps, look, "conda list | grep -iE 'torch|cuda'", *filter(None, (of_conda,)))
    if seen.mention.detail.get("board"):
        return (*helps, look)  # what its system brings, no wheel replaces
    helps.append(f"{seen.pip} check | grep -i torch")
    cudnn = _CUDNN.match(soname)  # the wheel for one CUDA has had several cuDNN
    number = f"=={cudnn[1]}.*" if cudnn else f"=={wanted}.*" if wanted else ""
    wanted_wheel = brought_by_torch(seen, soname) or f"{wheels[0]}{number}"
    if not without_deps(seen):
        helps.append(f'{seen.pip} install --force-reinstall --no-deps "{wanted_wheel}"')
        helps.append(wheels_on_path(seen.python, folder_of_wheel(wheels[0])))
    if torch := _published(seen):
        helps.append(torch_again(seen, torch))
    elif without_deps(seen):
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir torch")
    return tuple(helps)


def _published(seen: Seen) -> str:
    """The release of a torch that takes its CUDA libraries from wheels, "" for another."""
    release = (seen.torch or "").partition("+")[0]
    if not re.fullmatch(r"\d+\.\d+\.\d+", release):
        return ""
    return release if order_key(release) >= order_key(_FROM_WHEELS) else ""


_ON_JETSON = (
    "On a Jetson the wheel must be one for its JetPack release; in a container there, docker run "
    "--runtime nvidia hands the system's libraries in."
)


_POETRY = (
    "The environment is one of Poetry: it takes what a release depends on from one of its wheels, "
    "and leaves NVIDIA's wheels out where that one lists none, as with torch 2.0.1. Another "
    'release of torch (poetry add "torch!=2.0.1") is the way that lasts; the pip commands here are '
    "to be run in that environment (poetry run before them)."
)


def _notes(seen: Seen, wheels: tuple[str, ...]) -> tuple[str, ...]:
    notes = []
    board = seen.mention.detail.get("board")
    if wheels and "/pypoetry/" in f"{seen.mention.detail.get('frame', '')}{seen.mention.file}":
        notes.append(_POETRY)
    if len(wheels) > 1 and not board:
        notes.append(
            f"{', '.join(wheels)}: the one for torch's own CUDA is meant, cu12 for CUDA 12; the "
            "command pip check names it."
        )
    if board or not wheels:
        notes.append(_ON_JETSON)
    return tuple(notes)


def conda_torch(seen: Seen, soname: str, owner: str | None) -> Answer:
    """The text installs torch with conda: other packages of conda bring CUDA."""
    detail = seen.mention.detail
    wanted, there = _wanted(soname), detail.get("cudatoolkit", "")
    cause = (
        f"{soname} is a library of CUDA, and conda's torch gets those from other packages of "
        "conda (cudatoolkit up to CUDA 11, one package for each library since 12): the torch that "
        "is installed is a build for CUDA, and that package is not there, or is another version."
    )
    if wanted and there and there != wanted:
        cause += (
            f" The name is that of CUDA {wanted} alone, and the text has cudatoolkit {there}: "
            f"torch was built with {wanted}, and the library of {there} has another name."
        )
    elif wanted:
        cause += f" The name is that of CUDA {wanted} alone: another cudatoolkit does not count."
    helps = ["conda list | grep -iE 'torch|cuda'"]
    if wanted:
        helps.append(f'conda install -c conda-forge "cudatoolkit={wanted}"')
    notes = []
    if detail.get("cpu_wanted"):
        helps.append('conda install -c conda-forge "pytorch=*=cpu*"')
        notes.append("A build for the CPU, which the last command installs, needs no CUDA at all.")
    notes.append(
        "The build of conda's torch names its CUDA (py39_cuda112, cuda11.3_cudnn8): cudatoolkit "
        "has to be of that version. conda update can bring a build with a wider choice."
    )
    certain = bool(wanted and there and there != wanted)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE,
        confidence="high" if certain else "medium", help=tuple(helps),
        notes=(*notes, *there_already(seen)),
    )  # fmt: skip


def perhaps_torch(seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...]) -> Answer:
    """A library that torch itself needs, and nothing in the text says who misses it."""
    if seen.mention.detail.get("conda"):
        return conda_torch(seen, soname, owner)
    if seen.mention.detail.get("board"):
        return _on_board(seen, soname, owner)
    if seen.torch and order_key(seen.torch) < order_key(bringing[0]):
        return _before_wheels(seen, soname, owner, bringing)
    cause = (
        f"torch's own libraries need {soname}, and pip's torch gets it from "
        f"{wheels_of(seen, soname)}. Where import torch alone fails in this way, that wheel is "
        "missing or not whole, or lies in another directory than the torch that is imported: "
        "torch looks beside itself, in site-packages/nvidia. Where import torch works, an "
        "extension was imported before it. The first command tells them apart."
    )
    helps = [_which(seen), _list(seen, soname)]
    if torch := _published(seen):
        helps.append(torch_again(seen, torch))
    elif not seen.torch:
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir torch")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(*there_already(seen), _span(seen, soname, bringing)),
    )  # fmt: skip


def _on_board(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A Jetson, whose JetPack release brings CUDA and cuDNN, and no wheel."""
    cause = (
        f"On a Jetson {soname} is a part of JetPack, and NVIDIA's torch for it takes it from "
        "there: CUDA is not installed on the board (a system of another make, or JetPack's runtime "
        "packages are missing), the wheel is for another JetPack than the board has, or, in a "
        "container, the library was not handed in."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=("cat /etc/nv_tegra_release; dpkg -l | grep -iE 'nvidia-jetpack|cuda|cudnn'",
              f"ldconfig -p | grep {shlex.quote(soname.split('.so')[0])}; ls -d /usr/local/cuda*",
              "apt-get install nvidia-jetpack", f"{seen.pip} list | grep -iE '^torch'"),
        notes=(
            _ON_JETSON,
            "Where the library lies below /usr/local/cuda and ldconfig does not list it, its "
            "directory is to be on LD_LIBRARY_PATH.", *there_already(seen)),
    )  # fmt: skip


def _before_wheels(seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...]) -> Answer:
    """torch is older than the wheels that bring the library."""
    cause = (
        f"torch {seen.torch} is older than NVIDIA's wheels with {soname}: its own wheels have such "
        "libraries inside. What needs it by that name is a torch of conda or of a build of its "
        "own, which is for CUDA and misses CUDA's libraries, or an extension that was built with "
        "a CUDA toolkit. The first command tells them apart."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="low",
        help=(_which(seen), "conda list | grep -iE 'torch|cuda'",
              f"ldconfig -p | grep {shlex.quote(soname.split('.so')[0])}"),
        notes=(*there_already(seen), _span(seen, soname, bringing)),
    )  # fmt: skip


def _which(seen: Seen) -> str:
    return f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__)'"


def _list(seen: Seen, soname: str) -> str:
    word = re.split(r"[._]", soname.removeprefix("lib"))[0]
    return f"{seen.pip} list | grep -iE {shlex.quote(f'^torch|{word}')}"


def _span(seen: Seen, soname: str, bringing: tuple[str, ...]) -> str:
    span = interval_text(bringing, known_releases(seen))
    return f"torch {span} for CUDA bring{'s' if len(bringing) == 1 else ''} {soname}."
