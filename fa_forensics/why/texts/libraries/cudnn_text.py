"""Answers on cuDNN: a part that is not found, parts of two releases, and one in another's place."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.nvidia.places import in_default_path, through_python
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.libraries.brought_text import (
    brought_by_torch,
    torches_bringing,
)
from fa_forensics.why.texts.libraries.cudnn_parts import (
    WHICH_PARTS,
    perhaps_without_part,
    wheel_without_part,
)
from fa_forensics.why.texts.libraries.cudnn_place import (
    dotted,
    in_its_place,
    packages_listed,
    search_path,
    version_without_path,
)
from fa_forensics.why.texts.libraries.cudnn_there import cudnn_there, is_before_cudnn_9
from fa_forensics.why.texts.libraries.wheels_path import wheels_on_path
from fa_forensics.why.texts.symbol_text import symbol_of_text

VERSIONED, OTHER_COPY = "versioned-symbol", "FA204"

#: The cuDNN that a soname is a part of: ``libcudnn_ops.so.9.1.0`` is one of cuDNN 9.
_CUDNN_MAJOR = lazily(r"libcudnn\w{0,30}\.so\.(?P<major>\d{1,2})")
#: Parts that cuDNN 8 has, and that cuDNN 9 has under other names.
_ONLY_8 = lazily(r"libcudnn_\w{1,20}_(?:infer|train)\.so")

#: Where cuDNN and the cuBLAS that it opens lie, below site-packages/nvidia.
_FOLDERS = ("cudnn", "cublas", "cu13")
_CTRANSLATE2 = (
    "ctranslate2 (faster-whisper, WhisperX) brings the head of cuDNN and no parts of it: from "
    "4.5.0 on it needs those of cuDNN 9, before those of cuDNN 8. In a process with torch both "
    "have to need the same: torch has cuDNN 9 since 2.4.0."
)


def cudnn_part(seen: Seen, soname: str) -> Answer:
    """A part of cuDNN that is not found: of the release that is there, or of another one."""
    if (there := cudnn_there(seen, soname)) is not None:
        return there
    found = _CUDNN_MAJOR.match(soname)
    major = found["major"] if found else ""
    before_9 = is_before_cudnn_9(seen)
    cause = (
        f"cuDNN loads its parts at run time, by name, and {soname} is not on the loader's path: "
        "cuDNN is installed in part, or in another place than the one that was loaded first."
    )
    if _ONLY_8.match(soname) and before_9:
        cause = (
            f"{soname} is a part of cuDNN 8, which torch before 2.4.0 brings, as a wheel of "
            "NVIDIA's or in torch/lib. cuDNN loads its parts at run time, by name, and CTranslate2 "
            "and ONNX Runtime look for it so too: the directory that has it is not on the loader's "
            "path, or cuDNN is not installed whole."
        )
    elif _ONLY_8.match(soname):
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
    toolkit = (seen.versions.get("cuda") or "").strip()
    if seen.torch and toolkit and toolkit != (seen.torch_cuda or ""):
        notes.append(f"The CUDA {toolkit} of the machine plays no part: torch brings its own.")
    if major in ("8", "9"):
        helps += _of_one_major(seen, major) if not before_9 or seen.torch else _whole_8(seen)
        if not _ONLY_8.match(soname) or before_9 or _goes_with_torch(seen, major):
            helps.append(wheels_on_path(seen.python, *_FOLDERS))
        notes.append(_CTRANSLATE2)
        if major == "9" and seen.place.present is None:
            notes.append(
                "The command with --force-reinstall installs cuDNN whole again, in the version "
                "that torch asks for: without --force-reinstall pip leaves a damaged one as it is. "
                'Without torch it is pip install --force-reinstall "nvidia-cudnn-cu12==9.*".'
            )
        if _ONLY_8.match(soname) and not before_9:
            notes.append(
                "Where torch is older than 2.4.0, its cuDNN is 8: then ctranslate2 stays below "
                '4.5.0 ("ctranslate2<4.5"), and nvidia-cudnn-cu12 below 9.'
            )
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _whole_8(seen: Seen) -> list[str]:
    """cuDNN 8 for the CUDA of the text, where no torch is named."""
    cuda = "12" if seen.versions.get("cuda", "").startswith("12") else "11"
    return [f'{seen.pip} install "nvidia-cudnn-cu{cuda}==8.*"']


def _of_one_major(seen: Seen, major: str) -> list[str]:
    """Bring what needs cuDNN and the cuDNN of torch to one major version."""
    if _goes_with_torch(seen, major):
        return [_again(seen, major)]
    if major == "8":
        # torch's own cuDNN is 9: what needs 8 is to be newer.
        return [f'{seen.pip} install "ctranslate2>=4.5.0" "torch>=2.4.0"']
    return [f'{seen.pip} install "ctranslate2<4.5"']


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
    cause = f"cuDNN looked for {seen.mention.symbol} in a part of its own that it could not open."
    windows = on_windows(seen) or any(one.what == "cuda-dll" for one in seen.paste.mentions)
    folder = "" if windows else " (site-packages/nvidia/cudnn/lib of pip's wheel)"
    if _names_part(seen):
        cause += " The text names that part."
    else:
        cause += (
            " A line before this one says which part that is; the text here ends without it: the "
            f"part is not installed, lies where the loader does not look{folder}, or was found in "
            "another release of cuDNN."
        )
    cause += " The symbol itself is not missing from anything."
    if windows:
        return seen.answer(
            "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
            help=("where cudnn*64_*.dll",
                  f'{seen.pip} list | findstr /i "cudnn ctranslate2 onnxruntime torch"'),
            notes=(_OF_WINDOWS,),
        )  # fmt: skip
    return seen.answer(
        "missing-library", "FA202", cause, owner="cudnn", direction=NONE, confidence="medium",
        help=(f"{seen.pip} list | grep -i cudnn", wheels_on_path(seen.python, *_FOLDERS),
              "LD_DEBUG=libs python YOUR_SCRIPT.py 2>&1 | grep libcudnn"),
        notes=(
            "The command with export goes before the program starts, in the same shell: the "
            "variable is read at the start alone. The last command lists which parts are looked "
            "for, and where.",
        ),
    )  # fmt: skip


_OF_WINDOWS = (
    "On Windows cuDNN's DLLs are found beside torch (torch\\lib, after import torch) and in the "
    "directories of PATH: all parts have to be of one release, and of the major version that what "
    "asks for them was built with."
)


def _names_part(seen: Seen) -> bool:
    """Whether the text has the line with the part that was looked for, too."""
    return any(
        "libcudnn" in (one.library or one.line) or one.what == "cuda-dll"
        for one in seen.paste.mentions
    )


def cudnn_mix(seen: Seen) -> Answer:
    """Two releases of cuDNN: one whole in the other's place, or parts of both."""
    detail = seen.mention.detail
    built, found = detail.get("built"), detail.get("found")
    built, found = built or detail.get("built2"), found or detail.get("found2")
    if built and found:
        return in_its_place(seen, dotted(built), dotted(found))
    return _parts_of_two(seen)


def _of_condas_python(seen: Seen, odd: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) where conda's Python finds one of the parts by its own search path."""
    folder = os.path.normpath(os.path.dirname(odd))
    note = (
        f"{folder} is conda's own directory, which its Python finds by its own search path "
        "before LD_LIBRARY_PATH counts. One of the two cuDNN is to go: conda's package (conda "
        "remove cudnn) where torch is pip's, which brings a whole cuDNN along; pip's wheel "
        "where torch is conda's."
    )
    own = f"conda list -p {shlex.quote(os.path.dirname(folder))} | grep -iE 'cudnn|torch'"
    return (f"{own}; {seen.pip} list | grep -iE 'cudnn|^torch'", search_path(seen)), (note,)


def _of_the_system(odd: str, listed: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) where one of the parts lies in the system's own directory."""
    commands = (
        f"dpkg -S {shlex.quote(odd)} || rpm -qf {shlex.quote(odd)}",
        f"ls -l {shlex.quote(os.path.dirname(odd))}/libcudnn*; echo $LD_LIBRARY_PATH",
        listed[0],
        listed[2],
    )
    notes = (
        "That is the system's own directory: either LD_LIBRARY_PATH names it, so that it goes "
        "before torch's own and has to leave that variable, or the loader came to it last, "
        "since the cuDNN in the process did not find that part beside itself. In both cases "
        "the package that the first command names, removed or brought to the very release of "
        "torch's cuDNN, is no longer in the way.",
        "On Debian and Ubuntu that package is libcudnn8 or libcudnn9-cuda-12 (apt-get remove), "
        "in NVIDIA's images the variant with -cudnn in its name brings it.",
    )
    return commands, notes


def _parts_of_two(seen: Seen) -> Answer:
    """Parts of two cuDNN releases in one process."""
    lacking = wheel_without_part(seen) if not seen.mention.symbol else None
    if lacking is not None:
        return lacking
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
    listed = packages_listed(seen, f"{seen.pip} list | grep -i cudnn")
    commands: tuple[str, ...] = (version_without_path(seen), search_path(seen), listed)
    if odd and not in_default_path(odd):
        folder = os.path.dirname(odd)
        notes = (
            f"{folder} has to leave LD_LIBRARY_PATH (or the module that puts it there is "
            "unloaded): pip's torch brings a whole cuDNN along. Adding further nvidia packages "
            "makes another mix.",
        )  # fmt: skip
    if odd and through_python(odd):
        commands, notes = _of_condas_python(seen, odd)
    if in_default_path(odd):
        commands, notes = _of_the_system(odd, commands)
    if not odd and not seen.mention.detail.get("conda"):
        commands = (*commands, SYSTEM_COPY, _again(seen))
        notes = (*notes, _TWO_WHEELS, *perhaps_without_part(seen))
    commands = (*commands, WHICH_PARTS)
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


def _again(seen: Seen, major: str = "") -> str:
    """Install the wheel of cuDNN again in the version that torch asks for, as far as known."""
    own = brought_by_torch(seen, f"libcudnn.so.{major}") if major else None
    asked = (
        f"$({seen.python} -c 'import importlib.metadata as m; print(next(r for r in "
        'm.requires("torch") if "cudnn" in r).split(";")[0])\')'
    )
    return f'{seen.pip} install --force-reinstall --no-deps "{own or asked}"'


#: What the system's own directories have, which the loader searches without any variable.
SYSTEM_COPY = "ldconfig -p | grep libcudnn"


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
