"""C++ names made readable, by libstdc++'s own demangler through cxxfilt."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

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

_REFERENCE = re.compile(r"S[0-9A-Z]*_|T[0-9]*_")

#: What folds the two std::string flavours onto one text, in demangled form.
_CXX11_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@lru_cache(maxsize=1)
def _demangler() -> cxxfilt.Demangler | None:
    """cxxfilt's demangler over libstdc++, or None where the system has no libstdc++.

    cxxfilt looks for its libraries with ``ctypes.util.find_library``, which runs
    ldconfig twice and, where that finds nothing, a compiler. The loader finds both by
    their sonames in microseconds, so the search is answered from here.
    """
    import ctypes.util

    search = ctypes.util.find_library
    ctypes.util.find_library = {"c": "libc.so.6", "stdc++": "libstdc++.so.6"}.get  # type: ignore[assignment]
    try:
        import cxxfilt

        return cxxfilt.Demangler("libc.so.6", "libstdc++.so.6")
    except OSError:
        pass  # no glibc or no libstdc++ under the usual sonames: let cxxfilt search
    finally:
        ctypes.util.find_library = search
    try:
        libc = search("c")
        libcxx = search("stdc++") or search("c++")
        return cxxfilt.Demangler(libc, libcxx) if libc and libcxx else None
    except OSError:
        return None


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
    import cxxfilt

    try:
        if len(_REFERENCE.findall(name)) > MANY_REFERENCES:
            return _in_child(demangler, name)
        return str(demangler.demangle(name))
    except (cxxfilt.Error, UnicodeError):
        return name


#: Seconds spent in vain so far; a file full of hostile names must not cost minutes.
_spent = 0.0


def _in_child(demangler: cxxfilt.Demangler, name: str) -> str:
    """Demangle in a forked child with limits on time and memory; the name if it fails.

    libstdc++'s demangler has no limit of its own and cannot be interrupted from within.
    """
    global _spent
    if _spent > CHILD_SECONDS:
        return name
    import resource
    import time

    started = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))
            os.write(writer, demangler.demangle(name).encode()[:MAX_READABLE])
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if status == 0 and 0 < len(text) < MAX_READABLE:
        return text.decode("utf-8", "replace")
    _spent += time.perf_counter() - started
    return name


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
    return "__cxx11" in name or "B5cxx11" in name or "[abi:cxx11]" in demangled


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

_OLD_STRING = re.compile(r"\bstd::(string\b|basic_string<char)")


def mentions_old_string(demangled: str) -> bool:
    """Whether a demangled name carries std::string in the flavour before GCC 5."""
    return _OLD_STRING.search(demangled) is not None


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
    while index < len(demangled):
        char = demangled[index]
        if demangled.startswith("operator", index) and (
            index == 0 or not (demangled[index - 1].isalnum() or demangled[index - 1] == "_")
        ):
            index = _skip_operator(demangled, index + len("operator"))
            continue
        if char in "<[{":
            depth += 1
        elif char in ">]}":
            depth -= 1
        elif char == "(" and depth == 0:
            if demangled.startswith("(anonymous namespace)", index):
                index += len("(anonymous namespace)")
                continue
            return demangled[start:index]
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == " " and depth == 0:
            start = index + 1
        index += 1
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
