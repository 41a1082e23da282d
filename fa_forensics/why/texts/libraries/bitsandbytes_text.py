"""Answers to the words of bitsandbytes, which looks for its compiled libraries itself."""

from __future__ import annotations

import re

from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.bitsandbytes_files import (
    list_own,
    misnamed,
    never_compiled,
    nothing_there,
    other_rocm,
)
from fa_forensics.why.texts.libraries.brought_text import (
    brought_by_torch,
    on_path,
    there_already,
    wheel_of,
)
from fa_forensics.why.texts.libraries.needing import package_of_text
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel


def no_cuda_binary(seen: Seen) -> Answer:
    """bitsandbytes found no library for torch's CUDA version and goes on with its CPU library."""
    file = (seen.mention.file or "").rpartition("/")[2]
    if not file and (named := _REQUIRED.search(seen.mention.line)):
        file = named["file"]
    wrong = misnamed(seen, file)
    if wrong is not None:
        return wrong
    number = re.search(r"_rocm(\d{2,3})", file or seen.mention.line)
    if _no_library_at_all(seen):
        return nothing_there(seen, file) if number is None else other_rocm(seen, number[1])
    if number is not None:
        return _no_rocm_binary(seen, number[1])
    tree = seen.mention.detail.get("bin", "")
    if tree and "-packages/" not in tree and ".egg/" not in tree:
        return never_compiled(seen, tree)
    if re.search(r"Configured\sCUDA", seen.mention.line) and (told := _CUDA_IN_NAME.search(file)):
        return _not_for_this_cuda(seen, file, told[1])
    missing = f" ({file})" if file else ""
    cause = (
        f"bitsandbytes has no library{missing} for the CUDA version of this torch, or did not find "
        "the CUDA runtime, and goes on with its CPU library: what is missing later follows from "
        "that."
    )
    found = seen.mention.detail.get("detected", "")
    if not found and _NAMES_IT.search(seen.mention.line):
        named = _CUDA_IN_NAME.search(file)  # of torch.version.cuda, in a warning of 0.43 and 0.44
        found = named[1] if named else ""
    if found:
        cause = (
            f"bitsandbytes has no library for CUDA {cuda_of_label(found)}, which it found, and "
            "goes on with its CPU library: what is missing later follows from that. Neither the "
            "driver nor the CUDA runtime is missing."
        )
    again, notes = _another_release(seen, found)
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="medium",
        help=(list_own(seen) if found else f"{seen.python} -m bitsandbytes", *again),
        notes=(
            "Each release holds libraries for the CUDA versions of its time.",
            *notes,
            *(() if found or _takes_torchs(seen) else (_SEARCHED,)),
        ),
    )  # fmt: skip


#: cuda_setup/main.py of 0.36 to 0.42.
_REQUIRED = lazily(r"Required library version not found: (?P<file>libbitsandbytes_\w{1,30}\.so)")
#: Words that name the library which was looked for, so that its CUDA was found.
_NAMES_IT = lazily(r"bitsandbytes\sCUDA\sbinary\sat|Required\slibrary\sversion\snot\sfound")
#: Below which release its wheels have a library for an old CUDA (file lists of the wheels 0.40.2,
#: 0.42.0 and 0.43.0; pull request 1605 of April 2025); none of these has one for CUDA 11.6.
_BELOW = {"110": "0.43", "111": "0.43", "114": "0.43", "115": "0.43", "117": "0.46"}


def _another_release(seen: Seen, found: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): a bitsandbytes that may have the library for a CUDA ("116")."""
    head = f"{seen.pip} install --upgrade --no-cache-dir"
    if not found:
        return (" ".join((head, "bitsandbytes")),), ()
    below = _BELOW.get(found, "")
    wanted = f'"bitsandbytes<{below}"' if below else "bitsandbytes"
    notes = (
        "Where no release has that one, BNB_CUDA_VERSION names one of those that the first command "
        "lists before Python starts (117 is CUDA 11.7): the nearest, of the same major version, "
        "whose CUDA runtime has to be on LD_LIBRARY_PATH.",
        "A torch for a CUDA that the release has a library for is another way out, and so is a "
        "build of its source with the nvcc of torch's CUDA.",
    )
    return (f"{head} {wanted}",) if below or int(found) > 117 else (), notes


#: bitsandbytes/cuda_setup/main.py up to 0.42; its release notes of 0.43.0.
_SEARCHED = (
    "Releases up to 0.42 look for libcudart.so themselves, in the conda environment's lib and in "
    "LD_LIBRARY_PATH: the directory that has it (find / -name 'libcudart.so*') belongs into "
    "LD_LIBRARY_PATH there. Releases from 0.43 on go by the CUDA of torch, so that the upgrade is "
    "the shorter way."
)


def _takes_torchs(seen: Seen) -> bool:
    """Whether the text names a release that looks for no CUDA runtime of its own."""
    told = re.match(r"0\.(\d{1,2})\.", seen.versions.get("pkg:bitsandbytes", ""))
    return told is not None and int(told[1]) > 42


#: The CUDA of a library in its name: 129 is 12.9.
_CUDA_IN_NAME = lazily(r"_cuda(\d{3})(?=[._])")


def _not_for_this_cuda(seen: Seen, file: str, number: str) -> Answer:
    """``Configured CUDA binary not found at ...`` (cextension.py since 0.45): an error, no warning.

    The number is torch.version.cuda's, or BNB_CUDA_VERSION's, so that CUDA was found.
    """
    cause = (
        f"bitsandbytes looks for {file}, its library for CUDA {cuda_of_label(number)}, and the "
        "bitsandbytes that is imported has none of that name. The number is that of torch's CUDA "
        "(torch.version.cuda), unless BNB_CUDA_VERSION is set: CUDA was found, and neither the "
        "driver nor the CUDA runtime is missing."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="high",
        help=(
            list_own(seen),
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
            f"{seen.python} -m bitsandbytes",
        ),
        notes=(
            "Each release holds libraries for the CUDA versions of its time: a newer one may have "
            "that one too. The first command lists those that are there.",
            "Without another release, BNB_CUDA_VERSION names one of these before Python starts "
            "(128 is CUDA 12.8): the nearest below, of the same major version as torch's CUDA. "
            "Where the variable is set already, unset it first.",
            "From source it is cmake -DCOMPUTE_BACKEND=cuda -S . and make, with the nvcc of "
            "torch's CUDA, then pip install . there.",
        ),
    )  # fmt: skip


def of_bitsandbytes(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer | None:
    """A library of CUDA that bitsandbytes misses; None where another package misses it.

    It imports torch itself and takes libbitsandbytes_cudaNNN.so by torch.version.cuda, or by
    BNB_CUDA_VERSION (bitsandbytes/cextension.py), so that neither the order of imports nor a
    build for another CUDA can be what is wrong.
    """
    detail = seen.mention.detail
    named = (
        seen.mention.file or "", seen.mention.line, detail.get("by"), detail.get("import"),
        package_of_text(seen),
    )  # fmt: skip
    if major is None or not any("bitsandbytes" in (text or "") for text in named):
        return None
    stem = soname.removeprefix("lib").split(".so")[0]
    wheel = wheel_of(seen, soname, major) or f"nvidia-{stem.lower()}-cu{major}"
    told = seen.torch_cuda or seen.versions.get("index_cuda") or ""
    own = told.split(".")[0]
    show = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'; "
        "echo BNB_CUDA_VERSION=$BNB_CUDA_VERSION"
    )
    if own == major:
        return _of_torchs_cuda(seen, soname, owner, wheel, (show, told))
    if _goes_by_runtime(seen):
        return _by_the_runtime(seen, soname, owner, (major, wheel))
    cause = (
        "bitsandbytes imports torch itself and loads the one of its libraries that is for torch's "
        f"CUDA: that it asks for {soname} says that torch is a build for CUDA {major} here, or "
        f"that BNB_CUDA_VERSION names such a one. The library of CUDA {major} is not where the "
        "loader looks: this torch brings none under that name, or lies in another environment, "
        "and the CUDA of the system is another one or is not on the path."
    )
    known = "pkg:bitsandbytes" in seen.versions
    if not known:
        cause += _OF_OLD
    if own:
        cause += f" The text has torch for CUDA {own}, so that BNB_CUDA_VERSION is the likelier."
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(show, f"{seen.pip} install {wheel}", on_path(seen, wheel),
              f"{seen.python} -m bitsandbytes"),
        notes=(
            "The second and third command give it that library. The way that lasts is a torch for "
            "the CUDA of today, with a bitsandbytes of its time: it then takes another one of its "
            "libraries by itself. Where BNB_CUDA_VERSION is set, unset it.",
            "Another release of bitsandbytes alone changes nothing, and a library of another CUDA "
            f"major version under the name {soname} does not count."
            if known
            else "A library of another CUDA major version under the name "
            f"{soname} does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip


_OF_OLD = (
    " Releases up to 0.39.1 go by the libcudart.so that they find (/usr/local/cuda, "
    "LD_LIBRARY_PATH) in place of torch: where one of these is installed, the upgrade to 0.43 or "
    "newer comes first."
)


def _goes_by_runtime(seen: Seen) -> bool:
    """Whether the release chose its library by a libcudart: cuda_setup/main.py up to 0.39.1."""
    told = re.match(r"0\.(\d{1,2})\.", seen.versions.get("pkg:bitsandbytes", ""))
    return told is not None and int(told[1]) < 40


def _by_the_runtime(seen: Seen, soname: str, owner: str | None, of: tuple[str, str]) -> Answer:
    """A bitsandbytes that asks neither torch nor BNB_CUDA_VERSION."""
    major, wheel = of
    cause = (
        f"A library of bitsandbytes needs {soname}, of CUDA {major}, and the loader does not find "
        "it. Releases up to 0.39.1 choose among their libraries by the libcudart.so that they find "
        "(the conda environment, LD_LIBRARY_PATH, /usr/local/cuda), not by the CUDA of torch: the "
        "CUDA of that directory, torch's and the missing library's may be three."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'; "
            "ls -l /usr/local/cuda/lib64/libcudart.so*; echo $LD_LIBRARY_PATH",
            f"{seen.pip} install {wheel}", on_path(seen, wheel),
            f'{seen.pip} install --upgrade "bitsandbytes>=0.43"',
        ),
        notes=(
            "The commands with the wheel and with export give it that library. The way that lasts "
            "is the upgrade, beside a torch for CUDA 11.7 or newer: it goes by the CUDA of torch "
            "and has libraries for CUDA 11 and 12 alone.",
            "A library of another CUDA major version under the name "
            f"{soname} does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _why_not_by_torch(soname: str) -> str:
    """Why torch's import has not brought the library: loaded from anywhere, it would serve."""
    if soname.startswith("libnvJitLink"):
        return (
            "torch has not loaded it from there (a CUDA library of the system, or of another "
            "environment, was found first)"
        )
    return (
        "torch has loaded none under that name (a build that has it inside its own files, as many "
        "of download.pytorch.org for CUDA 11 have)"
    )


def _of_torchs_cuda(
    seen: Seen, soname: str, owner: str | None, wheel: str, told: tuple[str, str]
) -> Answer:
    """torch is one for that CUDA: its wheel is there, or should be, and was not loaded by torch."""
    show, cuda = told
    folder = folder_of_wheel(wheel)
    cause = (
        "bitsandbytes imports torch itself, so that the order of imports is not what is wrong, and "
        f"the text has a torch for CUDA {cuda}, for which its library needs {soname}. That comes "
        f"with {wheel}, in site-packages/nvidia/{folder}/lib, where the loader does not look by "
        f"itself: {_why_not_by_torch(soname)}, or the wheel is not installed."
    )
    old = (seen.python_version or "").startswith(("3.7", "3.8"))  # torch for CUDA 12 up to 2.4
    label = "cu121" if old else "cu128"
    toolkit = seen.versions.get("cuda", "")
    other = toolkit.partition(".")[0]
    if other.isdigit() and other != cuda.partition(".")[0]:
        cause += f" CUDA {toolkit} of the system is of another major version and has no {soname}."
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction="none", confidence="medium",
        help=(f"{seen.pip} show -f {wheel} | grep -E '^Version|lib'",
              f"{seen.pip} install {brought_by_torch(seen, soname) or wheel}",
              on_path(seen, wheel), show,
              f"{seen.python} -m bitsandbytes"),
        notes=(
            "Where the first command shows the library, the second is not needed and the third is "
            "what is missing: the variable has to be set before Python starts. Another release of "
            "bitsandbytes alone changes nothing: it takes the library for torch's CUDA too.",
            "Directories of another CUDA on LD_LIBRARY_PATH go before torch's own: cuSPARSE has "
            "one name in CUDA 12 and 13 (libcusparse.so.12), and the copy for CUDA 12 brings "
            "libnvJitLink.so.12 along, and not .13."
            if soname.startswith("libnvJitLink")
            else "The directories of a CUDA toolkit of that major version on the path serve too; "
            "those of another one do not.",
            f"The other way out is a torch for another CUDA (the address ends in /{label} for one "
            f"of CUDA {cuda_of_label(label[2:])}), for which bitsandbytes takes another of its "
            "libraries; a library of another CUDA major version under the name "
            f"{soname} does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _no_rocm_binary(seen: Seen, number: str) -> Answer:
    """The name is ten times the major number plus the minor one: ROCm 7.2 is 72, 7.14 is 84."""
    from fa_forensics.why.texts.clues import cuda_version

    rocm = cuda_version(seen.versions.get("rocm"))
    if rocm is None:
        rocm = cuda_version(seen.versions.get("torch", "").partition("+rocm")[2])
    file = f"libbitsandbytes_rocm{number}.so"
    cause = (
        f"bitsandbytes looks for {file}, its library for the ROCm of this torch, and the release "
        "that is installed has none of that name: its wheels hold libraries for some releases of "
        "ROCm alone. Nothing is damaged."
    )
    if rocm is not None and str(rocm[0] * 10 + rocm[1]) == number and rocm[1] >= 10:
        cause += (
            f" It makes {number} of ROCm {rocm[0]}.{rocm[1]}: there is no ROCm "
            f"{number[0]}.{number[1:]} to install."
        )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="high" if seen.mention.file else "medium",
        help=(
            f"{seen.python} -c 'import torch, importlib.util as u, os; print(torch.version.hip, "
            'sorted(f for f in os.listdir(u.find_spec("bitsandbytes").submodule_search_locations'
            '[0]) if "rocm" in f))\'',
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
        ),
        notes=(
            "The number in the name is ten times the major number plus the minor one: 72 is ROCm "
            "7.2, and 84 would be 7.14.",
            "BNB_ROCM_VERSION names another one of those that the first command lists (72 for "
            "ROCm 7.2): one of the same major release as torch's ROCm, the nearest.",
            "From source it is cmake -DCOMPUTE_BACKEND=hip -S . and make, with that ROCm's hipcc, "
            "then pip install . there.",
        ),
    )  # fmt: skip


def _no_library_at_all(seen: Seen) -> bool:
    """Whether the CPU library, which every wheel has, is missing beside the CUDA one."""
    return seen.mention.detail.get("cpu") == "missing"
