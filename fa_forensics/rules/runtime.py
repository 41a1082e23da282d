"""FA82x, FA839: the runtime: torch, the driver, toolkits for builds, variables.

Pure: what was read of the machine goes in, findings come out.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from fa_forensics.facts.drivers import (
    CudaVersion,
    cuda_text,
    driver_needed,
    driver_numbers,
    driver_table,
    parse_cuda,
)
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.gpus import Gpu, capability_text
from fa_forensics.facts.library_version import parse_name
from fa_forensics.facts.toolkit import HOME_VARIABLES, ON_PATH, Toolkit
from fa_forensics.facts.variables import Arch, parse_arch_list
from fa_forensics.records import dataclass
from fa_forensics.report import Evidence, Finding


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """The GPU driver of this machine. None: not known.

    ``version`` and ``cuda`` are what NVML says, or what the files say (``source``);
    ``kernel_module`` the version of the loaded module, ``library`` that of the libcuda which
    the loader takes, at ``library_path``.
    """

    version: str | None
    cuda: CudaVersion | None
    source: str
    kernel_module: str | None
    library: str | None
    library_path: str | None


def no_torch(environment: Environment, recorded: str | None = None) -> Finding | None:
    """FA820: there is no torch here, or it is not whole.

    ``recorded`` is the version that torch's metadata says is installed, None without any.
    """
    if environment.torch is not None and environment.torch_problem is None:
        return None
    problem = environment.torch_problem or f"no torch is installed in {environment.prefix}"
    whole = environment.torch is not None
    command = "install --force-reinstall torch" if whole else "install torch"
    notes = ["No extension of torch can load without it."]
    if recorded:  # pip would say that there is nothing to do
        release = recorded.partition("+")[0]
        command = f"install --force-reinstall --no-deps {shlex.quote(f'torch=={release}')}"
        notes.append(f"pip believes that torch {recorded} is installed.")
    return Finding(
        code="FA820",
        severity="error",
        confidence="high",
        title=problem,
        evidence=tuple(Evidence("has no whole torch", path) for path in environment.site_dirs),
        notes=tuple(notes),
        help=(_pip(environment, command),),
    )


def not_importable(environment: Environment, problems: Sequence[str]) -> Finding | None:
    """FA820: parts of torch are missing or cannot be read; ``problems`` are sentences."""
    torch = environment.torch
    if torch is None or not problems:
        return None
    return Finding(
        code="FA820",
        severity="error",
        confidence="medium",
        title=f"torch {torch.version} is not whole: {problems[0]}",
        evidence=tuple(Evidence(problem, torch.path) for problem in problems),
        notes=("No extension of torch can load without it.",),
        help=(_pip(environment, f'install --force-reinstall --no-deps "torch=={torch.release}"'),),
    )


def torch_without_gpu(
    environment: Environment, gpus: Sequence[Gpu], archs: Sequence[str] | None
) -> Finding | None:
    """FA821: torch cannot use this machine's GPU: built without CUDA, or without code for it.

    ``archs`` is the code that torch's own wheel holds ("sm_90", "compute_120"), None where
    that is not known.
    """
    torch = environment.torch
    if torch is None or not gpus or torch.hip is not None:
        return None
    if torch.cuda is None:
        return Finding(
            code="FA821",
            severity="warning",
            confidence="high",
            title=f"torch {torch.version} was built without CUDA, and this machine has "
            f"{gpus[0].name}",
            evidence=(Evidence("cuda is None", os.path.join(torch.path, "version.py")),),
            notes=("Extensions with GPU code need a CUDA build of torch.",),
            help=(_pip(environment, f'install --force-reinstall "torch=={torch.release}"'),),
        )
    left = [gpu for gpu in gpus if archs is not None and not _holds_code(archs, gpu.capability)]
    if not left:
        return None
    gpu = left[0]
    return Finding(
        code="FA821",
        severity="error",
        confidence="medium",
        title=f"torch {torch.version} has no code for {gpu.name} "
        f"(compute capability {capability_text(gpu.capability)})",
        evidence=(Evidence(f"its wheel has {' '.join(archs or ())}", torch.path),),
        notes=('Its own kernels end with "no kernel image is available for execution".',),
        help=(_pip(environment, "install --upgrade torch"),),
    )


def _holds_code(archs: Sequence[str], capability: tuple[int, int]) -> bool:
    return any(arch.serves(capability) for arch in map(_arch_of, archs) if arch is not None)


def _arch_of(name: str) -> Arch | None:
    kind, _, number = name.partition("_")
    digits = number.rstrip("af")
    if not digits.isdecimal() or len(digits) < 2:
        return None
    capability = (int(digits[:-1]), int(digits[-1]))
    return Arch(capability, number[len(digits) :], kind == "compute")


def driver_too_old(environment: Environment, driver: DriverFacts) -> Finding | None:
    """FA822: the driver does not support the CUDA that torch was built with."""
    torch = environment.torch
    if torch is None or torch.cuda is None or driver.cuda is None:
        return None
    wanted = parse_cuda(".".join(torch.cuda.split(".")[:2]))
    if driver.cuda >= wanted or runs_by_minor(driver, wanted):
        return None
    return Finding(
        code="FA822",
        severity="error",
        confidence="high",
        title=f"the driver {driver.version or ''} supports CUDA {cuda_text(driver.cuda)}, torch "
        f"{torch.version} needs CUDA {cuda_text(wanted)}".replace("driver  ", "driver "),
        evidence=(Evidence(f"{driver.source}: driver {driver.version or 'unknown'}"),),
        notes=(
            f"It needs {driver_needed(wanted)}; within CUDA {wanted[0]} a driver from "
            f"{driver_table().floors.get(wanted[0], 'its first release')} on will do.",
            "The driver belongs to the machine, not to this environment; where it cannot be "
            "changed, a torch built for an older CUDA can.",
        ),
        help=("nvidia-smi --query-gpu=driver_version --format=csv,noheader",),
    )


def runs_by_minor(driver: DriverFacts, wanted: CudaVersion) -> bool:
    """Whether an older driver of the same CUDA major version runs the code all the same."""
    floor = driver_table().floors.get(wanted[0])
    if floor is None or driver.version is None or not driver_numbers(driver.version):
        return driver.cuda is not None and driver.cuda[0] == wanted[0]
    return driver_numbers(driver.version) >= driver_numbers(floor)


def driver_halves(driver: DriverFacts) -> Finding | None:
    """FA839: the driver's kernel module and its library are of two versions."""
    module, library, path = driver.kernel_module, driver.library, driver.library_path
    if module is None or library is None or path is None or module == library:
        return None
    if "compat" in path.split("/"):
        return None  # NVIDIA's forward compatibility package is newer than the module, on purpose
    return Finding(
        code="FA839",
        severity="error",
        confidence="high",
        title=f"the driver's kernel module is {module}, its library {library}",
        evidence=(
            Evidence(f"the loaded module is {module}", "/proc/driver/nvidia/version"),
            Evidence(f"the library is {library}", path),
        ),
        notes=(
            'CUDA and nvidia-smi then say "Driver/library version mismatch": the driver was '
            "updated and the old module is still loaded, or a container brings a library of "
            "its own.",
        ),
        help=("sudo reboot",),
    )


def toolkit_mismatch(
    environment: Environment, toolkit: Toolkit, fitting: str | None
) -> Finding | None:
    """FA823: a build would use another CUDA than torch was built with.

    ``fitting`` is the directory of a toolkit on this machine that is of torch's CUDA. Whoever
    sets CUDA_HOME means to build; an nvcc that only lies on PATH disturbs nothing installed.
    """
    torch = environment.torch
    if torch is None or torch.cuda is None or toolkit.release is None:
        return None
    own = ".".join(torch.cuda.split(".")[:2])
    if toolkit.release == own:
        return None
    major = toolkit.release.split(".")[0] != own.split(".")[0]
    reaction = (
        "torch's build helper refuses another major version"
        if major
        else "torch's build helper warns, and builds: minor versions of one major fit together"
    )
    return Finding(
        code="FA823",
        severity="warning" if major and toolkit.named_by in HOME_VARIABLES else "note",
        confidence="high",
        title=f"a build here would use CUDA {toolkit.release} ({toolkit.named_by}), torch "
        f"{torch.version} was built with {own}",
        evidence=(Evidence(f"CUDA {toolkit.release}: {toolkit.nvcc_how}", toolkit.nvcc),),
        notes=(
            f"{reaction[0].upper()}{reaction[1:]}. It matters for builds alone; what is "
            "installed does not use it.",
        ),
        help=() if fitting is None else (f"export CUDA_HOME={shlex.quote(fitting)}",),
    )


def two_toolkits(toolkits: Sequence[Toolkit]) -> Finding | None:
    """FA824: CUDA_HOME and PATH name two CUDA releases, or nvcc and its headers are of two."""
    for kit in toolkits:
        compiler = ".".join((kit.nvcc_version or "").split(".")[:2])
        if compiler and kit.header_version and compiler != kit.header_version:
            return Finding(
                code="FA824",
                severity="warning",
                confidence="high",
                title=f"{kit.root} has nvcc of CUDA {compiler} and headers of {kit.header_version}",
                evidence=(
                    Evidence(f"nvcc {kit.nvcc_version} ({kit.nvcc_how})", kit.nvcc),
                    Evidence(f"CUDA_VERSION is {kit.header_version}", f"{kit.root}/include/cuda.h"),
                ),
                notes=("A build with it mixes two releases; the toolkit is to be put right.",),
            )
    home = next((t for t in toolkits if t.named_by in HOME_VARIABLES and t.release), None)
    path = next((t for t in toolkits if t.named_by == ON_PATH and t.release), None)
    if home is None or path is None or home.release == path.release:
        return None
    return Finding(
        code="FA824",
        severity="warning",
        confidence="high",
        title=f"{home.named_by} names CUDA {home.release}, nvcc on PATH is of CUDA {path.release}",
        evidence=(
            Evidence(f"{home.named_by}={home.named}", home.nvcc),
            Evidence("the first nvcc on PATH", path.named),
        ),
        notes=(f"torch's build helper takes {home.named_by}, a Makefile or CMake what PATH has.",),
        help=(f"export PATH={shlex.quote(os.path.join(home.named, 'bin'))}:$PATH",),
    )


def broken_home(toolkit: Toolkit) -> Finding | None:
    """FA825: CUDA_HOME or CUDA_PATH names no toolkit that could compile."""
    if toolkit.problem is None or toolkit.named_by not in HOME_VARIABLES:
        return None
    return Finding(
        code="FA825",
        severity="warning",
        confidence="high",
        title=f"{toolkit.named_by} is {toolkit.named}: {toolkit.problem}",
        evidence=(Evidence(toolkit.problem, toolkit.named),),
        notes=("A build stops there, whatever nvcc PATH has; what is installed does not read it.",),
        help=(f"unset {toolkit.named_by}",),
    )


def library_path_elements(elements: Sequence[tuple[str, bool]]) -> Finding | None:
    """FA826: LD_LIBRARY_PATH has elements that mean the current directory, or are not there.

    ``elements`` are (as written, whether such a directory exists).
    """
    current = [text for text, _ in elements if not text or not text.startswith(("/", "$"))]
    absent = [text for text, there in elements if text and not there]
    if not current and not absent:
        return None
    good = [text for text, there in elements if there and text.startswith(("/", "$"))]
    command = f"export LD_LIBRARY_PATH={shlex.quote(':'.join(good))}"
    if current:
        shown = "an empty element" if "" in current else f'"{current[0]}"'
        title = f"LD_LIBRARY_PATH has {shown}: libraries are taken from the current directory"
    else:
        title = f"LD_LIBRARY_PATH names {absent[0]}, which is no directory"
        if len(absent) > 1:
            title += f", and {len(absent) - 1} more such"
    return Finding(
        code="FA826",
        severity="warning" if current else "note",
        confidence="high",
        title=title,
        evidence=tuple(
            Evidence(f'"{text}"' + ("" if there else " is no directory"))
            for text, there in elements
        ),
        notes=("What is loaded then depends on where the program is started.",) if current else (),
        help=(command if good else "unset LD_LIBRARY_PATH",),
    )


def preloaded(entries: Sequence[tuple[str, str | None]]) -> Finding | None:
    """FA827: LD_PRELOAD puts libraries in front of all others, or names some that are not there.

    ``entries`` are (as written, the file that the loader takes for it or None).
    """
    if not entries:
        return None
    absent = [text for text, path in entries if path is None]
    mapped = [path for _, path in entries if path is not None]
    known = [path for path in mapped if parse_name(os.path.basename(path))]
    title = f"LD_PRELOAD names {absent[0]}, which the loader does not find" if absent else (
        f"{(known or mapped)[0]} is mapped before all other libraries (LD_PRELOAD)"
    )  # fmt: skip
    return Finding(
        code="FA827",
        severity="warning" if known else "note",
        confidence="high",
        title=title,
        evidence=tuple(Evidence(f"{t}: {p or 'not found'}", p) for t, p in entries),
        notes=(
            "The loader says so at each start and goes on without it."
            if absent
            else "Its names go before those of torch and CUDA in every program of this shell.",
        ),
        help=("unset LD_PRELOAD",),
    )


def arch_list(value: str, gpus: Sequence[Gpu]) -> Finding | None:
    """FA828: TORCH_CUDA_ARCH_LIST has words that torch refuses, or leaves this GPU out."""
    archs, unknown = parse_arch_list(value)
    left = [gpu for gpu in gpus if archs and not any(a.serves(gpu.capability) for a in archs)]
    if not unknown and not left:
        return None
    if unknown:
        title = f'TORCH_CUDA_ARCH_LIST has "{unknown[0]}", which is no compute capability'
        note = 'torch\'s build helper stops with "Unknown CUDA arch".'
    else:
        number = capability_text(left[0].capability)
        title = f"a build here would have no code for {left[0].name} ({number})"
        note = "TORCH_CUDA_ARCH_LIST leaves it out, and has no PTX that it could compile."
    numbers = ";".join(dict.fromkeys(capability_text(gpu.capability) for gpu in gpus))
    return Finding(
        code="FA828",
        severity="warning",
        confidence="high",
        title=title,
        evidence=(Evidence(f'TORCH_CUDA_ARCH_LIST is "{value[:200]}"'),),
        notes=(note, "It matters for builds alone; what is installed does not read it."),
        help=(f'export TORCH_CUDA_ARCH_LIST="{numbers}"' if numbers else
              "unset TORCH_CUDA_ARCH_LIST",),
    )  # fmt: skip


def hidden_gpus(variables: Mapping[str, str]) -> Finding | None:
    """FA829: a variable hides every GPU from programs."""
    shown = variables.get("CUDA_VISIBLE_DEVICES")
    handed = variables.get("NVIDIA_VISIBLE_DEVICES", "all")
    if shown is not None and shown.split(",")[0].strip() in ("", "-1", "NoDevFiles"):
        name, value = "CUDA_VISIBLE_DEVICES", shown
        note = "CUDA counts the GPUs up to the first entry that names none."
    elif handed in ("void", "none", ""):
        name, value = "NVIDIA_VISIBLE_DEVICES", handed
        note = "The container was started without GPUs; it is to be started with --gpus all."
    else:
        return None
    return Finding(
        code="FA829",
        severity="warning",
        confidence="high",
        title=f'{name} is "{value[:60]}": programs see no GPU',
        evidence=(Evidence(f'{name}="{value[:60]}"'),),
        notes=(note,),
        help=("unset CUDA_VISIBLE_DEVICES",) if name == "CUDA_VISIBLE_DEVICES" else (),
    )


def _pip(environment: Environment, arguments: str) -> str:
    return f"{shlex.quote(environment.python)} -m pip {arguments}"
