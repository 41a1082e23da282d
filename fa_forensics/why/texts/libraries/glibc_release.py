"""Packages each release of which is for one torch, on a system with too old a glibc."""

from __future__ import annotations

from fa_forensics.facts.python_api import partner_of
from fa_forensics.why.seen import Seen

#: Each release asks for one torch, and the newest fits no older one.
_ONE_TORCH = ("vllm", "sglang", "lmdeploy")


def release_for(seen: Seen, name: str) -> str:
    """The release for the text's torch; "" where it is not told, or of another package."""
    if name not in _ONE_TORCH or not seen.torch:
        return ""
    return partner_of(name, seen.torch.partition("+")[0]) or ""


def in_newer_system(name: str, release: str, own: tuple[int, ...] | None) -> str:
    """A container with its own glibc, where the system's compiler is too old as well; "" else.

    Debian 12 has glibc 2.36.
    """
    if name not in _ONE_TORCH or not own or own > (2, 17):
        return ""
    wanted = f"{name}=={release}" if release else name
    return (
        "docker run --gpus all --ipc=host -it python:3.11-bookworm bash -c "
        f"'pip install {wanted} && exec bash'"
    )
