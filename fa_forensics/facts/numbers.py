"""Release numbers as tuples, which compare as releases do."""

from __future__ import annotations

import re


def release_numbers(release: str) -> tuple[int, ...]:
    """(2, 10, 0) for "2.10.0": its parts between dots, those that are digits alone."""
    return tuple(int(part) for part in release.split(".") if part.isascii() and part.isdigit())


def minor_numbers(text: str) -> tuple[int, ...]:
    """(12, 4) for "CUDA 12.4.1": the first two numbers in a text."""
    return tuple(int(part) for part in re.findall(r"\d{1,4}", text)[:2])
