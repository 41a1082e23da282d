"""PyTorch's own index: one directory for each build of its wheels.

Source: pytorch.org/get-started/locally and its page previous-versions (2026-11), which type
``--index-url`` with these addresses.
"""

from __future__ import annotations

TORCH_INDEX = "https://download.pytorch.org/whl/"


def index_option(label: str) -> str:
    """What goes behind a pip command for the build ``label`` ("cu121", "cpu"); "" for "" alone."""
    return f" --index-url {TORCH_INDEX}{label}" if label else ""
