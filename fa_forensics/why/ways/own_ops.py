"""Compiled files that no package brings: DeepSpeed's ops, and what a program builds for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import file_of, module_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: The switch that compiles all of DeepSpeed's ops when it is installed.
_ALL_OPS = "DS_BUILD_OPS=1 "
_ON_ALL = lazily(r"(?:No package is named|Where pip compiled)")


def compiled_by_deepspeed(answer: Answer, paste: Paste, name: str | None) -> Answer:
    """The answer for an op that DeepSpeed compiled at its first use, as it does by default.

    Ops that were compiled when it was installed lie in site-packages/deepspeed/ops.
    """
    built = next((text for text in answer.help if _ALL_OPS in text), None)
    if built is None or "-packages/" in file_of(paste).replace("\\", "/"):
        return answer
    helps = tuple(
        "rm -rf ~/.cache/torch_extensions" if text == built else text for text in answer.help
    )
    note = (
        "DeepSpeed compiles an op at its first use, into ~/.cache/torch_extensions (or the "
        "directory that TORCH_EXTENSIONS_DIR names): what lies there is of another torch; once "
        "it is removed, the next start compiles the op for the torch that is loaded. Ops that were "
        "compiled when DeepSpeed was installed (DS_BUILD_OPS=1, or DS_BUILD_ and an op's name) lie "
        "in site-packages/deepspeed/ops: with those it is installed again, with the same variables "
        "and --no-build-isolation."
    )
    kept = (n for n in answer.notes if not _ON_ALL.match(n))
    return replace(answer, help=helps, notes=(note, *kept))


def of_a_program(answer: Answer, paste: Paste) -> Answer:
    """The answer for a module that a program builds from a directory of its own sources."""
    module = module_of(file_of(paste))
    rows = read_table("project_modules.json")["projects"] if module else ()
    row = next((row for row in rows if module in row["modules"]), None)
    if row is None or not any(text.startswith("rm -rf build") for text in answer.help):
        return answer
    where = "its top directory" if row["directory"] == "." else f"its directory {row['directory']}"
    note = (
        f"{module} is what {row['project']} builds in {where}, and so do programs that have a copy "
        "of that directory: it is the source directory that is meant."
    )
    return replace(answer, notes=(note, *answer.notes))
