"""FA1xx: the file itself, before anything is linked."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_FILE, RANK_NONE, Context, Judged


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
    finding = Finding(
        code="FA102",
        severity="error",
        confidence="high",
        title=f"{ctx.name} is cut short: {ctx.elf.size:,} of at least "
        f"{ctx.elf.expected_size:,} bytes are there",
        evidence=tuple(Evidence(text, ctx.elf.path) for text in ctx.elf.problems),
        notes=("A download, a copy or a full disk broke it; what is left was still read.",),
        help=_reinstall(ctx),
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
        help=_reinstall(ctx),
    )
    return (Judged(RANK_FILE, finding),)


def not_loadable(ctx: Context) -> Sequence[Judged]:
    """FA104: an ELF file that dlopen cannot open: an object file, a program, no dynamic part."""
    if ctx.elf.expected_size > ctx.elf.size or wrong_machine(ctx):
        return ()
    if ctx.elf.type == "shared object" and ctx.elf.has_dynamic:
        return ()
    what = ctx.elf.type if ctx.elf.type != "shared object" else "shared object without PT_DYNAMIC"
    finding = Finding(
        code="FA104",
        severity="error",
        confidence="high",
        title=f"{ctx.name} is no loadable library: it is a {what} file",
        evidence=(Evidence(f"e_type: {ctx.elf.type}", ctx.elf.path, "ELF header"),),
        notes=("Only its GPU code could be read.",),
    )
    return (Judged(RANK_FILE, finding),)


def executable_stack(ctx: Context) -> Sequence[Judged]:
    """FA105: the file asks for an executable stack, which glibc 2.41 and later refuse in dlopen."""
    if not ctx.elf.executable_stack:
        return ()
    finding = Finding(
        code="FA105",
        severity="warning",
        confidence="high",
        title=f"{ctx.name} asks for an executable stack",
        evidence=(Evidence("PT_GNU_STACK has the flag X", ctx.elf.path, "program headers"),),
        notes=(
            "glibc 2.41 and later, and hardened kernels before that, refuse such a file: "
            '"cannot enable executable stack as shared object requires".',
        ),
    )
    return (Judged(RANK_NONE, finding),)


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


def _reinstall(ctx: Context) -> tuple[str, ...]:
    from fa_forensics.rules.remedy import distribution_name, pip

    name = distribution_name(ctx)
    if name is None:
        return ()
    version = ctx.distribution.version if ctx.distribution else None
    wanted = f"{name}=={version}" if version and "+" not in version else name
    return (pip(ctx, f"install --force-reinstall --no-deps --no-cache-dir {wanted}"),)
