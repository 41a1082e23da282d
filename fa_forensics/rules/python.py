"""FA4xx: the Python that imports the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.floors import Claim
from fa_forensics.facts.owner import PYTHON
from fa_forensics.facts.stable_abi import newer_than
from fa_forensics.report import Evidence, Finding
from fa_forensics.resolve.explain import Missing
from fa_forensics.rules.base import RANK_IMPORT, RANK_NONE, Context, Judged, symbol_rank
from fa_forensics.rules.evidence import symbol_evidence
from fa_forensics.rules.remedy import build_for_this_torch

#: The tag of an extension's file name: PEP 3149, ``importlib.machinery.EXTENSION_SUFFIXES``.
_TAGGED = re.compile(r"\.((?:cpython|pypy|graalpy|abi3)[^.]*)\.so$")


def other_python(ctx: Context) -> Sequence[Judged]:
    """FA401: the file's name is for another Python version, so import never finds it."""
    tag = ctx.elf.python_tag
    if ctx.environment is None or tag is None or not re.fullmatch(r"cp\d+\w*", tag):
        return ()
    version = ctx.environment.version_short
    expected = "cp" + version.replace(".", "") + ctx.environment.abiflags
    if tag == expected or ctx.environment.implementation != "cpython":
        return ()
    digits = re.sub(r"\D", "", tag)
    finding = Finding(
        code="FA401",
        severity="error",
        confidence="high",
        title=f"{ctx.name} is for Python {digits[0]}.{digits[1:]}, this environment has {version}",
        evidence=(Evidence(f"tag {tag} in the file name, {expected} expected", ctx.elf.path),),
        notes=(
            'Python looks only for its own tag: the import says "No module named", '
            'not "undefined symbol".',
        ),
        help=build_for_this_torch(ctx),
    )
    return (Judged(RANK_IMPORT, finding),)


def other_platform(ctx: Context) -> Sequence[Judged]:
    """FA404: a file name that this Python never looks for: another platform, another kind."""
    environment = ctx.environment
    found = _TAGGED.search(ctx.name)
    if environment is None or found is None or environment.implementation != "cpython":
        return ()
    if other_python(ctx):
        return ()
    version = environment.version_short.replace(".", "") + environment.abiflags
    known = {f"cpython-{version}-{environment.machine}-linux-gnu", *_stable_suffixes(ctx)}
    if found[1] in known:
        return ()
    finding = Finding(
        code="FA404",
        severity="warning",
        confidence="high",
        title=f"Python {environment.version_short} here does not look for files named "
        f"*.{found[1]}.so",
        evidence=(Evidence(f"it looks for *.{', *.'.join(sorted(known))} and plain *.so"),),
        notes=('The import says "No module named", whatever the file holds.',),
    )
    return (Judged(RANK_IMPORT, finding),)


def _stable_suffixes(ctx: Context) -> set[str]:
    """The suffixes of the stable ABI that the interpreter looks for.

    PEP 803: a free-threaded build has none before 3.15, then abi3t; others take both from then.
    """
    version = _python_version(ctx)
    threaded = ctx.environment is not None and "t" in ctx.environment.abiflags
    suffixes = set() if threaded else {"abi3"}
    return suffixes | {"abi3t"} if version is not None and version >= (3, 15) else suffixes


def python_symbols(ctx: Context) -> Sequence[Judged]:
    """FA402: the interpreter does not export a C function of Python that the file needs."""
    items = [m for m in ctx.causes if m.owner == PYTHON]
    if not items or ctx.environment is None:
        return ()
    finding = Finding(
        code="FA402",
        severity="error",
        confidence="high",
        title=f"Python {ctx.environment.version} does not export {items[0].binding.symbol}"
        + (f" and {len(items) - 1} more" if len(items) > 1 else ""),
        evidence=symbol_evidence(ctx, items),
        notes=("The file was compiled for another Python version.", *_came_later(ctx, items)),
        help=build_for_this_torch(ctx),
    )
    return (Judged(symbol_rank(items[0]), finding),)


def _came_later(ctx: Context, items: Sequence[Missing]) -> tuple[str, ...]:
    """Which Python brought those of the names that its stable ABI has: a sentence, or none."""
    version = _python_version(ctx)
    if version is None:
        return ()
    later = newer_than((m.binding.symbol for m in items), version)
    if not later:
        return ()
    name = max(later, key=lambda n: later[n])
    return (f"{name} came with Python {later[name][0]}.{later[name][1]}.",)


def _python_version(ctx: Context) -> tuple[int, int] | None:
    """(3, 11) of the environment's interpreter; None where it is not CPython or not known."""
    environment = ctx.environment
    if environment is None or environment.implementation != "cpython":
        return None
    found = re.match(r"3\.(\d{1,3})(?!\d)", environment.version_short)
    return (3, int(found[1])) if found else None


def outside_stable_abi(ctx: Context) -> Sequence[Judged]:
    """FA408: the file claims Python's stable ABI, but uses C names that are not part of it."""
    python = ctx.floors.python if ctx.floors is not None else None
    if python is None or not python.outside:
        return ()
    names = python.outside
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    finding = Finding(
        code="FA408",
        severity="warning",
        confidence="high",
        title=f"{ctx.name} claims Python's stable ABI, but uses {names[0]}{more}, which is not "
        "part of it",
        evidence=tuple(
            Evidence(f"needs {name}", ctx.elf.path, ".dynsym", None, name) for name in names
        ),
        notes=(
            "Such names may go or change their meaning with any release of Python; pip and "
            "Python take the claim (abi3) to mean that the file runs with all later ones.",
        ),
    )
    return (Judged(RANK_NONE, finding),)


def newer_than_claimed(ctx: Context) -> Sequence[Judged]:
    """FA409: C names of Python that are newer than the Python the file claims to run with.

    An error where the interpreter here is too old and nothing else said so, because the file
    was not resolved.
    """
    floors = ctx.floors
    if floors is None or floors.python is None or floors.python.floor is None:
        return ()
    floor, names = floors.python.floor, floors.python.newest
    claimed = _claimed_python(floors.claim)
    here = _python_version(ctx) if ctx.resolution is None else None
    too_old = here is not None and here < floor
    if not too_old and (claimed is None or claimed >= floor):
        return ()
    needs = f"needs Python {floor[0]}.{floor[1]} ({', '.join(names[:3])})"
    if too_old and here is not None:
        title = f"{ctx.name} {needs}, this environment has {here[0]}.{here[1]}"
    else:
        assert claimed is not None
        title = f"the wheel's tag cp{claimed[0]}{claimed[1]} promises Python {claimed[0]}."
        title += f"{claimed[1]} or newer, but {ctx.name} {needs}"
    finding = Finding(
        code="FA409",
        severity="error" if too_old else "warning",
        confidence="high",
        title=title,
        evidence=tuple(
            Evidence(f"needs {name}", ctx.elf.path, ".dynsym", None, name) for name in names
        ),
        notes=(
            f"These names came into Python's stable ABI with {floor[0]}.{floor[1]}; an older "
            "Python does not export them.",
        ),
        help=build_for_this_torch(ctx) if too_old else (),
    )
    return (Judged(RANK_IMPORT if too_old else RANK_NONE, finding),)


def _claimed_python(claim: Claim | None) -> tuple[int, int] | None:
    """The oldest Python that a wheel for the stable ABI is tagged for: cp39 is (3, 9)."""
    if claim is None or not claim.stable_abi:
        return None
    tags = [re.fullmatch(r"cp3(\d{1,3})", tag) for tag in claim.python_tags]
    return min(((3, int(found[1])) for found in tags if found), default=None)


def module_name(ctx: Context) -> Sequence[Judged]:
    """FA403: the file name and the module's init function do not agree (a renamed file)."""
    expected = ctx.elf.module_name
    found = ctx.elf.init_modules
    if not found or expected is None or expected in found:
        return ()
    finding = Finding(
        code="FA403",
        severity="warning",
        confidence="high",
        title=f"{ctx.name} defines PyInit_{found[0]}, not PyInit_{expected}",
        evidence=(Evidence(f"exports PyInit_{found[0]}", ctx.elf.path, ".dynsym"),),
        notes=(
            'Under this file name, import fails with "dynamic module does not define module '
            f'export function (PyInit_{expected})"; the file was renamed.',
        ),
    )
    return (Judged(RANK_NONE, finding),)
