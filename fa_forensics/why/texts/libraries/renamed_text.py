"""A library of CUDA under the name of another CUDA: a link or a copy does not change what it is."""

from __future__ import annotations

import os
import shlex

from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.facts.owner import is_cuda_library, owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.cuda_missing import cuda_major_of_soname

_CONDA = lazily(r"conda|/envs/|miniforge|mambaforge")


def renamed(seen: Seen) -> Answer | None:
    """``libcudart.so.9.0: version `libcudart.so.9.0' not found``; None for other versions.

    NVIDIA gives a library's names the version that its soname has, so that a file of that
    name without it is another release's.
    """
    version = seen.mention.version or ""
    path = os.path.normpath(seen.mention.library or version)
    name = os.path.basename(path)
    if name != version or not is_cuda_library(name):
        return None
    wanted = exact_toolkit(name) or cuda_major_of_soname(seen, name)
    cuda = f"CUDA {wanted}" if wanted else "that CUDA"
    asking = os.path.basename(seen.mention.file or "") or "The file that needs it"
    cause = (
        f"The file that was found as {name} does not define the version {version}, which the "
        f"{name} of {cuda} does: it is the library of another CUDA release under that name, a "
        f"symbolic link or a copy. A name does not change what is in a file. {asking} was built "
        f"for {cuda} and needs its library."
    )
    there = seen.versions.get("cuda", "")
    if there and wanted and not f"{there}.".startswith(f"{wanted}."):
        cause += f" The text has CUDA {there}: what was built for {cuda} does not run with that."
    shown = (
        shlex.quote(path)
        if path.startswith("/")
        else f"$(find / -name {shlex.quote(name)} 2>/dev/null)"
    )
    helps = [f"readlink -f {shown}; readelf -dW {shown} | grep SONAME"]
    if wanted and (_CONDA.search(path) or not path.startswith("/")):
        helps.append(f'conda install "cudatoolkit={wanted}"')
    helps.append(f"{seen.python} -m pip list | grep -iE '^(torch|nvidia)'; ls -d /usr/local/cuda*")
    return seen.answer(
        "versioned-symbol", "FA204", cause, owner=owner_of_library(name), direction=UNKNOWN,
        confidence="high", help=(*helps, seen.inspect_command()),
        notes=(
            "Remove the link. Two ways lead out: the real library of that CUDA (its toolkit, or "
            "conda's cudatoolkit), or a build of torch and of the extension for the CUDA that is "
            "there.",
        ),
    )  # fmt: skip
