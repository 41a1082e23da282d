"""The variables of the environment that a text names: set in a command, printed, or listed."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import REPORT
from fa_forensics.patterns import lazily

#: How often one variable is followed up.
_PER_SIGN = 300
_ENV = ("ld_library_path", "cuda_home", "cuda_visible_devices", "ld_preload", "pythonpath",
        "torch_extensions_dir", "max_jobs", "flash_attention_force_build",
        "flash_attention_skip_cuda_build", "hsa_override_gfx_version", "conda_prefix",
        "nvidia_driver_capabilities", "torch_cuda_arch_list", "vllm_use_precompiled",
        "vllm_precompiled_wheel_location", "nvte_release_build")  # fmt: skip


#: What a sentence puts behind a value, and no value ends with.
_PUNCTUATION = ",;.`)"
#: The shell's words before a variable that is set.
_SETTING = lazily(r"(?:\b(?:export|setting|set|adding|with)\s+|[`'\"])+\Z", re.IGNORECASE)


def _put_it_right(words: str, start: int, end: int) -> bool:
    """Whether a value is told as the cure: "export LD_LIBRARY_PATH=... solved it"."""
    before = _SETTING.search(words[max(0, start - 40) : start])
    return is_cure(words, start - len(before[0]) if before is not None else start, end)


def read_variables(
    source: Source,
    places: Places,
    offer: Callable[[str, int, int, str], None],
) -> None:
    """The variables of the environment that a text sets or prints, as ``env:NAME``."""
    for name in _ENV:
        pattern = re.compile(
            rf"\b{name}['\"\]]{{0,3}}\s?[=:]\s?['\"]?(?P<value>[^\s'\"]{{1,500}})", re.IGNORECASE
        )
        for place in places(name)[:_PER_SIGN]:
            line = source.line_at(place)
            match = pattern.search(line.body)
            if match is not None and not _put_it_right(line.body, match.start(), match.end()):
                value = match["value"].rstrip(_PUNCTUATION) or match["value"]
                offer(f"env:{name.upper()}", REPORT, line.number, value)
                break
            if re.search(rf"echo\s+\$\{{?{name}", line.body, re.IGNORECASE):
                for below in line.below(1):
                    if below.body:
                        offer(f"env:{name.upper()}", REPORT, line.number, below.body[:500])
