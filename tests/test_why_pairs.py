"""``why`` on packages and their torch: pairs, releases that fail already, GPUs, images, trees.

The releases are those of ``nm -D`` over torch's wheels; the cases are public reports.
"""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

SITE = "/x/lib/python3.{}/site-packages"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


def test_a_release_that_fails_is_not_offered_again_and_torch_takes_its_pair_along() -> None:
    """pytorch/xla#9656: torch_xla 2.8.0 needs a name that torch 2.8 has no more."""
    answer = first(
        "undefined symbol: _ZN3c104cuda10set_deviceEa", "torch 2.8.0, torch_xla[tpu] 2.8.0"
    )
    assert "python -m pip install \"torch==2.7.1\" 'torch-xla==2.7.*'" in answer.help
    assert not [text for text in answer.help if "2.8" in text]
    assert "changes nothing" in said(answer)


def test_another_build_of_the_release_is_offered_all_the_same() -> None:
    empty = (
        "_ZN2at5emptyEN3c108ArrayRefIlEERKNS0_13TensorOptionsENS0_8optionalINS0_12MemoryFormatEEE"
    )
    answer = first(
        missing(".../mmcv/_ext.cpython-39-x86_64-linux-gnu.so", empty),
        "torch 2.1.0+cu121, mmcv 2.1.0",
    )
    assert any("mmcv==2.1.0 -f " in text for text in answer.help)


def test_a_wheel_of_the_release_for_this_torch_cannot_need_a_newer_ones_name() -> None:
    """xformers 0.0.28.post3 asks for torch 2.5.1; the name came with 2.6."""
    answer = first(
        missing(f"{SITE.format(12)}/xformers/_C.so",
                "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"),
        "torch 2.5.1+cu124, xFormers 0.0.28.post3",
    )  # fmt: skip
    assert answer.direction == "file-newer"
    assert "this file is not that wheel's" in said(answer)
    assert any('"torch==2.6.0"' in text for text in answer.help)


def test_a_wheel_for_a_release_was_built_on_its_nightly() -> None:
    file = f"{SITE.format(10)}/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so"
    answer = first(
        missing(file, SET_DEVICE),
        "mamba_ssm-1.2.0.post1+cu118torch2.3cxx11abiFALSE-cp310, torch 2.3.0.dev20240304+cu118",
    )
    assert "on a nightly" in said(answer)
    assert any(text.endswith("mamba-ssm==1.2.0.post1") for text in answer.help)


@pytest.mark.parametrize(("gpu", "direction"), [("RTX 3080 Ti", "file-older"), ("", "unknown")])
def test_a_gpu_rules_out_the_torches_that_have_no_code_for_it(gpu: str, direction: str) -> None:
    """is_cuda() is exported by 1.6 to 1.8; CUDA 11, and sm_80 with it, came with torch 1.7."""
    file = f"{SITE.format(7)}/q/_C.cpython-37m-x86_64-linux-gnu.so"
    assert first(missing(file, "_ZNK2at6Tensor7is_cudaEv"), gpu).direction == direction


def test_a_nightly_of_the_reports_time_can_lack_a_name() -> None:
    """Library::_def ends with 1.12; in July 2022 nightlies were of 1.13."""
    name = "_ZNR5torch7Library4_defEON3c1014FunctionSchemaEPNS1_12OperatorNameE"
    file = f"{SITE.format(10)}/fbgemm_gpu/fbgemm_gpu_py.so"
    answer = first(missing(file, name), "Python 3.10 (July 2022)")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-older")


def test_the_library_that_has_a_name_owns_it_whatever_its_namespace() -> None:
    """c10::OptionalType is in libtorch_cpu.so, and c10::MessageLogger in libc10.so."""
    optional = "_ZN3c1012OptionalTypeC1ESt10shared_ptrINS_4TypeEE"
    assert first(missing("/x/libq.so", optional)).owner == "torch/torch_cpu"
    assert first(missing("/x/q.so", "_ZN3c1013MessageLoggerC1EPKciib")).owner == "torch/c10"


def test_what_pip_put_into_an_image_is_not_the_images_own() -> None:
    file = "/usr/local/lib/python3.10/dist-packages/flash_attn_2_cuda.cpython-310-x86_64.so"
    name = (
        "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEESt8optionalINS2_10ScalarTypeEES6_"
        "INS2_6LayoutEES6_INS2_6DeviceEES6_IbE"
    )
    image = "nvcr.io/nvidia/pytorch:23.11-py3"
    assert first(missing(file, name), image).kind == "wrong-torch"
    installed = first(missing(file, name), image, "pip install flash-attn --no-build-isolation")
    assert (installed.kind, installed.direction) == ("symbol-drift", "file-newer")
    assert any("FLASH_ATTENTION_FORCE_BUILD" in text for text in installed.help)


def test_a_word_behind_undefined_symbol_is_no_name() -> None:
    found = answers(
        "ImportError: undefined symbol: _ZNK3c106SymInt22maybe_as_int_slow_pathEv",
        "The error is an undefined symbol originating from the transformer_engine_torch.so object.",
    )
    assert [answer.symbol for answer in found] == ["_ZNK3c106SymInt22maybe_as_int_slow_pathEv"]
    assert any("TransformerEngine" in text for text in found[0].help)


def test_old_modules_in_a_tree_go_before_it_is_built_again() -> None:
    """open-mmlab/mmdetection#1189; detectron2's INSTALL.md: rm -rf build/ **/*.so."""
    answer = first(
        missing("mmdetection/mmdet/ops/dcn/deform_conv_cuda.cpython-37m-x86_64-linux-gnu.so",
                "_ZN2at7getTypeERKNS_6TensorE"), "upgraded to pytorch 1.2.0",
    )  # fmt: skip
    assert any("-delete" in text and text.endswith("-e .") for text in answer.help)


def test_a_nightly_can_be_left_for_a_release_from_its_own_index() -> None:
    answer = first(
        missing(f"{SITE.format(10)}/sgl_kernel/common_ops.abi3.so", "_ZN3c104cuda9SetDeviceEa"),
        "torch 2.9.0.dev20250722+cu128",
    )
    assert any('"torch==2.7.1"' in text for text in answer.help)
    assert any(text.endswith("/cu128") for text in answer.help)


def test_an_egg_is_built_again_in_its_source_directory() -> None:
    answer = first(
        missing(f"{SITE.format(6)}/torchaudio-0.2-py3.6-linux-x86_64.egg/_torch_sox.so",
                "_ZN3c1019UndefinedTensorImpl10_singletonE"), "PyTorch 1.0.0",
    )  # fmt: skip
    assert not [text for text in answer.help if "--upgrade" in text]
    assert any("--no-build-isolation" in text for text in answer.help)


def test_packages_that_fail_alike_show_that_torch_is_the_odd_one() -> None:
    answer = first(
        missing(f"{SITE.format(10)}/torchvision/image.so", SET_DEVICE),
        missing(f"{SITE.format(10)}/mamba_ssm/selective_scan_cuda.so", SET_DEVICE),
        "torch 2.0.1",
    )
    assert "torch is the odd one: it is older" in said(answer)


IS_CUDA = "_ZNK2at6Tensor7is_cudaEv"
THROWS = "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"


@pytest.mark.parametrize("cut", ["/mmcv", "…/mmcv", ".../mmcv"])
def test_a_path_that_is_cut_off_is_no_source_directory(cut: str) -> None:
    """open-mmlab/mmcv#1734: a source tree of mmcv has its module in mmcv/mmcv."""
    answer = first(
        missing(f"{cut}/_ext.cpython-37m-x86_64-linux-gnu.so", IS_CUDA),
        "pytorch==1.10.0, cudatoolkit=11.3, mmcv-full, Python 3.7",
    )
    assert not [text for text in answer.help if "-delete" in text or " -e ." in text]
    assert any("mmcv-full -f " in t and "/cu113/torch1.10.0/" in t for t in answer.help)
    assert "compiles mmcv" not in said(answer)


def test_a_module_in_the_tree_of_its_sources_is_built_there() -> None:
    answer = first(missing("/w/mmcv/mmcv/_ext.cpython-37m-x86_64-linux-gnu.so", IS_CUDA))
    assert any(" -e ." in text for text in answer.help)


def test_the_index_of_mmcv_is_named_by_the_cuda_of_the_text() -> None:
    answer = first(
        missing(f"{SITE.format(9)}/mmcv/_ext.cpython-39-x86_64-linux-gnu.so", IS_CUDA),
        "CUDA 11.3, PyTorch 1.12.1, mmcv-full",
    )
    assert "mmcv/dist/cu113/torch1.12.0/" in said(answer)


def test_what_was_built_from_source_is_not_exchanged_for_a_wheel() -> None:
    """vllm-project/vllm#12577."""
    file = f"{SITE.format(10)}/vllm/_C.abi3.so"
    wheel = first(missing(file, THROWS), "flash-attn built from source")
    assert any("--upgrade" in text for text in wheel.help)
    for words in ("vllm built from source, tag 0.5.3.post1+cu118", "I compiled vllm from source"):
        built = first(missing(file, THROWS), words)
        assert not [text for text in built.help if "--upgrade" in text]
        assert any("--no-build-isolation" in text for text in built.help)


def test_no_note_speaks_of_a_command_that_is_gone() -> None:
    """vllm-project/vllm#2680."""
    name = (
        "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorESt8optionalIN3c1010ScalarTypeEES5_INS6_"
        "6LayoutEES5_INS6_6DeviceEES5_IbEbbS5_INS6_12MemoryFormatEE"
    )
    answer = first(
        missing("cache_ops.cpython-38-x86_64-linux-gnu.so", name),
        "vllm built with pip install -e . , Python 3.8",
    )
    assert "newest releases" not in said(answer)
    assert any("-delete" in text and text.endswith(" -e .") for text in answer.help)


@pytest.mark.parametrize("package", ["torchaudio", "torchvision"])
def test_torch_is_not_changed_without_its_partner(package: str) -> None:
    """brycedrennan/imaginAIry#362."""
    answer = first(missing(f"{SITE.format(10)}/{package}/lib/lib{package}.so",
                           "_ZNK3c107SymBool10guard_boolEPKcl"))  # fmt: skip
    assert not [t for t in answer.help if "torch>=" in t or t.endswith('"torch==2.0.0"')]
    assert any(text.endswith(f"torch {package}") for text in answer.help)
    few = " before 2.11.0" if package == "torchaudio" else ""
    assert f"{package}{few} and torch have to be of one release" in said(answer)


def test_a_file_of_mamba_misses_no_name_because_torch_is_older_than_mamba() -> None:
    """kuleshov-group/caduceus#53: mamba-ssm asks for PyTorch 1.12, the name is there from 1.10."""
    name = (
        "_ZN2at4_ops10zeros_like4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEENS6_INS5_6"
        "LayoutEEENS6_INS5_6DeviceEEENS6_IbEENS6_INS5_12MemoryFormatEEE"
    )
    file = f"{SITE.format(8)}/selective_scan_cuda.cpython-38-x86_64-linux-gnu.so"
    assert first(missing(file, name)).direction == "file-older"


PARSE = "undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs"
VTABLE = "undefined symbol: _ZTVN5torch3jit6MethodE"


def typed_pairs(*lines: str) -> str:
    return "\n".join(first(*lines).help)


def test_a_package_that_ended_is_never_taken_to_its_newest() -> None:
    """torchtext 0.18.0 of April 2024 is the last release, for torch 2.3 (its README)."""
    old = typed_pairs(PARSE, "torchtext 0.18.0 with a newer torch, October 2024")
    new = typed_pairs(VTABLE, "torchtext")
    assert "--upgrade" not in old + new and "torch==2.3.1 torchtext==0.18.0" in old
    assert "torch==1.10.0 torchtext==0.11.0" in new


def test_what_put_it_right_for_the_writer_is_typed() -> None:
    answer = first(VTABLE, "torchtext; solved with torchtext==0.7 (July 2022)")
    assert any(text.endswith(" torchtext==0.7") for text in answer.help)


def test_a_newer_file_keeps_torch_or_takes_the_pair_of_its_own_version() -> None:
    """README of pytorch/text: torch 2.1 has torchtext 0.16, torch 2.2 has 0.17."""
    symbol = (
        "_ZN3c109TupleTypeC1ESt6vectorINS_4Type24SingletonOrSharedTypePtrIS2_EESaIS4_EESt8optional"
        "INS_13QualifiedNameEESt10shared_ptrINS_14FunctionSchemaEE"
    )
    file = "/envs/v/lib/python3.11/site-packages/torchtext/lib/libtorchtext.so"
    text = typed_pairs(
        "pip install torch==2.1.2 torchvision==0.16.2 torchaudio==2.1.2",
        f"OSError: {file}: undefined symbol: {symbol}",
        "torch 2.1.2+cu121, torchtext 0.17.0",
    )
    assert "--no-deps --no-cache-dir torchtext==0.16.2" in text
    assert "torch==2.2.0 torchtext==0.17.0 torchvision==0.17.0 torchaudio==2.2.0" in text


def test_two_commands_are_not_spoken_of_where_there_is_one() -> None:
    file = "/usr/local/lib/python3.12/dist-packages/torchaudio/lib/_torchaudio.abi3.so"
    answer = first(f"OSError: {file}: undefined symbol: aoti_torch_abi_version", "torch 2.6.0")
    changing = [text for text in answer.help if " install " in text]
    assert len(changing) == 1 and not any("One of the two" in note for note in answer.notes)


def test_a_release_that_the_text_tells_stands_first_and_no_two_commands_are_counted() -> None:
    wanted = "ImportError: /x/site-packages/flash_attn_2_cuda.so: undefined symbol: "
    symbol = "_ZN3c104cuda9SetDeviceEab"  # of 2.8.0 and later
    for told in ("flash-attn 2.5.2 fixed it", "upgraded flash-attn from 2.5.2 to 2.5.6"):
        answer = first(f"{wanted}{symbol}", f"torch 2.4.0, python 3.10; {told}")
        pin = next(text for text in answer.help if "flash-attn==2.5.2" in text)
        assert "--no-build-isolation" in pin and "--no-deps" in pin
        assert not any(note.startswith("One of the two commands") for note in answer.notes)


def test_torchaudio_of_the_stable_interface_takes_any_later_torch() -> None:
    """mudler/LocalAI#9798; README of torchaudio 2.11.1."""
    answer = first("undefined symbol: torch_library_impl", "torchaudio (latest), Python 3.10")
    assert "takes any torch from 2.11 on" in said(answer)
    assert "changed together" not in said(answer) and "belong together" not in said(answer)
