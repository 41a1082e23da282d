"""torch's own words where ``torch._C`` is a directory and not its compiled module.

torch/__init__.py says so where the module has no file: wheels and the source tree both have a
directory torch/_C (of .pyi files), which Python takes as a namespace where it finds no _C.*.so
that has its own tag.
"""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows

OTHER_PYTHON, ABSENT, KIND = "FA401", "FA880", "python-abi"


def folder_of_torch(seen: Seen) -> Answer:
    """``Failed to load PyTorch C extensions``: in an installation, or in a source tree."""
    path = seen.mention.detail.get("frame", "")
    if seen.mention.detail.get("free_threaded") and (minor := _free_minor(seen)):
        return _free_threaded(seen, minor)
    if re.search(r"(?:site|dist)-packages[/\\]", path):
        return _installed(seen)
    return _in_a_tree(seen, path)


def _suffixes(seen: Seen) -> str:
    return (
        f'{seen.python} -c "import sys, importlib.machinery as m; print(sys.version, '
        'sys.executable, m.EXTENSION_SUFFIXES)"'
    )


def _files(seen: Seen) -> str:
    """The compiled modules of the torch that is found, without importing it."""
    end = "pyd" if on_windows(seen) else "so"
    away = "" if on_windows(seen) else "cd / && "
    return (
        f'{away}{seen.python} -c "import importlib.util as u, glob; '
        "p = u.find_spec('torch').submodule_search_locations[0]; "
        f"print(p, glob.glob(p + '/_C.*{end}'))\""
    )


def _free_minor(seen: Seen) -> str:
    """Which Python without the GIL it is, by the text; "" where that tells none that can be one."""
    told = re.match(r"3\.1[3-9](?!\d)", seen.versions.get("python", ""))
    return seen.mention.detail.get("free_python") or (told[0] if told is not None else "")


def _free_threaded(seen: Seen, minor: str) -> Answer:
    """A Python without the GIL looks for files with a ``t`` in their tag."""
    tag = f"cp{minor.replace('.', '')}"
    python = " ".join(("py", f"-{minor}")) if on_windows(seen) else f"python{minor}"
    return seen.answer(
        KIND, OTHER_PYTHON,
        f"The Python that ran is a free-threaded one ({minor}t, without the GIL): it takes "
        f"compiled modules of the tag {tag}t alone, and the _C of the torch that is there has "
        f"another, most likely {tag}, that of the ordinary {minor}. What is left of torch._C is "
        "the directory of that name, so torch speaks of its source repository, which plays no "
        "part here.",
        owner="python", direction="none", confidence="medium",
        help=(_files(seen), f'{python} -c "import torch; print(torch.__version__)"',
              f"python{minor}t -m pip install --dry-run --ignore-installed --no-deps "
              "--only-binary :all: torch"),
        notes=(
            "The first command lists the file that is there: its tag tells. The second runs the "
            f"ordinary Python {minor}, which is the way out where its file is the one listed.",
            f"The third shows whether the package index has a torch for {tag}t and this system: "
            f"where it finds one, python{minor}t -m pip install --force-reinstall brings it. The "
            "wheel that is there, installed again, is the same file.",
        ),
    )  # fmt: skip


def _installed(seen: Seen) -> Answer:
    """The message out of site-packages, where no source tree is imported."""
    return seen.answer(
        KIND, ABSENT,
        "The torch that is imported is an installed one, and this Python finds no compiled "
        "module _C in it: what is left is the directory torch/_C, which torch takes for that of "
        "its source repository. Two causes fit: the file is there for another Python (its tag is "
        "not one that this Python looks for: site-packages shared or copied between Pythons, "
        "PYTHONPATH, pip install --target, a free-threaded Python), or it is missing (an "
        "interrupted installation, files left out or removed). The first two commands tell them "
        "apart.",
        owner="torch", direction="none", confidence="medium",
        help=(_files(seen), _suffixes(seen), f"{seen.pip} --version"),
        notes=(
            "No file: torch is to be installed again, whole (pip install --force-reinstall "
            "--no-cache-dir with the release and index that it came from). A file whose ending "
            "the second command does not have: run the program with the Python of its tag, or "
            "install torch with the pip of this one (python -m pip).",
        ),
    )  # fmt: skip


def _in_a_tree(seen: Seen, path: str) -> Answer:
    """The source tree of torch is the working directory, or on the path."""
    tree = re.match(r"(?P<tree>(?:/|[A-Za-z]:\\).{1,300})[/\\]torch[/\\]__init__\.py$", path)
    where = f"{tree['tree']}, " if tree is not None else ""
    cause = (
        f"Python imports torch from its source tree ({where}the working directory or one on "
        "PYTHONPATH), which has a directory torch/_C and no compiled module there: it was not "
        "built in place. It comes before an installed torch, which may be whole."
    )
    look = "python -c \"import importlib.util as u; print(u.find_spec('torch'))\"".replace(
        "python", seen.python, 1
    )
    return seen.answer(
        KIND, ABSENT, cause, owner="torch", direction="none",
        confidence="high" if tree is not None else "medium",
        help=(look if on_windows(seen) else f"cd / && {look}",),
        notes=(
            "Run the program from another directory than the source tree: the command prints "
            "which torch is found there. To use the tree itself, build it in place (python "
            "setup.py develop, or pip install --no-build-isolation -v -e . in newer releases).",
            *(() if tree is not None else (
                "Where that is a torch in site-packages, and the message comes from there too, "
                "its _C has the tag of another Python or is missing.",)),
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"torch-c-folder": folder_of_torch}
