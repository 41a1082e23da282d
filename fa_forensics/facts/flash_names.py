"""Which release of flash-attn has which module and which name: ``data/flash_attn_names.json``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.flash_limits import release_key
from fa_forensics.facts.tables import read_table


class Span(NamedTuple):
    """Releases from ``since`` on and before ``before`` (None: to this day)."""

    since: str
    before: str | None


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("flash_attn_names.json")
    return table


def known_releases() -> tuple[str, str]:
    """The first and the last release of the table."""
    return _table()["first"], _table()["last"]


def module_spans(module: str) -> tuple[Span, ...]:
    """The releases that have a module of flash_attn; empty for a module that none has."""
    groups = _table()["modules"].get(module)
    return spans_of(next(iter(groups))) if groups else ()


def name_spans(name: str, module: str | None = None) -> tuple[Span, ...]:
    """The releases in which a name is in a module, or in any of the package without one.

    Over all modules it is the widest span: a name that moved was there all the time.
    """
    if module is not None:
        return _in_module(_table()["modules"].get(module, {}), name)
    found = [span for groups in _table()["modules"].values() for span in _in_module(groups, name)]
    if not found:
        return ()
    since = min(found, key=lambda span: release_key(span.since) or ((), (0, 0))).since
    ends = [span.before for span in found]
    if None in ends:
        return (Span(since, None),)
    return (Span(since, max((e for e in ends if e), key=lambda e: release_key(e) or ((), (0, 0)))),)


def modules_with(name: str) -> tuple[str, ...]:
    """The modules that have a name in some release."""
    modules = _table()["modules"]
    return tuple(module for module, groups in modules.items() if _in_module(groups, name))


def renamed(name: str) -> str | None:
    """What took the place of a name that went with FlashAttention 2."""
    other: str | None = _table()["renamed"].get(name)
    return other


def extra_folder(module: str) -> str | None:
    """The folder of flash-attn's repository that builds a module which its wheel lacks."""
    folder: str | None = _table()["extras"].get(module)
    return folder


def is_in(spans: tuple[Span, ...], release: str) -> bool | None:
    """Whether a release lies in one of the spans; None for a text that is no release."""
    key = release_key(release)
    if key is None:
        return None
    for span in spans:
        first, end = release_key(span.since), release_key(span.before) if span.before else None
        if first is not None and first <= key and (end is None or key < end):
            return True
    return False


def _in_module(groups: dict[str, list[str]], name: str) -> tuple[Span, ...]:
    return next((spans_of(text) for text, names in groups.items() if name in names), ())


def spans_of(text: str) -> tuple[Span, ...]:
    """The spans in a cell of a table: "2.0-2.4, 2.6-"."""
    parts = [part.partition("-") for part in text.split(", ")]
    return tuple(Span(since, before or None) for since, _dash, before in parts)
