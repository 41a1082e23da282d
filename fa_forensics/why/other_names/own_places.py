"""An own name that is missing from a file whose place tells how it was made."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.other_names.left_out import DOUBLED, sort_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.ways.signs import jit_folder, remove_folder

#: Where Triton Inference Server keeps its backends.
_BACKEND = lazily(r"/tritonserver/backends/(?P<name>[\w-]{1,40})/(?P<file>lib[\w.-]{1,60}\.so)")
_FROM_SOURCE = "Built from source: take"
#: FORCE_CUDA is a variable of setup.py files, which a build at run time has none of.
_OF_SETUP = lazily(r"\sWhere\sno\sGPU\s[^\n]{1,80}FORCE_CUDA=1\.$")


def by_its_place(answer: Answer, seen: Seen, file: str) -> Answer | None:
    """The answer for a file of torch's JIT cache or a backend of Triton's; None for any other."""
    folder = jit_folder(file)
    if folder is not None and sort_of(answer.demangled or "") != DOUBLED:
        return _of_jit(answer, seen, folder, file)
    backend = _BACKEND.search(file)
    if backend is not None:
        return _of_backend(answer, seen, backend["name"], backend["file"], file)
    return None


def _of_jit(answer: Answer, seen: Seen, folder: str, file: str) -> Answer:
    """A build of torch.utils.cpp_extension.load, which is kept by its name alone."""
    whose, _, _ = answer.cause.partition(". ")
    cause = (
        f"{whose}. The file is a build in torch's JIT cache, which is kept by the extension's name "
        "and not by its release: most likely it is of other sources than the Python code that "
        "loads it (two releases that share the directory, by a mounted home too), or its build was "
        "broken off."
    )
    if file[len(folder) :].count("/") > 1:
        cause = (
            f"{whose}. The file is a build in torch's JIT cache, in a directory for these very "
            "sources: most likely its build was broken off, or its parts were compiled by another "
            "nvcc or host compiler than fits torch. A build at run time lists its CUDA files "
            "itself, and stops where it finds no nvcc."
        )
    helps = [remove_folder(folder)]
    notes = ["The directory is built again at the next start, from the sources that are installed."]
    if seen.package is not None:
        version = seen.versions.get(f"pkg:{seen.package}", "")
        wanted = shlex.quote(f"{seen.package}=={version}" if version else seen.package)
        helps.append(f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {wanted}")
        notes.append(
            f"The second command is for the case that the first one alone does not help: then the "
            f"installed {seen.package} itself is not whole, or lacks that source file. A cache of "
            "its own for each release (TORCH_EXTENSIONS_DIR) keeps them apart."
        )
    kept = (_OF_SETUP.sub("", n) for n in answer.notes if not n.startswith(_FROM_SOURCE))
    return replace(
        answer, cause=cause, help=(*helps, *answer.help[-1:]), notes=(*notes, *kept),
        confidence="medium",
    )  # fmt: skip


def _of_backend(answer: Answer, seen: Seen, name: str, library: str, file: str) -> Answer:
    """A backend of Triton Inference Server and the library that it calls: of two releases."""
    llm = name == "tensorrtllm"
    called = "libtensorrt_llm.so" if llm else "the library that it calls"
    cause = (
        f"{library} is a backend of Triton Inference Server, and the name is one of {called}, "
        "which does not export it: the two are of different releases, one of them built or copied "
        "into the image beside the other."
    )
    look = f"ldd {shlex.quote(file)} | grep -v /lib/x86_64-linux-gnu"
    helps = [look]
    if llm:
        helps.append("python3 -m pip show tensorrt-llm")
        cause += " TensorRT-LLM keeps no names from release to release."
    notes = [
        "Backend and library come from one image, or are both built from one tag of the backend's "
        "repository, by its own build; the backend is no package of pip's."
    ]
    if llm:
        notes += _images(seen)
    return replace(
        answer, cause=cause, help=(*helps, *answer.help[-1:]), notes=tuple(notes),
        confidence="medium",
    )  # fmt: skip


def _images(seen: Seen) -> list[str]:
    """Which TensorRT-LLM the text's image has, and which image has the text's backend."""
    table: dict[str, str] = read_table("triton_images.json")["tensorrt_llm"]
    image = seen.versions.get("triton_image", "")
    wanted = seen.versions.get("pkg:tensorrtllm-backend", "")
    there = table.get(image, "")
    notes = []
    if there:
        notes.append(f"The image {image} brings TensorRT-LLM {there}.")
    fits = [release for release, version in table.items() if version == wanted]
    if fits and there != wanted:
        notes.append(
            f"The backend of {wanted} belongs to the image "
            f"nvcr.io/nvidia/tritonserver:{fits[0]}-trtllm-python-py3."
        )
    elif not wanted:
        notes.append(
            "The release of the backend has the number of its TensorRT-LLM, and each image "
            "nvcr.io/nvidia/tritonserver:YY.MM-trtllm-python-py3 brings one of them (Triton's "
            "compatibility matrix lists them)."
        )
    return notes
