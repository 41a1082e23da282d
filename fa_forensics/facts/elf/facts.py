"""The facts of one ELF file as plain values: what ``inspect`` shows and the rules judge."""

from __future__ import annotations

import os
import re

from fa_forensics.facts.elf.build_id import build_id
from fa_forensics.facts.elf.dynamic import (
    BIND_NAMES,
    SHN_UNDEF,
    VISIBILITY_NAMES,
    DynamicObject,
    Symbol,
)
from fa_forensics.facts.elf.image import (
    EM_AARCH64,
    EM_X86_64,
    PT_LOAD,
    PT_TLS,
    ElfImage,
)
from fa_forensics.facts.elf.refusal import loader_refusal
from fa_forensics.records import dataclass

_TYPES = {1: "relocatable", 2: "executable", 3: "shared object", 4: "core dump"}

#: CPython names of extension files: PEP 3149 (``cpython-311-x86_64-linux-gnu``) and the
#: stable ABI (``abi3``).
_TAG = re.compile(r"\.(?P<abi>abi3|abi3t|(?:cpython|pypy\d*)-[^.]+)\.so$")


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """What one ELF file says of itself. Sizes are in bytes; symbols are in table order.

    ``expected_size`` is what all its headers speak of, ``loaded_size`` what the loader maps.
    ``refusal`` is the loader's text where it refuses the file by its headers alone. ``segments``
    are (offset, address, alignment) of what the loader maps.
    """

    path: str
    size: int
    expected_size: int
    loaded_size: int
    elf_class: int
    machine: str
    type: str
    osabi: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    build_id: str | None
    compilers: tuple[str, ...]
    module_name: str | None
    python_tag: str | None
    init_modules: tuple[str, ...]
    executable_stack: bool | None
    tls_size: int
    static_tls: bool
    has_section_headers: bool
    has_dynamic: bool
    symbols: tuple[Symbol, ...]
    versions_needed: tuple[tuple[str, str, bool], ...]
    problems: tuple[str, ...]
    refusal: str | None = None
    segments: tuple[tuple[int, int, int], ...] = ()

    @property
    def cut_short(self) -> bool:
        """Whether bytes that the loader needs are gone, not only section headers."""
        return self.loaded_size > self.size

    @property
    def undefined(self) -> tuple[Symbol, ...]:
        """The undefined dynamic symbols, weak ones included, as ``nm -D -u`` lists them."""
        return tuple(s for s in self.symbols if s.shndx == SHN_UNDEF and s.name)

    @property
    def defined(self) -> tuple[Symbol, ...]:
        """The dynamic symbols that this file defines."""
        return tuple(s for s in self.symbols if s.shndx != SHN_UNDEF and s.name)


def machine_name(number: int) -> str:
    """The usual name of an ELF machine; ``machine 62`` style for one nobody has named."""
    if number == EM_X86_64:
        return "x86_64"
    if number == EM_AARCH64:
        return "aarch64"
    # The other 200 names are pyelftools' table; a foreign machine is worth its 25 ms.
    from elftools.elf.enums import ENUM_E_MACHINE

    for name, value in ENUM_E_MACHINE.items():
        if value == number and isinstance(name, str) and name.startswith("EM_"):
            return name[3:].lower()
    return f"machine {number}"


def read_facts(dynamic: DynamicObject) -> ElfFacts:
    """Collect the facts of an opened object. Raises nothing: damage is in ``problems``."""
    image = dynamic.image
    symbols = tuple(dynamic.symbols())
    expected_size = image.expected_size()
    if expected_size > image.size:
        image.problems.append(
            f"cut short: its headers describe {expected_size:,} bytes, the file has {image.size:,}"
        )
    module_name, python_tag = module_of(image.path)
    tls = next((s for s in image.segments if s.type == PT_TLS), None)
    return ElfFacts(
        path=image.path,
        size=image.size,
        expected_size=expected_size,
        loaded_size=image.loaded_size(),
        elf_class=64 if image.is_64bit else 32,
        machine=machine_name(image.machine),
        type=_TYPES.get(image.type, f"type {image.type}"),
        osabi=image.osabi,
        soname=dynamic.soname,
        needed=dynamic.needed,
        rpath=dynamic.rpath,
        runpath=dynamic.runpath,
        build_id=build_id(image),
        compilers=_compilers(image),
        module_name=module_name,
        python_tag=python_tag,
        init_modules=tuple(
            s.name[7:].decode("utf-8", "backslashreplace")
            for s in symbols
            if s.shndx != SHN_UNDEF and s.name.startswith(b"PyInit_")
        ),
        executable_stack=image.executable_stack,
        tls_size=0 if tls is None else tls.memory_size,
        static_tls=dynamic.static_tls,
        has_section_headers=bool(image.sections),
        has_dynamic=dynamic.has_dynamic,
        symbols=symbols,
        versions_needed=tuple(sorted(set(dynamic.verneed.values()))),
        problems=tuple(dict.fromkeys(image.problems)),
        refusal=loader_refusal(dynamic) if image.supported else None,
        segments=tuple((s.offset, s.address, s.align) for s in image.segments if s.type == PT_LOAD),
    )


def module_of(path: str) -> tuple[str | None, str | None]:
    """(module name, Python tag) that a file name promises: ``("_C", "abi3")``.

    The tag is ``cp311``, ``abi3``, ``pp310`` or None for a plain ``.so``; source of the
    naming: PEP 3149 and ``importlib.machinery.EXTENSION_SUFFIXES``.
    """
    name = os.path.basename(path)
    match = _TAG.search(name)
    if match is None:
        return (name[:-3] if name.endswith(".so") else None), None
    abi = match["abi"]
    if abi.startswith("cpython-"):
        abi = "cp" + abi.split("-")[1]
    elif abi.startswith("pypy"):
        abi = "pp" + abi[4:].split("-")[0]
    return name[: match.start()], abi


def _compilers(image: ElfImage) -> tuple[str, ...]:
    section = image.section(".comment")
    if section is None:
        return ()
    raw = image.read(section.offset, min(section.size, 65_536))
    texts = (part.decode("utf-8", "backslashreplace").strip() for part in raw.split(b"\0"))
    return tuple(dict.fromkeys(text for text in texts if text))


def bind_name(symbol: Symbol) -> str:
    """STB_* of a symbol in words: global, weak, unique, local."""
    return BIND_NAMES.get(symbol.bind, f"bind {symbol.bind}")


def visibility_name(symbol: Symbol) -> str:
    """STV_* of a symbol in words: default, hidden, protected, internal."""
    return VISIBILITY_NAMES[symbol.visibility]
