"""A library of torch that is not found: torch was not imported first, or is another torch."""

from __future__ import annotations

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.history import order_key
from fa_forensics.why.judgement import NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen

_CUDA_PARTS = ("libc10_cuda.so", "libtorch_cuda")


def import_order(seen: Seen) -> Answer:
    """A library of torch by its bare name."""
    path = seen.mention.library or ""
    return torch_library(seen, path, path.rsplit("/", 1)[-1])


def torch_library(seen: Seen, path: str, soname: str) -> Answer:
    """Judge a missing library of torch: by its name's life, by torch's build, else by order."""
    if "_hip" in soname:
        return _rocm(seen, soname)
    having, interval = _life(seen, soname)
    if not having:
        return _before_the_table(seen, soname)
    atlas = seen.tables.atlas
    known = atlas.releases(seen.place.machine) if atlas is not None else ()
    if known and having[-1] != known[-1]:
        return _gone(seen, soname, having, interval)
    cpu = seen.torch is not None and "+cpu" in seen.torch
    present = seen.place.present
    if soname.startswith(_CUDA_PARTS) and (cpu or (present is not None and not present.has_cuda)):
        return _cpu_torch(seen, soname)
    if "/torch/lib/" in path:
        return not_whole(seen, path)
    return _first(seen, soname)


def _life(seen: Seen, soname: str) -> tuple[tuple[str, ...], str]:
    atlas = seen.tables.atlas
    if atlas is None:
        return ("",), ""
    machine = seen.place.machine
    having = tuple(b.release for b in atlas.builds(machine) if soname in b.libraries)
    return having, interval_text(having, atlas.releases(machine)) if having else ""


def _although_first(seen: Seen, soname: str) -> Answer:
    """The text imports torch before the extension: then the order is not what is wrong."""
    cause = (
        f"{soname} is torch's own library, and the text imports torch before the extension: a "
        "torch that has that library has it in the process by then. "
    )
    if soname.startswith(_CUDA_PARTS):
        cause += (
            "Most likely this torch is a build without CUDA, which has none; the extension needs a "
            "CUDA build."
        )
    else:
        cause += (
            "Two causes fit: what is imported as torch is no whole torch (a directory of that name "
            "comes first), or the extension is loaded in another process or by another Python than "
            "that line. The first command tells them apart."
        )
    module = seen.mention.detail.get("import") or seen.module or "MODULE"
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=owner_of_library(soname), direction=UNKNOWN,
        confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
              "torch.__path__)'", f"{seen.python} -c 'import torch; import {module}'",
              seen.inspect_command()),
    )  # fmt: skip


def _first(seen: Seen, soname: str) -> Answer:
    if seen.mention.detail.get("torch_imported"):
        return _although_first(seen, soname)
    module = seen.mention.detail.get("import") or seen.module or "MODULE"
    cause = (
        f"{soname} is torch's own library. Extensions of torch find it because torch is loaded "
        "before them: here the extension was imported before torch. Nothing needs to be installed "
        "or put on a path; import torch first. Where that does not help, this Python has no torch, "
        "or one without that library."
    )
    environment = seen.place.environment
    if environment is not None and environment.torch is None and not seen.elsewhere:
        cause += f" In {environment.prefix} there is no torch."
    return seen.answer(
        "import-order", "FA202", cause, owner=owner_of_library(soname), direction=NONE,
        confidence="high",
        help=(f"{seen.python} -c 'import torch; import {module}'",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__)'"),
        notes=("ldd shows the same library as not found, and means as little by it: ldd starts no "
               "Python and no torch.",
               "Tools that sort imports put the extension before torch; tell them to leave that "
               "line alone."),
    )  # fmt: skip


def _cpu_torch(seen: Seen, soname: str) -> Answer:
    release = (seen.torch or "").partition("+")[0]
    cause = (
        f"torch {seen.torch} is a build without CUDA and has no {soname}: the extension needs a "
        "CUDA build of torch, most often one that a later installation replaced."
    )
    return seen.answer(
        "wrong-torch", "FA601", cause, owner=owner_of_library(soname), direction=NONE,
        confidence="high",
        help=(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"',),
    )  # fmt: skip


def _gone(seen: Seen, soname: str, having: tuple[str, ...], interval: str) -> Answer:
    present = seen.place.present
    torch = present.text if present is not None else "the torch that is loaded"
    inside = present is not None and present.release in having
    cause = f"Of torch's wheels on record only {interval} have {soname}"
    if inside:
        return _first(seen, soname)
    newer = present is None or order_key(present.version) > order_key(having[-1])
    cause += f": the file was built for one of them, and {torch} is "
    cause += "newer." if newer else "older."
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname),
        direction=OLDER if newer else UNKNOWN, confidence="high" if present else "medium",
        exported_by=(), help=(seen.inspect_command(), f'{seen.pip} install "torch=={having[-1]}"'),
    )  # fmt: skip


def _before_the_table(seen: Seen, soname: str) -> Answer:
    atlas = seen.tables.atlas
    known = atlas.releases(seen.place.machine) if atlas is not None else ("1.12.0",)
    cause = (
        f"No torch from {known[0]} on has {soname}: the file was built for an older torch, or for "
        "a C++ libtorch of that time."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname), direction=OLDER,
        confidence="medium", help=(seen.inspect_command(),),
    )  # fmt: skip


def not_whole(seen: Seen, path: str) -> Answer:
    """A file of torch's own directory that is not there."""
    release = (seen.torch or "").partition("+")[0]
    wanted = f'"torch=={release}"' if release else "torch"
    cause = f"{path} is a part of torch itself, and it is not there: torch is not whole."
    return seen.answer(
        "damaged-file", "FA603", cause, owner=owner_of_library(path.rsplit("/", 1)[-1]),
        direction=NONE, confidence="high",
        help=(f"{seen.pip} install --force-reinstall --no-cache-dir {wanted}",),
    )  # fmt: skip


def _rocm(seen: Seen, soname: str) -> Answer:
    cause = (
        f"Only builds of torch for ROCm have {soname}: the extension was built for AMD GPUs, or "
        "for torch with ROCm, and torch was not imported first or is a build for NVIDIA GPUs."
    )
    return seen.answer(
        "rocm", "FA202", cause, owner=owner_of_library(soname), direction=NONE, confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"import-order": import_order}
