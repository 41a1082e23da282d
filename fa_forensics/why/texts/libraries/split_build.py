"""Libraries that only some builds of a torch release have, as the divided ones of CUDA 11."""

from __future__ import annotations

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.needing import (
    needing,
    package_needing,
    rebuild_commands,
    rebuild_notes,
)


def other_build(seen: Seen, soname: str, builds: str) -> Answer:
    """Builds of one torch release for several CUDA are divided into other libraries."""
    module = seen.mention.detail.get("import") or seen.module or _module_of(package_needing(seen))
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    helps = [ask, f"{seen.python} -c 'import torch; import {module or 'MODULE'}'"]
    if seen.mention.file or not rebuild_commands(seen):
        helps.append(seen.inspect_command())
    notes: tuple[str, ...] = ()
    if "ngc" in seen.versions:
        cause = (
            f"{soname} is torch's own: only PyTorch's own builds for {builds} have it. The torch "
            f"of NVIDIA's image {seen.versions['ngc']} is a build of NVIDIA's, with the same code "
            f"in libtorch_cuda.so: {needing(seen)} is a wheel for PyTorch's own torch, and no "
            "wheel is made for the image's."
        )
        notes = (
            "It is compiled in the image, on the torch that is there (with pip's --no-binary, or "
            "from its source, without build isolation); the image's torch stays. The other way "
            "out is a python environment or image with PyTorch's own torch of the release and CUDA "
            "that the wheel is for.",
        )
        from_source = _from_source(seen)
        helps = [ask, *from_source, *helps[2:]]
    elif told := seen.versions.get("index_cuda", ""):
        cause = (
            f"Only builds of torch for {builds} have {soname}; other builds have the same code in "
            f"libtorch_cuda.so. The address in the text is that of wheels for CUDA {told} and one "
            f"torch release: {needing(seen)} is built for that, and the torch that is there is "
            "another one, for another CUDA or of another maker (the first command), or was not "
            "imported first."
        )
        helps[1:1] = rebuild_commands(seen)
    else:
        cause = (
            f"Of this torch release only the builds for {builds} have {soname}; its other builds "
            f"have the same code in libtorch_cuda.so. Most likely {needing(seen)} was built for "
            "another build than the one that is there; else torch was not imported first. The "
            "first command tells them apart."
        )
        if apart := _told_apart(seen):
            cause = (
                f"Of this torch release only the builds for {builds} have {soname}; its other "
                f"builds have the same code in libtorch_cuda.so, and {needing(seen)} was built for "
                f"torch {apart[0]}, as the text says, and the torch that is there is one for CUDA "
                f"{apart[1]}: a build for that has to replace it, or torch has to be that one."
            )
            helps = helps[:1]
        cause += _of_package_index(seen, soname)
        helps[1:1] = rebuild_commands(seen)
        if any("--index-url" in text for text in helps):
            notes = rebuild_notes(seen)
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname), direction=UNKNOWN,
        confidence="medium", help=tuple(helps), notes=notes,
    )  # fmt: skip


def _told_apart(seen: Seen) -> tuple[str, str] | None:
    """(torch of the file, CUDA of torch) where the text tells both, and they differ."""
    built = seen.versions.get("file_torch", "")
    label = built.partition("+")[2]
    cuda = cuda_of_label(label) if label.startswith("cu") else ""
    own = seen.versions.get("torch_cuda", "")
    return (built, own) if cuda and own and cuda != own else None


def _of_package_index(seen: Seen, soname: str) -> str:
    """Which build of this release pip gets, where that one has the library no more."""
    present, atlas = seen.place.present, seen.tables.ages
    if present is None or atlas is None or "+" in present.version:
        return ""
    machine = "x86_64"
    build = atlas.build(present.release, machine)
    if build is None:  # a patch release that is not on record is for the CUDA of its first
        build = atlas.build(f"{minor_of(present.release)}.0", machine)
    if build is None or build.cuda is None or soname in build.libraries:
        return ""
    return (
        f" The package index has torch {present.release} for CUDA {build.cuda}, without that "
        "library: pip brings that one where a package asks for this release."
    )


def _module_of(package: str | None) -> str:
    return "mmcv" if package == "mmcv-full" else (package or "").replace("-", "_")


def _from_source(seen: Seen) -> tuple[str, ...]:
    """Compile the package of the text on the torch that is there."""
    name = package_needing(seen)
    if name is None:
        return ()
    version = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
    wanted = f"{name}=={version}" if version else name
    before = "MMCV_WITH_OPS=1 FORCE_CUDA=1 " if name.startswith("mmcv") else ""
    return (
        f"{seen.pip} uninstall -y {name}",
        f"{before}{seen.pip} install --no-cache-dir --no-build-isolation --no-deps "
        f'--no-binary {name} "{wanted}"',
    )
