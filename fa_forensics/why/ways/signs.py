"""Signs of where a failing file comes from: a JIT cache, an egg, torch's own libraries."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.cuda_names import is_in_every
from fa_forensics.facts.owner import is_cuda, is_torch, owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.ways.builds import cmake_build, is_module
from fa_forensics.why.ways.commands import which_torch

#: torch.utils.cpp_extension.load builds into TORCH_EXTENSIONS_DIR/pyXY_cuZZZ/NAME/NAME.so, and
#: programs of their own into a directory below that (custom_ops.py of stylegan3: NAME/DIGEST-GPU).
_JIT = lazily(
    r"(?P<folder>(?:\S*/)?torch_extensions/(?:py\d+_\w+/)?\w[\w.+-]*)(?:/[\w.+-]{1,200})?"
    r"/[^/]+\.so\b"
)
#: Where setup.py and CMake build; what is installed lies in site-packages.
_BUILD = lazily(r"^(?!\S*-packages/)\S*/build/(?:lib\b[\w.-]{0,60}|temp\b[\w.-]{0,60})/")
#: Where setuptools builds, and a CMake that its setup.py runs (distutils: build_temp, build_lib).
_BY_SETUP = lazily(r"/build/(?:temp|lib)\.")
_EGG = lazily(r"(?P<egg>\S+?\.egg(?:-tmp)?)/")


_NOT_FFMPEG = (
    "FFmpeg is not the cause: torchcodec tries one library for each FFmpeg release, and this one "
    "was found with its FFmpeg; it is a name of torch that it misses."
)


def _beside_libtorch(answer: Answer, seen: Seen) -> Answer:
    """A C++ libtorch in the text of a module that Python loads: that has torch's own libraries."""
    flavour = "cxx11, " if "libtorch_abi" in seen.versions else ""
    note = (
        f"The text has libtorch {seen.versions['libtorch']} ({flavour}PyTorch's download for C++), "
        "and Python loads the libraries of the torch that is installed for it, whatever a module "
        "was linked with. A module for Python is built on that torch: CMAKE_PREFIX_PATH is what "
        "torch.utils.cmake_prefix_path prints."
    )
    return replace(answer, notes=(note, *answer.notes))


def with_signs(answer: Answer, seen: Seen) -> Answer:
    """An answer with what the failing file's path shows of its origin."""
    file = seen.mention.file or ""
    answer = _by_its_path(_as_the_file_is(answer, seen, file), seen, file)
    if seen.mention.detail.get("os") == "macOS" or file.endswith((".dylib", "-darwin.so")):
        return _without_inspect(answer, seen)
    return answer


def _by_its_path(answer: Answer, seen: Seen, file: str) -> Answer:
    """An answer with what the path alone shows."""
    if answer.code == "FA402":
        from fa_forensics.why.other_names.python_around import around_python

        return around_python(answer, seen)
    if is_torch_file(file) and (is_torch(answer.owner or "") or _torchs_own(answer)):
        from fa_forensics.why.ways.torch_files import inside_torch

        return inside_torch(answer, seen, file)
    if "flag:aoti" in seen.versions and answer.kind == "cxx11-abi":
        from fa_forensics.why.other_names.plain_extension import of_inductor

        return of_inductor(answer, seen)
    if "flag:plain-extension" in seen.versions:
        from fa_forensics.why.other_names.plain_extension import of_plain_extension

        plain = of_plain_extension(answer, seen)
        if plain is not None:
            return plain
    if "libtorch" in seen.versions and is_torch(answer.owner or ""):
        answer = _beside_libtorch(answer, seen)
    if answer.owner is not None and is_cuda(answer.owner) and is_torch_file(file):
        note = (
            f"The file that misses it, {file.rsplit('/', 1)[-1]}, is torch itself: no extension "
            "has to be built again."
        )
        if answer.direction != "none":
            note += (
                " What was imported before torch can be what loaded the older copy: import torch "
                "goes first then."
            )
        if answer.code == "FA210" and is_in_every(answer.owner, answer.symbol or ""):
            from fa_forensics.why.nvidia.never_lacked import left_out_of_torch

            return left_out_of_torch(answer, seen, file)
        if answer.code == "FA210":
            return _older_than_the_table(answer, note)
        return replace(answer, notes=(note, *answer.notes))
    if file.rsplit("/", 1)[-1].startswith("libtorchcodec_") and is_torch(answer.owner or ""):
        return replace(answer, notes=(_NOT_FFMPEG, *answer.notes))
    if answer.owner == "torch/torch_python":
        from fa_forensics.why.torch_names.torch_python import of_torch_python

        other = of_torch_python(answer, seen)
        if other is not None:
            return other
    jit = _JIT.search(file)
    if jit is not None and answer.kind in DRIFT:
        return stale_jit(answer, jit["folder"])
    if _BUILD.search(file) and answer.kind in DRIFT:
        return _own_build_first(answer, seen, file)
    egg = _EGG.search(file)
    if egg is not None and answer.kind in DRIFT:
        from fa_forensics.why.ways.eggs import of_egg

        return of_egg(answer, seen, egg["egg"])
    return answer


#: What asks a build for CUDA, which no Mac has: mmcv's FORCE_CUDA=1, apex's APEX_CUDA_EXT=1.
_FOR_CUDA = lazily(r"\b[A-Z_]{0,20}CUDA[A-Z_]{0,20}=1 ")
_BY_THE_LAST = lazily(r",\swhich\sthe\slast\scommand\stells\.$")
_ELF_TOOLS = ("fa-forensics inspect ", "readelf ", "ldd ", "ldconfig ")


def _without_inspect(answer: Answer, seen: Seen) -> Answer:
    """On a Mac files are no ELF: the torch that is loaded is what can be looked at."""
    commands = [_FOR_CUDA.sub("", t) for t in answer.help if not t.startswith(_ELF_TOOLS)]
    if not any("torch.__version__" in text for text in commands):
        commands.append(which_torch(seen.place))
    notes = tuple(_BY_THE_LAST.sub(".", note) for note in answer.notes)
    return replace(answer, help=tuple(commands), notes=notes)


def _as_the_file_is(answer: Answer, seen: Seen, file: str) -> Answer:
    """What the failing file itself says, where it is here."""
    if seen.elsewhere or not file.startswith("/") or not answer.symbol:
        return answer
    from fa_forensics.facts.dependents import file_needs

    if file_needs(file, answer.symbol) is not False:
        return answer
    note = (
        f"{file} as it is now does not need this name: it was replaced since the error, or "
        "another copy of it was loaded. Try again before changing anything."
    )
    return replace(answer, notes=(note, *answer.notes), confidence="medium")


def _older_than_the_table(answer: Answer, note: str) -> Answer:
    """torch's own files list the libraries they need: one is there, and older than any known."""
    cause = (
        f"Every version on record exports it ({answer.interval}), and torch's own file lists that "
        "library: the copy that is loaded is older than these, most often one of a CUDA toolkit on "
        "LD_LIBRARY_PATH, or the wheel that brings it is not whole."
    )
    return replace(
        answer, code="FA204", direction="file-newer", cause=cause, confidence="medium",
        notes=(note, *answer.notes),
    )  # fmt: skip


def is_torch_file(path: str) -> bool:
    """Whether a path is that of one of torch's own libraries."""
    owner = owner_of_library(path.rsplit("/", 1)[-1])
    return (owner is not None and is_torch(owner)) or _IN_TORCH.search(path) is not None


def jit_folder(path: str) -> str | None:
    """The directory of torch's JIT cache that a file lies in; None for any other file."""
    found = _JIT.search(path)
    return None if found is None else found["folder"]


def remove_folder(folder: str) -> str:
    """The command that removes one directory; ``~`` stays what the shell expands."""
    return f"rm -r {quoted(folder)}"


#: How notes begin that tell of another torch as the second of two ways.
_OF_TWO_WAYS = lazily(
    r"One\sof\sthe\stwo\scommands|Another\sbuild\sof\sthe\sextension\sor\sanother"
)
#: ``torch_extensions/py310_cu121/``: not so before torch 1.9, nor under TORCH_EXTENSIONS_DIR.
_KEYED = lazily(r"torch_extensions/py\d+_\w+/")


def stale_jit(answer: Answer, folder: str) -> Answer:
    """A build in torch's JIT cache, which is not kept by torch's release."""
    keyed = _KEYED.search(f"{folder}/") is not None
    note = (
        f"The file is a JIT build in torch's cache ({folder}). That cache is kept by Python and "
        "CUDA version only, so a build for another torch stays in it: remove that one directory, "
        "and it is built again at the next start. Nothing needs to be reinstalled."
    )
    if not keyed:
        note = (
            f"The file is a JIT build in torch's cache ({folder}). That cache is kept by the "
            "extension's name alone, so a build for another torch stays in it: remove that one "
            "directory, and it is built again at the next start. Nothing needs to be reinstalled."
        )
    return replace(
        answer,
        help=(remove_folder(folder), *answer.help[-1:]),
        notes=(note, *(n for n in answer.notes if not _OF_TWO_WAYS.match(n))),
    )


def _own_build_first(answer: Answer, seen: Seen, file: str) -> Answer:
    """A file in the build directory of a source tree, which goes before an installed package."""
    library = file.rsplit("/", 1)[-1].startswith("lib") and not is_module(file)
    if library or "flag:by-path" in seen.versions:
        return _loaded_by_path(answer, seen, file)
    folder = file.rpartition("/")[0]
    note = (
        f"The file lies in {folder}, the build directory of a source tree, and not in "
        "site-packages: PYTHONPATH or the current directory leads there, so that an older build of "
        "one's own is taken in place of the package that is installed. Leave the directory out, "
        "or build there again for the torch that runs."
    )
    commands = (f"env -u PYTHONPATH {seen.python} -c 'import torch; import {seen.module}'",
                *(text for text in answer.help if '"torch==' not in text))  # fmt: skip
    notes = (n for n in answer.notes if not n.startswith(OF_EXTENSIONS))
    return replace(answer, help=commands, notes=(note, *notes))


def _loaded_by_path(answer: Answer, seen: Seen, file: str) -> Answer:
    """A C++ library in its own build directory, which a program loads by its path."""
    note = (
        f"{file.rsplit('/', 1)[-1]} is loaded by its path, from the directory that it was built "
        "in: no search path plays a part. It has to be built there again for the torch that loads "
        "it. A build that asks a Python for torch's flavour takes that of the Python which CMake "
        "found: it has to be the one that runs."
    )
    if _BY_SETUP.search(file):
        from fa_forensics.why.ways.trees import in_setup_build

        return in_setup_build(answer, file, raw_python(seen))
    commands = [text for text in answer.help if not re.search(r'"torch[=>]=|^rm -rf build', text)]
    commands.insert(-1, cmake_build(raw_python(seen)))
    notes = (n for n in answer.notes if not n.startswith((*OF_EXTENSIONS, "Where pip compiled")))
    return replace(answer, help=tuple(commands), notes=(note, _OPTIONS, *notes))


#: Said of a build directory that is made anew: what it was configured with goes with it.
_OPTIONS = (
    "The options that cmake was given before have to be given again, as what they switch on is "
    "left out without them: CMakeCache.txt in the old build directory has them (grep -E "
    "'^[A-Z_]+:' of it, before it is removed)."
)


#: How notes on another build of an extension begin.
OF_EXTENSIONS = (
    "Installing another torch changes", "One of the two commands", "Another build of",
    "Every torch since",
    "A file that was compiled", "A build of the extension", "The command that begins with",
    "Compiled on that machine",
)  # fmt: skip

#: The files of torch that no other package's library is called like.
_IN_TORCH = lazily(
    r"(?:^|/)torch/_C(?:\.[\w-]+)?\.so|(?:^|/)torch/lib/lib(?:shm|caffe2\w*|ATen\w*|TH\w*)\.so"
)
#: A function of C++, or one of torch's TH libraries, which were C.
_OF_TORCH = lazily(r"_Z|THC?[A-Z_]\w")


def _torchs_own(answer: Answer) -> bool:
    """Whether a name that no release has can only be of another torch, or of a part of one."""
    if answer.code != "FA205" or answer.provider:
        return False
    return _OF_TORCH.match(answer.symbol or "") is not None
