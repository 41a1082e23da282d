"""Which CPython exports a name of its C interface: ``data/python_names.json``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.numbers import release_numbers
from fa_forensics.facts.tables import read_table


class PythonSpan(NamedTuple):
    """CPython from ``since`` on and before ``before`` (None: to this day)."""

    since: str
    before: str | None


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("python_names.json")
    return table


def known_pythons() -> tuple[str, ...]:
    """The minor versions that were looked at, oldest first."""
    return tuple(_table()["pythons"])


def python_spans(name: str) -> tuple[PythonSpan, ...]:
    """The versions that export a name; empty where none of those looked at does.

    ``since`` is a patch release ("3.6.1") where the name came with one, in two series at once
    for some.
    """
    for text, names in _table()["spans"].items():
        if name in names.split():
            spans = _spans(text)
            if name in _table()["patches"]:
                patched = _spans(_table()["patches"][name])
                spans = (*patched[:-1], patched[-1]._replace(before=spans[-1].before))
            return spans
    return ()


def names_that_begin(start: str) -> tuple[str, ...]:
    """The names on record that begin like this, in order; a text may have cut one off."""
    found = (
        name
        for names in _table()["spans"].values()
        for name in names.split()
        if name.startswith(start)
    )
    return tuple(sorted(found))


def special_build(name: str) -> str | None:
    """The build of CPython that alone has a name: ``free-threaded`` or ``debug``."""
    return next((b for b, names in _table()["builds"].items() if name in names.split()), None)


def names_followed() -> tuple[str, ...]:
    """The private names of which it is on record which generators of code call them no more."""
    return tuple(_table()["followed"])


def followed_by(name: str) -> dict[str, str]:
    """Generator of code to its first release on record that does without a name."""
    return dict(_table()["followed"].get(name, {}))


def _spans(text: str) -> tuple[PythonSpan, ...]:
    parts = [part.partition("-") for part in text.split(", ")]
    return tuple(PythonSpan(since, before or None) for since, _dash, before in parts)


def exports(name: str, version: str) -> bool | None:
    """Whether CPython of a version ("3.6.0", or "3.6" for its later patches) exports a name.

    None where that version was not looked at: Python 3 before the first one looked at may have
    a name that 2.7 lacks and that one has.
    """
    minor = version_key(version)[:2]
    pythons = [version_key(python) for python in known_pythons()]
    if minor not in pythons and not pythons[0] <= minor <= pythons[-1]:
        return None
    wanted = version_key(version) if version.count(".") > 1 else (*minor, 999)
    for span in python_spans(name):
        ended = span.before is not None and minor >= version_key(span.before)
        if version_key(span.since) <= wanted and not ended:
            return True
    first_of_3 = known_pythons()[1]
    early = (3, 0) <= minor < version_key(first_of_3) and name not in _table()["patches"]
    return None if early and any(s.since == first_of_3 for s in python_spans(name)) else False


def version_key(version: str) -> tuple[int, ...]:
    """What versions of Python compare by."""
    return release_numbers(version)[:3]
