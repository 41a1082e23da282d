"""FA842, FA844, FA848: what the files inside a wheel say, held against its labels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.wheel_matrix import CXX11, PRE_CXX11
from fa_forensics.report import Evidence, Finding, TargetReport
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK
from fa_forensics.report_wheels import Check
from fa_forensics.rules.wheels import Place, WheelClaims, other_cuda, wrong

_CUDART = re.compile(r"libcudart(?:-\w+)?\.so\.(\d+)")


def content_checks(
    claims: WheelClaims, place: Place, targets: Sequence[TargetReport]
) -> tuple[Check, ...]:
    """The labels held against what the extensions themselves say."""
    readable = [target for target in targets if target.elf is not None]
    checks = [_flavour_of_content(claims, readable), _cuda_of_content(claims, place, readable)]
    checks.append(_torch_of_content(claims, readable))
    return tuple(check for check in checks if check is not None)


def settled(check: Check, targets: Sequence[TargetReport]) -> Check:
    """A label's finding, once the content was read: that decides, the label is only a word."""
    code = check.finding.code if check.finding is not None else None
    shown = [t for t in targets if t.cxx11_abi in (CXX11, PRE_CXX11)]
    if (code == "FA843" and shown) or (code == "FA841" and any(t.releases for t in targets)):
        return Check(check.subject, NOTE, f"{check.text}; what is inside decides")
    return check


def _flavour_of_content(claims: WheelClaims, targets: Sequence[TargetReport]) -> Check | None:
    """FA844: an ``abiFALSE`` label over cxx11 code, or the other way round."""
    label = claims.labels.cxx11_abi
    shown = [t for t in targets if t.cxx11_abi in (CXX11, PRE_CXX11)]
    if not shown:
        if label is None or not targets:
            return None
        return Check("ABI inside", COULD_NOT_LOOK, "no name in it shows a std::string flavour")
    found = sorted({target.cxx11_abi for target in shown})
    said = CXX11 if label else PRE_CXX11
    if label is None or found == [said]:
        agrees = ", as labelled" if label is not None else ""
        return Check("ABI inside", OK, f"its code is {' and '.join(found)}{agrees}")
    other = next(target for target in shown if target.cxx11_abi != said)
    finding = Finding(
        code="FA844",
        severity="warning",
        confidence="high",
        title=f"the label cxx11abi{'TRUE' if label else 'FALSE'} is wrong: the code inside is "
        f"{other.cxx11_abi}",
        evidence=(
            Evidence(f"{_file(other)} needs torch names with the {other.cxx11_abi} std::string"),
        ),
        notes=("The loader knows no labels: only a torch of that flavour loads this file.",),
    )
    return wrong("ABI inside", finding)


def _cuda_of_content(
    claims: WheelClaims, place: Place, targets: Sequence[TargetReport]
) -> Check | None:
    """FA842 or FA848: the libcudart that the files need, against torch's CUDA and the label."""
    needs: dict[str, str] = {}
    for target in targets:
        needed = (target.elf or {}).get("needed")
        for soname in needed if isinstance(needed, list | tuple) else ():
            found = _CUDART.fullmatch(str(soname))
            if found:
                needs.setdefault(found[1], _file(target))
    if not needs:
        return None
    label = claims.labels.cuda
    majors = " and ".join(sorted(needs))
    evidence = tuple(Evidence(f"{file} needs libcudart.so.{m}") for m, file in needs.items())
    if place.cuda is not None and place.cuda.partition(".")[0] not in needs:
        finding = other_cuda(f"built for CUDA {majors}", place.cuda, evidence)
        return wrong("CUDA inside", finding)
    if label is not None and label.partition(".")[0] not in needs:
        finding = Finding(
            code="FA848",
            severity="warning",
            confidence="high",
            title=f"the label CUDA {label} is wrong: the code inside is for CUDA {majors}",
            evidence=evidence,
        )
        return wrong("CUDA inside", finding)
    if place.cuda is None:
        return Check("CUDA inside", NOTE, f"its code is for CUDA {majors}")
    return Check("CUDA inside", OK, f"its code is for CUDA {majors}, torch has {place.cuda}")


def _torch_of_content(claims: WheelClaims, targets: Sequence[TargetReport]) -> Check | None:
    """FA848: the torch of the label is not one that the code links with."""
    label = claims.labels.torch
    placed = [t for t in targets if t.releases is not None and t.releases.symbols]
    if not placed:
        return None
    texts = sorted({t.releases.package_text or t.releases.links_text for t in placed if t.releases})
    links = set.intersection(*(set(t.links_with) for t in placed))
    said = (
        f"its code links with torch {'; '.join(text for text in texts if text) or '(none known)'}"
    )
    if label is None or _of_minor(links, label):
        return Check("torch inside", OK if links else NOTE, said)
    finding = Finding(
        code="FA848",
        severity="warning",
        confidence="high",
        title=f"the label torch {label} is wrong: {said}",
        evidence=tuple(Evidence(f"{_file(t)}: {t.headline}") for t in placed[:3]),
    )
    return wrong("torch inside", finding)


def _of_minor(releases: set[str], label: str) -> bool:
    minor = ".".join(label.split(".")[:2])
    return any(".".join(release.split(".")[:2]) == minor for release in releases)


def _file(target: TargetReport) -> str:
    return (target.member or target.path).rpartition("/")[2]
