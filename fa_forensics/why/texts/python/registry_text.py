"""Answers where pybind11 does not know a type again that another module registered."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in, pip_name

KIND, TYPES = "python-abi", "FA893"

#: ``<torch._C.ScriptModule object at 0x7f>``: what was passed.
_OBJECT = lazily(r"<(?P<type>[A-Za-z_][\w.]{1,200}) object\b")
#: ``(model: torch::jit::Module, q: aiter_tensor_t)``: what is taken.
_TAKEN = lazily(r"[(,]\s{0,3}\w{1,60}:\s?(?P<type>[A-Za-z_][\w.:]{1,200}(?:<[\w:, ]{1,80}>)?)")
#: What torch's own caster, and the standard library's, are called by.
_CAST = ("at::Tensor", "torch::Tensor")
#: Scopes of torch's own classes.
_TORCHS = ("torch::", "c10::", "c10d::")
#: Those of them that torch registers with pybind11 as classes of Python.
_REGISTERED = ("torch::jit::", "c10d::")
#: Types that torch's headers have no caster for in arguments; what takes their place.
_NO_CASTER = (
    ("c10::ArrayRef<at::Tensor>", "std::vector<torch::Tensor>"),
    ("ArrayRef", "std::vector"),
    ("at::TensorImpl", "torch::Tensor"),
)


def unknown_again(seen: Seen) -> Answer | None:
    """A call that is refused for the very type that it takes; None where that is not so.

    pybind11 prints a type that it knows by its Python name (``package.module.Type``) and one
    that no module of its table registered by its C++ name.
    """
    detail = seen.mention.detail
    taken = [found["type"] for found in _TAKEN.finditer(f"({detail.get('supported', '')}")]
    raw = [name for name in taken if "." not in name and name not in _CAST]
    for name in raw:
        for refused, instead in _NO_CASTER:
            if name.startswith(refused):
                return _without_caster(seen, name, instead)
    given = [found["type"] for found in _OBJECT.finditer(detail.get("invoked", ""))]
    for name in given:
        last = name.rpartition(".")[2]
        same = next((t for t in raw if t.rpartition("::")[2] in (last, _of_jit(last))), None)
        if same is None and name.startswith("torch."):
            same = next((t for t in raw if t.startswith(_TORCHS)), None)
        if same is not None:
            return not_shared(seen, same, name)
    own = next((t for t in raw if t.startswith(_REGISTERED)), None)
    shared = any(name.startswith("torch._C") for name in taken)  # the table of torch is this one
    return not_shared(seen, own, "") if own and not shared and not detail.get("invoked") else None


def _of_jit(name: str) -> str:
    """torch's own other names for its C++ types: torch._C.ScriptModule is torch::jit::Module."""
    return "Module" if name in ("ScriptModule", "RecursiveScriptModule") else name


def not_cast(seen: Seen) -> Answer:
    """``Unable to cast Python instance of type X to C++ type 'Y'``."""
    detail = seen.mention.detail
    given, wanted = detail.get("python", ""), detail.get("cpp", "")
    if given.startswith("torch.") and wanted.startswith(_TORCHS):
        return not_shared(seen, wanted, given)
    last = wanted.rpartition("::")[2]
    if "::" in wanted and given and given.rpartition(".")[2] == last:
        return not_shared(seen, wanted, given)
    words = f": it was given {given}" if given else ": the message leaves out which"
    words += f", where {wanted} is taken" if given and wanted.strip("?") else ""
    return seen.answer(
        "api-change", "FA882",
        "A compiled function was given a Python object of another type than it takes"
        f"{words}. The module did load, and no symbol is missing: the caller was written for "
        "another release of the package, or passes a wrong value (None, a list, a number of "
        "another type).",
        owner=package_in(seen), direction="none", confidence="low",
        help=(f"{seen.pip} check",),
        notes=(
            "The last step of the traceback that is the caller's own shows the value. Where it has "
            "the very type that is asked for, two modules were built with different pybind11 "
            "releases, and building both again with one of them is the way out.",
        ),
    )  # fmt: skip


def not_shared(seen: Seen, wanted: str, given: str) -> Answer:
    """A type that one module registered, and that another one does not find in its own table."""
    torchs = given.startswith("torch.") or wanted.startswith(_TORCHS)
    package = package_in(seen)
    other = ", or with another compiler or std::string flavour"
    other = "" if torchs and _before_keys(seen) else other
    if not given:
        return _by_its_name(seen, wanted, package, other)
    cause = (
        f"What was passed ({given}) is what is asked for ({wanted}), and pybind11 does not know it "
        "again: the module that takes it and the one that registered it "
        f"{'(torch) ' if torchs else ''}have tables of types of their own. They were built with "
        f"different pybind11 releases (each has its number of internals){other}. The call itself "
        "is in order."
    )
    if torchs:
        helps, notes = with_torchs(seen, package)
    else:
        helps, notes = _with_one(seen, given, package)
    return seen.answer(
        KIND, TYPES, cause, owner=package or given.split(".")[0], direction="none",
        confidence="medium", help=helps, notes=notes,
    )  # fmt: skip


def _by_its_name(seen: Seen, wanted: str, package: str | None, other: str) -> Answer:
    """A class of torch's that pybind11 prints by its C++ name; what was passed is not shown."""
    helps, notes = with_torchs(seen, package)
    return seen.answer(
        KIND, TYPES,
        f"The message has {wanted} by its name in C++: pybind11 writes a type so that no module in "
        "its table had registered when the function was made, and torch registers this one. Two "
        "causes fit: the module and torch have tables of types of their own, since they were built "
        f"with different pybind11 releases (each has its number of internals){other}, and what "
        "torch made is refused though it is what is asked for; or the module was imported before "
        "torch, and an argument is really another than the listed ones. Where the call fails with "
        "import torch as the first line and the name in the message stays, it is the first.",
        owner=package, direction="none", confidence="medium", help=helps, notes=notes,
    )  # fmt: skip


def _before_keys(seen: Seen) -> bool:
    """Whether torch is one whose pybind11 keeps its table by the number of internals alone.

    The wheel of 1.3.0 has internals v3, without compiler, library and ABI, and torch._C has no
    _PYBIND11_ names.
    """
    told = re.match(r"(\d+)\.(\d+)", seen.torch or "")
    return told is not None and (int(told[1]), int(told[2])) < (1, 4)


def with_torchs(seen: Seen, package: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) for a module that is to be built with torch's own pybind11."""
    name = pip_name(seen, package)
    again = (
        f"{seen.pip} install -v --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
        f"{name or '.'}"
    )
    if _before_keys(seen):
        return (
            f"grep -h 'define PYBIND11_VERSION' $({seen.python} -c 'import os, torch; "
            "print(os.path.dirname(torch.__file__))')/include/pybind11/detail/common.h",
            f"rm -rf build && {again}" if name is None else again,
        ), (
            _WITH_ITS_HEADERS,
            "A CMake build needs, beside those headers, torch's std::string flavour "
            "(TORCH_CXX_FLAGS). The first command prints the release of torch's pybind11.",
        )
    return (
        f"{seen.python} -c 'import torch; print(torch.__version__, [(k, v) for k, v in "
        'vars(torch._C).items() if "PYBIND11" in k])\'',
        f"rm -rf build && {again}" if name is None else again,
    ), (
        _WITH_ITS_HEADERS,
        "A CMake build needs, beside those headers, torch's own key in its flags "
        "(PYBIND11_COMPILER_TYPE, PYBIND11_STDLIB, PYBIND11_BUILD_ABI, as the first command prints "
        "them) and torch's std::string flavour (TORCH_CXX_FLAGS). The last command is run in the "
        "source directory, where it is given a dot.",
    )


_WITH_ITS_HEADERS = (
    "The module has to be compiled with the pybind11 that torch brings (torch/extension.h and the "
    "headers in torch/include), against the torch that is installed: torch.utils.cpp_extension "
    "does so. A pybind11 of the project's own (a submodule, pip's) must be the same release as "
    "torch's, or not come before it."
)


def _with_one(
    seen: Seen, given: str, package: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    told = seen.versions.get("pkg:pybind11", "")
    helps = [f"{seen.pip} show pybind11"]
    minor = re.match(r"(\d{1,2})\.(\d{1,3})", told)
    jit = ".jit." in given or "jit" in seen.mention.line.lower()
    if minor is not None:
        helps.append(f'{seen.pip} install "pybind11<{minor[1]}.{minor[2]}"')
    name = pip_name(seen, package)
    if name is not None and not jit:
        helps.append(
            f"{seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall --no-deps "
            f"{name}"
        )
    notes = [
        "All modules of the package have to be built with one pybind11: those that came with its "
        "wheel, and those that it compiles on this machine.",
    ]
    if jit:
        notes.append(
            "What it compiled at run time took the pybind11 that is installed now: with the "
            "release that the wheel was built with in its place, and the compiled modules removed "
            "from its cache, they fit one another. The other way is to build the package as a "
            "whole from its source."
        )
    return tuple(helps), tuple(notes)


def _without_caster(seen: Seen, name: str, instead: str) -> Answer:
    """A parameter of a C++ type that torch's headers do not convert."""
    return seen.answer(
        KIND, TYPES,
        f"The function takes {name}, which pybind11 cannot make of a Python object: torch's "
        "headers convert torch::Tensor and containers of the standard library, and no other type "
        "of torch's unless torch itself registered it. The module did load; neither its build nor "
        "a release is wrong, its source has to be changed.",
        owner=package_in(seen), direction="none", confidence="medium",
        help=(f"grep -rn '{name.split('<')[0].rpartition('::')[2]}' --include='*.cpp' "
              "--include='*.h' --include='*.cu' .",),
        notes=(f"In the function that is bound, {instead} (by value or const reference) in its "
               "place, and torch/extension.h included in the file that has PYBIND11_MODULE; then "
               "build it again.",),
    )  # fmt: skip


def two_sources(first: str, second: str) -> tuple[str, str] | None:
    """The two source files that register one name, where they are of two projects or parts.

    A build machine's directories differ for one source, so that the ends are compared.
    """
    ends = [tuple(path.split("/")[-3:]) for path in (first, second)]
    return (first, second) if first and second and ends[0] != ends[1] else None


def by_two_packages(
    seen: Seen, name: str, first: str, second: str
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(cause, commands, notes) where two different sources claim one name."""
    cause = (
        f"{name} was registered twice in one process, by two different sources: {first} and "
        f"{second}. Two compiled libraries, of two packages or of two kinds of build, claim the "
        "same name; it is not one library loaded twice, and no release of torch is wrong."
    )
    helps = (
        f"{seen.python} -c 'import site, glob; [print(f) for p in site.getsitepackages() for f in "
        'glob.glob(p + "/*/_C*.so")]\'',
        f"{seen.pip} list",
    )
    notes = (
        "One of the two libraries has to go. Where one package is an add-on to the other for "
        "another device, the other is installed without compiled code (vLLM: "
        "VLLM_TARGET_DEVICE=empty), and a .so that an earlier build left in its directory is to be "
        "removed.",
    )
    return cause, helps, notes


ANSWERERS: dict[str, Answerer] = {"type-not-cast": not_cast}
