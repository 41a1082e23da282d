"""CTranslate2, the engine of faster-whisper: its own words for an error of the CUDA runtime."""

from __future__ import annotations

import re

from fa_forensics.facts.drivers import Driver, cuda_text, driver_table
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.gpu.driver_ill import SMI
from fa_forensics.why.torch_names.history import order_key

#: The words of CUDA_CHECK in CTranslate2's src/cuda/utils.h.
_WORDS = lazily(r"\bCUDA failed with error CUDA\b")
#: Its own words, or those of another program that has some like them.
_ALIKE = lazily(r"\bCUDA failed with error\b")
#: The package itself, or one that asks for it, in a path or a message.
_USERS = lazily(r"(?i)(?<![\w-])(?:ctranslate2|faster[-_]whisper|whisperx)(?![\w-])")


_ITS_WORDS = (
    "The words are those of CTranslate2, the engine of faster-whisper and other speech programs, "
    "and not torch's: its wheels bring a CUDA runtime of their own."
)
_PERHAPS_ITS = (
    "The words are not torch's: they are like those of CTranslate2, the engine of faster-whisper "
    "and other speech programs, which the text does not name, and another program with a CUDA "
    "runtime of its own may have them too."
)
_NO_TORCH = (
    "A newer driver leaves all packages as they are. No other torch helps: CTranslate2 does not "
    "use it."
)
_FIRST_WHOSE = (
    "A newer driver leaves all packages as they are. Without one it is a release of the program "
    "that failed which is built for a CUDA that this driver supports: the last lines of its "
    "traceback tell which program that is."
)


def _named(seen: Seen) -> bool:
    """Whether the text names CTranslate2 itself, or a package that asks for it."""
    if "flag:ctranslate2" in seen.versions:
        return True
    keys = (key.partition(":")[2] for key in seen.versions if key.startswith(("named:", "pkg:")))
    texts = (*keys, seen.mention.line, *seen.mention.detail.values(), *seen.paste.places)
    return any(_USERS.search(text) for text in texts)


def _last_for(seen: Seen) -> str:
    """The last release for CUDA 11; "" where it has no wheel for the Python of the text."""
    row = next(r for r in read_table("without_torch.json")["rows"] if r["title"] == "CTranslate2")
    first, end = row["last"]["pythons"]
    python = re.match(r"\d{1,2}\.\d{1,3}", seen.python_version or "")
    fits = python is None or order_key(first) <= order_key(python[0]) <= order_key(end)
    return str(row["last"]["release"]) if fits else ""


def driver_for_ctranslate2(seen: Seen, driver: Driver | None) -> Answer | None:
    """The driver is too old for CTranslate2, whatever torch's CUDA is; None for other words.

    None as well where the driver supports CUDA 12.
    """
    named = _named(seen)
    if _ALIKE.search(seen.mention.line) is None:
        return None
    sure = named or _WORDS.search(seen.mention.line) is not None
    cuda = driver.cuda if driver is not None else None
    if cuda is not None and cuda[0] >= 12:
        return None
    floors = driver_table().floors
    cause = _ITS_WORDS if sure else _PERHAPS_ITS
    cause += (
        f" Those of CTranslate2 4.0 and later are for CUDA 12, which runs from driver {floors[12]} "
        "on"
    )
    if cuda is not None:
        cause += f"; the driver here supports CUDA {cuda_text(cuda)}"
        cause += f" ({driver.version})" if driver is not None and driver.version else ""
    notes = [_NO_TORCH if sure else _FIRST_WHOSE]
    commands: tuple[str, ...] = ()
    last = _last_for(seen) if sure else ""
    if last and (cuda is None or cuda[0] == 11):
        commands = (f'{seen.pip} install --force-reinstall --no-deps "ctranslate2=={last}"',)
        notes.append(
            f"Without a newer driver it is CTranslate2 {last}, the last for CUDA 11 (driver "
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
        confidence="high" if cuda is not None and named else "medium",
        help=(SMI, *commands, f"{seen.pip} list | grep -iE 'ctranslate2|faster.whisper'"),
        notes=tuple(notes),
    )  # fmt: skip
