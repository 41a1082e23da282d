"""The release of a package that goes with a torch, and the index that has it for torch's CUDA."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.python_api import brings_torch, ended_at, is_older, partner_of, torch_of
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.python.second_torch import (
    SECOND_NOTE,
    second_commands,
    second_torch,
    second_words,
)

#: Published once for each CUDA by PyTorch; the package index has one build of each release.
_BY_CUDA = frozenset(("torch", "torchvision", "torchaudio", "torchcodec", "xformers"))
#: The first torch whose xformers is on torch's own index: 0.0.22.post1 and later, of October 2023
#: (facebookresearch/xformers pull request 876). Older releases are on the package index alone.
XFORMERS_SINCE = "2.1.0"
#: The last torch with an xformers of its own, and the first xformers for many (its metadata).
LAST_OF_ONE, OF_MANY = "2.10.0", "0.0.35"
#: Where the torch is none of the package index, or is bound to another package: it has to stay.
_OWN_TORCH = ("pkg:torch-npu", "pkg:torch-xla", "rocm", "ngc", "flag:jetson", "flag:torch-source")
#: Builds that an index of torch has, as its version ends.
_TAG = lazily(r"cu\d{2,3}|cpu|rocm[\d.]+|xpu")


def index_tag(seen: Seen, package: str, torch: str) -> str:
    """The index of torch that has a package for this build of torch; "" where pip's own does.

    On Windows the package index has torch and its family without CUDA alone, and xformers for
    the CUDA that torch on Linux has there.
    """
    release, _, tag = torch.partition("+")
    if package not in _BY_CUDA or not _TAG.fullmatch(tag):
        return ""
    if package == "xformers" and is_older(release, XFORMERS_SINCE):
        return ""
    if tag == "cpu":
        return "" if package == "xformers" or on_windows(seen) else tag
    if on_windows(seen) and package != "xformers":
        return tag
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None else None
    return "" if build is not None and build.cuda == cuda_of(torch) else tag


def index_note(tag: str) -> tuple[str, ...]:
    """Why a command takes another index than pip's own."""
    if not tag:
        return ()
    return (
        f"The address ending in /{tag} is torch's own index for that build: the package index has "
        "one CUDA version of each release for Linux, and for Windows torch without CUDA alone.",
    )


#: What cuXYZ in an address stands for, where the text does not tell torch's CUDA.
LABEL_OF_TORCH = (
    "cuXYZ in the address is torch's CUDA, which torch.version.cuda prints: cu118 for 11.8, cpu "
    "for None."
)


def torch_with_cuda(seen: Seen, release: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the same release of torch in a build with CUDA."""
    cudas = published_cuda().get(".".join(release.split(".")[:2]), ())
    command = f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
    cuda = chosen_cuda(seen, cudas)
    return (f"{command}{of_cuda(cuda)}",), (*one_of_them(cuda, cudas), FROM_THERE_TOO)


FROM_THERE_TOO = "torchvision and torchaudio have to come from there too."


def chosen_cuda(seen: Seen, cudas: Sequence[str]) -> str:
    """One of the CUDAs that a torch has builds for: the text's own, else the newest; "" of none."""
    told = (".".join(seen.versions.get(key, "").split(".")[:2]) for key in _CUDAS)
    return next((one for one in told if one in cudas), cudas[-1] if cudas else "")


_CUDAS = ("torch_cuda", "index_cuda", "cuda")


def of_cuda(cuda: str) -> str:
    """The end of a pip command for a torch of a CUDA, which "" leaves open."""
    return index_option(cuda_label(cuda) or "cuXYZ")


def one_of_them(cuda: str, cudas: Sequence[str]) -> tuple[str, ...]:
    """Which other index a command with ``of_cuda`` may name."""
    if not cuda:
        return (
            "cuXYZ in the address is one of the CUDA releases that pytorch.org/get-started lists "
            "for that torch: cu118 for 11.8.",
        )
    others = " or ".join(f"/{cuda_label(one)}" for one in cudas if one != cuda)
    if not others:
        return ()
    return (
        f"That release has builds for other CUDA versions too: the address ends in {others} then. "
        "The driver has to serve the CUDA of the build (nvidia-smi prints the newest that it "
        "serves).",
    )


def cuda_of(version: str) -> str:
    """``12.6`` of ``2.6.0+cu126``; "" without."""
    return cuda_of_label(version.partition("+")[2])


def pair_command(seen: Seen, package: str) -> tuple[str, ...]:
    """Install the release of a package that goes with the torch that is there."""
    if gone := second_torch(seen, package):
        return second_commands(seen, package, gone)
    torch = seen.torch.partition("+")[0] if seen.torch else None
    if torch is None:
        return _both(seen, package)
    fitting = partner_of(package, torch)
    tag = index_tag(seen, package, seen.torch or "")
    if fitting is None or (version_of(seen, package) == fitting and not tag):
        return ()
    pinned = f'"{package}=={fitting}"'
    return (f"{seen.pip} install --force-reinstall --no-deps {pinned}{index_option(tag)}",)


def pair_notes(seen: Seen, package: str | None) -> tuple[str, ...]:
    """What ``pair_command`` needs to be told."""
    if second_torch(seen, package):
        return (SECOND_NOTE,)
    command = pair_command(seen, package) if package else ()
    if any('"torch==$(' in text for text in command):
        return (_KEPT.format(package=package),)
    needs = any("--index-url" in text for text in command)
    return index_note(index_tag(seen, package or "", seen.torch or "")) if needs else ()


def _both(seen: Seen, package: str) -> tuple[str, ...]:
    """Install a package and the torch that goes with it, where the text names no torch."""
    version = version_of(seen, package)
    built = torch_of(package, version) if version else None
    if built is not None:
        return (f'{seen.pip} install "torch=={built}" "{package}=={str(version).split("+")[0]}"',)
    if not brings_torch(package) or ended_at(package) is not None:
        return ()
    if any(key in seen.versions for key in _OWN_TORCH):
        return ()
    if package in ("torchvision", "torchaudio") and not on_windows(seen):
        return beside_installed(seen, package)
    return (f"{seen.pip} install --upgrade --no-cache-dir torch {package}",)


def beside_installed(seen: Seen, package: str) -> tuple[str, ...]:
    """Install the release of a package for the torch that is installed, which the text names not.

    The second command is for a shell of Linux or macOS.
    """
    kept = f"{seen.python} -c 'import importlib.metadata as m; print(m.version(\"torch\"))'"
    return (
        f"{seen.pip} uninstall -y {package}",
        f'{seen.pip} install --no-cache-dir {package} "torch==$({kept})"{index_option("cuXYZ")}',
    )


def kept_note(package: str) -> str:
    """What ``beside_installed`` does, and what cuXYZ stands for in it."""
    return _KEPT.format(package=package)


_KEPT = (
    "That keeps the torch that is there and takes the release of {package} for it: both can be the "
    "newest and still be of two indexes, which --upgrade does not change. cuXYZ in the address is "
    "torch's CUDA, as the end of torch.__version__ has it (+cu121), or cpu. Restart a notebook's "
    "runtime afterwards."
)


def pair_words(seen: Seen, package: str | None) -> str:
    """For which torch the package's release was built, and how that goes with the one that ran."""
    version = version_of(seen, package) if package else None
    built = torch_of(package, version) if package and version else None
    if built is None:
        return ""
    if package and (gone := second_torch(seen, package)):
        return second_words(seen, package, gone)
    version = str(version).partition("+")[0]
    torch = seen.torch.partition("+")[0] if seen.torch else None
    if torch is None:
        return f" {package} {version} was built for torch {built}, and needs that one."
    if partner_of(str(package), torch) is None:
        return (
            f" {package} {version} was built for torch {built}, and needs that one; no release of "
            f"it is known for torch {torch}, which the text names."
        )
    if torch == built and _of_package_index(seen, str(package)):
        return (
            f" {package} {version} is the release for torch {built}, but torch {seen.torch} is "
            f"another build than that of the package index, and {package} without "
            f"+{str(seen.torch).partition('+')[2]} behind its number most likely is the one from "
            "there: the releases agree, the builds do not."
        )
    if torch == built:
        return (
            f" {package} {version} is the release for torch {built}, so these versions agree: the "
            "Python that failed has other ones, or one of the two is a build for another CUDA."
        )
    return (
        f" {package} {version} was built for torch {built}, and torch {torch} ran: either another "
        "torch than the one that was installed with it is found first (~/.local, PYTHONPATH, "
        "conda beside pip), or one of the two was replaced."
    )


def _of_package_index(seen: Seen, package: str) -> bool:
    """Whether a package is told without a build, and the package index has none for this torch's.

    A package from torch's own index has the build behind its number, as torch has.
    """
    own = version_of(seen, package) or ""
    return "+" not in own and bool(index_tag(seen, package, seen.torch or ""))


def which_pair(seen: Seen, package: str) -> str:
    """Print which torch and which release of a package the Python of the failure has, and where."""
    return (
        f"{seen.python} -c 'import sys, torch, importlib.metadata as m; print(sys.executable, "
        f'torch.__version__, torch.__path__[0], m.version("{package}"))\''
    )
