"""A name's life over torch's releases, as the atlas has it, and where a torch stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fa_forensics.atlas.builds import interval_text
from fa_forensics.atlas.overloads import Named
from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import fold_flavour, qualified_name
from fa_forensics.facts.mangled import OTHER_FLAVOUR, SAME_NAME
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_install import is_published
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass
from fa_forensics.why.torch_names.signature import changes, one_became_the_other, unlike_parameters
from fa_forensics.why.torch_names.spelling import same_text

#: Where a torch stands in relation to the releases that have a name.
INSIDE, TOO_NEW, TOO_OLD, BETWEEN, NOWHERE = "inside", "too new", "too old", "between", "nowhere"

#: Scopes that names of torch moved between.
_MOVES = ("c10", "at", "torch", "c10::cuda", "at::cuda", "c10d")

#: Hardly a torch up to this one is still in use.
LONG_AGO = (1, 8, 1, True)

_RELEASE = lazily(r"(\d+)\.(\d+)(?:\.(\d+))?(.*)")


@dataclass(frozen=True, slots=True)
class Present:
    """The torch to answer for, installed or only named.

    ``version`` is its whole text, ``release`` the leading N.N.N, ``flavour`` that of its
    std::string ("cxx11", "pre-cxx11", "unknown"); ``installed`` tells whether its
    libraries were read. ``called`` is what messages call it, where the version says more than
    the text that names it: a release of which the usual build is taken.
    """

    version: str
    release: str
    flavour: str
    has_cuda: bool
    installed: bool
    called: str = ""

    @property
    def published(self) -> bool:
        """Whether the version is that of a release, not of a nightly or somebody's own build."""
        return is_published(self.version)

    @property
    def text(self) -> str:
        """The torch in messages: ``torch 2.4.0+cu121``."""
        return f"torch {self.called or self.version}"


def order_key(version: str) -> tuple[int, int, int, bool]:
    """Sorts versions; what comes before a release (2.2.0a0, 2.9.0.dev…) stands before it."""
    found = _RELEASE.match(version)
    if found is None:
        return (0, 0, 0, False)
    major, minor, patch, rest = found.groups()
    early = re.match(r"\.?(a|b|rc|dev)\d*", rest.partition("+")[0]) is not None
    return (_number(major), _number(minor), _number(patch or "0"), not early)


def _number(digits: str) -> int:
    return int(digits[:9])


@dataclass(frozen=True, slots=True)
class Form:
    """One signature of a function: its symbols (both flavours), and the releases with any."""

    demangled: str
    symbols: tuple[Named, ...]
    releases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What the atlas has of one name.

    ``symbol`` is the linker's name, found where only a readable one was given, or "".
    ``releases`` export this very name, ``alive`` it or its twin of the other flavour,
    oldest first; ``forms`` are all signatures of the function in the order of their lives,
    ``line`` those that followed one another with the asked one among them. ``moved`` is a
    name of another scope that took its place, ``kin`` tells that torch's releases export
    other members of the same class; ``pythons`` are those that each release has wheels for.
    ``hidden`` are releases whose library keeps the function to itself, in every form, so that a
    file that is built on one of them lacks it too.
    """

    symbol: str
    machine: str
    known: tuple[str, ...]
    releases: tuple[str, ...]
    alive: tuple[str, ...]
    twin: Named | None
    forms: tuple[Form, ...]
    line: tuple[Form, ...]
    moved: Named | None
    kin: bool
    pythons: Mapping[str, tuple[str, ...]]
    hidden: tuple[str, ...] = ()

    def interval(self, releases: Sequence[str]) -> str:
        """Releases as text: "2.1.0" to "2.2.2", as people write it."""
        return interval_text(releases, self.known) if releases else ""

    def lacked_by(self, release: str = "") -> str:
        """Which torches lack the name, as a sentence; "" where hardly one does.

        ``release`` is one that has it, and that the file was most likely built for.
        """
        if not self.alive or self.long_there:
            return ""
        if self.gap:
            return self._lacked_between(release)
        if self.alive[0] != self.known[0] and self.alive[-1] != self.known[-1]:
            return (
                f" A torch that lacks it is older than {self.alive[0]} or newer than "
                f"{self.alive[-1]}."
            )
        if self.alive[0] != self.known[0]:
            return f" A torch that lacks it is older than {self.alive[0]}: the file is newer."
        if self.alive[-1] != self.known[-1]:
            return (
                f" A torch that lacks it is most likely newer than {self.alive[-1]}: the file is "
                "older."
            )
        return ""

    @property
    def long_there(self) -> bool:
        """Whether every torch has the name that is still in use: hardly one is too old for it."""
        still = self.alive[-1:] == self.known[-1:] and not self.gap
        return still and order_key(self.alive[0]) <= LONG_AGO

    @property
    def gap(self) -> tuple[str, ...]:
        """The releases without the name that lie between those with it."""
        if not self.alive:
            return ()
        first, last = self.known.index(self.alive[0]), self.known.index(self.alive[-1])
        return tuple(r for r in self.known[first:last] if r not in self.alive)

    def _lacked_between(self, release: str) -> str:
        """Which torches lack a name that went and came again."""
        lacking = tuple(r for r in self.known if r not in self.alive)
        after = [r for r in self.gap if release and order_key(r) > order_key(release)]
        if not after or order_key(release) > order_key(self.gap[0]):
            return f" A torch that lacks it is {self.interval(lacking)}."
        if tuple(after) == lacking:
            return (
                f" A torch that lacks it is one of {self.interval(after)}, newer than {release}, "
                "and the file is older."
            )
        return (
            f" A torch that lacks it is {self.interval(lacking)}: most likely one of "
            f"{self.interval(after)}, newer than {release}, and the file is older."
        )

    def place(self, present: Present) -> str:
        """Where a torch stands in relation to the releases that have the name."""
        if not self.alive:
            return NOWHERE
        keys = [order_key(release) for release in self.alive]
        own = order_key(present.version)
        if own[:3] == order_key(present.release)[:3] and own[3]:
            own = order_key(present.release)  # 2.4.0.post1 and 2.4.0+cu121 are 2.4.0
        if own in keys:
            return INSIDE
        if own > keys[-1]:
            return TOO_NEW
        if own < keys[0]:
            return TOO_OLD
        return INSIDE if self._within(own) else BETWEEN

    def _within(self, own: tuple[int, int, int, bool]) -> bool:
        """Whether the releases before and after a version, itself not on record, have the name."""
        if any(order_key(release) == own for release in self.known):
            return False  # on record, and without it
        before = [r for r in self.known if order_key(r) < own]
        after = [r for r in self.known if order_key(r) > own]
        return bool(before and after) and before[-1] in self.alive and after[0] in self.alive


#: Functions of TH and THC that the record leaves out, and one of the same header (THGeneral.h,
#: THCGeneral.h) with the same macro for export, which it has.
_SAME_HEADER = {
    "THSetErrorHandler": ("_THError", "_THArgCheck", "_THAssertionFailed"),
    "THCState_alloc": (
        "__THCudaCheck", "__THCudaCheckWarn", "__THCublasCheck", "__THCusparseCheck",
    ),
}  # fmt: skip


def _on_record(name: str) -> str:
    return next((kept for kept, others in _SAME_HEADER.items() if name in others), name)


def look_up(name: str, demangled: str, atlas: Atlas, machine: str) -> History:
    """The history of a name (mangled, or as readable as it was given) on one machine."""
    known = atlas.releases(machine)
    rows = atlas.overloads(name or demangled, machine)
    if not name and "(" in demangled:
        same = [row for row in rows if row.relation == SAME_NAME]
        exact = [row for row in same if same_text(row.demangled, demangled)] or same
        if len(exact) == 1:
            name, demangled = exact[0].symbol, exact[0].demangled
    if not name and "(" not in demangled:
        # Data, which has no parameters; of a function this is only the beginning.
        data = [row for row in rows if same_text(row.demangled, demangled)]
        if len(data) == 1:
            name, demangled = data[0].symbol, data[0].demangled
    rows = (*rows, *_templates(rows, demangled, atlas, machine))
    releases = atlas.releases_of(_on_record(name), machine) if name else ()
    twin = next((row for row in rows if row.relation == OTHER_FLAVOUR), None) if name else None
    if not name and "(" in demangled:
        twin = _written_twin(rows, demangled)
    alive = _ordered({*releases, *(twin.releases if twin else ())}, known)
    forms = _forms(rows, known)
    line = _line(fold_flavour(demangled), forms, known)
    moved, kin = None, False
    gone = not forms if not alive else alive[-1] != known[-1] and len(forms) < 2
    if gone and name.startswith("_Z"):
        moved = _moved(demangled, alive, known, atlas, machine)
    if gone and not alive and name.startswith("_Z"):
        kin = _has_kin(demangled, atlas, machine)
    pythons = {build.release: tuple(build.pythons) for build in atlas.builds(machine)}
    hidden = _hidden(name, alive, forms, known, atlas, machine)
    return History(
        name, machine, known, releases, alive, twin, forms, line, moved, kin, pythons, hidden
    )


def _hidden(
    name: str,
    alive: Sequence[str],
    forms: Sequence[Form],
    known: Sequence[str],
    atlas: Atlas,
    machine: str,
) -> tuple[str, ...]:
    """The releases whose library no longer exports what its headers do not mark for export.

    A weak name is of an inline function or a template, which a file brings itself.
    """
    row = read_table("hidden_names.json")["since"]
    last, first = row["last"], row["first"]
    if first not in known or last not in alive or first in alive:
        return ()
    exports = {(e.library, e.bind) for e in atlas.exports(name, machine) if e.release == last}
    if (row["library"], "global") not in exports:
        return ()
    had = {release for form in forms for release in form.releases}
    return tuple(r for r in known[known.index(first) :] if r not in had)


def _written_twin(rows: Sequence[Named], demangled: str) -> Named | None:
    """The function that a readable name means in the other std::string flavour."""
    folded = fold_flavour(demangled)
    if any(same_text(row.demangled, demangled) for row in rows):
        return None
    same = (row for row in rows if row.releases and same_text(fold_flavour(row.demangled), folded))
    return next(same, None)


def _templates(
    rows: Sequence[Named], demangled: str, atlas: Atlas, machine: str
) -> tuple[Named, ...]:
    """The template that a plain function became: its instances have names of their own."""
    if len({row.demangled for row in rows}) != 1 or "(" not in demangled or "<" in demangled:
        return ()
    known = {row.symbol for row in rows}
    found = atlas.overloads(qualified_name(demangled), machine)
    return tuple(row for row in found if row.symbol not in known)


def _ordered(releases: set[str], known: Sequence[str]) -> tuple[str, ...]:
    return tuple(release for release in known if release in releases)


def _forms(rows: Sequence[Named], known: Sequence[str]) -> tuple[Form, ...]:
    groups: dict[str, list[Named]] = {}
    for row in rows:
        groups.setdefault(fold_flavour(row.demangled), []).append(row)
    forms = [
        Form(text, tuple(group), _ordered({r for row in group for r in row.releases}, known))
        for text, group in groups.items()
    ]
    return tuple(sorted(forms, key=lambda form: (_span(form, known), form.demangled)))


def _span(form: Form, known: Sequence[str]) -> tuple[int, int]:
    if not form.releases:
        return (len(known), len(known))
    return known.index(form.releases[0]), known.index(form.releases[-1])


def _line(own: str, forms: Sequence[Form], known: Sequence[str]) -> tuple[Form, ...]:
    """The forms that replaced one another: each begins where the one before it ends.

    Of several that begin there the one with the fewest changes is taken. Empty when the
    asked form is exported by no release.
    """
    start = next((form for form in forms if form.demangled == own and form.releases), None)
    if start is None:
        return ()
    line = [start]
    while (after := _neighbour(line[-1], _others(forms, line), known, 1)) is not None:
        line.append(after)
    while (before := _neighbour(line[0], _others(forms, line), known, -1)) is not None:
        line.insert(0, before)
    return tuple(line)


def _others(forms: Sequence[Form], line: Sequence[Form]) -> list[Form]:
    return [form for form in forms if form.releases and not any(form is one for one in line)]


def _neighbour(form: Form, forms: Sequence[Form], known: Sequence[str], step: int) -> Form | None:
    """The form that took over from another, or was there before; it may have been there twice.

    at::RecordFunction(RecordScope) is of 1.6 and 1.7, and of 1.12 and later again.
    """
    first, last = _span(form, known)
    edge = last if step > 0 else first
    if not 0 <= edge + step < len(known):
        return None
    inside, beyond = known[edge], known[edge + step]
    found = [o for o in forms if beyond in o.releases and inside not in o.releases]
    stay = sum(beyond in o.releases and inside in o.releases for o in forms)
    if stay >= _OVERLOADED:
        found = [o for o in found if one_became_the_other(form.demangled, o.demangled)]
    return min(found, key=lambda other: _distance(form, other), default=None)


#: A function with so many other signatures that stay is overloaded by type: what comes with a
#: release is most likely one more of them, and takes no other's place.
_OVERLOADED = 4


def _distance(form: Form, other: Form) -> tuple[int, int, str]:
    clauses = changes(form.demangled, other.demangled)
    unlike = unlike_parameters(form.demangled, other.demangled)
    return (unlike, len(clauses) or 99, other.demangled)


def _moved(
    demangled: str, alive: Sequence[str], known: Sequence[str], atlas: Atlas, machine: str
) -> Named | None:
    """The same name in another scope of torch: at::UndefinedTensorImpl became c10::'s.

    It begins where the old one ends, and at::cuda::f is another function than at::f.
    """
    scope, _, rest = qualified_name(fold_flavour(demangled)).partition("::")
    next_one = known[known.index(alive[-1]) + 1] if alive else ""
    for other in _MOVES:
        if other == scope or not rest or {scope, other} == {"at", "at::cuda"}:
            continue
        rows = [
            row
            for row in atlas.overloads(f"{other}::{rest}", machine)
            if row.releases and (not alive or next_one in row.releases)
        ]
        if rows:
            return rows[0]
    return None


def _has_kin(demangled: str, atlas: Atlas, machine: str) -> bool:
    """Whether releases export other members of the name's own class, which is torch's then.

    A namespace proves nothing: extensions define functions of their own in at::native.
    """
    parts = qualified_name(demangled).split("::")
    if len(parts) < 3 or not parts[-2][:1].isupper():
        return False
    if not all(part.isidentifier() for part in parts[:-1]):
        return False
    body = "".join(f"{len(part)}{part}" for part in parts[:-1])
    return any(atlas.starting_with(prefix + body, machine, limit=1) for prefix in ("_ZN", "_ZNK"))
