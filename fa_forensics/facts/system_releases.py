"""Which glibc, which GCC and which distribution bring a symbol version.

Tables: ``data/glibc_releases.json``, ``data/gcc_releases.json`` and ``data/distributions.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

#: The families of symbol versions that the system's libraries define.
GLIBC, GLIBCXX, CXXABI, GCC = "GLIBC", "GLIBCXX", "CXXABI", "GCC"
FAMILIES = (GLIBC, GLIBCXX, CXXABI, GCC)

Number = tuple[int, ...]
_NUMBER = lazily(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}")


class SystemRelease(NamedTuple):
    """A release of a distribution and the newest symbol versions of its libraries."""

    family: str
    release: str
    glibc: str
    newest: Mapping[str, str]

    @property
    def name(self) -> str:
        """``Ubuntu 22.04``."""
        return f"{self.family} {self.release}"


@lru_cache(maxsize=1_024)
def number(text: str) -> Number:
    """``2.34`` → (2, 34); () for what is no plain version number."""
    return tuple(map(int, text.split("."))) if _NUMBER.fullmatch(text) else ()


def family_of(version: str) -> str | None:
    """``GLIBCXX_3.4.30`` → ``GLIBCXX``; None where no system library has such versions."""
    family = version.partition("_")[0]
    return family if family in FAMILIES else None


def version_number(version: str) -> Number:
    """``GLIBC_2.34`` → (2, 34), ``GLIBC_ABI_DT_RELR`` → (2, 36); () where it is not known."""
    family, _, rest = version.partition("_")
    marker = _glibc()["markers"].get(rest) if family == GLIBC else None
    return number(marker or rest)


def newest(versions: Iterable[str], family: str) -> str | None:
    """The newest version of one family: a name as it stands in the file, or None.

    Of two names for one release, the plain one: GLIBC_2.36 before GLIBC_ABI_DT_RELR.
    """
    of_family = [v for v in versions if v.startswith(family + "_") and version_number(v)]
    return max(of_family, key=lambda v: (version_number(v), v[len(family) + 1].isdigit()),
               default=None)  # fmt: skip


def gcc_of(version: str) -> str | None:
    """The GCC release that brought a version of libstdc++ or libgcc_s: ``12.1``, or None."""
    family, _, rest = version.partition("_")
    release = _gcc().get(family, {}).get(rest)
    return None if release is None else release.removesuffix(".0")


def distributions() -> tuple[SystemRelease, ...]:
    """The releases of distributions that are known; the older of a family first."""
    return _distributions()


def oldest_systems(versions: Iterable[str]) -> tuple[str, ...]:
    """The first known release of each family that brings all versions; those unknown do not count.

    Empty where no version is known, and where no known release brings them all.
    """
    wanted = [(f, n) for v in versions if (f := family_of(v)) and (n := version_number(v))]
    found: dict[str, str] = {}
    for row in _distributions() if wanted else ():
        if all(number(row.glibc if f == GLIBC else row.newest[f]) >= n for f, n in wanted):
            found.setdefault(row.family, row.name)
    return tuple(found.values())


def brings(version: str) -> str | None:
    """What first brings a version, in words, or None where that is not known.

    ``glibc 2.38 (Ubuntu 24.04, Debian 13, RHEL 10, ...)``, ``the libstdc++ of GCC 12.1 (...)``.
    """
    family, wanted = family_of(version), version_number(version)
    if family is None or not wanted:
        return None
    if family == GLIBC:
        text = "glibc " + ".".join(map(str, wanted))
        if wanted > number(_glibc()["releases"][-1]):
            text += ", newer than any that is known here"
    else:
        release = gcc_of(version)
        if release is None:
            return None
        text = f"the {'libgcc' if family == GCC else 'libstdc++'} of GCC {release}"
    systems = _first_systems(version)
    return f"{text} ({', '.join(systems)})" if systems else text


def _first_systems(version: str) -> tuple[str, ...]:
    """The first release of each family that brings a version, where an earlier one does not.

    The oldest release on record says nothing of those before it: some are on record for that.
    """
    family, wanted = family_of(version), version_number(version)
    key = "glibc" if family == GLIBC else family
    rows = [
        *((r["family"], r["release"], r[key]) for r in _older() if key in r),
        *((r.family, r.release, r.glibc if family == GLIBC else r.newest[family or ""])
          for r in _distributions()),
    ]  # fmt: skip
    lacking = {name for name, _, has in rows if number(has) < wanted}
    found: dict[str, str] = {}
    for name, release, has in rows:
        if name in lacking and number(has) >= wanted:
            found.setdefault(name, f"{name} {release}")
    return tuple(found.values())


@lru_cache(maxsize=1)
def _older() -> Any:
    return read_table("distributions.json")["older"]


def system_named(text: str) -> tuple[str, str] | None:
    """(what it is, its glibc) of a distribution that a report names; None for unknown ones.

    ``CentOS Linux release 7.9.2009 (Core)`` → ("RHEL 7", "2.17").
    """
    for called, family, release, glibc in _named_releases():
        if called.search(text[:300]) is not None:
            return f"{family} {release}", glibc
    return None


@lru_cache(maxsize=1)
def _named_releases() -> tuple[tuple[re.Pattern[str], str, str, str], ...]:
    table = read_table("distributions.json")
    return tuple(
        (
            re.compile(
                rf"\b{table['called'][row['family']]}[ -]?v?{_as_written(row['release'])}(?!\d)",
                re.IGNORECASE,
            ),
            row["family"], row["release"], row["glibc"],
        )
        for row in (*table["distributions"], *table["older"])
    )  # fmt: skip


def _as_written(release: str) -> str:
    """``18.04``, which people write as 18 too."""
    year = release.removesuffix(".04")
    return re.escape(release) if year == release else rf"{year}(?:\.04|(?!\.\d))"


def refuses_executable_stack(glibc: str, tunables: str = "") -> bool:
    """Whether dlopen of this glibc ("2.41") refuses a file that asks for such a stack.

    ``tunables`` is the value of GLIBC_TUNABLES, by which a process can be made to allow it.
    """
    row = _glibc()["executable_stack"]
    allowed = "glibc.rtld.execstack=2" in tunables.split(":")
    if allowed and number(glibc) >= number(row["tunable_since"]):
        return False
    return number(glibc) >= number(row["refused_since"])


def static_tls_room(tunables: str = "") -> int:
    """Bytes that glibc keeps for static thread-local data of all libraries opened later.

    ``tunables`` is the value of GLIBC_TUNABLES, which can make it more or less.
    """
    row = _glibc()["static_tls"]
    found = re.search(r"(?:^|:)glibc\.rtld\.optional_static_tls=([0-9]{1,9})(?::|$)", tunables)
    optional = int(found[1]) if found else int(row["optional"])
    return int(row["room"]) - int(row["optional"]) + optional


def static_tls_slack() -> int:
    """Bytes by which rounding can make the room larger than ``static_tls_room``."""
    return int(_glibc()["static_tls"]["slack"])


def aligns_by_page(glibc: str) -> bool:
    """Whether the loader of this glibc holds segments to the page size, not to their p_align."""
    return number(glibc) >= number(_glibc()["alignment"]["by_page_since"])


def asks_for_executable_stack(flagged: bool | None, machine: str) -> bool:
    """Whether the loader takes a file to ask for one: by its header, or for want of it.

    ``flagged`` is what PT_GNU_STACK says, None where the file has no such header.
    """
    if flagged is None:
        return machine in _glibc()["default_stack"]["executable"]
    return flagged


@lru_cache(maxsize=1)
def _glibc() -> Any:
    return read_table("glibc_releases.json")


@lru_cache(maxsize=1)
def _gcc() -> Any:
    return read_table("gcc_releases.json")


@lru_cache(maxsize=1)
def _distributions() -> tuple[SystemRelease, ...]:
    rows = read_table("distributions.json")["distributions"]
    return tuple(
        SystemRelease(
            row["family"], row["release"], row["glibc"], {f: row[f] for f in FAMILIES[1:]}
        )
        for row in rows
    )
