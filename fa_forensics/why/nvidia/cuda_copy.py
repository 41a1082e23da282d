"""Another copy of a CUDA library than the one that is meant, or none at all."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from fa_forensics.atlas.libraries import LibraryRelease
from fa_forensics.facts.owner import title_of
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.why.judgement import NEWER, NONE, Judgement
from fa_forensics.why.nvidia.cuda_age import came_with, emitted_name, of_another_time
from fa_forensics.why.nvidia.cuda_origin import (
    NO_TOOLKIT,
    older_or_unlinked,
    short_name,
    usual_copy,
)
from fa_forensics.why.nvidia.wheels import NEWEST, CudaHistory, Wheel, shared_lines
from fa_forensics.why.place import Place
from fa_forensics.why.ways.commands import list_wheels, needed_libraries, without_path

KIND, CODE = "versioned-symbol", "FA204"


def older_copy(owner: str) -> str:
    """What is said of a name that the library here has."""
    return (
        f"Where an error names it, an older copy of the library was loaded first: "
        f"{usual_copy(owner)}; LD_LIBRARY_PATH goes before the wheels' own search path."
    )


def _in_all_lines(history: CudaHistory) -> bool:
    """Whether every version of every line of wheels has the name, so that the oldest speaks."""
    return len(history.having) == len(history.known)


def not_linked(
    owner: str,
    name: str,
    history: CudaHistory,
    first: LibraryRelease,
    version: str | None,
    place: Place,
) -> Judgement:
    """A name that no version on record lacks: the library is not there, or is older than these."""
    title = title_of(owner)
    if _in_all_lines(history):
        first = history.having[0]
    since = f"Every {history.soname} on record exports it, from {first.distribution} "
    since += f"{first.version} on"
    if version is not None and ".so." in version and version != history.soname:
        return of_another_time(owner, name, version, history.soname)
    if version is not None:
        cause = (
            f"{since}, and the file asks for it in that library: the copy that is loaded is older "
            f"than all of these, {usual_copy(owner)}, or one that another package loaded before."
            f"{came_with(owner, name)}"
        )
        return Judgement(KIND, CODE, NEWER, cause, (NO_TOOLKIT,), "medium")
    flag = re.sub(r"^lib(.+?)\.so.*", r"-l\1", history.soname)
    if place.linker is None or place.told is not None or place.present is None:
        emitted = emitted_name(name, title)
        if emitted is not None:
            return emitted
        return older_or_unlinked(since, title, history, flag, place, name, came_with(owner, name))
    cause = (
        f"{since}, so no version of these is too old: {title} is not loaded. The file does not "
        f"list it among the libraries it needs (it was linked without {flag}) and counted on "
        "something else, often torch, to bring it along."
    )
    return Judgement(KIND, "FA210", NONE, cause, (), "high" if place.linker else "medium")


def another_copy(
    owner: str,
    history: CudaHistory,
    wheel: Wheel,
    since: str,
    loaded: Sequence[LoadedObject],
    place: Place,
) -> Judgement:
    """The wheel has the name, and yet it is missing: another file comes first."""
    cause = f"{since}, and {wheel.text} has it"
    several = _any_version(wheel) or bool(shared_lines(history))
    outside = [one for one in loaded if not _in_sites(one.path, place)]
    if outside:
        one = outside[0]
        cause += (
            f"; but the loader takes {one.path} instead (found by {one.found_by}), which is older."
        )
    else:
        cause += (
            ": where it is missing, another copy of the library was loaded first, "
            f"{usual_copy(owner, several)}."
        )
    older = bool(outside) or place.told is not None
    notes = () if owner == "nccl" and not outside else (NO_TOOLKIT,)
    return Judgement(KIND, CODE, NEWER if older else NONE, cause, notes)


def _any_version(wheel: Wheel) -> bool:
    """Whether torch names no version of a wheel, so that an older one may be there."""
    return wheel.how.startswith(NEWEST)


def _in_sites(path: str, place: Place) -> bool:
    sites = place.environment.site_dirs if place.environment else ()
    return any(path.startswith(site + os.sep) for site in sites)


def of_two_releases(
    place: Place, history: CudaHistory, needed_by: Sequence[str]
) -> tuple[str, ...]:
    """Which copies there are of two libraries of one release, and what makes them one."""
    copy = needed_libraries(needed_by, history.soname.split(".so")[0].removeprefix("lib"))
    if "/torch/lib/../../../../lib" not in needed_by[0]:
        return (without_path(place), copy, list_wheels(place, short_name(history)))
    # The search path of conda's own torch: one package has all of CUDA 11 there, and no wheel.
    listed = "conda list | grep -iE 'cudatoolkit|cublas|pytorch'"
    own = (  # conda's torch is built for one CUDA, and changes with it
        'conda install pytorch torchvision torchaudio "cudatoolkit>=11.1,<12" '
        "-c pytorch -c conda-forge"
    )
    newer = (own,) if history.soname.endswith(".11") else ()
    return (without_path(place), copy, listed, *newer)
