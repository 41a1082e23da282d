"""Answers about names, modules and parameters that other releases of a package have.

What is on record of torch, its family and a few more is in ``data/python_api.json``.
"""

from __future__ import annotations

import re

from fa_forensics.facts.flash_names import Span, is_in
from fa_forensics.facts.python_api import (
    api_parameter,
    api_spans,
    distribution_with,
    is_older,
    packages_with_function,
    partner_of,
    releases_on_record,
)
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.clues import version_of

KIND, CODE = "api-change", "FA881"

#: Packages of which torch is never the newer one by itself: each release is for one torch.
_FAMILY = ("torchvision", "torchaudio", "torchtext", "xformers")
#: What torch's own C module has in CUDA builds alone.
_CUDA_NAME = lazily(r"_cuda_?\w*|_cudart|_cudnn|_nccl_\w+|_CudaDeviceProperties|CudaError")


def name_of_release(seen: Seen, module: str, name: str) -> Answer | None:
    """A name that is missing from a module, where it is on record which releases have it."""
    package = distribution_with(module) if module else None
    if package is None:
        return None
    if module == "torch._C" and _CUDA_NAME.fullmatch(name):
        return _cuda_build(seen, name)
    spans = api_spans(package, module, name)
    return _answer(seen, package, f"{module}.{name}", spans) if spans else None


def module_of_release(seen: Seen, module: str) -> Answer | None:
    """A module that another release of the package has; None where none on record does."""
    package = distribution_with(module)
    spans = api_spans(package, module) if package is not None else ()
    return _answer(seen, package, module, spans) if package and spans else None


def parameter_of_release(seen: Seen, function: str, parameter: str) -> Answer | None:
    """A parameter that another release of a package on record has in that function."""
    packages = packages_with_function(function, parameter)
    if len(packages) != 1:
        return None
    spans = api_parameter(packages[0], function, parameter)
    return _answer(seen, packages[0], f"{function}({parameter}=)", spans)


def _version(seen: Seen, package: str) -> str | None:
    return seen.torch if package == "torch" else version_of(seen, package)


def _answer(seen: Seen, package: str, what: str, spans: tuple[Span, ...]) -> Answer | None:
    """By the release that is there, or without one by the only side that fits."""
    version = _version(seen, package)
    base = version.partition("+")[0] if version else None
    first, last = spans[0], spans[-1]
    oldest, _newest = releases_on_record(package)
    if base is not None and is_in(spans, base):
        return _although_there(seen, package, what, base)
    newer = first.since != oldest if base is None else is_older(base, first.since)
    if base is None and newer and last.before is not None:
        return _between(seen, package, what, spans)
    caller = _caller(seen, package)
    who = f"its caller {caller}" if caller else "its caller"
    here = f"{package} {version}" if version else "the one that is here"
    if newer:
        cause = (
            f"{package} has {what} since {first.since}; {here} is older: {who} was written for a "
            "newer release."
        )
        helps = [*_partners(seen, caller), f'{seen.pip} install "{package}>={first.since}"']
    elif last.before is not None:
        cause = (
            f"{package} had {what} before {last.before} and has it no more; {here} is newer: {who} "
            "was written for an older release."
        )
        upgrade = f"{seen.pip} install --upgrade {caller}" if caller else ""
        helps = [upgrade, f'{seen.pip} install "{package}<{last.before}"']
    else:
        return None
    helps.append(_show(seen, package, caller))
    notes = ["No compiled file is at fault: it is Python code of two releases that do not fit."]
    notes += _family_note(seen, package, caller) if newer else []
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="high",
        help=tuple(command for command in helps if command), notes=tuple(notes),
    )  # fmt: skip


def _between(seen: Seen, package: str, what: str, spans: tuple[Span, ...]) -> Answer:
    """It came and went: without a release the text leaves both sides open."""
    last = spans[-1]
    cause = (
        f"Only releases of {package} from {spans[0].since} to before {last.before} have {what}, "
        f"and its caller was written for one of those. Most likely {package} {last.before} or "
        "newer is here; the text does not say."
    )
    notes = ["A newer release of the caller is the other way out."]
    helps = [_show(seen, package, _caller(seen, package))]
    if package == "triton":
        notes.append("torch brings the triton that goes with it.")
    else:
        helps.append(f'{seen.pip} install "{package}>={last.since},<{last.before}"')
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _although_there(seen: Seen, package: str, what: str, version: str) -> Answer:
    top = what.split(".")[0] if "(" not in what else package.replace("-", "_")
    return seen.answer(
        KIND, CODE,
        f"{package} {version} has {what}: what was imported is another copy, or a directory or a "
        "file of that name that comes before the installed package, or an installation that is "
        "not whole.",
        owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import importlib.util; "
            f'print(importlib.util.find_spec("{top}"))\'',
            f"{seen.pip} show {package}",
        ),
    )  # fmt: skip


def _cuda_build(seen: Seen, name: str) -> Answer:
    """``torch._C`` has these names where torch was compiled with CUDA."""
    said = f"torch {seen.torch}" if seen.torch else "the one that is here"
    return seen.answer(
        "wrong-torch", "FA601",
        f"torch._C has {name} in CUDA builds alone: {said} is a build without CUDA, and what calls "
        "it takes CUDA for granted.",
        owner="torch", direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
            "torch.cuda.is_available())'",
        ),
        notes=("The first command prints None for the CUDA version of such a build.",),
    )  # fmt: skip


def _caller(seen: Seen, package: str) -> str | None:
    """The package whose code asked for the name, by the traceback's last step."""
    detail = seen.mention.detail
    path = (detail.get("frame") or detail.get("near") or "").replace("\\", "/")
    found = package_of(path)
    if found is None and (match := re.search(r"(?:site|dist)-packages/([A-Za-z_]\w*)/", path)):
        found = match[1].replace("_", "-")
    return found if found != package else None


def _partners(seen: Seen, caller: str | None) -> list[str]:
    """The caller's release for the torch that is there."""
    if caller not in _FAMILY or not seen.torch:
        return []
    fitting = partner_of(caller, seen.torch)
    return [f'{seen.pip} install --no-deps "{caller}=={fitting}"'] if fitting else []


def _family_note(seen: Seen, package: str, caller: str | None) -> list[str]:
    """Which releases go with torch: they are what asks torch for newer names most often."""
    if package != "torch" or (caller and caller not in _FAMILY) or not seen.torch:
        return []
    torch = seen.torch.partition("+")[0]
    fitting = [f"{name} {partner_of(name, torch)}" for name in _FAMILY if partner_of(name, torch)]
    if not fitting:
        return []
    return [f"The releases that go with torch {torch}: {', '.join(fitting)}."]


def _show(seen: Seen, package: str, caller: str | None) -> str:
    others = ("torchvision", "torchaudio") if package == "torch" and not caller else ()
    return " ".join((seen.pip, "show", package, *((caller,) if caller else others)))
