"""Answers to operations that were compiled without their part for CUDA, or for another device."""

from __future__ import annotations

import re
import shlex

from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import package_built, prebuilt
from fa_forensics.why.texts.clues import inspect_package, jobs_of, raw_python
from fa_forensics.why.texts.libraries.needing import rebuild_commands

KIND, MIXED = "wrong-torch", "FA884"

#: Variables that other packages' setup.py take for a build without a GPU in sight.
_FORCED = frozenset(
    ("mmcv", "mmcv-full", "detectron2", "pytorch3d", "torchvision", "torch-scatter",
     "torch-sparse", "torch-cluster", "torch-spline-conv")
)  # fmt: skip


def built_without(seen: Seen) -> Answer:
    """``NAME_impl: implementation for device cuda:0 not found``, ``not compiled with GPU``."""
    device = seen.mention.detail.get("device", "cuda")
    package = package_built(seen)
    if device == "cpu":
        return _no_cpu(seen, package)
    if device not in ("cuda", "hip"):
        return _other_device(seen, package, device)
    name = package or "the package"
    operation = seen.mention.detail.get("op")
    what = f"{operation}, an operation of {name}," if operation else f"An operation of {name}"
    cause = (
        f"{what} has no code for CUDA in the file that is loaded: {name} was compiled without "
        "CUDA. Its setup.py takes CUDA in where torch sees a GPU while it builds (not so on a "
        "login node, in docker build, in CI) and CUDA_HOME names a toolkit, or where FORCE_CUDA=1 "
        "says so. torch itself and the GPU are in order: the tensors are on the GPU already."
    )
    notes = [
        "Where no GPU is seen while it builds, TORCH_CUDA_ARCH_LIST with the compute capability of "
        "the GPU that it is for goes before the command too; CUDA_HOME names a toolkit of torch's "
        "CUDA major version.",
    ]
    if not package or not _checkout(seen, package):
        notes += prebuilt(seen, package)
    else:
        notes.append(
            "The source file in the message lies in a directory of the text's machine: it is "
            "compiled again there, in the release that is checked out; a newer one may ask for a "
            "newer torch."
        )
    return seen.answer(
        KIND, MIXED, cause, owner=package, direction="none",
        confidence="high" if package in ("mmcv", "mmcv-full") else "medium",
        help=(*_look(seen, package), *_again(seen, package)), notes=tuple(notes),
    )  # fmt: skip


def _look(seen: Seen, package: str | None) -> tuple[str, ...]:
    if package in ("mmcv", "mmcv-full"):
        return (
            f"{seen.python} -c 'import torch; from mmcv.ops import get_compiling_cuda_version as "
            "v; print(torch.__version__, torch.version.cuda, v())'",
        )
    return (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
        *((inspect_package(seen, package),) if package else ()),
    )


def _checkout(seen: Seen, package: str) -> str:
    """The source directory on the text's machine, by a source file that the message names."""
    row = row_of(package)
    top = re.escape(str(row["import"]).split(".")[0]) if row is not None else ""
    words = "\n".join((seen.mention.line, *seen.mention.detail.values()))
    found = re.search(
        rf"(?<![\w./])(?P<tree>/(?!tmp/|io/|project/|build/)[\w./+-]{{1,200}})/{top}/[\w./+-]{{1,200}}"
        r"\.(?:h|hpp|cpp|cc|cu|cuh)\b",
        words,
    ) if top else None  # fmt: skip
    if found is None or re.search(r"/pip-|-packages|\.cache|/_work/", found["tree"]):
        return ""
    return found["tree"]


def _again(seen: Seen, package: str | None) -> tuple[str, ...]:
    """Compile it with CUDA, whatever the build sees."""
    row = row_of(package) if package else None
    tree = _checkout(seen, package) if package else ""
    if tree:
        there = shlex.quote(tree)
        return (
            f"rm -rf {there}/build && FORCE_CUDA=1 MAX_JOBS=4 {seen.python} -m pip install -v "
            f"--no-build-isolation --no-deps --no-cache-dir -e {there}",
        )
    if package is None or row is None:
        return (f"FORCE_CUDA=1 {seen.pip} install --no-build-isolation --no-cache-dir "
                f"--force-reinstall --no-deps {package or 'PACKAGE'}",)  # fmt: skip
    built = rebuild_commands(seen, package)
    if not row["source_build"]:
        return built
    if not any("--no-b" in text for text in built):
        built = (rebuild_command(raw_python(seen), package, "", row, jobs_of(seen)),)
    told = seen.versions.get(f"pkg:{package}", "").partition("+")[0]
    if re.fullmatch(r"\d{1,3}(?:\.\d{1,4}){1,3}", told):  # that very release, in place of a range
        exact = f'"{package}=={told}"'
        built = tuple(re.sub(rf"'{re.escape(package)}<[\w.]+'", exact, text) for text in built)
    forced = package in _FORCED and "FORCE_CUDA" not in built[0]
    return (f"FORCE_CUDA=1 {built[0]}" if forced else built[0], *built[1:])


def _no_cpu(seen: Seen, package: str | None) -> Answer:
    name = package or "the package"
    operation = seen.mention.detail.get("op") or "The operation"
    return seen.answer(
        "gpu-arch", "FA507",
        f"{operation} of {name} has code for GPUs alone, and it was given tensors that are on the "
        "CPU. Two causes fit: the program runs on the CPU, since it was told so or torch sees no "
        "GPU, or the model's tensors were not all moved to the GPU. No file is at fault.",
        owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
            "torch.cuda.is_available())'",
        ),
        notes=("Where it prints True, the device is to be set in the program (device cuda:0, "
               ".cuda() on model and inputs); where it prints None, torch is a build without CUDA, "
               "and the same release from its index for CUDA takes its place.",),
    )  # fmt: skip


def _other_device(seen: Seen, package: str | None, device: str) -> Answer:
    name = package or "the package"
    operation = seen.mention.detail.get("op") or "The operation"
    return seen.answer(
        KIND, MIXED,
        f"{operation} of {name} has no code for the device {device} in the file that is loaded: "
        f"either {name} was compiled without its part for {device}, or that operation does not "
        "exist for it. The build from pip has the CPU's part, and CUDA's in wheels for CUDA.",
        owner=package, direction="none", confidence="medium",
        help=(inspect_package(seen, package or "FILE_OR_PACKAGE"),),
        notes=(f"A build of {name} from its source on a machine with that device, as its "
               "installation page says for it, brings the part where there is one; else the "
               "operation has to run on the CPU.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"built-without-cuda": built_without}
