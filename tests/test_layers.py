"""The shape of the code: imports point downwards, one module executes, rules do no I/O."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fa_forensics"

#: Each part of the package and the parts it may import beside itself. There is no cycle in it.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "records": set(),
    "patterns": set(),
    "forked": set(),
    "report": set(),
    "facts": {"errors", "report"},
    "resolve": {"facts", "errors", "report"},
    "atlas": {"facts", "errors", "report"},
    "rules": {"resolve", "facts", "errors", "report", "report_env", "report_wheels"},
    "confirm": {"errors", "report"},
    "render": {
        "errors",
        "report",
        "report_releases",
        "report_compare",
        "report_env",
        "report_wheels",
        "report_lock",
        "report_why",
    },
    "fitting": {"rules", "facts", "errors", "report"},
    "views": {"reading", "resolve", "facts", "errors", "report"},
    "reading": {"fitting", "rules", "facts", "errors", "report"},
    "flooring": {"reading", "resolve", "facts", "errors", "report"},
    "placing": {"reading", "atlas", "resolve", "facts", "errors", "report"},
    "asked": {"placing", "atlas", "facts", "errors", "report"},
    "judge": {"atlas", "rules", "confirm", "resolve", "facts", "errors", "report"},
    "why": {"views", "atlas", "rules", "resolve", "facts", "errors", "report", "report_why"},
    "pipeline": {
        "asked",
        "placing",
        "flooring",
        "fitting",
        "reading",
        "judge",
        "views",
        "atlas",
        "rules",
        "confirm",
        "resolve",
        "facts",
        "errors",
        "report",
    },
    "report_releases": {"report"},
    "copies": {"resolve", "rules", "facts", "errors", "report", "report_env"},
    "runtime": {"resolve", "rules", "facts", "errors", "report", "report_env"},
    "report_compare": {"report"},
    "compare": {"facts", "errors", "report", "report_compare"},
    "report_env": {"report"},
    "report_wheels": {"report"},
    "report_lock": {"report"},
    "report_why": {"report"},
    "lock": {"views", "facts", "errors", "report", "report_lock"},
    "artefacts": {"forked", "pipeline", "facts", "errors", "report", "report_env"},
    "packages": {"pipeline", "rules", "facts", "errors", "report", "report_env"},
    "env": {
        "artefacts",
        "forked",
        "packages",
        "runtime",
        "copies",
        "views",
        "facts",
        "errors",
        "report",
        "report_env",
    },
    "wheels": {
        "pipeline",
        "placing",
        "asked",
        "views",
        "rules",
        "facts",
        "errors",
        "report",
        "report_env",
        "report_wheels",
    },
    "upgrade": {
        "pipeline",
        "placing",
        "asked",
        "rules",
        "views",
        "facts",
        "errors",
        "report",
        "report_releases",
    },
    "released": {"reading", "atlas", "facts", "errors", "report", "report_releases"},
    "console": {"render", "errors"},
    "explained": {"facts", "errors"},
    "ranks": {
        "compare",
        "env",
        "console",
        "render",
        "facts",
        "errors",
        "report",
        "report_compare",
    },
    "commands": {
        "forked",
        "compare",
        "report_compare",
        "explained",
        "console",
        "upgrade",
        "why",
        "released",
        "render",
        "errors",
        "report_releases",
        "wheels",
        "report_wheels",
        "env",
        "report_env",
        "lock",
        "report_lock",
    },
    "cli": {"commands", "console", "pipeline", "why", "render", "errors", "report"},
    "__main__": {"cli"},
}

#: Packages from an index, and where alone they may be imported.
THIRD_PARTY = {
    "atlas/build/compile.py": {"marisa_trie"},
    "atlas/build/compile_cuda.py": {"marisa_trie"},
    "atlas/build/headers.py": {"marisa_trie"},
    # The maintainer's tools: requests and urllib3 are what remotezip and pypi-simple run on.
    "atlas/build/index.py": {"packaging", "pypi_simple", "remotezip", "requests", "urllib3"},
    "atlas/build/pins.py": {"packaging"},
    "atlas/headers.py": {"marisa_trie"},
    "atlas/libraries.py": {"marisa_trie"},
    "atlas/store.py": {"marisa_trie"},
    "cli.py": {"click"},
    "commands/atlas.py": {"click"},
    "commands/compare.py": {"click"},
    "commands/env.py": {"click"},
    "commands/explain.py": {"click"},
    "commands/upgrade.py": {"click"},
    "commands/wheels.py": {"click"},
    "commands/why.py": {"click"},
    "console.py": {"click"},
    "facts/demangle.py": {"cxxfilt"},
    "facts/elf/facts.py": {"elftools"},
    "facts/fatbin/decompress.py": {"zstandard"},
    "facts/nvml.py": {"pynvml"},
    "facts/stable_abi.py": {"abi3info"},
    "facts/fatbin/unpack.py": {"lz4", "zstandard"},
    "ranks/store.py": {"torch"},
}

#: What loads code into the process that calls it.
LOADERS = {
    "CDLL", "PyDLL", "LoadLibrary", "cdll", "dlopen", "ctypes", "_ctypes", "torch",
    "runpy", "exec", "eval", "__import__", "import_module", "exec_module", "load_module",
    "create_module", "spec_from_file_location", "ExtensionFileLoader", "load_dynamic",
}  # fmt: skip
#: The one use of a loader outside confirm/child.py. cxxfilt opens this process's own libc and
#: libstdc++ through ctypes, never an inspected file; demangle.py tells it under which names,
#: since its own search runs ldconfig and takes longer than the whole inspection.
#: The ranks of a job meet in torch's store, and run in the environment that they are about.
LOADER_EXCEPTIONS = {
    "records.py": {"exec"},  # compiles an __init__ from the names of a class's own fields
    "facts/demangle.py": {"ctypes"},
    "ranks/store.py": {"torch"},
    "why/pasted.py": {"import_module"},  # a module of its own, by the table in texts/index.py
}
#: ``Process.dlopen`` models what the loader would do; it reads tables. ``_ctypes.dlopen`` would
#: show by its import.
MODELLED = {"dlopen"}

#: What starts another process, and the only modules that do.
STARTER_MODULES = {"subprocess", "_posixsubprocess", "multiprocessing", "pty"}
STARTERS = re.compile(r"os\.(posix_spawnp?|forkp?t?y?|system|popen|(exec|spawn)[lv]p?e?)$")
MAY_START = {
    "confirm/process.py",  # the confirmation's child
    "facts/fatbin/cuobjdump.py",  # the second witness, when asked for
    "facts/demangle.py",  # a fork of this process, to demangle a hostile name under limits
    "forked.py",  # copies of this process, on the other cores
}

#: Of os.path, what works on the text alone.
PURE_PATH = {"basename", "dirname", "join", "normpath", "split", "splitext", "isabs", "sep"}
IO_MODULES = {"io", "pathlib", "shutil", "glob", "tempfile", "socket", "sys", "mmap", "zipfile"}

MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60


@cache
def sources(*folders: str) -> dict[str, ast.Module]:
    """Parsed files, by their path relative to the package or to the tree."""
    base = PACKAGE if not folders else ROOT
    places = [base / folder for folder in folders] or [base]
    files = [path for place in places for path in sorted(place.rglob("*.py"))]
    return {path.relative_to(base).as_posix(): ast.parse(path.read_bytes()) for path in files}


def imported(name: str, tree: ast.Module) -> Iterator[str]:
    """Every module a file imports, anywhere in it, under its absolute name."""
    package = ["fa_forensics", *name.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*parts, *([node.module] if node.module else [])])
            if module == "fa_forensics":  # its submodules, or names of its own
                yield from (f"{module}.{alias.name}" for alias in node.names)
            else:
                yield module


def part_of(module: str) -> str:
    return module.split(".")[1]


def names_in(tree: ast.Module) -> set[str]:
    """Every plain name, attribute, imported module and imported name of a file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found


def calls_in(tree: ast.Module) -> set[str]:
    """The names of what a file calls: ``f`` of ``f()`` and of ``a.f()``."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {f.id for f in functions if isinstance(f, ast.Name)} | {
        f.attr for f in functions if isinstance(f, ast.Attribute)
    }


def test_imports_point_downwards() -> None:
    wrong = []
    for name, tree in sources().items():
        part = name.split("/")[0].removesuffix(".py")
        if part == "__init__":
            allowed: set[str] = set()
        else:
            assert part in MAY_IMPORT, f"{name}: give this part a place in MAY_IMPORT"
            # Any part may define records and patterns, as it may define dataclasses.
            allowed = MAY_IMPORT[part] | {part, "records", "patterns", "__version__"}
        for module in imported(name, tree):
            if module.startswith("fa_forensics.") and part_of(module) not in allowed:
                wrong.append(f"{name} imports {module}")
    assert wrong == []


def test_the_order_of_layers_has_no_cycle() -> None:
    placed: set[str] = set()
    while len(placed) < len(MAY_IMPORT):
        ready = {part for part, below in MAY_IMPORT.items() if below <= placed} - placed
        assert ready, f"a cycle among {sorted(set(MAY_IMPORT) - placed)}"
        placed |= ready


def test_packages_from_an_index_are_imported_in_one_place_each() -> None:
    found: dict[str, set[str]] = {}
    for name, tree in sources().items():
        modules = {module.split(".")[0] for module in imported(name, tree)}
        foreign = modules - sys.stdlib_module_names - {"fa_forensics"}
        if foreign:
            found[name] = foreign
    assert found == THIRD_PARTY


def test_the_confirmation_child_needs_nothing_but_the_standard_library() -> None:
    # It is run as a file by the inspected environment's own Python, where this package is not.
    modules = {m.split(".")[0] for m in imported("confirm/child.py", sources()["confirm/child.py"])}
    assert modules <= sys.stdlib_module_names


def test_only_the_confirmation_child_loads_code() -> None:
    wrong = {}
    for name, tree in sources().items():
        if name == "confirm/child.py":
            continue
        # `torch` and `dlopen` are also words of this field; calls and imports are what counts.
        modules = {module.split(".")[0] for module in imported(name, tree)}
        attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        used = (LOADERS & modules) | (LOADERS & calls_in(tree)) | ({"cdll", "CDLL"} & attributes)
        used -= LOADER_EXCEPTIONS.get(name, set()) | MODELLED
        if used:
            wrong[name] = used
    assert wrong == {}


def test_the_confirmation_child_does_load_code() -> None:
    # The test above would prove nothing if these were not the names that loading goes by.
    assert {"import_module", "CDLL"} <= calls_in(sources()["confirm/child.py"])


def test_the_confirmation_child_is_never_imported() -> None:
    child = "fa_forensics.confirm.child"
    assert [name for name, tree in sources().items() if child in set(imported(name, tree))] == []


def test_processes_are_started_in_three_places() -> None:
    found = set()
    for name, tree in sources().items():
        if STARTER_MODULES & names_in(tree) or any(map(STARTERS.match, os_uses(tree))):
            found.add(name)
    assert found == MAY_START


def os_uses(tree: ast.Module) -> set[str]:
    """What a file takes from ``os`` itself: ``os.stat``, not ``os.path.join``."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {
        f"os.{node.attr}"
        for node in nodes
        if isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr != "path"
    }


def io_of(tree: ast.Module) -> set[str]:
    """What a file does that reaches outside it, by the names it uses."""
    used = ({"open", "print", "input"} & calls_in(tree)) | (IO_MODULES & names_in(tree))
    used |= (STARTER_MODULES & names_in(tree)) | os_uses(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)):
            continue
        if node.value.attr == "path" and node.attr not in PURE_PATH:
            used.add(f"os.path.{node.attr}")
    return used


def test_rules_do_no_io() -> None:
    found = {name: io_of(tree) for name, tree in sources().items() if name.startswith("rules/")}
    assert len(found) > 5
    assert {name: used for name, used in found.items() if used} == {}


@pytest.mark.parametrize(
    "code", ["open('x')", "import os; os.stat('x')", "os.path.exists(p)", "import pathlib"]
)
def test_io_is_seen_by_the_test_above(code: str) -> None:
    assert io_of(ast.parse(code))


def test_files_and_functions_stay_short() -> None:
    long = []
    for name, tree in sources("fa_forensics", "fixtures", "tests", "benchmarks").items():
        lines = (ROOT / name).read_bytes().count(b"\n")
        if lines > MAX_FILE_LINES:
            long.append(f"{name}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or 0) - node.lineno + 1
                if size > MAX_FUNCTION_LINES:
                    long.append(f"{name}:{node.lineno} {node.name}: {size} lines")
    assert long == []


def test_no_broad_exception_is_swallowed() -> None:
    """``except Exception: pass`` and its like would turn "could not look" into "fine"."""
    found = []
    for name, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                kind = node.type.id if isinstance(node.type, ast.Name) else None
                broad = node.type is None or kind in ("Exception", "BaseException")
                if broad and all(isinstance(line, ast.Pass) for line in node.body):
                    found.append(f"{name}:{node.lineno}")
    assert found == []
