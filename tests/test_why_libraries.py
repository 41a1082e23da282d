"""``why`` on libraries that are not found, and on NVIDIA's libraries in two versions."""

from __future__ import annotations

import re

import pytest
from support.inspecting import invoke

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.library_names import (
    exact_toolkit,
    outside_library,
    torch_library_life,
)
from fa_forensics.facts.tables import read_table
from fa_forensics.why.torch_names.history import order_key

GONE = "cannot open shared object file: No such file or directory"


def answers(text: str) -> list[dict[str, object]]:
    document = invoke("why", "--elsewhere", "--format", "json", "--", text).document
    found: list[dict[str, object]] = document["answers"]
    return found


def first(text: str) -> tuple[str, str, dict[str, object]]:
    """(the cause and the notes, the commands, the answer)."""
    answer = answers(text)[0]
    notes, commands = answer["notes"], answer["help"]
    assert isinstance(notes, list) and isinstance(commands, list)
    return " ".join([str(answer["cause"]), *notes]), "\n".join(commands), answer


@pytest.mark.parametrize(
    ("soname", "release"),
    # FFmpeg's release table: each major release raises every library's number by one.
    [("libavutil.so.56", "4"), ("libavutil.so.60", "8"), ("libavcodec.so.58", "4"),
     ("libavformat.so.62", "8"), ("libavfilter.so.9", "6"), ("libswscale.so.8", "7"),
     ("libswresample.so.4", "5 or 6")],
)  # fmt: skip
def test_a_library_of_ffmpeg_names_its_release(soname: str, release: str) -> None:
    words, _, answer = first(f"ImportError: {soname}: {GONE}")
    assert f"FFmpeg {release}" in words and answer["owner"] == "FFmpeg"


def test_torchcodec_needs_one_ffmpeg_of_several() -> None:
    lines = []
    for release, number in ((8, 60), (7, 59), (4, 56)):
        lines += [
            f"FFmpeg version {release}:",
            '  File "/e/lib/python3.11/site-packages/torchcodec/_core/ops.py", line 9, in load',
            f"OSError: libavutil.so.{number}: {GONE}",
        ]
    found = answers("\n".join(lines))
    assert len(found) == 1
    assert "any of these releases" in str(found[0]["cause"])
    # What stops one part for another reason says more than a release that is not installed.
    lines.insert(3, "OSError: /e/torchcodec/libtorchcodec_core7.so: undefined symbol: "
                    "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs")  # fmt: skip
    assert [a["kind"] for a in answers("\n".join(lines))] != ["missing-library"]


@pytest.mark.parametrize(
    ("soname", "words", "command"),
    [
        ("libnppicc.so.12", "CUDA 12", "nvidia-npp-cu12"),
        ("libnppig.so.13", "CUDA 13", "install nvidia-npp\n"),
        ("libnvinfer.so.8", "TensorRT 8", "tensorrt==8.*"),
        ("libcutensor.so.2", "cuTENSOR 2", "cutensor-cu12==2.*"),
        ("libcudss.so.0", "cuDSS 0", "nvidia-cudss-cu12==0.*"),
        ("libmkl_intel_lp64.so.2", "2022 to 2025", "mkl>=2022,<2026"),
        ("libmkl_rt.so.1", "2021", "mkl>=2021,<2022"),
        ("libmkl_core.so", "2020 and older", "setvars.sh"),
        ("libsycl.so.8", "oneAPI", "setvars.sh"),
        ("libascend_hal.so", "-v /usr/local/Ascend/driver", "Ascend/driver/lib64/driver"),
        ("libascendcl.so", "CANN", "set_env.sh"),
        ("libssl.so.1.1", "OpenSSL 1.1", "openssl=1.1"),
        ("libnvdla_compiler.so", "JetPack", "nv_tegra_release"),
    ],
)
def test_a_library_that_no_torch_brings_is_known(soname: str, words: str, command: str) -> None:
    said, commands, answer = first(f"ImportError: {soname}: {GONE}")
    assert words in said and command in commands
    assert answer["code"] == "FA202" and answer["confidence"] != "low"


def test_a_part_of_the_driver_needs_its_capability() -> None:
    said, _, answer = first(f"ImportError: libnvcuvid.so.1: {GONE}")
    assert (answer["code"], answer["owner"]) == ("FA209", "cuda-driver")
    assert "NVIDIA_DRIVER_CAPABILITIES" in said and "video" in said


def test_the_toolkit_part_of_another_cuda_is_of_another_build() -> None:
    _, _, answer = first(f"ImportError: libnppicc.so.12: {GONE}\ntorch 2.9.1+cu130")
    assert (answer["code"], answer["direction"]) == ("FA602", "file-older")


@pytest.mark.parametrize(
    ("soname", "toolkit"),
    [("libcudart.so.10.1", "10.1"), ("libcudart.so.9.0", "9.0"), ("libcublas.so.10.0", "10.0"),
     ("libcudart.so.11.0", None), ("libnvrtc.so.11.2", None), ("libcublas.so.10", None)],
)  # fmt: skip
def test_up_to_cuda_10_a_soname_tells_the_minor_version(soname: str, toolkit: str | None) -> None:
    assert exact_toolkit(soname) == toolkit


def test_cuda_10_0_and_10_1_are_two_builds() -> None:
    text = f"ImportError: libcudart.so.10.1: {GONE}\nCUDA used to build PyTorch: 10.0"
    said, _, answer = first(text)
    assert (answer["code"], answer["direction"]) == ("FA602", "file-newer")
    assert "CUDA 10.1 build" in said and "CUDA 10.0 build" in said
    same = first(text.replace("10.0", "10.1"))[2]
    assert same["code"] == "FA202"


def test_bare_values_of_torch_and_its_cuda_are_read() -> None:
    _, _, answer = first(f"2.1.0\n11.8\n8700\nTrue\nImportError: libcudart.so.12: {GONE}")
    assert (answer["code"], answer["direction"]) == ("FA602", "file-newer")


def test_torchs_own_libraries_have_their_releases() -> None:
    _, _, answer = first(f"ImportError: libtorch_cpu.so: {GONE}\nPyTorch version: 1.4.0")
    assert (answer["kind"], answer["direction"]) == ("missing-library", "file-newer")
    said, _, _ = first(f"ImportError: libtorch_cuda_cu.so: {GONE}\nPyTorch version: 1.10.0+cu102")
    assert "CUDA 11" in said
    said, _, answer = first(f"ImportError: libtorch_cuda_cu.so: {GONE}\nPyTorch version: 2.3.0")
    assert "1.8.0" in said and "1.13.1" in said and answer["direction"] == "file-older"


def test_the_lives_of_torchs_libraries_agree_with_the_table_of_symbols() -> None:
    atlas = Atlas.open()
    builds = [b for b in atlas.builds("x86_64") if b.cuda is not None]
    for soname in read_table("torch_libraries.json")["libraries"]:
        life = torch_library_life(soname)
        assert life is not None
        having = [b.release for b in builds if soname in b.libraries]
        for release in having:
            assert order_key(life[0]) <= order_key(release)
            assert life[1] is None or order_key(release) <= order_key(life[1])


def test_a_library_that_torch_itself_needs_is_not_laid_to_an_extension() -> None:
    for soname in ("libnccl.so.2", "libcusparseLt.so.0", "libcufile.so.0"):
        said, commands, _ = first(f"ImportError: {soname}: {GONE}")
        assert "torch's own libraries need" in said
        assert "import torch" in commands.split("\n")[0]
    path = "/srv/kit/lib/python3.11/site-packages/nvidia/cusparselt/lib/libcusparseLt.so.0"
    said, _, _ = first(f"ImportError: libcusparseLt.so.0: {GONE}\nbut find shows\n{path}")
    assert path in said
    said, _, _ = first(f"ImportError: libcusparseLt.so.0: {GONE}\nln -s {path} /usr/lib")
    assert path not in said


def test_torch_that_looks_for_its_wheels_in_vain_is_torch_itself() -> None:
    said, _, answer = first("ValueError: libcublas.so.*[0-9] not found in ['/a', '/b']")
    assert "torch itself" in said and answer["owner"] == "cublas"


def test_two_wheels_that_share_a_file_are_told_apart() -> None:
    said, commands, answer = first(
        "import torch: undefined symbol: ncclCommResume\n"
        "nvidia-nccl-cu12==2.29.3\nnvidia-nccl-cu13==2.29.7"
    )
    assert "one and the same file" in said and answer["direction"] == "file-newer"
    assert commands.split("\n")[:2] == [
        "python -m pip uninstall -y nvidia-nccl-cu12",
        'python -m pip install --force-reinstall --no-deps "nvidia-nccl-cu13==2.29.7"',
    ]


def test_a_wheel_that_the_text_names_is_what_lacks_the_name() -> None:
    text = (
        "ImportError: /e/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: "
        "ncclCommWindowRegister\nnvidia-nccl-cu12 2.21.5\nPyTorch version: 2.9.0"
    )
    said, commands, _ = first(text)
    assert "nvidia-nccl-cu12 2.21.5, as the text says" in said
    assert 'install "nvidia-nccl-cu12==2.27.5"' in commands  # what torch 2.9.0 pins


def test_a_toolkits_own_library_met_the_older_one_of_a_wheel() -> None:
    said, commands, answer = first(
        "ImportError: /usr/local/cuda-12.9/lib64/libcusolver.so.11: undefined symbol: "
        "cublasSetEnvironmentMode, version libcublas.so.12"
    )
    assert "wheel" in said and "one place" in said and answer["direction"] == "file-newer"
    assert "grep -iE 'cublas'" in commands


def test_a_file_that_lacks_its_own_name_was_loaded_for_a_newer_one() -> None:
    said, _, _ = first(
        "Could not load symbol cudnnGetLibConfig. Error: /usr/lib/libcudnn_graph.so.9: "
        "undefined symbol: cudnnGetLibConfig"
    )
    assert "The message is of libcudnn_graph.so.9 itself" in said


def test_inner_names_between_parts_of_cudnn_mean_two_releases() -> None:
    said, _, answer = first(
        "ImportError: /usr/lib/libcudnn_adv.so.9: undefined symbol: _ZTIN10cask_cudnn6ShaderE"
    )
    assert answer["owner"] == "cudnn" and "two cuDNN releases" in said


def test_cudnn_that_misses_a_part_gets_one_answer_with_its_major_version() -> None:
    found = answers(
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}\n"
        "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor"
    )
    assert len(found) == 1 and "cuDNN 9" in str(found[0]["cause"])
    assert "ctranslate2" in str(found[0]["notes"])
    alone = answers("Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor")[0]
    assert alone["kind"] == "missing-library" and alone["confidence"] != "high"


def test_ctranslate2_and_tensorflow_look_for_cuda_by_name() -> None:
    said, _, answer = first(
        "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded"
    )
    assert answer["owner"] == "cublas" and "CUDA 12 build" in said
    said, _, _ = first(
        "W tensorflow/tsl/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; "
        f"dlerror: libcudart.so.11.0: {GONE}"
    )
    assert "TensorFlow" in said and "torch has no part" in said


def test_a_traceback_names_the_package_that_needs_the_library() -> None:
    said, _, _ = first(
        '  File "/e/lib/python3.8/site-packages/mmcv/utils/ext_loader.py", line 11, in load_ext\n'
        "    ext = importlib.import_module(name)\n"
        f"ImportError: libcudart.so.10.2: {GONE}"
    )
    assert said.startswith("A compiled part of mmcv is a CUDA 10.2 build")


def test_every_row_of_the_outside_libraries_is_used() -> None:
    table = read_table("outside_libraries.json")
    names = {
        "toolkit": {"conda", "wheels"}, "product": {"wheel"}, "oneapi": {"conda"}, "old": {"conda"},
        "mkl": {"numbers"}, "ffmpeg": {"stems"}, "driver": set(), "jetson": set(), "ascend": set(),
        "ascend_driver": set(), "mkl_sycl": {"numbers"},
    }  # fmt: skip
    for row in table["rows"]:
        re.compile(row["names"])
        assert names[row["way"]] <= set(row)
    assert outside_library("libcudart.so.12") is None
    assert outside_library("libtorch.so") is None
