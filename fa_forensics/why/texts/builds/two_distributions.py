"""Two distributions of one module, which a listing of packages has side by side."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen


def cuda_twins(seen: Seen) -> tuple[str, str] | None:
    """(spconv, spconv-cu111): two distributions of one module that a listing in the text has."""
    twin = seen.versions.get("flag:cuda-twin", "")
    base = twin.rpartition("-cu")[0]
    return (base, twin) if base and f"pkg:{base}" in seen.versions else None


def two_distributions(seen: Seen, name: str, base: str, twin: str) -> Answer:
    """The answer for a C++ type that both of them register."""
    cause = (
        f"{base} and {twin} are both in the text's list: two distributions with the same module, "
        f"whose files lie in one directory, so that {name} is registered twice. One of them has to "
        "go, and as their files overwrote one another both are removed first."
    )
    note = (
        f"Then one of them is installed again, the one for the CUDA of the torch there; what "
        f"{base} itself brings under two such names (cumm for spconv) likewise."
    )
    return seen.answer(
        "python-abi", "FA893", cause, owner=base, direction="none", confidence="medium",
        help=(f"{seen.pip} uninstall -y {base} {twin}", f"{seen.pip} list"), notes=(note,),
    )  # fmt: skip
