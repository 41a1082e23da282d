"""``why`` on own names whose file's place, day or words tell how it was made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import answers, first, first_here, said

import fa_forensics
from fa_forensics.facts.paste.reader import read_paste
from fa_forensics.report_why import Answer

DATA = Path(fa_forensics.__file__).parent / "data"
OWN = "_Z18my_function_tensoriRKN2at6TensorE"


def typed(answer: Answer) -> str:
    return "\n".join(answer.help)


def missing(file: str, symbol: str = OWN) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


def test_a_build_of_the_jit_cache_is_removed_and_never_built_in_a_source_directory() -> None:
    folder = "/home/u/.cache/torch_extensions/py310_cu118/gsplat_cuda"
    answer = first(missing(f"{folder}/gsplat_cuda.so"), "gsplat 0.1.6")
    assert answer.help[0] == f"rm -r {folder}"
    assert "gsplat==0.1.6" in answer.help[1]
    assert "gsplat's own" in answer.cause and "JIT cache" in answer.cause
    assert "rm -rf build" not in said(answer)


@pytest.mark.parametrize("name", ["fused", "nvdiffrast_plugin"])
def test_so_is_one_of_a_package_that_is_not_known(name: str) -> None:
    folder = f"/root/.cache/torch_extensions/py38_cu113/{name}"
    answer = first(missing(f"{folder}/{name}.so"))
    assert answer.help[0] == f"rm -r {folder}"
    assert "rm -rf build" not in said(answer)


BACKEND = "/opt/tritonserver/backends/tensorrtllm/libtriton_tensorrtllm.so"
ERROR_MESSAGE = "_ZNK12tensorrt_llm8executor8Response11getErrorMsgB5cxx11Ev"


def test_a_backend_of_triton_and_its_library_are_of_two_releases() -> None:
    """tensorrtllm_backend issue 662: the image 24.11 put the backend 0.15.0 right."""
    answer = first(
        f"unable to load shared library: {BACKEND}: undefined symbol: {ERROR_MESSAGE}",
        "nvcr.io/nvidia/tritonserver:24.10-trtllm-python-py3, tensorrtllm_backend v0.15.0",
    )
    assert "libtensorrt_llm.so" in answer.cause and "different releases" in answer.cause
    assert "24.10 brings TensorRT-LLM 0.14.0" in said(answer)
    assert "tritonserver:24.11-trtllm-python-py3" in said(answer)
    assert "pip install" not in said(answer) and "rm -rf" not in said(answer)


def test_the_images_of_triton_are_in_order() -> None:
    table = json.loads((DATA / "triton_images.json").read_text())
    assert table["source"] and table["date"]
    images = list(table["tensorrt_llm"])
    assert images == sorted(images)
    versions = [tuple(map(int, text.split("."))) for text in table["tensorrt_llm"].values()]
    assert versions == sorted(versions)


def test_nightlies_are_changed_as_a_pair_from_their_own_index() -> None:
    file = "/e/lib/python3.12/site-packages/fbgemm_gpu/fbgemm_gpu_tbe_training_backward_dense.so"
    told = "PyTorch nightly 2026.08.31+cu130, fbgemm_gpu nightly 2026.8.31+cu130"
    answer = first(missing(file), told)
    assert "--pre" in answer.help[0] and answer.help[0].endswith("/whl/nightly/cu130")
    assert "fbgemm-gpu's own" in answer.cause
    plain = first(missing(file))
    assert "nightly" not in said(plain)


def test_libraries_of_a_wheel_alone_are_put_back_together() -> None:
    """TensorRT-LLM issue 7665: libth_common.so lacks a name of libtensorrt_llm.so."""
    symbol = "_ZN12tensorrt_llm7kernels19fp8_blockscale_gemm9getRunnerEv"
    answer = first(missing("tensorrt_llm/libs/libth_common.so", symbol), "TensorRT-LLM 1.1.0rc3")
    assert "rm -rf build" not in said(answer)
    assert answer.help[0].endswith(
        "tensorrt-llm==1.1.0rc3 --extra-index-url https://pypi.nvidia.com"
    )


def test_a_build_of_mmcv_keeps_its_operations() -> None:
    answer = first(
        missing("_ext.cpython-37m-x86_64-linux-gnu.so"), "mmcv with an own new op, Python 3.7"
    )
    assert "MMCV_WITH_OPS=1" in answer.help[0]
    assert "one's own" in said(answer) and "another release of" not in said(answer)


@pytest.mark.parametrize(
    "line, keys",
    [
        (
            "upgraded from flash_attn 2.7.4.post1 to 2.8.0.post2",
            {"pkg:flash-attn": "2.8.0.post2", "before:flash-attn": "2.7.4.post1"},
        ),
        ("after updating vllm from 0.8.5 to 0.9.0", {"before:vllm": "0.8.5"}),
        ("torch nightly (cu128)", {"nightly": "cu128"}),
        ("a nightly build of PyTorch", {"nightly": "yes"}),
        ("2.7 nightlies, 2025-01-22", {"nightly": "yes"}),
        ("I wrote my own CUDA kernel", {"flag:own-code": "own"}),
    ],
)
def test_what_a_text_says_of_steps_and_nightlies(line: str, keys: dict[str, str]) -> None:
    found = read_paste(f"{missing('/a/b.so')}\n{line}").versions
    assert {key: found.get(key) for key in keys} == keys


def test_a_codec_of_sox_is_no_function_of_torchaudio() -> None:
    answer = first(
        missing("/src/audio/torchaudio/lib/libtorchaudio.so", "gsm_create"), "Python 3.8"
    )
    assert answer.owner == "sox"
    assert "codecs" in answer.cause and "torch has no part" in answer.cause
    assert "install --upgrade" not in said(answer)


def test_a_function_that_returns_a_string_shows_its_flavour_by_what_it_lacks() -> None:
    """c++filt prints Message::GetTypeName[abi:cxx11]() for ..GetTypeNameB5cxx11Ev."""
    name = "_ZNK6google8protobuf7Message11GetTypeNameEv"
    answer = first(
        f"undefined symbol: {name}",
        "\tlibc10.so => not found",
        "\tlibprotobuf.so.10 => /usr/lib/x86_64-linux-gnu/libprotobuf.so.10 (0x00007f99c6ae6000)",
    )
    assert (answer.kind, answer.owner, answer.direction) == (
        "cxx11-abi",
        "protobuf",
        "other-flavour",
    )
    assert "GetTypeName[abi:cxx11]" in answer.cause
    assert any("libc10.so => not found in ldd is no error" in note for note in answer.notes)
    other = answers(f"undefined symbol: {name.replace('Ev', 'B5cxx11Ev')}")[0]
    assert other.code == "FA204"


@pytest.mark.parametrize(
    ("name", "owner", "library"),
    [
        ("numa_get_membind", "numa", "libnuma"),
        ("ibv_reg_mr", "rdma", "libibverbs"),
        ("io_pgetevents", "aio", "libaio"),
        ("eglGetProcAddress", "opengl", "libEGL"),
        ("TVMFuncCall", "tvm", "libtvm"),
        ("_ZN3tvm7runtime7NDArray10CreateViewENS0_10ShapeTupleE10DLDataType", "tvm", "libtvm"),
        ("_ZN3tvm3ffi6ObjectD1Ev", "tvm-ffi", "tvm_ffi"),
    ],
)
def test_a_name_of_a_systems_library_is_not_the_files_own(
    name: str, owner: str, library: str, bare: str
) -> None:
    answer = first_here(f"ImportError: /x/site-packages/e/c.so: undefined symbol: {name}", bare)
    assert answer.owner == owner and library in f"{said(answer)} {typed(answer)}"
    assert "rm -rf build" not in typed(answer) and "torch has no part" in said(answer)


@pytest.mark.parametrize(
    "name", ["THLongStorage_inferSizeN", "THNN_CudaDoubleSpatialClassNLLCriterion_updateGradInput"]
)
def test_a_library_of_torchs_early_days_that_lacks_a_name_is_torch_itself(
    name: str, bare: str
) -> None:
    file = ".../torch/lib/libTHC.so.1"
    answer = first_here(f"ImportError: {file}: undefined symbol: {name}", bare)
    assert answer.code == "FA607" and answer.confidence == "medium"
    assert "older torch" not in said(answer) and "built from source" in said(answer)


def test_a_torch_from_source_that_lacks_its_own_name_is_built_again_whole(bare: str) -> None:
    text = (
        "ImportError: .../site-packages/torch/lib/libtorch.so.1: undefined symbol: "
        "_ZN10onnx_torch30_TensorProto_default_instance_E\ntorch 1.0 from source, Python 3.6"
    )
    answer = first_here(text, bare)
    assert answer.code == "FA607" and "python setup.py clean" in typed(answer)
    assert "pip install" not in typed(answer)


def test_a_name_of_gccs_library_on_a_mac_is_no_matter_of_a_newer_copy(bare: str) -> None:
    text = (
        "ImportError: dlopen(.../torch/_C.so, 10): Symbol not found: "
        "__ZNSs4_Rep20_S_empty_rep_storageE\n  Referenced from: .../torch/_C.so\n"
        "  Expected in: flat namespace"
    )
    answer = first_here(text, bare)
    assert answer.owner == "libstdc++" and "CC=clang CXX=clang++" in typed(answer)
    assert "older" not in answer.cause and "libstdcxx-ng" not in typed(answer)


def test_a_name_of_python_2_is_not_one_of_a_python_3_before_the_record(bare: str) -> None:
    answer = first_here("undefined symbol: _Py_ZeroStruct\npybind11, Python 3.5", bare)
    assert "Python 2" in answer.cause and "3.5 exports it" not in answer.cause


@pytest.mark.parametrize("file", [".../torch/_C.so", "/x/pytorch/torch/_C.cpython-36m.so"])
def test_what_torchs_own_module_lacks_is_torchs(file: str, bare: str) -> None:
    name = "_ZN4thpp10THCSTensorIlEC1EP8THCStateP14THCSLongTensor"
    answer = first_here(f"ImportError: {file}: undefined symbol: {name}", bare)
    assert answer.code == "FA607" and answer.owner == "torch"
