"""The table of GPU coverage: architectures of a file against GPUs, as text and as Markdown.

The view is what JSON holds under ``coverage``: plain mappings and lists. Text is ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fa_forensics.render.style import escape, flow, mappings, pieces, size_text

_CELLS = {"native": "yes", "jit": "JIT", "none": "-"}
_CODE_HEAD = ("arch", "cubins", "PTX", "size")


def coverage_table(view: Mapping[str, object], width: int) -> list[str]:
    """The table, then what its columns are, then what is not plain in it. Lines of text."""
    gpus = mappings(view, "gpus")
    rows = mappings(view, "rows")
    if not rows or not gpus:
        return []
    columns = [_text(gpu, "capability") for gpu in gpus]
    cells = [list(_CODE_HEAD) + columns]
    cells += [_cells(row) for row in rows]
    cells.append(["all", "", "", "", *(_total(gpu) for gpu in gpus)])
    wide = [max(len(line[at]) for line in cells) for at in range(len(cells[0]))]
    lines = [_line(line, wide) for line in cells]
    lines.append("")
    lines += _legend(gpus, width)
    return lines


def coverage_markdown(view: Mapping[str, object]) -> list[str]:
    """The same as a Markdown table; the GPUs' names stand in its head."""
    gpus = mappings(view, "gpus")
    rows = mappings(view, "rows")
    if not rows or not gpus:
        return []
    head = [*_CODE_HEAD, *(f"{_short(gpu)} ({_text(gpu, 'capability')})" for gpu in gpus)]
    lines = [_bar(head), _bar(["---", "---:", "---:", "---:", *(":-:" for _ in gpus)])]
    lines += [_bar(_cells(row)) for row in rows]
    lines.append(_bar(["**all**", "", "", "", *(f"**{_total(gpu)}**" for gpu in gpus)]))
    return lines


def runs_on_parts(view: Mapping[str, object]) -> list[str]:
    """One sentence in parts: ``8.0 8.6 8.9 (sm_80)``, ``9.0 (sm_90a)``, ``not on 7.0 7.5``."""
    gpus = mappings(view, "gpus")
    groups: dict[str, list[str]] = {}
    for gpu in gpus:
        groups.setdefault(_how(gpu), []).append(_text(gpu, "capability"))
    refused = groups.pop("", [])
    parts = [f"{' '.join(names)} ({how})" for how, names in groups.items()]
    if refused:
        parts.append(f"not on {' '.join(refused)}")
    return parts


def gpu_sentences(view: Mapping[str, object]) -> list[str]:
    """One sentence for each GPU: what runs there and why, or why nothing does."""
    out = []
    for gpu in mappings(view, "gpus"):
        called = f"{escape(_text(gpu, 'name'))} ({_text(gpu, 'capability')})"
        said = {"native": "runs", "jit": "runs after the driver compiled it"}
        verb = said.get(_text(gpu, "runs"), "does not run")
        text = f"{called}: {verb}: {escape(_text(gpu, 'reason'))}"
        if gpu.get("driver_ok") is False:
            text += f"; but {escape(_text(gpu, 'driver_reason'))}"
        elif _text(gpu, "needs_driver_for_cuda") and gpu.get("driver_ok") is None:
            text += f"; needs a driver for CUDA {_text(gpu, 'needs_driver_for_cuda')} or newer"
        out.append(text)
    return out


def _how(gpu: Mapping[str, object]) -> str:
    if gpu.get("runs") == "none":
        return ""
    arch = escape(_text(gpu, "arch"))
    return f"{arch} by JIT" if gpu.get("runs") == "jit" else arch


def _cells(row: Mapping[str, object]) -> list[str]:
    runs = row.get("runs")
    cells = [_CELLS.get(str(value), "?") for value in runs] if isinstance(runs, Sequence) else []
    return [
        escape(_text(row, "arch")),
        _count(row, "cubins"),
        _count(row, "ptx"),
        size_text(_number(row, "bytes")),
        *cells,
    ]


def _total(gpu: Mapping[str, object]) -> str:
    """What the file as a whole has for a GPU; ``part`` where some sources have nothing."""
    runs = _text(gpu, "runs")
    sources = gpu.get("sources")
    if runs != "none" and isinstance(sources, Mapping) and sources.get("without"):
        return "part"
    return _CELLS.get(runs, "?")


def _legend(gpus: Sequence[Mapping[str, object]], width: int) -> list[str]:
    parts = [f"{_text(gpu, 'capability')} {_label(gpu)};" for gpu in gpus]
    if parts:
        parts[-1] = parts[-1][:-1]
    lines = flow(parts, width, "", "")
    shown = {_total(gpu) for gpu in gpus}
    notes = []
    if "JIT" in shown:
        notes.append("JIT: the driver compiles the PTX at the first use.")
    if "part" in shown:
        notes.append("part: some of the compiled sources have no code for this GPU.")
    for note in notes:
        lines += flow(pieces(note), width, "", "")
    return lines


def _short(gpu: Mapping[str, object]) -> str:
    return _label(gpu).partition(",")[0]


def _label(gpu: Mapping[str, object]) -> str:
    return escape(_text(gpu, "name") or _text(gpu, "family"))


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    first = cells[0].ljust(wide[0])
    return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], wide[1:], strict=True))])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _count(row: Mapping[str, object], key: str) -> str:
    number = _number(row, key)
    return str(number) if number else "-"


def _number(row: Mapping[str, object], key: str) -> int:
    value = row.get(key)
    return value if isinstance(value, int) else 0


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
