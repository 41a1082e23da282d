"""PyTorch's own index: one directory for each build of its wheels.

Source: pytorch.org/get-started/locally and its page previous-versions (2026-11), which type
``--index-url`` with these addresses.
"""

from __future__ import annotations

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.torch_cuda import cuda_builds

TORCH_INDEX = "https://download.pytorch.org/whl/"


def index_option(label: str) -> str:
    """What goes behind a pip command for the build ``label`` ("cu121", "cpu"); "" for "" alone."""
    return f" --index-url {TORCH_INDEX}{label}" if label else ""


def is_on_index(release: str, label: str) -> bool:
    """Whether a release of torch is on record as published for a label ("cu121", "cpu").

    False for the releases after the record: PyTorch drops a CUDA with most minor releases (2.12
    has none for 12.8, pytorch/pytorch issue 178665), so that no address may be made for them.
    """
    if label == "cpu":
        return True
    return cuda_of_label(label) in cuda_builds(".".join(release.split(".")[:2]))
