"""The JSON view: the same bytes each time, sorted where order says nothing, kept where it does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import render_samples as samples

from fa_forensics import __version__
from fa_forensics.render.json import dumps, error_document, inspect_document, why_document
from fa_forensics.report import GpuCode, Skipped, TargetReport


def target_of(target: TargetReport) -> Any:
    return json.loads(dumps(inspect_document(samples.report(target))))["targets"][0]


def test_text_is_indented_ascii_with_one_newline_at_its_end() -> None:
    text = dumps(inspect_document(samples.report(samples.FAILING)))
    assert text.startswith('{\n  "schema_version": 1,\n  "tool": {\n    "name": "fa-forensics",')
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")
    assert text.isascii()
    assert text == dumps(inspect_document(samples.report(samples.FAILING)))


def test_order_of_the_input_does_not_show_where_order_says_nothing() -> None:
    target = replace(samples.FAILING, skipped=(Skipped("b", "y"), Skipped("a", "x")))
    turned = replace(
        target,
        skipped=target.skipped[::-1],
        undefined=target.undefined[::-1],
        missing=target.missing[::-1],
        links_with=target.links_with[::-1],
        gpu_code=target.gpu_code[::-1],
        elf=dict(reversed(list((target.elf or {}).items()))),
    )
    assert dumps(inspect_document(samples.report(turned))) == dumps(
        inspect_document(samples.report(target))
    )


def test_lists_are_sorted_and_numbers_sort_as_numbers() -> None:
    images = tuple(GpuCode("cubin", arch, 1, 1) for arch in ("sm_100", "sm_90a", "sm_80", "sm_90"))
    got = target_of(
        replace(samples.FAILING, gpu_code=images, links_with=("2.10.0", "2.9.1", "2.9.1"))
    )
    assert [image["arch"] for image in got["gpu_code"]] == ["sm_80", "sm_90", "sm_90a", "sm_100"]
    assert got["links_with"] == ["2.9.1", "2.10.0"]
    assert got["missing"] == sorted(name for _, name, _ in samples.MISSING)
    names = [bound["symbol"] for bound in got["undefined"]]
    assert names == sorted(names)


def test_order_that_says_something_is_kept() -> None:
    got = target_of(samples.FAILING)
    assert [finding["code"] for finding in got["findings"]] == ["FA201", "FA202"]
    assert got["findings"][0]["help"] == list(samples.DRIFT.help)
    assert got["elf"]["needed"] == list(samples.FOUND)
    assert got["elf"]["compilers"][0] == "GCC: (Debian 12.2.0-14) 12.2.0"


def test_evidence_is_an_object_and_what_is_unknown_is_null() -> None:
    got = target_of(samples.FAILING)
    assert got["member"] is None
    assert got["findings"][0]["evidence"][0] == {
        "text": "needs _ZN3c104cuda9SetDeviceEi = c10::cuda::SetDevice(int)",
        "file": samples.PATH,
        "table": ".rela.plt",
        "entry": "46",
        "symbol": "_ZN3c104cuda9SetDeviceEi",
        "version": None,
    }
    unreadable = target_of(samples.UNREADABLE)
    assert unreadable["elf"] is None
    assert unreadable["cuobjdump"] is None
    assert unreadable["problem"] == "the file ends after 4096 of 323359688 bytes"


def test_every_field_of_the_report_is_in_the_document() -> None:
    """A field added to a dataclass must not be forgotten by the view."""
    target = inspect_document(samples.report(samples.FAILING))["targets"]
    assert isinstance(target, list)
    assert set(target[0]) == set(samples.FAILING.__dataclass_fields__)
    answers = why_document(samples.why(samples.DRIFT_ANSWER))["answers"]
    assert isinstance(answers, list)
    assert set(answers[0]) == set(samples.DRIFT_ANSWER.__dataclass_fields__)
    assert why_document(replace(samples.why(), problem="no torch"))["problem"] == "no torch"
    assert set(target[0]["findings"][0]) == set(samples.DRIFT.__dataclass_fields__)
    assert set(target[0]["undefined"][0]) == set(samples.BOUND[0].__dataclass_fields__)
    assert set(target[0]["cuobjdump"]) == set(samples.WITNESS.__dataclass_fields__)


def test_an_error_is_a_legal_document() -> None:
    assert error_document("no such file: a.so", None, 2) == {
        "schema_version": 1,
        "tool": {"name": "fa-forensics", "version": __version__},
        "environment": None,
        "targets": [],
        "error": {"message": "no such file: a.so", "hint": None, "exit_code": 2},
    }
    document = error_document("m", "h", 3, command="why")
    assert document["answers"] == []
    assert "targets" not in document


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/tmp/\udcff.so", "/tmp/\\xff.so"),  # a byte that is no UTF-8, as os.fsdecode gives it
        ("/tmp/\ud800.so", "/tmp/\\xed\\xa0\\x80.so"),
        ("/tmp/\U0001f600é\x1b\u202e.so", "/tmp/\U0001f600é\x1b\u202e.so"),
    ],
)
def test_names_that_are_no_unicode_text_make_a_legal_document(name: str, shown: str) -> None:
    text = dumps(inspect_document(samples.report(replace(samples.HEALTHY, path=name))))
    assert text.isascii()
    got = json.loads(text)["targets"][0]["path"]
    assert got == shown
    got.encode("utf-8")  # lone surrogates would raise here


def test_values_without_a_json_form_are_refused() -> None:
    with pytest.raises(TypeError, match="bytes has no place in a report"):
        target_of(replace(samples.HEALTHY, elf={**samples.ELF, "machine": b"x86_64"}))
    with pytest.raises(ValueError, match="not JSON compliant"):
        target_of(replace(samples.HEALTHY, elf={**samples.ELF, "size_bytes": float("nan")}))


def test_tuples_in_the_facts_become_lists() -> None:
    got = target_of(replace(samples.HEALTHY, elf={**samples.ELF, "needed": ("b", "a")}))
    assert got["elf"]["needed"] == ["b", "a"]
