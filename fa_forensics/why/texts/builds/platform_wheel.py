"""A wheel that pip or uv refuses because it is for another system, processor or Python."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import in_wsl, on_windows
from fa_forensics.why.texts.clues import package_in

NO_FILE = "FA887"

_PLATFORM = lazily(r"-(?P<tag>(?:manylinux|musllinux|linux|win|macosx)[\w.]{1,80})\.whl$")
_SHOW = "'import sys, platform; print(sys.version, platform.platform())'"
_WORDS = {"linux": "Linux", "win": "Windows", "macos": "macOS"}


def other_system(seen: Seen, name: str) -> Answer | None:
    """A wheel for another system than the text's; None where the two are the same, or not told."""
    tag = _PLATFORM.search(name)
    detail = seen.mention.detail
    made = _system_of(tag["tag"] if tag else detail.get("for", ""))
    here = _system_of(detail.get("here", "")) or _told(seen)
    if not made or not here or made == here:
        return None
    package = package_in(seen) or detail.get("package") or None
    who = "uv" if detail.get("by") == "uv" else "pip"
    what = name or f"every wheel of {package or 'that release'}"
    cause = (
        f"{who} refuses {what} by the tags in its name: it is for {_WORDS[made]}, and "
        f"{_WORDS[here]} is what runs here. Its Python, torch and CUDA are not looked at before "
        f"that. Renaming it, or forcing it in, changes the name, not the code "
        "inside."
    )
    sure = here != "win" or "flag:wsl" not in seen.versions  # WSL may be where pip ran
    return seen.answer(
        "wrong-machine", NO_FILE, cause, owner=package, direction="none",
        confidence="high" if sure else "medium",
        help=(seen.python + " -c " + _SHOW.replace("'", '"' if here == "win" else "'"),),
        notes=_ways(package, here),
    )  # fmt: skip


def _ways(package: str | None, here: str) -> tuple[str, ...]:
    """Where a build for the system that runs comes from."""
    name = package or "the package"
    if here == "win" and package == "flash-attn":
        # The releases of Dao-AILab/flash-attention have files for Linux alone.
        return (
            "flash-attn's own releases have wheels for Linux alone. Three ways: a win_amd64 wheel "
            "that somebody else built, for the same Python, torch and CUDA (its name has all "
            "three); a build from source on Windows (the CUDA toolkit of torch's major version, "
            "Visual Studio's C++ tools, hours of time); or the Linux wheel in WSL 2, with the "
            "Python and torch of that Linux.",
            "A program that installs it by itself (an installer, a node of ComfyUI) chose the "
            "address: install the wheel for Windows before it runs, or switch flash-attn off "
            "there.",
        )
    if here == "win":
        return (
            f"Three ways: a wheel of {name} for Windows (win_amd64), where its project or somebody "
            "else has one for the same Python, torch and CUDA; a build from source on Windows; or "
            "WSL 2, where the Linux wheel fits.",
        )
    if here == "macos":
        return (
            f"A Mac has no CUDA: a wheel of {name} for macOS exists only where its project has a "
            "build without CUDA. The Linux wheel fits in a Linux system with an NVIDIA GPU.",
        )
    return (
        f"The file of the same release with linux or manylinux in its name is the one, or a build "
        f"of {name} from source here.",
    )


def _system_of(words: str) -> str:
    """``linux``, ``win`` or ``macos`` in a tag or in uv's words; "" for neither."""
    found = re.search(r"(?i)linux|(?<![a-z])win(?:dows|32|_|\b)|mac ?os", words)
    if found is None:
        return ""
    word = found[0].lower()
    return "linux" if word == "linux" else "win" if word.startswith("win") else "macos"


def _told(seen: Seen) -> str:
    """The system that the text is from, by what it says elsewhere; "" where it says nothing."""
    os = seen.versions.get("os", "")
    if in_wsl(seen):
        return "linux"
    if on_windows(seen):
        return "win"
    if "flag:macos-told" in seen.versions or seen.mention.detail.get("os") == "macOS":
        return "macos"
    return _system_of(os) or ("linux" if os else "")
