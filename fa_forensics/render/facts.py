"""The compact table of facts under a verdict.

A row is a label and the parts of its text; a part is never cut. Rows keep one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fa_forensics.render.floors import floor_rows
from fa_forensics.render.gpu import gpu_rows
from fa_forensics.render.releases import release_rows
from fa_forensics.render.style import (
    counted,
    escape,
    mappings,
    natural_key,
    pieces,
    short_path,
    size_text,
    strings_of,
    text_of,
)
from fa_forensics.report import BoundSymbol, TargetReport, Witness

Row = tuple[str, list[str]]

#: What the flavours of the JSON contract mean, in words.
_STRINGS = {
    "cxx11": "C++ string flavour cxx11",
    "pre-cxx11": "C++ string flavour pre-cxx11",
    "not-applicable": "C++ string flavour: not applicable (no torch name has one)",
}
#: Owners whose own word says too little to a reader.
_OWNERS = {"extension": "own or sibling library", "toolchain": "optional hooks"}
#: Findings that say all that the row about cuobjdump would say again.
_WITNESS_CODES = ("FA502", "FA503")


def fact_rows(target: TargetReport, verbose: bool) -> list[Row]:
    """The facts of one target, from the file itself to what could not be looked at."""
    if target.elf is None and target.problem is not None:
        return _unread_rows(target, verbose)
    rows: list[Row] = [("file", _place(target))]
    elf = target.elf
    if elf is not None:
        rows.append(("", _file_parts(elf)))
        rows.append(("built", _built_parts(target, elf)))
        rows += release_rows(target, verbose)
        quiet = not (verbose or target.findings)
        rows += [("needs", parts) for parts in _library_groups(elf, quiet)]
        rows.append(("undefined", _undefined_parts(target)))
        rows += floor_rows(target, verbose)
        rows += gpu_rows(target, verbose)
    if target.cuobjdump is not None:
        rows.append(("cuobjdump", _witness_parts(target, target.cuobjdump)))
    rows.append(("confirm", _sentence(target.confirm.status, target.confirm.detail)))
    # That this machine has no GPU to judge for is no news to its owner.
    skipped = [s for s in target.skipped if verbose or s.rule != "gpus"]
    rows += [("skipped", _sentence(s.rule, s.reason)) for s in skipped]
    if verbose and elf is not None:
        rows += _verbose_rows(target, elf)
    return [row for row in rows if row[1]]


def _unread_rows(target: TargetReport, verbose: bool) -> list[Row]:
    """What the headline of a file that could not be read does not say already."""
    rows: list[Row] = []
    # A member's path is its archive's, which the headline need not name.
    if is_archive_member(target) or target.path not in target.headline:
        rows.append(("file", _place(target)))
    said = target.headline.rstrip(".")
    for skip in target.skipped:
        if skip.reason.rstrip(".") != said:
            rows.append(("skipped", _sentence(skip.rule, skip.reason)))
    return rows


def is_archive_member(target: TargetReport) -> bool:
    """Whether the target lies in an archive, which ``path`` then names."""
    return target.member is not None and not target.path.endswith(target.member)


def _place(target: TargetReport) -> list[str]:
    if is_archive_member(target):
        return [escape(target.member or ""), f"in {escape(target.path)}"]
    return [escape(target.path)]


def _witness_parts(target: TargetReport, witness: Witness) -> list[str]:
    code = next((f.code for f in target.findings if f.code in _WITNESS_CODES), None)
    if code is not None:
        return [escape(witness.status), f"(see {code} above)"]
    return _sentence(witness.status, witness.detail)


def _file_parts(elf: Mapping[str, object]) -> list[str]:
    groups = []
    size = elf.get("size_bytes")
    if isinstance(size, int):
        groups.append([size_text(size)])
    machine = text_of(elf, "machine")
    if machine:
        groups.append([escape(machine)])
    tag = text_of(elf, "python_tag")
    groups.append([f"Python tag {escape(tag)}" if tag else "no Python tag"])
    module = text_of(elf, "module_name")
    if module:
        groups.append(["module", escape(module)])
    return _joined(groups)


def _built_parts(target: TargetReport, elf: Mapping[str, object]) -> list[str]:
    parts = [compiler_text(text) for text in strings_of(elf, "compilers")]
    for kit in sorted(target.toolkits, key=natural_key):
        # "CUDA 12.1 (sm_80; where that is written)": the release is enough here.
        release = escape(kit.partition(" (")[0])
        parts.append(release if release.startswith("CUDA ") else f"CUDA {release}")
    parts.append(_STRINGS.get(target.cxx11_abi, escape(target.cxx11_abi)))
    if target.stable_abi:
        parts.append("torch's stable ABI only")
    return _joined([pieces(part) for part in dict.fromkeys(parts)])


def compiler_text(comment: str) -> str:
    """A ``.comment`` string in short: ``GCC: (GNU) 8.5.0 20210514 (Red Hat)`` is ``GCC 8.5.0``."""
    head, found, tail = comment.partition(": (")
    # The vendor in brackets may hold brackets itself; the version is the word behind it.
    version = tail.partition(") ")[2].lstrip(") ").partition(" ")[0]
    if found and head == "GCC" and version[:1].isdigit():
        return f"GCC {escape(version)}"
    return escape(comment)


def _library_groups(elf: Mapping[str, object], quiet: bool) -> list[list[str]]:
    """Missing libraries first, each by name; the others under the folder they were found in.

    When all are found, ``quiet`` says how many are in each folder, in one group.
    """
    direct = strings_of(elf, "needed")
    known: dict[str, Mapping[str, object]] = {}
    for entry in mappings(elf, "libraries"):
        known.setdefault(text_of(entry, "soname") or "?", entry)
    if not known:
        return [_comma([escape(name) for name in direct] or ["no library"])]
    parts = []
    for name, entry in known.items():
        problem = text_of(entry, "problem")
        if entry.get("path") is None:
            parts.append(f"{escape(name)}: not found")
        elif problem:
            parts.append(f"{escape(name)}: {escape(problem)}")
    folders: dict[str, list[str]] = {}
    for name in direct:
        path = text_of(known[name], "path") if name in known else None
        if path is not None:
            folder = short_path(path).rpartition("/")[0] or "/"
            folders.setdefault(folder, []).append(escape(name))
        elif name not in known:
            parts.append(f"{escape(name)}: not looked up")
    if quiet and folders and not parts:
        found = [f"{len(names)} in {escape(folder)}" for folder, names in folders.items()]
        return [[f"{counted(len(direct), 'library')}, all found:", *_comma(found)]]
    groups = [[part] for part in parts]
    groups += [[f"{escape(folder)}:", *names] for folder, names in folders.items()]
    return groups or [["no library"]]


def _undefined_parts(target: TargetReport) -> list[str]:
    """``299: torch 56 (8 with no provider), libstdc++ 120``; owners with missing names first."""
    if not target.undefined:
        return []
    missing = set(target.missing)
    counts: dict[str, list[int]] = {}
    for bound in target.undefined:
        count = counts.setdefault(bound.owner, [0, 0])
        count[0] += 1
        count[1] += bound.symbol in missing and bound.bind != "weak"
    order = sorted(counts.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    groups = []
    for owner, (total, absent) in order:
        lack = [f"({absent} with no provider)"] if absent else []
        name = _OWNERS.get(owner, escape(owner))
        groups.append([f"{name} {total}", *lack])
    return [f"{counted(len(target.undefined), 'symbol')}:", *_joined(groups)]


def _verbose_rows(target: TargetReport, elf: Mapping[str, object]) -> list[Row]:
    rows: list[Row] = [("compiler", pieces(escape(c))) for c in strings_of(elf, "compilers")]
    rows += [("toolkit", pieces(escape(kit))) for kit in target.toolkits]
    for key, label in (("soname", "soname"), ("build_id", "build id")):
        value = text_of(elf, key)
        rows.append((label, [escape(value) if value else "none"]))
    for key in ("rpath", "runpath"):
        rows.append((key, [escape(":".join(strings_of(elf, key))) or "none"]))
    versions: dict[str, list[str]] = {}
    for entry in mappings(elf, "versions_needed"):
        file = escape(text_of(entry, "file") or "?")
        versions.setdefault(file, []).append(escape(text_of(entry, "version") or "?"))
    for file in sorted(versions):
        rows.append(("versions", [f"{file}:", *sorted(versions[file], key=natural_key)]))
    for entry in mappings(elf, "libraries"):
        rows.append(("library", _tried(entry)))
    shown = {bound.symbol: bound for bound in target.undefined}
    rows += [("missing", missing_parts(name, shown.get(name))) for name in sorted(target.missing)]
    return rows


def _tried(entry: Mapping[str, object]) -> list[str]:
    name = escape(text_of(entry, "soname") or "?")
    path = text_of(entry, "path")
    found_by = text_of(entry, "found_by")
    if path is not None:
        return [f"{name}:", escape(path), *([f"({escape(found_by)})"] if found_by else [])]
    tried = [escape(place) for place in strings_of(entry, "tried")]
    return [f"{name}:", "not found;", "tried", *_comma(tried or ["no place"])]


def missing_parts(symbol: str, bound: BoundSymbol | None) -> list[str]:
    """A missing symbol as it stands in the file, with its readable name where that differs."""
    parts = [escape(symbol)]
    if bound is not None and bound.demangled != symbol:
        parts.append(escape(bound.demangled))
    return parts


def _sentence(head: str, tail: str) -> list[str]:
    # What a child process printed may hold several lines; here they are one sentence.
    lines = [escape(line.strip()) for line in tail.split("\n") if line.strip()]
    text = pieces(" | ".join(lines))
    return [f"{escape(head)}:", *text] if text else [escape(head)]


def _comma(parts: Sequence[str]) -> list[str]:
    return [part + "," for part in parts[:-1]] + list(parts[-1:])


def _joined(groups: Iterable[Sequence[str]]) -> list[str]:
    """The parts of all groups, with a comma between the groups; a line may end in a group."""
    groups = [group for group in groups if group]
    ends = _comma([group[-1] for group in groups])
    return [part for group, end in zip(groups, ends, strict=True) for part in (*group[:-1], end)]
