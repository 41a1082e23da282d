"""What an answerer is given: one mention out of a pasted text, and where it is to be judged."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass
from fa_forensics.report_why import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.ways.commands import inspect_command

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Mention, Paste

#: Directories that hold packages; what follows one is the package that a file belongs to.
_SITES = lazily(r"/(?:site|dist)-packages/")

_SUFFIX = lazily(
    r"\.(?:cpython-[\w-]+|cp\d{2,4}t?-\w+|abi3|pypy[\w-]+)?\.?(?:so(?:\.\d+)*|pyd|dylib)$|\.so(?:\.\d+)*$"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One mention, the text around it, and the place that it is judged in.

    ``elsewhere`` tells that the text is not from this machine: the versions that it names
    itself count then, and nothing installed here does. ``place`` is already the right one:
    this environment, or the torch that the text names.
    """

    mention: Mention
    paste: Paste
    place: Place
    tables: Tables
    elsewhere: bool

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions that the text itself names, by the paste reader's keys."""
        return self.paste.versions

    @property
    def torch(self) -> str | None:
        """The torch to judge by, as a whole version: "2.4.0+cu121"."""
        if self.place.present is not None:
            return self.place.present.version
        return self.versions.get("torch")

    @property
    def torch_cuda(self) -> str | None:
        """The CUDA toolkit that this torch was built with ("12.1"), as far as it is told."""
        if not self.elsewhere and self.place.environment is not None:
            torch = self.place.environment.torch
            if torch is not None:
                return torch.cuda
        told = self.versions.get("torch_cuda")
        if told is None and self.place.requested is not None:
            return self.place.requested.cuda
        return told

    @property
    def python_version(self) -> str | None:
        """The Python to judge by: "3.10" or "3.10.12"."""
        if not self.elsewhere and self.place.environment is not None:
            return self.place.environment.version_short
        return self.versions.get("python")

    @property
    def python(self) -> str:
        """The interpreter in commands, quoted for a shell; plain ``python`` for another machine."""
        if self.elsewhere or self.place.python is None:
            return "python"
        return shlex.quote(self.place.python)

    @property
    def pip(self) -> str:
        """What pip commands start with."""
        return f"{self.python} -m pip"

    @property
    def gpu(self) -> str | None:
        """The GPU that the text names: in the mention itself, else elsewhere in the text."""
        return self.mention.detail.get("gpu") or self.versions.get("gpu")

    @property
    def module(self) -> str:
        """The module name of the failing file: "flash_attn_2_cuda"; "" where none is named."""
        return module_of(self.mention.file or "")

    @property
    def package(self) -> str | None:
        """The distribution that the failing file belongs to, by its path or its module name."""
        return package_of(self.mention.file or "")

    def inspect_command(self) -> str:
        """Look at the failing file itself."""
        file = self.mention.file
        return inspect_command(self.place, (file,) if file else ())

    def answer(self, kind: str, code: str, cause: str, **fields: Any) -> Answer:
        """An answer on this mention; ``fields`` are those of ``Answer``.

        Without any it says that nobody's exports were looked up, with medium confidence.
        """
        given: dict[str, Any] = {
            "symbol": None,
            "demangled": None,
            "owner": None,
            "provider": None,
            "looked_here": False,
            "releases_looked_up": False,
            "source_line": self.mention.line or None,
        }
        if "help" in fields:
            # A relative name stands after "from" alone; of which package it is shows nowhere.
            typed = (_RELATIVE.sub("import MODULE", text) for text in fields["help"])
            if _WITHOUT_LIST.match(self.torch or ""):
                typed = (text.replace(_LIST, "") for text in typed)
            fields = {**fields, "help": tuple(typed)}
        return Answer(kind, code, cause=cause, **{**given, **fields})


#: ``python -c 'import torch; import .kernels'`` is none of Python's syntax.
_RELATIVE = lazily(r"\bimport \.[\w.]{0,200}(?=')")


#: torch.cuda.get_arch_list is there since 1.7 (pytorch pull request 41212, July 2020).
_WITHOUT_LIST, _LIST = lazily(r"(?:0\.\d|1\.[0-6])(?:\.|$)"), ", torch.cuda.get_arch_list()"


Answerer = Callable[[Seen], Answer]


def module_of(path: str) -> str:
    """The module name in the path of an extension file."""
    return _SUFFIX.sub("", os.path.basename(path.rstrip("/"))).rstrip(".")


def dotted_module(path: str) -> str:
    """The name that a file is imported by; "" for what is no module of a package on the path."""
    parts = _SITES.split(path)
    folders = parts[-1].split("/")[:-1] if len(parts) > 1 else []
    names = [*folders, module_of(path)]
    module = ".".join(names)
    whole = all(name.isidentifier() for name in names) and names[-1] not in ("_C", "_ext")
    return module if whole or (folders and all(name.isidentifier() for name in names)) else ""


def directory_of(path: str) -> str | None:
    """The package of a file by what is known, else by its directory below ``site-packages``."""
    found = re.search(r"/(?:site|dist)-packages/([\w-]{1,60})/", path)
    return package_of(path) or (found[1].replace("_", "-") if found else None)


def file_of(paste: Paste) -> str:
    """The first file that a text names as the failing one; "" for none."""
    return next((m.file for m in paste.mentions if m.file), None) or ""


#: What people call an environment is no package: /envs/detectron2/, /detectron2/lib/python3.6/.
_ENVIRONMENT = lazily(
    r"/(?:envs|\.?virtualenvs?)/[^/\s:'\"]{1,100}|/[^/\s:'\"]{1,100}(?=/lib(?:64)?/python\d)"
)


def without_environments(text: str) -> str:
    """A text without the names of the environments that its paths lie in."""
    return _ENVIRONMENT.sub("", text)


#: tinycudann_bindings_61: a package's directory for one compute capability.
_FOR_GPU = lazily(r"(?<=_bindings)_\d{2,3}$")


def package_of(path: str) -> str | None:
    """The distribution of a file, by what is known of packages; None where that is not known.

    Its module name decides, then the directory below ``site-packages``.
    """
    from fa_forensics.rules.remedy import known_packages

    path = path.replace("\\", "/")  # of Windows
    module = module_of(path)
    if "/" not in path and "." in module:
        path = path.replace(".", "/", module.count("."))  # vllm._C.abi3.so, as people write it
        module = module_of(path)
    rows = known_packages()
    for row in rows:
        if module in row["modules"]:  # type: ignore[operator]
            return str(row["distribution"])
    path = without_environments(path)
    parts = _SITES.split(path)
    top = _FOR_GPU.sub("", parts[-1].split("/")[0]) if len(parts) > 1 else ""
    folders = [_FOR_GPU.sub("", folder) for folder in path.split("/")[:-1]]
    for row in rows:
        names = (str(row["import"]).split(".")[0], *row.get("also", ()))  # type: ignore[misc]
        if top in names or (not top and any(name in folders for name in names)):
            return str(row["distribution"])
    return None
