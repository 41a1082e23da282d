"""Chinese output: every sentence that can be said has a translation, and it is laid out well."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import render_samples as samples
from click.testing import CliRunner
from support.inspecting import validator
from support.sentences import sentences_in
from support.untranslated import EXCEPTIONS

import fa_forensics
from fa_forensics.cli import main
from fa_forensics.facts.owner import title_of
from fa_forensics.render.answers import CODE_WORDS, KIND_WORDS, answer_lines
from fa_forensics.render.lang import columns, plain, speaker
from fa_forensics.render.lang.translate import Words, is_prose, parse_template, words_of
from fa_forensics.render.style import painter
from fa_forensics.render.terminal import inspect_text
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

PACKAGE = Path(fa_forensics.__file__).parent
TABLE: dict[str, Any] = json.loads((PACKAGE / "data/zh.json").read_text(encoding="utf-8"))
HAN = re.compile("[\u4e00-\u9fff]")
RUNNER = CliRunner()


def dummies(template: str) -> str:
    """A template with a word of no language in each gap."""
    return re.sub(r"\{(\d)\}", r"Q\1", template)


def words() -> Words:
    """The shipped table, which also knows what the dummies are called."""
    named = {f"Q{number}": f"\u95ee{number}" for number in range(10)}
    return words_of({**TABLE["labels"], **named}, TABLE["sentences"])


def is_said(text: str, table: Words) -> bool:
    """Whether a text is Chinese but for names; the end of a sentence is known after its start."""
    said = table.say((f"Q9{text}" if text[0] in " ,:;." else text).rstrip(" "))
    return HAN.search(said) is not None and not is_prose(said.replace("not found", "_"))


@pytest.mark.parametrize("room", ["why", "rules"])
def test_every_sentence_of_the_sources_is_in_the_table(room: str) -> None:
    table = words()
    missing = [
        f"{path.name}: {text}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for text in sentences_in(path)
        if text.isascii() and text not in EXCEPTIONS and not is_said(dummies(text), table)
    ]
    assert not missing, "add to data/zh.json:\n" + "\n".join(missing)


def test_the_rows_of_the_table_are_sound() -> None:
    english = [row[0] for row in TABLE["sentences"]]
    assert len(english) == len(set(english))
    for old, new in [*TABLE["sentences"], *TABLE["labels"].items()]:
        parse_template(old, new)
        assert re.search("[\u3000-\uffef]|ABI", new) and old.isascii(), old
        # A name in quotes stands in both.
        assert re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", old) == sorted_as(old, new), old


def sorted_as(old: str, new: str) -> list[str]:
    """The options and variables of a translation, in the order of the original."""
    found = re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", new)
    order = re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", old)
    return sorted(found, key=lambda name: order.index(name) if name in order else -1)


def test_every_kind_code_and_owner_has_a_word() -> None:
    say = speaker("zh")
    for text in (*KIND_WORDS.values(), *CODE_WORDS.values(), "owner", "exported by", "see also"):
        assert HAN.search(say(text)), text
    for owner in ("libc", "libstdc++", "cudart", "python", "cuda-driver", "hip"):
        assert HAN.search(say(title_of(owner))), owner


ROWS = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "data").glob("cases_*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]


def test_public_reports_are_answered_in_chinese(bare: str) -> None:
    say = speaker("zh")
    left = []
    for row in ROWS:
        report = explain([row["error"]], bare, {})
        for answer in report.answers:
            changes = [other.change for other in answer.overloads if other.change]
            for text in (answer.cause, *answer.notes, *changes):
                said = say(text)
                if not HAN.search(said) or is_prose(said.replace("not found", "_")):
                    left.append(f"{row['id']}: {said}")
    assert not left, "\n".join(left)


def test_why_in_chinese(bare: str) -> None:
    text = "undefined symbol: _ZN3c104cuda9SetDeviceEi"
    result = RUNNER.invoke(main, ["why", "--python", bare, "--lang", "zh", text])
    assert result.exit_code == 0
    for label in (
        "\u662f\u4ec0\u4e48",
        "\u5c5e\u4e8e",
        "\u5bfc\u51fa\u8005",
        "\u542b\u4e49",
        "\u8bf7\u8f93\u5165",
    ):
        assert re.search(rf"^{label} ", result.output, re.MULTILINE)
    assert "torch 2.1.0 \u2013 2.2.2 \u5bfc\u51fa\u5b83" in result.output
    assert "c10::cuda::SetDevice(int)" in result.output and "[FA201]" in result.output
    answered = RUNNER.invoke(main, ["why", "--python", bare, "--format", "json", text])
    commands = json.loads(answered.output)["answers"][0]["help"]
    assert commands and all(command in result.output for command in commands)


def test_the_locale_chooses_and_json_stays(bare: str) -> None:
    arguments = ["why", "--python", bare, "_ZN3c104cuda9SetDeviceEi"]
    chinese = RUNNER.invoke(main, arguments, env={"LC_ALL": "zh_CN.UTF-8", "LANGUAGE": ""})
    assert "\u542b\u4e49" in chinese.output
    plain_text = RUNNER.invoke(main, arguments, env={"LC_ALL": "C", "LANGUAGE": "zh"})
    assert plain_text.output.isascii() or "means" in plain_text.output
    documents = [
        RUNNER.invoke(main, [*arguments, "--format", "json", "--lang", lang]).output
        for lang in ("en", "zh")
    ]
    assert documents[0] == documents[1]
    validator().validate(json.loads(documents[0]))


def test_chinese_lines_are_as_wide_as_the_window() -> None:
    cause = "\u8be5\u6587\u4ef6\u662f\u4e3a torch 2.4.0 \u6784\u5efa\u7684\uff08\u5426" * 12
    answer = Answer(kind="symbol-drift", code="FA201", symbol=None, demangled=None, owner=None,
                    provider=None, exported_by=(), overloads=(), direction="none", cause=cause,
                    help=(), confidence="high", source_line=None)  # fmt: skip
    lines = answer_lines(answer, "here", painter(False), 60, speaker("zh"))
    assert len(lines) > 8
    for line in lines:
        assert columns(line) <= 62  # a mark that may not begin a line hangs over
        assert not line.endswith("\uff08") and line[12:13] != "\uff0c"


def test_what_has_no_translation_stays_as_it_is() -> None:
    say = speaker("zh")
    for text in ("", "x", "/tmp/the file is not there", "the frobnicator has a hiccup", "a, b; c"):
        assert say(text) == text
    mixed = say("The frobnicator is worn out. A newer patch release of the same Python is enough.")
    assert mixed.startswith("The frobnicator is worn out. ") and HAN.search(mixed)
    assert speaker("en") is plain and plain("means") == "means"


def test_names_in_gaps_are_kept() -> None:
    table = words_of({}, [["{1} needs {2}", "{1}\u9700\u8981{2}"], ["{1!} on", "{1}\u8d77"]])
    assert table.say("a.so needs /x/the b.so") == "a.so \u9700\u8981 /x/the b.so"
    assert table.say("go on") == "go on"
    with pytest.raises(ValueError, match="do not agree"):
        parse_template("{1} is", "{2}")
    with pytest.raises(ValueError, match="divides"):
        parse_template("{1}{2} is", "{1}")


@pytest.mark.parametrize(
    "text", ["a it needs, which ; ", ", ", "; ", " (", "torch it: ", ". ", "A is. ", "{1} is {2}: "]
)
def test_hostile_texts_cost_little(text: str) -> None:
    table = words_of(TABLE["labels"], TABLE["sentences"])
    start = time.process_time()
    table.say(text * (6000 // len(text)))
    table.say(text * 100_000)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_inspect_in_chinese_is_laid_out_as_in_english(width: int, verbose: bool) -> None:
    targets = (samples.HEALTHY, samples.FAILING, samples.UNREADABLE, samples.IN_WHEEL)
    for chosen in [*((target,) for target in targets), targets]:
        report = samples.report(*chosen)
        english = inspect_text(report, False, verbose, width)
        chinese = inspect_text(report, False, verbose, width, say=speaker("zh"))
        assert english.endswith("\n") and HAN.search(chinese) and not HAN.search(english)
        # Codes, names and commands are the same, and stand in the same order.
        for kept in (r"\[FA\d{3}\]", r"-m pip .*", r"_Z\w+", r"\bsm_\d+", r"\.dynsym\[\d+\]"):
            assert re.findall(kept, chinese) == re.findall(kept, english)
        for line in chinese.splitlines():
            # A name or a command that is wider than the window has a line of its own.
            assert columns(line) <= width + 2 or re.search(r"\S{30}|= |\w\(", line), line


def test_colours_stand_at_the_labels(bare: str) -> None:
    arguments = ["why", "--python", bare, "--lang", "zh", "--color", "_ZN3c104cuda9SetDeviceEi"]
    coloured = RUNNER.invoke(main, arguments).output
    arguments[5] = "--no-color"
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == RUNNER.invoke(main, arguments).output
    assert "\x1b[1;32m\u8bf7\u8f93\u5165\x1b[0m" in coloured


@pytest.mark.parametrize(
    "command", [["env"], ["wheels", "--torch", "2.4.0", "--cuda", "12", "--abi", "FALSE"]]
)
def test_env_and_wheels_speak_chinese(command: list[str], bare: str) -> None:
    result = RUNNER.invoke(main, [*command, "--python", bare, "--lang", "zh"])
    assert result.exit_code in (0, 1, 4) and HAN.search(result.output)
    document = [
        RUNNER.invoke(main, [*command, "--python", bare, "--lang", lang, "--format", "json"])
        for lang in ("en", "zh")
    ]
    assert document[0].output == document[1].output and not HAN.search(document[0].output)
