"""Reports as JSON documents of schema version 1 (``schema-v1.json`` beside this file).

The documents are views: the same report gives the same bytes. Lists that have no order of
their own are sorted; findings, evidence, commands and search paths keep theirs, because
there the order says something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from fa_forensics import __version__
from fa_forensics.render.style import natural_key
from fa_forensics.report import (
    SCHEMA_VERSION,
    BoundSymbol,
    Evidence,
    Finding,
    GpuCode,
    JudgedTorch,
    OtherGpuCode,
    ReleaseFacts,
    Report,
    TargetReport,
)
from fa_forensics.report_why import Answer, WhyReport

TOOL_NAME = "fa-forensics"

Document = dict[str, object]

#: What stands for the results in the document of a run that ended in an error, by command.
_NO_RESULTS: dict[str, Document] = {
    "inspect": {"targets": []},
    "why": {"answers": []},
    "upgrade": {"packages": []},
    "compare": {"differences": []},
    "atlas diff": {"difference": None},
    "atlas releases": {"releases": []},
    "explain": {"codes": []},
    "env": {"lines": []},
    "wheels": {"query": None, "wheels": []},
    "env --lock": {"lock": None},
}


def inspect_document(report: Report) -> Document:
    """The document of ``inspect``."""
    return {
        **head(report.tool_version, report.environment),
        "targets": [_target(target) for target in report.targets],
    }


def why_document(report: WhyReport) -> Document:
    """The document of ``why``."""
    return {
        **head(report.tool_version, report.environment),
        "answers": [_answer(answer) for answer in report.answers],
        "problem": report.problem,
        "torch": None if report.torch is None else judged_torch(report.torch),
        "note": report.note,
    }


def judged_torch(torch: JudgedTorch) -> Document:
    """The torch that was asked for, and what stood for it."""
    return {
        "requested": torch.requested,
        "version": torch.version,
        "release": torch.release,
        "cuda": torch.cuda,
        "cxx11_abi": torch.cxx11_abi,
        "judged_by": torch.judged_by,
        "note": torch.note,
    }


def error_document(
    message: str, hint: str | None, exit_code: int, command: str = "inspect"
) -> Document:
    """The document of a run that ended in an error: a legal one without results.

    ``command`` decides which list is there and empty: ``targets``, ``answers``, ...
    """
    error = {"message": message, "hint": hint, "exit_code": exit_code}
    return {**head(__version__, None), **_NO_RESULTS[command], "error": error}


def dumps(document: Mapping[str, object]) -> str:
    r"""The document as ASCII text with an indent of two and one newline at its end.

    Bytes of a name that are no UTF-8 reach us as lone surrogates, which most JSON readers
    refuse; they are written out as the text ``\xNN``. TypeError if a value has no JSON form.
    """
    text = json.dumps(document, indent=2, allow_nan=False)
    if "\\ud" in text:
        text = json.dumps(_without_surrogates(document), indent=2, allow_nan=False)
    return text + "\n"


def head(tool_version: str, environment: Mapping[str, object] | None) -> Document:
    """What every document starts with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": TOOL_NAME, "version": tool_version},
        "environment": None if environment is None else plain(environment),
    }


def _target(target: TargetReport) -> Document:
    skipped = sorted(target.skipped, key=lambda item: (item.rule, item.reason))
    undefined = sorted(target.undefined, key=lambda item: (item.symbol, item.version or ""))
    witness = target.cuobjdump
    return {
        "path": target.path,
        "member": target.member,
        "verdict": target.verdict,
        "headline": target.headline,
        "findings": [finding_document(finding) for finding in target.findings],
        "skipped": [{"rule": item.rule, "reason": item.reason} for item in skipped],
        "elf": None if target.elf is None else plain(target.elf),
        "undefined": [_bound(symbol) for symbol in undefined],
        "missing": sorted(set(target.missing)),
        "cxx11_abi": target.cxx11_abi,
        "stable_abi": target.stable_abi,
        "links_with": sorted_releases(target.links_with),
        "built_on": sorted_releases(target.built_on),
        "releases": None if target.releases is None else _place(target.releases),
        "torch": None if target.torch is None else judged_torch(target.torch),
        "gpu_code": [_image(image) for image in sorted(target.gpu_code, key=_image_key)],
        "toolkits": sorted_releases(target.toolkits),
        "coverage": _object(target.coverage),
        "kernels": _object(target.kernels),
        "other_gpu_code": [_other_gpu_code(code) for code in target.other_gpu_code],
        "provenance": _object(target.provenance),
        "floors": _object(target.floors),
        "cuobjdump": None
        if witness is None
        else {"status": witness.status, "path": witness.path, "detail": witness.detail},
        "confirm": {
            "status": target.confirm.status,
            "detail": target.confirm.detail,
            "steps": [plain(step) for step in target.confirm.steps],
        },
        "problem": target.problem,
        "hint": target.hint,
    }


def _object(view: Mapping[str, object] | None) -> object:
    return None if view is None else plain(view)


def _other_gpu_code(code: OtherGpuCode) -> Document:
    return {
        "vendor": code.vendor,
        "targets": list(code.targets),
        "bytes": code.bytes,
        "problems": list(code.problems),
    }


def _place(facts: ReleaseFacts) -> Document:
    """What the table of releases says beyond ``links_with`` and ``built_on``."""
    return {
        "machine": facts.machine,
        "known": sorted_releases(facts.known),
        "symbols": facts.symbols,
        "missing": [
            {"releases": list(releases), "symbols": sorted(set(names))}
            for releases, names in facts.missing
        ],
        "nowhere": sorted(set(facts.nowhere)),
        "best": facts.best,
        "evidence": list(facts.evidence),
        "confidence": facts.confidence,
        "together": facts.together,
        "package_links_with": sorted_releases(facts.package_links),
        "stable_abi_floor": facts.stable_floor,
        "exported_by": {
            name: sorted_releases(facts.exported_by[name]) for name in sorted(facts.exported_by)
        },
    }


def finding_document(finding: Finding) -> Document:
    """One finding, as it stands in every document."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "title": finding.title,
        "evidence": [_evidence(entry) for entry in finding.evidence],
        "notes": list(finding.notes),
        "help": list(finding.help),
    }


def _evidence(entry: Evidence) -> Document:
    return {
        "text": entry.text,
        "file": entry.file,
        "table": entry.table,
        "entry": entry.entry,
        "symbol": entry.symbol,
        "version": entry.version,
    }


def _bound(symbol: BoundSymbol) -> Document:
    return {
        "symbol": symbol.symbol,
        "version": symbol.version,
        "bind": symbol.bind,
        "demangled": symbol.demangled,
        "owner": symbol.owner,
        "provider": symbol.provider,
    }


def _image(image: GpuCode) -> Document:
    return {"kind": image.kind, "arch": image.arch, "count": image.count, "bytes": image.bytes}


def _image_key(image: GpuCode) -> tuple[object, ...]:
    return (image.kind, natural_key(image.arch), image.count, image.bytes)


def _answer(answer: Answer) -> Document:
    return {
        "kind": answer.kind,
        "code": answer.code,
        "symbol": answer.symbol,
        "demangled": answer.demangled,
        "owner": answer.owner,
        "provider": answer.provider,
        "exported_by": sorted_releases(answer.exported_by),
        "interval": answer.interval,
        "overloads": [
            {
                "symbol": other.symbol,
                "demangled": other.demangled,
                "exported_by": sorted_releases(other.exported_by),
                "interval": other.interval,
                "change": other.change,
            }
            for other in answer.overloads
        ],
        "direction": answer.direction,
        "cause": answer.cause,
        "help": list(answer.help),
        "notes": list(answer.notes),
        "confidence": answer.confidence,
        "looked_here": answer.looked_here,
        "releases_looked_up": answer.releases_looked_up,
        "source_line": answer.source_line,
    }


def sorted_releases(names: Iterable[str]) -> list[str]:
    """Releases, each once, in the order of their numbers."""
    return sorted(set(names), key=natural_key)


def plain(value: object) -> object:
    """Mappings with sorted keys, sequences as lists, scalars as they are; else TypeError."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in a report")


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def _text(text: str) -> str:
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        raw = text.encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "backslashreplace")
