"""What the dynamic loaders of glibc, musl and macOS say, and ctypes in their name."""

from __future__ import annotations

import re

from fa_forensics.facts.paste import loader_symbols
from fa_forensics.facts.paste.around import (
    failing_import,
    fails_itself,
    importing,
    path_of_line_above,
)
from fa_forensics.facts.paste.asking import who_asks
from fa_forensics.facts.paste.beside import package_beside
from fa_forensics.facts.paste.first_import import order_told
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.machines import around_version, machines_around
from fa_forensics.facts.paste.misread import library_meant, version_meant
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.pointers import pointer_near, printed_pointer
from fa_forensics.facts.paste.recogniser import (
    Build,
    Claim,
    Recogniser,
    by_pattern,
    by_words,
    in_every_language,
    plain,
)
from fa_forensics.facts.paste.system_around import (
    cuda_torch_around,
    for_one_torch,
    loaded_by_torch,
    shown_elsewhere,
    shown_number,
    system_around,
    torch_is_imported,
)
from fa_forensics.facts.paste.tokens import is_binary_name, is_half_a_name, path_after, path_before
from fa_forensics.patterns import lazily

#: Libraries that torch brings into the process: an extension finds them when torch is there.
TORCH_LIBRARY = lazily(
    r"lib(?:c10(?:_cuda|_hip|d\w*)?|torch(?:_(?:cpu|cuda|hip|python|cuda_cpp|cuda_cu|cuda_linalg"
    r"|global_deps|nvshmem))?|caffe2(?:_gpu)?|shm)\.so(?:\.\d+)?"
)


def _missing(line: Line, match: re.Match[str]) -> Mention | None:
    body = line.body
    library = path_before(body, match.start()) or _library_near(body, match.start())
    if library is None:
        library = path_of_line_above(line)
    reason = re.compile(r"\s?:\s{0,3}([^:\n'\"`()]{4,60})").match(body, match.end())
    detail = {"reason": reason[1].strip() if reason else "", "import": importing(line)}
    if "exec format error" in detail["reason"].lower():
        return None  # the file is there, and said to be another machine's
    detail["direct"] = "yes" if detail["import"] and fails_itself(line) else ""
    detail["frame"] = _own_frame(line)
    detail["present"] = shown_elsewhere(line, library)
    if any("ninja: no work to do" in above.body for above in line.above(6)):
        detail["stale"] = "yes"
    detail["other_number"] = shown_number(line, library)
    detail["torch_loads"] = loaded_by_torch(line)
    detail["torch_fails"] = torch_is_imported(line)
    detail.update(system_around(line))
    if "dso_loader" in line.lower or "could not load dynamic library" in line.lower:
        detail["by"] = "tensorflow"
    elif not detail["import"]:
        detail.update(who_asks(line))
    if any("ctypes" in above.body for above in line.above(4)):
        detail["ctypes"] = "yes"
    if "error while loading shared libraries" in body[: match.start()].lower():
        program = body[: body.lower().find(": error while loading")].split()
        detail["program"] = program[-1] if program else ""
    return missing(line, match.start(), library, detail)


_TORCH_FILE = lazily(r"[\w./~+-]{0,300}\btorch/__init__\.py")


def _own_frame(line: Line) -> str:
    """torch's own file among the last steps of the traceback, below the frames of ctypes."""
    for above in line.above(8):
        if above.body.startswith("Traceback "):
            break
        found = _TORCH_FILE.search(above.body) if "__init__.py" in above.body else None
        if found is not None:
            return found[0]
        if ".py" in above.body and "ctypes" not in above.body:
            break
    return ""


def missing(line: Line, place: int, library: str | None, detail: dict[str, str]) -> Mention:
    """A library that was not found: one of torch's, the extension itself, or any other."""
    if library is None:
        return line.mention("missing-library", place, detail=detail)
    if (meant := library_meant(library)) != library:
        library, detail = meant, {**detail, "misspelt": library}
    name = library.rsplit("/", 1)[-1]
    if of_torch := for_one_torch(name):
        what, told = "torch-named-library", {**detail, **of_torch}
        return line.mention(what, place, library=library, file=library, detail=told)
    if TORCH_LIBRARY.fullmatch(name) and "/" not in library:
        detail = {**detail, "torch_imported": "yes" if _torch_imported(line) else ""}
        detail.update(cuda_torch_around(line) if "cuda" in name else {})
        return line.mention("import-order", place, library=library, detail=detail)
    own = (
        "/" in library
        and library.endswith(".so")
        and not re.search(r"torch/lib/|/nvidia/", library)
    )
    if own or (is_binary_name(library) and re.search(r"cpython-|\.abi3\.so|pypy", library)):
        detail = {**detail, **machines_around(line, library)}
        return line.mention("missing-own-file", place, library=library, file=library, detail=detail)
    return line.mention("missing-library", place, library=library, detail=detail)


_IMPORT_TORCH = lazily(r"(?:-+>\s?)?(?:\d{1,4}\s)?(?:>>>\s?)?(?:import|from) torch\b")


def _torch_imported(line: Line) -> bool:
    """Whether a line above imports torch, in the same stream."""
    for above in line.above(30):
        if "python" in above.body and " -c " in above.body:
            return "import torch" in above.body  # another process for each command
        if _IMPORT_TORCH.match(above.body):
            return True
    return False


def _library_near(body: str, place: int) -> str | None:
    """A soname in the words before: ``libx.so.1 (cannot open shared object file)``."""
    found = re.findall(
        r"[\w./~+-]{0,300}?\.so(?:\.\d+){0,4}(?![\w.])", body[max(0, place - 400) : place], re.A
    )
    return found[-1] if found and not is_half_a_name(found[-1]) else None


def _musl_missing(line: Line, match: re.Match[str]) -> Mention:
    detail = {"needed_by": match["by"] or "", "libc": "musl", "reason": match["reason"].strip()}
    return missing(line, match.start(), match["library"], detail)


#: What stands behind the version; a space that got into the path stays in it up to the bracket.
_REQUIRED_HERE = lazily(
    r"[\s,]{0,4}\(?required by\s+([^\s()]{1,500}(?: /[^\s()]{1,300}(?=\)))?)", re.IGNORECASE
)


def _version_not_found(line: Line, match: re.Match[str]) -> Mention:
    body = line.body
    by = _REQUIRED_HERE.match(body, match.end())
    requirer = by[1].replace(" ", "").rstrip(".,;'\"") if by else None
    if by and requirer and not body[by.end() : by.end() + 1] and ".so" not in requirer:
        requirer = None  # the text ends in the middle of the path
    return line.mention(
        "version-not-found",
        match.start(),
        version=(version := version_meant(match["version"])),
        library=path_before(body, match.start()),
        file=requirer,
        detail={
            "misspelt": "" if version == match["version"] else match["version"],
            "needed_by": requirer or "",
            "import": importing(line),
            "beside": "" if requirer else package_beside(line),
            **order_told(line, match["version"]),
            **around_version(line, requirer),
        },
    )


def _bare_version(line: Line, match: re.Match[str]) -> Claim | None:
    """``GLIBC_2.32 not found``, without the loader's own wording around it."""
    if re.search(r"version\s+[`'\"]?$", line.body[max(0, match.start() - 12) : match.start()]):
        return None
    at, told = match.start(), {"beside": package_beside(line)}
    mention = line.mention("version-not-found", at, version=match["version"], detail=told)
    return Claim(at, match.end(), mention)


def _macho_library(line: Line, match: re.Match[str]) -> Mention:
    library = path_after(line.body, match.end())
    file = ""
    for text in (line.body, *(below.body for below in line.below(3))):
        at = text.lower().find("referenced from")
        if at >= 0:
            file = path_after(text, at + 16) or ""
            break
    return line.mention(
        "missing-library", match.start(), library=library, file=file, detail={"os": "macOS"}
    )


#: What a Git LFS pointer in place of a library is refused as.
_POINTERS = ("invalid-elf", "file-too-short")
#: ``file too short: /opt/x/libx.so``
_PATH_AFTER = lazily(
    r"\s?[:,]\s{0,3}['\"]?((?:[A-Za-z]:)?[/\\][^\s'\"]{1,400}\.so(?:\.\d+)*)(?![\w.])"
)
#: ``Exec format error: '/opt/x/bin/ptxas'``
_QUOTED_AFTER = lazily(r":\s['\"]([^'\"\n]{2,400})['\"]")
#: ``tried: '/opt/x.so' (mach-o file, but is an incompatible architecture``
_OF_DYLD = lazily(r"'([^'\n]{2,400})' \((?:mach-o|not a mach-o|fat)")


def _of_file(what: str) -> Build:
    """A complaint about a file whose path stands right before it."""

    def build(line: Line, match: re.Match[str]) -> Mention:
        file = path_before(line.body, match.start())
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        if "or" in groups:
            groups["need"] = groups.pop("or")  # 'arm64e' or 'arm64': Python is the latter
        detail = {**groups, "import": (failing_import if what == "static-tls" else importing)(line)}
        if what in _POINTERS:
            detail.update(pointer_near(line))
        if what == "wrong-machine":
            quoted = _QUOTED_AFTER.match(line.body, match.end())
            quoted = quoted or _OF_DYLD.search(line.body, max(0, match.start() - 500), match.end())
            opened = line.lower.rfind("cannot open shared object file", 0, match.start())
            if opened >= 0:
                file = path_before(line.body, opened) or _library_near(line.body, opened)
            file = quoted[1] if quoted else file
        after = _PATH_AFTER.match(line.body, match.end()) if what in _POINTERS else None
        file = after[1] if after is not None and file is None else file
        if file is None or "/" not in file:
            file = file or path_of_line_above(line)
        if what in ("wrong-machine", "wrong-elf-class"):
            detail.update(machines_around(line, file))
        return line.mention(what, match.start(), file=file, detail=detail)

    return build


def _phrase(what: str, *phrases: str, rest: str = "") -> Recogniser:
    signs = tuple(s for phrase in phrases for s in in_every_language(phrase))
    return by_words(signs, rest, _of_file(what))


def recognisers() -> tuple[Recogniser, ...]:
    """The loaders' texts."""
    return (*loader_symbols.recognisers(), *_of_libraries(), *_of_files(), *_of_mkl())


def _of_libraries() -> tuple[Recogniser, ...]:
    cannot_open = in_every_language("cannot open shared object file")
    return (
        by_pattern(("library not loaded",), r"Library not loaded:\s?", _macho_library),
        by_pattern(
            ("error loading shared library",),
            r"Error loading shared library (?P<library>[^\s:]{1,300}):\s(?P<reason>[^(\n]{1,80})"
            r"(?:\(needed by (?P<by>[^\s()]{1,500})\))?",
            _musl_missing,
        ),
        by_words(cannot_open, "", _missing),
        by_pattern(
            ("not found", "\u627e\u4e0d\u5230"),
            r"version\s+[`'\"]?(?P<version>[A-Za-z_][\w.+-]{1,100})[`'\"]?\s+"
            r"(?:not found|\u627e\u4e0d\u5230)",
            _version_not_found,
        ),
        by_pattern(
            ("glibc_", "glibcxx_", "cxxabi_", "gcc_"),
            r"(?P<version>(?:GLIBC|GLIBCXX|CXXABI|GCC)_(?:\d{1,3}(?:\.\d{1,3}){0,2}|ABI_\w{1,20}))"
            r"[`'\"]?\s{0,3}(?:(?:was |is |symbols? )?(?:not found|missing|not available)"
            r"|\u627e\u4e0d\u5230|\u672a\u627e\u5230)",
            _bare_version,
        ),
    )


def _of_mapping() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("git-lfs.github.com/spec",),
            r"version https://git-lfs\.github\.com/spec",
            printed_pointer,
        ),
        _phrase(
            "map-refused",
            "failed to map segment from shared object",
            "cannot make segment writable for relocation",
            "cannot apply additional memory protection after relocation",
            "cannot restore segment prot after reloc",
            "cannot change memory protections",
            "cannot create shared object descriptor",
            "cannot map zero-fill pages",
            "cannot allocate memory for program header",
            rest=r"(?:\s?:\s?(?P<reason>[\w ]{1,40}))?",
        ),
        _phrase(
            "misaligned",
            "ELF load command address/offset not properly aligned",
            "ELF load command address/offset not page-aligned",
            "ELF load command alignment not page-aligned",
            "Unsupported system page size",
        ),
    )


def _of_mkl() -> tuple[Recogniser, ...]:
    return (
        plain(
            "mkl-stops",
            ("mkl fatal error", "mkl error: cannot load"),
            r"MKL (?:FATAL )?ERROR:\s(?:Error on loading function|Cannot load)\s"
            r"(?P<library>libmkl\w{1,30}\.so(?:\.\d)?)?",
        ),
        plain(
            "mkl-stops",
            ("mkl_threading_layer=",),
            r"MKL_THREADING_LAYER=\w{1,10} is incompatible with (?P<library>\S{1,40}) library",
            sort="threads",
        ),
    )


def _of_files() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("inconsistency detected by ld.so",),
            r"Inconsistency detected by ld\.so:\s{0,3}(?P<place>[\w./+-]{1,60}):\s?\d{1,6}:\s?"
            r"(?P<function>\w{1,60}):\s?[Aa]ssertion (?P<said>[^\n]{1,120}?)['\u2019]? failed",
            _of_file("loader-inconsistent"),
        ),
        by_pattern(
            ("bus error", "sigbus"),
            r"\bBus error\b|\bSIGBUS\b",
            _of_file("bus-error"),
        ),
        _phrase(
            "static-tls",
            "cannot allocate memory in static TLS block",
            "cannot load any more object with static TLS",
        ),
        _phrase(
            "exec-stack",
            "cannot enable executable stack as shared object requires",
            rest=r"(?:\s?:\s?(?P<reason>[\w ]{1,40}))?",
        ),
        _phrase("exec-stack", "cannot enable executable stack as shared object"),  # cut off there
        _phrase("invalid-elf", "invalid ELF header"),
        _phrase("file-too-short", "file too short"),
        _phrase(
            "file-too-short",
            "cannot read file data",
            rest=r"(?:\s?:\s?(?P<reason>[\w/ ]{1,40}))?",
        ),
        _phrase("wrong-elf-class", "wrong ELF class: ELFCLASS32"),
        _phrase("wrong-elf-class", "wrong ELF class: ELFCLASS64"),
        *_of_mapping(),
        _phrase(
            "damaged-elf",
            "object file has no dynamic section",
            "object file has no loadable segments",
            "ELF file's phentsize not the expected size",
            "unexpected reloc type",
            "ELF file data encoding not",
            "ELF file OS ABI invalid",
            "cannot dynamically load executable",
            "cannot dynamically load position-independent executable",
            "only ET_DYN and ET_EXEC can be loaded",
            "unsupported version 0 of Verneed record",
            "file truncated",
            "ELF load command past end of file",
        ),
        _phrase("wrong-machine", "Exec format error"),
        _phrase("wrong-machine", "cannot execute binary file"),
        _phrase("cpu-level", "CPU ISA level is lower than required"),
        by_pattern(
            ("incompatible architecture", "not a mach-o file", "but wrong architecture"),
            r"(?:incompatible architecture|not a mach-o file|mach-o, but wrong architecture)"
            r"(?:\s\(have ['(](?P<have>[\w,]{1,40})[')], need ['(](?P<need>[\w,]{1,40})[')]"
            r"(?:\sor\s'(?P<or>\w{1,20})')?\))?",
            _of_file("wrong-machine"),
        ),
    )
