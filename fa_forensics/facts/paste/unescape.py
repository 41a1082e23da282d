"""Pasted text brought back to what the program printed.

Browsers, chats, notebooks and log collectors change a text on its way: escapes for colours,
for HTML, for addresses, for JSON, typographic quotes, fullwidth punctuation. Everything here
runs over the whole text in time proportional to its length.
"""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: No more than this of a text is read (characters): its beginning and its end.
MAX_TEXT = 4 << 20
#: How much of a longer text's end is read (characters).
TAIL = 3 << 19

#: No more than this of what is no text.
MAX_BINARY = 1 << 20

#: Ends a line inside one line of the paste: a carriage return, or a line break written as \n.
SOFT = "\x1f"

_HARD_TO_SEE = dict.fromkeys(
    (0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x00AD, 0x202A, 0x202C), ""
)
_LOOKALIKES: dict[int, str] = {
    **{0xFF01 + n: chr(0x21 + n) for n in range(94)},  # fullwidth forms of ASCII
    **dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032, 0x00B4), "'"),
    **dict.fromkeys((0x201C, 0x201D, 0x201E, 0x2033, 0x300C, 0x300D, 0x300E, 0x300F), '"'),
    **dict.fromkeys((0x00AB, 0x00BB), '"'),
    **dict.fromkeys((0x00A0, 0x2002, 0x2003, 0x2009, 0x202F, 0x3000), " "),
    **dict.fromkeys((0x2028, 0x2029, 0x0085), "\n"),
    0x2026: "...",
    0x3001: ",",
    0x3002: ". ",
    0x0130: "I",  # the one letter whose lower case is longer than itself
    0x241B: "\x1b",
    **_HARD_TO_SEE,
}
#: UTF-8 read as Windows-1252, as terminals and web forms do to a compiler's quotes.
_MISREAD = {
    "\xe2\u20ac\u02dc": "'", "\xe2\u20ac\u2122": "'", "\xe2\u20ac\u0153": '"',
    "\xe2\u20ac\x9d": '"',
    "\xe2\u20ac\xa6": "...", "\xc2\xa0": " ",
}  # fmt: skip

_LOOKALIKE = lazily("[" + re.escape("".join(map(chr, _LOOKALIKES))) + "]")
_COLOUR = lazily(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\\e|\^\[)"
    r"(?:\[[0-9;:?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[()][A-B0-2])"
)
#: Colours whose escape character was lost on the way.
_COLOUR_REST = lazily(r"\[(?:\d{1,3}(?:;\d{1,3}){0,5}m|K)")
_TAG = lazily(
    r"</?(?:br|code|pre|span|p|div|b|i|em|strong|a|li|td|tr|tt|kbd|samp|font|blockquote)"
    r"(?:\s[^<>\n]{0,300})?/?>",
    re.IGNORECASE,
)
_ENTITIES = {
    "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&#039;": "'",
    "&apos;": "'", "&#96;": "`", "&#x60;": "`", "&nbsp;": " ", "&#x2F;": "/", "&#47;": "/",
    "&#34;": '"', "&#58;": ":", "&lsquo;": "'", "&rsquo;": "'", "&amp;": "&",
}  # fmt: skip
_ENTITY = lazily("|".join(map(re.escape, _ENTITIES)))
_PERCENT = lazily(r"%(?:20|3[aA]|0[aA])")
_ENCODED_ONE = lazily(r"%([0-9a-fA-F]{2})")
_ENCODED = {
    code: SOFT if code in ("0A", "0D") else chr(int(code, 16))
    for code in re.findall("..", "203A2F2722600A0D2C28295B5D3C3E402B5F3D263B237B7D5C092E2D7C")
}
#: With more escapes than this each sort is replaced at once, which costs the same for any number.
MANY = 50_000
_CONTROL = lazily(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd]")
#: A path that a web page or an editor made a link: ``[/x/_C.so](https://…)``.
_LINK = lazily(r"\[([^\[\]\n]{1,500})\]\((?:https?|vscode|file)[^()\s]{1,1000}\)")
#: A line break that JSON or repr() wrote as two characters. C:\new has none.
_WRITTEN_BREAK = lazily(r"(?<!\\)\\n(?![a-z_])")

#: The sides of the boxes that rich and others draw; the left one is a prefix of each line.
_SIDES = "\u2502\u2503\u2551"
_RIGHT_SIDE = lazily(rf"(?<=\S)[ \t]{{0,300}}[{_SIDES}][ \t]{{0,20}}(?=\n|\Z)")


def unescape(text: str) -> tuple[str, str | None]:
    """(the text as printed, what of it is not read and why).

    Lines stay lines: what becomes a line break on the way becomes ``SOFT``, so that the
    number of a line is its number in the paste.
    """
    if text.count("\0", 0, 1_000) * 3 > len(text[:1_000]):
        text = text.replace("\0", "")  # UTF-16, as PowerShell writes it, read byte by byte
    text, truncated = _bounded(text)
    text = text.replace("\r\n", "\n").replace(SOFT, " ").replace("\0", " ")
    if "\r" in text:
        text = text.replace("\r", SOFT)
    if not text.isascii():
        if "\xe2\u20ac" in text or "\xc2\xa0" in text:
            for misread, meant in _MISREAD.items():
                text = text.replace(misread, meant)
        text = plainly(text)
        if any(side in text for side in _SIDES):
            text = _RIGHT_SIDE.sub("", text)
    if "\x1b" in text or "\\u001b" in text or "\\x1b" in text or "\\033" in text or "^[[" in text:
        text = _COLOUR.sub("", text)
    text = _COLOUR_REST.sub("", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = _without_percent(text)
    text = _without_html(text)
    if "\\" in text:
        # A backslash before an underscore, a quote or a backtick is Markdown's or JSON's.
        drives = _DRIVE.search(text) is not None
        text = _MARKED.sub("_", text) if drives else text.replace("\\_", "_")
        text = text.replace("\\`", "`")
        text = _WRITTEN_BREAK.sub(SOFT, text)
        text = text.replace('\\"', '"').replace("\\'", "'")
        text = _TAB_ALONE.sub("\t", text) if drives else text.replace("\\t", "\t")
    return text, truncated


#: A path of Windows: there ``\\torch\\__init__.py`` is neither a tab nor Markdown.
_DRIVE = lazily(
    r"\b[A-Za-z]:\\{1,2}\w|\\(?:site|dist)-packages\\|(?:\.\.\.|\u2026)\\\w", re.IGNORECASE
)
_MARKED = lazily(r"\\_(?!\w{1,60}[\\.])")
_TAB_ALONE = lazily(r"(?<![\w.-])\\t")

#: So many kinds of lookalikes are faster replaced one by one.
_FEW_KINDS = 8


def plainly(text: str) -> str:
    """A text with ASCII's own quotes, spaces, colons and brackets in place of their lookalikes."""
    if len(_LOOKALIKE.findall(text, 0, 1 << 16)) > 1_000:
        there = [code for code in map(ord, set(text)) if code in _LOOKALIKES]
        if len(there) > _FEW_KINDS:
            return text.translate(_LOOKALIKES)  # looks at each character once, whatever it is
        for code in there:
            text = text.replace(chr(code), _LOOKALIKES[code])
        return text
    return _LOOKALIKE.sub(lambda match: _LOOKALIKES[ord(match[0])], text)


def _bounded(text: str) -> tuple[str, str | None]:
    most, tail = MAX_TEXT, TAIL
    if _is_binary(text):
        most, tail = MAX_BINARY, MAX_BINARY // 4
    if len(text) <= most:
        return text, None
    head = most - tail
    # The line numbers of the end are those of the paste.
    gap = "\n" * min(most, text.count("\n", head, len(text) - tail))
    why = (
        f"the text has {len(text):,} characters: {len(text) - most:,} in its middle were not read "
        f"(from character {head:,} on)"
    )
    return text[:head] + (gap or "\r") + text[-tail:], why


def _is_binary(text: str) -> bool:
    """Whether a text is no text: every tenth of its first characters is a control character."""
    sample = text[: 1 << 16]
    return 10 * len(_CONTROL.findall(sample)) > len(sample)


def _without_percent(text: str) -> str:
    """``undefined%20symbol%3A%20x`` as an address bar meant it."""
    for _ in range(2):  # copied once more, % itself is written %25
        if _PERCENT.search(text) is None:
            if "%2520" not in text:
                return text
            text = text.replace("%25", "%")
        if text.count("%") > MANY:
            for code, character in _ENCODED.items():
                text = text.replace("%" + code, character)
        else:
            text = _ENCODED_ONE.sub(lambda match: _ENCODED.get(match[1].upper(), match[0]), text)
    return text


def _without_html(text: str) -> str:
    if "&" in text:
        if text.count("&") > MANY:
            for entity, character in _ENTITIES.items():
                text = text.replace(entity, character)
        else:
            text = _ENTITY.sub(lambda match: _ENTITIES[match[0]], text)
    if "</" in text or "<br" in text:
        text = _TAG.sub("", text)
    return text
