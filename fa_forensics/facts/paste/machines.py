"""Which processor a text says that its machine has, and which one a file in it is for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

#: ``ELF 64-bit LSB shared object, x86-64``, as file(1) prints it.
_ELF = lazily(r"ELF (?P<bits>32|64)-bit [LM]SB[^,\n]{0,60}, (?P<machine>[\w -]{2,40}?)[,\n]")
#: The processor in the tag of a wheel's, an egg's or an extension's name.
_TAG = lazily(
    r"(?:macosx[-_]\d{1,2}[._]\d{1,2}|linux|manylinux\w{0,20})[-_](?P<machine>x86_64|arm64|aarch64|"
    r"i686|armv7l|ppc64le)(?=[./\\-])"
)
#: The glibc that a wheel's tag promises to do with (PEP 600).
_PROMISED = lazily(r"manylinux_2_(?P<minor>\d{1,2})(?:_(?:x86_64|aarch64)| wheel\b)")
#: The parts of files' names that say which machine the file is for, not where it is.
_OF_NAMES = lazily(r"cpython-\w{1,8}-[\w-]{1,40}|[-_](?:x86_64|aarch64|arm64)\.(?:whl|egg|zip|so)")
#: file(1)'s words for processors.
_OF_FILE = {
    "x86-64": "x86_64", "ARM aarch64": "aarch64", "ARM": "armv7l", "Intel 80386": "i686",
    "64-bit PowerPC or cisco 7500": "ppc64le", "IBM S": "s390x", "UCB RISC-V": "riscv64",
}  # fmt: skip


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("machines.json")
    return table


def machines_around(line: Line, file: str | None) -> dict[str, str]:
    """What is told near a line: ``host``, ``host_name`` and ``for_machine`` of the file.

    The words of the text stand for its machine unless they are a file's own name or what
    file(1) says of a file.
    """
    source = line.source
    words = _words_in(source.lower)
    tagged = _TAG.search(file or "")
    found = {"for_machine": tagged["machine"]} if tagged is not None else {}
    start, end = max(0, line.start - _NEAR), line.start + _NEAR
    near = source.text[start:end]
    if not words:
        return found
    elf = _ELF.search(near) if "elf " in words else None
    if elf is not None:
        found["for_machine"] = _OF_FILE.get(elf["machine"], elf["machine"])
    plain = _without_files(near).lower()
    told = [word for word in words if _has(plain, word)]
    for row in _table()["boards"]:
        if any(word in told for word in row["words"]):
            found["host"], found["host_name"] = row["machine"], row["name"]
            break
    exact = next((name for name in _table()["processors"] if name in told), None)
    if exact is not None and ("host" not in found or found["host"] == "arm"):
        found["host"] = exact
    return found


def is_of_arm(gpu: str) -> bool:
    """Whether a GPU is only in machines with an Arm processor: GB10, GH200, GB200."""
    return _row_of(gpu).get("machine") == "aarch64"


def delivered_with(gpu: str) -> tuple[str, str]:
    """(the machine, the CUDA major version that it is delivered with) of a GPU; ("", "")."""
    row = _row_of(gpu)
    return (row["name"], row["cuda"]) if "cuda" in row else ("", "")


def _row_of(gpu: str) -> dict[str, Any]:
    """What is known of the one machine that has a GPU; empty for all that are sold alone."""
    name = gpu.lower()
    rows = (row for row in _table()["boards"] if any(_has(name, w) for w in row.get("gpus", ())))
    return next(rows, {})


#: Around a failure, words of this many characters are its own.
_NEAR = 4_000
#: Longer texts are logs of many machines; no word of theirs is looked for.
_LONGEST = 2_000_000


def around_version(line: Line, file: str | None) -> dict[str, str]:
    """What is told near a symbol version: ``tag_glibc``, the glibc that a wheel's tag promises.

    And what ``machines_around`` finds, where the text names a rare processor.
    """
    found = machines_around(line, file) if rare_processor(line) else {}
    source = line.source
    near = source.text[max(0, line.start - _NEAR) : line.start + _NEAR]
    promised = _PROMISED.search(near)
    return {**found, "tag_glibc": f"2.{promised['minor']}"} if promised is not None else found


@lru_cache(maxsize=2)
def _words_in(lower: str) -> tuple[str, ...]:
    """Which of the words a text has at all: most have none."""
    if len(lower) > _LONGEST:
        return ()
    boards = (word for row in _table()["boards"] for word in row["words"])
    return tuple(w for w in (*boards, *_table()["processors"], "elf ") if w in lower)


def rare_processor(line: Line) -> bool:
    """Whether a text is of a processor that package indexes have little for."""
    words = _words_in(line.source.lower)
    return any(name in words for name in _RARE)


_RARE = (
    "riscv64", "s390x", "loongarch64", "armv7l", "armv6l", "arm-linux-gnueabihf",
    "arm-linux-gnueabi", "armhf", "armel",
)  # fmt: skip


def _without_files(text: str) -> str:
    """A text without what file(1) says, without wheels' tags and Python's own file endings."""
    return _OF_NAMES.sub(" ", _ELF.sub(" ", text))


def _has(text: str, word: str) -> bool:
    """Whether a word is in a small-letter text and not inside of a longer one.

    A digit may stand behind a word that ends in a letter, not behind "gb10".
    """
    number = word[-1].isdecimal()
    at = text.find(word)
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 1]
        before = text[at - 1 : at] if at else ""
        apart = not (before.isascii() and before.isalnum())
        goes_on = after.isascii() and (after.isalpha() or (number and after.isdecimal()))
        if apart and (not word[-1].isalnum() or not goes_on):
            return True
        at = text.find(word, at + 1)
    return False


def conda_has(machine: str) -> bool:
    """Whether conda-forge has packages for a processor; True where none is told."""
    return not machine or machine in _table()["conda_forge"]


def pypi_has_torch(machine: str) -> bool:
    """Whether PyPI has torch's wheels for a processor."""
    return machine in _table()["pypi_torch"]
