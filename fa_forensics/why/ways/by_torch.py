"""The wheels that a package's project has for one torch: by release, or on a page for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.judgement import FLAVOUR, NONE
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.same_release import label_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_NO_LINUX = ("flag:windows", "flag:windows-told")
_FIRST = ("One of the two commands", "Another build of")


def project_wheels(row: Mapping[str, object], name: str, place: Place) -> list[str]:
    """Where the project has wheels for each torch, which the package index has not.

    None where it has none for the torch that the text names.
    """
    own = row.get("wheels_for")
    if not isinstance(own, Mapping):
        return []
    present, span = place.present, own.get("torch")
    if present is not None and span:
        minor = order_key(f"{minor_of(present.release)}.0")
        if not order_key(f"{span[0]}.0") <= minor <= order_key(f"{span[1]}.0"):
            return []
    if present is not None and not present.published:
        return []  # they are for releases
    if present is not None and own.get("each"):
        page = str(own["each"]).format(release=present.release)
        return [
            f"{name}'s own project has wheels for torch {present.release}, by CUDA and Python: "
            f"{page}. One of them is seconds in place of a build."
        ]
    if own.get("fetches"):
        return [
            f"{name}'s own project has wheels by torch, CUDA, Python and flavour "
            f"({own['fetches']}). Its setup.py takes the one for the torch that is installed, "
            f"where the release has one: without {own['variable']}=TRUE the command that compiles "
            "is seconds in place of a build. Where that very wheel is the one that fails, it has "
            "to be compiled."
        ]
    return [
        f"{name}'s own project has wheels by torch and CUDA: {own['address']} is the address of "
        f"those for {own['of']}, and most others are of that form. One for the torch that runs is "
        "seconds in place of a build." + _another_of_that_name(row, name)
    ]


def in_their_names(row: Mapping[str, object], name: str, answer: Answer, place: Place) -> list[str]:
    """What a wheel of the project for the text's torch has in its name, where that tells flavours.

    mamba-ssm and causal-conv1d: ...+cu118torch2.1cxx11abiFALSE-cp38-cp38-linux_x86_64.whl.
    """
    own, present = row.get("wheels_for"), place.present
    tells = isinstance(own, Mapping) and "cxx11abi" in str(own["address"])
    if not tells or answer.direction != FLAVOUR or (present is not None and not present.published):
        return []
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    python = place.told.python if place.told is not None else None
    parts = [f"torch{minor_of(present.release)}"] if present is not None else []
    parts += [f"cxx11abi{'FALSE' if new else 'TRUE'}"]
    parts += [f"cp{python.replace('.', '')}"] if python else []
    words = ", ".join(parts[:-1]) + " and " + parts[-1] if parts[1:] else parts[0]
    return [
        f"The wheel of {name} that fits that torch has {words} in its name; one that is called "
        f"cxx11abi{'TRUE' if new else 'FALSE'} is of the flavour that fails, whatever else is in "
        "its name."
    ]


def in_its_form(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """The answer with the project's wheel of the text's release for the text's build of torch."""
    own = (row_of(name) or {}).get("wheels_for")
    form = own.get("form") if isinstance(own, Mapping) else None
    present, told = place.present, paste.versions.get(f"pkg:{name}", "")
    built = next((text for text in answer.help if "--no-build-isolation" in text), None)
    if not isinstance(form, Mapping) or present is None or not present.published or built is None:
        return answer
    machine = place.told.machine if place.told is not None else ""
    if any(key in paste.versions for key in _NO_LINUX) or machine not in ("", "x86_64"):
        return answer
    release = re.fullmatch(r"\d{1,2}(?:\.\d{1,3}){2}", told.partition("+")[0])
    label = label_of(paste, place)
    if not label and place.requested is not None:
        label = cuda_label(place.requested.cuda or "")
    if release is None or not label.startswith("cu") or not (
        order_key(form["first"]) <= order_key(release[0]) < order_key(form["before"] + ".0")
    ):  # fmt: skip
        return answer
    torch = minor_of(present.release).replace(".", "")
    called = form["release"].format(release=release[0], torch=torch, label=label)
    if called == told:
        return answer
    command = (
        "python -m pip install --force-reinstall --no-deps --no-cache-dir "
        f"{name}=={called} -f {form['page']}"
    )
    note = (
        f"One way is enough: {name}=={called} is the project's wheel for torch {present.release} "
        f"and {label}, where it was published; the build from source serves any torch."
    )
    helps = tuple(
        t for text in answer.help for t in ((command, text) if text == built else (text,))
    )
    kept = (n for n in answer.notes if not _BY_EACH.search(n))
    return replace(answer, help=helps, notes=(*kept, note))


_BY_EACH = lazily(r"own\sproject\shas\swheels\sby\s")


def without_newest(answer: Answer, name: str) -> Answer:
    """No newest wheel for a cxx11 file beside a pre-cxx11 torch: it is for a newer one still."""
    row = row_of(name)
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    newest = f"install --upgrade --no-cache-dir {name}"
    if row is None or row["source_build"] or answer.direction != FLAVOUR or not new:
        return answer
    helps = tuple(text for text in answer.help if not text.endswith(newest))
    if helps == answer.help:
        return answer
    note = (
        f"{name} comes as a wheel alone, and its newest release is hardly of the other flavour: "
        "what fits is the release that was built for the torch that is loaded, or the torch that "
        "the one in use was built for."
    )
    kept = (n for n in answer.notes if not n.startswith(_FIRST) and not _NEWEST.match(n))
    return replace(answer, help=helps, notes=(note, *kept))


_NEWEST = lazily(r"(?:The command gets)\b")


def _another_of_that_name(row: Mapping[str, object], name: str) -> str:
    """That the package index has another project of the same name; "" where it has none."""
    from fa_forensics.why.ways.builds import not_on_the_index

    if not not_on_the_index(row):
        return ""
    return f" {name} on the package index is another project of that name."


def torch_of_release(row: Mapping[str, object] | None, told: str) -> str:
    """The torch (2.1) that a release's wheels were compiled for, whose names do not tell it; ""."""
    table = row.get("compiled_for") if row is not None else None
    release = re.match(r"\d{1,3}(?:\.\d{1,3}){1,3}", told)
    if not isinstance(table, list) or release is None:
        return ""
    found = [str(t) for first, t in table if order_key(str(first)) <= order_key(release[0])]
    return found[-1] if found else ""


_ONE_TORCH = lazily(r'"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})"')


def of_its_release(answer: Answer, paste: Paste, name: str) -> Answer:
    """The answer with the torch that the text's release of a package has its wheels for."""
    told = paste.versions.get(f"pkg:{name}", "")
    minor = torch_of_release(row_of(name), told)
    has = [r for r in answer.exported_by if minor and minor_of(r) == minor]
    asked = [found["release"] for text in answer.help if (found := _ONE_TORCH.search(text))]
    if not has or answer.kind != "symbol-drift" or not asked or has[-1] in asked:
        return answer
    helps = tuple(_ONE_TORCH.sub(f'"torch=={has[-1]}"', text) for text in answer.help)
    note = f"The wheels of {name} {told} are compiled for torch {minor}, which has the name."
    kept = (n for n in answer.notes if not _OTHER_SIDE.match(n))
    return replace(answer, help=helps, notes=(note, *kept))


#: Which release of a minor version a file of it needs, in place of the newest that has the name.
_OTHER_SIDE = lazily(r"In\s\d\.\d{1,2}\.\d\sthe\sname\sof\severy\sfunction\b.*\sin\splace\sof\s")


def of_its_torch(answer: Answer, paste: Paste) -> Answer:
    """The answer with what follows from the torch that the text says the file was compiled with."""
    told = re.match(r"\d\.\d{1,2}(?:\.\d)?(?!\d)", paste.versions.get("file_torch", ""))
    if told is None or answer.kind != "symbol-drift" or not answer.exported_by:
        return answer
    minors = {minor_of(release) for release in answer.exported_by}
    note = (
        f"The text tells of torch {told[0]} as what it was compiled with, which has the name: "
        "another torch is loaded."
    )
    if minor_of(f"{told[0]}.0") not in minors:
        note = (
            f"The text tells of torch {told[0]} as what it was compiled with, which has no such "
            "name: the file that is loaded is of another build than that."
        )
    return replace(answer, notes=(note, *answer.notes))


def beside_it(answer: Answer, paste: Paste, name: str | None) -> Answer:
    """The answer with another compiled module that the text says is not there either."""
    module = paste.versions.get("flag:not-built", "")
    other = module.partition(".")[0]
    if not other or other == (name or "").replace("-", "_"):
        return answer
    note = (
        f"The text says that {module} cannot be imported either: {other} has a compiled part of "
        "its own, which has to be built for the same torch, in its own source directory."
    )
    return replace(answer, notes=(*answer.notes, note))


def in_an_image(answer: Answer, paste: Paste, name: str | None) -> Answer:
    """The answer for a torch of a docker image that has the name by its number alone."""
    if answer.kind != "wrong-torch" or answer.direction != NONE:
        return answer
    if "flag:image" not in paste.versions or "+" in paste.versions.get("torch", "+"):
        return answer
    note = (
        "The text has its torch from a docker image: NVIDIA's images have pre-releases (a0 in "
        "torch.__version__), which may lack what the release of that number has. There the file "
        "is compiled for the image's torch; a torch of the package index takes its place."
    )
    row = row_of(name) if name else None
    built: tuple[str, ...] = ()
    if name and row is not None and row["source_build"]:
        version = paste.versions.get(f"pkg:{name}", "")
        release = version if re.fullmatch(r"\d+(?:\.\d+){2}", version) else ""
        built = (rebuild_command("python", name, release, row),)
    return replace(
        answer, help=(*answer.help[:1], *built, *answer.help[1:]), notes=(note, *answer.notes)
    )


def release_for(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """The answer with the release whose wheels were built for the torch of the text."""
    own = (row_of(name) or {}).get("wheels_of")
    present = place.present
    if isinstance(own, Mapping) and present is None:
        which = ", ".join(f"{r} for torch {minor}" for minor, r in own["torch"].items())
        note = (
            f"{name}'s own index has wheels by CUDA and torch ({which}): "
            f"{str(own['index']).format(label='cuXYZ')}, cuXYZ being the CUDA of the torch that "
            "is loaded. Where there is one for it, that is seconds in place of a build."
        )
        return replace(answer, notes=(*answer.notes, note))
    if not isinstance(own, Mapping) or present is None or not present.published:
        return answer
    release = own["torch"].get(minor_of(present.release))
    label = label_of(paste, place) or cuda_label(paste.versions.get("cuda", ""))
    if release is None or not label.startswith("cu"):
        return answer
    built = next((text for text in answer.help if "--no-build-isolation" in text), None)
    if built is None or paste.versions.get(f"pkg:{name}", "").partition("+")[0] == release:
        return answer
    command = (
        "python -m pip install --force-reinstall --no-deps --no-cache-dir "
        f"{name}=={release} --extra-index-url {str(own['index']).format(label=label)}"
    )
    note = (
        f"One way is enough: {name} {release} is a release with wheels for torch "
        f"{minor_of(present.release)}, on the project's own index; the next command compiles "
        "today's source for the torch that is there."
    )
    helps = tuple(
        t for text in answer.help for t in ((command, text) if text == built else (text,))
    )
    kept = (n for n in answer.notes if not n.startswith(_FIRST) and not n.startswith("Where pip"))
    return replace(answer, help=helps, notes=(note, *kept))


def by_torch_words(name: str) -> str:
    """Which release of a package is for which torch, as a sentence; "" where that is not known."""
    minors = read_table("torch_pairs.json")["by_minor"].get(name, {})
    if not minors:
        return ""
    which = ", ".join(f"{minors[minor]} for torch {minor}" for minor in minors)
    return (
        f"Where torch is to stay, {name} alone is changed (python -m pip install "
        f"--force-reinstall --no-deps {name}==RELEASE): {which}."
    )
