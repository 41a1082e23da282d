"""What Python and pybind11 say: modules, names, arguments."""

from __future__ import annotations

import re

from fa_forensics.facts.paste import build_torch, empty_link, python_abi
from fa_forensics.facts.paste.around import frame, importing, package_file_near, source_tree
from fa_forensics.facts.paste.build_around import package_above
from fa_forensics.facts.paste.imported_from import imported_from
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

#: Python 3.13 names the file that stands in the way.
_RENAME = lazily(r"consider renaming '([^'\n]{1,300})'")
_NAME = r"[A-Za-z_]\w{0,99}"


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of import machinery, calls and pybind11."""
    return (*_of_modules(), *_of_names(), *_of_calls(), *_of_versions(), *python_abi.recognisers())


def _of_modules() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("no module named",),
            r"(?P<error>ModuleNotFoundError|ImportError)?[:(]{0,2}[\s'\"]{0,3}No module named:?\s+"
            r"['\"`]?(?P<module>[A-Za-z_][\w.-]{0,200})['\"`]?",
            _no_module,
        ),
        by_pattern(
            (
                "seems to be not installed",
                "were not found in your environment",
                "package metadata was found for",
            ),
            r"No package metadata was found for:?\s{1,4}(?:The )?['\"`]?"
            r"(?P<module3>[A-Za-z][\w.-]{0,60}\w)"
            r"|package (?P<module>[A-Za-z_]\w{0,60}) seems to be not installed"
            r"|packages that were not found in your environment: (?P<module2>[A-Za-z_]\w{0,60})",
            _wanted,
        ),
        by_pattern(
            ("module export function", "dynamic module does not define"),
            r"dynamic module does not define (?P<sort>module export|init) function"
            r"(?:\s?\(?['\"`]?(?P<function>[\w.]{1,100})['\"`]?\)?)?",
            _no_init,
        ),
        by_pattern(
            ("python version mismatch",),
            r"Python version mismatch: module was compiled for (?:version |Python )?"
            r"(?P<built>[\d.]{1,10}),? "
            r"(?:but the interpreter version is incompatible: |while the interpreter is running "
            r"version )"
            r"(?P<running>\d{1,2}(?:\.\d{1,3}){0,2})",
            _mismatch,
        ),
        by_pattern(
            ("is not defined",),
            r"name ['\"`](?P<module>_C|[A-Za-z]\w{0,60}_(?:cuda|ext|ops|C)(?:_\w{1,20})?)['\"`] "
            r"is not defined",
            _swallowed,
        ),
        by_pattern(
            ("stopiteration",),
            r"StopIteration\b",
            _stop_iteration,
        ),
    )


#: ``Setting up PyTorch plugin "upfirdn2d_plugin"``, ``Building extension module fused_adam``.
_PLUGIN = lazily(
    r"(?:PyTorch plugin|extension module|Failed to build CUDA kernels for)\s[\"']?"
    r"(?P<name>[A-Za-z_]\w{1,60})"
)


def _mismatch(line: Line, match: re.Match[str]) -> Mention:
    """With the module that torch builds at run time, where a line above names it."""
    detail = {key: text for key, text in match.groupdict().items() if text}
    found = (_PLUGIN.search(above.body) for above in line.above(12))
    plugin = next((f["name"] for f in found if f is not None), "")
    detail |= {"plugin": plugin, "import": importing(line)}
    return line.mention("python-mismatch", match.start(), detail=detail)


def _no_module(line: Line, match: re.Match[str]) -> Mention:
    module = match["module"].rstrip(".")
    path, function, _ = frame(line)
    detail = {
        "module": module,
        "import": importing(line),
        "frame": path,
        "function": function,
        "prose": "" if match["error"] or line.lower.startswith("no module") else "yes",
        "sudo": build_torch.under_sudo(line) if module.startswith("torch") else "",
    }
    if "." in module:
        detail["tree"] = source_tree(line, module.split(".")[0])
    detail.update(python_abi.tag_shown(line, module))
    if "is not a package" in line.lower:
        detail["not_a_package"] = "yes"
    return line.mention("no-module", match.start(), detail=detail)


def _no_init(line: Line, match: re.Match[str]) -> Mention:
    path, _, _ = frame(line)
    detail = {
        "function": match["function"] or "",
        "python2": "yes" if match["sort"].lower() == "init" else "",
        "import": importing(line),
        "frame": path,
        "nothing_linked": empty_link.linked_from_nothing(line, match["function"] or ""),
    }
    return line.mention("no-init", match.start(), detail=detail)


def _wanted(line: Line, match: re.Match[str]) -> Mention:
    """A package that another one looked for and did not find."""
    path, function, _ = frame(line)
    detail = {
        "module": match["module"] or match["module2"] or match["module3"].replace("-", "_"),
        "frame": path, "function": function, "looked_for": "yes",
        "metadata": "yes" if match["module3"] else "",
    }  # fmt: skip
    return line.mention("no-module", match.start(), detail=detail)


#: ``(Caught error: No module named 'vllm._C')``: the error that was caught stands beside.
_TOLD = lazily(r"No module named ['\"`][\w.]{1,100}\._?[A-Za-z]")


def _swallowed(line: Line, match: re.Match[str]) -> Mention | None:
    """The import of a compiled module failed in a try block; its use is what is seen.

    Not where the text says what was caught: the name is then only what the module's functions
    are called by.
    """
    if any(_TOLD.search(near.body) for near in (line, *line.below(3))):
        return None
    path, function, code = frame(line)
    detail = {"module": match["module"], "frame": path, "function": function, "code": code,
              "package": "" if path else package_above(line), "swallowed": "yes"}  # fmt: skip
    told = re.escape(f"No module named '{match['module']}'")
    if any(re.search(told, near.body) for near in (*line.above(40), *line.below(40))):
        detail["told"] = "yes"
    return line.mention("no-module", match.start(), detail=detail)


def _stop_iteration(line: Line, match: re.Match[str]) -> Mention | None:
    """Only where a package looked for its .so files with ``next(….glob(…))``."""
    for text in (line.body, *(a.body for a in line.above(8)), *(b.body for b in line.below(2))):
        at = text.find("glob(")
        near = text[max(0, at - 200) : at + 300]
        if at >= 0 and ("next(" in near) and re.search(r"\.so|extension|so_", near):
            path, function, _ = frame(line)
            detail = {"code": near.strip()[:200], "frame": path, "function": function}
            return line.mention("stop-iteration-so", match.start(), detail=detail)
    return None


def _of_names() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("cannot import name",),
            rf"cannot import name\s+['\"`]?(?P<name>{_NAME})['\"`]?"
            r"(?:\s+from\s+(?P<partly>partially initialized module\s)?['\"`]"
            r"(?P<module>[\w.]{1,200})['\"`])?"
            r"(?:\s+\(most likely due to a circular import\))?"
            r"(?:\s+\((?P<where>[^()\n]{1,300})\))?",
            _named("missing-attribute", sort="import"),
        ),
        by_pattern(
            ("has no attribute",),
            rf"(?P<partly>partially initialized )?module\s+['\"`](?P<module>[\w.]{{1,200}})['\"`] "
            rf"has no "
            rf"attribute\s+['\"`](?P<name>{_NAME})['\"`]",
            _named("missing-attribute", sort="module"),
        ),
        by_pattern(
            ("has no attribute",),
            rf"['\"`]_OpNamespace['\"`]\s+['\"`](?P<module>\w{{1,100}})['\"`] object has no "
            rf"attribute\s+"
            rf"['\"`](?P<name>{_NAME})['\"`]",
            _named("missing-attribute", sort="operator"),
        ),
        by_pattern(
            ("has no attribute",),
            rf"(?:type object |Can't get attribute )?['\"`](?P<module>[\w.]{{1,200}})['\"`] "
            rf"(?:object )?has no "
            rf"attribute\s+['\"`](?P<name>{_NAME})['\"`]",
            _named("missing-attribute", sort="object"),
        ),
        plain(
            "operator-missing",
            ("load custom c++ ops",),
            r"Couldn't load custom C\+\+ ops",
            module="torchvision",
        ),
        by_pattern(
            (
                "operator ",
                "could not run",
                "unknown builtin op",
                "no such operator",
                "does not exist",
            ),
            r"(?:(?<![\w:])(?P<operator>\w{1,60}::[\w.]{1,80}) does not exist"
            r"|(?:Unknown builtin op:|No such operator)\s{1,4}(?P<unknown>\w{1,60}::\w{1,80})"
            r"|Could not run '(?P<ran>\w{1,60}::[\w.]{1,80})' with arguments from the "
            r"'(?P<backend>\w{1,30})' backend)",
            _operator,
        ),
    )


def _named(what: str, **fixed: str) -> Build:
    def build(line: Line, match: re.Match[str]) -> Mention:
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        if "partly" in groups or "circular import" in line.lower:
            groups["partly"] = "yes"
        path, function, code = frame(line)
        detail = {**fixed, **groups, "frame": path, "function": function, "code": code}
        if fixed.get("sort") == "import" and "module" not in groups:
            detail |= imported_from(line, match.start(), groups["name"])
        if (renamed := _RENAME.search(line.body)) is not None:
            detail["where"] = renamed[1]
        detail |= {} if path else {"near": package_file_near(line)}
        return line.mention(what, match.start(), detail=detail)

    return build


def _operator(line: Line, match: re.Match[str]) -> Mention:
    name = match["operator"] or match["ran"] or match["unknown"]
    path = frame(line)[0]
    installed = path if "-packages/" in path else ""
    detail = {"operator": name, "backend": match["backend"] or "", "frame": installed}
    return line.mention("operator-missing", match.start(), detail=detail)


def _of_calls() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("unexpected keyword argument", "invalid keyword argument"),
            r"(?:got an unexpected|is an invalid) "
            rf"keyword argument\s+['\"`]?(?P<parameter>{_NAME})['\"`]?",
            _keyword,
        ),
        by_pattern(
            ("required positional argument", "required keyword-only argument"),
            r"missing (?P<count>\d{1,2}) required "
            rf"(?:positional|keyword-only) arguments?:?\s?['\"`]?(?P<parameter>{_NAME})?",
            _arguments("missing"),
        ),
        by_pattern(
            ("positional arguments but", "positional argument but"),
            r"takes (?:from \d{1,3} to )?(?P<takes>\d{1,3}) positional arguments? "
            r"but (?P<given>\d{1,3})",
            _arguments("too many"),
        ),
        by_pattern(
            ("multiple values for",),
            r"got multiple values for (?:keyword )?argument\s{1,9}['\"`]?"
            rf"(?P<parameter>{_NAME})",
            _arguments("twice"),
        ),
        by_pattern(
            (
                "argument(s) but received",
                "is missing value for argument",
                "unknown keyword argument",
            ),
            r"(?P<operator>\w{1,80}::[\w.]{1,80})\(\) (?:expected at most (?P<takes>\d{1,3}) "
            r"argument\(s\) but received (?P<given>\d{1,3})"
            rf"|is missing value for argument '(?P<missing>{_NAME})')"
            rf"|Unknown keyword argument '(?P<parameter>{_NAME})' for operator "
            r"'(?P<operator2>\w{1,80}::[\w.]{1,80})'",
            _schema,
        ),
        by_pattern(
            ("incompatible function arguments", "incompatible constructor arguments"),
            r"incompatible (?:function|constructor) arguments",
            _pybind,
        ),
        by_pattern(
            ("not enough values to unpack", "too many values to unpack"),
            r"(?:not enough|too many) values to unpack \(expected (?P<expected>\d{1,2})"
            r"(?:, got (?P<got>\d{1,2}))?",
            _unpack,
        ),
    )


def _keyword(line: Line, match: re.Match[str]) -> Mention:
    path, function, code = frame(line)
    detail = {
        "function": function_before(line, match.start()),
        "parameter": match["parameter"],
        "frame": path,
        "in": function,
        "code": code,
    }
    return line.mention("unexpected-keyword", match.start(), detail=detail)


_FUNCTION = lazily(r"([A-Za-z_][\w.<>]{0,100})(?:\(\))?:?[\s'\"`]{0,3}$", re.A)


def function_before(line: Line, place: int) -> str:
    """The function whose name ends right before a place: ``f`` of ``f() got an unexpected``."""
    found = _FUNCTION.search(line.body[max(0, place - 120) : place])
    word = found[1] if found else ""
    return "" if word.lower().endswith("error") else word


def _arguments(sort: str) -> Build:
    def build(line: Line, match: re.Match[str]) -> Mention:
        path, function, code = frame(line)
        groups = {key: text for key, text in match.groupdict().items() if text}
        detail = {
            "function": function_before(line, match.start()),
            **groups,
            "sort": sort,
            "frame": path,
            "in": function,
            "code": code,
        }
        return line.mention("wrong-arguments", match.start(), detail=detail)

    return build


def _schema(line: Line, match: re.Match[str]) -> Mention:
    """torch's dispatcher compares a call with what the compiled library registered."""
    path, _, _ = frame(line)
    groups = {key: text for key, text in match.groupdict().items() if text}
    detail = {**groups, "sort": "schema", "frame": path or package_file_near(line)}
    detail["operator"] = groups.get("operator") or groups.get("operator2", "")
    return line.mention("wrong-arguments", match.start(), detail=detail)


def _pybind(line: Line, match: re.Match[str]) -> Mention:
    supported: list[str] = []
    invoked = ""
    for below in line.below(12):
        body = below.body
        if re.match(r"\d{1,2}\.\s", body):
            supported.append(body[:600])
        elif body.startswith("Invoked with"):
            invoked = body[13:][:600].strip()
            break
    path, _, code = frame(line)
    function = function_before(line, match.start())
    if f"{function}(" not in code:
        said = (above.body for above in line.above(3) if f"{function}(" in above.body)
        code = next(said, code)[:400]
    one = re.search(r"(?:supported:\s{0,10})(\d\.\s.{1,600}?)(?:\s{2,}Invoked|$)", line.body)
    if one and not supported:
        supported.append(one[1])
    detail = {
        "function": function,
        "supported": " | ".join(supported)[:1_500],
        "invoked": invoked,
        "frame": path,
        "code": code,
    }
    return line.mention("pybind-arguments", match.start(), detail=detail)


def _unpack(line: Line, match: re.Match[str]) -> Mention | None:
    path, function, code = frame(line)
    if not re.search(r"flash_?attn|flash_attention|_cuda\.|_C\.|torch\.ops", f"{path} {code}"):
        return None
    groups = {key: text for key, text in match.groupdict().items() if text}
    detail = {**groups, "sort": "results", "frame": path, "in": function, "code": code}
    return line.mention("wrong-arguments", match.start(), detail=detail)


def _of_versions() -> tuple[Recogniser, ...]:
    return (
        plain(
            "package-too-old",
            ("package version to be greater or equal",),
            r"you need (?P<package>[\w-]{1,60}) package version to be greater or equal (?:than|to) "
            r"(?P<least>[\d.]{1,20}?)\.?\s[^\n]{0,120}?version (?P<found>\d[\w.+-]{0,39})",
        ),
        plain(
            "cuda-majors-differ",
            ("different cuda major versions", "different cuda versions"),
            r"PyTorch and (?P<package>\w{1,30}) were compiled with different CUDA (?:major "
            r")?versions\.?\s?"
            r"(?:PyTorch has CUDA Version[= ]?(?P<torch_cuda>[\d.]{1,6}) (?:and|whereas) "
            r"\w{1,30} has CUDA Version[= ]?(?P<package_cuda>[\d.]{1,6}))?",
        ),
    )  # fmt: skip
