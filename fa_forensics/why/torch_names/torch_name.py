"""The answer for a name that torch owns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import STABLE, is_torch, owner_of_library, title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.report_why import Answer, Overload
from fa_forensics.resolve.nearest import OTHER_FLAVOUR, SAME_NAME, Near
from fa_forensics.why.judgement import FLAVOUR, NEWER, OLDER, UNKNOWN, Judgement, Question
from fa_forensics.why.place import CUDA_OWNERS, Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.cause import change_words, judge_missing, judge_present
from fa_forensics.why.torch_names.history import Form, History, Present, look_up, order_key
from fa_forensics.why.torch_names.inlined import without_copies
from fa_forensics.why.torch_names.other_flavour import without_a_build
from fa_forensics.why.torch_names.spelling import could_be_spelt, same_text
from fa_forensics.why.ways.builds import isolated_build, numbered_as_torch, rebuild
from fa_forensics.why.ways.commands import (
    commands_by_history,
    inspect_command,
    install,
    reinstall_torch,
    torch_commands,
    torch_with_it,
    which_torch,
)
from fa_forensics.why.ways.unlisted import not_linked

#: Parts of torch that the atlas has no builds of.
_NO_TABLE = ("torch/c10_hip", "torch/torch_hip")


def torch_answer(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: str | None,
    near: tuple[Near, ...],
    place: Place,
    tables: Tables,
    needed_by: Sequence[str],
) -> Answer:
    """Judge a torch-owned name by what is here and by its history."""
    history = None
    if tables.ages is not None and owner not in _NO_TABLE:
        history = look_up(name, symbol.demangled, tables.ages, _machine(owner, place, tables.ages))
        name = name or history.symbol
    package, since = _package_since(needed_by)
    built, copies = history, ""
    if history is not None and tables.ages is not None and provider is None:
        built, copies = without_copies(history, symbol.demangled, tables.ages, place.present)
    question = Question(name, symbol.demangled, owner, near, built, package, since)
    judgement = (
        _by_twin(question, provider, place, tables) if owner in _NO_TABLE else None
    ) or _judge(symbol, question, provider, place)
    if history is not None and history.machine != place.machine:
        other = _OTHER_MACHINE if owner in CUDA_OWNERS else _BEFORE_ITS_RECORD
        judgement = replace(judgement, notes=(*judgement.notes, other))
    if copies:
        judgement = replace(judgement, notes=(*judgement.notes, copies))
    helped, remarks = _help(judgement, question, provider, place, tables, needed_by)
    if place.told is not None and _newer_than_torch(judgement, question):
        remarks = (*remarks, *_built_elsewhere(judgement, history, place, needed_by))
    if history is not None and history.machine != place.machine:
        # That torch would come without CUDA on this machine.
        helped = tuple(command for command in helped if '"torch==' not in command)
    return Answer(
        kind=judgement.kind,
        code=judgement.code,
        symbol=name or None,
        demangled=symbol.demangled,
        owner=_by_library(owner, history, place, tables),
        provider=provider,
        cause=judgement.cause,
        direction=judgement.direction,
        confidence=judgement.confidence,
        exported_by=_exported_by(history, provider, place),
        interval="" if history is None else history.interval(history.releases),
        overloads=_overloads(question, place, provider is None and judgement.direction != FLAVOUR),
        help=helped,
        notes=(*judgement.notes, *remarks),
        releases_looked_up=history is not None,
    )


def _built_elsewhere(
    judgement: Judgement, history: History | None, place: Place, needed_by: Sequence[str]
) -> tuple[str, ...]:
    """How the file came to be of another torch: by pip's isolated build, where that can be."""
    isolated = isolated_build(place, needed_by)
    if not isolated or judgement.direction != FLAVOUR or history is None:
        return isolated
    from fa_forensics.why.torch_names.from_history import meant_for

    if set(meant_for(place, history)) & set(history.releases):
        return isolated
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    row = row_of(package_of(needed_by[0]) or "") if needed_by else None
    own = (row or {}).get("wheels_for")
    return (_OF_ITS_PROJECT if "cxx11abi" in str(own) else _ON_ANOTHER_BUILD,)


#: Said of a cxx11 file where no wheel that pip could have taken is cxx11.
_ON_ANOTHER_BUILD = (
    "No wheel of torch that pip could have taken for the build is cxx11: the file was compiled on "
    "another torch (conda-forge's, a container's, one from source) than the one that is loaded, or "
    "with -D_GLIBCXX_USE_CXX11_ABI=1 in its own flags."
)


#: The same, where the package's project has wheels of both flavours.
_OF_ITS_PROJECT = (
    "No wheel of torch that pip could have taken for a build is cxx11: most likely the file is of "
    "the project's own wheel that is called cxx11abiTRUE. Else it was compiled on another torch "
    "(conda-forge's, a container's, one from source) than the one that is loaded, or with "
    "-D_GLIBCXX_USE_CXX11_ABI=1 in its own flags."
)


def _package_since(needed_by: Sequence[str]) -> tuple[str, str]:
    """(the failing file's package, the first torch that it exists for); "" for what is open."""
    if not needed_by:
        return "", ""
    from fa_forensics.facts.python_api import exists_since
    from fa_forensics.why.seen import directory_of

    package = directory_of(needed_by[0])
    since = exists_since(package) if package else None
    return package or "", since or ""


def _by_library(owner: str, history: History | None, place: Place, tables: Tables) -> str:
    """The part of torch whose library exports the name: namespaces are spread over several.

    Libraries of releases before 1.5 (libtorch.so) held all parts: there the namespace counts.
    Where no release has the name, its twin tells it, and else its nearest other signature.
    """
    if history is None or tables.ages is None or owner == STABLE:
        return owner
    near = [named.symbol for form in (*history.line, *history.forms) for named in form.symbols]
    near[:0] = [history.symbol, history.twin.symbol if history.twin is not None else ""]
    asked = (tables.ages.exports(name, history.machine) for name in near if name)
    lives = [rows for rows in asked if rows]
    # One library held all parts before 1.5: a signature of a later release tells more.
    all_parts = ("libtorch.so", "libcaffe2.so")
    later = (life for life in lives if any(row.library not in all_parts for row in life))
    rows = next(later, lives[0] if lives else ())
    # Inline functions leave weak copies in other libraries: the part that defined it counts.
    defining = [row for row in rows if row.library in ("libc10.so", "libtorch_cpu.so")]
    there = {row.release: row.library for row in rows}
    present = place.present.release if place.present else ""
    release = present if present in there else next(reversed(there), "")
    library = there.get(release, "")
    if defining and library in ("libtorch_python.so", "libtorch_cuda.so"):
        library = defining[-1].library
    if library == "libtorch.so" or (owner == "torch/c10" and "libc10.so" in there.values()):
        return owner
    found = owner_of_library(library)
    return found if found is not None and is_torch(found) else owner


def _newer_than_torch(judgement: Judgement, question: Question) -> bool:
    """Whether the file is of a newer torch: by its direction, or cxx11 for a pre-cxx11 torch."""
    if judgement.direction == NEWER and judgement.kind == "symbol-drift":
        return True
    return judgement.direction == FLAVOUR and mentions_cxx11(question.name, question.demangled)


#: Said where the other machine's releases stand in.
_OTHER_MACHINE = (
    "The wheels for this machine had no CUDA in all those releases; they are told by those for "
    "x86_64, which are compiled from the same source."
)


#: Said where the wheels of x86_64 tell of a torch that is older than the record of the machine.
_BEFORE_ITS_RECORD = (
    "The record of this machine's wheels begins later than that torch; it is told by the wheels "
    "for x86_64, which are compiled from the same source."
)


def _machine(owner: str, place: Place, atlas: Atlas) -> str:
    """The machine whose releases tell the life of a name: those with CUDA for a name of CUDA's.

    A torch that is older than the record of its machine is told by the oldest record.
    """
    if owner not in CUDA_OWNERS:
        return _on_record(place, atlas)
    builds = {m: [b.cuda is not None for b in atlas.builds(m)] for m in atlas.machines()}
    own = builds.get(place.machine, [])
    return place.machine if all(own) else max(builds, key=lambda machine: sum(builds[machine]))


def _on_record(place: Place, atlas: Atlas) -> str:
    """The machine, or the one whose record goes further back where the torch is before its own."""
    if place.present is None or place.present.installed or place.machine not in atlas.machines():
        return place.machine
    own = order_key(place.present.release)
    first = {m: order_key(atlas.releases(m)[0]) for m in atlas.machines() if atlas.releases(m)}
    oldest = min(first, key=lambda machine: first[machine])
    return oldest if first[oldest] <= own < first[place.machine] else place.machine


def _by_twin(
    question: Question, provider: str | None, place: Place, tables: Tables
) -> Judgement | None:
    """A name of torch for ROCm, unless the torch in question is known to be none."""
    if provider is not None or tables.ages is None or not _could_be_rocm(place):
        return None
    from fa_forensics.why.torch_names.hip_twin import judge_by_twin

    return judge_by_twin(question, place, tables.ages)


def _judge(symbol: SymbolText, question: Question, provider: str | None, place: Place) -> Judgement:
    history = question.history
    if provider is not None:
        return judge_present(question, place, provider)
    if question.owner in _NO_TABLE and not _could_be_rocm(place):
        return Judgement(
            "rocm", "FA204", UNKNOWN,
            f"It belongs to {title_of(question.owner)}: the file was built for ROCm, and "
            f"{place.here} is no ROCm build.",
        )  # fmt: skip
    if question.owner in _NO_TABLE and place.told is not None:
        return Judgement(
            "rocm", "FA204", UNKNOWN,
            f"It belongs to {title_of(question.owner)}: the file was built for ROCm. The torch "
            "that is loaded is no ROCm build, or one of another release; no table holds those.",
            ("The first command shows which torch is loaded. From torch "
             "2.11 on ROCm builds have CUDA's names (c10::cuda) and none of these.",), "medium",
        )  # fmt: skip
    if symbol.name is None and not question.name and not could_be_spelt(symbol):
        return Judgement(
            "symbol-drift", "FA201", UNKNOWN,
            "A readable name of this sort (a template, an operator, a name of std) can be spelt in "
            "many ways and was not looked up; paste the mangled name, which starts with _Z.",
            (), "low",
        )  # fmt: skip
    if history is None and not place.looked(question.owner):
        return Judgement(
            "symbol-drift", "FA201", UNKNOWN,
            f"It belongs to {title_of(question.owner)}; who exports it could not be looked up "
            "here.", (), "medium",
        )  # fmt: skip
    judgement = judge_missing(question, place)
    if symbol.name is None and not question.name:
        # It may only be written otherwise than the demangler does.
        return replace(judgement, confidence="medium")
    return judgement


def _could_be_rocm(place: Place) -> bool:
    """Whether the torch in question is built for ROCm, or known by its bare number alone."""
    if place.requested is not None:
        return place.requested.request.cuda is None
    if place.present is not None and not place.present.installed:  # a version in a text
        return not place.present.version.partition("+")[2].startswith(("cu", "cpu"))
    return place.present is None or _is_rocm(place)


def _is_rocm(place: Place) -> bool:
    torch = place.environment.torch if place.environment and place.requested is None else None
    return torch is not None and torch.hip is not None


def _exported_by(history: History | None, provider: str | None, place: Place) -> tuple[str, ...]:
    if history is not None:
        return history.releases
    here = provider is not None and place.present is not None
    return (place.present.release,) if here and place.present else ()


def _overloads(question: Question, place: Place, whole: bool) -> tuple[Overload, ...]:
    """The other signatures: the function's own line in its order; with ``whole`` all others too."""
    history, present = question.history, place.present
    if history is None:
        release = (present.release,) if present else ()
        return tuple(
            Overload(n.symbol, n.demangled, release)
            for n in question.near
            if n.relation != SAME_NAME and (whole or n.relation == OTHER_FLAVOUR)
        )
    rows: list[Overload] = []
    for form in _most_telling_first(history, whole):
        rows += _rows_of(form, change_words(history, form), question, history)
    if history.moved is not None:
        moved = history.moved
        interval = history.interval(moved.releases)
        rows.append(Overload(moved.symbol, moved.demangled, moved.releases, interval))
    known = {row.demangled for row in rows}
    for near in question.near:
        if near.relation != SAME_NAME and whole and near.demangled not in known:
            # Only this very torch has it: it is no build that the table knows.
            rows.append(Overload(near.symbol, near.demangled, ()))
    return tuple(rows)


def _most_telling_first(history: History, whole: bool) -> Sequence[Form]:
    """The name's own twin, the signatures before and after it in time, then all others."""
    own = [f for f in history.forms if any(n.symbol == history.symbol for n in f.symbols)]
    line = own + [form for form in history.line if form not in own]
    return line + [form for form in history.forms if whole and form not in line]


def _rows_of(form: Form, change: str, question: Question, history: History) -> list[Overload]:
    asked, text = question.name, question.demangled
    return [
        Overload(
            symbol=named.symbol,
            demangled=named.demangled,
            exported_by=named.releases,
            interval=history.interval(named.releases),
            change=change,
        )
        for named in form.symbols
        # C1 and C2 of one constructor read alike.
        if named.symbol != asked and named.releases and not same_text(named.demangled, text)
    ]


def _of_told_release(
    place: Place, history: History, present: Present, needed_by: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which torch is loaded, and the text's own, which has the name as later ones have not."""
    commands = [which_torch(place)]
    if present.published and (history.alive[-1] != history.known[-1] or history.gap):
        commands.append(install(place, f"torch=={present.release}"))
    notes = numbered_as_torch(needed_by)
    if not history.long_there and not notes:
        notes = (_FOR_THE_LOADED,)
    return (*commands, inspect_command(place, needed_by)), notes


#: Said where the text names another torch than the one that is loaded.
_FOR_THE_LOADED = (
    "A build of the extension for the torch that the first command prints is the other way out."
)


_IN_SOURCE = "The second command builds it again, in the directory of its source."


def _help(
    judgement: Judgement,
    question: Question,
    provider: str | None,
    place: Place,
    tables: Tables,
    needed_by: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    history, present = question.history, place.present
    look = inspect_command(place, needed_by)
    if judgement.kind == "import-order" and place.told is not None:
        return not_linked(place, needed_by), ()
    if place.told is not None and judgement.kind == "rocm":
        # No index but torch's own has torch for ROCm, or what was compiled for it.
        from fa_forensics.why.ways.trees import compiled_at_use

        if (own := compiled_at_use(place, needed_by)) is not None:
            return (which_torch(place), own[0], look), (own[1],)
        again = "rm -rf build && python -m pip install --no-build-isolation --no-deps ."
        return (which_torch(place), again, look), (_IN_SOURCE,)
    if place.told is not None and present is None:
        return commands_by_history(place, history, needed_by, judgement.direction, question.since)
    if present is None:
        # The file's other names are not known: with another release than its own it has the
        # same trouble, so that no release is named where none is there to be near to.
        symbol = shlex.quote(question.name or question.demangled)
        return (f"fa-forensics why --python /path/to/env/bin/python {symbol}",), ()
    if judgement.kind == "wrong-torch":
        if place.told is not None and judgement.direction == OLDER:
            built = rebuild(place, needed_by, OLDER)
            return (which_torch(place), *(built[:1] if built else ()), look), ()
        if place.told is not None and judgement.direction == "none" and history is not None:
            return _of_told_release(place, history, present, needed_by)
        if provider is not None or judgement.direction == "none":
            return (which_torch(place), look), ()
        release = present.release
        if history is not None and tables.ages is not None and release not in history.releases:
            release = torch_with_it(place, history, tables.ages)[0] or release
        return (reinstall_torch(place, release), look), ()
    if history is None or tables.ages is None:
        return (look,), ()
    if judgement.direction != "other-flavour" and present.release in history.hidden:
        from fa_forensics.why.ways.hidden import before_or_behind, has_its_own_release

        if not has_its_own_release(needed_by):
            return before_or_behind(place, history, needed_by)
    helped = torch_commands(place, history, tables.ages, needed_by, judgement.direction)
    return without_a_build(helped, judgement.direction, present)
