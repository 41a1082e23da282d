"""What a run asks of GPU code: which GPUs it must serve, and whether its kernels are listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.report import Skipped

if TYPE_CHECKING:
    from fa_forensics.facts.elf.image import ElfImage
    from fa_forensics.facts.fatbin.images import DeviceCode
    from fa_forensics.facts.fatbin.kernels import KernelInventory
    from fa_forensics.facts.fatbin.provenance import Toolkits
    from fa_forensics.facts.nvml import AskedGpus
    from fa_forensics.facts.package import Distribution
    from fa_forensics.rules.gpu_fit import FitFacts

#: (name of the file, bytes of GPU code that were read, bytes in all)
Progress = Callable[[str, int, int], None]


class GpuAnswer(NamedTuple):
    """What was found for one file: for the rules, and as the views of the report."""

    fit: FitFacts | None = None
    coverage: Mapping[str, object] | None = None
    kernels: Mapping[str, object] | None = None
    problems: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


class GpuQuestion:
    """The same for all files of a run; the machine is asked once, for the first GPU code.

    ``words`` are those of --gpu: none for the machine's own GPUs. Raises ``UsageError`` for
    one that names no GPU.
    """

    def __init__(
        self, words: tuple[str, ...] = (), kernels: bool = False, progress: Progress | None = None
    ) -> None:
        self._kernels = kernels
        self._progress = progress
        self._asked: AskedGpus | None = None
        self._jobs: int | None = None
        if words:
            self._look(words)

    def ask(
        self,
        image: ElfImage,
        code: DeviceCode,
        toolkits: Toolkits,
        distribution: Distribution | None,
        name: str,
        module: str | None,
    ) -> GpuAnswer:
        """Hold the GPU code of an open file against the GPUs."""
        if not code.images:
            return GpuAnswer()
        from fa_forensics.facts.flash_limits import limits_of
        from fa_forensics.rules.coverage_view import coverage_view
        from fa_forensics.rules.gpu_fit import fit_facts

        asked = self._asked or self._look(())
        inventory = self._inventory(image, code, name) if self._kernels else None
        package = distribution.name if distribution else None
        release = distribution.version if distribution else None
        limits = limits_of(package, release, module)
        facts = fit_facts(code.images, toolkits.toolkits, asked, limits, self._jobs, inventory)
        view = coverage_view(facts.groups, facts.fits, asked.driver, asked.source)
        skipped = (Skipped("gpus", asked.problem),) if asked.problem else ()
        if inventory is None:
            return GpuAnswer(facts, view, skipped=skipped)
        from fa_forensics.facts.fatbin.kernel_names import kernels_view

        unread = tuple(
            Skipped("kernels", f"the kernels of {count} {arch} images could not be listed")
            for arch, count in inventory.unread
        )
        kernels = kernels_view(inventory)
        return GpuAnswer(facts, view, kernels, inventory.problems, skipped + unread)

    def _look(self, words: tuple[str, ...]) -> AskedGpus:
        from fa_forensics.facts.build_machine import jobs, read_build_machine
        from fa_forensics.facts.nvml import asked_gpus

        self._asked = asked_gpus(words)
        self._jobs = jobs(read_build_machine())
        return self._asked

    def _inventory(self, image: ElfImage, code: DeviceCode, name: str) -> KernelInventory:
        from fa_forensics.facts.fatbin.kernels import read_kernels

        progress = self._progress
        if progress is None:
            return read_kernels(image, code)
        return read_kernels(image, code, lambda done, total: progress(name, done, total))
