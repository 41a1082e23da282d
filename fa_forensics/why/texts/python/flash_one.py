"""``flash_attn_cuda``: the compiled module of flash-attn 1.x, which no 2.x has.

1.x has ``import flash_attn_cuda`` in flash_attn/flash_attn_interface.py, 2.x has
``import flash_attn_2_cuda as flash_attn_cuda`` there; 2.0 renamed the functions too (its README).
"""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.files.other_tag import files_here

MODULE = "flash_attn_cuda"


def module_of_first(seen: Seen) -> Answer | None:
    """Who asks for the module of 1.x; None where 1.x is installed, or the file is there."""
    version = version_of(seen, "flash-attn") or ""
    if version.startswith(("0.", "1.")) or files_here(seen, MODULE):
        return None
    there = f"flash-attn {version} is installed" if version else "a flash-attn 2.x is installed"
    cause = (
        "flash_attn_cuda is the compiled module of flash-attn 1.x; that of 2.x is called "
        f"flash_attn_2_cuda. Most likely {there}, and what asks for the old name is code that was "
        "written for 1.x, or .py files of 1.x that are left in the directory flash_attn. To build "
        "2.x again does not bring this module."
    )
    if not version:
        cause += " Where no flash-attn is installed at all, the code still wants 1.x."
    return seen.answer(
        "api-change", "FA881", cause, owner="flash-attn", direction="older",
        confidence="high" if version.startswith("2.") else "medium",
        help=(
            *_who_asks(seen),
            f"{seen.pip} uninstall -y flash-attn",
        ),
        notes=(
            "The second command shows who asks. A file of flash_attn itself: uninstall until pip "
            "finds no flash-attn, remove what is left of site-packages/flash_attn, and install one "
            "release once. Another package: a newer release of it, one that is written for "
            "flash-attn 2.",
            'Code that cannot be changed needs "flash-attn<2" (1.0.9 is the last one), on a torch '
            "and CUDA of its time. In 2.x flash_attn_unpadded_func is flash_attn_varlen_func.",
        ),
    )  # fmt: skip


def _who_asks(seen: Seen) -> tuple[str, str]:
    """Which flash-attn is there, and which files below this directory want the module of 1.x."""
    if on_windows(seen):
        return f"{seen.pip} list | findstr /i flash", " ".join(
            ("findstr", "/s", "/n", MODULE, "*.py")
        )
    return (
        f"{seen.pip} list | grep -i flash",
        "grep -rnE 'import flash_attn_cuda|from flash_attn_cuda' --include='*.py' . "
        f"$({seen.python} -c 'import importlib.util as u; s = "
        'u.find_spec("flash_attn"); print(*(s.submodule_search_locations if s else ()))\')',
    )
