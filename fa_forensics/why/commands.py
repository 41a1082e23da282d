"""What to type: for each way out one command, and what it does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from fa_forensics.atlas.builds import Build, intervals
from fa_forensics.atlas.store import Atlas
from fa_forensics.why.history import INSIDE, History, Present, order_key
from fa_forensics.why.place import Place

#: Says which torch an interpreter loads, without asking any index.
_WHICH_TORCH = "-c 'import torch; print(torch.__version__, torch.__path__[0])'"


def inspect_command(place: Place, needed_by: Sequence[str]) -> str:
    """Look at the file itself, which knows more than one of its symbols does."""
    whole = bool(needed_by) and "..." not in needed_by[0] and "/" in needed_by[0]
    file = _quoted(needed_by[0]) if whole else "/path/to/the/failing.so"
    python = f"--python {shlex.quote(place.python)} " if place.python else ""
    return f"fa-forensics inspect {python}{file}"


def needed_libraries(needed_by: Sequence[str], only: str = "") -> str:
    """The libraries that a file names, or with ``only`` the copy of one that it would load."""
    whole = bool(needed_by) and "..." not in needed_by[0] and "/" in needed_by[0]
    file = _quoted(needed_by[0]) if whole else "/path/to/the/failing.so"
    return f"ldd {file} | grep {only}" if only else f"readelf -d {file} | grep NEEDED"


def which_torch(place: Place) -> str:
    """Ask the interpreter which torch it loads."""
    return f"{_python(place)} {_WHICH_TORCH}"


def without_path(place: Place) -> str:
    """Import torch without LD_LIBRARY_PATH: whether it works shows where the copy comes from."""
    return f"env -u LD_LIBRARY_PATH {_python(place)} -c 'import torch'"


def list_wheels(place: Place, pattern: str) -> str:
    """The versions of installed wheels whose names match."""
    return f"{_pip(place)} list | grep -iE '{pattern}'"


def reinstall_torch(place: Place, release: str) -> str:
    """Put back the torch of a release, whole."""
    return f'{_pip(place)} install --force-reinstall --no-cache-dir "torch=={release}"'


def install(place: Place, requirement: str) -> str:
    """Install one requirement."""
    return f'{_pip(place)} install "{requirement}"'


def rebuild(place: Place, needed_by: Sequence[str]) -> tuple[str, str] | None:
    """(command, what it does): another build of the package that has the failing file."""
    if needed_by and place.told is not None:
        return _rebuild_there(place, needed_by[0])
    if not needed_by or place.environment is None or place.present is None:
        return None
    from fa_forensics.facts.build_machine import jobs, read_build_machine
    from fa_forensics.facts.package import find_distribution
    from fa_forensics.rules.remedy import rebuild_command, rebuild_does, row_of

    found = find_distribution(needed_by[0], place.environment.site_dirs)
    if found is None:
        return None
    wheel = _official(place, found.name, found.version, place.environment.version_short)
    if wheel is not None:
        return wheel
    paired = _partner(place, found.name)
    if paired is not None:
        return paired
    row = row_of(found.name)
    bearable = jobs(read_build_machine())
    python = place.environment.python
    command = rebuild_command(python, found.name, found.version, row, bearable)
    return command, rebuild_does(found.name, row, f"torch {place.present.release}")


def _rebuild_there(place: Place, file: str) -> tuple[str, str] | None:
    """(command, what it does) for a file on another machine, by its name alone."""
    from fa_forensics.rules.remedy import rebuild_command, rebuild_does, row_of
    from fa_forensics.why.seen import package_of

    name = package_of(file)
    if name is None:
        return None
    wheel = _official(place, name, "", _python_of(file, place))
    if wheel is not None:
        return wheel
    paired = _partner(place, name)
    if paired is not None:
        return paired
    row = row_of(name)
    there = place.present.text if place.present else "the torch that is there"
    return rebuild_command("python", name, "", row), rebuild_does(name, row, there)


#: Packages whose other releases are other programs: those are not changed to fit a torch.
_NOT_EXCHANGED = ("vllm",)


def _partner(place: Place, name: str) -> tuple[str, str] | None:
    """(command, what it does) where one release of the package belongs to the torch there."""
    from fa_forensics.facts.python_api import partner_of

    if place.present is None or not place.present.published or name in _NOT_EXCHANGED:
        return None
    release = partner_of(name, place.present.release)
    if release is None:
        return None
    command = f"{_pip(place)} install --force-reinstall --no-deps --no-cache-dir {name}=={release}"
    return command, f"installs the release of {name} that belongs to torch {place.present.release}"


#: Files that pip did not build: torch's JIT cache, an egg, torch's own.
_NO_PIP = re.compile(r"torch_extensions/|\.egg/|/torch/lib/|/lib(?:torch|c10)\w*\.so")


def isolated_build(place: Place, needed_by: Sequence[str]) -> tuple[str, ...]:
    """How a file gets newer than the torch that is installed, where it may come from its source."""
    from fa_forensics.facts.python_api import has_partners
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    if not needed_by or _NO_PIP.search(needed_by[0]):
        return ()
    name = package_of(needed_by[0])
    row = row_of(name) if name else None
    if has_partners(name) or (row is not None and not row["source_build"]):
        return ()
    built = rebuild(place, needed_by)
    if built is not None and ".whl" in built[0]:
        return ()
    return (
        "Where pip compiled it from source, it took the newest torch for that and not the one "
        "that is installed: --no-build-isolation takes the installed one.",
    )


def _official(place: Place, name: str, version: str, python: str | None) -> tuple[str, str] | None:
    """(command, what it does) where the package's own releases have a wheel that fits."""
    from fa_forensics.resolve.link import glibc_of
    from fa_forensics.rules.official_wheel import Home, official_wheel, wheel_command, wheel_does

    if place.present is None:
        return None
    torch = place.environment.torch if place.environment else None
    cuda = place.requested.cuda if place.requested else torch.cuda if torch else None
    glibc = glibc_of(place.linker.process) if place.linker is not None else None
    home = Home(place.present.version, place.present.flavour, cuda, python, place.machine, glibc)
    build = official_wheel(name, version, home)
    if build is None:
        return None
    there = place.present.text
    return wheel_command(place.python or "python", build), wheel_does(build, there, glibc)


def _python_of(file: str, place: Place) -> str | None:
    """The Python of a text's machine, as it says or as the file's own tag has it."""
    tag = re.search(r"\.cpython-3(\d{1,2})-", file)
    if tag is not None:
        return f"3.{tag[1]}"
    return place.told.python if place.told else None


def commands_by_history(
    place: Place, history: History | None, needed_by: Sequence[str], direction: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for another machine whose torch is not told."""
    built = rebuild(place, needed_by)
    commands = [which_torch(place)]
    if built is not None:
        commands.append(built[0])
    releases = _installable(place, history)
    still = history is not None and history.releases[-1:] == history.known[-1:]
    newer = direction == "file-newer" or still
    every = not releases or (still and direction == "unknown")
    if not every:
        wanted = f">={releases[0]}" if newer else f"=={releases[-1]}"
        commands.append(install(place, f"torch{wanted}"))
    remarks: tuple[str, ...] = (
        "Another build of the extension or another torch: one of the two is enough.",
    )
    if not every and newer and direction != "other-flavour":
        remarks = (
            *remarks,
            f"Every torch since {releases[0]} has this name; for the file's other names it has to "
            "be near the one it was built on, which the last command tells.",
        )
    if direction == "other-flavour" and not every:
        release = wanted.lstrip(">=")
        remarks = (
            f"torch {release} has the file's flavour; whether it has its other names too, "
            f"fa-forensics inspect --torch {release} says without installing it.",
        )
    return (*commands, inspect_command(place, needed_by)), remarks if len(commands) > 2 else ()


def _installable(place: Place, history: History | None) -> tuple[str, ...]:
    """The releases that have the name and wheels for the text's Python, of its last run of them."""
    if history is None or not history.releases or history.releases == history.known:
        return ()
    python = place.told.python if place.told else None
    first = intervals(history.releases, history.known)[-1][0]
    run = history.releases[history.releases.index(first) :]
    pythons = history.pythons
    return tuple(r for r in run if python is None or not pythons.get(r) or python in pythons[r])


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
    place: Place, history: History, atlas: Atlas, needed_by: Sequence[str], flavour: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for a torch-owned name that is missing: the extension, then torch.

    The extension comes first: other packages may need the torch that is here. With
    ``flavour`` the torch is one of the file's flavour, and whether that has the file's
    other names too is said to be open.
    """
    commands: list[str] = []
    remarks: tuple[str, ...] = ()
    built = rebuild(place, needed_by)
    if built is not None:
        commands.append(built[0])
    release = None
    own_build = place.told is not None and place.present and not place.present.published
    if not own_build and _another_release_helps(history, place.present, flavour):
        release, remarks = torch_with_it(place, history, atlas)
    if release is not None:
        commands.append(install(place, f"torch=={release}"))
    if built is not None and release is not None:
        remarks = (
            f"One of the two commands is enough: the first {built[1]}; the second changes torch, "
            "for all other packages too.",
            *remarks,
        )
    elif built is not None:
        remarks = (f"The command {built[1]}.", *remarks)
    elif release is not None and flavour:
        remarks = (
            f"torch {release} has the file's flavour; whether it has its other names too, "
            f"fa-forensics inspect --torch {release} says without installing it.",
            *remarks,
        )
    elif release is not None and place.present is not None:
        remarks = (
            "Installing another torch changes it for all other packages too; a build of the "
            f"extension for {place.present.text} is the other way out.",
            *remarks,
        )
    return (*commands, inspect_command(place, needed_by)), remarks


def _another_release_helps(history: History, present: Present | None, flavour: bool) -> bool:
    """Whether the name comes with another release, not with another build of this one."""
    if present is None:
        return True
    return present.release not in history.releases if flavour else history.place(present) != INSIDE


def _quoted(path: str) -> str:
    """A path for a shell; ``~/`` stays what the shell expands."""
    return "~/" + shlex.quote(path[2:]) if path.startswith("~/") else shlex.quote(path)


def _python(place: Place) -> str:
    return shlex.quote(place.python) if place.python else "python"


def _pip(place: Place) -> str:
    return f"{_python(place)} -m pip"
