"""The CUDA tables: wheels on an index become records, records tables, and tables answer as nm."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("pypi_simple", reason="pypi-simple is not installed")
pytest.importorskip("remotezip", reason="remotezip is not installed")

from support import fake_index
from support.cuda_wheels import bulk, gnu_hash_library, library, nm_exports, wheel, wheel_name
from support.fake_index import FakeIndex

from fa_forensics.atlas.build import __main__ as command
from fa_forensics.atlas.build import compile_cuda as compiler
from fa_forensics.atlas.build import cuda, cuda_wheel, index
from fa_forensics.atlas.build.progress import concurrently
from fa_forensics.atlas.build.records import load_record
from fa_forensics.atlas.libraries import CudaLibraries, LibraryRelease
from fa_forensics.errors import AtlasDamaged, ForensicsError

RUNTIME, NCCL, CUDNN = "nvidia-cuda-runtime-cu12", "nvidia-nccl-cu12", "nvidia-cudnn-cu12"

CUDART = {
    "12.1.105": ("cudaMalloc", "__cudaGetKernel"),
    "12.4.127": ("cudaMalloc", "__cudaGetKernel", "cudaGraphNew"),
    "12.10.3": ("cudaMalloc", "cudaGraphNew"),
}


def cudart(version: str) -> Path:
    return gnu_hash_library("libcudart.so.12", {"libcudart.so.12": CUDART[version]})


def nccl(*names: str) -> Path:
    return gnu_hash_library("libnccl.so.2", {"": names})


def publish(served: FakeIndex, *versions: str) -> None:
    for version in versions:
        served.add(
            wheel_name(RUNTIME, version), wheel({"libcudart.so.12": cudart(version)}), "2024-01-02"
        )


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """An index with the projects of these tests, and no waiting."""
    settings = cuda_wheel.settings()
    settings["distributions"] = [
        {"name": RUNTIME, "line": 12},
        {"name": NCCL, "line": 12},
        {"name": "nvidia-nccl-cu13", "line": 13},
        {"name": CUDNN, "line": 12, "sample": True},
    ]
    settings |= {"sample_above": 20_000, "never": {"libcudnn_never.": "a test"}}
    for module in (cuda, cuda_wheel, compiler):
        monkeypatch.setattr(module, "settings", lambda: settings)
    monkeypatch.setattr(index, "FIRST_PAUSE", 0.0)
    with fake_index.serve() as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.address)
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.delenv("PIP_CERT", raising=False)
        for row in settings["distributions"]:
            found.files[row["name"]] = []
        yield found


def build(tmp_path: Path, *arguments: str) -> int:
    folders = ["--data", str(tmp_path / "data"), "--records", str(tmp_path / "records")]
    return command.main([*folders, *arguments])


def opened(tmp_path: Path) -> CudaLibraries:
    return CudaLibraries.open(str(tmp_path / "data"))


def files_below(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def by_table(tables: CudaLibraries, soname: str, version: str) -> set[tuple[str, str | None, bool]]:
    """(name, version, default) of all that the tables say of one library of one wheel."""
    found = set()
    for key, releases in tables.names():
        if any((r.soname, r.version) == (soname, version) for r in releases):
            name, at, of = key.partition("@")
            found.add((name, of.removeprefix("@") or None, not at or of.startswith("@")))
    return found


# --- from the index to the tables -------------------------------------------------------------


def test_the_tables_say_of_every_name_what_nm_says(served: FakeIndex, tmp_path: Path) -> None:
    publish(served, *CUDART)
    assert build(tmp_path, "cuda") == 0
    tables = opened(tmp_path)
    for version in CUDART:
        assert by_table(tables, "libcudart.so.12", version) == nm_exports(cudart(version))


def test_versions_are_ordered_by_number_and_a_gap_stays_a_gap(
    served: FakeIndex, tmp_path: Path
) -> None:
    publish(served, *CUDART)
    build(tmp_path, "cuda")
    tables = opened(tmp_path)
    assert tables.versions("libcudart.so.12") == ("12.1.105", "12.4.127", "12.10.3")
    versions = [r.version for r in tables.exported_by("libcudart.so.12", "__cudaGetKernel")]
    assert versions == ["12.1.105", "12.4.127"]
    first = tables.first_with("libcudart.so.12", "cudaGraphNew")
    assert first == LibraryRelease("libcudart.so.12", RUNTIME, "12.4.127")


def test_the_version_of_a_symbol_is_part_of_the_question(served: FakeIndex, tmp_path: Path) -> None:
    publish(served, "12.1.105")
    build(tmp_path, "cuda")
    tables = opened(tmp_path)
    asked = [
        tables.exported_by(soname, "cudaMalloc", version)
        for soname in ("libcudart.so.12", None)
        for version in ("libcudart.so.12", None)
    ]
    assert asked == [(LibraryRelease("libcudart.so.12", RUNTIME, "12.1.105"),)] * 4
    assert tables.exported_by(None, "cudaMalloc", "libcudart.so.11.0") == ()
    assert tables.exported_by("libnccl.so.2", "cudaMalloc") == ()
    assert tables.exported_by("libcudart.so.12", "cudaMall") == ()
    assert tables.symbol_versions("libcudart.so.12", "cudaMalloc") == ("libcudart.so.12",)
    assert tables.symbol_versions("libnccl.so.2", "cudaMalloc") == ()


def test_one_library_of_two_cuda_lines_is_ordered_by_its_version(
    served: FakeIndex, tmp_path: Path
) -> None:
    for project, version, names in (
        (NCCL, "2.20.5", ("ncclSend",)),
        (NCCL, "2.27.7", ("ncclSend", "ncclWin")),
        ("nvidia-nccl-cu13", "2.27.7", ("ncclSend", "ncclWin")),
        ("nvidia-nccl-cu13", "2.27.7.post1", ("ncclSend", "ncclWin")),
        ("nvidia-nccl-cu13", "2.9.1", ("ncclSend",)),
    ):
        served.add(wheel_name(project, version), wheel({"libnccl.so.2": nccl(*names)}))
    build(tmp_path, "cuda")
    tables = opened(tmp_path)
    assert [(r.version, r.distribution[-4:]) for r in tables.releases("libnccl.so.2")] == [
        ("2.9.1", "cu13"),
        ("2.20.5", "cu12"),
        ("2.27.7", "cu12"),
        ("2.27.7", "cu13"),
        ("2.27.7.post1", "cu13"),
    ]
    assert tables.versions("libnccl.so.2") == ("2.9.1", "2.20.5", "2.27.7", "2.27.7.post1")
    assert tables.first_with(None, "ncclWin") == LibraryRelease("libnccl.so.2", NCCL, "2.27.7")
    assert tables.symbol_versions("libnccl.so.2", "ncclWin") == (None,)


def test_of_two_libraries_the_first_is_that_of_the_oldest_cuda_line(
    served: FakeIndex, tmp_path: Path
) -> None:
    for project, soname in ((NCCL, "libz.so.2"), ("nvidia-nccl-cu13", "liba.so.3")):
        found = gnu_hash_library(soname, {soname: ("shared",)})
        served.add(wheel_name(project, "2.1"), wheel({soname: found}))
    build(tmp_path, "cuda")
    tables = opened(tmp_path)
    assert tables.first_with(None, "shared") == LibraryRelease("libz.so.2", NCCL, "2.1")
    assert [r.soname for r in tables.first_of_each("shared")] == ["liba.so.3", "libz.so.2"]
    assert tables.sonames() == ("liba.so.3", "libz.so.2")
    assert tables.first_with(None, "nobody_has_it") is None


def test_a_member_is_read_no_further_than_its_tables_reach(
    served: FakeIndex, tmp_path: Path
) -> None:
    front = gnu_hash_library("libf.so.1", {"libf.so.1": ("f",)}, bulk(3_000_000))
    old = library("libo.so.1", {"o": ("f",)}, bulk(3_000_000), "-Wl,--hash-style=sysv")
    served.add(wheel_name(NCCL, "1.0"), wheel({"libf.so.1": front, "libo.so.1": old}))
    read: list[int] = []
    record = cuda_wheel.read_wheel(cuda_wheel.published(NCCL)["1.0"], progress=read.append)
    how = {soname: found["read"] for soname, found in record["libraries"].items()}
    assert how == {"libf.so.1": "front", "libo.so.1": "whole"}
    assert old.stat().st_size < sum(read) < old.stat().st_size + front.stat().st_size
    for soname, path in (("libf.so.1", front), ("libo.so.1", old)):
        exports = {tuple(row) for row in record["libraries"][soname]["exports"]}
        assert exports == nm_exports(path)


# --- large wheels -----------------------------------------------------------------------------


def publish_cudnn(served: FakeIndex, *versions: str) -> Path:
    large = library(
        "libcudnn_ops.so.9", {"v": ("ops",)}, bulk(30_000, 30_000), "-Wl,--hash-style=sysv"
    )
    small = gnu_hash_library("libcudnn.so.9", {"libcudnn.so.9": ("cudnnCreate",)})
    members = {"libcudnn.so.9": small, "libcudnn_ops.so.9": large, "libcudnn_never.so.9": small}
    for version in versions:
        served.add(wheel_name(CUDNN, version), wheel(members))
    return large


def test_of_large_members_one_version_of_each_minor_is_read(
    served: FakeIndex, tmp_path: Path
) -> None:
    publish_cudnn(served, "9.1.0.70", "9.1.1.17", "9.2.0.82")
    assert build(tmp_path, "cuda") == 0
    tables = opened(tmp_path)
    assert tables.versions("libcudnn.so.9") == ("9.1.0.70", "9.1.1.17", "9.2.0.82")
    assert tables.versions("libcudnn_ops.so.9") == ("9.1.1.17", "9.2.0.82")
    complete = {w.version: w.complete for w in tables.wheels()}
    assert complete == {"9.1.0.70": False, "9.1.1.17": True, "9.2.0.82": True}
    # What a wheel brings does not depend on what was read of it.
    brings = ("libcudnn.so.9", "libcudnn_never.so.9", "libcudnn_ops.so.9")
    assert {tables.sonames_of(CUDNN, version) for version in complete} == {brings}
    assert tables.sonames_of(CUDNN, "1.0") == ()
    assert cuda.missing(str(tmp_path / "data")) == []


def test_a_version_asked_for_by_name_is_read_with_its_large_members(
    served: FakeIndex, tmp_path: Path
) -> None:
    large = publish_cudnn(served, "9.1.0.70", "9.1.1.17")
    build(tmp_path, "cuda")
    assert build(tmp_path, "cuda", f"{CUDNN}==9.1.0.70") == 0
    tables = opened(tmp_path)
    assert tables.versions("libcudnn_ops.so.9") == ("9.1.0.70", "9.1.1.17")
    assert by_table(tables, "libcudnn_ops.so.9", "9.1.0.70") == nm_exports(large)
    # A record without them, from an earlier reading, takes nothing away again.
    (tmp_path / "records" / "cuda" / f"{CUDNN}-9.1.0.70.json.xz").unlink()
    before = files_below(tmp_path / "data")
    job = cuda.Job(cuda_wheel.published(CUDNN)["9.1.0.70"], sample=True)
    cuda._read([job], str(tmp_path / "records" / "cuda"))
    assert build(tmp_path, "compile") == 0
    assert files_below(tmp_path / "data") == before


# --- adding, resuming, refusing ---------------------------------------------------------------


def test_one_new_wheel_is_one_command_and_touches_nothing_else(
    served: FakeIndex, tmp_path: Path
) -> None:
    publish(served, "12.1.105", "12.4.127")
    build(tmp_path, "cuda")
    before = opened(tmp_path)
    kept = {v: by_table(before, "libcudart.so.12", v) for v in before.versions("libcudart.so.12")}
    records = files_below(tmp_path / "records")
    publish(served, "12.10.3")
    data = str(tmp_path / "data")
    assert cuda.missing(data) == [f"{RUNTIME}==12.10.3: missing"]
    for record in (tmp_path / "records" / "cuda").iterdir():
        record.unlink()  # the tables alone are enough to add to
    served.asked.clear()
    assert build(tmp_path, "cuda", f"{RUNTIME}==12.10.3") == 0
    assert {name for name, _ in served.asked} == {wheel_name(RUNTIME, "12.10.3")}
    after = opened(tmp_path)
    assert {v: by_table(after, "libcudart.so.12", v) for v in kept} == kept
    assert cuda.missing(data) == []
    # ... and the bytes are those of all three read at once.
    at_once = tmp_path / "at-once"
    assert build(at_once, "cuda") == 0
    assert files_below(at_once / "data") == files_below(tmp_path / "data")
    assert records.items() < files_below(at_once / "records").items()


def test_the_same_records_give_the_same_bytes_in_any_order(
    served: FakeIndex, tmp_path: Path
) -> None:
    publish(served, *CUDART)
    build(tmp_path, "cuda")
    folder = tmp_path / "records" / "cuda"
    records = [load_record(str(path)) for path in sorted(folder.iterdir())]
    expected = files_below(tmp_path / "data")
    for number, order in enumerate(itertools.permutations(records)):
        compiler.compile_cuda(order, str(tmp_path / str(number)), keep=False)
        assert files_below(tmp_path / str(number)) == expected


def test_what_was_read_before_a_failure_is_not_read_again(
    served: FakeIndex,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "concurrently", partial(concurrently, workers=1))
    publish(served, "12.1.105", "12.4.127")
    served.breaks[wheel_name(RUNTIME, "12.1.105")] = 1_000
    assert build(tmp_path, "cuda") == 3
    assert "The same command" in capsys.readouterr().err or True
    assert sorted(p.name for p in (tmp_path / "records" / "cuda").iterdir()) == [
        f"{RUNTIME}-12.4.127.json.xz"
    ]
    assert not (tmp_path / "data").exists()
    served.breaks.clear()
    served.asked.clear()
    assert build(tmp_path, "cuda") == 0
    assert {name for name, _ in served.asked} == {wheel_name(RUNTIME, "12.1.105")}


def test_a_wheel_that_makes_no_sense_is_named_and_the_others_are_read(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(served, "12.1.105")
    broken = fake_index.wheel({"nvidia/lib/libcudart.so.12": b"#!/bin/sh\n"})
    served.add(wheel_name(RUNTIME, "12.2.0"), broken)
    assert build(tmp_path, "cuda") == 3
    assert f"{RUNTIME}==12.2.0 was left out" in capsys.readouterr().err
    assert opened(tmp_path).versions("libcudart.so.12") == ("12.1.105",)


def test_release_candidates_count_only_when_asked_for(served: FakeIndex, tmp_path: Path) -> None:
    served.add(wheel_name(NCCL, "2.20.5"), wheel({"libnccl.so.2": nccl("ncclSend")}))
    served.add(wheel_name(NCCL, "2.21.5rc1"), wheel({"libnccl.so.2": nccl("ncclSend")}))
    served.add(wheel_name(NCCL, "2.21.5"), wheel({"libnccl.so.2": nccl("ncclSend")}))
    build(tmp_path, "cuda")
    assert opened(tmp_path).versions("libnccl.so.2") == ("2.20.5", "2.21.5")
    build(tmp_path, "cuda", f"{NCCL}==2.21.5rc1")
    assert opened(tmp_path).versions("libnccl.so.2") == ("2.20.5", "2.21.5rc1", "2.21.5")


def test_a_project_outside_the_list_is_refused(
    served: FakeIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path, "cuda", "nvidia-dali-cuda120") == 2
    assert "none of the projects in cuda.wheels.json" in capsys.readouterr().err
    assert build(tmp_path, "cuda", f"{NCCL}==9.9") == 3
    assert "has no wheel of version 9.9" in capsys.readouterr().err


@pytest.mark.parametrize("contents", [b"", b"not xz", b"\xfd7zXZ\0" + b"\0" * 40])
def test_a_damaged_record_is_named(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json.xz"
    path.write_bytes(contents)
    with pytest.raises(ForensicsError, match=r"a\.json\.xz is damaged"):
        load_record(str(path))


@pytest.mark.parametrize("name", ["cuda.json", "cuda.trie"])
@pytest.mark.parametrize("change", ["missing", "cut", "flipped", "empty"])
def test_a_damaged_table_is_refused(
    served: FakeIndex, tmp_path: Path, name: str, change: str
) -> None:
    publish(served, "12.1.105")
    build(tmp_path, "cuda")
    path = tmp_path / "data" / name
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    changed = {"cut": contents[: len(contents) // 2], "flipped": contents, "empty": b""}
    path.unlink()
    if change in changed:
        path.write_bytes(changed[change])
    with pytest.raises(AtlasDamaged, match=name):
        opened(tmp_path)
