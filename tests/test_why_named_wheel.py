"""``why`` on files whose wheel, image or GPU the text names beside the error.

Which wheels flash-attn 2.3.4 has is in the workflow of that release; that PyTorch's wheels are
cxx11 from 2.7.0 on is in its release notes; Marlin asks for compute capability 8.0 (its README).
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
ERROR = f"_ZN3c105ErrorC2ENS_14SourceLocationE{CXX11}"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
FLASH = "/e/lib/python3.9/site-packages/flash_attn_2_cuda.cpython-39-x86_64-linux-gnu.so"
TRUE = "flash_attn-2.3.4+cu122torch2.1cxx11abiTRUE-cp39-cp39-linux_x86_64.whl"
FALSE = TRUE.replace("abiTRUE", "abiFALSE")
ADDRESS = "https://github.com/Dao-AILab/flash-attention/releases/download/v2.3.4/"


def missing(symbol: str, file: str = FLASH) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize(
    "command",
    [f"pip install ./{TRUE}", f"$ uv pip install {ADDRESS}{TRUE.replace('+', '%2B')}",
     f"Processing /tmp/{TRUE}"],
)  # fmt: skip
def test_a_wheel_that_is_installed_by_its_file_tells_the_release(command: str) -> None:
    told = read_paste(f"{missing(ERROR)}\n{command}\n").versions
    assert told["pkg:flash-attn"] == "2.3.4+cu122torch2.1cxx11abiTRUE"


@pytest.mark.parametrize(
    "words",
    [f"Fixed it with pip install ./{TRUE}", f"you should pip install ./{TRUE}",
     f"pip install ./{TRUE}\npip install ./{FALSE}"],
)  # fmt: skip
def test_a_wheel_of_a_cure_and_one_of_two_are_not_the_failing_one(words: str) -> None:
    assert "pkg:flash-attn" not in read_paste(f"{missing(ERROR)}\n{words}\n").versions


def test_the_same_release_in_the_other_flavour_is_typed() -> None:
    answer = first(missing(ERROR), f"pip install ./{TRUE}", "torch==2.1.0")
    assert any(f'{ADDRESS}{FALSE}"' in text for text in answer.help)
    assert not any('"torch==' in text or '"torch>=' in text for text in answer.help)
    assert FALSE in said(answer) and "is not the cause" in said(answer)


def test_its_name_is_told_without_a_torch_too() -> None:
    answer = first(missing(ERROR), f"pip install ./{TRUE}")
    assert FALSE in said(answer)
    assert not any('"torch' in text for text in answer.help)


def test_the_torch_of_a_wheels_tag_is_put_back_where_it_has_the_name() -> None:
    wheel = "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp39-cp39-linux_x86_64.whl"
    answer = first(missing(OLD_ERROR), f"pip install ./{wheel}", "torch 2.8.0+cu128")
    assert any('"torch==2.6.0"' in text for text in answer.help)


def test_the_wheels_form_is_told_where_the_python_is_not() -> None:
    text = f"undefined symbol: {ERROR}\nflash-attn, torch 2.6.0+cu124, nvcc 13.1"
    answer = first(text)
    assert "torch2.6cxx11abiFALSE-cpXY" in said(answer)
    assert "needs one of CUDA 12" in said(answer)


def test_a_torch_of_the_flavour_alone_is_said_to_be_no_sure_way() -> None:
    answer = first(missing(ERROR), "torch==2.1.0")
    assert "is no help where the file's other names are not in torch 2.7.0" in said(answer)


AMMO = "/usr/local/lib/python3.10/dist-packages/ammo/torch/cuda_ext.cpython-310-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    "words",
    ["works only with the torch of nvcr.io/nvidia/pytorch:23.08-py3", "It runs fine in"
     " nvcr.io/nvidia/pytorch:23.08-py3", "worked in the image nvcr.io/nvidia/pytorch:23.08-py3"],
)  # fmt: skip
def test_an_image_that_it_works_in_is_not_where_it_fails(words: str) -> None:
    answer = first(missing(ERROR, AMMO), words)
    assert "it works with the torch of NVIDIA's image 23.08" in said(answer)
    assert "The torch in the text is" not in said(answer)
    assert not any("rm -rf build" in text or "--upgrade" in text for text in answer.help)


def test_an_image_that_it_does_not_work_in_is_where_it_fails() -> None:
    told = read_paste("it never works in nvcr.io/nvidia/pytorch:23.08-py3").versions
    assert told["ngc"] == "23.08"


def test_wheels_of_the_flavour_that_fails_are_not_named() -> None:
    answer = first(f"mmcv 2.0.1, Python 3.10\nundefined symbol: {OLD_ERROR}\n")
    assert any("--no-binary mmcv" in text for text in answer.help)
    assert "mim install" not in said(answer) and "download.openmmlab" not in said(answer)


def test_a_name_that_newer_releases_have_in_neither_flavour() -> None:
    """torch::jit::parseSchemaOrName takes a bool since torch 2.4.0 (nm -D libtorch_cpu.so)."""
    name = f"_ZN5torch3jit17parseSchemaOrNameERK{CXX11}"
    answer = first(missing(name, "transformer_engine_extensions.cpython-310-x86_64-linux-gnu.so"))
    assert "in torch 2.4.0" in answer.cause and "neither flavour has it" in answer.cause
    assert "start again from the image" in said(answer)


def test_nunchaku_is_of_its_projects_releases() -> None:
    name = "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs"
    answer = first(f"Nunchaku version: 0.3.1\nundefined symbol: {name}\n")
    assert "github.com/nunchaku-ai/nunchaku/releases" in said(answer)
    assert "another project of that name" in said(answer)
    assert not any(text.endswith(" nunchaku") for text in answer.help)


VLLM = "/e/lib/python3.10/site-packages/vllm/_C.abi3.so"


def test_no_release_of_vllm_takes_the_place_of_a_fork_and_its_torch() -> None:
    text = "from vllm._C import ops\nundefined symbol: gptq_to_marlin\n"
    answer = first(text, "torch 2.1.2+cu121, Python 3.9, Tesla V100")
    assert answer.help[0].startswith("rm -rf build")
    assert "compute capability 8.0 and newer, and the GPU in the text has 7.0" in said(answer)


def test_vllm_is_put_back_in_its_own_release_without_its_torch() -> None:
    answer = first(missing("gptq_to_marlin", VLLM), "vllm 0.4.2, torch 2.3.0+cu121")
    assert "--no-deps" in answer.help[0] and answer.help[0].endswith("vllm==0.4.2")
    unknown = first(missing("gptq_to_marlin", VLLM), "torch 2.3.0+cu121, RTX 4090")
    assert unknown.help[0].endswith("pip show vllm torch")
    assert "--no-deps" in unknown.help[1] and "Marlin's kernels" not in said(unknown)
