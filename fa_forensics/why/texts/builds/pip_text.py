"""Answers to ``No matching distribution found``: what pip's list of releases tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.torch_names.history import order_key

#: (the cause, notes, confidence)
Told = tuple[str, tuple[str, ...], str]


@lru_cache(maxsize=1)
def python_wheels() -> dict[str, Any]:
    """``data/python_wheels.json``: for which Pythons torch and its companions have wheels."""
    table: dict[str, Any] = read_table("python_wheels.json")
    return table


def no_file_for_us(seen: Seen) -> Answer:
    """``No matching distribution found for ...``: no file of that release fits here."""
    requirement = seen.mention.detail.get("requirement", "")
    base = re.split(r"[=<>!~\[]", requirement)[0] or "PACKAGE"
    told = _by_the_list(seen, requirement, base)
    if told is None:
        told = _without_a_list(seen, requirement)
    cause, notes, confidence = told
    listed = bool(_LISTED.search(_said(seen)))
    ask = f"{seen.pip} index versions {base}"
    if listed:
        ask = f"{seen.python} -c 'import sys, platform; print(sys.version, platform.platform())'"
    return seen.answer(
        "python-abi", "FA887", cause, owner=base, direction="none", confidence=confidence,
        help=(ask, f"{seen.pip} debug --verbose"),
        notes=(*notes, "The second command lists the tags that this pip accepts."),
    )  # fmt: skip


def _without_a_list(seen: Seen, requirement: str) -> Told:
    python = seen.python_version
    cause = f"The index has no file of {requirement or 'the requirement'} that fits"
    cause += f" Python {'.'.join(python.split('.')[:2])} on this machine" if python else " here"
    cause += ": the release is not there at all, or not for this Python, system or processor."
    if "+" in requirement:
        cause += (
            " A version with a local part (+cu121) is on torch's own index alone, not on the "
            "default one."
        )
    return cause, (), "medium"


_LISTED = lazily(r"from versions: ([^)\n]{0,4000})")


def _said(seen: Seen) -> str:
    return seen.mention.detail.get("listed") or seen.mention.line


def _by_the_list(seen: Seen, requirement: str, base: str) -> Told | None:
    """What pip's list of the releases that it does see tells; None where that is nothing."""
    found = _LISTED.search(_said(seen))
    if found is None:
        return None
    if found[1].strip() in ("none", ""):
        return (
            f"pip sees no file of {requirement} at all that fits: no release has one for this "
            "Python, system and processor (a new Python, a 32-bit one, macOS on Intel, Windows, "
            "arm64), or the index that was asked does not have the package or was not reached."
        ), (), "medium"  # fmt: skip
    listed = [part.strip() for part in found[1].split(",") if re.match(r"\s*\d", part)]
    wanted = re.search(r"==(\d[\w.]{0,20}?)(\+[\w.]{1,20})?$", requirement)
    if wanted is None or not listed:
        return None
    plain = [part.split("+")[0] for part in listed]
    if wanted[1] in plain:
        return _other_local(requirement, wanted[1], wanted[2] or "", listed)
    if not re.fullmatch(r"\d+(?:\.\d+){1,3}", wanted[1]):
        return None
    pure = python_wheels()["pure"].get(base, ())
    real = [p for p in plain if not pure or order_key(p) > order_key(pure[-1])]
    newer = [p for p in real if order_key(p) > order_key(wanted[1])]
    older = [p for p in real if order_key(p) < order_key(wanted[1])]
    tags = {part.partition("+")[2] for part in listed}
    begins = _index_begins(base, next(iter(tags))) if len(tags) == 1 else None
    if newer and begins and order_key(wanted[1]) < order_key(begins):
        return _before_the_index(base, requirement, next(iter(tags)), begins)
    if newer and not older:
        return _python_too_new(seen, base, wanted[1], requirement, min(newer, key=order_key))
    if older and not newer:
        return _python_too_old(base, wanted[1], requirement, max(older, key=order_key))
    return None


def _other_local(requirement: str, wanted: str, local: str, listed: Sequence[str]) -> Told | None:
    """The release is there, and not with that local part."""
    theirs = [part for part in listed if part.split("+")[0] == wanted]
    if not local or requirement.split("==")[-1] in theirs:
        return None
    cause = (
        f"The index that was asked has {', '.join(theirs[:6])} for this Python and not {wanted}"
        f"{local}: the part after + is another build of the same release, which torch's own index "
        "for it has, as far as there is one."
    )
    note = (
        f"The address of that index ends in whl/{local[1:]}; not every release has every CUDA "
        "version."
    )
    return cause, (note,), "medium"


def _index_begins(base: str, tag: str) -> str | None:
    """The first release of torch or a companion that was built for a CUDA ("cu128")."""
    found = re.fullmatch(r"cu(\d{2})(\d)", tag)
    if found is None:
        return None
    cuda = f"{found[1]}.{found[2]}"
    table = read_table("torch_cuda.json")["cuda"]
    first = next((minor for minor, versions in table.items() if cuda in versions), None)
    if first is None or first == next(iter(table)):
        return None
    if base == "torch":
        return f"{first}.0"
    pairs = read_table("torch_pairs.json")["packages"].get(base, {})
    return next((own for own, torch in pairs.items() if torch == f"{first}.0"), None)


def _before_the_index(base: str, requirement: str, tag: str, begins: str) -> Told:
    cause = (
        f"The index that was asked is that for {tag}, and {base} is on it from {begins} on: "
        f"{requirement} is older than that. This Python need not be at fault."
    )
    way = (
        "The index of a CUDA version that the older release was built for has it, as far as this "
        "Python has files there; its address ends in whl/cu and the number."
    )
    return cause, (way,), "high"


def _pythons_of(base: str, wanted: str) -> list[str]:
    """The Pythons that a release has wheels for."""
    return [
        python
        for python, (first, last) in python_wheels()["packages"].get(base, {}).items()
        if order_key(first) <= order_key(wanted)
        and (last is None or order_key(wanted) <= order_key(last))
    ]


def _for_pythons(base: str, wanted: str) -> tuple[str, ...]:
    own = _pythons_of(base, wanted)
    if not own:
        return ()
    return (f"{base} {wanted} has files for Python {own[0]} to {own[-1]}.",)


def _python_too_new(
    seen: Seen, base: str, wanted: str, requirement: str, first: str
) -> Told | None:
    rows = python_wheels()["packages"].get(base)
    if rows is None:
        return None
    begins = [python for python, (start, _) in rows.items() if start == first]
    if begins:
        cause = (
            f"pip sees {base} from {first} on here, and {requirement} is older than that: this "
            "Python is newer than that release, which has no files for it."
        )
        cause += f" {first} is the first one for Python {begins[0]}."
    else:
        cause = (
            f"pip sees {base} from {first} on here, and {requirement} is older than that: that "
            "release has no files for this Python or this system, or the index that was asked "
            "begins there."
        )
    python = ".".join((seen.python_version or "").split(".")[:2])
    named = python in begins  # an index of somebody's own may begin anywhere
    way = (
        f"A Python that it has files for, or {base} {first} or newer (then the packages that go "
        "with it in their releases for that), is the way out."
    )
    return cause, (*_for_pythons(base, wanted), way), "high" if named else "medium"


def _python_too_old(base: str, wanted: str, requirement: str, last: str) -> Told | None:
    rows = python_wheels()["packages"].get(base)
    if rows is None:
        return None
    ends = [python for python, (_, end) in rows.items() if end == last]
    mac = python_wheels()["macos_intel"].get(base) == last
    cause = (
        f"pip sees {base} up to {last} here, and {requirement} is newer than that: that release "
        "has no files for this Python or this system, or the index that was asked is an older copy."
    )
    if ends:
        cause += f" {last} is the last one for Python {ends[0]}."
    elif mac:
        cause += f" {last} is the last one for macOS on Intel."
    way = (
        f"A Python that it has files for, or {base} {last} with the packages that go with it, is "
        "the way out."
    )
    notes = (*_for_pythons(base, wanted), way) if not mac else ()
    return cause, notes, "medium"


ANSWERERS: dict[str, Answerer] = {"no-matching-distribution": no_file_for_us}
