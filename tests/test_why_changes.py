"""What changed between two signatures, in words. The signatures are torch's, by c++filt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import oracles

import fa_forensics
from fa_forensics.atlas.builds import release_key
from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import demangle_many
from fa_forensics.why import explain
from fa_forensics.why.torch_names.signature import changes, operator_era, parameters, reach_of

DEVICE = "_ZN3c104cuda9SetDeviceE"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationE"
OLD_ZEROS = (
    "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEE"
    "NS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE"
)
NEW_ZEROS = (
    "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEESt8optionalINS2_10ScalarTypeEE"
    "S6_INS2_6LayoutEES6_INS2_6DeviceEES6_IbE"
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (DEVICE + "i", DEVICE + "a", ["`int` became `c10::DeviceIndex` (signed char)"]),
        (DEVICE + "a", DEVICE + "ab", ["the parameter `bool` was added"]),
        (DEVICE + "ab", DEVICE + "a", ["the parameter `bool` was dropped"]),
        (DEVICE + "i", DEVICE + "i", []),
        (CHECK + "iPKcS2_ib", CHECK + "iPKcS2_jb", ["`int` became `unsigned int`"]),
        (OLD_ZEROS, NEW_ZEROS, ["`c10::optional` became `std::optional`"]),
    ],
)
def test_real_changes_of_torch(old: str, new: str, expected: list[str]) -> None:
    before, after = oracles.cxxfilt([old, new])
    assert list(changes(before, after)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a::f()", "a::f() const", ["the method became const"]),
        ("a::f() const", "a::f()", ["it lost its const"]),
        ("a::f(int)", "a::f()", ["the parameter `int` was dropped"]),
        ("a::f()", "a::f(int, long)", ["the parameters `int`, `long` were added"]),
        ("a::f(b, int, c)", "a::f(b, c)", ["the parameter `int` was dropped"]),
        ("a::f(int, long)", "a::f(char)", ["`int` and `long` became `char`"]),
        ("a::f(g<int, long>)", "a::f(g<int, char>)", ["`g<int, long>` became `g<int, char>`"]),
        # The two flavours of std::string are one type here.
        ("a::f(std::string)",
         "a::f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)",
         []),
        # A signed char is an index of a device only where torch has one.
        ("mine::f(int)", "mine::f(signed char)", ["`int` became `signed char`"]),
        ("a::f(c10::optional<c10::basic_string_view<char> >)",
         "a::f(std::optional<std::basic_string_view<char, std::char_traits<char> > >)",
         ["`c10::optional` became `std::optional`",
          "`c10::string_view` became `std::string_view`"]),
        ("a::data", "a::data", []),
    ],
)  # fmt: skip
def test_kinds_of_change(old: str, new: str, expected: list[str]) -> None:
    assert list(changes(old, new)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", ((), "")),
        ("f(int, std::pair<a, b>) const", (("int", "std::pair<a, b>"), "const")),
        ("std::vector<int> at::f<int>(int (*)(int, long))", (("int (*)(int, long)",), "")),
        ("a::operator()(int) const", (("int",), "const")),
        ("a::f(", ((), "")),
        ("a::data", None),
        ("vtable for a::B", None),
    ],
)
def test_parameters(text: str, expected: tuple[tuple[str, ...], str] | None) -> None:
    assert parameters(text) == expected


def test_a_change_of_a_template_is_said_to_reach_further() -> None:
    assert "optional" in reach_of(["`c10::optional` became `std::optional`"])
    assert reach_of(["`int` became `long`"]) == ""


def test_the_names_of_types_say_where_they_come_from() -> None:
    path = Path(fa_forensics.__file__).parent / "data" / "type_names.json"
    table = json.loads(path.read_text())
    assert table["source"] and table["date"]
    for row in table["types"]:
        assert row["header"].endswith(".h") and row["name"] != row["type"] and row["scopes"]
    for row in table["renames"]:
        assert row["header"].endswith(".h") and row["old"] != row["new"] and row["words"]


def test_each_type_of_all_operators_is_there_since_or_until_the_release_of_the_table() -> None:
    """By the table of releases: no operator has the type outside, and some have it at the edge."""
    data = Path(fa_forensics.__file__).parent / "data/type_names.json"
    tables = json.loads(data.read_text(encoding="utf-8"))
    atlas = Atlas.open()
    rows = list(atlas.search(b"_ZN2at4_ops", "x86_64"))
    texts = demangle_many([name.decode() for name, _ in rows])
    for row in tables["operator_types"]:
        having = [set(rows[at][1]) for at, text in enumerate(texts) if row["text"] in text]
        releases = sorted(set().union(*having), key=release_key)
        assert releases[0] == row.get("since", atlas.releases()[0])
        assert releases[-1] == row.get("until", atlas.releases()[-1])


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("at::_ops::zeros::call(std::optional<bool>)", "2.2.0", None),
        ("at::_ops::zeros::call(c10::optional<bool>)", None, "2.1.2"),
        ("at::zeros(c10::optional<bool>)", None, None),
    ],
)
def test_the_era_of_an_operator(text: str, since: str | None, until: str | None) -> None:
    assert operator_era(text)[:2] == (since, until)


def test_cuda_names_on_a_machine_that_had_no_cuda_wheels_are_told_by_the_other_machine() -> None:
    """PyPI's aarch64 wheels have CUDA from 2.11.0 on only: before that nothing is known of them."""
    text = (
        "ImportError: /srv/lib/python3.10/site-packages/selective_scan_cuda.cpython-310-"
        "aarch64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEa"
    )
    (answer,) = explain((text,), None).answers
    assert answer.exported_by[0] == "2.3.0" and answer.exported_by[-1] == "2.7.1"
    assert any("x86_64" in note for note in answer.notes)
    assert not any("torch==" in command for command in answer.help)
