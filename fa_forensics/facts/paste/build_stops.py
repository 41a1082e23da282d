"""How a build ends where no compiler says why: killed, half a toolkit, a refused command."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

#: Words of a build, in the lines around "Killed".
_BUILDS = lazily(
    r"ninja|nvcc|cc1plus|cicc|ptxas|g\+\+|c\+\+|setup\.py|compil|building wheel|pip install",
    re.IGNORECASE,
)


def _killed_alone(line: Line, match: re.Match[str]) -> Mention | None:
    """The shell's word for a process that the kernel ended, where the lines around build."""
    around = [*(above.body for above in line.above(6)), *(below.body for below in line.below(6))]
    if not any(_BUILDS.search(text) for text in around):
        return None
    detail = {"program": "a compiler"}
    threads = next((t for text in around if (t := re.search(r"--threads[ =]?\d{1,3}", text))), None)
    if threads is not None:
        detail["threads"] = threads[0]
    return line.mention("out-of-memory-build", match.start(), detail=detail)


def recognisers() -> tuple[Recogniser, ...]:
    """The last lines of builds."""
    return (
        by_pattern(
            ("killed", "已杀死"),
            r"(?:^|: \d{1,7}\s|\d: )(?:Killed(?:: 9)?|已杀死)(?:$|\s{2,})",
            _killed_alone,
        ),
        plain(
            "jit-build-failed",
            ("nvcc fatal", "ptxas fatal", "nvlink fatal"),
            r"(?P<tool>nvcc|ptxas|nvlink) fatal\s{0,6}:\s{1,4}(?!Unsupported gpu|Value 'sm_"
            r"|Value 'c\+\+|Could not set up|Cannot find compiler 'cl)"
            r"(?P<said>[^\n]{4,200})",
            reason="fatal",
        ),
        plain(
            "cuda-home-missing",
            ("cicc", "cudafe++", "ptxas", "fatbinary", "nvlink"),
            r"(?P<tool>\bcicc|\bcudafe\+\+|\bptxas|\bfatbinary|\bnvlink)['\"]?"
            r"(?:: (?:command )?not found|: No such file or directory| is not found)",
        ),
        plain(
            "compiler-missing",
            ("failed to find c compiler",),
            r"Failed to find C compiler",
            triton="yes",
        ),
        plain(
            "compiler-missing",
            (
                "unable to execute",
                "failed: no such file or directory",
                "'which', '",
                "g++: not found",
                "gcc: not found",
                "-cc: not found",
                "c++: not found",
                "command not found",
            ),
            r"(?:unable to execute|error: command) '(?P<program>[\w./+-]{0,80}(?:gcc|g\+\+|cc"
            r"|c\+\+|clang|clang\+\+)(?:-\d{1,2})?)'(?: failed)?: No such file"
            r"|Command '\['which', '(?P<program2>[\w./+-]{1,80})'\]' returned non-zero"
            r"|\b(?P<program3>x86_64-[\w-]{1,40}-(?:gcc|g\+\+|cc|c\+\+)|gcc|g\+\+|c\+\+): "
            r"(?:command )?not found",
        ),
        by_pattern(
            ("only supported on cuda", "is required to build the package",
             "is required for compute capability", "is required for gpus with compute capability"),
            r"(?:is|are) only supported on CUDA (?P<least>\d{1,2}(?:\.\d{1,2})?)"
            r"(?: (?:and|or) (?:above|newer|higher|later|up)|['\")]|\.?$)"
            r"|CUDA (?P<least2>\d{1,2}(?:\.\d{1,2})?) or (?:higher|newer|later|above) is required "
            r"(?:to build the package|for (?:GPUs with )?compute capability (?P<for>\d{1,2}\.\d))",
            _toolkit_too_old,
        ),
        *_of_wheels(),
    )  # fmt: skip


#: What stands around the words of a setup.py that asked nvcc for its release.
_ASKS_NVCC = lazily(
    r"setup\.py|\bnvcc\b|\bpip\b|egg_info|build_meta|setuptools|CUDA_HOME|building wheel"
    r"|raise RuntimeError",
    re.IGNORECASE,
)
#: Packages whose setup.py is known for the sentence, in titles without more.
_KNOWN_TO_ASK = lazily(
    r"(?:flash[-_ ]?attention|flash[-_ ]attn|causal[-_]conv1d|mamba[-_]ssm)\S{0,4}$", re.IGNORECASE
)


def _toolkit_too_old(line: Line, match: re.Match[str]) -> Mention | None:
    """setup.py held the release of the nvcc that it found against the one it needs.

    Programs say the same of what they were built with, at run time: no build stands around that.
    """
    before = line.body[max(0, match.start() - 80) : match.start()].strip()
    name = re.split(r"[\"'(:`]", before)[-1].strip() if match["least"] else ""
    around = (line.body, *(a.body for a in line.above(15)), *(b.body for b in line.below(15)))
    known = match["least2"] or _KNOWN_TO_ASK.search(before)
    if not known and not any(_ASKS_NVCC.search(text) for text in around):
        return None
    detail = {
        "least": match["least"] or match["least2"],
        "for": match["for"] or "",
        "asks": name if len(name.split()) <= 4 else "",
    }
    return line.mention("cuda-too-old-to-build", match.start(), detail=detail)


#: The last line of a traceback of Python, apart from what pip and subprocess say of the run.
_RAISED = lazily(
    r"^(?!ERROR|error|CalledProcessError|subprocess|SystemExit|DistutilsError)"
    r"(?:[\w.]{1,60}\.)?(?P<raised>[A-Z]\w{0,40}(?:Error|Exception|Warning): [^\n]{4,300})"
)


#: What is raised where a program that was started failed: its own words stand elsewhere.
_PASSED_ON = lazily(
    r"CalledProcessError|Error compiling objects|Error building extension|[Cc]ommand\b|exit (?:code"
    r"|status)|[Cc][Mm]ake|returned non-zero|Failed to build|failed to build"
)


def _ended(line: Line, match: re.Match[str]) -> Mention:
    """pip's word for a build that ended, with what setup.py raised near it."""
    detail = {"reason": "wheel"}
    if package := match.groupdict().get("package"):
        detail["package"] = package
    for near in (*line.above(12), *line.below(30)):
        found = _RAISED.match(near.body.strip())
        if found is not None and not _PASSED_ON.search(found["raised"]):
            detail["raised"] = found["raised"].strip()
            break
    return line.mention("jit-build-failed", match.start(), detail=detail)


def _of_wheels() -> tuple[Recogniser, ...]:
    """What pip, uv and setuptools say after a build ended, without saying why."""
    return (
        by_pattern(
            (
                "metadata-generation-failed",
                "generating package metadata",
                "egg_info did not run",
                "to build wheel did not run",
                "to build editable did not run",
                "metadata (pyproject.toml) did not run",
                "error compiling objects for extension",
                "failed to build installable wheels",
            ),
            r"metadata-generation-failed|generating package metadata|egg_info did not run"
            r"|to build (?:wheel|editable) did not run"
            r"|metadata \(pyproject\.toml\) did not run|Error compiling objects for extension"
            r"|Failed to build installable wheels for [^(\n]{0,60}\("
            r"(?P<package>[A-Za-z][\w.-]{1,60})",
            _ended,
        ),
        plain(
            "jit-build-failed",
            ("failed with exit code", "failed with exit status"),
            r"error: command '(?P<program>[^'\n]{1,300})' failed with exit (?:code|status) "
            r"(?P<status>\d{1,3})",
            reason="command",
        ),
        plain(
            "jit-build-failed",
            ("could not build wheels for", "failed-wheel-build-for-install"),
            r"Could not build wheels for\s+(?P<package>[A-Za-z][\w.-]{1,60}[A-Za-z0-9])",
            reason="wheel",
        ),
    )
