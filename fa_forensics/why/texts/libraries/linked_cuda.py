"""A name of a CUDA library that the linker does not find in the version that is asked for."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.nvshmem_text import linked_nvshmem

#: Owners whose wheels have the CUDA toolkit's own number.
_NUMBERED = ("cudart", "nvrtc", "nvJitLink", "cupti")
_NUMBERED_12 = ("cublas", "cublasLt")
_FIRST = lazily(r"-cu(?P<line>\d\d) (?P<version>\d{1,2}\.\d{1,2})\.")


def linkers_cuda(seen: Seen, answer: Answer, version: str) -> Answer:
    """One soname stands for several CUDA releases: the linker takes an earlier one, or none."""
    owner = answer.owner or ""
    if owner == "nvshmem":
        return linked_nvshmem(seen, answer)
    title, stem = title_of(owner), version.split(".so")[0]
    since = _since(answer, owner, version)
    needing = (seen.mention.file or "").rsplit("/", 1)[-1] or "A library on the link line"
    cause = f"{needing} needs {answer.symbol or 'the name'} in {version}."
    if since:
        cause += (
            f" It is in {title} since CUDA {since}, and that soname stands for every CUDA "
            f"{since.split('.')[0]}: what needs it was built with CUDA {since} or newer, and the "
            f"{version} that the linker takes is most likely an older one."
        )
    else:
        cause += " The linker takes an older copy of that library, most likely."
    older = _older(seen, since)
    if older:
        cause += f" The text has CUDA {older}, whose copy lacks it."
    cause += (
        f" Where no copy is taken at all, -l{stem.removeprefix('lib')} is not on the link line and "
        "its directory not among those of -Wl,-rpath-link."
    )
    wanted = f"{since}" if since else "X.Y"
    return replace(
        answer, cause=cause, direction=NEWER if since else UNKNOWN, confidence="medium",
        help=(
            f"find / -name {shlex.quote(f'{stem}.so*')} -not -path '/proc/*' 2>/dev/null; "
            "ls -d /usr/local/cuda*",
            f"cmake -S . -B build -DCUDAToolkit_ROOT=/usr/local/cuda-{wanted} "
            f"-DCUDA_TOOLKIT_ROOT_DIR=/usr/local/cuda-{wanted}",
            "command -v ld gcc; echo LIBRARY_PATH=$LIBRARY_PATH",
        ),
        notes=(_ways(seen, since), "Libraries need one another: the first name that is missing is "
               "the one to look at. The driver has no part in this."),
    )  # fmt: skip


def _ways(seen: Seen, since: str | None) -> str:
    """What puts it right: one toolkit for all, that of torch where torch is linked with."""
    newer = f", {since} or newer of that major version" if since else ""
    if "torch" in (seen.mention.file or "") or "torch" in seen.mention.line or seen.torch:
        return (
            "Two ways lead out: link with the toolkit of the CUDA that torch (libtorch) was built "
            f"with{newer}, in a new build directory; or take the libtorch for the CUDA that is "
            "installed."
        )
    return (
        "All of CUDA's libraries on the link line are to be of one toolkit, whose directory comes "
        f"first{newer}: remove the other one's from the link line, LIBRARY_PATH and "
        "/etc/ld.so.conf.d, and build in a new directory."
    )


def _since(answer: Answer, owner: str, version: str) -> str | None:
    """The first CUDA release with the name, of the major version that the soname has."""
    known = cuda_name_since(owner, answer.symbol or "")
    if known is not None:
        return known
    major = re.search(r"\.so\.(\d{1,2})", version)
    if major is None or owner not in (*_NUMBERED, *(_NUMBERED_12 if major[1] != "11" else ())):
        return None
    lines = {m["line"]: m["version"] for m in _FIRST.finditer(" ".join(
        (answer.interval or "", *(f"{one}." for one in answer.exported_by))))}  # fmt: skip
    return lines.get(major[1])


def _older(seen: Seen, since: str | None) -> str:
    """A CUDA of the text that is older than the name."""
    told = re.findall(r"\bCUDA (\d{1,2}\.\d)\b", " ".join(seen.versions.get(k, "") and
                      f"CUDA {seen.versions[k]}" for k in ("cuda", "torch_cuda")))  # fmt: skip
    older = [one for one in told if since and parse_cuda(one) < parse_cuda(since)]
    return str(older[0]) if older else ""
