"""What ``--torch`` asks for, made into what a file is judged against.

Three kinds of answer: a release of the table, the torch that is installed here (a nightly or
NGC build, a release newer than the table), or nothing at all and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.requested import (
    Request,
    RequestedTorch,
    choose_release,
    parse_request,
    requested_torch,
)
from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.torch_install import Torch
from fa_forensics.records import dataclass
from fa_forensics.report import JudgedTorch

if TYPE_CHECKING:
    from fa_forensics.placing import ReleaseTable


@dataclass(frozen=True, slots=True)
class Asked:
    """One torch that was asked for, for files of one machine.

    ``torch`` is set where the table has it; ``judged`` says what reports say of it.
    ``problem`` is why a file cannot be judged against it, one sentence.
    """

    judged: JudgedTorch
    torch: RequestedTorch | None = None
    problem: str | None = None


def read_requests(
    texts: Sequence[str], table: ReleaseTable, environment: Environment
) -> tuple[Request, ...]:
    """The requests of a command line, each once.

    Raises ``UsageError`` for a text that names no release, and for a release that there
    never was; the nearest ones are offered.
    """
    requests = tuple(dict.fromkeys(parse_request(text) for text in texts))
    for request in requests:
        atlas = table.atlas()
        if atlas is None or _is_installed(request, environment.torch, atlas.releases()):
            continue
        try:
            requested_torch(request.text, atlas, atlas.machines()[0])
        except UsageError:
            raise
        except ForensicsError:
            continue  # told of each file, with what can be said all the same
    return requests


def asked_for(
    request: Request, table: ReleaseTable, environment: Environment, machine: str
) -> Asked:
    """What a request means for files of a machine."""
    atlas = table.atlas()
    here = environment.torch
    known = () if atlas is None else atlas.releases(machine)
    if here is not None and _is_installed(request, here, known):
        return Asked(_installed(request, here))
    problem = f"torch {request.text} cannot be looked up: {table.problem}"
    if atlas is not None:
        try:
            torch = requested_torch(request.text, atlas, machine)
        except ForensicsError as error:
            problem = error.message
        else:
            judged = JudgedTorch(
                requested=request.text,
                version=torch.version,
                release=torch.release,
                cuda=torch.cuda,
                cxx11_abi=torch.flavour,
                judged_by="table",
                note=torch.note,
            )
            return Asked(judged, torch)
    release = choose_release(request, known)
    judged = JudgedTorch(request.text, request.text, release, None, "unknown", "nothing", problem)
    return Asked(judged, None, problem)


def _is_installed(request: Request, torch: Torch | None, known: Sequence[str]) -> bool:
    """Whether the installed torch is the one asked for: its own exports are the better source.

    The whole version must be the same; of a release that the table has, a text without
    the local part (``2.6.0`` of ``2.6.0+cu118``) means the build on the package index.
    """
    if torch is None:
        return False
    text = request.text.removeprefix("torch==")
    if text == torch.version:
        return True
    return text == torch.version.partition("+")[0] and choose_release(request, known) is None


def _installed(request: Request, torch: Torch) -> JudgedTorch:
    return JudgedTorch(
        request.text,
        torch.version,
        torch.release,
        torch.cuda,
        torch.cxx11_abi,
        "installed",
        f"the one installed here, in {torch.path}",
    )


def with_torch(environment: Environment, torch: RequestedTorch, machine: str) -> Environment:
    """The environment as rules see it: with that torch in the place of the installed one."""
    stand_in = Torch(
        path=f"torch=={torch.version}",
        version=torch.version,
        release=torch.release,
        cuda=torch.cuda,
        hip=None,
        git_version=None,
        lib_dir=torch.folder,
        has_cuda_libs=torch.brings("libc10_cuda.so") is not None,
        cxx11_abi=torch.flavour,
        cxx11_evidence=torch.note,
        requires=tuple(f"{name}=={pin}" for name, pin in torch.build.requires.items()),
        editable=False,
    )
    return replace(environment, torch=stand_in, torch_problem=None, machine=machine)
