"""An own name of a package that the text names: whose it is, and that package built again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from fa_forensics.facts.owner import OWN
from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.other_names.own import LINK_OPTIONS
from fa_forensics.why.other_names.own_places import by_its_place
from fa_forensics.why.seen import Seen, directory_of
from fa_forensics.why.ways.builds import NOT_EXCHANGED, in_source_tree, rebuild_named
from fa_forensics.why.ways.older_name import name_then

_IN_SOURCE = ("rm -rf build",)
#: Directories of builds, where the sources are at hand.
_BUILT_HERE = lazily(r"/build/|torch_extensions/|\.egg/|/temp\.|/path/to/")
_OF_BUILDS = frozenset(("flag:editable", "flag:no-nvcc", "env:TORCH_CUDA_ARCH_LIST"))


def of_named_package(answer: Answer, seen: Seen) -> Answer:
    """The answer with the package's own build or release in place of one in a source directory.

    Only where nothing in the text shows a build: a package of pip has no source directory.
    """
    file = seen.mention.file or ""
    if answer.owner != OWN or answer.code != "FA205" or answer.provider or not answer.help:
        return answer
    if answer.help[0] == LINK_OPTIONS and "-packages/" in file:
        return _linked_by_its_makers(answer, seen, file)
    if "libbitsandbytes_" in file:
        from fa_forensics.why.texts.libraries.bitsandbytes_functions import own_function

        return own_function(answer, seen, file)
    placed = by_its_place(answer, seen, file)
    if placed is not None:
        return placed
    shows_build = (
        in_source_tree(file) or _BUILT_HERE.search(file) or _OF_BUILDS & set(seen.versions)
    )
    if not any(text.startswith(_IN_SOURCE) for text in answer.help):
        return answer
    name = _package(seen)
    if seen.place.told is None or shows_build or seen.mention.detail.get("build"):
        return _with_its_switches(answer, name)
    built = rebuild_named(seen.place, name) if name else None
    if name and "flag:own-code" not in seen.versions:
        whole = _whole_again(answer, seen, name, built is None)
        if whole is not None:
            return whole
    if name is None or built is None or "flag:own-code" in seen.versions:
        return _with_its_switches(_of_own_code(answer, seen), name)
    if "nightly" in seen.versions and name in ("fbgemm-gpu", "torchvision", "torchaudio"):
        return _another_nightly(answer, seen, name)
    if name in NOT_EXCHANGED:
        return _its_own_release(answer, seen, name)
    command, index = _of_its_day(seen, name, built[0])
    helps = [command if text.startswith(_IN_SOURCE) else text for text in answer.help]
    version = seen.versions.get(f"pkg:{name}", "")
    version = version or "the installed one"
    note = (
        "A release that lacks its own function is at fault itself: the way out is another release "
        f"of {name} than {version}, or the project's own wheel for this torch, which the command "
        "takes."
    )
    if not index:
        note = (
            "A release that lacks its own function is at fault itself: where the command changes "
            f"nothing, the way out is another release of {name} than {version}, or its newest "
            "sources built from an empty directory."
        )
    kept = (text for text in answer.notes if not text.startswith("Built from source: take"))
    return replace(
        answer, cause=answer.cause.replace("the extension's own", f"{name}'s own"),
        help=tuple(dict.fromkeys(helps)), notes=(note, *kept),
    )  # fmt: skip


def _linked_by_its_makers(answer: Answer, seen: Seen, file: str) -> Answer:
    """A device link that went wrong in an installed file: whoever made the wheel made it so."""
    name = directory_of(file)
    built = rebuild_named(seen.place, seen.package) if seen.package is not None else None
    helps = answer.help if built is None else (built[0], *answer.help)
    whose = name or "the package"
    note = (
        f"The file is an installed one. From a wheel, its makers linked it so, and {whose} is what "
        "is exchanged: another release of it, its wheel for another CUDA version where there are "
        "several, or a build from source with the nvcc of torch's CUDA. The command with grep is "
        "for the source directory of one who built it."
    )
    if name == "bitsandbytes":
        note += (
            " In 2021 it was published by CUDA version (bitsandbytes-cuda111 for CUDA 11.1); one "
            "wheel has had a library for each since 2022."
        )
    return replace(answer, help=helps, notes=(note, *answer.notes))


def not_for_rocm(answer: Answer) -> Answer:
    """A file that the build for ROCm leaves out: the same sources make the same file again."""
    look = (
        "grep -nE 'hip|rocm|[.]cu' setup.py CMakeLists.txt; git log -1; git fetch --tags && git tag"
    )
    helps = [look if text.startswith(_IN_SOURCE) else text for text in answer.help]
    note = (
        "The first command is for the source directory: it shows which files its build lists for "
        "ROCm, and the revisions there are. A build of the same sources makes the same file again; "
        "behind the change (another revision, or the list mended) it is rm -rf build *.egg-info && "
        "python -m pip install --no-build-isolation --no-deps --no-cache-dir --force-reinstall . "
        "there."
    )
    kept = [text for text in answer.notes if not text.startswith("Built from source: take")]
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(*kept, note))


def _its_own_release(answer: Answer, seen: Seen, name: str) -> Answer:
    """A package each release of which takes its own torch along: none but the text's is installed.

    Without a release in the text it may be a fork or a build of one's own, which is built again.
    """
    file, told = seen.mention.file or "", seen.versions.get(f"pkg:{name}", "")
    installed = "-packages/" in file
    plain = re.fullmatch(r"\d{1,3}(?:\.\d{1,4}){2}(?:\.post\d{1,3})?", told) is not None
    if f"{name}/{name}/" in file or not (plain or installed):
        return _with_its_switches(answer, name)
    told = told if plain else "X.Y.Z"
    wanted = shlex.quote(f"{name}=={told}")
    again = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {wanted}"
    helps = [again if text.startswith(_IN_SOURCE) else text for text in answer.help]
    if not plain:
        helps.insert(0, f"{seen.pip} show {name} torch")
    notes = [
        f"{wanted} again puts back all files of that release and leaves torch as it is: right "
        "where some of them are of a build of one's own or of another release. Where that changes "
        f"nothing, another release of {name} is the way out, which takes the torch along that it "
        "asks for; a fork is built again in its source directory, from an empty build directory."
    ]
    if not plain:
        notes.insert(0, f"X.Y.Z is the release of {name} that the first command shows.")
    kept = (text for text in answer.notes if not text.startswith("Built from source: take"))
    return replace(
        answer, cause=answer.cause.replace("the extension's own", f"{name}'s own"),
        help=tuple(dict.fromkeys(helps)), notes=(*notes, *kept),
    )  # fmt: skip


def _with_its_switches(answer: Answer, name: str | None) -> Answer:
    """A build in the source directory with the switches that the package's build needs."""
    from fa_forensics.rules.remedy import row_of

    if name:
        cause = answer.cause.replace("the extension's own", f"{name}'s own")
        answer = replace(answer, cause=cause)
    row = row_of(name) if name else None
    needed = str((row or {}).get("environment", ""))
    if not needed or not any(re.match(r"[A-Z_]{4,40}=(?!\d{1,3}$)|[A-Z_]*(?:CUDA|OPS|EXT)", text)
                             for text in needed.split()):  # fmt: skip
        return answer
    helps = tuple(
        re.sub(r" (?=\S{1,300} -m pip install)", f" {needed} ", text, count=1)
        if text.startswith(_IN_SOURCE)
        else text
        for text in answer.help
    )
    return replace(answer, help=helps)


def _of_own_code(answer: Answer, seen: Seen) -> Answer:
    """A function that the text's author has written: no release has it, or lacks it."""
    if "flag:own-code" not in seen.versions:
        return answer
    note = (
        "The text says that the code is of one's own: the definition has to be among the sources "
        "of the build, in a file that its list or pattern takes in, with the very parameters and "
        "namespace of the declaration; then it is built from an empty directory, as the first "
        "command does in the source directory."
    )
    kept = (text for text in answer.notes if not text.startswith("Built from source: take"))
    return replace(answer, notes=(note, *kept))


def _whole_again(answer: Answer, seen: Seen, name: str, alone: bool) -> Answer | None:
    """A package that nobody compiles with pip: its libraries have to be of one wheel.

    ``alone`` tells that no other command is known for it.
    """
    from fa_forensics.rules.remedy import row_of

    row = row_of(name)
    if row is None or row["source_build"] or not (alone or row.get("names_torch")):
        return None
    index = str(row.get("names_torch", ""))
    told = seen.versions.get(f"pkg:{name}", "")
    wanted = shlex.quote(f"{name}=={told}" if told else name)
    command = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {wanted}"
    if index and "{" not in index:
        command = " ".join((command, "--extra-index-url", index))
    helps = [command if text.startswith(_IN_SOURCE) else text for text in answer.help]
    note = (
        f"{name} comes as a wheel: its libraries belong together, and one that another release or "
        "a build of one's own has left beside them lacks such names. The command puts back all of "
        f"them; where that changes nothing, the wheel lacks the function itself, and another "
        f"release of {name} is the way out. A build from source is made by the project's own "
        "script, whole."
    )
    kept = (text for text in answer.notes if not text.startswith("Built from source: take"))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, *kept))


def _another_nightly(answer: Answer, seen: Seen, name: str) -> Answer:
    """A nightly that lacks its own function, for a nightly of torch: a pair of another day."""
    label = seen.versions["nightly"]
    index = f"{TORCH_INDEX}nightly/" + (label if label != "yes" else "cuXYZ")
    command = f"{seen.pip} install --pre --upgrade --no-cache-dir torch {name} --index-url {index}"
    helps = [command if text.startswith(_IN_SOURCE) else text for text in answer.help]
    note = (
        f"Both are nightlies, and belong to one day: the way out is a pair of a later day, which "
        f"the command takes, or of an earlier one (torch==VERSION {name}==VERSION from the same "
        "index). A release of the package index would be built for another torch."
    )
    kept = (text for text in answer.notes if not text.startswith("Built from source: take"))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, *kept))


def _package(seen: Seen) -> str | None:
    """The failing file's package, or the only one with compiled code where no path is told."""
    if seen.package is not None:
        return seen.package
    if "-packages/" in (seen.mention.file or ""):
        return None  # a package that is not known
    from fa_forensics.why.texts.clues import package_in
    from fa_forensics.why.ways.same_release import package_in_text

    return package_in(seen) or package_in_text(seen.paste)


def _of_its_day(seen: Seen, name: str, command: str) -> tuple[str, bool]:
    """(the command with the package's name of its day, whether the project's wheels are taken)."""
    from fa_forensics.rules.remedy import known_packages
    from fa_forensics.why.ways.same_release import label_of, wheel_page

    row = next((row for row in known_packages() if _is_called(row, name)), None)
    if row is None:
        return command, False
    present = seen.place.present
    told = seen.place.told
    python = told.python if told is not None else None
    release = present.release if present is not None else None
    wanted = name_then(str(row["distribution"]), release, python, seen.versions)
    label = label_of(seen.paste, seen.place)
    link = wheel_page(row, label, present.release) if present is not None and label else ""
    if link:
        return (
            f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary {wanted} "
            f"{wanted} -f {link}",
            True,
        )
    spelt = re.compile(rf"--no-binary {re.escape(name)} {re.escape(name)}(?:==\S+)?")
    return spelt.sub(f"--no-binary {wanted} {wanted}", command), False


def _is_called(row: Mapping[str, object], name: str) -> bool:
    before = row.get("before")
    return isinstance(before, Mapping) and name in (row["distribution"], before["distribution"])
