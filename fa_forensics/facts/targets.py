"""Which files an argument of the command line stands for.

A file, a directory, a wheel or the name of an installed package, in that order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fa_forensics.errors import ForensicsError, NotAnElfFile, UnreadableFile, UsageError
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import (
    Distribution,
    editable_mapping,
    info_directories,
    info_name,
    normalized,
    read_distribution,
    recorded_files,
)
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.facts.wheel import Wheel

#: Bounds on a directory: entries looked at, targets taken.
MAX_ENTRIES = 500_000
MAX_TARGETS = 2_000

_PYTHON_SUFFIX = re.compile(r"\.(?:cpython-\w+[\w-]*|abi3(?:t)?|pypy\d+-\w[\w-]*)\.so$")

#: Names that only an object built against torch, or a CUDA one, has in its .dynstr.
_TORCH_MARKS = (b"libc10", b"libtorch", b"N3c10", b"N2at6Tensor", b"aoti_torch_")
_CUDA_MARKS = (b"__cudaRegisterFatBinary", b"cudaLaunchKernel", b"cuModuleLoad")
_OTHER_PLACE = "name the environment that it is installed in: --python PATH"
_LOOKED_FOR = "shared objects (*.so) that are Python modules or use torch or CUDA"


@dataclass(frozen=True, slots=True)
class Target:
    """One file to look at.

    ``path`` can be opened now; ``member`` is its name inside a wheel, else None;
    ``display`` is what to call it in a report.
    """

    path: str
    member: str | None
    display: str


class Targets:
    """The files of one argument, in a fixed order; a context manager.

    ``wheel`` is set when the argument was one: its members lie in a temporary directory
    that leaving the context removes. ``package`` is set when it named a distribution.
    ``notes`` say what was left out and why.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        wheel: Wheel | None = None,
        package: Distribution | None = None,
        notes: Sequence[str] = (),
        scratch: str | None = None,
    ) -> None:
        self.targets = tuple(targets)
        self.wheel = wheel
        self.package = package
        self.notes = tuple(notes)
        self._scratch = scratch

    def __iter__(self) -> Iterator[Target]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def __enter__(self) -> Targets:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary directory, if there is one."""
        if self._scratch:
            import shutil

            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None


def find_targets(argument: str, environment_site_dirs: Sequence[str]) -> Targets:
    """The files that ``argument`` stands for; at least one.

    Raises ``UsageError`` (no such file or package, nothing to look at in it),
    ``UnreadableFile``, ``BrokenWheel`` and ``NotAnElfFile``, each with one sentence.
    """
    if not argument:
        raise UsageError("an empty argument names no file")
    if os.path.isdir(argument):
        return _in_directory(argument)
    if _is_there(argument):
        _check_readable(argument)
        if argument.endswith(".whl"):
            return _in_wheel(argument)
        return Targets([Target(argument, None, argument)])
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", argument):
        found = _installed(argument, environment_site_dirs)
        if found:
            return found
        similar = _nearest(argument, environment_site_dirs)
        raise UsageError(
            f"{argument} is no file or directory here, and no package of that name is installed "
            f"in {', '.join(environment_site_dirs) or 'this environment'}",
            f"{similar} If not, {_OTHER_PLACE}" if similar else _OTHER_PLACE,
        )
    raise UsageError(f"{argument} does not exist", _nearest(argument, environment_site_dirs))


def concerns(path: str) -> bool:
    """Whether a shared object is a Python module or uses torch or CUDA.

    True also for a file that cannot be read as ELF but has a Python module's name (a
    damaged extension is what is looked for), and for one that nobody may read: it is told.
    """
    module_name = bool(_PYTHON_SUFFIX.search(path))
    try:
        names = _linked_names(path)
    except ForensicsError:
        return module_name or not os.access(path, os.R_OK)
    if names is None:
        return True  # no section headers, another machine: the reader decides
    return module_name or b"\0PyInit_" in names or _marked(names)


def uses_torch_or_cuda(path: str, if_hidden: bool) -> bool:
    """Whether a shared object needs torch or CUDA, or holds GPU code.

    ``if_hidden`` is the answer for one whose names cannot be read.
    """
    try:
        names = _linked_names(path)
    except ForensicsError:
        return if_hidden
    return if_hidden if names is None else _marked(names)


def _linked_names(path: str) -> bytes | None:
    """The names a shared object is linked by, with a mark for GPU code; None if hidden.

    Raises ``ForensicsError`` when it cannot be read as ELF.
    """
    with ElfImage(path) as image:
        strings = image.section(".dynstr")
        if strings is None or not image.supported:
            return None
        names = image.read(strings.offset, min(strings.size, 1 << 26))
        if image.section(".nv_fatbin") or image.section("__nv_relfatbin"):
            return names + _CUDA_MARKS[0]
        return names


def _marked(names: bytes) -> bool:
    return any(mark in names for mark in (*_TORCH_MARKS, *_CUDA_MARKS))


def _is_there(path: str) -> bool:
    """Whether a path exists, a dead link included. Raises ``UnreadableFile`` if barred."""
    try:
        os.lstat(path)
    except PermissionError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except (OSError, ValueError):
        return False
    return True


def _check_readable(path: str) -> None:
    try:
        os.stat(path)
    except FileNotFoundError:
        raise UnreadableFile(
            f"{path} is a link to {os.path.realpath(path)}, which does not exist"
        ) from None
    except OSError as error:  # a loop of links, a directory that may not be entered
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    os.close(descriptor)


def _in_directory(directory: str) -> Targets:
    files, notes = shared_objects_below(directory)
    chosen = [path for path in files if concerns(path)]
    if not chosen:
        others = f"; {len(files)} other shared objects lie there" if files else ""
        raise UsageError(
            f"{directory} holds nothing to inspect: looked for {_LOOKED_FOR}{others}"
            + "".join(f"; {note}" for note in notes)
        )
    return Targets([Target(path, None, path) for path in chosen[:MAX_TARGETS]],
                   notes=notes + _too_many(len(chosen), directory))  # fmt: skip


def shared_objects_below(directory: str) -> tuple[list[str], list[str]]:
    """(files named *.so below a directory, sorted; notes). Each directory is seen once."""
    found: list[str] = []
    notes: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending, count = [directory], 0
    links: list[str] = []
    while pending or links:
        # Real directories first: which path a file gets must not hang on the listing order.
        current = pending.pop() if pending else links.pop()
        try:
            status = os.stat(current)
            if (status.st_dev, status.st_ino) in seen:
                continue  # links may make loops
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(current) as listing:
                entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
            for entry in entries:
                # A link that leads round is no directory: DirEntry's own methods raise there.
                if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
                    (links if entry.is_symlink() else pending).append(entry.path)
                elif entry.name.endswith(".so"):
                    if os.path.isfile(entry.path):
                        found.append(entry.path)
                    elif entry.is_symlink():
                        notes.append(f"{entry.path} is a link to a file that does not exist")
        except OSError as error:
            if current == directory:
                raise UnreadableFile(f"cannot list {directory}: {error.strerror}") from error
            notes.append(f"cannot list {current}: {error.strerror}")
            continue
        count += len(entries)
        if count > MAX_ENTRIES:
            notes.append(f"stopped after {MAX_ENTRIES:,} entries of {directory}")
            break
    return sorted(found), notes


def _too_many(count: int, place: str) -> list[str]:
    if count <= MAX_TARGETS:
        return []
    return [f"{place} holds {count:,} such files, only the first {MAX_TARGETS:,} were taken"]


def _in_wheel(path: str) -> Targets:
    from fa_forensics.facts.wheel import extract, open_wheel

    wheel = open_wheel(path)
    if not wheel.extensions:
        if wheel.foreign:
            tags = ", ".join(platform.tag for platform in wheel.platforms) or "another platform"
            raise NotAnElfFile(
                f"{path} is a wheel for {tags}: its libraries ({wheel.foreign[0]} …) are no ELF "
                "files, so no Linux Python can load them",
                "take the wheel whose name ends in linux_x86_64 or manylinux…_x86_64",
            )
        libraries = (
            f", only the libraries {wheel.shared_objects[0]} …" if (wheel.shared_objects) else ""
        )
        raise UsageError(f"{path} holds no extension (ELF file named *.so){libraries}")
    import shutil
    import tempfile

    scratch = tempfile.mkdtemp(prefix="fa-forensics-")
    try:
        paths = extract(wheel, scratch)
        chosen = [member for member in wheel.extensions if concerns(paths[member])]
        if not chosen:
            raise UsageError(
                f"{path} holds nothing to inspect: looked for {_LOOKED_FOR}; "
                f"{len(wheel.extensions)} other shared objects lie in it"
            )
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    targets = [Target(paths[member], member, f"{path}: {member}") for member in chosen]
    return Targets(
        targets[:MAX_TARGETS], wheel=wheel, notes=_too_many(len(targets), path), scratch=scratch
    )


def _installed(name: str, site_dirs: Sequence[str]) -> Targets | None:
    """The extensions of an installed distribution or module, None when there is none."""
    for site in site_dirs:
        for info in info_directories(site):
            if info_name(info) == normalized(name):
                distribution = read_distribution(info)
                if distribution:
                    return _of_distribution(name, distribution, info, site)
    for site in site_dirs:
        files = _module_files(site, name) or _editable_files(site, [name])
        if files:
            return _chosen(name, files, None, [])
    return None


def _of_distribution(name: str, package: Distribution, info: str, site: str) -> Targets:
    recorded = [path for path in recorded_files(package, ".so") if path.endswith(".so")]
    files = [path for path in recorded if os.path.exists(path)]
    notes = [f"{p} is listed in RECORD but is not there" for p in recorded if p not in files]
    if not files:
        tops = _top_levels(info) or [package.name.replace("-", "_")]
        files = _editable_files(site, tops)
        for top in tops if not files and package.record_path is None else ():
            files += _module_files(site, top)
    if not files:
        lost = f": {notes[0]}" if notes else ""
        raise UsageError(
            f"{package.name} {package.version} is installed in {os.path.dirname(info)} without "
            f"any compiled extension (*.so){lost}",
            f"python -m pip install --force-reinstall --no-deps {package.name}=={package.version}"
            if notes else None,
        )  # fmt: skip
    return _chosen(name, files, package, notes)


def _chosen(name: str, files: list[str], package: Distribution | None, notes: list[str]) -> Targets:
    chosen = [path for path in sorted(dict.fromkeys(files)) if concerns(path)]
    if not chosen:
        raise UsageError(
            f"the installed {name} holds nothing to inspect: looked for {_LOOKED_FOR}; "
            f"{len(files)} other shared objects belong to it"
        )
    return Targets([Target(path, None, path) for path in chosen[:MAX_TARGETS]],
                   package=package, notes=notes + _too_many(len(chosen), name))  # fmt: skip


def _module_files(site: str, name: str) -> list[str]:
    """Shared objects of an importable name: ``xformers``, ``xformers._C``, ``awq_ext``."""
    base = os.path.join(site, *name.replace("-", "_").split("."))
    if os.path.isdir(base):
        return shared_objects_below(base)[0]
    directory, stem = os.path.split(base)
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        os.path.join(directory, file)
        for file in names
        if file.endswith(".so") and file.split(".")[0] == stem
    ]


def _editable_files(site: str, tops: Sequence[str]) -> list[str]:
    """Shared objects of packages that an editable install maps to a source tree."""
    mapping = editable_mapping(site)
    files: list[str] = []
    for top in tops:
        place = mapping.get(top.replace("-", "_"))
        if place and os.path.isdir(place):
            files += shared_objects_below(place)[0]
        elif place and os.path.isfile(place) and place.endswith(".so"):
            files.append(place)
    return files


def _top_levels(info: str) -> list[str]:
    try:
        text = read_bounded(os.path.join(info, "top_level.txt"), 65_536)
    except OSError:
        return []
    return text.decode("utf-8", "replace").split()


def _nearest(argument: str, site_dirs: Sequence[str]) -> str | None:
    """A hint with the names most like one that does not exist, or None."""
    import difflib

    directory, name = os.path.split(argument)
    if directory and not os.path.isdir(directory):
        return f"{directory} does not exist either"
    try:
        names = os.listdir(directory or ".")
    except OSError:
        names = []
    if not directory:
        names += sorted({info_name(i) for site in site_dirs for i in info_directories(site)})
    for info in (i for site in site_dirs for i in info_directories(site) if not directory):
        if info_name(info) == normalized(name):
            return f"{info} is there, but no metadata can be read in it."
    similar = difflib.get_close_matches(name, dict.fromkeys(names), n=3)
    if not similar:
        return None
    return "did you mean " + " or ".join(os.path.join(directory, item) for item in similar) + "?"
