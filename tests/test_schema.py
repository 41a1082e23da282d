"""Every JSON document is one of schema version 1, and the schema is as strict as the contract."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import render_samples as samples

import fa_forensics.render
from fa_forensics import report as words
from fa_forensics.render.json import dumps, error_document, inspect_document, why_document

jsonschema = importlib.import_module("jsonschema")  # it ships no types
SCHEMA = json.loads(
    (Path(fa_forensics.render.__file__).parent / "schema-v1.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

DOCUMENTS: dict[str, Callable[[], dict[str, object]]] = {
    "inspect": lambda: inspect_document(
        samples.report(samples.HEALTHY, samples.FAILING, samples.UNREADABLE, samples.IN_WHEEL)
    ),
    "inspect without environment": lambda: inspect_document(
        words.Report("0.1.0", None, (samples.HEALTHY,))
    ),
    "inspect without target": lambda: inspect_document(samples.report()),
    "why": lambda: why_document(samples.why(samples.DRIFT_ANSWER, samples.LIBRARY_ANSWER)),
    "inspect error": lambda: error_document("no such file: a.so", "name a file", 2),
    "why error": lambda: error_document("no symbol was given", None, 2, command="why"),
    "upgrade error": lambda: error_document("no such release", None, 2, command="upgrade"),
    "diff error": lambda: error_document("no such release", None, 2, command="atlas diff"),
    "wheels error": lambda: error_document("no such package", None, 2, command="wheels"),
    "lock error": lambda: error_document("no such environment", None, 2, command="env --lock"),
    "releases error": lambda: error_document("no such table", None, 3, command="atlas releases"),
}


def parsed(name: str) -> Any:
    """A document as another program sees it."""
    return json.loads(dumps(DOCUMENTS[name]()))


def at(document: Any, path: str) -> tuple[Any, Any]:
    """The container and the last key of a dotted path; numbers are indices."""
    keys: list[Any] = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in keys[:-1]:
        document = document[key]
    return document, keys[-1]


def test_the_schema_itself_is_legal() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_document_is_legal_and_survives_the_round_trip(name: str) -> None:
    document = DOCUMENTS[name]()
    VALIDATOR.validate(parsed(name))
    assert parsed(name) == document


#: The enumerations of the contract, by where they stand.
ENUMERATIONS: dict[str, list[object]] = {
    "inspect/targets.1.verdict": ["loads", "links", "fails", "no-gpu-code", "inconclusive"],
    "inspect/targets.1.findings.0.severity": ["error", "warning", "note"],
    "inspect/targets.1.findings.0.confidence": ["high", "medium", "low"],
    "inspect/targets.1.cxx11_abi": ["cxx11", "pre-cxx11", "not-applicable"],
    "inspect/targets.1.cuobjdump.status": ["agrees", "disagrees", "stopped", "absent"],
    "inspect/targets.1.confirm.status": ["confirmed", "refuted", "not-run"],
    "inspect/targets.1.stable_abi": [True, False],
    "why/answers.0.direction": ["file-newer", "file-older", "other-flavour", "none", "unknown"],
    "why/answers.0.confidence": ["high", "medium", "low"],
    "why/answers.0.kind": [
        "symbol-drift", "cxx11-abi", "missing-library", "versioned-symbol", "gpu-arch",
        "gpu-driver", "glibc", "libstdcxx", "damaged-file", "wrong-machine", "python-abi",
        "import-order", "own-symbol", "elf-loader", "wrong-torch", "rocm", "api-change", "windows",
        "unrecognised",
    ],
}  # fmt: skip


@pytest.mark.parametrize("place", sorted(ENUMERATIONS))
def test_enumeration_takes_its_words_and_no_other(place: str) -> None:
    name, _, path = place.partition("/")
    for word in ENUMERATIONS[place]:
        document = parsed(name)
        container, key = at(document, path)
        assert key in container
        container[key] = word
        VALIDATOR.validate(document)
    for word in ("other", "", None, 1, "Loads"):
        document = parsed(name)
        container, key = at(document, path)
        container[key] = word
        assert not VALIDATOR.is_valid(document), word


def test_words_of_the_report_are_those_of_the_schema() -> None:
    definitions = SCHEMA["$defs"]
    verdicts = definitions["target"]["properties"]["verdict"]["enum"]
    assert verdicts == [
        words.LOADS, words.LINKS, words.FAILS, words.NO_GPU_CODE, words.INCONCLUSIVE
    ]  # fmt: skip
    assert definitions["finding"]["properties"]["severity"]["enum"] == list(words.SEVERITIES)
    assert definitions["confidence"]["enum"] == list(words.CONFIDENCES)


#: The fields of the contract: none may be missing.
REQUIRED = {
    "inspect/": "schema_version tool environment targets",
    "inspect/tool": "name version",
    "inspect/targets.1": "path member verdict findings skipped elf undefined missing cxx11_abi "
    "stable_abi links_with built_on gpu_code cuobjdump confirm",
    "inspect/targets.1.elf": "machine soname needed rpath runpath build_id compilers python_tag",
    "inspect/targets.1.findings.0": "code severity confidence title evidence notes help",
    "inspect/targets.1.skipped.0": "rule reason",
    "inspect/targets.1.undefined.0": "symbol version bind demangled owner provider",
    "inspect/targets.1.gpu_code.0": "kind arch count bytes",
    "inspect/targets.1.cuobjdump": "status path detail",
    "inspect/targets.1.confirm": "status detail steps",
    "why/": "schema_version tool environment answers",
    "why/answers.0": "kind code symbol demangled owner provider exported_by overloads direction "
    "cause help confidence source_line",
    "why/answers.0.overloads.0": "symbol demangled exported_by",
    "inspect error/error": "message hint exit_code",
}


def required_fields() -> Iterator[tuple[str, str, str]]:
    for place, fields in REQUIRED.items():
        name, _, path = place.partition("/")
        for field in fields.split():
            yield name, path, field


@pytest.mark.parametrize(("name", "path", "field"), list(required_fields()))
def test_field_of_the_contract_is_there_and_required(name: str, path: str, field: str) -> None:
    document = parsed(name)
    container = document
    if path:
        parent, key = at(document, path)
        container = parent[key]
    del container[field]
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("path", ["", "targets.1", "targets.1.elf", "targets.1.findings.0"])
def test_fields_may_be_added(path: str) -> None:
    document = parsed("inspect")
    container = document
    if path:
        parent, key = at(document, path)
        container = parent[key]
    container["a field of a later release"] = {"any": ["thing"]}
    VALIDATOR.validate(document)


WRONG = {
    "inspect/schema_version": 2,
    "inspect/tool.name": "another",
    "inspect/targets": None,
    "inspect/targets.1.path": "",
    "inspect/targets.1.missing": ["a", "a"],
    "inspect/targets.1.elf.build_id": "not hex",
    "inspect/targets.1.elf.needed": "libc.so.6",
    "inspect/targets.1.gpu_code.0.count": 0,
    "inspect/targets.1.gpu_code.0.bytes": -1,
    "inspect/targets.1.findings.0.help": "pip install x",
    "inspect/targets.1.skipped.0.reason": "",
    "inspect error/error.exit_code": 0,
    "why/answers.0.exported_by": None,
    "why/answers": None,
}


@pytest.mark.parametrize("place", sorted(WRONG))
def test_value_outside_the_contract_is_refused(place: str) -> None:
    name, _, path = place.partition("/")
    document = parsed(name)
    container, key = at(document, path)
    assert key in container
    container[key] = WRONG[place]
    assert not VALIDATOR.is_valid(document)


def test_a_document_is_either_of_inspect_or_of_why() -> None:
    both = {**parsed("inspect"), **parsed("why")}
    assert not VALIDATOR.is_valid(both)
