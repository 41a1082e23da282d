"""Each tiny file shows the rule it is named for (oracles: dlopen, LD_DEBUG, ldd, readelf, nm)."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.stub_torch import cached_stub_torch
from fixtures.tiny import (
    ABORTS,
    BUS_ERROR,
    EXITS,
    FAILS,
    HANGS,
    LOADS,
    SEGFAULTS,
    TINIES,
    CannotBuild,
    Tiny,
    build_all,
    build_tiny,
)

CHILD = """
import ctypes, sys
print("start", flush=True)
for path in sys.argv[2:]:
    ctypes.CDLL(path)
try:
    library = ctypes.CDLL(sys.argv[1])
except OSError as error:
    print("error", error)
else:
    print("loaded")
    if hasattr(library, "ext_value"):
        print("value", library.ext_value())
"""
GLIBC = tuple(int(part) for part in platform.libc_ver()[1].split("."))


@pytest.fixture(scope="session")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return shared / "tiny"


def built(name: str, top: Path) -> Path:
    try:
        return build_tiny(name, top)
    except CannotBuild as error:
        pytest.skip(f"cannot build {name}: {error}")


def out(*command: str | Path, **environment: str) -> str:
    """Return all that a tool prints, with whatever exit code."""
    done = subprocess.run(
        command, capture_output=True, text=True, env={**clean(), **environment}, timeout=60
    )
    return done.stdout + done.stderr


def clean() -> dict[str, str]:
    dropped = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_DEBUG")
    return {k: v for k, v in os.environ.items() if k not in dropped} | {"LC_ALL": "C"}


def really_load(case: Tiny, path: Path) -> tuple[str, str]:
    """Return what became of a dlopen in a child process, as (outcome, all it printed)."""
    directory = next(p for p in path.parents if p.name == case.name)
    environment = clean()
    if case.library_path:
        environment["LD_LIBRARY_PATH"] = str(directory / case.library_path)
    command = [sys.executable, "-c", CHILD, str(path), *(str(directory / f) for f in case.first)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        text, _ = child.communicate(timeout=2 if case.outcome == HANGS else 60)
    except subprocess.TimeoutExpired:
        child.kill()
        text, _ = child.communicate()
        assert text == "start\n"
        return HANGS, text
    lines = text.splitlines()
    if any(line.startswith("error ") for line in lines):
        return FAILS, text
    if "loaded" in lines:
        return LOADS, text
    ends = {-11: SEGFAULTS, -7: BUS_ERROR, -6: ABORTS, 0: EXITS, 127: EXITS}
    return ends[child.returncode], text


@pytest.mark.parametrize("name", sorted(TINIES))
def test_dlopen_does_what_the_case_says(name: str, top: Path) -> None:
    case = TINIES[name]
    if name == "exec-stack" and GLIBC >= (2, 41):
        pytest.skip("glibc 2.41 and later refuses what earlier ones load")
    outcome, text = really_load(case, built(name, top))
    assert outcome == case.outcome, text
    assert case.says in text
    if case.value is not None:
        assert f"value {case.value}\n" in text


def test_every_case_has_a_meaning_of_its_own() -> None:
    meanings = [case.meaning for case in TINIES.values()]
    assert len(set(meanings)) == len(meanings) >= 50
    assert all(case.says for case in TINIES.values() if case.outcome == FAILS)


def test_build_all_builds_or_says_why(top: Path) -> None:
    paths, could_not = build_all(top)
    assert set(paths) | set(could_not) == set(TINIES)
    assert set(could_not) <= {"relr"}
    assert all(path.is_file() for path in paths.values())


def test_a_case_that_cannot_be_built_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        TINIES, "no-source", Tiny("no-source", "", lambda b: b.so("a", "b.c"), LOADS)
    )
    with pytest.raises(CannotBuild, match="b.c: No such file"):
        build_tiny("no-source", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_building_again_keeps_the_files(top: Path) -> None:
    first = built("whole", top)
    stamp = first.stat().st_mtime_ns
    assert built("whole", top) == first
    assert first.stat().st_mtime_ns == stamp


# --- the loader's own account of its search -------------------------------------------------


def tried(path: Path, library: str, **environment: str) -> list[str]:
    """Return the places, relative to the case, where ld.so looked for a library, in order."""
    code = (
        "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError as e: print('error', e)"
    )
    text = out(sys.executable, "-c", code, path, LD_DEBUG="libs", **environment)
    found = re.findall(rf"trying file=(\S+/{re.escape(library)})$", text, re.M)
    start = f"{path.parent}/"
    inside = (f.removeprefix(start) for f in found if f.startswith(start))
    # Before 2.37 glibc first tried subdirectories for processors in a directory new to it.
    processors = {"glibc-hwcaps", "tls", "haswell", "avx512_1", "xeon_phi", "x86_64"}
    return [f for f in inside if not processors & set(f.split("/"))]


@pytest.mark.parametrize(
    ("name", "library_path", "places"),
    [
        ("rpath-first", "environment", ["rpath/libdep.so"]),
        ("runpath-last", "environment", ["environment/libdep.so"]),
        ("runpath-last", "", ["runpath/libdep.so"]),
        ("rpath-and-runpath", "", ["runpath/libdep.so"]),
        ("rpath-inherited", "", ["mid/libdep.so", "deep/libdep.so"]),
        ("runpath-not-inherited", "", []),
        ("runpath-stops-rpath", "", ["mid/nowhere/libdep.so"]),
        ("wrong-machine-skipped", "", ["wrong/libdep.so", "right/libdep.so"]),
        ("broken-not-skipped", "", ["wrong/libdep.so"]),
        ("origin-braces", "", ["deep/libdep.so"]),
    ],
)
def test_the_loader_tries_these_places(
    name: str, library_path: str, places: list[str], top: Path
) -> None:
    path = built(name, top)
    environment = {"LD_LIBRARY_PATH": str(path.parent / library_path)} if library_path else {}
    assert tried(path, "libdep.so", **environment) == places


def test_a_hwcaps_subdirectory_is_used_where_the_processor_allows(top: Path) -> None:
    if GLIBC < (2, 33):
        pytest.skip("glibc-hwcaps came with glibc 2.33")
    case = TINIES["hwcaps-subdirectory"]
    searched = "x86-64-v2 (supported, searched)" in out("/lib64/ld-linux-x86-64.so.2", "--help")
    outcome, text = really_load(case, built(case.name, top))
    assert outcome == LOADS
    assert f"value {2 if searched else 1}\n" in text


# --- what ldd, readelf and nm see -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing-soname", "libabsent.so.1 => not found"),
        ("missing-symbol", "undefined symbol: nobody_defines_this"),
        ("hidden-symbol", "undefined symbol: dep_value"),
        ("missing-version", "version `V_2' not found"),
        ("symbol-not-under-version", "undefined symbol: dep_value, version V_2"),
        ("unversioned-library", "no version information available"),
        ("glibc-too-new", "version `GLIBC_2.99' not found"),
    ],
)
def test_ldd_says_the_same(name: str, says: str, top: Path) -> None:
    assert says in out("ldd", "-r", built(name, top))


@pytest.mark.parametrize("name", ["weak-undefined", "whole", "first-provider", "needed-cycle"])
def test_ldd_finds_nothing_wrong(name: str, top: Path) -> None:
    text = out("ldd", "-r", built(name, top))
    assert "undefined" not in text and "not found" not in text
    assert "libc.so.6 => " in text


@pytest.mark.parametrize(
    ("name", "option", "pattern"),
    [
        ("rpath-first", "-d", r"\(RPATH\) .*\[\$ORIGIN/rpath\]"),
        ("runpath-last", "-d", r"\(RUNPATH\) .*\[\$ORIGIN/runpath\]"),
        ("rpath-and-runpath", "-d", r"(?s)\(RUNPATH\) .*\$ORIGIN/runpath.*\(RPATH\)|\(RPATH\).*"
         r"\$ORIGIN/rpath.*\(RUNPATH\) .*\$ORIGIN/runpath"),
        ("needed-with-slash", "-d", r"\(NEEDED\) .*\[nowhere/libdep\.so\]"),
        ("hash-sysv", "-d", r"(?s)^(?!.*\(GNU_HASH\)).*\(HASH\)"),
        ("hash-gnu", "-d", r"(?s)^(?!.* \(HASH\)).*\(GNU_HASH\)"),
        ("relr", "-d", r"\(RELR\)"),
        ("static-tls", "-d", r"STATIC_TLS"),
        ("weak-undefined", "--dyn-syms", r" WEAK +DEFAULT +UND nobody_defines_this"),
        ("missing-symbol", "--dyn-syms", r" GLOBAL +DEFAULT +UND nobody_defines_this"),
        ("gnu-unique", "--dyn-syms", r" OBJECT +UNIQUE +DEFAULT +\d+ unique_object"),
        ("tls-symbol", "--dyn-syms", r" TLS +GLOBAL +DEFAULT +UND dep_counter"),
        ("exec-stack", "-l", r"GNU_STACK .* RWE "),
        ("whole", "-l", r"GNU_STACK .* RW  "),
        ("no-section-headers", "-S", r"There are no sections in this file"),
        ("big-endian", "-h", r"(?s)big endian.*DYN.*S/390"),
        ("elf-32", "-h", r"(?s)ELF32.*DYN.*80386"),
        ("aarch64", "-h", r"(?s)ELF64.*DYN.*AArch64"),
        ("relocatable", "-h", r"Type: +REL"),
        ("cut-in-header", "-h", r"Error"),
    ],
)  # fmt: skip
def test_readelf_shows_it(name: str, option: str, pattern: str, top: Path) -> None:
    assert re.search(pattern, out("readelf", "-W", option, built(name, top)))


def test_the_protected_name_is_protected(top: Path) -> None:
    library = built("protected-symbol", top).parent / "libdep.so"
    assert re.search(
        r" FUNC +GLOBAL +PROTECTED +\d+ dep_value", out("readelf", "-W", "--dyn-syms", library)
    )


def test_the_hidden_name_is_there_but_not_exported(top: Path) -> None:
    library = built("hidden-symbol", top).parent / "libdep.so"
    assert "dep_value" not in out("nm", "-D", library)
    assert " t dep_value" in out("nm", library)


# --- torch-like extensions ------------------------------------------------------------------

ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationE"
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def undefined(path: Path) -> set[str]:
    return {line.split()[-1] for line in out("nm", "-D", "-u", path).splitlines()}


def test_the_flavours_ask_for_the_names_real_extensions_ask_for(top: Path) -> None:
    assert f"{ERROR}Ss" in undefined(built("old-string", top))
    assert f"{ERROR}{NEW_STRING}" in undefined(built("new-string", top))
    plain = undefined(built("no-string", top))
    assert "_ZN3c104cuda9SetDeviceEi" in plain
    assert not [name for name in plain if re.search(r"Ss|__cxx11|cxx11", name)]


@pytest.mark.parametrize(
    ("name", "torch", "says"),
    [
        ("old-string", "2.4.0+cu121", "loaded"),
        ("old-string", "2.9.1+cu128", r"undefined symbol: _ZN3c10.*Ss$"),
        ("new-string", "2.4.0+cu121", r"undefined symbol: _ZN3c10.*__cxx1112basic_string"),
        ("new-string", "2.9.1+cu128", "loaded"),
        ("no-string", "2.2.2+cu121", "loaded"),
        ("no-string", "2.4.0+cu121", "undefined symbol: _ZN3c104cuda9SetDeviceEi"),
    ],
)
def test_a_flavour_loads_with_a_torch_of_its_own(
    name: str, torch: str, says: str, top: Path
) -> None:
    stub = cached_stub_torch(torch)
    first = stub.site_packages / "torch/lib/libtorch_python.so"
    text = out(sys.executable, "-c", CHILD, built(name, top), first)
    assert re.search(says, text, re.M), text


# --- Python's own rules ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wrong-python-tag", "ModuleNotFoundError: No module named 'ext'"),
        ("wrong-init-name", "dynamic module does not define module export function (PyInit_ext)"),
        ("no-init", "dynamic module does not define module export function (PyInit_ext)"),
        ("missing-symbol", "undefined symbol: nobody_defines_this"),
        ("cut-in-header", "file too short"),
    ],
)
def test_python_refuses_to_import_it(name: str, says: str, top: Path) -> None:
    if name == "wrong-python-tag" and sys.version_info[:2] == (3, 10):
        pytest.skip("this interpreter is the one that the file is for")
    folder = built(name, top).parent
    assert says in out(sys.executable, "-c", "import ext", PYTHONPATH=str(folder))
