"""Versions in sentences: "我用的是torch2.1.2, cuda 12.1", "on PyTorch 2.5 with py3.10"."""

from __future__ import annotations

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.paste.version_forms import (
    BANNER,
    MARK,
    PATH,
    PROSE,
    REPORT,
    SEP,
    SHORT,
    VERSION,
    VERSION_WORD,
    Row,
)


def _python(found: str) -> str:
    """310, as tags have it, is Python 3.10."""
    return f"{found[0]}.{found[1:]}"


#: Versions in sentences.
SENTENCES: tuple[Row, ...] = (
    (
        "torch_version",
        rf"\bTORCH_VERSION(?:\s?[:=]{{1,2}}\s?| (?:is|of) )['\"]?({VERSION})",
        "torch",
        PROSE,
    ),
    (
        "torch",
        rf"(?<![\w./-])(?:py)?torch{MARK}(?:\s?[=:v~]{{1,3}}{MARK}\s?|\s{{0,20}}\|\s{{0,20}}"
        rf"|\s+[*`]{{0,3}}(?:version:?\s+)?(?:is\s+)?(?:= ?)?v?|@|\.(?=\d\.\d)|{VERSION_WORD}"
        rf"|(?=\d\.\d))({VERSION})"
        rf"(?:(?![\w-]|\.\d)|(?=[-_]?cu\d{{3}}(?!\w)))",
        "torch",
        PROSE,
    ),
    (
        "cu1",
        rf"\b(?:py)?torch[ =:v]{{0,3}}{VERSION}[ ,;/|(]{{1,3}}(?:conda,? |pip,? )?"
        r"cu(1[0-3]\d)(?![\w.-])",
        "torch_cuda",
        PROSE,
        cuda_of_label,
    ),
    ("cu1", r"(?<![\w./+-])cu(1[0-3]\d)[ _-](?:py)?torch\b", "torch_cuda", PROSE, cuda_of_label),
    ("torch.version", rf"\btorch\.version{SEP}({VERSION})", "torch", REPORT),
    (
        "version of ",
        rf"(?<![\w.])({VERSION}) version of (?:py)?torch\b",
        "torch",
        PROSE,
    ),
    *(  # "which libc10 exports at torch 2.10 and not at 2.11"
        (
            sign,
            rf"\btorch[ =:v]{{0,3}}{VERSION},? (?:and|but) (?:(?:is|was|it is) )?(?:not|no longer"
            r"|missing|absent|gone)(?: any ?more)? (?:at|in|by|from|with) "
            rf"(?:(?:py)?torch[ =v]{{0,3}})?({VERSION})",
            "torch",
            PROSE,
        )
        for sign in ("and not ", "but not ", "no longer ", "missing ", "absent ", "gone ")
    ),
    (
        "torch",
        rf"\b(?:reinstalled|replaced|replaces) (?:py)?torch (?:as|by|with) v?({VERSION})",
        "torch",
        PROSE,
    ),
    *(
        (
            sign,
            r"(?<![\w.=-])([12]\.\d{1,2}\.\d{1,2}(?:\.dev\d{8})?"
            r"\+(?:cu\d{2,3}|rocm\d\.\d(?:\.\d)?))\b(?!torch)",
            "torch",
            PROSE,
        )
        for sign in ("+cu", "+rocm")
    ),
    (
        "cuda",
        rf"(?<![\w./+-])CUDA(?: toolkit)?{MARK}(?:\s?[=:]{MARK}\s?|\s{{0,20}}\|\s{{0,20}}|[-_]"
        rf"|\s+[*`]{{0,3}}(?:version{MARK}:?{MARK}\s+)?(?:is\s+)?v?|{VERSION_WORD}|(?=\d{{1,2}}\.\d))"
        rf"({SHORT})(?:(?![\w-])|(?=[-_]?cudnn))",
        "cuda",
        PROSE,
    ),
    *(  # "a CUDA 13 torch", "PyTorch for CUDA 12": the major number alone
        (sign, pattern, "torch_cuda_major", PROSE)
        for sign in ("cuda 1", "cuda1", "cuda-1")
        for pattern in (
            r"(?<![\w./+-])CUDA[ -]?(1\d)(?:\.x)? (?:build of |version of |wheels? of )?"
            r"(?:py)?torch(?![\w-])",
            r"(?<![\w./-])(?:py)?torch (?:build )?(?:(?:for|with|built for|built with) )?CUDA[ -]?"
            r"(1\d)(?:\.x)?(?!\.?\d)",
        )
    ),
    (  # not "ubuntu20.04+nvidia530.30+cuda12.1+cudnn", which lists what a system has
        "+cuda",
        r"(?<=\d)(?<!\bubuntu1\d\.04)(?<!\bubuntu2\d\.04)(?<!\bnvidia\d\d\d)"
        r"(?<!\bnvidia\d\d\d\.\d\d)\+cuda\s?(\d{1,2}\.\d)",
        "torch_cuda",
        PROSE,
    ),
    (
        "+cuda",
        r"(?i)\b(?:ubuntu ?\d\d\.\d\d|nvidia[\d.]{3,10}|driver[ \d.]{3,12}|win(?:dows)? ?1[01])"
        r" ?\+ ?cuda ?(\d{1,2}\.\d)",
        "cuda",
        PROSE,
    ),
    (
        "with cuda",
        r"\b(?:py)?torch[ =v]{1,3}\d\.[\d.]{1,6} with cuda ?(\d{1,2}\.\d)",
        "torch_cuda",
        PROSE,
    ),
    *(  # "torch with CUDA 12.1", "PyTorch built for CUDA 11.8"
        (
            sign,
            r"(?<![\w./-])(?:py)?torch (?:build |wheels? )?(?:built )?(?:for|with) CUDA[ -]?"
            r"(\d{1,2}\.\d)(?![\d.]*\d)",
            "torch_cuda",
            PROSE,
        )
        for sign in ("for cuda", "with cuda")
    ),
    ("cuda-", r"/usr/local/cuda-(\d{1,2}\.\d)\b", "cuda", PATH),
    (
        "python",
        rf"(?<![\w./-])python{MARK}(?:\s?[=:]{{1,2}}{MARK}\s?|\s?\(|\s{{0,20}}\|\s{{0,20}}|\s+[*`]{{0,3}}(?:version:?\s+)?"
        rf"(?:is\s+)?v?|{VERSION_WORD}|(?=3|2\.7))"
        rf"({SHORT})(?![\w/-])",
        "python",
        PROSE,
    ),
    ("python 3.", r"(?<![\w./-])python (3\.\d{1,2}\.\d{1,2})(?![\w./-])", "python_patch", PROSE),
    *(
        (sign, r"(?<![\w./-])py ?(3\.\d{1,2})(?![\w/-]|\.\d)", "python", PROSE)
        for sign in ("py3.", "py 3.")
    ),
    ("py3", r"(?<![\w./-])py(3(?:[6-9]|1\d))(?![\w./-])", "python", PROSE, _python),
    ("cp3", r"(?<![\w./-])cp(3(?:[6-9]|1\d))(?![\w./-])", "python", PROSE, _python),
    ("rocm", rf"\bROCm[\s:=-]{{0,4}}v?({SHORT})", "rocm", PROSE),
    ("glibc", rf"\bglibc[\s:=-]{{1,3}}(?:version\s)?({SHORT})", "glibc", PROSE),
    ("ldd --version", rf"\bldd --version\W{{1,4}}({SHORT})", "glibc", PROSE),
    *(
        (
            sign,
            rf"(?<![\w/-])g(?:cc|\+\+)(?:[\s:=-]{{1,3}}(?:version\s)?|(?=\d\d?\.))({SHORT})(?![\w-])",
            "gcc",
            PROSE,
        )
        for sign in ("gcc", "g++")
    ),
    ("nvidia-smi ", r"\bNVIDIA-SMI (\d{3}\.\d{2,3}(?:\.\d{1,2})?)(?![\w.])", "driver", BANNER),
    ("nvidia-driver-", r"\bnvidia-driver-([3-6]\d\d)(?!\d)", "driver", PROSE),
    (
        "driver",
        r"\bdrivers?(?: version)?(?: is| 版本)?[\s:=(]{1,3}"
        r"v?([3-6]\d\d(?:\.\d{1,3}(?:\.\d{1,2})?)?)"
        r"(?![\w.]*\d|\+)",
        "driver",
        PROSE,
    ),
    ("驱动", r"驱动(?:版本)?[\s:\uff1a=]{0,3}([3-6]\d\d(?:\.\d{1,3}){0,2})", "driver", PROSE),
    (
        "nvcc",
        r"\bnvcc(?: version| is|:)? ?(?:(?:cuda )?release )?v?(\d{1,2}\.\d)(?!\d)",
        "cuda",
        PROSE,
    ),
    (  # "gfx1100;gfx1101" and "['gfx1100', 'gfx1101']" are what something was built for
        "gfx",
        r"(?<![\w;])(?:(?<!-)|(?<=amdhsa--))(?<!, ['\"])(?<!\[['\"])"
        r"(gfx(?:9\d[0-9a-f]|1[0-2]\d\d|803))(?!\w|;gfx|['\"],)",
        "gfx",
        PROSE,
    ),
    ("ubuntu", r"\b(Ubuntu[ -]?\d\d(?:\.\d\d|(?![\w.])))", "os", PROSE),
    ("centos", r"\b(CentOS(?: Linux| Stream)?[ -]?\d)", "os", PROSE),
    ("debian", r"\b(Debian(?: GNU/Linux)?[ -]?\d{1,2})(?!\d|\.\d{1,2}\.\d)", "os", PROSE),
    *(
        (sign, r"\b((?:RHEL|Red Hat Enterprise Linux)[ -]?\d{1,2})(?!\d)", "os", PROSE)
        for sign in ("rhel", "red hat enterprise")
    ),
    ("rocky", r"\b(Rocky(?: Linux)?[ -]?\d{1,2})(?!\d)", "os", PROSE),
    ("almalinux", r"\b(AlmaLinux[ -]?\d{1,2})(?!\d)", "os", PROSE),
    ("amazon linux", r"\b(Amazon Linux (?:2023|2))(?!\d)", "os", PROSE),
    (
        "jetpack",
        r"\bJetPack(?: SDK)?(?: version)?[ :=-]{0,3}v?(\d(?:\.\d)?)(?!\d)",
        "jetpack",
        PROSE,
    ),
)
