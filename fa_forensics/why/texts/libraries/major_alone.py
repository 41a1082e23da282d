"""A CUDA library that is not found, where the text does not tell the CUDA of torch."""

from __future__ import annotations

import re

from fa_forensics.atlas.builds import interval_text, minor_of
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.facts.python_api import brings_torch, unpinned_torch
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.attached import installed_release
from fa_forensics.why.texts.libraries.brought_text import (
    known_releases,
    on_path,
    there_already,
    wheel_of,
    wheels_of,
)
from fa_forensics.why.texts.libraries.exact_cuda import of_exact_cuda, of_pypi, path_of_exact
from fa_forensics.why.texts.libraries.in_wheels import is_late, words_of_late
from fa_forensics.why.texts.libraries.needing import (
    needing,
    package_needing,
    package_of_text,
    rebuild_commands,
    rebuild_notes,
    who_needs_it,
)
from fa_forensics.why.texts.libraries.torch_itself import perhaps_torch

KIND, CODE = "missing-library", "FA202"

EXACT = (
    "Up to CUDA 10 the minor version is a part of the name too: 10.0, 10.1 and 10.2 cannot stand "
    "in for one another, and giving one the name of another mixes two CUDA runtimes."
)
ONE_RUNTIME = (
    "The major version is in a library's name because one cannot stand in for another. Installing "
    "only that library, or giving another the name, would put two CUDA runtimes into one process."
)


#: The same where the CUDA of torch is not told.
_TWO_RUNTIMES = (
    "The major version is in a library's name because one cannot stand in for another. Where torch "
    "is for another CUDA, installing only that library, or giving another the name, would put two "
    "CUDA runtimes into one process."
)


def major_alone(
    seen: Seen, soname: str, owner: str | None, major: str | None, bringing: tuple[str, ...]
) -> Answer:
    """torch's own CUDA is not told, or the name does not tell one."""
    detail = seen.mention.detail
    told = seen.mention.file or detail.get("import") or detail.get("by")
    named = told or package_of_text(seen)
    if major is None and bringing and not told:
        if named and not detail.get("conda") and not detail.get("board"):
            return _of_a_package(seen, soname, owner)
        return perhaps_torch(seen, soname, owner, bringing)
    exact = exact_toolkit(soname)
    wanted = exact or major
    who = needing(seen) if named else "what was imported"
    of = f"a CUDA {wanted} build" if wanted else "built for CUDA"
    cause = f"{who[0].upper()}{who[1:]} is {of}: it needs {soname}, which is not found."
    cause += _causes(seen, soname, owner, major, exact, bool(bringing))
    notes = [EXACT if exact else _TWO_RUNTIMES] if major else []
    if bringing:
        notes.append(_which_torches(seen, soname, bringing, major))
    notes += _about_toolkit(seen, wanted)
    if not named and exact:
        notes.append(_torch_itself(exact))
    if major and not exact and (floor := driver_table().floors.get(int(major))):
        notes.append(f"CUDA {major} code needs the NVIDIA driver {floor} or newer.")
    rebuilt = rebuild_commands(seen)
    # The toolkit of an old CUDA only helps an old torch: a build that fits goes before it.
    toolkit = f"{seen.versions.get('cuda', '').strip()}."
    fits = exact is not None and (toolkit.startswith(f"{exact}.") or not (rebuilt and toolkit[1:]))
    helps = (*rebuilt, *(path_of_exact(exact) if exact and fits else ()))
    both = _with_its_torch(seen, major, exact)
    helps = (*both, *helps)
    if both and rebuilt and "--index-url" in rebuilt[0]:
        notes.append(_TWO_WAYS)
    late = wheel_of(seen, soname, major) if major and is_late(seen, owner) else None
    if late is not None:
        helps = (f"{seen.pip} show {late}", on_path(seen, late), *helps)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              *helps, who_needs_it(seen)),
        notes=(*notes, *rebuild_notes(seen), *there_already(seen)),
    )  # fmt: skip


def _causes(
    seen: Seen, soname: str, owner: str | None, major: str | None, exact: str | None, brought: bool
) -> str:
    """What can be wrong, with a blank before it."""
    cause = ""
    if exact:
        cause = of_exact_cuda(seen, exact) + of_pypi(seen, exact)
    elif major and seen.mention.detail.get("torch_loads"):
        cause = (
            " torch loads that file, so that it is in the process already: it is a build for "
            "another CUDA major version, or for the CPU, and a build of the package for that has "
            "to replace this one. The first command says which; where it says CUDA "
            f"{major}, torch's own wheel with that library is not installed whole."
        )
    elif major and is_late(seen, owner):
        cause = (
            f" Two causes fit: torch is a build for another CUDA major version (then a build of "
            f"the package for torch's CUDA has to replace this one), or it is one for CUDA {major} "
            f"and its wheel with {soname} is there, where the loader does not look by itself: "
            f"{words_of_late(owner)}. Then that directory has to be on LD_LIBRARY_PATH when Python "
            "starts. The first command tells them apart."
        )
        cause += of_pypi(seen, major)
    elif major and brings_torch(package_needing(seen)):
        cause = (
            f" {package_needing(seen)} imports torch before it, so that torch is most likely a "
            "build for another CUDA major version, or for the CPU: a build of the package for "
            f"torch's CUDA has to replace this one, or torch has to be one for CUDA {major}, as "
            "the release that the package asks for is on the package index. The first command says "
            f"which; where it says CUDA {major}, torch's own wheel with that library is not "
            "installed whole."
        )
        cause += of_pypi(seen, major)
    elif major:
        cause = (
            f" Two causes fit: torch is a build for another CUDA major version (then a build of "
            f"the package for torch's CUDA has to replace this one), or it is one for CUDA {major} "
            "and was not imported first. The first command tells them apart."
        )
        cause += of_pypi(seen, major)
        if major == "11" and owner not in ("cublas", "cublasLt", "cudnn"):
            cause += _INSIDE_11
    elif brought:
        cause = (
            " torch loads it itself where it brings it along: either torch was not imported first, "
            "or this torch is another than the file was built for."
        )
    return cause + (_STALE if seen.mention.detail.get("stale") else "")


def _with_its_torch(seen: Seen, major: str | None, exact: str | None) -> tuple[str, ...]:
    """Install a package again with the torch that it asks for, which is one for its own CUDA."""
    package = package_needing(seen)
    other = seen.mention.detail.get("conda") or seen.mention.detail.get("board")
    if package is None or not brings_torch(package) or major is None or int(major) < 12:
        return ()
    if exact or other or {"ngc", "rocm", "flag:torch-source", "flag:jetson"} & set(seen.versions):
        return ()
    version = seen.versions.get(f"pkg:{package}", "").partition("+")[0]
    wanted = f'"{package}=={version}"' if version else installed_release(seen, package)
    own = unpinned_torch(package, version)
    if own is not None:  # pip takes the newest torch otherwise, which the wheel is not for
        wanted += f' "torch=={minor_of(own)}.*"'
    return (f"{seen.pip} install --force-reinstall --no-cache-dir {wanted}",)


#: Said of the command without and the one with --index-url.
_TWO_WAYS = (
    "The two commands with pip install are two ways, of which one is enough: the first keeps the "
    "package's release and brings the torch that it asks for, the one with --index-url keeps torch "
    "and takes the package's build for it."
)
#: Builds before NVIDIA's wheels: 1.13.0 on the package index, 2.2.0 on PyTorch's for CUDA 11.
_INSIDE_11 = (
    " A third one fits too: PyTorch's builds for CUDA 11 up to torch 2.1 (+cu113, +cu118) have "
    "this library inside for torch alone, so that importing torch first does not bring it: it has "
    "to come from a CUDA 11 toolkit, whose lib64 is on LD_LIBRARY_PATH when Python starts."
)

#: torch 2.1.0+cu121 is a wheel of 2.2 GB, 2.2.0+cu121 one of 0.8 GB that asks for NVIDIA's.
_INSIDE_12 = ", and 2.1's has it inside for torch alone"

_STALE = (
    " ninja had nothing to do: the file is an earlier build, which was made with another CUDA and "
    "is taken as it is. Its build directory (in ~/.cache/torch_extensions, or the one that the "
    "program gives) is to be removed, and it is built again at the next start."
)


def _which_torches(seen: Seen, soname: str, bringing: tuple[str, ...], major: str | None) -> str:
    """The torches that bring a library: PyPI's by release, those of the indexes by their CUDA."""
    span = interval_text(bringing, known_releases(seen))
    note = f"Of PyPI's torches for CUDA {span} bring{'s' if len(bringing) == 1 else ''} {soname}"
    if major is None or int(major) < 12:
        return f"{note}."  # the builds for CUDA 11 have it inside, under a name with a hash
    own = f"{note}; of those on PyTorch's own indexes, every build for CUDA {major}"
    return f"{own} from torch 2.2.0 on does{_INSIDE_12}." if major == "12" else f"{own} does."


def _torch_itself(cuda: str) -> str:
    """What is said of a library of one CUDA alone where nobody is named who asks for it."""
    return (
        "The text does not say who asks for it. Where import torch alone fails so, torch itself is "
        f"the build for CUDA {cuda}: one of conda (cudatoolkit={cuda} has the library), or one for "
        "a system of another time; on a Jetson NVIDIA's wheel for the JetPack that is there has to "
        "replace it."
    )


def _about_toolkit(seen: Seen, wanted: str | None) -> list[str]:
    """What the CUDA that the text names besides torch's says: nothing, mostly."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    if not toolkit or not wanted or f"{toolkit}.".startswith(f"{wanted}."):
        return []
    return [
        f"The text has CUDA {toolkit}. Where that is torch's (the first command), a build of the "
        "package for it has to replace this one. Where it is the system's, it brings no such "
        "library; a build here takes its nvcc, which has to be of torch's CUDA major version "
        "(CUDA_HOME names the toolkit)."
    ]


#: The month of torch 2.1.0, the first on the package index that is one for CUDA 12.
_CUDA_12 = "2023-10"


def _of_a_package(seen: Seen, soname: str, owner: str | None) -> Answer:
    """NCCL and the like, which a package that the text names needs, and torch brings or has inside.

    A torch with NCCL inside has no such file: conda's up to 2.5 (pytorch#132617), and those for
    CUDA 11 of PyTorch's own indexes of 2.0 and 2.1.
    """
    who = needing(seen)
    date = seen.versions.get("date", "")
    cuda = (seen.torch_cuda or "").split(".")[0] or ("11" if "" < date < _CUDA_12 else "12")
    wheel = wheel_of(seen, soname, cuda) or wheel_of(seen, soname, "12") or ""
    inside = "conda's, and older ones of PyTorch's own indexes"
    own = ""
    if soname.startswith("libcudnn") and soname.endswith(".so.8"):
        inside = "conda's"
        own = " PyTorch's builds for CUDA 11 up to torch 2.1 have it in torch/lib by this name."
    cause = (
        f"{who[0].upper()}{who[1:]}, or torch itself, needs {soname}, which is not found. It "
        f"comes with {wheels_of(seen, soname)}. pip's torch brings one of these and loads it when "
        f"it is imported; a torch that has the library inside ({inside}) brings no such file, and "
        "then it has to be installed, with its directory on the loader's path."
        f"{own} Where import torch alone fails in this way, it is torch that needs it, "
        "and its own wheel that is missing or not whole."
    )
    word = soname.removeprefix("lib").split(".so")[0].split("_")[0]
    helps = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
        f"{seen.pip} list | grep -iE '^torch|{word}'; ldconfig -p | grep {word}",
    ]
    if wheel:
        number = re.search(r"libcudnn\w{0,40}\.so\.(\d{1,2})$", soname)
        pinned = f'"{wheel}=={number[1]}.*"' if number is not None else wheel
        helps += [f"{seen.pip} install {pinned}", on_path(seen, wheel)]
    notes = [
        "Where the second command shows the wheel, it is there already, and only its directory "
        "has to be on LD_LIBRARY_PATH when Python starts.",
        f"The name has no CUDA in it: the wheel is to be the one for torch's CUDA, of "
        f"{wheels_of(seen, soname)}. conda's package of the library and the system's serve too.",
    ]
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*helps, who_needs_it(seen)), notes=(*notes, *there_already(seen)),
    )  # fmt: skip
