"""What else a change of a signature touched, where the file and the torch lie on its two sides."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.why.judgement import NEWER, OLDER
from fa_forensics.why.torch_names.history import History, order_key
from fa_forensics.why.torch_names.signature import changes, reach_of


def touched(history: History, releases: Sequence[str], direction: str) -> tuple[str, ...]:
    """That a change touched more than this function, in a sentence; () where it does not count.

    ``releases`` are the torches that can be loaded; of them those that lack the name on the side
    that the file's ``direction`` leaves. A change counts where the file, built for a torch that
    has the name, and the loaded torch are not both before it or both after it.
    """
    if not history.alive:
        return ()
    first, last = order_key(history.alive[0]), order_key(history.alive[-1])
    keys = [order_key(release) for release in releases if release not in history.alive]
    if direction == OLDER:
        keys = [key for key in keys if key > last]
    elif direction == NEWER:
        keys = [key for key in keys if key < first]
    for before, after in zip(history.line, history.line[1:], strict=False):
        reach = reach_of(changes(before.demangled, after.demangled))
        change = order_key(after.releases[0])
        if not reach or first < change <= last:
            continue
        across = {(key < change) != (last < change) for key in keys}
        if across == {True}:
            return (f"In {after.releases[0]} {reach}, so many others are missing with it.",)
        if True in across:
            return (
                f"In {after.releases[0]} {reach}: where the file's torch and the loaded one lie on "
                "the two sides of that, many others are missing with it.",
            )
    return ()


def of_cuda(cuda: str, releases: Sequence[str]) -> Sequence[str]:
    """The releases that PyTorch can have a build of for one CUDA; all of them where none has.

    A release that the table does not list is known by its neighbour alone: a newer one has no
    older CUDA than the last that is listed, an older one no newer than the first.
    """
    from fa_forensics.atlas.builds import minor_of
    from fa_forensics.facts.torch_cuda import cuda_builds

    builds = [(release, cuda_builds(minor_of(release))) for release in releases]
    listed = [place for place, (_, versions) in enumerate(builds) if versions]
    wanted = order_key(f"{cuda}.0")
    kept = []
    for place, (release, versions) in enumerate(builds):
        if versions or not listed:
            near = not listed or cuda in versions
        elif place > listed[-1]:
            near = wanted >= order_key(f"{builds[listed[-1]][1][0]}.0")
        else:
            near = wanted <= order_key(f"{builds[listed[0]][1][-1]}.0")
        if near:
            kept.append(release)
    return kept or releases
