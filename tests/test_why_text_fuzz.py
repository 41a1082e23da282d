"""``why`` on broken and mixed texts: an answer that is whole, or none, and never a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.inspecting import validator

from fa_forensics.errors import UsageError
from fa_forensics.render.json import dumps, why_document
from fa_forensics.render.why import why_text
from fa_forensics.why import explain

TEXTS = [
    json.loads(line)["error"]
    for path in sorted((Path(__file__).parent / "data").glob("cases_*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
PIECES = (
    "\n", "\x1b[31m", "'", '"', "(", ")", "{", "$", "%s", "\u4e00", "/", "..", "9" * 40,
    "sm_999", "\x00", "\r", "GPU 0: Tesla K80", "PyTorch version: 2.99.0+cu999",
    "Python version: 9.9", "Nvidia driver version: 1", "torch==x", "\ud800",
)  # fmt: skip


def broken(rng: random.Random) -> str:
    """A report with pieces cut out, put in, turned round or joined with another."""
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        step = rng.random()
        if step < 0.3:
            text = text[:at] + text[at + rng.randint(1, 25) :]
        elif step < 0.6:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif step < 0.8:
            text = f"{text}\n{rng.choice(TEXTS)}"
        else:
            text = text[at:] + text[:at]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_a_broken_text_gets_a_whole_answer_or_none(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        text = broken(rng)
        try:
            report = explain([text], None, {}, where=rng.choice(["elsewhere", "here", None]))
        except UsageError:
            continue  # what is left of it is no symbol and no text
        document = json.loads(dumps(why_document(report)))
        validator().validate(document)
        shown = why_text(report, False, 100)
        assert "\x1b" not in shown and "\x00" not in shown
        for answer in report.answers:
            assert answer.cause and answer.code.startswith("FA"), text
            assert not any("\n" in command for command in answer.help), (text, answer.help)
