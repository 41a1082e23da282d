"""What a person says of a failure in passing, as the message of a program that it stands for.

``libcudart.so.13 required``, ``what provides __nvJitLinkAddData_12_1?``: a name that is known and
a word of lack in one sentence. The sentence is read as the loader's, Python's or CUDA's own message
would be, and the mention tells so (``detail["told"]``), for its answer cannot be as sure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from fa_forensics.facts.library_names import compiled_modules
from fa_forensics.facts.owner import OWN, owner_of, owner_of_library
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.python_names import python_spans
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

#: Longer texts (characters) are logs, and what they say in passing is no report; so are more lines.
_SHORT, _LINES = 3_000, 40


@dataclass(frozen=True, slots=True)
class Told:
    """``message`` is what a program would have printed; ``start`` where the sentence begins."""

    message: str
    start: int


def told_in(text: str) -> Told | None:
    """The first sentence of a short text that tells of a failure; None where none does."""
    if len(text) > _SHORT:
        return None
    if (alone := _alone(text.strip(" \t\n'\"`"))) is not None:
        return Told(alone, 0)
    for start, sentence in itertools.islice(_sentences(text), _LINES):
        if _NO_REPORT.search(sentence) is not None:
            continue
        if sentence.endswith("?") and _ANSWERED_NO.match(text, start + len(sentence)):
            continue
        for rule in _RULES:
            message = rule(sentence)
            if message:
                return Told(message, start)
    return None


def _alone(text: str) -> str | None:
    """The message that a library's name, or a version of one, stands for where it is all."""
    library = _LIBRARY.fullmatch(text)
    if library is not None and library["name"]:
        return f"ImportError: {text}: cannot open shared object file: No such file or directory"
    tag = _TAG.fullmatch(text)
    return f"version `{tag['family'].upper()}_{tag['number']}' not found" if tag else None


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for part in _ENDS.split(text):
        yield at, part
        at = text.find(part, at) + len(part)


#: A full stop within ``libX.so.12`` or ``1.2`` has no space behind it.
_ENDS = lazily(r"(?<=[.!?;。！？；])\s+|\n+|(?<=[。！？；])")  # noqa: RUF001
_ANSWERED_NO = lazily(r"\s{0,3}no\b", re.IGNORECASE)
#: A failure that is over, only feared, or advice.
_NO_REPORT = lazily(
    r"(?:\b|(?=n't))(?:fix(?:es|ed)|resolve[sd]|solve[sd]|no longer|any ?more|used to|to avoid"
    r"|in case|make sure|ensure|would|could(?! not\b|n't)|might|ignor\w{1,4}|allow\w{0,4}"
    r"|without any|(?:n't|not|no|never|nothing(?: is)?) (?:an? |the |any |even )?"
    r"(?:missing|undefined|unresolved|lacking|too old|outdated)"
    r"|works (?:fine|well|great|now)|install(?:s|ed)? (?:fine|successfully)|is (?:fine|ok|okay)"
    r"|as expected)\b",
    re.IGNORECASE,
)
_LACK = (
    r"missing|not (?:be )?(?:found|located|loaded|available|present|exist(?:ing)?|there)"
    r"|(?:can ?not|can't|could not|couldn't|unable to|fail(?:s|ed)? to|doesn't|does not) "
    r"(?:be )?(?:find|found|open|opened|load|loaded|locate|located|exist)"
    r"|no such|absent|where is|where to (?:get|find)"
    r"|找不到|缺少|缺失|没有找到|无法(?:加载|打开|找到)"
)
#: What something asks for is missing where the sentence tells of a failure, too.
_WANTED = r"requires?|needs?|wants?|looks? for|looking for|asks? for|depends on|expects?"
_NEEDED = r"required|needed|expected"
_TROUBLE = r"(?:issues?|errors?|problems?|failures?|trouble)(?! (?:handl|messag|cod|log|report))"
_LIBRARY = lazily(
    r"(?<![\w.+-])(?P<name>lib[A-Za-z][\w+-]{0,60}\.so(?:\.\d{1,4}){0,4})(?![\w-]|\.\w)"
    r"|(?<![\w./+-])(?P<stem>lib[a-z][\w+-]{1,60})(?![\w./+-])"
)
_NEAR = lazily(
    rf"(?:{_LACK}|\b{_TROUBLE}(?: with| in| from| about)?)"
    r"[^\w]{0,3}(?:the )?\W{0,2}\Z",
    re.IGNORECASE,
)
_WANTED_NEAR = lazily(rf"\b(?:{_WANTED})[^\w]{{0,3}}(?:the )?\W{{0,2}}\Z", re.IGNORECASE)
_AFTER = lazily(
    r"\W{0,3}(?:(?:was|is|are|were|library|file|still) ){0,3}"
    rf"(?:{_LACK}|{_NEEDED}|{_TROUBLE})\b",
    re.IGNORECASE,
)
_FAILURE = lazily(rf"\b(?:{_TROUBLE}|{_LACK}|fail(?:s|ed|ing)|but)\b", re.IGNORECASE)


def _is_missed(sentence: str, start: int, end: int) -> bool:
    """Whether a sentence says of what stands there that it is missing."""
    before = sentence[max(0, start - 60) : start]
    if _ASKED.match(sentence):
        return _LOOKED_FOR.search(before) is not None
    if _WANTED_NEAR.search(before) and not is_denied(before, len(before)):
        denied = re.search(r"\b(?:not|n't|never)\s\w{2,9}\s?\Z", before.rstrip()) is not None
        return not denied and _FAILURE.search(sentence) is not None
    return bool(_NEAR.search(before) or _AFTER.match(sentence, end))


#: "does vllm need libnccl.so.2?" tells of nothing missing, "which package provides it?" does.
_ASKED = lazily(r"\s*(?:do|does|is|are|can|should|what|which|where|who|how)\b[^?]{0,300}\?", re.I)
_LOOKED_FOR = lazily(
    r"\b(?:what|which|where|who|how)\b.{0,60}\b(?:provides?|find|get|has|have|contains?|installs?"
    r"|brings?|comes? from|is)\s{1,3}(?:the )?\W{0,2}\Z",
    re.IGNORECASE,
)


_NOT_OPENED = "cannot open shared object file: No such file or directory"
#: ``is expecting libcudart.so.10.1 instead of libcudart.so.10.2``: one library, two numbers.
_IN_PLACE = lazily(
    r"\b(?:expect|want|look|need|requir|search|ask|try)\w{0,5} (?:for |to (?:load|find) )?[`'\"]?"
    r"(?P<wanted>(?P<stem>lib[A-Za-z]\w{1,40})\.so\.\d{1,3}(?:\.\d{1,3})?)[`'\"]?,?\s{1,3}"
    r"(?:instead of|rather than|(?:but|and|while)\b[^\n]{0,30}?)\s{0,3}[`'\"]?(?P=stem)\.so\.\d",
    re.IGNORECASE,
)
_STEP = lazily(r"\bfrom [A-Za-z][\w.]{1,60} import \w{1,60}|\bimport [A-Za-z][\w.]{1,60}")


def _library(sentence: str) -> str:
    """``libcudart.so.13 required``, ``missing libcublas.so.11``, ``libcudart not found``."""
    if (other := _IN_PLACE.search(sentence)) is not None:
        step = "".join(f"    {one[0]}\n" for one in [_STEP.search(sentence)] if one is not None)
        return f"{step}ImportError: {other['wanted']}: {_NOT_OPENED}"
    for found in itertools.islice(_LIBRARY.finditer(sentence), 6):
        name = found["name"] or f"{found['stem']}.so"
        if found["name"] is None and owner_of_library(name) is None:
            continue
        near = _is_missed(sentence, found.start(), found.end())
        if near or (found["name"] and re.search(_LACK, sentence, re.IGNORECASE)):
            return f"ImportError: {name}: cannot open shared object file: No such file or directory"
    return ""


_SYMBOL = lazily(
    r"(?<![\w:.@/-])(?P<name>(?:[A-Za-z_]\w{0,60}::){0,6}~?[A-Za-z_]\w{2,200})"
    r"(?P<rest>\([^()\n`]{0,300}\))?"
)
_NO_NAME = lazily(
    r"\b(?:undefined(?! (?:behaviou?r|order|value|variable|index))|unresolved"
    r"|not (?:exported|defined)|symbols? (?:is |was |are )?"
    r"(?:missing|not found|absent)|missing symbols?|no longer (?:has|exports))\b"
    r"|\b(?:what|which|who|does|is)\b[^?\n]{0,60}\b(?:provides?|export(?:s|ed)?|has|have|defines?"
    r"|owns?|contains?)\b"
    r"|未定义|缺少符号",
    re.IGNORECASE,
)
#: Error codes and types of the same libraries are no functions that a loader looks for.
_CODES = lazily(r"(?:cuda|hip)(?:Error|Success)|(?:CUDA|HIP|CUBLAS|CUDNN|NCCL)_|(?:cuda|hip)\w*_t$")


def _symbol(sentence: str) -> str:
    """``libnccl.so.2 undefined ncclCommRegister``, ``SetDevice(int) not exported``."""
    if _NO_NAME.search(sentence) is None:
        return ""
    for found in itertools.islice(_SYMBOL.finditer(sentence), 60):
        name = found["name"]
        plain = len(name) < 6 or (name.lower() == name and "_" not in name)
        if plain and "::" not in name:
            continue
        if _CODES.match(name) or name.startswith(("PyTorch", "Python", "PyPI", "Pytorch")):
            continue
        readable = name + (found["rest"] or "") if "::" in name else ""
        if name.startswith("Py") and python_spans(f"_{name}") and not python_spans(name):
            name = f"_{name}"
        if owner_of("_Z" if readable else name, None, readable or name) not in (OWN, "libc"):
            return f"undefined symbol: {readable or name}"
    return ""


_TAG = lazily(
    r"(?<![\w.])(?P<family>GLIBC|GLIBCXX|CXXABI)[ _-]{0,2}v?"
    r"(?P<number>\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)(?![\w.]\d)",
    re.IGNORECASE,
)


def _version_tag(sentence: str) -> str:
    """``GLIBC 2.32 missing``, ``needs glibc 2.32``."""
    found = _TAG.search(sentence)
    if found is None:
        return ""
    if _is_missed(sentence, found.start(), found.end()):
        return f"version `{found['family'].upper()}_{found['number']}' not found"
    return ""


_STATIC_TLS = lazily(r"\bstatic TLS\b", re.IGNORECASE)
_EXEC_STACK = lazily(r"\b(?:executable stack|execstack)\b", re.IGNORECASE)
_BITS = lazily(r"\bELFCLASS(?P<bits>32|64)\b|\bwrong ELF class\b", re.IGNORECASE)


def _of_a_file(sentence: str) -> str:
    """The loader's words for a file, with a library's name anywhere beside them."""
    for pattern, message in (
        (_STATIC_TLS, "cannot allocate memory in static TLS block"),
        (_EXEC_STACK, "cannot enable executable stack as shared object requires: Invalid argument"),
        (_BITS, "wrong ELF class: ELFCLASS"),
    ):
        found = pattern.search(sentence)
        if found is None:
            continue
        library = _LIBRARY.search(sentence)
        name = "" if library is None else library["name"] or f"{library['stem']}.so"
        if name and message.endswith("CLASS"):
            return f"ImportError: {name}: {message}{found['bits'] or '32'}"
        if name:
            return f"ImportError: {name}: {message}"
    return ""


_AMPERE = lazily(
    r"\b(?:only (?:supports?|works? (?:on|with)|for)|requires?|needs?) Ampere\b", re.IGNORECASE
)
_FLASH = lazily(r"\bflash[ _-]?att(?:n|ention)", re.IGNORECASE)
_SM = lazily(r"\bsm_?(?P<sm>\d{2,3})[af]?\b", re.IGNORECASE)
_BY_TORCH = lazily(
    r"\b(?:not (?:yet )?(?:supported|compatible)|unsupported|incompatible) "
    r"(?:by|in|with|on|under) (?:\S+ ){0,3}?(?:py)?torch\b"
    r"|\b(?:py)?torch\b[^,;\n]{0,30}\b(?:doesn't|does not|don't) (?:yet )?support\b"
    r"|torch[^,;\n]{0,20}不支持",
    re.IGNORECASE,
)


def _gpu(sentence: str) -> str:
    """``flash attention says only supports Ampere``, ``sm_120 not supported by torch``."""
    if _AMPERE.search(sentence) and _FLASH.search(sentence):
        return "RuntimeError: FlashAttention only supports Ampere GPUs or newer."
    sm = _SM.search(sentence)
    if sm is not None and _BY_TORCH.search(sentence):
        return (
            f"The GPU with CUDA capability sm_{sm['sm']} is not compatible with the current "
            "PyTorch installation."
        )
    return ""


_DRIVER = lazily(
    r"\bdrivers?\b[^.;\n]{0,40}\b(?:too old|outdated|insufficient|not new enough)\b"
    r"|\b(?:too old|outdated|insufficient)\b[^.;\n]{0,12}\bdrivers?\b"
    r"|驱动(?:版本)?(?:太|过)(?:旧|低)",
    re.IGNORECASE,
)


def _driver(sentence: str) -> str:
    if _DRIVER.search(sentence) is None:
        return ""
    return "CUDA driver version is insufficient for CUDA runtime version"


_MODULE = lazily(
    r"(?<![\w./-])(?P<name>[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{0,60}){0,4})(?![\w/-]|\.\w)"
)
_NOT_THERE = lazily(
    r"\W{0,3}(?:(?:is|was|module|extension|still) ){0,3}(?:missing|not found|(?:can ?not|can't) be "
    r"found|does not exist|doesn't exist)\b",
    re.IGNORECASE,
)
_MISSING = lazily(
    r"\b(?:missing|(?:can ?not|can't|could not|couldn't) find)\W{1,3}\Z", re.IGNORECASE
)


def _module(sentence: str) -> str:
    """``vllm._C missing``, ``apex fused_layer_norm_cuda not found``."""
    for found in itertools.islice(_MODULE.finditer(sentence), 60):
        name = found["name"]
        if name not in compiled_modules() and not name.endswith("._C"):
            continue
        before = sentence[max(0, found.start() - 40) : found.start()]
        if _NOT_THERE.match(sentence, found.end()) or _MISSING.search(before):
            return f"ModuleNotFoundError: No module named '{name}'"
    return ""


_TWO_MACHINES = (
    lazily(r"\b(?:x86[_-]64|amd64)\b", re.IGNORECASE),
    lazily(r"\b(?:aarch64|arm64)\b", re.IGNORECASE),
)
_OF_A_FILE = lazily(r"\.so\b|\b(?:wheel|binary|library|extension)\b", re.IGNORECASE)
_RUNS_ON = lazily(
    r"\b(?:(?:I'm|I am|we are|running|machine is|host is|system is) (?:on )?(?:an? )?"
    r"|(?:can't|can ?not|won't|does not|doesn't|not) (?:be )?(?:load(?:ed)?|run|work) (?:on|under) "
    r"(?:an? )?)(?P<machine>x86[_-]64|amd64|aarch64|arm64)\b",
    re.IGNORECASE,
)
_SO = lazily(r"(?<![\w])[\w./-]{1,200}\.so\b")


def _machine(sentence: str) -> str:
    """``the .so was compiled for x86_64 but I'm on aarch64``."""
    two = all(pattern.search(sentence) for pattern in _TWO_MACHINES)
    if not two or not _OF_A_FILE.search(sentence) or _RUNS_ON.search(sentence) is None:
        return ""
    file = _SO.search(sentence)
    return f"OSError: {file[0] if file else 'extension.so'}: Exec format error"


_RULES: tuple[Callable[[str], str], ...] = (
    _of_a_file,
    _symbol,
    _version_tag,
    _machine,
    _module,
    _library,
    _gpu,
    _driver,
)
