"""What a text says around a name of Python that is missing: a C++ program, the way to rebuild."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.other_names.python_names import AGAIN
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.builds import again_from_source
from fa_forensics.why.ways.commands import without_path

#: The words of an exception of C++ that nobody caught: a program, not Python, reports it.
_FROM_CXX = lazily(r"\s*what\(\):\s+(?:\w+Error|undefined symbol|/)")
_FOR = lazily(r"\.cpython-(\d)(\d{1,2})[a-z]*-|/python(\d)\.(\d{1,2})/")
#: Where torch.utils.ffi, which went with torch 1.0, puts what it builds: beside its build.py.
_FFI = lazily(r"(?P<folder>/[^\s:]{1,300}?)/_ext/")
#: The archive of libtorch for C++ as people unpack it: torch's own files lie in torch/lib.
_OF_ARCHIVE = lazily(
    r"(?P<folder>\S{0,400}libtorch[\w.+-]{0,60}(?:/[\w.+-]{1,60})?)/lib/libtorch_python\.so$"
)

_IN_ORDER = (
    "The torch that is installed is in order: nothing has to be installed or built again. The line "
    "that puts that directory into LD_LIBRARY_PATH (a shell's start file, a job script, an "
    "editor's settings, or a file in /etc/ld.so.conf.d) is to be taken out, or to be set for the "
    "start of the C++ program alone."
)


def around_python(answer: Answer, seen: Seen) -> Answer:
    """An answer about a name of Python (FA402) with what the text has besides."""
    file = seen.mention.file or ""
    if _FROM_CXX.match(seen.mention.line):
        return _embedded(answer, file)
    archive = _OF_ARCHIVE.search(file)
    if archive is not None and "-packages/" not in file and answer.direction != "none":
        return _of_libtorch(answer, seen, archive["folder"])
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


def _of_libtorch(answer: Answer, seen: Seen, folder: str) -> Answer:
    """The libtorch_python.so of the archive for C++, which the loader takes before torch's own."""
    cause = (
        "The libtorch_python.so that was loaded is none of the installed torch's: it is that of "
        f"the C++ libtorch in {folder}, which LD_LIBRARY_PATH puts first, and it was made with "
        f"another Python. {answer.cause}"
    )
    return replace(
        answer, cause=cause,
        help=(without_path(seen.place), "echo $LD_LIBRARY_PATH; grep -rn torch /etc/ld.so.conf.d",
              f"{seen.python} -c 'import sys; print(sys.version, sys.executable)'"),
        notes=(_IN_ORDER,),
    )  # fmt: skip


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
