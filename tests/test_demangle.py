"""Demangling is binutils' c++filt; folding and qualified names keep the C++ grammar's meaning."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from support import oracles
from support.material import DYNAMIC_FILES, file_of, require

from fa_forensics.facts.demangle import (
    MAX_MANGLED,
    can_demangle,
    demangle,
    demangle_many,
    fold_flavour,
    mentions_cxx11,
    mentions_old_string,
    qualified_name,
    readable,
)
from fa_forensics.facts.elf.dynamic import DynamicObject
from fixtures.stub_torch import load_record, recorded_versions

#: Of CUTLASS's own lambdas with a parameter pack of generic type, libstdc++'s demangler
#: (GCC 12's __cxa_demangle) gives up and the name stays as it is; binutils' succeeds.
GENERIC_PACK_LAMBDA = re.compile(r"UlDp[ROT]")


@cache
def symbols(identity: str, undefined: bool) -> tuple[str, ...]:
    dynamic = DynamicObject.open(str(file_of(identity)))
    try:
        rows = [s.name.decode() for s in dynamic.symbols() if (s.shndx == 0) == undefined]
    finally:
        dynamic.close()
    return tuple(name for name in rows if name)


def test_every_undefined_name_of_every_file_reads_as_cxxfilt_writes_it() -> None:
    names = sorted({name for identity in DYNAMIC_FILES for name in symbols(identity, True)})
    assert len(names) > 1000
    assert [demangle(name) for name in names] == oracles.cxxfilt(names)


def test_many_names_at_once_read_as_each_alone() -> None:
    names = sorted({name for identity in DYNAMIC_FILES for name in symbols(identity, True)})
    names += ["", "plain", "_Z", "_ZN", "_Z" + "x" * MAX_MANGLED, "_ZN3c103fooEv"]
    assert demangle_many(names) == [demangle(name) for name in names]


def test_every_defined_name_reads_as_cxxfilt_writes_it_but_for_generic_pack_lambdas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The children that find no readable form must not use up the time for those that do.
    monkeypatch.setattr("fa_forensics.facts.demangle.CHILD_SECONDS", 600.0)
    names = sorted({name for identity in DYNAMIC_FILES for name in symbols(identity, False)})
    assert len(names) > 10_000
    given_up = 0
    for name, theirs in zip(names, oracles.cxxfilt(names), strict=True):
        ours = demangle(name)
        if ours != theirs:
            assert GENERIC_PACK_LAMBDA.search(name) and "cute" in name
            assert ours == name
            given_up += 1
    assert given_up < len(names) / 50


@pytest.mark.parametrize("version", recorded_versions())
def test_every_recorded_torch_name_reads_as_cxxfilt_writes_it(version: str) -> None:
    names = sorted({name for lib in load_record(version).libraries() for name in lib.names()})
    assert len(names) > 500
    assert [demangle(name) for name in names] == oracles.cxxfilt(names)


@pytest.mark.parametrize("name", ["cudaFree", "_Z", "_ZN", "_ZNot", "", "_Z\n", "Z3foo", "_Z3fo"])
def test_what_is_no_mangled_name_stays_as_it_is(name: str) -> None:
    assert demangle(name) == name


def test_a_name_that_would_explode_stays_as_it_is() -> None:
    # Each level names the level before it twice: 2^depth characters from a short name.
    bomb = "_Z1f" + "1AIiE" + "".join(f"S{i}_" for i in "0123456789") * 2000
    assert len(bomb) > MAX_MANGLED
    assert demangle(bomb) == bomb


def test_finding_the_demangler_starts_no_other_program(tmp_path: Path) -> None:
    strace = require("strace")
    code = "from fa_forensics.facts.demangle import demangle; print(demangle('_ZN1a1bEv'))"
    log = tmp_path / "log"
    done = subprocess.run(
        [strace, "-f", "-e", "trace=execve", "-o", log, sys.executable, "-c", code],
        capture_output=True, text=True, cwd=Path(__file__).parent.parent, timeout=60,
    )  # fmt: skip
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.stdout == "a::b()\n"
    assert log.read_text().count("execve(") == 1


def test_importing_ctypes_util_still_finds_libraries_afterwards() -> None:
    import ctypes.util

    search = ctypes.util.find_library
    assert can_demangle()
    assert ctypes.util.find_library is search


def test_demangling_leaves_ctypes_util_to_be_imported_and_costs_no_subprocess_module() -> None:
    program = (
        "import sys\n"
        "from fa_forensics.facts.demangle import demangle\n"
        "assert demangle('_ZN3c105ErrorE') == 'c10::Error'\n"
        "assert 'subprocess' not in sys.modules and 'ctypes.util' not in sys.modules\n"
        "import ctypes.util\n"
        "print(ctypes.util.find_library('c'), ctypes.util.__file__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "libc.so" in done.stdout and done.stdout.strip().endswith("util.py")


TWINS = [
    ("_ZN3c105ErrorC1ENS_14SourceLocationESs",
     "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
    ("_ZNK5torch8autograd4Node4nameEv", "_ZNK5torch8autograd4Node4nameB5cxx11Ev"),
    ("_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
     "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_"
     "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), TWINS)
def test_both_flavours_of_one_function_fold_to_one_text(old: str, new: str) -> None:
    assert demangle(old) != demangle(new)
    assert fold_flavour(demangle(old)) == fold_flavour(demangle(new)) == demangle(old)
    assert mentions_cxx11(new, demangle(new)) and not mentions_cxx11(old, demangle(old))


def test_compiled_twins_fold_to_one_text(tmp_path: Path) -> None:
    """The compiler itself makes both names of each function; folding must meet."""
    require("g++")
    source = tmp_path / "a.cpp"
    source.write_text(
        "#include <string>\n#include <vector>\n#include <map>\n#include <functional>\n"
        "namespace c10 { struct X { std::string name() const; X(std::string); };\n"
        "X::X(std::string) {} std::string X::name() const { return {}; }\n"
        "void f(const std::string&, std::vector<std::string>) {}\n"
        "void g(std::map<std::string, std::vector<int>>*, std::string&&) {}\n"
        "void h(std::function<std::string(std::string)>) {}\n"
        "template <class T> T t(T x) { return x; } template std::string t(std::string); }\n"
    )
    names = []
    for flag in (0, 1):
        out = tmp_path / f"{flag}.o"
        oracles.output_of("g++", "-c", f"-D_GLIBCXX_USE_CXX11_ABI={flag}", "-o", out, source)
        text = oracles.output_of("nm", out)
        names.append(sorted(set(re.findall(r" [TW] (_ZNK?3c10\S+)", text))))
    old, new = names
    assert len(old) == len(new) >= 7 and not set(old) & set(new)
    assert {fold_flavour(demangle(n)) for n in old} == {fold_flavour(demangle(n)) for n in new}
    assert all(mentions_cxx11(n, demangle(n)) for n in new)
    assert all(mentions_old_string(demangle(n)) for n in old if not n.startswith("_ZNK3c101X4name"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c10::cuda::SetDevice(signed char, bool)", "c10::cuda::SetDevice"),
        ("at::Tensor c10::f<int>(at::Tensor)", "c10::f<int>"),
        ("vtable for c10::X", "c10::X"),
        ("typeinfo for c10::X", "c10::X"),
        ("guard variable for c10::f()::x", "c10::f"),
        ("non-virtual thunk to c10::X::f()", "c10::X::f"),
        ("c10::X::operator()(int) const", "c10::X::operator()"),
        ("c10::X::operator bool() const", "c10::X::operator bool"),
        ("c10::operator<<(std::ostream&, c10::X const&)", "c10::operator<<"),
        ("c10::operator<(c10::X const&, c10::X const&)", "c10::operator<"),
        ("c10::X::operator->() const", "c10::X::operator->"),
        ("operator new(unsigned long)", "operator new"),
        ("operator delete[](void*)", "operator delete[]"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("void at::f<at::Tensor (*)(int)>(int)", "at::f<at::Tensor (*)(int)>"),
        ("std::vector<at::Tensor, std::allocator<at::Tensor> >::size() const",
         "std::vector<at::Tensor, std::allocator<at::Tensor> >::size"),
        ("cudaFree", "cudaFree"),
        ("torch::Node::name[abi:cxx11]() const", "torch::Node::name[abi:cxx11]"),
        ("decltype(auto) c10::visit<int>(int)", "c10::visit<int>"),
        ("decltype (((f)({parm#1})).g()) std::visit<int>(int)", "std::visit<int>"),
        ("decltype (unclosed", ""),
    ],
)  # fmt: skip
def test_a_qualified_name_is_the_functions_own(text: str, name: str) -> None:
    assert qualified_name(text) == name


@pytest.mark.parametrize(
    ("demangled", "old"),
    [
        ("f(std::string const&)", True),
        ("f(std::basic_string<char, X>)", True),
        ("f(std::__cxx11::basic_string<char, X>)", False),
        ("f(std::string_view)", False),
        ("f(my::string)", False),
        ("f(c10::basic_string_view<char>)", False),
    ],
)
def test_the_old_string_is_told_from_what_only_sounds_like_it(demangled: str, old: bool) -> None:
    assert mentions_old_string(demangled) == old


def test_messages_shorten_the_new_string() -> None:
    assert readable(demangle(TWINS[0][1])) == (
        "c10::Error::Error(c10::SourceLocation, std::__cxx11::string)"
    )


def _bomb(levels: int) -> str:
    """A valid name whose readable form doubles in length at each level."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1fSt4pairIiiE" + "".join(f"S_IS{digits[i]}_S{digits[i]}_E" for i in range(levels))


@pytest.fixture
def unspent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile names of other tests do not count against this one."""
    monkeypatch.setattr("fa_forensics.facts.demangle._spent", 0.0)


@pytest.mark.usefixtures("unspent")
def test_a_name_that_expands_to_gigabytes_is_left_alone_in_bounded_time() -> None:
    started = time.monotonic()
    for levels in (14, 20, 24, 30):
        assert demangle(_bomb(levels)) == _bomb(levels)
    assert time.monotonic() - started < 10


@pytest.mark.usefixtures("unspent")
def test_a_name_with_many_references_is_still_demangled_as_cxxfilt_does() -> None:
    name = "_Z1f" + "St4pairIiiE" + "S0_" * 30
    expected = subprocess.run(
        ["c++filt", "-i", name], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert demangle(name) == expected != name


@pytest.mark.usefixtures("unspent")
def test_a_hostile_name_among_many_costs_no_other_its_readable_form() -> None:
    heavy = ["_Z1f" + "St4pairIiiE" + "S0_" * count for count in range(25, 40)]
    mixed = [name for one in heavy for name in (one, _bomb(26))][:20]
    started = time.monotonic()
    texts = demangle_many([*mixed, "_Z1gi", "plain"])
    assert time.monotonic() - started < 10
    assert texts[:2] == [*oracles.cxxfilt([mixed[0]]), _bomb(26)]
    assert texts[-2:] == ["g(int)", "plain"]
    assert len(texts) == 22
