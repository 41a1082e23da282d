"""What to type when the wrong copy of a library is taken; the facts that those rules judge."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from fa_forensics.facts.torch_install import Torch
from fa_forensics.records import dataclass
from fa_forensics.resolve.copies import LIBRARY_PATH, TOOLKIT, Copies, Copy
from fa_forensics.resolve.lacking import Lacking
from fa_forensics.resolve.resolution import Library


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """What the rules of this module judge.

    ``misses`` are the libraries that torch's own files need and the loader would not find;
    ``library_path`` the elements of LD_LIBRARY_PATH.
    """

    python: str
    torch: Torch
    variables: Mapping[str, str]
    library_path: tuple[str, ...]
    copies: Copies
    lacking: tuple[Lacking, ...]
    misses: tuple[Library, ...]


def nothing_needed(taken: Copy | None) -> tuple[str, ...]:
    """That torch can do without what put the copy in front, where a variable did."""
    if taken is None or taken.found_by != LIBRARY_PATH:
        return ()
    if TOOLKIT in taken.places:
        return ("Torch's wheels bring their own CUDA libraries and need no toolkit's.",)
    return ("Torch's wheels bring their own CUDA libraries and need no LD_LIBRARY_PATH.",)


def without(facts: CopyFacts, taken: Copy) -> tuple[str, ...]:
    """Commands that take the copy out of the loader's way; none where no variable put it there."""
    variable, value = "LD_LIBRARY_PATH", facts.variables.get("LD_LIBRARY_PATH", "")
    if taken.found_by == LIBRARY_PATH and value:
        here = os.path.dirname(taken.path)
        rest = [e for e in facts.library_path if e and os.path.normpath(e) != here]
    elif os.path.basename(taken.path) in facts.variables.get("LD_PRELOAD", ""):
        variable, value = "LD_PRELOAD", facts.variables["LD_PRELOAD"]
        name = os.path.basename(taken.path)
        rest = [e for e in value.replace(":", " ").split() if os.path.basename(e) != name]
    else:
        return ()
    change = f"export {variable}={shlex.quote(':'.join(rest))}" if rest else f"unset {variable}"
    return (change, f"{shlex.quote(facts.python)} -c 'import torch'")


def cure(facts: CopyFacts, row: Lacking, taken: Copy | None) -> tuple[str, ...]:
    """Commands against a copy that lacks what is needed; none where no package can help."""
    commands = () if taken is None else without(facts, taken)
    if commands or row.is_version:
        return commands
    return (_wheel_of(facts, row.soname) or reinstall(facts),)


def _wheel_of(facts: CopyFacts, soname: str) -> str | None:
    """The command for the wheel of a library as torch's own requirements pin it, or None."""
    group = next((g for g in facts.copies.groups if g.soname == soname), None)
    distribution = group.copies[0].name.family.distribution if group else None
    for requirement in facts.torch.requires if distribution else ():
        pinned = re.match(r"([\w.-]{1,80}) *\(?== *([\w.]{1,40})\)? *(?:;|$)", requirement)
        if pinned and re.fullmatch(rf"{re.escape(str(distribution))}(-cu\d+)?", pinned[1]):
            plain = f"{pinned[1]}=={pinned[2]}"
            return f'{shlex.quote(facts.python)} -m pip install --force-reinstall "{plain}"'
    return None


def reinstall(facts: CopyFacts) -> str:
    """Torch of the same release again, whole, with the libraries it pins."""
    return (
        f"{shlex.quote(facts.python)} -m pip install --force-reinstall --no-cache-dir "
        f'"torch=={facts.torch.release}"'
    )
