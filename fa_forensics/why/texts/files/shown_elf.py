"""A library for Linux, as file(1) shows it, on a system that is not Linux."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base, pip_name
from fa_forensics.why.texts.files.file_text import owner_of, path_of, quoted

#: The first release with a wheel for macOS (Apple Silicon), by the package index's file lists.
_FIRST_FOR_MACOS = {"bitsandbytes": "0.49.0"}


def linux_library(seen: Seen) -> Answer:
    """``X.so: ELF 64-bit LSB shared object, x86-64`` in a text of macOS."""
    path, detail = path_of(seen), seen.mention.detail
    name = base(path)
    owner = "bitsandbytes" if name.startswith("libbitsandbytes") else owner_of(seen, path)
    mac = detail.get("os") == "macOS"
    cause = (
        f"{name} is a library for Linux ({detail.get('for_machine')}): an ELF file, as file(1) "
        "shows, and macOS loads Mach-O files alone. The file is whole, and no setting makes it "
        "load: the release or the wheel that brought it has no build for macOS."
    )
    if not mac:
        cause = (
            f"{name} is a library for Linux ({detail.get('for_machine')}): an ELF file, as file(1) "
            "shows. It is whole. On macOS or Windows it cannot load, whatever is set; the text "
            "does not say which system it is from, and a set-up that finds no LD_LIBRARY_PATH is "
            "most often not on Linux."
        )
    notes = []
    if detail.get("variable"):
        notes.append(
            "The KeyError is no fault of the path: the package reads LD_LIBRARY_PATH without "
            "asking whether it is set. Setting it only leads to the next error, the library for "
            "Linux."
        )
    helps = [f"{seen.python} -c 'import platform; print(platform.platform())'",
             f"file {quoted(path)}"]  # fmt: skip
    first = _FIRST_FOR_MACOS.get(owner or "")
    package = pip_name(seen, owner)
    if first is not None:
        fetch = f'{seen.pip} install --upgrade "{owner}>={first}"'
        helps.append(f"{seen.pip} uninstall -y {owner}" if mac and detail.get("intel") else fetch)
        notes.append(
            f"{owner} has wheels for macOS since {first}, for Apple Silicon (macOS 14 and later) "
            "alone; older releases hold libraries for Linux, or for Linux and Windows. On a Mac "
            "with an Intel processor do without it: load the model without 8-bit and 4-bit "
            "quantisation, and take another optimiser."
        )
    elif package is not None:
        helps.append(f"{seen.pip} install --force-reinstall --no-cache-dir {package}")
    return seen.answer(
        "wrong-machine", "FA101", cause, owner=owner, direction="none",
        confidence="high" if mac else "medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip
