"""A library of torch's own that lacks a name of torch: two torches, or parts of two, are mixed."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.owner import is_torch
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.one_libtorch import one_libtorch
from fa_forensics.why.ways.signs import OF_EXTENSIONS


def inside_torch(answer: Answer, seen: Seen, file: str) -> Answer:
    """A library of torch that lacks a name of torch: two torches in one process."""
    name = file.rsplit("/", 1)[-1]
    gap = _release_without(answer, seen)
    if gap:
        return _fault_of_the_release(answer, seen, name, gap)
    cause = (
        f"{name} is torch's own library and the missing name is torch's too, so most likely "
        "libraries of two torches are mixed: another libc10 or libtorch comes first, from "
        "LD_LIBRARY_PATH, a directory of the system's (/usr/local/lib), a C++ libtorch or an older "
        "install in the same directory."
    )
    if "/" in file and not re.search(r"-packages/|/torch/(?:lib/|_C)|\.\.\.", file):
        look, note = one_libtorch(answer.source_line or "", seen.python)
        return replace(
            answer, kind="wrong-torch", code="FA607", cause=cause, confidence="medium",
            help=(look, "echo $LD_LIBRARY_PATH; ldconfig -p | grep -E 'lib(torch|c10)'",
                  *answer.help[-1:]),
            notes=(note,),
        )  # fmt: skip
    own = is_torch(answer.owner or "")
    notes = (n for n in answer.notes if own and not n.startswith(OF_EXTENSIONS))
    conda = "; conda list | grep -i torch" if "conda" in file else ""
    copies = "grep -E 'lib(c10|torch|caffe2)'"
    where = f"TORCH_DIRECTORY/{name}" if name.startswith("_C") else f"TORCH_DIRECTORY/lib/{name}"
    where = file if "-packages/" in file else where
    again, sources = _of_source(seen)
    unknown = _BEFORE_1.search(file) or ("flag:torch-source" in seen.versions and not seen.torch)
    hidden = _hidden_between(answer, seen)
    which = "" if unknown else f"{_of_which(answer)}{hidden}"
    option = "" if hidden else answer.demangled or ""
    return replace(
        answer, kind="wrong-torch", code="FA607", owner=answer.owner if own else "torch",
        direction=answer.direction if answer.exported_by else "unknown",
        cause=" ".join((f"{cause}{which}", *_of_itself(seen, file, option))),
        confidence="high" if own and not unknown and _two_for_sure(answer, seen) else "medium",
        help=(
            f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; print(torch.__path__)'",
            f"ldd {where} | {copies}; ldconfig -p | {copies}",
            f"{seen.pip} list | grep -i torch{conda}",
            f"{seen.pip} uninstall -y torch",
            *again,
            *answer.help[-1:],
        ),
        notes=(*_FOREIGN_COPY, *(sources or (_ONE_TORCH,)), *_in_no_such_flavour(answer), *notes),
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


#: Libraries that torch had before 1.0, which is where the record begins.
_BEFORE_1 = lazily(r"/lib(?:ATen|TH)\w*\.so[^/]*$")


#: Names behind an #ifdef of a build's options, or of a file that two of torch's libraries share.
_OF_OPTIONS = lazily(r"torch::cuda::nccl::|torch::cuda::\w+\(|c10d::|\bnccl|NCCL|GLOO|MPI")


def _of_itself(seen: Seen, file: str, name: str) -> tuple[str, ...]:
    """What a torch that was built by hand can be besides; most were, before 1.0."""
    if _OF_OPTIONS.search(name):
        return (
            "Or, where this torch was built from source, it lacks the name by itself: the file "
            "with it was left out by an option of the build (USE_NCCL, USE_DISTRIBUTED), or its "
            "library keeps it hidden, and nothing is mixed then.",
        )
    if "flag:torch-source" not in seen.versions and not _BEFORE_1.search(file):
        return ()
    return (
        "Or, where this torch was built from source, it is mixed itself: its build directories "
        "keep objects of an earlier state of the sources, or its submodules are of another one.",
    )


def _of_source(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) that build a torch of one's own again, whole; none for other torches."""
    if "flag:torch-source" not in seen.versions:
        return (), ()
    return (
        "git submodule update --init --recursive && python setup.py clean && "
        "rm -rf build torch/lib/build torch/lib/tmp_install",
    ), (
        "The command with setup.py clean is for the directory of torch's own sources, when pip and "
        "conda find no torch any more and what is left of site-packages/torch is removed; then "
        "torch is built there again as before. No extension has to be built again for it.",
    )


def _two_for_sure(answer: Answer, seen: Seen) -> bool:
    """Whether nothing but two torches explains it: no build by hand, no release that lacks it."""
    by_hand = "flag:torch-source" in seen.versions or _OF_OPTIONS.search(answer.demangled or "")
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
