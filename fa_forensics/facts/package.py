"""Which installed distribution a file belongs to, and what its metadata asks for.

Reads the files of a ``*.dist-info`` (or ``*.egg-info``) directory directly: the standard
library's ``importlib.metadata`` costs 30 ms to import. Formats: packaging.python.org,
"Core metadata", "Recording installed projects" and "Binary distribution format".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from fa_forensics.facts.files import absolute, read_bounded
from fa_forensics.records import dataclass

#: No more than this is read of a metadata file or of a RECORD (bytes).
MAX_METADATA = 1 << 20
MAX_RECORD = 1 << 24

#: How many directories above a file are searched for the metadata of an unpacked wheel.
MAX_CLIMB = 8

_INFO_SUFFIXES = (".dist-info", ".egg-info")


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed (or unpacked) distribution.

    ``name`` is as the metadata writes it. ``wheel_tags`` are the tags of its WHEEL file,
    ``direct_url`` the text of direct_url.json, ``record_path`` None where none was written.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    requires_python: str | None
    wheel_tags: tuple[str, ...]
    installer: str | None
    direct_url: str | None
    metadata_path: str
    record_path: str | None

    @property
    def editable(self) -> bool:
        """Installed in development mode: its files lie in a source tree."""
        return bool(self.direct_url and re.search(r'"editable"\s*:\s*true', self.direct_url))


@dataclass(frozen=True, slots=True)
class BuildTags:
    """What a local version says a wheel was built for: a label, not a proof.

    For example ``2.5.8+cu122torch2.3cxx11abiFALSE``: cuda "12.2", torch "2.3", cxx11_abi
    False. A part that the version does not carry is None.
    """

    cuda: str | None
    torch: str | None
    cxx11_abi: bool | None
    rocm: str | None


def normalized(name: str) -> str:
    """A project's name in its normal form (PEP 503): ``flash_attn`` is ``flash-attn``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def headers(text: str, whole: bool = False) -> dict[str, tuple[str, ...]]:
    """The fields of a metadata file, keys in lower case, up to the first empty line.

    ``whole`` goes on past empty lines: some WHEEL files have one before their tags.
    """
    fields: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            if whole:
                continue
            break
        key, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            fields.setdefault(key.lower(), []).append(value.strip())
    return {key: tuple(values) for key, values in fields.items()}


def read_distribution(info: str) -> Distribution | None:
    """The distribution of one metadata directory (or .egg-info file), None if unreadable.

    ``info`` may also be any directory that holds a METADATA file.
    """
    metadata_path = info
    if os.path.isdir(info):
        places = [os.path.join(info, name) for name in ("METADATA", "PKG-INFO")]
        metadata_path = next((place for place in places if os.path.isfile(place)), "")
    text = _text(metadata_path)
    if text is None:
        return None
    fields = headers(text)
    requires = fields.get("requires-dist", ())
    if not requires:
        requires = _egg_requirements(_text(os.path.join(info, "requires.txt")) or "")
    stem = os.path.basename(info).rsplit(".", 1)[0].split("-")
    record = os.path.join(info, "RECORD")
    return Distribution(
        name=_first(fields, "name") or stem[0],
        version=_first(fields, "version") or (stem[1] if len(stem) > 1 else ""),
        requires=requires,
        requires_python=_first(fields, "requires-python"),
        wheel_tags=headers(_text(os.path.join(info, "WHEEL")) or "", whole=True).get("tag", ()),
        installer=(_text(os.path.join(info, "INSTALLER")) or "").strip() or None,
        direct_url=_text(os.path.join(info, "direct_url.json")),
        metadata_path=metadata_path,
        record_path=record if os.path.isfile(record) else None,
    )


def info_directories(directory: str) -> list[str]:
    """The paths of all metadata directories in a site directory, sorted."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    found = [name for name in names if name.endswith(_INFO_SUFFIXES)]
    # "setup.py install" makes an .egg directory and puts that on sys.path.
    if "EGG-INFO" in names:
        found.append("EGG-INFO")
    return [os.path.join(directory, name) for name in found]


def info_name(info: str) -> str:
    """The normalized project name that a metadata directory's own name carries."""
    name = os.path.basename(info)
    if name == "EGG-INFO":
        name = os.path.basename(os.path.dirname(info))
    return normalized(name.rsplit(".", 1)[0].split("-")[0])


def find_distribution(path: str, site_dirs: Sequence[str]) -> Distribution | None:
    """The distribution that installed the file ``path``, or None.

    Looks into the RECORD files of the site directory that holds the file; elsewhere into
    the metadata that an unpacked wheel has beside it.
    """
    whole = absolute(path)
    for file in dict.fromkeys((whole, os.path.realpath(whole))):
        for site in site_dirs:
            for root in dict.fromkeys((absolute(site), os.path.realpath(site))):
                if file.startswith(root + os.sep):
                    found = _owner_in(root, file[len(root) + 1 :])
                    if found:
                        return found
    return _unpacked_beside(whole)


def origin_url(distribution: Distribution) -> str | None:
    """The URL that a distribution was installed from, where its direct_url.json names one."""
    try:
        data = json.loads(distribution.direct_url or "{}")
    except (ValueError, RecursionError):
        return None
    url = data.get("url") if isinstance(data, dict) else None
    return url if isinstance(url, str) else None


def recorded_files(distribution: Distribution, part: str = "") -> list[str]:
    """The absolute paths that a distribution's RECORD lists; empty without a RECORD.

    ``part`` takes only those whose name has it: ".so" is quicker than all.
    """
    if distribution.record_path is None:
        return []
    root = os.path.dirname(os.path.dirname(distribution.record_path))
    paths = []
    for line in _bytes(distribution.record_path, MAX_RECORD).decode("utf-8", "replace").split("\n"):
        if part not in line:
            continue
        name = line[1:].partition('"')[0] if line.startswith('"') else line.partition(",")[0]
        if part in name and name:
            paths.append(os.path.normpath(os.path.join(root, name)))
    return paths


def editable_mapping(site_dir: str) -> dict[str, str]:
    """Top-level names of editable installs in a site directory → their source paths.

    Reads the MAPPING that setuptools writes into ``__editable___*_finder.py``.
    """
    mapping: dict[str, str] = {}
    try:
        names = os.listdir(site_dir)
    except OSError:
        return mapping
    for name in sorted(names):
        if name.startswith("__editable__") and name.endswith("_finder.py"):
            text = _text(os.path.join(site_dir, name)) or ""
            start = re.search(r"^MAPPING\b[^=\n]*=\s*\{", text, re.MULTILINE)
            pairs = text[start.end() :].partition("}")[0] if start else ""
            for pair in re.finditer(r"'([^']+)':\s*'([^']+)'", pairs):
                mapping.setdefault(pair.group(1), pair.group(2))
    return mapping


def torch_requirement(requires: Sequence[str]) -> str | None:
    """The version specifiers that the metadata puts on torch, "" for any, None for no torch.

    Requirements that belong to an extra are left aside: nobody is held to them.
    """
    for requirement in requires:
        text, _, marker = requirement.partition(";")
        found = re.fullmatch(
            r"torch\s*(?:\[[^\]]*\])?\s*(?:@.*|\(?\s*([<>=!~][^)]*)\)?)?",
            " ".join(text.split()),  # long runs of blanks would be tried in every division
            re.IGNORECASE,
        )
        if found and not re.search(r"\bextra\b", marker):
            return re.sub(r"\s+", "", found.group(1) or "")
    return None


def torch_pin(requires: Sequence[str]) -> str | None:
    """The one torch version that the metadata asks for ("2.1.2"), or None without a pin."""
    for specifier in (torch_requirement(requires) or "").split(","):
        pinned = re.fullmatch(r"={2,3}([^*,]+)", specifier)
        if pinned:
            return pinned.group(1)
    return None


def satisfies(release: str, specifiers: str) -> bool | None:
    """Whether a release ("2.4.0") meets specifiers (">=2.5.1,<3"); None when that is unclear.

    Only plain releases are compared, by the rules of PEP 440; anything else is unclear.
    """
    if re.search(r"\d{10}", release + specifiers):
        return None  # no release number; int() refuses thousands of digits
    have = tuple(int(part) for part in release.split(".") if re.fullmatch(r"[0-9]+", part))
    for specifier in specifiers.split(","):
        found = re.fullmatch(r"(~=|==|!=|>=|<=|>|<)(\d+(?:\.\d+)*)(\.\*)?", specifier.strip())
        if found is None:
            return None
        operator, text, star = found.groups()
        want = tuple(int(part) for part in text.split("."))
        size = max(len(have), len(want))
        mine = have + (0,) * (size - len(have))
        theirs = want + (0,) * (size - len(want))
        same = mine[: len(want)] == want if star else mine == theirs
        met = {
            "==": same,
            "!=": not same,
            ">=": mine >= theirs,
            "<=": mine <= theirs,
            ">": mine > theirs,
            "<": mine < theirs,
            "~=": mine >= theirs and mine[: len(want) - 1] == want[:-1],
        }[operator]
        if not met:
            return False
    return True


def build_tags(version: str) -> BuildTags:
    """The labels in a version's local part; every part may be missing.

    Known spellings: ``+cu122torch2.3cxx11abiFALSE`` (flash-attn), ``+pt24cu121``,
    ``+torch260cu126`` (natten), ``+cu118`` and ``+rocm6.2`` (torch and many others).
    """
    local = version.partition("+")[2]
    cuda = re.search(r"(?<![a-z])cu(\d{2,3})(?!\d)|(?<=\d)cu(\d{2,3})(?!\d)", local)
    digits = (cuda.group(1) or cuda.group(2)) if cuda else ""
    torch = re.search(r"torch(\d+\.\d+(?:\.\d+)?)", local)
    joined = re.search(r"torch(\d)(\d{1,2})(\d)(?!\d|\.)", local)
    short = re.search(r"(?<![a-z])pt(\d)\.?(\d+)", local)
    found = joined or short
    flavour = re.search(r"cxx11abi(true|false)", local, re.IGNORECASE)
    rocm = re.search(r"rocm(\d+(?:\.\d+)*)", local)
    return BuildTags(
        cuda=(f"{digits[:2]}.{digits[2:]}" if len(digits) == 3 else digits) or None,
        torch=torch.group(1) if torch else (".".join(found.groups()) if found else None),
        cxx11_abi=flavour.group(1).lower() == "true" if flavour else None,
        rocm=rocm.group(1) if rocm else None,
    )


def _owner_in(site: str, relative: str) -> Distribution | None:
    """The distribution of ``site`` whose RECORD lists the file, likely ones asked first."""
    top = relative.split(os.sep)[0]
    wanted = normalized(top.split(".")[0])
    unrecorded = []
    for info in _likely_first(info_directories(site), top, wanted):
        listed = _records(info, relative)
        if listed:
            return read_distribution(info)
        if listed is None:
            unrecorded.append(info)
    for info in unrecorded:
        if _lists_top_level(info, top) or (
            info_name(info) == wanted and not os.path.isfile(os.path.join(info, "top_level.txt"))
        ):
            return read_distribution(info)
    return None


def _likely_first(infos: Sequence[str], top: str, wanted: str) -> Iterator[str]:
    """Metadata directories by how likely they own the file, as RECORDs are slow to search."""
    related = [info for info in infos if _related(info_name(info), wanted)]
    yield from related
    others = [info for info in infos if info not in related]
    named = [info for info in others if _lists_top_level(info, top)]
    yield from named
    yield from (info for info in others if info not in named)


def _records(info: str, relative: str) -> bool | None:
    """Whether a RECORD lists a path (relative to the site directory); None without one."""
    record = _bytes(os.path.join(info, "RECORD"), MAX_RECORD)
    if not record:
        return None
    name = os.fsencode(relative.replace(os.sep, "/"))
    if record.startswith(name + b","):
        return True
    return b"\n" + name + b"," in record or b'\n"' + name + b'",' in record


def _related(project: str, wanted: str) -> bool:
    return project == wanted or wanted.startswith(project) or project.startswith(wanted)


def _lists_top_level(info: str, top: str) -> bool:
    """Whether top_level.txt names the file's first part: a package, or a module's stem."""
    lines = (_text(os.path.join(info, "top_level.txt")) or "").split()
    return top in lines or top.split(".")[0] in lines


def _unpacked_beside(path: str) -> Distribution | None:
    """The metadata of an unpacked wheel: in the file's directory or one above it."""
    for directory in _climb(os.path.dirname(path)):
        infos = info_directories(directory)
        relative = os.path.relpath(path, directory)
        for info in infos:
            if _records(info, relative):
                return read_distribution(info)
        # A tree with one distribution in it and no RECORD: the file can only be its.
        if len(infos) == 1 and not os.path.isfile(os.path.join(infos[0], "RECORD")):
            return read_distribution(infos[0])
        if os.path.isfile(os.path.join(directory, "METADATA")):
            return read_distribution(directory)
    return None


def _climb(directory: str) -> Iterator[str]:
    for _step in range(MAX_CLIMB):
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def _egg_requirements(text: str) -> tuple[str, ...]:
    """The unconditional requirements of an egg's requires.txt (before its first section)."""
    lines = []
    for line in text.splitlines():
        if line.startswith("["):
            break
        if line.strip():
            lines.append(line.strip())
    return tuple(lines)


def _first(fields: Mapping[str, tuple[str, ...]], key: str) -> str | None:
    values = fields.get(key, ())
    return values[0] if values and values[0] else None


def _bytes(path: str, limit: int) -> bytes:
    """The start of a file, or nothing when it cannot be read."""
    try:
        return read_bounded(path, limit)
    except OSError:
        return b""


def _text(path: str) -> str | None:
    """The start of a text file, or None when it is not there."""
    try:
        return read_bounded(path, MAX_METADATA).decode("utf-8", "replace")
    except OSError:
        return None
