"""The package that a text names, in the release that it names: where only the build is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.package import build_tags, normalized
from fa_forensics.facts.python_api import torch_of
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import known_packages, rebuild_does, row_of
from fa_forensics.rules.wheel_pages import page_of
from fa_forensics.why.judgement import FLAVOUR, NEWER, OLDER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.seen import package_of
from fa_forensics.why.ways.builds import NOT_EXCHANGED, has_official_wheels, rebuild_named
from fa_forensics.why.ways.commands import (
    BOTH_OF_ONE,
    OFFICIAL,
    THIS_FLAVOUR,
    reinstall_torch,
    with_its_torch,
)
from fa_forensics.why.ways.older_name import name_then

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Packages that are listed with torch wherever somebody lists it: no sign of what failed.
_FAMILY = ("torch", "torchvision", "torchaudio", "bitsandbytes")
#: Listed as those are, though a sign where nothing else is named.
_SELDOM = "torchcodec"
_PLAIN = lazily(r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:post|rc|dev)\d{1,10})?")
_DRIFT = ("symbol-drift", "cxx11-abi")
#: Kinds whose commands compile the failing file's package again.
_OF_A_FILE = ("wrong-torch", "import-order")


def same_release(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with commands for the release of the package that the text names.

    ``name`` is the failing file's package, None where no file is named, or only as ``_C.so``:
    then the only package with compiled code in the text is taken.
    """
    if place.told is None or answer.owner is None or not is_torch(answer.owner):
        return answer
    if answer.kind not in _DRIFT and (name is None or answer.kind not in _OF_A_FILE):
        return answer
    if name is None:
        name = package_in_text(paste)
        if name is None:
            return _of_another_package(answer, paste)
        answer = _with_build(answer, place, name, name == _imported(paste), _newest(paste))
    version = _PLAIN.fullmatch(paste.versions.get(f"pkg:{name}", "").partition("+")[0])
    row = row_of(name)
    if row is None or not row["source_build"]:
        return answer
    tag = build_tags(paste.versions.get(f"pkg:{name}", "")).torch
    there = place.present.release.split(".")[:2] if place.present is not None else []
    meant = tag is not None and tag.split(".")[:2] == there
    meant = meant or _near(answer, place)
    answer = _pinned(answer, name, version[0] if version else "", row, meant)
    return _of_its_time(answer, paste, place, name) if row.get("before") else answer


def _of_another_package(answer: Answer, paste: Paste) -> Answer:
    """The answer where the only package that the text names was built for the torch it has."""
    names = (normalized(str(row["distribution"])) for row in known_packages())
    fits = next((n for n in names if n not in _FAMILY and of_this_torch(paste.versions, n)), None)
    if fits is None or any("/" in (mention.file or "") for mention in paste.mentions):
        return answer
    release = paste.versions[f"pkg:{fits}"]
    note = (
        f"{fits} {release} was built for the torch of the text, so that its own files fit: most "
        "likely the file is another package's (flash-attn, xformers, ...), which was built for "
        "another torch. The line with the name, or the traceback before it, tells the file; that "
        "package is built again for the torch that is there, or exchanged for its wheel for it."
    )
    return replace(answer, notes=(*answer.notes, note))


def under_its_new_name(answer: Answer, paste: Paste) -> Answer:
    """The answer with the name that a package goes on under, and that the text has it by.

    Two distributions with one module overwrite each other's files: where the text has neither by
    its name, the first command tells which one is there.
    """
    for row in known_packages():
        new, old = str(row["distribution"]), str(row.get("formerly") or "")
        if not old or f"pkg:{old}" in paste.versions or f"named:{old}" in paste.versions:
            continue
        called = re.compile(rf"(?<![\w/-]){re.escape(old)}(?![\w-])")
        if not any(" install " in text and called.search(text) for text in answer.help):
            named = f"pkg:{new}" in paste.versions
            notes = tuple(called.sub(new, t) if named else t for t in answer.notes)
            return replace(answer, notes=notes) if notes != answer.notes else answer
        if f"pkg:{new}" in paste.versions or f"named:{new}" in paste.versions:
            return replace(
                answer, help=tuple(called.sub(new, text) for text in answer.help),
                notes=tuple(called.sub(new, text) for text in answer.notes),
            )  # fmt: skip
        listed = f"python -m pip list | grep -iE '{old}|{new}'"
        note = (
            f"{old} goes on as {new}, with the same module: of the two, the one that the command "
            "lists is exchanged for its release for the torch that is loaded; the other one would "
            "write over its files."
        )
        # Without an address the command brings the newest of the old name, a step back.
        helps = tuple(
            text for text in answer.help
            if "index-url" in text or not (" install " in text and called.search(text))
        )  # fmt: skip
        helps = (listed, *helps)
        return replace(answer, help=helps, notes=(*answer.notes, note))
    return answer


def _near(answer: Answer, place: Place) -> bool:
    """Whether the torch there is so little newer than the file's that its source still fits."""
    present = place.present
    if answer.direction != OLDER or present is None or not answer.exported_by:
        return False
    own, there = (release.split(".")[:2] for release in (answer.exported_by[-1], present.release))
    return own[0] == there[0] and int(there[1]) - int(own[1]) <= _SOON


#: Minor releases of torch that the source of a package mostly outlives.
_SOON = 2


def package_in_text(paste: Paste) -> str | None:
    """The only package with compiled code that a text names, where it names no path of a file."""
    if any("/" in (mention.file or "") for mention in paste.mentions):
        return None
    imported = _imported(paste) or _built_for_a_torch(paste)
    if imported is not None:
        return imported
    only = _only_package(paste.versions) or ("mmcv" if "flag:mmcv" in paste.versions else None)
    # One of torch's own family is listed wherever torch is; the newest of it is a sign.
    return only or _newest(paste) or None


def _newest(paste: Paste) -> str:
    """The package of torch's family of which the text has the newest release; "" for none."""
    return paste.versions.get("flag:newest", "")


def _built_for_a_torch(paste: Paste) -> str | None:
    """The package that the text tells of as built for a release of torch; None for none known."""
    row = row_of(normalized(paste.versions.get("flag:file-of", "-")))
    name = str(row["distribution"]) if row is not None else None
    return name if name not in _FAMILY else None


def of_this_torch(versions: Mapping[str, str], name: str) -> bool:
    """Whether the text's release of a package was built for the very torch that the text has.

    Its own file fits then, and the one that fails is another package's.
    """
    if name not in NOT_EXCHANGED:
        return False  # of others a build of the same number may have the other flavour
    built = torch_of(name, versions.get(f"pkg:{name}", ""))
    torch = versions.get("torch", "").partition("+")[0]
    return bool(built) and minor_of(f"{built}.0") == minor_of(f"{torch or '0'}.0")


def _imported(paste: Paste) -> str | None:
    """The package whose import failed, by the traceback or in a sentence; None for none known."""
    known = {normalized(str(row["distribution"])) for row in known_packages()}
    said = normalized(paste.versions.get("flag:imported", ""))
    if said in known and said not in _FAMILY:
        return said
    module = next((m.detail.get("import") for m in paste.mentions if m.symbol), None)
    name = package_of(f"/site-packages/{module.replace('.', '/')}/_") if module else None
    return name if name is not None and name not in _FAMILY else None


def _of_its_time(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """A build by the name that the package had then, and the project's wheel where it has one.

    The text's versions, its Python and torch tell the time, or the last torch with the name.
    """
    python = place.told.python if place.told is not None else None
    torch = place.present.release if place.present is not None else None
    if torch is None and answer.direction in (OLDER, UNKNOWN) and answer.exported_by:
        torch = answer.exported_by[-1]
    wanted = name_then(name, torch, python, paste.versions)
    release = _PLAIN.fullmatch(paste.versions.get(f"pkg:{wanted}", ""))
    spelt = f"{wanted}=={release[0]}" if release else wanted
    called = re.compile(rf"--no-binary {re.escape(name)} {re.escape(name)}$")
    helps = [called.sub(f"--no-binary {wanted} {spelt}", text) for text in answer.help]
    row = row_of(name)
    # Such indexes have wheels for torch's own, in the flavour that this torch has not.
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    old = answer.direction == FLAVOUR and not new
    index = row is not None and bool(row.get("find_links")) and not old
    label = label_of(paste, place)
    if index and label and place.present is not None:
        link = wheel_page(row, label, place.present.release)
        compiled = re.compile(rf"--no-binary {re.escape(wanted)} (?={re.escape(wanted)})")
        if link and any(compiled.search(text) for text in helps):
            ready = " ".join(("--only-binary", wanted, ""))
            helps = [
                f"{compiled.sub(ready, t)} -f {link}" if compiled.search(t) else t for t in helps
            ]
            there = place.present.text
            takes = f"takes the wheel of {wanted} that its own index has for {there}"
            builds = rebuild_does(name, row, there)
            notes = tuple(n.replace(builds, takes) for n in answer.notes)
            answer = replace(answer, notes=notes)
    elif index and place.present is not None and (cuda := label_by_cuda(paste, torch or "")):
        page = wheel_page(row, cuda, place.present.release)
        if not page:
            return replace(answer, help=tuple(helps))
        note = (
            f"{wanted}'s own index has wheels by torch and CUDA, seconds in place of a build: with "
            f"-f {page} in place of --no-binary {wanted} the "
            "command takes one, if torch.version.cuda is the CUDA of the text."
        )
        answer = replace(answer, notes=(*answer.notes, note))
    if index and place.present is None and any("--no-binary" in text for text in helps):
        page = str((row or {}).get("find_links", "")).format(label="cuXYZ", minor="X.Y")
        note = (
            f"{wanted}'s own index has wheels by CUDA and torch, seconds in place of a build: with "
            f"-f {page} in place of --no-binary {wanted}, cuXYZ and X.Y being those of the torch "
            f"that is loaded. mim install {wanted} (python -m pip install openmim) looks there by "
            "itself."
        )
        answer = replace(answer, notes=(*answer.notes, note))
    return replace(answer, help=tuple(helps))


def label_by_cuda(paste: Paste, release: str) -> str:
    """The CUDA that the text names by itself, as indexes do, where a torch release has that."""
    known = cuda_builds(minor_of(release))
    told = (paste.versions.get(key, "") for key in ("index_cuda", "cuda"))
    found = (re.match(r"\d{1,2}\.\d(?!\d)", text) for text in told)
    own = next((one[0] for one in found if one and one[0] in known), "")
    return cuda_label(own)


def label_of(paste: Paste, place: Place) -> str:
    """The text's build of torch as indexes name it: cu111, cpu; "" where it does not say."""
    local = place.present.version.partition("+")[2] if place.present is not None else ""
    told = "+" in paste.versions.get("torch", "")
    if told and re.fullmatch(r"cpu|cu\d{2,3}", local):
        return local
    cuda = paste.versions.get("torch_cuda") or paste.versions.get("pkg:cudatoolkit", "")
    return cuda_label(cuda)


def wheel_page(row: Mapping[str, object] | None, label: str, torch: str) -> str:
    """Where a project has its wheels for a CUDA and a release of torch; "" for none."""
    return page_of(row, label, minor_of(torch))


def _only_package(versions: Mapping[str, str]) -> str | None:
    """The one package with compiled code, torch's own family aside, that the text lists."""
    known = {normalized(str(row["distribution"])) for row in known_packages()}
    for sort in ("pkg:", "named:"):
        told = [normalized(k.removeprefix(sort)) for k in versions if k.startswith(sort)]
        listed = {package_of(f"{n.replace('-', '_')}.so") or n for n in told if n not in known}
        listed |= {name for name in told if name in known}
        found = [name for name in sorted(listed & known) if name not in _FAMILY]
        found = [name for name in found if not of_this_torch(versions, name)]
        found = [name for name in found if name != _SELDOM] or found
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _with_build(
    answer: Answer, place: Place, name: str, imported: bool, newest: str = ""
) -> Answer:
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
        f"No package is named as that of the file, and of those in the text {name} alone has "
        f"compiled code that links torch: the command {built[1]}."
    )
    if name == newest:
        note = f"The text has the newest {name}: the command {built[1]}."
    if imported:
        note = f"The text says that the import of {name} failed: the command {built[1]}."
    listed = has_official_wheels((f"/site-packages/{name.replace('-', '_')}/_.so",))
    ready = ("fa-forensics wheels",) if listed and ".whl" not in built[0] else ()
    notes = (note, OFFICIAL) if ready else (note,)
    plain = tuple(n for n in answer.notes if not n.startswith("A file that was compiled"))
    helps = (*answer.help[:asked], *ready, built[0], *answer.help[asked:])
    return replace(answer, help=helps, notes=(*plain, *notes))


def _pinned(
    answer: Answer, name: str, version: str, row: Mapping[str, object], meant: bool
) -> Answer:
    """The commands that compile it, in the text's release and under the name it has there.

    A file that is older than torch is compiled in its newest release, unless its own is one
    that is ``meant`` for that torch.
    """
    before: Mapping[str, str] = row.get("before", {})  # type: ignore[assignment]
    names, own = [name], ""
    if before:
        names.append(before["distribution"])
        if version:
            old = _key(version) < _key(before["first"])
            own = before["distribution"] if old else name
    same = answer.direction in (FLAVOUR, NEWER, UNKNOWN) or own not in ("", name) or meant
    pin = version if version and same else ""
    helps = list(answer.help)
    if pin or own:
        wanted = own or name
        spelt = f"--no-binary {wanted} {wanted}" + (f"=={pin}" if pin else "")
        called = re.compile(rf"--no-binary ({'|'.join(map(re.escape, names))}) '?\1(?:<[\d.]+')?$")
        helps = [called.sub(spelt, text) for text in helps]
    if pin and row.get("tag"):
        tag = str(row["tag"]).format(version=pin)
        source = re.compile(rf"{re.escape(str(row['requirement']))}(?:@[\w.]{{1,40}})?$")
        helps = [source.sub(f"{row['requirement']}@{tag}", text) for text in helps]
    return replace(answer, help=tuple(helps))


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
