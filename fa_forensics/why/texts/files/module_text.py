"""Answers about compiled modules that Python loads and cannot start: another Python's, renamed."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.texts.python.python_text import rebuilds, row_of_module

KIND, START = "python-abi", "FA892"


def renamed_module(seen: Seen) -> Answer:
    """``dynamic module does not define module export function``: no module of that name."""
    detail = seen.mention.detail
    function = detail.get("function", "")
    module = re.sub(r"^(?:PyInit_|init)", "", function)
    file = seen.mention.file
    look = f"nm -D {shlex.quote(file)} | grep -iE ' (PyInit|init)'" if file else ""
    if not file:
        name = f"{module}*.so" if module else "NAME*.so"
        look = (
            f"find . $({seen.python} -c 'import site; print(*site.getsitepackages())') -name "
            f"'{name}' -print -exec nm -D {{}} ';' | grep -E '[.]so$| (PyInit|init)'"
        )
    top = _top_folder(detail.get("frame", ""))
    package = package_in(seen) or top
    again: tuple[str, ...] = ()
    if module.startswith("libKeOps"):  # compiled at run time, into a cache of its own
        again = (f"{seen.python} -c 'import pykeops; pykeops.clean_pykeops()'",)
    if package_in(seen) is not None:
        again = rebuilds(seen, package_in(seen), row_of_module(module) if module else None)
    wanted = f" ({function})" if function else ""
    cause = (
        f"The file was found under a module name that it does not define{wanted}. Three causes "
        "fit: it was compiled for another Python (cmake and make take the one that they find "
        "first, and a module for Python 2 starts with init in place of PyInit_); it was renamed, "
        "or the name in its source is another; or it is a library for torch.ops.load_library or "
        "ctypes and no Python module."
    )
    notes = [
        f"The first command tells them apart: init{module} is a module for Python 2, PyInit_ with "
        "another name is a renamed one, no such line is no Python module.",
        "Another Python: build it again from an empty build directory with the one that runs "
        "(CMake: -DPYTHON_EXECUTABLE or -DPython_EXECUTABLE, or -DPython3_EXECUTABLE).",
        "The name in PYBIND11_MODULE (TORCH_EXTENSION_NAME), in setup.py and of the file have to "
        "be one and the same. A binding of torch.utils.ffi, which went with torch 1.0, is no "
        "Python module: it has to be moved to torch.utils.cpp_extension.",
    ]
    if detail.get("python2"):
        cause = (
            f"Python 2 says this{wanted}: the file is a module for Python 3 (or was renamed), and "
            "the python that ran is Python 2."
        )
        notes = ["python3 in place of python, or a build for Python 2, is the way out."]
    return seen.answer(
        KIND, "FA403", cause, owner=package, direction="none",
        confidence="high" if detail.get("python2") else "medium",
        help=(look, *again, seen.inspect_command()), notes=tuple(notes),
    )  # fmt: skip


def _top_folder(path: str) -> str | None:
    """The package of a file below site-packages, or of an egg."""
    found = re.search(r"(?:(?:site|dist)-packages|\.egg)/([A-Za-z_]\w{0,80})/", path)
    return found[1] if found else None


def python_mismatch(seen: Seen) -> Answer:
    """``Python version mismatch: module was compiled for 3.8 ...``."""
    built, running = seen.mention.detail.get("built"), seen.mention.detail.get("running")
    cause = "The module was compiled for another Python than the one that imports it"
    if built and running:
        cause += f": for {built}, and {running} runs"
    file, plugin = seen.mention.file or "", seen.mention.detail.get("plugin", "")
    python = f"{seen.python} -c 'import sys; print(sys.version, sys.executable)'"
    if plugin or "torch_extensions" in file:
        name = plugin or seen.module or "*"
        return seen.answer(
            KIND, "FA401",
            f"{cause}. torch built it when it was first used and kept it in its cache, where "
            "another Python finds it again.",
            owner=plugin or seen.package or seen.module or None, direction="none",
            confidence="high",
            help=(f"rm -r ~/.cache/torch_extensions/*{name}* ~/.cache/torch_extensions/*/*{name}*",
                  python),
            notes=("Without that directory it is built again, by the Python that runs; "
                   "TORCH_EXTENSIONS_DIR may name another place, and one for each environment "
                   "keeps them apart.",),
        )  # fmt: skip
    return seen.answer(
        KIND, "FA401", f"{cause}.", owner=seen.package or package_in(seen), direction="none",
        confidence="high", help=(python, *((seen.inspect_command(),) if file else ())),
        notes=("It must be built again, from an empty build directory, with the Python that runs "
               "it; cmake takes the one that it finds first unless -DPYTHON_EXECUTABLE (or "
               "-DPython_EXECUTABLE, -DPython3_EXECUTABLE) names another.",
               "A module that torch builds at run time lies in ~/.cache/torch_extensions: without "
               "its directory there it is built again."),
    )  # fmt: skip


def module_init(seen: Seen) -> Answer:
    """``initialization of X failed without raising an exception``."""
    module = seen.mention.detail.get("module", "the module")
    cause = (
        f"{module} was found and loaded, and its start failed without saying why. Most often it "
        "was compiled for another numpy or another Python than the ones that run, or something "
        "that it imports failed: the lines printed just above have the reason."
    )
    return seen.answer(
        KIND, START, cause, owner=package_in(seen), direction="unknown", confidence="low",
        help=(f"{seen.python} -c 'import numpy; print(numpy.__version__)'", seen.inspect_command()),
        notes=("No symbol and no library is missing: the loader was done by then.",),
    )  # fmt: skip


def bad_magic(seen: Seen) -> Answer:
    """``bad magic number in 'x'``: bytecode of another Python, without its source."""
    module = seen.mention.detail.get("module", "a module")
    writer = _python_of(seen.mention.detail.get("magic", ""))
    cause = (
        f"The .pyc file of {module} was written by another Python than the one that runs, and its "
        "source (.py) is not there to be compiled again. No compiled library is involved."
    )
    if writer:
        cause = (
            f"The .pyc file of {module} was written by Python {writer}, another one runs here, and "
            "its source (.py) is not there to be compiled again. No compiled library is involved."
        )
    return seen.answer(
        KIND, START, cause, owner=package_in(seen), direction="none", confidence="high",
        help=(f"{seen.python} -c 'import sys; print(sys.version, sys.executable)'",
              f"find . -name '{module.rsplit('.', 1)[-1]}*.pyc'"),
        notes=(
            "Left over beside the source's old place, it can be removed; a package that ships "
            ".pyc alone needs the Python that it was made with.",
        ),
    )  # fmt: skip


def _python_of(shown: str) -> str | None:
    """The Python that writes a magic number, as Python prints its bytes."""
    raw = bytearray()
    for found in re.finditer(r"\\x([0-9a-f]{2})|\\([rnt\\])|(.)", shown, re.IGNORECASE):
        if found[1]:
            raw.append(int(found[1], 16))
        elif found[2]:
            raw.append({"r": 13, "n": 10, "t": 9, "\\": 92}[found[2]])
        else:
            raw.append(ord(found[3]) & 0xFF)
    if len(raw) < 2:
        return None
    return _magic().get(raw[0] | raw[1] << 8)


@lru_cache(maxsize=1)
def _magic() -> dict[int, str]:
    from fa_forensics.facts.tables import read_table

    return {value: key for key, value in read_table("bytecode_magic.json")["magic"].items()}


def one_interpreter(seen: Seen) -> Answer:
    """A module that is imported a second time, by another interpreter of the same process."""
    cause = (
        "A compiled module can be started once in a process, and it was asked for a second time: "
        "by a second interpreter in it (mod_wsgi, an embedding program, subinterpreters), or after "
        "its entry in sys.modules was removed. The file is in order, and no symbol is missing."
    )
    return seen.answer(
        KIND, START, cause, owner=package_in(seen), direction="none", confidence="medium",
        help=("grep -rn 'sys.modules' --include='*.py' . | head",),
        notes=("Under mod_wsgi, WSGIApplicationGroup %{GLOBAL} keeps to the main interpreter. "
               "Tests and plugins that reload modules must leave compiled ones alone.",),
    )  # fmt: skip


def two_pythons(seen: Seen) -> Answer:
    """``Fatal Python error: PyThreadState_Get: no current thread``."""
    cause = (
        "A compiled module called a Python that is not running: two Pythons are in the process. "
        "The module was linked with one (its libpython is in its list of libraries), and another "
        "one imports it. A call without the GIL in the module's own code gives the same message."
    )
    return seen.answer(
        KIND, START, cause, owner="python", direction="unknown", confidence="medium",
        help=("ldd /path/to/the/extension.so | grep python",
              f"{seen.python} -c 'import sys; print(sys.version, sys.executable)'"),
        notes=(
            "On macOS it is otool -L in place of ldd. A module that lists another libpython, or a "
            "Python framework, has to be built with the Python that runs it; extension modules "
            "need no libpython at all.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "no-init": renamed_module,
    "python-mismatch": python_mismatch,
    "module-init": module_init,
    "bad-magic": bad_magic,
    "one-interpreter": one_interpreter,
    "two-pythons": two_pythons,
}
