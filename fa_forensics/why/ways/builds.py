"""Another build of the package that has the failing file: which, and how to come by it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from fa_forensics.patterns import lazily
from fa_forensics.why.place import Place


def python_of(place: Place) -> str:
    """The interpreter in commands, quoted for a shell."""
    return shlex.quote(place.python) if place.python else "python"


def pip_of(place: Place) -> str:
    """What pip commands start with."""
    return f"{python_of(place)} -m pip"


def rebuild(place: Place, needed_by: Sequence[str], direction: str = "") -> tuple[str, str] | None:
    """(command, what it does): another build of the package that has the failing file.

    None as well where the newest release of a package is all that could be got, and the file
    is newer than torch (``direction``) already.
    """
    if not needed_by:
        return None
    if place.told is not None and (own := _where_it_lies(place, needed_by[0])) is not None:
        return own
    if place.told is not None:
        from fa_forensics.why.seen import package_of

        # A file on another machine: its name alone is known.
        name = package_of(needed_by[0])
        return _elsewhere(place, name, _tagged(needed_by[0], place), direction) if name else None
    if place.environment is None or place.present is None:
        return None
    from fa_forensics.facts.package import find_distribution

    found = find_distribution(needed_by[0], place.environment.site_dirs)
    if found is None:
        return None
    here, python = f"torch {place.present.release}", place.environment.version_short
    return _replacement(place, found.name, found.version, python, here, direction)


def _where_it_lies(place: Place, file: str) -> tuple[str, str] | None:
    """(command, what it does) for a file of another machine that pip did not put where it is."""
    from fa_forensics.rules.remedy import rebuild_command, rebuild_does
    from fa_forensics.why.seen import module_of
    from fa_forensics.why.ways.trees import built_by_cmake, compiled_at_start

    there = place.present.text if place.present else "the torch that is there"
    row, python = _row(file), place.python or "python"
    own = compiled_at_start(file, there) or built_by_cmake(python, file, row, there)
    if own is not None:
        return own
    if in_source_tree(file):
        command = clean_build(python, file)
        return command, f"compiles it in its source directory, the one with setup.py, for {there}"
    before: Mapping[str, str] = (row or {}).get("before_module", {})  # type: ignore[assignment]
    last = before.get(module_of(file))
    if row is None or last is None:
        return None
    name = str(row["distribution"])
    command = rebuild_command(python, name, "", row)
    command = command.removesuffix(name) + shlex.quote(f"{name}<{last}")
    return command, rebuild_does(name, dict(row), there)


def _row(file: str) -> Mapping[str, object] | None:
    """What is known of the package that a file is of."""
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    name = package_of(file)
    return row_of(name) if name else None


def rebuild_named(place: Place, name: str, direction: str = "") -> tuple[str, str] | None:
    """The same for a package of another machine that the text names, where it names no file."""
    return _elsewhere(place, name, place.told.python if place.told else None, direction)


def _elsewhere(
    place: Place, name: str, python: str | None, direction: str
) -> tuple[str, str] | None:
    there = place.present.text if place.present else "the torch that is there"
    return _replacement(place, name, "", python, there, direction)


#: A module of Python's: its name carries the interpreter's tag.
_MODULE = lazily(r"\.(?:cpython-\d|abi3|pypy)")
_CMAKE_BUILD = (
    "rm -rf build && cmake -S . -B build -DCMAKE_PREFIX_PATH="
    "\"$({0} -c 'import torch; print(torch.utils.cmake_prefix_path)')\" && cmake --build build"
)


def in_source_tree(file: str) -> bool:
    """Whether a module lies in the directory that it was built in, and not where pip installs."""
    from fa_forensics.why.ways.trees import checkout_of, is_cut, is_untagged

    if checkout_of(file) and is_module(file):
        return True
    # mmdetection/mmdet/ops/x.cpython-37m.so; pkg/_C.so may be short for an installed file.
    whole = file.startswith(("/", "~/")) or file.count("/") > 2
    whole = whole and not re.search(r"\.\.\.|\u2026|/path/to/", file) and not is_cut(file)
    if not whole or "-packages/" in file or _NO_PIP.search(file):
        return False
    return is_module(file) or is_untagged(file)


def is_module(file: str) -> bool:
    """Whether a file is a module of Python's, by the tag in its name."""
    return _MODULE.search(file.rsplit("/", 1)[-1]) is not None


def is_plain_library(file: str) -> bool:
    """Whether a file is a C++ library that no import finds: it is loaded by its path."""
    name = file.rsplit("/", 1)[-1]
    built = "-packages/" not in file and re.search(r"/(?:cmake-)?build[\w-]*/", file) is not None
    return name.startswith("lib") and built and not is_module(file)


def clean_build(python: str, file: str) -> str:
    """Compile the package of a source directory again for the torch that is there.

    ``python`` is a path as it is, which is quoted here.
    """
    if is_plain_library(file):
        return cmake_build(python)
    gone, how = "", "--force-reinstall ."
    if in_source_tree(file):
        gone, how = f"{old_modules_gone(file)} && ", "-e ."
    return (
        f"rm -rf build *.egg-info && {gone}{shlex.quote(python)} -m pip install "
        f"--no-build-isolation --no-deps --no-cache-dir {how}"
    )


def old_modules_gone(file: str) -> str:
    """Remove the compiled modules of a source tree, and none of an environment that lies in it.

    There they lie in site-packages, Python's own in lib-dynload. setuptools keeps what is newer.
    """
    sort = "*.abi3.so" if ".abi3." in file else "*.cpython-*.so"
    sort = sort if is_module(file) or not file else file.rsplit("/", 1)[-1]
    return f"find . -name '{sort}' -not -path '*-packages/*' -not -path '*/lib-dynload/*' -delete"


def cmake_build(python: str) -> str:
    """Build a CMake project again, with the torch of an interpreter and its flags."""
    return _CMAKE_BUILD.format(shlex.quote(python))


def again_from_source(place: Place, needed_by: Sequence[str]) -> str | None:
    """The build of a file whose package is not known, or that pip did not install; None for none.

    A package that is known to come as a wheel alone, or with torch's number, has no such one.
    """
    if place.told is None or not needed_by or re.search(r"/torch/lib/|torch_ext", needed_by[0]):
        return None
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    name = package_of(needed_by[0])
    row = row_of(name) if name else None
    if row is not None and not row["source_build"]:
        return None
    if "/" not in needed_by[0] and not is_module(needed_by[0]):
        return None  # nothing shows whether pip installed it
    return clean_build(place.python or "python", needed_by[0])


def is_wheel_alone(needed_by: Sequence[str]) -> bool:
    """Whether a file is of a package that nobody compiles: its project gives out wheels."""
    if not needed_by:
        return False
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    name = package_of(needed_by[0])
    row = row_of(name) if name else None
    return row is not None and not row["source_build"]


def _replacement(
    place: Place, name: str, version: str, python: str | None, torch: str, direction: str
) -> tuple[str, str] | None:
    """(command, what it does): the package's own wheel, the release for that torch, or a build."""
    from fa_forensics.facts.build_machine import jobs, read_build_machine
    from fa_forensics.rules.remedy import rebuild_command, rebuild_does, row_of
    from fa_forensics.why.ways.holding import release_holding

    if name in NOT_EXCHANGED and place.told is not None and place.present is not None:
        again = f"{pip_of(place)} install --force-reinstall --no-cache-dir {name}"
        return again, (
            f"installs the newest release of {name}, with the torch that it asks for in place of "
            "the one there"
        )
    row = row_of(name)
    ready = _official(place, name, version, python) or _partner(place, name)
    ready = ready or _both(place, name) or release_holding(pip_of(place), name, row, place)
    if ready is not None or _only_newer(place, name, row, direction) or not_on_the_index(row):
        return ready
    bearable = jobs(read_build_machine()) if place.told is None else None
    command = rebuild_command(place.python or "python", name, version, row, bearable)
    return _of_its_time(command, place, row, python), rebuild_does(name, row, torch)


def not_on_the_index(row: Mapping[str, object] | None) -> bool:
    """Whether a package's wheels are at its project alone: the index has another of that name."""
    wheels = row.get("wheels") if row is not None else None
    return isinstance(wheels, Mapping) and "releases" in wheels and not wheels.get("one_cuda")


def _of_its_time(
    command: str, place: Place, row: Mapping[str, object] | None, python: str | None
) -> str:
    """A build from a repository, by the tag that still takes an old torch or Python."""
    from fa_forensics.why.torch_names.history import order_key

    older, below = (row or {}).get("older"), (row or {}).get("below")
    then = place.told.last if place.told else ""  # the newest torch of the text's day
    torch = place.present.release if place.present else then or None
    if isinstance(below, Mapping) and row is not None:
        name = str(row["distribution"])
        if torch is None or order_key(torch) >= order_key(below["torch"]):
            return command
        return re.sub(rf" {name}$", f" '{name}<{below['release']}'", command)
    if not isinstance(older, list) or row is None:
        return command
    for tag in older:
        by_torch = torch is not None and order_key(torch) < order_key(tag["torch"])
        if by_torch or (python is not None and order_key(python) < order_key(tag["python"])):
            return command.replace(str(row["requirement"]), f"{row['requirement']}@{tag['tag']}")
    return command


def _only_newer(place: Place, name: str, row: Mapping[str, object] | None, direction: str) -> bool:
    """Whether pip could get nothing but a release that fits less, or that replaces torch.

    A package that names its torch brings that along: right where torch is a wheel, and the
    end of a torch that is a build of its own (NVIDIA's for Jetson, a container's).
    """
    from fa_forensics.facts.python_api import brings_torch, has_partners, is_before_pairs

    if row is not None and row["source_build"]:
        return False
    if (has_partners(name) or (row or {}).get("by_torch")) and not brings_torch(name):
        return True  # its newest is for the newest torch, and takes none along
    if brings_torch(name):
        there = place.present
        return there is not None and (not there.published or is_before_pairs(name, there.release))
    return direction == "file-newer"


def numbered_as_torch(needed_by: Sequence[str]) -> tuple[str, ...]:
    """That each release of the file's package is for one torch, which its number tells."""
    from fa_forensics.facts.python_api import brings_torch, has_partners
    from fa_forensics.why.seen import package_of

    name = package_of(needed_by[0]) if needed_by else None
    if not has_partners(name) or brings_torch(name):
        return ()
    return (
        f"Each release of {name} is for the torch of the same minor version, and pip does not see "
        f"to that: the two have to be changed together (python -m pip install torch==X.Y.0 "
        f"{name}==X.Y.0, one number for both; nightlies of one day).",
    )


#: Packages whose other releases are other programs: those are not changed to fit a torch.
NOT_EXCHANGED = ("vllm",)


def _partner(place: Place, name: str) -> tuple[str, str] | None:
    """(command, what it does) where one release of the package belongs to the torch there."""
    from fa_forensics.facts.python_api import partner_of
    from fa_forensics.rules.own_torch import partner_from_source
    from fa_forensics.rules.remedy import row_of

    if place.present is None or name in NOT_EXCHANGED:
        return None
    release = partner_of(name, place.present.release)
    if release is None:
        return None
    if not place.present.published:
        python = place.python or "python"
        return partner_from_source(python, name, place.present.release, row_of(name))
    wanted = shlex.quote(f"{name}=={release}")
    command = f"{pip_of(place)} install --force-reinstall --no-deps --no-cache-dir {wanted}"
    return command, f"installs the release of {name} that belongs to torch {place.present.release}"


def _both(place: Place, name: str) -> tuple[str, str] | None:
    """(command, what it does) where each release belongs to one torch, and none is told.

    Named together they are taken from one time: the newest releases of some of these packages
    ask for no torch at all (torchaudio 2.11), so that one of them alone brings none along.
    """
    from fa_forensics.facts.python_api import brings_torch, ended_at
    from fa_forensics.rules.remedy import row_of

    each = brings_torch(name) or (row_of(name) or {}).get("by_torch")
    if place.present is not None or not each or ended_at(name) is not None:
        return None
    command = f"{pip_of(place)} install --upgrade --no-cache-dir torch {shlex.quote(name)}"
    return command, f"takes torch and {name} to their newest releases, which fit each other"


#: Files that pip did not build: torch's JIT cache, an egg, torch's own.
_NO_PIP = lazily(r"torch_extensions/|\.egg(?:-tmp)?/|/torch/lib/|/lib(?:torch|c10)\w*\.so")


def isolated_build(place: Place, needed_by: Sequence[str]) -> tuple[str, ...]:
    """How a file gets newer than the torch that is installed, where it may come from its source."""
    from fa_forensics.facts.python_api import has_partners
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of
    from fa_forensics.why.ways.trees import jit_directory

    if not needed_by or _NO_PIP.search(needed_by[0]) or jit_directory(needed_by[0]):
        return ()
    name = package_of(needed_by[0])
    row = row_of(name) if name else None
    if has_partners(name) or (row is not None and not row["source_build"]):
        return ()
    built = rebuild(place, needed_by)
    if built is not None and ".whl" in built[0]:
        return ()
    return (NEWEST_TORCH,)


NEWEST_TORCH = (
    "Where pip compiled it from source, it took a torch of its own for that (the one that the "
    "source's pyproject.toml pins, else the newest) and not the one that is installed: "
    "--no-build-isolation takes the installed one."
)


def has_official_wheels(needed_by: Sequence[str]) -> bool:
    """Whether the failing file is of a package whose own releases have wheels by torch."""
    from fa_forensics.facts.wheel_matrix import PACKAGE
    from fa_forensics.why.seen import module_of, package_of

    if not needed_by or package_of(needed_by[0]) != PACKAGE:
        return False
    gone = (_row(needed_by[0]) or {}).get("before_module", {})
    return module_of(needed_by[0]) not in gone  # type: ignore[operator]


def _official(place: Place, name: str, version: str, python: str | None) -> tuple[str, str] | None:
    """(command, what it does) where the package's own releases have a wheel that fits."""
    from fa_forensics.resolve.link import glibc_of
    from fa_forensics.rules.official_wheel import Home, official_wheel, wheel_command, wheel_does

    if place.present is None:
        return None
    torch = place.environment.torch if place.environment else None
    cuda = place.requested.cuda if place.requested else torch.cuda if torch else None
    glibc = glibc_of(place.linker.process) if place.linker is not None else place.glibc
    home = Home(place.present.version, place.present.flavour, cuda, python, place.machine, glibc)
    build = official_wheel(name, version, home)
    if build is None:
        return None
    command = wheel_command(place.python or "python", build)
    return command, wheel_does(build, place.present.text, glibc)


def _tagged(file: str, place: Place) -> str | None:
    """The Python of a text's machine, as it says or as the file's own tag has it."""
    tag = re.search(r"\.cpython-3(\d{1,2})-", file)
    if tag is not None:
        return f"3.{tag[1]}"
    return place.told.python if place.told else None
