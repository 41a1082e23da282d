"""What was gathered, in lines: one for each package and one for each thing that is wrong."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.installed import Installed, interrupted, unlisted
from fa_forensics.facts.package import normalized, origin_url
from fa_forensics.facts.package_state import PackageState, Stray
from fa_forensics.facts.record import RecordCheck, check_files
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, PACKAGE, WRONG, Line
from fa_forensics.rules.packages import package_findings


def package_lines(state: PackageState) -> list[Line]:
    """One line for each thing that is wrong with a package, or one that all is well."""
    findings = package_findings(state)
    lines = [
        Line(PACKAGE, state.name, NOTE if finding.severity == "note" else WRONG,
             finding.title, finding)
        for finding in findings
    ]  # fmt: skip
    first = state.installed[0]
    grave = any(finding.severity != "note" for finding in findings)
    details = _details(state)
    if grave:
        lines[0] = Line(
            PACKAGE, state.name, lines[0].state, lines[0].text, lines[0].finding, details,
            _facts(state),
        )  # fmt: skip
        return lines
    whole = _wholeness(state)
    text = f"{state.version}{_installer(first)}, {_where(state)}; {whole}"
    shown = OK if state.check is not None else NOTE
    return [Line(PACKAGE, state.name, shown, text, None, details, _facts(state)), *lines]


def _installer(item: Installed) -> str:
    distribution = item.distribution
    if distribution is None or distribution.installer is None:
        return ""
    kind = ", editable" if distribution.editable else ""
    return f" by {distribution.installer}{kind}"


def _where(state: PackageState) -> str:
    """Where its import comes from: its own directory."""
    winner = state.winner
    return winner.path if winner is not None else os.path.dirname(state.installed[0].info)


def _wholeness(state: PackageState) -> str:
    check = state.check
    if check is None:
        packager = state.installed[0].repackaged_by
        if packager is not None:
            return f"packaged by {packager}, which changes files after RECORD is written"
        return "without a RECORD, so its files could not be held against anything"
    text = f"{check.sized:,} {'file' if check.sized == 1 else 'files'} as installed"
    if state.winner is not None and state.winner.version:
        text += f", __version__ {state.winner.version}"
    return text


def _details(state: PackageState) -> tuple[str, ...]:
    details = []
    for copies in state.copies:
        for at, copy in enumerate(copies):
            word = "imports" if at == 0 else "not reached"
            version = f" {copy.version}" if copy.version else ""
            details.append(f"{copy.name}{version}: {word} {copy.path}")
    distribution = state.installed[0].distribution if state.installed else None
    if distribution is not None:
        if distribution.wheel_tags:
            details.append(f"wheel tags: {', '.join(distribution.wheel_tags)}")
        url = origin_url(distribution)
        if url is not None:
            details.append(f"installed from {url}")
    if state.check is not None and state.check.not_hashed:
        details.append(
            f"sizes compared of {state.check.sized} files, contents of {state.check.hashed}; "
            f"{state.check.not_hashed:,} bytes were not read (--hashes reads all)"
        )
    return tuple(details)


def _facts(state: PackageState) -> dict[str, object]:
    distribution = state.installed[0].distribution if state.installed else None
    winner = state.winner
    return {
        "name": normalized(state.name),
        "version": state.version,
        "source_version": None if winner is None else winner.version,
        "location": None if winner is None else winner.path,
        "origin": None if winner is None else winner.origin,
        "copies": [
            {"name": c.name, "path": c.path, "version": c.version, "origin": c.origin}
            for copies in state.copies
            for c in copies
        ],
        "installer": None if distribution is None else distribution.installer,
        "direct_url": None if distribution is None else origin_url(distribution),
        "editable": False if distribution is None else distribution.editable,
        "wheel_tags": [] if distribution is None else list(distribution.wheel_tags),
        "requires": [] if distribution is None else list(distribution.requires),
        "extensions": list(state.extensions),
        "files_compared": 0 if state.check is None else state.check.sized,
        "files_hashed": 0 if state.check is None else state.check.hashed,
        "bytes_not_hashed": 0 if state.check is None else state.check.not_hashed,
    }


def stray_line(stray: Stray) -> Line:
    """The line of a package or module that nobody owns."""
    name = os.path.basename(stray.path)
    facts: dict[str, object] = {"path": stray.path, "extensions": list(stray.extensions)}
    if stray.origin:
        text = f"comes from {stray.path} ({stray.origin}), which is no installed package"
        return Line(PACKAGE, name, NOTE, text, None, (), facts)
    if not stray.importable:
        finding = Finding(
            "FA804",
            "warning",
            "high",
            f"{name} is a module for another Python and belongs to no installed distribution",
            (Evidence("is in no RECORD, and never imported here", file=stray.path),),
            ("It is left from an installation by another Python.",),
            (f"rm -- {shlex.quote(stray.path)}",),
        )
        return Line(PACKAGE, name, WRONG, finding.title, finding, (), facts)
    finding = Finding(
        "FA816",
        "warning",
        "high",
        f"{name} lies among the packages and no installed distribution owns it",
        (Evidence("is in no RECORD", file=stray.path),),
        ("It was copied by hand or is left from an uninstall; pip cannot upgrade or remove it.",),
    )
    return Line(PACKAGE, name, WRONG, finding.title, finding, (), facts)


def other_lines(
    installed: Sequence[Installed], known: set[str], environment: Environment, hashes: bool
) -> list[Line]:
    """Broken metadata one by one; all other distributions in one line, the bad ones named."""
    lines = [_broken_line(item) for item in installed if item.problem is not None]
    lines += [_interrupted_line(path) for path in interrupted(environment.site_dirs)]
    others = [item for item in installed if item.name not in known and item.distribution]
    rest = [item for item in others if item.record is not None and item.repackaged_by is None]
    checks = [check_files(item.record, everything=hashes) for item in rest if item.record]
    for item, check in zip(rest, checks, strict=True):
        same = tuple(o for o in rest if (o.name, o.site) == (item.name, item.site))
        if check.whole and len(same) == 1:
            continue
        name = item.distribution.name if item.distribution else item.name
        double = same if same[0] is item else (item,)
        state = PackageState(name, double, (), (), check, python=environment.python)
        lines += [
            Line(
                PACKAGE, name, NOTE if finding.severity == "note" else WRONG, finding.title, finding
            )
            for finding in package_findings(state)
        ]
    return [*lines, _others_line(installed, others, checks)]


def _others_line(
    installed: Sequence[Installed], others: Sequence[Installed], checks: Sequence[RecordCheck]
) -> Line:
    """How many were held against their RECORDs, and how many could not be."""
    sized = sum(check.sized for check in checks)
    text = f"{len(checks)} other distributions, {sized:,} files of the recorded sizes"
    details = []
    not_hashed = sum(check.not_hashed for check in checks)
    if not_hashed:
        details.append(f"{not_hashed:,} bytes of them were not read (--hashes reads all)")
    damaged = sum(not check.whole for check in checks)
    if damaged:
        text = f"{len(checks)} other distributions, {sized:,} files compared, {damaged} damaged"
    bare = [item for item in others if item.record is None and item.repackaged_by is None]
    if bare:
        text += f"; {len(bare)} have no RECORD to compare them with"
        details += [f"no RECORD: {item.info}" for item in bare]
    repacked = {item.info: str(item.repackaged_by) for item in others if item.repackaged_by}
    if repacked:
        packagers = " and ".join(sorted(set(repacked.values())))
        text += f"; {len(repacked)} packaged by {packagers} were not compared"
    versions = {item.name: item.version for item in reversed(installed) if item.distribution}
    facts = {"versions": dict(sorted(versions.items())), "files_compared": sized}
    return Line(PACKAGE, "distributions", OK, text, None, tuple(details), facts)


def _broken_line(item: Installed) -> Line:
    finding = Finding(
        "FA809",
        "warning",
        "high",
        f"the metadata of {item.name} is broken: {item.problem}",
        (Evidence(item.problem or "", file=item.info),),
        ("pip cannot upgrade or uninstall a distribution whose metadata it cannot read.",),
    )
    facts = {"path": item.info}
    return Line(PACKAGE, item.name, COULD_NOT_LOOK, finding.title, finding, (), facts)


def _interrupted_line(path: str) -> Line:
    name = os.path.basename(path)
    finding = Finding(
        "FA804",
        "warning",
        "high",
        f"{name} is left from an uninstall by pip that did not end",
        (Evidence("was renamed to be removed", file=path),),
        ("pip warns of an invalid distribution because of it; nothing imports it.",),
        (f"rm -r -- {shlex.quote(path)}",),
    )
    return Line(PACKAGE, name, WRONG, finding.title, finding, (), {"path": path})


def path_lines(environment: Environment, conda_problem: str | None) -> list[Line]:
    """What of sys.path could not be looked at."""
    lines = [
        Line(PACKAGE, "sys.path", COULD_NOT_LOOK,
             f"{place.directory} cannot be listed: {place.reason}")
        for place in unlisted(environment.site_dirs)
    ]  # fmt: skip
    lines += [Line(PACKAGE, "sys.path", COULD_NOT_LOOK, note) for note in environment.notes]
    if conda_problem is not None:
        lines.append(Line(PACKAGE, "conda", COULD_NOT_LOOK, conda_problem))
    shown = [
        f"{directory} ({origin})"
        for directory, origin in zip(environment.site_dirs, environment.site_origins, strict=False)
    ]
    text = f"{len(shown)} directories of packages" if len(shown) != 1 else shown[0]
    facts = {
        "directories": [
            {"path": directory, "origin": origin}
            for directory, origin in zip(
                environment.site_dirs, environment.site_origins, strict=False
            )
        ]
    }
    if not shown:
        return [*lines, Line(PACKAGE, "sys.path", WRONG, "no directory of packages exists")]
    details = tuple(shown) if len(shown) > 1 else ()
    return [*lines, Line(PACKAGE, "sys.path", OK, text, None, details, facts)]
