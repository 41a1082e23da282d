"""Who needs a missing library, in words and in commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.flash_names import extra_folder
from fa_forensics.facts.library_names import Flavours, flavours_of
from fa_forensics.facts.python_api import brings_torch
from fa_forensics.facts.torch_index import index_option, is_on_index
from fa_forensics.patterns import lazily
from fa_forensics.why.nvidia.by_hand import opened
from fa_forensics.why.seen import Seen, package_of
from fa_forensics.why.texts.clues import package_of_line
from fa_forensics.why.texts.libraries.attached import attached_wheel, installed_release
from fa_forensics.why.texts.libraries.brought_text import of_old_driver, told_cuda
from fa_forensics.why.texts.libraries.listed import is_guess, is_unpaired, named_alone
from fa_forensics.why.texts.libraries.torch_release import OF_ALL, is_for_all, release_for_torch
from fa_forensics.why.texts.python.pairs import LABEL_OF_TORCH
from fa_forensics.why.ways.older_name import name_then

#: Names of compiled modules, as packages give them.
_COMPILED = lazily(r"(?:^|\.)_\w+$|_(?:cuda|cpp|ext|ops|C)$")


def needing(seen: Seen) -> str:
    """Who needs the library, in a sentence."""
    file = seen.mention.file
    if file:
        return file.rsplit("/", 1)[-1]
    module = seen.mention.detail.get("import")
    if module and (seen.mention.detail.get("direct") or _COMPILED.search(module)):
        return f"the extension {module}"
    if module:
        return f"the extension that {module} imports"
    package = package_of_text(seen)
    part = f" ({_PARTS[package]})" if package in _PARTS else ""
    if is_guessed(seen):
        return f"an extension (probably of {package}{part})"
    return f"a compiled part of {package}{part}" if package else "the extension"


def is_guessed(seen: Seen) -> bool:
    """Whether the package in ``needing`` is known by a list or a passing word alone."""
    return bool(package_of_text(seen)) and is_guess(seen) and package_of_line(seen) is None


#: Packages whose compiled code is a distribution of its own.
_PARTS = {"sglang": "sgl-kernel", "autoawq": "autoawq-kernels", "awq": "autoawq-kernels"}


def files_of(seen: Seen) -> tuple[str, ...]:
    """The failing file, where the text names it."""
    return (seen.mention.file,) if seen.mention.file else ()


def package_needing(seen: Seen) -> str | None:
    """The distribution that the text says needs the library, as far as it is known."""
    module = seen.mention.detail.get("import") or ""
    name = seen.package or package_of(f"{module.replace('.', '/')}.so" if module else "")
    name = name or (
        package_of(f"/site-packages/{module.replace('.', '/')}/_C.so") if module else None
    )
    by = seen.mention.detail.get("by")
    by = by.replace("-", "_") if by else by
    name = name or (package_of(f"/site-packages/{by}/_C.so") if by else None)
    name = name or package_of_line(seen) or _known(named_alone(seen))
    old = "awq_inference_engine" in f"{module} {seen.mention.file}"
    return _PARTS[name] if name == "autoawq" and not old else name


def _known(name: str) -> str | None:
    """A package that a text names, where it is one that is known to be compiled."""
    from fa_forensics.rules.remedy import row_of

    name = "sgl-kernel" if name == "sglang" else name
    return name if row_of(name) is not None else package_of(f"/site-packages/{name}/_C.so")


def rebuild_commands(seen: Seen, package: str | None = None) -> tuple[str, ...]:
    """Get a build of the package that fits, where the package is known."""
    from fa_forensics.rules.remedy import rebuild_command, row_of

    flavour = flavour_command(seen)
    if flavour is not None:
        return (flavour,)
    name = package or package_needing(seen)
    if name is None:
        return _extra(seen)
    torch = seen.torch
    first = name_then(name, torch, seen.python_version, seen.versions)
    version = seen.versions.get(f"pkg:{first}", seen.versions.get(f"pkg:{name}", ""))
    row = row_of(first)
    if row is not None and row.get("by_cuda"):
        return (_of_index(seen, name),)
    if row is not None and row.get("wheels"):
        return _project_wheel(seen, first, version, row)
    if row is not None and (own := attached_wheel(seen, version, row)):
        return (own,)
    python = "python" if seen.elsewhere or not seen.place.python else seen.place.python
    command = rebuild_command(python, first, version, row)
    if not version and brings_torch(first) and command.endswith(f"--no-binary {first} {first}"):
        command = command.removesuffix(first) + installed_release(seen, first)
    return (command,)


def flavours_needing(seen: Seen) -> Flavours | None:
    """The package that needs a library of CUDA, where it has a distribution for each CUDA."""
    if seen.mention.what not in ("missing-library", "could-not-load-library"):
        return None
    detail = seen.mention.detail
    told = (detail.get("import") or detail.get("by") or "").split(".")
    folder = _FOLDER.search(seen.mention.file or "")
    found = flavours_of((told[0], folder[1] if folder else "", named_alone(seen)))
    if found is not None and found.index:
        release = re.match(r"0\.(\d{1,2})", seen.versions.get(f"pkg:{found.plain[0]}", ""))
        if _cuda_major(seen) not in found.labels or (release and int(release[1]) < _SINCE):
            return None  # before that the project had no such index
    return found


#: The minor release of vLLM since which its own index has a build for each CUDA.
_SINCE = 10


def package_of_text(seen: Seen) -> str:
    """The package that a text names as the one which needs something; "" for none or several."""
    detail = seen.mention.detail
    return detail.get("by") or package_of_line(seen) or named_alone(seen)


#: The directory below site-packages that a file lies in.
_FOLDER = lazily(r"-packages/(\w{1,60})/")


def flavour_command(seen: Seen) -> str | None:
    """The distribution for torch's CUDA, or for any; None for packages that have none such."""
    found = flavours_needing(seen)
    if found is None:
        return None
    major = _cuda_major(seen)
    if found.index:
        return _of_projects_index(seen, found, major)
    wanted = found.wheels.get(major)
    if wanted is None:
        return f"{seen.pip} list | grep -iE '{'|'.join(found.wheels.values())}|^torch '"
    others = " ".join(name for cuda, name in found.wheels.items() if cuda != major)
    version = next((seen.versions[f"pkg:{n}"] for n in (*found.plain, *found.wheels.values())
                    if f"pkg:{n}" in seen.versions), "")  # fmt: skip
    instead = found.faulty.get(wanted, {}).get(version, "")
    pinned = f"{wanted}=={instead or version}" if version else wanted
    if instead:  # with the whole, whose loader refuses parts of two numbers
        parts = "".join(f'"{name}=={instead}" ' for name in found.plain)
        return f'{seen.pip} install --force-reinstall --no-deps {parts}"{pinned}"'
    again = f'{seen.pip} install --force-reinstall --no-deps "{pinned}"'
    return f"{seen.pip} uninstall -y {others} && {again}"


def _of_projects_index(seen: Seen, found: Flavours, major: str) -> str:
    """A project's own index for a CUDA."""
    name = found.plain[0]
    version = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
    label = found.labels.get(major, "LABEL")
    whole = f"{version}.0" if version.count(".") == 1 else version
    address = found.index.format(version=whole or "nightly", label=label)
    wanted = f"{name}=={version}" if version else name
    return (
        f'{seen.pip} install --force-reinstall --no-deps --no-cache-dir "{wanted}" '
        f"--index-url {address}"
    )


def _project_wheel(
    seen: Seen, name: str, version: str, row: Mapping[str, object]
) -> tuple[str, ...]:
    """The build for torch's CUDA that a project gives out itself, beside the package index."""
    own = row["wheels"]
    wheels: Mapping[str, Any] = own if isinstance(own, Mapping) else {}
    head = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir"
    if "index" not in wheels:
        return (f"{head} WHEEL",)
    public = version.partition("+")[0]
    wanted = f"{name}=={public}" if public else name
    major = _cuda_major(seen)
    if major == wheels["default"]:
        return (f'{head} "{wanted}"',)
    index = wheels["index"].format(label=wheels["labels"].get(major, "LABEL"))
    return (
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir "
        f'"{wanted}" --index-url {index}',
    )


def _extra(seen: Seen) -> tuple[str, ...]:
    """The separate extensions of flash-attn's repository, each built from its own directory."""
    module = seen.mention.detail.get("import") or seen.module
    folder = extra_folder(module)
    if folder is None:
        return ()
    version = seen.versions.get("pkg:flash-attn", "").partition("+")[0]
    tag = f"@v{version}" if version else ""
    url = f"git+https://github.com/Dao-AILab/flash-attention{tag}#subdirectory={folder}"
    return (
        f"MAX_JOBS=4 {seen.pip} install --no-build-isolation --no-cache-dir --force-reinstall "
        f'--no-deps "{url}"',
    )


def _cuda_major(seen: Seen) -> str:
    """The major version of torch's CUDA, as far as the text tells or shows it."""
    told = told_cuda(seen)
    if told is None:
        number = re.search(r"\.so\.(1\d)$", seen.mention.library or "")
        told = of_old_driver(seen, number[1]) if number is not None else None
    return (seen.torch_cuda or (told[0] if told is not None else "")).split(".")[0]


def torch_label(seen: Seen) -> str:
    """The build of torch as PyTorch's indexes are named: cu129, cpu, rocm6.3; "" unknown."""
    local = (seen.torch or "").partition("+")[2]
    if re.fullmatch(r"cpu|cu\d{2,3}|rocm[\d.]{1,6}", local):
        return local
    label = cuda_label(seen.torch_cuda or "")
    release = re.match(r"\d\.\d{1,2}", seen.torch or "")
    return label if release is None or is_on_index(release[0], label) else ""


def _is_new(library: str) -> bool:
    """Whether a library is one of CUDA 12 or newer, and so of torch 2.1 or newer."""
    return re.search(r"\.so\.1[2-9]$", library) is not None


#: The sources of what is compiled on a container's own torch.
_SOURCES = {
    "torchaudio": "https://github.com/pytorch/audio",
    "torchvision": "https://github.com/pytorch/vision",
}


def _of_index(seen: Seen, name: str) -> str:
    """A package that is published once for each CUDA: the build for that of torch."""
    if "ngc" in seen.versions:
        return (
            f"{seen.pip} install --no-build-isolation --no-deps --no-cache-dir "
            f'"git+{_SOURCES[name]}@TAG"'
        )
    release = release_for_torch(seen, name)
    if ".dev" in (seen.torch or "") and is_unpaired(seen, name):
        return f"{seen.pip} install --pre --upgrade --force-reinstall torch {name}" + index_option(
            f"nightly/{torch_label(seen) or 'cuXYZ'}"
        )  # a nightly of one day goes with one of that day, and old ones are not kept
    if not release and name == "torchaudio" and _is_new(seen.mention.library or ""):
        # Its releases are those of torch, by number.
        own = "import torch; print(torch.__version__.split(chr(43))[0])"
        release = f"$({seen.python} -c '{own}')"
    wanted = f"{name}=={release}" if release else name
    index = "" if is_for_all(name, release) else index_option(torch_label(seen) or "cuXYZ")
    return f'{seen.pip} install --force-reinstall --no-deps --no-cache-dir "{wanted}"{index}'


def rebuild_notes(seen: Seen, package: str | None = None) -> tuple[str, ...]:
    """What the command for a package with a build for each CUDA needs to be told."""
    from fa_forensics.rules.remedy import row_of

    flavours = flavours_needing(seen)
    if flavours is not None and flavours.index:
        labels = ", ".join(f"{label} for CUDA {cuda}" for cuda, label in flavours.labels.items())
        return (
            f"{flavours.title} has builds for each CUDA on an index of its own ({labels}); the "
            "package index has one of them alone, and an installer that may choose between the "
            "two takes the newer version, whatever its CUDA.",
        )
    if flavours is not None:
        names = ", ".join(f"{name} for CUDA {cuda}" for cuda, name in flavours.wheels.items())
        one = (
            f"{flavours.title} has a distribution for each CUDA ({names}), and one alone is to be "
            "installed: that for torch's CUDA and the driver."
        )
        return (one, *_made_for_another(seen, flavours))
    name = package or package_needing(seen)
    row = row_of(name) if name else None
    if name is None or row is None:
        return ()
    if row.get("wheels"):
        return _of_project(seen, name, row)
    before = row.get("before")
    if isinstance(before, Mapping):
        return (_renamed(before["distribution"], name, before["first"]), *_by_its_page(seen, row))
    if not row.get("by_cuda"):
        return ()
    if "ngc" in seen.versions:
        return (
            f"The text is of NVIDIA's image {seen.versions['ngc']}, whose torch is a build of its "
            f"own: no index has a {name} for it, and pip's newest is for another torch and CUDA. "
            f"It is compiled in the image, TAG being the release of {name} that goes with the "
            "number of the image's torch (python -c 'import torch; print(torch.__version__)'), or "
            "pip is told to leave it out; torch itself is not to be replaced.",
        )
    if is_for_all(name, release_for_torch(seen, name)):
        return (OF_ALL,)
    label = torch_label(seen)
    of_each = (
        f"PyTorch publishes {name} once for each CUDA, for ROCm and for the CPU, and the package "
        "index has one of them alone: plain pip install gets that one again."
    )
    return (of_each,) if label else (of_each, LABEL_OF_TORCH)


def _made_for_another(seen: Seen, flavours: Flavours) -> tuple[str, ...]:
    """That the text's own release was built for another CUDA than its distribution is for."""
    told = [seen.versions.get(f"pkg:{name}", "") for name in flavours.plain]
    return tuple(
        f"The wheel {name} {bad} was itself built for another CUDA than its name says, so that "
        f"installing it again changes nothing: {good} took its place, and the other parts of it "
        "that are installed have to be of that number too."
        for name, releases in flavours.faulty.items()
        for bad, good in releases.items()
        if bad in (*told, seen.versions.get(f"pkg:{name}"))
    )


def _by_its_page(seen: Seen, row: Mapping[str, object]) -> tuple[str, ...]:
    """The page of a project with its wheels by CUDA and torch, which need no compiler."""
    from fa_forensics.rules.wheel_pages import page_of

    label = torch_label(seen)
    minor = ".".join((seen.torch or "").partition("+")[0].split(".")[:2])
    known = bool(label and minor)
    address = page_of(row, label or "cuNNN", minor or "X.Y")
    if not address:
        return ()
    filled = "" if known else " with the CUDA and the minor release of torch filled in,"
    return (
        f"Its project has wheels for each CUDA and torch at {address},{filled} which pip takes "
        f"with -f behind {seen.pip} install NAME==VERSION. The version is the one that the program "
        "asks for: mmdet and the like refuse a newer one, and say at import which they take.",
    )


def _renamed(old: str, new: str, first: str) -> str:
    """That a package has had two names."""
    return (
        f"Up to {first} the package with compiled operations was {old}, since then it is {new}: "
        "the one that pip list shows is to be replaced, and the two are never to be installed "
        "together."
    )


def _of_project(seen: Seen, name: str, row: Mapping[str, object]) -> tuple[str, ...]:
    """Where a project has its builds for other CUDA versions, and how they are named."""
    own = row["wheels"]
    wheels: Mapping[str, Any] = own if isinstance(own, Mapping) else {}
    if "index" not in wheels:
        form = f": {wheels['name']} is the name of one" if "name" in wheels else ""
        plain = "one for one CUDA alone" if wheels.get("one_cuda") else "another project"
        return (
            f"WHEEL is the address of the one for torch's release, CUDA and Python, of those at "
            f"{wheels['releases']}{form}. The package index has {plain} that is called {name}.",
        )
    major = _cuda_major(seen)
    if major == wheels["default"]:
        return ()
    labels = ", ".join(f"{label} for CUDA {cuda}" for cuda, label in wheels["labels"].items())
    note = (
        f"The package index has {name} for CUDA {wheels['default']} alone, and pip install "
        f"--upgrade brings that one again: the others are on {wheels['of']}'s own index ({labels})"
    )
    known = major in wheels["labels"]
    return (note + "." if known else f"{note}; LABEL is the one of torch's own CUDA.",)


def who_needs_it(seen: Seen) -> str:
    """Inspect the file, or, where the text does not name it, look for it."""
    if seen.mention.file:
        return seen.inspect_command()
    own = not seen.elsewhere and seen.place.python
    return f"fa-forensics env --python {seen.python}" if own else "fa-forensics env"


def import_torch_first(seen: Seen) -> str:
    """Import torch, then the module, or load the file that has no name to import."""
    file = seen.mention.file or ""
    opening = opened((file,)) if "/" in file else ""
    if opening and not opening.endswith(" MODULE"):
        names = ("torch",) if opening.startswith("import ") else ("ctypes", "torch")
        return f"{seen.python} -c 'import {', '.join(names)}; {opening}'"
    module = seen.module or seen.mention.detail.get("import") or _imported(seen) or "MODULE"
    return f"{seen.python} -c 'import torch; import {module}'"


def _imported(seen: Seen) -> str:
    """What the package that needs the library is imported by; "" where that is not known."""
    from fa_forensics.rules.remedy import row_of

    name = package_of_text(seen)
    row = row_of(name) if name else None
    return str(row["import"]).partition(".")[0] if row is not None else ""
