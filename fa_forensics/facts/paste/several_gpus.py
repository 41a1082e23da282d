"""Texts that name several GPUs: the one where it fails, or all of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from fa_forensics.facts.paste.gpu_names import failing
from fa_forensics.facts.paste.gpu_roles import BUILT, FAILS, WORKS, elsewhere, parts
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import PROSE, REPORT
from fa_forensics.facts.paste.versions_table import rules
from fa_forensics.patterns import lazily

#: What the names are joined by under the key "gpus".
BETWEEN = "; "
#: No more lines are looked at for the one that fails.
MOST_LINES = 20
_MAKER = lazily(r"^(?:NVIDIA |GeForce |Quadro |Tesla )+", re.IGNORECASE)
#: Machines that stand for their GPU.
_MACHINES = {"dgx spark": "gb10"}
#: A line of a report for each GPU: "GPU 1: NVIDIA ...", detectron2's "GPU 1     GeForce ...".
_NUMBERED = lazily(
    r"^\W{0,4}GPU ?(?P<first>\d{1,2})(?:,\d{1,2}){0,15}(?::\s?|\s{2,60})"
    r"(?P<name>[A-Za-z][^\n(:|]{2,58})"
)
#: What stands before a GPU where all is well, or where something was built.
_OTHER = lazily(
    r"(?P<before>[^.;\n]{0,24})\b(?:works?|worked|working|runs?|fine|ok|okay|succeeds?"
    r"|(?:pre-?)?built|compiled|build)(?: fine| well| correctly| properly)? (?:on|with|under|for)"
    r"(?: an?| the| my| our| both| another| other)?[ *_`]{1,3}(?:NVIDIA |GeForce |Tesla )*\Z",
    re.IGNORECASE,
)
_NEGATED = lazily(r"\b(?:not|never|longer|cannot)\b|n't", re.IGNORECASE)


def numbered_gpus(source: Source, places: Places) -> tuple[str, ...]:
    """The names of the GPUs that a report lists by their numbers, where they differ."""
    found: dict[str, None] = {}
    for place in places("gpu ")[:60]:
        match = _NUMBERED.match(source.line_at(place).body)
        if match is not None:
            found[match["name"].strip(" .,*`'\"")] = None
    return tuple(found) if len(found) > 1 else ()


def _named(source: Source, places: Places) -> dict[str, tuple[str, list[str], bool]]:
    """By small-letter name: (the name, its lines, whether it stands where all is well).

    GPUs in sentences, by the table of rules.
    """
    found: dict[str, tuple[str, list[str], bool]] = {}
    for rule in rules():
        if rule.key != "gpu" or rule.sort != PROSE:
            continue
        for place in places(rule.sign)[:20]:
            line = source.line_at(place)
            for match in itertools.islice(rule.pattern.finditer(line.body), 20):
                name = _MAKER.sub("", match[1])
                before = line.body[max(0, match.start() - 70) : match.start()]
                well = _OTHER.search(before)
                fine = well is not None and _NEGATED.search(well["before"]) is None
                known = found.get(name.lower(), (name, [], False))
                found[name.lower()] = (known[0], [*known[1], line.body], known[2] or fine)
    return found


#: "compiled on A100, run on V100": what runs elsewhere than where it was built fails there.
_BUILT_RUN = lazily(
    r"\b(?:built|compiled|build|installed) (?:on|for|with) (?:an? |the )?(?P<built>[\w -]{2,40}?)"
    r"(?: GPUs?)?(?: \([^()\n]{1,80}\))?,? (?:and |but |then )?"
    r"(?:run(?:s|ning)?|ran|used|loaded|executed) (?:on|with) (?:an? |the )?(?P<run>[\w -]{2,40})",
    re.IGNORECASE,
)


def _run_on(names: set[str], named: dict[str, tuple[str, list[str], bool]]) -> list[str]:
    """The one GPU that the code runs on, where a sentence says that it was built on another."""
    bodies = dict.fromkeys(b[:400] for name in names for b in named[name][1][:MOST_LINES])
    for body in bodies:
        found = _BUILT_RUN.search(body)
        if found is None:
            continue
        there = [one for one in names if one in found["run"].lower()]
        if len(there) == 1 and there[0] not in found["built"].lower():
            return there
    return []


def _spelt(named: Iterable[str], names: set[str]) -> dict[str, str]:
    """By each spelling the GPU of the names that it stands for: "3090" is the "rtx 3090"."""
    whole = {name: re.sub(r"[\s-]", "", name) for name in names}
    found = {}
    for name in named:
        short = re.sub(r"[\s-]", "", name)
        longer = [one for one, text in whole.items() if short in text]
        if name in names or len(longer) == 1:
            found[name] = name if name in names else longer[0]
    return found


def _longest(named: Iterable[str]) -> set[str]:
    """The names that are no part of another, blanks aside: "4060ti" is the "rtx 4060 ti"."""
    spelt: dict[str, str] = {}
    for name in sorted(named, key=len):
        spelt[re.sub(r"[\s-]", "", name)] = name
    return {name for key, name in spelt.items() if not any(key != k and key in k for k in spelt)}


def one_gpu(best: dict[str, tuple[int, int, str]], source: Source, places: Places) -> None:
    """Take the GPU off the versions where a text names several, and put them all there.

    Not where it tells which one fails: by a sentence of both, or because the others work.
    """
    known = best.get("gpu")
    if known is None:
        return
    if known[0] == REPORT or places("gpu 1"):
        listed = numbered_gpus(source, places)
        if len(listed) > 1 and any(known[2] in name or name in known[2] for name in listed):
            best["gpus"] = (*known[:2], BETWEEN.join(listed))
            del best["gpu"]
            return
    if known[0] < PROSE:
        return
    named = _named(source, places)
    names = _longest(named)
    names -= {machine for machine, gpu in _MACHINES.items() if gpu in names}
    bodies = dict.fromkeys(body for _, lines, _ in named.values() for body in lines)
    spelt = _spelt(named, names)
    if len(names) < 2:
        if names and elsewhere(bodies, spelt):
            del best["gpu"]
        return
    told = {failing(body, frozenset(names)) for body in itertools.islice(bodies, MOST_LINES)}
    told.discard(None)
    part = parts(bodies, spelt)
    fails = [name for name in named if part.get(name) == FAILS]
    fine = {name for name in names if named[name][2] or part.get(name, FAILS) != FAILS}
    left = [name for name in named if name in names - fine] or _run_on(names, named)
    if len(told) == 1:
        best["gpu"] = (*known[:2], str(told.pop()).upper())
    elif fails and len(fails) < len(names):
        best["gpu"] = (*known[:2], named[fails[0]][0])
        made = [name for name in named if part.get(name) == BUILT]
        well = [name for name in named if part.get(name) == WORKS]
        for key, some in (("gpus_fail", fails), ("gpus_made", made), ("gpus_fine", well)):
            if some:
                best[key] = (*known[:2], BETWEEN.join(named[name][0] for name in some))
    elif len(left) == 1:
        best["gpu"] = (*known[:2], named[left[0]][0])
    else:
        rest = left or list(names)
        best["gpus"] = (*known[:2], BETWEEN.join(named[name][0] for name in named if name in rest))
        del best["gpu"]
