"""What ``inspect`` says of real files under real torches' exports is what really happens.

Oracles: recorded dlopens of the real wheels under real torch builds, recorded sets of
releases whose libraries export every name (nm), and ``ldd -r`` on the same trees here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import document_of, husk_under
from support.material import HUSK_IDS, husk_file, husks_of, stub

from fa_forensics.facts.owner import is_torch
from fixtures import husk
from fixtures.stub_torch import load_record, recorded_versions

TRUTH = Path(__file__).parent.parent / "fixtures/truth"
CUDA_BUILDS = tuple(version for version in recorded_versions() if "+cu" in version)


@cache
def husk_of_wheel() -> dict[tuple[str, str], str]:
    return {(h.wheel, m.path): f"{h.name}:{m.path}" for h in husk.list_husks() for m in h.members}


def rows(file: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((TRUTH / file).read_text())["rows"]
    return [row for row in loaded if (row["wheel"], row["so"]) in husk_of_wheel()]


LOADS = [
    pytest.param(row, id=f"{row['torch']} {husk_of_wheel()[row['wheel'], row['so']]}")
    for row in rows("dlopen_truth.json")
    if row["torch"] in recorded_versions()
]


def test_the_recorded_loads_cover_every_torch_build_and_both_outcomes() -> None:
    found: list[Any] = [param.values[0] for param in LOADS]
    assert len(found) >= 100
    assert {row["torch"] for row in found} == set(CUDA_BUILDS)
    assert 15 <= sum(row["result"] == "OK" for row in found) <= len(found) - 50


@pytest.mark.parametrize("row", LOADS)
def test_verdict_and_first_complaint_are_those_of_the_real_loader(row: dict[str, Any]) -> None:
    target = husk_under(husk_of_wheel()[row["wheel"], row["so"]], row["torch"])
    failure = target["elf"]["first_failure"]
    if row["result"] == "OK":
        assert failure is None
        assert target["verdict"] in ("loads", "links")
        assert target["missing"] == []
        assert not any(f["severity"] == "error" for f in target["findings"])
    else:
        assert oracles.short_text(failure) == oracles.short_text(row["result"])
        assert target["verdict"] == "fails"
        named = failure.split(": ")[2 if "undefined symbol" in failure else 0]
        first = target["findings"][0]
        assert first["severity"] == "error"
        assert named in json.dumps(first), "the finding listed first is not what kills the import"


@pytest.mark.parametrize(
    "row",
    [pytest.param(r, id=f"{r['pkg']} {r['version']} {r['so']}") for r in rows("link_truth.json")],
)
def test_torch_symbols_are_missing_exactly_outside_the_recorded_releases(
    row: dict[str, Any],
) -> None:
    identity = husk_of_wheel()[row["wheel"], row["so"]]
    for version in CUDA_BUILDS:
        target = husk_under(identity, version)
        gone = set(target["missing"])
        torch = [u["symbol"] for u in target["undefined"] if is_torch(u["owner"])]
        links = not gone & set(torch)
        assert links == (version.partition("+")[0] in row["links_with"]), version


@pytest.mark.parametrize("version", recorded_versions())
@pytest.mark.parametrize("identity", husks_of())
def test_missing_symbols_are_those_that_ldd_calls_undefined(identity: str, version: str) -> None:
    """``ldd -r`` with LD_LIBRARY_PATH on every directory of the torch tree that has a library.

    Set aside: Python's own names, which the interpreter provides and ldd does not see. Weak
    names are not reported by ldd either.
    """
    tree = stub(version)
    directories = sorted({tree.path(library).parent for library in tree.record.libraries()})
    path = husk_file(identity)
    undefined = {
        symbol
        for symbol, _version, file in oracles.ldd_undefined(path, directories)
        if file == str(path) and not symbol.startswith(("Py", "_Py"))
    }
    assert set(husk_under(identity, version)["missing"]) == undefined


def test_ldd_found_something_missing_at_all() -> None:
    counts = [len(husk_under(i, "2.13.0+cpu")["missing"]) for i in husks_of()]
    assert sum(count > 0 for count in counts) >= 10 and 0 in counts


@pytest.mark.parametrize("identity", husks_of("aarch64"))
def test_a_file_for_another_machine_is_read_but_not_resolved(identity: str) -> None:
    target = husk_under(identity, "2.4.0+cu121")
    assert target["verdict"] == "fails"
    assert target["findings"][0]["code"] == "FA101"
    assert "aarch64" in target["problem"]
    assert len(target["undefined"]) == len(oracles.nm_rows(husk_file(identity), "-u"))
    assert all(symbol["provider"] is None for symbol in target["undefined"])
    assert target["missing"] == []
    assert {"rule", "reason"} == set(target["skipped"][0])


@pytest.mark.parametrize("identity", HUSK_IDS)
def test_undefined_lists_what_nm_lists(identity: str) -> None:
    target = husk_under(identity, "2.4.0+cu121")
    ours = sorted(
        (u["symbol"], u["version"] or "", u["bind"] == "weak") for u in target["undefined"]
    )
    theirs = sorted(
        (name, version, letter in "wv")
        for letter, (name, version, _) in oracles.nm_rows(husk_file(identity), "-u")
    )
    assert ours == theirs


def test_providers_are_the_libraries_whose_records_define_the_name() -> None:
    """Under 2.4.0 each torch symbol of a file that links comes from a library that has it."""
    version = "2.4.0+cu121"
    by_path = {
        str(stub(version).path(library)): library.names()
        for library in load_record(version).libraries()
    }
    checked = 0
    for symbol in husk_under(
        "vllm_flash_attn-2.6.2:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", version
    )["undefined"]:
        if symbol["provider"] in by_path:
            assert symbol["symbol"] in by_path[symbol["provider"]]
            checked += 1
        elif symbol["owner"] == "python":
            assert "python" in symbol["provider"]
        else:
            assert not is_torch(symbol["owner"]), symbol
    assert checked > 60


def test_the_same_run_gives_the_same_document(tmp_path: Path) -> None:
    path = husk_file("xformers-0.0.34:xformers/_C.so")
    python = stub("2.6.0+cu124").python
    assert document_of(path, python) == document_of(path, python)


def test_all_causes_are_found_in_one_pass() -> None:
    """Under CUDA 13's torch this CUDA 12, pre-cxx11 file has three independent faults."""
    target = husk_under(
        "autoawq_kernels-0.0.9:awq_ext.cpython-311-x86_64-linux-gnu.so", "2.14.1+cu130"
    )
    codes = [finding["code"] for finding in target["findings"]]
    assert codes[0] == "FA602"
    assert {"FA301", "FA201"} & set(codes)
    assert target["cxx11_abi"] == "pre-cxx11"
