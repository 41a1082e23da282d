"""Packages of torch's family that conda installed, from two of its channels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place
from fa_forensics.why.seen import directory_of, file_of
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_FAMILY = ("torchaudio", "torchvision", "torchtext")
#: The last torch that the channel pytorch has (pytorch issue 138506).
_LAST_OF_CHANNEL = "2.5.1"
_OF_THE_INDEX = lazily(
    r"\"torch[=>]=|\sinstall\s--force-reinstall\s--no-deps|\s--upgrade\s|^rm\s-rf\sbuild"
)
_ON_INDEX = lazily(
    r"(?:Compiled on that machine|Where pip|The command that begins|Of the wheels on PyPI"
    r"|torch [\d.]{3,9}(?: and later)? ha(?:s|ve) (?:the file's|no wheel)|No wheel of torch that"
    r"|One of the two|Another build of|The command takes both|The package index has)"
)


#: The CUDA of a build: "py3.11_cuda12.1_cudnn8.9.2_0", "cuda112py39...".
_CUDA = lazily(r"cuda(?:(?P<whole>\d{1,2}\.\d)|(?P<label>\d{2,3}))")
#: The first torch of the channel whose CUDA is chosen by pytorch-cuda, which is of the channel
#: nvidia's libraries; before it was cudatoolkit (pytorch.org's page previous-versions).
_BY_PYTORCH_CUDA = "1.13.0"


def _build_of_channel(build: str, torch: str) -> str:
    """What keeps the build of the channel pytorch: cpuonly, or the package that names its CUDA."""
    found = _CUDA.search(build)
    if found is None:
        return " cpuonly" if "cpu" in build else ""
    cuda = found["whole"] or cuda_of_label(found["label"])
    if torch and order_key(torch) < order_key(_BY_PYTORCH_CUDA):
        return f" cudatoolkit={cuda} -c conda-forge"
    return f" pytorch-cuda={cuda} -c nvidia"


def of_one_channel(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer where the text shows conda's build of torch beside one of its family."""
    build = paste.versions.get("flag:conda-build", "")
    if answer.direction != FLAVOUR or not build:
        return answer
    file = file_of(paste)
    name = directory_of(file) if file else None
    named = [one for one in _FAMILY if f"pkg:{one}" in paste.versions]
    name = name or (named[0] if len(named) == 1 else None)
    if name not in _FAMILY:
        return answer
    torch = place.present.release if place.present is not None else ""
    own = paste.versions.get(f"pkg:{name}", "")
    if "+" in own or "pyenv" in file:
        return answer  # compiled by somebody, on conda's torch: none of conda's packages
    of_torch = paste.versions.get("flag:channel:pytorch")
    if of_torch is not None and of_torch == paste.versions.get(f"flag:channel:{name}"):
        return answer  # one maker: conda's packages are not what differs
    channel = "conda-forge"
    if torch and place.machine == "x86_64" and order_key(torch) <= order_key(_LAST_OF_CHANNEL):
        channel = "pytorch"
    pins = [f"{channel}::pytorch={torch}" if torch else f"{channel}::pytorch"]
    pins.append(f"{channel}::{name}={own}" if own else f"{channel}::{name}")
    if channel == "conda-forge" and "cuda" in build:
        pins[0] = pins[0].replace("::pytorch", "::pytorch-gpu")
    more = _build_of_channel(build, torch) if channel == "pytorch" else ""
    kept = [text for text in answer.help if not _OF_THE_INDEX.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    kept[at:at] = [
        "conda list --show-channel-urls | grep -iE 'torch'",
        f"conda install -c {channel} {' '.join(pins)}{more}",
    ]
    which = (
        f"the one of {name} is a pre-cxx11 one, as those of the channel pytorch and of pip were up "
        "to 2.6, and torch is a cxx11 one, as conda-forge's are"
    )
    if mentions_cxx11(answer.symbol or "", answer.demangled or ""):
        which = (
            f"the one of {name} is a cxx11 one, as conda-forge's are, and torch is a pre-cxx11 "
            "one, as those of the channel pytorch and of pip were up to 2.6"
        )
    note = (
        f"{build} in the text is a build of conda's, so pip's wheels are no measure: most likely "
        f"the builds of {name} and torch come from two makers; {which}. conda list shows the "
        "channel of each (pypi is pip's), and the command after it takes both from one."
    )
    notes = (n for n in answer.notes if not _ON_INDEX.match(n))
    return replace(answer, help=tuple(dict.fromkeys(kept)), notes=(note, *notes))


#: What the channel pyg calls them, conda-forge's names with hyphens.
_OF_PYG = ("pytorch_scatter", "pytorch_sparse", "pytorch_cluster")
_FOR_INDEX = lazily(
    r"\sinstall\s--force-reinstall|\s--upgrade\s|^conda\s(?:update|install)\s|torch[=>]="
)


def beside_condas_torch(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer for PyG's packages of its own channel beside conda-forge's torch.

    That channel builds for the torch of the channel pytorch, which is pre-cxx11, and conda-forge
    has the same packages for its own torch (pytorch_geometric's issue 6513).
    """
    by = place.told.torch_by if place.told is not None else ""
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    if answer.direction != FLAVOUR or new or "conda-forge" not in by:
        return answer
    file = file_of(paste)
    own = directory_of(file) in (
        None,
        *(name.replace("py", "", 1).replace("_", "-") for name in _OF_PYG),
    )
    if "flag:pyg-channel" not in paste.versions or (file and not own):
        return answer
    torch = place.present.release if place.present is not None else ""
    torch = torch if torch and order_key(torch) <= order_key(_LAST_OF_CHANNEL) else "X.Y.Z"
    commands = (
        "conda list --show-channel-urls | grep -iE 'torch|pyg'",
        f"conda install -c conda-forge {' '.join(_OF_PYG)}",
        f"conda install -c pytorch pytorch::pytorch={torch}",
    )
    cause = (
        "The torch in the text is conda-forge's, which is cxx11, and the file is most likely "
        "of the channel pyg, which builds for the torch of the channel pytorch, the pre-cxx11 "
        "one: the releases may match, the flavours do not."
    )
    note = (
        "One of the two installations is enough. The first takes PyG's compiled packages from "
        "conda-forge, which builds them for its own torch; those of the channel pyg (pytorch-"
        "scatter, pytorch-sparse, ..., by conda list) go first, with conda remove. The second "
        "takes the torch that the packages of the channel pyg were built for, up to "
        f"{_LAST_OF_CHANNEL} (X.Y.Z, where it stands in the command, is to be its release), and "
        "pytorch-cuda=X.Y -c nvidia behind it for its CUDA. Compiled on that machine, with pip "
        "--no-build-isolation, they fit as well."
    )
    kept = [text for text in answer.help if not _FOR_INDEX.search(text)]
    notes = (n for n in answer.notes if not _ON_INDEX.match(n) and not _ON_CONDA.match(n))
    return replace(
        answer, cause=cause, confidence="medium", help=(*commands, *kept), notes=(note, *notes)
    )


#: Notes on conda-forge's torch beside a file of the package index.
_ON_CONDA = lazily(r"(?:The torch in the text is conda-forge|conda-forge builds)\b")
