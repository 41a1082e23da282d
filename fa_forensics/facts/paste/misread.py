"""Names as they were meant: read off a picture (1 for l, O for 0), or in small letters."""

from __future__ import annotations

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

_VERSION = lazily(
    r"(?P<name>G[L1Il|][1Il|]BC(?P<xx>XX)?|CXXAB[1Il|]|GCC)_(?P<number>[\dlIOo.]{1,20})"
)
_LIBRARY = lazily(
    r"(?P<lib>[1Il]ib(?=[A-Za-z])|)(?P<name>[^/]{1,200}?\.so)(?P<number>(?:\.[\dlIOo]{1,9}){0,4})"
)
_DIGITS = str.maketrans("lIOo", "1100")


def name_meant(text: str) -> str:
    """A symbol as it was meant: ``ncclcommregister`` is ncclCommRegister; any other as it is."""
    if not (text.startswith("nccl") and text.islower()):
        return text
    names: list[str] = read_table("cuda_names.json")["in_titles"]
    return next((name for name in names if name.lower() == text), text)


def version_meant(text: str) -> str:
    """A symbol version as it was meant: ``GL1BC_2.34`` is GLIBC_2.34; any other as it is."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return text
    name = found["name"]
    if name[1:3] != "CC" and not name.startswith("CXX"):
        name = "GLIBCXX" if found["xx"] else "GLIBC"
    elif name.startswith("CXX"):
        name = "CXXABI"
    return f"{name}_{found['number'].translate(_DIGITS)}"


def library_meant(text: str) -> str:
    """A library's name as it was meant: ``1ibcudart.so.l1.0`` is libcudart.so.11.0."""
    folder, slash, name = text.rpartition("/")
    found = _LIBRARY.fullmatch(name)
    if found is None:
        return text
    beginning = "lib" if found["lib"] else ""
    number = found["number"].translate(_DIGITS)
    return f"{folder}{slash}{beginning}{found['name']}{number}"
