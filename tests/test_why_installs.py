"""What an installation or a build did to torch, told from the texts of pip, uv, CMake and torch."""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

_HELPER = "lib/python3.10/site-packages/torch/utils/cpp_extension.py"
_TUPLE = (
    "RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compile"
    "PyTorch (%s). Please make sure to use the same CUDA versions.', '{0}', '{1}')"
)


def test_the_versions_behind_torchs_unformatted_message_are_read() -> None:
    """torch 2.7 and 2.8 raise a tuple: the message and, behind it, nvcc's and torch's CUDA."""
    answer = first(_TUPLE.format("11.8", "12.8"))
    assert "CUDA 11.8" in answer.cause and "CUDA 12.8" in answer.cause
    assert "CUDA_HOME=/usr/local/cuda-12.8" in said(answer)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("/tmp/pip-build-env-ab12cd34/overlay/", "pip install --no-build-isolation"),
        ("/root/.cache/uv/builds-v0/.tmpAbC123/", "uv pip install --no-build-isolation"),
    ],
)
def test_the_torch_of_an_isolated_build_is_not_the_installed_one(place: str, command: str) -> None:
    answer = first(f'File "{place}{_HELPER}", line 1\n' + _TUPLE.format("11.8", "12.8"))
    assert answer.owner == "torch" and "not the installed one" in answer.cause
    assert command in said(answer) and "cuda-12.8" not in said(answer)


def test_the_nvcc_of_the_text_is_not_the_one_that_the_build_found() -> None:
    answer = first(
        "The detected CUDA version (10.1) mismatches the version that was used to compile\n"
        "PyTorch (11.8).\n$ nvcc -V\nCuda compilation tools, release 11.8, V11.8.89"
    )
    assert "CUDA_HOME names another toolkit" in answer.cause


@pytest.mark.parametrize(
    "text",
    [
        "hint: This error likely indicates that `mamba-ssm@2.2.2` depends on `torch`, but doesn't "
        "declare it as a build dependency.",
        "ModuleNotFoundError: No module named 'torch'\n\nhint: This error likely indicates that "
        "`mamba-ssm@2.2.2` depends on `torch`, but doesn't\n  declare it as a build dependency.",
        "error: Failed to prepare distributions\n  Caused by: Failed to fetch wheel: "
        "mamba-ssm==2.2.2\nModuleNotFoundError: No module named 'torch'",
    ],
)
def test_uvs_isolation_is_told_in_uvs_own_words(text: str) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == ("FA884", "mamba-ssm")
    assert "uv builds in an environment of its own" in answer.cause
    command = answer.help[1]
    assert "uv pip install --no-build-isolation" in command
    assert command.endswith(("mamba-ssm", '"mamba-ssm==2.2.2"'))
    assert "FORCE_BUILD" not in said(answer) and len(answers(text)) == 1


_GONE = (
    "Found existing installation: torch 2.3.1+cu118\n  Successfully uninstalled torch-2.3.1+cu118"
)


@pytest.mark.parametrize(
    "text",
    [
        f"{_GONE}\nSuccessfully installed torch-2.4.0",
        " - torch==2.3.1+cu118\n + torch==2.4.0",
        "torch                2.3.1+cu118\nCollecting torch==2.4.0 (from vllm==0.5.4)",
        "the install replaced torch 2.3.1+cu118 by torch 2.4.0",
    ],
)
def test_a_torch_that_an_installation_replaced_is_got_back_from_its_own_index(text: str) -> None:
    answer = first(text)
    assert (answer.kind, answer.owner) == ("wrong-torch", "torch")
    assert "2.3.1+cu118" in answer.cause and "torch 2.4.0" in answer.cause
    assert (
        '"torch==2.3.1+cu118" --index-url https://download.pytorch.org/whl/cu118' in answer.help[0]
    )
    assert "/cu118" in said(answer) and "constraints.txt" in said(answer)


def test_the_same_torch_again_is_no_replacement() -> None:
    text = "Successfully uninstalled torch-2.8.0\nSuccessfully installed torch-2.8.0"
    assert first(text).kind == "unrecognised"


def test_a_containers_torch_is_not_asked_of_an_index() -> None:
    answer = first(
        "Successfully uninstalled torch-2.5.0a0+872d972e41.nv24.8\n"
        "Successfully installed torch-2.6.0"
    )
    assert "a0+872d972e41" in answer.cause and not any("torch==" in c for c in answer.help)


def test_a_package_of_another_torch_says_for_which_it_was_built() -> None:
    """torchvision 0.23.0 is the release for torch 2.8.0."""
    answer = first(
        "RuntimeError: operator torchvision::nms does not exist\ntorch 2.6.0\ntorchvision 0.23.0"
    )
    assert "built for torch 2.8.0, and torch 2.6.0 ran" in answer.cause
    pair = first("Couldn't load custom C++ ops.\nTorch is 2.1.2\nTorchvision is 0.16.2")
    assert "these versions agree" in pair.cause


@pytest.mark.parametrize(
    "text",
    [
        "-- The CUDA compiler identification is unknown",
        'The CUDA compiler\n    "/usr/bin/nvcc"\n  is not able to compile a simple test program.',
        "CMake Error: CMAKE_CUDA_COMPILER not set, after EnableLanguage",
    ],
)
def test_cmakes_trial_of_nvcc_is_no_matter_of_torch(text: str) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == ("FA883", "nvcc") and "CUDACXX=" in said(answer)


def test_why_nvcc_failed_goes_before_cmakes_word_for_it() -> None:
    answer = first(
        "-- The CUDA compiler identification is unknown\nerror: #error -- unsupported GNU version! "
        "gcc versions later than 10 are not supported!"
    )
    assert answer.owner == "gcc"


def test_a_jetson_takes_the_torch_of_its_jetpack() -> None:
    """NVIDIA's wheels for JetPack 4 end with torch 1.10.0; the index has none for the board."""
    answer = first("AssertionError: Torch not compiled with CUDA enabled\nJetson Nano, JetPack 4.6")
    assert "1.10.0" in answer.cause and "Python 3.6" in answer.cause
    assert not any(c.endswith(("install torch", "no-cache-dir torch")) for c in answer.help)


def test_a_cuda_torch_that_is_told_is_not_called_a_cpu_build() -> None:
    told = first("AssertionError: Torch not compiled with CUDA enabled\ntorch 2.3.0+cu121")
    assert told.code == "FA607" and "another Python" in told.cause
    plain = first("AssertionError: Torch not compiled with CUDA enabled\ntorch 2.3.0")
    assert "+cu" not in plain.cause and "--index-url https://download.pytorch.org/whl/" in said(
        plain
    )


def test_a_download_for_cpp_is_not_the_torch_that_python_loads() -> None:
    answer = first(
        "built with libtorch-cxx11-abi-shared-with-deps-2.1.0%2Bcu121.zip\nImportError: "
        "/x/m.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14Source"
        "LocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    assert answer.kind == "cxx11-abi" and "libtorch 2.1.0" in said(answer)


def test_two_torches_in_one_directory_are_removed_and_one_is_installed() -> None:
    answer = first(
        "ImportError: /x/lib/python3.6/site-packages/torch/lib/libtorch_python.so: undefined "
        "symbol: _ZTIN3c1014WarningHandlerE"
    )
    assert answer.code == "FA607" and "pip uninstall -y torch" in said(answer)
    assert "install one torch once" in said(answer)


def test_a_name_of_torch_0_4_is_not_the_extensions_own() -> None:
    answer = first(
        "../ext/_C.cpython-35m-x86_64-linux-gnu.so: undefined symbol: "
        "_ZN2at15UndefinedTensor10_singletonE\npytorch 1.0"
    )
    assert answer.direction == "file-older" and "torch 0.4" in answer.cause
    assert "extension itself" not in answer.cause


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("lib/libshm.so", "_ZTI24THRefcountedMapAllocator"),
        ("lib/libtorch_cpu.so", "THFooBar_baz"),
        (
            "_C.cpython-36m-x86_64-linux-gnu.so",
            "_ZN5torch3jit5Value13setUniqueNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESa",
        ),
    ],
)
def test_a_file_of_torch_that_lacks_what_no_release_has(file: str, name: str) -> None:
    """Its own files are of two torches; no extension is to be built again for it."""
    answer = first(f"ImportError: /a/site-packages/torch/{file}: undefined symbol: {name}")
    assert answer.code == "FA607" and (answer.owner or "").startswith("torch")
    assert "rm -rf build" not in said(answer)
    assert "site-packages/torch" in said(answer) and any("uninstall" in c for c in answer.help)
