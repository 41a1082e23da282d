"""What the real loader did, from its own log (LD_DEBUG=libs) and its own tables (dlinfo).

A child of the environment's Python imports torch, then forks once for each file and opens it
there, so that every file meets the same process. Each fork's log goes to a file of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHILD = r"""
import ctypes, json, os, sys
out, files, with_torch = sys.argv[1], json.load(sys.stdin), sys.argv[2] == "1"
class Map(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_void_p), ("name", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
libc.dlopen.restype = ctypes.c_void_p
libc.dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
libc.dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
def where(soname):
    handle = libc.dlopen(soname.encode(), os.RTLD_LAZY | os.RTLD_NOLOAD)
    if not handle:
        return None
    found = ctypes.POINTER(Map)()
    libc.dlinfo(handle, 2, ctypes.byref(found))
    return os.fsdecode(found.contents.name)
done = {"error": None}
if with_torch:
    try:
        import torch
    except Exception as error:
        done["error"] = str(error)
with open(out + "/torch.json", "w") as file:
    json.dump(done, file)
for index, (path, sonames) in enumerate(files):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        continue
    import signal
    signal.alarm(120)
    log = os.open(f"{out}/{index}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    result = {"error": None}
    try:
        if path:
            ctypes.CDLL(path)
    except OSError as error:
        result["error"] = str(error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    result["where"] = {name: where(name) for name in sonames}
    with open(f"{out}/{index}.json", "w") as file:
        json.dump(result, file)
    os._exit(0)
"""

_FIND = re.compile(r"find library=(.*?) \[\d+\]; searching$")
_TRY = re.compile(r"trying file=(.*)$")


@dataclass(frozen=True, slots=True)
class Opened:
    """One file as the real loader opened it.

    ``searched`` maps each name that was looked for to the file taken, None for none.
    ``where`` maps each name asked about to the file that goes by it afterwards. ``error`` is
    the loader's own text.
    """

    searched: Mapping[str, str | None]
    where: Mapping[str, str | None]
    error: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """``import torch`` and each file after it; ``torch_error`` is Python's text."""

    torch_error: str | None
    torch_searched: Mapping[str, str | None]
    opened: tuple[Opened, ...]


def searches(log: str, with_initialisers: bool = True) -> dict[str, str | None]:
    """Name → the file that ended the search for it, None where none did.

    Without initialisers the log is read up to the first one that is run: what those open by
    themselves nobody needs by name.
    """
    found: dict[str, str | None] = {}
    name, last = None, None
    for line in log.splitlines():
        text = line.partition("\t")[2].strip()
        if text.startswith("calling init: ") and not with_initialisers:
            break
        started = _FIND.search(text)
        tried = _TRY.search(text)
        if started:
            if name is not None:
                found.setdefault(name, last)
            name, last = started[1], None
        elif tried:
            # A file of that name ends the search; the loader goes on after all others.
            last = tried[1] if os.path.exists(tried[1]) else None
    if name is not None:
        found.setdefault(name, last)
    return found


def observe(
    python: str,
    files: Sequence[tuple[str, Sequence[str]]],
    scratch: Path,
    variables: Mapping[str, str],
    with_torch: bool = True,
) -> Observed:
    """Open each (file, sonames to ask about) after ``import torch`` in a real process."""
    scratch.mkdir(parents=True, exist_ok=True)
    dropped = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environ = {k: v for k, v in os.environ.items() if k not in dropped}
    environ |= {"LC_ALL": "C", "LD_DEBUG": "libs", "CUDA_VISIBLE_DEVICES": "", **variables}
    with open(scratch / "torch.log", "wb") as log:
        subprocess.run(
            [python, "-c", CHILD, str(scratch), "1" if with_torch else "0"],
            input=json.dumps(files).encode(),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environ,
            check=True,
            timeout=900,
        )
    opened = []
    for index in range(len(files)):
        result = json.loads((scratch / f"{index}.json").read_text())
        text = (scratch / f"{index}.log").read_text(errors="surrogateescape")
        opened.append(Opened(searches(text, False), result["where"], result["error"]))
    error = json.loads((scratch / "torch.json").read_text())["error"]
    text = (scratch / "torch.log").read_text(errors="surrogateescape")
    return Observed(error, searches(text), tuple(opened))
