"""xformers without kernels: compiled where no CUDA was found ("with CUDA None" in its banner)."""

from __future__ import annotations

from fa_forensics.facts.python_api import is_older, partner_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.python.pairs import (
    LAST_OF_ONE,
    cuda_of,
    index_note,
    index_tag,
)

#: How the banner says so; xformers writes torch.version.cuda of its build, or None, into it.
NONE = "None"

#: Said of such a file, whatever torch is there.
WITHOUT_KERNELS = (
    ' "CUDA None" says that this xformers was compiled without CUDA (from source: no CUDA toolkit '
    "was found, or torch saw no GPU during the build and FORCE_CUDA=1 was not set): no torch gives "
    "it kernels, so the file itself has to be replaced."
)
#: How to compile it with them.
_FROM_SOURCE = (
    "Where there is no wheel for the Python in use, pip compiles xformers: with "
    "--no-build-isolation, and CUDA_HOME at a toolkit of torch's CUDA, which makes the kernels."
)


def for_another_torch(built: str, have: str, direction: str, cuda: str) -> str:
    """What is wrong with an xformers for another release of torch than the one that is there.

    Since 0.0.34 (torch 2.10) its files keep to torch's stable interface (its release notes).
    """
    cause = f"xformers was built for torch {built}, and torch {have} is here."
    one, other = cuda_of(built).split(".")[0], cuda_of(have).split(".")[0]
    differs = bool(one and other and one != other)
    stable = not any(is_older(v.partition("+")[0], LAST_OF_ONE) for v in (built, have))
    if differs and stable and direction == "file-older":
        return (
            f"{cause} What counts of that is CUDA's major version, {one} against {other}: the "
            "file needs the libraries of the other one. xformers for torch 2.10 and newer keeps "
            "to torch's stable interface, so that a newer torch alone does it no harm."
        )
    newer = direction == "file-newer"
    cause += " xformers is newer than torch." if newer else " xformers is older than torch."
    if differs:
        cause += f" CUDA's major version differs too: {one} against {other}."
    return f"{cause}{WITHOUT_KERNELS}" if cuda == NONE else cause


def with_next_torch(
    seen: Seen, pair: tuple[str, str], python: str, release: str
) -> tuple[list[str], list[str]]:
    """(commands, notes): the next torch with an xformers that pip can get for this Python."""
    get = f"{seen.pip} install --force-reinstall --no-cache-dir"
    minor = ".".join(python.split(".")[:2])
    note = (
        f"No xformers for torch {release} has a file for Python {minor}, nor a source on the "
        f"package index: the next pair with both is torch {pair[1]} and xformers {pair[0]}, with "
        "torchvision and torchaudio of that torch. A program that needs the older torch needs an "
        "older Python."
    )
    return [" ".join((get, f'"torch=={pair[1]}"', f'"xformers=={pair[0]}"'))], [note]


def torch_with_kernels(seen: Seen, torch: str, built: str, index: str) -> list[str]:
    """The torch that a file without kernels was compiled for, and its xformers with them."""
    release = built.partition("+")[0]
    fitting = partner_of("xformers", release)
    if fitting is None:
        return []
    get = f"{seen.pip} install --force-reinstall --no-cache-dir"
    if index and not index_tag(seen, "xformers", torch) and torch != release:
        torch, index = release, ""  # that xformers is on the package index, as its torch is
    return [" ".join((get, f'"torch=={torch}"', f'"xformers=={fitting}"')) + index]


def without_kernels(seen: Seen, built: str, have: str, helps: tuple[str, ...]) -> Answer:
    """The torch is the one that it was compiled for, and it has no kernels all the same."""
    fitting = partner_of("xformers", have)
    tag = index_tag(seen, "xformers", have) if fitting else ""
    wanted = f"xformers=={fitting}" if fitting else "xformers"
    get = f'{seen.pip} install --force-reinstall --no-deps --no-cache-dir "{wanted}"'
    return seen.answer(
        "wrong-torch", "FA886",
        f"xformers was built for torch {built}, which is here.{WITHOUT_KERNELS}",
        owner="xformers", direction="none", confidence="high",
        help=(f"{get}{index_option(tag)}", *helps),
        notes=(*index_note(tag), _FROM_SOURCE),
    )  # fmt: skip


def flash_left_out(seen: Seen, operator: str) -> Answer | None:
    """``xformers_flash::flash_fwd``: operators of a part of its own; None for other operators.

    xformers/ops/fmha/flash.py registers them where xformers._C_flashattention was imported, which
    setup.py builds unless XFORMERS_DISABLE_FLASH_ATTN=1.
    """
    if not operator.startswith("xformers_flash"):
        return None
    return seen.answer(
        "own-missing-symbol", "FA207",
        f"Nothing registered {operator}. The operators of xformers_flash are of a part of its own, "
        "xformers._C_flashattention: most likely this xformers was built without it, or that file "
        "alone does not load.",
        owner="xformers", direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch, xformers._C_flashattention as f; print(f.__file__)'",
            " ".join(("git", "submodule", "update", "--init", "--recursive")),
            " ".join(
                ("XFORMERS_DISABLE_FLASH_ATTN=0", seen.pip, "install -v --no-build-isolation",
                 "--no-deps", "--force-reinstall", ".")
            ),
        ),
        notes=(
            "No module of that name: the build left it out (XFORMERS_DISABLE_FLASH_ATTN=1, "
            "submodules that were not fetched, or a TORCH_CUDA_ARCH_LIST without a GPU that it "
            "serves). The last two commands, for the source directory of xformers, build it again "
            "with that part.",
        ),
    )  # fmt: skip
