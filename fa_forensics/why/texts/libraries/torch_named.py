"""A compiled part that a package has once for each torch release, with that in its file name."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.torch_index import index_option, is_on_index
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Answerer, Seen, directory_of
from fa_forensics.why.texts.libraries.needing import package_needing, torch_label

#: DGL's parts by the beginning of their names.
_OF_DGL = ("graphbolt", "dgl_sparse", "tensoradapter")
#: The torch releases for which DGL gives out wheels, by its own page (data.dgl.ai/wheels).
_FIRST_DGL, _LAST_DGL = (2, 1), (2, 4)


def torch_named_library(seen: Seen) -> Answer:
    """``Cannot find DGL C++ graphbolt library at .../libgraphbolt_pytorch_2.4.0.so``."""
    detail, path = seen.mention.detail, seen.mention.library or ""
    torch, stem, tail = detail.get("torch", ""), detail["stem"], detail.get("tail", "")
    name = path.rsplit("/", 1)[-1]
    dgl = stem.removeprefix("lib") in _OF_DGL
    package = "dgl" if dgl else package_needing(seen) or directory_of(path) or "PACKAGE"
    if not torch:
        return _torch_not_told(seen)
    title = "DGL" if dgl else package
    cause = (
        f"{title} has a compiled part for each torch release that it serves, with the release in "
        f"the file's name, and opens {name} because torch {torch} is there: the {title} that is "
        f"installed has none for torch {torch}. A {title} that serves torch {torch} has to replace "
        "it, or torch has to be one of those that it has a file for. No library of CUDA is missing."
    )
    if tail:
        cause = _of_another_number(title, name, torch, tail)
    folder = path.rpartition("/")[0]
    where = folder if folder.startswith("/") else _folder(seen, package)
    where = where if where.startswith("$(") else shlex.quote(where)
    helps = [f"ls {where} | grep {stem}", f"{seen.pip} list | grep -iE '^torch |{package}'"]
    notes = [
        f"The first command lists the torch releases that this {title} serves: each file has one "
        "in its name. One of these, as pip install torch==RELEASE, is the other way out."
    ]
    if tail:
        helps += _official(seen, torch)
        notes.append(_ON_TWO_BUILDS)
    if dgl:
        _of_its_list(seen, torch, tail, path, helps, notes)
    return seen.answer(
        "missing-library", "FA202", cause, owner=title, direction=NONE,
        confidence="high", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _of_its_list(
    seen: Seen, torch: str, tail: str, path: str, helps: list[str], notes: list[str]
) -> None:
    """Adds where a DGL for that torch is, or the torch that the last DGL serves."""
    if not_linux(seen, path):
        helps.append(f'{seen.pip} install "torch==2.3.0" dgl')
        notes.append(
            "DGL's last wheels for macOS and Windows are those of 2.2.1 (May 2024), which have a "
            "file for torch 2.1.0 to 2.2.2 and for 2.3.0; later ones are for Linux alone."
        )
        return
    minor = tuple(int(part) for part in torch.split(".")[:2])
    if tail and _FIRST_DGL <= minor <= _LAST_DGL:
        pass  # the DGL that is there has a file for that torch of PyTorch's own
    elif _FIRST_DGL <= minor <= _LAST_DGL:
        label = torch_label(seen)
        at = f"/{label}" if re.fullmatch(r"cu(?:118|121|124)", label) else ""
        helps.append(_from_list(seen, f"torch-{minor[0]}.{minor[1]}{at}"))
        notes.append(
            "The package index has DGL up to 2.1 alone, and those wheels are for the torch of "
            "their time: DGL's own list has wheels for each torch minor release (2.1 to 2.4), and "
            "for a CUDA below it (/cu118, /cu121, /cu124 before repo.html). They are built with "
            "one patch release: where the file is still missing, torch has to be that one."
        )
        notes.append(_WITH_DATA)
    else:
        if f'{seen.pip} install "torch==2.4.0"' not in helps:
            helps.append(f'{seen.pip} install "torch==2.4.0"')
        helps.append(_from_list(seen, "torch-2.4/cu121"))
        notes.append(
            "DGL gives out no wheels for a torch newer than 2.4: torch 2.4.0 with the DGL of that "
            "list, or a DGL that is built from source."
            if minor > _LAST_DGL
            else f"torch {torch} is older than those that DGL's list has wheels for (2.1 to 2.4). "
            "The nearest way is one of the torch releases that the first command lists, with the "
            "DGL that is there; the two commands with install bring both up to date."
        )
        notes += [_OF_ITS_CUDA, _WITH_DATA]


def _from_list(seen: Seen, place: str) -> str:
    """DGL anew from its own list, with what its newer releases import."""
    return (
        f'{seen.pip} uninstall -y dgl && {seen.pip} install dgl "torchdata<0.10" -f '
        f"https://data.dgl.ai/wheels/{place}/repo.html"
    )


_OF_ITS_CUDA = (
    "The list is that for CUDA 12.1, as the package index has torch 2.4.0: beside a torch of "
    "PyTorch's index for another CUDA it is cu118 or cu124 in place of cu121, and without either "
    "for the CPU."
)
#: torchdata 0.10.0 removed datapipes (its release notes), which DGL 2.0 to 2.3 import.
_WITH_DATA = (
    "DGL 2 imports packages that DGL 1 did not, torchdata among them, which the command installs: "
    "torchdata from 0.10 on no longer has the part that DGL needs."
)


def _torch_not_told(seen: Seen) -> Answer:
    """DGL's message without the path behind it, in a text that names no torch."""
    cause = (
        "DGL has a compiled part for each torch release that it serves, with the release in the "
        "file's name: the DGL that is installed has none for the torch that is there. A DGL that "
        "serves this torch has to replace it, or torch has to be one of those that it has a file "
        "for. No library of CUDA is missing."
    )
    stem = seen.mention.detail["stem"]
    return seen.answer(
        "missing-library", "FA202", cause, owner="DGL", direction=NONE, confidence="high", help=(
            f"ls {_folder(seen, 'dgl')} | grep {stem.removeprefix('lib')}",
            f"{seen.pip} list | grep -iE '^torch |dgl'",
        ), notes=(
            "The first command lists the torch releases that this DGL serves: each file has one in "
            "its name. One of these, as pip install torch==RELEASE, is the way out.",
        ),
    )  # fmt: skip


def not_linux(seen: Seen, path: str) -> bool:
    """Whether the text is of macOS or Windows."""
    told = seen.versions.get("os", "").lower()
    of_users = any(
        place.startswith("/Users/") or place[1:3] == ":\\" for place in seen.paste.places
    )
    return (
        path.endswith((".dll", ".dylib")) or of_users or told.startswith(("mac", "darwin", "win"))
    )


def _of_another_number(title: str, name: str, torch: str, tail: str) -> str:
    """What is wrong where torch calls itself by a number that no release of PyTorch's has."""
    who = (
        "conda-forge's torch calls itself so" if tail.startswith(".post")
        else "a nightly or another pre-release of torch calls itself so"
    )  # fmt: skip
    return (
        f"{title} has a compiled part for each torch release that it serves, and makes the file's "
        f"name of what torch calls itself: it looks for {name} because torch {torch}{tail} is "
        f"there ({who}), and no file of {title}'s is named by that. It has to be PyTorch's own "
        f"torch {torch}, if {title} has a file for that, or another of the releases that it has "
        f"one for, or a {title} that was built on this torch. No library of CUDA is missing."
    )


def _official(seen: Seen, torch: str) -> tuple[str, ...]:
    """PyTorch's own build of a release, in place of conda-forge's."""
    told = seen.torch_cuda or seen.versions.get("cuda", "")
    found = re.match(r"(1[123])\.(\d)", told)
    install = f'{seen.pip} install "torch=={torch}"'
    if found is not None and is_on_index(torch, f"cu{found[1]}{found[2]}"):
        install += index_option(f"cu{found[1]}{found[2]}")
    return ("conda remove --force pytorch", install)


#: What is to be thought of where conda's torch gives way to pip's.
_ON_TWO_BUILDS = (
    "conda remove --force takes conda's torch alone away (its package is pytorch), so that pip's "
    "does not lie over it; what else conda has that was built on its torch, torchvision and the "
    "like, has to come from pip too then. A new environment with PyTorch's own torch and pip's "
    "DGL is the other way."
)


def _folder(seen: Seen, package: str) -> str:
    """The package's directory, by the interpreter, without importing it."""
    module = package.replace("-", "_")
    return (
        f"$(dirname $({seen.python} -c 'import importlib.util as u; "
        f'print(u.find_spec("{module}").origin)\'))/*'
    )


ANSWERERS: dict[str, Answerer] = {"torch-named-library": torch_named_library}
