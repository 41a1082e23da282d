"""The package index: which wheel is chosen, what is fetched of it, and when the network fails."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytest.importorskip("pypi_simple", reason="pypi-simple is not installed")
pytest.importorskip("remotezip", reason="remotezip is not installed")

from support.fake_index import FakeIndex
from support.torch_wheels import build, fake_torch_index, files_below, torch_wheel, wheel_name

from fa_forensics.atlas.build import __main__ as command
from fa_forensics.atlas.build import index, pins, torch
from fa_forensics.atlas.store import Atlas
from fa_forensics.errors import ForensicsError

SOURCES = Path(command.__file__).parent


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    with fake_torch_index(monkeypatch) as index_of_this_test:
        yield index_of_this_test


# --- which wheel ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "others",
    [
        ("2.10.0-cp311-cp311-manylinux_2_28_x86_64", "2.10.0-2-cp311-cp311-manylinux_2_28_x86_64"),
        ("2.10.0-9-cp310-cp310-manylinux_2_28_x86_64",),
        ("2.10.0-9-cp311-cp311-manylinux_2_28_aarch64",),
        ("2.10.0-9-cp311-cp311t-manylinux_2_28_x86_64",),
        ("2.10.1-9-cp311-cp311-manylinux_2_28_x86_64",),
        ("2.10.0-9-cp311-cp311-win_amd64",),
    ],
)
def test_the_highest_build_for_the_reference_python_is_chosen(
    served: FakeIndex, others: tuple[str, ...]
) -> None:
    best = "torch-2.10.0-3-cp311-cp311-manylinux_2_28_x86_64.whl"
    for name in (*(f"torch-{other}.whl" for other in others), best):
        served.add(name, b"")
    assert index.choose_wheel(index.list_wheels("torch"), "2.10.0").filename == best


def test_without_the_reference_python_the_newest_is_chosen(served: FakeIndex) -> None:
    for python in ("cp37-cp37m", "cp310-cp310", "cp39-cp39"):
        served.add(wheel_name("1.12.0", f"{python}-manylinux1_x86_64"), b"")
    chosen = index.choose_wheel(index.list_wheels("torch"), "1.12.0")
    assert chosen.interpreters == ("cp310",)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("nvidia-nccl-cu12==2.18.1", {"nvidia-nccl-cu12": "2.18.1"}),
        ("nvidia-nccl-cu11 (==2.14.3)", {"nvidia-nccl-cu11": "2.14.3"}),
        ("nvidia_nccl-cu12 >=2,<=2.20", {"nvidia-nccl-cu12": "2.20"}),
        ("nvidia-nccl-cu12==2.21.0", {"nvidia-nccl-cu12": "2.21"}),
        ("nvidia-nccl-cu12==2.1.*", {"nvidia-nccl-cu12": "2.1.9"}),
        ("nvidia-nccl-cu12==1 ; platform_machine == 'aarch64'", {}),
        ("nvidia-nccl-cu12==1 ; sys_platform == 'win32'", {}),
        ("nvidia-nccl-cu12==1 ; extra == 'nccl'", {}),
        ("triton==3.0.0", {}),
    ],
)
def test_pins_are_those_that_hold_on_linux(line: str, found: Mapping[str, str]) -> None:
    versions = ["2.0", "2.1.3", "2.1.9", "2.20", "2.21", "2.20.5rc1"]
    assert pins.nvidia_pins([line], "x86_64", "3.11", lambda _: versions, lambda *_: []) == found


def test_a_range_that_nothing_fits_is_told() -> None:
    with pytest.raises(ForensicsError, match="no version of nvidia-nccl-cu12"):
        pins.nvidia_pins(["nvidia-nccl-cu12>3"], "x86_64", "3.11", lambda _: ["2"], lambda *_: [])


# --- the network ------------------------------------------------------------------------------


def test_only_torchs_own_libraries_are_fetched(served: FakeIndex, tmp_path: Path) -> None:
    contents = torch_wheel("2.4.0")
    served.add(wheel_name("2.4.0"), contents)
    torch.write_record(str(tmp_path), "2.4.0", "x86_64")
    members = {
        m.filename: m.header_offset for m in zipfile.ZipFile(io.BytesIO(contents)).infolist()
    }
    starts = {
        int(asked.partition("=")[2].split("-")[0])
        for asked in served.ranges(wheel_name("2.4.0"))
        if not asked.startswith("bytes=-")  # the table of contents, with what lies before it
    }
    assert starts == {members[f"torch/lib/lib{name}.so"] for name in ("c10", "torch_python")}


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(
    served: FakeIndex, tmp_path: Path
) -> None:
    name = wheel_name("2.4.0")
    served.add(name, torch_wheel("2.4.0"))
    whole = Path(torch.write_record(str(tmp_path / "whole"), "2.4.0", "x86_64"))
    before = served.ranges(name)
    served.asked.clear()
    served.breaks[name] = 3
    torn = Path(torch.write_record(str(tmp_path / "torn"), "2.4.0", "x86_64"))
    assert torn.read_bytes() == whole.read_bytes()
    again = [asked for asked in served.ranges(name) if asked not in before]
    assert len(again) == 3


def test_a_failure_half_way_leaves_nothing_and_the_next_run_goes_on(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for release in ("2.3.0", "2.4.0"):
        served.add(wheel_name(release), torch_wheel(release))
    served.add(wheel_name("2.4.0", "cp311-cp311-manylinux1_aarch64"), torch_wheel("2.4.0"))
    assert build(tmp_path, "torch", "2.4.0", "--machine", "x86_64") == 0
    tables = files_below(tmp_path / "data")
    served.breaks[wheel_name("2.3.0")] = 1000
    assert build(tmp_path, "torch", "--machine", "x86_64") == 3
    told = capsys.readouterr().err
    assert f"error: {wheel_name('2.3.0')} could not be read: the transfer broke off after" in told
    assert "Run the same command again" in told and "Traceback" not in told
    assert list(files_below(tmp_path / "records" / "torch")) == ["2.4.0-x86_64.json.xz"]
    assert files_below(tmp_path / "data") == tables
    served.breaks.clear()
    served.asked.clear()
    assert build(tmp_path, "torch", "--machine", "x86_64") == 0
    assert served.ranges(wheel_name("2.4.0")) == []
    assert Atlas.open(str(tmp_path / "data")).releases() == ("2.3.0", "2.4.0")


@pytest.mark.parametrize("status", [404, 503])
def test_an_index_that_does_not_answer_is_one_sentence(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    served.status = status
    assert build(tmp_path, "torch") == 3
    told = capsys.readouterr().err
    assert told.startswith("error: the package index") and "Traceback" not in told
    assert files_below(tmp_path) == {}


def test_no_index_at_all_is_one_sentence(
    served: FakeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    assert build(tmp_path, "--check") == 3
    told = capsys.readouterr().err
    assert "the package index's page of torch could not be read" in told
    assert "object at 0x" not in told


def test_a_damaged_wheel_is_told(served: FakeIndex, tmp_path: Path) -> None:
    contents = bytearray(torch_wheel("2.4.0"))
    contents[200:300] = b"\0" * 100
    served.add(wheel_name("2.4.0"), bytes(contents))
    with pytest.raises(ForensicsError, match="arrived damaged"):
        torch.write_record(str(tmp_path), "2.4.0", "x86_64")
    assert files_below(tmp_path) == {}


def test_no_address_of_an_index_stands_in_the_source() -> None:
    for source in SOURCES.glob("*.py"):
        assert not re.search(r"://[\w.]+|\w\.(org|com|io)\b", source.read_text()), source
