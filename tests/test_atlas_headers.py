"""The table of headers holds what torch's own headers say in code, and ``--check`` misses none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fake_index import FakeIndex
from support.torch_wheels import HEADER, build, fake_torch_index, torch_wheel, wheel_name

from fa_forensics.atlas.build.headers import read_headers, record_path
from fa_forensics.atlas.build.records import load_record
from fa_forensics.atlas.headers import Headers
from fa_forensics.errors import ForensicsError


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    with fake_torch_index(monkeypatch) as index:
        yield index


def test_record_has_code_alone_and_of_torchs_own_headers(served: FakeIndex) -> None:
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    record = read_headers("2.4.0")
    assert {"c10", "Device", "index", "TORCH_INTERNAL_ASSERT"} <= set(record["words"])
    assert not [word for word in record["words"] if word.startswith("a_word_of")]
    assert "not_of_torch" not in record["words"]
    assert record["headers"] == ["c10/core/Device.h"]
    first = HEADER.splitlines().index("TORCH_INTERNAL_ASSERT(") + 1
    assert record["lines"] == {"c10/core/Device.h": [first, first + 1]}


def test_headers_are_fetched_in_one_request(served: FakeIndex) -> None:
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    read_headers("2.4.0")
    # One for the table of contents at the end, one for all headers.
    assert len(served.ranges(wheel_name("2.4.0"))) == 2


def test_adding_a_torch_release_adds_its_headers_and_check_misses_none(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    assert build(tmp_path, "torch") == 0
    assert Headers.open(str(tmp_path / "data")).releases == ("2.4.0",)
    assert Headers.open(str(tmp_path / "data")).wheels == {"2.4.0": wheel_name("2.4.0")}
    for name in ("headers.json", "headers.trie"):
        (tmp_path / "data" / name).unlink()
    assert build(tmp_path, "--check") == 1
    assert "headers of torch 2.4.0: missing" in capsys.readouterr().out
    assert build(tmp_path, "headers") == 0
    assert build(tmp_path, "--check") == 0


def test_damaged_record_is_told_and_how_to_read_it_again(tmp_path: Path) -> None:
    path = record_path(str(tmp_path), "2.4.0")
    Path(path).write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(ForensicsError, match="is damaged") as caught:
        load_record(path)
    assert caught.value.hint is not None and f"rm {path}" in caught.value.hint
