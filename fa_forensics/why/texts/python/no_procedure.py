"""Answers to a function of torch that a published wheel for Windows asks for and does not find."""

from __future__ import annotations

import re

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.package import build_tags
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in, version_of
from fa_forensics.why.texts.python.entry_point import built_for_another
from fa_forensics.why.ways.by_torch import torch_of_release

#: Torches of no release: a nightly, a build of a commit.
_BETWEEN = re.compile(r"(?P<minor>\d\.\d{1,2})\.\d{1,2}(?:\.dev|a0|rc)")
#: Said of every build on Windows.
_TOOLS = "A build needs Visual Studio and the CUDA toolkit of torch."


def no_procedure(seen: Seen, said: str) -> Answer | None:
    """What the text's release of a package says of its torch; None where no package is known.

    ``said`` is what the message means by itself.
    """
    another = built_for_another(seen, said)
    package = package_in(seen)
    row = row_of(package or "-")
    if another is not None:
        return another
    if package is None and (wheels := seen.versions.get("file_torch")) and seen.torch:
        return _by_the_wheels(seen, said, wheels)
    if package is None or row is None or package == "torch":
        return None
    told = version_of(seen, package) or ""
    built = build_tags(told).torch or torch_of_release(row, told)
    there = re.match(r"\d\.\d{1,2}(?:\.\d{1,2})?(?!\d)", seen.torch or "")
    if built and there and minor_of(f"{built}.0") != minor_of(f"{there[0]}.0"):
        return _of_another(seen, said, package, told, built)
    between = _BETWEEN.match(seen.torch or "")
    if between is not None:
        return _between_releases(seen, said, package, told, between["minor"])
    by_address = "find_links" in row or row["import"] == "mmcv"
    if (built and there) or (seen.torch and "index_cuda" in seen.versions and by_address):
        return _named_for_it(seen, said, package, told)
    return None if built or not told else _not_named(seen, said, package, told)


def _by_the_wheels(seen: Seen, said: str, wheels: str) -> Answer | None:
    """Wheels of a package that is not told, for a torch that the text does tell."""
    built, between = wheels.partition("+")[0], _BETWEEN.match(seen.torch or "")
    if between is None and minor_of(f"{built}.0") == minor_of(f"{_plain(seen)}.0"):
        return None
    cause = (
        f"The text names wheels for torch {wheels}, and torch {seen.torch} is the one that is "
        "there: most likely a file of theirs asks for a function that this torch has not."
    )
    newer = between is not None or _numbers(built)[:2] > _numbers(_plain(seen))[:2]
    if between is not None:
        cause += " It is a state of the sources before its release, and no release."
    notes = (
        "Either that torch takes the place of this one, or the packages are compiled on the torch "
        "that is there.",
        _TOOLS,
        _ON_THE_INDEX,
    )
    direction = NEWER if newer else OLDER
    return _answer(seen, said, cause, None, direction, (_torch(seen, built),), notes)


def _of_another(seen: Seen, said: str, package: str, told: str, built: str) -> Answer:
    """A wheel for another minor release of torch than the one that is there."""
    newer = _numbers(built)[:2] > _numbers(minor_of(f"{_plain(seen)}.0"))[:2]
    cause = (
        f"The wheels of {package} {told} are compiled for torch {built}, and torch {seen.torch} "
        "is the one that is there: most likely the file asks for a function that this torch has "
        "not."
    )
    cause += " The file is newer than that torch." if newer else " The file is older than it."
    notes = (
        f"One of the two is enough: torch {built}, with torchvision and torchaudio of its time, or "
        f"a build of {package} for the torch that is there.",
        _TOOLS,
        "What the package asks of torch in its metadata does not tell which one its wheels were "
        "compiled for.",
        _ON_THE_INDEX,
    )
    return _answer(seen, said, cause, package, NEWER if newer else OLDER,
                   (_torch(seen, built), *_build(seen, package, told)), notes)  # fmt: skip


def _between_releases(seen: Seen, said: str, package: str, told: str, minor: str) -> Answer:
    """A nightly or a build of a commit, whose number a release came to have later."""
    cause = (
        f"The torch that is there ({seen.torch}) is no release: it is a state of the "
        f"sources before torch {minor}.0, and functions come and go until that. Published wheels "
        f"of {package}{told and ' ' + told} are compiled for releases: that the numbers are alike "
        "says nothing here."
    )
    notes = (
        f"Either the release that the wheel is for takes the place of this torch, or {package} is "
        f"compiled on the torch that is there.",
        _TOOLS,
        _ON_THE_INDEX,
    )
    return _answer(seen, said, cause, package, UNKNOWN,
                   (_torch(seen, minor), *_build(seen, package, told)), notes)  # fmt: skip


def _named_for_it(seen: Seen, said: str, package: str, told: str) -> Answer:
    """A wheel that is for this very torch by its name or its address, and fails all the same."""
    cause = (
        f"If the wheel of {package}{told and ' ' + told} is, by its name or the address that it "
        f"came from, one for the torch that the text names ({seen.torch}), two causes fit: the "
        "torch that is loaded is another one, or the published wheel is not what it is called "
        "(compiled on another state of torch)."
    )
    notes = (
        "The first command prints the torch that is loaded, and from where. If it is that very "
        f"one, to install the same wheel again changes nothing: another release of {package} from "
        "the same address, or a build on the torch that is there, is the way out.",
        _TOOLS,
    )
    return _answer(seen, said, cause, package, UNKNOWN, _build(seen, package, told), notes)


def _not_named(seen: Seen, said: str, package: str, told: str) -> Answer:
    """A release whose version tells no torch, in a text that tells not which one it was for."""
    cuda = build_tags(told).cuda
    cause = f"The version of {package} ({told}) tells no torch."
    same = cuda is not None and cuda == seen.torch_cuda
    alike = (f"CUDA ({cuda}) is the same on both sides.",) if same else ()
    notes = (
        f"Which torch the wheels of {package} {told} were compiled for is in the file's name where "
        "that has torch in it, else in the project's release notes; the package's metadata often "
        "takes older ones too. That torch, or a build on the torch that is there, puts it right.",
        *alike,
        _TOOLS,
    )
    return _answer(seen, said, cause, package, UNKNOWN, _build(seen, package, told), notes)


#: Said beside a command that has the address of an index.
_ON_THE_INDEX = (
    "Where cuXYZ stands, the CUDA of the wheel's name takes its place (cu118 for CUDA 11.8): "
    "without an index pip takes a torch without CUDA on Windows."
)


def _answer(
    seen: Seen, said: str, cause: str, package: str | None, direction: str, ways: tuple[str, ...],
    notes: tuple[str, ...],
) -> Answer:  # fmt: skip
    first = (
        f'{seen.python} -c "import torch; print(torch.__version__, torch.version.cuda, '
        'torch.__file__)"'
    )
    plain = not any("cuXYZ" in text for text in ways)
    skipped = ({_ON_THE_INDEX} if plain else set()) | (set() if ways else {_TOOLS})
    kept = tuple(note for note in notes if note not in skipped)
    return seen.answer(
        "windows", "FA889", f"{said} {cause}", owner=package, direction=direction,
        confidence="medium", help=(first, *ways), notes=kept,
    )  # fmt: skip


def _torch(seen: Seen, built: str) -> str:
    """The command for a release of torch, from the index of the CUDA that the text tells."""
    local = (seen.torch or "").partition("+")[2]
    cuda = seen.torch_cuda or seen.versions.get("cuda", "")
    label = local if re.fullmatch(r"cu\d{2,3}", local) else ""
    if not label and cuda in cuda_builds(minor_of(f"{built}.0")):
        label = cuda_label(cuda)
    wanted = built if built.count(".") > 1 else f"{built}.*"
    index = f"{TORCH_INDEX}{label or 'cuXYZ'}"
    return f'{seen.pip} install --force-reinstall "torch=={wanted}" --index-url {index}'


def _build(seen: Seen, package: str, told: str) -> tuple[str, ...]:
    """The command that compiles the text's release of a package; () where it has no source."""
    row = row_of(package)
    if row is None or not row["source_build"]:
        return ()
    return (rebuild_command(seen.python, package, told.partition("+")[0], row),)


def _plain(seen: Seen) -> str:
    return re.match(r"[\d.]{1,12}\d|", seen.torch or "")[0]  # type: ignore[index]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())
