"""Libraries of CUDA that torch opens at their first use: importing torch shows nothing of them."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.nvidia.places import in_default_path
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.libraries.wheels_path import wheels_on_path

#: What uses a library for the first time, by its owner.
_FIRST_USE = {
    "cudnn": "env -u LD_LIBRARY_PATH {0} -c 'import torch; a = torch.ones(1, 1, 8, 8, "
    'device="cuda"); print(torch.nn.functional.conv2d(a, a).shape)\'',
    "cusolver": "env -u LD_LIBRARY_PATH {0} -c 'import torch; "
    'print(torch.linalg.inv(torch.eye(3, device="cuda")))\'',
}
#: The parts of cuDNN, and torch's file that lists cuSOLVER: neither is opened by import torch.
_LATE = lazily(r"(?:^|/)lib(?:cudnn_\w{2,40}|torch_cuda_linalg)\.so")
_TRACE = "LD_DEBUG=libs python YOUR_SCRIPT.py 2>&1 | grep 'calling init: .*libcudnn'"
_OF_WHEEL = lazily(r"/nvidia/(?P<folder>cudnn|cusolver|cu13)/lib/")
_IMPORT = lazily(r"env -u LD_LIBRARY_PATH \S{1,300} -c 'import torch'")


def with_first_use(answer: Answer, seen: Seen) -> Answer:
    """The answer with a command that opens the library, in place of one that imports torch."""
    code = _FIRST_USE.get(answer.owner or "")
    file = seen.mention.file or ""
    if code is None or not _LATE.search(file):
        return answer
    used = code.format(seen.python)
    helps = [used if _IMPORT.fullmatch(command) else command for command in answer.help]
    if used not in helps:
        return answer
    if in_default_path(file):
        return _before_the_system(answer, seen, helps)
    folder = _OF_WHEEL.search(file)
    note = (
        "import torch does not open that file: it is opened at its first use, which the first "
        "command does, on the GPU. Where that works, LD_LIBRARY_PATH is the cause, and the program "
        "runs without it."
    )
    if folder is not None:
        helps.insert(1, wheels_on_path(seen.python, folder["folder"], "cublas"))
        note += (
            " Where the variable has to stay, the wheels' own directories go first in it (the "
            "command with export, before the program starts)."
        )
    if answer.owner == "cudnn":
        helps.insert(-1, _TRACE)
    return replace(answer, help=tuple(helps), notes=(note, *answer.notes))


def _before_the_system(answer: Answer, seen: Seen, helps: list[str]) -> Answer:
    """The old copy is the system's: torch's own use of the library does not find that one."""
    owner = answer.owner or ""
    file = seen.mention.file or ""
    name = file.rsplit("/", 1)[-1]
    look = [f"dpkg -S {name} || rpm -qf {quoted(file)}"]
    if owner == "cudnn":
        look.append(_TRACE)
    helps = [
        wheels_on_path(seen.python, owner, "cublas", *(() if owner == "cudnn" else ("cu13",))),
        *helps,
    ]
    notes = [
        "The command with export puts the wheel's own directory before the system's, for the "
        "program that is started after it (in a notebook it has to be set before the kernel "
        "starts). The one with import torch shows whether torch's own copy is whole: torch looks "
        "beside itself first, and the program can fail all the same."
    ]
    if owner == "cudnn":
        notes.append(
            "The other way is the system's package, which the command with dpkg names (on Debian "
            "and Ubuntu libcudnn9-cuda-12 or libcudnn9-cuda-13): it is upgraded to the release of "
            "the wheel, or removed."
        )
    return replace(answer, help=(*helps[:-1], *look, *helps[-1:]), notes=(*notes, *answer.notes))
