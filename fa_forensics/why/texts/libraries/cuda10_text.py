"""A library of CUDA 10.1 and 10.2 by a name that both have: no torch of pip brings it."""

from __future__ import annotations

import shlex

from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import there_already
from fa_forensics.why.texts.libraries.needing import needing, rebuild_commands, rebuild_notes
from fa_forensics.why.texts.libraries.wheels_path import toolkit_on_path

#: How a package that is published once for each CUDA calls its builds of that time.
_BY_CUDA = {
    "dgl": (
        "DGL up to 0.9.1 has a distribution for each CUDA release (dgl-cu101, dgl-cu102, "
        "dgl-cu110 and so on; dgl alone is for the CPU), and one alone is to be installed: "
        "pip list | grep dgl shows which it is. Since 1.0 all are called dgl, and those for a "
        "CUDA are at data.dgl.ai/wheels."
    ),
}


def of_cuda_10(seen: Seen, soname: str, owner: str | None, own: str | None) -> Answer | None:
    """The answer where ``own``, torch's CUDA major version, is 10 or not told; else None.

    pip's torch for CUDA 10 has cuBLAS, cuSPARSE and the others linked in, or inside under a
    name with a hash: importing it first brings none of them by this name.
    """
    if exact_toolkit(soname) is not None or own not in (None, "10"):
        return None
    who = needing(seen)
    there = (seen.versions.get("cuda") or "").strip()
    if (seen.torch_cuda or there).startswith("10.0"):
        return _beside_10_0(seen, soname, owner)
    cause = (
        f"{who[0].upper()}{who[1:]} is a build for CUDA 10.1 or 10.2: it needs {soname}, which is "
        "not found. It takes it from a CUDA 10 toolkit or from conda's cudatoolkit: that is not "
        "installed, or lies where the loader does not look. pip's torch for CUDA 10 has the "
        "library inside, for itself alone, so that importing torch first does not bring it."
    )
    direction = NONE
    if there and not f"{there}.".startswith("10."):
        direction = OLDER
        cause += (
            f" The text has CUDA {there}, whose library has another name: most likely a build for "
            "that, or for the CUDA of torch, has to replace this one."
        )
    elif own is None and not there:
        direction = UNKNOWN
        cause += (
            " Where torch, or the CUDA that is there, is another one, a build for that has to "
            "replace this one."
        )
    stem = soname.split(".so")[0]
    number = there if there in ("10.1", "10.2") else "10.2"
    look = f"ldconfig -p | grep {shlex.quote(stem)}; ls -d /usr/local/cuda*"
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=direction, confidence="medium",
        help=(
            f"{look}; conda list | grep cudatoolkit",
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            toolkit_on_path(number),
            f'conda install "cudatoolkit={number}"',
            *rebuild_commands(seen),
        ),
        notes=(
            "Where the first command shows a CUDA 10 toolkit, its directory goes on the path "
            "before Python starts (cuBLAS of 10.1 lies in /usr/lib/x86_64-linux-gnu). Where it "
            "shows none, conda's cudatoolkit of 10.1 or 10.2 has it for an environment of conda. "
            "The library of another CUDA under this name does not count.",
            *(text for name, text in _BY_CUDA.items() if who.rstrip(")").split()[-1] == name),
            *rebuild_notes(seen),
            *there_already(seen),
        ),
    )  # fmt: skip


def _beside_10_0(seen: Seen, soname: str, owner: str | None) -> Answer:
    """CUDA 10.0 has its libraries under names with 10.0, and torch, or the system, is of that."""
    who, exact = needing(seen), f"{soname}.0"
    cause = f"{who[0].upper()}{who[1:]} is a build for CUDA 10.1 or 10.2: it needs {soname}."
    if (seen.torch_cuda or "").startswith("10.0"):
        cause += (
            f" torch is one for CUDA 10.0, whose library is called {exact}: a build of the package "
            "for CUDA 10.0 has to replace this one, or torch has to be one for CUDA 10.1 or 10.2."
        )
    else:
        cause += (
            f" The text has CUDA 10.0, whose library is called {exact}: most likely a build of the "
            "package for CUDA 10.0 has to replace this one. What counts is the CUDA of torch, "
            "which the first command prints."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=NEWER, confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            "nvcc --version; echo CUDA_HOME=$CUDA_HOME",
            *rebuild_commands(seen),
        ),
        notes=(
            "Neither the directory of CUDA 10.0 on LD_LIBRARY_PATH nor a link from one name to the "
            "other helps, and a CUDA 10.2 beside it does not either: many extensions check that "
            "their CUDA is torch's. What is compiled here takes the nvcc of CUDA_HOME, which "
            "has to be 10.0 as well.",
            *rebuild_notes(seen),
            *there_already(seen),
        ),
    )  # fmt: skip
