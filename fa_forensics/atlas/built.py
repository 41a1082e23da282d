"""Which torch release a file was built on, from the file alone.

Clues rule releases out: names that a release does not export, identifiers and assertions that
its headers do not have, a CUDA or Python it was not published for. Hints rule nothing out; they
say which of the releases that are left is the likeliest. What the package's metadata says is no
clue: it is what the answer is compared with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.atlas.builds import interval_text, minor_of
from fa_forensics.errors import AtlasDamaged
from fa_forensics.facts.demangle import demangle, readable
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.atlas.headers import Headers
    from fa_forensics.atlas.store import Atlas
    from fa_forensics.atlas.window import Window
    from fa_forensics.facts.traces import Traces

HIGH, MEDIUM, LOW = "high", "medium", "low"

#: Names of the other std::string flavour that are looked up for a file no release serves.
MAX_TWINS = 300

_RELEASE = re.compile(r"\d+\.\d+")
_DIGITS = re.compile(r"\d+")


class Clue(NamedTuple):
    """Something in the file that some releases cannot explain.

    ``without`` are the releases it rules out; ``kind`` and ``subject`` say what it is.
    """

    kind: str
    subject: str
    without: frozenset[str]


class Hint(NamedTuple):
    """Something in the file that speaks for some releases: ``text`` with a place for them."""

    text: str
    releases: frozenset[str]


@dataclass(frozen=True, slots=True)
class Built:
    """What a file was built on.

    ``releases`` are those that nothing in it speaks against, oldest first; ``best`` the
    likeliest of them, None where there are none. ``evidence`` has a sentence for each bound
    and for the choice; ``confidence`` is high (one minor release is left), medium or low.
    ``problem`` says what could not be looked into: the answer is wider for it.
    """

    releases: tuple[str, ...]
    best: str | None
    evidence: tuple[str, ...]
    confidence: str
    name: str = ""
    known: tuple[str, ...] = ()
    clues: tuple[Clue, ...] = ()
    hints: tuple[Hint, ...] = ()
    problem: str | None = None


def built_on(
    window: Window,
    atlas: Atlas,
    traces: Traces,
    toolkits: Sequence[str] = (),
    name: str = "",
) -> Built:
    """The releases that a file can have been built on, and the likeliest.

    ``window`` is what it links with, ``traces`` what torch's headers left in it, ``toolkits``
    the CUDA releases that made its GPU code ("12.4"), ``name`` its path (in the wheel), by
    which it is called where several files are judged together.
    """
    known = atlas.releases(window.machine)
    headers, problem = _shipped_headers()
    clues = [
        *_import_clues(window, atlas, known),
        *_told_clues(traces, known),
        *_header_clues(traces, headers),
        *_cuda_clues(toolkits, window.machine, atlas),
        *_python_clues(traces, window.machine, atlas),
    ]
    hints = tuple(_hints(traces, toolkits, window.machine, atlas))
    return replace(_judge(name, known, _in_accord(clues, known), hints), problem=problem)


def judged_together(built: Sequence[Built]) -> tuple[Built, ...]:
    """The files of one package, each with what all of them say, in the same order.

    They were built together, so what rules a release out for one does so for all. Where that
    leaves nothing the package has files for several releases; each then stands alone.
    """
    telling = [one for one in built if one.releases]
    if len(telling) < 2 or _several_builds(telling):
        return tuple(built)
    known = telling[0].known
    clues = tuple(_named(clue, one.name) for one in telling for clue in one.clues)
    left = _left(known, clues)
    if not left:
        return tuple(built)
    hints = tuple(dict.fromkeys(hint for one in telling for hint in one.hints))
    joint = _judge("", known, clues, hints)
    return tuple(
        replace(joint, name=one.name, problem=one.problem) if one.releases else one for one in built
    )


def _several_builds(built: Sequence[Built]) -> bool:
    """Whether there is one file for each torch: ``torch-2.4/lib/x.so``, ``torch-2.5/…``."""
    places = [
        (os.path.basename(one.name), _DIGITS.sub("#", os.path.dirname(one.name)))
        for one in built
        if one.name
    ]
    return len(places) != len(set(places))


def _named(clue: Clue, name: str) -> Clue:
    """A clue that says which file it is from."""
    if "\0" in clue.subject or not name:
        return clue
    return clue._replace(subject=f"{clue.subject}\0{os.path.basename(name)}")


# --- from clues to an answer --------------------------------------------------------------------


def _in_accord(clues: Sequence[Clue], known: Sequence[str]) -> tuple[Clue, ...]:
    """The clues without those that would leave nothing, given the ones before them.

    What comes first weighs more: the loader goes by names, while a header may be a copy.
    """
    left = set(known)
    kept = []
    for clue in clues:
        if clue.without >= left:
            continue
        left -= clue.without
        kept.append(clue)
    return tuple(kept)


def _left(known: Sequence[str], clues: Iterable[Clue]) -> tuple[str, ...]:
    gone = frozenset[str]().union(*(clue.without for clue in clues))
    return tuple(release for release in known if release not in gone)


def _judge(
    name: str, known: tuple[str, ...], clues: tuple[Clue, ...], hints: tuple[Hint, ...]
) -> Built:
    releases = _left(known, clues)
    if not releases or not clues:
        return Built(releases if clues else (), None, (), LOW, name, known, clues, hints)
    likely, used = releases, []
    for hint in hints:
        rest = tuple(release for release in likely if release in hint.releases)
        if rest and len(rest) < len(likely):
            used.append(hint.text.replace("{}", interval_text(rest, known)))
            likely = rest
    minors = {minor_of(release) for release in releases}
    confidence = HIGH if len(minors) == 1 else LOW
    if confidence == LOW and (used or len(minors) <= 3):
        confidence = MEDIUM
    evidence = (*_bounds(releases, known, clues), *used)
    return Built(releases, likely[0], evidence, confidence, name, known, clues, hints)


def _bounds(releases: Sequence[str], known: Sequence[str], clues: Sequence[Clue]) -> Iterator[str]:
    """A sentence for each end of the runs of releases that are left."""
    left = set(releases)
    ends: dict[Clue, list[str]] = {}
    for at, release in enumerate(known):
        beside = {known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]}
        if release not in left and beside & left:
            clue = next(clue for clue in clues if release in clue.without)
            ends.setdefault(clue, []).append(release)
    for clue, gone in ends.items():
        yield _sentence(clue, f"torch {' and '.join(gone)}", len(gone) > 1, known)


def _sentence(clue: Clue, torch: str, several: bool, known: Sequence[str]) -> str:
    """Why a clue rules out what ``torch`` names, and which releases have what it speaks of."""
    subject, _, name = clue.subject.partition("\0")
    it, its = (name, f"{name}'s") if name else ("it", "its")
    having = interval_text((r for r in known if r not in clue.without), known)
    does, has, was = ("do", "have", "were") if several else ("does", "has", "was")
    if clue.kind == "import":
        symbol = readable(demangle(subject))
        return f"{torch} {does} not export {symbol}, which {it} needs ({having})"
    if clue.kind == "told":
        return f"{its} code tells torch that it was compiled with the headers of {subject}"
    if clue.kind == "line":
        path, _, line = subject.rpartition(":")
        return (
            f"{it} carries an assertion of line {line} of {path}, where the headers of "
            f"{torch} have none ({having})"
        )
    if clue.kind == "word":
        return (
            f"{its} inlined code of torch speaks of {subject}, which the headers of {torch} "
            f"do not have ({having})"
        )
    if clue.kind == "header":
        return f"{it} was compiled with {subject}, which {torch} {does} not have ({having})"
    if clue.kind == "cuda":
        return f"{its} GPU code was made by CUDA {subject}; {torch} {was} for another ({having})"
    return f"{it} was compiled for Python {subject}, for which {torch} {has} no wheel ({having})"


# --- clues --------------------------------------------------------------------------------------


def _import_clues(window: Window, atlas: Atlas, known: Sequence[str]) -> Iterator[Clue]:
    """One clue for each release that lacks names, and names a release in the same clue.

    A build of the other std::string flavour (conda-forge, NGC, cu126 of torch 2.6) exports
    other names than the release on the index; then the twin of a name counts for it.
    """
    missing = {release: set(names) for release, names in window.missing.items()}
    if len(missing) == len(known):
        for name in [*dict.fromkeys(n for names in window.missing.values() for n in names)][
            :MAX_TWINS
        ]:
            twin = atlas.twin(name, window.machine)
            for release in twin.releases if twin is not None else ():
                missing.get(release, set()).discard(name)
    lacking: dict[str, set[str]] = {}
    for release in known:
        for name in missing.get(release, ()):
            lacking.setdefault(name, set()).add(release)
    covered: set[str] = set()
    # The names that most releases lack say it all; the first in order where several do.
    order = {name: at for at, name in enumerate(window.names)}
    for name in sorted(lacking, key=lambda n: (-len(lacking[n]), order.get(n, 0))):
        if not lacking[name] <= covered:
            covered |= lacking[name]
            yield Clue("import", name, frozenset(lacking[name]))
    if window.names and not lacking:
        yield Clue("import", window.names[0], frozenset())


def _told_clues(traces: Traces, known: Sequence[str]) -> Iterator[Clue]:
    """The version that the file itself gives to torch; one that is not known says nothing."""
    told = traces.told
    if told is not None:
        without = frozenset(r for r in known if told not in (r, minor_of(r)))
        if len(without) < len(known):
            yield Clue("told", told, without)


@lru_cache(maxsize=1)
def _shipped_headers() -> tuple[Headers | None, str | None]:
    """(the table of headers, None), or (None, why it cannot be read)."""
    from fa_forensics.atlas.headers import Headers

    try:
        return Headers.open(), None
    except AtlasDamaged as error:
        return None, error.message


def _header_clues(traces: Traces, headers: Headers | None) -> Iterator[Clue]:
    """What torch's headers left in the file, as far as only some releases have it."""
    if headers is None:
        return
    rows: list[tuple[str, str]] = [
        *(("line", f"{path}:{line}") for path, line in sorted(traces.lines)),
        *(("header", path) for path in sorted(traces.headers)),
        *(("word", word) for word in sorted(traces.words)),
    ]
    for kind, key in rows:
        without = headers.without(key)
        if without:
            yield Clue(kind, key, frozenset(without))


def _cuda_of(toolkits: Sequence[str]) -> set[str]:
    """The toolkits that are known for certain ("12.5 or 12.6" is not)."""
    return {text for text in toolkits if _RELEASE.fullmatch(text)}


def _cuda_clues(toolkits: Sequence[str], machine: str, atlas: Atlas) -> Iterator[Clue]:
    """torch's build helpers refuse a toolkit of another major version than torch's own."""
    found = _cuda_of(toolkits)
    majors = {text.split(".")[0] for text in found}
    if len(majors) != 1:
        return  # none, or code linked in from elsewhere as well
    major = majors.pop()
    table = published_cuda()
    without = {
        build.release
        for build in atlas.builds(machine)
        if (rows := table.get(minor_of(build.release)))
        and not any(row.split(".")[0] == major for row in rows)
    }
    if without:
        yield Clue("cuda", ", ".join(sorted(found)), frozenset(without))


def _python_clues(traces: Traces, machine: str, atlas: Atlas) -> Iterator[Clue]:
    """The Python of a file's name, or else of the torch that it was compiled with."""
    tag = re.fullmatch(r"cp3(\d+)t?", traces.python_tag or "")
    version = f"3.{tag[1]}" if tag else (traces.python or "").rstrip("t")
    if not version:
        return
    without = frozenset(b.release for b in atlas.builds(machine) if version not in b.pythons)
    if without:
        yield Clue("python", version, without)


# --- hints --------------------------------------------------------------------------------------


def _hints(traces: Traces, toolkits: Sequence[str], machine: str, atlas: Atlas) -> Iterator[Hint]:
    builds = atlas.builds(machine)
    cuda = _cuda_of(toolkits)
    if len(cuda) == 1:
        (release,) = cuda
        table = published_cuda()
        yield Hint(
            f"the GPU code was made by CUDA {release}, that of the wheels of torch {{}}",
            frozenset(b.release for b in builds if release == b.cuda),
        )
        yield Hint(
            f"the GPU code was made by CUDA {release}, for which torch {{}} was published too",
            frozenset(b.release for b in builds if release in table.get(minor_of(b.release), ())),
        )
    if len(traces.pybind11) == 1:
        yield Hint(
            f"pybind11's internals are called {traces.pybind11[0]}, as in torch {{}}",
            frozenset(b.release for b in builds if b.pybind11 == traces.pybind11[0]),
        )
    yield _compiler_hint(traces.compilers, {b.release: b.gcc for b in builds})


def _compiler_hint(compilers: Collection[str], of_builds: Mapping[str, str | None]) -> Hint:
    shared = frozenset(r for r, text in of_builds.items() if text and text in compilers)
    text = next((of_builds[release] for release in shared), None)
    return Hint(f"the compiler is {text}, as that of torch {{}}", shared)
