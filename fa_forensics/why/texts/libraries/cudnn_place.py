"""A whole cuDNN in another's place: torch says with which one it was compiled, and which runs."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, OLDER
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "versioned-symbol", "FA204"

#: torch's wheels list a wheel of cuDNN since 1.13.0, the first of which is 8.5.0.
_FIRST_WHEEL, _FIRST_CUDNN = "1.13.0", (8, 5)

#: What torch says after a look into that variable.
_BY_VARIABLE = lazily(r"LD_LIBRARY_PATH\s+contains\s+incompatible")


def in_its_place(seen: Seen, built: str, found: str) -> Answer:
    """torch compares the version of its headers with that of the library, and says both."""
    older = numbers(found) < numbers(built)
    wheels = _has_wheel(seen, built)
    cause = (
        f"torch was compiled with cuDNN {built}, and a whole other cuDNN, {found}, is loaded in "
        f"place of that: {'an older' if older else 'another'} copy comes before the one that torch "
        "brings."
    )
    folder = seen.mention.detail.get("on_path", "")
    if folder:
        cause += (
            f" The LD_LIBRARY_PATH of the text names {folder}: that directory has to leave it, or "
            "the program runs without that variable."
        )
    elif _BY_VARIABLE.search(seen.mention.line):
        cause += (
            " torch itself says where from: its LD_LIBRARY_PATH has a directory with cuDNN or CUDA "
            "in the name (it looks into the variable for that), which has to leave it."
        )
    elif on_windows(seen):
        cause += (
            " It comes from a directory of PATH (a CUDA toolkit's bin, a cuDNN that was copied "
            "there), from conda's package cudnn, or from a file that was copied over torch's own."
        )
    elif wheels and _can_be_wheel(found):
        cause += (
            " It comes from LD_LIBRARY_PATH (a toolkit's or a module's directory), from conda, or "
            "from a wheel of another version that replaced torch's."
        )
    else:
        cause += (
            " It comes from LD_LIBRARY_PATH (a toolkit's or a module's directory), from the "
            "system, or from conda's package cudnn."
        )
    helps = [version_without_path(seen), search_path(seen)]
    if wheels:
        helps.append(
            packages_listed(
                seen, f"{seen.pip} list | grep -i cudnn; {seen.pip} check | grep -i cudnn"
            )
        )
        if not _can_be_wheel(found):
            helps.append(
                packages_listed(
                    seen, "conda list | grep -iE 'cudnn|torch'; ldconfig -p | grep libcudnn"
                )
            )
    else:
        helps.append(
            packages_listed(
                seen, "conda list | grep -iE 'cudnn|torch'; ldconfig -p | grep libcudnn"
            )
        )
        helps.append(f'conda install "{_of_conda(seen, built)}"')
    return seen.answer(
        KIND, CODE, cause, owner="cudnn", direction=NEWER if older else OLDER, confidence="high",
        notes=_notes(seen, built, found, wheels), help=tuple(helps),
    )  # fmt: skip


def _notes(seen: Seen, built: str, found: str, wheels: bool) -> tuple[str, ...]:
    two = ".".join(built.split(".")[:2])
    fits = (
        f"cuDNN {two}.* and no other one: this torch wants the same major and minor version"
        if _is_strict(seen)
        else f"cuDNN {two}.* or a newer one of that major version"
    )
    last = "No extension and no driver has a part in this."
    if on_windows(seen):
        return (
            "The second command lists the copies on PATH: the one of another release leaves PATH, "
            "or is removed. Where it lists none, the copy is conda's, or lies in torch\\lib "
            "itself: installing that very release of torch again, from the index that it came "
            f"from, puts its own cuDNN back. Where a copy outside counts, it has to be {fits}.",
            last,
        )
    if wheels and not _can_be_wheel(found):
        return (
            "Where the first command works, LD_LIBRARY_PATH is the cause. Without it, the older "
            f"copy is conda's or the system's (the last command): no wheel of cuDNN is {found}, "
            f"the first is 8.5.0. Where a copy outside counts, it has to be {fits}.",
            last,
        )
    if wheels:
        return (
            f"Where the first command works, LD_LIBRARY_PATH is the cause. Without it, pip list "
            f"shows a wheel of cuDNN {found}: the version that python -m pip check names for torch "
            "has to replace that. A torch without a wheel of cuDNN (of conda, or of a build of its "
            f"own) needs {fits}, where the loader looks.",
            last,
        )
    return (
        "Where the first command works, LD_LIBRARY_PATH is the cause: the program runs without "
        "that variable, or the directory of the other cuDNN leaves it.",
        "A torch of this time brings cuDNN without a wheel of its own: PyTorch's wheels have it "
        "inside, conda's torch takes it from inside or from the package cudnn, and a torch that "
        "was compiled on a machine from there. Where a copy outside counts, it has to be "
        f"{fits} (the command with conda install, in an environment of conda). Where torch is to "
        "have it inside, installing that very release of torch again makes it whole.",
        last,
    )


def _has_wheel(seen: Seen, built: str) -> bool:
    """Whether cuDNN can be a wheel that torch lists, by torch's release or by cuDNN's own.

    PyTorch's builds for CUDA 11.8 up to torch 2.0 have it in torch/lib.
    """
    present = seen.place.present
    inside = present is not None and order_key(present.release) < order_key("2.1.0")
    if inside and (seen.torch_cuda or "").startswith("11.8"):
        return False
    if present is not None and order_key(present.release) < order_key(_FIRST_WHEEL):
        return False
    return numbers(built)[:2] >= _FIRST_CUDNN


def _can_be_wheel(found: str) -> bool:
    """Whether NVIDIA's wheels have had that cuDNN: the first, of nvidia-cudnn-cu11, is 8.5.0."""
    return numbers(found)[:2] >= _FIRST_CUDNN


def _is_strict(seen: Seen) -> bool:
    """Whether torch wants one minor version: it says "mismatch" then, and "incompatibility" since.

    torch/backends/cudnn/__init__.py of 0.4.1 compares version // 100; that of 1.0.0 takes a
    newer minor version of cuDNN 7.
    """
    return "version mismatch" in seen.mention.line.lower()


def _of_conda(seen: Seen, built: str) -> str:
    """What conda is asked for."""
    two = ".".join(built.split(".")[:2])
    return f"cudnn={two}" if _is_strict(seen) else f"cudnn>={built},<{numbers(built)[0] + 1}"


def version_without_path(seen: Seen) -> str:
    """Ask torch for the cuDNN that it finds when the variable is not set."""
    look = f"{seen.python} -c 'import torch; print(torch.backends.cudnn.version())'"
    return look if on_windows(seen) else f"env -u LD_LIBRARY_PATH {look}"


def packages_listed(seen: Seen, linux: str) -> str:
    """Print the packages of cuDNN that one of the package managers has."""
    if not on_windows(seen):
        return linux
    return " ".join((linux.partition(" | ")[0], "|", "findstr", "/i", "cudnn"))


def search_path(seen: Seen) -> str:
    """Print where another cuDNN may come from: that variable, on Windows the copies on PATH."""
    return " ".join(("where", "cudnn64_*.dll")) if on_windows(seen) else "echo $LD_LIBRARY_PATH"


def dotted(text: str) -> str:
    """``8, 9, 2`` as people write it; ``8302`` is 8.3.2, and ``90100`` is 9.1.0."""
    text = re.sub(r"\s*,\s*", ".", text.strip())
    if text.isdigit() and len(text) in (4, 5):
        rest = int(text) % (1_000 if len(text) == 4 else 10_000)
        return f"{text[0]}.{rest // 100}.{rest % 100}"
    return text


def numbers(version: str) -> tuple[int, ...]:
    """A version for comparisons: (8, 3, 2)."""
    return tuple(int(part) for part in re.findall(r"\d{1,5}", version)[:3])
