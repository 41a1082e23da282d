"""A torch that needs the library of another CUDA than its version says: it is another torch."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen


def is_of_another_cuda(seen: Seen, wanted: str | None) -> bool:
    """Whether the text tells torch's CUDA, and a library carries the number of another toolkit."""
    told = "torch_cuda" in seen.versions or "+cu" in seen.versions.get("torch", "")
    own = ".".join((seen.torch_cuda or "").split(".")[:2])
    return told and wanted is not None and bool(own) and wanted != own


def another_torch(seen: Seen, soname: str, owner: str | None, wanted: str) -> Answer:
    """The torch that Python loads is not the one that the text tells of."""
    cause = (
        f"It is torch itself that needs {soname}, which is of CUDA {wanted}, and the torch of the "
        f"text is a build for CUDA {seen.torch_cuda}, which asks for no such file: the torch that "
        "Python loads is most likely another one, left by an earlier install or in another "
        "directory of packages."
    )
    return seen.answer(
        "wrong-torch", "FA202", cause, owner="torch", direction=NONE, confidence="medium",
        help=(
            f"{seen.python} -c 'import importlib.util as u; print(u.find_spec(\"torch\").origin)'",
            f"{seen.pip} show -f torch | grep -E '^(Name|Version|Location)'",
            f"{seen.pip} uninstall -y torch",
        ),
        notes=(
            "The first command prints which torch is found without loading it, the second which "
            "one pip knows. The third is repeated until pip finds none; what the first command "
            "then still prints is a copy that pip does not know, and goes by hand. torch is "
            "installed again after that.",
            f"Nothing of CUDA {wanted} is to be installed.",
        ),
    )  # fmt: skip
