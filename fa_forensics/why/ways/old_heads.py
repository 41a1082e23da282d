"""The head of a repository, built on a torch of years ago: it may no longer compile there."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import OLDER
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key

#: A repository without a tag, branch or commit behind it.
_HEAD = lazily(r"git\+https://[\w./-]{1,200}?(?P<name>[\w-]{1,60})(?:\.git)?/?(?=[#'\"\s]|$)")
#: torch before 2.0: its headers ask for C++14 (torch/extension.h of 2.1 asks for C++17), and
#: repositories of today are written for later ones.
_OLD = (2, 0, 0, False)


def at_that_time(answer: Answer, place: Place) -> Answer:
    """The answer with a word on builds of a repository's head, where torch is an old one."""
    head = next((found for text in answer.help if (found := _HEAD.search(text))), None)
    torch, words = _torch(answer, place)
    if not torch or order_key(torch) >= _OLD:
        return answer
    sdist = next((found for text in answer.help if (found := _NEWEST.search(text))), None)
    if head is None and sdist is not None and order_key(torch) < _OLDEST:
        return replace(answer, notes=(*answer.notes, _of_the_index(sdist["name"], words)))
    if head is None:
        return answer
    note = (
        f"The address is that of the newest source, which may not compile on {words}: a tag or "
        "commit of that time goes behind it, after an @."
    )
    if head["name"] == "apex":
        note += (
            " apex of those years has no variables for its modules: pip is given --global-option "
            'twice in their place, with "--cpp_ext" and with "--cuda_ext".'
        )
    return replace(answer, notes=(*answer.notes, note))


#: Before it few sources of today's releases compile: custom autograd functions came with it.
_OLDEST = (1, 4, 0, False)
#: A build of the newest release of a package: --no-binary torch-sparse torch-sparse.
_NEWEST = lazily(r"--no-binary (?P<name>[\w-]{2,60}) (?P=name)$")


def _of_the_index(name: str, words: str) -> str:
    return (
        f"The build is that of the newest release of {name}, whose source may not compile on "
        f"{words}: a release of that time is {name}==VERSION in its place."
    )


def _torch(answer: Answer, place: Place) -> tuple[str, str]:
    """(release, in words) of the torch that is built for; "" where nothing tells its age."""
    if place.present is not None:
        return place.present.release, place.present.text
    if place.told is not None and place.told.last:
        return place.told.last, "a torch of the text's day"
    if answer.direction == OLDER and answer.exported_by:
        # The loaded torch is newer than these, and most often the next ones.
        last = answer.exported_by[-1]
        return last, f"a torch that is little newer than {last}, if that is the one that runs"
    return "", ""
