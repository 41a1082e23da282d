"""The answer for a name of a CUDA library: first version that has it, and the one that is here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.atlas.builds import interval_text, release_key
from fa_forensics.atlas.libraries import LibraryRelease
from fa_forensics.facts.cuda_names import cuda_name_gone, is_in_every
from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.report_why import Answer
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN, Judgement
from fa_forensics.why.nvidia.by_hand import preload
from fa_forensics.why.nvidia.cuda_age import (
    OF_NVCC,
    PLAIN_NAME,
    gone_name,
    interval_since,
)
from fa_forensics.why.nvidia.cuda_copy import another_copy, not_linked, older_copy
from fa_forensics.why.nvidia.cuda_cure import (
    newer_wheel,
    of_the_wheel,
    same_wheel,
    torches_with,
    usual_major,
    wheel_command,
)
from fa_forensics.why.nvidia.cuda_origin import (
    CONDA_LIST,
    EITHER,
    NO_TOOLKIT,
    OLDER_THAN_THAT,
    THIS_COPY,
    THIS_COPY_LAST,
    asked_of,
    foreign_row,
    inner_name,
    inner_of,
    is_the_library,
    of_another_package,
    one_file_for_two,
    separate_commands,
    shared_file,
    shared_note,
    short_name,
    this_copy,
    with_origin,
)
from fa_forensics.why.nvidia.never_lacked import (
    NO_GENUINE,
    OF_STUBS,
    is_inner_of_conda,
    is_stub,
    no_release_lacks,
    of_a_stub,
    stand_in,
)
from fa_forensics.why.nvidia.own_commands import of_its_cause
from fa_forensics.why.nvidia.places import in_conda, outside_wheels
from fa_forensics.why.nvidia.wheels import (
    TOLD,
    CudaHistory,
    Wheel,
    asked_for,
    cuda_major,
    interval_words,
    library_histories,
    wheel_here,
)
from fa_forensics.why.other_names.other import another_major, provided
from fa_forensics.why.place import Place, other_soname
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.commands import (
    inspect_command,
    install,
    list_wheels,
    needed_libraries,
    without_path,
)

KIND, CODE = "versioned-symbol", "FA204"


def cuda_answer(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: str | None,
    place: Place,
    tables: Tables,
    needed_by: Sequence[str],
) -> Answer:
    """Judge a name that a CUDA library owns."""
    table = tables.libraries
    if provider is not None and not asked_of(symbol, provider):
        provider = None
    histories = [] if table is None else library_histories(symbol, name, owner, place, table)
    history = next((h for h in histories if h.having), histories[0] if histories else None)
    wheel = None if history is None else wheel_here(history, place, tables)
    loaded = place.loaded_of(owner)
    judgement = _judge(symbol, name, owner, provider, place, history, wheel, loaded, needed_by)
    shared: tuple[Wheel, ...] = ()
    if provider is None and history is not None and judgement.code == CODE:
        shared = one_file_for_two(history, place, asked_for(history, place, tables))
        older = judgement.direction == NEWER and not {PLAIN_NAME, OF_NVCC} & set(judgement.notes)
        if shared:
            judgement = shared_file(history, shared)
        elif older and not loaded and (wheel is None or place.told):
            judgement = with_origin(judgement, history, needed_by, wheel is None)
            if wheel is not None and history.has(wheel):
                judgement = replace(judgement, notes=(*judgement.notes, *shared_note(history)))
    foreign = foreign_row(needed_by)
    helped = _of_torch(provider, judgement, foreign)
    torches = torches_with(history, tables, place) if helped else ()
    inner = provider is None and name.startswith("_Z")
    linking = provider is None and owner == "nvJitLink" and judgement.code == CODE and not shared
    if foreign is not None and history is not None and history.having:
        judgement = of_another_package(judgement, foreign, history)
    notes = _notes(judgement, owner, inner, _two_sources(wheel, place) if linking else "")
    notes += _bringing(torches, tables, place)
    asked = symbol.version or ""
    usual = usual_major(torches, tables, place)
    helps = _help(judgement, place, history, wheel, torches, needed_by, asked, usual)
    if not shared and any("pip" in text and " install " in text and ">=" in text for text in helps):
        notes += of_the_wheel(place, history, wheel, needed_by, helps, usual)
    if shared and history is not None:
        helps = (*separate_commands(place, shared, history), *helps[-1:])
    return Answer(
        kind=judgement.kind,
        code=judgement.code,
        symbol=name,
        demangled=symbol.demangled,
        owner=owner,
        provider=provider,
        cause=judgement.cause,
        direction=judgement.direction,
        confidence=judgement.confidence,
        exported_by=_having(histories),
        interval=interval_since(owner, name, interval_words(histories)),
        help=helps,
        notes=tuple(notes),
        releases_looked_up=table is not None,
    )


def _having(histories: Sequence[CudaHistory]) -> tuple[str, ...]:
    """The wheels' versions that have the name."""
    rows = (row for history in histories for row in history.having)
    return tuple(dict.fromkeys(f"{row.distribution} {row.version}" for row in rows))


def _bringing(torches: Sequence[str], tables: Tables, place: Place) -> list[str]:
    """Which torch releases bring a library that has the name."""
    if not torches or tables.atlas is None:
        return []
    span = interval_text(torches, tables.atlas.releases(place.machine))
    if len(torches) == 1:
        return [f"Of the torches on the package index {span} brings a version that has it."]
    return [f"Of the torches on the package index {span} bring a version that has it."]


def _of_torch(provider: str | None, judgement: Judgement, foreign: object) -> bool:
    """Whether another torch would bring what is missing."""
    if provider is not None or judgement.code != CODE or foreign is not None:
        return False
    own_cause = {EITHER, THIS_COPY, THIS_COPY_LAST, PLAIN_NAME, OF_NVCC, NO_GENUINE, OF_STUBS}
    return not own_cause & set(judgement.notes)


def _two_sources(wheel: Wheel | None, place: Place) -> str:
    """Where an older nvJitLink comes from, and whether torch itself ties it to one version."""
    requested = place.requested
    if wheel is None or requested is None or wheel.distribution not in requested.build.requires:
        return (
            "An older copy comes from a toolkit's directory on LD_LIBRARY_PATH, or from pip: "
            "nothing ties nvidia-cusparse and nvidia-nvjitlink together, so compare their versions."
        )
    return (
        "An older copy comes from a toolkit's directory on LD_LIBRARY_PATH, or from pip: torch "
        f"itself asks for {wheel.distribution}=={wheel.version}, and python -m pip check names "
        "another version where one is installed."
    )


def _notes(judgement: Judgement, owner: str, inner: bool, sources: str) -> list[str]:
    """The remarks of a judgement, and those on inner names and on nvJitLink's two sources."""
    notes = [*judgement.notes]
    if inner:
        notes.append(
            f"Such inner names are meant for the libraries of one and the same {title_of(owner)}: "
            "two copies of it are mixed, and the one that was added is to be removed."
        )
    return [*notes, sources] if sources else notes


def _judge(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: str | None,
    place: Place,
    history: CudaHistory | None,
    wheel: Wheel | None,
    loaded: Sequence[LoadedObject],
    needed_by: Sequence[str],
) -> Judgement:
    title = title_of(owner)
    if provider is not None:
        return replace(provided(KIND, CODE, provider), notes=(older_copy(owner), NO_TOOLKIT))
    other_major = other_soname(symbol, loaded)
    if other_major is not None:
        return another_major(other_major, symbol.version or "", place)
    gone = cuda_name_gone(owner, name)
    if gone is not None and (history is None or not history.having):
        return gone_name(owner, name, gone, place)
    inner = history is not None and not history.having and inner_of(symbol, needed_by)
    if history is not None and (inner or is_inner_of_conda(symbol, needed_by)):
        return inner_name(history, needed_by[0])
    if history is None or not history.having:
        return _without_history(title, place, loaded, history)
    having = _of_this_cuda(history, wheel, place)
    first, last = having[0], having[-1]
    itself = is_the_library(symbol, history, needed_by)
    if provider is None and not loaded and is_stub(needed_by):
        return of_a_stub(owner, history, needed_by)
    if not loaded and _names(symbol, history) and no_release_lacks(owner, name, history):
        return stand_in(owner, history, place)
    if not loaded and not symbol.version and not itself and is_in_every(owner, name):
        return not_linked(owner, name, history, first, None, place)
    if wheel is None and not loaded and _in_all(history, first.distribution):
        if itself:
            return this_copy(history, first, needed_by[0])
        return not_linked(owner, name, history, first, symbol.version, place)
    since = f"{history.soname} has it since {first.distribution} {first.version}"
    if wheel is None and loaded:
        cause = f"{since}; {loaded[0].path} (found by {loaded[0].found_by}) is older than that."
        return Judgement(KIND, CODE, NEWER, cause)
    if wheel is None:
        here = place.present is not None and place.told is None
        where = f"; none is loaded with {place.here}" if here else ""
        cause = f"{since}{where}{OLDER_THAN_THAT}"
        dropped = last != [r for r in history.known if r.distribution == last.distribution][-1]
        if dropped:
            cause = f"{since}, up to {last.distribution} {last.version}: it was dropped then."
        return Judgement(KIND, CODE, UNKNOWN if dropped else NEWER, cause)
    if history.has(wheel):
        return another_copy(owner, history, wheel, since, loaded, place)
    direction = _direction(history, wheel)
    words = {
        NEWER: "older than that: the file was built for a newer one",
        OLDER: "newer than the last that has it: the file was built for an older one",
    }.get(direction, "one that lacks it")
    cause = f"{since}; {wheel.text} is {words}."
    return Judgement(KIND, CODE, direction, cause)


def _names(symbol: SymbolText, history: CudaHistory) -> bool:
    """Whether a file asks for the name in this very library, by its soname or by its one tag."""
    return bool(symbol.version) and symbol.version in (history.soname, "NVSHMEM")


def _in_all(history: CudaHistory, distribution: str) -> bool:
    """Whether every version on record of one line of wheels has the name."""
    known = [row for row in history.known if row.distribution == distribution]
    return len(known) > 1 and history.of(distribution) == known


def _of_this_cuda(
    history: CudaHistory, wheel: Wheel | None, place: Place
) -> Sequence[LibraryRelease]:
    """The versions with the name in one line of wheels: the one here, else the newest."""
    lines = list(dict.fromkeys(row.distribution for row in history.having))
    if wheel is not None and wheel.distribution in lines:
        return history.of(wheel.distribution)
    major = cuda_major(place) or "12"
    older = lines[0] if int(major) < 11 else lines[-1]
    line = next((name for name in lines if name.endswith(f"-cu{major}")), older)
    return history.of(line)


def _direction(history: CudaHistory, wheel: Wheel) -> str:
    own = release_key(wheel.version)
    having = history.of(wheel.distribution)
    if not having:
        return UNKNOWN
    if own < release_key(having[0].version):
        return NEWER
    return OLDER if own > release_key(having[-1].version) else UNKNOWN


def _without_history(
    title: str, place: Place, loaded: Sequence[LoadedObject], history: CudaHistory | None
) -> Judgement:
    if history is not None:
        first, last = history.known[0], history.known[-1]
        cause = (
            f"No {history.soname} on record exports it ({first.distribution} {first.version} to "
            f"{last.distribution} {last.version})."
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, (), "medium")
    if loaded:
        cause = f"{title} is here ({loaded[0].path}) but does not export it: it is another release."
        return Judgement(KIND, CODE, UNKNOWN, cause)
    if place.told is not None:
        cause = f"It belongs to {title}, which is not loaded there, or is another release."
        return Judgement(KIND, CODE, UNKNOWN, cause, (), "medium")
    cause = f"It belongs to {title}, which is not loaded with {place.here}."
    return Judgement(KIND, CODE, UNKNOWN, cause, (), "high" if place.linker else "medium")


def _help(
    judgement: Judgement,
    place: Place,
    history: CudaHistory | None,
    wheel: Wheel | None,
    torches: Sequence[str],
    needed_by: Sequence[str],
    version: str,
    usual: str,
) -> tuple[str, ...]:
    look = inspect_command(place, needed_by)
    special = of_its_cause(judgement, place, history, needed_by, version)
    if special is not None:
        return (*special, look)
    if history is None or not history.having or judgement.kind != KIND:
        return (look,)
    if judgement.code == "FA210" or EITHER in judgement.notes:
        by_hand = () if EITHER in judgement.notes else preload(place, history, needed_by)
        return (needed_libraries(needed_by), *by_hand, look)
    if wheel is not None and history.has(wheel):
        both = "nvjitlink|cusparse" if "nvJitLink" in history.soname else short_name(history)
        listed = (list_wheels(place, both),) if place.told is not None else ()
        again = same_wheel(place, wheel, history, needed_by)
        return (without_path(place, needed_by), *listed, *again, look)
    commands = list(wheel_command(place, history, wheel))
    outside = bool(needed_by) and outside_wheels(needed_by[0])
    itself = outside and owner_of_library(needed_by[0].rsplit("/", 1)[-1]) == owner_of_library(
        history.soname
    )  # the old copy shows where it is: no wheel replaces that
    again = () if itself else newer_wheel(place, history, wheel, judgement.direction, usual)
    if wheel is None and "nvJitLink" in history.soname:
        commands += [
            without_path(place, needed_by),
            list_wheels(place, "nvjitlink|cusparse"),
            *again,
        ]
        return (*commands, look)
    if wheel is not None and wheel.how == TOLD and not commands:
        commands.append(without_path(place, needed_by))
    elif place.present is not None and torches and not commands:
        own = order_key(place.present.release)
        nearest = min(
            torches, key=lambda r: (order_key(r) < own, abs(torches.index(r) - _at(own, torches)))
        )
        commands.append(install(place, f"torch=={nearest}"))
    elif place.present is None:
        commands.append(without_path(place, needed_by))
    if wheel is None or place.told is not None:
        commands.append(list_wheels(place, short_name(history)))
    if judgement.direction == NEWER and needed_by and in_conda(needed_by[0]):
        commands += [CONDA_LIST]
    return (*dict.fromkeys((*commands, *again)), look)


def _at(own: tuple[int, int, int, bool], releases: Sequence[str]) -> int:
    return next((i for i, r in enumerate(releases) if order_key(r) >= own), len(releases))
