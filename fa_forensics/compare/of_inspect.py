"""What a document of ``inspect`` says of extension files, and of the libraries they take."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts, family_of
from fa_forensics.compare.places import Places

_ELF_TEXTS = {"build_id": "build-id", "soname": "soname", "python_tag": "Python tag"}
_ELF_SCALARS = {"size_bytes": "size in bytes", "machine": "machine"}
_LISTS = {"missing": "missing symbols", "built_on": "built on torch", "toolkits": "toolkits"}
_ELF_ORDERED = {"needed": "needs", "rpath": "RPATH", "runpath": "RUNPATH"}


def put_targets(into: Facts, document: Mapping[str, object], places: Places) -> None:
    """Note the facts of every target of a document of ``inspect``."""
    libraries: dict[str, set[str]] = {}
    for target in plain.rows(document, "targets"):
        name = target_name(target, places)
        if name is None:
            into.problems.append("a target has no path")
            continue
        into.speaks_of |= {("extensions", family_of(name)), ("kernels", family_of(name))}
        _put_target(into, name, target, places)
        _gather_libraries(libraries, plain.mapping(target, "elf"), places)
        _put_machine(into, plain.mapping(target, "coverage"))
    for soname, found in libraries.items():
        into.put("libraries", soname, "taken from", plain.as_set(list(found)))


def target_name(target: Mapping[str, object], places: Places) -> str | None:
    """A file's name that is the same on every machine, members of wheels included."""
    path = plain.text(target, "path")
    if not path:
        return None
    member = plain.text(target, "member")
    if member:  # the wheel may lie anywhere
        return f"{path.rpartition('/')[2]}/{member}"
    return places.file(path)


def _put_target(into: Facts, name: str, target: Mapping[str, object], places: Places) -> None:
    problem = plain.text(target, "problem")
    into.put("extensions", name, "verdict", plain.text(target, "verdict"))
    elf = plain.mapping(target, "elf")
    if problem and not elf:
        into.could_not_look("extensions", name, "", places.name(problem))
    _put_elf(into, name, elf, places)
    into.put("extensions", name, "C++ string flavour", plain.text(target, "cxx11_abi"))
    into.put("extensions", name, "stable ABI", plain.scalar(target.get("stable_abi")))
    for field, aspect in _LISTS.items():
        values = plain.texts(target, field)
        into.put("extensions", name, aspect, None if values is None else plain.as_set(values))
    into.put("extensions", name, "findings", plain.findings(target))
    if isinstance(target.get("gpu_code"), list):
        images = list(plain.rows(target, "gpu_code"))
        kinds = [f"{row.get('kind')} {row.get('arch')}" for row in images]
        sizes = [
            f"{row.get('kind')} {row.get('arch')} x{row.get('count')}, {row.get('bytes')} bytes"
            for row in images
        ]
        into.put("extensions", name, "GPU code", plain.as_set(kinds))
        into.put("extensions", name, "GPU images", plain.as_set(sizes))
    _put_bound(into, name, target, places)
    _put_kernels(into, name, target)
    for row in plain.rows(target, "skipped"):
        rule = plain.text(row, "rule") or "a rule"
        reason = plain.text(row, "reason") or "no reason is given"
        into.could_not_look("extensions", name, f"skipped: {rule}", places.name(reason))
    confirm = plain.text(plain.mapping(target, "confirm"), "status")
    if confirm in ("confirmed", "refuted"):
        into.put("extensions", name, "real load", confirm)


def _put_elf(into: Facts, name: str, elf: Mapping[str, object], places: Places) -> None:
    for field, aspect in _ELF_TEXTS.items():
        value = plain.text(elf, field)
        if elf and aspect == "build-id" and value is None:
            value = "none"
        into.put("extensions", name, aspect, value)
    for field, aspect in _ELF_SCALARS.items():
        into.put("extensions", name, aspect, plain.scalar(elf.get(field)))
    for field, aspect in _ELF_ORDERED.items():
        values = plain.texts(elf, field)
        if values is not None:
            into.put("extensions", name, aspect, tuple(places.name(v) for v in values))
    compilers = plain.texts(elf, "compilers")
    if compilers is not None:
        into.put("extensions", name, "compilers", plain.as_set(compilers))
    versions = [
        f"{plain.text(row, 'version')} of {plain.text(row, 'file')}"
        for row in plain.rows(elf, "versions_needed")
    ]
    if isinstance(elf.get("versions_needed"), list):
        into.put("extensions", name, "versions needed", plain.as_set(versions))


def _gather_libraries(
    libraries: dict[str, set[str]], elf: Mapping[str, object], places: Places
) -> None:
    for row in plain.rows(elf, "libraries"):
        soname = plain.text(row, "soname")
        if soname:
            path = plain.text(row, "path")
            libraries.setdefault(soname, set()).add(places.name(path) if path else "not found")


def _put_bound(into: Facts, name: str, target: Mapping[str, object], places: Places) -> None:
    """Which library each symbol binds to, where it binds at all."""
    bound = [
        f"{plain.text(row, 'symbol')} to {(plain.text(row, 'provider') or '').rpartition('/')[2]}"
        for row in plain.rows(target, "undefined")
        if plain.text(row, "provider")
    ]
    if bound:
        into.put("extensions", name, "symbols bound", plain.as_set(bound))


def _put_kernels(into: Facts, name: str, target: Mapping[str, object]) -> None:
    kernels = plain.mapping(target, "kernels")
    if not kernels:
        return
    if kernels.get("complete") is not True:
        reason = "not every image of its GPU code could be read"
        into.could_not_look("kernels", name, "kernels", reason)
        return
    into.put("kernels", name, "kernels", plain.as_set(list(_kernel_rows(kernels))))


def _kernel_rows(kernels: Mapping[str, object]) -> list[str]:
    """One text for each group of kernels: its label, its architectures, its options."""
    found = []
    for row in plain.rows(kernels, "groups"):
        archs = [
            f"{plain.text(arch, 'arch')} x{plain.scalar(arch.get('kernels'))}"
            + (" (empty)" if arch.get("empty") is True else "")
            for arch in plain.rows(row, "archs")
        ]
        options = ", ".join(sorted(plain.texts(row, "options") or ()))
        label = plain.text(row, "label") or "kernels"
        found.append(f"{label}: {', '.join(sorted(archs))}" + (f" [{options}]" if options else ""))
    return found


def _put_machine(into: Facts, coverage: Mapping[str, object]) -> None:
    """The driver and the GPUs, where the file was judged for this machine's own."""
    if plain.text(coverage, "gpus_from") != "machine":
        return
    driver = plain.mapping(coverage, "driver")
    into.put("driver", "driver", "version", plain.text(driver, "version"))
    into.put("driver", "driver", "CUDA it supports", plain.text(driver, "cuda"))
    gpus = [
        f"{plain.text(row, 'name')} ({plain.text(row, 'capability')})"
        for row in plain.rows(coverage, "gpus")
    ]
    into.put("gpus", "GPUs", "kinds", plain.as_set(gpus))
