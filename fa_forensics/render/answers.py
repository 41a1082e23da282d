"""One answer of ``why`` as text: five lines that always come in the same order."""

from __future__ import annotations

from fa_forensics.render.releases import release_parts
from fa_forensics.render.style import Paint, escape, flow, pieces, sentence, short_path
from fa_forensics.report import Answer

#: The kinds of the JSON contract in words.
KIND_WORDS = {
    "symbol-drift": "a name that changed between torch releases",
    "cxx11-abi": "a name built for the other std::string flavour",
    "missing-library": "a library that the loader does not find",
    "versioned-symbol": "a name of a library that changes from version to version",
    "gpu-arch": "no code for this GPU in the file",
    "gpu-driver": "the NVIDIA driver",
    "glibc": "a newer glibc than this system has",
    "libstdcxx": "a newer libstdc++ than this system has",
    "damaged-file": "a damaged file",
    "wrong-machine": "a file for another machine",
    "python-abi": "the Python interpreter",
    "import-order": "the order of imports",
    "own-symbol": "a name that the package itself should define",
    "elf-loader": "the dynamic loader refuses the file",
    "wrong-torch": "another torch is loaded than expected",
    "rocm": "a ROCm name",
    "api-change": "a changed Python interface",
    "windows": "a Windows library",
    "unrecognised": "not recognised",
}

#: Codes that say more than the kind does.
CODE_WORDS = {
    "FA507": "a GPU or a call that the package itself refuses",
    "FA880": "a compiled module that is not there",
    "FA882": "Python files and a compiled module that do not match",
    "FA883": "a build that stopped in the compiler or the linker",
    "FA884": "a build that saw another torch or toolkit",
    "FA885": "a build that ran out of memory",
    "FA886": "a message that hides the loader's own error",
    "FA887": "no prebuilt file for this system",
    "FA888": "a crash without an error of the loader",
    "FA890": "a file that the kernel refuses to map",
    "FA891": "a module that was built for another numpy",
}

#: How many other signatures are shown; the most telling stand first.
SHOWN = 6

_WIDTH = 12


def answer_lines(answer: Answer, where: str | None, paint: Paint, width: int) -> list[str]:
    """What it is, whose it is, who exports it, what that means here, what to type; then more.

    ``where`` is what to call the place that was looked in: "here" is an environment, "there"
    a torch that was named; None for none.
    """
    rows = [
        ("what", _what(answer, where)),
        ("owner", [escape(answer.owner) if answer.owner else "not known"]),
        ("exported by", _exported(answer, where)),
        ("means", pieces(escape(_means(answer)))),
    ]
    lines: list[str] = []
    for label, parts in rows:
        lines += _row(label, parts, paint, width)
    commands = [escape(command) for command in answer.help] or ["no command is known to help"]
    for number, command in enumerate(commands):
        lines += _row("type" if number == 0 else "", [command], paint, width)
    for other in answer.overloads[:SHOWN]:
        parts = [escape(other.demangled), escape(other.symbol)]
        releases = _releases(answer.owner, other.exported_by, other.interval)
        listed = [f"in {releases[0]}", *releases[1:]] if releases else []
        if other.change:
            listed = [*listed[:-1], listed[-1] + ":"] if listed else []
            listed += pieces(escape(other.change))
        lines += _row("see also", list(dict.fromkeys(parts)) + listed, paint, width)
    if len(answer.overloads) > SHOWN:
        more = f"{len(answer.overloads) - SHOWN} more of that name: --format json lists them"
        lines += _row("", pieces(more), paint, width)
    for note in answer.notes:
        indent = " " * _WIDTH
        text = sentence(note, width, f"{'note':<{_WIDTH}}", indent)
        lines += [paint("note", "bold") + text[0][4:], *text[1:]]
    return lines


def _row(label: str, parts: list[str], paint: Paint, width: int) -> list[str]:
    lines = flow(parts, width, f"{label:<{_WIDTH}}", " " * _WIDTH)
    lines[0] = paint(label, "green" if label == "type" else "bold") + lines[0][len(label) :]
    return lines


def _what(answer: Answer, where: str | None) -> list[str]:
    words = CODE_WORDS.get(answer.code) or KIND_WORDS.get(answer.kind, escape(answer.kind))
    if answer.symbol and answer.provider:
        # The kind says what a missing name of this sort means; this one is not missing.
        words = "provided in this environment" if where == "here" else "exported by this torch"
    if not answer.provider:
        # A code names something wrong, and what has a provider is not.
        words += f" [{escape(answer.code)}]"
    names = [name for name in (answer.demangled, answer.symbol) if name]
    if not names:
        return pieces(words)
    out = [escape(name) for name in dict.fromkeys(names)]
    return [*out[:-1], out[-1] + ":", *pieces(words)]


def _exported(answer: Answer, where: str | None) -> list[str]:
    releases = _releases(answer.owner, answer.exported_by, answer.interval)
    if not (releases or answer.symbol or answer.demangled or answer.provider):
        return pieces("not a question of who exports it")
    if not releases and not answer.provider and answer.releases_looked_up:
        releases = ["no known release" if answer.direction == "none" else "no release on record"]
    place = where or "here"
    if answer.provider:
        here = f"{place}: {escape(short_path(answer.provider))}"
    elif where and answer.looked_here:
        here = f"{place}: nothing"
    else:
        here = "here: not looked at"
    if releases:
        return [*releases[:-1], releases[-1] + ";", here]
    return [here if answer.provider else " ".join(reversed(here.split(": ")))]


def _releases(owner: str | None, exported_by: tuple[str, ...], interval: str) -> list[str]:
    parts = pieces(escape(interval)) if interval else release_parts(exported_by)
    # A bare "2.4.0" of a torch name is a torch release; other libraries bring their own name.
    if parts and parts[0][0].isdigit() and owner is not None and owner.startswith("torch"):
        return [f"torch {parts[0]}", *parts[1:]]
    return parts


def _means(answer: Answer) -> str:
    if answer.confidence == "high":
        return answer.cause
    return f"{answer.cause} ({answer.confidence} confidence)"
