"""What the reference tools say of a file, parsed: nm, readelf, c++filt, ldd, a real dlopen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.material import require

#: (name, version, how): how is "@@" for a default definition, "@" otherwise, "" without one.
Named = tuple[str, str, str]


def clean_environment(**more: str) -> dict[str, str]:
    """This environment without what changes the loader's search, and with plain messages."""
    dropped = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_DEBUG")
    return {k: v for k, v in os.environ.items() if k not in dropped} | {"LC_ALL": "C", **more}


def output_of(*command: str | Path, check: bool = True, **environment: str) -> str:
    """What a tool prints on both streams. Skips when it is absent."""
    require(str(command[0]))
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=check,
        env=clean_environment(**environment),
        timeout=120,
    )
    return done.stdout + done.stderr


def _named(text: str) -> Named:
    match = re.fullmatch(r"(.*?)(@@?)([^@]+)", text)
    return (match[1], match[3], match[2]) if match else (text, "", "")


@cache
def nm_rows(path: Path, which: str) -> tuple[tuple[str, Named], ...]:
    """(nm's letter, name) of each dynamic symbol; ``which`` is ``-u`` or ``--defined-only``."""
    text = output_of("nm", "-D", which, "--with-symbol-versions", path)
    rows = (line.split()[-2:] for line in text.splitlines() if len(line.split()) >= 2)
    return tuple((letter, _named(name)) for letter, name in rows if len(letter) == 1)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The dynamic section as ``readelf -d`` prints it."""

    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


@cache
def readelf(path: Path) -> str:
    """Header, segments, dynamic section, notes, versions and .comment as readelf prints them."""
    return output_of("readelf", "-hldnVW", "-p", ".comment", path, check=False)


def readelf_dynamic(path: Path) -> Dynamic:
    """The dynamic section's names by readelf."""
    text = readelf(path)

    def values(label: str) -> list[str]:
        return re.findall(rf"{label}: \[(.*)\]$", text, re.M)

    def paths(label: str) -> tuple[str, ...]:
        found = values(label)
        return tuple(found[0].split(":")) if found else ()

    sonames = values("Library soname")
    return Dynamic(
        sonames[0] if sonames else None,
        tuple(values("Shared library")),
        paths("Library rpath"),
        paths("Library runpath"),
    )


def readelf_build_id(path: Path) -> str | None:
    """The build-id by readelf."""
    match = re.search(r"Build ID: ([0-9a-f]+)", readelf(path))
    return match[1] if match else None


def readelf_comment(path: Path) -> tuple[str, ...]:
    """The strings of .comment by readelf, repeats dropped."""
    text = readelf(path).partition("String dump of section '.comment'")[2]
    rows = re.findall(r"^  \[ *[0-9a-f]+\]  (.*)$", text, re.M)
    return tuple(dict.fromkeys(row.strip() for row in rows if row.strip()))


def readelf_segments(path: Path) -> tuple[int, bool | None]:
    """(TLS size in bytes, executable stack or None) by readelf."""
    text = readelf(path)
    tls = re.search(r"^  TLS +0x\w+ 0x\w+ 0x\w+ 0x\w+ (0x\w+)", text, re.M)
    stack = re.search(r"^  GNU_STACK .* 0x\w+ +(R?W?E?|R W|R  ?E?) +0x", text, re.M)
    return int(tls[1], 16) if tls else 0, ("E" in stack[1]) if stack else None


def readelf_header(path: Path) -> tuple[str, str, str]:
    """(class, machine, type) in readelf's own words."""
    text = readelf(path)

    def value(label: str) -> str:
        match = re.search(rf"^  {label}: +(.*)$", text, re.M)
        assert match is not None, text
        return match[1].strip()

    return value("Class"), value("Machine"), value("Type")


def readelf_verneed(path: Path) -> set[tuple[str, str, bool]]:
    """(file, version, weak) of the version needs by readelf."""
    rows: set[tuple[str, str, bool]] = set()
    file = ""
    inside = False
    for line in readelf(path).splitlines():
        if line.startswith("Version "):
            inside = line.startswith("Version needs")
        match = re.search(r"Version: \d+  File: (\S+)", line)
        if inside and match:
            file = match[1]
        match = re.search(r"Name: (\S+)  Flags: (.*?)  Version:", line)
        if inside and match:
            rows.add((file, match[1], "WEAK" in match[2]))
    return rows


def cxxfilt(names: Sequence[str]) -> list[str]:
    """Each name demangled by binutils' c++filt.

    ``-i`` because c++filt without it writes ``std::string`` out in full where the mangled
    name has the abbreviation ``Ss``; libstdc++'s demangler keeps the abbreviation.
    """
    require("c++filt")
    done = subprocess.run(
        ["c++filt", "-i"], input="\n".join(names) + "\n", capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.splitlines()


LOAD = """
import ctypes, os, sys
for path in sys.argv[2:]:
    ctypes.CDLL(path)
try:
    ctypes.CDLL(sys.argv[1], os.RTLD_NOW)
except OSError as error:
    print("error", error, flush=True)
else:
    print("loaded", flush=True)
    print(open("/proc/self/maps").read(), flush=True)
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What became of a real dlopen: the loader's text or None, the files mapped, all output."""

    error: str | None
    mapped: tuple[str, ...]
    text: str


def really_load(path: Path, first: Iterable[Path] = (), **environment: str) -> Load:
    """dlopen a file with RTLD_NOW in a child of this same interpreter."""
    command = [sys.executable, "-c", LOAD, str(path), *(str(p) for p in first)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=clean_environment(**environment), timeout=60
    )
    text = done.stdout + done.stderr
    errors = re.findall(r"^error (.*)$", done.stdout, re.M)
    mapped = {
        line.split(maxsplit=5)[5] for line in done.stdout.splitlines() if line.count("/") >= 1
        and len(line.split(maxsplit=5)) == 6
    }  # fmt: skip
    return Load(errors[0] if errors else None, tuple(sorted(mapped)), text)


def short_text(text: str) -> list[str]:
    """A loader's text with every path shortened to its file name."""
    return [os.path.basename(word.rstrip(":,)").lstrip("(")) for word in text.split()]


def ldd_undefined(
    path: Path, library_path: Sequence[Path], **more: str
) -> set[tuple[str, str, str]]:
    """(symbol, version, file) that ``ldd -r`` calls undefined, with LD_LIBRARY_PATH set."""
    variables: Mapping[str, str] = {"LD_LIBRARY_PATH": ":".join(map(str, library_path)), **more}
    text = output_of("ldd", "-r", path, check=False, **variables)
    rows = re.findall(r"^undefined symbol: (\S+?)(?:, version (\S+))?\s+\((.*)\)$", text, re.M)
    return set(rows)
