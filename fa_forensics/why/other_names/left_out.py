"""Which part of a package was left out of its build, as a name of its own and the text show it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.demangle import qualified_name
from fa_forensics.patterns import lazily
from fa_forensics.why.told import is_rocm

if TYPE_CHECKING:
    from fa_forensics.report_why import Answer
    from fa_forensics.why.seen import Seen

#: One GPU architecture in a name: ``cutlass_moe_mm_sm100``, ``sm90_fp8_gemm``, ``sm_120``.
_ARCH = lazily(r"(?<![a-z])sm_?(?P<number>[5-9]\d|1[0-3]\d)(?P<suffix>[af]?)(?![0-9])")
#: FlashAttention's template of one kernel: ``run_mha_fwd_<80, cutlass::bfloat16_t, 128, …>``.
_INSTANCE = lazily(r"\brun_mha_[fb]wd\w*<")
#: Words of names that CUDA sources define, and types that only they use.
_CUDA_WORD = lazily(
    r"cuda|_gpu\b|_gpu_|gpu(?=[A-Z(_]|$)|(?<![a-z])kernel|_kernels?\b|KernelLauncher|Launcher\b"
    r"|Laucher\b",
    re.IGNORECASE,
)
_CUDA_TYPE = lazily(r"\b(?:CUstream_st|cudaStream_t|cudaArray|CUfunc_st|GpuDevice|float[234]\b)")
#: The directory of a package: below site-packages, or the one of the file itself.
_SITE = lazily(
    r"-packages/(?:(?P<egg>[A-Za-z]\w{1,60})-[^/]{1,90}\.egg|(?P<folder>[A-Za-z_][\w-]{1,60}))/"
)

CUDA, ARCH, INSTANCE, DOUBLED = "cuda", "arch", "instance", "doubled"


def owner_words(needed_by: Sequence[str], demangled: str = "") -> str:
    """Whose name it is, in a sentence: ``vllm's``; "the extension's" where nothing shows it.

    The file's path does, else the scope of the name where that is a known package's.
    """
    from fa_forensics.rules.remedy import package_names
    from fa_forensics.why.seen import package_of

    file = needed_by[0] if needed_by else ""
    name = package_of(file) if file else None
    found = _SITE.search(file)
    if name is None and found is not None:
        name = found["egg"] or found["folder"]
    scope = demangled.split("::")[0]
    if name is None and (scope in package_names() or f"{scope}/" in file):
        name = scope or None
    return f"{name}'s" if name else "the extension's"


def sort_of(demangled: str) -> str:
    """What a name shows of the part that defines it: one of the words above, "" for nothing."""
    if doubled_scope(demangled):
        return DOUBLED
    if _INSTANCE.search(demangled):
        return INSTANCE
    plain = demangled.split("(")[0]
    if _ARCH.search(plain):
        return ARCH
    if _CUDA_WORD.search(plain) or _CUDA_TYPE.search(demangled):
        return CUDA
    return ""


def doubled_scope(demangled: str) -> tuple[str, str] | None:
    """(the scope as it is, as it was meant) where a namespace stands in itself: ``a::a::f``."""
    if "(" not in demangled or "<" in demangled.split("(")[0]:
        return None
    parts = qualified_name(demangled).split("::")
    for at in range(len(parts) - 2):
        if parts[at] and parts[at] == parts[at + 1]:
            once = parts[: at + 1] + parts[at + 2 :]
            return "::".join(parts), "::".join(once)
    return None


def part_words(demangled: str) -> tuple[str, tuple[str, ...]]:
    """(the likeliest reason in a sentence, notes) for a name by itself; ("", ()) for none."""
    sort = sort_of(demangled)
    if sort == DOUBLED:
        return _doubled(demangled)
    if sort == INSTANCE:
        return (
            "It is one instance of a template, and each of these is compiled from a source file of "
            "its own: the list of files, or an option that leaves kernels out "
            "(FLASH_ATTENTION_DISABLE_... of FlashAttention 3), did not agree with the code that "
            "calls it.",
            (_SAME_SWITCHES,),
        )
    if sort == ARCH:
        found = _ARCH.search(demangled.split("(")[0])
        number = found["number"] if found is not None else ""
        return (
            f"Its name is that of code for one GPU architecture (sm_{number}), which is compiled "
            f"only where the build's list has that one or one of its family (TORCH_CUDA_ARCH_LIST: "
            f"{_capability(number)}; CMake's own), while the code that calls it was compiled all "
            "the same: the two conditions of the build do not agree.",
            (_SAME_SWITCHES,),
        )
    if sort == CUDA:
        return (
            "By its name or its parameters a CUDA source file (.cu) defines it: most likely that "
            "file was not compiled or not linked, while the code that calls it was. Builds leave "
            "it out where they find no nvcc or no GPU (in docker build, on a login node), or where "
            "it is not among the sources.",
            (_WITH_CUDA,),
        )
    return "", ()


def older_gpu(name: str, versions: Mapping[str, str]) -> str:
    """That the text's GPU is older than the kernels in a name are made for; "" for others.

    github.com/IST-DASLab/marlin asks for compute capability 8.0; newer kernels of that name in
    vLLM begin with 7.5.
    """
    from fa_forensics.facts.gpus import parse_gpu

    told = versions.get("capability") or versions.get("gpu")
    if not told or "marlin" not in name.lower():
        return ""
    try:
        capabilities = [gpu.capability for gpu in parse_gpu(told)]
    except ForensicsError:
        return ""  # a GPU that no table knows says nothing
    if not capabilities or max(capabilities) >= (7, 5):
        return ""
    number = ".".join(map(str, max(capabilities)))
    return (
        f"Marlin's kernels are for compute capability 8.0 and newer, and the GPU in the text has "
        f"{number}: a build for that GPU leaves them out, and no build makes them run there. The "
        "code that calls them has to be left out alike, and the model needs another kernel."
    )


#: CMakeLists.txt of vLLM, SCALED_MM_ARCHS and CUTLASS_MOE_ARCHS: "10.0f;11.0f" from CUDA 13 on,
#: "10.0a" before; 10.0f runs on 10.3 too.
_FAMILY_OF_SM100 = ((10, 3), (11, 0))


def of_one_arch(answer: Answer, seen: Seen) -> Answer:
    """A name of one GPU architecture's code: the same sources leave it out again."""
    plain = (answer.demangled or "").split("(")[0]
    found = _ARCH.search(plain)
    if found is None or answer.code != "FA205" or answer.provider or not answer.help:
        return answer
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.texts.clues import called, named_gpu, package_in

    package = seen.package or package_in(seen)
    version = seen.versions.get(f"pkg:{package}", "")
    told = seen.versions.get("gpu") or seen.versions.get("capability") or ""
    gpu = named_gpu(told) if told else None
    number = _capability(found["number"])
    notes = []
    if gpu is not None and number == "10.0" and gpu.capability in _FAMILY_OF_SM100:
        notes.append(
            f"sm100 in the name of a kernel is a family: projects compile such files for "
            f"{called(gpu)} too, as vLLM does with CUDA 13 (10.0f and 11.0f). Either that GPU is "
            "missing in this kernel's list of targets, or the code that calls it is to be left out "
            "alike; newer sources of the project may have it."
        )
    elif gpu is not None and f"{gpu.capability[0]}" != number.split(".")[0]:
        notes.append(
            f"{called(gpu)} runs no code for {number}: as a rule what the build needs is not that "
            "kernel but a condition that leaves its caller out too."
        )
    which = f" than {version}, where there is one" if version else ""
    notes.append(
        f"To build the same sources again, with the same list, gives the same file: the way out is "
        f"a newer release{which}, or the newest sources of the project, where the two conditions "
        "agree, its own wheel, or a list of targets that has both or neither."
    )
    helps = [re.sub(r"^(?=rm -rf build)", "git pull && ", text) for text in answer.help]
    editable = any(text.endswith("-e .") for text in answer.help)
    if package == "vllm" and row_of(package) is not None and not editable:
        helps.insert(0, f"{seen.pip} install --upgrade --no-cache-dir {package}")
        notes.append(f"The wheel of {package} brings the torch along that it is compiled for.")
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(*notes, *answer.notes))


_SAME_SWITCHES = (
    "An option that leaves kernels out counts only in a build from an empty directory, and has to "
    "be set alike for all parts; newer sources of the project may have the two agree."
)
_WITH_CUDA = (
    "CUDA_HOME has to be the directory of a toolkit with bin/nvcc, of the CUDA version that torch "
    "was built with. Where no GPU is there at build time, many setup.py files heed FORCE_CUDA=1."
)


def _capability(number: str) -> str:
    """``100`` as the lists of architectures write it: ``10.0``."""
    return f"{number[:-1]}.{number[-1:]}"


def _doubled(demangled: str) -> tuple[str, tuple[str, ...]]:
    found = doubled_scope(demangled)
    assert found is not None
    have, meant = found
    return (
        f"{have} has one namespace within itself: a brace that is missing, a second namespace line "
        f"or an #include inside the namespace makes it another function than {meant}, which the "
        "source most likely defines. That is a fault of the source, of the file that was changed "
        "or added last; it has to be mended there.",
        (),
    )


#: ThunderKittens' config.py, and that of projects which took its build over (FastVideo's
#: csrc/sliding_tile_attention).
_KITTENS = lazily(r"(?:^|/)(?:thunderkittens|st_attn_cuda)\.")
_CHOSEN = (
    "The project's setup.py compiles the kernels that config.py lists, for the one GPU that is its "
    "target, and the binding declares others all the same: the file with this one is not among "
    "those."
)
_BY_CONFIG = (
    "In config.py, kernels has to name that kernel and target a GPU that it has a source for: most "
    "of them are for the H100 alone (h100), few for an RTX 4090 or an A100. The same sources with "
    "the same choice give the same file; on another GPU the kernel has to be left out of the "
    "binding too.",
)
_ROCM_TREE = lazily(r"/rocm/", re.IGNORECASE)


def text_words(
    versions: Mapping[str, str], file: str
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(a sentence, notes, commands) by what else the text says of the build; all empty for none."""
    if "flag:no-nvcc" in versions:
        return (
            "In the text CMake says that the CUDA compiler is unknown: it found no nvcc that works "
            "with the host compiler, so that no CUDA source was compiled.",
            (
                "CUDACXX names the nvcc for CMake (CUDACXX=/usr/local/cuda/bin/nvcc), CUDAHOSTCXX "
                "the g++ for it, which must not be newer than that CUDA takes; CMakeCache.txt of "
                "the failed try has to go.",
            ),
            ("nvcc --version; g++ --version | head -1",),
        )
    if _KITTENS.search(file):
        return _CHOSEN, _BY_CONFIG, ("grep -nE 'kernels|target|h100|4090' config.py",)
    if "libbitsandbytes_" in file:
        return "", (), ()  # its build lists its sources by hand: see bitsandbytes_files.py
    if is_rocm(versions) or _ROCM_TREE.search(file):
        return (
            "The build is one for ROCm: there .cu files are compiled only where the build lists "
            "them for ROCm and hipifies them. The file that defines this name is left out, while "
            "its caller is not.",
            (
                "The way out is a release or revision of the project that supports ROCm in this "
                "part, or its own list of sources mended; no library of ROCm's and no torch lacks "
                "anything.",
            ),
            (),
        )
    return "", (), ()
