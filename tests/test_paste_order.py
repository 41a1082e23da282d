"""Pasted text: the first cause comes first, its consequences and repetitions are left out."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import Paste, read_paste

DEVICE = "_ZN3c104cuda9SetDeviceEi"
SITE = "/opt/conda/lib/python3.11/site-packages"
CACHE = "/home/u/.cache/torch_extensions/py311_cu124/cpu_adam/cpu_adam.so"
UNDEFINED = f"ImportError: {SITE}/vllm/_C.abi3.so: undefined symbol: {DEVICE}"


def whats(text: str) -> list[str]:
    return [mention.what for mention in read_paste(text).mentions]


def test_the_build_that_failed_on_one_rank_explains_the_file_that_others_miss() -> None:
    paste = read_paste(f"""[rank2]: Traceback (most recent call last):
[rank2]:   File "{SITE}/deepspeed/ops/op_builder/builder.py", line 540, in jit_load
[rank2]: ImportError: {CACHE}: cannot open shared object file: No such file or directory
[rank0]: FAILED: cpu_adam.so
[rank0]: /usr/bin/ld: cannot find -lcurand: No such file or directory
[rank0]: collect2: error: ld returned 1 exit status
[rank0]: ninja: build stopped: subcommand failed.
[rank0]: RuntimeError: Error building extension 'cpu_adam'
[rank3]: ImportError: {CACHE}: cannot open shared object file: No such file or directory
[rank2]: AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'
""")
    (cause,) = paste.mentions
    assert (cause.what, cause.library, cause.stream) == (
        "jit-build-failed",
        "libcurand.so",
        "rank 0",
    )
    assert cause.file == CACHE


def test_ranks_that_say_the_same_are_one() -> None:
    lines = [f"[rank{rank}]: {UNDEFINED}" for rank in (0, 1, 2, 3, 7)]
    (cause,) = read_paste("\n".join(lines)).mentions
    assert cause.detail["ranks"] == "0-3,7"
    assert cause.number == 1


def test_interleaved_ranks_keep_their_own_lines_apart() -> None:
    paste = read_paste(f"""[rank0]:     import flash_attn_2_cuda
[rank1]:     import causal_conv1d_cuda
[rank0]: ImportError: /x/a.so: undefined symbol: {DEVICE}
[rank1]: ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory
""")
    imports = {mention.what: mention.detail["import"] for mention in paste.mentions}
    assert imports == {
        "undefined-symbol": "flash_attn_2_cuda",
        "missing-library": "causal_conv1d_cuda",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # what a banner, a wrapper or the end of the process adds
        (f"RuntimeError: Failed to import a.b because of the following error (look up to see its "
         f"traceback):\n{UNDEFINED}", ["undefined-symbol"]),
        (f"WARNING 08-12 10:00:00 x.py:1] Failed to import from vllm._C with {UNDEFINED!r}\n"
         "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
         ["undefined-symbol"]),
        (f"{UNDEFINED}\nSegmentation fault (core dumped)", ["undefined-symbol"]),
        (f"ModuleNotFoundError: No module named 'triton'\n{UNDEFINED}", ["undefined-symbol"]),
        (f"- {UNDEFINED}\n- ModuleNotFoundError: No module named 'vllm._C'", ["undefined-symbol"]),
        ("NVIDIA A with CUDA capability sm_120 is not compatible with the current PyTorch "
         "installation.\nRuntimeError: CUDA error: no kernel image is available for execution on "
         "the device", ["gpu-not-supported-by-torch"]),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'\nninja: build stopped: "
         "subcommand failed.\nRuntimeError: Error building extension 'x'",
         ["arch-unsupported-by-nvcc"]),
        ("hipErrorNoBinaryForGpu: Unable to find code object\nAborted (core dumped)",
         ["hip-error"]),
        # two that have nothing to do with each other
        (f"{UNDEFINED}\nImportError: libcudart.so.11.0: cannot open shared object file: No such "
         "file or directory", ["undefined-symbol", "missing-library"]),
        # a listing stands behind the error that it was made for
        (f"                 U {DEVICE}\n{UNDEFINED}", ["undefined-symbol", "nm-line"]),
        # the only thing there is
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
         ["missing-attribute"]),
        ("Segmentation fault (core dumped)", ["segfault"]),
    ],
)  # fmt: skip
def test_what_follows_from_another_failure_is_left_out(text: str, expected: list[str]) -> None:
    assert whats(text) == expected


def test_two_cuda_runtimes_for_one_file_are_a_failure_of_their_own() -> None:
    paste = read_paste("""$ ldd /x/_C.so
\tlibcudart.so.11.0 => /usr/local/cuda-11.8/lib64/libcudart.so.11.0 (0x00007f)
\tlibcudart.so.12 => /x/nvidia/cuda_runtime/lib/libcudart.so.12 (0x00007e)
""")
    cause = paste.mentions[0]
    assert (cause.what, cause.file) == ("several-cuda-runtimes", "/x/_C.so")
    assert cause.detail["names"] == "libcudart.so.11.0 libcudart.so.12"


def test_the_wrapper_is_remembered() -> None:
    (cause,) = read_paste(f"Failed to import from vllm._C with {UNDEFINED!r}").mentions
    assert cause.detail["wrapper"] == "vllm._C"


def test_a_title_and_the_traceback_below_it_are_one() -> None:
    (cause,) = read_paste(f"undefined symbol: {DEVICE} after upgrade\n\n{UNDEFINED}").mentions
    assert cause.file == f"{SITE}/vllm/_C.abi3.so"
    assert cause.number == 3


def test_two_files_that_lack_the_same_symbol_are_two() -> None:
    text = f"/x/a.so: undefined symbol: {DEVICE}\n/x/b.so: undefined symbol: {DEVICE}"
    assert [mention.file for mention in read_paste(text).mentions] == ["/x/a.so", "/x/b.so"]


BANNER = f"""[sgl_kernel] CRITICAL: Could not load any common_ops library!
1. Architecture-specific pattern: {SITE}/sgl_kernel/sm100/common_ops.* - found files: ['x']
GPU Info:
- Compute capability: 86
- Expected variant: SM86 (precise math for compatibility)
Error details from previous import attempts:
- ImportError: {SITE}/sgl_kernel/sm100/common_ops.abi3.so: undefined symbol: {DEVICE}
- ModuleNotFoundError: No module named 'common_ops'
"""


def test_a_banner_that_speaks_of_the_gpu_is_read_down_to_the_error() -> None:
    (cause,) = read_paste(BANNER).mentions
    assert (cause.what, cause.symbol) == ("undefined-symbol", DEVICE)


PIP = """Collecting torch-x
  Running command pip subprocess to install build dependencies
  Installing build dependencies: started
  Collecting torch>=1.5
    Using cached torch-1.11.0-cp37-cp37m-manylinux1_x86_64.whl (750.6 MB)
  Successfully installed setuptools-62.3.2 torch-1.11.0 wheel-0.37.1
"""


def test_the_torch_of_an_isolated_build_is_not_the_installed_one() -> None:
    paste = read_paste(PIP)
    assert [(m.what, m.detail["torch"]) for m in paste.mentions] == [("build-isolation", "1.11.0")]
    assert paste.versions["build_torch"] == "1.11.0"
    assert "torch" not in paste.versions
    assert read_paste(PIP + "\n[pip3] torch==1.8.1").versions["torch"] == "1.8.1"


def test_a_module_that_a_build_misses_is_told_as_such() -> None:
    paste: Paste = read_paste("""Collecting flash-attn
  error: subprocess-exited-with-error
  \u2570\u2500> [6 lines of output]
        File "/tmp/pip-install-x/flash-attn_y/setup.py", line 19, in <module>
          import torch
      ModuleNotFoundError: No module named 'torch'
""")
    (cause,) = paste.mentions
    assert (cause.what, cause.detail["package"]) == ("torch-missing-in-build", "flash-attn")
