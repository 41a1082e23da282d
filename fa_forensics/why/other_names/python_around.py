"""What a text says around a name of Python that is missing: a C++ program, the way to rebuild."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.other_names.python_names import AGAIN
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.builds import again_from_source

#: The words of an exception of C++ that nobody caught: a program, not Python, reports it.
_FROM_CXX = lazily(r"\s*what\(\):\s+(?:\w+Error|undefined symbol|/)")
_FOR = lazily(r"\.cpython-(\d)(\d{1,2})[a-z]*-|/python(\d)\.(\d{1,2})/")
#: Where torch.utils.ffi, which went with torch 1.0, puts what it builds: beside its build.py.
_FFI = lazily(r"(?P<folder>/[^\s:]{1,300}?)/_ext/")


def around_python(answer: Answer, seen: Seen) -> Answer:
    """An answer about a name of Python (FA402) with what the text has besides."""
    file = seen.mention.file or ""
    if _FROM_CXX.match(seen.mention.line):
        return _embedded(answer, file)
    imported = "ImportError" in seen.mention.line and answer.direction == "unknown"
    if AGAIN not in answer.notes and not (imported and answer.confidence != "low"):
        return answer
    return _compiled_again(answer, seen, file)


def _compiled_again(answer: Answer, seen: Seen, file: str) -> Answer:
    ffi = _FFI.search(file)
    if ffi is not None and "-packages/" not in file:
        there = shlex.quote(ffi["folder"])
        return replace(
            answer,
            help=(answer.help[0], f"cd {there} && rm -rf _ext && {seen.python} build.py",
                  *answer.help[1:]),
            notes=(
                "Such a file is built by the project's build.py; where it has a make.sh, that "
                "compiles the .cu files first and then runs build.py: run it with this Python "
                "first on PATH.",
                *answer.notes,
            ),
        )  # fmt: skip
    from fa_forensics.why.texts.clues import package_in
    from fa_forensics.why.texts.python.python_text import rebuilds, row_of_module

    package = package_in(seen)
    again = rebuilds(seen, package, row_of_module(seen.module)) if package else ()
    if not again:
        own = again_from_source(seen.place, (file,)) if file else None
        again = (own,) if own is not None and "-packages/" not in file else ()
    return replace(answer, help=(*answer.help[:1], *again, *answer.help[1:])) if again else answer


def _embedded(answer: Answer, file: str) -> Answer:
    """``what():  ImportError: ... undefined symbol``: a C++ program has Python inside."""
    found = _FOR.search(file)
    minor = f"{found[1] or found[3]}.{found[2] or found[4]}" if found else ""
    which = f"Python {minor}" if minor else "the Python that the file is for"
    cause = (
        "A C++ program runs Python inside itself here: the message is an exception of C++ that "
        "nobody caught. A module takes Python's names from the process. Two causes fit: the "
        f"program has another Python inside than {which}, whose modules it finds; or its own "
        "Python is out of the module's sight (its library opened without RTLD_GLOBAL, or linked "
        "into the program without exporting its names). The file is in order."
    )
    return replace(
        answer, cause=cause, direction="unknown", confidence="medium",
        help=(
            "ldd PROGRAM | grep libpython; nm -D PROGRAM | grep -c ' T Py'",
            " ".join((f"python{minor or 3}-config", "--embed", "--ldflags")),
        ),
        notes=(
            "PROGRAM is the C++ program. The first command shows which libpython it is linked "
            "with, and how many of Python's names it exports itself.",
            "Another Python inside: run the program with the environment of that version (its "
            "PYTHONHOME, its conda environment), or build the program for this one.",
            "The same one: link it with what the second command prints and -Wl,--export-dynamic; "
            "where libpython is opened by dlopen, with RTLD_GLOBAL.",
        ),
    )  # fmt: skip
