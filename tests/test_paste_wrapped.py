"""A message that a window, a chat or a mail broke into lines is read as the whole one is."""

from __future__ import annotations

import textwrap
import time

import pytest

from fa_forensics.facts.paste import Mention, read_paste

_SO = (
    "/home/some/anaconda3/envs/long_environment/lib/python3.10/site-packages/"
    "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
)
_HEAD = 'Traceback (most recent call last):\n  File "/a/b.py", line 3, in <module>\n    import x\n'
_CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
MESSAGES = (
    f"ImportError: {_SO}: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE{_CXX11}",
    f"ImportError: {_SO}: undefined symbol: cudaGetDriverEntryPointByVersion, version "
    "libcudart.so.12",
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    "OSError: /usr/local/lib/python3.8/dist-packages/torch/lib/libgomp-d22c30c5.so.1: cannot "
    "allocate memory in static TLS block",
    "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
    f"{_SO})",
    f"ImportError: {_SO}: symbol cublasLtGetStatusString version libcublasLt.so.11 not defined in "
    "file libcublasLt.so.11 with link time reference",
    f"ImportError: {_SO}: failed to map segment from shared object: Operation not permitted",
    f"OSError: {_SO}: invalid ELF header",
    f"OSError: {_SO}: file too short",
    "python: error while loading shared libraries: libtorch_cpu.so: cannot open shared object "
    "file: No such file or directory",
)


def _read(message: str) -> Mention:
    return read_paste(f"{_HEAD}{message}\n\ntorch 2.1.0\n").mentions[0]


def _told(mention: Mention) -> tuple[str | None, ...]:
    return mention.what, mention.symbol, mention.version, mention.library, mention.file


@pytest.mark.parametrize("width", [40, 60, 72, 76, 80, 100, 120])
@pytest.mark.parametrize("between", ["\n", "\n    ", "\n> "])
def test_a_message_that_is_cut_at_a_width_is_the_whole_one(width: int, between: str) -> None:
    for message in MESSAGES:
        cut = between.join(message[at : at + width] for at in range(0, len(message), width))
        assert _told(_read(cut)) == _told(_read(message))


@pytest.mark.parametrize("width", [40, 60, 72, 76, 80, 100, 120])
@pytest.mark.parametrize("long_words", [True, False])
def test_a_message_that_is_broken_between_words_is_the_whole_one(
    width: int, long_words: bool
) -> None:
    for message in MESSAGES:
        broken = textwrap.fill(message, width, break_long_words=long_words, break_on_hyphens=False)
        assert _told(_read(broken)) == _told(_read(message))


def test_every_break_within_a_message_is_found() -> None:
    for message in MESSAGES[1:4]:
        whole = _told(_read(message))
        path = message.index(": ") + 1
        for at in range(path + 1, len(message) - 2):
            broken = f"{message[:at].rstrip()}\n{message[at:].lstrip()}"
            file = _told(_read(broken))[4]
            assert _told(_read(broken))[:3] == whole[:3], broken
            assert file == whole[4] or (file is not None and whole[4] is not None), broken


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (
            "/x/a.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
            "/x/b.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
            ["/x/a.so", "/x/b.so"],
        ),
        (
            "Loading binary /opt/python/lib/python3.9/site-packages/bitsandbytes/libbits...\n"
            "/usr/lib64/libz.so: invalid ELF header",
            ["/usr/lib64/libz.so"],
        ),
        (
            "See https://example.org/some/long/address/of/an/issue/that/is/about/this/4711\n"
            "libz.so.1: invalid ELF header",
            ["libz.so.1"],
        ),
        ("look into /usr/lib\nlibz.so.1: invalid ELF header", ["libz.so.1"]),
        ("OSError: something\n./libz.so: invalid ELF header", ["./libz.so"]),
    ],
)
def test_lines_of_their_own_stay_so(text: str, files: list[str]) -> None:
    assert [mention.file for mention in read_paste(text).mentions] == files


def test_lines_below_a_joined_message_keep_their_numbers() -> None:
    text = (
        "OSError: /a/libgomp.so.1: cannot\nallocate memory in static\nTLS block\n\n"
        "ImportError: /a/b.so: invalid ELF header"
    )
    assert [mention.number for mention in read_paste(text).mentions] == [1, 5]


def test_other_processes_lines_are_not_joined() -> None:
    text = "[rank0]: OSError: /a/libz.so: file too\n[rank1]: OSError: /a/liby.so: file too short"
    assert [m.file for m in read_paste(text).mentions] == ["/a/liby.so"]


@pytest.mark.parametrize(
    "text",
    [
        "/x.so: undefined\nsymbol:\n" * 100_000,
        "/aaaaaaaaaaa\n" * 200_000 + ": cannot open shared object file",
        ("symbol aaaa\n" * 2000 + "version b\nnot defined in file\n") * 50,
        "undefined symbol:\n" + "a\n" * 200_000,
        "not found (required by /aaaa\n" * 100_000,
    ],
    ids=["words", "paths", "versions", "names", "brackets"],
)
def test_a_text_of_broken_lines_takes_no_time(text: str) -> None:
    began = time.process_time()
    read_paste(text)
    assert time.process_time() - began < 20
