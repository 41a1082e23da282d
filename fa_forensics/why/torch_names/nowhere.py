"""Names that no release on record exports, and names of which nothing is known."""

from __future__ import annotations

import re

from fa_forensics.facts.demangle import mentions_cxx11, qualified_name, readable
from fa_forensics.facts.owner import STABLE
from fa_forensics.facts.python_api import first_asked
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import (
    NEWER,
    OLDER,
    UNKNOWN,
    Judgement,
    Question,
    flavour_note,
    other_signatures,
    what_stands_instead,
)
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import Form, History, order_key
from fa_forensics.why.torch_names.signature import operator_era

#: Names of the parts that torch dropped before 1.12: TH and THC (C), Caffe2.
_REMOVED = lazily(r"TH(?:Cuda|C?[A-Z_])\w*$|_{1,2}TH[A-Z]\w*$|(?:\w+ for )?caffe2::")


def hidden_before(demangled: str) -> tuple[str, str] | None:
    """(the macro that calls it, the first release seen to declare it) of a name hidden at first."""
    row = read_table("hidden_names.json")["names"].get(qualified_name(demangled))
    return None if row is None else (row["macro"], row["declared"])


def unknown_name(question: Question, place: Place) -> Judgement:
    """Nothing is known of the name's past: no atlas, or no release has anything like it."""
    history = question.history
    others = other_signatures(question)
    if history is None and question.owner == STABLE:
        cause = (
            f"{place.here} does not have this part of torch's stable interface yet: the file "
            "needs a newer torch."
        )
        return Judgement("symbol-drift", "FA201", NEWER, cause)
    if others and "(" not in question.demangled:
        return cut_off(question, place, history)
    if others:
        cause = (
            f"your torch has {readable(others[0])} instead: the signature differs, so the "
            f"file was built against another release than {place.here}."
        )
    elif history is None:
        cause = (
            f"{place.here} exports nothing of that name: the file was built against another "
            "release, or the name is misspelt."
        )
    elif _REMOVED.match(question.name) or _REMOVED.match(question.demangled):
        cause = (
            f"No torch from {history.known[0]} to {history.known[-1]} exports it. It belongs to "
            "the TH, THC or Caffe2 part that torch gave up: the file was built for an older torch."
        )
        return Judgement("symbol-drift", "FA201", OLDER, cause)
    elif _TORCHS_OWN.match(question.demangled) and _of_old_days(place):
        cause = (
            f"No torch from {history.known[0]} to {history.known[-1]} exports it, and it is a name "
            "of torch's own: most likely one of torch 0.4 or older, on which the file or a part of "
            "it was compiled. It has to be compiled again on the torch that runs, from an empty "
            "build directory; an older torch that is left beside it has to go."
        )
        return Judgement("symbol-drift", "FA201", OLDER, cause, (), "medium")
    else:
        cause = (
            f"No torch from {history.known[0]} to {history.known[-1]} exports it: the file was "
            "built for an older torch or for a build between releases, or it is a name that the "
            "extension itself should define."
        )
    notes = () if history is not None else flavour_note(question, place.present)
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, notes, "medium")


#: A class of ATen, c10 or torch's C++ interface, as a function's or a variable's scope.
_TORCHS_OWN = lazily(
    r"(?:at|c10|torch::autograd|torch::jit)::[A-Z]\w+::|(?:typeinfo|vtable) for (?:at|c10)::[A-Z]"
)
#: Pythons that torch 0.4 has wheels for.
_OLD_PYTHONS = ("2.7", "3.5", "3.6", "3.7")


def _of_old_days(place: Place) -> bool:
    """Whether people had torch 0.4 at the time: by the torch that is told, or by its Python."""
    if place.present is not None:
        return order_key(place.present.version) < order_key("1.5.0")
    python = place.told.python if place.told is not None else None
    return bool(python) and ".".join(str(python).split(".")[:2]) in _OLD_PYTHONS


def never_exported(question: Question, place: Place | None, history: History) -> Judgement:
    """No release on record exports it, though something near it is known."""
    span = f"No torch from {history.known[0]} to {history.known[-1]} exports it"
    if history.moved is not None:
        cause = (
            f"{span}; {readable(history.moved.demangled)} took its place "
            f"(torch {history.interval(history.moved.releases)}): the file was built for an older "
            "torch."
        )
        if not mentions_cxx11(question.name, question.demangled):
            return Judgement("symbol-drift", "FA201", OLDER, cause)
        cause += (
            " Or torch is that old itself, and the file of the other flavour: its std::string is "
            "in the cxx11 one, which no wheel of that time has, and it is compiled again with "
            "-D_GLIBCXX_USE_CXX11_ABI=0 then."
        )
        return Judgement("symbol-drift", "FA201", OLDER, cause, (), "medium")
    if history.forms:
        return _other_forms(question, place, history, span)
    scope = qualified_name(question.demangled).rpartition("::")[0]
    cause = (
        f"{span}. It belongs to {scope}, which is torch's, so the file was built for a torch older "
        f"than {history.known[0]} or between releases, or the name was torch's own inner one."
    )
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")


def _other_forms(question: Question, place: Place | None, history: History, span: str) -> Judgement:
    """Releases export the function, but never with these parameters."""
    instead = what_stands_instead(question, history, place.present if place else None)
    forms = [form for form in history.forms if form.releases]
    shown = [f for f in forms if any(named.demangled == instead for named in f.symbols)]
    texts = [
        f"{readable(form.demangled)} (torch {history.interval(form.releases)})"
        for form in (shown or forms[:1])
    ]
    cause = f"{span} with these parameters; there is {texts[0]}"
    era = _by_era(question, place, cause)
    if era is not None:
        return era
    if forms[0].releases[0] == history.known[0]:
        # It was there with other parameters from the first release on record.
        cause += (
            f": the file was built for a torch older than {history.known[0]}, for one between "
            "releases, or with another C++ library."
        )
        return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")
    cause += ": the file was built for a torch between releases, or for another kind of build."
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")


def _by_era(question: Question, place: Place | None, cause: str) -> Judgement | None:
    """Which side of a change of all operators the file was built on, by a parameter's type."""
    since, until, text = operator_era(question.demangled)
    edge = since or until
    if edge is None:
        return None
    side = f"from {since} on" if since else f"up to {until}"
    cause += f". Operators have {text} {side}: the file was built for such a torch."
    present = place.present if place is not None else None
    direction = UNKNOWN
    if present is not None:
        own = order_key(present.version)
        if since and own < order_key(since):
            direction = NEWER
        elif until and own > order_key(until):
            direction = OLDER
    return Judgement("symbol-drift", "FA201", direction, cause, (), "medium")


def is_without_parameters(question: Question, history: History) -> bool:
    """Whether a name that no release has is only the beginning of functions that releases have."""
    if "(" in question.demangled or " for " in question.demangled or history.alive:
        return False
    return any(form.releases and "(" in form.demangled for form in history.forms)


def cut_off(question: Question, place: Place | None, history: History | None) -> Judgement:
    """A name without its parameters: functions of that name are known, but not which is meant."""
    forms = [form for form in (history.forms if history else ()) if form.releases]
    if history is not None and forms:
        return _one_of_the_forms(question, place, history, forms)
    others = other_signatures(question) or [question.demangled]
    who = place.here if place is not None and other_signatures(question) else "torch"
    cause = (
        f"{who} exports functions of that name ({readable(others[0])}); without its "
        "parameters nobody can say whether one is missing. Was the end of the name cut off?"
    )
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")


def _one_of_the_forms(
    question: Question, place: Place | None, history: History, forms: list[Form]
) -> Judgement:
    """The signatures that the torch at hand lacks: what they have in common tells the direction."""
    present = place.present if place is not None else None
    known = present is not None and present.release in history.known
    release = present.release if present is not None else ""
    there = [form for form in forms if release in form.releases]
    left = [form for form in forms if form not in there]
    if since := question.since or first_asked(question.package):
        left = [f for f in left if order_key(f.releases[-1]) >= order_key(since)]
    of_file, built = _of_the_file(place, left)
    said = [_NO_PARAMETERS]
    if of_file is not None:
        said.append(
            f"It tells of torch {built} as what the file was built for, which has "
            f"{_with_life(of_file, history)}: most likely that one is missing."
        )
        left = [of_file]
    elif not known:
        said.append("Whichever is missing, the file was built for another torch than is loaded.")
    direction = UNKNOWN
    if there:
        said.append(f"torch {release} has {_with_life(there[-1], history)}.")
    if known and left:
        direction, words = _side(left, order_key(release), history)
        said.append(words)
    elif known:
        said.append(
            "Either its twin of the other std::string flavour is missing, or another torch is "
            "loaded than the text says."
        )
    notes = (_WHICH,) if direction == UNKNOWN and of_file is None else ()
    return Judgement("symbol-drift", "FA201", direction, " ".join(said), notes, "medium")


_NO_PARAMETERS = (
    "The text has the name without its parameters, which changed between releases of torch."
)


def _of_the_file(place: Place | None, forms: list[Form]) -> tuple[Form | None, str]:
    """(the form of the torch that the text tells of as the file's, that torch); None for none."""
    told = place.told.file_torch if place is not None and place.told is not None else ""
    built = re.match(r"\d\.\d{1,2}(?!\d)", told)
    if built is None:
        return None, ""
    own = order_key(f"{built[0]}.0")[:2]
    having = [form for form in forms if any(order_key(r)[:2] == own for r in form.releases)]
    return (having[0], built[0]) if len(having) == 1 else (None, "")


def _side(left: list[Form], own: tuple[int, int, int, bool], history: History) -> tuple[str, str]:
    """(the direction, its words) by which side of the torch there the other forms lie on."""
    before = [form for form in left if order_key(form.releases[-1]) < own]
    after = [form for form in left if form not in before]
    if not before:
        newer = _with_life(after[0], history)
        return NEWER, f"A newer torch has {newer}: the file was built for such a one."
    if not after:
        older = _with_life(before[-1], history)
        return OLDER, f"An older torch has {older}: the file was built for such a one."
    return UNKNOWN, (
        f"An older torch has {_with_life(before[-1], history)}, a newer one "
        f"{_with_life(after[0], history)}: the file was built for one of those."
    )


def _with_life(form: Form, history: History) -> str:
    return f"{readable(form.demangled)} (torch {history.interval(form.releases)})"


_WHICH = (
    "The whole mangled name, which begins with _Z, tells which of them it is, and with that "
    "whether the file is older or newer than the torch."
)
