"""``env`` over environments with one thing wrong each: it is told, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.inspecting import run
from support.packages import environment, extension, flash_attn, install, python_of
from test_schema import VALIDATOR
from trees import make_distribution, shared_object

from fa_forensics.env import inspect_environment
from fa_forensics.render.env import env_text
from fa_forensics.render.json import dumps
from fa_forensics.render.json_env import env_document
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, PACKAGE, WRONG, EnvReport, Line


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The packages of an environment with torch and flash-attn, all well."""
    packages = environment(tmp_path)
    flash_attn(packages)
    return packages


def look(site: Path, **variables: str) -> EnvReport:
    home = str(site.parent.parent.parent / "home")
    return inspect_environment(python_of(site), {"HOME": home, **variables})


def packages(report: EnvReport) -> list[Line]:
    return [line for line in report.lines if line.layer == PACKAGE]


def codes(report: EnvReport) -> set[str]:
    return {line.finding.code for line in packages(report) if line.finding is not None}


def line(report: EnvReport, subject: str) -> Line:
    return next(line for line in report.lines if line.subject == subject)


def test_a_sound_environment_has_nothing_wrong(site: Path) -> None:
    report = look(site)
    assert codes(report) == set()
    assert {entry.state for entry in packages(report)} == {OK}
    ours = line(report, "flash-attn")
    assert ours.text.startswith("2.6.3 by pip, ") and "6 files as installed" in ours.text
    assert ours.facts["source_version"] == "2.6.3" and ours.facts["installer"] == "pip"
    assert line(report, "flash_attn_2_cuda.so").layer == "artefact"
    VALIDATOR.validate(json.loads(dumps(env_document(report))))


Damage = Callable[[Path], object]


def _two_metadata(site: Path) -> None:
    make_distribution(site, "flash-attn", "2.5.8", [])


def _other_source(site: Path) -> None:
    shutil.rmtree(site / "flash_attn-2.6.3.dist-info")
    flash_attn(site, "2.6.3", "2.7.0")


def _other_tags(site: Path) -> None:
    flash_attn(site, tags=("cp310-cp310-linux_x86_64",))


def _no_extension(site: Path) -> None:
    shutil.rmtree(site / "flash_attn-2.6.3.dist-info")
    (site / "flash_attn_2_cuda.so").unlink()
    source = (site / "flash_attn/__init__.py").read_bytes()
    install(site, "flash-attn", "2.6.3", {"flash_attn/__init__.py": source}, ("torch",))
    (site / "flash_attn/bert.py").unlink()


def _gone_source(site: Path) -> None:
    shutil.rmtree(site / "flash_attn")
    (site / "flash_attn_2_cuda.so").unlink()
    shutil.rmtree(site / "flash_attn-2.6.3.dist-info")
    (site / "__editable___flash_attn_finder.py").write_text(
        "MAPPING: dict[str, str] = {'flash_attn': '/nowhere/flash_attn'}\n"
    )
    url = {"url": "file:///nowhere", "dir_info": {"editable": True}}
    install(site, "flash-attn", "2.6.3", {}, ("torch",), url=url)


def _nobodys(site: Path) -> None:
    (site / "fa3_fwd").mkdir()
    (site / "fa3_fwd/__init__.py").touch()


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a file is gone": (lambda s: (s / "flash_attn/bert.py").unlink(), {"FA801"}),
    "the library is gone": (
        lambda s: (s / "flash_attn_2_cuda.so").unlink(), {"FA801"}
    ),
    "no library was built": (_no_extension, {"FA802"}),
    "a source was edited": (
        lambda s: (s / "flash_attn/bert.py").write_text("x = 2\n"), {"FA803"}
    ),
    "the library was exchanged": (
        lambda s: (s / "flash_attn_2_cuda.so").write_bytes(extension() + b"\0"), {"FA803"}
    ),
    "a file of another version": (
        lambda s: (s / "flash_attn/_C.cpython-39-x86_64-linux-gnu.so").write_bytes(b""), {"FA804"}
    ),
    "an uninstall that did not end": (lambda s: (s / "~lash_attn").mkdir(), {"FA804"}),
    "metadata of such an uninstall": (lambda s: (s / "~l-1.dist-info").mkdir(), {"FA804"}),
    "a module of another Python": (
        lambda s: (s / "flash_attn_2_cuda.cpython-39-x86_64-linux-gnu.so").write_bytes(b""),
        {"FA804"},
    ),
    "two metadata directories": (_two_metadata, {"FA806"}),
    "another version in the source": (_other_source, {"FA807"}),
    "a wheel for another Python": (_other_tags, {"FA808"}),
    "empty metadata": (lambda s: (s / "x-1.dist-info").mkdir(), {"FA809"}),
    "metadata that is a dead link": (
        lambda s: (s / "x-1.egg-info").symlink_to("nowhere"), {"FA809"}
    ),
    "an editable install without its source": (_gone_source, {"FA815"}),
    "a package that nobody owns": (_nobodys, {"FA816"}),
    "a library that nobody owns": (
        lambda s: (s / "awq_ext.so").write_bytes(extension()), {"FA816"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_one_thing_wrong_is_one_code(site: Path, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(site)
    report = look(site)
    assert codes(report) == expected
    found = [e for e in packages(report) if e.finding is not None]
    assert all(e.finding is not None and e.finding.evidence for e in found)
    assert all(
        entry.state == (COULD_NOT_LOOK if entry.finding.code == "FA809" else WRONG)
        for entry in found
        if entry.finding is not None
    )
    VALIDATOR.validate(json.loads(dumps(env_document(report))))
    text = env_text(report, False, False, 100)
    assert all(f"[{code}]" in text for code in expected)


def test_a_copy_on_pythonpath_wins_and_is_named(site: Path, tmp_path: Path) -> None:
    source = tmp_path / "checkout"
    (source / "flash_attn").mkdir(parents=True)
    (source / "flash_attn/__init__.py").write_text("__version__ = '2.7.4'\n")
    report = look(site, PYTHONPATH=str(source))
    finding = line(report, "flash-attn").finding
    assert codes(report) == {"FA805"} and finding is not None
    assert finding.evidence[0].file == str(source / "flash_attn")
    assert "pip shows 2.6.3, `import` gives 2.7.4." in finding.notes
    assert finding.help == ("unset PYTHONPATH",)


def test_the_users_own_packages_win_over_the_systems(tmp_path: Path) -> None:
    packages_dir = environment(tmp_path)
    system = tmp_path / "base/lib/python3.11/site-packages"
    shutil.move(packages_dir / "torch", system / "torch")
    user = tmp_path / "home/.local/lib/python3.11/site-packages"
    for place, version in ((system, "2.6.3"), (user, "2.5.8")):
        flash_attn(place, version)
    report = inspect_environment(
        str(tmp_path / "base/bin/python"), {"HOME": str(tmp_path / "home")}
    )
    finding = line(report, "flash-attn").finding
    assert finding is not None and finding.code == "FA805"
    assert str(user) in finding.title and finding.help == ("export PYTHONNOUSERSITE=1",)
    calm = inspect_environment(
        str(tmp_path / "base/bin/python"),
        {"HOME": str(tmp_path / "home"), "PYTHONNOUSERSITE": "1"},
    )
    assert codes(calm) == set()


def test_a_source_tree_in_the_current_directory_is_warned_of(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here/flash_attn").mkdir(parents=True)
    (tmp_path / "here/flash_attn/__init__.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    assert codes(look(site)) == {"FA811"}
    monkeypatch.chdir(site)  # the installed one itself
    assert codes(look(site)) == set()


def test_conda_beside_pip_is_seen_by_condas_own_records(site: Path) -> None:
    meta = site.parent.parent.parent / "conda-meta"
    meta.mkdir()
    (meta / "flash-attn-2.5.6-py311h_0.json").write_text("{}")
    finding = line(look(site), "flash-attn").finding
    assert finding is not None and finding.code == "FA810"
    flash_attn(site, installer="conda")
    assert codes(look(site)) == set()


def test_a_package_of_conda_is_not_held_to_a_record_that_conda_makes_untrue(site: Path) -> None:
    flash_attn(site, installer="conda")
    (site / "flash_attn_2_cuda.so").write_bytes(extension() + b"\0")
    report = look(site)
    assert codes(report) == set()
    ours = line(report, "flash-attn")
    assert ours.state == NOTE and "packaged by conda, which changes files" in ours.text


def test_metadata_that_may_not_be_read_is_one_line_and_the_rest_is_reported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    barred, whole = str(site), os.listdir

    def listdir(path: str) -> list[str]:
        if path == str(site / "p"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    (site / "p").mkdir()
    monkeypatch.setattr(os, "listdir", listdir)
    report = look(site, PYTHONPATH=str(site / "p"))
    (told,) = [entry for entry in packages(report) if entry.state == COULD_NOT_LOOK]
    assert told.text == f"{barred}/p cannot be listed: Permission denied"
    assert line(report, "flash-attn").state == OK


def test_a_directory_that_a_pth_file_names_in_vain_is_no_reason_to_stop(site: Path) -> None:
    (site / "easy-install.pth").write_text("/nowhere/flash-attention\n")
    assert codes(look(site)) == set()


def test_an_import_line_in_a_pth_file_is_not_run_and_said_so(site: Path, tmp_path: Path) -> None:
    (site / "odd.pth").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})\n")
    report = look(site)
    assert not (tmp_path / "ran").exists()
    assert any("odd.pth: its import line was not executed" in e.text for e in packages(report))


def test_a_jit_build_for_another_torch_and_a_lock_are_told(site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache/torch_extensions/py311_cu124"
    for name in ("good", "stale", "locked"):
        (cache / name).mkdir(parents=True)
    (cache / "good/good.so").write_bytes(extension())
    (cache / "stale/stale.so").write_bytes(shared_object(needs=("_ZN3c104GoneEv",)))
    (cache / "locked/lock").touch()
    os.utime(cache / "locked/lock", (1, 1))
    report = look(site, XDG_CACHE_HOME=str(tmp_path / "cache"))
    found = {e.subject: e.finding.code for e in packages(report) if e.finding is not None}
    assert found == {"stale": "FA812", "locked": "FA813"}
    assert line(report, "torch_extensions").text.startswith("3 builds of torch's JIT cache")
    (cache / "locked/lock").unlink()
    (cache / "locked/lock").touch()
    report = look(site, TORCH_EXTENSIONS_DIR=str(cache))
    assert line(report, "locked").state == NOTE


def test_a_wheel_that_pip_built_before_this_torch_came_is_told(site: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache/pip/wheels/aa/bb/cc/dddd"
    place.mkdir(parents=True)
    wheel = place / "flash_attn-2.6.3-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"")
    (place / "numpy-1-cp311-cp311-linux_x86_64.whl").write_bytes(b"")
    os.utime(wheel, (1_000_000_000, 1_000_000_000))
    report = look(site, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert codes(report) == {"FA814"}
    assert "2001-09-09" in env_text(report, False, True, 100)
    os.utime(wheel)
    os.utime(site / "torch/version.py", (1_000_000_000, 1_000_000_000))
    report = look(site, PIP_CACHE_DIR=str(tmp_path / "cache/pip"))
    assert codes(report) == set() and line(report, "flash_attn").state == NOTE


def test_an_environment_of_another_machine_is_one_line_for_each_file(site: Path) -> None:
    python = Path(os.path.realpath(python_of(site)))
    data = bytearray(python.read_bytes())
    data[18] = 183  # e_machine: aarch64
    python.write_bytes(bytes(data))
    report = look(site)
    (told,) = [e for e in report.lines if e.layer == "artefact"]
    assert told.state == WRONG and told.finding is not None
    assert "aarch64" in told.finding.title
    assert line(report, "flash-attn").state == OK


def test_neither_torch_nor_flash_attn_is_ever_imported(site: Path, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    for name in ("torch", "flash_attn"):
        (planted / name).mkdir(parents=True)
        (planted / name / "__init__.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\nraise SystemExit(99)\n"
        )
    path = f"{Path(__file__).parent.parent}{os.pathsep}{planted}"
    for options in ((), ("--format", "json"), ("-v", "--hashes")):
        done = run("env", "--python", python_of(site), *options,
                   environment={"PYTHONPATH": path})  # fmt: skip
        assert done.code == 1  # the planted packages shadow the installed ones
        assert "flash-attn" in done.stdout and "Traceback" not in done.stderr
    assert not (tmp_path / "imported").exists()


def test_the_exit_code_follows_the_findings(site: Path) -> None:
    python, clean = python_of(site), {"PYTHONPATH": str(Path(__file__).parent.parent)}
    sound = run("env", "--python", python, environment=clean)
    assert sound.code in (0, 4)  # 4 where this machine's own libraries could not be looked at
    (site / "flash_attn/bert.py").write_text("x = 2\n")
    assert run("env", "--python", python, "--fail-on", "warning", environment=clean).code == 1
    (site / "flash_attn/bert.py").unlink()
    assert run("env", "--python", python, environment=clean).code == 1
    assert run("env", "--python", python, "--fail-on", "never", environment=clean).code != 1
    lost = run("env", "--python", "/nowhere", "--format", "json", environment=clean)
    assert lost.code == 2 and lost.document["lines"] == []


def test_text_of_hostile_metadata_cannot_move_the_cursor(site: Path) -> None:
    install(site, "xformers", "1\x1b[2J", {"xformers/__init__.py": b"__version__='\x1b[2J'\n"})
    assert "\x1b" not in env_text(look(site), False, True, 100)


def test_this_very_environment_is_read_without_an_error() -> None:
    report = inspect_environment(sys.executable, {})
    VALIDATOR.validate(json.loads(dumps(env_document(report))))
