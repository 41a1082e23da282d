"""What ``--torch TEXT`` means, what it cannot mean, and what is said then."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.contexts import environment, torch
from support.inspecting import document_of, invoke, one_sentence
from support.material import husk_file, stub

from fa_forensics.asked import asked_for, read_requests
from fa_forensics.atlas.requested import (
    RequestedTorch,
    choose_release,
    parse_request,
    requested_torch,
)
from fa_forensics.atlas.store import Atlas
from fa_forensics.atlas.tables import SHIPPED
from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.demangle import demangle
from fa_forensics.placing import ReleaseTable
from fixtures.stub_torch import load_record

FILE = "vllm_flash_attn-2.6.2:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
NO_TORCH = environment(torch=None, torch_problem="no torch in /env")
NEWER = "99.1.0"


@cache
def atlas() -> Atlas:
    return Atlas.open()


def requested(text: str, machine: str = "x86_64") -> RequestedTorch:
    return requested_torch(text, atlas(), machine)


def test_a_cuda_version_that_a_release_was_never_built_for_is_refused() -> None:
    """The published ones are in PyTorch's release matrix."""
    assert requested("2.9.1+cu126").cuda == "12.6"
    with pytest.raises(UsageError, match="was not published for CUDA 99.9") as no:
        requested("2.9.1+cu999")
    assert no.value.hint == "its builds are 2.9.1+cu126, 2.9.1+cu128, 2.9.1+cu130"


@pytest.mark.parametrize(
    ("text", "release", "cuda", "flavour"),
    [
        ("2.9.1", "2.9.1", None, None),
        ("2.9", "2.9", None, None),
        (" torch==2.9.1 ", "2.9.1", None, None),
        ("v2.9.1", "2.9.1", None, None),
        ("2.9.1+cxx11abi", "2.9.1", None, "cxx11"),
        ("2.9.1-cxx11abi", "2.9.1", None, "pre-cxx11"),
        ("2.6.0+cu118", "2.6.0", "11.8", None),
        ("2.6.0+cu126-cxx11abi", "2.6.0", "12.6", "pre-cxx11"),
        ("1.12.1+cu102", "1.12.1", "10.2", None),
        ("1.12.1+cu92", "1.12.1", "9.2", None),
        ("2.6.0+cpu", "2.6.0", "", None),
    ],
)
def test_a_text_is_read_in_its_parts(
    text: str, release: str, cuda: str | None, flavour: str | None
) -> None:
    request = parse_request(text)
    assert (request.release, request.cuda, request.flavour) == (release, cuda, flavour)
    assert request.own_build is None


@pytest.mark.parametrize(
    "text",
    [
        "2.6.0a0+ecf3bae40a.nv25.01", "2.9.0.dev20250701+cu126", "2.9.0rc1", "2.6.0+git1234",
        "2.6.0+rocm6.2",
    ],
)  # fmt: skip
def test_a_nightly_or_a_vendors_build_is_one_of_its_own(text: str) -> None:
    assert parse_request(text).own_build
    with pytest.raises(ForensicsError, match="build of its own") as caught:
        requested(text)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("text", ["", "latest", "cu121", "2", "2.9.1.2.3/..", "9" * 5000, "2..1"])
def test_a_text_without_a_release_is_a_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        if parse_request(text).own_build:
            raise UsageError(text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["2.9.*", "2.9.1\nx", "2.9.1;", "2.9.1 cu128", "2.9.1+cu128?"])
def test_what_is_no_version_is_a_wrong_usage_and_no_build_of_its_own(text: str) -> None:
    with pytest.raises(UsageError, match="is no version"):
        parse_request(text)


@pytest.mark.parametrize("text", ["2.9.1+cpu+cu128", "2.9.1+cu126+cu128", "2.9.1+cu128-cpu"])
def test_two_kinds_of_build_at_once_are_a_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="two kinds of build"):
        parse_request(text)


def test_a_long_text_is_refused_at_once() -> None:
    with pytest.raises(UsageError):
        parse_request("2.9.1" + "a" * 190 + "!")


def test_what_is_advised_for_a_torch_that_is_not_here_names_that_torch(tmp_path: Path) -> None:
    file = tmp_path / "own.cpython-311-x86_64-linux-gnu.so"
    shutil.copy(husk_file(FILE), file)
    info = tmp_path / "own_kernels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Name: own-kernels\nVersion: 1.0\nRequires-Dist: torch==2.4.0\n\n"
    )
    (info / "RECORD").write_text(f"{file.name},,\n")
    python = str(stub("2.4.0+cu121").python)
    done = invoke("inspect", "--no-confirm", "--python", python, "--torch", "2.9.1", file)
    assert 'pip install "torch==2.9.1" own-kernels' in done.stdout
    assert "--upgrade --no-cache-dir own-kernels" not in done.stdout
    assert "unless the environment has it already" in " ".join(done.stdout.split())
    here = invoke("inspect", "--no-confirm", "--python", python, file)
    assert here.code == 0 and "own-kernels" not in here.stdout


def test_each_torch_stands_in_the_heading_of_its_part_in_markdown() -> None:
    arguments = ("inspect", "--format", "markdown", "--torch", "2.4", "--torch", "2.9.1")
    lines = invoke(*arguments, husk_file(FILE)).stdout.splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert [h.partition(" with torch ")[2] for h in headings] == [
        "`2.4.1+cu121`: loads", "`2.9.1+cu128`: fails"
    ]  # fmt: skip


def test_a_minor_release_means_its_newest_patch() -> None:
    known = ("2.9.0", "2.9.1", "2.10.0")
    assert choose_release(parse_request("2.9"), known) == "2.9.1"
    assert choose_release(parse_request("2.1"), known) is None
    assert choose_release(parse_request("2.9.2"), known) is None


def test_the_builds_own_flavour_and_cuda_hold_unless_told_otherwise() -> None:
    own = requested("2.6.0")
    assert (own.version, own.cuda, own.flavour) == ("2.6.0+cu124", "12.4", "pre-cxx11")
    turned = requested("2.6.0+cxx11abi")
    assert (turned.version, turned.flavour) == ("2.6.0+cxx11abi", "cxx11")
    without = requested("2.6.0+cpu")
    assert (without.cuda, without.brings("libc10_cuda.so")) == (None, None)
    assert without.brings("libc10.so") == "torch==2.6.0+cpu/lib/libc10.so"
    assert without.brings("libcudart.so.12") is None
    # PyTorch's release notes: of 2.6.0 only the CUDA 12.6 build has the new flavour.
    assert requested("2.6.0+cu126").flavour == "cxx11"
    assert requested("2.6.0+cu118").flavour == "pre-cxx11"


@pytest.mark.parametrize("version", ["2.2.2+cu121", "2.4.0+cu121", "2.6.0+cu124", "2.9.1+cu128"])
def test_what_comes_along_is_what_the_real_build_needs(version: str) -> None:
    """Oracle: DT_NEEDED of the recorded libraries, and the sonames of the wheels pinned."""
    record = load_record(version)
    torch = requested(version.partition("+")[0])
    libraries = [lib for dist in record.distributions[1:] for lib in dist.libraries]
    sonames = {lib.soname for lib in libraries if lib.soname}
    own = {lib.path.rpartition("/")[2] for lib in record.distributions[0].libraries}
    needed = {name for lib in record.distributions[0].libraries for name in lib.needed}
    # Copies in torch's own wheel: their names have a hash, their DT_SONAME has none.
    copies = {
        lib.soname
        for lib in record.distributions[0].libraries
        if lib.soname and lib.path.rpartition("/")[2] in needed
    }
    assert {"libc10.so", "libgomp.so.1"} <= copies
    for name in copies | (needed & sonames) | {n for n in needed & own if n.startswith("libtorch")}:
        assert torch.brings(name) is not None, name
    assert torch.brings("libcudart.so.11.0") is None
    assert torch.brings("libcudart.so.13") is None
    assert torch.brings("libavutil.so.58") is None


def test_names_of_the_other_flavour_are_found_by_their_twins() -> None:
    old = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
    new = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    plain = "_ZN3c104cuda9SetDeviceEa"
    for text, has, lacks in (
        ("2.6.0", old, new), ("2.6.0+cxx11abi", new, old),
        ("2.7.0", new, old), ("2.7.0-cxx11abi", old, new),
    ):  # fmt: skip
        torch = requested(text)
        assert torch.library_of(has) == "libc10.so", text
        assert torch.library_of(lacks) is None, text
        assert torch.library_of(plain) == "libc10_cuda.so", text
        (twin, *_) = torch.nearest(lacks)
        # Its two constructors, C1 and C2, read alike and count as one.
        assert (twin[1], twin[3]) == (demangle(has), "other std::string flavour"), text


# --- what there is no answer to -----------------------------------------------------------------


def test_an_unknown_release_is_a_wrong_usage_and_the_nearest_are_offered() -> None:
    with pytest.raises(UsageError, match="no release that this tool knows") as caught:
        read_requests(["2.4.9"], ReleaseTable(), NO_TORCH)
    assert caught.value.hint == "the nearest are 2.4.0, 2.4.1"


@pytest.mark.parametrize("text", [NEWER, "2.9.0.dev20250701", "2.6.0a0+ecf3bae40a.nv25.01"])
def test_the_installed_libraries_decide_where_the_table_has_nothing(text: str) -> None:
    (request,) = read_requests([text], ReleaseTable(), NO_TORCH)
    nothing = asked_for(request, ReleaseTable(), NO_TORCH, "x86_64")
    assert nothing.torch is None and nothing.problem
    assert nothing.judged.judged_by == "nothing"
    release = request.release
    here = environment(torch=torch(version=text, release=release))
    same = asked_for(request, ReleaseTable(), here, "x86_64")
    assert (same.judged.judged_by, same.problem, same.torch) == ("installed", None, None)
    other = asked_for(request, ReleaseTable(), environment(), "x86_64")
    assert other.judged.judged_by == "nothing"


def test_the_very_build_that_is_installed_is_judged_by_itself_and_its_release_by_the_table() -> (
    None
):
    table = ReleaseTable()
    here = environment(torch=torch(version="2.6.0+cu118", release="2.6.0"))
    for text, source in (("2.6.0+cu118", "installed"), ("2.6.0", "table"), ("2.6", "table")):
        (request,) = read_requests([text], table, here)
        assert asked_for(request, table, here, "x86_64").judged.judged_by == source, text


def test_a_damaged_table_is_told_and_all_else_still_works(tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(SHIPPED, copy)
    trie = copy / "torch.trie"
    trie.write_bytes(trie.read_bytes()[:-7])
    path, python = husk_file(FILE), stub("2.4.0+cu121").python
    (target,) = document_of(path, python, atlas=str(copy))["targets"]
    assert target["verdict"] == "loads"
    assert target["links_with"] == [] and target["releases"] is None
    (skip,) = [row for row in target["skipped"] if row["rule"] == "atlas"]
    assert "torch.trie" in skip["reason"] and "\n" not in skip["reason"]
    (asked,) = document_of(path, python, atlas=str(copy), torch=("2.9.1",))["targets"]
    assert asked["verdict"] == "inconclusive"
    assert "torch.trie" in asked["problem"]
    assert len(asked["undefined"]) == len(target["undefined"])


# --- on the command line ------------------------------------------------------------------------


def test_exit_codes_of_torch_that_was_asked_for() -> None:
    path, python = str(husk_file(FILE)), str(stub("2.13.0+cpu").python)
    base = ["inspect", path, "--python", python]
    assert invoke(*base, "--torch", "2.4.0").code == 0
    assert invoke(*base, "--torch", "2.9.1").code == 1
    assert invoke(*base, "--torch", "2.4.0", "--torch", "2.9.1").code == 1
    unknown = invoke(*base, "--torch", "2.4.7")
    assert unknown.code == 2 and unknown.stdout == ""
    assert "2.4.7" in one_sentence(unknown)
    newer = invoke(*base, "--torch", NEWER)
    assert newer.code == 3
    assert NEWER in one_sentence(newer) and "newer than the table" in newer.stderr


def test_a_build_that_cannot_be_judged_gets_the_tables_comment_and_no_verdict() -> None:
    python = str(stub("2.13.0+cpu").python)
    text = "2.4.0a0+f70bd71a48.nv24.06"
    run = invoke(
        "inspect", str(husk_file(FILE)), "--python", python, "--torch", text, "--format", "json"
    )
    (target,) = run.document["targets"]
    assert (run.code, target["verdict"], target["missing"]) == (3, "inconclusive", [])
    assert "links with the published torch 2.4.0" in target["problem"]
    assert "build of its own" in target["headline"]
    assert "2.4.0" in target["links_with"]


def test_several_torches_give_a_target_each_in_the_order_asked() -> None:
    document = document_of(
        husk_file(FILE), stub("2.13.0+cpu").python, torch=("2.9.1", "2.4.0", "2.9.1", "2.6.0+cpu")
    )
    rows: list[Any] = document["targets"]
    assert [row["torch"]["requested"] for row in rows] == ["2.9.1", "2.4.0", "2.6.0+cpu"]
    assert [row["verdict"] for row in rows] == ["fails", "loads", "fails"]
    assert rows[2]["findings"][0]["code"] == "FA601"
    assert all(row["links_with"] == rows[0]["links_with"] for row in rows)


def test_a_file_for_another_machine_is_judged_in_torchs_part_alone() -> None:
    identity = "fa3_fwd-0.0.3-aarch64:fa3_fwd/_C.abi3.so"
    python = stub("2.13.0+cpu").python
    (target,) = document_of(husk_file(identity), python, torch=("2.14.1",))["targets"]
    assert target["verdict"] == "links"
    assert not any(f["code"] == "FA101" for f in target["findings"])
    assert any("nothing of the system" in row["reason"] for row in target["skipped"])
    owners = {row["owner"] for row in target["undefined"] if row["provider"] is None}
    assert "torch/stable" not in owners and "libc" in owners
    (old,) = document_of(husk_file(identity), python, torch=("2.8.0",))["targets"]
    assert old["verdict"] == "fails" and old["missing"]


# --- CUDA's own names ---------------------------------------------------------------------------

#: nvJitLink is pinned by no torch before 2.6: pip takes the newest, and so does the table.
CUDA_BUILDS = ("2.2.2+cu121", "2.4.0+cu121", "2.6.0+cu124", "2.9.1+cu128", "2.14.1+cu130")
SONAMES = (
    "libcudart.so.12", "libcudart.so.13", "libnvrtc.so.12", "libnccl.so.2", "libcudnn.so.8",
    "libcudnn.so.9", "libcupti.so.12", "libcusolver.so.11", "libnvJitLink.so.12",
)  # fmt: skip


@cache
def recorded_names(version: str, soname: str) -> frozenset[str] | None:
    """The recorded names of one library of one torch build, None where it has no such library."""
    for dist in load_record(version).distributions:
        for library in dist.libraries:
            if library.soname == soname:
                return library.names()
    return None


@pytest.mark.parametrize("version", CUDA_BUILDS)
@pytest.mark.parametrize("soname", SONAMES)
def test_cudas_names_are_those_that_the_builds_own_libraries_define(
    version: str, soname: str
) -> None:
    """Oracle: the recorded exports of the very wheels that this build of torch pins."""
    torch = requested(version.partition("+")[0])
    here = recorded_names(version, soname)
    assert (torch.brings(soname) is not None) == (here is not None)
    if here is None:
        return
    asked = frozenset().union(*(recorded_names(v, soname) or () for v in CUDA_BUILDS))
    loaded = torch.loaded_with(["libtorch_cuda.so", soname])
    found = {n for n in asked if torch.exporter(n, None, soname, loaded) is not None}
    assert found == here & asked


def test_some_of_cudas_names_differ_between_the_builds() -> None:
    old, new = (recorded_names(v, "libcudart.so.12") for v in ("2.2.2+cu121", "2.9.1+cu128"))
    assert old and new and new - old


def test_another_toolkit_brings_its_own_libraries() -> None:
    cu118 = requested("2.6.0+cu118")
    assert (cu118.version, cu118.cuda) == ("2.6.0+cu118", "11.8")
    place = cu118.brings("libcudart.so.11.0")
    assert place is not None and place.startswith("nvidia-cuda-runtime-cu11==11.8.")
    assert cu118.brings("libcudart.so.12") is None
    assert cu118.brings("libnvrtc.so.12") is None
    cu126 = requested("2.6.0+cu126").brings("libcudart.so.12")
    assert cu126 is not None and cu126.startswith("nvidia-cuda-runtime-cu12==12.6.")


def test_without_the_cuda_table_torchs_needs_are_believed_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fa_forensics.atlas.libraries import CudaLibraries
    from fa_forensics.errors import AtlasDamaged

    def damaged(*_: object) -> CudaLibraries:
        raise AtlasDamaged("cuda.trie is cut short")

    monkeypatch.setattr(CudaLibraries, "open", damaged)
    (target,) = document_of(husk_file(FILE), stub("2.13.0+cpu").python, torch=("2.4.0",))["targets"]
    assert target["verdict"] == "loads"
    (skip,) = [row for row in target["skipped"] if row["rule"] == "atlas"]
    assert "cuda.trie is cut short" in skip["reason"]
