"""Answers to installations that end without a compiler's word."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.cmake_text import cuda_compiler_unknown
from fa_forensics.why.texts.builds.toolkit_commands import build_command, what_to_build
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.ways.signs import jit_folder

KIND, COMPILE, MIXED, NO_FILE = "wrong-torch", "FA883", "FA884", "FA887"


def no_target(seen: Seen) -> Answer:
    """torch's build helper saw no GPU, and nobody told it what to build for."""
    detail = seen.mention.detail
    variable = detail.get("variable") or "TORCH_CUDA_ARCH_LIST"
    value = "86" if variable.startswith("TCNN") else "8.6"
    ask = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.cuda.is_available())'"
    )
    if detail.get("cpu") or "+cpu" in (seen.torch or ""):
        sign = detail.get("cpu") or seen.torch or ""
        cause = (
            f"The torch of this build is a CPU build ({sign.rsplit('/', 1)[-1]} tells): it has no "
            "CUDA to build for and sees no GPU, so the list of GPU targets came out empty. A torch "
            f"with CUDA is the way out; {variable} alone does not help."
        )
        return seen.answer(
            KIND, MIXED, cause, owner="torch", direction="none", confidence="high",
            help=(ask, f"{seen.pip} install --force-reinstall torch"),
            notes=("torch.version.cuda None in the first line means a build without CUDA; one with "
                   "it comes from the index for that CUDA version.",),
        )  # fmt: skip
    cause = (
        "No GPU was visible while the extension was built, and nothing says for which GPUs to "
        f"build ({variable} is not set), so the list of targets came out empty. Neither torch nor "
        "Python is broken."
    )
    tool = "tiny-cuda-nn" if variable.startswith("TCNN") else "torch"
    notes = [
        f"{variable} names the GPUs that the extension is to run on (here {value} as an example), "
        "and is enough to build without one."
    ]
    if detail.get("docker"):
        notes.append("docker build sees no GPU, even where docker run does.")
    else:
        notes.append(
            "Where it is built at its first use, a machine or a runtime with a GPU is needed all "
            "the same: without one the extension cannot run. torch.version.cuda None means that "
            "torch is a build without CUDA, which only another torch changes."
        )
    return seen.answer(
        "gpu-arch", COMPILE, cause, owner=package_in(seen) or tool, direction="none",
        confidence="high" if detail.get("no_runtime") or detail.get("docker") else "medium",
        help=(f"nvidia-smi -L; {ask}",
              f'{variable}="{value}" {build_command(seen)}'),
        notes=tuple(notes),
    )  # fmt: skip


def stale_lock(seen: Seen) -> Answer:
    """torch's JIT loader waits for a lock that no living process holds."""
    folder = jit_folder((seen.mention.file or "") + "/x.so")
    where = folder or "~/.cache/torch_extensions"
    cause = (
        "torch's JIT loader waits for a file named lock in the extension's cache directory: "
        "another process builds it, or one was ended while it did and left the file behind, and "
        "then the wait never ends. No GPU and no NCCL is involved."
    )
    return seen.answer(
        KIND, COMPILE, cause, owner=package_in(seen), direction="none", confidence="high",
        help=(f"find ${{TORCH_EXTENSIONS_DIR:-{where}}} -name lock",
              f"find ${{TORCH_EXTENSIONS_DIR:-{where}}} -name lock -delete"),
        notes=("Only while no process builds: ps shows ninja or nvcc otherwise. It is built anew "
               "at the next start.",),
    )  # fmt: skip


def cpu_torch(seen: Seen) -> Answer:
    """setup.py asked torch for its CUDA version and got None."""
    cause = (
        "torch.version.cuda is None in the torch that this build sees, so that torch is a build "
        "without CUDA (CPU, or ROCm): setup.py did not expect that. In an isolated build pip "
        "fetches a torch of its own, and that may be the one."
    )
    package = package_in(seen)
    return seen.answer(
        KIND, MIXED, cause, owner=package or "torch", direction="none", confidence="high",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              build_command(seen)),
        notes=("Where the first command prints None too, torch itself has to be installed from the "
               "index for a CUDA version.",),
    )  # fmt: skip


def python_refused(seen: Seen) -> Answer:
    """pip's ``requires a different Python``."""
    detail = seen.mention.detail
    package = detail.get("package") or "The package"
    cause = (
        f"{package} takes Python {detail.get('range', '')}, and this is Python "
        f"{detail.get('have', '')}: another Python, or another release of the package, is the way "
        "out."
    )
    return seen.answer(
        "python-abi", NO_FILE, cause, owner=detail.get("package"), direction="none",
        confidence="high", help=(f"{seen.pip} index versions {package}",),
    )  # fmt: skip


def lacks_wheels(seen: Seen) -> Answer:
    """torch looked for CUDA libraries of the wheels beside it and found none."""
    library = seen.mention.library or ""
    named = f" ({library})" if library else ""
    cause = (
        f"import torch itself failed: its libraries need CUDA libraries{named} that come as wheels "
        "of their own (nvidia-cublas, nvidia-cudnn and others), and neither the loader nor the "
        "nvidia directory beside torch has them. The message about a variable or the path only "
        "follows from that."
    )
    if not library:
        cause += " torch 1.13 is the release that says it so."
    return seen.answer(
        "missing-library", "FA202", cause, owner="torch", direction="none", confidence="high",
        help=(f"{seen.pip} list | grep -iE 'torch|nvidia'",
              f"{seen.pip} install --force-reinstall --no-cache-dir "
              f"torch{_pinned(seen)}"),
        notes=("Installed with --no-deps, or by a tool that leaves dependencies out, torch lacks "
               "these wheels.",),
    )  # fmt: skip


def _pinned(seen: Seen) -> str:
    found = re.match(r"\d+\.\d+\.\d+", seen.torch or "")
    return f"=={found[0]}" if found else ""


def cmake_stopped(seen: Seen) -> Answer:
    """CMake ended before anything was compiled."""
    detail = seen.mention.detail
    sort = detail.get("sort")
    confidence, notes = "high", []
    helps: tuple[str, ...] = ("nvcc --version; ls -d /usr/local/cuda*",)
    if sort == "nvtx":
        owner = "torch"
        cause = (
            "torch's CMake files ask for nvToolsExt, NVTX 2, which CUDA toolkits no longer have "
            "since 12.9: the toolkit is newer than this torch. A toolkit before 12.9 of torch's "
            "CUDA major version, or a newer torch, is the way out."
        )
        cuda = seen.torch_cuda
        if cuda:
            there = f"/usr/local/cuda-{cuda}"
            command = f"CUDA_HOME={there} CUDACXX={there}/bin/nvcc {seen.pip} install "
            helps = (*helps, f"{command}--no-build-isolation {what_to_build(seen)}")
        notes.append(
            "With an older toolkit the same message means that its part nvtx is not installed, or "
            "that CMake found another toolkit than meant."
        )
        confidence = "high" if _at_least(seen.versions.get("cuda"), (12, 9)) else "medium"
    elif sort == "toolkit":
        owner = "nvcc"
        cause = (
            "CMake found no CUDA toolkit, or one without nvcc: torch's wheels bring the runtime "
            "libraries, not the compiler."
        )
        helps = (*helps, "CUDACXX=/usr/local/cuda/bin/nvcc CUDA_HOME=/usr/local/cuda "
                         f"{build_command(seen)}")  # fmt: skip
        notes.append("CUDACXX names the nvcc that CMake takes; it goes before PATH.")
    elif sort == "compiler":
        return cuda_compiler_unknown(seen)
    elif sort == "torch":
        owner = "torch"
        cause = (
            "CMake does not find torch: it has to be told where torch's CMake files are, or the "
            "Python that it runs has no torch."
        )
        helps = (
            f"{seen.python} -c 'import torch; print(torch.utils.cmake_prefix_path)'",
            f"cmake -DCMAKE_PREFIX_PATH=$({seen.python} -c 'import torch; "
            "print(torch.utils.cmake_prefix_path)') ..",
        )
    else:
        return _cmake_release(seen, sort == "old")
    return seen.answer(
        KIND, COMPILE, cause, owner=owner, direction="none", confidence=confidence, help=helps,
        notes=tuple(notes),
    )  # fmt: skip


def _cmake_release(seen: Seen, is_old: bool) -> Answer:
    """The cmake that runs is older than the package, or newer than its build files."""
    least, notes = seen.mention.detail.get("least", ""), []
    have = seen.mention.detail.get("have", "")
    if is_old:
        cause = (
            f"This cmake ({have}) is older than the {least} that the package asks for. Nothing was "
            "compiled."
        )
        helps = (f"{seen.pip} install --upgrade cmake", "command -v cmake; cmake --version")
    else:
        cause = (
            "This cmake (4.0 or newer) no longer takes projects that ask for a CMake before "
            f"{least}. Nothing was compiled."
        )
        helps = (f'{seen.pip} install "cmake<4"',
                 "CMAKE_POLICY_VERSION_MINIMUM=3.5 "
                 f"{seen.pip} install {what_to_build(seen)}")  # fmt: skip
        notes.append("One of the two is enough; a newer release of the package is a third way.")
    return seen.answer(
        KIND, COMPILE, cause, owner="cmake", direction="none", confidence="high", help=helps,
        notes=tuple(notes),
    )  # fmt: skip


def _at_least(version: str | None, wanted: tuple[int, int]) -> bool:
    found = re.match(r"(\d{1,2})\.(\d{1,2})", version or "")
    return found is not None and (int(found[1]), int(found[2])) >= wanted


def setup_tool(seen: Seen) -> Answer:
    """setuptools, wheel and packaging do not fit the project's build files, or one another."""
    detail = seen.mention.detail
    tool = next((detail[key] for key in sorted(detail) if key.startswith("tool")), "")
    if tool == "bdist_wheel":
        cause, wanted = (
            "The package wheel is not there, which older setuptools build with.",
            "wheel",
        )
    elif tool == "packaging":
        cause = (
            "pkg_resources.packaging is gone since setuptools 70, and what builds here still asks "
            "for it (torch's own build helper does up to 2.2)."
        )
        wanted = '"setuptools<70"'
    elif tool in ("ImpImporter", "distutils", "imp"):
        what = "pkgutil.ImpImporter" if tool == "ImpImporter" else tool
        cause = (
            f"Python 3.12 no longer has {what}, and the setuptools or the package that builds here "
            "is older than that."
        )
        wanted = "--upgrade pip setuptools wheel"
    else:
        cause = "setuptools and packaging that build here are of releases that do not fit."
        wanted = "--upgrade pip setuptools packaging wheel"
    return seen.answer(
        KIND, MIXED, cause + " Nothing was compiled, and no binary is at fault.",
        owner="setuptools", direction="none", confidence="medium",
        help=(f"{seen.pip} install {wanted}",
              build_command(seen)),
        notes=("Without --no-build-isolation pip fetches tools of its own for the build, and what "
               "is installed does not count.",),
    )  # fmt: skip


def pkg_resources(seen: Seen) -> Answer:
    """``No module named 'pkg_resources'``: setuptools gave it up."""
    last = build_names()["modules"]["pkg_resources"]
    build = seen.mention.detail.get("build") or '"<string>"' in seen.mention.detail.get("frame", "")
    cause = (
        f"pkg_resources is a part of setuptools that setuptools {last} gave up: what asks for it "
        "needs an older setuptools, or there is no setuptools at all (Python 3.12 and newer bring "
        "none along)."
    )
    helps = [f'{seen.pip} install "setuptools<{last}" wheel']
    notes = []
    if build or not seen.mention.detail.get("import"):
        helps.append(build_command(seen))
        notes.append(
            "In a build pip fetches a setuptools of its own, so that the installed one does not "
            "count: --no-build-isolation, or a file with setuptools<82 in PIP_CONSTRAINT (newer "
            "pip: PIP_BUILD_CONSTRAINT), changes that."
        )
    return seen.answer(
        KIND, MIXED, cause, owner="setuptools", direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "no-target": no_target,
    "stale-lock": stale_lock,
    "torch-lacks-wheels": lacks_wheels,
    "torch-cpu-in-build": cpu_torch,
    "python-refused": python_refused,
    "cmake-stopped": cmake_stopped,
    "setup-tool": setup_tool,
}
