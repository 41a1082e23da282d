"""A missing name of a CUDA library where torch was built from source: no wheel has a part in it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.nvidia.cuda_origin import BESIDE, OLDER_THAN_THAT, OUTSIDE_TOOLKITS
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted

#: What is said of pip's torch and its wheels.
ABOUT_WHEELS = lazily(
    r"torch's wheels need no|Of\sthe\storches\son\sthe\spackage\sindex\s|torch asks for "
    r"|A newer release of the same major version serves torch|nvidia-[\w-]{3,30}(?:,| and) nvidia-"
)
WHEEL_OF_TORCH = lazily(r"(?:; |, and )nvidia-[\w-]{3,40} [\d.]{3,20}, brought by torch [^\n]+")
#: The first of NVIDIA's wheels without a CUDA in its name that has the name.
_SINCE_13 = lazily(r"nvidia-[a-z-]{3,30} (?P<version>13\.\d{1,2})\.[\d.]{1,9} and later")


#: Where such a torch lies, asked without importing it.
_TORCH_LIB = (
    "$({python} -c 'import importlib.util as u; "
    'print(u.find_spec("torch").submodule_search_locations[0])\')/lib/{name}'
)


def of_own_torch(answer: Answer, seen: Seen) -> Answer | None:
    """The answer for a torch that was built from source; None for any other."""
    asked = seen.mention.version or ""
    if "flag:torch-source" not in seen.versions or seen.mention.detail.get("conda"):
        return None
    if answer.owner in OUTSIDE_TOOLKITS or not asked.startswith("lib") or ".so" not in asked:
        return None
    if "/nvidia/" in (seen.mention.file or ""):
        return None  # a wheel's library, whoever built torch
    name, stem = answer.symbol or "", asked.split(".so")[0]
    told = re.match(r"\d{1,2}\.\d{1,2}", (seen.versions.get("cuda") or "").strip())
    cuda = told[0] if told else ""
    cause = WHEEL_OF_TORCH.sub(".", answer.cause.replace(BESIDE, ""))
    cause = cause.replace(OLDER_THAN_THAT, ".")
    cause += _two_causes(answer, asked, cuda)
    home = f"/usr/local/cuda-{cuda}" if cuda else "/usr/local/cuda"
    there = _file(seen)
    helps = (
        f"ldd {there} | grep {stem}",
        f"nm -D --defined-only {home}/lib64/{stem}.so | grep {shlex.quote(name)}",
        f"grep -rn {shlex.quote(name)} {home}/include/ | head -3",
        "echo $LD_LIBRARY_PATH; ls -d /usr/local/cuda*",
        f"fa-forensics inspect {there}",
    )
    note = (
        "Where grep finds the declaration and nm prints nothing, that toolkit is the fault: torch "
        "is built again, from an empty build directory, with CUDA_HOME at a toolkit whose library "
        "has the name, or at one whose headers do not declare it yet. Where nm prints it, the copy "
        "that ldd shows has to give way to that one (LD_LIBRARY_PATH, ldconfig)."
    )
    kept = tuple(n for n in answer.notes if not ABOUT_WHEELS.match(n))
    return replace(answer, cause=cause, help=helps, notes=(note, *kept), confidence="medium")


def _two_causes(answer: Answer, asked: str, cuda: str) -> str:
    """An older copy, or a toolkit that is at odds with itself; with a blank before it."""
    title = title_of(answer.owner or "")
    since = _SINCE_13.search(answer.interval or "")
    words = (
        f" torch is built from source here: its {title} is that of the toolkit it was built with, "
        f"and of no wheel. Two causes fit: another {asked} than the toolkit's is loaded (an older "
        "toolkit's, a wheel's, the system's); or the toolkit is at odds with itself, and its "
        "headers declare a name that its own library does not export, as those of a preview can."
    )
    if cuda and since and parse_cuda(cuda) >= parse_cuda(since["version"]):
        words += (
            f" The text has CUDA {cuda}, which is newer than the first with the name: where its "
            "own copy is the one that is loaded, that copy is faulty and not too old."
        )
    return words


def _file(seen: Seen) -> str:
    """The failing file for a shell; of torch's own, Python knows the place."""
    file = seen.mention.file or ""
    if file.startswith("/") and "..." not in file:
        return quoted(file)
    if "torch/lib/" in file:
        return _TORCH_LIB.format(python=seen.python, name=file.rsplit("/", 1)[-1])
    return "/path/to/the/failing.so"
