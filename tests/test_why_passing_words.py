"""A package that is only spoken of is not said to be the one that failed."""

from __future__ import annotations

import pytest
from support.asking import first, said

MISSING = "{}\nImportError: {}: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("sentence", "library"),
    [
        ("We also use faster-whisper elsewhere.", "libcublas.so.12"),
        ("faster-whisper runs in another container.", "libcudart.so.11.0"),
        ("My colleague uses onnxruntime in his app.", "libcudart.so.12"),
    ],
)
def test_a_passing_word_is_no_owner_of_what_misses_a_library(sentence: str, library: str) -> None:
    answer = first(MISSING.format(sentence, library))
    assert "is not told" in answer.cause and answer.confidence != "high"


def test_a_step_in_the_package_is_an_owner() -> None:
    step = '  File "/x/site-packages/onnxruntime/capi/_pybind_state.py", line 32, in <module>'
    assert "is not told" not in first(MISSING.format(step, "libcudart.so.12")).cause


WARNING = "UserWarning: Failed to load custom C++ ops. Running on CPU mode Only!"


@pytest.mark.parametrize("text", [WARNING, f"/x/mmdet/ops/ms_deform_attn.py:31: {WARNING}",
                                  f"We use detectron2 elsewhere.\n{WARNING}"])  # fmt: skip
def test_a_line_that_several_projects_print_names_none(text: str) -> None:
    answer = first(text)
    assert answer.owner is None and "github.com" not in said(answer)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (f"/x/groundingdino/ms_deform_attn.py:31: {WARNING}", "groundingdino"),
        (f"I run Grounding DINO 0.1.0.\n{WARNING}", "groundingdino"),
        (f"from groundingdino.util.inference import load_model\n{WARNING}", "groundingdino"),
        (f"/x/detectron2/layers/attn.py:31: {WARNING}", "detectron2"),
    ],
)
def test_the_project_whose_sign_stands_there_is_named(text: str, owner: str) -> None:
    assert first(text).owner == owner


NOT_DEFINED = "NameError: name '_C' is not defined"


def test_what_is_to_be_filled_in_is_told() -> None:
    for text in (NOT_DEFINED, f'  File "/u/GLIP/layers/nms.py", line 5, in f\n{NOT_DEFINED}'):
        answer = first(text)
        assert answer.owner is None and "PACKAGE" not in said(answer)
        assert any(note.startswith("NAME is to be filled in") for note in answer.notes)


@pytest.mark.parametrize(
    "line",
    ["import detectron2", "from detectron2.layers import nms", ">>> from detectron2 import layers"],
)
def test_an_import_line_tells_whose_module_is_not_defined(line: str) -> None:
    answer = first(f"{line}\n{NOT_DEFINED}")
    assert answer.owner == "detectron2" and "from detectron2 import _C" in answer.help[0]


def test_two_import_lines_tell_nobody() -> None:
    assert first(f"import detectron2\nimport groundingdino\n{NOT_DEFINED}").owner is None
