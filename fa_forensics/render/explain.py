"""What codes mean, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fa_forensics import __version__
from fa_forensics.render.json import Document, head
from fa_forensics.render.lang import CHINESE, columns, lay_out
from fa_forensics.render.style import painter, sentence

_LABELS = {
    "en": ("means", "known by", "what to do"),
    "zh": ("含义", "", "怎么办"),
}


class Explained(Protocol):
    """What is shown of a code."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def means(self) -> str: ...  # noqa: D102
    @property
    def known_by(self) -> str: ...  # noqa: D102
    @property
    def do(self) -> str: ...  # noqa: D102
    @property
    def zh(self) -> tuple[str, str, str]: ...  # noqa: D102


def explain_text(
    codes: Sequence[Explained], brief: bool, lang: str, color: bool, width: int
) -> str:
    """One line a code with ``brief``, else each in full."""
    paint = painter(color)
    out: list[str] = []
    for code in codes:
        title, means, do = code.zh if lang == "zh" else (code.title, code.means, code.do)
        out.append(f"{paint(code.code, 'bold')}  {title}")
        if brief:
            continue
        rows = zip(_LABELS[lang], (means, code.known_by, do), strict=True)
        for label, text in rows:
            if label:
                first = f"  {label}{' ' * (10 - columns(label))}  "
                out += _wrapped(text, lang, width, first)
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def _wrapped(text: str, lang: str, width: int, first: str) -> list[str]:
    if lang == CHINESE:
        return lay_out(text, width, first, " " * columns(first))
    return sentence(text, width, first, " " * len(first))


def explain_document(codes: Sequence[Explained]) -> Document:
    """The document of ``explain``."""
    return {
        **head(__version__, None),
        "codes": [
            {
                "code": code.code,
                "title": code.title,
                "means": code.means,
                "known_by": code.known_by,
                "do": code.do,
            }
            for code in codes
        ],
    }
