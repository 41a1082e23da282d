"""A name of the Python interpreter: which CPython brings it, and what its absence means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.python_names import (
    PythonSpan,
    exports,
    known_pythons,
    names_that_begin,
    python_spans,
    special_build,
    version_key,
)
from fa_forensics.why.commands import without_path
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN, Judgement
from fa_forensics.why.place import Place

KIND, CODE = "python-abi", "FA402"

#: A version before its release, as Python calls itself: 3.11.0a6.
_BEFORE_RELEASE = re.compile(r"(\d\.\d{1,2})\.0(?:a|b|rc)\d{1,2}")
#: Fewer letters than these begin too many names.
_SHORTEST = 7
_WIDTH = re.compile(r"_?PyUnicodeUCS([24])_")

#: PyPI's torch has one libtorch_python.so for each Python; a C++ libtorch brings one more.
_TORCH_PYTHON = (
    "Where libtorch_python.so lacks it, that file may be another one than torch's own: a C++ "
    "libtorch on LD_LIBRARY_PATH comes first. The first command leaves that path out."
)


def judge_python(
    name: str, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) on a name of Python's C interface that is missing."""
    running = _running(place)
    python = place.python or "python"
    commands: tuple[str, ...] = (f"{python} -c 'import sys; print(sys.version, sys.executable)'",)
    notes: tuple[str, ...] = ()
    if name.startswith(("PyThread_", "_PyThreadState")) or any(
        file.endswith("libtorch_python.so") for file in needed_by
    ):
        notes = (_TORCH_PYTHON,)
        commands = (without_path(place), *commands)
    if (width := _WIDTH.match(name)) is not None:
        return _unicode_width(width[1]), _width_commands(python)
    spans = python_spans(name)
    if not spans:
        return _not_on_record(name, place, needed_by, notes), commands
    patch = _patch_of(spans, running)
    if running is not None and patch is not None:
        return _of_a_patch(name, running, patch), commands[-1:]
    before = _BEFORE_RELEASE.fullmatch(running or "")
    if before is not None and any(span.since == before[1] for span in spans):
        return _before_release(before[0], before[1]), commands[-1:]
    if running is not None and exports(name, running):
        return _everywhere(name, running, notes), commands
    if running is not None and exports(name, running) is False:
        return _not_in(name, running, notes), commands
    return _unplaced(name, notes), commands


def _not_on_record(
    name: str, place: Place, needed_by: Sequence[str], notes: tuple[str, ...]
) -> Judgement:
    """A name that no ordinary CPython has: of a special build, cut off, or of a newer one."""
    build = special_build(name)
    if build is not None:
        return _of_a_build(build)
    longer = names_that_begin(name) if len(name) >= _SHORTEST else ()
    if not longer:
        return _unknown(name, _running(place), notes)
    if len({python_spans(one) for one in longer}) > 1:
        cause = (
            f"The name is cut off: names of Python's C interface that begin so are "
            f"{' and '.join(longer[:3])}. Which one is missing, and so which Python has it, only "
            "the whole name says."
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, notes, "low")
    whole, _commands = judge_python(longer[0], place, needed_by)
    cause = (
        f"The name is cut off; what begins so in Python's C interface is {' and '.join(longer[:3])}"
    )
    return replace(whole, cause=f"{cause}. {whole.cause}", confidence="medium")


def _of_a_build(build: str) -> Judgement:
    """A name that only another build of CPython has, of whatever version."""
    if build == "free-threaded":
        cause = (
            "Only a free-threaded build of CPython exports it (3.13t or later, without the GIL): "
            "the file was compiled for such a Python, and the one that loads it has the GIL."
        )
        notes = (
            "The wheel for a free-threaded Python has the tag cp313t (cp314t), that for an "
            "ordinary one cp313: pip takes the right one by itself when it is not given a file. A "
            "file of one's own is to be built again with the Python that runs it, from an empty "
            "build directory.",
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, notes, "high")
    cause = (
        "Only a debug build of CPython exports it (configured --with-pydebug or with tracing of "
        "references): the file was compiled with the headers of such a Python, and the one that "
        "loads it is an ordinary build."
    )
    notes = (
        "Build the file again with the Python that runs it, from an empty build directory; a "
        "python-dbg package's headers, or -DPy_DEBUG on the command line, are what made it so.",
    )
    return Judgement(KIND, CODE, UNKNOWN, cause, notes, "high")


def _before_release(running: str, minor: str) -> Judgement:
    """An interpreter from before its own release, which lacks what came until then."""
    cause = (
        f"CPython exports it since {minor}, and the interpreter is {running}, from before that "
        "release: such a Python lacks names that were added until then, and files for "
        f"{minor} are compiled with the released one. The interpreter is too old; the file is in "
        "order."
    )
    notes = (f"Any release of Python {minor} has the name: install one, and the packages anew.",)
    return Judgement(KIND, CODE, NEWER, cause, notes, "high")


def _unicode_width(width: str) -> Judgement:
    """A name that Python 2 has by how wide its characters are compiled.

    PEP 261 and PEP 513: ``--enable-unicode=ucs4`` is the tag cp27mu, ``ucs2`` is cp27m.
    """
    wide = width == "4"
    file, tag = ("UCS4 (wide, cp27mu)", "cp27mu") if wide else ("UCS2 (narrow, cp27m)", "cp27m")
    other = "UCS2 (narrow, cp27m)" if wide else "UCS4 (wide, cp27mu)"
    cause = (
        f"Python before 3.3 exports it only where it was built with {file} characters: the file "
        f"is for such a Python 2, and the interpreter that loads it is a {other} one, or a Python "
        "3.3 or later."
    )
    fitting = "cp27m" if wide else "cp27mu"
    notes = (
        f"The wheel in use is for {tag}. For a Python 2.7 of the other sort it is the one with "
        f"{fitting} in its name; pip takes the right one by itself when it is not given a file.",
        "The first command prints 1114111 for UCS4 and 65535 for UCS2. Distributions build Python "
        "2 with UCS4, python.org's sources and pyenv with UCS2 unless told otherwise.",
    )
    return Judgement(KIND, CODE, UNKNOWN, cause, notes, "high")


def _width_commands(python: str) -> tuple[str, ...]:
    return (
        f"{python} -c 'import sys; print(sys.maxunicode, sys.version, sys.executable)'",
        f"{python} -m pip --version",
    )


def _patch_of(spans: Sequence[PythonSpan], running: str | None) -> str | None:
    """The patch release that brought a name within the running minor version, if it matters.

    It does where the running patch release is an earlier one, or is not told.
    """
    if running is None:
        return None
    mine = version_key(running)
    for span in spans:
        since = version_key(span.since)
        if len(since) > 2 and since[2] > 0 and since[:2] == mine[:2]:
            return span.since if len(mine) < 3 or mine < since else None
    return None


def _of_a_patch(name: str, running: str, since: str) -> Judgement:
    """The name came with a patch release: an older patch of the same Python lacks it."""
    told = running.count(".") > 1
    cause = (
        f"CPython exports it since {since}; Python {running} does not: the file was compiled with "
        "that or a later patch release."
        if told
        else f"CPython exports it since {since}: the file was compiled with that or a later patch "
        "release, and the Python that loads it is an older one of the same minor version."
    )
    return Judgement(KIND, CODE, NEWER, cause, _patch_note(name), "high" if told else "medium")


def _running(place: Place) -> str | None:
    if place.environment is not None and place.requested is None:
        return place.environment.version
    return place.told.python_version if place.told is not None else None


def _since_words(name: str) -> str:
    spans = python_spans(name)
    first = known_pythons()
    if spans[0].before and spans[0].since == first[0] and version_key(spans[0].before) <= (3, 6):
        return f"it is a name of Python 2 ({_last_before(spans[0].before)})"
    texts = []
    for span in spans:
        text = f"since {span.since}" if span.since != first[0] else "at all times"
        if span.before is not None and _last_of(span) == span.since:
            text = f"in {span.since} alone"
        elif span.before is not None:
            text = f"{text} up to {_last_of(span)}"
        texts.append(text)
    return f"CPython exports it {', and again '.join(texts)}"


def _last_of(span: PythonSpan) -> str:
    """The last version of a span, which may be one that was not looked at (3.5)."""
    last = _last_before(span.before or known_pythons()[-1])
    own = version_key(span.since)[:2]
    return ".".join(map(str, own)) if own > version_key(last) else last


def _last_before(version: str) -> str:
    pythons = known_pythons()
    return pythons[pythons.index(version) - 1]


def _not_in(name: str, running: str, notes: tuple[str, ...]) -> Judgement:
    spans = python_spans(name)
    later = [s.since for s in spans if version_key(running) < version_key(s.since)]
    older = bool(later)
    what = f"Python {later[0]} or newer" if later else "an older Python"
    cause = f"{_since_words(name)}; Python {running} does not: the file was compiled for {what}."
    return Judgement(
        KIND, CODE, NEWER if older else OLDER, cause[0].upper() + cause[1:],
        (*(_patch_note(name) or (_AGAIN,)), *notes),
    )  # fmt: skip


_AGAIN = (
    "A build for the Python that runs is the way out: pip takes that wheel by itself when it is "
    "not given a file (install --force-reinstall --no-cache-dir); what is built here is built "
    "again with that Python, from an empty build directory. The other way is to run the Python "
    "that the file was compiled for."
)


def _patch_note(name: str) -> tuple[str, ...]:
    if name == "_PyThreadState_UncheckedGet":
        return (
            "The variable _PyThreadState_Current, which it replaces, went with 3.5.1: files that "
            "were compiled with a later 3.5 do not load in 3.5.0. A newer patch release is enough.",
        )
    if python_spans(name)[0].since.count(".") > 1:
        return ("A newer patch release of the same Python is enough.",)
    return ()


def _everywhere(name: str, running: str, notes: tuple[str, ...]) -> Judgement:
    cause = (
        f"Python {running} exports it, so it is missing only where no such interpreter is in the "
        "process: ldd -r starts none and lists every name of Python, a C++ program has none, and "
        "another Python than this one may have loaded the file."
    )
    return Judgement(KIND, CODE, NONE, cause, notes, "medium")


def _unplaced(name: str, notes: tuple[str, ...]) -> Judgement:
    spans = python_spans(name)
    words = _since_words(name)
    pythons = known_pythons()
    whole = spans[0].before is None and version_key(spans[0].since) <= version_key(pythons[1])
    if whole and spans[0].since == pythons[1] and not exports(name, pythons[0]):
        cause = (
            f"Every CPython from {pythons[1]} to {pythons[-1]} exports it, and Python {pythons[0]} "
            "does not. Where an interpreter imported the file, that was Python 2 (or another kind "
            "than CPython), and the file was compiled for Python 3; else none is in the process: "
            "ldd -r starts none and lists every name of Python, and a C++ program has none."
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, notes, "medium")
    if whole and spans[0].since in pythons[:2]:
        cause = (
            f"Every CPython from {pythons[1]} to {pythons[-1]} exports it, so it is missing only "
            "where no interpreter is in the process: ldd -r starts none and lists every name of "
            "Python, which is no error; a C++ program has none either."
        )
        return Judgement(KIND, CODE, NONE, cause, notes, "medium")
    if spans[-1].before is None:
        cause = (
            f"{words}: the file was compiled for Python {spans[0].since} or newer, and the "
            "interpreter that loads it is older."
        )
        direction = NEWER
    else:
        cause = (
            f"{words}: the file was compiled for such a Python, and the interpreter that loads it "
            "is another one."
        )
        direction = UNKNOWN
    return Judgement(
        KIND, CODE, direction, cause[0].upper() + cause[1:],
        (*(_patch_note(name) or (_AGAIN,)), *notes),
    )  # fmt: skip


def _unknown(name: str, running: str | None, notes: tuple[str, ...]) -> Judgement:
    pythons = known_pythons()
    here = f" (Python {running} loads it)" if running else ""
    cause = (
        f"No CPython looked at ({pythons[0]}, {pythons[1]} to {pythons[-1]}) exports it: the file "
        f"was compiled for a newer one, a debug build, or another kind of Python{here}."
    )
    return Judgement(KIND, CODE, UNKNOWN, cause, notes, "medium")
