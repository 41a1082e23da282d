"""The build of an extension that no package on record has, in its own source directory."""

from __future__ import annotations

import re

from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.texts.libraries.needing import rebuild_commands
from fa_forensics.why.ways.builds import clean_build


def own_source(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) where the package is unknown: compiled again, without its old build/."""
    file = seen.mention.file or ""
    module = seen.mention.detail.get("import") or ""
    if rebuild_commands(seen) or not (module or file) or "torch_ext" in file:
        return (), ()
    if re.search(r"[/\\]torch[/\\]lib[/\\]", file):
        return (), ()
    return (clean_build(raw_python(seen), file or f"{module.replace('.', '/')}.py"),), (
        "The command that begins with rm -rf build is for the source directory of the extension: a "
        "build/ that an earlier torch left is installed again as it is, unless it goes first.",
    )
