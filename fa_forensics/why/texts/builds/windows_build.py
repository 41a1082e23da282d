"""Answers to builds on Windows that its linker ended, or whose module does not load."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.torch_names.history import order_key

COMPILE, WINDOWS = "FA883", "FA889"

#: Import libraries of torch that its CPU builds for Windows do not have.
_OF_CUDA_TORCH = lazily(r"(?:c10_cuda|torch_cuda(?:_cu|_cpp)?|caffe2_nvrtc)\.lib$", re.I)
_OF_TORCH = lazily(r"(?:c10|torch|torch_cpu|torch_python|_C)\.lib$", re.I)
_OF_PYTHON = lazily(r"python3\d{0,2}t?(?:_d)?\.lib$", re.I)
_OF_TOOLKIT = lazily(
    r"(?:cuda|cudart(?:_static)?|cudadevrt|cublas(?:Lt)?|cusparse|cusolver|cufft|curand|nvrtc"
    r"|nvjitlink|nvToolsExt64_1)\.lib$",
    re.I,
)


def _torch_line(seen: Seen) -> str:
    return (
        f'{seen.python} -c "import torch; print(torch.__version__, torch.version.cuda, '
        'torch.__path__[0])"'
    )


def link_error(seen: Seen) -> Answer:
    """``LNK1181: cannot open input file``, ``LNK2019: unresolved external symbol``."""
    detail = seen.mention.detail
    library = re.split(r"[\\/]", detail.get("input", ""))[-1]
    if not library:
        return _unresolved(seen)
    if not library.lower().endswith(".lib"):
        return _in_use(seen, library)
    if _OF_CUDA_TORCH.search(library):
        return _cpu_torch(seen, library)
    if _OF_PYTHON.search(library):
        return without_libs(seen, library)
    if _OF_TOOLKIT.search(library):
        cause = (
            f"The linker found no {library}: it comes with the CUDA toolkit, in lib\\x64, and not "
            "with torch's wheels. The toolkit is not installed as a whole, or CUDA_HOME "
            "(CUDA_PATH) names another directory."
        )
        look = 'echo %CUDA_HOME% %CUDA_PATH% & dir "%CUDA_PATH%\\lib\\x64" & nvcc --version'
        return _build(seen, cause, "cuda-toolkit", "high", (look,))
    if _OF_TORCH.search(library):
        cause = (
            f"The linker found no {library}, which each torch for Windows has in torch\\lib: that "
            "directory is not on the link line (torch.utils.cpp_extension puts it there), or the "
            "build runs with a Python whose torch is not whole."
        )
        return _build(seen, cause, "torch", "medium", (_torch_line(seen), "where python"))
    cause = (
        f"The linker found no {library}, so that the extension was never made. This text does not "
        "say which package brings it: it is neither torch's nor the CUDA toolkit's by its name."
    )
    return _build(seen, cause, package_in(seen), "low", (f"where /r . {library}",))


def _cpu_torch(seen: Seen, library: str) -> Answer:
    cause = (
        f"The linker found no {library}: torch's builds with CUDA for Windows have it in "
        "torch\\lib, the CPU builds do not (on Windows the default index has CPU builds alone). "
        "The torch of this build is one without CUDA; the CUDA toolkit plays no part."
    )
    return _build(
        seen, cause, "torch", "high",
        (_torch_line(seen), f"{seen.pip} uninstall torch",
         f"{seen.pip} install torch --index-url URL_OF_TORCHS_INDEX_FOR_CUDA"),
        ("None in the second place of the first line means a torch without CUDA. torch's own "
         "index, whose name ends in cu and the CUDA version, has the others: take one of the "
         "toolkit's major version.",
         "In an isolated build pip fetches a torch of its own, from the default index: "
         "--no-build-isolation takes the installed one."),
    )  # fmt: skip


def without_libs(seen: Seen, missing: str) -> Answer:
    """An embedded Python: its download has neither include nor libs."""
    cause = (
        f"{missing} is a development file of Python, and this Python has none: Windows' embeddable "
        "package, and the portable programs that bring one along, leave the directories include "
        "and libs out. Neither torch nor CUDA nor Visual Studio is at fault."
    )
    return _build(
        seen, cause, "python", "medium" if missing != "Python.h" else "high",
        (f'{seen.python} -c "import sys, sysconfig; print(sys.version, sys.base_prefix, '
         "sysconfig.get_path('include'))\"",
         f'{seen.python} -c "import os, sys; print([d for d in (\'include\', \'libs\') if '
         'os.path.isdir(os.path.join(sys.base_prefix, d))])"'),
        ("Copy include and libs from a full installation of the same Python version (the first two "
         "numbers) into the directory that the first command prints second, beside python.exe.",
         "A full installation of Python in place of the embedded one has both."),
        kind="wrong-torch",
    )  # fmt: skip


def _unresolved(seen: Seen) -> Answer:
    cause = (
        "This is the linker's message of a build on Windows: a name that the objects use is in "
        "none of the libraries on the link line. A library is missing there, or torch's headers "
        "and libraries of the build are of two torches. Nothing was installed, so no installed "
        "file is at fault."
    )
    return _build(
        seen, cause, package_in(seen), "low", (_torch_line(seen), "where cl & nvcc --version"),
        ("The name after the number tells whose it is: at::, c10:: and torch:: are torch's, "
         "cu... the CUDA toolkit's, Py... Python's.",),
    )  # fmt: skip


def _in_use(seen: Seen, file: str) -> Answer:
    cause = (
        f"The linker could not open {file}. Where that is what it was to make (.pyd, .dll), a "
        "running Python holds it; where it is an input (.obj), the compiler did not make it, and "
        "an earlier error says why."
    )
    return _build(seen, cause, package_in(seen), "low", ("tasklist | findstr python",))


def _build(
    seen: Seen, cause: str, owner: str | None, confidence: str, helps: tuple[str, ...],
    notes: tuple[str, ...] = (), kind: str = "windows",
) -> Answer:  # fmt: skip
    return seen.answer(
        kind, COMPILE, cause, owner=owner, direction="none", confidence=confidence, help=helps,
        notes=notes,
    )  # fmt: skip


def jit_module(seen: Seen) -> Answer:
    """torch built a module where it runs, and Windows does not load it."""
    module = seen.mention.detail.get("module") or "the module"
    cause = (
        f"torch built {module} where it runs, and Windows did not load it: a DLL that it needs is "
        "not found, seldom the file itself. Since Python 3.8 PATH is not searched for what an "
        "extension needs, so the CUDA toolkit's bin (cudart64_*.dll) has to be told: that is the "
        "likely one, since torch's own directory is added by import torch."
    )
    return seen.answer(
        "windows", WINDOWS, cause, owner=package_in(seen) or "cuda-toolkit", direction="unknown",
        confidence="medium",
        help=(
            "where cudart64_*.dll & echo %CUDA_HOME% %CUDA_PATH%",
            f"dumpbin /dependents {module if module != 'the module' else 'MODULE'}.pyd",
            f"{seen.python} -c \"import os, torch; os.add_dll_directory(os.environ['CUDA_PATH'] + "
            "r'\\bin'); print(torch.__version__, torch.version.cuda)\"",
        ),
        notes=(
            "dumpbin runs in Visual Studio's prompt, in the module's directory below "
            "torch_extensions in the user's cache, and lists what the module needs.",
            "os.add_dll_directory goes into the program, before the module is loaded.",
        ),
    )  # fmt: skip


def newer_visual_studio(seen: Seen) -> Answer | None:
    """Visual Studio 2022 refused by a CUDA that takes 2022: by the number of its compiler."""
    cuda = seen.mention.detail.get("toolkit") or seen.versions.get("cuda") or ""
    if not re.match(r"\d", cuda) or "2022" not in seen.mention.detail.get("range", ""):
        return None
    rows = build_names()["msvc"]
    fitting = [key for key in rows if order_key(cuda) >= order_key(key)]
    if not fitting:
        return None
    refused = int(rows[fitting[-1]])
    toolset = f"14.{refused - 1900}"
    later = next((k for k in rows if order_key(k) > order_key(fitting[-1])), None)
    last = f"14.{refused - 1901}"
    cause = (
        f"nvcc of CUDA {cuda} refuses Visual Studio's compiler. It takes Visual Studio 2022, but "
        f"only with an MSVC toolset before {toolset} (_MSC_VER below {refused}): a newer update of "
        f"Visual Studio brought a newer one. The toolset {last} or an older one beside it is the "
        "way out; Visual Studio itself can stay."
    )
    notes = [
        "The Visual Studio Installer has older toolsets under individual components (MSVC v143, "
        "C++ x64/x86 build tools); vcvars64.bat decides which is taken, in the prompt of the "
        "build. -allow-unsupported-compiler only silences the check."
    ]
    if later:
        notes.append(
            f"CUDA {later} and newer take it, where there is a torch for that CUDA to go with it."
        )
    return _build(
        seen, cause, "msvc", "medium",
        ("where cl & cl & nvcc --version", f"vcvars64.bat -vcvars_ver={last}"), tuple(notes),
    )  # fmt: skip
