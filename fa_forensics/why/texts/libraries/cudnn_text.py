"""Answers on cuDNN: a part that is not found, parts of two releases, and one in another's place."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import torches_bringing
from fa_forensics.why.texts.symbol_text import symbol_of_text

VERSIONED, OTHER_COPY = "versioned-symbol", "FA204"

#: The cuDNN that a soname is a part of: ``libcudnn_ops.so.9.1.0`` is one of cuDNN 9.
_CUDNN_MAJOR = re.compile(r"libcudnn\w{0,30}\.so\.(?P<major>\d{1,2})")
#: Parts that cuDNN 8 has, and that cuDNN 9 has under other names.
_ONLY_8 = re.compile(r"libcudnn_\w{1,20}_(?:infer|train)\.so")

_WHEELS_ON_PATH = (
    "export LD_LIBRARY_PATH=$({python} -c 'import nvidia.cublas.lib as a, nvidia.cudnn.lib as b; "
    'print(a.__path__[0] + ":" + b.__path__[0])\')'
)
_CTRANSLATE2 = (
    "ctranslate2 (faster-whisper, WhisperX) brings the head of cuDNN and no parts of it: from "
    "4.5.0 on it needs those of cuDNN 9, before those of cuDNN 8. In a process with torch both "
    "have to need the same: torch has cuDNN 9 since 2.4.0."
)


def cudnn_part(seen: Seen, soname: str) -> Answer:
    """A part of cuDNN that is not found: of the release that is there, or of another one."""
    found = _CUDNN_MAJOR.match(soname)
    major = found["major"] if found else ""
    cause = (
        f"cuDNN loads its parts at run time, by name, and {soname} is not on the loader's path: "
        "cuDNN is installed in part, or in another place than the one that was loaded first."
    )
    if _ONLY_8.match(soname):
        cause = (
            f"{soname} is a part of cuDNN 8, and cuDNN 9 has none of that name. Most likely the "
            "cuDNN at hand is 9, which torch brings since 2.4.0, and something in the process "
            "(CTranslate2 before 4.5.0, an older onnxruntime-gpu) is built for cuDNN 8: the two "
            "have to be of one major version. Where the cuDNN at hand is 8, it is installed in "
            "part, or its directory is not on the loader's path."
        )
    elif major:
        cause += (
            f" It has to be cuDNN {major}: the parts of another major version have other contents "
            "and do not count, under whatever name."
        )
    notes = ["pip's torch brings a whole cuDNN along; a copy of the system is not needed."]
    helps = [
        f"{seen.pip} list | grep -iE 'cudnn|ctranslate2|onnxruntime|^torch '",
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; "
        "print(torch.backends.cudnn.version())'",
    ]
    if major in ("8", "9"):
        helps += _of_one_major(seen, major)
        if not _ONLY_8.match(soname) or _goes_with_torch(seen, major):
            helps.append(_WHEELS_ON_PATH.format(python=seen.python))
        notes.append(_CTRANSLATE2)
        if _ONLY_8.match(soname):
            notes.append(
                "Where torch is older than 2.4.0, its cuDNN is 8: then ctranslate2 stays below "
                '4.5.0 ("ctranslate2<4.5"), and nvidia-cudnn-cu12 below 9.'
            )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _of_one_major(seen: Seen, major: str) -> list[str]:
    """Bring what needs cuDNN and the cuDNN of torch to one major version."""
    helps = []
    if _goes_with_torch(seen, major):
        helps.append(f'{seen.pip} install "nvidia-cudnn-cu12=={major}.*"')
    elif major == "8":
        # torch's own cuDNN is 9: what needs 8 is to be newer.
        helps.append(f'{seen.pip} install "ctranslate2>=4.5.0" "torch>=2.4.0"')
    else:
        helps.append(f'{seen.pip} install "ctranslate2<4.5"')
    return helps


def _goes_with_torch(seen: Seen, major: str) -> bool:
    """Whether installing this cuDNN leaves the torch that is there its own: there is one for all.

    Where no torch is told, only the newer one is offered.
    """
    present = seen.place.present
    if present is None:
        return major == "9"
    return present.release in torches_bringing(seen, f"libcudnn.so.{major}")


def no_handle(seen: Seen) -> Answer:
    """``Cannot load symbol cudnnCreate``: what cuDNN says after it did not find a part."""
    cause = (
        f"cuDNN looked for {seen.mention.symbol} in a part of its own that it could not open "
        "before: the line above names that part. The symbol itself is not missing from anything."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=(f"{seen.pip} list | grep -i cudnn", _WHEELS_ON_PATH.format(python=seen.python)),
    )  # fmt: skip


#: The directories of the loader itself.
_SYSTEM_PLACE = re.compile(r"(?:/usr)?/lib(?:64)?/")


def cudnn_mix(seen: Seen) -> Answer:
    """Two releases of cuDNN: one whole in the other's place, or parts of both."""
    detail = seen.mention.detail
    built, found = detail.get("built"), detail.get("found")
    built, found = built or detail.get("built2"), found or detail.get("found2")
    if built and found:
        return _in_its_place(seen, _dotted(built), _dotted(found))
    return _parts_of_two(seen)


def _in_its_place(seen: Seen, built: str, found: str) -> Answer:
    """torch compares the version of its headers with that of the library, and says both."""
    older = _numbers(found) < _numbers(built)
    cause = (
        f"torch was compiled with cuDNN {built}, and a whole other cuDNN, {found}, is loaded in "
        f"place of that: {'an older' if older else 'another'} copy comes before the one that torch "
        "brings."
    )
    folder = detail_folder(seen)
    if folder:
        cause += (
            f" The LD_LIBRARY_PATH of the text names {folder}: that directory has to leave it, or "
            "the program runs without that variable."
        )
    else:
        cause += (
            " It comes from LD_LIBRARY_PATH (a toolkit's or a module's directory), from conda, or "
            "from a wheel of another version that replaced torch's."
        )
    whole = f"{'.'.join(built.split('.')[:2])}.*"
    notes = (
        f"Where the first command works, LD_LIBRARY_PATH is the cause. Without it, pip list shows "
        f"a wheel of cuDNN {found}: the version that python -m pip check names for torch has to "
        "replace that. A torch without a wheel of cuDNN (of conda, or of a build of its own) needs "
        f"cuDNN {whole} or a newer one of that major version where the loader looks.",
        "No extension and no driver has a part in this.",
    )
    return seen.answer(
        VERSIONED, OTHER_COPY, cause, owner="cudnn", direction=NEWER if older else OLDER,
        confidence="high", notes=notes,
        help=(_version_without_path(seen), "echo $LD_LIBRARY_PATH",
              f"{seen.pip} list | grep -i cudnn; {seen.pip} check | grep -i cudnn"),
    )  # fmt: skip


def detail_folder(seen: Seen) -> str:
    """The directory of cuDNN on the LD_LIBRARY_PATH that the text shows; "" for none."""
    return seen.mention.detail.get("on_path", "")


def _version_without_path(seen: Seen) -> str:
    return (
        f"env -u LD_LIBRARY_PATH {seen.python} -c 'import torch; "
        "print(torch.backends.cudnn.version())'"
    )


def _parts_of_two(seen: Seen) -> Answer:
    """Parts of two cuDNN releases in one process."""
    cause = (
        "Parts of two cuDNN releases are in one process. cuDNN's libraries fit those of the very "
        "same release alone, and one part came from another directory than the others: a system "
        "or toolkit copy on LD_LIBRARY_PATH, or a second one that pip or conda added."
    )
    answer = symbol_of_text(seen) if seen.mention.symbol else None
    odd = seen.mention.detail.get("odd", "")
    if odd:
        cause += f" In the text it is {odd}: the other parts lie in another directory."
    file = seen.mention.file or ""
    if not odd and "/" in file:
        cause += _where_from(file, seen.mention.version or "")
        odd = file if _is_outside(file) else ""
    notes: tuple[str, ...] = (
        "Remove the copy that was added, or take it off LD_LIBRARY_PATH: pip's torch brings a "
        "whole cuDNN along. Adding further nvidia packages makes another mix.",
    )
    commands: tuple[str, ...] = (_version_without_path(seen), "echo $LD_LIBRARY_PATH",
                                 f"{seen.pip} list | grep -i cudnn")  # fmt: skip
    if odd and not _SYSTEM_PLACE.match(odd):
        folder = os.path.dirname(odd)
        notes = (
            f"{folder} has to leave LD_LIBRARY_PATH (or the module that puts it there is "
            "unloaded): pip's torch brings a whole cuDNN along. Adding further nvidia packages "
            "makes another mix.",
        )  # fmt: skip
    if _SYSTEM_PLACE.match(odd):
        commands = (
            f"dpkg -S {shlex.quote(odd)} || rpm -qf {shlex.quote(odd)}",
            f"ls -l {shlex.quote(os.path.dirname(odd))}/libcudnn*; echo $LD_LIBRARY_PATH",
            commands[0],
            commands[2],
        )
        notes = (
            "That is the system's own directory, which the loader searches last and without "
            "LD_LIBRARY_PATH: cuDNN asked for a part that its own release does not have, or has "
            "not installed whole, and was given the system's. Remove the package that the first "
            "command names, or bring it to the very release of torch's cuDNN.",
            "On Debian and Ubuntu that package is libcudnn8 or libcudnn9-cuda-12 (apt-get remove), "
            "in NVIDIA's images the variant with -cudnn in its name brings it. Where "
            "LD_LIBRARY_PATH names that directory, it has to leave it.",
        )
    if not odd and not seen.mention.detail.get("conda"):
        commands = (*commands, _again(seen))
        notes = (*notes, _TWO_WHEELS)
    commands = (*commands, _WHICH_PARTS)
    if answer is not None and answer.kind == VERSIONED:
        return replace(
            answer, code=OTHER_COPY, cause=cause, direction=UNKNOWN, notes=notes, help=commands
        )
    return seen.answer(
        VERSIONED, OTHER_COPY, cause, owner="cudnn", direction=UNKNOWN, confidence="high",
        help=commands, notes=notes,
    )  # fmt: skip


#: Said of parts of two releases.
_TWO_WHEELS = (
    "Wheels of cuDNN for two CUDA versions (nvidia-cudnn-cu11, -cu12, -cu13) write into one and "
    "the same directory, nvidia/cudnn/lib, and so do an update that was broken off and the one "
    "before it. The command with --force-reinstall makes that directory whole again, with the "
    "release that torch asks for; of two such wheels the one for another CUDA goes first "
    "(pip uninstall)."
)


def _again(seen: Seen) -> str:
    """Install the wheel of cuDNN again in the version that torch asks for."""
    return (
        f"{seen.pip} install --force-reinstall --no-deps \"$({seen.python} -c 'import "
        'importlib.metadata as m; print(next(r for r in m.requires("torch") if "cudnn" in r)'
        '.split(";")[0])\')"'
    )


#: Each part with its directory, as the loader takes it.
_WHICH_PARTS = "LD_DEBUG=libs python YOUR_SCRIPT.py 2>&1 | grep 'calling init: .*libcudnn'"


def _is_outside(file: str) -> bool:
    """Whether a part lies in no package of Python's."""
    return not any(part in file for part in ("-packages/", "/torch/lib/", "/nvidia/cudnn/"))


def _where_from(file: str, lacking: str) -> str:
    """The two parts that the loader's own words name: the asking one, and the one without."""
    name, folder = file.rsplit("/", 1)[-1], file.rsplit("/", 1)[0]
    other = f", and the {lacking} that is in the process lacks the name" if lacking else ""
    if _is_outside(file):
        return (
            f" In the text {name} is taken from {folder}{other}: that one was loaded before, most "
            "often from torch's own cuDNN."
        )
    return (
        f" In the text {name} is torch's own or a wheel's ({folder}){other}: that one was loaded "
        "before, from the directory that has to go."
    )


def _dotted(text: str) -> str:
    """``8, 9, 2`` as people write it; ``8302`` is 8.3.2, and ``90100`` is 9.1.0."""
    text = re.sub(r"\s*,\s*", ".", text.strip())
    if text.isdigit() and len(text) in (4, 5):
        rest = int(text) % (1_000 if len(text) == 4 else 10_000)
        return f"{text[0]}.{rest // 100}.{rest % 100}"
    return text


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,5}", version)[:3])
