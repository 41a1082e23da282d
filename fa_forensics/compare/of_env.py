"""What a document of ``env`` says, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts
from fa_forensics.compare.of_copies import is_of_copies, put_copies
from fa_forensics.compare.places import Places
from fa_forensics.report_compare import GROUPS, Value

_LAYERS = {"package": "packages", "artefact": "extensions", "copies": "libraries"}

#: What the lines of the runtime layer are about, by their subject; the first that fits.
_RUNTIME = (
    ("torch", re.compile(r"torch\b", re.IGNORECASE)),
    ("python", re.compile(r"(python|interpreter|abi tag)", re.IGNORECASE)),
    ("driver", re.compile(r"(.*\bdriver|libcuda)", re.IGNORECASE)),
    ("gpus", re.compile(r"gpus?\b", re.IGNORECASE)),
    ("variables", re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$")),
    ("toolkit", re.compile(r"(nvcc|cuda toolkit|toolkit)", re.IGNORECASE)),
    ("libraries", re.compile(r"lib\S+\.so")),
    ("system", re.compile(r"")),
)

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
    gathered: dict[tuple[str, str, str], list[Value]] = {}
    into.speaks_of |= {(group, "") for group in GROUPS if group != "kernels"}
    for line in plain.rows(document, "lines"):
        layer, subject = plain.text(line, "layer"), plain.text(line, "subject")
        state = plain.text(line, "state")
        if layer is None or subject is None or state is None:
            into.problems.append("a line lacks its layer, its subject or its state")
            continue
        group = group_of(layer, subject)
        if layer == "package" and "versions" in plain.mapping(line, "facts"):
            _put_versions(into, plain.mapping(line, "facts"))
        if group == "variables" and subject in per_process:
            continue
        name = places.file(subject)
        if layer == "artefact" and "verdict" in plain.mapping(line, "facts"):
            pass  # the verdict and the findings say more than the state
        elif state == "could-not-look":
            text = plain.text(line, "text") or "no reason is given"
            into.could_not_look(group, name, "", places.name(text))
        else:
            code = plain.text(plain.mapping(line, "finding"), "code")
            word = f"{state}, {code}" if code else "ok" if state == "note" else state
            gathered.setdefault((group, name, "state"), []).append(word)
        facts = plain.mapping(line, "facts")
        if layer == "copies" and is_of_copies(facts):
            put_copies(into, facts, places)
            continue
        for aspect, value in _facts(line, places):
            gathered.setdefault((group, name, aspect), []).append(value)
    for (group, name, aspect), values in gathered.items():
        into.put(group, name, aspect, values[0] if len(values) == 1 else _together(values))


def _put_versions(into: Facts, facts: Mapping[str, object]) -> None:
    """The packages that share one line, each as a subject of its own."""
    versions = plain.mapping(facts, "versions")
    for name in islice(versions, _MOST_PACKAGES):
        version = plain.text(versions, name)
        if name != "torch":  # the torch itself says more than its metadata
            into.put("packages", name, "version", version)


def group_of(layer: str, subject: str) -> str:
    """The group that a line belongs to."""
    if subject == "sys.path":
        return "python"
    if layer == "runtime":
        return next(group for group, words in _RUNTIME if words.match(subject))
    return _LAYERS.get(layer, "other")


def _facts(line: Mapping[str, object], places: Places) -> Iterator[tuple[str, Value]]:
    flat = _flat(plain.mapping(line, "facts"), "")
    for key, field, value in islice(flat, _MOST_FACTS):
        if field == "findings":
            yield "findings", plain.findings(plain.mapping(line, "facts"))
        elif field not in _PASSING | _TOLD and not key.startswith("versions "):
            yield _ALIASES.get(key, key.replace("_", " ")), _value(field, value, places)


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
    return plain.as_set(members)
