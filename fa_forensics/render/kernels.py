"""The kernel inventory as text: head dimensions first, then one row a group of kernels.

Takes the object ``kernels`` of the JSON contract, so that text and JSON cannot part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fa_forensics.render.style import Paint, counted, escape, flow, painter, sentence

#: Groups that are not FlashAttention's are shown up to this many, the largest first.
MOST_OTHERS = 40
#: The column of names: never narrower, and wider only as far as the line has room.
NAME_WIDTH = 36

View = Mapping[str, Any]


def kernel_lines(
    view: View, width: int, paint: Paint | None = None, *, everything: bool = False
) -> list[str]:
    """The inventory in lines of about ``width`` columns.

    ``everything`` shows all groups; without it the many small ones of a large library are
    only counted.
    """
    paint = paint or painter(False)
    lines = _head(view, width, paint)
    lines += _head_dims(view["head_dims"], width, paint)
    flash = [group for group in view["groups"] if group["flash"]]
    lines += _uneven(flash, view["archs"], width, paint)
    others = [group for group in view["groups"] if not group["flash"]]
    shown = others
    if not everything and len(others) > MOST_OTHERS:
        shown = sorted(others, key=lambda group: -group["kernels"])[:MOST_OTHERS]
    lines += _table([*flash, *shown], width, paint)
    if len(shown) < len(others):
        left = others_left(others, shown)
        lines += ["", *sentence(f"{left}; --format json lists them all", width, "", "  ")]
    return lines


def others_left(others: Sequence[View], shown: Sequence[View]) -> str:
    """``and 601 more kinds of kernels, 2,345 kernels in all``."""
    kernels = sum(group["kernels"] for group in others) - sum(g["kernels"] for g in shown)
    kinds = counted(len(others) - len(shown), "more kind")
    return f"and {kinds} of kernels, {kernels:,} kernels in all"


def _head(view: View, width: int, paint: Paint) -> list[str]:
    if not view["count"]:
        text = "no kernels" if view["complete"] else "no kernels could be read"
    else:
        archs = ", ".join(view["archs"])
        kernels = f"{view['count']:,} " + ("kernel" if view["count"] == 1 else "kernels")
        text = f"{kernels} for {archs}"
    images = view["images_read"]
    text += f" ({images:,} {'image' if images == 1 else 'images'} read)"
    lines = sentence(text, width, "", "  ")
    if view["needs_device_link"]:
        lines += sentence(
            "this GPU code was not device-linked (nvcc -dlink, CUDA_SEPARABLE_COMPILATION): "
            "none of these kernels can be launched",
            width,
            paint("warning: ", "yellow"),
            "  ",
        )
    for problem in view["problems"]:
        lines += sentence(problem, width, paint("not read: ", "yellow"), "  ")
    return lines


def _head_dims(rows: Sequence[View], width: int, paint: Paint) -> list[str]:
    """``forward  bf16  32 64 96 128  (sm_80, sm_90)``: one line for all alike architectures."""
    alike: dict[tuple[str, str, str, tuple[int, ...]], list[str]] = {}
    for row in rows:
        key = (row["generation"], row["direction"], row["dtype"], tuple(row["head_dims"]))
        alike.setdefault(key, []).append(row["arch"])
    if not alike:
        return []
    lines = ["", paint("head dimensions of the FlashAttention kernels", "bold")]
    names = [f"{key[0]} {key[1]}" for key in alike]
    wide, types = max(map(len, names)), max(len(key[2]) for key in alike)
    for (key, archs), name in zip(alike.items(), names, strict=True):
        start = f"  {name:{wide}}  {key[2]:{types}}  "
        dims = [str(dim) for dim in key[3]]
        lines += flow([*dims, f"({', '.join(archs)})"], width, start, " " * len(start))
    return lines


def _uneven(groups: Sequence[View], archs: Sequence[str], width: int, paint: Paint) -> list[str]:
    """``only for sm_90a: FlashAttnFwdSm90``: kernels that some architectures lack, or have empty.

    FlashAttention 3 has other kernels for Ampere than for Hopper.
    """
    covered: dict[str, dict[str, None]] = {}
    for group in groups:
        own = covered.setdefault(group["flash"]["kernel"], {})
        own.update((row["arch"], None) for row in group["archs"] if not row["empty"])
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, own in covered.items():
        if own and len(own) < len(archs):
            alike.setdefault(tuple(arch for arch in archs if arch in own), []).append(name)
    lines = []
    for some, names in alike.items():
        text = f"only for {', '.join(some)}: {', '.join(escape(name) for name in names)}"
        lines += sentence(text, width, "  ", "    ")
    return ["", paint("not for every architecture", "bold"), *lines] if lines else []


def _table(groups: Sequence[View], width: int, paint: Paint) -> list[str]:
    if not groups:
        return []
    archs: dict[str, None] = {}
    for group in groups:
        for row in group["archs"]:
            archs[row["arch"]] = None
    columns = sorted(archs, key=_arch_key)
    cells = sum(max(len(arch), 5) + 2 for arch in columns)
    if NAME_WIDTH + cells > width:
        lines = ["", paint("kernels", "bold"), *_listed(groups, columns, width)]
        return lines + _options(groups, width)
    room = min(max(len(group["label"]) for group in groups), width - cells)
    heads = "".join(f"  {arch:>5}" for arch in columns)
    lines = ["", paint(f"{'kernels':{room}}{heads}".rstrip(), "bold")]
    for group in groups:
        label = escape(group["label"])
        if len(label) > room:
            lines.append(label)
            label = ""
        lines.append(f"{label:{room}}{_cells(group, columns)}")
    return lines + _options(groups, width)


def _cells(group: View, columns: Sequence[str]) -> str:
    found = {row["arch"]: row for row in group["archs"]}
    text = ""
    for arch in columns:
        row = found.get(arch)
        cell = "-" if row is None else "empty" if row["empty"] else f"{row['kernels']:,}"
        text += f"  {cell:>{max(len(arch), 5)}}"
    return text


def _listed(groups: Sequence[View], columns: Sequence[str], width: int) -> list[str]:
    """Where the architectures do not fit side by side: a list of them below each name."""
    lines = []
    for group in groups:
        lines.append(escape(group["label"]))
        rows = group["archs"]
        cells = {"empty" if row["empty"] else f"x{row['kernels']:,}" for row in rows}
        if len(cells) == 1 and len(rows) == len(columns):
            lines.append(f"  {cells.pop()} for each architecture")
            continue
        parts = [
            f"{row['arch']} {'empty' if row['empty'] else 'x' + format(row['kernels'], ',')}"
            for row in rows
        ]
        commas = [f"{part}," for part in parts[:-1]] + parts[-1:]
        lines += flow(commas, width, "  ", "  ")
    return lines


def _options(groups: Sequence[View], width: int) -> list[str]:
    """What some of the kernels of one name do beside, and what "empty" means."""
    options: dict[str, set[str]] = {}
    for group in groups:
        if group["options"]:
            options.setdefault(group["flash"]["kernel"], set()).update(group["options"])
    lines = []
    for name, some in options.items():
        text = f"of {escape(name)} some have {', '.join(sorted(some, key=str.lower))}"
        lines += sentence(text, width, "", "  ")
    if any(row["empty"] for group in groups for row in group["archs"]):
        lines += sentence(
            "empty: compiled for this architecture to nothing but a return", width, "", "  "
        )
    return ["", *lines] if lines else []


def _arch_key(arch: str) -> tuple[int, str, bool]:
    """sm_80, compute_80, sm_90, sm_90a, sm_100."""
    prefix, _, rest = arch.partition("_")
    digits = rest.rstrip("abcdefghijklmnopqrstuvwxyz")
    return (int(digits) if digits.isdecimal() else 0, rest[len(digits) :], prefix != "sm")
