"""The machine below the Python environment: system, container, CPU, the GPU driver's files.

Read from /etc, /proc and /sys; nothing is started. ``root`` is "/" but for tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from fa_forensics.facts.files import read_bounded
from fa_forensics.records import dataclass

_MAX_TEXT = 1 << 20

#: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …" and, for the
#: open modules, "… Open Kernel Module for x86_64  580.65.06  Release Build …".
_KERNEL_MODULE = re.compile(r"^NVRM version:.*?\s(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\s", re.M)
_DRIVER_FILE = re.compile(r"libcuda\.so\.(\d{3}\.\d{1,3}(?:\.\d{1,3})?)")

#: Which control group names a container's runtime leaves, and how the runtime is called.
_CGROUP_NAMES = (
    ("kubepods", "Kubernetes"),
    ("docker", "Docker"),
    ("libpod", "Podman"),
    ("containerd", "containerd"),
    ("lxc", "LXC"),
)


#: CPU features by which torch, oneDNN and MKL choose among kernels (/proc/cpuinfo's words).
_FEATURES = (
    "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "sve",
    "sve2", "bf16",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Host:
    """The machine as its files describe it.

    ``distribution`` is PRETTY_NAME of os-release, ``distribution_id`` "debian 12". None or 0
    is what could not be read. ``container`` names its runtime, with ``container_by`` what
    shows it. ``cpu_features`` are those that kernels are chosen by. ``cores`` are those this
    process may use, ``memory_bytes`` the machine's.
    """

    distribution: str | None
    distribution_id: str | None
    kernel: str
    container: str | None
    container_by: str | None
    cpu: str | None
    cpu_features: tuple[str, ...]
    cores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The GPU driver by its files, for where NVML cannot be asked.

    ``kernel_module`` is the version of the loaded kernel module, ``gpus`` the names that it
    gives, ``devices`` the /dev/nvidia* of GPUs. ``present`` tells of the module's directory.
    """

    present: bool
    kernel_module: str | None
    gpus: tuple[str, ...]
    devices: tuple[str, ...]


def read_host(environ: Mapping[str, str], root: str = "/") -> Host:
    """What the files of a running system say of it. Raises nothing."""
    release = _assignments(_text(root, "etc/os-release") or _text(root, "usr/lib/os-release") or "")
    container, shown_by = _container(environ, root)
    processors = _text(root, "proc/cpuinfo") or ""
    cpu = re.search(r"^model name\s*:\s*(.{1,200})$", processors, re.M)
    flags = re.search(r"^(?:flags|Features)\s*:(.{1,8000})$", processors, re.M)
    features = set(flags[1].split()) if flags else set()
    memory = re.search(r"^MemTotal:\s+(\d{1,12}) kB", _text(root, "proc/meminfo") or "", re.M)
    identity = " ".join(release[key] for key in ("ID", "VERSION_ID") if release.get(key))
    return Host(
        distribution=release.get("PRETTY_NAME"),
        distribution_id=identity or None,
        kernel=os.uname().release,
        container=container,
        container_by=shown_by,
        cpu=cpu[1].strip() if cpu else None,
        cpu_features=tuple(name for name in _FEATURES if name in features),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=int(memory[1]) << 10 if memory else 0,
    )


def read_driver_files(root: str = "/") -> DriverFiles:
    """The GPU driver's kernel module by what it shows under /proc, and its devices."""
    base = os.path.join(root, "proc/driver/nvidia")
    version = _KERNEL_MODULE.search((_text(base, "version") or "") + "\n")
    names = []
    for name in _names(os.path.join(base, "gpus")):
        text = _text(base, os.path.join("gpus", name, "information")) or ""
        model = re.search(r"^Model:\s*(.{1,100})$", text, re.M)
        if model:
            names.append(model[1].strip())
    devices = [n for n in _names(os.path.join(root, "dev")) if re.fullmatch(r"nvidia\d{1,3}", n)]
    return DriverFiles(
        present=os.path.isdir(base),
        kernel_module=version[1] if version else None,
        gpus=tuple(names),
        devices=tuple(f"/dev/{name}" for name in devices),
    )


def driver_of_library(path: str) -> str | None:
    """The driver version in the name of a libcuda: libcuda.so.535.104.05."""
    found = _DRIVER_FILE.fullmatch(os.path.basename(os.path.realpath(path)))
    return found[1] if found else None


def _container(environ: Mapping[str, str], root: str) -> tuple[str | None, str | None]:
    """(runtime, what shows it), both None outside a container."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes", "KUBERNETES_SERVICE_HOST is set"
    for variable in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if environ.get(variable):
            return "Apptainer", f"{variable} is set"
    for path, runtime in (
        (".singularity.d", "Apptainer"),
        ("run/.containerenv", "Podman"),
        (".dockerenv", "Docker"),
    ):
        if os.path.lexists(os.path.join(root, path)):
            return runtime, f"/{path} exists"
    groups = _text(root, "proc/1/cgroup") or ""
    for word, runtime in _CGROUP_NAMES:
        if re.search(rf"[/-]{word}[/.:-]", groups):
            return runtime, f"/proc/1/cgroup names {word}"
    if environ.get("container"):
        return environ["container"][:40], "the variable container is set"
    if "microsoft" in (_text(root, "proc/sys/kernel/osrelease") or "").lower():
        return "WSL", "the kernel is Microsoft's"
    return None, None


def _assignments(text: str) -> dict[str, str]:
    """KEY=value and KEY="value" of os-release(5)."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Z_]{1,40}", key):
            found[key] = re.sub(r"\\(.)", r"\1", value.strip().strip("\"'"))
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _text(base: str, name: str) -> str | None:
    try:
        return read_bounded(os.path.join(base, name), _MAX_TEXT).decode("utf-8", "replace")
    except OSError:
        return None
