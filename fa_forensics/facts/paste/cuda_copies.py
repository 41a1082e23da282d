"""Texts on copies of NVIDIA's libraries: cuDNN's two releases, cuBLAS's errors, loader's traces."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.facts.paste.system_around import odd_part
from fa_forensics.patterns import lazily


def recognisers() -> tuple[Recogniser, ...]:
    """The texts about copies of CUDA's libraries."""
    return (
        by_pattern(
            ("nvrtc-builtins",),
            r"failed to open (?P<library>lib\w{1,20}-builtins(?:-?\w{1,20})?\.(?:so|dll)"
            r"(?:\.\d{1,3}){0,3})",
            _builtins,
        ),
        by_pattern(
            ("cudnn version incompat", "cudnn version mismatch", "compiled against cudnn",
             "sublibrary_version_mismatch", "cudnn_status_version_mismatch",
             "sublibrary_loading_failed", "source was compiled with"),
            r"cuDNN version (?:incompatibility|mismatch)(?::?\s{0,3}(?:PyTorch )?was compiled"
            r"\s{1,3}against \(?(?P<built>[\d, .]{1,20})\)?"
            r" but (?:found runtime version|linked against) \(?(?P<found>[\d, .]{1,20}\d))?"
            r"|Loaded runtime CuDNN library: (?P<found2>[\d.]{1,20}) but source was compiled "
            r"with: (?P<built2>[\d.]{1,20}\d)"
            r"|CUDNN_STATUS_(?P<status>(?:SUBLIBRARY_)?(?:VERSION_MISMATCH|LOADING_FAILED))",
            _cudnn_mix,
        ),
        plain(
            "nvshmem-mix",
            ("nvshmem device library version",),
            r"NVSHMEM device library version[^\n]{0,60}? does not match",
        ),
        plain(
            "cublas-status",
            ("cublas_status_", "cudnn_status_", "cusolver_status_", "cusparse_status_", "cufft_",
             "curand_status_"),
            r"(?:error|fail(?:ed|ure)?|exception)\b[^\n]{0,60}?\b"
            r"(?P<owner>CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CURAND|CUFFT)(?:_STATUS)?_(?P<status>"
            r"NOT_INITIALIZED|ALLOC_FAILED|INVALID_VALUE|MAPPING_ERROR|EXECUTION_FAILED"
            r"|EXEC_FAILED|INTERNAL_ERROR|NOT_SUPPORTED(?:_\w{2,40})?|BAD_PARAM|ARCH_MISMATCH"
            r"|SETUP_FAILED|LAUNCH_FAILURE|INITIALIZATION_FAILED)\b"
            r"(?:[,:]? when calling [`'\"]?(?P<call>cu[a-z]{3,8}\w{2,60}))?",
        ),
        plain(
            "jax-library",
            ("unable to load cu", "unable to load nv"),
            r"Unable to load (?P<title>cuDNN|cuBLAS(?:Lt)?|cuSPARSE|cuSOLVER|cuFFT|CUPTI|nvJitLink"
            r"|CUDA)\b",
        ),
        by_pattern(
            ("needed by",),
            r"\bfile=(?P<library>lib[\w+]{1,40}\.so[\d.]{0,12}) \[\d{1,4}\];\s{1,4}needed by "
            r"(?P<by>\S{1,400}nvidia/\S{1,200}|\S{1,400}/torch/lib/\S{1,200})",
            _loader_trace,
        ),
    )  # fmt: skip


def _builtins(line: Line, match: re.Match[str]) -> Mention:
    return line.mention("nvrtc-builtins", match.start(), library=match["library"])


def _cudnn_mix(line: Line, match: re.Match[str]) -> Mention:
    """Two releases of cuDNN, and the file that comes from another directory than the others."""
    detail = {key: text.strip() for key, text in match.groupdict().items() if text}
    detail["odd"] = odd_part(line)
    detail["on_path"] = _on_path(line)
    if line.source.holds(("system",)):
        start = max(0, line.start - 4_000)
        system = _OF_SYSTEM.search(line.source.text[start : line.start + 4_000])
        detail["system"] = system["version"] if system is not None else ""
    return line.mention("cudnn-mix", match.start(), detail=detail)


#: "system cuDNN 9.23", "the system's cudnn is 9.23.0".
_OF_SYSTEM = lazily(
    r"\bsystem(?:'s|-wide)?,? cudnn(?: version)?(?: is|:)? v?"
    r"(?P<version>[4-9]\.\d{1,2}(?:\.\d{1,4}){0,2})",
    re.IGNORECASE,
)
#: A directory of a search path that is named for cuDNN.
_CUDNN_FOLDER = lazily(r"(?<![^:\s=\"'])(/[\w./+~-]{0,200}cudnn[\w./+~-]{0,200})(?=[:\s\"']|$)")


def _on_path(line: Line) -> str:
    """The directory for cuDNN in an LD_LIBRARY_PATH that the text shows."""
    start = max(0, line.start - 4_000)
    near = line.source.text[start : line.start + 4_000]
    at = near.find("LD_LIBRARY_PATH")
    found = _CUDNN_FOLDER.search(near[at : at + 2_000]) if at >= 0 and "cudnn" in near else None
    return found[1] if found is not None else ""


#: What the loader tries, and what it then takes.
_TRIED = lazily(r"(?:trying file|calling init)[=:]\s{0,2}(?P<path>/\S{1,400})")


def _loader_trace(line: Line, match: re.Match[str]) -> Mention | None:
    """LD_DEBUG=libs shows that a wheel's library is given a copy from outside the wheels."""
    library, path, variable = match["library"], "", ""
    for below in line.source.behind(line):  # the process's number can read as another stream
        if "find library=" in below.body or "; needed by" in below.body:
            break
        if "(LD_LIBRARY_PATH)" in below.body:
            variable = "LD_LIBRARY_PATH"
        found = _TRIED.search(below.body)
        if found is not None and found["path"].endswith(f"/{library}"):
            path = found["path"]
    if not path or "-packages/" in path or "/torch/lib/" in path:
        return None
    return line.mention(
        "loader-trace", match.start(), library=library, file=match["by"],
        detail={"path": path, "variable": variable},
    )  # fmt: skip
