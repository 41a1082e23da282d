"""Since when the NVIDIA driver and libstdc++ have a name: two tables of names by version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from fa_forensics.facts.tables import read_table


def driver_since(name: str) -> str | None:
    """The CUDA version ("12.0") whose driver first exports a function; None for unknown names."""
    return _table("cuda_driver_api.json").get(name)


def libstdcxx_since(name: str) -> str | None:
    """The symbol version ("GLIBCXX_3.4.26", "CXXABI_1.3.13") of a libstdc++ name.

    None for names that are older than GLIBCXX_3.4.21, newer than the table, or none of
    libstdc++.
    """
    version = _table("libstdcxx_names.json").get(name)
    if version is None and re.match(r"_ZN?[KVT]*[ISV]*NSt7__cxx11|_ZNK?St7__cxx11", name):
        version = "3.4.21"
    if version is not None:
        return f"GLIBCXX_{version}"
    abi = _cxxabi().get(name)
    return None if abi is None else f"CXXABI_{abi}"


@lru_cache(maxsize=1)
def _cxxabi() -> Mapping[str, str]:
    rows: dict[str, list[str]] = read_table("libstdcxx_names.json")["cxxabi"]
    return {name: version for version, names in rows.items() for name in names}


@lru_cache(maxsize=2)
def _table(file: str) -> Mapping[str, str]:
    since: dict[str, list[str]] = read_table(file)["since"]
    return {name: version for version, names in since.items() for name in names}


def debian_package(soname: str) -> str | None:
    """The Debian package that brings a library of the system; None for unknown ones."""
    return _packages().get(soname)


@lru_cache(maxsize=1)
def _packages() -> Mapping[str, str]:
    rows: dict[str, str] = read_table("system_packages.json")["debian"]
    return rows
