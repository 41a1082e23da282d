"""Husks tell the truth of the real files they were made from.

The oracles are GNU binutils' and cuobjdump's outputs on the real files, recorded by make_husks.py.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fixtures import husk, husk_keep, make_husks

HUSKS = husk.list_husks()
MEMBERS = [pytest.param(h.name, m, id=f"{h.name}/{m.path}") for h in HUSKS for m in h.members]
COMMANDS = sorted(HUSKS[0].members[0].record["reference_sha256"])


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all tests; parallel workers share it, since unpacking is atomic."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "husks"


@pytest.fixture(scope="session")
def binutils() -> str:
    """The readelf here; skips by name when it is absent or not the recorded release."""
    for tool in ("readelf", "nm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    done = subprocess.run(["readelf", "--version"], capture_output=True, text=True, check=True)
    here, recorded = done.stdout.splitlines()[0], husk.load_provenance()["binutils"]
    if here.split()[-1] != recorded.split()[-1]:
        pytest.skip(f"the outputs were recorded with {recorded}, and here is {here}")
    return here


def member_path(name: str, member: husk.Member, unpacked: Path) -> Path:
    return Path(husk.unpack(name, unpacked)) / member.path


@pytest.mark.parametrize("entry", HUSKS, ids=lambda h: h.name)
def test_archive_is_the_one_provenance_describes(entry: husk.Husk) -> None:
    archive = Path(husk.archive_path(entry.name)).read_bytes()
    recorded = husk.load_provenance()["husks"][entry.name]
    assert hashlib.sha256(archive).hexdigest() == recorded["archive_sha256"]
    assert len(archive) == recorded["archive_size"] < 300_000


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_husk_has_the_true_size_and_every_table_of_the_real_file(
    name: str, member: husk.Member, unpacked: Path
) -> None:
    path = member_path(name, member, unpacked)
    assert path.stat().st_size == member.size
    assert husk_keep.digest_tables(str(path)) == member.record["tables_sha256"]


@pytest.mark.parametrize("command", COMMANDS)
def test_binutils_say_the_same_of_the_husk_as_of_the_real_file(
    command: str, unpacked: Path, binutils: str
) -> None:
    for entry in HUSKS:
        for member in entry.members:
            path = member_path(entry.name, member, unpacked)
            digest = make_husks.reference_digest(command, str(path))
            assert digest == member.record["reference_sha256"][command], (entry.name, member.path)


def cubin_architectures(path: Path) -> Counter[int]:
    """How many cubins of each SM number the fatbin headers of a file announce."""
    found: Counter[int] = Counter()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
        for section in husk_keep.sections(view):
            if section.name in husk_keep.FATBIN_SECTIONS:
                for what, offset, header in husk_keep.headers(view, section):
                    if what == "entry" and view[offset] in husk_keep.CUBIN_KINDS:
                        found[struct.unpack_from("<I", view, offset + 0x1C)[0]] += 1
                        # The start of each image is kept: an ELF header, or an LZ4 token and one.
                        assert b"ELF" in view[offset + header : offset + header + 8]
    return found


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_fatbin_headers_announce_the_cubins_cuobjdump_lists(
    name: str, member: husk.Member, unpacked: Path
) -> None:
    # cuobjdump 12.4 is the one that finishes on every file; it drops the `a` of ptxas 13's sm_90a.
    runs = {(r["version"], *r["args"]): r for r in husk.load_oracle(name)[member.path]}
    run = runs.get(("V12.4.99", "-all", "-lelf")) or runs[("V12.4.99", "-lelf")]
    names = re.findall(r"(?m)\.sm_(\d+)a?\.cubin$", "\n".join(run["stdout"]))
    listed = Counter(int(x) for x in names)
    assert sum(listed.values()) == len(run["stdout"])
    assert run["rc"] == (0 if listed else 255)
    assert cubin_architectures(member_path(name, member, unpacked)) == listed
    assert sum(listed.values()) == member.record["cubins"]


def test_abi_8_cubins_keep_the_note_that_names_their_toolkit(unpacked: Path) -> None:
    for name in ("fa3_fwd-0.0.3", "fa3_fwd-0.0.3-aarch64"):
        path = Path(husk.unpack(name, unpacked)) / "fa3_fwd/_C.abi3.so"
        notes = re.findall(rb"Cuda compilation tools, release 13\.\d", kept_bytes(name, path))
        assert len(notes) == 2  # one for sm_80, one for sm_90a


def kept_bytes(name: str, path: Path) -> bytes:
    """The kept bytes of one member, read back from the unpacked file."""
    files, _ = husk.read_archive(husk.archive_path(name))
    entry = next(f for f in files if str(path).endswith("/" + f.path))
    with path.open("rb") as stream:
        return b"".join(os.pread(stream.fileno(), n, offset) for offset, n in entry.extents)


@pytest.mark.parametrize("entry", HUSKS, ids=lambda h: h.name)
def test_unpacked_husk_is_an_installed_distribution(entry: husk.Husk, unpacked: Path) -> None:
    root = husk.unpack(entry.name, unpacked)
    (found,) = importlib.metadata.distributions(path=[root])
    assert found.version == entry.version
    assert found.metadata["Name"].replace("_", "-") == entry.package
    recorded = {str(f) for f in found.files or []}
    assert {m.path for m in entry.members} <= recorded
    assert all((Path(root) / f).exists() for f in recorded)


def test_records_name_no_directory_of_the_maker() -> None:
    for path in [*Path(husk.HUSKS).glob("*.json"), *Path(husk.HUSKS).glob("oracle/*.json")]:
        assert not re.search(r"""["' ]/[a-z]+/""", path.read_text()), path.name


def test_unpacking_again_writes_nothing_and_repairs_a_cut_file(tmp_path: Path) -> None:
    entry = next(h for h in HUSKS if h.name == "bitsandbytes-0.43.0")
    path = Path(husk.unpack(entry.name, tmp_path)) / entry.members[0].path
    before = path.stat()
    husk.unpack(entry.name, tmp_path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    os.truncate(path, 100)
    husk.unpack(entry.name, tmp_path)
    assert path.stat().st_size == entry.members[0].size
    assert not [p for p in tmp_path.rglob(".husk-*")], "a temporary file was left behind"


def test_packing_is_deterministic_and_reads_back(tmp_path: Path) -> None:
    files = [husk.FileEntry("a/b.so", 100, 0o755, ((0, 4), (90, 2)))]
    archive = husk.pack(files, b"headTL")
    assert archive == husk.pack(files, b"headTL")
    (tmp_path / "x.husk").write_bytes(archive)
    assert husk.read_archive(str(tmp_path / "x.husk")) == (files, b"headTL")


@pytest.mark.parametrize("damage", ["cut", "foreign", "escape"])
def test_damaged_archive_is_refused_with_a_sentence(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = husk.pack([husk.FileEntry("../out.so", 4, 0o644, ((0, 4),))], b"data")
    content = {"cut": archive[:-20], "foreign": b"PK\x03\x04 a zip", "escape": archive}[damage]
    (tmp_path / "x.husk").write_bytes(content)
    monkeypatch.setattr(husk, "HUSKS", str(tmp_path))
    with pytest.raises(husk.HuskError, match=r"x\.husk|outside its own directory"):
        husk.unpack("x", tmp_path / "dest")
    assert not (tmp_path / "dest" / "out.so").exists()


def test_command_line_prints_the_path_and_refuses_an_unknown_name(tmp_path: Path) -> None:
    script = Path(husk.__file__).with_name("unpack.py")
    name = "vllm_flash_attn-2.6.2"
    command = [sys.executable, str(script), name, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    wanted = tmp_path / name / "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    assert done.stdout.splitlines() == [str(wanted)]
    assert wanted.stat().st_size == 254_188_512
    command[2] = "nothing-1.0"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no husk 'nothing-1.0'" in done.stderr and "Traceback" not in done.stderr


def test_provenance_names_the_wheels_wanted() -> None:
    wanted = json.loads(Path(husk.HUSKS, "wanted.json").read_text())["wheels"]
    made = husk.load_provenance()["husks"]
    assert set(made) == set(wanted)
    for name, entry in wanted.items():
        assert made[name]["wheel_sha256"] == entry["sha256"]
        assert [m["path"] for m in made[name]["members"]] == entry["members"]
