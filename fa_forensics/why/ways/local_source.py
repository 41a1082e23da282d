"""A package that the text has from a directory, or by a name with its CUDA: not an index's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.package import normalized
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import file_of
from fa_forensics.why.shell import quoted

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: A command that fetches one package, by its name or from its repository.
_FETCHES = lazily(
    r"(?:[A-Z][A-Z_\d]{2,40}=\S{1,80} ){0,6}(?P<python>\S{1,300}) -m pip install .{0,300}?"
    r"(?P<what>[A-Za-z][\w.-]{1,60}(?:==[\w.]{1,40})?|git\+https://\S{1,200})$"
)
_ONE_VARIABLE = lazily(r"[A-Z][A-Z\d_]{2,40}=(?:\"[^\"]{1,80}\"|\S{1,80}) ")
_VARIABLES = lazily(r"(?:[A-Z][A-Z_\d]{2,40}=\S{1,80} ){0,6}")


def local_source(versions: Mapping[str, str], name: str | None) -> str | None:
    """The directory that the text installs a package from, ``-e `` before it; None for none."""
    return versions.get(f"local:{normalized(name)}") if name else None


def build_there(python: str, folder: str) -> str:
    """Compile the package of a directory again; ``python`` is quoted for a shell already."""
    where = folder.removeprefix("-e ").rstrip("/") or "/"
    there = quoted(where)
    given = there if "/" in where else f"./{there}"
    how = "-e" if folder.startswith("-e ") else "--force-reinstall"
    return (
        f"rm -rf {there}/build && {python} -m pip install -v --no-build-isolation --no-deps "
        f"--no-cache-dir {how} {given}"
    )


def from_its_directory(answer: Answer, paste: Paste) -> Answer:
    """The answer with the text's own directory where a command would fetch that package.

    What an index has under that name may be another program: forks keep the name.
    """
    answer = _by_the_texts_command(_by_its_cuda(answer, paste.versions), paste.versions)
    answer = _of_a_changed_one(answer, paste.versions)
    if not any(key.startswith("local:") for key in paste.versions):
        return answer
    helps, told = [], ""
    for command in answer.help:
        found = _FETCHES.match(command)
        name = _name_of(found["what"]) if found is not None else None
        folder = local_source(paste.versions, name)
        if found is None or folder is None:
            helps.append(command)
            continue
        variables = _VARIABLES.match(command)
        kept = variables[0] if variables is not None else ""
        kept = re.sub(r"\b[A-Z_]+_(?:SKIP|FORCE)_\w+=\S+ |\b[A-Z_]+_FORCE_BUILD=\S+ ", "", kept)
        if _installed_as_well(paste, name):
            helps.append(command)
            continue
        built = build_there(found["python"], folder).replace(" && ", f" && {kept}", 1)
        if f"imported:{normalized(name or '')}" in paste.versions:
            there = quoted(folder.removeprefix("-e "))
            built = "".join(("test -f ", there, "/setup.py && ", built))
        helps.append(built)
        told = folder.removeprefix("-e ")
    if not told:
        return answer
    imported = {key.partition(":")[2] for key, where in paste.versions.items() if where == told
                and key.startswith("imported:")}  # fmt: skip
    if imported:
        notes = (note for note in answer.notes if _ON_THE_NEWEST.search(note) is None)
        return replace(answer, help=_once(helps), notes=(*notes, _imported(told, imported)))
    note = (
        f"The text installs it from the directory {told}: that copy is built again there, since "
        "what an index has under the same name may be another program than the project's own copy. "
        "A relative directory counts from where the text ran its command."
    )
    return replace(answer, help=_once(helps), notes=(*answer.notes, note))


#: A note on the command whose place the build in the directory takes.
_ON_THE_NEWEST = lazily(r"\binstalls the newest release of\b")


def _installed_as_well(paste: Paste, name: str | None) -> bool:
    """Whether the failing file is the installed package's, where steps tell of a tree as well.

    A module of its own beside the packages (``_torch_sox``) is what setup.py of the tree put there.
    """
    whose = f"-packages/{normalized(name or '').replace('-', '_')}/"
    return f"imported:{normalized(name or '')}" in paste.versions and (
        whose in file_of(paste).replace("\\", "/")
    )


#: An installation of a package that the answer has no name for.
_NAMELESS = lazily(
    r"(?P<variables>(?:[A-Z][A-Z_\d]{2,40}=\S{1,80} ){0,6})(?P<python>\S{1,300}) -m pip install "
    r"[^\n]{0,200}\bPACKAGE$"
)


def _by_the_texts_command(answer: Answer, versions: Mapping[str, str]) -> Answer:
    """The answer with the text's own build command where a package without a name is compiled."""
    built = versions.get("built_by", "")
    if not built or not any(map(_NAMELESS.match, answer.help)):
        return answer
    folder, _, run = built.rpartition(" && ")
    there = f"{folder} && " if folder else ""
    helps = []
    for command in answer.help:
        found = _NAMELESS.match(command)
        if found is None:
            helps.append(command)
            continue
        own, _, options = run.partition("setup.py ")
        own = own.removesuffix("python3 ").removesuffix("python ")
        kept = "".join(
            part for part in _ONE_VARIABLE.findall(own)
            if f"{part.partition('=')[0]}=" not in found["variables"]
        )  # fmt: skip
        typed = (there, "test -f setup.py && rm -rf build && ", found["variables"], kept)
        helps.append("".join((*typed, found["python"], " setup.py ", options)))
    note = (
        "The commands with setup.py are the text's own build, with what is needed before it; "
        "build/ goes first, since setup.py takes what lies there from an earlier try."
    )
    return replace(answer, help=_once(helps), notes=(*answer.notes, note))


def _of_a_changed_one(answer: Answer, versions: Mapping[str, str]) -> Answer:
    """The answer with a build in the source directory for what the text says was changed.

    The index's release of that name has none of the changes.
    """
    helps, told = [], ""
    for command in answer.help:
        found = _FETCHES.match(command)
        name = normalized(_name_of(found["what"])) if found is not None else ""
        if found is None or f"flag:changed:{name}" not in versions or local_source(versions, name):
            helps.append(command)
            continue
        variables = _VARIABLES.match(command)
        kept = variables[0] if variables is not None else ""
        helps.append(
            f"rm -rf build *.egg-info && {kept}{found['python']} -m pip install "
            "--no-build-isolation --no-deps --no-cache-dir --force-reinstall ."
        )
        told = name
    if not told:
        return answer
    note = (
        f"The text says that {told} is not the project's own release: the command that begins with "
        "rm -rf build is for the directory of those sources, and compiles them again. A release "
        "of the package index has none of what was changed there."
    )
    return replace(answer, help=_once(helps), notes=(note, *answer.notes))


def _once(commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(commands))


def _imported(folder: str, names: Iterable[str]) -> str:
    """What to know of a package that Python took from its source directory."""
    (name, *_) = sorted(names)
    return (
        f"Python imports {name} from the directory {folder}, by the traceback: the command builds "
        f"the compiled part there. Where {name} is installed in site-packages too, start Python "
        "in another directory, with none of that one's in PYTHONPATH: the first directory that "
        "has it is the one that counts."
    )


def _by_its_cuda(answer: Answer, versions: Mapping[str, str]) -> Answer:
    """The answer with spconv-cu117 where the text has that one: spconv alone is for the CPU."""
    helps = list(answer.help)
    for key in versions:
        if key.startswith("cuda-name:"):
            plain = key.removeprefix("cuda-name:")
            own = re.compile(rf"(?<= ){re.escape(plain)}(?=(?:==[\w.]{{1,40}})?$)")
            fetched = (" -m pip install ", " -m pip download ")
            helps = [
                own.sub(versions[key], text) if any(word in text for word in fetched) else text
                for text in helps
            ]
    return answer if tuple(helps) == answer.help else replace(answer, help=tuple(helps))


def _name_of(what: str) -> str:
    """The package of a requirement, or of a repository's address."""
    if what.startswith("git+"):
        last = what.split("#")[0].split("@")[0].rstrip("/").rsplit("/", 1)[-1]
        return last.removesuffix(".git")
    return what.partition("==")[0]
