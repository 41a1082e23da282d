"""CUDA releases as wheels and indexes are named: CUDA 12.1 is ``cu121``."""

from __future__ import annotations

import re


def cuda_label(cuda: str) -> str:
    """``cu121`` for "12.1" and "12.1.105"; "" for what names no minor version.

    Every minor version that PyTorch has published a build for has one digit.
    """
    found = re.match(r"(\d{1,2})\.(\d)(?!\d)", cuda, re.ASCII)
    return f"cu{found[1]}{found[2]}" if found is not None else ""


def cuda_of_label(label: str) -> str:
    """``12.1`` for "cu121" and "121", ``9.2`` for "cu92"; "" for what is no such label."""
    found = re.fullmatch(r"(?:cu)?(\d{1,2})(\d)", label, re.ASCII)
    return f"{found[1]}.{found[2]}" if found is not None else ""
