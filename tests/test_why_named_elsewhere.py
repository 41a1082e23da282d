"""``why`` on names of torch that stand apart from the words "undefined symbol", and whose torch."""

from __future__ import annotations

import pytest
from support.asking import first, said

#: nm: libc10 of torch 2.10 exports MessageLogger(char const*, int, int, bool), and no other does.
LOGGER = "_ZN3c1013MessageLoggerC1EPKciib"


@pytest.mark.parametrize(
    "text",
    [
        f"so `from torchcodec._core import ops` raised `undefined symbol`\n| 0.10 | `{LOGGER}` |",
        f"An undefined symbol on import.\n\nThe name is\n\n    {LOGGER}\n",
        f"ImportError: undefined symbol (see below)\nnm -D shows {LOGGER} as U",
    ],
)
def test_the_only_name_of_a_short_text_is_the_undefined_one(text: str) -> None:
    answer = first(text, "torchcodec 0.10.0, torch 2.11.0")
    assert answer.symbol == LOGGER
    assert (answer.exported_by, answer.direction) == (("2.10.0",), "file-older")


def test_a_function_that_is_written_out_is_read_as_well() -> None:
    """nm: libc10_cuda of torch 2.1.0 to 2.2.2 exports SetDevice(int)."""
    text = (
        "An undefined symbol: it wants `c10::cuda::SetDevice(int)`, and torch 2.5.1 has "
        "`c10::cuda::SetDevice(signed char, bool)`."
    )
    answer = first(text, "")
    assert answer.demangled == "c10::cuda::SetDevice(int)"
    assert answer.direction == "file-older"


def test_a_function_that_no_torch_has_in_that_form_decides_nothing() -> None:
    answer = first("the import wants `c10::MessageLogger(char const*, int, bool)`: no", "torch 2.9")
    assert answer.code == "FA886"
    assert answer.direction == "unknown"


def test_of_two_torches_the_one_that_lacks_the_name_is_loaded() -> None:
    text = f"undefined symbol {LOGGER}, which libc10 exports at torch 2.10 and not at 2.11"
    assert first(text, "").direction == "file-older"
    text = f"undefined symbol {LOGGER}: it exists in torch 2.10 only. torch 2.9.0 here"
    assert first(text, "").direction == "file-newer"


def test_a_torch_before_the_record_of_its_machine_is_judged_by_the_oldest_record() -> None:
    """nm: parseSchemaOrName(std::string const&) is in torch 1.1 to 2.3; Jetson's are cxx11."""
    name = "_ZN5torch3jit17parseSchemaOrNameERKSs"
    text = f"OSError: torchaudio/_torchaudio.so: undefined symbol: {name}"
    answer = first(text, "torch 1.8.0, torchaudio 0.8.0, Python 3.6, aarch64 Jetson")
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert "no such name" not in said(answer)


@pytest.mark.parametrize(
    ("versions", "direction"),
    [
        ("Windows, torch 1.13.1, pytorch3d wheel built for torch 2.0.0", "file-newer"),
        ("Windows 11, torch 2.4.0, mmcv was compiled with torch 1.13", "file-older"),
        ("Windows 11, torch 2.4.0, mmcv was compiled with torch 2.4.1", "unknown"),
    ],
)
def test_a_windows_wheel_for_another_torch(versions: str, direction: str) -> None:
    text = (
        "ImportError: DLL load failed while importing _C: The specified procedure could not be "
        "found."
    )
    answer = first(text, versions)
    assert (answer.code, answer.direction) == ("FA889", direction)


def test_a_libtorch_by_its_download_is_cxx11() -> None:
    """pytorch.org: libtorch-cxx11-abi-shared-with-deps is the cxx11 download."""
    name = (
        "_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEE"
        "RKNS_14SourceLocationESsb"
    )
    text = f"what():  Error in dlopen: /tmp/example/model.so: undefined symbol: {name}"
    answer = first(text, "libtorch 2.2.1+cu118 cxx11-abi-shared-with-deps")
    assert (answer.code, answer.direction) == ("FA301", "other-flavour")
    assert answer.provider is None and "two causes" not in answer.cause
