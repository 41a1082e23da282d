"""README.md shows what today's tool prints, and speaks of files, targets and codes that exist."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import readme
from fa_forensics import errors

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HELP = ["help", "help-inspect", "help-why"]
REPORTS = ["make-inspect", "broken", "why", "json"]


def block(name: str) -> str:
    found = readme.pattern(name).findall(README)
    assert len(found) == 1, f"README.md has {len(found)} blocks named {name}"
    text: str = found[0]
    return text


def masked(text: str) -> str:
    """The words of an output without what differs between machines that agree.

    Line breaks depend on the length of paths, the patch release is that of the Python at hand,
    and distributions keep libstdc++ in different directories.
    """
    words = " ".join(text.split())
    words = re.sub(r"Python 3\.(\d+)\.\d+", r"Python 3.\1", words)
    return re.sub(r"(/usr)?/lib(64)?(/x86_64-linux-gnu)?: ", "/lib: ", words)


def test_every_block_is_one_that_can_be_renewed() -> None:
    assert sorted(re.findall(r"<!-- begin ([\w-]+) -->", README)) == sorted(readme.BLOCKS)


@pytest.mark.parametrize("name", HELP)
def test_help_is_what_the_tool_prints(name: str) -> None:
    assert masked(block(name)) == masked(readme.BLOCKS[name]())


@pytest.mark.parametrize("name", REPORTS)
def test_report_is_what_the_tool_prints(name: str) -> None:
    if sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64":
        pytest.skip("README's reports are those of CPython 3.11 on x86_64")
    if name == "make-inspect":
        assert_no_torch_here()
    elif not (shutil.which("as") and shutil.which("ld")):
        pytest.skip("as and ld (GNU binutils), which build the stand-in torch, are not installed")
    assert masked(block(name)) == masked(readme.BLOCKS[name]())


def assert_no_torch_here() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is not None:
        pytest.skip("this Python has a torch; README shows the report of one without")


def test_benchmark_shows_the_rows_that_the_script_prints() -> None:
    from benchmarks.bench import LIMITS, commands

    shown = block("bench")
    for label, _, _ in commands("x.so", None):
        assert re.search(rf"^{re.escape(label)}  ", shown, re.MULTILINE), label
    assert len(re.findall(r": kept$", shown, re.MULTILINE)) == len(LIMITS)


def test_exit_codes_in_the_table_are_those_of_the_tool() -> None:
    table = README.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == codes


def test_layout_names_every_part_of_the_package_and_nothing_else() -> None:
    table = README.partition("## Layout")[2].partition("\n## ")[0]
    first_column = "".join(re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE))
    named = set(re.findall(r"`(\w+(?:\.py|/))`", first_column))
    package = ROOT / "fa_forensics"
    parts = {p.name for p in package.glob("*.py")} - {"__init__.py"}
    parts |= {f"{p.name}/" for p in package.iterdir() if p.is_dir() and p.name[0] not in "._"}
    assert named == parts


def test_links_lead_to_files_and_headings() -> None:
    headings = {
        re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (ROOT / target).is_file(), target


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^\$? ?make ([a-z-]+)|`make ([a-z-]+)", README, re.MULTILINE))
    assert {one or other for one, other in named} <= targets


def test_no_path_of_a_build_machine() -> None:
    assert not re.findall(r"(?<![\w.])/(?:root|work|tmp|mnt|builds?)/", README)
