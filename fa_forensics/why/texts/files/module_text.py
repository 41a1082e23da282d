"""Answers about modules that Python finds and cannot start: another Python's, a second start."""

from __future__ import annotations

import re
from functools import lru_cache

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in

KIND, START = "python-abi", "FA892"


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
        KIND, "FA401", f"{cause}.", owner=_module_owner(seen), direction="none",
        confidence="high", help=(python, *((seen.inspect_command(),) if file else ())),
        notes=("It must be built again, from an empty build directory, with the Python that runs "
               "it; cmake takes the one that it finds first unless -DPYTHON_EXECUTABLE (or "
               "-DPython_EXECUTABLE, -DPython3_EXECUTABLE) names another.",
               "A module that torch builds at run time lies in ~/.cache/torch_extensions: without "
               "its directory there it is built again."),
    )  # fmt: skip


def _module_owner(seen: Seen) -> str | None:
    """The package of a module, else what the import statement above calls it."""
    imported = seen.mention.detail.get("import", "").strip(".").split(".")[0]
    return package_in(seen) or imported or None


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
    "python-mismatch": python_mismatch,
    "module-init": module_init,
    "bad-magic": bad_magic,
    "one-interpreter": one_interpreter,
    "two-pythons": two_pythons,
}
