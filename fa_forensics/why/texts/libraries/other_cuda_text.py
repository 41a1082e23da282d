"""A CUDA library that is not found for a file to which torch's CUDA is no measure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.library_names import exact_toolkit
from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.nvidia.without_torch import releases_for, row_without_torch
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import on_path, there_already
from fa_forensics.why.texts.libraries.cudnn_there import is_before_cudnn_9
from fa_forensics.why.texts.libraries.listed import as_guess
from fa_forensics.why.texts.libraries.needing import needing, package_needing, package_of_text
from fa_forensics.why.torch_names.history import order_key


def without_torch(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer | None:
    """The answer where a package that does not link torch misses the library; else None."""
    detail = seen.mention.detail
    told = (detail.get("by") or detail.get("import") or package_of_text(seen)).partition(".")[0]
    row = row_without_torch(seen.mention.file or "", told)
    if row is None:
        return None
    return as_guess(_of_package(seen, soname, owner, major, row), seen, soname, row["title"])


def _of_package(
    seen: Seen, soname: str, owner: str | None, major: str | None, row: Mapping[str, Any]
) -> Answer:
    title, exact = row["title"], exact_toolkit(soname)
    wanted = exact or major
    if wanted:
        cause = (
            f"{title} is a CUDA {wanted} build here: it needs {soname}, which is not found. "
            f"{title} does not link torch and takes what the loader finds, or what the process "
            "has already."
        )
    else:
        cause = (
            f"{title} is a build for CUDA here: it needs {soname}, which is not found. {title} "
            "does not link torch and takes what the loader finds, or what the process has already."
        )
    there = (seen.versions.get("cuda") or seen.torch_cuda or "").strip()
    own = there.split(".")[0]
    direction, helps = UNKNOWN, [f"{seen.pip} list | grep -iE '{row['list']}|^torch |nvidia'"]
    if own and wanted and not f"{there}.".startswith(f"{wanted}."):
        cause += (
            f" The text has CUDA {there}, whose libraries have other names: a build of {title} for "
            f"CUDA {own} has to replace this one, or the libraries of CUDA {wanted} have to be "
            "where the loader looks."
        )
        direction = NEWER if float(wanted) > float(own) else OLDER
        fitting = releases_for(row, own)
        if fitting is not None:
            helps.append(
                f'{seen.pip} install "{_for_cudnn(seen, row, fitting)}"{_users(seen, row)}'
            )
    else:
        cause += (
            f" Either the libraries of {f'CUDA {wanted}' if wanted else 'that CUDA'} are not where "
            f"the loader looks, or the CUDA that is there is another one, and a build of {title} "
            "for that has to replace this one."
        )
        direction = NONE if own else UNKNOWN
        cause += _by_its_release(seen, row, wanted)
        newer = _next_line(row, wanted)
        if newer is not None and not own:
            helps.append(f'{seen.pip} install --upgrade "{newer}"{_users(seen, row)}')
    if wanted in ("11", "12") and row.get("opens"):
        helps += _beside(seen, row, wanted)
    if row.get("needs") and wanted in ("11", "12"):
        own_wheels = [f"nvidia-{name}-cu{wanted}" for name in row["needs"]]
        helps += [f"{seen.pip} install {' '.join(own_wheels)}", on_path(seen, *own_wheels)]
    if row.get("index") and own.isdigit():
        helps.append(
            f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {row['list']} "
            f"--extra-index-url {row['index'].format(label=_label(there))}"
        )
    stem = soname.split(".so")[0]
    helps.append(f"ldconfig -p | grep {shlex.quote(stem)}; ls -d /usr/local/cuda*")
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=direction, confidence="medium",
        help=tuple(helps),
        notes=(*_notes(row, helps), *there_already(seen)),
    )  # fmt: skip


#: Said where there are commands of two ways.
_ONE_WAY = (
    "The commands that install are two ways, and one of them is to be taken: another build of the "
    "package, or NVIDIA's wheels for this one. Wheels of cuDNN for two CUDA versions write into "
    "one directory, nvidia/cudnn/lib, and the one for torch's CUDA has to stay."
)


def _notes(row: Mapping[str, Any], helps: list[str]) -> tuple[str, ...]:
    """Which releases are for what, and that one of several commands is to be taken."""
    several = sum(" install " in one for one in helps) > 1
    return (*_lines(row), *_cudnn_lines(row), *((_ONE_WAY,) if several else ()))


def _beside(seen: Seen, row: Mapping[str, Any], wanted: str) -> list[str]:
    """The wheels of NVIDIA that a build for one CUDA opens by name, and their directories."""
    lines = {cuda: first for cuda, first in row["cuda"]}
    cudnn = [major for major, first in row["cudnn"] if first == lines.get(wanted)]
    told = seen.versions.get(f"pkg:{row['install']}", "")
    if not cudnn and (told or is_before_cudnn_9(seen)):  # each of them is of some release's
        of = [m for m, first in row["cudnn"] if told and order_key(first) <= order_key(told)]
        cudnn = of[-1:] or [row["cudnn"][0][0]]
    elif not cudnn:
        cudnn = [row["cudnn"][-1][0]]
    wheels = [f"nvidia-{name}-cu{wanted}" for name in row["opens"]]
    pinned = [f'"{one}=={cudnn[0]}.*"' if cudnn and "cudnn" in one else one for one in wheels]
    return [f"{seen.pip} install {' '.join(pinned)}", on_path(seen, *wheels)]


def _for_cudnn(seen: Seen, row: Mapping[str, Any], fitting: str) -> str:
    """The releases that fit the CUDA, up to the last for the cuDNN of the text's torch."""
    lines = [first for major, first in row.get("cudnn", ()) if major == "9"]
    old = lines and is_before_cudnn_9(seen) and "<" not in fitting
    if not old or fitting.endswith(f">={lines[0]}"):
        return fitting
    return f"{fitting},<{lines[0]}"


def _users(seen: Seen, row: Mapping[str, Any]) -> str:
    """What the text names besides that asks for older releases of the package, with a blank."""
    told = (seen.mention.detail.get("used_by", ""), seen.mention.detail.get("by", ""))
    named = [
        f' "{name}>={first}"'
        for name, first in row.get("used_by", ())
        if name in told or name.replace("-", "_") in told or f"pkg:{name}" in seen.versions
    ]
    return "".join(named)


def _cudnn_lines(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Which releases of the package are for which cuDNN, and what the wheels need."""
    lines = row.get("cudnn", ())
    if len(lines) < 2:
        return ()
    (old, _), (new, since) = lines[-2:]
    users = [f"{name} {first}" for name, first in row.get("used_by", ())]
    note = (
        f"{row['install']} opens cuDNN {old} before {since}, and cuDNN {new} since: that of torch "
        "in the same process has to be the same (torch has cuDNN 9 since 2.4.0)."
    )
    asks = (f"{' and '.join(users)} and newer take the new line; older ones hold "
            f"{row['install']} back and are to be upgraded with it.",) if users else ()  # fmt: skip
    return (note, *asks)


def _label(cuda: str) -> str:
    """CUDA 12.4, as indexes are named: cu124; cuNNN where the minor version is not told."""
    return cuda_label(cuda) or "cuNNN"


def of_program(seen: Seen, soname: str, owner: str | None, major: str | None) -> Answer | None:
    """The answer for a program without Python, which torch has no part in; None for others."""
    wanted = exact_toolkit(soname) or major
    if not seen.mention.detail.get("alone") or wanted is None:
        return None
    there = (seen.versions.get("cuda") or "").strip()
    products = seen.mention.detail.get("products", "")
    cause = (
        f"The program, or a library that it loads{f' ({products})' if products else ''}, is a CUDA "
        f"{wanted} build: it needs {soname}, which is not found. Neither torch nor Python plays a "
        "part: what counts is the CUDA that is installed, and the loader's path."
    )
    direction = UNKNOWN
    if there and not f"{there}.".startswith(f"{wanted}."):
        own = ".".join(there.split(".")[: 2 if "." in wanted else 1])
        direction = NEWER if float(wanted) > float(own) else OLDER
        cause += (
            f" The text has CUDA {there}, whose libraries have other names: whatever asks for "
            f"{soname} has to be replaced by its build for CUDA {own}, or a CUDA {wanted} toolkit "
            "has to be installed beside it."
        )
    else:
        cause += (
            f" Either a CUDA {wanted} toolkit is not installed, or its directory is not where the "
            "loader looks, or what asks for it has to be replaced by its build for the CUDA that "
            "is there."
        )
    if soname.startswith("libcublasLt") and seen.mention.what == "could-not-load-library":
        cause += " The line is as cuDNN writes it: most likely cuDNN is the one that asks."
    stem = soname.split(".so")[0]
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=direction, confidence="medium",
        help=(
            f"ldconfig -p | grep -E '{stem}|libcudnn|libnvinfer'; ls -d /usr/local/cuda*",
            "dpkg -l | grep -iE 'cudnn|tensorrt|nvinfer|cuda-toolkit'",
            "ldd ./PROGRAM | grep -E 'not found|cud|nvinfer'",
        ),
        notes=(
            "NVIDIA gives out cuDNN and TensorRT once for each CUDA: the versions of its packages "
            "(8.9.7.29-1+cuda12.2) and the names of its archives (cuda-11.8, cuda12) say which. A "
            "library of another CUDA under that name does not count.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _next_line(row: Mapping[str, Any], wanted: str | None) -> str | None:
    """The releases for the CUDA after the one of this build, in the package index."""
    majors = [one[0] for one in row.get("cuda", ())]
    if wanted not in majors[:-1]:
        return None
    return releases_for(row, majors[majors.index(wanted) + 1])


def _by_its_release(seen: Seen, row: Mapping[str, Any], wanted: str | None) -> str:
    """That the release which the text names is one for this CUDA, with a blank before it."""
    version = seen.versions.get(f"pkg:{row.get('install', '')}", "")
    lines = [(one[0], one[1]) for one in row.get("cuda", ())]
    own = [cuda for cuda, first in lines if version and order_key(first) <= order_key(version)]
    if not own or own[-1] != wanted:
        return ""
    return f" {row['install']} {version} of the package index is such a build, for CUDA {wanted}."


def _lines(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Which releases of the package are for which CUDA."""
    lines = row.get("cuda", ())
    if row.get("index"):
        return (
            f"The libraries of the CUDA that {row['title']} was built for have to be on "
            "LD_LIBRARY_PATH when Python starts: NVIDIA's wheels beside it, or a toolkit's lib64. "
            "Where torch is in the same process, its CUDA is best of the same major version.",
            f"{row['title']} has wheels for each CUDA on an index of its own: "
            f"{row['index'].format(label='cuNNN')}, where cuNNN is cu121, cu124 and the like.",
        )
    if row.get("by_cuda"):
        return (
            f"{row['title']} has a distribution of its own name for each CUDA, and one alone is "
            "to be installed.",
        )
    if len(lines) < 2:
        return ()
    (old, _), (new, since) = lines[-2:]
    return (
        f"On the package index {row['install']} is for CUDA {new} since {since}, and for CUDA "
        f"{old} before.",
    )


def of_another_maker(seen: Seen, soname: str, owner: str | None) -> Answer | None:
    """The answer where the text's torch is one of another maker, which has no CUDA; else None."""
    row = next((row for row in read_table("torch_makers.json")["rows"] if _named(seen, row)), None)
    if row is None:
        return None
    package = package_needing(seen)
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a build for CUDA (it needs {soname}), and the text has "
        f"{row['package']}: torch runs on {row['title']} there, without CUDA. What is imported is "
        "the build of the package index or an older installation, and not one that was built on "
        "this torch. No library of CUDA is to be installed."
    )
    module = (seen.mention.detail.get("import") or package or "MODULE").partition(".")[0]
    helps = [
        f"{seen.pip} list | grep -iE 'torch|{module}'",
        f"{seen.python} -c 'import importlib.util as u; print(u.find_spec(\"{module}\").origin)'",
    ]
    if package is not None:
        helps.append(f"{seen.pip} uninstall -y {package}")
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=tuple(helps),
        notes=(
            f"After that, the build that was made on this torch, or the one that {row['maker']} "
            "gives out for this release of its own, is to be installed again.",
        ),
    )  # fmt: skip


def _named(seen: Seen, row: Mapping[str, Any]) -> bool:
    name = row["package"].replace("_", "-")
    return f"pkg:{name}" in seen.versions or seen.mention.detail.get("maker") == row["package"]
