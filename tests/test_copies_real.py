"""The file taken for every needed name of every extension is the one that ld.so takes.

The oracle is a real process in each real environment: ``import torch``, then each file opened
in a fork of it, with LD_DEBUG=libs; names that were loaded already are asked of dlinfo.
``FA_FORENSICS_REAL_ENVS`` names the environments, separated by colons. Runs their code.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from support import ld_debug

from fa_forensics.copies import copies_lines
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.variables import parse_arch_list
from fa_forensics.resolve.environment_process import open_linker

pytestmark = pytest.mark.real

ENVIRONMENTS = [e for e in os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":") if e]
environments = pytest.mark.parametrize(
    "prefix",
    ENVIRONMENTS
    or [pytest.param(None, marks=pytest.mark.skip("FA_FORENSICS_REAL_ENVS names no environment"))],
    ids=lambda prefix: os.path.basename(prefix) if prefix else "none",
)

#: Libraries that are put in front by LD_LIBRARY_PATH, as second copies of the same bytes.
COPIED = ("libcudart.so", "libnvJitLink.so", "libcupti.so", "libnvToolsExt.so", "libgomp.so")


@cache
def environment_of(prefix: str, library_path: str) -> Environment:
    environ = {"PATH": os.defpath, "HOME": os.environ.get("HOME", "/")}
    if library_path:
        environ["LD_LIBRARY_PATH"] = library_path
    return find_environment(prefix, None, environ)


def extension_files(environment: Environment) -> list[str]:
    """Every ELF file among the packages that is no library of torch or of NVIDIA's wheels."""
    found = []
    for site in environment.site_dirs:
        for path in sorted(Path(site).rglob("*.so*")):
            inside = path.relative_to(site).parts
            if inside[0] == "nvidia" or inside[:2] == ("torch", "lib") or path.is_symlink():
                continue
            if path.is_file() and read_bounded(str(path), 4) == b"\x7fELF":
                found.append(str(path))
    return found


def predicted(environment: Environment, path: str) -> Mapping[str, str | None]:
    """Needed name → the file we say is taken, for the whole closure of a file."""
    linker = open_linker(environment)
    try:
        return {row.soname: row.path for row in linker.resolve(path, ()).libraries}
    finally:
        linker.close()


def compare(prefix: str, library_path: str, scratch: Path) -> tuple[set[str], list[str]]:
    """The files that serve where both agree (each pair printed as a count), the rest in words."""
    environment = environment_of(prefix, library_path)
    rows: list[tuple[str, Mapping[str, str | None]]] = []
    for path in extension_files(environment):
        try:
            rows.append((path, predicted(environment, path)))
        except ForensicsError:
            continue  # no file that a loader could open: another machine's, or none at all
    variables = {"LD_LIBRARY_PATH": library_path} if library_path else {}
    asked = [(path, list(names)) for path, names in rows]
    seen = ld_debug.observe(environment.python, asked, scratch, variables)
    same, wrong = [], []
    for (path, names), opened in zip(rows, seen.opened, strict=True):
        for name, ours in names.items():
            if name in opened.searched:
                real = opened.searched[name]
            elif opened.error is None or opened.where[name] is not None:
                real = opened.where[name]
            else:
                continue  # the loader stopped at an earlier name
            if (ours and os.path.realpath(ours)) == (real and os.path.realpath(real)):
                same.append(str(real))
            else:
                wrong.append(f"{path} needs {name}: {ours}, the loader takes {real}")
        unforeseen = sorted(set(opened.searched) - set(names))
        wrong += [f"{path}: the loader looks for {name}" for name in unforeseen]
    print(f"\n{prefix} LD_LIBRARY_PATH={library_path!r}: {len(same)} equal, {len(wrong)} not, "
          f"{len(rows)} files")  # fmt: skip
    assert len(same) > 100
    return set(same), wrong


@environments
def test_an_older_nvjitlink_in_front_ends_as_foretold(prefix: str, tmp_path: Path) -> None:
    """A copy without one name stands for an older one; `import torch` says what comes of it."""
    own = [p for p in libraries_with_torch(prefix) if "libnvJitLink.so" in p]
    if not own:
        pytest.skip("this torch takes no libnvJitLink")
    major = own[0].rpartition(".")[2]
    name = f"__nvJitLinkAddData_{major}_1".encode()
    older = tmp_path / os.path.basename(own[0])
    # Its hash is that of the old name still, so no look-up finds the new one.
    older.write_bytes(Path(own[0]).read_bytes().replace(name + b"\0", name[:-1] + b"X\0"))
    environ = {"PATH": os.defpath, "HOME": "/", "LD_LIBRARY_PATH": str(tmp_path)}
    environment = find_environment(prefix, None, environ)
    told = [
        line.finding for line in copies_lines(environment, environ)
        if line.finding is not None and line.finding.severity == "error"
    ]  # fmt: skip
    code = "try:\n import torch\nexcept ImportError as e:\n print(e)"
    done = subprocess.run(
        [environment.python, "-c", code], capture_output=True, text=True, check=True, env=environ,
        timeout=300,
    )  # fmt: skip
    print(f"\n{prefix}: {done.stdout.strip() or 'imports'}; told: {[f.code for f in told]}")
    if not done.stdout:
        assert told == []
        return
    assert [finding.code for finding in told] == ["FA830"]
    said = done.stdout.strip().partition(": ")
    assert f'"{os.path.basename(said[0])}: {said[2]}"' in told[0].notes[0]
    assert told[0].help[0] == "unset LD_LIBRARY_PATH"


@environments
def test_another_torchs_libraries_in_front_end_as_foretold(prefix: str) -> None:
    for other in ENVIRONMENTS:
        own, foreign = environment_of(prefix, "").torch, environment_of(other, "").torch
        if own is None or foreign is None or own.version == foreign.version:
            continue
        environ = {"PATH": os.defpath, "HOME": "/", "LD_LIBRARY_PATH": foreign.lib_dir}
        environment = find_environment(prefix, None, environ)
        told = [
            line.finding.code for line in copies_lines(environment, environ)
            if line.finding is not None and line.finding.severity == "error"
        ]  # fmt: skip
        done = subprocess.run(
            [environment.python, "-c", "import torch"], capture_output=True, env=environ,
            timeout=300,
        )  # fmt: skip
        print(f"\n{own.version} under {foreign.version}: exit {done.returncode}, told: {told}")
        assert (done.returncode == 0) == (told == [])


@environments
@pytest.mark.parametrize("in_front", [False, True])
def test_cudnn_opens_the_part_that_is_foretold(prefix: str, in_front: bool, tmp_path: Path) -> None:
    environ = {"PATH": os.defpath, "HOME": "/"}
    whole = [p for p in libraries_with_torch(prefix) if "libcudnn.so" in p]
    if not whole:
        pytest.skip("this torch takes no cuDNN")
    if in_front:
        (own,) = Path(whole[0]).parent.glob("libcudnn_graph.so.*")
        shutil.copy(own, tmp_path / own.name)
        environ["LD_LIBRARY_PATH"] = str(tmp_path)
    environment = find_environment(prefix, None, environ)
    line = next(
        line for line in copies_lines(environment, environ) if "libcudnn_graph" in line.subject
    )
    taken = line.facts["taken"]
    assert isinstance(taken, dict)
    code = "import torch; torch.backends.cudnn.version()"
    log = subprocess.run(
        [environment.python, "-c", code], capture_output=True, text=True, check=True,
        env={**environ, "LD_DEBUG": "libs"}, timeout=300,
    ).stderr  # fmt: skip
    found = [path for name, path in ld_debug.searches(log).items() if "libcudnn_graph" in name]
    assert [os.path.realpath(path) for path in found if path] == [taken["real_path"]]


@environments
def test_names_of_architectures_are_those_of_torchs_build_helper(prefix: str) -> None:
    environment = environment_of(prefix, "")
    assert environment.torch is not None
    path = Path(environment.torch.path) / "utils" / "cpp_extension.py"
    found = re.search(r"named_arches = .*?OrderedDict\(\[(.*?)\]\)", path.read_text(), re.DOTALL)
    assert found is not None
    for name, numbers in ast.literal_eval(f"[{found[1]}]"):
        if name in ("Blackwell", "Blackwell+Tegra"):
            continue  # they had other numbers before CUDA 13
        assert parse_arch_list(name) == parse_arch_list(numbers), name


def libraries_with_torch(prefix: str) -> list[str]:
    linker = open_linker(environment_of(prefix, ""))
    try:
        return [loaded.path for loaded in linker.torch_objects]
    finally:
        linker.close()


@environments
def test_every_needed_name_is_served_by_the_file_that_the_loader_takes(
    prefix: str, tmp_path: Path
) -> None:
    assert compare(prefix, "", tmp_path / "log")[1] == []


@environments
def test_the_same_holds_under_library_path(prefix: str, tmp_path: Path) -> None:
    front = tmp_path / "front"
    front.mkdir()
    for path in libraries_with_torch(prefix):
        if os.path.basename(path).startswith((*COPIED, "libstdc++.so", "libgcc_s.so")):
            shutil.copy(path, front)
    toolkit = "/usr/local/cuda/lib64"
    served, wrong = compare(prefix, f"{tmp_path}/none:{front};{toolkit}", tmp_path / "log")
    assert wrong == []
    assert f"{front}/libstdc++.so.6" in served  # the directory in front did play a part
