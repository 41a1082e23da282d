"""``env --lock`` as the files that build an environment again.

Three files, each usable as it is printed: requirements for pip, an environment.yml for conda and
a fragment of a Dockerfile. What is not known stands in them as comments.
"""

from __future__ import annotations

from collections.abc import Iterator

from fa_forensics.render.style import escape
from fa_forensics.report_lock import CONDA, LockReport, Pin

REQUIREMENTS, ENVIRONMENT, DOCKERFILE, ALL = "requirements", "environment", "dockerfile", "all"
PARTS = (REQUIREMENTS, ENVIRONMENT, DOCKERFILE, ALL)

_FILES = {
    REQUIREMENTS: "requirements.txt",
    ENVIRONMENT: "environment.yml",
    DOCKERFILE: "Dockerfile",
}


def lock_text(report: LockReport, part: str = ALL) -> str:
    """One of the files, or all with a line of heading before each; a line feed at the end."""
    makers = {
        REQUIREMENTS: requirements,
        ENVIRONMENT: environment_yml,
        DOCKERFILE: dockerfile,
    }
    if part != ALL:
        return "\n".join(makers[part](report)) + "\n"
    blocks = []
    for name, make in makers.items():
        blocks.append("\n".join([f"# ---- {_FILES[name]} ----", *make(report)]))
    return "\n\n".join(blocks) + "\n"


def requirements(report: LockReport) -> Iterator[str]:
    """Lines for pip: pinned, with the hashes of the archives that were installed."""
    yield f"# Python {escape(report.python)}, read by fa-forensics {report.tool_version}"
    yield "# python -m pip install --no-deps -r requirements.txt"
    yield from _about_hashes(report)
    for note in report.notes:
        yield f"# {escape(note)}"
    for pin in report.pins:
        if pin.source != CONDA:
            yield from _requirement(pin, report.whole)


def _about_hashes(report: LockReport) -> Iterator[str]:
    lines = [pin for pin in report.pins if pin.line is not None]
    known = sum(bool(pin.hashes) for pin in lines)
    if report.whole:
        yield f"# all {known} hashes are known: pip compares each archive with its own"
    else:
        yield (
            f"# {known} of {len(lines)} hashes are known: pip takes them for all lines or for none,"
        )
        yield "# so they stand as comments (--lock-index URL asks a package index for the others)"


def _requirement(pin: Pin, whole: bool) -> Iterator[str]:
    for note in pin.notes:
        yield f"# {escape(f'{pin.name} {pin.version}: {note}')}"
    if pin.line is None:
        yield f"# {escape(f'{pin.name}=={pin.version}')}"
        return
    if pin.url is not None and pin.url not in pin.line:
        yield f"# {escape(pin.url)}"
    if whole:
        yield " \\\n    ".join([escape(pin.line), *(f"--hash={digest}" for digest in pin.hashes)])
        return
    yield escape(pin.line)
    for digest in pin.hashes:
        yield f"    # --hash={digest} ({escape(pin.hash_source or '')})"


def environment_yml(report: LockReport) -> Iterator[str]:
    """An environment for conda; what pip installed stands in its own list."""
    yield f"name: {_quoted(report.name)}"
    yield "channels:"
    yield from (f"  - {_quoted(channel)}" for channel in report.channels or ("conda-forge",))
    yield "dependencies:"
    names = {package.name for package in report.conda}
    for package in report.conda:
        yield f"  - {_quoted(f'{package.name}={package.version}={package.build}')}"
    if "python" not in names:
        yield f"  - {_quoted(f'python={report.python}')}"
    if "pip" not in names:
        yield f"  - {_quoted(f'pip={report.pip}' if report.pip else 'pip')}"
    lines = [pin for pin in report.pins if pin.source != CONDA]
    if any(pin.line is not None for pin in lines):
        yield "  - pip:"
    for pin in lines:
        for note in pin.notes:
            yield f"      # {escape(f'{pin.name} {pin.version}: {note}')}"
        if pin.line is None:
            yield f"      # {escape(f'{pin.name}=={pin.version}: not to be had again')}"
        else:
            yield f"      - {_quoted(pin.line)}"


def _quoted(text: str) -> str:
    """A YAML scalar: in single quotes, which keep every printable character as it is."""
    return "'" + escape(text).replace("'", "''") + "'"


def dockerfile(report: LockReport) -> Iterator[str]:
    """The lines that make the same Python environment in a container."""
    if report.conda:
        yield "# environment.yml beside this file; the image brings conda"
        yield "COPY environment.yml /tmp/environment.yml"
        yield "RUN conda env create --file /tmp/environment.yml"
        yield from _surroundings(report)
        return
    if report.image is None:
        yield f"# FROM an image with Python {escape(report.python)}: none is known to this program"
    else:
        yield f"FROM {escape(report.image)}"
    lost = [pin for pin in report.pins if pin.line is None]
    for pin in lost:
        yield f"# {escape(f'{pin.name} {pin.version} must be brought along: COPY it and install')}"
    yield "COPY requirements.txt /tmp/requirements.txt"
    pip = (
        f'python -m pip install --no-cache-dir "pip=={escape(report.pip)}" && '
        if report.pip
        else ""
    )
    hashes = "--require-hashes " if report.whole else ""
    install = f"python -m pip install --no-cache-dir --no-deps {hashes}-r /tmp/requirements.txt"
    yield f"RUN {pip}\\\n    {install}"
    yield from _surroundings(report)


def _surroundings(report: LockReport) -> Iterator[str]:
    if report.driver is not None:
        yield f"# {escape(report.driver)}"
    for name in sorted(report.variables or {}):
        value = (report.variables or {})[name]
        yield f"# here {escape(f'{name}={value}')} is set: it changes which files are loaded"
