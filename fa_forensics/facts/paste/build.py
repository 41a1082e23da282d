"""What pip, setup.py, ninja and the compilers say when an extension does not get built."""

from __future__ import annotations

import re

from fa_forensics.facts.paste import (
    build_stops,
    compile_errors,
    install_errors,
    uv_wheels,
    without_code,
)
from fa_forensics.facts.paste.build_torch import toolkit_mismatch, undeclared
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Claim, Recogniser, by_pattern, plain
from fa_forensics.facts.paste.tokens import path_before, symbol_at
from fa_forensics.facts.paste.version_forms import VERSION


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of a build."""
    return (
        *_of_linkers(),
        *_of_checks(),
        *_of_compilers(),
        *_of_pip(),
        *uv_wheels.recognisers(),
        *build_stops.recognisers(),
        *install_errors.recognisers(),
        *compile_errors.recognisers(),
        *without_code.recognisers(),
    )


def _of_linkers() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("undefined reference to",),
            r"undefined references? to\s+(?:symbol\s+)?(?P<quote>['\"`])?",
            _reference,
        ),
        by_pattern(
            ("ld.lld", "ld64.lld", "mold:", "error: undefined symbol", "wasm-ld"),
            # "runtime error: undefined symbol" is the loader's message, in a program's words.
            r"(?:^\s{0,8}|(?:\bld|lld|mold):\s?)(?:error|fatal):\s?"
            r"undefined symbol:\s?",
            _reference,
        ),
        by_pattern(
            ("undefined symbols for architecture",),
            r"Undefined symbols for architecture (?P<arch>\w{1,20}):?",
            _macho_reference,
        ),
        by_pattern(
            ("未定义的引用", "未定義的參考", "未定义参考到", "定義されていない参照", "неопредел"),
            r"(?:对\s?(?P<quote>['\"`])|(?:未定义参考到|未定義的參考到|ссылка на)\s?['\"`]?)",
            _reference,
        ),
        by_pattern(
            ("undefined ",),
            r"undefined (?=(?:[A-Za-z_]\w*::|_{1,2}Z)\S{2,})",
            _when_linking,
        ),
        by_pattern(
            ("cannot find -l", "找不到 -l", "unable to find library -l", "not found for -l"),
            r"(?:cannot find|找不到|unable to find library|library not found for)\s+-l"
            r"(?P<library>[\w.+:-]{1,100})",
            _cannot_find,
        ),
        plain(
            "jit-build-failed",
            ("hidden symbol",),
            r"hidden symbol [`'\"]?(?P<symbol>[^\s`'\"]{1,400})['\"]? in (?P<file>\S{1,300}) is "
            r"referenced by DSO",
            reason="hidden symbol",
        ),
    )  # fmt: skip


def _reference(line: Line, match: re.Match[str]) -> Claim | None:
    symbol = symbol_at(line, match.end())
    if symbol is None:
        return None
    before = line.body[: match.start()].lower()
    linker = next((n for n in ("nvlink", "ld.lld", "mold", "gold", "collect2") if n in before), "")
    file = path_before(line.body, match.start())
    caller = ""
    for above in line.above(3):
        found = re.search(r"in function\s+[`'\"]([^`'\"\n]{1,500})['\"`]", above.body)
        if found:
            caller = found[1]
            break
    detail = {"linker": linker, "caller": caller, "import": ""}
    mention = line.mention(
        "linker-undefined",
        match.start(),
        symbol=symbol.name,
        version=symbol.version,
        file=file,
        detail=detail,
    )
    return Claim(match.start(), symbol.end, mention)


def _macho_reference(line: Line, match: re.Match[str]) -> Mention:
    for below in line.below(1):
        found = re.match(r"\"([^\"\n]{1,2000})\", referenced from", below.body)
        if found:
            return line.mention(
                "linker-undefined", match.start(), symbol=found[1], detail={"os": "macOS"}
            )
    return line.mention("linker-undefined", match.start(), detail={"os": "macOS"})


def _when_linking(line: Line, match: re.Match[str]) -> Claim | None:
    symbol = symbol_at(line, match.end())
    if symbol is None:
        return None
    what = "linker-undefined" if "link" in line.lower else "undefined-symbol"
    mention = line.mention(what, match.start(), symbol=symbol.name, version=symbol.version)
    return Claim(match.start(), symbol.end, mention)


def _cannot_find(line: Line, match: re.Match[str]) -> Mention:
    name = match["library"].lstrip(":").rstrip(":.")
    library = name if ".so" in name or name.endswith(".a") else f"lib{name}.so"
    detail = {"reason": "library not found", "flag": f"-l{name}"}
    for near in (line, *line.above(6), *line.below(3)):
        made = re.search(r"(?:FAILED: |-o )(?:\S{0,200}/)?(\w{1,60})\.so\b", near.body)
        if made is not None:
            detail["made"] = made[1]
            break
    return line.mention("jit-build-failed", match.start(), library=library, detail=detail)


def _of_checks() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("mismatches the version that was used",),
            r"CUDA version \((?:(?P<toolkit>[\d.]{1,10})|%s)\) mismatches the version that "
            r"was used",
            toolkit_mismatch,
        ),
        plain(
            "build-cuda-mismatch",
            ("version used to compile pytorch binaries",),
            r"does not match the version used to compile Pytorch binaries"
            r"(?:\.\s{1,4}Pytorch binaries were compiled with Cuda "
            r"(?P<torch_cuda>\d{1,2}\.\d{1,2}))?",
            by="setup.py",
        ),
        plain(
            "build-cuda-mismatch",
            ("does not match the version torch was compiled with",),
            r"Installed CUDA version (?P<toolkit>[\d.]{1,10}) does not match the version torch "
            r"was compiled with "
            r"(?P<torch_cuda>\d[\d.]{0,9})(?! but since the APIs are compatible)(?![\d.])",
            by="deepspeed",
        ),
        plain(
            "cuda-home-missing",
            ("cuda_home", "nvcc: not found", "nvcc: command not found", "bin/nvcc",
             "nvcc was not found", "nvcc not found"),
            r"CUDA_HOME (?:environment variable is not set|does not exist|is not set)"
            r"|nvcc: (?:command )?not found|nvcc (?:was )?not found"
            r"|No such file or directory:? '?(?P<path>[^'\"\s]{0,200}bin/nvcc)'?",
        ),
        plain(
            "gcc-unsupported",
            ("than the minimum required version by cuda", "than the maximum required version by"),
            r"installed version of (?P<compiler>\S{1,40}) \((?P<have>[\d.]{1,12})\) is "
            r"(?:less|greater) than the (?:minimum|maximum) required version by CUDA "
            r"(?P<toolkit>\d{1,2}\.\d{1,2})"
            r"[^\n]{0,200}?\((?P<range>[<>=][^()\n]{1,60})\)",
        ),
        plain(
            "gcc-unsupported",
            ("unsupported gnu version", "unsupported clang version",
                "is not supported by the current cuda"),
            r"unsupported (?P<compiler>GNU|clang) version!\s?gcc versions later than "
            r"(?P<newest>\d{1,3})"
            r"|unsupported (?P<compiler2>GNU|clang) version",
        ),
        plain(
            "gcc-unsupported",
            ("requires at least gcc", "requires at least g++"),
            r"requires at least (?:g\+\+|gcc) (?P<least>[\d.]{1,6})",
        ),
    )  # fmt: skip


def _killed(line: Line, match: re.Match[str]) -> Mention:
    words = line.body[max(0, match.start() - 60) : match.start()].split()
    detail = {"program": words[-1].strip("'\"`") if words else "", "signal": match["signal"]}
    if match["signal"] == "11":
        for near in (line, *line.above(6), *line.below(8)):
            source = re.search(r"[\w.+-]{1,120}\.cu\b", near.body)
            if source is not None:
                detail["source"] = source[0]
                break
        return line.mention("compiler-crashed", match.start(), detail=detail)
    return line.mention("out-of-memory-build", match.start(), detail=detail)


def _header(line: Line, match: re.Match[str]) -> Mention:
    detail = {
        "reason": "header not found",
        "header": match["header"],
        "nvcc": compile_errors.nvcc_near(line),
    }
    return line.mention("jit-build-failed", match.start(), detail=detail)


def _of_compilers() -> tuple[Recogniser, ...]:
    return (
        plain(
            "out-of-memory-build",
            ("killed signal terminated program", "internal compiler error: killed"),
            r"(?:Killed signal terminated program (?P<program>\w{1,30})|internal compiler error: "
            r"Killed)",
        ),
        plain(
            "out-of-memory-build",
            ("killed  ",),
            r"\bKilled\s{2,40}[^\n]{0,200}?\b(?P<program>nvcc|cc1plus|cicc|ptxas|cudafe\+\+|g\+\+"
            r"|c\+\+)",
        ),
        by_pattern(
            ("died due to signal",),
            r"died due to signal (?P<signal>9|11)\b",
            _killed,
        ),
        plain(
            "out-of-memory-build",
            ("max_jobs",),
            r"(?:set|reduce|lower|limit|with) (?:the )?(?:environment variable )?MAX_JOBS",
        ),
        by_pattern(
            ("no such file or directory",),
            r"fatal error:\s+(?P<header>[\w./+-]{1,200}):\s+No such file or directory",
            _header,
        ),
        plain(
            "jit-build-failed",
            ("error building extension",),
            r"Error building extension\s+['\"`]?(?P<extension>[\w.-]{1,100})",
        ),
        plain(
            "jit-build-failed",
            ("ninja: build stopped", "ninja is required", "'ninja', '-v'", "ninja -v"),
            r"ninja: build stopped|(?P<reason>Ninja is required) to load C\+\+ extensions"
            r"|Command '\['ninja', '-v'",
        ),
        plain(
            "jit-build-failed",
            ("unable to jit load",),
            r"Unable to JIT load the (?P<extension>\w{1,60}) op",
        ),
        plain(
            "jit-build-failed",
            ("failed building wheel for", "failed building editable", "failed to build",
             "failed to download and build"),
            r"Failed (?:building (?:wheel|editable) for|to (?:download and )?build)\s+"
            r"(?!installable|CUDA\b|the\b|extension)"
            r"['\"`]?(?P<package>[A-Za-z][\w.-]{1,60})",
            reason="wheel",
        ),
    )  # fmt: skip


def _unsupported_wheel(line: Line, match: re.Match[str]) -> Mention:
    words = line.body[max(0, match.start() - 400) : match.start()].split()
    file = words[-1].strip("'\"`") if words else ""
    return line.mention("wheel-not-supported", match.start(), file=file)


def _pin_broken(line: Line, match: re.Match[str]) -> Mention:
    """pip: ``vllm 0.6.3 requires torch==2.4.0, but you have torch 2.5.1 which is incompatible``."""
    words = line.body[max(0, match.start() - 120) : match.start()].split()
    detail = {
        "package": words[-2] if len(words) > 1 else "",
        "release": words[-1] if len(words) > 1 else "",
        "wants": match["wants"].strip(),
        "has": match["has"],
    }
    return line.mention("torch-pin-broken", match.start(), detail=detail)


def _no_match(line: Line, match: re.Match[str]) -> Mention:
    """pip, with what it does see: ``(from versions: 2.2.0, 2.2.1)``."""
    listed = re.search(r"from versions: [^)\n]{0,4000}", line.body[match.end() :])
    detail = {"requirement": match["requirement"], "listed": listed[0] if listed else ""}
    return line.mention("no-matching-distribution", match.start(), detail=detail)


def _of_pip() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("declare it as a build dependency", "error likely indicates that"),
            r"(?P<hint>likely indicates that\s{1,4})?['\"`]?(?P<package>[A-Za-z][^\s'\"`]{1,200})"
            r"['\"`]?\s{1,4}depends on\s{1,4}['\"`]?(?P<module>[A-Za-z]\w{0,60})['\"`]?,?"
            r"(?P<rest>\s{1,4}but\s{1,4}does(?:n't| not)\s{1,4}declare)?",
            undeclared,
        ),
        by_pattern(
            ("is not a supported wheel",),
            r"is not a supported wheel on this platform",
            _unsupported_wheel,
        ),
        by_pattern(
            ("but you have torch ",),
            r"requires torch(?P<wants>[<>=!~][^,;\n]{1,60})(?:; [^,\n]{1,80})?, but you have torch "
            rf"(?P<has>{VERSION})",
            _pin_broken,
        ),
        by_pattern(
            ("no matching distribution found", "could not find a version that satisfies"),
            r"(?:No matching distribution found for|Could not find a version that satisfies the "
            r"requirement)\s+"
            r"(?P<requirement>[A-Za-z][\w.\[\]=<>!~+,-]{0,100})",
            _no_match,
        ),
    )
