"""How texts name the GPU of a machine: short names, those of other makers, and which one fails."""

from __future__ import annotations

import re

#: AMD's cards and their graphics parts: with or without RX, and processors by their own names.
AMD: tuple[tuple[str, str, str], ...] = (
    *(
        (
            sign,
            r"(?<!\w)((?:AMD )?(?:Radeon )?RX[ -]?\d{3,4}[ -]?(?:XTX|XT|GRE)?(?: ?[MS](?: XT)?)?)"
            r"(?![\w-]|\.\d)",
            "amd_gpu",
        )
        for sign in ("rx ", "rx-", "rx4", "rx5", "rx6", "rx7", "rx9")
    ),
    *(
        (
            sign,
            r"(?<![\w.])(?<!Ryzen \d )"
            r"((?:5[567]00|6[4-9][05]0|7[6-9]00|90[67]0)[ -]?(?:XTX?|GRE))(?!\w)",
            "amd_gpu",
        )
        for sign in ("0xt", "0 xt", "0-xt", "0 gre", "0gre")
    ),
    ("radeon", r"\bRadeon\W{0,4}(?:TM\W{0,2})?(?:Pro |PRO )?(\d{3,4}[MS]|VII|W\d{4})\b", "amd_gpu"),
    ("vega", r"(?<!\w)(Vega ?(?:56|64|Frontier Edition))(?!\w)", "amd_gpu"),
    *(
        (sign, r"(?<![\w.-])((?:6[16]0|680|7[468]0|8[2689]0)M|80[456]0S)(?!\w)", "amd_gpu")
        for sign in ("0m", "0s")
    ),
    *(
        (sign, rf"(?<!\w)({sign}[APX]?)(?!\w)", "amd_gpu")
        for sign in ("mi25", "mi50", "mi60", "mi100", "mi210", "mi250", "mi300", "mi325", "mi350",
                     "mi355")
    ),
    ("w6800", r"(?<!\w)(W6800)(?!\w)", "amd_gpu"),
    ("w79", r"(?<!\w)(W7900)(?!\w)", "amd_gpu"),
    ("w78", r"(?<!\w)(W7800)(?!\w)", "amd_gpu"),
    ("r9700", r"(?<!\w)(R9700)(?!\w)", "amd_gpu"),
    ("strix", r"\b(Strix[ -](?:Halo|Point))\b", "amd_gpu"),
    ("ryzen ai max", r"\b(Ryzen(?:\(TM\)| TM)? AI MAX\+?(?: PRO)? 3[89][05])(?!\d)", "amd_gpu"),
    *(
        (sign, rf"(?<![\w.])((?:Ryzen [579] (?:PRO )?)?{sign})(?!\w)", "amd_gpu")
        for sign in ("7840u", "7840hs", "8840u", "8840hs", "8845hs")
    ),
)  # fmt: skip

#: (small-letter sign, pattern, key), all for sentences. Short names stand in capitals, with
#: nothing of a path or a variable around them: "T4", "four T4", "2x L4", "GB10".
SENTENCES: tuple[tuple[str, str, str], ...] = (
    *(
        (sign, rf"(?<![\w./=\[-])(?<!\w\()((?-i:{name}))(?![\w/=\[(-]|\.\w|\s?=)", "gpu")
        for sign, name in (
            (" t4", "T4"),
            ("(t4", "T4"),
            (" l4", "L4|L40"),
            ("p100", "P100"),
            ("p40", "P40"),
            ("k80", "K80"),
            ("a10", "A10"),
            ("a30", "A30"),
            ("a40", "A40"),
            ("gb10", "GB10"),
            ("gb200", "GB200"),
        )
    ),
    (
        "intel",
        r"(?<!\w)(Intel(?:\(R\)|\s)?[^\S\n]?(?:integrated |onboard )?"
        r"(?:GPU|(?:HD |UHD )?Graphics|Iris[ \w()]{0,20}|Arc(?: [AB]\d{3}| graphics)?)"
        r"(?:\((?:iris|uhd|hd)[^()\n]{1,30}\))?)(?!\w)",
        "other_gpu",
    ),
    (
        "iris",
        r"(?<!\w)(Iris(?:\(R\))? ?(?:Xe|Plus|Pro)(?: (?:MAX|graphics))?)(?!\w)",
        "other_gpu",
    ),
    *AMD,
    ("rocm_sdk", r"(?<!\w)(_?rocm_sdk_\w{3,40})", "rocm_sdk"),
    ("rocm[", r"(?<!\w)(rocm\[(?:libraries|devel)[\w,-]{0,40}\])", "rocm_sdk"),
    ("rocm-sdk", r"(?<!\w)(rocm-sdk[\w-]{0,40})", "rocm_sdk"),
    ("rocm.nightlies", r"(rocm\.nightlies\.amd\.com)", "rocm_sdk"),
)

#: "works on A100 but not on V100", "Having this issue on A100 but not V100".
_NOT_THE_OTHER = re.compile(
    r"(?P<said>[^.\n]{0,80}?)\b(?:in|on|with|under|for)\s(?:an?\s|the\s|my\s)?"
    r"(?P<one>[\w -]{2,40}?)"
    r"(?:\sGPUs?)?,?\s(?:but|and)\s(?:is |does )?not\s(?:in\s|on\s|with\s|under\s|for\s)?"
    r"(?:an?\s|the\s|my\s)?(?P<other>[\w -]{2,40})",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"issue|error|problem|fail|crash|bug|break|broken|happens|occurs|raise|get(?:s|ting)? th",
    re.IGNORECASE,
)
_WORKS = re.compile(r"\b(?:work|run|fine|succeed|ok\b|pass)", re.IGNORECASE)


def failing(sentence: str, names: frozenset[str]) -> str | None:
    """Of several GPUs that a sentence names (in small letters) the one where it fails."""
    match = _NOT_THE_OTHER.search(sentence[:2000])
    if match is None:
        return None
    one = _among(match["one"], names)
    other = _among(match["other"], names)
    fails, works = _FAILS.search(match["said"]), _WORKS.search(match["said"])
    if one is None or other is None or bool(fails) == bool(works):
        return None
    return one if fails else other


def _among(words: str, names: frozenset[str]) -> str | None:
    low = words.lower()
    found = [name for name in names if name in low]
    return max(found, key=len) if found else None
