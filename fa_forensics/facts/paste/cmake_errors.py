"""How CMake ends before anything is built: no CUDA compiler, no torch, another release of CMake."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of CMake alone."""
    return (
        plain(
            "cmake-stopped",
            ("cuda::nvtoolsext", "failed to find nvtoolsext"),
            r"(?P<target>CUDA::nvToolsExt)\b|Failed to find (?P<target2>nvToolsExt)",
            sort="nvtx",
        ),
        plain(
            "cmake-stopped",
            ("cmake_cuda_compiler", "cuda_toolkit_root_dir", "caffe2: cuda cannot be found",
             "cuda_nvcc_executable", "failed to find nvcc", "cannot find the cuda libraries",
             "could not find nvcc"),
            r"No CMAKE_CUDA_COMPILER could be found|Could NOT find CUDA(?:Toolkit)? \(missing"
            r"|Could not find nvcc"
            r"|Caffe2: CUDA cannot be found|cannot find the CUDA libraries|Failed to find nvcc",
            sort="toolkit",
        ),
        by_pattern(
            ("cuda compiler identification is unknown", "able to compile a simple test program",
             "cmake_cuda_compiler not set", "failed to detect a default cuda architecture",
             "cuda compiler identification source file", "cmake_cuda_compiler-notfound",
             "cuda_architectures is empty", "cmake_cuda_architectures must be"),
            r"CUDA compiler identification is unknown|able to compile a simple test program"
            r"|CMAKE_CUDA_COMPILER(?:-NOTFOUND| not set)|(?P<archs>CUDA_ARCHITECTURES is empty"
            r"|CMAKE_CUDA_ARCHITECTURES must be|Failed to detect a default CUDA architecture)"
            r"|CUDA compiler identification source file",
            _unknown_compiler,
        ),
        plain(
            "cmake-stopped",
            ("provided by \"torch\"", "torchconfig.cmake", "torch-config.cmake"),
            r"package configuration file provided by \"Torch\"|Could not find (?:a package named )?"
            r"\"?Torch(?:Config\.cmake)?\"?",
            sort="torch",
        ),
        plain(
            "cmake-stopped",
            ("or higher is required.  you are running", "or higher is required. you are running"),
            r"CMake (?P<least>\d[\d.]{0,8}) or higher is required\.\s{1,3}You are running version "
            r"(?P<have>\d[\d.]{0,8})",
            sort="old",
        ),
        plain(
            "cmake-stopped",
            ("compatibility with cmake <",),
            r"Compatibility with CMake < (?P<least>\d\.\d{1,2}) has been removed",
            sort="new",
        ),
    )  # fmt: skip


def _unknown_compiler(line: Line, match: re.Match[str]) -> Mention | None:
    """CMake tries nvcc before anything is built; why that failed stands below, if at all."""
    near = (line, *line.below(12), *line.above(4))
    if "simple test" in match[0] and not any("CUDA compiler" in one.body for one in near):
        return None  # of a C++ compiler
    detail = {"sort": "compiler", "warning": "yes", "archs": match["archs"] or ""}
    for one in near:
        at = one.body.find("nvcc")
        head = one.body[max(0, at - 200) : at + 8] if at > 0 else one.body[:200]
        path = re.search(r"[^\s\"'=:(]*[\\/]nvcc(?:\.exe)?(?![\w.])|NOTFOUND", head)
        if path is not None:
            detail["nvcc"] = path[0]
            break
    return line.mention("cmake-stopped", match.start(), detail=detail)
