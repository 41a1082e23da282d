"""``No module named 'selective_scan_cuda_core'``: what a program builds from its own sources."""

from __future__ import annotations

import re
import shlex
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen


def built_by_program(seen: Seen, module: str) -> Answer | None:
    """A module of a program's own directory of sources; None for all others."""
    parts = module.split(".")
    row = _row(parts[-1]) or _row(parts[0])
    if row is None:
        return None
    name = next(part for part in (parts[-1], parts[0]) if part in row["modules"])
    project, folder = str(row["project"]), str(row["directory"])
    where = "its top directory" if folder == "." else f"its directory {folder}"
    cause = (
        f"The compiled module {name} is not there. No package of the index brings it: the program "
        f"builds it from sources of its own, as {project} does in {where}, and that was not done, "
        "or it was done for another Python."
    )
    if row.get("not_of"):
        cause += f" It is no part of {row['not_of']}: to install that changes nothing."
    there = _told(seen.mention.detail.get("frame", ""), folder)
    option = "-e ." if folder == "." else "."
    return seen.answer(
        "damaged-file", "FA880", cause, owner=project, direction="none", confidence="high",
        help=(
            f"cd {there} && {seen.pip} install -v --no-build-isolation --no-deps {option}",
            f"{seen.python} -c 'import torch; import {module}'",
        ),
        notes=(
            "Other programs have a copy of that directory elsewhere: it is the one with setup.py "
            f"in which {name} stands (grep -r {name} --include=setup.py . in the program's "
            "directory). The build needs nvcc of the CUDA that torch was built for, and git clone "
            "--recursive where the directory is a submodule and empty.",
        ),
    )  # fmt: skip


_APEX_NEEDS = (
    "apex compiles this module with --cpp_ext --cuda_ext (APEX_CPP_EXT=1 APEX_CUDA_EXT=1 in "
    "today's sources), and for torch 1.0 and later alone: a newer torch comes first, or the "
    "program does without that module."
)


def too_old_for(seen: Seen, package: str | None) -> tuple[str, ...]:
    """That the torch of the text is before those that a package can be compiled for.

    apex's setup.py: "--cpp_ext requires Pytorch 1.0 or later".
    """
    return (_APEX_NEEDS,) if package == "apex" and (seen.torch or "").startswith("0.") else ()


def _told(frame: str, folder: str) -> str:
    """The directory to build in: out of the path of the file that failed, where that shows it."""
    last = f"/{folder.rpartition('/')[2]}/"
    if frame.startswith("/") and last in frame and not re.search(r"-packages/|\.{3}|\.egg/", frame):
        return shlex.quote(frame.rpartition(last)[0] + last[:-1])
    return "/path/to/the/program" + ("" if folder == "." else f"/{folder}")


def _row(name: str) -> dict[str, Any] | None:
    rows: list[dict[str, Any]] = read_table("project_modules.json")["projects"]
    return next((row for row in rows if name in row["modules"]), None)
