"""``why``: whose a symbol is, who has it or what stands in its place, under real torches' exports.

Oracles: nm on the libraries of the same tree, and c++filt.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import invoke, one_sentence
from support.material import husk_file, husks_of, stub

from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.symbol_text import mangled_scope, parse_symbol
from fixtures.stub_torch import recorded_versions

T22, T24, T26 = "2.2.2+cu121", "2.4.0+cu121", "2.6.0+cu124"
T29, T213, T214 = "2.9.1+cu128", "2.13.0+cpu", "2.14.1+cu130"

DEVICE = "_ZN3c104cuda9SetDeviceE"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW_ERROR = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
NEW_NODE = "_ZNK5torch8autograd4Node4nameB5cxx11Ev"
OLD_NODE = "_ZNK5torch8autograd4Node4nameEv"


def why(version: str, *symbols: str) -> list[dict[str, Any]]:
    result = invoke("why", "--python", stub(version).python, "--format", "json", "--", *symbols)
    assert (result.code, result.stderr) == (0, "")
    answers: list[dict[str, Any]] = result.document["answers"]
    return answers


def release_of(version: str) -> str:
    return version.partition("+")[0]


@cache
def exports(version: str, library: str) -> frozenset[str]:
    path = stub(version).site_packages / "torch/lib" / library
    return frozenset(name for _, (name, _, _) in oracles.nm_rows(path, "--defined-only"))


@pytest.mark.parametrize(
    ("version", "missing", "there"),
    [
        (T22, "a", "i"), (T24, "i", "a"), (T26, "i", "a"),
        (T29, "i", "ab"), (T29, "a", "ab"), (T214, "i", "ab"),
    ],
)  # fmt: skip
def test_a_changed_signature_is_shown_with_what_this_torch_has(
    version: str, missing: str, there: str
) -> None:
    names = exports(version, "libc10_cuda.so")
    assert DEVICE + missing not in names and DEVICE + there in names
    (answer,) = why(version, DEVICE + missing)
    assert (answer["kind"], answer["code"]) == ("symbol-drift", "FA201")
    assert answer["owner"] == "torch/c10_cuda"
    assert answer["provider"] is None
    assert release_of(version) not in answer["exported_by"]
    instead = [o for o in answer["overloads"] if release_of(version) in o["exported_by"]]
    assert [o["symbol"] for o in instead] == [DEVICE + there]
    assert answer["demangled"] == oracles.cxxfilt([DEVICE + missing])[0]
    assert oracles.cxxfilt([DEVICE + there])[0] in answer["cause"]


@pytest.mark.parametrize(
    ("version", "symbol", "twin"),
    [(T24, NEW_ERROR, OLD_ERROR), (T24, NEW_NODE, OLD_NODE), (T29, OLD_NODE, NEW_NODE),
     (T214, OLD_ERROR, NEW_ERROR)],
)  # fmt: skip
def test_the_twin_of_the_other_flavour_is_found(version: str, symbol: str, twin: str) -> None:
    library = "libc10.so" if "Error" in symbol else "libtorch_cpu.so"
    both = {twin, twin.replace("C2E", "C1E")}  # a complete and a base constructor read alike
    assert symbol not in exports(version, library) and both & exports(version, library)
    (answer,) = why(version, symbol)
    assert (answer["kind"], answer["code"]) == ("cxx11-abi", "FA301")
    assert answer["direction"] == "other-flavour"
    assert answer["overloads"][0]["symbol"] in both
    assert "std::string flavour" in answer["cause"]


@pytest.mark.parametrize("version", recorded_versions())
def test_a_symbol_that_is_there_is_said_to_be_there(version: str) -> None:
    name = min(name for name in exports(version, "libc10.so") if name.startswith("_ZN3c10"))
    (answer,) = why(version, name)
    assert answer["provider"].endswith("/torch/lib/libc10.so")
    assert release_of(version) in answer["exported_by"]
    assert (answer["kind"], answer["direction"]) == ("wrong-torch", "none")
    assert "not missing" in answer["cause"]


@pytest.mark.parametrize("version", [T24, T214])
@pytest.mark.parametrize("identity", [i for i in husks_of() if "awq_ext" in i or "xformers" in i])
def test_every_torch_symbol_of_a_file_is_answered_as_nm_has_it(identity: str, version: str) -> None:
    names = [
        name
        for _, (name, symbol_version, _) in oracles.nm_rows(husk_file(identity), "-u")
        if is_torch(owner_of(name, symbol_version or None, demangle(name)))
    ]
    tree = stub(version)
    everything = {
        name
        for library in tree.record.libraries()
        if library.path.startswith("torch/lib/")
        for name in library.names()
    }
    answers = why(version, *names)
    assert [answer["symbol"] for answer in answers] == names
    for answer in answers:
        here = answer["symbol"] in everything
        assert (answer["provider"] is not None) == here
        assert (release_of(version) in answer["exported_by"]) == here
        for overload in answer["overloads"]:
            # The stand-in keeps a part of the real names, so this holds one way only.
            if overload["symbol"] in everything:
                assert release_of(version) in overload["exported_by"]


SPELLINGS = [
    DEVICE + "i",
    "_" + DEVICE + "i",  # macOS puts one more underscore before every name
    f"undefined symbol: {DEVICE}i",
    f"ImportError: /x/_C.so: undefined symbol: {DEVICE}i",
    f"Symbol not found: _{DEVICE}i",
    f"'{DEVICE}i'",
    "c10::cuda::SetDevice(int)",
    "c10::cuda::SetDevice( int )",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_symbol_is_understood_however_it_is_pasted(text: str) -> None:
    (answer,) = why(T24, text)
    assert answer["owner"] == "torch/c10_cuda"
    assert [o["symbol"] for o in answer["overloads"]] == [DEVICE + "a", DEVICE + "ab"]
    assert answer["demangled"].replace(" ", "") == "c10::cuda::SetDevice(int)"


def test_a_readable_name_that_is_there_gets_its_mangled_name() -> None:
    (answer,) = why(T24, "c10::cuda::SetDevice(signed char)")
    assert answer["symbol"] == DEVICE + "a"
    assert answer["provider"].endswith("libc10_cuda.so")


def test_a_readable_name_without_parameters_lists_all_of_that_name() -> None:
    (answer,) = why(T24, "c10::Error::Error")
    texts = {o["demangled"] for o in answer["overloads"] if release_of(T24) in o["exported_by"]}
    expected = {
        text
        for text in oracles.cxxfilt(sorted(exports(T24, "libc10.so")))
        if text.startswith("c10::Error::Error(")
    }
    assert texts == expected and len(expected) > 1


@pytest.mark.parametrize(
    ("symbol", "kind", "owner", "library"),
    [
        ("PyErr_SetString", "python-abi", "python", "python"),
        ("cudaMalloc", "versioned-symbol", "cudart", "libcudart.so.12"),
        ("cudaMalloc@libcudart.so.12", "versioned-symbol", "cudart", "libcudart.so.12"),
        ("_ZSt4cout", "libstdcxx", "libstdc++", "libstdc++.so.6"),
        ("memcpy@GLIBC_2.14", "glibc", "libc", "libc.so.6"),
        ("_ZSt4cout@GLIBCXX_3.4", "libstdcxx", "libstdc++", "libstdc++.so.6"),
    ],
)
def test_names_of_other_libraries_are_found_in_them(
    symbol: str, kind: str, owner: str, library: str
) -> None:
    (answer,) = why(T24, symbol)
    assert (answer["kind"], answer["owner"]) == (kind, owner)
    assert library in Path(answer["provider"]).name


@pytest.mark.parametrize(
    ("symbol", "kind", "owner"),
    [
        ("PyNo_SuchThing", "python-abi", "python"),
        ("cudaNoSuchThing", "versioned-symbol", "cudart"),
        ("_Z9my_kernelv", "own-symbol", "extension"),
        ("my_kernel", "own-symbol", "extension"),
        ("memcpy, version GLIBC_2.99", "glibc", "libc"),
        ("_ZSt4cout@GLIBCXX_3.4.99", "libstdcxx", "libstdc++"),
        ("cuTensorMapEncodeTiled", "gpu-driver", "cuda-driver"),
        ("hipMalloc", "rocm", "hip"),
        ("cudaMalloc@libcudart.so.99", "missing-library", "cudart"),
    ],
)
def test_names_that_nothing_here_has_are_given_to_their_owner(
    symbol: str, kind: str, owner: str
) -> None:
    (answer,) = why(T24, symbol)
    assert (answer["kind"], answer["owner"], answer["provider"]) == (kind, owner, None)
    assert answer["cause"].endswith(".")


def test_a_newer_version_than_this_system_has_points_to_a_newer_build() -> None:
    (answer,) = why(T24, "memcpy@GLIBC_2.99")
    assert (answer["direction"], answer["code"]) == ("file-newer", "FA203")


def test_under_a_torch_without_cuda_the_cause_is_the_missing_cuda() -> None:
    for symbol in (DEVICE + "i", DEVICE + "ab", "_ZN2at4cuda14getDeviceIndexEv"):
        (answer,) = why(T213, symbol)
        assert (answer["kind"], answer["code"]) == ("wrong-torch", "FA601")
        assert "has no CUDA" in answer["cause"] and "release" not in answer["cause"]
    (answer,) = why(T213, "_ZN3c109no_such_fEv")
    assert answer["kind"] == "symbol-drift"


def test_help_are_commands_for_this_environment() -> None:
    (answer,) = why(T24, DEVICE + "i")
    python = stub(T24).python
    assert answer["help"][0] == f'{python} -m pip install "torch==2.2.2"'
    assert answer["help"][1].startswith(f"fa-forensics inspect --python {python} ")


def test_several_symbols_are_answered_in_their_order() -> None:
    symbols = [DEVICE + "i", "cudaMalloc", "PyErr_SetString", DEVICE + "a"]
    assert [answer["symbol"] for answer in why(T24, *symbols)] == symbols


def test_one_text_that_is_no_symbol_stops_the_run_before_anything_is_said() -> None:
    result = invoke("why", "--python", stub(T24).python, "--", DEVICE + "i", "no symbol!")
    assert (result.code, result.stdout) == (2, "")
    assert "'no symbol!' is no symbol name" in one_sentence(result)


# --- reading symbols from text ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("cudaFree", "cudaFree", None),
        ("cudaFree@libcudart.so.12", "cudaFree", "libcudart.so.12"),
        ("cudaFree@@libcudart.so.12", "cudaFree", "libcudart.so.12"),
        ("undefined symbol: memcpy, version GLIBC_2.38", "memcpy", "GLIBC_2.38"),
        ("_ZSt4cout@GLIBCXX_3.4", "_ZSt4cout", "GLIBCXX_3.4"),
        ("  _ZSt4cout\n", "_ZSt4cout", None),
        ("__ZSt4cout", "_ZSt4cout", None),
        ("at::Tensor::clone()", None, None),
    ],
)
def test_symbols_in_text(text: str, name: str | None, version: str | None) -> None:
    symbol = parse_symbol(text)
    assert symbol is not None
    assert (symbol.name, symbol.version) == (name, version)


@pytest.mark.parametrize(
    "text", ["", "   ", "what is this?", "_ZN3c104cuda9SetDevice", "_ZNope", "a b c", "3d", "()"]
)
def test_text_without_a_symbol(text: str) -> None:
    assert parse_symbol(text) is None


@pytest.mark.parametrize(
    "text",
    ["c10::cuda::SetDevice(int)", "c10::Error::what() const", "at::Tensor::clone() const",
     "my_function(int)", "c10::Error::Error(std::string)"],
)  # fmt: skip
def test_the_mangled_start_of_a_readable_name_is_the_compilers(text: str, tmp_path: Path) -> None:
    """The compiler's own mangling of such a function starts with it."""
    names = {
        "c10::cuda::SetDevice(int)": "namespace c10::cuda { void SetDevice(int) {} }",
        "c10::Error::what() const": "namespace c10 { struct Error { char what() const; };"
        " char Error::what() const { return 0; } }",
        "at::Tensor::clone() const": "namespace at { struct Tensor { int clone() const; };"
        " int Tensor::clone() const { return 0; } }",
        "my_function(int)": "void my_function(int) {}",
        "c10::Error::Error(std::string)": "namespace c10 { struct Error { Error(int); };"
        " Error::Error(int) {} }",
    }
    source, out = tmp_path / "a.cpp", tmp_path / "a.o"
    source.write_text(names[text])
    oracles.output_of("g++", "-std=c++17", "-c", "-o", out, source)
    prefix = mangled_scope(text)
    assert prefix is not None
    plain = [name for _, (name, _, _) in _symbols(out)]
    assert all(name.replace("_ZNK", "_ZN").startswith(prefix.decode()) for name in plain) and plain


def _symbols(path: Path) -> list[tuple[str, oracles.Named]]:
    text = oracles.output_of("nm", "--defined-only", path)
    return [(line.split()[1], (line.split()[2], "", "")) for line in text.splitlines()]
