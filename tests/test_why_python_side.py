"""``why`` on torch without its _C, PyG's libraries, types of another table, names of Python 2."""

from __future__ import annotations

import pytest
from support.asking import first, said

FAILED = "ImportError: Failed to load PyTorch C extensions:\n    It appears that PyTorch has loaded"
STEP = '  File "{}", line 990, in <module>\n    raise ImportError(\n'
NONE = "AttributeError: 'NoneType' object has no attribute 'origin'"


def test_the_source_tree_of_torch_is_left_by_another_directory() -> None:
    answer = first(STEP.format("/home/u/pytorch/torch/__init__.py") + FAILED)
    assert (answer.code, answer.owner, answer.confidence) == ("FA880", "torch", "high")
    assert answer.help[0].startswith("cd / && ") and "/home/u/pytorch" in answer.cause


def test_an_installed_torch_without_its_module_is_no_source_tree() -> None:
    path = "/home/u/.venv/lib/python3.11/site-packages/torch/__init__.py"
    answer = first(STEP.format(path) + FAILED)
    assert (answer.code, answer.confidence) == ("FA880", "medium")
    assert "another Python" in answer.cause and "setup.py develop" not in said(answer)


@pytest.mark.parametrize(
    ("told", "tag"),
    [("$ python3.13t main.py\n", "cp313t"), ("Python 3.14t (free-threaded)\n", "cp314t"),
     ("built with --disable-gil, Python 3.13.1\n", "cp313t")],
)  # fmt: skip
def test_a_python_without_the_gil_needs_a_torch_of_its_tag(told: str, tag: str) -> None:
    path = "/usr/lib/python3/site-packages/torch/__init__.py"
    answer = first(told + STEP.format(path) + FAILED)
    assert (answer.kind, answer.code, answer.owner) == ("python-abi", "FA401", "python")
    assert f"tag {tag} alone" in answer.cause


@pytest.mark.parametrize("top", ["torch_sparse", "torch_scatter", "torch_cluster"])
def test_a_search_that_ends_in_none_is_a_library_that_was_not_built(top: str) -> None:
    step = f'File "/x/dist-packages/{top}/__init__.py", line 15, in <module>\n'
    text = f"{step}    f'{{library}}_{{suffix}}', [osp.dirname(__file__)]).origin)\n{NONE}"
    answer = first(f"{text}\ntorch==1.9.0+cu102")
    assert (answer.code, answer.owner) == ("FA880", top.replace("_", "-"))
    assert "-f https://data.pyg.org/whl/torch-1.9.0+cu102.html" in answer.help[1]
    again = first(f"ImportError: Could not find module '_version_cpu' in /x/{top}\ntorch 1.9.0")
    assert (again.code, again.owner) == ("FA880", top.replace("_", "-"))


def test_a_module_that_another_search_does_not_find_is_named() -> None:
    text = f'File "setup.py", line 12, in <module>\n    find_spec("torch").origin\n{NONE}'
    answer = first(text)
    assert (answer.code, answer.owner) == ("FA880", "torch")
    assert "--no-build-isolation" in answer.notes[0]


def test_torchs_classes_by_their_names_in_cpp_are_of_another_table() -> None:
    text = (
        "TypeError: f(): incompatible function arguments. The following argument types are "
        "supported:\n    1. (arg0: {}, arg1: str) -> None"
    )
    assert first(text.format("torch::jit::Graph")).code == "FA893"
    assert first(text.format("c10d::ProcessGroup")).code == "FA893"
    assert first(text.format("at::Tensor")).code == "FA882"


@pytest.mark.parametrize(
    "lines",
    [
        "Successfully installed groundingdino-0.1.0\n{}",
        "/x/groundingdino/models/GroundingDINO/ms_deform_attn.py:31: UserWarning: Failed to load "
        "custom C++ ops. Running on CPU mode Only!\n{}",
        "{}\n/x/GroundingDINO/ms_deform_attn.py:31: UserWarning: Failed to load custom C++ ops.",
        "from groundingdino.util.inference import load_model\n{}",
    ],
)
def test_the_owner_of_a_name_that_is_not_defined_stands_beside_it(lines: str) -> None:
    answer = first(lines.format("NameError: name '_C' is not defined"))
    assert answer.owner == "groundingdino"
    assert "from groundingdino import _C" in answer.help[0]
    assert "PACKAGE" not in said(answer)


def test_what_was_installed_before_is_not_any_package() -> None:
    answer = first("Successfully installed numpy-1.26.4\nNameError: name '_C' is not defined")
    assert answer.owner is None


def test_a_torch_with_names_of_python_2_is_built_from_the_beginning() -> None:
    path = "/home/u/.local/lib/python3.6/site-packages/torch/lib/libtorch_python.so"
    answer = first(f"ImportError: {path}: undefined symbol: _Py_ZeroStruct")
    assert "which Python 3.6 lacks" in answer.cause
    assert "rm -rf build && python3 setup.py" in answer.help[0]
    assert "LD_LIBRARY_PATH" not in said(answer)
    other = first("ImportError: /x/python3.6/site-packages/m.so: undefined symbol: _Py_ZeroStruct")
    assert "pytorch" not in said(other)


def test_wide_characters_are_a_matter_of_python_2_alone() -> None:
    path = "/home/u/.local/lib/python2.7/site-packages/torch/_C.so"
    answer = first(f"ImportError: {path}: undefined symbol: PyUnicodeUCS4_AsUTF8String")
    assert "3.3 or later" not in answer.cause
    assert any("from source" in note for note in answer.notes)


def test_a_stray_library_of_torch_is_told_in_terms_of_python() -> None:
    answer = first(
        "ImportError: /usr/lib/libtorch_cpu.so: undefined symbol: "
        "_ZNK3c1010TensorImpl13is_contiguousENS_12MemoryFormatE"
    )
    assert "import torch" in answer.help[0] and "YOUR_PROGRAM" not in said(answer)
    assert any("That copy is to go" in note for note in answer.notes)


def test_the_directory_that_pip_builds_from_is_what_is_built_again() -> None:
    answer = first(
        "Processing /home/u/diff-gaussian-rasterization\nInstalling build dependencies ... done\n"
        "Getting requirements to build wheel ... error\nModuleNotFoundError: No module named "
        "'torch'"
    )
    assert answer.help[1].endswith("--no-build-isolation /home/u/diff-gaussian-rasterization")
    assert "PACKAGE" not in said(answer)
