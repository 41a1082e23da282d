"""What a pasted text says: the failures it mentions and the versions it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fa_forensics.records import dataclass

#: No mention carries a longer line than this (characters).
MAX_LINE = 500


@dataclass(frozen=True, slots=True)
class Mention:
    """One failure that a text tells of.

    ``what`` says which sort (``"undefined-symbol"``, see ``WHAT``); ``line`` is the line that
    says so, without log prefixes and at most ``MAX_LINE`` characters, ``number`` its place in
    the text (from 1); ``stream`` who printed it (``"rank 2"``, ``"EngineCore pid=123"``), or
    "". ``symbol`` is the name as the text has it, mangled or readable, None where the text
    leaves it out; ``version`` a symbol version or a version's name (``GLIBCXX_3.4.30``);
    ``library`` the soname or path that was looked for or refused; ``file`` the file that fails
    to load, as the text has it (``.../_C.abi3.so``). ``detail`` holds what else a sort of
    failure says, in words.
    """

    what: str
    line: str
    number: int
    stream: str = ""
    symbol: str | None = None
    version: str | None = None
    library: str | None = None
    file: str | None = None
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paste:
    """A text as far as it could be read.

    ``mentions`` begin with the first cause; what only follows from another mention is left
    out, and what several processes say alike stands once (``detail["ranks"]``). ``versions``
    are those that the text itself names: ``torch``, ``torch_too`` (another one that reports
    name as surely), ``torch_cuda`` (the CUDA torch was built with), ``cuda`` (a toolkit),
    ``driver``, ``driver_cuda``, ``python``, ``glibc``, ``gcc``, ``gpu``,
    ``capability``, ``sm`` (a capability in a sentence), ``amd`` (a GPU of AMD's),
    ``gpu_family`` (its family alone), ``hub_kernel`` (an attention backend of diffusers'),
    ``os``, ``machine``, ``cxx11_abi`` ("True" or "False"), ``rocm``,
    ``file_torch`` (the torch that something is said to be compiled with), ``least:torch``
    (a lowest release that is asked for), ``build_torch`` (what pip took into a build),
    ``torch_by`` (who built torch: "conda-forge's"), ``date`` (the latest month that the text
    names: "2023-06"), ``pkg:NAME``, ``env:NAME``,
    ``wheel_page`` (the torch of a project's page of wheels, "1.6.0+cu101") and
    ``local:NAME`` (a directory that the text installs from, "-e ./x" where it stays in use);
    ``version_lines`` gives the number of the line of each. ``places`` are the site-packages
    directories that it names; ``truncated`` says what was not read, and why.
    """

    mentions: tuple[Mention, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    version_lines: Mapping[str, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    truncated: str | None = None
