"""What a text adds to a missing name of a CUDA library: conda's packages, and who compiled."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.cuda_names import counted_by, cuda_name_gone, cuda_name_since
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import is_cuda, owner_of_library, title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, OLDER
from fa_forensics.why.nvidia.cuda_age import OF_NVCC, of_nvcc_commands
from fa_forensics.why.nvidia.cuda_origin import EITHER, UNLINKED
from fa_forensics.why.nvidia.without_torch import row_without_torch
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import first_by_line
from fa_forensics.why.texts.libraries.needing import package_needing, rebuild_commands

#: Libraries whose wheels, and conda packages, have the number of the CUDA toolkit itself.
_NUMBERED_AS_CUDA = ("cudart", "nvrtc", "nvJitLink", "cupti")
#: And those whose wheels have it since CUDA 12 (nvidia-cublas-cu12 12.4.5.8 is CUDA 12.4's).
_NUMBERED_SINCE_12 = ("cublas", "cublasLt")


def with_text(answer: Answer, seen: Seen) -> Answer:
    """An answer on a CUDA library's name, with what the text says of conda and of the compiler."""
    if answer.provider is not None or answer.owner is None:
        return answer
    from fa_forensics.why.texts.libraries.doubted_age import doubted

    return doubted(_with_text(answer, seen), seen)


def _with_text(answer: Answer, seen: Seen) -> Answer:
    if {EITHER, OF_NVCC} & set(answer.notes):
        from fa_forensics.why.texts.libraries.cuda_age_text import by_its_age

        return _of_foreign(by_its_age(answer, seen), seen)
    if UNLINKED in answer.notes:
        from fa_forensics.why.texts.libraries.linked_again import linked_again

        return linked_again(answer, seen)
    if answer.code != "FA204":
        return answer
    if "flag:torch-source" in seen.versions:
        from fa_forensics.why.texts.libraries.own_torch_cuda import of_own_torch

        if (own := of_own_torch(answer, seen)) is not None:
            return own
    if seen.mention.detail.get("paddle") and "/torch/lib/" in (seen.mention.file or ""):
        from fa_forensics.why.texts.python.two_frameworks import nccl_of_paddle

        return nccl_of_paddle(answer, seen)
    if seen.mention.detail.get("conda"):
        from fa_forensics.why.texts.libraries.conda_torch_text import of_conda_torch

        return _without_torch(of_conda_torch(answer, seen), seen)
    if seen.mention.detail.get("board") and seen.mention.file:
        return _of_board(answer, seen)
    if answer.direction == OLDER:
        return _compiled_again(answer, seen)
    from fa_forensics.why.texts.libraries.cuda_copies_text import with_its_copy
    from fa_forensics.why.texts.libraries.newer_copy_text import with_newer_copy

    answer = with_its_copy(answer, seen)
    answer = _without_torch(_wheel_taken(_compiled(answer, seen), seen), seen)
    from fa_forensics.why.texts.libraries.build_env_text import in_build_environment

    isolated = in_build_environment(answer, seen)
    if isolated is not None:
        return isolated
    from fa_forensics.why.texts.libraries.first_use import with_first_use

    return with_first_use(with_newer_copy(answer, seen), seen)


#: Said where a file is compiled again.
_CLEAN = (
    "What an earlier try compiled (build/, _ext/, *.so, *.o) goes before the next one; a path to "
    "nvcc that a makefile or setup.py has written in counts more than PATH."
)


def _of_foreign(answer: Answer, seen: Seen) -> Answer:
    """A package that does not link torch: by the CUDA that the text has, with its own wheels."""
    row = row_without_torch(seen.mention.file or "", seen.mention.detail.get("by", ""))
    since = cuda_name_since(answer.owner or "", answer.symbol or "")
    if row is None or since is None:
        return answer
    title, toolkit = row["title"], (seen.versions.get("cuda") or "").strip()
    cause = (
        f"The name came with {counted_by(answer.owner or '')} {since}. The file is of {title}, "
        f"whose wheels list {title_of(answer.owner or '')}: the copy that is loaded is most likely "
        "older than that, one of conda's cudatoolkit, of torch or of another toolkit that was "
        "loaded first. Only where the file does not list it (the first command) is none loaded."
    )
    if re.match(r"\d{1,2}\.\d", toolkit) and parse_cuda(toolkit) >= parse_cuda(since):
        cause += (
            f" The text has CUDA {toolkit}, which has the name: that toolkit's copy is not the one "
            "in the process."
        )
    wheels = row.get("packages", {})
    own = (seen.torch_cuda or toolkit or since).split(".")[0]
    helps = list(answer.help)
    if own in wheels:
        at = len(helps) - 1
        helps[at:at] = [
            f"{seen.pip} uninstall -y {row['list']} {' '.join(wheels.values())} && "
            f"{seen.pip} install {wheels[own]}"
        ]
    helps.insert(1, "echo $LD_LIBRARY_PATH; conda list | grep -iE 'cudatoolkit|cudart'")
    return replace(
        answer, kind="versioned-symbol", code="FA204", cause=cause, direction=NEWER,
        confidence="medium", help=tuple(helps), notes=tuple(n for n in answer.notes if n != EITHER),
    )  # fmt: skip


def _of_board(answer: Answer, seen: Seen) -> Answer:
    """On a Jetson CUDA and cuDNN are JetPack's, and torch's wheel is for one JetPack."""
    title = title_of(answer.owner or "")
    asked = seen.mention.version or f"the library of {title}"
    since = cuda_name_since(answer.owner or "", answer.symbol or "")
    cudnn = answer.owner == "cudnn"
    there = (seen.mention.detail if cudnn else seen.versions).get("cudnn" if cudnn else "cuda", "")
    came = f" The name came with {counted_by(answer.owner or '')} {since}." if since else ""
    told = f" The text has {counted_by(answer.owner or '')} {there}." if there else ""
    cause = (
        f"On a Jetson torch takes {title} from JetPack, and {asked} there lacks this name: it is "
        f"older than the one that the file was linked with.{came}{told} The file is a build for a "
        "newer JetPack than the board has: NVIDIA's wheel of torch for the JetPack that is there "
        "has to replace it, or the board gets the newer JetPack."
    )
    stem = re.sub(r"^lib|\.so.*$", "", seen.mention.version or "") or (answer.owner or "cuda")
    return replace(
        answer, cause=cause, direction=NEWER, confidence="medium",
        help=("cat /etc/nv_tegra_release; dpkg -l | grep -iE 'nvidia-jetpack|cudnn|cuda-toolkit'",
              f"ldconfig -p | grep {stem}",
              f"{seen.pip} list | grep -iE '^torch'"),
        notes=(
            "Wheels of the package index do not fit a Jetson, and no single library is to be "
            "replaced there: CUDA, cuDNN and TensorRT come with one JetPack together. In a "
            "container the image has to be one for the board's release (L4T).",
        ),
    )  # fmt: skip


def _compiled_again(answer: Answer, seen: Seen) -> Answer:
    """A file that was compiled with older headers: the package is built again."""
    gone = cuda_name_gone(answer.owner or "", answer.symbol or "")
    if gone is not None and gone.nvcc:
        there = (seen.torch_cuda or seen.versions.get("cuda") or "").strip()
        told = f" The text has CUDA {there}." if there else ""
        file = (seen.mention.file,) if seen.mention.file else ()
        helps = of_nvcc_commands(file, seen.python)
        return replace(
            answer, cause=answer.cause + told, help=(*helps, *rebuild_commands(seen), *answer.help),
            notes=(*answer.notes, _CLEAN),
        )  # fmt: skip
    row = row_without_torch(seen.mention.file or "", seen.mention.detail.get("by", ""))
    name = str(row["list"]) if row is not None else package_needing(seen)
    if name is None:
        return answer
    # The same release again: the newest one need not fit a system of that age.
    same = f"$({seen.pip} show {name} | sed -n 's/^Version: //p')"
    same = seen.versions.get(f"pkg:{name}", "") or same
    again = (
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --no-binary {name} "
        f'"{name}=={same}"'
    )
    commands = (again,) if row is not None else rebuild_commands(seen)
    title = title_of(answer.owner or "")
    look = f"{seen.pip} list | grep -iE '{name}'; ls -l /usr/local/cuda*/include/cudnn*.h"
    return replace(
        answer, help=(look, *commands, *answer.help),
        notes=(
            *answer.notes,
            f"Without --no-cache-dir pip installs the file that it compiled before. A wheel of "
            f"{name} that is made for the {title} and the CUDA that are there is the other way "
            "out.",
        ),
    )  # fmt: skip


def _wheel_taken(answer: Answer, seen: Seen) -> Answer:
    """The text shows that the copy of a wheel is taken: that wheel is the old one."""
    folder = seen.mention.detail.get("copy", "")
    commands = [c for c in answer.help if " install " in c]
    if not folder or answer.direction != NEWER or not commands:
        return answer
    first = [c for c in answer.help if f"nvidia-{folder.replace('_', '-')}" in c]
    if not first:
        return answer
    cause = answer.cause + (
        f" The text shows that the copy in site-packages/nvidia/{folder} is taken: that wheel is "
        "the one that is too old, and a newer copy of the system does not count."
    )
    kept = [c for c in answer.help if c not in first and "env -u" not in c]
    return replace(answer, cause=cause, help=(*first, *kept))


def _without_torch(answer: Answer, seen: Seen) -> Answer:
    """The file that fails is of a package that does not link torch: that is what to import."""
    by = seen.mention.detail.get("by", "")
    module = by if by and row_without_torch("", by) is not None else ""
    found = _PACKAGE.search(seen.mention.file or "")
    if not module and found is not None and found["name"] not in ("torch", "nvidia"):
        module = f"torch, {found['name']}"
    if not module:
        return answer
    end = f"import {module}'"
    return replace(answer, help=tuple(_IMPORT_TORCH.sub(end, text) for text in answer.help))


_IMPORT_TORCH = lazily(r"\bimport\storch'$")
#: The package that a file is installed with.
_PACKAGE = lazily(r"-packages/(?P<name>[A-Za-z_]\w{1,60})/")


def _compiled(answer: Answer, seen: Seen) -> Answer:
    """The text names the toolkit that compiled: it is the one that knows the name."""
    toolkit = (seen.versions.get("cuda") or "").strip()
    numbered = answer.owner in (*_NUMBERED_AS_CUDA, *_NUMBERED_SINCE_12)
    if not numbered or not re.fullmatch(r"\d{1,2}\.\d{1,2}[\d.]*", toolkit):
        return answer
    if answer.owner in _NUMBERED_SINCE_12 and toolkit.startswith("11."):
        return answer
    file = seen.mention.file or ""
    asking = owner_of_library(file.rsplit("/", 1)[-1])
    if asking is not None and is_cuda(asking):
        return answer  # a library of NVIDIA, which nobody compiles
    if answer.owner == "nvJitLink" and not file:
        return answer  # cuSPARSE, cuSOLVER and cuBLAS ask for its names
    lines = first_by_line(answer.interval)
    since = lines.get(toolkit.split(".")[0])
    if since is None or answer.direction != NEWER:
        return answer
    if re.search(r"/(?:torch/lib|nvidia)/", file):
        return answer  # nobody compiled that here
    if parse_cuda(toolkit) < parse_cuda(since):
        return answer
    title = title_of(answer.owner or "")
    cause = answer.cause + (
        f" The text has CUDA {toolkit}, which has the name: what that compiles needs "
        f"{title} of CUDA {since} or newer, and the one that is loaded, most often torch's, is of "
        "an older CUDA."
    )
    notes = (
        f"Two ways lead out: compile with a toolkit that is no newer than torch's CUDA, or take a "
        f"torch for CUDA {since} or newer.",
        f"The name is one of {title}: the NVIDIA driver has no part in this.",
    )
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"
    kept = [c for c in answer.help if "env -u" not in c and " install " not in c]
    return replace(answer, cause=cause, help=(ask, "nvcc --version", *kept),
                   notes=(*notes, *answer.notes))  # fmt: skip
