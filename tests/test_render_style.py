"""Wrapping never cuts a C++ name, sorting reads numbers, escaping leaves nothing dangerous."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from fa_forensics.render.style import (
    escape,
    file_name,
    flow,
    natural_key,
    pieces,
    short_path,
    size_text,
    without_arguments,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two words", ["two", "words"]),
        ("call f(signed char, bool) const now", ["call", "f(signed char, bool) const", "now"]),
        ("std::map<a, b> x", ["std::map<a, b>", "x"]),
        ("c10::(anonymous namespace)::f(int, long)", ["c10::(anonymous namespace)::f(int, long)"]),
        ("operator new(unsigned long)", ["operator new(unsigned long)"]),
        ("operator<<(a&, b const&) x", ["operator<<(a&, b const&)", "x"]),
        ("operator->(a b) x", ["operator->(a b)", "x"]),
        ("operator<(a b, c d) x", ["operator<(a b, c d)", "x"]),
        ("run `pip install x` now", ["run", "`pip install x`", "now"]),
        ("prose (that may break)", ["prose", "(that", "may", "break)"]),
        ("1 < 2 and 3 > 2", ["1", "<", "2", "and", "3", ">", "2"]),
        ("f(never closed at all", ["f(never", "closed", "at", "all"]),
        ("a ` single quote", ["a", "`", "single", "quote"]),
        ("  spaces  between ", ["spaces", "between"]),
        ("", []),
    ],
)
def test_lines_may_end_only_outside_names(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_cutting_a_long_hostile_name_takes_linear_time() -> None:
    # A quadratic walk over 2 MB would take hours; this ends within the test's own limit.
    assert len(pieces("f<(a b " * 300_000)) == 600_000


def test_flow_fills_lines_and_keeps_long_parts_whole() -> None:
    lines = flow(["aa", "bb", "x" * 30, "cc"], 12, "> ", "  ")
    assert lines == ["> aa bb", "  " + "x" * 30, "  cc"]


def test_natural_order_reads_digits_as_numbers() -> None:
    releases = ["2.10.0", "2.2.0", "1.13.1", "2.2.0a0", "2.2.10"]
    expected = ["1.13.1", "2.2.0", "2.2.0a0", "2.2.10", "2.10.0"]
    assert sorted(releases, key=natural_key) == expected
    assert sorted(["sm_100", "sm_90a", "sm_90"], key=natural_key) == ["sm_90", "sm_90a", "sm_100"]
    # More digits than int() takes from text.
    long = ["9" * 5000, "1" + "0" * 5000, "007"]
    assert sorted(long, key=natural_key) == ["007", "9" * 5000, "1" + "0" * 5000]


def test_no_control_or_format_character_is_left_after_escaping() -> None:
    """Checked against the Unicode database, category by category."""
    forbidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        if unicodedata.category(char) in forbidden:
            assert escape(f"a{char}b").isascii(), hex(number)


@pytest.mark.parametrize("text", ["_ZN3c104cuda9SetDeviceEi", "/home/añá/文件.so", "a b"])
def test_ordinary_names_are_left_as_they_are(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("a::f(int, void (*)(int)) const", "a::f(...) const"),
        ("(anonymous namespace)::f(a b)", "(anonymous namespace)::f(...)"),
        ("no_arguments", "no_arguments"),
        ("broken)", "broken)"),
    ],
)
def test_arguments_can_be_left_out(name: str, short: str) -> None:
    assert without_arguments(name) == short


def test_sizes_and_paths_in_short() -> None:
    assert [size_text(n) for n in (0, 1023, 1024, 254188512, 5 << 30)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "242.4 MiB",
        "5.0 GiB",
    ]
    assert short_path("/e/lib/python3.11/site-packages/torch/lib/libc10.so") == (
        "torch/lib/libc10.so"
    )
    assert short_path("/usr/lib/python3/dist-packages/a.so") == "a.so"
    assert short_path("/usr/lib/libc.so.6") == "/usr/lib/libc.so.6"
    assert (file_name("/a/b.so"), file_name("b.so"), file_name("/")) == ("b.so", "b.so", "/")
