"""Patterns compiled at first use are the compiled ones."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import fa_forensics
from fa_forensics.patterns import lazily


def test_all_that_is_asked_of_a_pattern_is_the_compiled_ones() -> None:
    text, ours, theirs = "a1b22 A3", lazily(r"a(\d)", re.IGNORECASE), re.compile(r"a(\d)", re.I)
    assert [m[1] for m in ours.finditer(text)] == [m[1] for m in theirs.finditer(text)]
    assert ours.findall(text) == theirs.findall(text) and ours.split(text) == theirs.split(text)
    assert ours.sub("x", text) == theirs.sub("x", text) and ours.pattern == theirs.pattern
    assert ours.subn("x", text) == theirs.subn("x", text)
    assert ours.search(text, 2).span() == theirs.search(text, 2).span()  # type: ignore[union-attr]
    assert ours.match(text) and ours.fullmatch("a1") and not ours.fullmatch(text)


def test_nothing_is_compiled_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or real(*given))
    pattern = lazily("x")
    assert compiled == []
    assert pattern.search("x") and pattern.search("y") is None
    assert len(compiled) == 1


def test_an_unknown_attribute_is_none_of_it() -> None:
    with pytest.raises(AttributeError):
        lazily("x").nope  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_of_the_package_compiles() -> None:
    found = 0
    for module in pkgutil.walk_packages(fa_forensics.__path__, "fa_forensics."):
        if module.name.rpartition(".")[2] in ("__main__", "child"):
            continue  # these run when they are imported
        for thing in vars(importlib.import_module(module.name)).values():
            if type(thing).__name__ == "_Lazy":
                assert re.compile(thing.pattern)
                found += 1
    assert found > 300
