"""Symbol names as people paste them: mangled or not, with or without a version."""

from __future__ import annotations

import re

from fa_forensics.facts.demangle import MAX_MANGLED, demangle, qualified_name
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

_MANGLED = lazily(r"_{1,3}Z[\w.$]+")
_VERSIONED = lazily(
    r"(?<![\w.$])(?P<name>[A-Za-z_][\w.$]*)"
    r"(?:@@?|,\s+version\s+|\s+version\s+(?=[A-Z]\w*_|lib))(?P<version>[\w.+-]+)"
)
_C_NAME = lazily(r"[A-Za-z_]\w*")
_AFTER_COLON = lazily(r"(?:undefined symbol|Symbol not found)\s*:\s*", re.IGNORECASE)
#: A C++ name with a scope or a parameter list: ``c10::cuda::SetDevice(int)``.
_READABLE = lazily(r"[\w:~<>\[\]\s,&*()]*(?:::|\()[\w:~<>\[\]\s,&*()=!+\-/|^%.]*")
#: What a readable name has and a sentence has not: a scope, or parameters right behind a name.
_NAMED = lazily(r"[A-Za-z_~]\w*(?:\[abi:\w+\])?(?:::|\()|operator|[>\]]\(")


#: A colon by itself, which no C++ name has; what may stand behind a parameter list.
_LONE_COLON = lazily(r"(?<!:):(?!:)")
_QUALIFIERS = lazily(r"\s*(?:const|volatile|noexcept)\b")


#: What a parameter list begins with, told from a file or a remark in brackets.
PARAMETERS = lazily(
    r"\(\s{0,3}(?:\)|(?:const\s{1,3})?(?:(?:void|bool|char|short|int|long|float|double|unsigned"
    r"|signed|size_t|u?int\d\d?_t)\b|\w{1,60}(?:::|\s?[&*<])))"
)
_AROUND_SCOPE = lazily(r"(?<=[\w>]) ?:: (?=[\w~])|(?<=[\w>]) :: ?(?=[\w~])")
_NAME_AND_BLANK = lazily(r"[\w:~]{1,1000} (?=\()")


def without_blanks(text: str) -> str:
    """A readable name without the blanks that some write: ``c10 :: f (int , bool)``.

    Blanks within a template's arguments stay: ``std::function<void (int)>`` has one.
    """
    text = _AROUND_SCOPE.sub("::", " ".join(text.split())).replace(" ,", ",")
    name = _NAME_AND_BLANK.match(text)
    if name is not None and "::" in name[0] and PARAMETERS.match(text, name.end()):
        text = name[0][:-1] + text[name.end() :]
    return text


@dataclass(frozen=True, slots=True)
class SymbolText:
    """One symbol as it was meant.

    ``name`` is the linker's name, or None when only a readable C++ name was given;
    ``demangled`` is the readable form; ``version`` the symbol version, if one stood there.
    """

    name: str | None
    demangled: str
    version: str | None


def parse_symbol(text: str) -> SymbolText | None:
    """Read a pasted symbol; None when the text holds no symbol name.

    Understands the loader's ``undefined symbol: NAME, version V``, ``NAME@V``, the extra
    leading underscore of macOS (``__ZN…``) and readable C++ names.
    """
    text = _AFTER_COLON.split(text.strip())[-1].strip().strip("'\"`")
    if not text or len(text) > 4 * MAX_MANGLED:
        return None
    version = None
    match = _VERSIONED.search(text)
    if match is not None:
        version = match["version"]
    mangled = _MANGLED.search(text)
    if mangled is not None:
        name = "_Z" + mangled[0].split("Z", 1)[1].rstrip(".")
        readable = demangle(name)
        if readable != name:
            return SymbolText(name, readable, version)
        if not _within_a_name(text, mangled.start()):
            return None  # starts like a mangled name but is none, or is cut off
    if match is not None and match["name"] == text[: len(match["name"])]:
        return SymbolText(match["name"], match["name"], version)
    if _C_NAME.fullmatch(text):
        return SymbolText(text, text, None)
    text = without_blanks(text)
    if _READABLE.fullmatch(text) and _NAMED.search(text) and not _is_sentence(text):
        return SymbolText(None, text, None)
    return None


def _within_a_name(text: str, place: int) -> bool:
    """Whether the letters _Z stand inside of a name of C: ``_Py_ZeroStruct`` of Python 2."""
    return text[place - 1 : place].isalnum() and _C_NAME.match(text) is not None


def _is_sentence(text: str) -> bool:
    """Whether a text with a parenthesis is prose: ``RuntimeError: Error(s) in loading ...``."""
    behind = text.rpartition(")")[2] if ")" in text else ""
    return _LONE_COLON.search(text) is not None or (
        re.match(r"\s*[A-Za-z]", behind) is not None and not _QUALIFIERS.match(behind)
    )


#: Demangled beginnings of data that belongs to a class, and how they are mangled.
_SPECIAL = {
    "vtable for ": "_ZTV",
    "VTT for ": "_ZTT",
    "typeinfo for ": "_ZTI",
    "typeinfo name for ": "_ZTS",
}


def mangled_special(demangled: str) -> str | None:
    """The mangled name of a plain class's vtable or typeinfo; None for anything else."""
    for words, prefix in _SPECIAL.items():
        if demangled.startswith(words):
            parts = demangled[len(words) :].split("::")
            if not all(_C_NAME.fullmatch(part) for part in parts) or parts[0] == "std":
                return None
            body = "".join(f"{len(part)}{part}" for part in parts)
            return f"{prefix}N{body}E" if len(parts) > 1 else prefix + body
    return None


def mangled_scope(demangled: str) -> bytes | None:
    """The mangled start of a plain qualified name.

    ``c10::cuda::SetDevice`` gives ``_ZN3c104cuda9SetDevice``.

    None for templates and operators, whose mangled form cannot be written from the text.
    """
    parts = qualified_name(demangled).replace("[abi:cxx11]", "").split("::")
    if parts[0] == "std":
        return None  # abbreviated in many ways: St, Ss, Sa …
    if not all(_C_NAME.fullmatch(part) for part in parts):
        return None
    body = "".join(f"{len(part)}{part}" for part in parts)
    if len(parts) > 1 and parts[-1] == parts[-2]:  # a constructor: its name is C1, C2
        body = "".join(f"{len(part)}{part}" for part in parts[:-1]) + "C"
    return ("_ZN" + body if len(parts) > 1 else "_Z" + body).encode()
