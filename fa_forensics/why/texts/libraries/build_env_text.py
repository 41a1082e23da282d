"""A CUDA library of pip's isolated build environment, whose directory is gone afterwards."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen

#: The directory that pip installs the requirements of a build into, and uv's.
_ISOLATED = lazily(
    r"/(?P<pip>pip-build-env-\w{1,40})/|/(?:builds|environments)-v\d{1,2}/\.tmp\w{1,40}/"
)
#: What is imported there: not the torch that the user has.
_TESTS = lazily(r"-c 'import |\bexport LD_LIBRARY_PATH=|\bfa-forensics inspect |\bpip list\b"
                    r"|^ldd |\binstall \"nvidia-|^readelf ")  # fmt: skip


def in_build_environment(answer: Answer, seen: Seen) -> Answer | None:
    """The answer with commands that can work after the build; None for files of another place."""
    file = seen.mention.file or ""
    found = _ISOLATED.search(file)
    if found is None or answer.code != "FA204":
        return None
    who = "pip" if found["pip"] else "uv"
    what = _what(seen)
    head = "python -m pip" if found["pip"] else "uv pip"
    isolated = f"{head} install --no-build-isolation --no-cache-dir {what}"
    kept = (c for c in answer.help if not _TESTS.search(c))
    again = f"env -u LD_LIBRARY_PATH {head} install --no-cache-dir {what}"
    helps = (again, isolated, "echo $LD_LIBRARY_PATH", *kept)
    cause = answer.cause + (
        f" The file lies in an isolated build environment of {who}, into which a torch of its own "
        "was installed for this build: LD_LIBRARY_PATH holds there too, and its older copy was "
        "found before that wheel's."
    )
    notes = (
        f"{who} removes that directory when the build ends and gives the next one another name: "
        "neither a path in it nor a look at that file is of use, and what import torch does in the "
        "environment itself says nothing of it.",
        "The first command builds again without LD_LIBRARY_PATH. The second builds with the torch "
        "that is installed instead of fetching one: there python -c 'import torch' has to work, "
        "and what the build needs besides (setuptools, ninja) has to be installed before.",
        *(n for n in answer.notes if not n.startswith("torch ")),
    )
    return replace(answer, cause=cause, help=helps, notes=notes)


def _what(seen: Seen) -> str:
    """What was being installed, as far as the text tells: ``-e .``, or a package's name."""
    if seen.mention.detail.get("editable"):
        return "-e ."
    names = [key.partition(":")[2] for key in seen.versions if key.startswith(("named:", "pkg:"))]
    left = [n for n in dict.fromkeys(names) if n not in _BROUGHT and not n.startswith("nvidia")]
    if len(left) != 1:
        return "WHAT_WAS_INSTALLED"
    version = seen.versions.get(f"pkg:{left[0]}", "")
    return shlex.quote(f"{left[0]}=={version}" if version else left[0])


#: What a build brings into its environment.
_BROUGHT = ("torch", "torchvision", "torchaudio", "triton", "numpy", "setuptools", "pip", "wheel",
            "ninja", "pytorch", "pytorch-cuda", "cudatoolkit", "uv", "cublas")  # fmt: skip
