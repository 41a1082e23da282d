"""Answers about a wheel that pip or uv refuses by its name: another Python's, or nobody's tags."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.wheel_matrix import (
    CXX11,
    PRE_CXX11,
    Wanted,
    WheelBuild,
    build_of,
    builds,
    candidates,
)
from fa_forensics.facts.wheel_tags import TagHost, impossible_pair, misfit
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.platform_wheel import other_system
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import package_in

NO_FILE = "FA887"

_TAGS = lazily(
    r"-(?P<python>(?:cp|py|pp)[\w.]{1,40})-(?P<abi>\w{1,40})-(?P<platform>[\w.]{1,120})\.whl"
)


def wheel_not_supported(seen: Seen) -> Answer:
    """``... is not a supported wheel on this platform``: pip refuses the file by its name."""
    file = seen.mention.file or seen.mention.library or ""
    other = other_system(seen, file.rpartition("/")[2])
    if other is not None:
        return other
    name = file.rpartition("/")[2] or "The wheel"
    who = "uv" if seen.mention.detail.get("by") == "uv" else "pip"
    kind, why = "python-abi", None
    tags = _TAGS.search(name)
    host = _host(seen)
    if tags is not None and impossible_pair(_parts(tags, "python"), _parts(tags, "abi")):
        return _no_such_pair(seen, who, name, tags, host)
    if tags is not None and host is not None:
        platforms = _parts(tags, "platform")
        if on_windows(seen) and tags["platform"] == "win_amd64":
            platforms = (f"linux_{host.machine}",)  # the system fits: its Python is what counts
        why = misfit(host, _parts(tags, "python"), _parts(tags, "abi"), platforms)
        kind = _kind_of_misfit(why or "")
        if why is None and not seen.mention.detail.get("here"):
            return _should_fit(seen, who, name, host)
    part = re.search(r"\bcp(\d)(\d{1,2})\b", name) if tags is None else None
    if part is not None:
        return _of_its_python(seen, name, f"{part[1]}.{part[2]}", host)
    cause = f"{who} refuses {name} by the tags in its name"
    if seen.mention.detail.get("for") and seen.mention.detail.get("here"):
        made, here = (seen.mention.detail[key].replace("`", "") for key in ("for", "here"))
        cause += f": it is for {made}, and {here} is what runs here"
    elif why is not None:
        cause += f": {why}"
    elif tags is not None:
        cause += f": it is for {_python_words(tags['python'])} on {tags['platform']}"
    cause += _RENAMING
    fetch, told = _fetch(seen, name, host) if kind == "python-abi" else ((), ())
    return seen.answer(
        kind, NO_FILE, cause, owner=package_in(seen), direction="none",
        confidence="high" if why is not None else "medium",
        help=(*fetch, f"{seen.pip} debug --verbose", _show(seen)),
        notes=(
            *told,
            *_ways_out(kind, tags, host),
            "The command with debug lists the tags that this pip accepts, the best first.",
        ),
    )  # fmt: skip


def _parts(tags: re.Match[str], part: str) -> tuple[str, ...]:
    return tuple(tags[part].split("."))


def _show(seen: Seen) -> str:
    shown = f"{seen.python} -c 'import sys, platform; print(sys.version, platform.machine())'"
    return shown.replace("'", '"') if on_windows(seen) else shown


_ITS_FILE = (
    "The first command takes the file of the same release, torch, CUDA and flavour for the Python "
    "that runs; --no-deps leaves torch as it is."
)
_ANOTHER = (
    "The first command takes flash-attn's own file for the torch and the Python of the text; "
    "--no-deps leaves torch as it is."
)


def _fetch(seen: Seen, name: str, host: TagHost | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): flash-attn's own wheel in place of one for another Python."""
    made = build_of(name)
    if made is None:
        return (), ()
    if seen.torch and _minor(seen.torch) != made.torch:
        release = seen.torch.partition("+")[0]
        said = (
            f"Its name is for torch {made.torch} besides, and the torch of the text is {release}: "
            "the file to take has that torch in its name as well."
        )
        other = _for_torch(seen, made, host)
        if other is None:
            return (), (said,)
        return (f"{seen.pip} install --no-deps {other.url}",), (_ANOTHER, said)
    alike = (b for b in builds() if b._replace(python=made.python) == made)
    found = next((b for b in alike if host is not None and b.python == host.python), None)
    if found is None:
        return (), ()
    return (f"{seen.pip} install --no-deps {found.url}",), (_ITS_FILE,)


def _for_torch(seen: Seen, made: WheelBuild, host: TagHost | None) -> WheelBuild | None:
    present = seen.place.present
    if host is None or present is None or present.flavour not in (CXX11, PRE_CXX11):
        return None
    cuda = seen.torch_cuda or made.cuda_major
    wanted = Wanted(_minor(present.release), host.python, cuda, present.flavour, made.platform)
    sure = [b for b in candidates(wanted) if not (b.nightly or b.unlikely or b.mislabelled)]
    return next((b for b in sure if b.release == made.release), sure[0] if sure else None)


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _no_such_pair(
    seen: Seen, who: str, name: str, tags: re.Match[str], host: TagHost | None
) -> Answer:
    """A name that no Python accepts: a converted egg's, or one that was put together by hand."""
    pair, abi = f"{tags['python']}-{tags['abi']}", tags["abi"].split(".")[0]
    of = re.match(r"cp(\d)(\d{1,2})", abi)
    made = f"{of[1]}.{of[2]}" if of else ""
    right = f"cp{of[1]}{of[2]}-{abi}-{tags['platform']}" if of else ""
    fits = host is None or not made or host.python == made
    cause = (
        f"{who} refuses {name} by the tags in its name: {pair} is a pair that no Python accepts, "
        "whichever runs, for the tag of an ABI goes with the tag of its own Python alone."
    )
    if right:
        cause += f" The name of such a file ends in {right}.whl."
    if not fits and host is not None:
        cause += f" Its code is for Python {made} besides, and Python {host.python} runs here."
    cause += " Nothing was loaded, and neither torch, CUDA nor the GPU was looked at."
    built = name.split("-")[0].replace("_", "-")
    notes = [
        "The first command is run in the directory of the sources, with the Python that is to "
        "run it: pip gives the wheel its name itself. python setup.py bdist_wheel does so too, in "
        "dist; bdist_egg makes an egg, and what wheel convert makes of an egg has such a name.",
    ]
    if of and fits and tags["python"].startswith("py"):
        own = f"cp{of[1]}{of[2]}"
        notes.append(
            f"A file that was built well under a wrong name: {seen.python} -m wheel tags "
            f"--python-tag {own} {shlex.quote(name)} writes it again with the right tag "
            "in its name and its metadata (wheel 0.40 or newer). That is no way to another Python."
        )
    return seen.answer(
        "damaged-file", NO_FILE, cause, owner=package_in(seen), direction="none", confidence="high",
        help=(
            f"{seen.pip} wheel --no-build-isolation --no-deps --no-cache-dir -w dist .",
            f"{seen.pip} install --no-deps --force-reinstall --no-index --find-links dist {built}",
            f"{seen.pip} debug --verbose",
        ),
        notes=(*notes, "The command with debug lists the tags that this pip accepts."),
    )  # fmt: skip


def _should_fit(seen: Seen, who: str, name: str, host: TagHost) -> Answer:
    """The tags fit what the text tells: the pip that ran is another Python's."""
    return seen.answer(
        "python-abi", NO_FILE,
        f"{who} refuses {name} by the tags in its name, and they fit Python {host.python} as the "
        "text tells it. Most likely the pip that ran belongs to another Python (another "
        "environment, a system's, a 32-bit one), is itself too old for the tag of the system, or "
        "the file was renamed by the download.",
        owner=package_in(seen), direction="none", confidence="medium",
        help=(f"{seen.pip} --version", _show(seen), f"{seen.pip} debug --verbose"),
        notes=(
            "The first command prints the Python that pip belongs to: install with python -m pip, "
            "of the Python that is to run it.",
            "The command with debug lists the tags that this pip accepts, the best first.",
        ),
    )  # fmt: skip


_RENAMING = ". Renaming it changes the name, not the code inside."


def _of_its_python(seen: Seen, name: str, python: str, host: TagHost | None) -> Answer:
    """A wheel of which the text names the Python alone: ``cp39-cp39``."""
    package = package_in(seen)
    shown = name if name.endswith(".whl") else f"the wheel{f' of {package}' if package else ''}"
    cause = f"pip refuses {shown} by its tags: it is for Python {python}"
    other = host is not None and host.python != python
    if other and host is not None:
        cause += f", and Python {host.python} runs here"
    cause += _RENAMING
    return seen.answer(
        "python-abi", NO_FILE, cause, owner=package, direction="none",
        confidence="high" if other else "medium",
        help=(
            _show(seen),
            f"{seen.pip} debug --verbose",
        ),
        notes=_ways_round("cp" + python.replace(".", "")),
    )  # fmt: skip


def _ways_out(kind: str, tags: re.Match[str] | None, host: TagHost | None) -> tuple[str, ...]:
    """Another Python helps where the Python is what does not fit, and there alone."""
    if kind == "python-abi":
        return _ways_round(tags["python"] if tags else "", _ending(tags, host))
    if kind == "glibc" or host is None or not host.machine:
        return ()
    return (
        f"The way out is a file of the same release for {host.machine}, as far as its project has "
        "one, or a build of it from source here: no Python runs code for another processor.",
    )


def _ending(tags: re.Match[str] | None, host: TagHost | None) -> str:
    """``cp312-cp312-linux_x86_64``: how the name of the same file for this Python ends."""
    if tags is None or host is None or tags["abi"] != tags["python"]:
        return ""
    return f"{host.tag}-{host.tag}{host.abiflags}-{tags['platform']}"


def _ways_round(tag: str, ending: str = "") -> tuple[str, ...]:
    """Another file, or another Python for this one."""
    found = re.fullmatch(r"cp(\d)(\d{1,2})", tag)
    if found is None:
        return ()
    of = f"{found[1]}.{found[2]}"
    if ending:
        return (
            f"Two ways: the file of the same release whose name ends in {ending}.whl, with the "
            "torch and CUDA that are used in it, as far as its project has one; or, on a system "
            f"that the name is for, an environment with Python {of} (conda create -n NAME "
            f"python={of}, or uv venv --python {of}).",
        )
    return (
        "Two ways: the file of the same release whose name has the tags of this Python and system, "
        "with the same torch and CUDA in it; or, on a system that the name is for, an environment "
        f"with Python {of} (conda create -n NAME python={of}, or uv venv --python {of}).",
    )


def _host(seen: Seen) -> TagHost | None:
    """The Python and the machine that refused the wheel, as far as they are told."""
    environment = None if seen.elsewhere else seen.place.environment
    if environment is not None:
        return TagHost(
            environment.version_short, environment.abiflags, environment.implementation,
            environment.machine, environment.libc, None,
        )  # fmt: skip
    running = re.search(r"CPython (\d{1,2}\.\d{1,3})", seen.mention.detail.get("here", ""))
    found = running or re.match(r"(\d{1,2}\.\d{1,3})", seen.python_version or "")
    if found is None:
        return None
    libc = re.match(r"(\d{1,2})\.(\d{1,3})", seen.versions.get("glibc", ""))
    return TagHost(
        found[1], "", "cpython", seen.place.machine, "glibc",
        (int(libc[1]), int(libc[2])) if libc else None,
    )  # fmt: skip


def _kind_of_misfit(why: str) -> str:
    if "asks for" in why:
        return "glibc"
    other = "this Python is for" in why or "here is Linux" in why or "runs on" in why
    return "wrong-machine" if other else "python-abi"


def _python_words(tag: str) -> str:
    found = re.fullmatch(r"cp(\d)(\d+)", tag)
    return f"Python {found[1]}.{found[2]}" if found else tag


ANSWERERS: dict[str, Answerer] = {"wheel-not-supported": wheel_not_supported}
