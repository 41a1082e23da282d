"""``python -m fa_forensics.facts.fatbin FILE [--json]``: list the GPU code of one file.

Starts with as few imports as it can, so that it answers before cuobjdump has read the file.
Exit codes: 0 listed (also when there is no GPU code), 2 usage, 3 could not be analysed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fa_forensics.errors import EXIT_NOT_ANALYSED, EXIT_OK, EXIT_USAGE, ForensicsError
from fa_forensics.facts.fatbin.images import DeviceCode, summary
from fa_forensics.facts.fatbin.reader import read_file

if TYPE_CHECKING:
    from fa_forensics.facts.hip import OtherCode

USAGE = "usage: python -m fa_forensics.facts.fatbin FILE [--json]"


def main(arguments: list[str]) -> int:
    """Print the list for the one file named in ``arguments``; returns the exit code."""
    as_json = "--json" in arguments
    files = [argument for argument in arguments if argument != "--json"]
    if files and files[0] == "--":
        files = files[1:]
    elif any(argument in ("-h", "--help") for argument in files):
        print(USAGE)
        return EXIT_OK
    if len(files) != 1:
        print(USAGE, file=sys.stderr)
        return EXIT_USAGE
    try:
        code = read_file(files[0])
    except ForensicsError as error:
        print(f"error: {_printable(error.message)}", file=sys.stderr)
        return error.exit_code if error.exit_code == EXIT_USAGE else EXIT_NOT_ANALYSED
    others = _others(files[0]) if not code.images else []
    print(_as_json(code, others) if as_json else _as_text(code, others))
    if not as_json:
        for problem in (*code.problems, *(text for other in others for text in other.problems)):
            print(f"warning: {problem}", file=sys.stderr)
    return EXIT_OK


def _others(path: str) -> list[OtherCode]:
    """What a file without CUDA code has for other GPUs; nothing in a bare .fatbin."""
    from fa_forensics.errors import NotAnElfFile
    from fa_forensics.facts.elf.image import ElfImage
    from fa_forensics.facts.hip import read_other_code

    try:
        with ElfImage(path) as image:
            return list(read_other_code(image))
    except NotAnElfFile:
        return []


def _as_text(code: DeviceCode, others: list[OtherCode]) -> str:
    if not code.images and others:
        from fa_forensics.facts.hip import describe

        return "\n".join(["no CUDA code", *(describe(other) for other in others)])
    if not code.images:
        return "no GPU code"
    lines = []
    for number, image in enumerate(code.images, 1):
        details = [image.compression or "", f"ISA {image.isa}" if image.isa else ""]
        if image.relocatable:
            details.append("relocatable")
        if image.identifier:
            details.append(_printable(image.identifier))
        tail = " ".join(detail for detail in details if detail)
        line = f"{number:5}  {image.kind:6} {image.arch:12} {image.stored_bytes:13,} bytes  {tail}"
        lines.append(line.rstrip())
    lines.append("")
    for kind, arch, count, size in summary(code.images):
        lines.append(f"{count:5} x {kind:6} {arch:12} {size:13,} bytes")
    return "\n".join(lines)


def _as_json(code: DeviceCode, others: list[OtherCode]) -> str:
    import json

    document = {
        "found_by": code.found_by,
        "containers": code.containers,
        "gpu_code": [
            {"kind": kind, "arch": arch, "count": count, "bytes": size}
            for kind, arch, count, size in summary(code.images)
        ],
        "images": [image._asdict() for image in code.images],
        "other_gpu_code": [other._asdict() for other in others],
        "problems": list(code.problems),
    }
    return json.dumps(document, indent=1)


def _printable(text: str) -> str:
    """Text from a file, safe for a terminal: control characters are shown as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
