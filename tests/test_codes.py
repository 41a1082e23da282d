"""The codes: each one that is raised is explained, and each that is explained is raised."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fa_forensics.cli import main
from fa_forensics.facts.codes import read_codes

PACKAGE = Path(__file__).parent.parent / "fa_forensics"
RUNNER = CliRunner()


def raised() -> set[str]:
    """The codes in string literals of the package's modules, and in the words of its data."""
    found: set[str] = set()
    for path in [*PACKAGE.rglob("*.py"), *(PACKAGE / "data").glob("*.json")]:
        if path.name != "codes.json":
            found |= set(re.findall(r'"(FA\d{3})"', path.read_text(encoding="utf-8")))
    return found


def test_every_code_that_is_raised_is_explained_and_no_other() -> None:
    assert set(read_codes()) == raised()


def test_every_explanation_is_whole_in_both_languages() -> None:
    for code in read_codes().values():
        for text in (code.title, code.means, code.known_by, code.do):
            assert text and text == text.strip() and text.isascii(), code.code
        assert not code.title.endswith(".")
        for text in code.zh:
            assert re.search(r"[\u4e00-\u9fff]", text), code.code


def test_a_code_is_explained() -> None:
    result = RUNNER.invoke(main, ["explain", "FA301", "--lang", "en"])
    assert result.exit_code == 0
    assert "std::string" in result.output and "what to do" in result.output


@pytest.mark.parametrize("text", ["fa301", "[FA301]", "FA301"])
def test_a_code_is_known_as_people_paste_it(text: str) -> None:
    result = RUNNER.invoke(main, ["explain", text, "--format", "json"])
    assert [row["code"] for row in json.loads(result.output)["codes"]] == ["FA301"]


def test_a_family_is_explained_by_its_beginning() -> None:
    result = RUNNER.invoke(main, ["explain", "FA3xx", "--format", "json"])
    codes = [row["code"] for row in json.loads(result.output)["codes"]]
    assert codes == sorted(c for c in read_codes() if c.startswith("FA3"))


def test_without_a_code_all_are_listed_in_one_line_each() -> None:
    result = RUNNER.invoke(main, ["explain"])
    assert len(result.output.splitlines()) == len(read_codes())


def test_an_unknown_code_is_wrong_usage_with_the_nearest_offered() -> None:
    result = RUNNER.invoke(main, ["explain", "FA999"])
    assert result.exit_code == 2
    assert "FA999 is no code" in result.stderr and "FA90" in result.stderr


def test_the_language_is_the_locales_unless_it_is_asked_for() -> None:
    chinese = {"LC_ALL": "", "LC_MESSAGES": "", "LANGUAGE": "", "LANG": "zh_CN.UTF-8"}
    assert "含义" in RUNNER.invoke(main, ["explain", "FA201"], env=chinese).output
    assert "means" in RUNNER.invoke(main, ["explain", "FA201", "--lang", "en"], env=chinese).output
    plain = RUNNER.invoke(main, ["explain", "FA201"], env={**chinese, "LC_ALL": "C"})
    assert "means" in plain.output
