"""The extension file itself is not there: never built, or asked for under another name."""

from __future__ import annotations

import re
import shlex

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.commands import needed_libraries
from fa_forensics.why.ways.signs import jit_folder, remove_folder

#: The machine in an extension's file name: ``.cpython-311-x86_64-linux-gnu.so``.
_MACHINE = lazily(r"\.cpython-\d+\w*-(?P<machine>[a-z0-9_]+)-linux-\w+\.so$")


def missing_own_file(seen: Seen) -> Answer:
    """``.../NAME.so: cannot open shared object file`` of the extension itself."""
    path = seen.mention.file or seen.mention.library or ""
    if "libbitsandbytes_" in path:
        from fa_forensics.why.texts.libraries.bitsandbytes_files import own_library

        answer = own_library(seen, path)
        if answer is not None:
            return answer
    folder = jit_folder(path)
    if folder is not None:
        return _not_built(seen, path, folder)
    named = _MACHINE.search(path)
    machine = _machine(seen)
    if named is not None and machine is not None and machine != named["machine"]:
        return _other_machine(seen, path, named["machine"], machine)
    shown = seen.mention.detail.get("for_machine")
    if shown and (machine is None or machine != shown or seen.mention.detail.get("host")):
        return _there_for_another(seen, path, shown)
    return _absent(seen, path, named["machine"] if named else None)


def _machine(seen: Seen) -> str | None:
    """The processor of the machine that the text is from, as file names write it."""
    told = seen.mention.detail.get("host") or ""
    told = told or seen.versions.get("machine") or seen.versions.get("os") or ""
    if re.search(r"aarch64|arm64|jetson|jetpack|grace", told, re.IGNORECASE):
        return "aarch64"
    if re.search(r"x86[_-]64|amd64", told, re.IGNORECASE):
        return "x86_64"
    if not seen.elsewhere and seen.place.environment is not None:
        return seen.place.environment.machine
    return None


#: What the directories of torch's JIT cache are called by: Python and the CUDA of torch.
_BUILT_BY = lazily(r"/?py3\d{1,2}_(?P<label>cu(?P<cuda>\d{2,3})|cpu)/")
_RANKS = lazily(r"\brank|deepspeed|torchrun|torch\.distributed|nproc|\bworld_size", re.I)


def _not_built(seen: Seen, path: str, folder: str) -> Answer:
    mention = seen.mention
    around = f"{path} {mention.line} {mention.stream} {' '.join(seen.versions)}"
    several = "ranks" in mention.detail or _RANKS.search(around) is not None
    where = "on another rank or above in the log" if several else "above in the log"
    name = path.rsplit("/", 1)[-1]
    cause = (
        f"{name} is a JIT build of torch that never came to be: its compilation failed earlier, "
        f"{where}, in this run or in one before. The first error of ninja, nvcc or ld (cannot find "
        "-l..., fatal error) is the cause, not this line."
    )
    built = _BUILT_BY.search(path)
    label = f"CUDA {built['cuda'][:-1]}.{built['cuda'][-1]}" if built and built["cuda"] else ""
    own = seen.torch_cuda or ""
    if built and label and own and label != f"CUDA {own}":
        cause += (
            f" The directory is of a torch for {label} ({built['label']}), and the text has one "
            f"for CUDA {own}: it was another torch, or another environment, that built there, or "
            "the log is of that one."
        )
    elif built and own and not label:
        cause += (
            " The directory is of a torch without CUDA (cpu), and the text has one for CUDA "
            f"{own}: the log is of another environment."
        )
    toolkit = f"CUDA {own}" if own else label or "torch's CUDA"
    helps = [f"{remove_folder(folder)}"]
    if not folder.startswith(("/", "~")):
        helps = [f"rm -r ~/.cache/{shlex.quote(folder.removeprefix('./'))}"]
    helps += ["nvcc --version; g++ --version; ninja --version; echo CUDA_HOME=$CUDA_HOME",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
              "grep -nE 'ninja|error:|cannot find' YOUR_LOG | head"]  # fmt: skip
    notes = [
        "The directory keeps the half-made build and its lock; once the cause is mended, remove it "
        "and start again. Paste the lines of that first error for an answer.",
        f"Such a build needs nvcc of {toolkit} (images of NVIDIA and of PyTorch have it in the "
        "variant -devel, not in -runtime), a C++ compiler that this nvcc takes, and ninja.",
    ]
    if re.search(r"nvdiffrast|diffrast", name):
        notes.append(
            "nvdiffrast's plug-in for OpenGL needs the headers of EGL and OpenGL too (apt-get "
            "install libegl1-mesa-dev libgl1-mesa-dev); RasterizeCudaContext does without them."
        )
    if not folder.startswith(("/", "~")):
        notes.append(
            "The cache lies in ~/.cache/torch_extensions, or where TORCH_EXTENSIONS_DIR says."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="extension", direction=NONE, confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _other_machine(seen: Seen, path: str, named: str, machine: str) -> Answer:
    cause = (
        f"The file that is asked for carries {named} in its name, and this machine is {machine}: "
        "the package spells the name out instead of letting Python find it, or a wheel for "
        f"{named} was unpacked here. A file with {machine} in its name may lie beside it."
    )
    from fa_forensics.why.texts.files.machine_text import other_machine_remedy

    helps, notes = other_machine_remedy(seen, seen.package)
    return seen.answer(
        "wrong-machine", "FA404", cause, owner="extension", direction=NONE, confidence="high",
        help=(f"ls -l {_pattern(path)}", f"{seen.pip} debug --verbose | head -20", *helps),
        notes=notes,
    )  # fmt: skip


def _there_for_another(seen: Seen, path: str, shown: str) -> Answer:
    """A file that is there, for another processor: glibc passes it over and says "No such file".

    elf/dl-load.c of glibc, open_verify: another e_machine is skipped with ENOENT.
    """
    from fa_forensics.why.texts.files.machine_text import host_words, other_machine_remedy

    host = host_words(seen)
    name = path.rsplit("/", 1)[-1]
    cause = (
        f"{name} is there, and by the text it is for {shown}: the loader passes a library of "
        "another processor over and then says that there is no such file. It is not missing"
    )
    cause += f"; the text is from {host}." if host else ", unless this machine is one of that kind."
    helps, notes = other_machine_remedy(seen, seen.package)
    return seen.answer(
        "wrong-machine", "FA101", cause, owner=seen.package or "extension", direction=NONE,
        confidence="high" if host else "medium",
        help=(f"uname -m; file {_pattern(path)}", *helps), notes=notes,
    )  # fmt: skip


def _absent(seen: Seen, path: str, machine: str | None) -> Answer:
    name = path.rsplit("/", 1)[-1]
    cause = (
        f"{name} is the extension itself, and there is no such file. Two causes fit: the "
        "installation left it out or is not whole, or the file is there under another name"
    )
    arm = (seen.mention.detail.get("host") or "") in ("aarch64", "arm64", "arm", "armv7l")
    cause += (
        f" (this one is for {machine}: on another processor, or in another Python, it is called "
        "otherwise)."
        if machine
        else "."
    )
    cause += " The first command tells them apart."
    if arm and machine is None:
        cause += (
            " A file that is there for another processor is said to be missing too, and this "
            "machine is no x86-64 one: what file(1) says of it counts."
        )
    return seen.answer(
        "damaged-file", "FA880", cause, owner="extension", direction=NONE, confidence="medium",
        help=(f"ls -l {_pattern(path)} ; uname -m", *_again(seen),
              needed_libraries((path,), "'not found'")),
    )  # fmt: skip


def _pattern(path: str) -> str:
    """The file under whatever suffix, for ls."""
    stem = re.sub(r"(?:\.cpython-[\w-]+|\.abi3)?\.so[.\d]*$", "", path)
    stem = stem if stem.startswith("/") and "..." not in stem else "/path/to/" + stem.split("/")[-1]
    return re.sub(r"[^\w./+-]", "?", stem) + "*.so"


def _again(seen: Seen) -> tuple[str, ...]:
    from fa_forensics.rules.remedy import rebuild_command, row_of

    name = seen.package
    if name is None:
        return ()
    python = "python" if seen.elsewhere or not seen.place.python else seen.place.python
    return (rebuild_command(python, name, "", row_of(name)),)
