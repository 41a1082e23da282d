"""What is looked in: an environment's libraries, or a torch that is only named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import gnu_hash
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.owner import is_torch, libraries_of, owner_of_library
from fa_forensics.facts.symbol_text import SymbolText, mangled_scope
from fa_forensics.records import dataclass
from fa_forensics.resolve.environment_process import open_linker, torch_names
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.nearest import NameIndex, Near
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import Present

if TYPE_CHECKING:
    from fa_forensics.atlas.requested import RequestedTorch

#: Owners whose libraries only CUDA builds of torch have.
CUDA_OWNERS = ("torch/c10_cuda", "torch/torch_cuda")

#: Machines that the atlas has builds for; the first stands for all others.
_MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True)
class Told:
    """What a text from another machine says of it.

    Its machine ("x86_64"), Python ("3.10") and the CUDA version that its driver supports;
    ``flavour`` tells whether the text names the std::string flavour of torch, and
    ``python_version`` is the Python as the text has it ("3.10.12"). ``wheels`` are the
    NVIDIA wheels that it names, as (distribution, version). ``abi`` is the std::string flavour
    that torch has by the text, release or not ("" where nothing says it), ``torch_by`` who
    built that torch where the package index has no such one ("conda-forge's"). ``date`` is
    the month of the report ("2023-06") and ``last`` the newest torch that there was then.
    ``gpu_since`` is the first torch with code for the GPU that it names, ``since`` the first
    that the release ``since_of`` of a package in the text has a wheel for. ``driver_below`` is
    the CUDA version that the driver does not reach, as the text says ("CUDA driver < 12.8").
    ``cuda`` is the CUDA that the text's torch was built for, where it tells no release ("12.1"),
    and ``index_cuda`` the one of the address that pip is given there. ``glibc`` is that of
    the system which the text names ("2.31" for Ubuntu 20.04). ``looked_in`` is the library of
    torch in which macOS's loader missed a name ("libtorch_python"): the file lists it.
    """

    machine: str = ""
    python: str | None = None
    flavour: bool = False
    driver_cuda: tuple[int, int] | None = None
    python_version: str | None = None
    wheels: tuple[tuple[str, str], ...] = ()
    abi: str = ""
    torch_by: str = ""
    date: str = ""
    last: str = ""
    gpu_since: str = ""
    since: str = ""
    since_of: str = ""
    driver_below: tuple[int, int] | None = None
    cuda: str = ""
    glibc: str = ""
    index_cuda: str = ""
    file_torch: str = ""
    looked_in: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the answers hold.

    ``environment`` and ``linker`` are None where nothing was looked at, for the reason in
    ``problem``; ``present`` is the torch to answer for, if there is one, and ``requested``
    the same where it need not be here. ``told`` is what a text from elsewhere says
    of its machine; None for a place of our own.
    """

    environment: Environment | None
    linker: Linker | None
    present: Present | None
    problem: str | None
    requested: RequestedTorch | None = None
    told: Told | None = None

    @property
    def machine(self) -> str:
        """The machine whose torch wheels count: the environment's, x86_64 where it has none."""
        told = self.told.machine if self.told else ""
        own = self.environment.machine if self.environment else told
        return own if own in _MACHINES else _MACHINES[0]

    @property
    def glibc(self) -> str | None:
        """The glibc of the machine that a text tells of."""
        return (self.told.glibc or None) if self.told is not None else None

    @property
    def here(self) -> str:
        """The place in messages."""
        return self.present.text if self.present else "this environment"

    @property
    def python(self) -> str | None:
        """The environment's interpreter, for commands."""
        return self.environment.python if self.environment else None

    def looked(self, owner: str) -> bool:
        """Whether the libraries of an owner could be looked through here."""
        if self.requested is not None:
            return is_torch(owner)
        if self.linker is None or self.environment is None:
            return False
        return self.environment.torch is not None or not is_torch(owner)

    def lacks_cuda(self, owner: str) -> bool:
        """Whether a symbol of torch's CUDA libraries meets a torch that was built without."""
        return self.present is not None and not self.present.has_cuda and owner in CUDA_OWNERS

    def provider(self, name: str, version: str | None) -> str | None:
        """The library that exports a name, as ``import torch`` leaves the process: its path."""
        if self.requested is not None and name:
            return self.requested.exported_unlinked(name)
        if self.linker is None or not name:
            return None
        raw = name.encode("utf-8", "surrogateescape")
        hashed = gnu_hash(raw)
        for loaded in self.linker.process.objects:
            if loaded.dynamic.lookup(raw, hashed, version) is not None:
                return loaded.path
        return None

    def near(self, name: str, demangled: str, owner: str) -> tuple[Near, ...]:
        """What torch's libraries export instead of a name, mangled or readable ("" for name)."""
        if self.requested is not None:
            return tuple(Near(*row) for row in self.requested.nearest(name or demangled))
        index = self._torch_names()
        if index is None:
            return ()
        if name:
            return index.nearest(name, libraries_of(owner))
        prefix = mangled_scope(demangled)
        return index.with_scope(prefix, demangled) if prefix else ()

    def loaded_of(self, owner: str) -> list[LoadedObject]:
        """The loaded libraries of an owner."""
        return [
            loaded
            for loaded in (self.linker.process.objects if self.linker else ())
            if owner_of_library(os.path.basename(loaded.path)) == owner
        ]

    def close(self) -> None:
        """Close the files that were looked through."""
        if self.linker is not None:
            self.linker.close()

    def _torch_names(self) -> NameIndex | None:
        if self.linker is None or self.environment is None or self.environment.torch is None:
            return None
        return torch_names(self.linker, self.environment.torch.path)


def named_place(
    text: str, python: str | None, environ: Mapping[str, str] | None, tables: Tables
) -> Place:
    """The place to answer for: a release by its name. Nothing here is looked through.

    ``python`` only says which Python, and so which machine, it would be installed in.
    Raises ``UsageError`` when the text names no release of the table, ``AtlasDamaged``
    when there is no table, ``EnvironmentNotFound`` as ``find_environment`` does.
    """
    from fa_forensics.why.asked import requested_torch

    environment = None
    if python is not None:
        environment = find_environment(python, None, os.environ if environ is None else environ)
    machine = environment.machine if environment else _MACHINES[0]
    requested = requested_torch(text, tables.needed_atlas(), machine)
    present = Present(
        requested.version,
        requested.release,
        requested.flavour,
        has_cuda=requested.cuda is not None,
        installed=False,
    )
    return Place(environment, None, present, None, requested)


def open_place(python: str | None, environ: Mapping[str, str] | None) -> Place:
    """The place to answer for: an environment. Raises ``EnvironmentNotFound``."""
    environment = find_environment(python, None, os.environ if environ is None else environ)
    torch = environment.torch
    present = None
    if torch is not None:
        present = Present(
            torch.version, torch.release, torch.cxx11_abi, torch.has_cuda_libs, installed=True
        )
    problem = environment.torch_problem if torch is None else None
    try:
        linker = open_linker(environment)
    except ForensicsError as error:
        return Place(environment, None, present, error.message)
    return Place(environment, linker, present, problem)


def other_soname(symbol: SymbolText, loaded: Sequence[LoadedObject]) -> str | None:
    """The loaded library when the symbol's version names it with another major version."""
    version = symbol.version or ""
    names = [os.path.basename(one.path) for one in loaded]
    if ".so." not in version or not names or version in names:
        return None
    return names[0]
