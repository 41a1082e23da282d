"""What a text says of the system around a missing library: who asks, what is there, by whom."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.asking import package_of_frame
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.programs import without_python
from fa_forensics.patterns import lazily

#: A compiled part of which a package has one for each torch: libgraphbolt_pytorch_2.4.0.so. The
#: number is what torch calls itself, without what stands behind a "+": conda-forge's 2.4.0.post301.
_FOR_ONE_TORCH = lazily(
    r"(?P<stem>(?:lib)?[a-z]\w{1,40})_pytorch_(?P<torch>[12]\.\d{1,2}\.\d{1,2})"
    r"(?P<tail>\.post\d{1,4}|(?:a|b|rc)\d|\.dev\d{8})?\.(?:so|dylib|dll)"
)


def for_one_torch(name: str) -> dict[str, str]:
    """The torch release in a library's file name, and what stands before it; {} for none."""
    found = _FOR_ONE_TORCH.fullmatch(name)
    return {} if found is None else {key: text or "" for key, text in found.groupdict().items()}


#: Lines that name a library and do not show that it is there.
_NOT_THERE = ("ln -s", "cannot open", "no such file", "not found", " rm ", "could not load")


#: How a path begins whose first slash was not written.
_WITHOUT_SLASH = ("home/", "usr/", "opt/", "mnt/", "root/")


def shown_elsewhere(line: Line, library: str | None) -> str:
    """The path of the missing library in a line nearby: what find or ls showed."""
    if library is None or "/" in library:
        return ""
    text, name = line.source.text, f"/{library}"
    at = text.find(name, max(0, line.start - 3_000), line.start + 4_000)
    for _ in range(4):
        if at < 0:
            break
        end = at + len(name)
        other = line.source.line_at(at)
        words = text[max(0, at - 300) : at].split()
        head = words[-1].lstrip("'\"`(") if words and not text[at - 1].isspace() else ""
        after = text[end : end + 1]
        head = f"/{head}" if head.startswith(_WITHOUT_SLASH) else head
        shown = head.startswith(("/", "~")) or "-packages/" in head
        shown = shown and not (after.isalnum() or after == ".")
        if shown and not any(words in other.lower for words in _NOT_THERE):
            return f"{head}/{library}"
        at = text.find(name, end, line.start + 4_000)
    return ""


def program_around(line: Line, library: str) -> dict[str, str]:
    """``present``, where the text shows the library, and what tells of a program without Python."""
    return {**without_python(line), "present": shown_elsewhere(line, library)}


def user_of(line: Line) -> str:
    """The package in the text that asks for CTranslate2; "" for none."""
    named = any(word in line.source.lower for word in ("faster-whisper", "faster_whisper"))
    return "faster-whisper" if named else ""


def shown_number(line: Line, library: str | None) -> str:
    """The number of another copy of the library that a wheel of NVIDIA's brings: "13".

    ``find`` shows ``.../site-packages/nvidia/cu13/lib/libnvrtc.so.13`` where .so.12 is missing.
    """
    parted = (library or "").rsplit("/", 1)[-1].partition(".so.")
    if not parted[2]:
        return ""
    near = line.source.text[max(0, line.start - 3_000) : line.start + 4_000]
    pattern = rf"nvidia/[\w/]{{1,60}}/{re.escape(parted[0])}\.so\.(\d{{1,2}})(?![\w.])"
    numbers = set(re.findall(pattern, near)) if f"{parted[0]}.so." in near else set()
    numbers.discard(parted[2])
    return str(numbers.pop()) if len(numbers) == 1 else ""


#: torch from conda, not a torch of pip in a conda environment: who installed it says so.
_CONDA_TORCH = lazily(
    r"\b(?:conda|mamba|micromamba)\s+(?:install|create)\b[^\n]{0,200}?\bpytorch\b"
    r"|^pytorch\s{1,40}\d[\w.]{0,20}\s{1,20}\S{0,60}(?:py3|cuda|cpu)"
    r"|-c (?:pytorch|soumith|conda-forge)\b[^\n]{0,60}\bpytorch\b"
    r"|(?<![\w-])pytorch-cuda[ =]{1,40}1[12]\.\d",
    re.MULTILINE,
)
#: pip installs something beside conda: what depends on torch brings a second one, or its wheels.
_PIP_TOO = lazily(r"\b(?:pip3?|uv pip) install (?!(?:-U |--upgrade )?pip\b)")
#: pytorch-1.10.2-cpu_py37hfa7516b_0, pytorch 1.10.2 py3.7_cpu_0; py37_torch_1.10.0_cu113.
_CONDA_CPU = lazily(
    r"\bpytorch(?:-|=|\s{1,40})(\d{1,2}\.\d{1,2}\.\d{1,2})(?:-|=|\s{1,20})(?:py3[.\d]{1,4}_)?cpu_"
)
_CONDA_PYG = lazily(r"py3\d{1,2}_torch_\d{1,2}\.\d{1,2}\.\d_cu(1[0-3]\d)\b")
_CUDATOOLKIT = lazily(r"\bcudatoolkit[ =]{1,40}(\d{1,2}\.\d{1,2})")
#: What makes torch run on accelerators without CUDA.
_MAKER = lazily(r"(?<![\w.])(torch_(?:musa|npu|mlu))(?!\w)")
_BOARD = lazily(
    r"\b(?:jetson|jetpack|tegra|l4t|nvgpu|xavier|orin)\b|-tegra\b|\bnv_tegra|aarch64-linux-gnu/tegra"
)
_BOARD_SIGNS = ("jets", "jetp", "tegra", "l4t", "nvgpu", "xavier", "orin")
#: The CPU was meant, not just met: a torch that calls itself +cpu can be an accident.
_CPU_WANTED = lazily(
    r"\bcpu[- ]?only\b|\bcpu version\b|without (?:a )?gpu\b|\bno gpu\b"
    r"|\binstall\b[^\n]{0,200}(?:\+cpu\b|/cpu\b)",
    re.IGNORECASE,
)


#: The CUDA of an image or of an environment, in people's words.
_CUDA_SPOKEN = lazily(
    r"\bcuda[ -]?(1[0-9])(?:\.\d{1,2})? (?:based )?(?:docker )?"
    r"(?:image|container|environment|envs?\b|runtime image|base image|cluster)"
    r"|(?:image|container|environment) (?:with|of|for|uses|has) cuda[ -]?(1[0-9])\b"
)


#: A shell's command in a cell of a notebook, which sets a variable for that shell alone.
_CELL_EXPORT = lazily(r"(?:^|[\s,;`'\"(])!\s?export ld_library_path", re.MULTILINE)
#: The release of TensorRT's binding: its wheel's name, or what its file says of itself.
_BINDING = lazily(
    r"\btensorrt[-=]{1,2}(?P<a>\d{1,2}\.\d{1,2}\.\d[\w.]{0,20}?)(?=-cp3|[\s,;'\")]|$)"
    r"|tensorrt/__init__\.py[\s\S]{0,600}?__version__ = \"(?P<b>[\d.]{3,12}[\w.]{0,20})\""
)


def system_around(line: Line) -> dict[str, str]:
    """How torch came there: ``conda``, conda's ``cudatoolkit``, ``board``, ``cpu_wanted``.

    ``cuda_spoken`` is the CUDA that people say an image has, ``maker`` the package that makes
    torch run on another maker's accelerator.
    """
    source = line.source
    start, end = max(0, line.start - 4_000), line.start + 4_000
    near, lower = source.text[start:end], source.lower[start:end]
    found: dict[str, str] = {**without_python(line), "step": frame(line)[0]}
    if any(word in lower for word in ("conda", "mamba", "pytorch-cuda", "::pytorch-")):
        found["conda"] = "yes" if "::pytorch-" in lower or _CONDA_TORCH.search(near) else ""
        toolkit = _CUDATOOLKIT.search(near)
        found["cudatoolkit"] = toolkit[1] if toolkit else ""
        cpu, cuda = _CONDA_CPU.search(lower), _CONDA_PYG.search(lower)
        found["conda_cpu"] = cpu[1] if cpu else ""
        found["conda_cu"] = cuda[1] if cuda else ""
    spoken = {a or b for a, b in _CUDA_SPOKEN.findall(lower)} if "cuda" in lower else set()
    found["cuda_spoken"] = str(spoken.pop()) if len(spoken) == 1 else ""
    makers = _MAKER.findall(near) if "torch_" in lower else ()
    found["maker"] = str(makers[0]) if makers and "No module named" not in near else ""
    found["board"] = _board(lower) if source.holds(_BOARD_SIGNS) else ""
    if "export ld_library_path" in lower and _CELL_EXPORT.search(lower):
        found["notebook_export"] = "yes"
    found["without_gpus"] = _without_gpus(lower)
    if "tensorrt" in lower:
        binding = _BINDING.search(lower)
        found["binding"] = (binding["a"] or binding["b"]).strip(".") if binding else ""
    if "cpu" in lower or "gpu" in lower:
        found["cpu_wanted"] = "yes" if _CPU_WANTED.search(near) else ""
    return found


#: What hands a GPU to a container, by docker's and podman's own options.
_HANDS_IN = (
    "--gpus",
    "--runtime",
    "nvidia.com/gpu",
    "/dev/nvidia",
    "--privileged",
    "nvidia-docker",
)
#: The whole command, with the lines that a backslash joins to it.
_RUN = lazily(r"\b(docker|podman) run\s(?:[^\n\\]|\\\n|\\)*")


def _without_gpus(lower: str) -> str:
    """The program ("docker") that a text starts a container with, and hands in no GPU; "" else."""
    if " run " not in lower or any(word in lower for word in ("default-runtime", *_HANDS_IN)):
        return ""
    found = _RUN.search(lower)
    return found[1] if found is not None else ""


def _board(lower: str) -> str:
    """Whether a text is of a Jetson, whose JetPack release brings CUDA and cuDNN."""
    return "yes" if _BOARD.search(lower) else ""


#: A wheel's own copy of a library, as ldd and people name its directory.
_WHEEL_COPY = lazily(r"(?<![\w/.-])(?:\S{1,200}-packages/)?nvidia/(?P<name>\w{2,20})(?![\w])")


def cuda_around(line: Line, version: str | None, file: str | None) -> dict[str, str]:
    """What a text says of a missing name of CUDA's: conda's packages, a board, who failed.

    ``by`` is the package of the traceback's last step, ``copy`` the directory of a wheel that
    the text names as the place of the copy that is taken, ``cudnn`` the version of cuDNN,
    ``own_build`` a program that somebody compiled with an NCCL of one's own, ``imported`` the
    one module that the text imports, ``jit`` the cache whose file it is,
    ``editable`` that pip builds what is installed with --editable.
    """
    found = conda_around(line, version)
    source = line.source
    start, end = max(0, line.start - 4_000), line.start + 4_000
    near, lower = source.text[start:end], source.lower[start:end]
    if source.holds(_BOARD_SIGNS) and _board(lower):
        found["board"] = "yes"
    told = _CUDNN_TOLD.search(lower) if source.holds(("cudnn",)) else None
    if told is not None:
        found["cudnn"] = told["version"]
    built = (
        _OWN_BUILD.search(lower)
        if source.holds(("nccl-tests", "nccl tests", "nccl_home", "all_reduce_perf"))
        else None
    )
    if built is not None and "torch" not in lower and "-packages/" not in (file or ""):
        found["own_build"] = "nccl-tests"
    if version is None or not version.startswith("lib"):
        copy = _copy_taken(near, lower, file or "")
        if copy:
            found["copy"] = copy
    if "pip-build-env-" in (file or "") and "editable" in lower:
        found["editable"] = "yes"
    found["imported"] = _one_import(near) if "import " in near else ""
    cache = _JIT_CACHE.search(near) if "/.cache/" in near else None
    found["jit"] = cache["name"] if cache is not None else ""
    if source.holds(_WITHOUT_TORCH) and any(name in lower for name in _WITHOUT_TORCH):
        by = package_of_frame(line)
        if by.startswith(_WITHOUT_TORCH):
            found["by"] = by
    return found


#: The directories in which programs keep what they compile at run time.
_JIT_CACHE = lazily(
    r"(?:~|/[\w./-]{1,100})/\.cache/(?P<name>flashinfer|torch_extensions|vllm|tvm-ffi|tilelang)\b"
)
#: A statement, not the word in a sentence: ``import cuml`` alone, in quotes or between commas.
_IMPORTED = lazily(
    r"(?:^|[,;'\"`>:])\s?import\s([a-z_]\w{1,40})(?=\s{0,3}(?:$|[,;'\"`]|as\s))", re.MULTILINE
)
_OF_PYTHON = frozenset(("os", "sys", "ctypes", "torch", "numpy", "error", "errors", "warnings"))


def _one_import(near: str) -> str:
    """The one module besides torch and Python's own that a text imports; "" for several."""
    names = set(_IMPORTED.findall(near)) - _OF_PYTHON
    return str(names.pop()) if len(names) == 1 else ""


#: Programs that are compiled with an NCCL of one's own.
_OWN_BUILD = lazily(r"\bnccl[- ]tests?\b|\bnccl_home\b|\ball_reduce_perf\b")

#: Packages that load CUDA's libraries and do not link torch.
_WITHOUT_TORCH = ("onnxruntime", "paddle", "cupy", "jax", "tensorflow", "mxnet")


#: "CUDNN: 7.3.1.28", "cudnn=6.0.21": a version that somebody wrote down, not cmake's headers.
_CUDNN_TOLD = lazily(
    r"(?:(?<!found )\bcudnn(?:\s?version)?\s?[:=]{1,2}\s?v?"
    r"|\b(?:system|host|local)(?:'s)? cudnn v?)"
    r"(?P<version>[4-9]\.\d{1,2}(?:\.\d{1,4}){0,2})"
)


def _copy_taken(near: str, lower: str, file: str) -> str:
    """The wheel's directory that a text shows to be the one the library is taken from."""
    if "nvidia/" not in lower or "ldd" not in lower:
        return ""
    for found in _WHEEL_COPY.finditer(near):
        if found[0] not in file and "=>" not in near[found.end() : found.end() + 40]:
            return found["name"]
    return ""


#: A part of torch 1.8 to 1.13 in an environment of conda that asks for a library which PyTorch's
#: wheels of that time have inside (their metadata names cuBLAS, cuDNN, NVRTC and cudart alone).
_SPLIT_OF_CONDA = lazily(
    r"(?:/envs/|conda|forge|mamba)[^\s:]{1,200}/torch/lib/libtorch_cuda_c(?:u|pp)\.so: undefined "
    r"symbol: \w{1,200}, version lib(?:cusparse|cufft|curand|cusolver)\.so"
)
#: conda's package for a CUDA version.
_CONDA_CUDA = lazily(r"\bpytorch-cuda[ =]{1,40}(\d{1,2}\.\d{1,2})")


def conda_around(line: Line, version: str | None) -> dict[str, str]:
    """Whether torch is conda's, its CUDA, and conda's version of the library of a soname."""
    soname = version or ""
    if not soname.startswith("lib") or ".so" not in soname:
        return {}
    if "conda" not in line.source.lower and "pytorch-cuda" not in line.source.lower:
        return {}
    near = line.source.text[max(0, line.start - 4_000) : line.start + 4_000]
    if not _CONDA_TORCH.search(near) and not _SPLIT_OF_CONDA.search(line.body):
        return {}
    stem = re.escape(soname.split(".so")[0])
    has = re.search(rf"(?<![\w-]){stem}[ =]{{1,40}}(\d{{1,2}}\.[\d.]{{1,20}})", near)
    cuda = _CONDA_CUDA.search(near)
    return {
        "conda": "yes",
        "pip_too": "yes" if "pip" in near and _PIP_TOO.search(near) else "",
        "conda_has": has[1] if has else "",
        "conda_cuda": cuda[1] if cuda else "",
    }


def loaded_by_torch(line: Line) -> str:
    """Tell with ``yes`` that torch loads the file: it is in the process already then."""
    words = ("torch/_ops.py", "torch.ops.load_library")
    above = (one.body for one in line.above(8))
    return "yes" if any(word in body for body in above for word in words) else ""


#: A torch that its owner says has CUDA, and an extension of the stable ABI.
_WITH_CUDA = lazily(
    r"\btorch(?: [\d.]{3,8})? (?:built |compiled )?with cuda\b"
    r"|\bcuda(?:-enabled)? build of (?:py)?torch"
    r"|cuda\.is_available\(\)\)?[\s:=>#-]{1,6}true|\bcuda available\s?[:=]\s?true"
)
_STABLE = lazily(r"\w_stable\b|\bstable[ _]abi\b|\blibtorch[ _]stable\b")


def cuda_torch_around(line: Line) -> dict[str, str]:
    """Whether a text says that its torch has CUDA, and whether the extension is of stable ABI."""
    start = max(0, line.start - 4_000)
    near = line.source.lower[start : line.start + 4_000]
    return {
        "torch_with_cuda": "yes" if "cuda" in near and _WITH_CUDA.search(near) else "",
        "stable_abi": "yes" if "stable" in near and _STABLE.search(near) else "",
    }


#: That torch's own import is what fails, in the words of people and in commands.
_TORCH_ALONE = lazily(
    r"\binstall(?:ing|ed|ation of)\s{1,3}(?:py)?torch\b(?!\w|[\s-]{0,2}[a-z]{3,})"
    r"|\b(?:running|run|runs|doing|calling|execut(?:e|ing)|when i|when|on|while|try to|trying to|"
    r"cannot|can't|could not|unable to|fail(?:s|ed)? to|error in)\s{1,3}[`'\"]{0,3}"
    r"import(?:ing)?\s(?:py)?torch\b(?![._\w]|[`'\"]{0,3}\s{0,2}"
    r"(?:;|,(?!\s(?:this|the|it|i|an?|there|got|but|we|my)\b)|and\b|then\b|as\b))"
    r"|\bpython\d?(?:\.\d{1,2})?\s-c\s['\"]import torch(?:['\"]|;\s?print)",
    re.IGNORECASE,
)


def torch_is_imported(line: Line) -> str:
    """Tell with ``yes`` that the text speaks of torch's own import, right around the message."""
    near = (line, *line.above(2), *line.below(2))
    spoken = (one.body for one in near if "torch" in one.lower)
    return "yes" if any(_TORCH_ALONE.search(body) for body in spoken) else ""


#: A part of cuDNN by its whole path, as LD_DEBUG, ldd, find and the maps of a process show it.
_CUDNN_FILE = lazily(r"(?P<folder>/[\w./+~-]{1,300})/(?P<name>libcudnn\w{0,40}\.so\.\d[\d.]{0,9})")


def odd_part(line: Line) -> str:
    """The path of the part of cuDNN that does not lie with the others, where the text has paths."""
    start = max(0, line.start - 4_000)
    near = line.source.text[start : line.start + 8_000]
    folders: dict[str, list[str]] = {}
    for found in _CUDNN_FILE.finditer(near) if "libcudnn" in near else ():
        folders.setdefault(found["folder"], []).append(found["name"])
    if len(folders) != 2:
        return ""
    outside = [one for one in folders if "-packages/" not in one]
    few = min(folders, key=lambda one: len(set(folders[one])))
    folder = outside[0] if len(outside) == 1 else few
    return f"{folder}/{folders[folder][0]}"
