"""What `why` says to a person: five lines, always in one order."""

from __future__ import annotations

from dataclasses import replace

import pytest
import render_samples as samples

from fa_forensics.render.why import why_text
from fa_forensics.report_why import Answer, WhyReport

ALL_ANSWERS = (samples.DRIFT_ANSWER, samples.LIBRARY_ANSWER)


@pytest.mark.parametrize("answer", ALL_ANSWERS, ids=lambda a: a.kind)
def test_why_answers_in_five_lines_of_one_order(answer: Answer) -> None:
    text = why_text(samples.why(answer), False, 400)
    lines = text.splitlines()[2:]
    labels = [line[:12].rstrip() for line in lines]
    assert labels[:5] == ["what", "owner", "exported by", "means", "type"]
    assert set(labels[5:]) <= {"see also", "note", ""}


def test_why_says_which_releases_export_a_name_and_that_nothing_here_does() -> None:
    text = why_text(samples.why(samples.DRIFT_ANSWER), False, 100)
    assert "exported by torch 2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2; here: nothing\n" in text
    here = replace(samples.DRIFT_ANSWER, provider=samples.torch_library("libc10_cuda.so"))
    assert "; here: torch/lib/libc10_cuda.so\n" in why_text(samples.why(here), False, 100)
    nowhere = WhyReport("0.1.0", None, (samples.DRIFT_ANSWER,))
    assert "; here: not looked at\n" in why_text(nowhere, False, 100)


def test_why_calls_a_name_that_is_provided_here_neither_changed_nor_unknown() -> None:
    here = replace(
        samples.DRIFT_ANSWER, exported_by=(), direction="none", provider="/usr/lib/libcudart.so.12"
    )
    text = why_text(samples.why(here), False, 200)
    assert "_ZN3c104cuda9SetDeviceEi: provided in this environment\n" in text
    assert "[FA201]" not in text
    assert "[FA201]\n" in why_text(samples.why(samples.DRIFT_ANSWER), False, 200)
    assert "exported by here: /usr/lib/libcudart.so.12\n" in text
    assert "changed between" not in text


def test_why_tells_no_release_from_not_looked_up() -> None:
    unknown = replace(samples.DRIFT_ANSWER, exported_by=(), direction="unknown")
    assert "exported by no release on record; here" in why_text(samples.why(unknown), False, 100)
    none = replace(unknown, direction="none")
    assert "exported by no known release; here" in why_text(samples.why(none), False, 100)
