"""What the machine's own files say: system, container, the GPU driver's module."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fa_forensics.facts.host import driver_of_library, read_driver_files, read_host

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  "
    "(root@x)  Sun Jul 27\n"
)


def tree(root: Path, **files: str) -> str:
    """Files by their path, slashes written as two underscores."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_the_distribution_is_what_os_release_says(tmp_path: Path) -> None:
    text = 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n'
    host = read_host({}, tree(tmp_path, **{"etc__os-release": text}))
    assert (host.distribution, host.distribution_id) == ("Ubuntu 22.04.4 LTS", "ubuntu 22.04")


def test_an_empty_system_is_told_as_unknown(tmp_path: Path) -> None:
    host = read_host({}, str(tmp_path))
    assert (host.distribution, host.container, host.cpu, host.memory_bytes) == (None, None, None, 0)


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("model name\t: Xeon\nflags\t\t: fpu sse2 fma avx2 avx512f\n", ("avx2", "fma", "avx512f")),
        ("processor\t: 0\nFeatures\t: fp asimd sve bf16\n", ("asimd", "sve", "bf16")),
        ("flags:\n", ()),
    ],
)
def test_the_cpu_has_the_features_that_kernels_are_chosen_by(
    text: str, features: tuple[str, ...], tmp_path: Path
) -> None:
    assert read_host({}, tree(tmp_path, proc__cpuinfo=text)).cpu_features == features


@pytest.mark.parametrize(
    ("environ", "files", "container"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {}, "Kubernetes"),
        ({"APPTAINER_CONTAINER": "/x.sif"}, {}, "Apptainer"),
        ({}, {".dockerenv": ""}, "Docker"),
        ({}, {"run__.containerenv": ""}, "Podman"),
        ({}, {"proc__1__cgroup": "0::/kubepods/besteffort/pod1\n"}, "Kubernetes"),
        ({}, {"proc__1__cgroup": "1:name=systemd:/docker/0123abc\n"}, "Docker"),
        ({"container": "lxc"}, {}, "lxc"),
        ({}, {"proc__sys__kernel__osrelease": "5.15.0-microsoft-standard-WSL2\n"}, "WSL"),
        ({}, {"proc__1__cgroup": "0::/init.scope\n"}, None),
        ({}, {"proc__1__cgroup": "0::/user.slice/mydockerish.service\n"}, None),
    ],
)
def test_a_container_is_known_by_what_its_runtime_leaves(
    environ: dict[str, str], files: dict[str, str], container: str | None, tmp_path: Path
) -> None:
    assert read_host(environ, tree(tmp_path, **files)).container == container


@pytest.mark.parametrize(("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "580.65.06")])
def test_the_kernel_module_says_its_version(text: str, version: str, tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__driver__nvidia__version=text,
        **{
            "proc__driver__nvidia__gpus__0000:01:00.0__information":
                "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n",
            "dev__nvidia0": "", "dev__nvidiactl": "", "dev__nvidia-uvm": "",
        },
    )  # fmt: skip
    files = read_driver_files(root)
    assert files.kernel_module == version
    assert files.gpus == ("NVIDIA H100 80GB HBM3",)
    assert files.devices == ("/dev/nvidia0",)


def test_a_machine_without_a_driver_has_none(tmp_path: Path) -> None:
    files = read_driver_files(str(tmp_path))
    assert (files.present, files.kernel_module, files.gpus, files.devices) == (False, None, (), ())


def test_a_text_that_never_ends_is_read_up_to_a_bound(tmp_path: Path) -> None:
    long = "NVRM version: " + "a " * 1_000_000
    root = tree(tmp_path, proc__driver__nvidia__version=long)
    assert read_driver_files(root).kernel_module is None


def test_a_pipe_in_the_place_of_a_file_does_not_stop_us(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    os.mkfifo(tmp_path / "etc" / "os-release")
    assert read_host({}, str(tmp_path)).distribution is None


def test_a_driver_library_has_its_version_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.535.104.05").touch()
    (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.535.104.05")
    assert driver_of_library(str(tmp_path / "libcuda.so.1")) == "535.104.05"
    (tmp_path / "libcuda.so").touch()
    assert driver_of_library(str(tmp_path / "libcuda.so")) is None
