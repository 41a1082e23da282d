"""xformers whose file was built for another Python, on torch of the right release."""

from __future__ import annotations

import re

from fa_forensics.facts.python_api import is_older, partner_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.python.pairs import index_note, index_tag

#: The torch of the first of xformers' own wheels that is one file for all Pythons.
_FIRST_ABI3 = "2.7.1"


def other_python(seen: Seen, built: str, have: str, helps: tuple[str, ...]) -> Answer:
    """torch is the same release, Python another minor version."""
    cause = (
        f"xformers was built for Python {built}, and Python {have} runs; torch is of the release "
        "that it was built for. A compiled module is for one minor version of Python, unless its "
        "name says abi3."
    )
    notes = ["The file name's tag (cpython-312, abi3) in the second command decides."]
    its, own = seen.mention.detail.get("built_cuda", ""), seen.versions.get("torch_cuda", "")
    cuda = f"{int(its[:-2])}.{int(its[-2:])}" if re.fullmatch(r"1\d\d\d", its) else ""
    if cuda and own and cuda.partition(".")[0] != own.partition(".")[0]:
        cause += (
            f" It was built with CUDA {cuda}, and the text has torch for CUDA {own}: that does not "
            "fit either."
        )
    torch = seen.mention.detail.get("here_torch") or seen.torch or ""
    fitting = partner_of("xformers", torch.partition("+")[0]) if torch else None
    if torch and not is_older(torch.partition("+")[0], _FIRST_ABI3):
        notes.append(
            f"xformers' own wheels for torch {_FIRST_ABI3} and newer are one file for all Pythons: "
            "with one of them Python plays no part, and the first command shows what the load "
            "fails on; with a wheel of another maker, or a build of one's own, it does."
        )
    wanted = f"xformers=={fitting}" if fitting else "xformers"
    if "flag:jetson" in seen.versions or seen.versions.get("machine") == "aarch64":
        again = (
            f"MAX_JOBS=2 {seen.pip} install --force-reinstall --no-deps --no-cache-dir "
            f'--no-build-isolation --no-binary xformers "{wanted}"'
        )
        notes.append(
            "The package index has xformers for aarch64 as source alone: the command compiles the "
            "release for this torch, with the torch, the Python and the nvcc that are there "
            "(CUDA_HOME is of torch's own CUDA; wheel, setuptools and ninja have to be installed). "
            "On a Jetson the index that torch was taken from has a wheel for its Python and CUDA "
            "where NVIDIA or the community made one."
        )
    else:
        again = f'{seen.pip} install --force-reinstall --no-deps --no-cache-dir "{wanted}"'
        tag = index_tag(seen, "xformers", torch)
        again += index_option(tag)
        notes += index_note(tag)
    return seen.answer(
        "python-abi", "FA401", cause, owner="xformers", direction="none", confidence="medium",
        help=(*helps, again), notes=tuple(notes),
    )  # fmt: skip
