"""Files of an .egg, which setup.py install left behind, packed or unpacked at its first import."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.ways.builds import clean_build

_UPGRADE = lazily(r"install --upgrade\b")
_OF_INDEX = lazily(
    r"(?:One of the two commands|The command g|The command that begins with|A file that was comp)"
)
_TORCH = lazily(r'"torch[=>]=')


def of_egg(answer: Answer, seen: Seen, egg: str) -> Answer:
    """The answer for a file below ``egg``: uninstalled first, then built in its source."""
    name = egg.rsplit("/", 1)[-1]
    note = (
        f"The file lies in {name}, which setup.py install left behind for the torch of that day; "
        "it goes before packages that pip installs. Uninstall it, then build with the interpreter "
        "that runs it."
    )
    again = (
        "In the source directory build/ keeps the old objects, which setup.py install packs again "
        "whatever torch is there: the command that begins with rm -rf build, for that directory, "
        "takes them away."
    )
    gone: tuple[str, ...] = ()
    if egg.endswith("-tmp"):
        note = (
            f"The file lies in {name}, where Python unpacks a zipped .egg that setup.py install "
            "left behind for the torch of that day. Uninstall the egg, remove what was unpacked, "
            "then build in the project's own checkout with the interpreter that runs it."
        )
        if egg.startswith("/") and "..." not in egg:
            gone = (f"rm -rf {shlex.quote(egg)}",)
    command = f"{seen.pip} uninstall {shlex.quote(name.split('-')[0].replace('_', '-'))}"
    helps = [text for text in answer.help if not _UPGRADE.search(text)]
    built = next((t for t in helps if "--no-build-isolation" in t and "git+" in t), "")
    if not built:
        built = clean_build(raw_python(seen), "")
        built = built.replace("rm -rf build ", "rm -rf build dist ", 1)
    helps = [text for text in helps if "--no-build-isolation" not in text]
    at = next((i for i, text in enumerate(helps) if _TORCH.search(text)), len(helps) - 1)
    helps.insert(at, built)
    notes = [n for n in answer.notes if not _OF_INDEX.match(n)]
    if answer.direction == FLAVOUR and mentions_cxx11(answer.symbol or "", answer.demangled or ""):
        notes.insert(0, _WITHOUT_BUILD_EXTENSION)
    return replace(answer, help=(command, *gone, *helps), notes=(note, again, *notes))


#: torch/utils/cpp_extension.py: BuildExtension adds the flag, CUDAExtension does not.
_WITHOUT_BUILD_EXTENSION = (
    "-D_GLIBCXX_USE_CXX11_ABI is given to the compiler by torch.utils.cpp_extension.BuildExtension "
    "alone: a setup.py whose cmdclass does without it builds in the compiler's own flavour, which "
    "is cxx11, whatever torch has. Newer sources may pass the flag; else it goes into the "
    "setup.py's flags, =1 where torch.compiled_with_cxx11_abi() says True and =0 where it says "
    "False."
)
