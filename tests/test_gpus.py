"""GPUs by name: what NVIDIA's pages list is found under the names that people and drivers use."""

from __future__ import annotations

import pytest

from fa_forensics.errors import UsageError
from fa_forensics.facts.gpus import capability_text, gpu_table, parse_gpu, parse_gpus

#: Names as the driver reports them (nvidia-smi of such machines) or as people type them.
NAMES = [
    ("RTX 4090", "8.9"), ("rtx4090", "8.9"), ("NVIDIA GeForce RTX 4090", "8.9"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9"), ("NVIDIA RTX 6000 Ada Generation", "8.9"),
    ("NVIDIA L40S", "8.9"), ("L4", "8.9"),
    ("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA A100 80GB PCIe", "8.0"), ("A30", "8.0"),
    ("NVIDIA A10G", "8.6"), ("A10", "8.6"), ("RTX 3060", "8.6"), ("NVIDIA RTX A6000", "8.6"),
    ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"), ("30xx", "8.6"),
    ("Tesla V100-SXM2-32GB", "7.0"), ("V100", "7.0"), ("Tesla T4", "7.5"), ("T4", "7.5"),
    ("NVIDIA GeForce RTX 2080 Ti", "7.5"), ("Quadro RTX 6000", "7.5"),
    ("NVIDIA GeForce GTX 1660 SUPER", "7.5"),
    ("NVIDIA H100 80GB HBM3", "9.0"), ("NVIDIA H100 NVL", "9.0"), ("NVIDIA GH200 480GB", "9.0"),
    ("H200", "9.0"), ("H20", "9.0"),
    ("NVIDIA B200", "10.0"), ("GB200", "10.0"), ("B100", "10.0"), ("NVIDIA B300 SXM6 AC", "10.3"),
    ("GB300", "10.3"),
    ("NVIDIA GeForce RTX 5090", "12.0"), ("RTX 5090 D", "12.0"), ("50xx", "12.0"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
    ("NVIDIA GB10", "12.1"), ("DGX Spark", "12.1"),
    ("Orin (nvgpu)", "8.7"), ("Jetson AGX Orin", "8.7"), ("NVIDIA Thor", "11.0"),
    ("Jetson AGX Thor Developer Kit", "11.0"), ("Tesla P100-PCIE-16GB", "6.0"),
    ("GTX 1080 Ti", "6.1"), ("Tesla K80", "3.7"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "capability"), NAMES)
def test_a_gpu_is_found_by_its_name(name: str, capability: str) -> None:
    (gpu,) = parse_gpu(name)
    assert capability_text(gpu.capability) == capability
    assert gpu.name == name


@pytest.mark.parametrize("text", ["sm_89", "8.9", "89", "SM_89", "compute_89", " 8.9 "])
def test_a_capability_is_understood_in_each_spelling(text: str) -> None:
    (gpu,) = parse_gpu(text)
    assert gpu.capability == (8, 9)


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("sm_90a", (9, 0)),
        ("100", (10, 0)),
        ("12.1", (12, 1)),
        ("10.1", (11, 0)),
        ("sm_101", (11, 0)),
    ],
)
def test_suffixes_long_numbers_and_the_old_name_of_thor(
    text: str, capability: tuple[int, int]
) -> None:
    assert parse_gpu(text)[0].capability == capability


def test_all_and_architectures_mean_several() -> None:
    everything = {gpu.capability for gpu in parse_gpu("all")}
    assert {(7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 1)} <= everything
    assert {gpu.capability for gpu in parse_gpu("Ampere")} == {(8, 0), (8, 6), (8, 7)}
    assert {gpu.capability for gpu in parse_gpu("ada")} == {(8, 9)}


def test_several_words_and_commas_name_each_gpu_once() -> None:
    found = parse_gpus(["A100, T4", "A100"])
    assert [gpu.name for gpu in found] == ["A100", "T4"]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("RTX 4091", "GeForce RTX 4090"),
        ("H1000", "H100"),
        ("1080ti", "GeForce GTX 1080 Ti"),
        ("RTX 6000", "RTX 6000 Ada"),  # which of three it is cannot be told
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(text: str, near: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_gpu(text)
    assert text in error.value.message
    assert near in (error.value.hint or "")


@pytest.mark.parametrize("text", ["", "-", "GPU", "x" * 5_000, "sm_", "8.", "(", "NVIDIA", "\x00"])
def test_nonsense_is_refused_with_a_word_on_what_can_be_named(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_gpu(text)
    assert error.value.hint


@pytest.mark.parametrize("text", ["12.5", "1.2", "9.9", "sm_131"])
def test_a_capability_that_no_gpu_has_lists_those_that_exist(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_gpu(text)
    assert "8.9" in (error.value.hint or "")


def test_the_table_is_ordered_and_says_nothing_twice() -> None:
    table = gpu_table()
    capabilities = [family.capability for family in table.families]
    assert capabilities == sorted(set(capabilities))
    assert [f.capability for f in table.families if f.integrated] == [
        (5, 3), (6, 2), (7, 2), (8, 7), (8, 8), (11, 0)
    ]  # fmt: skip
    names = [name.lower() for family in table.families for name in family.gpus]
    assert len(names) == len(set(names))
    for family in table.families:
        for name in family.gpus:
            assert parse_gpu(name)[0].capability == family.capability, name
