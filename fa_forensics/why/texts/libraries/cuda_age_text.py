"""A name of a CUDA library that is older, or newer, than what the text tells of CUDA and torch."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.cuda_names import (
    counted_by,
    cuda_name_since,
    cuda_on_pypi,
    first_torch_with,
    is_emitted,
    newest_cuda_of,
)
from fa_forensics.facts.owner import title_of
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.nvidia.cuda_age import OF_NVCC
from fa_forensics.why.nvidia.cuda_origin import EITHER
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.needing import files_of, rebuild_commands
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.commands import needed_libraries


def by_its_age(answer: Answer, seen: Seen) -> Answer:
    """The text's CUDA is older than the name: an older library, and not one that is not there."""
    name, owner = answer.symbol or "", answer.owner or ""
    since = cuda_name_since(owner, name)
    there = (seen.torch_cuda or seen.versions.get("cuda") or "").strip()
    if owner == "cudnn":
        there = seen.mention.detail.get("cudnn", "")
    numbers = re.match(r"\d{1,2}(?:\.\d{1,3}){0,2}", there)
    if since is None:
        return answer
    loaded = seen.versions.get("loaded:cudnn", "") if owner == "cudnn" else ""
    if loaded and _is_older(loaded, since):
        return _linked_with_older(answer, seen, since, loaded)
    if is_emitted(name) and (told := _by_builds(seen, since)):
        made = _made_by_newer(answer, seen, since, told)
        note, command = _another_build(seen, since)
        if not note:
            return made
        return replace(
            made, notes=(*made.notes, note), help=(*made.help[:-1], command, made.help[-1])
        )
    if numbers is None or not _is_older(numbers[0], since):
        return _by_torch_age(answer, seen, since)
    told = f"the text has {counted_by(owner)} {numbers[0]}, whose library has no such name"
    return _made_by_newer(answer, seen, since, told)


def _linked_with_older(answer: Answer, seen: Seen, since: str, loaded: str) -> Answer:
    """The text shows an older release of the library as the one that the file looks for."""
    counted, title = counted_by(answer.owner or ""), title_of(answer.owner or "")
    cause = (
        f"The name came with {counted} {since}, and the text shows {title} {loaded} as the one "
        f"that the file looks for: it was compiled with the headers of {counted} {since} or newer "
        f"and linked with the older {title}, which came first on the linker's way, most often that "
        f"of a conda package or of an older toolkit. The older {title} has to go from there, and "
        "the file is built again, from an empty build directory."
    )
    stem = f"lib{(answer.owner or '').lower()}"
    helps = [
        needed_libraries(files_of(seen), stem[3:]),
        f"conda list | grep -iE 'cuda|{stem[3:]}'; ls -l /usr/local/cuda*/lib64/{stem}* "
        f"/usr/lib/*/{stem}*",
        *rebuild_commands(seen),
    ]
    notes = [
        f"The first command shows which {title} the file asks for. A newer {title} beside the "
        "old one does not help before that: the file asks for the old one by its number."
    ]
    if "flag:torch-source" in seen.versions:
        notes.append(
            "For torch itself: python setup.py clean in its sources, and CUDNN_INCLUDE_DIR and "
            f"CUDNN_LIB_DIR (CUDNN_LIBRARY in newer releases) at one and the same {title}, before "
            "it is built again."
        )
    return replace(
        answer, kind="versioned-symbol", code="FA204", cause=cause, direction=NEWER,
        confidence="medium", help=tuple(dict.fromkeys((*helps, *answer.help[-1:]))),
        notes=(*notes, *(n for n in answer.notes if n != EITHER)),
    )  # fmt: skip


def _by_builds(seen: Seen, since: str) -> str:
    """What an old torch's builds say of its CUDA beside the nvcc of the text; "" for nothing."""
    torch = (seen.torch or "").partition("+")[0]
    newest, pypi = newest_cuda_of(torch), cuda_on_pypi(torch)
    if seen.torch_cuda or newest is None or pypi is None:
        return ""
    toolkit = re.match(r"\d{1,2}\.\d", (seen.versions.get("cuda") or "").strip())
    if toolkit and _numbers(toolkit[0]) > _numbers(newest):
        return (
            f"torch {torch} was given out for CUDA {newest} at most (for {pypi} on the package "
            f"index), whose runtime it has in the process, while the text has CUDA {toolkit[0]}, "
            "which is most likely what compiled"
        )
    if toolkit and _numbers(toolkit[0]) < _numbers(since):
        return ""  # the text's own CUDA says more
    if _numbers(pypi) < _numbers(since):
        return (
            f"torch {torch} is most likely a build for CUDA {pypi}, as the one of the package "
            f"index is, whose runtime lacks it (no build of it is for more than {newest})"
        )
    return ""


def _another_build(seen: Seen, since: str) -> tuple[str, str]:
    """(what is said, the command) on a build of the same old torch for the CUDA that compiled.

    Of torch before 1.2 each CUDA has a list of its own, and file names that do not tell it: pip
    would take the one of the package index before these.
    """
    torch = (seen.torch or "").partition("+")[0]
    newest, pypi = newest_cuda_of(torch), cuda_on_pypi(torch)
    toolkit = re.match(r"\d{1,2}\.\d", (seen.versions.get("cuda") or "").strip())
    if newest is None or pypi is None or _numbers(pypi) >= _numbers(since):
        return "", ""
    if _numbers(newest) < _numbers(since) or (toolkit and toolkit[0] != newest):
        return "", ""
    wanted = torch if torch.count(".") > 1 else f"{torch}.*"
    address = f"https://download.pytorch.org/whl/cu{newest.replace('.', '')}/torch_stable.html"
    command = (
        f'{seen.pip} install --force-reinstall --no-deps --no-index "torch=={wanted}" -f {address}'
    )
    note = (
        f"PyTorch's own list has torch {torch} for CUDA {newest} too (the last but one command): "
        "with that, nothing has to be compiled again."
    )
    return note, command


def _by_torch_age(answer: Answer, seen: Seen, since: str) -> Answer:
    """The text's torch is older than all torches for the CUDA that has the name."""
    first = first_torch_with(since) if answer.owner != "cudnn" else None
    if first is None or not seen.torch or order_key(seen.torch) >= order_key(first):
        return answer
    told = (
        f"torch {seen.torch} was given out for older CUDA alone (torch for CUDA {since} came with "
        f"{first}), whose library it has in the process"
    )
    return _made_by_newer(answer, seen, since, told)


def _made_by_newer(answer: Answer, seen: Seen, since: str, told: str) -> Answer:
    """The file was compiled with a newer CUDA than the one whose library is loaded."""
    name, owner = answer.symbol or "", answer.owner or ""
    counted, title = counted_by(owner), title_of(owner)
    made = (
        f"nvcc writes this name into all that it compiles since {counted} {since}: the file was "
        f"compiled with {counted} {since} or newer"
        if is_emitted(name)
        else f"The name came with {counted} {since}: the file was built with that or a newer one"
    )
    cause = (
        f"{made}, and {told}. The two have to be of one release: the file is to be compiled again "
        f"with the {counted} that torch was built with, or torch has to be one for {counted} "
        f"{since} or newer."
    )
    python = seen.python
    ask = f"{python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    compiler = "nvcc --version; echo CUDA_HOME=$CUDA_HOME; ls -d /usr/local/cuda*"
    helps = [*answer.help]
    helps[-1:-1] = rebuild_commands(seen)
    return replace(
        answer, kind="versioned-symbol", code="FA204", cause=cause, direction=NEWER,
        confidence="medium", help=tuple(dict.fromkeys((ask, compiler, *helps))),
        notes=(
            "What an earlier try compiled (build/, _ext/, *.so, *.o) goes before the next one; a "
            "path to nvcc that a makefile or setup.py has written in counts more than PATH.",
            OF_NVCC
            if is_emitted(name)
            else f"Where the file does not list {title} at all (readelf shows it), the "
            "name is missing with every release.",
        ),
    )  # fmt: skip


def _is_older(there: str, since: str) -> bool:
    """Whether a version is surely older: 11.3 may be 11.3.1, and is older than 11.4."""
    told = there.count(".") + 1
    return _numbers(there)[:told] < _numbers(since)[:told]


def _numbers(version: str) -> tuple[int, ...]:
    """What versions of two or of three numbers compare by."""
    parts = [int(part) for part in version.split(".")]
    return (*parts, *(0,) * (3 - len(parts)))[:3]
