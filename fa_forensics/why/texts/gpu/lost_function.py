"""Answers to a function or an instruction that the GPU does not find in its code."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import gpus_of
from fa_forensics.why.texts.gpu.cuda_alike import nvidia_alone
from fa_forensics.why.texts.gpu.gpu_text import no_kernel


def lost_function(seen: Seen) -> Answer:
    """``named symbol not found``, ``an illegal instruction was encountered`` on the GPU."""
    answer = no_kernel(seen)
    note = (
        "The text fits a fault of the kernel itself too; that the code is for another GPU is the "
        "first thing to rule out."
    )
    known = answer.owner == "bitsandbytes" and bool(gpus_of(seen))
    confidence = "medium" if known else "low"
    return replace(answer, confidence=confidence, notes=(note, *answer.notes))


ANSWERERS: dict[str, Answerer] = {
    "named-symbol-not-found": nvidia_alone(lost_function),
    "illegal-instruction": nvidia_alone(lost_function),
}
