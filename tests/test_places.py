"""``inspect`` places real files among torch's releases, and its findings use it.

Oracles: the recorded sets of releases whose libraries export every name (nm), the wheels'
own metadata, the recorded exports of real torch builds.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.contexts import (
    ASKED,
    SET_DEVICE,
    Skipped,
    context,
    distribution,
    environment,
    releases,
    torch,
)
from support.inspecting import document_of, husk_under, run
from support.material import husk_file, stub

from fa_forensics.facts.owner import is_torch
from fa_forensics.judge import why_not_confirmed
from fa_forensics.placing import grouped
from fa_forensics.rules.every import ALL_RULES
from fa_forensics.rules.remedy import torch_for_the_file, wanted_build
from fa_forensics.rules.verdict import in_loader_order, static_verdict
from fixtures import husk
from fixtures.stub_torch import load_record

NGC = environment(torch=torch(version="2.4.0a0+f70bd71a48.nv24.06", release="2.4.0"))
TRUTH = Path(__file__).parent.parent / "fixtures/truth/link_truth.json"
FILE = "vllm_flash_attn-2.5.6:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
#: (husk, its wheel's own claim on torch, the releases that it links with).
LIARS = [
    ("autoawq_kernels-0.0.9", "torch >=2.5.1", ("2.4.0", "2.6.0"), "torch>=2.4.0,<=2.6.0"),
    ("autoawq_kernels-0.0.4", "torch >=1.13.0", ("2.2.0", "2.2.2"), "torch>=2.2.0,<=2.2.2"),
]


@cache
def husk_of_wheel() -> dict[tuple[str, str], str]:
    return {(h.wheel, m.path): f"{h.name}:{m.path}" for h in husk.list_husks() for m in h.members}


def rows() -> list[Any]:
    loaded = json.loads(TRUTH.read_text())
    found = [r for r in loaded["rows"] if (r["wheel"], r["so"]) in husk_of_wheel()]
    return [pytest.param(r, set(loaded["releases"]), id=f"{r['pkg']} {r['so']}") for r in found]


@pytest.mark.parametrize(("row", "recorded"), rows())
def test_links_with_is_the_recorded_list_with_or_without_a_torch(
    row: dict[str, Any], recorded: set[str]
) -> None:
    identity = husk_of_wheel()[row["wheel"], row["so"]]
    for version in ("2.4.0+cu121", "2.13.0+cpu"):
        target = husk_under(identity, version)
        assert [r for r in target["links_with"] if r in recorded] == row["links_with"]
        place = target["releases"]
        assert place["symbols"] == row["n_torch_symbols"]
        lacking = {r for group in place["missing"] for r in group["releases"]}
        assert lacking == set(place["known"]) - set(target["links_with"])
        assert set(target["built_on"]) <= set(place["known"])


def test_what_each_release_lacks_is_what_its_libraries_do_not_define() -> None:
    place = husk_under(FILE, "2.4.0+cu121")["releases"]
    needed = {
        row["symbol"]
        for row in husk_under(FILE, "2.4.0+cu121")["undefined"]
        if is_torch(row["owner"]) and row["bind"] != "weak"
    }
    for version in ("2.2.2+cu121", "2.4.0+cu121", "2.6.0+cu124", "2.9.1+cu128"):
        exported = {n for lib in load_record(version).libraries() for n in lib.names()}
        release = version.partition("+")[0]
        (group,) = [g for g in place["missing"] if release in g["releases"]]
        assert set(group["symbols"]) == needed - exported, version


def test_neighbours_that_lack_the_same_are_one_group() -> None:
    known = ("2.0", "2.1", "2.2", "2.3", "2.4")
    missing = {"2.0": ("a",), "2.1": ("a",), "2.3": ("a",), "2.4": ("b",)}
    assert grouped(missing, known) == (
        (("2.0", "2.1"), ("a",)), (("2.3",), ("a",)), (("2.4",), ("b",)),
    )  # fmt: skip
    assert grouped({}, known) == ()


def test_drift_is_told_with_the_releases_that_have_the_name() -> None:
    target = husk_under(FILE, "2.4.0+cu121")
    (finding,) = [f for f in target["findings"] if f["code"] == "FA201"]
    text = " ".join(finding["notes"])
    assert "is exported by torch 2.1.0 – 2.2.2; the file is older than this torch" in text  # noqa: RUF001
    assert "it was built on torch 2.1" in text
    assert target["releases"]["exported_by"]["_ZN3c104cuda9SetDeviceEi"] == [
        "2.1.0", "2.1.1", "2.1.2", "2.2.0", "2.2.1", "2.2.2",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "claim", "window", "honest"), LIARS)
def test_metadata_that_lies_is_a_finding_with_the_true_pin(
    tmp_path: Path, name: str, claim: str, window: tuple[str, str], honest: str
) -> None:
    package, version = name.split("-")
    (tmp_path / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: {claim}\n\n"
    )
    (entry,) = [h for h in husk.list_husks() if h.name == name]
    for member in entry.members:
        (tmp_path / member.path).symlink_to(husk_file(f"{name}:{member.path}"))
    document = document_of(tmp_path, stub("2.13.0+cpu").python, torch=("2.9.1",))
    assert len(document["targets"]) == len(entry.members)
    for target in document["targets"]:
        (finding,) = [f for f in target["findings"] if f["code"] == "FA701"]
        assert (finding["severity"], finding["confidence"]) == ("warning", "high")
        assert claim.replace(" ", "") in finding["title"]
        assert any(f"torch {window[0]} – {window[1]}" in e["text"] for e in finding["evidence"])  # noqa: RUF001
        assert finding["help"][0].endswith(f'-m pip install "{honest}"')
        assert target["releases"]["together"] == len(entry.members)
        assert target["releases"]["package_links_with"] == target["links_with"]


def test_files_of_one_directory_get_one_window() -> None:
    directory = husk_file("autoawq_kernels-0.0.9:awq_ext.cpython-311-x86_64-linux-gnu.so").parent
    targets = document_of(directory, stub("2.13.0+cpu").python)["targets"]
    assert len({tuple(t["built_on"]) for t in targets}) == 1 and len(targets) == 5
    assert {t["releases"]["best"] for t in targets} != {None}


def test_a_file_that_uses_nothing_of_torch_has_no_place_and_nothing_was_skipped() -> None:
    target = husk_under("bitsandbytes-0.43.0:bitsandbytes/libbitsandbytes_cpu.so", "2.4.0+cu121")
    assert (target["releases"], target["links_with"]) == (None, [])
    assert not any(row["rule"] == "atlas" for row in target["skipped"])


def test_without_any_torch_the_headline_and_the_help_name_releases(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "v", with_pip=False, symlinks=True)
    path = husk_file(FILE)
    done = run("inspect", str(path), "--python", str(tmp_path / "v"))
    assert done.code == 3
    assert "it links with torch 2.1.0 – 2.1.2" in " ".join(done.stdout.split())  # noqa: RUF001
    assert "or judge against a release: --torch 2.1" in done.stderr


# --- rules on made-up facts ---------------------------------------------------------------------


def verdict(**facts: Any) -> tuple[str, str]:
    ctx = context(**facts)
    return static_verdict(ctx, in_loader_order([j for rule in ALL_RULES for j in rule(ctx)]))


@pytest.mark.parametrize(
    ("facts", "expected", "words"),
    [
        ({"releases": releases()}, "loads", "built on torch 2.4"),
        ({"releases": releases(built_on=("2.3.0", "2.4.0"), confidence="low")}, "links",
         "one of torch 2.4.0 - 2.4.1"),
        ({"releases": releases(best="2.5.0", built_on=("2.5.0",))}, "links", "built on torch 2.5"),
        ({"releases": releases(built_on=(), best=None)}, "links", "is not known"),
        ({"releases": releases(stable_floor="2.4.0"), "stable_abi": True}, "loads",
         "in torch 2.4.0 and later"),
        ({"releases": releases(), "environment": NGC}, "links", "a build of its own"),
        ({"releases": releases(), "environment": NGC,
          "distribution": distribution("x", "1", "torch==2.4.0a0+f70bd71a48.nv24.06")}, "loads",
         "the release it was made for"),
        # Metadata that the file's own names rule out does not count.
        ({"releases": releases(best="2.5.0", built_on=("2.5.0",)),
          "distribution": distribution("x", "1", "torch==2.4.0")}, "links", "built on torch 2.5"),
        ({"releases": releases(), "distribution": distribution("x", "1", "torch==2.4.1")},
         "loads", "made for torch 2.4.1"),
        ({"releases": releases(), "asked": ASKED,
          "skips": (Skipped("link", "only torch's part"),)}, "links", "torch and CUDA symbols"),
    ],
)  # fmt: skip
def test_loads_needs_the_same_minor_release_for_sure(
    facts: dict[str, Any], expected: str, words: str
) -> None:
    found, headline = verdict(**facts)
    assert (found, words in headline) == (expected, True), headline


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"distribution": distribution("x", "1", "torch==2.5.0")}, "torch==2.5.0"),
        # The pin is a lie: the file does not link with it.
        ({"distribution": distribution("x", "1", "torch==2.6.0")}, "torch==2.4.0"),
        ({"distribution": distribution("x", "1", "torch>=2.4.1")}, "torch==2.4.1"),
        ({}, "torch==2.4.0"),
        ({"releases": releases(links_with=(), package_links=())}, None),
        ({"releases": None, "distribution": distribution("x", "1", "torch==2.5.0")},
         "torch==2.5.0"),
    ],
)  # fmt: skip
def test_the_torch_to_install_is_one_that_the_file_links_with(
    facts: dict[str, Any], wanted: str | None
) -> None:
    commands = torch_for_the_file(context(**{"releases": releases(), **facts}))
    assert [c.split('"')[1] for c in commands] == ([] if wanted is None else [wanted])


def test_the_build_that_fits_is_described() -> None:
    here = environment(torch=torch(version="2.9.1+cu128", release="2.9.1", cuda="12.8",
                                   cxx11_abi="cxx11"))  # fmt: skip
    ctx = context(releases=releases(), environment=here, distribution=distribution())
    assert wanted_build(ctx) == (
        "What fits here is a build of flash-attn for torch 2.9, CUDA 12, the cxx11 flavour, "
        "Python 3.11.",
    )


@pytest.mark.parametrize(
    ("exported", "words"),
    [
        (("2.1.0", "2.2.0"), "; the file is older than this torch; it was built on torch 2.4"),
        (("2.5.0", "2.6.0"), "; the file is newer than this torch; it was built on torch 2.4"),
        (("2.1.0", "2.6.0"), "the interval; the file was built on torch 2.4"),
        ((), "No published torch release exports c10::cuda::SetDevice(int) (x86_64, to 2.6.0); "),
    ],
)
def test_the_direction_of_drift_follows_the_releases(exported: tuple[str, ...], words: str) -> None:
    symbol = SET_DEVICE.binding.symbol
    place = releases(exported_by={symbol: exported}, exported_text={symbol: "the interval"})
    ctx = context(missing=(SET_DEVICE,), releases=place)
    judged = [j.finding for rule in ALL_RULES for j in rule(ctx)]
    (finding,) = [f for f in judged if f.code == "FA201"]
    assert any(words in note for note in finding.notes), finding.notes


def test_a_torch_that_is_not_here_is_never_loaded() -> None:
    ctx = context(asked=ASKED)
    reason = why_not_confirmed(ctx, "/x.so", True)
    assert reason is not None and "nothing was loaded" in reason
