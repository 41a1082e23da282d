"""``why`` on builds of a torch release that differ in their std::string flavour, and whose."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

#: c10::detail::torchInternalAssertFail(..., std::string const&): pre-cxx11 in 1.9 to 2.6.
OLD = "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs"
#: The same as a cxx11 torch spells it.
NEW = (
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_"
    "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
#: torch::autograd::Node::name() returns a std::string: nothing but the missing tag shows it.
UNTAGGED = "_ZNK5torch8autograd4Node4nameEv"


def missing(symbol: str, file: str = "/e/lib/python3.10/site-packages/my_ops/_C.abi3.so") -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize("torch", ["torch 2.6.0+cu126", "torch 2.6 (CUDA 12.6)"])
def test_the_one_cxx11_build_of_a_release_is_not_taken_again(torch: str) -> None:
    """PyTorch 2.6's release notes: of that release the CUDA 12.6 build alone is cxx11."""
    answer = first(missing(OLD), torch)
    assert any('"torch==2.6.0"' in text for text in answer.help)
    assert not any("index-url" in text for text in answer.help)
    assert "the build for CUDA 12.6 is cxx11" in said(answer)


def test_a_torch_of_a_newer_release_does_not_go_back_to_that_build() -> None:
    answer = first(missing(OLD), "torch 2.7.1+cu126")
    assert any('"torch==2.6.0"' in text for text in answer.help)
    assert "/cu126" not in said(answer)


def test_the_index_of_another_cuda_stays_where_its_build_fits() -> None:
    answer = first(missing(OLD), "torch 2.7.1+cu118")
    assert "/cu118" in said(answer)


@pytest.mark.parametrize(
    "line",
    [
        "torch 2.1 (nvidia pytorch docker 23.10)",
        "NVIDIA PyTorch container 23.10, torch 2.1.0",
        "23.10 NVIDIA PyTorch image",
        "torch 2.1 (nvcr.io/nvidia/pytorch:23.10-py3)",
    ],
)
def test_the_torch_of_nvidias_image_is_cxx11_by_its_number_too(line: str) -> None:
    answer = first(missing(OLD, "/tmp/NATTEN/src/natten/libnatten.cpython-310-x86_64-linux-gnu.so"),
                   line)  # fmt: skip
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert "NVIDIA's container" in said(answer)
    assert "two causes" not in answer.cause
    assert not any('"torch==' in text for text in answer.help)
    assert "shi-labs.com" not in said(answer)
    assert "-D_GLIBCXX_USE_CXX11_ABI=0 in the project's own" in said(answer)


@pytest.mark.parametrize("line", ["nvcr.io/nvidia/pytorch:23.10-py3, torch 2.1.2+cu121"])
def test_a_wheel_of_pytorchs_own_in_that_image_is_none_of_it(line: str) -> None:
    answer = first(missing(NEW), line)
    assert "torch 2.1.2+cu121" in said(answer)
    assert "this torch is pre-cxx11" in answer.cause


@pytest.mark.parametrize(
    "line",
    [
        "torch 1.12.0 (own build), torchvision 0.13.0 (own build)",
        "PyTorch 1.12.0, self-compiled",
        "torch 1.12.0 custom build, CUDA 11.6",
        "a locally built pytorch, 1.12.0",
        "pytorch 1.12.0 that I built myself",
    ],
)
def test_a_torch_of_ones_own_in_other_words(line: str) -> None:
    assert "flag:torch-source" in read_paste(line).versions


@pytest.mark.parametrize(
    "line",
    [
        "torch 2.1.2, custom kernels built",
        "torchaudio own build, torch 1.12.0 from pip",
        "a custom pytorch extension",
        "torch 2.1.2, self-built extension",
        "the torch 2.1.2 I compiled flash-attn against",
    ],
)
def test_what_else_is_of_ones_own_is_not_torch(line: str) -> None:
    assert "flag:torch-source" not in read_paste(line).versions


def test_every_wheel_for_an_old_python_is_of_one_flavour() -> None:
    """The last torch for Python 3.8 is 2.4.1: none of its wheels is cxx11."""
    file = "/e/lib/python3.8/site-packages/torchaudio/lib/libtorchaudio.so"
    answer = first(missing(UNTAGGED, file))
    assert "every wheel of torch for Python 3.8 has it" in answer.cause
    assert "with a torch of conda's" in said(answer)


def test_the_flag_of_a_build_is_told_beside_that_of_torch() -> None:
    answer = first(
        missing(OLD),
        "flags.make:CXX_FLAGS = -fvisibility=hidden -D_GLIBCXX_USE_CXX11_ABI=0 -std=gnu++17",
        "torch built with _GLIBCXX_USE_CXX11_ABI=1",
    )
    assert "The build in the text sets -D_GLIBCXX_USE_CXX11_ABI=0" in said(answer)


def test_where_a_command_belongs_is_told_in_a_container_too() -> None:
    file = "/usr/local/lib/python3.10/dist-packages/my_ops/_kernels.abi3.so"
    answer = first(missing(OLD, file), "torch 2.5.0a0+872d972e41.nv24.08")
    assert any(text.startswith("rm -rf build") for text in answer.help)
    assert "is for its source directory" in said(answer)


def test_two_parts_of_a_package_get_one_flavour_by_the_variables_of_cmake() -> None:
    """TransformerEngine issue 756: the CMake part is cxx11, the extension as torch is."""
    file = "/usr/local/lib/python3.10/dist-packages/transformer_engine_extensions.cpython-310-x.so"
    answer = first(missing("_ZN18transformer_engine6getenvIiEET_RKSsRKS1_", file))
    (again,) = (text for text in answer.help if text.startswith("rm -rf build"))
    flags = "CXXFLAGS=-D_GLIBCXX_USE_CXX11_ABI=0 CUDAFLAGS=-D_GLIBCXX_USE_CXX11_ABI=0 python -m pip"
    assert f"&& {flags}" in again
    assert "for the package's source directory" in said(answer)


def test_a_build_directory_made_anew_needs_its_options() -> None:
    symbol = (
        "_ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    file = "/models/FasterTransformer/build/lib/libth_transformer.so"
    answer = first(f"OSError: {file}: undefined symbol: {symbol}", "torch 2.0.1")
    assert any("cmake -S . -B build" in text for text in answer.help)
    assert "have to be given again" in said(answer)


def test_torch_xla_has_wheels_of_both_flavours() -> None:
    """pytorch/xla issues 8406 and 8641."""
    file = "/e/lib/python3.10/site-packages/_XLAC.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing("_ZN5torch4lazy13MetricFnValueB5cxx11Ed", file), "torch_xla 2.6.0.dev")
    assert answer.direction == "other-flavour"
    assert "torch==2.6.0+cpu.cxx11.abi" in said(answer)
    old = first(missing("_ZN5torch4lazy13MetricFnValueB5cxx11Ed", file), "torch_xla 2.0.0")
    assert "cxx11.abi with" not in said(old)


def test_a_wheel_whose_number_names_its_torch_goes_with_that() -> None:
    """nunchaku issue 410: the wheel for torch 2.6, which is pre-cxx11, and torch 2.6.0+cu126."""
    file = "/e/lib/python3.10/site-packages/nunchaku/_C.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(OLD, file), "torch 2.6 (CUDA 12.6), nunchaku 0.3.0.dev20250522+torch2.6")
    assert any(text.endswith('"torch==2.6.0"') for text in answer.help)
    assert not any("nightly" in text for text in answer.help)
    assert "for the torch that runs is seconds" not in said(answer)


def test_a_wheel_of_flash_attn_for_the_other_cuda_is_named_too() -> None:
    """torch 2.1.2 has builds for CUDA 11.8 and 12.1; flash-attn's releases have wheels for both."""
    missed = "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
    missed += "_ZN3c104impl3cow11cow_deleterEPv"
    answer = first(missed, "torch 2.1.2, flash-attn 2.5.8, Python 3.10")
    assert any("+cu12torch2.1" in text for text in answer.help)
    assert "where torch.version.cuda says 11.8, flash_attn-2.7.3+cu11torch2.1" in said(answer)
    told = first(missed, "torch 2.1.2+cu121, flash-attn 2.5.8, Python 3.10")
    assert "where torch.version.cuda says" not in said(told)


#: torch::jit::parseSchemaOrName(std::string const&), pre-cxx11 in 1.1.0 to 2.3.1.
PARSE = "_ZN5torch3jit17parseSchemaOrNameERKSs"


def test_a_name_that_no_torch_in_use_is_too_old_for_is_of_the_other_flavour() -> None:
    """aws/deep-learning-containers issue 1109: Python 3.6 has torch 1.1 to 1.10 beside it."""
    file = "/opt/conda/lib/python3.6/site-packages/torchaudio/_torchaudio.so"
    answer = first(missing(PARSE, file), "AWS DLC torch, torchaudio from pip, Python 3.6")
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    assert any("compiled_with_cxx11_abi" in text for text in answer.help)


def test_beside_intels_torch_torchvision_is_what_is_changed() -> None:
    """intel-extension-for-pytorch issue 557: torchvision was of the package index."""
    told = "UserWarning: Failed to load image Python extension: '/x/torchvision/image.so: "
    answer = first(f"{told}undefined symbol: {PARSE}'", "ipex +xpu (2024-03), Python 3.10")
    assert "It is torchvision that is changed" in said(answer)
    assert "It is a warning" in said(answer)


def test_a_torch_of_pip_in_nvidias_image_is_of_the_other_flavour() -> None:
    """huggingface/accelerate issue 1501: pip put 2.0.1 over the image's torch."""
    file = (
        "/usr/local/lib/python3.8/dist-packages/"
        "transformer_engine_extensions.cpython-38-x86_64-linux-gnu.so"
    )
    name = PARSE.replace("RKSs", "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")
    answer = first(missing(name, file), "torch 2.0.1, nvcr.io/nvidia/pytorch:23.04-py3")
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    assert "start again from the image" in said(answer)
    assert any(text.endswith("uninstall transformer-engine") for text in answer.help)
