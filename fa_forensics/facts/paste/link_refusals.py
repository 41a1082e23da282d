"""What linkers say when they refuse a file or its code: GNU ld, gold, lld and mold, at build time.

Undefined references are ``build``'s.
"""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.machines import machines_around
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern, plain
from fa_forensics.facts.paste.tokens import path_after, path_before
from fa_forensics.patterns import lazily

_OBJECT = lazily(r"(?P<archive>[\w./+~-]{1,300}\.a)\((?P<member>[\w./+-]{1,200})\)")
_INPUT = lazily(r"[\w./+~-]{1,300}\.(?:a|o|so(?:\.\d{1,9}){0,4})(?![\w.])", re.ASCII)


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
            ("ignoring file", "which is not the architecture being linked"),
            r"ignoring file ['\"]?(?P<file>[^\n'\",]{2,400}?)['\"]?(?:,|:\s)\s?"
            r"(?:file was built for (?P<built>[^\n(]{2,60}?)\s{0,2}"
            r"(?:\((?P<bytes>[^\n()]{2,200})\)\s?)?"
            r"which is not the architecture being linked \((?P<wanted>\w{2,20})\)"
            r"|file was built for unsupported file format \((?P<bytes3>[^\n()]{2,200})\)"
            r"|building for \w{2,20}-(?P<wanted2>\w{2,20}) but attempting to link with file built "
            r"for (?P<built2>[\w-]{2,60})(?: file format \((?P<bytes2>[^\n()]{2,200})\))?"
            r"|found architecture '(?P<built3>[\w, ]{2,40})', required architecture "
            r"'(?P<wanted3>\w{2,20})')",
            _ignored,
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
        if sort == "format" and "first eight bytes" in line.lower:
            return _tried_by_dyld(line, match)
        detail = {
            **groups,
            "sort": sort,
            "member": member["member"] if member else "",
            "relocation": _relocation(before) or groups.get("of") or groups.get("relocation", ""),
        }
        if sort == "format":
            detail.update(machines_around(line, file))
        return line.mention("linker-refuses", match.start(), file=file, detail=detail)

    return build


_TRIED = lazily(r"(?P<file>[^\s'(,]{2,400}?)['\"]?(?:: | \()unknown file type", re.IGNORECASE)


def _tried_by_dyld(line: Line, match: re.Match[str]) -> Mention:
    """``Did find: /x/_C.so: unknown file type, first eight bytes: 0x7F 0x45 ...``, at run time."""
    found = _TRIED.search(line.body)
    detail = {"elf": "yes" if _ELF_BYTES.search(line.body) else "", "os": "macOS"}
    file = found["file"] if found else None
    return line.mention("wrong-machine", match.start(), file=file, detail=detail)


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


#: The first bytes of an ELF file, as Apple's ld prints them.
_ELF_BYTES = lazily(r"0x7F 0x45 0x4C 0x46", re.IGNORECASE)


def _ignored(line: Line, match: re.Match[str]) -> Mention:
    """A file that Apple's ld leaves out: for another processor, or no Mach-O file at all."""
    groups = {key.rstrip("23"): text.strip() for key, text in match.groupdict().items() if text}
    elf = bool(_ELF_BYTES.search(groups.get("bytes", ""))) or "elf" in groups.get("built", "")
    built = groups.get("built", "").rpartition("-")[2] if "bytes" not in groups else ""
    detail = {
        "sort": "mac",
        "elf": "yes" if elf else "",
        "have": built,
        "need": groups.get("wanted", ""),
    }
    file = groups["file"]
    if not re.search(r"libtorch|libc10|libcaffe2", file):
        detail["warning"] = "yes"  # ld goes on without it, and may need nothing of it
    return line.mention("linker-refuses", match.start(), file=file, detail=detail)


def _skipped(line: Line, match: re.Match[str]) -> Mention | None:
    """A library of another machine: of interest where the linker then finds no other."""
    wanted = re.compile(r"when searching for (-l[\w.+-]{1,100})").search(line.body, match.end())
    if wanted is None:
        return None
    found_no_other = f"find {wanted[1]}" in line.body[wanted.end() :]
    file = path_after(line.body, match.end())
    torchs = re.search(r"libtorch|libc10", file or "") is not None
    if not (torchs or found_no_other) and not any(
        f"find {wanted[1]}" in below.body for below in line.below(12)
    ):
        return None  # it found another one: a warning
    detail = {"sort": "incompatible", "flag": wanted[1], **machines_around(line, file)}
    return line.mention("linker-refuses", match.start(), file=file, detail=detail)
