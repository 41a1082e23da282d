"""Small wheels laid out as torch's are, an index that has them, and the builder run on it."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from support import fake_index, oracles
from support.fake_index import FakeIndex
from support.material import BUILD, require

from fa_forensics.atlas.build import __main__ as command
from fa_forensics.atlas.build import index, torch

#: Every kind of name that a library can and cannot export.
LIBRARY = """
#include <string>
#include <vector>
namespace c10 {
int global_function(int n) { return n; }
int global_data = 7;
__attribute__((weak)) int weak_function() { return 1; }
__attribute__((visibility("hidden"))) int hidden_function() { return 2; }
__attribute__((visibility("protected"))) int protected_function() { return 3; }
static int local_function() { return 4; }
thread_local int per_thread = local_function();
template <typename T> struct Registry {
  static std::vector<T>& all() { static std::vector<T> kept; return kept; }
};
void add(std::string const& text) { Registry<std::string>::all().push_back(text + STRING); }
}
"""
HEADER = """#pragma once
// a_word_of_a_comment RELEASE
namespace c10 { struct Device { int index() const; }; }
TORCH_INTERNAL_ASSERT(
    true, "a_word_of_a_text");
"""
#: More than what one request fetches with the table of contents, so that the rest is asked for.
NOISE = random.Random(0).randbytes(100_000)
VERSION_PY = "__version__ = '{}'\ncuda: Optional[str] = {!r}\nhip: Optional[str] = None\n"


@cache
def library(extra: str = "") -> Path:
    """A compiled library; ``extra`` is more source, so that two releases differ."""
    require("g++")
    digest = hashlib.sha256((LIBRARY + extra).encode()).hexdigest()[:12]
    path = BUILD / "atlas-tests" / f"lib{digest}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        subprocess.run(
            ["g++", "-shared", "-fPIC", '-DSTRING="x"', "-x", "c++", "-", "-o", str(beside)],
            input=LIBRARY + extra, text=True, check=True,
        )  # fmt: skip
        beside.rename(path)
    return path


def torch_wheel(release: str, extra: str = "", requires: tuple[str, ...] = ()) -> bytes:
    """A wheel as torch's are laid out, around one small library."""
    metadata = ["Metadata-Version: 2.1", "Name: torch", f"Version: {release}"]
    metadata += [f"Requires-Dist: {line}" for line in requires]
    contents = library(extra).read_bytes()
    return fake_index.wheel(
        {
            "torch/lib/libc10.so": contents,
            "torch/lib/libtorch_python.so": b"".join(
                [contents, b"\0__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__\0"]
            ),
            "torch/lib/libgomp-a34b3233.so.1": b"not torch's own, never fetched",
            "torch/include/c10/core/Device.h": HEADER.replace("RELEASE", release).encode(),
            "torch/include/pybind11/cast.h": b"int not_of_torch;",
            "torch/bin/protoc": NOISE,
            "torch/version.py": VERSION_PY.format(f"{release}+cu121", "12.1").encode(),
            f"torch-{release}.dist-info/METADATA": "\n".join([*metadata, "", ""]).encode(),
        }
    )


def wheel_name(release: str, tags: str = "cp311-cp311-manylinux1_x86_64") -> str:
    return f"torch-{release}-{tags}.whl"


def forget() -> None:
    """Ask the index again, as a new process would."""
    for kept in (torch._torch_wheels, torch._versions_of, torch._requires_of):
        kept.cache_clear()


@contextmanager
def fake_torch_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """An empty index on this machine, which pip's own setting points to; no waiting."""
    forget()
    with fake_index.serve() as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.address)
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.delenv("PIP_CERT", raising=False)
        monkeypatch.setattr(index, "FIRST_PAUSE", 0.0)
        monkeypatch.setattr("fa_forensics.atlas.build.cuda.missing", lambda data: [])
        yield found


def build(tmp_path: Path, *arguments: str) -> int:
    """The builder's command line with its folders below tmp_path."""
    forget()
    folders = ["--data", str(tmp_path / "data"), "--records", str(tmp_path / "records")]
    return command.main([*folders, *arguments])


def files_below(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def nm_by_bind(path: Path) -> dict[str, set[str]]:
    """What nm -D --defined-only says is exported, under the record's names of the binds."""
    found: dict[str, set[str]] = {"global": set(), "weak": set(), "unique": set()}
    for letter, (name, _version, _how) in oracles.nm_rows(path, "--defined-only"):
        bind = {"u": "unique", "W": "weak", "V": "weak"}.get(letter, "global")
        found[bind].add(name)
    return found
