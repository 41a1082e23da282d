"""An environment whose torch, cuSPARSE and nvJitLink are tiny, and load as the real ones do.

libtorch_global_deps needs libcusparse by RPATH; libcusparse needs names of libnvJitLink,
which it finds by RUNPATH, so that LD_LIBRARY_PATH goes before it: the layout of torch 2.4's
wheels. ``real_load`` is the oracle: a real dlopen in a child.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.cuda_wheels import compiled, library
from support.oracles import clean_environment
from trees import make_distribution, make_prefix, make_torch, make_venv

VERSION_12 = "libnvJitLink.so.12"
NEWER = ("__nvJitLinkCreate_12_0", "__nvJitLinkCreate_12_1", "__nvJitLinkAddData_12_1")
OLDER = ("__nvJitLinkCreate_12_0",)


@dataclass(frozen=True, slots=True)
class Tree:
    """``prefix`` is the environment, ``old`` a directory with the older nvJitLink."""

    prefix: Path
    site: Path
    old: Path

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return str(self.prefix / "bin" / "python")

    @property
    def nvjitlink(self) -> Path:
        """The environment's own copy."""
        return self.site / "nvidia" / "nvjitlink" / "lib" / VERSION_12

    @property
    def global_deps(self) -> Path:
        """What `import torch` opens first."""
        return self.site / "torch" / "lib" / "libtorch_global_deps.so"


def nvjitlink(names: Sequence[str]) -> Path:
    """A libnvJitLink that exports these names."""
    return library(VERSION_12, {VERSION_12: tuple(names)})


def needing(
    soname: str, calls: Sequence[str], needs: Sequence[Path], path: str, flag: str, own: str = ""
) -> Path:
    """A library that calls functions of others, with an RPATH or a RUNPATH."""
    source = "".join(f"int {name}(void);\n" for name in calls)
    body = " + ".join(f"{name}()" for name in calls) or "0"
    source += f"int use_{soname.split('.')[0]}(void) {{ return {body}; }}\n{own}"
    flags = [f"-Wl,{file}" for file in needs]
    flags += [f"-Wl,-soname,{soname}", f"-Wl,{flag},-rpath,{path}", "-Wl,--no-as-needed"]
    return compiled(source, "", tuple(flags))


def build(top: Path, own: Sequence[str] = NEWER, pin: str = "12.1.105") -> Tree:
    """The environment, its nvJitLink with the names of ``own``."""
    base = make_prefix(top / "base")
    site = make_venv(top / "env", base)
    torch = make_torch(site, "2.4.0+cu121", "12.1")
    tree = Tree(top / "env", site, top / "old")
    for directory, names in ((tree.nvjitlink.parent, own), (tree.old, OLDER)):
        directory.mkdir(parents=True)
        shutil.copy(nvjitlink(names), directory / VERSION_12)
    full = nvjitlink(NEWER)
    cusparse = site / "nvidia" / "cusparse" / "lib" / "libcusparse.so.12"
    cusparse.parent.mkdir(parents=True)
    runpath, rpath = "$ORIGIN/../../nvjitlink/lib", "$ORIGIN/../../nvidia/cusparse/lib"
    built = needing("libcusparse.so.12", NEWER[1:], [full], runpath, "--enable-new-dtags")
    shutil.copy(built, cusparse)
    deps = needing(
        "libtorch_global_deps.so", ["use_libcusparse"], [built], rpath, "--disable-new-dtags"
    )
    shutil.copy(deps, tree.global_deps)
    shutil.copy(
        needing("_C.so", [], [], "$ORIGIN/lib", "--disable-new-dtags"), torch / "_C.cpython-311.so"
    )
    make_distribution(site, "nvidia-nvjitlink-cu12", pin, [f"nvidia/nvjitlink/lib/{VERSION_12}"])
    return tree


def real_load(path: Path, **variables: str) -> str:
    """What the real loader says when this file is opened at once; "" when it loads."""
    code = "import ctypes, sys\ntry:\n ctypes.CDLL(sys.argv[1])\nexcept OSError as e:\n print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, check=True, env=clean_environment(**variables), timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def variables(**values: str | os.PathLike[str]) -> dict[str, str]:
    """A shell's variables with nothing of this machine's toolkits in them."""
    given = {name: os.fspath(value) for name, value in values.items()}
    return {"PATH": "/nonexistent", "HOME": "/nonexistent", **given}
