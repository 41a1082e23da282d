"""The lines of a text, looked up by position, with what stands around them.

A text may be ten megabytes in one line: of a line only a window around the place of interest
is taken, and the text is never split as a whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from fa_forensics.facts.paste.model import MAX_LINE, Mention
from fa_forensics.facts.paste.prefixes import split_prefix
from fa_forensics.facts.paste.unescape import SOFT
from fa_forensics.records import dataclass

#: Where a small-letter word stands in the text, in its order.
Places = Callable[[str], Sequence[int]]

#: How much of a line before and behind the place of interest is read (characters). The longest
#: mangled name in torch's libraries and extensions has 2,000.
BEFORE, BEHIND = 2_000, 8_000
#: How many raw lines around one are looked at for those of the same stream.
_REACH = 60


@dataclass(frozen=True, slots=True)
class Joint:
    """A place in the joined text where a line break was.

    ``before`` is the width of the line that ended there, ``prefix`` how many characters of the
    next one were left out.
    """

    place: int
    before: int
    prefix: int


class Source:
    """A text that was unescaped, and where lines of it were joined."""

    __slots__ = ("_counted", "_ends", "_held", "_joints", "_lines", "_places", "lower", "text")

    def __init__(self, text: str, joints: Sequence[Joint] = ()) -> None:
        self.text = text
        self._joints = joints
        self._places = [joint.place for joint in joints]
        lower = text.lower()
        # Some letters of foreign scripts change their length: then only ASCII is lowered.
        if len(lower) != len(text):
            lower = text.translate({n: n + 32 for n in range(65, 91)})
        self.lower = lower
        #: What ends a line in this text: each sort is searched for at every line that is read.
        self._ends = ("\n", SOFT) if SOFT in text else ("\n",)
        self._counted = (0, 1)
        self._lines: dict[int, Line] = {}
        self._held: dict[tuple[str, ...], bool] = {}

    def holds(self, words: tuple[str, ...]) -> bool:
        """Whether one of some words (lower case) stands anywhere; the text is searched once."""
        if words not in self._held:
            self._held[words] = any(word in self.lower for word in words)
        return self._held[words]

    def line_at(self, place: int) -> Line:
        """The line that a place in the text is on."""
        start = self._start(place)
        line = self._lines.get(start)
        if line is None or place > line.start + len(line.raw):
            line = Line(self, start, self.text[start : self._end(place)], self._number(start))
            self._lines[start] = line
        return line

    def before(self, line: Line) -> Iterator[Line]:
        """The lines above, the nearest first."""
        place = line.start - 1
        for _ in range(_REACH):
            if place < 0:
                return
            start = self._start(place)
            number = line.number - self._breaks(start, line.start)
            yield Line(self, start, self.text[start:place], number)
            place = start - 1

    def behind(self, line: Line) -> Iterator[Line]:
        """The lines below, the nearest first."""
        place = self._end(line.start + len(line.raw))
        for _ in range(_REACH):
            if place >= len(self.text):
                return
            start = place + 1
            place = self._end(start)
            number = line.number + self._breaks(line.start, start)
            yield Line(self, start, self.text[start:place], number)

    def joint_in(self, start: int, end: int) -> Joint | None:
        """The last place between two where lines were joined."""
        at = bisect_left(self._places, end)
        return self._joints[at - 1] if at and self._places[at - 1] > start else None

    def _breaks(self, start: int, end: int) -> int:
        """The line breaks that the paste has between two places."""
        joined = bisect_right(self._places, end) - bisect_right(self._places, start)
        return self.text.count("\n", start, end) + joined

    def _start(self, place: int) -> int:
        floor = max(0, place - BEFORE)
        found = max(self.text.rfind(mark, floor, place) for mark in self._ends)
        return floor if found < 0 else found + 1

    def _end(self, place: int) -> int:
        roof = min(len(self.text), place + BEHIND)
        for mark in self._ends:
            found = self.text.find(mark, place, roof)
            if found >= 0:
                roof = found
        return roof

    def _number(self, start: int) -> int:
        place, number = self._counted
        if start < place:
            place, number = 0, 1
        number += self._breaks(place, start)
        self._counted = (start, number)
        return number


class Line:
    """One line: ``raw`` as it stands, ``body`` without the prefix that ``stream`` is told by."""

    __slots__ = ("body", "lower", "number", "raw", "source", "start", "stream")

    def __init__(self, source: Source, start: int, raw: str, number: int) -> None:
        self.source = source
        self.start = start
        self.raw = raw
        self.number = number
        self.stream, self.body = split_prefix(raw)
        self.lower = self.body.lower()

    @property
    def width(self) -> int:
        """How wide the line is in the paste; its last part where it was joined of several."""
        end = self.start + len(self.raw)
        joint = self.source.joint_in(self.start, end)
        return len(self.raw) if joint is None else end - joint.place + joint.prefix

    @property
    def width_before(self) -> int | None:
        """How wide the part of a joined line before the last is; None where none was joined."""
        joint = self.source.joint_in(self.start, self.start + len(self.raw))
        return None if joint is None else joint.before

    def above(self, count: int) -> Iterator[Line]:
        """Up to ``count`` lines of the same stream above this one, the nearest first."""
        yield from self._same_stream(self.source.before(self), count)

    def below(self, count: int) -> Iterator[Line]:
        """Up to ``count`` lines of the same stream below this one, the nearest first."""
        yield from self._same_stream(self.source.behind(self), count)

    def _same_stream(self, lines: Iterator[Line], count: int) -> Iterator[Line]:
        for line in lines:
            if line.stream == self.stream:
                if count == 0:
                    return
                count -= 1
                yield line

    def shown(self, place: int = 0) -> str:
        """The line as a mention carries it, around a place where it is long."""
        if len(self.body) <= MAX_LINE:
            return self.body
        start = max(0, min(place - MAX_LINE // 3, len(self.body) - MAX_LINE))
        return self.body[start : start + MAX_LINE].strip()

    def mention(
        self,
        what: str,
        place: int = 0,
        *,
        symbol: str | None = None,
        version: str | None = None,
        library: str | None = None,
        file: str | None = None,
        detail: dict[str, str] | None = None,
    ) -> Mention:
        """A mention of this line."""
        return Mention(
            what,
            self.shown(place),
            self.number,
            self.stream,
            symbol or None,
            version or None,
            library or None,
            file or None,
            {key: text for key, text in (detail or {}).items() if text},
        )
