"""A wheel on the package index, judged at its address: the very file that a husk was made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.inspecting import document_of
from support.inspecting import validator as schema
from support.material import husk_file, stub

from fa_forensics.wheels import WheelOptions, wheels
from fa_forensics.wheels.situation import Asked

pytestmark = pytest.mark.online

HUSK = "vllm_flash_attn-2.6.2:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def test_a_wheel_at_its_address_is_read_as_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypi_simple")
    from fa_forensics.atlas.build.index import list_wheels
    from fa_forensics.render.json import dumps
    from fa_forensics.render.json_wheels import wheels_document

    name = "vllm_flash_attn-2.6.2-cp311-cp311-manylinux1_x86_64.whl"
    (url,) = [w.url for w in list_wheels("vllm-flash-attn", "x86_64") if w.filename == name]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    python = stub("2.4.0+cu121").python
    report = wheels([url], WheelOptions(Asked(python=str(python))), {})
    document = json.loads(dumps(wheels_document(report)))
    schema().validate(document)
    (target,) = document["wheels"][0]["targets"]
    (here,) = document_of(husk_file(HUSK), python)["targets"]
    for key in ("verdict", "cxx11_abi", "links_with", "missing", "undefined"):
        assert target[key] == here[key], key
    assert target["elf"]["build_id"] == here["elf"]["build_id"]
    assert list(tmp_path.iterdir()) == []
