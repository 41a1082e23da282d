"""The index of answers is what the modules say of themselves."""

from __future__ import annotations

import importlib
import pkgutil

from fa_forensics.why import texts
from fa_forensics.why.pasted import answerer_of
from fa_forensics.why.texts.index import ANSWERED_BY


def test_the_index_is_the_sum_of_the_modules_tables() -> None:
    said = {}
    for found in pkgutil.walk_packages(texts.__path__, f"{texts.__name__}."):
        module = importlib.import_module(found.name)
        words = tuple(sorted(getattr(module, "ANSWERERS", ())))
        if words:
            said[found.name.removeprefix(f"{texts.__name__}.")] = words
    assert {name: tuple(sorted(words)) for name, words in ANSWERED_BY.items()} == said


def test_no_word_has_two_answers() -> None:
    words = [word for listed in ANSWERED_BY.values() for word in listed]
    assert len(words) == len(set(words))


def test_a_word_that_nobody_answers_has_no_answer() -> None:
    assert answerer_of("undefined-symbol") is not None
    assert answerer_of("no such word") is None
