"""Answers to what compilers say of a source: torch's names, standards, headers of the host."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.facts.python_names import followed_by, names_followed
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.header_text import releases_with
from fa_forensics.why.texts.builds.standard_text import not_included, standard_needed
from fa_forensics.why.texts.builds.toolkit_commands import build_command
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.torch_names.history import order_key

KIND, COMPILE = "wrong-torch", "FA883"


def _which_torch(seen: Seen) -> str:
    return f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'"


def _grep(seen: Seen, name: str) -> str:
    return (
        f"grep -rlw {name} $({seen.python} -c 'import torch; "
        'print(torch.__path__[0] + "/include")\')'
    )


def _gone(name: str) -> tuple[str, str] | None:
    """(the torch that no longer has a name, what took its place)."""
    rows = build_names()["gone"]
    fitting = [k for k in rows if k == name or (k.endswith("*") and name.startswith(k[:-1]))]
    if not fitting:
        return None
    release, instead = rows[max(fitting, key=len)]
    return str(release), str(instead)


def torch_name_missing(seen: Seen) -> Answer:
    """``'AT_CHECK' was not declared``, ``namespace "at::cuda" has no member ...``."""
    whole = seen.mention.detail.get("name", "")
    name, space = whole.split("::")[-1], seen.mention.detail.get("space", "")
    if name == "DeprecatedTypeProperties":
        return _old_type(seen)
    if ("HIP" in name and "getCurrent" in name) or "MasqueradingAsCUDA" in name:
        from fa_forensics.why.texts.builds.rocm_build import hip_name_gone

        return hip_name_gone(seen, name)
    gone = _gone(name)
    if gone is not None:
        return _given_up(seen, name, *gone)
    having, known = releases_with(name)
    torch = seen.torch
    if not having:
        cause = (
            f"The compiler finds no {whole}, and the headers of no torch on record have it: the "
            "source is for an older torch than these, or the name is not torch's own. The "
            "extension was never built."
        )
        return _source(seen, cause, "unknown", "low", name)
    there = None
    if torch is not None:
        there = _plain(torch) in having if _plain(torch) in known else None
    owner = space.rsplit("::", 1)[-1]
    if (len(having) == len(known) or there) and owner[:1].isupper():
        cause = (
            f"{space} has no {name} in the torch that the compiler reads: the source was written "
            "for a torch in which that class had another interface. The extension was never built."
        )
        return _source(seen, cause, "unknown", "low", name)
    if len(having) == len(known) or there:
        cause = (
            f"{name} is in torch's headers ({having[0]} to {having[-1]} have it), so it was not "
            "given up: the source does not include the header that declares it, and other headers "
            "that brought it along no longer do, or the torch that the compiler reads is another "
            "one than meant."
        )
        note = "The second command lists the headers that have the name; the source includes one."
        return _source(seen, cause, "none", "medium", name, (note,))
    older = having[-1] != known[-1]
    span = f"up to {having[-1]}" if older else f"since {having[0]}"
    cause = (
        f"{name} is in torch's headers {span}; the torch of this build does not have it, so the "
        f"source was written for {'an older' if older else 'a newer'} torch."
    )
    return _source(seen, cause, "file-older" if older else "file-newer", "medium", name)


def _source(
    seen: Seen, cause: str, direction: str, confidence: str, name: str, notes: Sequence[str] = ()
) -> Answer:
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen) or "torch", direction=direction,
        confidence=confidence, help=(_which_torch(seen), _grep(seen, name)), notes=tuple(notes),
    )  # fmt: skip


def _for_an_older_torch(seen: Seen, cause: str) -> Answer:
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen) or "torch", direction="file-older",
        confidence="high", help=(_which_torch(seen),),
        notes=("A release of the package for this torch is the way out; where there is none, the "
               "source has to be changed. The compiler is in order.",),
    )  # fmt: skip


def _given_up(seen: Seen, name: str, release: str, instead: str) -> Answer:
    cause = (
        f"{name} is of an older torch: no torch since {release} has it (its place took {instead}). "
        "The source was written for a torch before that, so that the extension was never built."
    )
    if name not in build_names()["gone"] and name.startswith("TH"):
        cause = (
            f"{name} is of TH and THC, the C part of old torches: the last of it went with "
            f"{release}, much of it in the releases before (its place took {instead}). The torch "
            "of this build is newer than the source was written for, so that the extension was "
            "never built."
        )
    return _for_an_older_torch(seen, cause)


def _old_type(seen: Seen) -> Answer:
    cause = (
        "The source passes x.type() where torch's macros take x.scalar_type(): torch 2.5 still "
        "converted it, torch 2.6 does not. The source was written for an older torch, so that "
        "the extension was never built."
    )
    return _for_an_older_torch(seen, cause)


def _plain(version: str) -> str:
    found = re.match(r"\d+\.\d+\.\d+", version)
    return found[0] if found else version


def _helper_standard(torch: str | None) -> str:
    """The -std that torch's build helper passes, for a torch; "" where that is not told."""
    if torch is None or not re.match(r"\d+\.\d+", torch):
        return ""
    rows = build_names()["helper"].items()
    fitting = [str(std) for release, std in rows if order_key(_plain(torch)) >= order_key(release)]
    exact = order_key(_plain(torch)) < order_key("2.1.0") or fitting[-1:] == ["20"]
    return fitting[-1] if fitting and exact else ""


def cxx_standard(seen: Seen) -> Answer:
    """A name, a flag or a check that tells of a C++ standard that this build does not have."""
    detail = seen.mention.detail
    flag = detail.get("flag", "")
    if flag:
        return _flag_unknown(seen, flag)
    if detail.get("nvcc"):
        return _nvcc_flag(seen, detail["nvcc"])
    needs = detail.get("needs") or detail.get("needs2") or detail.get("needs3")
    if needs:
        return standard_needed(seen, needs)
    return _std_name(seen, detail.get("name", ""), detail.get("from", ""))


_STD = {"1y": "14", "1z": "17", "2a": "20", "2b": "23"}


def _flag_unknown(seen: Seen, flag: str) -> Answer:
    standard = _STD.get(flag, flag)
    least = build_names()["flags"].get(standard)
    have = seen.versions.get("gcc")
    mine = f" (gcc {have})" if have else ""
    cause = f"The host compiler{mine} is too old: it does not know -std=c++{flag}."
    if least:
        cause = (
            f"The host compiler{mine} is too old: it does not know -std=c++{flag}, which gcc "
            f"{least} and newer take."
        )
    return seen.answer(
        KIND, COMPILE, cause, owner="gcc", direction="none", confidence="high",
        help=("command -v gcc g++; gcc --version; ls /usr/bin/g++*",
              f"CC=gcc-N CXX=g++-N {build_command(seen)}"),
        notes=("A newer gcc beside this one is enough: CC and CXX name it (with devtoolset, "
               "gcc-toolset or conda's gxx too). Warnings about ninja or the compiler's ABI in the "
               "same text are not the failure.",),
    )  # fmt: skip


def _nvcc_flag(seen: Seen, flag: str) -> Answer:
    cause = (
        f"nvcc does not know -std=c++{flag}, so that the toolkit is older than what is built (nvcc "
        "takes c++17 since CUDA 11.0 and c++20 since CUDA 12.0)."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner="nvcc", direction="none", confidence="high",
        help=("nvcc --version; ls -d /usr/local/cuda*",),
        notes=("CUDA_HOME decides which nvcc is taken; it need not be the newest, only of torch's "
               "CUDA major version and new enough.",),
    )  # fmt: skip


def _std_name(seen: Seen, name: str, standard: str) -> Answer:
    dropped = next((s for s, names in build_names()["dropped"].items() if name in names), "")
    if dropped and not standard:
        cause = (
            f"std::{name} was taken out of C++{dropped}, and the build compiles with that standard "
            "or a newer one: the source was written for an older one, so most often for an older "
            "torch."
        )
        return seen.answer(
            KIND, COMPILE, cause, owner=package_in(seen), direction="file-older",
            confidence="medium", help=(_which_torch(seen), "gcc --version"),
        )  # fmt: skip
    passed = _helper_standard(seen.torch)
    cause = f"std::{name} is of C++{standard}, and the compiler ran with an older standard."
    direction, notes = "unknown", []
    if passed and int(passed) < int(standard):
        cause += (
            f" torch {seen.torch} passes -std=c++{passed} where setup.py names none: the source is "
            "for a newer torch."
        )
        direction = "file-newer"
    notes.append(
        "torch's build helper passes -std=c++14 before torch 2.0, c++17 since 2.0 and c++20 with "
        "2.13; a -std in the package's own build files comes on top. Where that is right, a header "
        "is not included, or the compiler is too old for it."
    )
    notes.append(
        "An older release of the package, a newer torch, or the newer -std in the build files is "
        "the way out; the compiler need not be broken."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen), direction=direction, confidence="medium",
        help=(_which_torch(seen), "gcc --version"), notes=tuple(notes),
    )  # fmt: skip


def host_headers(seen: Seen) -> Answer:
    """An error inside the headers of gcc or glibc: nvcc does not understand them."""
    detail = seen.mention.detail
    gcc, nvcc = detail.get("gcc", ""), detail.get("nvcc", "")
    whose = f"gcc {gcc}"
    said = detail.get("said", "")[:100].rstrip(". ")
    if not gcc:
        return _of_the_c_library(seen, said)
    if detail.get("sure"):
        cause = (
            f'The error ("{said}") is in the headers of {whose}, not in the source: nvcc is older '
            "than they are and does not understand them. A newer CUDA toolkit, or an older gcc for "
            "this build, is the way out."
        )
    else:
        cause = (
            f'The compiler stopped in the headers of {whose} ("{said}"). Either nvcc is older than '
            "they are and does not understand them, or the source uses them wrongly: the lines "
            "after the message that name a file of the package tell."
        )
    notes = []
    if nvcc.startswith("/usr/bin/"):
        notes.append(
            f"{nvcc} is the toolkit of the distribution (package nvidia-cuda-toolkit), often older "
            "than one in /usr/local/cuda: CUDA_HOME and PATH decide which is taken."
        )
    older = str(int(gcc) - 1)
    return seen.answer(
        KIND, COMPILE, cause, owner="nvcc", direction="none",
        confidence="high" if detail.get("sure") else "medium",
        help=("nvcc --version; gcc --version; ls -d /usr/local/cuda*; ls /usr/bin/g++*",
              f"NVCC_PREPEND_FLAGS='-ccbin g++-{older}' CC=gcc-{older} CXX=g++-{older} "
              f"{build_command(seen)}"),
        notes=tuple(notes),
    )  # fmt: skip


def _of_the_c_library(seen: Seen, said: str) -> Answer:
    """glibc's headers declare what CUDA's declare otherwise, or use types that nvcc lacks."""
    cause = (
        f'The error ("{said}") is in the headers of the system\'s C library, not in the source: '
        "nvcc is older than they are and does not understand them. A newer CUDA toolkit of torch's "
        "CUDA major version, or a container of an older distribution, is the way out; another gcc "
        "changes nothing."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner="nvcc", direction="none", confidence="medium",
        help=("nvcc --version; ldd --version | head -1; ls -d /usr/local/cuda*",),
    )  # fmt: skip


def source_error(seen: Seen) -> Answer:
    """An error of a compiler that says nothing of torch, of a standard or of a toolkit."""
    said = seen.mention.detail.get("said", "")[:120].rstrip(". ")
    gone = next((name for name in names_followed() if name in said), None)
    if gone is not None:
        from fa_forensics.why.texts.python.words_text import python_name_gone

        detail = {"by": next((by for by in followed_by(gone) if by in seen.mention.line), "")}
        mention = dataclasses.replace(seen.mention, symbol=gone, detail=detail)
        return python_name_gone(dataclasses.replace(seen, mention=mention))
    helps: tuple[str, ...]
    if seen.mention.detail.get("torch_header"):
        cause = (
            f'The compiler stopped in torch\'s own headers ("{said}"): with a -std, a gcc or an '
            "nvcc that this torch does not take, seldom through the headers themselves. The "
            "extension was never built, and no file of it is at fault."
        )
        helps = (_which_torch(seen), "nvcc --version; gcc --version",
                 "grep -rn 'std=c++' setup.py CMakeLists.txt")  # fmt: skip
    else:
        cause = (
            f'The compiler refused the source ("{said}"), so that the extension was never built. '
            "Whether the source is for another torch, for another toolkit, or wrong, this line "
            "alone does not tell."
        )
        helps = (_which_torch(seen), "nvcc --version; gcc --version")
    notes = ["The first error counts, later ones follow from it."]
    if re.search(r"atomicAdd|\b__h(?:add|mul|fma|max|min|sub|eq|lt|gt)\w*", said):
        notes.append(
            "Which of these functions there are is a question of the GPU that is compiled for: "
            "atomicAdd takes double since compute capability 6.0, half since 7.0, bfloat16 since "
            "8.0. TORCH_CUDA_ARCH_LIST without the older ones is worth a try."
        )
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen), direction="unknown", confidence="low",
        help=helps, notes=tuple(notes),
    )  # fmt: skip


def feature_needs_target(seen: Seen) -> Answer:
    """``Feature '...' requires .target sm_53 or higher``: compiled for a GPU that is too old."""
    detail = seen.mention.detail
    feature = detail.get("feature", "")
    if detail.get("ptx"):
        cause = (
            f'The source uses "{feature}", which takes PTX {detail["ptx"]}: the toolkit of this '
            "build is older than that."
        )
        return seen.answer(
            KIND, COMPILE, cause, owner="nvcc", direction="none", confidence="high",
            help=("nvcc --version; ls -d /usr/local/cuda*",),
        )  # fmt: skip
    least = detail.get("least", "")
    number = re.sub(r"\D", "", least)
    needs = f"{number[:-1]}.{number[-1]}" if len(number) > 1 else least
    found = re.search(r"(?:compute|sm)_(\d{2,3})", seen.mention.line.split("Feature")[0])
    mine = f" ({found[1][:-1]}.{found[1][-1]} in this line)" if found else ""
    cause = (
        f'The code uses "{feature}", which GPUs have since compute capability {needs}, and the '
        f"build compiles it for an older one too{mine}: the list of targets is too wide for this "
        "package. Neither the GPU nor the toolkit is shown to be at fault."
    )
    ask = (
        f"{seen.python} -c 'import torch; print(torch.cuda.get_device_name(), "
        "torch.cuda.get_device_capability())'"
    )
    return seen.answer(
        "gpu-arch", COMPILE, cause, owner=package_in(seen) or "nvcc", direction="none",
        confidence="high",
        help=(ask, f'TORCH_CUDA_ARCH_LIST="X.Y" {build_command(seen)}'),
        notes=(
            "X.Y is what the first command prints; CMake builds may take CMAKE_CUDA_ARCHITECTURES. "
            f"A GPU below {needs} cannot run this code.",
        ),
    )  # fmt: skip


def compiler_warned(seen: Seen) -> Answer:
    """``Your compiler (c++) is not compatible with the compiler Pytorch was built with``."""
    compiler = seen.mention.detail.get("compiler", "")
    cause = (
        f"torch's build helper warns that {compiler} is not the compiler by whose name torch was "
        "built (g++ on Linux). It goes by the name alone: where c++ is gcc under another name the "
        "warning is empty, and it ends no build. What failed stands in another line."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner="gcc", direction="unknown", confidence="low",
        help=(f"readlink -f $(command -v {compiler if compiler.isalnum() else 'c++'}); "
              "g++ --version",
              f"CC=gcc CXX=g++ {build_command(seen)}"),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "torch-name-missing": torch_name_missing,
    "cxx-standard": cxx_standard,
    "host-headers": host_headers,
    "source-error": source_error,
    "header-not-included": not_included,
    "feature-needs-target": feature_needs_target,
    "compiler-warned": compiler_warned,
}
