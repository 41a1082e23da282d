"""What HIP, HSA and ROCm's libraries say of an AMD GPU, or of its driver."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.gpu_around import stack_file
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of ROCm's run time."""
    return (*_of_code(), *_of_device(), *_of_builds(), *_of_rest())


#: What the HIP runtime logs where it was handed code for another target.
_ISA = lazily(
    r"program ISA \S{0,60}?(?P<loaded>gfx[0-9a-f]{3,5})\S{0,40} is not compatible with the device "
    r"ISA \S{0,60}?(?P<target>gfx[0-9a-f]{3,5})",
    re.IGNORECASE,
)


def _of_code() -> tuple[Recogniser, ...]:
    return (
        plain(
            "hip-error",
            ("tensilelibrary", "tensile library"),
            r"Cannot read \S{1,200}TensileLibrary(?:_lazy)?_?(?P<lazy>gfx\w{3,6})?\S{0,40}"
            r"(?:[^\n]{0,60}GPU arch\s?:\s?(?P<target>gfx\w{3,6}))?",
            sort="code",
            library_of="rocblas",
        ),
        plain(
            "hip-error",
            ("hipblaslt on a", "hipblaslt on unsupported", "unsupported architecture!"),
            r"Attempting to use hipBLASLt on an? (?:un)?supported architecture",
            sort="code",
            library_of="hipblaslt",
        ),
        by_pattern(
            ("invalid device function", "nobinaryforgpu", "no kernel image", "code object",
             "invalidimage", "invaliddevicefunction", "kernel image is invalid",
             "invalidkernelfile"),
            r"HIP error(?: |: ?|\()(?:invalid device function|no kernel image|device kernel image "
            r"is invalid|209|98)"
            r"|HIP Function Failed \([^()\n]{1,300}\) (?:invalid device function|no kernel image)"
            r"|hipError(?:NoBinaryForGpu|InvalidDeviceFunction|InvalidImage"
            r"|InvalidKernelFile)(?:[^\n]{0,100}Unable to find code object)?"
            r"|Unable to find code object for all current devices"
            r"|No compatible code objects found for:? ?(?P<target>gfx\w{3,6})",
            _no_code,
        ),
        by_pattern(
            ("is not compatible with the device isa",),
            _ISA.pattern,
            _no_code,
        ),
        by_pattern(
            ("shared object initialization failed", "sharedobjectinitfailed"),
            r"(?:HIP error:? ?\(?|HIP Function Failed \([^()\n]{1,300}\) )?"
            r"(?:hipErrorSharedObjectInitFailed[^\n]{0,40})?shared object initialization failed"
            r"|hipErrorSharedObjectInitFailed",
            _not_started,
        ),
        plain(
            "hip-error",
            ("incompatible_arguments", "invalid_isa"),
            r"HSA_STATUS_ERROR_(?:INVALID_ISA\w{0,10}|INVALID_CODE_OBJECT\w{0,30})",
            sort="code",
        ),
        plain(
            "rocm-unknown-target",
            ("unknown target", "invalid target id", "unsupported hip gpu architecture",
             "is not a recognized processor"),
            r"(?:unknown target (?:processor|CPU)|[Ii]nvalid target ID|[Uu]nsupported HIP gpu "
            r"architecture:?)\s?'?(?P<target>gfx\w{3,6})"
            r"|'(?P<target2>gfx\w{3,6})' is not a recognized processor",
        ),
    )  # fmt: skip


def _not_started(line: Line, match: re.Match[str]) -> Mention | None:
    if "CUDA error" in line.body and "hip" not in match[0].lower():
        return None  # CUDA has an error of the same words
    path, function, code = frame(line)
    detail = {"sort": "not-started", "frame": path, "function": function, "code": code}
    return line.mention("hip-error", match.start(), detail=detail)


def _no_code(line: Line, match: re.Match[str]) -> Mention:
    path, function, code = frame(line)
    near = (line, *line.below(4), *line.above(4))
    isa = next((found for one in near if (found := _ISA.search(one.body[:2_000]))), None)
    detail = {
        "sort": "code",
        "target": match["target"] or (isa["target"] if isa else ""),
        "loaded": isa["loaded"] if isa else "",
        "frame": path,
        "function": function,
        "code": code,
    }
    return line.mention("hip-error", match.start(), file=stack_file(line), detail=detail)


def _of_device() -> tuple[Recogniser, ...]:
    return (
        plain(
            "rocm-no-device",
            ("no hip gpus", "no rocm-capable device", "hiperrornodevice", "/dev/kfd",
             "rock module is not loaded", "initialize tensile host",
             "hsa_status_error_out_of_resources"),
            r"Could not initialize Tensile host: No devices found"
            r"|No HIP GPUs are available|no ROCm-capable device is detected|hipErrorNoDevice"
            r"|(?:Unable to open|Failed to open|failing to open)\s?(?P<kfd>/dev/kfd)[^\n]{0,60}"
            r"|/dev/kfd[^\n]{0,30}(?:Permission denied|No such file)"
            r"|ROCk module is NOT loaded"
            r"|HSA_STATUS_ERROR_OUT_OF_RESOURCES",
        ),
    )  # fmt: skip


def _not_there(line: Line, match: re.Match[str]) -> Mention | None:
    """A file of ROCm that a build has written down: CMake names it on a line of its own."""
    path = match["library"] or match["library2"]
    if path is None:
        text = " ".join((line.body[match.end() :], *(below.body for below in line.below(4))))
        found = re.search(rf"\"(/[^\s\"]{{1,200}}/{_LIBRARIES}\.so[.\d]{{0,14}})\"", text)
        if found is None or "does not exist" not in text:
            return None
        path = found[1]
    return line.mention("rocm-library-not-there", match.start(), library=path)


#: The libraries of ROCm that builds link with.
_LIBRARIES = (
    r"lib(?:amdhip64|hip[a-z]{2,12}|roc[a-z]{3,12}\d{0,2}|MIOpen|rccl|hsa-runtime64|amd_comgr)"
)


def _of_builds() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("no known rule to make it", "no rule to make target", "references the file"),
            rf"'(?P<library>/[^\s']{{1,200}}/{_LIBRARIES}\.so[.\d]{{0,14}})'[^\n]{{0,400}}?"
            r"missing and no known rule to make it"
            rf"|No rule to make target ['\"`](?P<library2>/[^\s'\"`]{{1,200}}/{_LIBRARIES}\.so"
            r"[.\d]{0,14})['\"`]"
            r"|The imported target \"[\w:.-]{1,60}\" references the file",
            _not_there,
        ),
        plain(
            "rocm-no-runtime",
            ("libamdhip64.so",),
            r"(?:cannot locate|unable to find|cannot find|could not find) ['\"`]?libamdhip64\.so",
        ),
        plain(
            "rocm-torch-headers",
            ("/hip/",),
            r"(?:fatal error: ?['\"`]?(?P<header>(?:c10|ATen|torch)/[\w/]{0,40}hip/[\w/]{1,60}\.h)"
            r"['\"`]?:? (?:file not found|No such file))",
        ),
        plain(
            "rocm-flash-refused",
            (
                "only supports amd mi",
                "only support amd mi",
                "only supports mi",
                "gpu archs of",
                "archs are not supported",
            ),
            r"Flash\s?Attention[^\n]{0,20} only supports? (?:AMD )?MI\d{2,3}[^\n]{0,60}"
            r"|One of GPU archs of [^\n]{2,200} is invalid or not supported by Flash-Attention",
        ),
        plain(
            "rocm-no-toolkit",
            (
                "rocm device library",
                "hip_runtime.h",
                "rocm_home",
                "hipcc: not found",
                "hipcc: command not found",
                "hip runtime",
                "not find hip",
                "hipconfig.cmake",
                "hip-config.cmake",
                "opt/rocm/bin/hip",
                "/hip",
            ),
            r"cannot find ROCm device library|hip/hip_runtime(?:_api)?\.h['\"]?:? (?:file not found"
            r"|No such file)|hipcc: (?:command )?not found|ROCM_HOME[^\n]{0,40} is not set"
            r"|cannot find HIP runtime|Could NOT find HIP\b[^\n]{0,120}|hip-config\.cmake"
            r"|(?:hip|roc)\w{2,12}/(?:hip|roc)\w{2,12}\.h['\"]?:? (?:file not found|No such file)"
            r"|No such file or directory: '[^'\n]{0,200}/(?:hipcc|hipconfig)'",
        ),
    )


def _of_rest() -> tuple[Recogniser, ...]:
    return (
        plain(
            "rocm-fault",
            ("memory access fault by gpu",),
            r"Memory access fault by GPU node-\d{1,3}[^\n]{0,200}",
        ),
        plain(
            "hip-error",
            (
                "hiperror",
                "hip error",
                "hip function failed",
                "hsa_status_error",
                "miopen error",
                "miopenstatus",
                "miopen(hip): error",
            ),
            r"hipError\w{3,40}|HIP error:\s?[^\n]{3,100}|HSA_STATUS_ERROR_\w{3,60}"
            r"|HIP Function Failed \([^\n]{3,300}"
            r"|MIOpen(?: Error:|\(HIP\): Error)[^\n]{3,160}|miopenStatus(?!Success)\w{3,40}",
        ),
    )
