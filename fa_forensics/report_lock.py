"""The words of ``env --lock``: what would build this environment again, and what would not.

Plain values, as in ``report``: what the renderers show and JSON schema v1 describes.
"""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.records import dataclass

#: Where a distribution came from.
INDEX, ADDRESS, REPOSITORY, LOCAL, CONDA, SYSTEM = (
    "index", "url", "repository", "local", "conda", "system"
)  # fmt: skip
SOURCES = (INDEX, ADDRESS, REPOSITORY, LOCAL, CONDA, SYSTEM)


@dataclass(frozen=True, slots=True)
class Pin:
    """One installed distribution as a requirement.

    ``line`` is what pip takes, without hashes; None where nothing that can be fetched gives it
    again. ``hashes`` are "sha256:..." of the archive that was installed, with ``hash_source``
    saying how they are known; ``url`` where it comes from, where that is recorded. ``notes``
    say what is not known of it.
    """

    name: str
    version: str
    source: str
    line: str | None
    url: str | None = None
    hashes: tuple[str, ...] = ()
    hash_source: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CondaPin:
    """One package of conda: ``channel`` is its name, ``build`` the build string."""

    name: str
    version: str
    build: str
    channel: str


@dataclass(frozen=True, slots=True)
class LockReport:
    """One run of ``env --lock``.

    ``python`` is the whole version; ``image`` a container image with that Python and a glibc
    no older than here, None where none is known; ``driver`` says which driver torch's CUDA
    needs. ``notes`` are about the whole; ``variables`` those that change what is loaded.
    """

    tool_version: str
    environment: Mapping[str, object]
    name: str
    python: str
    pip: str | None
    pins: tuple[Pin, ...]
    conda: tuple[CondaPin, ...] = ()
    channels: tuple[str, ...] = ()
    image: str | None = None
    driver: str | None = None
    variables: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every requirement has a hash: pip takes them for all or for none."""
        lines = [pin for pin in self.pins if pin.line is not None]
        return bool(lines) and all(pin.hashes for pin in lines)
