"""The toolkits that a build would use, and the variables that change what happens here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.toolkit import (
    HOME_VARIABLES,
    ON_PATH,
    USUAL,
    USUAL_PLACE,
    Toolkit,
    find_toolkits,
    read_toolkit,
)
from fa_forensics.facts.variables import effects
from fa_forensics.report import Finding
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, RUNTIME, Line
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.process import LD_LIBRARY_PATH
from fa_forensics.resolve.search import split_path
from fa_forensics.rules import runtime as rules
from fa_forensics.runtime.line import line_of


def toolkit_lines(environment: Environment, environ: Mapping[str, str]) -> Iterator[Line]:
    """The toolkit that a build would use is held against torch's CUDA; others are told."""
    toolkits = find_toolkits(environ)
    if not toolkits:
        text = "no CUDA toolkit: what is installed needs none, a build from source does"
        yield Line(RUNTIME, "nvcc", NOTE, text)
        return
    conflict = rules.two_toolkits(toolkits)
    for number, toolkit in enumerate(toolkits):
        finding = rules.broken_home(toolkit)
        if number == 0:
            fitting = _fitting_toolkit(environment, toolkits)
            finding = finding or rules.toolkit_mismatch(environment, toolkit, fitting) or conflict
        subject = {ON_PATH: "nvcc", USUAL: toolkit.named}.get(toolkit.named_by, toolkit.named_by)
        yield _toolkit_line(subject, toolkit, finding, number == 0)


def _fitting_toolkit(environment: Environment, toolkits: tuple[Toolkit, ...]) -> str | None:
    """A toolkit on this machine of the CUDA that torch was built with, by what it says."""
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return None
    own = ".".join(torch.cuda.split(".")[:2])
    usual = read_toolkit(f"{USUAL_PLACE}-{own}")
    return next((t.root for t in (*toolkits, usual) if t.release == own and t.nvcc), None)


def _toolkit_line(subject: str, toolkit: Toolkit, finding: Finding | None, first: bool) -> Line:
    facts = {
        "named_by": toolkit.named_by,
        "path": toolkit.named,
        "root": toolkit.root,
        "nvcc": toolkit.nvcc,
        "version": toolkit.nvcc_version,
        "version_known_by": toolkit.nvcc_how,
        "header_version": toolkit.header_version,
        "used_for_builds": first,
    }
    if toolkit.problem is not None and finding is None:
        return Line(RUNTIME, subject, COULD_NOT_LOOK, toolkit.problem, None, (), facts)
    use = "a build of an extension uses it" if first else "not used by torch's build helper"
    version = toolkit.nvcc_version or toolkit.header_version or "version unknown"
    text = f"CUDA {version} at {toolkit.root} ({toolkit.named_by}); {use}"
    return line_of(subject, text, finding, facts)


def variable_lines(
    environment: Environment,
    environ: Mapping[str, str],
    linker: Linker | None,
    gpus: tuple[Gpu, ...],
    has_driver: bool,
) -> Iterator[Line]:
    """Each variable that is set and changes something, with what it changes."""
    for name, effect in effects().items():
        value = environ.get(name)
        if value is None or name in HOME_VARIABLES:
            continue  # CUDA_HOME has a line of its own, with the toolkit
        finding = None
        if name == "LD_LIBRARY_PATH":
            finding = rules.library_path_elements(_elements(value, environment))
        elif name == "LD_PRELOAD":
            finding = rules.preloaded(_preloads(value, linker))
        elif name == "TORCH_CUDA_ARCH_LIST":
            finding = rules.arch_list(value, gpus)
        elif name == "CUDA_VISIBLE_DEVICES" and has_driver and not gpus:
            finding = rules.hidden_gpus(environ)
        shown = value if len(value) <= 200 else f"{value[:200]}..."
        text = f'"{shown}": {effect}'
        if name == "LD_LIBRARY_PATH" and linker is not None:
            text += _taken_from_library_path(linker)
        line = line_of(name, text, finding, {"value": value})
        yield line if finding else Line(RUNTIME, name, NOTE, text, None, (), {"value": value})


def _taken_from_library_path(linker: Linker) -> str:
    """What of the process of ``import torch`` comes from LD_LIBRARY_PATH."""
    taken = [o.path for o in linker.process.objects if o.found_by == LD_LIBRARY_PATH]
    if not taken:
        return "; nothing that `import torch` loads comes from there"
    more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
    return f"; `import torch` takes {', '.join(taken[:3])}{more} from there"


def _elements(value: str, environment: Environment) -> list[tuple[str, bool]]:
    rows = []
    for element in split_path(value):
        path = element.replace("${ORIGIN}", "$ORIGIN")
        path = path.replace("$ORIGIN", os.path.dirname(environment.python_real))
        rows.append((element, os.path.isdir(path or ".")))
    return rows


def _preloads(value: str, linker: Linker | None) -> list[tuple[str, str | None]]:
    """The entries of LD_PRELOAD and the file that is mapped for each."""
    rows: list[tuple[str, str | None]] = []
    for name in value.replace(":", " ").split():
        found = None if linker is None else linker.process.find_loaded(name)
        rows.append((name, None if found is None else found.path))
    return rows
