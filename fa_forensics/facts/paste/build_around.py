"""What stands around the failure of a build: what is installed, for which GPUs, by what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.lines import Line, Places, Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.pip_given import given, is_name, name_of, spoken
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

_INSTALLS = lazily(
    r"\b(?:pip3?|uv|poetry|pdm)\s{1,3}(?:\S{1,20}\s{1,3}){0,2}?(?:install|wheel|sync|add)\b"
    r"|\b(?:installing|installation of|to install|when install)\b|安装|安裝|インストール|설치"
    r"|(?<!no )\b(?:install|installation|build|wheel|setup)[ -](?:failures?|failed|fails|failing"
    r"|errors?|issues?|problems?)\b|\bcan(?:not|'t) install\b|\b(?:fail(?:s|ed|ing|ure)?|unable) "
    r"to (?:install|build)\b|\b(?:install|build)ed? [\w.-]{3,40} (?:fails|failed)\b",
    re.IGNORECASE,
)
_COMMAND = lazily(
    r"\b(?:install|add)\s(?:-\S{1,40}\s|\d\S{0,10}\s)*['\"]?(?P<package>[A-Za-z][\w.-]{1,60})"
)
#: Words that say that the import of something installed fails, and not its installation.
_RUNS = lazily(r"\bimport(?:ing|s)? (?!error)[a-z_]|\bpython3? (?!-m pip|setup\.py)\S{1,80}\.py")


@lru_cache(maxsize=1)
def _known() -> dict[str, str]:
    """(the name in plain letters, the distribution) of packages that are built from source."""
    rows = read_table("packages.json")["packages"]
    known: dict[str, str] = {}
    for row in rows:
        if row["source_build"]:
            for name in (row["distribution"], row["import"].split(".")[0]):
                known.setdefault(normalized(name), row["distribution"])
    return known


def _distribution(name: str) -> str | None:
    """The distribution of such a package, by its name or its module's, in any spelling."""
    return _known().get(normalized(name).strip("-"))


def _named(text: str) -> str | None:
    """A package that is compiled against torch, by its name in a line."""
    for word in re.findall(r"[A-Za-z][\w.-]{2,60}", text):
        if (name := _distribution(word)) is not None:
            return name
    return None


def being_installed(mention: Mention, source: Source) -> dict[str, str] | None:
    """What is installed where torch is missing, as the line itself or those near it tell.

    None where nobody says that something is installed, or where something runs.
    """
    place = _place_of(mention, source)
    if place is None:
        return None
    line = source.line_at(place)
    near = [line.body, *(one.body for one in line.above(6)), *(one.body for one in line.below(3))]
    if not mention.detail.get("frame") and any(_RUNS.search(text) for text in near):
        return None
    if any(re.search(r"setup\.py\s{1,3}(?:install|develop|build|bdist)", text) for text in near):
        return None  # no pip, so no environment of its own
    installs = [text for text in near if _INSTALLS.search(text)]
    if not installs:
        return None
    claimed = any(_CLAIMED.search(text) for text in near)
    typed = next((one for text in installs if (one := given(text))), "")
    if typed and not is_name(typed):
        last = name_of(typed)
        told = {"package": _distribution(last) or last} if last else {}
        return {**told, "typed": typed, "guess": "yes"}
    package = next((name for text in installs if (name := _named(text))), None)
    if package is None:
        told_name = re.split(r"[\[=<>~!]", typed)[0]
        told_name = told_name or next((one for text in installs if (one := spoken(text))), "")
        if told_name and "torch" not in told_name.lower().split("-"):
            return {"package": told_name, "guess": "yes"}
        return {"guess": "yes"} if claimed else None
    return {"package": package}


def says_installed(mention: Mention, source: Source) -> bool:
    """Whether the text says, at the message, that torch is installed."""
    place = _place_of(mention, source)
    if place is None:
        return False
    line = source.line_at(place)
    near = (line.body, *(one.body for one in (*line.above(2), *line.below(3))))
    return any(_CLAIMED.search(text) for text in near)


#: "even though I installed torch already", "torch is already installed".
_CLAIMED = lazily(
    r"\b(?:even though|although|despite)\b[^.\n]{0,60}\b(?:py)?torch\b"
    r"|\balready (?:have |installed? |had )?(?:the )?(?:py)?torch\b"
    r"|\b(?:have|had|installed) (?:py)?torch(?: [\w.+]{1,20})? (?:already|installed)\b"
    r"|(?<!if )(?<!that )(?<!sure )(?<!whether )\b(?:py)?torch(?: [\w.+]{1,20})? "
    r"(?:is|was|has been) (?:already |correctly |properly |successfully |indeed )?installed\b",
    re.IGNORECASE,
)


def without_isolation(mention: Mention, source: Source, places: Places) -> bool:
    """Whether a pip command above the failure says --no-build-isolation."""
    if places("pip-build-env"):
        return False
    own = _place_of(mention, source) or 0
    for place in places("--no-build-isolation")[:20]:
        if place < own and _COMMAND.search(source.line_at(place).body):
            return True
    return False


def _place_of(mention: Mention, source: Source) -> int | None:
    found = source.text.find(mention.line[:300])
    return found if found >= 0 else None


_AMD = lazily(
    r"\brocm[ -]?\d|[= ]rocm\b|/opt/rocm|\+rocm\d|\bInstinct\b|\bRadeon\b|\bMI\d{2,3}[AX]?\b"
    r"|\bgfx\d{3,4}\b|variant[ =]rocm|\bhipcc\b",
    re.IGNORECASE,
)
#: Answered with a command that builds, for which the name of the package counts.
_TO_BUILD = frozenset(
    ("build-cuda-mismatch", "cuda-home-missing", "cuda-too-old-to-build", "out-of-memory-build",
     "compiler-crashed", "jit-build-failed", "gcc-unsupported", "no-target", "cmake-stopped",
     "setup-tool", "torch-cpu-in-build", "source-error", "header-not-included", "cxx-standard",
     "torch-name-missing", "host-headers", "feature-needs-target", "linker-refuses",
     "arch-unsupported-by-nvcc", "built-without-cuda")
)  # fmt: skip
#: Where texts say what is built or installed, and the name that follows or goes before.
_SAYS = ("build", "install", "compil", "github.com/")
_BUILDS = lazily(
    r"\b(?:(?:re)?build(?:ing)?|compil(?:e|ing|ation)|install(?:ing|ation)?)\b"
    r"(?:\s(?:wheels?\sfor|editable\sfor|of|the|a|from\ssource|-\S{1,40}|\.|package|extension))"
    r"{0,5}\s['\"`]?(?P<behind>[A-Za-z][\w-]{1,60})"
    r"|\b(?P<before>[A-Za-z][\w-]{1,60})\s(?:JIT\s)?(?:build|compil|wheel|install)"
    r"|github\.com/[\w.-]{1,60}/(?P<project>[A-Za-z][\w-]{1,60})",
    re.IGNORECASE,
)
_EDITABLE = lazily(
    r"\binstall(?:\s-\S{1,40}){0,5}\s(?:-e|--editable)\s['\"]?\.(?![\w/.])|setup\.py develop"
)
_HOME = lazily(r"CUDA_HOME\s?[=:]\s?['\"]?(?P<value>[^\s'\"]{0,200})")
#: What is answered otherwise where CUDA_HOME is a list of directories.
_OF_A_HOME = frozenset(("jit-build-failed", "cuda-home-missing"))


def around_of(mention: Mention, source: Source, places: Places) -> Mention:
    """A failure of a build, with what is built, AMD's GPUs and a CUDA_HOME that is no directory."""
    if mention.what not in _TO_BUILD:
        return mention
    told = _told_package(mention, source, places)
    if mention.what not in _OF_A_HOME:
        return replace(mention, detail={**mention.detail, **told}) if told else mention
    if mention.what == "cuda-home-missing":
        for text in _lines(source, places, ("rocm", "instinct", "radeon", "mi300", "mi250", "gfx")):
            if _AMD.search(text) and "N/A" not in text:
                told["amd"] = "yes"
                break
    for text in _lines(source, places, ("cuda_home",)):
        found = _HOME.search(text)
        if found is not None and _is_list(found["value"]):
            told["home"] = found["value"]
            break
    return replace(mention, detail={**mention.detail, **told}) if told else mention


def packages_near(line: Line, spoken: bool = True) -> str:
    """The package whose files, or whose name, stand nearest above a line, or below it; "".

    Without ``spoken`` a name in a sentence does not count.
    """
    for near in (line, *line.above(20), *line.below(6)):
        for found in re.finditer(r"[/\\](?P<top>[A-Za-z]\w{2,40})(?=[/\\])", near.body):
            if (known := _distribution(found["top"])) is not None:
                return known
        if spoken and (name := _named(near.body)) is not None:
            return name
    return ""


#: How pip and setup.py say that they are done: ``Successfully installed groundingdino-0.1.0``.
_DONE = lazily(
    r"(?:Successfully installed|Finished processing dependencies for)\s"
    r"(?P<package>[A-Za-z][\w.-]{1,60}?)(?:-|==)\d[\w.+!]{0,40}\s{0,4}$"
)


def package_above(line: Line) -> str:
    """The one package with compiled code that was installed, or is imported, above a line; ""."""
    imported: set[str] = set()
    for near in line.above(20):
        found = _DONE.search(near.body) if near.body else None
        if found is not None:
            return _distribution(found["package"]) or ""
        asked = _IMPORTS.match(near.body)
        if asked is not None and (known := _distribution(asked["top"])) is not None:
            imported.add(known)
    return imported.pop() if len(imported) == 1 else ""


#: ``from groundingdino.util.inference import load_model``, alone in its line.
_IMPORTS = lazily(
    r"(?:>>> )?(?:from|import) (?P<top>[A-Za-z]\w{1,60})(?![\w-])"
    r"(?:[.\w]{0,100} import |[.\w]{0,100}(?: as \w{1,40})?\s*$)"
)


def _told_package(mention: Mention, source: Source, places: Places) -> dict[str, str]:
    """The one package with compiled code that a text says is built, where the failure names none.

    And whether pip builds it from the source directory that it runs in.
    """
    names: dict[str, None] = {}
    editable = False
    for text in _lines(source, places, _SAYS):
        editable = editable or _EDITABLE.search(text) is not None
        for found in _BUILDS.finditer(text):
            known = _distribution(found["behind"] or found["before"] or found["project"])
            if known is not None:
                names[known] = None
    told = {"editable": "yes"} if editable and not mention.detail.get("editable") else {}
    if len(names) == 1 and not mention.detail.get("package"):
        told["package"] = next(iter(names))
    return told


def _lines(source: Source, places: Places, words: Sequence[str]) -> Iterator[str]:
    for word in words:
        for place in places(word)[:20]:
            line = source.line_at(place)
            at = place - line.start
            yield line.raw[max(0, at - 200) : at + 300]


def _is_list(value: str) -> bool:
    """``:/usr/local/cuda-9.0``, ``/usr/local/cuda:/opt/cuda``: a colon where a path has none."""
    plain = re.sub(r"^[A-Za-z]:(?=[\\/])|://", "", value)
    return ":" in plain and "/" in plain and "$PATH" not in plain
