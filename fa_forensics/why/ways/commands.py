"""What to type: for each way out one command, and what it does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.atlas.builds import Build, intervals
from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.owner import STABLE, owner_of
from fa_forensics.why.place import Place
from fa_forensics.why.shell import import_of, quoted
from fa_forensics.why.torch_names.history import INSIDE, History, Present, order_key
from fa_forensics.why.ways.builds import (
    again_from_source,
    has_official_wheels,
    is_wheel_alone,
    numbered_as_torch,
    pip_of,
    python_of,
    rebuild,
)

#: Says which torch an interpreter loads, without asking any index.
_WHICH_TORCH = "-c 'import torch; print(torch.__version__, torch.__path__[0])'"


def inspect_command(place: Place, needed_by: Sequence[str]) -> str:
    """Look at the file itself, which knows more than one of its symbols does."""
    whole = bool(needed_by) and "..." not in needed_by[0] and "/" in needed_by[0]
    file = quoted(needed_by[0]) if whole else "/path/to/the/failing.so"
    python = f"--python {shlex.quote(place.python)} " if place.python else ""
    return f"fa-forensics inspect {python}{file}"


def needed_libraries(needed_by: Sequence[str], only: str = "") -> str:
    """The libraries that a file names, or with ``only`` the copy of one that it would load."""
    whole = bool(needed_by) and "..." not in needed_by[0] and "/" in needed_by[0]
    file = quoted(needed_by[0]) if whole else "/path/to/the/failing.so"
    return f"ldd {file} | grep {only}" if only else f"readelf -d {file} | grep NEEDED"


def which_torch(place: Place, flavour: bool = False) -> str:
    """Ask the interpreter which torch it loads, with ``flavour`` in which std::string flavour."""
    more = ", torch.compiled_with_cxx11_abi()" if flavour else ""
    return f"{python_of(place)} {_WHICH_TORCH}".replace("__path__[0]", f"__path__[0]{more}")


def without_path(place: Place, needed_by: Sequence[str] = ()) -> str:
    """Import torch without LD_LIBRARY_PATH: whether it works shows where the copy comes from.

    A file of another package that fails is imported too, by ``needed_by``.
    """
    more = import_of(needed_by[0]) if needed_by else ""
    return f"env -u LD_LIBRARY_PATH {python_of(place)} -c 'import torch{more}'"


def list_wheels(place: Place, pattern: str) -> str:
    """The versions of installed wheels whose names match."""
    return f"{pip_of(place)} list | grep -iE '{pattern}'"


def reinstall_torch(place: Place, release: str) -> str:
    """Put back the torch of a release, whole."""
    return f'{pip_of(place)} install --force-reinstall --no-cache-dir "torch=={release}"'


def install(place: Place, requirement: str) -> str:
    """Install one requirement."""
    return f'{pip_of(place)} install "{requirement}"'


def commands_by_history(
    place: Place,
    history: History | None,
    needed_by: Sequence[str],
    direction: str,
    since: str = "",
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for another machine whose torch is not told.

    No torch before ``since`` is offered.
    """
    flavour = direction == "other-flavour"
    hidden = not flavour and history is not None and bool(history.hidden)
    built = None if hidden else rebuild(place, needed_by, direction)
    commands = [which_torch(place, flavour)]
    listed = has_official_wheels(needed_by)
    if listed:
        commands.append("fa-forensics wheels")
    if built is not None:
        commands.append(built[0])
    elif flavour and (again := again_from_source(place, needed_by)) is not None:
        commands.append(again)
    releases = _installable(place, history, since)
    still = history is not None and history.releases[-1:] == history.known[-1:]
    newer = direction == "file-newer" or still
    every = history is None or not releases or (still and direction == "unknown" and not hidden)
    remarks: tuple[str, ...] = ()
    if history is not None and not every:
        wanted = _from_on(releases, history, place) if newer else f"=={releases[-1]}"
        commands.append(install(place, f"torch{wanted}"))
        release = releases[0] if newer else releases[-1]
        remarks = _said_of_torch(history, releases, release, newer, flavour)
    if built is not None and not every and not flavour:
        remarks = (
            "Another build of the extension or another torch: one of the two is enough.",
            *remarks,
        )
    if built is not None:
        from fa_forensics.why.ways.trees import next_start, where_to_type

        remarks = (*remarks, *where_to_type(built[0], needed_by), *next_start(needed_by))
        if flavour and " --upgrade --no-cache-dir torch " in built[0]:
            remarks = (BOTH_OF_ONE, *remarks)
    if listed:
        remarks = (*remarks, OFFICIAL)
    numbered = numbered_as_torch(needed_by)
    had = history.releases if history is not None and not (numbered or hidden) else ()
    lacked = bool(had) and history is not None and had != history.known
    if built is None and not flavour and lacked and not is_wheel_alone(needed_by):
        again = again_from_source(place, needed_by)
        remarks = (*remarks, _COMPILED_HERE, *((_IN_ITS_SOURCE,) if again else ()))
        commands += [again] if again else []
    if built is None and flavour:
        remarks = (*remarks, FLAVOUR_HERE, *_by_name(commands))
    if history is not None and hidden:
        from fa_forensics.why.ways.hidden import not_on_these

        remarks = (*remarks, not_on_these(history))
    return (*commands, inspect_command(place, needed_by)), (*numbered, *remarks)


#: Said where flash-attn's releases may have the wheel.
OFFICIAL = (
    "fa-forensics wheels names flash-attn's own wheel for the torch, CUDA, Python and C++ flavour "
    "of an environment, if its releases have one: seconds in place of a build."
)

#: Said where no package is known that the file is of.
_COMPILED_HERE = (
    "A file that was compiled on that machine can be compiled again instead, for the torch that "
    "runs; what an earlier build left goes first: build/ of setup.py, and for "
    "torch.utils.cpp_extension.load its directory in ~/.cache/torch_extensions."
)
#: Said of the command that compiles a package nothing is known of.
_IN_ITS_SOURCE = (
    "The command that begins with rm -rf build is for its source directory; where pip installed it "
    "by a name, that name stands in place of the dot, and nothing is removed before."
)


def _by_name(commands: Sequence[str]) -> tuple[str, ...]:
    """That a build by pip in a source directory is meant, where one is typed."""
    built = any(text.startswith("rm -rf build") and text.endswith(" .") for text in commands)
    return (_IN_ITS_SOURCE,) if built else ()


#: The same, where the std::string flavour is what differs.
FLAVOUR_HERE = (
    "Compiled on that machine: again for the torch that runs, from an empty directory (build/ and "
    "the old .so removed), with pip --no-build-isolation, and with no -D_GLIBCXX_USE_CXX11_ABI of "
    "its own: torch.utils.cpp_extension and CMake's TORCH_CXX_FLAGS take torch's, which is =1 "
    "where torch.compiled_with_cxx11_abi() says True. A wheel: the package's own build for this "
    "torch, or the torch that the package names (python -m pip check)."
)


def _from_on(releases: Sequence[str], history: History, place: Place) -> str:
    """What pip is asked for: from the first release on, up to where the name ends again.

    The file is no newer than the report: none of a later time than that is asked for.
    """
    end = _end(releases, history)
    if place.told is not None and place.told.last and not _is_stable(history):
        own = order_key(releases[-1])[:2]
        later = (r for r in history.known if order_key(r)[:2] > own)
        end = next(later, end)
    return f">={releases[0]}" + (f",<{end}" if end else "")


def _end(releases: Sequence[str], history: History) -> str | None:
    """The first release after some that lacks the name again; None where all later ones have it."""
    last = history.known.index(releases[-1])
    return next((r for r in history.known[last + 1 :] if r not in history.releases), None)


def _said_of_torch(
    history: History, releases: Sequence[str], release: str, newer: bool, flavour: bool
) -> tuple[str, ...]:
    """What the installed torch is sure to have, and what not."""
    if flavour:
        return (_of_its_flavour(release),)
    if not newer:
        return ()
    if _is_stable(history):
        return (
            f"The name is of torch's stable C interface, which only grows: every torch since "
            f"{release} has it.",
        )
    if not _end(releases, history):
        return (
            f"Every torch since {release} has this name; for the file's other names it has to be "
            "near the one it was built on (fa-forensics inspect tells that of a file for Linux).",
        )
    have = "has" if len(releases) == 1 else "have"
    return (
        f"torch {history.interval(releases)} {have} this name; for the file's other names it has "
        "to be near the one it was built on (fa-forensics inspect tells that of a file for "
        "Linux).",
    )


def _of_its_flavour(release: str) -> str:
    return (
        f"torch {release} has the file's flavour; whether it has its other names too, "
        f"fa-forensics inspect --torch {release} says without installing it."
    )


def _is_stable(history: History) -> bool:
    """Whether a name is of torch's stable C interface: whatever is newer has all of it."""
    return owner_of(history.symbol, None, history.symbol) == STABLE


def _installable(place: Place, history: History | None, since: str) -> tuple[str, ...]:
    """The releases that have the name and wheels for the text's Python, of its last run of them."""
    if history is None or not history.releases or history.releases == history.known:
        return ()
    python = place.told.python if place.told else None
    first = intervals(history.releases, history.known)[-1][0]
    run = history.releases[history.releases.index(first) :]
    pythons = history.pythons
    served = [r for r in run if python is None or not pythons.get(r) or python in pythons[r]]
    last = place.told.last if place.told else ""
    return tuple(
        r
        for r in served
        if (not since or order_key(r) >= order_key(since))
        and (not last or order_key(r) <= order_key(last))
    )


def torch_with_it(
    place: Place, history: History, atlas: Atlas
) -> tuple[str | None, tuple[str, ...]]:
    """(the release nearest to the present one that exports the name, remarks).

    A release without a wheel for the environment's Python is passed over, and that is said.
    """
    ranked = _by_distance(history.releases, history.known, place.present)
    python = place.told.python if place.told else None
    python = place.environment.version_short if place.environment else python
    skipped: list[str] = []
    for release in ranked:
        build = atlas.build(release, history.machine)
        if build is None or not _serves(build, python):
            skipped.append(release)
            continue
        return release, _skipped_words(skipped, python, history)
    return None, _skipped_words(skipped, python, history)


def _by_distance(
    releases: Sequence[str], known: Sequence[str], present: Present | None
) -> list[str]:
    """The nearest release first; the newest where no torch is there to be near to."""
    if present is None:
        return list(reversed(releases))
    own = order_key(present.release)
    at = next((i for i, release in enumerate(known) if order_key(release) >= own), len(known))
    return sorted(releases, key=lambda release: abs(known.index(release) - at))


def _serves(build: Build, python: str | None) -> bool:
    return python is None or not build.pythons or python in build.pythons


def _skipped_words(skipped: Sequence[str], python: str | None, history: History) -> tuple[str, ...]:
    if not skipped:
        return ()
    which = history.interval(skipped)
    have = "has" if len(skipped) == 1 else "have"
    return (f"torch {which} {have} no wheel for Python {python}.",)


def torch_commands(
    place: Place, history: History, atlas: Atlas, needed_by: Sequence[str], direction: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for a torch-owned name that is missing: the extension, then torch.

    The extension comes first: other packages may need the torch that is here. Where the
    ``direction`` is the other flavour, the torch is one of the file's flavour, and whether
    that has the file's other names too is said to be open.
    """
    flavour = direction == "other-flavour"
    remarks: tuple[str, ...] = ()
    asked = flavour and place.told is not None and not place.told.flavour
    commands = [which_torch(place, flavour=True)] if asked else []
    built = rebuild(place, needed_by, direction)
    if built is not None and flavour and _another_build(place, history):
        # That release of torch has the file's flavour: the package need not be a newer one.
        built = None if " --upgrade " in built[0] else built
    again = again_from_source(place, needed_by) if built is None else built[0]
    commands += [again] if again and (built is not None or flavour) else []
    release = None
    own_build = place.told is not None and place.present and not _from_an_index(place.present)
    if not own_build and _another_release_helps(history, place.present, flavour):
        release, remarks = torch_with_it(place, history, atlas)
    if release is not None:
        only = ">=" if direction == "file-newer" and _is_stable(history) else "=="
        commands.append(install(place, f"torch{only}{release}"))
    elif flavour and _another_build(place, history):
        together = None if built is None else with_its_torch(place, built[0])
        if built is not None and together is not None:
            commands[commands.index(built[0])] = together
            return (*commands, inspect_command(place, needed_by)), (*remarks, BOTH_OF_ONE)
        if built is None or (place.told and place.told.flavour):
            commands.append(reinstall_torch(place, place.present.release if place.present else ""))
        if built is None:
            remarks = (*remarks, THIS_FLAVOUR)
    if built is not None and release is not None:
        from fa_forensics.why.ways.trees import either_command

        remarks = (either_command(built[1], release if flavour else ""), *remarks)
    elif built is not None:
        remarks = (f"The command {built[1]}.", *remarks)
    elif release is not None and flavour:
        remarks = (_of_its_flavour(release), *remarks)
    elif release is not None and place.present is not None:
        remarks = (*_for_all_others(place, needed_by, place.present.text), *remarks)
    if built is not None:
        from fa_forensics.why.ways.trees import where_to_type

        remarks = (*remarks, *where_to_type(built[0], needed_by))
    if release is not None and place.told is not None and direction == "file-newer":
        remarks = (*remarks, *_said_of_torch(history, history.releases, release, True, flavour))
    if built is None and again and not flavour:
        commands, remarks = [*commands, again], (*remarks, _IN_ITS_SOURCE)
    if built is None and flavour:
        remarks = (*remarks, FLAVOUR_HERE, *_by_name(commands))
    return (*commands, inspect_command(place, needed_by)), remarks


def _for_all_others(place: Place, needed_by: Sequence[str], there: str) -> tuple[str, ...]:
    """Said of a command for torch, where no package is known that could be built again."""
    said = (
        "Installing another torch changes it for all other packages too; a build of the "
        f"extension for {there} is the other way out."
    )
    here = place.told is not None and not is_wheel_alone(needed_by)
    return (said, _COMPILED_HERE) if here else (said,)


def _from_an_index(present: Present) -> bool:
    """Whether pip can take a torch and another in its place: a release, or a nightly's wheel."""
    return present.published or ".dev" in present.version


def _another_build(place: Place, history: History) -> bool:
    """Whether the text's torch is a release in a flavour that its wheel on the index has not."""
    present = place.present
    if present is None or not present.published or present.release not in history.releases:
        return False
    return place.told is not None


def with_its_torch(place: Place, command: str) -> str | None:
    """A package that belongs to a torch, and that torch, both as the index has them.

    None for a command that compiles: its result has the flavour of whatever torch is there.
    """
    alone = " install --force-reinstall --no-deps --no-cache-dir "
    start, found, wanted = command.partition(alone)
    if not found or "==" not in wanted or place.present is None:
        return None
    torch = f'"torch=={place.present.release}"'
    return f"{start} install --force-reinstall --no-cache-dir {torch} {wanted}"


#: Said where a package and its torch are taken from one place.
BOTH_OF_ONE = (
    "The command takes both from the package index, whose builds are of one flavour. The same file "
    "again would not load with a torch of conda's, of a distribution or of one's own: there the "
    "package comes from the same channel, or is compiled for that torch."
)
THIS_FLAVOUR = (
    "The package index has that release of torch in the file's flavour: the command puts it in "
    "place of another build. In a container whose torch is its own, and with conda's or a "
    "distribution's torch, the file is compiled for that instead, or taken from the same channel."
)


def _another_release_helps(history: History, present: Present | None, flavour: bool) -> bool:
    """Whether the name comes with another release, not with another build of this one."""
    if present is None:
        return True
    if flavour:
        return present.release not in history.releases
    return ".dev" in present.version or history.place(present) != INSIDE
