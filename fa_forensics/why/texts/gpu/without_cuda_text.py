"""Answers to a torch that is a build without CUDA where a program wants a GPU."""

from __future__ import annotations

import re

from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.gpu.jetson_text import is_jetson, without_cuda
from fa_forensics.why.texts.gpu.rocm_text import not_for_rocm, on_amd
from fa_forensics.why.texts.python.pairs import FROM_THERE_TOO, chosen_cuda, of_cuda, one_of_them

KIND = "wrong-torch"
_MAC = lazily(
    r"/Users/|\bmac ?OS\b|\bDarwin\b|\bMacBook|\bM[1-4](?: (?:Pro|Max|Ultra))? mac|osx-", re.I
)


def torch_without_cuda(seen: Seen) -> Answer:
    """``Torch not compiled with CUDA enabled``: a CPU build of torch."""
    if on_amd(seen):
        return not_for_rocm(seen)
    if is_jetson(seen):
        return without_cuda(seen)
    words = (seen.versions.get("os", ""), *seen.paste.places, seen.mention.line,
             *seen.mention.detail.values())  # fmt: skip
    if _MAC.search(" ".join(words)):
        return _on_a_mac(seen)
    told = seen.versions.get("torch") if seen.elsewhere else seen.torch
    ask = (
        f"{seen.python} -c 'import sys, torch; print(sys.executable, torch.__version__, "
        "torch.version.cuda)'"
    )
    release = told.partition("+")[0] if told else ""
    again, notes = _with_cuda(seen, release)
    if told and re.search(r"[+]cu\d", told):
        cause = (
            f"The text names torch {told}, which is a build with CUDA, and the torch that was "
            "imported is one without: the program runs with another Python, or with a torch that "
            "was installed after that one. The first command, with the program's own Python, "
            "shows which."
        )
        return seen.answer(
            KIND, "FA607", cause, owner="torch", direction="none", confidence="medium",
            help=(ask, again), notes=notes,
        )  # fmt: skip
    torch = f"torch {told if '+' in told else release}" if told else "The torch that is imported"
    cause = (
        f"{torch} is a build without CUDA: the driver, the GPU and a CUDA toolkit play no part. A "
        "later installation often replaces a CUDA build by it."
    )
    return seen.answer(
        KIND, "FA601", cause, owner="torch", direction="none", confidence="high",
        help=(ask, again), notes=("None in the first line is a CPU build.", *notes),
    )  # fmt: skip


def _with_cuda(seen: Seen, release: str) -> tuple[str, tuple[str, ...]]:
    """(command, notes): the same release of torch in a build with CUDA."""
    pinned = f'"torch=={release}"' if release else "torch"
    minor = ".".join(release.split(".")[:2])
    cudas = published_cuda().get(minor, ())
    cuda = chosen_cuda(seen, cudas)
    command = f"{seen.pip} install --force-reinstall --no-cache-dir {pinned}{of_cuda(cuda)}"
    return command, (
        "The package index has builds of torch with CUDA for Linux, and for Windows builds without "
        "it alone.",
        *one_of_them(cuda, cudas),
        FROM_THERE_TOO,
    )


def _on_a_mac(seen: Seen) -> Answer:
    return seen.answer(
        KIND, "FA601",
        "This is macOS, for which there is no CUDA and no torch with it: the program asks for the "
        "device cuda, which no Mac has. Nothing is to be installed; it has to take the device mps "
        "(Apple's GPU) or cpu.",
        owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, "
              "torch.backends.mps.is_available())'",),
        notes=("Packages with CUDA code (flash-attn, bitsandbytes' GPU part, xformers) do not run "
               "there.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"torch-without-cuda": torch_without_cuda}
