"""Modules without their start function, and packages that a text installs from a directory."""

from __future__ import annotations

import pytest
from support.asking import first

from fa_forensics.facts.paste import read_paste

NO_INIT = "ImportError: dynamic module does not define module export function (PyInit_{})\n"


def local(text: str) -> dict[str, str]:
    return {k: v for k, v in read_paste(text).versions.items() if k.startswith("local:")}


@pytest.mark.parametrize(
    ("text", "name", "folder"),
    [
        ("pip install -e ./gsplat", "gsplat", "-e ./gsplat"),
        ("pip install submodules/diff-gaussian-rasterization", "diff-gaussian-rasterization",
         "submodules/diff-gaussian-rasterization"),
        ("pip install -r requirements.txt ./my_ops/", "my-ops", "./my_ops/"),
        ("cd kernels/selective_scan && pip install .", "selective-scan", "kernels/selective_scan"),
        ("$ cd DCNv2\n$ python setup.py build develop", "dcnv2", "-e DCNv2"),
    ],
)  # fmt: skip
def test_directories_that_are_installed_from_are_read(text: str, name: str, folder: str) -> None:
    assert local(text) == {f"local:{name}": folder}


@pytest.mark.parametrize(
    "text",
    [
        "pip install gsplat",
        "pip install -r env/requirements.txt",
        "pip install ./flash_attn-2.7.3-cp311-cp311-linux_x86_64.whl",
        "pip install git+https://github.com/x/gsplat.git",
        "pip install torch --index-url https://example.org/whl/cu118",
        "pip install -e .",
    ],
)
def test_what_is_no_directory_is_not_one(text: str) -> None:
    assert local(text) == {}


def test_a_projects_own_copy_is_not_replaced_by_an_indexs() -> None:
    answer = first(NO_INIT.format("gsplat_cuda") + "pip install -e ./gsplat")
    helps = "\n".join(answer.help)
    assert "-e ./gsplat" in helps and "github.com" not in helps and "--upgrade" not in helps
    assert "rm -rf ~/.cache/torch_extensions/*/gsplat_cuda" in helps  # what load() names it


def test_a_name_that_many_projects_have_is_looked_up_where_python_finds_it() -> None:
    step = '  File "/home/u/model/DCNv2/dcn_v2.py", line 13, in <module>\n    import _ext\n'
    answer = first(step + NO_INIT.format("_ext"))
    assert answer.owner == "DCNv2" and 'find_spec("_ext")' in answer.help[0]
    assert any(text.startswith("cd /home/u/model/DCNv2 && rm -rf build") for text in answer.help)


def test_on_windows_a_module_is_linked_without_its_start_function() -> None:
    """MSVC exports what it is told to; nm and .so are of no use there."""
    answer = first(
        "    import flash_attn_3._C\n" + NO_INIT.format("_C") + "a wheel for Windows, Python 3.12"
    )
    said = "\n".join((answer.cause, *answer.help, *answer.notes))
    assert "export" in answer.cause and ".pyd" in said and "EXPORT:PyInit__C" in said
    assert "nm -D" not in said and "--upgrade" not in said and ".so" not in answer.help[0]
