"""Answers where torch and a package of its family are builds for different CUDA versions."""

from __future__ import annotations

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.python_api import has_partners, partner_of, torch_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import inspect_package, package_in, version_of
from fa_forensics.why.texts.python.pairs import LABEL_OF_TORCH, beside_installed, cuda_of, kept_note
from fa_forensics.why.texts.python.project_build import of_a_project

KIND, CODE = "wrong-torch", "FA602"
#: torch's own index; the tag of a build comes behind it.
#: Packages that are published once for each CUDA on torch's own index.
FAMILY = ("torchvision", "torchaudio", "torchcodec")


def majors_differ(seen: Seen) -> Answer:
    """A package's own check: it and torch are built with different CUDA versions."""
    detail = seen.mention.detail
    package = (detail.get("package") or package_in(seen) or "torchvision").lower()
    theirs = (detail.get("package_cuda") or "").rstrip(".")
    mine = (detail.get("torch_cuda") or "").rstrip(".") or seen.torch_cuda
    cause = f"{package} and torch are built with different CUDA versions"
    if theirs and mine:
        cause += f": {package} with {theirs}, torch with {mine}"
    from fa_forensics.rules.remedy import row_of

    row = None if package in FAMILY else row_of(package)
    if row is not None and row["source_build"]:
        return of_a_project(seen, row, package, cause, mine or "")
    cause += ". Most often they came from different indexes."
    helps, notes = _from_torchs_index(seen, package, cuda_label(mine or ""))
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="high",
        help=(_both_builds(seen, package), *helps), notes=notes,
    )  # fmt: skip


def _both_builds(seen: Seen, package: str) -> str:
    """Print torch's release and CUDA, and the release of the package, which ends in its build."""
    return (
        f"{seen.python} -c 'import torch, importlib.metadata as m; print(torch.__version__, "
        f'torch.version.cuda, m.version("{package}"))\''
    )


def _release(seen: Seen, package: str) -> str:
    """The release of a package that goes with torch: by torch's, else the one that is there."""
    torch = (seen.torch or "").partition("+")[0]
    own = str(version_of(seen, package) or "").partition("+")[0]
    fitting = partner_of(package, torch) if torch else None
    known = own if own and torch_of(package, own) is not None else ""
    return fitting or known


def _from_torchs_index(
    seen: Seen, package: str, tag: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the package's build for torch's CUDA, else both from one index."""
    from fa_forensics.why.texts.gpu.jetson_text import is_jetson, jetpack_of

    release = _release(seen, package)
    jetpack = jetpack_of(seen) if is_jetson(seen) else None
    served = jetpack is not None and not jetpack["torch"]  # by torch's own index
    if package in _SOURCES and is_jetson(seen) and not served:
        return _on_a_jetson(seen, package, release)
    index = index_option(tag or "cuXYZ")
    wants = "" if tag else LABEL_OF_TORCH
    if release:
        note = (
            f"torch stays as it is: {package} {release} is taken in its build for torch's CUDA. "
            "The package index has one build of each release, for Linux with one CUDA and for "
            "Windows without any, so that an install from there brings the same file again."
        )
        command = (
            f"{seen.pip} install --force-reinstall --no-cache-dir --no-deps "
            f'"{package}=={release}"{index}'
        )
        return (command,), (note, *((wants,) if wants else ()))
    note = (
        f"Both are taken from one index, so that they are of one build. Where torch is to stay, "
        f"the release of {package} for it, with == behind its name and --no-deps, is enough. The "
        "package index has one build of each release, for Linux with one CUDA and for Windows "
        "without any."
    )
    command = f"{seen.pip} install --force-reinstall --no-cache-dir torch {package}{index}"
    return (command,), (note, *((wants,) if wants else ()))


def not_for_backend(seen: Seen, operator: str, package: str | None, backend: str) -> Answer:
    """``Could not run 'torchvision::nms' with arguments from the 'CUDA' backend``."""
    if operator.startswith(("aten::", "prim::", "prims::")):
        return _of_torch(seen, operator, backend)
    name = package or "the package"
    what = operator or "The operator"
    if backend != "CUDA":
        return seen.answer(
            KIND, CODE,
            f"{what} is registered, but not for {backend}: the library of {name} that is loaded "
            f"has no code for it, as it was built, or {name} has none at all. The tensors are on "
            f"{backend}.",
            owner=package, direction="none", confidence="medium",
            help=((inspect_package(seen, package),) if package else (seen.inspect_command(),)),
            notes=("Where the package has no code for it in any build, the tensors have to be on "
                   "another device when the operation is called (.cpu(), .cuda()).",),
        )  # fmt: skip
    cause = (
        f"{what} is registered, but not for CUDA: the {name} that is loaded was built without "
        "CUDA, and the tensors are on the GPU, so that torch is a build with it."
    )
    if package in FAMILY or has_partners(package):
        tag = cuda_label(cuda_of(seen.torch or "") or seen.torch_cuda or "")
        helps, notes = _from_torchs_index(seen, str(package), tag)
        return seen.answer(
            KIND, CODE, cause, owner=package, direction="none", confidence="medium",
            help=(_both_builds(seen, str(package)), *helps), notes=notes,
        )  # fmt: skip
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="medium",
        help=((inspect_package(seen, package),) if package else (seen.inspect_command(),)),
        notes=(f"A build of {name} with CUDA takes its place: its wheel for torch's CUDA, or one "
               "from its source where nvcc and CUDA_HOME are there (FORCE_CUDA=1 where no GPU is "
               "seen).",),
    )  # fmt: skip


def _of_torch(seen: Seen, operator: str, backend: str) -> Answer:
    """An operator of torch's own."""
    cpu = "+cpu" in (seen.torch or "")
    cause = f"{operator} is torch's own operator, and this torch has no code of it for {backend}."
    if backend == "CUDA":
        cause += (
            " A build of torch for the CPU has none for CUDA at all: the tensors, or what was "
            "loaded, are meant for a GPU."
        )
    else:
        cause += (
            " No extension and no release that is missing plays a part: the operator does not "
            f"exist for tensors of that kind ({backend}) in this release."
        )
    ask = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.cuda.is_available())'"
    )
    return seen.answer(
        "wrong-torch" if backend == "CUDA" else "api-change",
        "FA601" if backend == "CUDA" else "FA881", cause, owner="torch", direction="none",
        confidence="high" if cpu and backend == "CUDA" else "medium", help=(ask,),
        notes=(
            ("None in the first line is a build without CUDA: the same release from torch's own "
             "index for CUDA takes its place."
             if backend == "CUDA"
             else "Tensors of another kind (dense, on the CPU, not quantized) or a newer torch are "
             "the ways out."),
        ),
    )  # fmt: skip


_SITE = lazily(r"(?P<site>\S{1,300}/(?:site|dist)-packages)/(?P<top>\w{1,60})/")


#: Where the sources of torch's companions are; their releases are the tags vX.Y.Z.
_SOURCES = {"torchvision": "pytorch/vision", "torchaudio": "pytorch/audio"}


def _on_a_jetson(seen: Seen, package: str, release: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): compile the package for NVIDIA's torch, which has to stay."""
    tag = f"v{release}" if release else "vX.Y.Z"
    unknown = (
        "vX.Y.Z is the tag of the release that goes with torch: torch 2.4.0 has torchvision 0.19.0 "
        "and torchaudio 2.4.0, torch 2.5.0 has 0.20.0 and 2.5.0, and so on.",
    )
    return (
        f"{seen.pip} uninstall -y {package}",
        f"FORCE_CUDA=1 MAX_JOBS=2 {seen.pip} install -v --no-build-isolation --no-deps "
        f"git+https://github.com/{_SOURCES[package]}@{tag}",
    ), (
        f"On a Jetson torch stays as it is: its CUDA comes with JetPack, and what pip gets of "
        f"{package} from the package index, or from torch's own index, is a build for the CPU or "
        "for servers, and brings another torch with it. The last command compiles "
        f"{package} with CUDA against the torch that is here (nvcc and CUDA_HOME of the JetPack, "
        "setuptools and ninja have to be there), and takes long. A wheel of "
        f"{package} that was made for this JetPack, Python and torch, where NVIDIA or the "
        "community has one, takes its place.",
        *(() if release else unknown),
    )


def from_two_places(seen: Seen, what: str, package: str | None) -> Answer | None:
    """torch and the package lie in two directories of packages; None where the text shows one."""
    found = _SITE.match(seen.mention.detail.get("frame", ""))
    others = [p for p in seen.paste.places if found is not None and p != found["site"]]
    if found is None or package is None or len(others) != 1:
        return None
    torchs, other = found["site"], others[0]
    if found["top"] != "torch":
        torchs, other = other, torchs
    cause = (
        f"Two installations are mixed: {package} lies in {other}, and torch is taken from "
        f"{torchs}. The compiled library of {package} was built for the torch beside it "
        f"and did not load in the other one, so that nothing registered {what}."
    )
    user = next((place for place in (torchs, other) if "/.local/" in place), "")
    look = (
        f"{seen.python} -c 'import torch, importlib.metadata as m; d = m.distribution("
        f'"{package}"); print(torch.__version__, torch.__path__[0], d.version, '
        'd.locate_file(""))\''
    )
    helps = [look]
    notes = []
    if user:
        helps.append(f"PYTHONNOUSERSITE=1 {look}")
        notes.append(
            "A directory below ~/.local goes before those of an environment. With "
            "PYTHONNOUSERSITE=1 Python leaves it out: where the second command then prints a pair "
            "of one directory, the program is to be started with that variable, or what lies "
            "below ~/.local is to be removed (pip uninstall, by a Python outside the environment)."
        )
        notes.append(
            "Where the second command finds no torch, the environment has none of its own: torch "
            f"and {package} have to be installed there together."
        )
    again, told = _beside_torch(seen, package)
    helps += ("export PYTHONNOUSERSITE=1", *again) if user and again else again
    notes += told
    return seen.answer(
        KIND, "FA607", cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _beside_torch(seen: Seen, package: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the package for the torch of its own directory, which stays as it is."""
    if seen.torch and _release(seen, package):
        return _from_torchs_index(
            seen, package, cuda_label(cuda_of(seen.torch) or seen.torch_cuda or "")
        )
    if package not in FAMILY or on_windows(seen):
        return (), (f"{package} has to be installed in the directory of the torch that runs.",)
    return beside_installed(seen, package), (kept_note(package),)


ANSWERERS: dict[str, Answerer] = {"cuda-majors-differ": majors_differ}
