"""What ``import torch`` would map, in torch's own order, without importing it.

torch/__init__.py first opens libtorch_global_deps.so with RTLD_GLOBAL; when that fails
(or, since torch 2.7, always on CUDA builds) it opens the CUDA libraries that lie in
site-packages/nvidia one by one; then it imports torch/_C, which needs libtorch_python
and with it the rest. The list of CUDA libraries is read from that torch's own
``__init__.py``, so it is right for every release.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from fa_forensics.errors import ForensicsError, OutOfResources
from fa_forensics.facts.files import read_bounded
from fa_forensics.patterns import lazily
from fa_forensics.resolve.process import LoadedObject, Process

STAGE = "import torch"

#: Rows of torch's list: ``'cublas': 'libcublas.so.*[0-9]'`` or ``("cublas", "libcublas…")``.
_PRELOAD = lazily(r"""["']([\w-]+)["']\s*[:,]\s*["'](lib[\w-]+\.so\.\*\[0-9\])["']""")


def load_torch(
    process: Process, torch_dir: str, site_dirs: Sequence[str], rtld_global: bool
) -> list[str]:
    """Map what ``import torch`` would map. Returns problems as sentences.

    ``rtld_global`` is true when TORCH_USE_RTLD_GLOBAL is set, which puts torch's own
    libraries into the global scope.
    """
    problems: list[str] = []
    preloads, always = _read_preloads(torch_dir, problems)
    global_deps = os.path.join(torch_dir, "lib", "libtorch_global_deps.so")
    if os.path.exists(global_deps):
        scope = _dlopen(process, global_deps, True, problems)
        missed = any(loaded.missing for loaded in scope)
        if missed or (always and process.find_loaded_prefix("libcudart.so") is not None):
            for folder, pattern in preloads:
                path = _find_preload(site_dirs, folder, pattern)
                if path is not None:
                    _dlopen(process, path, False, problems)
        if missed:
            process.retry_missing()
            _dlopen(process, global_deps, True, problems)
    extension = _torch_extension(torch_dir)
    if extension is None:
        problems.append(f"torch/_C is missing in {torch_dir}")
    else:
        _dlopen(process, extension, rtld_global, problems)
    return problems


def _dlopen(
    process: Process, path: str, global_scope: bool, problems: list[str]
) -> list[LoadedObject]:
    try:
        return process.dlopen(path, STAGE, global_scope)
    except OutOfResources:
        raise
    except ForensicsError as error:
        problems.append(error.message)
        return []


def _read_preloads(torch_dir: str, problems: list[str]) -> tuple[list[tuple[str, str]], bool]:
    """(folder, pattern) rows of torch's preload list, and whether it is always used."""
    path = os.path.join(torch_dir, "__init__.py")
    try:
        text = read_bounded(path, 4 << 20).decode("utf-8", "replace")
    except OSError as error:
        problems.append(f"cannot read {path}: {error.strerror}")
        return [], False
    rows = [(match[1], match[2]) for match in _PRELOAD.finditer(text)]
    return rows, "/proc/self/maps" in text


def _find_preload(site_dirs: Sequence[str], folder: str, pattern: str) -> str | None:
    for site in site_dirs:
        # CUDA 13 wheels share one folder, nvidia/cu13/lib, for all libraries.
        for place in (folder, "cu[0-9][0-9]"):
            found = glob.glob(os.path.join(glob.escape(site), "nvidia", place, "lib", pattern))
            if found:
                return found[0]
    return None


def _torch_extension(torch_dir: str) -> str | None:
    try:
        names = sorted(os.listdir(torch_dir))
    except OSError:
        return None
    return next(
        (
            os.path.join(torch_dir, name)
            for name in names
            if name.startswith("_C.") and name.endswith(".so")
        ),
        None,
    )
