"""Python's search for a module that ends in None, and packages that look so for their libraries."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.wheel_pages import page_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import package_in, pip_name, version_of
from fa_forensics.why.texts.python.not_built import tree_of
from fa_forensics.why.texts.python.python_text import rebuilds, row_of_module

#: ``find_spec("xyz")`` and ``find_spec('xyz', [dir])`` in the line of code that failed.
_NAMED = lazily(r"find_spec\(\s{0,8}['\"](?P<module>[A-Za-z_][\w.]{0,100})['\"]")
#: PyG's packages load ``_version_cuda.so`` and others from their own directory (__init__.py).
_PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv")
#: Code that has to do with Python's search; rays, boxes and remotes of git have an origin too.
_SEARCH = lazily(r"find_spec|PathFinder|\bspec\b|importlib")


def is_search(seen: Seen) -> bool:
    """Whether the ``origin`` is one of Python's search: by the line of code, or for PyG's."""
    code = seen.mention.detail.get("code", "")
    return package_in(seen) in _PYG or _SEARCH.search(code) is not None


def not_found(seen: Seen) -> Answer:
    """``find_spec(...).origin`` of None: the module that was looked for is nowhere."""
    package = package_in(seen)
    if package in _PYG:
        return libraries_left_out(seen, package)
    found = _NAMED.search(seen.mention.detail.get("code", ""))
    module = found["module"] if found is not None else ""
    top = module.split(".")[0]
    what = module or "a module"
    row = row_of_module(module) if module else None
    owner = "torch" if top == "torch" else str(row["distribution"]) if row else package
    helps = (
        (f"{seen.python} -c 'import importlib.util, sys; print(sys.executable, "
         f"importlib.util.find_spec(\"{top}\"))'",)
        if top
        else (f"{seen.pip} check",)
    )  # fmt: skip
    return seen.answer(
        "damaged-file" if row and module in row["modules"] else "python-abi",  # type: ignore[operator]
        "FA880",
        f"The code looked for {what} and takes its place (origin) without asking whether it was "
        "found: Python's search ended in None. It is not installed for the Python that ran, or "
        "its compiled file was not built, or is one for another Python.",
        owner=owner, direction="none", confidence="medium", help=helps,
        notes=(*((_ISOLATED,) if "setup.py" in seen.mention.detail.get("frame", "") else ()),),
    )  # fmt: skip


_ISOLATED = (
    "Where pip runs that setup.py, it does so in an environment of its own, which has only what "
    "the package asks for: --no-build-isolation takes what is installed."
)


def libraries_left_out(seen: Seen, package: str) -> Answer:
    """One of PyG's packages does not find its compiled libraries in its own directory."""
    version = version_of(seen, package)
    top = package.replace("-", "_")
    name = f"{package} {version}" if version else package
    detail = seen.mention.detail
    tree = tree_of({**detail, "module": top}, top)
    ends = "pyd" if on_windows(seen) else "so"
    cause = (
        f"The Python files of {name} are there, and the compiled library that they look for in "
        f"their own directory (_version_cuda.{ends} or _version_cpu.{ends}, and its like) is not: "
        "it is a part of the package."
    )
    if tree:
        cause += (
            f" They are those of the source tree {tree}, which was not built in place and comes "
            "before the installed package."
        )
    else:
        cause += (
            " The build failed or left it out: without a CUDA toolkit the half for CUDA "
            "(_cuda), which a torch for CUDA asks for, is not compiled, and no error says so."
        )
    return seen.answer(
        "damaged-file", "FA880", cause, owner=package, direction="none",
        confidence="high" if not tree else "medium",
        help=(_list(seen, top, ends), *_again(seen, package)),
        notes=_notes(seen, package, tree),
    )  # fmt: skip


def _list(seen: Seen, top: str, ends: str) -> str:
    """The compiled files of the package, found without importing it; from anywhere else."""
    away = "" if on_windows(seen) else "cd / && "
    return (
        f"{away}{seen.python} -c \"import importlib.util as u, glob; p = u.find_spec('{top}')"
        f".submodule_search_locations[0]; print(p, glob.glob(p + '/*.{ends}'))\""
    )


def _page(seen: Seen, package: str) -> str:
    torch = re.match(r"(\d+)\.(\d+)", seen.torch or "")
    label = (seen.torch or "").partition("+")[2]
    whole = torch is not None and re.fullmatch(r"cu\d{2,3}|cpu", label) is not None
    row = row_of_module(package.replace("-", "_"))
    minor = f"{torch[1]}.{torch[2]}" if torch is not None else "X.Y"
    return page_of(row, label if whole else "cuXYZ", minor)


def _again(seen: Seen, package: str) -> tuple[str, ...]:
    version = version_of(seen, package)
    name = f"{package}=={version}" if version else package
    page = _page(seen, package)
    whole = page and "XYZ" not in page and "X.Y" not in page
    row = row_of_module(package.replace("-", "_"))
    wheel = (
        f"{seen.pip} install --force-reinstall --no-cache-dir --no-deps --only-binary {package} "
        f"{name} -f {page}"
    )
    build = rebuilds(seen, package, row) if pip_name(seen, package) else ()
    return (wheel, *build) if whole else build


def _notes(seen: Seen, package: str, tree: str) -> tuple[str, ...]:
    page = _page(seen, package)
    whole = "XYZ" not in page and "X.Y" not in page
    notes = [
        "The first command lists the compiled files that are there: none, or those with _cpu "
        "alone, is what fits.",
    ]
    if whole:
        notes.append(
            f"The second command takes the wheel of {package}'s own project for this torch, which "
            "needs no compiler; where it has none, the last compiles it, with nvcc of torch's "
            "CUDA version and CUDA_HOME set to it (FORCE_CUDA=1 without a GPU)."
        )
    else:
        notes.append(
            f"{package}'s own project has wheels by torch and CUDA, which need no compiler: "
            f"pip install --force-reinstall --no-deps {package} -f {page}, with what torch has in "
            "place of cuXYZ (its CUDA, or cpu) and of X.Y (its minor release). The command that "
            "compiles needs nvcc of torch's CUDA version and CUDA_HOME set to it."
        )
    if tree:
        notes.insert(
            0, "The way without a build is to run the program from another directory than the tree."
        )
    return tuple(notes)
