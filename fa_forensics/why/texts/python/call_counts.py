"""Answers to a compiled function that takes other arguments than its caller passes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fa_forensics.facts.flash_names import Span, is_in
from fa_forensics.facts.python_api import Call, call_of, releases_on_record
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.clues import package_in, pip_name, version_of

KIND, MIXED = "api-change", "FA882"


def pybind_arguments(seen: Seen) -> Answer:
    """``f(): incompatible function arguments``: Python files and compiled module do not match."""
    from fa_forensics.why.texts.python.registry_text import unknown_again

    unknown = unknown_again(seen)
    if unknown is not None:
        return unknown
    function = seen.mention.detail.get("function", "").rpartition(".")[2]
    takes, given = _taken(seen), _given(seen, function)
    call = call_of(function)
    if call is not None and takes in call.takes:
        return _on_record(seen, function, call, takes, given)
    return _not_on_record(seen, function, takes, given)


def _taken(seen: Seen) -> int:
    """How many arguments the message says the function takes; 0 where that is not plain."""
    supported = seen.mention.detail.get("supported", "").split(" | ")
    if len(supported) != 1:
        return 0
    return len(set(re.findall(r"\barg(\d{1,2})\b", supported[0])))


def _given(seen: Seen, function: str) -> int:
    """How many arguments the line of code passes; 0 where the line does not show all."""
    code = seen.mention.detail.get("code", "")
    at = code.find(f"{function}(") if function else -1
    if at < 0:
        return 0
    depth, count, word = 0, 0, False
    for mark in code[at + len(function) :]:
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if depth == 0:
                return count + 1 if word else 0
        elif mark == "," and depth == 1:
            count += 1
        elif depth and not mark.isspace():
            word = True
    return 0


def _on_record(seen: Seen, function: str, call: Call, takes: int, given: int) -> Answer:
    """It is known which releases take so many, and which callers pass so many."""
    package = call.package
    here = call.takes[takes]
    callers = [name for name in call.callers if name == _calling(seen) or version_of(seen, name)]
    version = version_of(seen, callers[0]) if callers else None
    if version and not given:
        counts = call.callers[callers[0]].items()
        given = next((n for n, span in counts if is_in((span,), version)), 0)
    cause = (
        f"The compiled module is {package}{_words(package, here)}: its {function}() takes {takes} "
        "arguments."
    )
    helps, confidence = [f"{seen.pip} show {' '.join((package, *call.callers))}"], "high"
    wanted = call.takes.get(given)
    if wanted is not None and given != takes:
        who = f"{callers[0]} {version}" if version else "Its caller"
        cause += f" {who} passes {given}, which is {package}{_words(package, wanted)}"
        if given > takes:
            cause += ": the compiled module is older than its caller expects."
        else:
            cause += ": the compiled module is newer than its caller expects."
        helps.insert(0, _install(seen, package, wanted))
    elif given == takes:
        cause += " Its caller passes as many: one of them has a wrong type."
        confidence = "medium"
    else:
        cause += _likely(package, call, takes)
        confidence = "medium"
        helps += [_install(seen, package, call.takes[count]) for count in _later(call, takes)]
    return seen.answer(
        KIND, MIXED, cause, owner=package, direction="none", confidence=confidence,
        help=tuple(helps), notes=_notes(package, call, known=wanted is not None),
    )  # fmt: skip


def _later(call: Call, takes: int) -> tuple[int, ...]:
    """The larger number that most callers on record pass; () where none does."""
    newest = max((count for counts in call.callers.values() for count in counts), default=0)
    return (newest,) if newest > takes and newest in call.takes else ()


def _likely(package: str, call: Call, takes: int) -> str:
    if takes == max(call.takes):
        return " Its caller passes another number and was written for an older release."
    for count in _later(call, takes):
        for caller, counts in call.callers.items():
            if count in counts:
                return (
                    f" Its caller passes another number, most likely more: {caller}"
                    f"{_words(caller, counts[count])} passes {count}, which is {package}"
                    f"{_words(package, call.takes[count])}."
                )
    return " Its caller passes another number and was written for another release."


def _notes(package: str, call: Call, *, known: bool) -> tuple[str, ...]:
    notes = ["The module loads, so torch and the std::string flavour play no part."]
    if not known:
        for caller, counts in call.callers.items():
            rows = [
                f"{caller}{_words(caller, span)} + {package}{_words(package, call.takes[count])}"
                for count, span in counts.items()
                if count in call.takes
            ]
            notes.append(f"What goes together: {'; '.join(rows)}.")
    return tuple(notes)


def _words(package: str, span: Span) -> str:
    """Releases as pip writes them: ``>=1.1.0,<1.2.0``."""
    first, _last = releases_on_record(package)
    if span.before is None:
        return f">={span.since}"
    return f"<{span.before}" if span.since == first else f">={span.since},<{span.before}"


def _install(seen: Seen, package: str, span: Span) -> str:
    bounds = f">={span.since}" + (f",<{span.before}" if span.before else "")
    return f'{seen.pip} install --no-build-isolation --no-cache-dir --no-deps "{package}{bounds}"'


def _calling(seen: Seen) -> str | None:
    return package_of(seen.mention.detail.get("frame", ""))


def _not_on_record(seen: Seen, function: str, takes: int, given: int) -> Answer:
    package = package_in(seen)
    called = f"{function}()" if function else "a function"
    cause = (
        f"The compiled module has {called} with other parameters than its caller passes: the "
        "package's Python files and its compiled module are of different releases, or the caller "
        "of the compiled module was written for another release."
    )
    if takes and given and takes != given:
        cause += f" It takes {takes} arguments and is passed {given}"
        if given > takes:
            cause += ": as parameters are added with time, it is most likely the older one."
        else:
            cause += ": as parameters are added with time, it is most likely the newer one."
    caller = _calling(seen)
    top = _top_of(package)
    helps = []
    if top:
        helps.append(
            f"{seen.python} -c 'import importlib.util; print(importlib.util.find_spec(\"{top}\"))'"
        )
    if package and pip_name(seen, package) and caller in (None, package):
        version = version_of(seen, package)
        pinned = f"{package}=={version.split('+')[0]}" if version else package
        helps.append(f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {pinned}")
    elif caller and package:
        helps.append(f"{seen.pip} show {package} {caller}")
    else:
        helps.append(f"{seen.pip} check")
    return seen.answer(
        KIND, MIXED, cause, owner=package, direction="none",
        confidence="high" if package else "medium", help=tuple(helps),
        notes=(
            "A source tree in the working directory comes before the installed package: then its "
            "Python files meet the installed compiled module.",
            "An argument of a wrong type says the same: compare the list of types in the message "
            "with what was passed.",
        ),
    )  # fmt: skip


def schema_mismatch(seen: Seen) -> Answer:
    """``ns::op() expected at most 21 argument(s) but received 22``: of torch's dispatcher.

    The library registered the operator with its parameters; Python code calls it with others.
    """
    detail = seen.mention.detail
    operator = detail.get("operator", "")
    space = operator.split("::")[0]
    if space in ("aten", "prim", "prims", "c10d"):
        return _torchs_operator(seen, operator)
    package = package_in(seen) or (space if not space.startswith("_") else None)
    name = package or "the package"
    takes, given = detail.get("takes", ""), detail.get("given", "")
    cause = f"The compiled library of {name} has {operator} with other parameters than its caller "
    if takes:
        cause += f"passes: it takes {takes} and is passed {given}"
    elif detail.get("missing"):
        cause += f"passes: it wants {detail['missing']}, which the caller does not pass"
    else:
        cause += f"passes: it has no {detail.get('parameter') or 'such parameter'}"
    side = "newer" if detail.get("missing") else "older"
    cause += (
        f". The Python files and the compiled library are of two revisions of {name}, and the "
        f"compiled one is most likely the {side}: parameters are added with time. The library did "
        "load; torch only reports it and is not at fault."
    )
    helps = []
    if top := _top_of(package):
        top = top if top != "vllm_flash_attn" else "vllm"
        helps.append(
            f"{seen.python} -c 'import importlib.util; print(importlib.util.find_spec(\"{top}\"))'"
        )
    if package and pip_name(seen, package):
        version = version_of(seen, package)
        pinned = package
        if version and not re.search(r"[+]|dev", version):
            pinned = f"{package}=={version}"
        helps.append(f"{seen.pip} uninstall -y {package}")
        helps.append(f"{seen.pip} install --no-cache-dir {pinned}")
    return seen.answer(
        KIND, MIXED, cause, owner=package, direction="none",
        confidence="high" if package else "medium", help=tuple(helps) or (f"{seen.pip} check",),
        notes=(
            "In a source tree: remove the old .so files and the build directory, and build again "
            "in place (pip install --no-build-isolation -e .). A tree that took precompiled "
            "libraries has those of another commit.",
            "The first command shows which directory is imported: a source tree in the working "
            "directory comes before the installed package.",
        ),
    )  # fmt: skip


def _torchs_operator(seen: Seen, operator: str) -> Answer:
    return seen.answer(
        KIND, "FA881",
        f"{operator} is an operator of torch itself, and its caller passes other parameters than "
        "this torch has: the caller was written, or a saved program was made, for another release "
        "of torch.",
        owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
              f"{seen.pip} check"),
        notes=("The step of the traceback above torch's own names the caller.",),
    )  # fmt: skip


def _top_of(package: str | None) -> str | None:
    from fa_forensics.rules.remedy import row_of

    row: Mapping[str, object] | None = row_of(package) if package else None
    return str(row["import"]).split(".")[0] if row else None
