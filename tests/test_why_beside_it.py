"""What a text's own versions say beside the answer: another release, a wheel, a flag, a shell."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

SITE = "/opt/py/lib/python3.10/site-packages"
OLD_TYPE_META = "_ZN6caffe28TypeMeta21_typeMetaDataInstanceIdEEPKNS_6detail12TypeMetaDataEv"
OLD_CHECK = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_ERROR = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
TAGGED = "+cu118torch1.12cxx11abi"


def first(text: str) -> Answer:
    return explain([text], "python3", {}).answers[0]


def missing(file: str, name: str, *lines: str) -> Answer:
    return first("\n".join((f"ImportError: {file}: undefined symbol: {name}", *lines)))


def notes(answer: Answer) -> str:
    return " ".join(answer.notes)


@pytest.mark.parametrize(
    ("line", "package", "version"),
    [
        ("Python 3.12, flash-attn 2.7.4.post1 wheel", "flash-attn", "2.7.4.post1"),
        ("flash-attn 2.7.4.post1 wheel", "flash-attn", "2.7.4.post1"),
        (
            "torch 2.3.0, mamba_ssm-1.2.0.post1+cu118torch2.3cxx11abiFALSE wheel, Python 3.10",
            "mamba-ssm",
            "1.2.0.post1+cu118torch2.3cxx11abiFALSE",
        ),
    ],
)
def test_a_wheel_in_a_list_of_versions_is_what_is_there(
    line: str, package: str, version: str
) -> None:
    assert read_paste(line).versions[f"pkg:{package}"] == version


@pytest.mark.parametrize(
    "line", ["there is no flash-attn 2.7.4 wheel for it", "we need a flash-attn 2.8.0 wheel"]
)
def test_a_wheel_that_is_spoken_of_is_not_there(line: str) -> None:
    assert "pkg:flash-attn" not in read_paste(line).versions


def test_a_wheel_for_a_torch_is_not_that_torch() -> None:
    assert "torch" not in read_paste("flash-attn 2.8.2 (cu128, torch 2.8 wheel), Ubuntu").versions


def test_cuda_is_read_with_marks_around_its_name() -> None:
    assert read_paste("- **CUDA version**: 12.2").versions["cuda"] == "12.2"


def test_of_two_flags_the_one_of_the_files_flavour_goes() -> None:
    flags = "flags: -D_GLIBCXX_USE_CXX11_ABI=1 -D_GLIBCXX_USE_CXX11_ABI=0"
    answer = missing("ext.cpython-310-x86_64-linux-gnu.so", OLD_CHECK, flags)
    assert "=0 and =1 both" in notes(answer) and "did not reach" not in notes(answer)
    answer = missing("ext.cpython-310-x86_64-linux-gnu.so", NEW_ERROR, flags)
    assert "of =1's flavour" in notes(answer)


def test_a_package_of_ones_own_that_is_from_source_is_compiled_again() -> None:
    told = "torch 2.8.0+cu128, shm_tensor_new_rdma (source)"
    answer = first(f"runtime error: undefined symbol: {OLD_CHECK}\n{told}")
    builds = [text for text in answer.help if "--no-build-isolation" in text]
    assert builds and answer.help.index(builds[0]) < 2
    assert "source directory of shm_tensor_new_rdma" in notes(answer)


def test_a_file_in_the_tree_of_an_editable_install_is_compiled_there() -> None:
    answer = missing(
        "lmcache/c_ops.cpython-312-x86_64-linux-gnu.so", OLD_CHECK,
        "I installed lmcache by source : pip3 install -e .", "torch 2.7.0", "lmcache 0.3.3",
    )  # fmt: skip
    assert any(text.endswith(" -e .") for text in answer.help)
    assert not any("--no-binary lmcache" in text for text in answer.help)


def test_the_release_that_is_compiled_is_told_where_it_is_not_the_texts() -> None:
    # pytorch3d's INSTALL.md: 0.3.0 names torch 1.4 to 1.7, 0.6.1 names 1.8.1 too.
    answer = missing(
        "_C.so", OLD_TYPE_META, "torch 1.8.1", "pytorch3d version: 0.3.0", "Python 3.8"
    )
    assert any(text.endswith("@v0.6.1") for text in answer.help)
    assert "The text has pytorch3d 0.3.0" in notes(answer)


def test_a_wheel_beside_it_for_another_torch_is_named() -> None:
    file = f"{SITE}/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so"
    conv = f"causal_conv1d-1.0.0{TAGGED}FALSE-cp310-cp310-linux_x86_64.whl"
    scan = f"mamba_ssm-1.0.1{TAGGED}TRUE-cp310-cp310-linux_x86_64.whl"
    answer = missing(file, NEW_ERROR, "pytorch=1.13.1+cu117", scan, conv)
    assert f"causal-conv1d 1.0.0{TAGGED}FALSE" in notes(answer)
    answer = missing(file, NEW_ERROR, "pytorch=1.12.1+cu116", scan, conv)
    assert "causal-conv1d" not in notes(answer)


def test_a_file_that_was_compiled_on_condas_torch_is_of_its_flavour() -> None:
    told = "torchaudio 0.13.1+b90d798 (compiled against conda pytorch 1.13.1)"
    file = f"{SITE}/torchaudio/lib/libtorchaudio.so"
    answer = missing(file, "_ZNK5torch8autograd4Node4nameB5cxx11Ev", "torch 1.13.1", told)
    assert "compiled against conda's torch" in notes(answer)


def test_a_torch_from_source_has_not_what_the_index_has_of_it() -> None:
    answer = missing(
        f"{SITE}/torchaudio/lib/libtorchaudio.so", "_ZNK5torch8autograd4Node4nameEv",
        "torch 1.12.0 (self-built), Python 3.8",
    )  # fmt: skip
    assert answer.direction == "other-flavour" and answer.provider is None


BANNER = (
    "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
    "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.2+cpu)"
)


@pytest.mark.parametrize(
    ("prompt", "setting"),
    [
        (r"(pia) PS E:\PIA> python run.py", "$env:XFORMERS_MORE_DETAILS = '1'"),
        (r"(pia) E:\PIA>python run.py", "set XFORMERS_MORE_DETAILS=1"),
    ],
)
def test_variables_are_set_as_the_shell_of_the_prompt_does(prompt: str, setting: str) -> None:
    # set is Set-Variable in PowerShell, and no variable of the environment.
    assert setting in first(f"{prompt}\n{BANNER}").help


def test_the_cuda_in_the_librarys_name_pins_the_sources() -> None:
    # bitsandbytes' pyproject.toml: Python 3.9 and newer since 0.46.
    text = (
        "CUDA SETUP: Highest compute capability among GPUs detected: 8.7\n"
        "/usr/local/lib/python3.8/dist-packages/bitsandbytes/libbitsandbytes_cuda114.so: "
        "cannot open shared object file: No such file or directory"
    )
    assert any("git clone -b 0.43.3 " in command for command in first(text).help)
