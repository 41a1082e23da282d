"""Where a failing file that pip did not put there is compiled: which directory, by what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.shell import quoted

#: ``torch.utils.cpp_extension.load``: its own directory, ``~/.cache/torch_extensions/py38_cu113``.
_CACHE = lazily(r"/torch_extensions/(?:py\d{2,3}_\w{2,20}/)?[\w.+-]{1,80}(?=/)")
#: The ``build_directory`` that programs give it beside their sources.
_BUILD = lazily(r"/build(?=/[\w.+-]{1,120}\.so$)")
#: An environment of conda's, whose lib directory is none of a build.
_CONDA = lazily(r"conda|mamba|miniforge|/envs?/|-packages/|/usr/", re.IGNORECASE)
#: A path whose beginning was left out, with directories of the project before the build's.
_BELOW = lazily(r"\.\.\./[A-Za-z][\w-]{1,60}/(?:[\w-]{1,60}/){1,6}build/\w{1,120}\.so$")
_CUT = lazily(r"\.\.\.|\u2026|/path/to/")

#: aiter compiles its modules one by one, at their first use, into its own directory (the function
#: build_module in aiter/jit/core.py).
_AT_USE = lazily(r"/aiter/jit/(?:[\w-]{1,60}/){0,3}\w{1,120}\.so$")

#: What stands below a cut: a checkout or an unpacked source, which has its release in its name.
_CHECKOUT = lazily(
    r"(?:\.\.\.|\u2026)/[A-Za-z][\w-]{1,60}-v?\d{1,3}(?:\.\d{1,3}){1,3}(?=/(?!lib/)[\w./-]{1,300}$)"
)


def checkout_of(file: str) -> str:
    """The directory of a project's source in a path whose beginning was left out; "" for none."""
    if "-packages/" in file:
        return ""
    found = _CHECKOUT.match(file) or _CLONE.match(file)
    if found is None or "name" not in found.groupdict():
        return found[0] if found is not None else ""
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    row = row_of(package_of(file) or "") or {}
    project = str(row.get("repository") or row.get("requirement") or "").rpartition("/")[2]
    return found[0] if project and project == found["name"] else ""


#: The same by the name of the project's repository: ...audio/_torch_sox.cpython-36m.so.
_CLONE = lazily(
    r"(?:\.\.\.|\u2026)/?(?P<name>[A-Za-z][\w-]{1,60})(?=/(?:\w{1,60}/){0,2}[\w.-]{1,120}$)"
)


def jit_directory(file: str) -> str:
    """The directory that was filled at the program's start, whole; "" for a file of another sort.

    Such a file has no tag of Python's in its name, and is not called lib*.so.
    """
    name = file.rsplit("/", 1)[-1]
    if _BELOW.match(file) is not None:
        file = file[4:]  # its end, below the project's directory
    elif not file.startswith(("/", "~/")):
        return ""
    if _CUT.search(file) or not name.endswith(".so"):
        return ""
    found = _CACHE.search(file)
    if found is None:
        plain = re.fullmatch(r"(?!lib)[A-Za-z_]\w{1,100}\.so", name)
        found = _BUILD.search(file) if plain and "-packages/" not in file else None
    return file[: found.end()] if found is not None else ""


def compiled_at_start(file: str, there: str) -> tuple[str, str] | None:
    """(command, what it does) for a file that a program compiled at its start or first use."""
    if _AT_USE.search(file) and _CUT.search(file) is None and file.startswith(("/", "~/")):
        return f"rm {quoted(file)}", (
            f"removes the one file, and aiter compiles it again at its next use, for {there}"
        )
    directory = jit_directory(file)
    if not directory:
        return None
    kept = "" if _CACHE.search(file) else ", or cmake or make, where one of them made it,"
    shown = "~/" + shlex.quote(directory[2:]) if directory[:2] == "~/" else shlex.quote(directory)
    return f"rm -rf {shown}", (
        f"removes what was compiled there, and the next start of the program{kept} compiles it "
        f"for {there}"
    )


def compiled_at_use(place: Place, needed_by: Sequence[str]) -> tuple[str, str] | None:
    """(command, a sentence on it) for a file of a program's own cache; None for any other."""
    there = place.present.text if place.present else "the torch that is there"
    own = compiled_at_start(needed_by[0], there) if needed_by else None
    return own and (own[0], f"The command that begins with rm {own[1]}.")


def cmake_tree(file: str, row: Mapping[str, object] | None) -> tuple[str, str]:
    """(source directory, build directory) of a checkout that CMake builds; ("", "") for none.

    ``row`` is what is known of the package: its checkout is called as it is imported.
    """
    if row is None or not row.get("cmake") or not file.startswith("/"):
        return "", ""
    if _CONDA.search(file) or _CUT.search(file):
        return "", ""
    parts = file.split("/")
    called = re.compile(rf"{re.escape(str(row['import']))}(?:[-_.][\w.-]{{0,40}})?")
    at = next((i for i, part in enumerate(parts[:-2]) if called.fullmatch(part)), 0)
    if not at or parts[at + 1] in ("lib", "lib64", str(row["import"])):
        return "", ""
    return "/".join(parts[: at + 1]), "/".join(parts[: at + 2])


def built_by_cmake(
    python: str, file: str, row: Mapping[str, object] | None, there: str
) -> tuple[str, str] | None:
    """(command, what it does) for a file in the build directory of a checkout."""
    source, build = map(shlex.quote, cmake_tree(file, row))
    if source == "''":
        return None
    torch = f"\"$({shlex.quote(python)} -c 'import torch; print(torch.utils.cmake_prefix_path)')\""
    return (
        f"rm -rf {build} && cmake -S {source} -B {build} -DCMAKE_PREFIX_PATH={torch} && "
        f"cmake --build {build}",
        f"empties the build directory and compiles it there again for {there} (what cmake was "
        "given before has to be given again)",
    )


#: Said where no torch is told that the next start compiles for.
_NEXT_START = (
    "The directory that is removed was filled when the program started, by torch.utils."
    "cpp_extension.load: its next start compiles the file again, for the torch that is there."
)


def next_start(needed_by: Sequence[str]) -> tuple[str, ...]:
    """Who compiles a file again whose directory is removed."""
    return (_NEXT_START,) if needed_by and jit_directory(needed_by[0]) else ()


#: A compiled module without Python's tag in its name (BuildExtension's no_python_abi_suffix), in
#: the checkout that is called as the package is: kaolin/kaolin/_C.so.
_UNTAGGED = lazily(
    r"/(?P<name>[A-Za-z]\w{1,60})/(?P=name)/(?:[\w-]{1,60}/){0,3}_[A-Z]\w{0,20}\.so$"
)


def is_untagged(file: str) -> bool:
    """Whether a file is the compiled module of a package, in the checkout of that name."""
    return _UNTAGGED.search(file) is not None


def is_cut(file: str) -> bool:
    """Whether an absolute path begins with the package itself: what stood before it is cut off.

    mmcv's sources have mmcv/mmcv/_ext; /mmcv/_ext is the end of a path in site-packages.
    """
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    parts = file.split("/")
    row = row_of(package_of(file) or "") if len(parts) == 3 and not parts[0] else None
    return row is not None and parts[1] == str(row["import"]).split(".")[0]


#: setuptools' own directories below build/, and what stands before them.
_BY_SETUP = lazily(r"/build/(?:temp|lib)\.[\w.-]{1,80}/")
_BUILDS = lazily(r"^rm\s-rf\sbuild|--no-build-isolation")
_ON_EXTENSIONS = lazily(r"(?:A file that was compiled|The command that begins|Where pip compiled)")


def in_setup_build(answer: Answer, file: str, python: str) -> Answer:
    """The answer for a C++ library in a build directory of setup.py, which its module loads.

    An extension of Python's beside it has that path in its own header, so that emptying the
    directory by hand alone takes the library away.
    """
    found = _BY_SETUP.search(file)
    source = file[: found.start()] if found is not None else ""
    there = f"cd {quoted(source)} && " if source and _CUT.search(source) is None else ""
    build = (
        f"{there}rm -rf build *.egg-info && {shlex.quote(python)} -m pip install "
        "--no-build-isolation --no-deps --no-cache-dir --force-reinstall ."
    )
    kept = [text for text in answer.help if not _BUILDS.search(text)]
    kept.insert(1 if kept and "print(torch" in kept[0] else 0, build)
    name = file.rsplit("/", 1)[-1]
    note = (
        f"{name} lies in the directory that setup.py builds in, and the module that was installed "
        "loads it from there by its path: no search path plays a part. The command that begins "
        "with rm -rf build runs setup.py again (where there is a setup.py in that directory), "
        "which builds both."
    )
    more = (
        "A project whose CMake fetches a C++ libtorch of its own builds for the release that is "
        "pinned there, whatever torch is installed: then a torch of that release, as the command "
        "for torch takes it, is what Python has to load."
    )
    notes = (n for n in answer.notes if not _ON_EXTENSIONS.match(n))
    return replace(answer, help=tuple(kept), notes=(note, more, *notes))


def where_to_type(command: str, needed_by: Sequence[str]) -> tuple[str, ...]:
    """Where a command that removes compiled modules belongs; () for any other command."""
    file = needed_by[0] if needed_by else ""
    if " -delete" in command and checkout_of(file):
        return _typed_in(f"most likely {checkout_of(file)}")
    if " -delete" not in command or not file.startswith(("/", "~/")) or _CUT.search(file):
        return ()
    untagged = _UNTAGGED.search(file)
    if untagged is not None:
        return _typed_in(f"most likely {file[: untagged.end('name')]}")
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.seen import package_of

    package = package_of(file)
    row = row_of(package) if package else None
    directory, name = file.rsplit("/", 1)[0], str(row["import"]).split(".")[0] if row else ""
    parts = directory.split("/")
    if name in parts and parts.index(name) > 1:
        last = len(parts) - 1 - parts[::-1].index(name)
        last -= parts[last - 1] == "src" and last > 2  # setup.py lies beside src/
        where = f"most likely {'/'.join(parts[:last])}"
    else:
        where = f"{directory} or one above it"
    return _typed_in(where)


def _typed_in(where: str) -> tuple[str, ...]:
    return (
        "The command that begins with rm -rf build is for the file's source directory, the one "
        f"with setup.py ({where}): elsewhere it removes the compiled files of other projects.",
    )


def either_command(does: str, release: str = "") -> str:
    """That a build of the file and another torch are two ways; ``does`` is what the first does.

    ``release`` is a torch that is known for its std::string flavour alone.
    """
    if not release:
        return (
            f"One of the two commands is enough: the first {does}; the second changes torch, "
            "for all other packages too."
        )
    return (
        f"One of the two commands is enough: the first {does}; the second changes torch, for all "
        f"other packages too, and is no help where the file's other names are not in torch "
        f"{release}, which fa-forensics inspect --torch {release} says without installing it."
    )
