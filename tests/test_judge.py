"""The real load is held against what was said before it; a contradiction is never hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.contexts import SET_DEVICE, context, lost, resolution

from fa_forensics import judge
from fa_forensics.confirm.model import Confirmation
from fa_forensics.facts.environment import find_environment
from fa_forensics.report import Finding
from fa_forensics.resolve import search
from fa_forensics.resolve.environment_process import open_linker
from fa_forensics.resolve.resolution import Library
from fa_forensics.rules.every import ALL_RULES
from fa_forensics.rules.verdict import in_loader_order, static_verdict

LOADS = Confirmation("loads", "it loads", exit_code=0)
MISS = Library("libcudart.so.12", "/env/torch/lib/libtorch_cuda.so", None, "not found")


def combined(real: Confirmation, **facts: Any) -> judge.Judgement:
    ctx = context(**facts)
    judged = [item for rule in ALL_RULES for item in rule(ctx)]
    verdict, headline = static_verdict(ctx, in_loader_order(judged))
    return judge.combine(ctx, judged, verdict, headline, real)


def severities(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {finding.code: finding.severity for finding in findings}


def test_a_load_that_succeeds_confirms_a_file_without_a_complaint() -> None:
    result = combined(LOADS)
    assert (result.verdict, result.confirm.status) == ("loads", "confirmed")


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"resolution": lost("libavutil.so.58")}, "FA202"),
        ({"resolution": resolution(torch_misses=(MISS,))}, "FA603"),
    ],
)
def test_a_load_that_succeeds_refutes_an_error_and_takes_it_back(
    facts: dict[str, Any], code: str
) -> None:
    result = combined(LOADS, **facts)
    assert (result.verdict, result.confirm.status) == ("loads", "refuted")
    found = severities(result.findings)
    assert found[code] == "note"
    assert found["FA902"] == "warning"
    assert "error" not in found.values()


def test_a_crash_where_a_failure_was_predicted_is_not_laid_at_the_initialisers() -> None:
    real = Confirmation("crashed", "it crashed", signal="SIGBUS")
    predicted = combined(real, resolution=lost("libavutil.so.58"))
    surprising = combined(real)
    notes = {
        name: next(f.notes for f in result.findings if f.code == "FA904")
        for name, result in (("predicted", predicted), ("surprising", surprising))
    }
    assert not any("found every symbol" in note for note in notes["predicted"])
    assert any("found every symbol" in note for note in notes["surprising"])
    assert predicted.confirm.status == "confirmed"
    assert surprising.confirm.status == "refuted"


def test_a_time_out_before_the_file_says_nothing_about_it() -> None:
    result = combined(Confirmation("torch-import-failed", "It took too long."))
    assert (result.verdict, result.confirm.status) == ("links", "not-run")
    assert severities(result.findings) == {}


def test_a_torch_that_does_not_import_is_an_error_of_its_own() -> None:
    real = Confirmation("torch-import-failed", "torch does not import", exit_code=0)
    result = combined(real, missing=(SET_DEVICE,))
    assert result.verdict == "fails"
    assert {"FA905", "FA201"} <= severities(result.findings).keys()


def test_a_damaged_loader_cache_is_not_a_fault_of_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "ld.so.cache"
    cache.write_bytes(b"nonsense")
    make = search.Searcher.__init__

    def with_cache(self: search.Searcher, machine: int, loader: str | None, path: Any) -> None:
        make(self, machine, loader, path, str(cache))

    monkeypatch.setattr(search.Searcher, "__init__", with_cache)
    linker = open_linker(find_environment(None, None, {}))
    try:
        linker.process.searcher.in_cache("libc.so.6")
        assert any(str(cache) in text for text in linker.process.searcher.problems)
        assert linker.problems == []
    finally:
        linker.close()
