"""The text's own command that compiles with setup.py, and the directory that it ran in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.typed_lines import holds_many, is_refused, typed
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

#: "cd third_party/pointnet2 && MAX_JOBS=4 python setup.py install": its parts, each whole.
_CD = lazily(r"cd (?P<folder>[\w.~/-]{1,120})")
_RUN = lazily(
    r"(?P<run>(?:[A-Z][A-Z\d_]{2,40}=(?:[\w.,:/+~-]{1,80}|\"[\w.,:/+ ~-]{1,80}\") ){0,6}"
    r"python3? setup\.py (?:install|develop|build_ext --inplace|build (?:install|develop))"
    r"(?: --?[A-Za-z][\w.=/-]{0,60}){0,6})"
)
#: Options that build nothing, or elsewhere; variables that load code into it.
_NO_BUILD = lazily(
    r" (?:--uninstall|-u|--dry-run|-n|--help\S*|-h|--root|--prefix|--home|--record|--target)"
    r"(?:[ =]|\Z)"
    r"|\bLD_[A-Z_]+="
)
_JOINT = re.compile(r"\s{0,4}(?:&&|;)\s{0,4}")
#: How many places of one word are looked at.
_MOST = 20


def read_setup(source: Source, places: Places, offer: Callable[[str, int, int, str], None]) -> None:
    """The key ``built_by``: the text's own command, with its cd; none where there are two."""
    told: dict[str, int] = {}
    for place in places("setup.py ")[:_MOST]:
        line = source.line_at(place)
        command = _of_line(line.raw)
        above = next(iter(line.above(1)), None)
        told_off = above is not None and is_refused(above.body, len(above.body.rstrip(" :")))
        if command and not (told_off and above is not None and above.body.rstrip().endswith(":")):
            told.setdefault(command, line.number)
    if len({command.rpartition(" && ")[0] for command in told}) == 1:
        command, number = next(iter(told.items()))
        offer("built_by", BANNER, number, command)


def _of_line(body: str) -> str:
    """``cd FOLDER && python setup.py install`` of a line that is such a command; "" else."""
    command, _ = typed(body)
    *before, last = _JOINT.split(command)[:12]
    run = _RUN.fullmatch(last)
    if run is None or _NO_BUILD.search(run["run"]):
        return ""
    folders = []
    for part in before:
        found = _CD.fullmatch(part)
        if found is not None:
            folders.append(found["folder"])
        elif folders or part.startswith(("cd ", "pushd ", "popd")):
            return ""  # what ran in between may have left the directory
    if not folders:
        return run["run"]
    where = posixpath.normpath(posixpath.join(*folders))
    if "-" in folders or holds_many(where):
        return ""
    return " && ".join((*(f"cd {folder}" for folder in folders), run["run"]))
