"""From a pasted text to its mentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fa_forensics.facts.paste import (
    banners,
    build,
    caught,
    cuda_copies,
    cuda_dlls,
    cuda_errors,
    gpu,
    gpu_checks,
    gpu_limits,
    link_refusals,
    loader,
    pip_log,
    python_errors,
    replaced,
    rocm,
    shortened,
    shown_files,
    tools,
)
from fa_forensics.facts.paste.denied import is_denial
from fa_forensics.facts.paste.half_lines import HALF_ENDS, whole_again
from fa_forensics.facts.paste.in_words import in_words
from fa_forensics.facts.paste.lines import Line, Source
from fa_forensics.facts.paste.model import MAX_LINE, Mention, Paste
from fa_forensics.facts.paste.named_elsewhere import named_elsewhere, readable_alone
from fa_forensics.facts.paste.order import LISTINGS, first_cause_first
from fa_forensics.facts.paste.paragraphs import columns, paragraphs
from fa_forensics.facts.paste.places import Places
from fa_forensics.facts.paste.plain_words import told_in
from fa_forensics.facts.paste.recogniser import Claim, Reader, Recogniser
from fa_forensics.facts.paste.sites import read_places
from fa_forensics.facts.paste.unescape import unescape
from fa_forensics.facts.paste.versions import read_versions
from fa_forensics.facts.paste.wrapped import unwrapped

#: How many lines are read for failures at all.
MOST_LINES = 4_000


def read_paste(text: str) -> Paste:
    """The failures that a text tells of, the first cause first, and the versions it names.

    Any text can be read: what is longer than ``unescape.MAX_TEXT`` is read at both its ends,
    which ``truncated`` says.
    """
    printed, truncated = unescape(text)
    if is_denial(printed):
        return Paste()
    paste = _read(Source(*unwrapped(printed)), truncated)
    wide, joints = columns(printed)
    if joints:
        as_printed = _read(Source(wide, joints), truncated)
        if as_printed.mentions and _is_whole(as_printed, paste, len(joints) > 1):
            return as_printed
    joined, joints = paragraphs(printed)
    whole = _read(Source(joined, joints), truncated) if joints else paste
    if not paste.mentions:
        return whole if whole.mentions else _told(printed, truncated) or paste
    return replace(paste, mentions=whole.mentions) if _tells_more(whole, paste) else paste


def _told(text: str, truncated: str | None) -> Paste | None:
    """The paste of a text without a whole message: a half one, or a person's own words."""
    return _half_line(text, truncated) or _in_plain_words(text, truncated)


def _in_plain_words(text: str, truncated: str | None) -> Paste | None:
    """The paste of a text with a sentence that stands for a message; None for any other."""
    told = told_in(text)
    if told is None:
        return None
    paste = _read(Source(*unwrapped(f"{text.rstrip()}\n{told.message}")), truncated)
    sentence = Source(*unwrapped(text)).line_at(told.start)
    mentions = (
        replace(m, line=sentence.raw.strip()[:MAX_LINE], number=sentence.number,
                detail={**m.detail, "told": "yes"})
        for m in paste.mentions
    )  # fmt: skip
    return replace(paste, mentions=tuple(mentions)) if paste.mentions else None


def _half_line(text: str, truncated: str | None) -> Paste | None:
    """The paste of a text that ends in the middle of a known sentence; None for any other."""
    completed = whole_again(text)
    if not completed:
        return None
    rest = completed[len(text.rstrip(HALF_ENDS)) :]
    paste = _read(Source(*unwrapped(completed)), truncated)
    mentions = (replace(m, line=m.line.removesuffix(rest.rstrip())) for m in paste.mentions)
    return replace(paste, mentions=tuple(mentions))


def _is_whole(wide: Paste, paste: Paste, sure: bool) -> bool:
    """Whether a text without the breaks of a window tells as much of its failures, or more.

    ``sure`` where more than one line ends at the column: one may end there by chance.
    """
    if not paste.mentions:
        return True
    one, other = wide.mentions[0], paste.mentions[0]
    if one.detail.get("cut") and not other.detail.get("cut"):
        return False  # the name ended at the window's edge
    if not sure and not paste.versions.keys() <= wide.versions.keys():
        return False
    more, less = (
        sum(len(name or "") for name in (m.symbol, m.version, m.file, m.library))
        for m in (one, other)
    )
    return len(wide.mentions) <= len(paste.mentions) and more >= less


def _tells_more(whole: Paste, paste: Paste) -> bool:
    """Whether the same failure is told with more about it where paragraphs are in one line."""
    if len(whole.mentions) != len(paste.mentions):
        return False
    one, other = whole.mentions[0], paste.mentions[0]
    if (one.what, one.symbol, one.library) != (other.what, other.symbol, other.library):
        return False
    if other.file and one.file != other.file:
        return False
    more = bool(one.file and not other.file) or len(one.detail) > len(other.detail)
    return more and other.detail.keys() <= one.detail.keys()


def _read(source: Source, truncated: str | None) -> Paste:
    places = Places(source.lower)
    isolated = pip_log.isolation(source, places)
    found = [*_mentions(source, places), *isolated, *replaced.replaced(source, places)]
    found = pip_log.in_builds(found, source, places)
    found += [*tools.nm_lines(source), *tools.several_runtimes(found)]
    if any(m.what == "undefined-symbol" for m in found):
        found = named_elsewhere(found, source)
    elif not any(m.symbol or m.what not in LISTINGS for m in found):
        found += [*tools.bare_symbols(source)] or [*readable_alone(source)]
    found = found or [*in_words(source)]
    built_with = isolated[0].detail["torch"] if isolated else None
    versions, lines = _told_too(found, *read_versions(source, places, built_with))
    return Paste(first_cause_first(found), versions, lines, read_places(source, places), truncated)


def _told_too(
    found: Sequence[Mention], versions: Mapping[str, str], lines: Mapping[str, int]
) -> tuple[Mapping[str, str], Mapping[str, int]]:
    """The versions, with those that failures tell of."""
    for mention in found:
        told: dict[str, str] = {}
        if mention.what == "build-isolation":
            told = {"build_torch": mention.detail["torch"]}
        elif mention.what == "build-cuda-mismatch":
            told = {
                "cuda": mention.detail.get("toolkit", ""),
                "torch_cuda": mention.detail.get("torch_cuda", ""),
            }
        told = {key: text for key, text in told.items() if text and key not in versions}
        versions = {**versions, **told}
        lines = {**lines, **dict.fromkeys(told, mention.number)}
    return versions, lines


@lru_cache(maxsize=1)
def _recognisers() -> tuple[Recogniser, ...]:
    """All of them; of two that claim the same words the earlier counts."""
    return (
        *rocm.recognisers(),
        *gpu_checks.recognisers(),
        *gpu_limits.recognisers(),
        *cuda_dlls.recognisers(),
        *banners.recognisers(),
        *caught.recognisers(),
        *build.recognisers(),
        *link_refusals.recognisers(),
        *loader.recognisers(),
        *shown_files.recognisers(),
        *gpu.recognisers(),
        *cuda_copies.recognisers(),
        *shortened.recognisers(),
        *python_errors.recognisers(),
        *tools.recognisers(),
        *cuda_errors.recognisers(),
    )


def _mentions(source: Source, places: Places) -> Iterator[Mention]:
    table = _recognisers()
    hits = sorted(
        {
            (place, order)
            for order, recogniser in enumerate(table)
            for sign in recogniser.signs
            for place in places(sign)
        }
    )
    at, lines = 0, 0
    seen: set[tuple[str, str]] = set()
    while at < len(hits) and lines < MOST_LINES:
        line = source.line_at(hits[at][0])
        end = line.start + len(line.raw)
        orders = set()
        while at < len(hits) and hits[at][0] <= end:
            orders.add(hits[at][1])
            at += 1
        key = (line.stream, line.body)
        if key in seen:
            continue
        seen.add(key)
        lines += 1
        for claim in _claims(line, [table[order].read for order in sorted(orders)]):
            yield claim.mention


def _claims(line: Line, readers: Sequence[Reader]) -> list[Claim]:
    """What several readers find in a line; of two that overlap the earlier reader's counts."""
    taken: list[Claim] = []
    for read in readers:
        for claim in read(line):
            if all(claim.end <= other.start or claim.start >= other.end for other in taken):
                taken.append(claim)
    return sorted(taken, key=lambda claim: claim.start)
