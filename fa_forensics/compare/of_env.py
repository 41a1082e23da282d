"""What a document of ``env`` says, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts, Key
from fa_forensics.compare.of_copies import is_of_copies, put_copies
from fa_forensics.compare.of_runtime import (
    put_gpus,
    runtime_aspect,
    runtime_group,
    runtime_subject,
)
from fa_forensics.compare.places import Places
from fa_forensics.report_compare import GROUPS, Value

_LAYERS = {"package": "packages", "artefact": "extensions", "copies": "libraries"}

#: Fields that go by another name in the documents of ``inspect``.
_ALIASES = {
    "build_id": "build-id",
    "size_bytes": "size in bytes",
    "size": "size in bytes",
    "cxx11_abi": "C++ string flavour",
    "gpu_code": "GPU code",
    "built_on": "built on torch",
    "needed": "needs",
    "missing": "missing symbols",
}

#: Fields that differ between any two runs and say nothing of the machine.
_PASSING = {"pid", "mtime", "time", "seconds", "hostname", "host", "user", "uid"}

#: Fields that others say better: of the same line, of a line of their own, or of how much
#: was looked at.
_TOLD = {
    "missing_count", "links_with", "extensions", "files_compared", "files_hashed",
    "bytes_not_hashed",
}  # fmt: skip

#: Lists whose order is part of what they say.
_ORDERED = {"needed", "rpath", "runpath", "order", "directories"}

#: Facts of one line that are compared; a longer one is no line of ours.
_MOST_FACTS = 2_000
#: Packages of one environment that are compared.
_MOST_PACKAGES = 20_000


def put_lines(
    into: Facts, document: Mapping[str, object], places: Places, per_process: frozenset[str]
) -> None:
    """Note the facts of every line of a document of ``env``."""
    gathered: dict[Key, list[Value]] = {}
    gpus: list[Mapping[str, object]] = []
    into.speaks_of |= {(group, "") for group in GROUPS if group != "kernels"}
    for line in plain.rows(document, "lines"):
        layer, subject = plain.text(line, "layer"), plain.text(line, "subject")
        state, facts = plain.text(line, "state"), plain.mapping(line, "facts")
        if layer is None or subject is None or state is None:
            into.problems.append("a line lacks its layer, its subject or its state")
            continue
        group = group_of(layer, subject, facts)
        if group == "variables" and subject in per_process:
            continue
        name = _name_of(group, subject, places)
        _put_state(into, gathered, (group, name, "state"), line, places)
        if layer == "package" and "versions" in facts:
            _put_versions(into, facts)
        if layer == "copies" and is_of_copies(facts):
            put_copies(into, facts, places)
        elif group == "gpus":
            gpus.append(facts)
        else:
            for aspect, value in _facts(group, facts, places):
                gathered.setdefault((group, name, aspect), []).append(value)
    if gpus and ("gpus", "GPUs", "") not in into.facts:
        put_gpus(into, gpus)
    for (group, name, aspect), values in gathered.items():
        into.put(group, name, aspect, values[0] if len(values) == 1 else _together(values))
    for group, name, aspect in list(into.facts):
        if group == "packages" and aspect == "version":  # only those in trouble have a line
            into.put(group, name, "state", "ok")


def _name_of(group: str, subject: str, places: Places) -> str:
    """The subject as all reports know it."""
    if group == "gpus":
        return "GPUs"
    return runtime_subject(group, places.file(subject))


def _put_state(
    into: Facts, gathered: dict[Key, list[Value]], key: Key, line: Mapping[str, object],
    places: Places,
) -> None:  # fmt: skip
    """Note how a thing was found to be, by the code of the finding where there is one."""
    group, name, _aspect = key
    if group == "extensions" and "verdict" in plain.mapping(line, "facts"):
        return  # the verdict and the findings say more than the state
    state, code = plain.text(line, "state"), plain.text(plain.mapping(line, "finding"), "code")
    if state == "could-not-look":
        text = plain.text(line, "text") or "no reason is given"
        into.could_not_look(group, name, "", places.name(text))
    elif group != "variables" or state == "wrong":
        word = f"{state}, {code}" if code else "ok" if state == "note" else state
        gathered.setdefault(key, []).append(word)


def _put_versions(into: Facts, facts: Mapping[str, object]) -> None:
    """The packages that share one line, each as a subject of its own."""
    versions = plain.mapping(facts, "versions")
    for name in islice(versions, _MOST_PACKAGES):
        version = plain.text(versions, name)
        if name != "torch":  # the torch itself says more than its metadata
            into.put("packages", name, "version", version)


def group_of(layer: str, subject: str, facts: Mapping[str, object]) -> str:
    """The group that a line belongs to."""
    if subject == "sys.path":
        return "python"
    if layer == "runtime":
        return runtime_group(subject, facts)
    return _LAYERS.get(layer, "other")


def _facts(group: str, facts: Mapping[str, object], places: Places) -> Iterator[tuple[str, Value]]:
    """Every field of a line that is compared, under the name it is told by."""
    for key, field, value in islice(_flat(facts, ""), _MOST_FACTS):
        if field == "findings":
            yield "findings", plain.findings(facts)
        elif field not in _PASSING | _TOLD and not key.startswith("versions "):
            aspect = runtime_aspect(group, field, _ALIASES.get(key, key.replace("_", " ")))
            if aspect is not None:
                yield aspect, _value(field, value, places)


def _flat(
    fields: Mapping[str, object], before: str, depth: int = 0
) -> Iterator[tuple[str, str, object]]:
    """(dotted name, own name, value) of every field that has no fields of its own."""
    for key in sorted(fields, key=str):
        name, value = f"{before}{key}", fields[key]
        if isinstance(value, Mapping) and depth < 4:
            yield from _flat(value, f"{name} ", depth + 1)
        else:
            yield name, str(key), value


def _value(field: str, value: object, places: Places) -> Value:
    """A value as it is compared; null is a word of its own here, since the field is there."""
    if value is None:
        return "none"
    if field == "memory_bytes" and isinstance(value, int):
        return plain.gibibytes(value)  # the kernel keeps some of it, never the same
    plain_text = plain.scalar(value)
    if plain_text is not None:
        return places.name(plain_text)
    if isinstance(value, list):
        members = [plain.scalar(item) or plain.readable(item) for item in value]
        named = tuple(places.name(member) for member in members)
        return named if field in _ORDERED else plain.as_set(named)
    return places.name(plain.readable(value))


def _together(values: list[Value]) -> Value:
    """The values of several lines about one subject."""
    members: list[str] = []
    for value in values:
        members += value if isinstance(value, tuple) else [value or "none"]
    together = plain.as_set(members)
    return together[0] if len(together) == 1 and isinstance(values[0], str) else together
