"""``why`` on builds of torch that are no wheels of the package index, and on whose a name is.

What each torch exports was read with ``nm -D`` from its libraries, not from this program.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import first_here

import fa_forensics
from fa_forensics.facts.owner import owner_of, owner_of_library
from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NODE = "_ZNK5torch8autograd4Node4name"


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes))


def typed(answer: Answer) -> str:
    return "\n".join(answer.help)


def test_a_result_with_a_string_counts_in_its_own_flavour(bare: str) -> None:
    """libtorch 2.0 in cxx11 exports Node::name[abi:cxx11]() alone, its PyPI wheel name() alone."""
    text = (
        f"undefined symbol: {NODE}Ev\ntorch.__version__ 2.0.0+cpu\n"
        "CXX_FLAGS= -D_GLIBCXX_USE_CXX11_ABI=1 -Wno-deprecated\n"
    )
    answer = first_here(text, bare)
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert "torch==2.0.0" in typed(answer)


def test_a_cut_name_with_one_function_behind_it_is_a_matter_of_flavour(bare: str) -> None:
    answer = first_here(f"ImportError: /x/libext.so: undefined symbol: {NODE}", bare)
    assert answer.code == "FA301" and answer.confidence != "high"
    assert "compiled_with_cxx11_abi" in typed(answer)


def test_a_loader_without_a_file_is_no_linker(bare: str) -> None:
    """at::detail::computeStorageNbytes takes an offset (…mm) since torch 1.12."""
    symbol = "_ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm"
    for error in ("OSError", "ImportError"):
        answer = first_here(f"{error}: undefined symbol: {symbol}", bare)
        assert answer.direction == "file-newer", said(answer)
        assert "link line" not in said(answer)
    answer = first_here(f"ld.lld: error: undefined symbol: {symbol}\n", bare)
    assert "link line" in said(answer)


def test_a_name_in_the_sentence_is_the_one_that_is_missing(bare: str) -> None:
    symbol = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"
    text = f"It fails with an `undefined symbol` that has to do with CUDA (`{symbol}`)."
    (mention,) = read_paste(text).mentions
    assert mention.symbol == symbol
    # torch 2.0.0 to 2.9.1 export it: one that lacks it may be older or newer.
    assert first_here(text, bare).direction == "unknown"


def test_a_file_that_stands_behind_the_name(bare: str) -> None:
    text = "undefined symbol: _ZN3c104cuda9SetDeviceEa originating from the vllm._C.abi3.so library"
    (mention,) = read_paste(text).mentions
    assert mention.file == "vllm._C.abi3.so"
    assert "vllm" in typed(first_here(text, bare))


@pytest.mark.parametrize(
    "code",
    ["CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorInvalidDeviceFunction",
     "cudaErrorNoKernelImageForDevice", "CUBLAS_STATUS_NOT_INITIALIZED"],
)  # fmt: skip
def test_the_name_of_an_error_code_is_no_symbol(bare: str, code: str) -> None:
    answer = first_here(code, bare)
    assert answer.symbol is None and answer.code not in ("FA204", "FA205", "FA209", "FA210")


def test_a_window_that_ends_is_typed_with_its_end(bare: str) -> None:
    """grow_pod(void*, ...) is exported by torch 1.11 to 2.3; Python 3.7 has wheels up to 1.13."""
    file = "/x/site-packages/q/cuda_ext.cpython-37m-x86_64-linux-gnu.so"
    symbol = "_ZN3c1015SmallVectorBaseIjE8grow_podEPvmm"
    answer = first_here(f"ImportError: {file}: undefined symbol: {symbol}", bare)
    assert '"torch>=1.11.0,<2.4.0"' in typed(answer)


def test_a_stable_file_has_a_floor_and_no_ceiling(bare: str) -> None:
    file = "/x/site-packages/torchcodec/libtorchcodec_core8.so"
    answer = first_here(f"OSError: {file}: undefined symbol: torch_from_blob", bare)
    assert "near the one it was built on" not in said(answer)
    assert "--upgrade" not in typed(answer)  # the newest is what the torch is too old for
    assert '"torch>=2.11.0"' in typed(answer)


def test_no_wheel_is_put_beside_a_torch_of_ones_own(bare: str) -> None:
    """parseSchemaOrName(string, bool) is torch 2.4's; NVIDIA's torch 2.1 for Jetson stays."""
    text = (
        "UserWarning: Failed to load image Python extension: '/x/site-packages/torchvision/image.so"
        ": undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb'\n"
        "Python-3.8.10 torch-2.1.0a0+41361538.nv23.06 CUDA:0 (Orin)\n"
    )
    answer = first_here(text, bare)
    assert answer.direction == "file-newer"
    assert "--upgrade" not in typed(answer) and "torch==" not in typed(answer)
    assert "pytorch/vision@v0.16.0" in typed(answer) and "--no-deps" in typed(answer)


def test_releases_that_have_the_number_of_their_torch(bare: str) -> None:
    assert torch_of("torch-xla", "2.5.0") == "2.5.0"
    assert torch_of("torch-npu", "2.1.0.post3") == "2.1.0"
    assert torch_of("intel-extension-for-pytorch", "2.3.110+xpu") == "2.3.0"
    assert partner_of("torch-xla", "2.4.1+cu121") == "2.4.*"
    text = (
        "ImportError: /x/dist-packages/_XLAC.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
        "_ZN2at6native12cpu_fallbackERKN3c1014OperatorHandleEPSt6vectorINS1_6IValueESaIS6_EEbNS1_"
        "11DispatchKeyE\ntorch_xla==2.5.0\n"
    )
    assert '"torch==2.5.0"' in typed(first_here(text, bare))


def test_whose_names_of_other_projects_are(bare: str) -> None:
    for symbol, owner, look in (
        ("_ZN10tensorflow12OpDefBuilder4AttrESs", "tensorflow", "tf.sysconfig"),
        ("_ZN3atb9OperationD1Ev", "ascend-atb", "nnal/atb/set_env.sh"),
        ("aclnnAdd", "ascend-cann", "ascend-toolkit/set_env.sh"),
        ("__kmpc_barrier", "libomp", "llvm-openmp"),
        ("_ZN8nvinfer16LoggerC1Ev", "tensorrt", "tensorrt"),
    ):
        answer = first_here(f"ImportError: /x/ext.so: undefined symbol: {symbol}", bare)
        assert answer.owner == owner and answer.confidence != "high"
        assert look in typed(answer)
        assert "a source file was left out" not in said(answer).lower()
    flavour = first_here(
        "/x/mpi_lib.so: undefined symbol: _ZN10tensorflow12OpDefBuilder4AttrESs", bare
    )
    assert "-D_GLIBCXX_USE_CXX11_ABI=1" in said(flavour)


def test_whose_a_library_of_torch_is() -> None:
    assert owner_of_library("libtorch_cuda.so") == "torch/torch_cuda"
    assert owner_of_library("libtorch_cpu.so") == "torch/torch_cpu"
    assert owner_of("aoti_torch_delete_tensor_object", None, "") == "torch/stable"


def test_the_owner_is_the_library_that_exports_the_name(bare: str) -> None:
    """torch::ValueError is defined in libtorch_python up to 2.2, its namespace everywhere."""
    text = "/x/ext.so: undefined symbol: _ZN5torch10ValueErrorC1EPKcz\ntorch 2.2.0\n"
    answer = first_here(text, bare)
    assert answer.owner == "torch/torch_python"
    assert "linked without it" in answer.cause


def test_names_that_one_text_misses_say_one_thing(bare: str) -> None:
    """at::UndefinedTensorImpl is torch 1.0's; c10::Error shows that the file is cxx11."""
    names = (
        "_ZN2at19UndefinedTensorImpl10_singletonE", "_ZN2at7getTypeENS_13TensorOptionsE",
        "_ZNK2at4cuda10CUDAStream6streamEv",
        f"_ZN3c105ErrorC1ENS_14SourceLocationERK{CXX11}",
    )  # fmt: skip
    text = "".join(f"undefined symbol: {name}\t(./libx2trt.so)\n" for name in names)
    answers = explain([text], bare, {}).answers
    assert len([one for one in answers if one.direction == "file-older"]) == 1
    assert "1.0.0 \u2013 1.0.1" in said(answers[0]) and "cxx11" in said(answers[0])
    assert "torch==" not in typed(answers[0])


def test_two_names_with_a_string_are_a_matter_of_flavour_before_age(bare: str) -> None:
    """fromQualString lasts to torch 2.6, Error(SourceLocation, string const&) to 1.5."""
    text = (
        "a.cpp:(.text+0x1): undefined reference to `c10::Error::Error(c10::SourceLocation, "
        "std::string const&)'\na.cpp:(.text+0x2): undefined reference to "
        "`c10::Symbol::fromQualString(std::string const&)'\n"
    )
    answer = first_here(text, bare)
    assert answer.direction == "other-flavour" and answer.confidence == "medium"
    assert "-D_GLIBCXX_USE_CXX11_ABI=1" in said(answer)
    told = first_here(text + "libtorch 1.3.1 under centos7\n", bare)
    assert told.direction == "other-flavour"
    assert read_paste("libtorch-cxx11-abi-shared-with-deps-1.3.1.zip").versions == {
        "cxx11_abi": "True", "torch": "1.3.1"}  # fmt: skip


def test_what_an_image_brings_is_not_built_again(bare: str) -> None:
    text = (
        "the latest `nvcr.io/nvidia/pytorch` docker image (i.e., `24.08-py3`)\nImportError: /usr/"
        "local/lib/python3.10/dist-packages/transformer_engine/te.cpython-310-x86_64-linux-gnu.so: "
        f"undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE{CXX11}\n"
    )
    answer = first_here(text, bare)
    assert answer.kind == "wrong-torch" and "24.08" in answer.cause
    assert "PYTHONNOUSERSITE" in typed(answer) and "pip install" not in typed(answer)


def test_a_mac_has_names_of_its_own(bare: str) -> None:
    text = (
        "OSError: dlopen(/opt/x/site-packages/torchaudio/lib/libtorchaudio.so, 0x0006): Symbol not "
        "found: __ZN2at8internal15invoke_parallelExxxRKNSt3__18functionIFvxxEEE\n  Expected in: "
        "<F444C1C4-7CAA-34AA-AA17-B5ED7975BD31> /opt/x/torch/lib/libtorch_cpu.dylib\n"
    )
    answer = first_here(text, bare)
    assert answer.confidence == "low" and "No torch from" not in said(answer)
    assert "inspect" not in typed(answer) and "readelf" not in typed(answer)


def test_an_option_that_asked_for_the_flavour_is_read(bare: str) -> None:
    text = (
        "ImportError: /x/site-packages/t/lib/libt.so: undefined symbol: "
        "_ZN2at11show_configB5cxx11Ev\npython setup.py install --use-cxx11-abi\n"
    )
    assert "--use-cxx11-abi" in said(first_here(text, bare))


def test_an_egg_is_built_from_an_empty_directory(bare: str) -> None:
    egg = "/x/site-packages/MyOps-1.0-py3.10-linux-x86_64.egg/myops.so"
    answer = first_here(f"ImportError: {egg}: undefined symbol: _ZNK2at6Tensor7optionsEv", bare)
    assert "rm -rf build dist *.egg-info" in typed(answer)


def test_every_product_has_an_owner_and_every_owner_a_product() -> None:
    data = Path(fa_forensics.__file__).parent / "data"
    owners = json.loads((data / "owners.json").read_text())["rows"]
    products = json.loads((data / "products.json").read_text())["products"]
    assert {row["owner"] for row in owners if row.get("product")} == set(products)


def test_a_type_of_a_sibling_package_is_not_torchs(bare: str) -> None:
    text = (
        "    from spconv.algo import AlgoHint\nImportError: arg(): could not convert default "
        "argument 'mask: tv::Tensor' in function 'f' into a Python object (type not registered "
        "yet?)\n"
    )
    answer = first_here(text, bare)
    assert answer.owner == "cumm" and "import torch" not in typed(answer)
    torchs = text.replace("tv::Tensor", "at::Tensor").replace("spconv.algo", "ext")
    assert "import torch" in typed(first_here(torchs, bare))


def test_a_package_with_torchs_numbers_is_not_upgraded_alone(bare: str) -> None:
    file = "/x/site-packages/_XLAC.cpython-38-x86_64-linux-gnu.so"
    answer = first_here(f"ImportError: {file}: undefined symbol: {NODE}B5cxx11Ev", bare)
    assert "--upgrade" not in typed(answer) and "same minor version" in said(answer)


def test_a_torch_that_something_asks_for_is_not_the_one_that_is_there() -> None:
    for text in ("README asks torch==2.4.1 + cu121", "torchvision 0.15.2 requires torch==2.0.1"):
        assert "torch" not in read_paste(text).versions
    assert read_paste("x 1.0 requires torch==2.3.0, but you have torch 2.2.0").versions[
        "torch"
    ] == ("2.2.0")
