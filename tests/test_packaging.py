"""The wheel is whole, light and works where nothing but its declared dependencies is."""

from __future__ import annotations

import email
import email.message
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fa_forensics
from fixtures import husk

ROOT = Path(__file__).parent.parent
BASE = {"abi3info", "click", "lz4", "marisa-trie", "pyelftools", "cxxfilt", "zstandard"}
#: Modules that a mere ``--help`` has no use for; each costs milliseconds of everybody's start.
HEAVY = {
    "asyncio", "concurrent", "cxxfilt", "elftools", "importlib.metadata", "jsonschema", "lief",
    "lz4", "packaging", "subprocess", "torch", "zipfile", "zstandard",
}  # fmt: skip


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "PYTHONPATH": "", **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as pip builds it, without a network."""
    for needed in ("pip", "flit_core"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    dest = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", dest)
    done = run(sys.executable, "-m", "pip", "wheel", *options, ROOT, cwd=dest)
    assert done.returncode == 0, done.stderr
    (built,) = dest.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds what the wheel installs, and nothing of this tree."""
    dest = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(dest)
    return dest


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    package = ROOT / "fa_forensics"
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert {"fa_forensics/py.typed", "fa_forensics/render/schema-v1.json"} < held
    assert {"fa_forensics/confirm/adapters.json", "fa_forensics/data/owners.json"} < held


def test_wheel_is_pure_and_carries_its_licence(wheel: Path) -> None:
    assert wheel.name == f"fa_forensics-{fa_forensics.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = [name for name in archive.namelist() if name.endswith("/LICENSE")]
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert metadata(wheel)["License-Expression"] == "BSD-3-Clause"


def test_torch_is_an_extra_and_the_base_is_light(wheel: Path) -> None:
    lines = [Requirement(line) for line in metadata(wheel).get_all("Requires-Dist", [])]
    base = {line.name for line in lines if line.marker is None}
    runtime = {line.name for line in lines if 'extra == "runtime"' in str(line.marker)}
    assert base == BASE
    assert runtime == {"torch", "flash-attn"}


def test_the_program_is_called_fa_forensics(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt")]
        assert "fa-forensics=fa_forensics.cli:entry" in archive.read(name).decode().split()


def test_installed_module_says_its_version_and_help(installed: Path, tmp_path: Path) -> None:
    module = (sys.executable, "-m", "fa_forensics")
    version = run(*module, "--version", cwd=tmp_path, PYTHONPATH=str(installed))
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.split()[-1] == fa_forensics.__version__
    shown = run(*module, "--help", cwd=tmp_path, PYTHONPATH=str(installed))
    assert shown.returncode == 0 and shown.stdout.startswith("Usage: fa-forensics ")


def test_installed_package_inspects_a_real_file(installed: Path, tmp_path: Path) -> None:
    """The data tables are found where the wheel puts them, not in this tree."""
    folder = husk.unpack("vllm_flash_attn-2.6.2", str(tmp_path))
    (module,) = Path(folder).glob("*.so")
    command = (sys.executable, "-m", "fa_forensics", "inspect", "--no-confirm", "--format=json")
    done = run(*command, module, cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.returncode in (0, 1, 3, 4), done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert {row["arch"] for row in target["gpu_code"]} == {"sm_80", "sm_90"}
    assert {row["owner"] for row in target["undefined"]} >= {"cudart", "libstdc++", "torch/c10"}


def started(code: str, folder: Path) -> set[str]:
    """The modules that a fresh Python has after running ``code``."""
    code += "\nimport sys; print('\\n'.join(sys.modules))"
    done = run(sys.executable, "-c", code, cwd=folder, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_start_imports_nothing_heavy(tmp_path: Path) -> None:
    names = started("import fa_forensics.cli", tmp_path) - started("import click", tmp_path)
    assert "fa_forensics.cli" in names
    assert not {name for name in names if name in HEAVY or name.split(".")[0] in HEAVY}


def test_start_reads_the_command_line_alone(tmp_path: Path) -> None:
    """The readers come when there is a file to be read."""
    own = {n for n in started("import fa_forensics.cli", tmp_path) if n.startswith("fa_forensics.")}
    files = (ROOT / "fa_forensics" / "commands").glob("[a-z]*.py")
    commands = {f"fa_forensics.commands.{file.stem}" for file in files}
    assert own - commands == {
        "fa_forensics.cli", "fa_forensics.commands", "fa_forensics.console", "fa_forensics.errors",
    }  # fmt: skip


def test_one_symbol_loads_neither_the_rules_nor_the_readers_of_texts(tmp_path: Path) -> None:
    """It is answered in a blink: a rule or a recogniser is loaded where a text needs it."""
    code = (
        "from fa_forensics.why import explain\n"
        f"explain(['_ZN3c104cuda9SetDeviceEi'], {sys.executable!r}, {{}})"
    )
    names = started(code, tmp_path)
    assert "fa_forensics.why.symbol" in names
    parts = ("fa_forensics.rules", "fa_forensics.facts.paste", "fa_forensics.why.texts")
    assert not [name for name in names if name.startswith(parts)]
