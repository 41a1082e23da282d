"""A package whose module for a GPU did not come when it was imported, for whichever reason."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in, raw_python
from fa_forensics.why.texts.gpu_refusals import TORCH_ARCHS


def not_imported(seen: Seen) -> Answer:
    """``SM89 kernel is not available``: the flag of an import that may have failed for any reason.

    SageAttention (core.py) imports each of its modules in a try that catches everything, and
    takes the one for 8.9 on 12.0 too.
    """
    package, flag = package_in(seen), seen.mention.detail["flag"]
    arch = f"sm_{flag}"
    row = row_of(package) if package else None
    name = package or "the package"
    cause = (
        f"When it was imported, {name} tried to load its module for {arch} and did not get it. "
        "Either the build left it out, or the file is there and does not load, most often because "
        "it was built for another torch; the message hides which. The first command says so."
    )
    module = ""
    if row is not None:
        modules = [str(one) for one in row["modules"] if str(one).endswith(f"sm{flag}")]  # type: ignore[attr-defined]
        module = f"{row['import']}.{modules[0]}" if modules else str(row["import"])
    helps = [f"{seen.python} -c 'import torch, {module}'"] if module else []
    helps += [f"fa-forensics inspect {package or '/path/to/the/extension.so'}"]
    if package and row is not None and row["source_build"]:
        helps.append(rebuild_command(raw_python(seen), package, "", row))
    helps.append(f"{seen.python} {TORCH_ARCHS}")
    notes = [
        "The name of the module does not say that the GPU has to be of that capability: newer "
        "GPUs are served by modules that are named after an older one.",
        "After a change of torch it has to be built again for the new one, with the old copy "
        "(pip uninstall) and the old build directory out of the way.",
    ]
    return seen.answer(
        "gpu-arch", "FA504", cause, owner=package, direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip
