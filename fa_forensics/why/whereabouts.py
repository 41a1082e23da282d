"""Whether a pasted text is of this environment, and what to judge it by where it is not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fa_forensics.errors import UsageError
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.files import absolute
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.paste import Paste
from fa_forensics.facts.symbol_text import parse_symbol
from fa_forensics.facts.torch_install import is_own_build, is_published, release_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.nvidia.wheels import installed_version
from fa_forensics.why.pasted import paste_answers
from fa_forensics.why.place import Place, Told
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import Present, order_key
from fa_forensics.why.two_torches import the_one_that_lacks_it, with_the_other

if TYPE_CHECKING:
    from fa_forensics.atlas.requested import RequestedTorch

HERE, ELSEWHERE = "here", "elsewhere"
_ROCM = "+rocm"
#: What a text with torch for CUDA, or with a GPU of NVIDIA, tells.
_OF_NVIDIA = ("torch_cuda", "index_cuda", "cuda", "gpu", "driver", "driver_cuda")

#: The Python in a path: ``.cpython-310-``, ``/python3.10/``, ``torch_extensions/py310_cu121``.
_PYTHON_TAG = lazily(r"\.cpython-(\d{2,3})\D|/python(\d\.\d{1,2})/|/py(\d{2,3})_\w+/")

_VERSION = lazily(r"\d{1,4}(?:\.\d{1,4}){1,3}[\w.+-]*")


def judge_text(
    paste: Paste, here: Place, tables: Tables, where: str | None, named: bool
) -> tuple[Place, tuple[Answer, ...], str | None]:
    """(the place it was judged in, the answers, a sentence where that is not this environment).

    ``named`` tells that ``here`` is a torch that was asked for, which then counts.
    """
    if named:
        return here, paste_answers(paste, here, tables, True), None
    place, elsewhere, note = whereabouts(paste, here, tables, where)
    answers = paste_answers(paste, place, tables, elsewhere)
    if elsewhere:
        loaded = the_one_that_lacks_it(answers, paste, tables, told_place)
        if loaded is not None:
            return *loaded, _said(f"the text names {loaded[0].here} as well", loaded[0])
        answers = with_the_other(answers, paste, place, tables, told_place)
    provider = answers[0].provider
    if elsewhere or where is not None or provider is None or any(m.file for m in paste.mentions):
        return place, answers, note
    # Nothing says where the text is from, and what it misses is not missing here.
    other = told_place(paste, tables)
    reason = f"{os.path.basename(provider)} here exports the name"
    here.close()
    return other, paste_answers(paste, other, tables, True), _said(reason, other)


def _said(reason: str, place: Place, other_build: bool = False) -> str:
    """``other_build``: the text's torch is none of the package index's builds for CUDA."""
    told = "judged by the history"
    if place.present is not None:
        told = f"judged by {place.here}, as the text says"
        asked = place.requested.request.text if place.requested is not None else "+"
        if "+" not in asked and "+" in place.present.version and not other_build:
            release = place.present.version.partition("+")[0]
            told = (
                f"judged by torch {release}, as the text says, in the build that PyPI has of it "
                f"({place.present.version})"
            )
    return f"{reason}: {told}; --here judges by what is installed here."


def whereabouts(
    paste: Paste, here: Place, tables: Tables, where: str | None
) -> tuple[Place, bool, str | None]:
    """(the place to judge in, whether that is not this environment, a sentence that says so).

    ``where`` settles it; without it the text does: a failing file that is not on this
    machine, or another torch than the one installed here.
    """
    reason = None
    if where is None:
        reason = _not_from_here(paste, here, tables)
        where = ELSEWHERE if reason else HERE
    elif where == ELSEWHERE:
        reason = "--elsewhere says that the text is of another machine"
    if where == HERE:
        return here, False, None
    place = told_place(paste, tables)
    here.close()
    said = _said(reason or "the text is of another machine", place, _other_build(paste, place))
    return place, True, said


def _other_build(paste: Paste, place: Place) -> bool:
    """Whether a text tells a torch for ROCm, or for a CUDA that is not that of the index's."""
    if "flag:macos-told" in paste.versions or any(
        mention.detail.get("os") == "macOS" for mention in paste.mentions[:20]
    ):
        return True
    if {"flag:torch-rocm", "flag:torch-xpu", "flag:torch-source"} & paste.versions.keys():
        return True
    told = paste.versions.get("torch_cuda") or paste.versions.get("index_cuda")
    own = place.requested.cuda if place.requested is not None else None
    if told is not None and own is not None:
        return told.split(".")[:2] != own.split(".")[:2]
    amd = any(key in paste.versions for key in ("rocm", "gfx", "amd_gpu", "rocm_sdk"))
    return amd and not any(key in paste.versions for key in _OF_NVIDIA)


def told_torch(paste: Paste, tables: Tables) -> str | None:
    """The version of torch that a text names; None where it names none, or no torch has it."""
    match = _VERSION.search(paste.versions.get("torch", "") or _chosen_for(paste))
    if match is None:
        return None
    version = _with_its_dots(match[0].rstrip(".+-"), tables)
    known = tables.atlas.releases() if tables.atlas is not None else ()
    newest = int(known[-1].split(".")[0]) if known else 2
    return version if int(version.split(".")[0]) <= newest else None


#: Packages with a build for each torch, of which the one that is loaded chooses its own:
#: metatensor/torch/torch-2.3/lib/libmetatensor_torch.so (metatensor/torch/_c_lib.py).
_CHOSEN = lazily(r"/torch/torch-(\d\.\d{1,2})/lib/lib\w{1,60}_torch\.so")


def _chosen_for(paste: Paste) -> str:
    """The torch whose build of a package was loaded, by the directory of the failing file."""
    found = (_CHOSEN.search(mention.file or "") for mention in paste.mentions[:20])
    return next((one[1] for one in found if one is not None), "")


def _with_its_dots(version: str, tables: Tables) -> str:
    """``1.51`` is 1.5.1 where no release is 1.51; any other version as it is."""
    found = re.fullmatch(r"(\d)\.(\d{1,2})(\d)", version)
    if found is None or tables.atlas is None or tables.ages is None:
        return version
    if any(release.startswith(f"{version}.") for release in tables.ages.releases()):
        return version
    whole = ".".join(found.groups())
    return whole if whole in tables.ages.releases() else version


def _not_from_here(paste: Paste, here: Place, tables: Tables) -> str | None:
    """Why a text is not of this environment, half a sentence; None where it may well be."""
    version = told_torch(paste, tables)
    if version is not None:
        if here.present is None:
            if "torch_traced" in paste.versions:
                return f"the text has line numbers of torch {version}, and there is no torch here"
            return f"the text names torch {version}, and there is no torch here"
        if not _same_torch(version, here.present.version):
            return f"the text names torch {version}, installed here is {here.present.text}"
    python = _python(paste)
    own = here.environment.version_short if here.environment else None
    if python is not None and own is not None and python != own:
        return f"the text is of Python {python}, here is {own}"
    strange = [place for place in paste.places if place.startswith("/")]
    if strange and not any(os.path.isdir(place) for place in strange):
        return f"{strange[0][:200]} is not on this machine"
    files = [mention.file for mention in paste.mentions if mention.file]
    if not files:
        for distribution, told in told_wheels(paste):
            if here.environment is not None and installed_version(here, distribution) != told:
                return f"the text names {distribution} {told}, which is not installed here"
        if here.present is None and _misses_torch(paste):
            return "the text is about names of torch, and there is no torch here"
        if (below := paste.versions.get("driver_below")) is not None:
            return f"the text tells of a driver older than that of CUDA {below}"
        return None
    file = files[0]
    if _is_here(file, here):
        return None
    shown = file if len(file) < 120 else "..." + file[-100:]
    return f"{shown} is not on this machine"


def _misses_torch(paste: Paste) -> bool:
    """Whether a name of torch is what a text says is missing."""
    for mention in paste.mentions[:20]:
        symbol = parse_symbol(mention.symbol) if mention.symbol else None
        if symbol is not None and is_torch(
            owner_of(symbol.name or "_Z", symbol.version, symbol.demangled)
        ):
            return True
    return False


def _same_torch(told: str, own: str) -> bool:
    """Whether a text's torch can be this one: "2.4.0" is 2.4.0+cu121, "2.4.0+cpu" is not."""
    if "+" in told and "+" in own:
        return told == own
    return told.partition("+")[0] == own.partition("+")[0]


def _is_here(file: str, here: Place) -> bool:
    """Whether a file is on this machine: at its path, or, where that is cut, by its name."""
    elided = not file.startswith("/") or "..." in file
    if not elided:
        return os.path.lexists(file)
    if "/" not in file and os.path.lexists(absolute(file)):
        return True
    name = file.rsplit("/", 1)[-1]
    tail = re.split(r"(?:site|dist)-packages/|\.\.\./", file)[-1]
    sites = here.environment.site_dirs if here.environment else ()
    loaded = here.linker.process.objects if here.linker else ()
    return any(os.path.lexists(os.path.join(site, tail)) for site in sites) or any(
        os.path.basename(one.path) == name for one in loaded
    )


def told_place(paste: Paste, tables: Tables) -> Place:
    """The torch that a text names: by the table of releases, else by its number alone."""
    from fa_forensics.why.told import (
        first_for_gpu,
        first_for_package,
        report_day,
        told_glibc,
        torch_of_text,
    )

    version = told_torch(paste, tables)
    abi, maker = torch_of_text(paste, version)
    date, last = report_day(paste, tables, version)
    told = Told(
        paste.versions.get("machine", ""),
        _python(paste),
        bool(abi),
        driver_cuda(paste),
        _python_version(paste),
        tuple(told_wheels(paste)),
        abi,
        maker,
        date,
        last,
        first_for_gpu(paste),
        *first_for_package(paste),
        driver_below=driver_below(paste),
        glibc=told_glibc(paste),
        cuda="" if version or abi else paste.versions.get("torch_cuda", ""),
        index_cuda=paste.versions.get("index_cuda", ""),
        file_torch=paste.versions.get("file_torch", ""),
        looked_in=_looked_in(paste),
    )
    if version is None:
        return Place(None, None, None, None, told=told)
    of_image = maker and "ngc" in paste.versions and version.count(".") == 1
    wanted = f"{version}.0" if of_image else _of_cuda(version, paste)
    requested = _requested(wanted, abi, tables, told.machine)
    if requested is not None and not _without_its_gpu(requested, paste):
        present = Present(
            requested.version,
            requested.release,
            requested.flavour,
            has_cuda=requested.cuda is not None,
            installed=False,
            called=_called(version, abi, requested),
        )
        return Place(None, None, present, None, requested, told)
    flavour = abi or _told_flavour(version) or "unknown"
    has_cuda = "+cpu" not in version and _ROCM not in version
    present = Present(version, release_of(version), flavour, has_cuda, installed=False)
    return Place(None, None, present, None, told=told)


def _looked_in(paste: Paste) -> str:
    """The library of torch that macOS's loader expected a name in, without its ending."""
    for mention in paste.mentions[:20]:
        found = re.search(r"/(lib(?:torch|c10)\w{0,40})\.dylib$", mention.library or "")
        if found is not None and mention.what == "symbol-not-found-macho":
            return found[1]
    return ""


def _without_its_gpu(requested: RequestedTorch, paste: Paste) -> bool:
    """Whether it is not known which build a machine with an Arm processor and a GPU has.

    The package index had torch for aarch64 without CUDA up to 2.10, and torch's own index has it
    for several CUDA versions: a bare number says neither.
    """
    arm = paste.versions.get("machine") == "aarch64" and "gpu" in paste.versions
    return arm and requested.cuda is None and "+cpu" not in paste.versions.get("torch", "+cpu")


def _called(version: str, abi: str, requested: RequestedTorch) -> str:
    """What messages call a release: as the text does, where its flavour alone was put to it."""
    if abi and "+" not in version:
        return version
    return "" if "+" in requested.request.text else requested.release


def told_wheels(paste: Paste) -> Iterator[tuple[str, str]]:
    """The NVIDIA wheels that a text names, and their versions."""
    for key, version in paste.versions.items():
        if key.startswith("pkg:nvidia-"):
            yield key.removeprefix("pkg:"), version


def driver_cuda(paste: Paste) -> tuple[int, int] | None:
    """The CUDA version that the text's driver supports: as it says, or by the driver's own."""
    stated = re.match(r"(\d{1,2})\.(\d{1,2})", paste.versions.get("driver_cuda", ""))
    if stated is not None:
        return int(stated[1]), int(stated[2])
    driver = re.match(r"\d{3}(?:\.\d{1,4})*", paste.versions.get("driver", ""))
    if driver is None:
        return None
    # "driver 525" is any of that branch: what its last one supports.
    own = order(driver[0]) if "." in driver[0] else (int(driver[0]), 999)
    known = [(cuda, order(first)) for cuda, first in driver_table().releases.items() if first]
    return max((cuda for cuda, first in known if first <= own), default=None)


def driver_below(paste: Paste) -> tuple[int, int] | None:
    """The CUDA version that the text's driver is older than: "CUDA driver < 12.8"."""
    found = re.fullmatch(r"(\d{1,2})\.(\d)", paste.versions.get("driver_below", ""))
    return (int(found[1]), int(found[2])) if found is not None else None


def order(version: str) -> tuple[int, ...]:
    """What drivers' versions compare by."""
    return tuple(int(part) for part in version.split("."))


def _python(paste: Paste) -> str | None:
    """The text's Python, "3.10": as it says, or as the failing file's name does."""
    stated = re.match(r"(\d+\.\d+)", paste.versions.get("python", ""))
    if stated is not None:
        return stated[1]
    for mention in paste.mentions:
        found = _PYTHON_TAG.search(mention.file or "")
        if found is not None:
            digits = next(group for group in found.groups() if group)
            return digits if "." in digits else f"{digits[0]}.{digits[1:]}"
    return None


def _python_version(paste: Paste) -> str | None:
    """The Python with its patch release, where the text has that; "3.11.0a6" before its release."""
    if "python_pre" in paste.versions:
        return paste.versions["python_pre"]
    python, patch = paste.versions.get("python", ""), paste.versions.get("python_patch", "")
    python = patch if patch.startswith(f"{python}.") else python  # a path has 3.6 of 3.6.0
    stated = re.match(r"\d+\.\d+\.\d+", python)
    return stated[0] if stated is not None else _python(paste)


def _told_flavour(version: str) -> str | None:
    """The std::string flavour of a torch by its version alone, as such builds have it."""
    if is_own_build(version):
        return "cxx11"  # the compiler's own since GCC 5 (GLIBCXX_USE_CXX11_ABI, CMakeLists.txt)
    if not is_published(version):
        return None
    if order_key(version) < (1, 12, 0, False):
        return "pre-cxx11"
    return "cxx11" if order_key(version) >= (2, 7, 0, False) else None


def _of_cuda(version: str, paste: Paste) -> str:
    """A release as the build for the CUDA, or the ROCm, that the text has: "1.12.1+cu113"."""
    if not re.fullmatch(r"\d\.\d{1,2}(?:\.\d)?", version):
        return version
    if "rocm" in paste.versions and not any(key in paste.versions for key in _OF_NVIDIA):
        return f"{version}{_ROCM}{paste.versions['rocm']}"
    told = paste.versions.get("torch_cuda") or paste.versions.get("index_cuda") or ""
    label = cuda_label(told)
    return f"{version}+{label}" if label else version


def _requested(version: str, abi: str, tables: Tables, machine: str) -> RequestedTorch | None:
    """The release of the table that a version names; None for what no table has."""
    from fa_forensics.why.asked import requested_torch

    if tables.atlas is None or not is_published(version) or _ROCM in version:
        return None
    suffix = ("+cxx11abi" if abi == "cxx11" else "-cxx11abi") if abi else ""
    known = machine if machine in tables.atlas.machines() else "x86_64"
    for text in (version + suffix, version.partition("+")[0] + suffix):
        try:
            return requested_torch(text, tables.atlas, known)
        except UsageError:
            continue
    return None
