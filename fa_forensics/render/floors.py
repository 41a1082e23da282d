"""What a file needs at least of the system, as the ``floors`` row of its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fa_forensics.render.style import (
    counted,
    escape,
    mappings,
    natural_key,
    pieces,
    strings_of,
)
from fa_forensics.report import TargetReport

_LIBSTDCXX = ("GLIBCXX", "CXXABI")
#: Distributions that are named unless all are asked for; the table has the usual ones first.
_SYSTEMS = 3


def floor_rows(target: TargetReport, verbose: bool) -> list[tuple[str, list[str]]]:
    """The row, and with ``verbose`` one for each version, its library and what is here."""
    rows = [("floors", pieces(text)) for text in floor_sentences(target, verbose)]
    if verbose and target.floors is not None:
        details = mappings(target.floors, "versions")
        rows += [("floor", pieces(_detail(entry))) for entry in details]
    return rows


def floor_sentences(target: TargetReport, verbose: bool = False) -> list[str]:
    """What it needs of the system, the manylinux tag that it keeps to, what it needs of Python."""
    view = target.floors
    if view is None:
        return []
    versions = mappings(view, "versions")
    return [*_needs(view, versions, verbose), *_manylinux(view), *_python(view)]


def _needs(
    view: Mapping[str, object], versions: Sequence[Mapping[str, object]], verbose: bool
) -> list[str]:
    """``glibc 2.14, libstdc++ of GCC 5.1: Ubuntu 18.04, Debian 11, RHEL 8 or newer``."""
    parts = [_glibc(entry) for entry in versions if entry.get("family") == "GLIBC"]
    parts += _libstdcxx(view, [e for e in versions if e.get("family") in _LIBSTDCXX])
    if not parts:
        return []
    systems = [escape(name) for name in strings_of(view, "systems")]
    systems = systems if verbose else systems[:_SYSTEMS]
    where = f": {', '.join(systems)} or newer" if systems else ""
    return [", ".join(parts) + where]


def _glibc(entry: Mapping[str, object]) -> str:
    release, here = entry.get("release"), entry.get("here")
    text = f"glibc {escape(str(release))}" if release else escape(str(entry.get("needs")))
    if isinstance(here, str) and entry.get("met") is False:
        text += f" (here {escape(here.partition('_')[2])})"
    return text


def _libstdcxx(view: Mapping[str, object], entries: Sequence[Mapping[str, object]]) -> list[str]:
    releases = [str(e["release"]) for e in entries if isinstance(e.get("release"), str)]
    parts = []
    if releases:
        parts.append(f"libstdc++ of GCC {escape(max(releases, key=natural_key))}")
    # A version that no known compiler brings, or that is not here, is named itself.
    for entry in entries:
        here = entry.get("here")
        if entry.get("met") is False:
            parts.append(f"{escape(str(entry['needs']))} (here {escape(str(here))})")
        elif not isinstance(entry.get("release"), str):
            parts.append(escape(str(entry["needs"])))
    unversioned = view.get("unversioned")
    if isinstance(unversioned, Mapping) and isinstance(unversioned.get("needs"), str):
        release = unversioned.get("release")
        name = f"GCC {escape(str(release))}" if release else escape(str(unversioned["needs"]))
        parts.append(f"{name} for names without a version")
    return parts


def _manylinux(view: Mapping[str, object]) -> list[str]:
    satisfied, claimed = view.get("manylinux"), view.get("claimed")
    if not isinstance(satisfied, Mapping):
        return []
    tag = str(satisfied.get("tag"))
    text = f"{escape(tag)} by its symbol versions"
    barred = strings_of(satisfied, "names_forbidden")
    if barred:
        text += f", but for {counted(len(barred), 'name')} that the policy bars"
    if isinstance(claimed, Mapping):
        tags = [escape(name) for name in strings_of(claimed, "platform_tags")]
        if tags and tag not in tags:
            text += f"; its wheel is tagged {', '.join(tags)}"
    return [text]


def _python(view: Mapping[str, object]) -> list[str]:
    stable = view.get("stable_abi")
    if not isinstance(stable, Mapping):
        return []
    outside = strings_of(stable, "outside")
    python = stable.get("python")
    text = f"Python {escape(str(python))} or newer" if python else "no name of Python"
    if outside:
        return [f"Python's stable ABI: not kept to ({counted(len(outside), 'name')} outside it)"]
    return [f"Python's stable ABI: {text}"]


def _detail(entry: Mapping[str, object]) -> str:
    text = f"{escape(str(entry.get('needs')))} of {escape(str(entry.get('library')))}"
    if isinstance(entry.get("brought_by"), str):
        text += f", brought by {escape(str(entry['brought_by']))}"
    if isinstance(entry.get("here"), str):
        text += f"; here {escape(str(entry['here']))} in {escape(str(entry.get('path')))}"
    return text
