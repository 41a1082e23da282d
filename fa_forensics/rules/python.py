"""FA4xx: the Python that imports the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.owner import PYTHON
from fa_forensics.report import Evidence, Finding
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
    known = {f"cpython-{version}-{environment.machine}-linux-gnu", "abi3"}
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
        notes=("The file was compiled for another Python version.",),
        help=build_for_this_torch(ctx),
    )
    return (Judged(symbol_rank(items[0]), finding),)


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
