"""A failing file that is on this machine is asked for its other names of torch."""

from __future__ import annotations

import shutil
from pathlib import Path

from fa_forensics.report_why import Answer
from fa_forensics.why import explain
from fixtures.husk import unpack

#: vllm-flash-attn 2.6.2 requires torch==2.4.0 by its METADATA; the one name is of 2.3.0 on.
HUSK = "vllm_flash_attn-2.6.2"
MODULE = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
NAME = "_ZN3c104cuda9SetDeviceEa"


def asked(path: Path | str) -> Answer:
    text = f"ImportError: {path}: undefined symbol: {NAME}\n\ntorch 2.2.0+cu121"
    return explain([text], None, {}).answers[0]


def torches(answer: Answer) -> list[str]:
    return [text.rpartition('"torch==')[2].rstrip('"') for text in answer.help if "torch==" in text]


def test_the_torch_that_is_typed_has_all_names_of_the_file(tmp_path: Path) -> None:
    answer = asked(Path(unpack(HUSK, tmp_path)) / MODULE)
    assert torches(answer) == ["2.4.0"] and answer.interval.startswith("2.3.0")
    assert any("The file is on this machine" in note for note in answer.notes)


def test_a_file_that_is_not_here_is_judged_by_its_one_name(tmp_path: Path) -> None:
    answer = asked(tmp_path / MODULE)
    assert torches(answer) == ["2.3.0"]


def test_another_file_under_that_path_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / MODULE
    shutil.copy("/bin/true", path)
    assert torches(asked(path)) == ["2.3.0"]
    path.write_bytes(b"no ELF file")
    assert torches(asked(path)) == ["2.3.0"]
