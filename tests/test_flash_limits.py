"""FlashAttention's own limits, release by release."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fa_forensics.facts.flash_limits import (
    all_limits,
    first_accepting,
    limits_of,
    parameter_since,
    parameters,
    release_key,
)

#: (release of flash-attn, GPU, accepted): the check in its flash_api.cpp or fmha_api.cpp.
CHECKS = [
    ("0.2.8", (7, 5), True), ("0.2.8", (9, 0), False), ("1.0.9", (9, 0), True),
    ("1.0.9", (7, 5), True), ("1.0.9", (7, 0), False),
    ("2.0.0.post1", (7, 5), False), ("2.0.0.post1", (8, 0), True), ("2.5.8", (8, 9), True),
    ("2.7.2.post1", (9, 0), True), ("2.7.2.post1", (10, 0), False), ("2.7.2", (12, 0), False),
    ("2.7.3", (12, 0), True), ("2.8.3", (12, 1), True), ("2.8.3", (7, 5), False),
    ("2.8.3+cu12torch2.8cxx11abiTRUE", (8, 6), True),
]  # fmt: skip


@pytest.mark.parametrize(("release", "gpu", "accepted"), CHECKS)
def test_the_check_of_a_release_is_known(
    release: str, gpu: tuple[int, int], accepted: bool
) -> None:
    (row,) = limits_of("flash-attn", release, None)
    assert row.accepts(gpu) == accepted


def test_a_file_without_a_release_has_the_rows_of_its_module() -> None:
    rows = limits_of(None, None, "flash_attn_2_cuda")
    assert {row.id for row in rows} == {"fa2"}
    assert rows[-1].before is None
    assert not any(row.accepts((7, 5)) for row in rows)
    assert limits_of("vllm_flash_attn", "2.6.2", None)[0].id == "fa2"
    assert limits_of("fa3-fwd", "0.0.3", "_C")[0].id == "fa3"
    assert limits_of("xformers", "0.0.34", "_C") == ()
    assert limits_of(None, None, None) == ()


@pytest.mark.parametrize(
    ("release", "dim", "served"),
    [
        ("2.8.3", 128, 128), ("2.8.3", 72, 96), ("2.8.3", 160, 192), ("2.7.2", 160, 160),
        ("2.7.2", 224, 224), ("2.7.4", 224, 256), ("2.8.3", 257, None), ("2.8.3", 100, None),
        ("2.8.3", 0, None), ("1.0.9", 256, None),
    ],
)  # fmt: skip
def test_a_head_dimension_is_served_by_the_next_kernel(
    release: str, dim: int, served: int | None
) -> None:
    (row,) = limits_of("flash-attn", release, None)
    assert row.serves_head_dim(dim) == served


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("2.5.4", "over 192 need"), ("2.5.5", "except 256 without dropout"),
        ("2.6.1", "except 256 without dropout"), ("2.6.2", "with dropout need"),
        ("2.8.3", "144 KB of shared memory"),
    ],
)  # fmt: skip
def test_the_backward_pass_has_limits_of_its_own(release: str, words: str) -> None:
    (row,) = limits_of("flash-attn", release, None)
    assert words in (row.backward or "")


def test_the_first_release_for_a_gpu() -> None:
    assert first_accepting("fa2", (12, 0)) == "2.7.3"
    assert first_accepting("fa2", (8, 9)) == "2.0.0"
    assert first_accepting("fa2", (7, 5)) is None
    assert first_accepting("fa4", (12, 0)) == "4.0.0b5"


def test_spans_follow_each_other_without_gap_or_overlap() -> None:
    generations: dict[str, list[tuple[str, str | None]]] = {}
    for row in all_limits():
        generations.setdefault(row.id, []).append((row.since, row.before))
    assert set(generations) == {"fa1", "fa2", "fa3", "fa4"}
    for spans in generations.values():
        keys = [key for since, _ in spans if (key := release_key(since)) is not None]
        assert len(keys) == len(spans) and keys == sorted(keys)
        assert all(before == since for (_, before), (since, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.5.5", "2.10.0"), ("4.0.0b5", "4.0.0b10"), ("4.0.0b36", "4.0.0"), ("0.2.8", "1.0.0"),
        ("2.8", "2.8.1"),
    ],
)  # fmt: skip
def test_releases_are_ordered_as_releases(older: str, newer: str) -> None:
    first, second = release_key(older), release_key(newer)
    assert first is not None and second is not None and first < second
    assert release_key("2.8.0") == release_key("2.8") == release_key("2.8.0.post2+cu12")


@pytest.mark.parametrize("text", ["", "x", "post1", "9" * 5_000])
def test_what_is_no_release_has_no_key_or_costs_nothing(text: str) -> None:
    assert release_key(text) is None or len(text) > 100


@pytest.mark.parametrize(
    ("function", "parameter", "since"),
    # flash_attn_interface.py of the releases' tags.
    [
        ("flash_attn_func", "window_size", "2.3.0"), ("flash_attn_func", "alibi_slopes", "2.4.0"),
        ("flash_attn_func", "softcap", "2.6.0"), ("flash_attn_varlen_func", "block_table", "2.5.7"),
        ("flash_attn_with_kvcache", "cache_leftpad", "2.6.1"), ("flash_attn_func", "nope", None),
        ("nope", "q", None),
    ],
)  # fmt: skip
def test_the_release_that_brought_a_parameter(
    function: str, parameter: str, since: str | None
) -> None:
    assert parameter_since(function, parameter) == since


def test_the_parameters_of_a_release() -> None:
    before = parameters("2.5.9.post1", "flash_attn_func")
    after = parameters("2.6.3", "flash_attn_func")
    assert before is not None and after is not None
    assert set(after) - set(before) == {"softcap=0.0"}
    assert parameters("1.0.9", "flash_attn_varlen_func") is None
    assert parameters("2.0.0", "flash_attn_unpadded_func") is None
    assert parameters("1.0.9", "flash_attn_unpadded_func") is not None
    assert parameters("nonsense", "flash_attn_func") is None
