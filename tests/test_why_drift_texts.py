"""``why`` on names of torch: which package and torch a text names, and what that leaves to type.

The releases are those of ``nm -D`` over torch's wheels; the texts are shortened from reports.
"""

from __future__ import annotations

from support.asking import first, said

VISION = "../third/torchvision/lib/libtorchvision.so: undefined reference to"
CHECK_FAIL = "c10::detail::torchCheckFail(char const*, char const*, unsigned int, char const*)"
RECORD = "at::RecordFunction::RecordFunction(at::RecordScope, bool)"


def test_the_linker_names_the_direction_where_the_torch_is_older_than_the_name() -> None:
    """nm: libc10 has torchCheckFail with these parameters from torch 1.8.0 on."""
    answer = first(f"{VISION} `{CHECK_FAIL}'", "libtorch 1.7.1")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-newer")
    assert "--branch v0.8.2 https://github.com/pytorch/vision" in answer.help[0]
    assert not [text for text in answer.help if "pip install" in text]


def test_a_torch_that_has_the_name_is_not_on_the_link_line() -> None:
    answer = first(f"{VISION} `{CHECK_FAIL}'", "libtorch 1.9.0")
    assert answer.code == "FA210"
    assert "none since 1.8.0 too old" in answer.cause
    assert "one of the two" not in said(answer)


def test_another_name_of_few_releases_tells_that_the_torches_differ() -> None:
    """RecordFunction(RecordScope, bool) is in 1.8.0 to 1.11.0 alone."""
    answer = first(f"{VISION} `{CHECK_FAIL}'\n{VISION} `{RECORD}'")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-newer")
