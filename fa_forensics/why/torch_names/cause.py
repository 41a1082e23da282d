"""What a missing torch name means, in words: its kind, its direction, its cause."""

from __future__ import annotations

import os

from fa_forensics.facts.demangle import (
    mentions_cxx11,
    readable,
)
from fa_forensics.facts.owner import libraries_of
from fa_forensics.resolve.nearest import OTHER_FLAVOUR
from fa_forensics.why.judgement import (
    FLAVOUR,
    NEWER,
    NONE,
    OLDER,
    UNKNOWN,
    Judgement,
    Question,
    flavour_note,
    what_stands_instead,
    who_exports,
)
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.from_history import (
    before_the_record,
    exported_there,
    kept_to_itself,
    moved_words,
    told_inside,
    without_torch,
)
from fa_forensics.why.torch_names.history import (
    BETWEEN,
    INSIDE,
    NOWHERE,
    TOO_NEW,
    TOO_OLD,
    Form,
    History,
    Present,
    order_key,
)
from fa_forensics.why.torch_names.nowhere import (
    cut_off,
    hidden_before,
    is_without_parameters,
    never_exported,
    unknown_name,
)
from fa_forensics.why.torch_names.other_flavour import also_other_flavour, told_flavour
from fa_forensics.why.torch_names.reach import touched
from fa_forensics.why.torch_names.signature import changes


def judge_missing(question: Question, place: Place) -> Judgement:
    """A name of torch that nothing here exports."""
    history, present = question.history, place.present
    if place.lacks_cuda(question.owner) and not _names_of_cuda(present):
        return _without_cuda(question, place)
    twin = next((near for near in question.near if near.relation == OTHER_FLAVOUR), None)
    if twin is not None:
        return _other_flavour(question, place, twin.demangled)
    if question.name.startswith("_ZTH"):
        return Judgement(
            "symbol-drift", "FA201", UNKNOWN,
            "Files refer weakly to the start of a thread-local variable: no torch needs to export "
            "it, and its absence is not what stops the load.",
        )  # fmt: skip
    if history is None or not (history.alive or history.forms or history.kin or history.moved):
        return unknown_name(question, place)
    if present is None:
        return without_torch(question, place, history, _line_words(history))
    told = told_flavour(question, place, history)
    if told is not None:
        return told
    bare = "(" not in question.demangled and not history.symbol
    if bare or is_without_parameters(question, history):
        return cut_off(question, place, history)
    stands = history.place(present)
    if stands == INSIDE and place.told is not None and present.published:
        return told_inside(question, place, history)
    if stands == INSIDE:
        return _contradiction(place, history)
    looked = place.linker is not None and place.told is None
    if stands == TOO_OLD and history.known[0] in history.alive and not looked:
        return before_the_record(question, history, present)
    if stands in (TOO_NEW, TOO_OLD):
        return _drift(question, place, history, stands)
    if stands == BETWEEN:
        return _between(question, place, history)
    return never_exported(question, place, history)


def judge_present(question: Question, place: Place, library: str) -> Judgement:
    """A name of torch that is here, so that an error about it comes from elsewhere."""
    history, present = question.history, place.present
    if place.told is not None and not place.told.flavour and history is not None and present:
        both = also_other_flavour(question, present, history)
        if both is not None:
            return both
    file = os.path.basename(library)
    if place.told is not None and place.requested is not None and history and history.alive:
        moved = (moved_words(history),) if history.moved is not None else ()
        return exported_there(question, history, f"{file} of {place.here} exports it", moved)
    cause = f"{file} in this environment exports it, so here it is not missing"
    if place.requested is not None:
        cause = f"{file} of {place.here} exports it"
    if history is not None and history.releases:
        interval = history.interval(history.releases)
        if present is not None and present.release in history.releases:
            cause += f"; it cannot be missing from torch {interval}"
        else:
            cause += f"; published torch {interval} have it"
    cause += ": where an error names it, another torch was loaded than this one."
    if place.requested is not None and history is not None:
        cause += history.lacked_by()
    notes = (
        "Such an error also comes from another environment, or from a file that does not list "
        "this library among its needs: inspect the file itself.",
    )
    return Judgement("wrong-torch", "FA607", NONE, cause, notes)


def change_words(history: History, form: Form) -> str:
    """What turned the form before this one into it: ``in 2.3.0 `int` became `long```."""
    if form not in history.line or form is history.line[0]:
        return ""
    before = history.line[history.line.index(form) - 1]
    clauses = changes(before.demangled, form.demangled)
    begun = history.known.index(before.releases[-1]) + 1
    behind = history.known[begun] if begun < len(history.known) else ""
    since = behind if behind in form.releases else form.releases[0]
    return f"in {since} {' and '.join(clauses)}" if clauses else ""


def _names_of_cuda(present: Present | None) -> bool:
    """Whether it is a torch for ROCm that has CUDA's names in its ROCm libraries."""
    if present is None or "rocm" not in present.version:
        return False
    from fa_forensics.why.torch_names.hip_twin import cuda_names_since

    return order_key(present.release) >= order_key(cuda_names_since())


def _without_cuda(question: Question, place: Place) -> Judgement:
    assert place.present is not None
    if "rocm" in place.present.version:
        from fa_forensics.why.torch_names.hip_twin import cuda_name_on_rocm

        return cuda_name_on_rocm(place)
    library = libraries_of(question.owner)[0]
    cause = (
        f"{place.here} has no CUDA, so it has no {library}, which exports such names: "
        "the file needs a CUDA build of torch."
    )
    history = question.history
    stands = NOWHERE if history is None else history.place(place.present)
    if history is None or stands not in (TOO_NEW, TOO_OLD):
        return Judgement("wrong-torch", "FA601", UNKNOWN, cause)
    exports = who_exports(history, history.releases or history.alive)
    note = f"And of torch with CUDA only {exports} it: {place.present.release} does not."
    direction = OLDER if stands == TOO_NEW else NEWER
    return Judgement("wrong-torch", "FA601", direction, cause, (note,))


def _other_flavour(question: Question, place: Place, twin: str) -> Judgement:
    present = place.present
    assert present is not None
    cause = (
        f"{place.here} has the same function in the other std::string flavour "
        f"({readable(twin)}): this torch is {present.flavour}, the file was built for the "
        "other one."
    )
    notes = [
        "The flavour is fixed when a library is compiled: only another build of the file, or of "
        "torch, changes it."
    ]
    history = question.history
    if history is not None and history.releases:
        if present.release in history.releases:
            notes = [
                f"The {present.release} wheel on PyPI exports it: this torch is another build of "
                "that release, in the other flavour."
            ]
        else:
            exports = who_exports(history, history.releases)
            notes.append(f"Of the wheels on PyPI, torch {exports} the file's spelling.")
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, tuple(notes))


def _line_words(history: History, present: Present | None = None) -> str:
    """The changes between the asked signature and the one of this torch; without one, all."""
    line = history.line
    first, last = 0, len(line) - 1
    if present is not None and line:
        own = next((i for i, form in enumerate(line) if _has_symbol(form, history.symbol)), first)
        newer = order_key(present.version) > order_key(line[own].releases[-1])
        far = next((i for i, f in enumerate(line) if present.release in f.releases), None)
        far = (last if newer else first) if far is None else far
        first, last = min(own, far), max(own, far)
    steps = [words for f in line[first + 1 : last + 1] if (words := change_words(history, f))]
    return f" ({'; '.join(steps)})" if steps else ""


def _has_symbol(form: Form, symbol: str) -> bool:
    return any(named.symbol == symbol for named in form.symbols)


def _drift(question: Question, place: Place, history: History, stands: str) -> Judgement:
    newer = stands == TOO_OLD
    hidden = hidden_before(question.demangled) if newer else None
    there = place.present.version if place.present is not None else ""
    if hidden is not None and there and order_key(there) >= order_key(hidden[1]):
        return kept_to_itself(history, *hidden)
    exports = who_exports(history, history.releases or history.alive)
    age = "newer" if newer else "older"
    cause = f"The file was built for a torch that is {age} than {place.here}: only "
    cause += f"{exports} it"
    if not history.releases:
        cause += ", in the other std::string flavour"
    edge = history.known[0] if newer else history.known[-1]
    if edge in history.alive:
        cause += f" ({edge} is the {'oldest' if newer else 'newest'} release on record)"
    instead = what_stands_instead(question, history, place.present)
    if instead:
        cause += f", and this one has {readable(instead)} instead"
    else:
        cause += ", and this one does not yet" if newer else ", and this one does not any more"
    cause += f"{_line_words(history, place.present)}."
    direction = NEWER if newer else OLDER
    reach = touched(history, (place.present.version,), direction) if place.present else ()
    notes = (*reach, *_drift_flavour(question, history, place.present))
    if history.moved is not None:
        notes = (moved_words(history), *notes)
    return Judgement("symbol-drift", "FA201", direction, cause, notes)


def _between(question: Question, place: Place, history: History) -> Judgement:
    exports = who_exports(history, history.alive)
    cause = f"torch {exports} it, releases before and after {place.here}; this one does not."
    if place.present is not None and not place.present.published:
        cause = cause[:-1] + ": it is a build of its own, and its libraries decide."
    instead = what_stands_instead(question, history, place.present)
    if instead:
        cause = cause[:-1] + f", it has {readable(instead)} instead."
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")


def _contradiction(place: Place, history: History) -> Judgement:
    """The version says that the name is there, the libraries say that it is not."""
    present = place.present
    assert present is not None
    interval = history.interval(history.releases or history.alive)
    if ".dev" in present.version:
        cause = (
            f"The published torch {present.release} exports it ({interval}), the nightly "
            f"{present.version} does not: in the nightlies between two releases names go, and are "
            "hidden or shown again. The release, or the nightly of another day, has it."
        )
        return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")
    if not present.published:
        cause = (
            f"The published torch {present.release} exports it ({interval}), this build of its "
            f"own, {present.version}, does not: its libraries decide, not its number."
        )
        return Judgement("symbol-drift", "FA201", UNKNOWN, cause)
    if history.releases and present.release not in history.releases:
        cause = (
            f"torch {present.release} has this function in the other std::string flavour only, "
            "and in these libraries it is in neither: they are not those of that release."
        )
    else:
        cause = (
            f"It cannot be missing from torch {interval}, yet the libraries here, which call "
            f"themselves {present.version}, lack it: another torch's files were mixed in, or this "
            "is another build than the published one."
        )
    return Judgement("wrong-torch", "FA607", UNKNOWN, cause)


def _drift_flavour(
    question: Question, history: History, present: Present | None
) -> tuple[str, ...]:
    """Whether the std::string flavour plays a part: people read ``cxx11`` and stop there."""
    if history.twin is None and mentions_cxx11(question.name, question.demangled):
        return (
            "Its std::string flavour is not the cause: no release exports it in the other one.",
        )
    return flavour_note(question, present)
