"""What to type for a file that does not list the library of torch that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.builds import again_from_source, is_module, python_of, rebuild
from fa_forensics.why.ways.commands import needed_libraries, which_torch

#: The first torch that opens its libraries for itself alone and whose build helpers link them
#: (release notes of 1.5.0; torch/__init__.py: RTLD_GLOBAL with TORCH_USE_RTLD_GLOBAL only).
_FOR_ITSELF = (1, 5, 0, False)
#: The last Python that torch 1.4 has wheels for.
_LAST_PYTHON = 8


def can_be_before(place: Place) -> bool:
    """Whether the torch that runs can be 1.4 or before, as far as the place tells."""
    if place.present is not None:
        return order_key(place.present.release) < _FOR_ITSELF
    return left_from_then(place)


def left_from_then(place: Place) -> bool:
    """Whether a build of torch 1.4 can be there, for the Python that runs."""
    python = place.told.python if place.told else None
    minor = re.match(r"3\.(\d{1,2})", python or "")
    return minor is None or int(minor[1]) <= _LAST_PYTHON


def is_before(place: Place) -> bool:
    """Whether the torch that runs is surely 1.4 or before."""
    last = place.told.last if place.told else ""
    release = place.present.release if place.present is not None else last
    return bool(release) and order_key(release) < _FOR_ITSELF


def not_linked(place: Place, needed_by: Sequence[str]) -> tuple[str, ...]:
    """Which of torch's libraries a file lists; a build of it again, or its import behind torch."""
    from fa_forensics.why.seen import dotted_module

    file = needed_by[0] if needed_by else ""
    by_path = file.rsplit("/", 1)[-1].startswith("lib") and not is_module(file)
    module = dotted_module(file) if file and not by_path else ""
    helps = [needed_libraries(needed_by)]
    if module and can_be_before(place):
        helps.append(f"{python_of(place)} -c 'import torch; import {module}'")
    if not is_before(place):
        built = rebuild(place, needed_by)
        again = built[0] if built is not None else again_from_source(place, needed_by)
        helps += [again] if again else []
    return (*helps, which_torch(place))
