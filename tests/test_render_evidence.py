"""How evidence is shown: readable name, place, symbol; ten of many; compilers in short."""

from __future__ import annotations

from dataclasses import replace

import pytest
import render_samples as samples

from fa_forensics.render.terminal import inspect_text
from fa_forensics.report import Evidence, TargetReport


def plain(target: TargetReport, verbose: bool = False) -> str:
    return inspect_text(samples.report(target), False, verbose, 100)


def test_long_arguments_are_left_out_but_never_the_symbol() -> None:
    _, symbol, demangled = samples.MISSING[-1]
    first = "   |  needs  at::_ops::empty_like::call(...) (.rela.plt[545])\n"
    assert f"{first}   |         {symbol}\n" in plain(samples.FAILING)
    there = Evidence(f"has {demangled} (other parameters)", "/lib/a.so", None, None, symbol)
    finding = replace(samples.GROUPED, evidence=(there,))
    text = plain(replace(samples.FAILING, findings=(finding,)))
    assert "has  at::_ops::empty_like::call(...) (other parameters) in /lib/a.so\n" in text
    assert f"   |  needs  {demangled}\n" in plain(samples.FAILING, verbose=True)
    assert "   |  needs  c10::cuda::GetDevice(int*) (.rela.plt[347])\n" in plain(samples.FAILING)


@pytest.mark.parametrize("number", [10, 11, 56])
def test_ten_pieces_of_evidence_are_shown_and_the_rest_counted(number: int) -> None:
    names = [f"_ZN3c104nameE{'v' * (i + 1)}" for i in range(number)]
    finding = replace(samples.GROUPED, evidence=tuple(Evidence("needs", symbol=n) for n in names))
    target = replace(samples.FAILING, findings=(finding,), missing=(), undefined=())
    short = plain(target)
    assert [n for n in names if f"needs  {n}\n" in short] == names[:10]
    assert (f"   |  ... and {number - 10} more (--verbose shows all)\n" in short) == (number > 10)
    full = plain(target, verbose=True)
    assert [n for n in names if f"needs  {n}\n" in full] == names
    assert "more (--verbose" not in full


def test_ten_findings_of_one_code_are_shown_and_other_codes_still_are() -> None:
    many = [replace(samples.DRIFT, title=f"name number {i} is missing.") for i in range(23)]
    last = replace(samples.DRIFT, code="FA999", title="the last")
    target = replace(samples.FAILING, findings=(*many, last))
    text = plain(target)
    assert text.count("error[FA201]") == 10
    assert "... and 13 more of FA201 (--verbose shows all)\n" in text
    assert "error[FA999]: the last\n" in text
    assert plain(target, verbose=True).count("error[FA201]") == 23


def test_overloads_that_read_alike_without_their_parameters_are_one_line() -> None:
    long = "x" * 90
    rows = tuple(
        Evidence(f"has f({long}, {kind}) (other parameters)", "/lib/a.so", symbol=f"_Z1f{kind[0]}")
        for kind in ("int", "long")
    )
    target = replace(samples.FAILING, findings=(replace(samples.GROUPED, evidence=rows),))
    assert plain(target).count("has  f(...) (other parameters) in /lib/a.so\n") == 1
    assert f"has  f({long}, int)" in plain(target, verbose=True)
    assert f"has  f({long}, long)" in plain(target, verbose=True)


@pytest.mark.parametrize(
    ("comment", "short"),
    [
        ("GCC: (Debian 12.2.0-14) 12.2.0", "GCC 12.2.0"),
        ("GCC: (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0", "GCC 9.4.0"),
        ("GCC: (GNU) 14.2.1 20250110 (Red Hat 14.2.1-11)", "GCC 14.2.1"),
        ("GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)", "GCC 4.8.5"),
        ("GCC: (Anaconda (x)) 11.2.0", "GCC 11.2.0"),
        ("Linker: LLD 17.0.6", "Linker: LLD 17.0.6"),
        ("GCC: (", "GCC: ("),
    ],
)
def test_compilers_are_named_in_short_and_in_full_when_verbose(comment: str, short: str) -> None:
    target = replace(samples.HEALTHY, elf={**samples.ELF, "compilers": [comment]})
    assert f"   built      {short}, CUDA 12.1, " in plain(target)
    assert f"   compiler   {comment}\n" in plain(target, verbose=True)


def test_evidence_of_a_label_alone_takes_the_readable_name_from_the_undefined_symbols() -> None:
    _, symbol, _ = samples.MISSING[5]
    finding = replace(samples.GROUPED, evidence=(Evidence("needs", symbol=symbol),))
    text = plain(replace(samples.FAILING, findings=(finding,)))
    assert f"   |  needs  c10::cuda::GetDevice(int*)\n   |         {symbol}\n" in text


def test_temporary_copy_of_a_wheel_member_is_not_named() -> None:
    evidence = (Evidence("reads badly", f"/tmp/x/{samples.NAME}"), Evidence("other", "/lib/a.so"))
    target = replace(samples.IN_WHEEL, findings=(replace(samples.DRIFT, evidence=evidence),))
    assert "   |  reads badly\n   |  other in /lib/a.so\n" in plain(target)


@pytest.mark.parametrize(
    ("flavour", "words"),
    [
        ("cxx11", "C++ string flavour cxx11"),
        ("pre-cxx11", "C++ string flavour pre-cxx11"),
        ("not-applicable", "C++ string flavour: not applicable (no torch name has one)"),
    ],
)
def test_string_flavour_is_said_in_words(flavour: str, words: str) -> None:
    text = plain(replace(samples.HEALTHY, cxx11_abi=flavour))
    assert f"   built      GCC 9.4.0, CUDA 12.1, {words}\n" in text


def test_owners_that_are_no_library_are_said_in_words() -> None:
    own, hook = samples.BOUND[0], samples.BOUND[-1]
    bound = (replace(own, owner="extension"), replace(hook, owner="toolchain"))
    text = plain(replace(samples.HEALTHY, undefined=bound))
    assert "   undefined  2 symbols: own or sibling library 1, optional hooks 1\n" in text
