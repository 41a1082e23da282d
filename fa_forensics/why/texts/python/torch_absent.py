"""Answers to ``No module named 'torch'`` where something runs that finds no torch."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import package_built, what_to_build

KIND, CODE = "python-abi", "FA880"

_WHICH = "-c 'import sys; print(sys.executable, sys.path)'"
#: How Python 2 names a module that it does not find; Python 3 puts the name in quotes.
_PYTHON_2 = re.compile(r"(?:^|\s)ImportError: No module named torch[\w.]{0,100}\s*$")


def torch_absent(seen: Seen) -> Answer:
    """Another Python than the one that has torch, a build of pip's, or no torch at all."""
    if seen.mention.detail.get("sudo"):
        return _by_sudo(seen, seen.mention.detail["sudo"])
    if _PYTHON_2.search(seen.mention.line):
        return _python_2(seen)
    claimed = bool(seen.mention.detail.get("claimed"))
    if claimed or (seen.elsewhere and seen.versions.get("torch")):
        return _told(seen)
    return seen.answer(
        KIND, CODE,
        "No package that is imported as torch is installed for the Python that ran: it is not "
        "installed, or for another Python.",
        owner="torch", direction="none", confidence="high",
        help=(f"{seen.python} {_WHICH}", f"{seen.pip} install torch"),
        notes=("Where torch is installed and the line comes while pip or uv builds a package, that "
               "build runs apart from it: --no-build-isolation lets it see the installed torch.",),
    )  # fmt: skip


def _by_sudo(seen: Seen, command: str) -> Answer:
    """sudo takes PATH from its own settings (secure_path in sudoers), not from the shell."""
    two = (
        " The message is as Python 2 writes it, which is no environment's Python."
        if _PYTHON_2.search(seen.mention.line)
        else ""
    )
    cause = (
        "The command ran under sudo, which takes its own PATH (secure_path) and leaves the "
        "environment's behind: the system's Python ran, for which torch is not installed. The "
        f"environment most likely has torch: the second command shows it.{two}"
    )
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none", confidence="medium",
        help=(
            "command -v python; sudo sh -c 'command -v python python3'",
            "python -c 'import sys, torch; print(sys.executable, torch.__version__)'",
            command,
        ),
        notes=("The second and third commands run without sudo, with the environment activated; an "
               "environment of one's own needs no root rights. Where they are needed all the same: "
               f'sudo env "PATH=$PATH" {command}, or the full path of the environment\'s python.',
               "What sudo made in the source directory belongs to root: remove it with sudo rm -rf "
               "build *.egg-info there, before the build without sudo."),
    )  # fmt: skip


def _python_2(seen: Seen) -> Answer:
    """torch 1.4 was the last with wheels for Python 2.7 (its release notes)."""
    cause = (
        "The message is as Python 2 writes it, without quotes around the name: python is Python 2 "
        "there, most likely the system's, for which torch is not installed. torch since 1.5 is for "
        "Python 3 alone, so that it lies in another Python, such as an environment that is not "
        "activated, or that sudo leaves behind."
    )
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none", confidence="medium",
        help=(
            "command -v python python3; python --version",
            "python3 -c 'import sys, torch; print(sys.executable, torch.__version__)'",
        ),
        notes=("Where the second command prints a torch, the same command goes with python3 in "
               "place of python, without sudo and with the environment activated (sudo takes a "
               "PATH of its own). Where it does not, torch is to be installed for that Python 3.",),
    )  # fmt: skip


_BUILD_OR_PYTHON = (
    " Two causes fit: pip or uv was building a package, which they do in an environment of its own "
    "that has no torch; or another Python ran than the one that has torch: the system's, that of "
    "sudo, of an IDE or of a notebook."
)


def _told(seen: Seen) -> Answer:
    """The text has a torch: the Python that ran is not the one that has it, or pip builds."""
    package = package_built(seen)
    built = what_to_build(seen)
    install = f"{seen.pip} install --no-build-isolation {built}"
    commands = (f"{seen.pip} install packaging ninja psutil wheel setuptools", install)
    torch = seen.versions.get("torch")
    cause = "The text says that torch is installed, and the Python that ran finds none."
    if torch:
        cause = f"The text has torch {torch}, and the Python that ran finds none."
    cause += _BUILD_OR_PYTHON
    if package is not None:
        cause += f" With {package}, whose setup.py imports torch, the first is the likelier."
    notes = ("In the first case --no-build-isolation lets the build see the installed torch; what "
             "the build needs besides has to be there before.",)  # fmt: skip
    return seen.answer(
        "wrong-torch" if package else KIND, "FA884" if package else CODE, cause,
        owner=package or "torch", direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import sys, torch; print(sys.executable, torch.__version__)'",
            # Nothing that is built is named: the first command is for the other case too.
            *(() if built == "PACKAGE" else commands),
        ),
        notes=notes,
    )  # fmt: skip
