"""Records behave as the standard library's frozen, slotted dataclasses do."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fa_forensics.records import dataclass

PACKAGE = Path(__file__).parent.parent / "fa_forensics"


@dataclass(frozen=True, slots=True)
class Ours:
    """Three kinds of default."""

    name: str
    size: int = 7
    parts: tuple[str, ...] = ("a",)
    notes: list[str] = field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """Three kinds of default."""

    name: str
    size: int = 7
    parts: tuple[str, ...] = ("a",)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class One:
    """A single field: attrgetter gives no tuple for it."""

    only: tuple[int, ...]


@dataclass(slots=True)
class Changing:
    """Not frozen."""

    seen: set[str] = field(default_factory=set)
    last: str | None = None


BOTH = pytest.mark.parametrize("made", [Ours, Theirs])


@BOTH
def test_values_come_by_place_by_name_or_by_default(made: Callable[..., Any]) -> None:
    one = made("x", parts=())
    assert (one.name, one.size, one.parts, one.notes) == ("x", 7, (), [])
    assert made("x").notes is not made("x").notes


@BOTH
@pytest.mark.parametrize("wrong", [{}, {"name": "x", "nope": 1}])
def test_missing_and_unknown_values_are_type_errors(
    made: Callable[..., Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        made(**wrong)


@BOTH
def test_frozen_ones_refuse_change(made: Callable[..., Any]) -> None:
    one = made("x")
    with pytest.raises(FrozenInstanceError):
        one.name = "y"
    with pytest.raises(FrozenInstanceError):
        del one.name
    assert not hasattr(one, "__dict__")


def test_the_text_is_the_standard_librarys() -> None:
    assert repr(Ours("x")) == repr(Theirs("x")).replace("Theirs", "Ours")


def test_fields_are_the_standard_librarys() -> None:
    assert is_dataclass(Ours)
    assert [(f.name, f.type, f.default) for f in fields(Ours)] == [
        (f.name, f.type, f.default) for f in fields(Theirs)
    ]
    assert Ours.__match_args__ == Theirs.__match_args__
    assert dataclasses.asdict(Ours("x")) == dataclasses.asdict(Theirs("x"))


def test_equality_and_hash_go_by_class_and_values() -> None:
    assert Ours("x") == Ours("x") and Ours("x") != Ours("y")
    others: tuple[Any, ...] = (Theirs("x"), ("x", 7, ("a",), []))
    assert all(Ours("x") != other for other in others)
    assert len({One((1,)), One((1,)), One((2,))}) == 2
    with pytest.raises(TypeError):
        hash(Ours("x"))  # a list is among its values, as for Theirs
    with pytest.raises(TypeError):
        hash(Changing())


def test_replace_gives_a_new_one() -> None:
    first = Ours("x", notes=["n"])
    assert replace(first, size=8) == Ours("x", 8, ("a",), ["n"])
    assert first.size == 7


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))]
)
def test_copies_and_pickles_are_equal(again: Callable[[Any], Any]) -> None:
    for one in (Ours("x", 3), One((1, 2)), Changing({"a"}, "b")):
        assert again(one) == one


def test_those_not_frozen_change() -> None:
    one = Changing()
    one.last = "x"
    one.seen.add("y")
    assert one == Changing({"y"}, "x") and Changing() == Changing()


def test_no_record_asks_for_what_records_do_not_do() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        called = [
            n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        for call in called:
            assert isinstance(call.func, ast.Name)
            named = {k.arg for k in call.keywords}
            if call.func.id == "field" and path.name != "records.py":
                wrong += [path] if call.args or named != {"default_factory"} else []
            if call.func.id == "dataclass":
                wrong += [path] if not named <= {"frozen", "slots"} else []
        names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        wrong += [path] if "__post_init__" in names else []
    assert wrong == []


def test_the_package_defines_its_records_here() -> None:
    others = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.module != "dataclasses":
                continue
            if "dataclass" in {name.name for name in node.names}:
                others.append(path.name)
    assert others == ["records.py"]
