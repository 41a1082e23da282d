"""What the rest of a text adds to its answers: names that count together, paths that ldd shows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import interval_text
from fa_forensics.atlas.requested import variant_flavour
from fa_forensics.facts.owner import is_torch, libraries_of
from fa_forensics.facts.package import build_tags
from fa_forensics.facts.python_api import torch_of
from fa_forensics.facts.symbol_text import parse_symbol
from fa_forensics.report_why import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Mention, Paste

#: Names that are counted together; a listing of a large file has thousands.
_MOST_NAMES = 400


def with_context(
    answers: tuple[Answer, ...], paste: Paste, place: Place, tables: Tables
) -> tuple[Answer, ...]:
    """The answers, with what other lines of the text say about them."""
    if not answers:
        return ()
    first = _by_its_version(answers[0], paste, place)
    notes = [
        *_built_on(first, paste, place, tables),
        *_copies(first, paste),
    ]
    if not notes:
        return (first, *answers[1:])
    return (replace(first, notes=(*notes, *first.notes)), *answers[1:])


def _built_on(answer: Answer, paste: Paste, place: Place, tables: Tables) -> list[str]:
    """The torch that all torch names in the text together point to."""
    atlas = tables.ages
    if atlas is None or answer.owner is None or not is_torch(answer.owner):
        return []
    names = _torch_names(paste)
    if len(names) < 2:
        return []
    known = atlas.releases(place.machine)
    sets = [set(releases) for name in names if (releases := atlas.releases_of(name, place.machine))]
    if len(sets) < 2:
        return []
    common = [release for release in known if all(release in one for one in sets)]
    if not common or len(common) == len(known):
        return []
    return [
        f"All {len(sets)} torch names in the text together are exported by torch "
        f"{interval_text(common, known)} alone: that is what the file was built on, whatever its "
        "own version says."
    ]


def _by_its_version(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer with the torch that the failing file's package names in its own version.

    Where a torch is to be installed, that is the one.
    """
    if answer.kind not in ("symbol-drift", "cxx11-abi", "wrong-torch"):
        return answer
    file = next((m.file for m in paste.mentions if m.file), None)
    name = _directory(file) if file else None
    version = paste.versions.get(f"pkg:{name}", "") if name else ""
    tags = build_tags(version)
    torch = tags.torch or torch_of(name or "", version)
    if torch is None:
        return answer
    notes = [f"{name} {version} was built for torch {torch}, as its version says."]
    flavour = variant_flavour(torch, tags.cuda or "", place.machine)
    if flavour is not None:
        notes.append(
            f"That build of torch {torch} is {flavour}, and the one that PyPI has is not: a torch "
            f"{torch} for CUDA {tags.cuda} from PyTorch's own index fits it, or a build of {name} "
            "for the torch that is installed."
        )
    own = torch in answer.exported_by and flavour is None
    commands = (
        _TORCH.sub(f'"torch=={torch}"', text) if own else text
        for text in answer.help
        if own or not _TORCH.search(text)
    )
    return replace(answer, help=tuple(dict.fromkeys(commands)), notes=(*notes, *answer.notes))


#: The torch that a command installs.
_TORCH = re.compile(r"\"torch[=>]=[\d.]+(?:,<[\d.]+)?\"")


def _directory(file: str) -> str | None:
    """The package of a file by the directory below site-packages, as pip writes it."""
    from fa_forensics.why.seen import package_of

    found = re.search(r"/(?:site|dist)-packages/([\w-]{1,60})/", file)
    return package_of(file) or (found[1].replace("_", "-") if found else None)


def _torch_names(paste: Paste) -> list[str]:
    found: dict[str, None] = {}
    for mention in paste.mentions[:_MOST_NAMES]:
        undefined = mention.detail.get("sort", "undefined") == "undefined"
        symbol = parse_symbol(mention.symbol) if mention.symbol and undefined else None
        if symbol is not None and symbol.name and symbol.name.startswith("_Z"):
            found.setdefault(symbol.name)
    return list(found)


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
