"""Answers about binary interfaces between modules: numpy's, pybind11's, Cython's."""

from __future__ import annotations

from fa_forensics.facts.numpy_abi import Span, number, span_of_abi, span_of_api, span_of_size
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.two_distributions import cuda_twins, two_distributions
from fa_forensics.why.texts.clues import package_in, pip_name
from fa_forensics.why.texts.python.registry_text import (
    by_two_packages,
    two_sources,
    with_torchs,
)
from fa_forensics.why.texts.python.siblings import of_a_sibling
from fa_forensics.why.texts.python.two_frameworks import torch_beside_paddle

KIND, NUMPY, START, TYPES = "python-abi", "FA891", "FA892", "FA893"


#: Numbers that are not in the table.
_NEWER, _OLDER = Span("9999", None), Span("0", None)


def numpy_abi(seen: Seen) -> Answer:
    """A module that was compiled for another numpy than the one that is imported."""
    detail = seen.mention.detail
    built, found = _built_and_found(seen)
    if built is not None and found is not None and number(built.since) > number(found.since):
        return _for_a_newer_numpy(seen, built, found)
    if (detail.get("unavailable") and built is None) or detail.get("absent"):
        return _unavailable(seen)
    if built is None and detail.get("said", "").endswith("import"):
        return _numpy_alone(seen)
    cause = (
        "A compiled module was built for numpy 1, and numpy 2 is installed. It concerns what "
        "that module exchanges with numpy; no torch symbol and no CUDA library is involved."
    )
    who = detail.get("importer", "")
    notes: list[str] = []
    if built is not None and found is not None and number(found.since) < (2, 0):
        return _for_an_older_numpy(seen)
    if who == "torch" or detail.get("unavailable"):
        cause = (
            "This torch was built for numpy 1, and numpy 2 is installed. It is a warning: torch "
            "works, but cannot exchange tensors with numpy. No symbol is missing, and no CUDA "
            "library is involved."
        )
    elif who:
        notes.append(
            f"The steps printed with it were importing {who}: the module is one of that package, "
            "or of one that it imports."
        )
    notes.append(
        "torch up to 2.2 was built for numpy 1 (on Windows and on Macs with Intel processors, up "
        "to 2.3); newer releases of the module in question take numpy 2."
    )
    return seen.answer(
        KIND, NUMPY, cause, owner="numpy", direction="none", confidence="high",
        help=(f'{seen.pip} install "numpy<2"', *_newer(seen, who), f"{seen.pip} show numpy"),
        notes=tuple(notes),
    )  # fmt: skip


def _built_and_found(seen: Seen) -> tuple[Span | None, Span | None]:
    """The numpy that the module was compiled with, and the one that is imported."""
    detail = seen.mention.detail
    if detail.get("built") and detail.get("found"):
        one, other = int(detail["built"], 16), int(detail["found"], 16)
        return span_of_api(one) or _beyond(one, other), span_of_api(other) or _beyond(other, one)
    if detail.get("built_abi") and detail.get("found_abi"):
        return span_of_abi(int(detail["built_abi"], 16)), span_of_abi(int(detail["found_abi"], 16))
    if detail.get("built_size") and detail.get("found_size"):
        kind = detail.get("struct", "")
        one, other = int(detail["built_size"]), int(detail["found_size"])
        if kind == "dtype":  # the one that became smaller
            return span_of_size(kind, one), span_of_size(kind, other)
        return span_of_size(kind, one) or _beyond(one, other), (
            span_of_size(kind, other) or _beyond(other, one)
        )
    return None, None


def _beyond(mine: int, other: int) -> Span:
    """A number that is not in the table: newer than all, or older."""
    return _NEWER if mine > other else _OLDER


def _for_a_newer_numpy(seen: Seen, built: Span, found: Span) -> Answer:
    known = built != _NEWER
    cause = "A compiled module was built with a newer numpy than the one that is installed"
    if known and found != _OLDER:
        cause += f": with {built.words}, and {found.words} is imported"
    cause += ". No torch symbol and no CUDA library is involved."
    get = f"{seen.pip} install --upgrade numpy"
    if known:
        roof = "" if number(built.since) >= (2, 0) else ",<2"
        get = f'{seen.pip} install "numpy>={built.since}{roof}"'
    who = seen.mention.detail.get("importer", "")
    notes = [
        "The other way out is a build of that module for the numpy that is installed: from source "
        "with --no-build-isolation --no-cache-dir, or an older release of it.",
    ]
    if who:
        notes.insert(0, f"It is a module of {who}, or of a package that it imports.")
    return seen.answer(
        KIND, NUMPY, cause, owner="numpy", direction="none", confidence="high",
        help=(get, f"{seen.pip} show numpy"), notes=tuple(notes),
    )  # fmt: skip


def _for_an_older_numpy(seen: Seen) -> Answer:
    """Within numpy 1, a newer numpy takes older modules: Python warns, and goes on."""
    cause = (
        "A compiled module was built with an older numpy than the one that is imported. Within one "
        "major release numpy takes such modules: it is a warning, and what failed stands "
        "elsewhere."
    )
    return seen.answer(
        KIND, NUMPY, cause, owner="numpy", direction="none", confidence="medium",
        help=(f"{seen.pip} show numpy",),
    )  # fmt: skip


def _numpy_alone(seen: Seen) -> Answer:
    """``numpy.core.multiarray failed to import``, and nothing that says why."""
    cause = (
        "A compiled module could not start because numpy's own compiled part did not answer. Two "
        "causes fit: the module was built for another numpy than the one that is installed (for "
        "numpy 1 with numpy 2 here, or with a newer one than here), or numpy itself does not "
        "import. The first command tells them apart. No torch symbol is involved."
    )
    told = seen.versions.get("pkg:numpy", "")
    helps = [f"{seen.python} -c 'import numpy; print(numpy.__version__, numpy.__file__)'"]
    if told.startswith("2"):
        helps.append(f'{seen.pip} install "numpy<2"')
    elif told.startswith("1"):
        helps.append(f'{seen.pip} install --upgrade "numpy<2"')
    return seen.answer(
        KIND, NUMPY, cause, owner="numpy", direction="none", confidence="medium",
        help=tuple(helps),
        notes=(
            "numpy 2 imports: then numpy<2, or a release of the module that takes numpy 2. An old "
            "numpy 1 imports: then a newer numpy 1. It does not import: install numpy again.",
        ),
    )  # fmt: skip


def _unavailable(seen: Seen) -> Answer:
    """``RuntimeError: Numpy is not available``: torch found none that it can use."""
    detail, torch, numpy = seen.mention.detail, seen.torch, seen.versions.get("pkg:numpy", "")
    cause = (
        "torch found no numpy that it can use when it was imported. Two causes fit: numpy 2 is "
        "installed and this torch was built for numpy 1 (torch up to 2.2, on Windows and on Macs "
        "with Intel processors up to 2.3), or numpy is not installed or does not import. No CUDA "
        "library and no extension plays a part."
    )
    if detail.get("absent"):
        cause = (
            "numpy is not installed for the Python that ran. It is a warning: torch works without, "
            "but cannot exchange tensors with numpy."
        )
        return seen.answer(
            KIND, NUMPY, cause, owner="numpy", direction="none", confidence="high",
            help=(f"{seen.pip} install numpy",),
        )  # fmt: skip
    helps = [
        f"{seen.python} -c 'import numpy, torch; print(numpy.__version__, torch.__version__)'",
        f'{seen.pip} install "numpy<2"',
    ]
    sure = bool(torch and numpy.startswith("2") and _number(torch) < (2, 3))
    if numpy.startswith("1") or (torch and _number(torch) >= (2, 4)):
        helps[1] = f"{seen.pip} install --force-reinstall numpy"
    return seen.answer(
        KIND, NUMPY, cause, owner="numpy", direction="none",
        confidence="high" if sure else "medium", help=tuple(helps),
        notes=("The warning further above, Failed to initialize NumPy, has the reason behind it.",),
    )  # fmt: skip


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("+")[0].split(".")[:2] if part.isdigit())


def _newer(seen: Seen, importer: str) -> tuple[str, ...]:
    """A newer release of the module's package, where its name for pip is known."""
    name = pip_name(seen, importer) if importer and importer != "torch" else None
    return (f"{seen.pip} install --upgrade {name}",) if name else ()


def struct_size(seen: Seen) -> Answer:
    """``x.Y size changed, may indicate binary incompatibility``, of another package than numpy."""
    detail = seen.mention.detail
    owner = detail.get("owner", "")
    whose = "Python" if owner == "builtins" else owner
    cause = (
        f"A compiled module was built against another release of {whose} than the one that is "
        "loaded: the objects that the two share have another size."
    )
    built, found = detail.get("built_size", ""), detail.get("found_size", "")
    older = built and found and int(built) < int(found)
    if older:
        cause += (
            " Those that are loaded are larger: Python only warns of that, and what failed stands "
            "elsewhere."
        )
    name = pip_name(seen, detail.get("importer"))
    helps = (
        (f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {name}",) if name else ()
    )
    return seen.answer(
        KIND, START, cause, owner=owner if owner != "builtins" else "python", direction="none",
        confidence="low" if older else "medium", help=(*helps, f"{seen.pip} check"),
        notes=("A build of that module against what is installed is the way out "
               "(--no-build-isolation --no-cache-dir).",),
    )  # fmt: skip


def cython_signature(seen: Seen) -> Answer:
    """``C function x.y has wrong signature``: two parts of a package are of two releases."""
    owner = seen.mention.detail.get("owner") or seen.mention.detail.get("exporter") or ""
    cause = (
        f"One compiled module uses C functions of another one of {owner}, and the two are of "
        "different releases: the package is half upgraded, or what imports it was built against "
        "another release of it. torch plays no part."
    )
    name = pip_name(seen, owner)
    again = f"{seen.pip} install --force-reinstall --no-cache-dir {name or owner}"
    return seen.answer(
        KIND, START, cause, owner=owner, direction="none", confidence="medium",
        help=(f"{seen.pip} show {owner}", *((again,) if name else ())),
        notes=("Both conda and pip may have installed it, one over the other.",),
    )  # fmt: skip


_REMOVE_ONE = "Remove one of the two copies; a JIT-built one lies in ~/.cache/torch_extensions."


def _twice_by_torch(seen: Seen, name: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(cause, commands, notes) for a type of torch's own that was registered twice."""
    cause = (
        f"{name} was registered twice while torch itself was imported. Two causes fit: the "
        "libraries of two torches are in the process (a C++ libtorch on LD_LIBRARY_PATH, an "
        "older install), or this torch was built by hand, and with another pybind11 beside "
        "its own, or over the leftovers of another build. No symbol is missing."
    )
    helps = (
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; print(torch.__path__)'",
        "find / -name libtorch_python.so -not -path '/proc/*' 2>/dev/null",
    )
    own = (
        "A build of one's own: git submodule update --init --recursive, an empty build "
        "directory, and no USE_SYSTEM_PYBIND11."
    )
    return cause, helps, (own,)


def already_registered(seen: Seen) -> Answer:
    """The same library was loaded twice, from two places."""
    detail = seen.mention.detail
    names = (detail.get(key) for key in ("type", "namespace", "operator", "custom"))
    name = next((found for found in names if found), "the name")
    kind = KIND if detail.get("type") else "wrong-torch"
    cause = (
        f"{name} was registered twice in one process: the same library was loaded from two places "
        "(an installed copy and a build of one's own, or two versions of one package), or by its "
        "path once more after its package was imported."
    )
    helps: tuple[str, ...] = (
        f"{seen.pip} list",
        f"{seen.python} -c 'import sys; print(chr(10).join(sys.path))'",
    )
    notes: tuple[str, ...] = (_REMOVE_ONE,)
    two = two_sources(detail.get("first", ""), detail.get("second", ""))
    if two is not None:
        cause, helps, notes = by_two_packages(seen, name, *two)
    elif detail.get("type") and (beside := torch_beside_paddle(seen, name)) is not None:
        return beside
    elif detail.get("type") and detail.get("base"):
        return type_not_registered(seen)
    elif detail.get("type") and detail.get("torchs"):
        cause, helps, notes = _twice_by_torch(seen, name)
    elif detail.get("type") and (twins := cuda_twins(seen)):
        return two_distributions(seen, name, *twins)
    elif detail.get("type"):
        cause = (
            f"{name} was registered twice with pybind11, and modules that were built with the same "
            "pybind11 internals share one table of types. Two causes fit: one module was loaded "
            "from two places (an installed copy and a build of one's own), or two modules, of one "
            "package or of two, each register the type, which went well as long as one of them was "
            "built with another pybind11 and had a table of its own."
        )
        helps = (
            f"{seen.pip} list",
            f"{seen.python} -c 'import torch; print([(k, v) for k, v in vars(torch._C).items() "
            'if "PYBIND11" in k])\'',
            f"{seen.pip} show pybind11",
        )
        notes = (
            "Two copies: remove one; a JIT-built one lies in ~/.cache/torch_extensions.",
            "Two modules: the source is to be mended, with py::module_local() on the type or with "
            "one of the two registrations taken out. One pybind11 for all modules is no cure: they "
            "share one table then. Until it is mended, an earlier release of the package, or one "
            "of the two modules built again with the pybind11 of the time when it went well "
            "(another version of its internals), gets past it. torch's own headers have a "
            "pybind11; pip's is another one.",
            "Two packages: a process for each of them, or a release of either that was built with "
            "another pybind11.",
        )
    return seen.answer(
        kind, TYPES, cause, owner="torch" if detail.get("torchs") else _registering(seen),
        direction="none", confidence="medium", help=helps, notes=notes,
    )  # fmt: skip


#: The directory of a package in the line of a traceback.
_FOLDER = lazily(r"-packages/([A-Za-z]\w{1,60})/(?!.{0,300}-packages/)")


def _registering(seen: Seen) -> str | None:
    """The package that registers a type, or the one whose import met it.

    That of the text as packages are known, the traceback's, or the only one that the text names.
    """
    common = {"pybind11", "torch", "pytorch", "numpy", "ninja", "triton", "mkl", "cudatoolkit"}
    common |= {"pytorch-cuda", "libstdcxx-ng", "transformers", "accelerate", "kernels"}
    keys = [key.partition(":")[2] for key in seen.versions if key.startswith(("named:", "pkg:"))]
    named = {name for name in keys if name not in common and not name.startswith("nvidia-")}
    met = _FOLDER.search(seen.mention.detail.get("frame", "").replace("\\", "/"))
    raised = met[1] if met is not None and met[1].lower() not in common else None
    return package_in(seen) or raised or (named.pop() if len(named) == 1 else None)


def type_not_registered(seen: Seen) -> Answer:
    """pybind11 meets a C++ type that no loaded module has registered under its key."""
    detail = seen.mention.detail
    wanted = detail.get("base") or detail.get("type") or detail.get("argument") or ""
    torchs = wanted.startswith(("torch::", "at::", "c10::", "c10d::")) or "torch::" in detail.get(
        "said", ""
    )
    what = f"the C++ type {wanted}" if wanted else "a C++ type"
    if "::" in wanted and not torchs and not wanted.startswith("std::"):
        return of_a_sibling(seen, wanted)
    who = "torch" if torchs else "most often torch"
    cause = (
        f"A compiled module uses {what} that no module in this process has registered with "
        f"pybind11. Two causes fit: the module that registers it ({who}) was not "
        "imported before, or the two were built with other pybind11 internals (compiler, flavour "
        "or pybind11 release) and do not see one another's types."
    )
    if torchs and detail.get("internals"):
        cause = (
            f"A compiled module uses {what} that it does not find in pybind11's table: the text "
            "names two versions of pybind11's internals, and torch registered the type in the "
            "table of its own version, where the module looks into another. The module was "
            "compiled with another pybind11 than torch's."
        )
        helps, notes = with_torchs(seen, package_in(seen))
        return seen.answer(
            KIND, TYPES, cause, owner=package_in(seen), direction="none",
            confidence="medium", help=helps, notes=notes,
        )  # fmt: skip
    module = detail.get("import", "").split(".")[0]
    module = module if module.isidentifier() and module != "torch" else "MODULE"
    return seen.answer(
        KIND, TYPES, cause, owner=package_in(seen), direction="none",
        confidence="medium",
        help=(f"{seen.python} -c 'import torch; import {module}'", seen.inspect_command()),
        notes=(
            "If the first command works, the order of imports is the cause.",
            "Else the module has to be compiled again with the pybind11 that torch brings, by the "
            "same compiler and against the torch that is installed: torch.utils.cpp_extension does "
            "so, and no pybind11 of pip's or of the project's own may come before it.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "numpy-abi": numpy_abi,
    "struct-size": struct_size,
    "cython-signature": cython_signature,
    "already-registered": already_registered,
    "type-not-registered": type_not_registered,
}
