"""One torch wheel on the package index made into a record: what its libraries export.

A record is the builder's intermediate, one xz-packed JSON file a build; ``compile.py`` makes
the shipped tables from it. Its ``libraries`` hold, for each of torch's own libraries, the
names that ``nm -D --defined-only`` lists, by bind.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from fa_forensics.atlas.build.index import (
    NoSuchWheel,
    RemoteWheel,
    WheelFile,
    choose_wheel,
    list_wheels,
    open_wheel,
    version_key,
)
from fa_forensics.atlas.build.pins import nvidia_pins, requires_dist
from fa_forensics.atlas.build.records import FORMAT, Record, store_record
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import (
    BIND_NAMES,
    SHN_UNDEF,
    STB_LOCAL,
    STV_HIDDEN,
    STV_INTERNAL,
    DynamicObject,
)
from fa_forensics.facts.torch_install import flavour_of

#: The oldest release of the atlas. Older ones know neither today's c10 nor its CUDA wheels.
OLDEST = "1.12.0"
MACHINES = ("x86_64", "aarch64")

#: torch's own libraries; what lies beside them (libgomp, cuDNN, ARM Compute) is not torch's.
OWN_LIBRARY = re.compile(
    r"torch/lib/(lib(?:c10|c10_\w+|torch|torch_\w+|shm|caffe2|caffe2_gpu|caffe2_nvrtc|nvfuser_codegen)\.so)$"
)
_PYBIND11 = re.compile(rb"__pybind11_internals_v[0-9]+_[!-~]{0,200}?__(?=\0)")

#: Told how many bytes (packed) of the wheel were read since the last call.
Progress = Callable[[int], None]


def published(machine: str, since: str = OLDEST) -> tuple[str, ...]:
    """Every torch release on the index from one on, oldest first. Raises IndexFailure."""
    oldest = version_key(since)
    versions = {wheel.version for wheel in _torch_wheels(machine)}
    final = (v for v in versions if re.fullmatch(r"[0-9]+(\.[0-9]+)+", v))
    return tuple(sorted((v for v in final if version_key(v) >= oldest), key=version_key))


def wheel_of(release: str, machine: str) -> WheelFile:
    """The wheel that stands for a release in the atlas. Raises NoSuchWheel, IndexFailure."""
    return choose_wheel(_torch_wheels(machine), release, machine)


def record_path(directory: str, release: str, machine: str) -> str:
    """Where the record of a build is kept."""
    return os.path.join(directory, f"{release}-{machine}.json.xz")


def write_record(
    directory: str, release: str, machine: str, progress: Progress | None = None
) -> str:
    """Read one build from the index and write its record; returns the path.

    The file appears whole or not at all. Raises IndexFailure, NoSuchWheel, ForensicsError
    for a wheel that is no torch build.
    """
    record = read_build(wheel_of(release, machine), release, machine, progress)
    return store_record(record_path(directory, release, machine), record)


def read_build(
    file: WheelFile, release: str, machine: str, progress: Progress | None = None
) -> Record:
    """The record of one torch wheel on the index. Raises IndexFailure, ForensicsError."""
    with open_wheel(file) as wheel, tempfile.TemporaryDirectory(prefix="atlas-") as scratch:
        members = {m[1]: m[0] for m in map(OWN_LIBRARY.match, wheel.names()) if m}
        if "libc10.so" not in members:
            raise ForensicsError(f"{file.filename} has no torch/lib/libc10.so")
        version = _version_py(wheel)
        requires = nvidia_pins(
            _metadata(wheel), machine, _python_of(file), _versions_of, _requires_of
        )
        libraries: dict[str, Any] = {}
        facts: dict[str, Any] = {"flavour": "unknown", "pybind11": None, "needed": set()}
        for name, member in sorted(members.items()):
            path = os.path.join(scratch, name)
            wheel.save(member, path, _packed(wheel, member, progress))
            libraries[name] = _read_library(name, path, facts)
            os.unlink(path)
    return {
        "format": FORMAT,
        "release": release,
        "machine": machine,
        "version": version["__version__"],
        "cuda": version.get("cuda"),
        "flavour": facts["flavour"],
        "date": _first_upload(release, machine),
        "wheel": file.filename,
        "pythons": _pythons(release, machine),
        "requires": requires,
        "needed": sorted(facts["needed"] - set(members)),
        "pybind11": facts["pybind11"],
        "gcc": facts.get("libtorch_cpu.so") or facts.get("libc10.so"),
        "libraries": libraries,
    }


def exported_names(library: DynamicObject) -> dict[str, list[str]]:
    """Bind ("global", "weak", "unique") to the sorted names that a library exports.

    Exported is what the loader may bind to: defined, not local, visibility default or
    protected.
    """
    found: dict[str, set[str]] = {"global": set(), "weak": set(), "unique": set()}
    for symbol in library.symbols():
        if symbol.shndx == SHN_UNDEF or symbol.bind == STB_LOCAL or not symbol.name:
            continue
        if symbol.visibility in (STV_HIDDEN, STV_INTERNAL) or symbol.bind not in BIND_NAMES:
            continue
        found[BIND_NAMES[symbol.bind]].add(symbol.name.decode("utf-8", "surrogateescape"))
    return {bind: sorted(names) for bind, names in found.items()}


def _read_library(name: str, path: str, facts: dict[str, Any]) -> dict[str, list[str]]:
    """The exports of one library; adds to ``facts`` what is told of the build as a whole."""
    library = DynamicObject.open(path)
    try:
        exports = exported_names(library)
        if library.problems:
            raise ForensicsError(f"{name} cannot be read whole: {library.problems[0]}")
        facts["needed"].update(library.needed)
        if name in ("libc10.so", "libtorch_cpu.so"):
            facts[name] = _compiler(library)
        if name == "libtorch_python.so":
            found = _PYBIND11.search(library.image.data)
            facts["pybind11"] = found[0].decode("ascii") if found else None
    finally:
        library.close()
    if name == "libc10.so":
        facts["flavour"] = flavour_of(path)[0]
    return exports


def _compiler(library: DynamicObject) -> str | None:
    """The newest compiler named in .comment: start files of an older one often lie beside it."""
    section = library.image.section(".comment")
    if section is None:
        return None
    raw = library.image.read(section.offset, min(section.size, 1 << 16))
    texts = [part.decode("utf-8", "backslashreplace") for part in raw.split(b"\0") if part]

    def release(text: str) -> tuple[bool, list[int]]:
        number = re.search(r"\) ([0-9]+(?:\.[0-9]+)+)", text)
        parts = number[1].split(".") if number else []
        return text.startswith("GCC:"), [int(part) for part in parts]

    return max(texts, key=release, default=None)


def _packed(wheel: RemoteWheel, member: str, progress: Progress | None) -> Progress | None:
    """Count unpacked bytes as the packed bytes they stand for."""
    if progress is None:
        return None
    tell, whole, packed = progress, max(1, wheel.size(member)), wheel.compressed_size(member)
    done = told = 0

    def count(unpacked: int) -> None:
        nonlocal done, told
        done += unpacked
        now = packed * done // whole
        tell(now - told)
        told = now

    return count


def _metadata(wheel: RemoteWheel) -> list[str]:
    name = next((n for n in wheel.names() if n.endswith(".dist-info/METADATA")), None)
    if name is None:
        raise ForensicsError(f"{wheel.file.filename} has no METADATA")
    return requires_dist(wheel.read(name).decode("utf-8", "replace"))


def _version_py(wheel: RemoteWheel) -> dict[str, str]:
    text = wheel.read("torch/version.py").decode("utf-8", "replace")
    assigned = re.findall(r"^(\w+)(?:\s*:[^=\n]*)?\s*=\s*(['\"])(.*?)\2", text, re.MULTILINE)
    found = {name: value for name, _quote, value in assigned}
    if "__version__" not in found:
        raise ForensicsError(f"torch/version.py of {wheel.file.filename} gives no version")
    return found


def _python_of(file: WheelFile) -> str:
    """The minor version of CPython a wheel is for: "3.11"."""
    tag = next((t for t in file.interpreters if re.fullmatch(r"cp3[0-9]+", t)), "cp311")
    return f"3.{tag[3:]}"


def _first_upload(release: str, machine: str) -> str | None:
    """The day a release was published: a wheel with a build tag may be from months later."""
    days = {wheel.date for wheel in _torch_wheels(machine) if wheel.version == release}
    return min((day for day in days if day is not None), default=None)


def _pythons(release: str, machine: str) -> list[str]:
    """The CPythons with a wheel of this release, oldest first; "3.13t" is a free-threaded one."""
    found = set()
    for wheel in _torch_wheels(machine):
        for tag in wheel.interpreters if wheel.version == release else ():
            if re.fullmatch(r"cp3[0-9]+", tag):
                threaded = any(abi.endswith("t") for abi in wheel.abis)
                found.add((int(tag[3:]), threaded))
    return [f"3.{minor}{'t' if threaded else ''}" for minor, threaded in sorted(found)]


@lru_cache(maxsize=4)
def _torch_wheels(machine: str) -> tuple[WheelFile, ...]:
    return list_wheels("torch", machine)


@lru_cache(maxsize=64)
def _versions_of(project: str) -> Sequence[str]:
    try:
        wheels = list_wheels(project)
    except NoSuchWheel:
        return ()  # then an exact pin counts as it is written
    return sorted({w.version for w in wheels if not w.yanked}, key=version_key)


@lru_cache(maxsize=64)
def _requires_of(project: str, version: str) -> Sequence[str]:
    wanted = version_key(version)  # torch asks for 13.0.3 where the index has 13.0.3.0
    wheels = [w for w in list_wheels(project) if version_key(w.version) == wanted]
    if not wheels:
        raise NoSuchWheel(f"the index has no wheel of {project} {version}")
    with open_wheel(wheels[-1]) as wheel:
        return _metadata(wheel)
