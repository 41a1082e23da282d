"""``env --lock``: what would build this environment again, from its files alone.

Hashes are those of the archives that were installed: pip's own record of an address, pip's cache,
or an index that the user names. Where none is known, that is said.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from fa_forensics import __version__
from fa_forensics.errors import UnreadableFile
from fa_forensics.facts.conda_packages import CondaPackage, read_conda
from fa_forensics.facts.drivers import driver_needed, driver_table, parse_cuda
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.installed import read_installed
from fa_forensics.facts.package import Distribution, normalized
from fa_forensics.facts.pip_cache import CachedWheels, cache_directory, read_cache, sha256_of
from fa_forensics.facts.remote import ServerRefused
from fa_forensics.facts.simple_index import NoIndexPage, project_files, wheel_of
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.wheel_matrix import PACKAGE, PRE_CXX11, Wanted, candidates
from fa_forensics.report_lock import (
    ADDRESS,
    CONDA,
    INDEX,
    LOCAL,
    REPOSITORY,
    SYSTEM,
    CondaPin,
    LockReport,
    Pin,
)
from fa_forensics.views import environment_view

#: PEP 508 and PEP 440, loosely: nothing else goes into a line that pip reads.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,200}")
_URL = re.compile(r"[!-~]{1,2000}")

#: Variables that change which files are loaded: part of what is to be reproduced.
_LOADING = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_HOME")


def lock(
    python: str | None = None,
    environ: Mapping[str, str] | None = None,
    index: str | None = None,
) -> LockReport:
    """Every distribution of an environment as a requirement.

    ``index`` is the address of a simple index to ask for hashes; None asks nobody. Raises
    ``EnvironmentNotFound``; ``UsageError`` for an address that is none.
    """
    variables = os.environ if environ is None else environ
    environment = find_environment(python, None, variables)
    found, notes = _distributions(environment)
    wanted = frozenset((normalized(d.name), d.version) for d in found)
    cached = read_cache(cache_directory(variables), wanted)
    pins = [_pin(distribution, environment, cached) for distribution in found]
    if index is not None:
        try:
            pins = [_asked(pin, found[at], index) for at, pin in enumerate(pins)]
        except UnreadableFile as error:  # one that does not answer is not asked thirty times
            notes.append(f"the index was not asked for all: {error.message}")
    elif cached.problem is not None and any(p.source == INDEX and not p.hashes for p in pins):
        notes.append(cached.problem)
    packages, problems = read_conda(environment.prefix)
    pip = next((d.version for d in found if normalized(d.name) == "pip"), None)
    return LockReport(
        tool_version=__version__,
        environment=environment_view(environment),
        name=os.path.basename(environment.prefix.rstrip("/")) or "environment",
        python=environment.version,
        pip=pip,
        pins=tuple(pin for pin in pins if pin.name != "pip"),
        conda=tuple(CondaPin(*package) for package in packages),
        channels=_channels(packages),
        image=_image(environment),
        driver=_driver(environment),
        variables={name: variables[name] for name in _LOADING if variables.get(name)},
        notes=(*notes, *problems, *_torch_notes(environment)),
    )


def _distributions(environment: Environment) -> tuple[list[Distribution], list[str]]:
    """The distributions that an import finds, torch first; and what could not be read."""
    seen: dict[str, Distribution] = {}
    notes = []
    for row in read_installed(environment.site_dirs):
        if row.distribution is None or not row.distribution.version:
            if row.problem is not None:
                notes.append(f"not pinned: {row.problem}")
        else:
            seen.setdefault(row.name, row.distribution)
    order = sorted(seen, key=lambda name: (name != "torch", name))
    return [seen[name] for name in order], notes


def _pin(distribution: Distribution, environment: Environment, cached: CachedWheels) -> Pin:
    name, version = distribution.name, distribution.version
    pin = Pin(normalized(name), version, INDEX, f"{normalized(name)}=={version}")
    if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version)):
        return replace(pin, line=None, notes=("its metadata has no legal name and version",))
    installer = (distribution.installer or "").lower()
    if installer == "conda":
        return replace(pin, source=CONDA, line=None)
    if distribution.direct_url:
        return _of_record(pin, distribution.direct_url)
    if installer in ("debian", "rpm"):
        told = f"the operating system installed it ({installer}), maybe with changes of its own"
        return replace(pin, source=SYSTEM, notes=(told,))
    if distribution.metadata_path.endswith((".egg-info", ".egg-link")) or (
        ".egg-info" + os.sep in distribution.metadata_path
    ):
        pin = replace(pin, notes=("it was installed by setup.py, not by pip",))
    key = (pin.name, version)
    if key in cached.built:
        told = "pip built it here from source: a build elsewhere gives other bytes"
        pin = replace(pin, notes=(*pin.notes, told))
    else:
        pin = _with_cached_hash(pin, distribution, cached)
    if "+" in version:
        label = version.partition("+")[2]
        told = (
            f"+{label} is no build of the default index: pip needs the --extra-index-url it is on"
        )
        pin = replace(pin, notes=(*pin.notes, told))
    if pin.name == PACKAGE:
        pin = _with_official(pin, environment)
    return pin


def _with_cached_hash(pin: Pin, distribution: Distribution, cached: CachedWheels) -> Pin:
    archive = cached.archive_of((pin.name, pin.version), distribution.wheel_tags)
    if archive is None:
        return pin
    try:
        return replace(pin, hashes=(sha256_of(archive),), hash_source="pip's cache")
    except OSError as error:
        told = f"{archive} cannot be read: {error.strerror or error}"
        return replace(pin, notes=(*pin.notes, told))


def _with_official(pin: Pin, environment: Environment) -> Pin:
    """The official wheel that goes with this torch: where pip's record does not name one."""
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return pin
    flavour = torch.cxx11_abi
    minor = ".".join(torch.release.split(".")[:2])
    platform = f"linux_{environment.machine}"
    wanted = Wanted(minor, environment.version_short, torch.cuda, flavour, platform)
    public = pin.version.partition("+")[0]
    row = next((build for build in candidates(wanted) if build.release == public), None)
    if row is None:
        label = "FALSE" if flavour == PRE_CXX11 else "TRUE"
        told = f"no official wheel of {public} is for torch {minor}, cxx11abi{label}: built here"
        return replace(pin, notes=(*pin.notes, told))
    told = "whether it is the official wheel or a build made here is not recorded"
    return replace(pin, url=row.url, notes=(*pin.notes, told))


def _of_record(pin: Pin, text: str) -> Pin:
    """A requirement from pip's own record of where it was installed from (PEP 610)."""
    try:
        record = json.loads(text)
        url = str(record["url"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return replace(pin, notes=("its direct_url.json cannot be understood",))
    if not _URL.fullmatch(url):
        return replace(pin, line=None, notes=("its direct_url.json holds no legal address",))
    subdirectory = record.get("subdirectory")
    tail = (
        f"#subdirectory={subdirectory}"
        if isinstance(subdirectory, str) and _URL.fullmatch(subdirectory)
        else ""
    )
    vcs, archive = record.get("vcs_info"), record.get("archive_info")
    if isinstance(vcs, Mapping):
        return _of_repository(pin, url, vcs, tail)
    if urlsplit(url).scheme == "file" or not isinstance(archive, Mapping):
        path = url.removeprefix("file://")
        told = f"it was installed from {path} on this machine, which no other machine has"
        return replace(pin, source=LOCAL, line=None, url=url, notes=(told,),
                       **_hash_of(archive))  # type: ignore[arg-type]  # fmt: skip
    known = _hash_of(archive)
    line = f"{pin.name} @ {_public(url)}{tail}"
    return replace(pin, source=ADDRESS, line=line, url=_public(url), **known)  # type: ignore[arg-type]


def _of_repository(pin: Pin, url: str, vcs: Mapping[str, object], tail: str) -> Pin:
    commit, kind = str(vcs.get("commit_id", "")), str(vcs.get("vcs", "git"))
    if not (_VERSION.fullmatch(commit) and _NAME.fullmatch(kind)):
        commit = ""
    line = f"{pin.name} @ {kind}+{_public(url)}@{commit}{tail}" if commit else None
    told = "a commit names it, pip takes no hash for it" if commit else "no commit is recorded"
    return replace(pin, source=REPOSITORY, line=line, url=_public(url), notes=(told,))


def _hash_of(archive: object) -> dict[str, object]:
    """The hash that pip recorded of an archive: ``hashes``, and ``hash`` in older records."""
    if not isinstance(archive, Mapping):
        return {}
    hashes = archive.get("hashes")
    text = hashes.get("sha256") if isinstance(hashes, Mapping) else None
    old = str(archive.get("hash", ""))
    text = text or (old.removeprefix("sha256=") if old.startswith("sha256=") else None)
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{64}", text):
        return {"notes": ("pip recorded no hash of the archive",)}
    return {"hashes": (f"sha256:{text}",), "hash_source": "direct_url.json"}


def _public(url: str) -> str:
    """An address without a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _asked(pin: Pin, distribution: Distribution, index: str) -> Pin:
    """The same with the hash of an index, where no better one is known."""
    if pin.hashes or pin.source != INDEX:
        return pin
    try:
        files = project_files(index, pin.name)
    except (ServerRefused, NoIndexPage) as error:
        return replace(pin, notes=(*pin.notes, error.message))
    file, why = wheel_of(files, pin.version, distribution.wheel_tags)
    if file is None:
        return replace(pin, notes=(*pin.notes, why))
    return replace(pin, url=file.url, hashes=(f"sha256:{file.sha256}",), hash_source="the index")


def _channels(packages: tuple[CondaPackage, ...]) -> tuple[str, ...]:
    """The channels by how many packages they gave."""
    names = [package.channel for package in packages if package.channel not in ("", "pypi")]
    return tuple(sorted(set(names), key=lambda name: (-names.count(name), name)))


def _image(environment: Environment) -> str | None:
    """An image with this Python whose glibc is no older than the one here."""
    here = re.fullmatch(r"glibc (\d+)\.(\d+)", _libc())
    if environment.libc != "glibc" or here is None or environment.implementation != "cpython":
        return None
    if environment.abiflags or environment.version.count(".") < 2:
        return None
    rows = read_table("base_images.json")["rows"]
    for row in rows:
        if tuple(map(int, row["glibc"].split("."))) >= (int(here[1]), int(here[2])):
            return str(row["image"]).format(python=environment.version)
    return None


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _driver(environment: Environment) -> str | None:
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return None
    cuda = parse_cuda(torch.cuda)
    floor = driver_table().floors.get(cuda[0])
    least = f"a driver {floor} or newer" if floor else driver_needed(cuda)
    return f"GPUs come from the host: it needs {least} for CUDA {torch.cuda}"


def _torch_notes(environment: Environment) -> tuple[str, ...]:
    torch = environment.torch
    if torch is None:
        return (environment.torch_problem,) if environment.torch_problem else ()
    if torch.editable:
        return (f"torch in {torch.path} is a build of its own: its source tree is what it is",)
    return ()
