"""A missing name of libtorch_python: a file that does not list that library, and why it does not.

torch 1.5 loads its libraries with RTLD_LOCAL; before, RTLD_GLOBAL gave their names to all files
that were loaded after them, and extensions did not list them (release notes of torch 1.5.0).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.builds import clean_build, in_source_tree, is_module
from fa_forensics.why.ways.commands import which_torch
from fa_forensics.why.ways.trees import where_to_type
from fa_forensics.why.ways.unlisted import left_from_then

_CURE = (
    "In CMakeLists.txt: find_library(TORCH_PYTHON_LIBRARY torch_python) in the lib directory of "
    "TORCH_INSTALL_PREFIX, and that variable in target_link_libraries beside TORCH_LIBRARIES. "
    "Importing torch before the module may hide it."
)
_OF_PYTHONS_TORCH = (
    "CMAKE_PREFIX_PATH has to be the torch that Python imports (torch.utils.cmake_prefix_path "
    "prints it): PyTorch's download for C++ (libtorch) has no libtorch_python, so that "
    "find_library finds none there."
)
_OPERATORS = (
    "A library of operators (TORCH_LIBRARY, torch.ops.load_library) needs none of Python's part of "
    "torch: with #include <torch/script.h> or <torch/library.h> in place of <torch/extension.h>, "
    "and built again from an empty directory, the name is gone."
)
_BY_CMAKE = f"A build by CMake: {_CURE[0].lower()}{_CURE[1:]}"
_IN_ITS_SOURCES = (
    "The command that begins with rm -rf build is for the directory of the file's own setup.py, "
    "which may lie below the program's.",
)
_OLD = (
    "A file that setup.py made with torch up to 1.4 does not list that library either, and torch "
    "1.5 and later no longer opens its libraries for all files: it has to be built again with the "
    "torch that is installed."
)


def of_torch_python(answer: Answer, seen: Seen) -> Answer | None:
    """An answer on a name of libtorch_python, by how the file was linked; None to keep it."""
    if (seen.mention.library or "").endswith("/libtorch_python.dylib"):
        return None  # the loader looked for the name there: the file lists that library
    by_cmake = seen.mention.detail.get("build") == "cmake"
    if answer.code == "FA210" and not by_cmake:
        if seen.package is not None and not _before_15(seen):
            return _of_older_torch(answer, seen)
        if _by_setup(seen):
            first = f"{seen.python} -c 'import torch; import {seen.module or 'MODULE'}'"
            helps = answer.help
            if not any("; import " in command for command in helps):
                helps = (first, *helps)
            old = () if _before_15(seen) else (_OLD,)
            there = _IN_ITS_SOURCES if any(c.startswith("rm -rf build") for c in helps) else ()
            return replace(answer, help=helps, notes=(*answer.notes, *old, *there, _BY_CMAKE))
    if _linked_without(answer, seen):
        return _without_torch_python(answer, seen)
    if answer.code == "FA210" and _by_setup(seen) and _came_later(answer):
        return None
    newer = answer.code == "FA201" and answer.direction == "file-newer"
    if newer and seen.package is None and seen.place.told is not None and seen.place.present:
        note = (
            "A second cause fits where CMake or a Makefile linked the file: TORCH_LIBRARIES leaves "
            f"libtorch_python.so out, and then no torch alone helps. {_CURE}"
        )
        return replace(answer, confidence="medium", notes=(*answer.notes, note))
    return None


def _before_15(seen: Seen) -> bool:
    found = re.match(r"(\d{1,2})\.(\d{1,3})", seen.torch or "")
    return found is not None and (int(found[1]), int(found[2])) < (1, 5)


def _by_setup(seen: Seen) -> bool:
    """Whether setup.py most likely made the file, or no file is told of."""
    file = seen.mention.file or ""
    return not file or "flag:cpp-extension" in seen.versions or bool(
        re.search(r"-packages/|\.egg/|torch_extensions/", file)
    )  # fmt: skip


def _of_older_torch(answer: Answer, seen: Seen) -> Answer:
    """A published package, which imports torch by itself: its build is of torch 1.4 or before."""
    from fa_forensics.why.texts.clues import package_in
    from fa_forensics.why.texts.python.python_text import rebuilds, row_of_module

    package = package_in(seen)
    here = f"torch {seen.torch}" if seen.torch else "every torch"
    cause = (
        f"It is a name of libtorch_python.so, which {here} has, and {package} imports torch before "
        "its compiled module: most likely the module was built with torch 1.4 or before, whose "
        "builds do not list that library, and torch 1.5 and later no longer opens it for all "
        "files. It has to be built again with the torch that is installed."
    )
    return replace(
        answer, kind="wrong-torch", code="FA607", cause=cause, direction="file-older",
        confidence="medium",
        help=(*rebuilds(seen, package, row_of_module(seen.module)), *answer.help),
        notes=("Where the file does list libtorch_python.so, it was loaded before torch, or by a "
               "Python that has another torch: the commands after the first one tell.",
               *answer.notes),
    )  # fmt: skip


def _whole_path(seen: Seen) -> str:
    """The failing file; "" where the text cut its path."""
    file = seen.mention.file or ""
    return "" if "..." in file else file


def _linked_without(answer: Answer, seen: Seen) -> bool:
    """Whether a name of libtorch_python is most likely missing for want of that library.

    CMake is named, or the file is no published package's and the torch that is loaded has the
    name: every torch from some release on, or the one that the text names.
    """
    if seen.mention.detail.get("build") == "cmake":
        return True
    if seen.package is not None or seen.mention.what == "linker-undefined":
        return False
    if answer.code == "FA210" and "flag:by-path" in seen.versions:
        return True
    if seen.place.present is None and seen.mention.file and _by_setup(seen) and _came_later(answer):
        return False  # setup.py lists that library: the file is for a newer torch
    later = re.match(r"1\.\d[\d.]{0,6} and later", answer.interval) is not None
    return bool(answer.provider) or (later and seen.place.present is None)


def _came_later(answer: Answer) -> bool:
    """Whether the name came with a torch whose setup.py builds list libtorch_python by then."""
    found = re.match(r"(\d)\.(\d{1,2})[\d.]{0,6} and later", answer.interval)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 5)


def _without_torch_python(answer: Answer, seen: Seen) -> Answer:
    """A name of libtorch_python in a file that CMake linked, by TORCH_LIBRARIES alone."""
    module = seen.module or "MODULE"
    cause = (
        "It is a name of libtorch_python.so, which TORCH_LIBRARIES of CMake leaves out: most "
        "likely the file was linked without it, and no release is wrong. torch.utils.cpp_extension "
        "(setup.py) links it by itself, since torch 1.5."
    )
    readelf = f"readelf -d {shlex.quote(_whole_path(seen) or 'THE_FILE.so')} | grep NEEDED"
    by_path = "flag:by-path" in seen.versions or (
        module.startswith("lib") and not is_module(seen.mention.file or "")
    )
    notes = [_CURE, _OF_PYTHONS_TORCH]
    if by_path:
        cause += (
            " torch was imported when it was loaded, and that does not help: torch opens its "
            "libraries for its own files alone."
        )
        notes = [_OPERATORS, _CURE.partition(" Importing ")[0]]
    helps = [_loaded(seen) if by_path else f"{seen.python} -c 'import torch; import {module}'"]
    if _by_old_setup(answer, seen):
        cause = _BY_OLD_SETUP + (_SURE if _compiled_before(seen) else _OR_CMAKE)
        helps = [clean_build(seen.place.python or "python", seen.mention.file or "")]
        notes = [*where_to_type(helps[0], (seen.mention.file or "",)), _BY_CMAKE]
        helps += [readelf, which_torch(seen.place)]
        return replace(
            answer, kind="wrong-torch", code="FA607", direction="file-older", cause=cause,
            confidence="medium", notes=tuple(notes), help=tuple(helps),
        )  # fmt: skip
    if answer.exported_by:
        notes.append(
            f"Where the file does list that library: torch {answer.interval} have the name."
        )
    if seen.mention.detail.get("build") != "cmake" and answer.interval.startswith("1.0"):
        notes.append(_OLD)
    return replace(
        answer, kind="import-order" if by_path else "missing-library",
        code="FA210" if by_path else "FA202", cause=cause, direction="none",
        confidence="medium", notes=tuple(notes), help=(readelf, *helps),
    )  # fmt: skip


#: Said of a module in a source tree, for a Python that torch 1.4 has wheels for.
_BY_OLD_SETUP = (
    "It is a name of libtorch_python.so, which every torch has: most likely the module was built "
    "by setup.py with torch 1.4 or before, whose builds do not list that library, and torch 1.5 "
    "and later no longer opens it for all files. It has to be built again, from nothing that is "
    "left, for the torch that is installed"
)
_SURE = ", and the text says that it was compiled with such a torch."
_OR_CMAKE = "; where CMake built it, it was linked without that library."


def _compiled_before(seen: Seen) -> bool:
    """Whether the text says that the file was compiled with torch 1.4 or before."""
    found = re.match(r"(\d)\.(\d{1,2})", seen.versions.get("file_torch", ""))
    return found is not None and (int(found[1]), int(found[2])) < (1, 5)


def _by_old_setup(answer: Answer, seen: Seen) -> bool:
    """Whether setup.py made a file of a source tree, as likely with a torch before 1.5 as not."""
    file = seen.mention.file or ""
    if seen.mention.detail.get("build") == "cmake" or not in_source_tree(file):
        return False
    if not answer.interval.startswith("1.0") or "/build" in file:
        return False
    return _compiled_before(seen) or (seen.torch is None and left_from_then(seen.place))


def _loaded(seen: Seen) -> str:
    """The command that loads a library of operators, which is no module of Python's."""
    file = _whole_path(seen)
    path = file if re.fullmatch(r"[\w./+-]+", file) else "THE_FILE.so"
    load = f'torch.ops.load_library("{path}")'
    return f"{seen.python} -c 'import torch; {load}'"
