"""Answers to mentions of a symbol: undefined in the loader's words, cut off, or left out."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.bitsandbytes_names import is_for_gpu
from fa_forensics.facts.owner import OWN, is_cuda, is_torch, owner_of, owner_of_library
from fa_forensics.facts.symbol_text import SymbolText, parse_symbol
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.symbol import misspelt, symbol_answer
from fa_forensics.why.texts.beside_symbol import as_the_build_says, beside_ldd, torch_first
from fa_forensics.why.texts.gpu.rocm_text import needs_rccl, rccl
from fa_forensics.why.texts.python.nameless import nameless
from fa_forensics.why.torch_names.cut import begins_a_name, cut_answer, scope_of
from fa_forensics.why.torch_names.macos import (
    as_on_linux,
    built_with_gcc,
    long_is_int64,
    of_apple,
    of_gcc,
    on_linux,
    only_on_a_mac,
)
from fa_forensics.why.torch_names.misread import read_again
from fa_forensics.why.torch_names.repair import repaired, swapped, with_its_beginning
from fa_forensics.why.ways.signs import with_signs

_MANGLED = lazily(r"_{1,3}Z(?P<rest>[\w.$]+)")
#: Longer names (characters) that cannot be read are none; so much of them is shown.
_LONGEST, _SHOWN = 3_000, 200
#: What stands for a name that a program leaves out: "(PyTorch C10 ABI mismatch)".
_IN_WORDS = lazily(r"\((?=[^()]{0,60}(?:torch|c10|\bABI\b))[A-Za-z][\w /.,'-]{2,80}\)\s*$", re.I)
#: Libraries that packages load where they find no GPU: ``libbitsandbytes_cpu.so``.
_CPU_LIBRARY = lazily(r"lib(?P<package>\w+?)_cpu\.so$")


def undefined_symbol(seen: Seen) -> Answer:
    """A symbol that the loader did not find."""
    if seen.mention.detail.get("libc") == "musl":
        from fa_forensics.why.texts.libraries.musl_text import relocation_on_musl

        on_musl = relocation_on_musl(seen)
        if on_musl is not None:
            return on_musl
    answer = _written(seen) if seen.mention.detail.get("written") else symbol_of_text(seen)
    file = (seen.mention.file or "").rsplit("/", 1)[-1]
    cpu = _CPU_LIBRARY.search(file)
    if answer.owner == OWN and answer.code == "FA205" and cpu and cpu["package"] != "torch":
        return ctypes_attribute(seen)
    if answer.owner == OWN and not file and is_for_gpu(answer.symbol):
        return _of_bitsandbytes(seen)
    asking = owner_of_library(file)
    if asking == "cudnn" and answer.owner in (OWN, "cudnn") and not answer.exported_by:
        from fa_forensics.why.texts.libraries.cudnn_text import cudnn_mix

        return cudnn_mix(seen)
    if answer.owner is not None and is_cuda(answer.owner):
        from fa_forensics.why.texts.libraries.cuda_symbol_text import with_text

        return with_text(answer, seen)
    if answer.code == "FA402":
        from fa_forensics.why.other_names.linked_module import by_its_import

        return by_its_import(answer, seen)
    return torch_first(beside_ldd(as_the_build_says(answer, seen), seen), seen)


def _written(seen: Seen) -> Answer:
    """A function as a sentence writes it: a constructor may stand there by its class alone.

    One that no release has in that form is read no further: people leave parameters out.
    """
    answer = symbol_of_text(seen)
    if answer.exported_by:
        return answer
    cause = (
        f"The text writes {seen.mention.symbol}, and no torch on record exports a function in that "
        "form: sentences leave parameters and scopes out. The mangled name, which begins with _Z, "
        "tells which torch the file was built for."
    )
    return replace(nameless(seen), cause=cause)


def symbol_of_text(seen: Seen) -> Answer:
    """The answer by the symbol's own history."""
    if "Tn" in (seen.mention.symbol or ""):
        from fa_forensics.why.torch_names.clang_names import of_clang

        other = of_clang(seen)
        if other is not None:
            return other
    symbol = _symbol(seen)
    mended = _mended(seen) if symbol is None else _look_alike(seen, symbol)
    if mended is not None:
        return with_signs(misspelt(_answer(mended, seen)), seen)
    begun = None if symbol is None else _begun(seen, symbol)
    if begun is not None:
        return with_signs(cut_answer(begun), seen)
    if symbol is None or _ends_early(seen, symbol):
        if _IN_WORDS.match(seen.mention.symbol or ""):
            from fa_forensics.why.texts.python.tries_text import symbol_in_words

            return symbol_in_words(seen)
        if not seen.mention.symbol:
            return _unnamed(seen)
        return _shortened(with_signs(cut_answer(seen), seen), seen)
    if symbol.name and owner_of(symbol.name, symbol.version, "") == "nccl" and needs_rccl(seen):
        return rccl(seen, symbol.name, symbol.demangled)
    if seen.mention.detail.get("os") == "macOS" or "std::__1::" in symbol.demangled:
        return with_signs(_on_a_mac(symbol, seen), seen)
    return with_signs(_answer(symbol, seen), seen)


def _shortened(answer: Answer, seen: Seen) -> Answer:
    """An answer to what is too long to be a name: its beginning, and nothing that is removed."""
    name = answer.symbol or ""
    if len(name) <= _LONGEST:
        return answer
    shown = f"{name[:_SHOWN]}..."
    note = (
        f"What stands in the text as a symbol has {len(name)} characters or more, and cannot be "
        "read as one; its beginning is shown."
    )
    return replace(
        answer, symbol=shown, demangled=shown, help=(seen.inspect_command(),),
        notes=(note, *answer.notes), confidence="low",
    )  # fmt: skip


def _answer(symbol: SymbolText, seen: Seen) -> Answer:
    answer = symbol_answer(symbol, seen.place, seen.tables, seen.mention.file)
    return replace(answer, source_line=seen.mention.line or None)


def _mended(seen: Seen) -> SymbolText | None:
    """The name of torch that was meant by one that cannot be read; None where none is near."""
    found = _MANGLED.search((seen.mention.symbol or "").strip())
    atlas = seen.tables.ages
    if found is None or atlas is None or begins_a_name(seen, "_Z" + found["rest"]):
        return None
    if not seen.tables.may_repair():
        return None
    machine = seen.place.machine
    name = read_again("_Z" + found["rest"], atlas, machine)
    name = name or repaired("_Z" + found["rest"], atlas, machine)
    return None if name is None else parse_symbol(name)


def _look_alike(seen: Seen, symbol: SymbolText) -> SymbolText | None:
    """The name of torch that a typed one means by letters that look alike: lValue for IValue."""
    atlas, name = seen.tables.ages, symbol.name or ""
    if (
        atlas is None
        or not name.startswith("_Z")
        or not is_torch(owner_of(name, None, symbol.demangled))
    ):
        return None
    machine = seen.place.machine
    if atlas.releases_of(name, machine) or atlas.twin(name, machine) is not None:
        return None
    if not seen.tables.may_repair():
        return None
    other = next((n for n in swapped(name) if atlas.releases_of(n, machine)), None)
    return None if other is None else parse_symbol(other)


def _begun(seen: Seen, symbol: SymbolText) -> Seen | None:
    """The mention with what is there of a name that goes on behind dots; None for a whole one.

    What is there can be read as a name with fewer parameters, which no torch has.
    """
    atlas, name = seen.tables.ages, symbol.name or ""
    if atlas is None or not name.startswith("_ZN") or "(" not in symbol.demangled:
        return None
    if not re.search(rf"{re.escape(name)}\s?(?:\.\.\.|\u2026)", seen.mention.line):
        return None
    start = on_linux(name) if seen.mention.detail.get("os") == "macOS" else name
    if atlas.releases_of(start, seen.place.machine) or not begins_a_name(seen, start):
        return None
    return replace(seen, mention=replace(seen.mention, symbol=start))


def _ends_early(seen: Seen, symbol: SymbolText) -> bool:
    """Whether a name reads as one without parameters because its end was cut off.

    Data has none either: that is exported under this very name.
    """
    atlas, name = seen.tables.ages, symbol.name or ""
    if atlas is None or not name.startswith("_ZN") or "(" in symbol.demangled:
        return False
    return not atlas.releases_of(name, seen.place.machine) and begins_a_name(seen, name)


def _on_a_mac(symbol: SymbolText, seen: Seen) -> Answer:
    """A name of macOS, whose compiler spells some types otherwise than that of Linux."""
    linux = as_on_linux(symbol, seen)
    answer = _answer(linux, seen)
    if answer.owner == "libstdc++" and seen.mention.detail.get("os") == "macOS":
        from fa_forensics.why.torch_names.macos import of_gccs_library

        return of_gccs_library(answer, seen)
    if answer.owner is None or not is_torch(answer.owner):
        return answer
    if seen.mention.detail.get("os") == "macOS" and of_gcc(symbol):
        return built_with_gcc(answer, seen)
    here = long_is_int64(answer, symbol, seen) if linux == symbol else None
    if here is not None:
        return here
    if linux == symbol and not answer.exported_by and "at::mps::" not in symbol.demangled:
        return only_on_a_mac(answer, seen)
    if linux == symbol:
        return of_apple(answer, symbol, seen)
    note = (
        f"macOS spells it {symbol.name}; the releases are those of the wheels for Linux, which are "
        "compiled from the same source."
    )
    return replace(answer, notes=(note, *answer.notes))


def _symbol(seen: Seen) -> SymbolText | None:
    """The symbol as it was meant; None where it is cut off or none."""
    text = with_its_beginning(seen.mention.symbol or "")
    symbol = parse_symbol(text)
    if symbol is None:
        symbol = _undemangled(seen, text)
    if symbol is not None and seen.mention.version is not None:
        symbol = replace(symbol, version=seen.mention.version)
    return symbol


def _undemangled(seen: Seen, text: str) -> SymbolText | None:
    """A whole mangled name that this system's demangler is too old for: its scope is readable."""
    found = _MANGLED.fullmatch(text.strip())
    if found is None or seen.mention.detail.get("cut"):
        return None
    name = "_Z" + found["rest"]
    scope, rest = scope_of(name)
    if "::" not in scope.rstrip(":") or not rest.startswith("E") or len(rest) < 3:
        return None
    known = is_torch(owner_of(name, None, scope.rstrip(":"))) or begins_a_name(seen, name)
    return None if known else SymbolText(name, scope.rstrip(":"), None)


def _unnamed(seen: Seen) -> Answer:
    """The words "undefined symbol" without the symbol."""
    more = (
        'Paste the whole line with the name that follows "undefined symbol:": it tells which torch '
        "the file was built for."
    )
    if not seen.mention.file:
        return nameless(seen)
    name = seen.package or seen.module or "the file"
    cause = (
        f"{seen.mention.file.rsplit('/', 1)[-1]} lacks a symbol, and the text leaves out which. "
        f"For an extension of torch that most often means that {name} was built for another torch "
        "than the one that is loaded, for instance one that pip put in place of a container's."
    )
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=seen.package, direction=UNKNOWN, confidence="low",
        notes=(more,), help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
            seen.inspect_command(),
        ),
    )  # fmt: skip


def _of_two_releases(answer: Answer, file: str) -> Answer:
    """A file that loads as it is, and has not the function that Python asks it for."""
    name = file.rsplit("/", 1)[-1]
    cause = (
        f"No known library owns such a name: Python asks {name} for it as for a function of its "
        "own. That file was most likely built from another release than the Python files beside "
        "it (by hand, by a build that was copied there, or left by an earlier installation), or "
        "without the option that the function comes with."
    )
    return replace(answer, cause=cause, confidence="medium")


def ctypes_attribute(seen: Seen) -> Answer:
    """``AttributeError: .../libX.so: undefined symbol: f``: ctypes looked a function up by name."""
    file = seen.mention.file or ""
    found = _CPU_LIBRARY.search(file.rsplit("/", 1)[-1])
    if found is None:
        answer = undefined_symbol(seen)
        if "_stub" in file:  # a stand-in lacks names in every release
            return answer
        note = (
            "AttributeError: the library was loaded, and ctypes did not find a function in it that "
            "the Python code of the package expects: the two are from different releases."
        )
        plain = re.match(r"_Z|__", answer.symbol or "") is None
        if answer.code == "FA205" and answer.owner == OWN and plain and "bitsandbytes" not in file:
            answer = _of_two_releases(answer, file)
        return replace(answer, notes=(note, *answer.notes))
    package = found["package"]
    cause = (
        f"{file.rsplit('/', 1)[-1]} is what {package} loads where its CUDA set-up failed, and it "
        f"has no GPU functions such as {seen.mention.symbol}. The real failure is that set-up, "
        "earlier in the log: no GPU or driver is seen, the CUDA runtime library is not found, or "
        "this release has no library for the CUDA of torch."
    )
    helps: tuple[str, ...] = (
        f"{seen.python} -m {package}",
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.cuda.is_available())'",
    )
    notes: tuple[str, ...] = (
        "Putting the CUDA library in the CPU library's place hides the cause: the next machine or "
        "release fails again.",
    )
    too_old = _too_old_for_cuda_12(seen)
    if too_old:
        notes = (too_old, *notes)
    else:
        helps = (*helps, f"{seen.pip} install --upgrade {package}")
    return seen.answer(
        "own-symbol", "FA207", cause, symbol=seen.mention.symbol, demangled=seen.mention.symbol,
        owner=package, direction=NONE, confidence="high", help=helps, notes=notes,
    )  # fmt: skip


def _of_bitsandbytes(seen: Seen) -> Answer:
    """A function of bitsandbytes for GPUs, and nothing says in which of its libraries."""
    cpu = replace(seen.mention, file="libbitsandbytes_cpu.so")
    answer = ctypes_attribute(replace(seen, mention=cpu))
    cause = (
        f"{seen.mention.symbol} is a function of bitsandbytes for GPUs. Most likely "
        "libbitsandbytes_cpu.so was loaded, which has none of these, and which bitsandbytes takes "
        "where its CUDA set-up failed: no GPU or driver is seen, the CUDA runtime library is not "
        "found, or this release has no library for the CUDA of torch. Or its Python files are of "
        "another release than its library."
    )
    return replace(answer, cause=cause, confidence="medium")


def _too_old_for_cuda_12(seen: Seen) -> str:
    """That the text's GPU is one that CUDA 12 has no code for; "" for any other.

    CUDA 12.0's release notes: support for compute capability 3.5 and 3.7 is removed.
    """
    from fa_forensics.why.texts.clues import called, gpus_of

    old = [gpu for gpu in gpus_of(seen) if gpu.capability < (5, 0)]
    if not old:
        return ""
    return (
        f"CUDA 12 does not support {called(old[0])} any more: no library for CUDA 12 or later has "
        "code for it, and no newer release or driver changes that. Another GPU, or a torch for "
        "CUDA 11 and a build of the package from source for it, is the way out."
    )


ANSWERERS: dict[str, Answerer] = {
    "undefined-symbol": undefined_symbol,
    "bare-symbol": undefined_symbol,
    "symbol-not-found-macho": undefined_symbol,
    "ctypes-attribute": ctypes_attribute,
}
