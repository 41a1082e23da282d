"""The package that a text names, in the release that it names: where only the build is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.package import normalized
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import known_packages, row_of
from fa_forensics.why.builds import rebuild_named
from fa_forensics.why.commands import (
    BOTH_OF_ONE,
    THIS_FLAVOUR,
    reinstall_torch,
    with_its_torch,
)
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Packages that are listed with torch wherever somebody lists it: no sign of what failed.
_FAMILY = ("torch", "torchvision", "torchaudio", "bitsandbytes")
_PLAIN = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:post|rc|dev)\d{1,10})?")
_DRIFT = ("symbol-drift", "cxx11-abi")


def same_release(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with commands for the release of the package that the text names.

    ``name`` is the failing file's package, None where no file is named: then the only package
    with compiled code in the text is taken.
    """
    if place.told is None or answer.owner is None or not is_torch(answer.owner):
        return answer
    if answer.kind not in _DRIFT:
        return answer
    if name is None and not any(m.file for m in paste.mentions):
        name = _only_package(paste.versions)
        if name is not None:
            answer = _with_build(answer, place, name)
    if name is None:
        return answer
    version = _PLAIN.fullmatch(paste.versions.get(f"pkg:{name}", ""))
    row = row_of(name)
    if row is None or not row["source_build"]:
        return answer
    return _pinned(answer, name, version[0] if version else "", row)


def _only_package(versions: Mapping[str, str]) -> str | None:
    """The one package with compiled code, torch's own family aside, that the text lists."""
    listed = {normalized(key.removeprefix("pkg:")) for key in versions if key.startswith("pkg:")}
    known = {normalized(str(row["distribution"])) for row in known_packages()}
    found = [name for name in sorted(listed & known) if name not in _FAMILY]
    return found[0] if len(found) == 1 else None


def _with_build(answer: Answer, place: Place, name: str) -> Answer:
    """The answer with a build of the package behind the question which torch is loaded."""
    built = rebuild_named(place, name, answer.direction)
    if built is None or built[0] in answer.help:
        return answer
    both = with_its_torch(place, built[0]) if THIS_FLAVOUR in answer.notes else None
    if both is not None and place.present is not None:
        alone = reinstall_torch(place, place.present.release)
        helps = tuple(both if text == alone else text for text in answer.help)
        kept = tuple(BOTH_OF_ONE if note == THIS_FLAVOUR else note for note in answer.notes)
        return replace(answer, help=helps, notes=kept)
    asked = 1 if answer.help and "import torch" in answer.help[0] else 0
    note = (
        f"No file is named, and of the packages in the text {name} alone has compiled code that "
        f"links torch: the command {built[1]}."
    )
    helps = (*answer.help[:asked], built[0], *answer.help[asked:])
    return replace(answer, help=helps, notes=(*answer.notes, note))


def _pinned(answer: Answer, name: str, version: str, row: Mapping[str, object]) -> Answer:
    """The commands that compile it, in the text's release and under the name it has there."""
    before: Mapping[str, str] = row.get("before", {})  # type: ignore[assignment]
    names, own = [name], ""
    if before:
        names.append(before["distribution"])
        if version:
            old = _key(version) < _key(before["first"])
            own = before["distribution"] if old else name
    pin = version if version and (answer.direction == FLAVOUR or own not in ("", name)) else ""
    helps = list(answer.help)
    if pin or own:
        wanted = own or name
        spelt = f"--no-binary {wanted} {wanted}" + (f"=={pin}" if pin else "")
        called = re.compile(rf"--no-binary ({'|'.join(map(re.escape, names))}) \1$")
        helps = [called.sub(spelt, text) for text in helps]
    if pin and row.get("tag"):
        tag = str(row["tag"]).format(version=pin)
        source = re.compile(rf"{re.escape(str(row['requirement']))}$")
        helps = [source.sub(f"{row['requirement']}@{tag}", text) for text in helps]
    return replace(answer, help=tuple(helps))


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
