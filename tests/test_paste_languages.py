"""The loader's messages in other languages: the shipped table, and that each is understood.

Oracle: the message catalogues of the C library on this machine, where they are installed.
"""

from __future__ import annotations

import gettext
import json
from datetime import date
from pathlib import Path

import pytest

import fa_forensics
from fa_forensics.facts.paste import read_paste

TABLE = Path(fa_forensics.__file__).parent / "data" / "loader_languages.json"
DOCUMENT = json.loads(TABLE.read_text(encoding="utf-8"))
TEXTS: dict[str, dict[str, str]] = DOCUMENT["texts"]
CATALOGUES = Path("/usr/share/locale")

#: What is said of /x/_C.so in each of these words.
WHAT = {
    "cannot open shared object file": "missing-own-file",
    "invalid ELF header": "invalid-elf",
    "file too short": "file-too-short",
    "cannot allocate memory in static TLS block": "static-tls",
    "cannot enable executable stack as shared object requires": "exec-stack",
    "failed to map segment from shared object": "map-refused",
    "wrong ELF class: ELFCLASS32": "wrong-elf-class",
}


def test_the_table_says_where_it_is_from_and_repeats_nothing() -> None:
    assert "glibc 2.36" in DOCUMENT["source"]
    date.fromisoformat(DOCUMENT["date"])
    for english, others in TEXTS.items():
        assert list(others) == sorted(others)
        assert all(text.strip() and text.lower() != english.lower() for text in others.values())


@pytest.mark.parametrize("english", WHAT)
def test_each_language_is_understood(english: str) -> None:
    for language, text in TEXTS[english].items():
        mentions = read_paste(f"ImportError: /x/_C.so: {text}").mentions
        assert len(mentions) == 1, (language, text)
        (mention,) = mentions
        assert (language, mention.what, mention.file) == (language, WHAT[english], "/x/_C.so")


@pytest.mark.parametrize("english", WHAT)
def test_english_is_understood_as_the_others_are(english: str) -> None:
    (mention,) = read_paste(f"ImportError: /x/_C.so: {english}").mentions
    assert (mention.what, mention.file) == (WHAT[english], "/x/_C.so")


def test_the_table_is_what_the_catalogues_have() -> None:
    compared = 0
    for english, others in TEXTS.items():
        for language, text in others.items():
            catalogue = CATALOGUES / language / "LC_MESSAGES" / "libc.mo"
            if catalogue.is_file():
                with catalogue.open("rb") as file:
                    assert gettext.GNUTranslations(file).gettext(english) == text
                compared += 1
    if not compared:
        pytest.skip("no message catalogues of the C library on this machine (Debian: libc-l10n)")
