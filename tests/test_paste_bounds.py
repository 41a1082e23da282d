"""Texts that cost or mislead: many versions, many GPUs, options' values, denials, vain tries."""

from __future__ import annotations

import time

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.paste.cures import works_there


def test_many_missing_versions_cost_no_more_than_their_lines() -> None:
    lines = (
        f"libc.so.6: version `GLIBC_2.{n}' not found (required by x{n}.so)" for n in range(900)
    )
    text = "\n".join(lines)
    read_paste("")
    start = time.process_time()
    read_paste(text)
    assert time.process_time() - start < 1.5


def test_a_line_of_gpus_costs_little() -> None:
    start = time.process_time()
    read_paste("works on a RTX 3090, RTX 4090 not " * 2_000)
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize(
    "words",
    [
        "pip install --cache-dir /data/models/gsplat gsplat==1.0.0",
        "pip install --root /srv/gsplat gsplat",
        "I ran pip install torch/torchvision/gsplat and got",
        "cd -x/gsplat && pip install .",
    ],
)
def test_what_is_no_source_directory_is_none(words: str) -> None:
    assert "local:gsplat" not in read_paste(words).versions


@pytest.mark.parametrize(
    "words",
    ["pip install submodules/gsplat", "pip install -v --no-deps ./gsplat", "pip install -e gsplat",
     "pip install --no-build-isolation --index-url https://x /src/gsplat",
     "cd gsplat && pip install ."],
)  # fmt: skip
def test_a_source_directory_is_read(words: str) -> None:
    assert "local:gsplat" in read_paste(words).versions


def test_a_denial_before_is_seen() -> None:
    for words in ("it does not seem to work in the ", "that never runs with "):
        assert not works_there(words, len(words))
    assert works_there("the old one is bad; it works in the ", 36)


@pytest.mark.parametrize("words", ["downgrade to torch 2.1 did not help", "torch 2.1 still fails"])
def test_a_version_that_was_tried_in_vain_is_no_cure(words: str) -> None:
    assert not [key for key in read_paste(words).versions if key.startswith("cure:")]
