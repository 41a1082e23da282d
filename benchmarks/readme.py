"""Renew the output that README.md shows: ``python -m benchmarks.readme [BLOCK...]``.

Each block between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is what the tool of this tree
prints, with the directories of this machine replaced. The broken example runs in a stand-in for
PyTorch 2.4.0 whose libraries export what the real ones do (fixtures/torch_exports/README.md), so
that it can be made anywhere: CPython 3.11, x86_64, GNU binutils. ``bench`` is renewed only when
named, since it measures; set FA_FORENSICS_REAL_DIR to measure on a real file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator

from fixtures.husk import unpack
from fixtures.stub_torch import cached_stub_torch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
HERE = "/home/me/fa-forensics"  # stands for the directory of this tree
ENV = "/path/to/env"  # stands for the environment that is inspected
SYMBOL = "_ZN3c104cuda9SetDeviceEi"
WHOLE, BROKEN = "vllm_flash_attn-2.6.2", "vllm_flash_attn-2.5.6"
MODULE = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"

_CLI = "from fa_forensics.cli import main; main(prog_name='fa-forensics')"
_TREE = ("-c", f"import sys; sys.path.insert(0, {ROOT!r}); {_CLI}")
_INSTALLED = ("-c", _CLI)


def _run(python: str, how: tuple[str, ...], arguments: tuple[str, ...], folder: str = ROOT) -> str:
    """The tool's stdout, as in a terminal of 100 columns without colours."""
    unset = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    environ |= {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    done = subprocess.run(
        [python, "-I", *how, *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode not in (0, 1, 3, 4):
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def tool(*arguments: str) -> str:
    """What the tool of this tree prints, run by this Python."""
    text = _run(sys.executable, _TREE, arguments)
    # The tree itself is on the path of this run, and on that of no installed tool.
    text = re.sub(rf"{re.escape(ROOT)},\s+", "", text)
    return text.replace(sys.prefix, f"{HERE}/.venv").replace(ROOT, HERE)


@contextlib.contextmanager
def link_as_long_as(path: str, target: str) -> Iterator[str]:
    """A link to ``target`` whose path has the length of ``path``: lines break where they would."""
    link = "/tmp/" + secrets.token_hex(len(path))[: len(path) - len("/tmp/")]
    os.symlink(target, link)
    try:
        yield link
    finally:
        os.unlink(link)


def _make_inspect() -> str:
    """What ``make inspect`` prints: by the .venv's own tool, where this is the .venv's Python."""
    venv = os.path.join(ROOT, ".venv")
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        return tool("inspect", husk(WHOLE))
    with link_as_long_as(HERE, ROOT) as link:
        python = os.path.join(link, ".venv", "bin", "python")
        return _run(python, _INSTALLED, ("inspect", husk(WHOLE)), link).replace(link, HERE)


def _in_stand_in(*arguments: str) -> str:
    with link_as_long_as(ENV, str(cached_stub_torch("2.4.0+cu121").root)) as env:
        return tool(*arguments, "--python", env).replace(env, ENV)


def husk(name: str) -> str:
    """The path of a shipped husk's module, relative to the tree."""
    dest = os.path.join(ROOT, "build", "fixtures")
    return os.path.relpath(os.path.join(unpack(name, dest), MODULE), ROOT)


def _json() -> str:
    path = husk(BROKEN)
    target = json.loads(_in_stand_in("inspect", "--format", "json", path))["targets"][0]
    chosen = {
        "verdict": target["verdict"],
        "missing": target["missing"][:1],
        "cxx11_abi": target["cxx11_abi"],
        "gpu_code": target["gpu_code"],
        "findings": [{"code": f["code"], "title": f["title"]} for f in target["findings"]],
    }
    return json.dumps(chosen, indent=2) + "\n"


def _bench() -> str:
    command = [sys.executable, os.path.join(ROOT, "benchmarks", "bench.py")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


BLOCKS: dict[str, Callable[[], str]] = {
    "help": lambda: tool("--help"),
    "help-inspect": lambda: tool("inspect", "--help"),
    "help-why": lambda: tool("why", "--help"),
    "make-inspect": _make_inspect,
    "broken": lambda: _in_stand_in("inspect", husk(BROKEN)),
    "why": lambda: _in_stand_in("why", SYMBOL),
    "json": _json,
    "bench": _bench,
}
MEASURED = {"bench"}


def pattern(name: str) -> re.Pattern[str]:
    """Finds a block; group 1 is the output in it, below the command."""
    return re.compile(
        rf"<!-- begin {name} -->\n```\w*\n(?:\$ [^\n]*\n)*(.*?)```\n<!-- end {name} -->", re.DOTALL
    )


def main(names: list[str]) -> int:
    """Rewrite the named blocks, or all that are not measured; return the exit code."""
    unknown = sorted(set(names) - set(BLOCKS))
    if unknown:
        print(f"no such block: {', '.join(unknown)}; known: {', '.join(BLOCKS)}", file=sys.stderr)
        return 2
    with open(README, encoding="utf-8") as stream:
        text = stream.read()
    for name in names or [name for name in BLOCKS if name not in MEASURED]:
        blocks = list(pattern(name).finditer(text))
        if len(blocks) != 1:
            print(f"README.md has {len(blocks)} blocks named {name}, not one", file=sys.stderr)
            return 1
        text = text[: blocks[0].start(1)] + BLOCKS[name]() + text[blocks[0].end(1) :]
    with open(README, "w", encoding="utf-8") as stream:
        stream.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
