"""A symbol that a text has cut off: what names of torch begin like that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.demangle import (
    demangle,
    fold_flavour,
    mentions_cxx11,
    qualified_name,
    readable,
)
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.report_why import Answer, Overload
from fa_forensics.why.judgement import FLAVOUR, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.ways.builds import has_official_wheels, numbered_as_torch, rebuild
from fa_forensics.why.ways.commands import which_torch

#: Fewer characters say nothing.
_SHORTEST = 8
_SHOWN = 6


def cut_answer(seen: Seen) -> Answer:
    """The answer for a name without its end; the history of each name that begins so."""
    text = seen.mention.symbol or ""
    found = re.search(r"_?(_Z\w+)", text)
    start = found[1] if found is not None else ""
    if len(start) < _SHORTEST or seen.tables.ages is None:
        return seen.answer(
            "unrecognised",
            "FA899",
            "The text names no symbol, or only the beginning of one; paste the whole name that "
            'follows "undefined symbol:".',
            symbol=text or None,
            help=(seen.inspect_command(),),
            confidence="low",
        )
    found_names = _starting(seen, start)
    names = [name for name, _ in found_names]
    owner = owner_of(start, None, demangle(names[0]) if names else scope_of(start)[0])
    if owner == "libstdc++":
        return _of_the_cxx_library(seen, start)
    if not names:
        return _same_scope(seen, start, owner)
    if len({demangle(name) for name in names}) == 1:
        return _only_one(seen, names[0])
    rows = [
        Overload(name, demangle(name), releases, interval_of(seen, releases))
        for name, releases in found_names[:_SHOWN]
    ]
    if len({fold_flavour(demangle(name)) for name in names}) == 1:
        return _twins(seen, start, owner, rows)
    scopes = {qualified_name(row.demangled) for row in rows}
    which = " or ".join(sorted(scopes)[:3])
    cause = f"The name is cut off. Names of torch that begin so: {which}"
    cause += "; which one is missing, only the whole name says."
    if len(scopes) == 1 and len(found_names) <= _SHOWN:
        return _one_function(seen, start, owner, rows)
    if (called := _of_flash(seen, start, owner, rows)) is not None:
        return called
    span = _span(seen, found_names)
    notes = (f"Names that begin so are in torch {span} alone.",) if span else ()
    return seen.answer(
        "symbol-drift",
        "FA201",
        cause,
        symbol=start,
        owner=owner,
        overloads=tuple(rows),
        releases_looked_up=True,
        help=(seen.inspect_command(),),
        notes=notes,
        confidence="medium" if len(scopes) == 1 else "low",
    )


def _where_to_type(seen: Seen, commands: Sequence[str]) -> tuple[str, ...]:
    """Where a command that removes compiled modules belongs, where one is typed."""
    from fa_forensics.why.ways.trees import where_to_type

    removing = next((text for text in commands if " -delete" in text), "")
    return where_to_type(removing, (seen.mention.file or "",))


def _twins(seen: Seen, start: str, owner: str, rows: list[Overload]) -> Answer:
    """One function in both std::string flavours: whichever is missing, torch has the other."""
    having = " and ".join(f"{readable(row.demangled)} (torch {row.interval})" for row in rows[:2])
    cause = (
        f"The name is cut off. Names of torch that begin so are one function in its two "
        f"std::string flavours: {having}, and each torch of those exports one of them. Whichever "
        "is missing, the torch that is loaded most likely has the other flavour than the file: "
        "another build or release of torch took the place of the one that the file was built for."
    )
    commands = [which_torch(seen.place, flavour=True)]
    built = rebuild(seen.place, (seen.mention.file,)) if seen.mention.file else None
    notes = numbered_as_torch((seen.mention.file or "",))
    if built is not None:
        notes = (*_where_to_type(seen, built[:1]), f"The second command {built[1]}.")
    if built is not None:
        commands.append(built[0])
    return seen.answer(
        "cxx11-abi", "FA301", cause, symbol=start, demangled=qualified_name(rows[0].demangled),
        owner=owner, overloads=tuple(rows), releases_looked_up=True, direction=FLAVOUR,
        help=(*commands, seen.inspect_command()), notes=notes, confidence="medium",
    )  # fmt: skip


def _of_flash(seen: Seen, start: str, owner: str, rows: list[Overload]) -> Answer | None:
    """A cut name beside a flash-attn whose wheels for this torch are cxx11; None for others."""
    from fa_forensics.facts.wheel_matrix import PACKAGE, called_pre_cxx11
    from fa_forensics.why.ways.same_release import package_in_text

    present, version = seen.place.present, seen.versions.get(f"pkg:{PACKAGE}", "")
    new = [row for row in rows if mentions_cxx11(row.symbol, row.demangled)]
    if present is None or present.flavour != "pre-cxx11" or not new:
        return None
    if PACKAGE not in (seen.package, package_in_text(seen.paste)):
        return None
    if not called_pre_cxx11(version, ".".join(present.release.split(".")[:2])):
        return None
    name = qualified_name(new[0].demangled)
    cause = (
        f"The name is cut off; it begins as {name}. {present.text} is pre-cxx11, and the wheels of "
        f"{PACKAGE} {version} for it have a cxx11 file in them, whatever their name says: most "
        f"likely the missing one is the form with std::__cxx11 (torch {new[0].interval})."
    )
    back = f"{PACKAGE}==2.7.4.post1"
    commands = [which_torch(seen.place, flavour=True)]
    commands.append(f"{seen.pip} install --no-build-isolation --no-cache-dir --no-deps {back}")
    built = (
        f"FLASH_ATTENTION_FORCE_BUILD=TRUE MAX_JOBS=4 {seen.pip} install --no-build-isolation "
        f"--no-cache-dir --force-reinstall --no-deps --no-binary {PACKAGE} {PACKAGE}=={version}"
    )
    note = (
        f"One of the two commands is enough: {back} is the last release whose wheels for this "
        f"torch have its flavour; the other compiles {PACKAGE} {version} for it, in hours."
    )
    return seen.answer(
        "cxx11-abi", "FA301", cause, symbol=start, demangled=name, owner=owner,
        overloads=tuple(rows), releases_looked_up=True, direction=FLAVOUR,
        help=(*commands, built, seen.inspect_command()), notes=(note,), confidence="medium",
    )  # fmt: skip


def _one_function(seen: Seen, start: str, owner: str, rows: list[Overload]) -> Answer:
    """One function with several signatures: each is of other releases, or of another flavour."""
    commands = [which_torch(seen.place, flavour=True)]
    file = seen.mention.file or ""
    built = rebuild(seen.place, (file,)) if file else None
    if has_official_wheels((file,)) and (built is None or ".whl" not in built[0]):
        commands.append("fa-forensics wheels")
    commands += [built[0]] if built is not None else []
    name = qualified_name(rows[0].demangled)
    present = seen.place.present
    there = [row for row in rows if present is not None and present.release in row.exported_by]
    where = _where_to_type(seen, commands)
    cause = f"The name is cut off. All names of torch that begin so are {name}"
    if present is None or not there:
        cause += (
            ", with other parameters in other releases and in the two std::string flavours: "
            "whichever is missing, the file was built for another torch than the one that is "
            "loaded, another release or the other flavour."
        )
        return seen.answer(
            "symbol-drift", "FA201", cause, symbol=start, demangled=name, owner=owner,
            overloads=tuple(rows), releases_looked_up=True, notes=(*where, _WHICH_ONE),
            help=(*commands, seen.inspect_command()), confidence="medium",
        )  # fmt: skip
    left = [row for row in rows if row not in there]
    twins = {fold_flavour(row.demangled) for row in there}
    twin = next((row for row in left if fold_flavour(row.demangled) in twins), None)
    cause += (
        f", and {present.text} exports {readable(there[0].demangled)}: the missing one is another "
        "of them."
    )
    if twin is None:
        kind, code, direction = "symbol-drift", "FA201", UNKNOWN
        cause += " The file was built for another release of torch."
    else:
        kind, code, direction = "cxx11-abi", "FA301", FLAVOUR
        cause += (
            f" Most likely it is the same function in the other std::string flavour, which torch "
            f"{twin.interval} have: the file was built for one of those."
        )
    return seen.answer(
        kind, code, cause, symbol=start, demangled=name, owner=owner, overloads=tuple(rows),
        releases_looked_up=True, direction=direction, notes=(*where, _WHICH_ONE),
        confidence="medium", help=(*commands, seen.inspect_command()),
    )  # fmt: skip


_WHICH_ONE = "Which one is missing, only the whole name says; the ways out are the same."


def _only_one(seen: Seen, name: str) -> Answer:
    """The answer for the only name of torch that begins so."""
    from fa_forensics.why.symbol import symbol_answer

    symbol = SymbolText(name, demangle(name), None)
    answer = symbol_answer(symbol, seen.place, seen.tables, seen.mention.file)
    note = "The name is cut off; of torch's names this one alone begins so."
    return replace(
        answer,
        source_line=seen.mention.line or None,
        confidence="medium" if answer.confidence == "high" else answer.confidence,
        notes=(note, *answer.notes),
    )


def _span(seen: Seen, names: list[tuple[str, tuple[str, ...]]]) -> str:
    """The releases with any of the names, as text; "" where every release has one."""
    atlas = seen.tables.ages
    if atlas is None or len(names) > _SHOWN:
        return ""
    known = atlas.releases(seen.place.machine)
    having = {release for _, releases in names for release in releases}
    return "" if set(known) <= having else interval_of(seen, tuple(r for r in known if r in having))


def interval_of(seen: Seen, releases: tuple[str, ...]) -> str:
    """Releases as text."""
    from fa_forensics.atlas.builds import interval_text

    atlas = seen.tables.ages
    if atlas is None or not releases:
        return ""
    return interval_text(releases, atlas.releases(seen.place.machine))


def _of_the_cxx_library(seen: Seen, start: str) -> Answer:
    """A name of libstdc++, which torch's libraries carry copies of: no release of torch counts."""
    from fa_forensics.why.other_names.known import libstdcxx

    told = re.search(r"\b(?:GLIBCXX|CXXABI)_\d[\d.]{2,8}", seen.mention.line)
    version = told[0].rstrip(".") if told is not None else seen.mention.version
    symbol = SymbolText(start, scope_of(start)[0] or start, version)
    judgement, commands = libstdcxx(symbol, start if version else "")
    return seen.answer(
        judgement.kind, judgement.code, f"The name is cut off. {judgement.cause}", symbol=start,
        owner="libstdc++", direction=judgement.direction, confidence="medium",
        help=(*commands, seen.inspect_command()), notes=judgement.notes,
    )  # fmt: skip


def _starting(seen: Seen, start: str) -> list[tuple[str, tuple[str, ...]]]:
    atlas = seen.tables.ages
    if atlas is None:
        return []
    return atlas.starting_with(start, seen.place.machine, limit=_SHOWN + 1)


def begins_a_name(seen: Seen, start: str) -> bool:
    """Whether names of published torches begin so."""
    return bool(_starting(seen, start))


def scope_of(start: str) -> tuple[str, str]:
    """The readable scope at the beginning of a mangled name, and what follows it.

    ``_ZN3c104cuda9SetDev`` gives ``("c10::cuda::", "9SetDev")``.
    """
    body = re.sub(r"^_ZN?K?", "", start)
    parts = []
    while (found := re.match(r"(\d{1,3})", body)) is not None:
        length = int(found[1])
        part = body[found.end() : found.end() + length]
        if len(part) < length:
            break
        parts.append(part)
        body = body[found.end() + length :]
    return "::".join([*parts, ""]), body


def _same_scope(seen: Seen, start: str, owner: str) -> Answer:
    """No name begins so: a letter is wrong, or what is there is enough to read the function."""
    atlas = seen.tables.ages
    scope = scope_of(start)[0].rstrip(":")
    rows_of_name = atlas.overloads(scope, seen.place.machine) if atlas and is_torch(owner) else ()
    found = [row for row in rows_of_name if row.releases]
    if not found:
        return _nothing_begins_so(seen, start, owner)
    rows = [
        Overload(row.symbol, row.demangled, row.releases, interval_of(seen, row.releases))
        for row in found[:_SHOWN]
    ]
    cause = (
        f"The name is damaged or cut off. It is of {scope}, which torch exports with these "
        f"parameters: {readable(rows[0].demangled)} (torch {rows[0].interval})"
    )
    cause += f" and {len(found) - 1} others." if len(found) > 1 else "."
    return seen.answer(
        "symbol-drift", "FA201", cause, symbol=start, demangled=scope, owner=owner,
        overloads=tuple(rows), releases_looked_up=True, help=(seen.inspect_command(),),
        confidence="low",
    )  # fmt: skip


def _nothing_begins_so(seen: Seen, start: str, owner: str) -> Answer:
    if is_torch(owner):
        return seen.answer(
            "symbol-drift", "FA201",
            "The name is cut off or misspelt, and no name of a published torch begins so; paste "
            "the whole name.",
            symbol=start, owner=owner, releases_looked_up=True, help=(seen.inspect_command(),),
            confidence="low",
        )  # fmt: skip
    from fa_forensics.why.other_names.left_out import owner_words, part_words
    from fa_forensics.why.ways.builds import clean_build

    file = seen.mention.file or ""
    likely, notes = part_words(letters_of(start))
    cause = (
        "The name is cut off or misspelt, and no name of a published torch begins so: most likely "
        f"it is {owner_words((file,) if file else (), scope_of(start)[0])} own."
    )
    more = "Paste the whole name: it shows the parameters, and whose they are."
    return seen.answer(
        "own-symbol", "FA205", f"{cause} {likely}" if likely else cause, symbol=start, owner=owner,
        releases_looked_up=True, confidence="low", notes=(*notes, more),
        help=(clean_build(raw_python(seen), file), seen.inspect_command()),
    )  # fmt: skip


def letters_of(start: str) -> str:
    """The first name in a mangled one, read without its count: ``_Z26gemm_sm90RN2at`` is gemm_sm90.

    The letters up to the parameters are it; without parameters the count says where it ends.
    """
    found = re.match(r"_ZN?K?(?P<count>\d{1,3})(?P<text>[A-Za-z_]\w*)", start)
    if found is None:
        return ""
    text = re.split(r"(?<=[a-z0-9])(?=(?:RK?|PK?|K)?N\d|E(?:RK|PK|N\d))", found["text"])[0]
    return text if len(text) < len(found["text"]) else text[: int(found["count"])]
