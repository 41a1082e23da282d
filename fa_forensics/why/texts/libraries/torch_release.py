"""Which release of a package that PyTorch publishes goes with the torch of a text."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.facts.library_names import torch_library_life
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.python_api import is_older, partner_of, torch_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen

_RELEASED = lazily(r"\d{1,3}(?:\.\d{1,4}){1,3}(?:\.post\d{1,3})?")


def release_for_torch(seen: Seen, name: str) -> str:
    """The text's release of a package, or the one that belongs to its torch; "" for neither.

    A nightly is on no index of releases, and a release for another torch is not built for this.
    """
    release = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
    torch = (seen.torch or "").partition("+")[0]
    if not _RELEASED.fullmatch(torch):
        return release
    fitting = partner_of(name, torch) or ""
    if not _RELEASED.fullmatch(release):
        return fitting
    built = torch_of(name, release)
    return fitting if fitting and built is not None and built != torch else release


def is_for_all(name: str, release: str) -> bool:
    """Whether a release was published once, and not for each CUDA.

    PyTorch's installation commands for previous versions give torchaudio a CUDA label from
    0.10.0 (torch 1.10) on.
    """
    return name == "torchaudio" and is_older(release, "0.10.0")


OF_ALL = (
    "torchaudio before 0.10 had no code for CUDA: its release was published once, and the package "
    "index has it."
)


def all_again(seen: Seen) -> tuple[str, ...]:
    """One command for all packages of the text that are compiled for torch; () for none or many."""
    from fa_forensics.rules.remedy import row_of

    told = [key.partition(":")[2] for key in seen.versions if key.startswith("pkg:")]
    rows = [row for name in told[:60] if (row := row_of(name)) is not None]
    names = [str(row["distribution"]) for row in rows if _is_plain_source(row)]
    if not 1 < len(names) < 7:
        return ()
    pins = [f"{name}=={seen.versions[f'pkg:{name}'].partition('+')[0]}" for name in names]
    get = "install --no-build-isolation --no-cache-dir --force-reinstall --no-deps"
    return (" ".join((seen.pip, get, "--no-binary", ",".join(names), *pins)),)


def _is_plain_source(row: Mapping[str, object]) -> bool:
    """Whether pip compiles a package by its name alone."""
    return bool(row["source_build"]) and not row.get("requirement") and not row.get("by_cuda")


def before_it_came(seen: Seen, soname: str) -> tuple[str, ...]:
    """That an old torch has no such library, where the text tells of no torch."""
    life = torch_library_life(soname)
    if seen.torch is not None or soname != "libtorch_cpu.so" or life is None:
        return ()
    return (
        f"{soname} came with torch {life[0]}: where torch is older, an extension that asks for it "
        "was compiled for a newer one (by whoever made the wheel, or in pip's own build "
        "environment), and has to be compiled again on this torch, with --no-build-isolation where "
        "pip does it.",
    )


def older_than_it(seen: Seen, soname: str) -> Answer:
    """A file that is loaded by its path, when torch is mostly there: this torch has no such one."""
    life = torch_library_life(soname)
    since = life[0] if life is not None else "1.5.0"
    cause = (
        f"{soname} is torch's own library since torch {since}. A file that needs it is loaded by "
        "its path (an OSError, not an ImportError), as torch.ops.load_library does when torch is "
        f"already there: then the torch that is there is older than {since}, or another one than "
        "this Python's, and the file was built for a newer one. Where ctypes opens the file before "
        "torch is imported, torch imported first is all. The first command tells them apart."
    )
    from fa_forensics.why.texts.libraries.needing import rebuild_commands

    again = rebuild_commands(seen)
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=owner_of_library(soname), direction=UNKNOWN,
        confidence="medium",
        help=(f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
              *again, seen.inspect_command()),
        notes=(
            f"Where it prints a torch before {since}: the extension is compiled again on that "
            "torch, from an empty build directory (with --no-build-isolation where pip does it), "
            "or torch is one of those that the project names for this release of its own.",
            f"Where it prints {since} or a later one, torch has that library in torch/lib, and "
            "the file is to be loaded after import torch.",
        ),
    )  # fmt: skip
