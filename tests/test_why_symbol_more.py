"""``why`` on symbols: names that no release is wrong for, ended packages, torches of one's own.

The releases are those of ``nm -D`` over torch's wheels; the line numbers are those of torch's own
Python files in them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import first_here

from fa_forensics.facts.paste import read_paste

DATA = Path(__file__).parents[1] / "fa_forensics/data"
ZEROS = (
    "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEENS6_"
    "INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE"
)
OLD_CHECK = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
PACKED = "/x/lib/python3.10/site-packages"


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("- torch **2.13.0**, triton **3.7.1**", "2.13.0"),
        ("torch.version = 1.10.0.dev20210812+cu111", "1.10.0.dev20210812+cu111"),
        ("I built a 1.12.0 version of pytorch", "1.12.0"),
        ("torch 2.6 cu126", "2.6+cu126"),
        ("A100, image py310-torch231-cu121", "2.3.1+cu121"),
        (" - PyTorch Version (e.g., 1.0): 2.3.0a0+git4aa1f99", "2.3.0a0+git4aa1f99"),
        ("# replace PyTorch 1.7 by a nightly\n\nPyTorch 1.8 nightly", "1.8.0.dev"),
        ('File "/p/torch/_ops.py", line 255, in load_library', "1.12.1"),
        ('File "/p/torch/_ops.py", line 573, in load_library\ntorch 2.0.1', "2.0.1"),
    ],
)
def test_the_torch_of_a_text_is_read(text: str, torch: str) -> None:
    assert read_paste(text).versions["torch"] == torch


def test_line_numbers_are_of_releases_on_record() -> None:
    table = json.loads((DATA / "torch_lines.json").read_text(encoding="utf-8"))
    for row in table["rows"]:
        assert all(first <= last for first, last in row["lines"].values())
        assert row["lines"]["1.12.1"] != row["lines"]["1.13.0"]


def test_a_window_is_judged_by_the_traceback(bare: str) -> None:
    lines = f'File "{PACKED}/torch/_ops.py", line 255, in load_library\n'
    answer = first_here(f"{lines}OSError: {PACKED}/q/libq.so: undefined symbol: {ZEROS}", bare)
    assert (answer.direction, answer.confidence) == ("file-newer", "medium")


def test_a_name_that_all_have_is_no_matter_of_releases(bare: str) -> None:
    symbol = "_ZN3c104cuda20getCurrentCUDAStreamEa"
    answer = first_here(f"ImportError: undefined symbol: {symbol}\n\nPyTorch 2.7.1", bare)
    assert (answer.code, answer.direction, answer.confidence) == ("FA210", "none", "medium")
    assert "libc10_cuda.so" in answer.cause and "newer" not in answer.cause
    assert "readelf -d" in answer.help[0]


def test_another_entry_point_is_no_successor(bare: str) -> None:
    answer = first_here("ImportError: undefined symbol: _ZN2at6mm_outERNS_6TensorERKS0_S3_", bare)
    assert not any("took its place" in note for note in answer.notes)


def test_a_readable_name_finds_its_twin(bare: str) -> None:
    string = (
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&"
    )
    name = f"c10::Error::Error({string}, {string}, void const*)"
    answer = first_here(f"error: undefined reference to `{name}'", bare)
    assert answer.code == "FA301"
    assert any("-D_GLIBCXX_USE_CXX11_ABI=0" in note for note in answer.notes)


def test_letters_that_look_alike_are_exchanged(bare: str) -> None:
    symbol = "_ZNK3c106lValue23reportToTensorTypeErrorEv"
    answer = first_here(
        f"ImportError:/x/python3.7/site-packages/m.so: underfined symbol: {symbol}", bare
    )
    assert answer.symbol == symbol.replace("l", "I", 1)
    assert answer.direction == "file-newer"


def test_long_is_no_int64_on_a_mac(bare: str) -> None:
    file = "/p/site-packages/q/ext.cpython-38-darwin.so"
    symbol = "__ZNK2at10TensorBase8data_ptrIlEEPT_v"
    answer = first_here(
        f"ImportError: dlopen({file}, 0x0002): symbol not found in flat namespace ({symbol})", bare
    )
    assert "long long" in answer.cause and "int64_t" in answer.cause
    assert not any("torch>=" in text for text in answer.help)


def test_the_device_link_is_told_of_the_linker_too(bare: str) -> None:
    name = "__cudaRegisterLinkedBinary_300b4dcc_7_main_cu_3fe1c8bc_1835068"
    answer = first_here(f"main.cudafe1.cpp:(.text+0x15): undefined reference to `{name}'", bare)
    assert "-rdc=true" in answer.cause and "main.cu" in answer.cause


def test_ffmpeg_owns_its_names(bare: str) -> None:
    answer = first_here(
        "/x/libtorchcodec_decoder4.so: undefined symbol: av_channel_layout_default", bare
    )
    assert answer.owner == "ffmpeg"


def test_a_name_hidden_before_is_not_said_to_be_newer(bare: str) -> None:
    symbol = "_ZN2at4cuda4blas19_cublasGetErrorEnumE14cublasStatus_t"
    answer = first_here(f"ImportError: undefined symbol: {symbol}", bare)
    assert answer.direction == "unknown" and "TORCH_CUDABLAS_CHECK" in answer.cause


def test_a_package_that_ended_comes_with_its_torch(bare: str) -> None:
    file = f"{PACKED}/torchtext/lib/libtorchtext.so"
    symbol = "_ZN5torch3jit17parseSchemaOrNameERKSs"
    answer = first_here(f"OSError: {file}: undefined symbol: {symbol}", bare)
    assert "python -m pip install torch==2.3.1 torchtext==0.18.0" in answer.help
    assert not any("--upgrade" in text for text in answer.help)


@pytest.mark.parametrize(
    "told",
    ["Jetson Nano, torchaudio 0.13.0", "gfx803, torch 1.13.0", "I built pytorch, torch 1.13.0"],
)
def test_a_torch_of_ones_own_is_not_replaced(told: str, bare: str) -> None:
    file = f"{PACKED}/torchaudio/lib/libtorchaudio.so"
    answer = first_here(f"OSError: {file}: undefined symbol: {OLD_CHECK}\n\n{told}", bare)
    typed = "\n".join(answer.help)
    assert "--upgrade" not in typed and '"torch==' not in typed
    assert "git+https://github.com/pytorch/audio@v0.13.0" in typed


def test_a_libtorch_on_the_path_is_the_cause(bare: str) -> None:
    file = f"{PACKED}/torch_scatter/_version_cuda.so"
    text = (
        f"I add libtorch/lib to $LD_LIBRARY_PATH.\nOSError: {file}: undefined symbol: {OLD_CHECK}"
    )
    answer = first_here(text, bare)
    assert answer.code == "FA607" and answer.help[0].startswith("env -u LD_LIBRARY_PATH")


def test_the_macros_of_hidden_names_are_of_torchs_headers() -> None:
    table = json.loads((DATA / "hidden_names.json").read_text(encoding="utf-8"))
    assert all(row["macro"].startswith("TORCH_") for row in table["names"].values())


def test_two_distributions_of_one_module_are_both_removed(bare: str) -> None:
    text = (
        'ImportError: generic_type: cannot initialize type "Desc": an object with that name is '
        "already defined\n\ntorch-scatter  2.0.6\nspconv         2.3.6\nspconv-cu111   2.1.25\n"
    )
    answer = first_here(text, bare)
    assert answer.owner == "spconv"
    assert "uninstall -y spconv spconv-cu111" in answer.help[0]
