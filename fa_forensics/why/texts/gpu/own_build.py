"""How what failed on a GPU is built again: by pip, in a project's own directory, or not at all."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.build_archs import operator_of_kernel, own_list, own_lists
from fa_forensics.facts.gpus import Gpu, capability_text
from fa_forensics.rules.gpu_remedy import Build, compiled_as
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.build_targets import the_list, with_list
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import jobs_of, pip_name, raw_python, version_of

_UNKNOWN = (
    "X.Y is the GPU's compute capability, as the first command prints it: a build from source "
    "with it in the list has code for the GPU, where the kernels are written for it. Where "
    "torch's own list does not cover the GPU, another torch comes first."
)
_WITHOUT_DOT = (
    "XY is the GPU's compute capability without its dot, as the first command prints it: a build "
    "from source with it in the list has code for the GPU, where the kernels are written for it. "
    "Where torch's own list does not cover the GPU, another torch comes first."
)
_SAME_RELEASE = "Where torch's own list does not cover the GPU, another torch comes first."


def operator(seen: Seen) -> str | None:
    """The operator whose function prints its own name, or the project that has it in the text.

    Projects compile such in a directory of their own.
    """
    prints = seen.mention.detail.get("prints")
    if not prints:
        return None
    return seen.mention.detail.get("project") or operator_of_kernel(prints)


def in_its_directory(seen: Seen) -> bool:
    """Whether a project's own directory is what is built, and no package of an index."""
    return operator(seen) is not None or bool(seen.mention.detail.get("prints"))


def build_in_directory(seen: Seen, value: str) -> tuple[str, ...]:
    """Take what an earlier build left away and compile again, in the project's directory."""
    folder = seen.mention.detail.get("folder", "")
    # Two names at least: build/ is removed there, which is not to be done in / or ~.
    told = re.fullmatch(r"[\w./~][\w./~-]{0,299}", folder) and re.search(r"\w/[\w-]", folder)
    place = folder if told else "DIRECTORY_WITH_ITS_SETUP_PY"
    if on_windows(seen):
        build = f'set "TORCH_CUDA_ARCH_LIST={value}"'
        return f"cd {place}", "rmdir /s /q build", build, "python setup.py build install"
    go = f"cd {place} && rm -rf build *.egg-info"
    return (f'{go} && TORCH_CUDA_ARCH_LIST="{value}" {seen.python} setup.py build install',)


def directory_notes(seen: Seen) -> tuple[str, ...]:
    """What to know of such a build, and of one that compiled nothing."""
    notes = [*idle(seen)]
    if in_its_directory(seen):
        notes.append(
            "The message is printed by the operator's own code, which a project compiles from a "
            "directory of its source (ops, or where its setup.py or make.sh is). A package "
            "that holds a copy of it (mmcv has some) prints the same line."
        )
    return tuple(notes)


def idle(seen: Seen) -> tuple[str, ...]:
    """``ninja: no work to do.``: the objects of an earlier build were taken."""
    if "idle" not in seen.mention.detail:
        return ()
    return (
        "ninja found no work to do: nothing was compiled, the objects of an earlier build were "
        "taken again, and a new list of targets does not change these. The directory build/ "
        "goes first.",
    )


def again_for_unknown(seen: Seen, package: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) to build again where the text does not name the GPU."""
    if package is None and in_its_directory(seen):
        return build_in_directory(seen, "X.Y"), (_UNKNOWN, *directory_notes(seen))
    row = row_of(package) if package else None
    if row is None or package is None:
        more = (*listed(seen), _UNKNOWN, *origin(seen, package), *idle(seen))
        return with_list(seen, "X.Y", package), more
    if own_lists(package):
        return _by_own_list(seen, package, row)
    if row.get("by_cuda"):
        return (), (
            f"{package} is published built, for each release and each CUDA of torch: torch and "
            f"{package} of one release, from the same index, are the way out.",
            _SAME_RELEASE,
        )
    if not row["source_build"]:
        return (rebuild_command(raw_python(seen), package, "", row),), (
            f"{package} is published built only, so that pip compiles nothing and "
            "TORCH_CUDA_ARCH_LIST does nothing: a newer release has code for more GPUs, where the "
            "project serves the GPU at all; else it is a build of its source repository.",
            _SAME_RELEASE,
        )
    if on_windows(seen):
        more = (*listed(seen), _UNKNOWN, *instead_of(package), *idle(seen))
        return with_list(seen, "X.Y", package), more
    variable = str(row.get("arch_variable") or "TORCH_CUDA_ARCH_LIST")
    value = "XY" if row.get("arch_variable") else "X.Y"
    said = _UNKNOWN if value == "X.Y" else _WITHOUT_DOT
    version = version_of(seen, package) or ""
    command = rebuild_command(raw_python(seen), package, version, row, jobs_of(seen))
    more = (*listed(seen), said, *instead_of(package), *idle(seen))
    return (f'{variable}="{value}" {command}',), more


def unnamed_again(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """The command that builds what has the kernel for a GPU, where no text names the package."""
    if gpu.capability < _WRITTEN_FOR or the_list(seen):
        return ()
    return with_list(seen, capability_text(gpu.capability), None)


#: Kernels of today are seldom written for older GPUs: a build for those is a note alone.
_WRITTEN_FOR = (7, 5)


def listed(seen: Seen) -> tuple[str, ...]:
    """That the text has a list of targets already, where it does not name the GPU."""
    if not (told := the_list(seen)):
        return ()
    return (
        f"TORCH_CUDA_ARCH_LIST in the text is {told}. Where that has the GPU that the first "
        "command prints, to build with it once more changes nothing: the file that is loaded is "
        "then not of that build (an older one, or one of an index), or setup.py passes its own "
        "-gencode list, which is to be edited.",
    )


def instead_of(package: str | None) -> tuple[str, ...]:
    """What a program can take in a package's place until it has code for the GPU."""
    if package != "xformers":
        return ()
    return (
        "Until then the program runs without xformers: torch's own attention takes its place "
        "(ComfyUI: --use-pytorch-cross-attention; stable-diffusion-webui: --opt-sdp-attention in "
        "place of --xformers; diffusers: no enable_xformers_memory_efficient_attention).",
    )


def origin(seen: Seen, package: str | None) -> tuple[str, ...]:
    """What PACKAGE stands for in a command, where the import's name is no name for pip."""
    if package is None or pip_name(seen, package) is not None:
        return ()
    return (
        f"PACKAGE is what {package} was installed from: the address of its repository (git+https), "
        "the directory of its source, or its name at the index.",
    )


def again_by_name(
    seen: Seen, gpu: Gpu, package: str | None, value: str | None = None
) -> tuple[str, ...]:
    """The build of a package that no table has, for a GPU that is told."""
    if package is None or row_of(package) is not None:
        return ()
    where = Build(raw_python(seen), None, seen.torch_cuda, None)
    return with_list(seen, value or compiled_as(where, gpu.capability), package)


def _by_own_list(
    seen: Seen, package: str, row: dict[str, object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    version = version_of(seen, package) or ""
    used = own_list(package, version)
    entries = used.targets if used is not None else ()
    shown = ", ".join(
        f"{capability_text(one.capability)} (CUDA {one.since} or newer"
        f"{f' up to {one.last}' if one.last else ''})"
        for one in entries
    )
    command = rebuild_command(raw_python(seen), package, version, row, jobs_of(seen))
    return (command,), (
        f"TORCH_CUDA_ARCH_LIST has no effect here: {package}'s setup.py passes its own -gencode "
        f"list, and torch then adds none. That of {version or 'the newest release'} is: {shown}.",
        "For a GPU that none of these serves, nvcc's own variable adds it: "
        f"{shlex.quote('NVCC_APPEND_FLAGS=-gencode arch=compute_XY,code=sm_XY')} in the "
        "environment of the build, with XY as the first command prints it.",
        _SAME_RELEASE,
    )


def lists_gpus_itself(package: str | None) -> bool:
    """Whether a build of a package does not ask which GPUs it sees."""
    row = row_of(package) if package else None
    return bool(package and own_lists(package)) or (row is not None and not row["source_build"])


def build_for(seen: Seen, gpu: Gpu, value: str | None = None) -> tuple[str, ...]:
    """The build in a project's directory, for a GPU that is told."""
    return build_in_directory(seen, value or capability_text(gpu.capability))


def past_the_list(seen: Seen, gpu: Gpu) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) where the list of the text has the GPU, and the file has no code for it.

    torch.utils.cpp_extension adds nothing where the extension's own flags have an architecture.
    """
    here = capability_text(gpu.capability)
    number = here.replace(".", "")
    flags = f"-gencode arch=compute_{number},code=sm_{number}"
    told = (
        f"TORCH_CUDA_ARCH_LIST in the text has {here} already, so that setting it again changes "
        "nothing. Either the file that is loaded is not of that build (an older one, or one of an "
        "index), or setup.py passes its own -gencode list, and torch then adds none of the "
        "variable's: that list is to be edited, or NVCC_APPEND_FLAGS, nvcc's own variable, adds "
        "the target.",
    )
    look = "grep -nE 'gencode|arch=' setup.py"
    if on_windows(seen):
        return ("findstr /n gencode setup.py", f'set "NVCC_APPEND_FLAGS={flags}"'), told
    if in_its_directory(seen):
        (again,) = build_in_directory(seen, here)
        return (look, again.replace("TORCH_CUDA_ARCH_LIST=", f"NVCC_APPEND_FLAGS='{flags}' "
                                    "TORCH_CUDA_ARCH_LIST=")), told  # fmt: skip
    return (look,), told


def _minor(version: str) -> tuple[int, int] | None:
    """The minor version of a release, to compare; None for none."""
    found = re.match(r"(\d{1,2})\.(\d{1,3})", version)
    return (int(found[1]), int(found[2])) if found is not None else None


def windows_wheel(seen: Seen) -> tuple[str, ...]:
    """bitsandbytes for Windows from the package index, in place of a build of somebody's."""
    gone = (f"{seen.pip} uninstall -y bitsandbytes-windows bitsandbytes",)
    other = "bitsandbytes-windows" in " ".join((seen.mention.line, *seen.paste.places)).lower()
    other = other or "named:bitsandbytes-windows" in seen.versions
    again = f"{seen.pip} install --upgrade --no-deps --no-cache-dir bitsandbytes"
    torch = _minor(seen.torch or "")
    if torch is not None and torch < (2, 4):
        again += "==0.45.5" if torch >= (2, 0) else "==0.43.1"
    return (*(gone if other else ()), again)


def windows_notes(seen: Seen, gpu: Gpu | None) -> tuple[str, ...]:
    """What to know of bitsandbytes on Windows: its DLLs by CUDA, and the torch beside them.

    The DLLs are those in the wheels of 0.43.1, 0.45.5 and 0.50.2; what these ask of torch is in
    their metadata. For the least GPUs: .github/scripts/build-cuda.sh of bitsandbytes.
    """
    number = f"{gpu.capability[0]}{gpu.capability[1]}" if gpu is not None else "XY"
    option = str((row_of("bitsandbytes") or {}).get("capability_option", ""))
    said = "" if gpu is not None else " (XY is the GPU's compute capability without its dot)"
    old: tuple[str, ...] = ()
    if gpu is None or (6, 0) <= gpu.capability < (7, 0):
        old = (
            "The DLL is chosen by torch's CUDA: those for CUDA 11.8 to 12.6 have code for compute "
            "capability 6.0 and later, those for 12.8 and newer have none below 7.0. A GTX 10 "
            "takes a torch from the index whose address ends in whl/cu118 or whl/cu126.",
        )
    return (
        "bitsandbytes has wheels for Windows of its own since "
        f"{(row_of('bitsandbytes') or {}).get('windows_since')}, for more GPUs than the DLLs that "
        "others had made before (bitsandbytes-windows): the command takes the newest, and with "
        "--no-deps leaves torch as it is (pip would put the package index's in its place, which "
        "on Windows has no CUDA).",
        "The newest asks for torch 2.4 or later. For torch 2.0 to 2.3 it is bitsandbytes==0.45.5, "
        "for torch before 2.0 bitsandbytes==0.43.1, whose DLLs begin with CUDA 11.7: a torch for "
        "CUDA 11.6 has to be changed for one of CUDA 11.7 or 11.8 first.",
        *old,
        "The program runs without it where its optimizer is set to one that is not 8-bit (AdamW "
        "in place of AdamW8bit).",
        f"From source on Windows: cmake -DCOMPUTE_BACKEND=cuda {option}={number} -S . and cmake "
        f"--build . --config Release, then pip install . there{said}.",
    )
