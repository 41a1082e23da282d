"""``why`` on Python interfaces that another release has."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.flash_limits import parameter_since

KEYWORD = "TypeError: {}() got an unexpected keyword argument '{}'"


@pytest.mark.parametrize(
    ("function", "parameter", "since"),
    [
        ("flash_attn_func", "window_size", "2.3.0"),
        ("flash_attn_func", "alibi_slopes", "2.4.0"),
        ("flash_attn_varlen_func", "deterministic", "2.4.1"),
        ("flash_attn_varlen_func", "block_table", "2.5.7"),
        ("flash_attn_func", "softcap", "2.6.0"),
    ],
)
def test_a_parameter_has_its_release(function: str, parameter: str, since: str) -> None:
    assert parameter_since(function, parameter) == since
    answer = first(KEYWORD.format(function, parameter))
    assert (answer.kind, answer.code, answer.owner) == ("api-change", "FA881", "flash-attn")
    assert since in answer.cause and answer.confidence == "high"
    assert any(f"flash-attn>={since}" in command for command in answer.help)


def test_the_installed_release_is_placed_before_or_after_it() -> None:
    text = KEYWORD.format("flash_attn_func", "window_size")
    older = first(text, "[pip3] flash-attn==2.2.1")
    assert "2.2.1 is older" in older.cause and older.confidence == "high"
    newer = first(text, "[pip3] flash-attn==2.8.3")
    assert "another copy" in newer.cause and newer.confidence == "medium"
    assert "find_spec" in newer.help[0]


def test_a_parameter_that_no_release_has_is_not_pinned_on_one() -> None:
    answer = first(KEYWORD.format("flash_attn_func", "s_aux"))
    assert answer.confidence == "medium" and "No flash-attn" in answer.cause


def test_a_function_of_another_package_is_told_without_a_guess() -> None:
    answer = first(KEYWORD.format("LlamaAttention.forward", "cache_position"))
    assert (answer.kind, answer.owner, answer.confidence) == ("api-change", None, "medium")
    assert "does not say" in answer.cause


def test_a_renamed_function_has_its_new_name() -> None:
    answer = first(
        "ImportError: cannot import name 'flash_attn_unpadded_func' from "
        "'flash_attn.flash_attn_interface' (/x/site-packages/flash_attn/flash_attn_interface.py)"
    )
    assert (answer.kind, answer.owner, answer.confidence) == ("api-change", "flash-attn", "high")
    assert "2.0.0" in answer.cause and "flash_attn_varlen_func" in answer.notes[0]


def test_a_new_function_says_since_when() -> None:
    answer = first(
        "ImportError: cannot import name 'flash_attn_with_kvcache' from 'flash_attn' "
        "(/x/site-packages/flash_attn/__init__.py)",
        "[pip3] flash-attn==2.1.1",
    )
    assert "since 2.2.0" in answer.cause and "2.1.1 is older" in answer.cause


def test_a_name_without_a_place_is_another_copy() -> None:
    answer = first(
        "ImportError: cannot import name 'flash_attn_func' from 'flash_attn' (unknown location)"
    )
    assert answer.confidence == "medium" and "find_spec" in answer.help[0]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("flash_attn.flash_attention", "no more from 2.0.5"),
        ("flash_attn.ops.triton.rotary", "since 2.2.0"),
    ],
)
def test_a_module_of_flash_attn_has_its_releases(module: str, words: str) -> None:
    answer = first(f"ModuleNotFoundError: No module named '{module}'")
    assert (answer.kind, answer.owner) == ("api-change", "flash-attn")
    assert words in answer.cause


def test_python_files_and_compiled_module_of_two_releases() -> None:
    answer = first(
        '  File "/x/site-packages/flash_attn/flash_attn_interface.py", line 48, in _forward',
        "    out = flash_attn_cuda.varlen_fwd(",
        "TypeError: varlen_fwd(): incompatible function arguments. The following argument types "
        "are supported:",
        "    1. (arg0: torch.Tensor, arg1: torch.Tensor) -> List[torch.Tensor]",
        "Invoked with: tensor([[1.]], device='cuda:0'), None",
    )
    assert (answer.kind, answer.code, answer.owner) == ("api-change", "FA882", "flash-attn")
    assert "find_spec" in answer.help[0] and "--force-reinstall" in answer.help[1]


def test_an_operator_that_nobody_registered_is_a_library_that_did_not_load() -> None:
    answer = first("RuntimeError: operator torchvision::nms does not exist")
    assert (answer.kind, answer.owner, answer.confidence) == (
        "wrong-torch", "torchvision", "medium",
    )  # fmt: skip
    other = first("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'")
    assert other.kind == "wrong-torch" and "_C::rms_norm" in other.cause


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("A module that was compiled using NumPy 1.x cannot be run in", "numpy<2"),
        ("AttributeError: _ARRAY_API not found", "numpy<2"),
        ("RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xf",
         "numpy>=1.23,<2"),
        ("ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 "
         "from C header, got 88 from PyObject", "numpy<2"),
    ],
)  # fmt: skip
def test_numpy_is_told_apart_from_torch_and_the_newer_from_the_older(
    line: str, command: str
) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.owner) == ("python-abi", "FA891", "numpy")
    assert command in answer.help[0]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('ImportError: generic_type: type "Foo" is already registered!', "python-abi"),
        ("RuntimeError: Only a single TORCH_LIBRARY can be used to register the namespace flash;",
         "wrong-torch"),
        ("ImportError: arg(): could not convert default argument 'dtype: c10::ScalarType' in "
         "method '<class 'x.Y'>.__init__' into a Python object (type not registered yet?)",
         "python-abi"),
    ],
)  # fmt: skip
def test_what_is_registered_twice_or_not_at_all_is_not_certain(line: str, kind: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.confidence) == (kind, "medium")


TOGGLED = (
    "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following "
    "error: "
)


def test_what_transformers_looked_for_is_told_by_its_words() -> None:
    absent = first(f"{TOGGLED}the package flash_attn seems to be not installed. Please refer to")
    assert (absent.code, absent.owner) == ("FA880", "flash-attn")
    old = first(
        f"{TOGGLED}you need flash_attn package version to be greater or equal than 2.1.0. "
        "Detected version 1.0.9. Please upgrade"
    )
    assert (old.kind, old.owner, old.confidence) == ("api-change", "flash-attn", "high")
    assert "2.1.0 or newer, and flash-attn 1.0.9 is" in old.cause


def test_cuda_versions_of_two_packages_are_read_in_both_spellings() -> None:
    for text in (
        "PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has "
        "CUDA Version=12.4 and torchvision has CUDA Version=11.8. Please reinstall",
        "PyTorch and torchvision were compiled with different CUDA versions. PyTorch has CUDA "
        "version 12.4 and torchvision has CUDA version 11.8. Please reinstall",
    ):
        answer = first(f"RuntimeError: Detected that {text}")
        assert (answer.kind, answer.code, answer.owner) == ("wrong-torch", "FA602", "torchvision")
        assert "torchvision with 11.8, torch with 12.4" in answer.cause


def test_vllm_calls_functions_of_its_own() -> None:
    answer = first(
        '  File "/x/site-packages/vllm/attention/backends/flash_attn.py", line 525, in forward',
        "    output[:] = flash_attn_varlen_func(",
        KEYWORD.format("flash_attn_varlen_func", "softcap"),
        "[pip3] flash-attn==2.6.3",
    )
    assert (answer.owner, answer.confidence) == ("vllm-flash-attn", "medium")
    assert "2.6.0" in answer.cause and "plays no part" in answer.cause


def test_torchvisions_own_words_about_its_operators() -> None:
    answer = first("RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch")
    assert (answer.kind, answer.owner) == ("wrong-torch", "torchvision")


def test_a_name_of_torch_has_its_release_and_the_pair_is_named() -> None:
    text = (
        '  File "/x/site-packages/torchvision/_meta_registrations.py", line 164, in <module>',
        "AttributeError: module 'torch.library' has no attribute 'register_fake'",
    )
    answer = first(*text, "PyTorch version: 2.3.1+cu121")
    assert (answer.kind, answer.owner, answer.confidence) == ("api-change", "torch", "high")
    assert "2.4.0" in answer.cause and "its caller torchvision" in answer.cause
    assert "torchvision==0.18.1" in answer.help[0]  # torchvision's own table of releases
    assert "is older" in first(text[1]).cause
    again = first(text[1], "PyTorch version: 2.4.1")
    assert again.confidence == "medium" and "another copy" in again.cause


def test_modules_that_went_are_not_taken_for_compiled_ones() -> None:
    gone = first("ModuleNotFoundError: No module named 'torch._six'")
    assert (gone.kind, gone.code) == ("api-change", "FA881") and "before 2.0.0" in gone.cause
    cuda = first("AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'")
    assert (cuda.kind, cuda.code) == ("wrong-torch", "FA601")


def test_a_second_import_is_told_from_a_file_in_the_way() -> None:
    second = first(
        "[/usr/lib/python3/dist-packages/torchvision/_meta_registrations.py](https://x/#) in w(fn)",
        "AttributeError: partially initialized module 'torchvision' has no attribute 'extension' "
        "(most likely due to a circular import)",
    )
    assert (second.kind, second.owner) == ("wrong-torch", "torchvision")
    assert "second import" in second.cause
    for line in (
        "ImportError: cannot import name 'Tensor' from partially initialized module 'torch' (most "
        "likely due to a circular import) (/home/me/torch.py)",
        "AttributeError: module 'torch' has no attribute 'Tensor' (consider renaming "
        "'/home/me/torch.py' if it has the same name as a library you intended to import)",
    ):
        answer = first(line)
        assert "/home/me/torch.py" in answer.cause and answer.confidence == "high"


ARGUMENTS = (
    "TypeError: causal_conv1d_fwd(): incompatible function arguments. The following argument types "
    "are supported:"
)


def takes(count: int) -> str:
    return f"    1. ({', '.join(f'arg{i}: torch.Tensor' for i in range(count))}) -> torch.Tensor"


def test_the_number_of_arguments_tells_the_release_of_a_compiled_module() -> None:
    newer = first("out = causal_conv1d_cuda.causal_conv1d_fwd(x, w, b, None, True)", ARGUMENTS,
                  takes(7))  # fmt: skip
    assert (newer.owner, newer.confidence) == ("causal-conv1d", "high")
    assert "is newer than its caller" in newer.cause
    assert "causal-conv1d>=1.1.0,<1.2.0" in newer.help[0]
    older = first(ARGUMENTS, takes(4), "mamba-ssm==2.2.2")
    assert "is older than its caller" in older.cause
    assert "causal-conv1d>=1.2.0,<1.5.1" in older.help[0]
    assert first(ARGUMENTS, takes(5)).confidence == "medium"


def test_parameters_of_packages_on_record() -> None:
    answer = first(KEYWORD.format("causal_conv1d_fn", "seq_idx"))
    assert answer.owner == "causal-conv1d" and "since 1.1.0" in answer.cause


def test_a_function_of_bitsandbytes_library_that_is_none() -> None:
    answer = first("AttributeError: 'NoneType' object has no attribute 'cadam32bit_grad_fp32'")
    assert answer.owner == "bitsandbytes"


def test_the_module_of_the_first_flash_attn() -> None:
    """flash-attn 1.x has flash_attn_cuda, 2.x has flash_attn_2_cuda (flash_attn_interface.py)."""
    error = "ModuleNotFoundError: No module named 'flash_attn_cuda'"
    for lines in ((error,), (error, "flash-attn 2.0.4")):
        answer = first(*lines)
        assert (answer.owner, answer.code) == ("flash-attn", "FA881")
        assert "flash_attn_2_cuda" in answer.cause and "flash-attn<2" in said(answer)
        assert not any("install --" in command for command in answer.help)
    assert first(error, "flash-attn 1.0.9").code == "FA880"
