"""Commands about the CUDA toolkit of a build, in the words of the system that the text is from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.numbers import minor_numbers
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.clues import CALLED, jobs_of, package_in

_DRIVE = lazily(r"(?<![A-Za-z])[A-Za-z]:[\\/]{1,2}(?:\w|\.\.\.[\\/])")
#: A whole path of Linux, or one that is cut short before its first directory.
_LINUX = lazily(r"(?:~|\.{3})?/")
_LIBRARY = lazily(r"\.so(?:\.\d|$)")


_FLAGS = frozenset(("flag:windows", "flag:windows-told"))


def on_windows(seen: Seen) -> bool:
    """Whether the text is of Windows: by its paths, or what it says of the system.

    A path of Windows elsewhere in the text, or a sentence that names it, counts only where the
    paths of the message itself are none of Linux.
    """
    versions, detail = seen.versions, seen.mention.detail
    told = detail.get("os") or f"{versions.get('os', '')} {versions.get('platform', '')}"
    texts = (*seen.paste.places, seen.mention.line, *detail.values())
    if (seen.mention.file or "").lower().endswith((".pyd", ".dll")):
        return True
    if "windows" in told.lower() or any(_DRIVE.search(text) for text in texts):
        return True
    return not _FLAGS.isdisjoint(versions) and not on_linux(seen)


def in_wsl(seen: Seen) -> bool:
    """Whether the Windows of a text is around its Linux: WSL, or a Linux that the text names.

    A drive letter elsewhere in the text is then that of the computer; one in the message itself,
    or in a path of packages, is Windows all the same.
    """
    system = seen.versions.get("os", "")
    other = any(word in system.lower() for word in ("win", "mac"))
    linux = "flag:wsl" in seen.versions or (bool(system) and not other)
    if not linux or "flag:windows-told" in seen.versions or seen.mention.detail.get("os"):
        return False
    texts = (*seen.paste.places, seen.mention.line, *seen.mention.detail.values())
    return not any(_DRIVE.search(text) for text in texts)


def on_linux(seen: Seen) -> bool:
    """Whether the paths of the message itself are none of Windows.

    The name of a library counts where the message has it: a reader may have put one in.
    """
    file, line = seen.mention.file or "", seen.mention.line
    paths = (file, seen.mention.detail.get("frame", ""), *seen.paste.places)
    return any(_LINUX.match(path) for path in paths) or (
        _LIBRARY.search(file) is not None and file in line
    )


def which_toolkit(seen: Seen) -> str:
    """Print which nvcc is taken and which toolkits there are."""
    if on_windows(seen):
        return "nvcc --version & where nvcc & echo %CUDA_HOME% %CUDA_PATH%"
    return (
        "nvcc --version; command -v nvcc; echo CUDA_HOME=$CUDA_HOME CUDA_PATH=$CUDA_PATH; "
        "ls -d /usr/local/cuda*"
    )


def cuda_of_build(seen: Seen) -> str | None:
    """The CUDA of torch for what is compiled; None where the text's CUDA speaks against it.

    Where only the build on the package index tells of torch's CUDA and the text has another major
    version, torch is as likely a build for that one.
    """
    cuda, there = seen.torch_cuda, (seen.versions.get("cuda") or "").strip()
    guessed = seen.elsewhere and "torch_cuda" not in seen.versions
    if cuda and guessed and "+" not in seen.versions.get("torch", "") and there:
        return cuda if there.split(".")[0] == cuda.split(".")[0] else None
    return cuda


def with_toolkit(seen: Seen, cuda: str, command: str) -> tuple[str, ...]:
    """Run a command with the toolkit of a CUDA version, where its installer puts it."""
    if on_windows(seen):
        home = f"C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v{cuda}"
        return f'set "CUDA_HOME={home}"', command
    return (f"CUDA_HOME=/usr/local/cuda-{cuda} {command}",)


def package_built(seen: Seen) -> str | None:
    """The distribution that the text builds, as far as it says; None for an unknown one."""
    detail = seen.mention.detail
    own = detail.get("package") if detail.get("source", "").startswith("file:") else None
    name = own or package_in(seen) or detail.get("package") or named_alone(seen)
    return CALLED.get(name or "", name)


def named_alone(seen: Seen) -> str | None:
    """The one package which is compiled from its source that the text names beside torch."""
    from fa_forensics.rules.remedy import row_of

    keys = [key for key in seen.versions if key.startswith(("named:", "pkg:"))]
    names = {CALLED.get(key.partition(":")[2], key.partition(":")[2]) for key in keys}
    rows = [row for name in sorted(names) if (row := row_of(name)) is not None]
    built = {str(r["distribution"]) for r in rows if r["source_build"] and not r.get("by_cuda")}
    return built.pop() if len(built) == 1 else None


def what_to_build(seen: Seen) -> str:
    """What pip is given: a tree of sources, an address, or a package by its name."""
    detail = seen.mention.detail
    words = " ".join((seen.mention.line, *detail.values()))
    if "://" in detail.get("source", ""):
        return _from_source(detail["source"])
    if detail.get("typed"):
        option, _, typed = detail["typed"].rpartition(" ")
        return f"{option} {quoted(typed)}".strip()
    if detail.get("editable") or re.search(r"\bbuild_editable\b|\bbuilding editable\b", words):
        return "-e ."
    if "flag:from-here" in seen.versions and not detail.get("package"):
        return "."
    from fa_forensics.rules.remedy import at_tag, row_of

    name = package_built(seen)
    row = row_of(name) if name else None
    version = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
    if row is not None and row.get("requirement"):
        return f"{row['requirement']}{at_tag(row, version)}"
    if name and re.fullmatch(r"\d{1,3}(?:\.\d{1,4}){1,3}(?:\.?post\d{1,2})?", version):
        return f'"{name}=={version}"'
    return name or "PACKAGE"


def _from_source(source: str) -> str:
    """What pip is given for an address: a directory of this machine by its path, the rest as is.

    ``file:///[...]/git/name``: a path that was cut is the directory that the reader is in.
    """
    if not source.startswith("file://"):
        return quoted(source)
    path = unquote(source.removeprefix("file://").partition("#")[0])
    if re.match(r"/[A-Za-z]:/", path):  # file:///C:/name, of Windows
        path = path[1:].replace("/", "\\")
        return "." if re.search(r"[\"%^&<>|\[\]\u2026]|\.\.\.", path) else f'"{path}"'
    return "." if re.search(r"\[|\.\.\.|\u2026|[<>]", path) or path[:1] != "/" else quoted(path)


def build_command(seen: Seen) -> str:
    """Compile with the torch that is installed."""
    return f"{seen.pip} install --no-build-isolation {what_to_build(seen)}"


_FROM_A_DIRECTORY = (
    "Where it was installed from a directory (a submodule of a project) or an address, that goes "
    "in place of the name: the package index may have nothing of that name, or another project."
)


def unnamed(command: str) -> tuple[str, ...]:
    """What PACKAGE in a command stands for."""
    given = re.search(r"--no-build-isolation ([A-Za-z][\w-]{1,60})$", command)
    if given is not None and given[1] != "PACKAGE":
        from fa_forensics.rules.remedy import row_of

        return (_FROM_A_DIRECTORY,) if row_of(given[1]) is None else ()
    if not command.endswith("PACKAGE"):
        return ()
    return ("PACKAGE is what was being installed when the message came.",)


def build_variables(seen: Seen, package: str | None) -> str:
    """What the package's build goes by; not that it must compile where a wheel would do."""
    from fa_forensics.rules.remedy import row_of

    row = row_of(package) if package else None
    if row is None or not row.get("environment") or on_windows(seen):
        return ""
    jobs = jobs_of(seen)
    words = [w for w in str(row["environment"]).split() if "_FORCE_BUILD" not in w]
    text = " ".join(words) + " " if words else ""
    return text if jobs is None else re.sub(r"MAX_JOBS=\d+", f"MAX_JOBS={jobs}", text)


def prebuilt(seen: Seen, package: str | None) -> tuple[str, ...]:
    """Where the package's project has wheels for each torch and CUDA, which need no nvcc."""
    from fa_forensics.rules.remedy import row_of

    row = row_of(package) if package else None
    if row is None or on_windows(seen):
        return ()
    from fa_forensics.rules.wheel_pages import page_of

    page = str(row.get("find_links", ""))
    from fa_forensics.why.ways.older_name import name_then

    package = name_then(str(package), seen.torch, seen.python_version, seen.versions)
    label, minor = _label_of(seen)
    place = page_of(row, label or "CUDA", minor or "X.Y")
    if page and not place:
        return (
            f"{package}'s own project has no wheels for so new a CUDA or torch; it has them up to "
            f"{_last_pages(row)}. Here it is built from its source, or goes with a torch of those.",
        )
    if page and label and minor:
        return (
            f"{package} has wheels of its own for most torch releases and CUDA versions, which "
            f"need no nvcc: pip install {package} -f {place}.",
        )
    if page:
        return (
            f"{package} has wheels of its own for most torch releases and CUDA versions, which "
            f"need no nvcc: pip install {package} -f {place}, with torch's own minor release in "
            "place of X.Y and, where CUDA stands, its CUDA as in cu121.",
        )
    if package == "flash-attn":
        return (
            "A wheel of flash-attn's own releases needs no nvcc at all: fa-forensics wheels names "
            "the one for the torch, CUDA, Python and C++ flavour of an environment, if there is "
            "one.",
        )
    from fa_forensics.why.ways.by_torch import project_wheels

    own = row.get("wheels_for")
    last = own.get("last_cuda") if isinstance(own, Mapping) else None
    cuda = seen.mention.detail.get("torch_cuda") or seen.torch_cuda
    if last and cuda and minor_numbers(cuda) > minor_numbers(str(last)):
        return ()
    return tuple(project_wheels(row, str(package), seen.place))


def _last_pages(row: Mapping[str, object]) -> str:
    """The last CUDA and torch that a project has wheels for: ``CUDA 12.1 and torch 2.4``."""
    ends = row.get("find_links_to")
    if not isinstance(ends, Mapping):
        return ""
    return f"CUDA {cuda_of_label(str(ends['label']))} and torch {ends['torch']}"


def _label_of(seen: Seen) -> tuple[str, str]:
    """(cu121, 2.1) of the torch that the text tells of; "" for what it does not say."""
    torch = seen.torch or ""
    local = torch.partition("+")[2]
    cuda = seen.mention.detail.get("torch_cuda") or seen.torch_cuda or ""
    label = local if re.fullmatch(r"cu\d{2,3}", local) else ""
    return label or cuda_label(cuda), ".".join(torch.split(".")[:2]) if "+" in torch else ""


def with_jobs(seen: Seen, jobs: int, command: str) -> tuple[str, ...]:
    """Run a build with so many compilers at once."""
    if on_windows(seen):
        return f"set MAX_JOBS={jobs}", command
    return (f"MAX_JOBS={jobs} {command}",)


def with_variable(seen: Seen, setting: str, command: str) -> tuple[str, ...]:
    """Run a command with variables (NAME=VALUE, blanks between), as the text's shell has it."""
    if on_windows(seen):
        return (*(" ".join(("set", one)) for one in setting.split()), command)
    return (f"{setting} {command}",)


def toolkit_library(seen: Seen, library: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): a library of the toolkit that the linker does not find on Linux."""
    if on_windows(seen):
        return (), ()
    package = "cuda-cudart" if library == "cudart" else f"lib{library}"
    cuda = re.match(r"(\d{1,2})\.(\d{1,2})", cuda_of_build(seen) or "")
    release = f"{cuda[1]}-{cuda[2]}" if cuda else "X-Y"
    helps = [
        "export LIBRARY_PATH=/usr/local/cuda/lib64:$LIBRARY_PATH",
        f"sudo apt-get install {package}-dev-{release}",
    ]
    unsaid = "" if cuda else " (X-Y is torch's CUDA, as in 12-1)"
    notes = [
        "LIBRARY_PATH is what gcc hands to the linker: the directory that the first command finds "
        "stands there. Where there is none, apt-get brings the file, from NVIDIA's "
        f"repository{unsaid}; in a conda environment it is conda install -c nvidia "
        f"{package}-dev, and LIBRARY_PATH=$CONDA_PREFIX/lib."
    ]
    made = seen.mention.detail.get("made", "")
    if made:
        helps.append(f"rm -rf ~/.cache/torch_extensions/*/{made}")
        notes.append(
            "The last command removes the half-made build of a JIT extension, which else is taken "
            "up again."
        )
    return tuple(helps), tuple(notes)
