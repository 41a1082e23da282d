"""A crash of a package whose release is known to be built for another torch than the one there."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.package import build_tags
from fa_forensics.facts.python_api import own_check, partner_of, passes_check, torch_of
from fa_forensics.records import dataclass
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import inspect_package, version_of
from fa_forensics.why.torch_names.history import order_key

#: torch and what is named beside it without having a part in what fails.
_BESIDE = ("torch", "pytorch", "torchvision", "torchaudio", "numpy", "transformers", "accelerate")


def only_named(seen: Seen) -> str | None:
    """The one package with compiled code that the text names without a version; None for none."""
    from fa_forensics.rules.remedy import row_of

    named = [key.removeprefix("named:") for key in seen.versions if key.startswith("named:")]
    known = [name for name in named if name not in _BESIDE and row_of(name) is not None]
    return known[0] if len(known) == 1 else None


@dataclass(frozen=True, slots=True)
class Apart:
    """A package and a torch that do not belong together.

    ``release`` is the package's, ``built`` the torch that it is built for, ``running`` the torch
    that the text has ("2.6.0+cu124"); ``ways`` are commands, one of which is enough, and ``notes``
    go with them.
    """

    package: str
    release: str
    built: str
    running: str
    older: bool
    ways: tuple[str, ...]
    notes: tuple[str, ...]


def apart(seen: Seen, package: str | None) -> Apart | None:
    """A package whose release is known to be built for another torch; None for any other."""
    told = version_of(seen, package) if package else None
    said = seen.versions.get("torch") or seen.torch or ""
    torch = re.match(r"\d{1,2}\.\d{1,3}(?:\.\d{1,3})?", said)
    if package is None or told is None or torch is None:
        return None
    release = told.partition("+")[0]
    checked = own_check(package, release) or ()
    built = build_tags(told).torch or next(iter(checked), None) or torch_of(package, release)
    own = torch[0] if torch[0].count(".") > 1 else f"{torch[0]}.0"
    if built is None or order_key(built)[:2] == order_key(own)[:2]:
        return None
    if any(order_key(one)[:2] == order_key(own)[:2] for one in checked):
        return None
    partner = partner_of(package, own)
    fits = passes_check(package, own) or (f"=={partner}" if partner else "")
    ways = [f'{seen.pip} install "torch=={built}"'] if built.count(".") > 1 else []
    if fits:
        again = "install --force-reinstall --no-deps --no-cache-dir"
        ways.insert(0, f"{seen.pip} {again} {shlex.quote(package + fits)}")
    notes = ["The first command takes the release for that torch; one of the two is enough."]
    if not fits:
        notes = [f"A release of {package} that is built for that torch is the other way out."]
    elif re.search(r"dev|a0", said) or "nightly" in seen.versions:
        notes.append(
            f"With a nightly of torch, {package} has to be a nightly of the same days, from the "
            "index of the nightlies."
        )
    older = order_key(built) < order_key(own)
    return Apart(package, release, built, said, older, tuple(ways), tuple(notes))


def of_another_torch(seen: Seen, package: str | None) -> Answer | None:
    """The answer where both releases are told and do not belong together; None for any other.

    All names can be found then, and the classes are laid out otherwise.
    """
    two = apart(seen, package)
    if two is None:
        return None
    cause = (
        f"{two.package} {two.release} is built for torch {two.built}, and the torch that runs is "
        f"{two.running}: its compiled file is {'older' if two.older else 'newer'}. All names are "
        "found all the same, and the classes are laid out otherwise, so that the process ends "
        "without the loader naming anything missing."
    )
    return seen.answer(
        "symbol-drift", "FA303", cause, owner=package,
        direction="unknown", confidence="medium",
        help=(*two.ways, inspect_package(seen, two.package)), notes=two.notes,
    )  # fmt: skip
