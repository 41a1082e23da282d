"""Answers to mentions of a library: not found, not of the needed version, mixed with another.

from __future__ import annotations

from fa_forensics.why.seen import Answerer

ANSWERERS: dict[str, Answerer] = {}
