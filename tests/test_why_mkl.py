"""Names and libraries of Intel's MKL that are not found, and stand-ins for CUDA's libraries."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def answers(text: str, bare: str) -> tuple[Answer, ...]:
    """The answers to a text, in an environment without torch."""
    return explain([text], bare, {}).answers


@pytest.mark.parametrize(
    "file",
    [
        "/opt/intel/compilers_and_libraries_2018.1.163/linux/mkl/lib/intel64_lin/libmkl_gf_lp64.so",
        "/opt/intel/oneapi/mkl/2024.0/lib/libmkl_gnu_thread.so.2",
        ".../parallel_studio_xe_2015_update2/.../mkl/lib/intel64/libmkl_gf_lp64.so",
    ],
)
def test_a_library_of_mkl_that_misses_a_name_of_mkl_is_two_releases_of_it(
    file: str, bare: str
) -> None:
    (answer,) = answers(f"ImportError: {file}: undefined symbol: mkl_lapack_sgelqf", bare)
    assert answer.owner == "mkl" and answer.confidence == "medium"
    assert "two releases" in answer.cause and "the system's" in answer.cause
    assert "unset LD_LIBRARY_PATH" in answer.help


def test_mkls_part_for_a_processor_is_one_answer_that_names_the_link(bare: str) -> None:
    (answer,) = answers(
        "INTEL MKL ERROR: /e/libmkl_def.so: undefined symbol: mkl_sparse_optimize_bsr_trsm_i8.\n"
        "Intel MKL FATAL ERROR: Cannot load libmkl_def.so.",
        bare,
    )
    assert "--as-needed" in answer.cause
    assert any("--no-as-needed" in text for text in answer.help)


def test_mkl_for_intels_gpus_has_a_number_for_each_year(bare: str) -> None:
    """The wheels mkl-dpcpp 2022 have libmkl_sycl.so.2, those of 2023 libmkl_sycl.so.3."""
    for number, year in (("2", "2022"), ("3", "2023")):
        (answer,) = answers(
            f"ImportError: libmkl_sycl.so.{number}: cannot open shared object file: No such file",
            bare,
        )
        assert answer.owner == "mkl" and f"oneAPI {year} alone" in answer.cause
        assert any(f"mkl-dpcpp>={year}," in text for text in answer.help)


def test_a_stub_of_the_cuda_runtime_is_no_reason_to_build_again(bare: str) -> None:
    (answer,) = answers(
        "/e/site-packages/tilelang/lib/libcudart_stub.so: undefined symbol: cudaDeviceReset", bare
    )
    assert answer.owner == "cudart" and "stub" in answer.cause and "tilelang" in answer.cause
    assert not any("--no-binary" in text or "install" in text for text in answer.help)


def test_a_file_of_the_cache_is_opened_by_its_path(bare: str) -> None:
    file = "~/.cache/torch_extensions/py38_cu113/transformer_inference/transformer_inference.so"
    (answer,) = answers(f"ImportError: {file}: undefined symbol: curandCreateGenerator", bare)
    by_hand = next(text for text in answer.help if "RTLD_GLOBAL" in text)
    assert f'expanduser("{file}")' in by_hand and "import transformer_inference" not in by_hand


def test_an_oserror_of_libtorch_cpu_is_first_of_all_an_older_torch(bare: str) -> None:
    (answer,) = answers(
        "OSError: libtorch_cpu.so: cannot open shared object file: No such file", bare
    )
    assert "1.5.0" in answer.cause and answer.kind == "wrong-torch"
    (answer,) = answers(
        "ImportError: libtorch_cpu.so: cannot open shared object file: No such file", bare
    )
    assert answer.kind == "import-order"


def test_a_library_of_cuda_10_1_beside_a_torch_for_10_0_is_of_another_build(bare: str) -> None:
    (answer,) = answers(
        "OSError: libcusparse.so.10: cannot open shared object file: No such file or directory\n\n"
        "torch 1.4.0+cu100, torch-sparse 0.6.4, Python 3.7",
        bare,
    )
    assert "libcusparse.so.10.0" in answer.cause and "CUDA 10.0" in answer.cause
    assert not any("LD_LIBRARY_PATH" in text or "cudatoolkit" in text for text in answer.help)


def test_the_torch_that_a_wheel_is_for_is_not_the_loaded_one(bare: str) -> None:
    (answer,) = answers(
        "OSError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory\n"
        "torch 1.8.0 (CUDA 10.2), torch-scatter wheel for torch-1.8.0+cu111",
        bare,
    )
    assert "built for torch 1.8.0+cu111" in answer.cause and "CUDA 10.2" in answer.cause


def test_k2_owns_its_library(bare: str) -> None:
    (answer,) = answers("ImportError: libk2context.so: cannot open shared object file", bare)
    assert answer.owner == "k2"


def test_blas_that_torch_itself_takes_from_the_system_is_installed_there(bare: str) -> None:
    """NVIDIA's page on torch for Jetson has libopenblas among what is installed first."""
    (answer,) = answers(
        "ImportError: /h/.local/lib/python3.6/site-packages/torch/lib/libtorch_cpu.so: "
        "undefined symbol: sgesdd",
        bare,
    )
    assert answer.owner == "blas" and "torch's own" in answer.cause
    assert "apt-get install libopenblas-dev" in answer.help


def test_blas_of_an_extension_is_linked_by_the_extension(bare: str) -> None:
    (answer,) = answers("ImportError: /e/_ext.so: undefined symbol: sgemm_", bare)
    assert answer.owner == "blas" and any("libraries=['openblas']" in n for n in answer.notes)
    (answer,) = answers("ImportError: /e/cpu_ops.so: undefined symbol: cblas_gemm_s8u8s32", bare)
    assert answer.owner == "mkl" and any("libraries=['mkl_rt']" in n for n in answer.notes)


def test_mkls_layer_for_threads_takes_openmp_from_the_process(bare: str) -> None:
    (answer,) = answers(
        "OSError: /opt/mkl/libmkl_intel_thread.so.2: undefined symbol: omp_get_max_active_levels",
        bare,
    )
    assert "libiomp5" in answer.cause and any("mkl_sequential" in n for n in answer.notes)


def test_a_torch_that_cannot_be_imported_is_not_imported_to_look_at_it(bare: str) -> None:
    (answer,) = answers(
        "ImportError: /l/python3.9/site-packages/torch/lib/libtorch_cpu.so: undefined symbol: "
        "__kmpc_global_thread_num",
        bare,
    )
    assert answer.owner == "libomp" and "torch's own" in answer.cause
    assert not any("import torch" in text for text in answer.help)


def test_a_name_of_every_nvrtc_is_missing_in_torch_by_its_link(bare: str) -> None:
    """nvrtcGetProgramLogSize is in nvrtc.h of CUDA 7.0."""
    (answer,) = answers(
        "ImportError: /l/python3.6/site-packages/torch/_C.cpython-36m-x86_64-linux-gnu.so: "
        "undefined symbol: nvrtcGetProgramLogSize",
        bare,
    )
    assert answer.code == "FA210" and "no copy is too old" in answer.cause


def test_a_version_without_the_loaders_tail_is_read(bare: str) -> None:
    """cudaGraphRetainUserObject is of CUDA 11.3; every CUDA 11 has libcudart.so.11.0."""
    (answer,) = answers(
        "Symbol cudaGraphRetainUserObject version libcudart.so.11.0 not defined in file", bare
    )
    assert answer.code == "FA204" and "libcudart.so.11.0" in answer.cause
    assert "CUDA 11.3" in answer.cause


def test_the_old_bitsandbytes_goes_by_the_runtime_that_it_finds(bare: str) -> None:
    """cuda_setup/main.py asks cudaRuntimeGetVersion in 0.39.1, torch.version.cuda in 0.41.1."""
    text = "CUDA SETUP: CUDA runtime path found: /c/libcudart.so\nOSError: libcublas.so.11: "
    text += "cannot open shared object file: No such file or directory"
    (answer,) = answers(text, bare)
    assert "bitsandbytes" in answer.cause and "torch itself that needs" not in answer.cause
    (answer,) = answers(f"{text}\ntorch 1.11.0, bitsandbytes 0.34.0", bare)
    assert "not by the CUDA of torch" in answer.cause
    assert not any("BNB_CUDA_VERSION" in one for one in answer.help)


def test_cupti_of_cuda_10_is_in_the_toolkits_extras(bare: str) -> None:
    tail = "cannot open shared object file: No such file or directory"
    (answer,) = answers(f"ImportError: libcupti.so.10.2: {tail}", bare)
    assert answer.owner == "cupti"
    assert any("/usr/local/cuda-10.2/extras/CUPTI/lib64" in one for one in answer.help)


def test_one_library_in_place_of_another_is_the_first_one_missing(bare: str) -> None:
    (answer,) = answers(
        '"from pytorch3d import _C" is expecting libcudart.so.10.1 instead of libcudart.so.10.2',
        bare,
    )
    assert answer.owner == "cudart" and "CUDA 10.1 build" in answer.cause
    assert "pytorch3d" in answer.cause


def test_a_torch_before_dgls_list_is_too_old_for_it(bare: str) -> None:
    (answer,) = answers(
        "FileNotFoundError: Cannot find DGL C++ sparse library at "
        "/x/site-packages/dgl/dgl_sparse/libdgl_sparse_pytorch_1.9.0.so",
        bare,
    )
    assert any("older than those" in note for note in answer.notes)
    assert not any("newer than 2.4" in note for note in answer.notes)
    assert not any("--no-deps" in one for one in answer.help)


def test_turbomind_on_windows_takes_cuda_from_its_toolkit(bare: str) -> None:
    (answer,) = answers(
        "ImportError: DLL load failed while importing _turbomind: The specified module could not "
        "be found.",
        bare,
    )
    assert answer.owner == "lmdeploy" and "CUDA_PATH" in answer.cause
