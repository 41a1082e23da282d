"""Signs of where a failing file comes from: a JIT cache, an egg, torch's own libraries."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.owner import is_cuda, is_torch, owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.builds import cmake_build, is_module
from fa_forensics.why.ways.commands import which_torch
from fa_forensics.why.ways.one_libtorch import one_libtorch

#: torch.utils.cpp_extension.load builds into TORCH_EXTENSIONS_DIR/pyXY_cuZZZ/NAME/NAME.so.
_JIT = lazily(r"(?P<folder>(?:\S*/)?torch_extensions/(?:py\d+_\w+/)?\w[\w.+-]*)/[^/]+\.so\b")
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
    answer = _as_the_file_is(answer, seen, file)
    if seen.mention.detail.get("os") == "macOS" or file.endswith((".dylib", "-darwin.so")):
        answer = _without_inspect(answer, seen)
    if answer.code == "FA402":
        from fa_forensics.why.other_names.python_around import around_python

        return around_python(answer, seen)
    if is_torch_file(file) and (is_torch(answer.owner or "") or _torchs_own(answer, seen)):
        return _inside_torch(answer, seen, file)
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
    notes = (n for n in answer.notes if not n.startswith(_OF_EXTENSIONS))
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
    notes = (n for n in answer.notes if not n.startswith((*_OF_EXTENSIONS, "Where pip compiled")))
    return replace(answer, help=tuple(commands), notes=(note, _OPTIONS, *notes))


#: Said of a build directory that is made anew: what it was configured with goes with it.
_OPTIONS = (
    "The options that cmake was given before have to be given again, as what they switch on is "
    "left out without them: CMakeCache.txt in the old build directory has them (grep -E "
    "'^[A-Z_]+:' of it, before it is removed)."
)


#: How notes on another build of an extension begin.
_OF_EXTENSIONS = (
    "Installing another torch changes", "One of the two commands", "Another build of",
    "Every torch since",
    "A file that was compiled", "A build of the extension", "The command that begins with",
    "Compiled on that machine",
)  # fmt: skip

#: The files of torch that no other package's library is called like.
_IN_TORCH = lazily(r"-packages/torch/(?:_C(?:\.[\w-]+)?\.so|lib/lib(?:shm|caffe2|ATen|TH\w*)\.so)")
#: A function of C++, or one of torch's TH libraries, which were C.
_OF_TORCH = lazily(r"_Z|THC?[A-Z_]\w")


def _torchs_own(answer: Answer, seen: Seen) -> bool:
    """Whether a name that no release has can only be of another torch: none was built here."""
    if answer.code != "FA205" or answer.provider or "flag:torch-source" in seen.versions:
        return False
    return _OF_TORCH.match(answer.symbol or "") is not None


def _inside_torch(answer: Answer, seen: Seen, file: str) -> Answer:
    """A library of torch that lacks a name of torch: two torches in one process."""
    name = file.rsplit("/", 1)[-1]
    gap = _release_without(answer, seen)
    if gap:
        return _fault_of_the_release(answer, seen, name, gap)
    cause = (
        f"{name} is torch's own library and the missing name is torch's too, so libraries of two "
        "torches are mixed: another libc10 or libtorch comes first, from LD_LIBRARY_PATH, a "
        "directory of the system's (/usr/local/lib), a C++ libtorch or an older install in the "
        "same directory."
    )
    if "/" in file and not re.search(r"-packages/|/torch/lib/|\.\.\.", file):
        look, note = one_libtorch(answer.source_line or "", seen.python)
        return replace(
            answer, kind="wrong-torch", code="FA607", cause=cause, confidence="medium",
            help=(look, "echo $LD_LIBRARY_PATH; ldconfig -p | grep -E 'lib(torch|c10)'",
                  *answer.help[-1:]),
            notes=(note,),
        )  # fmt: skip
    own = is_torch(answer.owner or "")
    notes = (n for n in answer.notes if own and not n.startswith(_OF_EXTENSIONS))
    conda = "; conda list | grep -i torch" if "conda" in file else ""
    copies = "grep -E 'lib(c10|torch|caffe2)'"
    where = file if "-packages/" in file else f"TORCH_DIRECTORY/lib/{name}"
    return replace(
        answer, kind="wrong-torch", code="FA607", owner=answer.owner if own else "torch",
        direction=answer.direction if answer.exported_by else "unknown",
        cause=f"{cause}{_of_which(answer)}{_hidden_between(answer, seen)}",
        confidence="high" if own and _two_for_sure(answer, seen) else "medium",
        help=(
            f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; print(torch.__path__)'",
            f"ldd {where} | {copies}; ldconfig -p | {copies}",
            f"{seen.pip} list | grep -i torch{conda}",
            f"{seen.pip} uninstall -y torch",
            *answer.help[-1:],
        ),
        notes=(*_FOREIGN_COPY, _ONE_TORCH, *_in_no_such_flavour(answer), *notes),
    )  # fmt: skip


#: What torch_name says of an extension, and cannot be of a library of torch's own.
_OF_AN_EXTENSION = lazily(
    r"(?:; |, )(?:else|or) torch is not whole[^.]{0,200}"
    r"| Or the file does not list \S{1,60} among its needs, and nothing loaded it\."
)


def _of_which(answer: Answer) -> str:
    """What the name's life says of the two torches."""
    return f" {_OF_AN_EXTENSION.sub('', answer.cause)}" if answer.exported_by else ""


def _hidden_between(answer: Answer, seen: Seen) -> str:
    """That releases between others lack the name by themselves, where no torch is told."""
    told = re.search(r"that lacks it is ([\d., ]{5,200})", answer.cause)
    if seen.place.present is not None or told is None or not answer.exported_by:
        return ""
    first, last = order_key(answer.exported_by[0]), order_key(answer.exported_by[-1])
    named = re.findall(r"\d{1,2}(?:\.\d{1,3}){2}", told[1])
    lacking = ", ".join(one for one in named if first < order_key(one) < last)
    return (
        f" A torch {lacking} that was built from source most likely lacks it by itself: its "
        "source keeps the name hidden, and nothing is mixed then."
        if lacking
        else ""
    )


def _in_no_such_flavour(answer: Answer) -> tuple[str, ...]:
    """That a name is wanted in the flavour which no release of the table has it in."""
    rows = answer.overloads if not answer.exported_by else ()
    if not rows or "7__cxx11" not in (answer.symbol or ""):
        return ()
    if any("7__cxx11" in row.symbol for row in rows):
        return ()
    return (
        "The file wants the name in the cxx11 flavour of std::string, and the published wheels "
        "that have it have the other one: one of the two torches is built from source.",
    )


#: The cure of a copy that lies elsewhere.
_FOREIGN_COPY = (
    "Where the first command works, LD_LIBRARY_PATH brings the other copy. Where the second one "
    "shows a libc10, libtorch or libcaffe2 outside torch's own directory (in /usr/local/lib, from "
    "a C++ libtorch or a build of torch that was installed there), that copy goes, and ldconfig "
    "runs after it: installing torch again does not change it.",
)
#: The cure of two torches in one directory.
_ONE_TORCH = (
    "Where the first command fails too and no copy lies elsewhere, the files in torch's own "
    "directory are mixed: uninstall until pip finds no torch (and with conda what conda list shows "
    "of it), remove what is left of site-packages/torch, and install one torch once. No extension "
    "has to be built again for it."
)


def _two_for_sure(answer: Answer, seen: Seen) -> bool:
    """Whether nothing but two torches explains it: no build by hand, no release that lacks it."""
    by_hand = "flag:torch-source" in seen.versions
    return not answer.provider and not by_hand and ", " not in answer.interval


def _release_without(answer: Answer, seen: Seen) -> str:
    """The text's release of torch, where it lacks a name that those before and after it have."""
    present = seen.place.present
    if present is None or present.installed or not present.published or not answer.exported_by:
        return ""
    own = order_key(present.release)
    sides = {order_key(release) > own for release in answer.exported_by}
    return present.release if present.release not in answer.exported_by and len(sides) > 1 else ""


def _fault_of_the_release(answer: Answer, seen: Seen, name: str, release: str) -> Answer:
    """A release whose libraries keep a name to themselves that another of its libraries wants."""
    later = next(r for r in answer.exported_by if order_key(r) > order_key(release))
    cause = (
        f"{name} is torch's own library and the missing name is torch's too. torch "
        f"{answer.interval} export it, and torch {release} does not: most likely its source keeps "
        f"the name hidden (the export macro is left out), so that a build of torch {release} from "
        "source lacks it whatever is installed beside it. Else libraries of two torches are mixed."
    )
    note = (
        f"Built from source: torch {later}, whose libraries export it, or the published wheel of "
        f"{release}, or its declaration mended in the source before torch is built again. No "
        "library of CUDA's is to be replaced for it."
    )
    return replace(
        answer, kind="own-symbol", code="FA205", cause=cause, confidence="medium",
        direction="none", help=(
            f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"',
            f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; print(torch.__path__)'",
            *answer.help[-1:],
        ),
        notes=(note,),
    )  # fmt: skip
