"""Answers to installations that put another torch in the place of the one that was there."""

from __future__ import annotations

import re

from fa_forensics.facts.python_api import partner_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import pip_name
from fa_forensics.why.texts.python.pairs import index_tag


def torch_replaced(seen: Seen) -> Answer:
    """pip's log: ``Uninstalling torch-2.3.1+cu118`` and ``Successfully installed torch-2.3.0``."""
    detail = seen.mention.detail
    gone, come = detail.get("gone", ""), detail.get("come", "")
    package = detail.get("package", "")
    done = _uninstalled(seen)
    cause = f"The installation replaced torch {gone} by torch {come}"
    if not done:
        cause = f"The installation takes torch {come} in the place of torch {gone}"
    if package and package.lower() != "torch":
        asks = f"{package} {detail['release']}" if detail.get("release") else package
        cause += f", as {asks} asks for it"
    cause += (
        ": packages with compiled code that were built for the other one (torchvision and "
        "torchaudio are such) need not load with it."
    )
    back, notes = _back(seen, gone, come)
    pin, pip = f"torch=={gone}", _pip(seen)
    helps = [*back, *_companion(seen, package, gone)]
    if back:
        helps.append(f"echo {pin} > constraints.txt")
        helps.append(
            f"{pip} install -c constraints.txt {pip_name(seen, package) or package}"
            if package
            else f"{pip} install -c constraints.txt -r requirements.txt"
        )
    notes.append(
        "With a constraints file pip keeps that torch, and says so where a package asks for "
        "another; such a package is taken in its release for that torch, or installed with "
        "--no-deps. Where the new torch is to stay, the other compiled packages are installed "
        "again for it instead."
    )
    return seen.answer(
        "wrong-torch", "FA606", cause, owner="torch", direction="none",
        confidence="medium" if detail.get("prose") or not done else "high",
        help=tuple(helps) or (f"{pip} list | grep -i torch",), notes=tuple(notes),
    )  # fmt: skip


def _pip(seen: Seen) -> str:
    return "uv pip" if re.match(r"\s*-\s", seen.mention.line) else seen.pip


def _back(seen: Seen, gone: str, come: str) -> tuple[tuple[str, ...], list[str]]:
    """(commands, notes): how the torch that went is got again."""
    local = gone.partition("+")[2]
    build = re.fullmatch(r"cu\d{2,3}|rocm[\d.]+|cpu|xpu", local)
    pinned = f'"torch=={gone}"'
    if not local and "a0" not in gone and "dev" not in gone:
        return (f"{_pip(seen)} install {pinned}",), []
    if build is None or "dev" in gone:
        return (), [
            f"torch {gone} is a build of its own (a container's, NVIDIA's for Jetson, a nightly, "
            "one from source), and no index has it for long: start again from the image or the "
            "wheel that it came from, and install the package there with --no-deps."
        ]
    notes = []
    if "+" not in come:
        notes.append(
            "A version without +cu is the one of the package index, which has one CUDA version a "
            "release for Linux and builds without CUDA alone for Windows."
        )
    return (f"{_pip(seen)} install {pinned}{index_option(local)}",), notes


def _uninstalled(seen: Seen) -> bool:
    """Whether the log says that the other torch went, and not only that another one is fetched."""
    return re.search(r"nstall|^\s*-", seen.mention.line) is not None


def _companion(seen: Seen, package: str, torch: str) -> tuple[str, ...]:
    """The release for that torch of the package that asked for another one."""
    fitting = partner_of(package, torch) if package else None
    if fitting is None:
        return ()
    tag = index_tag(seen, package, torch)
    return (f'{_pip(seen)} install --no-deps "{package}=={fitting}"{index_option(tag)}',)


ANSWERERS: dict[str, Answerer] = {"torch-replaced": torch_replaced}
