"""CTranslate2, the engine of faster-whisper: its own words for an error of the CUDA runtime."""

from __future__ import annotations

from fa_forensics.facts.drivers import Driver, cuda_text, driver_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.gpu.driver_ill import SMI

#: The words of CUDA_CHECK in CTranslate2's src/cuda/utils.h.
_WORDS = lazily(r"\bCUDA failed with error\b")
#: The last release whose wheels are built with CUDA 11; those of 4.0.0 and later are for CUDA 12
#: (CTranslate2's CHANGELOG.md, 4.0.0; README of faster-whisper, "GPU").
_LAST_11 = "3.24.0"


def driver_for_ctranslate2(seen: Seen, driver: Driver | None) -> Answer | None:
    """The driver is too old for CTranslate2, whatever torch's CUDA is; None for other words.

    None as well where the driver supports CUDA 12.
    """
    if _WORDS.search(seen.mention.line) is None:
        return None
    cuda = driver.cuda if driver is not None else None
    if cuda is not None and cuda[0] >= 12:
        return None
    floors = driver_table().floors
    cause = (
        "The words are those of CTranslate2, the engine of faster-whisper and other speech "
        "programs, and not torch's: its wheels bring a CUDA runtime of their own."
    )
    cause += (
        f" Those of CTranslate2 4.0 and later are for CUDA 12, which runs from driver {floors[12]} "
        "on"
    )
    if cuda is not None:
        cause += f"; the driver here supports CUDA {cuda_text(cuda)}"
        cause += f" ({driver.version})" if driver is not None and driver.version else ""
    notes = [
        "A newer driver leaves all packages as they are. No other torch helps: CTranslate2 does "
        "not use it.",
    ]
    commands: tuple[str, ...] = ()
    if cuda is None or cuda[0] == 11:
        commands = (f'{seen.pip} install --force-reinstall --no-deps "ctranslate2=={_LAST_11}"',)
        notes.append(
            f"Without a newer driver it is CTranslate2 {_LAST_11}, the last for CUDA 11 (driver "
            f"{floors[11]} or newer), with cuBLAS of CUDA 11 and cuDNN 8; or the CPU for that step "
            '(device="cpu").'
        )
    if driver is None:
        notes.append(
            "The first command fails where there is no NVIDIA driver for this process at all, "
            "which has the same error: a container that was started without GPUs has none."
        )
    return seen.answer(
        "gpu-driver", "FA506", f"{cause}.", owner="cuda-driver", direction="none",
        confidence="high" if cuda is not None else "medium",
        help=(SMI, *commands, f"{seen.pip} list | grep -iE 'ctranslate2|faster.whisper'"),
        notes=tuple(notes),
    )  # fmt: skip
