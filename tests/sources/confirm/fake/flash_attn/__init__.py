"""A stand-in for flash_attn: its function ends as `FAKE_KERNEL` says."""

import importlib.util
import os
import signal
import sys
import time
import types

import torch

how = os.environ.get("FAKE_KERNEL")
if how == "no-einops":
    raise ImportError("No module named 'einops'")
if how != "unused":
    # The tests' extension has no PyInit, so stand in for the import of it.
    extension = types.ModuleType("flash_attn_2_cuda")
    extension.__file__ = importlib.util.find_spec("flash_attn_2_cuda").origin
    sys.modules["flash_attn_2_cuda"] = extension


def flash_attn_func(q, k, v):
    if how == "raise":
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hang":
        time.sleep(120)
    if how == "wrong":
        torch.difference = 0.5
    if how == "nan":
        torch.difference = float("nan")
    return (q, None) if how == "tuple" else q
