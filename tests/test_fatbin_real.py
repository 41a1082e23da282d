"""The native list equals cuobjdump's on real binaries, entry by entry and in order.

The binaries are husks: real files without their code. cuobjdump's outputs are those of the
real files, recorded beside the husks. With the section headers damaged the list stays the
same. The test marked ``real`` repeats it on whole files with a live cuobjdump.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from fa_forensics.errors import DamagedFile, NotAnElfFile
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.agreement import compare
from fa_forensics.facts.fatbin.cuobjdump import Listing, parse_list, start
from fa_forensics.facts.fatbin.images import DeviceCode, summary
from fa_forensics.facts.fatbin.provenance import read_toolkits
from fa_forensics.facts.fatbin.reader import read_file
from fixtures import husk

HUSKS = husk.list_husks()
MEMBERS = [
    pytest.param(entry.name, member.path, id=f"{entry.name}/{member.path}")
    for entry in HUSKS
    for member in entry.members
]
#: Files whose list must also be found without section headers: executable and relocatable
#: containers, many small ones, PTX among cubins, another machine. Kept below 110 MB.
SEARCHED = (
    ("bitsandbytes-0.43.0", "bitsandbytes/libbitsandbytes_cuda118.so"),
    ("torchaudio-2.4.1", "torchaudio/lib/libtorchaudio.so"),
    ("autoawq_kernels-0.0.9", "awq_ext.cpython-311-x86_64-linux-gnu.so"),
    ("fa3_fwd-0.0.3-aarch64", "fa3_fwd/_C.abi3.so"),
)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("husks")


def runs_by_tool(runs: list[dict[str, Any]]) -> dict[tuple[str, bool], dict[str, dict[str, Any]]]:
    """The recorded runs by (version, with -all), each with its -lelf and its -lptx run."""
    tools: dict[tuple[str, bool], dict[str, dict[str, Any]]] = {}
    for run in runs:
        key = (run["version"].lstrip("V").rpartition(".")[0], "-all" in run["args"])
        tools.setdefault(key, {})[run["args"][-1]] = run
    return tools


def as_listing(version: str, pair: dict[str, dict[str, Any]]) -> Listing:
    """A recorded pair of runs, -lelf and -lptx, as the witness would have reported it."""
    elf, ptx = pair["-lelf"], pair["-lptx"]
    elf_archs, none, error = parse_list("\n".join(elf["stdout"]))
    assert (none, error) == ((), None)
    none, ptx_archs, error = parse_list("\n".join(ptx["stdout"]))
    assert (none, error) == ((), None)
    message = elf["stderr"][-1] if elf["stderr"] else ""
    return Listing("cuobjdump", version, elf_archs, ptx_archs, elf["rc"], message, None, None, 0.1)


def listed_by_default(code: DeviceCode) -> DeviceCode:
    """What cuobjdump looks at without -all: ``__nv_relfatbin`` only when it is alone."""
    executable = tuple(i for i in code.images if i.section != "__nv_relfatbin")
    return code._replace(images=executable or code.images)


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_list_equals_the_recorded_cuobjdump_lists(name: str, member: str, unpacked: Path) -> None:
    path = os.path.join(husk.unpack(name, unpacked), member)
    with ElfImage(path) as image:
        code = read_file(path)
        toolkits = read_toolkits(image, code)
    assert code.problems == ()
    assert toolkits.problems == ()
    recorded = runs_by_tool(husk.load_oracle(name)[member])
    assert {version for version, _all in recorded} >= {"12.4", "13.5"}
    for (version, everything), pair in recorded.items():
        listing = as_listing(version, pair)
        shown = code if everything else listed_by_default(code)
        report = compare(shown, listing, toolkits.toolkits)
        assert report.differences == ()
        if version == "12.4":
            assert report.status == "agrees"  # 12.4 reads every one of these files to its end
        elif report.status != "agrees":
            assert report.status == "stopped"
            assert "made by CUDA 12.0 to 12.2" in report.detail
            assert "native list is whole" in report.detail
            releases = {kit.release for kit in toolkits.toolkits}
            assert releases & {"12.0", "12.1", "12.2"}


def test_witness_stops_on_the_file_that_the_report_must_explain(unpacked: Path) -> None:
    member = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    path = os.path.join(husk.unpack("vllm_flash_attn-2.6.2", unpacked), member)
    with ElfImage(path) as image:
        code = read_file(path)
        toolkits = read_toolkits(image, code)
    recorded = runs_by_tool(husk.load_oracle("vllm_flash_attn-2.6.2")[member])
    report = compare(code, as_listing("13.5", recorded["13.5", False]), toolkits.toolkits)
    assert report.status == "stopped"
    assert report.detail.startswith("cuobjdump 13.5 listed 1 of 128 images: ")
    assert '"Invalid ELF"' in report.detail
    assert [row[:3] for row in summary(code.images)] == [
        ("cubin", "sm_80", 64),
        ("cubin", "sm_90", 64),
    ]


def without_section_headers(path: str, how: str) -> None:
    """Damage the section headers of a file in place, as strip tools and bad copies do."""
    with open(path, "r+b") as file:
        header = bytearray(file.read(64))
        if how == "removed":
            header[40:48] = bytes(8)
            header[58:64] = bytes(6)
        elif how == "names elsewhere":
            struct.pack_into("<H", header, 62, 1)
        else:
            struct.pack_into("<Q", header, 40, 0xFFFFFFFFFFFF)
        file.seek(0)
        file.write(header)


@pytest.mark.parametrize("how", ["removed", "names elsewhere", "beyond the end"])
@pytest.mark.parametrize(("name", "member"), SEARCHED)
def test_list_is_the_same_without_section_headers(
    name: str, member: str, how: str, unpacked: Path, tmp_path: Path
) -> None:
    whole = read_file(os.path.join(husk.unpack(name, unpacked), member))
    damaged = os.path.join(husk.unpack(name, tmp_path), member)
    without_section_headers(damaged, how)
    found = read_file(damaged)
    assert found.found_by == "scan"
    assert found.containers == whole.containers
    # A search goes through the file, in which __nv_relfatbin may lie before .nv_fatbin.
    in_file_order = sorted(whole.images, key=lambda image: image.offset)
    assert [(i.kind, i.arch, i.stored_bytes, i.offset) for i in found.images] == [
        (i.kind, i.arch, i.stored_bytes, i.offset) for i in in_file_order
    ]
    shutil.rmtree(tmp_path / name)


def test_file_cut_in_the_middle_lists_what_is_left(unpacked: Path, tmp_path: Path) -> None:
    name, member = SEARCHED[1]
    whole = read_file(os.path.join(husk.unpack(name, unpacked), member))
    path = os.path.join(husk.unpack(name, tmp_path), member)
    os.truncate(path, whole.images[20].payload_offset + 100)
    cut = read_file(path)
    assert [i.arch for i in cut.images] == [i.arch for i in whole.images[:21]]
    assert any("cut short" in problem for problem in cut.problems)


def test_random_damage_to_a_real_file_never_raises(unpacked: Path, tmp_path: Path) -> None:
    """1,000 corruptions of its headers, section table and entry headers, one to four at a time."""
    name, member = SEARCHED[1]
    path = os.path.join(husk.unpack(name, tmp_path), member)
    with ElfImage(path) as image:
        places = [*range(64), *range(len(image.data) - 44 * 64, len(image.data))]
        places += [i.offset + at for i in read_file(path).images for at in range(-16, 64)]
    randomness = random.Random(41)
    lists = set()
    slowest = 0.0
    with open(path, "r+b") as file:
        for _ in range(1000):
            hits = [randomness.choice(places) for _ in range(randomness.randint(1, 4))]
            before = [(at, os.pread(file.fileno(), 1, at)) for at in hits]
            for at in hits:
                os.pwrite(file.fileno(), randomness.randbytes(1), at)
            started = time.perf_counter()
            try:
                code = read_file(path)
                lists.add(summary(code.images))
            except (NotAnElfFile, DamagedFile):
                assert min(hits) < 16
            slowest = max(slowest, time.perf_counter() - started)
            for at, byte in reversed(before):
                os.pwrite(file.fileno(), byte, at)
    assert len(lists) > 10
    assert slowest < 2.0


@pytest.mark.parametrize(
    ("name", "member", "releases"),
    [
        ("autoawq_kernels-0.0.4", "awq_ext.cpython-311-x86_64-linux-gnu.so", {"12.1"}),
        ("autoawq_kernels-0.0.9", "awq_ext.cpython-311-x86_64-linux-gnu.so", {"12.4"}),
        ("bitsandbytes-0.43.0", "bitsandbytes/libbitsandbytes_cuda118.so", {"11.8"}),
        ("bitsandbytes-0.43.0", "bitsandbytes/libbitsandbytes_cuda121.so", {"12.1"}),
        ("fa3_fwd-0.0.3", "fa3_fwd/_C.abi3.so", {"13.0"}),
        ("xformers-0.0.34", "xformers/_C.so", {"12.8"}),
    ],
)  # fmt: skip
def test_toolkit_is_the_one_that_the_wheel_was_built_with(
    name: str, member: str, releases: set[str], unpacked: Path
) -> None:
    """Their projects name it: cu121, cuda118 in the file name, the torch they are built for."""
    path = os.path.join(husk.unpack(name, unpacked), member)
    with ElfImage(path) as image:
        toolkits = read_toolkits(image, read_file(path))
    assert {kit.release for kit in toolkits.toolkits} == releases
    assert toolkits.problems == ()


def test_listing_a_254_mb_file_takes_milliseconds(unpacked: Path) -> None:
    member = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    path = os.path.join(husk.unpack("vllm_flash_attn-2.6.2", unpacked), member)
    read_file(path)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        read_file(path)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.010


def real_files() -> list[str]:
    """Shared objects under FA_FORENSICS_REAL_DIR."""
    root = os.environ.get("FA_FORENSICS_REAL_DIR", "")
    return sorted(
        os.path.join(folder, file)
        for folder, _dirs, files in os.walk(root)
        for file in files
        if file.endswith((".so", ".cubin", ".fatbin"))
    )


@pytest.mark.real
def test_list_equals_a_live_cuobjdump_on_whole_files() -> None:
    """FA_FORENSICS_CUOBJDUMP names one or more cuobjdump, separated like PATH."""
    files = real_files()
    tools = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").split(os.pathsep)
    if not files or not all(os.access(tool, os.X_OK) for tool in tools):
        pytest.skip("FA_FORENSICS_REAL_DIR and FA_FORENSICS_CUOBJDUMP do not name files")
    statuses = []
    for path in files:
        with ElfImage(path) as image:
            code = read_file(path)
            toolkits = read_toolkits(image, code).toolkits
        assert code.problems == (), path
        for tool in tools:
            report = compare(code, start(path, tool, 120).finish(), toolkits)
            statuses.append(report.status)
            stop = ("CUDA 12.0 to 12.2", "no longer reads the oldest architectures")
            known = report.status == "agrees" or any(text in report.detail for text in stop)
            assert known and not report.differences, (path, report)
    assert "agrees" in statuses
