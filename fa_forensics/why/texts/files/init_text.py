"""``dynamic module does not define module export function``: no Python module of that name."""

from __future__ import annotations

import re
import shlex

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_linux, on_windows
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.texts.python.python_text import rebuilds, row_of_module

KIND, CODE = "python-abi", "FA403"

#: Modules that their packages have torch compile at run time, into its cache.
_BY_TORCH = lazily(r"_plugin(?:_gl)?$|^gsplat_cuda$|^exllama_ext$|^fused_adam$|^cpu_adam$")
#: Names that many projects give to a compiled module of theirs.
_COMMON = frozenset(("_ext", "_C", "ext", "_backend", "_cuda", "cuda", "ops", "utils", "native"))


def renamed_module(seen: Seen) -> Answer:
    """A file that Python found for a module, and that has no start function of that name."""
    detail = seen.mention.detail
    function = detail.get("function", "")
    module = re.sub(r"^(?:PyInit_|init)", "", function)
    wanted = f" ({function})" if function else ""
    if detail.get("python2"):
        return seen.answer(
            KIND, CODE,
            f"Python 2 says this{wanted}: the file is a module for Python 3 (or was renamed), and "
            "the python that ran is Python 2.",
            owner=_owner(seen), direction="none", confidence="high",
            help=(_look(seen, module), *_again(seen, module), seen.inspect_command()),
            notes=("python3 in place of python, or a build for Python 2, is the way out.",),
        )  # fmt: skip
    if detail.get("nothing_linked"):
        return _of_no_source(seen, module, wanted, detail["nothing_linked"])
    if on_windows(seen):
        return _without_export(seen, module, wanted)
    cause, notes = _causes(seen, module, wanted)
    return seen.answer(
        KIND, CODE, cause, owner=_owner(seen), direction="none", confidence="medium",
        help=(*_found_first(seen, module), _look(seen, module), *_again(seen, module),
              *(() if _on_mac(seen) else (seen.inspect_command(),))),
        notes=notes,
    )  # fmt: skip


def _of_no_source(seen: Seen, module: str, wanted: str, made: str) -> Answer:
    """The link line in the text names no object file: the module was made out of nothing."""
    top = re.search(r"/lib\.[\w.-]{1,60}/(?P<path>[\w/]{1,200})\.", made)
    dotted = top["path"].replace("/", ".") if top else module
    package = dotted.partition(".")[0] if "." in dotted else None
    return seen.answer(
        KIND, CODE,
        f"The file holds no start function{wanted}, for nothing was compiled into it: the link "
        f"line in the text makes {made.rsplit('/', 1)[-1]} out of no object file (.o) at all. "
        "setup.py was given an empty list of sources, most likely since its pattern (glob) is "
        "relative to another directory than the one that the build ran in. Python, torch and the "
        "GPU play no part.",
        owner=_owner(seen) or package, direction="none", confidence="high",
        help=(
            "grep -n -E 'glob|sources|_ext_src|dirname|__file__' setup.py",
            f"rm -rf build *.egg-info && {seen.python} -m pip install -v --no-build-isolation "
            "--no-deps --force-reinstall .",
            f"cd / && {seen.python} -c 'import torch, {dotted}'",
        ),
        notes=(
            "The first two run in the directory of setup.py. The first shows where it looks for "
            "the sources: each has to be there (git submodules and files left out of an archive "
            "are often not), and a pattern is best made absolute with "
            "os.path.dirname(os.path.abspath(__file__)).",
            "A build that is right shows a line with -c for each source and their .o files in the "
            "link line.",
        ),
    )  # fmt: skip


def _causes(seen: Seen, module: str, wanted: str) -> tuple[str, tuple[str, ...]]:
    """What fits, and how the commands tell one from another."""
    first = bool(_found_first(seen, module))
    cause = (
        f"The file was found under a module name that it does not define{wanted}. Three causes "
        "fit: it was compiled for another Python (cmake and make take the one that they find "
        "first, and a module for Python 2 starts with init in place of PyInit_); it was renamed, "
        "or the name in its source is another; or it is a library for torch.ops.load_library or "
        "ctypes and no Python module."
    )
    if first:
        cause = (
            f"The file was found under a module name that it does not define{wanted}. Four causes "
            f"fit: another project's file called {module} is found before the one that was built; "
            "it was compiled for another Python (cmake and make take the one that they find first, "
            "and a module for Python 2 starts with init in place of PyInit_); it was renamed, or "
            "the name in its source is another; or it is a library for torch.ops.load_library or "
            "ctypes and no Python module."
        )
    notes = [
        f"The command with nm tells them apart: init{module} is a module for Python 2, PyInit_ "
        "with another name is a renamed one, no such line is no Python module.",
        "Another Python: build it again from an empty build directory with the one that runs "
        "(CMake: -DPYTHON_EXECUTABLE or -DPython_EXECUTABLE, or -DPython3_EXECUTABLE).",
        *(_BY_MAKE if "flag:python-config" in seen.versions else ()),
        "The name in PYBIND11_MODULE (TORCH_EXTENSION_NAME), in setup.py and of the file have to "
        "be one and the same. A binding of torch.utils.ffi, which went with torch 1.0, is no "
        "Python module: it has to be moved to torch.utils.cpp_extension.",
    ]
    if first:
        notes.insert(0, (
            "The first command prints the file that is found for that name: where it is not the "
            "project's own, that one has to go or be renamed, or the project's directory has to "
            "come first (PYTHONPATH)."
        ))  # fmt: skip
    if not on_linux(seen) and not _on_mac(seen):
        notes.append(
            "On Windows (.pyd) it is most often the link: the module was linked without exporting "
            "its start function, and a corrected wheel or build is the way out."
        )
    if _by_torch(seen, module):
        notes.append(
            f"torch compiles {module} when it is first used: without its directory in the cache "
            "it is built again, by the Python and from the sources that are there now."
        )
    return cause, tuple(notes)


_BY_MAKE = (
    "A Makefile takes the Python that its variable PYTHON_CONFIG names: make clean, then make "
    "PYTHON_CONFIG=python3-config, that program being of the Python that runs.",
)


def _without_export(seen: Seen, module: str, wanted: str) -> Answer:
    """On Windows a function is hidden unless the linker is told to export it."""
    name = module or "NAME"
    mask = f"{name}*.pyd" if module else "*.pyd"
    package = _owner(seen)
    folder = (seen.mention.detail.get("import") or "").split(".")[0]
    where = f"/{folder}/" if folder.isidentifier() and folder != name else "/**/"
    look = (
        f'{seen.python} -c "import glob, site; '
        f"[print(f, b'PyInit_{name}' in open(f, 'rb').read()) for p in site.getsitepackages() "
        f"for f in glob.glob(p + '{where}{mask}', recursive=True)]\""
    )
    cause = (
        f"The file was found and has no start function of its module's name{wanted}, so the wheel "
        "or the build is at fault, and neither the installed torch nor the Python. On Windows most "
        "likely it was linked without exporting that function (/EXPORT of the linker, which "
        "setuptools passes for the names of get_export_symbols, or __declspec(dllexport)); a file "
        "that was renamed, or was built under another name, fits too."
    )
    return seen.answer(
        "damaged-file", CODE, cause, owner=package, direction="none", confidence="medium",
        help=(look, f"dumpbin /exports {mask}"),
        notes=(
            "The first command prints each file and whether it holds that name; dumpbin comes with "
            "Visual Studio and lists what a file exports, under its whole name.",
            "A wheel: take a corrected one (or an earlier one) from where it came, and report it "
            "there; installing the same file again changes nothing. A build of one's own: "
            f"extra_link_args=['/EXPORT:PyInit_{name}'] in setup.py, and built again from an empty "
            "build directory.",
        ),
    )  # fmt: skip


def _look(seen: Seen, module: str) -> str:
    """The start functions of the file, or of all files of that name."""
    file = seen.mention.file
    if _on_mac(seen):  # names begin with an underscore there, and nm knows no -D
        if file:
            return f"nm -gU {shlex.quote(file)} | grep -E ' _(PyInit|init)'"
        name = f"{module}*.so" if module else "NAME*.so"
        return (
            f"find . $({seen.python} -c 'import site; print(*site.getsitepackages())') -name "
            f"'{name}' -print -exec nm -gU {{}} ';' | grep -E '[.]so$| _(PyInit|init)'"
        )
    if file:
        return f"nm -D {shlex.quote(file)} | grep -iE ' (PyInit|init)'"
    name = f"{module}*.so" if module else "NAME*.so"
    cache = " ~/.cache/torch_extensions" if _by_torch(seen, module) else ""
    return (
        f"find .{cache} $({seen.python} -c 'import site; print(*site.getsitepackages())') -name "
        f"'{name}' -print -exec nm -D {{}} ';' | grep -E '[.]so$| (PyInit|init)'"
    )


def _found_first(seen: Seen, module: str) -> tuple[str, ...]:
    """Which file Python finds, for a name at the top that many projects have."""
    imported = seen.mention.detail.get("import", "")
    if seen.mention.file or module not in _COMMON or "." in imported:
        return ()
    return (f"{seen.python} -c 'import importlib.util as u; print(u.find_spec(\"{module}\"))'",)


def _by_torch(seen: Seen, module: str) -> bool:
    return _BY_TORCH.search(module) is not None or "torch_extensions" in seen.mention.line


def _again(seen: Seen, module: str) -> tuple[str, ...]:
    """How the module is made again."""
    if module.startswith("libKeOps"):  # compiled at run time, into a cache of its own
        return (f"{seen.python} -c 'import pykeops; pykeops.clean_pykeops()'",)
    cached = (
        (f"rm -rf ~/.cache/torch_extensions/*/{module}",)
        if module and _by_torch(seen, module)
        else ()
    )
    package = _package(seen)
    if package is not None:
        from fa_forensics.rules.remedy import row_of

        row = row_of_module(module) if module else None
        return (*cached, *rebuilds(seen, package, row or row_of(package)))
    folder = _source_folder(seen)
    if folder and not cached:
        there = folder if folder.startswith("/") and "..." not in folder else (
            f"/path/to/{folder.rpartition('/')[2]}"
        )  # fmt: skip
        return (
            f"cd {shlex.quote(there)} && rm -rf build {module}*.so && "
            f"{seen.python} -m pip install -v --no-build-isolation --no-deps -e .",
        )
    return cached


def _package(seen: Seen) -> str | None:
    """The package of the message, or the one that calls a module by its own name and more."""
    from fa_forensics.rules.remedy import known_packages

    found = package_in(seen)
    module = re.sub(r"^(?:PyInit_|init)", "", seen.mention.detail.get("function", ""))
    if found is not None or not module:
        return found
    for row in known_packages():
        top = str(row["import"]).split(".")[0]
        if len(top) > 3 and module.startswith(f"{top}_"):
            return str(row["distribution"])
    return None


def _owner(seen: Seen) -> str | None:
    found = _package(seen) or _top_folder(seen.mention.detail.get("frame", ""))
    return found or _source_folder(seen).rpartition("/")[2] or None


def _source_folder(seen: Seen) -> str:
    """The directory of the Python file that imports the module by its bare name; "" for none."""
    detail = seen.mention.detail
    path = detail.get("frame", "")
    if "." in detail.get("import", "") or "-packages/" in path or not path.endswith(".py"):
        return ""
    if path.endswith("/__init__.py"):  # a package, whose setup.py or CMake files lie elsewhere
        return ""
    folder = path.rpartition("/")[0]
    last = folder.rpartition("/")[2]
    return folder if re.fullmatch(r"[A-Za-z]\w{1,40}(?:-\w{1,20})*", last) else ""


def _top_folder(path: str) -> str | None:
    """The package of a file below site-packages, or of an egg."""
    found = re.search(r"(?:(?:site|dist)-packages|\.egg)/([A-Za-z_]\w{0,80})/", path)
    return found[1] if found else None


def _on_mac(seen: Seen) -> bool:
    told = "flag:macos-told" in seen.versions or seen.versions.get("os", "").startswith("mac")
    return (told and not on_windows(seen)) or "darwin" in (seen.mention.file or "")


ANSWERERS: dict[str, Answerer] = {"no-init": renamed_module}
