"""``why`` on messages that hide an error, and on checks of packages in words of their own."""

from __future__ import annotations

import pytest
from support.asking import answers

from fa_forensics.report_why import Answer

LOST = "cannot open shared object file: No such file or directory"


def only(*lines: str) -> Answer:
    (answer,) = answers(*lines)
    return answer


def test_xformers_without_its_compiled_part_is_not_refused_by_a_gpu() -> None:
    answer = only(
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with:",
        "     query       : shape=(1, 2, 16, 64) (torch.float32)",
        "`fa3F@0.0.0` is not supported because:",
        "    xFormers wasn't build with CUDA support",
        "    requires device with capability > (9, 0) but your GPU has capability (8, 6) (too old)",
        "    dtype=torch.float32 (supported: {torch.float16, torch.bfloat16})",
        "`cutlassF-pt` is not supported because:",
        "    xFormers wasn't build with CUDA support",
        "PyTorch version: 2.5.1+cu124",
    )
    assert (answer.kind, answer.owner, answer.confidence) == ("wrong-torch", "xformers", "high")
    assert "without its compiled part" in answer.cause
    assert any("xformers==0.0.29.post1" in command for command in answer.help)


def test_a_list_of_tries_counts_by_the_loaders_error() -> None:
    answer = only(
        "[sgl_kernel] CRITICAL: Could not load any common_ops library!",
        "Error details from previous import attempts:",
        f"- ImportError: libnvrtc.so.12: {LOST}",
        "- ModuleNotFoundError: No module named 'common_ops'",
    )
    assert answer.owner == "nvrtc"


def test_bitsandbytes_without_any_library_was_not_compiled() -> None:
    site = "/x/site-packages/bitsandbytes"
    lines = (
        f"Could not find the bitsandbytes CUDA binary at PosixPath('{site}/libbitsandbytes_cuda126"
        ".so')",
        f"Could not load bitsandbytes native library: {site}/libbitsandbytes_cpu.so: {LOST}",
    )
    answer = only(*lines)
    assert (answer.kind, answer.owner) == ("damaged-file", "bitsandbytes")
    assert "--only-binary bitsandbytes" in answer.help[0]
    assert answers(lines[0])[0].kind == "missing-library"


@pytest.mark.parametrize("soname", ["libc10_cuda.so", "libtorch_cuda.so"])
def test_a_cuda_part_that_is_missed_first_tells_of_a_cpu_torch(soname: str) -> None:
    answer = only(f"ImportError: {soname}: {LOST}")
    assert (answer.kind, answer.code, answer.confidence) == ("wrong-torch", "FA601", "medium")
    assert "torch.version.cuda" in answer.help[0]
    assert only(f"ImportError: libc10.so: {LOST}").kind == "import-order"


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("Unsloth: Your Flash Attention 2 installation seems to be broken?", "flash-attn"),
        ("Unsloth: Your Flash Attention 2 installation seems to be broken. Using Xformers instead.",
         "flash-attn"),
        ("UserWarning: Unsloth: CUDA is not linked properly.", "bitsandbytes"),
        ("Warning: import flash_attn rotary fail, please install FlashAttention rotary",
         "flash-attn"),
        ("flash_attn is not installed. Using PyTorch native attention.", "flash-attn"),
        ("UserWarning: xFormers is not available (Attention)", "xformers"),
        ("Warning:  apex was installed without --cuda_ext. Fused kernels are unavailable.", "apex"),
        ("WARNING:auto_gptq.nn_modules.qlinear_cuda:CUDA extension not installed.", "auto-gptq"),
    ],
)  # fmt: skip
def test_an_error_that_was_caught_is_shown_by_a_command(line: str, owner: str) -> None:
    answer = only(line)
    assert answer.owner == owner and answer.confidence in ("medium", "low")
    assert "python" in answer.help[0]


def test_a_message_of_the_loader_beside_it_is_what_counts() -> None:
    answer = only(
        "Unsloth: Your Flash Attention 2 installation seems to be broken?",
        "ImportError: /x/flash_attn_2_cuda.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
    )
    assert answer.symbol == "_ZN3c104cuda9SetDeviceEi"


def test_packages_that_compare_their_release_with_torchs() -> None:
    unsloth = only(
        "ImportError: Unsloth: You have torch = 2.3.0 but xformers = 0.0.28.",
        "Please install xformers <= 0.0.27 for torch = 2.3.0.",
    )
    assert (unsloth.kind, unsloth.code, unsloth.owner) == ("wrong-torch", "FA606", "xformers")
    assert "built for torch 2.4.1" in unsloth.cause
    assert "xformers==0.0.26.post1" in unsloth.help[0]
    torchao = only(
        "Skipping import of cpp extensions due to incompatible torch version 2.8.0+cu128 for "
        "torchao version 0.14.0"
    )
    assert torchao.owner == "torchao" and "goes on without" in torchao.cause
    mmcv = only("AssertionError: MMCV==2.2.0 is used but incompatible. Please install "
                "mmcv>=2.0.0rc4, <2.2.0.")  # fmt: skip
    assert mmcv.help[0].endswith('install "mmcv>=2.0.0rc4,<2.2.0"')


def test_a_package_that_gets_no_gpu_from_torch() -> None:
    for line in (
        "NotImplementedError: Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!",
        "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.",
        "Flash Attention 2 is not available on CPU. Please make sure torch can access a CUDA "
        "device.",
    ):
        assert (only(line).code, only(line).confidence) == ("FA821", "medium")
        assert only(line, "torch version: 2.6.0+cpu").code == "FA601"


def test_a_class_that_no_library_registered() -> None:
    answer = only(
        "RuntimeError: Tried to instantiate class 'Spam.Op', but it does not exist! Ensure that "
        "it is registered via torch::class_",
        "lib_path ....: ./lib/libtf_spam.so",
    )
    assert (answer.kind, answer.confidence) == ("damaged-file", "medium")
    assert "TensorFlow" in answer.cause and "libtf_spam.so" in answer.help[0]


def test_a_namespace_that_two_packages_register_told_in_prose() -> None:
    answer = only("Both packages register operators under the same namespace "
                  "`torch.ops.flash_attn_3`, which fails.")  # fmt: skip
    assert "flash_attn_3 was registered twice" in answer.cause


def test_a_lazy_import_that_hides_everything_is_not_called_an_undefined_symbol() -> None:
    answer = only("ModuleNotFoundError: Could not import module 'PreTrainedModel'. Are this "
                  "object's requirements defined correctly?")  # fmt: skip
    assert answer.confidence == "low" and "undefined symbol" not in answer.cause


def test_names_that_a_caught_import_left_undefined() -> None:
    answer = only("NameError: name 'flash_attn_varlen_func' is not defined")
    assert (answer.owner, answer.confidence) == ("flash-attn", "medium")
    assert only("NameError: name 'str2optimizer32bit' is not defined").owner == "bitsandbytes"


def test_torchs_own_attention_is_not_the_package_of_that_name() -> None:
    answer = only("UserWarning: 1Torch was not compiled with flash attention. (Triggered "
                  "internally at sdp_utils.cpp:263.)")  # fmt: skip
    assert answer.owner == "torch" and "plays no part" in answer.cause


def test_ranges_that_a_caller_states() -> None:
    engine = only("[WARNING | DotProductAttention]: Supported flash-attn versions are >= 2.1.1, <= "
                  "2.6.3. Found flash-attn 2.7.4.post1.")  # fmt: skip
    assert engine.help[0].endswith('install "flash-attn>=2.1.1,<=2.6.3"')
    kaolin = only("ImportError: Kaolin requires PyTorch >= 1.6, < 2.2 but torch 2.3.1 is installed")
    assert kaolin.owner == "torch" and "torch>=1.6,<2.2" in kaolin.help[0]


def test_flash_attention_3_is_built_by_itself() -> None:
    answer = only("ModuleNotFoundError: No module named 'flash_attn_interface'")
    assert "subdirectory=hopper" in answer.help[0]


def test_the_class_of_an_object_is_no_module() -> None:
    answer = only("AttributeError: 'LlamaFlashAttention2' object has no attribute 'rotary_emb'")
    assert answer.confidence == "low" and "find_spec" not in "".join(answer.help)
