"""What the CUDA runtime, torch and the CUDA compilers say of a GPU or of the driver."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.beside import said_beside
from fa_forensics.facts.paste.gpu_around import built_beside, stack_file
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.nvcc_target import nvcc_refuses
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

_HINT = lazily(r"\s*\(([^()\n]{3,200})\)\s*$")
#: Of code for the GPU, unless the call is the first one, which starts CUDA and runs no kernel.
_OF_KERNELS = ("named-symbol-not-found", "no-kernel-image", "image-invalid", "illegal-instruction")
_OF_CODE = (*_OF_KERNELS, "invalid-device-function", "unsupported-toolchain")
_SM = lazily(r"(?:sm|compute|gfx)_?\d{2,4}[af]?\b")


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of CUDA errors at run time, of torch's own checks, and of nvcc and ptxas."""
    return (
        *_of_kernels(),
        *_of_capability(),
        *_of_driver(),
        *_of_driver_itself(),
        *_of_compilers(),
    )


def _of_cpm(line: Line, place: int) -> bool:
    """Whether cpm_kernels speaks, whose "CUDA Error" has a capital E where torch's has none."""
    said = line.body[:place].rstrip().endswith("CUDA Error:")
    return said and line.source.holds(("cpm_kernels", "cpm-kernels"))


def _called(what: str) -> Build:
    """A CUDA error: which step of the traceback it came from, and what stands in brackets."""

    def build(line: Line, match: re.Match[str]) -> Mention | None:
        if line.lower.startswith("search for `cudaerror"):
            return None  # the advice below an error, in its words
        if what in _OF_CODE and "hiperror" in line.lower:
            return None  # HIP's own words, which have a reader of their own
        if "cudagetdevicecount" in line.lower[: match.start()] and what in _OF_KERNELS:
            return line.mention("driver-ill", match.start(), detail={"start": match[0]})
        if what in ("no-kernel-image", "image-invalid") and _of_cpm(line, match.start()):
            return line.mention("cpm-kernels", match.start())
        path, function, code = frame(line)
        hint = _HINT.match(line.body, match.end())
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        detail = {
            **groups,
            "frame": path,
            "function": function,
            "code": code,
            "hint": hint[1] if hint else "",
        }
        if what in ("no-kernel-image", "invalid-device-function"):
            detail |= said_beside(line) | built_beside(line, match.start())
        file = stack_file(line) if what in _OF_CODE else ""
        detail["stack"] = "1" if file else ""
        return line.mention(what, match.start(), file=file, detail=detail)

    return build


def _of_kernels() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("no kernel image", "nobinaryforgpu", "no_binary_for_gpu", "nokernelimagefordevice"),
            r"no kernel image is available(?: for execution on the device)?"
            r"|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|no kernel image",
            _called("no-kernel-image"),
        ),
        by_pattern(
            ("invalid device function", "cudaerrorinvaliddevicefunction"),
            r"(?P<runtime>HIP error:\s?)?(?:invalid device function"
            r"|cudaErrorInvalidDeviceFunction)",
            _called("invalid-device-function"),
        ),
        by_pattern(
            ("kernel image is invalid", "cudaerrorinvalidkernelimage", "cuda_error_invalid_image"),
            r"device kernel image is invalid|cudaErrorInvalidKernelImage|CUDA_ERROR_INVALID_IMAGE",
            _called("image-invalid"),
        ),
        by_pattern(
            ("unsupported toolchain", "unsupportedptxversion", "unsupported_ptx_version"),
            r"(?:the )?provided PTX was compiled with an unsupported toolchain|unsupported "
            r"toolchain"
            r"|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            _called("unsupported-toolchain"),
        ),
        by_pattern(
            ("ptx jit compilation failed", "cuda_error_invalid_ptx", "unsupported .version"),
            r"(?:a )?PTX JIT compilation failed|CUDA_ERROR_INVALID_PTX"
            r"|Unsupported \.version (?P<ptx>\d{1,2}\.\d)",
            _called("unsupported-toolchain"),
        ),
        by_pattern(
            ("named symbol not found", "cudaerrorsymbolnotfound"),
            r"named symbol not found|cudaErrorSymbolNotFound",
            _called("named-symbol-not-found"),
        ),
        by_pattern(
            ("illegal instruction", "cudaerrorillegalinstruction"),
            r"CUDA error:\s?an illegal instruction was encountered|cudaErrorIllegalInstruction",
            _called("illegal-instruction"),
        ),
    )


def _of_capability() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("only supports ampere",),
            r"FlashAttention(?:-?2)? only supports? Ampere GPUs? or newer",
            _called("ampere-only"),
        ),
        by_pattern(
            ("expected is_sm",),
            r"Expected is_sm\d\w{0,2}(?: (?:\|\||or) is_sm\d\w{0,2}){0,6} to be true",
            _called("ampere-only"),
        ),
        by_pattern(
            ("unsupported compute capability. supported",),
            r"Unsupported compute capability\. Supported: [\dx., ]{3,80}",
            _called("ampere-only"),
        ),
        by_pattern(
            ("flashattention", "flash attention", "flash_attn", "flash-attn"),
            r"Flash\s?Attention(?:-?\d)?(?: forward| backward)? (?:only supports?|requires|needs"
            r"|is only supported on|"
            r"does not support|backward for head ?dim)(?! (?:Ampere GPUs or newer|CUDA 1|ROCm))"
            r"[^\n]{3,200}|head_size should be a multiple of 8"
            r"|FlashAttention only support (?:fp16|half)[^\n]{0,100}",
            _limit,
        ),
        by_pattern(
            ("is not compatible with the current pytorch",),
            r"with CUDA capability (?P<sm>sm_\d{2,3}[af]?) is not compatible with the current "
            r"PyTorch installation",
            _not_in_torch,
        ),
        by_pattern(  # the same, as people retell it
            ("not supported by", "not compatible with"),
            r"(?<![\w-])(?P<sm>sm_\d{2,3}[af]?)\)? (?:is |was )?not "
            r"(?:supported by|compatible with) "
            r"(?:the current(?:ly installed)?|this|your|the installed) (?:(?:Py)?Torch"
            r"(?: installation| build| version| wheel)?|installation)\b(?! of (?!(?:Py)?Torch))",
            _not_in_torch,
        ),
        by_pattern(
            ("which is of cuda capability", "no longer supports this gpu"),
            r"which is of (?:cuda )?(?:compute )?capability\s{1,4}(?P<capability>\d{1,2}\.\d)\b",
            _too_old_for_torch,
        ),
        by_pattern(
            ("minimum cuda capability",),
            r"cuda capability supported by this library is (?P<least>\d{1,2}\.\d)",
            lambda line, match: None,
        ),
    )


#: ``The minimum cuda capability supported by this library is 3.7.``, "that we support is 3.5".
_LEAST = lazily(r"(?:supported by this library is|that we support is) (\d{1,2}\.\d)")
#: ``Minimum and Maximum cuda capability supported by this version of PyTorch is (7.5) - (12.0)``.
_RANGE = lazily(r"\((\d{1,2}\.\d)\) - \((\d{1,2}\.\d)\)")


def _limit(line: Line, match: re.Match[str]) -> Mention:
    path, function, code = frame(line)
    detail = {"said": match[0].strip(), "frame": path, "function": function, "code": code}
    return line.mention("flash-limit", match.start(), detail=detail)


def _not_in_torch(line: Line, match: re.Match[str]) -> Mention:
    before = line.body[: match.start()].strip()
    gpu = re.split(r"(?:Warning|warn)\w*:\s?|[:(]\s", before)[-1].strip(" :\n")
    supported = ""
    for text in (line.body[match.end() :], *(below.body for below in line.below(3))):
        at = text.lower().find("supports cuda capabilit")
        if at >= 0:
            supported = " ".join(_SM.findall(text[at : at + 600]))
            break
    detail = {"gpu": gpu, "sm": match["sm"], "supported": supported}
    return line.mention("gpu-not-supported-by-torch", match.start(), detail=detail)


def _too_old_for_torch(line: Line, match: re.Match[str]) -> Mention:
    gpu = re.search(r"Found GPU\s?\d+\s(.{1,60}?)\s?$", line.body[: match.start()])
    least = ""
    for text in (line.body[match.end() :], *(below.body for below in line.below(4))):
        found = _LEAST.search(text)
        if found:
            least = found[1]
        range_ = _RANGE.search(text)
        if range_ and float(match["capability"]) < float(range_[1]):
            least = range_[1]
        elif range_ and match["capability"].split(".")[0] == range_[2].split(".")[0]:
            detail = {"gpu": gpu[1] if gpu else "", "most": range_[2]}
            return line.mention("gpu-warned", match.start(), detail=detail)
        if least:
            break
    detail = {
        "gpu": gpu[1] if gpu else "",
        "sm": "sm_" + match["capability"].replace(".", ""),
        "least": least,
    }
    return line.mention("gpu-not-supported-by-torch", match.start(), detail=detail)


def _of_driver() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("driver version is insufficient", "cudaerrorinsufficientdriver"),
            r"CUDA driver version is insufficient for CUDA runtime version"
            r"|cudaErrorInsufficientDriver",
            _called("driver-too-old"),
        ),
        by_pattern(
            ("driver on your system is too old",),
            r"NVIDIA driver on your system is too old(?:\s?\(found version (?P<found>\d{3,6})\))?",
            _called("driver-too-old"),
        ),
        by_pattern(
            ("driver is a stub library", "cudaerrorstublibrary"),
            r"CUDA driver is a stub library|cudaErrorStubLibrary",
            _called("driver-stub"),
        ),
        by_pattern(
            ("not supported in the installed cuda driver", "cudaerrorcallrequiresnewerdriver"),
            r"API call is not supported in the installed CUDA driver"
            r"|cudaErrorCallRequiresNewerDriver",
            _called("driver-too-old"),
        ),
    )


def _of_driver_itself() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("unsatisfied condition: cuda",),
            r"requirement error: unsatisfied condition: cuda\s?>=\s?(?P<image>\d{1,2}\.\d)",
            _called("driver-too-old-for-image"),
        ),
        by_pattern(
            (
                "communicate with the nvidia driver",
                "failed to initialize nvml",
                "could not select device driver",
                "nvml error: driver not loaded",
            ),
            r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"
            r"|Failed to initialize NVML: (?!Driver/library)(?P<nvml>[A-Za-z ]{3,40})"
            r"|could not select device driver[^\n]{0,40}(?P<runtime>gpu)"
            r"|nvml error: driver not loaded",
            _called("driver-not-there"),
        ),
        by_pattern(
            (
                "unknown error - this may be due to",
                "all cuda-capable devices are busy",
                "busy or unavailable",
                "device < num_gpus",
                "cuda driver initialization failed",
                "cudaerrordevicesunavailable",
                "jit compiler library not found",
                "os call failed or operation not supported",
                "init failure: 500",
                "error from cudagetdevicecount",
            ),
            r"CUDA unknown error - this may be due to an incorrectly set up environment"
            r"|device >= 0 && device < num_gpus"
            r"|(?P<busy>(?:all )?CUDA-capable device(?:s|\(s\)) (?:are|is/are) busy or unavailable"
            r"|cudaErrorDevicesUnavailable)"
            r"|CUDA driver initialization failed"
            r"|(?P<jit>PTX JIT compiler library not found)"
            r"|OS call failed or operation not supported on this OS"
            r"|cuda driver library init failure: (?P<start>500)\b"
            # The errors by number that nothing else here reads.
            r"|error from cudaGetDeviceCount\(\)[^\n]{0,200}?Error (?:1|2|3|4|101|201|709|999):",
            _called("driver-ill"),
        ),
        *_of_mismatches(),
        by_pattern(
            ("no nvidia driver", "no cuda-capable device", "no cuda gpus are available"),
            r"Found no NVIDIA driver on your system|no CUDA-capable device is detected"
            r"|No CUDA GPUs are available",
            _called("no-device"),
        ),
        plain(
            "torch-without-cuda",
            ("not compiled with cuda enabled", "not linked with support for cuda"),
            r"Torch not compiled with CUDA enabled|PyTorch is not linked with support for cuda",
        ),
    )


def _of_mismatches() -> tuple[Recogniser, ...]:
    """The driver's parts, or the driver and a library, are of different releases."""
    return (
        by_pattern(
            ("system not yet initialized", "cudaerrorsystemnotready"),
            r"system not yet initialized|cudaErrorSystemNotReady",
            _called("driver-mismatch"),
        ),
        by_pattern(
            ("unsupported display driver", "system has unsupported display driver"),
            r"unsupported display driver ?/ ?cuda driver combination",
            _called("driver-mismatch"),
        ),
        by_pattern(
            ("driver/library version mismatch", "cudaerrorsystemdrivermismatch"),
            r"Driver/library version mismatch|cudaErrorSystemDriverMismatch",
            _called("driver-mismatch"),
        ),
        by_pattern(
            ("forward compatibility was attempted", "cudaerrorcompatnotsupportedondevice"),
            r"forward compatibility was attempted on non supported HW"
            r"|cudaErrorCompatNotSupportedOnDevice",
            _called("driver-mismatch"),
        ),
    )


def _of_compilers() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("unsupported gpu architecture",),
            r"(?P<compiler>nvcc fatal\s{0,5}:\s?)?Unsupported gpu architecture\s?"
            r"['\"`]?(?P<arch>(?:compute|sm|lto)_\w{2,6})?",
            nvcc_refuses,
        ),
        plain(
            "arch-unsupported-by-nvcc",
            ("is not defined for option",),
            r"(?P<compiler>ptxas(?:-blackwell)? fatal\s{0,5}:\s?)?Value '(?P<arch>sm_\w{2,6})' "
            r"is not defined for option 'gpu-name'",
        ),
        plain(
            "arch-unsupported-by-nvcc",
            ("unknown cuda arch",),
            r"Unknown CUDA arch \(?(?P<arch>\d{1,2}\.\d[\w+]{0,6})\b"
            r"|Unknown CUDA arch \((?P<arch2>[\w.+]{1,12})\) or GPU not supported"
            r"|Unknown CUDA Architecture Name (?P<gpu>[\w.+]{1,20})",
            compiler="torch.utils.cpp_extension",
        ),
        plain(
            "arch-unsupported-by-nvcc",
            ("invalid value for --gpu-architecture",),
            r"nvrtc: error: invalid value for --gpu-architecture",
            compiler="nvrtc",
        ),
    )
