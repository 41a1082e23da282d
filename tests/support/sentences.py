"""The English sentences that the sources can say, as templates with numbered gaps."""

from __future__ import annotations

import ast
import re
from pathlib import Path


def template_of(node: ast.expr) -> str | None:
    """A string or an f-string with its values as ``{1}``, ``{2}``; values side by side are one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    parts: list[str | None] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif not parts or parts[-1] is not None:
            parts.append(None)
    out, gaps = "", 0
    for part in parts:
        if part is None:
            gaps += 1
        out += f"{{{gaps}}}" if part is None else part
    return out


def sentences_in(path: Path) -> list[str]:
    """Every text of a source file that holds a blank and is no docstring, in its order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            aside.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            aside.update(id(value) for value in node.values)
            aside.update(
                id(part)
                for value in node.values
                if isinstance(value, ast.FormattedValue) and value.format_spec is not None
                for part in ast.walk(value.format_spec)
            )
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in aside:
            text = template_of(node)
            if text is not None and " " in text.strip() and is_prose(text):
                found.append((node.lineno, node.col_offset, text))
    return list(dict.fromkeys(text for _, _, text in sorted(found)))


#: Commands, regular expressions and shell words are the same in every language.
_NO_PROSE = re.compile(
    r"""\\[swdb]|\(\?|^\{\d\}\ (-c|-m|-X|install|list|show|check|index|debug|uninstall)\b
    |\ -c\ '|\ -m\ |-m\ pip|pip\ install\ |^fa-forensics\ |
    ^(ldd|readelf|nm|find|grep|ls|rm|cat|head|echo|env|export|unset|conda|patchelf|getconf|findmnt
    |ldconfig|nvidia-smi|nvcc|gcc|cd|sudo|apt-get|ninja|rocminfo|ptxas|ulimit|python|pip)
    \ [^a-z]*[-'"/$|a-z]\S*(\ [-|'"/$\{].*)?$""",
    re.VERBOSE,
)


def is_prose(text: str) -> bool:
    """Whether a text is written for people: not a command, a pattern or a list of names."""
    return _NO_PROSE.search(text) is None and re.search(r"[a-z]{2}", text) is not None
