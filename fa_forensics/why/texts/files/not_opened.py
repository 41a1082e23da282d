"""``cannot open shared object file`` for another reason than that there is none."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base, package_in
from fa_forensics.why.texts.files.file_text import is_torchs, path_of, quoted

LOADER, DAMAGED, CODE, NOT_THERE = "elf-loader", "damaged-file", "FA202", "FA880"


def not_opened(seen: Seen) -> Answer | None:
    """The answer by what the system said (errno's words); None for "No such file"."""
    reason = seen.mention.detail.get("reason", "").lower()
    for words, answer in _REASONS:
        if words.match(reason):
            return answer(seen, path_of(seen))
    return None


def _answer(
    seen: Seen, kind: str, cause: str, helps: tuple[str, ...], notes: tuple[str, ...] = ()
) -> Answer:
    return seen.answer(
        kind, CODE, cause, owner=_owner(seen), direction="none", confidence="high", help=helps,
        notes=notes,
    )  # fmt: skip


def _owner(seen: Seen) -> str | None:
    from fa_forensics.rules.remedy import known_packages

    path = path_of(seen)
    if is_torchs(path):
        return "torch"
    if (found := package_in(seen)) is not None:
        return found
    for row in known_packages():
        top = str(row["import"]).split(".")[0]
        if len(top) > 7 and top in path:
            return str(row["distribution"])
    return None


def _not_a_directory(seen: Seen, path: str) -> Answer:
    """ENOTDIR: a part of the path before the last one is a file."""
    name = base(path) or "The file"
    egg = seen.versions.get("flag:egg", "")
    there = f"{egg} in the text is such a part" if egg else "most often an .egg or a .zip"
    cause = (
        f"{name} was asked for by its full path, and a part of that path is a file and no "
        f"directory ({there}): nothing can be opened below it, and no search path plays a part. "
        "Python imports modules out of a zipped egg; the loader takes no library out of one, and "
        "whether the library was built and packed at all is open."
    )
    owner = _owner(seen)
    package = owner or (egg.split("-")[0].replace("_", "-") if egg else None)
    uninstall = f"{seen.pip} uninstall -y {package or 'PACKAGE'}"
    helps = [uninstall, f"{seen.pip} install -v --no-build-isolation ."]
    notes = [
        "setup.py install makes such eggs, and packs what lies there at that time, with or without "
        "compiled libraries: in the source directory pip install, as in the last command, unpacks "
        "the package into a directory. See first that the compiled part is built.",
    ]
    look = egg or ".egg"
    if package == "tensorrt-llm":
        helps = [uninstall, "python scripts/build_wheel.py --clean",
                 f"{seen.pip} install ./build/tensorrt_llm*.whl"]  # fmt: skip
        notes = [
            "setup.py of TensorRT-LLM compiles nothing: scripts/build_wheel.py, in its source "
            "directory (with --trt_root where TensorRT lies elsewhere), builds the C++ part, puts "
            "the libraries into tensorrt_llm/libs and makes the wheel. NVIDIA's index has wheels "
            "of later releases; another release goes with other engines and another torch.",
        ]
    helps.insert(
        0, f"{seen.python} -c 'import sys; print([p for p in sys.path if \"{look}\" in p])'"
    )
    return seen.answer(
        DAMAGED, NOT_THERE, cause, owner=package, direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _denied(seen: Seen, path: str) -> Answer:
    """EACCES: the file is there, or may be, and this user may not read it or look for it."""
    return _answer(
        seen, LOADER,
        f"{base(path) or 'The file'} may not be read by the user that runs: the file itself, or a "
        "directory on its path, gives that user no right to it (root installed it with a strict "
        "umask, a home directory of somebody else, a container that runs as another user, "
        "SELinux). It need not be missing, and no version is wrong.",
        (f"id; namei -l {quoted(path)}",),
        ("namei shows the rights of each part: a directory takes r-x, a file r--. Whoever owns "
         "them sets them (chmod with go+rX); or install the package as the user that runs "
         "it, in an environment of its own.",),
    )  # fmt: skip


def _too_many(seen: Seen, path: str) -> Answer:
    """EMFILE and ENFILE."""
    return _answer(
        seen, LOADER,
        f"The process had too many files open when it came to {base(path) or 'the file'}: the "
        "limit on open files is reached, and the library is not missing. What opened them so far "
        "(worker processes, data loaders, sockets) is the cause, or a limit that is low.",
        ("ulimit -n; ls /proc/$PID/fd | wc -l", "ulimit -n 65536"),
        ("ulimit counts for the shell that starts the program (in a container docker run "
         "--ulimit nofile=65536, in a service LimitNOFILE). PID is the number of the process. "
         "With torch's data loaders, "
         "torch.multiprocessing.set_sharing_strategy('file_system') keeps fewer files open.",),
    )  # fmt: skip


def _of_the_disk(seen: Seen, path: str) -> Answer:
    """EIO, ESTALE, ENOTCONN: the file system did not answer as it should."""
    return _answer(
        seen, DAMAGED,
        f"The file system failed when {base(path) or 'the file'} was opened: a network or FUSE "
        "directory that was cut off or changed on the server, or a disk with errors. Neither the "
        "installation nor a version is wrong as far as this shows.",
        (f"stat {quoted(path)}; findmnt -T {quoted(path)}", "dmesg | tail -30"),
        ("A network file system is to be mounted again (on that machine); with an error of the "
         "disk in dmesg, install the package again on another one.",),
    )  # fmt: skip


def _loop(seen: Seen, path: str) -> Answer:
    """ELOOP."""
    return _answer(
        seen, DAMAGED,
        f"{base(path) or 'The file'} is a symbolic link that leads back to itself, by one or more "
        "steps: a link was made in its own place, or a copy of an environment kept links that now "
        "point at one another.",
        (f"namei -l {quoted(path)}",),
        ("Remove the link, and install the package that the file belongs to again.",),
    )  # fmt: skip


_REASONS = (
    (re.compile(r"not a directory\b"), _not_a_directory),
    (re.compile(r"permission denied\b|operation not permitted\b"), _denied),
    (re.compile(r"too many open files\b"), _too_many),
    (re.compile(r"(?:input/output|remote i/o) error\b|stale (?:nfs )?file handle\b"
                r"|transport endpoint\b"), _of_the_disk),
    (re.compile(r"too many levels of symbolic links\b"), _loop),
)  # fmt: skip
