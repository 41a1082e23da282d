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
