"""The wheel that puts a missing name of a CUDA library right."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.atlas.builds import release_key
from fa_forensics.facts.owner import is_cuda, is_torch, owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.nvidia.cuda_origin import short_name
from fa_forensics.why.nvidia.wheels import (
    NEWEST,
    TOLD,
    CudaHistory,
    Wheel,
    cuda_major,
    shared_lines,
)
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.ways.builds import pip_of
from fa_forensics.why.ways.commands import install

#: Said where a wheel is to be installed of which torch asks for one version.
PINNED = (
    "torch asks for one version of that wheel: where python -m pip check then names another one "
    "for torch, that is the one to install, unless it is older than the first that has the name: "
    "then another torch has to be installed, or a release of what was imported that does not ask "
    "for it. A newer copy of the system does not help pip's torch, which looks beside itself "
    "before the system's own directories; LD_LIBRARY_PATH alone goes before that."
)

#: The package that a file is installed with, if it is neither torch nor a wheel of NVIDIA.
_PACKAGE = lazily(r"-packages/(?P<name>(?!torch/|nvidia/)[A-Za-z_]\w{1,60})/")


def of_another_file(needed_by: Sequence[str]) -> str | None:
    """What is said where the file is neither torch's nor NVIDIA's: torch's pin lacks the name."""
    file = needed_by[0] if needed_by else ""
    owner = owner_of_library(file.rsplit("/", 1)[-1])
    if not file or "/torch/lib/" in file or (owner and (is_torch(owner) or is_cuda(owner))):
        return None
    found = _PACKAGE.search(file)
    package = found["name"] if found else "what was imported"
    return (
        "A newer release of the same major version serves torch too. python -m pip check can name "
        "another one, which torch asks for: where that is older than the first that has the name, "
        "it brings the fault back. The other ways out are a torch that brings such a one, and a "
        f"release of {package} that was built with an older CUDA, or, where it was compiled on "
        "this machine, its build again with the nvcc of torch's own CUDA (CUDA_HOME names that "
        "toolkit, torch.version.cuda the CUDA). A newer copy of the system does not help pip's "
        "torch, which looks beside itself before the system's own directories; LD_LIBRARY_PATH "
        "alone goes before that."
    )


#: Said of a wheel for CUDA 11 where torch is not told: the package index has torch with such wheels
#: in 1.13 and 2.0, PyTorch's own index for CUDA 11.8 since 2.2.0.
OF_CUDA_11 = (
    "The wheels for CUDA 11 are those of torch 1.13 and 2.0 of the package index and of +cu118 "
    "since 2.2. Another torch (+cu113, conda's) has that library of its own, and the command "
    "changes nothing there: what was imported is compiled again with the nvcc of torch's CUDA."
)

#: The same of nvJitLink, which torch 2.1 to 2.4 get through cuSPARSE and cuSOLVER, in any version.
PINNED_LATE = (
    "torch asks for one version of that wheel since 2.5.0: where python -m pip check then names "
    "another one for torch, that is the one to install. Before that it comes with nvidia-cusparse, "
    "which takes any version of it, and pip check says nothing. A newer copy of the system does "
    "not help pip's torch, which looks beside itself before the system's own directories; "
    "LD_LIBRARY_PATH alone goes before that."
)


def newer_than_pinned(history: CudaHistory, wheel: Wheel) -> str:
    """What is said where a newer wheel goes in the place of the one that torch asks for."""
    first = history.of(wheel.distribution)[0].version
    of_cuda = ".".join(first.split(".")[:2])
    return (
        f"torch asks for {wheel.version} of that wheel, and pip says so: a newer release of the "
        "same major version serves torch too. The other ways out are a torch that is built for "
        f"CUDA {of_cuda} or newer, of PyTorch's own indexes, and a release of what was imported "
        "that is made for torch's CUDA. CUDA's libraries (cuSOLVER, cuSPARSE, cuBLAS) are to be of "
        "one release."
    )


def newer_wheel(
    place: Place, history: CudaHistory, wheel: Wheel | None, direction: str, usual: str
) -> tuple[str, ...]:
    """Install a version that has the name, where a wheel can be what brings an older one.

    ``usual`` is the CUDA major version that is meant where the text tells none.
    """
    own = wheel is not None and wheel.how != TOLD
    if direction != NEWER or (own and (place.told is None or not _serves_older(history))):
        return ()
    if wheel is not None and wheel.pinned is not None:
        return ()
    line = wheel.distribution if wheel is not None else _line(history, place, usual)
    having = history.of(line)
    known = [row for row in history.known if row.distribution == line]
    if not having or (wheel is None and having[0] == known[0]):
        return ()  # no wheel of this line is older
    first = having[0].version
    major = re.match(r"\d+", first)
    # The next major version is another CUDA's, or another cuDNN: the soname tells them apart.
    end = f",<{int(major[0]) + 1}" if major and _by_major(history) else ""
    return (install(place, f"{line}>={first}{end}"),)


#: Libraries that serve what was built with an older CUDA of the same major version.
_SERVE_OLDER = ("libcublas.", "libcublasLt.", "libcudart.", "libnvJitLink.", "libnvrtc.")


def _serves_older(history: CudaHistory) -> bool:
    """Whether a newer release of the library can stand in torch's pinned one's place."""
    return history.soname.startswith(_SERVE_OLDER)


def _by_major(history: CudaHistory) -> bool:
    """Whether the soname's number is the major version of the wheels that bring it."""
    number = re.search(r"\.so\.(\d{1,2})$", history.soname)
    majors = {release_key(row.version)[0][0] for row in history.having}
    return number is not None and majors == {int(number[1])}


def _line(history: CudaHistory, place: Place, usual: str) -> str:
    """The distribution for the CUDA of this place; for the usual one where that is not told."""
    lines = list(dict.fromkeys(row.distribution for row in history.having))
    suffix = f"-cu{cuda_major(place) or usual}"
    return next((name for name in lines if name.endswith(suffix)), lines[-1])


def other_line(place: Place, history: CudaHistory | None, usual: str) -> tuple[str, ...]:
    """What is said where a text does not tell torch's CUDA, and wheels for several fit the soname.

    Those of one library write to one file, whatever their CUDA.
    """
    if history is None or cuda_major(place) is not None:
        return ()
    shared = [one for one in shared_lines(history) if history.of(one)]
    line = _line(history, place, usual)
    others = [one for one in shared if one != line]
    if line not in shared or not others:
        return ()
    return (
        f"The command is for a torch for CUDA {line[-2:]} (torch.version.cuda): for another one "
        f"the wheel is {' or '.join(others)}. The one for the wrong CUDA writes its library over "
        "the right one.",
    )


def of_the_wheel(
    place: Place,
    history: CudaHistory | None,
    wheel: Wheel | None,
    needed_by: Sequence[str],
    helps: Sequence[str],
    usual: str,
) -> list[str]:
    """The remarks on a command that installs a newer wheel of the library."""
    old = place.present is None and any("-cu11>=" in text for text in helps)
    notes = [OF_CUDA_11] if old else []
    return [*notes, *other_line(place, history, usual), _about_pin(history, wheel, needed_by)]


def _about_pin(history: CudaHistory | None, wheel: Wheel | None, needed_by: Sequence[str]) -> str:
    """What is said of the version that torch asks for, where a command installs another one."""
    link = history is not None and history.soname.startswith("libnvJitLink.")
    late = link and (wheel is None or wheel.how.startswith(NEWEST))
    pinned = of_another_file(needed_by) or (PINNED_LATE if late else PINNED)
    if history is None or wheel is None or wheel.how == TOLD or history.has(wheel):
        return pinned
    return newer_than_pinned(history, wheel) if history.of(wheel.distribution) else pinned


def wheel_command(place: Place, history: CudaHistory, wheel: Wheel | None) -> tuple[str, ...]:
    """Put one wheel right: the version that torch asks for, or a newer nvJitLink.

    nvJitLink serves older callers of its major version too; the other libraries are what
    torch was tested with, and change with it.
    """
    if wheel is None or (place.requested is not None and wheel.how != TOLD):
        return ()
    pinned = None if wheel.pinned is None else Wheel(wheel.distribution, wheel.pinned, "")
    if pinned is not None and pinned.version != wheel.version and history.has(pinned):
        return (install(place, f"{wheel.distribution}=={pinned.version}"),)
    having = history.of(wheel.distribution)
    if "nvjitlink" in wheel.distribution and having:
        return (install(place, f"{wheel.distribution}>={having[0].version}"),)
    return ()


def same_wheel(
    place: Place, wheel: Wheel, history: CudaHistory, needed_by: Sequence[str] = ()
) -> tuple[str, ...]:
    """Put back the wheel that torch brings, where another one can have replaced its files."""
    if needed_by and f"/nvidia/{short_name(history)}/" in needed_by[0]:
        return ()  # that very wheel is there, and asks
    if place.present is None or not place.present.published or wheel.how == TOLD:
        return ()
    if wheel.how.startswith(NEWEST):
        first = history.of(wheel.distribution)[0].version
        return (install(place, f"{wheel.distribution}>={first}"),)
    wanted = f"{wheel.distribution}=={wheel.version}"
    return (f'{pip_of(place)} install --force-reinstall --no-deps "{wanted}"',)


def usual_major(torches: Sequence[str], tables: Tables, place: Place) -> str:
    """The CUDA of the package index's torches that bring a name, where all are of one; else 12."""
    if tables.atlas is None:
        return "12"
    builds = (tables.atlas.build(release, place.machine) for release in torches)
    majors = {(build.cuda or "").split(".")[0] for build in builds if build is not None}
    return majors.pop() if len(majors) == 1 else "12"


def torches_with(history: CudaHistory | None, tables: Tables, place: Place) -> tuple[str, ...]:
    """The torch releases that bring a version of the library with the name."""
    if history is None or not history.having or tables.atlas is None or tables.libraries is None:
        return ()
    from fa_forensics.atlas.brought import BroughtLibraries

    found = []
    for build in tables.atlas.builds(place.machine):
        if build.cuda is not None:
            brought = BroughtLibraries(build, build.cuda, tables.libraries, "")
            if brought.release_of(history.soname) in history.having:
                found.append(build.release)
    return tuple(found)
