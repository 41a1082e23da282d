"""Packages whose versions are read out of a text."""

from __future__ import annotations

#: Packages of which a version is worth a line.
PACKAGES = (
    "flash-attn", "flash-attn-3", "vllm", "xformers", "bitsandbytes", "mamba-ssm", "causal-conv1d",
    "transformer-engine", "transformer-engine-cu12", "transformer-engine-torch", "torchvision",
    "torchaudio", "torchao", "triton", "deepspeed", "apex", "mmcv", "mmcv-full", "detectron2",
    "mmdet", "mmsegmentation",
    "torch-scatter", "torch-sparse", "torch-cluster", "pytorch3d", "exllamav2", "auto-gptq",
    "exllamav3", "autoawq", "sgl-kernel", "sglang-kernel", "sglang", "flashinfer-python",
    "flashinfer", "kernels",
    "transformers", "accelerate", "numpy", "pybind11", "mkl", "torchtext", "natten", "fbgemm-gpu",
    "tilelang", "sageattention", "spconv", "gptqmodel", "llama-cpp-python", "cupy",
    "flash-linear-attention", "nvidia-nvjitlink-cu12", "nvidia-cusparse-cu12", "nvidia-nccl-cu12",
    "nvidia-nccl-cu13", "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13",
    "nvidia-cublas-cu12", "nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-runtime", "nvidia-cublas-cu11", "nvidia-cuda-nvrtc-cu12", "pytorch", "torch",
    "libstdcxx-ng", "torch-xla", "torch-npu", "intel-extension-for-pytorch", "pytorch-cuda",
    "cudatoolkit", "ninja", "gsplat", "tiny-cuda-nn", "tinycudann", "torch-tensorrt", "pyg-lib",
    "tensorrt-llm", "tensorrtllm-backend", "lmdeploy", "k2", "onnxruntime-gpu",
    "fairseq2n", "fairseq2", "ctranslate2", "dgl", "lmcache", "nunchaku", "nvidia-ammo", "aiter",
    "torch-harmonics",
    "mish-cuda", "torchcodec",
)  # fmt: skip
