"""Packages that Python imports from the directory of their source, as a traceback shows."""

from __future__ import annotations

from collections.abc import Callable

from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.typed_lines import holds_many
from fa_forensics.facts.paste.version_forms import PATH
from fa_forensics.patterns import lazily

#: Packages whose compiled part setup.py builds beside, or below, that directory.
_PACKAGES = ("torchaudio", "torchvision", "torchtext", "vllm", "detectron2", "mmcv", "apex",
             "pytorch3d", "xformers", "deepspeed", "natten", "flash_attn")  # fmt: skip
#: ``~/vision/torchvision/__init__.py``; an address or a drive's letter begins otherwise.
_FILE = rf"(?P<where>~?(?:/[\w.+-]{{1,80}}){{1,20}})/(?P<name>{'|'.join(_PACKAGES)})/__init__\.py"
#: Where Python itself names the file that it runs. A path in a sentence is not one of these.
_BY_PYTHON = (
    # a traceback: File "/x/vision/torchvision/__init__.py", line 6, in <module>
    lazily(rf'\bFile "{_FILE}", line \d'),
    # a step of one: File "/x/mmcv/mmcv/ops/focal_loss.py", line 60, in forward
    lazily(
        rf'\bFile "(?P<where>~?(?:/[\w.+-]{{1,80}}){{0,20}}/(?P<root>{"|".join(_PACKAGES)}))'
        r'/(?P<name>(?P=root))/(?:\w{1,60}/){0,6}\w{1,60}\.py", line \d'
    ),
    # a traceback of IPython or rich, and a warning: PATH in <module>, PATH:6, in f, PATH:6: Warning
    lazily(
        rf"(?<!\S){_FILE}(?:(?::\d{{1,6}})? in (?:<module>|\w{{1,80}}\()"
        r"|:\d{1,6}(?:, in |: \w{0,60}(?:Warning|Error)\b))"
    ),
    # ImportError: cannot import name '_C' from 'torchvision' (PATH)
    lazily(rf"\bcannot import name [^\n(]{{1,200}}(?:\([^\n()]{{1,80}}\) )?\({_FILE}\)"),
)
#: Directories that hold what is installed, a package manager's stores among them.
_INSTALLED = lazily(
    r"-packages(?:/|$)|/lib(?:64)?/python\d|\.(?:egg|zip|pex)(?:/|$)|/\.cache/|/\.local/|/share/uv/"
    r"|^/(?:var/|private/)?tmp/|^/private/var/|^/(?:nix|gnu)/store/|^/usr/(?:lib|share)|^/snap/"
    r"|/(?:uv|pipx|pkgs|Cellar|spack|\.pixi|runfiles)/"
)
#: Steps in a tree's other files: setup.py of /x/vllm/vllm/ is that of a tree /x/vllm/vllm.
_BESIDE = lazily(
    r"/(?:setup|conftest|versioneer)\.py\"|(?P<name>/[\w.-]{1,60})(?P=name)/"
    r"(?:tests?|examples?|benchmarks?|tools|scripts|docs|demo)/"
)
#: How often one package is followed up.
_PER_SIGN = 20


def read_checkouts(
    source: Source,
    places: Places,
    offer: Callable[[str, int, int, str], None],
) -> None:
    """``local:NAME``, the directory that holds ``NAME/__init__.py``, where nothing installs to.

    And ``imported:NAME``, that Python was seen to import it from there.
    """
    for name in _PACKAGES:
        steps = (
            *places(f"{name}/__init__.py")[:_PER_SIGN],
            *places(f"/{name}/{name}/")[:_PER_SIGN],
        )
        for place in steps:
            line = source.line_at(place)
            where = _imported_from(line.raw, name)
            if where:
                offer(f"local:{name.replace('_', '-')}", PATH, line.number, f"-e {where}")
                offer(f"imported:{name.replace('_', '-')}", PATH, line.number, where)
                break


def _imported_from(text: str, name: str) -> str:
    """The directory that Python imports a package from, as a line shows; "" for none."""
    for pattern in _BY_PYTHON:
        for found in pattern.finditer(text):
            where = found["where"]
            if found["name"] != name or _INSTALLED.search(where) or holds_many(where):
                continue
            if _BESIDE.search(found[0]) is None:
                return where
    return ""
