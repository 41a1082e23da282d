"""Answers that stay general where the text says less than a rule would need."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

NONE = "AttributeError: 'NoneType' object has no attribute 'origin'"
FOLDER = (
    "ImportError: Failed to load PyTorch C extensions:\n    It appears that PyTorch has loaded the "
    "`torch/_C` folder\n    of the PyTorch repository"
)
NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"


def first(text: str) -> Answer:
    return explain([text], None, {}).answers[0]


def said(answer: Answer) -> str:
    return "\n".join((answer.cause, *answer.help, *answer.notes))


@pytest.mark.parametrize("code", ["", "    o = self.hit.origin + d\n", "    repo.remotes.origin\n"])
def test_an_origin_of_something_else_is_no_search_for_a_module(code: str) -> None:
    step = f'  File "/home/u/game/ray.py", line 12, in cast\n{code}' if code else ""
    assert "looked for" not in first(step + NONE).cause
    searched = first(f'  File "a.py", line 1, in x\n    p = find_spec("torch").origin\n{NONE}')
    assert "looked for torch" in searched.cause


@pytest.mark.parametrize(
    "told",
    [
        "Python 3.13.1 (not free-threaded)",
        "python 3.13 and not 3.13t",
        "I do not use python3.13t",
        "it isn't a free-threaded build",
    ],
)
def test_a_denied_free_threaded_python_is_none(told: str) -> None:
    assert "cp313t" not in said(first(f"{told}\n{FOLDER}"))


@pytest.mark.parametrize(("told", "tag"), [("Python 3.14.0", "cp314t"), ("Windows 11", "")])
def test_a_free_threaded_python_has_the_release_of_the_text(told: str, tag: str) -> None:
    answer = said(first(f"{told}, free-threaded\n{FOLDER}"))
    assert "3.13t" not in answer and "cp313t" not in answer
    assert tag in answer


def test_where_it_was_not_built_is_not_where_it_was_built() -> None:
    text = "It works on A100 but fails on H100"
    answer = said(first(f"I didn't build it on an RTX 3090. {text}: {NO_IMAGE}"))
    assert "RTX 3090" not in answer and "8.6" not in answer
    assert "built or set up on RTX 3090" in said(
        first(f"I built it on an RTX 3090. It fails on H100: {NO_IMAGE}")
    )


def test_a_directory_of_windows_is_given_as_windows_writes_it() -> None:
    text = (
        "Failed to build `foo @ file:///C:/Users/me/my%20foo`\n  RuntimeError: The detected CUDA "
        "version (12.4) mismatches the version that was used to compile PyTorch (11.8)"
    )
    assert r'--no-build-isolation "C:\Users\me\my foo"' in said(first(text))


def test_no_command_removes_the_drivers_library_of_a_host() -> None:
    text = (
        "The container works, but on the host: ImportError: /usr/lib/libcuda.so.1: file too short"
    )
    assert not any("rm " in command for command in first(text).help)


def test_a_class_by_its_name_in_cpp_has_two_causes() -> None:
    text = (
        "TypeError: add(): incompatible function arguments. The following argument types are "
        "supported:\n    1. ({}arg1: torch::jit::Module) -> None"
    )
    answer = first(text.format(""))
    assert answer.code == "FA893" and "imported before torch" in answer.cause
    assert first(text.format("arg0: torch._C.Graph, ")).code != "FA893"
