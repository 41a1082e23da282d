"""What a text tells by the way: a file's own flavour, an operator that is gone, conda's builds."""

from __future__ import annotations

from collections.abc import Callable

#: conda's packages of torch: ``cpu_py38h92724a6_0``, ``py3.8_cuda11.7_cudnn8.5.0_0``,
#: ``py3.8_cpu_0``.
_CONDA_BUILD = (
    r"(?:cpu|cuda\d{2,3})(?:_\w{1,12})?_?py3\d{1,2}h?[0-9a-f]{0,8}_\d{1,3}"
    r"|py3\.\d{1,2}_(?:cpu|cuda[\d.]{2,5}_cudnn[\d._]{1,9})_?\d"
)


def _truth(found: str) -> str:
    return "True" if found == "1" else "False"


#: (sign, pattern, key, conversion), as in ``version_flags``.
ASIDES: tuple[tuple[str, str, str, Callable[[str], str] | None], ...] = (
    # deepmd/pt/cxx_op.py: "This deepmd-kit package was compiled with CXX11_ABI_FLAG=0, but PyTorch
    # runtime was compiled with CXX11_ABI_FLAG=1"
    (
        "cxx11_abi_flag",
        r"package was compiled with CXX11_ABI_FLAG=([01])",
        "flag:file-abi",
        None,
    ),
    (
        "cxx11_abi_flag",
        r"runtime was compiled with CXX11_ABI_FLAG=([01])",
        "cxx11_abi",
        _truth,
    ),
    *(  # "pytorch3d wheel built for torch 2.0.0": whose file that torch is of
        (
            sign,
            r"(?i)(?<![\w./-])([a-z][\w-]{2,40})(?: \d[\w.+]{1,20})?(?: (?:prebuilt|own))?"
            r"(?: (?:wheels?|builds?|files?|binary|binaries|extensions?|packages?|which|that|is|was"
            r"))?(?: (?:is|was|are|were))? (?:built|compiled|made) "
            r"(?:for|with|against|on|under) (?:an? |the )?(?:py)?torch(?: version)?"
            r"[ =v<~\u2264]{1,4}\d\.\d",
            "flag:file-of",
            None,
        )
        for sign in ("built ", "compiled ", "made ")
    ),
    *(  # "built against PyTorch <=2.8.0"
        (
            sign,
            r"(?i)\b(?:built|compiled) (?:for|with|against|on) (?:the )?(?:py)?torch ?"
            r"(?:<=|~=|\u2264) ?(\d\.\d{1,2}(?:\.\d{1,2})?)(?![\w.])",
            "file_torch",
            None,
        )
        for sign in ("built ", "compiled ")
    ),
    (
        "runtime you are using",
        r"PyTorch runtime you are using is (\d\.\d{1,2}\.\d{1,2})(?!\d)",
        "torch",
        None,
    ),
    (
        "_opnamespace",
        r"'_OpNamespace' '(\w{1,60}' object has no attribute '\w{1,120})'",
        "flag:no-operator",
        None,
    ),
    *(
        (
            sign,
            r"(?i)(?<![\w-])((?:fbgemm[-_]gpu(?:[-_]genai)?|torchao|torchrec)[-_]nightly(?:[-_]cpu)?"
            r"|vllm[-_]cpu[-_]nightly)"
            r"(?![\w-])",
            "flag:nightly-name",
            None,
        )
        for sign in ("-nightly", "_nightly")
    ),
    *(
        (
            sign,
            rf"(?i)(?<![\w./-])(?:py)?torch\b[^\n]{{0,60}}?(?<![\w.])({_CONDA_BUILD})(?![\w.])",
            "flag:conda-build",
            None,
        )
        for sign in ("_py3", "py3.")
    ),
    (
        "conda",
        r"(?i)\b(?:compiled|built|linked) (?:against|with|on|for) (?:a |the )?"
        r"(conda(?:-forge)?(?:'s)?) (?:py)?torch\b",
        "flag:on-conda",
        None,
    ),
    (
        "uninstalled torch",
        r"(?i)Successfully uninstalled torch-(\d\.\d{1,2}\.\d)(?!\d)",
        "flag:torch-gone",
        None,
    ),
    (  # "pip installed torch 2.8.0 and torchvision 0.23.0 (...), import shows torch 2.6.0"
        "import shows",
        r"(?i)\bpip installed (?:py)?torch (\d\.\d{1,2}\.\d)(?!\d)[^\n]{0,200}?\bimport shows "
        r"(?:py)?torch \d",
        "flag:torch-beside",
        None,
    ),
    # Of pip install alone: what it takes away there it puts another in the place of.
    (
        "attempting uninstall: torch",
        r"(?i)Attempting uninstall: (torch)(?![\w-])",
        "flag:torch-upgrade",
        None,
    ),
    *(  # conda's own torch: its command, "torch 1.8.0 with conda", never of anything else
        (
            "conda",
            rf"(?i){pattern}",
            "flag:conda-torch",
            None,
        )
        for pattern in (
            r"(?<!never ran )(?<!not run )(?<!n't run )(?<!never run )(?<!never ran `)"
            r"\b(?:conda|mamba) install (?!(?:[^\n.!?]|\.(?=\d)){0,200}\?)"
            r"(?:-{1,2}[\w-]{1,20} (?:[\w./:-]{1,40} )?){0,4}"
            r"[\"']?(?:[\w-]{1,20}::)?(pytorch(?![\w-])[ =]{0,2}[\d.]{0,9})",
            r"(?<![\w./-])((?:py)?torch(?:==|[ =])v?\d[\d.]{2,8}) (?:\(|is |was |installed |comes "
            r"){0,2}(?:from|with|via|by) conda\b(?!-)",
        )
    ),
    *(  # "pytorch 2.3.1 py3.11_cuda12.1_cudnn8.9.2_0 pytorch": conda list's channel of each
        (
            name,
            rf"(?i)^{name} {{1,40}}\d[\w.]{{1,20}} {{1,40}}[\w.]{{3,60}} {{1,40}}"
            r"(?:\S{1,60}/)?(pytorch|conda-forge|defaults|pkgs/main)\s*$",
            f"flag:channel:{name}",
            None,
        )
        for name in ("pytorch", "torchaudio", "torchvision", "torchtext")
    ),
    (  # "torch main built with CUDA 13.4", "pytorch master (commit 1a2b3c)", "torch@HEAD, CUDA 13"
        "torch",
        r"(?i)(?<![\w./-])((?:py)?torch)(?:@| |, | \(|-| from (?:git )?| at )(?:the )?"
        r"(?:git )?(?:main|master|trunk|head)(?: branch)?\)?(?=,? ?(?:\(|at |@|commit\b|built\b"
        r"|compiled\b|with cuda|against cuda|and cuda|cuda|nccl|cudnn|[0-9a-f]{7,40}\b))",
        "flag:torch-main",
        None,
    ),
    (  # "LD_DEBUG shows it searches for cudnn 6", "it links against libcudnn.so.5"
        "cudnn",
        r"(?i)(?<!not )(?<!n't )(?<!never )(?<!no longer )\b(?:search(?:e[sd]|ing)?|links?|linked"
        r"|look(?:s|ed|ing)?|resolve[sd]?|points?|picks? up)(?: for| to| against| with"
        r"| at)?(?: an?| the)?(?: old(?:er)?)? "
        r"(?:lib)?cudnn(?:\.so\.| ?v?)(\d{1,2}(?:\.\d{1,2}){0,2})(?![\w.]*\d)",
        "loaded:cudnn",
        None,
    ),
    *(  # "GTX 1080 Ti, selective_scan_cuda": a compiled module by its bare name
        (
            name,
            rf"(?<![\w./-])(?<!import )({name})(?![\w.(=])",
            "flag:named-module",
            None,
        )
        for name in ("selective_scan_cuda", "causal_conv1d_cuda")
    ),
    *(  # PyG's packages out of its own channel of conda, which builds for the channel pytorch
        (sign, pattern, "flag:pyg-channel", None)
        for sign, pattern in (
            ("pyg", r"(?i)(?<![\w-])-c[ =]?(pyg)(?![\w-])"),
            (
                "pyg",
                r"(?i)\b(pyg)\b[^\n.;]{0,20} from (?:its|their|the|PyG'?s?) (?:own )?"
                r"(?:conda )?channel",
            ),
            ("pyg", r"(?i)\b(pyg) (?:conda )?channel\b"),
            ("rusty1s", r"(?i)(?<![\w-])-c[ =]?(rusty1s)(?![\w-])"),
            (
                "pyg",
                r"(?i)^(?:py)?(?:torch|pyg)[\w-]{0,20} {1,40}\d[\w.]{1,20} {1,40}\S{1,60}"
                r" {1,40}(pyg)\s*$",
            ),
        )
    ),
)
