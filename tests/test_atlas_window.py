"""*Links with* is what real libraries export: recorded rows, names of siblings, names of nobody."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.material import HUSK_IDS, husk_file, require

from benchmarks.built_on import Placed, place
from fa_forensics.atlas.store import Atlas
from fa_forensics.atlas.window import TorchSymbol, links_with

TRUTH = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "truth" / "link_truth.json").read_text("utf-8")
)
ROWS = {
    f"{row['pkg'].replace('-', '_')}-{row['version']}:{row['so']}": row for row in TRUTH["rows"]
}
OF_HUSKS = sorted(set(ROWS) & set(HUSK_IDS))
REAL = Path(os.environ.get("FA_FORENSICS_REAL_DIR", "/nonexistent"))
OF_REAL = [key for key in sorted(ROWS) if REAL.joinpath(*key.split(":")).is_file()]

#: Exported from 2.3.0 to 2.7.1, from 2.8.0 on, and by every release.
OLD, NEW = "_ZN3c104cuda9SetDeviceEa", "_ZN3c104cuda9SetDeviceEab"
ALWAYS = "_ZN3c1010TensorImpl12HandleResizeEv"
NOBODY = "_ZN2at24no_torch_ever_had_this_oneEv"


@cache
def atlas() -> Atlas:
    return Atlas.open()


def symbols(*names: str) -> list[TorchSymbol]:
    return [TorchSymbol(name, "torch/c10") for name in names]


def placed(path: Path) -> Placed:
    found = place(str(path), path.name, atlas())
    assert found is not None
    return found


def compare(placed_file: Placed, row: dict[str, object]) -> None:
    """One recorded row: the releases and the number of names, exactly."""
    known = set(TRUTH["releases"])
    assert [r for r in placed_file.window.releases if r in known] == row["links_with"]
    assert len(placed_file.window.names) == row["n_torch_symbols"]


def test_most_husks_have_a_recorded_row() -> None:
    assert len(OF_HUSKS) >= 20


@pytest.mark.parametrize("key", OF_HUSKS)
def test_recorded_row_comes_out_exactly(key: str) -> None:
    compare(placed(husk_file(key)), ROWS[key])


@pytest.mark.real
@pytest.mark.parametrize(
    "key", OF_REAL or [pytest.param("", marks=pytest.mark.skip("no real files in DIR"))]
)
def test_recorded_row_of_a_real_file_comes_out_exactly(key: str) -> None:
    compare(placed(REAL.joinpath(*key.split(":"))), ROWS[key])


def test_each_other_release_says_what_it_lacks() -> None:
    window = links_with(symbols(OLD, ALWAYS), "x86_64", atlas(), ())
    assert window.releases == ("2.3.0", "2.3.1", "2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0",
                               "2.7.0", "2.7.1")  # fmt: skip
    assert set(window.missing.values()) == {(OLD,)}
    assert set(window.missing) | set(window.releases) == set(atlas().releases())
    assert window.symbols == 2 and window.nowhere == ()


def test_names_that_exclude_each_other_leave_no_release_and_none_of_them_is_nowhere() -> None:
    window = links_with(symbols(OLD, NEW), "x86_64", atlas(), ())
    assert window.releases == () and window.nowhere == ()
    assert window.missing["2.7.1"] == (NEW,) and window.missing["2.8.0"] == (OLD,)
    assert window.missing["2.2.2"] == (OLD, NEW)


def test_a_name_that_a_sibling_defines_is_not_asked_of_torch() -> None:
    window = links_with(symbols(OLD, NEW), "x86_64", atlas(), {NEW})
    assert window.provided_by_siblings == (NEW,) and window.names == (OLD,)
    assert window.releases[-1] == "2.7.1"


def test_a_name_of_no_release_is_told_apart_and_no_release_is_complete() -> None:
    window = links_with(symbols(OLD, NOBODY), "x86_64", atlas(), ())
    assert window.nowhere == (NOBODY,) and window.releases == ()
    assert window.missing["2.2.2"] == (OLD,) and "2.4.0" not in window.missing


def test_machines_have_windows_of_their_own() -> None:
    # PyPI's aarch64 wheels turned to the new std::string a release before those for x86_64.
    name = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
    x86_64 = links_with(symbols(name), "x86_64", atlas(), ()).releases
    aarch64 = links_with(symbols(name), "aarch64", atlas(), ()).releases
    assert x86_64[-1] == "2.6.0" and aarch64[-1] == "2.5.1"


def test_weak_undefined_names_do_not_count(tmp_path: Path) -> None:
    require("g++")
    source = (
        "namespace c10 { namespace cuda { void SetDevice(signed char); "
        "__attribute__((weak)) void SetDevice(signed char, bool); } }\n"
        'extern "C" void run() { c10::cuda::SetDevice((signed char)0);'
        " if (&run) c10::cuda::SetDevice((signed char)0, true); }\n"
    )
    path = tmp_path / "weak.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)],
        input=source, text=True, check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    window = placed(path).window
    assert window.names == (OLD,) and window.releases[-1] == "2.7.1"
