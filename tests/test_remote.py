"""Reading a file at an address: by range, in memory, and one sentence for each thing that fails."""

from __future__ import annotations

import io
import os
import random
import time
import zipfile
from pathlib import Path
from typing import IO, cast

import pytest
from support.ranges import serving
from trees import WHEEL_NAME, make_wheel, shared_object

from fa_forensics.errors import BrokenWheel, ForensicsError, UnreadableFile, UsageError
from fa_forensics.facts import remote, remote_wheel
from fa_forensics.facts.build_machine import BuildMachine
from fa_forensics.facts.remote import RemoteFile, file_name_of, is_url
from fa_forensics.facts.remote_wheel import RemoteWheel
from fa_forensics.facts.wheel import open_wheel

DATA = random.Random(7).randbytes(300_000)


def test_reads_are_those_of_a_file_on_disk() -> None:
    chance = random.Random(1)
    with serving({"a": DATA}) as server, RemoteFile(server.url("a"), 5) as file:
        disk = io.BytesIO(DATA)
        assert file.size == len(DATA)
        for _ in range(60):
            if chance.random() < 0.4:
                place = chance.randrange(len(DATA) + 10), chance.choice((0, 0, 1))
                assert file.seek(*place) == disk.seek(*place)
            elif chance.random() < 0.2:
                assert file.seek(-5, 2) == disk.seek(-5, 2)
            count = chance.choice((0, 1, 100, 9_000))
            assert file.read(count) == disk.read(count)
            assert file.tell() == disk.tell()


def test_one_answer_serves_reads_that_follow_one_another() -> None:
    with serving({"a": DATA}) as server, RemoteFile(server.url("a"), 5) as file:
        while file.read(10_000):
            pass
        assert len(server.asked) <= 2  # the end is kept: an archive's list stands there
        file.seek(0)
        file.read(10)
        assert len(server.asked) <= 3


def test_a_zip_reader_fetches_what_it_reads_and_no_more() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("large", random.Random(2).randbytes(3_000_000))
        made.writestr("small", b"here")
    with serving({"a": archive.getvalue()}) as server, RemoteFile(server.url("a"), 5) as file:
        with zipfile.ZipFile(cast("IO[bytes]", file)) as read:
            assert read.read("small") == b"here"
        assert file.received < 300_000


def test_a_redirect_is_followed_and_a_query_stays_out_of_messages() -> None:
    with serving({"a": DATA}) as server, RemoteFile(server.url("moved/a?token=secret"), 5) as file:
        assert file.read(4) == DATA[:4]
        assert "secret" not in file.shown


def test_a_password_in_an_address_goes_to_its_host_alone() -> None:
    with serving({"a": DATA}) as server:
        url = server.url("moved/a").replace("http://", "http://me:word@")
        with RemoteFile(url, 5) as file:
            assert file.read(4) == DATA[:4]
            assert "word" not in file.shown
    assert server.authorized == ["Basic bWU6d29yZA==", None]


def test_a_broken_transfer_is_taken_up_where_it_stopped() -> None:
    with serving({"a": DATA}, "drop-once") as server, RemoteFile(server.url("a"), 5) as file:
        assert file.read() == DATA
        assert server.asked[1] == "bytes=1000-"


@pytest.mark.parametrize(
    ("manner", "says"),
    [
        ("whole", "sends whole files only"),
        ("slow", "no answer in 0.5 s"),
        ("shifted", "other bytes than were asked for"),
        ("garbage", "no HTTP"),
        ("to-file", "302"),
        ("huge", "not believed"),
    ],
)
def test_a_server_that_cannot_be_read_is_told_in_one_sentence(manner: str, says: str) -> None:
    with serving({"a": DATA}, manner) as server, pytest.raises(UnreadableFile) as caught:
        RemoteFile(server.url("a"), 0.5)
    assert says in caught.value.message and "\n" not in caught.value.message


@pytest.mark.parametrize(("manner", "says"), [("cut", "stopped"), ("changing", "changed while")])
def test_a_transfer_that_goes_wrong_later_is_told_too(manner: str, says: str) -> None:
    with serving({"a": DATA}, manner) as server, RemoteFile(server.url("a"), 5) as file:
        file.seek(200_000 if manner == "changing" else 0)
        with pytest.raises(UnreadableFile) as caught:
            file.read(50_000)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("name", "says"), [("b", "answers 404"), ("empty", "it is empty (0 bytes)")]
)
def test_an_answer_that_is_no_file_is_told(name: str, says: str) -> None:
    with serving({"empty": b""}) as server, pytest.raises(UnreadableFile) as caught:
        RemoteFile(server.url(name), 5)
    assert says in caught.value.message


def test_nobody_at_the_address_is_told() -> None:
    with serving({}) as server:
        url = server.url("a")
    with pytest.raises(UnreadableFile) as caught:
        RemoteFile(url, 5)
    assert "refused" in caught.value.message


@pytest.mark.parametrize(
    "url", ["ftp://h/a.whl", "file:///etc/passwd", "https:///a.whl", "a.whl", "https://[::1/a.whl"]
)
def test_other_addresses_are_not_opened(url: str) -> None:
    with pytest.raises(UsageError):
        RemoteFile(url)


def test_no_read_is_larger_than_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_READ", 1000)
    with (
        serving({"a": DATA}) as server,
        RemoteFile(server.url("a"), 5) as file,
        pytest.raises(UnreadableFile),
    ):
        file.read()


def test_the_name_of_a_wheel_in_an_address() -> None:
    url = "https://host/v1/flash_attn-1%2Bcu12-cp311-cp311-linux_x86_64.whl?x=1#sha256=0"
    assert file_name_of(url) == "flash_attn-1+cu12-cp311-cp311-linux_x86_64.whl"
    assert is_url(url) and is_url("HTTP://h/") and not is_url("/a/https://b")


# --- wheels -------------------------------------------------------------------------------------

SO = "pkg/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def wheel_bytes(tmp_path: Path, **members: bytes) -> bytes:
    files = {SO: shared_object(needs=("_ZN3c104cuda9SetDeviceEi",)), "pkg/__init__.py": b""}
    return make_wheel(tmp_path, {**files, **members}).read_bytes()


def test_a_wheel_at_an_address_says_the_same_as_on_disk(tmp_path: Path) -> None:
    data = wheel_bytes(tmp_path)
    local = open_wheel(str(tmp_path / WHEEL_NAME))
    escaped = WHEEL_NAME.replace("+", "%2B")
    with serving({WHEEL_NAME: data}) as server, RemoteWheel(server.url(escaped), 5) as far:
        for field in ("name", "version", "python_tags", "wheel_tags", "requires", "extensions"):
            assert getattr(far.wheel, field) == getattr(local, field)


def test_its_files_are_in_memory_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    data = wheel_bytes(tmp_path)
    open_files = len(os.listdir("/proc/self/fd"))
    with serving({WHEEL_NAME: data}) as server, RemoteWheel(server.url(WHEEL_NAME), 5) as far:
        with far.targets() as targets:
            (target,) = targets
            assert Path(target.path).read_bytes() == shared_object(
                needs=("_ZN3c104cuda9SetDeviceEi",)
            )
            written = [path for path in scratch.rglob("*") if path.is_file()]
            assert written and all(path.is_symlink() for path in written)  # nothing on the disk
            assert all(os.readlink(path).startswith("/proc/") for path in written)
        assert list(scratch.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) <= open_files


def test_a_wheel_larger_than_the_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_wheel, "read_build_machine", lambda: BuildMachine(2, 1000))
    with (
        serving({WHEEL_NAME: wheel_bytes(tmp_path)}) as server,
        RemoteWheel(server.url(WHEEL_NAME), 5) as far,
        pytest.raises(UnreadableFile) as caught,
    ):
        far.targets()
    assert "free memory" in caught.value.message


@pytest.mark.parametrize("damage", ["html", "cut", "flipped", "escaping"])
def test_a_damaged_wheel_at_an_address_is_told(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = bytearray(wheel_bytes(tmp_path))
    if damage == "html":
        data = bytearray(b"<html>not found</html>")
    elif damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "flipped":
        data[100:400] = bytes(300)
    else:
        data = bytearray(wheel_bytes(tmp_path, **{"../../out.so": shared_object()}))
    before = set(tmp_path.iterdir())
    with (
        serving({WHEEL_NAME: bytes(data)}) as server,
        pytest.raises(ForensicsError) as caught,
        RemoteWheel(server.url(WHEEL_NAME), 5) as far,
    ):
        far.targets()
    assert isinstance(caught.value, BrokenWheel)
    assert set(tmp_path.iterdir()) == before


def test_a_server_that_drips_is_given_up() -> None:
    begun = time.monotonic()
    with (
        serving({"a": DATA}, "dripping") as server,
        RemoteFile(server.url("a"), 0.3) as file,
        pytest.raises(UnreadableFile, match="less than 1 KiB a second"),
    ):
        file.read(100_000)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("manner", ["talkative", "in-a-circle"])
def test_what_a_server_says_of_itself_stays_one_short_line(manner: str) -> None:
    with serving({"a": DATA}, manner) as server, pytest.raises(UnreadableFile) as caught:
        RemoteFile(server.url("a"), 2)
    assert "\n" not in caught.value.message and len(caught.value.message) < 400
