"""``why`` on wheels that pip refuses by their names, and on modules under another Python's tag."""

from __future__ import annotations

import pytest
from support.asking import first, said

REFUSED = "is not a supported wheel on this platform."


def test_a_converted_eggs_name_is_wrong_for_every_python() -> None:
    answer = first(f"ERROR: flash_attn-2.6.3-py311-cp311-win_amd64.whl {REFUSED}",
                   "torch 2.4.1, Python 3.11, Windows 11")  # fmt: skip
    assert answer.kind == "damaged-file"
    assert "cp311-cp311-win_amd64.whl" in answer.cause and "no Python accepts" in answer.cause
    assert any("pip wheel " in text for text in answer.help)
    assert "wheel tags --python-tag cp311" in said(answer)


def test_the_same_file_for_the_python_that_runs_is_typed() -> None:
    name = "flash_attn-2.7.2.post1+cu12torch2.5cxx11abiFALSE-{0}-{0}-linux_x86_64.whl"
    answer = first(f"ERROR: {name.format('cp310')} {REFUSED}", "Python 3.12, torch 2.5.1")
    assert name.format("cp312") in answer.help[0] and "--no-deps" in answer.help[0]
    other = first(f"ERROR: {name.format('cp310')} {REFUSED}", "Python 3.12, torch 2.6.0")
    assert "torch2.6" in other.help[0] and "cp312" in other.help[0]


def test_a_name_that_fits_is_another_pips() -> None:
    for system, told in (("linux_x86_64", ""), ("win_amd64", ", Windows 11")):
        answer = first(f"ERROR: spam-1.0-cp312-cp312-{system}.whl {REFUSED}", f"Python 3.12{told}")
        assert "another Python" in answer.cause and "here is Linux" not in answer.cause
        assert any("pip --version" in text for text in answer.help)


@pytest.mark.parametrize(
    ("file", "around"),
    [
        ("more_ops.cpython-310-aarch64-linux-gnu.so",
         "['.cpython-312-aarch64-linux-gnu.so', '.abi3.so', '.so']"),
        ("more_ops.cpython-310-x86_64-linux-gnu.so", "Python 3.12"),
        ("more_ops.cp310-win_amd64.pyd", "Python 3.12, Windows 11"),
    ],
)  # fmt: skip
def test_a_module_under_another_pythons_tag_is_not_absent(file: str, around: str) -> None:
    answer = first("ModuleNotFoundError: No module named 'spam.more_ops'", around, file)
    assert answer.code == "FA401" and "Python 3.10" in answer.cause and "3.12" in answer.cause


def test_an_abi3_wheel_can_hold_a_module_without_the_stable_interface() -> None:
    answer = first(
        "ModuleNotFoundError: No module named 'sgl_kernel.infllm_ops'",
        "['.cpython-312-aarch64-linux-gnu.so', '.abi3.so', '.so']",
        "infllm_ops.cpython-310-aarch64-linux-gnu.so    <-- not abi3",
    )
    assert answer.owner == "sgl-kernel" and answer.confidence == "high"
    assert "each file in it has a tag" in said(answer)


def test_the_import_that_failed_is_the_one_that_is_tried() -> None:
    answer = first("----> 1 import bindings", "",
                   "ImportError: ...libtorch_python.so: undefined symbol: _PyCode_SetExtra",
                   "Python 3.12")  # fmt: skip
    assert answer.help[0].endswith("-c 'import torch; import bindings'")
    assert "cmake_prefix_path" in said(answer)


def test_an_extension_alone_in_site_packages_is_tried_behind_torch() -> None:
    answer = first(
        "ImportError: /u/envs/e/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required "
        "by /u/envs/e/lib/python3.11/site-packages/SpamOps.cpython-311-x86_64-linux-gnu.so)"
    )
    assert any(text.endswith("'import torch; import SpamOps'") for text in answer.help)
