"""``why`` on damaged texts: an answer always comes, quickly, and it can be shown."""

from __future__ import annotations

import gc
import json
import random
import time
from pathlib import Path

import pytest
from trees import make_prefix, make_venv

from fa_forensics.render.json import dumps, why_document
from fa_forensics.render.why import why_text
from fa_forensics.why import explain

DATA = Path(__file__).parent / "data"
TEXTS = [
    json.loads(line)["error"]
    for path in sorted(DATA.glob("cases_*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
PIECES = ("\n", " ", "\x1b[31m", "...", "::", "(", "E", "\0", "\u200b", "/", ".so", '"', "_Z",
          "\u00e9", "%20", "\r", "\ud83d", "undefined symbol: ")  # fmt: skip


def damaged(text: str, dice: random.Random) -> str:
    """A text with pieces cut out, put in, turned round, or with another one behind it."""
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text) + 1)
        match dice.randrange(5):
            case 0:
                text = text[:at] + text[at + dice.randrange(1, 9) :]
            case 1:
                text = text[:at] + dice.choice(PIECES) + text[at:]
            case 2:
                text = f"{text}\n{dice.choice(TEXTS)}"
            case 3:
                text = text[:at]
            case _:
                text = text[at:] + text[:at]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_text_has_an_answer_that_can_be_shown(seed: int, tmp_path: Path) -> None:
    make_venv(tmp_path / "bare", make_prefix(tmp_path / "base"))
    python = str(tmp_path / "bare/bin/python")
    dice = random.Random(seed)
    gc.freeze()  # what other tests left behind is not looked through on this one's time
    for _ in range(60):
        text = damaged(dice.choice(TEXTS), dice)
        start = time.process_time()
        report = explain([text], python, {}, where=dice.choice([None, "here", "elsewhere"]))
        assert time.process_time() - start < 2, text
        assert 1 <= len(report.answers) <= 5
        assert all(answer.cause and answer.help for answer in report.answers), text
        json.loads(dumps(why_document(report)))
        shown = why_text(report, False, 80)
        assert "\x1b" not in shown and "\0" not in shown
