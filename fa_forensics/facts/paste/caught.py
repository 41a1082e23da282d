"""Texts of packages that caught an error and go on, or refuse, in words of their own."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.paste.around import frame, package_file_near
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

_VERSION = r"\d[\w.+]{0,40}"
_QUANTIZERS = (
    ("auto_gptq", "auto-gptq"), ("gptqmodel", "gptqmodel"), ("awq", "autoawq-kernels"),
)  # fmt: skip
_FLASH = r"flash[ _-]?att(?:entio)?n"


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of Unsloth, transformers, torchao, MMCV and others."""
    return (
        *_of_versions(),
        *_of_xformers(),
        *_of_gpus(),
        *_of_imports(),
        *_of_names(),
        *_of_classes(),
        *_of_the_machine(),
    )


def _of_imports() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("cuda is not linked properly",),
            r"CUDA is not linked properly",
            _caught("bitsandbytes", "linked"),
        ),
        by_pattern(
            ("import flash_attn ",),
            r"import flash_attn (?P<part>rotary|rms_norm|layer_norm) fail",
            _caught("flash-attn", "part"),
        ),
        by_pattern(
            ("seems to be broken", "not installed", "not available", "not found",
             "import failed"),
            rf"{_FLASH}(?:[ -]?[23](?:\.0)?)?[`'\"]{{0,2}}(?: package| installation)?"
            r"(?:(?: is| was)? not (?:installed|available|found)| seems to be broken"
            r"| import failed)(?! on (?:CPU|this device))",
            _caught("flash-attn"),
        ),
        by_pattern(
            ("please install flash", "requires `pip install flash", "need to install flash"),
            rf"(?:please install|requires `pip install|need to install) {_FLASH}",
            _caught("flash-attn"),
        ),
        by_pattern(
            ("xformers is not", "xformers not"),
            r"xformers(?: is)? not (?:available|installed|found)",
            _caught("xformers"),
        ),
        by_pattern(
            ("extension not installed", "kernels not installed", "kernels is not installed"),
            r"(?:CUDA extension|(?P<part>exllama\w{0,12}|marlin\w{0,12})[ _]kernels)"
            r"(?: is| are)? not installed",
            _caught(""),
        ),
        by_pattern(
            ("installed without --c", "multi_tensor_applier.available", "apex is not installed",
             "fusedlayernorm not available", "please install apex"),
            r"apex was installed without --(?:cuda_ext|cpp_ext)|apex is not installed"
            r"|multi_tensor_applier\.available\(\) == False|FusedLayerNorm not available"
            r"|please install apex",
            _caught("apex"),
        ),
        by_pattern(
            ("failed to load image python extension",),
            r"Failed to load image Python extension",
            _image,
        ),
    )  # fmt: skip


def _of_names() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("is not defined",),
            r"name ['\"](?:flash_attn\w{0,40}_func|flash_attn_with_kvcache|index_first_axis"
            r"|(?:un)?pad_input|apply_rotary_emb_func|_flash_supports_window_size)['\"] is not "
            r"defined",
            _caught("flash-attn", "unknown"),
        ),
        by_pattern(
            ("is not defined",),
            r"name ['\"]str2optimizer\w{1,20}['\"] is not defined",
            _caught("bitsandbytes", "extension"),
        ),
    )


#: What people write of a wheel's or a directory's files, and the name of a wheel.
_NO_IMAGE = lazily(r"(?i)\bimage\.so\b.{0,30}\b(?:missing|absent|not (?:there|in|found|included))")
_IMAGE_WHEEL = lazily(r"\btorchvision-[\w.+-]{1,120}\.whl\b")


def _image(line: Line, match: re.Match[str]) -> Mention | None:
    """torchvision's warning, with the wheel that lacks the file where the text shows it."""
    built = _caught("torchvision")(line, match)
    if not isinstance(built, Mention):
        return None
    near = [one.body for one in (*line.above(20), *line.below(40))]
    gone = any(_NO_IMAGE.search(body) for body in near)
    wheels = (_IMAGE_WHEEL.search(body) for body in near)
    wheel = next((found[0] for found in wheels if found is not None), "") if gone else ""
    detail = {**built.detail, "gone": "yes" if gone else "", "wheel": wheel}
    return replace(built, detail=detail)


def _caught(package: str, sort: str = "") -> Build:
    """An import that failed in a try block; the words say that it did, and not why."""

    def build(line: Line, match: re.Match[str]) -> Mention:
        path = frame(line)[0] or package_file_near(line)
        words = match[0].lower()
        near = "\n".join((line.raw, *(o.raw for o in line.below(2)), path)).lower()
        gptq = "" if package else next((p for w, p in _QUANTIZERS if w in near), "")
        detail = {
            "package": package or gptq,
            "sort": sort or ("absent" if "installed" in words or "found" in words else "unknown"),
            "part": match.groupdict().get("part") or "",
            "frame": path,
            "said": line.body[match.end() : match.end() + 300].partition("If you don't")[0],
        }
        if "without --" in words or "extension not installed" in words or "kernels" in words:
            detail["sort"] = "extension"
        if "broken" in words:
            detail["sort"] = "broken"
        return line.mention("caught-import", match.start(), detail=detail)

    return build


def _of_versions() -> tuple[Recogniser, ...]:
    return (
        plain(
            "pair-mismatch",
            ("you have torch = ",),
            rf"You have torch = (?P<torch>{_VERSION}?) but (?P<package>xformers) = "
            rf"(?P<found>{_VERSION}?)\.?(?:\s|$)",
        ),
        plain(
            "pair-mismatch",
            ("incompatible torch version",),
            rf"incompatible torch version (?P<torch>{_VERSION}) for (?P<package>torchao) version "
            rf"(?P<found>{_VERSION})",
        ),
        plain(  # torchao since 0.17.0
            "pair-mismatch",
            ("incompatible torch version",),
            rf"import of cpp extensions due to incompatible torch version\. Please upgrade to "
            rf"torch >= (?P<least_torch>{_VERSION}) \(found (?P<torch>{_VERSION})\)",
        ),
        plain(
            "pair-mismatch",
            ("but found torchvision==", "but found torchaudio=="),
            rf"torch==(?P<torch>{_VERSION}) requires (?P<package>torchvision|torchaudio)"
            rf"(?P<want>[<>=~!]{{1,2}}{_VERSION}), but found \w{{1,20}}==(?P<found>{_VERSION})",
        ),
        plain(
            "version-refused",
            ("is used but incompatible",),
            rf"(?P<package>[A-Za-z][\w-]{{1,30}})==(?P<found>{_VERSION}) is used but incompatible\."
            r" Please install [\w-]{1,30}(?P<want>[<>=~! ]{1,3}[\w.,<>=~! ]{1,60}\w)",
        ),
        plain(
            "version-refused",
            ("supported flash-attn versions are",),
            rf"Supported (?P<package>flash-attn) versions are (?P<want>>= ?{_VERSION}, ?<= ?"
            rf"{_VERSION}?)\.? Found flash-attn (?P<found>{_VERSION}?)\.?(?:\s|$)",
        ),
        plain(
            "version-refused",
            ("requires pytorch",),
            rf"\w{{1,30}} requires (?P<package>PyTorch) (?P<want>[<>=~]{{1,2}} ?{_VERSION}"
            rf"(?:, ?[<>=~]{{1,2}} ?{_VERSION}){{0,2}}?),? (?:but|and) (?:torch|PyTorch) "
            rf"(?P<found>{_VERSION}) (?:is|was) (?:installed|found)",
        ),
        plain(
            "package-too-old",
            ("found an incompatible version of",),
            r"Found an incompatible version of (?P<package>[\w-]{1,40})\. Found version "
            rf"(?P<found>{_VERSION}),? but only versions? (?:above|>=?) ?(?P<least>{_VERSION}?)"
            r"(?:\s|$)",
        ),
        plain(
            "package-too-old",
            ("disabling pytorch because pytorch",),
            rf"Disabling PyTorch because PyTorch ?>= ?(?P<least>{_VERSION}) is required but found "
            rf"(?P<found>{_VERSION})",
            package="torch",
        ),
    )


def _of_xformers() -> tuple[Recogniser, ...]:
    return (
        plain(
            "version-refused",
            ("requires flash-attention version",),
            rf"Requires (?P<package>Flash-Attention) version (?P<want>>= ?{_VERSION}, ?<= ?"
            rf"{_VERSION}) but got (?P<found>{_VERSION}?)\.?(?:\s|$)",
            caller="xformers",
        ),
    )


def _of_gpus() -> tuple[Recogniser, ...]:
    return (
        plain(
            "sdpa-without-flash",
            ("not compiled with flash attention", "not compiled with memory efficient attention"),
            r"Torch was not compiled with (?:flash|memory efficient) attention",
        ),
        plain(
            "torch-sees-no-gpu",
            ("not available on cpu", "no nvidia gpu found", "cannot find any torch accelerator",
             "no gpu found", "gpu is required to quantize"),
            r"not available on CPU\. Please make sure torch can access a CUDA device"
            r"|No NVIDIA GPU found|cannot find any torch accelerator"
            r"|No GPU found\. A GPU is needed for quantization|GPU is required to quantize",
        ),
        by_pattern(
            ("cuda.is_available()",),
            r"torch\.cuda\.is_available\(\)[)`'\"]{0,3}\s{0,3}(?P<said>(?:always |still )?"
            r"(?:returns?|returned|is|are|prints?|gives?|shows?|says?|=>?|->|:|-)?\s{0,3}[`'\"]?"
            r"False|$)",
            _asked,
        ),
    )  # fmt: skip


def _asked(line: Line, match: re.Match[str]) -> Mention | None:
    """``torch.cuda.is_available()`` with its answer behind it or on the next line."""
    if not match["said"] and not any(b.body.strip() == "False" for b in line.below(1)):
        return None
    return line.mention("torch-sees-no-gpu", match.start(), detail={"sort": "asked"})


def _of_the_machine() -> tuple[Recogniser, ...]:
    """What a program meets that no file of a package is to blame for."""
    return (
        plain(
            "run-time",
            ("permission denied",),
            r"Permission denied: '[^'\n]{0,300}(?:torch_extensions|torchinductor_|\.triton/)",
            sort="cache",
        ),
        plain(
            "run-time",
            ("not enough memory", "can't allocate memory"),
            r"Torch: not enough memory|DefaultCPUAllocator: (?:can't allocate|not enough) memory",
            sort="host-memory",
        ),
    )


def _of_classes() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("tried to instantiate class", "registered via torch::class_"),
            r"Tried to instantiate class '(?P<name>[\w.:]{1,120})'",
            _class,
        ),
        by_pattern(
            ("class '__torch__.torch.classes", "unknown type name '__torch__.torch.classes"),
            r"(?:Unknown type name|class) '__torch__\.torch\.classes\.(?P<name>[\w.]{1,120})'",
            _class,
        ),
        by_pattern(
            ("same namespace", "registration conflict"),
            r"regist\w{1,9}[^\n]{0,60}? under the same namespace|registration conflicts?",
            _same_namespace,
        ),
    )


def _class(line: Line, match: re.Match[str]) -> Mention:
    """The library that was to register it is often named near by."""
    library = ""
    for other in (*line.above(12), *line.below(40)):
        found = re.search(r"([\w./-]{0,200}\blib[\w+-]{1,80}\.so)\b", other.body)
        if found is not None:
            library = found[1]
            break
    detail = {"name": match["name"].replace("::", "."), "near": library}
    return line.mention("class-missing", match.start(), detail=detail)


def _same_namespace(line: Line, match: re.Match[str]) -> Mention:
    near = "\n".join(
        (line.body, *(o.body for o in line.below(4)), *(o.body for o in line.above(4)))
    )
    found = re.search(r"torch\.ops\.(\w{1,60})", near)
    detail = {"namespace": found[1] if found else "", "prose": "yes"}
    return line.mention("already-registered", match.start(), detail=detail)
