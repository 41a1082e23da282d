"""Commands and notes that hold for the very machine of a text, or are left out."""

from __future__ import annotations

import pytest
from support.asking import answers

from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def first(text: str) -> Answer:
    return explain([text], None, {}).answers[0]


def said(answer: Answer) -> str:
    return "\n".join((answer.cause, *answer.help, *answer.notes))


LMCACHE = (
    "ImportError: /usr/local/lib/python3.12/dist-packages/lmcache/c_ops.cpython-312-x86_64-linux-"
    "gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEa\nPython 3.12, {}"
)


def test_a_torch_for_a_gpu_is_of_a_build_with_its_code() -> None:
    # torch 2.7.1 is on PyPI for CUDA 12.6, whose list of architectures ends with 9.0.
    answer = first(LMCACHE.format("B200"))
    assert 'python -m pip install "torch==2.7.1" --index-url' in "\n".join(answer.help)
    assert "https://download.pytorch.org/whl/cu128" in said(answer)
    plain = first(LMCACHE.format("H100")).help
    assert 'python -m pip install "torch==2.7.1"' in plain


@pytest.mark.parametrize("image", ["vllm-openai v0.10.2 image", "vllm/vllm-openai:v0.10.2"])
def test_the_torch_of_a_servers_image_is_not_changed(image: str) -> None:
    answer = first(LMCACHE.format(f"{image}, B200"))
    assert not any('"torch==' in text for text in answer.help)
    assert any("lmcache" in text and "--no-binary" in text for text in answer.help)
    assert "one of the two is enough" not in said(answer)
    elsewhere = LMCACHE.replace("/usr/local/lib", "/home/u/v/lib").format(image)
    assert any('"torch==' in text for text in first(elsewhere).help)


def test_the_wheels_index_of_a_text_tells_their_cuda() -> None:
    answer = first(
        "OSError: /usr/local/lib/python3.7/dist-packages/torch_sparse/_convert_cuda.so: undefined "
        "symbol: _ZNK2at6Tensor5zero_Ev\ntorch-sparse from torch-1.9.0+cu111 wheel index, "
        "Python 3.7 (torch 1.10)"
    )
    assert (
        'python -m pip install "torch==1.9.1" --index-url https://download.pytorch.org/whl/cu111'
    ) in answer.help
    assert "https://data.pyg.org/whl/torch-X.Y.0+cuXYZ.html" in said(answer)


def test_a_flash_attn_wheel_that_its_source_forbids_is_not_named() -> None:
    answer = said(
        first(
            "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
            "_ZN3c104impl3cow11cow_deleterEPv\ntorch 2.1.2, flash-attn 2.5.8"
        )
    )
    assert "flash_attn-2.7.3+cu12torch2.1cxx11abiFALSE-cp310" in answer
    assert "flash_attn-2.7.4+" not in answer


def test_the_releases_of_xformers_that_take_fa3_are_those_of_their_wheels() -> None:
    # xformers/ops/fmha/dispatch.py: >= (9, 0) up to 0.0.32.post2, <= (9, 0) since 0.0.33.
    answer = said(
        first(
            "CUDA error (/workspace/xfrm2/third_party/flash-attention/hopper/"
            "flash_fwd_launch_template.h:188): no kernel image is available for execution on the "
            "device\ntorch 2.8, RTX 5090"
        )
    )
    assert "xformers 0.0.30 to 0.0.32 take FlashAttention 3 on newer GPUs too" in answer


def test_a_torch_for_the_cpu_stays_one() -> None:
    text = "importing failed due to undefined symbol: _ZNK5torch8autograd4Node4nameEv\n"
    flags = "\nCXX_FLAGS= -D_GLIBCXX_USE_CXX11_ABI=1 -Wno-deprecated"
    index = ' "torch==2.0.0" --index-url https://download.pytorch.org/whl/cpu'
    answer = first(f"{text}>>> torch.__version__\n'2.0.0+cpu'{flags}")
    assert any(command.endswith(index) for command in answer.help)
    assert "whl/cpu" not in said(first(f"{text}>>> torch.__version__\n'2.0.0+cu117'{flags}"))


@pytest.mark.parametrize(("more", "named"), [(" cpuonly", False), ("", True)])
def test_no_cuda_wheels_for_a_torch_without_cuda(more: str, named: bool) -> None:
    answer = first(
        f"conda install -c pytorch pytorch torchvision{more}\npip install pytorch3d\n"
        "ImportError: /a/lib/python3.8/site-packages/pytorch3d/_C.cpython-38-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN6caffe28TypeMeta21_typeMetaDataInstanceISt7complexIfEEEPKNS_"
        "6detail12TypeMetaDataEv"
    )
    assert ("own project has wheels by torch and CUDA" in said(answer)) is named


def test_uvs_box_may_break_no_module_named() -> None:
    """astral-sh/uv#15098: uv wraps what the build said at the width of the window."""
    text = (
        "  \u00d7 Failed to build `auto-gptq==0.7.1`\n"
        "  \u2570\u2500\u25b6 Call to `setuptools.build_meta:__legacy__.build_wheel` failed\n"
        "      Building cuda extension requires PyTorch (>=1.13.0) being installed, please\n"
        "      install PyTorch first: No\n      module named 'torch'"
    )
    answer = first(text)
    assert answer.code == "FA884" and answer.owner == "auto-gptq"
    assert any("uv pip install --no-build-isolation" in command for command in answer.help)


def test_a_torch_that_is_imported_beside_pips_leaves_the_pair_alone() -> None:
    """pytorch/vision#9174: torchvision 0.23.0 is for torch 2.8.0 (its metadata)."""
    text = "2.6.0 True\nRuntimeError: operator torchvision::nms does not exist"
    told = "pip installed torch 2.8.0 and torchvision 0.23.0, import shows torch {}"
    answer = answers(f">>> print(torch.__version__)\n{text}", told.format("2.6.0"))[0]
    assert answer.code == "FA607" and answer.owner == "torch"
    assert not any("pip install" in command for command in answer.help)
    agreed = answers(text.replace("2.6.0", "2.8.0"), told.format("2.8.0"))[0]
    assert agreed.code == "FA886"


def test_a_compiled_modules_bare_name_is_spoken_of_and_owns_nothing() -> None:
    """MzeroMiko/VMamba#223: VMamba compiles a copy of mamba-ssm's module."""
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    answer = answers(text, "torch 1.10.0, CUDA 11.3, GTX 1080 Ti, selective_scan_cuda")[0]
    assert answer.owner is None and "mamba-ssm has a compiled module of that name" in said(answer)
    assert "arch=compute_61,code=sm_61" in said(answer)
    assert "The text names" not in said(answers(text, "torch 1.10.0, CUDA 11.3, GTX 1080 Ti")[0])


def test_version_is_no_compiled_module() -> None:
    """vllm-project/vllm#15592: setuptools-scm writes vllm/_version.py."""
    warned = (
        "/mnt/e/vllm/vllm/__init__.py:5: RuntimeWarning: Failed to read commit hash:\n"
        "No module named 'vllm._version'\n  from .version import __version__"
    )
    found = answers(warned, "ModuleNotFoundError: No module named 'vllm._C'")
    assert len(found) == 1 and "its compiled module _C is not there" in said(found[0])
    assert "compiled module _version" not in said(first(warned))


def test_the_library_of_a_name_is_that_of_its_twin() -> None:
    """ankane/torchaudio-ruby#4: nm has c10::ClassType::create in libtorch_cpu.so (2.4, 2.13)."""
    name = (
        "_ZN3c109ClassType6createENS_8optionalINS_13QualifiedNameEEESt8weak_ptrIN5torch3jit15"
        "CompilationUnitEEb"
    )
    cxx11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    for flavour in (cxx11, "Ss"):
        answer = first(f"ext.so: undefined symbol: {name}{flavour}")
        assert answer.owner == "torch/torch_cpu"


def test_no_path_is_spoken_of_that_the_text_has_not() -> None:
    """ROCm/pytorch#2901: the loader's line has a bare libtorch_hip.so."""
    bare = first("libtorch_hip.so: undefined symbol: rsmi_init")
    assert "The path is" not in said(bare) and "For a torch of one's own build" in said(bare)
    whole = first("/home/u/pytorch/torch/lib/libtorch_hip.so: undefined symbol: rsmi_init")
    assert "The path is that of a torch of one's own build" in said(whole)


def test_mmcv_prints_the_operators_line_too() -> None:
    """IDEA-Research/Grounded-SAM-2#71: mmcv 2.1.0 has ms_deform_attn_cuda.cu with that line."""
    answer = first(
        "error in ms_deformable_im2col_cuda: no kernel image is available for execution on the "
        "device"
    )
    assert "no package of an index" not in said(answer) and "mmcv" in said(answer)
