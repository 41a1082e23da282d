"""The GPUs and the driver of this machine, asked of the driver through NVML.

The binding is ``nvidia-ml-py`` (module ``pynvml``), an optional extra; it loads the driver's own
library ``libnvidia-ml.so.1``. No program is started and no CUDA context is made. That it is not
there, or that there is no driver, is an answer with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.gpus import Gpu, parse_gpu, parse_gpus

if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_INSTALLED = (
    "the GPUs of this machine were not looked for: nvidia-ml-py is not installed "
    "(pip install nvidia-ml-py), or name one with --gpu"
)


class Machine(NamedTuple):
    """The GPUs of this machine in the driver's order, each kind once, and its driver.

    ``problem`` is one sentence when it could not be looked, or only in part.
    """

    gpus: tuple[Gpu, ...]
    driver: Driver | None
    problem: str | None


class AskedGpus(NamedTuple):
    """The GPUs that files are judged for, and the driver that must load their code.

    source: ``option`` (named by the user), ``machine``, or ``all``: an overview, in which no
    GPU is a requirement but those in ``named``, which were named beside it. problem: why the
    machine's own GPUs are not in it, one sentence.
    """

    gpus: tuple[Gpu, ...]
    driver: Driver | None
    source: str
    problem: str | None
    named: tuple[Gpu, ...] = ()


def asked_gpus(words: Sequence[str]) -> AskedGpus:
    """The GPUs named by the user, else the machine's, else all of the table.

    A GPU that was named may be another machine's: then this machine's driver says nothing.
    Raises ``UsageError`` for a name that is not known.
    """
    if words:
        parse_gpus(list(words))  # refuses what names no GPU
        single = [word.strip() for text in words for word in text.split(",") if word.strip()]
        named = parse_gpus([word for word in single if word.lower() != "all"])
        if not any(word.lower() == "all" for word in single):
            return AskedGpus(named, None, "option", None)
        # One column for a capability: a GPU that was named stands in it for its kind.
        taken = {gpu.capability for gpu in named}
        others = [gpu for gpu in parse_gpu("all") if gpu.capability not in taken]
        columns = sorted((*named, *others), key=lambda gpu: gpu.capability)
        return AskedGpus(tuple(columns), None, "all", None, named)
    machine = read_machine()
    if machine.gpus:
        return AskedGpus(machine.gpus, machine.driver, "machine", machine.problem)
    return AskedGpus(parse_gpu("all"), None, "all", machine.problem)


def read_machine() -> Machine:
    """Ask the driver. Never raises: what goes wrong is the ``problem``."""
    try:
        import pynvml
    except ImportError:
        return Machine((), None, NOT_INSTALLED)
    return ask(pynvml)


def ask(nvml: Any) -> Machine:
    """Ask through the functions of a module like ``pynvml``."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Machine((), None, f"no GPU could be looked for on this machine: NVML says: {error}")
    try:
        return _ask_open(nvml)
    finally:
        nvml.nvmlShutdown()


def _ask_open(nvml: Any) -> Machine:
    driver: Driver | None = None
    gpus: dict[Gpu, None] = {}
    try:
        driver = Driver(_text(nvml.nvmlSystemGetDriverVersion()), None)
        # 1000 * major + 10 * minor: 12040 is CUDA 12.4.
        number = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        driver = Driver(driver.version, (number // 1000, number % 1000 // 10))
        for index in range(nvml.nvmlDeviceGetCount()):
            gpus[_one(nvml, index)] = None
    except nvml.NVMLError as error:
        return Machine(tuple(gpus), driver, f"the driver did not say all: NVML says: {error}")
    problem = None if gpus else "there is a driver on this machine, but it sees no GPU"
    return Machine(tuple(gpus), driver, problem)


def _one(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    try:
        memory: int | None = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        memory = None  # integrated GPUs have no memory of their own to report
    return Gpu(_text(nvml.nvmlDeviceGetName(handle)), (int(major), int(minor)), memory)


def _text(value: object) -> str:
    """Old releases of the binding give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
