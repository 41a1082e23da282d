"""Where the usual commands would do harm: a torch that is no wheel, a package that has ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.python_api import ended_at, partner_of, torch_of
from fa_forensics.facts.torch_install import is_own_build
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.own_torch import partner_from_source
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import DRIFT, FLAVOUR, NEWER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of, package_of
from fa_forensics.why.told import is_rocm
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.torch_names.other_flavour import before_the_flag
from fa_forensics.why.ways.builds import clean_build, old_modules_gone
from fa_forensics.why.ways.by_torch import by_torch_words
from fa_forensics.why.ways.commands import FLAVOUR_HERE
from fa_forensics.why.ways.local_source import local_source

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Commands that bring a wheel of the package index, and torch with it.
_FROM_INDEX = lazily(
    r"\"torch[=>]=|pip install --upgrade "
    r"|--force-reinstall (?:--no-deps )?--no-cache-dir '?[\w-]+(?:==|$)"
)
#: Notes on commands that are taken out.
_ON_COMMANDS = lazily(
    r"(?:One of the two|Another build of|Installing another|Every torch since"
    r"|The command (?!that begins)[cgit]"
    r"|Where pip|The package index has that|No package is named as"
    r"|The text says that the import of)"
)
_TORCH_NOTE = lazily(r"torch [\d.]+(?: \S [\d.]+)? (?:has|have) (?:the file's|this)")
_JETSON = lazily(r"(?:^|/)jetson(?:/|$)|-tegra\b", re.IGNORECASE)


def other_ways(
    answer: Answer, paste: Paste, place: Place, name: str | None, served: Sequence[str]
) -> Answer:
    """The answer with the commands that fit the text's machine.

    ``name`` is the file's package, ``served`` are the releases of torch with wheels for the
    text's Python.
    """
    if "flag:libtorch-path" in paste.versions and "torch._C" in answer.cause:
        return _libtorch_first(answer, paste)
    if answer.kind not in DRIFT or answer.owner is None or not is_torch(answer.owner):
        return answer
    if place.told is None:
        return answer
    if "flag:libtorch-path" in paste.versions:
        return _libtorch_first(answer, paste)
    if any(command.startswith("PYTHONNOUSERSITE=1") for command in answer.help):
        return answer  # a file of the image, which is in order
    if _of_conda(answer, paste):
        return _with_condas_torch(answer, place)
    own = _own_torch(paste, place)
    if own is not None and not _is_of_torch(paste):
        return _for_own_torch(answer, paste, place, name, own)
    if name and ended_at(name) is not None:
        return _of_one_pair(answer, paste, place, name, served)
    built = name and f"flag:built-from-source:{name}" in paste.versions
    fetched = any("--no-binary" in text for text in answer.help)
    if _is_editable(paste, name) and (built or not fetched or _lies_in_tree(paste, name)):
        return _build_again(answer, paste)
    if name and built and _with_its_torch(answer):
        return _kept_source(answer, name)
    if not name and not fetched:
        return _of_own_source(answer, paste)
    return answer


def _of_own_source(answer: Answer, paste: Paste) -> Answer:
    """A package that nothing is known of but its name, and that the text has from source."""
    name = paste.versions.get("flag:own-source", "")
    if not name or any("--no-build-isolation" in text for text in answer.help):
        return answer
    at = 1 if answer.help and "print(torch" in answer.help[0] else 0
    helps = (*answer.help[:at], clean_build("python", file_of(paste)), *answer.help[at:])
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(_kept(name), *answer.notes))


def _lies_in_tree(paste: Paste, name: str | None) -> bool:
    """Whether the file's path begins with its package's directory: that of a source tree."""
    first = re.match(r"(?:\./)?([\w-]{2,40})/", file_of(paste))
    if name is None or first is None:
        return False
    by_name = re.sub("[-_]+", "-", paste.versions.get("flag:pip-installed", "").lower())
    return by_name != name and package_of(f"/site-packages/{first[1]}/_C.so") == name


#: Notes on the command that takes the newest releases of torch and a package.
_ON_UPGRADE = lazily(
    r"(?:No package is named as|The text says that the import of|The command takes both)\b"
)


def _with_its_torch(answer: Answer) -> bool:
    """Whether a command takes the newest wheel of the package, and torch with it."""
    return any(" --upgrade " in text for text in answer.help)


def _kept_source(answer: Answer, name: str) -> Answer:
    """A package that the text says was built from source: its wheel is another program."""
    again = clean_build("python", "")
    helps = (again if " --upgrade " in text else text for text in answer.help)
    kept = (n for n in answer.notes if not _ON_UPGRADE.match(n))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(_kept(name), *kept))


def _kept(name: str) -> str:
    return (
        f"The text says that it was built from source: in the source directory of {name} the "
        "command compiles it for the torch that is installed (without --no-build-isolation pip "
        "compiles with a torch of its own: the one that pyproject.toml pins, else the newest)."
    )


#: A C++ library in the lib directory of a conda environment, which conda puts there, not pip.
_IN_CONDA = lazily(
    r"(?:conda|mamba|miniforge|/envs/|CONDA_PREFIX)(?:(?!-packages/)[^\n]){0,200}/lib/"
    r"(?:python[\d.]{0,8}/site-packages/\.\./\.\./)?lib[\w.+-]{1,200}\.so[.\d]{0,40}$",
    re.IGNORECASE,
)


def _of_conda(answer: Answer, paste: Paste) -> bool:
    """Whether the failing file is a conda package's, and cxx11 as conda-forge builds are."""
    if answer.direction != FLAVOUR or _is_of_torch(paste):
        return False
    file = file_of(paste)
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    return new and _IN_CONDA.search(file) is not None


def _with_condas_torch(answer: Answer, place: Place) -> Answer:
    """A library that conda-forge built, for its own torch, beside a torch from elsewhere."""
    commands, notes = _without(answer)
    commands = [text for text in commands if not text.startswith("rm -rf build")]
    release = f"={place.present.release}" if place.present else ""
    commands.insert(-1, f"conda install -c conda-forge pytorch{release}")
    note = (
        "The file lies in the lib directory of a conda environment: a package of conda brought it, "
        "and conda-forge builds such packages for its own torch, which is cxx11. torch from the "
        "same channel fits it; the one of pip or of the channel pytorch has to go first (python -m "
        "pip uninstall torch, conda remove pytorch)."
    )
    gone = ("Compiled on that machine", "The command that begins")
    kept = (text for text in notes if not text.startswith(gone))
    return replace(answer, help=tuple(commands), notes=(note, *kept))


def _without(answer: Answer) -> tuple[list[str], list[str]]:
    """(commands, notes) without what comes from the package index."""
    commands = [text for text in answer.help if not _FROM_INDEX.search(text)]
    notes = [n for n in answer.notes if not _ON_COMMANDS.match(n) and not _TORCH_NOTE.match(n)]
    return commands, notes


def _libtorch_first(answer: Answer, paste: Paste) -> Answer:
    """Another libtorch is on the loader's path, whose libraries go before torch's own."""
    variable = paste.versions["flag:libtorch-path"]
    cause = (
        f"The text has a libtorch on {variable}: that goes before torch's own directory, so the "
        "libraries of that libtorch are loaded in place of those that torch for Python brings. It "
        "is of another release or of the other std::string flavour than what was built for torch. "
        f"Python has to run without it on {variable}; nothing needs to be installed again."
    )
    first = f"env -u {variable} python -c 'import torch; print(torch.__path__[0])'"
    look = [text for text in answer.help if "inspect" in text]
    return replace(
        answer, kind="wrong-torch", code="FA607", direction=UNKNOWN, cause=cause,
        confidence="medium", help=(first, *look), notes=(), overloads=(),
    )  # fmt: skip


def _is_of_torch(paste: Paste) -> bool:
    """Whether the failing file is one of torch's own libraries, which nobody builds alone."""
    from fa_forensics.why.ways.signs import is_torch_file

    return is_torch_file(file_of(paste))


def _own_torch(paste: Paste, place: Place) -> str | None:
    """What the text's torch is, where the package index has no such torch; None for a wheel."""
    versions = paste.versions
    texts = (*(m.file or "" for m in paste.mentions[:20]), versions.get("os", ""),
             versions.get("platform", ""), *paste.places)  # fmt: skip
    named = versions.get("gpu", "").lower().startswith("jetson") or "flag:jetson" in versions
    if named or any(map(_JETSON.search, texts)):
        return "The torch in the text is NVIDIA's for Jetson, or one built there."
    if is_rocm(versions):
        return "The torch in the text is one for ROCm."
    if "flag:torch-source" in versions:
        return "The torch in the text was built from source."
    own = place.present is not None and place.present.published
    patch = own and place.present is not None and not place.present.release.endswith(".0")
    if ("ngc" in versions and not patch) or ".nv" in versions.get("torch", ""):
        return "The torch in the text is that of NVIDIA's container."
    if place.told is not None and place.told.torch_by:
        return f"The torch in the text is {place.told.torch_by}."
    if is_own_build(versions.get("torch", "")):
        return "The torch in the text is a build of its own, a container's or one from source."
    return None


def _for_own_torch(
    answer: Answer, paste: Paste, place: Place, name: str | None, own: str
) -> Answer:
    commands, notes = _without(answer)
    version = paste.versions.get(f"pkg:{name}", "") if name else ""
    release = place.present.release if place.present else torch_of(name or "", version)
    built = None
    if name and release:
        built = partner_from_source("python", name, release, row_of(name))
    note = (
        f"{own} The package index has no such torch, and a torch or a wheel from there would take "
        "its place. The file has to be compiled for the torch that is there; a wheel of the index "
        "needs a virtual environment of its own, with the index's torch."
    )
    if built is not None:
        commands.insert(1 if commands and "print(torch" in commands[0] else 0, built[0])
    elif answer.kind == "cxx11-abi" and not any("no-build-isol" in text for text in commands):
        file = file_of(paste)
        commands[-1:-1] = [clean_build("python", file)] if file else []
    cause = answer.cause
    old = not mentions_cxx11(answer.symbol or "", answer.demangled or "")
    rocm = "+rocm" in paste.versions.get("torch", "")
    channel = _of_its_channel(own, name)
    if name is None and "conda-forge" in own and not channel:
        commands.insert(0, "conda update -c conda-forge --all")
        notes.insert(0, _ALL_AGAIN)
    if channel:
        commands.insert(1 if commands and "print(torch" in commands[0] else 0, channel)
        notes.insert(0, _SAME_CHANNEL)
    by_channel = place.told is not None and place.told.torch_by and answer.direction == FLAVOUR
    if old and not rocm and (by_channel or cause.startswith("The published torch")):
        cause = (
            f"{own} Such builds have the compiler's own flavour of std::string, which is cxx11, "
            "and the file was built for the pre-cxx11 one of the package index: the releases may "
            "match, the flavours do not."
        )
        if answer.provider:  # PyPI's build of it, which is not the one that is loaded
            answer = replace(answer, provider=None, looked_here=False)
    notes = [text for text in notes if not _PROJECT_WHEELS.search(text)]
    again = any(text.startswith("rm -rf build") and text.endswith(" .") for text in commands)
    if answer.direction == FLAVOUR and old and again and FLAVOUR_HERE not in notes:
        notes.append(_FIXED_FLAG)
    answer = replace(answer, cause=cause, help=tuple(dict.fromkeys(commands)), notes=(note, *notes))
    return before_the_flag(answer, place)


#: Wheels of a project for each torch of the package index, which another torch is none of.
_PROJECT_WHEELS = lazily(r"own\sproject\shas\swheels\b|has\swheels\sby\storch\sand\sCUDA")
_FIXED_FLAG = (
    "A -D_GLIBCXX_USE_CXX11_ABI=0 in the project's own CMakeLists.txt or setup.py makes the same "
    "file again: it is taken out first, or set as torch has it."
)


#: Said of a file whose package is not known, beside conda-forge's torch.
_ALL_AGAIN = (
    "conda-forge builds its packages again for each release of its torch: where the file is of one "
    "of them, the command takes the build that goes with the torch there."
)
#: Said of conda-forge's builds.
_SAME_CHANNEL = (
    "conda-forge builds the package for its own torch: taken from there, the two agree. The copy "
    "that pip or another channel installed has to go first: conda list names its channel (pypi: "
    "python -m pip uninstall, else conda remove)."
)


def _of_its_channel(own: str, name: str | None) -> str:
    """The package from conda-forge, where torch is from there and the package is there too."""
    row = (row_of(name) if name else None) or {}
    there = row.get("conda_forge")
    return f"conda install -c conda-forge {there}" if there and "conda-forge" in own else ""


def _of_one_pair(
    answer: Answer, paste: Paste, place: Place, name: str, served: Sequence[str]
) -> Answer:
    """A package without releases for newer torches: it and torch have to be of one pair."""
    ended = ended_at(name)
    assert ended is not None
    last, torch = ended
    day = place.told.last if place.told is not None else ""
    newer = answer.direction == NEWER
    can_be = [one for one in answer.exported_by if one in served]
    can_be = [one for one in can_be if not day or order_key(one) <= order_key(day)] or can_be
    # A program with an older torch is left as near to that as can be.
    own = torch_of(name, paste.versions.get(f"pkg:{name}", ""))
    wanted = [own] if own in can_be and newer else can_be if newer else [*reversed(can_be)]
    pair = (last, torch)
    if torch not in can_be or newer:
        pairs = ((one, of) for of in wanted if (one := partner_of(name, of)) is not None)
        pair = next(pairs, pair)
    commands, notes = _without(answer)
    both = [f"torch=={pair[1]}", f"{name}=={pair[0]}"]
    for one in ("torchvision", "torchaudio"):
        beside = partner_of(one, pair[1]) if f"pkg:{one}" in paste.versions else None
        both += [f"{one}=={beside}"] if beside else []
    at = 1 if commands and "print(torch" in commands[0] else 0
    commands.insert(at, f"python -m pip install {' '.join(map(shlex.quote, both))}")
    there = place.present.release if place.present is not None else ""
    kept = partner_of(name, there) if there else None
    if kept is not None and kept not in (pair[0], own):
        alone = "install --force-reinstall --no-deps --no-cache-dir"
        commands.insert(at, f"python -m pip {alone} {shlex.quote(f'{name}=={kept}')}")
        notes.insert(0, (
            f"One of the two commands is enough: the first installs the release of {name} that "
            f"belongs to torch {there}; the second changes torch, for all other packages too."
        ))  # fmt: skip
    if place.present is None and (listed := by_torch_words(name)):
        notes.insert(0, listed)
    if not file_of(paste):
        notes.insert(0, (
            f"No file is named: of the packages in the text {name} alone has compiled code that "
            "links torch."
        ))  # fmt: skip
    if not newer:
        notes.insert(0, (
            f"{name} has ended: {last} is its last release, built for torch "
            f"{minor_of(torch)}, and no build for a later torch will come; pip takes a newer torch "
            "along all the same. The two have to be of one pair, as typed, or the program has to "
            "do without it."
        ))  # fmt: skip
    return replace(answer, help=tuple(dict.fromkeys(commands)), notes=tuple(notes))


def _is_editable(paste: Paste, name: str | None) -> bool:
    """Whether ``pip install -e .`` in the text is the installation of the failing file.

    Such a build stays in its source tree. A file in site-packages is of another package, unless
    the directory of the command is that package's own; so is a file of no directory whose package
    the text installs by its name.
    """
    if "flag:editable" not in paste.versions:
        return False
    if (local_source(paste.versions, name) or "").startswith("-e "):
        return True
    file = file_of(paste)
    by_name = re.sub("[-_]+", "-", paste.versions.get("flag:pip-installed", "").lower())
    if not file or (by_name and by_name == package_of(file) and not re.search(r"[/\\]", file)):
        return False
    return re.search(r"-packages[/\\]", file) is None


def _build_again(answer: Answer, paste: Paste) -> Answer:
    """A package that was installed from its source directory."""
    commands, notes = _without(answer)
    file = file_of(paste)
    gone = f"rm -rf build && {old_modules_gone(file)}"
    again = "python -m pip install --no-build-isolation --no-deps --no-cache-dir -e ."
    note = (
        "The text installs it from its source directory: there, with build/ and the old .so files "
        "removed, the command compiles it for the torch that is installed (without "
        "--no-build-isolation pip compiles with a torch of its own: the one that pyproject.toml "
        "pins, else the newest)."
    )
    dropped = lazily(r"^rm -rf build|--no-binary\s")
    commands = [text for text in commands if not dropped.search(text)]
    commands.insert(min(1, len(commands)), f"{gone} && {again}")
    old = not mentions_cxx11(answer.symbol or "", answer.demangled or "")
    if answer.direction == FLAVOUR and old and FLAVOUR_HERE not in notes:
        notes.append(_FIXED_FLAG)
    return replace(answer, help=tuple(commands), notes=(note, *notes))
