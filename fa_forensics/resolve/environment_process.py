"""The process of an environment: its interpreter after ``import torch``, nothing opened besides."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.image import EM_AARCH64, EM_X86_64
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.owner import is_torch, owner_of_library
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.nearest import NameIndex

if TYPE_CHECKING:
    from fa_forensics.resolve.stand_in import StandIn

_MACHINES = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}


def open_linker(
    environment: Environment, with_torch: bool = True, stand_in: StandIn | None = None
) -> Linker:
    """The process of an environment, after ``import torch`` as far as it has a torch.

    With ``stand_in`` that torch is the one imported; the installed one is out of sight.

    Raises ``ForensicsError`` when the interpreter cannot be read or its loader's rules are
    not known.
    """
    reason = foreign_loader(environment)
    if reason is not None:
        raise ForensicsError(reason)
    return Linker(
        environment.python_real,
        environment.interpreter_loader,
        _MACHINES[environment.machine],
        environment.torch.path if environment.torch and with_torch and not stand_in else None,
        environment.site_dirs,
        environment.variables,
        stand_in,
        () if stand_in is None else _installed_with_torch(environment),
    )


def _installed_with_torch(environment: Environment) -> list[str]:
    """The directories of torch's libraries and of the CUDA wheels, each ending in a slash."""
    places = [os.path.join(site, "nvidia") for site in environment.site_dirs]
    if environment.torch is not None:
        places.append(environment.torch.lib_dir)
    return [os.path.realpath(place) + os.sep for place in places]


def torch_of_another_machine(environment: Environment, linker: Linker) -> str | None:
    """One sentence where torch's own libraries are for another machine than the Python."""
    names = {number: name for name, number in _MACHINES.items()}
    for loaded in linker.torch_objects:
        machine = loaded.dynamic.image.machine
        if machine != _MACHINES[environment.machine]:
            built = names.get(machine, "another machine")
            return f"torch's libraries are for {built}, this Python is for {environment.machine}"
    return None


def foreign_loader(environment: Environment) -> str | None:
    """Why the loader of an environment cannot be modelled, or None."""
    if environment.machine not in _MACHINES:
        return f"the loader's rules for {environment.machine} are not known to this tool"
    if environment.libc != "glibc":
        return f"the loader of {environment.libc} searches by other rules, which are not modelled"
    return None


def torch_names(linker: Linker, torch_dir: str) -> NameIndex:
    """The exported names of torch's own libraries in a linker's process."""
    lib_dir = os.path.join(torch_dir, "lib") + os.sep
    return NameIndex(
        [
            loaded
            for loaded in linker.torch_objects
            if loaded.path.startswith(lib_dir)
            and is_torch(owner_of_library(os.path.basename(loaded.path)) or "")
        ]
    )
