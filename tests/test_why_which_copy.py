"""Commands and remarks on copies of NVIDIA's libraries: they work where the reader is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain
from fa_forensics.why.tables import Tables
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel, wheels_on_path

SITE = "/home/u/lib/python3.10/site-packages"
GONE = "cannot open shared object file: No such file or directory"


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes))


@pytest.mark.parametrize(
    ("folders", "found"),
    [(("cudnn", "cublas"), ("cudnn", "cublas")), (("cudnn", "cu13"), ("cudnn", "cu13"))],
)
@pytest.mark.parametrize("before", ["", "/opt/old"])
def test_a_shell_takes_the_directories_of_both_layouts_and_keeps_what_was_set(
    folders: tuple[str, ...], found: tuple[str, ...], before: str, tmp_path: Path
) -> None:
    # The wheels of CUDA 12 have nvidia/cublas/lib, those of CUDA 13 nvidia/cu13/lib.
    for folder in folders:
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True)
    command = wheels_on_path(f"env PYTHONPATH={tmp_path} {sys.executable}", "cudnn", "cublas",
                             "cu13")  # fmt: skip
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command}; echo $LD_LIBRARY_PATH"], capture_output=True, text=True,
        check=True, env={"LD_LIBRARY_PATH": before, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    wanted = [f"{tmp_path}/nvidia/{folder}/lib" for folder in found]
    assert done.stdout.strip().split(":") == [*wanted, *([before] if before else [])]


def test_a_wheel_of_cuda_13_without_its_number_lies_in_the_common_directory() -> None:
    assert folder_of_wheel("nvidia-cufft") == "cu13"
    assert folder_of_wheel("nvidia-cuda-runtime-cu12") == "cuda_runtime"
    assert folder_of_wheel("nvidia-cudnn-cu13") == "cudnn"


def test_no_line_above_is_spoken_of_where_the_text_has_none(bare: str) -> None:
    alone = first("Cannot load symbol cudnnGetVersion", bare)
    assert alone.owner == "cudnn" and "The text names that part" not in said(alone)
    whole = first(
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}\n"
        "Invalid handle. Cannot load symbol cudnnCreate", bare,
    )  # fmt: skip
    assert "libcudnn_ops.so.9.1.0" in whole.cause


def test_the_version_of_cudnn_is_the_one_that_the_texts_torch_asks_for(bare: str) -> None:
    pinned = Tables().needed_atlas().build("2.4.0", "x86_64")
    assert pinned is not None
    version = pinned.requires["nvidia-cudnn-cu12"]  # of torch's METADATA
    answer = first(
        "Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}\ntorch==2.4.0\n"
        "CUDA 11.1 on this machine", bare,
    )  # fmt: skip
    command = next(c for c in answer.help if "nvidia-cudnn" in c)
    assert "--force-reinstall --no-deps" in command and command.endswith(f'=={version}"')


@pytest.mark.parametrize(
    ("word", "wanted", "unwanted"),
    [("mismatch", "cudnn=7.1", "newer one"), ("incompatibility", "cudnn>=7.1.2,<8", "no other")],
)
def test_the_older_wording_wants_the_same_minor_version(
    word: str, wanted: str, unwanted: str, bare: str
) -> None:
    # torch 0.4 compares version // 100 (pytorch issue 12193), later ones take a newer minor.
    answer = first(
        f"RuntimeError: cuDNN version {word}: PyTorch was compiled against 7102 but linked "
        "against 7005", bare,
    )  # fmt: skip
    assert any(f'"{wanted}"' in command for command in answer.help)
    assert unwanted not in said(answer) and "wheel of cuDNN 7" not in said(answer)


def test_torch_before_wheels_of_cudnn_is_not_asked_for_one(bare: str) -> None:
    old = first(
        "cuDNN version incompatibility: PyTorch was compiled against (8, 6, 0) but linked against "
        "(8, 0, 3)\ntorch==1.12.1", bare,
    )  # fmt: skip
    assert "pip check" not in " ".join(old.help)
    new = first(
        "cuDNN version incompatibility: PyTorch was compiled against (8, 9, 2) but linked against "
        "(8, 0, 3)", bare,
    )  # fmt: skip
    assert "pip check" in " ".join(new.help)


@pytest.mark.parametrize("editable", [True, False])
def test_a_build_environment_that_is_gone_is_not_looked_into(editable: bool, bare: str) -> None:
    place = "/tmp/pip-build-env-5bn040xc/overlay/lib/python3.8/site-packages"
    what = "editable" if editable else "wheel"
    answer = first(
        f"Getting requirements to build {what} ... error\nOSError: {place}/torch/lib/../../nvidia/"
        "cublas/lib/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version "
        "libcublasLt.so.11\n", bare,
    )  # fmt: skip
    assert answer.owner == "cublasLt"
    assert "pip-build-env" not in " ".join(answer.help)
    assert answer.help[0].startswith("env -u LD_LIBRARY_PATH python -m pip install")
    assert ("-e ." in answer.help[0]) is editable


def test_a_file_in_a_source_tree_is_opened_by_its_path_and_built_there(bare: str) -> None:
    file = "/w/DeepSpeed/deepspeed/ops/adam/cpu_adam_op.cpython-38-x86_64-linux-gnu.so"
    answer = first(f"ImportError: {file}: undefined symbol: curandCreateGenerator", bare)
    helps = " ".join(answer.help)
    assert f'ctypes.CDLL("{file}")' in helps and "import cpu_adam_op" not in helps
    built = next(c for c in answer.help if "pip install" in c)
    assert built.startswith("cd /w/DeepSpeed && ") and "DS_BUILD_OPS=1" in built
    assert "AttributeError" in said(answer)


def test_an_installed_file_is_imported_by_its_whole_name(bare: str) -> None:
    answer = first(
        f"ImportError: {SITE}/deepspeed/ops/adam/cpu_adam_op.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: curandCreateGenerator", bare,
    )  # fmt: skip
    assert "import deepspeed.ops.adam.cpu_adam_op'" in " ".join(answer.help)


def test_a_file_of_torchs_cache_is_compiled_again_by_removing_it(bare: str) -> None:
    folder = "/home/u/.cache/torch_extensions/py310_cu121/cpu_adam"
    answer = first(
        f"ImportError: {folder}/cpu_adam.so: undefined symbol: curandCreateGenerator", bare
    )
    assert f"rm -rf {folder}" in answer.help


def test_torchs_first_try_is_not_the_end_of_its_search(bare: str) -> None:
    # torch/__init__.py since 2.0.0 goes on with cuda_libs over sys.path, libcufft among them.
    answer = first(
        '  File "/usr/lib64/python3.11/site-packages/torch/__init__.py", line 174, in '
        "_load_global_deps\n    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)\n"
        f"OSError: libcufft.so.11: {GONE}", bare,
    )  # fmt: skip
    assert "does not look for the wheels" not in said(answer)
    assert "the one of CUDA 12" in answer.cause
    assert any("--force-reinstall" in c and c.endswith(" torch") for c in answer.help)


def test_a_part_of_cudnn_is_tested_by_a_convolution(bare: str) -> None:
    answer = first(
        f"{SITE}/torch/lib/../../nvidia/cudnn/lib/libcudnn_cnn_infer.so.8: undefined symbol: "
        "_ZN15TracebackLoggerC1EPKc, version libcudnn_ops_infer.so.8", bare,
    )  # fmt: skip
    assert "conv2d" in answer.help[0] and "import torch'" not in " ".join(answer.help)
    assert any(c.startswith("export") and '"cudnn"' in c for c in answer.help)


def test_conda_and_pip_in_one_text_are_a_mixture(bare: str) -> None:
    text = (
        "undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12\n"
        "conda install pytorch pytorch-cuda=12.4 -c pytorch -c nvidia"
    )
    alone, mixed = first(text, bare), first(f"{text}; pip install lmcache (torch 2.5.0)", bare)
    assert any(c.startswith("conda install -c nvidia") for c in alone.help)
    assert "Where pip list shows an nvidia wheel with that library" in said(alone)
    assert any("nvidia-nvjitlink-cu12" in c and " pip install" in c for c in mixed.help)


def test_torch_names_no_version_of_nvjitlink_before_2_5(bare: str) -> None:
    atlas = Tables().needed_atlas()
    pins = {
        release: "nvidia-nvjitlink-cu12" in build.requires
        for release in ("2.1.0", "2.4.1", "2.5.0", "2.6.0")
        if (build := atlas.build(release, "x86_64")) is not None
    }
    assert pins == {"2.1.0": False, "2.4.1": False, "2.5.0": True, "2.6.0": True}
    answer = first(
        f"{SITE}/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: "
        "__nvJitLinkAddData_12_1, version libnvJitLink.so.12", bare,
    )  # fmt: skip
    assert "since 2.5.0" in said(answer)


@pytest.mark.parametrize("soname", ["libcusparse.so.10", "libcublas.so.10", "libcufft.so.10"])
@pytest.mark.parametrize("torch", ["torch==1.7.1+cu101", "torch 1.4.0, CUDA 10.1"])
def test_a_library_of_cuda_10_does_not_come_with_pips_torch(
    soname: str, torch: str, bare: str
) -> None:
    # TensorFlow 2.3, built with CUDA 10.1, reports to open all three by these names.
    answer = first(f"ImportError: {soname}: {GONE}\n{torch}", bare)
    assert answer.code == "FA202" and "CUDA 11 build" not in answer.cause
    assert "importing torch first does not bring it" in answer.cause
    assert any(command.startswith("export LD_LIBRARY_PATH=") for command in answer.help)


def test_the_builds_of_a_package_for_each_cuda_are_named(bare: str) -> None:
    answer = first(f"OSError: libcusparse.so.10: {GONE}\n\ndgl (CUDA build)", bare)
    assert "dgl-cu102" in said(answer)
    assert "(probably of dgl) is a build for CUDA 10" in answer.cause


def test_no_version_of_cudnn_is_guessed_for_a_build_with_another_cuda(bare: str) -> None:
    answer = first(
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}\ntorch==2.5.0+cu121",
        bare,
    )
    command = next(c for c in answer.help if "force-reinstall" in c)
    assert 'm.requires("torch")' in command


@pytest.mark.parametrize(
    ("file", "loaded"),
    [
        (f"{SITE}/pkg/ops/_C.cpython-310-x86_64-linux-gnu.so", "import pkg.ops._C'"),
        (f"{SITE}/pkg/lib/libpkg.so", f'ctypes.CDLL("{SITE}/pkg/lib/libpkg.so")\''),
        ("/w/pkg/pkg/_C.cpython-310-x86_64-linux-gnu.so",
         "ctypes.CDLL(\"/w/pkg/pkg/_C.cpython-310-x86_64-linux-gnu.so\")'"),
    ],
)  # fmt: skip
def test_torch_goes_first_and_then_what_can_be_loaded(file: str, loaded: str, bare: str) -> None:
    answer = first(f"ImportError: libc10.so: {GONE}\n(needed by {file})", bare)
    direct = first(f"OSError: {file}: undefined symbol: curandCreateGenerator", bare)
    assert any(command.endswith(loaded) for command in direct.help)
    commands = [c for c in answer.help if "import torch; import" in c]
    assert all("import torch; import _C'" not in c for c in commands)
