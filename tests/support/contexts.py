"""Facts for rules: a healthy file in a healthy environment, with what a test changes."""

from __future__ import annotations

from typing import Any

from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.flavour import Flavour
from fa_forensics.facts.package import Distribution
from fa_forensics.facts.torch_install import Torch
from fa_forensics.report import JudgedTorch, ReleaseFacts, Skipped
from fa_forensics.resolve.explain import Missing, Sibling
from fa_forensics.resolve.nearest import OTHER_FLAVOUR, OTHER_PARAMETERS, Near
from fa_forensics.resolve.resolution import (
    Binding,
    DependencyMiss,
    Library,
    Resolution,
    VersionMiss,
)
from fa_forensics.rules.base import Context, GpuFacts

PATH = "/x/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
LIB = "/env/lib/python3.11/site-packages/torch/lib"


def elf(**changes: Any) -> ElfFacts:
    """The facts of a healthy flash_attn_2_cuda for CPython 3.11."""
    facts: dict[str, Any] = {
        "path": PATH, "size": 1000, "expected_size": 1000, "loaded_size": 900,
        "elf_class": 64, "machine": "x86_64",
        "type": "shared object", "osabi": 0, "soname": None, "needed": ("libc10.so",),
        "rpath": (), "runpath": (), "build_id": None, "compilers": (),
        "module_name": "flash_attn_2_cuda", "python_tag": "cp311",
        "init_modules": ("flash_attn_2_cuda",), "executable_stack": False, "tls_size": 0,
        "static_tls": False, "has_section_headers": True, "has_dynamic": True, "symbols": (),
        "versions_needed": (), "problems": (),
    }  # fmt: skip
    return ElfFacts(**{**facts, **changes})


def torch(**changes: Any) -> Torch:
    """torch 2.4.0+cu121 from PyPI."""
    facts: dict[str, Any] = {
        "path": LIB.removesuffix("/lib"), "version": "2.4.0+cu121", "release": "2.4.0",
        "cuda": "12.1", "hip": None, "git_version": None, "lib_dir": LIB, "has_cuda_libs": True,
        "cxx11_abi": "pre-cxx11", "cxx11_evidence": "libc10.so defines …Ss", "requires": (),
        "editable": False,
    }  # fmt: skip
    return Torch(**{**facts, **changes})


def environment(**changes: Any) -> Environment:
    """A virtual environment of CPython 3.11 with that torch."""
    facts: dict[str, Any] = {
        "python": "/env/bin/python", "python_real": "/usr/bin/python3.11", "version": "3.11.7",
        "version_short": "3.11", "abiflags": "", "implementation": "cpython", "prefix": "/env",
        "base_prefix": "/usr", "found_by": "--python", "is_venv": True, "is_conda": False,
        "machine": "x86_64", "libc": "glibc", "interpreter_loader": "/lib64/ld-linux-x86-64.so.2",
        "site_dirs": ("/env/lib/python3.11/site-packages",), "torch": torch(),
        "torch_problem": None, "other_torches": (), "variables": {}, "notes": (),
    }  # fmt: skip
    return Environment(**{**facts, **changes})


def resolution(**changes: Any) -> Resolution:
    """Everything found."""
    facts: dict[str, Any] = {
        "libraries": (Library("libc10.so", PATH, f"{LIB}/libc10.so", "already loaded"),),
        "bindings": (binding("_ZNK3c105Error4whatEv", provider=f"{LIB}/libc10.so"),),
        "version_misses": (), "dependency_misses": (), "scope": (f"{LIB}/libc10.so",),
        "loaded_with_torch": (f"{LIB}/libc10.so",), "torch_misses": (), "problems": (),
        "first_failure": None,
    }  # fmt: skip
    return Resolution(**{**facts, **changes})


def lost(*sonames: str, problem: str | None = None) -> Resolution:
    """A resolution in which these libraries are not found."""
    tried = ("RUNPATH /x", "/etc/ld.so.cache", "default directory /lib")
    return resolution(
        libraries=tuple(Library(s, PATH, None, "not found", tried, problem) for s in sonames),
        first_failure=f"{sonames[0]}: cannot open shared object file: No such file or directory",
    )


def binding(symbol: str, order: int = 5, version: str | None = None, provider: str | None = None,
            bind: str = "global") -> Binding:  # fmt: skip
    """An undefined symbol, missing unless a provider is given."""
    return Binding(7, symbol, version, None, bind, order, provider, None, ".dynsym[7]")


def missing(symbol: str, demangled: str, owner: str, order: int = 5, absent: str | None = None,
            near: tuple[Near, ...] = (), sought: bool = True) -> Missing:  # fmt: skip
    """A missing symbol with what stands in its place."""
    return Missing(binding(symbol, order), demangled, owner, absent, near, sought)


SET_DEVICE = missing(
    "_ZN3c104cuda9SetDeviceEi", "c10::cuda::SetDevice(int)", "torch/c10_cuda", 9,
    near=(Near("_ZN3c104cuda9SetDeviceEa", "c10::cuda::SetDevice(signed char)",
               f"{LIB}/libc10_cuda.so", OTHER_PARAMETERS),),
)  # fmt: skip
NEW_STRING = missing(
    "_ZNK5torch8autograd4Node4nameB5cxx11Ev", "torch::autograd::Node::name[abi:cxx11]() const",
    "torch/torch_cpu", 3,
    near=(Near("_ZNK5torch8autograd4Node4nameEv", "torch::autograd::Node::name() const",
               f"{LIB}/libtorch_cpu.so", OTHER_FLAVOUR),),
)  # fmt: skip

OLD = Flavour("pre-cxx11", (), ("_ZN3c105ErrorC2ENS_14SourceLocationESs",))
NEW = Flavour("cxx11", ("_ZNK5torch8autograd4Node4nameB5cxx11Ev",), ())
MIXED = Flavour("cxx11", NEW.cxx11_symbols, OLD.old_symbols)
NO_STRING = Flavour("not-applicable", (), ())

__all__ = ["DependencyMiss", "Sibling", "Skipped", "VersionMiss"]


def distribution(name: str = "flash-attn", version: str = "2.5.8", *requires: str) -> Distribution:
    """An installed distribution with its requirements."""
    return Distribution(name, version, requires, None, (), "pip", None, "/env/METADATA", None)


KNOWN = ("2.1.0", "2.2.0", "2.3.0", "2.4.0", "2.4.1", "2.5.0", "2.6.0")


def releases(**changes: Any) -> ReleaseFacts:
    """A file that links with torch 2.4 and 2.5, built on 2.4."""
    facts: dict[str, Any] = {
        "machine": "x86_64", "known": KNOWN, "links_with": ("2.4.0", "2.4.1", "2.5.0"),
        "links_text": "2.4.0 - 2.5.0", "symbols": 60,
        "missing": (
            (("2.1.0", "2.2.0", "2.3.0"), ("_ZN3c104cuda9SetDeviceEa",)),
            (("2.6.0",), ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "_ZN2at4_ops3addE")),
        ),
        "built_on": ("2.4.0", "2.4.1"), "built_text": "2.4.0 - 2.4.1", "best": "2.4.0",
        "evidence": ("c10::f() came in 2.4.0", "c10::g() went in 2.5.0"), "confidence": "high",
        "package_links": ("2.4.0", "2.4.1", "2.5.0"), "package_text": "2.4.0 - 2.5.0",
    }  # fmt: skip
    return ReleaseFacts(**{**facts, **changes})


#: ``--torch 2.6.0`` where nothing of it is installed.
ASKED = JudgedTorch("2.6.0", "2.6.0+cu124", "2.6.0", "12.4", "pre-cxx11", "table", "the wheel")


def gpu(**changes: Any) -> GpuFacts:
    """Three images, read without trouble, no witness asked."""
    facts: dict[str, Any] = {
        "image_count": 3, "found_by": ".nv_fatbin", "problems": (), "witness_status": None,
        "witness_detail": "", "witness_differences": (),
    }  # fmt: skip
    return GpuFacts(**{**facts, **changes})


def context(**changes: Any) -> Context:
    """All is well; ``changes`` replace fields of the context."""
    facts: dict[str, Any] = {
        "name": "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "elf": elf(),
        "environment": environment(), "resolution": resolution(), "skips": (), "missing": (),
        "siblings": (), "flavour": OLD, "distribution": None, "stable_abi": False,
        "uses_torch": True, "gpu": gpu(),
    }  # fmt: skip
    return Context(**{**facts, **changes})
