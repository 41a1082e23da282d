"""RECORD held against the files: what an interrupted or edited installation leaves behind."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import random
from pathlib import Path

import pytest

from fa_forensics.facts.package_state import extra_files, listed_paths
from fa_forensics.facts.record import Entry, check_files, read_record, top_names


def line_of(site: Path, path: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=")
    name = os.path.relpath(path, site)
    out = io.StringIO()
    csv.writer(out).writerow([name, f"sha256={digest.decode()}", path.stat().st_size])
    return out.getvalue()


def install(site: Path, files: dict[str, bytes]) -> Path:
    """Files, and a RECORD of them as pip writes it; the RECORD's path."""
    lines = []
    for name, data in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(data)
        lines.append(line_of(site, site / name))
    info = site / "p-1.dist-info"
    info.mkdir()
    record = info / "RECORD"
    record.write_bytes("".join([*lines, "p/__pycache__/a.pyc,,\r\n",
                                "p-1.dist-info/RECORD,,\r\n"]).encode())  # fmt: skip
    return record


FILES = {"p/__init__.py": b"x = 1\n", "p/_C.so": b"\x7fELF" * 10, "p/data.bin": b"0" * 100}


def test_files_as_installed_are_whole_and_what_was_not_read_is_counted(tmp_path: Path) -> None:
    record = read_record(str(install(tmp_path, FILES)))
    check = check_files(record)
    assert check.whole and (check.sized, check.hashed, check.not_hashed) == (3, 0, 146)
    assert check_files(record, sources=True).hashed == 1
    everything = check_files(record, everything=True)
    assert everything.whole and (everything.hashed, everything.not_hashed) == (3, 0)


def test_each_kind_of_damage_is_told_apart(tmp_path: Path) -> None:
    record = read_record(str(install(tmp_path, {**FILES, "p/gone.py": b"1", "p/link.py": b"2"})))
    (tmp_path / "p/gone.py").unlink()
    (tmp_path / "p/link.py").unlink()
    (tmp_path / "p/link.py").symlink_to("nowhere.py")
    (tmp_path / "p/_C.so").write_bytes(b"other size")
    (tmp_path / "p/__init__.py").write_bytes(b"x = 2\n")
    (tmp_path / "p/data.bin").unlink()
    os.mkfifo(tmp_path / "p/data.bin")
    check = check_files(record, sources=True)
    assert [os.path.basename(path) for path in check.missing] == ["gone.py"]
    assert [os.path.basename(path) for path in check.dead_links] == ["link.py"]
    assert [(os.path.basename(p), a, b) for p, a, b in check.resized] == [("_C.so", 40, 10)]
    assert [os.path.basename(path) for path in check.altered] == ["__init__.py"]
    assert [why for _, why in check.unreadable] == ["it is no regular file"]


def test_a_file_written_after_the_installation_is_read_after_all(tmp_path: Path) -> None:
    path = install(tmp_path, FILES)
    changed = tmp_path / "p/_C.so"
    changed.write_bytes(b"\x7fELG" * 10)  # the same size
    os.utime(path, (1_000_000_000, 1_000_000_000))
    for name in FILES:
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    assert check_files(read_record(str(path))).whole  # nothing shows that it was written later
    assert not check_files(read_record(str(path)), everything=True).whole
    os.utime(changed)
    assert check_files(read_record(str(path))).altered == (str(changed),)
    beyond = check_files(read_record(str(path)), budget=10)
    assert beyond.whole and beyond.not_hashed == 146  # what was not read is counted


def test_names_with_commas_quotes_and_odd_bytes_are_read_as_they_were_written(
    tmp_path: Path,
) -> None:
    names = ["p/a,b.py", 'p/a"b.py', "p/ü.py", "p/a b.py", "p/\udcff.bin"]
    files = {name: name.encode("utf-8", "surrogateescape") for name in names[:4]}
    record = read_record(str(install(tmp_path, files)))
    assert check_files(record, everything=True).hashed == 4
    assert top_names(record.entries) == {"p", "p-1.dist-info"}


def test_lines_that_are_none_are_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    path = install(tmp_path, FILES)
    path.write_bytes(path.read_bytes() + b"nonsense\n\xff\xfe,sha256=x,12\np/q.py,sha256=x,1e9\n\n")
    record = read_record(str(path))
    assert record.problem == f"2 lines of {path} are no lines of a RECORD"
    assert len(check_files(record).missing) == 1


def test_a_size_that_no_file_has_is_refused_and_no_number_is_too_long(tmp_path: Path) -> None:
    path = install(tmp_path, {})
    path.write_text(f"p/a.py,sha256=x,{'9' * 5000}\np/b.py,sha256=x,-1\np/c.py,,\n")
    assert read_record(str(path)).entries == (Entry("p/c.py", "", None),)


def test_random_bytes_are_read_without_an_error(tmp_path: Path) -> None:
    path = install(tmp_path, {})
    chance = random.Random(7)
    for _ in range(50):
        path.write_bytes(bytes(chance.choices(b'p/a.\n,"\r\x00\xff0123sha', k=300)))
        check_files(read_record(str(path)), everything=True)


def test_a_pipe_for_a_record_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "RECORD")
    with pytest.raises(OSError, match="not a regular file"):
        read_record(str(tmp_path / "RECORD"))


def test_files_that_no_record_lists_are_found(tmp_path: Path) -> None:
    record = read_record(str(install(tmp_path, {**FILES, "p/deep/er/a.py": b""})))
    for name in ("p/old.py", "p/deep/_C.cpython-38-x86_64-linux-gnu.so", "p/notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "p/__pycache__").mkdir()
    (tmp_path / "p/__pycache__/x.py").write_text("")
    (tmp_path / "q").mkdir()
    (tmp_path / "q/other.py").write_text("")
    (tmp_path / "p/loop").symlink_to(tmp_path / "p")
    found = extra_files(["p"], str(tmp_path), listed_paths([record]))
    assert [os.path.relpath(path, tmp_path) for path in found] == [
        "p/deep/_C.cpython-38-x86_64-linux-gnu.so", "p/old.py",
    ]  # fmt: skip


def test_a_directory_that_two_distributions_share_is_held_against_both(tmp_path: Path) -> None:
    first = install(tmp_path, {"n/a.py": b""})
    other = tmp_path / "q-1.dist-info"
    other.mkdir()
    (tmp_path / "n/b.py").write_text("")
    (other / "RECORD").write_text("n/./b.py,,\n")
    records = [read_record(str(first)), read_record(str(other / "RECORD"))]
    assert extra_files(["n"], str(tmp_path), listed_paths(records)) == ()
    assert len(extra_files(["n"], str(tmp_path), listed_paths(records[:1]))) == 1
