"""The tables of releases, opened when first asked; a damaged one is told, not suffered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa_forensics.atlas.store import Atlas
from fa_forensics.errors import AtlasDamaged

if TYPE_CHECKING:
    from fa_forensics.atlas.libraries import CudaLibraries


#: Names of one run for which a name of torch is looked for that they could mean.
MOST_REPAIRS = 40


class Tables:
    """Both tables of one run. ``problems`` says, a sentence each, which could not be read."""

    def __init__(self) -> None:
        self._atlas: Atlas | None = None
        self._ages: Atlas | None = None
        self._libraries: CudaLibraries | None = None
        self._tried: set[str] = set()
        self.problems: list[str] = []
        self._repairs = MOST_REPAIRS

    def may_repair(self) -> bool:
        """Whether one more misspelt name may be looked for; each call counts as one."""
        self._repairs -= 1
        return self._repairs >= 0

    @property
    def atlas(self) -> Atlas | None:
        """Torch's releases, or None where the table cannot be read."""
        if "torch" not in self._tried:
            self._tried.add("torch")
            try:
                self._atlas = Atlas.open()
            except AtlasDamaged as error:
                self._add(error)
        return self._atlas

    @property
    def ages(self) -> Atlas | None:
        """Torch's releases since 1.0.0; those of ``atlas`` where the early ones cannot be read."""
        if "ages" not in self._tried and self.atlas is not None:
            from fa_forensics.atlas.ages import Ages

            self._tried.add("ages")
            try:
                self._ages = Ages.of(self.atlas)
            except AtlasDamaged as error:
                self._ages = self.atlas
                self._add(error)
        return self._ages

    def needed_atlas(self) -> Atlas:
        """Torch's releases. Raises ``AtlasDamaged`` where the table cannot be read."""
        if self._atlas is None:
            self._tried.add("torch")
            self._atlas = Atlas.open()
        return self._atlas

    @property
    def libraries(self) -> CudaLibraries | None:
        """The CUDA libraries' releases, or None where the table cannot be read."""
        if "cuda" not in self._tried:
            from fa_forensics.atlas.libraries import CudaLibraries

            self._tried.add("cuda")
            try:
                self._libraries = CudaLibraries.open()
            except AtlasDamaged as error:
                self._add(error)
        return self._libraries

    def _add(self, error: AtlasDamaged) -> None:
        self.problems.append(f"Could not look through the releases: {error.message}.")
