"""Answers about a library of the NVIDIA driver that is empty: most often a container's."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.clues import base

#: Owners of what the driver brings, and no package of Python's.
OF_DRIVER = ("cuda-driver", "nvml")
FROM_HOST = (
    "The driver's libraries come into a container from its host; an image that was made "
    "from a running container keeps them as empty files. Remove those from the image, and "
    "start it with the NVIDIA container toolkit."
)
_CONTAINER = ("flag:image", "flag:container", "flag:nv-image", "ngc", "server_image")


def empty_of_driver(seen: Seen, path: str, owner: str) -> Answer:
    """``libcuda.so.1: file too short``: no download, and no package to install again."""
    name = base(path)
    cause = (
        f"{name} is the NVIDIA driver's, and what lies under that name is empty or cut off. In a "
        "container this is most often the empty file that an image keeps for the library of the "
        "host, and nothing was mounted over it; on the host itself, an installation of the driver "
        "that did not end. What was being imported is whole."
    )
    helps = ["".join(("ls -lL ", quoted(path) if "/" in path else f"/path/to/{quoted(name)}"))]
    inside = not seen.versions.keys().isdisjoint(_CONTAINER) and "/wsl/" not in path
    notes = [FROM_HOST]
    if inside:
        helps.append(" ".join(("docker", "run", "--gpus", "all", "IMAGE")))
        notes.append(
            "IMAGE is the image that was started: --gpus all is what mounts the host's libraries, "
            "and the host needs the NVIDIA container toolkit for it."
        )
    if inside and path.startswith("/") and "..." not in path:
        notes.append(
            f"Where it is empty with --gpus all too, the line RUN rm {quoted(path)} in the image's "
            "Dockerfile takes it out of the image. On the host itself nothing is to be removed: "
            "there the driver is installed again."
        )
    return seen.answer(
        "damaged-file", "FA102", cause, owner=owner, direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def driver_of_32_bit(seen: Seen, name: str, owner: str) -> Answer:
    """``libcuda.so: wrong ELF class: ELFCLASS32``: only the driver's 32-bit library was found.

    The loader goes on where a directory of its search has a file of the other kind, and reports
    the kind when no directory has a right one (glibc, elf/dl-load.c).
    """
    plain = name.partition(".so")[0] + ".so"
    cause = (
        f"{name} is the NVIDIA driver's, here in its form for 32-bit programs (of lib32 or "
        "i386-linux-gnu), and this Python is a 64-bit one. The loader passes over such a file "
        "while it searches, so that no 64-bit file of that very name was found in the directories "
        "that it looks in."
    )
    notes = [
        "In the list, the line with x86-64 is the 64-bit library: LD_LIBRARY_PATH has to name its "
        "directory, or not name the one with the 32-bit file. Without such a line the driver's "
        "64-bit part is what has to be installed, from the same place as the driver.",
    ]
    if name == plain:
        notes.append(
            f"Where {plain}.1 is there for x86-64 and {plain} is not, it is the link of that name "
            "that is missing, which the driver's own installer and the distribution's package for "
            "development make."
        )
    return seen.answer(
        "wrong-machine", "FA101", cause, owner=owner, direction="none", confidence="high",
        help=(f"ldconfig -p | grep {plain}; echo $LD_LIBRARY_PATH", "nvidia-smi"),
        notes=tuple(notes),
    )  # fmt: skip
