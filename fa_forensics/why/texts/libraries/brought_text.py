"""Which wheel and which torch bring a library of CUDA along, and whether the text shows it."""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_index import index_option, is_on_index
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel, wheels_on_path


def known_releases(seen: Seen) -> tuple[str, ...]:
    """The torch releases of the table."""
    atlas = seen.tables.atlas
    return atlas.releases(seen.place.machine) if atlas is not None else ()


def torches_bringing(seen: Seen, soname: str) -> tuple[str, ...]:
    """The torch releases whose wheels bring a CUDA library along."""
    from fa_forensics.atlas.brought import BroughtLibraries

    atlas, libraries = seen.tables.atlas, seen.tables.libraries
    if atlas is None or libraries is None:
        return ()
    found = []
    for build in atlas.builds(seen.place.machine):
        if build.cuda is not None:
            brought = BroughtLibraries(build, build.cuda, libraries, "")
            if brought.release_of(soname) is not None:
                found.append(build.release)
    return tuple(found)


def brought_by_torch(seen: Seen, soname: str) -> str | None:
    """The wheel that the torch of a text pins a library to: ``nvidia-cudnn-cu12==9.1.0.70``."""
    from fa_forensics.atlas.brought import BroughtLibraries

    requested, libraries = seen.place.requested, seen.tables.libraries
    if requested is None or libraries is None or requested.cuda != requested.build.cuda:
        return None  # what a build for another CUDA pins is not on record
    brought = BroughtLibraries(requested.build, requested.cuda or "", libraries, requested.folder)
    row = brought.release_of(soname)
    if row is None or row.distribution not in requested.build.requires:
        return None
    return f"{row.distribution}=={row.version}"


def wheels_of(seen: Seen, soname: str) -> str:
    """The wheels that bring a library, in words: ``nvidia-nccl-cu12 or nvidia-nccl-cu13``."""
    table = seen.tables.libraries
    names = dict.fromkeys(row.distribution for row in table.releases(soname)) if table else {}
    return " or ".join(names) or "a wheel of its own"


def there_already(seen: Seen) -> tuple[str, ...]:
    """That the text itself shows the library, in a place where the loader does not look."""
    path = seen.mention.detail.get("present")
    if not path:
        return ()
    return (
        f"The text has the library itself, {path}: it is there, and not where the file that needs "
        "it looks. Its own package looks beside itself, so that a copy in another Python, another "
        "environment or another directory of packages does not count.",
    )


def wheel_of(seen: Seen, soname: str, major: str) -> str | None:
    """The wheel that brings a library for a CUDA major version: ``nvidia-cuda-runtime-cu12``."""
    table = seen.tables.libraries
    if table is None:
        return None
    names = dict.fromkeys(row.distribution for row in table.releases(soname))
    if soname.endswith(".so"):
        sonames = [s for s in table.sonames() if s.startswith(f"{soname}.")]
        names = dict.fromkeys(row.distribution for s in sonames for row in table.releases(s))
    return next((name for name in names if major_of(name) == major), None)


def on_path(seen: Seen, *distributions: str) -> str:
    """The command that puts the directories of wheels on the loader's path."""
    folders = dict.fromkeys(folder_of_wheel(one) for one in distributions)
    return wheels_on_path(seen.python, *folders)


def cuda_of_index(seen: Seen, release: str) -> str:
    """The CUDA of the one build of a torch release that the package index has; "" for unknown."""
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None else None
    return (build.cuda or "") if build is not None else ""


def torch_again(seen: Seen, release: str, told: str = "") -> str:
    """The command that installs the very torch of a text again, from the index of its CUDA.

    The package index has one build of each release, and pip takes that one where no other index
    is named: another CUDA, or another CPU, than the torch that is there. ``told`` is the CUDA
    of a torch whose own the text does not say.
    """
    command = f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
    label = seen.versions.get("torch", "").partition("+")[2]
    if not re.fullmatch(r"cpu|cu\d{2,3}|rocm[\d.]{1,6}", label):
        cuda = seen.versions.get("torch_cuda") or seen.versions.get("index_cuda") or told
        label = cuda_label(cuda)
        label = label if is_on_index(release, label) else ""
    own = cuda_label(cuda_of_index(seen, release))
    if not label or label == own:
        return command
    return command + index_option(label)


def major_of(distribution: str) -> str:
    """The CUDA major version that a wheel is for: "12" of ``nvidia-nccl-cu12``."""
    found = re.search(r"-cu(\d{2})$", distribution)
    return found[1] if found else "13"


#: The first version that has a name, of NVIDIA's wheels for one CUDA major version.
_SINCE = lazily(r"-cu(?P<line>\d\d) (?P<version>\d{1,2}\.\d{1,2})[\d.]{0,9} and later")


def first_by_line(interval: str | None) -> dict[str, str]:
    """The first version with a name by the CUDA major version of the wheels: {"12": "12.4"}."""
    return {found["line"]: found["version"] for found in _SINCE.finditer(interval or "")}


def of_old_driver(seen: Seen, major: str) -> tuple[str, str] | None:
    """(the CUDA that a driver serves at most, what says so), where it is none of this major."""
    from fa_forensics.why.whereabouts import driver_cuda

    most = driver_cuda(seen.paste)
    if most is None or not major.isdigit() or most[0] >= int(major):
        return None
    driver = seen.versions.get("driver", "")
    words = f"the driver {driver}" if driver else "the driver of the text"
    return f"{most[0]}", f"{words} serves CUDA {most[0]}.{most[1]} at most, and none of {major}"


def told_cuda(seen: Seen) -> tuple[str, str] | None:
    """(the CUDA that torch most likely has, what in the text says so); None for nothing.

    For texts that do not tell torch's own: by the address that pip was given, by the wheels of
    NVIDIA that are there, and by a library of theirs under another number.
    """
    index = seen.versions.get("index_cuda")
    if index:
        return index, f"the address that pip is given in the text is that for CUDA {index}"
    number = seen.mention.detail.get("other_number", "")
    name = (seen.mention.library or "").rsplit("/", 1)[-1].split(".so")[0]
    if number and name in ("libcudart", "libnvrtc", "libcublas", "libcublasLt"):
        return number, f"the text shows {name}.so.{number} among NVIDIA's wheels"
    spoken = seen.mention.detail.get("cuda_spoken", "")
    if spoken:
        return spoken, f"the text speaks of CUDA {spoken} for the image or environment"
    wheels = seen.place.told.wheels if seen.place.told is not None else ()
    lines = {found[1] for one, _ in wheels if (found := re.search(r"-cu(1[1-9])$", one))}
    if len(lines) == 1 and len(wheels) > 1:
        major = lines.pop()
        return major, f"the text lists NVIDIA's wheels for CUDA {major}, which torch brings"
    image = seen.versions.get("ngc", "")
    own = image_cuda(image) if "torch" not in seen.versions else ""
    if own:
        return own, f"the torch of NVIDIA's image {image} is one for CUDA {own}"
    system, old = seen.versions.get("cuda", ""), re.search(r"\.so\.([89]|10)\.\d$", soname_of(seen))
    if old is None or not re.match(r"1[1-9]\.\d", system) or "torch" in seen.versions:
        return None
    return system, (
        f"the text gives the system's CUDA as {system}, and no torch; the first command tells "
        "whether torch's own is another"
    )


def soname_of(seen: Seen) -> str:
    """The library that the text misses, without its directory."""
    return (seen.mention.library or "").rsplit("/", 1)[-1]


def image_cuda(image: str) -> str:
    """The CUDA major version of a PyTorch image of NVIDIA's ("25.02"); "" where not recorded."""
    rows = read_table("pytorch_images.json")["rows"]
    fits = (r for r in rows if r["first"] <= image and (not r["last"] or image <= r["last"]))
    return next((str(row["cuda"]) for row in fits if image), "")
