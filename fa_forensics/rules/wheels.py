"""FA840 - FA850: what a wheel's name and metadata say against or for it in an environment.

Pure: facts in, checks out. A check that found nothing wrong says so too.
"""

from __future__ import annotations

import re

from fa_forensics.facts.package import BuildTags, satisfies, torch_pin, torch_requirement
from fa_forensics.facts.torch_install import release_of
from fa_forensics.facts.wheel_matrix import CXX11, PRE_CXX11, WheelBuild
from fa_forensics.facts.wheel_tags import TagHost, misfit
from fa_forensics.records import dataclass
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, WRONG
from fa_forensics.report_wheels import Check


@dataclass(frozen=True, slots=True)
class WheelClaims:
    """What a wheel's file name and metadata claim.

    ``metadata_tags`` are those of its WHEEL file, None where that was not read.
    """

    name: str
    version: str
    python_tags: tuple[str, ...]
    abi_tags: tuple[str, ...]
    platform_tags: tuple[str, ...]
    labels: BuildTags
    official: WheelBuild | None
    metadata_tags: tuple[str, ...] | None
    requires_python: str | None
    requires: tuple[str, ...] = ()
    metadata_version: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What the wheel would be installed beside.

    ``torch`` is the release ("2.6.0"), ``cuda`` "12.4", "" for a torch without CUDA; None
    where it is not known. ``glibc`` is this machine's.
    """

    host: TagHost
    torch: str | None
    cuda: str | None
    flavour: str | None
    glibc: str | None


def label_checks(claims: WheelClaims, place: Place) -> tuple[Check, ...]:
    """What the name alone says against or for a wheel."""
    checks = [_tags(claims, place.host), _metadata(claims)]
    checks += [_requires_python(claims, place.host), _requires_torch(claims, place)]
    checks += [_torch_label(claims, place), _cuda_label(claims, place), _abi_label(claims, place)]
    checks += [_nightly(claims), _floor(claims, place), _known(claims)]
    return tuple(check for check in checks if check is not None)


def wrong(subject: str, finding: Finding) -> Check:
    """A check that ended in a finding."""
    return Check(subject, WRONG, finding.title, finding)


def _tags(claims: WheelClaims, host: TagHost) -> Check:
    problem = misfit(host, claims.python_tags, claims.abi_tags, claims.platform_tags)
    tags = "-".join(
        ".".join(part) for part in (claims.python_tags, claims.abi_tags, claims.platform_tags)
    )
    if problem is None:
        return Check("tags", OK, f"{tags} fits Python {host.python}{host.abiflags} on this machine")
    finding = Finding(
        code="FA840",
        severity="error",
        confidence="high",
        title=f"pip will refuse the wheel here: {problem}",
        evidence=(Evidence(f"tags {tags} in the file name"),),
        notes=("Renaming the file does not change what is in it.",),
    )
    return wrong("tags", finding)


def _metadata(claims: WheelClaims) -> Check | None:
    """FA847: the WHEEL file and the file name disagree: the file was renamed."""
    if claims.metadata_tags is None:
        return None
    inside = set(claims.metadata_tags)
    name = {
        f"{p}-{a}-{m}"
        for p in claims.python_tags
        for a in claims.abi_tags
        for m in claims.platform_tags
    }
    # flash-attn's own releases add the labels to the name alone: pip takes that.
    version = claims.metadata_version
    other = version is not None and _public(version) != _public(claims.version)
    if not other and (not inside or not name or inside & name or _only_platform(inside, name)):
        return Check("metadata", OK, "the metadata inside agrees with the file name")
    evidence = [Evidence(f"file name: {claims.version}, {', '.join(sorted(name)) or 'no tags'}")]
    inside_text = ", ".join(sorted(inside)) or "no tags"
    evidence.append(Evidence(f"inside: {version or 'no version'}, {inside_text}", table="WHEEL"))
    finding = Finding(
        code="FA847",
        severity="warning",
        confidence="high",
        title="the metadata inside the wheel disagrees with its file name: it was renamed",
        evidence=tuple(evidence),
        notes=("What is inside decides whether it loads.",),
    )
    return wrong("metadata", finding)


def _requires_python(claims: WheelClaims, host: TagHost) -> Check | None:
    """FA840 again: Requires-Python, which pip holds to as well."""
    wanted = claims.requires_python
    if not wanted:
        return None
    met = satisfies(f"{host.python}.999", wanted)  # a patch release that no bound speaks of
    if met is not False:
        return None
    finding = Finding(
        code="FA840",
        severity="error",
        confidence="high",
        title=f"pip will refuse the wheel here: it asks for Python {wanted}, here is {host.python}",
        evidence=(Evidence(f"Requires-Python: {wanted}", table="METADATA"),),
    )
    return wrong("requires", finding)


def _requires_torch(claims: WheelClaims, place: Place) -> Check | None:
    """FA850: its metadata asks for another torch, which pip would then install."""
    wanted = torch_requirement(claims.requires)
    if not wanted or place.torch is None:
        return None
    pinned = torch_pin(claims.requires)
    met = satisfies(place.torch, wanted)
    if pinned is not None and "+" in pinned:
        met = release_of(pinned) == place.torch
    if met is None:
        return Check("requires", COULD_NOT_LOOK, f"it asks for torch{wanted}: not understood")
    if met:
        return Check("requires", OK, f"it asks for torch{wanted}, here is {place.torch}")
    finding = Finding(
        code="FA850",
        severity="error",
        confidence="high",
        title=f"installing it would change torch: it asks for torch{wanted}, here is {place.torch}",
        evidence=(Evidence(f"Requires-Dist: torch{wanted}", table="METADATA"),),
        notes=("pip installs what a wheel asks for; with --no-deps it leaves torch alone.",),
    )
    return wrong("requires", finding)


def _only_platform(inside: set[str], name: set[str]) -> bool:
    """Whether tags differ in the platform alone: auditwheel renames linux to manylinux."""
    return {tag.rpartition("-")[0] for tag in inside} >= {tag.rpartition("-")[0] for tag in name}


def _public(version: str) -> str:
    return version.partition("+")[0]


def _torch_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.torch
    if label is None:
        return None
    if place.torch is None:
        return Check(
            "torch label", COULD_NOT_LOOK, f"it is labelled for torch {label}; no torch is here"
        )
    if label.split(".")[:2] == place.torch.split(".")[:2]:
        return Check("torch label", OK, f"it is labelled for torch {label}, here is {place.torch}")
    finding = Finding(
        code="FA841",
        severity="error",
        confidence="medium",
        title=f"the wheel is labelled for torch {label}, here is torch {place.torch}",
        evidence=(Evidence(f"version {claims.version}"),),
        notes=(
            "C++ names of torch change from one minor release to the next; a wheel for another one "
            "may fail with an undefined symbol, or crash.",
        ),
    )
    return wrong("torch label", finding)


def _cuda_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.cuda
    if label is None:
        return None
    if place.cuda is None:
        return Check(
            "CUDA label", COULD_NOT_LOOK, f"it is labelled for CUDA {label}; torch's is not known"
        )
    if place.cuda.partition(".")[0] == label.partition(".")[0]:
        return Check("CUDA label", OK, f"it is labelled for CUDA {label}, torch has {place.cuda}")
    return wrong("CUDA label", other_cuda(f"labelled for CUDA {label}", place.cuda, ()))


def other_cuda(what: str, cuda: str, evidence: tuple[Evidence, ...]) -> Finding:
    """FA842: ``what`` is another CUDA major version than torch's ``cuda``."""
    here = f"CUDA {cuda}" if cuda else "no CUDA"
    return Finding(
        code="FA842",
        severity="error",
        confidence="high",
        title=f"the wheel is {what}, the torch here has {here}",
        evidence=evidence,
        notes=(
            "Libraries of one CUDA major version do not serve files that were built for another: "
            "their names differ (libcudart.so.12, libcudart.so.13).",
        ),
    )


def _abi_label(claims: WheelClaims, place: Place) -> Check | None:
    label = claims.labels.cxx11_abi
    if label is None:
        return None
    flavour = CXX11 if label else PRE_CXX11
    text = f"cxx11abi{'TRUE' if label else 'FALSE'}"
    if place.flavour is None:
        return Check("ABI label", COULD_NOT_LOOK, f"it is labelled {text}; torch's is not known")
    if flavour == place.flavour:
        return Check("ABI label", OK, f"it is labelled {text}, the torch here is {place.flavour}")
    finding = Finding(
        code="FA843",
        severity="error",
        confidence="medium",
        title=f"the wheel is labelled {text}, the torch here is {place.flavour}",
        evidence=(Evidence(f"version {claims.version}"),),
        notes=("A label can be wrong; what is inside decides.",),
    )
    return wrong("ABI label", finding)


def _nightly(claims: WheelClaims) -> Check | None:
    official = claims.official
    if official is None or not official.nightly:
        return None
    finding = Finding(
        code="FA845",
        severity="warning",
        confidence="high",
        title=f"the wheel was built on the nightly torch {official.torch_built} and is named after "
        f"torch {official.torch}, which came later",
        evidence=(Evidence(f"torch {official.torch_built} in the release's build matrix"),),
        notes=("What changed until the release may be missing from it; a later release is safer.",),
    )
    return wrong("built on", finding)


def _floor(claims: WheelClaims, place: Place) -> Check | None:
    needs = claims.official.glibc if claims.official is not None else None
    if needs is None:
        return None
    if place.glibc is None:
        return Check("glibc", COULD_NOT_LOOK, f"wheels of this release need glibc {needs}")
    if _numbers(needs) <= _numbers(place.glibc):
        return Check(
            "glibc", OK, f"wheels of this release need glibc {needs}, here is {place.glibc}"
        )
    finding = Finding(
        code="FA846",
        severity="error",
        confidence="high",
        title=f"wheels of this release need glibc {needs}, here is {place.glibc}",
        notes=(
            "glibc is part of the operating system: an older release of the wheel, or a newer "
            "container, is the way out.",
        ),
    )
    return wrong("glibc", finding)


def _known(claims: WheelClaims) -> Check | None:
    """Whether a wheel with the labels of official ones is one of them."""
    labelled = claims.labels.torch is not None and claims.labels.cxx11_abi is not None
    if claims.official is not None:
        return Check("origin", OK, "its name is one of the official release's build matrix")
    if not labelled or not re.fullmatch(r"flash[-_]attn", claims.name, re.IGNORECASE):
        return None
    return Check(
        "origin", NOTE, "its name is in no official release's build matrix: somebody else built it"
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
