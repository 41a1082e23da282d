"""Answers where the host compiler or its library is too old, or newer than the source is for."""

from __future__ import annotations

from fa_forensics.facts.numbers import minor_numbers
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import build_command
from fa_forensics.why.texts.clues import package_in

KIND, COMPILE = "wrong-torch", "FA883"


def standard_needed(seen: Seen, needs: str) -> Answer:
    """``C++17 or later compatible compiler is required``: torch's headers ask for a standard."""
    least = build_names()["flags"].get(needs, "")
    have = seen.mention.detail.get("gcc") or ""
    if have and least and minor_numbers(have) < minor_numbers(least):
        return _too_old(seen, needs, least, have)
    since = build_names()["headers_need"].get(needs)
    border = f" (torch>={since})" if since else ""
    cause = (
        f"torch's headers need C++{needs}{border}, and the compiler ran with an older standard: "
        "either the package's build files pass an older -std (they were written for an older "
        f"torch), or the compiler is too old (gcc {least} and newer take -std=c++{needs} as a "
        "whole)."
    )
    cmake = seen.mention.detail.get("cmake")
    helps = ["grep -rnE 'std=(c|gnu)[+][+]|CXX_STANDARD|cxx_std_' --include=setup.py "
             "--include=CMakeLists.txt --include='*.cmake' .",
             "gcc --version"]  # fmt: skip
    if cmake:
        helps.append(f"cmake -DCMAKE_CXX_STANDARD={needs} ..")
        notes = (
            "This is a build with CMake: -DCMAKE_CXX_STANDARD counts where CMakeLists.txt does not "
            f"set it itself; where it does, the number there has to become {needs} "
            "(CMAKE_CUDA_STANDARD too, where there are .cu files). torch's build helper plays no "
            "part.",
        )
    else:
        notes = (
            "A release of the package for this torch passes the right one; without -std of its "
            "own, torch's build helper adds it.",
        )
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen) or ("cmake" if cmake else "gcc"),
        direction="unknown", confidence="medium", help=tuple(helps), notes=notes,
    )  # fmt: skip


def _too_old(seen: Seen, needs: str, least: str, have: str) -> Answer:
    cause = (
        f"The host compiler is too old: the text names the headers of gcc {have}, and torch's "
        f"headers need C++{needs}, which gcc {least} and newer have as a whole."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner="gcc", direction="none", confidence="high",
        help=("command -v gcc g++; gcc --version; ls /usr/bin/g++* /opt/rh",
              f'conda install -c conda-forge "gxx_linux-64>={least}"',
              f"CC=gcc-N CXX=g++-N {build_command(seen)}"),
        notes=("A newer gcc beside this one is enough: CC and CXX name it (with devtoolset, "
               "gcc-toolset or conda's gxx too).",
               "nvcc takes gcc up to a release of its own: the newest gcc need not do for this "
               "CUDA."),
    )  # fmt: skip


def not_included(seen: Seen) -> Answer:
    """``namespace "std" has no member "uintptr_t"``: a header that came along by the way."""
    detail = seen.mention.detail
    name, header, gcc = detail["name"], detail["header"], detail["since"]
    have = detail.get("gcc") or seen.versions.get("gcc") or ""
    newer = have and minor_numbers(have) >= (int(gcc),)
    mine = f" (gcc {have})" if newer else ""
    cause = (
        f"{name} is declared in <{header}>, which the source does not include. Since GCC {gcc}"
        f"{mine} the library's other headers no longer bring it along, so that what compiled with "
        "an older gcc stops here. Neither torch nor CUDA is at fault."
    )
    old = int(gcc) - 1
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen) or "gcc", direction="none",
        confidence="high" if newer else "medium",
        help=("gcc --version; ls /usr/bin/g++*",
              f"NVCC_PREPEND_FLAGS='-ccbin g++-{old}' CC=gcc-{old} CXX=g++-{old} "
              f"{build_command(seen)}"),
        notes=(f"#include <{header}> at the top of the file that the message names is the other "
               "way, and the lasting one; newer releases of the package may have it.",),
    )  # fmt: skip
