"""Names of ROCm's libraries that torch's own, or ROCm's own, lack: nothing is built again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.facts.owner import title_of
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER, UNKNOWN, Judgement
from fa_forensics.why.ways.commands import needed_libraries
from fa_forensics.why.ways.signs import is_torch_file


def _library_of(owner: str, name: str) -> str:
    """``librocm_smi64.so``: the library of an owner that has a name."""
    for row in read_table("owners.json")["rows"]:
        libraries = row.get("libraries", ())
        if row["owner"] == owner and libraries:
            other = name.startswith("amdsmi_") and len(libraries) > 1
            return str(libraries[1] if other else libraries[0])
    return ""


def _of_own_torch(library: str, file: str) -> str:
    shown = "The path is that of a torch of one's own build. Where"
    unknown = "For a torch of one's own build: where"
    return (
        f"{shown if '/' in file else unknown} the first command does not list "
        f"{library}, the sources do not link it, and a clean build of the same sources makes the "
        "same file: the library has to be among those that torch_hip is linked with "
        "(caffe2/CMakeLists.txt), or a revision is taken that has it there. Where it is listed, a "
        "build from an empty directory, with one ROCm on the machine, takes the library of that "
        "ROCm."
    )


def needed_by_torch(
    owner: str, name: str, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]] | None:
    """(judgement, commands) where the file is one of torch's own; None for another file."""
    file = needed_by[0] if needed_by else ""
    library = _library_of(owner, name)
    if not is_torch_file(file) or not library or not library.startswith("lib"):
        return None
    base = file.rsplit("/", 1)[-1]
    cause = (
        f"It belongs to {title_of(owner)} ({library}), and {base} is a part of torch for ROCm. "
        f"Three causes fit: this torch does not load {library} at all (it is not among the "
        "libraries that its files need), the copy that is found is of an older ROCm than torch "
        "was built with, or another copy comes first on the path. No extension plays a part, and "
        "nothing is to be compiled against torch."
    )
    at = f"/opt/rocm/lib/{library}"
    load = (
        f"python -c 'import ctypes; ctypes.CDLL({chr(34)}{at}{chr(34)}, ctypes.RTLD_GLOBAL); "
        "import torch; print(torch.__version__)'"
    )
    commands = (
        needed_libraries(needed_by),
        f"ls -l /opt/rocm*/lib/{library}*; ldconfig -p | grep {shlex.quote(library)}",
        f"nm -D --defined-only {at} | grep -w {shlex.quote(name)}",
        load,
    )
    notes: tuple[str, ...] = (
        "The third command prints the name where ROCm's copy has it; then the fourth imports torch "
        "with that copy loaded first. Where it works: LD_LIBRARY_PATH=/opt/rocm/lib before Python "
        "starts is enough if the first command lists the library, and else a torch of another "
        "build, or that line at the program's start, is the way out.",
        "Where the third prints nothing: the ROCm release that torch was built with (the number "
        "behind +rocm in pip list) has to be installed, or a torch for the ROCm that is there. "
        "Where ROCm is in another directory than /opt/rocm, that one takes its place in the "
        "commands.",
    )
    if "-packages/" not in file:
        notes = (*notes, _of_own_torch(library, file))
    return Judgement("rocm", "FA204", UNKNOWN, cause, notes, "medium"), commands


#: Where ROCm's packages for the system put their libraries.
_SYSTEM = lazily(r"/opt/rocm(?:-(?P<release>\d{1,2}\.\d{1,2}(?:\.\d{1,2})?))?/")


def needed_by_rocm(
    owner: str, name: str, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]] | None:
    """(judgement, commands) where the file is one of ROCm's own; None for another file.

    A release of ROCm fits together: a name that one of its libraries lacks in another is looked
    for in the library of another release, which torch's wheels bring in torch/lib.
    """
    file = needed_by[0] if needed_by else ""
    found, library = _SYSTEM.match(file), _library_of(owner, name)
    if found is None or not library.startswith("lib"):
        return None
    release = f" {found['release']}" if found["release"] else ""
    base = file.rsplit("/", 1)[-1]
    cause = (
        f"It belongs to {title_of(owner)}, and {base} is a library of the system's ROCm{release}: "
        f"two releases of ROCm are in one process. The {library} that is loaded is of another "
        "one, as a rule of an older one: torch's wheels for ROCm bring their own in torch/lib. "
        "Nothing is to be built again."
    )
    commands = (
        "python -c 'import torch; print(torch.__version__, torch.version.hip)'; "
        "cat /opt/rocm*/.info/version; echo $LD_LIBRARY_PATH",
        "env -u LD_LIBRARY_PATH python YOUR_PROGRAM.py",
    )
    notes = (
        "Where LD_LIBRARY_PATH (or a file in /etc/ld.so.conf.d) names the directory of the "
        "system's ROCm, take it off: the second command runs without it, and torch's wheel then "
        "finds all of ROCm in its own directory.",
        "The other way out is a torch for the ROCm that the system has, from torch's own index "
        "(.../whl/rocmX.Y).",
    )
    return Judgement("rocm", "FA204", NEWER, cause, notes, "medium"), commands
