"""What a text says of how a thing came about: a libtorch on a path, a build from source."""

from __future__ import annotations

from collections.abc import Callable

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.paste.version_asides import ASIDES


def _run_together(found: str) -> str:
    """torch231-cu121, as images are named, is 2.3.1+cu121; 2100 is 2.10.0."""
    digits, _, cuda = found.partition("-")
    return f"{digits[0]}.{digits[1:-1]}.{digits[-1]}+{cuda}"


def _dotted(found: str) -> str:
    """128 and 12.8 are CUDA 12.8."""
    return found if "." in found else cuda_of_label(found)


#: pip without what packages depend on, for torch or for a list of requirements.
_NO_DEPS = r"\binstall\b(?=[^\n]{0,200}?\s(?:-r\s|torch(?![\w-])))[^\n]{0,200}?(--no-deps)(?![\w-])"

#: (sign, pattern, key, conversion); their key says what it is where it is no version.
FLAGS: tuple[tuple[str, str, str, Callable[[str], str] | None], ...] = (
    (
        "ld_library_path",
        r"^(?=[^\n]{0,2000}libtorch(?![\w.]))[^\n]{0,2000}?((?:DY)?LD_LIBRARY_PATH)",
        "flag:libtorch-path",
        None,
    ),
    ("-cu1", r"^([a-z][a-z0-9_]{1,30}-cu1\d{1,2})(?:\s{1,40}|==)\d", "flag:cuda-twin", None),
    (
        ".egg",
        r"([A-Za-z][\w.+-]{1,80}?-py\d(?:\.\d{1,2})?(?:-[\w.]{2,40})?\.egg)\b",
        "flag:egg",
        None,
    ),
    ("spconv-cu", r"(?<![\w-])(spconv-cu\d{2,3})(?!\d)", "cuda-name:spconv", None),
    ("cumm-cu", r"(?<![\w-])(cumm-cu\d{2,3})(?!\d)", "cuda-name:cumm", None),
    ("cpp_extension", r"\b(cpp_extension)s?\b", "flag:cpp-extension", None),
    ("cppextension", r"\b(CppExtension)\b", "flag:cpp-extension", None),
    ("cudaextension", r"\b(CUDAExtension)\b", "flag:cpp-extension", None),
    (
        "extension(",
        r"(?<![\w.])(?:setuptools\.|distutils\.(?:core\.)?|core\.)?(?=Extension\()"
        r"(?:Extension\(\s?(?:name\s?=\s?)?['\"])?([A-Za-z_][\w.]{1,60})",
        "flag:plain-extension",
        None,
    ),
    (
        "name=",
        r"^\s{0,20}name=['\"]([A-Za-z_]\w{1,60})['\"],?\s{0,3}$",
        "flag:extension-name",
        None,
    ),
    ("aoti", r"(?i)(?<![a-z])(aoti(?:nductor)?)(?=[\W_]|$)", "flag:aoti", None),
    (
        "in the same",
        r"(?i)\b(?:again|rebuilt|re-?installed|re-?compiled)\b[^\n]{0,60}in the same "
        r"(checkout|clone|source (?:tree|directory)|repository)",
        "flag:same-checkout",
        None,
    ),
    ("--xformers", r"(?:^|[\s'\"])(--xformers)(?![\w-])", "flag:xformers-option", None),
    ("install -e", r"pip3? install (?:--?[\w-]+ ){0,4}(-e) ?\.", "flag:editable", None),
    (
        "install",
        r"\bpip3? install [^\n]{0,120}?\b(flash[-_]attn|transformer[-_]engine|apex|torchvision"
        r"|torch[-_]tensorrt)\b(?!\.git)",
        "flag:pip-installed",
        None,
    ),
    (
        "wheel",
        r"(?:\b(?:pre-?built|pre-?compiled) (?:[\w.-]{1,30} )?|\((?=wheel from ))(wheels?)\b",
        "flag:wheel",
        None,
    ),
    (
        "uv",
        r"(?<![\w.-])(?:built|compiled|build|installed) (?:with|by|via|using) (uv)(?![\w.-])",
        "flag:uv",
        None,
    ),
    (
        ":\\",  # a prompt: (venv) C:\sd>pip show torch
        r"^(?:\([\w. -]{1,40}\) ?)?(?:PS )?([A-Z]):\\[^\n>]{0,200}>\s?\w",
        "flag:windows-told",
        None,
    ),
    (":\\", r"^(?:\([\w. -]{1,40}\) ?)?(PS) [A-Z]:\\[^\n>]{0,200}>", "flag:powershell", None),
    (
        "(source",
        r"(?<![\w./-])((?!(?:py)?torch\b)[A-Za-z]\w{3,40}) (?:v?\d[\w.+]{0,30} )?"
        r"\((?:built |compiled )?(?:from )?source\)",
        "flag:own-source",
        None,
    ),
    ("uv", r"(?<![\w.-])(uv) (?:sync|build|lock|add)(?![\w-])", "flag:uv", None),
    (
        "built",
        r"\b[Pp]re-?built,? (?:for |with |wheel )?(?:[\w.+-]{1,60}[.+-])?(cu\d{2,3})(?!\d)",
        "flag:prebuilt",
        None,
    ),
    ("how you installed pytorch", r"PyTorch[^\n:]{0,80}:\s?(source)", "flag:torch-source", None),
    (
        "from source",
        r"\b(?:py)?torch\b[\w ,.+-]{0,30}?\b(?:built|compiled|build) (from source)",
        "flag:torch-source",
        None,
    ),
    (
        "building",
        r"\b(?:building|compiling) (?:my|our|its) own (?:version of |copy of )?((?:py)?torch)\b",
        "flag:torch-source",
        None,
    ),
    (
        "self-",
        r"\bself[- ](?:built|compiled|build) (?:version of )?((?:py)?torch)\b",
        "flag:torch-source",
        None,
    ),
    (
        "built",
        r"\bbuilt (?:my own |a )?(?:[\d.]{1,10} )?(?:version of )?((?:py)?torch)\b",
        "flag:torch-source",
        None,
    ),
    (
        "compiler identification",
        r"The (CUDA) compiler identification is unknown",
        "flag:no-nvcc",
        None,
    ),
    ("conda", r"(?i)\b(conda-forge|(?:mini|ana)?conda\d?(?= (?:env|python)))", "flag:conda", None),
    ("conda", r"(?i)\b(?:from|with|via|by) (conda)\b", "flag:from-conda", None),
    ("conda", r"(?i)\b(conda) install\b", "flag:from-conda", None),
    (
        "pip",
        r"\bpip[\d.]{0,4} (install) (?:-{1,2}[a-df-z][\w-]{0,40} ){0,6}\.(?=[\s\[)'\"`]|$)",
        "flag:from-here",
        None,
    ),
    ("geometric", r"(?i)\b(?:py)?torch[ _-](geometric)\b", "flag:pyg", None),
    (
        "-only",
        r"(?i)\b(cpu)-only (?:machine|server|node|host|system|laptop|vm|box|instance|image)",
        "flag:cpu-only",
        None,
    ),
    ("no gpu", r"(?i)\b(?:has|have|with|is|there is|there's) (no gpu)\b", "flag:cpu-only", None),
    ("(no gpu", r"(?i)\((no gpu)\)", "flag:cpu-only", None),
    ("--no-deps", _NO_DEPS, "flag:no-deps", None),
    (
        "without",
        r"(?i)\b(?:machine|server|node|host|system|laptop) (without) (?:a|any)?\s?gpu",
        "flag:cpu-only",
        None,
    ),
    (
        "bitsandbytes-windows",
        r"(?i)(?<![\w-])(bitsandbytes-windows)(?![\w-])",
        "named:bitsandbytes-windows",
        None,
    ),
    (
        "driver",
        r"(?i)\bdrivers?(?: version)?(?: is)? (?:<|below|older than|before) ?(?:CUDA ?)?"
        r"(\d{1,2}\.\d)(?![.\d])",
        "driver_below",
        None,
    ),
    ("flash-attention", r"(?i)(?<![\w/-])(flash-attention)(?![\w])", "flag:flash-attention", None),
    ("gpu_archs", r"\bGPU_ARCHS=['\"]?(gfx[0-9a-f]{3,5})\b", "env:GPU_ARCHS", None),
    (
        "container",
        r"(?i)(?<!or )(?<!no )\b(?:[A-Z][\w-]{1,30} |in (?:an? |the |my |our )?)(container)\b"
        r"(?! (?:toolkit|runtime))",
        "flag:container",
        None,
    ),
    ("docker", r"(?i)\b(docker) (?:image|container)", "flag:image", None),
    ("rlimit_as", r"\b(RLIMIT_AS)\b", "flag:rlimit-as", None),
    ("ulimit -v", r"\bulimit -v[ =]{1,3}(\d{4,12})\b", "flag:ulimit-v", None),
    ("kbytes, -v)", r"\(kbytes, -v\)\s{1,20}(\d{4,12})\b", "flag:ulimit-v", None),
    ("compose", r"(?i)\b(docker[ -]compose)\b", "flag:container", None),
    (
        "arch flags",
        r"^\W{0,4}detectron2 arch flags\s{1,40}((?:sm_)?\d[\w., ]{1,80})",
        "archs:detectron2",
        None,
    ),
    *(
        (sign, rf"(?<![\w/])({sign}(?::[\w.-]{{1,60}})?)(?![\w/])", "server_image", None)
        for sign in ("vllm/vllm-openai", "lmsysorg/sglang", "openmmlab/lmdeploy")
    ),
    (
        "cpuonly",
        r"(?<![\w-])(?<!not )(?<!no )(?<!without )(cpuonly)(?![\w-])",
        "flag:cpuonly",
        None,
    ),
    (
        "vllm-openai",
        r"(?<![\w./-])(vllm-openai)(?::| )v?\d[\w.]{2,20} image\b",
        "flag:server-image",
        None,
    ),
    ("libbitsandbytes_", r"libbitsandbytes_(hip|rocm)", "flag:bnb-rocm", None),
    ("load_library", r"\btorch\.(?:ops|classes)\.(load_library)\(", "flag:by-path", None),
    ("-packages/mmcv/", r"-packages/(mmcv)/[\w/]{1,80}\.py\b", "flag:mmcv", None),
    (":\\", r"(?<!\w)([A-Za-z]):\\{1,2}(?:\w|\.\.\.\\)", "flag:windows", None),
    ("whisper", r"(?i)(?<![\w-])(faster[-_]whisper|whisperx)(?![\w-])", "flag:ctranslate2", None),
    ("wsl", r"(?i)(?<!not )\b(?:in|on|under|inside|using) (wsl ?[12]?)(?![\w-])", "flag:wsl", None),
    (
        "windows",
        r"(?i)^(?![^\n]{0,2000}\b(?:wsl|linux|ubuntu))[^\n]{0,2000}?"
        # The system, not the windows of an attention.
        r"(?:(?:^|[,;:(/|+*`\[\u3000-\u9fff\uff00-\uffef]\s?|[\w.-]- |\b(?:on|under|in|for|using"
        r"|native|my|os|is|not|no) )(?=windows\b)"
        r"|\b(?<!sliding )(?<!shifted )(?<!moving )(?<!attention )(?<!context )(?<!local )"
        r"(?<!time )(?=(?-i:Windows|WINDOWS)\b|windows (?:\d|pc|laptop|machine|server|desktop|user"
        r"|build|wheel|os|system|box|host|env|x64|platform)))"
        r"(windows(?: 1[01])?)\b(?! (?:of|sizes?|attention|with a)\b)",
        "flag:windows-told",
        None,
    ),
    (
        "macos",
        r"(?i)^(?![^\n]{0,2000}\blinux\b)[^\n]{0,2000}?\b(macos)\b",
        "flag:macos-told",
        None,
    ),
    ("patchelf", r"(?i)\bpatchelf\W{0,4}v?(0\.18(?:\.0){0,2})(?![.\d])", "flag:patchelf-18", None),
    ("arm64", r"(?i)(?<![\w-])(arm64)(?![\w-])", "flag:arm64", None),
    ("python_config", r"\b(PYTHON_CONFIG)\b", "flag:python-config", None),
    ("jetson", r"(?i)\b(jetson)\b", "flag:jetson", None),
    ("jetpack", r"(?i)\b(jetpack)\b", "flag:jetson", None),
    (
        "nvcr.io/nvidia/",
        r"nvcr\.io/nvidia/((?!pytorch|cuda|tensorrt:)[\w/.-]{2,40}:\d\d\.\d\d[\w.-]{0,40})",
        "flag:nv-image",
        None,
    ),
    ("imported `", r"\bimported `([A-Za-z][\w-]{2,40})`", "flag:imported", None),
    (
        " versions",
        r"(?i)\b(?:py)?torch\b[^\n;.]{0,80}? to (?:the )?(\d\.\d{1,2}) versions?\b",
        "torch",
        None,
    ),
    ("ngc2", r"(?i)(?<![\w-])ngc(2\d\.\d\d)(?![\d.])", "ngc", None),
    (
        "-py3",
        r"(?i)\b(?:pytorch|ngc|nvcr)\b[^\n]{0,60}?(?<![\d.])(2\d\.(?:0[1-9]|1[0-2]))-py3\b",
        "ngc",
        None,
    ),
    (
        "nvcr",
        r"(?i)\bnvcr pytorch (2\d\.(?:0[1-9]|1[0-2]))(?![\d.])",
        "ngc",
        None,
    ),
    (
        "nvidia",
        r"(?i)\bnvidia(?:'s)?[ -](?:ngc |docker |container )?(?:py)?torch"
        r"(?:[ -](?:docker|container|image|release|ngc)){0,3}[ :v]{1,2}"
        r"((?:1[7-9]|2\d)\.(?:0[1-9]|1[0-2]))(?![\d.])",
        "ngc",
        None,
    ),
    (
        "nvidia",
        r"(?i)\b((?:1[7-9]|2\d)\.(?:0[1-9]|1[0-2]))(?:-py3)? nvidia(?:'s)? (?:ngc )?(?:py)?torch"
        r" (?:docker|container|image)",
        "ngc",
        None,
    ),
    (
        "ngc",
        r"\b((?:1[7-9]|2\d)\.(?:0[1-9]|1[0-2])) NGC (?:PyTorch )?(?:docker|container|image)",
        "ngc",
        None,
    ),
    (
        "torch",
        r"(?i)(?<![\w-])(?:py)?torch(?: v?\d[\w.+]{0,20}(?:,? \(?)|(?: \(|, | is ))"
        r"(?:an? |my |our )?((?:(?:own|custom|local|source)[ -](?:build|compile)"
        r"|(?:self|custom|locally|home)[ -]?(?:built|compiled|build)))\b"
        r"(?= ?(?:$|[,;.)]|from\b|with\b|for\b|on\b|at\b))",
        "flag:torch-source",
        None,
    ),
    (
        "torch",
        r"(?i)\b(?:(?:own|custom|local)(?:ly)?[ -](?:build|compile) of|custom[ -]built"
        r"|locally (?:built|compiled)|home-?built|self-compiled) ((?:py)?torch)(?![\w-])"
        r"(?!\.[a-z]| (?:op|ext|mod|ker|cuda|code|func|lay))",
        "flag:torch-source",
        None,
    ),
    (
        "torch",
        r"(?i)(?<![\w-])((?:py)?torch)(?: v?\d[\w.+]{0,20})? (?:that )?(?:I|we) (?:\w{1,12} )?"
        r"(?:built|compiled)(?= ?(?:$|[,;.)(]|myself|ourselves|from|locally|with CUDA))",
        "flag:torch-source",
        None,
    ),
    (">=", r"(?<![\w-])(?:py)?torch\s?>=\s?(\d\.\d{1,2}(?:\.\d)?)(?![.\d])", "least:torch", None),
    (
        "annot import",
        r"Cannot import '([a-z]\w{1,40}\._C)', therefore",
        "flag:not-built",
        None,
    ),
    ("/whl/cu", r"(?<!pytorch\.org)/whl/(cu\d{2,3})(?!\d)", "flag:wheel-index", None),
    ("whl/torch-", r"whl/torch-(\d\.\d{1,2}\.\d\+cu\d{2,3})", "wheel_page", None),
    ("whl/torch-", r"whl/torch-(\d\.\d{1,2})(?:\.\d)?(?:\+\w{3,6})?\.html", "page_torch", None),
    ("wheel index", r"\btorch-(\d\.\d{1,2})[.\d]{0,2}\+cu\d{2,3} wheel index", "page_torch", None),
    ("whl/torch-", r"whl/torch-(\d\.\d{1,2}\.\d\+1\d\.\d)(?![\d.]\d)", "wrong_page", None),
    (
        "cxx11-abi",  # the download's name, or "libtorch 2.2.1+cu118 cxx11-abi-shared-with-deps"
        r"(?i)libtorch(?:[- ]v?\d[\w.+]{0,20})?[- (]{1,2}(?<!pre-)cxx11-(abi)\b"
        r"(?! (?:or|vs|and)\b|\?)",
        "libtorch_abi",
        lambda _abi: "True",
    ),
    (
        "libtorch-shared-with-deps",
        r"libtorch-(shared)-with-deps-(?:1\.|2\.[0-6]\.)",
        "libtorch_abi",
        lambda _shared: "False",
    ),
    (
        "cuda",  # "PyTorch 2.5.1 + CUDA 12.4", "torch (CUDA 11.8)"
        r"(?i)(?<![\w-])(?:py)?torch(?:\s?v?\d\.[\d.]{1,6})?\s?(?:\+\s?|\()cuda[ -]?"
        r"(\d{1,2}\.\d)(?!\d)",
        "torch_cuda",
        None,
    ),
    *(
        (  # "torch 2.7 cuda 128", "torch 2.7 cuda 12.8": nothing but a blank between the two
            sign,
            r"(?i)(?<![\w./-])(?:py)?torch[ =v]{1,3}[12]\.\d{1,2}(?:\.\d)? cuda ?"
            r"(1[0-3]\.?\d)(?![\w.]\d|\d)",
            "torch_cuda",
            _dotted,
        )
        for sign in (" cuda 1", " cuda1")
    ),
    (
        "cuda",  # "a CUDA 11.8 torch", not "CUDA 11.8 torch 2.1"
        r"(?i)(?<![\w./-])cuda[ -]?(\d{1,2}\.\d) (?:build of |wheel of )?(?:py)?torch"
        r"(?![\w.-]|\s{0,3}[\d=:v])",
        "torch_cuda",
        None,
    ),
    (
        ".post",  # conda-forge's builds of torch have such versions
        r"(?i)\b(?:py)?torch\b[^\n]{0,40}?conda[- ]forge[^\n\d]{0,20}"
        r"(\d\.\d{1,2}\.\d\.post\d{1,3})(?!\d)",
        "torch",
        None,
    ),
    (
        "yours is",
        r"(?i)\btorch\b[^\n]{0,60}?\byours is v?(\d\.\d{1,2}(?:\.\d)?(?:\+(?:cu\d{2,3}|cpu))?)"
        r"(?![\d+])",
        "torch",
        None,
    ),
    (
        "cannot find dgl",  # DGL puts the version of the torch that is loaded into the name
        r"(?i)cannot find dgl c\+\+[^\n]{0,400}_pytorch_(\d\.\d{1,2}\.\d(?:\.post\d{1,3})?)\.so",
        "torch",
        None,
    ),
    (
        "_cu1",
        r"\b(?:py)?torch-?\d\.\d{1,2}(?:\.\d)?[_-]cu(1\d{2})\b",
        "torch_cuda",
        cuda_of_label,
    ),
    (
        "-torch",
        r"(?<![\w.])py3\d{1,2}-torch(\d{3,4}-cu\d{3})(?!\d)",
        "torch",
        _run_together,
    ),
    *ASIDES,
)
