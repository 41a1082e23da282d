"""What the lines about library copies say: which file each name is served by, and its build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts
from fa_forensics.compare.places import Places


def is_of_copies(facts: Mapping[str, object]) -> bool:
    """Whether the facts of a line are those of library copies."""
    return "taken" in facts or isinstance(facts.get("libraries"), list)


def put_copies(into: Facts, facts: Mapping[str, object], places: Places) -> None:
    """Note which file serves each soname; the loader's own reasons are not compared."""
    for group in _groups(facts):
        soname = plain.text(group, "soname")
        if soname is None:
            into.problems.append("a library has no soname")
            continue
        loaded = plain.scalar(group.get("loaded"))
        into.put("libraries", soname, "loaded", loaded)
        taken = plain.mapping(group, "taken")
        path = plain.text(taken, "path")
        # Of a library that torch does not load, another file may take another copy.
        where = "taken from" if loaded == "yes" else "lies at"
        into.put("libraries", soname, where, (places.name(path) if path else "nothing",))
        if path:
            into.put("libraries", soname, "version", plain.text(taken, "version") or "unknown")
            into.put("libraries", soname, "build-id", plain.text(taken, "build_id") or "none")
            size = plain.scalar(taken.get("size_bytes"))
            into.put("libraries", soname, "size in bytes", size)
            problem = plain.text(taken, "problem")
            into.put("libraries", soname, "problem", places.name(problem) if problem else None)
        others = [
            f"{places.name(plain.text(row, 'path') or '?')} {plain.text(row, 'version') or ''}"
            for row in plain.rows(group, "others")
        ]
        into.put("libraries", soname, "other copies", plain.as_set([o.strip() for o in others]))


def _groups(facts: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if isinstance(facts.get("libraries"), list):
        yield from plain.rows(facts, "libraries")
    else:
        yield facts
