"""Answers to an undefined symbol that a text talks of without its name and without the file."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import (
    inspect_package,
    jobs_of,
    package_in,
    raw_python,
    version_of,
)
from fa_forensics.why.texts.python.crash_text import Apart, apart, only_named

BANNER = "FA886"
_WHOLE = (
    'Paste the whole line with "undefined symbol", or the log of pip -v, for an answer that is '
    "sure."
)
_LOG = (
    'A line "Collecting torch" or "Using cached torch-..." in that log is the torch that the build '
    "took."
)


def nameless(seen: Seen) -> Answer:
    """The answer by the package and the versions that the text has, as far as it has any."""
    package = package_in(seen) or only_named(seen)
    two = apart(seen, package)
    if two is not None:
        return _of_another_torch(seen, two)
    whose = f" of {package}" if package else ""
    cause = (
        f"The text speaks of an undefined symbol{whose} and names neither the symbol nor the file. "
        "Most often such a file was compiled for another torch than the one that runs: by pip in "
        "an environment of its own (build isolation), or before torch was replaced."
    )
    target = package or "PACKAGE"
    return seen.answer(
        "wrong-torch", BANNER, cause, owner=package, direction=UNKNOWN, confidence="low",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
            inspect_package(seen, target),
            *_build(seen, package),
        ),
        notes=(_WHOLE, _LOG),
    )  # fmt: skip


def _build(seen: Seen, package: str | None) -> tuple[str, ...]:
    if package is None:
        return (
            f"{seen.pip} install -v --no-build-isolation --no-cache-dir --force-reinstall "
            "--no-deps PACKAGE",
        )
    release = (version_of(seen, package) or "").partition("+")[0]
    return (rebuild_command(raw_python(seen), package, release, row_of(package), jobs_of(seen)),)


def _of_another_torch(seen: Seen, two: Apart) -> Answer:
    cause = (
        f"The text speaks of an undefined symbol and leaves out which. {two.package} {two.release} "
        f"is built for torch {two.built}, and the torch that runs is {two.running}: its compiled "
        f"file is {'older' if two.older else 'newer'}, and asks for names that this torch does not "
        "export."
    )
    return seen.answer(
        "wrong-torch", BANNER, cause, owner=two.package,
        direction=OLDER if two.older else NEWER, confidence="medium",
        help=(*two.ways, inspect_package(seen, two.package)), notes=(*two.notes, _WHOLE),
    )  # fmt: skip
