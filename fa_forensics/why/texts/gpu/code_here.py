"""The GPU code of the file that a text is about, where that file is on this machine."""

from __future__ import annotations

import os
from typing import NamedTuple

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.dependents import extensions_of
from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.provenance import Toolkit, read_toolkits
from fa_forensics.facts.fatbin.reader import read_device_code
from fa_forensics.facts.gpus import Gpu
from fa_forensics.rules.coverage import CodeGroup, GpuFit, gpu_fit, group_images
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import installed

#: Files of one package that are looked into.
_MOST = 12


class CodeHere(NamedTuple):
    """One file's GPU code: its groups of images, and the toolkits that made it."""

    path: str
    groups: tuple[CodeGroup, ...]
    toolkits: tuple[Toolkit, ...]

    def fit(self, gpu: Gpu, driver: Driver | None) -> GpuFit:
        """Whether it runs on a GPU, and whether a driver is new enough for it."""
        return gpu_fit(self.groups, gpu, driver, self.toolkits)

    @property
    def archs(self) -> str:
        """Its loadable architectures, for a sentence."""
        found = {g.arch for g in self.groups if g.kind in ("cubin", "ptx") and not g.relocatable}
        return ", ".join(sorted(found, key=lambda arch: (len(arch), arch)))


def code_here(seen: Seen, package: str | None) -> CodeHere | None:
    """The code of the failing file, or of the package's file with most of it; None for none.

    Files that cannot be read are passed over: an inspection says why.
    """
    if seen.elsewhere:
        return None
    paths = [seen.mention.file] if seen.mention.file else []
    known = installed(seen, package) if package else None
    if known is not None:
        paths += extensions_of(known)[:_MOST]
    found = [code for path in dict.fromkeys(paths) if (code := _read(path)) is not None]
    return max(found, key=lambda code: sum(group.images for group in code.groups), default=None)


def torch_code_here(seen: Seen) -> tuple[str, ...] | None:
    """The architectures in the CUDA library of the torch that is here; None where not here."""
    environment = None if seen.elsewhere else seen.place.environment
    if environment is None or environment.torch is None:
        return None
    code = _read(os.path.join(environment.torch.lib_dir, "libtorch_cuda.so"))
    if code is None:
        return None
    return tuple(sorted({g.arch for g in code.groups if g.kind in ("cubin", "ptx")}))


def _read(path: str) -> CodeHere | None:
    if not os.path.isabs(path) or not os.path.isfile(path):
        return None
    try:
        with ElfImage(path) as image:
            code = read_device_code(image)
            if not code.images:
                return None
            return CodeHere(path, group_images(code.images), read_toolkits(image, code).toolkits)
    except ForensicsError:
        return None  # it is no witness; inspect names what is wrong with it
