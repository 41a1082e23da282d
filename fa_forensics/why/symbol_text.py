"""Answers to mentions of a symbol: undefined in the loader's, the linker's or a tool's words."""

from __future__ import annotations

from fa_forensics.why.seen import Answerer

ANSWERERS: dict[str, Answerer] = {}
