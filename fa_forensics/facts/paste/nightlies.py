"""Nightlies that a text names by their minor version alone: "torch 2.7 nightly"."""

from __future__ import annotations

import itertools
import re

from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import LISTED
from fa_forensics.patterns import lazily

#: How many places of the word are looked at.
_MOST = 20
#: "torch 2.7 nightly", "torch_xla 2.7.0 (nightly)", "PyTorch 2.7 cu128 nightly build".
_NAMED = lazily(
    r"(?<![\w./-])(?P<name>(?:py)?torch|torch[-_]xla|torchvision|torchaudio|torchtext|torchao)"
    r"[ =]{1,2}v?(?P<minor>\d\.\d{1,2})(?:\.0)?(?:[ +](?P<label>cu\d{3}|cpu))? "
    r"\(?(?:nightl(?:y|ies)|dev(?:elopment)? build)\b(?:[ (]{1,2}(?P<other>cu\d{3}))?",
    re.IGNORECASE,
)

#: "torch nightly 1.2 (2019-07)", "pytorch-nightly 1.2.0".
_AHEAD = lazily(
    r"(?<![\w./-])(?:py)?torch[ -]{1,2}nightly (?:build |version )?v?(?P<minor>[12]\.\d{1,2})"
    r"(?:\.0)?(?![.\w+])",
    re.IGNORECASE,
)


def as_nightlies(best: dict[str, tuple[int, int, str]], source: Source, places: Places) -> None:
    """Versions that the text says are nightlies' are no releases: ``2.7`` becomes ``2.7.0.dev``.

    A report's own line on a version is surer, and stays.
    """
    if (main := best.pop("flag:torch-main", None)) is not None and "torch" not in best:
        best.setdefault("flag:torch-source", main)  # beside a release, main is another's torch
    seen = -1
    for place in sorted(p for word in ("nightl", "dev build") for p in places(word)[:_MOST]):
        line = source.line_at(place)
        if line.start == seen:
            continue
        seen = line.start
        ahead = _AHEAD.search(line.body[:2000])
        if ahead is not None and not is_denied(line.body, ahead.start()):
            best.setdefault("torch", (LISTED, line.number, f"{ahead['minor']}.0.dev"))
        for match in itertools.islice(_NAMED.finditer(line.body[:2000]), _MOST):
            if is_denied(line.body, match.start()) or is_cure(line.body, *match.span()):
                continue
            name = match["name"].lower().replace("_", "-")
            key = "torch" if name in ("torch", "pytorch") else f"pkg:{name}"
            known = best.get(key)
            release, _, local = known[2].partition("+") if known is not None else ("", "", "")
            if known is None or known[0] < LISTED:
                continue
            if release not in (match["minor"], f"{match['minor']}.0"):
                continue
            label = local or (match["label"] or match["other"] or "").lower()
            best[key] = (*known[:2], f"{match['minor']}.0.dev{label and '+' + label}")
            if key == "torch":
                best.setdefault("nightly", (*known[:2], label or "yes"))
