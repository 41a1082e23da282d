"""The Python environment that a file is judged in, read from files and never started.

Which one: ``--python``, else VIRTUAL_ENV, else CONDA_PREFIX, else the interpreter that
runs this program; unless that choice has no torch and the file itself lies among the
packages of another environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from fa_forensics.errors import EnvironmentNotFound
from fa_forensics.facts.files import absolute, is_denied
from fa_forensics.facts.interpreter import Interpreter, locate, python_in, read_interpreter
from fa_forensics.facts.site_dirs import site_directories
from fa_forensics.facts.torch_install import Torch, find_torch
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

__all__ = ["Environment", "Torch", "find_environment"]

BY_OPTION = "--python"
BY_FILE = "the file lies in it"
BY_RUNNING = "the running interpreter"

#: The variables that change what is found, loaded or computed, or how a file is built. What
#: those that change numbers do, and who says so, is in data/numerics.json.
VARIABLES = (
    "CONDA_PREFIX", "CUBLASLT_WORKSPACE_SIZE", "CUBLAS_WORKSPACE_CONFIG", "CUDA_HOME",
    "CUDA_MODULE_LOADING", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "FLASH_ATTENTION_FORCE_BUILD",
    "FLASH_ATTENTION_SKIP_CUDA_BUILD", "FLASH_ATTN_CUDA_ARCHS", "GLIBC_TUNABLES", "LD_AUDIT",
    "LD_BIND_NOW", "LD_DEBUG", "LD_LIBRARY_PATH", "LD_PRELOAD", "MKL_CBWR", "MKL_NUM_THREADS",
    "NCCL_ALGO", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_NVLS_ENABLE", "NCCL_PROTO",
    "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED",
    "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONUSERBASE", "ROCM_HOME",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_CUDA_ARCH_LIST", "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_EXTENSIONS_DIR", "TORCH_USE_RTLD_GLOBAL", "VIRTUAL_ENV",
)  # fmt: skip

_PACKAGES = lazily(r"^(.*)/lib(?:64)?/python(\d(?:\.\d+t?)?)/(?:site|dist)-packages/")


@dataclass(frozen=True, slots=True)
class Environment:
    """One Python environment.

    ``python`` is the executable, links not followed; ``python_real`` the file behind it.
    ``found_by`` says which rule chose it. ``machine`` is the interpreter's own
    ("x86_64"), ``libc`` "glibc", "musl" or "unknown", by its loader (PT_INTERP).
    ``site_dirs`` are the existing directories of packages in sys.path order, ``site_origins``
    how each came there (``facts.site_dirs``; empty where that was not looked at).
    ``torch_problem`` is one sentence when torch is absent or not whole. ``notes`` say what
    was left aside on the way. ``variables`` are those of ``VARIABLES`` that are set.
    """

    python: str
    python_real: str
    version: str
    version_short: str
    abiflags: str
    implementation: str
    prefix: str
    base_prefix: str
    found_by: str
    is_venv: bool
    is_conda: bool
    machine: str
    libc: str
    interpreter_loader: str | None
    site_dirs: tuple[str, ...]
    torch: Torch | None
    torch_problem: str | None
    other_torches: tuple[str, ...]
    variables: Mapping[str, str]
    notes: tuple[str, ...]
    site_origins: tuple[str, ...] = ()


def find_environment(
    python: str | None, target: str | None, environ: Mapping[str, str]
) -> Environment:
    """The environment to judge ``target`` (a path, or None) in.

    ``python`` is what --python gave: an executable, a name on PATH or a directory. Raises
    ``EnvironmentNotFound`` with one sentence when the environment asked for is not there.
    """
    if python is not None:
        return _describe(locate(python, environ), BY_OPTION, environ)
    chosen = _default(environ)
    own = _interpreter_around(target) if target else None
    if own is None or _same_place(own, chosen.python):
        return chosen
    if chosen.torch is None:
        try:
            return _describe(own, BY_FILE, environ, chosen.notes)
        except EnvironmentNotFound as error:
            note = f"the file lies in another environment, which cannot be read: {error.message}"
    else:
        note = f"the file lies in another environment; --python {own} judges it there"
    return replace(chosen, notes=(*chosen.notes, note))


def _default(environ: Mapping[str, str]) -> Environment:
    notes: list[str] = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        directory = environ.get(variable)
        if not directory:
            continue
        path = python_in(directory) if os.path.isdir(directory) else None
        if path is None:
            # A shell keeps the variable after the directory is gone; nobody asked for it.
            reason = "holds no Python"
            if is_denied(os.path.join(directory, "bin", "python")):
                reason = "this user may not look into"
            notes.append(f"{variable} is {directory}, which {reason}: not used")
            continue
        try:
            return _describe(path, variable, environ, tuple(notes))
        except EnvironmentNotFound as error:
            notes.append(f"{variable} is {directory}: {error.message}: not used")
    if not sys.executable:
        raise EnvironmentNotFound(
            "no Python environment was found: this interpreter does not know its own path",
            "name one with --python",
        )
    return _describe(sys.executable, BY_RUNNING, environ, tuple(notes))


def _describe(
    path: str, found_by: str, environ: Mapping[str, str], notes: tuple[str, ...] = ()
) -> Environment:
    running = found_by == BY_RUNNING
    interpreter = read_interpreter(path)
    if running:
        interpreter = _as_running(interpreter)
    path_entries = site_directories(interpreter, environ, running)
    directories = path_entries.directories
    found = find_torch(directories, interpreter.prefix)
    return Environment(
        python=interpreter.path,
        python_real=interpreter.real,
        version=interpreter.version,
        version_short=interpreter.version_short,
        abiflags=interpreter.abiflags,
        implementation=interpreter.implementation,
        prefix=interpreter.prefix,
        base_prefix=interpreter.base_prefix,
        found_by=found_by,
        is_venv=interpreter.is_venv,
        is_conda=any(
            os.path.isdir(os.path.join(prefix, "conda-meta"))
            for prefix in {interpreter.prefix, interpreter.base_prefix}
        ),
        machine=interpreter.machine,
        libc=interpreter.libc,
        interpreter_loader=interpreter.loader,
        site_dirs=directories,
        torch=found.torch,
        torch_problem=found.problem,
        other_torches=found.others,
        variables={name: environ[name] for name in VARIABLES if environ.get(name) is not None},
        notes=notes + path_entries.notes,
        site_origins=path_entries.origins,
    )


def _as_running(interpreter: Interpreter) -> Interpreter:
    """The same with what this very process knows of itself."""
    return replace(
        interpreter,
        version=".".join(str(part) for part in sys.version_info[:3]),
        version_short=".".join(str(part) for part in sys.version_info[:2]),
        abiflags=sys.abiflags,
        implementation=sys.implementation.name,
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
    )


def _interpreter_around(target: str) -> str | None:
    """The interpreter of the environment among whose packages a file lies, or None."""
    whole = absolute(target)
    if not os.path.isabs(whole):
        return None
    for path in dict.fromkeys((whole, os.path.realpath(whole))):
        found = _PACKAGES.match(path + "/")
        if not found:
            continue
        prefix, version = found.groups()
        # Debian keeps what pip installs below /usr/local, beside the Python of /usr.
        for place in (prefix, os.path.dirname(prefix)):
            interpreter = python_in(place, version)
            if interpreter:
                return interpreter
    return None


def _same_place(first: str, second: str) -> bool:
    """Whether two executables stand in one directory: a venv's python and its python3."""
    return os.path.realpath(os.path.dirname(first)) == os.path.realpath(os.path.dirname(second))
