"""The runtime of an environment in lines.

Read from files, from the environment's variables and from the driver (NVML); nothing of the
environment is imported or started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.host import read_driver_files, read_host
from fa_forensics.facts.library_version import newest_version
from fa_forensics.facts.package import info_directories, read_distribution
from fa_forensics.facts.system_releases import brings
from fa_forensics.facts.torch_archs import torch_archs
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, RUNTIME, WRONG, Line
from fa_forensics.resolve.environment_process import open_linker, torch_of_another_machine
from fa_forensics.resolve.link import Linker
from fa_forensics.rules import runtime as rules
from fa_forensics.runtime.builds import toolkit_lines, variable_lines
from fa_forensics.runtime.driver import driver_lines, gpu_lines, read_driver, why_no_gpu
from fa_forensics.runtime.line import line_of

#: Libraries of the system whose versions decide what can be loaded: soname, prefix, title.
_SYSTEM = (
    ("libc.so.6", "GLIBC_", "glibc"),
    ("libstdc++.so.6", "GLIBCXX_", "libstdc++"),
)


def runtime_lines(environment: Environment, environ: Mapping[str, str]) -> tuple[Line, ...]:
    """Everything below the packages, one line each; what could not be looked at is one too."""
    try:
        linker: Linker | None = open_linker(environment)
        problem = ""
    except ForensicsError as error:
        linker, problem = None, error.message
    if linker is None:
        return tuple(_lines(environment, environ, None, problem))
    with closing(linker):
        return tuple(_lines(environment, environ, linker, problem))


def _lines(
    environment: Environment, environ: Mapping[str, str], linker: Linker | None, problem: str
) -> Iterator[Line]:
    files = read_driver_files()
    driver, gpus, asked = read_driver(files, linker)
    yield from _torch(environment, gpus, linker)
    yield _python(environment)
    yield from _system_libraries(linker, problem)
    yield from _host(environ)
    yield from driver_lines(environment, driver, files, asked)
    yield from gpu_lines(gpus, environ, files, why_no_gpu(driver, files, asked))
    yield from toolkit_lines(environment, environ)
    has_driver = driver.version is not None or files.present
    yield from variable_lines(environment, environ, linker, gpus, has_driver)


def _recorded_torch(environment: Environment) -> str | None:
    """The version of torch that metadata names, whether or not its files are there."""
    for site in environment.site_dirs:
        for info in info_directories(site):
            if os.path.basename(info).startswith("torch-"):
                found = read_distribution(info)
                if found is not None and found.version:
                    return found.version
    return None


def _torch(
    environment: Environment, gpus: tuple[Gpu, ...], linker: Linker | None
) -> Iterator[Line]:
    """Torch, and whether its own libraries would let it be imported."""
    torch = environment.torch
    finding = rules.no_torch(environment)
    if finding is not None:
        finding = rules.no_torch(environment, _recorded_torch(environment))
    if torch is None:
        assert finding is not None
        yield line_of("torch", finding.title, finding, {"version": None})
        return
    built = f"CUDA {torch.cuda}" if torch.cuda else "without CUDA"
    if torch.hip:
        built = f"ROCm {torch.hip}"
    text = f"{torch.version}, {built}, {torch.cxx11_abi} strings, {torch.path}"
    machine = environment.machine
    archs = torch_archs(torch.release, torch.cuda, machine) if torch.cuda else None
    if "+" in torch.version and not torch.version.partition("+")[2].startswith("cu"):
        archs = None  # a build of somebody's own: the table is of torch's own wheels
    facts: dict[str, object] = {
        "version": torch.version,
        "release": torch.release,
        "cuda": torch.cuda,
        "hip": torch.hip,
        "git_version": torch.git_version,
        "cxx11_abi": torch.cxx11_abi,
        "path": torch.path,
        "editable": torch.editable,
        "archs": None if archs is None else list(archs),
    }
    finding = finding or rules.not_importable(environment, linker.problems if linker else ())
    finding = finding or rules.torch_without_gpu(environment, gpus, archs)
    foreign = None if linker is None else torch_of_another_machine(environment, linker)
    broken = None if linker is None else foreign or _broken(linker)
    facts["importable"] = None if linker is None else broken is None and not linker.problems
    if finding is None and broken is not None:
        see = "" if foreign else " (see library copies)"
        text += f"; it cannot be imported: {broken}{see}"
        yield Line(RUNTIME, "torch", WRONG, text, None, (), facts)
    else:
        yield line_of("torch", text, finding, facts)
    for other in environment.other_torches:
        yield Line(RUNTIME, "torch", NOTE, f"another torch lies at {other}; it is not imported")


def _broken(linker: Linker) -> str | None:
    """The first thing that the loader would stop at while torch is imported, or None."""
    for loaded in linker.torch_objects:
        for miss in loaded.missing:
            return miss.refusal or f"{miss.soname} is not found"
    return next((row.problem for row in linker.shortfalls), None)


def _python(environment: Environment) -> Line:
    abi = "cp" if environment.implementation == "cpython" else "pp"
    tag = f"{abi}{environment.version_short.replace('.', '')}{environment.abiflags}"
    kind = "conda" if environment.is_conda else "venv" if environment.is_venv else "no venv"
    name = "CPython" if abi == "cp" else "PyPy"
    text = f"{name} {environment.version} ({tag}), {environment.machine}, {kind}, "
    facts = {
        "version": environment.version,
        "implementation": environment.implementation,
        "abi_tag": tag,
        "machine": environment.machine,
        "kind": kind,
        "path": environment.python,
        "real_path": environment.python_real,
        "base_prefix": environment.base_prefix,
    }
    return Line(RUNTIME, "python", OK, text + environment.python, None, (), facts)


def _system_libraries(linker: Linker | None, problem: str) -> Iterator[Line]:
    """glibc and libstdc++ as this process would have them, with what first brings them."""
    for soname, prefix, title in _SYSTEM:
        if linker is None:
            yield Line(RUNTIME, title, COULD_NOT_LOOK, problem)
            continue
        loaded = linker.process.find_loaded(soname)
        if loaded is None:
            text = f"{soname} is not loaded by the interpreter or by torch"
            yield Line(RUNTIME, title, COULD_NOT_LOOK, text)
            continue
        version = newest_version(loaded.dynamic, prefix)
        if version is None:
            text = f"{loaded.path} defines no version that begins with {prefix}"
            yield Line(RUNTIME, title, COULD_NOT_LOOK, text)
            continue
        by = brings(f"{prefix}{version}")
        since = f", first in {by}" if by and title != "glibc" else ""
        shown = version if title == "glibc" else f"{prefix}{version}"
        facts = {"version": version, "symbol_version": f"{prefix}{version}", "path": loaded.path}
        yield Line(RUNTIME, title, OK, f"{shown}, {loaded.path}{since}", None, (), facts)


def _host(environ: Mapping[str, str]) -> Iterator[Line]:
    host = read_host(environ)
    facts: dict[str, object] = {
        "distribution": host.distribution,
        "distribution_id": host.distribution_id,
        "kernel": host.kernel,
    }
    name = host.distribution or "a system without os-release"
    yield Line(RUNTIME, "system", NOTE, f"{name}, Linux {host.kernel}", None, (), facts)
    memory = f"{host.memory_bytes / (1 << 30):.0f} GiB" if host.memory_bytes else "unknown memory"
    cpu = host.cpu or "a CPU that /proc/cpuinfo does not name"
    text = f"{cpu}, {host.cores} cores for this process, {memory}"
    facts = {
        "model": host.cpu,
        "features": list(host.cpu_features),
        "cores": host.cores,
        "memory_bytes": host.memory_bytes,
    }
    yield Line(RUNTIME, "cpu", NOTE, text, None, (), facts)
    inside = host.container is not None
    text = f"in a container: {host.container} ({host.container_by})" if inside else "in none"
    facts = {"container": host.container, "shown_by": host.container_by}
    yield Line(RUNTIME, "container", NOTE, text, None, (), facts)
