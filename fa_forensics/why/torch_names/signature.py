"""Two signatures of one function compared: what changed, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

from fa_forensics.facts.demangle import fold_flavour, qualified_name
from fa_forensics.facts.tables import read_table


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, Any]:
    tables: Mapping[str, Any] = read_table("type_names.json")
    return tables


def parameters(demangled: str) -> tuple[tuple[str, ...], str] | None:
    """(parameters, qualifiers after them) of a demangled function; None for data.

    ``f(int, std::pair<a, b>) const`` gives ``(("int", "std::pair<a, b>"), "const")``.
    """
    name = qualified_name(demangled)
    start = demangled.find(name + "(")
    if not name or start < 0:
        return None
    first = at = start + len(name) + 1
    depth = 0
    found: list[str] = []
    while at < len(demangled):
        char = demangled[at]
        if char in "(<[{":
            depth += 1
        elif depth == 0 and char in ",)":
            found.append(demangled[first:at].strip())
            first = at + 1
            if char == ")":
                break
        elif char in ")>]}":
            depth -= 1
        at += 1
    if found == [""]:
        found = []
    return tuple(found), demangled[at + 1 :].strip()


def changes(old: str, new: str) -> tuple[str, ...]:
    """What turned one signature into the other, a clause each: ```int` became `long```.

    Both are demangled names of one function; the std::string flavour counts for nothing.
    Empty when the two do not differ in what can be told.
    """
    before, after = parameters(fold_flavour(old)), parameters(fold_flavour(new))
    scope = qualified_name(fold_flavour(new))
    if before is None or after is None:
        return ()
    clauses: list[str] = []
    olds, news = list(before[0]), list(after[0])
    for at, text in enumerate(olds):
        if text not in news:
            olds[at], words = _renamed(text, news)
            clauses += words
    clauses += _differences(olds, news, scope)
    if scope.endswith(">") and not qualified_name(fold_flavour(old)).endswith(">"):
        clauses.append("it became a template")
    if ("const" in before[1].split()) != ("const" in after[1].split()):
        clauses.append("the method became const" if "const" in after[1] else "it lost its const")
    return tuple(dict.fromkeys(clauses))


def unlike_parameters(old: str, new: str) -> int:
    """How many parameters of two signatures have no like in the other.

    ``Scalar`` and ``Scalar const&`` are alike, and so are the names of one template by its age.
    """
    before, after = parameters(fold_flavour(old)), parameters(fold_flavour(new))
    if before is None or after is None:
        return 0
    olds, news = Counter(map(_bare, before[0])), Counter(map(_bare, after[0]))
    return ((olds - news) + (news - olds)).total()


def one_became_the_other(old: str, new: str) -> bool:
    """Whether two overloads differ in no type: in its scope, in a parameter more or less, or order.

    ``at::TensorOptions`` and ``c10::TensorOptions`` are one type, a Tensor and an int are not.
    """
    before, after = parameters(fold_flavour(old)), parameters(fold_flavour(new))
    if before is None or after is None:
        return False
    olds, news = (Counter(re.sub(r"\b\w+::", "", _bare(p)) for p in s[0]) for s in (before, after))
    return not (olds - news) or not (news - olds)


def _bare(text: str) -> str:
    """A parameter's type without const and reference, by the newest names of its templates."""
    for row in _tables()["renames"]:
        text = text.replace(row["old"], row["new"])
    return re.sub(r"(?: const)?[&\s]*$", "", text)


def _renamed(text: str, wanted: Sequence[str]) -> tuple[str, list[str]]:
    """A parameter under as few renames of templates as make it one of the wanted, and those."""
    rows = [row for row in _tables()["renames"] if row["old"] in text]
    for count in range(1, len(rows) + 1):
        for chosen in combinations(rows, count):
            renamed = text
            for row in chosen:
                renamed = renamed.replace(row["old"], row["new"])
            if renamed in wanted:
                return renamed, [row["words"] for row in chosen]
    return text, []


def operator_era(demangled: str) -> tuple[str | None, str | None, str]:
    """(first release, last release, the type) of an operator's parameter types.

    All of torch's operators (``at::_ops::``) changed a type in one release, so the type
    alone tells on which side of it a file was built. (None, None, "") where it does not.
    """
    if not demangled.startswith("at::_ops::"):
        return None, None, ""
    for row in _tables()["operator_types"]:
        if row["text"] in demangled:
            return row.get("since"), row.get("until"), str(row["text"]).rstrip("<")
    return None, None, ""


def reach_of(clauses: Sequence[str]) -> str:
    """What else such a change touched, "" where it is this function's alone."""
    for row in _tables()["renames"]:
        if row["words"] in clauses and row["reach"]:
            return str(row["reach"])
    return ""


def _differences(olds: list[str], news: list[str], scope: str) -> list[str]:
    start = 0
    while start < min(len(olds), len(news)) and olds[start] == news[start]:
        start += 1
    end = 0
    while end < min(len(olds), len(news)) - start and olds[-1 - end] == news[-1 - end]:
        end += 1
    gone = olds[start : len(olds) - end]
    come = news[start : len(news) - end]
    if len(gone) == len(come):
        pairs = [(a, b) for a, b in zip(gone, come, strict=True) if a != b]
        return [f"`{a}` became {_named(b, scope)}" for a, b in pairs]
    if len(come) > len(gone) and come[: len(gone)] == gone:
        return [_listed(come[len(gone) :], scope) + " added"]
    if not gone:
        return [_listed(come, scope) + " added"]
    if not come:
        return [_listed(gone, scope) + " dropped"]
    both = " and ".join(_named(text, scope) for text in come)
    return [f"{' and '.join(f'`{text}`' for text in gone)} became {both}"]


def _listed(types: Sequence[str], scope: str) -> str:
    words = "the parameter" if len(types) == 1 else "the parameters"
    verb = "was" if len(types) == 1 else "were"
    return f"{words} {', '.join(_named(text, scope) for text in types)} {verb}"


def _named(text: str, scope: str) -> str:
    """A type with the name that torch's headers give it: `c10::DeviceIndex` (signed char)."""
    for row in _tables()["types"]:
        if row["type"] == text and scope.startswith(tuple(row["scopes"])):
            return f"`{row['name']}` ({text})"
    return f"`{text}`"
