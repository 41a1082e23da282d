"""A missing library of the system or of the package itself."""

from __future__ import annotations

import shlex

from fa_forensics.facts.owner import title_of
from fa_forensics.facts.system_names import debian_package
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.libraries.needing import (
    files_of,
    needing,
    rebuild_commands,
    torch_label,
)
from fa_forensics.why.texts.libraries.torch_itself import is_torch_itself
from fa_forensics.why.ways.commands import needed_libraries

KIND, CODE = "missing-library", "FA202"

#: auditwheel's own copies carry a part of the file's hash in their names.
HASHED = lazily(r"lib[\w+.]+-[0-9a-f]{8}\.so")


def system_library(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of the system, of the package itself, or one that nothing is known of."""
    package = debian_package(soname)
    itself = is_torch_itself(seen)
    if package is not None:
        who = "torch itself" if itself else needing(seen)
        cause = (
            f"{soname} is a library of the system that {who} needs and that is not "
            "installed; small container images often lack it."
        )
        if itself and soname.startswith("libmpi"):
            cause += _WITH_MPI
        notes = (
            "apt-get is for Debian and Ubuntu; packages of Fedora, RHEL and SUSE carry the names "
            "of their libraries, so that dnf and zypper find them by that. In a conda environment "
            "the package of the same library from conda-forge does.",
        )
        return seen.answer(
            KIND, CODE, cause, owner=owner or "system", direction=NONE, confidence="high",
            notes=notes, help=(*_install(seen, soname, package),
                               needed_libraries(files_of(seen), "'not found'")),
        )  # fmt: skip
    sibling = _sibling_package(soname)
    if sibling is not None or HASHED.match(soname):
        name = sibling or package_of(seen.mention.file or "") or "its package"
        cause = (
            f"{soname} comes in the same package as the file that needs it ({name}): the "
            "installation is not whole, or the file was taken out of it."
        )
        return seen.answer(
            KIND, CODE, cause, owner=name, direction=NONE, confidence="medium",
            help=(*rebuild_commands(seen, sibling),
                  needed_libraries(files_of(seen), "'not found'")),
        )  # fmt: skip
    if itself and soname.startswith(_OF_TORCH_FOR_ARM):
        return _arm_compute(seen, soname)
    wheels: tuple[str, ...] = ()
    whose = f"It belongs to {title_of(owner)}. " if owner else ""
    cause = (
        f"{whose}{soname} is not on the loader's path. It is a library of the package itself, of "
        "another package that this one was built with, or of the system, in exactly this version; "
        "another version of it does not count."
    )
    if soname.endswith(".so") and owner is None:  # a project's own, far more often than a system's
        loads = _loads_its_own(seen) or package_of(soname)
        cause = (
            f"{soname} is not on the loader's path. Its name has no version, as names of "
            "libraries have that a project builds for itself: most likely it is of "
            f"{loads or 'the package'} itself, or of another package that this one was built with, "
            "and was not installed beside the library that needs it, or is not on the path that "
            "was built into that one (RPATH)."
        )
        owner = loads
        wheels = _wheels_of(seen, loads)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"find / -name {shlex.quote(soname.split('.so')[0] + '.so*')} 2>/dev/null",
              *rebuild_commands(seen), needed_libraries(files_of(seen), "'not found'")),
        notes=wheels,
    )  # fmt: skip


def _wheels_of(seen: Seen, package: str | None) -> tuple[str, ...]:
    """The wheels that a package's own project has for the torch of the text."""
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.ways.by_torch import project_wheels

    row = row_of(package) if package else None
    return tuple(project_wheels(row, package or "", seen.place)) if row is not None else ()


#: Said of a torch that was built with MPI, which no wheel of the package index is.
_WITH_MPI = (
    " It is of Open MPI: this torch was built with MPI, which PyPI's wheels are not, and needs "
    "that very major version of it."
)
#: The Arm Compute Library, which torch's wheels for aarch64 have in a directory of their own.
_OF_TORCH_FOR_ARM = "libarm_compute"


def _arm_compute(seen: Seen, soname: str) -> Answer:
    """A library inside torch's own wheel for aarch64 (manylinux: torch.libs or torch/lib)."""
    cause = (
        f"{soname} is of the Arm Compute Library, which torch's wheels for aarch64 have inside, "
        "and it is torch itself that does not find it: this wheel was packed without it (a fault "
        "of some nightly builds), or is not installed whole. No CUDA, driver or package of the "
        "system has a part in this."
    )
    release = (seen.torch or "").partition("+")[0]
    nightly = ".dev" in release
    again = (
        f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release or "X.Y.Z"}"'
        if not nightly
        else f"{seen.pip} install --pre --upgrade --force-reinstall --no-cache-dir torch"
    )
    label = torch_label(seen)
    if (label and label != "cpu") or nightly:
        again += index_option(f"nightly/{label or 'cuXYZ'}" if nightly else label)
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction=NONE, confidence="medium",
        help=(again, f"{seen.python} -m pip show -f torch | grep -i arm_compute"),
        notes=(
            "Where the second command lists no such file, another build of torch is the way out: "
            "a nightly of another day, or a release. A copy of that library from elsewhere is not "
            "the one that torch was linked with.",
        ),
    )  # fmt: skip


#: The line of a package's own __init__.py that loads its library.
_OWN_INIT = lazily(
    r"(?:site|dist)-packages/(?:[\w.-]{1,80}\.egg/)?(?P<package>[A-Za-z]\w{1,40})/__init__\.py$"
)


def _loads_its_own(seen: Seen) -> str | None:
    """The package whose __init__.py was loading its library when the loader stopped."""
    step = seen.mention.detail.get("step", "")
    found = _OWN_INIT.search(step) if "torch_loads" in seen.mention.detail else None
    return found["package"] if found else None


#: Distributions whose packages are RPMs, as texts name them.
_OF_RPM = lazily(r"\b(?:centos|rhel|red hat|fedora|rocky|alma|oracle linux|amazon linux|suse)")


def _install(seen: Seen, soname: str, package: str) -> tuple[str, str]:
    """The commands for two families of distributions, that of the text first.

    An RPM provides ``libnuma.so.1()(64bit)`` for each library in it, and dnf installs by that.
    """
    mark = "" if seen.versions.get("machine", "x86_64") in ("i386", "i686") else "()(64bit)"
    debian, rpm = f"apt-get install {package}", f"dnf install '{soname}{mark}'"
    system = f"{seen.versions.get('os', '')} {seen.mention.line}".lower()
    return (rpm, debian) if _OF_RPM.search(system) else (debian, rpm)


def _sibling_package(soname: str) -> str | None:
    """The package one of whose libraries this is, by what is known of packages."""
    from fa_forensics.rules.remedy import known_packages

    for row in known_packages():
        if any(s["library"] == soname for s in row.get("siblings", ())):  # type: ignore[attr-defined]
            return str(row["distribution"])
    return None
