"""Every distribution of an environment as its metadata directories show it, broken ones included.

Also what lies among the packages and belongs to none: what an interrupted uninstall left, and
packages that no metadata names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import (
    Distribution,
    info_directories,
    info_name,
    normalized,
    read_distribution,
)
from fa_forensics.facts.record import Record, owners_of, read_record, top_names
from fa_forensics.records import dataclass

#: Words of INSTALLER files whose packages are no wheels as they were built.
_REPACKAGERS = ("conda", "debian", "rpm")


@dataclass(frozen=True, slots=True)
class Installed:
    """One metadata directory.

    ``name`` is the project's normalized name, ``site`` the directory that holds it.
    ``distribution`` and ``record`` are None where they could not be read; ``problem`` is one
    sentence then. A distribution without a RECORD has no ``problem`` for that alone.
    """

    info: str
    site: str
    name: str
    distribution: Distribution | None
    record: Record | None
    problem: str | None = None

    @property
    def version(self) -> str:
        """The recorded version, "" where the metadata could not be read."""
        return self.distribution.version if self.distribution else ""

    @property
    def repackaged_by(self) -> str | None:
        """Who packaged it anew and changed its files after RECORD was written, if anybody.

        conda rewrites prefixes and RPATHs, distributions strip libraries and move scripts.
        """
        installer = self.distribution.installer if self.distribution else None
        if installer in _REPACKAGERS:
            return installer
        if installer is None and self.site.endswith("/lib/python3/dist-packages"):
            return "the system"  # where Debian's own packages, and only they, lie
        return None

    @property
    def top_names(self) -> frozenset[str]:
        """The importable names that it installs: packages and modules."""
        if self.record is not None:
            names = top_names(self.record.entries)
        else:
            names = frozenset(_top_level(self.info))
        return frozenset(
            module for name in names if (module := name.split(".")[0]).isidentifier()
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A directory of packages that could not be listed, and why."""

    directory: str
    reason: str


def read_installed(site_dirs: Sequence[str]) -> list[Installed]:
    """All distributions in sys.path order, within a directory by name.

    What pip renamed to remove it is none any more: see ``interrupted``.
    """
    return [
        _read(info, site)
        for site in site_dirs
        for info in info_directories(site)
        if not os.path.basename(info).startswith("~")
    ]


def unlisted(site_dirs: Sequence[str]) -> list[Unlisted]:
    """The directories that this user may not list."""
    found = []
    for site in site_dirs:
        try:
            os.listdir(site)
        except OSError as error:
            found.append(Unlisted(site, error.strerror or str(error)))
    return found


def _read(info: str, site: str) -> Installed:
    distribution = read_distribution(info)
    name = normalized(distribution.name) if distribution else info_name(info)
    if distribution is None:
        return Installed(info, site, name, None, None, _why_unreadable(info))
    if not distribution.version:
        problem = f"{distribution.metadata_path} names no version"
        return Installed(info, site, name, None, None, problem)
    record_path = os.path.join(info, "RECORD")
    if not os.path.lexists(record_path):
        return Installed(info, site, name, distribution, None)
    try:
        record = read_record(record_path)
    except OSError as error:
        problem = f"{record_path} cannot be read: {error.strerror or error}"
        return Installed(info, site, name, distribution, None, problem)
    return Installed(info, site, name, distribution, record, record.problem)


def _why_unreadable(info: str) -> str:
    """One sentence on a metadata directory without readable METADATA."""
    if not os.path.isdir(info):
        try:
            read_bounded(info, 1)
        except FileNotFoundError:
            return f"{info} is a link to a file that does not exist"
        except OSError as error:
            return f"{info} cannot be read: {error.strerror or error}"
        return f"{info} holds no metadata"
    try:
        names = os.listdir(info)
    except OSError as error:
        return f"{info} cannot be listed: {error.strerror or error}"
    for name in ("METADATA", "PKG-INFO"):
        path = os.path.join(info, name)
        if os.path.lexists(path):
            try:
                read_bounded(path, 1)
            except OSError as error:
                return f"{path} cannot be read: {error.strerror or error}"
    if not names:
        return f"{info} is empty"
    return f"{info} has no METADATA, so pip and importlib do not know what it is"


def _top_level(info: str) -> list[str]:
    try:
        text = read_bounded(os.path.join(info, "top_level.txt"), 65_536)
    except OSError:
        return []
    return text.decode("utf-8", "replace").split()


def interrupted(site_dirs: Sequence[str]) -> list[str]:
    """What pip renamed to ``~name`` and never removed: an uninstall that did not end."""
    found = []
    for site in site_dirs:
        try:
            names = sorted(os.listdir(site))
        except OSError:
            continue
        found += [os.path.join(site, name) for name in names if name.startswith("~")]
    return found


def unowned(site: str, installed: Iterable[Installed]) -> list[str]:
    """Top-level packages and shared objects of a site directory that no RECORD names.

    A distribution without a RECORD owns what its top_level.txt names, or what has its own name.
    Namespace directories that a RECORD reaches into count as owned.
    """
    here = [item for item in installed if item.site == site]
    owned: set[str] = set()
    for item in here:
        if item.record is not None:
            owned |= {entry.path.partition("/")[0] for entry in item.record.entries}
        else:
            tops = _top_level(item.info) or [item.name.replace("-", "_")]
            owned |= set(tops) | {top + ".py" for top in tops}
    try:
        names = sorted(os.listdir(site))
    except OSError:
        return []
    stems = {name.split(".")[0] for name in owned}
    return [
        os.path.join(site, name)
        for name in names
        if name not in owned and (_is_module(name, stems) or _is_package(site, name))
    ]


def _is_module(name: str, stems: set[str]) -> bool:
    """A shared object; one whose stem an owner without RECORD has named is not stray."""
    return name.endswith(".so") and not (name.split(".")[0] in stems and "cpython" not in name)


def _is_package(site: str, name: str) -> bool:
    return name.isidentifier() and os.path.isfile(os.path.join(site, name, "__init__.py"))


def by_top_name(installed: Sequence[Installed]) -> Mapping[str, list[Installed]]:
    """Importable name → the distributions that install something of that name."""
    found: dict[str, list[Installed]] = {}
    for item in installed:
        for name in item.top_names:
            found.setdefault(name, []).append(item)
    return found


__all__ = [
    "Installed",
    "Unlisted",
    "by_top_name",
    "interrupted",
    "owners_of",
    "read_installed",
    "unlisted",
    "unowned",
]
