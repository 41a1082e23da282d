"""Answers about calls that a package refuses, and about names registered twice or not at all."""

from __future__ import annotations

import re

from fa_forensics.facts.flash_limits import parameters
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import flash_rows, gpus_of, package_in, pip_name, version_of


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
        from fa_forensics.why.texts.gpu_refusals import ampere_only

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
    package = package_in(seen) or (space if space and not space.startswith("_") else None)
    name = package or "the extension"
    if detail.get("backend"):
        cause = (
            f"{operator or 'The operator'} is registered, but not for {detail['backend']}: the "
            f"{name} that is loaded was built without it (a CPU build beside a CUDA torch)."
        )
    else:
        what = operator or f"the operators of {name}"
        cause = (
            f"Nothing registered {what}: the compiled library of {name} did "
            "not load, most often since it was built for another torch. Its own error stands "
            "above, or was caught."
        )
    look = f"fa-forensics inspect {package}" if package else seen.inspect_command()
    helps = [look]
    if (wanted := pip_name(seen, package)) is not None:
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir --no-deps {wanted}")
    return seen.answer(
        "wrong-torch", "FA886", cause, owner=package, direction="unknown", confidence="medium",
        help=tuple(helps),
        notes=("Packages of that sort have one release for each release of torch.",),
    )  # fmt: skip


def already_registered(seen: Seen) -> Answer:
    """The same library was loaded twice, from two places."""
    detail = seen.mention.detail
    name = detail.get("type") or detail.get("namespace") or detail.get("operator") or "the name"
    kind = "python-abi" if detail.get("type") else "wrong-torch"
    cause = (
        f"{name} was registered twice in one process: the same library was loaded from two places "
        "(an installed copy and a build of one's own, or two versions of one package)."
    )
    return seen.answer(
        kind, "FA886", cause, owner=package_in(seen), direction="none", confidence="medium",
        help=(
            f"{seen.pip} list",
            f"{seen.python} -c 'import sys; print(chr(10).join(sys.path))'",
        ),
        notes=("Remove one of the two copies; a JIT-built one lies in ~/.cache/torch_extensions.",),
    )  # fmt: skip


def type_not_registered(seen: Seen) -> Answer:
    """pybind11 meets a C++ type that no loaded module has registered under its key."""
    cause = (
        "A compiled module uses a C++ type that no module in this process has registered with "
        "pybind11. Two causes fit: the module that registers it (most often torch) was not "
        "imported before, or the two were built with other pybind11 internals (compiler, flavour "
        "or pybind11 release) and do not see one another's types."
    )
    return seen.answer(
        "python-abi", "FA888", cause, owner=package_in(seen), direction="none",
        confidence="medium",
        help=(f"{seen.python} -c 'import torch; import MODULE'", seen.inspect_command()),
        notes=("If the first command works, the order of imports is the cause.",),
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


def numpy_abi(seen: Seen) -> Answer:
    """A module that was compiled for another numpy than the one that is imported."""
    if _for_a_newer_numpy(seen):
        cause = (
            "A compiled module was built with a newer numpy than the one that is installed. No "
            "torch symbol and no CUDA library is involved."
        )
        helps = (f"{seen.pip} install --upgrade numpy", f"{seen.pip} show numpy")
        notes = ("A build of that module with an older numpy is the other way out.",)
    else:
        cause = (
            "A compiled module was built for numpy 1, and numpy 2 is installed. It concerns what "
            "that module exchanges with numpy; no torch symbol and no CUDA library is involved."
        )
        helps = (f'{seen.pip} install "numpy<2"', f"{seen.pip} show numpy")
        notes = (
            "torch up to 2.2 was built for numpy 1; newer releases of the module in question take "
            "numpy 2.",
        )
    return seen.answer(
        "python-abi", "FA891", cause, owner="numpy", direction="none", confidence="high",
        help=helps, notes=notes,
    )  # fmt: skip


def _for_a_newer_numpy(seen: Seen) -> bool:
    """By the versions of numpy's C interface, or by the sizes of its structures."""
    built, found = seen.mention.detail.get("built", ""), seen.mention.detail.get("found", "")
    hexadecimal = re.compile(r"0x[0-9a-fA-F]{1,4}")
    if hexadecimal.fullmatch(built) and hexadecimal.fullmatch(found):
        return int(built, 16) > int(found, 16)
    sizes = re.search(r"Expected (\d{1,5}) from C header, got (\d{1,5}) from", seen.mention.line)
    return sizes is not None and int(sizes[1]) > int(sizes[2])


ANSWERERS: dict[str, Answerer] = {
    "flash-limit": flash_limit,
    "wrong-arguments": wrong_arguments,
    "operator-missing": operator_missing,
    "already-registered": already_registered,
    "type-not-registered": type_not_registered,
    "package-too-old": package_too_old,
    "numpy-abi": numpy_abi,
}
