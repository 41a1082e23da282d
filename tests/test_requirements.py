"""Requirements of metadata held against what is installed: as ``pip check`` does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.packages import environment, install
from test_env import codes, line, look

from fa_forensics.facts.requirements import unmet_requirements

HAVE = {"numpy": "2.4.6", "triton": "3.0.0", "nvidia-nccl-cu12": "2.20.5", "odd": "2024a"}


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("numpy", True),
        ("numpy>=2", True),
        ("NumPy (>=1.0,<2)", False),
        ("pillow!=8.3.*,>=5.3.0", False),
        ('triton==3.0.0; platform_system == "Linux" and python_version < "3.13"', True),
        ('triton==3.1.0; platform_system == "Linux" and python_version < "3.13"', False),
        ('triton==3.1.0; platform_system == "Linux" and python_version < "3.10"', True),
        ('triton==3.1.0 ; sys_platform == "win32"', True),
        ('nvidia-nccl-cu12==2.21.5; platform_machine == "x86_64"', False),
        ('nvidia-nccl-cu12==2.21.5; platform_machine == "aarch64"', True),
        ('opt-einsum>=3.3; extra == "opt-einsum"', True),
        ("torch==1.0", True),  # its symbols decide
        ("odd>=1.0", True),  # no plain release: not judged
        ("numpy @ https://host/numpy.whl", True),
        ("", True),
        ("numpy" + "(" * 5000, True),
    ],
)
def test_a_requirement_is_met_or_not(requirement: str, met: bool) -> None:
    assert (unmet_requirements([requirement], HAVE, "x86_64", "3.11") == ()) == met


def test_a_library_of_another_version_than_torchs_pin_is_told(tmp_path: Path) -> None:
    site = environment(tmp_path)
    install(site, "torch", "2.6.0", {}, ("nvidia-nccl-cu12==2.21.5",))
    (site / "torch-2.6.0.dist-info/RECORD").unlink()
    install(site, "nvidia-nccl-cu12", "2.20.5", {})
    report = look(site)
    assert codes(report) == {"FA817"}
    found = next(e.finding for e in report.lines if e.finding and e.finding.code == "FA817")
    assert "asks for nvidia-nccl-cu12==2.21.5, 2.20.5 is installed" in found.title
    assert found.help[0].endswith("-m pip install nvidia-nccl-cu12==2.21.5")
    assert line(report, "torch").layer == "package"
