"""Answers to mentions of a library: not found, of another version, mixed with another copy."""

from __future__ import annotations

from fa_forensics.why.seen import Answerer

ANSWERERS: dict[str, Answerer] = {}
