"""``File fbgemm_gpu_py.so not found``: a package prints it for a load that failed, too."""

from __future__ import annotations

from fa_forensics.facts.python_api import partner_of
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in


def own_so_not_found(seen: Seen) -> Answer:
    """A package's own compiled library that it did not find, or did not get loaded."""
    library = seen.mention.detail["own"]
    package = package_in(seen) or seen.mention.detail.get("package")
    name = package or "the package"
    cause = (
        f"{name} did not get its own compiled library {library} loaded. Two causes fit: the file "
        "is not there, or it is there and does not load with this torch, as that of a nightly "
        "build beside a release of torch. The line can be printed for both."
    )
    release = partner_of(package, seen.torch) if package and seen.torch else None
    helps = [
        f"{seen.python} -c 'import glob, site, torch; [torch.ops.load_library(f) for p in "
        f'site.getsitepackages() for f in glob.glob(p + "/*/{library}")]\'',
        f"{seen.pip} list",
    ]
    notes = [
        "The first command loads the file and prints why it fails; where it prints nothing, there "
        "is none, or it loads.",
        "Releases go with a release of torch, nightly builds with the nightly torch of their day; "
        "the packages that are of one project (torchrec and fbgemm-gpu) are of one kind as well.",
    ]
    if release is not None and seen.torch:
        helps.append(f'{seen.pip} install --force-reinstall --no-deps "{package}=={release}"')
        notes.append(
            f"{package} {release} is the release for torch {seen.torch.partition('+')[0]}."
        )
    return seen.answer(
        "damaged-file", "FA880", cause, owner=package, direction="none", confidence="medium",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip
