"""Packages that Python imports from the directory of their source, as a traceback shows."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import PATH
from fa_forensics.patterns import lazily

#: Packages whose compiled part setup.py builds beside, or below, that directory.
_PACKAGES = ("torchaudio", "torchvision", "torchtext", "vllm", "detectron2", "mmcv", "apex",
             "pytorch3d", "xformers", "deepspeed", "natten", "flash_attn")  # fmt: skip
#: Directories that hold what is installed.
_INSTALLED = lazily(r"-packages(?:/|$)|/lib/python\d|\.egg(?:/|$)|^/tmp/|/\.cache/")
#: How often one package is followed up.
_PER_SIGN = 20


def read_checkouts(
    source: Source,
    places: Places,
    offer: Callable[[str, int, int, str], None],
) -> None:
    """``local:NAME``, the directory that holds ``NAME/__init__.py``, where nothing installs to."""
    for name in _PACKAGES:
        pattern = re.compile(rf"(?<![\w.~/-])(?P<where>~?/[\w./+-]{{1,200}})/{name}/__init__\.py\b")
        for place in places(f"{name}/__init__.py")[:_PER_SIGN]:
            line = source.line_at(place)
            found = pattern.search(line.raw)
            if found is not None and _INSTALLED.search(found["where"]) is None:
                offer(f"local:{name.replace('_', '-')}", PATH, line.number, f"-e {found['where']}")
                break
