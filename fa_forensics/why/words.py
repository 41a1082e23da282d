"""Bare words that are no symbols: ``why help``, ``why torch``."""

from __future__ import annotations

import builtins

from fa_forensics.facts.owner import OWN
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer

#: A word of one case, without a digit or an underscore: no sign of a linker's name is in it.
_WORD = lazily(r"[a-z]{1,40}|[A-Z][a-z]{1,40}|[A-Z]{2,40}")
_OWN_CODE = "FA205"
#: The package as people write it; "Py" at its beginning makes it look like a name of Python's.
_PYTORCH = "PyTorch"


def is_word(symbol: SymbolText) -> bool:
    """Whether a name alone could as well be an ordinary word."""
    name = symbol.name or ""
    if symbol.version is not None:
        return False
    return _WORD.fullmatch(name) is not None or _is_exception(name)


def _is_exception(name: str) -> bool:
    """Whether a name is that of one of Python's exceptions: the first word of a message."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def as_word(symbol: SymbolText, answer: Answer) -> Answer:
    """The answer; "not recognised" where a word or a package stands in a symbol's place.

    What a library here exports, or a table knows, is a symbol, whatever it looks like.
    """
    name = symbol.name or ""
    if answer.provider is not None or symbol.version is not None:
        return answer
    own = answer.owner == OWN and answer.code == _OWN_CODE
    if (own or name == _PYTORCH) and _is_package(name):
        name = "torch" if name.lower() == _PYTORCH.lower() else name
        return unrecognised(
            f"{name} is the name of a package; a symbol, an error or a log is what is explained "
            "here.",
            f"fa-forensics inspect {name}",
        )
    if (said := _no_symbol(name)) is not None:
        return said
    if not own or not is_word(symbol):
        return answer
    return unrecognised(
        f'"{name}" alone is no symbol that any table or library here knows, and has no sign of '
        'one: paste the line of the error, or "undefined symbol: " with the name behind it.',
        "fa-forensics why --help",
    )


#: A code of this tool's, and a GPU architecture.
_CODE, _ARCH = lazily(r"FA\d{3}"), lazily(r"(?:sm|compute)_?(\d{1,2})(\d)[af]?")


def _no_symbol(name: str) -> Answer | None:
    """The answer to a code of this tool's and to a GPU architecture; None for all else."""
    if _CODE.fullmatch(name):
        return unrecognised(
            f"{name} is a code of this tool's answers and reports.", f"fa-forensics explain {name}"
        )
    arch = _ARCH.fullmatch(name)
    if arch is None:
        return None
    return unrecognised(
        f"{name} is a GPU architecture (compute capability {arch[1]}.{arch[2]}), and no symbol. "
        "inspect says whether a file has code for it.",
        f"fa-forensics inspect --gpu {arch[1]}.{arch[2]} FILE_OR_PACKAGE",
    )


def unrecognised(cause: str, command: str) -> Answer:
    """The answer where nothing is known: why, and what to do next."""
    return Answer(
        kind="unrecognised",
        code="FA899",
        symbol=None,
        demangled=None,
        owner=None,
        provider=None,
        cause=cause,
        confidence="high",
        help=(command,),
        looked_here=False,
        releases_looked_up=False,
    )


def _is_package(name: str) -> bool:
    """Whether a name is that of a package that this tool knows, or of its import."""
    from fa_forensics.rules.remedy import known_packages

    plain = name.lower().replace("_", "-")
    for row in known_packages():
        if plain in (row["distribution"], str(row["import"]).replace("_", "-")):
            return True
    if (
        name != _PYTORCH
        and _WORD.fullmatch(name) is None
        and not plain.startswith(("torch-", "nvidia-"))
    ):
        return False
    # The readers of texts cost more to load than a symbol to answer.
    from fa_forensics.facts.paste.named_packages import PACKAGES

    return plain in PACKAGES
