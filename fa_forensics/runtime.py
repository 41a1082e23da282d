"""The runtime of an environment in lines: torch, interpreter, system, driver, toolkits, variables.

Read from files, from the environment's variables and from the driver (NVML); nothing of the
environment is imported or started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.drivers import Driver, cuda_of_driver, cuda_text, parse_cuda
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.gpus import Gpu, capability_text, parse_gpu
from fa_forensics.facts.host import (
    DriverFiles,
    driver_of_library,
    read_driver_files,
    read_host,
)
from fa_forensics.facts.library_version import newest_version
from fa_forensics.facts.nvml import read_machine
from fa_forensics.facts.system_releases import brings
from fa_forensics.facts.toolkit import (
    HOME_VARIABLES,
    ON_PATH,
    USUAL,
    USUAL_PLACE,
    Toolkit,
    find_toolkits,
    read_toolkit,
)
from fa_forensics.facts.torch_archs import torch_archs
from fa_forensics.facts.variables import effects
from fa_forensics.report import Finding
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, RUNTIME, WRONG, Line
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.process import LD_LIBRARY_PATH
from fa_forensics.resolve.search import split_path
from fa_forensics.resolve.target import open_linker
from fa_forensics.rules import runtime as rules
from fa_forensics.rules.runtime import DriverFacts

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
    driver, gpus, asked = _driver(files, linker)
    yield from _torch(environment, gpus)
    yield _python(environment)
    yield from _system_libraries(linker, problem)
    yield from _host(environ)
    yield from _driver_lines(environment, driver, files, asked)
    yield from _gpus(gpus, environ, files, _why_no_gpu(driver, files, asked))
    yield from _toolkits(environment, environ)
    has_driver = driver.version is not None or files.present
    yield from _variables(environment, environ, linker, gpus, has_driver)


def _line(subject: str, text: str, finding: Finding | None, facts: Mapping[str, object]) -> Line:
    """A line in the state that its finding gives it: none is "ok", a note is "note"."""
    if finding is None:
        return Line(RUNTIME, subject, OK, text, None, (), facts)
    state = NOTE if finding.severity == "note" else WRONG
    details = () if finding.title == text else (text,)
    return Line(RUNTIME, subject, state, finding.title, finding, details, facts)


# -- torch and the interpreter --------------------------------------------------------


def _torch(environment: Environment, gpus: tuple[Gpu, ...]) -> Iterator[Line]:
    torch = environment.torch
    finding = rules.no_torch(environment)
    if torch is None:
        assert finding is not None
        yield _line("torch", finding.title, finding, {"version": None})
        return
    built = f"CUDA {torch.cuda}" if torch.cuda else "without CUDA"
    if torch.hip:
        built = f"ROCm {torch.hip}"
    text = f"{torch.version}, {built}, {torch.cxx11_abi} strings, {torch.path}"
    archs = torch_archs(torch.release, torch.cuda) if torch.cuda else None
    if "+" in torch.version and not torch.version.partition("+")[2].startswith("cu"):
        archs = None  # a build of somebody's own: the table is of torch's own wheels
    facts = {
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
    yield _line("torch", text, finding or rules.torch_without_gpu(environment, gpus, archs), facts)
    for other in environment.other_torches:
        yield Line(RUNTIME, "torch", NOTE, f"another torch lies at {other}; it is not imported")


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


# -- the system -----------------------------------------------------------------------


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
    facts = {
        "distribution": host.distribution,
        "distribution_id": host.distribution_id,
        "kernel": host.kernel,
    }
    name = host.distribution or "a system without os-release"
    yield Line(RUNTIME, "system", NOTE, f"{name}, Linux {host.kernel}", None, (), facts)
    memory = f"{host.memory_bytes / (1 << 30):.0f} GiB" if host.memory_bytes else "unknown memory"
    cpu = host.cpu or "a CPU that /proc/cpuinfo does not name"
    yield Line(
        RUNTIME, "cpu", NOTE, f"{cpu}, {host.cores} cores for this process, {memory}", None, (),
        {"model": host.cpu, "cores": host.cores, "memory_bytes": host.memory_bytes},
    )  # fmt: skip
    inside = host.container is not None
    text = f"in a container: {host.container} ({host.container_by})" if inside else "in none"
    facts = {"container": host.container, "shown_by": host.container_by}
    yield Line(RUNTIME, "container", NOTE, text, None, (), facts)


# -- the driver and the GPUs ----------------------------------------------------------


def _driver(
    files: DriverFiles, linker: Linker | None
) -> tuple[DriverFacts, tuple[Gpu, ...], str | None]:
    """(driver, GPUs, why NVML did not say all) by NVML, else by the driver's own files."""
    machine = read_machine()
    path = None if linker is None else linker.process.would_find("libcuda.so.1")
    library = None if path is None else driver_of_library(path)
    told = machine.driver or Driver(None, None)
    version, cuda, source = told.version, told.cuda, "NVML"
    if version is None:
        version = files.kernel_module or library
        source = "/proc/driver/nvidia" if files.kernel_module else f"the name of {path}"
    if cuda is None and version is not None:
        cuda = cuda_of_driver(version)
    gpus = machine.gpus or tuple(
        Gpu(name, found[0].capability)
        for name in dict.fromkeys(files.gpus)
        if (found := _known(name))
    )
    facts = DriverFacts(version, cuda, source, files.kernel_module, library, path)
    return facts, gpus, machine.problem


def _known(name: str) -> tuple[Gpu, ...]:
    try:
        return parse_gpu(name)
    except ForensicsError:
        return ()  # a GPU that the table does not know: its capability is not known either


def _driver_lines(
    environment: Environment, driver: DriverFacts, files: DriverFiles, problem: str | None
) -> Iterator[Line]:
    facts = {
        "version": driver.version,
        "cuda": None if driver.cuda is None else cuda_text(driver.cuda),
        "kernel_module": driver.kernel_module,
        "library": driver.library,
        "library_path": driver.library_path,
        "known_by": driver.source if driver.version else None,
    }
    if driver.version is None:
        if files.present or files.devices:
            text = f"there are {', '.join(files.devices) or '/proc/driver/nvidia'}, but no version"
            yield Line(RUNTIME, "driver", COULD_NOT_LOOK, text, None, (), facts)
            return
        detail = () if problem is None else (problem,)
        text = "no NVIDIA driver was found on this machine"
        yield Line(RUNTIME, "driver", NOTE, text, None, detail, facts)
        return
    supports = f"supports CUDA {cuda_text(driver.cuda)}" if driver.cuda else "of unknown CUDA"
    text = f"{driver.version}, {supports} ({driver.source}){_minor_note(environment, driver)}"
    finding = rules.driver_halves(driver) or rules.driver_too_old(environment, driver)
    yield _line("driver", text, finding, facts)


def _minor_note(environment: Environment, driver: DriverFacts) -> str:
    """What an older driver of the same CUDA major version cannot do, if it is one."""
    torch = environment.torch
    if torch is None or torch.cuda is None or driver.cuda is None:
        return ""
    wanted = parse_cuda(".".join(torch.cuda.split(".")[:2]))
    if driver.cuda >= wanted or not rules.runs_by_minor(driver, wanted):
        return ""
    return (
        f"; older than torch's CUDA {cuda_text(wanted)}: machine code runs, PTX of that release "
        "is not compiled"
    )


def _why_no_gpu(driver: DriverFacts, files: DriverFiles, problem: str | None) -> str | None:
    """Why no GPU is known though there may be one; None where there is no driver at all."""
    if driver.version is None and driver.library_path is None and not files.present:
        return None
    if problem is None:
        return "the driver sees no GPU"
    return problem.partition(", or name one with --gpu")[0]


def _gpus(
    gpus: tuple[Gpu, ...], environ: Mapping[str, str], files: DriverFiles, problem: str | None
) -> Iterator[Line]:
    """One line for each kind of GPU."""
    if not gpus and problem is None:
        text = "there is no driver, so no program can use an NVIDIA GPU here"
        yield Line(RUNTIME, "GPU", NOTE, text, None, (), {"name": None})
    elif not gpus:
        yield Line(RUNTIME, "GPU", COULD_NOT_LOOK, str(problem), None, (), {"name": None})
    hidden = rules.hidden_gpus(environ)
    for number, gpu in enumerate(gpus):
        count = files.gpus.count(gpu.name)
        memory = f", {gpu.memory_bytes / (1 << 30):.0f} GiB" if gpu.memory_bytes else ""
        facts = {
            "name": gpu.name,
            "capability": capability_text(gpu.capability),
            "memory_bytes": gpu.memory_bytes,
            "count": count or None,
        }
        times = f"{count} x " if count > 1 else ""
        text = f"{times}{gpu.name}, compute capability {capability_text(gpu.capability)}{memory}"
        yield _line("GPU", text, hidden if number == 0 else None, facts)


# -- toolkits and variables -----------------------------------------------------------


def _toolkits(environment: Environment, environ: Mapping[str, str]) -> Iterator[Line]:
    """The toolkit that a build would use is held against torch's CUDA; others are told."""
    toolkits = find_toolkits(environ)
    if not toolkits:
        text = "no CUDA toolkit: what is installed needs none, a build from source does"
        yield Line(RUNTIME, "nvcc", NOTE, text)
        return
    conflict = rules.two_toolkits(toolkits)
    for number, toolkit in enumerate(toolkits):
        finding = rules.broken_home(toolkit)
        if number == 0:
            fitting = _fitting_toolkit(environment, toolkits)
            finding = finding or rules.toolkit_mismatch(environment, toolkit, fitting) or conflict
        subject = {ON_PATH: "nvcc", USUAL: toolkit.named}.get(toolkit.named_by, toolkit.named_by)
        yield _toolkit_line(subject, toolkit, finding, number == 0)


def _fitting_toolkit(environment: Environment, toolkits: tuple[Toolkit, ...]) -> str | None:
    """A toolkit on this machine of the CUDA that torch was built with, by what it says."""
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return None
    own = ".".join(torch.cuda.split(".")[:2])
    usual = read_toolkit(f"{USUAL_PLACE}-{own}")
    return next((t.root for t in (*toolkits, usual) if t.release == own and t.nvcc), None)


def _toolkit_line(subject: str, toolkit: Toolkit, finding: Finding | None, first: bool) -> Line:
    facts = {
        "named_by": toolkit.named_by,
        "path": toolkit.named,
        "root": toolkit.root,
        "nvcc": toolkit.nvcc,
        "version": toolkit.nvcc_version,
        "version_known_by": toolkit.nvcc_how,
        "header_version": toolkit.header_version,
        "used_for_builds": first,
    }
    if toolkit.problem is not None and finding is None:
        return Line(RUNTIME, subject, COULD_NOT_LOOK, toolkit.problem, None, (), facts)
    use = "a build of an extension uses it" if first else "not used by torch's build helper"
    version = toolkit.nvcc_version or toolkit.header_version or "version unknown"
    text = f"CUDA {version} at {toolkit.root} ({toolkit.named_by}); {use}"
    return _line(subject, text, finding, facts)


def _variables(
    environment: Environment,
    environ: Mapping[str, str],
    linker: Linker | None,
    gpus: tuple[Gpu, ...],
    has_driver: bool,
) -> Iterator[Line]:
    """Each variable that is set and changes something, with what it changes."""
    for name, effect in effects().items():
        value = environ.get(name)
        if value is None or name in HOME_VARIABLES:
            continue  # CUDA_HOME has a line of its own, with the toolkit
        finding = None
        if name == "LD_LIBRARY_PATH":
            finding = rules.library_path_elements(_elements(value, environment))
        elif name == "LD_PRELOAD":
            finding = rules.preloaded(_preloads(value, linker))
        elif name == "TORCH_CUDA_ARCH_LIST":
            finding = rules.arch_list(value, gpus)
        elif name == "CUDA_VISIBLE_DEVICES" and has_driver and not gpus:
            finding = rules.hidden_gpus(environ)
        shown = value if len(value) <= 200 else f"{value[:200]}..."
        text = f'"{shown}": {effect}'
        if name == "LD_LIBRARY_PATH" and linker is not None:
            text += _taken_from_library_path(linker)
        line = _line(name, text, finding, {"value": value})
        yield line if finding else Line(RUNTIME, name, NOTE, text, None, (), {"value": value})


def _taken_from_library_path(linker: Linker) -> str:
    """What of the process of ``import torch`` comes from LD_LIBRARY_PATH."""
    taken = [o.path for o in linker.process.objects if o.found_by == LD_LIBRARY_PATH]
    if not taken:
        return "; nothing that `import torch` loads comes from there"
    more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
    return f"; `import torch` takes {', '.join(taken[:3])}{more} from there"


def _elements(value: str, environment: Environment) -> list[tuple[str, bool]]:
    rows = []
    for element in split_path(value):
        path = element.replace("${ORIGIN}", "$ORIGIN")
        path = path.replace("$ORIGIN", os.path.dirname(environment.python_real))
        rows.append((element, os.path.isdir(path or ".")))
    return rows


def _preloads(value: str, linker: Linker | None) -> list[tuple[str, str | None]]:
    """The entries of LD_PRELOAD and the file that is mapped for each."""
    rows: list[tuple[str, str | None]] = []
    for name in value.replace(":", " ").split():
        found = None if linker is None else linker.process.find_loaded(name)
        rows.append((name, None if found is None else found.path))
    return rows
