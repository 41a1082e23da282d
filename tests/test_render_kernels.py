"""The kernel inventory as text: what stands in it, and that it keeps to its width."""

from __future__ import annotations

import pytest

from fa_forensics.render.kernels import MOST_OTHERS, kernel_lines
from fa_forensics.render.style import painter

View = dict[str, object]


def group(
    label: str, archs: dict[str, int], *, empty: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> View:
    flash = {"kernel": label.partition("<")[0]} if "<" in label else None
    rows = [
        {"arch": arch, "kernels": count, "empty": arch in empty} for arch, count in archs.items()
    ]
    return {
        "label": label,
        "kernels": max(archs.values()),
        "archs": rows,
        "options": list(options),
        "flash": flash,
    }


def view(*groups: View, **changes: object) -> View:
    archs = {row["arch"]: None for one in groups for row in one["archs"]}  # type: ignore[attr-defined]
    return {
        "count": sum(one["kernels"] for one in groups),  # type: ignore[misc]
        "archs": list(archs),
        "images_read": 64,
        "images_unread": [],
        "complete": True,
        "needs_device_link": False,
        "groups": list(groups),
        "head_dims": [],
        "problems": [],
        **changes,
    }


TWO = {"sm_80": 16, "sm_90a": 16}


def test_table_has_a_row_for_each_group_and_a_column_for_each_architecture() -> None:
    lines = kernel_lines(
        view(
            group("flash_fwd_kernel<hdim 128, fp16, causal>", TWO, options=("alibi", "softcap")),
            group("flash_fwd_kernel<hdim 96, fp16>", TWO, empty=("sm_90a",)),
            group("cub::EmptyKernel", {"sm_90a": 1}),
        ),
        80,
    )
    assert lines == [
        "33 kernels for sm_80, sm_90a (64 images read)",
        "",
        "kernels                                   sm_80  sm_90a",
        "flash_fwd_kernel<hdim 128, fp16, causal>     16      16",
        "flash_fwd_kernel<hdim 96, fp16>              16   empty",
        "cub::EmptyKernel                              -       1",
        "",
        "of flash_fwd_kernel some have alibi, softcap",
        "empty: compiled for this architecture to nothing but a return",
    ]


def test_head_dimensions_are_one_line_for_architectures_that_are_alike() -> None:
    rows = [
        {
            "generation": "FA2",
            "direction": direction,
            "dtype": dtype,
            "arch": arch,
            "head_dims": [64, 96] if direction == "forward" else [64],
        }
        for direction in ("forward", "backward")
        for dtype in ("bf16", "fp16")
        for arch in ("sm_80", "sm_90")
    ]
    lines = kernel_lines(view(group("f<a>", TWO), head_dims=rows), 80)
    assert lines[2:7] == [
        "head dimensions of the FlashAttention kernels",
        "  FA2 forward   bf16  64 96 (sm_80, sm_90)",
        "  FA2 forward   fp16  64 96 (sm_80, sm_90)",
        "  FA2 backward  bf16  64 (sm_80, sm_90)",
        "  FA2 backward  fp16  64 (sm_80, sm_90)",
    ]


def test_flash_attention_kernels_that_some_architectures_lack_are_named() -> None:
    lines = kernel_lines(
        view(
            group("FwdSm80<hdim 64>", {"sm_80": 4, "sm_90a": 4}, empty=("sm_90a",)),
            group("FwdSm90<hdim 64>", {"sm_90a": 4}),
            group("BwdSm90<hdim 64>", {"sm_90a": 4}),
            group("Combine<hdim 64>", TWO),
            group("others", {"sm_80": 1}),
        ),
        80,
    )
    assert lines[2:5] == [
        "not for every architecture",
        "  only for sm_80: FwdSm80",
        "  only for sm_90a: FwdSm90, BwdSm90",
    ]


def test_many_architectures_are_listed_below_the_name() -> None:
    archs = {f"sm_{number}": 7 for number in (70, 75, 80, 86, 89, 90, 100, 120)}
    some = {**archs, "sm_120": 2}
    lines = kernel_lines(view(group("all", archs), group("some", some)), 60)
    assert lines[-4:] == [
        "  x7 for each architecture",
        "some",
        "  sm_70 x7, sm_75 x7, sm_80 x7, sm_86 x7, sm_89 x7,",
        "  sm_90 x7, sm_100 x7, sm_120 x2",
    ]


def test_small_groups_of_a_large_library_are_counted() -> None:
    groups = [group(f"kernel_{number:03}", {"sm_80": number}) for number in range(1, 101)]
    lines = kernel_lines(view(*groups), 80)
    shown = [line for line in lines if line.startswith("kernel_")]
    assert len(shown) == MOST_OTHERS
    assert shown[0].startswith("kernel_100")
    left = sum(range(1, 101 - MOST_OTHERS))
    assert lines[-1].startswith(f"and 60 more kinds of kernels, {left:,} kernels in all")
    everything = kernel_lines(view(*groups), 80, everything=True)
    assert len([line for line in everything if line.startswith("kernel_")]) == 100


def test_what_could_not_be_read_is_said() -> None:
    problem = "entry at offset 0x1234: the zstd data cannot be read"
    shown = view(count=0, images_read=0, complete=False, problems=[problem])
    assert kernel_lines(shown, 100) == [
        "no kernels could be read (0 images read)",
        f"not read: {problem}",
    ]
    assert kernel_lines(view(count=0, images_read=2), 100) == ["no kernels (2 images read)"]


def test_code_that_still_needs_the_device_link_is_said() -> None:
    lines = kernel_lines(view(group("f", TWO), needs_device_link=True), 200)
    assert lines[1].startswith("warning: this GPU code was not device-linked")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_lines_keep_to_the_width(width: int) -> None:
    archs = {f"sm_{number}": 1234 for number in range(70, 90)}
    groups = [
        group("flash_fwd_kernel<hdim 128, fp16>", archs, options=("softcap",) * 20),
        group("at::native::f", TWO),
    ]
    long_names = 0
    for line in kernel_lines(view(*groups, problems=["word " * 60]), width):
        if len(line) > width:
            long_names += 1
    assert long_names == 0


def test_names_cannot_move_the_cursor() -> None:
    for archs in (TWO, {f"sm_{number}": 1 for number in range(50, 90)}):
        text = "\n".join(kernel_lines(view(group("evil\x1b[2J\nname", archs)), 80))
        assert "\x1b" not in text
        assert "evil\\x1b[2J\\x0aname" in text


def test_colour_changes_no_words() -> None:
    shown = view(group("f<hdim 64>", TWO), problems=["one"])
    plain = kernel_lines(shown, 80)
    colour = kernel_lines(shown, 80, painter(True))
    import re

    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in colour] == plain
    assert colour != plain
