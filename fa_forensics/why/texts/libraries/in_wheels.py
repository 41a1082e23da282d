"""A CUDA library that lies in a wheel's directory, where the loader does not look by itself."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import (
    on_path,
    there_already,
    torch_again,
    wheel_of,
)
from fa_forensics.why.texts.libraries.needing import (
    import_torch_first,
    needing,
    package_of_text,
    who_needs_it,
)
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "missing-library", "FA202"

#: Libraries that import torch does not bring into the process, by their owner: in no list of
#: libraries that it loads at once (readelf -d of libtorch_cuda.so, torch 2.4.0+cu121; cuSOLVER
#: is listed by libtorch_cuda_linalg.so alone, which torch opens with the first such call).
_LATE = {
    "nvrtc": "torch before 2.6 opens NVRTC with the first kernel that it compiles, and later ones "
    "at import torch",
    "cusolver": "torch opens cuSOLVER with the first call that needs it, not at import torch",
}
#: The first torch that has NVRTC in the process after import torch.
_NVRTC_FIRST = "2.6.0"
_IN_A_WHEEL = lazily(r"-packages/nvidia/[\w/-]{1,60}/lib/[^/]+\Z")


def is_late(seen: Seen, owner: str | None) -> bool:
    """Whether import torch may leave a library of this owner out of the process."""
    if owner not in _LATE:
        return False
    torch = seen.torch
    return owner != "nvrtc" or not torch or order_key(torch) < order_key(_NVRTC_FIRST)


def words_of_late(owner: str | None) -> str:
    """When torch loads such a library, in words; "" for others."""
    return _LATE.get(owner or "", "")


def in_a_wheel(seen: Seen, soname: str, owner: str | None, major: str) -> Answer | None:
    """The answer where the text shows the library in a wheel's directory; None for others."""
    path = seen.mention.detail.get("present", "")
    own = (seen.torch_cuda or "").split(".")[0]
    if not _IN_A_WHEEL.search(path) or own not in ("", major):
        return None
    folder = path.rpartition("/")[0]
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} needs {soname}, a library of CUDA {major}, and the text has "
        f"it: it lies in {folder}, a directory of NVIDIA's wheels, where the loader does not look "
        "by itself."
    )
    helps = [folder_on_path(seen.python, folder)]
    if is_late(seen, owner):
        cause += f" {words_of_late(owner)}."
        cause += (
            " Importing torch first brings it only where torch is 2.6 or newer."
            if owner == "nvrtc"
            else " Importing torch first does not bring it."
        )
        cause += (
            f" That directory, or the lib64 of a CUDA {major} toolkit, has to be on "
            "LD_LIBRARY_PATH when Python starts."
        )
    else:
        cause += (
            " torch loads such libraries when it is imported, so that importing torch first brings "
            f"it where torch is a build for CUDA {major}; else that directory has to be on "
            "LD_LIBRARY_PATH when Python starts."
        )
        helps.append(import_torch_first(seen))
    helps.append(f"{seen.pip} list | grep -iE '^torch|nvidia|{_word(seen)}'")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(
            "In a container's image the variable goes into its ENV. Where that directory is of "
            "another Python or environment than the one that runs, it does not count: the wheel "
            "has to be in the environment of torch.",
            f"Nothing of another CUDA is to be installed: a library of another major version under "
            f"the name {soname} does not count.",
        ),
    )  # fmt: skip


def _word(seen: Seen) -> str:
    """What else of pip's list counts: who needs the library."""
    package = package_of_text(seen) or "cuda"
    return re.sub(r"[-_]", ".", package)


def not_by_torch(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    """torch is one for that CUDA, and loads the library later than at its import, or not."""
    wheel = wheel_of(seen, soname, major)
    bringer = wheel or "a wheel of NVIDIA's"
    late = is_late(seen, owner)
    when = f"{words_of_late(owner)}." if late else "This torch brings it when it is imported."
    cause = (
        f"torch is a build for CUDA {major} too, and {bringer} brings {soname}, in "
        f"site-packages/nvidia, where the loader does not look by itself. {when} So "
        f"{needing(seen)} was imported before torch, or that wheel is not installed in this "
        "environment, or its directory has to be on the loader's path."
    )
    if late:
        cause = (
            f"torch is a build for CUDA {major} too, and {bringer} brings {soname}, in "
            f"site-packages/nvidia, where the loader does not look by itself. {when} So that wheel "
            "is not installed in this environment, or its directory has to be on the loader's path."
        )
    helps = [] if late else [import_torch_first(seen)]
    if wheel:
        helps += [f"{seen.pip} show {wheel}", on_path(seen, wheel)]
    else:
        helps.append(f"{seen.pip} list | grep -iE '^torch|nvidia'")
    if seen.torch:
        helps.append(torch_again(seen, seen.torch.partition("+")[0]))
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*helps, who_needs_it(seen)), notes=there_already(seen),
    )  # fmt: skip
