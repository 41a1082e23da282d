"""The driver and the GPUs in lines: what NVML says, else what the driver's files say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support import contexts

from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.host import DriverFiles
from fa_forensics.facts.nvml import NOT_INSTALLED, Machine
from fa_forensics.report_env import Line
from fa_forensics.rules.runtime import DriverFacts
from fa_forensics.runtime import driver as module

ENVIRONMENT = contexts.environment()  # torch 2.4.0, CUDA 12.1
H100 = Gpu("NVIDIA H100 80GB HBM3", (9, 0), 80 << 30)
NO_FILES = DriverFiles(False, None, (), ())
FILES = DriverFiles(True, "535.104.05", (H100.name, H100.name), ("/dev/nvidia0", "/dev/nvidia1"))
NO_NVML = Machine((), None, NOT_INSTALLED)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Machine]]:
    """What NVML answers: the last of the list."""
    answers = [NO_NVML]
    monkeypatch.setattr(module, "read_machine", lambda: answers[-1])
    yield answers


def facts(**changes: Any) -> DriverFacts:
    values: dict[str, Any] = {
        "version": None, "cuda": None, "source": "NVML", "kernel_module": None, "library": None,
        "library_path": None,
    }  # fmt: skip
    return DriverFacts(**{**values, **changes})


def driver_line(driver: DriverFacts, files: DriverFiles = FILES) -> Line:
    (line,) = module.driver_lines(ENVIRONMENT, driver, files, None)
    return line


def test_nvml_is_believed_first(nvml: list[Machine]) -> None:
    nvml.append(Machine((H100,), Driver("550.54.15", (12, 4)), None))
    driver, gpus, problem = module.read_driver(FILES, None)
    assert (driver.version, driver.cuda, driver.source) == ("550.54.15", (12, 4), "NVML")
    assert (gpus, problem) == ((H100,), None)


@pytest.mark.usefixtures("nvml")
def test_without_nvml_the_kernel_module_says_its_version_and_its_gpus() -> None:
    driver, gpus, problem = module.read_driver(FILES, None)
    assert (driver.version, driver.cuda) == ("535.104.05", (12, 2))
    assert driver.source == "/proc/driver/nvidia"
    assert gpus == (Gpu(H100.name, (9, 0)),)
    assert problem == NOT_INSTALLED


@pytest.mark.usefixtures("nvml")
def test_a_gpu_that_the_table_does_not_know_is_not_guessed_at() -> None:
    files = DriverFiles(True, "999.1", ("NVIDIA Q9000 Hyper",), ("/dev/nvidia0",))
    driver, gpus, _ = module.read_driver(files, None)
    assert gpus == ()
    assert module.why_no_gpu(driver, files, NOT_INSTALLED) == (
        "the GPUs of this machine were not looked for: nvidia-ml-py is not installed "
        "(pip install nvidia-ml-py)"
    )


def test_a_machine_without_a_driver_has_no_gpu_and_that_is_no_fault() -> None:
    assert module.why_no_gpu(facts(), NO_FILES, NOT_INSTALLED) is None
    (line,) = module.gpu_lines((), {}, NO_FILES, None)
    assert (line.state, driver_line(facts(), NO_FILES).state) == ("note", "note")


def test_devices_without_a_version_could_not_be_looked_at() -> None:
    files = DriverFiles(False, None, (), ("/dev/nvidia0",))
    assert driver_line(facts(), files).state == "could-not-look"


def test_a_driver_that_is_new_enough_is_ok() -> None:
    line = driver_line(facts(version="535.104.05", cuda=(12, 2)))
    assert (line.state, line.facts["cuda"]) == ("ok", "12.2")
    assert "older than" not in line.text


def test_an_older_driver_of_the_same_major_version_is_ok_with_its_limit() -> None:
    line = driver_line(facts(version="525.85.12", cuda=(12, 0)))
    assert line.state == "ok"
    assert "PTX of that release is not compiled" in line.text


def test_a_driver_that_is_too_old_is_wrong() -> None:
    line = driver_line(facts(version="470.82.01", cuda=(11, 4)))
    assert line.finding is not None
    assert (line.state, line.finding.code) == ("wrong", "FA822")
    assert "needs CUDA 12.1" in line.text


def test_gpus_of_one_kind_are_counted() -> None:
    (line,) = module.gpu_lines((H100,), {}, FILES, None)
    assert line.text == f"2 x {H100.name}, compute capability 9.0, 80 GiB"
    assert line.facts["count"] == 2


def test_gpus_that_a_variable_hides_are_told_at_the_first() -> None:
    (line,) = module.gpu_lines((H100,), {"CUDA_VISIBLE_DEVICES": "-1"}, FILES, None)
    assert line.finding is not None
    assert (line.state, line.finding.code) == ("wrong", "FA829")
