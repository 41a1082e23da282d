"""Answers about a file that is for another machine than the one that loads or links it."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base, package_in, pip_name
from fa_forensics.why.texts.files.driver_file import OF_DRIVER, driver_of_32_bit
from fa_forensics.why.texts.files.file_text import is_torchs, owner_of, path_of, quoted
from fa_forensics.why.texts.files.put_back import reinstall

MACHINE = "wrong-machine"

#: What stands in a file's name for its processor.
_IN_NAME = lazily(r"-(x86_64|aarch64|ppc64le|s390x|arm|i[3-6]86)-")
_ARM = ("aarch64", "arm64", "arm", "armv7l", "armv6l")


def wrong_machine(seen: Seen) -> Answer:
    """``wrong ELF class: ELFCLASS32``, ``Exec format error``: another machine's file."""
    path, detail = path_of(seen), seen.mention.detail
    if detail.get("shown") and detail.get("elf"):
        from fa_forensics.why.texts.files.shown_elf import linux_library

        return linux_library(seen)
    owner = owner_of(seen, path)
    name = base(path) or "The file"
    if owner in OF_DRIVER and "ELFCLASS32" in seen.mention.line:
        return driver_of_32_bit(seen, name, owner or "")
    bits = re.search(r"ELFCLASS(32|64)", seen.mention.line)
    have, need = detail.get("have"), detail.get("need")
    told = host_words(seen)
    mac = bool(have and need) or detail.get("os") == "macOS" or path.endswith(".dylib")
    mac = mac or "mach-o" in seen.mention.line.lower()
    if have and need:
        cause = _on_a_mac(name, have, need)
    elif detail.get("elf"):
        cause = (
            f"{name} is a library for Linux: its first bytes, 7f 45 4c 46, are those of an ELF "
            "file, and macOS loads Mach-O files alone."
        )
    elif bits:
        cause = (
            f"{name} is a {bits[1]}-bit file, and this Python is not: a wheel or a copy for "
            "another platform."
        )
    elif not mac and not re.search(r"\.(?:so|dylib)\b", path):
        cause = (
            f"{name} is a program for another machine than this one, or no program at all (cut "
            "off, a text)."
        )
    else:
        cause = (
            f"{name} is for another machine than the Python that loads it: a wheel or a copy for "
            "another platform."
        )
    cause += _told_of_both(seen, path, told if not (have and need) else "")
    helps, notes = _for_a_mac(seen, owner, need or "") if mac else other_machine_remedy(seen, owner)
    look = f"file {quoted(path)}" if mac else f"fa-forensics inspect {quoted(path)}"
    return seen.answer(
        MACHINE, "FA101", cause, owner=owner, direction="none", confidence="high",
        help=(
            f"{seen.python} -c 'import platform; print(platform.machine(), "
            "platform.architecture())'",
            look, *helps,
        ),
        notes=("No setting makes it load; get the build for this machine.", *notes),
    )  # fmt: skip


def _on_a_mac(name: str, have: str, need: str) -> str:
    cause = f"{name} is for {have}, and the Python that loads it is {need}. "
    if need.startswith("x86_64"):
        return cause + (
            "It is a file for Apple Silicon, in a Python for Intel. On a Mac with an Intel "
            "processor it cannot run; on one with Apple Silicon that Python runs under Rosetta."
        )
    return cause + "macOS runs both on Apple Silicon, each with files of its own kind alone."


def _told_of_both(seen: Seen, path: str, told: str) -> str:
    """What the text says of the file's machine and of the one that it is on."""
    ours = seen.mention.detail.get("for_machine")
    named = _IN_NAME.search(base(path))
    words = ""
    if named is not None:
        words += f" Its name says {named[1]}."
    elif ours:
        words += f" The text shows that the file is for {ours}."
    if told:
        words += f" The text is from {told}."
    return words


def host_words(seen: Seen) -> str:
    """The machine that the text is from, in a sentence: ``a Jetson board (aarch64)``; ""."""
    detail = seen.mention.detail
    host, name = detail.get("host", ""), detail.get("host_name", "")
    host = host or seen.versions.get("machine", "")
    if name:
        return f"{name} ({'ARM' if host == 'arm' else host})"
    return f"a machine with {host}" if host and host != "x86_64" else ""


def host_of(seen: Seen) -> str:
    """The processor of the machine that the text is from, as uname writes it; "" unknown."""
    return seen.mention.detail.get("host") or seen.versions.get("machine", "")


def _for_a_mac(seen: Seen, owner: str | None, need: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Install it again with the Python that is meant: pip takes the build for that one."""
    name = pip_name(seen, owner) or "PACKAGE"
    again = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {name}"
    built = (
        "pip takes the wheel for the kind of Python that runs it. What it builds from source is "
        'for that kind too with ARCHFLAGS="-arch arm64" (or x86_64) before the command; '
        "uninstall the old one, and remove an .egg of it, first."
    )
    if need.startswith("x86_64"):
        last = _last_for_intel(name)
        if last is not None:
            again += f"=={last}"
            built = (
                f"{name} {last} is the last release with wheels for Intel Macs; the command is for "
                "such a Mac. On one with Apple Silicon, another Python is the way out: one for "
                "arm64, with its packages installed anew."
            )
    return (again,), (built,)


def _last_for_intel(name: str) -> str | None:
    from fa_forensics.facts.tables import read_table

    last: str | None = read_table("python_wheels.json")["macos_intel"].get(name)
    return last


def other_machine_remedy(seen: Seen, owner: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): where a build for this machine comes from."""
    from fa_forensics.facts.paste.machines import pypi_has_torch

    host = host_of(seen)
    torchs = owner is not None and owner.split("/")[0] == "torch"
    if torchs and (host in ("armv7l", "armv6l", "i686") or "ELFCLASS64" in seen.mention.line):
        return (), (
            "torch has wheels for 64-bit Pythons alone: a 64-bit system with a 64-bit Python is "
            "the way, or a build from source on that machine.",
        )
    if torchs and (host in _ARM or not host):
        return _torch_for_arm(seen)
    if torchs and host and not pypi_has_torch(host):
        return (), (
            f"The package index has no torch for {host}: the distribution, or a build from "
            "source on that machine, is what there is.",
        )
    name = pip_name(seen, owner) or pip_name(seen, package_in(seen))
    if name is None:
        return (), (
            "pip takes by itself the wheel for the machine whose Python runs it; where a package "
            "has none for that machine, it is built there from its source. Files that were copied "
            "from another machine, and a container's image for another platform, do not serve.",
        )
    notes = (
        f"pip takes the wheel of {name} for the machine whose Python runs it; where there is none, "
        "it is built there from its source.",
    )
    return reinstall(seen, name), notes


_WHOLE = (
    "cmake -DCMAKE_PREFIX_PATH=\"$({0} -c 'import torch; print(torch.utils.cmake_prefix_path)')\" ."
)


#: Where CMake's FetchContent unpacks what a project's own build downloads.
_FETCHED = lazily(r"_deps/(?P<name>[\w-]{1,40})-src/")

#: torch-sys of Rust asks Python for its torch.
_CARGO = "cargo clean -p torch-sys && LIBTORCH_USE_PYTORCH=1 cargo build"


def _torch_for_arm(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    notes = []
    name = seen.mention.detail.get("host_name", "")
    jetson = "Jetson" in name
    if jetson:
        notes.append(
            "On a Jetson, torch with CUDA is NVIDIA's own wheel for the JetPack release that is "
            "installed (or its l4t-pytorch image); the package index has torch for the CPU, and "
            "for servers, alone."
        )
    else:
        notes.append(
            "The package index has torch for 64-bit ARM Linux (aarch64) and Macs with Apple "
            "Silicon, and pip takes that by itself; for 32-bit ARM it has none: a 64-bit system, "
            "or a build from source."
        )
    helps: tuple[str, ...] = ()
    fetched = _FETCHED.search(path_of(seen))
    if not jetson and fetched is None:
        helps = (f"{seen.pip} install --force-reinstall --no-cache-dir torch",)
    if jetson and re.search(r"ubuntu\s1[46]", seen.versions.get("os", "").lower()):
        notes.append(
            "Ubuntu 16.04 on a Jetson is JetPack 3, and NVIDIA's wheels of torch begin with "
            "JetPack 4.2: a newer JetPack where the board has one, or torch built from source on "
            "the board."
        )
    if fetched is not None:
        return _fetched_by_cmake(seen, fetched["name"]), (*notes, _FETCHED_NOTE)
    if (
        seen.mention.what == "linker-refuses"
        or not is_torchs(path_of(seen))
        or ("libtorch/" in path_of(seen))
    ):
        cargo = "torch-sys" in f"{path_of(seen)} {seen.mention.line}"
        helps = (*helps, _CARGO if cargo else _WHOLE.format(seen.python))
        notes.append(
            "The archives of libtorch for Linux were made for x86-64; the wheel of torch for this "
            "machine has the same libraries, headers and CMake files in its own directory, and "
            "LIBTORCH_USE_PYTORCH has torch-sys take those (without its feature download-libtorch)."
            if cargo
            else "The archives of libtorch for Linux were made for x86-64; the wheel of torch for "
            "this machine has the same libraries, headers and CMake files in its own directory, "
            "which is what the command with cmake names."
        )
    return helps, tuple(notes)


_FETCHED_NOTE = (
    "The project's own CMake downloads that archive (FetchContent), so CMAKE_PREFIX_PATH alone may "
    "change nothing: the variable gives it torch's own directory in place of the download, from an "
    "empty build directory. The command with CMAKE_ARGS is for a build by pip (scikit-build and "
    "the like hand it on to CMake; . is the directory with pyproject.toml, or what pip was given), "
    "the last one for a CMake that is run by hand. Where the archive is still taken, its address "
    "stands in the project's CMakeLists.txt. The command that prints platform.machine() shows "
    "whether the torch that is there is for this machine."
)


def _fetched_by_cmake(seen: Seen, name: str) -> tuple[str, ...]:
    option = f"-DFETCHCONTENT_SOURCE_DIR_{name.upper()}"
    there = f"$({seen.python} -c 'import torch; print(torch.__path__[0])')"
    return (
        f"{seen.python} -c 'import torch, platform; print(torch.__version__, torch.__file__, "
        "platform.machine())'",
        f'CMAKE_ARGS="{option}={there}" ' + f"{seen.pip} install --no-build-isolation .",
        f'cmake {option}="{there}" '
        f"-DCMAKE_PREFIX_PATH=\"$({seen.python} -c 'import torch; "
        "print(torch.utils.cmake_prefix_path)')\" .",
    )


ANSWERERS: dict[str, Answerer] = {
    "wrong-elf-class": wrong_machine,
    "wrong-machine": wrong_machine,
}
