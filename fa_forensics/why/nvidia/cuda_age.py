"""Names of CUDA's libraries that came or went before the record of NVIDIA's wheels begins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.cuda_names import (
    Gone,
    counted_by,
    cuda_name_gone,
    cuda_name_since,
    first_torch_with,
    is_emitted,
    is_in_every,
)
from fa_forensics.facts.owner import title_of
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.commands import needed_libraries

KIND, CODE = "versioned-symbol", "FA204"

#: Said where the file names a library of a time without wheels by NVIDIA.
PLAIN_NAME = (
    "Wheels of that time have such a library inside, under a name with a hash. A file that asks "
    "for it by its plain name is of conda, of a system (Jetson, a distribution) or of a build of "
    "one's own, and takes the copy that the loader finds: the last release of that CUDA version "
    "has to stand first there, or the file is compiled again with the one that is."
)


def came_with(owner: str, name: str) -> str:
    """A sentence on since when a name is there, with a blank before it; "" for unknown names."""
    since = cuda_name_since(owner, name)
    return f" It came with {counted_by(owner)} {since}." if since else ""


def interval_since(owner: str, name: str, interval: str) -> str:
    """The versions that export a name, with what is known of the time before the wheels."""
    since = cuda_name_since(owner, name)
    if since is None and interval and is_in_every(owner, name):
        return "every release"
    gone = cuda_name_gone(owner, name)
    if not interval and gone is not None:
        return f"{counted_by(owner)} up to {gone.after}"
    if since is None or not interval:
        return interval
    return f"{counted_by(owner)} {since} and later; of the wheels {interval}"


def of_another_time(owner: str, name: str, version: str, soname: str) -> Judgement:
    """A file asks for a name in a library of which no version is on record."""
    came = came_with(owner, name)
    words = f", as every {soname} does" if not came else ""
    cause = (
        f"The file asks for it in {version}, of which no version is on record.{came} The {version} "
        f"that is loaded is older than the one that the file was linked with, which has it{words}: "
        "that number stands for several releases, and an earlier one of them was found, in a "
        "module's or toolkit's directory on LD_LIBRARY_PATH, in conda, or on the system."
    )
    return Judgement(KIND, CODE, NEWER, cause, (PLAIN_NAME,), "medium")


def of_another_time_commands(needed_by: Sequence[str], version: str) -> tuple[str, ...]:
    """Which copy the file takes, and what puts another one before it."""
    stem = re.sub(r"^lib|\.so.*$", "", version)
    return (
        needed_libraries(needed_by, stem),
        "echo $LD_LIBRARY_PATH; module list; ls -d /usr/local/cuda*",
        f"conda list | grep -iE 'cudatoolkit|{stem}'",
    )


def emitted_name(name: str, title: str) -> Judgement | None:
    """A name that nvcc writes into what it compiles; None for all others.

    It is of a time when the runtime's file name had the minor version too (up to 10.2).
    """
    since = cuda_name_since("cudart", name)
    if since is None or not is_emitted(name):
        return None
    cause = (
        f"nvcc itself writes this name into all that it compiles since CUDA {since}, and every "
        f"CUDA runtime since then has it: the file was compiled with nvcc {since} or newer. Two "
        f"causes fit: {title} that is loaded, most often the one that torch brings, is older; or "
        "none is loaded, because the file was linked without -lcudart and counts on torch's. "
        "Either way the file is to be compiled again with the nvcc of torch's CUDA, in a clean "
        "directory."
    )
    return Judgement(KIND, CODE, NEWER, cause, (OF_NVCC,), "medium")


#: The directory of the toolkit of torch's own CUDA, for what is compiled next.
HOME_OF_TORCH = (
    "export CUDA_HOME=/usr/local/cuda-$({python} -c 'import torch; print(torch.version.cuda)' "
    "| cut -d. -f1,2); export PATH=$CUDA_HOME/bin:$PATH"
)
#: Said of a name that nvcc writes.
OF_NVCC = (
    "Up to CUDA 10.2 the runtime's file name has the minor version too. Where the command with "
    "readelf lists a libcudart of another number than nvcc's, the file was compiled and linked "
    "with two toolkits; where it lists none, it takes the one of torch."
)


def of_nvcc_commands(needed_by: Sequence[str], python: str) -> tuple[str, ...]:
    """Which CUDA torch has, which nvcc there is, and the build with the same one."""
    return (
        f"{python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
        "nvcc --version; echo CUDA_HOME=$CUDA_HOME; ls -d /usr/local/cuda*",
        HOME_OF_TORCH.replace("{python}", python),
        needed_libraries(needed_by),
    )


#: Said of a library that the file does not list, in a release of which no wheel is on record.
UNLISTED = (
    "Where the first command lists no such library, that is the cause: the file is built again "
    "with it among what is linked (libraries=[...] in setup.py). Until then the toolkit's copy, "
    'opened before the import by ctypes.CDLL("/path/to/it", ctypes.RTLD_GLOBAL), does the same.'
)


def _gone_or_unlisted(owner: str, name: str, gone: Gone, place: Place) -> Judgement:
    """A name of CUDA's former releases, of which a torch of that time says which one is loaded."""
    title = title_of(owner)
    first = first_torch_with(gone.first)
    torch = place.present
    early = first is not None and torch is not None and order_key(torch.release) < order_key(first)
    cause = f"{name} is a name of {title} up to CUDA {gone.after}; CUDA {gone.first} dropped it. "
    unlisted = (
        f"{title} is not loaded: the file does not list it among the libraries it needs (it was "
        f"linked without -l{owner}), and a torch wheel keeps its own copy to itself"
    )
    if early:
        cause += (
            f"{place.here} is of that time, so that the name is not too old: most likely "
            f"{unlisted}."
        )
        return Judgement(KIND, "FA210", NONE, cause, (UNLISTED,), "medium")
    cause += (
        f"Two causes fit: {unlisted}; or the {title} that is loaded is of CUDA {gone.first} or "
        "newer, and the file has to be compiled again with its headers, from sources that do "
        "without this function."
    )
    return Judgement(KIND, "FA210", UNKNOWN, cause, (UNLISTED,), "medium")


def gone_name(owner: str, name: str, gone: Gone, place: Place) -> Judgement:
    """A name that the library's newer versions do not have."""
    if counted_by(owner) == "CUDA" and not gone.nvcc:
        return _gone_or_unlisted(owner, name, gone, place)
    title = title_of(owner)
    if gone.nvcc:
        cause = (
            f"{name} is of the old way to launch a kernel: nvcc before CUDA {gone.nvcc} writes it "
            f"into all that it compiles, and {title} {gone.first} and newer have none such. The "
            f"file was compiled with an nvcc older than {gone.nvcc} and meets the library of a "
            "newer CUDA, most often torch's: it has to be compiled again with the nvcc of "
            "torch's CUDA, and nothing of the first build may be left."
        )
        return Judgement(KIND, CODE, OLDER, cause, (), "high")
    cause = (
        f"{name} is a name of {title} up to {gone.after}: {title} {gone.first} and newer have "
        f"none such. The file was compiled with the headers of {title} {gone.after} or older, and "
        f"meets a newer {title}: it has to be compiled again with the headers of the one that is "
        "loaded, and nothing of the first build may be left."
    )
    return Judgement(KIND, CODE, OLDER, cause, (), "medium")
