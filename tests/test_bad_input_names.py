"""Names of files and names inside files cannot write to the terminal or forge a line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.inspecting import invoke, one_sentence, run
from support.material import stub, tiny_file


def python() -> str:
    return str(stub("2.4.0+cu121").python)


NAMES = {
    "newline": b"two\nlines.so",
    "escape": b"red\x1b[31m.so",
    "clear-screen": b"\x1b[2J\x1b[H.so",
    "carriage-return": b"real\rfake.so",
    "bidi": "rtl\u202egnp.so".encode(),
    "not-utf-8": b"\xff\xfe\x80.so",
    "spaces": b" lead and trail .so",
    "option": b"--help.so",
    "dash": b"-rf.so",
    "percent": b"%s%n{0}.so",
    "markup": b"[bold]x.so",
}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", NAMES)
def test_odd_file_names_are_shown_and_cannot_write_to_the_terminal(
    name: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / os.fsdecode(NAMES[name])
    for source, code in ((None, 3), (tiny_file("whole"), 0)):
        path.write_bytes(b"no library" if source is None else source.read_bytes())
        result = run(
            "inspect", "--python", python(), "--format", form, "--", path.name, cwd=tmp_path
        )
        assert result.code == code, result.stderr
        assert not set("\x1b\r\u202e\x80") & set(result.stdout + result.stderr)
        assert "Traceback (most recent" not in result.stderr
        if source is None:
            one_sentence(result)
        if form == "json":
            assert len(result.document["targets"]) == 1


HOSTILE = b"\x1b[31m\n\r\xff\x80\x9b1mERR"


def _with_hostile_name(case: str, name: bytes, tmp_path: Path) -> Path:
    content = tiny_file(case).read_bytes()
    assert name + b"\0" in content
    evil = (HOSTILE + b"x" * len(name))[: len(name)]
    path = tmp_path / "ext.so"
    path.write_bytes(content.replace(name + b"\0", evil + b"\0"))
    return path


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("missing-symbol", b"nobody_defines_this"),
        ("missing-soname", b"libabsent.so.1"),
        ("origin-sibling", b"libdep.so"),
        ("rpath-first", b"$ORIGIN/rpath"),
        ("glibc-too-new", b"GLIBC_2.99"),
    ],
)
def test_names_inside_a_file_cannot_write_to_the_terminal(
    case: str, name: bytes, tmp_path: Path
) -> None:
    path = _with_hostile_name(case, name, tmp_path)
    for form in ("text", "json"):
        result = invoke("inspect", "-v", "--python", python(), "--format", form, path)
        assert result.code in (0, 1)
        shown = result.stdout + result.stderr
        assert not set("\x1b\r\x9b\x80") & set(shown)
        assert "Traceback (most recent" not in shown
    assert r"\x1b[31m" in invoke("inspect", "-v", "--python", python(), path).stdout
    document = invoke("inspect", "--python", python(), "--format", "json", path).document
    assert len(document["targets"]) == 1
