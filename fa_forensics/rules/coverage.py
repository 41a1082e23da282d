"""Which GPU code runs on which GPU: NVIDIA's compatibility rules over the images of a file.

Pure: images and a GPU in, an answer with its reason out. Sources of the rules: CUDA Programming
Guide (Binary Compatibility, PTX Compatibility, Architecture-Specific and Family-Specific
Features), CUDA Compatibility guide (minor version compatibility), and ptxas for what PTX of one
target compiles to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.facts.drivers import (
    CudaVersion,
    Driver,
    cuda_text,
    driver_needed,
    driver_table,
    parse_cuda,
)
from fa_forensics.facts.gpus import Capability, Family, Gpu, capability_text, gpu_table

if TYPE_CHECKING:
    from fa_forensics.facts.fatbin.images import Image
    from fa_forensics.facts.fatbin.provenance import Toolkit

NATIVE, JIT, NONE = "native", "jit", "none"

_ARCH = re.compile(r"([a-z]+)_(\d{1,4})([af]?)$")
_UNLOADABLE = {
    "lto-ir": "LTO-IR is no loadable code: it must be linked first (nvJitLink)",
    "relocatable-ptx": "relocatable PTX must be linked first",
    "tile-ir": "Tile IR is no loadable code for a plain launch",
    "old-cubin": "the binary format before CUDA 3 runs on nothing that is still supported",
    "index": "an index holds no code",
}


class Arch(NamedTuple):
    """``sm_90a``: the capability 9.0 and the suffix (none, ``a`` or ``f``).

    written: the capability as the name has it, before a part was renamed.
    """

    capability: Capability
    suffix: str
    written: Capability


class Fit(NamedTuple):
    """Whether one image runs on one GPU: native, jit or none, and why."""

    runs: str
    reason: str


class CodeGroup(NamedTuple):
    """All images of a file that are alike for a GPU.

    images: how many there are. containers: the indices of those they lie in; one container
    is one compiled source file.
    stored_bytes: what they take in the file. zstd: whether any is compressed that way.
    """

    kind: str
    arch: str
    isa: str | None
    relocatable: bool
    zstd: bool
    images: int
    stored_bytes: int
    containers: frozenset[int]


def code_for(arch: str) -> CodeGroup:
    """One piece of code for an architecture: PTX for compute_NN, machine code for sm_NN."""
    kind = "ptx" if arch.startswith("compute") else "cubin"
    return CodeGroup(kind, arch, None, False, False, 1, 0, frozenset((0,)))


class GpuFit(NamedTuple):
    """Whether a file's GPU code runs on one GPU.

    runs: native (machine code for it), jit (only PTX, which the driver compiles) or none.
    arch, isa: of the code that most sources have for this GPU; None where none has any.
    reason: why it runs, or why it does not, one clause.
    needs_cuda: the CUDA version that the driver must support for it, None where not known.
    driver_ok: whether this driver does; None where no driver is known, or nothing runs.
    driver_reason: what is wrong with the driver, where it is too old.
    native, by_jit, without: numbers of compiled source files (containers) with machine code
    for it, with PTX alone, and with nothing for it.
    refused: for each architecture of the file that does not run here, why.
    """

    gpu: Gpu
    runs: str
    arch: str | None
    isa: str | None
    reason: str
    needs_cuda: CudaVersion | None
    driver_ok: bool | None
    driver_reason: str | None
    native: int
    by_jit: int
    without: int
    refused: tuple[tuple[str, str], ...]


def parse_arch(text: str) -> Arch | None:
    """``sm_90a`` → capability 9.0, suffix ``a``; a name that Thor had before is renamed."""
    match = _ARCH.match(text)
    if match is None:
        return None
    written = (int(match[2]) // 10, int(match[2]) % 10)
    return Arch(gpu_table().renamed(written), match[3], written)


def group_images(images: Iterable[Image]) -> tuple[CodeGroup, ...]:
    """The images of a file, those together that no rule tells apart."""
    rows: dict[tuple[str, str, str | None, bool], list[Image]] = {}
    for image in images:
        key = (image.kind, image.arch, image.isa, bool(image.relocatable))
        rows.setdefault(key, []).append(image)
    return tuple(
        CodeGroup(
            *key,
            zstd=any(image.compression == "zstd" for image in members),
            images=len(members),
            stored_bytes=sum(image.stored_bytes for image in members),
            containers=frozenset(image.container for image in members),
        )
        for key, members in rows.items()
    )


def fit(group: CodeGroup, capability: Capability) -> Fit:
    """Whether one group of images runs on a GPU, the driver left aside."""
    if group.kind in _UNLOADABLE:
        return Fit(NONE, _UNLOADABLE[group.kind])
    if group.kind not in ("cubin", "ptx"):
        return Fit(NONE, f"{group.kind} is not known to be loadable code")
    if group.relocatable:
        return Fit(NONE, "relocatable code must be linked first")
    arch = parse_arch(group.arch)
    if arch is None:
        return Fit(NONE, f"{group.arch} is no architecture that is known")
    if group.kind == "ptx":
        return _ptx_fit(group.arch, arch, capability)
    return _cubin_fit(group.arch, arch, capability)


def _cubin_fit(name: str, arch: Arch, capability: Capability) -> Fit:
    """Machine code: same major version and not newer, with the exceptions that follow."""
    table = gpu_table()
    here = capability_text(capability)
    if arch.capability == capability and arch.suffix != "f":
        return Fit(NATIVE, f"{name} code is made for compute capability {here}")
    if arch.suffix == "a":
        only = capability_text(arch.capability)
        return Fit(NONE, f"{name} code runs on compute capability {only} alone")
    code, gpu = table.family(arch.capability), table.family(capability)
    if arch.capability != capability and (_integrated(code) or _integrated(gpu)):
        return Fit(NONE, _integrated_reason(name, arch, code, gpu, here))
    if arch.suffix == "f" and not table.same_features(arch.capability, capability):
        first = capability_text(arch.capability)
        return Fit(NONE, f"{name} code runs on {first} and later parts of its family alone")
    major, minor = arch.capability
    if major != capability[0]:
        first = capability_text(arch.capability)
        return Fit(NONE, f"{name} code runs on {first} and later {major}.x alone")
    if minor > capability[1]:
        return Fit(NONE, f"{name} code needs {major}.{minor} or a later {major}.x")
    return Fit(NATIVE, f"{name} code runs on {here}: same major version, not newer")


def _integrated(family: Family | None) -> bool:
    return family is not None and family.integrated


def _integrated_reason(
    name: str, arch: Arch, code: Family | None, gpu: Family | None, here: str
) -> str:
    """Tegra parts share machine code with nothing: neither desktop parts nor other Tegras."""
    if code is not None and code.integrated:
        only = capability_text(arch.capability)
        return f"{name} code runs on {code.label} ({only}) alone"
    label = gpu.label if gpu is not None else here
    return f"machine code of other parts does not run on {label} ({here}), which needs its own"


def _ptx_fit(name: str, arch: Arch, capability: Capability) -> Fit:
    """PTX: every later part, unless it is tied to one part or one family."""
    wanted = capability_text(arch.capability)
    if arch.suffix == "a":
        if arch.capability == capability:
            return Fit(JIT, f"the driver compiles {name} PTX for {wanted}")
        return Fit(NONE, f"{name} PTX is for compute capability {wanted} alone")
    if arch.suffix == "f" and not gpu_table().same_features(arch.capability, capability):
        return Fit(NONE, f"{name} PTX is for {wanted} and later parts of its family alone")
    # By number as written: ptxas compiles compute_101, an old name of 11.0, for 10.3 too.
    if arch.written > capability:
        return Fit(NONE, f"{name} PTX needs compute capability {wanted} or later")
    return Fit(JIT, f"the driver compiles {name} PTX for {capability_text(capability)}")


def gpu_fit(
    groups: Sequence[CodeGroup],
    gpu: Gpu,
    driver: Driver | None = None,
    toolkits: Sequence[Toolkit] = (),
) -> GpuFit:
    """Whether the code of a file runs on one GPU, and whether this driver is new enough."""
    fits = [(group, fit(group, gpu.capability)) for group in groups]
    native = [(group, found) for group, found in fits if found.runs == NATIVE]
    by_jit = [(group, found) for group, found in fits if found.runs == JIT]
    in_native = _containers(native)
    in_jit = _containers(by_jit) - in_native
    # Device code that waits to be linked is there twice: what was linked from it counts.
    loadable = [g for g, found in fits if found.runs != NONE or _loadable(g)]
    everywhere = frozenset().union(*(g.containers for g in loadable)) if loadable else frozenset()
    best = _most_used(native or by_jit, driver)
    refused = tuple((group.arch, found.reason) for group, found in fits if found.runs == NONE)
    counts = (len(in_native), len(in_jit), len(everywhere - in_native - in_jit))
    if best is None:
        reason = _nothing_runs(groups, gpu.capability)
        return GpuFit(gpu, NONE, None, None, reason, None, None, None, *counts, refused)
    group, found = best
    used = native if native else [best]
    needs = _needs(found.runs, [item[0] for item in used], group, toolkits)
    ok, complaint = _driver_ok(found.runs, needs, driver)
    return GpuFit(
        gpu, found.runs, group.arch, group.isa, found.reason, needs, ok, complaint, *counts, refused
    )


def _most_used(
    fits: Sequence[tuple[CodeGroup, Fit]], driver: Driver | None
) -> tuple[CodeGroup, Fit] | None:
    """The code that most sources end up with, where each takes the newest it has."""
    taken: set[int] = set()
    best, most = None, 0
    for item in sorted(fits, key=lambda item: _rank(item[0], driver), reverse=True):
        uses = len(item[0].containers - taken)
        taken |= item[0].containers
        if uses > most:
            best, most = item, uses
    return best


def _containers(fits: Iterable[tuple[CodeGroup, Fit]]) -> frozenset[int]:
    return frozenset().union(*(group.containers for group, _found in fits))


def _loadable(group: CodeGroup) -> bool:
    return group.kind in ("cubin", "ptx") and not group.relocatable


def _rank(group: CodeGroup, driver: Driver | None) -> tuple[bool, Capability, str]:
    """The newest code last; of PTX, what this driver can compile comes before what it cannot."""
    arch = parse_arch(group.arch)
    known = True
    if group.kind == "ptx" and driver is not None and driver.cuda is not None:
        cuda = driver_table().cuda_of_isa(group.isa)
        known = cuda is not None and cuda <= driver.cuda
    if arch is None:
        return known, (0, 0), ""
    return known, arch.capability, {"a": "2", "f": "1"}.get(arch.suffix, "0")


def _nothing_runs(groups: Sequence[CodeGroup], capability: Capability) -> str:
    if not groups:
        return "the file holds no GPU code"
    loadable = [group for group in groups if _loadable(group)]
    if not loadable:
        return "its GPU code must be linked first"
    archs = ", ".join(sorted({group.arch for group in loadable}, key=_natural))
    return f"of {archs}, nothing runs on compute capability {capability_text(capability)}"


def _natural(name: str) -> tuple[int, str]:
    found = _ARCH.match(name)
    return (int(found[2]) if found else 0, name)


def _needs(
    runs: str, used: Sequence[CodeGroup], best: CodeGroup, toolkits: Sequence[Toolkit]
) -> CudaVersion | None:
    """The CUDA version that a driver must support to run this code."""
    table = driver_table()
    if runs == JIT:
        needed = table.cuda_of_isa(best.isa)
    else:
        archs = {group.arch for group in used}
        majors = [
            parse_cuda(kit.release.split(" ")[0])[0]
            for kit in toolkits
            if archs.intersection(kit.archs)
        ]
        # Minor version compatibility: any driver of the major version that built it.
        needed = (max(majors), 0) if majors else None
    if any(group.zstd for group in used):
        return max(needed or (0, 0), table.zstd)
    return needed


def _driver_ok(
    runs: str, needs: CudaVersion | None, driver: Driver | None
) -> tuple[bool | None, str | None]:
    if driver is None or driver.cuda is None or needs is None:
        return None, None
    if driver.cuda >= needs:
        return True, None
    what = "compiling this PTX" if runs == JIT else "this code"
    version = f"driver {driver.version}" if driver.version else "the driver"
    return False, (
        f"{what} needs {driver_needed(needs)}; {version} supports CUDA {cuda_text(driver.cuda)}"
    )


def what_would_run(capability: Capability) -> str:
    """The code that runs on a GPU: ``sm_80, sm_86, sm_89 code, or PTX up to compute_89``."""
    table = gpu_table()
    number = capability[0] * 10 + capability[1]
    here = table.family(capability)
    names = [
        f"sm_{f.capability[0] * 10 + f.capability[1]}"
        for f in table.families
        if f.capability[0] == capability[0]
        and f.capability <= capability
        and (f.capability == capability or not (f.integrated or _integrated(here)))
    ]
    return f"{', '.join(names) or f'sm_{number}'} code, or PTX up to compute_{number}"
