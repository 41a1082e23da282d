"""Who needs a missing library, in words and in commands."""

from __future__ import annotations

import re

from fa_forensics.why.seen import Seen, package_of

#: Names of compiled modules, as packages give them.
_COMPILED = re.compile(r"(?:^|\.)_\w+$|_(?:cuda|cpp|ext|ops|C)$")


def needing(seen: Seen) -> str:
    """Who needs the library, in a sentence."""
    file = seen.mention.file
    if file:
        return file.rsplit("/", 1)[-1]
    module = seen.mention.detail.get("import")
    if module and _COMPILED.search(module):
        return f"the extension {module}"
    if module:
        return f"the extension that {module} imports"
    package = seen.mention.detail.get("by")
    return f"a compiled part of {package}" if package else "the extension"


def files_of(seen: Seen) -> tuple[str, ...]:
    """The failing file, where the text names it."""
    return (seen.mention.file,) if seen.mention.file else ()


def rebuild_commands(seen: Seen, package: str | None = None) -> tuple[str, ...]:
    """Get a build of the package that fits, where the package is known."""
    from fa_forensics.rules.remedy import rebuild_command, row_of

    module = seen.mention.detail.get("import") or ""
    name = package or seen.package or package_of(f"{module.replace('.', '/')}.so" if module else "")
    if name is None and seen.mention.detail.get("by"):
        name = package_of(f"/site-packages/{seen.mention.detail['by']}/_C.so")
    if name is None:
        return ()
    python = "python" if seen.elsewhere or not seen.place.python else seen.place.python
    version = seen.versions.get(f"pkg:{name}", "")
    return (rebuild_command(python, name, version, row_of(name)),)


def import_torch_first(seen: Seen) -> str:
    """Import torch, then the module."""
    module = seen.module or seen.mention.detail.get("import") or "MODULE"
    return f"{seen.python} -c 'import torch; import {module}'"
