"""A CUDA library of torch that is missed by a package which imports torch itself."""

from __future__ import annotations

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.python_api import has_partners, partner_of
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import inspect_package
from fa_forensics.why.texts.libraries.cpu_extension import cpu_ways
from fa_forensics.why.texts.libraries.needing import (
    package_needing,
    rebuild_commands,
    rebuild_notes,
)
from fa_forensics.why.texts.python.pairs import chosen_cuda, of_cuda, one_of_them

#: Packages whose Python files import torch before any compiled file of theirs is opened.
_OWN = ("pytorch3d", "flash_attn", "mamba_ssm", "causal_conv1d", "deepspeed", "natten", "kaolin",
        "MinkowskiEngine", "auto_gptq", "exllamav2", "gsplat", "tinycudann", "torch_points_kernels",
        "torchvision", "torchaudio", "torchtext", "torchcodec", "torch_scatter", "torch_sparse",
        "torch_cluster", "torch_spline_conv", "torch_geometric", "xformers", "detectron2", "mmcv",
        "torchao", "fairseq")  # fmt: skip
_IN = lazily(rf"[/\\](?:site|dist)-packages[/\\](?P<package>{'|'.join(_OWN)})[/\\]")
_IMAGE = lazily(r"load\simage\sPython\sextension")


def imports_torch(seen: Seen) -> str:
    """The package that misses the library and imports torch itself; "" for another or none."""
    detail = seen.mention.detail
    if _IMAGE.search(seen.mention.line):
        return "torchvision"
    for text in (seen.mention.file or "", seen.mention.line, detail.get("frame", "")):
        found = _IN.search(text)
        if found is not None:
            return found["package"].replace("_", "-")
    found = _IN.search(detail.get("step", ""))
    if found is None:
        return ""
    # xformers imports flash-attn's module, and has imported torch by then.
    return package_needing(seen) or found["package"].replace("_", "-")


def without_its_cuda(seen: Seen, soname: str, package: str, with_cuda: bool) -> Answer:
    """The package is a build with CUDA; torch, which it imported before, has no such library."""
    cause = (
        f"Only CUDA builds of torch have {soname}. {package} imports torch itself before it opens "
        f"that file, so that no order of imports is wrong: {package} is a build with CUDA, and "
        "the torch that is loaded is one without."
    )
    if "+cpu" in (seen.torch or ""):
        cause += f" torch {seen.torch} is that one."
    code = "FA601"
    if with_cuda and seen.torch:
        code = "FA607"
        cause += (
            f" The text has torch {seen.torch}: then another torch than that one is "
            "loaded (the first command shows where it lies)."
        )
    command = (
        f"{seen.python} -c 'import torch, importlib.metadata as m; print(torch.__version__, "
        f'torch.version.cuda, torch.__path__[0], m.version("{package}"))\''
    )
    release = (seen.torch or "").partition("+")[0]
    fitting = partner_of(package, release) if release else None
    both = f"torch=={release} {package}=={fitting}" if fitting else f"torch {package}"
    get = f"{seen.pip} install --force-reinstall --no-cache-dir {both}"
    from_cpu = f"{seen.pip} install --force-reinstall --no-cache-dir {both}{index_option('cpu')}"
    notes = [
        "No toolkit, driver or path brings that library: it is a part of torch's CUDA builds, and "
        "is not to be copied from one."
    ]
    if has_partners(package):
        cudas = published_cuda().get(minor_of(release), ()) if release else ()
        cuda = chosen_cuda(seen, cudas)
        index = of_cuda(cuda) if on_windows(seen) else ""
        helps = [command, f"{get}{index}", from_cpu]
        notes.append(
            f"Either of the two: with the second command torch and {package} are builds with CUDA "
            "(on Linux; for Windows and arm they come from torch's own index for one CUDA), with "
            "the third both are builds for the CPU."
        )
        if index:
            notes += one_of_them(cuda, cudas)
    else:
        without, ways = cpu_ways(seen)
        helps = [command, *without, with_cuda_again(seen), inspect_package(seen, package)]
        notes += ways[1:] if without else ()
        notes.append(
            f"A CUDA build of the same torch release takes the place of this one, or {package} is "
            "built again on the torch that is there."
        )
        notes.append(OF_THE_INDEX)
    if _IMAGE.search(seen.mention.line):
        notes.append(
            "It is a warning, of torchvision.io alone, which reads and writes JPEG and PNG files; "
            "torchvision's own operators (nms) are compiled for CUDA as well and then do not load "
            "either."
        )
    return seen.answer(
        "wrong-torch", code, cause, owner=owner_of_library(soname), direction=NONE,
        confidence="medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


#: Said beside ``with_cuda_again``.
OF_THE_INDEX = (
    "The command that installs torch is for Linux on x86-64, where the package index has the build "
    "with CUDA. Where conda list shows pytorch, conda's goes first (conda remove --force pytorch); "
    "torchvision and torchaudio have to be of the same making and release."
)


def with_cuda_again(seen: Seen) -> str:
    """Install the build with CUDA of the torch release that the text names, or that is there."""
    release = (seen.torch or "").partition("+")[0]
    if release:
        return f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
    own = f"{seen.python} -c 'import torch; print(torch.__version__.split(chr(43))[0])'"
    return f'{seen.pip} install --force-reinstall --no-cache-dir "torch==$({own})"'


def index_notes(seen: Seen) -> tuple[str, ...]:
    """What the index in a command is, and which release of the package is meant."""
    name = package_needing(seen)
    if not any("--index-url" in text for text in rebuild_commands(seen)):
        return ()
    notes = rebuild_notes(seen)
    if seen.torch is None and not seen.versions.get(f"pkg:{name}"):
        return (
            f"{name} is taken in the release that goes with the torch which the first command "
            f"prints: {name}==RELEASE, as its own page lists the pairs; without a release pip "
            "takes the newest.",
            *notes,
        )
    return notes
