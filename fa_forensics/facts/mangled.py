"""The plain beginning of a mangled name: what all overloads of one function share.

Reads the leading part of the Itanium C++ ABI's <encoding>: ``_Z``, ``N``, qualifiers and
source names. Everything behind it (templates, substitutions, parameters) is left alone.
"""

from __future__ import annotations

import re

#: How an exported name relates to the one that was asked for.
SAME_NAME = "same name"
OTHER_FLAVOUR = "other std::string flavour"
OTHER_PARAMETERS = "other parameters"

#: How operators are spelled in mangled names (Itanium C++ ABI, <operator-name>); those
#: with a unary and a binary form have two codes.
OPERATORS: dict[str, tuple[str, ...]] = {
    "new": ("nw",), "new[]": ("na",), "delete": ("dl",), "delete[]": ("da",),
    "~": ("co",), "+": ("pl", "ps"), "-": ("mi", "ng"), "*": ("ml", "de"), "/": ("dv",),
    "%": ("rm",), "&": ("an", "ad"), "|": ("or",), "^": ("eo",), "=": ("aS",), "+=": ("pL",),
    "-=": ("mI",), "*=": ("mL",), "/=": ("dV",), "%=": ("rM",), "&=": ("aN",), "|=": ("oR",),
    "^=": ("eO",), "<<": ("ls",), ">>": ("rs",), "<<=": ("lS",), ">>=": ("rS",), "==": ("eq",),
    "!=": ("ne",), "<": ("lt",), ">": ("gt",), "<=": ("le",), ">=": ("ge",), "<=>": ("ss",),
    "!": ("nt",), "&&": ("aa",), "||": ("oo",), "++": ("pp",), "--": ("mm",), ",": ("cm",),
    "->*": ("pm",), "->": ("pt",), "()": ("cl",), "[]": ("ix",),
}  # fmt: skip

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: An operator as a part of a readable qualified name without spaces.
OPERATOR = re.compile(r"operator(new(?:\[\])?$|delete(?:\[\])?$|\W.*|\w+$)")
#: Every code, and that of conversions.
OPERATOR_CODES = {code.encode() for codes in OPERATORS.values() for code in codes} | {b"cv"}
#: As texts without spaces say it.
_ANONYMOUS = "(anonymousnamespace)"
_ANONYMOUS_MANGLED = "12_GLOBAL__N_1"
_SPECIAL = re.compile(rb"_Z(?:T[VTIS]|GV)")
_COMPONENT = re.compile(rb"(\d+)")
_STRUCTOR = re.compile(rb"[CD][0-9]")
_NAMED = re.compile(rb"_Z(?:NK?[RO]?)?\d")
_QUALIFIED = re.compile(rb"_ZNK?[RO]?(?=\d)")
_QUALIFIERS = (b"", b"K", b"R", b"KR", b"O", b"KO")
_STRUCTOR_END = re.compile(rb"[CD][0-9]$")


def mangled_prefix(name: bytes) -> bytes:
    """The mangled start that all overloads of a name share, as far as it is plain.

    Reads ``_Z``, ``N``, CV qualifiers and the leading source names of the Itanium grammar
    (<nested-name>); stops at templates, substitutions and ABI tags.
    """
    special = _SPECIAL.match(name)
    if special:
        return name
    at = 2
    nested = name[at : at + 1] == b"N"
    if nested:
        at += 1
        while name[at : at + 1] in (b"r", b"V", b"K", b"R", b"O"):
            at += 1
    while True:
        number = _COMPONENT.match(name, at)
        # No name has a length of ten digits; int() of a longer one is slow, then an error.
        if number is None or len(number[1]) > 9:
            break
        end = number.end() + int(number[1])
        if end > len(name):
            break
        at = end
        if not nested:
            break
    structor = _STRUCTOR.match(name, at)
    if structor and nested:
        at = structor.end()
    return name[:at]


def const_spellings(prefix: bytes) -> tuple[bytes, ...]:
    """The prefix with and without a const method's ``K``: constness is drift too."""
    if prefix.startswith(b"_ZNK"):
        return prefix, b"_ZN" + prefix[4:]
    if prefix.startswith(b"_ZN"):
        return prefix, b"_ZNK" + prefix[3:]
    return (prefix,)


def qualifier_spellings(prefix: bytes) -> tuple[bytes, ...]:
    """The prefix with every combination of a method's const, ``&`` and ``&&``."""
    match = _QUALIFIED.match(prefix)
    if match is None:
        return (prefix,)
    rest = prefix[match.end() :]
    return tuple(b"_ZN" + qualifiers + rest for qualifiers in _QUALIFIERS)


def scope_parts(scope: str) -> list[str]:
    """The parts of a qualified name; ``::`` within template arguments does not part.

    ``scope`` is without spaces: ``(anonymousnamespace)``.
    """
    parts, depth, start = [], 0, 0
    for at, char in enumerate(scope):
        if at == start and OPERATOR.match(scope, at):
            break  # an operator comes last, and its "<" opens nothing
        depth += (char in "<(") - (char in ">)")
        if char == ":" and not depth and scope.startswith("::", at):
            parts.append(scope[start:at])
            start = at + 2
    return [part for part in (*parts, scope[start:]) if part]


def mangled_body(parts: list[str]) -> tuple[tuple[str, ...], bytes]:
    """The mangled form of a name's plain leading parts, and what may come behind it.

    Several forms where the text leaves them open; no bytes: anything may come.
    """
    body = ""
    for index, part in enumerate(parts):
        operator = OPERATOR.match(part)
        identifier = IDENTIFIER.match(part)
        if part == _ANONYMOUS:
            body += _ANONYMOUS_MANGLED
        elif operator:
            # A conversion operator without its space looks like an identifier.
            codes = OPERATORS.get(operator[1], ("cv", f"{len(part)}{part}"))
            return tuple(body + code for code in codes), b""
        elif index and part == parts[index - 1].split("<")[0]:
            return (body + "C",), b"0123456789I"
        elif index and part.startswith("~"):
            return (body + "D",), b"0123456789"
        elif identifier:
            body += f"{len(identifier[0])}{identifier[0]}"
            if identifier[0] != part:  # template arguments: only what came before is plain
                return (body,), b"I"
        else:
            return (body,), b""
    return (body,), b"EIB"


def plain_start(name: bytes) -> bytes:
    """What all overloads of a function have in common, for grouping them.

    The plain start without const, ``&``, ``&&`` or the form of a constructor; the whole name
    where that says nothing: names of C and of ``std``, data, what is local to a function.
    """
    prefix = mangled_prefix(name)
    if not _NAMED.match(prefix):
        return name
    prefix = _QUALIFIED.sub(b"_ZN", prefix)
    if _STRUCTOR_END.search(prefix):
        return prefix[:-1]
    code = name[len(prefix) : len(prefix) + 2]
    return prefix + code if code in OPERATOR_CODES else prefix


#: What may stand before the mangled scope of a name: functions, const ones, data of classes
#: (vtable, VTT, typeinfo), guards, thread-local helpers, what is local to a function.
_SCOPED = (
    "_ZN", "_ZNK", "_ZTVN", "_ZTTN", "_ZTIN", "_ZTSN", "_ZGVN", "_ZGRN", "_ZTHN", "_ZTWN",
    "_ZZN", "_ZZNK", "_ZGVZN", "_ZGVZNK",
)  # fmt: skip
#: Thunks have numbers before the scope.
_THUNKS = (b"_ZTh", b"_ZTv", b"_ZTc")


def mangled_scopes(namespace: str) -> tuple[bytes, ...]:
    """The mangled starts of all names in a namespace or class; none where that cannot be said.

    They are starts of other names, too: only the readable form decides.
    """
    parts = scope_parts(namespace.replace(" ", ""))
    if not parts or parts[0] == "std":  # std is abbreviated in many ways
        return ()
    bodies, _ = mangled_body(parts)
    if not all(bodies):
        return ()
    return (*(f"{start}{body}".encode() for start in _SCOPED for body in bodies), *_THUNKS)


def shared_start(one: str, other: str) -> int:
    """How many characters two texts have in common from the start."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
