"""The loader's cache and default directories are what ldconfig and ld.so print of them."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from support import oracles
from support.material import require, tiny_dir
from test_resolve import interpreter

from fa_forensics.facts.elf.image import EM_AARCH64, EM_X86_64
from fa_forensics.resolve.search import DEFAULT_DIRECTORIES, Searcher, split_path

MACHINE = EM_AARCH64 if os.uname().machine == "aarch64" else EM_X86_64
ABI = "AArch64" if MACHINE == EM_AARCH64 else "x86-64"


def ldconfig() -> str:
    return shutil.which("ldconfig", path=f"{os.environ['PATH']}:/sbin:/usr/sbin") or require(
        "ldconfig"
    )


def listed(*options: str) -> dict[str, list[str]]:
    """Name → paths for this machine, in the cache's order, as ``ldconfig -p`` prints it."""
    rows: dict[str, list[str]] = {}
    for line in oracles.output_of(ldconfig(), *options, "-p").splitlines():
        match = re.match(r"\s+(\S+) \(libc6,([^)]*)\) => (\S+)$", line)
        if match and match[2].split(",")[0] == ABI:
            rows.setdefault(match[1], []).append(match[3])
    return rows


def test_the_systems_cache_is_read_as_ldconfig_reads_it() -> None:
    rows = listed()
    if not rows:
        pytest.skip("this system's loader has no cache")
    searcher = Searcher(MACHINE, None, ())
    for name, paths in rows.items():
        there = [p for p in paths if os.path.exists(p)]
        plain = [p for p in there if "hwcaps" not in p]
        if there == plain and there:
            assert searcher.in_cache(name) == there[0], name
        elif there:
            assert searcher.in_cache(name) in there
    assert searcher.in_cache("libno-such-thing.so.9") is None
    assert searcher.problems == []


def test_a_cache_of_our_own_with_hardware_variants(tmp_path: Path) -> None:
    """ldconfig makes the cache; the loader's own answer to it is `--list-diagnostics`'s levels."""
    libraries = tmp_path / "lib"
    shutil.copytree(tiny_dir("hwcaps-subdirectory") / "deep", libraries)
    config, cache = tmp_path / "conf", tmp_path / "cache"
    config.write_text(f"{libraries}\n")
    done = subprocess.run(
        [ldconfig(), "-X", "-C", cache, "-f", config], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"ldconfig cannot make a cache here: {done.stderr.strip()}")
    paths = listed("-C", str(cache))["libdep.so"]
    assert [Path(p).parent.name for p in paths] == ["x86-64-v2", "lib"]
    searcher = Searcher(MACHINE, None, (), str(cache))
    loader = interpreter()[1]
    supported = "x86-64-v2 (supported, searched)" in oracles.output_of(loader, "--help")
    assert searcher.in_cache("libdep.so") == paths[0 if supported else 1]


def test_entries_for_another_abi_are_passed_over(tmp_path: Path) -> None:
    """The same cache with every entry marked as 32-bit: ldconfig lists none for this machine."""
    system = Path("/etc/ld.so.cache")
    if not system.exists():
        pytest.skip("this system's loader has no cache")
    content = bytearray(system.read_bytes())
    start = content.index(b"glibc-ld.so.cache1.1")
    (count,) = struct.unpack_from("<I", content, start + 20)
    for entry in range(count):
        struct.pack_into("<i", content, start + 48 + 24 * entry, 0x0003)  # FLAG_ELF_LIBC6
    cache = tmp_path / "cache"
    cache.write_bytes(content)
    assert listed("-C", str(cache)) == {} != listed()
    assert Searcher(MACHINE, None, (), str(cache)).in_cache("libc.so.6") is None
    assert Searcher(MACHINE, None, ()).in_cache("libc.so.6") is not None


def test_default_directories_are_those_compiled_into_the_loader() -> None:
    loader = interpreter()[1]
    text = oracles.output_of(loader, "--list-diagnostics", check=False)
    theirs = re.findall(r'^path\.system_dirs\[\w+\]="(.*?)/?"$', text, re.M)
    if not theirs:
        pytest.skip(f"{loader} has no option --list-diagnostics (glibc before 2.33)")
    assert list(Searcher(MACHINE, loader, ()).defaults) == theirs


def test_without_a_readable_loader_the_built_in_list_serves(tmp_path: Path) -> None:
    broken = tmp_path / "ld.so"
    broken.write_bytes(b"no loader at all")
    for loader in (None, str(broken), str(tmp_path / "absent")):
        assert Searcher(MACHINE, loader, ()).defaults == DEFAULT_DIRECTORIES


@pytest.mark.parametrize("keep", [0, 10, 20, 40, 47, 48, 60, 100, 1000])
def test_a_damaged_cache_is_a_problem_and_not_an_error(tmp_path: Path, keep: int) -> None:
    cache = tmp_path / "cache"
    system = Path("/etc/ld.so.cache")
    if not system.exists():
        pytest.skip("this system's loader has no cache")
    cache.write_bytes(system.read_bytes()[:keep])
    searcher = Searcher(MACHINE, None, (), str(cache))
    assert searcher.in_cache("libc.so.6") is None or not searcher.problems
    assert all("damaged" in problem for problem in searcher.problems)
    assert keep > 0 or searcher.problems


def test_a_missing_cache_is_no_problem(tmp_path: Path) -> None:
    searcher = Searcher(MACHINE, None, (), str(tmp_path / "none"))
    assert searcher.in_cache("libc.so.6") is None
    assert searcher.problems == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", []), ("/a", ["/a"]), ("/a:/b;/c", ["/a", "/b", "/c"]), ("/a:", ["/a", ""])],
)
def test_library_path_is_split_at_colons_and_semicolons(text: str, parts: list[str]) -> None:
    assert split_path(text) == parts


@pytest.mark.parametrize(
    ("element", "expanded"),
    [
        ("$ORIGIN/lib", "/opt/x/lib"),
        ("${ORIGIN}/lib", "/opt/x/lib"),
        ("/a/$ORIGINAL", "/a/$ORIGINAL"),
        ("/a/$PLATFORM", "/a/x86_64"),
        ("/plain", "/plain"),
        ("", "."),
    ],
)
def test_dynamic_string_tokens(element: str, expanded: str) -> None:
    assert Searcher(EM_X86_64, None, ()).expand(element, "/opt/x") == expanded
