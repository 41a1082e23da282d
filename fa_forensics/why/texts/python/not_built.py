"""A compiled module that was never built: where it is looked for, and how it is compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fa_forensics.facts.python_api import has_partners
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.builds.toolkit_commands import on_linux, on_windows
from fa_forensics.why.texts.clues import installed, pip_name, version_of
from fa_forensics.why.texts.python.project_modules import too_old_for

ABSENT = "FA880"

#: Modules of extensions for torch, by the names that their projects give them; PIL._imaging and
#: Python's own _ctypes are none.
_OF_TORCH = lazily(r"(?:^|_)(?:C|ext|cuda|kernels?|ops)$|_C_|cuda")
_PART = lazily(r"[A-Za-z_]\w{0,80}")


def absent(seen: Seen, module: str, package: str | None, again: tuple[str, ...]) -> Answer:
    """Python files of the package ask for its compiled module, which is not found.

    ``again`` is the command that builds a package that pip knows.
    """
    version = version_of(seen, package) if package else None
    name = f"{package} {version}" if version else package or "the package"
    last = module.split(".")[-1]
    here = not seen.elsewhere and seen.place.environment is not None
    here = here and package is not None and installed(seen, package) is not None
    cause = f"The Python files of {name} are there, its compiled module {last} is not found"
    python = seen.python_version if here or seen.elsewhere else None
    row = row_of(package) if package else None
    tree, inside = (
        seen.mention.detail.get("tree", "") or tree_of(seen.mention.detail, module),
        module,
    )
    if not tree and row is not None and row.get("modules_in"):
        # beside the package's files; others lie on the path, where no source tree hides them
        inside = f"{str(row['import']).partition('.')[0]}.{module}"
        tree = tree_of(seen.mention.detail, inside)
    if tree and not here:
        return _in_a_tree(seen, inside, package, last, tree)
    if here:
        cause += (
            f": no file {last}.*.so is in this environment. The installation left the compiled "
            "part out."
        )
    elif package == "torch":
        cause += _OF_TORCH_ITSELF
    else:
        of = f" than {python}" if python else ""
        cause += (
            f". Two causes fit: the build left it out (or a source tree without a build is "
            f"imported), or it is there for another Python{of}, whose tag in the file name this "
            "one does not look for. The first command tells them apart."
        )
    skipped = "FLASH_ATTENTION_SKIP_CUDA_BUILD, " if package == "flash-attn" else ""
    notes = [
        f"No file: the package was installed without compiling ({skipped}an interrupted build, the "
        "source directory as working directory). A file with another cpython tag: it was built by, "
        "or renamed for, another Python.",
    ]
    notes[:0] = too_old_for(seen, package)
    if package == "torch":
        notes = [_NO_FILE_OF_TORCH]
    helps, more = _built(seen, module, package, again)
    if package == "apex":
        more = (*more, _WITHOUT_APEX)
    if package == "mmcv" and row is not None:
        cause += _MMCV_CAUSE
        helps, more = _mmcv(seen, row)
    if row is not None and row.get("namesake"):
        cause += _NAMESAKE_CAUSE
        helps, more = of_the_project(seen, package or "", row)
    return seen.answer(
        "damaged-file", ABSENT, cause, owner=package, direction="none",
        confidence="high" if here else "medium",
        help=(_find(seen, _path_of(module, row)), *helps), notes=(*notes, *more),
    )  # fmt: skip


_WITHOUT_APEX = (
    "A program that takes apex only where it can be imported (T5 of transformers, and others with "
    "a layer of torch's in reserve) does without: pip uninstall apex, or conda remove nvidia-apex "
    "where conda installed it, whose build may be that of the Python files alone."
)
#: Said of torch, whose wheels all have their compiled module.
_OF_TORCH_ITSELF = (
    ". Every wheel of torch has it, so three causes fit: the installation is not whole (an upgrade "
    "or removal that broke off, two installations over one another), the file is there for another "
    "Python, or a directory named torch without it (torch's source tree, one of the program's own) "
    "comes first. The first command tells them apart."
)
_NO_FILE_OF_TORCH = (
    "No file: the installation is not whole, and the command with --force-reinstall puts back the "
    "same release, so that torchvision and the like still fit; started in a directory with a "
    "folder torch, another directory is the cure. A file with another cpython tag: it is another "
    "Python's, or a wheel's that was renamed to pass pip's check."
)
_MMCV_CAUSE = (
    " A third does too, and is the likeliest where pip took it by its name: mmcv before 2.0 has no "
    "compiled module (mmcv-full has it), and from 2.0 on mmcv-lite has none."
)


def _mmcv(seen: Seen, row: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): mmcv with its operations, in the line of releases that the program uses.

    docs/en/get_started/installation.md and build.md of mmcv: packages, MMCV_WITH_OPS, the index.
    """
    from fa_forensics.why.ways.same_release import label_of, wheel_page

    version = (version_of(seen, "mmcv") or "").partition("+")[0]
    present, label = seen.place.present, label_of(seen.paste, seen.place)
    page = wheel_page(row, label, present.release) if present is not None and label else ""
    head = f"{seen.pip} install --no-cache-dir -f {page or 'ADDRESS'}"
    release = version if re.fullmatch(r"\d{1,2}(?:\.\d{1,3}){2}", version) else ""
    old = " ".join((head, f'"mmcv-full=={release or "1.X.Y"}"'))
    new = " ".join((head, f'"mmcv=={release or "2.X.Y"}"'))
    ways = {"1": (old,), "2": (new,)}.get(version[:1], (old, new))
    notes = [
        "What the list shows decides: a program for mmcv 1 (without mmengine) takes mmcv-full in "
        "the release that mmcv has there, one for mmcv 2 takes mmcv; 2 in place of 1 has other "
        "modules, and the program fails elsewhere then. 1.X.Y or 2.X.Y is that release.",
        "ADDRESS is https://download.openmmlab.com/mmcv/dist/cu118/torch2.0/index.html with the "
        "CUDA and the torch that are there: it has wheels for many of them, up to torch 2.4.",
        "mim install (pip install openmim) finds the wheel by itself. For a torch without one pip "
        "compiles: MMCV_WITH_OPS=1 FORCE_CUDA=1 before the command, --no-build-isolation in it, "
        "and a toolkit of torch's CUDA with its nvcc.",
    ]
    if page:
        del notes[1]
    if release:
        del notes[0]
    remove = f"{seen.pip} uninstall -y mmcv mmcv-lite mmcv-full"
    return (f"{seen.pip} list", remove, *ways), tuple(notes)


def _path_of(module: str, row: Mapping[str, object] | None) -> str:
    """Where a module's file lies below site-packages: a package can put a directory on the path."""
    folder = str(row.get("modules_in", "")) if row is not None and "." not in module else ""
    return f"{folder}/{module}" if folder else module


_NAMESAKE_CAUSE = (
    " A third does too, and is the likeliest where pip took it by its name alone: the package "
    "index has another project of that name, which has no compiled module at all."
)


def of_the_project(
    seen: Seen, package: str, row: Mapping[str, object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the project's own wheel in place of its namesake."""
    wheels = row.get("wheels")
    page = str(wheels.get("releases", "")) if isinstance(wheels, Mapping) else ""
    name = str(wheels.get("name", "")) if isinstance(wheels, Mapping) else ""
    return (
        f"{seen.pip} show {package}",
        f"{seen.pip} uninstall -y {package}",
        f"{seen.pip} install --no-deps ADDRESS_OF_THE_WHEEL",
    ), (
        f"The summary that pip show prints tells the two projects apart. The project's "
        f"own wheels are at {page}, one for each torch, CUDA, Python and system (as "
        f"{name}): the address of the one for what is here is what is put in place of "
        "ADDRESS_OF_THE_WHEEL. pip install with the name alone gets the other project again.",
    )


def _find(seen: Seen, module: str) -> str:
    """Every file of the module, under whatever tag, for any shell.

    The first entry of the path that ``python -c`` has is empty: the working directory.
    """
    path = module.replace(".", "/")
    ends = ("pyd",) if on_windows(seen) else ("so",) if on_linux(seen) else ("so", "pyd")
    files = " + ".join(f"glob.glob(os.path.join(p,'{path}*.{end}'))" for end in ends)
    return (
        f'{seen.python} -c "import sys, os, glob; print(sys.version); [print(f) for p in sys.path '
        f'for f in {files}]"'
    )


#: setup.py of vLLM: on other systems than Linux and macOS its target is "empty".
_NO_WINDOWS = (
    "vLLM has no compiled part for Windows: its setup.py compiles nothing there, and its wheels "
    "are for Linux. It runs under WSL 2 or in its Linux container; a wheel for Windows is somebody "
    "else's, for one torch, CUDA and Python."
)


def _built(
    seen: Seen, module: str, package: str | None, again: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): how the module of an extension for torch is compiled."""
    last = module.split(".")[-1]
    if package == "torch" or not _OF_TORCH.search(last) or too_old_for(seen, package):
        return again, ()
    if package == "vllm" and on_windows(seen):
        return (), (_NO_WINDOWS,)
    if again and "--no-build-isolation" not in again[0]:
        return again, ()  # a wheel
    look, notes = _toolkit(seen)
    if again:
        return (look, *again), notes
    folder = "/path/to/the/source"
    where = (
        f"{folder} is the directory with the setup.py (or pyproject.toml) that has the sources of "
        f"{last}: the project's own, or the one below it that its README has compiled."
    )
    return (look, *_build_in(seen, folder)), (where, *notes)


def _toolkit(seen: Seen) -> tuple[str, tuple[str, ...]]:
    """(command, notes): what a build of an extension for CUDA has to find."""
    look = (
        f'{seen.python} -c "import torch; from torch.utils.cpp_extension import CUDA_HOME; '
        'print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), CUDA_HOME)"'
    )
    note = (
        "Many a setup.py leaves the compiled part out, and reports no error, where torch is a "
        "build without CUDA, CUDA_HOME is None or torch sees no GPU (in docker build, on a login "
        "node): the command with CUDA_HOME prints these. A toolkit of torch's CUDA version with "
        "its nvcc, CUDA_HOME set to it, has to be there before the build (without a GPU, "
        "FORCE_CUDA=1 or TORCH_CUDA_ARCH_LIST where the project reads them); then its log shows "
        "that nvcc runs."
    )
    windows = (
        "On Windows the build takes Visual Studio's C++ compiler and nvcc; a prebuilt wheel of "
        "the package for this torch, CUDA and Python, where somebody has one, needs neither."
    )
    return look, (note, *((windows,) if on_windows(seen) else ()))


def _build_in(seen: Seen, folder: str, package: str | None = None) -> tuple[str, ...]:
    """Compile a source tree in place with the torch that is there, and the package's switches."""
    build = " ".join((seen.pip, "install -v --no-build-isolation --no-deps -e", "."))
    if on_windows(seen):
        return " ".join(
            ("pushd", f'"{folder}"')
        ), build  # which changes the drive too, in PowerShell as in cmd
    row = row_of(package) if package else None
    switches = f"{row['environment']} " if row is not None and row.get("environment") else ""
    return (f"cd {_quoted(folder)} && {switches}{build}",)


def tree_of(detail: Mapping[str, str], module: str) -> str:
    """The source tree, outside of site-packages, that a package was imported from; "" for none."""
    top = (module if "." in module else detail.get("module") or "").split(".")[0]
    for path in (detail.get("where", ""), detail.get("frame", "")):
        sep = "\\" if re.match(r"[A-Za-z]:\\", path) else "/"
        part = f"{sep}{top}{sep}"
        apart = top and part in path and not re.search(r"-packages[/\\]|\.egg[/\\]", path)
        if apart and (sep == "\\" or path.startswith(("/", "~/"))):
            return path.rpartition(part)[0].partition(f"{part}{top}{sep}")[0]
        if apart and path.startswith(f"{top}/{top}/"):  # below the directory of the clone
            return f".../{top}"
    return ""


#: ``_C``, ``_ext``, ``_cuda`` and ``quant_cuda`` are compiled; ``_utils`` and numba's ``cuda`` are
#: Python files, which a circle of imports asks for.
_BUILT = lazily(r"(?:^|_)(?:C|C_\w{1,40})$|_(?:ext|cuda|cpp)$|^_imaging$")


def never_built(detail: Mapping[str, str], module: str, name: str) -> bool:
    """Whether ``from . import _C`` found no file, though Python speaks of a circular import.

    A package that asks for its own compiled module while it starts is half initialised in any
    case. torch's family has a release of each for each torch, which is looked at first.
    """
    if not detail.get("partly") or not _BUILT.search(name):
        return False
    own = detail.get("sort") == "import" and "." not in module and not has_partners(module)
    return own or bool(tree_of(detail, module))


def _in_a_tree(seen: Seen, module: str, package: str | None, last: str, tree: str) -> Answer:
    """A source tree is imported in place of the installed package, and was not built in place."""
    top = (module if "." in module else seen.mention.detail.get("module", "")).split(".")[0]
    # setup.py lies beside src/, not in it, but /usr/src and ~/src hold projects
    home = r"(?<!^/usr)(?<!^/opt)(?<!^/root)(?<!^~)"
    if not re.match(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\]+[/\\]src$", tree):
        tree = re.sub(rf"(?<=[\w.-]){home}[/\\]src$", "", tree)
    version = version_of(seen, package) if package else None
    name = f"{package} {version}" if version else package or top
    what = f"its compiled module {last}"
    if last == "_version":  # setuptools-scm's
        what = "its file _version.py, which a build writes,"
    cause = (
        f"{top} is imported from the source tree {tree}, and {what} is not "
        f"there: the tree was never built in place. The working directory, or an editable install, "
        f"comes before an installed {name}, which may be whole."
    )
    if re.match(r"[A-Za-z]:", tree):
        return _in_a_folder_of_windows(seen, name, top, last, tree)
    look, notes = _toolkit(seen) if _OF_TORCH.search(last) and top != "torch" else ("", ())
    first = f"cd / && {seen.python} -c 'import {top}; print({top}.__file__)'"
    (build,) = _build_in(seen, tree, package)
    return seen.answer(
        "damaged-file", ABSENT, cause, owner=package, direction="none", confidence="medium",
        help=(first, *((look,) if look else ()), build),
        notes=("Where the first command prints the installed package, run the program from another "
               "directory than the source tree; else the last builds the tree in place.",
               *notes),
    )  # fmt: skip


def _on_the_index(seen: Seen, top: str) -> str | None:
    """pip's name of a package, where the index has that very package by it."""
    name = pip_name(seen, top)
    row = row_of(name) if name is not None else None
    return None if row and str(row.get("requirement", "")).startswith("git+") else name


def _in_a_folder_of_windows(seen: Seen, name: str, top: str, last: str, tree: str) -> Answer:
    """As in a tree, or a wheel that was unpacked by hand, perhaps one for another system."""
    cause = (
        f"{top} is imported from the directory {tree}, and its compiled module {last} is not "
        f"there for this Python: a source tree that was not built, or a wheel unpacked by hand "
        f"(one for another system or Python). It comes before an installed {name}."
    )
    known = _on_the_index(seen, top)
    helps = [" ".join(("dir", "/b", f'"{tree}\\{top}\\{last}*"')),
             f'cd \\ && {seen.python} -c "import {top}; print({top}.__file__)"']  # fmt: skip
    notes = ["Leave that directory and take it off PYTHONPATH: where the second command prints "
             "another place, the program works from there."]  # fmt: skip
    look, more = _toolkit(seen) if _OF_TORCH.search(last) else ("", ())
    helps += [look] if look else []
    if known is not None:
        helps.append(f"{seen.pip} install {known}")
        notes.append(
            "Else let pip install the package: it takes the wheel for this Python, which copying "
            "folders does not."
        )
    else:
        helps += _build_in(seen, tree)
        notes.append(
            "Else, where the directory has a setup.py or pyproject.toml, the last command compiles "
            "the module there."
        )
    return seen.answer(
        "damaged-file", ABSENT, cause, owner=top, direction="none", confidence="medium",
        help=tuple(helps), notes=(*notes, *more),
    )  # fmt: skip


def _quoted(path: str) -> str:
    """A path for a shell, which has to see a ~ at its start; a stand-in for a cut one."""
    return "/path/to/the/source" if "..." in path else quoted(path)
