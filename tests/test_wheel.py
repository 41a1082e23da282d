"""What a wheel claims, and that unpacking one stays within its bounds."""

from __future__ import annotations

import os
import random
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename
from trees import WHEEL_NAME as NAME
from trees import make_wheel, shared_object

from fa_forensics.errors import BrokenWheel, ForensicsError, UnreadableFile
from fa_forensics.facts import wheel as wheel_module
from fa_forensics.facts.wheel import (
    Platform,
    extract,
    machine_of_tag,
    open_wheel,
    parse_file_name,
    platform_of_tag,
)

ELF = b"\x7fELF" + b"\0" * 60


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("manylinux_2_24_aarch64", ("linux", "aarch64", "glibc", (2, 24))),
        ("manylinux_2_28_x86_64", ("linux", "x86_64", "glibc", (2, 28))),
        ("manylinux1_x86_64", ("linux", "x86_64", "glibc", (2, 5))),
        ("manylinux2010_i686", ("linux", "i686", "glibc", (2, 12))),
        ("manylinux2014_x86_64", ("linux", "x86_64", "glibc", (2, 17))),
        ("musllinux_1_2_x86_64", ("linux", "x86_64", "musl", (1, 2))),
        ("linux_x86_64", ("linux", "x86_64", None, None)),
        ("linux_ppc64le", ("linux", "ppc64le", None, None)),
        ("win_amd64", ("windows", "x86_64", None, None)),
        ("win32", ("windows", "i686", None, None)),
        ("macosx_11_0_arm64", ("macos", "aarch64", None, None)),
        ("macosx_10_9_x86_64", ("macos", "x86_64", None, None)),
        ("any", ("any", None, None, None)),
        ("plan9_mips", ("unknown", None, None, None)),
    ],
)
def test_platform_tags(tag: str, expected: tuple[str, str | None, str | None, object]) -> None:
    assert platform_of_tag(tag) == Platform(tag, *expected)  # type: ignore[arg-type]
    assert machine_of_tag(tag) == expected[1]


@pytest.mark.parametrize(
    "name",
    [
        NAME,
        "xformers-0.0.34-cp39-abi3-manylinux_2_28_x86_64.whl",
        "triton-3.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "bitsandbytes-0.43.0-py3-none-win_amd64.whl",
        "pkg-1.0-1local-py2.py3-none-any.whl",
    ],
)
def test_file_names_are_taken_apart_as_packaging_does(name: str) -> None:
    project, version, build, theirs = parse_wheel_filename(name)
    ours = parse_file_name(f"/some/where/{name}")
    assert ours[0].replace("_", "-") == project and ours[1].lower() == str(version)
    assert ours[2] == ("".join(map(str, build)) or None)
    assert {Tag(p, a, s) for p in ours[3] for a in ours[4] for s in ours[5]} == theirs


def test_renamed_and_quoted_file_names() -> None:
    assert parse_file_name(NAME.replace("+", "%2B").replace(".whl", " (1).whl")) == (
        parse_file_name(NAME)
    )
    assert parse_file_name("download.whl") == ("download", "", None, (), (), ())


def test_claims_and_members_are_read(tmp_path: Path) -> None:
    file = make_wheel(
        tmp_path,
        {
            "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so": ELF,
            "flash_attn/_C.so": ELF,
            "flash_attn/text.so": b"INPUT ( -lfoo )",
            "flash_attn.libs/libfoo-1234.so": ELF,
            "flash_attn.libs/libbar.so.1.2": ELF,
            "flash_attn/x.pyd": b"MZ",
            "flash_attn/notes.sober": ELF,
        },
    )
    wheel = open_wheel(str(file))
    assert (wheel.name, wheel.version) == ("flash-attn", "2.5.8+cu122torch2.3cxx11abiFALSE")
    assert (wheel.python_tags, wheel.abi_tags) == (("cp311",), ("cp311",))
    assert wheel.machines == ("x86_64",)
    assert wheel.wheel_tags == ("cp311-cp311-manylinux2014_aarch64",)  # its own, other claim
    assert (wheel.requires, wheel.requires_python) == (("torch==2.3.0",), ">=3.8")
    assert wheel.extensions == (
        "flash_attn/_C.so", "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so",
    )  # fmt: skip
    assert wheel.shared_objects == (
        "flash_attn.libs/libbar.so.1.2", "flash_attn.libs/libfoo-1234.so", *wheel.extensions,
    )  # fmt: skip
    assert wheel.foreign == ("flash_attn/x.pyd",)
    assert wheel.unpacked_bytes == 4 * len(ELF)


def test_extraction_keeps_the_layout_and_the_bytes(tmp_path: Path) -> None:
    real = shared_object(("f",))
    members = {"p/_C.so": real, "p/big.so": ELF + b"\0" * (3 << 20), "p.libs/libq.so.1": ELF}
    wheel = open_wheel(str(make_wheel(tmp_path, {**members, "p/code.py": b"x"})))
    dest = tmp_path / "out"
    dest.mkdir()
    paths = extract(wheel, str(dest))
    assert paths == {member: str(dest / member) for member in sorted(members)}
    assert {m: Path(p).read_bytes() for m, p in paths.items()} == members
    assert not (dest / "p" / "code.py").exists()
    info = sorted(p.name for p in (dest / "flash_attn-2.5.8.dist-info").iterdir())
    assert info == ["METADATA", "RECORD", "WHEEL"]


@pytest.mark.parametrize(
    "member", ["../evil.so", "a/../../evil.so", "/tmp/evil.so", "//evil.so", "a\\..\\evil.so"]
)
def test_names_that_leave_the_directory_are_refused(tmp_path: Path, member: str) -> None:
    wheel = open_wheel(str(make_wheel(tmp_path, {member: ELF})))
    dest = tmp_path / "deep" / "out"
    dest.mkdir(parents=True)
    with pytest.raises(BrokenWheel, match="would leave its directory"):
        extract(wheel, str(dest))
    assert sorted(p.name for p in tmp_path.rglob("*.so")) == []


def test_parts_of_a_name_that_lead_nowhere_are_dropped(tmp_path: Path) -> None:
    members = {"./a//b.so": ELF + b"1", "c/./d.so": ELF + b"2", "e.so/": b"", "./f.so": ELF}
    wheel = open_wheel(str(make_wheel(tmp_path, members)))
    assert wheel.shared_objects == ("a/b.so", "c/d.so", "f.so")
    dest = tmp_path / "out"
    dest.mkdir()
    paths = extract(wheel, str(dest))
    assert paths == {name: str(dest / name) for name in wheel.shared_objects}
    assert (dest / "a" / "b.so").read_bytes() == ELF + b"1"
    assert (dest / "c" / "d.so").read_bytes() == ELF + b"2"


def test_of_two_members_with_one_plain_name_the_last_counts(tmp_path: Path) -> None:
    """As an unpacker that writes them in order would leave it."""
    wheel = open_wheel(str(make_wheel(tmp_path, {"a.so": ELF + b"1", "./a.so": ELF + b"2"})))
    assert wheel.shared_objects == ("a.so",)
    dest = tmp_path / "out"
    dest.mkdir()
    assert Path(extract(wheel, str(dest))["a.so"]).read_bytes() == ELF + b"2"


def test_pipe_in_place_of_a_wheel_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(UnreadableFile, match="not a regular file"):
        open_wheel(str(tmp_path / NAME))


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    file = tmp_path / NAME
    with zipfile.ZipFile(file, "w") as archive:
        link = zipfile.ZipInfo("x.so")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "\x7fELF")
    with pytest.raises(BrokenWheel, match="which is a link or a device"):
        extract(open_wheel(str(file)), str(tmp_path))


def test_bombs_are_refused_before_a_byte_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_wheel(tmp_path, {"x.so": ELF + b"\0" * (1 << 20)})
    dest = tmp_path / "out"
    dest.mkdir()
    monkeypatch.setattr(wheel_module, "MAX_UNPACKED", 1 << 19)
    with pytest.raises(BrokenWheel, match="declares 1,048,640 bytes of shared objects"):
        extract(open_wheel(str(file)), str(dest))
    monkeypatch.setattr(wheel_module, "MAX_UNPACKED", 1 << 60)
    data = file.read_bytes()
    huge = data.replace(struct.pack("<I", len(ELF) + (1 << 20)), struct.pack("<I", 0xFFFFFFF0))
    file.write_bytes(huge)
    free = os.statvfs(dest)
    if free.f_bavail * free.f_frsize < 0xFFFFFFF0:
        with pytest.raises(UnreadableFile, match="TMPDIR|free"):
            extract(open_wheel(str(file)), str(dest))
    else:
        with pytest.raises(BrokenWheel, match="is damaged"):
            extract(open_wheel(str(file)), str(dest))
    assert sum(p.stat().st_size for p in dest.rglob("*") if p.is_file()) <= 2 << 20


def test_no_more_bytes_than_declared_are_written(tmp_path: Path) -> None:
    size = len(ELF) + (1 << 16)
    file = make_wheel(tmp_path, {"x.so": ELF + b"\0" * (1 << 16)})
    data = file.read_bytes()
    assert data.count(struct.pack("<I", size)) == 2
    file.write_bytes(data.replace(struct.pack("<I", size), struct.pack("<I", 100)))
    dest = tmp_path / "out"
    dest.mkdir()
    with pytest.raises(BrokenWheel, match="is damaged: x.so cannot be unpacked"):
        extract(open_wheel(str(file)), str(dest))
    assert (dest / "x.so").stat().st_size <= 100


def test_more_files_than_believed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_wheel(tmp_path, {f"{i}.so": ELF for i in range(20)})
    monkeypatch.setattr(wheel_module, "MAX_ENTRIES", 10)
    with pytest.raises(BrokenWheel, match="lists 23 files, more than is believed"):
        open_wheel(str(file))


@pytest.mark.parametrize(
    ("start", "meaning"),
    [
        (b"", r"it is empty \(0 bytes\)"),
        (b"<!DOCTYPE html><html>", "it is an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer"),
        (b"\x7fELF\2\1\1", "it is an ELF file with the wrong name"),
        (b"PK\3\4" + b"\0" * 100, "its end, with the list of files, is missing or damaged"),
        (b"hello world", "it starts with the bytes 68 65 6c 6c 6f 20 77 6f"),
    ],
)
def test_what_is_no_wheel_is_named(tmp_path: Path, start: bytes, meaning: str) -> None:
    file = tmp_path / NAME
    file.write_bytes(start)
    with pytest.raises(BrokenWheel, match=meaning) as caught:
        open_wheel(str(file))
    assert caught.value.exit_code == 3 and "\n" not in caught.value.message


def test_missing_wheel_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file or directory"):
        open_wheel(str(tmp_path / NAME))


def test_encrypted_member_is_refused(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, {"x.so": ELF})
    data = bytearray(file.read_bytes())
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(magic) + offset] |= 1
    file.write_bytes(data)
    wheel = open_wheel(str(file))
    assert wheel.extensions == ("x.so",)
    with pytest.raises(BrokenWheel, match="is encrypted, wheels never are"):
        extract(wheel, str(tmp_path))


def test_damage_anywhere_gives_one_sentence_and_never_a_traceback(tmp_path: Path) -> None:
    """500 wheels cut short or with bytes changed: each is read, or refused in our words."""
    whole = make_wheel(tmp_path, {"p/_C.so": ELF * 50, "p.libs/q.so.1": ELF}).read_bytes()
    chance = random.Random(20261130)
    file, outcomes = tmp_path / NAME, {"read": 0, "refused": 0}
    for round_number in range(500):
        data = bytearray(whole[: chance.randrange(len(whole))] if round_number % 5 == 0 else whole)
        for _ in range(chance.randrange(1, 12)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        dest = tmp_path / f"out{round_number}"
        dest.mkdir()
        try:
            extract(open_wheel(str(file)), str(dest))
            outcomes["read"] += 1
        except ForensicsError as error:
            assert "\n" not in error.message
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20, outcomes
