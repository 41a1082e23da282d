"""What a text and this machine tell about GPU, driver and package, for answers without a symbol."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fa_forensics.errors import UsageError
from fa_forensics.facts.drivers import CudaVersion, Driver, cuda_of_driver
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table, parse_gpu
from fa_forensics.facts.package import (
    Distribution,
    info_directories,
    info_name,
    normalized,
    read_distribution,
)
from fa_forensics.patterns import lazily

if TYPE_CHECKING:
    from fa_forensics.atlas.builds import Build
    from fa_forensics.facts.flash_limits import Limits
    from fa_forensics.why.seen import Seen

_NUMBER = lazily(r"(?<![\d.])(\d{1,2})\.(\d)(?![\d.])")
_INDEX = lazily(r"^\s*(?:GPU|CUDA device|device)?\s*#?\d{1,2}\s*[:=]\s*", re.IGNORECASE)
_WORD = lazily(r"[A-Za-z_]\w*")

#: Words in a traceback that name FlashAttention's third generation, and the form in which that one
#: alone prints an error of its launches (hopper/cuda_check.h), wherever it was built.
_HOPPER = lazily(
    r"\bhopper[/.]|flash_attn_3|flash-attn-?3|flashattn_hopper|FlashAttention-?3|\bFA3\b"
    r"|CUDA error \([^\s()]{0,200}flash_(?:fwd|bwd)_(?:\w{1,20}_)?launch_template\.h:\d"
)


def gpus_of(seen: Seen) -> tuple[Gpu, ...]:
    """The GPU that the text names; without one, and where it is about here, this machine's."""
    detail, versions = seen.mention.detail, seen.versions
    texts = (  # a name says more than a number, and both more than the rest of the text
        detail.get("gpu"),
        detail.get("sm"),
        detail.get("arch"),
        detail.get("capability"),
        versions.get("capability"),
        None if is_two_gpus(versions.get("gpu", "")) else versions.get("gpu"),
        versions.get("sm"),
    )
    for text in texts:
        gpu = named_gpu(text) if text else None
        if gpu is not None:
            return (gpu,)
    if seen.elsewhere:
        return ()
    from fa_forensics.facts.nvml import read_machine

    return read_machine().gpus


def is_two_gpus(name: str) -> bool:
    """Whether a name is one that two GPUs have: "TITAN X" is of Maxwell or of Pascal."""
    from fa_forensics.facts.tables import read_table

    return name.upper().removeprefix("NVIDIA ") in read_table("gpus.json")["ambiguous"]


def named_gpu(text: str) -> Gpu | None:
    """The GPU of a name or a capability as logs write it; None for what is not known."""
    words = _INDEX.sub("", text).strip()
    for candidate in (words, words.split(",")[0], words.split("(")[0], words.split(";")[0]):
        found = _parsed(candidate)
        if found is not None:
            return found
    for made in _SHORT_FOR:
        found = _parsed(f"{made} {words}")
        if found is not None:
            return found
    number = _NUMBER.search(words)
    if number is not None:
        try:
            return parse_gpu(number[0])[0]
        except UsageError:
            return None
    return None


#: What people leave out before a number or a name: "two 3090s", "Orin NX", "NVIDIA Thor".
_SHORT_FOR = ("RTX", "GTX", "Jetson")


def _parsed(name: str) -> Gpu | None:
    try:
        found = parse_gpu(name) if name.strip() else ()
    except UsageError:
        return None
    return found[0] if len(found) == 1 else None


def called(gpu: Gpu) -> str:
    """A GPU in a sentence."""
    number = capability_text(gpu.capability)
    named = re.sub(r"\W|sm", "", gpu.name.lower()) != number.replace(".", "")
    return f"{gpu.name} (compute capability {number})" if named else f"compute capability {number}"


def named(gpu: Gpu) -> str:
    """A GPU in a sentence: by its name where the text has one, else by its number alone."""
    family = gpu_table().family(gpu.capability)
    if family is not None and gpu.name == family.label:
        return f"compute capability {capability_text(gpu.capability)}"
    return called(gpu)


def driver_of(seen: Seen) -> Driver | None:
    """The driver that the text names, else this machine's where the text is about here."""
    version = seen.versions.get("driver")
    told = seen.mention.detail.get("found") or seen.versions.get("driver_cuda")
    stated = cuda_version(told)
    if version is not None or stated is not None:
        return Driver(version, stated or (cuda_of_driver(version) if version else None))
    if seen.elsewhere:
        return None
    from fa_forensics.facts.nvml import read_machine

    return read_machine().driver


def cuda_version(text: str | None) -> CudaVersion | None:
    """``12.4`` or ``12.4.1`` → (12, 4); ``12040``, as the driver counts, too."""
    if text is None:
        return None
    found = re.match(r"\s*(\d{1,2})\.(\d{1,2})(?!\d)", text)
    if found is not None:
        return int(found[1]), int(found[2])
    number = re.match(r"\s*(\d{4,5})(?!\d)", text)
    if number is None:
        return None
    return int(number[1]) // 1000, int(number[1]) % 1000 // 10


def words_of(seen: Seen) -> str:
    """The mention's own words: its line, its file and what it says beside."""
    mention = seen.mention
    return "\n".join((mention.line, mention.file or "", *mention.detail.values()))


def package_in(seen: Seen) -> str | None:
    """The distribution that a mention is about: by its file, its words, or the text's versions."""
    if seen.package is not None:
        return _as_named(seen, seen.package)
    text = words_of(seen)
    return _as_named(
        seen,
        package_by_words(text)
        or ("flash-attn" if re.search(r"flash[-_ ]?attention", text, re.IGNORECASE) else None)
        or _only_package(seen),
    )


#: Projects whose repository has another name than the distribution that it installs.
CALLED = {"tiny-cuda-nn": "tinycudann"}


def _as_named(seen: Seen, package: str | None) -> str | None:
    """The name under which a package goes on, where the text has a release of that one."""
    from fa_forensics.rules.remedy import known_packages

    package = CALLED.get(package or "", package)
    for row in known_packages():
        new = str(row["distribution"])
        if package and row.get("formerly") == package and f"pkg:{new}" in seen.versions:
            return new
    return package


def package_of_line(seen: Seen) -> str | None:
    """The distribution that the line of a mention names, by its import name or its module."""
    return package_by_words(seen.mention.line)


def package_by_words(text: str) -> str | None:
    """The package whose import name, or whose compiled module, is among the words of a text."""
    from fa_forensics.rules.remedy import known_packages
    from fa_forensics.why.seen import without_environments

    found: tuple[int, str] | None = None
    words = _WORD.findall(without_environments(text))
    tokens = {token.removeprefix("lib") for token in words}
    for row in known_packages():
        top = str(row["import"]).split(".")[0]
        modules = [module for module in row["modules"] if "_" in module]  # type: ignore[attr-defined]
        for token in tokens:
            own = token == top or token.startswith(f"{top}_") or token in modules
            if own and (found is None or len(top) > found[0]):
                found = (len(top), str(row["distribution"]))
    return found[1] if found is not None else None


def _only_package(seen: Seen) -> str | None:
    """The one package with compiled code, torch's own family aside, that the text lists."""
    from fa_forensics.rules.remedy import row_of

    family = ("torch", "torchvision", "torchaudio", "bitsandbytes")
    names = {key.removeprefix("pkg:") for key in seen.versions if key.startswith("pkg:")}
    rows = {name: row_of(name) for name in names if normalized(name) not in family}
    known = [str(row["distribution"]) for row in rows.values() if row is not None]
    old = {str(row["formerly"]) for row in rows.values() if row and row.get("formerly")}
    known = [name for name in known if name not in old]
    return known[0] if len(known) == 1 else None


def version_of(seen: Seen, package: str) -> str | None:
    """The version of a package: as the text says, else as it is installed here."""
    told = seen.versions.get(f"pkg:{normalized(package)}") or seen.versions.get(f"pkg:{package}")
    if told is not None:
        return told
    found = installed(seen, package)
    return found.version if found is not None else None


def installed(seen: Seen, package: str) -> Distribution | None:
    """A package as it is installed in the environment to judge by; None elsewhere."""
    if seen.elsewhere or seen.place.environment is None:
        return None
    for site in seen.place.environment.site_dirs:
        for info in info_directories(site):
            if info_name(info) == normalized(package):
                return read_distribution(info)
    return None


def serves(build: Build, seen: Seen) -> bool:
    """Whether a build of torch has a wheel for the Python to judge by, as far as that is told."""
    python = seen.python_version
    short = ".".join(python.split(".")[:2]) if python else None
    return short is None or not build.pythons or short in build.pythons


#: Packages that are imported by their distribution's own name, and published under no other.
_OF_ONE_NAME = frozenset(
    ("numpy", "scipy", "pandas", "transformers", "accelerate", "tokenizers", "safetensors",
     "triton", "ctranslate2", "sentencepiece")
)  # fmt: skip


def pip_name(seen: Seen, name: str | None) -> str | None:
    """What to give to pip for a package; None where the name is only that of a directory.

    A module's name need not be its distribution's, and a guessed one may be somebody else's.
    """
    from fa_forensics.rules.remedy import row_of

    if name is None:
        return None
    here = installed(seen, name)
    if here is not None:
        return here.name
    row = row_of(name)
    if row is not None:
        return str(row["distribution"])
    told = f"pkg:{normalized(name)}" in seen.versions or normalized(name) in _OF_ONE_NAME
    return name.replace("_", "-") if told or normalized(name) == "torch" else None


def distribution_of(seen: Seen, package: str | None) -> Distribution | None:
    """A package for commands: the installed one, else one with the version that the text names."""
    if package is None:
        return None
    here = installed(seen, package)
    told = version_of(seen, package)
    if here is not None and told in (None, here.version):
        return here
    return Distribution(package, told or "", (), None, (), None, None, "", None)


def flash_rows(seen: Seen, package: str | None) -> Sequence[Limits]:
    """The rows of FlashAttention's limits that a mention can be about; none for other packages."""
    from fa_forensics.facts.flash_limits import all_limits, limits_of

    text = words_of(seen)
    if package is None and not re.search(r"flash|hopper", text, re.IGNORECASE):
        return ()
    if _HOPPER.search(text) or (package and normalized(package) in ("flash-attn-3", "fa3-fwd")):
        return tuple(row for row in all_limits() if row.id == "fa3")
    if package is None or not limits_of(package, None, None):
        return ()
    module = seen.module or None
    rows = limits_of(package, version_of(seen, package), module)
    if not rows:
        rows = limits_of(package, version_of(seen, package), None)
    if version_of(seen, package) is None:
        # Without a release: the generation that everybody has.
        rows = tuple(row for row in rows if row.id != "fa1") or rows
    return rows


def raw_python(seen: Seen) -> str:
    """The interpreter for functions that quote it themselves."""
    if seen.elsewhere or seen.place.python is None:
        return "python"
    return seen.place.python


def jobs_of(seen: Seen) -> int | None:
    """MAX_JOBS for this machine; None for another one."""
    if seen.elsewhere:
        return None
    from fa_forensics.facts.build_machine import jobs, read_build_machine

    return jobs(read_build_machine())


def inspect_for(seen: Seen, gpus: Sequence[Gpu], package: str | None) -> str:
    """Look at the code in the failing file, for the GPU in question."""
    file = seen.mention.file or ""
    named = file if file and "..." not in file and not seen.elsewhere else ""
    return _inspect(seen, named or package or "/path/to/the/extension.so", gpus)


def _inspect(seen: Seen, target: str, gpus: Sequence[Gpu]) -> str:
    import shlex

    words = ["fa-forensics", "inspect"]
    if not seen.elsewhere and seen.place.python is not None:
        words += ["--python", seen.place.python]
    for gpu in gpus[:1]:
        words += ["--gpu", capability_text(gpu.capability)]
    return " ".join(shlex.quote(word) for word in [*words, target])


def base(path: str | None) -> str:
    """The file's own name."""
    return os.path.basename(path or "")


def inspect_package(seen: Seen, target: str) -> str:
    """Look at a package, or at one file."""
    return _inspect(seen, target, ())
