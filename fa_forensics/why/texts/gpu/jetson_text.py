"""Answers about torch on a Jetson, whose CUDA comes with NVIDIA's JetPack and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen


@lru_cache(maxsize=1)
def _releases() -> tuple[Mapping[str, str], ...]:
    rows: list[dict[str, Any]] = read_table("jetpack.json")["releases"]
    return tuple(rows)


def is_jetson(seen: Seen) -> bool:
    """Whether the text tells of a Jetson board or of JetPack."""
    versions = seen.versions
    return (
        "flag:jetson" in versions
        or "jetpack" in versions
        or versions.get("gpu", "").lower().startswith("jetson")
        or bool(board_of(seen))
        or "tegra" in f"{versions.get('os', '')} {versions.get('platform', '')}".lower()
    )


def board_of(seen: Seen) -> str:
    """``Jetson Orin`` by its compute capability, which no other GPU has; "" for other GPUs.

    Compute capability 11.0 is of boards with a JetPack that runs the wheels for servers.
    """
    from fa_forensics.facts.gpus import gpu_table
    from fa_forensics.why.texts.clues import cuda_version

    told = cuda_version(seen.versions.get("capability", "").replace(", ", "."))
    family = gpu_table().family(told) if told is not None and told < (11, 0) else None
    label = family.label if family is not None else ""
    return label if label.startswith("Jetson") else ""


def jetpack_of(seen: Seen) -> Mapping[str, str] | None:
    """The row of the JetPack that the text names, or of the Python that only one of them has."""
    told = seen.versions.get("jetpack", "")
    rows = [r for r in _releases() if told == r["jetpack"] or told.startswith(r["jetpack"] + ".")]
    if rows:
        return max(rows, key=lambda row: len(row["jetpack"]))
    if "thor" in seen.versions.get("gpu", "").lower():  # which JetPack 7 is the first for
        return _releases()[-1]
    python = ".".join((seen.python_version or "").split(".")[:2]) if seen.elsewhere else ""
    same = [row for row in _releases() if row["python"] == python]
    return same[0] if len(same) == 1 else None


def without_cuda(seen: Seen) -> Answer:
    """torch on a Jetson is a build without CUDA, as pip gets it."""
    told = seen.versions.get("torch") if seen.elsewhere else seen.torch
    torch = f"torch {told}" if told else "The torch that is imported"
    row = jetpack_of(seen)
    own = row is None or bool(row["torch"])
    cause = (
        f"{torch} has no CUDA that works on this board: pip gets a torch for the CPU, or one for "
        "servers, there. A Jetson takes a torch that was built for its JetPack, which alone "
        "brings the board's CUDA."
    )
    if not own:
        cause = f"{torch} has no CUDA that works on this board: pip gets a torch for the CPU there."
    if row is not None and row["torch"]:
        cause += (
            f" JetPack {row['jetpack']} has Python {row['python']} and CUDA {row['cuda']}, and "
            f"NVIDIA's wheels for it are torch {row['torch']}."
        )
    elif row is not None:
        cause += (
            f" JetPack {row['jetpack']} has Python {row['python']} and CUDA {row['cuda']}: for it "
            "torch's own index for CUDA 13 (aarch64) has wheels that run."
        )
    return seen.answer(
        "wrong-torch", "FA601", cause, owner="torch", direction="none",
        confidence="high" if row is not None and seen.mention.what == "torch-without-cuda"
        else "medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            "cat /etc/nv_tegra_release; python3 --version; ls -d /usr/local/cuda*",
            f"{seen.pip} uninstall -y torch torchvision",
            f"{seen.pip} install ./torch-VERSION-linux_aarch64.whl"
            if own
            else f"{seen.pip} install torch{index_option('cu130')}",
        ),
        notes=(
            "The file of the last command is NVIDIA's, from its page PyTorch for Jetson: the one "
            "for this JetPack and Python. The first two commands show what is there."
            if own
            else "The address is that of torch's own builds for CUDA 13.0.",
            "torchvision and other packages with compiled code are built from source on it "
            "(--no-build-isolation --no-deps), in the release for that torch; pip install of a "
            "package that asks for torch puts the wrong one back."
            if own
            else "torchvision comes from the same address, named in the same command; pip install "
            "of a package that asks for another torch puts one without CUDA back.",
        ),
    )  # fmt: skip
