"""Rules on installed packages: what their metadata, their files and their copies say together."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence

from fa_forensics.facts.module_copies import EDITABLE, NAMESPACE, Copy
from fa_forensics.facts.package_state import PackageState
from fa_forensics.facts.site_dirs import BY_PYTHONPATH, OF_PREFIX, OF_USER
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.public_version import same_public
from fa_forensics.rules.remedy import row_of

PackageRule = Callable[[PackageState], Finding | None]


def is_half_installed(state: PackageState) -> Finding | None:
    """FA801: files that its RECORD lists are not there."""
    check = state.check
    if check is None or not (check.missing or check.dead_links):
        return None
    lost = (*check.missing, *check.dead_links)
    code = [path for path in lost if _is_code(path)]
    evidence = [Evidence("is not there", file=path) for path in check.missing]
    evidence += [
        Evidence("is a link to a file that does not exist", file=path) for path in check.dead_links
    ]
    count = f"{len(lost):,} of the {_files(check.sized + len(lost))}"
    return Finding(
        "FA801",
        "error" if code else "warning",
        "high",
        f"{state.name} {state.version} is half installed: {count} that its RECORD lists "
        f"{'is' if len(lost) == 1 else 'are'} not there",
        tuple(evidence),
        ("An installation was interrupted, or files were deleted by hand.",),
        (_reinstall(state),),
    )


def has_no_extension(state: PackageState) -> Finding | None:
    """FA802: a package that is of no use without compiled code is installed without any."""
    if not state.expects_extension or state.extensions or not state.installed:
        return None
    if state.check is not None and any(p.endswith(".so") for p in state.check.missing):
        return None  # it was installed with one, and has lost it
    return Finding(
        "FA802",
        "error",
        "high",
        f"{state.name} {state.version} is installed without any compiled extension (*.so)",
        (Evidence("lists no extension that uses torch or CUDA", file=state.installed[0].info),),
        (
            "It was installed from source with its CUDA build skipped, or the build failed and "
            "only the Python files were kept.",
        ),
        (_reinstall(state),),
    )


def is_edited(state: PackageState) -> Finding | None:
    """FA803: files differ from what was installed."""
    check = state.check
    if check is None or not (check.resized or check.altered or check.unreadable):
        return None
    evidence = [
        Evidence(f"is {found:,} bytes long, RECORD says {wanted:,}", file=path)
        for path, wanted, found in check.resized
    ]
    evidence += [Evidence("is not what its hash in RECORD says", file=p) for p in check.altered]
    evidence += [Evidence(f"cannot be read: {why}", file=path) for path, why in check.unreadable]
    notes = []
    changed = [path for path, _, _ in check.resized] + list(check.altered)
    if any(".so" in os.path.basename(path) for path in changed):
        notes.append(
            "Compiled code differs from the wheel's: it was built again in place, changed by a "
            "tool such as patchelf or strip, or another file was copied over it."
        )
    if not changed:
        return _unreadable(state, evidence, check.unreadable[0][0])
    data = state.extensions == () and not check.unreadable and not any(map(_is_code, changed))
    return Finding(
        "FA803",
        "note" if data else "warning",  # certificates, settings: changed on purpose
        "high",
        f"{_files(len(evidence))} of {state.name} {state.version} "
        f"{'is' if len(evidence) == 1 else 'are'} not as installed",
        tuple(evidence),
        tuple(notes),
        (_reinstall(state),),
    )


def _unreadable(state: PackageState, evidence: Sequence[Evidence], path: str) -> Finding:
    """FA803: files that this user cannot read, which Python could not either."""
    return Finding(
        "FA803",
        "warning",
        "high",
        f"{_files(len(evidence))} of {state.name} {state.version} cannot be read",
        tuple(evidence),
        ("Whoever installed them has to let this user read them.",),
        (f"ls -ld {shlex.quote(os.path.dirname(path))} {shlex.quote(path)}",),
    )


def _is_code(path: str) -> bool:
    return path.endswith((".py", ".so")) or ".so." in os.path.basename(path)


def has_leftovers(state: PackageState) -> Finding | None:
    """FA804: files in its directories that its installation did not bring."""
    objects = [path for path in state.leftovers if path.endswith(".so")]
    if not state.leftovers:
        return None
    return Finding(
        "FA804",
        "warning" if objects else "note",
        "high" if objects else "medium",
        f"{_files(len(state.leftovers))} in the directories of {state.name} {state.version} "
        f"{'was' if len(state.leftovers) == 1 else 'were'} not installed with it",
        tuple(
            Evidence("is in no RECORD", file=path)
            for path in sorted(state.leftovers, key=lambda path: not path.endswith(".so"))
        ),
        ("They are left from another version, were built in place or were added by hand.",),
        (_reinstall(state),) if objects else (),
    )


def is_shadowed(state: PackageState) -> Finding | None:
    """FA805: several copies of its modules lie on sys.path, and only the first counts."""
    several = [copies for copies in state.copies if len(_regular(copies)) > 1]
    if not several:
        return None
    winner, loser = _regular(several[0])[:2]
    evidence = []
    for copies in several:
        for at, copy in enumerate(_regular(copies)):
            word = "is imported" if at == 0 else "is never reached"
            evidence.append(Evidence(f"{word}: {_described(copy)}", file=copy.path))
    notes = [f"Python takes the first on sys.path: {_described(winner)}."]
    if winner.version and state.version and not same_public(winner.version, state.version):
        notes.append(f"pip shows {state.version}, `import` gives {winner.version}.")
    harmless = winner.origin == OF_PREFIX and loser.site != winner.site and len(notes) == 1
    return Finding(
        "FA805",
        "note" if harmless else "warning",
        "high",
        f"{len(_regular(several[0]))} copies of {winner.name} are on sys.path; the one in "
        f"{os.path.dirname(winner.path)} wins",
        tuple(evidence),
        tuple(notes),
        () if harmless else _unshadow(winner, loser, state),
    )


def has_two_metadata(state: PackageState) -> Finding | None:
    """FA806: one directory holds the metadata of two versions of a project."""
    by_site: dict[str, list[str]] = {}
    for item in state.installed:
        by_site.setdefault(item.site, []).append(item.info)
    double = next((infos for infos in by_site.values() if len(infos) > 1), None)
    if double is None:
        return None
    return Finding(
        "FA806",
        "warning",
        "high",
        f"{state.name} has {len(double)} metadata directories side by side: the files of one "
        "version were put over those of another",
        tuple(Evidence(_info_version(state, info), file=info) for info in double),
        (
            "Which version the files are of is not known to pip any more. It removes one version "
            "at a time: repeat the first command until nothing is left.",
        ),
        (f"{_pip(state)} uninstall -y {shlex.quote(state.name)}", _reinstall(state)),
    )


def _info_version(state: PackageState, info: str) -> str:
    item = next(item for item in state.installed if item.info == info)
    return f"says version {item.version}" if item.version else "names no readable version"


def is_of_another_version(state: PackageState) -> Finding | None:
    """FA807: the version in the metadata is not the one that its source assigns."""
    winner = state.winner
    if winner is None or not winner.version or not state.version:
        return None
    if same_public(winner.version, state.version):
        return None
    if len(_regular(_first(state))) > 1 or len(state.installed) > 1:
        return None  # of several copies FA805 says which one counts, of several metadata FA806
    return Finding(
        "FA807",
        "warning",
        "high",
        f"the metadata of {state.name} says version {state.version}, its source {winner.version}",
        (
            Evidence(f"says {state.version}", file=state.installed[0].info),
            Evidence(f"assigns {winner.version!r} to __version__", file=winner.version_file),
        ),
        ("What is imported is not what pip believes to be installed.",),
        (_reinstall(state),),
    )


def has_other_tags(state: PackageState) -> Finding | None:
    """FA808: its wheel's tags are for another interpreter or machine."""
    if state.tags_misfit is None:
        return None
    distribution = state.installed[0].distribution
    tags = ", ".join(distribution.wheel_tags) if distribution else ""
    return Finding(
        "FA808",
        "error",
        "high",
        f"{state.name} {state.version} was installed from a wheel for another Python or machine",
        (
            Evidence(f"has the tags {tags}", file=os.path.join(state.installed[0].info, "WHEEL")),
            Evidence(state.tags_misfit),
        ),
        ("It was unpacked or copied by hand, or by an interpreter of another version.",),
        (_reinstall(state),),
    )


def is_of_conda_and_pip(state: PackageState) -> Finding | None:
    """FA810: conda and pip both installed it into one environment."""
    conda, item = state.conda, state.installed[0] if state.installed else None
    if conda is None or item is None or item.distribution is None:
        return None
    if item.distribution.installer in (None, "conda"):
        return None
    return Finding(
        "FA810",
        "warning",
        "high",
        f"{state.name} was installed twice into one environment: {conda.version} by conda, "
        f"{state.version} by {item.distribution.installer}",
        (
            Evidence(f"says {conda.name} {conda.version} ({conda.build})", file=conda.path),
            Evidence(f"says {state.version}", file=item.info),
        ),
        ("The later one wrote over files of the earlier one, and conda does not know of it.",),
        (
            f"{_pip(state)} uninstall -y {shlex.quote(state.name)}",
            f"conda install --force-reinstall {shlex.quote(conda.name)}",
        ),
    )


def is_in_current_directory(state: PackageState) -> Finding | None:
    """FA811: a directory of the same name lies where Python would be started."""
    place = state.in_current_directory
    if place is None:
        return None
    return Finding(
        "FA811",
        "warning",
        "medium",
        f"a Python started in this directory imports {os.path.basename(place)} from here, not the "
        f"installed {state.name}",
        (Evidence("goes before all installed packages", file=place),),
        (
            "`python -c`, `python -m` and an interactive Python put the current directory first; "
            "a source tree usually lacks the compiled extension.",
        ),
        (f"cd {shlex.quote(os.path.dirname(os.path.dirname(place)) or '/')}",),
    )


def has_lost_its_source(state: PackageState) -> Finding | None:
    """FA815: the source tree of an editable install is gone."""
    if state.source_gone is None:
        return None
    return Finding(
        "FA815",
        "error",
        "high",
        f"{state.name} {state.version} is an editable install whose source tree is not there",
        (
            Evidence("does not exist", file=state.source_gone),
            Evidence("points to it", file=state.installed[0].info),
        ),
        (),
        (f"{_pip(state)} uninstall -y {shlex.quote(state.name)}",),
    )


#: In the order in which they stop an import.
PACKAGE_RULES: tuple[PackageRule, ...] = (
    has_lost_its_source,
    is_half_installed,
    has_no_extension,
    has_other_tags,
    has_two_metadata,
    is_shadowed,
    is_of_another_version,
    is_of_conda_and_pip,
    is_edited,
    has_leftovers,
    is_in_current_directory,
)


def package_findings(state: PackageState) -> list[Finding]:
    """What all rules say of one package."""
    return [finding for rule in PACKAGE_RULES if (finding := rule(state)) is not None]


def _first(state: PackageState) -> Sequence[Copy]:
    return next((copies for copies in state.copies if copies), ())


def _regular(copies: Sequence[Copy]) -> list[Copy]:
    """The copies that can shadow one another: a namespace package joins its parts."""
    return [copy for copy in copies if copy.kind != NAMESPACE]


def _described(copy: Copy) -> str:
    version = f"version {copy.version}, " if copy.version else ""
    return f"{version}{_origin(copy)}"


def _origin(copy: Copy) -> str:
    words = {
        "site-packages": "among this environment's packages",
        "base's site-packages": "among the base interpreter's packages",
        OF_USER: "among the user's own packages",
        BY_PYTHONPATH: "by PYTHONPATH",
        EDITABLE: "by an editable install",
    }
    if copy.origin.endswith(".pth"):
        return f"by {copy.origin}"
    return words.get(copy.origin, copy.origin or "on sys.path")


def _unshadow(winner: Copy, loser: Copy, state: PackageState) -> tuple[str, ...]:
    """The command that takes the winning copy out of the way, where one does."""
    if winner.origin == BY_PYTHONPATH:
        return ("unset PYTHONPATH",)
    if winner.origin == OF_USER:
        return ("export PYTHONNOUSERSITE=1",)
    if loser.origin == BY_PYTHONPATH:
        return ("unset PYTHONPATH",)
    return (f"{_pip(state)} uninstall -y {shlex.quote(state.name)}", _reinstall(state))


def _pip(state: PackageState) -> str:
    return f"{shlex.quote(state.python)} -m pip"


def _reinstall(state: PackageState) -> str:
    """The same version again, or of several the one that is imported."""
    winner = state.winner.version if state.winner is not None else None
    versions = [item.version for item in state.installed if item.version]
    same = [v for v in versions if winner is not None and same_public(v, winner)]
    version = (same or versions[-1:] or [""])[0].partition("+")[0]
    wanted = shlex.quote(f"{state.name}=={version}" if version else state.name)
    row = row_of(state.name)
    # Where pip has to build it, the build must see the torch that is here.
    builds = "--no-build-isolation " if row is not None and row["source_build"] else ""
    return f"{_pip(state)} install --force-reinstall --no-deps --no-cache-dir {builds}{wanted}"


def _files(number: int) -> str:
    return f"{number:,} file" if number == 1 else f"{number:,} files"
