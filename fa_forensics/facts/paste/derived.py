"""What the version of one thing says of another: torch's CUDA, a platform's machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fa_forensics.facts.paste.machines import is_of_arm

#: Distributions that go on under another name, with the import's name kept: the first release
#: under the new one (the package index: sgl-kernel ends at 0.3.21, sglang-kernel begins at 0.4.0).
_RENAMED = {"sgl-kernel": ((0, 4), "sglang-kernel")}


def derived(
    offer: Callable[[str, int, int, str], None], best: Mapping[str, tuple[int, int, str]]
) -> None:
    """What one version says of another: torch's own CUDA, a platform's machine and glibc."""
    torch = best.get("torch")
    if torch is not None:
        cuda = re.search(r"\+cu(?:da)?(\d{2})\.?(\d)$", torch[2])
        if cuda:
            offer("torch_cuda", torch[0], torch[1], f"{cuda[1]}.{cuda[2]}")
        rocm = re.search(r"\+rocm(\d[\d.]{0,6})", torch[2])
        if rocm:
            offer("rocm", torch[0], torch[1], rocm[1])
    for old, (since, new) in _RENAMED.items():
        had = best.get(f"pkg:{old}")
        if had is not None and tuple(map(int, re.findall(r"\d+", had[2])[:2])) >= since:
            offer(f"pkg:{new}", *had)
    for key in ("os", "platform"):
        known = best.get(key)
        machine = re.search(r"x86_64|aarch64|arm64|ppc64le", known[2]) if known else None
        if known and machine:
            offer("machine", known[0], known[1], machine[0])
    gpu = best.get("gpu")
    if gpu is not None and "machine" not in best and is_of_arm(gpu[2]):
        offer("machine", *gpu[:2], "aarch64")
