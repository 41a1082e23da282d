"""What a log of pip tells of a build: which torch it was built with, and whether one was there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.build_around import (
    around_of,
    being_installed,
    says_installed,
    without_isolation,
)
from fa_forensics.facts.paste.build_torch import GONE, source_named
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.version_forms import VERSION
from fa_forensics.patterns import lazily

#: Words of pip and setuptools while they build a package.
BUILDING = (
    "getting requirements to build wheel", "get_requires_for_build", "preparing metadata",
    "prepare_metadata_for_build", "metadata-generation-failed", "subprocess-exited-with-error",
    "setup.py egg_info", "egg_info did not run", "bdist_wheel", "building wheel for",
    "installing build dependencies", "pip-build-env", "build_editable", "build_meta",
    "as a build dependency", "builds-v0", "build backend", "failed to prepare distributions",
    "failed to fetch wheel", "failed to download and build `", "failed to build `",
    "chefbuilderror", "backend subprocess exited",
)  # fmt: skip
#: Words that uv alone says, and what people call when they use it.
_OF_UV = ("builds-v0", "call to `", "\u00d7 failed to build", "\u00d7 failed to download and build",
          "build backend returned", "build backend failed", "uv pip", "uv sync",
          "uv add", "failed to prepare distributions", "as a build dependency")  # fmt: skip
_OF_POETRY = ("chefbuilderror", "poetry add", "poetry install", "pypoetry")
#: Words of pip while it fetches what a build asks for, apart from what is installed.
ISOLATED = ("installing build dependencies", "install build dependencies", "pip-build-env")
_TAKEN = lazily(
    rf"(?:Using cached|Downloading|Collecting|Successfully installed)\s[^\n]{{0,2000}}?"
    rf"(?<![\w.-])torch(?:==|-)(?P<version>{VERSION})",
    re.IGNORECASE,
)
_PACKAGE = lazily(
    r"(?:Building wheel for|Failed to (?:download and )?build|Failed to fetch wheel:|Collecting"
    r"|\u2022 Installing|error likely indicates that)\s+"
    r"['\"`]?([A-Za-z][\w.-]{1,60})(?!\w*[+:])"
)


def is_build(places: Places) -> bool:
    """Whether a package is being built in this text."""
    return any(places(word) for word in BUILDING)


def isolation(source: Source, places: Places) -> tuple[Mention, ...]:
    """The torch that pip took into an isolated build."""
    start = min((place for word in ISOLATED for place in places(word)), default=None)
    if start is None:
        return ()
    for place in sorted({p for word in ("torch-", "torch==") for p in places(word)}):
        line = source.line_at(place)
        match = _TAKEN.search(line.body)
        if match is not None and place > start:
            detail = {"torch": match["version"]}
            return (line.mention("build-isolation", match.start(), detail=detail),)
    return ()


#: setup.py of a package that pip unpacked to build it.
_UNPACKED = lazily(
    r"/(?:pip-install-|pip-req-build-|build-via-sdist-|pip-wheel-)\w{1,40}/(?:(?P<package>"
    r"[A-Za-z][\w.-]{0,60}?)_[0-9a-f]{8,40}/)?(?:[^\s\"']{0,200}/)?setup\.py"
)


def _by_its_path(mention: Mention) -> Mention:
    """A module that is missing in the setup.py of what pip unpacked."""
    found = _UNPACKED.search(mention.detail.get("frame", "")) if mention.detail else None
    if mention.what != "no-module" or found is None:
        return mention
    what = "torch-missing-in-build" if mention.detail["module"] == "torch" else mention.what
    package = {"package": found["package"]} if found["package"] else {}
    return replace(mention, what=what, detail={**mention.detail, "build": "yes", **package})


#: What is answered with commands of a shell, so that it matters which system has it.
_OF_A_SHELL = frozenset(
    ("torch-missing-in-build", "no-module", "cuda-home-missing", "build-cuda-mismatch",
     "cuda-too-old-to-build", "out-of-memory-build", "compiler-crashed", "jit-build-failed")
)  # fmt: skip
_DRIVE = lazily(r"(?<![A-Za-z])[A-Za-z]:\\{1,2}\w")


def _of_windows(source: Source, places: Places) -> bool:
    """Whether one of the first paths in a text is of Windows."""
    for place in places(":\\")[:40]:
        if _DRIVE.search(source.text[max(0, place - 2) : place + 5]):
            return True
    return False


def _of_unpacked(mentions: Sequence[Mention], source: Source, places: Places) -> list[Mention]:
    """Builds that stopped, with the one package whose sources pip unpacked in the text."""
    stopped = [m for m in mentions if m.what in _OF_A_SHELL and m.what != "no-module"]
    if not stopped:
        return list(mentions)
    lines = (source.line_at(place).body for place in places("pip-install-")[:20])
    found = (_UNPACKED.search(body.replace("\\", "/")) for body in lines)
    named = {one["package"] for one in found if one is not None and one["package"]}
    if len(named) != 1:
        return list(mentions)
    told = {"package": named.pop(), "building": "yes"}
    return [replace(m, detail={**told, **m.detail}) if m in stopped else m for m in mentions]


def in_builds(mentions: Sequence[Mention], source: Source, places: Places) -> list[Mention]:
    """The mentions, with modules that a build does not find and Windows told as such."""
    found = [_asked_for(m, source, places) for m in _of_builds(mentions, source, places)]
    found = [around_of(m, source, places) for m in found]
    found = _of_unpacked(found, source, places)
    if not any(m.what in _OF_A_SHELL for m in found) or not _of_windows(source, places):
        return found
    return [
        replace(m, detail={"os": "Windows", **m.detail}) if m.what in _OF_A_SHELL else m
        for m in found
    ]


def _asked_for(mention: Mention, source: Source, places: Places) -> Mention:
    """torch that is missing where somebody says that a package is being installed."""
    if mention.what == "torch-missing-in-build" and without_isolation(mention, source, places):
        return replace(mention, detail={**mention.detail, "no_isolation": "yes"})
    if mention.what != "no-module" or mention.detail.get("module") != "torch":
        return mention
    if mention.detail.get("looked_for") or not _OF_A_BUILD.search(mention.detail.get("frame", "")):
        return mention
    told = being_installed(mention, source)
    if told is None:
        claimed = {"claimed": "yes"} if says_installed(mention, source) else {}
        return replace(mention, detail={**mention.detail, **claimed})
    tool = _tool(places)
    detail = {**mention.detail, "build": "yes", **told, **({"tool": tool} if tool else {})}
    if without_isolation(mention, source, places):
        detail["no_isolation"] = "yes"
    return replace(mention, what="torch-missing-in-build", detail=detail)


def _tool(places: Places) -> str:
    """Who builds, where it is not pip: ``uv`` or ``poetry``."""
    if any(places(word) for word in _OF_UV):
        return "uv"
    return "poetry" if any(places(word) for word in _OF_POETRY) else ""


#: The step of a traceback that a build has, or none.
_OF_A_BUILD = lazily(r"^$|(?:^|/)setup\.py$|^<string>$|build_meta\.py$|\.toml$")


#: ``Processing /home/u/diff-gaussian-rasterization``: pip builds the package of a directory.
_PROCESSING = lazily(r"^Processing (?P<path>/[^\s'\"]{2,300})(?<!\.whl)(?<!\.gz)(?<!\.zip)$")


def _directory(source: Source, places: Places) -> str:
    """The last directory that pip says it builds from, as an address; "" for none."""
    bodies = (source.line_at(place).body.strip() for place in places("processing /")[:20])
    found = [match["path"] for body in bodies if (match := _PROCESSING.match(body)) is not None]
    return f"file://{found[-1]}" if found and not GONE.search(found[-1]) else ""


def _of_builds(mentions: Sequence[Mention], source: Source, places: Places) -> list[Mention]:
    if not is_build(places):
        return [_by_its_path(mention) for mention in mentions]
    package = source_of = ""
    tool = _tool(places)
    for word in ("building wheel for", "failed to build", "failed to download and build",
                 "failed to fetch wheel", "collecting ", "likely indicates that",
                 "\u2022 installing"):  # fmt: skip
        for place in places(word):
            body = source.line_at(place).body
            match = _PACKAGE.search(body)
            if match and not package:
                package = match[1]
            if match and not source_of and normalized(match[1]) == normalized(package):
                source_of = source_named(body, package)
    source_of = source_of or ("" if package else _directory(source, places))
    found = []
    for mention in mentions:
        if mention.what == "no-module":
            what = "torch-missing-in-build" if mention.detail["module"] == "torch" else mention.what
            near = {} if package else being_installed(mention, source) or {}
            told = {
                key: text
                for key, text in (("package", package), ("tool", tool), ("source", source_of))
                if text
            }
            detail = {**mention.detail, "build": "yes", **near, **told}
            mention = replace(mention, what=what, detail=detail)
        found.append(mention)
    return found
