"""Compiled modules that were never built: whose they are, where they are looked for, and how."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def first(text: str) -> Answer:
    """The first answer to a text of another machine."""
    return explain([text], sys.executable, {}, where="elsewhere").answers[0]


@pytest.mark.parametrize(
    "text",
    [
        "from mega_core import _C\nImportError: cannot import name '_C'",
        ">>> from mega_core import _C\nImportError: cannot import name _C",
        "    from mega_core import layers, _C\n        ^^^^\nImportError: cannot import name '_C'",
        "`from mega_core import _C` gives: ImportError: cannot import name '_C'",
        "ImportError: cannot import name '_C'\n\nwhen I run from mega_core import _C",
        'File "./mega_core/layers/nms.py", line 3, in <module>\n    from mega_core import _C\n'
        "ImportError: cannot import name '_C'",
        'File "/x/lib/python3.7/site-packages/mega_core/layers/nms.py", line 3, in <module>\n'
        "    from .. import _C\nImportError: cannot import name '_C'",
        "cannot import name '_C' from 'mega_core'",
        "ImportError: cannot import name '_C' from partially initialized module 'mega_core' "
        "(most likely due to a circular import)",
    ],
)
def test_the_import_line_names_the_package_whatever_surrounds_it(text: str) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == ("FA880", "mega-core")
    assert "mega_core/_C*" in answer.help[0]
    assert "--no-build-isolation" in answer.help[-1] and "CUDA_HOME" in answer.help[1]


def test_the_command_finds_a_module_of_another_python_in_the_working_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "mega_core").mkdir()
    (tmp_path / "mega_core" / "_C.cpython-36m-x86_64-linux-gnu.so").touch()
    command = first("cannot import name '_C' from 'mega_core'").help[0]
    command = command.replace("python ", f"{sys.executable} ", 1)
    shown = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "mega_core/_C.cpython-36m-x86_64-linux-gnu.so" in shown.stdout


WINDOWS = (
    '  File "D:\\envs\\m\\lib\\site-packages\\causal_conv1d\\causal_conv1d_interface.py", line 7\n'
    "    import causal_conv1d_cuda\nModuleNotFoundError: No module named 'causal_conv1d_cuda'"
)


def test_on_windows_the_file_is_a_pyd_and_no_command_begins_with_a_variable() -> None:
    answer = first(WINDOWS)
    assert "causal_conv1d_cuda*.pyd" in answer.help[0] and "*.so" not in answer.help[0]
    assert answer.help[-1].startswith('set "CAUSAL_CONV1D_FORCE_BUILD=TRUE" & ')
    assert "Visual Studio" in " ".join(answer.notes)
    assert not any(" -c '" in command for command in answer.help)


def test_powershell_has_its_own_way_to_set_a_variable() -> None:
    answer = first("PS D:\\x> python app.py\n" + WINDOWS)
    assert answer.help[-1].startswith("$env:CAUSAL_CONV1D_FORCE_BUILD='TRUE'; ")


def test_a_tree_on_windows_is_built_and_no_namesake_is_installed() -> None:
    answer = first(
        "ImportError: cannot import name '_C' from 'groundingdino' "
        "(D:\\GroundingDINO\\groundingdino\\__init__.py)"
    )
    assert 'pushd "D:\\GroundingDINO"' in answer.help
    assert not any(command.endswith("install groundingdino") for command in answer.help)


def test_a_directory_called_src_is_none_with_a_setup() -> None:
    answer = first(
        "ImportError: cannot import name '_C' from 'natten' (/home/u/NATTEN/src/natten/__init__.py)"
    )
    assert any(command.startswith("cd /home/u/NATTEN && ") for command in answer.help)


def test_a_module_of_pillow_is_none_that_needs_cuda() -> None:
    answer = first("ImportError: cannot import name '_imaging' from 'PIL'")
    assert not any("CUDA_HOME" in command for command in answer.help)


def test_a_function_of_bitsandbytes_that_the_cpu_library_lacks_is_no_source_left_out() -> None:
    answer = first("undefined symbol: cget_col_row_stats")
    assert (answer.owner, answer.confidence) == ("bitsandbytes", "medium")
    text = (
        "UserWarning: The installed version of bitsandbytes was compiled without GPU support.\n"
        "undefined symbol: cget_col_row_stats"
    )
    answers = explain([text], sys.executable, {}, where="elsewhere").answers
    assert [one.owner for one in answers] == ["bitsandbytes"]


def test_german_windows_says_that_a_library_is_missing_which_torch_for_the_cpu_lacks() -> None:
    answer = first(
        "ImportError: DLL load failed while importing flash_attn_2_cuda: "
        "Das angegebene Modul wurde nicht gefunden."
    )
    assert "seldom the file itself" in answer.cause and "torch.version.cuda" in answer.help[0]
    assert any("c10_cuda.dll" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("pip install 'git+https://github.com/facebookresearch/detectron2.git'",
         "git+https://github.com/facebookresearch/detectron2.git"),
        ("pip install -r requirements.txt", "-r requirements.txt"),
        ("uv pip install https://github.com/x/y/archive/main.zip",
         "https://github.com/x/y/archive/main.zip"),
        ("pip install .", "."),
    ],
)  # fmt: skip
def test_an_isolated_build_is_repeated_as_it_was_typed(command: str, typed: str) -> None:
    answer = first(f"{command}\nModuleNotFoundError: No module named 'torch'")
    assert answer.code == "FA884" and answer.owner in (None, "detectron2")
    assert any(text.endswith(f"install --no-build-isolation {typed}") for text in answer.help)


@pytest.mark.parametrize(
    "line",
    ["No module named torch even though I installed torch already",
     "No module named 'torch' but torch is already installed",
     "No module named 'torch', although I have PyTorch installed"],
)  # fmt: skip
def test_torch_is_not_installed_again_where_the_text_says_that_it_is(line: str) -> None:
    answer = first(f"ModuleNotFoundError: {line}")
    assert answer.confidence == "medium" and "of its own that has no torch" in answer.cause
    assert not any(text.endswith("install torch") for text in answer.help)


@pytest.mark.parametrize("module", ["nunchaku._C", "nunchaku"])
def test_a_namesake_on_the_package_index_is_not_fetched_again(module: str) -> None:
    answer = first(f"ModuleNotFoundError: No module named '{module}'")
    assert not any(re.search(r" install .*\bnunchaku$", t) for t in answer.help)
    assert any("github.com/nunchaku-ai" in note for note in answer.notes)


def test_an_operator_of_the_flash_part_of_xformers_is_of_that_part_alone() -> None:
    line = "RuntimeError: No such operator xformers_flash::flash_fwd - did you forget to build"
    answer = first(f"{line} xformers with `python setup.py develop`?")
    assert answer.code == "FA207" and "another torch" not in answer.cause
    assert not any("--upgrade" in text for text in answer.help)


@pytest.mark.parametrize(
    ("file", "cached"),
    [
        ("/mnt/cache/u/conda/envs/s/lib/python3.9/site-packages/k2/lib64/libk2fsa.so", False),
        ("/u/.cache/uv/archive-v0/H/torch_x/_x.so", False),
        ("/u/.cache/keops2.1/abc/x.so", True),
    ],
)
def test_an_installed_file_is_no_file_of_a_cache(file: str, cached: bool) -> None:
    line = "/lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by"
    answer = first(f"ImportError: {line} {file})")
    assert any("its directory in the cache" in note for note in answer.notes) == cached


def test_a_broken_library_in_a_directory_of_a_build_is_built_again() -> None:
    answer = first("OSError: /vagrant/build/dll/libs2v.so: invalid ELF header")
    assert "rm /vagrant/build/dll/libs2v.so" in answer.help
    cached = first("OSError: /r/.cache/bitblas_0.1.0.post1/x/wrapper.so: invalid ELF header")
    assert "rm -r /r/.cache/bitblas_0.1.0.post1" in cached.help
