"""Packages whose compiled parts share C++ types of their own, and so belong together."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.ways.commands import list_wheels

KIND, TYPES = "python-abi", "FA893"

#: Whose types other packages use, by their scope (Requires-Dist of spconv's wheels: cumm).
_SIBLINGS = {"tv": "cumm"}
#: Published under one name for each CUDA beside the plain one for the CPU: spconv-cu120. All have
#: the same module, so that one installed over another overwrites it (README of spconv and cumm).
_ONE_FOR_EACH_CUDA = frozenset(("spconv", "cumm"))


def of_a_sibling(seen: Seen, wanted: str) -> Answer:
    """A type that has a scope of its own: a package that this one belongs with registers it."""
    package = package_in(seen) or seen.mention.detail.get("import", "").split(".")[0]
    sibling = _SIBLINGS.get(wanted.split("::")[0])
    whose = f"{sibling}, which registers it," if sibling else "the package that registers it"
    cause = (
        f"A compiled module uses the C++ type {wanted}, which is not torch's, and no module in "
        f"this process has registered it under the same key: {whose} is of another release, or "
        "was built by another compiler or with another pybind11, so that the two do not see one "
        "another's types. Neither torch nor CUDA is at fault."
    )
    names = "|".join(name for name in (package, sibling) if name)
    look = list_wheels(seen.place, names) if names else f"{seen.pip} list"
    if package in _ONE_FOR_EACH_CUDA:
        helps, notes = _for_each_cuda(seen, package, sibling)
    else:
        again = f"{seen.pip} install --upgrade --force-reinstall --no-cache-dir {package}"
        helps, notes = ((again,) if package else ()), (
            "Packages of this sort belong together: both from wheels of one time, the one as the "
            "other's metadata asks for it, or both built by one compiler.",
        )  # fmt: skip
    return seen.answer(
        KIND, TYPES, cause, owner=sibling or package or None, direction="none", confidence="medium",
        help=(look, *helps), notes=notes,
    )  # fmt: skip


def _for_each_cuda(
    seen: Seen, package: str, sibling: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both out, under all their names, and the one for the CUDA of the text in again."""
    told = seen.versions.get(f"cuda-name:{package}", "")
    cuda = told.rpartition("-cu")[2]
    both = [package, *((sibling,) if sibling and sibling != package else ())]
    note = (
        "Each of the two is one package for the CPU and one for each CUDA (the name with -cuNNN), "
        "and all of these have the same module: what is installed beside another one overwrites "
        "it. So all of them go first, and then one is installed, which brings the other."
    )
    if cuda:
        names = [name for one in both for name in (one, f"{one}-cu{cuda}")]
        version = seen.versions.get(f"pkg:{told}")
        pin = f"{told}=={version}" if version else told
        return (
            f"{seen.pip} uninstall -y {' '.join(names)}",
            f"{seen.pip} install --no-cache-dir {pin}",
        ), (note,)
    return (), (
        note,
        f"pip uninstall of every name that the first command lists, then pip install of "
        f"{package}-cuNNN with the number that it had there: {package} alone is the one for the "
        "CPU.",
    )
