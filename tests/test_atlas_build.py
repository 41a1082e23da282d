"""The builder of the atlas: wheels on an index become records, records become tables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pypi_simple", reason="pypi-simple is not installed")
pytest.importorskip("remotezip", reason="remotezip is not installed")

from support import fake_index, oracles
from support.fake_index import FakeIndex
from support.torch_wheels import (
    build,
    fake_torch_index,
    files_below,
    library,
    nm_by_bind,
    torch_wheel,
    wheel_name,
)

from fa_forensics.atlas.build import torch
from fa_forensics.atlas.build.progress import Progress
from fa_forensics.atlas.build.records import load_record
from fa_forensics.atlas.store import Atlas
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    with fake_torch_index(monkeypatch) as index_of_this_test:
        yield index_of_this_test


# --- records ----------------------------------------------------------------------------------


def test_a_record_holds_what_nm_lists_by_bind() -> None:
    path = library()
    opened = DynamicObject.open(str(path))
    found = {bind: set(names) for bind, names in torch.exported_names(opened).items()}
    opened.close()
    assert found == nm_by_bind(path)
    assert {"_ZN3c1015global_functionEi", "_ZN3c1011global_dataE"} <= found["global"]
    assert "_ZN3c1018protected_functionEv" in found["global"]
    assert "_ZN3c1013weak_functionEv" in found["weak"]
    assert found["unique"]  # the registry's own vector
    assert not any("hidden_function" in name for names in found.values() for name in names)


def test_a_wheel_on_the_index_becomes_a_record(served: FakeIndex, tmp_path: Path) -> None:
    requires = (
        'nvidia-cuda-runtime-cu12 (==12.1.105) ; platform_system == "Linux"',
        'nvidia-nvtx-cu12==1.0; platform_machine == "aarch64"',
        'cuda-toolkit[cublas]==13.0.2; platform_system == "Linux"',
        "filelock",
    )
    toolkit = b"Name: cuda-toolkit\nRequires-Dist: nvidia-cublas==13.1.*; extra == 'cublas'\n\n"
    served.add("cuda_toolkit-13.0.2-py2.py3-none-any.whl",
               fake_index.wheel({"cuda_toolkit-13.0.2.dist-info/METADATA": toolkit}))  # fmt: skip
    for version in ("13.0.9", "13.1.0.3", "13.1.0.12", "13.2.0"):
        served.add(f"nvidia_cublas-{version}-py3-none-manylinux_2_27_x86_64.whl", b"")
    name = wheel_name("2.4.0")
    served.add(name, torch_wheel("2.4.0", requires=requires), "2024-07-25")
    served.add(wheel_name("2.4.0", "cp38-cp38-manylinux1_x86_64"), b"")
    served.add(wheel_name("2.4.0", "cp313-cp313t-manylinux1_x86_64"), b"", "2024-10-01")
    served.add(wheel_name("2.4.0", "cp39-cp39-win_amd64"), b"")
    record = load_record(torch.write_record(str(tmp_path), "2.4.0", "x86_64"))
    exports = {bind: sorted(names) for bind, names in nm_by_bind(library()).items()}
    assert record.pop("libraries") == {"libc10.so": exports, "libtorch_python.so": exports}
    assert re.match(r"GCC: \(", record.pop("gcc"))
    assert record.pop("needed") == sorted(oracles.readelf_dynamic(library()).needed)
    assert record == {
        "format": 1,
        "release": "2.4.0",
        "machine": "x86_64",
        "version": "2.4.0+cu121",
        "cuda": "12.1",
        "flavour": "cxx11",
        "date": "2024-07-24",
        "wheel": name,
        "pythons": ["3.8", "3.11", "3.13t"],
        "requires": {"nvidia-cublas": "13.1.0.12", "nvidia-cuda-runtime-cu12": "12.1.105"},
        "pybind11": "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__",
    }


def test_the_same_wheel_gives_the_same_bytes(served: FakeIndex, tmp_path: Path) -> None:
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    first, second = (
        Path(torch.write_record(str(tmp_path / name), "2.4.0", "x86_64")).read_bytes()
        for name in ("a", "b")
    )
    assert first == second


def test_a_damaged_record_is_told_and_how_to_read_it_again(tmp_path: Path) -> None:
    path = tmp_path / "2.4.0-x86_64.json.xz"
    path.write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(ForensicsError, match="is damaged") as caught:
        load_record(str(path))
    assert caught.value.hint is not None and f"rm {path}" in caught.value.hint


# --- the command ------------------------------------------------------------------------------


def test_one_release_is_added_from_the_shipped_tables_and_its_wheel_alone(
    served: FakeIndex, tmp_path: Path
) -> None:
    extra = "namespace c10 { int only_in_the_new_one() { return 5; } }"
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    assert build(tmp_path, "torch") == 0
    for path in (tmp_path / "records").rglob("*.xz"):
        path.unlink()
    served.add(wheel_name("2.16.0"), torch_wheel("2.16.0", extra))
    served.asked.clear()
    assert build(tmp_path, "torch", "2.16.0") == 0
    assert served.ranges(wheel_name("2.4.0")) == []
    atlas = Atlas.open(str(tmp_path / "data"))
    assert atlas.releases_of("_ZN3c1019only_in_the_new_oneEv") == ("2.16.0",)
    assert atlas.releases_of("_ZN3c1015global_functionEi") == ("2.4.0", "2.16.0")
    added = files_below(tmp_path / "data")
    assert build(tmp_path, "torch", "2.4.0", "2.16.0") == 0
    assert build(tmp_path, "compile", "--fresh") == 0
    assert files_below(tmp_path / "data") == added


def test_check_says_which_published_releases_are_missing(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for release in ("1.11.0", "2.3.0", "2.4.0", "2.5.0rc1"):
        served.add(wheel_name(release), torch_wheel(release))
    served.add(wheel_name("2.4.0", "cp311-cp311-manylinux1_aarch64"), torch_wheel("2.4.0"))
    assert build(tmp_path, "torch", "2.4.0", "--machine", "x86_64") == 0
    capsys.readouterr()
    assert build(tmp_path, "--check") == 1
    said = capsys.readouterr().out.splitlines()
    assert said == ["torch 2.4.0 aarch64: missing", "torch 2.3.0 x86_64: missing"]
    assert build(tmp_path, "torch") == 0
    assert build(tmp_path, "--check") == 0
    assert "every published release is in the tables" in capsys.readouterr().out


def test_a_release_that_was_published_again_is_told_and_read_again_when_named(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = wheel_name("2.4.0"), wheel_name("2.4.0-1")
    served.add(old, torch_wheel("2.4.0"))
    assert build(tmp_path, "torch") == 0
    served.add(new, torch_wheel("2.4.0"))
    assert build(tmp_path, "--check") == 0
    assert f"read from {old}, now there is {new}" in capsys.readouterr().out
    assert build(tmp_path, "torch", "2.4.0") == 0
    built = Atlas.open(str(tmp_path / "data")).build("2.4.0")
    assert built is not None and built.wheel == new
    served.asked.clear()
    assert build(tmp_path, "torch", "2.4.0") == 0
    assert served.asked == []


def test_an_unknown_release_is_a_usage_error(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.add(wheel_name("2.4.0"), torch_wheel("2.4.0"))
    served.add(wheel_name("2.4.0", "cp311-cp311-manylinux1_aarch64"), torch_wheel("2.4.0"))
    assert build(tmp_path, "torch", "2.44.0") == 2
    told = capsys.readouterr().err
    assert "no torch 2.44.0" in told and "newest one there is 2.4.0" in told


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), _Terminal()])
def test_progress_is_lines_in_a_file_and_a_bar_on_a_terminal(stream: io.StringIO) -> None:
    progress = Progress(2, stream)
    progress.start("torch 2.4.0 x86_64")
    progress.add("torch 2.4.0 x86_64", 756_600_000)
    progress.done("torch 2.4.0 x86_64")
    progress.close()
    text = stream.getvalue()
    assert "[1/2] torch 2.4.0 x86_64: 756.6 MB read in 0 s\n" in text
    assert ("[############------------] 1/2" in text) == stream.isatty()
    assert ("\r" in text) == stream.isatty()
