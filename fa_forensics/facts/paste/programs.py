"""Programs without Python: which text is of one, and which products of NVIDIA it names."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

#: What a text has in which Python or torch plays a part.
_OF_PYTHON = lazily(
    r"torch|python|\.py\b|\bpip3?\b|\bconda|importerror|oserror|runtimeerror|traceback|\bimport\b"
    r"|comfyui|jupyter|colab|transformers|\bcu1[123]\d\b|-packages/|jetson|jetpack|tensorflow"
    r"|onnxruntime|llama[-_]cpp|whisper|vllm|sglang|bitsandbytes|paddle|\bjax"
)
#: NVIDIA's products that are given out once for each CUDA, as texts name them.
_PRODUCTS = (
    ("tensorrt", "TensorRT"), ("nvinfer", "TensorRT"), ("trtexec", "TensorRT"),
    ("cudnn", "cuDNN"), ("deepstream", "DeepStream"), ("triton", "Triton Inference Server"),
)  # fmt: skip
#: What shows a program of somebody's own; a bare line of the loader is most often an import's.
_OF_A_PROGRAM = lazily(
    r"core dumped|核心已转储|error while loading shared libraries|building (?:the )?engine|trtexec"
    r"|nvinfer|tensorrt|deepstream|\.(?:cpp|cc|cu|exe)\b|(?:^|\s)\./\w|\bcmake\b|\bdarknet\b|\bffmpeg\b",
    re.MULTILINE,
)


def without_python(line: Line) -> dict[str, str]:
    """``alone`` with "yes" for a text of a program without Python, and ``products`` in it.

    Programs in C++ load CUDA's libraries by the loader's path alone: what torch's wheels bring
    says nothing of them.
    """
    lower = line.source.lower
    if len(lower) > 20_000 or not _OF_A_PROGRAM.search(lower) or _OF_PYTHON.search(lower):
        return {}
    named = dict.fromkeys(title for word, title in _PRODUCTS if word in lower)
    return {"alone": "yes", "products": ", ".join(named)}
