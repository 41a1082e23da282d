"""Fields of documents that anybody may have written: wrong shapes are absent, never trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

#: A name or text that is longer is cut: no field of ours comes near.
MAX_TEXT = 20_000


def text(fields: Mapping[str, object], key: str) -> str | None:
    """A text field, None where it is absent, null or of another type."""
    value = fields.get(key)
    return value[:MAX_TEXT] if isinstance(value, str) else None


def mapping(fields: Mapping[str, object], key: str) -> Mapping[str, object]:
    """An object field, empty where there is none."""
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def rows(fields: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """The objects of a list field."""
    value = fields.get(key)
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))


def texts(fields: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    """The texts of a list field in their order; None where it is absent."""
    value = fields.get(key)
    if not isinstance(value, list):
        return None
    return tuple(item[:MAX_TEXT] for item in value if isinstance(item, str))


def scalar(value: object) -> str | None:
    """A plain value as text; None for null and for anything with parts."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return str(value)
    return value[:MAX_TEXT] if isinstance(value, str) else None


def gibibytes(size: int) -> str:
    """Bytes of memory to the GiB."""
    return f"{round(size / (1 << 30))} GiB"


def as_set(values: Sequence[str]) -> tuple[str, ...]:
    """A list whose order says nothing, each member once."""
    return tuple(sorted(set(values)))


def findings(fields: Mapping[str, object]) -> tuple[str, ...] | None:
    """The findings of a file by code and severity: their texts name places. None without any."""
    if not isinstance(fields.get("findings"), list):
        return None
    return as_set(
        [f"{text(row, 'code')} {text(row, 'severity')}" for row in rows(fields, "findings")]
    )


def readable(value: object) -> str:
    """A value with parts as one text, the same for the same value: "origin pip, version 2.6"."""
    if isinstance(value, Mapping):
        parts = {str(key): scalar(part) for key, part in value.items() if part is not None}
        if None not in parts.values():
            return ", ".join(f"{key} {parts[key]}" for key in sorted(parts))[:MAX_TEXT]
    return json.dumps(value, sort_keys=True, ensure_ascii=False)[:MAX_TEXT]
