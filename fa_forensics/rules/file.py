"""FA1xx: the file itself, before anything is linked."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.elf.refusal import NOT_PAGE_ALIGNED
from fa_forensics.facts.system_releases import (
    asks_for_executable_stack,
    refuses_executable_stack,
    static_tls_room,
    static_tls_slack,
)
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_FILE, RANK_INITIALISER, RANK_NONE, Context, Judged
from fa_forensics.rules.remedy import reinstall


def wrong_machine(ctx: Context) -> Sequence[Judged]:
    """FA101: the file is for another processor than the environment's interpreter."""
    if ctx.environment is None or ctx.elf.machine == ctx.environment.machine:
        return ()
    finding = Finding(
        code="FA101",
        severity="error",
        confidence="high",
        title=f"{ctx.name} is for {ctx.elf.machine}, this Python is for {ctx.environment.machine}",
        evidence=(
            Evidence(f"e_machine {ctx.elf.machine}", ctx.elf.path, "ELF header"),
            Evidence(
                f"e_machine {ctx.environment.machine}", ctx.environment.python_real, "ELF header"
            ),
        ),
        notes=("No setting makes it load here; its symbols were not looked up.",),
    )
    return (Judged(RANK_FILE, finding),)


def cut_short(ctx: Context) -> Sequence[Judged]:
    """FA102: the file ends before its own headers say it does."""
    if ctx.elf.expected_size <= ctx.elf.size:
        return ()
    fatal = ctx.elf.cut_short
    note = "A download, a copy or a full disk broke it; what is left was still read."
    if not fatal:
        note = "What the loader maps is still whole, so that it may load; the file is damaged."
    finding = Finding(
        code="FA102",
        severity="error" if fatal else "warning",
        confidence="high",
        title=f"{ctx.name} is cut short: {ctx.elf.size:,} of at least "
        f"{ctx.elf.expected_size:,} bytes are there",
        evidence=tuple(Evidence(text, ctx.elf.path) for text in ctx.elf.problems),
        notes=(note,),
        help=reinstall(ctx),
    )
    return (Judged(RANK_FILE, finding),)


def damaged_tables(ctx: Context) -> Sequence[Judged]:
    """FA103: a table of the file cannot be read, though the file has its full length."""
    if ctx.elf.expected_size > ctx.elf.size or not ctx.elf.problems:
        return ()
    finding = Finding(
        code="FA103",
        severity="error",
        confidence="medium",
        title=f"{ctx.name} is damaged: a table that the loader needs cannot be read",
        evidence=tuple(Evidence(text, ctx.elf.path) for text in ctx.elf.problems),
        help=reinstall(ctx),
    )
    return (Judged(RANK_FILE, finding),)


def not_loadable(ctx: Context) -> Sequence[Judged]:
    """FA104: an ELF file that dlopen refuses by its headers: an object file, a program."""
    if ctx.elf.cut_short or wrong_machine(ctx) or ctx.elf.refusal in (None, NOT_PAGE_ALIGNED):
        return ()
    finding = Finding(
        code="FA104",
        severity="error",
        confidence="high",
        title=f"the loader refuses {ctx.name} by its headers: {ctx.elf.refusal}",
        evidence=(Evidence(f"file type: {ctx.elf.type}", ctx.elf.path, "ELF header"),),
    )
    return (Judged(RANK_FILE, finding),)


def executable_stack(ctx: Context) -> Sequence[Judged]:
    """FA105: the file asks for an executable stack, which glibc 2.41 and later refuse in dlopen."""
    flagged = ctx.elf.executable_stack
    if flagged is None and not ctx.elf.segments:
        return ()
    if not asks_for_executable_stack(flagged, ctx.elf.machine):
        return ()
    glibc = ctx.system.glibc if ctx.system is not None else None
    variables = ctx.environment.variables if ctx.environment is not None else {}
    refused = glibc is not None and refuses_executable_stack(
        glibc, variables.get("GLIBC_TUNABLES", "")
    )
    says = "PT_GNU_STACK has the flag X"
    if flagged is None:
        says = "no PT_GNU_STACK, which on this machine means an executable stack"
    title = f"{ctx.name} asks for an executable stack"
    finding = Finding(
        code="FA105",
        severity="error" if refused else "warning",
        confidence="high",
        title=f"{title}, which glibc {glibc} here refuses" if refused else title,
        evidence=(Evidence(says, ctx.elf.path, "program headers"),),
        notes=(
            "glibc 2.41 and later, and hardened kernels before that, refuse such a file: "
            '"cannot enable executable stack as shared object requires".',
            "It is rarely meant: an assembler source without .note.GNU-stack is enough. A build "
            "with -Wl,-z,noexecstack has none.",
        ),
    )
    return (Judged(RANK_FILE if refused else RANK_NONE, finding),)


def static_tls(ctx: Context) -> Sequence[Judged]:
    """FA107: more thread-local data with static access than the loader keeps room for.

    An error where it is more than the whole room; a warning where it is about all of it: other
    libraries take of the same room.
    """
    variables = ctx.environment.variables if ctx.environment is not None else {}
    room = static_tls_room(variables.get("GLIBC_TUNABLES", ""))
    if not ctx.elf.static_tls or ctx.elf.tls_size <= room * 3 // 4:
        return ()
    never = ctx.elf.tls_size > room + static_tls_slack()
    finding = Finding(
        code="FA107",
        severity="error" if never else "warning",
        confidence="high" if never else "medium",
        title=f"{ctx.name} needs {ctx.elf.tls_size:,} bytes of static thread-local data; the "
        f"loader keeps {room:,} for all libraries that are loaded later",
        evidence=(
            Evidence("DF_STATIC_TLS is set", ctx.elf.path, "DT_FLAGS"),
            Evidence(f"PT_TLS of {ctx.elf.tls_size:,} bytes", ctx.elf.path, "program headers"),
        ),
        notes=(
            'The loader says "cannot allocate memory in static TLS block". It is not a shortage of '
            "memory: the room is set aside when the process starts"
            + (" (glibc.rtld.optional_static_tls in GLIBC_TUNABLES makes it larger)." if never
               else ", and the more likely gone the later the file is imported."),
        ),
    )  # fmt: skip
    return (Judged(RANK_INITIALISER - 1 if never else RANK_NONE, finding),)


def no_section_headers(ctx: Context) -> Sequence[Judged]:
    """FA106: the section headers are gone; everything was read as the loader reads it."""
    if ctx.elf.has_section_headers or not ctx.elf.has_dynamic:
        return ()
    if ctx.elf.expected_size > ctx.elf.size:
        return ()
    finding = Finding(
        code="FA106",
        severity="note",
        confidence="high",
        title=f"{ctx.name} has no section headers; it was read through its program headers",
        notes=(
            "Loading does not need them. Tools that do (cuobjdump, older binutils) see "
            "nothing in it.",
        ),
    )
    return (Judged(RANK_NONE, finding),)
