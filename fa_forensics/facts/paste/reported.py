"""What a text says of its own day, and of who built its torch: conda-forge, a distribution."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.steps import read_steps
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

#: How many places of one word are looked at.
_MOST = 20

#: (title, word, pattern): builds of torch that no wheel is. All of them are compiled with the
#: compiler's own std::string, which is cxx11 since GCC 5: conda-forge/pytorch-cpu-feedstock,
#: Arch's python-pytorch, Debian's and Fedora's python3-torch, nixpkgs, Gentoo, Spack, and the
#: torch in the images of Habana's Gaudi (habana_frameworks), which has no CUDA.
_MAKERS = (
    (
        "conda-forge's",
        "conda-forge",
        r"^(?:lib)?(?:py)?torch(?:-gpu|-cpu)?\s{1,60}\d[\w.]{0,20}\s{1,60}\S{1,60}\s{1,60}"
        r"(?:\S{0,60}/)?conda-forge\b"
        r"|\bconda-forge(?:/[\w-]{1,20})?::(?:lib|py)?torch\b"
        r"|(?<![\w-])(?:py)?torch\b[^\n.;,(]{0,20}(?:\.\d[^\n.;,(]{0,10}){0,3}"
        r"\((?:from )?conda-forge"
        r"|\bconda-forge(?:'s)? (?:build of |package of )?(?:py)?torch\b(?!-)"
        r"|(?<![\w-])(?:py)?torch\b(?: v?\d[\w.+]{0,20})? (?:(?:is|was|installed|comes|taken) )"
        r"{0,2}(?:from|of|via|by|through) (?:the )?conda-forge"
        r"|\b(?:conda|mamba) (?:install|create)\b(?=[^\n]{0,300}\bpytorch(?:=|\s|$))"
        r"(?![^\n]{0,300}(?:-c|--channel)[ =]pytorch\b(?!-))[^\n]{0,300}conda-forge",
    ),
    ("conda-forge's", "conda-forge", r"\bconda-forge (packages|builds)\b"),
    # Of the channel pytorch it would be built as the wheels are; defaults has its own builds.
    (
        "conda's own build (defaults' or conda-forge's)",
        "conda install",
        r"(?:^[\s$>%!#`'\"]{0,8}|[$!`'\"&;:)]\s{0,2}"
        r"|\b(?:by|with|via|using|through|is|was"
        r"|[Ii] (?:have |had |just )?(?:used|ran|run|did|typed))"
        r"\s[`'\"]?)"
        r"conda install (?:-y )?(?:py)?torch(?![\w=-])(?!(?:[^\n.!?]|\.(?=\d)){0,200}\?)"
        r"(?![^\n]{0,300}(?:(?<=\s)-c\b|--channel|::|\\$))",
    ),
    ("conda-forge's", "pytorch-gpu", r"(?<![\w/.-])(?<!env )(pytorch-gpu)(?![\w/-])"),
    ("conda-forge's", "pytorch-cpu", r"(?<![\w/.-])(?<!env )(pytorch-cpu)(?![\w/-])"),
    (
        "conda-forge's",
        ".post",
        r"\btorch\b[^\n]{0,40}(?<![\w.])[12]\.\d{1,2}\.\d\.post[1-9]\d\d\b",
    ),
    (
        "Arch Linux's",
        "pytorch",
        r"(?<![\w-])python-pytorch(?:-opt)?(?:-cuda|-rocm)?(?![\w-])"
        r"|\bArch(?:\s?Linux)?(?:'s)?,? (?:system |own )?(?:py)?torch\b"
        r"|\bpacman -S\w{0,3} [^\n]{0,200}pytorch",
    ),
    ("a distribution's", "python3-torch", r"(?<![\w-])(python3-torch)(?![\w-])"),
    (
        "a distribution's",
        "torch",
        r"\b(?:system|distribution|distro)(?:'s)? (?:own )?(?:py)?torch\b(?![\w-])",
    ),
    (
        "that of Nixpkgs",
        "/nix/store",
        r"/nix/store/[a-z0-9]{32}-python3\.\d{1,2}-(?:py)?torch-\d",
    ),
    ("that of Nixpkgs", "packages.", r"\bpython3?\d{0,3}Packages\.(?:py)?torch(?![\w-])"),
    ("Gentoo's", "sci-", r"\bsci-(?:libs|ml)/(?:pytorch|caffe2)\b"),
    ("Spack's", "py-torch@", r"(?<![\w-])(py-torch)@\d"),
    *(
        ("that of Intel's Gaudi software", word, pattern)
        for word, pattern in (
            (
                "habana",
                r"^(?![^\n]{0,300}\bNo module named)[^\n]{0,400}?\bhabana(?:labs|_\w{1,30})?\b",
            ),
            (
                "gaudi",
                r"\bGaudi[ -]?[1-3]? ?(?:HPUs?|cards?|nodes?|accelerators?|image|container)\b",
            ),
            ("gaudi", r"\b(?:on|with) (?:an? |Intel |Habana )?Gaudi[ -]?[1-3]?\b"),
        )
    ),
)
_PATTERNS = tuple(
    (title, word, re.compile(pattern, re.IGNORECASE)) for title, word, pattern in _MAKERS
)

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
#: A month and a year as people write them, not a compiler's "Nov 22 2022".
_MONTH = lazily(
    rf"(?<![\w-])(?P<month>{'|'.join(rf'{m[:3]}(?:t|{m[3:]})?' for m in _MONTHS)})\.?,? "
    r"(?P<year>20[12]\d)(?![\w.-])",
    re.IGNORECASE,
)
#: 2022-07-27 and 2022-07, in a sentence or before the time of a log's line.
_ISO = lazily(
    r"(?:^|[,(] ?|\[)(?P<year>20[12]\d)-(?P<month>0[1-9]|1[0-2])(?:-[0-3]\d)?"
    r"(?=$|[),]|[ T]\d\d:\d\d)"
)
#: ", 2022" at the end of a line, "(2023)", "late 2023".
_YEAR = lazily(
    r"(?:[,(] |\(|\b(?:early|late|mid|end of|spring|summer|autumn) )(?P<year>20[12]\d)(?:\)|$)"
)
#: Lines whose dates are not the report's.
_OTHER_DATE = lazily(r"copyright|visual studio|msvc|\(c\)|macbook", re.IGNORECASE)


def read_report(source: Source, places: Places, offer: Offer) -> None:
    """The key ``torch_by``, who built the text's torch, and ``date``, its latest month.

    Those of ``read_steps`` as well.
    """
    read_steps(source, places, offer)
    for title, word, pattern in _PATTERNS:
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            made = pattern.search(line.body)
            if made is None or _not_so(line.body, made):
                continue
            if word != "conda install" or not _by_pip(source, places):
                offer("torch_by", BANNER, line.number, title)
            break
    found: list[tuple[str, int]] = []
    for year in ("201", "202"):
        read = 0
        for place in places(year)[:_MOST]:
            if place < read:
                continue
            line = source.line_at(place)
            read = line.start + len(line.raw)
            if _OTHER_DATE.search(line.raw) is None:
                found += [(month, line.number) for month in _months_of(line.raw)]
    if found:
        month, number = max(found)
        offer("date", BANNER, number, month)


#: pip's own torch: what pip installed says more than a conda command of some time.
_PIPS = lazily(
    r"\bpip[\d.]{0,4} install [^\n;&|]{0,200}?(?<![\w./-])torch(?![\w-])"
    r"|\bSuccessfully installed [^\n]{0,2000}?(?<![\w-])torch-\d",
    re.IGNORECASE,
)
#: "I never ran conda install pytorch": the verb between a denial and the command.
_NOR = lazily(
    r"(?:\b(?:not|never|without|instead of)|n't) (?:do|did|run|ran|running|typ\w{1,3})? ?[`'\"]?\Z",
    re.IGNORECASE,
)


def _not_so(words: str, made: re.Match[str]) -> bool:
    """Whether a line denies the build of torch that it names; a match may begin with a verb."""
    start = words.lower().find("conda", made.start(), made.end())
    starts = (made.start(), start) if start >= 0 else (made.start(),)
    return any(is_denied(words, at) or _NOR.search(words[max(0, at - 40) : at]) for at in starts)


def _by_pip(source: Source, places: Places) -> bool:
    """Whether the text has a command or a log of pip that installs torch."""
    found = (place for word in ("pip", "successfully installed") for place in places(word)[:_MOST])
    seen: set[int] = set()
    for place in found:
        line = source.line_at(place)
        if line.start in seen:
            continue
        seen.add(line.start)
        pips = _PIPS.search(line.body)
        if pips is not None and not is_denied(line.body, pips.start()):
            return True
    return False


def _months_of(text: str) -> list[str]:
    """The months that a line names, as 2023-06; a year alone is its last month."""
    months = [
        f"{found['year']}-{_number(found['month']):02d}"
        for found in itertools.islice(_MONTH.finditer(text), 5)
    ]
    months += [
        f"{found['year']}-{found['month']}" for found in itertools.islice(_ISO.finditer(text), 5)
    ]
    return months + [f"{found['year']}-12" for found in itertools.islice(_YEAR.finditer(text), 5)]


def _number(month: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower()))
