"""Evidence that several rules show: symbols, needed libraries, the places that were tried."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.demangle import readable
from fa_forensics.report import Evidence
from fa_forensics.resolve.explain import Missing
from fa_forensics.resolve.resolution import Library
from fa_forensics.rules.base import Context


def symbol_evidence(ctx: Context, missing: Sequence[Missing]) -> tuple[Evidence, ...]:
    """Each missing symbol, and what is exported in its place where that is known."""
    rows: list[Evidence] = []
    for item in missing:
        version = f", version {item.binding.version}" if item.binding.version else ""
        shown = readable(item.demangled)
        text = f"needs {item.binding.symbol}{version}"
        if shown != item.binding.symbol:
            text += f" = {shown}"
        rows.append(
            Evidence(
                text,
                ctx.elf.path,
                ".dynsym",
                item.binding.table,
                item.binding.symbol,
                item.binding.version,
            )
        )
        rows += [
            Evidence(
                f"has {readable(near.demangled)} ({near.relation})",
                near.library,
                ".dynsym",
                None,
                near.symbol,
            )
            for near in item.nearest[:3]
        ]
    return tuple(rows)


def others(count: int, what: str = "other") -> str:
    """The tail of a title: " and 3 other symbols"; empty for none."""
    if not count:
        return ""
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f" and {count} {plural if count > 1 else what}"


def needed_by(library: Library) -> Evidence:
    """The DT_NEEDED entry that asks for a library."""
    return Evidence(f"needs {library.soname}", library.needed_by, "DT_NEEDED")


def tried(library: Library) -> tuple[Evidence, ...]:
    """The places where the loader would have looked, in its order."""
    if not library.tried:
        return ()
    return (Evidence("looked in: " + ", ".join(library.tried), table="search order of ld.so"),)
