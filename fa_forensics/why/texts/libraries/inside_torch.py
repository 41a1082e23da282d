"""A library of CUDA that torch's own wheel has inside, for itself or for all."""

from __future__ import annotations

import shlex

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import (
    on_path,
    there_already,
    torch_again,
    wheel_of,
)
from fa_forensics.why.texts.libraries.needing import (
    import_torch_first,
    needing,
    package_needing,
)
from fa_forensics.why.texts.libraries.wheels_path import toolkit_on_path, torch_lib_on_path
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "missing-library", "FA202"

#: What PyTorch's own builds for CUDA 11 have in torch/lib under its own name.
OWN_NAME = ("cublas", "cudnn")


def has_cuda_inside(seen: Seen, told: str = "") -> bool:
    """Whether torch is one of PyTorch's own builds for CUDA 11 with all of CUDA inside.

    Those up to 2.1 (+cu116, +cu117, +cu118) list no wheel of NVIDIA's; 2.2.0+cu118 does.
    ``told`` is the CUDA of a torch that the text names without it.
    """
    label = seen.versions.get("torch", "").partition("+")[2] or cuda_label(told)
    release = (seen.torch or "").partition("+")[0]
    return label.startswith("cu11") and bool(release) and order_key(release) < order_key("2.2.0")


def in_torch_lib(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    """One of PyTorch's own builds that has the library inside, for itself or for all."""
    who, cuda = needing(seen), seen.torch_cuda or major
    cause = f"{who[0].upper()}{who[1:]} is a build for CUDA {major}, as torch {seen.torch} is."
    notes: tuple[str, ...] = ()
    if owner == "cudnn":
        cause = f"{who[0].upper()}{who[1:]} needs {soname}, which is not found."
        notes = (_CUDNN_ELSEWHERE,)
    if owner in OWN_NAME:
        release = (seen.torch or "").partition("+")[0]
        cause += (
            f" That build of torch has {soname} in torch/lib and loads it when it is imported: "
            "what needs it was imported before torch, or torch is not whole. No wheel of NVIDIA's "
            "belongs to that build."
        )
        helps = [import_torch_first(seen), torch_lib_on_path(seen.python), "ls $(dirname $("
                 f"{seen.python} -c 'import torch; print(torch.__file__)'))/lib",
                 torch_again(seen, release)]  # fmt: skip
    else:
        wheel = wheel_of(seen, soname, major)
        cause += (
            " That build of torch has CUDA's libraries inside, compiled in or under names with a "
            "hash (libcudart-d0da41ae.so.11.0 is one), which serve torch alone, so that importing "
            f"torch first does not bring {soname}. It is the name in every CUDA {major} toolkit: "
            "the toolkit's lib64 has to be on LD_LIBRARY_PATH when Python starts"
            + (f", or the directory of {wheel}." if wheel else ".")
        )
        helps = ["ls -d /usr/local/cuda*", toolkit_on_path(cuda)]
        helps += [f"{seen.pip} install {wheel}", on_path(seen, wheel)] if wheel else []
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*helps, *((seen.inspect_command(),) if seen.mention.file else ())),
        notes=(*notes, *there_already(seen)),
    )  # fmt: skip


_CUDNN_ELSEWHERE = (
    "Where what needs it does not import torch first itself, the command with export puts "
    "torch/lib on the loader's path before Python starts. A cuDNN 8 for CUDA 11 of the system, on "
    "that path, serves too."
)


def inside_before_wheels(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    """torch's wheel has the library inside, under a name of its own."""
    stem = soname.split(".so")[0]
    who = needing(seen)
    number = exact_toolkit(soname) or (seen.torch_cuda or major)
    told = "torch_cuda" in seen.versions or "+" in seen.versions.get("torch", "")
    guessed = seen.elsewhere and not told
    cause = (
        f"{who[0].upper()}{who[1:]} is a build for CUDA {major}, as torch {seen.torch} is. The "
        f"wheels of torch before 1.13 have {stem} inside under a name with a hash "
        f"({stem}-80664282.so.10.2 is one), which serves torch alone: {soname} itself has to come "
        f"from a CUDA {major} toolkit, or from conda's cudatoolkit, where the loader looks."
    )
    ask: tuple[str, ...] = ()
    if guessed:
        cause += (
            f" So it is with the package index's torch {seen.torch}. Where the first command shows "
            "another CUDA, torch is another build: then the build of "
            f"{package_needing(seen) or 'the package'} for torch's own CUDA has to replace this "
            "one, and nothing else is to be installed."
        )
        ask = (f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*ask, "ls -d /usr/local/cuda*", f"ldconfig -p | grep {shlex.quote(stem)}",
              f'conda install "cudatoolkit={number}"'),
        notes=("A toolkit's directory goes on LD_LIBRARY_PATH before Python starts, for example "
               f"/usr/local/cuda-{number}/lib64.", *there_already(seen)),
    )  # fmt: skip
