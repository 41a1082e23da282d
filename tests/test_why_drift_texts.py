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


CUT = (
    "4_ops19empty_memory_format4callEN3c108ArrayRefI{0}EENS2_8optionalINS2_10ScalarTypeEEENS5_INS2_"
    "6LayoutEEENS5_INS2_6DeviceEEENS5_IbEE..."
)


def test_dots_behind_a_name_mean_that_it_goes_on() -> None:
    """Of torch's names one alone begins so; nm has it in torch 1.10.0 to 1.12.1."""
    file = "/x/lib/python3.10/site-packages/torchtext/lib/libtorchtext.so"
    linux = first(f"ImportError: {file}: undefined symbol: _ZN2at{CUT.format('l')}")
    mac = first(f"OSError: dlopen({file}, 0x0006): Symbol not found: __ZN2at{CUT.format('x')}")
    for answer in (linux, mac):
        assert answer.interval == "1.10.0 – 1.12.1"
        assert (answer.direction, answer.confidence) == ("file-older", "medium")
        assert "cut off" in said(answer)
    assert "python -m pip install torch==1.12.1 torchtext==0.13.1" in mac.help
