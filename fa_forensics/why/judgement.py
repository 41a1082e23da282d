"""A question about a torch-owned name and the judgement on it; words that judgements share."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string
from fa_forensics.records import dataclass
from fa_forensics.resolve.nearest import SAME_NAME, Near
from fa_forensics.why.torch_names.history import History, Present

#: What a file is in relation to the torch here, in the words of the JSON contract.
OLDER, NEWER, FLAVOUR, UNKNOWN, NONE = (
    "file-older", "file-newer", "other-flavour", "unknown", "none",
)  # fmt: skip

#: Kinds of answers that say: the file and torch are not of one build.
DRIFT = ("symbol-drift", "cxx11-abi", "wrong-torch")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The heart of an answer: its kind and code, the direction, and the cause in words."""

    kind: str
    code: str
    direction: str
    cause: str
    notes: tuple[str, ...] = ()
    confidence: str = "high"


@dataclass(frozen=True, slots=True)
class Question:
    """A torch-owned name, what stands near it here, and its history (None: could not look).

    ``since`` is the first release of torch that the failing file's ``package`` exists for, ""
    where that is not on record.
    """

    name: str
    demangled: str
    owner: str
    near: tuple[Near, ...]
    history: History | None
    package: str = ""
    since: str = ""


def who_exports(history: History, releases: Sequence[str]) -> str:
    """``2.1.0 to 2.2.2 export``, and ``2.10.0 exports``, which is one."""
    return f"{history.interval(releases)} export{'s' if len(releases) == 1 else ''}"


def other_signatures(question: Question) -> list[str]:
    """What this torch has under the same name with other parameters, or in the other flavour."""
    return [near.demangled for near in question.near if near.relation != SAME_NAME]


def what_stands_instead(
    question: Question, history: History, present: Present | None
) -> str | None:
    """What the present torch has in the name's place: as its libraries or the atlas say."""
    others = other_signatures(question)
    if not others or present is None:
        return others[0] if others else None
    # Of several signatures, the one that took this one's place in its line.
    line = [named.demangled for form in history.line for named in form.symbols]
    return next((text for text in others if text in line), others[0])


def flavour_note(question: Question, present: Present | None) -> tuple[str, ...]:
    """That the name's std::string flavour is not this torch's, where it is not."""
    if present is None:
        return ()
    new = mentions_cxx11(question.name, question.demangled)
    old = mentions_old_string(question.demangled)
    if (new and present.flavour == "pre-cxx11") or (old and present.flavour == "cxx11"):
        return ("Its std::string flavour is not that of this torch either.",)
    return ()
