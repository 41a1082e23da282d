"""torchvision's optional image.so, without which the rest of the package works."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.python.pairs import pair_command, pair_notes

#: The error was caught, and the text shows none of it, or one that it prints behind.
HIDDEN = "FA886"

_HARMLESS = (
    "Harmless as long as nothing calls torchvision.io: transforms and datasets read with PIL."
)


_OTHER = (
    "Another torchvision release with its torch, or a build from source with libjpeg and libpng, "
    "brings the file."
)


def _built(seen: Seen, version: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) for a build of a release, which the package index has no source of."""
    command = (
        f"{seen.pip} install --no-build-isolation --no-deps --force-reinstall "
        f"git+https://github.com/pytorch/vision.git@v{version}"
    )
    other = (
        "Another torchvision release, with the torch that goes with it, is the other way: the same "
        "release installed again brings the same wheel."
    )
    if on_windows(seen) or _on_a_mac(seen):
        how = (
            f"Where it is needed, the last command builds torchvision {version} for the torch that "
            "is there, with a C++ compiler and with libjpeg and libpng: their headers have to be "
            "there before."
        )
        return (command,), (_HARMLESS, how, other)
    how = (
        f"Where it is needed, the two last commands build torchvision {version} "
        f"with libjpeg and libpng for the torch that is there."
    )
    return ("sudo apt-get install libjpeg-dev libpng-dev", command), (_HARMLESS, how, other)


def _on_a_mac(seen: Seen) -> bool:
    if "flag:macos-told" in seen.versions or seen.mention.detail.get("os") == "macOS":
        return True
    return "mac" in seen.versions.get("os", "").lower()


def image_library(seen: Seen) -> Answer:
    """``Failed to load image Python extension``: by itself, or with the error behind it."""
    silent = not seen.mention.detail.get("said", "").strip(" :'\".\n")
    cause = (
        "torchvision works; only its optional library image.so, which reads and writes JPEG and "
        "PNG files for torchvision.io, is out of use. "
    )
    gone, wheel = seen.mention.detail.get("gone"), seen.mention.detail.get("wheel", "")
    if silent and gone:
        cause += (
            f"As the text shows, the file is not in {wheel or 'this build'} at all: a fault of "
            "how that one was packed. No release of torch is too old or too new for it."
        )
    elif silent:
        cause += (
            "The warning gives no reason: the file is not in this wheel or build at all, as in "
            "some builds for aarch64 and builds without libjpeg and libpng."
        )
    else:
        cause += "Its own error stands in the warning."
    version = (version_of(seen, "torchvision") or "").partition("+")[0]
    again: tuple[str, ...] = ()
    notes: tuple[str, ...]
    if silent and re.fullmatch(r"\d{1,3}\.\d{1,3}\.\d{1,3}", version):
        again, notes = _built(seen, version)
    elif silent and version:  # a pre-release has no tag in the repository, and is in no table
        notes = (_HARMLESS, _OTHER)
    else:
        again = pair_command(seen, "torchvision")
        notes = (
            *pair_notes(seen, "torchvision"),
            _HARMLESS,
            _OTHER,
        )
    return seen.answer(
        "damaged-file", "FA880" if silent else HIDDEN, cause, owner="torchvision",
        direction="none", confidence="high" if silent else "medium",
        help=(
            f"{seen.python} -c 'import glob, torchvision; "
            'print(torchvision.__version__, glob.glob(torchvision.__path__[0] + "/image*"))\'',
            *again,
        ),
        notes=notes,
    )  # fmt: skip
