"""What the text renderers share: escaping, colour, wrapping, order and words for numbers.

Text output is ASCII apart from letters that come from the inspected files' own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from fa_forensics.render.lang import Say, breakable, columns

#: Narrower than this no layout holds; a pipe or a tiny window is treated as this wide.
MIN_WIDTH = 40

_RESET = "\x1b[0m"
#: ECMA-48 "select graphic rendition" sequences, each bold but for ``dim``.
_CODES = {
    "bold": "\x1b[1m",
    "red": "\x1b[1;31m",
    "yellow": "\x1b[1;33m",
    "cyan": "\x1b[1;36m",
    "green": "\x1b[1;32m",
    "dim": "\x1b[2m",
}

Paint = Callable[[str, str], str]


def painter(color: bool) -> Paint:
    """A function ``paint(text, style)``; without colour it returns the text as it is."""
    if not color:
        return lambda text, style: text
    return lambda text, style: f"{_CODES[style]}{text}{_RESET}" if text else text


def escape(text: str) -> str:
    r"""Text that cannot move the cursor, change colours, forge a line or reverse its reading.

    Everything that Unicode calls non-printable (control and format characters such as
    ESC, line feed and the bidi marks, bytes that are no UTF-8) becomes
    ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``. So does a space at either end, which would
    not be seen.
    """
    if text.isprintable() and text[:1] != " " and text[-1:] != " ":
        return text
    shown = [char if char.isprintable() else _escaped(char) for char in text]
    for end in (0, -1):
        if shown[end] == " ":
            shown[end] = "\\x20"
    return "".join(shown)


def _escaped(char: str) -> str:
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # stands for one byte that is no UTF-8 (PEP 383)
        number -= 0xDC00
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def pieces(text: str) -> list[str]:
    """Cut a sentence where a line may end: at spaces, but never inside a C++ name.

    A bracket that follows its name without a space binds what it encloses
    (``f(signed char)``, ``map<a, b>``); so does ``(anonymous namespace)``. A trailing
    ``const`` belongs to the name, as does what follows ``operator``. Text in backquotes
    is one piece. A bracket that never closes binds nothing.
    """
    bound = _bound_spans(text)
    out: list[str] = []
    start = 0
    inside = 0
    for at, char in enumerate(text):
        inside += bound[at]
        if char != " " or inside or _belongs_together(text, start, at):
            continue
        if at > start:
            out.append(text[start:at])
        start = at + 1
    if start < len(text):
        out.append(text[start:])
    return out


def _belongs_together(text: str, start: int, space: int) -> bool:
    """Whether the words on both sides of a space are one name, bracketless as they are."""
    if space == start:
        return False
    if text.startswith("const", space + 1) and text[space - 1] == ")":
        return not text[space + 6 : space + 7].isalnum()
    return text.endswith("operator", start, space)


def _bound_spans(text: str) -> list[int]:
    """+1 where a span that must not be cut begins, -1 where it ends; one pass over the text."""
    bound = [0] * (len(text) + 1)
    stack: list[int] = []
    quote = -1
    for at, char in enumerate(text):
        before = text[at - 1] if at else " "
        if char == "`":
            if quote >= 0:
                bound[quote] += 1
                bound[at] -= 1
            quote = at if quote < 0 else -1
        elif char in "([":
            if before != " " or text.startswith("(anonymous namespace)", at):
                stack.append(at)
        elif char == "<":
            if before.isalnum() or before == "_":
                stack.append(at)
        elif char in ")]":
            # An unmatched "<" before it was a sign of its own: operator<, operator<<.
            while stack and text[stack[-1]] == "<":
                stack.pop()
            if stack:
                bound[stack.pop()] += 1
                bound[at] -= 1
        elif char == ">" and stack and text[stack[-1]] == "<":
            bound[stack.pop()] += 1
            bound[at] -= 1
    return bound


def flow(parts: Iterable[str], width: int, first: str, rest: str, gap: str = " ") -> list[str]:
    """Lay unbreakable parts into lines of at most ``width`` columns where that is possible.

    The first line starts with ``first``, the others with ``rest``. A part longer than a
    line stands on one of its own and is not cut. No line ends in a space.
    """
    lines: list[str] = []
    line = first
    empty = True
    for part, before in _breakable(parts, gap):
        if not empty and columns(line) + columns(before + part) > width:
            lines.append(line.rstrip(" "))
            line, empty = rest, True
        line += part if empty else before + part
        empty = False
    lines.append(line.rstrip(" "))
    return lines


def _breakable(parts: Iterable[str], gap: str) -> Iterator[tuple[str, str]]:
    """Each part with what goes before it; one in a wide script may end a line anywhere."""
    for part in parts:
        if columns(part) == len(part):
            yield part, gap
            continue
        for number, piece in enumerate(breakable(part)):
            yield piece, "" if number else gap


def said_parts(parts: list[str], say: Say) -> list[str]:
    """The parts of a row in another language, where that has words for them."""
    text = " ".join(parts)
    said = say(text)
    return parts if said == text else pieces(said)


def sentence(text: str, width: int, first: str, rest: str) -> list[str]:
    """Wrap one sentence, escaped: a line feed in it is shown and starts no line."""
    return flow(pieces(escape(text.strip())), width, first, rest)


def without_arguments(name: str) -> str:
    """A readable C++ name with its last parameter list as ``(...)``: ``f(...) const``."""
    depth = 0
    end = name.rfind(")")
    for at in range(end, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return f"{name[:at]}(...){name[end + 1 :]}"
    return name


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that reads runs of digits as numbers: 2.2.0, 2.10.0; sm_90, sm_90a, sm_100."""
    key: list[tuple[int, int, str]] = []
    run = ""
    for char in text:
        if run and _is_digit(char) != _is_digit(run[0]):
            key.append(_run_key(run))
            run = ""
        run += char
    if run:
        key.append(_run_key(run))
    return tuple(key)


def _is_digit(char: str) -> bool:
    return "0" <= char <= "9"


def _run_key(run: str) -> tuple[int, int, str]:
    if not _is_digit(run[0]):
        return (1, 0, run)
    # By length, then as text: the order of numbers, and no limit on how many digits.
    digits = run.lstrip("0")
    return (0, len(digits), digits)


def size_text(size: int) -> str:
    """A size in bytes as people read it: ``17 bytes``, ``4.0 KiB``, ``242.4 MiB``."""
    if size < 1024:
        return f"{size} bytes"
    value = size / 1024
    for unit in ("KiB", "MiB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def counted(number: int, noun: str) -> str:
    """``1 library``, ``9 libraries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def short_path(path: str) -> str:
    """A path as a reader knows it: what follows ``site-packages/``, else the whole path."""
    for folder in ("/site-packages/", "/dist-packages/"):
        head, found, tail = path.rpartition(folder)
        if found and head and tail:
            return tail
    return path


def file_name(path: str) -> str:
    """The last component of a path (what follows the last slash)."""
    return path.rstrip("/").rpartition("/")[2] or path


def mappings(mapping: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """The mappings in a list-valued field; an absent field is an empty list."""
    value = mapping.get(key)
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def text_of(mapping: Mapping[str, object], key: str) -> str | None:
    """A field that holds text; None where it is absent or empty."""
    value = mapping.get(key)
    return value if isinstance(value, str) and value else None


def strings_of(mapping: Mapping[str, object], key: str) -> list[str]:
    """The texts in a list-valued field; an absent field is an empty list."""
    value = mapping.get(key)
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, str)]


def release_parts(releases: Iterable[str]) -> list[str]:
    """Releases in order; more than six become the first, the last and their number."""
    names = sorted((escape(name) for name in releases), key=natural_key)
    if len(names) > 6:
        return [names[0], "...", names[-1], f"({len(names)} releases)"]
    return names
