"""``--torch RELEASE``: the release that was meant, from the table."""

from __future__ import annotations

from fa_forensics.atlas.requested import RequestedTorch, choose_release, is_newer, parse_request
from fa_forensics.atlas.store import Atlas
from fa_forensics.errors import UsageError


def requested_torch(text: str, atlas: Atlas, machine: str) -> RequestedTorch:
    """The torch that a text names. Raises ``UsageError`` when the table has none of it."""
    request = parse_request(text)
    known = atlas.releases(machine)
    if not known:
        raise UsageError(f"no torch release for {machine} is known to this tool")
    here = "answer by the torch that is installed: leave --torch out, --python names it"
    if request.own_build:
        raise UsageError(
            f"torch {request.text} is a build of its own, whose exports no table holds", here
        )
    if is_newer(request, known):
        raise UsageError(
            f"torch {request.text} is newer than the table of releases, which ends at {known[-1]}",
            here,
        )
    release = choose_release(request, known)
    build = None if release is None else atlas.build(release, machine)
    if build is None:
        near = atlas.nearest_releases(request.release)
        offered = f"the nearest are {', '.join(near)}" if near else None
        raise UsageError(f"torch {request.text} is no release that this tool knows", offered)
    if request.cuda and build.cuda is None:
        raise UsageError(f"torch {release} for {machine} is known without CUDA only")
    return RequestedTorch(request, build, atlas)
