"""What kernel names say: FlashAttention's template parameters, and other kernels' base names.

The expected words follow from FlashAttention's own sources: the order of the parameters in
flash_fwd_launch_template.h, flash_bwd_launch_template.h and hopper/mainloop_*.hpp.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable

import pytest
from support import oracles
from support.material import require
from test_fatbin_real import real_files

from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin import kernel_names
from fa_forensics.facts.fatbin.kernel_names import (
    base_name,
    flash_head_dims,
    flash_kernel,
    group_kernels,
    kernels_view,
    template_arguments,
)
from fa_forensics.facts.fatbin.kernels import Kernel, KernelInventory, read_kernels
from fa_forensics.facts.fatbin.reader import read_device_code

HALF, BF16 = "N7cutlass6half_tE", "N7cutlass10bfloat16_tE"


def fa2(kernel: str, dim: int, dtype: str, *flags: int) -> str:
    """A mangled name of FlashAttention 2: traits, then one bool for each flag."""
    traits = f"23Flash_fwd_kernel_traitsILi{dim}ELi128ELi64ELi4ELb0ELb0E{dtype}"
    traits += f"19Flash_kernel_traitsILi{dim}ELi128ELi64ELi4ES2_EE"
    switches = "".join(f"Lb{flag}E" for flag in flags)
    return f"_Z{len(kernel)}{kernel}I{traits}{switches}Ev16Flash_fwd_params"


FORWARD = [
    # 2.1: dropout, causal, even_MN, even_K, return_softmax
    ((0, 1, 1, 1, 0), "causal", ()),
    ((1, 0, 1, 1, 1), "", ("dropout", "returned softmax")),
    # 2.3: dropout, causal, local, even_MN, even_K, return_softmax
    ((0, 0, 1, 0, 1, 0), "local", ()),
    # 2.4: dropout, causal, local, alibi, even_MN, even_K, return_softmax
    ((0, 1, 0, 1, 0, 1, 0), "causal", ("alibi",)),
    # 2.6: dropout, causal, local, alibi, even_MN, even_K, softcap, return_softmax
    ((0, 0, 1, 1, 0, 0, 1, 0), "local", ("alibi", "softcap")),
    # a release that is not known here
    ((0, 1, 0, 0, 0, 0, 0, 0, 0), None, ()),
]


@pytest.mark.parametrize(("flags", "mask", "options"), FORWARD)
def test_forward_kernel_of_each_release(
    flags: tuple[int, ...], mask: str | None, options: tuple[str, ...]
) -> None:
    found = flash_kernel(fa2("flash_fwd_kernel", 96, HALF, *flags))
    assert found is not None
    assert (found.generation, found.name, found.direction) == (
        "FA2", "flash_fwd_kernel", "forward",
    )  # fmt: skip
    assert (found.head_dim, found.head_dim_v, found.dtype) == (96, 96, "fp16")
    assert (found.mask, found.options) == (mask, options)


def test_split_kernel_of_2_6() -> None:
    # causal, local, alibi, even_MN, even_K, softcap, split, append_KV
    found = flash_kernel(fa2("flash_fwd_splitkv_kernel", 256, BF16, 1, 0, 0, 0, 1, 0, 1, 1))
    assert found is not None
    assert found.direction == "forward, split KV"
    assert (found.head_dim, found.dtype, found.mask) == (256, "bf16", "causal")
    assert found.options == ("split", "append KV")


def test_kernels_in_a_namespace_are_known_too() -> None:
    name = fa2("flash_fwd_kernel", 64, HALF, 0, 1, 0, 0, 1, 1, 0, 0)
    inside = name.replace("_Z16flash_fwd_kernel", "_ZN13pytorch_flash16flash_fwd_kernel")
    inside = inside.replace("Ev16Flash", "EEv16Flash")
    found = flash_kernel(inside)
    assert found is not None
    assert (found.head_dim, found.mask) == (64, "causal")


def test_backward_kernel_with_its_own_traits() -> None:
    traits = f"23Flash_bwd_kernel_traitsILi128ELi64ELi128ELi8ELi2ELi4ELi2ELb0ELb0E{HALF}"
    traits += "19Flash_kernel_traitsILi128ELi64ELi128ELi8ES2_EE"
    # dropout, causal, local, alibi, even_MN, even_K, softcap
    flags = "".join(f"Lb{flag}E" for flag in (1, 0, 1, 0, 1, 1, 0))
    kernel = "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"
    found = flash_kernel(f"_Z{len(kernel)}{kernel}I{traits}{flags}Ev16Flash_bwd_params")
    assert found is not None
    assert (found.direction, found.head_dim, found.dtype) == ("backward", 128, "fp16")
    assert (found.mask, found.options) == ("local", ("dropout",))
    first = f"_Z25flash_bwd_dot_do_o_kernelILb1E{traits}Ev16Flash_bwd_params"
    helper = flash_kernel(first)
    assert helper is not None
    assert (helper.direction, helper.head_dim, helper.mask) == ("helper", 128, "")


def fa3(kernel: str, mainloop: str, shape: str, value: str, flags: Iterable[int]) -> str:
    """A mangled name of FlashAttention 3, as its wrapper cutlass::device_kernel has it."""
    c = [f"N4cute1CILi{n}EEE" for n in shape.split()]
    tile = f"N4cute5tupleIJ{''.join(c)}EEE"
    lead = {"Fwd90": "Li2EN4cute5tupleIJNS_1CILi1EEEEEE", "Fwd80": "Li4ELi1ELb0E"}[mainloop]
    switches = "".join(f"Lb{flag}E" for flag in flags)
    dim_v = f"Li{value}E" if value else ""
    types = "N7cutlass10bfloat16_tEfN7cutlass4arch4Sm90E"
    name = f"CollectiveMainloopFwdSm{mainloop[-2:]}"
    loop = f"N5flash{len(name)}{name}I{lead}{tile}{dim_v}{types}{switches}EE"
    inner = f"N5flash{len(kernel)}{kernel}I{loop}EE"
    wrapper = f"N5flash20enable_sm90_or_laterI{inner}EE"
    return f"_ZN7cutlass13device_kernelI{wrapper}EEvNT_6ParamsE"


@pytest.fixture(scope="module", autouse=True)
def names_here_are_mangled_names() -> None:
    """The demangler of binutils reads them all."""
    names = [
        fa3("FlashAttnFwdSm90", "Fwd90", "128 128 192", "128", [0] * 12),
        fa3("FlashAttnFwdSm80", "Fwd80", "128 64 96", "96", [0] * 8),
        fa2("flash_fwd_kernel", 96, HALF, 0, 1),
    ]
    shown = oracles.output_of("c++filt", *names).split("\n")
    assert "cute::C<192>" in shown[0]
    assert not any(line.startswith("_Z") for line in shown)


def test_hopper_kernel_with_a_head_dimension_of_its_own_for_v() -> None:
    # causal, local, softcap, varlen, paged KV, append KV, Qv, MmaPV_is_RS, IntraWGOverlap,
    # PackGQA, Split, V_colmajor
    flags = (1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0)
    found = flash_kernel(fa3("FlashAttnFwdSm90", "Fwd90", "128 112 192", "128", flags))
    assert found is not None
    assert (found.generation, found.name) == ("FA3", "FlashAttnFwdSm90")
    assert (found.head_dim, found.head_dim_v, found.dtype) == (192, 128, "bf16")
    assert (found.mask, found.options) == ("causal", ("varlen", "pack GQA"))


def test_early_hopper_kernel_without_one() -> None:
    # causal, local, softcap, varlen, paged KV, append KV, Mma1_is_RS, IntraWGOverlap, PackGQA,
    # Split, V_colmajor
    flags = (0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0)
    found = flash_kernel(fa3("FlashAttnFwdSm90", "Fwd90", "128 128 64", "", flags))
    assert found is not None
    assert (found.head_dim, found.head_dim_v, found.mask) == (64, 64, "local")
    assert found.options == ("softcap", "paged KV", "split")


def test_ampere_kernel_of_flash_attention_3() -> None:
    # causal, local, softcap, varlen, paged KV, append KV, PackGQA, Split
    flags = (0, 0, 0, 0, 0, 1, 1, 1)
    found = flash_kernel(fa3("FlashAttnFwdSm80", "Fwd80", "128 48 96", "96", flags))
    assert found is not None
    assert (found.head_dim, found.mask) == (96, "")
    assert found.options == ("append KV", "pack GQA", "split")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("_Z5scalePf", "scale"),
        ("plain_c_kernel", "plain_c_kernel"),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4EEEviT_",
            "at::native::vectorized_elementwise_kernel",
        ),
        ("_ZN3cub11EmptyKernelIvEEvv", "cub::EmptyKernel"),
        ("_ZN2at6native12_GLOBAL__N_13addILi1EEEvv", "at::native::(anonymous namespace)::add"),
        ("_ZN44_INTERNAL_12345678_8_scale_cu_9abcdef0_012345ownedEv", "owned"),
        ("_ZSt4sortIiEvT_", "std::sort"),
        ("_ZL6hiddenv", "hidden"),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_ZN5", "_ZN5"),
        ("_Z99999999999short", "_Z99999999999short"),
        ("_ZN1aB5cxx111bEv", "a[abi:cxx11]::b"),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(name) == base


def test_template_arguments_respect_every_bracket() -> None:
    assert template_arguments("f<a, g<b, c>, (h<1>)2, d[3], e{i, j}>(k<l>)") == [
        "a", "g<b, c>", "(h<1>)2", "d[3]", "e{i, j}",
    ]  # fmt: skip
    assert template_arguments("f") == []
    assert template_arguments("f<>") == []
    assert template_arguments("f<a") == []


GROUPED = (
    Kernel(fa2("flash_fwd_kernel", 128, HALF, 0, 1, 0, 1, 0, 1, 0, 0), ("sm_80", "sm_90"), ()),
    Kernel(fa2("flash_fwd_kernel", 128, HALF, 0, 1, 0, 0, 1, 1, 1, 0), ("sm_80",), ()),
    Kernel(fa2("flash_fwd_kernel", 64, HALF, 0, 0, 0, 0, 1, 1, 0, 0), ("sm_80", "sm_90"), ()),
    Kernel(fa2("flash_fwd_kernel", 96, HALF, 0, 0, 0, 0, 1, 1, 0, 0), ("sm_80",), ("sm_80",)),
    Kernel("_Z4zoomILi1EEvv", ("sm_90",), ("sm_90",)),
    Kernel("_Z4zoomILi2EEvv", ("sm_90",), ()),
)


def test_groups_count_their_kernels_by_architecture() -> None:
    groups = group_kernels(GROUPED)
    assert [(g.label, g.kernels, g.archs, g.empty, g.options) for g in groups] == [
        ("flash_fwd_kernel<hdim 64, fp16>", 1, (("sm_80", 1), ("sm_90", 1)), (), ()),
        ("flash_fwd_kernel<hdim 96, fp16>", 1, (("sm_80", 1),), ("sm_80",), ()),
        (
            "flash_fwd_kernel<hdim 128, fp16, causal>", 2, (("sm_80", 2), ("sm_90", 1)), (),
            ("alibi", "softcap"),
        ),
        ("zoom", 2, (("sm_90", 2),), (), ()),
    ]  # fmt: skip


def test_head_dimensions_leave_out_kernels_without_code() -> None:
    assert [tuple(row) for row in flash_head_dims(group_kernels(GROUPED))] == [
        ("FA2", "forward", "fp16", "sm_80", (64, 128)),
        ("FA2", "forward", "fp16", "sm_90", (64, 128)),
    ]


def test_names_that_are_costly_to_demangle_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(kernel_names, "demangle", lambda name: asked.append(name) or name)
    hostile = [
        Kernel(f"_ZN5flash{n}" + "IS0_" * 40 + "Ev", ("sm_80",), ()) for n in range(10, 5010)
    ]
    groups = group_kernels(hostile)
    assert sum(group.kernels for group in groups) == 5000
    assert len(asked) == kernel_names.MAX_COSTLY


def test_view_is_plain_json() -> None:
    inventory = KernelInventory(GROUPED, 4, (("sm_100", 1),), False, ("one",))
    view = kernels_view(inventory, names=True)
    assert json.loads(json.dumps(view)) == view
    assert view["count"] == 6
    assert view["complete"] is False
    assert view["images_unread"] == [{"arch": "sm_100", "images": 1}]
    assert "names" not in kernels_view(inventory)


def test_table_of_parameters_is_consistent() -> None:
    table = kernel_names.read_flash_kernels()
    for part in ("fa2", "fa3"):
        for name, entry in table[part].items():
            for count, names in entry["parameters"].items():
                assert len(names) == int(count), name
                said = [text for text in names if text]
                assert len(set(said)) == len(said)
            assert entry["direction"] in kernel_names._DIRECTIONS


_SOURCE = re.compile(
    r"_INTERNAL_[0-9a-f]+_\d+_flash_(fwd|bwd)_(?:split_)?hdim(\d+)_(bf16|fp16)_(causal_)?sm80_cu_"
)


@pytest.mark.real
def test_labels_agree_with_the_source_files_that_the_kernels_come_from() -> None:
    """FlashAttention 2 has a source file for each head dimension, type and mask.

    nvcc writes its name into the cubin's symbols, beside the kernels.
    """
    files = [path for path in real_files() if "vllm_flash_attn" in path]
    if not files:
        pytest.skip("FA_FORENSICS_REAL_DIR has no vllm_flash_attn")
    compared = 0
    for path in files:
        with ElfImage(path) as image:
            code = read_device_code(image)
            for one in code.images:
                content = image.read(one.payload_offset, min(one.payload_bytes, 1 << 20))
                source = _SOURCE.search(content.decode("latin-1"))
                if source is None:
                    continue
                direction, dim, dtype, causal = source.groups()
                for kernel in read_kernels(image, code._replace(images=(one,))).kernels:
                    flash = flash_kernel(kernel.name)
                    assert flash is not None
                    assert (flash.head_dim, flash.dtype) == (int(dim), dtype)
                    assert flash.direction.startswith({"fwd": "forward", "bwd": "backward"}[
                        direction
                    ]) or flash.direction == "helper"  # fmt: skip
                    if flash.direction != "helper" and causal:
                        assert flash.mask == "causal"
                    compared += 1
    assert compared > 1000


@pytest.mark.real
def test_base_names_equal_the_demangler_s() -> None:
    files = [path for path in real_files() if os.path.getsize(path) < 300_000_000]
    if not files:
        pytest.skip("FA_FORENSICS_REAL_DIR does not name files")
    require("c++filt")
    names: set[str] = set()
    for path in files:
        with ElfImage(path) as image:
            names.update(k.name for k in read_kernels(image, read_device_code(image)).kernels)
    ordered = sorted(name for name in names if len(name) < 8_000)
    shown = subprocess.run(
        ["c++filt"], input="\n".join(ordered), capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name, text in zip(ordered, shown, strict=False):
        if text.startswith("_Z"):
            continue  # binutils gives up on a few names that libstdc++ reads
        plain = re.sub(r"_INTERNAL_\w+::", "", text)
        base = re.escape(base_name(name))
        assert re.match(rf"(?:.* )?{base}(?:<|\(|$)", plain), (name, text)
