"""One run of ``wheels``: what was given decides whether wheels are looked for or judged."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field

from fa_forensics import __version__
from fa_forensics.errors import UsageError
from fa_forensics.facts.package import normalized
from fa_forensics.facts.wheel_matrix import PACKAGE
from fa_forensics.records import dataclass
from fa_forensics.report_wheels import JudgedWheel, WheelQuery, WheelsReport
from fa_forensics.views import environment_view
from fa_forensics.wheels.query import query
from fa_forensics.wheels.situation import Asked, Situation, read_situation


@dataclass(frozen=True, slots=True)
class WheelOptions:
    """What a run was asked for beside its arguments.

    ``content`` is True (read every wheel whole), False (names and metadata alone) or None:
    one at an address only where its tags fit. ``timeout_s`` bounds each wait for a server.
    """

    asked: Asked = field(default_factory=Asked)
    package: str = PACKAGE
    content: bool | None = None
    timeout_s: float = 30.0


def wheels(
    arguments: Sequence[str],
    options: WheelOptions | None = None,
    environ: Mapping[str, str] | None = None,
) -> WheelsReport:
    """Find the wheel for an environment, or judge the wheels that are given.

    An argument is a path, an address, a wheel's file name, or the name of the package to find
    wheels of (the same as no argument). Raises ``UsageError`` and ``EnvironmentNotFound``.
    """
    options = options or WheelOptions()
    if normalized(options.package) != PACKAGE:
        raise _unknown_package(options.package)
    situation = read_situation(options.asked, os.environ if environ is None else environ)
    named = [one for one in arguments if not _is_wheel(one)]
    for name in named:
        if normalized(name) != PACKAGE:
            raise _unknown_package(name)
    given = [one for one in arguments if _is_wheel(one)]
    judged = _judged(given, situation, options) if given else ()
    found: WheelQuery | None = None
    if named or not given:
        found = _query(situation)
    return WheelsReport(__version__, environment_view(situation.environment), found, judged)


def _judged(
    given: Sequence[str], situation: Situation, options: WheelOptions
) -> tuple[JudgedWheel, ...]:
    from fa_forensics.wheels.given import judge_given  # brings the whole of inspect with it

    content, timeout_s = options.content, options.timeout_s
    return tuple(judge_given(one, situation, content, timeout_s) for one in given)


def _query(situation: Situation) -> WheelQuery:
    if situation.torch is None:
        problem = "; ".join(situation.unknown) or "no torch is here"
        raise UsageError(
            f"which wheel fits depends on torch, and {problem}",
            "name the environment that has it (--python PATH), or a release (--torch 2.6.0)",
        )
    return query(situation)


def _is_wheel(argument: str) -> bool:
    """Whether an argument is a wheel, by its form: it may not exist."""
    bare = argument.partition("?")[0].partition("#")[0]
    return bare.lower().endswith(".whl") or "/" in argument


def _unknown_package(name: str) -> UsageError:
    return UsageError(
        f"the official wheels of {name!r} are not known to this program, those of {PACKAGE} are",
        "give a wheel (a path, an address or a file name ending in .whl) to have it judged",
    )
