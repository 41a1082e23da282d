"""Which copy wins: one line for each library of which copies are within reach.

The process is that of ``import torch`` in one environment, built by ld.so's own rules; no
library is loaded and torch is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.toolkit import find_toolkits, toolkit_roots
from fa_forensics.report import Finding
from fa_forensics.report_env import COPIES, COULD_NOT_LOOK, NOTE, OK, WRONG, Line
from fa_forensics.resolve.copies import Copies, Copy, Group, find_copies
from fa_forensics.resolve.environment_process import open_linker, torch_of_another_machine
from fa_forensics.resolve.lacking import find_lacking
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.resolution import Library
from fa_forensics.resolve.search import split_path
from fa_forensics.rules.copies import copy_findings, described
from fa_forensics.rules.copy_remedy import CopyFacts

SUBJECT = "library copies"
TORCH_SUBJECT = "torch's libraries"


def copies_lines(environment: Environment, environ: Mapping[str, str]) -> tuple[Line, ...]:
    """The copies of an environment in lines; what could not be looked at is a line too."""
    try:
        linker = open_linker(environment)
    except ForensicsError as error:
        return (Line(COPIES, SUBJECT, COULD_NOT_LOOK, error.message),)
    try:
        return lines_of(environment, environ, linker)
    finally:
        linker.close()


def lines_of(
    environment: Environment, environ: Mapping[str, str], linker: Linker
) -> tuple[Line, ...]:
    """The same with a linker that is open already; it stays open."""
    foreign = torch_of_another_machine(environment, linker)
    if foreign is not None:
        return (Line(COPIES, SUBJECT, COULD_NOT_LOOK, f"which copies win is not known: {foreign}"),)
    toolkits = toolkit_roots(find_toolkits(environ))
    copies = find_copies(environment, linker, toolkits)
    findings = _findings(environment, linker, copies)
    torch = [group for group in copies.groups if group.copies[0].name.family.torch]
    lines = [] if not torch else [_torch_line(torch, findings)]
    for group in copies.groups:
        if group not in torch:
            lines += _group_lines(group, findings)
    known = {group.soname for group in copies.groups}
    for soname, found in findings.items():
        if soname not in known:
            lines += [_wrong(soname, finding) for finding in found]
    problems = (*copies.problems, *linker.problems, *linker.process.searcher.problems)
    lines += [Line(COPIES, SUBJECT, COULD_NOT_LOOK, text) for text in dict.fromkeys(problems)]
    if environment.torch is None:
        reason = environment.torch_problem or f"no torch is installed in {environment.prefix}"
        text = f"what `import torch` takes is not known: {reason}"
        lines.insert(0, Line(COPIES, SUBJECT, COULD_NOT_LOOK, text))
    return tuple(lines)


def _findings(environment: Environment, linker: Linker, copies: Copies) -> dict[str, list[Finding]]:
    """The findings by soname; none without a torch to judge for."""
    if environment.torch is None:
        return {}
    misses = [
        Library(m.soname, o.path, None, "not found", m.tried, m.problem, m.refusal)
        for o in linker.torch_objects
        for m in o.missing
    ]
    facts = CopyFacts(
        python=environment.python,
        torch=environment.torch,
        variables=environment.variables,
        library_path=tuple(split_path(environment.variables.get("LD_LIBRARY_PATH", ""))),
        copies=copies,
        lacking=find_lacking(linker, copies),
        misses=tuple({miss.soname: miss for miss in reversed(misses)}.values()),
    )
    found: dict[str, list[Finding]] = {}
    for about in copy_findings(facts):
        found.setdefault(about.soname, []).append(about.finding)
    return found


def _group_lines(group: Group, findings: Mapping[str, Sequence[Finding]]) -> list[Line]:
    """One line, and one more for each further finding."""
    own = findings.get(group.soname, ())
    facts, details = _facts_of(group), tuple(map(_detail, group.copies))
    if not own:
        state = OK if group.winner is not None and group.winner.loaded else NOTE
        return [Line(COPIES, group.soname, state, _text(group), None, details, facts)]
    first = _wrong(group.soname, own[0], details, facts)
    return [first, *(_wrong(group.soname, finding) for finding in own[1:])]


def _wrong(
    soname: str,
    finding: Finding,
    details: tuple[str, ...] = (),
    facts: Mapping[str, object] | None = None,
) -> Line:
    state = NOTE if finding.severity == "note" else WRONG
    return Line(COPIES, soname, state, finding.title, finding, details, facts or {})


def _text(group: Group) -> str:
    taken = group.winner
    if taken is None:
        where = ", ".join(copy.path for copy in group.copies[:2])
        return f"nothing that `import torch` loads leads to it; it lies at {where}"
    version = f"{taken.version.version} " if taken.version.version else ""
    if not taken.loaded:
        verb = "opened only when it is used" if _opened_later(taken) else "not loaded by torch"
        return f"{version}{taken.path}, {verb}"
    others = len(group.rivals)
    more = f"; {others} other {'copy' if others == 1 else 'copies'} in reach" if others else ""
    return f"{version}{taken.path}, {_how(taken)}{more}"


def _how(copy: Copy) -> str:
    """The loader's rule in words: "by RPATH", "by its path"."""
    rule = copy.found_by or ""
    return rule if rule.startswith("by ") else f"by {rule}"


def _opened_later(copy: Copy) -> bool:
    return "opened_by" in copy.name.family.row


def _detail(copy: Copy) -> str:
    version = copy.version.version or "version unknown"
    state = f"taken {_how(copy)}" if copy.loaded else "not taken"
    places = f"; in {', '.join(copy.places)}" if copy.places else ""
    problem = f"; {copy.problem}" if copy.problem else ""
    return f"{copy.path}: {version} ({copy.version.how}), {state}{places}{problem}"


def _facts_of(group: Group) -> dict[str, object]:
    return {
        "soname": group.soname,
        "library": group.copies[0].name.family.name,
        "loaded": group.winner is not None and group.winner.loaded,
        "taken": None if group.winner is None else _copy_facts(group.winner),
        "others": [_copy_facts(copy) for copy in group.others],
    }


def _copy_facts(copy: Copy) -> dict[str, object]:
    return {
        "path": copy.path,
        "real_path": copy.real,
        "soname": copy.soname,
        "version": copy.version.version,
        "version_known_by": copy.version.how,
        "build_id": copy.build_id,
        "size_bytes": copy.size,
        "found_by": copy.found_by,
        "needed_by": copy.needed_by,
        "places": list(copy.places),
        "problem": copy.problem,
    }


def _torch_line(groups: Sequence[Group], findings: Mapping[str, Sequence[Finding]]) -> Line:
    """Torch's own libraries in one line: they come from one wheel, or something is wrong."""
    facts = {"libraries": [_facts_of(group) for group in groups]}
    details = tuple(_detail(copy) for group in groups for copy in group.copies)
    own = [finding for group in groups for finding in findings.get(group.soname, ())]
    if own:
        return _wrong(TORCH_SUBJECT, own[0], details, facts)
    taken = [group.winner for group in groups if group.winner is not None and group.winner.loaded]
    places = sorted({os.path.dirname(copy.path) for copy in taken})
    if not taken:
        return Line(COPIES, TORCH_SUBJECT, NOTE, "none is loaded", None, details, facts)
    names = ", ".join(os.path.basename(copy.path) for copy in taken)
    text = f"{described(taken[0])}: {names}, from {', '.join(places)}"
    return Line(COPIES, TORCH_SUBJECT, OK, text, None, details, facts)
