"""An extension that is built for torch with CUDA, beside a torch that is built without."""

from __future__ import annotations

import re

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.needing import package_needing
from fa_forensics.why.torch_names.history import order_key

#: PyG's compiled packages, whose project has a page of wheels for each torch, and for the CPU.
_OF_PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv")
_PAGE = "https://data.pyg.org/whl/torch-{release}+cpu.html"
#: What stands before Python's own message where ctypes or torch.ops.load_library opened the file.
_OS_ERROR = lazily(r"\bOSError:")


def loaded_by_path(seen: Seen) -> bool:
    """Whether Python opened the file by its path: an import would have been an ImportError."""
    return bool(seen.mention.detail.get("ctypes") or _OS_ERROR.search(seen.mention.line))


def by_path(seen: Seen, soname: str) -> Answer:
    """A file that is loaded by its path: most often torch itself does that for an extension."""
    told = _of_conda(seen, soname)
    if told is not None:
        return told
    cause = (
        f"{soname} is a library of torch's CUDA builds, and a file that needs it is loaded by its "
        "path (an OSError, not an ImportError), as torch.ops.load_library does when torch is "
        "already there. Then this torch is a build without CUDA, or one for ROCm, and the "
        "extension is one for NVIDIA GPUs."
    )
    if on_cpu(seen):
        cause += (
            " The machine has no GPU, as the text says: the build of the extension for the CPU has "
            "to take the place of that one, and torch can stay."
        )
    else:
        cause += " It has to be a build for this torch, or torch one with CUDA."
    helps = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.version.hip)'"
    ]
    more, notes = cpu_ways(seen)
    return seen.answer(
        "wrong-torch", "FA601" if on_cpu(seen) else "FA607", cause,
        owner=owner_of_library(soname), direction=UNKNOWN, confidence="medium",
        help=(*helps, *more), notes=notes,
    )  # fmt: skip


def _of_conda(seen: Seen, soname: str) -> Answer | None:
    """conda's list has torch in a build for the CPU, beside an extension with CUDA."""
    detail = seen.mention.detail
    cpu, also = detail.get("conda_cpu", ""), seen.versions.get("torch_also", "")
    if not cpu:
        return None
    who = package_needing(seen) or "the extension"
    cause = (
        f"{soname} is a library of torch's CUDA builds. The torch that conda installs in the text "
        f"is pytorch {cpu} in a build for the CPU (cpu is in its build string), and {who} is a "
        "build with CUDA. The two have to be of one sort: torch with CUDA in that release, or "
        f"{who} without."
    )
    if also and also != cpu:
        cause += f" The text has torch {also} too, whose place conda's has taken."
    label = detail.get("conda_cu", "")
    cuda = f"{label[:-1]}.{label[-1]}" if label else ""
    channels = "-c pytorch -c nvidia"
    if order_key(cpu)[:2] > (2, 5):  # the last release of PyTorch's own channel
        channels, cuda = "-c conda-forge", ""
    more, notes = cpu_ways(seen)
    helps = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
        f'conda install {channels} "pytorch={cpu}=*cuda{cuda}*"',
    )
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=owner_of_library(soname), direction=NONE,
        confidence="high", help=(*dict.fromkeys((*helps, *more)),),
        notes=(
            "The first command with conda install brings torch with CUDA, which a GPU needs; the "
            "one with cpu in it brings the extension without. pip's torch beside conda's is to be "
            "removed before (pip uninstall torch).",
            *notes,
        ),
    )  # fmt: skip


def on_cpu(seen: Seen) -> bool:
    """Whether the text says that the machine has no GPU, or that only the CPU is to be used."""
    return "flag:cpu-only" in seen.versions


def cpu_ways(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the extension without CUDA, and torch with it."""
    names = _of_pyg(seen)
    toolkit = (
        "No toolkit, driver or path brings that library: it is a part of torch's CUDA builds. Two "
        "ways fit where torch.version.cuda is None: a build of the extension without CUDA (on a "
        "machine without an NVIDIA GPU), or torch with CUDA in the same release."
    )
    if not names:
        return (), (
            toolkit,
            "An extension that is compiled beside a torch without CUDA is built without it; "
            "ready-made wheels of such a build have +cpu behind the number.",
        )  # fmt: skip
    release = re.match(r"\d{1,2}\.\d{1,3}", seen.torch or "")
    page = _PAGE.format(release=f"{release[0]}.0" if release else "X.Y.0")
    helps = [
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary "
        f"{','.join(names)} {' '.join(names)} -f {page}"
    ]
    notes = [toolkit, f"The page has PyG's packages without CUDA for that torch: {page}."]
    if release is None:
        notes.append("In the address X.Y is the minor release of torch that the first command "
                     "prints.")  # fmt: skip
    of_conda = any(key in seen.versions for key in ("flag:conda", "flag:from-conda"))
    if of_conda or seen.mention.detail.get("conda_cpu"):
        helps.insert(0, "conda list | grep -iE 'torch|pyg|scatter|sparse|cuda'")
        wanted = " ".join(f'"py{name}=*=*cpu*"' for name in names)
        helps[-1] = f"conda install -c pyg {wanted}"
        notes[1:] = [
            "conda's packages of PyG name torch and CUDA in their build (py39_torch_1.10.0_cpu, "
            "..._cu113): the ones that end in _cpu go with a torch without CUDA."
        ]
    return tuple(helps), tuple(notes)


def _of_pyg(seen: Seen) -> tuple[str, ...]:
    """The packages of PyG that may be meant; () where the text is not of PyG."""
    name = (package_needing(seen) or "").replace("_", "-")
    if name in _OF_PYG:
        return (name,)
    told = tuple(
        one for one in _OF_PYG if f"pkg:{one}" in seen.versions or f"named:{one}" in seen.versions
    )
    if told:
        return told
    return _OF_PYG[:2] if "flag:pyg" in seen.versions else ()
