"""Answers to a function that a file did not find in a library of Windows."""

from __future__ import annotations

import re

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in

#: Namespaces of torch, and the library of Windows that exports most of each.
_SCOPES = {"c10": "c10.dll", "at": "torch_cpu.dll", "torch": "torch_cpu.dll",
           "caffe2": "torch_cpu.dll"}  # fmt: skip
#: ``?warn@c10@@YAX...``: the name, then its scopes from the innermost to the outermost.
_NAME = lazily(r"\?{1,2}(?P<parts>[\w$?]{1,100}(?:@[\w$?]{1,100}){1,8})@@")


def torch_entry_point(seen: Seen) -> Answer | None:
    """A name of torch, as Microsoft's compiler spells it; None for any other."""
    found = _NAME.match(seen.mention.symbol or "")
    if found is None:
        return None
    *inner, scope = found["parts"].split("@")
    if scope not in _SCOPES:
        return None
    name = "::".join([scope, *reversed(inner)])
    library = "c10_cuda.dll" if scope == "c10" and "cuda" in inner else _SCOPES[scope]
    file = re.split(r"[\\/]", seen.mention.file or "")[-1]
    package = package_in(seen)
    whose = f"{file or 'the file'}" + (f" of {package}" if package else "")
    cause = (
        f"{name} is a name of torch ({library} exports it), and the torch that is loaded has it "
        f"not: {whose}, which the dialog names as the place, only asks for it. What is an "
        "undefined symbol on Linux: that file was built for another release of torch than the one "
        "there."
    )
    wanted = package or "PACKAGE"
    notes = (
        "Either a wheel for the torch that is there takes its place, or the torch that this one "
        "was built for (its name or the project's release notes tell it); no driver and no CUDA "
        "toolkit plays a part.",
    )
    return seen.answer(
        "windows", "FA889", cause, symbol=seen.mention.symbol, demangled=name,
        owner="torch/c10" if scope == "c10" else "torch/torch_cpu", direction=UNKNOWN,
        confidence="high", notes=notes,
        help=(
            f"{seen.python} -c \"import torch; print(torch.__version__, torch.__path__[0])\"",
            f"{seen.pip} show {wanted}",
            f"{seen.pip} check",
        ),
    )  # fmt: skip


def named_package(seen: Seen) -> str | None:
    """The package that the text tells of as built for a torch; None for none that is known."""
    row = row_of(seen.versions.get("flag:file-of", "-"))
    return str(row["distribution"]) if row is not None else None


def built_for_another(seen: Seen, said: str) -> Answer | None:
    """A file of Windows that the text tells of as built for another torch than the one there.

    ``said`` is what the message means by itself. None where the text tells not both torches, or
    torches of one minor release.
    """
    built = re.match(r"\d\.\d{1,2}(?:\.\d{1,2})?(?!\d)", seen.versions.get("file_torch", ""))
    there = re.match(r"\d\.\d{1,2}(?:\.\d{1,2})?(?!\d)", seen.torch or "")
    if built is None or there is None or minor_of(built[0]) == minor_of(there[0]):
        return None
    newer = _numbers(built[0]) > _numbers(there[0])
    package = named_package(seen) or package_in(seen)
    name, row = package or "the file", row_of(package or "-")
    cause = (
        f"{said} The text tells of {name} as built for torch {built[0]}, and of torch {there[0]} "
        "as the one that is there: most likely the file asks for a function that this torch has "
        "not."
    )
    cause += " The file is newer than that torch." if newer else " The file is older than it."
    cuda = seen.versions.get("torch_cuda", "")
    label = cuda_label(cuda) if cuda in cuda_builds(minor_of(built[0])) else "cuXYZ"
    helps = [
        f'{seen.python} -c "import torch; print(torch.__version__, torch.version.cuda, '
        'torch.__file__)"',
        f'{seen.pip} install --force-reinstall "torch=={_whole(built[0])}" --index-url '
        f"{TORCH_INDEX}{label}",
    ]
    if row is not None and row["source_build"]:
        helps.insert(1, rebuild_command(seen.python, package or "", "", row))
    notes = (
        f"One of the two is enough: a wheel or a build of {name} for torch {there[0]}, or torch "
        f"{built[0]}, with torchvision and torchaudio of its time. A build needs Visual Studio and "
        "the CUDA toolkit of torch; the index is that of the CUDA in the wheel's name (cu118 for "
        "CUDA 11.8), since without it pip takes a torch without CUDA on Windows.",
    )
    return seen.answer(
        "windows", "FA889", cause, owner=package, direction=NEWER if newer else OLDER,
        confidence="medium", help=tuple(helps), notes=notes,
    )  # fmt: skip


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _whole(release: str) -> str:
    """2.0, as people write a release, is 2.0.*, whichever of its patch releases."""
    return release if release.count(".") > 1 else f"{release}.*"
