"""C++ names made readable, by libstdc++'s own demangler through cxxfilt."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily

if TYPE_CHECKING:
    import cxxfilt

#: Names longer than this (bytes) are shown as they are. The longest in torch 2.9.1's
#: libraries and in the extensions of the fixtures has 1,995 bytes.
MAX_MANGLED = 16_384
#: A back reference (S_, T_ …) repeats all that it refers to, so that a name of 235 bytes
#: can demangle to 276 MB. Names with more references than this are demangled in a child
#: with limits; of 20,800 undefined names in real extensions and torch libraries, 2 have more.
MANY_REFERENCES = 24
#: Longer readable forms (bytes) are not wanted; this also fits into a pipe unread.
MAX_READABLE = 65_536
CHILD_SECONDS = 2.0
#: Names for one child. Of real ones it does 20,000 in its second.
CHILD_NAMES = 500

_REFERENCE = lazily(r"S[0-9A-Z]*_|T[0-9]*_")

#: What folds the two std::string flavours onto one text, in demangled form.
_CXX11_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@lru_cache(maxsize=1)
def _demangler() -> cxxfilt.Demangler | None:
    """cxxfilt's demangler over libstdc++, or None where the system has no libstdc++.

    cxxfilt looks for its libraries with ``ctypes.util.find_library``, which runs
    ldconfig twice and, where that finds nothing, a compiler. The loader finds both by
    their sonames in microseconds, so the search is answered from here.
    """
    try:
        return _by_soname()
    except OSError:
        pass  # no glibc or no libstdc++ under the usual sonames: let cxxfilt search
    try:
        from ctypes.util import find_library

        import cxxfilt

        libc = find_library("c")
        libcxx = find_library("stdc++") or find_library("c++")
        return cxxfilt.Demangler(libc, libcxx) if libc and libcxx else None
    except OSError:
        return None


def _by_soname() -> cxxfilt.Demangler:
    """The demangler, with a stand-in for ctypes.util while cxxfilt is imported.

    ctypes.util imports subprocess, shutil and tempfile, a tenth of a short run; cxxfilt asks
    it for two names, once.

    Raises:
        OSError: one of the two libraries is not here.

    """
    import ctypes

    name = "ctypes.util"
    before = sys.modules.get(name)
    stand_in = ModuleType(name)
    stand_in.find_library = {"c": "libc.so.6", "stdc++": "libstdc++.so.6"}.get  # type: ignore[attr-defined]
    sys.modules[name] = ctypes.util = stand_in
    try:
        import cxxfilt
    finally:
        if before is None:
            del sys.modules[name], ctypes.util
        else:
            sys.modules[name] = ctypes.util = before
    return cxxfilt.Demangler("libc.so.6", "libstdc++.so.6")


def can_demangle() -> bool:
    """Whether this system has a C++ runtime to demangle with."""
    return _demangler() is not None


def demangle(name: str) -> str:
    """The readable form of a mangled name; the name itself when it is not one.

    A name that a demangler would blow up to more than ``MAX_READABLE`` bytes stays as it is.
    """
    if not name.startswith("_Z") or len(name) > MAX_MANGLED:
        return name
    demangler = _demangler()
    if demangler is None:
        return name
    if len(_REFERENCE.findall(name)) > MANY_REFERENCES:
        return _in_child(demangler, [name])[0]
    return _here(demangler, name)


def demangle_many(names: Sequence[str]) -> list[str]:
    """The readable form of each name, as ``demangle`` gives it.

    Much faster for thousands of names: those with many references share one child.
    """
    demangler = _demangler()
    if demangler is None:
        return list(names)
    found: list[str] = []
    hard: list[int] = []
    for at, name in enumerate(names):
        plain = not name.startswith("_Z") or len(name) > MAX_MANGLED
        # Each reference ends with an underscore: most names have too few to count them.
        many = name.count("_") > MANY_REFERENCES
        if not plain and many and len(_REFERENCE.findall(name)) > MANY_REFERENCES:
            hard.append(at)
            plain = True
        found.append(name if plain else _here(demangler, name))
    for at, text in zip(hard, _in_child(demangler, [names[at] for at in hard]), strict=True):
        found[at] = text
    return found


def _here(demangler: cxxfilt.Demangler, name: str) -> str:
    """Demangle in this process; the name if it is none."""
    import cxxfilt

    try:
        return str(demangler.demangle(name))
    except (cxxfilt.Error, UnicodeError):
        return name


#: Seconds spent in vain so far; a file full of hostile names must not cost minutes.
_spent = 0.0


def _in_child(demangler: cxxfilt.Demangler, names: list[str]) -> list[str]:
    """Demangle in forked children with limits on time and memory; a name stays where it fails.

    libstdc++'s demangler has no limit of its own and cannot be interrupted from within. A
    child answers name after name; where one ends it, the next child goes on behind that.
    """
    global _spent
    import time

    found: list[str] = []
    while len(found) < len(names) and _spent <= CHILD_SECONDS:
        started = time.perf_counter()
        batch = names[len(found) : len(found) + CHILD_NAMES]
        texts, whole = _one_child(demangler, batch)
        answered = [text or name for text, name in zip(texts, batch, strict=False)]
        if not whole:
            answered.append(batch[len(answered)])  # the one that ended the child
        if not whole or "" in texts:
            _spent += time.perf_counter() - started
        found += answered
    return found + names[len(found) :]


def _one_child(demangler: cxxfilt.Demangler, names: list[str]) -> tuple[list[str], bool]:
    """What one child answers, empty for what is no name or too long; whether it came to the end."""
    import resource

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))
            with open(writer, "wb") as pipe:
                for name in names:
                    text = _here(demangler, name)
                    known = text.encode("utf-8", "surrogateescape") if text != name else b""
                    known = known if len(known) < MAX_READABLE else b""
                    pipe.write(len(known).to_bytes(4, "little") + known)
                    pipe.flush()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    texts: list[str] = []
    at = 0
    while at + 4 <= len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        if end > len(raw):
            break
        texts.append(raw[at + 4 : end].decode("utf-8", "replace"))
        at = end
    return texts, len(texts) == len(names)


def fold_flavour(demangled: str) -> str:
    """The same text for both std::string flavours of a demangled name."""
    if "cxx11" not in demangled:
        return demangled
    folded = demangled.replace(_CXX11_STRING, "std::string").replace("[abi:cxx11]", "")
    # As the last template argument the long form ends in "> >", the short one in ">".
    return folded.replace("std::string >", "std::string>").replace("std::__cxx11::", "std::")


def readable(demangled: str) -> str:
    """A demangled name for messages: the new std::string written ``std::__cxx11::string``."""
    shorter = demangled.replace(_CXX11_STRING, "std::__cxx11::string")
    return shorter.replace("std::__cxx11::string >", "std::__cxx11::string>")


def mentions_cxx11(name: str, demangled: str) -> bool:
    """Whether a name carries the new std::string flavour (std::__cxx11 or its ABI tag)."""
    if "__cxx11" in name or "B5cxx11" in name or "[abi:cxx11]" in demangled:
        return True
    return not name and "std::__cxx11::" in demangled


#: How the demangler introduces names that are not functions' own.
_SPECIAL_NAMES = (
    "vtable for ",
    "typeinfo for ",
    "typeinfo name for ",
    "VTT for ",
    "guard variable for ",
    "non-virtual thunk to ",
    "virtual thunk to ",
)

_OLD_STRING = lazily(r"\bstd::(string\b|basic_string<char)")


def mentions_old_string(demangled: str) -> bool:
    """Whether a demangled name carries std::string in the flavour before GCC 5."""
    return _OLD_STRING.search(demangled) is not None


#: What matters to ``qualified_name``, outside and inside of brackets.
_INSIDE = lazily(r"[<>\[\]{}()]|(?<![^\W])operator")
_OUTSIDE = lazily(r"[<>\[\]{}() ]|(?<![^\W])operator")


def qualified_name(demangled: str) -> str:
    """The function's own qualified name: a demangled text up to its parameter list.

    ``at::Tensor c10::f<int>(at::Tensor)`` gives ``c10::f<int>``; a return type, which
    templates carry, is dropped; ``vtable for c10::X`` gives ``c10::X``.
    """
    for prefix in _SPECIAL_NAMES:
        if demangled.startswith(prefix):
            demangled = demangled[len(prefix) :]
            break
    if demangled.startswith(("decltype(", "decltype (")):  # a return type, not a name
        demangled = demangled[_closing(demangled, demangled.index("(")) + 1 :].lstrip()
    depth = 0
    start = 0
    index = 0
    while token := (_INSIDE if depth > 0 else _OUTSIDE).search(demangled, index):
        char = token[0]
        index = token.end()
        if char == "operator":
            index = _skip_operator(demangled, index)
        elif char in "<[{":
            depth += 1
        elif char in ">]}":
            depth -= 1
        elif char == "(" and depth == 0:
            if not demangled.startswith("(anonymous namespace)", index - 1):
                return demangled[start : index - 1]
            index += len("anonymous namespace)")
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif depth == 0:  # a space: what came before it was a return type
            start = index
    return demangled[start:]


def _closing(text: str, index: int) -> int:
    """The index of the parenthesis that closes the one at ``index``, else the last index."""
    depth = 0
    for at in range(index, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return len(text) - 1


def _skip_operator(text: str, index: int) -> int:
    """The index after an operator's own characters (``operator()``, ``operator<<`` …)."""
    if text.startswith("()", index) or text.startswith("[]", index):
        return index + 2
    while index < len(text) and text[index] in "<>=!+-*/%^&|~,":
        index += 1
    if index < len(text) and text[index] == " ":  # operator new, a conversion operator
        end = text.find("(", index)
        return end if end >= 0 else len(text)
    return index
