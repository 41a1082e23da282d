"""Libraries of NVIDIA and of Intel: what a remedy can do where the text is from."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes, *answer.help))


ITT = "{0}/site-packages/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent"


@pytest.mark.parametrize(
    "prefix", ["/srv/job/.venv/lib/python3.10", "/home/u/.local/lib/python3.11", "/usr/lib/python3"]
)
def test_conda_brings_no_mkl_into_an_environment_of_pip(bare: str, prefix: str) -> None:
    answer = first(f"ImportError: {ITT.format(prefix)}", bare)
    assert answer.owner == "mkl" and answer.direction == "file-older"
    assert any('"mkl==2024.0.0"' in text for text in answer.help)
    assert "conda" not in said(answer)


def test_an_environment_of_conda_gets_its_mkl_from_conda(bare: str) -> None:
    answer = first(f"ImportError: {ITT.format('/opt/miniforge3/envs/a/lib/python3.8')}", bare)
    assert answer.help[0] == 'conda install "mkl<2024.1"'
    assert not any("pip install" in text for text in answer.help)
