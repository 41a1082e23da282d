"""Steps from one release of a package to another that a text tells of, and nightlies of torch."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.version_forms import BANNER, PROSE, VERSION
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

#: How many places of one word are looked at.
_MOST = 20

#: "upgraded from flash_attn 2.7.4.post1 to 2.8.0.post2", "updating vllm from 0.8.5 to 0.9.0".
_STEP = lazily(
    r"\b(?:up|down)(?:grad|dat)(?:ed|es?|ing) (?:from )?(?P<name>[A-Za-z][\w-]{1,40})"
    rf" (?:from )?v?(?P<old>{VERSION}) (?:to|->|=>) v?(?P<new>{VERSION})(?![\w.]*\w)",
    re.IGNORECASE,
)
#: "PyTorch nightly 2026.08.31+cu130", "a nightly build of torch", "torch nightly (cu128)".
_NIGHTLY = lazily(
    r"\b(?:py)?torch[ -]{1,2}nightly\b(?:[^\n]{0,24}?\b(?P<label>cu\d{2,3}))?"
    r"|\bnightly (?:build |version |wheel )?(?:of )?(?:py)?torch\b"
    r"(?:[^\n]{0,24}?\b(?P<other>cu\d{2,3}))?"
    r"|\b[12]\.\d{1,2} nightl(?:y|ies)\b",
    re.IGNORECASE,
)
#: "with an own new op", "added a custom operator of mine", "my own CUDA kernel".
_OWN_CODE = lazily(
    r"\b(?:my|our|an?|his|their) (?:own|self-written)(?: new| custom| cuda| c\+\+){0,2} "
    r"(?:op|operator|kernel|function|layer|cuda code|extension)s?\b"
    r"|\b(?:add(?:ed|ing)?|wr(?:o|i)te|writing|implement(?:ed|ing)?|register(?:ed|ing)?) "
    r"(?:a |an |my |our |some |the )?(?:own |new |custom ){1,2}(?:cuda |c\+\+ )?"
    r"(?:op|operator|kernel|function|layer)s?\b|自定义(?:算子|op)",
    re.IGNORECASE,
)
#: The image of Triton Inference Server.
_TRITON = lazily(r"\btritonserver:(\d\d\.\d\d)-")


def read_steps(source: Source, places: Places, offer: Offer) -> None:
    """The keys ``pkg:`` and ``before:NAME``, ``nightly``, ``flag:own-code``, ``triton_image``.

    ``nightly`` is the CUDA of torch's nightly (cu130), or "yes".
    """
    for word in ("upgrad", "downgrad", "updat"):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            found = _STEP.search(line.body)
            name = found["name"].lower().replace("_", "-") if found else ""
            if found and name in PACKAGES and name not in ("torch", "pytorch"):
                offer(f"pkg:{name}", PROSE, line.number, found["new"])
                offer(f"before:{name}", PROSE, line.number, found["old"])
    for place in (*places("nightly")[:_MOST], *places("nightlies")[:_MOST]):
        line = source.line_at(place)
        found = _NIGHTLY.search(line.body)
        if found is not None:
            label = found["label"] or found["other"] or "yes"
            offer("nightly", BANNER, line.number, label.lower())
            break
    for word in ("own", "new", "custom", "自定义"):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            if _OWN_CODE.search(line.body) is not None:
                offer("flag:own-code", BANNER, line.number, "own")
    for place in places("tritonserver:")[:_MOST]:
        line = source.line_at(place)
        found = _TRITON.search(line.body)
        if found is not None:
            offer("triton_image", BANNER, line.number, found[1])
            break
