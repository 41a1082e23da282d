"""``why`` on the torch that is loaded, builds that do not match, and packages of a project."""

from __future__ import annotations

import re

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.python_api import own_check, passes_check

NMS = "RuntimeError: operator torchvision::nms does not exist"


@pytest.mark.parametrize(
    "words",
    [
        "uninstalled torch==2.5.1 and installed torch==2.6.0 (torchvision left as it was)",
        "after I upgraded torch from 2.5.1 to 2.6.0",
        "torch was upgraded from 2.5.1 to 2.6.0",
        "torch 2.5.1 -> 2.6.0",
        "torch==2.5.1 was removed, torch==2.6.0 installed",
    ],
)
def test_of_a_torch_that_was_replaced_the_new_one_is_loaded(words: str) -> None:
    paste = read_paste(f"{NMS}\n\n{words}")
    assert paste.versions["torch"] == "2.6.0" and "torch_too" not in paste.versions
    answer = first(NMS, words)
    assert any("torchvision==0.21.0" in text for text in answer.help)
    assert "0.20.1" not in said(answer)


@pytest.mark.parametrize(
    "words",
    [
        "torch 2.6.0; downgrading torch 2.6.0 to 2.5.1 fixed it",
        "torch 2.6.0, you should downgrade torch 2.6.0 to 2.5.1",
        "torch==2.6.0 here; I would upgrade torch 2.6.0 to 2.7.0",
    ],
)
def test_a_change_that_cured_it_or_was_not_made_says_nothing_of_the_loaded_torch(
    words: str,
) -> None:
    assert read_paste(f"{NMS}\n\n{words}").versions["torch"] == "2.6.0"


def test_releases_that_agree_in_builds_that_do_not() -> None:
    """torch 2.5.1+cpu is from torch's own index, torchvision 0.20.1 from the package index."""
    answer = first(NMS, "torch 2.5.1+cpu, torchvision 0.20.1")
    assert "the builds do not" in answer.cause
    wanted = '"torchvision==0.20.1" --index-url https://download.pytorch.org/whl/cpu'
    assert any(wanted in text for text in answer.help)
    agreeing = first(NMS, "torch 2.5.1+cu124, torchvision 0.20.1")
    assert "the builds do not" not in agreeing.cause  # the package index has that very build
    assert not any("torchvision==0.20.1" in text for text in agreeing.help)


MAJORS = (
    "RuntimeError: Detected that PyTorch and {0} were compiled with different CUDA versions. "
    "PyTorch has CUDA version {1} and {0} has CUDA version {2}. Please reinstall the {0} that "
    "matches your PyTorch install."
)


@pytest.mark.parametrize("package", ["torch_scatter", "torch_sparse", "torch_cluster"])
def test_packages_of_pyg_are_not_on_torchs_index(package: str) -> None:
    answer = first(MAJORS.format(package, "11.8", "12.1"), "torch 2.0.1+cu118")
    assert not any("download.pytorch.org" in text for text in answer.help)
    page = "-f https://data.pyg.org/whl/torch-2.0.0+cu118.html"
    assert any("--only-binary" in text and page in text for text in answer.help)
    assert any("CUDA_HOME=/usr/local/cuda-11.8 " in text for text in answer.help)
    assert not any(" torch " in text for text in answer.help if " install " in text)


def test_the_page_behind_f_names_torch_and_explains_the_build() -> None:
    command = (
        "pip install torch-scatter==2.0.4 -f https://pytorch-geometric.com/whl/"
        "torch-1.6.0+cu101.html"
    )
    answer = first(command, MAJORS.format("torch_scatter", "10.1", "10.2"))
    assert "2.0.4" in answer.cause and "source" in answer.cause
    assert any("torch-1.6.0+cu101.html" in text for text in answer.help)


def test_old_xformers_is_on_the_package_index_alone() -> None:
    """xformers' wheels are on torch's own index since October 2023, for torch 2.1 and newer."""
    banner = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch {} with CUDA 1201 (you have {})\n"
        "    Python  3.10.13 (you have 3.10.10)\n"
    )
    old = first(banner.format("2.1.0+cu121", "2.0.1+cu118"))
    fitting = next(text for text in old.help if "xformers==0.0.22" in text)
    assert "--index-url" not in fitting and "newer than torch" in old.cause
    new = first(banner.format("2.2.0+cu121", "2.1.2+cu118"))
    assert "--index-url" in next(text for text in new.help if "xformers==0.0.23.post1" in text)
    one = first(banner.format("2.0.1+cu118", "2.0.1+cu117"))
    assert not any(re.search(r"xformers\S* --index-url", text) for text in one.help)


@pytest.mark.parametrize(
    ("torch", "torchao", "wanted", "of"),
    [
        ("2.8.0+cu129", "0.14.0", "torchao==0.13.0", ""),
        ("2.9.1+cu128", "0.16.0", "torchao==0.15.0", "torch==2.10.0"),
        ("2.7.1+cu128", "0.15.0", "torchao==0.12.0", "torch==2.9.1"),
        ("2.11.0", "0.14.1", "torchao>=0.17.0", "torch==2.9.0"),
    ],
)
def test_torchao_is_taken_by_its_own_comparison(
    torch: str, torchao: str, wanted: str, of: str
) -> None:
    line = (
        f"Skipping import of cpp extensions due to incompatible torch version {torch} for torchao "
        f"version {torchao}             Please see https://github.com/pytorch/ao/issues/2919"
    )
    answer = first(line)
    typed = "\n".join(answer.help)
    assert f'"{wanted}"' in typed and (f'"{of}"' in typed if of else '"torch==' not in typed)
    assert "warning" in answer.cause and "damaged" in answer.cause


def test_torchao_asks_for_a_lowest_torch_since_0_17() -> None:
    line = (
        "Skipping import of cpp extensions due to incompatible torch version. Please upgrade to "
        "torch >= 2.11.0 (found 2.9.1+cu128)."
    )
    answer = first(line)
    assert answer.owner == "torchao" and any('"torchao==0.15.0"' in t for t in answer.help)
    assert own_check("torchao", "0.14.0") == () and own_check("torchao", "0.9.0") is None
    assert passes_check("torchao", "2.4.0") == ""


def test_a_library_of_torchs_own_may_be_a_copy_of_the_system() -> None:
    site = "/home/me/.local/lib/python3.6/site-packages/torch/lib/libcaffe2.so"
    answer = first(f"ImportError: {site}: undefined symbol: _ZTIN3c1010TensorImplE")
    assert any(text.startswith(f"ldd {site}") and "ldconfig -p" in text for text in answer.help)
    assert any("/usr/local/lib" in note for note in answer.notes)
    assert "imported before the file" not in said(answer)


CUDA_PART = "libc10_cuda.so: cannot open shared object file: No such file or directory"


def test_without_a_gpu_the_extension_is_what_changes() -> None:
    answer = first(f"On CPU-only machine: OSError: {CUDA_PART}", "PyTorch Geometric from conda")
    assert "torch can stay" in answer.cause and "import MODULE" not in said(answer)
    assert any("conda install" in text and "=*cpu*" in text for text in answer.help)


def test_an_extension_without_cuda_is_the_other_way_out() -> None:
    answer = first(f"ImportError: {CUDA_PART}")
    assert any("build of the extension without CUDA" in note for note in answer.notes)
    frame = '  File "/x/lib/python3.9/site-packages/torch_sparse/__init__.py", line 19, in <module>'
    own = first(frame, "    torch.ops.load_library(spec.origin)", f"OSError: {CUDA_PART}")
    assert any("torch-sparse -f https://data.pyg.org" in text for text in own.help)
    told = first(f"OSError: {CUDA_PART}", "torch-scatter 2.1.0, torch 1.13.1+cpu")
    assert any("torch-1.13.0+cpu.html" in text for text in told.help)


def test_what_was_installed_from_here_is_built_from_here() -> None:
    text = (
        "$ pip install -v .\n  Getting requirements to build wheel did not run successfully.\n"
        "ModuleNotFoundError: No module named 'torch'"
    )
    assert any(t.endswith("--no-build-isolation .") for t in first(text).help)
    unknown = first(text.split("\n", 1)[1])
    assert any(note.startswith("PACKAGE is") for note in unknown.notes)


def test_torchvision_is_taken_for_the_torch_that_is_there() -> None:
    """VoiceStudio issue 1357: both were the newest, of two indexes; --upgrade changes neither."""
    answer = first(
        'File "/usr/local/lib/python3.12/dist-packages/torchvision/_meta_registrations.py", line 1',
        '    @torch.library.register_fake("torchvision::nms")',
        "RuntimeError: operator torchvision::nms does not exist",
        "ModuleNotFoundError: Could not import module 'X'. Are this object's requirements defined",
    )
    assert answer.owner == "torchvision"
    assert not any("--upgrade" in command for command in answer.help)
    install = next(command for command in answer.help if " install " in command)
    assert (
        "--index-url https://download.pytorch.org/whl/cuXYZ" in install
        and 'm.version("torch")' in install
    )
    assert any("uninstall -y torchvision" in command for command in answer.help)


def test_on_windows_xformers_gets_no_torch_without_cuda_nor_a_shells_prefix() -> None:
    """PyPI's torch for Windows has no CUDA; cmd has no NAME=VALUE before a command."""
    banner = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.0.1 (you have 2.1.0+cu121)\n    Python  3.11.5 (you have 3.11.5)\n"
    )
    windows = first(banner + "Windows 11")
    torch = [command for command in windows.help if '"torch==' in command]
    assert torch and all("--index-url" in command for command in torch)
    assert not any(command.startswith("XFORMERS_MORE") for command in windows.help)
    assert "set XFORMERS_MORE_DETAILS=1" in windows.help
    linux = first(banner + "Ubuntu 22.04")
    assert any(command.startswith("XFORMERS_MORE_DETAILS=1 ") for command in linux.help)
