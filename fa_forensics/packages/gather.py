"""All that is to be known of one package, and what lies among the packages and is none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from fa_forensics.facts.conda import CondaPackage
from fa_forensics.facts.dependents import cuda_extensions
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.files import absolute
from fa_forensics.facts.installed import Installed, unowned
from fa_forensics.facts.module_copies import (
    NAMESPACE,
    PACKAGE,
    Copy,
    copies_of,
    extension_suffixes,
)
from fa_forensics.facts.package import Distribution, editable_mapping, origin_url
from fa_forensics.facts.package_state import PackageState, Stray, extra_files
from fa_forensics.facts.record import RecordCheck, check_files
from fa_forensics.facts.site_dirs import OF_BASE, OF_PREFIX, OF_USER
from fa_forensics.facts.targets import shared_objects_below, uses_torch_or_cuda
from fa_forensics.facts.wheel_tags import TagHost, misfit
from fa_forensics.rules.remedy import module_names, package_names, row_of


def package_state(
    item: Installed,
    installed: Sequence[Installed],
    conda: Sequence[CondaPackage],
    environment: Environment,
    hashes: bool,
    listed: Mapping[str, set[str]],
) -> PackageState:
    """Everything about one project, whose metadata that counts is ``item``.

    ``hashes`` has every file read that its RECORD lists; ``listed`` are the paths that all
    RECORDs of its directory list, by their first part.
    """
    distribution = item.distribution
    assert distribution is not None
    mine = [i.distribution for i in installed if i.name == item.name and i.site == item.site]
    found = (cuda_extensions(d, environment.site_dirs) for d in mine if d is not None)
    extensions = tuple(sorted({path for paths in found for path in paths}))
    tops = frozenset(n for i in installed if (i.name, i.site) == (item.name, item.site)
                     for n in i.top_names)  # fmt: skip
    names = _import_names(item, tops, extensions)
    names += [name for name in _source_names(item, distribution) if name not in names]
    suffixes = extension_suffixes(environment)
    copies = tuple(
        copies_of(name, environment.site_dirs, environment.site_origins, suffixes) for name in names
    )
    folders = [name for name in names if os.path.isdir(os.path.join(item.site, name))]
    row = row_of(item.name)
    hip = environment.torch is not None and environment.torch.hip is not None
    if not extensions and item.record is None:
        extensions = _found_on_path(copies)
    return PackageState(
        name=distribution.name,
        installed=tuple(other for other in installed if other.name == item.name),
        copies=copies,
        extensions=extensions,
        check=(check := _check(item, hashes)),
        leftovers=extra_files(folders, item.site, listed) if check is not None else (),
        expects_extension=bool(row and row["modules"]) and not hip and not distribution.editable,
        tags_misfit=_misfit(distribution, environment),
        conda=next((package for package in conda if package.project == item.name), None),
        source_gone=_lost_source(distribution, names),
        in_current_directory=_here(names, copies),
        python=environment.python,
    )


def torch_state(
    installed: Sequence[Installed], environment: Environment, hashes: bool
) -> PackageState | None:
    """torch itself: whole or not, and which copy wins; None where no metadata names it.

    Its thousands of sources are not read, and its directory is not searched for more.
    """
    mine = tuple(item for item in installed if item.name == "torch")
    first = next((item for item in mine if item.distribution is not None), None)
    if first is None or first.distribution is None:
        return None
    sites, origins = environment.site_dirs, environment.site_origins
    check = None
    if first.record is not None and first.repackaged_by is None:
        check = check_files(first.record, everything=hashes)
    return PackageState(
        name=first.distribution.name,
        installed=(first, *(item for item in mine if item is not first)),
        copies=(copies_of("torch", sites, origins, extension_suffixes(environment)),),
        extensions=(),
        check=check,
        tags_misfit=_misfit(first.distribution, environment),
        source_gone=_lost_source(first.distribution, ["torch"]),
        python=environment.python,
    )


def imported_extensions(state: PackageState) -> list[str]:
    """The extension files of the copies that are imported, which need not be the recorded ones."""
    losing = [c.path for copies in state.copies for c in copies[1:] if c.kind != NAMESPACE]
    reached = [
        path
        for path in state.extensions
        if not any(path == place or path.startswith(place + os.sep) for place in losing)
    ]
    site = state.installed[0].site
    for copies in state.copies:
        winner = copies[0] if copies else None
        if winner is None or winner.path.startswith(site + os.sep):
            continue
        files = [winner.path]
        if winner.kind == PACKAGE:
            files = shared_objects_below(winner.path)[0]
        reached += [f for f in files if f.endswith(".so") and uses_torch_or_cuda(f, True)]
    return sorted(set(reached))


def _import_names(item: Installed, tops: frozenset[str], extensions: Sequence[str]) -> list[str]:
    """The names to look for on sys.path: the package's own and its extension modules'."""
    own = item.name.replace("-", "_")
    row = row_of(item.name)
    names = {own, *([str(row["import"]).partition(".")[0]] if row else [])} & tops
    for path in extensions:
        relative = os.path.relpath(path, item.site)
        names.add(relative.split(os.sep)[0].split(".")[0])
    names = {name for name in names if name.isidentifier()}
    return sorted(names, key=lambda name: (name != own, name))


def _source_names(item: Installed, distribution: Distribution) -> list[str]:
    """The names to look for where the RECORD lists no code: editable and legacy installs.

    Those of the table of packages, those that an editable install's finder maps into its
    source tree, and the extension modules that were built into that tree.
    """
    if item.record is not None and not distribution.editable:
        return []
    row = row_of(item.name)
    names = {item.name.replace("-", "_")}
    if row:
        names |= {str(row["import"]).partition(".")[0], *map(str, row["modules"])}  # type: ignore[call-overload]
    source = _direct_path(distribution)
    if source is not None:
        mapping = editable_mapping(item.site)
        names |= {name for name, path in mapping.items() if path.startswith(source + os.sep)}
        try:
            built = os.listdir(source)
        except OSError:
            built = []  # that it is gone has a line of its own
        names |= {file.partition(".")[0] for file in built if file.endswith(".so")}
    return sorted(name for name in names if name.isidentifier())


def _found_on_path(copies: Sequence[Sequence[Copy]]) -> tuple[str, ...]:
    """The extension files of the copies that are imported, where no RECORD lists any."""
    found: set[str] = set()
    for winner in (several[0] for several in copies if several):
        files = shared_objects_below(winner.path)[0] if winner.kind == PACKAGE else [winner.path]
        found |= {f for f in files if f.endswith(".so") and uses_torch_or_cuda(f, True)}
    return tuple(sorted(found))


def _check(item: Installed, hashes: bool) -> RecordCheck | None:
    if item.record is None or item.repackaged_by is not None:
        return None
    return check_files(item.record, sources=True, everything=hashes)


def tag_host(environment: Environment) -> TagHost:
    """The interpreter as wheel tags are held against; no glibc version is asked of it."""
    return TagHost(
        environment.version_short,
        environment.abiflags,
        environment.implementation,
        environment.machine,
        environment.libc,
        None,
    )


def _misfit(distribution: Distribution, environment: Environment) -> str | None:
    """Why none of a wheel's tags is for this interpreter, None if one is or none is known."""
    host = tag_host(environment)
    reasons = []
    for tag in distribution.wheel_tags:
        parts = [tuple(part.split(".")) for part in tag.split("-")]
        if len(parts) != 3:
            continue
        reason = misfit(host, *parts)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _lost_source(distribution: Distribution, names: Sequence[str]) -> str | None:
    """The directory that an editable install points to, if it does not exist."""
    if not distribution.editable:
        return None
    site = os.path.dirname(os.path.dirname(distribution.metadata_path))
    mapping = editable_mapping(site)
    for name in names or [distribution.name.replace("-", "_")]:
        target = mapping.get(name)
        if target is not None and not os.path.lexists(target):
            return target
    source = _direct_path(distribution)
    return source if source is not None and not os.path.isdir(source) else None


def _direct_path(distribution: Distribution) -> str | None:
    """The local directory of direct_url.json."""
    url = origin_url(distribution)
    if url is None or not url.startswith("file://"):
        return None
    return unquote(url.removeprefix("file://"))


def _here(names: Sequence[str], copies: Sequence[Sequence[Copy]]) -> str | None:
    """A package of one of the names in the current directory that is not the installed one."""
    for name, found in zip(names, copies, strict=True):
        place = absolute(name)
        if not os.path.isfile(os.path.join(place, "__init__.py")):
            continue
        if os.path.realpath(place) not in {os.path.realpath(copy.path) for copy in found}:
            return place
    return None


def strays(
    installed: Sequence[Installed], states: Sequence[PackageState], environment: Environment
) -> list[Stray]:
    """Packages and modules among the packages that no metadata owns and that use torch or CUDA.

    In directories that PYTHONPATH or a .pth file adds only names of the table of packages are
    looked for: these can be anybody's source tree, and nothing is wrong with one.
    """
    known, modules = set(package_names()), set(module_names())
    found = []
    mapped = {
        os.path.realpath(path)
        for site in environment.site_dirs
        for path in editable_mapping(site).values()
    }
    claimed = {os.path.realpath(c.path) for s in states for copies in s.copies for c in copies}
    torch = environment.torch.path if environment.torch else None
    for site, origin in zip(environment.site_dirs, environment.site_origins, strict=False):
        for path in unowned(site, installed):
            name = os.path.basename(path).split(".")[0]
            if path == torch or os.path.realpath(path) in mapped | claimed:
                continue
            installs = origin in (OF_PREFIX, OF_BASE, OF_USER)
            if not installs and name not in known | modules:
                continue
            files = shared_objects_below(path)[0] if os.path.isdir(path) else [path]
            files = [f for f in files if uses_torch_or_cuda(f, name in known | modules)]
            if files or name in known:
                where = "" if installs else origin
                found.append(_stray(path, site, files, where, environment))
    return found


def _stray(
    path: str, site: str, files: Sequence[str], origin: str, environment: Environment
) -> Stray:
    """With the files to inspect: those of a module that this interpreter never takes are none."""
    base = os.path.basename(path)
    suffix = base[len(base.split(".")[0]) :]
    importable = os.path.isdir(path) or suffix in extension_suffixes(environment)
    return Stray(path, site, tuple(files) if importable else (), origin, importable)
