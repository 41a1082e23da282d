"""How texts name the GPU of a machine: short names, those of other makers, and which one fails."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: The numbers of GeForce cards that people write alone.
_NUMBERS = r"(?:[2-5]0[5-9]0|10[5-8]0|16[56]0)"

#: What such a number counts, where it is no card: "with 1650 images", "8x2080 tokens".
_NOT_COUNTED = (
    r"(?! (?:images?|samples?|tokens?|steps?|files?|param\w*|epochs?|rows?|lines?|frames?|videos?"
    r"|iter\w*|batch\w*|examples?|pixels?|px|ms|tests?|classes|points?|times|seconds|hours?|days?|MB|MiB|GB)\b)"
)

#: Where a name is an item of a list, or somebody's own.
_ITEM = (
    r"(?:(?<![^\n])|(?<=[,;/(])|(?<=[,;/] )|(?<=\bmy )|(?<=\ba )|(?<=\ban )|(?<=GPU )|(?<=GPU: )"
    r"|(?<=GPU:))"
)

#: AMD's cards and their graphics parts: with or without RX, and processors by their own names.
AMD: tuple[tuple[str, str, str], ...] = (
    *(
        (
            sign,
            r"(?<!\w)((?:AMD )?(?:Radeon )?RX[ -]?\d{3,4}[ -]?(?:XTX|XT|GRE)?(?: ?[MS](?: XT)?)?)"
            r"(?![\w-]|\.\d)",
            "amd_gpu",
        )
        for sign in ("rx ", "rx-", "rx5", "rx6", "rx7", "rx9")
    ),
    *(
        (
            sign,
            r"(?<![\w.])(?<!Ryzen \d )"
            r"((?:5[567]00|6[4-9][05]0|7[6-9]00|90[67]0)[ -]?(?:XTX?|GRE))(?!\w)",
            "amd_gpu",
        )
        for sign in ("0xt", "0 xt", "0 gre")
    ),
    (
        "radeon",
        r"\bRadeon\W{0,4}(?:TM\W{0,2})?(?:AI )?(?:Pro |PRO )?(\d{3,4}[MS]|VII|[WR]\d{4})\b",
        "amd_gpu",
    ),
    ("vega", r"(?<!\w)(Vega ?(?:56|64|Frontier Edition))(?!\w)", "amd_gpu"),
    *(
        (sign, r"(?<![\w.-])((?:6[16]0|680|7[468]0|8[2689]0)M|80[456]0S)(?!\w)", "amd_gpu")
        for sign in ("680m", "780m", "890m", "060s")
    ),
    *(
        (sign, r"(?<!\w)(MI(?:25|50|60|100|210|250|300|325|350|355)[APX]?)(?!\w)", "amd_gpu")
        for sign in ("mi2", "mi3", "mi50", "mi60", "mi100")
    ),
    ("r9700", r"(?<!\w)(R9700)(?!\w)", "amd_gpu"),
    ("strix", r"\b(Strix[ -](?:Halo|Point))\b", "amd_gpu"),
    ("ryzen ai max", r"\b(Ryzen(?:\(TM\)| TM)? AI MAX\+?(?: PRO)? 3[89][05])(?!\d)", "amd_gpu"),
    *(
        (sign, r"(?<![\w.])((?:Ryzen [579] (?:PRO )?)?(?:7840U|7840HS|8840U|8840HS|8845HS))(?!\w)",
         "amd_gpu")
        for sign in ("7840", "884")
    ),
)  # fmt: skip

#: NVIDIA's: the families by their words, and data-centre parts by their letters and numbers.
NVIDIA: tuple[tuple[str, str, str], ...] = (
    *(  # chips and products whose last driver is an old one
        (sign, r"(?<!\w)(G[FK][12]\d\d(?:GLM?|M)?(?: ?\[[\w ]{3,40}\])?)(?!\w)", "old_gpu")
        for sign in ("gf1", "gk1", "gk2")
    ),
    *(
        (sign, r"(?<!\w)((?:GeForce )?(?:GTX?|GTS) ?[45]\d\dM?)(?![\w-])", "old_gpu")
        for sign in ("gt 4", "gt 5", "gts 4", "gtx 4", "gtx 5")
    ),
    *(
        (sign, r"(?<!\w)((?:GeForce )?(?:GTX 6\d\dM?|GT ?7\d\dM?))(?![\w-])", "old_gpu")
        for sign in ("gt 7", "gt7", "gtx 6")
    ),
    (
        "rtx",
        r"(?:\b|(?<=\dx))((?:NVIDIA )?(?:GeForce |Quadro )?RTX[ _-]?(?:PRO )?(?:A?\d{4,5})"
        r"(?: ?(?:Ti|SUPER|D|Ada))?)\b(?![ -]series)",
        "gpu",
    ),
    (
        "titan",
        r"(?<!\w)((?:NVIDIA |GeForce )*(?:GTX )?TITAN(?: (?:Xp|X|V|RTX|Black|Z)"
        r"(?: \(?Pascal\)?)?)?)(?![\w-])",
        "gpu",
    ),
    ("dgx spark", r"(?<!\w)(DGX Spark)(?!\w)", "gpu"),
    ("tesla", r"\b(Tesla[ -]?(?:[A-Z]\d{1,3}S?|K[24]0(?:Xm?|[cmst])))\b", "gpu"),
    *(
        (
            sign,
            rf"{_ITEM}((?:NVIDIA )?(?:GeForce )?RTX[ -]?[2-5]0(?:xx|(?:00)?[ -]series))"
            r"(?=\s?(?:[,;/()]|$|GPU|card|laptop))",
            "gpu",
        )
        for sign in ("0xx", "0 series", "0-series")
    ),
    *(
        (sign, rf"{_ITEM}((?:NVIDIA )?T(?:400|600|1000|1200|2000))(?=\s?(?:[,;/(]|$))", "gpu")
        for sign in ("t400", "t600", "t1000", "t1200", "t2000")
    ),
    (
        "gtx",
        r"\b((?:NVIDIA )?(?:GeForce )?GTX[ -]?\d{3,4}M?(?: ?(?:Ti|SUPER))?)\b",
        "gpu",
    ),
    ("quadro", r"\b(Quadro (?:RTX \d{4}|[KMPTG][VP]?\d{3,4}M?))\b", "gpu"),
    *(  # bare numbers, behind a word or before one that makes them a card
        (
            sign,
            r"(?:(?<![\w.$])|(?<=\b[1-9]x)(?!1080(?! ?Ti)))"
            r"(?:(?<=\b[1-9]x)|(?<=\ba )|(?<=\ban )|(?<=\bmy )|(?<=\bon )|(?<=\btwo )|(?<=\bthe )"
            r"|(?<=\dx )|(?<=with )|(?<=have )|(?<=using )|(?<=NVIDIA )|(?<=GeForce )"
            r"|(?<=GPU )|(?<=GPU: )|(?<=GPU:)|(?<=显卡)|(?<=显卡:)|(?<=显卡: )"
            rf"|(?:(?<![^\n])|(?<=[,;/])|(?<=[,;/] ))"
            rf"(?={_NUMBERS} ?(?:Ti|SUPER|D)?s?\s?(?:[,;/]|$))"
            rf"|(?={_NUMBERS}(?: ?Ti)?(?: or | and ){_NUMBERS}(?!\w){_NOT_COUNTED})"
            rf"|(?={_NUMBERS} ?(?:Ti\b|SUPER\b|GPU|card|graphics|laptop|\s?显?卡)))"
            rf"({_NUMBERS}(?: ?(?:Ti|SUPER|D)\b)?)(?=s?(?!\w|[.:-]\d))"
            rf"{_NOT_COUNTED}",
            "gpu",
        )
        for sign in ("050", "060", "070", "080", "090", "1650", "1660")
    ),
    *((sign, r"(?<![\w.-])(980 ?Ti)(?!\w)", "gpu") for sign in ("980ti", "980 ti")),
    (
        "jetson",
        r"\b(Jetson (?:(?:AGX |Orin |Xavier )?(?:Orin|Xavier|Thor|Nano|NX|TX[12]))"
        r"(?: (?:NX|Nano))?)",
        "gpu",
    ),
    ("orin", r"(?<![\w/-])(?<!Jetson )((?:AGX )?Orin(?: (?:NX|Nano))?)(?![\w-])", "gpu"),
    ("xavier", r"(?<![\w/-])(?<!Jetson )((?:AGX )?Xavier(?: NX)?)(?![\w-])", "gpu"),
    ("thor", r"(?<!\w)(NVIDIA Thor|AGX Thor)(?!\w)", "gpu"),
    *(
        (
            sign,
            rf"(?:(?<![A-Za-z0-9_./-])|(?<=\b[1-9]x)|(?<=\b[AHV]\d00/))"
            rf"({sign}(?:-(?:SXM\d?|PCIe)(?:-\d{{2,3}}GB)?)?)(?![A-Za-z0-9_]|\.\w)",
            "gpu",
        )
        for sign in (
            "a100", "a800", "h100", "h800", "h20", "h200", "b200", "b300", "gb300", "v100", "v100s",
            "l40s",
            "l20", "a6000", "a5000", "a4000", "a10g", "gh200",
        )
    ),
    (
        "nvidia ",
        r"\b(NVIDIA (?:A|H|B|L|T|V|GB|GH)\d{1,3}[A-Z]?(?:[ -](?:SXM\d?|PCIe)[\w-]{0,12})?)",
        "gpu",
    ),
)  # fmt: skip

#: (small-letter sign, pattern, key), all for sentences. Short names stand in capitals, with
#: nothing of a path or a variable around them: "T4", "four T4", "2x L4", "GB10".
SENTENCES: tuple[tuple[str, str, str], ...] = (
    *(
        (sign, rf"(?<![\w./=\[-])(?<!\w\()((?-i:{name}))(?![\w/=\[(-]|\.\w|\s?=)", "gpu")
        for sign, name in (
            ("t4", "T4"),
            ("l4", "L4|L40"),
            ("m40", "M40"),
            ("m60", "M60"),
            ("k40", "K40[cmst]?"),
            ("k20", "K20(?:Xm?|[cms])"),
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
    *NVIDIA,
    *AMD,
    (
        "capabilit",
        r"(?:\bGPUs? |\bcard |\bdevice )(?:is |of |with |has |having |= ?){0,2}(?:a |an )?"
        r"(?:CUDA )?(?:compute )?capability (?:of |is |= ?)?(\d{1,2}\.\d)"
        r"(?![.\d])(?! (?:or|and) (?:newer|higher|above|later|lower|older)|\+)",
        "capability",
    ),
    (  # a launcher's words: "GPU with CUDA capability 7 5 is not supported for Flash Attention V2"
        "capability ",
        r"GPU with CUDA capability (\d{1,2} \d) is not supported",
        "capability",
    ),
    *(  # the family alone, of a GPU that somebody has: no requirement and no support
        (
            f"{family} {thing}",
            r"(?i:(?:(?:^|(?<=\n)|[,;(|] ?|\bGPU: ?)(?:NVIDIA )?"
            r"|\b(?:my|our|on an?|with an?|have an?|using an?|got an?|on the) "
            r"(?:new |own |NVIDIA )?)"
            rf"({family})(?= {thing}(?:s|\b))"
            rf"(?! {thing}s? (?:or|and|\+|required|only|needed|is\b|are\b|works?\b)))",
            "gpu_family",
        )
        for family in ("blackwell", "hopper", "volta", "turing", "pascal", "maxwell")
        for thing in ("gpu", "card")
    ),
    (  # diffusers fetches the kernels of such a backend from the Hugging Face hub
        "_hub",
        r"(?<![\w/.-])((?:_?sage|_?flash)\w{0,24}_hub)(?![\w/.-])",
        "hub_kernel",
    ),
    *(  # a capability that somebody's GPU has, and none of a list of targets
        (
            sign,
            r"(?:\b(?:Blackwell|Hopper|Ada|Lovelace|Ampere|Turing|Volta|Pascal|Maxwell|GPU|device"
            r"|card|on an?|on|my)[ ,:=(]{1,3}"
            r"|(?<![^\n])|(?<!sm_\d\d, )(?<!sm_\d\d\d, )(?<=, )|(?<=; ))"
            r"(sm_?(?:[5-9]\d|1[0-2]\d)[af]?)(?=[),;.\s]|$)"
            r"(?![),;/ ]{0,3}(?:and |or |& )?(?:sm|compute)_?\d)"
            r"(?! (?:code|kernels?|cubins?|binar|targets?|build|wheels?|only|support))",
            "sm",
        )
        for sign in ("sm_", "sm7", "sm8", "sm9", "sm10", "sm12")
    ),
    *(
        (
            sign,
            r"(?<!\w)(?<!not )(?<!not an )(?<!no )(?<!support )(?<!than )"
            r"(AMD(?:'s)? (?:Radeon )?(?:GPUs?|graphics cards?|cards?|APUs?))(?!\w)",
            "amd",
        )
        for sign in ("amd gpu", "amd radeon", "amd card", "amd graphics", "amd's gpu", "amd apu")
    ),
    (  # ROCm without a number, of the machine: an item of a list
        "rocm",
        r"(?:(?<![^\n])|(?<=, )(?<!CUDA, )|(?<=; ))(ROCm)(?=\s?(?:[,;]|$))(?!, CUDA)",
        "amd",
    ),
    (
        "rocm ",
        r"(?<![\w/.+-])(?<!no )(?<!or )(?<!not )"
        r"(ROCm (?:environment|machine|host|server|container|docker(?: image)?)(?!\w))",
        "amd",
    ),
    (
        "bin/ptxas",
        r"(?<![\w.])((?:/[\w.+-]{1,60}){1,12}/bin/ptxas(?:-blackwell)?)(?![\w-])",
        "ptxas",
    ),
    (
        "driver (",
        r"\bdrivers? \((?:e\.g\. ?|i\.e\. ?|version |here |now |v)?"
        r"([3-6]\d\d(?:\.\d{1,3}){0,2})(?![\w.]*\d)",
        "driver",
    ),
    (
        "nvidia-smi",
        r"nvidia-smi`?\W{1,6}(?:shows |says |reports |prints )?CUDA(?: Version)?\W{1,4}"
        r"(\d{1,2}\.\d)",
        "driver_cuda",
    ),
    (";gfx", r"(?<![\w;])(gfx\w{3,5}(?:;gfx\w{3,5}){1,30})(?!\w)", "gfx_built"),
    ("'gfx", r"\[('gfx\w{3,5}'(?:, 'gfx\w{3,5}'){0,30})\]", "gfx_built"),
    ("hip version", r"\bHIP version\W{1,4}(\d{1,2}\.\d{1,2})\.\d{4,6}", "rocm"),
    ("rocm_sdk", r"(?<!\w)(_?rocm_sdk_(?:\w{3,40}|\*))", "rocm_sdk"),
    ("therock", r"(?<!\w)(TheRock)(?!\w)", "rocm_sdk"),
    # The nightlies of these packages: "10.1.0a20260811".
    ("a20", r"(?<![\w.])(?:rocm)?(\d{1,2}\.\d{1,2}\.\d{1,2}a20[2-4]\d{5})(?![\w.])", "rocm_sdk"),
    ("rocm[", r"(?<!\w)(rocm\[(?:libraries|devel)[\w,-]{0,40}\])", "rocm_sdk"),
    ("rocm-sdk", r"(?<!\w)(rocm-sdk[\w-]{0,40})", "rocm_sdk"),
    ("rocm.nightlies", r"(rocm\.nightlies\.amd\.com)", "rocm_sdk"),
)

#: "works on A100 but not on V100", "Having this issue on A100 but not V100".
_NOT_THE_OTHER = lazily(
    r"(?P<said>[^.\n]{0,80}?)\b(?:in|on|with|under|for)\s(?:an?\s|the\s|my\s)?"
    r"(?P<one>[\w -]{2,40}?)"
    r"(?:\sGPUs?)?,?\s(?:but|and)\s(?:is |does )?not\s(?:in\s|on\s|with\s|under\s|for\s)?"
    r"(?:an?\s|the\s|my\s)?(?P<other>[\w -]{2,40})",
    re.IGNORECASE,
)
_FAILS = lazily(
    r"issue|error|problem|fail|crash|bug|break|broken|happens|occurs|raise|get(?:s|ting)? th",
    re.IGNORECASE,
)
_WORKS = lazily(r"\b(?:work|run|fine|succeed|ok\b|pass)", re.IGNORECASE)


def failing(sentence: str, names: frozenset[str]) -> str | None:
    """Of several GPUs that a sentence names (in small letters) the one where it fails."""
    sentence = sentence[:400]  # longer ones are no sentence, and cost more than they tell
    match = _NOT_THE_OTHER.search(sentence) if " not " in sentence.lower() else None
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
