"""One torch build as the atlas knows it, and arithmetic on release numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

_LEADING = lazily(r"\D{0,40}?(\d{1,6}(?:\.\d{1,6}){0,3})")

#: How many releases are offered for one that is not known.
OFFERED = 3


@dataclass(frozen=True, slots=True)
class Build:
    """The torch wheel of one release and machine.

    ``version`` is what ``torch/version.py`` says (``2.4.0+cu121``); ``cuda`` the CUDA
    version it was built for, ``None`` for a CPU build; ``flavour`` ``cxx11``, ``pre-cxx11``
    or ``unknown``, from its exported names; ``date`` the day of its upload; ``pythons`` the
    CPython versions it is published for; ``requires`` the pinned requirements;
    ``needed`` the libraries it needs beside its own; ``pybind11`` the text that extensions
    share pybind11's internals by; ``gcc`` the compiler's own description.
    """

    release: str
    machine: str
    version: str
    cuda: str | None
    flavour: str
    date: str
    wheel: str
    pythons: tuple[str, ...]
    requires: Mapping[str, str]
    needed: tuple[str, ...]
    pybind11: str | None
    gcc: str | None
    libraries: tuple[str, ...]

    @property
    def cuda_major(self) -> int | None:
        """The CUDA major version, or ``None`` for a CPU build."""
        return int(self.cuda.split(".")[0]) if self.cuda else None

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Build:
        """A build from its record or its entry in the shipped table; ``libraries`` may be a map."""
        return cls(
            release=entry["release"],
            machine=entry["machine"],
            version=entry["version"],
            cuda=entry["cuda"],
            flavour=entry["flavour"],
            date=entry["date"],
            wheel=entry["wheel"],
            pythons=tuple(entry["pythons"]),
            requires=dict(entry["requires"]),
            needed=tuple(entry["needed"]),
            pybind11=entry["pybind11"],
            gcc=entry["gcc"],
            libraries=tuple(sorted(entry["libraries"])),
        )

    def as_json(self) -> dict[str, Any]:
        """The entry of the shipped table, in a fixed order."""
        return {
            "release": self.release,
            "machine": self.machine,
            "version": self.version,
            "cuda": self.cuda,
            "flavour": self.flavour,
            "date": self.date,
            "wheel": self.wheel,
            "pythons": sorted(self.pythons, key=release_key),
            "requires": dict(sorted(self.requires.items())),
            "needed": sorted(self.needed),
            "pybind11": self.pybind11,
            "gcc": self.gcc,
            "libraries": sorted(self.libraries),
        }


def release_key(release: str) -> tuple[tuple[int, ...], str]:
    """What releases sort by: ``2.9.1`` before ``2.10.0``."""
    match = _LEADING.match(release)
    if match is None:
        return (), release
    return tuple(int(part) for part in match[1].split(".")), release[match.end() :]


def minor_of(release: str) -> str:
    """``2.4`` of ``2.4.1``."""
    return ".".join(release.split(".")[:2])


def nearest_releases(text: str, releases: Iterable[str]) -> tuple[str, ...]:
    """The known releases closest to an unknown one, oldest first, at most ``OFFERED``.

    Those of the same minor version if there are any (``2.4``, ``2.4.9``), else the ones
    just below and just above. Nothing for a text without a number.
    """
    match = _LEADING.match(text.strip())
    known = sorted(set(releases), key=release_key)
    if match is None or not known:
        return ()
    wanted = tuple(int(part) for part in match[1].split("."))
    if len(wanted) == 1:
        same = [r for r in known if release_key(r)[0][:1] == wanted]
        return tuple(same[-OFFERED:] or known[-1:])
    same = [r for r in known if release_key(r)[0][:2] == wanted[:2]]
    if same:
        # The patch releases around the wanted one.
        same.sort(key=lambda r: (_distance(release_key(r)[0], wanted), release_key(r)))
        return tuple(sorted(same[:OFFERED], key=release_key))
    below = [r for r in known if release_key(r)[0] < wanted]
    above = [r for r in known if release_key(r)[0] > wanted]
    return (*below[-1:], *above[:1])


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    """How far two releases of one minor version are apart, in patch releases."""
    first, second = (*one, 0, 0, 0), (*other, 0, 0, 0)
    return abs(first[2] - second[2])


def intervals(releases: Iterable[str], all_releases: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The runs of consecutive releases, as (first, last), oldest first.

    ``all_releases`` is every known release, oldest first; others are ignored.
    """
    wanted = set(releases)
    runs: list[tuple[str, str]] = []
    going_on = False
    for release in all_releases:
        if release in wanted:
            runs.append((runs.pop()[0] if going_on else release, release))
        going_on = release in wanted
    return tuple(runs)


def interval_text(releases: Iterable[str], all_releases: Sequence[str]) -> str:
    """The runs in words: "2.8.0 and later", with an en dash within; "no release" for none.

    "and later" stands for: up to the newest release that the atlas knows.
    """
    texts = []
    for first, last in intervals(releases, all_releases):
        if first == last:
            texts.append(first)
        elif last == all_releases[-1]:
            texts.append(f"{first} and later")
        else:
            texts.append(f"{first} \N{EN DASH} {last}")
    return ", ".join(texts) if texts else "no release"
