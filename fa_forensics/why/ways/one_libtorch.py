"""The cure of a library of torch's that lies outside of any torch that pip or conda installs."""

from __future__ import annotations

_STRAY = (
    "The first command shows from which directory each library of libtorch is loaded: they have to "
    "come from one. pip and conda put torch's libraries into its own directory, torch/lib: the "
    "file of the message lies elsewhere. That copy is to go (by what installed it), or its "
    "directory out of LD_LIBRARY_PATH and /etc/ld.so.conf.d; what was linked with it is built "
    "again on the torch that stays."
)
_ONE_LIBTORCH = (
    "The first command shows from which directory each library of libtorch is loaded: they have to "
    "come from one. What was unpacked over an older download goes as a whole, and the program is "
    "linked and run with the same one."
)


def one_libtorch(line: str, python: str) -> tuple[str, str]:
    """(command, note) where a library of torch's lies elsewhere."""
    imported = "ImportError" in line
    look = "LD_DEBUG=libs ./YOUR_PROGRAM 2>&1 | grep -E 'lib(torch|c10)'"
    if imported:
        look = look.replace("./YOUR_PROGRAM", f"{python} -c 'import torch'")
    return look, _STRAY if imported else _ONE_LIBTORCH
