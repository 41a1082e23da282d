"""How a build ends where no compiler says why: killed, half a toolkit, a refused command."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain

#: Words of a build, in the lines around "Killed".
_BUILDS = re.compile(
    r"ninja|nvcc|cc1plus|cicc|ptxas|g\+\+|c\+\+|setup\.py|compil|building wheel|pip install",
    re.IGNORECASE,
)


def _killed_alone(line: Line, match: re.Match[str]) -> Mention | None:
    """The shell's word for a process that the kernel ended, where the lines around build."""
    around = [*(above.body for above in line.above(6)), *(below.body for below in line.below(6))]
    if not any(_BUILDS.search(text) for text in around):
        return None
    return line.mention("out-of-memory-build", match.start(), detail={"program": "a compiler"})


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
        *_of_wheels(),
    )


def _of_wheels() -> tuple[Recogniser, ...]:
    """What pip, uv and setuptools say after a build ended, without saying why."""
    return (
        plain(
            "jit-build-failed",
            (
                "metadata-generation-failed",
                "generating package metadata",
                "egg_info did not run",
                "to build wheel did not run",
                "error compiling objects for extension",
                "failed to build installable wheels",
            ),
            r"metadata-generation-failed|generating package metadata|egg_info did not run"
            r"|to build wheel did not run|Error compiling objects for extension"
            r"|Failed to build installable wheels for [^(\n]{0,60}\("
            r"(?P<package>[A-Za-z][\w.-]{1,60})",
            reason="wheel",
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
