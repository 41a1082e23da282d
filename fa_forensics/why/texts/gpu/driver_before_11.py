"""Torch for a driver from before CUDA 11, where each minor release of CUDA takes its own driver.

From CUDA 11 on any driver of a major version runs all of its releases (NVIDIA, CUDA
Compatibility, "minor version compatibility"); before, a driver runs its own CUDA and older ones.
"""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.drivers import CudaVersion, cuda_text, driver_needed, parse_cuda
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import cuda_version, serves

FIRST_WITH_MINORS = 11

#: The page of torch's own wheels that the pip commands of those releases name
#: (pytorch.org/get-started/previous-versions).
_PAGE = "https://download.pytorch.org/whl/torch_stable.html"
#: Of torch 1.8 the build for CUDA 10.1 that those commands name is one of 1.8.1.
_INSTEAD = {("1.8.0", "10.1"): "1.8.1"}
#: A release of torch as it is named: "1.7.1", "1.7.1+cu102".
_RELEASE = lazily(r"(1\.\d{1,2}\.\d)(?:\+cu\d{2,3})?")


def before_11(cuda: CudaVersion | None) -> bool:
    """Whether a driver's CUDA is one where the minor release counts."""
    return cuda is not None and cuda[0] < FIRST_WITH_MINORS


def torch_for(seen: Seen, cuda: CudaVersion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the release of the text for a CUDA that the driver runs, else another."""
    release = _RELEASE.fullmatch(seen.torch or "")
    minor = ".".join((seen.torch or "").split(".")[:2])
    same = [one for one in cuda_builds(minor) if parse_cuda(one) <= cuda]
    if same:
        note = (
            f"torch {minor} itself has wheels for CUDA {', '.join(same)} on torch's own page of "
            "wheels (whl/torch_stable.html): they keep the release, and extensions are built "
            "again for that CUDA."
        )
        return (_kept(seen, release, same[-1]), (note,)) if release else ((), (note,))
    ages = seen.tables.ages
    if ages is None or seen.torch is not None:
        return (), ()
    fitting = [
        build.release
        for build in ages.builds(seen.place.machine)
        if (own := cuda_version(build.cuda)) and own <= cuda and serves(build, seen)
    ]
    command = (f'{seen.pip} install "torch=={fitting[-1]}"',) if fitting else ()
    return command, ()


def _kept(seen: Seen, release: re.Match[str], cuda: str) -> tuple[str, ...]:
    if cuda == _of_index(seen, release[1]):
        return (f'{seen.pip} install --force-reinstall --no-deps "torch=={release[1]}"',)
    tag = cuda_label(cuda)
    wanted = _INSTEAD.get((release[1], cuda), release[1])
    return (f'{seen.pip} install "torch=={wanted}+{tag}" -f {_PAGE}',)


def _of_index(seen: Seen, release: str) -> str:
    """The CUDA of the wheel that the package index has of a release, "10.2"; "" if unknown."""
    ages = seen.tables.ages
    builds = ages.builds("x86_64") if ages is not None else ()
    cuda = next((build.cuda for build in builds if build.release == release), None)
    return ".".join((cuda or "").split(".")[:2])


def brought_by_index(seen: Seen, cuda: CudaVersion) -> str:
    """The CUDA that the index's wheel of the text's release brings, as the end of a sentence."""
    release = seen.torch or ""
    if not re.fullmatch(r"1\.\d{1,2}\.\d", release) or (told := seen.place.told) is None:
        return ""
    own = _of_index(seen, release)
    if told.torch_by or not own or parse_cuda(own) <= cuda or parse_cuda(own)[0] >= 11:
        return ""
    return (
        f"; the wheel of torch {release} that PyPI has is built for CUDA {own}, which takes "
        f"{driver_needed(parse_cuda(own))}"
    )


def ways_out(cuda: CudaVersion) -> str:
    """What is to be done, in one note."""
    return (
        f"Two ways out: a newer driver, or a torch built for CUDA {cuda_text(cuda)} or older. A "
        "driver from before CUDA 11 runs no newer CUDA than its own, not even of the same major "
        "version. The CUDA toolkit of the system plays no part where torch comes from a wheel, "
        "which brings a runtime of its own."
    )
