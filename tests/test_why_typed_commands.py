"""Commands of a text are typed again only where it ran them, and where they build something."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.why import explain

FAILS = (
    "ImportError: /x/site-packages/foo_ops.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
    "_ZN3c104cuda9SetDeviceEi\n"
)
ADDRESS = "git+https://github.com/me/foo_ops.git"


def typed(text: str) -> str:
    return "\n".join(explain([text], "/usr/bin/python3", {}).answers[0].help)


@pytest.mark.parametrize(
    "words",
    [
        f"In the issue someone did: pip install {ADDRESS}",
        f"pip install {ADDRESS} is broken, so I removed it",
        f"pip install {ADDRESS}\npip install {ADDRESS.replace('/me/', '/you/')}",
        "$ pip install git+https://token@github.com/me/foo_ops.git",
    ],
)
def test_an_address_in_a_sentence_or_with_a_secret_is_not_typed(words: str) -> None:
    assert "git+" not in typed(FAILS + words)


@pytest.mark.parametrize("before", ["", "$ ", "(venv) u@h:~$ ", "!"])
def test_the_address_of_a_command_is_typed(before: str) -> None:
    assert ADDRESS in typed(f"{FAILS}{before}pip install {ADDRESS}")


def test_a_package_in_a_directory_of_a_repository_is_known_by_that() -> None:
    address = "git+https://github.com/e/Pointnet2_PyTorch.git#subdirectory=pointnet2_ops_lib"
    file = "/v/lib/python3.10/site-packages/pointnet2_ops/_ext.cpython-310-x86_64-linux-gnu.so"
    failing = f"ImportError: {file}: undefined symbol: _ZN3c1017RegisterOperatorsD1Ev\n"
    assert address in typed(f"pip install {address}\n{failing}torch 2.3.0")


@pytest.mark.parametrize(
    "words",
    [
        "Should I run conda install pytorch?",
        "My friend typed conda install pytorch, and it works for him.",
        "torch 2.1.0+cu121, torch 2.4.0. Should I run `conda install pytorch=2.1.0`?",
        "I never ran `conda install pytorch`.",
    ],
)
def test_conda_in_a_question_or_of_others_is_no_torch_of_conda(words: str) -> None:
    help_ = typed(FAILS + words)
    assert "conda update" not in help_ and "uninstall" not in help_


@pytest.mark.parametrize(
    "command",
    ["pip uninstall torch", "sh -c reboot", "make clean", "python setup.py install --prefix=/usr"],
)
def test_what_sudo_did_else_than_build_is_not_typed(command: str) -> None:
    assert command not in typed(f"$ sudo {command}\nModuleNotFoundError: No module named 'torch'")


def test_a_build_under_sudo_is_typed_without_it() -> None:
    help_ = typed("$ sudo sh build.sh\nModuleNotFoundError: No module named 'torch'")
    assert help_.splitlines()[-1] == "sh build.sh"


@pytest.mark.parametrize(
    "command",
    ["$ cd foo && python setup.py develop --uninstall",
     "$ LD_PRELOAD=/x.so python setup.py install", "Do not run this:\npython setup.py install",
     "$ python setup.py install --root=/"],
)  # fmt: skip
def test_what_builds_nothing_here_is_no_build_of_the_text(command: str) -> None:
    assert "built_by" not in read_paste(command).versions
