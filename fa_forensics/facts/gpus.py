"""GPUs by name and by compute capability, and the words people use for them.

Nothing here asks the machine; ``nvml`` does. The table is ``data/gpus.json``, whose rows name
their source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fa_forensics.errors import UsageError
from fa_forensics.facts.tables import read_table

Capability = tuple[int, int]

_CAPABILITY = re.compile(r"(?:sm_?|compute_?|cc ?)?(\d{1,2})[._ ]?(\d)[af]?$")


class Gpu(NamedTuple):
    """One kind of GPU: what to call it and its compute capability.

    memory_bytes: its memory, None when the name alone is known.
    """

    name: str
    capability: Capability
    memory_bytes: int | None = None


class Family(NamedTuple):
    """All GPUs of one compute capability.

    label: a few well-known names, for the head of a table.
    integrated: a Tegra part (Jetson), whose machine code is compatible with nothing else.
    since_cuda, last_cuda: the CUDA releases whose nvcc compiles for it (last None: all later).
    was: the capability that earlier CUDA releases gave the same part, or None.
    column: whether the overview of all GPUs shows it.
    """

    capability: Capability
    architecture: str
    label: str
    integrated: bool
    since_cuda: str
    last_cuda: str | None
    was: Capability | None
    column: bool
    gpus: tuple[str, ...]


class GpuTable(NamedTuple):
    """The table of GPUs: families in rising order of capability, and how names are read.

    gone: capabilities older than all families, with the last CUDA release that compiles for them.
    own_targets: targets ("9.0a") that came with a later CUDA release than their capability.
    """

    families: tuple[Family, ...]
    feature_families: tuple[frozenset[Capability], ...]
    names: dict[str, Capability]
    variants: frozenset[str]
    makers: frozenset[str]
    gone: dict[Capability, str]
    own_targets: dict[str, str]

    def family(self, capability: Capability) -> Family | None:
        """The row of a capability; None for one that NVIDIA does not list."""
        return next((f for f in self.families if f.capability == capability), None)

    def renamed(self, capability: Capability) -> Capability:
        """The capability that a part has now: 10.1 was Thor until CUDA 12.9 and is 11.0 since."""
        return next((f.capability for f in self.families if f.was == capability), capability)

    def same_features(self, first: Capability, second: Capability) -> bool:
        """Whether two capabilities share one family-specific ("f") feature set."""
        return any(first in group and second in group for group in self.feature_families)


def capability_text(capability: Capability) -> str:
    """``8.9``."""
    return f"{capability[0]}.{capability[1]}"


def parse_capability(text: str) -> Capability:
    """``8.9`` → (8, 9). The text is one of our own tables."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


@lru_cache(maxsize=1)
def gpu_table() -> GpuTable:
    """The table of GPUs that this package ships."""
    data = read_table("gpus.json")
    makers = frozenset(word.lower() for word in data["makers"])
    families = []
    names: dict[str, Capability] = {}
    for row in data["capabilities"]:
        capability = parse_capability(row["capability"])
        family = Family(
            capability=capability,
            architecture=row["architecture"],
            label=row["label"],
            integrated=row.get("integrated", False),
            since_cuda=row["since_cuda"],
            last_cuda=row["last_cuda"],
            was=parse_capability(row["was"]) if "was" in row else None,
            column=row.get("column", True),
            gpus=(*row["gpus"], *row.get("others", ())),
        )
        families.append(family)
        for name in family.gpus:
            names[_key(_words(name), makers)] = capability
    for name, text in data["nicknames"].items():
        names[_key(_words(name), makers)] = parse_capability(text)
    return GpuTable(
        families=tuple(families),
        feature_families=tuple(
            frozenset(map(parse_capability, group)) for group in data["families"]
        ),
        names=names,
        variants=frozenset(word.lower() for word in data["variants"]),
        makers=makers,
        gone={parse_capability(text): last for text, last in data["gone"].items()},
        own_targets=data["own_targets"],
    )


_SERIES = re.compile(r"\b[GR]TX(?![A-Za-z])", re.IGNORECASE)


def parse_gpu(text: str) -> tuple[Gpu, ...]:
    """The GPUs meant by a word of the command line.

    A model (``RTX 4090``, ``NVIDIA H100 80GB HBM3``), a capability (``sm_89``, ``8.9``), an
    architecture (``Ampere``: several) or ``all``. Raises ``UsageError`` with the nearest names
    for anything else.
    """
    table = gpu_table()
    wanted = " ".join(text.split())
    lower = wanted.lower()
    if lower == "all":
        return tuple(Gpu(f.label, f.capability) for f in table.families if f.column)
    found = _CAPABILITY.match(lower)
    if found:
        return (_by_capability(wanted, (int(found[1]), int(found[2])), table),)
    group = tuple(
        Gpu(f.label, f.capability)
        for f in table.families
        if lower in (f.architecture.lower(), f.architecture.lower().split()[0]) and f.gpus
    )
    if group:
        return group
    capability = _by_name(wanted, table)
    if capability is None:
        # A GeForce under the series that it is not of, as people write it: "GTX 3090".
        other = _SERIES.sub(lambda found: "RTX" if found[0][0] in "Gg" else "GTX", wanted)
        capability = _by_name(other, table)
        wanted = wanted if capability is None else other
    if capability is None:
        raise UsageError(f"no GPU is known as {wanted!r}", _nearest(wanted, table))
    return (Gpu(wanted, capability),)


def parse_gpus(values: tuple[str, ...] | list[str]) -> tuple[Gpu, ...]:
    """The GPUs of several words, each once; commas separate too. Raises ``UsageError``."""
    gpus: dict[Gpu, None] = {}
    for value in values:
        if not value.strip(" ,"):
            raise UsageError(
                f"{value!r} names no GPU",
                'name a model ("RTX 4090"), a compute capability (8.9 or sm_89), or all',
            )
        for word in value.split(","):
            if word.strip():
                gpus.update(dict.fromkeys(parse_gpu(word)))
    return tuple(gpus)


def _by_capability(text: str, capability: Capability, table: GpuTable) -> Gpu:
    now = table.renamed(capability)
    family = table.family(now)
    if family is None:
        known = ", ".join(capability_text(f.capability) for f in table.families)
        raise UsageError(
            f"no NVIDIA GPU has compute capability {capability_text(capability)} ({text})",
            f"known are {known}",
        )
    return Gpu(family.label, now)


def _by_name(text: str, table: GpuTable) -> Capability | None:
    """The capability of a model, words for its memory, socket or cooling left aside."""
    words = _words(text)
    key = _key(words, table.makers)
    while words:
        if key in table.names:
            return table.names[key]
        # "NVIDIA H100 80GB HBM3": what follows the model is dropped word by word.
        last = words[-1]
        if last not in table.variants and not re.match(r"\d+(gb|mib)?$", last):
            return None
        words = words[:-1]
        key = _key(words, table.makers)
    return None


def _words(text: str) -> list[str]:
    """``NVIDIA A100-SXM4-80GB`` → nvidia, a100, sxm4, 80gb; ``RTX4090`` → rtx, 4090."""
    lower = text.lower().replace("max-q", "max-q ").replace("(", " ").replace(")", " ")
    lower = re.sub(r"\b(rtx|gtx|tesla)([a-z]?\d)", r"\1 \2", lower)
    lower = re.sub(r"(\d)(ti|super|d)\b", r"\1 \2", lower)
    words = re.split(r"[\s_/]+|(?<!max)-", lower)
    return [word for word in words if word]


def _key(words: list[str], makers: frozenset[str]) -> str:
    return " ".join(word for word in words if word not in makers)


def _nearest(text: str, table: GpuTable) -> str:
    """The known names that resemble a text most."""
    import difflib

    words = set(_words(text)) - table.makers
    shown = {_key(_words(name), table.makers): name for f in table.families for name in f.gpus}
    holding = [key for key in shown if words and words <= set(_words(shown[key]))]
    close = difflib.get_close_matches(" ".join(_words(text)), list(shown), 3, 0.5)
    near = list(dict.fromkeys([*holding[:4], *close]))[:4]
    if near:
        return "the nearest names are " + ", ".join(shown[key] for key in near)
    return 'name a model ("RTX 4090"), a compute capability (8.9 or sm_89), or all'
