"""Other languages than English: which one is wanted, and text laid out in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

#: Puts one of our own sentences, or a word of the layout, into the language that is wanted.
Say = Callable[[str], str]

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)


def language(asked: str | None, environ: Mapping[str, str]) -> str:
    """The language to write in: as asked for, else by the locale's own rule for messages.

    LANGUAGE (a GNU list) counts where a locale other than C is set, then LC_ALL, LC_MESSAGES
    and LANG, the first that is not empty (POSIX, "Environment Variables", 8.2).
    """
    if asked is not None:
        return asked
    locale = next(
        (environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), ""
    )
    if locale.split(".")[0] in ("", "C", "POSIX"):
        return ENGLISH
    wanted = (environ.get("LANGUAGE") or locale).split(":")[0]
    return CHINESE if wanted.lower().startswith("zh") else ENGLISH


def plain(text: str) -> str:
    """English: the text as it is."""
    return text


def speaker(lang: str) -> Say:
    """What says our sentences in a language; the table is read for Chinese alone."""
    if lang != CHINESE:
        return plain
    from fa_forensics.render.lang.translate import chinese_words

    return chinese_words().say


def columns(text: str) -> int:
    """How many columns a terminal gives a text: two for a wide character (UAX 11)."""
    return len(text) if text.isascii() else sum(1 + _is_wide(char) for char in text)


def _is_wide(char: str) -> bool:
    from unicodedata import east_asian_width  # not needed for English

    return east_asian_width(char) in "WF"


def padded(label: str, width: int) -> str:
    """A label with blanks after it, up to so many columns."""
    return label + " " * (width - columns(label))


def lay_out(text: str, width: int, first: str, rest: str) -> list[str]:
    """Wrap a text that may break between wide characters, and at spaces."""
    lines: list[str] = []
    line = first
    for piece in breakable(text):
        if columns(line) + columns(piece.rstrip()) > width and line.strip() and line != rest:
            lines.append(line.rstrip())
            line = rest
        line += piece if line not in (first, rest) else piece.lstrip()
    lines.append(line.rstrip())
    return lines


#: Marks that may not begin a line, and those that may not end one.
_CLOSING = "，。；：！？、）》”’」"  # noqa: RUF001
_OPENING = "（《“‘「"  # noqa: RUF001


def breakable(text: str) -> list[str]:
    """The parts of a text between which a line may end: at blanks, and at wide characters."""
    out: list[str] = []
    for char in text:
        wide = _is_wide(char)
        start = not out or out[-1].endswith(" ") or (wide or _is_wide(out[-1][-1]))
        bound = char == " " or char in _CLOSING or (out and out[-1][-1] in _OPENING)
        if out and (bound or not (start or wide)):
            out[-1] += char
        else:
            out.append(char)
    return out
