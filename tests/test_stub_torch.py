"""Stand-in torch trees say what the real torch builds say (oracles: nm, readelf, dlopen)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fixtures import husk
from fixtures.record_index import choose_wheel, open_wheel
from fixtures.record_torch import qualified
from fixtures.stub_torch import (
    Library,
    StubTorch,
    build_stub_torch,
    cached_stub_torch,
    load_record,
    recorded_versions,
)

TRUTH = Path(__file__).parent.parent / "fixtures/truth"
SYSTEM = (
    "libstdc++.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libc.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
)
TORCH_OWNED = re.compile(r"_ZNK?(3c10|2at|5torch|6caffe2)|aoti_torch_|torch_")
BUILDS = {
    "2.2.2+cu121",
    "2.4.0+cu121",
    "2.6.0+cu124",
    "2.9.1+cu128",
    "2.13.0+cpu",
    "2.14.1+cu130",
}


def run(*command: str | Path) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def nm_exports(path: Path) -> list[tuple[str, str]]:
    text = run("nm", "-D", "--defined-only", "--with-symbol-versions", path)
    return sorted((line.split()[1], line.split()[2]) for line in text.splitlines())


@pytest.fixture(params=recorded_versions())
def stub(request: pytest.FixtureRequest) -> StubTorch:
    return cached_stub_torch(request.param)


def test_every_build_of_the_loading_truth_has_a_record() -> None:
    assert set(recorded_versions()) == BUILDS
    assert {row["torch"] for row in truth_rows()} <= BUILDS


def test_nm_lists_exactly_the_recorded_names(stub: StubTorch) -> None:
    for library in stub.record.libraries():
        recorded = sorted(
            (kind[0], name) for kind, names in library.symbols.items() for name in names
        )
        # Tolerated: GNU ld exports the name of each version as an absolute symbol.
        versions = {("A", name) for name in library.verdefs}
        found = [entry for entry in nm_exports(stub.path(library)) if entry not in versions]
        assert found == recorded, library.path


def test_readelf_shows_the_recorded_dynamic_section(stub: StubTorch) -> None:
    for library in stub.record.libraries():
        text = run("readelf", "-dVW", stub.path(library))

        def tagged(tag: str, text: str = text) -> tuple[str, ...]:
            return tuple(re.findall(rf"\({tag}\).*\[(.*)\]", text))

        assert tagged("SONAME") == ((library.soname,) if library.soname else ()), library.path
        assert tagged("NEEDED") == library.needed, library.path
        assert tagged("RPATH") == ((library.rpath,) if library.rpath else ()), library.path
        assert tagged("RUNPATH") == ((library.runpath,) if library.runpath else ()), library.path
        hashes = tuple(tag for tag in ("HASH", "GNU_HASH") if f"({tag})" in text)
        assert hashes == library.hash, library.path
        verdefs = re.findall(r"Rev: \d+  Flags: (\S+) .*Name: (\S+)", text)
        assert tuple(name for flags, name in verdefs if flags != "BASE") == library.verdefs


def test_thread_local_names_are_thread_local(stub: StubTorch) -> None:
    seen = 0
    for library in stub.record.libraries():
        names = {n for kind, group in library.symbols.items() if kind[1:] == "t" for n in group}
        shown = run("readelf", "-sDW", stub.path(library)) if names else ""
        assert set(re.findall(r" TLS +\w+ +\w+ +\d+ (\S+)", shown)) == names
        seen += len(names)
    assert seen > 0


def test_the_loader_maps_the_whole_tree_from_itself(stub: StubTorch) -> None:
    code = (
        "import ctypes, os, sys\n"
        "ctypes.CDLL(sys.argv[1], os.RTLD_NOW)\n"
        "print('\\n'.join(sorted({l.split()[5].strip() for l in open('/proc/self/maps')"
        " if '.so' in l})))\n"
    )
    top = stub.site_packages / "torch/lib/libtorch_python.so"
    mapped = {Path(line) for line in run(sys.executable, "-c", code, top).splitlines()}
    of_tree = {path.name for path in mapped if stub.root.resolve() in path.parents}
    torch_names = {"libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"}
    if "+cu" in stub.version:
        torch_names |= {"libc10_cuda.so", "libtorch_cuda.so"}
        assert any(name.startswith("libcudart.so") for name in of_tree)
    assert torch_names <= of_tree


def test_importing_the_stand_in_raises(stub: StubTorch) -> None:
    environment = {**os.environ, "PYTHONPATH": str(stub.site_packages)}
    done = subprocess.run(
        [stub.python, "-c", "import torch"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 1
    assert "RuntimeError: this torch is a stand-in" in done.stderr


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the records are of CPython 3.11")
def test_its_interpreter_finds_its_own_torch(stub: StubTorch) -> None:
    code = (
        "import importlib.metadata as m, importlib.util as u, sys\n"
        "print(sys.prefix, u.find_spec('torch').origin, m.version('torch'))"
    )
    prefix, origin, version = run(stub.python, "-c", code).split()
    assert Path(prefix) == stub.root
    assert Path(origin) == stub.site_packages / "torch/__init__.py"
    assert version == next(d.version for d in stub.record.distributions if d.name == "torch")


def test_two_workers_may_build_the_same_tree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(build_stub_torch, "2.13.0+cpu", tmp_path / "tree") for _ in range(2)]
        first, second = (job.result() for job in jobs)
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]
    assert all(first.path(library).is_file() for library in first.record.libraries())


def test_an_unknown_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        build_stub_torch("9.9.9+cu999", tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


# --- the records against real loads ---------------------------------------------------------


@cache
def truth_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((TRUTH / "dlopen_truth.json").read_text())["rows"]
    return rows


@cache
def link_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((TRUTH / "link_truth.json").read_text())["rows"]
    return rows


@cache
def provided_by_torch(version: str) -> frozenset[str]:
    return frozenset(n for lib in load_record(version).libraries() for n in lib.names())


@cache
def provided_by_system() -> frozenset[str]:
    found: set[str] = set()
    for soname in SYSTEM:
        path = Path(run("gcc", f"-print-file-name={soname}").strip())
        found |= {name.partition("@")[0] for _, name in nm_exports(path)}
    return frozenset(found)


class Husks:
    """The real files of the truth rows, unpacked once a session."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.known = {h.name: {m.path for m in h.members} for h in husk.list_husks()}
        self.wanted = cache(self._wanted)

    def find(self, row: dict[str, Any]) -> Path | None:
        name = "-".join(row["wheel"].split("-")[:2])
        if row["so"] not in self.known.get(name, ()):
            return None
        return Path(husk.unpack(name, self.top), row["so"])

    def _wanted(self, path: Path) -> tuple[frozenset[str], frozenset[str]]:
        """Return the undefined names that somebody must provide, and the names of its siblings."""
        needed = frozenset(
            line.split()[-1].partition("@")[0]
            for line in run("nm", "-D", "-u", path).splitlines()
            if line.split()[0] == "U"
        )
        siblings = (p for p in path.parent.glob("*.so*") if p != path)
        return needed, frozenset(
            name.partition("@")[0] for sibling in siblings for _, name in nm_exports(sibling)
        )

    def missing(self, path: Path, version: str) -> frozenset[str]:
        """Return the strong undefined names that neither this torch nor the system exports."""
        needed, siblings = self.wanted(path)
        python = {name for name in needed if re.match(r"_?Py", name)}
        return needed - siblings - python - provided_by_system() - provided_by_torch(version)


@pytest.fixture(scope="session")
def husks(tmp_path_factory: pytest.TempPathFactory) -> Husks:
    return Husks(tmp_path_factory.mktemp("husks"))


def test_a_symbol_the_loader_missed_is_in_no_library(husks: Husks) -> None:
    seen = 0
    for row in truth_rows():
        at = re.search(r"undefined symbol: (\w+)", row["result"])
        if at:
            assert at[1] not in provided_by_torch(row["torch"]), row
            seen += 1
            path = husks.find(row)
            if path and row["so"].endswith(row["result"].partition(":")[0].rpartition("/")[2]):
                assert at[1] in husks.missing(path, row["torch"]), row
    assert seen > 50


def test_a_library_the_loader_missed_is_in_no_tree() -> None:
    seen = 0
    for row in truth_rows():
        at = re.match(r"(\S+): cannot open shared object file", row["result"])
        if at:
            sonames = {lib.soname for lib in load_record(row["torch"]).libraries()}
            assert at[1] not in sonames, row
            seen += 1
    assert seen > 50


def test_a_file_that_loaded_lacks_nothing(husks: Husks) -> None:
    seen = 0
    for row in truth_rows():
        path = husks.find(row) if row["result"] == "OK" else None
        if path:
            assert husks.missing(path, row["torch"]) == frozenset(), row
            seen += 1
    assert seen >= 15


@pytest.mark.parametrize("version", sorted(v for v in BUILDS if "+cu" in v))
def test_linking_truth_agrees_with_the_record(husks: Husks, version: str) -> None:
    seen = 0
    for row in link_rows():
        path = husks.find(row)
        if path:
            missing = {n for n in husks.missing(path, version) if TORCH_OWNED.match(n)}
            assert (missing == set()) == (version.partition("+")[0] in row["links_with"]), row
            seen += 1
    assert seen >= 5


@pytest.mark.real
def test_the_index_still_serves_what_was_recorded(tmp_path: Path) -> None:
    packaging = pytest.importorskip("packaging.requirements")
    pytest.importorskip("pypi_simple")
    pytest.importorskip("remotezip")
    _, url = choose_wheel(packaging.Requirement("torch==2.4.0"))
    with open_wheel(url) as wheel:
        path = Path(wheel.extract("torch/lib/libc10.so", tmp_path))
    library = next(
        lib for lib in load_record("2.4.0+cu121").libraries() if lib.path == "torch/lib/libc10.so"
    )
    recorded = sorted((k[0], name) for k, names in library.symbols.items() for name in names)
    assert nm_exports(path) == recorded


# --- what a record keeps --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "mangled", "nearest"),
    [
        ("2.4.0+cu121", "_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEa"),
        ("2.9.1+cu128", "_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEab"),
        (
            "2.9.1+cu128",
            "_ZN3c105ErrorC2ENS_14SourceLocationESs",
            "_ZN3c105ErrorC1ENS_14SourceLocationE"
            "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        ),
        (
            "2.4.0+cu121",
            "_ZNK5torch8autograd4Node4nameB5cxx11Ev",
            "_ZNK5torch8autograd4Node4nameEv",
        ),
    ],
)
def test_overloads_and_twins_of_missing_names_are_kept(
    version: str, mangled: str, nearest: str
) -> None:
    names = provided_by_torch(version)
    assert mangled not in names
    assert nearest in names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c10::cuda::SetDevice(signed char, bool)", "c10::cuda::SetDevice"),
        ("c10::Error::what() const", "c10::Error::what"),
        ("torch::autograd::Node::name[abi:cxx11]() const", "torch::autograd::Node::name"),
        ("c10::detail::f(char const*, std::__cxx11::basic_string<char> const&)", "c10::detail::f"),
        ("float* at::TensorBase::data_ptr<float>() const", "at::TensorBase::data_ptr<float>"),
        ("c10::Scalar::operator bool() const", "c10::Scalar::operator bool"),
        ("at::f(void (*)(int))", "at::f"),
        ("vtable for c10::Error", "vtable for c10::Error"),
        ("cudaFree", "cudaFree"),
    ],
)
def test_a_qualified_name_ends_before_the_parameters(text: str, name: str) -> None:
    assert qualified(text) == name


def test_small_libraries_are_kept_whole() -> None:
    def whole(library: Library) -> bool:
        kept = sum(len(names) for kind, names in library.symbols.items())
        return kept >= library.exports - len(library.verdefs)

    for version in recorded_versions():
        for library in load_record(version).libraries():
            if re.search(r"/libc10(_cuda)?\.so$|/libcudart\.so", library.path):
                assert whole(library), (version, library.path)
