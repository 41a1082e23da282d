"""Answers to messages that hide the loader's own error, to crashes without one, and to Windows."""

from __future__ import annotations

import re

from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen, package_of
from fa_forensics.why.texts.builds.windows_build import jit_module
from fa_forensics.why.texts.clues import inspect_package, package_in, pip_name, version_of
from fa_forensics.why.texts.libraries.bitsandbytes_text import no_cuda_binary
from fa_forensics.why.texts.python.crash_text import of_another_torch, only_named
from fa_forensics.why.ways.commands import inspect_command

BANNER, NO_FILE, CRASH, WINDOWS = "FA886", "FA887", "FA888", "FA889"


def stop_iteration(seen: Seen) -> Answer:
    """``StopIteration`` where a package looks for its own .so: it globbed and found none."""
    if re.search(r"transformer\sengine", seen.mention.line.lower()):
        return _part_of_transformer_engine(seen)
    if seen.mention.detail.get("empty"):
        from fa_forensics.why.texts.python.empty_meta import empty_meta

        return empty_meta(seen)
    if seen.mention.detail.get("own"):
        from fa_forensics.why.texts.python.own_so import own_so_not_found

        return own_so_not_found(seen)
    package = package_in(seen) or seen.mention.detail.get("package")
    name = package or "the package"
    version = version_of(seen, package) if package else None
    pinned = f"{package}[pytorch]" if package == "transformer-engine" else (package or "PACKAGE")
    if version:
        pinned += f"=={version}"
    cause = (
        f"{name} looked for its own compiled library among its files and found none: the Python "
        "files are there, the compiled part is not. No library failed to load."
    )
    notes = ["Packages that come in several parts need them all in one release."]
    helps = [f"{seen.pip} list"]
    if package == "transformer-engine":
        notes.append(
            "transformer_engine, transformer_engine_cu12 (or _cu13) and transformer_engine_torch "
            "are such parts: the last one is compiled on the machine."
        )
        helps.append(
            f"{seen.pip} uninstall -y transformer_engine transformer_engine_cu12 "
            "transformer_engine_cu13 transformer_engine_torch"
        )
    helps.append(f'{seen.pip} install --no-build-isolation "{pinned}"')
    return seen.answer(
        "damaged-file", "FA880", cause, owner=package, direction="none",
        confidence="high" if package else "medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


#: setup.py of Transformer Engine: with the variable its extensions for frameworks are left out.
_OF_RELEASES = (
    "The text sets NVTE_RELEASE_BUILD=1, with which a build of the sources leaves the part for "
    "torch out, as it comes in a package of its own then: built again without it, from an empty "
    "build directory and with NVTE_FRAMEWORK=pytorch, it has that part."
)


def _part_of_transformer_engine(seen: Seen) -> Answer:
    """``Could not find shared object file for Transformer Engine torch lib``."""
    from fa_forensics.why.texts.files.put_back import same_version

    package, part = "transformer-engine", seen.mention.detail.get("of_te", "")
    version = version_of(seen, package)
    wanted = f'"{package}[pytorch]=={version}"' if version else same_version(seen, package)
    wanted = wanted.replace(f'"{package}==', f'"{package}[pytorch]==')
    what = "its part for torch, transformer_engine_torch (what the extra [pytorch] brings),"
    if part and part not in ("torch", "pytorch"):
        what = f"its compiled part {part}"
        if part in ("core", "common"):
            what = "its compiled core (transformer_engine_cu12 or _cu13)"
    cause = (
        f"Transformer Engine is there for this Python, and {what} is not: it was not installed, "
        "was not built, or is there for another Python than the one that runs. No library failed "
        "to load."
    )
    return seen.answer(
        "damaged-file", "FA880", cause, owner=package, direction="none", confidence="high",
        help=(
            f"{seen.pip} list | grep -i transformer",
            f"{seen.pip} install --no-build-isolation {wanted}",
        ),
        notes=(
            "transformer_engine, transformer_engine_cu12 (or _cu13) and transformer_engine_torch "
            "are parts that have to be of one release; the last one is compiled on the machine, "
            "against the torch that is there: nvcc and cuDNN's headers have to be at hand.",
            *((_OF_RELEASES,) if seen.versions.get("env:NVTE_RELEASE_BUILD") == "1" else ()),
        ),
    )  # fmt: skip


def wrapped(seen: Seen) -> Answer:
    """A wrapper's message that leaves the symbol out: the file it names is the real owner."""
    package = package_in(seen)
    file = seen.mention.file or ""
    name = file.rpartition("/")[2] or "a compiled module"
    if not file and not package:
        return _only_wrapped(seen)
    cause = (
        f"The failing file is {name}"
        + (f" of {package}" if package else "")
        + "; the library that reports it only imported it. The text leaves out what was missing: "
        "most often torch was replaced after that package was built, by installing another one."
    )
    helps = [inspect_command(seen.place, ())]
    if package:
        helps = [
            inspect_package(seen, package),
            f"{seen.pip} uninstall {package}",
        ]
    return seen.answer(
        "wrong-torch", BANNER, cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps),
        notes=(
            'Paste the whole line that contains "undefined symbol": with the symbol the answer can '
            "say which torch it was built for.",
            "Where an image brought torch, hold pip to that with a constraints file (pip -c).",
        ),
    )  # fmt: skip


def _only_wrapped(seen: Seen) -> Answer:
    """A lazy import of transformers, or the like, that failed: the text ends before the cause."""
    module = seen.mention.detail.get("module", "")
    load = f"{seen.python} -c 'import {module}'"
    if "." not in module:
        load = f"{seen.python} -c 'import transformers; print(transformers.{module})'"
    plain = re.fullmatch(r"[\w.]{1,200}", module) is not None
    return seen.answer(
        "unrecognised", BANNER,
        f"The import of {module or '?'} failed on something that it imports in turn; this "
        "message hides what. The cause is the error further above in the log, or the last one of "
        "the command's output.",
        owner=None, direction="unknown", confidence="low",
        help=(load,) if plain and module else (),
        notes=("Paste the lines above it, up to the first traceback: the first error there is the "
               "cause.",),
    )  # fmt: skip


def crash(seen: Seen) -> Answer:
    """``Aborted (core dumped)``, ``Segmentation fault``: no symbol is missing."""
    package = package_in(seen) or only_named(seen)
    torch = seen.torch
    if seen.mention.detail.get("pybind11"):
        from fa_forensics.why.texts.python.python_text import pybind_crash

        return pybind_crash(seen)
    other = of_another_torch(seen, package)
    if other is not None and not seen.mention.detail.get("thrown"):
        return other
    aborted = re.search(r"abort|terminate|free|malloc|corrupt", seen.mention.line, re.IGNORECASE)
    what = "aborted" if aborted else "crashed"
    name = package or "an extension"
    cause = (
        f"The process {what} without the loader naming anything missing. A build for another torch "
        "minor release fits: every name is found, and the classes are laid out otherwise. So does "
        "a fault of its own in the program. The first command tells which build "
        f"{name if package else 'the extension'} is."
    )
    thrown = seen.mention.detail.get("thrown")
    if thrown:
        cause = (
            f'A C++ exception that nobody caught ended the process ("{thrown[:160]}"); the loader '
            "named nothing missing. Its text says what failed; a build for another torch minor "
            "release, whose classes are laid out otherwise, fits too."
        )
    notes = [
        "That all symbols are found does not mean that a file fits: names stay where layouts "
        "change.",
        "The second command says in which import or call it happens.",
    ]
    if torch is not None and _is_preview(torch):
        notes.append(
            f"torch {torch} is a build between releases: extensions for releases seldom fit."
        )
    module = _import_name(package)
    return seen.answer(
        "symbol-drift", "FA303", cause, owner=package, direction="unknown", confidence="low",
        help=(
            inspect_package(seen, package or "/path/to/the/extension.so"),
            f"{seen.python} -X faulthandler -c 'import torch, {module}'"
            if module
            else f"{seen.python} -X faulthandler SCRIPT.py",
        ),
        notes=tuple(notes),
    )  # fmt: skip


#: Errors 126 and 127 as Windows has them in English, German, French, Spanish and others.
_NOT_FOUND = lazily(
    r"module could not be found|WinError 126|找不到指定的模块|angegebene Modul|module sp.cifi"
    r"|m.dulo especificado|指定されたモジュール"
)
_NO_PROCEDURE = lazily(
    r"procedure|specified program could not"
    r"|WinError 127|指定的程序|プロシージャ|angegebene Prozedur|proc.dure sp.cifi"
    r"|proceso especificado|procedimiento especificado"
)


def windows(seen: Seen) -> Answer:
    """``DLL load failed``: a Windows library, which this tool does not read."""
    line = seen.mention.line
    if seen.mention.detail.get("entry"):
        from fa_forensics.why.texts.python.entry_point import torch_entry_point

        of_torch = torch_entry_point(seen)
        if of_torch is not None:
            return of_torch
    if (seen.mention.library or "").endswith(".so"):
        return _linux_library(seen)
    if seen.mention.detail.get("jit") and _NOT_FOUND.search(line):
        return jit_module(seen)
    cause = (
        "This is a Windows message: a .pyd or .dll did not load. This tool reads Linux libraries "
        "(ELF) alone and cannot look into that file."
    )
    if re.search(r"not a valid Win32|Win32 应用程序|WinError 193", line):
        return _not_valid(seen)
    lost = False
    if _NO_PROCEDURE.search(line):
        cause += (
            ' "The specified procedure could not be found" means that a library is there without a '
            "name that is needed: what is an undefined symbol on Linux, so most often a build for "
            "another torch."
        )
        from fa_forensics.why.texts.python.no_procedure import no_procedure

        if (of_a_wheel := no_procedure(seen, cause)) is not None:
            return of_a_wheel
    elif _NOT_FOUND.search(line):
        lost = True
        cause += (
            ' "The specified module could not be found" means that a library that the file needs '
            "is missing, seldom the file itself."
        )
    elif _FILE_OR.search(line):
        lost = True
        cause = " ".join((cause, _FILE_OR_NEEDED))
    if lost and package_in(seen) == "lmdeploy":
        from fa_forensics.why.texts.python.dll_alone import dll_of_toolkit

        if (of_toolkit := dll_of_toolkit(seen, cause)) is not None:
            return of_toolkit
    whose = seen.mention.detail.get("importer", "")
    if whose and whose != "torch" and package_in(seen) is None:
        return _of_the_importer(seen, cause, whose)
    return seen.answer(
        "windows", WINDOWS, cause, owner=package_in(seen), direction="unknown", confidence="high",
        help=(f"{seen.python} -c \"import torch; print(torch.__version__, torch.version.cuda, "
              "torch.__file__)\"",),
        notes=(*((_CUDA_DLLS,) if lost and package_in(seen) not in (None, "torch") else ()),
               "Where the name of a wheel tells its torch and CUDA, compare them with that line; "
               "where it does not, the release notes of its project tell which torch it is for. "
               "Either a wheel for the torch that is there takes its place, or that torch.",),
    )  # fmt: skip


def _of_the_importer(seen: Seen, cause: str, whose: str) -> Answer:
    """A file that no package is known for, by whose code imports it."""
    return seen.answer(
        "windows", WINDOWS,
        f"{cause} The last step of the traceback is {whose}'s: the file is one of that "
        "package, not of torch.",
        owner=whose, direction="unknown", confidence="high",
        help=(f"{seen.pip} show {whose}",
              f"{seen.python} -c \"import struct, sys; print(8 * struct.calcsize('P'), "
              "sys.executable)\""),
        notes=("Uninstall that package until pip finds none, remove what is left of its "
               "directory, and install it again for this Python (the second command prints "
               "whether it is a 32-bit or a 64-bit one).",),
    )  # fmt: skip


#: ctypes: "Could not find module 'x.pyd' (or one of its dependencies)".
_FILE_OR = lazily(r"Could\snot\sfind\smodule\s")
_FILE_OR_NEEDED = (
    "Python's words are of the file or one of its dependencies: where the file is there, a "
    "library that it needs is what is missing."
)
#: The package index has torch without CUDA alone for Windows.
_CUDA_DLLS = (
    "An extension of torch for CUDA needs torch's c10_cuda.dll and torch_cuda.dll. If this file is "
    "one and the command prints None for the CUDA (or +cpu), these are what is missing: torch is a "
    "build without CUDA, as pip "
    'takes it for Windows without an index, and pip install --force-reinstall "torch==X.Y.Z" '
    f"--index-url {TORCH_INDEX}cuNNN brings the build for CUDA (X.Y.Z and NNN as in the wheel's "
    "name)."
)


_DLL = lazily(r"[\"']([^\"'\n]{1,300}\.(?:dll|pyd))[\"']", re.IGNORECASE)


def _not_valid(seen: Seen) -> Answer:
    """``[WinError 193]``: the file is no library for this process, or is cut off."""
    found = _DLL.search(seen.mention.line)
    path = (seen.mention.library or (found[1] if found else "")).replace("\\\\", "\\")
    name = re.split(r"[\\/]", path)[-1] or "The file"
    torchs = re.search(r"[\\/]torch[\\/](?:lib|bin)[\\/]", path) is not None
    whose = seen.mention.detail.get("importer", "")
    owner = "torch" if torchs else package_in(seen) or (whose if whose != "torch" else "") or None
    cause = (
        f"{name} is no library that Windows can load into this Python. Two causes fit: it is cut "
        "off or damaged (a download or a full disk ended it; the largest files suffer first), or "
        "it is for another kind of machine (32 bit against 64). No release and no driver plays a "
        "part."
    )
    helps = [
        f"{seen.python} -c \"import struct, platform; print(8 * struct.calcsize('P'), "
        'platform.machine())"'
    ]
    if owner is not None and (wanted := pip_name(seen, owner)) is not None:
        helps.append(f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {wanted}")
    elif owner is not None:
        helps.append(f"{seen.pip} show {owner}")
    return seen.answer(
        "windows", WINDOWS, cause, owner=owner, direction="none", confidence="medium",
        help=tuple(helps),
        notes=(
            "The first command has to print 64: torch has no wheels for a 32-bit Python. Then it "
            "is the file: see that the disk has room, and install the package again without pip's "
            "cache, from the index that it came from. Where the message names a file or one of its "
            "dependencies, a DLL that it needs may be the one.",
        ),
    )  # fmt: skip


def _linux_library(seen: Seen) -> Answer:
    """A ``.so`` that is loaded under Windows: the package was made for Linux alone."""
    library = re.split(r"[\\\\/]", seen.mention.library or "")[-1]
    whose = seen.mention.detail.get("importer", "")
    package = package_of(seen.mention.library or "") or package_in(seen)
    package = package or (whose if whose not in ("", "torch") else None)
    name = package or "that package"
    first = _windows_since(package)
    helps = [f'{seen.pip} install --upgrade "{package}>={first}"'] if first else []
    helps.append(f"{seen.pip} show -f {package}" if package else f"{seen.pip} list")
    notes = [
        "The other ways are a build of it for Windows, or the whole program under WSL, where "
        "Linux libraries load.",
    ]
    if first:
        notes.insert(0, f"{name} has wheels for Windows since {first}, with .dll files.")
    return seen.answer(
        "windows", WINDOWS,
        f"{library} is a library for Linux, and Windows loads .dll and .pyd files alone: the "
        f"release of {name} that is installed was made for Linux and does not run on Windows. "
        "Neither Python nor torch nor CUDA is at fault.",
        owner=package, direction="none", confidence="high", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _windows_since(package: str | None) -> str | None:
    """The first release of a package with wheels for Windows, where that is on record."""
    from fa_forensics.rules.remedy import row_of

    row = row_of(package) if package else None
    since = row.get("windows_since") if row else None
    return str(since) if since else None


def _import_name(package: str | None) -> str | None:
    from fa_forensics.rules.remedy import row_of

    row = row_of(package) if package else None
    return str(row["import"]) if row else None


def _is_preview(version: str) -> bool:
    return bool(re.search(r"dev\d|\da0|nightly|\+git", version))


ANSWERERS: dict[str, Answerer] = {
    "stop-iteration-so": stop_iteration,
    "import-wrapper": wrapped,
    "segfault": crash,
    "abort": crash,
    "windows": windows,
    "cuda-setup-failed": no_cuda_binary,
}
