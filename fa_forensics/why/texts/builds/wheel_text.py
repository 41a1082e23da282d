"""Answers about wheels as files: damaged, misnamed, not at their address, on another disk."""

from __future__ import annotations

import re
import shlex

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import package_in, pip_name, version_of

KIND, NO_FILE = "wrong-torch", "FA887"


def wheel_damaged(seen: Seen) -> Answer:
    """pip cannot read a .whl file as one."""
    detail = seen.mention.detail
    if detail.get("member"):
        return _damaged_member(seen, detail["member"])
    if detail.get("lost"):
        return _packed_badly(seen, detail["lost"])
    file = seen.mention.file or detail.get("file2") or detail.get("file3") or ""
    by_name = detail.get("named") or detail.get("named2")
    name = re.split(r"[/\\]", file)[-1] or "The wheel"
    shown = shlex.quote(name) if file else "FILE.whl"
    ask = f"ls -l {shown}; head -c 200 {shown} | strings"
    if by_name:
        cause = (
            f"pip refuses {name} by its name, before it looks inside: NAME-VERSION-PYTHON-ABI-"
            "PLATFORM.whl is what it takes. Browsers and chats rename downloads ( (1), a + that "
            "became a space): give it its own name back."
        )
        helps: tuple[str, ...] = (f"{seen.pip} debug --verbose",)
    elif detail.get("metadata"):
        cause = (
            f"The wheel's name says {detail.get('told')}, the metadata inside says "
            f"{detail.get('metadata')}: the file was renamed or built carelessly, and pip refuses "
            "that. Take the file under the name that it was published with."
        )
        helps = (f"{seen.pip} install PACKAGE",)
    elif (detail.get("reason") or "").startswith("DO NOT"):
        cause = (
            "The file that was fetched is not the one that the hashes are of: a download that "
            "stopped, a proxy or a mirror that sends something else, or a file that was replaced "
            "since. No version of Python or CUDA is involved."
        )
        name = pip_name(seen, package_in(seen)) or ("torch" if seen.torch else "PACKAGE")
        helps = (f"{seen.pip} cache purge", f"{seen.pip} install --no-cache-dir {name}")
    elif detail.get("crc"):
        return _damaged_archive(seen, name, file)
    else:
        cause = (
            f"{name} is not a wheel inside: a download that stopped, a web page that was stored "
            "under that name, or the small text file that Git LFS leaves in place of a file that "
            "it did not fetch. No version of Python, torch or CUDA is involved."
        )
        helps = (ask, f"{seen.python} -m zipfile -t {shown}", f"{seen.pip} cache purge")
    code = NO_FILE if by_name or detail.get("metadata") else "FA102"
    return seen.answer(
        "damaged-file", code, cause, owner=package_in(seen), direction="none",
        confidence="high" if by_name or detail.get("metadata") else "medium",
        help=helps,
        notes=() if code == NO_FILE else (
            "A wheel has its megabytes and begins with PK; fetch the file anew from where it was "
            "published (with pip: --no-cache-dir).",
        ),
    )  # fmt: skip


def _damaged_member(seen: Seen, member: str) -> Answer:
    """``Bad CRC-32 for file 'torch/lib/libtorch_cuda.so'``: the archive opens, one file is ill."""
    top = re.split(r"[/\\]", member)[0]
    named = re.match(r"(?P<name>[\w.]+?)-(?P<version>\d[\w.+!]*)\.(?:dist-info|data)$", top)
    name = named["name"].replace("_", "-") if named else pip_name(seen, top)
    owner = name or package_in(seen) or top
    version = named["version"] if named else version_of(seen, owner)
    version = seen.torch if owner == "torch" and not version else version
    spec = shlex.quote(f"{owner}=={version}") if version and name else name or "PACKAGE"
    cause = (
        f"The wheel of {owner} opens, and what it holds as {member} is damaged: its checksum does "
        "not fit. A download that was interrupted and went on, or a damaged copy in a cache or on "
        "the disk, is the reason. No version of Python, torch or CUDA is involved."
    )
    notes = [
        "Then install it again as before, from the same index, with --no-cache-dir. A wheel that "
        "something else fetched (aria2c, wget, a cache that docker build mounts) has to be removed "
        "where that put it: pip's cache is not the one then, and docker build needs --no-cache.",
        "Where a fresh download fails too, each time at another file, it is the machine: its "
        "memory (RAM), its disk, or a proxy on the way.",
    ]
    if version and "+" in version:
        notes.insert(0, (
            f"A version with +{version.partition('+')[2]} is on torch's own index alone: give the "
            "--index-url of the first installation too."
        ))  # fmt: skip
    return seen.answer(
        "damaged-file", "FA102", cause, owner=owner, direction="none", confidence="high",
        help=(
            f"{seen.pip} cache purge",
            f"{seen.pip} install --no-cache-dir {spec}",
            "df -h . /tmp ~",
        ),
        notes=tuple(notes),
    )  # fmt: skip


def _packed_badly(seen: Seen, member: str) -> Answer:
    """``There is no item named 'x.dist-info/WHEEL' in the archive``: whole as a zip, no wheel."""
    file = seen.mention.file or ""
    name = re.split(r"[/\\]", file)[-1] or "The wheel"
    owner = package_in(seen)
    shown = shlex.quote(file) if file and "://" not in file else "FILE.whl"
    version = re.search(r"-(\d[\w.]*)\.dist-info/", member)
    index = pip_name(seen, owner)
    spec = f"{index}=={version[1]}" if index and version else index
    source = f"--no-binary {index} {spec}" if index else "PACKAGE"
    return seen.answer(
        "damaged-file", "FA102",
        f"{name} opens as an archive and has no {member}, which each wheel must have: it was "
        "packed so, by a build or by somebody who packed it anew. To fetch it again brings the "
        "same file until its publisher uploads another, and no version of Python, pip, torch or "
        "CUDA is involved.",
        owner=owner, direction="none", confidence="high",
        help=(
            f"{seen.python} -m zipfile -l {shown} | grep dist-info",
            f"{seen.pip} install --no-build-isolation --no-deps --no-cache-dir {source}",
        ),
        notes=(
            "A good wheel is what its publisher uploads anew, or another release has: tell them "
            "what the first command prints.",
            "The second command builds from source in its place, with the compiler of the torch "
            "that is installed (nvcc, or hipcc of ROCm).",
        ),
    )  # fmt: skip


def _damaged_archive(seen: Seen, name: str, file: str) -> Answer:
    """``Bad CRC-32``, ``Bad magic number for file header``: a wheel that is not whole."""
    shown = shlex.quote(file) if file and "://" not in file else "FILE.whl"
    owner = name.split("-")[0].replace("_", "-") if file else package_in(seen)
    remove = f"rm {shown}" if file and "://" not in file else f"{seen.pip} cache purge"
    return seen.answer(
        "damaged-file", "FA102",
        f"{name} is damaged as a file: a wheel is a zip archive, and what is in it does not fit "
        "the checksum or the headers that the archive itself holds. A download that stopped or "
        "was put together again, a bad disk, or bad memory does so. No version of Python, torch "
        "or CUDA is involved, and the name of the wheel is not at fault.",
        owner=owner, direction="none", confidence="high",
        help=(
            f"ls -l {shown}; sha256sum {shown}; {seen.python} -m zipfile -t {shown}",
            remove,
            *((f"{seen.pip} cache purge",) if remove.startswith("rm ") else ()),
        ),
        notes=(
            "Fetch it again from where it was published, and compare its size and hash with those "
            "that are told there, before pip gets it; zipfile -t names the first file in it that "
            "is damaged. What pip fetched itself is fetched anew with --no-cache-dir.",
            "Where a fresh download fails too, each time at another file, it is the machine: its "
            "memory (RAM), its disk, or a proxy on the way.",
        ),
    )  # fmt: skip


def wheel_moved(seen: Seen) -> Answer:
    """setup.py renames the wheel that it fetched, and source and target are on two disks."""
    cause = (
        "The prebuilt wheel was found and fetched; setup.py then could not rename it to pip's "
        "directory, since the two are on different file systems. Nothing is wrong with the file, "
        "the network or the permissions."
    )
    return seen.answer(
        KIND, NO_FILE, cause, owner=package_in(seen), direction="none", confidence="high",
        help=(
            f"mkdir -p ~/tmp && TMPDIR=~/tmp {seen.pip} install --no-build-isolation "
            f"--no-cache-dir {package_in(seen) or 'PACKAGE'}",
        ),
        notes=("TMPDIR on the file system of pip's cache is what counts. The other way out is to "
               'fetch the wheel of the line "Guessing wheel URL" and give that file to pip.',),
    )  # fmt: skip


def wheel_not_there(seen: Seen) -> Answer:
    """The address that setup.py made up for a prebuilt wheel holds nothing."""
    url = seen.mention.detail.get("url", "")
    status = seen.mention.detail.get("status", "404")
    cause = (
        f"The server has no file at the address that was asked for (HTTP {status}): there is no "
        "prebuilt wheel for this combination of release, torch, CUDA, Python and system, or "
        "setup.py put the address together wrongly. No installed file is at fault."
    )
    if "/../" in url:
        cause = (
            f"The address of the prebuilt wheel has /../ in it, which the server does not resolve "
            f"(HTTP {status}): setup.py put it together wrongly. Another release of the package, "
            "or the wheel fetched by hand, is the way out; no installed file is at fault."
        )
    package = package_in(seen) or re.split(r"[/-]", url.rsplit("/", 1)[-1])[0] or None
    return seen.answer(
        KIND, NO_FILE, cause, owner=package, direction="none", confidence="medium",
        help=(f"curl -sIL {shlex.quote(url)} | head -1", f"{seen.pip} debug --verbose"),
        notes=("Releases of the package that have wheels list them by name; without one, it is "
               "built from source, which takes nvcc and a compiler.",),
    )  # fmt: skip


def no_prebuilt(seen: Seen) -> Answer:
    """setup.py looked for a prebuilt wheel and goes on from source: no error by itself."""
    url = seen.mention.detail.get("url", "")
    package = package_in(seen)
    name = package or "The package"
    if seen.mention.detail.get("said"):
        cause = (
            f"{name} has no prebuilt wheel for this combination of torch, CUDA, Python and system, "
            "so setup.py builds from source. That is no error by itself: what stopped the build "
            "stands further below, and this text does not show it."
        )
    else:
        cause = (
            f"setup.py of {name} asks for a prebuilt wheel and takes the build from source where "
            "there is none. This line is no error; what stopped the installation, this text does "
            "not show."
        )
    helps = ["nvcc --version; gcc --version"]
    if url:
        helps.insert(0, f"curl -sIL {shlex.quote(url)} | head -1")
    return seen.answer(
        KIND, NO_FILE, cause, owner=package, direction="none", confidence="low",
        help=tuple(helps),
        notes=("A release of the package that has a wheel for this torch and Python spares the "
               "build; without one, a toolkit of torch's CUDA major version and time are needed.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "wheel-damaged": wheel_damaged,
    "wheel-moved": wheel_moved,
    "wheel-not-there": wheel_not_there,
    "no-prebuilt": no_prebuilt,
}
