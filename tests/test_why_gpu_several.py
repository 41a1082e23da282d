"""Several GPUs in one text, programs that serve models, and builds that fit a release."""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.report_why import Answer

_NO_IMAGE = "no kernel image is available for execution on the device"


def _all(answer: Answer) -> str:
    return "\n".join((said(answer), *answer.help, *answer.notes))


def test_the_gpu_that_the_list_of_the_file_leaves_out_is_the_one() -> None:
    answer = first(
        f"'{_NO_IMAGE}'\n"
        "detectron2 arch flags     sm_75\n"
        "GPU 0                     GeForce RTX 2080\n"
        "GPU 1                     GeForce GTX 1070\n"
        "torchvision arch flags    sm_35, sm_50, sm_60, sm_70, sm_75",
        "detectron2 0.1.1, PyTorch 1.4.0, CUDA 10.0, Python 3.7.6",
    )
    text = _all(answer)
    assert answer.owner == "detectron2" and "GTX 1070 (compute capability 6.1)" in said(answer)
    assert "6.1;7.5" in text and "detectron2@v0.1.1" in text and "CUDA_VISIBLE_DEVICES" in text


def test_of_two_gpus_that_torch_serves_it_is_the_package() -> None:
    answer = first(
        _NO_IMAGE,
        "SGLang main, sgl_kernel 0.4.7, torch 2.13.0+cu130, RTX 3080 (sm_86) + RTX 4080 SUPER "
        "(sm_89), works on one GPU, always dies with TP=2",
    )
    text = _all(answer)
    # The package index: sgl-kernel ends at 0.3.21, and 0.4.0 is the first of sglang-kernel.
    assert answer.owner == "sglang-kernel" and "install --upgrade --no-cache-dir sglang-k" in text
    assert "8.6" in said(answer) and "8.9" in said(answer) and "does not name" not in text


@pytest.mark.parametrize(
    ("words", "gpu"),
    [
        ("B200, the same setup works on H100", "B200"),
        ("fails on V100, while it runs fine on an A100", "V100"),
        ("built on an A100, RTX 3090 here", "RTX 3090"),
    ],
)
def test_a_gpu_where_all_is_well_is_not_the_one(words: str, gpu: str) -> None:
    assert read_paste(f"RuntimeError: {_NO_IMAGE}\n\n{words}").versions["gpu"] == gpu


@pytest.mark.parametrize(
    ("words", "fails"),
    [
        ("I can run it using 3090, but an error will be reported when using A100 or V100.",
         ("A100", "V100")),
        ("It works on 2080Ti. On 6*P100 it fails.", ("P100",)),
        ("The env is: 3090 or 2080Ti. However, on the local server with 6*P100, I encounter this.",
         ("P100",)),
        ("I use A100 to compile it, but use V100, then I encountered this error.", ("V100",)),
        ("I moved the env from a 3090 to a V100 and now I get this error.", ("V100",)),
        ("I compiled it on my RTX 4090, then run on the A100 and get this error.", ("A100",)),
        ("It does not work on P100, while it works on T4.", ("P100",)),
        ("fails on both A100 and V100", ()),
        ("The A100 may fail here, the V100 too.", ()),
    ],
)  # fmt: skip
def test_a_sentence_tells_which_of_several_gpus_fails(words: str, fails: tuple[str, ...]) -> None:
    versions = read_paste(f"RuntimeError: {_NO_IMAGE}\n\n{words}").versions
    assert tuple(filter(None, versions.get("gpus_fail", "").split("; "))) == fails
    assert versions.get("gpu", "") == (fails[0] if fails else "")


def test_where_one_machine_works_and_another_fails_its_gpu_is_not_the_one() -> None:
    versions = read_paste(f"{_NO_IMAGE}\nIt works on RTX 3090 but not on our cluster.").versions
    assert "gpu" not in versions


def test_the_owner_and_the_build_stay_where_several_gpus_are_named() -> None:
    answer = first(
        "installed groundingdino and can run using 3090, but an error when using A100 or V100.\n"
        f"error in ms_deformable_im2col_cuda: {_NO_IMAGE}"
    )
    assert answer.owner == "GroundingDINO"
    assert any('"7.0;8.0"' in text and "setup.py" in text for text in answer.help)


def test_the_function_that_is_spelled_out_outranks_a_package_that_is_named() -> None:
    answer = first(
        f'**"torch.AcceleratorError: CUDA error: {_NO_IMAGE}"**\n\n'
        'it occurs inside the custom CUDA extension used by "MAMBA_SSM", specifically:\n\n'
        '**"causal_conv1d_cuda.causal_conv1d_fwd"**',
        "B200, the same setup works on H100, MAMBA_SSM and CAUSAL-CONV1D",
    )
    assert answer.owner == "causal-conv1d" and "10.0" in said(answer)
    assert any("CAUSAL_CONV1D_FORCE_BUILD=TRUE" in text for text in answer.help)


@pytest.mark.parametrize(
    ("text", "versions", "owner"),
    [
        (_NO_IMAGE, "lmdeploy serve api_server Qwen3-0.6B, 5060Ti, August 2025", "lmdeploy"),
        (_NO_IMAGE, "RTX 5090, Driver Version: 570.133.20, vllm/vllm-openai:latest", "vllm"),
        (f"{_NO_IMAGE} when starting vLLM", "RTX Pro 6000, torch==2.7.1+cu128", "vllm"),
    ],
)
def test_a_program_that_is_named_is_the_owner(text: str, versions: str, owner: str) -> None:
    answer = first(f"RuntimeError: {text}", versions)
    assert answer.owner == owner and "12.0" in said(answer) and answer.confidence == "medium"
    if owner == "lmdeploy":  # built by CMake
        assert not any("TORCH_CUDA_ARCH_LIST" in command for command in answer.help)
    if "vllm-openai" in versions:
        assert any("vllm-openai" in c for c in answer.help)
        assert not any("pip install" in c for c in answer.help)


def test_bitsandbytes_has_wheels_for_windows() -> None:
    answer = first(
        r"CUDA SETUP: Loading binary C:\x\bitsandbytes-windows\bitsandbytes\cuda_setup"
        "\\libbitsandbytes_cuda116.dll...\n"
        f"Error {_NO_IMAGE} at line 479 in file D:\\ai\\tool\\bitsandbytes\\csrc\\ops.cu",
        "V100, Windows 10, bitsandbytes-windows",
    )
    text = _all(answer)
    assert "uninstall -y bitsandbytes-windows" in text and "and make" not in text
    assert "--config Release" in text and "0.43.0" in text


def test_deepspeed_compiles_as_it_runs() -> None:
    answer = first(
        "-std=c++17 -c /x/lib/python3.8/site-packages/deepspeed/ops/csrc/adam/"
        "multi_tensor_adam.cu -o multi_tensor_adam.cuda.o\n"
        "nvcc fatal   : Unsupported gpu architecture 'compute_89'",
        "",
    )
    text = "\n".join(answer.help)
    # op_builder/builder.py, jit_load: the list of the environment is emptied for the build.
    assert "TORCH_CUDA_ARCH_LIST" not in text and "PACKAGE" not in text and "pip" not in text
    assert "torch_extensions/*/fused_adam" in text and "CUDA_HOME=" in text


def test_deepspeed_from_source_is_named() -> None:
    answer = first(
        "nvcc fatal unsupported gpu architecture 'compute_86'", "DeepSpeed from source, CUDA 11.0"
    )
    assert any("DS_BUILD_OPS=1" in c and c.endswith(" deepspeed") for c in answer.help)
    assert "PACKAGE" not in _all(answer)


def test_what_needs_a_gpu_only_follows_from_the_driver() -> None:
    found = answers(
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found "
        "version 11080).",
        "NotImplementedError: Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!",
        "PyTorch 2.6.0+cu124",
    )
    assert len(found) == 1 and "FA506" in found[0].code


def test_in_an_image_the_driver_is_the_hosts() -> None:
    answer = first(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11060)",
        "A100, Cosmos container (NeMo, CUDA 12)",
    )
    assert "11.6" in said(answer) and "host" in said(answer)
    assert not any("pip install" in command for command in answer.help)
    assert "reboot" not in said(answer)


def test_a_driver_that_is_told_to_be_older_decides() -> None:
    answer = first("undefined symbol: cuMemcpyBatchAsync", "import vllm._C, CUDA driver < 12.8")
    # cuda.h: cuMemcpyBatchAsync came with CUDA 12.8.
    assert "too old" in answer.cause and "Two causes" not in answer.cause


def test_the_list_of_a_build_tells_which_gpu_it_leaves_out() -> None:
    answer = first(
        f"RuntimeError: CUDA error: {_NO_IMAGE}\nGPU 0: Tesla V100\nGPU 1: Tesla P100",
        "TORCH_CUDA_ARCH_LIST=7.0, mmcv-full 1.3.0, torch 1.8.0+cu102",
    )
    assert "P100" in answer.cause and "V100" not in answer.cause
    assert any("6.0;7.0" in command for command in answer.help)


def test_vllm_and_its_torch_are_replaced_together() -> None:
    answer = first(
        f"RuntimeError: CUDA error: {_NO_IMAGE}", "vllm serve, RTX 5090, torch 2.6.0+cu124"
    )
    assert answer.owner == "torch" and not any("torch==" in text for text in answer.help)
    assert any(text.endswith("--upgrade --no-cache-dir vllm") for text in answer.help)


def test_what_is_compiled_as_it_runs_is_built_by_the_run() -> None:
    answer = first(
        "nvcc fatal   : Unsupported gpu architecture 'compute_89'\n"
        "Building extension module my_op... /x/.cache/torch_extensions/py310_cu117/my_op",
        "torch 2.0.1+cu117",
    )
    assert not any("pip install" in text for text in answer.help)
    assert any("torch_extensions/*/my_op" in text for text in answer.help)
