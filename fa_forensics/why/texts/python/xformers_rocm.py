"""Answers to xformers of one GPU maker beside a torch of the other."""

from __future__ import annotations

from fa_forensics.facts.python_api import is_older, partner_of, torch_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import inspect_package
from fa_forensics.why.texts.python.pairs import (
    LAST_OF_ONE,
    OF_MANY,
    index_note,
    index_tag,
)

#: ROCm releases of PyTorch's own indexes are X.Y; AMD's own builds have longer numbers.
_OF_PYTORCH = lazily(r"rocm\d{1,2}\.\d{1,2}")


def of_another_maker(seen: Seen, built: str | None, have: str | None) -> Answer | None:
    """CUDA code beside a ROCm torch, or the other way round; None for two of one maker.

    That outranks a difference of releases or of Pythons: no release makes such a file load.
    """
    if not built or not have:
        return None
    tags = [version.partition("+")[2] for version in (built, have)]
    if tags[0].startswith("cu") and tags[1].startswith("rocm"):
        return _on_rocm(seen, built, have, tags[1])
    if tags[0].startswith("rocm") and tags[1].startswith("cu"):
        return _on_cuda(seen, built, have)
    return None


def _on_rocm(seen: Seen, built: str, have: str, tag: str) -> Answer:
    other = built.partition("+")[0] != have.partition("+")[0]
    cause = (
        f"xformers was built for CUDA (torch {built}), and torch {have} is a build for ROCm: the "
        "compiled part of a CUDA build can never load in it, whatever its release."
    )
    if other:
        cause += " That the releases differ too is not what decides."
    helps = [f"{seen.pip} uninstall -y xformers", inspect_package(seen, "xformers")]
    note = (
        "The package index has xformers for CUDA alone, so that installing it again brings the "
        "same kind of file; torch for CUDA in place of this one would take the AMD GPU away."
    )
    notes: tuple[str, ...] = (note,)
    if _OF_PYTORCH.fullmatch(tag):
        pinned, known = _pinned(have)
        if pinned:
            helps.insert(1, f"{seen.pip} install --no-deps {pinned}{index_option(tag)}")
            known = (_FROM_ITS_INDEX, *known, *index_note(tag))
        notes = (note, *known)
    else:
        notes = (
            note,
            "torch's indexes for some ROCm releases have an xformers of their own, each for one "
            "torch and one ROCm; for another ROCm it is compiled from its source, as its page "
            "says.",
        )
    return seen.answer(
        "wrong-torch", "FA602", cause, owner="xformers", direction="none", confidence="high",
        help=tuple(helps),
        notes=(
            "It is a warning: without xformers most programs take torch's own "
            "scaled_dot_product_attention.",
            *notes,
        ),
    )  # fmt: skip


_FROM_ITS_INDEX = (
    "The second command takes xformers from torch's index for that ROCm, where the index has one "
    "for this release of torch."
)


def _pinned(have: str) -> tuple[str, tuple[str, ...]]:
    """(requirement, notes): the xformers for a torch; "" where no release of it is known.

    Without a release and with --no-deps pip takes the newest, which is for another torch.
    """
    release = have.partition("+")[0]
    fitting = partner_of("xformers", release)
    if fitting is not None:
        return f'"xformers=={fitting}"', ()
    if is_older(LAST_OF_ONE, release):
        return f'"xformers>={OF_MANY}"', ()
    return "", (f"No release of xformers is known for torch {release}.",)


def without_kernel(seen: Seen) -> Answer | None:
    """``No operator found``, where the text's torch is one for ROCm; None elsewhere."""
    have, version = seen.torch or "", seen.versions.get("pkg:xformers", "")
    tag = have.partition("+")[2]
    if not tag.startswith("rocm"):
        return None
    which = " ".join(("xformers", version)) if version else "the xformers that is installed"
    release = have.partition("+")[0]
    fitting = partner_of("xformers", release)
    mine = torch_of("xformers", version.partition("+")[0]) if version else ""
    cause = f"torch {have} is a build for ROCm, and {which} has no kernel in it"
    if mine and mine.split(".")[:2] != release.split(".")[:2]:
        cause += f": that release is compiled for torch {mine}, and on the package index for CUDA."
    else:
        cause += ": on the package index it is compiled for CUDA, whose code an AMD GPU cannot run."
    helps = [f"{seen.pip} uninstall -y xformers", f"{seen.python} -m xformers.info"]
    notes = [
        "Without xformers most programs take torch's own scaled_dot_product_attention (ComfyUI: "
        "--use-pytorch-cross-attention).",
    ]
    if _OF_PYTORCH.fullmatch(tag) and fitting:
        pinned = f'"xformers=={fitting}"'
        helps.insert(1, f"{seen.pip} install --no-deps {pinned}{index_option(tag)}")
        notes += [_FROM_ITS_INDEX, *index_note(tag)]
    return seen.answer(
        "wrong-torch", "FA602", cause, owner="xformers", direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _on_cuda(seen: Seen, built: str, have: str) -> Answer:
    tag = index_tag(seen, "xformers", have)
    pinned, known = _pinned(have)
    again = f"{seen.pip} install --no-deps --no-cache-dir {pinned}{index_option(tag)}"
    return seen.answer(
        "wrong-torch", "FA602",
        f"xformers was built for ROCm (torch {built}), and torch {have} is a build for CUDA: the "
        "compiled part of a ROCm build can never load in it, whatever its release.",
        owner="xformers", direction="none", confidence="high",
        help=(f"{seen.pip} uninstall -y xformers",
              *((again,) if pinned else ()),
              inspect_package(seen, "xformers")),
        notes=("On a machine with an AMD GPU it is torch that is the wrong one: the build for "
               "ROCm has to be installed again, from torch's index for it.",
               *known, *(index_note(tag) if pinned else ())),
    )  # fmt: skip
