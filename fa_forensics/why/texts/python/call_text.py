"""Answers about calls that a package refuses, and about names registered twice or not at all."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.flash_limits import parameters
from fa_forensics.facts.python_api import has_partners
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import flash_rows, gpus_of, package_in, pip_name, version_of
from fa_forensics.why.texts.python.call_counts import schema_mismatch
from fa_forensics.why.texts.python.other_build import from_two_places, not_for_backend
from fa_forensics.why.texts.python.pairs import pair_command, pair_notes, pair_words, which_pair
from fa_forensics.why.texts.python.python_text import row_of_module
from fa_forensics.why.texts.python.second_torch import imported_beside


def flash_limit(seen: Seen) -> Answer:
    """A limit of FlashAttention itself: type, head dimension, GPU of the backward pass."""
    package = package_in(seen) or "flash-attn"
    said = seen.mention.detail.get("said") or seen.mention.line
    rows = flash_rows(seen, package)
    cause = (
        f'{package} refuses the call by a check of its own ("{said[:120].rstrip(". ")}"): its file '
        "is loaded and fits; what was passed is beyond what it serves."
    )
    notes = []
    if rows:
        row = rows[-1]
        notes.append(
            f"{row.name} takes {', '.join(row.dtypes)} and head dimensions up to "
            f"{row.head_dim_max}; GPUs {', '.join(row.gpus)}."
        )
        if row.backward:
            notes.append(f"Its backward pass: {row.backward}.")
    if re.search(r"fp16|bf16|half|dtype|data type", said, re.IGNORECASE):
        notes.append(
            "Tensors in float32 are refused: load the model in bfloat16 or float16, or run it "
            "under torch.autocast."
        )
    gpus = gpus_of(seen)[:1]
    if gpus and rows and not any(row.accepts(gpus[0].capability) for row in rows):
        from fa_forensics.why.texts.gpu.gpu_refusals import ampere_only

        return ampere_only(seen)
    return seen.answer(
        "gpu-arch", "FA507", cause, owner=package, direction="none", confidence="high",
        help=(
            f"{seen.python} -c 'import torch; print(torch.cuda.get_device_name(), "
            "torch.cuda.get_device_capability())'",
        ),
        notes=tuple(notes),
    )  # fmt: skip


def wrong_arguments(seen: Seen) -> Answer:
    """``f() missing 1 required positional argument``, ``takes 21 positional arguments but 22``."""
    detail = seen.mention.detail
    if detail.get("sort") == "schema":
        return schema_mismatch(seen)
    function = detail.get("function", "").rpartition(".")[2]
    package = package_in(seen)
    called = f"{function}()" if function else "The function"
    cause = (
        f"{called} is there with other parameters than its caller passes: caller and callee are of "
        "different releases. Which of the two is the older one, the text does not say."
    )
    if detail.get("sort") == "results":
        cause = (
            f"The call returns another number of values (expected {detail.get('expected', '?')}"
            f", got {detail.get('got', '?')}) than its caller unpacks: caller and callee are of "
            "different releases."
        )
    notes = []
    version = version_of(seen, "flash-attn")
    known = parameters(version, function) if version and function else None
    if known is not None:
        notes.append(f"flash-attn {version} has {function}({', '.join(known)}).")
    helps = [f"{seen.pip} show {package}"] if package else [f"{seen.pip} check"]
    return seen.answer(
        "api-change", "FA881", cause, owner=package, direction="none",
        confidence="medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def operator_missing(seen: Seen) -> Answer:
    """``operator torchvision::nms does not exist``: the library that registers it did not load."""
    detail = seen.mention.detail
    operator = detail.get("operator", "")
    if not operator and detail.get("name"):
        operator = "::".join(filter(None, (detail.get("module"), detail["name"])))
    space = operator.split("::")[0] or detail.get("module", "")
    row = row_of_module(space) if space.startswith("_") and len(space) > 3 else None
    package = str(row["distribution"]) if row is not None else package_in(seen)
    package = package or (space if space and not space.startswith("_") else None)
    name = package or "the extension"
    if detail.get("backend"):
        return not_for_backend(seen, operator, package, detail["backend"])
    else:
        from fa_forensics.why.texts.python.xformers_kernels import flash_left_out

        left_out = flash_left_out(seen, operator)
        if left_out is not None:
            return left_out
        what = operator or f"the operators of {name}"
        if _on_a_mac(seen):
            return _never_there(seen, what, package)
        cause = (
            f"Nothing registered {what}: the compiled library of {name} did "
            "not load, most often since it was built for another torch. Its own error stands "
            "above, or was caught."
        )
        cause += pair_words(seen, package)
        if tree := _tree(seen):
            return _in_a_tree(seen, what, package, tree)
        mixed = from_two_places(seen, what, package)
        if mixed is not None:
            return mixed
        found = imported_beside(seen, what, package, which_pair(seen, name))
        if found is not None:
            return found
    look = f"fa-forensics inspect {package}" if package else seen.inspect_command()
    helps = [look]
    if package and has_partners(package):
        helps = [which_pair(seen, package), look]
    if on_windows(seen):
        helps.remove(look)  # it reads libraries of Linux
    paired = pair_command(seen, package) if package else ()
    helps += paired
    if has_partners(package) and not paired:
        helps.append(f"{seen.pip} show torch {package}")
    elif not paired and (wanted := pip_name(seen, package)) is not None:
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir --no-deps {wanted}")
    return seen.answer(
        "wrong-torch", "FA886", cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps),
        notes=(
            *pair_notes(seen, package),
            "Packages of that sort have one release for each release of torch.",
        )
        if has_partners(package)
        else ("The first command tells whether it is there at all, and whether it fits torch.",),
    )  # fmt: skip


_FRAME = lazily(r"(?P<tree>/[^\s\"]{0,300}/(?P<top>\w{1,60}))/(?P=top)/[^\s\"]{1,200}\.py$")


def _tree(seen: Seen) -> str:
    """The source tree whose Python files ran, where the frame is not of an installed package."""
    frame = seen.mention.detail.get("frame", "")
    found = _FRAME.search(frame)
    if found is None or re.search(r"/(?:site|dist)-packages/|/\.cache/|\.egg/", frame):
        return ""
    return found["tree"]


def _in_a_tree(seen: Seen, what: str, package: str | None, tree: str) -> Answer:
    """The Python files of a source tree call an operator that no library beside them has."""
    name = package or "the package"
    return seen.answer(
        "wrong-torch", "FA886",
        f"Nothing registered {what}. The Python files that ask for it are those of the source tree "
        f"{tree}: the compiled library of {name} was not built there, is of another revision than "
        "these files (precompiled ones, an older build), or did not load.",
        owner=package, direction="unknown", confidence="medium",
        help=(f"find {shlex.quote(tree)} -name '*.so' -newer {shlex.quote(tree)}/setup.py",
              f"cd {shlex.quote(tree)} && git log -1 --format=%cd && "
              f"{seen.pip} install -v --no-build-isolation -e ."),
        notes=("The first command lists the compiled files that are newer than the tree's "
               "setup.py; without any, the second builds them. The installed release of the "
               "package, run from another directory, is the other way out.",),
    )  # fmt: skip


def _on_a_mac(seen: Seen) -> bool:
    words = " ".join((seen.versions.get("os", ""), *seen.mention.detail.values()))
    return re.search(r"/Users/|\bmacOS\b|\bDarwin\b", words) is not None


def _never_there(seen: Seen, what: str, package: str | None) -> Answer:
    """CUDA packages under macOS: what pip installs has no compiled library, or one for the CPU."""
    name = package or "the package"
    top = what.split("::")[0]
    find = (
        f"{seen.pip} show -f {package} | grep -E '[.](so|dylib)'"
        if package
        else f"{seen.pip} check"
    )
    return seen.answer(
        "damaged-file", "FA880",
        f"Nothing registered {what}, and this is macOS, where {name} has no CUDA: most likely its "
        f"compiled library ({top}) was never built here. Installed without compiling, only the "
        "Python files are there. Neither the release of torch nor a GPU plays a part.",
        owner=package, direction="none", confidence="medium",
        help=(find, f"{seen.pip} show torch {package}" if package else f"{seen.pip} list"),
        notes=(
            "No line from the first command: it was not built. What the project says on macOS or "
            "on CPUs applies then: a build from its source tree (pip install -v "
            "--no-build-isolation -e .), where it has one for the CPU; else another machine.",
        ),
    )  # fmt: skip


def package_too_old(seen: Seen) -> Answer:
    """A package states which release of another one it needs, and which it found."""
    detail = seen.mention.detail
    name = detail.get("package", "").replace("_", "-")
    least, found = detail.get("least", ""), detail.get("found", "").rstrip(".")
    cause = (
        f"What was imported needs {name} {least} or newer, and {name} {found} is installed: its "
        "own check says so before anything is loaded."
    )
    wanted = pip_name(seen, name)
    return seen.answer(
        "api-change", "FA881", cause, owner=wanted or name, direction="none", confidence="high",
        help=(
            *((f'{seen.pip} install --no-build-isolation "{wanted}>={least}"',) if wanted else ()),
            f"{seen.pip} show {name}",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "flash-limit": flash_limit,
    "wrong-arguments": wrong_arguments,
    "operator-missing": operator_missing,
    "package-too-old": package_too_old,
}
