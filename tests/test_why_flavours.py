"""``why`` on std::string flavours: what made the file's, and the way out that fits the torch."""

from __future__ import annotations

import pytest
from support.asking import answers, first

from fa_forensics.report_why import Answer

#: c10::Error(SourceLocation, std::string): 1.6 to 2.6 spell it ESs, 2.7 and later with __cxx11.
OLD = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#: c10::DeviceTypeName in cxx11: a tag alone shows it.
TAGGED = "_ZN3c1014DeviceTypeNameB5cxx11ENS_10DeviceTypeEb"


def missing(symbol: str, file: str = "/e/lib/python3.10/site-packages/my_ops/_C.abi3.so") -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


def told(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes))


def test_a_file_of_ones_own_is_compiled_again_before_torch_is_changed() -> None:
    answer = first(missing(OLD), "torch 2.7.1+cu128, CUDA 12.8")
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    again = next(i for i, text in enumerate(answer.help) if "--no-build-isolation" in text)
    torch = next(i for i, text in enumerate(answer.help) if '"torch==' in text)
    assert again < torch
    assert "no -D_GLIBCXX_USE_CXX11_ABI of its own" in told(answer)


def test_a_python_without_newer_torches_settles_the_torch() -> None:
    file = "/e/lib/python3.7/site-packages/my_ops/_C.cpython-37m-x86_64-linux-gnu.so"
    answer = first(missing(TAGGED, file))
    assert "a pre-cxx11 one, and the file was built for the cxx11 flavour" in answer.cause
    assert not any('"torch' in text for text in answer.help)


def test_a_python_without_older_torches_settles_it_too() -> None:
    file = "/e/lib/python3.14/site-packages/my_ops/_C.cpython-314-x86_64-linux-gnu.so"
    answer = first(missing(OLD, file))
    assert "a cxx11 one, and the file was built for the pre-cxx11 flavour" in answer.cause


@pytest.mark.parametrize(
    "torch",
    ["2.5.0a0+872d972e41.nv24.08", "2.1.0a0+32f93b1", "2.3.0a0+git4aa1f99"],
)
def test_a_torch_of_ones_own_is_not_replaced_by_the_indexs(torch: str) -> None:
    answer = first(missing(OLD), f"torch {torch}")
    assert answer.kind == "cxx11-abi"
    assert not any('"torch==' in text for text in answer.help)
    assert "has to be compiled for the torch that is there" in told(answer)


def test_a_jetsons_torch_is_cxx11() -> None:
    file = ".../torchaudio/lib/libtorchaudio.so"
    answer = first(missing("_ZN5torch3jit17parseSchemaOrNameERKSs", file), "Jetson, torch 1.8.0")
    assert "the compiler's own flavour of std::string, which is cxx11" in answer.cause
    assert any("pytorch/audio@v0.8.0" in text for text in answer.help)
    assert not any("torchaudio==0.8.0" in text for text in answer.help)


def test_a_package_and_its_torch_come_from_one_place() -> None:
    file = ".../site-packages/torchvision/image.so"
    answer = first(missing(OLD, file), "torch 1.12.0", "torchvision 0.13.0")
    (both,) = (text for text in answer.help if "torchvision==" in text)
    assert '"torch==1.12.0"' in both
    assert "--no-deps" not in both


def test_the_published_torch_is_the_way_out_of_a_wheel() -> None:
    answer = first(missing(OLD, ".../awq_inference_engine.abi3.so"), "Torch: 2.0.1+cu118")
    assert any('--force-reinstall --no-cache-dir "torch==2.0.1"' in text for text in answer.help)


def test_a_package_in_the_text_is_built_in_its_own_release() -> None:
    symbol = (
        "_ZN3c105ErrorC1ENS_14SourceLocationERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    answer = first(f"undefined symbol: {symbol}", "detectron2 0.3", "PyTorch 1.5.0")
    assert any(text.endswith("detectron2@v0.3") for text in answer.help)
    file = ".../torch_scatter/_version_cuda.so"
    answer = first(missing(symbol, file), "torch 1.5.0, torch-scatter 2.0.4")
    assert any(text.endswith(" torch-scatter==2.0.4") for text in answer.help)


def test_a_library_that_is_loaded_by_its_path_is_no_module() -> None:
    file = "/src/Proj/build/lib/libth_ops.so"
    answer = first(
        "    torch.ops.load_library(path)",
        f"OSError: {file}: undefined symbol: {NEW}",
        "torch 2.1.2",
    )
    assert "loaded by its path" in told(answer)
    assert "PYTHONPATH" not in " ".join((told(answer), *answer.help))
    assert any("cmake -S . -B build" in text for text in answer.help)


def test_a_module_in_a_source_tree_is_built_there() -> None:
    file = "/home/u/mmcv/mmcv/_ext.cpython-38-x86_64-linux-gnu.so"
    answer = first(missing(OLD, file), "torch 2.0.1")
    assert any(text.endswith("--no-cache-dir -e .") for text in answer.help)
    assert not any(text.endswith("mmcv mmcv") for text in answer.help)


@pytest.mark.parametrize(
    "line, words",
    [
        ("g++ -fPIC -D_GLIBCXX_USE_CXX11_ABI=0 -c a.cpp", "sets -D_GLIBCXX_USE_CXX11_ABI=0"),
        ("OS: CentOS Linux 7", "make the pre-cxx11 flavour alone"),
    ],
)
def test_what_made_the_files_flavour_is_read(line: str, words: str) -> None:
    answer = first(missing(OLD), line, "PyTorch version: 2.8.0")
    assert answer.kind == "cxx11-abi"
    assert words in told(answer)


def test_a_builds_own_option_is_not_torchs_flavour() -> None:
    answer = first(missing(NEW), "FLASH_ATTENTION_FORCE_CXX11_ABI=1", "torch 2.2.2+cu118")
    assert "this torch is pre-cxx11" in answer.cause
    assert "The build was given FLASH_ATTENTION_FORCE_CXX11_ABI=1" in told(answer)
    answer = first(missing(NEW), "-D_GLIBCXX_USE_CXX11_ABI=0", "torch 2.2.2+cu118")
    assert "did not reach the file" in told(answer)


def test_names_that_no_wheel_has_together_tell_their_releases_by_both_flavours() -> None:
    names = (
        TAGGED,
        "_ZN3c107Warning4warnENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIc"
        "EEE",
    )
    found = answers(*(f"undefined symbol: {name}\t(p/libp.so)" for name in names))
    assert "torch 1.0.0" in found[0].notes[0]
    assert "1.3.1 alone" in found[0].notes[0]
    assert not any('"torch' in command for command in found[0].help)


def test_opencv_and_a_pre_cxx11_libtorch_do_not_link() -> None:
    answer = first("main.cpp:14: undefined reference to `cv::imread(std::string const&, int)'")
    assert answer.owner == "opencv"
    assert "sets -D_GLIBCXX_USE_CXX11_ABI=0 for whatever is compiled with it" in told(answer)


CLASS_BASE = "_ZN5torch6detail10class_baseC2ERKSsS3_SsRKSt9type_infoS6_"


def test_before_torch_2_7_a_pre_cxx11_file_that_fails_met_a_torch_of_another_source() -> None:
    """TensorRT-LLM issue 808, January 2024: no wheel of torch was cxx11 then, NGC's torch was."""
    file = "/usr/local/lib/python3.10/dist-packages/tensorrt_llm/libs/libth_common.so"
    answer = first(missing(CLASS_BASE, file), "Python 3.10, January 2024")
    assert answer.kind == "cxx11-abi"
    assert "most likely a cxx11 build (conda-forge's" in answer.cause
    assert "torch 1.10.0 \u2013 2.6.0 export it" in answer.cause
    # torch 2.2.0 came out on 30 January 2024.
    assert any('"torch==2.1.2"' in text for text in answer.help)
    assert any("a container's" in note for note in answer.notes)


def test_a_wheel_that_names_its_torch_is_not_compiled_with_pip() -> None:
    file = "/e/lib/python3.10/site-packages/fairseq2n/lib/libfairseq2n.so.0"
    answer = first(missing("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", file), "September 2023")
    assert not any("rm -rf build" in text for text in answer.help)
    assert any("/whl/pt2.0.1/cuXYZ fairseq2n==" in text for text in answer.help)


def test_a_cut_name_of_one_function_is_judged_by_the_torch_that_is_told() -> None:
    start = "_ZN3c105ErrorC2ENS_14Source"
    alone = first(missing(start, "/.../flash_attn_2_cuda.so"))
    assert "fa-forensics wheels" in alone.help
    assert any("--no-binary flash-attn" in text for text in alone.help)
    answer = first(missing(start, "/.../flash_attn_2_cuda.so"), "PyTorch: 2.7.0, Python: 3.10")
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    assert "torch 1.6.0 \u2013 2.6.0" in answer.cause and answer.confidence == "medium"


def test_torch_before_1_1_forces_the_flavour_of_its_extensions() -> None:
    """apex issue 212: Arch's torch 1.0 is cxx11, and cpp_extension of that day says =0."""
    file = "/usr/lib/python3.7/site-packages/syncbn.cpython-37m-x86_64-linux-gnu.so"
    symbol = "_ZN3c105ErrorC1ENS_14SourceLocationERKSs"
    answer = first(missing(symbol, file), "Arch Linux distro pytorch, Python 3.7, March 2019")
    assert answer.kind == "cxx11-abi"
    assert any("APEX_CPP_EXT=1 APEX_CUDA_EXT=1" in text for text in answer.help)
    assert "the same build again gives the same error" in told(answer)
    assert not any("compiled_with_cxx11_abi" in text for text in answer.help)


def test_a_cuda_that_is_not_said_of_torch_is_not_torchs() -> None:
    egg = "/opt/conda/lib/python3.10/site-packages/deep_gemm-2.0.0-py3.10-linux-x86_64.egg"
    file = f"{egg}/deep_gemm_cpp.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(NEW, file), "gcc 11.4.0, python 3.10, cuda 12.8, h100")
    assert "the torch in the text is one for" not in told(answer)
    assert "BuildExtension" in told(answer)


def test_the_release_before_an_upgrade_is_the_way_back() -> None:
    """flash-attention issue 1717."""
    file = (
        "/usr/local/lib/python3.10/dist-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    )
    step = "upgraded from flash_attn 2.7.4.post1 to 2.8.0.post2, CUDA 12.4"
    answer = first(missing(NEW, file), step)
    assert answer.help[1].endswith("flash-attn==2.7.4.post1")
    assert "called cxx11abiFALSE have a cxx11 file" in told(answer)


def test_a_wheel_of_ones_project_is_named_beside_the_build() -> None:
    file = "/e/lib/python3.11/site-packages/exllamav3_ext.cpython-311-x86_64-linux-gnu.so"
    answer = first(missing(OLD, file))
    assert any("exllamav3/releases" in note for note in answer.notes)
    assert not any(text.startswith("rm -rf build") for text in answer.help)


def test_a_torch_that_another_package_asks_for_stays() -> None:
    """vllm 0.11.0 has Requires-Dist: torch==2.8.0."""
    text = missing("_ZNK2at10TensorBase4nameEv", "kvcached/vmm_ops.cpython-310-x86_64-linux-gnu.so")
    answer = first(text, "vllm 0.11.0, torch 2.8.0, kvcached 0.1.2")
    assert answer.direction == "other-flavour"
    assert any("--no-build-isolation" in command for command in answer.help)
    assert not any('"torch' in command for command in answer.help)
    assert "vllm 0.11.0 asks for torch 2.8.0" in told(answer)


def test_a_cut_name_beside_a_cxx11_wheel_of_flash_attn_is_its_flavour() -> None:
    """flash-attn 2.8.0's cxx11abiFALSE wheels for torch 2.6 are cxx11; 2.7.4.post1's are not."""
    text = "flash_attn_2_cuda ImportError: undefined symbol _ZN3c105ErrorC2"
    answer = first(text, "PyTorch 2.6 + Flash-Attn 2.8.0")
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    assert any(command.endswith("flash-attn==2.7.4.post1") for command in answer.help)
    assert any(command.endswith("flash-attn==2.8.0") for command in answer.help)
    assert first(text, "PyTorch 2.6 + Flash-Attn 2.7.4.post1").kind == "symbol-drift"
