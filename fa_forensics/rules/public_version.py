"""Whether two spellings name one version: PEP 440, without the local part."""

from __future__ import annotations

import re


def same_public(one: str, other: str) -> bool:
    """Whether two versions are the same by PEP 440, what follows ``+`` left aside."""
    return _public(one) == _public(other)


def _public(version: str) -> str:
    """A version in its normal form: "v1.0-RC.1+cu12" is "1rc1" (trailing zeros do not count)."""
    text = version.strip().lower().partition("+")[0].removeprefix("v")
    text = re.sub(r"[-_.]?(alpha|beta|preview|pre|a|b|c|rc)[-_.]?(\d*)", _phase, text)
    text = re.sub(r"[-_.]?(?:post|rev|r(?!c))[-_.]?(\d*)|-(\d+)$", _post, text)
    text = re.sub(r"[-_.]?dev[-_.]?(\d*)", lambda found: ".dev" + (found[1] or "0"), text)
    release = re.match(r"(?:\d+!)?\d+(?:\.\d+)*", text)
    if release is None:
        return text
    numbers = [part.lstrip("0") or "0" for part in release.group().split(".")]
    while len(numbers) > 1 and numbers[-1] == "0":
        numbers.pop()
    return ".".join(numbers) + text[release.end() :]


def _post(found: re.Match[str]) -> str:
    return ".post" + (found[1] or found[2] or "0")


def _phase(found: re.Match[str]) -> str:
    word = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}
    return word.get(found.group(1), found.group(1)) + (found.group(2) or "0")
