"""torch at the link: its library is not on the line, or is of another release than the code."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.owner import is_torch, libraries_of, owner_of
from fa_forensics.facts.python_api import partner_of
from fa_forensics.facts.symbol_text import parse_symbol
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import look_up, order_key


def in_every_torch(seen: Seen, answer: Answer) -> bool:
    """Whether the torch on the link line has the name: the text's, or every torch in use.

    Names that one file misses together miss for one reason: one of a few releases tells.
    """
    atlas = seen.tables.atlas
    if atlas is None:
        return False
    machine, present = seen.place.machine, seen.place.present
    if present is not None and present.published and answer.exported_by:
        first = order_key(answer.exported_by[0])
        if order_key(present.release) < first or present.release not in answer.exported_by:
            return False
    every = set(atlas.releases(machine))
    return every <= set(answer.exported_by) and not _one_of_a_few(seen, every)


def _one_of_a_few(seen: Seen, every: set[str]) -> bool:
    """Whether the linker misses another name of torch, which a part of its releases has."""
    ages = seen.tables.ages
    names = (m.symbol for m in seen.paste.mentions[:20] if m.what == seen.mention.what)
    for name in dict.fromkeys(name for name in names if name and name != seen.mention.symbol):
        symbol = parse_symbol(name)
        if (
            ages is None
            or symbol is None
            or not is_torch(owner_of(symbol.name or "_Z", symbol.version, symbol.demangled))
        ):
            continue
        lives = look_up(symbol.name or "", symbol.demangled, ages, seen.place.machine).alive
        if lives and not every <= set(lives):
            return True
    return False


#: Notes on commands that are not typed here.
_OF_COMMANDS = lazily(r"(?:Another\sbuild\sof|One\sof\sthe|Every\storch\ssince|A\sfile\sthat)")


def torch_not_on_the_line(seen: Seen, answer: Answer, rocm: bool) -> Answer:
    """No release is wrong: the library that owns the name is not linked."""
    library = libraries_of(answer.owner or "")[0]
    flag = "-l" + library.removeprefix("lib").split(".so")[0]
    first = answer.exported_by[0]
    lead = f"torch {answer.interval} export it, from {library}: no release is too old or too new."
    if order_key(first) > (1, 2, 0, True):
        lead = (
            f"torch {answer.interval} export it, from {library}, so that no torch is too new, and "
            f"none since {first} too old."
        )
    owns = (
        f"That library is not on the link line ({flag}); it is {library} that owns the name, not "
        "the part of torch that was being linked. At run time, import torch before the extension."
    )
    cause = f"{lead} {owns}"
    kind = "rocm" if rocm else "import-order"
    return replace(
        answer, kind=kind, code="FA210", direction=NONE, cause=cause, confidence="medium",
        notes=tuple(note for note in answer.notes if not _OF_COMMANDS.match(note)),
        help=(f"{seen.python} -c 'import torch.utils.cpp_extension as c; "
              "print(c.library_paths())'",),
    )  # fmt: skip


#: What torchvision's own CMakeLists.txt builds, outside of Python's directories.
_CXX_VISION = lazily(r"(?:^|/)libtorchvision\.so[.\d]*$")


def partner_in_cxx(answer: Answer, seen: Seen) -> Answer:
    """torchvision's C++ library for a libtorch: no wheel brings it, its source does."""
    file, present = seen.mention.file or "", seen.place.present
    row = row_of("torchvision")
    if not _CXX_VISION.search(file) or "-packages/" in file or row is None:
        return answer
    release = partner_of("torchvision", present.release) if present is not None else None
    tag = f"v{release}" if release else "vX.Y.Z"
    build = (
        f"git clone --branch {tag} {row['repository']} torchvision && cmake -S torchvision -B "
        "torchvision/build -DCMAKE_PREFIX_PATH=/path/to/libtorch && cmake --build torchvision/build"
    )
    note = (
        "libtorchvision.so for C++ comes from torchvision's source, built with the libtorch that "
        "the program is linked with: a wheel of torchvision or torch changes nothing in that."
    )
    if not release:
        note += " vX.Y.Z is the tag of the torchvision that belongs to that libtorch's release."
    kept = (n for n in answer.notes if not _OF_COMMANDS.match(n))
    helps = (text for text in answer.help if " -m pip install" not in text)
    return replace(answer, help=(build, *helps), notes=(note, *kept))
