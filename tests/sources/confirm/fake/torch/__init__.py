"""A package named torch that does what the environment says, to try the ways an import ends.

`FAKE_TORCH`: ok, raise, exit, segfault, hang; `FAKE_CUDA`: 1 for a machine with a device,
`broken` for one whose driver fails. The tensors hold nothing: `difference` decides what a
comparison of two of them comes to.
"""

import os
import resource
import signal
import sys
import time
import types

how = os.environ["FAKE_TORCH"]
if how == "raise":
    raise ImportError("libcudart.so.12: cannot open shared object file")
if how == "exit":
    os._exit(3)
if how == "segfault":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "hang":
    time.sleep(120)

__version__ = "2.99.0+fake"
version = types.SimpleNamespace(cuda="12.9", hip=None)
print("sys.path", sys.path)
print("cwd", os.getcwd(), os.listdir())
print("core", resource.getrlimit(resource.RLIMIT_CORE))

float16, bfloat16, float32 = "float16", "bfloat16", "float32"
difference = 0.001


class Tensor:
    """Every operation gives a tensor; its one number is the difference."""

    def __getattr__(self, name):
        return lambda *args, **options: self

    def __matmul__(self, other):
        return self

    __sub__ = __truediv__ = __matmul__

    def item(self):
        return difference


def manual_seed(seed):
    return seed


def randn(shape, dtype):
    return Tensor()


def softmax(tensor, dim):
    return tensor


class no_grad:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def is_available():
    if os.environ.get("FAKE_CUDA") == "broken":
        raise RuntimeError("CUDA unknown error")
    return os.environ.get("FAKE_CUDA") == "1"


cuda = types.SimpleNamespace(
    is_available=is_available,
    get_device_capability=lambda index: (9, 0),
    get_device_name=lambda index: "Fake H100",
    synchronize=lambda: None,
)
_C = types.SimpleNamespace(_cuda_getDriverVersion=lambda: 12090)
ops = types.SimpleNamespace(loaded_libraries=set())
