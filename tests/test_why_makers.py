"""``why`` on who built the text's torch, on the day of the report, and on torches without Python.

conda-forge, distributions and NVIDIA's containers build torch with the compiler's own std::string
(cxx11); PyTorch's wheels did so from 2.7.0 on (its release notes). The days of releases are those
of their uploads.
"""

from __future__ import annotations

import pytest
from support.asking import first_here

from fa_forensics.facts.paste import read_paste
from fa_forensics.report_why import Answer

#: torch::jit::parseSchemaOrName(std::string const&): torch 1.1 to 2.3 (nm -D libtorch_cpu.so).
SCHEMA = "_ZN5torch3jit17parseSchemaOrNameERKSs"
#: With its second parameter: torch 2.4 to 2.6.
SCHEMA_24 = f"{SCHEMA}b"
CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
ERROR = f"_ZN3c105ErrorC2ENS_14SourceLocationE{CXX11}"
SCATTER = "/e/lib/python3.10/site-packages/torch_scatter/_version_cuda.so"


def missing(symbol: str, *more: str, file: str = SCATTER) -> str:
    return "\n".join((f"OSError: {file}: undefined symbol: {symbol}", *more))


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes))


def typed(answer: Answer) -> str:
    return "\n".join(answer.help)


@pytest.mark.parametrize(
    "line, maker",
    [
        ("pytorch   2.4.0   cuda118_py312h3690e1b_301   conda-forge", "conda-forge's"),
        ("libtorch  2.4.0   cuda118_h8db9d67_301   https://x/conda-forge", "conda-forge's"),
        ("pytorch 2.4.0 (conda-forge, cuda118)", "conda-forge's"),
        ("$ mamba install pytorch-gpu cudatoolkit -c pytorch", "conda-forge's"),
        ("conda install pytorch torchvision -c conda-forge", "conda-forge's"),
        ("torch 2.3.1.post100", "conda-forge's"),
        ("Arch Linux system PyTorch, Python 3.11", "Arch Linux's"),
        ("sudo pacman -S python-pytorch-cuda", "Arch Linux's"),
        ("apt install python3-torch", "a distribution's"),
        (
            "/nix/store/qq12v0fbx1jlfx85fzcs274la34layxd-python3.12-torch-2.6.0/lib",
            "that of Nixpkgs",
        ),
        ("openmm-torch from conda-forge", None),
        ("PyTorch 2.5 / 2.6, cpu, conda-forge and pip", None),
        ("Python 3.10.8 | packaged by conda-forge | (main, Nov 22 2022)", None),
        ("conda install -c k2-fsa -c pytorch -c conda-forge k2 pytorch=1.11.0", None),
    ],
)
def test_who_built_torch(line: str, maker: str | None) -> None:
    assert read_paste(line).versions.get("torch_by") == maker


@pytest.mark.parametrize(
    "line, month",
    [
        ("Arch Linux, Python 3.11 (June 2023)", "2023-06"),
        ("pip install flash-attn (1 February 2024)", "2024-02"),
        ("built in place, WSL, 2022", "2022-12"),
        ("training (late 2023)", "2023-12"),
        ("tried pip stable and nightly, 2022-07-27", "2022-07"),
        ("worked in May 2023, fails since (June 2023)", "2023-06"),
        ("Python 3.10.8 (main, Nov 22 2022, 08:26:04)", None),
        ("Copyright (c) 2005-2022 NVIDIA Corporation, 2022", None),
        ("Built on Wed_Jun__8_16:49:14_PDT_2022", None),
        ("Microsoft Visual Studio, 2022", None),
    ],
)
def test_the_month_of_a_report(line: str, month: str | None) -> None:
    assert read_paste(line).versions.get("date") == month


def test_a_name_of_the_wheels_flavour_in_a_distributions_torch(bare: str) -> None:
    answer = first_here(missing(SCHEMA, "Arch Linux system PyTorch (June 2023)"), bare)
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert "Arch Linux's" in answer.cause and answer.confidence == "medium"
    assert "torch==" not in typed(answer)
    assert "--no-binary torch-scatter" in typed(answer)


def test_a_release_of_conda_forge(bare: str) -> None:
    line = "pytorch   2.4.0   cuda118_py312h3690e1b_301   conda-forge"
    answer = first_here(missing(SCHEMA_24, line), bare)
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert "conda install -c conda-forge pytorch_scatter" in typed(answer)
    assert "torch==" not in typed(answer) and "two causes fit" not in said(answer)


def test_an_official_build_is_none_of_a_distribution(bare: str) -> None:
    """2.4.0+cu121 is what PyTorch's wheels alone are called."""
    answer = first_here(missing(SCHEMA_24, "torch 2.4.0+cu121", "Arch Linux PyTorch wiki"), bare)
    assert "Arch Linux's" not in said(answer)


def test_a_release_after_the_report_is_no_candidate(bare: str) -> None:
    """torch 2.4.0, which is the first to lack the name, came in July 2024."""
    undated = first_here(missing(SCHEMA), bare)
    assert undated.direction == "file-older" and "2.3.1" in undated.cause
    dated = first_here(missing(SCHEMA, "Python 3.10 (January 2023)"), bare)
    assert (dated.code, dated.direction) == ("FA301", "other-flavour")
    assert "January 2023" in dated.cause and "torch==2.3.1" not in typed(dated)


def test_a_date_before_the_torch_of_the_text_does_not_count(bare: str) -> None:
    answer = first_here(missing(ERROR, "torch 2.5.1", "(January 2021)"), bare)
    assert "January 2021" not in said(answer)


def test_pip_could_take_no_cxx11_wheel(bare: str) -> None:
    """The first cxx11 wheels are of April 2025."""
    file = "/e/lib/python3.9/site-packages/my_ops/_C.cpython-39-x86_64-linux-gnu.so"
    old = said(first_here(missing(ERROR, "(March 2023)", file=file), bare))
    assert "took a torch of its own" not in old and "No wheel of torch" in old
    new = said(first_here(missing(ERROR, file=file), bare))
    assert "took a torch of its own" in new


def test_a_library_of_conda_goes_with_condas_torch(bare: str) -> None:
    file = "/h/miniconda3/envs/e/lib/python3.9/site-packages/../../libOpenMMTorch.so"
    answer = first_here(missing(ERROR, "torch 1.12.1", file=file), bare)
    assert "conda install -c conda-forge pytorch=1.12.1" in typed(answer)
    assert "rm -rf build" not in typed(answer)


def test_a_variable_in_a_path_stays(bare: str) -> None:
    file = "${CONDA_PREFIX}/lib/python3.9/site-packages/../../libOpenMMTorch.so"
    answer = first_here(missing(ERROR, file=file), bare)
    assert answer.help[-1].endswith(f'"{file}"')


def test_a_gem_has_no_pip(bare: str) -> None:
    file = (
        "/h/.rbenv/versions/2.7.1/lib/ruby/gems/2.7.0/gems/torchaudio-0.1.2/lib/torchaudio/ext.so"
    )
    for more in ((), ("libtorch-shared-with-deps-1.8.1+cpu",)):
        answer = first_here(missing(ERROR, *more, file=file), bare)
        assert answer.direction == "other-flavour"
        assert "pip" not in typed(answer) and "import torch" not in typed(answer)
        assert answer.help[0].startswith("gem install torchaudio")
        assert "libtorch-cxx11-abi-shared-with-deps" in said(answer)


def test_a_program_that_reports_a_runtime_error_is_no_linker(bare: str) -> None:
    symbol = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
    answer = first_here(f"runtime error: undefined symbol: {symbol}\ntorch 2.8.0+cu128", bare)
    assert answer.code == "FA301" and "link line" not in said(answer)


def test_no_pre_cxx11_libtorch_of_2_7_and_later(bare: str) -> None:
    name = "c10::detail::torchCheckFail(char const*, char const*, unsigned int, std::string const&)"
    text = f"/usr/bin/ld: a.cpp: undefined reference to `{name}'\n"
    new = said(first_here(f"{text}torch 2.8.0", bare))
    assert "there is no pre-cxx11 download" in new
    old = said(first_here(f"{text}torch 2.3.0", bare))
    assert "pre-cxx11 download of libtorch" in old and "there is no pre-cxx11" not in old


def test_opencv_beside_a_pre_cxx11_libtorch(bare: str) -> None:
    name = "cv::imshow(std::string const&, cv::_InputArray const&)"
    answer = first_here(f"/usr/bin/ld: a.cpp: undefined reference to `{name}'\n", bare)
    assert (answer.code, answer.owner) == ("FA301", "opencv")
    assert "-lopencv_core" not in said(answer) and "failing.so" not in typed(answer)


def test_a_wheel_that_is_not_what_its_name_says(bare: str) -> None:
    wheel = "flash_attn-2.8.2+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    file = "/e/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    answer = first_here(missing(ERROR, wheel, "torch 2.6.0+cu124", file=file), bare)
    assert "is not what its name says" in said(answer)
    assert "FLASH_ATTENTION_FORCE_BUILD=TRUE" in typed(answer) and ".whl" not in typed(answer)


def test_the_wheel_for_the_torch_that_is_there(bare: str) -> None:
    wheel = "mamba_ssm-1.0.1+cu118torch1.12cxx11abiTRUE-cp39"
    file = "/e/lib/python3.9/site-packages/selective_scan_cuda.cpython-39-x86_64-linux-gnu.so"
    answer = first_here(missing(ERROR, wheel, "torch 1.13.1+cu117", file=file), bare)
    assert "torch1.13 and cxx11abiFALSE" in said(answer)


def test_device_code_of_nvshmem(bare: str) -> None:
    answer = first_here(
        "nvlink error   : Undefined reference to 'nvshmemi_ibgda_device_state_d' in 'a.o'", bare
    )
    assert answer.owner == "nvshmem" and answer.confidence == "medium"
    assert "NVSHMEM_IBGDA_SUPPORT=1" in said(answer)


def test_an_own_name_of_a_package_that_the_text_names(bare: str) -> None:
    text = (
        "_ext.cpython-37m-x86_64-linux-gnu.so: undefined symbol: "
        "_Z27points_in_boxes_cpu_forwardN2at6TensorES0_S0_\n"
        "mmcv-full 1.3.18, mmdet 2.19.0, pytorch 1.7.0, cudatoolkit 10.2, Python 3.7"
    )
    answer = first_here(text, bare)
    assert "mmcv-full's own" in answer.cause
    assert "/cu102/torch1.7.0/index.html" in typed(answer) and "rm -rf" not in typed(answer)


def test_a_gpu_that_cuda_12_has_left(bare: str) -> None:
    text = (
        "AttributeError: /e/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so: "
        "undefined symbol: cdequantize_blockwise_fp32\n"
    )
    plain = first_here(text, bare)
    assert plain.owner == "bitsandbytes" and "--upgrade bitsandbytes" in typed(plain)
    old = first_here(f"{text}GPU: Tesla K80", bare)
    assert "CUDA 12 does not support" in said(old) and "--upgrade" not in typed(old)
