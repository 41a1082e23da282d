"""The builder of the table of wheels: workflows are read as their CI reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import flash_wheels
from benchmarks.flash_wheels import UnknownForm, combinations, main, wheels_of

#: The forms of the upstream workflows: lists, comments, exclusions, two ways to name CUDA.
OLD = """
jobs:
  setup_release:
    steps:
      - name: Get the tag version
        run: echo nothing
  build_wheels:
    strategy:
      fail-fast: false
      matrix:
          # Using ubuntu-20.04 for more compatibility.
          os: [ubuntu-20.04]
          python-version: ['3.7', '3.8', '3.11']
          torch-version: ['1.12.1', '2.1.0.dev20230731']
          cuda-version: ['11.6.2', '12.1.0']

          # We need separate wheels.
          cxx11_abi: ['FALSE', 'TRUE']
          exclude:
            # Pytorch <= 1.12 does not support Python 3.11
            - torch-version: '1.12.1'
              python-version: '3.11'
            - torch-version: '2.1.0.dev20230731'
              python-version: '3.7'
            - torch-version: '1.12.1'
              cuda-version: '12.1.0'
            - torch-version: '2.1.0.dev20230731'
              cuda-version: '11.6.2'

    steps:
      - name: Set versions
        run: |
          echo "MATRIX_CUDA_VERSION=$(echo ${{ matrix.cuda-version }} | awk -F \\. {'print $1 $2'})"
          tmpname=cu${MATRIX_CUDA_VERSION}torch${MATRIX_TORCH_VERSION}cxx11abi${{ X }}
"""
NEW = """
    strategy:
      matrix:
        os: [ubuntu-22.04, ubuntu-22.04-arm]
        python-version: ["3.12"]
        torch-version: ["2.8.0"]
        cuda-version: ["12.9.1"]
        cxx11_abi: ["FALSE", "TRUE"]
    uses: ./.github/workflows/_build.yml
"""
TEMPLATE = """
          echo "MATRIX_CUDA_VERSION=$(echo ${{ V }} | awk -F \\. {'print $1 $2'})"
          echo "WHEEL_CUDA_VERSION=$(echo ${{ V }} | awk -F \\. {'print $1'})"
            tmpname=cu${WHEEL_CUDA_VERSION}torch${MATRIX_TORCH_VERSION}cxx11abi${{ X }}
"""


def test_a_matrix_is_all_combinations_less_its_exclusions() -> None:
    jobs = combinations(OLD)
    assert len(jobs) == 2 * (2 + 2)  # two flavours of (1.12.1: 3.7, 3.8; 2.1: 3.8, 3.11)
    assert {(j["torch-version"], j["cuda-version"]) for j in jobs} == {
        ("1.12.1", "11.6.2"), ("2.1.0.dev20230731", "12.1.0"),
    }  # fmt: skip


def test_rows_carry_the_tags_of_the_files_names() -> None:
    assert wheels_of(OLD, "") == [
        {"torch": "1.12.1", "cuda": {"cu116": "11.6.2"}, "python": ["3.7", "3.8"],
         "platform": "linux_x86_64"},
        {"torch": "2.1.0.dev20230731", "cuda": {"cu121": "12.1.0"}, "python": ["3.8", "3.11"],
         "platform": "linux_x86_64"},
    ]  # fmt: skip


def test_newer_workflows_name_the_major_version_and_two_platforms() -> None:
    rows = wheels_of(NEW, TEMPLATE)
    assert [(row["cuda"], row["platform"]) for row in rows] == [
        ({"cu12": "12.9.1"}, "linux_x86_64"), ({"cu12": "12.9.1"}, "linux_aarch64"),
    ]  # fmt: skip


def test_a_release_without_a_matrix_has_no_wheels() -> None:
    assert wheels_of("", "") == []
    assert wheels_of("jobs:\n  publish:\n    runs-on: ubuntu-latest\n", "") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "python-version: ['3.7', '3.8', '3.11']",
            "python-version: ${{ fromJSON(inputs.pythons) }}",
        ),
        ("          exclude:\n", "          include:\n"),
        ("os: [ubuntu-20.04]", "os: [windows-2022]"),
        ("cxx11_abi: ['FALSE', 'TRUE']", "cxx11_abi: ['TRUE']"),
        ("tmpname=cu${MATRIX_CUDA_VERSION}torch", "tmpname=torch"),
    ],
)
def test_a_form_that_is_not_known_is_an_error_and_no_guess(old: str, new: str) -> None:
    assert old in OLD
    with pytest.raises(UnknownForm):
        wheels_of(OLD.replace(old, new), "")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with three tagged releases and a tag that is none."""
    if shutil.which("git") is None:
        pytest.skip("no git on PATH")
    repository = tmp_path / "flash-attention"
    workflows = repository / ".github" / "workflows"
    workflows.mkdir(parents=True)
    day = "2024-01-02T00:00:00Z"
    environ = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day, "PATH": "/usr/bin:/bin",
               "HOME": str(tmp_path)}  # fmt: skip

    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *names, *arguments], cwd=repository, env=environ, check=True,
                       capture_output=True)  # fmt: skip

    git("init")
    for tag, publish, build in (("v2.0.5", "", ""), ("v2.0.6", OLD, ""), ("v2.8.0", NEW, TEMPLATE)):
        (workflows / "publish.yml").write_text(publish)
        (workflows / "_build.yml").write_text(build)
        git("add", ".")
        git("commit", "--allow-empty", "-m", tag)
        git("tag", tag)
    git("tag", "fa4-v4.0.0.beta1")
    return repository


def test_the_table_is_renewed_from_a_checkout(
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"source": "kept", "matrices": [], "releases": {}}))
    monkeypatch.setattr(flash_wheels, "TABLE", str(table))
    assert main([str(checkout), "--check"]) == 1
    assert "stale: 2.0.5, 2.0.6, 2.8.0" in capsys.readouterr().out
    assert main([str(checkout)]) == 0
    made = json.loads(table.read_text())
    assert made["source"] == "kept"
    assert made["releases"] == {
        "2.0.5": ["2024-01-02", None], "2.0.6": ["2024-01-02", 0], "2.8.0": ["2024-01-02", 1],
    }  # fmt: skip
    assert made["matrices"][0] == wheels_of(OLD, "")
    assert main([str(checkout), "--check"]) == 0


def test_the_shipped_table_is_written_as_the_builder_writes_it() -> None:
    text = Path(flash_wheels.TABLE).read_text(encoding="utf-8")
    assert flash_wheels.written(json.loads(text)) == text
