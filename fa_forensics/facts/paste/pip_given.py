"""What a pip or uv command of a text installs: a name, an address, a directory or a list."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

_COMMAND = lazily(
    r"\b(?:pip[\d.]{0,4}|uv|poetry|pdm)\s{1,3}(?:install|wheel|add)\s{1,3}"
    r"(?P<rest>(?:[^\n|&;#]|(?<=\w)#(?=\w)){1,400})"
)
#: A sentence: "failed to install flash_attn".
_SENTENCE = lazily(r"\b(?:install|add)\s['\"`]?(?P<name>[A-Za-z][\w.-]{1,60})")
#: Options whose value stands behind them, and is nothing that is installed.
_VALUED = frozenset((
    "-c", "-i", "-f", "-t", "-b", "-d", "-w", "--constraint", "--index-url", "--extra-index-url",
    "--find-links", "--target", "--prefix", "--root", "--src", "--python", "--index",
    "--trusted-host", "--default-index", "--cache-dir", "--timeout", "--proxy", "--group",
    "--index-strategy", "--torch-backend", "--no-binary", "--only-binary", "--config-settings",
    "--global-option", "--install-option", "--build-option", "--progress-bar", "--log",
    "--upgrade-strategy", "--platform", "--abi", "--python-version", "--retries", "--wheel-dir",
))  # fmt: skip
#: Options that belong to what stands behind them.
_OWN = {"-r": "-r", "--requirement": "-r", "--requirements": "-r", "-e": "-e", "--editable": "-e"}
#: An address or a directory whose last part is whole, and nothing that a shell takes apart.
_AS_TYPED = lazily(r"[A-Za-z0-9~.][\w./:+@=%~#\[\],&-]{0,300}|/[\w./+@=%~\[\],-]{1,300}")
_WORDS = (
    "the a an it this that these those my all any some of and with on in from for to by via using "
    "requirements dependencies packages package module library everything error errors is i'm "
    "was you your its one other custom extension extensions wheel wheels source"
)


def given(text: str) -> str:
    """What the first pip or uv command of a line is given, as it is typed; "" where none is.

    ``-r requirements.txt``, ``-e .``, ``submodules/simple-knn``, ``git+https://...``, or a name.
    """
    found = _COMMAND.search(text)
    if found is None:
        return ""
    before = ""
    for raw in found["rest"].split()[:24]:
        word = raw.strip("'\"`,)")
        if raw.startswith("-"):
            before = word
            continue
        option, before = before, ""
        if option in _VALUED:
            continue
        if not word or "..." in word or "\u2026" in word or _AS_TYPED.fullmatch(word) is None:
            return ""
        if word.lower() in _WORDS.split():
            return ""
        kept = _OWN.get(option, "")
        return f"{kept} {word}" if kept else word
    return ""


def is_name(typed: str) -> bool:
    """Whether it is a name that pip looks up, and no address, directory or list."""
    plain = re.fullmatch(r"[A-Za-z][\w.-]{0,60}(?:\[[\w,.-]{1,60}\])?(?:[=<>~!]=?=?.*)?", typed)
    return plain is not None and re.search(r"\.(?:txt|whl|gz|zip|tgz|toml|git)$", typed) is None


def name_of(typed: str) -> str:
    """The project's name in an address or a directory; "" where none shows."""
    egg = re.search(r"#egg=([A-Za-z][\w.-]{1,60})", typed)
    if egg is not None:
        return egg[1]
    if typed.startswith("-r "):
        return ""
    bare = re.sub(r"[#?].*$|(?<=[\w/])@[\w./-]{1,80}$|\.git(?=$|@)", "", typed.split()[-1])
    bare = re.sub(r"\.git$|/(?:archive|releases|zipball|tarball|tree)/.*$", "", bare)
    last = bare.rstrip("/").rpartition("/")[2].partition("[")[0]
    whole = re.fullmatch(r"[A-Za-z][\w.-]{1,60}", last)
    return last if whole and re.search(r"\.(?:txt|whl|gz|zip|tgz)$", last) is None else ""


def spoken(text: str) -> str:
    """The name that a sentence puts behind "install"; "" for an article or another word."""
    for found in _SENTENCE.finditer(text):
        if found["name"].lower().strip(".") not in _WORDS.split():
            return found["name"].rstrip(".")
    return ""
