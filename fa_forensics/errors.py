"""Errors that end an analysis, each with its exit code and, where one exists, a hint.

The exit codes are public (see the README): 2 is a usage error, 3 means that the
input could not be analysed.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_NOT_ANALYSED = 3
EXIT_INCONCLUSIVE = 4


class ForensicsError(Exception):
    """Base of all errors that are shown to the user as one sentence.

    ``hint`` is what to do next, or ``None`` where there is nothing useful to add.
    """

    exit_code = EXIT_NOT_ANALYSED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ForensicsError):
    """The request itself cannot be carried out: a path that does not exist, a bad option."""

    exit_code = EXIT_USAGE


class UnreadableFile(ForensicsError):
    """The operating system refused the file, or it vanished while it was read."""


class OutOfResources(ForensicsError):
    """Memory or file descriptors of this process ran out; the file is not to blame."""


class NotAnElfFile(ForensicsError):
    """The file is readable but is no ELF file; the message says what it looks like."""


class DamagedFile(ForensicsError):
    """The file starts like an ELF file but too little of it is left to say anything."""


class EnvironmentNotFound(ForensicsError):
    """The Python environment that was asked for does not exist or cannot be read."""

    exit_code = EXIT_USAGE


class BrokenWheel(ForensicsError):
    """The archive is no readable wheel, or holds entries that must not be unpacked."""


class AtlasDamaged(ForensicsError):
    """A shipped table of torch or CUDA releases is missing, cut short or altered."""


class UnreadableReport(ForensicsError):
    """A file that should be a report of this program is none, or one that cannot be used."""
