"""What glibc's loader refuses in a file's headers, before it looks at any symbol.

Source: glibc 2.36, ``elf/dl-load.c`` (``open_verify``, ``_dl_map_object_from_fd``); the
texts are its own.
"""

from __future__ import annotations

import struct

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.image import ET_DYN, ET_EXEC, PT_DYNAMIC, PT_LOAD, ElfImage

DF_1_NOOPEN, DF_1_PIE = 0x40, 0x0800_0000
#: System V and GNU/Linux: the only values of EI_OSABI that glibc takes.
_OS_ABIS = (0, 3)
#: Elf64_Phdr has 56 bytes.
_PHENTSIZE = 56
#: The smallest page of any machine that torch runs on; larger ones refuse more files.
SMALLEST_PAGE = 4096
NOT_PAGE_ALIGNED = "ELF load command address/offset not page-aligned"


def loader_refusal(dynamic: DynamicObject) -> str | None:
    """The loader's text for a file that dlopen refuses by its headers, or None.

    The path that ld.so puts before the text is left out. A file for another machine or
    class is not judged here: the loader passes over it.
    """
    image = dynamic.image
    return _header_refusal(image) or _type_refusal(image, dynamic)


def _header_refusal(image: ElfImage) -> str | None:
    ident = image.read(0, 16)
    if ident[6] != 1:
        return "ELF file version ident does not match current one"
    if image.osabi not in _OS_ABIS:
        return "ELF file OS ABI invalid"
    if image.osabi == 0 and image.abi_version != 0:
        return "ELF file ABI version invalid"
    if any(ident[9:16]):
        return "nonzero padding in e_ident"
    if struct.unpack_from("<I", image.data, 20)[0] != 1:
        return "ELF file version does not match current one"
    if image.type not in (ET_DYN, ET_EXEC):
        return "only ET_DYN and ET_EXEC can be loaded"
    if image.supported and image.program_header_size != _PHENTSIZE:
        return "ELF file's phentsize not the expected size"
    return None


def _type_refusal(image: ElfImage, dynamic: DynamicObject) -> str | None:
    loads = [segment for segment in image.segments if segment.type == PT_LOAD]
    if any((segment.address - segment.offset) % SMALLEST_PAGE for segment in loads):
        return NOT_PAGE_ALIGNED
    if not loads:
        return "object file has no loadable segments"
    if image.type == ET_EXEC:
        return "cannot dynamically load executable"
    if not any(segment.type == PT_DYNAMIC for segment in image.segments):
        return "object file has no dynamic section"
    if dynamic.flags_1 & DF_1_PIE:
        return "cannot dynamically load position-independent executable"
    if dynamic.flags_1 & DF_1_NOOPEN:
        return "shared object cannot be dlopen()ed"
    return None
