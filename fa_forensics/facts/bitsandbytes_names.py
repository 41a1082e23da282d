"""Functions of bitsandbytes' libraries for GPUs, by which a text tells whose they are.

Source: nm -D of libbitsandbytes_cuda121.so of bitsandbytes 0.44 to 0.49, and csrc/pythonInterface.c
of 0.35 to 0.42 (cget_col_row_stats, clars); read 2026-11-30. libbitsandbytes_cpu.so has none of
them: its own have _cpu_ in their names.
"""

from __future__ import annotations

from fa_forensics.patterns import lazily

_FOR_GPU = lazily(
    r"c(?:(?:de)?quantize(?:_blockwise_(?:fp32|[bf]p?f?16)(?:_[nf][fp]4)?)?"
    r"|dequant_mm_int32_fp16|int8_vector_quant|(?:batched_)?igemm"
    r"|igemmlt_(?:turing_|ampere_)?(?:8|32)(?:_rowscale)?"
    r"|(?:adam|adagrad|ademamix|lion|lars|momentum|rmsprop)"
    r"(?:32bit|_static_8bit|_8bit_blockwise)_\w+"
    r"|get_(?:col_row_stats|row_stats|managed_ptr)|gemm_4bit_(?:inference\w*|[bf]p?f?\d\d)"
    r"|gemm_host_fp\d\d|spmm_coo(?:_very_sparse_naive_\w{1,5})?|transform_row2\w+"
    r"|transform_(?:turing|ampere|8|32)(?:2|_)\w+|extractOutliers_(?:turing|ampere)"
    r"|estimate_quantiles_fp\d\d|percentile_clipping_g\d\d|histogram_scatter_add_2d)"
)


def is_for_gpu(name: str | None) -> bool:
    """Whether a plain name is one of bitsandbytes' functions for GPUs."""
    return bool(name) and len(name or "") < 80 and _FOR_GPU.fullmatch(name or "") is not None
