"""``why`` on names that a package itself should define: which part of it was left out."""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

from fa_forensics.report_why import Answer
from fa_forensics.why.other_names.left_out import doubled_scope, sort_of


def only(*lines: str) -> Answer:
    (answer,) = answers(*lines)
    return answer


def own(symbol: str, *more: str, file: str = ".../site-packages/my_ops/_C.abi3.so") -> Answer:
    answer = only(f"ImportError: {file}: undefined symbol: {symbol}", *more)
    assert (answer.kind, answer.code, answer.owner) == ("own-symbol", "FA205", "extension")
    return answer


@pytest.mark.parametrize(
    "demangled, sort",
    [
        ("ms_deform_attn_cuda_forward(at::Tensor const&, int)", "cuda"),
        ("ROIAlignForwardLaucher(float const*, int)", "cuda"),
        ("SimpleKNN::knn(int, float3*, float*)", "cuda"),
        ("run_fwd(Params&, CUstream_st*)", "cuda"),
        ("cutlass_moe_mm_sm100(at::Tensor&)", "arch"),
        ("void run_mha_fwd_<80, cutlass::bfloat16_t, 128>(Flash_fwd_params&)", "instance"),
        ("detectron2::detectron2::get_version()", "doubled"),
        ("Foo::Foo(int)", ""),
        ("foo::Foo::Foo(int)", ""),
        ("softmax(at::Tensor)", ""),
        ("plasm90(at::Tensor)", ""),
    ],
)
def test_a_name_shows_the_part_that_defines_it(demangled: str, sort: str) -> None:
    assert sort_of(demangled) == sort


def test_a_constructor_is_no_doubled_namespace() -> None:
    assert doubled_scope("a::B::B()") is None
    assert doubled_scope("a::a::B::f()") == ("a::a::B::f", "a::B::f")


def test_cuda_sources_that_were_left_out() -> None:
    answer = own("_Z27ms_deform_attn_cuda_forwardRKN2at6TensorES2_S2_S2_S2_i", "torch 2.2.0")
    assert "a CUDA source file (.cu) defines it" in answer.cause
    assert "my_ops's own" in answer.cause
    assert any("FORCE_CUDA=1" in note for note in answer.notes)
    assert answer.help[0].startswith("rm -rf build")


def test_code_for_one_architecture() -> None:
    answer = own("_Z20cutlass_moe_mm_sm100RN2at6TensorERKS0_", file="/p/vllm/vllm/_C.abi3.so")
    assert "TORCH_CUDA_ARCH_LIST: 10.0" in answer.cause
    assert "vllm's own" in answer.cause
    assert answer.help[0].endswith("-e .")


def test_a_kernel_instance_that_an_option_left_out() -> None:
    symbol = (
        "_Z12run_mha_fwd_ILi80EN7cutlass10bfloat16_tELi128ELi128ELb1ELb1ELb0ELb1EEvR16Flash_fwd_par"
        "amsP11CUstream_st"
    )
    answer = own(symbol)
    assert "one instance of a template" in answer.cause
    assert any("An option that leaves kernels out" in note for note in answer.notes)


def test_a_namespace_within_itself_is_a_fault_of_the_source() -> None:
    answer = own("_ZN10detectron210detectron218get_cudart_versionEv")
    assert "another function than detectron2::get_cudart_version" in answer.cause
    assert "declared with other parameters" not in answer.cause


def test_a_build_for_rocm_lists_its_sources() -> None:
    answer = own("_Z17apply_rotary_cudaN2at6TensorES0_b", "ROCM 5.6, MI250")
    assert "hipifies them" in answer.cause


def test_cmake_without_a_cuda_compiler() -> None:
    line = "ImportError: .../my_ops/_C.abi3.so: undefined symbol: _Z11launch_fillPfi"
    found = answers(line, "-- The CUDA compiler identification is unknown")
    answer = next(one for one in found if one.owner == "extension")
    assert "found no nvcc that works" in answer.cause
    assert any("CUDACXX" in note for note in answer.notes)


def test_a_name_with_a_wrong_count_is_read_by_its_letters() -> None:
    answer = own("_Z16ROIPool_forward_cudaRKN2at6TensorES2_fii")
    assert answer.confidence == "low"
    assert "a CUDA source file (.cu) defines it" in answer.cause


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "__cudaRegisterLinkedBinary_54_tmpxft_000032bc_00000000_7_Reduce_cpp1_ii_653d034f",
            "device link was left out: Reduce was compiled",
        ),
        (
            "__cudaRegisterLinkedBinary_38_cuda_device_runtime_compute_86_cpp1_ii_8b1a5d37",
            "device link was left out: the file was linked with CUDA's device runtime",
        ),
        (
            "__fatbinwrap_38_cuda_device_runtime_compute_86_cpp1_ii_8b1a5d37",
            "-lcudadevrt), of the very toolkit",
        ),
        (
            "__fatbinwrap_1a2b3c4d_9_kernel_cu_9f8e7d6c_1234",
            "device link was made with the object of kernel.cu",
        ),
    ],
)
def test_device_link_names_of_old_and_new_compilers(name: str, words: str) -> None:
    """nm: without -dlink the first sort is undefined, without an object of its own the second."""
    answer = own(name)
    assert words in answer.cause
    assert any("SEPARABLE_COMPILATION" in command for command in answer.help)


@pytest.mark.parametrize(
    "symbol, owner",
    [
        ("_ZN6google10LogMessageC1EPKci", "glog"),
        ("_ZN6google8protobuf7Message5ClearEv", "protobuf"),
        ("_ZN5boost10filesystem4path8filenameEv", "boost"),
        ("_ZN3fmt2v97vformatEv", "fmt"),
        ("_ZN2cv6imreadERKSsi", "opencv"),
    ],
)
def test_other_projects_own_their_names(symbol: str, owner: str) -> None:
    answer = only(f"ImportError: .../my_ops/_C.abi3.so: undefined symbol: {symbol}")
    assert answer.owner == owner
    assert "torch has no part in it" in answer.cause


def test_a_release_of_torch_that_hides_a_name_is_no_mix_of_two() -> None:
    line = (
        "ImportError: /usr/lib/python3.8/site-packages/torch/lib/libtorch_python.so: undefined "
        "symbol: _ZN5torch4cuda4nccl6detail16throw_nccl_errorE12ncclResult_t"
    )
    # 1.4.0 alone lacks it between 1.0.0 and 1.6.0 (the table of releases).
    answer = only(line, "PyTorch Version (e.g., 1.0): 1.4.0")
    assert "torch 1.4.0 exports it" not in answer.cause
    assert "torch 1.4.0 does not" in answer.cause
    assert answer.code == "FA205" and answer.confidence == "medium"
    assert any('"torch==1.4.0"' in command for command in answer.help)
    alone = only(line)
    assert alone.confidence == "medium" and "A torch 1.4.0 that was built" in alone.cause


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Error(s) in loading state_dict for Model: size mismatch for a.b: copying",
        "Error(s) in loading state_dict for Model",
        "RuntimeError: DataLoader worker (pid(s) 12345) exited unexpectedly",
        "ValueError: not enough values to unpack (expected 3, got 2)",
        "torch version 2.4.0",
    ],
)
def test_a_sentence_is_no_name(text: str) -> None:
    assert only(text).kind == "unrecognised"


@pytest.mark.parametrize(
    "text",
    [
        "at::Tensor::device() const",
        "c10::Error::what() const [clone .cold]",
        "memcpy version GLIBC_2.14",
    ],
)
def test_a_name_with_what_stands_behind_it_is_one(text: str) -> None:
    assert only(text).symbol or only(text).demangled


@pytest.mark.parametrize(
    "text, words",
    [
        (
            "PermissionError: [Errno 13] Permission denied: '/tmp/torch_extensions/fused'",
            "TORCH_EXTENSIONS_DIR",
        ),
        ("RuntimeError: $ Torch: not enough memory: you tried to allocate 72GB.", "machine's own"),
    ],
)
def test_what_is_no_question_of_binaries_is_said_so(text: str, words: str) -> None:
    answer = only(text)
    assert (answer.kind, answer.owner) == ("unrecognised", None)
    assert words in answer.cause


def test_two_headers_of_blas_come_first_where_the_name_has_their_type() -> None:
    answer = first(
        "ImportError: /e/site-packages/MinkowskiEngineBackend/_C.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: "
        "_ZN9minkowski8cpu_gemmIdEEv12CBLAS_LAYOUT15CBLAS_TRANSPOSES2_iiiT_PKS3_S5_S3_PS3_"
    )
    assert "CBLAS_ORDER" in said(answer) and "GPU" not in said(answer)
    assert "library is missing" not in said(answer)
    assert any("--blas=openblas" in note for note in answer.notes)
