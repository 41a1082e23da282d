"""Files on a link line that the linker cannot use: the build downloaded them, or half made them."""

from __future__ import annotations

import shlex

from fa_forensics.facts.library_names import outside_library
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base
from fa_forensics.why.texts.files.machine_text import host_of, host_words

#: Where CMake's FetchContent unpacks what a project's own build downloads.
_FETCHED = lazily(r"_deps/(?P<name>[\w.-]{1,40}?)-(?:src|build)/")
#: A build's own directory, which goes as a whole.
_BUILD = lazily(r"(?:^|/)(?:build|cmake-build[\w-]*|_skbuild|CMakeFiles|out)(?:/|$)")


def title_of_input(name: str) -> str | None:
    """Whose a library is that torch does not bring: FFmpeg for libavutil.so.60."""
    found = outside_library(name)
    return found.title if found is not None else None


def fetched(seen: Seen, file: str) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """(cause, commands, notes) for another machine's library that the build downloaded itself."""
    found = _FETCHED.search(file)
    if found is None:
        return None
    name, host = base(file), host_of(seen)
    title = title_of_input(name)
    of = f" (of {title})" if title else ""
    cause = (
        f"{name}{of} is for another machine than the one that it is linked on. By its directory "
        f"(_deps/{found['name']}-src) the project's own build downloaded it (CMake's FetchContent),"
        " and took an archive for another processor."
    )
    if host and host != "x86_64":
        cause += (
            f" The text is from {host_words(seen) or host}, so most likely the file is for x86-64: "
            "the address in the CMake files names that archive alone."
        )
    helps = ["grep -rn -B2 -A6 FetchContent --include=CMakeLists.txt --include='*.cmake' . | grep "
             "-iE 'url|fetchcontent'"]  # fmt: skip
    notes = [
        "A wheel of the package for this processor, where there is one, spares the build. Else the "
        "build needs that library for this processor: an archive for it in the place of that "
        "address, or an installed copy (development files with it) that the project's option for "
        "such takes, from an empty build directory.",
    ]
    if title == "FFmpeg":
        helps.append('conda install -c conda-forge "ffmpeg"')
        notes.append(
            "torchcodec builds against an installed FFmpeg where "
            "I_CONFIRM_THIS_IS_NOT_A_LICENSE_VIOLATION=1 is set, BUILD_AGAINST_ALL_FFMPEG_FROM_S3 "
            "is not (it is what downloads), and pkg-config finds that FFmpeg "
            "(PKG_CONFIG_PATH=$CONDA_PREFIX/lib/pkgconfig); conda-forge has it for aarch64."
        )
    return cause, tuple(helps), tuple(notes)


_ARCHIVE = (
    "An object file that an earlier build left, on another machine or with another compiler, "
    "goes away with the build directory: remove that and build again."
)


def object_again(file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) that have an object file made again."""
    if file.endswith(".a"):
        return (), (_ARCHIVE,)
    if not file.endswith(".o") or file.startswith(("/usr/", "/lib", "/opt/")):
        return (), ()
    folder = file.rpartition("/")[0]
    note = (
        "An object file that an earlier build left, on another machine or with another compiler, "
        "or one whose compilation was stopped (empty, filled with zeros), has to go: make and "
        "ninja take it as it is as long as it is newer than its source."
    )
    if "..." in file or _BUILD.search(folder):
        return ("rm -rf build",), (note, "Then build again, from that empty build directory.")
    there = shlex.quote(folder or ".")
    return (
        f"rm -rf {there}/*.o {there}/build build",
        "git clean -xfdn",
    ), (
        note,
        "This one lies in the source directory, so that removing build alone leaves it. git clean "
        "lists what a fresh checkout does not have; with -xfd in place of -xfdn it removes that.",
    )
