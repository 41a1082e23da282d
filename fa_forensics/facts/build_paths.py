"""Where a file was built: the directories in the source paths that its texts hold.

``__FILE__`` in assertions and error messages leaves them; they outlive the stripping of symbols.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa_forensics.facts.elf.image import ElfImage

#: No more than this is searched (bytes): 10 ms. Of 60 extensions one has more .rodata.
MAX_TEXT = 4 << 20
MAX_PATHS = 1_000
MAX_LENGTH = 400
MAX_SHOWN = 8
_ENDINGS = (b".cpp\0", b".cu\0", b".cuh\0", b".h\0", b".hpp\0", b".cc\0")
_PATH = re.compile(rb"/[\w.+@~%=/ -]+$")
#: A path is cut behind these: what follows is the project's own layout.
_ROOTS = re.compile(r"^(.*?/(?:include|csrc|src|source|hopper))/")
_HOME = re.compile(r"^/(?:home|Users)/[^/]+/|^/root/")
_TEMPORARY = re.compile(r"^/(?:private/)?(?:var/)?tmp/[^/]+/")


def read_build_paths(image: ElfImage) -> tuple[str, ...]:
    """The directories, shortened and each once, at most ``MAX_SHOWN``; none where none is seen.

    ``/home/ada/flash-attention/csrc/flash_attn/flash_api.cpp`` is ``~/flash-attention/csrc``: the
    builder's name is nobody's business.
    """
    section = image.section(".rodata")
    if section is None:
        return ()
    raw = image.read(section.offset, min(section.size, MAX_TEXT))
    return shortened_roots(_paths_in(raw))


def _paths_in(raw: bytes) -> list[str]:
    found: dict[bytes, None] = {}
    for ending in _ENDINGS:
        at = raw.find(ending)
        while at >= 0 and len(found) < MAX_PATHS:
            stop = at + len(ending) - 1
            start = raw.rfind(b"\0", max(0, at - MAX_LENGTH), at) + 1
            text = raw[start:stop]
            if start and text[:1] == b"/" and _PATH.match(text):
                found[text] = None
            at = raw.find(ending, stop)
    return [path.decode("ascii", "backslashreplace") for path in found]


def shortened_roots(paths: list[str]) -> tuple[str, ...]:
    """The roots of source paths, those with most files first."""
    counts: dict[str, int] = {}
    for path in paths:
        cut = _ROOTS.match(path)
        root = cut[1] if cut else path.rpartition("/")[0]
        root = _TEMPORARY.sub("/tmp/.../", _HOME.sub("~/", root + "/")).rstrip("/")
        if root:
            counts[root] = counts.get(root, 0) + 1
    order = sorted(counts, key=lambda root: (-counts[root], root))
    return tuple(order[:MAX_SHOWN])
