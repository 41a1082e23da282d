"""``why`` on what is no error: ordinary words, sentences, good news; and on names read badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from trees import make_prefix

from fa_forensics.cli import main
from fa_forensics.facts.paste import read_paste
from fa_forensics.why.tables import MOST_REPAIRS
from fa_forensics.why.texts import symbol_text

DEVICE = "_ZN3c104cuda9SetDeviceEi"
FLASH = f"ImportError: /x/flash_attn_2_cuda.so: undefined symbol: {DEVICE}"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment without torch."""
    return str(make_prefix(tmp_path_factory.mktemp("bare")).root)


def why(bare: str, *arguments: str, given: str | None = None) -> Result:
    command = ["why", "--python", bare, "--lang", "en", *arguments]
    return CliRunner().invoke(main, command, input=given)


def answers(bare: str, *arguments: str, given: str | None = None) -> list[dict[str, Any]]:
    result = why(bare, "--format", "json", *arguments, given=given)
    found: list[dict[str, Any]] = json.loads(result.stdout)["answers"]
    return found


@pytest.mark.parametrize("word", ["help", "hello", "Please", "torch", "flash_attn"])
def test_a_word_alone_is_no_symbol_and_removes_nothing(bare: str, word: str) -> None:
    result = why(bare, word)
    assert result.exit_code == 4
    assert "rm -rf" not in result.output and "[FA899]" in result.output


def test_a_package_is_to_be_inspected(bare: str) -> None:
    for package in ("torch", "flash_attn", "xformers"):
        assert answers(bare, package)[0]["help"] == [f"fa-forensics inspect {package}"]
    assert answers(bare, "PyTorch")[0]["help"] == ["fa-forensics inspect torch"]


@pytest.mark.parametrize(
    "name", ["cublasLtCreate", "ncclCommRegister", "PyUnicode_AsUTF8", "mha_fwd", "my_kernel_f"]
)
def test_a_bare_name_of_c_is_answered(bare: str, name: str) -> None:
    (answer,) = answers(bare, name)
    assert (answer["kind"], answer["symbol"]) != ("unrecognised", None)


def test_words_without_quotes_are_one_text(bare: str) -> None:
    assert answers(bare, "no", "kernel", "image", "is", "available")[0]["kind"] == "gpu-arch"


@pytest.mark.parametrize(
    "text",
    [
        "I get undefined symbol: error when importing",
        "undefined symbol: see below",
        "undefined symbol: please help",
        'docs: if you see "undefined symbol" then rebuild',
        "undefined symbol: SYMBOL",
        "undefined symbol: XXX",
    ],
)
def test_the_word_behind_is_not_the_name(bare: str, text: str) -> None:
    (answer,) = answers(bare, text)
    assert (answer["code"], answer["confidence"], answer["symbol"]) == ("FA886", "low", None)


@pytest.mark.parametrize(
    "text",
    [
        "x.so: undefined symbol: launch",
        "undefined symbol: launch (./x.so)",
        "ImportError: /x/y.so: undefined symbol: launch, version V_1",
        "undefined symbol: launch\nwhat now",
    ],
)
def test_a_short_name_in_the_loaders_own_line_is_the_name(text: str) -> None:
    assert read_paste(text).mentions[0].symbol == "launch"


DENIALS = (
    "After the rebuild there is no undefined symbol: everything works",
    'I never saw "GLIBC_2.34 not found" before; everything works',
    "libcudart.so.12: cannot open shared object file is NOT my problem. All good.",
    'This release removes the "no kernel image is available" error for sm_120.',
    "0 undefined symbols, no kernel image errors: none",
    "Fixes #12: undefined symbol errors no longer occur",
    'ldd -r x.so prints no "undefined symbol: ..." any more',
    "Build succeeded. nvcc fatal: none",
)


@pytest.mark.parametrize("text", DENIALS)
def test_good_news_is_no_error(bare: str, text: str) -> None:
    assert why(bare, text).exit_code == 4


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "I did not change anything but get undefined symbol: mha_fwd",
        "No undefined symbol any more, but now libcudart.so.12: cannot open shared object file",
        "I have never seen GLIBC_2.34 not found before, what is that",
        "Aborted (core dumped)   [no undefined symbol]",
        f"fixed undefined symbol: {DEVICE}",
        f"{DENIALS[0]}\n{FLASH}",
    ],
)
def test_an_error_beside_a_no_is_an_error(text: str) -> None:
    assert read_paste(text).mentions


@pytest.mark.parametrize(
    "name",
    [
        "_ZN3c1O4cuda9SetDeviceEi",
        "_ZN3cl04cuda9SetDeviceEi",
        "_2N3c104cuda9SetDeviceEi",
        "N3c104cuda9SetDeviceEi",
        DEVICE.lower(),
        f"x.so: undefined symbol: {DEVICE.lower()}",
        "x.so: undefined symbol: _ZN3c1O4cuda9SetDeviceEi",
    ],
)
def test_a_name_read_off_a_picture_is_that_of_torch(bare: str, name: str) -> None:
    (answer,) = answers(bare, name)
    assert (answer["symbol"], answer["owner"]) == (DEVICE, "torch/c10_cuda")
    assert "misspelt" in answer["notes"][0] and answer["confidence"] != "high"


def test_a_part_read_off_a_picture_is_put_right(bare: str) -> None:
    (answer,) = answers(bare, "_ZN2at4_ops5zeros4ca11EN3c108ArrayRefINS2_6SymIntEEE")
    assert answer["demangled"] == "at::_ops::zeros::call(c10::ArrayRef<c10::SymInt>)"
    assert "misspelt" in answer["notes"][0]


def test_a_name_that_torch_has_is_not_read_again(bare: str) -> None:
    (answer,) = answers(bare, DEVICE)
    assert not any("misspelt" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        ("x.so: undefined symbol: c10::cuda::SetDevice (int)", DEVICE),
        ("c10 :: cuda :: SetDevice(int)", DEVICE),
        ("x.so: undefined symbol: c10 :: cuda :: SetDevice(int)", DEVICE),
        (
            "a.o: undefined reference to `c10::cuda::SetDevice (signed char , bool)'",
            "_ZN3c104cuda9SetDeviceEab",
        ),
    ],
)
def test_blanks_in_a_readable_name_do_not_count(bare: str, text: str, symbol: str) -> None:
    assert answers(bare, text)[0]["symbol"] == symbol


def test_a_file_in_brackets_is_no_parameter_list() -> None:
    (mention,) = read_paste("undefined symbol: c10::cuda::SetDevice (./x.so)").mentions
    assert (mention.symbol, mention.file) == ("c10::cuda::SetDevice", "./x.so")


def test_a_backslash_at_the_end_of_a_line_continues_a_name() -> None:
    (mention,) = read_paste("x.so: undefined symbol: _ZN3c104cuda\\\n9SetDeviceEi\nok").mentions
    assert mention.symbol == DEVICE


def test_a_misread_version_and_library_are_told_and_put_right(bare: str) -> None:
    (glibc,) = answers(bare, "version `GL1BC_2.34' not found (required by /x/a.so)")
    assert glibc["code"] == "FA203" and "GLIBC_2.34" in glibc["cause"]
    assert "GL1BC_2.34" in glibc["notes"][0]
    text = "1ibcudart.so.l1.0: cannot open shared object file: No such file or directory"
    (cudart,) = answers(bare, text)
    assert cudart["owner"] == "cudart" and "libcudart.so.11.0" in cudart["cause"]
    assert not any("1ib" in command for command in cudart["help"])


def test_half_of_a_hostile_name_is_no_name() -> None:
    (mention,) = read_paste("lib$(id).so.1: cannot open shared object file").mentions
    assert mention.library is None
    path = "/home/u/a b'c\"d/libx.so"
    (mention,) = read_paste(f"ImportError: {path}: undefined symbol: {DEVICE}").mentions
    assert mention.file == path


def test_what_is_too_long_for_a_name_is_shown_in_part(bare: str) -> None:
    result = why(bare, "-", given="undefined symbol: _ZN3" + "abc3" * 50_000)
    assert len(result.output) < 3_000 and "rm -rf" not in result.output


def test_a_path_that_is_not_there_is_told(bare: str, tmp_path: Path) -> None:
    for name in (str(tmp_path / "nope.log"), "./nope.txt", "nope.log", str(tmp_path / "x.so")):
        result = why(bare, name)
        assert result.exit_code == 2 and "no such file" in result.output


def test_options_that_exclude_each_other_are_refused(bare: str) -> None:
    for options in (("--here", "--elsewhere"), ("--torch", "2.4.0", "--here")):
        result = why(bare, *options, DEVICE)
        assert result.exit_code == 2 and "exclude each other" in result.output
    assert why(bare, "--elsewhere", "--", "--here --elsewhere").exit_code == 4


def elsewhere(bare: str, text: str) -> tuple[str, dict[str, Any]]:
    result = why(bare, "--format", "json", "--elsewhere", text)
    document = json.loads(result.stdout)
    return document["note"], document["answers"][0]


def test_two_torches_of_a_text_are_both_named(bare: str) -> None:
    _, same = elsewhere(bare, f"PyTorch version: 2.4.0\n$ pip list\ntorch 2.9.1\n{FLASH}")
    assert "torch 2.4.0 and torch 2.9.1" in same["notes"][0]
    text = f"PyTorch version: 2.1.0\n$ pip list\ntorch 2.4.0\n{FLASH}"
    _, other = elsewhere(bare, text)
    _, alone = elsewhere(bare, f"PyTorch version: 2.1.0\n{FLASH}")
    order = ("low", "medium", "high")
    assert "torch 2.1.0 and torch 2.4.0" in other["notes"][0]
    assert order.index(other["confidence"]) <= order.index(alone["confidence"])
    assert other["confidence"] != "high"


def test_the_build_is_the_texts_own_or_said_to_be_of_the_index(bare: str) -> None:
    note, _ = elsewhere(bare, f"PyTorch version: 2.4.0\n{FLASH}")
    assert "the build that PyPI has of it (2.4.0+cu121)" in note
    note, _ = elsewhere(bare, f"PyTorch version: 2.4.0+cu118\n{FLASH}")
    assert "judged by torch 2.4.0+cu118, as the text says" in note


def test_a_list_of_torches_names_none(bare: str) -> None:
    lines = "\n".join(f"[{i}] INFO torch 2.{i % 12}.0 saved" for i in range(48))
    note, _ = elsewhere(bare, f"{lines}\n{FLASH}")
    assert "judged by the history" in note


def test_the_code_of_another_torch_is_shown(bare: str) -> None:
    result = why(bare, "--elsewhere", f"pip list: torch 2.1.0\n{FLASH}")
    assert "[FA607]" in result.output


def test_of_many_misspelt_names_the_first_few_are_put_right(
    bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def none_is_near(name: str, *_: object) -> None:
        asked.append(name)

    monkeypatch.setattr(symbol_text, "read_again", none_is_near)
    monkeypatch.setattr(symbol_text, "repaired", none_is_near)
    lines = (f"undefined symbol: _ZN3c104cuda9SetDevice{i}Ei" for i in range(300))
    assert answers(bare, "-", given="\n".join(lines))
    assert 0 < len(set(asked)) <= MOST_REPAIRS
