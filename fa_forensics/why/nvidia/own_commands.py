"""The commands for a missing name of a CUDA library where its cause has commands of its own."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.why.judgement import NONE, Judgement
from fa_forensics.why.nvidia.cuda_age import (
    OF_NVCC,
    PLAIN_NAME,
    UNLISTED,
    of_another_time_commands,
    of_nvcc_commands,
)
from fa_forensics.why.nvidia.cuda_copy import of_two_releases
from fa_forensics.why.nvidia.cuda_origin import (
    THIS_COPY,
    THIS_COPY_LAST,
    WITHOUT_CUDA,
    foreign_commands,
    foreign_row,
    this_copy_commands,
)
from fa_forensics.why.nvidia.never_lacked import (
    NO_GENUINE,
    is_stub,
    stand_in_commands,
    stub_commands,
)
from fa_forensics.why.nvidia.places import of_condas_torch
from fa_forensics.why.nvidia.wheels import CudaHistory
from fa_forensics.why.place import Place
from fa_forensics.why.ways.commands import needed_libraries

CODE = "FA204"


def of_its_cause(
    judgement: Judgement,
    place: Place,
    history: CudaHistory | None,
    needed_by: Sequence[str],
    version: str,
) -> tuple[str, ...] | None:
    """The commands of a cause that has its own; None for an older copy or another one."""
    foreign = foreign_row(needed_by)
    if foreign is not None and history is not None and judgement.code == CODE:
        return foreign_commands(place, foreign, history, needed_by)
    if history is not None and {THIS_COPY, THIS_COPY_LAST} & set(judgement.notes):
        return this_copy_commands(needed_by[0])
    if history is not None and is_stub(needed_by) and judgement.code == CODE:
        return stub_commands(place, history)
    if history is not None and NO_GENUINE in judgement.notes:
        return stand_in_commands(place, history, needed_by)
    if OF_NVCC in judgement.notes:
        return of_nvcc_commands(needed_by, place.python or "python")
    if PLAIN_NAME in judgement.notes:
        return of_another_time_commands(needed_by, version)
    if UNLISTED in judgement.notes:
        return (needed_libraries(needed_by),)
    if WITHOUT_CUDA in judgement.notes:
        python = place.python or "python"
        asked = f"{python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
        return (asked, needed_libraries(needed_by))
    of_two = judgement.direction == NONE and judgement.code == CODE
    if (
        history is not None
        and needed_by
        and of_two
        and (not history.having or of_condas_torch(needed_by[0]))
    ):
        return of_two_releases(place, history, needed_by)
    return None
