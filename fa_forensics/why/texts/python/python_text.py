"""Answers about the Python side: a compiled module that is not found, and pybind11's crash."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fa_forensics.facts.flash_names import extra_folder
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen, directory_of
from fa_forensics.why.texts.clues import (
    distribution_of,
    inspect_package,
    jobs_of,
    package_in,
    pip_name,
    raw_python,
    version_of,
)
from fa_forensics.why.texts.files.other_tag import by_its_tag, files_here
from fa_forensics.why.texts.python.project_modules import built_by_program, too_old_for

ABSENT = "FA880"

#: Names that packages give to compiled modules: ``_C``, ``_ext``, ``quant_cuda``, ``exl_ext``.
_COMPILED = lazily(
    r"^_[A-Za-z]+$|^_C_\w+$|^_?C$|_C$|(?:^|_)(?:cuda|ext|cpp|kernels?|engine|binding)$"
)


def no_module(seen: Seen) -> Answer:
    """``No module named 'flash_attn_2_cuda'``: a compiled module that Python does not find."""
    module = seen.mention.detail.get("module") or seen.mention.symbol or ""
    if module.startswith("flash_attn."):
        from fa_forensics.why.texts.python.api_change import missing_submodule

        answer = missing_submodule(seen, module)
        if answer is not None:
            return answer
    if "." in module:
        from fa_forensics.why.texts.python.api_names import module_of_release

        answer = module_of_release(seen, module)
        if answer is not None:
            return answer
    if module.split(".")[0] == "pkg_resources":
        from fa_forensics.why.texts.builds.install_text import pkg_resources

        return pkg_resources(seen)
    if seen.mention.detail.get("build"):
        from fa_forensics.why.texts.builds.toolchain_text import BUILD_TOOLS, build_tool

        if module in BUILD_TOOLS:
            return build_tool(seen, module)
    if seen.mention.detail.get("swallowed"):
        return _caught(seen, module)
    if seen.mention.detail.get("own_library"):
        from fa_forensics.why.texts.python.no_spec import libraries_left_out

        return libraries_left_out(seen, seen.mention.detail["package"])
    extra = extra_folder(module)
    if extra is None and module == "flash_attn_3_cuda" and not files_here(seen, module):
        extra = "hopper"
    if extra is not None:
        from fa_forensics.why.texts.gpu.hopper_text import separate_extension

        return separate_extension(seen, module, extra)
    if seen.mention.detail.get("frame", "").endswith("torch/utils/cpp_extension.py"):
        return _never_built(seen, module)
    top = module.split(".")[0]
    if "." in module and not looks_compiled(module) and _without_quotes(seen, module):
        # Python 2 named the whole path where the package itself was missing.
        row = row_of_module(top)
        return _not_installed(seen, top, str(row["distribution"]) if row else None, row)
    return missing_module(seen, module)


def _without_quotes(seen: Seen, module: str) -> bool:
    return re.search(r"named\s+" + re.escape(module), seen.mention.line) is not None


def _never_built(seen: Seen, module: str) -> Answer:
    """torch's JIT loader looked for the module that it should have built."""
    cause = (
        f"{module} is built by torch when it is first used, and its file is not there: the "
        "compilation failed, on this process or on another one that it waited for. The first error "
        "of ninja, nvcc or ld above is the cause."
    )
    return seen.answer(
        "missing-library", "FA883", cause, owner=module, direction="none", confidence="high",
        help=(f"rm -r ~/.cache/torch_extensions/*/{module}", "ninja --version; nvcc --version"),
        notes=(
            "The directory keeps a half-made build and its lock; TORCH_EXTENSIONS_DIR may name "
            "another place. Once the cause is mended, remove it and start again.",
        ),
    )  # fmt: skip


def missing_module(seen: Seen, module: str) -> Answer:
    """A module that is not there: a compiled one, a part of a package, or a package."""
    if module.split(".")[-1] == "flash_attn_cuda":
        from fa_forensics.why.texts.python.flash_one import module_of_first

        first = module_of_first(seen)
        if first is not None:
            return first
    row = row_of_module(module)
    top = module.split(".")[0]
    package = str(row["distribution"]) if row else None
    by_program = built_by_program(seen, module) if row is None else None
    if by_program is not None and not files_here(seen, module):
        return by_program
    listed = row is not None and module.split(".")[-1] in row["modules"]  # type: ignore[operator]
    if not listed and not looks_compiled(module):
        if "." in module:
            whole = package or top.replace("_", "-")
            tagged = by_its_tag(seen, module, whole, rebuilds(seen, whole, row))
            return tagged or _no_part(seen, module, whole)
        return _not_installed(seen, module, package, row)
    if package is None:
        package = top.replace("_", "-") if "." in module else package_in(seen)
        package = package or directory_of(seen.mention.detail.get("frame", ""))
    if not files_here(seen, module):
        from fa_forensics.why.texts.python.cuda_half import cuda_half

        half = cuda_half(seen, package, module)
        if half is not None:
            return half
    tagged = by_its_tag(seen, module, package, rebuilds(seen, package, row))
    from fa_forensics.why.texts.python.not_built import absent

    return tagged or absent(seen, module, package, rebuilds(seen, package, row))


def looks_compiled(module: str) -> bool:
    """Whether a module goes by a name that packages give to their compiled part."""
    return _COMPILED.search(module.split(".")[-1]) is not None


def _no_part(seen: Seen, module: str, package: str) -> Answer:
    """A package without one of its parts: another release has it, or it is half there."""
    version = version_of(seen, package)
    name = f"{package} {version}" if version else package
    top = module.split(".")[0]
    cause = (
        f"{name} is there and has no part {module}: its caller was written for another release of "
        "it, or another directory of that name is imported in its place."
    )
    return seen.answer(
        "api-change", "FA881", cause, owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.pip} show {package}",
            f"{seen.python} -c 'import importlib.util; print(importlib.util.find_spec(\"{top}\"))'",
        ),
        notes=("Which of the two is the older one, the text does not say.",),
    )  # fmt: skip


def row_of_module(module: str) -> Mapping[str, object] | None:
    """What is known of the package that has a module, by the module or its own import name."""
    from fa_forensics.rules.remedy import known_packages

    top, last = module.split(".")[0], module.split(".")[-1]
    for row in known_packages():
        if last in row["modules"] or top in row["modules"]:  # type: ignore[operator]
            return row
    return next((r for r in known_packages() if str(r["import"]).split(".")[0] == top), None)


def _not_installed(
    seen: Seen, module: str, package: str | None, row: Mapping[str, object] | None
) -> Answer:
    """The package itself is not there; no compiled file comes into it."""
    if module == "torch" and not seen.mention.detail.get("metadata"):
        from fa_forensics.why.texts.python.torch_absent import torch_absent

        return torch_absent(seen)
    cause = (
        f"No package that is imported as {module or 'that'} is installed for the Python that ran: "
        "it is not installed, or for another Python."
    )
    if seen.mention.detail.get("metadata"):
        cause = (
            f"{module} is not installed for the Python that ran: it has no metadata there "
            "(.dist-info), which pip writes. What asked for its version wants to use it; nothing "
            "was loaded yet, so neither torch nor CUDA plays a part. Files that were copied by "
            "hand do not count."
        )
    owner = "torch" if module == "torch" else package
    get = f"{seen.pip} list"
    if owner == "torch":
        get = f"{seen.pip} install torch"
    elif owner is not None:
        get = _rebuild(seen, owner, row)
    if row is not None and row.get("namesake") and owner is not None:
        from fa_forensics.why.texts.python.not_built import of_the_project

        helps, notes = of_the_project(seen, owner, row)
        return seen.answer(
            "python-abi", ABSENT, cause, owner=owner, direction="none", confidence="high",
            help=helps, notes=notes,
        )  # fmt: skip
    return seen.answer(
        "python-abi", ABSENT, cause, owner=owner, direction="none",
        confidence="high" if owner else "medium",
        help=(f"{seen.python} -c 'import sys; print(sys.executable, sys.path)'", get),
        notes=(_NO_FLASH,) if owner == "flash-attn" else (),
    )  # fmt: skip


_NO_FLASH = (
    'Where speed allows, attn_implementation="sdpa" in transformers needs no flash-attn (in a '
    "program with a choice of attention: sdpa or eager)."
)


def _caught(seen: Seen, module: str) -> Answer:
    """The package caught the error of its compiled module and went on without it."""
    package = package_in(seen) or seen.mention.detail.get("package") or None
    row = row_of_module(module) if package is None or module != "_C" else None
    if package is not None and row is None:
        from fa_forensics.rules.remedy import row_of

        row = row_of(package)
    if seen.mention.detail.get("told"):
        from fa_forensics.why.texts.python.cuda_half import import_told

        return import_told(seen, module, package, rebuilds(seen, package, row))
    load = f"import {module}"
    placed = re.search(
        r"-packages[/\\]([A-Za-z_]\w{0,60})[/\\]", seen.mention.detail.get("frame", "")
    )
    if module == "_C":
        top = str(row["import"]).removesuffix("._C") if row else placed[1] if placed else "NAME"
        load = f"from {top} import _C"
    package = package or (placed[1] if placed else None)
    name = package or "the package"
    cause = (
        f"{name[0].upper() + name[1:]} caught the error of its compiled module {module} and went "
        "on without it: what stopped that import stands further above, or nowhere. Two causes fit: "
        "the module was not built, or it does not load."
    )
    top = str(row["import"]).split(".")[0] if row else placed[1] if placed else ""
    if not top or f"/{top}/" not in seen.mention.detail.get("frame", ""):
        cause = (
            f"The code that uses the compiled module {module} caught the error of its import and "
            "went on without it: what stopped that import stands further above, or nowhere. Two "
            "causes fit: the module was not built or installed, or it does not load."
        )
    path = seen.mention.detail.get("frame", "")
    again = rebuilds(seen, package, row) if row and (not path or "-packages" in path) else ()
    return seen.answer(
        "damaged-file", "FA886", cause, owner=package, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; {load}'",
            inspect_package(seen, package or "NAME"),
            *again,
        ),
        notes=(*(() if package else (_NAME_OF,)),
               "The first command shows the error that was caught.",
               _COMPILE_AGAIN if again else _COMPILE_IT),
    )  # fmt: skip


_NAME_OF = (
    "NAME is to be filled in: the text does not tell whose module it is. It stands in the file of "
    "the traceback's last step, between from and import in the line with _C inside its try; where "
    "that is a dot, NAME is the package that the file lies in."
)


_COMPILE_IT = (
    'Where that is "No module named" or "cannot import name", the module was not built: pip '
    "install -v --no-build-isolation --no-deps -e . in the directory with its setup.py compiles "
    "it, with a torch for CUDA, a toolkit of the same version and CUDA_HOME set to it. Any other "
    "error says itself what does not load."
)


_COMPILE_AGAIN = (
    'Where that is "No module named" or "cannot import name", the module was not built: the last '
    "command compiles it, with a torch for CUDA, a toolkit of the same version and CUDA_HOME set "
    "to it; without these many a setup.py leaves it out and reports no error. Any other error says "
    "itself what does not load."
)


def rebuilds(seen: Seen, package: str | None, row: Mapping[str, object] | None) -> tuple[str, ...]:
    """The command that builds a package again; () where pip's name for it is not known."""
    from fa_forensics.rules.remedy import row_of

    name = pip_name(seen, package)
    if name is None or too_old_for(seen, name):
        return ()
    return (_rebuild(seen, name, row or row_of(name)),)  # many a package's module is called _C


def _rebuild(seen: Seen, package: str, row: Mapping[str, object] | None) -> str:
    from fa_forensics.rules.remedy import rebuild_command

    if package == "torch":
        from fa_forensics.why.texts.files.put_back import torch_again

        return torch_again(seen)
    known = distribution_of(seen, package)
    version = known.version if known else ""
    version = "" if re.search(r"\.?dev\d|\+g[0-9a-f]{5}", version) else version  # on no index
    return rebuild_command(raw_python(seen), package, version, row, jobs_of(seen))


def pybind_crash(seen: Seen) -> Answer:
    """A crash while pybind11 registers a module's types: two builds of its internals."""
    cause = (
        "The process died while pybind11 set a module up, with every symbol found: a module that "
        "uses torch's registered classes shares pybind11's internals with torch, and that goes "
        "wrong where the two were compiled by other compilers, flavours or pybind11 releases."
    )
    return seen.answer(
        "python-abi", "FA888", cause, owner=seen.package, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print([(k, v) for k, v in vars(torch._C).items() "
            "if \"PYBIND11\" in k])'",
            seen.inspect_command(),
        ),
        notes=(
            "The first command prints torch's side of the key, where it states one; the same "
            "values belong into the extension's compiler flags, where torch's build helper puts "
            "them.",
            *_key_note(seen),
        ),
    )  # fmt: skip


def _key_note(seen: Seen) -> tuple[str, ...]:
    """The key by which a release of torch shares pybind11's internals."""
    torch, atlas = seen.torch, seen.tables.atlas
    build = atlas.build(torch.split("+")[0], seen.place.machine) if torch and atlas else None
    if build is None or build.pybind11 is None:
        return ()
    return (f"The key in the wheel of torch {build.release}: {build.pybind11}.",)


ANSWERERS: dict[str, Answerer] = {
    "no-module": no_module,
}
