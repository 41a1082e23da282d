"""Which environment is chosen, what is read of it, and that nothing in it is executed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from trees import (
    environ,
    interpreter_bytes,
    make_prefix,
    make_torch,
    make_venv,
)

from fa_forensics.facts.environment import Environment, find_environment


def look(python: str | os.PathLike[str], **variables: str | os.PathLike[str]) -> Environment:
    return find_environment(os.fspath(python), None, environ(**variables))


def real_path(python: str, variables: dict[str, str]) -> list[str]:
    """sys.path of a real interpreter, less what lies in its standard library."""
    code = "import sys, json, os; print(json.dumps([sys.path, os.path.dirname(os.__file__)]))"
    done = subprocess.run(
        [python, "-c", code], env=variables, capture_output=True, check=True, timeout=60
    )
    entries, stdlib = json.loads(done.stdout)
    real = [os.path.realpath(e) for e in entries if e and os.path.isdir(e)]
    standard = (os.path.realpath(stdlib), os.path.realpath(os.path.join(stdlib, "lib-dynload")))
    return list(dict.fromkeys(e for e in real if e not in standard))


# ---- against the interpreters' own word


@pytest.mark.parametrize("system_site", [False, True])
def test_site_directories_equal_sys_path_of_a_real_virtual_environment(
    tmp_path: Path, system_site: bool
) -> None:
    venv.create(tmp_path / "env", system_site_packages=system_site, symlinks=True)
    python = str(tmp_path / "env" / "bin" / "python")
    home = tmp_path / "home"
    short = f"{sys.version_info[0]}.{sys.version_info[1]}{'t' if 't' in sys.abiflags else ''}"
    (home / ".local" / "lib" / f"python{short}" / "site-packages").mkdir(parents=True)
    site = tmp_path / "env" / "lib" / f"python{short}" / "site-packages"
    for name in ("absolute", "relative", "onpath"):
        (tmp_path / name).mkdir()
    (site / "inside").mkdir()
    (site / "b.pth").write_text(f"# comment\n\n{tmp_path / 'absolute'}\n../../../../relative\n")
    (site / "a.pth").write_text("inside\nno/such/directory\ninside\n")
    variables = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(tmp_path / "onpath")}
    found = find_environment(python, None, variables)
    assert [os.path.realpath(d) for d in found.site_dirs] == real_path(python, variables)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert os.path.realpath(found.base_prefix) == os.path.realpath(sys.base_prefix)
    assert found.is_venv


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="no /usr/bin/python3")
def test_site_directories_equal_sys_path_of_the_system_python() -> None:
    variables = environ()
    found = find_environment("/usr/bin/python3", None, variables)
    assert [os.path.realpath(d) for d in found.site_dirs] == real_path(
        "/usr/bin/python3", variables
    )
    said = subprocess.run(
        ["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"],
        capture_output=True, check=True, timeout=60, text=True,
    )  # fmt: skip
    assert found.version == said.stdout.strip().rstrip("+")


def test_running_interpreter_is_described_by_its_own_values() -> None:
    found = find_environment(None, None, environ())
    assert found.found_by == "the running interpreter"
    assert (found.python, found.prefix) == (sys.executable, sys.prefix)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.machine == os.uname().machine
    assert os.path.dirname(os.path.dirname(pytest.__file__)) in found.site_dirs


# ---- which one


def test_order_is_option_then_virtual_env_then_conda_then_running(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base")
    for name in ("asked", "virtual"):
        make_venv(tmp_path / name, base)
    make_prefix(tmp_path / "conda")
    (tmp_path / "conda" / "conda-meta").mkdir()
    both = environ(VIRTUAL_ENV=tmp_path / "virtual", CONDA_PREFIX=tmp_path / "conda")
    first = find_environment(str(tmp_path / "asked"), None, both)
    second = find_environment(None, None, both)
    third = find_environment(None, None, environ(CONDA_PREFIX=tmp_path / "conda"))
    assert [e.found_by for e in (first, second, third)] == [
        "--python", "VIRTUAL_ENV", "CONDA_PREFIX",
    ]  # fmt: skip
    assert [Path(e.prefix).name for e in (first, second, third)] == ["asked", "virtual", "conda"]
    assert [e.is_conda for e in (first, second, third)] == [False, False, True]


def test_stale_virtual_env_is_passed_over_with_a_note(tmp_path: Path) -> None:
    make_prefix(tmp_path / "conda")
    gone = tmp_path / "deleted"
    found = find_environment(None, None, environ(VIRTUAL_ENV=gone, CONDA_PREFIX=tmp_path / "conda"))
    assert found.found_by == "CONDA_PREFIX"
    assert found.notes == (f"VIRTUAL_ENV is {gone}, which holds no Python: not used",)


def test_file_in_another_environment_is_judged_there_when_the_default_has_no_torch(
    tmp_path: Path,
) -> None:
    base = make_prefix(tmp_path / "base")
    make_venv(tmp_path / "empty", base)
    site = make_venv(tmp_path / "full", base)
    make_torch(site)
    target = site / "pkg" / "_C.so"
    variables = environ(VIRTUAL_ENV=tmp_path / "empty")
    found = find_environment(None, str(target), variables)
    assert (found.found_by, found.prefix) == ("the file lies in it", str(tmp_path / "full"))
    assert found.torch is not None
    # --python is an order, not a default.
    asked = find_environment(str(tmp_path / "empty"), str(target), variables)
    assert (asked.found_by, asked.torch) == ("--python", None)


def test_default_with_torch_stays_and_says_where_the_file_lies(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base")
    make_torch(make_venv(tmp_path / "mine", base))
    other = make_venv(tmp_path / "other", base)
    make_torch(other)
    found = find_environment(None, str(other / "x.so"), environ(VIRTUAL_ENV=tmp_path / "mine"))
    assert (found.found_by, found.prefix) == ("VIRTUAL_ENV", str(tmp_path / "mine"))
    python = tmp_path / "other" / "bin" / "python"
    note = f"the file lies in another environment; --python {python} judges it there"
    assert found.notes == (note,)


def test_option_takes_a_name_on_path_a_directory_and_an_executable(tmp_path: Path) -> None:
    binary = make_prefix(tmp_path / "base", "3.10")
    by_name = look("python3.10", PATH=f"/nonexistent{os.pathsep}{binary.parent}")
    by_directory, by_path = look(tmp_path / "base"), look(binary)
    assert {e.prefix for e in (by_name, by_directory, by_path)} == {str(tmp_path / "base")}
    assert {e.version_short for e in (by_name, by_directory, by_path)} == {"3.10"}


# ---- what is read of it


def test_chain_of_virtual_environments_and_links_leads_to_one_base(tmp_path: Path) -> None:
    make_prefix(tmp_path / "base")
    (tmp_path / "current").symlink_to("base")
    make_venv(tmp_path / "env", tmp_path / "current" / "bin" / "python3")
    found = look(tmp_path / "env")
    assert found.python == str(tmp_path / "env" / "bin" / "python")
    assert found.python_real == str(tmp_path / "base" / "bin" / "python3.11")
    assert found.base_prefix == str(tmp_path / "current")
    assert found.prefix == str(tmp_path / "env")


@pytest.mark.parametrize(
    ("where", "expected"),
    [("header", "3.11.9"), ("binary", "3.11.4"), ("config", "3.11.2"), ("nowhere", "3.11")],
)
def test_full_version_comes_from_header_then_binary_then_config(
    tmp_path: Path, where: str, expected: str
) -> None:
    binary = make_prefix(tmp_path / "base", version="3.11.4" if where != "config" else None)
    if where == "nowhere":
        binary.write_bytes(interpreter_bytes("3.12.1"))  # of another Python: not believed
    if where == "header":
        include = tmp_path / "base" / "include" / "python3.11"
        include.mkdir(parents=True)
        (include / "patchlevel.h").write_text('#define PY_VERSION      "3.11.9+"\n')
    extra = "version_info = 3.11.2.final.0\n" if where != "nowhere" else "version = 3.1\n"
    make_venv(tmp_path / "env", binary, extra=extra)
    assert look(tmp_path / "env").version == expected


def test_musl_and_glibc_are_told_apart_by_the_loader(tmp_path: Path) -> None:
    make_prefix(tmp_path / "alpine", loader="/lib/ld-musl-x86_64.so.1")
    make_prefix(tmp_path / "debian", loader="/lib64/ld-linux-x86-64.so.2")
    alpine, debian = look(tmp_path / "alpine"), look(tmp_path / "debian")
    assert (alpine.libc, alpine.interpreter_loader) == ("musl", "/lib/ld-musl-x86_64.so.1")
    assert (debian.libc, debian.interpreter_loader) == ("glibc", "/lib64/ld-linux-x86-64.so.2")


def test_machine_is_the_interpreters_own(tmp_path: Path) -> None:
    binary = make_prefix(tmp_path / "arm")
    data = bytearray(binary.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    binary.write_bytes(data)
    assert look(tmp_path / "arm").machine == "aarch64"


def test_free_threaded_python_has_its_own_directories(tmp_path: Path) -> None:
    make_prefix(tmp_path / "base", "3.13t")
    site = tmp_path / "base" / "lib" / "python3.13t" / "site-packages"
    user = tmp_path / "home" / ".local" / "lib" / "python3.13t" / "site-packages"
    for directory in (site, user):
        directory.mkdir(parents=True)
    found = look(tmp_path / "base", HOME=tmp_path / "home")
    assert (found.version_short, found.abiflags) == ("3.13", "t")
    assert found.site_dirs == (str(user), str(site))
    without = look(tmp_path / "base", HOME=tmp_path / "home", PYTHONNOUSERSITE="1")
    assert without.site_dirs == (str(site),)


def test_debian_layout_belongs_to_the_system_python_alone(tmp_path: Path) -> None:
    usr = tmp_path / "usr"
    make_prefix(usr)
    local = usr / "local" / "lib" / "python3.11" / "dist-packages"
    shared = usr / "lib" / "python3" / "dist-packages"
    for directory in (local, shared):
        directory.mkdir(parents=True)
    make_prefix(usr / "local")  # a Python built from source, as in the python images
    own = usr / "local" / "lib" / "python3.11" / "site-packages"
    own.mkdir()
    assert look(usr / "bin" / "python3").site_dirs == (str(local), str(shared))
    assert look(usr / "local" / "bin" / "python3").site_dirs == (str(own),)


def test_fedora_layout_puts_lib64_first(tmp_path: Path) -> None:
    make_prefix(tmp_path / "usr", library="lib64")
    for library in ("lib", "lib64"):
        (tmp_path / "usr" / library / "python3.11" / "site-packages").mkdir(parents=True)
    names = [Path(d).parent.parent.name for d in look(tmp_path / "usr").site_dirs]
    assert names == ["lib64", "lib"]


def test_import_lines_of_pth_files_are_noted_and_never_run(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    (site / "hook.pth").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})\n")
    (site / "distutils-precedence.pth").write_text("import os\n")
    (site / "binary.pth").write_bytes(b"\xff\xfe\0\0" * 100)
    found = look(tmp_path / "env")
    assert not (tmp_path / "ran").exists()
    assert found.notes == (
        f"{site}/hook.pth: its import line was not executed, what it adds is unknown",
    )


def test_variables_that_matter_are_kept_and_no_others(tmp_path: Path) -> None:
    make_prefix(tmp_path / "base")
    found = look(tmp_path / "base", LD_LIBRARY_PATH="/opt/cuda/lib64", LD_PRELOAD="", SECRET="x")
    assert dict(found.variables) == {"LD_LIBRARY_PATH": "/opt/cuda/lib64", "LD_PRELOAD": ""}


# ---- cost


def test_detection_needs_no_import_machinery_and_little_time(tmp_path: Path) -> None:
    """Nothing heavy is imported, and a torch costs no more than its small files."""
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    torch = make_torch(site)
    with open(torch / "lib" / "libtorch_cuda.so", "wb") as big:
        big.truncate(5 << 30)  # sparse: reading it would take seconds
    code = (
        "import sys, time\n"
        "from fa_forensics.facts.environment import find_environment\n"
        "times = []\n"
        "for _ in range(5):\n"
        "    start = time.perf_counter()\n"
        f"    found = find_environment({str(tmp_path / 'env')!r}, None, {{}})\n"
        "    times.append(time.perf_counter() - start)\n"
        "heavy = {'pathlib', 'subprocess', 'zipfile', 'importlib.metadata', 'ctypes', 'tempfile',\n"
        "         'elftools', 'lief', 'torch'} & set(sys.modules)\n"
        "print(found.torch.version, sorted(heavy), min(times) < 0.05)\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], check=False, capture_output=True, text=True,
        timeout=60, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2.4.0+cu121 [] True\n", "")
