"""Small environments on disk for tests: interpreters, torch installations, distributions.

The interpreter is a real ELF program of a few KB that exports ``Py_BytesMain``, as a Python
with its library inside does; libc10.so is a real shared object that defines the given names.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

#: Names of c10 as PyPI's torch 2.4.0 (pre-cxx11) and 2.13.0 (cxx11) define them.
PRE_CXX11_ERROR = "_ZN3c105ErrorC1ENS_14SourceLocationESs"
CXX11_ERROR = (
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)

WHEEL_NAME = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


@functools.cache
def _compiled(kind: str, source: str, options: tuple[str, ...]) -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc) on PATH")
    with tempfile.TemporaryDirectory() as scratch:
        code, result = Path(scratch, "a.c"), Path(scratch, kind)
        code.write_text(source)
        subprocess.run(
            [compiler, "-w", "-o", str(result), str(code), *options], check=True, timeout=60
        )
        return result.read_bytes()


def interpreter_bytes(version: str | None = None, loader: str | None = None) -> bytes:
    """An ELF program that looks like a Python of ``version`` and asks for ``loader``."""
    constant = f'const char text[] = "\\0" "{version}";' if version else ""
    source = f"int Py_BytesMain(int c, char **v) {{ return 1; }} {constant}\n"
    source += "int main(int c, char **v) { return Py_BytesMain(c, v); }"
    options = ["-rdynamic"]
    if loader:
        options.append(f"-Wl,--dynamic-linker={loader}")
    return _compiled("python", source, tuple(options))


def shared_object(defines: tuple[str, ...] = (), needs: tuple[str, ...] = ()) -> bytes:
    """A shared object with functions of the given (mangled) names, defined and undefined."""
    lines = [f'void d{i}(void) __asm__("{n}"); void d{i}(void) {{}}' for i, n in enumerate(defines)]
    lines += [f'void u{i}(void) __asm__("{name}");' for i, name in enumerate(needs)]
    calls = " ".join(f"u{i}();" for i in range(len(needs)))
    lines.append(f"void all_calls(void) {{ {calls} }}")
    return _compiled("lib.so", "\n".join(lines), ("-shared", "-fPIC", "-nostdlib"))


def make_prefix(
    prefix: Path,
    short: str = "3.11",
    version: str | None = None,
    loader: str | None = None,
    library: str = "lib",
) -> Path:
    """An installed Python: bin/python3.11 with its links, lib/python3.11/os.py; its binary."""
    binary = prefix / "bin" / f"python{short}"
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_bytes(interpreter_bytes(version, loader))
    binary.chmod(0o755)
    for name in ("python3", "python"):
        (prefix / "bin" / name).symlink_to(binary.name)
    stdlib = prefix / library / f"python{short}"
    stdlib.mkdir(parents=True, exist_ok=True)
    (stdlib / "os.py").write_text("")
    return binary


def make_venv(
    prefix: Path, base: Path, short: str = "3.11", system_site: bool = False, extra: str = ""
) -> Path:
    """A virtual environment on ``base`` (the base's binary); its site-packages."""
    site = prefix / "lib" / f"python{short}" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(base)
    (prefix / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = {str(system_site).lower()}\n{extra}"
    )
    return site


def make_torch(
    site: Path, version: str = "2.4.0+cu121", cuda: str | None = "12.1", pre_cxx11: bool = True
) -> Path:
    """A torch as far as its files are read: version.py, lib/libc10.so, dist-info."""
    torch = site / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").write_text("raise RuntimeError('torch must never be imported')\n")
    (torch / "version.py").write_text(
        "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'hip']\n"
        f"__version__ = {version!r}\ndebug = False\ncuda: Optional[str] = {cuda!r}\n"
        "git_version = 'e4ee3be4063b7c430974252fdf7db42273388d86'\nhip: Optional[str] = None\n"
    )
    name = PRE_CXX11_ERROR if pre_cxx11 else CXX11_ERROR
    (torch / "lib" / "libc10.so").write_bytes(shared_object((name,)))
    if cuda:
        (torch / "lib" / "libc10_cuda.so").write_bytes(shared_object())
    make_distribution(site, "torch", version, ["torch/__init__.py"], requires=["filelock"])
    return torch


def make_distribution(
    site: Path,
    name: str,
    version: str,
    files: list[str] | None,
    requires: list[str] | None = None,
    **more: str,
) -> Path:
    """A dist-info directory; ``files`` go into RECORD (None: no RECORD), ``more`` as files."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires or []]
    lines += ["Requires-Python: >=3.9", "", "Name: not-a-header", "Requires-Dist: prose"]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "INSTALLER").write_text("pip\n")
    if files is not None:
        rows = [f'"{file}",,' if "," in file else f"{file},sha256=0,1" for file in files]
        (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    for file, text in more.items():
        (info / file.replace("__", ".")).write_text(text)
    return info


def make_wheel(path: Path, members: dict[str, bytes], name: str = WHEEL_NAME) -> Path:
    """A wheel with the given members and the usual metadata."""
    file = path / name
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(
            "flash_attn-2.5.8.dist-info/METADATA",
            "Name: flash-attn\nVersion: 2.5.8+cu122torch2.3cxx11abiFALSE\n"
            "Requires-Dist: torch==2.3.0\nRequires-Python: >=3.8\n\nRequires-Dist: prose\n",
        )
        archive.writestr(
            "flash_attn-2.5.8.dist-info/WHEEL",
            "Wheel-Version: 1.0\n\nTag: cp311-cp311-manylinux2014_aarch64\n",
        )
        archive.writestr("flash_attn-2.5.8.dist-info/RECORD", "x.so,,\n")
    return file


def environ(**values: str | os.PathLike[str]) -> dict[str, str]:
    """An environment of variables with a home directory that holds nothing."""
    return {"HOME": "/nonexistent", "PATH": os.defpath, **{k: str(v) for k, v in values.items()}}
