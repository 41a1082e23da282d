"""Names that Python 2 alone has: how wide its characters are, and a torch built with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import UNKNOWN, Judgement

KIND, CODE = "python-abi", "FA402"

#: torch's own libraries and its module: .../torch/lib/libtorch_python.so, .../torch/_C.so.
_OF_TORCH = lazily(r"/torch/(?:lib/lib(?:torch|c10|caffe2|shm)\w*|_C)\b[\w.-]{0,60}\.so")


def unicode_width(width: str, running: str | None) -> Judgement:
    """A name that Python 2 has by how wide its characters are compiled.

    PEP 261 and PEP 513: ``--enable-unicode=ucs4`` is the tag cp27mu, ``ucs2`` is cp27m. The
    addresses of torch's first wheels (torch-0.1.12.post2-cp27-none-linux_x86_64.whl) stand in
    pytorch.org's notes on its previous versions.
    """
    wide = width == "4"
    file, tag = ("UCS4 (wide, cp27mu)", "cp27mu") if wide else ("UCS2 (narrow, cp27m)", "cp27m")
    other = "UCS2 (narrow, cp27m)" if wide else "UCS4 (wide, cp27mu)"
    cause = (
        f"Python before 3.3 exports it only where it was built with {file} characters: the file "
        f"is for such a Python 2, and the interpreter that loads it is a {other} one"
    )
    cause += "." if (running or "").startswith("2") else ", or a Python 3.3 or later."
    fitting = "cp27m" if wide else "cp27mu"
    have = "conda's and the distributions'" if wide else "pyenv's"
    notes = (
        f"The wheel in use is for {tag}. For a Python 2.7 of the other sort it is the one with "
        f"{fitting} in its name; pip takes the right one by itself when it is not given a file.",
        f"Where there is no such wheel, a Python 2.7 of the file's own sort ({have}) or a build "
        "from source with the Python that runs are the ways out: torch's first wheels (0.1) were "
        "for UCS4 alone, with the tag cp27-none, which pip takes for either sort.",
        "The first command prints 1114111 for UCS4 and 65535 for UCS2. Distributions build Python "
        "2 with UCS4, python.org's sources and pyenv with UCS2 unless told otherwise.",
    )
    return Judgement(KIND, CODE, UNKNOWN, cause, notes, "high")


def width_commands(python: str) -> tuple[str, ...]:
    """How wide the characters of the Python that runs are."""
    return (
        f"{python} -c 'import sys; print(sys.maxunicode, sys.version, sys.executable)'",
        f"{python} -m pip --version",
    )


def torch_by_python_2(needed_by: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """(commands, notes) where it is a file of torch's that asks for a name of Python 2."""
    files = [file for file in needed_by if _OF_TORCH.search(file)]
    if not files or any("python2" in file for file in files):  # there it is Python 2's own torch
        return None
    return (
        "cd /path/to/pytorch && rm -rf build && python3 setup.py clean && python3 setup.py install",
        "python3 -c 'import sys; print(sys.version, sys.executable)'",
    ), (
        "No wheel of torch for Python 3 asks for such a name: most likely this torch was built "
        "from source, with Python 2 or in a build directory that Python 2 had been at work in. "
        "The first command is for its source directory and builds it from the beginning with "
        "Python 3 (with --user, where it was installed so).",
    )


def width_of(name: str) -> str:
    """Of a name: the way its width is written, ``4`` or ``2``; "" for all others."""
    found = re.match(r"_?PyUnicodeUCS([24])_", name)
    return found[1] if found else ""
