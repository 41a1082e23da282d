"""Answers about the NVIDIA driver: too old for the code, for the runtime, or for an image."""

from __future__ import annotations

from fa_forensics.facts.drivers import (
    CudaVersion,
    Driver,
    cuda_of_driver,
    cuda_text,
    driver_needed,
    driver_table,
)
from fa_forensics.facts.gpus import capability_text
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import (
    called,
    cuda_version,
    driver_of,
    gpus_of,
    inspect_for,
    package_in,
    version_of,
)
from fa_forensics.why.texts.gpu.code_here import code_here
from fa_forensics.why.texts.gpu.cuda_alike import nvidia_alone
from fa_forensics.why.texts.gpu.driver_age import too_old
from fa_forensics.why.texts.gpu.driver_ill import SMI
from fa_forensics.why.texts.gpu.rocm_text import not_for_rocm, on_amd
from fa_forensics.why.texts.gpu.triton_text import made_by_triton

KIND, CODE, OWNER = "gpu-driver", "FA506", "cuda-driver"


def _cuda_of_code(seen: Seen) -> CudaVersion | None:
    """The CUDA version of the code: torch's, else the toolkit that the text names."""
    return cuda_version(seen.torch_cuda or seen.versions.get("cuda"))


def unsupported_toolchain(seen: Seen) -> Answer:
    """``the provided PTX was compiled with an unsupported toolchain``."""
    driver, gpus, detail = driver_of(seen), gpus_of(seen)[:1], seen.mention.detail
    knows = driver_table().isa.get(detail.get("knows", ""))
    if driver is None and knows is not None:
        driver = Driver(None, knows)
    made = driver_table().isa.get(detail.get("ptx", "")) or cuda_version(seen.versions.get("cuda"))
    made = made or cuda_version(seen.torch_cuda)
    cause = (
        "The code has no machine code for this GPU, only PTX, and that was made by a newer CUDA "
        "than the driver can compile"
    )
    if driver is not None and driver.cuda is not None:
        which = f"driver {driver.version}" if driver.version else "the driver"
        cause += f": {which} supports CUDA {cuda_text(driver.cuda)}"
        if made is not None and made > driver.cuda:
            cause += f", CUDA {cuda_text(made)} takes {driver_needed(made)}"
    cause += "."
    notes = [
        "Minor version compatibility does not cover PTX: a driver of the same CUDA major version "
        "is not enough.",
        "Two ways out: a newer driver, or a build that holds machine code for this GPU, so that "
        "the driver has nothing to compile.",
    ]
    if gpus:
        notes.append(f"The GPU: {called(gpus[0])}.")
    helps = [SMI, inspect_for(seen, gpus, package_in(seen))]
    if gpus:
        number = capability_text(gpus[0].capability)
        notes.append(f'For a build of one\'s own: TORCH_CUDA_ARCH_LIST="{number}".')
    return seen.answer(
        KIND, CODE, cause, owner=OWNER, direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def image_invalid(seen: Seen) -> Answer:
    """``device kernel image is invalid``: an image was found, and the driver cannot read it."""
    if "triton" in seen.mention.line.lower():
        return made_by_triton(seen)
    driver, package = driver_of(seen), package_in(seen)
    table = driver_table()
    zstd = cuda_text(table.zstd)
    cause = (
        "Code for this GPU was found, and the driver cannot read it: that is another failure than "
        '"no kernel image".'
    )
    if driver is not None and driver.cuda is not None and driver.cuda < table.zstd:
        which = f"Driver {driver.version}" if driver.version else "The driver"
        cause += (
            f" {which} supports CUDA {cuda_text(driver.cuda)}; code that "
            f"a newer CUDA made or compressed (zstd, from CUDA {zstd} on) is beyond it."
        )
    elif driver is not None and driver.cuda is not None:
        cause += (
            " Either the code was made by a newer CUDA than the driver's "
            f"({cuda_text(driver.cuda)}), or the file is damaged."
        )
    else:
        cause += (
            " Either the code was made or compressed by a newer CUDA than the driver knows, or the "
            "file is damaged."
        )
    gpus, code = gpus_of(seen)[:1], code_here(seen, package)
    found = code.fit(gpus[0], driver) if code is not None and gpus else None
    certain = found is not None and found.driver_ok is False
    if found is not None and certain:
        cause = (
            "Code for this GPU was found, and the driver cannot read it: that is another failure "
            f'than "no kernel image". {found.driver_reason}.'
        )
    version = version_of(seen, package) if package else None
    what = f"{package}{' ' + version if version else ''}" if package else "the package"
    return seen.answer(
        KIND, CODE, cause, owner=OWNER, direction="none",
        confidence="high" if certain else "medium",
        help=(inspect_for(seen, gpus, package), SMI),
        notes=(
            "The first command says which CUDA made the code, how it is compressed, and whether a "
            "container in it is damaged; the second which driver is there.",
            f"Two ways out: a newer driver, or a release of {what} that was built with an older "
            "CUDA.",
        ),
    )  # fmt: skip


def mismatch(seen: Seen) -> Answer:
    """Two parts of the driver that are not of one version, or compatibility libraries misplaced."""
    line = seen.mention.line.lower()
    if "forward compatibility" in line or "compatnotsupported" in line:
        cause = (
            "The forward-compatibility libraries (cuda-compat) are loaded in place of the driver's "
            "own libcuda.so.1, and this GPU is none that they are made for: they serve data-centre "
            "GPUs alone."
        )
        cause += _host_driver(seen)
        helps: tuple[str, ...] = ("ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH", SMI)
        notes: tuple[str, ...] = (
            "Three ways out: a newer driver on the host, for the CUDA version of the image; an "
            "image for the CUDA version that the driver supports; or the directory with compat in "
            "its name taken off LD_LIBRARY_PATH and out of the cache of ldconfig, which is enough "
            "where the driver is of the same CUDA major version.",
            "With these libraries loaded, nvidia-smi in the container shows their CUDA version, "
            "not the driver's own.",
        )
    elif "not yet initialized" in line or "systemnotready" in line:
        cause = (
            "The driver is there and its GPUs are not ready: on systems with NVSwitch (HGX, DGX) "
            "they wait for the fabric manager, whose version must be the driver's."
        )
        helps = ("systemctl status nvidia-fabricmanager", SMI)
        notes = ("No extension and no torch release plays a part in it.",)
    else:
        cause = (
            "The driver's library and its kernel module are of two versions: the driver was "
            "updated while the old module was loaded, or a container brings a libcuda of its own."
        )
        helps = (
            "cat /proc/driver/nvidia/version; ls -l /usr/lib/x86_64-linux-gnu/libcuda.so*",
            "ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH",
        )
        notes = (
            "After an update of the driver the machine must be restarted.",
            "In a container: take the directory with compat in its name (/usr/local/cuda/compat) "
            "off LD_LIBRARY_PATH, so that the host's own library is loaded; torch and the GPU play "
            "no part.",
        )
    return seen.answer(
        KIND, CODE, cause, owner=OWNER, direction="none", confidence="high", help=helps,
        notes=notes,
    )  # fmt: skip


def _host_driver(seen: Seen) -> str:
    """What the text tells of the host's driver and of the CUDA of the image, as a sentence."""
    driver, wanted = driver_of(seen), _cuda_of_code(seen)
    version = seen.versions.get("driver")
    own = cuda_of_driver(version) if version else None
    if driver is None or version is None or own is None:
        return ""
    shown = cuda_version(seen.versions.get("driver_cuda"))
    if wanted is None and shown is not None and shown > own:
        wanted = shown  # with cuda-compat loaded, nvidia-smi shows the CUDA of the image
    said = f" Driver {version} is one for CUDA {cuda_text(own)}"
    if wanted is not None and wanted > own:
        said += f"; CUDA {cuda_text(wanted)} takes {driver_needed(wanted)}"
    return f"{said}."


def no_device(seen: Seen) -> Answer:
    """No driver, or no GPU that this process may see."""
    if on_amd(seen):
        return not_for_rocm(seen)
    if "driver" in seen.mention.line.lower():
        cause = "There is no NVIDIA driver for this process: torch found none on the system."
    else:
        cause = (
            "The driver is there and shows this process no GPU: CUDA_VISIBLE_DEVICES hides them, "
            "the container was started without GPUs, or the process was forked after CUDA started."
        )
    return seen.answer(
        KIND, "FA209", cause, owner=OWNER, direction="none", confidence="medium",
        help=(SMI, "echo CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"),
        notes=(
            "A container needs --gpus all, and the NVIDIA container toolkit on its host.",
            "A build does not need a GPU: name the architectures instead (TORCH_CUDA_ARCH_LIST).",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "driver-too-old": nvidia_alone(too_old),
    "unsupported-toolchain": nvidia_alone(unsupported_toolchain),
    "image-invalid": nvidia_alone(image_invalid),
    "driver-mismatch": nvidia_alone(mismatch),
    "no-device": nvidia_alone(no_device),
}
