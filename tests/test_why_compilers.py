"""Files whose build is told by the text or by the name: another compiler, no link to torch."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

TN = (
    "_ZNK2at10TensorBase14const_data_ptrI{0}TnNSt9enable_ifIXntsr3stdE10is_const_vIT_EEiE4typeE"
    "Li0EEEPKS3_v"
)


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


@pytest.mark.parametrize(("letter", "type_name"), [("l", "long"), ("f", "float"), ("b", "bool")])
def test_a_name_that_a_newer_clang_wrote(letter: str, type_name: str, bare: str) -> None:
    # nm -D of torch 2.4.0's libtorch_cpu.so: _ZNK2at10TensorBase14const_data_ptrIlLi0EEEPKT_v.
    text = f"flashinfer/kernels.abi3.so: undefined symbol: {TN.format(letter)} (fatal)"
    answer = first(text, bare)
    assert answer.owner == "torch/torch_cpu" and answer.direction == "none"
    assert "clang 18" in answer.cause and "damaged" not in answer.cause
    assert f"const_data_ptr<{type_name}, 0>" in answer.cause
    assert answer.overloads[0].symbol == f"_ZNK2at10TensorBase14const_data_ptrI{letter}Li0EEEPKT_v"
    assert any("CXX=g++" in text for text in answer.help)
    assert "-fclang-abi-compat=17" in " ".join(answer.notes)


PLAIN = """undefined symbol: _ZTIN5torch8autograd8Variable4ImplE
ext_modules = [{0}
        name='Aten_Example',
        sources=['Aten_Example.cpp'])]
/usr/lib/python3.6/x.py"""


def test_a_plain_extension_lists_none_of_torchs_libraries(bare: str) -> None:
    answer = first(PLAIN.format("setuptools.Extension("), bare)
    assert answer.code == "FA210" and answer.owner == "torch/torch_cpu"
    assert answer.help[0].endswith("import torch; import Aten_Example'")
    assert not any('"torch==' in text for text in answer.help)
    assert first(PLAIN.format("CppExtension("), bare).code != "FA210"


def test_a_library_of_operators_is_no_module_of_python(bare: str) -> None:
    text = (
        '    torch.ops.load_library("build/libadd2.so")\n'
        "OSError: /home/u/nn/build/libadd2.so: undefined symbol: THPVariableClass\ntorch 1.7"
    )
    answer = first(text, bare)
    assert answer.owner == "torch/torch_python" and answer.code == "FA210"
    assert not any("import libadd2" in text for text in answer.help)
    assert any("load_library" in text for text in answer.help)
    assert "torch/script.h" in " ".join(answer.notes)


def test_the_index_of_torchs_own_cuda_is_in_the_command(bare: str) -> None:
    # PyTorch's RELEASE.md: 2.4 is for CUDA 11.8, 12.1 and 12.4; the wheel of PyPI is for 12.1.
    text = (
        "ImportError: /e/lib/python3.10/site-packages/kaolin/_C.so: undefined symbol: "
        "_ZN3c105ErrorC2ENS_14SourceLocationESs\ntorch 2.4.0, kaolin (wheel of torch-2.4.0_cu118)"
    )
    answer = first(text, bare)
    found = [text for text in answer.help if '"torch==2.4.0"' in text]
    assert found and all(text.endswith("/whl/cu118") for text in found)
    assert "cu118" in " ".join(answer.notes)


def test_gaudis_torch_is_a_build_of_its_own(bare: str) -> None:
    text = (
        "OSError: /usr/local/lib/python3.10/dist-packages/torch_cluster/_version_cpu.so: undefined "
        "symbol: _ZN5torch3jit17parseSchemaOrNameERKSs\n{0}, torch 2.1.2"
    )
    told = first(text.format("Gaudi HPU (Habana)"), bare)
    assert told.kind == "cxx11-abi" and "Gaudi" in told.cause
    assert not any('"torch==' in text for text in told.help)
    alone = first(text.format("CPU"), bare)
    assert "+cu" not in " ".join([alone.cause, *alone.notes])
