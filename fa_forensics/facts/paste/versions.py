"""The versions that a text names: collect_env, nvidia-smi, pip, a REPL, an image's name, prose."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.paste.checkouts import read_checkouts
from fa_forensics.facts.paste.cures import is_cure, of_a_file, put_it_right, works_there
from fa_forensics.facts.paste.denied import is_absent, is_at_hand
from fa_forensics.facts.paste.derived import derived
from fa_forensics.facts.paste.given_wheels import is_own_wheel, read_given_wheels
from fa_forensics.facts.paste.lines import Line, Places, Source
from fa_forensics.facts.paste.local_sources import read_local_sources
from fa_forensics.facts.paste.moved import without_gone
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.nightlies import as_nightlies
from fa_forensics.facts.paste.past import is_past, read_present
from fa_forensics.facts.paste.reported import read_report
from fa_forensics.facts.paste.several_gpus import one_gpu
from fa_forensics.facts.paste.several_torches import of_several
from fa_forensics.facts.paste.spelled_packages import ALSO, stands_alone, versions_behind
from fa_forensics.facts.paste.steps import read_changes
from fa_forensics.facts.paste.traced import traced_torch
from fa_forensics.facts.paste.variables import read_variables
from fa_forensics.facts.paste.version_forms import (
    BANNER,
    FETCHED,
    LISTED,
    PROSE,
    REPORT,
    VERSION,
)
from fa_forensics.facts.paste.versions_table import Rule, rules
from fa_forensics.patterns import lazily

#: How often a word that a version stands behind is followed up.
PER_SIGN = 300
#: A version in a sentence that leaves its last number out.
LOOSE = PROSE + 1


def read_versions(
    source: Source, places: Places, built_with: str | None = None
) -> tuple[Mapping[str, str], Mapping[str, int]]:
    """(what the text names, the line of each); ``places`` finds a small-letter word.

    ``built_with`` is the torch that pip fetched for an isolated build: where pip tells of
    fetching it, it is not the installed one.
    """
    best: dict[str, tuple[int, int, str]] = {}
    torches: dict[str, tuple[int, int]] = {}
    builds: dict[str, tuple[int, str]] = {}

    def offer(key: str, sort: int, number: int, text: str) -> None:
        if key == "torch":
            text = text.removesuffix(".zip").removesuffix(".whl")  # a file's name, not a version
            text = _SPELT_OUT.sub("+cu", text)
        if key in ("torch", "file_torch") and (
            not _TORCH.match(text) or (text == built_with and sort == FETCHED)
        ):
            return
        if key == "torch":
            public = text.partition("+")[0]
            torches[public] = min((sort, number), torches.get(public, (sort, number)))
            if _OF_CUDA.match(text):
                builds.setdefault(public, (sort, text))
        known = best.get(key)
        if known is None or (sort, number) < known[:2]:
            best[key] = (sort, number, text)

    _by_rules(source, places, offer)
    one_gpu(best, source, places)
    _of_libtorch(best, places)
    _printed(source, offer)
    _nvidia_wheels(source, places, offer)
    _packages(source, places, offer)
    read_given_wheels(source, places, offer)
    read_variables(source, places, offer)
    read_local_sources(source, places, offer)
    read_checkouts(source, places, offer)
    read_report(source, places, offer)
    read_present(source, places, offer)
    read_changes(best, source, places, offer)
    if "torch" not in best and (traced := traced_torch(source, places)) is not None:
        offer("torch", LOOSE + 2, traced[1], traced[0])
        offer("torch_traced", LOOSE + 2, traced[1], traced[0])
    _with_its_build(best, builds)
    without_gone(best, torches, source, places, offer)
    of_several(best, torches, LISTED, LOOSE)
    as_nightlies(best, source, places)
    _without_board(best)
    if "gpu" in best:
        best.pop("gpu_family", None)
    derived(offer, best)
    return (
        {key: text for key, (_, _, text) in sorted(best.items())},
        {key: number for key, (_, number, _) in sorted(best.items())},
    )


#: A torch with the CUDA that it was built for: 1.9.0+cu111.
_OF_CUDA = lazily(r"\d[\d.]{1,12}\+cu\d{2,3}$")


def _with_its_build(
    best: dict[str, tuple[int, int, str]], builds: Mapping[str, tuple[int, str]]
) -> None:
    """The release alone (of an index's address, say) where the text has its build as well."""
    torch = best.get("torch")
    build = builds.get(torch[2]) if torch is not None else None
    if torch is not None and build is not None and build[0] <= torch[0]:
        best["torch"] = (*torch[:2], build[1])


def _by_rules(
    source: Source,
    places: Places,
    offer: Callable[[str, int, int, str], None],
) -> None:
    """What stands where the table of rules says that a version stands."""
    for rule in rules():
        read = 0
        for place in places(rule.sign)[:PER_SIGN]:
            if place < read:
                continue  # the part of the text around this place was searched already
            line = source.line_at(place)
            read = line.start + len(line.raw)
            match = rule.pattern.search(line.body) or rule.pattern.search(line.raw)
            if match is None:
                match = _on_next_line(rule, line)
            if match is None:
                continue
            if rule.sort == PROSE:
                _in_prose(rule, line, match.string, offer)
                if rule.key == "torch":
                    continue
                break
            if rule.key.startswith("flag:") and _all_absent(rule, match):
                continue
            text = match[1].strip(" .,;'\"`*|")
            if "(" not in text:
                text = text.rstrip(")")
            if text:
                text = rule.convert(text) if rule.convert else text.removesuffix("+cuda")
                elsewhere = rule.key == "ngc" and works_there(match.string, match.start())
                key = "works:ngc" if elsewhere else rule.key
                offer(key, rule.sort, line.number, text)
                break  # of one rule the first counts


def _all_absent(rule: Rule, first: re.Match[str]) -> bool:
    """Whether a line tells of what a rule looks for only to say that it is not there."""
    words = first.string
    found = itertools.islice(rule.pattern.finditer(words), 20)
    return all(is_absent(words, m.start()) or is_absent(words, m.start(1)) for m in found)


#: A torch of its own index, whose wheels no board has.
_OF_INDEX = lazily(r"\d[\d.]*\+cu\d{2,3}$")


def _without_board(best: dict[str, tuple[int, int, str]]) -> None:
    """The word Jetson alone, beside a torch that was published for servers, tells of no board."""
    torch = best.get("torch")
    named = any(
        word in best[key][2].lower()
        for key in ("gpu", "machine", "platform", "os")
        if key in best
        for word in ("jetson", "orin", "xavier", "thor", "aarch64", "arm64", "tegra")
    )
    if torch is not None and not named and "jetpack" not in best and _OF_INDEX.match(torch[2]):
        best.pop("flag:jetson", None)


#: Words of a text in which Python loads the torch.
_OF_PYTHON = (".cpython-", ".abi3.so", "-packages/", "importerror", "import torch")


def _of_libtorch(best: dict[str, tuple[int, int, str]], places: Places) -> None:
    """The C++ download is the torch of a program of one's own; Python loads another one."""
    if any(places(word) for word in _OF_PYTHON):
        return
    for key, of_torch in (("libtorch", "torch"), ("libtorch_abi", "cxx11_abi")):
        told = best.pop(key, None)
        if told is not None and (of_torch not in best or told[:2] < best[of_torch][:2]):
            best[of_torch] = told


def _in_prose(
    rule: Rule, line: Line, words: str, offer: Callable[[str, int, int, str], None]
) -> None:
    """The versions that a sentence names as there: a whole one says more than "torch 2.8"."""
    for match in itertools.islice(rule.pattern.finditer(words), 20):
        text = match[1].strip(" .,;'\"`*|")
        if "(" not in text:
            text = text.rstrip(")")
        asked = _ASKED.search(words, max(0, match.start() - 40), match.start())
        if rule.key == "torch" and of_a_file(words, match.start()):
            offer("file_torch", PROSE, line.number, text)
            continue
        if rule.key == "torch" and (asked or is_cure(words, match.start(), match.end(1))):
            continue
        if rule.key in ("torch", "cuda") and is_past(words, match.start(), match.end(1)):
            continue
        if rule.key == "cuda" and _of_driver(words, match):
            continue
        if rule.key in ("jetpack", "gpu") and is_absent(words, match.start()):
            continue
        if rule.key == "gpu_family" and not is_at_hand(words, match.start(1)):
            continue
        if text and not _REQUIRED.match(words, match.end()):
            whole = rule.key != "torch" or text.count(".") > 1
            sort = PROSE if whole else LOOSE
            if _ANOTHER.search(words[max(0, match.start() - 40) : match.start()]):
                sort = LOOSE + 1
            text = rule.convert(text) if rule.convert else text
            text += _local_part(rule.key, text, words, match.end())
            offer(rule.key, sort, line.number, text.removesuffix("+cuda"))


def _local_part(key: str, text: str, words: str, end: int) -> str:
    """The CUDA that stands apart from torch's version."""
    apart = _APART.match(words, end) if key == "torch" and "+" not in text else None
    if apart is None:
        return ""
    return f"+cu{apart[1] or apart[3]}{apart[2] or apart[4]}"


#: "2.0.1 + cu11.8", "2.6 cu126", "2.6_cu126": as people write 2.0.1+cu118. The second form is
#: the build string of conda's packages of torch, "2.1.2 py3.10_cuda12.1_cudnn8.9.2_0".
_APART = lazily(
    r"(?:\s?\+\s?|\s\(?|[-_])?cu(\d{2})\.?(\d)(?![\d.])"
    r"|[\s=]{1,12}py3[\d.]{1,3}_cuda(\d{2})\.(\d)_"
)
#: "2.1.0+cuda118", as people write 2.1.0+cu118.
_SPELT_OUT = lazily(r"\+cuda(?=\d{3}$)")
#: "PyTorch (12.1)" is the CUDA that a torch was built with.
_TORCH = lazily(r"[0-3]\.\d")
#: What follows a version that is asked for, not there: "CUDA 11.6 and above", "torch 2.0+".
_REQUIRED = lazily(
    r"(?<!torch\d\.\d)(?<!torch\d\.\d\d)\s(?:wheels?|binar(?:y|ies))\b|\+(?![\w.]|\s?cu(?:da|\d))|\s\+(?!\s?\w)|\s?(?:及?以上|이상)|\s?\(?(?:and|or)\s(?:above|newer|later|higher|greater|up)\b",
    re.IGNORECASE,
)
#: What stands before a version that is spoken of, and is not the one that fails.
_ANOTHER = lazily(
    r"(?:\bwork(?:s|ed|ing)?(?: fine| well)? (?:with|on|in|under|for)"
    r"|\b(?:up|down)grad(?:e|ed|ing) to|\binstead of|\banother environment with"
    r"|\b(?:built|compiled|made) (?:for|with|against))\s{1,3}$",
    re.IGNORECASE,
)
#: What stands before a version that something asks for: "xformers 0.0.26 requires torch==2.3.0".
_ASKED = lazily(
    r"\b(?:ask(?:s|ing)?(?: for)?|requir(?:es?|ing)|needs?|expects?|wants?|pins?|depends on"
    r"|replac(?:e|ed|ing)|upgraded from)"
    r"\s{1,3}['\"`]?\Z",
    re.IGNORECASE,
)
#: "TPU has started up successfully with version pytorch-1.9" is the software of the TPU.
_OF_TPU = lazily(r"\bTPU\b.{0,60}\bversion ['\"`]?\Z")
#: What stands before the CUDA version that a driver runs up to: no toolkit is of it.
_OF_DRIVER = lazily(
    r"(?:(?P<banner>driver version\W{0,4}[\d.]{3,12}\W{1,40})|nvidia-smi[^.;\n]{0,24})\Z",
    re.IGNORECASE,
)


def _of_driver(words: str, match: re.Match[str]) -> bool:
    found = _OF_DRIVER.search(words[max(0, match.start() - 60) : match.start()])
    return found is not None and (not found["banner"] or "version" in match[0].lower())


_REPL = lazily(r">>>|In \[\d{1,5}\]|print\(|python3? -c")


def _on_next_line(rule: Rule, line: Line) -> re.Match[str] | None:
    """The answer below a question: ``>>> torch.__version__`` and ``'2.3.0'``."""
    if rule.sort != REPORT or not ("." in rule.sign or "_" in rule.sign):
        return None
    if not (
        _REPL.search(line.body) or line.lower.endswith((rule.sign, rule.sign + ")", "()", "())"))
    ):
        return None
    for below in line.below(1):
        answer = _answer_to(rule.sign, line.lower, below.body.split("]:")[-1].strip())
        return rule.pattern.search(f"{line.body.rstrip()} {answer}") or rule.pattern.search(
            f"{rule.sign}: {answer}"
        )
    return None


def _answer_to(sign: str, question: str, answer: str) -> str:
    """Which of several answers is that to a question: ``print(a, b)`` prints two."""
    asked = question.rpartition("print(")[2].replace(")", "").split(",")
    given = [part.strip("'\"(),") for part in answer.split()]
    if len(asked) == len(given) and len(asked) > 1:
        return next((text for ask, text in zip(asked, given, strict=True) if sign in ask), "")
    return answer.strip("'\"() ")


#: What print(torch.version.cuda) and one more line leave behind, below torch's own version.
_PRINTED = lazily(
    r"\n[ \t]{0,8}(?P<cuda>(?:9|1[0-3])\.\d)[ \t]{0,8}\n"
    r"[ \t]{0,8}(?:[789]\d{3}|9\d{4}|True|False)[ \t]{0,8}(?:\n|$)"
)


def _printed(source: Source, offer: Callable[[str, int, int, str], None]) -> None:
    """Three lines of bare values: torch, its CUDA, and cuDNN's number or whether CUDA is there."""
    for match in itertools.islice(_PRINTED.finditer(source.text), 20):
        line = source.line_at(max(0, match.start() - 1))
        torch = line.body.strip()
        if not re.fullmatch(VERSION, torch):
            continue
        cuda = match["cuda"]
        local = "" if "+" in torch else f"+{cuda_label(cuda)}"
        offer("torch", BANNER, line.number, torch + local)
        offer("torch_cuda", BANNER, line.number, cuda)
        return


_NVIDIA = lazily(
    r"(?<![\w./-])nvidia[-_](?P<name>[a-z]{2,12}(?:[-_][a-z]{2,12}){0,2}[-_]cu1[1-9])"
    rf"(?:\s?==\s?|\s{{1,60}}|-|\s\()(?P<version>{VERSION})",
    re.IGNORECASE,
)


def _nvidia_wheels(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """NVIDIA's wheels for one CUDA major version, which all have such names."""
    for sign in ("nvidia-", "nvidia_"):
        for place in places(sign)[:PER_SIGN]:
            line = source.line_at(place)
            match = _NVIDIA.match(line.raw, max(0, place - line.start))
            if match is not None:
                sort = _listing(line, match)
                if sort == PROSE and _REQUIRED.match(match.string, match.end()):
                    continue
                key = f"pkg:nvidia-{match['name'].lower().replace('_', '-')}"
                offer(key, sort, line.number, match["version"].rstrip("."))


def _packages(source: Source, places: Places, offer: Callable[[str, int, int, str], None]) -> None:
    for package in PACKAGES:
        spellings = (package, package.replace("-", "_"), *ALSO.get(package, ()))
        for spelling in dict.fromkeys(spellings):  # in one order always
            found = places(spelling)[:PER_SIGN]
            if any(stands_alone(source.text, place, spelling) for place in found[:20]):
                offer(f"named:{package}", LOOSE, 0, package)
            for place in found:
                line = source.line_at(place)
                for match in versions_behind(line, place, spelling):
                    key = "torch" if package in ("torch", "pytorch") else f"pkg:{package}"
                    sort = _listing(line, match)
                    needed = _REQUIRED.match(match.string, match.end())
                    own = key != "torch" and is_own_wheel(match)  # "torch 2.8 wheel": one for it
                    if needed and sort == PROSE and not own:
                        continue
                    if _ASKED.search(match.string, max(0, match.start() - 40), match.start()):
                        continue
                    if is_past(match.string, match.start(), match.end()):
                        continue
                    if key == "torch" and _OF_TPU.search(match.string[: match.start()][-90:]):
                        continue
                    if key == "torch" and of_a_file(match.string, match.start()):
                        offer("file_torch", PROSE, line.number, match["version"].rstrip("."))
                        continue
                    if is_cure(match.string, match.start(), match.end()):
                        if put_it_right(match.string, match.start(), match.end()):
                            told = match["version"].rstrip(".")
                            offer(f"cure:{package}", sort, line.number, told)
                        continue
                    text = match["version"].rstrip(".")
                    if sort == PROSE and key == "torch":
                        before = match.string[max(0, match.start() - 40) : match.start()]
                        sort = LOOSE + 1 if _ANOTHER.search(before) else sort
                    text += _local_part(key, text, match.string, match.end())
                    offer(key, sort, line.number, text)


def _listing(line: Line, match: re.Match[str]) -> int:
    if line.lower.startswith(("successfully installed", "using cached", "downloading")):
        return FETCHED
    if line.lower.startswith("version: ") or "==" in match[0]:
        return LISTED
    if re.match(r"[\w-]{2,40}(?:\s{2,60}\d|\s\d[\w.+]{2,40}\s{0,9}$)", line.body):
        return LISTED
    if ".whl" in line.lower:
        return BANNER
    return PROSE
