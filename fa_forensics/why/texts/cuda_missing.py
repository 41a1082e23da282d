"""A library of the CUDA toolkit that is not found: its toolkit against that of torch."""

from __future__ import annotations

import re
import shlex

from fa_forensics.atlas.builds import interval_text
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.library_names import exact_toolkit, is_of_cuda_10
from fa_forensics.report_why import Answer
from fa_forensics.why.history import order_key
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.needing import import_torch_first, needing, rebuild_commands

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
    majors = {_major_of(row.distribution) for row in table.releases(soname)}
    return majors.pop() if len(majors) == 1 else None


def _major_of(distribution: str) -> str:
    found = re.search(r"-cu(\d{2})$", distribution)
    return found[1] if found else "13"


def cuda_library(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of the CUDA toolkit: its major version against that of torch."""
    major = cuda_major_of_soname(seen, soname)
    if _torch_itself(seen):
        return _of_torch_itself(seen, soname, owner, major)
    if soname.endswith(".so"):
        return _unnumbered(seen, soname, owner)
    torch_cuda = seen.torch_cuda
    own = torch_cuda.split(".")[0] if torch_cuda else None
    exact = exact_toolkit(soname)
    if torch_cuda is not None and exact is not None:
        own, major = ".".join(torch_cuda.split(".")[:2]), exact
    if major is not None and own is not None and own != major:
        return other_toolkit(seen, soname, owner, major, torch_cuda or "")
    if seen.torch is not None and "+cpu" in seen.torch:
        return _cpu_torch(seen, soname, owner)
    bringing = torches_bringing(seen, soname)
    present = seen.place.present
    if bringing and present is not None and present.release in _known(seen):
        if present.release not in bringing:
            return _other_torches(seen, soname, owner, bringing)
        if major is None:
            return _same_major(seen, soname, owner, (torch_cuda or "12").split(".")[0])
    if major is None or own is None:
        return _major_alone(seen, soname, owner, major, bringing)
    return _same_major(seen, soname, owner, major)


#: torch's own file, from which it loads its libraries, in a traceback's steps.
_TORCH_INIT = re.compile(r"(?:^|/)torch/__init__\.py$")


#: CUPTI's name carries the minor version up to CUDA 11.
_CUPTI = re.compile(r"libcupti\.so\.(?P<toolkit>1[01]\.\d)")


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


def _torch_itself(seen: Seen) -> bool:
    """Whether it is torch's own import that failed, before any extension's."""
    detail = seen.mention.detail
    if _TORCH_INIT.search(detail.get("frame", "")) or detail.get("import") in ("torch", "torch._C"):
        return True
    return "/torch/lib/" in (seen.mention.file or "")


def _of_torch_itself(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer:
    """torch does not find a library of CUDA that it needs itself."""
    wheel = wheel_of(seen, soname, major or (seen.torch_cuda or "12").split(".")[0])
    bringing = wheel or "a wheel of its own"
    if wheel is not None and soname.endswith(".so") and seen.torch_cuda is None:
        bringing = f"a wheel such as {wheel}"
    cause = (
        f"It is torch itself that needs {soname} and does not find it: no extension plays a part."
    )
    if major is not None and int(major) < 11:
        cause += (
            f" torch's wheels for CUDA {major} have it inside; a torch that needs it from outside "
            "is one of conda, which gets it from the package cudatoolkit, or was built for a "
            "system (Jetson, NGC, a distribution) with exactly that CUDA toolkit."
        )
    else:
        cause += (
            f" A torch from PyPI gets it from {bringing}, which is not installed whole; a torch "
            "that was built for a system (Jetson, NGC, a distribution) takes it from that system's "
            "CUDA toolkit, in the version it was built with, or has it handed into the container."
        )
    helps = [f"{seen.pip} list | grep -iE '^(torch|nvidia|cuda)'"]
    minor = _CUPTI.fullmatch(soname)
    if minor is not None:
        helps.append(f'{seen.pip} install --force-reinstall "{bringing}=={minor["toolkit"]}.*"')
        cause += (
            f" The name carries the minor version: the library of another CUDA {major} does not "
            "count."
        )
    helps.append(f"ldconfig -p | grep {shlex.quote(soname.split('.so')[0])}")
    if seen.torch:
        release = seen.torch.partition("+")[0]
        helps.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    elif soname.endswith(".so"):
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir torch")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(
            "On a Jetson the wheel must be one for its JetPack release; in a container there, "
            "docker run --runtime nvidia hands the system's libraries in.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _known(seen: Seen) -> tuple[str, ...]:
    atlas = seen.tables.atlas
    return atlas.releases(seen.place.machine) if atlas is not None else ()


def torches_bringing(seen: Seen, soname: str) -> tuple[str, ...]:
    """The torch releases whose wheels bring a CUDA library along."""
    from fa_forensics.atlas.brought import BroughtLibraries

    atlas, libraries = seen.tables.atlas, seen.tables.libraries
    if atlas is None or libraries is None:
        return ()
    found = []
    for build in atlas.builds(seen.place.machine):
        if build.cuda is not None:
            brought = BroughtLibraries(build, build.cuda, libraries, "")
            if brought.release_of(soname) is not None:
                found.append(build.release)
    return tuple(found)


def _other_torches(seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...]) -> Answer:
    """torch is there, and it is none of those that bring the library."""
    present = seen.place.present
    own = order_key(present.version) if present is not None else order_key("0.0")
    newer = own < order_key(bringing[0])
    span = interval_text(bringing, _known(seen))
    cause = (
        f"torch {span} bring {soname}; torch {seen.torch} brings another version of that library "
        f"or none: {needing(seen)} was built for {'a newer' if newer else 'another'} torch."
    )
    direction = NEWER if newer else OLDER if own > order_key(bringing[-1]) else UNKNOWN
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=direction, confidence="medium",
        help=(*rebuild_commands(seen), seen.inspect_command()),
    )  # fmt: skip


def other_toolkit(seen: Seen, soname: str, owner: str | None, wanted: str, own: str) -> Answer:
    """The file is a build for another CUDA than torch: "12" against 11.8, "10.1" against 10.0."""
    fitting = ".".join(own.split(".")[: 2 if "." in wanted else 1])
    newer = [int(part) for part in wanted.split(".")] > [int(part) for part in fitting.split(".")]
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a CUDA {wanted} build (it needs {soname}), torch is a CUDA "
        f"{own} build: a build for CUDA {fitting} has to replace it, or torch has to be "
        f"one for CUDA {wanted}."
    )
    notes = [_EXACT if "." in wanted else _ONE_RUNTIME]
    major = int(wanted.split(".")[0])
    if newer and (floor := driver_table().floors.get(major)):
        notes.append(f"A torch for CUDA {wanted} needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, "FA602", cause, owner=owner, direction=NEWER if newer else OLDER,
        confidence="high", help=(*rebuild_commands(seen), seen.inspect_command()),
        notes=tuple(notes),
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
    cause = (
        f"torch {seen.torch} is a build without CUDA and brings no {soname}, and "
        f"{needing(seen)} needs it: torch has to be a CUDA build."
    )
    release = (seen.torch or "").partition("+")[0]
    return seen.answer(
        KIND, "FA601", cause, owner=owner, direction=NONE, confidence="high",
        help=(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"',
              seen.inspect_command()),
    )  # fmt: skip


def _major_alone(
    seen: Seen, soname: str, owner: str | None, major: str | None, bringing: tuple[str, ...]
) -> Answer:
    """torch's own CUDA is not told, or the name does not tell one."""
    detail = seen.mention.detail
    told = seen.mention.file or detail.get("import") or detail.get("by")
    if major is None and bringing and not told:
        return _perhaps_torch(seen, soname, owner, bringing)
    exact = exact_toolkit(soname)
    wanted = exact or major
    who = needing(seen)
    of = f"a CUDA {wanted} build" if wanted else "built for CUDA"
    cause = f"{who[0].upper()}{who[1:]} is {of}: it needs {soname}, which is not found."
    if exact:
        cause += (
            f" Most likely torch is a build for another CUDA than {exact}, and then a build of the "
            "package for torch's CUDA has to replace this one; or, with torch for CUDA "
            f"{exact}, torch was not imported first. The first command tells them apart."
        )
    elif major:
        cause += (
            f" Two causes fit: torch is a build for another CUDA major version (then a build of "
            f"the package for torch's CUDA has to replace this one), or it is one for CUDA {major} "
            "and was not imported first. The first command tells them apart."
        )
    elif bringing:
        cause += (
            " torch loads it itself where it brings it along: either torch was not imported first, "
            "or this torch is another than the file was built for."
        )
    notes = [_EXACT if exact else _ONE_RUNTIME] if major else []
    if bringing:
        span = interval_text(bringing, _known(seen))
        notes.append(f"torch {span} for CUDA bring{'s' if len(bringing) == 1 else ''} {soname}.")
    notes += _about_toolkit(seen, wanted)
    if major and not exact and (floor := driver_table().floors.get(int(major))):
        notes.append(f"CUDA {major} code needs the NVIDIA driver {floor} or newer.")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              *rebuild_commands(seen), seen.inspect_command()),
        notes=(*notes, *there_already(seen)),
    )  # fmt: skip


def _about_toolkit(seen: Seen, wanted: str | None) -> list[str]:
    """What the CUDA that the text names besides torch's says: nothing, mostly."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    if not toolkit or not wanted or f"{toolkit}.".startswith(f"{wanted}."):
        return []
    return [f"The system's CUDA {toolkit} plays no part: what counts is the CUDA of torch."]


def _perhaps_torch(seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...]) -> Answer:
    """A library that torch itself needs, and nothing in the text says who misses it."""
    cause = (
        f"torch's own libraries need {soname}, and pip's torch gets it from "
        f"{wheels_of(seen, soname)}. Where import torch alone fails in this way, that wheel is "
        "missing or not whole, or lies in another directory than the torch that is imported: "
        "torch looks beside itself, in site-packages/nvidia. Where import torch works, an "
        "extension was imported before it. The first command tells them apart."
    )
    span = interval_text(bringing, _known(seen))
    notes = [f"torch {span} for CUDA bring{'s' if len(bringing) == 1 else ''} {soname}."]
    word = re.split(r"[._]", soname.removeprefix("lib"))[0]
    helps = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__)'",
        f"{seen.pip} list | grep -iE {shlex.quote(f'^torch|{word}')}",
    ]
    if seen.torch:
        release = seen.torch.partition("+")[0]
        helps.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    else:
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir torch")
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium", help=tuple(helps),
        notes=(*there_already(seen), *notes),
    )  # fmt: skip


def wheels_of(seen: Seen, soname: str) -> str:
    """The wheels that bring a library, in words: ``nvidia-nccl-cu12 or nvidia-nccl-cu13``."""
    table = seen.tables.libraries
    names = dict.fromkeys(row.distribution for row in table.releases(soname)) if table else {}
    return " or ".join(names) or "a wheel of its own"


def there_already(seen: Seen) -> tuple[str, ...]:
    """That the text itself shows the library, in a place where the loader does not look."""
    path = seen.mention.detail.get("present")
    if not path:
        return ()
    return (
        f"The text has the library itself, {path}: it is there, and not where the file that needs "
        "it looks. Its own package looks beside itself, so that a copy in another Python, another "
        "environment or another directory of packages does not count.",
    )


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
               "LD_LIBRARY_PATH, for example /usr/local/cuda-11.8/lib64.",),
    )  # fmt: skip


def _same_major(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    wheel = wheel_of(seen, soname, major)
    cause = (
        f"torch is a build for CUDA {major} too and loads {soname} itself: either "
        f"{needing(seen)} was imported before torch, or "
        f"{wheel or 'the wheel that brings it'} is not installed in this environment."
    )
    commands = [import_torch_first(seen)]
    if wheel:
        commands.append(f"{seen.pip} show {wheel}")
    if seen.torch:
        release = seen.torch.partition("+")[0]
        commands.append(f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"')
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*commands, seen.inspect_command()),
    )  # fmt: skip


def wheel_of(seen: Seen, soname: str, major: str) -> str | None:
    """The wheel that brings a library for a CUDA major version: ``nvidia-cuda-runtime-cu12``."""
    table = seen.tables.libraries
    if table is None:
        return None
    names = dict.fromkeys(row.distribution for row in table.releases(soname))
    if soname.endswith(".so"):
        sonames = [s for s in table.sonames() if s.startswith(f"{soname}.")]
        names = dict.fromkeys(row.distribution for s in sonames for row in table.releases(s))
    return next((name for name in names if _major_of(name) == major), None)
