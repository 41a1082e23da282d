"""What a text denies, changes and only mentions: none of it is taken for what is there."""

from __future__ import annotations

import pytest
from support.asking import first

from fa_forensics.facts.paste import read_paste

ERROR = "ImportError: /x/site-packages/x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n\n"


def versions(words: str) -> dict[str, str]:
    return dict(read_paste(ERROR + words).versions)


@pytest.mark.parametrize(
    ("words", "name", "old", "new"),
    [
        ("upgraded vllm 0.8.5 -> 0.9.0", "vllm", "0.8.5", "0.9.0"),
        ("updating vllm 0.8.5 to 0.9.0", "vllm", "0.8.5", "0.9.0"),
        ("upgraded vllm from 0.8.5 to 0.9.0", "vllm", "0.8.5", "0.9.0"),
        ("upgraded vllm==0.8.5 to 0.9.0", "vllm", "0.8.5", "0.9.0"),
        ("vllm 0.8.5 was fine\nthen I upgraded vllm 0.8.5 to 0.9.0", "vllm", "0.8.5", "0.9.0"),
        ("downgraded flash-attn 2.8.0 to 2.7.4", "flash-attn", "2.8.0", "2.7.4"),
        ("upgraded from flash_attn 2.7.4.post1 to 2.8.0", "flash-attn", "2.7.4.post1", "2.8.0"),
    ],
)
def test_a_step_leaves_the_release_that_it_leads_to(
    words: str, name: str, old: str, new: str
) -> None:
    told = versions(words)
    assert (told[f"pkg:{name}"], told[f"before:{name}"]) == (new, old)


@pytest.mark.parametrize(
    "words",
    [
        "nobody upgraded vllm from 0.8.5 to 0.9.0", "we have not upgraded vllm 0.8.5 to 0.9.0",
        "you should upgrade; updating vllm 0.8.5 to 0.9.0 fixed it",
        "I am thinking of upgrading vllm 0.8.5 to 0.9.0",
    ],
)  # fmt: skip
def test_a_step_that_was_not_made_is_none(words: str) -> None:
    told = versions(words)
    assert "before:vllm" not in told and told.get("pkg:vllm") != "0.9.0"


@pytest.mark.parametrize(
    "words",
    [
        "nobody upgraded torch from 2.5.1 to 2.6.0", "I never upgraded torch from 2.5.1 to 2.6.0",
        "we haven't upgraded torch from 2.5.1 to 2.6.0", "might upgrade torch from 2.5.1 to 2.6.0",
    ],
)  # fmt: skip
def test_a_torch_that_nobody_changed_is_not_the_new_one(words: str) -> None:
    assert versions(words).get("torch") != "2.6.0"


def test_a_denial_further_up_leaves_the_step() -> None:
    words = "it does not work since I upgraded torch from 2.5.1 to 2.6.0"
    assert versions(words)["torch"] == "2.6.0"


@pytest.mark.parametrize(
    ("words", "built"),
    [
        ("it was built from source", set()),
        ("everything is installed from source", set()),
        ("it was built from source. flash-attn was built from source", {"flash-attn"}),
        ("flash_attn 2.5.6 compiled from source", {"flash-attn"}),
        ("I built vllm from source, and apex was built from source", {"vllm", "apex"}),
        ("I have not built vllm from source", set()),
    ],
)
def test_of_a_build_from_source_only_packages_are_named(words: str, built: set[str]) -> None:
    flag = "flag:built-from-source"
    assert {
        key.removeprefix(f"{flag}:") for key in versions(words) if key.startswith(flag)
    } == built


@pytest.mark.parametrize(
    "words",
    [
        "vllm does not require libcudart.so.12 any more", "built against libcudart.so.12 all ok",
        "vllm no longer tries to open libcudart.so.12", "it isn't missing libcudart.so.12",
        "linked against libcudart.so.12 without errors", "it requires libcudart.so.12",
        "it does not require GLIBC_2.32",
    ],
)  # fmt: skip
def test_a_library_that_is_only_named_is_not_missing(words: str) -> None:
    assert not read_paste(words).mentions


@pytest.mark.parametrize(
    "words",
    [
        "import fails: it requires libcudart.so.12", "error, built against libcudart.so.12",
        "it tries to open libcudart.so.12", "import vllm 报错, it depends on libcudart.so.12",
        "vllm is linked to libcudart.so.12 but I have CUDA 13", "it does not find libcudart.so.12",
    ],
)  # fmt: skip
def test_a_library_in_a_sentence_of_failure_is_missing(words: str) -> None:
    first = read_paste(words).mentions[0]
    assert (first.what, first.library) == ("missing-library", "libcudart.so.12")


@pytest.mark.parametrize(
    "words",
    [
        "Not on Jetson but on x86", "this isn't a Jetson", "no JetPack 5.1 here",
        "no docker container", "without a docker container", "not from conda",
        "I never used conda install", "not on Windows", "sliding windows", "Sliding Windows",
        "local windows of attention", "不是 Jetson",
    ],
)  # fmt: skip
def test_what_is_denied_is_no_flag(words: str) -> None:
    told = versions(words)
    assert not [key for key in told if key.startswith("flag:")] and "jetpack" not in told


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("Jetson, torch 2.1.0", "flag:jetson"),
        ("it does not work on Jetson", "flag:jetson"),
        ("not only on Jetson", "flag:jetson"),
        ("no conda here\nit is a Jetson", "flag:jetson"),
        ("works on the host, but not in the docker image", "flag:image"),
        ("in a docker container", "flag:container"),
        ("installed from conda", "flag:from-conda"),
        ("Windows 11", "flag:windows-told"),
        ("on windows", "flag:windows-told"),
        ("windows 10, python 3.10", "flag:windows-told"),
        ("我在windows上", "flag:windows-told"),
        ("sliding windows, on Windows 11", "flag:windows-told"),
        ("import does not work on Windows", "flag:windows-told"),
    ],
)
def test_what_is_told_stays_a_flag(words: str, flag: str) -> None:
    assert flag in versions(words)


def test_the_word_jetson_beside_a_torch_of_the_index_is_no_board() -> None:
    assert "flag:jetson" not in versions("like the Jetson report, torch 2.5.1+cu124")
    assert "flag:jetson" in versions("Jetson AGX Orin, torch 2.5.1+cu124")
    assert "flag:jetson" in versions("Jetson, JetPack 6.1, torch 2.5.1+cu124")
    assert "flag:jetson" in versions("Jetson, torch 2.1.0a0+41361538.nv23.06")


def test_a_second_package_that_was_built_from_source_is_built_again() -> None:
    file = "/x/site-packages/vllm/_C.abi3.so"
    text = f"ImportError: {file}: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    kept = first(text, "apex was built from source, vllm was built from source").help
    assert any(command.endswith("--force-reinstall .") for command in kept)
    assert not any("--upgrade" in command for command in kept)
    assert any("--upgrade" in command for command in first(text, "it was built from source").help)
