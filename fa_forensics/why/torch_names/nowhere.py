"""Names that no release on record exports, and names of which nothing is known."""

from __future__ import annotations

from fa_forensics.facts.demangle import qualified_name, readable
from fa_forensics.facts.owner import STABLE
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
from fa_forensics.why.torch_names.history import History, order_key
from fa_forensics.why.torch_names.signature import operator_era

#: Names of the parts that torch dropped before 1.12: TH and THC (C), Caffe2.
_REMOVED = lazily(r"THC?[A-Z_]\w*$|(?:\w+ for )?caffe2::")


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
        return Judgement("symbol-drift", "FA201", OLDER, cause)
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


def cut_off(question: Question, place: Place, history: History | None) -> Judgement:
    """A readable name without parameters: functions of that name are known, but not which."""
    others = other_signatures(question) or [
        form.demangled for form in (history.forms if history else ())
    ]
    cause = (
        f"{place.here} exports functions of that name ({readable(others[0])}); without its "
        "parameters nobody can say whether one is missing. Was the end of the name cut off?"
    )
    if not other_signatures(question):
        cause = cause.replace(f"{place.here} exports", "torch exports")
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause)
