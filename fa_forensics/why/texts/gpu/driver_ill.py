"""Answers where the NVIDIA driver does not start, is not there, or only stands in for itself."""

from __future__ import annotations

from fa_forensics.facts.drivers import cuda_text, driver_needed
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import cuda_version, driver_of
from fa_forensics.why.texts.gpu.cuda_alike import nvidia_alone

KIND, OWNER = "gpu-driver", "cuda-driver"

#: Print the GPUs and the driver. Drivers of 2021 and older refuse to tell compute_cap.
SMI = "nvidia-smi --query-gpu=name,driver_version --format=csv"
_COPIES = "ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH"


def stub(seen: Seen) -> Answer:
    """``CUDA driver is a stub library``."""
    cause = (
        "The libcuda.so that is loaded is the toolkit's stub, which is there to link with and "
        "cannot run anything: its directory (lib64/stubs) comes before the driver's own library."
    )
    return seen.answer(
        KIND, "FA209", cause, owner=OWNER, direction="none", confidence="high",
        help=(_COPIES, SMI),
        notes=("Take the directory with stubs in its name off LD_LIBRARY_PATH; it belongs on the "
               "link line of a build alone.",),
    )  # fmt: skip


def too_old_for_image(seen: Seen) -> Answer:
    """nvidia-container-cli: ``unsatisfied condition: cuda>=12.4``."""
    wanted, driver = cuda_version(seen.mention.detail.get("image")), driver_of(seen)
    cause = "The container image asks for a newer CUDA than the driver of the host supports"
    if wanted is not None:
        cause = (
            f"The container image asks for CUDA {cuda_text(wanted)}, which takes "
            f"{driver_needed(wanted)}, and the driver of the host is older"
        )
    if driver is not None and driver.version is not None:
        cause += f" ({driver.version})"
    return seen.answer(
        KIND, "FA506", f"{cause}.", owner=OWNER, direction="none", confidence="high", help=(SMI,),
        notes=("Two ways out: a newer driver on the host, or an image with an older CUDA. Nothing "
               "inside the image changes it.",),
    )  # fmt: skip


def not_there(seen: Seen) -> Answer:
    """nvidia-smi finds no driver, or NVML does not start."""
    detail = seen.mention.detail
    helps: tuple[str, ...] = ("cat /proc/driver/nvidia/version; lsmod | grep nvidia", "nvidia-smi")
    notes: tuple[str, ...] = ("No torch release and no extension plays a part in it.",)
    if "runtime" in detail:
        cause = (
            "Docker has no way to hand in GPUs: the NVIDIA container toolkit is not installed on "
            "the host, or Docker was not set up for it and started again."
        )
        helps = (
            "nvidia-smi",
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        )
    elif detail.get("nvml", "").lower().startswith("unknown"):
        cause = (
            "NVML does not reach the GPUs. In a container that worked before, the host has taken "
            "the devices away from it (a reload of systemd does that); else the driver is not "
            "whole."
        )
        notes = (
            "Starting the container again gives the devices back; nvidia-smi on the host "
            "tells whether the driver itself is well.",
            *notes,
        )
    else:
        cause = (
            "The kernel module of the NVIDIA driver is not loaded: it is not installed, was not "
            "built for the kernel that runs (after an update of the kernel), or is refused by "
            "secure boot."
        )
        helps = (*helps, "uname -r; dkms status")
    return seen.answer(
        KIND, "FA209", cause, owner=OWNER, direction="none", confidence="high", help=helps,
        notes=notes,
    )  # fmt: skip


def ill(seen: Seen) -> Answer:
    """``CUDA unknown error``, devices that are busy: the driver's own troubles."""
    detail = seen.mention.detail
    if "busy" in detail:
        cause = (
            "Every GPU is in use by another process in exclusive mode, or its driver has lost it "
            "(MIG without an instance, a GPU that fell off the bus)."
        )
        helps: tuple[str, ...] = (
            "nvidia-smi",
            "nvidia-smi -q -d COMPUTE | grep -i mode",
            "dmesg | grep -i xid",
        )
    elif "jit" in detail:
        cause = (
            "The driver has to compile PTX and does not find its compiler "
            "(libnvidia-ptxjitcompiler.so), a part of the driver: in a container it was not handed "
            "in, else the driver is not whole."
        )
        helps = ("ldconfig -p | grep ptxjitcompiler", "echo $NVIDIA_DRIVER_CAPABILITIES")
    elif detail.get("start", "").startswith(("named", "500")):
        return _not_handed_in(seen)
    else:
        cause = (
            "The driver did not start for this process, and does not say why: after a suspend or "
            "an update without a restart, without the module nvidia_uvm, in a container without "
            "all devices, or with CUDA_VISIBLE_DEVICES changed after CUDA started."
        )
        helps = (
            "nvidia-smi",
            "ls -l /dev/nvidia*; lsmod | grep nvidia_uvm",
            "echo CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES",
        )
    return seen.answer(
        KIND, "FA209", cause, owner=OWNER, direction="none", confidence="medium", help=helps,
        notes=("No torch release and no extension plays a part in it.",),
    )  # fmt: skip


def _not_handed_in(seen: Seen) -> Answer:
    """Error 500 of the first call of all: NVIDIA/nvidia-container-toolkit issue 520."""
    cause = (
        "CUDA did not start: this is its first call, which asks the driver for the GPUs and runs "
        "no kernel, so that no extension and no missing code plays a part. Error 500 is known "
        "there from containers under WSL 2 (Docker Desktop) after an update of the driver: from "
        "driver 555 on the container needs one more library of it (libnvdxgdmal.so.1), which "
        "NVIDIA's container toolkit before 1.14.4 and Docker Desktop before 4.31 do not hand in."
    )
    return seen.answer(
        KIND, "FA209", cause, owner=OWNER, direction="none", confidence="medium",
        help=(
            "nvidia-smi",
            "docker info | grep -i version; nvidia-ctk --version",
            "ls /usr/lib/wsl/drivers/*/",
        ),
        notes=(
            "The way out is a newer Docker Desktop or NVIDIA container toolkit on the host; what "
            "is in the image counts for nothing. Where CUDA starts in WSL itself and not in the "
            "container, it is this.",
            "Elsewhere than under WSL the libraries of two driver releases are mixed in the same "
            "way: ldconfig -p | grep libcuda.so shows the copies.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "driver-stub": stub,
    "driver-too-old-for-image": too_old_for_image,
    "driver-not-there": not_there,
    "driver-ill": nvidia_alone(ill),
}
