"""Answers about libraries of bitsandbytes that are not there: never built, or under another name.

Which file it takes: bitsandbytes/cextension.py of 0.43 to 0.49.
"""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.flash_limits import release_key
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.files.machine_text import host_of
from fa_forensics.why.texts.gpu.jetson_text import board_of, is_jetson

#: The number of BNB_CUDA_VERSION behind the variant, as 0.43 composed it: no build makes such one.
_MISNAMED = lazily(r"libbitsandbytes_cuda(\d{2,3})_nocublaslt(\d{2,3})\b")


def misnamed(seen: Seen, file: str) -> Answer | None:
    """``libbitsandbytes_cuda121_nocublaslt123.so``: a name that BNB_CUDA_VERSION put together."""
    found = _MISNAMED.search(file)
    if found is None:
        return None
    own, wanted = found[1], found[2]
    good = f"libbitsandbytes_cuda{wanted}_nocublaslt.so"
    return seen.answer(
        "missing-library", "FA202",
        f"bitsandbytes looks for a library of its own under a name that no build gives it: "
        f"BNB_CUDA_VERSION={wanted} was put behind _nocublaslt (the variant for GPUs before "
        f"compute capability 7.5), where {good} is what a build makes. That is a fault of this "
        "release, mended in later ones. libbitsandbytes_cpu.so is only what it tries next.",
        owner="bitsandbytes", direction="none", confidence="high",
        help=(
            f"{list_own(seen)}",
            f"unset BNB_CUDA_VERSION; {seen.python} -m bitsandbytes",
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
        ),
        notes=(
            f"Without the variable it looks for libbitsandbytes_cuda{own}_nocublaslt.so, which is "
            "for torch's own CUDA: that is the file to build or to have. The first command lists "
            "those that are there.",
            "From source, the variant is cmake -DCOMPUTE_BACKEND=cuda -DNO_CUBLASLT=1 -S . and "
            f"make, with the nvcc of torch's CUDA ({cuda_of_label(own)}), then pip install . "
            "there.",
        ),
    )  # fmt: skip


def list_own(seen: Seen) -> str:
    """The libraries of the bitsandbytes that is imported, without importing it."""
    return (
        f"{seen.python} -c 'import importlib.util as u, os; "
        'd = u.find_spec("bitsandbytes").submodule_search_locations[0]; '
        'print(d, sorted(f for f in os.listdir(d) if "libbits" in f))\''
    )


_FOLLOWS = (
    "An AttributeError of NoneType further below follows from that: what holds the library's "
    "functions stays empty."
)


def nothing_there(seen: Seen, file: str) -> Answer:
    """Neither the library for the GPU nor the one for the CPU, which every wheel holds."""
    built = seen.mention.detail.get("built", "")
    if re.search(r"_(?:hip|rocm)", file) or (rocm_told(seen) and "_cuda" not in file):
        return _no_hip(seen, file)
    what = file or "its library for CUDA"
    cause = (
        f"bitsandbytes finds neither {what} nor the library for the CPU that every wheel of it "
        "holds: its Python files were installed from source without compiling, or the installation "
        "is not whole. Neither an installed CUDA toolkit nor LD_LIBRARY_PATH plays a part."
    )
    notes = (
        "From source, cmake -DCOMPUTE_BACKEND=cuda -S . and make come before pip install; "
        "setup.py alone compiles nothing.",
    )
    if built:
        cause = (
            f"bitsandbytes finds no {what}; the library for the CPU, which it tries next, a build "
            "for a GPU does not make. The text shows that it was compiled from source. Two causes "
            "fit: the build made a library for another CUDA than torch's (the number in the name "
            "is torch.version.cuda's, or BNB_CUDA_VERSION's), or the package that is imported is "
            "another copy than the one that was built. The first command tells which are there."
        )
        notes = (
            f"What was built goes into the directory bitsandbytes of the source tree: cmake "
            f"-DCOMPUTE_BACKEND={built} -S . and make with torch's own CUDA, then pip install -e . "
            "there.",
        )
    told = seen.versions.get("pkg:bitsandbytes", "")
    number = re.search(r"_cuda(\d{3})(?!\d)", file)
    old = number is not None and int(number[1]) < 118  # its wheels have no such library since 0.46
    newest = '"bitsandbytes<0.46"' if old else "bitsandbytes"
    pinned = f"bitsandbytes=={told}" if re.fullmatch(r"\d+(?:\.\d+){1,3}", told) else newest
    again = (
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary "
        f"bitsandbytes {pinned}"
    )
    return seen.answer(
        "damaged-file", "FA880", cause, owner="bitsandbytes", direction="none",
        confidence="medium" if built else "high",
        help=((list_own(seen),) if built else (again,)) + (f"{seen.python} -m bitsandbytes",),
        notes=(*notes, _FOLLOWS),
    )  # fmt: skip


def never_compiled(seen: Seen, path: str) -> Answer:
    """A source tree whose library was never made (compile_from_source.md of 0.37 to 0.42)."""
    import shlex

    file = path.rsplit("/", 1)[-1]
    tree = path.rsplit("/", 1)[0].removesuffix("/bitsandbytes")
    number = re.search(r"_cuda(\d{3})", file)
    version = number[1] if number else seen.mention.detail.get("detected") or "118"
    target = version if version == "110" else f"{version[:2]}x"
    target += "_nomatmul" if file.endswith("_nocublaslt.so") else ""
    folder = shlex.quote(tree) if "..." not in tree else "/path/to/bitsandbytes"
    cause = (
        f"{file} is bitsandbytes' own library, and the package that is imported is the source tree "
        f"{tree}, where it was never compiled: make comes before setup.py or pip, which only copy "
        "the Python files. CUDA was found; neither the driver nor the CUDA runtime is missing."
    )
    return seen.answer(
        "missing-library", "FA880", cause, owner="bitsandbytes", direction="none",
        confidence="high",
        help=(f"cd {folder} && CUDA_VERSION={version} make cuda{target} && {seen.python} -m pip "
              "install .",
              f"cd / && {seen.python} -m bitsandbytes"),
        notes=(
            "make needs the nvcc of that CUDA (CUDA_HOME). Newer sources have CMakeLists.txt in "
            "place of the Makefile: cmake -DCOMPUTE_BACKEND=cuda -S . and make.",
            "A release wheel needs no compiling, but it counts only where the source tree is "
            "neither the working directory nor installed: pip uninstall bitsandbytes, leave the "
            "directory, then pip install bitsandbytes.",
        ),
    )  # fmt: skip


def _no_hip(seen: Seen, file: str) -> Answer:
    """The library for ROCm under the name that the loader wants (ROCm/bitsandbytes 30 and 35)."""
    cause = (
        f"bitsandbytes does not find {file or 'its library for ROCm'}. The loader composes that "
        "name by the ROCm of torch (torch.version.hip), a build by the ROCm of the system. Two "
        "causes fit: a library for ROCm is there under another name (libbitsandbytes_hip.so, "
        "libbitsandbytes_hip_nohipblaslt.so for a ROCm without hipBLASLt, libbitsandbytes_rocmNN.so"
        "), or it was never compiled. libbitsandbytes_cpu.so is only what it tries next, and a "
        "build for ROCm makes none."
    )
    which = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'; "
        "hipconfig --version"
    )
    return seen.answer(
        "missing-library", "FA880", cause, owner="bitsandbytes", direction="none",
        confidence="medium", help=(which, list_own(seen)),
        notes=(
            "The first command prints torch's ROCm and that of the system, the second which "
            "libraries of bitsandbytes are there. Where the two ROCm differ: torch for the ROCm of "
            "the system (index .../whl/rocmX.Y), or bitsandbytes compiled with torch's ROCm.",
            "From source: cmake -DCOMPUTE_BACKEND=hip -S . and make in an empty copy of the "
            "sources, then pip install . there; pip install alone compiles nothing. Nothing of "
            "CUDA is to be installed.",
            "Wheels of the package index hold libraries for ROCm in newer releases alone, for the "
            "ROCm of their time: they suit a torch for one of these.",
        ),
    )  # fmt: skip


def own_library(seen: Seen, path: str) -> Answer | None:
    """``.../libbitsandbytes_cpu.so: cannot open shared object file`` without words around it.

    None for a file of another package.
    """
    name = path.rsplit("/", 1)[-1]
    if not name.startswith("libbitsandbytes_"):
        return None
    wrong = misnamed(seen, name)
    if wrong is not None:
        return wrong
    which = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.version.hip, torch.cuda.is_available())'"
    )
    number = re.match(r"libbitsandbytes_rocm(\d{2,3})\.so$", name)
    if number is not None:
        return other_rocm(seen, number[1])
    if is_jetson(seen) or (host_of(seen) == "aarch64" and not _has_arm_wheels(seen)):
        return _for_another_processor(seen, path, name)
    if not name.startswith("libbitsandbytes_cpu"):
        return _for_another_torch(seen, name, which)
    rocm = rocm_told(seen)
    cause = (
        "libbitsandbytes_cpu.so is only what bitsandbytes takes where it sees no GPU build of "
        "torch, or has no library for that one: that it is missing is not the fault, and building "
        "it helps nothing on a GPU. Most likely the torch that is imported has no CUDA and no "
        "ROCm (torch.version.cuda and torch.version.hip are None), or sees no GPU."
    )
    notes = [
        "The first command says which torch that is, the second which libraries of bitsandbytes "
        "are there: libbitsandbytes_cudaNNN.so for torch's CUDA, or libbitsandbytes_hip.so or "
        "_rocmNN.so for ROCm, has to be among them.",
    ]
    helps = [which, list_own(seen)]
    if rocm:
        cause = (
            "libbitsandbytes_cpu.so is only what bitsandbytes takes where it does not see ROCm: it "
            "goes by torch.version.hip. The text is of ROCm, so most likely the torch that is "
            "imported is no build for ROCm any more: a requirements file, or a package of pip, has "
            "put the package index's torch (for CUDA) in its place. The library for ROCm may well "
            "be there."
        )
        notes.append(
            "Where torch.version.hip is None, torch for ROCm has to come back: the image anew, or "
            "torch from pytorch.org's index for that ROCm; then the rest with a constraints file "
            "(pip freeze | grep -i ^torch > c.txt before, pip install -c c.txt ...), so that pip "
            "leaves torch alone."
        )
    else:
        helps.append(f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes")
    return seen.answer(
        "missing-library", "FA880", cause, owner="bitsandbytes", direction="none",
        confidence="medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _number_of(rocm: str) -> str:
    """The number in the library's name: ten times the major release and the minor one.

    ROCm 6.4 is 64 and 7.12 is 82, as its maintainers say of that name.
    """
    major, _, rest = rocm.partition(".")
    minor = rest.split(".")[0]
    if not (major.isdigit() and minor.isdigit()):
        return major
    return str(int(major) * 10 + int(minor))


def other_rocm(seen: Seen, number: str) -> Answer:
    """The library for torch's ROCm is not there: what was built, or is held, is for another one.

    A build names it by hipconfig, the loader by torch.version.hip (bitsandbytes' pull request
    1878, which brought BNB_ROCM_VERSION and -DROCM_VERSION).
    """
    cause = (
        f"bitsandbytes looks for libbitsandbytes_rocm{number}.so: the number is the ROCm of the "
        "torch that is imported (torch.version.hip), which is a build for ROCm, so torch is in "
        "order. A build names its library after the ROCm of the system (hipconfig), and a wheel "
        "holds libraries for some releases of ROCm alone: what is there is for another ROCm, or "
        "was never built."
    )
    told = seen.versions.get("rocm", "")
    if told and _number_of(told) != number:
        cause += f" The text names ROCm {told} besides."
    which = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'; "
        "hipconfig --version"
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="high", help=(which, list_own(seen)),
        notes=(
            "The first command prints torch's ROCm and that of the system, the second which "
            "libraries of bitsandbytes are there. Three ways out: build bitsandbytes with the "
            "ROCm of torch (cmake -DCOMPUTE_BACKEND=hip -S . and make, then pip install . there); "
            "install torch for the ROCm of the system (index .../whl/rocmX.Y); or keep both.",
            "To keep both, a bitsandbytes of 2026 takes BNB_ROCM_VERSION=NN, the number of the "
            f"library that is there, or is built with -DROCM_VERSION={number}. That is for two "
            "releases of one major ROCm.",
            "libbitsandbytes_cpu.so is only what it tries next; that it is missing is not the "
            "fault, and nothing of CUDA is to be installed.",
        ),
    )  # fmt: skip


def _for_another_processor(seen: Seen, path: str, name: str) -> Answer:
    """glibc passes a library of another processor over: "No such file" (open_verify, dl-load.c).

    The wheels of bitsandbytes up to 0.42 are tagged "any" and hold libraries for x86-64.
    """
    from fa_forensics.why.texts.files.file_text import quoted

    board = board_of(seen) or ("a Jetson board" if is_jetson(seen) else "")
    by = seen.versions.get("capability", "")
    machine = "an ARM machine (aarch64)"
    if board:
        machine = f"{board} (compute capability {by})" if board_of(seen) else board
        machine += ", whose processor is an ARM one (aarch64)"
    cause = (
        f"{name} is most likely there, and for another processor: the text is from {machine}, "
        "early releases of bitsandbytes hold libraries for x86-64 alone, and the loader passes "
        "such a file over and then says that there is no such file. Else this release has none for "
        "that CUDA. Neither CUDA nor the GPU is at fault."
    )
    cuda = seen.versions.get("cuda") or seen.torch_cuda or ""
    # The library's own name has the CUDA too. 0.43.3 is for Python 3.8 and newer, later ones not.
    own = cuda.startswith("11.") or "cuda11" in name
    old = own or re.fullmatch(r"3\.[0-8]", seen.python_version or "") is not None
    target = f" -DCOMPUTE_CAPABILITY={by.replace('.', '')}" if re.fullmatch(r"\d\.\d", by) else ""
    source = "https://github.com/bitsandbytes-foundation/bitsandbytes"
    source = f"-b 0.43.3 {source}" if old else source
    return seen.answer(
        "wrong-machine", "FA101", cause, owner="bitsandbytes", direction="none",
        confidence="medium",
        help=(
            f"uname -m; file {quoted(path)}",
            f"git clone {source} && cd bitsandbytes && cmake -DCOMPUTE_BACKEND=cuda{target} -S . "
            f"&& make && {seen.pip} install .",
            f"cd / && {seen.python} -m bitsandbytes",
        ),
        notes=(
            "Where file(1) says x86-64 and uname aarch64, that is the cause: the second command "
            "builds the library on this machine, with its own CUDA (CUDA_HOME, nvcc) and a torch "
            "that has CUDA.",
            "Newer releases have wheels for ARM servers, with libraries for the CUDA of their "
            "time; a Jetson has a CUDA of its own, so that a newer release alone does not serve "
            "it before JetPack 7: there it is built, or taken from an index that builds for "
            "JetPack.",
        ),
    )  # fmt: skip


def _has_arm_wheels(seen: Seen) -> bool:
    """Whether the release that the text names is one with wheels for ARM servers."""
    told = release_key(version_of(seen, "bitsandbytes") or "")
    since = release_key(str((row_of("bitsandbytes") or {}).get("arm_since", "")))
    return told is not None and since is not None and told >= since


def _for_another_torch(seen: Seen, name: str, which: str) -> Answer:
    return seen.answer(
        "missing-library", "FA880",
        f"{name} is bitsandbytes' own library for one CUDA or ROCm, and it is not there. Two "
        "causes fit: this release has none for the CUDA or ROCm of torch (or for the one that "
        "BNB_CUDA_VERSION or BNB_ROCM_VERSION names), or the Python files were installed from "
        "source without compiling. The second command lists those that are there.",
        owner="bitsandbytes", direction="none", confidence="medium",
        help=(which, list_own(seen),
              f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes"),
        notes=("Each release holds libraries for the CUDA versions of its time.",),
    )  # fmt: skip


def rocm_told(seen: Seen) -> bool:
    """Whether the text is of ROCm."""
    versions = seen.versions
    detail = seen.mention.detail
    words = f"{versions.get('torch', '')} {detail.get('built', '')} {detail.get('hip', '')}"
    return (
        any(key in versions for key in ("rocm", "gfx", "flag:bnb-rocm"))
        or "rocm" in words
        or "hip" in words
    )
