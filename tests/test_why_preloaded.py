"""Libraries of CUDA that torch loads itself, has inside, or is told of by a page of wheels."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

GONE = "cannot open shared object file: No such file or directory"


def answers(text: str, bare: str) -> tuple[Answer, ...]:
    return explain([text], bare, {}).answers


def typed(answer: Answer) -> str:
    return "\n".join(answer.help)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("home/a/venv/lib/python3.11/site-packages/torch/lib", "/home/a/venv/lib/python3.11/"),
        (".../site-packages/torch/lib", "os.path.dirname(torch.__file__)"),
        (".../site-packages/nvidia/cudnn/lib", "nvidia.__path__"),
    ],
)
def test_a_part_of_cudnn_that_the_text_shows_needs_its_directory_on_the_path(
    bare: str, path: str, wanted: str
) -> None:
    name = "libcudnn_ops_infer.so.8"
    text = f"Could not load library {name}. Error: {name}: {GONE}\nBut it is at {path}/{name}"
    (answer,) = answers(text, bare)
    assert answer.help[0].startswith("export LD_LIBRARY_PATH=") and wanted in answer.help[0]
    assert "cuDNN at hand is 9" not in answer.cause and "pip install" not in typed(answer)


def test_both_lines_of_torchs_own_search_are_one_cause(bare: str) -> None:
    text = (
        "pip install -r requirements.txt --no-deps\n"
        f"OSError: libcufft.so.11: {GONE}\n"
        "ValueError: libcublas.so.*[0-9] not found in the system path ['', '/x/bin']\n"
        "nvidia-smi CUDA 11.4"
    )
    (answer,) = answers(text, bare)
    assert answer.code == "FA202" and "--no-deps" in answer.cause
    assert "nvidia-cublas-cu12" in answer.cause
    assert "whl/cu118" in typed(answer) and "--no-deps" not in typed(answer)


def test_no_deps_for_another_package_says_nothing_of_torchs_wheels(bare: str) -> None:
    text = (
        "pip install flash-attn --no-deps\n"
        "ValueError: libcublas.so.*[0-9] not found in the system path ['', '/x/bin']"
    )
    assert "--no-deps" not in answers(text, bare)[0].cause


def test_an_os_error_without_any_extension_is_torchs_own(bare: str) -> None:
    line = f"OSError: libcublas.so.11: {GONE}"
    for text in (line, f"{line}\ntorch==1.13.0, docker (no GPU)"):
        (answer,) = answers(text, bare)
        assert "no extension plays a part" in answer.cause and "nvidia-cublas-cu11" in answer.cause
        assert "MODULE" not in typed(answer)
    assert '"torch==1.13.0" --index-url https://download.pytorch.org/whl/cpu' in typed(answer)


@pytest.mark.parametrize(
    "text",
    [
        f"ImportError: libcublas.so.11: {GONE}",
        f"OSError: libcusparse.so.11: {GONE}",
        f"OSError: libcublas.so.11: {GONE}\ntorch 2.4.0+cu121",
        f"OSError: libcublas.so.11: {GONE}\ntorch_sparse",
    ],
)
def test_other_lines_are_not_taken_for_torchs_own(bare: str, text: str) -> None:
    assert "no extension plays a part" not in answers(text, bare)[0].cause


@pytest.mark.parametrize("cuda", ["cuda 128", "cuda 12.8", "CUDA 12.8", "cuda128"])
def test_a_cuda_right_behind_torch_is_torchs(bare: str, cuda: str) -> None:
    """The build of 2.7 for CUDA 12.8 is compiled with cuDNN 9.7.1, that for 12.6 with 9.5.1."""
    text = f"Unable to load any of {{libcudnn_cnn.so.9.1.0, libcudnn_cnn.so.9}}\ntorch 2.7 {cuda}"
    (answer,) = answers(text, bare)
    assert "9.5.1" not in typed(answer) and 'm.requires("torch")' in typed(answer)


@pytest.mark.parametrize("page", ["torch-1.11.0+11.3", "torch-1.11.0+cu113"])
def test_the_page_of_wheels_tells_torch(bare: str, page: str) -> None:
    text = (
        f"ImportError: libcusparse.so.11: {GONE}\n"
        f"pip install torch-scatter torch-sparse -f https://data.pyg.org/whl/{page}.html"
    )
    (answer,) = answers(text, bare)
    assert "which serves torch alone" in answer.cause and "toolkit" in answer.cause
    notes = " ".join(answer.notes)
    assert "1.11.0+cu113" in notes and ("no such page" in notes) == ("+11.3" in page)


@pytest.mark.parametrize("pip", ["pip install torch_tensorrt-1.0.0-cp36-cp36m-linux.whl\n", ""])
def test_a_torch_with_cudnn_in_torch_lib_needs_no_wheel(bare: str, pip: str) -> None:
    (answer,) = answers(f"{pip}ImportError: libcudnn.so.8: {GONE}\ntorch 1.10.2+cu113", bare)
    assert "libcudnn.so.8 in torch/lib" in answer.cause
    assert "os.path.dirname(torch.__file__)" in typed(answer) and "nvidia-" not in typed(answer)


@pytest.mark.parametrize(("found", "wheel"), [("8, 3, 3", False), ("8, 6, 0", True)])
def test_a_cudnn_older_than_any_wheel_is_condas_or_the_systems(
    bare: str, found: str, wheel: bool
) -> None:
    text = (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 7, 0) but "
        f"found runtime version ({found})."
    )
    (answer,) = answers(text, bare)
    assert ("a wheel of another version" in answer.cause) == wheel
    assert ("ldconfig -p" in typed(answer)) != wheel
