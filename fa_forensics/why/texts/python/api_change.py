"""Answers about Python interfaces that changed: parameters, names, arguments of a compiled module.

What FlashAttention's releases have is in ``data/flash_attn_api.json``; of other packages only
the sort of failure is known.
"""

from __future__ import annotations

import re

from fa_forensics.facts.bitsandbytes_names import is_for_gpu
from fa_forensics.facts.flash_limits import parameter_since, parameters, release_key
from fa_forensics.facts.flash_names import (
    Span,
    is_in,
    known_releases,
    module_spans,
    modules_with,
    name_spans,
    renamed,
)
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen, package_of
from fa_forensics.why.texts.clues import package_in, version_of
from fa_forensics.why.texts.python.api_names import name_of_release, parameter_of_release
from fa_forensics.why.texts.python.call_counts import pybind_arguments
from fa_forensics.why.texts.python.half_imported import half_imported
from fa_forensics.why.texts.python.not_built import never_built
from fa_forensics.why.texts.python.python_text import looks_compiled, missing_module

KIND, CODE = "api-change", "FA881"
FLASH = "flash-attn"

#: Where callers import from; a text that names no module most likely means one of these.
_PUBLIC = ("flash_attn.flash_attn_interface", "flash_attn")


def unexpected_keyword(seen: Seen) -> Answer:
    """``f() got an unexpected keyword argument 'x'``."""
    whole = seen.mention.detail.get("function", "")
    function = whole.rpartition(".")[2]
    parameter = seen.mention.detail.get("parameter", "")
    since = parameter_since(function, parameter)
    if since is None:
        return _keyword_of_others(seen, whole, function, parameter)
    if re.search(r"(?:^|/)vllm/", seen.mention.detail.get("frame", "")):
        return _of_vllm(seen, function, parameter, since)
    version = version_of(seen, FLASH)
    cause = f"{function} of flash-attn has {parameter} since {since}"
    direction, confidence = "none", "high"
    helps = [f'{seen.pip} install --no-build-isolation "flash-attn>={since}"']
    if version is None:
        cause += ": the flash-attn that was called is older than that."
        helps.insert(0, f"{seen.pip} show flash-attn vllm vllm-flash-attn")
    elif _older(version, since):
        cause += f"; flash-attn {version} is older: what calls it was written for {since} or later."
    else:
        cause += (
            f", and flash-attn {version} has it: another copy of flash-attn was called than that "
            "one."
        )
        confidence, helps = "medium", [_where(seen, "flash_attn")]
    # An environment of its own says which copy is imported, whatever pip knows.
    helps.append(_where(seen, "flash_attn"))
    return seen.answer(
        KIND, CODE, cause, owner=FLASH, direction=direction, confidence=confidence,
        help=tuple(dict.fromkeys(helps)),
        notes=(
            *((_OR_VLLMS,) if version is None else ()),
            "No import is broken: torch and the compiled module play no part.",
            "The other way out is a release of the caller that was written for the installed "
            "flash-attn.",
        ),
    )  # fmt: skip


_OR_VLLMS = (
    "vLLM calls functions of these names in its own vllm-flash-attn: where it is vLLM that runs, "
    "that package is the older one, and which flash-attn is installed plays no part."
)


def _of_vllm(seen: Seen, function: str, parameter: str, since: str) -> Answer:
    """vLLM calls the functions of its own build of flash-attn, which go by the same names."""
    package = "vllm-flash-attn"
    version = version_of(seen, package)
    cause = (
        f"vLLM calls {function} of its own vllm-flash-attn, not of flash-attn: which release of "
        f"flash-attn is installed plays no part. {parameter} came with flash-attn {since}, and the "
        "vllm-flash-attn that was called is older than that"
    )
    cause += f" ({package} {version})." if version else "."
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.pip} show vllm {package}",
            f"{seen.python} -c 'import importlib.util; "
            'print(importlib.util.find_spec("vllm_flash_attn"))\'',
        ),
        notes=(
            "Earlier releases of vLLM require one release of vllm-flash-attn; later ones bring "
            "it with them as vllm.vllm_flash_attn.",
        ),
    )  # fmt: skip


def _calls_flash(seen: Seen) -> bool:
    """Whether the call itself goes into flash-attn, as far as the traceback shows it."""
    detail = seen.mention.detail
    return (
        re.search(
            r"flash_attn[/.]|flash_attn_2_cuda",
            f"{detail.get('frame', '')} {detail.get('code', '')}",
        )
        is not None
    )


def _keyword_of_others(seen: Seen, whole: str, function: str, parameter: str) -> Answer:
    package = package_in(seen)
    called = f"{whole}()" if whole else "The function"
    first, last = known_releases()
    if name_spans(function, "flash_attn.flash_attn_interface"):
        cause = (
            f"No flash-attn from {first} to {last} has the parameter "
            f"{parameter or 'that was passed'} in {function}: the caller was written for another "
            "package (FlashAttention 3 or 4, a fork) or for a later release."
        )
        version = version_of(seen, FLASH)
        if version is not None and (have := parameters(version, function)):
            cause += f" flash-attn {version} has {', '.join(p.partition('=')[0] for p in have)}."
        return seen.answer(
            KIND, CODE, cause, owner=FLASH, direction="none", confidence="medium",
            help=(f"{seen.pip} show flash-attn", _where(seen, "flash_attn")),
        )  # fmt: skip
    answer = parameter_of_release(seen, function, parameter)
    if answer is not None:
        return answer
    if package == FLASH and seen.package != FLASH and not _calls_flash(seen):
        package = None  # a function of somebody else's that has flash_attn in its name
    cause = (
        f"{called} exists, but not with the parameter {parameter or 'that was passed'}: its caller "
        "was written for another release of the package that defines it. Which of the two is the "
        "older one, the text does not say."
    )
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="medium",
        help=(f"{seen.pip} show {package}",) if package else (f"{seen.pip} check",),
        notes=("No compiled file is at fault: a missing symbol would have stopped the import.",),
    )  # fmt: skip


def missing_attribute(seen: Seen) -> Answer:
    """``cannot import name 'f' from 'm'``, ``module 'm' has no attribute 'f'``."""
    detail = seen.mention.detail
    name = detail.get("name", "") or detail.get("attribute", "") or detail.get("function", "")
    module = detail.get("module", "")
    source = re.match(r"\s{0,40}from ([\w.]{1,100}) import\b", detail.get("code", ""))
    if not module and source is not None:  # Python 3.6 leaves it out of its message
        module = source[1]
    if detail.get("sort") == "object" and module == "NoneType":
        return _of_none(seen, name)
    if detail.get("sort") == "object" and module[:1].isupper():
        return _of_an_object(seen, name, module)
    if detail.get("sort") == "operator":
        from fa_forensics.why.texts.python.call_text import operator_missing

        return operator_missing(seen)
    line = seen.mention.line
    if looks_compiled(name) and never_built(detail, module, name):
        return missing_module(seen, f"{module}.{name}")
    if detail.get("partly") or re.search(r"unknown.location|consider.renaming", line):
        return half_imported(seen, name, module)
    if looks_compiled(name) and detail.get("sort") in ("import", "module"):
        return missing_module(seen, f"{module}.{name}" if module else name)
    if _is_flash(module, seen):
        spans = _spans(name, module)
        if spans:
            return _flash_name(seen, name, module, spans)
    answer = name_of_release(seen, module, name)
    if answer is not None:
        return answer
    if module == "torch" and name in _OF_AMD:
        return _never_in_torch(seen, name)
    package = package_in(seen) or (module.split(".")[0].replace("_", "-") if module else None)
    where = f"The module {module}" if module else "The module"
    cause = (
        f"{where} is there but has no {name or 'such name'}: its caller was written for another "
        "release of it, or asks for a name that no release has"
    )
    cause += (
        "."
        if _is_its_own(line, module)
        else ("; or another file of that name is imported in its place.")
    )
    helps = [f"{seen.pip} show {package}"] if package else []
    if module:
        helps.append(_where(seen, module.split(".")[0]))
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none",
        confidence="medium", help=tuple(helps),
        notes=("The command that prints a path shows which file is imported.",) if module else (),
    )  # fmt: skip


#: What people expect of torch for AMD GPUs: the modules of its C++ side have that name.
_OF_AMD = ("hip", "rocm")


def _never_in_torch(seen: Seen, name: str) -> Answer:
    """torch for ROCm has the interface of torch.cuda: PyTorch's notes, "HIP (ROCm) semantics"."""
    frame = seen.mention.detail.get("frame", "")
    caller = package_of(frame) or "the code that asks for it"
    return seen.answer(
        KIND, CODE,
        f"No release of torch has torch.{name}, those for ROCm neither: AMD GPUs are used by "
        f"torch.cuda, and torch.version.hip tells a build for ROCm. It is an error of {caller}; no "
        "binary and no release of torch is at fault.",
        owner=package_of(frame), direction="none", confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip, "
              "torch.cuda.is_available())'",),
        notes=("The way out is in the caller: a newer release of it, or torch.cuda in its place.",),
    )  # fmt: skip


def _is_its_own(line: str, module: str) -> bool:
    """Whether the path that Python prints is that of the installed package itself."""
    top = re.escape(module.split(".")[0])
    return bool(module) and re.search(rf"-packages[/\\]{top}[/\\]", line) is not None


def _of_an_object(seen: Seen, name: str, cls: str) -> Answer:
    """``'Cls' object has no attribute 'x'``: of a class, so that no module is named."""
    package = package_of(seen.mention.detail.get("frame", ""))
    return seen.answer(
        KIND, CODE,
        f"Objects of the class {cls} have no {name}: the code that asks for it was written for "
        "another release of the package that has the class, or the object was not made as a "
        "whole. No file and no symbol is at fault.",
        owner=package, direction="none", confidence="low",
        help=(f"{seen.pip} show {package}" if package else f"{seen.pip} check",),
    )  # fmt: skip


def _of_none(seen: Seen, name: str) -> Answer:
    """Something is None that should have been an object; of bitsandbytes, its library."""
    if is_for_gpu(name) or re.match(r"c\w+_(?:fp16|fp32|bf16)", name):
        from fa_forensics.why.texts.libraries.bitsandbytes_text import no_cuda_binary

        return no_cuda_binary(seen)
    if name in ("origin", "submodule_search_locations"):
        from fa_forensics.why.texts.python.no_spec import is_search, not_found

        if name != "origin" or is_search(seen):
            return not_found(seen)
    return seen.answer(
        "unrecognised", "FA899",
        "An object that was to be made before is not there (None). It is an error of the program, "
        "or follows from one further above; no file and no symbol is named.",
        owner=package_in(seen), direction="unknown", confidence="low",
        help=(f"{seen.pip} check",),
    )  # fmt: skip


def _is_flash(module: str, seen: Seen) -> bool:
    return module.split(".")[0] == "flash_attn" or (not module and package_in(seen) == FLASH)


def _spans(name: str, module: str) -> tuple[Span, ...]:
    """The releases that have a name where it was looked for; else anywhere in flash_attn."""
    if not module:
        for public in _PUBLIC:
            if spans := name_spans(name, public):
                return spans
    return name_spans(name, module) or name_spans(name)


def _flash_name(seen: Seen, name: str, module: str, spans: tuple[Span, ...]) -> Answer:
    """A name, or a whole module, that some releases of flash-attn have and others have not."""
    version = version_of(seen, FLASH)
    first, last = spans[0], spans[-1]
    known_first, _known_last = known_releases()
    since = "" if first.since == known_first else f" since {first.since}"
    have = f"flash-attn {version}" if version else "the flash-attn that is imported"
    notes: list[str] = []
    if version is not None and is_in(spans, version) and first.since != version:
        return half_imported(seen, name, module or "flash_attn")
    where = f" in {module}" if name_spans(name, module) and module.count(".") else ""
    newer = version is None and first.since != known_first
    if last.before is not None and (version is None or not _older(version, last.before)):
        cause = (
            f"flash-attn had {name}{where}{since} and has it no more from {last.before} on: the "
            f"caller was written for an older release than {have}."
        )
        helps = [f'{seen.pip} install "flash-attn<{last.before}"']
        if (other := renamed(name)) is not None:
            cause += f" {other} took its place in {last.before}, with the same arguments."
            notes.append(
                f"In code of one's own, import {other} in its place; else take a release of the "
                "caller for FlashAttention 2. An older flash-attn is the last resort: it has to be "
                "compiled, and newer GPUs and torches do not take it."
            )
            helps = [f"{seen.python} -c 'from flash_attn.flash_attn_interface import {other}'"]
        else:
            notes.append(
                "The way out is a release of the caller for the installed flash-attn; an older "
                "flash-attn is the other one, where the GPU and torch still allow it."
            )
        newer = False
    elif newer and version is None and (_of_fa4(seen) or _older(first.since, "2.0.0")):
        return _not_flash_2(seen, name, first.since)
    elif version is not None or newer:
        cause = (
            f"flash-attn has {name}{where} since {first.since}; {have} is older: the caller was "
        )
        cause += "written for a newer one."
        helps = [f'{seen.pip} install --no-build-isolation "flash-attn>={first.since}"']
    else:
        return half_imported(seen, name, module or "flash_attn")
    elsewhere = [other for other in modules_with(name) if other != module]
    if module and elsewhere and not name_spans(name, module):
        notes.append(f"It stands in {elsewhere[0]}, not in {module}.")
    return seen.answer(
        KIND, CODE, cause, owner=FLASH, direction="none", confidence="high",
        help=(f"{seen.pip} show flash-attn", *helps, _where(seen, "flash_attn")),
        notes=tuple(notes),
    )  # fmt: skip


def _of_fa4(seen: Seen) -> bool:
    """Whether the text speaks of FlashAttention 4, a distribution of its own."""
    text = " ".join((seen.mention.line, *seen.mention.detail.values()))
    return re.search(r"flash[-_ ]?attn[-_ ]?4|flash_attn[./]cute|\bFA4\b", text) is not None


def _not_flash_2(seen: Seen, name: str, since: str) -> Answer:
    """Every flash-attn 2 has the name: what is imported as flash_attn is not that."""
    four = _of_fa4(seen)
    brings = "flash-attn-4 brings flash_attn/cute alone"
    has = f"Every release of flash-attn 2 has {name}"
    if not _older(since, "2.0.1"):
        has = f"flash-attn 2 has {name} since {since}"
    cause = f"{has}, so what is imported as flash_attn is not "
    if four:
        cause += f"that package: {brings}, and the rest of flash_attn is flash-attn 2's, which is "
        cause += "not installed beside it. No compiled file is at fault."
    else:
        cause += (
            f"whole, or not that package. Three causes fit: {brings}; a directory named flash_attn "
            "comes first, or an installation left half of the files; or it is a flash-attn 0 or 1."
        )
    return seen.answer(
        KIND, CODE, cause, owner="flash-attn-4" if four else FLASH, direction="none",
        confidence="high" if four else "medium",
        help=(f"{seen.pip} list | grep -i flash", _where(seen, "flash_attn"),
              f"{seen.pip} install --no-build-isolation flash-attn"),
        notes=(
            "A program that finds flash_attn takes it for flash-attn 2. Where nothing needs "
            "flash-attn-4, removing that is the other way out.",
        ),
    )  # fmt: skip


def _where(seen: Seen, module: str) -> str:
    if not re.fullmatch(r"\w+", module):
        return f"{seen.pip} check"
    return (
        f"{seen.python} -c 'import importlib.util; print(importlib.util.find_spec(\"{module}\"))'"
    )


def _older(version: str, release: str) -> bool:
    mine, other = release_key(version), release_key(release)
    return mine is not None and other is not None and mine < other


def missing_submodule(seen: Seen, module: str) -> Answer | None:
    """A module of flash_attn that another release has; None where no release on record does."""
    spans = module_spans(module)
    return _flash_name(seen, module, "", spans) if spans else None


ANSWERERS: dict[str, Answerer] = {
    "unexpected-keyword": unexpected_keyword,
    "missing-attribute": missing_attribute,
    "pybind-arguments": pybind_arguments,
}
