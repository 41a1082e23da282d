"""Libraries of one CUDA release alone, up to 10.2: torch's own wheel has them under other names."""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_names import cuda_on_pypi
from fa_forensics.facts.paste.machines import delivered_with
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.wheels_path import toolkit_on_path


def of_exact_cuda(seen: Seen, exact: str) -> str:
    """What a missing library of CUDA 10.0 and the like can mean, with a blank before it."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    inside = (
        f"pip's torch for CUDA {exact} has it inside, under a name with a hash, which serves torch "
        "alone: the library itself has to come from a CUDA "
        f"{exact} toolkit (/usr/local/cuda-{exact}/lib64) or conda's cudatoolkit={exact}, where "
        "the loader looks"
    )
    if re.match(rf"{re.escape(exact)}(?!\d)", toolkit):
        return (
            f" The text has CUDA {exact}: most likely its directory, /usr/local/cuda-{exact}/lib64,"
            " is not where the loader looks. It goes on LD_LIBRARY_PATH before Python starts, or "
            "into a file of /etc/ld.so.conf.d, with ldconfig after that. Only where torch is a "
            "build for another CUDA (the first command) has a build of the package for that to "
            "replace this one."
        )
    return (
        f" Two causes fit: torch is a build for another CUDA than {exact}, and then a build of the "
        f"package for torch's CUDA has to replace this one; or torch is one for CUDA {exact}: "
        f"{inside}. The first command tells them apart."
    )


def of_pypi(seen: Seen, wanted: str | None) -> str:
    """The CUDA of an old torch's build on the package index, where it is none of these."""
    torch = seen.torch or ""
    machine, delivered = delivered_with(seen.gpu or "")
    if delivered and wanted and wanted != delivered and "+" not in torch:
        return (
            f" The text is of {machine}, which is delivered with CUDA {delivered}: most likely "
            f"torch is the build for that, so that the first is the likelier. The GPU and its "
            "architecture have no part in this message."
        )
    pypi = None if "+" in torch else cuda_on_pypi(torch)
    if pypi is None or wanted is None or f"{pypi}.".startswith(f"{wanted}."):
        return ""
    return (
        f" The build of torch {torch} on the package index is one for CUDA {pypi}, so that the "
        "first is the likelier where torch was installed from there."
    )


def path_of_exact(exact: str) -> tuple[str, ...]:
    """Put the toolkit of exactly that release on the loader's path."""
    return (
        f"ls -d /usr/local/cuda-{exact}/lib64",
        toolkit_on_path(exact),
    )
