"""The cure of a library of torch's that lies outside of any torch that pip or conda installs."""

from __future__ import annotations

from fa_forensics.patterns import lazily

_STRAY = (
    "The first command shows from which directory each library of libtorch is loaded: they have to "
    "come from one. pip puts torch's libraries into its own directory, torch/lib: the file of"
    " the message lies elsewhere. That copy is to go (by what installed it), or its "
    "directory out of LD_LIBRARY_PATH and /etc/ld.so.conf.d; what was linked with it is built "
    "again on the torch that stays."
)
#: The lib directory of a conda installation or environment.
_CONDAS = lazily(
    r"/(?:envs/[^/\s:]{1,80}|[\w.-]{0,20}(?:conda|forge|mamba)\d{0,2})/lib/lib(?:torch|c10)"
)
_OF_CONDA_FORGE = (
    "The first command shows from which directory each library of libtorch is loaded: they have to "
    "come from one. conda-forge puts torch's libraries into lib of the environment, where this "
    "file lies; pip puts them into torch/lib. An environment has to have one torch: conda list | "
    "grep -iE 'torch' shows what is there and from which channel, and what is linked with a torch "
    "that goes is installed or built again for the one that stays."
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
    if _CONDAS.search(line):
        return look, _OF_CONDA_FORGE
    return look, _STRAY if imported else _ONE_LIBTORCH
