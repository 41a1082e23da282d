"""Which torch a build saw: that of an isolated environment, one of another CUDA, or none."""

from __future__ import annotations

import re

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.typed_lines import typed
from fa_forensics.patterns import lazily

#: torch in an environment that pip, uv or poetry made for one build alone.
_ISOLATED = lazily(
    r"(?:pip-build-env-\w{1,20}|(?:builds|environments)-v\d{1,2}[\\/]{1,2}\.tmp\w{1,20}"
    r"|[\\/]tmp\w{6,12}[\\/]{1,2}\.venv)[\\/][^\s\"']{1,200}?[\\/]torch[\\/]{1,2}utils"
)
_PAIR = lazily(r"['\"](?P<toolkit>\d{1,2}\.\d{1,2})['\"],\s?['\"](?P<torch>\d{1,2}\.\d{1,2})['\"]")
_RELEASE = lazily(r"compilation tools, release (\d{1,2}\.\d{1,2})", re.IGNORECASE)
_BUILT = lazily(
    r"Failed (?:building (?:wheel|(?P<how>editable)) for|to build)\s+['\"`]?"
    r"(?!installable\b)(?P<package>[A-Za-z][\w.-]{1,60})",
    re.IGNORECASE,
)


#: "name @ file:///home/u/git/name", "git+https://host/owner/name.git (from ...)", as pip and uv
#: write where a package comes from when that is no index.
_SOURCE = lazily(
    r"(?:(?P<name>[A-Za-z][\w.-]{0,60})(?:\[[\w,.-]{1,80}\])?\s?@\s)?"
    r"(?P<source>file://[^`\n]{1,300}(?=`)|(?:file://|git\+\w{2,5}://|\w{4,5}://)[^\s'\"`,;)]{1,300})"
)
_ARCHIVE = lazily(r"\.whl(?:#|$)")
#: Directories of pip, uv and conda-build that are gone after the build.
GONE = lazily(
    r"/pip-(?:req-build|install|ephem\w*)-|/builds-v0/|/feedstock_root/|/conda-bld/|/croot/"
)


def source_named(text: str, package: str) -> str:
    """Where a text has a package from that no index gave: an address or ``file://``; "" for none.

    An address counts by the name before it, by its last part, or where no package is asked for.
    """
    wanted = normalized(package)
    for found in _SOURCE.finditer(text[:2000]):
        source = found["source"]
        if _ARCHIVE.search(source) or GONE.search(source):
            continue
        if not (found["name"] or source.startswith(("git+", "file:"))):
            continue
        last = source.split("#")[0].rstrip("/").rsplit("/", 1)[-1].split("@")[0]
        names = (found["name"] or last.removesuffix(".git"),)
        if not wanted or wanted in map(normalized, names):
            return source
    return ""


def toolkit_mismatch(line: Line, match: re.Match[str]) -> Mention:
    """torch's check of nvcc, with the versions, the environment and the nvcc that the text shows.

    torch breaks the sentence before its own version, which stands on the next line; torch 2.7
    and 2.8 print a tuple in which the versions come behind it.
    """
    texts = (line.body[match.end() :], *(below.body for below in line.below(1)))
    behind = " ".join(texts)
    told = re.search(r"PyTorch \(([\d.]{1,10})\)", behind)
    pair = _PAIR.search(behind)
    toolkit, torch = match["toolkit"] or "", told[1] if told else ""
    if pair is not None and not toolkit:
        toolkit, torch = pair["toolkit"], pair["torch"]
    detail = {"toolkit": toolkit, "torch_cuda": torch, **_environment(line)}
    for near in (*line.below(25), *line.above(25)):
        shown, built = _RELEASE.search(near.body), _BUILT.search(near.body)
        if shown is not None:
            detail.setdefault("nvcc_told", shown[1])
        if built is not None:
            detail.setdefault("package", built["package"])
            if source := source_named(near.body, built["package"]):
                detail.setdefault("source", source)
            detail.setdefault("editable", "yes" if built["how"] else "")
    return line.mention("build-cuda-mismatch", match.start(), detail=detail)


def _environment(line: Line) -> dict[str, str]:
    """``isolated``, where torch's helper ran in an environment of one build, and by whom."""
    for above in line.above(12):
        found = _ISOLATED.search(above.body)
        if found is not None:
            return {"isolated": "pip" if "pip-build-env" in found[0] else "uv"}
        if "cpp_extension.py" in above.body:
            return {}
    return {}


def undeclared(line: Line, match: re.Match[str]) -> Mention | None:
    """uv's hint at a package that imports a module when it is built and does not ask for it."""
    if not match["hint"] and not match["rest"]:
        return None
    package = match["package"]
    if "://" in package:
        package = package.split("://", 1)[1].split("#")[0].split("@")[0].rstrip("/").split("/")[-1]
        package = package.removesuffix(".git")
    package = re.split(r"[@=<>\s]", package)[0]
    detail = {"module": match["module"], "build": "yes", "tool": "uv", "package": package}
    if "://" in match["package"]:
        detail["source"] = source_named(match["package"], "") or match["package"][:200]
    what = "torch-missing-in-build" if match["module"] == "torch" else "no-module"
    return line.mention(what, match.start(), detail=detail)


#: "sudo sh build.sh", "sudo -H pip install flash-attn", with what sudo runs.
_UNDER_SUDO = lazily(
    r"sudo(?: -[EHSn]{1,4}){0,3} (?P<command>(?:(?:ba|z|da)?sh|(?:python|pip)[\d.]{0,4}|make"
    r"|\./[\w./-]{1,60})(?P<words>(?: [\w./=~-]{1,60}){0,6}))"
)
#: A word that is no word of a sentence.
_OF_A_COMMAND = lazily(r"install|develop|build|build_ext|all|clean|-\S+|\S*[./=_-]\S+")
#: What compiles or installs; whatever else sudo ran is not to be typed again.
_A_BUILD = lazily(
    r"(?:python[\d.]{0,4} (?:-\S+ )?-m )?pip[\d.]{0,4} (?:install|wheel)(?: |\Z)"
    r"|python[\d.]{0,4} setup\.py (?:install|develop|build|bdist_wheel)"
    r"|make(?: all| install| -j ?\d{0,3})*\Z"
    r"|(?:(?:ba|z|da)?sh |\./)(?!-)[\w./-]{1,60}\.sh\b"
)
#: An installer of something else, an installation of torch itself, another place to install to.
_NOT_A_BUILD = lazily(
    r"\.(?:run|deb|rpm)\b|\binstall\b.{0,200} (?:py)?torch(?:==\S*)?(?: |\Z)|uninstall"
    r"|--(?:prefix|root|target)\b"
)
#: How many lines of output may stand between a command and its message.
_FAR = 60


def under_sudo(line: Line) -> str:
    """What sudo runs in the command line right above a message; sudo left out, "" for nothing.

    The nearest line with a prompt is the one that gave the message. A line without a prompt
    counts where it begins with sudo and each word is one of a command.
    """
    if "sudo " not in line.source.lower:
        return ""
    for above in line.above(_FAR):
        command, prompted = typed(above.raw)
        if not prompted and not command.startswith("sudo "):
            continue
        found = _UNDER_SUDO.fullmatch(command)
        if found is None or _NOT_A_BUILD.search(found["command"]):
            return ""
        if _A_BUILD.match(found["command"]) is None:
            return ""
        words = found["words"].split()
        if not prompted and not all(map(_OF_A_COMMAND.fullmatch, words)):
            return ""
        return found["command"].strip()
    return ""
