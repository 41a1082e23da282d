"""``upgrade`` says of installed packages what real loads under the other torch did.

Oracle: recorded loads of the real wheels under several CUDA builds of torch. Here these
wheels are installed beside a stand-in for torch 2.4.0, and none of the other torches is there.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import Run, invoke, run
from support.material import husk_file, stub
from test_requested_torch import HERE as CPU_TORCH
from test_requested_torch import TRUTH, husk_of_wheel
from test_schema import VALIDATOR
from trees import shared_object

from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.render.json import dumps
from fa_forensics.render.json_releases import upgrade_document
from fa_forensics.render.upgrade import upgrade_text
from fa_forensics.report import TargetReport
from fa_forensics.report_releases import FileChange, UpgradeReport
from fa_forensics.upgrade import _with_choices, upgrade

NOW = "2.4.0+cu121"
THEN = ("2.2.2+cu121", "2.6.0+cu124", "2.9.1+cu128", "2.14.1+cu130")


def install(site: Path, name: str, version: str, requires: str, *files: Path) -> None:
    """A distribution with its metadata and files in a site directory."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Name: {name}", f"Version: {version}", "Metadata-Version: 2.1"]
    lines += [f"Requires-Dist: {requires}"] if requires else []
    (info / "METADATA").write_text("\n".join(lines) + "\n\n")
    for file in files:
        (site / file.name).symlink_to(file)
    (info / "RECORD").write_text("".join(f"{file.name},,\n" for file in files))


@cache
def recorded() -> dict[tuple[str, str], dict[str, str]]:
    """(wheel, file) → torch → what a real load gave, of the files that husks are of."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in json.loads((TRUTH / "dlopen_truth.json").read_text())["rows"]:
        if (row["wheel"], row["so"]) in husk_of_wheel():
            found.setdefault((row["wheel"], row["so"]), {})[row["torch"]] = row["result"]
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, tuple[str, str]]:
    """Site directory → the wheel and file that is installed in it, one each."""
    sites = {}
    for wheel, member in recorded():
        site = tmp_path_factory.mktemp("site")
        name, version = wheel.split("-")[:2]
        install(site, name, version, "torch", husk_file(husk_of_wheel()[wheel, member]))
        sites[site] = (wheel, member)
    return sites


def upgraded(release: str, *sites: Path, torch: str = NOW) -> UpgradeReport:
    variables = {"PYTHONPATH": os.pathsep.join(map(str, sites))}
    return upgrade(release, str(stub(torch).python), variables)


def files_of(report: UpgradeReport) -> dict[str, FileChange]:
    """Every file by the directory that it is installed in."""
    return {os.path.dirname(f.path): f for package in report.packages for f in package.files}


def test_the_recorded_loads_have_every_outcome() -> None:
    rows = list(recorded().values())
    assert len(rows) >= 20
    broken = [r for r in rows for t in THEN if t in r and r[NOW] == "OK" != r[t]]
    kept = [r for r in rows for t in THEN if r.get(t) == r[NOW] == "OK"]
    assert len(broken) >= 5 and len(kept) >= 2


@pytest.mark.parametrize("torch", THEN)
def test_what_breaks_is_what_a_real_load_refused_under_the_other_torch(
    wheels: dict[Path, tuple[str, str]], torch: str
) -> None:
    checked = 0
    for site, key in wheels.items():
        results = recorded()[key]
        if torch not in results or NOW not in results:
            continue
        report = upgraded(torch.partition("+")[0], site)
        file = files_of(report)[str(site)]
        assert report.torch.version == torch
        assert (file.now.verdict == "fails") == (results[NOW] != "OK"), key
        assert (file.then.verdict == "fails") == (results[torch] != "OK"), key
        assert file.breaks == (results[NOW] == "OK" != results[torch]), key
        if results[torch] != "OK":
            assert file.failure is not None
            assert oracles.short_text(file.failure) == oracles.short_text(results[torch])
        checked += 1
    assert checked >= 15


def test_a_break_comes_with_its_reason_and_the_command_to_get_another_build(
    tmp_path: Path,
) -> None:
    file = husk_file(_that("2.9.1+cu128"))
    install(tmp_path, "own-kernels", "1.0", "torch==2.4.0", file)
    done = command(tmp_path, "2.9.1")
    assert done.code == 1
    assert "own-kernels 1.0 would stop loading (1 of its 1 file)" in done.stdout
    assert "torch 2.9.1+cu128 does not export" in done.stdout
    assert 'pip install "torch==2.9.1" own-kernels' in done.stdout
    assert "own-kernels 1.0: torch==2.4.0" in done.stdout  # the metadata's own word


def test_nothing_that_breaks_is_told_in_a_few_lines(tmp_path: Path) -> None:
    install(tmp_path, "own-kernels", "1.0", "torch>=2.4", husk_file(_that("2.9.1+cu128")))
    done = command(tmp_path, "2.4.1")
    assert done.code == 0
    assert "none of 1 extension file of 1 package would stop loading" in done.stdout
    assert len(done.stdout.splitlines()) <= 6
    assert len(command(tmp_path, "2.4.1", "-v").stdout.splitlines()) > 6


def test_pure_python_packages_are_held_to_their_metadata_and_to_nothing_else(
    tmp_path: Path,
) -> None:
    install(tmp_path, "held", "1", "torch==2.4.0")
    install(tmp_path, "local", "1", "torch==2.4.0+cu121")
    install(tmp_path, "ranged", "1", "torch<2.9,>=2.0")
    install(tmp_path, "free", "1", "torch>=2.0")
    install(tmp_path, "never", "1", "torch==1.13.1; extra == 'old'")
    install(tmp_path, "behind", "1", "torch>=2.10")
    install(tmp_path, "elsewhere", "1", 'torch==2.2.2; sys_platform == "darwin"')
    report = upgraded("2.9.1", tmp_path)
    assert [(pin.name, pin.already) for pin in report.pins] == [
        ("behind", True), ("held", False), ("local", False), ("ranged", False),
    ]  # fmt: skip
    assert report.packages == ()
    assert command(tmp_path, "2.9.1").code == 0


def test_what_comes_with_torch_is_left_to_torch(tmp_path: Path) -> None:
    file = husk_file(_that("2.9.1+cu128"))
    install(tmp_path, "triton", "3.0.0", "", file)
    assert upgraded("2.9.1", tmp_path).packages == ()


def test_a_file_that_uses_neither_torch_nor_cuda_is_no_concern(tmp_path: Path) -> None:
    plain = tmp_path / "plain.so"
    plain.write_bytes(shared_object(needs=("png_read_info",)))
    install(tmp_path / "site", "plain", "1", "torch", plain)
    assert upgraded("2.9.1", tmp_path / "site").packages == ()


def test_a_damaged_file_is_told_and_not_passed_over(tmp_path: Path) -> None:
    cut = tmp_path / "cut.so"
    cut.write_bytes(husk_file(_that("2.9.1+cu128")).read_bytes()[:3_000])
    text = tmp_path / "text.so"
    text.write_text("not fetched")
    whole = husk_file(_that("2.9.1+cu128"))
    install(tmp_path / "site", "own-kernels", "1.0", "torch", cut, text, whole)
    files = {os.path.basename(f.path): f for f in upgraded("2.4.1", tmp_path / "site")
             .packages[0].files}  # fmt: skip
    assert set(files) == {"cut.so", "text.so", whole.name}
    assert files["text.so"].unsure and not files[whole.name].unsure
    done = command(tmp_path / "site", "2.4.1")
    assert done.code == 4
    said = " ".join(done.stdout.split())
    assert "1 could not be judged" in said
    assert "text.so was not judged: " in said


def test_an_unknown_release_is_a_wrong_usage_and_the_nearest_are_offered() -> None:
    with pytest.raises(UsageError) as refused:
        upgraded("2.9.7")
    assert refused.value.hint == "the nearest are 2.9.0, 2.9.1"


def test_a_release_newer_than_the_table_is_not_guessed_at() -> None:
    with pytest.raises(ForensicsError, match="is newer than the table of releases"):
        upgraded("9.0.0")


def test_the_installed_release_breaks_nothing(tmp_path: Path) -> None:
    install(tmp_path, "own-kernels", "1.0", "torch==2.4.0", husk_file(_that("2.9.1+cu128")))
    report = upgraded(NOW, tmp_path)
    (file,) = report.packages[0].files
    assert report.torch.judged_by == "installed"
    assert (file.now.verdict, file.breaks, report.pins) == (file.then.verdict, False, ())


def test_a_python_without_a_wheel_of_that_torch_is_told() -> None:
    report = upgraded("1.13.1", torch=CPU_TORCH)
    version = report.environment["python_version"]
    short = ".".join(str(version).split(".")[:2])
    known = [note for note in report.notes if f"not published for Python {short}" in note]
    assert bool(known) == (short not in ("3.7", "3.8", "3.9", "3.10", "3.11"))


def test_the_document_is_legal_and_says_the_same(tmp_path: Path) -> None:
    file = husk_file(_that("2.9.1+cu128"))
    install(tmp_path, "own-kernels", "1.0", "torch==2.4.0", file)
    document = json.loads(command(tmp_path, "2.9.1", "--format", "json").stdout)
    VALIDATOR.validate(document)
    (package,) = document["packages"]
    (row,) = package["files"]
    assert package["breaks"] and row["breaks"] and (row["now"] != "fails" == row["then"])
    assert row["missing"] and "2.4.0" in row["links_with"] and "2.9.1" not in row["links_with"]
    assert document["pins"][0]["requires_torch"] == "==2.4.0"
    refused = command(tmp_path, "2.9.7", "--format", "json")
    assert refused.code == 2
    VALIDATOR.validate(json.loads(refused.stdout))


def _that(breaks: str) -> str:
    """The id of a husk that loads with torch 2.4.0 and not with another one."""
    keys: list[Any] = [
        key for key, rows in recorded().items()
        if rows.get(NOW) == "OK" and "undefined symbol" in rows.get(breaks, "")
    ]  # fmt: skip
    return husk_of_wheel()[keys[0]]


def command(site: Path, release: str, *options: str) -> Run:
    return run(
        "upgrade", release, "--python", str(stub(NOW).python), *options,
        environment={"PYTHONPATH": f"{Path(__file__).parent.parent}{os.pathsep}{site}"},
    )  # fmt: skip


def test_a_build_for_another_cuda_need_not_load_where_the_package_takes_its_own() -> None:
    site = "/site/bitsandbytes"
    new, old = f"{site}/libbitsandbytes_cuda128.so", f"{site}/libbitsandbytes_cuda130.so"
    files = [
        _change(new, now="fails", then="loads"),
        _change(old, now="loads", then="fails"),
    ]
    chosen = _with_choices("bitsandbytes", files, "12.8", {})
    assert [file.replaced_by for file in chosen] == [None, os.path.basename(new)]
    assert [file.breaks for file in chosen] == [False, False]
    assert [file.replaced for file in chosen] == [False, True]
    # Where the build that is taken then does not load either, the other is missed.
    files = [_change(new, now="fails", then="fails"), files[1]]
    assert [f.breaks for f in _with_choices("bitsandbytes", files, "12.8", {})] == [False, True]
    # Of a package that nothing is known of, each file counts.
    assert [f.breaks for f in _with_choices("own", files, "12.8", {})] == [False, True]


def _change(path: str, now: str, then: str) -> FileChange:
    return FileChange(
        TargetReport(path, None, now, "as told"), TargetReport(path, None, then, "as told")
    )


def test_metadata_that_rules_the_torch_out_is_told_to_pip_together_with_that_torch(
    tmp_path: Path,
) -> None:
    file = husk_file(_that("2.9.1+cu128"))
    install(tmp_path, "own-kernels", "1.0", "torch<2.9", file)
    install(tmp_path, "other", "1.0", "torch<2.9")
    done = command(tmp_path, "2.9.1")
    assert 'pip install "torch==2.9.1" own-kernels\n' in done.stdout
    assert "--upgrade" not in done.stdout
    assert "the metadata of 2 packages does not allow torch 2.9.1:" in done.stdout


def test_metadata_that_may_not_be_read_is_told_and_nothing_is_called_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "free", "1", "torch>=2.0")
    barred = str(tmp_path / "free-1.dist-info")
    assert upgraded("2.9.1", tmp_path).unread == ()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != barred and access(path, mode))
    report = upgraded("2.9.1", tmp_path)
    assert report.unread == (barred,)
    text = " ".join(upgrade_text(report, False, False, 100).split())
    assert "may not be read here" in text
    assert "?? no extension was found that uses torch or CUDA, but 1 place could not" in text
    VALIDATOR.validate(json.loads(dumps(upgrade_document(report))))
    given = invoke_with(report, monkeypatch)
    assert given == 4


def invoke_with(report: UpgradeReport, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command for a report."""
    monkeypatch.setattr("fa_forensics.upgrade.upgrade", lambda *_: report)
    return invoke("upgrade", "2.9.1").code
