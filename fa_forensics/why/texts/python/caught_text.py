"""Answers to packages that caught an error and go on, or refuse, in words of their own."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import (
    inspect_package,
    jobs_of,
    package_in,
    pip_name,
    raw_python,
)
from fa_forensics.why.texts.gpu.jetson_text import is_jetson, without_cuda
from fa_forensics.why.texts.python.pairs import (
    index_note,
    index_tag,
    torch_with_cuda,
)
from fa_forensics.why.texts.python.torchao_text import torchao_refused

HIDDEN = "FA886"

#: What transformers offers in the place of flash-attn.
_WITHOUT = 'Where speed allows, attn_implementation="sdpa" in transformers needs no flash-attn.'
_IMPORTS = {
    "flash-attn": "flash_attn_2_cuda",
    "xformers": "xformers.ops",
    "apex": "amp_C",
    "auto-gptq": "autogptq_cuda_64",
    "groundingdino": "groundingdino._C",
}


def caught_import(seen: Seen) -> Answer:
    """A package says that another one cannot be used, and not what stopped its import."""
    detail = seen.mention.detail
    package = detail.get("package") or package_in(seen)
    if package == "torchvision" and detail.get("sort") == "unknown":
        from fa_forensics.why.texts.python.image_text import image_library

        return image_library(seen)
    if detail.get("sort") == "linked":
        return _not_linked(seen)
    if detail.get("sort") == "part":
        return _part(seen, detail.get("part", ""))
    name = package or "the package"
    row = row_of(package) if package else None
    module = _IMPORTS.get(package or "", str(row["import"]) if row else "")
    load = f"import torch, {module}" if module else ""
    if detail.get("sort") == "extension":
        return _without_extension(seen, package, load)
    if detail.get("sort") == "broken":
        cause = (
            f"{name} is installed and does not load: the error of its import was caught. Most "
            "often its compiled module was built for another torch than the one that is here."
        )
    elif detail.get("sort") == "absent":
        cause = (
            f"The import of {name} failed and its error was caught. Two causes fit: it is not "
            "installed for the Python that ran, or it is and its compiled module does not load. "
            "The first command tells them apart."
        )
    else:
        cause = (
            f"{name} cannot be used, and its error was caught. Three causes fit: it is not "
            "installed for the Python that ran, its compiled module does not load, or torch sees "
            "no GPU. The first commands tell them apart."
        )
    helps = [f"{seen.python} -c '{load}'"] if load else []
    if detail.get("sort") == "unknown":
        helps.append(_sees(seen))
    helps.append(inspect_package(seen, package or "PACKAGE"))
    notes = ["The first command shows the error that was caught."] if load else []
    if package == "flash-attn":
        notes.append(_WITHOUT)
    return seen.answer(
        "wrong-torch", HIDDEN, cause, owner=package, direction="unknown",
        confidence="medium" if package else "low", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


_SOME_EXTENSION = (
    "A project tried to import its compiled operations, caught the error and goes on with its code "
    "in Python, on the CPU or slower. Several projects with deformable attention print this line "
    "(GroundingDINO among them), and the text does not name the one. Two causes fit: it was "
    "installed without compiling them, or they do not load, most often since torch was replaced "
    "after they were built."
)
_WHOSE = (
    "NAME is the package whose file stands before the warning, as path:line: UserWarning, or which "
    "the program imports; importing its compiled module by hand shows the error that was caught."
)


def _without_extension(seen: Seen, package: str | None, load: str) -> Answer:
    """The Python part of a package runs; its compiled modules did not import."""
    name = package or "the package"
    named = pip_name(seen, package)
    helps = [f"{seen.python} -c '{load}'"] if load else []
    if package:
        helps.append(inspect_package(seen, package))
    if named:
        helps.append(rebuild_command(raw_python(seen), named, "", row_of(named), jobs_of(seen)))
    if package is None:
        return seen.answer(
            "damaged-file", "FA880", _SOME_EXTENSION, owner=None, direction="unknown",
            confidence="low", help=(inspect_package(seen, "NAME"),), notes=(_WHOSE,),
        )  # fmt: skip
    return seen.answer(
        "damaged-file", "FA880",
        f"{name} goes on without its compiled modules: their import failed and the error was "
        "caught. Two causes fit: it was installed without compiling them, or they do not load, "
        "most often since torch was replaced after they were built.",
        owner=package, direction="unknown", confidence="medium" if package else "low",
        help=tuple(helps),
        notes=("Without an error in the first command, the second says what is there.",)
        if load
        else (),
    )  # fmt: skip


def _part(seen: Seen, part: str) -> Answer:
    """Models that try the extra extensions of flash-attn's repository."""
    module = "layers.rotary" if part == "rotary" else "ops.rms_norm"
    extra = "rotary_emb" if part == "rotary" else "dropout_layer_norm"
    return seen.answer(
        "damaged-file", "FA880",
        f"The model's code tried flash_attn.{module} and goes on without it: only speed is lost. "
        "Three causes fit: flash-attn is not installed, it does not load, or its extra extension "
        f"{extra}, which its wheel does not hold, was not built. The first command tells which.",
        owner="flash-attn", direction="none", confidence="medium",
        help=(f"{seen.python} -c 'import torch, flash_attn.{module}'",
              inspect_package(seen, "flash-attn")),
        notes=("Newer releases of flash-attn do much of it in Triton, without such an extension.",),
    )  # fmt: skip


def _not_linked(seen: Seen) -> Answer:
    return seen.answer(
        "missing-library", HIDDEN,
        "Unsloth tried bitsandbytes and Triton and caught an error of either: bitsandbytes has no "
        "library for this CUDA that loads, or Triton does not find the driver's libcuda.so. The "
        "first two commands tell which.",
        owner="bitsandbytes", direction="unknown", confidence="medium",
        help=(f"{seen.python} -m bitsandbytes", "ldconfig -p | grep libcuda.so",
              f"{seen.pip} show torch bitsandbytes triton"),
        notes=("ldconfig, which the message advises, helps only where the library is there and "
               "not listed by the second command.",),
    )  # fmt: skip


def pair_mismatch(seen: Seen) -> Answer:
    """A package compares its own release with torch's, and says that they do not go together."""
    detail = seen.mention.detail
    package, torch = detail.get("package", ""), detail.get("torch", "").rstrip(".")
    found = detail.get("found", "").rstrip(".")
    if package == "torchao" or detail.get("least_torch"):
        return torchao_refused(seen, torch, found)
    release = torch.partition("+")[0]
    cause = f"{package} {found} is not for torch {torch}."
    built = torch_of(package, found)
    cause += f" It was built for torch {built}." if built else " Its own check says so."
    helps: list[str] = []
    notes: list[str] = []
    fitting = partner_of(package, release)
    tag = index_tag(seen, package, torch)
    if fitting:
        pinned = f'"{package}=={fitting}"'
        helps.append(f"{seen.pip} install --force-reinstall --no-deps {pinned}{index_option(tag)}")
        notes += index_note(tag)
        notes.append(f"The release for torch {release} is {package} {fitting}.")
    elif detail.get("want"):
        helps.append(f'{seen.pip} install --no-deps "{package}{detail["want"]}"')
    if built:
        helps.append(f'{seen.pip} install "torch=={built}"')
    helps.append(f"{seen.pip} show torch {package}")
    return seen.answer(
        "wrong-torch", "FA606", cause, owner=package, direction="unknown", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def version_refused(seen: Seen) -> Answer:
    """``MMCV==2.2.0 is used but incompatible. Please install mmcv>=2.0.0rc4, <2.2.0``."""
    detail = seen.mention.detail
    package = detail.get("package", "").lower().replace("pytorch", "torch")
    found, want = detail.get("found", ""), detail.get("want", "").replace(" ", "").rstrip(".,")
    package = "flash-attn" if package == "flash-attention" else package
    caller = detail.get("caller", "")
    isolation = "--no-build-isolation " if caller else ""
    pin = _post(want) if caller else want
    return seen.answer(
        "api-change", "FA881",
        f"{package} {found} is refused by what imported it, by a check of its own before anything "
        f"is loaded: it wants {package}{want}.",
        owner=package, direction="none", confidence="high",
        help=(f'{seen.pip} install {isolation}"{package}{pin}"',
              f"{seen.pip} show {package}{' ' + caller if caller else ''}"),
        notes=(
            *((f"The sentence is one of {caller}, which other packages import where it is there: "
               f"a newer {caller} takes newer releases, and without it the check is gone.",)
              if caller else ()),
            "The other way out is a release of the caller that takes the installed one.",
        ),
    )  # fmt: skip


def _post(want: str) -> str:
    """A range for pip: ``<=2.7.4`` leaves 2.7.4.post1 out, which such checks take as 2.7.4."""
    return re.sub(r"<=(\d+(?:\.\d+){2})(?=$|,)", r"<=\1.post99", want)


def sees_no_gpu(seen: Seen) -> Answer:
    """A package asked torch for a GPU and got none; why, torch was not asked."""
    cpu = seen.torch is not None and "+cpu" in seen.torch
    asked = seen.mention.detail.get("sort") == "asked"
    if is_jetson(seen):
        return without_cuda(seen)
    again: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    if cpu:
        cause = f"torch {seen.torch} is a build without CUDA: no package can use a GPU with it."
        again, more = torch_with_cuda(seen, (seen.torch or "").partition("+")[0])
    else:
        cause = "torch sees no GPU." if asked else "torch sees no GPU, and the package needs one."
        cause += (
            " Two causes fit: torch is a build without CUDA, or the driver shows this process no "
            "GPU. The first command tells them apart: None is a build without CUDA."
        )
    return seen.answer(
        "wrong-torch", "FA601" if cpu else "FA821", cause, owner="torch", direction="none",
        confidence="high" if cpu else "medium", help=(_sees(seen), *again, "nvidia-smi"),
        notes=(*more, "In a container, the GPU has to be handed in (docker run --gpus all)."),
    )  # fmt: skip


def without_flash(seen: Seen) -> Answer:
    """torch's scaled_dot_product_attention has no flash kernel in this build of torch."""
    return seen.answer(
        "gpu-arch", "FA507",
        "This build of torch has no such kernel in its own scaled_dot_product_attention and takes "
        "another of its kernels: the result is the same, only slower. It is a warning of torch; "
        "the package flash-attn plays no part, and installing it changes nothing here.",
        owner="torch", direction="none", confidence="high", help=(_sees(seen),),
        notes=("Builds for Windows, and builds without CUDA, leave it out in many releases; a "
               "newer torch may have it.",),
    )  # fmt: skip


def class_missing(seen: Seen) -> Answer:
    """``Tried to instantiate class 'X.Y', but it does not exist``: no library registered it."""
    detail = seen.mention.detail
    name, library = detail.get("name", ""), detail.get("near", "")
    space = name.split(".")[0]
    if space.startswith("__"):
        return _walked(seen, name)
    cause = (
        f"No library that was loaded registers the class {name} with torch: its library was not "
        "loaded, is another one, or was built without its part for torch."
    )
    base = library.rsplit("/", 1)[-1]
    if re.match(r"lib(?:tf|tensorflow)[_-]", base):
        cause += f" {base} is by its name the part for TensorFlow."
    helps = [f"nm -DC {shlex.quote(library)} | grep -c torch::class_"] if library else []
    helps.append(
        f'{seen.python} -c \'import torch; torch.ops.load_library("/path/to/its/library.so"); '
        f"print(torch.classes.{name})'"
        if re.fullmatch(r"\w+\.\w+", name)
        else f"fa-forensics inspect {shlex.quote(library or '/path/to/its/library.so')}"
    )
    owner = _owner_of_space(seen, space)
    return seen.answer(
        "damaged-file", HIDDEN, cause, owner=owner, direction="none", confidence="medium",
        help=tuple(helps),
        notes=("The library that registers it is loaded by torch.ops.load_library or "
               "torch.classes.load_library, or by the import of its package; an error of that load "
               "stands further above.",),
    )  # fmt: skip


def _walked(seen: Seen, name: str) -> Answer:
    """``__path__._path``: somebody looks through all modules, and torch.classes takes any name."""
    return seen.answer(
        "api-change", "FA898",
        f"Harmless: no class and no library is missing. A program that looks through all imported "
        f"modules asked torch.classes for {name}, which every package of Python has; torch.classes "
        "takes each name for that of a C++ class. Streamlit's file watcher does so.",
        owner="torch", direction="none", confidence="high",
        help=("streamlit run APP.py --server.fileWatcherType none",),
        notes=("Or in the program, right after import torch: torch.classes.__path__ = []. What "
               "stops the program, if anything does, stands elsewhere.",),
    )  # fmt: skip


def _owner_of_space(seen: Seen, space: str) -> str | None:
    found = package_in(seen)
    return found or pip_name(seen, space) or (space if space and space[0] != "_" else None)


def _sees(seen: Seen) -> str:
    return (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.cuda.is_available())'"
    )


ANSWERERS: dict[str, Answerer] = {
    "caught-import": caught_import,
    "pair-mismatch": pair_mismatch,
    "version-refused": version_refused,
    "torch-sees-no-gpu": sees_no_gpu,
    "sdpa-without-flash": without_flash,
    "class-missing": class_missing,
}
