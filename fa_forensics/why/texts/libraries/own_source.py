"""The build of an extension that no package on record has, in its own source directory."""

from __future__ import annotations

import re
import shlex

from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.texts.libraries.needing import rebuild_commands
from fa_forensics.why.ways.builds import clean_build, old_modules_gone

_THERE = (
    "The command that begins with rm -rf build is for the directory with the setup.py of the "
    "extension, in the project's own tree: what an earlier torch compiled there goes first."
)


def own_source(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) where the package is unknown: compiled again, without its old build/."""
    file = seen.mention.file or ""
    module = seen.mention.detail.get("import") or ""
    if rebuild_commands(seen) or not (module or file) or "torch_ext" in file:
        return (), ()
    if re.search(r"[/\\]torch[/\\]lib[/\\]", file):
        return (), ()
    if module.startswith(".") and not file:  # it is imported where it is compiled
        gone = old_modules_gone("module.cpython-3.so")
        python = shlex.quote(raw_python(seen))
        build = f"rm -rf build && {gone} && {python} setup.py build_ext --inplace"
        return (build,), (_THERE,)
    return (clean_build(raw_python(seen), file or f"{module.replace('.', '/')}.py"),), (
        "The command that begins with rm -rf build is for the source directory of the extension: a "
        "build/ that an earlier torch left is installed again as it is, unless it goes first.",
    )
