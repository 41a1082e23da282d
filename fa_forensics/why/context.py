"""What the rest of a text adds to its answers: names that count together, paths that ldd shows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.requested import variant_flavour
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch, libraries_of
from fa_forensics.facts.package import build_tags
from fa_forensics.facts.python_api import ended_at, torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, FLAVOUR, NEWER, OLDER
from fa_forensics.why.place import Place
from fa_forensics.why.seen import directory_of, file_of, package_of
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.together import together
from fa_forensics.why.ways.asides import with_asides
from fa_forensics.why.ways.at_hand import of_the_file_here
from fa_forensics.why.ways.beside_it import beside_it
from fa_forensics.why.ways.containers import in_container
from fa_forensics.why.ways.far_end import not_at_the_far_end
from fa_forensics.why.ways.for_gpu import with_code_for_it
from fa_forensics.why.ways.gems import gem_of, in_ruby
from fa_forensics.why.ways.local_source import from_its_directory
from fa_forensics.why.ways.named_wheel import beside_a_build, cuda_words, in_its_release, twin_words
from fa_forensics.why.ways.not_the_wheel import (
    compiled_there,
    from_its_source,
    of_a_nightly,
    of_another_copy,
    own_release_again,
)
from fa_forensics.why.ways.old_heads import at_that_time
from fa_forensics.why.ways.other_ways import other_ways
from fa_forensics.why.ways.pairs import of_its_index, with_pairs
from fa_forensics.why.ways.parts import of_its_part
from fa_forensics.why.ways.pinned import without_its_torch
from fa_forensics.why.ways.precompiled import of_another_commit
from fa_forensics.why.ways.same_release import package_in_text, same_release, under_its_new_name
from fa_forensics.why.ways.stale import left_by_a_build
from fa_forensics.why.ways.step_back import put_right
from fa_forensics.why.ways.text_source import built_by_uv, from_its_repository
from fa_forensics.why.ways.torch_stays import torch_stays
from fa_forensics.why.ways.variants import with_that_build

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Mention, Paste


def with_context(
    answers: tuple[Answer, ...], paste: Paste, place: Place, tables: Tables
) -> tuple[Answer, ...]:
    """The answers, with what other lines of the text say about them."""
    if not answers:
        return ()
    answers = together(answers, paste, place, tables)
    first = in_container(_by_its_version(answers[0], paste, place), paste, place)
    file = file_of(paste)
    name = directory_of(file) if file else None
    named = name or package_in_text(paste)
    ended = named is not None and ended_at(named) is not None
    served = _served(place, tables) if ended else ()
    first = of_the_file_here(same_release(first, paste, place, name), paste, place, tables)
    first = not_at_the_far_end(first, place, tables, named)
    first = with_pairs(beside_a_build(first, paste, place, named), paste, place, named)
    first = other_ways(first, paste, place, named if ended else name, served)
    first = put_right(of_its_index(first, paste, place, tables), paste, place, named)
    if gem := gem_of(paste):
        first = in_ruby(first, paste, place, gem)
    first = of_its_part(first, paste, named)
    first = built_by_uv(from_its_repository(first, paste, place), paste, place)
    first = of_another_commit(from_its_directory(first, paste), paste)
    first = at_that_time(without_its_torch(first, paste, place), place)
    first = left_by_a_build(with_code_for_it(first, paste, place, tables), paste, place)
    first = torch_stays(with_asides(first, paste, place, named), paste)
    first = under_its_new_name(beside_it(first, paste, place, named), paste)
    if "torch_traced" in paste.versions and is_torch(first.owner or ""):
        # Lines of a traceback tell the release, and builds of one's own have them too.
        first = replace(first, confidence="low" if first.confidence == "low" else "medium")
    notes = [*_asked_for(first, paste), *_alike(first, paste), *_copies(first, paste)]
    rest = _one_torch(first, answers[1:])
    if not notes:
        return (first, *rest)
    return (replace(first, notes=(*notes, *first.notes)), *rest)


def _served(place: Place, tables: Tables) -> tuple[str, ...]:
    """The releases of torch with wheels for the text's Python; all where it names none."""
    if tables.ages is None:
        return ()
    python = place.told.python if place.told is not None else None
    builds = tables.ages.builds(place.machine)
    return tuple(b.release for b in builds if not python or python in b.pythons)


def _alike(answer: Answer, paste: Paste) -> list[str]:
    """That several packages of a text miss one name of torch: then torch is the odd one."""
    if answer.kind != "symbol-drift" or answer.direction not in (OLDER, NEWER):
        return []
    asked = next((m.symbol for m in paste.mentions if m.file), None)
    files = [m.file for m in paste.mentions[:100] if m.file and m.symbol and m.symbol == asked]
    names = list(dict.fromkeys(name for file in files if (name := package_of(file))))
    if len(names) < 2:
        return []
    age = "older" if answer.direction == NEWER else "newer"
    return [
        f"{' and '.join(names[:3])} miss the same name, so torch is the odd one: it is {age} than "
        "all of them, and one torch that they are built for puts all of them right."
    ]


def _asked_for(answer: Answer, paste: Paste) -> list[str]:
    """What the text's build was given, or its compiler is, that made the file's flavour."""
    if answer.direction != FLAVOUR:
        return []
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    option, flag = paste.versions.get("flag:cxx11-abi"), paste.versions.get("flag:abi")
    if option and new:
        return [
            f"The build was given {option}, and the file is cxx11 for that: build it again "
            "without the option, from an empty build directory, for a pre-cxx11 torch."
        ]
    loaded = {"True": "1", "False": "0"}.get(paste.versions.get("cxx11_abi", ""))
    if flag and "flag:abi-0" in paste.versions and "flag:abi-1" in paste.versions:
        own, other = ("1", "0") if new else ("0", "1")
        return [
            f"The text has -D_GLIBCXX_USE_CXX11_ABI={own} and ={other} both: of two on one command "
            f"line the last one counts. The file is of ={own}'s flavour, so that one has to go "
            "from where it is set (CMakeLists.txt, a Find module, setup.py, CXXFLAGS)."
        ]
    if flag == ("1" if new else "0") and flag != loaded:
        return [
            f"The build in the text sets -D_GLIBCXX_USE_CXX11_ABI={flag}, and that is the file's "
            "flavour: taken out of the flags, or set as torch has it, and built from an empty "
            "directory, the two agree."
        ]
    if flag and "cxx11_abi" not in paste.versions:
        return [
            f"The text has -D_GLIBCXX_USE_CXX11_ABI={flag}, and the file is of the other flavour "
            "all the same: the flag did not reach the file that was compiled, or objects of an "
            "earlier build stayed. The command lines of the build (make VERBOSE=1, ninja -v) show "
            "it."
        ]
    if not new and _OLD_COMPILERS.search(paste.versions.get("os", "")):
        return [
            "The compilers for CentOS 7 and RHEL 7, devtoolset's too, make the pre-cxx11 flavour "
            "alone, whatever the flag says: what is to fit a cxx11 torch is compiled in a newer "
            "system's image, or with conda's compilers (gxx_linux-64)."
        ]
    return []


#: Systems whose compilers know one std::string (Ceph's developer guide, C++17 and libstdc++ ABI).
_OLD_COMPILERS = lazily(
    r"(?:CentOS|Red ?Hat|RHEL|Scientific)[^\n]{0,40}?\b7(?:\.\d|\b)", re.IGNORECASE
)


def _one_torch(first: Answer, others: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """The other answers with the torch that the first one names, where they name one too."""
    named = [found[0] for text in first.help if (found := _TORCH.search(text))]
    if len(set(named)) != 1 or first.kind != "symbol-drift":
        return others
    return tuple(
        replace(one, help=tuple(_TORCH.sub(named[0], text) for text in one.help))
        if one.kind == "wrong-torch"
        else one
        for one in others
    )


def _by_its_version(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer with the torch that the failing file's package names in its own version.

    Where a torch is to be installed, that is the one.
    """
    if answer.kind not in DRIFT:
        return answer
    file = file_of(paste)
    name = directory_of(file) if file else package_in_text(paste)
    version = paste.versions.get(f"pkg:{name}", "") if name else ""
    tags = build_tags(version)
    if not file and tags.torch is None:
        return answer
    torch = tags.torch or torch_of(name or "", version)
    if torch is None:
        return answer
    tagged = tags.torch is not None
    strange = _not_of_its_torch(answer, name or "", version, torch, place, by_tag=tagged)
    if strange is not None:
        return strange
    if tags.torch is None and compiled_there(paste, name or "", file):
        return from_its_source(answer, place)
    if tags.torch is None and (other := of_another_copy(paste, name or "", version, torch)):
        return replace(answer, notes=(other, *answer.notes))
    notes = [f"{name} {version} was built for torch {torch}, by the record of its releases."]
    if tags.torch is not None:
        notes = [f"{name} {version} was built for torch {torch}, as its version says."]
    if tags.torch is None and re.search(r"\.?(?:dev|rc)\d*", version):
        notes = [of_a_nightly(name or "", version, torch)]
    flavour = variant_flavour(torch, tags.cuda or "", place.machine)
    if flavour is not None:
        notes.append(
            f"That build of torch {torch} is {flavour}, and the one that PyPI has is not: a torch "
            f"{torch} for CUDA {tags.cuda} from PyTorch's own index fits it, or a build of {name} "
            "for the torch that is installed."
        )
    torch = _whole(torch, answer)
    own = torch in answer.exported_by and flavour is None
    abi = re.search(r"cxx11abi(TRUE|FALSE)", version)
    if abi is not None and answer.direction == FLAVOUR:
        notes.append(_other_wheel(answer, place, name or "", version))
    fitting = (
        _TORCH.sub(f'"torch=={torch}"', text) if own else text
        for text in answer.help
        if own or not _TORCH.search(text)
    )
    kept = answer.notes
    commands = tuple(dict.fromkeys(fitting))
    if not any(_TORCH.search(text) for text in commands):
        kept = tuple(note for note in kept if not _ON_TWO.match(note))
    if abi is not None and _mislabelled(answer, abi[1]):
        commands = tuple(_from_source(text, name or "", place) for text in commands)
    else:
        answer = in_its_release(replace(answer, help=commands), name or "", version)
        commands = answer.help
    if flavour is not None and answer.direction == FLAVOUR:
        commands = with_that_build(commands, torch, tags.cuda or "")
    if tags.torch is not None:  # a wheel, which pip did not compile
        kept = tuple(note for note in kept if not _COMPILED.match(note))
    return replace(answer, help=commands, notes=(*notes, *kept))


def _whole(torch: str, answer: Answer) -> str:
    """A minor release, as tags of wheels name it, as the last of its releases with the name."""
    if torch.count(".") > 1:
        return torch
    of_it = [one for one in answer.exported_by if one.startswith(f"{torch}.")]
    return of_it[-1] if of_it else torch


def _mislabelled(answer: Answer, abi: str) -> bool:
    """Whether a wheel's name and the file in it are of two flavours."""
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    return answer.direction == FLAVOUR and new != (abi == "TRUE")


def _from_source(command: str, name: str, place: Place) -> str:
    """A build from source in place of a wheel whose name cannot be trusted."""
    from fa_forensics.rules.remedy import rebuild_command, row_of

    row = row_of(name)
    if "cxx11abi" not in command or row is None:
        return command
    return rebuild_command(place.python or "python", name, "", row)


def _other_wheel(answer: Answer, place: Place, name: str, version: str) -> str:
    """What a wheel's cxx11abiTRUE or FALSE says beside the flavour of the file in it."""
    tags = build_tags(version)
    abi, torch = "TRUE" if tags.cxx11_abi else "FALSE", tags.torch or ""
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    if _mislabelled(answer, abi):
        own, flavour = ("cxx11", "pre-cxx11") if new else ("pre-cxx11", "cxx11")
        return (
            f"The wheel in the text is called cxx11abi{abi}, and the file that is loaded is {own} "
            "all the same: either another file is loaded than that of this wheel, or the wheel is "
            f"not what its name says. Another release of {name} whose wheel is {flavour}, or a "
            "build from source for the installed torch, is the way out; cxx11abi"
            f"{'FALSE' if abi == 'TRUE' else 'TRUE'} would be no better."
        )
    other = "FALSE" if abi == "TRUE" else "TRUE"
    own_torch = ".".join(place.present.release.split(".")[:2]) if place.present else ""
    if own_torch and torch and own_torch != ".".join(torch.split(".")[:2]):
        return (
            f"The wheel in the text is cxx11abi{abi} and for torch {torch}: neither fits. The one "
            f"for the torch that is there has torch{own_torch} and cxx11abi{other} in its name."
        )
    return (
        f"The wheel in the text is cxx11abi{abi}; releases that name it have the same wheel as "
        f"cxx11abi{other}, which is the one for a torch of the other flavour."
        f"{twin_words(name, version, place)}{cuda_words(version, place)}"
    )


def _not_of_its_torch(
    answer: Answer, name: str, version: str, torch: str, place: Place, by_tag: bool
) -> Answer | None:
    """A file that needs a name which the torch of its package's version has not; None for others.

    ``by_tag`` tells that the version itself names the torch (+cu118torch2.3), and not a table.
    """
    have = {tuple(release.split(".")[:2]) for release in answer.exported_by}
    if answer.kind != "symbol-drift" or not have or tuple(torch.split(".")[:2]) in have:
        return None
    if by_tag:
        note = (
            f"{name} {version} was built for torch {torch}, as its version says, and no release of "
            f"torch {torch} has the name: it was built on a nightly or another pre-release of "
            f"{torch}, from the other side of that change. That very nightly, or a build for the "
            "torch that is installed, puts it right."
        )
        helps = tuple(text for text in answer.help if not _TORCH.search(text))
        kept = (n for n in answer.notes if not _ON_TWO.match(n) and not _COMPILED.match(n))
        return replace(answer, help=helps, notes=(note, *kept))
    note = (
        f"The published {name} {version} is built for torch {torch}, which has no such name: this "
        "file is not that wheel's. It was compiled against another torch (without "
        "--no-build-isolation pip takes one of its own for that: the one that pyproject.toml pins, "
        "else the newest), or was left by another release."
    )
    helps = own_release_again(answer, name, version, place)
    return replace(answer, help=helps, notes=(note, *answer.notes))


#: Notes on a command for the extension and one for torch.
_ON_TWO = lazily(
    r"(?:One of the two commands|Another build of|torch [\d.]{3,9} has the file's flavour)"
)
_COMPILED = lazily(r"(?:Where pip)\b")
#: The torch that a command installs.
_TORCH = lazily(r"\"torch[=>]=[\d.]+(?:,<[\d.]+)?\"")


def _copies(answer: Answer, paste: Paste) -> list[str]:
    """Which copy of the library in question the text's own ldd lines show."""
    if answer.kind not in ("versioned-symbol", "libstdcxx", "missing-library", "wrong-torch"):
        return []
    notes = []
    libraries = libraries_of(answer.owner) if answer.owner else ()
    for mention in paste.mentions:
        path = _shown(mention, libraries)
        if path:
            notes.append(f"ldd in the text shows the copy that is taken: {path}.")
            break
    variable = paste.versions.get("env:LD_LIBRARY_PATH")
    if variable and answer.kind == "versioned-symbol":
        notes.append(
            f"LD_LIBRARY_PATH is set in the text ({variable[:200]}); it goes before the wheels' "
            "own search path."
        )
    return notes


def _shown(mention: Mention, libraries: tuple[str, ...]) -> str | None:
    if mention.what != "ldd-line" or mention.detail.get("sort") != "found":
        return None
    name = (mention.library or "").rsplit("/", 1)[-1]
    return mention.detail.get("path") if name.startswith(libraries) and libraries else None
