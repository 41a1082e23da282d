"""The std::string flavour of each real file is what nm and c++filt show of its torch names."""

from __future__ import annotations

import re

import pytest
from support import oracles
from support.material import HUSK_IDS, husk_file, tiny_file

from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.flavour import Flavour, flavour_of
from fa_forensics.facts.owner import owner_of

#: Known from the builds: PyPI's torch was built with the old string up to 2.6.
KNOWN = {
    "vllm_flash_attn": "pre-cxx11",
    "autoawq_kernels": "pre-cxx11",
    "xformers-0.0.26": "pre-cxx11",
    "bitsandbytes": "not-applicable",
    "fa3_fwd-0.0.3:": "not-applicable",
}

#: A demangled name that starts (after a return type or "vtable for") with a torch namespace.
TORCH = re.compile(r"^(?:[\w:<>, *&]+ )?(?:c10|at|torch|caffe2|c10d)::")


def flavour(path: object) -> Flavour:
    dynamic = DynamicObject.open(str(path))
    try:
        names = [s.name.decode() for s in dynamic.symbols() if s.shndx == 0 and s.name]
        versions = [s.version for s in dynamic.symbols() if s.shndx == 0 and s.name]
    finally:
        dynamic.close()
    rows = []
    for name, version in zip(names, versions, strict=True):
        text = demangle(name)
        rows.append((name, text, owner_of(name, version, text)))
    return flavour_of(rows)


@pytest.mark.parametrize("identity", HUSK_IDS)
def test_flavour_is_what_nm_and_cxxfilt_show(identity: str) -> None:
    names = [name for _, (name, _, _) in oracles.nm_rows(husk_file(identity), "-u")]
    torch = [text for text in oracles.cxxfilt(names) if TORCH.match(text)]
    new = [text for text in torch if "__cxx11" in text or "[abi:cxx11]" in text]
    old = [text for text in torch if re.search(r"std::(string\b|basic_string<char)", text)]
    expected = "cxx11" if new else "pre-cxx11" if old else "not-applicable"
    assert not (new and old)
    found = flavour(husk_file(identity))
    assert found.value == expected
    assert (len(found.cxx11_symbols), len(found.old_symbols)) == (len(new), len(old))
    assert not found.mixed
    for start, value in KNOWN.items():
        if identity.startswith(start):
            assert found.value == value


@pytest.mark.parametrize(
    ("name", "value"),
    [("old-string", "pre-cxx11"), ("new-string", "cxx11"), ("no-string", "not-applicable")],
)
def test_flavour_of_a_file_compiled_with_each_setting(name: str, value: str) -> None:
    assert flavour(tiny_file(name)).value == value


NEW_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("rows", "value", "mixed"),
    [
        ([], "not-applicable", False),
        # libstdc++'s own names and the extension's say nothing about torch.
        ([("_ZNSt7__cxx1112basic_stringX", NEW_STRING + "::append(char const*)", "libstdc++")],
         "not-applicable", False),
        ([("_ZN4mine1fENSt7__cxx11E", f"mine::f({NEW_STRING})", "extension")],
         "not-applicable", False),
        ([("_Zn__cxx11", f"c10::f({NEW_STRING})", "torch/c10")], "cxx11", False),
        ([("_ZNK1fB5cxx11Ev", "torch::f[abi:cxx11]() const", "torch/torch_cpu")], "cxx11", False),
        ([("_ZN3c101fESs", "c10::f(std::string)", "torch/c10")], "pre-cxx11", False),
        ([("_ZN3c101fEi", "c10::f(int)", "torch/c10")], "not-applicable", False),
        ([("_Zn__cxx11", f"c10::f({NEW_STRING})", "torch/c10"),
          ("_ZN3c101fESs", "c10::f(std::string)", "torch/c10"),
          ("_ZN3c101gESs", "c10::g(std::string)", "torch/c10")], "pre-cxx11", True),
        ([("_ZN3c101fE", "c10::f(std::string_view)", "torch/c10")], "not-applicable", False),
    ],
)  # fmt: skip
def test_flavour_of_symbol_tables(
    rows: list[tuple[str, str, str]], value: str, mixed: bool
) -> None:
    found = flavour_of(rows)
    assert (found.value, found.mixed) == (value, mixed)
    assert all(witness in {row[0] for row in rows} for witness in found.witnesses)
