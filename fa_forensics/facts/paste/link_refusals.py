"""What linkers say when they refuse a file or its code: GNU ld, gold, lld and mold, at build time.

Undefined references are ``build``'s.
"""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern, plain
from fa_forensics.facts.paste.tokens import path_after, path_before

_OBJECT = re.compile(r"(?P<archive>[\w./+~-]{1,300}\.a)\((?P<member>[\w./+-]{1,200})\)")
_INPUT = re.compile(r"[\w./+~-]{1,300}\.(?:a|o|so(?:\.\d{1,9}){0,4})(?![\w.])", re.ASCII)


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of linkers about files that they do not take."""
    return (*_of_relocations(), *_of_formats(), *_of_the_end())


def _of_relocations() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("recompile with -f", "\u91cd\u65b0\u7f16\u8bd1"),
            r"recompile with -f(?:PIC|PIE)"
            r"|\u4f7f\u7528\s?-f(?:PIC|PIE)\s?(?:\u9009\u9879)?\u91cd\u65b0\u7f16\u8bd1",
            _refused("pic"),
        ),
        by_pattern(
            ("relocation truncated to fit", "gotpcrel", "pc-relative", "out of range",
             "relocation overflow"),
            r"relocation truncated to fit(?:: (?P<relocation>R_\w{3,50}))?"
            r"|failed to convert GOTPCREL relocation"
            r"|PC-relative (?:relocation|offset)(?: out of range| overflow)"
            r"|relocation (?P<of>R_\w{3,50}) out of range"
            r"|relocation overflow",
            _refused("range"),
        ),
        by_pattern(
            ("dso missing from command line",),
            r"DSO missing from command line",
            _refused("not-named"),
        ),
    )  # fmt: skip


def _of_formats() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("file not recognized", "file in wrong format", "file format not recognized",
             "incompatible with elf", "unknown file type", "architecture of input file"),
            r"file not recogni[sz]ed(?:: (?P<why>file truncated|File truncated"
            r"|File format not recognized))?"
            r"|(?:error adding symbols: )?File in wrong format"
            r"|file format not recognized(?:; treating as linker script)?"
            r"|is incompatible with elf\w{0,20}|unknown file type"
            r"|architecture of input file",
            _refused("format"),
        ),
        by_pattern(
            ("skipping incompatible",),
            r"skipping incompatible\s",
            _skipped,
        ),
        by_pattern(
            ("unrecognized relocation", "unrecognised relocation", "unsupported relocation",
             "section `.relr", "section '.relr"),
            r"unrecogni[sz]ed relocation(?: type)? \((?P<number>0x\w{1,6})\)"
            r"|unsupported relocation type (?P<type>\w{1,40})"
            r"|unknown type \[(?P<section>0x\w{1,6})\] section [`']\.relr",
            _refused("old-linker"),
        ),
    )  # fmt: skip


def _of_the_end() -> tuple[Recogniser, ...]:
    return (
        plain(
            "out-of-memory-build",
            ("ld terminated with signal", "memory exhausted"),
            r"(?P<program>ld) terminated with signal 9\b|final link failed: memory exhausted",
        ),
        by_pattern(
            ("ld terminated with signal",),
            r"\bld terminated with signal 7\b",
            _refused("disk"),
        ),
    )


def _refused(sort: str) -> Build:
    def build(line: Line, match: re.Match[str]) -> Mention | None:
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        before = line.body[max(0, match.start() - 600) : match.start()]
        if sort == "pic" and "reloc" not in before and "R_" not in before:
            return None
        member = _OBJECT.search(before)
        file = member["archive"] if member else _input(line, match.start(), before)
        if sort in ("pic", "range") and file is not None and not file.endswith(".a"):
            file = None  # one of many objects
        detail = {
            **groups,
            "sort": sort,
            "member": member["member"] if member else "",
            "relocation": _relocation(before) or groups.get("of") or groups.get("relocation", ""),
        }
        return line.mention("linker-refuses", match.start(), file=file, detail=detail)

    return build


def _input(line: Line, place: int, before: str) -> str | None:
    """The file that a message is about: it stands before it."""
    file = path_before(line.body, place)
    if file is not None and _INPUT.fullmatch(file):
        return file
    inputs = _INPUT.findall(before)
    return inputs[-1] if inputs else None


def _relocation(text: str) -> str:
    found = re.findall(r"\bR_[A-Z0-9]{2,10}_\w{1,40}", text)
    return found[-1] if found else ""


def _skipped(line: Line, match: re.Match[str]) -> Mention | None:
    """A library of another machine: of interest where the linker then finds no other."""
    wanted = re.compile(r"when searching for (-l[\w.+-]{1,100})").search(line.body, match.end())
    if wanted is None:
        return None
    if not any(f"find {wanted[1]}" in below.body for below in line.below(12)):
        return None  # it found another one: a warning
    file = path_after(line.body, match.end())
    return line.mention(
        "linker-refuses", match.start(), file=file,
        detail={"sort": "incompatible", "flag": wanted[1]},
    )  # fmt: skip
