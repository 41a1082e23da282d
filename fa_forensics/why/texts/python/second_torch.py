"""A torch that pip removed while another one was imported: two are on the path."""

from __future__ import annotations

from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import index_option
from fa_forensics.facts.torch_install import release_of
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import version_of


def second_torch(seen: Seen, package: str | None) -> str:
    """The torch of pip's that was not the one imported, where a package belongs to it; "" else.

    An upgrade removes a torch as well, and puts another in its place: that is no second one.
    """
    gone = seen.versions.get("flag:torch-gone", "")
    version = version_of(seen, package) if package else None
    ran = release_of(seen.torch) if seen.torch else ""
    if not gone or not version or ran in ("", gone) or torch_of(str(package), version) != gone:
        return ""
    if "flag:torch-upgrade" in seen.versions:
        return ""
    if any(mention.what == "torch-replaced" for mention in seen.paste.mentions[:100]):
        return ""
    return gone


def second_words(seen: Seen, package: str, gone: str) -> str:
    """What the two torches of the text show."""
    version = str(version_of(seen, package)).partition("+")[0]
    return (
        f" {package} {version} was built for torch {gone}, which pip had and removed, and torch "
        f"{release_of(str(seen.torch))} is what was imported: that one is a second torch, in "
        "another directory that comes first (~/.local, PYTHONPATH, conda beside pip)."
    )


def second_commands(seen: Seen, package: str, gone: str) -> tuple[str, ...]:
    """Take the copies out, until none is found, and put the pair back."""
    partner = partner_of(package, gone) or str(version_of(seen, package)).partition("+")[0]
    label = cuda_label(cuda_of_label(str(seen.torch).partition("+")[2]))
    known = label and cuda_of_label(label) in cuda_builds(gone.rpartition(".")[0])
    return (
        f"{seen.pip} uninstall -y torch {package}; {seen.python} -c 'import torch; print(torch."
        "__path__[0])'",
        f'{seen.pip} install --no-cache-dir "torch=={gone}" "{package}=={partner}"'
        f"{index_option(label if known else '')}",
    )


SECOND_NOTE = (
    "The command that uninstalls is typed again until it says that there is no module torch: each "
    "time the copy that comes first goes. A copy that pip does not remove is conda's (conda remove "
    "pytorch), or lies in a directory of PYTHONPATH, which is unset then. The pair is installed "
    "after that."
)


def imported_beside(seen: Seen, what: str, package: str | None, look: str) -> Answer | None:
    """pip installed a torch with its package, and the text says that another one is imported.

    ``look`` is the command that prints which torch is imported, and from where. None for a text
    that says no such thing, or whose package is not of the torch that pip installed.
    """
    pips = seen.versions.get("flag:torch-beside", "")
    version = version_of(seen, package) if package else None
    ran = release_of(seen.torch) if seen.torch else ""
    if not pips or package is None or not version or ran in ("", pips):
        return None
    if torch_of(package, version) != pips:
        return None
    release = version.partition("+")[0]
    cause = (
        f"Nothing registered {what}, since there are two torches: {package} {release} was built "
        f"for torch {pips}, which pip installed with it, and torch {ran} is what was imported. "
        "That one lies in another directory that comes first (~/.local, PYTHONPATH, conda beside "
        f"pip), and the compiled library of {package} does not load with it."
    )
    python = "env -u PYTHONPATH PYTHONNOUSERSITE=1 python"
    return seen.answer(
        "wrong-torch", "FA607", cause, owner="torch", direction="unknown", confidence="medium",
        help=(look, f"{python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
              f"fa-forensics inspect {package}"),
        notes=(
            f"The first command prints where torch {ran} lies. Where the second prints {pips}, it "
            "is of ~/.local or of PYTHONPATH: it is taken away there, or the program runs with "
            f"these variables. Where it prints {ran} still, that torch is in the environment "
            "itself, as a rule conda's (conda list pytorch).",
            f"torch {pips} and {package} {release} belong together and stay as they are.",
        ),
    )  # fmt: skip
