"""Which release of a package has which module, name and parameter: ``data/python_api.json``.

And which release of a package belongs to which torch: ``data/torch_pairs.json``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.flash_limits import release_key
from fa_forensics.facts.flash_names import Span, spans_of
from fa_forensics.facts.tables import read_table


class Call(NamedTuple):
    """A function of a compiled module: how many arguments releases take, and callers pass."""

    package: str
    takes: Mapping[int, Span]
    callers: Mapping[str, Mapping[int, Span]]


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("python_api.json")
    return table


@lru_cache(maxsize=1)
def _pairs() -> Mapping[str, Mapping[str, str]]:
    table = read_table("torch_pairs.json")
    by_notes = table["by_notes"]
    return {name: {**by_notes.get(name, {}), **rows} for name, rows in table["packages"].items()}


def distribution_with(module: str) -> str | None:
    """The distribution on record that a module belongs to: ``mamba-ssm`` for ``mamba_ssm.ops``."""
    name = module.split(".")[0].replace("_", "-")
    return name if name in _table()["packages"] else None


def releases_on_record(package: str) -> tuple[str, str]:
    """The first and the last release of the table."""
    row = _table()["packages"][package]
    return row["first"], row["last"]


def api_spans(package: str, module: str, name: str = "") -> tuple[Span, ...]:
    """The releases that have a name in a module, or a module; () for what is not on record.

    What all releases have is not on record, nor is a name that is as old as its module.
    """
    row = _table()["packages"].get(package)
    if row is None:
        return ()
    if name and (found := _among(row["names"].get(module, {}), name)):
        return found
    return _among(row["modules"], f"{module}.{name}" if name else module)


def api_parameter(package: str, function: str, parameter: str) -> tuple[Span, ...]:
    """The releases in which a function has a parameter; () for what is not on record."""
    row = _table()["packages"].get(package, {})
    text = row.get("parameters", {}).get(function, {}).get(parameter)
    return spans_of(text) if text else ()


def packages_with_function(function: str, parameter: str) -> tuple[str, ...]:
    """The packages in whose function of that name a parameter came or went."""
    rows = _table()["packages"].items()
    return tuple(
        package for package, row in rows if parameter in row.get("parameters", {}).get(function, {})
    )


def call_of(function: str) -> Call | None:
    """What is on record of a compiled function."""
    row = _table()["calls"].get(function)
    if row is None:
        return None
    callers = {package: _by_count(spans) for package, spans in row["callers"].items()}
    return Call(row["package"], _by_count(row["takes"]), callers)


def torch_of(package: str, release: str) -> str | None:
    """The torch that a release of a package was built for: 2.2.1 for torchvision 0.17.1."""
    if package in _same_minor():
        numbers = re.match(r"(\d{1,2}\.\d{1,3})(?:\.(\d{1,9}))?", release)
        # 2.3.110 is Intel's count; others have torch's own.
        return numbers and f"{numbers[1]}.{numbers[2] if len(numbers[2] or '') == 1 else 0}"
    wanted = release.partition("+")[0]
    asked: dict[str, str] = read_table("torch_pairs.json")["asked_by"].get(package, {})
    return _pairs().get(package, {}).get(wanted) or asked.get(wanted)


def torches_of(package: str) -> tuple[str, ...]:
    """The torch of each release of a package that was built for one, a release an entry."""
    return tuple(_pairs().get(package, {}).values())


@lru_cache(maxsize=1)
def _same_minor() -> tuple[str, ...]:
    return tuple(read_table("torch_pairs.json")["same_minor"])


def partner_of(package: str, torch: str) -> str | None:
    """The last release of a package that was built for a release of torch; None for none.

    ``2.4.*`` where any release of that minor version is.
    """
    wanted = torch.partition("+")[0]
    if package in _same_minor():
        return ".".join([*wanted.split(".")[:2], "*"])
    by_minor = read_table("torch_pairs.json")["by_minor"].get(package)
    if by_minor is not None:
        release: str | None = by_minor.get(".".join(wanted.split(".")[:2]))
        return release
    found = [release for release, of in _pairs().get(package, {}).items() if of == wanted]
    return found[-1] if found else None


def pair_for(package: str, torch: str, python: str | None) -> tuple[str, str] | None:
    """(release, torch) for a torch, or for the next that pip can get for a Python; None for none.

    xformers for torch 2.0.0 has no file for Python 3.11, and the next one is for torch 2.0.1.
    """
    last = read_table("torch_pairs.json")["last_python"].get(package, {})
    wanted = torch.partition("+")[0]
    if release_key(wanted) is None:
        return None
    here = ".".join((python or "").split(".")[:2])
    found: tuple[str, str] | None = None
    for release, of in _pairs().get(package, {}).items():
        if is_older(of, wanted) or (found is not None and of != found[1]):
            continue
        if release in last and here and is_older(last[release] + ".0", here + ".0"):
            continue
        found = (release, of)
    return found


def ended_at(package: str) -> tuple[str, str] | None:
    """(last release, torch) of a package that gets no more releases; None for all others."""
    row = read_table("torch_pairs.json")["ended"].get(package)
    return None if row is None else (row["last"], row["torch"])


def any_later(package: str) -> tuple[str, str] | None:
    """(release, torch) from which on a package takes any later torch; None where none does."""
    row = read_table("torch_pairs.json")["any_later"].get(package)
    return None if row is None else (row["release"], row["torch"])


def own_check(package: str, release: str) -> tuple[str, ...] | None:
    """The releases of torch with which a package's release loads its compiled code.

    By the package's own comparison at import; () for a release that lists none, None for a
    release or a package whose comparison is not on record.
    """
    row = read_table("torch_pairs.json")["own_check"].get(package, {}).get("releases", {})
    found = row.get(release.partition("+")[0])
    return None if found is None else tuple(found)


def passes_check(package: str, torch: str) -> str:
    """The release of a package that loads its compiled code with a torch: ``==0.13.0``; "".

    ``>=0.17.0`` where any release from one on does.
    """
    row = read_table("torch_pairs.json")["own_check"].get(package)
    wanted = torch.partition("+")[0]
    if row is None or release_key(wanted) is None:
        return ""
    found = [release for release, of in row["releases"].items() if wanted in of]
    if found:
        return f"=={found[-1]}"
    if not is_older(wanted, row["open"]["torch"]):
        return f">={row['open']['release']}"
    if ".".join(wanted.split(".")[:2]) in row["before"]["torch"]:
        return f"=={row['before']['release']}"
    return ""


def exists_since(package: str) -> str | None:
    """The first release of torch that a package exists for; None where that is not on record."""
    since: str | None = read_table("torch_pairs.json")["since"].get(package)
    return since


def first_asked(package: str) -> str:
    """The least torch that a release on record of a package asks for; "" where none is."""
    rows: dict[str, str] = read_table("torch_pairs.json")["asked_by"].get(package, {})
    return min(rows.values(), key=lambda r: tuple(map(int, r.split("."))), default="")


def has_partners(package: str | None) -> bool:
    """Whether each release of a package is built for one release of torch."""
    return package in _pairs() or package in _same_minor()


def unpinned_torch(package: str, release: str) -> str | None:
    """The torch that a release was built for and, by its metadata, takes newer ones than: 2.1.2."""
    rows: dict[str, str] = read_table("torch_pairs.json")["by_notes"].get(package, {})
    return rows.get(release)


def brings_torch(package: str | None) -> bool:
    """Whether each release of a package asks for one torch, so that pip installs that with it."""
    return package in _pairs()


def is_before_pairs(package: str, torch: str) -> bool:
    """Whether a torch is older than all that releases of a package are on record for."""
    torches = _pairs().get(package, {}).values()
    return bool(torches) and all(is_older(torch.partition("+")[0], of) for of in torches)


def _by_count(spans: Mapping[str, int]) -> dict[int, Span]:
    return {count: spans_of(text)[0] for text, count in spans.items()}


def _among(groups: Mapping[str, str], name: str) -> tuple[Span, ...]:
    return next((spans_of(text) for text, names in groups.items() if name in names.split()), ())


def is_older(one: str, other: str) -> bool:
    """Whether a release is older than another; False for what is no release."""
    mine, its = release_key(one), release_key(other)
    return mine is not None and its is not None and mine < its
