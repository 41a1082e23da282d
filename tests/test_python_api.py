"""The table of Python names by release: its form, and facts from release notes."""

from __future__ import annotations

import re

import pytest

from fa_forensics.facts.flash_limits import release_key
from fa_forensics.facts.flash_names import Span, spans_of
from fa_forensics.facts.python_api import (
    api_parameter,
    api_spans,
    call_of,
    distribution_with,
    partner_of,
    torch_of,
)
from fa_forensics.facts.tables import read_table


@pytest.mark.parametrize(
    ("module", "name", "span"),
    [  # torch's release notes
        ("torch", "compile", Span("2.0.0", None)),
        ("torch", "_six", Span("1.0.0", "2.0.0")),
        ("torch", "float8_e4m3fn", Span("2.1.0", None)),
        ("torch", "uint16", Span("2.3.0", None)),
        ("torch", "accelerator", Span("2.6.0", None)),
        ("torch.library", "register_fake", Span("2.4.0", None)),
        ("torch.amp", "custom_fwd", Span("2.4.0", None)),
        ("torch.nn", "RMSNorm", Span("2.4.0", None)),
        ("torch.optim.lr_scheduler", "LRScheduler", Span("2.0.0", None)),
        ("torchvision.transforms", "functional_tensor", Span("0.5.0", "0.17.0")),
        ("triton.compiler.compiler", "AttrsDescriptor", Span("2.3.0", "3.3.0")),
    ],
)
def test_names_came_and_went_with_their_releases(module: str, name: str, span: Span) -> None:
    package = distribution_with(module)
    assert package is not None and api_spans(package, module, name) == (span,)


def test_what_is_not_on_record_is_unknown() -> None:
    assert api_spans("torch", "torch", "Tensor") == ()
    assert api_spans("torch", "torch.no_such_module", "x") == ()
    assert distribution_with("somebody_elses") is None and api_parameter("torch", "f", "x") == ()


def test_every_span_begins_at_a_release_and_ends_after_it() -> None:
    for row in read_table("python_api.json")["packages"].values():
        texts = [*row["modules"], *(s for spans in row["names"].values() for s in spans)]
        for text in texts:
            for span in spans_of(text):
                first = release_key(span.since)
                assert first is not None
                end = release_key(span.before) if span.before else None
                assert end is None or first < end


def test_arguments_of_causal_conv1d_follow_its_releases() -> None:
    call = call_of("causal_conv1d_fwd")
    assert call is not None and call.package == "causal-conv1d"
    assert [*call.takes] == [4, 5, 7, 8] and call.takes[7] == Span("1.2.0", "1.5.1")
    assert call.callers["mamba-ssm"][7] == Span("1.2.0", "2.2.5")
    assert api_parameter("causal-conv1d", "causal_conv1d_fn", "seq_idx") == (Span("1.1.0", None),)


def test_partners_go_both_ways() -> None:
    pairs = {"torchvision": ("0.17.1", "2.2.1"), "torchaudio": ("2.4.1", "2.4.1"),
             "xformers": ("0.0.30", "2.7.0")}  # fmt: skip
    for package, (release, torch) in pairs.items():
        assert torch_of(package, release) == torch
        assert partner_of(package, f"{torch}+cu121") == release
    for table in read_table("torch_pairs.json")["packages"].values():
        for release, torch in table.items():
            assert re.fullmatch(r"\d[\d.]*(?:\.post\d+)?", release)
            assert re.fullmatch(r"\d+\.\d+\.\d+", torch)
