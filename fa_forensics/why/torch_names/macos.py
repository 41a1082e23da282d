"""Names as compilers on macOS spell them, and what of torch is there alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.owner import STABLE
from fa_forensics.facts.python_api import brings_torch
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.torch_names.spelling import same_text
from fa_forensics.why.ways.builds import rebuild

#: What LLVM's C++ library has in std::__1, and GCC's right in std:: (or std::__cxx11).
_OF_GCC = lazily(
    r"\bstd::(?:__cxx11::)?(?:unique_ptr|shared_ptr|weak_ptr|vector|function|tuple|pair|optional|"
    r"variant|map|multimap|unordered_map|unordered_set|set|deque|list|array|basic_string|string|"
    r"allocator|default_delete|char_traits|ostream|istream|basic_ostream|mutex|thread)\b"
)
_LONG = lazily(r"\blong long\b")
_PLAIN_LONG = lazily(r"(?<!unsigned )(?<!long )\blong\b(?! (?:long|double)\b)")
_LIBCXX_STRING = lazily(
    r"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> ?>"
)


def of_gcc(symbol: SymbolText) -> bool:
    """Whether a name takes types of GCC's C++ library, which no torch for macOS is built with."""
    return _OF_GCC.search(symbol.demangled) is not None and "std::__1::" not in symbol.demangled


def built_with_gcc(answer: Answer, seen: Seen) -> Answer:
    """A file compiled by GCC on a Mac: torch is built with clang and LLVM's C++ library there."""
    cause = (
        "The name is spelt with GCC's C++ library (std::), and torch for macOS is built with clang "
        "and LLVM's (std::__1): no torch there exports it, whatever its release. The file was "
        "compiled with GCC, or by clang for a macOS before 10.9 (Python's own deployment target), "
        "which takes GCC's library: MACOSX_DEPLOYMENT_TARGET=10.9 CC=clang CXX=clang++ for its "
        "build."
    )
    package = (seen.package or "").replace("_", "-")
    build = (
        f"MACOSX_DEPLOYMENT_TARGET=10.9 CC=clang CXX=clang++ {seen.pip} install "
        f"--no-build-isolation --no-cache-dir --force-reinstall --no-deps {package}",
    ) if re.fullmatch(r"[A-Za-z][\w.-]*", package) else ()  # fmt: skip
    return replace(
        answer, kind="cxx11-abi", code="FA301", direction=NONE, confidence="high", cause=cause,
        exported_by=(), interval="", overloads=(), help=(*build, seen.inspect_command()), notes=(),
    )  # fmt: skip


def as_on_linux(symbol: SymbolText, seen: Seen) -> SymbolText:
    """The same name as compilers on Linux spell it, where the releases have that."""
    atlas = seen.tables.ages
    text = _LIBCXX_STRING.sub("std::string", symbol.demangled)
    text = _LONG.sub("long", text.replace("std::__1::", "std::"))
    if atlas is None or not symbol.name or text == symbol.demangled or "(" not in text:
        return symbol
    if atlas.releases_of(symbol.name, seen.place.machine):
        return symbol
    for row in atlas.overloads(text, seen.place.machine):
        if row.releases and same_text(row.demangled, text):
            return SymbolText(row.symbol, row.demangled, symbol.version)
    return symbol


def on_linux(name: str) -> str:
    """The beginning of a mangled name with the integers of Linux: ``long`` for ``long long``.

    Names of LLVM's C++ library count their substitutions otherwise and stay as they are.
    """
    if "St3__1" in name:
        return name
    out, at = [], 0
    while at < len(name):
        counted = re.compile(r"\d{1,3}").match(name, at)
        if counted is None:
            out.append({"x": "l", "y": "m"}.get(name[at], name[at]))
            at += 1
            continue
        back = out[-1:] in (["S"], ["T"])  # a substitution (S5_), no length
        end = counted.end() + (0 if back else int(counted[0]))
        out.append(name[at:end])
        at = end
    return "".join(out)


def long_is_int64(answer: Answer, symbol: SymbolText, seen: Seen) -> Answer | None:
    """A name with ``long`` where torch has int64_t, which is ``long long`` on macOS."""
    if not answer.exported_by or not _PLAIN_LONG.search(symbol.demangled):
        return None
    there = _PLAIN_LONG.sub(r"\g<0> \g<0>", symbol.demangled)
    cause = (
        "The name is spelt with long. On Linux that is int64_t and torch exports it "
        f"({answer.interval}); on macOS int64_t is long long, so torch there exports {there} and "
        "never this name, whatever its release. The extension's source says long (or another type "
        "that is one) where it has to say int64_t."
    )
    return replace(
        answer, direction=NONE, confidence="medium", cause=cause, exported_by=(), interval="",
        overloads=(), notes=(),
        help=("grep -rn '<long' --include='*.cpp' --include='*.h' --include='*.mm' .",),
    )  # fmt: skip


def of_apple(answer: Answer, symbol: SymbolText, seen: Seen) -> Answer:
    """A name of the part of torch that only macOS has; any other answer as it is."""
    if not symbol.demangled.startswith("at::mps::"):
        return answer
    releases, known = _releases(symbol.name or "")
    torch = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
        seen.inspect_command(),
    )
    if not releases:
        cause = (
            "It belongs to the part of torch for Apple's GPUs (MPS), which is in builds for macOS "
            f"alone. No macOS wheel from {known[0]} to {known[-1]} exports it: the file was built "
            "for a build between releases, or declares an inner function of torch itself."
        )
        return replace(answer, cause=cause, confidence="medium", direction=UNKNOWN)
    commands = (torch[0], *_ways_out(releases, known, seen), *torch[1:])
    span = interval_text(releases, known)
    having = f"{span} exports" if len(releases) == 1 else f"{span} export"
    cause = (
        "It belongs to the part of torch for Apple's GPUs (MPS), which is in builds for macOS "
        f"alone. There torch {having} it"
    )
    direction = UNKNOWN
    present = seen.place.present
    if present is not None and present.release not in releases:
        direction = OLDER if order_key(present.release) > order_key(releases[-1]) else NEWER
        age = "older" if direction == OLDER else "newer"
        cause += f": the file was built for a torch that is {age} than torch {present.release}."
    elif present is None and releases[-1] != known[-1]:
        direction = OLDER
        cause += (
            ": the file was built for such a torch, and the one that lacks it is most likely newer "
            f"than {releases[-1]}."
        )
    else:
        cause += ": the torch that is loaded is another one."
    return replace(
        answer, cause=cause, direction=direction, confidence="medium", exported_by=releases,
        interval=span, overloads=(), help=commands, notes=(),
    )  # fmt: skip


def _ways_out(releases: tuple[str, ...], known: tuple[str, ...], seen: Seen) -> tuple[str, ...]:
    """The torch that has the name, where newer ones have not, and another build of the file."""
    served = {r for r in releases if _serves(r, seen)}
    last = next((r for r in reversed(releases) if r in served), None)
    commands: tuple[str, ...] = ()
    if last is not None and releases[-1] != known[-1]:
        commands = (f'{seen.pip} install "torch=={last}"',)
    built = rebuild(seen.place, (seen.mention.file or "",), OLDER)
    return commands if built is None else (*commands, built[0])


def _serves(release: str, seen: Seen) -> bool:
    """Whether a release has wheels for the text's Python, which those for Linux tell."""
    python = seen.python_version
    build = seen.tables.atlas.build(release) if seen.tables.atlas is not None else None
    return build is None or python is None or ".".join(python.split(".")[:2]) in build.pythons


def only_on_a_mac(answer: Answer, seen: Seen) -> Answer:
    """A name of torch that no Linux wheel exports, missed on a Mac: that says little."""
    if answer.overloads or answer.owner == STABLE:
        return answer
    package = seen.package
    both = f"{package} and torch" if package else "The file and torch"
    cause = (
        "The releases on record are those of Linux, where no torch exports it; macOS wheels have "
        "some names of their own (those with torch's own thread pool export functions that builds "
        f"with OpenMP have inline). {both} are most likely of different builds or releases: one "
        "from the package index, the other from conda or from source. Both are to come from one "
        "source."
    )
    commands = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0], "
        "torch.__config__.parallel_info())'",
    ]
    if package and brings_torch(package):
        commands.append(f"{seen.pip} install --force-reinstall --no-cache-dir {package} torch")
    return replace(
        answer, cause=cause, direction=UNKNOWN, confidence="low", help=tuple(commands), notes=()
    )


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table("mps_names.json")
    return table


def _releases(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the releases whose macOS wheel exports a name, all those that were read)."""
    table = _table()
    known = tuple(table["releases"])
    for row in table["names"]:
        if row["symbol"] == name:
            spans = [(known.index(first), known.index(last)) for first, last in row["spans"]]
            return tuple(r for a, b in spans for r in known[a : b + 1]), known
    return (), known


#: What both C++ libraries have: run-time support, and operator new and delete.
_OF_BOTH = lazily(r"_{1,3}cxa_|_{1,3}gxx_|_{1,2}Zn[wa]|_{1,2}Zd[la]|_{1,2}ZT[ISV]N10__cxxabiv1")


def of_gccs_library(answer: Answer, seen: Seen) -> Answer:
    """A name of GCC's C++ library that is missing on a Mac, where programs have LLVM's."""
    if _OF_BOTH.match(answer.symbol or "") or "std::__1::" in (answer.demangled or ""):
        return answer
    cause = (
        "It is a name of GCC's C++ library (libstdc++), and on macOS programs have LLVM's "
        "(libc++), which has none of them: most likely the file was compiled with a gcc, that of "
        "conda or of Homebrew for instance. Neither a release of torch nor CUDA plays a part."
    )
    python = seen.python
    return replace(
        answer, kind="versioned-symbol", code="FA204", cause=cause, confidence="medium",
        direction="none",
        help=(
            "echo CC=$CC CXX=$CXX; c++ --version",
            f"rm -rf build && CC=clang CXX=clang++ {python} -m pip install --no-build-isolation "
            "--no-deps --no-cache-dir --force-reinstall .",
        ),
        notes=(
            "The second command is for the source directory of what the file belongs to: Apple's "
            "clang links with libc++. A released wheel for macOS is compiled that way.",
        ),
    )  # fmt: skip
