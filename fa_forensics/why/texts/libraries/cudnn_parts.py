"""A wheel of cuDNN that lacks one of the parts which its own libraries open by name."""

from __future__ import annotations

from fa_forensics.facts.cuda_names import PartNotBrought, cudnn_part_not_brought
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import brought_by_torch

KIND, CODE = "versioned-symbol", "FA204"
#: Each part with its directory, as the loader takes it.
WHICH_PARTS = "LD_DEBUG=libs python YOUR_SCRIPT.py 2>&1 | grep 'calling init: .*libcudnn'"
_WHEEL = lazily(r"nvidia-cudnn-cu1[23]")


def wheel_without_part(seen: Seen) -> Answer | None:
    """The text's own wheel of cuDNN lacks a part: the loader takes the system's; None for others.

    pytorch/pytorch issues 187824, 188892 and 185512.
    """
    if seen.mention.detail.get("status", "").endswith("LOADING_FAILED"):
        return None
    wheel, version, told = _wheel(seen)
    missing = cudnn_part_not_brought(version)
    if missing is None:
        return None
    system = seen.mention.detail.get("system", "")
    cause = (
        f"{wheel} {version} has no {missing.part}, which its own libraries open by name: wheels of "
        f"cuDNN bring that file since {missing.since} alone. Where the system has a cuDNN of its "
        "own, the loader finds that one's part, and parts of two releases of cuDNN do not go "
        "together."
    )
    if not told:
        cause += " This torch asks for that wheel."
    if system:
        cause += f" The system of the text has cuDNN {system}."
    stem = missing.part.split(".so")[0]
    return seen.answer(
        KIND, CODE, cause, owner="cudnn", direction=UNKNOWN,
        confidence="high" if told else "medium",
        help=(newer_wheel(seen, wheel, missing),
              f"ldconfig -p | grep {stem}; echo $LD_LIBRARY_PATH",
              f"{seen.pip} list | grep -i cudnn",
              WHICH_PARTS),
        notes=(
            "Where torch asks for that very version, pip says so: a newer cuDNN 9 serves torch "
            "too. To install that version again, or torch again, brings the same files.",
            "The other way is the system's cuDNN, which the second command lists: its package is "
            "removed (libcudnn9-cuda-12 or -13 on Debian and Ubuntu), or brought to the wheel's "
            "own release; where it lies in a directory of LD_LIBRARY_PATH, that has to leave it. "
            "The system's own directories are searched without that variable too.",
        ),
    )  # fmt: skip


def newer_wheel(seen: Seen, wheel: str, missing: PartNotBrought) -> str:
    """Install a wheel that has the part, without what torch asks for."""
    first = ".".join(missing.since.split(".")[:2])
    return f'{seen.pip} install --no-deps "{wheel}>={first},<10"'


def perhaps_without_part(seen: Seen) -> tuple[str, ...]:
    """What is said of such a wheel where the text names no version of cuDNN."""
    mismatch = seen.mention.detail.get("status", "") == "SUBLIBRARY_VERSION_MISMATCH"
    if not mismatch or _wheel(seen)[1]:
        return ()
    return (_PERHAPS,)


_PERHAPS = (
    "One wheel of cuDNN, 9.20.0.48, lacks a part that it opens (libcudnn_engines_tensor_ir.so), so "
    'that the system\'s is taken: where pip list shows that one, "nvidia-cudnn-cu13>=9.21,<10" '
    "(or -cu12) is to be installed in its place, with --no-deps, and to install it again changes "
    "nothing."
)


def _wheel(seen: Seen) -> tuple[str, str, bool]:
    """(wheel of cuDNN, its version, whether the text names it); "" for a version not known."""
    told = seen.place.told.wheels if seen.place.told is not None else ()
    for name, version in told:
        if _WHEEL.fullmatch(name):
            return name, version, True
    brought = (brought_by_torch(seen, "libcudnn.so.9") or "").partition("==")
    if brought[2]:
        return brought[0], brought[2], False
    if "tensor_ir" in seen.mention.detail.get("odd", ""):  # one release alone asks for that part
        line = "12" if (seen.torch_cuda or "").startswith("12") else "13"
        return f"nvidia-cudnn-cu{line}", "9.20.0.48", False
    return "", "", False
