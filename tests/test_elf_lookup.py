"""Look-up by name finds each exported symbol, in its version, and nothing else.

The oracle for what is exported is nm; that the loader binds the same is test_resolve's matter.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import oracles
from support.material import SYSTEM_LIBRARIES, file_of, require, stub, tiny_file

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.hash_table import gnu_hash, sysv_hash

LIBRARIES = (
    *(f"system|{soname}" for soname in SYSTEM_LIBRARIES),
    "tiny|hash-sysv",
    "tiny|hash-gnu",
    "tiny|gnu-unique",
    "tiny|no-init",
    "husk|xformers-0.0.26.post1:xformers/_C.so",
    "husk|fa3_fwd-0.0.3-aarch64:fa3_fwd/_C.abi3.so",
)


@contextmanager
def opened(path: Path) -> Iterator[DynamicObject]:
    dynamic = DynamicObject.open(str(path))
    try:
        yield dynamic
    finally:
        dynamic.close()


def exported(path: Path) -> list[oracles.Named]:
    """What nm lists as defined, without the symbols that stand for versions themselves."""
    rows = oracles.nm_rows(path, "--defined-only")
    return [named for letter, named in rows if letter != "A"]


@pytest.mark.parametrize("identity", LIBRARIES)
def test_every_exported_name_is_found_in_its_version(identity: str) -> None:
    path = file_of(identity)
    names = exported(path)
    assert names
    with opened(path) as dynamic:
        for name, version, _how in names:
            raw = name.encode()
            found = dynamic.lookup(raw, gnu_hash(raw), version or None)
            assert found is not None, (name, version)
            assert found.version == (version or None)


@pytest.mark.parametrize("identity", LIBRARIES)
def test_an_unversioned_reference_takes_the_default_version(identity: str) -> None:
    path = file_of(identity)
    with opened(path) as dynamic:
        oldest = min((number for number in dynamic.verdef if number >= 2), default=2)
        for name, version, how in exported(path):
            if how == "@":
                continue
            raw = name.encode()
            found = dynamic.lookup(raw, gnu_hash(raw))
            assert found is not None, name
            # glibc gives an unversioned reference the oldest definition where one stands under
            # the first version, for the sake of programs from before versions existed.
            assert found.version in (version or None, dynamic.verdef.get(oldest))


@pytest.mark.parametrize("identity", LIBRARIES)
def test_names_that_are_not_exported_are_not_found(identity: str) -> None:
    path = file_of(identity)
    names = {name for name, _, _ in exported(path)}
    undefined = {name for _, (name, _, _) in oracles.nm_rows(path, "-u")} - names
    strangers = {name + "x" for name in names} | {name[:-1] for name in names} | undefined
    with opened(path) as dynamic:
        for name in sorted(strangers - names):
            raw = name.encode()
            assert dynamic.lookup(raw, gnu_hash(raw)) is None, name
        for name, version, _how in exported(path):
            if version:
                raw = name.encode()
                assert dynamic.lookup(raw, gnu_hash(raw), "NO_SUCH_VERSION") is None, name


def test_the_interpreter_or_its_library_exports_what_nm_lists() -> None:
    path = Path(sys.executable).resolve()
    shared = sysconfig.get_config_var("LDLIBRARY")
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        path = Path(sysconfig.get_config_var("LIBDIR")) / shared
    names = [name for name, _, _ in exported(path) if name.startswith("Py")]
    assert len(names) > 1000
    with opened(path) as dynamic:
        assert all(dynamic.lookup(n.encode(), gnu_hash(n.encode())) for n in names)
        assert dynamic.lookup(b"PyNo_Such", gnu_hash(b"PyNo_Such")) is None


def test_torch_names_are_found_in_the_stand_in_libraries() -> None:
    tree = stub("2.4.0+cu121")
    for library in ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_python.so"):
        path = tree.site_packages / "torch/lib" / library
        with opened(path) as dynamic:
            for name, version, _ in exported(path):
                raw = name.encode()
                assert dynamic.lookup(raw, gnu_hash(raw), version or None), name


def test_the_version_kept_from_link_time_is_the_one_found() -> None:
    library = tiny_file("old-version-bound").parent / "libdep.so"
    with opened(library) as dynamic:
        hashed = gnu_hash(b"dep_value")
        old, new = (dynamic.lookup(b"dep_value", hashed, v) for v in ("V_1", "V_2"))
        assert old and new and old.index != new.index
        assert (old.version, new.version) == ("V_1", "V_2")


def test_hidden_names_serve_nobody_and_protected_ones_do() -> None:
    hashed = gnu_hash(b"dep_value")
    with opened(tiny_file("hidden-symbol").parent / "libdep.so") as dynamic:
        assert dynamic.lookup(b"dep_value", hashed) is None
    with opened(tiny_file("protected-symbol").parent / "libdep.so") as dynamic:
        assert dynamic.lookup(b"dep_value", hashed) is not None


def test_thread_local_symbols_are_found_at_offset_zero() -> None:
    with opened(tiny_file("tls-symbol").parent / "libdep.so") as dynamic:
        found = dynamic.lookup(b"dep_counter", gnu_hash(b"dep_counter"))
        assert found is not None and found.type == 6  # STT_TLS


def test_the_two_hashes_are_those_of_the_specifications() -> None:
    # From the gABI's example and binutils' documentation of --hash-style.
    assert [sysv_hash(n) for n in (b"", b"printf", b"exit", b"syscall")] == [
        0, 0x077905A6, 0x0006CF04, 0x0B09985C,
    ]  # fmt: skip
    assert [gnu_hash(n) for n in (b"", b"printf", b"exit", b"syscall")] == [
        0x1505, 0x156B2BB8, 0x7C967E3F, 0xBAC212A0,
    ]  # fmt: skip


def test_both_hash_tables_of_one_library_agree(tmp_path: Path) -> None:
    """The same library linked with DT_HASH alone finds the same names and misses the same."""
    gcc = require("gcc")
    source = tmp_path / "many.c"
    names = [f"name_{i * i}" for i in range(500)]
    source.write_text("\n".join(f"int {name}(void) {{ return 0; }}" for name in names))
    for style in ("sysv", "gnu", "both"):
        out = tmp_path / f"{style}.so"
        oracles.output_of(gcc, "-shared", "-fPIC", f"-Wl,--hash-style={style}", "-o", out, source)
        with opened(out) as dynamic:
            assert all(dynamic.lookup(n.encode(), gnu_hash(n.encode())) for n in names)
            for i in range(500):
                raw = f"name_{i * i + 2}".encode()
                expected = raw.decode() in names
                assert (dynamic.lookup(raw, gnu_hash(raw)) is not None) == expected
