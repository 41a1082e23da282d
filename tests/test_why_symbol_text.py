"""``why`` on symbols as people paste them: of early releases, misspelt, cut off, from a Mac.

What each name is was read with ``nm -D`` from torch's wheels (on macOS from the export tables
of libtorch_cpu.dylib), not from this program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.asking import first, first_here, said

from fa_forensics.facts.paste import read_paste

TYPE_META = "_ZN6caffe28TypeMeta21_typeMetaDataInstanceI"
HALF = TYPE_META + "N3c107complexINS2_4HalfEEEEEPKNS_6detail12TypeMetaDataEv"
CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#: (symbol, the text's torch, direction, release that the answer names)
DIRECTIONS = [
    (HALF, "1.5.1", "file-newer", "1.6.0"),
    (HALF, "1.8.1", "file-older", "1.7.1"),
    ("_ZN3c1012CUDATensorIdEv", "1.4.0", "file-older", "1.2.0"),
    ("_ZNK2at10TensorBase8data_ptrIfEEPT_v", "1.9.1+cu111", "file-newer", "1.10.0"),
    ("_ZNK3c104Type14isSubtypeOfExtERKSt10shared_ptrIS0_EPSo", "1.7.1", "file-newer", "1.8.0"),
    ("_ZNK3c104Type14isSubtypeOfExtERKSt10shared_ptrIS0_EPSo", "1.11.0", "file-older", "1.10.2"),
]


def told(symbol: str, torch: str = "", folder: str = "/x/site-packages/ext_cuda.so") -> str:
    return f"ImportError: {folder}: undefined symbol: {symbol}\n" + (
        f"PyTorch version: {torch}\n" if torch else ""
    )


@pytest.mark.parametrize(("symbol", "torch", "direction", "release"), DIRECTIONS)
def test_early_releases_tell_the_direction(
    bare: str, symbol: str, torch: str, direction: str, release: str
) -> None:
    answer = first_here(told(symbol, torch), bare)
    assert answer.direction == direction and release in answer.cause
    assert f"torch=={release}" in "\n".join(answer.help)


def test_an_early_torch_of_the_right_release_and_the_other_flavour(bare: str) -> None:
    """torch 1.3 exports c10::Error(SourceLocation, std::string const&), pre-cxx11."""
    answer = first_here(told(f"_ZN3c105ErrorC1ENS_14SourceLocationERK{CXX11}", "1.3.0"), bare)
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")


def test_a_gap_in_the_life_of_a_name_is_no_floor(bare: str) -> None:
    """TensorImpl::compute_contiguous() is in 1.1 to 1.13 and again since 2.8."""
    text = told("_ZNK3c1010TensorImpl18compute_contiguousEv")
    answer = first_here(text.replace("/x/", "/x/python3.10/"), bare)
    assert answer.direction == "unknown" and "2.0.0 \N{EN DASH} 2.7.1" in answer.cause
    assert not any("torch>=" in command for command in answer.help)


def test_the_side_with_far_more_releases_is_the_likelier(bare: str) -> None:
    text = told("_ZN3c104cuda9SetDeviceEa", "", "/v/lib/python3.12/site-packages/ext_cuda.so")
    answer = first_here(text, bare)
    assert (answer.direction, answer.confidence) == ("file-older", "medium")
    assert "of the older releases" in answer.cause


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("_ZNK2at10TensorBase8dataptrIdEEPT_v", "_ZNK2at10TensorBase8data_ptrIdEEPT_v"),
        ("_ZN3c1021throwNulDataPtrErrorEv", "_ZN3c1021throwNullDataPtrErrorEv"),
        (
            "_ZN3c105ErrorC2ENS_14SoureLocationESs",
            "_ZN3c105ErrorC2ENS_14SourceLocationESs",
        ),
    ],
)
def test_a_misspelt_name_is_read_as_the_one_that_was_meant(
    bare: str, text: str, meant: str
) -> None:
    answer = first_here(told(text), bare)
    assert answer.symbol == meant and answer.confidence == "medium"
    assert any("misspelt" in note for note in answer.notes)


def test_a_name_that_is_no_torch_name_is_not_bent_into_one(bare: str) -> None:
    answer = first_here(told("_ZN7mystuff9computeItEEvPKT"), bare)
    assert not (answer.owner or "").startswith("torch") or answer.confidence == "low"


def test_a_name_without_its_parameters_is_taken_for_cut_off(bare: str) -> None:
    answer = first_here(told("_ZN5torch4lazy13MetricFnValueB5cxx11E"), bare)
    assert (answer.kind, answer.direction) == ("cxx11-abi", "other-flavour")
    assert any("cut off" in note for note in answer.notes)


def mac(symbol: str) -> str:
    return (
        "ImportError: dlopen(/v/lib/python3.9/site-packages/ext/_C.cpython-39-darwin.so, 0x0002): "
        f"symbol not found in flat namespace {symbol}\n"
    )


def test_a_file_that_gcc_compiled_on_a_mac_fits_no_torch(bare: str) -> None:
    name = (
        "'__ZN3c1010TensorImpl17set_autograd_metaESt10unique_ptrINS_21AutogradMetaInterfaceE"
        "St14default_deleteIS2_EE'"
    )
    answer = first_here(mac(name), bare)
    assert "clang" in answer.cause and answer.exported_by == ()
    assert not any("torch=" in command or "torch>" in command for command in answer.help)


def test_long_long_of_macos_is_long_of_linux(bare: str) -> None:
    name = (
        "'__ZN2at4_ops19empty_memory_format4callEN3c108ArrayRefIxEENS2_8optionalINS2_10ScalarType"
        "EEENS5_INS2_6LayoutEEENS5_INS2_6DeviceEEENS5_IbEENS5_INS2_12MemoryFormatEEE'"
    )
    answer = first_here(mac(name).replace("python3.9", "python3.10").replace("-39-", "-310-"), bare)
    assert answer.exported_by[-1] == "1.12.1" and answer.direction == "file-older"


@pytest.mark.parametrize(
    "name", ["'__ZN2at3mps9MPSStream6commitEb'", "N2at3mps9MPSStream6commitEb)"]
)
def test_names_of_apples_gpus_have_the_releases_of_macos(bare: str, name: str) -> None:
    answer = first_here(mac(name), bare)
    assert answer.symbol == "_ZN2at3mps9MPSStream6commitEb"
    assert "macOS alone" in answer.cause and answer.exported_by[-1] == "2.0.1"
    known = first_here(mac(name) + "PyTorch version: 2.3.1\n", bare)
    assert known.direction == "file-older"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- **PyTorch version:** 2.5.1", "2.5.1"),
        ("Torch: 2.0.1 + cu11.8", "2.0.1+cu118"),
        ("x-0.1.8+cu118-cp310-cp310-linux_x86_64.whl\ntorch 2.0.1", "2.0.1"),
        ("with TORCH_VERSION of 2.9.0, it fails", "2.9.0"),
    ],
)
def test_more_ways_to_write_a_version(text: str, wanted: str) -> None:
    versions: Mapping[str, str] = read_paste(text).versions
    assert versions["torch"] == wanted


def test_a_wheel_for_another_build_of_the_same_release(bare: str) -> None:
    """PyTorch's 2.6.0 for CUDA 12.6 is cxx11, that of PyPI is not (release notes of 2.6)."""
    text = "pip install natten==0.17.5+torch260cu126\n" + told(
        f"_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RK{CXX11}", "2.6.0",
        "/v/site-packages/natten/libnatten.so",
    )  # fmt: skip
    answer = first_here(text, bare)
    assert answer.direction == "other-flavour"
    assert any("CUDA 12.6" in note and "cxx11" in note for note in answer.notes)
    of_torch = [command for command in answer.help if '"torch==' in command]
    assert all(command.endswith("/whl/cu126") for command in of_torch)


def test_the_torch_to_install_is_the_one_that_the_package_was_built_for(bare: str) -> None:
    text = "torchvision 0.13.0\n" + told(
        "_ZN3c107Warning4warnERKNS_14SourceLocationERKSsb",
        "2.0.1",
        "/v/site-packages/torchvision/_C.so",
    )
    assert "torch==1.12.0" in "\n".join(first_here(text, bare).help)


def test_a_newer_file_from_source_names_the_isolated_build(bare: str) -> None:
    answer = first_here(told("_ZN3c1021throwNullDataPtrErrorEv", "2.3.0"), bare)
    assert answer.direction == "file-newer"
    assert any("--no-build-isolation" in note for note in answer.notes)
    cached = told(
        "_ZN3c1021throwNullDataPtrErrorEv", "2.3.0",
        "/r/.cache/torch_extensions/py310_cu117/fused_adam/fused_adam.so",
    )  # fmt: skip
    assert not any("--no-build-isolation" in note for note in first_here(cached, bare).notes)


def test_the_family_of_torch_gets_the_release_that_belongs_to_it(bare: str) -> None:
    text = told("_ZN3c1021throwNullDataPtrErrorEv", "2.3.1", "/v/site-packages/torchvision/_C.so")
    assert "torchvision==0.18.1" in "\n".join(first_here(text, bare).help)


def test_the_cpu_library_of_bitsandbytes_lacks_no_source_file(bare: str) -> None:
    answer = first_here(
        told("cadam32bit_grad_fp32", "", "/v/site-packages/bitsandbytes/libbitsandbytes_cpu.so"),
        bare,
    )
    assert "CUDA set-up failed" in answer.cause


def test_the_table_of_apples_names_is_in_order() -> None:
    import json

    path = Path(__file__).parents[1] / "fa_forensics/data/mps_names.json"
    table = json.loads(path.read_text())
    known = table["releases"]
    assert known[0] == "1.12.0" and len(set(known)) == len(known)
    for row in table["names"]:
        assert all(known.index(a) <= known.index(b) for a, b in row["spans"]) and row["spans"]


def test_a_file_whose_name_was_expected_in_libtorch_python_lists_it() -> None:
    """pytorch/rl#1308: dyld names the library that the file takes each name from."""
    symbol = (
        "__ZN8pybind116detail11type_casterIN2at6TensorEvE4castERKS3_NS_19return_value_policyENS_6"
        "handleE"
    )
    lib = "/x/lib/python3.9/site-packages"
    lines = [
        f"ImportError: dlopen({lib}/torchrl/_torchrl.so, 0x0002): Symbol not found: {symbol}",
        f"  Referenced from: {lib}/torchrl/_torchrl.so",
    ]
    there = first(*lines, f"  Expected in: {lib}/torch/lib/libtorch_python.dylib")
    flat = first(*lines, "  Expected in: flat namespace")
    assert "was linked without" not in said(there) and there.confidence == "high"
    assert "was linked without" in said(flat)
