"""Functions of bitsandbytes' libraries for GPUs, by which a text tells whose they are.

Source: nm -D of libbitsandbytes_cuda121.so of bitsandbytes 0.44 to 0.49, and csrc/pythonInterface.c
of 0.35 to 0.42 (cget_col_row_stats, clars); read 2026-11-30. libbitsandbytes_cpu.so has none of
them: its own have _cpu_ in their names.
"""

from __future__ import annotations

from fa_forensics.patterns import lazily

_FOR_GPU = lazily(
    r"(?!\w*_cpu_)c(?:(?:de)?quant(?:ize|_mm)\w*|int8_vector_quant|(?:batched_)?igemm\w*"
    r"|(?:adam|adagrad|ademamix|lion|lars|momentum|rmsprop)\w*\d{1,2}bit\w*"
    r"|get_(?:col_row_stats|row_stats|managed_ptr)|gemm_4bit_inference\w*|gemm_host_fp\d\d"
    r"|spmm_coo\w*|transform_\w+|extractOutliers_\w+|estimate_quantiles_\w+"
    r"|percentile_clipping_\w+|histogram_scatter_add_2d)"
)


def is_for_gpu(name: str | None) -> bool:
    """Whether a plain name is one of bitsandbytes' functions for GPUs."""
    return bool(name) and len(name or "") < 80 and _FOR_GPU.fullmatch(name or "") is not None
