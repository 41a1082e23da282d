"""NVSHMEM has two halves, a device library that is linked in and a host library that is loaded."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen

_HOST = "libnvshmem_host.so"


def nvshmem_mix(seen: Seen) -> Answer:
    """``NVSHMEM device library version does not match with NVSHMEM host library version``."""
    cause = (
        "NVSHMEM compares its two halves when it starts. Its device library was linked into an "
        "extension (DeepEP, or a kernel of the program) when that was built, and its host library, "
        f"{_HOST}.3, is loaded when the program runs: here they are of two releases. Most "
        "often the extension was built with an NVSHMEM of its own (NVSHMEM_DIR), and torch loads "
        "the one of its wheel, nvidia-nvshmem, before. No symbol is missing, and no GPU or driver "
        "has a part in this."
    )
    wheel = "import nvidia.nvshmem as n; print(list(n.__path__)[0])"
    return seen.answer(
        "versioned-symbol", "FA204", cause, owner="nvshmem", direction=UNKNOWN,
        confidence="medium",
        help=(
            f"{seen.pip} list | grep -iE 'nvshmem|deep.ep|^torch '",
            f"find / -name '{_HOST}*' -not -path '/proc/*' 2>/dev/null; echo $NVSHMEM_DIR",
            f"export NVSHMEM_DIR=$({seen.python} -c '{wheel}')",
        ),
        notes=(
            "One NVSHMEM for both: the extension is built again with NVSHMEM_DIR at the wheel that "
            "torch brings (the command with export, in the shell of the build), and the other copy "
            "leaves LD_LIBRARY_PATH or is removed. A wheel of another release in the place of the "
            "one that torch asks for is the other way, and torch's own use of NVSHMEM then has to "
            "fit that.",
        ),
    )  # fmt: skip


def linked_nvshmem(seen: Seen, answer: Answer) -> Answer:
    """The linker follows libtorch_nvshmem.so to a library that no archive of libtorch has."""
    file = (seen.mention.file or "").rsplit("/", 1)[-1] or "A library on the link line"
    shown = any((m.library or "").startswith(_HOST) for m in seen.paste.mentions)
    cause = (
        f"{file} needs {answer.symbol or 'the name'} of NVSHMEM's host library, {_HOST}.3 (NVSHMEM "
        "is the version of the name, not a file), and the linker does not find that library"
    )
    cause += (
        ": the text has it as not found."
        if shown
        else ", or takes another release of it, most likely."
    )
    cause += (
        " No CUDA toolkit has it: it is a library of its own, which pip's torch gets from a wheel "
        "and the archive of libtorch can be without."
    )
    major = (seen.torch_cuda or "").split(".")[0]
    wheel = f"nvidia-nvshmem-cu{major}" if major in ("12", "13") else "nvidia-nvshmem-cuNN"
    folder = f"$({seen.python} -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])')/lib"
    return replace(
        answer, kind="missing-library", code="FA202", cause=cause, direction=NONE,
        confidence="medium",
        help=(
            f"find / -name '{_HOST}*' -not -path '/proc/*' 2>/dev/null",
            f"{seen.pip} install {wheel}",
            f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
            f"ldd {file} | grep 'not found'" if ".so" in file else "echo $LD_LIBRARY_PATH",
        ),
        notes=(
            "The linker looks for what libraries need in -Wl,-rpath-link and, without that, in "
            "LD_LIBRARY_PATH: the command with export serves the link and the program's start. The "
            "wheel is for the CUDA of libtorch; NVIDIA's packages of NVSHMEM serve too.",
            "The driver and the code that is compiled have no part in this.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"nvshmem-mix": nvshmem_mix}
