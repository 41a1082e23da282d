"""The GPU driver and the GPUs: by NVML, else by the driver's own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.drivers import Driver, cuda_of_driver, cuda_text, parse_cuda
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.gpus import Gpu, capability_text, parse_gpu
from fa_forensics.facts.host import DriverFiles, driver_of_library
from fa_forensics.facts.nvml import read_machine
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, RUNTIME, Line
from fa_forensics.resolve.link import Linker
from fa_forensics.rules import runtime as rules
from fa_forensics.rules.runtime import DriverFacts
from fa_forensics.runtime.line import line_of


def read_driver(
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


def driver_lines(
    environment: Environment, driver: DriverFacts, files: DriverFiles, problem: str | None
) -> Iterator[Line]:
    """The driver, held against torch's CUDA; ``problem`` is why NVML did not say all."""
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
    yield line_of("driver", text, finding, facts)


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


def why_no_gpu(driver: DriverFacts, files: DriverFiles, problem: str | None) -> str | None:
    """Why no GPU is known though there may be one; None where there is no driver at all."""
    if driver.version is None and driver.library_path is None and not files.present:
        return None
    if problem is None:
        return "the driver sees no GPU"
    return problem.partition(", or name one with --gpu")[0]


def gpu_lines(
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
        yield line_of("GPU", text, hidden if number == 0 else None, facts)
