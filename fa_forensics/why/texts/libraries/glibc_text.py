"""Answers to symbol versions of the system's libraries: glibc, libstdc++, libgcc_s."""

from __future__ import annotations

import os
import re

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.paste.machines import conda_has
from fa_forensics.facts.system_releases import (
    brings,
    family_of,
    gcc_of,
    number,
    system_named,
    version_number,
)
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, UNKNOWN
from fa_forensics.why.other_names.known import PRIVATE, two_glibcs
from fa_forensics.why.seen import Answerer, Seen, without_environments
from fa_forensics.why.texts.files.file_text import JIT_CACHE, is_torchs, quoted, remove_cache
from fa_forensics.why.texts.libraries.glibc_conda import called, conda_library, ways
from fa_forensics.why.texts.libraries.glibc_release import in_newer_system, release_for
from fa_forensics.why.texts.libraries.renamed_text import renamed

VERSIONED, OTHER_COPY = "versioned-symbol", "FA204"


def version_not_found(seen: Seen) -> Answer:
    """``version `GLIBCXX_3.4.30' not found (required by ...)``."""
    version = seen.mention.version or ""
    family = family_of(version)
    if family == "GLIBC":
        return _glibc(seen, version)
    if family == "GCC":
        return _libgcc(seen, version)
    if family is not None:
        from fa_forensics.why.texts.libraries.libstdcxx_text import libstdcxx

        return libstdcxx(seen, version, _required_by(seen))
    library = (seen.mention.library or version).rsplit("/", 1)[-1]
    if library.startswith("libgomp.so") or version.startswith(("GOMP_", "OMP_", "OACC_", "GOACC_")):
        return _openmp(seen, version)
    under_its_name = renamed(seen)
    if under_its_name is not None:
        return under_its_name
    path = os.path.normpath(seen.mention.library or "")
    cause = (
        f"The {library} that is loaded does not define the version {version}: another copy of the "
        "library comes before the one that the file was built with."
    )
    return seen.answer(
        VERSIONED, OTHER_COPY, cause, owner=owner_of_library(library), direction=UNKNOWN,
        confidence="medium",
        help=(f"LD_DEBUG=libs {seen.python} -c 'import torch' 2>&1 | grep {quoted(library)}",
              *_without_path(seen, path), seen.inspect_command()),
    )  # fmt: skip


def _without_path(seen: Seen, path: str) -> tuple[str, ...]:
    """Leave LD_LIBRARY_PATH out; () where the path shows that a package's own copy was taken."""
    if "-packages/" in path or re.search(r"/envs/|conda", path):
        return ()
    return (f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch'",)


def _openmp(seen: Seen, version: str) -> Answer:
    """``libgomp.so.1: version `OACC_2.0' not found``."""
    from fa_forensics.why.other_names.openmp import openmp_version

    library = os.path.normpath(seen.mention.library or "libgomp.so.1")
    judgement, commands = openmp_version(version, library, _required_by(seen))
    return seen.answer(
        judgement.kind, judgement.code, judgement.cause, owner="libgomp",
        direction=judgement.direction, confidence=judgement.confidence,
        help=(*commands, seen.inspect_command()), notes=judgement.notes,
    )  # fmt: skip


def _required_by(seen: Seen) -> str:
    file = seen.mention.file or seen.mention.detail.get("needed_by") or ""
    return file.rsplit("/", 1)[-1] or "the file"


def _glibc(seen: Seen, version: str) -> Answer:
    if version == PRIVATE:
        return _private(seen)
    path = seen.mention.file or ""
    version = _highest(seen, version)
    own = own_glibc(seen)[0]
    enough = bool(own and version_number(version) and number(own) >= version_number(version))
    cause = _built_newer(seen, version, enough)
    notes = [
        _tag_not_kept(seen, version)
        or f"A wheel that is tagged linux_{_machine(seen)} promises nothing about glibc, so pip "
        "cannot refuse it; a manylinux tag does, though not every wheel keeps to its own.",
        "glibc belongs to the system and is not to be changed: what helps is a build of the file "
        "for this system, another release whose file asks for an older glibc, or a system (a "
        "container) with that glibc.",
    ]
    helps = _built_here(seen)
    if not enough and (older_wheel := _older_wheel(seen)):
        helps = (*older_wheel, *helps)
        notes.insert(0, _of_older_wheel(seen.package or ""))
    if not enough and "flash-attn" in (seen.package, seen.mention.detail.get("beside")):
        older, remark = _older_flash(seen, version)
        helps, notes = (*older, *helps), [*remark, *notes]
    jit = JIT_CACHE.search(path)
    if path.startswith("/") and not re.search(r"\.so\b|-packages/", path):
        notes = notes[1:]  # a program, no wheel's file
    if jit is not None or path.endswith("/cuda_utils.so"):
        helps = (remove_cache(jit["folder"] if jit else "~/.triton/cache"),)
        notes[0] = (
            "The file is a build of this machine's users, made at run time and kept in a cache: on "
            "another node, or in a newer container with the same home directory. Without that "
            "directory it is built again here; a cache directory for each system avoids it."
        )
    elif conda_library(path) and not is_torchs(path):
        older, remarks = ways(seen, path, None if enough else version_number(version))
        helps, notes = older, [*remarks, *notes[1:]]
    elif is_torchs(path):
        helps, notes = (), _of_torch(path, version, notes, _machine(seen))
    else:
        notes = [*_ways_out(seen, version, enough), *notes]
    return seen.answer(
        "glibc", "FA203", cause, owner="libc", direction=NEWER,
        confidence="medium" if enough else "high",
        help=(*helps, "ldd --version | head -1",
              "fa-forensics inspect torch" if is_torchs(path) and "..." in path
              else seen.inspect_command()),
        notes=tuple(notes),
    )  # fmt: skip


def _highest(seen: Seen, version: str) -> str:
    """The newest glibc that one file asks for, in whichever of its lines: that one decides."""
    file = seen.mention.file or ""
    same = (
        m.version
        for m in seen.paste.mentions[:200]
        if m.what == "version-not-found" and file and (m.file or "") == file and m.version
    )
    plain = (v for v in same if family_of(v) == "GLIBC" and v != PRIVATE)
    return max((version, *plain), key=version_number)


def _built_newer(seen: Seen, version: str, enough: bool) -> str:
    """Which file needs which glibc, and what this system has."""
    file = _required_by(seen)
    cause = f"{file[0].upper()}{file[1:]}" if " " in file else file
    path = seen.mention.file or ""
    if is_torchs(path):
        cause += ", a file of torch itself,"
    elif conda_library(path):
        cause += called(path)
    cause += " was built on a system with a newer glibc"
    first = brings(version)
    cause += f": it needs {version}, that is {first} or newer" if first else f": it needs {version}"
    own, system = own_glibc(seen)
    if enough:
        return cause + (
            f". The system that the text names has glibc {own}, which is enough: another one "
            "loaded the file (a container, a node of a cluster), or an older libc.so.6 from "
            "LD_LIBRARY_PATH."
        )
    if own:
        return cause + f"; this system has glibc {own}" + (f" ({system})." if system else ".")
    if (2, 12) < version_number(version) <= (2, 17):
        return cause + "; a system without it is of the age of CentOS 6 (glibc 2.12)."
    return cause + "."


#: Tags of torch's wheels on PyPI for x86_64: manylinux1 up to 2.6.0, manylinux_2_28 from 2.7.0.
_WHOLE_TORCH = (
    "torch as a whole, its wheel or conda package, asks for it, not this file alone: no package "
    "that uses torch is at fault, and the same torch installed again changes nothing."
)
_FOR_OLD = (
    "A newer system (or a container of one) is the way out; else a torch that was built on an "
    "older system: an earlier release, or conda-forge's (most often glibc 2.17)."
)
_FOR_OLD_RARE = (
    "A newer system (or a container of one) is the way out; else a torch that was built on an "
    "older system: an earlier release of whoever made that wheel, or a build from source on this "
    "system. conda-forge and PyPI have no torch for {machine}."
)
_FOR_SO_OLD = (
    "A newer system (or a container of one, whose image has glibc 2.17 or newer) is the way out; "
    "else a torch that was built on a system as old as this one."
)
_TAG_OF_TORCH = (
    "PyPI's wheels of torch for x86_64 bear the tag manylinux1 up to 2.6, which promises an older "
    "glibc than their files need: pip could not refuse them."
)


def _of_torch(path: str, version: str, notes: list[str], machine: str) -> list[str]:
    """What is to be said of torch's own file: of a wheel's, or of an archive of libtorch."""
    if "-packages/" not in path:
        return [LIBTORCH, *notes[-1:]]
    old, rare = version_number(version) <= (2, 17), not conda_has(machine)
    for_old = _FOR_OLD_RARE.format(machine=machine) if rare else _FOR_OLD
    return [
        _WHOLE_TORCH,
        _FOR_SO_OLD if old else for_old,
        *([_TAG_OF_TORCH] if old and machine == "x86_64" else notes[:1]),
        *notes[-1:],
    ]


def _ways_out(seen: Seen, version: str, enough: bool) -> list[str]:
    """Builds of the same package for older systems, where it has them; what a warning means."""
    from fa_forensics.rules.remedy import row_of

    notes = []
    package = seen.package
    row = row_of(package) if package and not enough else None
    if (
        package != "flash-attn"
        and row is not None
        and row.get("conda_forge")
        and version_number(version) > (2, 17)
    ):
        notes.append(
            f"An older release of {package} may have a wheel that was built on an older system. "
            f"conda-forge's build ({row['conda_forge']}) most often asks for glibc 2.17 alone, and "
            "comes with conda-forge's own torch."
        )
    own = number(own_glibc(seen)[0] or "")
    if row is not None and row["source_build"] and own and own <= (2, 17):
        notes.append(
            "The g++ of so old a system (4.8 on CentOS 7) does not compile for torch, which needs "
            "C++14 or C++17: conda-forge's gxx_linux-64, or devtoolset, brings one that does."
        )
    if re.search(r"Disabling\sits\susage", seen.mention.line):
        notes.append(
            f"It is a warning: {package or 'the package'} is switched off, and the program goes on "
            "without it."
        )
    return notes


def _tag_not_kept(seen: Seen, version: str) -> str | None:
    """That the wheel of the text is tagged for an older glibc than its file needs."""
    promised, needed = seen.mention.detail.get("tag_glibc"), version_number(version)
    if promised is None or needed is None or number(promised) >= needed:
        return None
    return (
        f"The tag of the wheel in the text, manylinux_{promised.replace('.', '_')}, promises that "
        f"glibc {promised} is enough, and the file does not keep to that: pip could not refuse it. "
        "An older release of the package may still load here."
    )


def _older_flash(seen: Seen, version: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The last release of flash-attn whose wheels are not known to need so new a glibc."""
    from fa_forensics.facts.wheel_matrix import builds, glibc_floor

    releases = list(dict.fromkeys(build.release for build in builds()))
    wanted = version_number(version)
    floors = ((release, glibc_floor(release)) for release in releases)
    below = [r for r, floor in floors if floor is None or (wanted and number(floor) < wanted)]
    if not below or len(below) == len(releases) or "aarch64" in seen.mention.line:
        return (), ()  # of those releases there are no wheels for aarch64
    own, torch = own_glibc(seen)[0], ".".join((seen.torch or "").split(".")[:2])
    if own is not None and number(own) < (2, 31):
        return (), ()  # nothing is known of so old a system
    if torch and torch not in {build.torch for build in builds() if build.release == below[-1]}:
        return (), ()  # it would be compiled all the same, and an old release for a newer torch
    return (
        f'{seen.pip} install --no-build-isolation --no-cache-dir "flash-attn=={below[-1]}"',
    ), (
        f"Wheels of flash-attn up to {below[-1]} load on older systems (glibc 2.31 too); setup.py "
        "takes the one for the torch that is installed, where there is one. "
        "FLASH_ATTENTION_FORCE_BUILD=TRUE compiles the release that is wanted on this system.",
    )  # fmt: skip


def _of_older_wheel(package: str) -> str:
    return (
        f"The first command takes the next older wheel of {package} that its project has for that "
        "torch and CUDA, which may come from an older system; nothing is compiled. Where that "
        "page has none (pip says so), or it needs the same glibc, the second one builds the file "
        "here."
    )


def _older_wheel(seen: Seen) -> tuple[str, ...]:
    """The release before the one that the text names, from the project's page for that torch."""
    from fa_forensics.facts.cuda_labels import cuda_label
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.rules.wheel_pages import page_of
    from fa_forensics.why.texts.clues import version_of

    package, torch = seen.package, seen.torch or ""
    row = row_of(package) if package else None
    version = (version_of(seen, package) or "").partition("+")[0] if package else ""
    minor = re.match(r"\d{1,2}\.\d{1,3}", torch)
    local = re.fullmatch(r"cu\d{2,3}|cpu", torch.partition("+")[2])
    label = local[0] if local else cuda_label(seen.torch_cuda or "")
    page = page_of(row, label, minor[0]) if minor is not None and label else ""
    if not page or not re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){1,3}", version):
        return ()
    return (
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary {package} "
        f'"{package}<{version}" -f {page}',
    )


LIBTORCH = (
    "Of libtorch's archives, the one with cxx11-abi in its name was built on the newer system. "
    "Where a release has one without (Pre-cxx11 ABI), that takes an older glibc, as PyPI's torch "
    "of the same release does; the program is then compiled with -D_GLIBCXX_USE_CXX11_ABI=0."
)


def own_glibc(seen: Seen) -> tuple[str | None, str | None]:
    """(glibc of the system that the text is from, the system's name where that tells it)."""
    told = seen.versions.get("glibc")
    if told is not None:
        return told, None
    named = system_named(seen.versions.get("os", ""))
    return (named[1], named[0]) if named is not None else (None, None)


def _machine(seen: Seen) -> str:
    """The processor in a wheel's tag, by the paths of the text, else by its words."""
    if "arm-linux-gnueabi" in seen.mention.line:
        return "armv7l"
    host = seen.mention.detail.get("host", "")
    if host and host != "arm" and not conda_has(host):
        return host
    return "aarch64" if "aarch64" in seen.mention.line else "x86_64"


def _private(seen: Seen) -> Answer:
    """``version `GLIBC_PRIVATE' not found``: parts of two glibcs."""
    file, library = seen.mention.file or "", seen.mention.library or ""
    name = os.path.basename(file) or "The file"
    judgement, commands = two_glibcs(name, os.path.basename(library))
    helps = (f"ls -l {quoted(file)}", *commands) if file.startswith("/") else commands
    return seen.answer(
        judgement.kind, judgement.code, judgement.cause, owner="libc",
        direction=judgement.direction, confidence="high", help=helps, notes=judgement.notes,
    )  # fmt: skip


def _built_here(seen: Seen) -> tuple[str, ...]:
    from fa_forensics.rules.remedy import rebuild_command, row_of
    from fa_forensics.why.texts.clues import package_in, version_of

    name = package_in(seen) or _named(seen) or seen.mention.detail.get("beside")
    if not name:
        return ()
    python = "python" if seen.elsewhere or not seen.place.python else seen.place.python
    version = (version_of(seen, name) or "").partition("+")[0]
    release = version if re.fullmatch(r"\d+(?:\.\d+)+(?:\.?post\d+)?", version) else ""
    release = release or release_for(seen, name)
    if outside := in_newer_system(name, release, number(own_glibc(seen)[0] or "")):
        return (outside,)
    row = row_of(name)
    if row is None or not row["source_build"]:
        return ()  # published built alone: the newest asks for a glibc that is newer yet
    return (rebuild_command(python, name, release, row),)


def _named(seen: Seen) -> str | None:
    """The distribution whose name stands in the line."""
    from fa_forensics.rules.remedy import known_packages

    names = [str(row["distribution"]) for row in known_packages()]
    line = without_environments(seen.mention.line)
    return next((n for n in names if re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", line)), None)


def _libgcc(seen: Seen, version: str) -> Answer:
    """``libgcc_s.so.1: version `GCC_12.0.0' not found``: most often asked for by a libstdc++."""
    library = seen.mention.library or "libgcc_s.so.1"
    first, gcc = brings(version), gcc_of(version)
    cause = f"{_required_by(seen)} needs {version}"
    cause += f", {first} or newer" if first else ""
    cause += f"; the libgcc_s that is loaded, {library}, is older."
    wanted = f'"libgcc-ng>={gcc}"' if gcc else "libgcc-ng"
    return seen.answer(
        "libstdcxx", "FA203", cause, owner="libgcc_s", direction=NEWER, confidence="high",
        help=("for f in $(ldconfig -p | grep -o '/.*libgcc_s.so.1$') $CONDA_PREFIX/lib/"
              'libgcc_s.so.1; do echo $f; strings $f | grep -o "^GCC_[0-9.]*" | sort -V | tail -1; '
              "done", f"conda install -c conda-forge {wanted} libstdcxx-ng"),
        notes=(
            "libgcc_s.so.1 and libstdc++.so.6 come from one GCC and fit one another: one of the "
            "two was taken from conda or another directory, the other from the system.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"version-not-found": version_not_found}
