"""A context for the rules about GPUs: a healthy file, its code, and the GPUs asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.contexts import distribution, elf, environment

from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.fatbin.provenance import Toolkit
from fa_forensics.facts.flash_limits import limits_of
from fa_forensics.facts.gpus import parse_gpus
from fa_forensics.facts.package import Distribution
from fa_forensics.rules.coverage import CodeGroup, gpu_fit
from fa_forensics.rules.gpu_fit import FitFacts, kernel_gap


@dataclass(frozen=True)
class Fitting:
    """What the rules read of a context."""

    fit: FitFacts | None
    distribution: Distribution | None = None
    environment: Environment | None = field(default_factory=environment)
    elf: ElfFacts = field(default_factory=elf)
    name: str = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    python_command: str = "/env/bin/python"


def code(arch: str, **changes: Any) -> CodeGroup:
    """One source compiled for an architecture; PTX for a name that says compute."""
    facts: dict[str, Any] = {
        "kind": "ptx" if arch.startswith("compute") else "cubin", "arch": arch,
        "isa": "8.4" if arch.startswith("compute") else None, "relocatable": False,
        "zstd": False, "images": 1, "stored_bytes": 1024, "containers": frozenset((0,)),
    }  # fmt: skip
    return CodeGroup(**{**facts, **changes})


def fitting(
    groups: list[CodeGroup],
    *gpus: str,
    package: tuple[str, str] | None = None,
    driver: Driver | None = None,
    toolkit: str | None = None,
    overview: bool = False,
    kernels: dict[str, set[str]] | None = None,
    **changes: Any,
) -> Fitting:
    """A file with this code, judged for these GPUs; ``package`` is its name and version."""
    archs = tuple(group.arch for group in groups)
    kits = (Toolkit(toolkit, "ptxas", "tkinfo", archs),) if toolkit else ()
    found = parse_gpus(gpus)
    dist = distribution(*package) if package else None
    facts = FitFacts(
        fits=tuple(gpu_fit(groups, gpu, driver, kits) for gpu in found),
        overview=overview,
        groups=tuple(groups),
        limits=limits_of(*package, "flash_attn_2_cuda") if package else (),
        jobs=2,
        gaps=tuple(kernel_gap(kernels, gpu) for gpu in found) if kernels else (),
    )
    return Fitting(facts, dist, **changes)


_OLD_DRIVER = Driver("535.104.05", (12, 2))
_A100_PART = [
    code("sm_80", containers=frozenset(range(12))),
    code("sm_90a", containers=frozenset(range(2, 96))),
]

#: For the table of rules: (rule's name, facts with which it speaks, code and severity, facts
#: with which it is silent).
FIT_TABLE: list[tuple[str, Fitting, str, list[Fitting]]] = [
    ("no_code", fitting([code("sm_90")], "RTX 4090"), "FA504 error",
     [fitting([code("sm_86")], "RTX 4090"), fitting([code("compute_80")], "RTX 4090"),
      fitting([], "RTX 4090"), fitting([code("sm_90")], "all", overview=True), Fitting(None)]),
    ("no_code", fitting([code("sm_90")], "RTX 4090", "H100"), "FA504 warning",
     [fitting([code("sm_80"), code("sm_90")], "RTX 4090", "H100")]),
    ("by_jit", fitting([code("compute_80")], "H100"), "FA505 note",
     [fitting([code("sm_90"), code("compute_80")], "H100"), fitting([code("compute_90")], "A100"),
      fitting([code("compute_80")], "H100", driver=_OLD_DRIVER), Fitting(None)]),
    ("driver_too_old", fitting([code("compute_80")], "H100", driver=_OLD_DRIVER), "FA506 error",
     [fitting([code("compute_80", isa="8.2")], "H100", driver=_OLD_DRIVER),
      fitting([code("compute_80")], "H100"),
      fitting([code("compute_80")], "H100", driver=Driver(None, None)),
      fitting([code("sm_90")], "H100", driver=_OLD_DRIVER, toolkit="12.8"), Fitting(None)]),
    ("driver_too_old", fitting([code("sm_90")], "H100", driver=_OLD_DRIVER, toolkit="13.0"),
     "FA506 error", [fitting([code("sm_90")], "H100", driver=_OLD_DRIVER)]),
    ("driver_too_old", fitting([code("sm_80", zstd=True)], "A100", driver=_OLD_DRIVER),
     "FA506 error", [fitting([code("sm_80")], "A100", driver=_OLD_DRIVER)]),
    ("refused_by_package", fitting([code("sm_80"), code("compute_80")], "RTX 5090",
                                   package=("flash-attn", "2.7.2.post1")), "FA507 error",
     [fitting([code("sm_80"), code("compute_80")], "RTX 5090", package=("flash-attn", "2.8.3")),
      fitting([code("sm_80"), code("compute_80")], "RTX 5090", package=("xformers", "0.0.34")),
      fitting([code("sm_80")], "RTX 5090", package=("flash-attn", "2.7.2")), Fitting(None)]),
    ("partly_covered", fitting(_A100_PART, "A100"), "FA508 note",
     [fitting([code("sm_80")], "A100"), fitting(_A100_PART, "T4"),
      fitting([code("sm_80"), code("sm_80", relocatable=True, containers=frozenset((1,)))],
              "A100"), Fitting(None)]),
]  # fmt: skip
