"""One answer of ``why`` as text: five lines that always come in the same order."""

from __future__ import annotations

from fa_forensics.render.lang import Say, columns, padded, plain
from fa_forensics.render.style import Paint, escape, flow, pieces, release_parts, short_path
from fa_forensics.report_why import Answer

#: The kinds of the JSON contract in words.
KIND_WORDS = {
    "symbol-drift": "a name that changed between torch releases",
    "cxx11-abi": "a name built for the other std::string flavour",
    "missing-library": "a library that the loader does not find",
    "versioned-symbol": "a name of a library that changes from version to version",
    "gpu-arch": "no code for this GPU in the file",
    "gpu-driver": "the NVIDIA driver",
    "glibc": "a newer glibc than this system has",
    "libstdcxx": "a newer libstdc++ than the one that is loaded",
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
    "FA210": "a library that the file does not list",
    "FA507": "a GPU or a call that the package itself refuses",
    "FA509": "code that asks for more than the GPU can do",
    "FA510": "a compiler at run time that does not know the GPU",
    "FA602": "a build for another CUDA than torch's, or for none",
    "FA880": "a compiled module that is not there",
    "FA882": "Python files and a compiled module that do not match",
    "FA883": "a build that stopped before the extension was made",
    "FA884": "a build that saw another torch or toolkit",
    "FA885": "a build that ran out of memory",
    "FA886": "a message that hides the loader's own error",
    "FA887": "no prebuilt file for this system",
    "FA888": "a crash without an error of the loader",
    "FA890": "a file that the kernel refuses to map",
    "FA891": "a module that was built for another numpy",
    "FA892": "a compiled module that does not start in this Python",
    "FA893": "a C++ type that is registered twice, or not at all",
    "FA897": "an error of the run, and of no file",
    "FA898": "a warning that nothing follows from",
}

#: Kind and code together, where they say more than either.
BOTH_WORDS = {
    ("damaged-file", "FA887"): "a wheel under a wrong name",
    ("damaged-file", "FA403"): "a module without its start function",
}

#: How many other signatures are shown; the most telling stand first.
SHOWN = 6

_WIDTH = 12


def answer_lines(
    answer: Answer, where: str | None, paint: Paint, width: int, say: Say = plain
) -> list[str]:
    """What it is, whose it is, who exports it, what that means here, what to type; then more.

    ``where`` is what to call the place that was looked in: "here" is an environment, "there"
    a torch that was named; None for none. ``say`` puts our own words into another language.
    """
    rows = [
        ("what", _what(answer, where, say)),
        ("owner", [escape(answer.owner) if answer.owner else say("not known")]),
        ("exported by", _exported(answer, where, say)),
        ("means", pieces(escape(_means(answer, say)))),
    ]
    lines: list[str] = []
    for label, parts in rows:
        lines += _row(say(label), parts, paint, width)
    commands = [escape(command) for command in answer.help]
    for number, command in enumerate(commands or [say("no command is known to help")]):
        label, style = (say("type"), "green") if number == 0 else ("", "bold")
        lines += _row(label, [command], paint, width, style)
    for other in answer.overloads[:SHOWN]:
        parts = [escape(other.demangled), escape(other.symbol)]
        releases = _releases(answer.owner, other.exported_by, other.interval)
        listed = [f"{say('in')} {releases[0]}", *releases[1:]] if releases else []
        if other.change:
            listed = [*listed[:-1], listed[-1] + ":"] if listed else []
            listed += pieces(escape(say(other.change)))
        lines += _row(say("see also"), list(dict.fromkeys(parts)) + listed, paint, width)
    if len(answer.overloads) > SHOWN:
        more = f"{len(answer.overloads) - SHOWN} more of that name: --format json lists them"
        lines += _row("", pieces(say(more)), paint, width)
    for note in answer.notes:
        lines += _row(say("note"), pieces(escape(say(note).strip())), paint, width)
    return lines


def _row(label: str, parts: list[str], paint: Paint, width: int, style: str = "bold") -> list[str]:
    lines = flow(parts, width, padded(label, _WIDTH), " " * _WIDTH)
    lines[0] = paint(label, style) + lines[0][len(label) :]
    return lines


def _what(answer: Answer, where: str | None, say: Say) -> list[str]:
    words = CODE_WORDS.get(answer.code) or KIND_WORDS.get(answer.kind, escape(answer.kind))
    words = BOTH_WORDS.get((answer.kind, answer.code), words)
    if answer.symbol and answer.provider:
        # The kind says what a missing name of this sort means; this one is not missing.
        words = "provided in this environment" if where == "here" else "exported by this torch"
    words = say(words)
    if not answer.provider or answer.kind == "wrong-torch":
        # A code names something wrong, and a name that has a provider is not wrong by itself.
        words += f" [{escape(answer.code)}]"
    names = [name for name in (answer.demangled, answer.symbol) if name]
    if not names:
        return pieces(words)
    out = [escape(name) for name in dict.fromkeys(names)]
    return [*out[:-1], out[-1] + ":", *pieces(words)]


def _exported(answer: Answer, where: str | None, say: Say) -> list[str]:
    releases = _releases(answer.owner, answer.exported_by, answer.interval)
    if not (releases or answer.symbol or answer.demangled or answer.provider):
        return pieces(say("not a question of who exports it"))
    if not releases and not answer.provider and answer.releases_looked_up:
        known = "no known release" if answer.direction == "none" else "no release on record"
        releases = [say(known)]
    place = where or "here"
    if answer.provider:
        here = f"{say(place)}: {escape(short_path(answer.provider))}"
        return [*releases[:-1], releases[-1] + ";", here] if releases else [here]
    looked = where is not None and answer.looked_here
    if releases:
        here = f"{place}: nothing" if looked else "here: not looked at"
        return [*releases[:-1], releases[-1] + ";", say(here)]
    return [say(f"nothing {place}" if looked else "not looked at here")]


def _releases(owner: str | None, exported_by: tuple[str, ...], interval: str) -> list[str]:
    parts = pieces(escape(interval)) if interval else release_parts(exported_by)
    # A bare "2.4.0" of a torch name is a torch release; other libraries bring their own name.
    if parts and parts[0][0].isdigit() and owner is not None and owner.startswith("torch"):
        return [f"torch {parts[0]}", *parts[1:]]
    return parts


def _means(answer: Answer, say: Say) -> str:
    cause = say(answer.cause)
    if answer.confidence == "high":
        return cause
    blank = " " if columns(cause[-1:]) < 2 else ""  # Chinese has none after its stop
    return f"{cause}{blank}{say(f'({answer.confidence} confidence)')}"
