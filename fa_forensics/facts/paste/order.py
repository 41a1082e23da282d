"""Which of the failures came first, and which only follow from another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fa_forensics.facts.bitsandbytes_names import is_for_gpu
from fa_forensics.facts.paste.model import Mention
from fa_forensics.patterns import lazily

_LOADING = frozenset(
    ("undefined-symbol", "symbol-not-found-macho", "missing-library", "version-not-found",
     "invalid-elf", "file-too-short", "wrong-elf-class", "static-tls", "exec-stack", "misaligned",
     "damaged-elf", "map-refused", "loader-inconsistent", "ctypes-attribute",
     "could-not-load-library", "wrong-machine", "import-order", "missing-own-file", "no-init",
     "python-mismatch", "windows", "cuda-dll")
)  # fmt: skip
_BUILDING = frozenset(
    ("jit-build-failed", "arch-unsupported-by-nvcc", "linker-undefined", "build-cuda-mismatch",
     "out-of-memory-build", "cuda-home-missing", "gcc-unsupported", "cuda-too-old-to-build",
     "gpu-feature", "ptxas-too-old", "torch-missing-in-build", "linker-refuses",
     "torch-name-missing", "header-not-included", "cxx-standard", "host-headers", "source-error",
     "feature-needs-target",
     "no-target", "cmake-stopped", "windows-build", "wheel-moved", "setup-tool",
     "torch-cpu-in-build", "compiler-missing", "python-refused", "compiler-crashed")
)  # fmt: skip
#: Say that something is wrong, seldom what: behind all that say more.
_VAGUE = frozenset(
    ("import-order", "torchcodec-banner", "no-module", "missing-attribute", "xformers-banner",
     "import-wrapper", "caught-import", "torch-sees-no-gpu", "class-missing",
     "sdpa-without-flash", "segfault", "abort", "bus-error", "nccl", "stop-iteration-so",
     "kernels-variant", "xformers-no-operator", "no-device", "operator-missing",
     "torch-pin-broken", "numpy-abi", "struct-size", "module-init", "torch-without-cuda",
     "hip-error", "gpu-warned", "sdpa-no-kernel", "no-matching-distribution", "compiler-warned",
     "no-prebuilt", "wheel-not-there", "run-time", "cuda-error", "torch-replaced", "cublas-status",
     "jax-library")
)  # fmt: skip
#: Errors of compilers that only the first of counts, behind all that name a cause.
_ANY_SOURCE = frozenset(("source-error", "host-headers"))
#: Said by the way, with what stopped the build elsewhere.
_BY_THE_WAY = frozenset(("compiler-warned", "no-prebuilt", "wheel-not-there"))
#: Say that an import failed, and neither of what nor why.
_WRAPPERS = ("import-wrapper", "caught-import")
#: What a tool printed about a file: it backs a failure up, or stands alone.
LISTINGS = frozenset(("nm-line", "ldd-line", "readelf-line", "bare-symbol"))
#: Say what is wrong with the driver: without it no process sees a GPU.
_DRIVERS = frozenset(("driver-too-old", "driver-ill", "driver-mismatch", "driver-stub"))
#: What only follows where one of these was said too.
_FOLLOWS: Mapping[str, frozenset[str]] = {
    "missing-own-file": _BUILDING,
    "torch-sees-no-gpu": _DRIVERS | {"no-device"},
    "no-device": _DRIVERS,
    "no-kernel-image": frozenset(("gpu-not-supported-by-torch",)),
    "nccl": _LOADING,
    "mkl-stops": frozenset(("undefined-symbol",)),
    "jax-library": _LOADING | {"loader-trace"},
    "xformers-no-operator": frozenset(("xformers-refusals",)),
    "lfs-pointer": frozenset(("invalid-elf", "file-too-short")),
    "cuda-home-missing": frozenset(("build-cuda-mismatch",)),
    "gpu-warned": frozenset(("gpu-refused-by-build",)),
    "torch-lacks-wheels": frozenset(("missing-library",)),
    "torch-pin-broken": frozenset(("torch-replaced",)),
    "no-prebuilt": frozenset(("wheel-moved", "wheel-not-there", "wheel-damaged")),
}
_LAST = frozenset(("segfault", "abort", "bus-error"))  # how a process ends, whatever went before
_COMPILED = lazily(r"(?:^|\.)_\w|_(?:cuda|cpp|ext|ops|C)\b|cuda|_C$|kernel")
#: An entry of a list of tries, as packages print that load their compiled part themselves.
_ENTRY = ("ModuleNotFoundError", "ImportError")
#: No more mentions than this are handed on.
MOST_MENTIONS = 400
#: Of one sort no more are held against all others: a linker can print thousands.
MOST_OF_A_SORT = 300


def first_cause_first(found: Iterable[Mention]) -> tuple[Mention, ...]:
    """The mentions without consequences and repetitions, the first cause first."""
    folded = _first_of_each(_folded(found))
    real = [mention for mention in folded if not _is_consequence(mention, folded)]
    real = [_with_own_file(mention, folded) for mention in real]
    wrappers = [m for m in real if m.what in _WRAPPERS]
    if any(m.what not in _WRAPPERS and m.what not in LISTINGS for m in real):
        real = [_with_wrapper(m, wrappers) for m in real if m.what not in _WRAPPERS]
    caught = [m for m in real if m.what == "caught-import"]
    real = [m for m in real if m not in caught[1:]]  # the first names the package
    real.sort(key=lambda mention: (_tier(mention), mention.number))
    return tuple(real[:MOST_MENTIONS])


def _first_of_each(found: Iterable[Mention]) -> list[Mention]:
    count: Counter[str] = Counter()
    kept = []
    for mention in found:
        count[mention.what] += 1
        if count[mention.what] <= MOST_OF_A_SORT:
            kept.append(mention)
    return kept


#: torchvision goes on without its image functions: what ended the program is said elsewhere.
_ONLY_WARNED = "Failed to load image Python extension"


def _tier(mention: Mention) -> int:
    if mention.what in LISTINGS:
        return 3
    if mention.detail.get("prose") or (mention.what == "undefined-symbol" and not mention.symbol):
        return 1
    if mention.what == "missing-library" and mention.detail.get("by") == "tensorflow":
        return 1
    if mention.what in _LOADING and _ONLY_WARNED in mention.line:
        return 1
    if mention.what in _VAGUE:
        return 2 if mention.what in {*_LAST, *_WRAPPERS} else 1
    return 0


def _is_consequence(mention: Mention, all_of_them: Sequence[Mention]) -> bool:
    what = mention.what
    others = {m.what for m in all_of_them if m is not mention}
    swallowed = bool(mention.detail.get("swallowed"))  # not defined, as the file did not load
    if (_LOADING if swallowed else _FOLLOWS.get(what, frozenset())) & others:
        return True
    if _says_again(mention, all_of_them):
        return True
    if what in _ANY_SOURCE or what in _BY_THE_WAY or mention.detail.get("warning"):
        return _is_explained(mention, all_of_them)
    if what in ("run-time", "cuda-error") and mention.detail.get("sort") != "disk":
        return any(_tier(m) == 0 for m in all_of_them if m is not mention)
    if what in _LAST or mention.detail.get("sort") in ("object", "asked"):
        return bool(others - LISTINGS - _LAST - {"missing-attribute"})
    if what in ("jit-build-failed", "out-of-memory-build") and _says_little(mention):
        if any(m.what in _BUILDING and not _says_little(m) for m in all_of_them):
            return True
        return any(
            m.what in _BUILDING and m.number < mention.number
            for m in all_of_them
            if m is not mention
        )
    loading = [m for m in all_of_them if m.what in _LOADING and m is not mention]
    if "libbitsandbytes_cpu.so" in f"{mention.file} {mention.library}" and what in _LOADING:
        return any(m.detail.get("cpu") for m in all_of_them)
    if what == "no-module":
        module = mention.detail.get("module", "")
        if any(_tier(m) == 0 for m in all_of_them) and not _COMPILED.search(module):
            return True  # an optional module: many packages look for some
        return any(_same_module(module, m) or _right_below(mention, m) for m in loading)
    if what == "missing-attribute" and mention.detail.get("sort") == "operator":
        return bool(loading) or _not_found(mention, all_of_them)
    if what == "operator-missing" and not mention.detail.get("backend"):
        space = mention.detail.get("operator", "").split("::")[0]
        return bool(space) and any(f"/{space}/" in f"{m.file}" for m in loading)
    if what == "cuda-setup-failed":
        return _set_up_after(loading)
    if what == "xformers-banner":
        return any("xformers" in (m.file or "") for m in loading)
    if what == "jit-build-failed" and mention.detail.get("flag"):
        flag = mention.detail["flag"]
        if any(m.what == "linker-refuses" and m.detail.get("flag") == flag for m in all_of_them):
            return True
    if what == "linker-undefined" and any(_left_out_on_a_mac(m) for m in all_of_them):
        return True
    if what == "linker-undefined" and "reference to symbol" in mention.line:
        return any(m.detail.get("sort") == "not-named" for m in all_of_them)
    if what == "torchcodec-banner":
        return bool(loading)
    if what == "could-not-load-library" and not mention.library:
        return any(m.what == what and m.library for m in all_of_them)
    if what == "missing-library" and _FFMPEG.match(mention.library or ""):
        return _another_try(mention, all_of_them)
    if what == "missing-library" and _OF_CUDA.search(mention.library or ""):
        return any(_mapped_later(mention, m) or _first_try(mention, m) for m in all_of_them)
    if what == "undefined-symbol" and not mention.symbol:
        return any(m.symbol for m in (*loading, *_bare(all_of_them)))
    if what == "cuda-home-missing":
        return any(m.what in _LOADING for m in all_of_them)
    return False


def _set_up_after(loading: Sequence[Mention]) -> bool:
    """Whether bitsandbytes misses a library, so that its words on its set-up only follow."""
    for one in loading:
        own = "libbitsandbytes" in (one.library or "")
        if one.library and not own and "bitsandbytes" in f"{one.line} {one.detail.get('by')}":
            return True
        if one.symbol and "libbitsandbytes_cpu.so" in f"{one.file}":
            return True
    return False


def _left_out_on_a_mac(mention: Mention) -> bool:
    """Whether Apple's ld says that it leaves a library out."""
    return mention.detail.get("sort") == "mac" and not mention.detail.get("warning")


def _says_again(mention: Mention, all_of_them: Sequence[Mention]) -> bool:
    """Whether an earlier mention says the same of another file, or says why this one is said."""
    if not mention.file and is_for_gpu(mention.symbol):
        return any(m.what == "cuda-setup-failed" for m in all_of_them)
    raised = mention.detail.get("raised", "")  # what ended a build, of a file that was loaded
    if raised and any(m.symbol in raised for m in all_of_them if m.symbol and m is not mention):
        return True
    same = [m for m in all_of_them if m.what == mention.what and m is not mention]
    module = mention.detail.get("module", "")
    if mention.what == "no-module" and module.endswith("._version"):  # a build writes both
        return any(m.detail.get("module") == f"{module[:-7]}C" for m in same)
    if _left_out_on_a_mac(mention):
        return any(m.number < mention.number and _left_out_on_a_mac(m) for m in same)
    if mention.what == "numpy-abi" and mention.detail.get("said", "").endswith("import"):
        return any(m.detail.get("built") for m in same)
    if mention.what == "version-not-found" and mention.library:
        copy = (mention.library, mention.version)
        return any(m.number < mention.number and (m.library, m.version) == copy for m in same)
    return False


def _bare(found: Iterable[Mention]) -> Iterable[Mention]:
    """Symbols that stand on lines of their own."""
    return (mention for mention in found if mention.what == "bare-symbol")


def _not_found(operator: Mention, all_of_them: Sequence[Mention]) -> bool:
    """Whether the compiled module that registers an operator is told not to be there."""
    space = operator.detail.get("module", "")
    for other in all_of_them:
        module = other.detail.get("module", "")
        if other.what == "no-module" and module.rpartition(".")[2] == space:
            return _COMPILED.search(module) is not None
    return False


def _is_explained(mention: Mention, all_of_them: Sequence[Mention]) -> bool:
    """Whether another mention says why the build ended, or is the first error of a source."""
    for other in all_of_them:
        if other is mention or other.what not in _BUILDING or other.detail.get("warning"):
            continue
        if other.what not in _ANY_SOURCE and not _says_little(other):
            return True
        if mention.what not in _ANY_SOURCE:
            return True
        if other.what in _ANY_SOURCE and other.number < mention.number:
            return True
    return False


#: Packages that come in parts for several FFmpeg releases try them all: one miss a release.
_FFMPEG = lazily(r"lib(?:av(?:util|codec|format|device|filter)|sw(?:scale|resample))\.so\.")
_TRIES_FFMPEG = ("torchcodec", "torchaudio")


#: torch tries its global libraries, misses one of CUDA's, and loads them one by one then.
_OF_CUDA = lazily(r"(?:^|/)lib(?:cu|nv|nccl)\w*\.so")


def _mapped_later(missing: Mention, other: Mention) -> bool:
    """Whether another library of CUDA was found after one was missed, and could not be mapped."""
    refused = other.what == "map-refused" and other.number > missing.number
    return refused and _OF_CUDA.search(other.library or other.file or "") is not None


def _first_try(missing: Mention, other: Mention) -> bool:
    """Whether torch said after its first try that it does not find its own libraries at all."""
    later = other.what == "missing-library" and other.number > missing.number
    return later and "OSError" in missing.line and ".so.*[0-9] not found" in other.line


def _another_try(mention: Mention, all_of_them: Sequence[Mention]) -> bool:
    """One of several tries for FFmpeg: an earlier one, or what stopped another part, says more."""
    for other in all_of_them:
        if other is mention or other.what not in _LOADING:
            continue
        if other.what == mention.what and _FFMPEG.match(other.library or ""):
            if other.number < mention.number:
                return True
        elif any(name in f"{other.file} {other.line}" for name in _TRIES_FFMPEG):
            return True
    return False


def _says_little(mention: Mention) -> bool:
    if mention.what == "out-of-memory-build":
        return not mention.detail.get("program") and "killed" not in mention.line.lower()
    if "Ptx assembly aborted" in mention.detail.get("said", ""):
        return True
    return mention.what == "jit-build-failed" and (
        mention.detail.get("reason") in (None, "wheel", "command", "Ninja is required")
        and not mention.library
    )


def _same_module(module: str, failure: Mention) -> bool:
    file = (failure.file or failure.detail.get("import", "")).replace("\\", "/")
    stem = file.rsplit("/", 1)[-1].split(".")[0]
    return bool(stem) and module.rsplit(".", 1)[-1] == stem


def _right_below(missing: Mention, failure: Mention) -> bool:
    """In a list of tries: a module that nobody else has, right below why its file did not load."""
    module = missing.detail.get("module", "")
    near = 0 < missing.number - failure.number <= 2
    return near and "." not in module and missing.line.startswith(_ENTRY)


def _with_own_file(mention: Mention, all_of_them: Sequence[Mention]) -> Mention:
    """A failed build, with the file that it did not make and that another process looks for."""
    if mention.what in _BUILDING and mention.file is None:
        for other in all_of_them:
            if other.what == "missing-own-file":
                return replace(mention, file=other.file)
    return mention


def _with_wrapper(mention: Mention, wrappers: Sequence[Mention]) -> Mention:
    for wrapper in wrappers:
        near = wrapper.stream == mention.stream and abs(wrapper.number - mention.number) <= 80
        if near and mention.what not in LISTINGS:
            detail = {"wrapper": wrapper.detail.get("module", "")}
            if mention.detail.get("swallowed") and not mention.detail.get("package"):
                detail["package"] = wrapper.detail.get("package", "")
            return replace(mention, detail={**mention.detail, **detail})
    return mention


def _folded(found: Iterable[Mention]) -> list[Mention]:
    """Each failure once, with all that its repetitions add, and the ranks that told of it."""
    kept: list[Mention] = []
    streams: list[dict[str, None]] = []
    index: dict[tuple[str, ...], list[int]] = {}
    for mention in found:
        key = _key(mention)
        for at in index.get(key, ()):
            if _same_file(kept[at], mention):
                kept[at] = _merged(kept[at], mention)
                streams[at][mention.stream] = None
                break
        else:
            index.setdefault(key, []).append(len(kept))
            kept.append(mention)
            streams.append({mention.stream: None})
    return [_with_ranks(m, names) for m, names in zip(kept, streams, strict=True)]


def _key(mention: Mention) -> tuple[str, ...]:
    detail = mention.detail
    own = ("module", "name", "parameter", "function", "sm", "sort", "said", "operator", "flag",
           "header", "code", "reason", "type", "built_torch")  # fmt: skip
    use = own if not (mention.symbol or mention.library) else ("sort",)
    if mention.what == "stop-iteration-so":
        use = ("function",)
    return (
        mention.what,
        mention.symbol or "",
        (mention.library or "").rsplit("/", 1)[-1],
        mention.version or "" if mention.what == "version-not-found" else "",
        *(detail.get(name, "") for name in use),
    )


def _same_file(one: Mention, other: Mention) -> bool:
    if not one.file or not other.file:
        return True
    return one.file.rsplit("/", 1)[-1] == other.file.rsplit("/", 1)[-1]


def _merged(one: Mention, other: Mention) -> Mention:
    """The first, with what only the second says."""
    better = other if len(other.file or "") > len(one.file or "") else one
    return replace(
        one,
        line=better.line,
        number=better.number if not one.file and other.file else one.number,
        stream=one.stream or other.stream,
        version=one.version or other.version,
        library=one.library or other.library,
        file=better.file,
        detail={**other.detail, **one.detail},
    )


_RANK = lazily(r"(?:\brank[ =]|(?:\b|_)TP)(\d{1,5})\b", re.IGNORECASE)


def _with_ranks(mention: Mention, streams: Mapping[str, None]) -> Mention:
    ranks = sorted({int(m[1]) for name in streams for m in [_RANK.search(name)] if m})
    if len(ranks) < 2:
        return mention
    return replace(mention, detail={**mention.detail, "ranks": _ranges(ranks)})


def _ranges(numbers: Sequence[int]) -> str:
    """``0-3,7`` for 0, 1, 2, 3 and 7."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in parts)
