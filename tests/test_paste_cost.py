"""Pasted text: nothing that anybody pastes crashes the reader or holds it up.

Times are of the processor, so that other tests beside these do not matter.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from fa_forensics.facts.paste import Paste, places, read_paste, reader, versions_table
from fa_forensics.facts.paste.model import MAX_LINE
from fa_forensics.facts.paste.unescape import MAX_TEXT

DEVICE = "_ZN3c104cuda9SetDeviceEi"
SITE = "/opt/conda/lib/python3.10/site-packages"
TRACEBACK = f"""Traceback (most recent call last):
  File "{SITE}/vllm/engine.py", line 12, in <module>
    import flash_attn_2_cuda as flash_attn_cuda
ImportError: {SITE}/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: {DEVICE}
""".splitlines()
MEGABYTE = 1_000_000


def timed(text: str) -> tuple[Paste, float]:
    start = time.process_time()
    paste = read_paste(text)
    return paste, time.process_time() - start


def interleaved(size: int) -> str:
    """Eight ranks that log, and fail, at the same time."""
    rng = random.Random(1)
    lines: list[str] = []
    while size > 0:
        for rank in range(8):
            line = (
                f"INFO [worker.py:{rng.randrange(900)}] torch 2.3.0 step {rng.random()} not found"
            )
            if rng.random() < 0.3:
                line = rng.choice(TRACEBACK)
            lines.append(f"[rank{rank}]: {line}")
            size -= len(lines[-1]) + 1
    return "\n".join(lines)


def test_a_megabyte_of_interleaved_ranks_takes_half_a_second() -> None:
    text = interleaved(MEGABYTE)
    read_paste("")  # the patterns are compiled
    paste, seconds = timed(text)
    assert seconds < 0.6
    assert [mention.symbol for mention in paste.mentions] == [DEVICE]
    assert paste.mentions[0].detail["ranks"] == "0-7"


def test_a_line_of_a_small_text_is_read_at_once() -> None:
    read_paste("")
    assert timed(TRACEBACK[-1])[1] < 0.05


TEN_MEGABYTES = {
    "one letter": lambda: "a" * 10 * MEGABYTE,
    "different failures": lambda: "".join(
        f"/x/{n}.so: undefined symbol: f{n}\n" for n in range(280_000)
    ),
    "one sign in one line": lambda: "undefined symbol: _ZN3c10 " * 400_000,
    "foreign words": lambda: "\u9519\u8bef\uff1a\u627e\u4e0d\u5230" * 1_700_000,
    "binary": lambda: random.Random(2).randbytes(10 * MEGABYTE).decode("latin-1"),
}


@pytest.mark.parametrize("name", TEN_MEGABYTES)
def test_ten_megabytes_of_anything_take_two_seconds(name: str) -> None:
    text = TEN_MEGABYTES[name]()
    read_paste("")
    paste, seconds = timed(text)
    assert seconds < 2
    assert paste.truncated


HOSTILE = {
    "dots": ".", "spaces": " ", "line ends": "\n", "carriage returns": "\r", "quotes": "'",
    "escapes for colours": "\x1b[31m", "escapes that do not end": "\x1b[", "brackets": "[1;1;",
    "tags that do not end": "</code <code ", "HTML entities": "&amp;", "percent escapes": "%20",
    "beginnings of names": "_Z", "names": f"{DEVICE}\n", "versions": "torch 2.3.0 ",
    "nm's lines": f"                 U {DEVICE}\n", "the beginning of a sign": "undefined symbo",
    "one sign on many lines": "version not found\n", "brackets in a name": "undefined symbol: f::(",
    "a name that goes on for ever": "_ZN3c10" + "A" * 73 + "\n", "replaced bytes": "\ufffd",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_takes_half_a_second(name: str) -> None:
    text = "undefined symbol: " + HOSTILE[name] * (MEGABYTE // len(HOSTILE[name]))
    read_paste("")
    assert timed(text)[1] < 0.5


#: What patterns stumble over: long runs of what they repeat, without what they look for.
BAIT = ["a" * 7000, "(" * 7000, " " * 7000, "a." * 3500, "/x" * 3500, "'a" * 3500, "::a" * 2300,
        "_Z" * 3500, "<a" * 3500, "a, " * 2300, "-" * 7000, "1." * 3500, "S_" * 3500]  # fmt: skip


def baited() -> Iterator[str]:
    signs = [s for recogniser in reader._recognisers() for s in recogniser.signs]
    signs += [rule.sign for rule in versions_table.rules()]
    for number, sign in enumerate(dict.fromkeys(signs)):
        bait = BAIT[number % len(BAIT)]
        yield f"{bait[:1900]}{sign}{bait}"
        yield f"{sign}: '{bait}"


def test_no_pattern_runs_away() -> None:
    read_paste("")
    slow = []
    for line in list(baited())[::5]:
        _, seconds = timed(line)
        if seconds > 0.3:
            # A pattern that runs away does so each time, also in a text that no cache has; a
            # collection of garbage (0.7 s were seen among all tests) does not.
            seconds = timed(f"{line} b")[1]
        if seconds > 0.3:
            slow.append((seconds, line[1880:1990]))
    assert slow == []


def test_every_sign_is_a_word_and_not_a_letter() -> None:
    signs = [sign for found in reader._recognisers() for sign in found.signs]
    assert not [sign for sign in signs if len(sign) < (4 if sign.isascii() else 3)]


def test_a_line_of_every_sign_is_read_in_bounded_time() -> None:
    text = "\n".join(baited())
    assert timed(text)[1] < 4


BITS = ["\n", "\r", "\x1b[31m", "%20", "&quot;", "\\n", "\\", "_Z", "(", "<", "\u2026", "...",
        "'", "`", "\0", "\x1f", " ", ": ", "::", "[", "]", "operator", "version ", "@@", ".so",
        "/", "\ud800", "\U0001f600", "\uff1a", "torch 2.", "import ", "rank 1:", ">"]  # fmt: skip


def mutated(rng: random.Random, texts: list[str]) -> str:
    text = rng.choice(texts)
    signs = [s for recogniser in reader._recognisers() for s in recogniser.signs]
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(text) + 1)
        piece = rng.choice(
            [rng.choice(BITS), rng.choice(signs), rng.choice(texts)[: rng.randrange(200)], ""]
        )
        text = text[:at] + piece + text[at + rng.choice([0, 0, 5, 30]) :]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_mutilated_texts_are_read(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["\n".join(TRACEBACK), interleaved(1_000), "PyTorch version: 2.3.0+cu121\nOS: x",
             "Could not load library libcudnn.so.8. Error: x", f"     U {DEVICE}\n"]  # fmt: skip
    for _ in range(300):
        paste = read_paste(mutated(rng, texts))
        for mention in paste.mentions:
            names = (mention.symbol, mention.version, mention.library, mention.file)
            assert len(mention.line) <= MAX_LINE and "\n" not in mention.line
            assert mention.number >= 1
            assert all(name is None or (name and "\n" not in name) for name in names)
        assert set(paste.versions) == set(paste.version_lines)
        assert all(text and "\n" not in text for text in paste.versions.values())


def test_the_middle_of_a_longer_text_is_left_out_and_that_is_said() -> None:
    filler = "x" * 99 + "\n"
    lines = 2 * MAX_TEXT // len(filler)
    paste = read_paste(TRACEBACK[-1] + "\n" + filler * lines + "/x/last.so: undefined symbol: foo_")
    assert [mention.symbol for mention in paste.mentions] == [DEVICE, "foo_"]
    assert [mention.number for mention in paste.mentions] == [1, lines + 2]
    assert paste.truncated is not None and "were not read" in paste.truncated


def test_a_stem_finds_what_a_search_for_the_word_finds() -> None:
    text = (interleaved(50_000) + "\n".join(list(baited())[::9])).lower()
    found = places.Places(text)
    for recogniser in reader._recognisers():
        for sign in recogniser.signs:
            expected = []
            at = text.find(sign)
            while at >= 0:
                expected.append(at)
                at = text.find(sign, at + len(sign))
            assert set(expected[: places.PER_WORD]) <= set(found(sign))
            assert all(text.startswith(sign, place) for place in found(sign))
