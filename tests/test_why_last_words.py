"""Words that tell of a build, a release, a GPU or a second torch, and sentences that tell not."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

SITE = "/opt/v/lib/python3.10/site-packages"
DEVICE = "_ZN3c104cuda9SetDeviceEab"
MISSING = f"ImportError: {SITE}/foo_ext.cpython-310-x86_64-linux-gnu.so: undefined symbol: {DEVICE}"
#: Exported by torch 1.9 to 1.11, and by no later one.
POLICY = "_ZNK3c1010TensorImpl36is_contiguous_nondefault_policy_implENS_12MemoryFormatE"
ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


def flags(text: str) -> set[str]:
    """The flags of a text that tell where a package is from."""
    found = ("flag:torch-source", "flag:own-code", "flag:changed", "flag:built-from-source")
    return {key for key in read_paste(text).versions if key.startswith(found)}


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.4.0\nmmcv 修改成 1.7.0 版本后报错",
        "改了torch 版本",
        "mamba-ssm, my version is 2.2.2",
        "torch 修改为 2.1.0",
        "vllm from source is not what I want",
        "torch 2.4.0. I want to avoid to build torch from source",
        "instead of building vllm from source",
        "I could not build vllm from source",
    ],
)
def test_a_change_of_version_and_a_wish_tell_of_no_code_of_ones_own(text: str) -> None:
    assert flags(text) == set()


def test_a_build_belongs_to_the_name_that_follows_it() -> None:
    text = "torch 2.4.0, custom build of flash-attn"
    assert flags(text) == {"flag:built-from-source:flash-attn"}
    assert "flag:torch-source" not in flags("torch 2.4.0, patched version of vllm")


@pytest.mark.parametrize("text", ["mmcv 修改过的", "mmcv, my version", "I build vllm from source"])
def test_a_build_that_is_told_stays_one(text: str) -> None:
    assert flags(text)


CLONE = "git clone -b {tag} https://github.com/{name}"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (CLONE.format(tag="v2.5.6", name="Dao-AILab/flash-attention"), None),
        (CLONE.format(tag="v0.6.3", name="vllm-project/vllm.git"), "v0.6.3"),
        ("git clone https://github.com/vllm-project/vllm --branch v0.6.3", "v0.6.3"),
        ("git clone https://github.com/Dao-AILab/flash-attention\ngit checkout v2.5.6", None),
        ("cd flash-attention && git checkout v2.5.6", None),
        ("cd ~/src/vllm\ngit checkout v0.6.3", "v0.6.3"),
        ("git checkout v0.16.0", "v0.16.0"),
    ],
)
def test_a_tag_is_of_the_repository_that_was_cloned(text: str, tag: str | None) -> None:
    assert read_paste(text).versions.get("flag:checkout") == tag


def test_another_projects_tag_is_no_release_of_vllm() -> None:
    file = "/home/u/vllm/vllm/_C.abi3.so"
    answer = first(
        "VLLM_USE_PRECOMPILED=1 pip install -e .",
        CLONE.format(tag="v2.5.6", name="Dao-AILab/flash-attention"),
        "torch 2.4.0",
        f"ImportError: {file}: undefined symbol: {DEVICE}",
    )
    assert "2.5.6" not in said(answer) and "vllm==X.Y.Z" in said(answer)


@pytest.mark.parametrize(
    ("text", "by_conda"),
    [
        ("I don't use conda install pytorch, I use pip", False),
        ("I never ran conda install pytorch", False),
        ("The page says: try conda install pytorch or pip", False),
        ("conda install pytorch\npip install torch==2.4.0", False),
        ("$ conda install pytorch", True),
        ("torch came by `conda install pytorch`", True),
    ],
)
def test_condas_build_is_told_by_a_command_that_ran(text: str, by_conda: bool) -> None:
    maker = read_paste(f"torch 2.4.0\n{text}\n{MISSING}").versions.get("torch_by", "")
    assert maker.startswith("conda's own") is by_conda


@pytest.mark.parametrize(
    "text",
    [
        "We don't have a Hopper GPU",
        "The docs say a Blackwell GPU is fastest",
        "It works fine on my colleague's Hopper GPU",
        "It works fine on a Hopper GPU",
        "FA3 runs on Hopper GPUs; mine is RTX 3090",
        "on my Hopper GPU, an H100",
    ],
)
def test_a_family_is_the_gpus_at_hand_only(text: str) -> None:
    assert "gpu_family" not in read_paste(f"torch 2.4.0\n{text}\n{NO_IMAGE}").versions


@pytest.mark.parametrize("text", ["I have a Hopper GPU", "on my Blackwell card", "x, Volta GPU"])
def test_a_family_that_somebody_has_is_told(text: str) -> None:
    assert "gpu_family" in read_paste(text).versions


FOO = "site-packages/foo_ext/_C.cpython-310-x86_64-linux-gnu.so"
OTHER = "torch==1.11.0 is in requirements.txt\nPyTorch version: 1.11.0\ntorch version 2.3.0"


@pytest.mark.parametrize(
    ("home", "told"),
    [
        ("/home/u/venv", "My GPU driver came by conda install cuda-toolkit"),
        ("/home/u/venv", "conda install pytorch==1.11.0"),
        ("/home/u/miniconda3", "conda install cuda-toolkit"),
    ],
)
def test_torch_is_not_taken_away_without_condas_own(home: str, told: str) -> None:
    file = f"{home}/lib/python3.10/{FOO}"
    answer = first(f"ImportError: {file}: undefined symbol: {POLICY}", OTHER, told)
    assert "pip uninstall -y torch" not in "\n".join(answer.help)


def test_a_cuda_build_of_one_channel_stays_one() -> None:
    file = "/c/envs/a/lib/python3.11/site-packages/torchaudio/lib/libtorchaudio.so"
    listed = "pytorch 2.3.1 py3.11_cuda12.1_cudnn8.9.2_0\npytorch-cuda 12.1\ntorchaudio 2.3.1"
    answer = first(listed, f"OSError: {file}: undefined symbol: {ERROR}")
    typed = [text for text in answer.help if text.startswith("conda install")]
    assert any("pytorch-cuda=12.1 -c nvidia" in text for text in typed)


def test_two_packages_of_one_channel_have_one_maker() -> None:
    file = "/c/envs/a/lib/python3.11/site-packages/torchvision/_C.so"
    listed = (
        "pytorch      2.1.0  py3.10_cuda12.1_cudnn8.9.2_0  pytorch\n"
        "torchvision  0.16.0 py310_cu121  pytorch"
    )
    answer = first(listed, f"OSError: {file}: undefined symbol: {ERROR}")
    assert "two makers" not in said(answer)


NMS = "operator torchvision::nms does not exist"
LEFT = "Uninstalling torch-2.0.1:\n  Successfully uninstalled torch-2.0.1"
RAN = "torch.__version__ is 2.1.0+cu118\ntorchvision 0.15.2+cu118"


def test_what_pip_install_takes_away_is_an_upgrade() -> None:
    upgrade = first("Attempting uninstall: torch", LEFT, RAN, f"RuntimeError: {NMS}")
    assert "second torch" not in said(upgrade) and "uninstall -y torch " not in said(upgrade)
    removed = first(LEFT, RAN, f"RuntimeError: {NMS}")
    assert '"torch==2.0.1" "torchvision==0.15.2"' in said(removed)
    assert any(text.endswith("/whl/cu118") for text in removed.help)


def test_old_modules_of_an_unknown_file_are_found_by_their_kind() -> None:
    answer = first(
        "I changed torch and rebuilt it in the same checkout, still:",
        f"ImportError: undefined symbol: {POLICY}",
        "torch 2.3.0+cu121",
    )
    text = said(answer)
    assert "-name ''" not in text and "-name '*.cpython-*.so'" in text
    assert "Installing another torch" not in text and "has no build for the CUDA" not in text


def test_no_note_is_left_on_a_torch_that_no_command_installs() -> None:
    file = f"{SITE}/flashinfer/_kernels.abi3.so"
    answer = first(f"ImportError: {file}: undefined symbol: {POLICY}", "torch 2.6.0+cu124")
    text = said(answer)
    assert "Installing another torch" not in text and "has no build for the CUDA" not in text
