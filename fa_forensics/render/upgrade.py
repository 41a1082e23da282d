"""``upgrade`` as text: short when nothing breaks, a table and the remedies when something does."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    flow,
    painter,
    pieces,
    sentence,
    short_path,
)
from fa_forensics.report import FAILS
from fa_forensics.report_releases import FileChange, PackageChange, UpgradeReport

#: Files of one package that are told one by one; the rest is counted.
_FILES = 4
#: Metadata pins that are told one by one.
_PINS = 10

_WORDS = {
    "fails": "fails",
    "no-gpu-code": "no GPU code",
    "inconclusive": "?",
    "links": "links",
    "loads": "loads",
}


def upgrade_text(report: UpgradeReport, color: bool, verbose: bool, width: int) -> str:
    """The whole report, with a line feed at its end."""
    paint = painter(color)
    blocks = [_head(report, width)]
    if verbose or any(package.breaks or _failing(package) for package in report.packages):
        blocks.append(_table(report.packages, escape(report.torch.requested), width))
    for package in report.packages:
        if package.breaks:
            blocks.append(_broken(package, paint, verbose, width))
    blocks += [_aside(report, paint, verbose, width), _summary(report, paint, width)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(report: UpgradeReport, width: int) -> list[str]:
    torch, here = report.torch, report.environment.get("torch")
    cuda = f"CUDA {torch.cuda}" if torch.cuda else "no CUDA"
    old = f"torch {here['version']}" if isinstance(here, dict) else "no torch"
    text = (
        f"torch {torch.version} ({cuda}, {torch.cxx11_abi}) in place of {old}, "
        f"Python {report.environment.get('python_version')}, {report.environment.get('prefix')}"
    )
    return sentence(text, width, "upgrade: ", "         ")


def _table(packages: Sequence[PackageChange], asked: str, width: int) -> list[str]:
    if not packages:
        return []
    rows = [("package", "files", "now", f"with {asked}", "links with torch")]
    rows += [
        (
            escape(f"{package.name} {package.version}"),
            str(len(package.files)),
            _verdicts(file.now.verdict for file in package.files),
            _verdicts(file.then.verdict for file in package.files),
            escape(package.links) or "-",
        )
        for package in packages
    ]
    sizes = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = []
    for row in rows:
        left = "  ".join(f"{cell:<{size}}" for cell, size in zip(row, sizes, strict=False))
        indent = " " * (sum(sizes) + 8)
        if len(indent) > width - 20:
            lines.append(left.rstrip())
            indent = "    "
            lines += flow(pieces(row[4]), width, indent, indent)
        else:
            lines += flow(pieces(row[4]), width, left + "  ", indent)
    return lines


def _failing(package: PackageChange) -> list[FileChange]:
    """Its files that load with neither torch, builds that it does not choose aside."""
    return [
        file
        for file in package.files
        if file.now.verdict == file.then.verdict == FAILS and file.replaced_by is None
    ]


def _verdicts(verdicts: Iterable[str]) -> str:
    """``fails``, or ``2 fail, 1 links`` where they differ; the worst first."""
    found = list(verdicts)
    kinds = [word for word in _WORDS if word in found]
    if len(kinds) == 1:
        return _WORDS[kinds[0]]
    return ", ".join(f"{found.count(kind)} {_WORDS[kind]}" for kind in kinds)


def _broken(package: PackageChange, paint: Paint, verbose: bool, width: int) -> list[str]:
    broken = [file for file in package.files if file.breaks]
    what = f"{len(broken)} of its {counted(len(package.files), 'file')}"
    title = f"{package.name} {package.version} would stop loading ({what})"
    lines = sentence(title, width, "!! breaks: ", "   ")
    lines[0] = paint("!! breaks:", "red") + lines[0][len("!! breaks:") :]
    shown = broken if verbose else broken[:_FILES]
    for file in shown:
        lines += _failure(file, width)
    if len(broken) > len(shown):
        lines.append(f"  ... and {len(broken) - len(shown)} more files (--verbose shows all)")
    for note in package.notes:
        lines += sentence(note, width, "   = note: ", "           ")
    for command in package.help:
        lines.append(f"   {paint('= help:', 'cyan')} {escape(command)}")
    return lines


def _failure(file: FileChange, width: int) -> list[str]:
    lines = [f"  --> {escape(short_path(file.path))}"]
    title = next((f.title for f in file.then.findings if f.severity == "error"), None)
    if title is not None:
        lines += flow(pieces(escape(title)), width, "   |  ", "   |    ")
    if file.failure:
        loader = f"the loader will say: {file.failure}"
        lines += flow(pieces(escape(loader)), width, "   |  ", "   |    ")
    return lines


def _aside(report: UpgradeReport, paint: Paint, verbose: bool, width: int) -> list[str]:
    """What the metadata says, and what else is no break but worth a line."""
    lines = []
    for note in report.notes:
        lines += sentence(note, width, "note: ", "      ")
    for path in report.unread if verbose else report.unread[:_FILES]:
        text = f"{path} may not be read here, so what is installed there was not judged"
        lines += sentence(text, width, "note: ", "      ")
    unsure = [file for package in report.packages for file in package.files if file.unsure]
    for file in unsure if verbose else unsure[:_FILES]:
        text = f"{short_path(file.path)} was not judged: {file.then.headline}"
        lines += sentence(text, width, "note: ", "      ")
    linked = _names(report, "only_links")
    if linked:
        text = (
            f"{linked} only link: every name is there, but they were built on another minor "
            "release, whose classes may be laid out otherwise."
        )
        lines += sentence(text, width, "note: ", "      ")
    failing = [package.name for package in report.packages if _failing(package)]
    if failing:
        text = (
            f"files of {', '.join(failing)} fail already with the torch that is here; "
            "what each of them lacks: fa-forensics inspect --python "
            f"{shlex.quote(str(report.environment.get('prefix')))} {failing[0]}"
        )
        lines += sentence(text, width, "note: ", "      ")
    replaced = _names(report, "replaced")
    if replaced:
        text = f"{replaced} would not load, and need not: the package takes another build then."
        lines += sentence(text, width, "note: ", "      ")
    mended = _names(report, "mended")
    if mended:
        lines += sentence(f"{mended} would load again.", width, "note: ", "      ")
    if report.pins:
        count = counted(len(report.pins), "package")
        text = f"the metadata of {count} does not allow torch {report.torch.release or ''}:".strip()
        lines += sentence(text, width, "pins: ", "      ")
        shown = report.pins if verbose else report.pins[:_PINS]
        for pin in shown:
            nor = ", which this torch is not either" if pin.already else ""
            lines.append(f"      {escape(f'{pin.name} {pin.version}: torch{pin.requires}{nor}')}")
        if len(report.pins) > len(shown):
            lines.append(f"      ... and {len(report.pins) - len(shown)} more (--verbose)")
    if report.help:
        text = "pip can say whether releases of these go together with it; this installs nothing:"
        lines += sentence(text, width, "      ", "      ")
    for command in report.help:
        lines.append(f"   {paint('= help:', 'cyan')} {escape(command)}")
    return lines


def _names(report: UpgradeReport, what: str) -> str:
    """``xformers (3 files), torchaudio (1 file)`` of the files with a property."""
    found = []
    for package in report.packages:
        count = sum(bool(getattr(file, what)) for file in package.files)
        if count:
            found.append(f"{package.name} ({counted(count, 'file')})")
    return ", ".join(found)


def _summary(report: UpgradeReport, paint: Paint, width: int) -> list[str]:
    files = [file for package in report.packages for file in package.files]
    barred = counted(len(report.unread), "place")
    if not files and report.unread:
        text = f"no extension was found that uses torch or CUDA, but {barred} could not be read"
        return sentence(text, width, "?? ", "   ")
    if not files:
        return ["no installed package has an extension that uses torch or CUDA"]
    broken = [package for package in report.packages if package.breaks]
    count = sum(file.breaks for file in files)
    whole = f"{counted(len(files), 'extension file')} of {counted(len(report.packages), 'package')}"
    if broken:
        names = ", ".join(package.name for package in broken)
        text = f"{count} of {whole} would stop loading ({names})"
    else:
        text = f"none of {whole} would stop loading"
    already = sum(len(_failing(package)) for package in report.packages)
    if already:
        text += f"; {already} fail{'s' if already == 1 else ''} with either torch"
    unsure = sum(file.unsure for file in files)
    if unsure:
        text += f"; {unsure} could not be judged"
    if report.unread:
        text += f"; {barred} could not be read"
    open_ = unsure or report.unread
    mark, style = ("!!", "red") if broken else (("??", "yellow") if open_ else ("ok", "green"))
    lines = sentence(text, width, f"{mark} ", "   ")
    lines[0] = paint(mark, style) + lines[0][len(mark) :]
    return lines
