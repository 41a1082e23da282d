"""Where the text has a package's source from, and by what it was built: its repository, uv."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.owner import is_torch
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, NEWER
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of
from fa_forensics.why.shell import quoted
from fa_forensics.why.ways.builds import NEWEST_TORCH

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Notes on a build in a source directory.
_IN_SOURCE = lazily(r"(?:The command that begins with rm -rf build|A file that was compiled)")
_BY_PIP, _BY_UV = lazily(r"Where\spip\scompiled"), lazily(r"\buv\ssync\b")
_TORCH = lazily(r'install\s"torch[=>]=')


def from_its_repository(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer with the repository that the text installs from, where a directory was meant."""
    source = _repository_of(file_of(paste), paste.versions)
    built = next((text for text in answer.help if text.startswith("rm -rf build ")), None)
    if not source or built is None or answer.kind not in DRIFT or place.told is None:
        return answer
    again = (
        "MAX_JOBS=4 python -m pip install --no-build-isolation --no-cache-dir --force-reinstall "
        f"--no-deps {quoted(source)}"
    )
    helps = [text for text in answer.help if text != built]
    at = next((i for i, text in enumerate(helps) if _TORCH.search(text)), len(helps) - 1)
    helps.insert(at, again)
    note = (
        "The text installs it from its repository: the command compiles that again, for the torch "
        "that is installed. Another torch is the other way, for all other packages too."
    )
    kept = (n for n in answer.notes if not _IN_SOURCE.match(n))
    return replace(answer, help=tuple(helps), notes=(note, *kept))


#: What stands around the name of a package in those of its modules and of its repository.
_AROUND = lazily(r"^(?:py)?torch(?=.{3})|(?:bindings|ext|lib)$")
#: The directory of a package in a repository that holds several.
_FOLDER = lazily(r"[#&]subdirectory=(?:[\w.-]{1,60}/){0,6}(?P<name>[\w.-]{1,60})")
_MODULE = lazily(r"-packages/(?P<name>[A-Za-z_]\w{1,80})(?=/|\.(?:cpython|abi3|so|pyd)\b|\.cp\d)")


def _repository_of(file: str, versions: Mapping[str, str]) -> str:
    """The address that the text installs the package of an installed file from; "" for none."""
    module = _MODULE.search(file.replace("\\", "/"))
    if module is None:
        return ""
    wanted = _plain(module["name"])
    for key, address in versions.items():
        if not key.startswith("repository:"):
            continue
        folder = _FOLDER.search(address)
        names = {key.partition(":")[2], folder["name"] if folder is not None else ""}
        if wanted in {_plain(name) for name in names}:
            return address
    return ""


def _plain(name: str) -> str:
    """torch_fpsample and pytorch-fpsample, tinycudann_bindings and tiny-cuda-nn are one each."""
    whole = re.sub(r"[-_.]", "", name.lower())
    return _AROUND.sub("", whole) or whole


def built_by_uv(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer with how uv builds, where the text says that it did."""
    if "flag:uv" not in paste.versions or answer.kind not in DRIFT or place.told is None:
        return _built_by_pip(answer, paste, place)
    # uv's environments have no pip of their own; uv pip takes pip's options.
    answer = replace(answer, help=tuple(map(_with_uv, answer.help)))
    if not is_torch(answer.owner or "") or any(map(_BY_UV.search, answer.notes)):
        return answer
    if any(".whl" in text for text in answer.help):
        return answer
    note = (
        "uv builds in an environment of its own, with the newest torch that the build asks for, "
        "and would do so again: no-build-isolation-package = [PACKAGE] below [tool.uv] in "
        "pyproject.toml takes the torch of the project, or build-system.requires pins that very "
        "torch. Then uv sync --reinstall-package PACKAGE --no-cache compiles it again."
    )
    kept = (n for n in answer.notes if not _BY_PIP.match(n))
    return replace(answer, notes=(note, *kept))


_PIP = lazily(r"\bpython\s-m\spip\s(?=(?:install|check|list|show)\b)")


def _with_uv(command: str) -> str:
    return _PIP.sub("uv pip ", command)


#: Packages that are named wherever torch is.
_FAMILY = ("torch", "pytorch", "torchvision", "torchaudio")


def _built_by_pip(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer with how a file gets newer than torch, where nothing says what package it is."""
    drift = answer.kind == "symbol-drift" and answer.direction == NEWER
    drift = drift and is_torch(answer.owner or "") and "flag:newest" not in paste.versions
    if not drift or place.told is None or file_of(paste) or NEWEST_TORCH in answer.notes:
        return answer
    named = (key for key in paste.versions if key.startswith(("pkg:", "named:", "flag:imported")))
    if any(key.partition(":")[2] not in _FAMILY for key in named):
        return answer
    return replace(answer, notes=(*answer.notes, NEWEST_TORCH))
