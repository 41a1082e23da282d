"""Answers to ``libX.so.N: cannot open shared object file``: whose library it is decides."""

from __future__ import annotations

import re
import shlex

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.owner import is_rocm, is_torch, owner_of_library, title_of
from fa_forensics.facts.system_names import debian_package
from fa_forensics.report_why import Answer
from fa_forensics.why.commands import needed_libraries
from fa_forensics.why.history import order_key
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.import_first import not_whole, torch_library

KIND, CODE = "missing-library", "FA202"

#: auditwheel's own copies carry a part of the file's hash in their names.
_HASHED = re.compile(r"lib[\w+.]+-[0-9a-f]{8}\.so")
_PYTHON_LIBRARY = re.compile(r"libpython(3\.\d{1,2})m?\.so")
_DRIVER = ("cuda-driver", "nvml")


def missing_library(seen: Seen) -> Answer:
    """A library that the loader does not find."""
    path = seen.mention.library or ""
    soname = path.rsplit("/", 1)[-1]
    owner = owner_of_library(soname)
    if not soname:
        return _nameless(seen)
    if owner is not None and is_torch(owner):
        return torch_library(seen, path, soname)
    if "/torch/lib/" in path and _HASHED.match(soname):
        return not_whole(seen, path)
    if owner in _DRIVER:
        return _driver(seen, soname, owner)
    if owner is not None and is_rocm(owner):
        return _rocm(seen, soname, owner)
    python = _PYTHON_LIBRARY.match(soname)
    if python is not None:
        return _python(seen, soname, python[1])
    if cuda_major_of_soname(seen, soname) is not None or _is_cuda(seen, soname):
        return cuda_library(seen, soname, owner)
    return _other(seen, soname, owner)


def _is_cuda(seen: Seen, soname: str) -> bool:
    table = seen.tables.libraries
    return table is not None and soname in table.sonames()


def cuda_major_of_soname(seen: Seen, soname: str) -> str | None:
    """The one CUDA major version whose wheels carry a soname ("12"); None for several or none."""
    from fa_forensics.rules.groups import cuda_major_of

    own = cuda_major_of(soname)
    if own is not None:
        return own
    table = seen.tables.libraries
    if table is None:
        return None
    majors = {_major_of(row.distribution) for row in table.releases(soname)}
    return majors.pop() if len(majors) == 1 else None


def _major_of(distribution: str) -> str:
    found = re.search(r"-cu(\d{2})$", distribution)
    return found[1] if found else "13"


def cuda_library(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of the CUDA toolkit: its major version against that of torch."""
    major = cuda_major_of_soname(seen, soname)
    if _torch_itself(seen):
        return _of_torch_itself(seen, soname, owner, major)
    torch_cuda = seen.torch_cuda
    own = torch_cuda.split(".")[0] if torch_cuda else None
    if major is not None and own is not None and own != major:
        return _other_major(seen, soname, owner, major, torch_cuda or "")
    if seen.torch is not None and "+cpu" in seen.torch:
        return _cpu_torch(seen, soname, owner)
    bringing = torches_bringing(seen, soname)
    present = seen.place.present
    if bringing and present is not None and present.release in _known(seen):
        if present.release not in bringing:
            return _other_torches(seen, soname, owner, bringing)
        if major is None:
            return _same_major(seen, soname, owner, (torch_cuda or "12").split(".")[0])
    if major is None or own is None:
        return _major_alone(seen, soname, owner, major, bringing)
    return _same_major(seen, soname, owner, major)


#: torch's own file, from which it loads its libraries, in a traceback's steps.
_TORCH_INIT = re.compile(r"(?:^|/)torch/__init__\.py$")


def _torch_itself(seen: Seen) -> bool:
    """Whether it is torch's own import that failed, before any extension's."""
    detail = seen.mention.detail
    if _TORCH_INIT.search(detail.get("frame", "")) or detail.get("import") in ("torch", "torch._C"):
        return True
    return "/torch/lib/" in (seen.mention.file or "")


def _of_torch_itself(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer:
    """torch does not find a library of CUDA that it needs itself."""
    wheel = wheel_of(seen, soname, major or (seen.torch_cuda or "12").split(".")[0])
    bringing = wheel or "a wheel of its own"
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part. "
        f"A torch from PyPI gets it from {bringing}, which is not installed whole; a torch that "
        "was built for a system (Jetson, NGC, a distribution) takes it from that system's CUDA "
        "toolkit, in the version it was built with, or has it handed into the container."
    )
    helps = [f"{seen.pip} list | grep -iE '^(torch|nvidia|cuda)'"]
    helps.append(f"ldconfig -p | grep {shlex.quote(soname.split('.so')[0])}")
    if seen.torch:
        release = seen.torch.partition("+")[0]
        helps.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(
            "On a Jetson the wheel must be one for its JetPack release; in a container there, "
            "docker run --runtime nvidia hands the system's libraries in.",
        ),
    )  # fmt: skip


def _known(seen: Seen) -> tuple[str, ...]:
    atlas = seen.tables.atlas
    return atlas.releases(seen.place.machine) if atlas is not None else ()


def torches_bringing(seen: Seen, soname: str) -> tuple[str, ...]:
    """The torch releases whose wheels bring a CUDA library along."""
    from fa_forensics.atlas.brought import BroughtLibraries

    atlas, libraries = seen.tables.atlas, seen.tables.libraries
    if atlas is None or libraries is None:
        return ()
    found = []
    for build in atlas.builds(seen.place.machine):
        if build.cuda is not None:
            brought = BroughtLibraries(build, build.cuda, libraries, "")
            if brought.release_of(soname) is not None:
                found.append(build.release)
    return tuple(found)


def _other_torches(seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...]) -> Answer:
    """torch is there, and it is none of those that bring the library."""
    present = seen.place.present
    own = order_key(present.version) if present is not None else order_key("0.0")
    newer = own < order_key(bringing[0])
    span = interval_text(bringing, _known(seen))
    cause = (
        f"torch {span} bring {soname}; torch {seen.torch} brings another version of that library "
        f"or none: {_needing(seen)} was built for {'a newer' if newer else 'another'} torch."
    )
    direction = NEWER if newer else OLDER if own > order_key(bringing[-1]) else UNKNOWN
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=direction, confidence="medium",
        help=(*_rebuild(seen), seen.inspect_command()),
    )  # fmt: skip


def _other_major(seen: Seen, soname: str, owner: str | None, major: str, own: str) -> Answer:
    newer = int(major) > int(own.split(".")[0])
    who = _needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a CUDA {major} build (it needs {soname}), torch is a CUDA "
        f"{own} build: a build for CUDA {own.split('.')[0]} has to replace it, or torch has to be "
        f"one for CUDA {major}."
    )
    notes = [_ONE_RUNTIME]
    if newer and (floor := driver_table().floors.get(int(major))):
        notes.append(f"A torch for CUDA {major} needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, "FA602", cause, owner=owner, direction=NEWER if newer else OLDER,
        confidence="high", help=(*_rebuild(seen), seen.inspect_command()), notes=tuple(notes),
    )  # fmt: skip


_ONE_RUNTIME = (
    "The major version is in a library's name because one cannot stand in for another. Installing "
    "only that library, or giving another the name, would put two CUDA runtimes into one process."
)


def _cpu_torch(seen: Seen, soname: str, owner: str | None) -> Answer:
    cause = (
        f"torch {seen.torch} is a build without CUDA and brings no {soname}, and "
        f"{_needing(seen)} needs it: torch has to be a CUDA build."
    )
    release = (seen.torch or "").partition("+")[0]
    return seen.answer(
        KIND, "FA601", cause, owner=owner, direction=NONE, confidence="high",
        help=(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"',
              seen.inspect_command()),
    )  # fmt: skip


def _major_alone(
    seen: Seen, soname: str, owner: str | None, major: str | None, bringing: tuple[str, ...]
) -> Answer:
    who = _needing(seen)
    of = f"a CUDA {major} build" if major else "built for CUDA"
    cause = f"{who[0].upper()}{who[1:]} is {of}: it needs {soname}, which is not found."
    if major:
        cause += (
            f" Two causes fit: torch is a build for another CUDA major version (then a build of "
            f"the package for torch's CUDA has to replace this one), or it is one for CUDA {major} "
            "and was not imported first. The first command tells them apart."
        )
    elif bringing:
        cause += (
            " torch loads it itself where it brings it along: either torch was not imported first, "
            "or this torch is another than the file was built for."
        )
    notes = [_ONE_RUNTIME] if major else []
    if bringing:
        span = interval_text(bringing, _known(seen))
        notes.append(f"torch {span} for CUDA bring{'s' if len(bringing) == 1 else ''} {soname}.")
    toolkit = seen.versions.get("cuda")
    if toolkit and major and toolkit.split(".")[0].strip() != major:
        notes.append(
            f"The system's CUDA {toolkit} plays no part: what counts is the CUDA of torch."
        )
    if major and (floor := driver_table().floors.get(int(major))):
        notes.append(f"CUDA {major} code needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              *_rebuild(seen), seen.inspect_command()), notes=tuple(notes),
    )  # fmt: skip


def _same_major(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    wheel = wheel_of(seen, soname, major)
    cause = (
        f"torch is a build for CUDA {major} too and loads {soname} itself: either "
        f"{_needing(seen)} was imported before torch, or "
        f"{wheel or 'the wheel that brings it'} is not installed in this environment."
    )
    commands = [_import_torch_first(seen)]
    if wheel:
        commands.append(f"{seen.pip} show {wheel}")
    if seen.torch:
        release = seen.torch.partition("+")[0]
        commands.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*commands, seen.inspect_command()),
    )  # fmt: skip


def wheel_of(seen: Seen, soname: str, major: str) -> str | None:
    """The wheel that brings a library for a CUDA major version: ``nvidia-cuda-runtime-cu12``."""
    table = seen.tables.libraries
    if table is None:
        return None
    names = dict.fromkeys(row.distribution for row in table.releases(soname))
    return next((name for name in names if _major_of(name) == major), None)


def _driver(seen: Seen, soname: str, owner: str) -> Answer:
    cause = (
        f"{soname} is a part of the NVIDIA driver: this machine has no driver, or, in a container, "
        "the driver's libraries were not handed in (docker run --gpus all, with the NVIDIA "
        "container toolkit). No toolkit and no wheel brings it."
    )
    return seen.answer(
        "gpu-driver", "FA209", cause, owner=owner, direction=NONE, confidence="high",
        help=("nvidia-smi", "ldconfig -p | grep -E 'libcuda|libnvidia-ml'"),
    )  # fmt: skip


def _rocm(seen: Seen, soname: str, owner: str) -> Answer:
    cause = (
        f"{soname} belongs to {title_of(owner)}: {_needing(seen)} was built for AMD GPUs. With "
        "torch for NVIDIA it is the wrong build; with torch for ROCm, that library is not "
        "installed or not on the loader's path."
    )
    return seen.answer(
        "rocm", CODE, cause, owner=owner, direction=NONE, confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
              seen.inspect_command()),
    )  # fmt: skip


def _python(seen: Seen, soname: str, version: str) -> Answer:
    cause = (
        f"{soname} is the library of Python {version}: {_needing(seen)} was linked with it. The "
        f"Python that runs is another one, or Python {version} was built without its shared "
        "library or has it where the loader does not look."
    )
    return seen.answer(
        "python-abi", CODE, cause, owner="python", direction=NONE, confidence="medium",
        help=(f"{seen.python} -c 'import sys, sysconfig; print(sys.version, "
              "sysconfig.get_config_var(\"LIBDIR\"))'", seen.inspect_command()),
        notes=("An extension module should not be linked with libpython at all: a build that is "
               "not, loads in every Python of that version.",),
    )  # fmt: skip


def _other(seen: Seen, soname: str, owner: str | None) -> Answer:
    package = debian_package(soname)
    if package is not None:
        cause = (
            f"{soname} is a library of the system that {_needing(seen)} needs and that is not "
            "installed; small container images often lack it."
        )
        notes = ("In a conda environment the package of the same library from conda-forge does.",)
        return seen.answer(
            KIND, CODE, cause, owner=owner, direction=NONE, confidence="high", notes=notes,
            help=(f"apt-get install {package}", needed_libraries(_file(seen), "'not found'")),
        )  # fmt: skip
    sibling = _sibling_package(soname)
    if sibling is not None or _HASHED.match(soname):
        name = sibling or package_of(seen.mention.file or "") or "its package"
        cause = (
            f"{soname} comes in the same package as the file that needs it ({name}): the "
            "installation is not whole, or the file was taken out of it."
        )
        return seen.answer(
            KIND, CODE, cause, owner=name, direction=NONE, confidence="medium",
            help=(*_rebuild(seen, sibling), needed_libraries(_file(seen), "'not found'")),
        )  # fmt: skip
    whose = f"It belongs to {title_of(owner)}. " if owner else ""
    cause = (
        f"{whose}{soname} is not on the loader's path. It is a library of the package itself, of "
        "another package that this one was built with, or of the system, in exactly this version; "
        "another version of it does not count."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"find / -name {shlex.quote(soname.split('.so')[0] + '.so*')} 2>/dev/null",
              *_rebuild(seen), needed_libraries(_file(seen), "'not found'")),
    )  # fmt: skip


def _sibling_package(soname: str) -> str | None:
    """The package one of whose libraries this is, by what is known of packages."""
    from fa_forensics.rules.remedy import known_packages

    for row in known_packages():
        if any(s["library"] == soname for s in row.get("siblings", ())):  # type: ignore[attr-defined]
            return str(row["distribution"])
    return None


def _nameless(seen: Seen) -> Answer:
    return seen.answer(
        KIND, CODE,
        "A library is not found, and the text does not say which: paste the whole line.",
        direction=NONE, confidence="low", help=(seen.inspect_command(),),
    )  # fmt: skip


def _needing(seen: Seen) -> str:
    """Who needs the library, in a sentence."""
    file = seen.mention.file
    if file:
        return file.rsplit("/", 1)[-1]
    module = seen.mention.detail.get("import")
    return f"the extension that {module} imports" if module else "the extension"


def _file(seen: Seen) -> tuple[str, ...]:
    return (seen.mention.file,) if seen.mention.file else ()


def _rebuild(seen: Seen, package: str | None = None) -> tuple[str, ...]:
    """Get a build of the package that fits, where the package is known."""
    from fa_forensics.rules.remedy import rebuild_command, row_of

    module = seen.mention.detail.get("import") or ""
    name = package or seen.package or package_of(f"{module.replace('.', '/')}.so" if module else "")
    if name is None:
        return ()
    python = "python" if seen.elsewhere or not seen.place.python else seen.place.python
    version = seen.versions.get(f"pkg:{name}", "")
    return (rebuild_command(python, name, version, row_of(name)),)


def _import_torch_first(seen: Seen) -> str:
    module = seen.module or seen.mention.detail.get("import") or "MODULE"
    return f"{seen.python} -c 'import torch; import {module}'"
