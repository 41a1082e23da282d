"""``why`` on files that the loader refuses and modules that Python does not find."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support.asking import first, said
from trees import make_distribution, make_prefix, make_venv

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

TORCH = "/x/lib/python3.10/site-packages/torch/lib/libtorch_cpu.so"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of an environment."""
    return make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))


def here(text: str, site: Path) -> Answer:
    python = str(site.parents[2] / "bin" / "python")
    return explain([text], python, {}, where="here").answers[0]


@pytest.mark.parametrize(
    ("line", "kind", "code"),
    [
        (f"ImportError: {TORCH}: invalid ELF header", "damaged-file", "FA208"),
        (f"ImportError: {TORCH}: file too short", "damaged-file", "FA102"),
        (f"OSError: {TORCH}: wrong ELF class: ELFCLASS32", "wrong-machine", "FA101"),
        (f"OSError: {TORCH}: ELF load command address/offset not properly aligned",
         "elf-loader", "FA104"),
        (f"ImportError: {TORCH}: cannot enable executable stack as shared object requires: "
         "Invalid argument", "elf-loader", "FA105"),
        (f"ImportError: {TORCH}: cannot allocate memory in static TLS block",
         "elf-loader", "FA107"),
        (f"ImportError: {TORCH}: failed to map segment from shared object: Operation not "
         "permitted", "elf-loader", "FA890"),
        (f"ImportError: {TORCH}: CPU ISA level is lower than required", "wrong-machine", "FA101"),
    ],
)  # fmt: skip
def test_each_refusal_has_its_kind_and_is_torchs_where_the_file_is(
    line: str, kind: str, code: str
) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.owner) == (kind, code, "torch")
    assert answer.direction == "none" and answer.help


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>not found</html>", "page of HTML"),
        (bytes(64), "zeros"),
        (b"PK\x03\x04 and more bytes", "zip archive"),
    ],
)
def test_a_damaged_file_here_is_looked_into(start: bytes, words: str, site: Path) -> None:
    file = site / "spam.so"
    file.write_bytes(start)
    answer = here(f"ImportError: {file}: invalid ELF header", site)
    assert (answer.kind, answer.confidence) == ("damaged-file", "high")
    assert words in answer.cause and start[:8].hex(" ") in answer.cause


def test_a_file_that_is_whole_again_is_no_certain_answer(site: Path) -> None:
    file = site / "spam.so"
    file.write_bytes(b"\x7fELF" + bytes(60))
    answer = here(f"ImportError: {file}: invalid ELF header", site)
    assert answer.confidence == "medium" and "replaced since" in answer.cause


def test_a_fifo_in_the_place_of_the_file_is_not_waited_for(site: Path) -> None:
    import os

    file = site / "spam.so"
    os.mkfifo(file)
    assert here(f"ImportError: {file}: invalid ELF header", site).kind == "damaged-file"


def test_a_script_of_the_linker_is_told_as_one() -> None:
    answer = first("OSError: /usr/lib/x86_64-linux-gnu/libc.so: invalid ELF header")
    assert "script for the linker" in answer.cause


def test_a_module_with_another_pythons_tag_here_is_found(site: Path) -> None:
    make_distribution(site, "flash-attn", "2.5.8", [])
    wrong = site / "flash_attn_2_cuda.cpython-34m-x86_64-linux-gnu.so"
    wrong.write_bytes(b"\x7fELF")
    answer = here("ModuleNotFoundError: No module named 'flash_attn_2_cuda'", site)
    assert (answer.kind, answer.code, answer.owner) == ("python-abi", "FA401", "flash-attn")
    assert str(wrong) in answer.cause and answer.confidence == "high"
    assert "flash-attn==2.5.8" in answer.help[0]


def test_a_package_here_without_its_module_is_half_installed(site: Path) -> None:
    make_distribution(site, "flash-attn", "2.5.8", [])
    answer = here("ModuleNotFoundError: No module named 'flash_attn_2_cuda'", site)
    assert (answer.kind, answer.code, answer.confidence) == ("damaged-file", "FA880", "high")
    assert "flash-attn 2.5.8" in answer.cause


def test_elsewhere_two_causes_fit_and_a_command_parts_them() -> None:
    answer = first("ModuleNotFoundError: No module named 'flash_attn_2_cuda'")
    assert (answer.kind, answer.confidence) == ("damaged-file", "medium")
    assert "Two causes" in answer.cause and "flash_attn_2_cuda*.so" in answer.help[0]


def test_an_extension_beside_the_wheel_is_built_by_itself() -> None:
    answer = first("ModuleNotFoundError: No module named 'dropout_layer_norm'")
    assert answer.owner == "flash-attn" and "subdirectory=csrc/layer_norm" in answer.help[0]


def test_flash_attention_3_is_not_built_from_flash_attn() -> None:
    answer = first("ModuleNotFoundError: No module named 'flash_attn_3_cuda'")
    assert answer.owner == "flash-attn-3" and "subdirectory=hopper" in said(answer)


def test_a_package_that_is_not_installed_is_said_to_be() -> None:
    answer = first("ModuleNotFoundError: No module named 'flash_attn'")
    assert (answer.owner, answer.direction) == ("flash-attn", "none")
    assert "not installed" in answer.cause


def test_static_tls_is_not_memory_and_no_shim_is_typed() -> None:
    answer = first(
        "OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS "
        "block"
    )
    assert "not a lack of memory" in answer.cause and "LD_PRELOAD=" not in said(answer)
    assert first("ImportError: dlopen: cannot load any more object with static TLS").code == "FA107"


def test_a_cache_below_the_home_directory_is_removed_by_words_of_the_shell() -> None:
    answer = first("ImportError: ~/.triton/cache/ab12/cuda_utils.so: file too short")
    words = shlex.split(answer.help[0])
    assert words == ["rm", "-r", "~/.triton/cache"] and "'~" not in answer.help[0]


def test_a_hostile_path_stays_one_word_of_the_shell() -> None:
    path = "/x/$(touch${IFS}pwned);`id`/libspam.so"
    answer = explain([f"OSError: {path}: invalid ELF header"], None, where="here").answers[0]
    for command in answer.help:
        words = shlex.split(command)
        assert not any(word.startswith(("$(", "`")) for word in words), command


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ModuleNotFoundError: No module named 'pointnet2._ext'", "damaged-file"),
        ("ModuleNotFoundError: No module named 'quant_cuda'", "damaged-file"),
        ("ImportError: cannot import name '_C' from 'groundingdino' (/x/__init__.py)",
         "damaged-file"),
        ("ModuleNotFoundError: No module named 'torchvision.transforms.functional_tensor'",
         "api-change"),
        ("ModuleNotFoundError: No module named 'some_package'", "python-abi"),
    ],
)  # fmt: skip
def test_compiled_parts_are_told_from_plain_ones_by_their_names(line: str, kind: str) -> None:
    assert first(line).kind == kind


def test_a_package_of_unknown_name_is_not_installed_by_a_guess() -> None:
    # The distribution of a module's name may be somebody else's.
    for line in (
        "ModuleNotFoundError: No module named 'pointnet2._ext'",
        "ImportError: /x/site-packages/spam/_C.so: invalid ELF header",
    ):
        commands = [text for text in first(line).help if "install" in text]
        assert not any("spam" in text or "pointnet2" in text for text in commands)


def test_a_caught_error_is_looked_for_and_not_guessed() -> None:
    answer = first("NameError: name '_C' is not defined")
    assert (answer.code, answer.confidence) == ("FA886", "medium")
    assert "caught" in answer.cause


@pytest.mark.parametrize(
    ("path", "owner", "words"),
    [
        ("/home/a/anaconda3/lib/python3.8/site-packages/torch/lib/../../../../libcufft.so.10",
         "cufft", "the file itself is broken"),
        ("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "nvml", "container"),
        ("/x/site-packages/torch/lib/libtorch_cpu.so", "torch", "torch's own"),
    ],
)  # fmt: skip
def test_a_damaged_library_is_its_own_makers(path: str, owner: str, words: str) -> None:
    answer = first(f"OSError: {path}: file too short")
    assert (answer.kind, answer.owner) == ("damaged-file", owner)
    assert words in answer.notes[0]


def test_a_module_that_torch_should_have_built_is_a_build_that_failed() -> None:
    answer = first(
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/torch/utils/cpp_extension.py", line 1079, in _import_module\n'
        "    file, path, description = imp.find_module(module_name, [path])\n"
        "ImportError: No module named 'fused_spam'"
    )
    assert (answer.kind, answer.code, answer.owner) == ("missing-library", "FA883", "fused_spam")
    assert answer.help[0] == "rm -r ~/.cache/torch_extensions/*/fused_spam"


def test_python_2_names_the_whole_path_where_the_package_is_missing() -> None:
    answer = first("ImportError: No module named torch.utils.cpp_extension")
    assert (answer.code, answer.owner) == ("FA880", "torch")
    assert "not installed" in answer.cause


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/o/env/lib/python3.9/site-packages/torch/lib/../../../../libmkl_core.so",
         "conda install -p /o/env --force-reinstall mkl"),
        ("/h/miniconda3/envs/e/lib/libcufft.so.10", "grep -lF lib/libcufft.so.10"),
        ("/h/R/4.0/site-library/torch/deps/liblantern.so", "install_torch(reinstall = TRUE)"),
        ("/h/lib/python3.9/site-packages/spam/core.so",
         "/h/lib/python3.9/site-packages/*.dist-info/RECORD"),
        ("/h/lib/python3.9/site-packages/torch/lib/libc10.so", "--force-reinstall"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_put_back_by_whoever_installed_it(path: str, command: str) -> None:
    for words in ("invalid ELF header", "file too short"):
        answer = first(f"OSError: {path}: {words}")
        assert any(command in text for text in answer.help), answer.help
    assert "df -h" in answer.help[0]


def test_a_path_that_is_said_twice_is_one() -> None:
    path = "/h/R/4.0/site-library/torch/deps/liblantern.so"
    answer = first(f"{path} - {path}: file too short")
    assert path in answer.help[0] and f"{path} - " not in answer.help[0]


def test_a_source_package_is_reinstalled_with_torch_in_sight() -> None:
    answer = first("OSError: /x/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: "
                   "file too short")  # fmt: skip
    install = next(text for text in answer.help if "install" in text)
    assert "--no-build-isolation" in install


@pytest.mark.parametrize(
    "library",
    ["/h/miniconda3/envs/e/bin/../lib/libstdc++.so.6",
     "/h/miniconda3/envs/e/lib/python3.9/site-packages/x/../../.././libstdc++.so.6"],
)  # fmt: skip
def test_condas_own_older_libstdcxx_is_replaced_in_that_environment(library: str) -> None:
    answer = first(f"ImportError: {library}: version `GLIBCXX_3.4.32' not found (required by "
                   "/h/.cache/torch_extensions/py39_cu117/a/a.so)")  # fmt: skip
    assert any("conda install -p /h/miniconda3/envs/e " in text for text in answer.help)
    assert not any("LD_LIBRARY_PATH=" in text for text in answer.help)  # its RPATH goes before
    assert "compiled on this machine" in said(answer)


def test_conda_is_not_offered_where_it_has_nothing() -> None:
    answer = first(
        "[root@board-riscv64 x]# python a.py",
        "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found "
        "(required by /u/lib/python3.11/site-packages/torch/lib/libtorch_python.so)",
    )
    assert not any("conda " in text for text in answer.help)
    assert "riscv64" in said(answer)


def test_a_refused_wheel_has_two_ways_round() -> None:
    answer = first("ERROR: spam-1.0-cp310-cp310-linux_x86_64.whl is not a supported wheel on this "
                   "platform.")  # fmt: skip
    assert "python=3.10" in said(answer)


def test_an_older_processor_is_told_in_shells_words_too() -> None:
    for line in (
        "zsh: illegal hardware instruction  python x.py",
        "Illegal instruction (core dumped) at import torch",
    ):
        assert first(line).code == "FA101"
    assert first("CUDA error: an illegal instruction was encountered").code != "FA101"
