"""Facts as plain mappings, in the words of the JSON contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa_forensics.facts.elf.facts import ElfFacts
    from fa_forensics.facts.environment import Environment
    from fa_forensics.facts.torch_install import Torch
    from fa_forensics.reading import FileFacts
    from fa_forensics.resolve.resolution import Library, Resolution


def environment_view(environment: Environment) -> dict[str, object]:
    """The environment as the ``environment`` object of a report."""
    torch = environment.torch
    return {
        "python": environment.python,
        "python_version": environment.version,
        "implementation": environment.implementation,
        "prefix": environment.prefix,
        "found_by": environment.found_by,
        "machine": environment.machine,
        "libc": environment.libc,
        "site_dirs": list(environment.site_dirs),
        "torch": None
        if torch is None
        else {
            "version": torch.version,
            "release": torch.release,
            "cuda": torch.cuda,
            "hip": torch.hip,
            "path": torch.path,
            "cxx11_abi": torch.cxx11_abi,
            "has_cuda_libraries": torch.has_cuda_libs,
        },
        "torch_problem": environment.torch_problem,
        "other_torches": list(environment.other_torches),
        "variables": dict(environment.variables),
        "notes": list(environment.notes),
    }


def elf_view(elf: ElfFacts, resolution: Resolution | None) -> dict[str, object]:
    """The file's own facts as the ``elf`` object of a target."""
    return {
        "machine": elf.machine,
        "class": elf.elf_class,
        "type": elf.type,
        "osabi": elf.osabi,
        "soname": elf.soname,
        "needed": list(elf.needed),
        "rpath": list(elf.rpath),
        "runpath": list(elf.runpath),
        "build_id": elf.build_id,
        "compilers": list(elf.compilers),
        "python_tag": elf.python_tag,
        "module_name": elf.module_name,
        "init_modules": list(elf.init_modules),
        "size_bytes": elf.size,
        "tls_size_bytes": elf.tls_size,
        "static_tls": elf.static_tls,
        "executable_stack": elf.executable_stack,
        "section_headers": elf.has_section_headers,
        "versions_needed": [
            {"file": file, "version": version, "weak": weak}
            for file, version, weak in elf.versions_needed
        ],
        "undefined_count": len(elf.undefined),
        "defined_count": len(elf.defined),
        "libraries": []
        if resolution is None
        else [_library_view(library) for library in resolution.libraries],
        "first_failure": None if resolution is None else resolution.first_failure,
        "problems": list(elf.problems),
    }


def provenance_view(file: FileFacts, torch: Torch | None) -> dict[str, object]:
    """What built the file, beside what torch brings and what the driver supports."""
    coverage = file.fitting.coverage or {}
    driver = coverage.get("driver")
    return {
        "toolkits": [
            {"release": t.release, "tool": t.tool, "source": t.source, "archs": list(t.archs)}
            for t in file.toolkits.toolkits
        ],
        "ptx_isa": list(file.ptx_isas),
        "options": list(file.options),
        "compilers": list(file.elf.compilers),
        "build_paths": list(file.build_paths),
        "torch_cuda": None if torch is None else torch.cuda,
        "driver_cuda": driver.get("cuda") if isinstance(driver, Mapping) else None,
    }


def relabel(value: object, old: str, new: str) -> object:
    """The same value with one text put for another in every string it holds."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, (tuple, list)):
        return type(value)([relabel(item, old, new) for item in value])
    if isinstance(value, Mapping):
        return {key: relabel(item, old, new) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: relabel(getattr(value, f.name), old, new) for f in fields(value)}
        return replace(value, **changed)
    return value


def _library_view(library: Library) -> dict[str, object]:
    return {
        "soname": library.soname,
        "path": library.path,
        "found_by": library.found_by,
        "needed_by": library.needed_by,
        "tried": list(library.tried),
        "problem": library.problem,
    }
