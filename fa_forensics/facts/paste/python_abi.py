"""What numpy, pybind11, Cython and Python say of modules that were compiled for others."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame, importing
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern
from fa_forensics.patterns import lazily

_HEX = r"0x[0-9a-f]{1,8}"
_STEP = lazily(r"File \"(?P<path>[^\"\n]{1,500})\", line \d{1,7}")
_SITE = lazily(r"(?:site|dist)-packages[/\\](?P<top>[A-Za-z_]\w{0,80})")
_PYX = lazily(r"(?P<top>[A-Za-z_]\w{0,80})[/.][\w/.]{1,200}\.pyx$")


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of binary interfaces around Python."""
    return (*_of_numpy(), *_of_pybind(), *_of_modules())


def _of_numpy() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("compiled against api version", "compiled against numpy c-api",
             "compiled against abi version", "compiled using numpy", "_array_api not found",
             "numpy.core.multiarray failed", "numpy._core.multiarray failed",
             "numpy.core.umath failed", "numpy is not available", "failed to initialize numpy"),
            rf"module (?:that was )?compiled against (?:NumPy C-)?API version (?P<built>{_HEX}) "
            rf"(?:\(NumPy [\d.]{{1,10}}\) )?but (?:this|the running) version of numpy is "
            rf"(?:\S{{1,10}} )?\(?(?P<found>{_HEX})"
            rf"|module compiled against ABI version (?P<built_abi>{_HEX}) but this version of "
            rf"numpy is (?P<found_abi>{_HEX})"
            r"|A module that was compiled using NumPy (?P<built2>[\w.]{1,10}) cannot be run in"
            r"|_ARRAY_API not found"
            r"|numpy\.(?:_?core)\.(?:multiarray|umath) failed to import"
            r"|(?P<unavailable>Numpy is not available)"
            r"|Failed to initialize NumPy",
            _numpy,
        ),
        by_pattern(
            ("size changed, may indicate binary incompat",),
            r"(?P<owner>[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,4})\.(?P<struct>\w{1,60}) size changed, "
            r"may indicate binary incompatibility"
            r"(?:\. Expected (?P<built_size>\d{1,6}) from C header, got (?P<found_size>\d{1,6}))?",
            _numpy,
        ),
        by_pattern(
            ("has wrong signature (expected", "does not export expected c "),
            r"C (?:function|variable) (?P<owner>[A-Za-z_]\w{0,60})[\w.]{0,200} has wrong signature"
            r"|(?<![\w.])(?P<exporter>[A-Za-z_]\w{0,60})[\w.]{0,200} does not export expected C "
            r"(?:function|variable)",
            _told("cython-signature"),
        ),
    )  # fmt: skip


def _numpy(line: Line, match: re.Match[str]) -> Mention:
    groups = {key: text for key, text in match.groupdict().items() if text}
    owner = groups.pop("owner", "numpy")
    what = "numpy-abi" if owner == "numpy" else "struct-size"
    detail = {**groups, "importer": _importer(line), "said": match[0][:120]}
    if "failed to initialize numpy" in match[0].lower():
        detail["importer"] = "torch"  # its words
        detail["absent"] = "yes" if "no module named" in line.lower else ""
    if what == "struct-size":
        detail["owner"] = owner.split(".")[0]
    return line.mention(what, match.start(), detail=detail)


def _importer(line: Line) -> str:
    """The package that was being imported: the innermost step around that is not numpy's own.

    numpy prints the steps below its warning, Python above an error.
    """
    found = ""
    for below in line.below(60):
        if re.match(r"(?:\w{1,60}\.)*\w{0,60}(?:Error|Exception)\b", below.body):
            break
        top = _top_of(below.body)
        found = top or found
    if found:
        return found
    for above in line.above(12):
        if above.body.startswith("Traceback "):
            break
        top = _top_of(above.body)
        if top:
            return top
    return ""


def last_package(line: Line) -> str:
    """The package of the innermost step above that lies in site-packages, or ""."""
    for above in line.above(16):
        if above.body.startswith("Traceback "):
            break
        top = _top_of(above.body, ())
        if top:
            return top
    return ""


#: Steps that lead to a module of somebody else.
_THROUGH = ("numpy", "importlib", "_pytest", "IPython", "ipykernel")


def _top_of(body: str, left_out: tuple[str, ...] = _THROUGH) -> str:
    """The package of a step of a traceback; "" for Python's own and those left out."""
    step = _STEP.search(body)
    if step is None:
        return ""
    path = step["path"].replace("\\", "/")
    sites = list(_SITE.finditer(path))
    found = sites[-1] if sites else _PYX.match(path)
    top = found["top"] if found else ""
    return "" if top in left_out else top


def tag_shown(line: Line, module: str) -> dict[str, str]:
    """The file of a missing module, as the text around shows it, and whether Python is 3.13t."""
    source, last = line.source, module.rsplit(".", 1)[-1]
    start, end = max(0, line.start - 3_000), line.start + 3_000
    near, text = source.lower[start:end], source.text[start:end]
    found = re.search(
        rf"(?<![\w.-]){re.escape(last)}\.(?:cpython-\w{{2,8}}(?:-[\w-]{{1,40}})?\.so"
        r"|cp3\d{1,2}t?-win\w{1,8}\.pyd)",
        text,
        re.ASCII,
    )
    if found is None:
        return {}
    free = re.search(r"python ?(3\.1[0-9])(?:\.\d{1,2})?t\b|free-?threaded", near)
    told = {"shown": found[0], "free_threaded": "yes" if free else ""}
    if (looked_for := _SUFFIX.search(text)) is not None:
        told["suffix_python"] = f"3.{looked_for['minor'] or looked_for['win']}"
        told["free_threaded"] = "yes" if looked_for["flags"] else told["free_threaded"]
    if re.search(r"(?<![a-z])abi3(?![a-z])", near):
        told["abi3"] = "yes"
    return {**told, "free_python": free[1] or ""} if free else told


#: An ending alone, as EXTENSION_SUFFIXES and EXT_SUFFIX print it: what this Python looks for.
_SUFFIX = lazily(
    r"(?<![\w.)\]*-])\.(?:cpython-3(?P<minor>\d{1,2})(?P<flags>t?)-[\w-]{1,40}\.so"
    r"|cp3(?P<win>\d{1,2})t?-win\w{1,8}\.pyd)",
    re.ASCII,
)


def _of_pybind() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("could not convert default argument", "unregistered type", "to a python type!",
             "unknown base type"),
            r"could not convert default argument"
            r"(?:\s'[\w ]{1,60}:\s?(?P<argument>[\w:<>, ]{1,100})')?[^\n]{0,200}"
            r"|Unregistered type\s?:\s?(?P<type>[^\n]{1,200})"
            r"|type ['\"](?P<derived>[^'\"\n]{1,200})['\"] referenced unknown base type "
            r"['\"](?P<base>[^'\"\n]{1,200})['\"]"
            r"|(?<!referenced )unknown base type \"(?P<own_base>[^'\"\n]{1,200})\""
            r"|Unable to convert function return value to a Python type!",
            _told("type-not-registered"),
        ),
        by_pattern(
            ("unable to cast python instance",),
            r"Unable to cast Python instance(?: of type <?(?:class )?['\"]?(?P<python>[\w.]{1,200})"
            r"['\"]?>?)? to C\+\+ (?:r-?value )?type\s?"
            r"(?:['\"](?P<cpp>[^'\"\n]{1,200})['\"])?",
            _told("type-not-cast"),
        ),
        by_pattern(
            ("already registered", "already been registered", "already defined",
             "only a single torch_library"),
            r"(?:generic_type: |(?<![\w.]))(?:type|cannot initialize type) "
            r"\"(?P<type>[^\"\n]{1,100})\"[^\n]{0,40}?(?P<how>already (?:registered|defined))"
            r"|Only a single TORCH_LIBRARY can be used to register the namespace "
            r"(?P<namespace>\w{1,60})"
            r"|Tried to register an operator \((?P<operator>[^()\n]{1,200})"
            r"|Custom class with name (?P<custom>[\w.]{1,200}) is already registered",
            _registered,
        ),
    )  # fmt: skip


def _internals(line: Line) -> str:
    """Whether the text names a version of pybind11's internals: they are part of its key."""
    return "yes" if line.source.holds(("pybind11_internals_v", "pybind11 internals")) else ""


def _told(what: str) -> Build:
    def build(line: Line, match: re.Match[str]) -> Mention:
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        path, _, _ = frame(line)
        if "own_base" in groups:
            groups["base"] = groups.pop("own_base")
        detail = {**groups, "frame": path, "import": importing(line), "said": match[0][:160]}
        detail["internals"] = _internals(line)
        return line.mention(what, match.start(), detail=detail)

    return build


#: ``was registered at /path/torch_binding.cpp:103; latest registration was registered at ...``.
_REGISTERED_AT = lazily(r"registered at ([^\s;:]{1,300}):\d")


#: The other framework: paddle, and no file of torch is named so.
_PADDLE = lazily(r"(?i)(?<![a-z])paddle(?:paddle)?(?:-gpu)?(?![a-z])")


_TORCHS_BASE = lazily(r"unknown base type \"((?:torch|at|c10|c10d)::[\w:]{1,100})\"")


def _registered(line: Line, match: re.Match[str]) -> Mention:
    groups = {key: text.strip() for key, text in match.groupdict().items() if text}
    steps = [above.body for above in line.above(6)]
    torchs = any(re.search(r"\bimport torch\b(?!\.)|torch/__init__\.py", body) for body in steps)
    path, _, _ = frame(line)
    detail = {**groups, "frame": path, "torchs": "yes" if torchs else ""}
    words = " ".join((line.body, *steps))
    if _PADDLE.search(words) and re.search(r"(?i)(?<![\w-])(?:py)?torch(?!\w)", words):
        detail["paddle"] = "yes"
    # Beside it, a base class of torch's own that is unknown: the tables are two.
    base = _TORCHS_BASE.search(" ".join((line.body, *steps, *(b.body for b in line.below(4)))))
    detail["base"] = base[1] if base is not None else ""
    detail["internals"] = _internals(line)
    near = " ".join((line.body[match.start() :], *(below.body for below in line.below(4))))
    for key, found in zip(("first", "second"), _REGISTERED_AT.findall(near[:3000]), strict=False):
        detail[key] = found
    return line.mention("already-registered", match.start(), detail=detail)


#: ``python3.13t main.py``, ``free-threaded``, ``--disable-gil``, ``Python 3.14t``.
_WITHOUT_GIL = lazily(
    r"\bpython ?(?P<minor>3\.1[3-9])(?:\.\d{1,2})?t\b|\bfree-?threaded|--disable-gil"
    r"|\bcp(?P<tag>31[3-9])t\b"
)
#: "not free-threaded", "and not 3.13t", "without --disable-gil", "I do not use python3.13t".
_NOT_SO = lazily(
    r"(?:\b(?:not|no|non|never|without|neither|nor)\b|n['\u2019]t\b)[ -]?(?:[a-z-]{1,9} ){0,2}\Z"
)


def _torchs_own(line: Line, match: re.Match[str]) -> Mention:
    """torch/__init__.py: torch._C is the directory of that name and not the compiled module."""
    text = line.source.lower
    all_told = _WITHOUT_GIL.finditer(text[:100_000])
    told = (f for f in all_told if not _NOT_SO.search(text[max(0, f.start() - 40) : f.start()]))
    free = next(told, None)
    path, _, _ = frame(line)
    minor = (free["minor"] or (free["tag"] and f"3.{free['tag'][1:]}") or "") if free else ""
    detail = {"frame": path, "free_threaded": "yes" if free else "", "free_python": minor}
    return line.mention("torch-c-folder", match.start(), detail=detail)


def _of_modules() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("failed without raising an exception", "raised unreported exception"),
            r"initialization of (?P<module>[\w.]{1,100}) (?:failed without raising an exception"
            r"|raised unreported exception)",
            _told("module-init"),
        ),
        by_pattern(
            ("bad magic number in",),
            r"bad magic number in ['\"](?P<module>[\w.]{1,200})['\"]"
            r"(?::\s?b?['\"](?P<magic>[^'\"\n]{1,40}))?",
            _told("bad-magic"),
        ),
        by_pattern(
            ("interpreter change detected", "more than once per process", "in subinterpreters",
             "loaded into one interpreter per process"),
            r"Interpreter change detected"
            r"|cannot load module more than once per process"
            r"|module (?P<module>[\w.]{1,100}) does not support loading in subinterpreters",
            _told("one-interpreter"),
        ),
        by_pattern(
            ("fatal python error: pythreadstate_get", "fatal python error: pyeval_savethread",
             "fatal python error: gc object already tracked",
             "fatal python error: pyinterpreterstate"),
            r"Fatal Python error: (?:PyThreadState_Get|PyEval_SaveThread|PyInterpreterState_Get"
            r"|GC object already tracked)[^\n]{0,160}",
            _told("two-pythons"),
        ),
        by_pattern(
            ("load pytorch c extensions",),
            r"Failed to load PyTorch C extensions",
            _torchs_own,
        ),
    )  # fmt: skip
