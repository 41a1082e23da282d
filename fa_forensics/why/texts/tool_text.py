"""Answers to lines of tools: a linker's ``undefined reference``, and ldd, nm and readelf."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import (
    OWN,
    PYTHON,
    is_cuda,
    is_torch,
    libraries_of,
    owner_of_library,
    title_of,
)
from fa_forensics.facts.symbol_text import parse_symbol
from fa_forensics.facts.system_releases import CXXABI, GLIBCXX, family_of, gcc_of, number
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR, NEWER, NONE, UNKNOWN
from fa_forensics.why.other_names.own import device_link
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.libraries.import_first import import_order
from fa_forensics.why.texts.libraries.linked_glibc import linkers_glibc, newer_than_any
from fa_forensics.why.texts.libraries.linked_torch import (
    in_every_torch,
    partner_in_cxx,
    torch_not_on_the_line,
)
from fa_forensics.why.texts.libraries.missing_library import missing_library
from fa_forensics.why.texts.symbol_text import undefined_symbol
from fa_forensics.why.told import ALL_CXX11
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.commands import FLAVOUR_HERE, THIS_FLAVOUR

_GLIBC = lazily(r"GLIBC_(\d{1,2})\.(\d{1,3})(?:\.\d{1,2})?")
_HIP = lazily(r"(?<![a-z])hip(?![a-z])|rocm|\bgfx\d", re.IGNORECASE)


def linker_undefined(seen: Seen) -> Answer:
    """``undefined reference to `...'``: the linker, at build time, not the loader."""
    answer = _by_the_linker(seen)
    if seen.mention.detail.get("os") == "Windows" and answer.owner == OWN:
        name = (answer.demangled or answer.symbol or "").partition("(")[0].rpartition("::")[2]
        return replace(answer, help=(f'findstr /s /n "{name}" *.h *.hpp *.cuh *.cpp *.cu',))
    # The file that is linked does not exist yet: there is nothing to be inspected.
    kept = tuple(text for text in answer.help if "/path/to/the/failing.so" not in text)
    return replace(answer, help=kept) if kept else answer


def _by_the_linker(seen: Seen) -> Answer:
    answer = undefined_symbol(seen)
    if answer.kind in ("unrecognised", "rocm") or answer.owner is None:
        return answer
    if "nvlink" in seen.mention.detail.get("linker", ""):
        return _device_linker(answer)
    if not is_torch(answer.owner):
        return _not_on_the_line(seen, answer)
    everywhere = in_every_torch(seen, answer)
    if everywhere:
        return torch_not_on_the_line(seen, answer, _is_rocm(seen))
    if answer.direction == FLAVOUR:
        return _linked_in_two_flavours(seen, answer)
    libraries = " ".join("-l" + name[3:].split(".so")[0] for name in libraries_of(answer.owner)[:1])
    note = (
        "This is the linker's message, so headers and libraries of two torches meet in the build: "
        "the headers are of one, the libraries on the link line of another. Where it misses all of "
        f"torch's names, the libraries are not on the link line ({libraries}); "
        "torch.utils.cpp_extension puts them there."
    )
    return partner_in_cxx(replace(answer, notes=(note, *answer.notes)), seen)


def _linked_in_two_flavours(seen: Seen, answer: Answer) -> Answer:
    """What was compiled and the torch on the link line have different std::string flavours."""
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    own, other = ("cxx11", "pre-cxx11") if new else ("pre-cxx11", "cxx11")
    note = (
        f"This is the linker's message: the code was compiled in the {own} flavour, and the torch "
        f"on the link line is most likely {other}. Its build has to set -D_GLIBCXX_USE_CXX11_ABI="
        f"{0 if new else 1} as that torch does (TORCH_CXX_FLAGS of find_package(Torch), "
        f"torch.utils.cpp_extension)"
    )
    present = seen.place.present
    if new:
        note += ", or to take the cxx11 download of libtorch."
    elif present is None or order_key(present.release) < ALL_CXX11:
        note += ", or to take the pre-cxx11 download of libtorch, which there is up to 2.6.0."
    else:
        note += f", for of torch {present.release} there is no pre-cxx11 download."
    look = "grep -rn GLIBCXX_USE_CXX11_ABI CMakeLists.txt Makefile setup.py"
    commands = [text for text in answer.help if "install" not in text and "cmake" not in text]
    kept = (text for text in answer.notes if text not in (THIS_FLAVOUR, FLAVOUR_HERE))
    return replace(answer, notes=(note, *kept), help=(look, *commands))


def _is_rocm(seen: Seen) -> bool:
    return "rocm" in seen.versions or _HIP.search(seen.mention.line) is not None


def _not_on_the_line(seen: Seen, answer: Answer) -> Answer:
    if answer.owner == OWN:
        linked = device_link(answer.symbol or "")
        if linked is not None:
            look = "grep -rnE 'rdc|SEPARABLE_COMPILATION|RESOLVE_DEVICE_SYMBOLS|dlink' ."
            return replace(answer, cause=linked.cause, direction=NONE, help=(look,))
        cause = (
            "The linker finds no definition of this name, which is the extension's own: its source "
            "file is not in the list of sources, was compiled for other architectures only, or has "
            "another signature than the declaration."
        )
        if answer.kind != "own-symbol":
            return answer
        from fa_forensics.why.other_names.left_out import part_words

        likely, more = part_words(answer.demangled or "")
        notes = tuple(dict.fromkeys((*more, *answer.notes)))
        return replace(answer, cause=f"{cause} {likely}" if likely else cause, notes=notes)
    libraries = libraries_of(answer.owner or "")
    flag = "-l" + libraries[0].removeprefix("lib").split(".so")[0] if libraries else ""
    words = f" ({flag})" if flag and answer.owner != PYTHON else ""
    if seen.mention.version is not None and libraries:
        return _versioned(seen, answer, libraries[0], words)
    from fa_forensics.why.other_names.products import linked_in_two_flavours

    flavours = linked_in_two_flavours(answer)
    if flavours is not None:
        return flavours
    note = (
        f"It is the linker that misses it: {title_of(answer.owner or '')}{words} is not on the "
        "link line, or an older copy of it comes first there."
    )
    return replace(answer, notes=(note, *answer.notes))


def _versioned(seen: Seen, answer: Answer, library: str, words: str) -> Answer:
    """A name with its version: another library that is linked with needs it from there."""
    version, line = seen.mention.version or "", seen.mention.line
    if answer.owner == "libstdc++":
        return _linkers_libstdcxx(seen, answer, version)
    if answer.owner == "libc" and newer_than_any(version):
        return linkers_glibc(seen, answer, version)
    if answer.owner == "libc":
        library, words = (
            "libc.so.6",
            ", or a part of glibc beside it (libdl, librt, libpthread, libm),",
        )
    needing = (seen.mention.file or "").rsplit("/", 1)[-1] or "A library on the link line"
    cause = (
        f"{needing} needs it in the version {version}, and the linker finds none: {library}{words} "
        "is not on the link line and not where it looks for what libraries need (-Wl,-rpath-link), "
        "or the copy that it takes is an older one."
    )
    if is_cuda(answer.owner or ""):
        from fa_forensics.why.texts.libraries.linked_cuda import linkers_cuda

        return linkers_cuda(seen, answer, version)
    kind, code = answer.kind, answer.code
    if _GLIBC.fullmatch(version) is not None:
        kind, code = "missing-library", "FA202"
        cause += f" Every system in use has {version}: no glibc is too old."
    notes = ["Libraries need one another: the first name that is missing is the one to look at."]
    if "conda" in line or "compiler_compat" in line:
        notes.insert(
            0,
            "The linker is conda's own: it looks in conda's directories, not in the system's. Use "
            "conda's compilers with conda's libraries, or the system's gcc and ld for both.",
        )
    return replace(
        answer, kind=kind, code=code, cause=cause, direction=UNKNOWN, confidence="medium",
        notes=tuple(notes), help=(
            "command -v ld gcc; echo CC=$CC LD=$LD LIBRARY_PATH=$LIBRARY_PATH",
            f"find / -name '{library.split('.so')[0]}.so*' -not -path '/proc/*' 2>/dev/null",
        ),
    )  # fmt: skip


def _linkers_libstdcxx(seen: Seen, answer: Answer, version: str) -> Answer:
    """libstdc++ at the link: an older compiler's, or none; one answer for all such names."""
    wanted = [
        m.version for m in seen.paste.mentions
        if m.what == "linker-undefined" and m.version and family_of(m.version) in (GLIBCXX, CXXABI)
    ] or [version]  # fmt: skip
    releases = {v: gcc for v in wanted if (gcc := gcc_of(v)) is not None}
    newest = max(releases, key=lambda v: number(releases[v]), default=version)
    oldest = min(releases, key=lambda v: number(releases[v]), default=version)
    first = next(m for m in (*seen.paste.mentions, seen.mention) if m.version in wanted)
    gcc = releases.get(newest)
    names = ", ".join(dict.fromkeys(wanted))
    needing = (seen.mention.file or "").rsplit("/", 1)[-1] or "A library on the link line"
    older = (
        f"{needing} was built with GCC {gcc} or newer ({names}), and the libstdc++ that the linker "
        "takes is an older compiler's"
    )
    none = "libstdc++ (-lstdc++) is not among what it links with: gcc was called in place of g++"
    if gcc and len(wanted) > 2 and number(releases[oldest]) >= (4, 8):
        cause = (
            f"{older}. That it is there, only too old, follows from the list: no name of an "
            "older version is missing."
        )
        code, direction = "FA203", NEWER
    else:
        cause = f"Two causes fit: {older}; or {none}."
        code, direction = answer.code, UNKNOWN
    cause += " This is about the link line, not about what is loaded later."
    helps = [
        "command -v ld gcc g++; g++ --version | head -1; echo CC=$CC CXX=$CXX "
        "LIBRARY_PATH=$LIBRARY_PATH",
        "g++ -print-file-name=libstdc++.so.6 | xargs strings | grep -o 'GLIBCXX_3[0-9.]*' "
        "| sort -V | tail -1",
    ]
    if gcc:
        helps.append(f'conda install -c conda-forge "gxx_linux-64>={gcc}"')
    symbol = parse_symbol(first.symbol or "") if first.symbol else None
    return replace(
        answer, code=code, cause=cause, direction=direction, confidence="medium",
        symbol=(symbol.name or first.symbol) if symbol else first.symbol,
        demangled=symbol.demangled if symbol else answer.demangled,
        help=tuple(helps), notes=(
            f"Compile and link with g++ {gcc} or newer (CXX=g++-N; devtoolset or gcc-toolset on "
            "CentOS and RHEL). No symbol of torch is missing, and the std::string flavour is not "
            "the cause." if gcc else "Link with g++, not with gcc or ld.",
        ),
    )  # fmt: skip


def _device_linker(answer: Answer) -> Answer:
    if (answer.symbol or "").startswith("nvshmem"):
        return _without_nvshmem(answer)
    cause = (
        "nvlink, CUDA's device linker, finds no definition of this device function: its source was "
        "not compiled with -rdc=true (-dc), or is not among the objects of the device link."
    )
    name = answer.owner or ""
    if name not in ("", OWN) and is_cuda(name):
        cause = (
            f"nvlink, CUDA's device linker, finds no definition of this device function, which is "
            f"{title_of(name)}'s: the library with its device code is not among the inputs of the "
            "device link, or is of another release than the headers."
        )
        return replace(
            answer, kind="own-symbol", code="FA205", cause=cause, direction=NONE,
            confidence="medium",
        )  # fmt: skip
    return replace(
        answer, kind="own-symbol", code="FA205", owner=OWN, cause=cause, direction=NONE,
        confidence="medium",
    )  # fmt: skip


def _without_nvshmem(answer: Answer) -> Answer:
    """A device name of NVSHMEM: its device library is left out, or was built without that part."""
    cause = (
        "It belongs to NVSHMEM, whose device code (libnvshmem_device.a) is linked into the "
        "program, and nvlink, CUDA's device linker, finds no definition of it: the NVSHMEM that "
        "was taken lacks it, or its device library is not among the inputs of the device link."
    )
    notes = [
        "NVSHMEM_DIR has to be the directory of the NVSHMEM whose headers and whose "
        "lib/libnvshmem_device.a are taken, both of one release. No torch and no driver lacks it."
    ]
    if "ibgda" in (answer.symbol or "").lower():
        cause += (
            " Names with ibgda are there only where NVSHMEM was built with IBGDA "
            "(NVSHMEM_IBGDA_SUPPORT=1)."
        )
        notes.append(
            "Built from source: again with NVSHMEM_IBGDA_SUPPORT=1, then the extension from an "
            "empty directory; NVIDIA's wheel has IBGDA."
        )
    return replace(
        answer, kind="own-symbol", code="FA205", owner="nvshmem", cause=cause, direction=NONE,
        confidence="medium", notes=tuple(notes), help=(
            "ls -l $NVSHMEM_DIR/lib; nm -C $NVSHMEM_DIR/lib/libnvshmem_device.a | grep -c ibgda",
            "python -m pip install --upgrade nvidia-nvshmem-cu12",
        ),
    )  # fmt: skip


def ldd_line(seen: Seen) -> Answer | None:
    """A line of ``ldd`` or ``ldd -r``; None for one that tells of nothing missing."""
    detail = seen.mention.detail
    if detail.get("sort") == "not found":
        soname = (seen.mention.library or "").rsplit("/", 1)[-1]
        owner = owner_of_library(soname)
        if owner is not None and is_torch(owner):
            return import_order(seen)
        return missing_library(seen)
    if detail.get("sort") == "undefined":
        return _undefined_in_ldd(seen)
    return None


def _undefined_in_ldd(seen: Seen) -> Answer:
    answer = undefined_symbol(seen)
    if answer.owner == PYTHON:
        cause = (
            "No error: names that begin with Py or _Py are defined by the python program itself, "
            "and ldd -r starts none. In a Python of the right version they are there."
        )
        return replace(
            answer, cause=cause, direction=NONE, confidence="high", help=(
                f"{seen.python} -c 'import torch; import "
                f"{seen.mention.detail.get('import') or 'MODULE'}'",
            ),
            notes=("What counts is what remains of the list when these names are left out.",),
        )  # fmt: skip
    return answer


#: A list that was filtered for a name that somebody misses; whole lists of a file are long.
_FEW = 4


def listed_symbol(seen: Seen) -> Answer | None:
    """An undefined entry in what ``nm`` or ``readelf`` prints; None for what a file defines."""
    detail = seen.mention.detail
    if detail.get("sort") != "undefined" or detail.get("weak") or not seen.mention.symbol:
        return None
    answer = undefined_symbol(seen)
    few = sum(m.what == "nm-line" for m in seen.paste.mentions) < _FEW
    driver = answer.owner == "cuda-driver" and few
    known = driver or is_torch(answer.owner or "") or answer.kind == "cxx11-abi"
    if answer.owner is None or not known:
        return None  # a U alone is an import, no error; torch's names tell of the build
    note = "U in nm's list means that the file imports the name, not that anybody defines it there."
    return replace(answer, notes=(note, *answer.notes))


#: Who answers for a line of a listing; None where the line tells of nothing wrong.
LINES = {
    "ldd-line": ldd_line,
    "nm-line": listed_symbol,
    "readelf-line": listed_symbol,
}

ANSWERERS: dict[str, Answerer] = {"linker-undefined": linker_undefined}
