"""Where versions stand in texts: behind which words, in which form, and how sure each place is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.paste.gpu_names import SENTENCES as GPU_SENTENCES
from fa_forensics.facts.paste.version_flags import FLAGS
from fa_forensics.facts.paste.version_forms import (
    BANNER,
    LISTED,
    PATH,
    PROSE,
    REPORT,
    SEP,
    SHORT,
    VERSION,
    Row,
)
from fa_forensics.facts.paste.version_sentences import SENTENCES
from fa_forensics.records import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a version stands: behind which small-letter word, in which form, and how sure."""

    sign: str
    text: str
    key: str
    sort: int
    convert: Callable[[str], str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The form, compiled at first use: most texts have the signs of a few of the rules."""
        return _compiled(self.text)


@cache
def _compiled(text: str) -> re.Pattern[str]:
    # ASCII: a Chinese or Korean word right before a name is no part of it.
    return re.compile(text, re.IGNORECASE | re.ASCII)


def _driver_cuda(found: str) -> str:
    """11040, as the driver counts, is CUDA 11.4."""
    return f"{int(found) // 1000}.{int(found) % 1000 // 10}"


def _toolkit(found: str) -> str:
    """1201, as headers count, is CUDA 12.1."""
    return f"{int(found[:-2])}.{int(found[-2:])}" if found.isdigit() else found


def _truth(found: str) -> str:
    return "True" if found.lower() in ("true", "1", "yes") else "False"


def _capability(found: str) -> str:
    digits = re.findall(r"\d+", found)
    return ".".join(digits[:2]) if len(digits) > 1 else found


#: Lines of reports on an environment.
_REPORTS: tuple[Row, ...] = (
    (
        "pytorch version",
        rf"PyTorch version(?: \((?:GPU\?|e\.g\.,? [\d.]{{1,8}})\))?{SEP}({VERSION})",
        "torch",
        REPORT,
    ),
    ("torch.__version__", rf"torch\.__version__\)?{SEP}({VERSION})", "torch", REPORT),
    (
        "torch version",
        rf"\btorch version(?! \()(?<!environment torch version){SEP}({VERSION})",
        "torch",
        REPORT,
    ),
    ("pytorch.version", rf"pytorch\.version{SEP}({VERSION})", "torch", REPORT),
    (
        "cuda used to build pytorch",
        rf"CUDA used to build PyTorch{SEP}({SHORT})",
        "torch_cuda",
        REPORT,
    ),
    ("torch cuda version", rf"torch cuda version{SEP}({SHORT})", "torch_cuda", REPORT),
    ("torch.version.cuda", rf"torch\.version\.cuda\)?{SEP}({SHORT})", "torch_cuda", REPORT),
    ("rocm used to build pytorch", rf"ROCM used to build PyTorch{SEP}({SHORT})", "rocm", REPORT),
    ("rocm version", rf"ROCm version{SEP}({SHORT})", "rocm", REPORT),
    ("rocm-libs", r"rocm-libs[^\d\n]{1,20}(\d{1,2}\.\d{1,2})", "rocm", REPORT),
    ("torch.version.hip", rf"torch\.version\.hip\)?{SEP}({SHORT})", "rocm", REPORT),
    # What torch.__config__.show() prints, as mmcv's and detectron2's reports have it.
    (
        "cuda runtime ",
        r"(?:^\W{0,6}|\b(?:py)?torch v?[\d.]{3,8} with )CUDA Runtime (\d{1,2}\.\d{1,2})\b",
        "torch_cuda",
        REPORT,
    ),
    ("cuda runtime version", rf"CUDA runtime version{SEP}({SHORT})", "cuda", REPORT),
    (
        "requirement already satisfied: torch in",
        rf"satisfied: torch in \S{{1,300}} \(({VERSION})\)",
        "torch",
        LISTED,
    ),
    ("_cuda", r"^pytorch\s.{1,60}py3\.\d{1,2}_cuda(\d{1,2}\.\d)", "torch_cuda", LISTED),
    ("pytorch-cuda", r"(?<![\w-])pytorch-cuda[ =]{1,40}(1[12]\.\d)\b", "torch_cuda", LISTED),
    ("but you have torch", rf"but you have torch ({VERSION})", "torch", LISTED),
    ("nvcc version", rf"nvcc version{SEP}({SHORT})", "cuda", REPORT),
    (
        "nvidia driver version",
        rf"Nvidia driver version{SEP}(\d{{3}}(?:\.\d{{1,4}}){{0,2}})",
        "driver",
        REPORT,
    ),
    ("python version", rf"Python version{SEP}({SHORT})", "python", REPORT),
    ("python platform", r"Python platform\s?:\s?(\S{1,100})", "platform", REPORT),
    ("platform:", r"Platform\s?:\s?(\S{1,100})", "platform", REPORT),
    ("libc version", rf"Libc version{SEP}(?:glibc-)?({SHORT})", "glibc", REPORT),
    ("with-glibc", rf"with-glibc({SHORT})", "glibc", BANNER),
    ("gcc version", rf"GCC version{SEP}(?:\([^()\n]{{0,80}}\)\s?)?({SHORT})", "gcc", REPORT),
    ("os:", r"^\W{0,4}OS\s?:\s?([^\n]{2,80})", "os", REPORT),
    ("pretty_name", r"PRETTY_NAME=\"?([^\"\n]{2,80})", "os", REPORT),
    ("gpu 0:", r"GPU 0:\s?([^\n(]{3,60})", "gpu", REPORT),
    ("gpu.name", r"gpu\.name\s?:\s?([^\n]{3,60})", "gpu", REPORT),
    ("compute_capability", rf"compute_capability{SEP}(\d{{1,2}}\.\d)", "capability", REPORT),
    (
        "compute capabilit",
        r"(?:[Hh]ighest compute capability among GPUs detected:\s?"
        r"|GPUs with compute capabilities:\s?\{')(\d{1,2}\.\d)",
        "capability",
        REPORT,
    ),
    (
        # An item of a list of versions; in a sentence it may be what something asks for.
        "compute capability ",
        r"(?:(?<![^\n])|(?<=[,;/(])|(?<=[,;/] ))(?:CUDA |GPU )?compute capability "
        r"(\d{1,2}\.\d)(?=\s?(?:[,;)]|$))",
        "capability",
        REPORT,
    ),
    (
        "get_device_capability",
        r"get_device_capability\([^()]{0,20}\)\)?\s{0,10}(?:->|=|:|#)?\s{0,10}\(?"
        r"(\d{1,2},\s?\d)\)?",
        "capability",
        REPORT,
        _capability,
    ),
    (
        "cxx11_abi",
        # What torch says of itself; -D of a build, and its own options, are the file's.
        r"(?:(?<![\w-])(?:_GLIBCXX_USE_)?CXX11_ABI|_C\._GLIBCXX_USE_CXX11_ABI"
        r"|CXX_FLAGS=[^\n]{0,300}?-D_GLIBCXX_USE_CXX11_ABI"
        r"|compiled_with_cxx11_abi(?:\(\))?)\)?[\s:=>]{1,8}(True|False|[01])\b",
        "cxx11_abi",
        REPORT,
        _truth,
    ),
    (
        "built with cxx11",
        r"Built with CXX11 ABI[\s:=]{1,8}(True|False|[01])\b",
        "cxx11_abi",
        REPORT,
        _truth,
    ),
    ("gpu used", r"using GPU type\s?:?\s?([^\n]{3,60})", "gpu", BANNER),
)
#: What tools print of themselves, and paths.
_BANNERS: tuple[Row, ...] = (
    ("driver version:", r"Driver Version:\s{0,6}(\d{3}(?:\.\d{1,4}){0,2})", "driver", REPORT),
    (
        "cuda version:",
        r"Driver Version:[^\n]{1,60}CUDA (?:UMD )?Version:\s{0,6}(\d{1,2}\.\d{1,2})",
        "driver_cuda",
        REPORT,
    ),
    ("found version ", r"too old \(found version (\d{4,5})\)", "driver_cuda", REPORT, _driver_cuda),
    ("compilation tools, release", r"release (\d{1,2}\.\d{1,2})", "cuda", REPORT),
    ("libcuda.so.", r"libcuda\.so\.(\d{3}\.\d{2,3}(?:\.\d{1,2})?)\b", "driver", BANNER),
    ("libcudart.so.", r"libcudart\.so\.((?:[789]|10)\.\d)\b[^\n]{0,60}=> /", "cuda", BANNER),
    ("mmcv/dist/cu", r"mmcv/dist/cu(\d{2,3})/torch", "index_cuda", BANNER, cuda_of_label),
    ("mmcv/dist/", r"mmcv/dist/c\w{2,4}/torch(\d\.\d{1,2}(?:\.\d)?)", "torch", PROSE),
    ("torch-backend", r"--torch-backend[= ]cu(\d{2,3})\b", "torch_cuda", BANNER, cuda_of_label),
    ("detectron2/wheels/cu", r"wheels/cu(\d{2,3})/torch", "index_cuda", BANNER, cuda_of_label),
    ("/whl/cu", r"download\.pytorch\.org/whl/cu(\d{2,3})\b", "index_cuda", PROSE, cuda_of_label),
    (
        "cu1",
        rf"\btorch(?:\s?[=:]{{1,2}}\s?v?{VERSION})?(?: (?:for|with|is|build|wheels?))? "
        r"\(?cu(1\d{2})\b",
        "torch_cuda",
        PROSE,
        cuda_of_label,
    ),
    ("whl/torch-", r"whl/torch-[\d.]{3,8}\+cu(\d{2,3})", "index_cuda", BANNER, cuda_of_label),
    (
        "wheel index",
        r"\btorch-[\d.]{3,8}\+cu(\d{2,3}) wheel index\b",
        "index_cuda",
        BANNER,
        cuda_of_label,
    ),
    ("/whl/cu", r"\btorch\b[^\n]{0,200}/whl/cu(\d{2,3})\b", "index_cuda", PROSE, cuda_of_label),
    ("detected cuda version", rf"detected CUDA version \(({SHORT})\)", "cuda", REPORT),
    ("used to compile", r"used to compile\s+PyTorch \((\d{1,2}\.\d{1,2})\)", "torch_cuda", REPORT),
    ("installed cuda version", rf"Installed CUDA version ({SHORT})", "cuda", BANNER),
    ("ldd (", rf"ldd \([^()\n]{{1,60}}\) ({SHORT})", "glibc", BANNER),
    ("gcc (", rf"gcc \([^()\n]{{1,80}}\) ({SHORT})", "gcc", BANNER),
    ("g++ (", rf"g\+\+ \([^()\n]{{1,80}}\) ({SHORT})", "gcc", BANNER),
    ("[gcc ", r"^Python (\d\.\d{1,2}\.\d{1,2})\s", "python", BANNER),
    ("python 3.", r"Python (3\.\d{1,2}\.0(?:a|b|rc)\d{1,2})\b", "python_pre", REPORT),
    ("python 3.", r"^(?:Python )(3\.\d{1,2}(?:\.\d{1,2})?)(?:\s\||\s\(|\s::|$)", "python", BANNER),
    (
        "you have ",
        rf"PyTorch [\w.+]{{1,40}}(?: with CUDA \w{{1,6}})? \(you have ({VERSION})\)",
        "torch",
        LISTED,
    ),
    (
        "python version mismatch",
        r"Python version mismatch: [^\n]{1,120}?(?:incompatible: |running version )(3\.\d{1,2})\b",
        "python",
        REPORT,
    ),
    ("you have ", r"Python\s{1,12}[\d.]{1,10} \(you have ([\d.]{1,10})\)", "python", LISTED),
    (
        "with cuda capability sm_",
        r"^(?:[^\n]{0,200}?[:/]\s?)?((?:NVIDIA|Tesla|Quadro|GeForce|RTX)[^\n:]{2,50}?) with "
        r"CUDA capability sm_",
        "gpu",
        REPORT,
    ),
    ("which is of cuda", r"Found GPU\s?\d{1,2} (.{2,60}?) which is of", "gpu", REPORT),
    (
        "with cuda capability sm_",
        r"with CUDA capability sm_(\d{2,3})",
        "capability",
        REPORT,
        lambda sm: f"{sm[:-1]}.{sm[-1]}",
    ),
    ("environment torch version", r"environment Torch version \(([\d.]{1,8})\)", "torch", LISTED),
    (
        "torch_cuda_arch_list",
        r"TORCH_CUDA_ARCH_LIST[=:]\s?['\"]?([\w.+; ]{2,60})",
        "env:TORCH_CUDA_ARCH_LIST",
        REPORT,
    ),
    ("x86_64 gnu/linux", r"(x86_64) GNU/Linux", "machine", BANNER),
    ("aarch64", r"\b(aarch64)\b", "machine", PROSE),
    ("python/3.", r"/Python/(3\.\d{1,2})/", "python", PATH),
    ("/python3.", r"/python(3\.\d{1,2})t?/(?:site-packages|dist-packages|\w)", "python", PATH),
)
#: Names of container images.
_IMAGES: tuple[Row, ...] = (
    (
        "libtorch",
        rf"libtorch(?:-[a-z0-9]{{3,8}}){{0,6}}[-_ ]?v?(?=\d\.\d)({VERSION})",
        "libtorch",
        BANNER,
    ),
    ("--use-cxx11-abi", r"(--use-cxx11-abi)", "flag:cxx11-abi", BANNER),
    (
        "_force_cxx11_abi",
        r"\b([A-Z][A-Z0-9_]{1,40}_FORCE_CXX11_ABI=(?:1|TRUE|True))",
        "flag:cxx11-abi",
        BANNER,
    ),
    (
        "-d_glibcxx_use_cxx11_abi",
        r"^(?![^\n]{0,1000}CXX_FLAGS=)[^\n]{0,2000}?-D_GLIBCXX_USE_CXX11_ABI=([01])",
        "flag:abi",
        BANNER,
    ),
    *(
        (
            f"-d_glibcxx_use_cxx11_abi={one}",
            rf"^(?![^\n]{{0,1000}}CXX_FLAGS=)[^\n]{{0,2000}}?-D_GLIBCXX_USE_CXX11_ABI=({one})(?!\d)",
            f"flag:abi-{one}",
            BANNER,
        )
        for one in "01"
    ),
    (
        "nvcr.io/nvidia/pytorch",
        r"nvcr\.io/nvidia/pytorch(?::|[^\n\d]{1,40})(\d\d\.\d\d)(?![\d.])",
        "ngc",
        REPORT,
    ),
    ("pytorch:", r"(?<![\w.-])pytorch:(\d\.\d{1,2}\.\d)-", "torch", BANNER),
    (
        "pytorch/pytorch:",
        r"pytorch/pytorch:[\d.]{3,8}-cuda(\d{1,2}\.\d)",
        "torch_cuda",
        BANNER,
    ),
    # AWS Deep Learning Containers: pytorch-training:2.9.0-gpu-py312-cu130-ubuntu22.04-ec2
    (
        "-gpu-py3",
        r"pytorch-(?:training|inference)\S{0,20}:[\d.]{3,8}-gpu-py3\d{1,2}-cu(\d{3})",
        "torch_cuda",
        BANNER,
        cuda_of_label,
    ),
    ("nvidia/cuda:", r"nvidia/cuda:(\d{1,2}\.\d{1,2})", "cuda", BANNER),
    ("ngc ", r"\bNGC(?: PyTorch)?(?: container)?[ :]{1,2}(\d\d\.\d\d)\b", "ngc", PROSE),
)


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """All rules, in no order."""
    gpus = tuple((sign, pattern, key, PROSE) for sign, pattern, key in GPU_SENTENCES)
    flags = tuple(
        Rule(sign, pattern, key, BANNER, convert) for sign, pattern, key, convert in FLAGS
    )
    rows: tuple[Row, ...] = (*_REPORTS, *_BANNERS, *_IMAGES, *SENTENCES, *gpus)
    return (
        tuple(
            Rule(sign, pattern, key, sort, convert[0] if convert else None)
            for sign, pattern, key, sort, *convert in rows
        )
        + flags
    )
