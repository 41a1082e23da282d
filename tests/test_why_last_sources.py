"""Sources and commands of a text: only what it typed, and only for the package that fails."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

GONE = "ModuleNotFoundError: No module named 'torch'"
SITE = "/opt/v/lib/python3.10/site-packages"
FOO = f"{SITE}/foo_ext.cpython-310-x86_64-linux-gnu.so"
DEVICE = "undefined symbol: _ZN3c104cuda9SetDeviceEab"
MISMATCH = (
    "The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch "
    "(12.1). Please make sure to use the same CUDA versions."
)


@pytest.mark.parametrize(
    "above",
    [
        "I installed CUDA by sudo sh cuda_11.8.0_520.61.05_linux.run and it worked.\n$ python t.py",
        "$ sudo sh cuda_11.8.0_520.61.05_linux.run",
        "$ sudo pip install torch\nSuccessfully installed\n$ python train.py",
        "$ sudo pip install torch==2.5.1",
        "I did not use sudo make at all here. sudo apt is ok",
        "$ sudo make\nok\n(venv) me@host:~/x$ python train.py",
        "sudo make works as well",
    ],
)
def test_what_sudo_ran_elsewhere_is_not_what_failed(above: str) -> None:
    answer = first(above, GONE, "torch 2.5.1")
    assert "sudo, which takes" not in answer.cause
    assert not any(text.startswith(("sh ", "make")) for text in answer.help)


@pytest.mark.parametrize("command", ["sh build.sh", "make install", "./make.sh"])
@pytest.mark.parametrize("prompt", ["$ ", "me@host:~/x$ ", ""])
def test_the_command_right_above_ran_under_sudo(prompt: str, command: str) -> None:
    """sudoers(5): secure_path. What lies in the environment was not looked at."""
    answer = first(f"{prompt}sudo {command}", '  File "setup.py", line 2, in <module>', GONE)
    assert command in answer.help and "secure_path" in answer.cause
    assert "is whole" not in said(answer)


@pytest.mark.parametrize(
    "line",
    [
        "pip install git+https://github.com/huggingface/transformers",
        "Do not run pip install git+https://github.com/evil/foo-ext",
        "Should I pip install git+https://github.com/evil/foo-ext",
        "pip install git+https://github.com/a/foo-ext@$(x)#egg=y",
    ],
)
def test_a_repository_of_another_package_compiles_nothing(line: str) -> None:
    answer = first("torch 2.4.0", line, f"ImportError: {FOO}: {DEVICE}")
    assert "git+https" not in said(answer) and "from its repository" not in said(answer)


@pytest.mark.parametrize(
    "address",
    [
        "git+https://github.com/me/foo-ext",
        "git+https://github.com/me/foo_ext.git@v1.2",
        "git+https://github.com/me/x#egg=foo-ext",
    ],
)
def test_the_files_own_repository_is_among_several(address: str) -> None:
    other = "pip install git+https://github.com/huggingface/diffusers"
    text = ("torch 2.4.0", other, f"pip install {address}", f"ImportError: {FOO}: {DEVICE}")
    typed = " ".join(first(*text).help)
    assert address in typed and "diffusers" not in typed


@pytest.mark.parametrize(
    "line",
    [
        "cd / && python setup.py install",
        "cd - && python3 setup.py install",
        "cd .. && python setup.py install",
        "cd ext/.. && python setup.py install",
        "cd ~/ && python setup.py install",
        "cd /home/me && python setup.py install",
        "Do I have to cd ~/x && python setup.py install here?",
        "Looks like `python setup.py install` fails",
        "cd a && python setup.py install\n$ cd b && python setup.py install",
    ],
)
def test_no_build_directory_is_removed_where_none_is_named(line: str) -> None:
    assert "built_by" not in read_paste(line).versions
    assert "setup.py install" not in " ".join(first(line, MISMATCH).help)


@pytest.mark.parametrize(
    ("line", "folder", "run"),
    [
        ("cd ops/pn2 && python setup.py install", "cd ops/pn2 && ", ""),
        ("$ cd a && cd b && python setup.py install", "cd a && cd b && ", ""),
        ("cd / ; python setup.py install\n$ cd ext && python setup.py install", "cd ext && ", ""),
        ("MMCV_WITH_OPS=1 python setup.py install", "", "MMCV_WITH_OPS=1 "),
    ],
)
def test_the_texts_own_build_is_kept_whole(line: str, folder: str, run: str) -> None:
    typed = [text for text in first(line, MISMATCH).help if "rm -rf build" in text]
    assert typed and all(t.startswith(f"{folder}test -f setup.py && rm -rf build") for t in typed)
    assert all(run in text for text in typed)


@pytest.mark.parametrize(
    ("frame", "file"),
    [
        ("/home/vllm/vllm/x.py", f"{SITE}/vllm/_C.abi3.so"),
        ("/data/src/vllm/vllm/x.py", f"{SITE}/vllm/_C.abi3.so"),
        ("/home/vllm/vllm/x.py", "_C.abi3.so"),
        ("/data/vllm/vllm/setup.py", "_C.abi3.so"),
        ("/data/vllm/vllm/tests/a.py", "_C.abi3.so"),
        ("/home/me/vllm/__init__.py", "_C.abi3.so"),
    ],
)
def test_no_tree_is_built_that_the_failing_file_is_not_of(frame: str, file: str) -> None:
    step = f'  File "{frame}", line 6, in <module>'
    typed = " ".join(first("torch 2.4.0, vllm", step, f"ImportError: {file}: {DEVICE}").help)
    assert "rm -rf /" not in typed and " -e /" not in typed


def test_the_tree_of_the_failing_file_is_looked_at_first() -> None:
    step = '  File "/data/vllm/vllm/engine/x.py", line 6, in <module>'
    answer = first("torch 2.4.0", step, f"ImportError: /data/vllm/vllm/_C.abi3.so: {DEVICE}")
    for text in answer.help:
        if "rm -rf /data/vllm/build" in text:
            assert text.startswith("test -f /data/vllm/setup.py && rm -rf")
    assert "the newest release of vllm" not in said(answer)
