"""What a text's package adds to the commands: its pair with torch, its wheels, what fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.python_api import any_later, has_partners, partner_of
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import is_on_index
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import DRIFT, FLAVOUR, NEWER, OLDER, UNKNOWN
from fa_forensics.why.place import CUDA_OWNERS, Place
from fa_forensics.why.seen import file_of, package_of
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.builds import NOT_EXCHANGED
from fa_forensics.why.ways.by_torch import (
    beside_it,
    in_an_image,
    in_its_form,
    in_their_names,
    of_its_release,
    of_its_torch,
    project_wheels,
    release_for,
    without_newest,
)
from fa_forensics.why.ways.cpu_build import from_the_cpu_index, without_cuda_wheels
from fa_forensics.why.ways.nearest_build import from_index, from_nearest, nearest_build
from fa_forensics.why.ways.not_the_wheel import may_be_taken_again
from fa_forensics.why.ways.partner_index import with_partner_index
from fa_forensics.why.ways.prereleases import of_its_maker
from fa_forensics.why.ways.projects import of_its_project
from fa_forensics.why.ways.same_release import label_by_cuda, label_of
from fa_forensics.why.ways.variants import of_other_flavour, of_xla, same_again

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Packages of torch's own family, whose releases belong to one torch each.
_FAMILY = ("torchvision", "torchaudio", "torchtext")
_ONE_TORCH = lazily(r'"torch==(?P<release>\d{1,4}(?:\.\d{1,4}){2})"(?: [\w.=*\'-]+){0,4}$')
#: Notes on a command that is taken out.
_ON_COMMANDS = lazily(r"(?:One of the two commands|The command installs|No package is named)")
_ON_SOURCES = lazily(r"(?:A file that was compiled|The command that)\b")
_UPGRADE = lazily(r"install --upgrade\b")
_OTHER_BUILD = lazily(r"--no-binary|--index-url| -f\b")

ON_WINDOWS = (
    "On Windows the package index has torch for the CPU alone: with --index-url and the address "
    "that pytorch.org/get-started gives, the command takes one for CUDA."
)


def with_pairs(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer for the package ``name`` of a text from elsewhere; any other as it is."""
    if place.told is None or answer.kind not in DRIFT:
        return answer
    if answer.owner is None or not is_torch(answer.owner):
        return answer
    if "flag:wheel" in paste.versions:
        answer = _without_sources(answer)
    answer = in_an_image(beside_it(of_its_torch(answer, paste), paste, name), paste, name)
    if "flag:wheel-index" in paste.versions:
        kept = tuple(note for note in answer.notes if not note.startswith("Where pip compiled"))
        answer = replace(answer, notes=kept)
    if name is None:
        return answer
    if not may_be_taken_again(answer, name, paste.versions.get(f"pkg:{name}", ""), place):
        answer = _without_what_fails(answer, paste, name)
    answer = of_its_release(of_its_maker(answer, paste, name), paste, name)
    answer = without_newest(answer, name)
    helps = [_with_partner(text, name) for text in answer.help]
    listed = [one for one in _FAMILY if one != name and f"pkg:{one}" in paste.versions]
    for one in listed if answer.direction in (OLDER, NEWER) else ():
        helps = [_with_partner(text, one) for text in helps]
    notes = [*answer.notes]
    row = row_of(name)
    if row is not None:
        mac = any(mention.detail.get("os") == "macOS" for mention in paste.mentions[:20])
        wheels = [] if mac or same_again(answer, place) else project_wheels(row, name, place)
        notes += without_cuda_wheels(paste, name, wheels)
        notes += in_their_names(row, name, answer, place)
        notes += _older_release(answer, helps, row, name)
    if name in _FAMILY and answer.direction in (OLDER, NEWER, UNKNOWN):
        helps = _first_pair(helps, answer, place, name)
        helps, notes = _of_one_release(helps, notes, name)
    if name in _FAMILY:
        notes += _on_images(file_of(paste), answer)
    if name == "torch-xla" and answer.owner in CUDA_OWNERS:
        notes.append(_STAND_INS)
    if name == "torch-xla" and answer.direction == FLAVOUR:
        helps, notes = of_xla(helps, notes, paste.versions)
    answer = replace(answer, help=tuple(dict.fromkeys(helps)), notes=tuple(notes))
    answer = in_its_form(release_for(answer, paste, place, name), paste, place, name)
    return of_its_project(answer, paste, place, name)


def _first_pair(helps: Sequence[str], answer: Answer, place: Place, name: str) -> list[str]:
    """The first torch with a name that a newer file wants, and its partner, before the newest.

    The program has an older torch; in a report of long ago the newest of both came years later.
    """
    told = place.told
    wanted = next((found for text in helps if (found := _SINCE.search(text))), None)
    if answer.direction != NEWER or wanted is None or place.present is not None:
        return [*helps]
    release = wanted["release"]
    partner = partner_of(name, release)
    if partner is None:
        return [*helps]
    both = shlex.quote(f"{name}=={partner}")
    torch = f'"torch=={release}"'
    pair = " ".join((wanted.string[: wanted.start()] + torch, both))
    dated = told is not None and bool(told.last)
    kept = (t for t in helps if not (dated and _UPGRADE.search(t)))
    return [pair if text == wanted.string else text for text in kept]


#: torch from some release on, in a command.
_SINCE = lazily(r'"torch>=(?P<release>\d{1,2}(?:\.\d{1,3}){2})(?:,<[\d.]{3,12})?"')


def _of_one_release(
    helps: Sequence[str], notes: Sequence[str], name: str
) -> tuple[list[str], list[str]]:
    """No torch alone beside torchvision or torchaudio: pip would leave those as they are."""
    kept = [text for text in helps if not _FROM_ON.search(text)]
    if not any("torch" in text and " install " in text and name in text for text in kept):
        return [*helps], [*notes]
    gone = _ON_TORCH_ALONE if len(kept) < len(helps) else _ONE_IS_ENOUGH
    notes = [_of_the_one_left(n) if len(kept) < len(helps) else n for n in notes]
    notes = [n for n in notes if not gone.match(n)]
    return kept, [_on_the_pair(name), *notes]


def _on_the_pair(name: str) -> str:
    """Why torch and a package of its family are changed together, and how far that holds."""
    free = any_later(name)
    if free is None:
        return (
            f"{name} and torch have to be of one release, and are changed together; a notebook's "
            "runtime has to be restarted behind that."
        )
    release, torch = free
    return (
        f"{name} before {release} and torch have to be of one release. {name} {release} and later "
        f"is built on torch's stable interface and takes any torch from {torch} on. A notebook's "
        "runtime has to be restarted behind a change."
    )


def _on_images(file: str, answer: Answer) -> list[str]:
    """What a torchvision without its image.so still does (torchvision/io/image.py warns alone)."""
    if not re.search(r"torchvision/image(?:\.[\w-]{1,40})?\.(?:so|pyd)$", file):
        return []
    notes = [
        "It is a warning: torchvision goes on without that file, and torchvision.io alone (reading "
        "and writing of images) does not work."
    ]
    if answer.direction == NEWER:
        notes.append(
            "Where the older torch is there on purpose, the torchvision of its release is the "
            "other way: torch 1.12.1 goes with torchvision 0.13.1, torch 2.0.1 with 0.15.2."
        )
    return notes


def _of_the_one_left(note: str) -> str:
    """What a note on two commands says of the first, where the second is left out."""
    found = re.match(r"One\sof\sthe\stwo\scommands\sis\senough:\sthe\sfirst\s([^;]{1,200});", note)
    return note if found is None else f"The command {found[1]}."


#: torch from some release on, and no other package with it.
_FROM_ON = lazily(r'"torch>=[\w.,<]{1,40}"$')
_ONE_IS_ENOUGH = lazily(r"(?:Another build of the extension)\b")
_ON_TORCH_ALONE = lazily(r"(?:Another build of the extension|Every torch since|Installing another)")


def of_its_index(answer: Answer, paste: Paste, place: Place, tables: Tables) -> Answer:
    """The answer with the index that has the text's build of torch, where plain pip has another."""
    answer = with_partner_index(answer, paste, place, tables)
    answer = from_the_cpu_index(answer, paste, place)
    plain = [text for text in answer.help if "--index-url" not in text]
    found = [match for text in plain if (match := _TORCH.search(text))]
    if place.told is None or not found or answer.kind not in DRIFT or tables.ages is None:
        return answer
    release = found[0]["release"]
    label = _label(paste, place, release)
    build = tables.ages.build(release, "x86_64")
    cuda = build.cuda if build is not None else None
    helps = answer.help
    loaded = place.present.release if place.present is not None else ""
    beside = label or label_by_cuda(paste, loaded)
    near = nearest_build(beside, loaded, release, cuda) if cuda else ""
    if near and "flag:windows" not in paste.versions:
        return from_nearest(answer, release, cuda or "", beside, near)
    if "flag:windows" in paste.versions:
        note = ON_WINDOWS
    elif label and cuda and _is_another(label, cuda, release):
        if answer.direction == FLAVOUR and not _told_label(paste, place):
            return answer  # a CUDA that the text names by itself is not that of the torch it has
        other = of_other_flavour(answer, release, label, cuda)
        if other:
            return replace(answer, notes=(*answer.notes, other))
        helps = tuple(from_index(text, label) for text in helps)
        if helps == answer.help:
            return answer  # no command is for torch alone
        whose = "torch" if _told_label(paste, place) else "CUDA"
        note = (
            f"The package index has torch {release} for CUDA {cuda}, and the {whose} in the text "
            f"is that of {label}: torch's own index for it is the address at the end."
        )
    elif label and cuda and not _has_it(label, release) and _ENDS.search(found[0].string):
        note = (
            f"torch {release} has no build for the CUDA of the text's torch ({label}): the command "
            f"brings the one for CUDA {cuda}, which takes a driver for that."
        )
    elif label and cuda and not cuda_builds(minor_of(release)) and not _is_own(label, cuda):
        note = (
            f"The package index has torch {release} for CUDA {cuda}, and the torch in the text is "
            f"that of {label}: the driver has to serve CUDA {cuda}. Of the builds for other CUDA "
            "versions pytorch.org/get-started tells; none need be there for that one any more."
        )
    else:
        return answer
    return replace(answer, help=helps, notes=(*answer.notes, note))


def _is_own(label: str, cuda: str) -> bool:
    """Whether a label is that of the CUDA of the package index's build."""
    return cuda_of_label(label) == minor_of(cuda)


def _label(paste: Paste, place: Place, release: str) -> str:
    """The build of torch that the text shows (cu118), or its CUDA where the release has that."""
    label = _told_label(paste, place) or label_by_cuda(paste, release)
    if not label and place.present is None:
        own = package_of(file_of(paste))  # exllamav2 0.0.5+cu118 is loaded with that CUDA's torch
        label = paste.versions.get(f"pkg:{own}", "").partition("+")[2]
    spelt = re.fullmatch(r"cuda[-_]?(\d{1,2}\.\d)", label)  # 2.2.0+cuda11.8
    label = cuda_label(spelt[1]) if spelt is not None else label
    return label if re.fullmatch(r"cu\d{2,3}", label) else ""


def _told_label(paste: Paste, place: Place) -> str:
    """The build of torch as the text tells it of torch itself; "" where it does not."""
    local = paste.versions.get("torch", "").partition("+")[2]
    nightly = re.fullmatch(r"cu\d{2,3}", paste.versions.get("nightly", ""))
    return local or label_of(paste, place) or (nightly[0] if nightly else "")


def _is_another(label: str, cuda: str, release: str) -> bool:
    """Whether a label names another build than that for ``cuda``, one that the release has."""
    return cuda_of_label(label) != minor_of(cuda) and is_on_index(release, label)


def _has_it(label: str, release: str) -> bool:
    """Whether a torch release may have a build of a label: no table tells the contrary."""
    known = cuda_builds(minor_of(release))
    return not known or cuda_of_label(label) in known


_ENDS = lazily(r'"torch[=>]=[\w.,<]{1,40}"(?: [\w.=*\'-]{1,60}){0,4}$')
_TORCH = lazily(r'"torch[=>]=(?P<release>\d{1,4}(?:\.\d{1,4}){2})')


def _without_sources(answer: Answer) -> Answer:
    """No command for a source directory, where the text says that the file came in a wheel."""
    helps = tuple(text for text in answer.help if not text.startswith("rm -rf build"))
    if helps == answer.help:
        return answer
    kept = (n for n in answer.notes if not _ON_SOURCES.match(n))
    note = (
        "The text says that it came as a ready-made wheel: the wheel that was built for the torch "
        "that is there, or the torch that this one was built on, from the same source, is what "
        "puts it right."
    )
    return replace(answer, help=helps, notes=(*kept, note))


#: nm -D of torch_xla 2.8.0's and 2.8.1's _XLAC_cuda_functions.so, and torch_xla/__init__.py.
_STAND_INS = (
    "torch-xla has stand-ins for CUDA's names (_XLAC_cuda_functions.so), which it loads only where "
    "torch.cuda.is_available() is False: with CUDA_VISIBLE_DEVICES= before the command, or with "
    "torch's build for the CPU, it loads where no GPU is used."
)


def _without_what_fails(answer: Answer, paste: Paste, name: str) -> Answer:
    """No command for the very release that the text shows to fail."""
    told = paste.versions.get(f"pkg:{name}", "").partition("+")[0]
    if answer.direction == FLAVOUR or not told:
        return answer  # the same release is built, or taken from another place
    again = re.compile(rf"(?<![\w-]){re.escape(name)}==(?P<wanted>[\w.]{{1,40}}(?:\.\*)?)")
    dropped = [
        text
        for text in answer.help
        if not _OTHER_BUILD.search(text)  # another build of that release
        and (found := again.search(text))
        and (found["wanted"] == told or told.startswith(found["wanted"].removesuffix("*")))
    ]
    if not dropped:
        return answer
    note = (
        f"{name} {told} is the release for that torch, by its number, and fails all the same: it "
        "was compiled on another state of torch, and to install it again changes nothing. The pair "
        "that is typed, or a build of it for the torch that is there, puts it right."
    )
    left = tuple(text for text in answer.help if text not in dropped)
    if not any('"torch==' in text for text in left):
        note = (
            f"{name} {told} is the release for that torch, by its number, and fails all the same: "
            "it was compiled on another state of torch, and to install it again changes nothing. A "
            "build of it for the torch that is there puts it right."
        )
    kept = tuple(n for n in answer.notes if not _ON_COMMANDS.match(n))
    return replace(answer, help=left, notes=(note, *kept))


def releases_by_torch(name: str, having: Sequence[str]) -> str:
    """The releases of a package for the torches before those that have a name; "" for none."""
    first = having[0] if having else ""
    minors = read_table("torch_pairs.json")["by_minor"].get(name, {})
    before = [m for m in minors if first and order_key(f"{m}.0") < order_key(first)][-3:]
    if not before:
        return ""
    which = ", ".join(f"{minors[minor]} for torch {minor}" for minor in before)
    return (
        f"The other half of the pair is an older {name}, which leaves torch as it is: {which} "
        f"(python -m pip install --force-reinstall --no-deps {name}==RELEASE). Where torch is "
        "changed, torchvision and torchaudio go with it."
    )


def _with_partner(command: str, name: str) -> str:
    """A command that changes torch, with the package that has to be changed with it."""
    found = _ONE_TORCH.search(command)
    if f" {name}==" in command:
        return command
    partner = partner_of(name, found["release"]) if found and name not in NOT_EXCHANGED else None
    return command if partner is None else f"{command} {shlex.quote(f'{name}=={partner}')}"


def _older_release(
    answer: Answer, helps: Sequence[str], row: Mapping[str, object], name: str
) -> list[str]:
    """The way out that no command has: a release of the time of the torch that is there."""
    alone = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    named = any(alone.search(text) for text in helps if " install " in text)
    if row["source_build"] or named or has_partners(name) or answer.direction not in (NEWER, OLDER):
        return []
    if row.get("by_torch"):
        return [
            f"Each release of {name} is for one minor version of torch: the one for the torch that "
            "is loaded is what fits, from the project's releases where the package index has none."
        ]
    if answer.direction == OLDER:
        return []
    if own := releases_by_torch(name, answer.exported_by):
        return [own]
    return [
        f"{name} comes as a wheel alone: a release of it from the time of the torch that is there "
        f"is the other way out (python -m pip index versions {name} lists them; the project that "
        "uses it pins one)."
    ]
