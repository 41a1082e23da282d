"""Which release of flash-attn has which module and name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa_forensics.facts.flash_limits import parameters, release_key
from fa_forensics.facts.flash_names import (
    extra_folder,
    is_in,
    known_releases,
    module_spans,
    modules_with,
    name_spans,
    renamed,
)

TABLE = Path(__file__).parent.parent / "fa_forensics" / "data" / "flash_attn_names.json"
INTERFACE = "flash_attn.flash_attn_interface"


@pytest.mark.parametrize(
    ("name", "release", "there"),
    [
        ("flash_attn_unpadded_func", "1.0.9", True),
        ("flash_attn_unpadded_func", "2.0.0", False),
        ("flash_attn_varlen_func", "2.0.0.post1", True),
        ("flash_attn_varlen_func", "1.0.9", False),
        ("flash_attn_with_kvcache", "2.1.2", False),
        ("flash_attn_with_kvcache", "2.2.0", True),
        ("flash_attn_func", "2.8.3", True),
    ],
)
def test_a_function_is_there_from_its_release_on(name: str, release: str, there: bool) -> None:
    assert is_in(name_spans(name, INTERFACE), release) is there


def test_a_module_that_went_has_an_end() -> None:
    (span,) = module_spans("flash_attn.flash_attention")
    assert span.before == "2.0.5"
    assert module_spans("flash_attn.no_such_module") == ()


def test_a_name_that_moved_is_there_all_the_time() -> None:
    # layernorm.py became layer_norm.py.
    assert name_spans("layer_norm_fn")[0].before is None
    assert len(modules_with("layer_norm_fn")) > 1


def test_what_took_the_place_of_an_old_name_is_there_when_that_goes() -> None:
    names = json.loads(TABLE.read_text(encoding="utf-8"))["renamed"]
    for old, new in names.items():
        assert renamed(old) == new
        assert name_spans(old, INTERFACE)[-1].before == name_spans(new, INTERFACE)[0].since


def test_the_spans_agree_with_the_table_of_parameters() -> None:
    for function in ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"):
        for release in ("1.0.9", "2.0.4", "2.2.5", "2.3.6", "2.8.3"):
            there = is_in(name_spans(function, INTERFACE), release)
            assert (parameters(release, function) is not None) == there, (function, release)


def test_spans_are_releases_in_order() -> None:
    first, last = (release_key(release) for release in known_releases())
    for module, groups in json.loads(TABLE.read_text(encoding="utf-8"))["modules"].items():
        assert module.split(".")[0] == "flash_attn"
        for text in groups:
            for part in text.split(", "):
                since, _, before = part.partition("-")
                assert first is not None and last is not None
                assert first <= (release_key(since) or first) <= last
                assert not before or (release_key(since) or last) < (release_key(before) or first)


def test_extensions_beside_the_wheel_have_a_folder() -> None:
    assert extra_folder("dropout_layer_norm") == "csrc/layer_norm"
    assert extra_folder("flash_attn_2_cuda") is None


def test_a_text_that_is_no_release_is_in_no_span() -> None:
    assert is_in(name_spans("flash_attn_func"), "main") is None
