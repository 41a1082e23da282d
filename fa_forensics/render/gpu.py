"""The rows and tables of one target's GPU code: what is in it, where it runs, what built it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fa_forensics.render.coverage import coverage_table, gpu_sentences, runs_on_parts
from fa_forensics.render.style import (
    Paint,
    escape,
    mappings,
    natural_key,
    pieces,
    size_text,
)
from fa_forensics.report import GpuCode, TargetReport

Row = tuple[str, list[str]]

_KIND_ORDER = {"cubin": 0, "ptx": 1}


def gpu_rows(target: TargetReport, verbose: bool) -> list[Row]:
    """Architectures, then the GPUs they run on; what built them where that is of interest."""
    rows: list[Row] = []
    if target.gpu_code or not target.other_gpu_code:
        rows.append(("GPU code", gpu_parts(target.gpu_code)))
    for other in target.other_gpu_code:
        rows.append(("GPU code", pieces(escape(other.text))))
        rows += [("GPU code", pieces(escape(f"not read: {text}"))) for text in other.problems]
    if target.coverage is not None:
        rows += _coverage_rows(target.coverage)
    rows += _provenance_rows(target.provenance or {}, verbose)
    return rows


def gpu_tables(target: TargetReport, paint: Paint, width: int, *, table: bool) -> list[str]:
    """The table of coverage where it is wanted, the list of kernels where it was read.

    ``table`` stands for --verbose too: then every kind of kernel is shown.
    """
    lines: list[str] = []
    if table and target.coverage is not None:
        shown = coverage_table(target.coverage, width)
        lines += ["", paint("GPU coverage", "bold"), *shown] if shown else []
    if target.kernels is not None:
        from fa_forensics.render.kernels import kernel_lines

        lines += ["", *kernel_lines(target.kernels, width, paint, everything=table)]
    return lines


def gpu_parts(images: Sequence[GpuCode]) -> list[str]:
    """``sm_80 x62``, ``compute_90 x2``; kinds other than cubin and PTX are named."""
    if not images:
        return ["none found"]
    parts = []
    for image in sorted(images, key=lambda i: (_KIND_ORDER.get(i.kind, 9), natural_key(i.arch))):
        kind = "" if image.kind in _KIND_ORDER else f"{escape(image.kind)} "
        parts.append(f"{kind}{escape(image.arch)} x{image.count}")
    total = sum(image.bytes for image in images)
    return [*_comma(parts), f"({size_text(total)})"]


def _coverage_rows(view: Mapping[str, object]) -> list[Row]:
    if view.get("gpus_from") != "all":
        return [("GPU", pieces(text)) for text in gpu_sentences(view)]
    parts = [piece for part in _comma(runs_on_parts(view)) for piece in pieces(part)]
    return [("runs on", parts)] if parts else []


def _provenance_rows(view: Mapping[str, object], verbose: bool) -> list[Row]:
    """``built with 12.1, torch brings 13.0, the driver supports up to 12.4``."""
    kits = {str(kit.get("release")) for kit in mappings(view, "toolkits")}
    built = " and ".join(sorted(kits, key=natural_key))
    torch, driver = view.get("torch_cuda"), view.get("driver_cuda")
    if not built:
        return _left_rows(view) if verbose else []
    said = [f"built with {escape(built)}"]
    if isinstance(torch, str):
        said.append(f"torch brings {escape(torch)}")
    if isinstance(driver, str):
        said.append(f"the driver supports up to {escape(driver)}")
    majors = {text.partition(".")[0] for text in (*kits, torch) if isinstance(text, str)}
    rows: list[Row] = []
    if verbose or isinstance(driver, str) or len(majors) > 1:
        rows.append(("CUDA", [piece for part in _comma(said) for piece in pieces(part)]))
    return rows + (_left_rows(view) if verbose else [])


def _left_rows(view: Mapping[str, object]) -> list[Row]:
    """What the build left in the file beside: PTX version, options, directories."""
    rows: list[Row] = []
    for key, label in (("ptx_isa", "PTX ISA"), ("options", "options"), ("build_paths", "built in")):
        values = view.get(key)
        if isinstance(values, list) and values:
            shown = [escape(value) for value in values if isinstance(value, str)]
            rows.append((label, _comma(shown)))
    return rows


def _comma(parts: Sequence[str]) -> list[str]:
    return [part + "," for part in parts[:-1]] + list(parts[-1:])
