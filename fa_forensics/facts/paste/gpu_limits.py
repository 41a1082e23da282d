"""What compilers and packages say of a GPU that cannot do what they ask, or that they left out."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

#: ``Feature '.bf16'``, ``Modifier '.evict_last' on 'ld'``: what stands before the verdict.
_FEATURE = lazily(r"(?:Feature|Instruction|Modifier|Type|Directive|Argument)s?\s+'([^'\n]{1,80})'")
_TARGET = lazily(r"(?:gpu-name|gpu-architecture|-arch)[= ](?:sm|compute)_(\d{2,3}[af]?)")
#: One refusal of xformers' list of operators.
_OPERATOR = lazily(r"`([\w@.+-]{2,60})` is not supported because:")


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of ptxas, Triton, xformers, vLLM, CUTLASS and others about a GPU's abilities."""
    return (*_of_ptxas(), *_of_triton(), *_of_left_out(), *_of_refusals(), *_of_xformers())


def _of_ptxas() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("requires .target",),
            r"requires \.target '?sm_(?P<needs>\d{2,3}[af]?)",
            _target,
        ),
        by_pattern(
            ("cannot be compiled for architecture", "not supported on .target"),
            r"(?:cannot be compiled for architecture|not supported on \.target)\s?'?(?:sm|compute)_"
            r"(?P<sm>\d{2,3}[af]?)",
            _target,
        ),
        by_pattern(
            ("ptxas",),
            r"(?P<missing>Cannot find ptxas|No such file or directory: '[^'\n]{0,200}ptxas')"
            r"|ptxas'[^\n]{0,200}--gpu-name=sm_(?P<target>\d{2,3})[af]?[^\n]{0,300} returned "
            r"non-zero exit status",
            _ptxas,
        ),
        by_pattern(
            ("unsupported .version",),
            r"Unsupported \.version (?P<ptx>\d{1,2}\.\d)\s?;? current version is "
            r"'?(?P<knows>\d{1,2}\.\d)",
            _ptx_version,
        ),
        # A line of its own below those that say what is wrong.
        plain(
            "jit-build-failed",
            ("ptxas fatal", "ptxas-blackwell fatal"),
            r"ptxas(?:-blackwell)? fatal\s{0,6}:\s{1,4}Ptx assembly aborted due to errors",
        ),
    )


def _target(line: Line, match: re.Match[str]) -> Mention | None:
    if "tmpxft_" in line.body and (match.groupdict().get("needs") or "x")[-1].isdigit():
        return None  # a file of nvcc: a build's list of targets is too wide, see build.py
    features = _FEATURE.findall(line.body[max(0, match.start() - 240) : match.start()])
    groups = {key: text for key, text in match.groupdict().items() if text}
    if "sm" in groups:
        groups["sm"] = f"sm_{groups['sm']}"
    for near in (line, *line.above(8), *line.below(12)):
        found = _TARGET.search(near.body)
        if found and "sm" not in groups:
            groups["sm"] = f"sm_{found[1]}"
            break
    detail = {**groups, "feature": features[-1] if features else ""}
    return line.mention("gpu-feature", match.start(), detail=detail)


def _ptxas(line: Line, match: re.Match[str]) -> Mention:
    detail = {"sm": f"sm_{match['target']}" if match["target"] else ""}
    return line.mention("ptxas-failed", match.start(), detail=detail)


def _ptx_version(line: Line, match: re.Match[str]) -> Mention:
    """A ptxas program says ``ptxas FILE, line 9; fatal``; the driver's own has no file."""
    before = line.body[: match.start()]
    own = re.search(r"ptxas(?:-blackwell)? (?!application)\S{1,200}, line", before)
    what = "ptxas-too-old" if own else "unsupported-toolchain"
    return line.mention(what, match.start(), detail={"ptx": match["ptx"], "knows": match["knows"]})


def _of_triton() -> tuple[Recogniser, ...]:
    return (
        plain(
            "gpu-feature",
            ("too old to be supported by the triton",),
            r"Found (?P<gpu>[^\n]{3,60}?) which is too old to be supported by the triton GPU "
            r"compiler[^\n]{0,300}",
            needs="70",
            feature="triton",
        ),
        plain(
            "triton-no-libcuda",
            ("libcuda.so cannot found",),
            r"libcuda\.so cannot found",
        ),
        plain(
            "gpu-feature",
            ("not supported in this architecture", "not supported on cuda arch"),
            r"(?P<feature>fp8\w{2,12}|float8_\w{2,12})['\")]{0,3} (?:data type )?(?:is )?not "
            r"supported (?:in this architecture|on CUDA arch < 89)",
            needs="89",
        ),
        plain(
            "shared-memory",
            ("out of resource: shared memory",),
            r"out of resource: shared memory(?:, Required: (?P<required>\d{3,9}))?"
            r"(?:, Hardware limit: (?P<limit>\d{3,9}))?(?![^\n]{0,200}Ignoring this)",
        ),
        plain(
            "gpu-feature",
            ("cannot select: intrinsic", "unexpected mma -> mma"),
            r"LLVM ERROR: Cannot select: intrinsic %llvm\.nvvm\.[\w.]{1,60}"
            r"|Unexpected mma -> mma layout conversion",
            feature="triton",
            needs="80",
        ),
    )


def _of_left_out() -> tuple[Recogniser, ...]:
    """A build holds kernels for some GPUs; its own code looks for the one of this GPU."""
    return (
        plain(
            "kernel-left-out",
            ("no compiled ",),
            r"No compiled (?P<kernel>[\w.]{2,60})[^\n]{0,80}? (?:compute capability less than )?"
            r"CUDA device capability: (?P<sm>\d{2,3})"
            r"(?:\.\s{1,4}Required capability: (?P<built>\d[\w ,]{1,40}))?",
        ),
        plain(
            "kernel-left-out",
            ("could not find compatible tinycudann",),
            r"Could not find compatible (?P<package>tinycudann) extension for compute capability "
            r"(?P<sm>\d{2,3})",
        ),
        plain(
            "kernel-left-out",
            ("but was built for sm", "but running on sm", "but runs on sm", "but is running on sm"),
            r"(?:is|built|compiled) for sm_?(?P<range>\d{2,3}(?:-sm_?\d{2,3})?), but "
            r"(?:was built for|(?:is )?running on|runs on) sm_?(?P<built>\d{2,3})",
        ),
        plain(
            "kernel-left-out",
            ("without targeting",),
            r"Arch conditional MMA instruction used without targeting "
            r"(?:sm(?P<target>\d{2,3}[af]?)|appropriate) compute capability",
        ),
        plain(
            "kernel-left-out",
            ("has no device code compatible",),
            r"(?:kernel (?P<kernel>\w{2,60}) )?has no device code compatible with CUDA arch "
            r"(?P<ggml>\d{3,4})(?:[^\n]{0,80}?compiled for: (?P<built>[\d, ]{2,120}))?",
        ),
        plain(
            "kernel-left-out",
            ("arch_mismatch",),
            r"(?P<lacking>CU(?:BLAS|DNN))_STATUS_(?:NOT_SUPPORTED_)?ARCH_MISMATCH",
        ),
        plain(
            "feature-left-out",
            ("flash attention build does not support", "flashattention build does not support"),
            r"This flash\s?attention build does not support (?P<feature>[^\n.]{2,60})",
        ),
        by_pattern(
            ("kernel is not available",),
            r"(?:SM|sm_?)(?P<flag>\d{2,3}) kernel is not available",
            _flag,
        ),
    )


def _flag(line: Line, match: re.Match[str]) -> Mention:
    """A package says so of what it tried to import when it was imported itself."""
    path, function, code = frame(line)
    detail = {"flag": match["flag"], "frame": path, "function": function, "code": code}
    return line.mention("kernel-left-out", match.start(), detail=detail)


#: Words between a requirement and its number.
_OF = r"(?:CUDA )?(?:compute )?capabilit(?:y|ies)(?: of)?"
_NUMBER = r"\(?(?P<needs{0}>\d{{1,2}}[.,] ?\d)(?![\d.]\d)"
_LEAST = (
    rf"(?:requires?|needs?|only supports?|supported on)[^\n.]{{0,80}}? {_OF}(?: (?:of )?at least"
    r"|\s?>=?| greater than(?: or equal to)?| ≥)?\s?"
    + _NUMBER.format("")
    + rf"|{_OF}(?: (?:of )?at least|\s?>=?)?\s?"
    + _NUMBER.format("2")
    + r"(?: or (?:higher|newer|above|greater|later)|\+)? (?:is |are )?(?:required|needed)"
)
_HAVE = lazily(
    r"(?:current capability:?|(?:your|this|current|but|got|has|detected|found)[^\n]{0,60}?"
    r"capability:?(?: of| is)?|\bgot|\bis)\s?\(?(\d{1,2})[., ]{0,2}(\d)\b",
    re.IGNORECASE,
)


#: ``CUDA 12.8 or higher is required for compute capability 12.0.``: read in build_stops.py.
_TOOLKIT = lazily(
    r"CUDA \d{1,2}\.\d{1,2} or (?:higher|newer|later|above|greater) is (?:required|needed)"
)


def _refusal(line: Line, match: re.Match[str]) -> Mention | None:
    """A check of a package, with what it asks for and what it found."""
    if any(_OPERATOR.search(near.body) for near in (line, *line.above(12))):
        return None  # one of many reasons in the list of xformers
    if _TOOLKIT.search(line.body):
        return None  # of the toolkit, for a GPU that is named with it
    groups = {key.rstrip("2"): text.strip() for key, text in match.groupdict().items() if text}
    needs = re.sub(r"\D", "", groups.pop("needs", ""))
    if len(needs) == 1 or "major" in match[0]:
        needs += "0"  # the major number alone
    path, function, code = frame(line)
    detail = {**groups, "frame": path, "function": function, "code": code, "needs": needs}
    if re.search(r"\bINFO\b|\bWARN|Warning", line.raw):
        detail["prose"] = "yes"  # what a program says and goes on after
    for text in (line.body[match.end() :], *(below.body for below in line.below(2))):
        have = _HAVE.search(text[:400])
        if have and "sm" not in detail:
            detail["sm"] = f"sm_{have[1]}{have[2]}"
    return line.mention("capability-refused", match.start(), detail=detail)


def _of_refusals() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("only supported on gpus with compute capability",),
            r"(?P<feature>bfloat16) is only supported on GPUs with compute capability of at least "
            r"(?P<needs>8\.0)(?:\. Your (?P<gpu>[^\n]{2,60}?) GPU has compute capability)?",
            _refusal,
        ),
        by_pattern(
            ("not supported for the current gpu",),
            r"The quantization method (?P<feature>[\w-]{2,30}) is not supported for the current "
            r"GPU\. Minimum capability: (?P<needs>\d{2,3})",
            _refusal,
        ),
        by_pattern(
            ("bf16 is only supported on", "bf16 not supported on", "doesn't support bf16/gpu",
             "bfloat16 is not supported on your"),
            r"(?P<feature>bf16) is only supported on A100\+ GPUs"
            r"|Your setup doesn't support (?P<feature2>bf16)/gpu"
            r"|bf(?:16|loat16) (?:is )?not supported on (?:your|this) GPU",
            _bf16,
        ),
        by_pattern(
            ("_scaled_mm is only supported",),
            r"(?P<feature>torch\._scaled_mm) is only supported on CUDA devices with compute "
            r"capability >= (?P<needs>\d{1,2}\.\d)",
            _refusal,
        ),
        by_pattern(
            ("required for fp8",),
            r"Device compute capability (?P<needs>8\.9) or (?:higher|newer) required for "
            r"(?P<feature>FP8)",
            _refusal,
        ),
        by_pattern(
            ("only supports gpu architectures",),
            r"(?P<feature>Flash attention|Mem Efficient attention|cuDNN SDPA)[^\n]{0,40}? "
            r"only supports gpu architectures in the range \[sm_?(?P<needs>\d{2,3}), sm_?"
            r"(?P<most>\d{2,3})\]\. Attempting to run on a sm (?P<sm>\d{1,2}\.\d)",
            _refusal,
        ),
        plain(
            "sdpa-no-kernel",
            ("no available kernel. aborting",),
            r"No available kernel\. Aborting execution",
        ),
        by_pattern(
            ("capability",),
            _LEAST,
            _refusal,
        ),
        *_of_named(),
    )  # fmt: skip


def _of_named() -> tuple[Recogniser, ...]:
    """Requirements by a target (SM90) or a family (Hopper) in place of a capability."""
    return (
        by_pattern(
            ("requires sm", "supported on sm", "supports sm", "needs sm", "requires at least sm",
             "supported for sm"),
            r"(?:requires|needs|supports|supported (?:on|for))(?: at least)? SM_?"
            r"(?P<needs>\d{2,3})[a-z]?(?:\+| (?:and|or) (?:above|higher|newer|later|up)|\b)",
            _refusal,
        ),
        by_pattern(
            ("hopper gpu", "blackwell gpu", "ampere gpu", "turing gpu", "volta gpu", "hopper or",
             "ampere or"),
            r"(?:requires?|needs?|only supports?|only supported on)(?: an?| at least)?(?: NVIDIA)? "
            r"(?P<family>Hopper|Blackwell|Ampere|Turing|Volta)(?: GPUs?| or (?:newer|later|above))",
            _family,
        ),
        by_pattern(
            ("unsupported cuda arch", "unsupported gpu arch:", "unsupported architecture: sm"),
            r"Unsupported (?:CUDA |GPU )?arch(?:itecture)?: ?(?:sm_?)(?P<sm>\d{2,3})",
            _unsupported,
        ),
        by_pattern(
            ("no supported cuda architectures found",),
            r"No supported CUDA architectures found for major versions \[(?P<needs>\d{1,2})",
            _refusal,
        ),
        by_pattern(
            ("arch_major ==",),
            r"arch_major == (?P<needs>\d{1,2})",
            _refusal,
        ),
    )  # fmt: skip


def _family(line: Line, match: re.Match[str]) -> Mention | None:
    """FlashAttention's checks are read by their own words, in gpu.py."""
    if re.search(r"flash\s?attention", line.body[: match.start()], re.IGNORECASE):
        return None
    return _refusal(line, match)


def _unsupported(line: Line, match: re.Match[str]) -> Mention:
    path, function, code = frame(line)
    detail = {"sm": f"sm_{match['sm']}", "function": function, "code": code}
    if path:
        detail["from"] = path.replace("\\", "/")
    return line.mention("capability-refused", match.start(), detail=detail)


def _bf16(line: Line, match: re.Match[str]) -> Mention | None:
    """torch and xformers on a GPU before Ampere; in xformers' list the list says it."""
    mention = _refusal(line, match)
    return mention and line.mention(
        "capability-refused",
        match.start(),
        detail={**mention.detail, "feature": "bf16", "needs": "80"},
    )


def _operators(line: Line, match: re.Match[str]) -> Mention:
    """The refusals of one operator, and of those below it."""
    names: list[str] = [match[1]]
    reasons: list[str] = []
    for below in line.below(40):
        found = _OPERATOR.search(below.body)
        if found:
            names.append(found[1])
            continue
        text = below.body.strip()
        if not text or len(text) > 200:
            break
        reasons.append(f"{names[-1]}: {text}")
    have = re.search(r"your GPU has capability \((\d{1,2}), (\d)\)", "\n".join(reasons))
    detail = {
        "operators": ", ".join(dict.fromkeys(names)),
        "reasons": "; ".join(reasons)[:4000],
        "capability": f"{have[1]}.{have[2]}" if have else "",
    }
    return line.mention("xformers-refusals", match.start(), detail=detail)


def _of_xformers() -> tuple[Recogniser, ...]:
    return (by_pattern(("` is not supported because",), _OPERATOR.pattern, _operators),)
