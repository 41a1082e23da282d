"""Answers by releases alone: a package fails since torch was changed, or is for another torch."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.paste import Mention
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import known_packages, rebuild_command, row_of
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import inspect_package, jobs_of, raw_python, version_of
from fa_forensics.why.texts.python.crash_text import Apart, apart

_WHOLE = (
    "The message of the failing import, the last line of its traceback, makes this answer sure: "
    "it names the file and what it lacks."
)


def broken_since(seen: Seen) -> Answer:
    """``flash_attn broken after upgrading torch to 2.8``, without any message."""
    package = seen.mention.detail["package"]
    two = apart(seen, package)
    if two is not None:
        return _of_two(seen, two, "")
    running = f"torch {seen.torch}" if seen.torch else "the torch that is there now"
    cause = (
        f"{package} has compiled files, and those fit the torch that they were built for, as a "
        f"rule one minor release alone. Since torch was changed they are most likely for another "
        f"one: {package} has to be taken in a build for {running}, or be built again on it."
    )
    release = (version_of(seen, package) or "").partition("+")[0]
    row = row_of(package)
    return seen.answer(
        "wrong-torch", "FA606", cause, owner=package, direction=UNKNOWN, confidence="low",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            rebuild_command(raw_python(seen), package, release, row, jobs_of(seen)),
            inspect_package(seen, package),
        ),
        notes=(_WHOLE,),
    )  # fmt: skip


def versions_apart(seen: Seen) -> Answer | None:
    """The answer to a text whose package is for another torch than it has, and no more; or None.

    Only where the package's own version names its torch, or its releases are on record.
    """
    for row in known_packages():
        package = str(row["distribution"])
        if not row["modules"] or f"pkg:{package}" not in seen.versions or package == "torch":
            continue
        number = seen.paste.version_lines.get(f"pkg:{package}", 1)
        named = Mention("versions-apart", seen.versions[f"pkg:{package}"], number)
        two = apart(replace(seen, mention=named), package)
        if two is not None:
            return _of_two(replace(seen, mention=named), two, _NO_FAILURE)
    return None


_NO_FAILURE = "No failure in this text is recognised; its versions do not belong together."


def _of_two(seen: Seen, two: Apart, before: str) -> Answer:
    cause = (
        f"{two.package} {two.release} is built for torch {two.built}, and the torch that "
        f"runs is {two.running}: its compiled files are {'older' if two.older else 'newer'} than "
        "that torch."
    )
    if before:
        cause = f"{before} {cause}"
    return seen.answer(
        "wrong-torch", "FA606", cause, owner=two.package,
        direction=OLDER if two.older else NEWER, confidence="low" if before else "medium",
        help=(*two.ways, inspect_package(seen, two.package)), notes=(*two.notes, _WHOLE),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"broken-since": broken_since}
