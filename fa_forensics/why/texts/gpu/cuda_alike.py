"""GPUs of other makers whose torch says what CUDA says: no advice on NVIDIA's driver fits them.

torch for ROCm is one of these: "CUDA error: ..." is what its builds of 2.11 and newer print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import words_of


def _maker(seen: Seen) -> tuple[Mapping[str, Any], str] | None:
    """(the row of a maker, what in the text names it)."""
    texts = (words_of(seen), *seen.paste.places)
    torch = seen.versions.get("torch") or seen.torch or ""
    local = torch.partition("+")[2].lower()
    for row in read_table("cuda_alike.json")["rows"]:
        for path in row["paths"]:
            if any(path in text for text in texts):
                return row, path
        for version in row["versions"]:
            if local.startswith(version):
                return row, f"torch {torch}"
    return None


def _answer(seen: Seen, row: Mapping[str, Any], sign: str) -> Answer:
    cause = (
        f"This is no GPU of NVIDIA's: {sign} is that of {row['title']}, a torch of "
        f"{row['maker']}'s own with a runtime and a driver that use CUDA's error texts. The "
        "message is about these, which have to be of one release, or about code for those GPUs; "
        "nothing of NVIDIA's is to be installed, updated or taken away."
    )
    return seen.answer(
        "unrecognised", "FA899", cause, owner=row["id"], direction="none", confidence="medium",
        help=(
            row["tool"],
            f"ls -d {row['paths'][0]}*; echo $LD_LIBRARY_PATH",
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.__file__)'",
        ),
        notes=(
            "Which of its runtimes fits which of its drivers is in that maker's own release notes; "
            "in a container the runtime is the image's and the driver the host's.",
        ),
    )  # fmt: skip


#: What is about code for the GPU, and what about the device, of the errors that HIP has too.
_CODE = ("no-kernel-image", "invalid-device-function", "image-invalid", "named-symbol-not-found",
         "illegal-instruction")  # fmt: skip


#: A source file that was made for HIP: "csrc/ops.hip", "flash_fwd_hip.cu".
_OF_HIP = lazily(r"[/\\]\w{1,80}(?:\.hip\b|_hip\.(?:cu|cpp|h|hip)\b)")


#: What a text names where the machine has an AMD GPU.
_AMD = ("gfx", "amd_gpu", "amd")


def amd_alone(seen: Seen) -> bool:
    """Whether the text names an AMD GPU and no other."""
    return any(key in seen.versions for key in _AMD) and not {"gpu", "gpus"} & seen.versions.keys()


def of_hip(seen: Seen) -> bool:
    """Whether the words of a message name a source file for HIP: only builds for AMD have such."""
    return _OF_HIP.search(words_of(seen)) is not None


def on_rocm(seen: Seen) -> Answer | None:
    """The answer of ROCm, where the text's torch is one for ROCm; None elsewhere."""
    torch = seen.versions.get("torch") or seen.torch or ""
    amd = "+" not in torch and amd_alone(seen)
    rocm = "rocm" in torch.partition("+")[2] or amd or of_hip(seen)
    if not rocm:
        return None
    if seen.mention.what in _CODE:
        from fa_forensics.why.texts.gpu.rocm_code import no_code

        return no_code(seen)
    if seen.mention.what in ("no-device", "driver-ill"):
        from fa_forensics.why.texts.gpu.rocm_text import no_device

        return no_device(seen)
    return None


def nvidia_alone(answerer: Answerer) -> Answerer:
    """An answerer whose advice holds for NVIDIA's GPUs, with another answer for the others."""

    def answer(seen: Seen) -> Answer:
        found = _maker(seen)
        if found is not None:
            return _answer(seen, *found)
        return on_rocm(seen) or answerer(seen)

    return answer
