"""Answers where the CUDA runtime finds the NVIDIA driver too old, or finds none at all."""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.drivers import (
    CudaVersion,
    Driver,
    cuda_text,
    driver_needed,
    driver_table,
    last_driver,
    parse_cuda,
)
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.clues import cuda_version, driver_of, named_gpu, serves
from fa_forensics.why.texts.gpu.ctranslate import driver_for_ctranslate2
from fa_forensics.why.texts.gpu.driver_before_11 import (
    before_11,
    brought_by_index,
    torch_for,
    ways_out,
)
from fa_forensics.why.texts.gpu.driver_ill import SMI
from fa_forensics.why.texts.gpu.torch_for_gpu import newest_for, same_for, wheels_with

KIND, CODE, OWNER = "gpu-driver", "FA506", "cuda-driver"

#: Paths of torch for Lua.
_LUA = lazily(r"\bcutorch\b|\bcunn\b|\.lua\b")
_SAYS_THE_SAME = (
    "A container whose path has a copy of the driver's libraries of its own says the same, of "
    "that copy."
)
_HOSTS = (
    "A container takes the driver of its host: that is the one to update. Another torch in the "
    "image would break what was compiled there for its own, so an image for the CUDA of the "
    "driver is the other way; on data-centre GPUs (A100, H100) also the package cuda-compat of "
    "the image's CUDA, on an older driver."
)
#: The form that the binding of cuda-python gives to an error: NVIDIA's CuTe DSL prints it so.
_BINDING = lazily(r"cudaError_t\.|\bcuda[-_. ](?:python|bindings)\b|\bcutlass[-_]dsl\b")
#: Said where a driver is there and lacks a function: cudaErrorCallRequiresNewerDriver.
_DRIVER_THERE = lazily(r"installed CUDA driver|RequiresNewerDriver|too old", re.IGNORECASE)
#: The oldest CUDA that torch has had a wheel for: those of torch 0.1.
_FIRST_WHEELS = (7, 5)
#: Torch's own packages, which are installed together with it.
_FAMILY = ("torch", "torchvision", "torchaudio")


def too_old(seen: Seen) -> Answer:
    """``The NVIDIA driver on your system is too old``, ``driver version is insufficient``."""
    driver, line = driver_of(seen), seen.mention.line
    if _BINDING.search(line):
        return _of_binding(seen, driver)
    if (own := driver_for_ctranslate2(seen, driver)) is not None:
        return own
    if driver is None and not _DRIVER_THERE.search(line):
        return _old_or_none(seen)
    lua = _LUA.search(line) is not None
    wanted = cuda_version(seen.versions.get("cuda") if lua else seen.torch_cuda)
    cause = "The NVIDIA driver of this machine is older than the CUDA runtime that was started"
    if driver is not None and driver.cuda is not None:
        cause += f": it supports CUDA {cuda_text(driver.cuda)}"
        if driver.version:
            cause += f" (driver {driver.version})"
    if wanted is not None and lua:
        cause += f"; the toolkit that the text names is CUDA {cuda_text(wanted)}{_since(wanted)}"
    elif brought := _brought(seen, wanted):
        cause += brought
    elif driver is not None and driver.cuda is not None and before_11(driver.cuda):
        cause += brought_by_index(seen, driver.cuda)
    elif driver is not None and driver.cuda is not None and driver.cuda[0] >= 11:
        # Within one major version of CUDA any driver of that version will do.
        floor = driver_table().floors.get(driver.cuda[0] + 1)
        if floor:
            cause += (
                f". That is enough for any torch of CUDA {driver.cuda[0]}, so this one is built "
                f"for CUDA {driver.cuda[0] + 1}, which on Linux runs from driver {floor} on, or "
                "for a newer one"
            )
    commands, more = _older_torch(seen, driver)
    ended = _ended(seen, driver)
    commands, more = ((), ended[1:]) if ended else (commands, more)
    hosts = in_image(seen) and not ended
    commands, more = ((), ()) if hosts else (commands, more)
    return seen.answer(
        KIND, CODE, f"{cause}.", owner=OWNER, direction="none",
        confidence="high" if driver is not None else "medium",
        help=(SMI, *commands),
        notes=(
            ended[0] if ended else _HOSTS if hosts else _ways_out(seen, driver),
            *more,
            _SAYS_THE_SAME,
        ),
    )  # fmt: skip


#: "Cosmos container (NeMo, CUDA 12)", "in the docker image".
_IMAGE_KEYS = ("flag:image", "flag:nv-image", "ngc", "server_image", "flag:container")


def in_image(seen: Seen) -> bool:
    """Whether the program runs in a container's image, whose packages are of one build."""
    return any(key in seen.versions for key in _IMAGE_KEYS)


def _brought(seen: Seen, wanted: CudaVersion | None) -> str:
    """The CUDA of torch and the driver that it takes, as the end of a sentence; "" if untold."""
    if wanted is not None:
        return f"; torch here brings CUDA {cuda_text(wanted)}{_since(wanted)}"
    major = seen.versions.get("torch_cuda_major")
    if major is None:
        return ""
    return f"; the torch of the text is one for CUDA {major}{_since((int(major), 0))}"


def _since(wanted: CudaVersion) -> str:
    floor = driver_table().floors.get(wanted[0])
    if floor is None:  # before CUDA 11 each release takes the driver of its own time
        return f", which takes {driver_needed(wanted)}"
    return f", which runs from driver {floor} on"


def _ended(seen: Seen, driver: Driver | None) -> tuple[str, ...]:
    """What is left where the driver is of the last branch that knows the GPU; () elsewhere."""
    name = seen.versions.get("old_gpu") or seen.versions.get("gpu", "")
    last = last_driver(name)
    if last is None or driver is None or driver.cuda is None or driver.cuda < last.cuda:
        return ()
    none = (
        f"An NVIDIA driver newer than the branch {last.branch} does not know {name} "
        f"({last.architecture}): {last.branch} is the last release for it, which supports CUDA "
        f"{cuda_text(last.cuda)}. No newer driver helps."
    )
    gpu = named_gpu(name)
    if last.cuda < (10, 0):  # torch's wheels have had no code for Fermi
        return (
            none,
            "No wheel of torch has code for that GPU with a CUDA that its last driver supports: "
            "the CPU is what is left (CUDA_VISIBLE_DEVICES= hides the GPU), or another GPU.",
        )
    return (
        none,
        f"So it is a torch for CUDA {last.cuda[0]} or older, where one has code for that GPU and "
        "for this Python; else the CPU (CUDA_VISIBLE_DEVICES= hides the GPU), or another GPU.",
        *(
            (f"Torch's own wheels with code for it: {wheels_with(gpu, seen.place.machine)}.",)
            if gpu is not None and wheels_with(gpu, seen.place.machine)
            else ()
        ),
    )


def _ways_out(seen: Seen, driver: Driver | None) -> str:
    if _LUA.search(seen.mention.line):
        return (
            "This is torch for Lua, which is compiled with the system's CUDA toolkit and takes the "
            "runtime of that one: a newer driver, or a toolkit that the driver supports and a "
            "build with it, is the way out."
        )
    if driver is not None and driver.cuda is not None and driver.cuda < _FIRST_WHEELS:
        return (
            "Only a newer driver helps: there has been no wheel of torch for a CUDA that old. "
            "Where none is offered for the GPU, the GPU is older than all that torch serves."
        )
    if driver is not None and driver.cuda is not None and before_11(driver.cuda):
        return ways_out(driver.cuda)
    return (
        "Two ways out: a newer driver, or a torch built for a CUDA major version that this "
        "driver supports. The CUDA toolkit of the system plays no part where torch comes from "
        "a wheel, which brings a runtime of its own."
    )


def _old_or_none(seen: Seen) -> Answer:
    """Error 35 without a driver's version: torch's c10/cuda/CUDAFunctions.cpp tells both apart.

    There the same error is "Found no NVIDIA driver" where the driver's version is 0; other
    programs hand on the runtime's words as they are.
    """
    other = seen.versions.get("other_gpu")
    wanted = cuda_version(seen.torch_cuda)
    commands: tuple[str, ...] = ()
    if other and not {"gpu", "gpus"} & seen.versions.keys():
        cause = (
            "The CUDA runtime says so too where there is no NVIDIA driver at all, and the only GPU "
            f"that the text names ({other}) is none of NVIDIA's: CUDA does not run on it, and no "
            "driver changes that."
        )
        notes: tuple[str, ...] = (
            "The way out is the program's own path for the CPU or for that GPU, or an NVIDIA GPU. "
            "Where the machine has one beside, its driver is missing or too old.",
        )
    else:
        cause = (
            "Two causes have this error: there is no NVIDIA driver for this process at all (none "
            "is installed, the GPU is not NVIDIA's, or a container was started without GPUs), or "
            "the driver is older than the CUDA runtime that was started"
        )
        cause += _brought(seen, wanted)
        cause += ". The first command tells them apart: it fails where there is no driver."
        commands, more = _major_before(seen, wanted)
        notes = (
            _HOSTS if in_image(seen) else _ways_out(seen, None),
            *more,
            _SAYS_THE_SAME,
        )
    return seen.answer(
        KIND, CODE, cause, owner=OWNER, direction="none", confidence="medium",
        help=(SMI, *commands), notes=notes,
    )  # fmt: skip


def _major_before(
    seen: Seen, wanted: CudaVersion | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): torch for the CUDA major version before that of the torch in the text.

    Only where the text tells that one, and nothing was compiled for one release of torch.
    """
    told = seen.versions.get("torch_cuda_major")
    told = told or (str(wanted[0]) if wanted and "+cu" in (seen.torch or "") else None)
    if told not in ("12", "13") or in_image(seen) or _built_for_torch(seen) is not None:
        return (), ()
    other = str(int(told) - 1)
    minor = ".".join((seen.torch or "").split(".")[:2])
    same = [one for one in _cudas(minor) if one.startswith(f"{other}.")]
    kept = same_for(seen, same[-1]) if same else None
    newest = (kept, "") if kept else newest_for(seen, int(other))
    if newest is None:
        return (), ()
    said = (
        f"Where nvidia-smi shows a driver older than {driver_table().floors[int(told)]}, the last "
        f"command is the way without a new one: a torch for CUDA {other}, which runs from driver "
        f"{driver_table().floors[int(other)]} on."
    )
    return (newest[0],), (said,)


def _of_binding(seen: Seen, driver: Driver | None) -> Answer:
    """cuda-python's runtime, which is none of torch's: NVIDIA/cutlass issues 2804 and 2866."""
    floors = driver_table().floors
    cause = (
        "The runtime that found the driver too old is the one that cuda-python (cuda-bindings) "
        "brings, not torch's: cuda-python 13 takes driver "
        f"{floors[13]} or newer, cuda-python 12 driver {floors[12]}. pip takes the newest where "
        "a package leaves it open, as nvidia-cutlass-dsl 4.3 does"
    )
    if driver is not None and driver.cuda is not None:
        cause += f"; the driver here supports CUDA {cuda_text(driver.cuda)}"
    return seen.answer(
        KIND, CODE, f"{cause}.", owner=OWNER, direction="none", confidence="medium",
        help=(SMI, f"{seen.pip} list | grep -iE 'cuda-(python|bindings)|cutlass'",
              f'{seen.pip} install "cuda-python==12.9.*"'),
        notes=(
            "Three ways out: cuda-python 12.9, as the last command installs it, "
            "nvidia-cutlass-dsl 4.4 or newer, which settles it, or a newer driver.",
            "What the same report says of architectures (CUTE_DSL_ARCH) "
            "only follows: neither the GPU nor the toolkit of the system (CUDA_TOOLKIT_PATH) is "
            "at fault.",
        ),
    )  # fmt: skip


def _built_for_torch(seen: Seen) -> str | None:
    """A package with compiled code that the text shows: it wants the torch it was built for."""
    for mention in seen.paste.mentions:
        package = package_of(mention.file or "")
        if package is not None and package not in _FAMILY:
            return package
    return None


def _older_torch(seen: Seen, driver: Driver | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the newest torch on the index that this driver can serve.

    Not where a package is there that was compiled for one release of torch.
    """
    atlas = seen.tables.atlas
    if driver is None or driver.cuda is None or atlas is None:
        return (), ()
    if before_11(driver.cuda) and _built_for_torch(seen) is None:
        return torch_for(seen, driver.cuda)
    mine = driver.cuda[0]
    minor = ".".join((seen.torch or "").split(".")[:2])
    same = [one for one in _cudas(minor) if parse_cuda(one)[0] == mine]
    notes: list[str] = []
    if same:
        tag = cuda_label(same[-1])
        notes.append(
            f"torch {minor} itself has wheels for CUDA {', '.join(same)} on torch's own index (its "
            f"address ends in whl/{tag}): they keep the release."
        )
    package = _built_for_torch(seen)
    if package is not None:
        notes.append(
            f"{package} is compiled for one release of torch and one CUDA: with a torch for an "
            f"older CUDA it takes a build of {package} for that pair, and another release of torch "
            "alone would break it."
        )
        return (), tuple(notes)
    kept = same_for(seen, same[-1]) if same else None
    if kept is not None:
        return (kept,), tuple(notes)
    builds = [b for b in atlas.builds(seen.place.machine) if b.cuda and serves(b, seen)]
    fitting = [b.release for b in builds if b.cuda_major is not None and b.cuda_major <= mine]
    commands = (f'{seen.pip} install "torch=={fitting[-1]}"',) if fitting else ()
    newest = newest_for(seen, mine) if mine in (11, 12) and not same else None
    if newest is not None:
        return (newest[0], *commands), (*notes, newest[1])
    return commands, tuple(notes)


def _cudas(minor: str) -> tuple[str, ...]:
    return tuple(read_table("torch_cuda.json")["cuda"].get(minor, ()))
