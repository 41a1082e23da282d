"""cuobjdump as a witness: found where it may be, run without harm, judged fairly."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fa_forensics.facts.fatbin import cuobjdump
from fa_forensics.facts.fatbin.agreement import compare, read_limits
from fa_forensics.facts.fatbin.cuobjdump import Listing, find_cuobjdump, parse_list, start
from fa_forensics.facts.fatbin.images import DeviceCode, Image
from fa_forensics.facts.fatbin.provenance import Toolkit
from fa_forensics.facts.fatbin.reader import read_file

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a stand-in for cuobjdump: answers --version, else runs the given shell lines."""

    def write(lines: str) -> str:
        path = tmp_path / "cuobjdump"
        version = "echo 'Cuda compilation tools, release 13.5, V13.5.37'"
        path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; exit; fi\n{lines}\n')
        path.chmod(0o755)
        return str(path)

    return write


def place(path: Path, mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def test_every_place_is_tried_in_order(tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    environ = {
        "PATH": f"relative:{tmp_path}/bin:",
        "CUDA_HOME": f"{tmp_path}/home",
        "CUDA_PATH": f"{tmp_path}/path",
        "CONDA_PREFIX": f"{tmp_path}/conda",
    }
    places = [
        tmp_path / "bin" / "cuobjdump",
        tmp_path / "home" / "bin" / "cuobjdump",
        tmp_path / "path" / "bin" / "cuobjdump",
        site / "nvidia" / "cu13" / "bin" / "cuobjdump",
        site / "nvidia" / "cu12" / "bin" / "cuobjdump",
        site / "nvidia" / "cuda_cuobjdump" / "bin" / "cuobjdump",
        site / "triton" / "backends" / "nvidia" / "bin" / "cuobjdump",
        site / "triton" / "third_party" / "cuda" / "bin" / "cuobjdump",
        tmp_path / "conda" / "bin" / "cuobjdump",
        tmp_path / "env" / "bin" / "cuobjdump",
    ]
    for expected in places:
        place(expected)
    for expected in places:
        assert find_cuobjdump([str(site)], environ) == str(expected)
        expected.unlink()
    assert find_cuobjdump([str(site)], environ) in (None, "/usr/local/cuda/bin/cuobjdump")


def test_one_without_the_x_bit_is_only_the_last_resort_and_then_said(tmp_path: Path) -> None:
    bare = place(tmp_path / "a" / "cuobjdump", 0o644)
    good = place(tmp_path / "b" / "cuobjdump")
    environ = {"PATH": f"{tmp_path}/a:{tmp_path}/b"}
    assert find_cuobjdump([], environ) == good
    os.unlink(good)
    found = find_cuobjdump([], environ)
    if found != "/usr/local/cuda/bin/cuobjdump":
        assert found == bare
    report = compare(NOTHING, start("any.so", bare).finish())
    assert report.status == "absent"
    assert f"chmod +x {bare}" in report.detail


def test_file_that_is_no_program_is_absent_with_the_reason(tmp_path: Path) -> None:
    path = place(tmp_path / "cuobjdump")
    Path(path).write_bytes(b"\x7fELF for another machine")
    report = compare(NOTHING, start("any.so", path).finish())
    assert report.status == "absent"
    assert "cannot be run" in report.detail
    assert compare(NOTHING, start("any.so", str(tmp_path / "gone")).finish()).status == "absent"


@pytest.mark.parametrize(
    "name", ["-dash.so", "two words.so", "line\nbreak.so", "$(echo x).so", "ü.so"]
)
def test_odd_file_names_arrive_as_they_are(
    name: str, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exe = script(f'printf "%s" "$4" > {tmp_path}/seen; echo "ELF file    1: $4.1.sm_90a.cubin"')
    listing = start(name, exe).finish()
    assert (tmp_path / "seen").read_text() == str(tmp_path / name)
    assert (listing.elf, listing.exit_code, listing.version) == (("sm_90a",), 0, "13.5")
    assert listing.unreadable is None


def test_it_runs_in_the_background(script: Script) -> None:
    started = time.monotonic()
    running = start("any.so", script("sleep 1; echo 'PTX file    1: a.1.sm_80.ptx'"))
    assert time.monotonic() - started < 0.8
    assert running.finish().ptx == ("sm_80",)


def test_time_out_ends_the_whole_process_group(script: Script, tmp_path: Path) -> None:
    exe = script(
        f"echo 'ELF file    1: a.1.sm_80.cubin'; sleep 77 & echo $! > {tmp_path}/pid; wait"
    )
    started = time.monotonic()
    listing = start("any.so", exe, 1.0).finish()
    assert 0.9 < time.monotonic() - started < 5
    assert (listing.exit_code, listing.elf) == (None, ("sm_80",))
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)
    report = compare(code_of(cubin("sm_80"), cubin("sm_90")), listing)
    assert report.status == "stopped"
    assert "listed 1 of 2 images: it did not finish within 1 s" in report.detail


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie that waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_output_is_bounded(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuobjdump, "MAX_OUTPUT", 100_000)
    listing = start("any.so", script("yes 'ELF file    1: a.1.sm_80.cubin'"), 20).finish()
    assert listing.seconds < 10
    assert listing.unreadable == "it printed more than 100,000 bytes"
    assert compare(NOTHING, listing).status == "stopped"


def test_long_standard_error_keeps_its_end(script: Script) -> None:
    lines = "i=0; while [ $i -lt 5000 ]; do echo noise$i >&2; i=$((i+1)); done"
    listing = start(
        "any.so", script(f"{lines}; echo 'cuobjdump fatal   : last' >&2; exit 1")
    ).finish()
    assert (listing.message, listing.exit_code) == ("cuobjdump fatal   : last", 1)


def test_death_by_a_signal_is_a_stop(script: Script) -> None:
    listing = start("any.so", script("kill -SEGV $$")).finish()
    assert listing.exit_code == -11
    assert compare(code_of(cubin("sm_80")), listing).status == "stopped"


def test_no_process_and_no_descriptor_is_left_behind(script: Script) -> None:
    before = len(os.listdir("/proc/self/fd"))
    running = start("any.so", script("sleep 60"))
    running.stop()
    start("any.so", script("exit 3")).finish()
    start("any.so", "/nonexistent/cuobjdump").finish()
    assert len(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if children.exists():
        states = [is_alive(int(pid)) for pid in children.read_text().split()]
        assert all(states)  # alive children are not ours; a zombie would be


def test_list_with_a_gap_or_without_architecture_is_not_trusted() -> None:
    assert parse_list("ELF file    1: a.1.sm_80.cubin\nELF file    3: a.3.sm_80.cubin\n")[2]
    assert parse_list("ELF file    1: a.cubin\n")[2]
    assert parse_list("") == ((), (), None)
    text = "ELF file    1: x.sm_100.cubin\nPTX file    1: a\nb.1.sm_90a.ptx\n"
    assert parse_list(text) == (("sm_100",), ("sm_90a",), None)


def cubin(arch: str, abi: int = 7) -> Image:
    return image("cubin", arch, arch.rstrip("f"), abi)


def image(kind: str, arch: str, listed_as: str | None, abi: int | None = None) -> Image:
    return Image(kind, arch, 8, 8, None, None, None, None, ".nv_fatbin", 0, 0, 64, 8, None, False,
                 listed_as, abi, 0x11)  # fmt: skip


def code_of(*images: Image, found_by: str = "sections") -> DeviceCode:
    return DeviceCode(images, 1, found_by, ())


NOTHING = DeviceCode((), 0, "none", ())
BY_12_1 = (Toolkit("12.1", None, "cubin e_version", ("sm_80", "sm_90")),)
BY_12_4 = (Toolkit("12.4", None, "cubin e_version", ("sm_80", "sm_90")),)


def said(
    version: str, elf: tuple[str, ...], ptx: tuple[str, ...] = (), code: int = 0, message: str = ""
) -> Listing:
    return Listing("/bin/cuobjdump", version, elf, ptx, code, message, None, None, 0.1)


INVALID = "cuobjdump fatal   : Invalid ELF in 'a.so'"
NO_CODE = "cuobjdump info    : File 'a.so' does not contain device code"
REMOVED = "cuobjdump fatal   : Support for 'sm_35' has been removed"
PTX_90A = image("ptx", "compute_90a", "sm_90a")


@pytest.mark.parametrize(
    ("code", "listing", "status", "part"),
    [
        (code_of(cubin("sm_80"), PTX_90A), said("13.5", ("sm_80",), ("sm_90a",)),
         "agrees", "lists the same 2 images"),
        (code_of(cubin("sm_100f", 8)), said("13.5", ("sm_100",)), "agrees", "the same 1 image"),
        (code_of(image("lto-ir", "lto_90", None)), said("13.5", ()),
         "agrees", "no cubin and no PTX either"),
        (NOTHING, said("13.5", (), (), 255, NO_CODE), "agrees", "no cubin and no PTX either"),
        (code_of(cubin("sm_80")), said("13.5", ("sm_86",)),
         "disagrees", "ELF image 1 is sm_86 by cuobjdump, sm_80 here"),
        (code_of(cubin("sm_80"), cubin("sm_90")), said("13.5", ("sm_90", "sm_80")),
         "disagrees", "and 1 more"),
        (code_of(cubin("sm_80"), cubin("sm_90")), said("13.5", ("sm_80",)),
         "disagrees", "1 ELF images by cuobjdump, 2 here"),
        (NOTHING, said("13.5", ("sm_80",)), "disagrees", "1 ELF images by cuobjdump, 0 here"),
        (code_of(cubin("sm_80")), said("13.5", ("sm_80", "sm_90"), (), 1, INVALID),
         "disagrees", "2 ELF images by cuobjdump, 1 here"),
        (code_of(cubin("sm_90a", 8)), said("12.4", ("sm_90",)), "agrees", 'drops the "a"'),
        (code_of(cubin("sm_90a", 8)), said("13.5", ("sm_90",)), "disagrees", "sm_90a here"),
        (code_of(cubin("sm_90a", 7)), said("12.4", ("sm_90",)), "disagrees", "sm_90a here"),
        (code_of(PTX_90A), said("11.8", (), ("sm_90",)), "agrees", "names of PTX images"),
        (code_of(PTX_90A), said("12.4", (), ("sm_90",)), "disagrees", "sm_90a here"),
        (code_of(cubin("sm_35")), said("13.5", (), (), 1, REMOVED), "stopped", "below sm_50"),
        (code_of(cubin("sm_80"), found_by="scan"), said("13.5", (), (), 255, NO_CODE),
         "stopped", "only through the section headers"),
        (code_of(cubin("sm_80")), said("13.5", (), (), 255, NO_CODE),
         "stopped", "does not contain device code"),
        (code_of(cubin("sm_90", 8)), said("11.8", (), (), 1,
         "cuobjdump fatal   : Support for 'sm_4' has been removed"), "stopped", "ELF ABI"),
        (code_of(cubin("sm_80")), said("12.3", (), (), 1,
         "cuobjdump fatal   : Invalid fatbin header"), "stopped", "zstd"),
        (code_of(cubin("sm_80")), said("13.5", (), (), 1, "cuobjdump fatal   : something new"),
         "stopped", 'it said "something new"'),
    ],
)  # fmt: skip
def test_verdict_on_a_listing(code: DeviceCode, listing: Listing, status: str, part: str) -> None:
    report = compare(code, listing)
    assert report.status == status
    assert part in report.detail
    assert bool(report.differences) == (status == "disagrees")


def test_invalid_elf_is_explained_only_where_the_toolkit_fits() -> None:
    code = code_of(cubin("sm_80"), cubin("sm_90"))
    listing = said("13.5", ("sm_80",), (), 1, INVALID)
    known = compare(code, listing, BY_12_1)
    assert known.status == "stopped"
    assert known.detail == (
        "cuobjdump 13.5 listed 1 of 2 images: it refuses many cubins made by CUDA 12.0 to 12.2 "
        '("Invalid ELF"), because their relocation sections name the wrong symbol table; '
        "what it listed is the same here, and the native list is whole"
    )
    for toolkits in ((), BY_12_4):
        other = compare(code, listing, toolkits)
        assert other.status == "stopped"
        assert "it said \"Invalid ELF in 'a.so'\"" in other.detail


def test_absent_witness_is_said() -> None:
    report = compare(NOTHING, None)
    assert (report.status, report.path) == ("absent", None)
    assert "was not found" in report.detail


def test_differences_are_bounded() -> None:
    code = code_of(*[cubin("sm_80")] * 500)
    report = compare(code, said("13.5", ("sm_90",) * 500))
    assert len(report.differences) == 20
    assert "and 499 more differences" in report.detail


def test_table_of_limits_is_complete_and_dated() -> None:
    limits = read_limits()
    assert limits["source"] and limits["date"]
    rules = [*limits["stops"], *limits["misnames"]]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["sentence"].startswith("it ")
        first, last = rule["cuobjdump"]
        assert first is None or last is None or first <= last


def test_live_cuobjdump_reads_an_odd_name(tmp_path: Path) -> None:
    exe = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").partition(os.pathsep)[0]
    exe = exe or find_cuobjdump([], os.environ) or ""
    nvcc = shutil.which("nvcc")
    if not exe or nvcc is None:
        pytest.skip("cuobjdump or nvcc is not installed")
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(int *p) { *p = 1; }")
    target = tmp_path / "- two $(words)\n.fatbin"
    command = [nvcc, "-fatbin", "-arch=sm_80", str(source), "-o", str(tmp_path / "k.fatbin")]
    subprocess.run(command, check=True, capture_output=True)
    os.rename(tmp_path / "k.fatbin", target)
    report = compare(read_file(str(target)), start(str(target), exe).finish())
    assert (report.status, report.differences) == ("agrees", ())
