"""Texts of packages that look for their compiled part themselves, and of what hides an error."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.paste import entry_points
from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.broken_lines import where_whole
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.loader_symbols import LINK_TIME
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.own_library import told_by_set_up
from fa_forensics.facts.paste.python_abi import last_package
from fa_forensics.facts.paste.recogniser import Build, Claim, Recogniser, by_pattern, plain
from fa_forensics.facts.paste.system_around import program_around, user_of
from fa_forensics.facts.paste.tokens import path_before, symbol_at
from fa_forensics.patterns import lazily


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of xformers, kernels, bitsandbytes, cuDNN's loader, wrappers and crashes."""
    return (*_of_libraries(), *_of_packages(), *_of_wrappers(), *_of_crashes(), *_of_others())


def _of_libraries() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("could not load library", "unable to load any of"),
            r"(?:Could not load library|Unable to load any of)\s+\{?(?P<library>lib[\w.+-]{1,100})",
            where_whole(_could_not_load),
        ),
        plain(
            "torchcodec-banner", ("could not load libtorchcodec",), r"Could not load libtorchcodec"
        ),
        by_pattern(
            ("is not found or cannot be loaded",),
            r"Library (?P<library>lib[\w.+-]{1,100}) is not found or cannot be loaded",
            _not_opened,
        ),
        by_pattern(
            (".so.*[0-9] not found in",),
            r"(?P<library>lib[\w+]{1,40}\.so)\.\*\[0-9\] not found in",
            _not_preloaded,
        ),
        plain(
            "could-not-load-library",
            ("cannot load symbol",),
            r"Cannot load symbol (?P<symbol>\w{1,200})",
        ),
        plain(
            "several-cuda-runtimes",
            ("found duplicate",),
            r"Found duplicate (?P<names>\S{0,3}libcudart[^\n]{1,200})",
        ),
    )


#: What the loader said to torch's first try.
_TRIED = lazily(r"OSError: (lib(?:cu|nv|nccl)\w{0,30}\.so\.\d{1,2}): cannot open")


def _not_preloaded(line: Line, match: re.Match[str]) -> Mention:
    """torch looks through sys.path for the wheel of a library that the loader did not find."""
    tried = [found[1] for above in line.above(40) if (found := _TRIED.search(above.body))]
    detail = {"import": "torch", **({"tried": tried[0]} if tried else {})}
    return line.mention("missing-library", match.start(), library=match["library"], detail=detail)


def _not_opened(line: Line, match: re.Match[str]) -> Mention:
    """CTranslate2 opens CUDA's libraries by name."""
    detail = {"by": "ctranslate2", "used_by": user_of(line)}
    library = match["library"].rstrip(".")
    return line.mention("missing-library", match.start(), library=library, detail=detail)


_LINK_TIME = lazily(LINK_TIME, re.IGNORECASE)


def _could_not_load(line: Line, match: re.Match[str]) -> Claim:
    """cuDNN loads its parts itself; its message carries the loader's, which says why."""
    body = line.body
    end = match.end()
    symbol = version = file = None
    detail = {}
    why = re.compile(r"\.?\s{0,3}(?:Error|Reason)?:\s{0,3}").match(body, end)
    at = body.lower().find("undefined symbol", end, end + 2_000)
    linked = _LINK_TIME.search(body, end, end + 6_000)
    if at >= 0:
        file = path_before(body, at)
        found = symbol_at(line, at + len("undefined symbol"))
        if found is not None:
            symbol, version, end = found.name, found.version, found.end
    elif linked is not None:
        file = path_before(body, linked.start())
        symbol, version, end = linked["symbol"], linked["version"], linked.end()
    elif why is not None:
        detail["reason"] = body[why.end() : why.end() + 300]
        sought = re.search(r"([^\s:]{1,300}\.so[.\d]{0,20}): cannot open", detail["reason"])
        detail["sought"] = sought[1] if sought else ""
        detail.update(program_around(line, detail["sought"] or match["library"].rstrip(".")))
        end = len(body)
    mention = line.mention(
        "could-not-load-library",
        match.start(),
        symbol=symbol,
        version=version,
        library=match["library"].rstrip("."),
        file=file,
        detail=detail,
    )
    return Claim(match.start(), end, mention)


_BUILT = lazily(
    r"(?P<what>PyTorch|Python)\s{1,12}(?P<built>[\w.+]{1,40})(?: with CUDA (?P<cuda>\w{1,6}))?"
    r"\s{0,3}\(you have (?P<here>[\w.+]{1,40})\)"
)


#: A line of ``pip list``, and a path of Windows.
_LISTED_TORCH = lazily(r"\s{0,8}torch(?:\s{2,40}|==)(?P<version>\d[\w.+]{0,40})\s*$")
_MAC = lazily(
    r"\bMac\s?(?:OS|book|mini|Studio)|\bMac M\d|\bApple (?:Silicon|M\d)|\bDarwin\b|/Users/\w",
    re.IGNORECASE | re.ASCII,
)
_DRIVE = lazily(r"(?<![\w/])[A-Z]:[\\/]{1,2}\w")


def _xformers(line: Line, match: re.Match[str]) -> Mention:
    detail: dict[str, str] = {}
    texts = [line.body[match.end() :], *(below.body for below in line.below(8))]
    for text in texts:
        for found in _BUILT.finditer(text):
            name = "torch" if found["what"] == "PyTorch" else "python"
            # 2.0..0 is a slip of whoever typed it off, and no version that pip takes.
            detail.setdefault(f"built_{name}", found["built"].replace("..", "."))
            detail.setdefault(f"here_{name}", found["here"])
            if found["cuda"]:
                detail.setdefault("built_cuda", found["cuda"])
        if "are not found" in text or "is not found" in text:
            break
    near = [line.raw, *(o.raw for o in line.above(25)), *(o.raw for o in line.below(25))]
    listed = next((f for text in near if (f := _LISTED_TORCH.match(text))), None)
    detail["listed_torch"] = listed["version"] if listed else ""
    detail["os"] = "Windows" if any(_DRIVE.search(text) for text in near) else ""
    if not detail["os"] and any(_MAC.search(text) for text in near):
        detail["os"] = "macOS"
    return line.mention("xformers-banner", match.start(), file="xformers/_C.so", detail=detail)


def _variant(line: Line, match: re.Match[str]) -> Mention:
    texts = [line.body, *(below.body for below in line.below(30))]
    name = re.compile(r"(?:for this system )?in\s+([\w./-]{1,100})").search(line.body, match.end())
    detail = {"kernel": name[1].rstrip(".,") if name else ""}
    variants: dict[str, None] = {}
    for text in texts:
        variants.update(
            dict.fromkeys(re.findall(r"\b(?:torch\d{2,3}|cann|metal)-[a-z0-9_.-]{3,60}", text))
        )
        found = re.search(
            r"Torch version \((?P<built>[\d.]{1,8})\) does not match environment Torch version "
            r"\((?P<here>[\d.]{1,8})\)",
            text,
        )
        if found:
            detail.setdefault("built_torch", found["built"])
            detail.setdefault("here_torch", found["here"])
        if len(variants) > 60:
            break
    detail["variants"] = " ".join(variants)
    return line.mention("kernels-variant", match.start(), detail=detail)


def _no_such_variant(line: Line, match: re.Match[str]) -> Mention:
    """``Kernel at path `...` does not have build: torch210-cxx11-cu126-aarch64-linux``."""
    found = re.search(r"models--(?P<owner>[\w.-]{1,60}?)--(?P<name>[\w.-]{1,80})", match["path"])
    detail = {
        "kernel": f"{found['owner']}/{found['name']}" if found else "",
        "wanted": match["wanted"].strip(" `'\".,"),
    }
    return line.mention("kernels-variant", match.start(), detail=detail)


#: What a build of bitsandbytes from source is told.
_BACKEND = lazily(r"COMPUTE_BACKEND=(cuda|hip|cpu|mps)\b")
_OWN = r"libbitsandbytes_(?:rocm|cuda)\w{1,30}\.so"


def _bitsandbytes(line: Line, match: re.Match[str]) -> Mention:
    """With whether the library for the CPU, which every wheel holds, is missing beside."""
    near = (line, *line.below(6), *line.above(6))
    lost = any("bitsandbytes_cpu.so: cannot open" in other.body for other in near)
    detail = {"package": "bitsandbytes", "cpu": "missing" if lost else ""}
    built = _BACKEND.search(line.source.text) if "compute_backend" in line.source.lower else None
    detail["built"] = built[1] if built is not None else ""
    detail |= told_by_set_up(near)
    file = match["file"] or match["at"] or match["prose"] or match["named"]
    return line.mention("cuda-setup-failed", match.start(), file=file, detail=detail)


def _of_packages() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("can't load c++/cuda extensions", "xformers was built for"),
            r"xFormers can't load C\+\+/CUDA extensions|xFormers was built for:?\s{0,4}(?=PyTorch)",
            _xformers,
        ),
        plain(
            "xformers-no-operator",
            ("no operator found for", "wasn't build with cuda", "wasn't built with cuda"),
            r"No operator found for `?(?P<operator>memory_efficient_attention\w{0,40})|"
            r"xFormers wasn't buil[dt] with CUDA support",
        ),
        plain(
            "stop-iteration-so",
            ("could not find lib", "shared library with base name", "_py.so not found",
             "shared object file for transformer engine", "meta package installed"),
            r"Could not find shared object file for Transformer Engine(?: (?P<of_te>\w{1,20}) lib)?"
            r"|(?P<empty>Found empty [`'\"]?transformer[-_]engine[`'\"]? meta package installed)"
            r"|AssertionError: Could not find (?P<lib>lib[\w+-]{1,80}\.so)(?![.\w])"
            r"|Shared library with base name '(?P<base>\w{1,60})' not found"
            r"|File (?P<own>\w{1,80}_py\.so) not found",
        ),
        by_pattern(("build variant",), r"Cannot find a build variant", _variant),
        by_pattern(
            ("does not have build:", "does not have one of build variants"),
            r"Kernel at path [`'\"]?(?P<path>[^`'\"\n]{1,400}?)[`'\"]? does not have "
            r"(?:one of )?build(?: variant)?s?:\s?(?P<wanted>[^\n]{3,400})",
            _no_such_variant,
        ),
        by_pattern(
            ("cuda setup failed", "compiled without gpu support", "cuda binary not found",
             "rocm binary not found",
             "find the bitsandbytes cuda binary", "find the bitsandbytes rocm binary",
             "required library version not found",
             "defaulting to libbitsandbytes", "libbitsandbytes_rocm", "libbitsandbytes_cuda"),
            r"Required library version not found: (?:libbitsandbytes_\w{1,30}\.so)?"
            r"|Defaulting to libbitsandbytes_cpu"
            r"|CUDA Setup failed despite (?:GPU|CUDA) being available"
            r"|installed version of bitsandbytes was compiled without GPU support"
            r"|Configured (?:CUDA|ROCm) binary not found at (?P<file>\S{1,400})"
            r"|Could not find the bitsandbytes (?:CUDA|ROCm) binary"
            r"(?: at (?:\w{0,10}Path\()?['\"]?(?P<at>[^\s'\")]{1,400}))?"
            r"|(?:non-?existent|does(?:n't| not) exist|\bmissing|(?:can(?:'t|not)|not) find|"
            r"look(?:s|ing)? for|search(?:es|ing)? for)\b[^\n]{0,60}?(?P<prose>" + _OWN + r")\b"
            r"|(?P<named>" + _OWN + r")\b[`'\"]?,?\s(?:which\s)?"
            r"(?:does(?:n't| not) exist|is missing|was not found|is not there|not found)",
            _bitsandbytes,
        ),
    )  # fmt: skip


def _of_wrappers() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("because of the following error",),
            r"Failed to import (?P<module>[\w.]{1,200}) because of the following error"
            r"(?: \(look up to see its traceback\))?:?",
            _wrapper,
        ),
        by_pattern(
            ("failed to import from", "could not import module", "failed to import module"),
            r"(?:Failed to import (?:from|module)|(?<!PyCapsule_Import )Could not import module)"
            r"\s+['\"`]?(?P<module>[\w.]{1,200})",
            _wrapper,
        ),
    )


def _wrapper(line: Line, match: re.Match[str]) -> Mention:
    path, _, _ = frame(line)
    detail = {"module": match["module"].rstrip("."), "frame": path}
    return line.mention("import-wrapper", match.start(), detail=detail)


def _of_crashes() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("segmentation fault", "sigsegv", "exitcode: -11", "exit code: -11", "exit code 139",
             "signal 11", "段错误"),
            r"Segmentation fault|\bSIGSEGV\b|exit ?code:? -11\b|exit code 139\b"
            r"|(?<!due to )signal 11\b|段错误",
            _crash("segfault"),
        ),
        by_pattern(
            ("aborted", "sigabrt", "exitcode: -6", "已放弃", "exit code 134", "signal 6"),
            r"Aborted\s?(?:\(core dumped\)|!|$)|\bSIGABRT\b|exit ?code:? -6\b|exit code 134\b"
            r"|signal 6\b|已放弃",
            _crash("abort"),
        ),
        by_pattern(
            ("double free or corruption", "free(): invalid", "munmap_chunk()", "corrupted size vs",
             "malloc(): ", "terminate called after"),
            r"double free or corruption|free\(\): invalid (?:pointer|size)|munmap_chunk\(\): "
            r"invalid pointer"
            r"|corrupted size vs\. prev_size|malloc\(\): [a-z ]{1,40}|terminate called after "
            r"throwing",
            _crash("abort"),
        ),
        by_pattern(
            ("illegal instruction", "illegal hardware instruction"),
            r"(?<!an )\bIllegal (?:hardware )?instruction\b(?! was)(?:\s?\(core dumped\))?",
            _crash("cpu-level"),
        ),
    )  # fmt: skip


def _crash(what: str) -> Build:
    def build(line: Line, match: re.Match[str]) -> Mention:
        texts = [
            line.body,
            *(above.body for above in line.above(10)),
            *(b.body for b in line.below(12)),
        ]
        near = "\n".join(texts).lower()
        pybind = "yes" if "pybind11" in near else ""
        detail = {"pybind11": pybind, "said": match[0]}
        found = re.search(r'file "([^"\n]{1,300})", line \d+ in ', near)
        detail["frame"] = found[1] if found else ""
        thrown = re.search(r"what\(\):\s{1,4}([^\n]{1,200})", near)
        detail["thrown"] = thrown[1] if thrown else ""
        return line.mention(what, match.start(), detail=detail)

    return build


def _of_package(what: str) -> Build:
    """A failure, with the package whose step of the traceback is the last one."""

    def build(line: Line, match: re.Match[str]) -> Mention:
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        return line.mention(what, match.start(), detail={**groups, "importer": last_package(line)})

    return build


_LINUX_FILE = lazily(r"([\w+-]{0,80}?lib[\w+-]{1,80}\.so)\b|([\w+-]{1,80}\.so)['\"]")


def _winerror(line: Line, match: re.Match[str]) -> Mention:
    """With the library for Linux that was to be loaded, where a step above names one."""
    mention = _of_package("windows")(line, match)
    assert isinstance(mention, Mention)
    for other in (line, *line.above(6)):
        found = _LINUX_FILE.search(other.body) if ".so" in other.body else None
        if found is not None:
            return replace(mention, library=found[1] or found[2])
        if other.body.startswith("Traceback "):
            break
    return mention


def _did_not_load(line: Line, match: re.Match[str]) -> Mention:
    """With whether torch built the module where it runs."""
    detail = {key: text for key, text in match.groupdict().items() if text}
    if any("_import_module_from_library" in above.body for above in line.above(6)):
        detail["jit"] = "yes"
    return line.mention("windows", match.start(), detail=detail)


def _of_others() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("dll load failed", "dll initialization routine"),
            r"DLL load failed(?: while importing (?P<module>[\w.]{1,100}))?(?::\s?"
            r"(?P<reason>[^\n]{1,120}))?",
            _did_not_load,
        ),
        by_pattern(
            ("[winerror ", "win32 application", "win32 应用程序"),
            r"\[WinError (?P<code>126|127|182|193|1114|1920|1455|998)\]\s?(?P<reason>[^\n]{1,200})"
            r"|is not a valid Win32 application|Win32 应用程序",
            _winerror,
        ),
        plain(
            "windows",
            (".pyd", ".dll", "could not find module"),
            r"(?:Could not locate|Could not find module|Error loading|not find|cannot find|找不到)"
            r"\s+(?!DGL C|cudnn\w{0,40}64_|cublas\w{0,2}64_)"
            r"['\"]?(?P<library>[^'\"\n]{1,300}?\.(?:dll|pyd|so)\b)",
        ),
        plain(
            "windows-build",
            ("lnk2001", "lnk2019", "lnk1181", "lnk1104", "lnk1120"),
            r"(?:error )?(?P<code>LNK(?:2001|2019|1181|1104|1120))\s?:"
            r"(?:[^'\"\n]{1,60}['\"](?P<input>[^'\"\n]{1,200}\.(?:lib|obj|pyd|dll|exp|exe))['\"])?",
            sort="link",
        ),
        *entry_points.recognisers(),
        plain(
            "nccl",
            ("nccl error", "ncclunhandledcudaerror", "ncclsystemerror", "nccl warn cuda failure",
             "ncclinternalerror", "ncclinvalidusage"),
            r"NCCL error[^\n]{0,120}|nccl(?:UnhandledCudaError|SystemError|InternalError"
            r"|InvalidUsage)"
            r"|NCCL WARN Cuda failure[^\n]{0,120}",
        ),
    )  # fmt: skip
