"""The directories that a text installs packages from: ``pip install -e ./gsplat``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.lines import Line, Places, Source
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.version_forms import REPORT
from fa_forensics.patterns import lazily

#: How often the words are followed up.
_PER_SIGN = 60
_PIP = lazily(r"\bpip[\d.]{0,4} install (?P<rest>[^\n|&;#]{1,400})")
#: ``cd gsplat && pip install .``, on one line or with the second command on the next.
_CD = lazily(r"(?:^|[\s$>;&(])cd (?P<folder>[\w./~+-]{2,200})")
_BUILT_THERE = lazily(
    r"\bpip[\d.]{0,4} install (?:-[\w-]{1,40} ){0,5}\.(?=[\s\[)]|$)"
    r"|\bpython[\d.]{0,4} (?:\./)?setup\.py (?:[\w-]{1,20} )?(?:install|develop|build)\b"
)
#: Options whose value stands behind them, and is no directory of a package.
_VALUED = frozenset(("-r", "-c", "-i", "-f", "-t", "-b", "-d"))
#: pip's long options without a value; every other long one takes the word behind it.
_PLAIN = frozenset((
    "--no-build-isolation", "--no-cache-dir", "--no-deps", "--force-reinstall", "--upgrade",
    "--user", "--verbose", "--quiet", "--pre", "--no-index", "--ignore-installed", "--editable",
    "--no-dependencies", "--break-system-packages", "--no-clean", "--compile", "--no-compile",
    "--prefer-binary", "--use-pep517", "--no-use-pep517", "--system", "--require-virtualenv",
    "--disable-pip-version-check", "--no-input", "--dry-run", "--reinstall",
))  # fmt: skip
#: "name @ file:///home/u/name", as pip freeze and uv write it.
_FROZEN = lazily(
    r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]{1,60})(?:\[[\w,.-]{1,80}\])? ?@ "
    r"file://(?P<folder>/[\w./~+%-]{2,200})(?![\w./~+%\[(<{-])"
)
#: Where conda's builds and the system's installers unpacked what they made: gone since.
_OF_CONDA = lazily(
    r"/(?:croot|feedstock_root|opt/conda/conda-bld|home/(?:conda|ktietz|builder)/"
    r"|home/runner/|usr/share/miniconda|work/ci_|tmp/|var/|private/|b/|D/|C/|Users/(?:ktietz|builder|runner)/|[a-z]{3,6}_x64/)"
)
_NO_SOURCE = lazily(r"://|^git\+|\.(?:whl|txt|gz|zip|tgz|toml)$|^/path/|\.\.\.")


def read_local_sources(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """Each directory that a command installs from, as ``local:NAME`` by its last part.

    The value is the directory as the text has it, with ``-e `` before it where it is installed
    so that it stays in use (pip's editable installation).
    """
    for place in places("@ file://")[:_PER_SIGN]:
        line = source.line_at(place)
        for found in _FROZEN.finditer(line.body[:2_000]):
            folder = unquote(found["folder"])
            if _NO_SOURCE.search(folder) is None and _OF_CONDA.match(folder) is None:
                offer(f"local:{normalized(found['name'])}", REPORT, line.number, folder)
    for sign in ("pip install", "pip3 install", "setup.py"):
        for place in places(sign)[:_PER_SIGN]:
            line = source.line_at(place)
            for folder, kept in (*_given(line), *_entered(line)):
                name = folder.rstrip("/").rsplit("/", 1)[-1]
                if re.fullmatch(r"[A-Za-z][\w.+-]{1,60}", name):
                    value = f"-e {folder}" if kept else folder
                    offer(f"local:{normalized(name)}", REPORT, line.number, value)


def _given(line: Line) -> Iterator[tuple[str, bool]]:
    """(directory, whether it stays in use) of the words that pip is given."""
    for found in _PIP.finditer(line.body):
        before = ""
        for raw in found["rest"].split()[:16]:
            word = raw.strip("'\"`,)").partition("[")[0]
            kept = before in ("-e", "--editable")
            valued = before in _VALUED or (
                before.startswith("--") and "=" not in before and before not in _PLAIN
            )
            own = not valued and not word.startswith("-")
            # "torch/torchvision/gsplat" in a sentence is a list of names.
            folder = "/" in word and word.partition("/")[0].lower() not in PACKAGES
            if own and (kept or folder) and _NO_SOURCE.search(word) is None:
                yield word, kept
            before = raw


def _entered(line: Line) -> Iterator[tuple[str, bool]]:
    """(directory, whether it stays in use) where a command goes into it and installs from there."""
    built = _BUILT_THERE.search(line.body)
    if built is None:
        return
    before = [line.body[: built.start()], *(above.body for above in line.above(1))]
    for text in before:
        entered = list(_CD.finditer(text))[-1:]
        if entered and not entered[0]["folder"].startswith("-"):
            kept = re.search(r" (?:-e|develop)\b", built[0]) is not None
            yield entered[0]["folder"], kept
            return
