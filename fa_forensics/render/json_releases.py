"""The documents of ``upgrade`` and ``atlas`` in JSON schema version 1."""

from __future__ import annotations

from collections.abc import Iterable

from fa_forensics import __version__
from fa_forensics.render.json import Document, head, judged_torch, sorted_releases
from fa_forensics.report_releases import (
    ExportedName,
    FileChange,
    PackageChange,
    ReleaseDifference,
    ReleaseRow,
    ReleaseTableReport,
    Signatures,
    UpgradeReport,
)


def upgrade_document(report: UpgradeReport) -> Document:
    """The document of ``upgrade``."""
    return {
        **head(report.tool_version, report.environment),
        "torch": judged_torch(report.torch),
        "packages": [_package(package) for package in report.packages],
        "pins": [
            {
                "name": pin.name,
                "version": pin.version,
                "requires_torch": pin.requires,
                "file": pin.file,
                "already": pin.already,
            }
            for pin in report.pins
        ],
        "notes": list(report.notes),
        "help": list(report.help),
        "unread": list(report.unread),
    }


def _package(package: PackageChange) -> Document:
    return {
        "name": package.name,
        "version": package.version,
        "requires_torch": package.requires,
        "breaks": package.breaks,
        "files": [_file(file) for file in package.files],
        "notes": list(package.notes),
        "help": list(package.help),
    }


def _file(file: FileChange) -> Document:
    return {
        "path": file.path,
        "now": file.now.verdict,
        "then": file.then.verdict,
        "breaks": file.breaks,
        "replaced_by": file.replaced_by,
        "first_failure": file.failure,
        "missing": sorted(set(file.then.missing)),
        "findings": sorted({f.code for f in file.then.findings if f.severity == "error"}),
        "links_with": sorted_releases(file.then.links_with),
        "built_on": sorted_releases(file.then.built_on),
    }


def diff_document(found: ReleaseDifference) -> Document:
    """The document of ``atlas diff``."""
    return {
        **head(__version__, None),
        "difference": {
            "old": _release(found.old),
            "new": _release(found.new),
            "namespace": found.namespace,
            "libraries": list(found.libraries),
            "used_by": list(found.used_by),
            "used": found.used,
            "removed": _names(found.removed),
            "added": _names(found.added),
            "resigned": [_signatures(row) for row in found.resigned],
            "flavour": [_signatures(row) for row in found.flavour],
            "generated": [_signatures(row) for row in found.generated],
            "nowhere": _names(found.nowhere),
        },
    }


def releases_document(report: ReleaseTableReport) -> Document:
    """The document of ``atlas releases``."""
    return {
        **head(report.tool_version, None),
        "releases": [_release(row) for row in report.rows],
    }


def _release(row: ReleaseRow) -> Document:
    return {
        "release": row.release,
        "machine": row.machine,
        "date": row.date,
        "cuda": row.cuda,
        "cxx11_abi": row.flavour,
        "pythons": list(row.pythons),
        "wheel": row.wheel,
    }


def _signatures(row: Signatures) -> Document:
    return {"name": row.name, "before": _names(row.before), "after": _names(row.after)}


def _names(names: Iterable[ExportedName]) -> list[Document]:
    return [{"symbol": name.symbol, "demangled": name.demangled} for name in names]
