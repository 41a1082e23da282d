"""Answers to builds that saw another CUDA than torch's, or no torch at all."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.gpu_first import torch_too_old
from fa_forensics.why.texts.builds.isolated_text import another_torch_built, torch_not_reached
from fa_forensics.why.texts.builds.least_cuda import fitting
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_command,
    build_variables,
    on_windows,
    package_built,
    prebuilt,
    unnamed,
    which_toolkit,
    with_toolkit,
)

ENVIRONMENT, COMPILE, MIXED = "wrong-torch", "FA883", "FA884"

_OWN_WAY = (
    "CUDA_HOME decides which nvcc is taken, then CUDA_PATH, before PATH: one that names another "
    "toolkit is to be unset or changed. The other way out is a torch that was built for the "
    "toolkit's CUDA. The CUDA version that nvidia-smi shows is the driver's "
    "and plays no part in this."
)


_NOT_ISOLATED = (
    "--no-build-isolation compiles with the torch that is installed; without it pip fetches one of "
    "its own for the build, most often the newest, and the message may be of that one."
)


def cuda_mismatch(seen: Seen) -> Answer:
    """``The detected CUDA version (X) mismatches the version used to compile PyTorch (Y)``."""
    detail, line = seen.mention.detail, seen.mention.line
    numbers = re.findall(r"\((\d{1,2}\.\d{1,2})\)", line)
    told = numbers[0] if numbers else seen.versions.get("cuda")
    toolkit = detail.get("toolkit") or told
    torch = detail.get("torch_cuda") or (numbers[1] if len(numbers) > 1 else None)
    torch = torch or seen.torch_cuda
    if toolkit and torch and _minor(toolkit) == _minor(torch):
        toolkit = None  # torch's own version, or one that the build did not find
    by = detail.get("by")
    if by == "deepspeed":
        return _deepspeed(seen, toolkit, torch)
    if by == "setup.py":
        return _own_check(seen, toolkit, torch)
    older = torch_too_old(seen, toolkit, torch)
    if older is not None:
        return older
    if toolkit and torch and toolkit.split(".")[0] == torch.split(".")[0]:
        return _one_major(seen, toolkit, torch)
    isolated = another_torch_built(seen, toolkit, torch)
    if isolated is not None:
        return isolated
    cause = "The nvcc that was found is of another CUDA major version than torch was built with"
    if toolkit and torch:
        cause = f"The nvcc that was found is CUDA {toolkit}, torch was built with CUDA {torch}"
    cause += (
        ": torch's build helper refuses that, for the two runtimes would meet in one process. "
        "That check takes any toolkit of one major version (apex's own in its setup.py does not)."
    )
    shown = detail.get("nvcc_told")
    if shown and torch and shown.split(".")[0] == torch.split(".")[0]:
        cause += (
            f" The nvcc of CUDA {shown} that the text shows is not the one that was found: most "
            "likely CUDA_HOME names another toolkit, which goes before PATH."
        )
    return _another_nvcc(seen, cause, torch, (_OWN_WAY, _NOT_ISOLATED))


def _one_major(seen: Seen, toolkit: str, torch: str) -> Answer:
    """11.8 against 11.7: a warning, but where setuptools' versions have no major number.

    torch/utils/cpp_extension.py before 2.1 compares nan with nan then, which differ (pytorch pull
    request 97602, which asks for setuptools 49.4.0 in so many words); old torches refuse any
    difference.
    """
    return _another_nvcc(
        seen,
        f"The nvcc that was found is CUDA {toolkit}, torch was built with CUDA {torch}: both are "
        "of one major version, which go together, and torch's build helper as a rule only warns "
        "of that. Two causes of the refusal fit: setuptools is older than 49.4.0, whose version "
        "numbers torch before 2.1 cannot compare, or that torch is an old one that refuses any "
        "difference.",
        torch,
        (
            "A newer setuptools is the smallest change: "
            f'{seen.pip} install --upgrade "setuptools>=49.4.0,<70", and then the same build '
            "again (torches of that time take a part of setuptools that 70 gave up). Without "
            "--no-build-isolation it is the project's pyproject.toml that decides "
            "which setuptools builds.",
            "Where that changes nothing, nvcc of torch's own CUDA is what builds, as in the last "
            "command; CUDA_HOME decides which nvcc is taken, then CUDA_PATH, before PATH. A torch "
            "for the toolkit's CUDA is the other way out. The CUDA version that nvidia-smi shows "
            "is the driver's and plays no part in this.",
            _NOT_ISOLATED,
        ),
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _another_nvcc(
    seen: Seen, cause: str, torch: str | None, notes: tuple[str, ...], owner: str = "nvcc"
) -> Answer:
    ask = () if torch else (f"{seen.python} -c 'import torch; print(torch.version.cuda)'",)
    package = package_built(seen)
    unsaid = ("X.Y is what the second command prints.",) if not torch else ()
    variables = build_variables(seen, package)
    fits = fitting(seen, package, torch, build_command(seen))
    build = f"{variables}{fits.command}"
    name = unnamed(build)
    typed = with_toolkit(seen, fits.cuda, build) if fits.command else ()
    listed = _none_listed(seen, fits.cuda if torch else None) if typed else ()
    notes = notes if typed else tuple(note for note in notes if note != _NOT_ISOLATED)
    ready = prebuilt(seen, package) if typed else ()
    return seen.answer(
        ENVIRONMENT, MIXED, cause, owner=owner, direction="none", confidence="high",
        help=(which_toolkit(seen), *ask, *typed),
        notes=(*unsaid, *fits.notes, *name, *notes, *listed, *ready),
    )  # fmt: skip


def _own_check(seen: Seen, toolkit: str | None, torch: str | None) -> Answer:
    """apex's words, and those of setup.py files that were written after it."""
    cause = (
        "The nvcc that was found is of another CUDA release than torch was built with: the "
        "package's own setup.py compares the two and refuses any difference, a minor one too "
        "(torch's build helper does not)."
    )
    if torch:
        cause = (
            f"torch was built with CUDA {torch}, and the nvcc that was found is of another CUDA "
            "release: the package's own setup.py compares the two and refuses any difference, a "
            "minor one too (torch's build helper does not)."
        )
    if toolkit and torch:
        cause = (
            f"The nvcc that was found is CUDA {toolkit}, torch was built with CUDA {torch}: the "
            "package's own setup.py compares the two and refuses any difference, a minor one too "
            "(torch's build helper does not)."
        )
    return _another_nvcc(
        seen, cause, torch,
        ("Where both are of one major version, the check in setup.py can be commented out, as its "
         "message says; across major versions it may not.", _OWN_WAY),
    )  # fmt: skip


_DS_AT_USE = (
    "CUDA_HOME has to be set where the program runs, on each machine; installing DeepSpeed again "
    "changes nothing, since the op is built at its first use. A half-made build of it in the cache "
    "directory is to be removed."
)
_DS_AT_INSTALL = (
    "The ops are being built at the installation here (DS_BUILD_OPS): CUDA_HOME has to be set for "
    "that command. Without that switch, DeepSpeed builds each at its first use, and takes the "
    "toolkit of that moment."
)


def _none_listed(seen: Seen, torch: str | None) -> tuple[str, ...]:
    """What to do where no toolkit of torch's CUDA is there; nvidia's labels begin with 11.3."""
    number = re.match(r"(\d{1,2})\.(\d{1,2})", torch or "")
    if number is not None and on_windows(seen):
        return (
            "Where CUDA_HOME names a directory that is not there: NVIDIA's installer of CUDA "
            f"{number[0]} puts it beside the other one (the toolkit alone, without its driver).",
        )
    if number is None or (int(number[1]), int(number[2])) < (11, 3):
        return ()
    return (
        f"Where the first command lists no toolkit of CUDA {number[0]}: NVIDIA's installer puts "
        "one beside the other (the toolkit alone, without its driver), and in a conda environment "
        f"conda install -c nvidia/label/cuda-{number[0]}.0 cuda-toolkit does; CUDA_HOME is "
        "$CONDA_PREFIX then.",
    )


def _deepspeed(seen: Seen, toolkit: str | None, torch: str | None) -> Answer:
    """DeepSpeed's op builder, which compares before torch's helper does."""
    same = toolkit and torch and toolkit.split(".")[0] == torch.split(".")[0]
    cause = (
        f"DeepSpeed builds its ops where it runs, and its op builder refuses an nvcc of CUDA "
        f"{toolkit or '?'} with a torch of CUDA {torch or '?'}: its own check, by a list of "
        "releases that go together. Across major versions the two runtimes would meet in one "
        "process."
    )
    if same:
        cause = (
            f"DeepSpeed builds its ops where it runs, and its op builder refuses an nvcc of CUDA "
            f"{toolkit} with a torch of CUDA {torch}: both are of one major version, as it should "
            "be, but this DeepSpeed does not have that pair in its list."
        )
    home = torch or "X.Y"
    ask = () if torch else (f"{seen.python} -c 'import torch; print(torch.version.cuda)'",)
    detail = seen.mention.detail
    cache = "${TORCH_EXTENSIONS_DIR:-~/.cache/torch_extensions}"
    helps = (which_toolkit(seen), *ask)
    if on_windows(seen):
        helps = (*helps, *with_toolkit(seen, home, "ds_report"))
    else:
        helps = (*helps, f"export CUDA_HOME=/usr/local/cuda-{home}", f"ls {cache}")
    if same:
        helps = (*helps, "export DS_SKIP_CUDA_CHECK=1")
    building = "building" in detail or "DS_BUILD_" in seen.mention.line
    where = _DS_AT_INSTALL if building else _DS_AT_USE
    other = () if same or not toolkit else (
        "The other way out is a torch that was built for the toolkit's CUDA: one for CUDA "
        f"{toolkit.split('.')[0]}.x, of whatever minor version, goes with that nvcc.",
    )  # fmt: skip
    return seen.answer(
        ENVIRONMENT, MIXED, cause, owner="deepspeed", direction="none", confidence="high",
        help=helps,
        notes=(
            where,
            *other,
            *_none_listed(seen, torch),
            "DS_SKIP_CUDA_CHECK=1 leaves the check out (newer releases of DeepSpeed): for a "
            "difference in the minor version alone.",
            "The CUDA version that nvidia-smi shows is the driver's and plays no part in this.",
        ),
    )  # fmt: skip


def home_is_a_list(seen: Seen) -> Answer | None:
    """A CUDA_HOME with colons: no directory has that name, so nothing is found below it."""
    value = seen.mention.detail.get("home", "")
    path = seen.mention.detail.get("path", "")
    if not value and re.search(r"^:|.:/", path) and not re.match(r"[A-Za-z]:/[^:]*$", path):
        value = path.removesuffix("/bin/nvcc")
    if not value:
        return None
    first = next((one for one in value.split(":") if one.startswith("/")), "/usr/local/cuda")
    cause = (
        f'CUDA_HOME is "{value}", a list of directories as PATH is one, or with a colon too many. '
        "CUDA_HOME names one directory, so that nothing is found below it: neither nvcc, nor "
        "headers, nor the libraries in lib64."
    )
    return seen.answer(
        ENVIRONMENT, COMPILE, cause, owner="cuda-toolkit", direction="none", confidence="high",
        help=("ls -d /usr/local/cuda*", f"export CUDA_HOME={first}"),
        notes=("The line that sets it, often in ~/.bashrc, has $CUDA_HOME: or a second directory "
               "in it. Nothing has to be installed for this; take the toolkit of torch's own CUDA "
               "major version.",),
    )  # fmt: skip


def on_amd(seen: Seen) -> Answer:
    """CUDA_HOME is asked for where the text tells of an AMD GPU or of ROCm."""
    cause = (
        "The text is of an AMD GPU, and the build asks for a CUDA toolkit: torch's build helper "
        "does so where torch is no ROCm build (torch.version.hip is None) or where it finds no "
        "ROCm (ROCM_HOME), and some packages' setup.py knows CUDA alone. No CUDA toolkit is "
        "missing."
    )
    return seen.answer(
        "rocm", COMPILE, cause, owner="torch", direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip, "
            "torch.version.cuda)'",
            "echo ROCM_HOME=$ROCM_HOME; ls -d /opt/rocm*; command -v hipcc",
            build_command(seen),
        ),
        notes=("None in the second place of the first line means a torch for CUDA or for the CPU: "
               "the one for this ROCm comes from torch's index rocmX.Y. Where it prints a version, "
               "ROCM_HOME has to name ROCm's directory, or the package has no part for AMD.",
               "In an isolated build pip fetches a torch of its own, most often one for CUDA."),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "build-cuda-mismatch": cuda_mismatch,
    "torch-missing-in-build": torch_not_reached,
}
