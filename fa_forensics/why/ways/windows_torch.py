"""Commands for torch on Windows, where the package index has it for the CPU alone."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.pairs import ON_WINDOWS

#: One release of torch as the last thing that a command installs, from the package index.
_TORCH = lazily(r'pip install (?!.* --(?:extra-)?index-url)[^\n]{0,200}"torch==(2\.\d{1,2}\.\d)"$')
#: No code for the GPU: the build that was chosen has it, another of the release may not.
_GPU = "FA504"


def for_cuda_on_windows(answer: Answer, seen: Seen) -> Answer:
    """The answer with torch's own index where a command would bring torch for the CPU."""
    if "+cpu" in (seen.torch or "") or "+cpu" in seen.versions.get("torch", ""):
        return answer
    helps = tuple(_indexed(command, answer.code, seen) for command in answer.help)
    if helps == answer.help:
        return answer
    note = (
        "On Windows the package index has torch for the CPU alone: the address at the end of the "
        "command has it for CUDA."
    )
    others = (one for one in answer.notes if one != ON_WINDOWS)
    return replace(answer, help=helps, notes=(*others, note))


def _indexed(command: str, code: str, seen: Seen) -> str:
    found = _TORCH.search(command)
    ages = seen.tables.ages
    if found is None or ages is None:
        return command
    build = ages.build(found[1], "x86_64")
    cuda = minor_of(build.cuda) if build is not None and build.cuda else ""
    builds = cuda_builds(minor_of(found[1]))
    own = cuda_of_label((seen.torch or "").partition("+")[2])
    if own in builds and code != _GPU:
        cuda = own
    return f"{command}{index_option(cuda_label(cuda))}" if cuda in builds else command
