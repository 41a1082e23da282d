"""The torch of an environment, read from its files; torch is never imported.

Its version comes from ``torch/version.py``, its requirements from its dist-info, its
std::string flavour from the names that its libc10.so really defines.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import (
    Distribution,
    editable_mapping,
    info_directories,
    info_name,
    read_distribution,
)
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

CXX11, PRE_CXX11, UNKNOWN = "cxx11", "pre-cxx11", "unknown"

#: How the versions of torch end that PyTorch does not publish: a build from source has the commit
#: behind a0 or +git (torch's tools/generate_torch_version.py), a container's of NVIDIA .nvYY.MM.
_OWN_BUILD = lazily(r"a0\+(?:git)?[0-9a-f]{7,}|\+git[0-9a-f]*$|\.nv\d")
#: The same and PyTorch's own nightlies and release candidates.
_UNRELEASED = lazily(r"\d(?:a|b|rc)\d|\.dev\d|\+git")

_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, shndx, value, size

#: libc10 defines about 4,000 names; a table larger than this (bytes) is not believed.
_MAX_TABLE = 1 << 26

#: Functions of namespace c10 itself: c10::f(), c10::C::f() const. What others' headers
#: left in the library (std::, caffe2::, at::) says nothing about how it was built.
_OWN_PREFIXES = (b"_ZN3c10", b"_ZNK3c10")

#: std::string of the newer flavour, in a parameter or as a return value's ABI tag.
_CXX11_MARKS = (b"7__cxx11", b"B5cxx11")

_TOKEN = re.compile(rb"Ss|S[0-9A-Z]*_|S[tabiod]|T[0-9]*_|L[a-z]n?\d+E|A\d*_|(\d{1,6})|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Torch:
    """An installed torch.

    ``version`` is the whole text ("2.4.0+cu121", "2.6.0a0+ecf3bae40a.nv25.01"),
    ``release`` its leading N.N.N; ``cuda`` the toolkit it was built with, None for a build
    without CUDA. ``cxx11_evidence`` names the file and a symbol that shows the flavour.
    """

    path: str
    version: str
    release: str
    cuda: str | None
    hip: str | None
    git_version: str | None
    lib_dir: str
    has_cuda_libs: bool
    cxx11_abi: str
    cxx11_evidence: str
    requires: tuple[str, ...]
    editable: bool


@dataclass(frozen=True, slots=True)
class TorchSearch:
    """What looking for torch gave: the one that ``import torch`` takes, and all else seen.

    ``problem`` is one sentence when there is none or it is not whole.
    """

    torch: Torch | None
    problem: str | None
    others: tuple[str, ...]


def find_torch(site_dirs: Sequence[str], where: str) -> TorchSearch:
    """The first torch on the path. ``where`` names the environment in the messages."""
    packages = [os.path.join(site, "torch") for site in site_dirs]
    packages = [path for path in packages if os.path.isdir(path)]
    for site in site_dirs:
        mapped = editable_mapping(site).get("torch")
        if mapped and os.path.isdir(mapped):
            packages.append(mapped)
    # A directory without __init__.py is a namespace package: Python takes it last.
    packages.sort(key=lambda path: not os.path.isfile(os.path.join(path, "__init__.py")))
    whole = [p for p in packages if os.path.lexists(os.path.join(p, "version.py"))]
    if not packages:
        looked = ", ".join(site_dirs) or "no directory of packages exists"
        return TorchSearch(None, f"no torch in {where}; looked in: {looked}", ())
    first = packages[0]
    if first not in whole:
        problem = f"torch/version.py is missing in {os.path.dirname(first)}: "
        problem += "what is there is no whole torch"
        return TorchSearch(None, problem, tuple(packages[1:]))
    torch, problem_or_none = read_torch(first, site_dirs)
    return TorchSearch(torch, problem_or_none, tuple(packages[1:]))


def read_torch(path: str, site_dirs: Sequence[str] = ()) -> tuple[Torch | None, str | None]:
    """(torch, problem) of one ``torch`` package directory that has a version.py."""
    fields, unreadable = _version_file(os.path.join(path, "version.py"))
    version = fields.get("__version__")
    if not version:
        reason = unreadable or "it assigns no __version__"
        return None, f"cannot tell the version of {path} from its version.py: {reason}"
    lib_dir = os.path.join(path, "lib")
    library = os.path.join(lib_dir, "libc10.so")
    abi, evidence, problem = flavour_of(library)
    metadata = _metadata_of(path, version, site_dirs)
    torch = Torch(
        path=path,
        version=version,
        release=release_of(version),
        cuda=fields.get("cuda"),
        hip=fields.get("hip"),
        git_version=fields.get("git_version"),
        lib_dir=lib_dir,
        has_cuda_libs=os.path.exists(os.path.join(lib_dir, "libc10_cuda.so")),
        cxx11_abi=abi,
        cxx11_evidence=evidence,
        requires=metadata.requires if metadata else (),
        editable=_is_editable(path, metadata, site_dirs),
    )
    return torch, problem


def is_published(version: str) -> bool:
    """Whether a version text is that of a published release.

    "2.4.0+cu121" is; "2.6.0a0+ecf3bae40a.nv25.01" (NGC), "2.9.0.dev20250801" (nightly)
    and "2.5.1+gita8d6afb" (built from source) are not.
    """
    number, _, local = version.partition("+")
    return re.fullmatch(r"\d+(\.\d+)*(\.post\d+)?", number) is not None and (
        re.match(r"git|[0-9a-f]{7,}", local) is None
    )


def is_own_build(version: str) -> bool:
    """Whether a version is that of a build from source, of NVIDIA's and AMD's containers too.

    "2.6.0a0+ecf3bae40a.nv25.01", "2.4.0a0+git1234567" and "2.5.1+gita8d6afb" are; a nightly
    ("2.9.0.dev20250801") is PyTorch's own.
    """
    return _OWN_BUILD.search(version) is not None


def is_unreleased(version: str) -> bool:
    """Whether a version is one that never was a release's: a pre-release's, nightly's, checkout's.

    "2.6.0a0+ecf3bae40a.nv25.01", "2.9.0.dev20250701", "2.5.0rc1" and "2.5.1+gita8d6afb" are.
    """
    return _UNRELEASED.search(version) is not None


def release_of(version: str) -> str:
    """The leading N.N.N of a version: "2.6.0a0+git" gives "2.6.0", "2.4" gives "2.4.0"."""
    found = re.match(r"\d+\.\d+(?:\.\d+)?", version)
    if not found:
        return version
    return found.group(0) if found.group(0).count(".") == 2 else found.group(0) + ".0"


def flavour_of(library: str) -> tuple[str, str, str | None]:
    """(flavour, evidence, problem) of a libc10.so, judged on the c10 names it defines."""
    if not os.path.exists(library):
        return UNKNOWN, "", f"{library} is missing: this torch is not whole"
    try:
        with ElfImage(library) as image:
            names = _defined_c10_names(image)
    except ForensicsError as error:
        return UNKNOWN, "", error.message
    newer = [name for name in names if any(mark in name for mark in _CXX11_MARKS)]
    if newer:
        return CXX11, _evidence(library, newer), None
    older = [name for name in names if b"Ss" in name and _has_string_substitution(name)]
    if older:
        return PRE_CXX11, _evidence(library, older), None
    if not names:
        return UNKNOWN, "", f"{library} has no readable table of c10 names"
    return UNKNOWN, f"{library} defines {len(names)} c10 names, none with a std::string", None


def _evidence(library: str, names: list[bytes]) -> str:
    # c10::Error's constructor takes a string in every release: the name people know.
    shown = min(names, key=lambda name: (not name.startswith(b"_ZN3c105ErrorC"), len(name), name))
    return f"{library} defines {shown.decode('ascii', 'replace')}"


def _defined_c10_names(image: ElfImage) -> list[bytes]:
    """Names of namespace c10 that the dynamic symbol table defines (st_shndx not 0)."""
    symbols, strings = image.section(".dynsym"), image.section(".dynstr")
    if symbols is None or strings is None or max(symbols.size, strings.size) > _MAX_TABLE:
        return []
    table = image.read(symbols.offset, symbols.size)
    text = image.read(strings.offset, strings.size)
    names = []
    for name, _info, _other, section, _value, _size in _SYMBOL.iter_unpack(
        table[: len(table) - len(table) % _SYMBOL.size]
    ):
        if section and text.startswith(_OWN_PREFIXES, name):
            end = text.find(b"\0", name)
            names.append(text[name : end if end >= 0 else len(text)])
    return names


def _has_string_substitution(name: bytes) -> bool:
    """Whether ``Ss`` (std::string before cxx11) stands in a mangled name outside identifiers.

    Itanium C++ ABI 5.1: an identifier is its length and that many characters; the digits
    of substitutions, template parameters, literals and array types are no lengths.
    """
    position = 2
    while token := _TOKEN.match(name, position):
        if token.group() == b"Ss":
            return True
        position = token.end() + (int(token.group(1)) if token.group(1) else 0)
    return False


def _version_file(path: str) -> tuple[dict[str, str], str | None]:
    """The string constants that version.py assigns (None ones left out), or why not."""
    try:
        text = read_bounded(path, 1 << 16).decode("utf-8", "replace")
    except OSError as error:
        return {}, error.strerror or "it cannot be read"
    assigned = re.findall(r"^(\w+)(?:\s*:[^=\n]*)?\s*=\s*(['\"])(.*?)\2", text, re.MULTILINE)
    return {name: value for name, _quote, value in assigned}, None


def _metadata_of(path: str, version: str, site_dirs: Sequence[str]) -> Distribution | None:
    """The dist-info of this torch: beside it, else (editable) anywhere on the path."""
    first: Distribution | None = None
    for site in dict.fromkeys((os.path.dirname(path), *site_dirs)):
        for info in info_directories(site):
            if info_name(info) != "torch":
                continue
            found = read_distribution(info)
            if found and _same_version(found.version, version):
                return found
            first = first or found
    return first


def _same_version(recorded: str, version: str) -> bool:
    """Wheels on PyPI record "2.4.0" and say "2.4.0+cu121" in version.py."""
    return recorded == version or recorded == version.partition("+")[0]


def _is_editable(path: str, metadata: Distribution | None, site_dirs: Sequence[str]) -> bool:
    if metadata and metadata.editable:
        return True
    parent = os.path.dirname(path)
    if any(mapped == path for site in site_dirs for mapped in editable_mapping(site).values()):
        return True
    return os.path.isfile(os.path.join(parent, "setup.py"))
