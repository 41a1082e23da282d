"""The CUDA toolkits that a build would use: nvcc on PATH, CUDA_HOME, the usual place.

Versions are read from nvcc's own bytes and from the files of a toolkit (version.json,
version.txt, cuda.h); nvcc is never started.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.files import absolute, read_bounded
from fa_forensics.records import dataclass

#: Where torch.utils.cpp_extension looks when CUDA_HOME, CUDA_PATH and PATH say nothing.
USUAL_PLACE = "/usr/local/cuda"

ON_PATH, USUAL = "nvcc on PATH", "the usual place"
#: The variables that name a toolkit, in the order in which torch asks them.
HOME_VARIABLES = ("CUDA_HOME", "CUDA_PATH")

_MAX_TEXT = 1 << 20
_MAX_HEADER = 4 << 20
_MAX_PROGRAM = 256 << 20
#: What "nvcc --version" prints: "Cuda compilation tools, release 12.1, V12.1.105".
_BANNER = b"Cuda compilation tools, release "
_BANNER_VERSION = re.compile(rb"\d{1,2}\.\d{1,2}, V(\d{1,2}\.\d{1,2}\.\d{1,5})")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?:CUDA|CUDART)_VERSION[ \t]+(\d{4,5})\b", re.M)
#: A wrapper's last line: exec /usr/local/cuda-13.0/bin/nvcc "$@".
_WRAPPED = re.compile(r"""^[ \t]*exec[ \t]+["']?(/[^"'\s$`;&|]+/nvcc)["']?(?=[\s;]|$)""", re.M)


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One toolkit as somebody names it.

    ``named_by`` is ON_PATH, USUAL or a variable; ``named`` what stands there and ``root`` the
    directory without links. ``nvcc_version`` is of the compiler ("12.1.105"), with
    ``nvcc_how``; ``header_version`` is CUDA_VERSION of cuda.h ("12.1"). ``problem`` is one
    sentence when something named is not there or could not be read.
    """

    named_by: str
    named: str
    root: str
    nvcc: str | None
    nvcc_version: str | None
    nvcc_how: str
    header_version: str | None
    problem: str | None = None

    @property
    def release(self) -> str | None:
        """The CUDA release, "12.1": the compiler's, else that of the headers."""
        version = self.nvcc_version or self.header_version
        return None if version is None else ".".join(version.split(".")[:2])


def find_toolkits(
    environ: Mapping[str, str], usual_place: str = USUAL_PLACE
) -> tuple[Toolkit, ...]:
    """The toolkits in the order in which torch's build asks for them; each as it is named."""
    found = []
    for variable in HOME_VARIABLES:
        named = environ.get(variable)
        if named:
            found.append(_read(variable, named, os.path.join(named, "bin", "nvcc")))
    on_path = _on_path(environ)
    if on_path is not None:
        found.append(_of_program(on_path))
    if os.path.isdir(usual_place):
        found.append(_read(USUAL, usual_place, os.path.join(usual_place, "bin", "nvcc")))
    return tuple(found)


def read_toolkit(root: str) -> Toolkit:
    """The toolkit in a directory; its ``problem`` says that there is none."""
    return _read(USUAL, root, os.path.join(root, "bin", "nvcc"))


def toolkit_roots(toolkits: tuple[Toolkit, ...]) -> tuple[str, ...]:
    """The directories of toolkits, each once."""
    return tuple(dict.fromkeys(t.root for t in toolkits if os.path.isdir(t.root)))


def _on_path(environ: Mapping[str, str]) -> str | None:
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory or ".", "nvcc")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return absolute(path)
    return None


def _of_program(path: str) -> Toolkit:
    program = path
    for _hop in range(4):
        text = _script(program)
        if text is None:
            break
        found = _WRAPPED.search(text)
        if found is None or found[1] == program:
            problem = f"{path} is a script that does not plainly say which nvcc it starts"
            return Toolkit(ON_PATH, path, os.path.dirname(path), None, None, "", None, problem)
        program = found[1]
    real = os.path.realpath(program)
    if os.path.basename(real) != "nvcc":
        # A compiler cache goes by the compiler's name.
        problem = f"{path} is {real}, which starts another nvcc"
        return Toolkit(ON_PATH, path, os.path.dirname(path), None, None, "", None, problem)
    return _read(ON_PATH, path, real)


def _script(path: str) -> str | None:
    try:
        head = read_bounded(path, 1 << 16)
    except OSError:
        return None
    return head.decode("utf-8", "replace") if head.startswith(b"#!") else None


def _read(named_by: str, named: str, nvcc: str) -> Toolkit:
    root = os.path.realpath(os.path.dirname(os.path.dirname(nvcc)))
    if not os.path.isdir(root):
        problem = (
            f"{named} does not exist" if not os.path.lexists(named) else f"{named} is no directory"
        )
        return Toolkit(named_by, named, root, None, None, "", None, problem)
    header = _header_version(root)
    if not os.path.isfile(nvcc):
        problem = f"{named} has no bin/nvcc"
        return Toolkit(named_by, named, root, None, None, "", header, problem)
    version, how = _nvcc_version(nvcc)
    if version is None:
        version, how = next(_file_versions(root), (None, "nothing in it says its version"))
    return Toolkit(named_by, named, root, nvcc, version, how, header)


def _nvcc_version(path: str) -> tuple[str | None, str]:
    try:
        with ElfImage(path) as image:
            section = image.section(".rodata")
            start, size = (section.offset, section.size) if section else (0, image.size)
            size = min(size, _MAX_PROGRAM)
            at = image.data.find(_BANNER, start, start + size)
            raw = image.read(at + len(_BANNER), 64) if at >= 0 else b""
    except ForensicsError as error:
        return None, error.message
    found = _BANNER_VERSION.match(raw)
    return (found[1].decode(), "nvcc's own bytes") if found else (None, "nvcc does not say")


def _file_versions(root: str) -> Iterator[tuple[str, str]]:
    """(version, file) of what a toolkit's own files say, the most precise first."""
    text = _text(os.path.join(root, "version.json"), _MAX_TEXT)
    if text is not None:
        try:
            parts = json.loads(text)
        except (ValueError, RecursionError):
            parts = None  # damaged: the other files are asked
        for name in ("cuda_nvcc", "cuda"):
            part = parts.get(name) if isinstance(parts, dict) else None
            version = part.get("version") if isinstance(part, dict) else None
            if isinstance(version, str) and re.fullmatch(r"\d{1,2}(\.\d{1,5}){1,3}", version):
                yield version, f"version.json ({name})"
    text = _text(os.path.join(root, "version.txt"), _MAX_TEXT)
    found = re.search(r"CUDA Version (\d{1,2}(?:\.\d{1,5}){1,3})", text or "")
    if found:
        yield found[1], "version.txt"
    header = _header_version(root)
    if header is not None:
        yield header, "cuda.h"


def _header_version(root: str) -> str | None:
    """CUDA_VERSION of the headers: 12010 is "12.1"; None where there are none."""
    places = [os.path.join(root, "include")]
    targets = os.path.join(root, "targets")  # conda's packages keep their headers there
    try:
        places += [os.path.join(targets, name, "include") for name in sorted(os.listdir(targets))]
    except OSError:
        places += []
    for place in places:
        for name in ("cuda.h", "cuda_runtime_api.h"):
            found = _DEFINE.search(_text(os.path.join(place, name), _MAX_HEADER) or "")
            if found:
                number = int(found[1])
                return f"{number // 1000}.{number % 1000 // 10}"
    return None


def _text(path: str, limit: int) -> str | None:
    try:
        return read_bounded(path, limit).decode("utf-8", "replace")
    except OSError:
        return None
