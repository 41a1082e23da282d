"""What a rule is given and what it gives back. Rules are pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.flavour import Flavour
from fa_forensics.facts.package import Distribution
from fa_forensics.records import dataclass
from fa_forensics.report import Finding, JudgedTorch, ReleaseFacts, Skipped
from fa_forensics.resolve.explain import Missing, Sibling
from fa_forensics.resolve.resolution import Library, Resolution

if TYPE_CHECKING:
    from fa_forensics.facts.floors import Floors
    from fa_forensics.resolve.system import SystemHere
    from fa_forensics.rules.gpu_fit import FitFacts

#: Ranks order findings by what stops the load first: the loader maps all libraries, then
#: checks symbol versions, then relocates dependencies, then the file itself, then runs
#: its initialisers.
RANK_FILE = 0
RANK_LIBRARY = 1_000
RANK_VERSION = 2_000
RANK_DEPENDENCY = 3_000
RANK_SYMBOL = 10_000
RANK_INITIALISER = 100_000_000
RANK_IMPORT = 200_000_000
RANK_NONE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """The GPU code of the file, the witness's view of it, and what was damaged."""

    image_count: int
    found_by: str
    problems: tuple[str, ...]
    witness_status: str | None
    witness_detail: str
    witness_differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """All facts of one target. ``None`` means: could not look (``skips`` says why).

    ``as_package``: the siblings were loaded first, as the file's package does it. ``asked``
    is the torch that --torch named; ``environment.torch`` then stands for that one.
    ``fit`` is the GPUs that it is judged for, None where its GPU code was not asked about.
    ``uses_torch`` is true also of a file that only lists torch's libraries; ``uses_torch_names``
    of one that takes a name of them. ``defined_in`` maps names that are missing to another file
    of the same package that defines them. ``system`` is what the system's libraries define here.
    """

    name: str
    elf: ElfFacts
    environment: Environment | None
    resolution: Resolution | None
    skips: tuple[Skipped, ...]
    missing: tuple[Missing, ...]
    siblings: tuple[Sibling, ...]
    flavour: Flavour
    distribution: Distribution | None
    stable_abi: bool
    uses_torch: bool
    gpu: GpuFacts | None
    as_package: bool = False
    left_with_siblings: int | None = None
    releases: ReleaseFacts | None = None
    asked: JudgedTorch | None = None
    fit: FitFacts | None = None
    uses_torch_names: bool = True
    defined_in: Mapping[str, str] = field(default_factory=dict)
    floors: Floors | None = None
    system: SystemHere | None = None

    @property
    def python_command(self) -> str:
        """The interpreter to write into commands."""
        return "python" if self.environment is None else self.environment.python

    @property
    def judged_in_part(self) -> bool:
        """Whether only torch's and CUDA's part was looked at, for want of an environment."""
        asked = self.asked is not None and self.asked.judged_by == "table"
        return asked and any(skip.rule == "link" for skip in self.skips)

    @property
    def causes(self) -> tuple[Missing, ...]:
        """The missing symbols that nothing here exports, consequences of a lost library aside."""
        return tuple(m for m in self.missing if m.absent_library is None and m.exported_by is None)

    @property
    def unlinked(self) -> tuple[Missing, ...]:
        """The missing symbols that a loaded library exports, but not to this file."""
        return tuple(m for m in self.missing if m.exported_by is not None)

    @property
    def missing_libraries(self) -> tuple[Library, ...]:
        """The needed libraries that the loader would not find, in its order."""
        return () if self.resolution is None else self.resolution.missing_libraries


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding and its place in the order in which the loader would stumble."""

    rank: int
    finding: Finding


def symbol_rank(item: Missing) -> int:
    """The place of a missing symbol in the loader's order."""
    return RANK_SYMBOL + item.binding.order


Rule = Callable[[Context], Sequence[Judged]]
