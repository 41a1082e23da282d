"""Answers to ``GLIBCXX_3.4.30 not found``: which libstdc++ was taken, and how a newer one is."""

from __future__ import annotations

import os
import re

from fa_forensics.facts.paste.machines import conda_has
from fa_forensics.facts.system_releases import (
    brings,
    distributions,
    gcc_of,
    system_named,
    version_number,
)
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.seen import Seen, dotted_module, package_of
from fa_forensics.why.texts.files.file_text import JIT_CACHE, is_torchs, quoted

#: The environment that a file lies in: PREFIX/lib/python3.10/site-packages/...
_PREFIX = lazily(r"(?P<prefix>/[^\s:]{1,300}?)/lib/python\d[\d.]*/")
_CONDA = lazily(r"conda|miniforge|mambaforge|mamba/|/envs/")
#: The lib directory of an environment, as its Python's RPATH or another library's names it.
_LIB = lazily(r"(?P<prefix>\S{1,400})/lib/libstdc\+\+\.so\.6$")
#: Builds that a package makes at run time and keeps in a directory of its own.
_CACHE = lazily(r"(?P<folder>\S*/\.?\w{0,40}_?cache\w{0,20}/[\w.+-]+)/")

#: What was installed there, or fetched, whatever the directories above it are called.
_INSTALLED = lazily(
    r"-packages/|\.egg/|/envs/|conda|/(?:uv|pip|pypoetry|pipenv|pdm|huggingface|bazel|kernels)/"
    r"|^/(?:mnt|data|scratch|work|nfs|gpfs|lustre|home)/\w{0,20}cache"
)

_SYSTEMS = (
    "It is the system's copy, and a process has one libstdc++: the one that is loaded first "
    "serves all. Where this is a conda environment, two causes fit: libstdcxx-ng is not installed "
    "there, or the newer copy is there and the system's was loaded first (by LD_LIBRARY_PATH, or "
    "by a library that was imported before). The first command tells them apart."
)
_SYSTEMS_CONDA = (
    "It is the system's copy, and a process has one libstdc++: the one that is loaded first "
    "serves all. The text is of a conda environment, which has a copy of its own: two causes fit. "
    "It is the newer one, and the system's was loaded first (by LD_LIBRARY_PATH, or by a library "
    "that was imported before): its lib directory on LD_LIBRARY_PATH puts it first. Or "
    "libstdcxx-ng there is too old or not installed: conda install brings it. The first command "
    "tells them apart."
)
_TORCH_FIRST = (
    "The text imports torch before that module: most likely it was torch's import that loaded the "
    "system's libstdc++. With the module imported first, or with the environment's lib directory "
    "on LD_LIBRARY_PATH, the newer copy is the one."
)
_PROGRAM = (
    "YOUR_PROGRAM.py is what failed: the file is loaded by its path out of the cache, and an "
    "import of its name alone fails at any time."
)
_OLDER_COMPILER = (
    "A file compiled with an older compiler, conda's for instance, loads with the older copy too. "
    "A newer gcc (devtoolset, gcc-toolset) brings a compiler, and no newer libstdc++.so.6 for "
    "running."
)


def libstdcxx(seen: Seen, version: str, needed_by: str) -> Answer:
    """A symbol version of libstdc++ that the copy which is loaded does not have."""
    library = seen.mention.library or "libstdc++.so.6"
    first, gcc = brings(version), gcc_of(version)
    cause = f"{needed_by} needs {version}"
    cause += f", {first} or newer" if first else ""
    environment = _environment_of(library)
    system, newest = _of_the_system(seen, library, version)
    if system and environment is None:
        cause += (
            f"; the copy that is loaded, {library}, is older: that of {system} ends at {newest}."
        )
    else:
        cause += f"; the copy that is loaded, {library}, is older."
    host = seen.mention.detail.get("host") or seen.versions.get("machine", "")
    notes = [_where(library, environment)]
    if notes[0] == _SYSTEMS and _in_conda(seen):
        notes = [_SYSTEMS_CONDA]
    cured_by = seen.mention.detail.get("cured_by", "")
    if cured_by not in ("", "torch") and environment is None:
        notes = [_put_right_by(cured_by)]
    elif seen.mention.detail.get("torch_first"):
        notes.insert(0, _TORCH_FIRST)
    notes.append(_OLDER_COMPILER)
    copies = _list_copies(version)
    helps = (copies, *_newer(seen, gcc, environment))
    if not conda_has(host):
        helps, notes = (copies.replace(" $CONDA_PREFIX/lib/libstdc++.so.6", ""),), notes[1:]
        notes.insert(0, (
            f"conda-forge has nothing for {host}: a newer release of the distribution (or a "
            f"container of one) has a libstdc++ of GCC {gcc or 'that age'} or newer; else the file "
            "has to be built on this system."
        ))  # fmt: skip
    notes += other_flavour(seen)
    built = _built_here(seen)
    if built is not None:
        notes.insert(0, built)
        notes.insert(1, _PROGRAM)
    return seen.answer(
        "libstdcxx", "FA203", cause, owner="libstdc++", direction=NEWER, confidence="high",
        help=helps, notes=tuple(notes),
    )  # fmt: skip


def _put_right_by(module: str) -> str:
    """The text tells of a module whose import before all others puts it right."""
    return (
        f"By the text it loads with {module} imported first: a newer copy is there, most often "
        f"that of the conda environment, which {module} loads, and a process has one libstdc++. "
        f"Nothing is to be installed then, and {module} is not needed: with the directory of that "
        "copy before all others on LD_LIBRARY_PATH, it is the one that is loaded. The first "
        "command shows which it is."
    )


def other_flavour(seen: Seen) -> tuple[str, ...]:
    """That a wheel of the other std::string flavour is refused once this message is cured.

    Wheels of torch on the package index are pre-cxx11 up to 2.5 on x86_64 (torch_variants.json).
    """
    versions = (text for key, text in seen.versions.items() if key.startswith("pkg:"))
    tags = (re.search(r"torch(\d{1,2})\.(\d{1,3})cxx11abiTRUE", text) for text in versions)
    torch = next((found for found in tags if found is not None), None)
    if torch is None or (int(torch[1]), int(torch[2])) > (2, 5):
        return ()
    if seen.versions.get("machine") == "aarch64":
        return ()
    return (
        "The wheel that the text names is for a torch in the cxx11 flavour (cxx11abiTRUE). Torch "
        f"{torch[1]}.{torch[2]} of the package index and of pytorch.org has the other one: once "
        "libstdc++ is newer, that file misses names of torch. The wheel with cxx11abiFALSE is for "
        "that torch.",
    )


def _list_copies(version: str) -> str:
    """The newest version that each copy of libstdc++ has, of the family that is asked for."""
    family = "CXXABI_1" if version.startswith("CXXABI") else "GLIBCXX_3"
    return (
        "for f in $(ldconfig -p | grep -o '/.*libstdc++.so.6$') $CONDA_PREFIX/lib/libstdc++.so.6; "
        f'do echo $f; strings $f | grep -o "{family}[0-9.]*" | sort -V | tail -1; done'
    )


def _environment_of(library: str) -> str | None:
    """The conda environment whose own copy was loaded; None for the system's or a package's."""
    through_python = "/bin/../lib/" in library
    whole = os.path.normpath(library)
    found = _LIB.match(whole)
    if found is None or not (through_python or _CONDA.search(found["prefix"])):
        return None
    return found["prefix"]


def _where(library: str, environment: str | None) -> str:
    if environment is not None:
        return (
            f"It is the copy of the conda environment {environment}, {_found_by(library)} by "
            "its own search path before LD_LIBRARY_PATH counts, so that a newer one of the system "
            "is not even looked at: the environment's own has to be newer."
        )
    if "/lib/x86_64-linux-gnu" in library or library.startswith(("/usr/lib", "/lib")):
        return _SYSTEMS
    return (
        "The path in the message is the copy that was taken. A conda environment has a copy of its "
        "own, which goes first only where its lib directory has the name libstdc++.so.6."
    )


def _found_by(library: str) -> str:
    return "which torch finds" if "/torch/lib/" in library else "whose Python finds it"


def _kept_in_a_cache(file: str) -> bool:
    """Whether a file is one that a program compiled and keeps: none that was installed, or fetched.

    A directory cache may be a disk of a cluster's, or that of pip, uv or a hub of files.
    """
    if JIT_CACHE.search(file) is not None:
        return True
    return _CACHE.search(file) is not None and _INSTALLED.search(file) is None


def _built_here(seen: Seen) -> str | None:
    """A file that this machine compiled at run time: it can be compiled again, to fit."""
    file = seen.mention.file or ""
    if not _kept_in_a_cache(file):
        return None
    return (
        "The file was compiled on this machine, at run time, with a newer compiler than the "
        "libstdc++ that is loaded: its directory in the cache removed and CXX set to an older g++ "
        "(in a conda environment, conda's gxx_linux-64), it is built again to fit."
    )


def _newer(seen: Seen, gcc: str | None, environment: str | None) -> tuple[str, ...]:
    """Install a newer copy, and let it be found first for one run."""
    wanted = f'"libstdcxx-ng>={gcc}"' if gcc else "libstdcxx-ng"
    file = seen.mention.file or ""
    found = _PREFIX.match(file)
    run = _run(seen, file, found is not None)
    if seen.mention.detail.get("cured_by") not in (None, "", "torch") and environment is None:
        own = quoted(found["prefix"] + "/lib") if found is not None else "$CONDA_PREFIX/lib"
        own = own if "***" not in file and "..." not in own else "$CONDA_PREFIX/lib"
        return (f"LD_LIBRARY_PATH={own}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} {run}",)
    if environment is not None:
        named = re.fullmatch(r"/[\w./+@~-]+", environment) and "..." not in environment
        there = environment if named else "$CONDA_PREFIX"
        return f"conda install -p {there} -c conda-forge {wanted}", run
    if _CONDA.search(file) and "***" not in file and found is not None:
        lib = quoted(found["prefix"] + "/lib")
        return f"conda install -c conda-forge {wanted}", f"LD_LIBRARY_PATH={lib} {run}"
    if _CONDA.search(file):
        return f"conda install -c conda-forge {wanted}", f"LD_LIBRARY_PATH=$CONDA_PREFIX/lib {run}"
    if _in_conda(seen):
        return f"conda install -c conda-forge {wanted}", f"LD_LIBRARY_PATH=$CONDA_PREFIX/lib {run}"
    return (
        f"conda create -y -p ~/newer-libstdcxx -c conda-forge {wanted}",
        f"LD_LIBRARY_PATH=~/newer-libstdcxx/lib {run}",
    )


def _in_conda(seen: Seen) -> bool:
    """Whether the text says that its Python or its torch is conda's."""
    told = seen.place.told
    by = (told.torch_by if told is not None else "") or seen.versions.get("torch_by", "")
    own = re.search(r"\.post\d{3}", seen.torch or "") is not None  # conda-forge's way to number
    return own or "flag:conda" in seen.versions or "conda" in by


def _of_the_system(seen: Seen, library: str, version: str) -> tuple[str, str]:
    """("Ubuntu 20.04", "GLIBCXX_3.4.28"): its last version, where the text names the system."""
    system = system_named(seen.versions.get("os", ""))
    if system is None or not library.startswith(("/usr/lib", "/lib")):
        return "", ""
    family = version.partition("_")[0]
    newest = next((s.newest.get(family, "") for s in distributions() if s.name == system[0]), "")
    older = newest and version_number(newest) < version_number(version)
    return (system[0], f"{family}_{newest}") if older else ("", "")


def _imported(file: str) -> str:
    """What import loads the file: its module, or the package that has it; "" if neither shows."""
    module = dotted_module(file)
    if module and not module.rpartition(".")[2].startswith("lib"):
        return module
    top = re.search(r"-packages/(?:[^/]+\.egg/)?([A-Za-z]\w*)/", file)
    return top[1] if top is not None else ""


def _run(seen: Seen, file: str, of_environment: bool) -> str:
    """What to run to see whether it helped."""
    if file.startswith("/") and not re.search(r"[.]so\b|-packages/", file):
        return f"{quoted(file)} --version"  # a program
    if _kept_in_a_cache(file):
        return " ".join((seen.python, "YOUR_PROGRAM.py"))  # no import by name reaches such a file
    module = _imported(file) or (seen.module if of_environment else "")
    told = seen.mention.detail.get("import", "")
    if not file and re.fullmatch(r"[A-Za-z]\w*(?:\.\w{1,60}){0,5}", told):
        module = told
    own = re.search(r"-packages/_\w+\.[^/]*$", file) is not None  # a module without a package
    if (
        not re.fullmatch(r"[A-Za-z_][\w.]*" if own else r"[A-Za-z][\w.]*", module)
        or module.startswith("lib")
        or is_torchs(file)
    ):
        module = "torch"
    # A compiled module of an extension of torch finds torch's libraries in the process alone.
    own_part = re.search(r"[.]_\w{1,40}$", module) is not None
    alone = re.search(r"-packages/[A-Za-z]\w*[.](?:cpython-\w{2,8}|abi3)[^/]*$", file) is not None
    first = package_of(file) is not None or own_part or alone
    first = first or bool(seen.mention.detail.get("torch_first"))
    if first and module != "torch":
        return f"{seen.python} -c 'import torch; import {module}'"
    return f"{seen.python} -c 'import {module}'"
