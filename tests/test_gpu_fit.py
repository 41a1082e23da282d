"""FA504-FA508: when the rules about GPUs speak, when not, and what they advise."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.contexts import environment, torch
from support.fitting import FIT_TABLE, Fitting, code, fitting
from support.material import HUGE, husk_file

from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.fatbin.kernels import Kernel, KernelInventory
from fa_forensics.facts.fatbin.reader import read_file
from fa_forensics.facts.gpus import parse_gpu, parse_gpus
from fa_forensics.facts.nvml import asked_gpus
from fa_forensics.report import Finding
from fa_forensics.rules import gpu_fit
from fa_forensics.rules.gpu_fit import (
    NO_KERNEL_CODES,
    RANK_LAUNCH,
    fit_facts,
    kernel_gap,
    kernels_by_arch,
    no_kernel_headline,
)

if TYPE_CHECKING:
    from fa_forensics.rules.gpu_fit import FitContext

RULES = {
    name: getattr(gpu_fit, name)
    for name in ("no_code", "by_jit", "driver_too_old", "refused_by_package", "partly_covered")
}
SPEAKS = [
    pytest.param(name, ctx, said, id=f"{said} {name} {at}")
    for at, (name, ctx, said, _) in enumerate(FIT_TABLE)
]
SILENT = [
    pytest.param(name, ctx, id=f"{name} {at}.{number}")
    for at, (name, _, _, silent) in enumerate(FIT_TABLE)
    for number, ctx in enumerate(silent)
]


def one(ctx: FitContext, code_: str) -> Finding:
    found: list[Finding] = [j.finding for rule in RULES.values() for j in rule(ctx)]
    return next(finding for finding in found if finding.code == code_)


@pytest.mark.parametrize(("name", "ctx", "said"), SPEAKS)
def test_a_rule_speaks_of_its_facts(name: str, ctx: Fitting, said: str) -> None:
    (judged,) = RULES[name](ctx)
    finding = judged.finding
    assert f"{finding.code} {finding.severity}" == said
    assert (inspect.getdoc(RULES[name]) or "").startswith(f"{finding.code}: ")
    assert finding.evidence or finding.notes
    assert all(note[-1] in ".)" for note in finding.notes)
    assert "\n" not in finding.title and not finding.title.endswith(".")
    assert finding.severity != "error" or judged.rank == RANK_LAUNCH
    assert finding.severity != "error" or finding.code in NO_KERNEL_CODES


@pytest.mark.parametrize(("name", "ctx"), SILENT)
def test_a_rule_is_silent_without_them(name: str, ctx: Fitting) -> None:
    assert list(RULES[name](ctx)) == []


def test_help_holds_commands_with_quoted_values() -> None:
    for _, ctx, _, _ in FIT_TABLE:
        for rule in RULES.values():
            for judged in rule(ctx):
                for command in judged.finding.help:
                    assert re.match(r"([A-Z_]+=('[^']*'|\S+) )*/env/bin/python -m pip ", command)


# --- what is said -------------------------------------------------------------------------------


def test_code_for_hopper_alone_on_ada_says_what_would_run() -> None:
    finding = one(fitting([code("sm_90")], "RTX 4090"), "FA504")
    assert "RTX 4090 (compute capability 8.9)" in finding.title
    assert finding.evidence[0].text == "sm_90 code runs on 9.0 and later 9.x alone"
    text = " ".join(finding.notes)
    assert "sm_80, sm_86, sm_89 code, or PTX up to compute_89" in text
    assert "Newer machine code never runs on an older GPU" in text


def test_hopper_specific_code_on_blackwell_says_why() -> None:
    finding = one(fitting([code("sm_90a")], "B200"), "FA504")
    assert "runs on that one part" in " ".join(finding.notes)


def test_turing_and_flash_attention_2_no_rebuild_can_help() -> None:
    ctx = fitting([code("sm_80"), code("sm_90")], "T4", package=("flash-attn", "2.8.3"))
    finding = one(ctx, "FA504")
    text = " ".join(finding.notes)
    assert "No rebuild can help: FlashAttention 2 itself refuses compute capability 7.5" in text
    assert "FlashAttention 1 (flash-attn) takes this GPU" in text
    assert finding.help == ()


def test_flash_attention_3_has_no_code_for_blackwell_however_it_is_built() -> None:
    ctx = fitting([code("sm_80"), code("sm_90a")], "B200", package=("fa3-fwd", "0.0.3"))
    finding = one(ctx, "FA504")
    text = " ".join(finding.notes)
    assert (
        "No rebuild can help: the build of FlashAttention 3 compiles for sm_80 and sm_90a" in text
    )
    assert "FlashAttention 4 (flash-attn-4) takes this GPU" in text
    assert "FlashAttention 2 (flash-attn) takes this GPU" in text
    assert "FlashAttention 1" not in text
    assert finding.help == ()


def test_flash_attention_is_rebuilt_with_its_own_variable() -> None:
    ctx = fitting([code("sm_80"), code("sm_90")], "RTX 5090", package=("flash-attn", "2.8.3"))
    finding = one(ctx, "FA504")
    (command,) = finding.help
    assert command.startswith(
        "FLASH_ATTN_CUDA_ARCHS=120 FLASH_ATTENTION_FORCE_BUILD=TRUE MAX_JOBS=2 "
    )
    assert command.endswith("--no-binary flash-attn flash-attn==2.8.3")
    text = " ".join(finding.notes)
    assert "TORCH_CUDA_ARCH_LIST has no effect" in text
    assert "does not know compute capability 12.0: CUDA 12.8 or newer does" in text  # torch: 12.1


def test_a_release_that_refuses_the_gpu_is_replaced_by_a_newer_one() -> None:
    ctx = fitting([code("sm_80")], "RTX 5090", package=("flash-attn", "2.7.2"))
    finding = one(ctx, "FA504")
    assert any("Releases from 2.7.3 on accept this GPU" in note for note in finding.notes)
    (command,) = finding.help
    assert command.endswith("--no-binary flash-attn flash-attn")
    assert "FLASH_ATTN_CUDA_ARCHS=120" in command


def test_release_numbers_of_flash_attn_are_not_told_of_packages_made_from_it() -> None:
    ctx = fitting([code("sm_80")], "RTX 5090", "sm_87", package=("vllm-flash-attn", "2.6.2"))
    text = " ".join(one(ctx, "FA504").notes)
    assert "accepts compute capability 12.0 from its own release 2.7.3 on" in text
    assert "Releases from" not in text


def test_a_gpu_named_beside_all_is_judged_and_the_others_are_not() -> None:
    ctx = fitting([code("sm_80")], "RTX 5090", "H100", overview=True)
    assert gpu_fit.no_code(ctx) == () and ctx.fit is not None
    named = parse_gpus(("RTX 5090",))
    judged = replace(ctx, fit=ctx.fit._replace(named=named))
    (found,) = gpu_fit.no_code(judged)
    assert "RTX 5090" in found.finding.title and "H100" not in found.finding.title


def test_a_tegra_part_is_added_through_nvcc_itself() -> None:
    ctx = fitting([code("sm_80")], "Jetson Orin", package=("flash-attn", "2.8.3"))
    (command,) = one(ctx, "FA504").help
    assert "NVCC_APPEND_FLAGS='-gencode arch=compute_87,code=sm_87'" in command


def test_other_packages_are_rebuilt_with_torchs_variable() -> None:
    here = environment(torch=torch(cuda="12.8"))
    ctx = fitting([code("sm_90")], "RTX 4090", "T4", package=("xformers", "0.0.34"),
                  environment=here)  # fmt: skip
    finding = one(ctx, "FA504")
    (command,) = finding.help
    assert command.startswith("TORCH_CUDA_ARCH_LIST='7.5;8.9' MAX_JOBS=2 /env/bin/python -m pip")
    assert any("Compiling for 8.9 takes the nvcc of CUDA 11.8" in note for note in finding.notes)


def test_an_unknown_package_gets_the_value_but_no_command() -> None:
    finding = one(fitting([code("sm_90")], "RTX 4090"), "FA504")
    assert finding.help == ()
    assert any('TORCH_CUDA_ARCH_LIST="8.9"' in note for note in finding.notes)


def test_ptx_names_the_driver_it_needs() -> None:
    driver = Driver("535.104.05", (12, 2))
    finding = one(fitting([code("compute_80")], "H100", driver=driver), "FA506")
    assert finding.evidence[0].text == (
        "compiling this PTX needs a driver for CUDA 12.4 (550.54.14 or newer); "
        "driver 535.104.05 supports CUDA 12.2"
    )
    assert "unsupported toolchain" in finding.notes[0]


def test_ptx_for_a_machine_that_is_not_known_names_the_driver_too() -> None:
    finding = one(fitting([code("compute_80")], "H100"), "FA505")
    assert "It takes a driver for CUDA 12.4 (550.54.14 or newer)." in finding.notes[0]


def test_of_two_ptx_the_one_that_the_driver_knows_counts() -> None:
    groups = [code("compute_80", isa="8.0"), code("compute_90", isa="8.8")]
    ctx = fitting(groups, "H100", driver=Driver("535.104.05", (12, 2)))
    assert ctx.fit is not None
    (found,) = ctx.fit.fits
    assert (found.arch, found.driver_ok) == ("compute_80", True)


def test_a_zstd_image_needs_a_driver_that_unpacks_it() -> None:
    driver = Driver("535.247.01", (12, 2))
    ctx = fitting([code("sm_80", zstd=True)], "RTX 3060", driver=driver, toolkit="12.9")
    finding = one(ctx, "FA506")
    assert "550.54.14" in finding.evidence[0].text
    assert "device kernel image is invalid" in finding.notes[0]


# --- kernels ------------------------------------------------------------------------------------

KERNELS = {"sm_80": {"fwd_sm80", "combine"}, "sm_90a": {"fwd_sm90", "bwd_sm90", "combine"}}


@pytest.mark.parametrize(
    ("gpu", "available", "missing", "only"),
    [
        ("A100", 2, 2, (("sm_90a", 2),)),
        ("RTX 4090", 2, 2, (("sm_90a", 2),)),
        ("H100", 3, 1, (("sm_80", 1),)),
        ("B200", 0, 4, (("sm_80", 1), ("sm_90a", 2))),
    ],
)
def test_the_kernels_that_a_gpu_lacks_are_counted_by_where_they_are(
    gpu: str, available: int, missing: int, only: tuple[tuple[str, int], ...]
) -> None:
    gap = kernel_gap(KERNELS, parse_gpu(gpu)[0])
    assert (gap.available, gap.missing, gap.only) == (available, missing, only)


def test_partial_coverage_names_the_kernels_where_they_are_known() -> None:
    groups = [
        code("sm_80", containers=frozenset((0, 1))),
        code("sm_90a", containers=frozenset((1, 2, 3))),
    ]
    finding = one(fitting(groups, "A100", kernels=KERNELS), "FA508")
    assert "2 of the 4 compiled sources" in finding.title
    assert any("2 of 4 kernels have none (2 for sm_90a alone)" in note for note in finding.notes)


def test_ptx_counts_as_kernels_for_later_gpus() -> None:
    gap = kernel_gap({"sm_80": {"a"}, "compute_80": {"a"}}, parse_gpu("H100")[0])
    assert (gap.available, gap.missing) == (1, 0)


def test_a_kernel_that_is_empty_for_an_architecture_does_not_count_there() -> None:
    kernels = (
        Kernel("hopper_only", ("sm_80", "sm_90a"), ("sm_80",)),
        Kernel("tiny_everywhere", ("sm_80", "sm_90a"), ("sm_80", "sm_90a")),
        Kernel("both", ("sm_80", "sm_90a"), ()),
    )
    inventory = KernelInventory(kernels, 2, (), False, ())
    assert kernels_by_arch(inventory) == {
        "sm_80": {"tiny_everywhere", "both"},
        "sm_90a": {"hopper_only", "tiny_everywhere", "both"},
    }


# --- put together -------------------------------------------------------------------------------


def test_a_real_extension_is_held_against_the_gpus_asked_for() -> None:
    images = read_file(str(husk_file(HUGE))).images
    facts = fit_facts(images, (), asked_gpus(("RTX 4090", "T4")), (), 2)
    assert [one.runs for one in facts.fits] == ["native", "none"]
    assert not facts.overview
    assert [judged.finding.severity for judged in gpu_fit.no_code(Fitting(facts))] == ["warning"]
    everything = fit_facts(images, (), asked_gpus(("all",)), (), 2)
    assert everything.overview and not gpu_fit.no_code(Fitting(everything))


def test_only_kernels_that_cannot_run_make_their_own_headline() -> None:
    error = one(fitting([code("sm_90")], "RTX 4090"), "FA504")
    note = one(fitting([code("compute_80")], "H100"), "FA505")
    link = Finding("FA201", "error", "high", "a symbol is missing")
    assert no_kernel_headline([note, error]) == error.title
    assert no_kernel_headline([error, link]) is None
    assert no_kernel_headline([note]) is None
    assert no_kernel_headline([]) is None
