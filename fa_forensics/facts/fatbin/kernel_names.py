"""Kernels grouped by what their names say: FlashAttention's by head dimension, type and mask.

A name such as ``flash_fwd_kernel<Flash_fwd_kernel_traits<96, ...>, false, true, ...>`` becomes
``flash_fwd_kernel<hdim 96, fp16, causal>``; what the template parameters mean is a table
(``data/flash_kernels.json``). All other kernels are grouped by their qualified name.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fa_forensics.facts.demangle import MANY_REFERENCES, demangle, qualified_name
from fa_forensics.facts.fatbin.kernels import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa_forensics.facts.fatbin.kernels import Kernel, KernelInventory

FLASH_FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "data",
    "flash_kernels.json",
)
FORWARD, SPLIT, BACKWARD, HELPER = "forward", "forward, split KV", "backward", "helper"
_DIRECTIONS = (FORWARD, SPLIT, BACKWARD, HELPER)
_MASKS = ("causal", "local")


class FlashKernel(NamedTuple):
    """What the name of a FlashAttention kernel says.

    generation: ``FA2`` or ``FA3``. direction: ``forward``, ``forward, split KV``, ``backward``
    or ``helper``. head_dim: of Q and K, None for helpers without one; head_dim_v: of V.
    dtype: ``fp16``, ``bf16``, ``fp8 e4m3``. mask: ``""``, ``causal`` or ``local``; None where
    the template parameters are those of an unknown release. options: the other switches that
    are on in this kernel (dropout, alibi, softcap, varlen ...).
    """

    generation: str
    name: str
    direction: str
    head_dim: int | None
    head_dim_v: int | None
    dtype: str | None
    mask: str | None
    options: tuple[str, ...]


class KernelGroup(NamedTuple):
    """Kernels whose names differ only in what a reader does not ask for.

    label: as shown. flash: of FlashAttention's kernels what they share (its options empty),
    else None. kernels: distinct kernels. archs: (arch, kernels), in natural order. empty:
    architectures for which FlashAttention's kernels are there in name only, with no code
    but a return: FA2 compiled for Turing, FA3's Hopper kernels compiled for Ampere. options:
    switches that are on in some of the kernels. example: one mangled name.
    """

    label: str
    flash: FlashKernel | None
    kernels: int
    archs: tuple[tuple[str, int], ...]
    empty: tuple[str, ...]
    options: tuple[str, ...]
    example: str


class HeadDims(NamedTuple):
    """The head dimensions for which a file has kernels, for one architecture.

    Of kernels whose V has a head dimension of its own (FA3's 192/128) none counts here.
    """

    generation: str
    direction: str
    dtype: str
    arch: str
    head_dims: tuple[int, ...]


def group_kernels(kernels: Iterable[Kernel]) -> tuple[KernelGroup, ...]:
    """FlashAttention's kernels first, by direction, type and head dimension; then by name."""
    members: dict[tuple[str, FlashKernel | None], list[Kernel]] = {}
    options: dict[tuple[str, FlashKernel | None], set[str]] = {}
    costly = 0
    for kernel in kernels:
        costly += not _cheap(kernel.name)
        flash = flash_kernel(kernel.name) if costly <= MAX_COSTLY else None
        if flash is None:
            key: tuple[str, FlashKernel | None] = (base_name(kernel.name), None)
        else:
            shared = flash._replace(options=())
            key = (_label(shared), shared)
            options.setdefault(key, set()).update(flash.options)
        members.setdefault(key, []).append(kernel)
    groups = []
    for key, group in members.items():
        counts: dict[str, int] = {}
        for kernel in group:
            for arch in kernel.archs:
                counts[arch] = counts.get(arch, 0) + 1
        archs = tuple((arch, counts[arch]) for arch in in_order(counts))
        some = tuple(sorted(options.get(key, ())))
        full = {a for kernel in group for a in kernel.archs if a not in kernel.small}
        empty = tuple(a for a, _count in archs if key[1] is not None and a not in full)
        groups.append(KernelGroup(*key, len(group), archs, empty, some, group[0].name))
    return tuple(sorted(groups, key=_group_key))


def flash_head_dims(groups: Iterable[KernelGroup]) -> tuple[HeadDims, ...]:
    """For which head dimensions the file has FlashAttention kernels, by architecture.

    Kernels without code do not count.
    """
    dims: dict[tuple[str, str, str, str], set[int]] = {}
    for group in groups:
        flash = group.flash
        if flash is None or flash.head_dim is None or flash.direction == HELPER:
            continue
        if flash.head_dim_v != flash.head_dim:
            continue
        for arch in (arch for arch, _count in group.archs if arch not in group.empty):
            key = (flash.generation, flash.direction, flash.dtype or "unknown type", arch)
            dims.setdefault(key, set()).add(flash.head_dim)
    order = in_order({key[3] for key in dims})
    rows = [HeadDims(*key, tuple(sorted(values))) for key, values in dims.items()]
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.generation, _DIRECTIONS.index(row.direction), row.dtype, order.index(row.arch)
            ),
        )
    )  # fmt: skip


def _group_key(group: KernelGroup) -> tuple[Any, ...]:
    flash = group.flash
    if flash is None:
        return (1, group.label.lower(), group.label)
    return (
        0,
        flash.generation,
        _DIRECTIONS.index(flash.direction),
        flash.name,
        flash.dtype or "",
        flash.head_dim or 0,
        flash.head_dim_v or 0,
        flash.mask or "",
    )


def _label(flash: FlashKernel) -> str:
    """``flash_fwd_kernel<hdim 128, fp16, causal>``."""
    said = []
    if flash.head_dim is not None:
        value = flash.head_dim_v
        both = f"{flash.head_dim}/{value}" if value not in (None, flash.head_dim) else ""
        said.append(f"hdim {both or flash.head_dim}")
    said += [word for word in (flash.dtype, flash.mask) if word]
    return f"{flash.name}<{', '.join(said)}>" if said else flash.name


#: What every FlashAttention kernel's mangled name holds. Only these names are demangled.
_FLASH_NAME = re.compile(r"\d(flash_(?:fwd|bwd)_\w*?kernel)I|5flash\d|Collective(?:Mainloop)")
#: Names that repeat so much of themselves (S_, S0_, T_) are demangled in a process of their own,
#: which takes milliseconds: FlashAttention 3 has 22 such kernels, a hostile file any number.
MAX_COSTLY = 300
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_INTEGER = re.compile(r"-?\d+")
_FA3_KERNEL = re.compile(r"\bflash::(FlashAttn(?:Fwd|Bwd)\w*)<")


def _cheap(name: str) -> bool:
    return len(_REFERENCE.findall(name)) <= MANY_REFERENCES


def flash_kernel(name: str) -> FlashKernel | None:
    """What a mangled name says when it is a FlashAttention kernel, else None."""
    if _FLASH_NAME.search(name) is None:
        return None
    text = demangle(name)
    own = qualified_name(text)
    table = read_flash_kernels()
    short = own.partition("<")[0].rpartition("::")[2]
    if short in table["fa2"]:
        return _fa2(short, template_arguments(own), table)
    found = _FA3_KERNEL.search(own)
    if found is not None:
        return _fa3(found[1], own[found.end() - 1 :], table)
    return None


def _fa2(name: str, arguments: list[str], table: dict[str, Any]) -> FlashKernel:
    entry = table["fa2"][name]
    at = next((i for i, text in enumerate(arguments) if "_kernel_traits<" in text), None)
    if at is None:
        return FlashKernel("FA2", name, entry["direction"], None, None, None, None, ())
    traits = template_arguments(arguments[at])
    rest = arguments[at + 1 :]
    head_dim = int(traits[0]) if traits and _INTEGER.fullmatch(traits[0]) else None
    dtype = _dtype(traits, table)
    mask, options = _switches(entry["parameters"].get(str(len(rest))), rest)
    if not entry["parameters"]:
        mask = ""
    return FlashKernel("FA2", name, entry["direction"], head_dim, head_dim, dtype, mask, options)


def _fa3(name: str, text: str, table: dict[str, Any]) -> FlashKernel:
    """Of ``FlashAttnFwdSm90<CollectiveMainloopFwdSm90<...>, ...>`` from its ``<`` on."""
    for argument in template_arguments(text):
        mainloop = argument.partition("<")[0].rpartition("::")[2]
        entry = table["fa3"].get(mainloop)
        if entry is None:
            continue
        own = template_arguments(argument)
        tag = next((i for i, part in enumerate(own) if part.startswith("cutlass::arch::")), None)
        shape = own[entry["shape"]] if len(own) > entry["shape"] else ""
        numbers = [int(number) for number in re.findall(r"C<(\d+)>", shape)]
        if tag is None or len(numbers) != 3:
            break
        rest = own[tag + 1 :]
        value_at = entry["value_dim"].get(str(len(rest)))
        value = own[value_at] if value_at is not None else ""
        mask, options = _switches(entry["parameters"].get(str(len(rest))), rest)
        return FlashKernel(
            "FA3", name, entry["direction"], numbers[2],
            int(value) if _INTEGER.fullmatch(value) else numbers[2],
            _dtype(own, table), mask, options,
        )  # fmt: skip
    return FlashKernel("FA3", name, HELPER, None, None, None, "", ())


def _switches(
    names: list[str | None] | None, values: list[str]
) -> tuple[str | None, tuple[str, ...]]:
    """The mask, and the other switches that are on; a mask of None for unknown parameters."""
    if names is None:
        return None, ()
    on = [name for name, value in zip(names, values, strict=True) if name and value == "true"]
    mask = next((name for name in on if name in _MASKS), "")
    return mask, tuple(name for name in on if name not in _MASKS)


def _dtype(arguments: list[str], table: dict[str, Any]) -> str | None:
    for text in arguments:
        if text in table["types"]:
            dtype: str = table["types"][text]
            return dtype
    return None


@lru_cache(maxsize=1)
def read_flash_kernels() -> dict[str, Any]:
    """The shipped table of FlashAttention's template parameters."""
    import json

    with open(FLASH_FILE, encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


def template_arguments(text: str) -> list[str]:
    """The arguments of the first template argument list: of ``f<a, g<b> >`` ``a``, ``g<b>``."""
    start = text.find("<")
    arguments: list[str] = []
    if start < 0:
        return arguments
    depth, begin = 0, start + 1
    for match in _BRACKETS.finditer(text, start):
        char = match[0]
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        if depth == 0 or (depth == 1 and char == ","):
            arguments.append(text[begin : match.start()].strip())
            begin = match.end()
        if depth == 0:
            break
    return [argument for argument in arguments if argument]


_BRACKETS = re.compile(r"[<>(){}\[\],]")
_LENGTH = re.compile(r"\d+")


@lru_cache(maxsize=65_536)
def base_name(name: str) -> str:
    """A kernel's qualified name without template arguments and parameters.

    Kernels are functions at namespace scope, so their mangled names begin with plain
    lengths and names, which are read here; others are demangled, if that costs little. Source
    of the grammar: Itanium C++ ABI, "Mangling" (5.1.3 Operator and other names).
    """
    if not name.startswith("_Z"):
        return name
    nested = name.startswith("_ZN")
    at = 3 if nested else 2
    parts: list[str] = []
    while at < len(name):
        if name.startswith("St", at) and not parts:
            parts.append("std")
            at += 2
            continue
        if name[at] == "L":  # internal linkage
            at += 1
        length = _LENGTH.match(name, at)
        if length is None:
            break
        at = length.end() + int(length[0][:5])
        parts.append(name[length.end() : at])
        if not nested and parts[0] != "std":
            break
    if not parts or at >= len(name) or name[at] in "BKVr" or (nested and name[at] not in "IE"):
        return _without_templates(qualified_name(demangle(name))) if _cheap(name) else name
    return "::".join(_shown(part) for part in parts if not part.startswith("_INTERNAL_"))


def _shown(part: str) -> str:
    return "(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part


def _without_templates(text: str) -> str:
    """``a::f`` of ``a::f<b<c> >``."""
    start = text.find("<")
    return text[:start] if start > 0 and not text.startswith("operator") else text


def kernels_view(inventory: KernelInventory, *, names: bool = False) -> dict[str, object]:
    """The inventory in the words of the JSON contract: the object ``kernels`` of a target.

    With ``names`` each kernel's mangled name is in it too, some 300 bytes a kernel.
    """
    groups = group_kernels(inventory.kernels)
    view: dict[str, object] = {
        "count": len(inventory.kernels),
        "archs": list(inventory.archs),
        "images_read": inventory.read,
        "images_unread": [{"arch": arch, "images": images} for arch, images in inventory.unread],
        "complete": inventory.complete,
        "needs_device_link": inventory.not_linked,
        "groups": [_group_view(group) for group in groups],
        "head_dims": [
            {**row._asdict(), "head_dims": list(row.head_dims)} for row in flash_head_dims(groups)
        ],
        "problems": list(inventory.problems),
    }
    if names:
        view["names"] = [
            {"symbol": kernel.name, "archs": list(kernel.archs)} for kernel in inventory.kernels
        ]
    return view


def _group_view(group: KernelGroup) -> dict[str, object]:
    flash = group.flash
    return {
        "label": group.label,
        "kernels": group.kernels,
        "archs": [
            {"arch": arch, "kernels": count, "empty": arch in group.empty}
            for arch, count in group.archs
        ],
        "options": list(group.options),
        "example": group.example,
        "flash": None
        if flash is None
        else {
            "generation": flash.generation,
            "kernel": flash.name,
            "direction": flash.direction,
            "head_dim": flash.head_dim,
            "head_dim_v": flash.head_dim_v,
            "dtype": flash.dtype,
            "mask": flash.mask,
        },
    }
