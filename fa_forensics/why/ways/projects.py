"""Where a package's project has its builds: on an index of its own, in a bucket, for one torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import known_packages, row_of
from fa_forensics.why.judgement import FLAVOUR, NONE, OLDER, UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.told import ALL_CXX11
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.same_release import label_by_cuda, label_of, wheel_page
from fa_forensics.why.ways.step_back import step_back

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Texts whose torch is a build of its own, for which no index has anything.
_OWN = ("ngc", "rocm", "flag:jetson", "flag:torch-source", "flag:nv-image")
#: Notes on a build from source.
_ON_BUILDS = lazily(
    r"(?:One of the two|Another build of|A file that was|The command |Where pip comp|No package is"
    r"|The text says that the import|[\w-]+ \S+ is no release of the package index)"
)

_ALONE = lazily(r"comes\sas\sa\swheel\salone")


def of_its_project(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """The answer with what the project itself gives out for the text's torch."""
    row = row_of(name)
    if row is None or place.told is None:
        return answer
    answer = step_back(answer, paste, place, name)
    if isinstance(row.get("off_index"), Mapping):
        return _off_the_index(answer, place, name, row["off_index"])  # type: ignore[arg-type]
    if row.get("names_torch"):
        index = _filled(str(row["names_torch"]), answer, paste, place)
        return _with_the_torch_it_names(answer, paste, name, index)
    plain = not place.told.torch_by and not any(key in paste.versions for key in _OWN)
    # Such pages have wheels for x86_64 alone, and for torch in the flavour of its own wheels.
    plain = plain and place.machine == "x86_64"
    fits = answer.direction != FLAVOUR or _is_cxx11_wheel(place)
    if plain and row.get("find_links") and not row.get("before") and fits:
        return _from_its_index(answer, paste, place, name)
    return answer


def _is_cxx11_wheel(place: Place) -> bool:
    """Whether the torch there is a release all of whose wheels are cxx11."""
    present = place.present
    return present is not None and present.published and order_key(present.release) >= ALL_CXX11


def _off_the_index(answer: Answer, place: Place, name: str, where: Mapping[str, str]) -> Answer:
    """Commands for releases that are no wheels of the package index."""
    python = (place.told.python if place.told else None) or "X.Y"
    tag = "cp" + python.replace(".", "")
    tag = f"{tag}-{tag}m" if python in ("3.5", "3.6", "3.7") else f"{tag}-{tag}"
    wanted = re.compile(rf"'?{re.escape(name)}==(?P<minor>\d{{1,2}}\.\d{{1,3}})\.\*'?")
    old: list[str] = []

    def spelt(found: re.Match[str]) -> str:
        if order_key(found["minor"]) >= order_key(where["before"]):
            return found[0]
        old.append(found["minor"])
        return where["address"].format(minor=found["minor"], tag=tag)

    helps = tuple(wanted.sub(spelt, text) for text in answer.help)
    if not old:
        return answer
    note = (
        f"The package index has {name} from {where['before']} on alone: earlier releases are files "
        "of the project's own, at the address that is typed, as long as it keeps them there (those "
        "for Colab or TPU VMs in the directories colab/ and tpuvm/ of the same place)."
    )
    return replace(answer, help=helps, notes=(*answer.notes, note))


#: The release of torch that a command installs.
_WANTED = lazily(r'"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})"')


def _filled(index: str, answer: Answer, paste: Paste, place: Place) -> str:
    """A project's index with the torch and the CUDA of the text, or of the command for torch."""
    wanted = next((found for text in answer.help if (found := _WANTED.search(text))), None)
    release = wanted["release"] if wanted else place.present.release if place.present else "X.Y.Z"
    return index.format(release=release, label=label_of(paste, place) or "cuXYZ")


def _with_the_torch_it_names(answer: Answer, paste: Paste, name: str, index: str) -> Answer:
    """A wheel that nobody compiles, each release of which asks for one torch."""
    told = paste.versions.get(f"pkg:{name}", "")
    release = (
        told
        if re.fullmatch(r"\d{1,3}(?:\.\d{1,4}){1,3}(?:(?:\.dev|rc|\.post)\d{1,10})?", told)
        else ""
    )
    wanted = f"{name}=={release}" if release else f"{name}==X.Y.Z"
    again = f"python -m pip install --no-cache-dir --extra-index-url {index} {wanted}"
    dropped = re.compile(r"^rm -rf build|install --upgrade\b|\"torch>=")
    helps = [text for text in answer.help if not dropped.search(text)]
    at = 1 if helps and "print(torch" in helps[0] else 0
    helps[at:at] = ["python -m pip check", again]
    note = (
        f"Each release of {name} is a wheel that asks for one torch: pip check shows where the "
        "torch that is there is another one, and the command that installs the release brings the "
        f"torch which it asks for. Or take the release of {name} whose torch is the one there."
    )
    if not release:
        note += " X.Y.Z is the release that the program needs."
    if "cuXYZ" in again:
        note += " cuXYZ in the address is the CUDA of that torch, or cpu."
    if answer.direction == FLAVOUR:
        note += (
            f" For a torch that is not of the package index (a container's, conda-forge's, one "
            f"from source) {name} is compiled on it, by the project's own build, or the container "
            "of that release is taken."
        )
    kept = (n for n in answer.notes if not _ON_BUILDS.match(n) and not _ALONE.search(n))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, *kept))


def _from_its_index(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """The project's wheels for the text's torch and CUDA, sister packages with them."""
    label = label_of(paste, place) or cuda_label(paste.versions.get("index_cuda", ""))
    present = place.present
    if present is not None and not label:
        label = label_by_cuda(paste, present.release)
    built = next((t for t in answer.help if re.search(rf"--no-binary\s{name}\s", t)), None)
    of_no_release = present is not None and not label_of(paste, place) and (
        re.fullmatch(r"\d\.\d{1,2}", present.version) is not None
    )  # fmt: skip
    if built is not None and (present is None or of_no_release):
        return _with_its_page(answer, paste, place, name)
    if present is not None and built is not None and present.published and not label:
        return _with_page_of(answer, present.release, name)
    if present is not None and built is None and answer.kind == "wrong-torch":
        return _for_the_loaded(answer, name)
    if present is None or not present.published or not label or built is None:
        return answer
    if order_key(present.release) < (1, 4, 0, True):
        return answer  # such indexes begin with that one
    rows = [row for row in known_packages() if row.get("find_links") and not row.get("before")]
    named = [str(row["distribution"]) for row in rows]
    sisters = [n for n in named if f"named:{n}" in paste.versions or f"pkg:{n}" in paste.versions]
    packages = " ".join(dict.fromkeys((name, *sisters)))
    minor = minor_of(present.release)
    command = (
        "python -m pip install --force-reinstall --no-deps --no-cache-dir "
        f"--only-binary {packages.replace(' ', ',')} {packages} "
        f"-f {wheel_page(row_of(name), label, present.release)}"
    )
    note = (
        f"The address behind -f has the project's wheels for torch {minor} and {label}, where they "
        "were published; what pip compiled or kept of an earlier torch is not taken again. Where "
        "there are none for the Python in use, the build from source is the way."
    )
    helps = tuple(
        t for text in answer.help for t in ((command, text) if text == built else (text,))
    )
    return replace(
        answer, help=helps, notes=(note, *(n for n in answer.notes if not _ON_BUILDS.match(n)))
    )


def _for_the_loaded(answer: Answer, name: str) -> Answer:
    """The project's wheel for the torch that is loaded, which is another than the text says."""
    page = wheel_page(row_of(name), "cuXYZ", "X.Y.0")
    asked = bool(answer.help) and "print(torch" in answer.help[0]
    if not page or not asked or answer.direction != NONE:
        return answer
    command = (
        "python -m pip install --force-reinstall --no-deps --no-cache-dir "
        f"--only-binary {name} {name} -f {page}"
    )
    note = (
        "The address behind -f is that of the project's wheels for one torch: X.Y is the "
        f"release that the first command prints, cuXYZ (or cpu) its CUDA, and {name} for that "
        "torch is the shortest way."
    )
    kept = (n for n in answer.notes if not n.startswith("A build of the extension for the torch"))
    return replace(answer, help=(answer.help[0], command, *answer.help[1:]), notes=(note, *kept))


def _with_page_of(answer: Answer, torch: str, name: str) -> Answer:
    """Where the text names its torch, and not which CUDA that is for."""
    page = wheel_page(row_of(name), "cuXYZ", torch)
    if not page or order_key(torch) < (1, 4, 0, True):
        return answer
    note = (
        f"{name}'s project has wheels for torch {minor_of(torch)} by CUDA, seconds in place of a "
        f"build: with -f {page} in place of --no-binary {name} pip takes one, where there is one "
        "for the Python in use; cuXYZ (or cpu) is torch's own CUDA, as torch.version.cuda prints "
        "it, and not the toolkit's."
    )
    return replace(answer, notes=(*answer.notes, note))


def _with_its_page(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """Where the project's wheels are for a torch that the text does not name."""
    page = wheel_page(row_of(name), "cuXYZ", "X.Y.0")
    note = (
        f"{name}'s project has wheels by torch and CUDA, seconds in place of a build: with -f "
        f"{page} in place of --no-binary {name} pip takes one, X.Y and cuXYZ (or cpu) being those "
        "of the torch that is loaded."
    )
    notes = [*answer.notes, note]
    of = paste.versions.get("page_torch", "")
    have = any(minor_of(release) == minor_of(f"{of}.0") for release in answer.exported_by)
    if not of or not have or answer.kind != "symbol-drift":
        return replace(answer, notes=tuple(notes))
    told = place.told
    cause, direction = answer.cause, answer.direction
    notes.insert(
        0, f"The address in the text has wheels for torch {of}, which has the name: another torch "
        "is loaded, and the page of that one is the one to take."
    )  # fmt: skip
    if direction == UNKNOWN and told is not None:
        direction = OLDER
        cause = f"{cause} The wheels in the text are for torch {of}: most likely a newer is loaded."
    return replace(answer, cause=cause, direction=direction, notes=tuple(notes))
