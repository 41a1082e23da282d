"""What gcc, clang, nvcc and cl say of a source: a name, a header, a standard that is not there."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Claim, Recogniser, by_pattern, plain
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

#: ``x.cu:12:3: error: ...`` of gcc and clang, ``x.cu(12): error: ...`` of nvcc and cl.
_AT = (
    r"(?::\d{1,7}(?::\d{1,5})?:|\(\d{1,7}(?:,\d{1,5})?\)\s?:)\s{0,3}"
    r"(?:(?:fatal|catastrophic|致命) ?)?(?:error|错误|錯誤)\s?(?:C\d{4}|#[\w-]{1,10})?"
    r"\s?[:\uff1a]\s{0,4}"
    r"(?P<said>[^\n]{1,300})"
)
_SOURCE = lazily(r"\.(?:cc|cpp|cxx|c|cuh|cu|hpp|hxx|hip|h|inl|inc|ipp|mm)$", re.IGNORECASE)
_Q = r"['\"`]"
_NAME = r"[A-Za-z_][\w:]{0,120}"
#: A name that is not there, and what it was looked for in.
_MISSING = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        rf"{_Q}(?P<name>{_NAME}){_Q},? is not a member of {_Q}?(?P<space>{_NAME})",
        rf"(?<![\w:])(?P<name>{_NAME}) is not a (?:member|part) of {_Q}?"
        r"(?P<space>(?:std|at|c10|torch)[\w:]{0,100})",
        rf"(?:namespace|class|struct) {_Q}(?:(?:const|class|struct) )?(?P<space>{_NAME})"
        rf"[^'\"\n]{{0,80}}{_Q} has no member (?:named )?{_Q}(?P<name>{_NAME}){_Q}",
        rf"{_Q}(?:const )?(?:(?:class|struct) )?(?P<space>{_NAME})[^'\"\n]{{0,80}}{_Q} has no "
        rf"member named {_Q}(?P<name>{_NAME}){_Q}",
        rf"no (?:member|type|template) named {_Q}(?P<name>{_NAME}){_Q} in (?:namespace )?"
        rf"{_Q}(?P<space>{_NAME})",
        rf"{_Q}(?P<name>{_NAME}){_Q} in (?:namespace|class|struct) {_Q}(?P<space>{_NAME})"
        rf"[^'\"\n]{{0,80}}{_Q} does not name",
        rf"{_Q}(?P<name>{_NAME}){_Q}\s?:?\s?(?:was not declared in this scope|has not been declared"
        r"|does not name a (?:template )?type|identifier not found|undeclared identifier"
        r"|找不到标识符|未声明的标识符|在此作用域中尚未声明)",
        rf"(?:identifier|undeclared identifier|unknown type name|no arguments to) "
        rf"{_Q}(?P<name>{_NAME}){_Q}",
        r"(?<![\w:])(?P<name>(?:AT|TORCH|C10|TH)_\w{1,80}|TH[A-Z]\w{1,80}) (?:was not declared in"
        r"|is undefined|has not been declared|undeclared)",
        rf"{_Q}(?P<name>{_NAME}){_Q}\s?[:\uff1a]\s?不是\s?{_Q}(?P<space>{_NAME}){_Q}\s?的成员",
    )
)  # fmt: skip
_TORCH_SPACE = lazily(r"(?:at|c10|c10d|torch|caffe2)(?:::|$)")
#: TH and THC were written in C: their names begin with these letters and a type or a part.
_TORCH_NAME = lazily(
    r"(?:AT|TORCH|C10|TH)_[A-Z]|THC|TH(?:Tensor|Storage|Float|Double|Half|Long|Int|Byte"
    r"|Char|Short|Bool|Blas|Lapack|Generator|Random|Vector|ArgCheck|Error|Assert)|(?:at|c10|torch)::\w"
)
_OLD_TYPE = lazily(r"at::DeprecatedTypeProperties|DeprecatedTypeProperties")
#: Headers of the system and of the compiler, by who brings them.
_GCC_HEADER = lazily(
    r"/include/c\+\+/(?P<gcc>\d{1,2})|/lib/gcc/[\w.-]{1,60}/(?P<own>\d{1,2})[\d.]{0,8}/include"
)
_GLIBC_HEADER = lazily(r"/include/(?:[\w-]{1,30}-linux-gnu/)?(?:bits|sys|math|stdlib|features)")
_UNREADABLE = lazily(
    r"parameter packs not expanded|identifier .{0,2}_{1,2}(?:builtin|Float|float|Int|Poly|SV|Bf|bf|"
    r"u?int128)|_Float\d|__float128|exception specification is incompatible|expected template-name"
    r"|attribute .{0,3}__malloc__|__builtin_|invalid combination of type specifiers"
    r"|is not a type name",
    re.IGNORECASE,
)
_BROKEN = lazily(r"[a-z]\s{6,}[a-z]")
_TORCH_HEADER = lazily(r"torch[/\\]include[/\\]")
_HEADER = lazily(
    r"(?<![\w./\\+-])(?P<header>[\w./\\+-]{1,200}?)['\"]?"
    r"(?:: No such file| file not found|:\s?没有那个文件)"
    r"|(?:cannot open source file|Cannot open include file:|无法打开包括文件[:\uff1a]"
    r"|无法打开包含文件[:\uff1a]?)"
    rf"\s?{_Q}(?P<header2>[\w./\\+-]{{1,200}})"
    rf"|include file {_Q}(?P<header3>[\w./\\+-]{{1,200}}){_Q} not found",
    re.IGNORECASE,
)  # fmt: skip


@lru_cache(maxsize=1)
def build_names() -> dict[str, Any]:
    """``data/build_names.json``."""
    table: dict[str, Any] = read_table("build_names.json")
    return table


def standard_of(name: str) -> str:
    """The C++ standard that brought a name of namespace std ("17"), "" where not on record."""
    own = name.removeprefix("std::").split("::")[0]
    return next((std for std, names in build_names()["standard"].items() if own in names), "")


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of compilers about sources."""
    return (
        plain(
            "jit-build-failed",
            ("cannot open include file", "无法打开包括文件", "无法打开包含文件"),
            r"(?:Cannot open include file|无法打开包[括含]文件)\s?[:\uff1a]?\s?['\"]"
            r"(?P<header>[\w./\\+-]{1,200})",
            reason="header not found",
        ),
        by_pattern(
            ("was not declared in this scope", "identifier not found", " is undefined",
             "has no member", "no member named", "is not a member of", "is not a part of std",
             "deprecatedtypeproperties"),
            r"was not declared in this scope|identifier not found|\bis undefined\b|has no member"
            r"|no member named|is not a (?:member|part) of|DeprecatedTypeProperties\b[^\n]{0,4}to",
            _without_a_place,
        ),
        *_of_standards(),
        plain(
            "compiler-warned",
            ("not compatible with the compiler pytorch was",),
            r"Your compiler \((?P<compiler>[^()\n]{1,120})\) is not compatible with the compiler "
            r"Pytorch was",
        ),
        plain(
            "feature-needs-target",
            ("requires .target sm_", "requires ptx isa"),
            r"Feature '(?P<feature>[^'\n]{1,120})' requires (?:\.target "
            r"(?P<least>sm_\d{2,3}[a-z]?)|PTX ISA \.version (?P<ptx>\d\.\d))",
        ),
        by_pattern(
            ("error:", "error c", "error #", "error :", "错误:", "错误\uff1a", "錯誤:",
             "錯誤\uff1a"),
            _AT,
            _of_a_source,
        ),
    )  # fmt: skip


def _of_standards() -> tuple[Recogniser, ...]:
    """Flags and checks that tell of a C++ standard or of a compiler's age."""
    return (
        plain(
            "cxx-standard",
            ("-std=", "standard flag"),
            r"(?:unrecognized command[ -]line option|unrecognised option|unknown argument:?"
            r"|无法识别的命令行选项|unsupported option)\s?['\"`]?-{1,2}std=(?:c|gnu)\+\+"
            r"(?P<flag>\d\w)",
        ),
        plain(
            "cxx-standard",
            ("-std=", "for option 'std'", "for option 'std"),
            r"invalid value '(?:c|gnu)\+\+(?P<flag>\d\w)' in '-std"
            r"|Value '(?:c|gnu)\+\+(?P<nvcc>\d\w)' is not defined for option 'std",
        ),
        by_pattern(
            ("later compatible compiler is required", "to compile pytorch", "need c++",
             "less than c++"),
            r"C\+\+(?P<needs>\d\d) or later compatible compiler is required"
            r"|You need C\+\+(?P<needs2>\d\d) to compile"
            r"|C\+\+ versions less than C\+\+(?P<needs3>\d\d) are not supported",
            _needed,
        ),
        plain(
            "gcc-unsupported",
            ("too old version of gcc",),
            r"too old version of (?:GCC|Clang)\. We need (?:GCC|Clang) (?P<least>\d{1,2})",
        ),
        plain(
            "gcc-unsupported",
            ("may be abi-incompatible with pytorch",),
            r"Your compiler \((?P<compiler>[^()\n]{1,60}?)(?: (?P<have>\d[\d.]{0,10}))?\) may be "
            r"ABI-incompatible with PyTorch",
            least="5",
            warning="yes",
        ),
    )  # fmt: skip


def _needed(line: Line, match: re.Match[str]) -> Mention:
    """With the gcc whose headers are named near it, and whether CMake runs the build."""
    near = (line, *line.above(12), *line.below(12))
    detail = {key: text for key, text in match.groupdict().items() if text}
    detail["gcc"] = gcc_near(line)
    detail["cmake"] = "yes" if any("CMakeFiles/" in one.body for one in near) else ""
    return line.mention("cxx-standard", match.start(), detail=detail)


def gcc_near(line: Line) -> str:
    """The gcc whose own headers the lines around name: "4.8.2", "13"; "" where none does."""
    for near in (line, *line.above(8), *line.below(8)):
        found = re.search(
            r"/include/c\+\+/(\d{1,2}(?:\.\d{1,2}){0,2})(?=[/:])"
            r"|/lib/gcc/[\w.-]{1,60}/(\d{1,2}(?:\.\d{1,2}){0,2})/include",
            near.body,
        )
        if found is not None:
            return found[1] or found[2]
    return ""


def _of_a_source(line: Line, match: re.Match[str]) -> Mention | None:
    said = match["said"].strip()
    before = line.body[max(0, match.start() - 260) : match.start()]
    path = re.split(r"[\s'\"`<>|]", before)[-1]
    header = _HEADER.search(said)
    if header is not None and "fatal error:" in line.lower and "no such file" in line.lower:
        return None  # build.py reads it
    if header is not None:
        name = header["header"] or header["header2"] or header["header3"]
        named = {"reason": "header not found", "header": name}
        return line.mention("jit-build-failed", match.start(), detail=named)
    what, detail = classify(said, path)
    if what == "source-error" and not (_SOURCE.search(path) or _GCC_HEADER.search(path)):
        return None
    if what in ("host-headers", "source-error"):
        detail["nvcc"] = nvcc_near(line)
    if what == "header-not-included":
        detail["gcc"] = gcc_near(line)
    if ("unsupported" in said and "version" in said) or (said.startswith("#error") and not detail):
        return None  # read by what the text itself says
    return line.mention(what, match.start(), detail={**detail, "path": path})


def _without_a_place(line: Line, match: re.Match[str]) -> Claim | None:
    """The same words where the file was left out, as in titles: names of torch and std alone."""
    start = max(0, match.start() - 160)
    if re.search(_AT, line.body, re.IGNORECASE):
        return None
    said = line.body[start : match.end() + 160]
    what, detail = classify(said, "")
    if what not in ("torch-name-missing", "cxx-standard", "header-not-included"):
        return None
    return Claim(match.start(), match.end(), line.mention(what, match.start(), detail=detail))


def classify(said: str, path: str) -> tuple[str, dict[str, str]]:
    """(what a message of a compiler tells of, its details): by its words, then by the file."""
    if _OLD_TYPE.search(said):
        return "torch-name-missing", {"name": "DeprecatedTypeProperties", "said": said[:160]}
    # a terminal that breaks lines fills them up with blanks, in the middle of a word
    said = re.sub(r"\s{6,}", "", said) if _BROKEN.search(said) else said
    unreadable = bool(_UNREADABLE.search(said))
    gcc = _GCC_HEADER.search(path)
    if unreadable and (gcc or _GLIBC_HEADER.search(path)):
        version = (gcc["gcc"] or gcc["own"]) if gcc else ""
        return "host-headers", {"gcc": version, "sure": "yes", "said": said[:160]}
    for pattern in _MISSING:
        found = pattern.search(said)
        if found is None:
            continue
        name = found["name"].strip(":")
        space = found.groupdict().get("space") or ""
        if space == "std" or name.startswith("std::"):
            own = name.removeprefix("std::")
            if standard_of(own) or _dropped(own):
                return "cxx-standard", {"name": own, "from": standard_of(own)}
            if by_the_way(own):
                return "header-not-included", by_the_way(own)
        elif not space and by_the_way(name):
            return "header-not-included", by_the_way(name)
        elif _TORCH_SPACE.match(space) or _TORCH_NAME.match(name):
            return "torch-name-missing", {"name": name, "space": space}
        break
    if gcc is not None:
        return "host-headers", {"gcc": gcc["gcc"] or gcc["own"] or "", "said": said[:160]}
    if _TORCH_HEADER.search(path):
        return "source-error", {"said": said[:160], "torch_header": "yes"}
    return "source-error", {"said": said[:160]}


def by_the_way(name: str) -> dict[str, str]:
    """A name whose header others brought along once: the header, and the GCC without that."""
    for gcc, headers in build_names()["included"].items():
        for header, names in headers.items():
            if name in names:
                return {"name": name, "header": header, "since": gcc}
    return {}


def _dropped(name: str) -> bool:
    return any(name in names for names in build_names()["dropped"].values())


def nvcc_near(line: Line) -> str:
    """The nvcc that the lines around run, as a path."""
    for near in (*line.above(8), *line.below(12)):
        found = re.search(r"(?<!\S)['\"]?(/[\w./+-]{1,200}/nvcc)\b", near.body)
        if found:
            return found[1]
    return ""
