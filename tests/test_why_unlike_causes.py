"""Texts near those of a rule of `why` whose cause is another: the rule leaves them alone."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.report_why import Answer


def _all(answer: Answer) -> str:
    return "\n".join((said(answer), *answer.help, *answer.notes))


def _circular(name: str, path: str) -> str:
    module = path.split("/")[-2]
    return (
        f"ImportError: cannot import name '{name}' from partially initialized module '{module}' "
        f"(most likely due to a circular import) ({path})"
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("cuda", "/opt/conda/lib/python3.10/site-packages/numba/__init__.py"),
        ("_utils", "/opt/conda/lib/python3.10/site-packages/accelerate/__init__.py"),
        ("_ops", "/home/me/xf/xformers/__init__.py"),
    ],
)
def test_a_circle_of_python_files_is_no_missing_build(name: str, path: str) -> None:
    assert "compiled module" not in said(first(_circular(name, path)))


def test_a_compiled_name_in_a_circle_is_one() -> None:
    path = "/opt/conda/lib/python3.10/site-packages/kern/__init__.py"
    assert "compiled module _C is not found" in said(first(_circular("_C", path)))


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        ("/usr/src/det/__init__.py", "/usr/src"),
        ("/home/me/src/det/__init__.py", "/home/me/src"),
        ("/home/me/proj/src/det/__init__.py", "/home/me/proj"),
    ],
)
def test_a_directory_of_sources_is_not_left_for_its_parent(path: str, tree: str) -> None:
    answer = first(_circular("_C", path))
    assert any(command.startswith(f"cd {tree} && ") for command in answer.help)


@pytest.mark.parametrize(
    "release", ["torch-scatter 2.1.2+pt20cu118", "vllm 0.4.0+computecanada", "xformers 0.1+git12ab"]
)
def test_a_label_of_no_index_says_nothing_of_the_machine(release: str) -> None:
    answer = first(
        f"{release} requires torch==2.0.1, but you have torch 2.1.0+cu118 which is incompatible."
    )
    assert answer.code == "FA606" and "different machines" not in said(answer)


@pytest.mark.parametrize("what", ["cudaMemcpy", "kernel launch", "CUDA kernel", "GpuSort"])
def test_words_of_any_program_are_not_flashinfers(what: str) -> None:
    answer = first(
        f"{what} failed with error: no kernel image is available for execution on the device",
        "GPU: GTX 1080",
    )
    assert "FlashInfer" not in _all(answer)


def test_a_package_of_python_files_needs_no_library_of_cuda() -> None:
    answer = first(
        "OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "numpy==1.26 torch==2.4.0+cu121 transformers==4.44",
    )
    assert "transformers" not in said(answer)


def test_what_a_windows_file_lacks_depends_on_what_it_is_for() -> None:
    answer = first(
        "ImportError: DLL load failed while importing _version_cpu: The specified module could "
        "not be found. C:\\p\\Lib\\site-packages\\torch_scatter\\_version_cpu.pyd",
        "torch 2.3.0+cpu, torch-scatter 2.1.2+pt23cpu",
    )
    assert "c10_cuda.dll" not in _all(answer) or "If this file is one" in _all(answer)


def test_a_package_that_is_told_as_not_used_is_not_the_one() -> None:
    answer = first(
        "RuntimeError: RMSNorm failed with error code no kernel image is available for execution "
        "on the device",
        "I use vLLM, not flashinfer. GPU: Tesla V100",
    )
    assert "The kernel is FlashInfer's" not in said(answer) and answer.owner != "flashinfer"


def test_a_rocblas_without_kernels_is_no_extension_without() -> None:
    answer = first(
        "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek "
        "for GPU arch : gfx1030",
        "torch 1.10.0+rocm4.2",
    )
    assert answer.owner == "rocblas" and "it is the extension that lacks" not in _all(answer)


def test_the_parts_of_transformer_engine_stay_of_one_number() -> None:
    answer = first(
        "OSError: /v/lib/python3.10/site-packages/transformer_engine/libtransformer_engine.so: "
        "libcublas.so.13: cannot open shared object file: No such file or directory",
        "transformer-engine==2.6.0\ntorch==2.8.0+cu128",
    )
    both = '"transformer-engine==2.6.0.post1" "transformer-engine-cu12==2.6.0.post1"'
    assert any(both in command for command in answer.help)
