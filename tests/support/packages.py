"""Installed packages on disk for tests of ``env``: files with a true RECORD, as pip leaves them."""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trees import CXX11_ERROR, make_prefix, make_torch, make_venv, shared_object


@functools.cache
def linked_with_c10(*options: str) -> bytes:
    """A shared object that takes the one name of ``trees.make_torch``'s libc10.so from it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "libc10.so").write_bytes(shared_object((CXX11_ERROR,)))
        (folder / "a.c").write_text(
            f'void u(void) __asm__("{CXX11_ERROR}"); void all_calls(void) {{ u(); }}\n'
        )
        subprocess.run(
            ["gcc", "-w", "-shared", "-fPIC", "-nostdlib", "-o", str(folder / "out.so"),
             str(folder / "a.c"), f"-L{folder}", "-Wl,--no-as-needed", "-lc10", *options],
            check=True, timeout=60,
        )  # fmt: skip
        return (folder / "out.so").read_bytes()


def install(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes],
    requires: tuple[str, ...] = (),
    installer: str = "pip",
    tags: tuple[str, ...] = ("py3-none-any",),
    url: Mapping[str, object] | None = None,
) -> Path:
    """A distribution with its files; its dist-info directory."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    meta = {
        "METADATA": "\n".join(
            ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}",
             *(f"Requires-Dist: {text}" for text in requires), "", ""]),
        "WHEEL": "Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in tags),
        "INSTALLER": installer + "\n",
    }  # fmt: skip
    if url is not None:
        meta["direct_url.json"] = json.dumps(url)
    whole = {**files, **{f"{info.name}/{key}": text.encode() for key, text in meta.items()}}
    info.mkdir(parents=True, exist_ok=True)
    with open(info / "RECORD", "w", encoding="utf-8", newline="") as record:
        rows = csv.writer(record)
        for path, data in whole.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_bytes(data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            rows.writerow([path, f"sha256={digest.decode()}", len(data)])
        rows.writerow([f"{info.name}/RECORD", "", ""])
    return info


def extension() -> bytes:
    """A CUDA extension by its names, which finds all it needs in the torch of ``environment``."""
    return linked_with_c10()


def flash_attn(
    site: Path, version: str = "2.6.3", source: str | None = None, **more: object
) -> Path:
    """A flash-attn as its wheel installs it, its library tiny."""
    files = {
        "flash_attn/__init__.py": f"__version__ = {source or version!r}\n"
        "raise RuntimeError('flash_attn must never be imported')\n",
        "flash_attn/bert.py": "x = 1\n",
    }
    return install(
        site, "flash-attn", version,
        {**{path: text.encode() for path, text in files.items()},
         "flash_attn_2_cuda.so": extension()},
        requires=("torch",), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def environment(place: Path, cuda: str | None = "12.4") -> Path:
    """A virtual environment with a torch; its site-packages."""
    base = make_prefix(place / "base", version="3.11.7", loader="/lib64/ld-linux-x86-64.so.2")
    site = make_venv(place / "venv", base)
    torch = make_torch(site, "2.6.0", cuda, pre_cxx11=False)
    (torch / "_C.cpython-311-x86_64-linux-gnu.so").write_bytes(
        linked_with_c10("-Wl,-rpath,$ORIGIN/lib")
    )
    info = next(site.glob("torch-*.dist-info"))
    shutil.rmtree(info)
    files = {str(f.relative_to(site)): f.read_bytes() for f in torch.rglob("*") if f.is_file()}
    install(site, "torch", "2.6.0", files)
    return site


def python_of(site: Path) -> str:
    """The interpreter of the environment that a site-packages directory belongs to."""
    return str(site.parent.parent.parent / "bin" / "python")
