"""The machine's GPUs, asked through a stand-in of the driver's binding."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fa_forensics.errors import UsageError
from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.nvml import NOT_INSTALLED, ask, asked_gpus, read_machine


class NVMLError(Exception):
    """The error of the stand-in."""


class Nvml:
    """A machine with the given GPUs: (name, capability, memory or None)."""

    NVMLError = NVMLError

    def __init__(self, *gpus: tuple[Any, tuple[int, int], int | None], fails: str = "") -> None:
        self.gpus = gpus
        self.fails = fails
        self.open = 0

    def _step(self, name: str) -> None:
        if name == self.fails:
            raise NVMLError(f"{name}: Unknown Error")

    def nvmlInit(self) -> None:
        self._step("init")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        self._step("driver")
        return "550.54.14"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        self._step("cuda")
        return 12040

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self._step(f"device {index}")
        return index

    def nvmlDeviceGetName(self, handle: int) -> Any:
        return self.gpus[handle][0]

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return self.gpus[handle][1]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        if self.gpus[handle][2] is None:
            raise NVMLError("Not Supported")
        return SimpleNamespace(total=self.gpus[handle][2])


H100 = ("NVIDIA H100 80GB HBM3", (9, 0), 85_520_809_984)


def test_gpus_driver_and_its_cuda_version_are_read_and_the_library_closed() -> None:
    nvml = Nvml(H100, H100, ("Tesla T4", (7, 5), 16_106_127_360))
    machine = ask(nvml)
    assert machine.gpus == (Gpu(*H100), Gpu("Tesla T4", (7, 5), 16_106_127_360))
    assert machine.driver == Driver("550.54.14", (12, 4))
    assert machine.problem is None
    assert nvml.open == 0


def test_bytes_and_a_gpu_without_memory_of_its_own_are_understood() -> None:
    machine = ask(Nvml((b"NVIDIA GB10", (12, 1), None)))
    assert machine.gpus == (Gpu("NVIDIA GB10", (12, 1), None),)


@pytest.mark.parametrize(
    ("fails", "gpus", "driver"),
    [
        ("init", 0, None),
        ("driver", 0, None),
        ("cuda", 0, Driver("550.54.14", None)),
        ("device 1", 1, Driver("550.54.14", (12, 4))),
    ],
)
def test_what_the_driver_does_not_say_is_a_problem_with_its_words(
    fails: str, gpus: int, driver: Driver | None
) -> None:
    nvml = Nvml(H100, ("Tesla T4", (7, 5), 1), fails=fails)
    machine = ask(nvml)
    assert (len(machine.gpus), machine.driver) == (gpus, driver)
    assert machine.problem is not None and f"{fails}: Unknown Error" in machine.problem
    assert nvml.open == 0


def test_a_driver_that_sees_no_gpu_is_told() -> None:
    machine = ask(Nvml())
    assert machine.problem == "there is a driver on this machine, but it sees no GPU"
    assert machine.driver == Driver("550.54.14", (12, 4))


def test_without_the_binding_the_reason_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_machine() == ((), None, NOT_INSTALLED)


def test_the_binding_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(H100))
    assert read_machine().gpus == (Gpu(*H100),)


def test_the_real_binding_answers_or_says_why_not() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    machine = read_machine()
    assert machine.gpus or machine.problem


def test_named_gpus_leave_this_machines_driver_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(H100))
    asked = asked_gpus(("RTX 4090", "T4"))
    assert [gpu.name for gpu in asked.gpus] == ["RTX 4090", "T4"]
    assert (asked.driver, asked.source, asked.problem) == (None, "option", None)
    assert asked_gpus(("all",)).source == "all"


def test_the_machines_gpus_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(H100))
    asked = asked_gpus(())
    assert asked.gpus == (Gpu(*H100),)
    assert (asked.source, asked.driver) == ("machine", Driver("550.54.14", (12, 4)))


def test_without_any_gpu_all_are_looked_over_and_the_reason_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    asked = asked_gpus(())
    assert len(asked.gpus) > 10
    assert (asked.source, asked.driver, asked.problem) == ("all", None, NOT_INSTALLED)


def test_a_gpu_named_beside_all_keeps_its_verdict_and_has_one_column() -> None:
    asked = asked_gpus(("RTX 4090", "all"))
    capabilities = [gpu.capability for gpu in asked.gpus]
    assert capabilities == sorted(set(capabilities)) and (8, 9) in capabilities
    assert [gpu.name for gpu in asked.named] == ["RTX 4090"] and asked.named[0] in asked.gpus
    assert asked.source == "all" and asked_gpus(("all,RTX 4090",)) == asked
    assert asked_gpus(("all",)).named == ()


@pytest.mark.parametrize("word", ["", "  ", ","])
def test_an_empty_name_is_no_gpu(word: str) -> None:
    with pytest.raises(UsageError, match="names no GPU"):
        asked_gpus((word,))
