"""``env`` on packages that pip did not simply unpack: editable, legacy and record-less installs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.packages import environment, extension, flash_attn, install
from test_env import codes, line, look, packages

from fa_forensics.report_env import ARTEFACT, NOTE, OK, EnvReport


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
