"""A module that is linked to a libtorch_python.so of another Python: the import that shows it."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen


def by_its_import(answer: Answer, seen: Seen) -> Answer:
    """The answer with the import of the text in place of torch's, where that one failed.

    libtorch_python.so keeps to one Python: PyPI has one for each, and a C++ libtorch one more.
    """
    file = seen.mention.file or ""
    told = seen.mention.detail.get("import", "")
    if answer.code != "FA402" or not file.endswith("libtorch_python.so"):
        return answer
    if not re.fullmatch(r"[A-Za-z]\w*(?:\.\w{1,60}){0,5}", told) or told.split(".")[0] == "torch":
        return answer
    if "-packages/torch/" in file:
        return answer  # Python's own torch, whoever imports it
    tried = f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; import {told}'"
    place = f"{seen.python} -c 'import torch; print(torch.utils.cmake_prefix_path)'"
    note = (
        "The import that failed is tried again by the first command: what it loads is linked to a "
        "libtorch_python.so, and each of these is for one Python alone, by the Python that its "
        "torch was built for. A C++ libtorch brings one too. The way out is to build "
        f"{told.split('.')[0]} against the torch of the Python that runs: CMAKE_PREFIX_PATH, or "
        "LIBTORCH, at what the second command prints, and no other libtorch in its RPATH or on "
        "LD_LIBRARY_PATH."
    )
    kept = [text for text in answer.help if not text.endswith("-c 'import torch'")]
    return replace(answer, help=(tried, place, *kept), notes=(note, *answer.notes))
