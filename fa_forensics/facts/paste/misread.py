"""Names of libraries and of symbol versions that were read off a picture: 1 for l, O for 0."""

from __future__ import annotations

from fa_forensics.patterns import lazily

_VERSION = lazily(
    r"(?P<name>G[L1Il|][1Il|]BC(?P<xx>XX)?|CXXAB[1Il|]|GCC)_(?P<number>[\dlIOo.]{1,20})"
)
_LIBRARY = lazily(
    r"(?P<lib>[1Il]ib(?=[A-Za-z])|)(?P<name>[^/]{1,200}?\.so)(?P<number>(?:\.[\dlIOo]{1,9}){0,4})"
)
#: Names of NCCL, which titles of reports are written with in small letters.
_NCCL = {
    name.lower(): name
    for name in ("ncclCommRegister", "ncclCommDeregister", "ncclMemAlloc", "ncclMemFree",
                 "ncclCommSplit", "ncclCommInitRankConfig", "ncclCommInitRankScalable",
                 "ncclCommWindowRegister", "ncclCommWindowDeregister", "ncclCommShrink",
                 "ncclCommResume", "ncclCommFinalize", "ncclRedOpCreatePreMulSum",
                 "ncclGetLastError", "ncclGroupSimulateEnd", "ncclCommGetAsyncError")
}  # fmt: skip
_DIGITS = str.maketrans("lIOo", "1100")


def name_meant(text: str) -> str:
    """A symbol as it was meant: ``ncclcommregister`` is ncclCommRegister; any other as it is."""
    return _NCCL.get(text, text)


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
