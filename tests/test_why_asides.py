"""``why`` on what a text tells by the way: conda's builds, a second torch, what only follows."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

HARMONICS = (
    "ImportError: /scratch/nb/healda/.venv/lib/python3.12/site-packages/torch_harmonics/attention/"
    "_C.cpython-312-x86_64-linux-gnu.so: undefined symbol: "
    "_ZNR5torch7Library4_defEON3c1014FunctionSchemaEPNS1_12OperatorNameERKSt6vectorIN2at3TagESaIS8_"
    "EENS_17_RegisterOrVerifyE"
)


def boxed(text: str, width: int) -> str:
    """A text as rich frames it: folded at a width, with a line at both sides."""
    rows = (text[at : at + width].ljust(width) for at in range(0, len(text), width))
    return "\n".join(f"\u2502 {row} \u2502" for row in rows)


@pytest.mark.parametrize("width", [78, 100, 120, 154, 400])
def test_a_frame_costs_neither_the_path_nor_the_name(width: int) -> None:
    mention = read_paste(boxed(HARMONICS, width)).mentions[0]
    _, path, _, symbol = HARMONICS.split(": ")
    assert mention.what == "undefined-symbol"
    assert (mention.file, mention.symbol) == (path, symbol)


def test_a_frame_that_breaks_between_the_words() -> None:
    start, end = HARMONICS.split(" symbol: ")
    text = f"\u2502 {start}        \u2502\n\u2502 symbol: {end} \u2502"
    assert read_paste(text).mentions[0].file == HARMONICS.split(": ")[1]
    answer = first(text, "torch 2.12.1, torch-harmonics (pip wheel), Python 3.12")
    # Its README: FORCE_CUDA_EXTENSION builds the CUDA kernels; 0.9's are wheels alone on the index.
    build = next(one for one in answer.help if "github.com/NVIDIA/torch-harmonics" in one)
    assert build.startswith("FORCE_CUDA_EXTENSION=1") and "--no-build-isolation" in build


def test_a_path_is_not_joined_to_a_sentence() -> None:
    short = "cd /opt/x\n_C.so: undefined symbol: _ZN3c105ErrorD1Ev"
    assert read_paste(short).mentions[0].file == "_C.so"


OLD_CACHE = "ImportError: {}: undefined symbol: _ZN3c1011CPUTensorIdEv"


def test_a_jit_cache_is_one_command_that_leaves_torch() -> None:
    """torch before 1.9, and TORCH_EXTENSIONS_DIR, have no directory by Python and CUDA."""
    file = "/tmp/torch_extensions/fused/fused.so"
    answer = first(OLD_CACHE.format(file), "torch 1.3.1, CUDA 10.1")
    assert answer.help[0] == "rm -r /tmp/torch_extensions/fused"
    assert "the second" not in said(answer) and "name alone" in said(answer)
    keyed = "/home/u/.cache/torch_extensions/py310_cu121/fused/fused.so"
    assert "Python and CUDA version only" in said(first(OLD_CACHE.format(keyed), "torch 2.4.0"))


P3D = (
    "ImportError: /usr/local/lib/python3.7/dist-packages/pytorch3d/_C.cpython-37m-x86_64-linux-gnu"
    ".so: undefined symbol: _ZNK2at6Tensor7is_cudaEv"
)


def test_pips_torch_before_condas_is_taken_away_first() -> None:
    answer = first(P3D, "torch 1.8.0 installed with conda (pip shows torch 1.12.1), Python 3.7")
    assert "torch.__path__" in answer.help[0]
    assert answer.help[1] == "python -m pip uninstall -y torch"
    assert not any(" install " in text for text in answer.help)


GONE = (
    "torchvision::nms does not exist error on import\n>>> print(torch.__version__)\n2.6.0\n"
    "  Successfully uninstalled torch-2.8.0\n  Successfully uninstalled torchvision 0.23.0"
)


def test_a_torch_that_pip_removed_while_another_was_imported() -> None:
    answer = first(GONE, "torch 2.6.0 imported / 2.8.0 installed, torchvision 0.23.0")
    assert "second torch" in answer.cause
    assert any("uninstall -y torch torchvision" in text for text in answer.help)
    assert any('"torch==2.8.0" "torchvision==0.23.0"' in text for text in answer.help)
    assert not any("0.21.0" in text for text in answer.help)


def test_an_upgrade_is_no_second_torch() -> None:
    log = "Successfully uninstalled torch-2.8.0\nSuccessfully installed torch-2.6.0"
    answer = first(f"RuntimeError: operator torchvision::nms does not exist\n{log}",
                   "torch 2.6.0, torchvision 0.23.0")  # fmt: skip
    assert "second torch" not in answer.cause


def test_condas_builds_come_from_one_channel() -> None:
    answer = first(
        "undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev",
        "pytorch 1.13.1 (conda, build cpu_py38h92724a6_0), torchaudio 0.13.1, Python 3.8",
    )
    assert answer.code == "FA301"
    assert any("pytorch::pytorch=1.13.1 pytorch::torchaudio=0.13.1" in one for one in answer.help)
    assert not any("pip install" in text for text in answer.help)


DEEPMD = (
    "OSError: /home/o/mamba/envs/dpmd/lib/python3.13/site-packages/deepmd/lib/libdeepmd_op_pt.so: "
    "undefined symbol: _ZNK5torch8autograd4Node4nameEv\n"
    "RuntimeError: This deepmd-kit package was compiled with CXX11_ABI_FLAG=0"
)


def test_the_flavour_that_the_text_tells_of_the_file() -> None:
    """deepmd/pt/cxx_op.py writes both flags; DP_ENABLE_PYTORCH builds the library."""
    answer = first(DEEPMD, "deepmd-kit devel built from source")
    assert answer.confidence == "high" and "OP_CXX_ABI" in said(answer)
    assert any("DP_ENABLE_PYTORCH=1" in text for text in answer.help)
    whole = f"{DEEPMD}, but PyTorch runtime was compiled with CXX11_ABI_FLAG=1."
    assert read_paste(whole).versions["cxx11_abi"] == "True"


FBGEMM = (
    "fbgemm_gpu_py.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
    "AttributeError: '_OpNamespace' 'fbgemm' object has no attribute 'jagged_2d_to_dense'"
)


def test_an_operator_that_is_gone_only_follows_and_a_nightly_has_its_own_name() -> None:
    answer = first(FBGEMM, "torch nightly 2.0.0.dev20230202+cu116, fbgemm-gpu-nightly 2023.6.27")
    assert "only follows" in said(answer) and "fbgemm-gpu 0.4.1" in said(answer)
    pair = next(text for text in answer.help if "fbgemm-gpu==" in text)
    assert pair.startswith("python -m pip uninstall -y fbgemm-gpu-nightly && ")


def test_flash_attn_of_a_wheel_beside_vllm() -> None:
    """flash-attn's releases have wheels up to torch 2.8 (v2.8.3); vLLM has kernels of its own."""
    answer = first(
        "ImportError: .../flash_attn_2_cuda...so: undefined symbol: "
        "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib",
        "torch 2.10.0, flash-attn 2.8.3+cu12torch2.7 wheel, vllm 0.19.1",
    )
    assert "was built for torch 2.7" in said(answer)
    assert "has a wheel for torch 2.10" in said(answer) and "vllm_flash_attn" in said(answer)


def test_flashinfers_kernels_are_left_to_its_first_use() -> None:
    """flashinfer-python 0.2.5 is a source distribution, whose kernels are built by JIT."""
    answer = first(
        "ImportError: /usr/local/lib/python3.10/dist-packages/flashinfer/flashinfer_kernels.abi3.so"
        ": undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb",
        "torch 2.5.0a0+872d972e41.nv24.08 (nvcr.io/nvidia/pytorch:24.08-py3), Python 3.10",
    )
    build = next(text for text in answer.help if "flashinfer-python==" in text)
    assert "--no-deps" in build and "--no-build-isolation" in build
    assert not any(text.startswith("rm -rf build") for text in answer.help)


def test_a_build_of_ones_own_on_condas_torch_is_none_of_its_packages() -> None:
    """pytorch/audio issue 3335: compiled on conda's torch, and loaded by pip's."""
    answer = first(
        "OSError: /home/pi/.pyenv/versions/3.8.16/envs/d/lib/python3.8/site-packages/torchaudio/lib"
        "/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev",
        "torch 1.13.1, torchaudio 0.13.1+b90d798 (compiled against conda pytorch 1.13.1 "
        "cpu_py38haaa41f7_0)",
    )
    assert not any("conda install" in text for text in answer.help)
