"""``env`` on packages that pip did not simply unpack: editable, legacy and record-less installs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.packages import environment, extension, flash_attn, install
from test_env import codes, line, look, packages
from trees import shared_object

from fa_forensics.facts.package_state import PackageState
from fa_forensics.facts.record import RecordCheck
from fa_forensics.render.env import env_text
from fa_forensics.report_env import (
    ARTEFACT,
    COPIES,
    COULD_NOT_LOOK,
    NOTE,
    OK,
    RUNTIME,
    WRONG,
    EnvReport,
)
from fa_forensics.rules.packages import is_edited


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The packages of an environment with torch and flash-attn, all well."""
    packages_here = environment(tmp_path)
    flash_attn(packages_here)
    return packages_here


def inspected(report: EnvReport) -> list[object]:
    return [entry.facts["path"] for entry in report.lines if entry.layer == ARTEFACT]


@pytest.fixture
def source(site: Path, tmp_path: Path) -> Path:
    """flash-attn's source tree with its extension built in place; no copy in ``site``."""
    tree = tmp_path / "source"
    (tree / "flash_attn").mkdir(parents=True)
    (tree / "flash_attn/__init__.py").write_text("__version__ = '2.7.0'\n")
    (tree / "flash_attn_2_cuda.so").write_bytes(extension())
    for entry in site.glob("flash_attn*"):
        if entry.is_dir():
            for file in entry.iterdir():
                file.unlink()
            entry.rmdir()
        else:
            entry.unlink()
    return tree


def _editable(site: Path, source: Path, name: str = "flash-attn") -> None:
    url = {"url": f"file://{source}", "dir_info": {"editable": True}}
    install(site, name, "2.7.0", {}, ("torch",), url=url)


def test_the_extension_of_a_mapped_source_tree_is_inspected(site: Path, source: Path) -> None:
    library = source / "flash_attn_2_cuda.so"
    (site / "__editable___flash_attn_2_7_0_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'flash_attn': '{source}/flash_attn', "
        f"'flash_attn_2_cuda': '{library}'}}\n"
    )
    _editable(site, source)
    report = look(site)
    assert inspected(report) == [str(library)]
    ours = line(report, "flash-attn")
    assert ours.facts["location"] == str(source / "flash_attn")
    assert ours.facts["source_version"] == "2.7.0"
    assert codes(report) == set()


def test_the_extension_of_a_source_tree_on_the_path_is_inspected_as_its_package(
    site: Path, source: Path
) -> None:
    (site / "__editable__.flash_attn-2.7.0.pth").write_text(f"{source}\n")
    _editable(site, source)
    report = look(site)
    assert inspected(report) == [str(source / "flash_attn_2_cuda.so")]
    assert {entry.state for entry in packages(report)} == {OK}


def test_a_module_that_no_table_knows_is_found_in_an_editable_source_tree(
    site: Path, source: Path
) -> None:
    (source / "my_kernels.so").write_bytes(extension())
    (site / "__editable__.mine-2.7.0.pth").write_text(f"{source}\n")
    _editable(site, source, "mine")
    assert str(source / "my_kernels.so") in inspected(look(site))


def test_a_legacy_install_with_its_extension_in_place_is_not_called_empty(
    site: Path, source: Path
) -> None:
    (site / "easy-install.pth").write_text(f"{source}\n")
    info = source / "flash_attn.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: flash-attn\nVersion: 2.7.0\nRequires-Dist: torch\n")
    report = look(site)
    assert "FA802" not in codes(report)
    assert inspected(report) == [str(source / "flash_attn_2_cuda.so")]


def test_without_a_record_the_files_are_found_by_their_names(site: Path) -> None:
    (site / "flash_attn-2.6.3.dist-info/RECORD").unlink()
    report = look(site)
    assert codes(report) == set()
    assert inspected(report) == [str(site / "flash_attn_2_cuda.so")]
    assert line(report, "flash-attn").state == NOTE and "RECORD" in line(report, "flash-attn").text


def test_a_copy_that_is_never_reached_is_a_note(site: Path, tmp_path: Path) -> None:
    place = tmp_path / "old"
    (place / "flash_attn").mkdir(parents=True)
    (place / "flash_attn/__init__.py").write_text("__version__ = '2.1.0'\n")
    (site / "zzz.pth").write_text(f"{place}\n")
    found = [entry for entry in packages(look(site)) if entry.finding is not None]
    assert [(e.state, e.finding.code) for e in found if e.finding] == [(NOTE, "FA805")]
    assert all(e.finding.help == () for e in found if e.finding)


def test_a_changed_data_file_of_another_package_is_a_note(site: Path) -> None:
    install(site, "certifi", "2026.1.1", {"certifi/cacert.pem": b"x", "certifi/core.py": b""})
    (site / "certifi/cacert.pem").write_bytes(b"a company's own certificate")
    entry = line(look(site), "certifi")
    assert entry.finding is not None and entry.finding.severity == "note" and entry.state == NOTE
    (site / "certifi/core.py").write_bytes(b"import os\n")
    entry = line(look(site), "certifi")
    assert entry.finding is not None and entry.finding.severity == "warning"


def test_files_that_cannot_be_read_are_not_called_changed() -> None:
    check = RecordCheck(unreadable=(("/env/x/core.py", "Permission denied"),), sized=3)
    finding = is_edited(PackageState("x", (), (), (), check))
    assert finding is not None and finding.title.endswith("cannot be read")
    assert finding.help == ("ls -ld /env/x /env/x/core.py",)


def test_files_of_one_name_are_told_apart_by_their_packages(site: Path) -> None:
    for name in ("one", "two"):
        install(site, name, "1", {f"{name}/_C.so": extension()}, ("torch",))
    (site / "torch/lib/libc10.so").write_bytes(shared_object())
    text = env_text(look(site), False, False, 100)
    assert "--> one/_C.so\n" in text and "--> two/_C.so\n" in text


def test_a_torch_without_its_files_is_installed_by_force(site: Path) -> None:
    shutil.rmtree(site / "torch")
    found = [e.finding for e in look(site).lines if e.finding is not None]
    missing = next(finding for finding in found if finding.code == "FA820")
    # A plain install is answered with "Requirement already satisfied".
    assert missing.help[0].endswith("install --force-reinstall --no-deps torch==2.6.0")


def test_a_torch_for_another_machine_is_told_once(site: Path) -> None:
    for library in (site / "torch/lib").glob("*.so"):
        data = bytearray(library.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
        library.write_bytes(data)
    for module in (site / "torch").glob("_C*.so"):
        data = bytearray(module.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")
        module.write_bytes(data)
    lines = [e for e in look(site).lines if e.layer in (COPIES, RUNTIME)]
    said = [e for e in lines if "for aarch64" in e.text or "for another machine" in e.text]
    assert [(e.layer, e.state) for e in said] == [(RUNTIME, WRONG), (COPIES, COULD_NOT_LOOK)]
    assert not [e for e in lines if e.finding is not None and e.finding.code == "FA834"]


def test_an_error_is_shown_before_a_warning_of_an_earlier_layer(site: Path) -> None:
    (site / "torch/lib/libc10.so").write_bytes(shared_object())  # its one name is gone
    (site / "flash_attn/bert.py").write_text("x = 2\n")
    text = env_text(look(site), False, False, 100)
    assert text.index("\nerror[FA201]") < text.index("\nwarning[FA803]")
