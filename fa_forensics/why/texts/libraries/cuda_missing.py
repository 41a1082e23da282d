"""A library of the CUDA toolkit that is not found: its toolkit against that of torch."""

from __future__ import annotations

import shlex

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.library_names import exact_toolkit, is_of_cuda_10
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.bitsandbytes_text import of_bitsandbytes
from fa_forensics.why.texts.libraries.brought_text import (
    known_releases,
    major_of,
    of_old_driver,
    there_already,
    told_cuda,
    torches_bringing,
    wheel_of,
)
from fa_forensics.why.texts.libraries.exact_cuda import of_exact_cuda, of_pypi, path_of_exact
from fa_forensics.why.texts.libraries.needing import (
    import_torch_first,
    needing,
    rebuild_commands,
    rebuild_notes,
    who_needs_it,
)
from fa_forensics.why.texts.libraries.other_cuda_text import of_another_maker, without_torch
from fa_forensics.why.texts.libraries.part_text import part_answer
from fa_forensics.why.texts.libraries.torch_itself import (
    is_torch_itself,
    of_torch_itself,
    perhaps_torch,
)
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "missing-library", "FA202"


def cuda_major_of_soname(seen: Seen, soname: str) -> str | None:
    """The one CUDA major version whose wheels carry a soname ("12"); None for several or none."""
    from fa_forensics.rules.groups import cuda_major_of

    own = cuda_major_of(soname)
    if own is not None:
        return own
    if is_of_cuda_10(soname):
        return "10"
    table = seen.tables.libraries
    if table is None:
        return None
    majors = {major_of(row.distribution) for row in table.releases(soname)}
    return majors.pop() if len(majors) == 1 else None


def cuda_library(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of the CUDA toolkit: its major version against that of torch."""
    major = cuda_major_of_soname(seen, soname)
    if is_torch_itself(seen):
        return of_torch_itself(seen, soname, owner, major)
    special = (
        of_another_maker(seen, soname, owner)
        or of_bitsandbytes(seen, soname, owner, exact_toolkit(soname) or major)
        or without_torch(seen, soname, owner, major)
        or part_answer(seen, soname, owner)
    )
    if special is not None and not soname.endswith(".so"):
        return special
    if soname.endswith(".so"):
        return _unnumbered(seen, soname, owner)
    torch_cuda = seen.torch_cuda
    told = told_cuda(seen) if torch_cuda is None else None
    cuda = torch_cuda or (told[0] if told is not None else None)
    own = cuda.split(".")[0] if cuda else None
    exact = exact_toolkit(soname)
    if cuda is None and major is not None and (by_driver := of_old_driver(seen, major)):
        cuda, told = by_driver[0], by_driver
        own = cuda.split(".")[0]
    if cuda is not None and exact is not None:
        own, major = ".".join(cuda.split(".")[:2]), exact
        if "." not in own and exact.split(".")[0] == own:
            own = None
    if major is not None and own is not None and own != major:
        return other_toolkit(seen, soname, owner, major, cuda or "", told[1] if told else "")
    if seen.torch is not None and "+cpu" in seen.torch:
        return _cpu_torch(seen, soname, owner)
    bringing = torches_bringing(seen, soname)
    present = seen.place.present
    if bringing and present is not None and present.release in known_releases(seen):
        if present.release not in bringing:
            return _other_torches(seen, soname, owner, bringing, major)
        if major is None:
            return _same_major(seen, soname, owner, (torch_cuda or "12").split(".")[0])
    if major is None or own is None:
        return _major_alone(seen, soname, owner, major, bringing)
    return _same_major(seen, soname, owner, major)


def tensorflow(seen: Seen, soname: str, owner: str | None) -> Answer:
    """TensorFlow looks for CUDA libraries by name and goes on without them."""
    cause = (
        f"TensorFlow looks for {soname} by name, does not find it, and goes on without the GPU: "
        "the line is a warning, and torch has no part in it. It counts only where TensorFlow "
        "itself is meant to use the GPU; then it needs the libraries of the CUDA that it was "
        "built with."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"{seen.pip} list | grep -iE '^(tensorflow|nvidia)'",
              f"{seen.python} -c 'import tensorflow as t; print(t.sysconfig.get_build_info())'"),
    )  # fmt: skip


def _other_torches(
    seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...], major: str | None
) -> Answer:
    """torch is there, and it is none of those that bring the library."""
    present = seen.place.present
    own = order_key(present.version) if present is not None else order_key("0.0")
    newer = own < order_key(bringing[0])
    span = interval_text(bringing, known_releases(seen))
    cause = (
        f"torch {span} bring {soname}; torch {seen.torch} brings another version of that library "
        f"or none: {needing(seen)} was built for {'a newer' if newer else 'another'} torch."
    )
    direction = NEWER if newer else OLDER if own > order_key(bringing[-1]) else UNKNOWN
    if major is not None and major == (seen.torch_cuda or "").split(".")[0]:
        return _of_the_toolkit(seen, soname, owner, span, major)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=direction, confidence="medium",
        help=(*rebuild_commands(seen), seen.inspect_command()),
    )  # fmt: skip


def _of_the_toolkit(seen: Seen, soname: str, owner: str | None, span: str, major: str) -> Answer:
    """torch is for that CUDA and brings this library not: a toolkit has it, or another torch."""
    who = needing(seen)
    cause = (
        f"{soname} is a library of CUDA {major}, as torch {seen.torch} is, and this torch does not "
        f"bring it: {who} takes it from a CUDA {major} toolkit, which is not there or not where "
        "the loader looks"
    )
    cause += f", or was built for a torch that brings it ({span})."
    wheel = wheel_of(seen, soname, major)
    stem = soname.split(".so")[0]
    helps = [f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null"]
    helps += [f"{seen.pip} install {wheel}"] if wheel else []
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(*helps, *rebuild_commands(seen), who_needs_it(seen)),
        notes=(
            f"The directory of a {soname} that the first command finds, a toolkit's lib64 or a "
            "wheel's nvidia/.../lib, has to be on LD_LIBRARY_PATH when the program starts; the "
            "library of another CUDA major version under that name does not count.",
            f"The other way out is a torch that brings it: torch {span}.",
        ),
    )  # fmt: skip


def other_toolkit(
    seen: Seen, soname: str, owner: str | None, wanted: str, own: str, by: str = ""
) -> Answer:
    """The file is a build for another CUDA than torch: "12" against 11.8, "10.1" against 10.0.

    ``by`` says how torch's CUDA is known where the text does not name it.
    """
    fitting = ".".join(own.split(".")[: 2 if "." in wanted else 1])
    newer = [int(part) for part in wanted.split(".")] > [int(part) for part in fitting.split(".")]
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a CUDA {wanted} build (it needs {soname}), torch is a CUDA "
        f"{own} build: a build for CUDA {fitting} has to replace it, or torch has to be "
        f"one for CUDA {wanted}."
    )
    if by:
        cause += f" That torch is one for CUDA {own} is read from this: {by}."
    ask = (f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",)
    notes = [_EXACT if "." in wanted else _ONE_RUNTIME]
    major = int(wanted.split(".")[0])
    if newer and (floor := driver_table().floors.get(major)):
        notes.append(f"A torch for CUDA {wanted} needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, "FA602", cause, owner=owner, direction=NEWER if newer else OLDER,
        confidence="medium" if by else "high",
        help=(*(ask if by else ()), *rebuild_commands(seen), who_needs_it(seen)),
        notes=(*notes, *rebuild_notes(seen)),
    )  # fmt: skip


_EXACT = (
    "Up to CUDA 10 the minor version is a part of the name too: 10.0, 10.1 and 10.2 cannot stand "
    "in for one another, and giving one the name of another mixes two CUDA runtimes."
)
_ONE_RUNTIME = (
    "The major version is in a library's name because one cannot stand in for another. Installing "
    "only that library, or giving another the name, would put two CUDA runtimes into one process."
)


def _cpu_torch(seen: Seen, soname: str, owner: str | None) -> Answer:
    """torch is a build for the CPU: which of the two was meant, the text alone can tell."""
    wanted = exact_toolkit(soname) or cuda_major_of_soname(seen, soname)
    cuda = f"CUDA {wanted}" if wanted else "CUDA"
    who = needing(seen) if seen.mention.file or seen.mention.detail.get("import") else ""
    cause = (
        f"torch {seen.torch} is a build without CUDA and brings no {soname}, and "
        f"{who or 'a compiled part of some package'} is a build for {cuda} that needs it. The two "
        "have to agree: a build of that package for the CPU, or a torch for that CUDA. Installing "
        "CUDA alone does not mend it."
    )
    cpu = bool(seen.mention.detail.get("cpu_wanted"))
    helps = list(rebuild_commands(seen)) if cpu else []
    release = (seen.torch or "").partition("+")[0]
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None else None
    fits = build is not None and build.cuda is not None and wanted is not None
    if fits and build is not None and (build.cuda or "").startswith(f"{wanted}."):
        again = f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
        helps.append(again)
    return seen.answer(
        KIND, "FA601", cause, owner=owner, direction=NONE, confidence="high",
        help=(*helps, who_needs_it(seen)), notes=rebuild_notes(seen) if cpu else (),
    )  # fmt: skip


def _major_alone(
    seen: Seen, soname: str, owner: str | None, major: str | None, bringing: tuple[str, ...]
) -> Answer:
    """torch's own CUDA is not told, or the name does not tell one."""
    detail = seen.mention.detail
    told = seen.mention.file or detail.get("import") or detail.get("by")
    if major is None and bringing and not told:
        return perhaps_torch(seen, soname, owner, bringing)
    exact = exact_toolkit(soname)
    wanted = exact or major
    who = needing(seen) if told else "what was imported"
    of = f"a CUDA {wanted} build" if wanted else "built for CUDA"
    cause = f"{who[0].upper()}{who[1:]} is {of}: it needs {soname}, which is not found."
    if exact:
        cause += of_exact_cuda(seen, exact) + of_pypi(seen, exact)
    elif major and seen.mention.detail.get("torch_loads"):
        cause += (
            " torch loads that file, so that it is in the process already: it is a build for "
            "another CUDA major version, or for the CPU, and a build of the package for that has "
            "to replace this one. The first command says which; where it says CUDA "
            f"{major}, torch's own wheel with that library is not installed whole."
        )
    elif major:
        cause += (
            f" Two causes fit: torch is a build for another CUDA major version (then a build of "
            f"the package for torch's CUDA has to replace this one), or it is one for CUDA {major} "
            "and was not imported first. The first command tells them apart."
        )
        cause += of_pypi(seen, major)
    elif bringing:
        cause += (
            " torch loads it itself where it brings it along: either torch was not imported first, "
            "or this torch is another than the file was built for."
        )
    if detail.get("stale"):
        cause += _STALE
    notes = [_EXACT if exact else _ONE_RUNTIME] if major else []
    if bringing:
        notes.append(_which_torches(seen, soname, bringing, major))
    notes += _about_toolkit(seen, wanted)
    if not told and exact:
        notes.append(_torch_itself(exact))
    if major and not exact and (floor := driver_table().floors.get(int(major))):
        notes.append(f"CUDA {major} code needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              *(path_of_exact(exact) if exact else ()), *rebuild_commands(seen),
              who_needs_it(seen)),
        notes=(*notes, *rebuild_notes(seen), *there_already(seen)),
    )  # fmt: skip


_STALE = (
    " ninja had nothing to do: the file is an earlier build, which was made with another CUDA and "
    "is taken as it is. Its build directory (in ~/.cache/torch_extensions, or the one that the "
    "program gives) is to be removed, and it is built again at the next start."
)


def _which_torches(seen: Seen, soname: str, bringing: tuple[str, ...], major: str | None) -> str:
    """The torches that bring a library: PyPI's by release, those of the indexes by their CUDA."""
    span = interval_text(bringing, known_releases(seen))
    note = f"Of PyPI's torches for CUDA {span} bring{'s' if len(bringing) == 1 else ''} {soname}"
    if major is None or int(major) < 12:
        return f"{note}."  # the builds for CUDA 11 have it inside, under a name with a hash
    return f"{note}; of those on PyTorch's own indexes, every build for CUDA {major} does."


def _torch_itself(cuda: str) -> str:
    """What is said of a library of one CUDA alone where nobody is named who asks for it."""
    return (
        "The text does not say who asks for it. Where import torch alone fails so, torch itself is "
        f"the build for CUDA {cuda}: one of conda (cudatoolkit={cuda} has the library), or one for "
        "a system of another time; on a Jetson NVIDIA's wheel for the JetPack that is there has to "
        "replace it."
    )


def _about_toolkit(seen: Seen, wanted: str | None) -> list[str]:
    """What the CUDA that the text names besides torch's says: nothing, mostly."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    if not toolkit or not wanted or f"{toolkit}.".startswith(f"{wanted}."):
        return []
    return [f"The system's CUDA {toolkit} plays no part: what counts is the CUDA of torch."]


def _unnumbered(seen: Seen, soname: str, owner: str | None) -> Answer:
    """``libnvrtc.so``: the name that only a toolkit's development files have."""
    stem = soname.removesuffix(".so")
    cause = (
        f"{soname} without a number is the name that building needs: a CUDA toolkit has it, among "
        "its development files, and torch's wheels have the library under its numbered name alone. "
        f"Whoever opens it by that name ({needing(seen)}) counts on a toolkit's directory that is "
        "on the loader's path."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null",
              f"ldconfig -p | grep {shlex.quote(stem)}",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"),
        notes=("The toolkit has to be of the same CUDA as torch: its directory goes on "
               "LD_LIBRARY_PATH, for example /usr/local/cuda-11.8/lib64.",
               "NVIDIA's container images have it in the variant -devel, not in -base or -runtime; "
               "its packages are cuda-nvrtc-dev and the like.",),
    )  # fmt: skip


def _inside(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    """torch's wheel has the library inside, under a name of its own."""
    stem = soname.split(".so")[0]
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a build for CUDA {major}, as torch {seen.torch} is. The "
        f"wheels of torch before 1.13 have {stem} inside under a name with a hash "
        f"({stem}-80664282.so.10.2 is one), which serves torch alone: {soname} itself has to come "
        f"from a CUDA {major} toolkit, or from conda's cudatoolkit, where the loader looks."
    )
    number = exact_toolkit(soname) or (seen.torch_cuda or major)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=("ls -d /usr/local/cuda*", f"ldconfig -p | grep {shlex.quote(stem)}",
              f'conda install "cudatoolkit={number}"'),
        notes=("A toolkit's directory goes on LD_LIBRARY_PATH before Python starts, for example "
               f"/usr/local/cuda-{number}/lib64.", *there_already(seen)),
    )  # fmt: skip


def _nvrtc_late(seen: Seen, soname: str, wheel: str, major: str) -> str:
    """NVRTC: libtorch_cuda.so of 2.14.1+cu130 lists libnvrtc.so.13, that of 2.4.0+cu121 none."""
    return (
        f"torch is a build for CUDA {major} too, and {wheel} brings {soname}, in "
        "site-packages/nvidia, where the loader does not look by itself. Not every torch has it in "
        "the process after import torch: 2.14.1 lists it, 2.4.0 opens it when it first compiles a "
        f"kernel. So {needing(seen)} was imported before torch, or that wheel is not installed in "
        "this environment, or its directory has to be on the loader's path."
    )


def _same_major(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    if seen.torch and order_key(seen.torch) < order_key("1.13.0"):
        return _inside(seen, soname, owner, major)
    wheel = wheel_of(seen, soname, major)
    bringer = wheel or "the wheel that brings it"
    cause = (
        f"torch is a build for CUDA {major} too and loads {soname} itself: either "
        f"{needing(seen)} was imported before torch, or {bringer} is not installed in this "
        "environment."
    )
    if seen.mention.detail.get("torch_loads"):
        cause = (
            f"torch is a build for CUDA {major} too, and it is torch that loads the file which "
            f"needs {soname}: {bringer} is not installed in this environment, or not whole."
        )
    commands = [import_torch_first(seen)]
    if wheel:
        commands.append(f"{seen.pip} show {wheel}")
    if owner == "nvrtc" and wheel and not seen.mention.detail.get("torch_loads"):
        cause = _nvrtc_late(seen, soname, wheel, major)
        folder = "cu13" if major == "13" else "cuda_nvrtc"
        commands.append(
            f"export LD_LIBRARY_PATH=$({seen.python} -c 'import nvidia.{folder} as a; "
            "print(list(a.__path__)[0])')/lib:$LD_LIBRARY_PATH"
        )
    if seen.torch:
        release = seen.torch.partition("+")[0]
        commands.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*commands, seen.inspect_command()),
    )  # fmt: skip
