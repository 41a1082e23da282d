"""The wheel of flash-attn that a text names: its twin of the other flavour, its own release."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.package import build_tags
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.wheel_matrix import (
    CXX11,
    PACKAGE,
    PRE_CXX11,
    Wanted,
    WheelBuild,
    builds,
    candidates,
)
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, FLAVOUR
from fa_forensics.why.place import Place

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste


def twin_words(name: str, version: str, place: Place) -> str:
    """A sentence with the file name of the same wheel in the other flavour; "" for none known."""
    own = _same(name, version)
    twins = [b for b in own if b.cxx11_abi == _other(version) and not b.mislabelled]
    python = place.told.python if place.told is not None else None
    found = next((b for b in twins if b.python == python), None)
    return "" if found is None else f" That file is {found.file_name}."


def cuda_words(version: str, place: Place) -> str:
    """That two CUDA releases of one major version are not the cause; "" where there are no two."""
    tag = build_tags(version).cuda or ""
    cuda = minor_of(place.requested.cuda or "") if place.requested is not None else ""
    if "." not in tag or not cuda or tag == cuda or tag.split(".")[0] != cuda.split(".")[0]:
        return ""
    return f" That it is for CUDA {tag} and torch for {cuda} is not the cause."


def in_its_release(answer: Answer, name: str, version: str) -> Answer:
    """The answer with the wheel of the release that the text has, in place of a newer one's."""
    released = version.partition("+")[0]
    helps = [*answer.help]
    for at, text in enumerate(helps):
        address = re.search(r"https://\S{1,300}\.whl", text) if name == PACKAGE else None
        typed = _typed((text,)) if address is not None else None
        if address is None or typed is None or typed.release == released:
            continue
        alike = [b for b in builds() if b.release == released and _fits_as(b, typed)]
        alike.sort(key=lambda b: b.cuda != _cuda_tag(version))
        if alike and version not in alike[0].file_name:
            helps[at] = text.replace(address[0], alike[0].url)
    return replace(answer, help=tuple(helps))


def _same(name: str, version: str) -> list[WheelBuild]:
    """The wheels of one release for the torch and CUDA that a version names, in both flavours."""
    tags = build_tags(version)
    if name != PACKAGE or tags.torch is None:
        return []
    released = version.partition("+")[0]
    cuda = _cuda_tag(version)
    return [
        b
        for b in builds()
        if b.release == released and b.torch == minor_of(tags.torch) and b.cuda == cuda
    ]


def _other(version: str) -> str:
    return PRE_CXX11 if build_tags(version).cxx11_abi else CXX11


def _cuda_tag(version: str) -> str:
    found = re.search(r"\+(cu\d{2,3})(?!\d)", version)
    return found[1] if found is not None else ""


def _fits_as(build: WheelBuild, other: WheelBuild) -> bool:
    """Whether a wheel is for the same torch, Python, flavour, machine and major CUDA version."""
    sure = not (build.nightly or build.unlikely or build.mislabelled)
    return sure and all(
        getattr(build, part) == getattr(other, part)
        for part in ("torch", "python", "cxx11_abi", "platform", "cuda_major")
    )


def beside_a_build(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with what stands against a build that it types, and the wheel to take instead."""
    if place.told is None or answer.kind not in DRIFT or not is_torch(answer.owner or ""):
        return answer
    notes = []
    toolkit, cuda = paste.versions.get("cuda", ""), paste.versions.get("torch_cuda", "")
    compiles = any("--no-build-isolation" in text for text in answer.help)
    if compiles and toolkit and cuda and toolkit.split(".")[0] != cuda.split(".")[0]:
        notes.append(
            f"The CUDA toolkit in the text is {toolkit}, and torch's CUDA is {cuda}: torch's build "
            "helper refuses an nvcc of another major version, so the command that compiles needs "
            f"one of CUDA {cuda.split('.')[0]} (CUDA_HOME). A ready-made wheel needs none."
        )
    if name == PACKAGE and not cuda and "+" not in paste.versions.get("torch", ""):
        notes += _for_other_cuda(answer, place)
    if name == PACKAGE and answer.direction == FLAVOUR and not _has_wheel(answer):
        notes += _form(place, cuda)
    return replace(answer, notes=(*answer.notes, *notes)) if notes else answer


_FILE = lazily(r"/(flash_attn-[\w.+-]{1,200}\.whl)")


def _typed(commands: Iterable[str]) -> WheelBuild | None:
    """The wheel that a command types.

    Names are put together for its release alone: the table has thousands of wheels.
    """
    for name in (name for text in commands for name in _FILE.findall(text)):
        alike = (b for b in builds() if f"-{b.release}+" in name)
        found = next((b for b in alike if b.file_name == name), None)
        if found is not None:
            return found
    return None


def _for_other_cuda(answer: Answer, place: Place) -> list[str]:
    """The wheel for a torch of another CUDA major version, where the text does not tell which."""
    typed = _typed(answer.help)
    if typed is None or place.present is None:
        return []
    others = {c for c in cuda_builds(minor_of(place.present.release))}
    others = {c for c in others if c.split(".")[0] != str(typed.cuda_major)}
    for cuda in sorted(others, reverse=True):
        wanted = Wanted(typed.torch, typed.python, cuda, typed.cxx11_abi, typed.platform)
        sure = (b for b in candidates(wanted) if not (b.nightly or b.unlikely or b.mislabelled))
        found = next((b for b in sure if b.cuda_major != typed.cuda_major), None)
        if found is not None:
            return [
                f"The wheel is for torch {place.present.release} as the package index has it, for "
                f"CUDA {typed.cuda_major}: where torch.version.cuda says {cuda}, {found.file_name} "
                f"of the release {found.release} takes its place."
            ]
    return []


def _has_wheel(answer: Answer) -> bool:
    return any(".whl" in text for text in (*answer.help, *answer.notes))


def _form(place: Place, cuda: str) -> list[str]:
    """How the wheel for the text's torch is called, where the Python for it is not told."""
    present = place.present
    if present is None or present.flavour not in (CXX11, PRE_CXX11) or not cuda:
        return []
    wanted = Wanted(minor_of(present.release), None, cuda, present.flavour, "linux_x86_64")
    sure = (b for b in candidates(wanted) if not (b.nightly or b.unlikely or b.mislabelled))
    found = next(sure, None)
    if found is None:
        return []
    form = found.file_name.partition("-cp")[0]
    return [
        f"flash-attn's own wheel for {present.text} is called {form}-cpXY-..., cpXY being the "
        "Python: on its releases page, seconds in place of a build."
    ]
