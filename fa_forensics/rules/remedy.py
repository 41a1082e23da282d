"""Commands that can be pasted: which package the file belongs to and how to replace it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from fa_forensics.facts.package import (
    build_tags,
    normalized,
    satisfies,
    torch_pin,
    torch_requirement,
)
from fa_forensics.facts.python_api import brings_torch
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_install import is_published, release_of
from fa_forensics.rules.base import Context

# What a healthy file has no use for is imported where a remedy is written.
if TYPE_CHECKING:
    from fa_forensics.facts.wheel_matrix import WheelBuild


@lru_cache(maxsize=1)
def _packages() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = read_table("packages.json")["packages"]
    return rows


def known_packages() -> Sequence[Mapping[str, object]]:
    """What is known of distributions: their modules, their import names, how they are built."""
    return _packages()


def package_row(ctx: Context) -> dict[str, object] | None:
    """What is known of the package the file belongs to, by its metadata or module name."""
    if ctx.distribution is not None:
        return row_of(ctx.distribution.name)
    for row in _packages():
        if ctx.elf.module_name in row["modules"]:  # type: ignore[operator]
            return row
    return None


def row_of(distribution: str) -> dict[str, object] | None:
    """What is known of a distribution."""
    name = normalized(distribution)
    for row in _packages():
        if normalized(str(row["distribution"])) == name:
            return row
    return None


def package_names() -> tuple[str, ...]:
    """The top-level names that the packages of the table are imported by."""
    return tuple(str(row["import"]).partition(".")[0] for row in _packages())


def module_names() -> tuple[str, ...]:
    """The names of their extension modules."""
    return tuple(str(name) for row in _packages() for name in row["modules"])  # type: ignore[attr-defined]


def distribution_name(ctx: Context) -> str | None:
    """The name to give to pip, or None when the file's package is not known."""
    if ctx.distribution is not None:
        return ctx.distribution.name
    row = package_row(ctx)
    return None if row is None else str(row["distribution"])


def built_for_torch(ctx: Context) -> tuple[str, str] | None:
    """(torch version, where that is written) when the file's own metadata names one."""
    if ctx.distribution is None:
        return None
    if normalized(ctx.distribution.name) == "torch":
        release = release_of(ctx.distribution.version)
        return release, f"it is a part of torch {ctx.distribution.version} itself"
    pin = torch_pin(ctx.distribution.requires)
    if pin is not None:
        return pin, f"{ctx.distribution.name} {ctx.distribution.version} requires torch=={pin}"
    tag = build_tags(ctx.distribution.version).torch
    if tag is not None:
        return tag, f"the version {ctx.distribution.version} names torch {tag}"
    return None


def same_minor(one: str, other: str) -> bool:
    """Whether two releases are of one minor version, as 2.4.0 and 2.4.1 are."""
    return one.split(".")[:2] == other.split(".")[:2]


def links_here(ctx: Context) -> bool:
    """Whether the torch at hand has all that the file needs, whatever release it calls itself."""
    torch = ctx.environment.torch if ctx.environment else None
    if torch is None or ctx.resolution is None:
        return False
    return not ctx.missing and not ctx.missing_libraries


def build_torch(ctx: Context) -> tuple[str, str, bool] | None:
    """(torch release, how that is known, whether its minor version is sure), or None.

    The file's own metadata says it where it names one release; else the names the file
    needs and has, by the table of releases. Metadata that the file's names rule out does
    not count.
    """
    where, facts = built_for_torch(ctx), ctx.releases
    evidence = facts.built_on if facts is not None else ()
    if where is not None and (
        not evidence or any(same_minor(release, where[0]) for release in evidence)
    ):
        return where[0], where[1], True
    if facts is not None and facts.best is not None:
        best = facts.best
        sure = facts.confidence == "high" or all(same_minor(r, best) for r in evidence)
        return best, f"its names are those of torch {facts.built_text}", sure
    return None if where is None else (where[0], where[1], True)


def wanted_torch(ctx: Context) -> tuple[str, str] | None:
    """(torch version to install for the file, why that one); None where none is known.

    What the metadata names, if the file links with that; else the likeliest release it was
    built on, of those that it links with. A file that links with no published release
    gets no advice to install one.
    """
    where, facts = built_for_torch(ctx), ctx.releases
    if facts is None or not facts.symbols:
        return where
    links = facts.package_links or facts.links_with
    if where is not None and any(_serves(where[0], release) for release in links):
        return where
    if not links:
        return None
    best = facts.best
    same = [release for release in links if best is not None and same_minor(release, best)]
    if best in same:
        same.insert(0, best)
    # What the metadata asks for besides counts where it leaves a choice.
    asked = torch_requirement(ctx.distribution.requires) if ctx.distribution else None
    choice = same or list(links)
    meeting = [release for release in choice if asked and satisfies(release, asked)]
    return (meeting or choice)[0], f"it links with torch {facts.links_text}"


def build_words(ctx: Context) -> str:
    """``made for torch 2.4.0`` by the metadata, ``built on torch 2.4`` by the file's own names."""
    where, stated = build_torch(ctx), built_for_torch(ctx)
    if where is None:
        return ""
    if stated is not None and where[0] == stated[0]:
        return f"made for torch {where[0]}"
    return f"built on torch {'.'.join(where[0].split('.')[:2])}"


def _serves(version: str, release: str) -> bool:
    """Whether a version as metadata writes it ("2.4", "2.4.0+cu121") is that release."""
    return release_of(version) == release or release.startswith(version + ".")


def metadata_note(ctx: Context) -> tuple[str, ...]:
    """One sentence on what the file's own metadata claims about torch, if it claims any."""
    if ctx.distribution is None:
        return ()
    where = built_for_torch(ctx)
    if where is not None:
        return (f"Its package says which torch it was made for: {where[1]}.",)
    wanted = torch_requirement(ctx.distribution.requires)
    if wanted and not wanted.startswith("=="):
        return (
            f"{ctx.distribution.name} {ctx.distribution.version} claims torch{wanted}; its symbols "
            "decide, not its metadata.",
        )
    return ()


def pip(ctx: Context, arguments: str) -> str:
    """A pip command for the inspected environment."""
    return f"{shlex.quote(ctx.python_command)} -m pip {arguments}"


def remedies(ctx: Context) -> tuple[str, ...]:
    """Another build of the extension first, then the torch it was made for; either mends it.

    The extension comes first: other packages may need the torch that is here.
    """
    return (*build_for_this_torch(ctx), *torch_for_the_file(ctx))


def remedy_notes(ctx: Context) -> tuple[str, ...]:
    """What the metadata says, and what each of the ``remedies`` does."""
    torch = ctx.environment.torch if ctx.environment else None
    here = f"torch {torch.release}" if torch else "this torch"
    builds, torches = build_for_this_torch(ctx), torch_for_the_file(ctx)
    name = distribution_name(ctx)
    notes = [*metadata_note(ctx), *wanted_build(ctx)]
    wheel = wheel_for_this_torch(ctx)
    own = _for_own_torch(ctx)
    if wheel is None:
        does = own[1] if own else rebuild_does(name or "", package_row(ctx), here)
    else:
        from fa_forensics.rules.official_wheel import wheel_does

        does = wheel_does(wheel, here, ctx.system.glibc if ctx.system else None)
    second = "changes torch, for all other packages too"
    if not_installed(ctx):
        does = f"{does}, once that torch is installed"
        if names_its_torch(ctx):
            does = f"installs {here} with a release of {name} that goes with it, if there is one"
        second = "installs a torch that the file links with, unless the environment has it already"
    if builds and torches:
        notes.append(f"One of the two commands is enough: the first {does}; the second {second}.")
    elif builds:
        notes.append(f"The command {does}.")
    return tuple(notes)


def not_installed(ctx: Context) -> bool:
    """Whether the torch that is judged against is one that --torch named and nobody installed."""
    return ctx.asked is not None and ctx.asked.judged_by == "table"


def names_its_torch(ctx: Context) -> bool:
    """Whether the package's metadata rules out the torch that is judged against.

    Such packages have a release for each torch, and pip chooses by their metadata: named
    together with the torch, the fitting one is found.
    """
    torch = ctx.environment.torch if ctx.environment else None
    if torch is None or ctx.distribution is None:
        return False
    return excludes(ctx.distribution.requires, torch.release)


def excludes(requires: Sequence[str], release: str) -> bool:
    """Whether requirements pin one torch, or allow only torches that a release is not."""
    if torch_pin(requires) is not None:
        return True
    wanted = torch_requirement(requires)
    return bool(wanted) and satisfies(release, wanted or "") is False


def wanted_build(ctx: Context) -> tuple[str, ...]:
    """One sentence on the build of the extension that would fit here."""
    torch = ctx.environment.torch if ctx.environment else None
    name = distribution_name(ctx)
    if torch is None or name is None or ctx.environment is None or ctx.releases is None:
        return ()
    parts = [f"torch {'.'.join(torch.release.split('.')[:2])}"]
    if torch.cuda:
        parts.append(f"CUDA {torch.cuda.split('.')[0]}")
    if torch.cxx11_abi in ("cxx11", "pre-cxx11"):
        parts.append(f"the {torch.cxx11_abi} flavour")
    parts.append(f"Python {ctx.environment.version_short}")
    return (f"What fits here is a build of {name} for {', '.join(parts)}.",)


def torch_for_the_file(ctx: Context) -> tuple[str, ...]:
    """Install the torch that the file links with: what its metadata names, or its names show."""
    where = wanted_torch(ctx)
    if where is None:
        return ()
    version = where[0]
    wanted = f"torch=={version}" if version.count(".") >= 2 else f"torch=={version}.*"
    return (pip(ctx, f'install "{wanted}"'),)


def build_for_this_torch(ctx: Context) -> tuple[str, ...]:
    """Get a build of the file's package that matches the torch at hand."""
    name = distribution_name(ctx)
    if name is None:
        return ()
    torch = ctx.environment.torch if ctx.environment else None
    if torch is not None and not_installed(ctx) and names_its_torch(ctx):
        return (pip(ctx, f'install "torch=={torch.release}" {name}'),)
    version = ctx.distribution.version if ctx.distribution else ""
    wheel = wheel_for_this_torch(ctx)
    if wheel is not None:
        from fa_forensics.rules.official_wheel import wheel_command

        return (wheel_command(ctx.python_command, wheel),)
    own = _for_own_torch(ctx)
    if own is not None:
        return own[:1]
    jobs = ctx.fit.jobs if ctx.fit else None
    return (rebuild_command(ctx.python_command, name, version, package_row(ctx), jobs),)


def _for_own_torch(ctx: Context) -> tuple[str, ...] | None:
    """(command, what it does) or () where torch is one's own and the package brings a wheel's."""
    torch, name = ctx.environment.torch if ctx.environment else None, distribution_name(ctx) or ""
    row = package_row(ctx)
    if torch is None or is_published(torch.version) or not brings_torch(normalized(name)):
        return None
    if row is not None and row["source_build"]:
        return None
    from fa_forensics.rules.own_torch import partner_from_source

    return partner_from_source(ctx.python_command, name, torch.release, row) or ()


def wheel_for_this_torch(ctx: Context) -> WheelBuild | None:
    """The official wheel of the file's package for the environment, where one is sure to fit."""
    torch = ctx.environment.torch if ctx.environment else None
    name = distribution_name(ctx)
    if torch is None or ctx.environment is None or name is None or ctx.environment.abiflags:
        return None
    known = ctx.fit is not None and not ctx.fit.overview
    gpus = tuple(fit.gpu for fit in ctx.fit.fits) if known and ctx.fit else ()
    from fa_forensics.rules.official_wheel import Home, official_wheel

    home = Home(
        torch.version,
        torch.cxx11_abi,
        torch.cuda,
        ctx.environment.version_short,
        ctx.environment.machine,
        ctx.system.glibc if ctx.system else None,
        gpus,
    )
    return official_wheel(name, ctx.distribution.version if ctx.distribution else "", home)


def rebuild_command(
    python: str,
    name: str,
    version: str,
    row: Mapping[str, object] | None,
    jobs: int | None = None,
) -> str:
    """Get a build of one distribution for the torch of an interpreter.

    ``row`` is what is known of the package: where its source can be built, it is. ``jobs``
    is how many compilations at once the machine bears, where that is known.
    """
    quoted = shlex.quote(python)
    if row is None or not row["source_build"]:
        return f"{quoted} -m pip install --upgrade --no-cache-dir {name}"
    environment = f"{row['environment']} " if row.get("environment") else ""
    if jobs is not None:
        environment = re.sub(r"\bMAX_JOBS=\d+", f"MAX_JOBS={jobs}", environment)
    if row.get("requirement"):
        return (
            f"{environment}{quoted} -m pip install --no-build-isolation --no-cache-dir "
            f"--force-reinstall --no-deps {row['requirement']}{at_tag(row, version)}"
        )
    return (
        f"{environment}{quoted} -m pip install --no-build-isolation --no-cache-dir "
        f"--force-reinstall --no-deps --no-binary {name} {_pinned(name, version)}"
    )


def at_tag(row: Mapping[str, object], version: str) -> str:
    """``@v0.1.3``: the tag of a release, where the main branch of the repository is a newer one.

    A branch that still calls itself by the last release ("main_is") is no other one.
    """
    public = version.partition("+")[0]
    if not row.get("tag") or public == row.get("main_is"):
        return ""
    public += ".0" * (public.count(".") == 1 and row.get("tag_numbers") == 3)
    plain = re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){1,3}", public)
    return "@" + str(row["tag"]).format(version=public) if plain else ""


def rebuild_does(name: str, row: dict[str, object] | None, here: str) -> str:
    """What the ``rebuild_command`` does, for a torch that is called ``here``."""
    if row is not None and row["source_build"]:
        return f"compiles {name} for {here}"
    return f"gets the newest release of {name}, which helps if that is built for {here}"


def _pinned(name: str, version: str) -> str:
    """The same release again, where its version is one that a package index can have."""
    public = version.split("+")[0]
    return f"{name}=={public}" if public else name


def reinstall(ctx: Context) -> tuple[str, ...]:
    """Get the very same release of the file's package once more, for a file that is damaged."""
    name = distribution_name(ctx)
    if name is None:
        return ()
    version = ctx.distribution.version if ctx.distribution else None
    wanted = f"{name}=={version}" if version and "+" not in version else name
    return (pip(ctx, f"install --force-reinstall --no-deps --no-cache-dir {wanted}"),)


def import_command(ctx: Context) -> tuple[str, ...]:
    """Import the package as its own code does it, siblings first."""
    row = package_row(ctx)
    if row is None:
        return ()
    return (f"{shlex.quote(ctx.python_command)} -c 'import {row['import']}'",)
