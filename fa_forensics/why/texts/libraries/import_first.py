"""A library of torch that is not found: torch was not imported first, or is another torch."""

from __future__ import annotations

import os

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.library_names import only_in_builds, torch_library_life
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.gpu.rocm_text import about_rocm, cuda_build_on_rocm
from fa_forensics.why.texts.libraries.brought_text import torches_bringing
from fa_forensics.why.texts.libraries.cpu_extension import by_path, cpu_ways, loaded_by_path
from fa_forensics.why.texts.libraries.needing import (
    needing,
    package_needing,
    rebuild_commands,
)
from fa_forensics.why.texts.libraries.own_import import (
    OF_THE_INDEX,
    imports_torch,
    index_notes,
    with_cuda_again,
    without_its_cuda,
)
from fa_forensics.why.texts.libraries.own_source import own_source
from fa_forensics.why.texts.libraries.split_build import other_build
from fa_forensics.why.texts.libraries.torch_release import (
    all_again,
    before_it_came,
    older_than_it,
)
from fa_forensics.why.torch_names.history import order_key

_CUDA_PARTS = ("libc10_cuda.so", "libtorch_cuda")
_CORE = ("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so")


def import_order(seen: Seen) -> Answer:
    """A library of torch by its bare name."""
    path = seen.mention.library or ""
    return torch_library(seen, path, path.rsplit("/", 1)[-1])


def torch_library(seen: Seen, path: str, soname: str) -> Answer:
    """Judge a missing library of torch: by its name's life, by torch's build, else by order."""
    if "_hip" in soname:
        from fa_forensics.why.texts.libraries.hip_library import of_rocm_builds

        return of_rocm_builds(seen, soname)
    if soname.startswith(_CUDA_PARTS) and about_rocm(seen):
        return cuda_build_on_rocm(seen, soname, owner_of_library(soname))
    life = torch_library_life(soname)
    own = seen.torch
    if life is not None and own and order_key(own)[:3] < order_key(life[0])[:3]:
        return _not_yet(seen, soname, life[0])
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
    if loaded_by_path(seen) and soname.startswith(_CUDA_PARTS) and not imports_torch(seen):
        return by_path(seen, soname)
    if soname.startswith(_CUDA_PARTS) and not _core_is_missing(seen):
        return _torch_without_it(seen, soname)
    if loaded_by_path(seen) and seen.torch is None and soname == "libtorch_cpu.so":
        return older_than_it(seen, soname)
    module = seen.mention.detail.get("import") or seen.module or "MODULE"
    cause = (
        f"{soname} is torch's own library. Extensions of torch find it because torch is loaded "
        "before them: here the extension was most likely imported before torch. Nothing needs to "
        "be installed or put on a path; import torch first. Where that does not help, this Python "
        "has no torch, or one without that library."
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
               "line alone.", *before_it_came(seen, soname)),
    )  # fmt: skip


def _core_is_missing(seen: Seen) -> bool:
    """Whether the text misses torch's other libraries too, as where no torch was imported."""
    lines = (m.library or "" for m in seen.paste.mentions if m.what in ("import-order", "ldd-line"))
    return any(os.path.basename(name) in _CORE for name in lines)


def _torch_without_it(seen: Seen, soname: str) -> Answer:
    """The loader names the first library that it misses, and files list libc10.so before it."""
    present = seen.place.present
    with_cuda = bool(seen.torch_cuda or seen.mention.detail.get("torch_with_cuda"))
    with_cuda = with_cuda or bool(present and present.has_cuda and "+cu" in present.version)
    module = seen.mention.detail.get("import") or seen.module or "MODULE"
    first = f"{seen.python} -c 'import torch; import {module}'"
    ask = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.__path__)'"
    )
    if package := imports_torch(seen):
        return without_its_cuda(seen, soname, package, with_cuda)
    owner = "torch/torch_cuda" if "torch_cuda" in soname else owner_of_library(soname)
    if with_cuda or seen.mention.detail.get("stable_abi"):
        cause = (
            f"{soname} is torch's own library, of its CUDA builds. Extensions of torch find it "
            "because torch is loaded before them: here the extension was most likely imported "
            "before torch, and lists that library before torch's others, as files of the stable "
            "ABI do. Importing torch first is the cure. Where that does not help, this torch is a "
            "build without CUDA."
        )
        return seen.answer(
            "import-order", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
            help=(first, ask),
            notes=("The package itself can do that: import torch stands in its __init__.py before "
                   "its compiled module. No toolkit, driver or path brings that library.",),
        )  # fmt: skip
    cause = (
        f"Only CUDA builds of torch have {soname}. Two causes fit: this torch is a build without "
        "CUDA, and the extension is for one with it, since most extensions list libc10.so before "
        "it and the loader names the first that it misses; or torch was not imported before, and "
        "the file lists this library first. The first command tells them apart: None is a build "
        "without CUDA."
    )
    return seen.answer(
        "wrong-torch", "FA601", cause, owner=owner, direction=NONE, confidence="medium",
        help=(ask, first, *cpu_ways(seen)[0], with_cuda_again(seen)),
        notes=(*cpu_ways(seen)[1], "Where the first command prints a version of CUDA, import torch "
               "first.", OF_THE_INDEX),
    )  # fmt: skip


def _cpu_torch(seen: Seen, soname: str) -> Answer:
    if package := imports_torch(seen):
        return without_its_cuda(seen, soname, package, False)
    release = (seen.torch or "").partition("+")[0]
    cause = (
        f"torch {seen.torch} is a build without CUDA and has no {soname}: the extension needs a "
        "CUDA build of torch, most often one that a later installation replaced."
    )
    helps, notes = cpu_ways(seen)
    return seen.answer(
        "wrong-torch", "FA601", cause, owner=owner_of_library(soname), direction=NONE,
        confidence="high", notes=notes,
        help=(*helps, f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'),
    )  # fmt: skip


def _not_yet(seen: Seen, soname: str, since: str) -> Answer:
    """The torch that is there is older than the library."""
    again = rebuild_commands(seen) or all_again(seen)
    source, said = own_source(seen) if not again else ((), ())
    inspected = (seen.inspect_command(),) if seen.mention.file or not (again or source) else ()
    cause = (
        f"{soname} came with torch {since}, and torch {seen.torch} has none: the extension was "
        f"built for torch {since} or newer. A build of it for torch {seen.torch} has to replace "
        "it, or torch has to be one of those."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname), direction=NEWER,
        confidence="high", help=(*again, *source, *inspected),
        notes=("pip builds in an environment of its own, with the newest torch that fits, where "
               "it is not told --no-build-isolation.", *said),
    )  # fmt: skip


def _gone(seen: Seen, soname: str, having: tuple[str, ...], interval: str) -> Answer:
    present = seen.place.present
    life = torch_library_life(soname)
    since = life[0] if life is not None else having[0]
    if order_key(since) < order_key(having[0]):
        interval = f"{since} \u2013 {having[-1]}"
    inside = present is not None and (
        order_key(since) <= order_key(present.release) <= order_key(having[-1])
    )
    builds = only_in_builds(soname)
    if builds is not None and "ngc" in seen.versions:
        return other_build(seen, soname, builds)
    if inside and builds is not None:
        return other_build(seen, soname, builds)
    if inside:
        return _first(seen, soname)
    if present is None:
        return _newer_or_other_build(seen, soname, interval, builds)
    newer = order_key(present.version) > order_key(having[-1])
    cause = (
        f"Of torch's wheels on record only {interval} have {soname}: {needing(seen)} was built for "
        f"one of them, and {present.text} is newer. A build of it for the torch that is there has "
        "to replace it."
        if newer
        else f"Of torch's wheels on record only {interval} have {soname}: {needing(seen)} was "
        f"built for one of them, and {present.text} is older. A build of it for the torch that is "
        "there has to replace it."
    )
    source, said = own_source(seen)
    helps = [*source, seen.inspect_command()]
    if since in having:
        helps.append(f'{seen.pip} install "torch=={having[-1]}"')
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname),
        direction=OLDER if newer else UNKNOWN, confidence="high",
        exported_by=(), help=(*rebuild_commands(seen), *helps),
        notes=(*_tagged_wheels(seen), *said),
    )  # fmt: skip


#: The way back to the torch of a file that nobody builds again.
_THE_OLDER = (
    "The other way out is the torch that it was built for, of those releases and for CUDA 11 "
    "(1.10.1+cu113, 1.13.1+cu117 and the like, with the torchvision of that release; their wheels "
    "are for Python 3.6 to 3.11): X.Y.Z and NNN are those that the project's own instructions name "
    "for its program. An extension in the program's own source is compiled again by its own "
    "setup.py or make.sh, after build/ there is removed."
)


def _newer_or_other_build(seen: Seen, soname: str, interval: str, builds: str | None) -> Answer:
    """The torch that is there is not told: it is newer, or another build of those releases."""
    since = _by_its_wheels(seen)
    if since and order_key(since) > order_key(interval.split(" ")[-1]):
        cause = (
            f"Of torch's wheels on record only {interval} have {soname}: {needing(seen)} was built "
            f"for one of them. The text lists NVIDIA's wheels for CUDA 12, which torch brings "
            f"along since {since}: the torch that is there is newer."
        )
    elif builds is not None:
        cause = (
            f"Of torch's wheels on record only {interval} have {soname}, and of these "
            f"only the builds for {builds}: {needing(seen)} was built for one of them. The torch "
            "that is loaded is newer or older, or it is another build of one of those releases: "
            "for another CUDA, for the CPU, for macOS. The first command tells which."
        )
    else:
        cause = (
            f"Of torch's wheels on record only {interval} have {soname}: {needing(seen)} was built "
            "for one of them, and the torch that is loaded is most likely newer. "
            "The first command tells which it is."
        )
    cause += " A build of it for the torch that is there, release and CUDA, has to replace it."
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    source, said = own_source(seen)
    older = (_THE_OLDER,) if builds == "CUDA 11" and not since else ()
    back = f'{seen.pip} install "torch==X.Y.Z+cuNNN" --index-url {TORCH_INDEX}cuNNN'
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname),
        direction=UNKNOWN if builds is not None and not since else OLDER, confidence="medium",
        help=(ask, *rebuild_commands(seen), *source, *((back,) if older else ()), *_look(seen)),
        notes=(*older, *_tagged_wheels(seen), *index_notes(seen), *said),
    )  # fmt: skip


def _by_its_wheels(seen: Seen) -> str:
    """The first torch that brings NVIDIA's wheels for CUDA 12, where a text lists these alone."""
    wheels = seen.place.told.wheels if seen.place.told is not None else ()
    lines = {name[-4:] for name, _ in wheels}
    torches = torches_bringing(seen, "libcublas.so.12") if lines == {"cu12"} else ()
    return torches[0] if len(wheels) > 1 and torches else ""


def _look(seen: Seen) -> tuple[str, ...]:
    """Inspect the file where the text names it, or where nothing else is known to help."""
    return (seen.inspect_command(),) if seen.mention.file or not rebuild_commands(seen) else ()


#: Packages with wheels for each torch release and CUDA, in lists of their own project.
_TAGGED = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv")


def _tagged_wheels(seen: Seen) -> tuple[str, ...]:
    name = package_needing(seen)
    if name not in _TAGGED:
        return ()
    return (
        f"{name} has wheels for each torch release and each CUDA: pip install {name} -f "
        "https://data.pyg.org/whl/torch-RELEASE+CUDA.html, with the two that the first command "
        "prints, as in torch-1.8.0+cu102.",
    )


def _before_the_table(seen: Seen, soname: str) -> Answer:
    atlas = seen.tables.atlas
    known = atlas.releases(seen.place.machine) if atlas is not None else ("1.12.0",)
    life = torch_library_life(soname)
    if life is not None:
        cause = (
            f"Only torch {life[0]} to {life[1]} had {soname}: {needing(seen)} was built for one of "
            "those, and the torch that is loaded is newer."
        )
    else:
        cause = (
            f"No torch from {known[0]} on has {soname}: the file was built for an older torch, or "
            "for a C++ libtorch of that time."
        )
    source, said = own_source(seen)
    again = (*rebuild_commands(seen), *source)
    notes = said
    if not again:
        notes = (
            "It has to be built again on the torch that is there, as its project says, from an "
            "empty build directory (build/ and an older wheel in dist/ go first), and to take the "
            "place of the one that is installed; a library of another name under this one is none.",
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner_of_library(soname), direction=OLDER,
        confidence="medium", notes=notes,
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
              *again, seen.inspect_command()),
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


ANSWERERS: dict[str, Answerer] = {"import-order": import_order}
