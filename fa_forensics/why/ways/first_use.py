"""FlashInfer's kernels: compiled beforehand for one torch, or at their first use for any."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: The file of FlashInfer 0.2's wheels at flashinfer.ai/whl, by CUDA and torch.
_KERNELS = lazily(r"/flashinfer/(?:flashinfer_kernels\w{0,9}|_(?:kernels|prefill|decode))\.")
#: The last releases of that time: source alone on the package index, few dependencies, and no
#: kernels compiled beforehand unless FLASHINFER_ENABLE_AOT=1 is set (setup.py of 0.2.5).
_RELEASE = "0.2.5"
_GONE = lazily(r"\"torch[=>]=|^rm\s-rf\sbuild|--upgrade")
_ON_GONE = lazily(
    r"(?:Compiled on that machine|The command that begins|torch [\d.]{3,9} has the file's"
    r"|One of the two|Another build of|A file that was|Where pip|Installing another"
    r"|torch [\d.]{3,9} has no build for the CUDA)"
)


def at_first_use(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer for the file of kernels that FlashInfer's own wheels bring."""
    if _KERNELS.search(file_of(paste)) is None:
        return answer
    kept = [text for text in answer.help if not _GONE.search(text)]
    at = 1 if kept and "print(torch" in kept[0] else 0
    python = place.python or "python"
    kept[at:at] = [
        f"{python} -m pip uninstall -y flashinfer flashinfer-python",
        f"{python} -m pip install --no-build-isolation --no-deps --no-cache-dir "
        f"flashinfer-python=={_RELEASE} && rm -rf ~/.cache/flashinfer",
    ]
    note = (
        "The file is of a wheel of FlashInfer's own index (flashinfer.ai/whl, by CUDA and torch), "
        "whose kernels are compiled beforehand for the torch of the package index. flashinfer-"
        "python of the package index has none in it and compiles each kernel at its first use, for "
        "the torch that is there: the command takes that and leaves torch as it is. It "
        "needs nvcc and ninja; what an earlier torch left in its cache goes as well."
    )
    other = (
        f"{_RELEASE} is of the time of that file; the program that calls FlashInfer (SGLang, vLLM) "
        "may ask for another release of it. A build of all kernels beforehand is that of a "
        "checkout with its submodules: git clone --recursive, then FLASHINFER_ENABLE_AOT=1 "
        "python -m pip install --no-build-isolation --no-deps -v ."
    )
    notes = (n for n in answer.notes if not _ON_GONE.match(n))
    return replace(answer, help=tuple(dict.fromkeys(kept)), notes=(note, other, *notes))
