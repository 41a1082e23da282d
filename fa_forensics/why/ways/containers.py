"""NVIDIA's container images, whose torch and extensions are of one build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import mentions_old_string
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.package import normalized
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, FLAVOUR, NEWER, OLDER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of, module_of, package_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Where NVIDIA's images keep what they bring, and what pip installs as root.
_IMAGES_OWN = lazily(r"/usr/local/lib/python3\.\d{1,2}/dist-packages/(?P<package>[\w-]{1,60})[/.]")
#: Extensions that NVIDIA's PyTorch images bring along (their release notes).
_BROUGHT = (
    "transformer_engine", "apex", "torchvision", "torch_tensorrt", "amp_C", "apex_C", "syncbn",
    "fused_layer_norm_cuda", "flash_attn_2_cuda", "transformer_engine_torch",
    "transformer_engine_extensions",
)  # fmt: skip


#: The cure of an image whose torch was replaced by an installation in it.
_PUT_OVER = (
    "Where an installation in the container put its torch over the image's: start again from the "
    "image, and install that package with --no-deps."
)


def _of_the_image(image: str) -> str:
    return (
        f"Where the file is one that NVIDIA's image {image} brings, it is compiled on the image's "
        "own torch, and another torch was put over that: start again from the image, and install "
        "what is needed with --no-deps."
    )


#: Extensions that hardly anybody has in that directory but for NVIDIA's images.
_THEIRS_ALONE = ("transformer_engine_extensions", "transformer_engine", "torch_tensorrt")


def _perhaps_of_an_image(answer: Answer, package: str, place: Place, there: bool) -> Answer:
    """A file that NVIDIA's images bring, in a text that names no image.

    ``there`` tells that it lies where the images keep theirs.
    """
    if package not in _THEIRS_ALONE or place.present is not None:
        return answer
    where = " in this very directory" if there else ""
    note = (
        f"NVIDIA's PyTorch images bring {package}{where}, compiled on the image's own torch. If "
        "this is such a container, an installation in it put another torch over that: start again "
        "from the image, and install that package with --no-deps. A program that does not need "
        f"{package} runs without it as well (python -m pip uninstall)."
    )
    return replace(answer, help=_without_newest_te(answer.help), notes=(note, *answer.notes))


_COMPILES = lazily(r"The\scommand\scompiles\b")


def _put_over(answer: Answer, image: str) -> Answer:
    """The answer for a file of an image of NVIDIA's beside a torch that the text tells."""
    helps, notes = _without_newest_te(answer.help), [*answer.notes, _of_the_image(image)]
    if helps != answer.help:
        notes = [note for note in notes if not _COMPILES.match(note)]
        notes.append(
            "A program that does not need transformer-engine runs without it as well: the command "
            "that uninstalls it is the short way."
        )
    return replace(answer, help=helps, notes=tuple(notes))


def _without_newest_te(helps: Sequence[str]) -> tuple[str, ...]:
    """Commands without transformer-engine's newest source.

    It has another module in the place of the image's, and asks for a newer torch.
    """
    drop = "python -m pip uninstall transformer-engine"
    return tuple(drop if "TransformerEngine.git" in text else text for text in helps)


def _works_in_an_image(answer: Answer, image: str) -> Answer:
    """A file that loads in an image of NVIDIA's, as the text says, and fails elsewhere."""
    if mentions_old_string(answer.demangled or ""):
        return answer
    note = (
        f"The text says that it works with the torch of NVIDIA's image {image}, a cxx11 build: the "
        "file was compiled for that one, and another torch is loaded where it fails. It runs in "
        "that image with the image's own torch (start again from the image where an installation "
        "put another one over it); elsewhere it needs a build of the file for the torch that is "
        "there."
    )
    return replace(answer, notes=(note, *answer.notes))


#: A file of a package, wherever an image has its Python.
_OF_A_PACKAGE = lazily(r"/(?:site|dist)-packages/(?P<package>[\w-]{1,60})[/.]")


def _of_another_image(answer: Answer, image: str) -> Answer:
    """A file of an image of NVIDIA's for a framework, which has its torch in a place of its own."""
    helps = tuple(text for text in answer.help if '"torch' not in text)
    kept = (n for n in answer.notes if not n.startswith(("Another build of", "One of the two")))
    return replace(answer, help=helps, notes=(_of_the_image(image), *kept))


def in_container(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer for a file of NVIDIA's image; any other as it is.

    The image's torch is a build of its own, which is cxx11 in all of them, and its extensions
    are compiled on it: what they miss, another torch lacks.
    """
    file = file_of(paste)
    found = _IMAGES_OWN.match(file)
    drift = answer.kind in DRIFT
    if not drift or answer.owner is None or not is_torch(answer.owner):
        return answer
    if "works:ngc" in paste.versions:
        return _works_in_an_image(answer, paste.versions["works:ngc"])
    if mentions_old_string(answer.demangled or ""):
        return answer  # of a wheel of the package index, which is none of the image's
    image, package = paste.versions.get("flag:nv-image", ""), _OF_A_PACKAGE.search(file)
    if image and package is not None and package["package"] in _BROUGHT:
        return _of_another_image(answer, image)
    if found is None and "/" not in file and "ngc" not in paste.versions:
        return _perhaps_of_an_image(answer, module_of(file), place, there=False)
    if found is None or found["package"] not in _BROUGHT:
        return answer
    if "ngc" not in paste.versions:
        return _perhaps_of_an_image(answer, found["package"], place, there=True)
    if place.present is not None and not place.present.published:
        return answer
    if normalized(paste.versions.get("flag:pip-installed", "")) == package_of(file):
        return answer  # the project's own wheel or build, which pip put there
    if place.present is not None and answer.direction in (OLDER, NEWER, FLAVOUR):
        # The torch that is loaded is told, and the name's history or flavour with it.
        return _put_over(answer, paste.versions["ngc"])
    image = paste.versions["ngc"]
    cause = (
        f"{found['package']} in NVIDIA's image {image} is compiled on the image's own torch, a "
        "cxx11 build that no table holds. The torch that lacks the name is most likely another "
        "one: of pip, in ~/.local of the home directory that singularity or docker -v brings "
        "along, or put over the image's."
    )
    look = "python -c 'import torch; print(torch.__version__, torch.__path__[0])'"
    note = (
        "If the second command shows another torch than the first, the one in ~/.local is the "
        "cause: PYTHONNOUSERSITE=1, or singularity's --no-home, leaves it out. Nothing in the "
        "image needs to be built again, and a torch of pip in it breaks its other extensions."
    )
    return replace(
        answer, kind="wrong-torch", code="FA607", direction=UNKNOWN, cause=cause,
        confidence="medium", help=(look, f"PYTHONNOUSERSITE=1 {look}"), notes=(note, _PUT_OVER),
    )  # fmt: skip
