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


#: Patterns and quoted Python; beginnings of shell commands.
_CODE = re.compile(
    r"\\[swdb]|\(\?|\ -c\ '|\ -m\ |-m pip|^-[cg]|^std::|^import [{A-Z]|^from [{A-Z]\S* import"
    r"|-c \"|\|\w+\||\]\?\w"
)
_COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ |\{\d\} )*(?:apt-get|cat|cd|check|command|conda|debug|df|dmesg|dnf|docker info"
    r"|echo|env|export|fa-forensics|file|find|findmnt|for f|gcc --version|getconf|getenforce|grep"
    r"|head|hipcc|index|install|ldconfig|ldd|list|ls|ninja|nm|npu-smi|nvcc|nvidia-smi|patchelf|ptxas"
    r"|python|readelf|rm|rocminfo|show|sudo|systemctl|ulimit|uname|uninstall|unset|uv pip"
    r"|\./YOUR_PROGRAM|-X|--kernels)"
    r"(?:[ ;]|$)"
)


def is_prose(text: str) -> bool:
    """Whether a text is written for people: not a command, a pattern or a name."""
    if _CODE.search(text) or not re.search(r"[a-z]{2}", text):
        return False
    return _COMMAND.match(text) is None or text.rstrip()[-1:] in ".:" or ": " in text
