"""Answers to a distribution that is only a name for others, which are not installed."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import version_of


def empty_meta(seen: Seen) -> Answer:
    """``Found empty `transformer-engine` meta package installed`` of transformer_engine/common."""
    package = "transformer-engine"
    version = version_of(seen, package)
    wanted = f"{package}[pytorch]=={version}" if version else f"{package}[pytorch]"
    cause = (
        "The distribution transformer-engine of the package index has no code: it is a name for "
        "its parts, which its extras bring. It is installed without them: the core "
        "(transformer_engine_cu12 or _cu13) and the part for torch (transformer_engine_torch) are "
        "missing. No file is damaged, and torch has no part in it."
    )
    image: tuple[str, ...] = ()
    if "ngc" in seen.versions:
        image = (
            "NVIDIA's image has a Transformer Engine of its own, made for its torch: pip put the "
            "one of the package index in its place. A fresh container without that command has it "
            "still; there, a package that asks for transformer-engine is installed with --no-deps.",
        )
    return seen.answer(
        "damaged-file", "FA880", cause, owner=package, direction="none", confidence="high",
        help=(
            f"{seen.pip} list | grep -i transformer",
            f"{seen.pip} uninstall -y transformer_engine transformer_engine_cu12 "
            "transformer_engine_cu13 transformer_engine_torch",
            f'{seen.pip} install --no-build-isolation "{wanted}"',
        ),
        notes=(
            *image,
            "All parts have to be of one release. The part for torch is compiled on the machine, "
            "against the torch that is there: nvcc, cuDNN's headers and a C++ compiler have to be "
            "at hand.",
        ),
    )  # fmt: skip
