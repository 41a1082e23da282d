"""Answers about a module without its names: a second import after a failed one, or a wrong copy."""

from __future__ import annotations

import re

from fa_forensics.facts.python_api import has_partners, partner_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.texts.python.pairs import pair_command, pair_notes

_SITE = lazily(r"(?:site|dist)-packages[/\\]")


def half_imported(seen: Seen, name: str, module: str) -> Answer:
    """``partially initialized module``, or a module without a name that its release has."""
    top = module.split(".")[0] or "the module"
    detail = seen.mention.detail
    where = detail.get("where", "") or detail.get("frame", "") or detail.get("near", "")
    if not re.fullmatch(r"\w+", top):
        return _another_place(seen, top, name, None)
    own = re.search(rf"(?:site|dist)-packages[/\\]{top}[/\\.]", where) is not None
    if detail.get("partly") and own:
        return _second_import(seen, top, name)
    told = detail.get("where", "")
    if re.search(rf"[/\\]{top}(?:\.py|[/\\])", told) and not _SITE.search(told):
        return _another_place(seen, top, name, told)
    circle = detail.get("sort") == "import" and "." in module
    if detail.get("partly") and (circle or has_partners(top)):
        return _second_import(seen, top, name)
    return _another_place(seen, top, name, None)


def _second_import(seen: Seen, top: str, name: str) -> Answer:
    """Python keeps the parts of a package whose import failed, and not the package itself.

    The next import finds them in ``sys.modules`` and does not attach them to the new module.
    """
    package = package_in(seen) or top.replace("_", "-")
    whole = seen.mention.detail.get("sort") == "module"
    cause = (
        f"Most often this is the second import of {top} in one process: the first one failed half "
        f"way, and its parts ({name}) are loaded and no longer attached. The error of the first "
        "import is the cause; the words about a circular import mislead."
        if whole
        else f"Modules of {top} import one another, and {name} was asked for before it was there. "
        "Two causes fit: an import above failed and its error was caught, or this release has "
        "such a circle with what else is installed."
    )
    helps = [f"{seen.python} -c 'import {top}'"]
    notes = ["The command starts a new process and shows that error; a notebook needs a restart."]
    torch = seen.torch.partition("+")[0] if seen.torch else None
    kind, code = "api-change", "FA886"
    if has_partners(package):
        kind = "wrong-torch"
        cause += f" With {package} it is most often a release of it for another torch."
        helps.append(f"{seen.pip} show torch {package}")
        fitting = partner_of(package, torch) if torch else None
        helps += pair_command(seen, package)
        if fitting:
            notes.append(f"The release for torch {torch} is {package} {fitting}.")
        notes += pair_notes(seen, package)
    return seen.answer(
        kind, code, cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _another_place(seen: Seen, top: str, name: str, where: str | None) -> Answer:
    """The module that is imported is not the package: a directory or a script of that name."""
    confidence = "high" if where else "medium"
    if where:
        cause = (
            f"{top} is imported from {where}, not from the installed package: that file or "
            f"directory comes first, and has no {name or 'such name'}."
        )
    else:
        cause = (
            f"{top} is imported from another place than the installed package, or only half of it "
            f"is there, so that it has no {name or 'such name'}: a directory or a file named {top} "
            "in the working directory comes before the installed package, an interrupted "
            "installation leaves a directory without its files, and in a notebook an earlier "
            "import that failed leaves half a module."
        )
    look = f"{seen.python} -c 'import importlib.util; print(importlib.util.find_spec(\"{top}\"))'"
    if not re.fullmatch(r"\w+", top):
        look = f"{seen.pip} check"
    return seen.answer(
        "api-change", "FA881", cause, owner=package_in(seen), direction="none",
        confidence=confidence, help=(look,),
    )  # fmt: skip
