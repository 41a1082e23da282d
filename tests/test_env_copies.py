"""``env`` where sys.path holds several copies: the one that is imported is inspected."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.packages import environment, extension, flash_attn, install, python_of
from test_env import codes, line, look, packages
from test_schema import VALIDATOR

import fa_forensics
from fa_forensics.facts.extension_use import BY_CUDA, ON_DEMAND, other_build, why_unused
from fa_forensics.facts.package import normalized
from fa_forensics.render.env import env_text
from fa_forensics.render.env_markdown import env_markdown
from fa_forensics.render.json import dumps
from fa_forensics.render.json_env import env_document
from fa_forensics.report_env import NOTE, OK
from fa_forensics.rules.public_version import same_public


@pytest.fixture
def site(tmp_path: Path) -> Path:
    packages_dir = environment(tmp_path)
    flash_attn(packages_dir)
    return packages_dir


def checkout(place: Path, library: bool = True) -> Path:
    """A source tree of flash-attn, its library built in place or not."""
    (place / "flash_attn").mkdir(parents=True)
    (place / "flash_attn/__init__.py").write_text("__version__ = '2.7.4'\n")
    if library:
        (place / "flash_attn_2_cuda.so").write_bytes(extension())
    return place


def inspected(report: object) -> list[str]:
    lines = [e for e in report.lines if e.layer == "artefact"]  # type: ignore[attr-defined]
    return [str(e.facts["path"]) for e in lines]


def test_of_two_copies_the_imported_one_is_inspected(site: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "source")
    assert inspected(look(site)) == [str(site / "flash_attn_2_cuda.so")]
    report = look(site, PYTHONPATH=str(source))
    assert inspected(report) == [str(source / "flash_attn_2_cuda.so")]
    assert codes(report) == {"FA805"}


def test_a_source_tree_without_a_library_leaves_the_installed_one(
    site: Path, tmp_path: Path
) -> None:
    source = checkout(tmp_path / "source", library=False)
    assert inspected(look(site, PYTHONPATH=str(source))) == [str(site / "flash_attn_2_cuda.so")]


def test_a_source_tree_on_pythonpath_alone_is_a_note(site: Path, tmp_path: Path) -> None:
    for name in ("flash_attn", "flash_attn-2.6.3.dist-info"):
        shutil.rmtree(site / name)
    (site / "flash_attn_2_cuda.so").unlink()
    source = checkout(tmp_path / "source")
    (source / "image").mkdir()  # also the name of a module of torchvision
    (source / "image/__init__.py").touch()
    report = look(site, PYTHONPATH=str(source))
    assert codes(report) == set()
    assert line(report, "flash_attn").state == NOTE
    assert inspected(report) == [str(source / "flash_attn_2_cuda.so")]
    assert not any(entry.subject == "image" for entry in packages(report))


def test_a_develop_install_is_followed_to_its_source(site: Path, tmp_path: Path) -> None:
    for name in ("flash_attn", "flash_attn-2.6.3.dist-info"):
        shutil.rmtree(site / name)
    (site / "flash_attn_2_cuda.so").unlink()
    source = checkout(tmp_path / "source")
    info = source / "flash_attn.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: flash-attn\nVersion: 2.7.4\n\n")
    (info / "requires.txt").write_text("torch\n")
    (info / "top_level.txt").write_text("flash_attn\nflash_attn_2_cuda\n")
    (site / "easy-install.pth").write_text(f"{source}\n")
    report = look(site)
    assert codes(report) == set()
    ours = line(report, "flash-attn")
    assert ours.state == NOTE and "without a RECORD" in ours.text
    assert ours.facts["origin"] == str(site / "easy-install.pth")
    assert inspected(report) == [str(source / "flash_attn_2_cuda.so")]


def test_an_archive_on_the_path_is_not_passed_over_in_silence(site: Path, tmp_path: Path) -> None:
    egg = tmp_path / "flash_attn-2.5-py3.11.egg"
    with zipfile.ZipFile(egg, "w") as archive:
        archive.writestr("flash_attn/__init__.py", "")
    (site / "easy-install.pth").write_text(f"{egg}\n")
    assert any(f"{egg} is an archive" in entry.text for entry in packages(look(site)))


def test_a_half_installed_torch_is_told_of_torch(site: Path) -> None:
    (site / "torch/lib/libc10_cuda.so").unlink()
    report = look(site)
    finding = line(report, "torch").finding
    assert finding is not None and finding.code == "FA801" and finding.severity == "error"


def test_a_second_torch_that_wins_is_told(site: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shutil.copytree(site / "torch", tmp_path / "other/torch")
    report = look(site, PYTHONPATH=str(tmp_path / "other"))
    finding = line(report, "torch").finding
    assert finding is not None and finding.code == "FA805"
    assert finding.evidence[0].file == str(tmp_path / "other/torch")


def test_two_distributions_of_one_top_level_name_are_no_leftover(site: Path) -> None:
    install(site, "flash-attn-extras", "1", {"flash_attn/extras.py": b""})
    assert codes(look(site)) == set()


def test_a_namespace_in_two_directories_is_no_shadow(site: Path, tmp_path: Path) -> None:
    install(site, "ns-one", "1", {"ns/one/_C.so": extension()}, ("torch",))
    (tmp_path / "more/ns").mkdir(parents=True)
    report = look(site, PYTHONPATH=str(tmp_path / "more"))
    assert codes(report) == set() and line(report, "ns-one").state == OK


def test_a_real_editable_install_is_read_as_setuptools_writes_it(tmp_path: Path) -> None:
    if importlib.util.find_spec("setuptools") is None:  # importing it here meddles with distutils
        pytest.skip("no setuptools here")
    source = tmp_path / "source"
    (source / "kern").mkdir(parents=True)
    (source / "kern/__init__.py").write_text("__version__ = '1'\n")
    (source / "kern/_C.so").write_bytes(extension())
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "kern"\nversion = "1"\ndependencies = ["torch"]\n'
        '[tool.setuptools]\npackages = ["kern"]\n'
    )
    site = environment(tmp_path)
    python = os.environ.get("FA_FORENSICS_REAL_PYTHON") or sys.executable
    done = subprocess.run(
        [python, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet",
         "--no-build-isolation", "--target", str(tmp_path / "built"), "-e", str(source)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"pip cannot make an editable install here: {done.stderr[-200:]}")
    for entry in (tmp_path / "built").iterdir():
        shutil.move(str(entry), site / entry.name)
    report = look(site)
    ours = line(report, "kern")
    assert ours.state == OK and ours.facts["editable"] is True
    assert inspected(report) == [str(source / "kern/_C.so")]
    assert codes(report) == set()
    shutil.rmtree(source)
    assert codes(look(site)) == {"FA815"}


#: Of PEP 440's own table of spellings.
SAME = [
    ("2.6.3", "2.6.3+cu122torch2.3cxx11abiFALSE"), ("1.0", "1.0.0"), ("1.0-RC.1", "1.0rc1"),
    ("v1.0", "1.0"), ("1.0a", "1.0a0"),
    ("1.0.dev", "1.0.dev0"), ("0.0.27.post2", "0.0.27-post2"), ("1.0beta2", "1.0b2"),
    ("1.0-1", "1.0.post1"), ("1.0post", "1.0.post0"), ("1.0rev3", "1.0-r3"),
]  # fmt: skip
OTHER = [("2.6.3", "2.6.3.post1"), ("2.6", "2.60"), ("1.0rc1", "1.0"), ("1!1.0", "1.0"),
         ("1.10", "1.1"), ("unknown", "1.0")]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME + OTHER)
def test_versions_are_compared_as_packaging_compares_them(one: str, other: str) -> None:
    version = pytest.importorskip("packaging.version")
    expected = (one, other) in SAME
    if one != "unknown":
        public = [version.Version(version.Version(text).public) for text in (one, other)]
        assert (public[0] == public[1]) == expected
    assert same_public(one, other) == same_public(other, one) == expected


BUILDS = [f"/s/b/libbitsandbytes_cuda{n}.so" for n in ("118", "121", "126", "130")]


@pytest.mark.parametrize(
    ("build", "cuda", "used"),
    [("121", "12.1", True), ("118", "12.1", False), ("126", "12.8", True), ("121", "12.8", False),
     ("121", "12.0", True), ("130", "13.2", True), ("118", "11.7", True)],
)  # fmt: skip
def test_of_builds_for_several_cuda_versions_the_nearest_counts(
    build: str, cuda: str, used: bool
) -> None:
    path = f"/s/b/libbitsandbytes_cuda{build}.so"
    assert (why_unused("bitsandbytes", path, BUILDS, cuda, {}) is None) == used


def test_no_build_for_cuda_counts_under_a_torch_without_it() -> None:
    assert "no CUDA" in (why_unused("bitsandbytes", BUILDS[0], BUILDS, None, {}) or "")
    assert why_unused("bitsandbytes", BUILDS[0], BUILDS, "14.0", {}) is None
    override = {"BNB_CUDA_VERSION": "118"}
    assert why_unused("bitsandbytes", BUILDS[0], BUILDS, "12.1", override) is None
    assert why_unused("other", BUILDS[0], BUILDS, "12.1", {}) is None


def test_builds_of_one_library_are_known_by_their_names() -> None:
    four, six = "/s/torchcodec/libtorchcodec_core4.so", "/s/torchcodec/libtorchcodec_core6.so"
    assert other_build(four, [six]) == os.path.basename(six)
    assert other_build(four, [four]) is None
    assert other_build(four, ["/other/libtorchcodec_core6.so"]) is None
    assert other_build("/s/flash_attn_2_cuda.so", ["/s/flash_attn_3_cuda.so"]) is None


def test_a_broken_interpreter_is_wrong_usage_and_no_crash(tmp_path: Path) -> None:
    from fa_forensics.env import inspect_environment
    from fa_forensics.errors import EnvironmentNotFound

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/nowhere/python3.11")
    with pytest.raises(EnvironmentNotFound):
        inspect_environment(str(tmp_path), {})


def test_the_interpreter_is_quoted_in_commands(tmp_path: Path) -> None:
    packages_dir = environment(tmp_path / "with space")
    flash_attn(packages_dir)
    (packages_dir / "flash_attn/bert.py").unlink()
    finding = line(look(packages_dir), "flash-attn").finding
    assert finding is not None and f"'{python_of(packages_dir)}'" in finding.help[0]


def test_markdown_has_a_table_for_each_layer_and_nothing_in_it_is_markup(site: Path) -> None:
    (site / "flash_attn/bert.py").unlink()
    install(site, "xformers", "1|<b>\x1b", {"xformers/__init__.py": b""})
    text = env_markdown(look(site))
    assert "### Python packages" in text and "### library copies" in text
    assert "- `flash_attn/bert.py`: is not there" in text
    assert "\x1b" not in text
    assert all("<b>" not in row for row in text.splitlines() if "`" not in row)
    rows = [row for row in text.splitlines() if row.startswith("| wrong")]
    assert rows and all(row.replace("\\|", "").count("|") == 4 for row in rows)


def test_the_table_of_uses_names_known_uses_and_where_they_were_read() -> None:
    path = Path(fa_forensics.__file__).parent / "data" / "extension_use.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    assert table["source"] and table["date"]
    for row in table["packages"]:
        assert row["use"] in (BY_CUDA, ON_DEMAND) and row["why"] and row["read"]
        assert row["distribution"] == normalized(row["distribution"])


def test_hostile_metadata_ends_neither_the_run_nor_the_report(site: Path) -> None:
    for at, name in enumerate(("METADATA", "RECORD", "WHEEL", "INSTALLER", "direct_url.json")):
        info = install(site, f"pipe{at}", "1", {f"pipe{at}.py": b""})
        (info / name).unlink(missing_ok=True)
        os.mkfifo(info / name)
    os.mkfifo(site / "odd-1.dist-info")
    (site / "loop-1.dist-info").symlink_to("loop-1.dist-info")
    (site / "flash_attn/self").symlink_to(site / "flash_attn")
    (site / "new\nline-1.dist-info").mkdir()
    (site / "deep.pth").write_text(f"{site}/deep\n" + "../" * 4000 + "\n\udcff\n", "utf-8",
                                   "surrogateescape")  # fmt: skip
    url = {"url": ["no", "text"], "dir_info": {"editable": True}}
    install(
        site, "xformers", "1" * 200, {"xformers/__init__.py": b"__version__ = 1e999\n"}, url=url
    )
    install(site, "vllm", "", {"vllm/__init__.py": b"\xff\xfe"}, tags=("a-b", "cp-x-y-z", "-" * 99))
    report = look(site)
    assert line(report, "flash-attn").state == OK
    assert {"FA809"} <= codes(report)
    VALIDATOR.validate(json.loads(dumps(env_document(report))))
    assert "\n line" not in env_text(report, False, True, 100)
