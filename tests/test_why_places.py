"""``why`` in places that are not as their version says, or that are hardly there at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import Run, invoke, one_sentence
from support.material import stub
from trees import make_distribution, make_prefix, make_torch, make_venv, shared_object

from fa_forensics.atlas import store
from fa_forensics.atlas.tables import SHIPPED

DEVICE = "_ZN3c104cuda9SetDeviceE"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
T22, T24, T29 = "2.2.2+cu121", "2.4.0+cu121", "2.9.1+cu128"


def called(version: str, name: str, directory: Path) -> Path:
    """The python of a stand-in torch whose version.py gives another version."""
    tree = directory / "env"
    shutil.copytree(stub(version).root, tree, symlinks=True)
    (version_py,) = tree.glob("lib/python*/site-packages/torch/version.py")
    version_py.write_text(version_py.read_text().replace(version, name))
    return tree / "bin/python3"


def run(python: Path, *symbols: str) -> Run:
    return invoke("why", "--python", python, "--format", "json", "--", *symbols)


def answer_of(python: Path, symbol: str) -> dict[str, Any]:
    result = run(python, symbol)
    assert (result.code, result.stderr) == (0, "")
    (answer,) = result.document["answers"]
    return dict(answer)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python environment without torch."""
    make_venv(tmp_path / "bare", make_prefix(tmp_path / "base"))
    return tmp_path / "bare/bin/python"


def test_libraries_of_another_release_than_the_version_says_are_found_out(tmp_path: Path) -> None:
    """The version says 2.2.2, the libraries are those of 2.4.0, as after a broken upgrade."""
    answer = answer_of(called(T24, T22, tmp_path), DEVICE + "i")
    assert (answer["kind"], answer["code"], answer["provider"]) == ("wrong-torch", "FA607", None)
    assert "cannot be missing from torch 2.1.0" in answer["cause"]
    assert "call themselves 2.2.2+cu121" in answer["cause"]
    assert '--force-reinstall --no-cache-dir "torch==2.2.2"' in answer["help"][0]


@pytest.mark.parametrize(
    ("version", "name", "symbol", "direction"),
    [
        # An NGC container of 2.3 made before 2.3.0, with 2.2's signature still.
        (T22, "2.3.0a0+ebedce2", DEVICE + "a", "file-newer"),
        (T22, "2.2.0a0+81ea7a4", DEVICE + "a", "file-newer"),
        (T29, "2.10.0.dev20251101+cu128", DEVICE + "a", "file-older"),
        # Releases before and after have it: what this build has can only be read from it.
        (T22, "2.4.0a0+gitd990dad", DEVICE + "a", "unknown"),
        (T22, "2.4.0+git6bb57fb", DEVICE + "a", "unknown"),
    ],
)
def test_in_a_build_of_its_own_the_libraries_decide(
    version: str, name: str, symbol: str, direction: str, tmp_path: Path
) -> None:
    python = called(version, name, tmp_path)
    answer = answer_of(python, symbol)
    assert (answer["kind"], answer["direction"]) == ("symbol-drift", direction)
    assert answer["provider"] is None and name in answer["cause"]
    if direction == "unknown":
        assert "its libraries decide" in answer["cause"] or "a build of its own" in answer["cause"]
    here = answer_of(python, DEVICE + ("i" if version == T22 else "ab"))
    assert here["provider"].endswith("libc10_cuda.so")


def test_another_build_of_a_release_in_the_other_flavour_is_no_wrong_torch(tmp_path: Path) -> None:
    """2.6.0 for CUDA 12.6 is cxx11, 2.6.0 on the package index is not: it has the twin."""
    answer = answer_of(called(T29, "2.6.0+cu126", tmp_path), OLD_ERROR)
    assert (answer["kind"], answer["direction"]) == ("cxx11-abi", "other-flavour")
    assert any("another build of that release" in note for note in answer["notes"])


def test_a_torch_older_or_newer_than_the_table_is_placed_with_what_is_on_record(
    tmp_path: Path,
) -> None:
    old = answer_of(called(T22, "1.8.0+cu101", tmp_path / "old"), DEVICE + "a")
    assert old["direction"] == "file-newer" and "1.8.0+cu101" in old["cause"]
    late = "_ZN3c1013MessageLogger6streamB5cxx11Ev"  # 2.10.0 brought it; 2.9.1 lacks it
    new = answer_of(called(T29, "99.1.0+cu999", tmp_path / "new"), late)
    assert new["direction"] == "file-older"
    assert "is the newest release on record" in new["cause"]


def test_a_cpu_build_of_another_release_is_told_both(tmp_path: Path) -> None:
    """torch 2.13.0 without CUDA: with CUDA it would not have SetDevice(int) either."""
    answer = answer_of(stub("2.13.0+cpu").python, DEVICE + "i")
    assert (answer["code"], answer["direction"]) == ("FA601", "file-older")
    assert answer["help"][0].endswith('"torch==2.2.2"')
    assert answer_of(stub("2.13.0+cpu").python, DEVICE + "ab")["help"][0].endswith('2.13.0"')


def test_the_package_that_needs_the_name_is_replaced_first(tmp_path: Path) -> None:
    python = called(T24, T24, tmp_path)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    module = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    (site / module).write_bytes(shared_object((), (DEVICE + "i",)))
    make_distribution(site, "flash-attn", "2.5.7", [module], requires=["torch"])
    answer = answer_of(python, DEVICE + "i")
    wheel, torch, look = answer["help"]
    assert wheel.startswith(f"{python} -m pip install --no-cache-dir --force-reinstall --no-deps ")
    assert wheel.endswith('+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"')
    assert torch == f'{python} -m pip install "torch==2.2.2"'
    assert look == f"fa-forensics inspect --python {python} {site / module}"
    assert any("flash-attn's own wheel for torch 2.4.0" in note for note in answer["notes"])
    assert f"Needed by {site / module}." in answer["notes"]


def environment(tmp_path: Path, short: str, version: str, machine: int | None = None) -> Path:
    """An environment of a Python version, or machine (e_machine), with little of a torch."""
    base = make_prefix(tmp_path / "base", short)
    if machine is not None:
        raw = bytearray(base.read_bytes())
        raw[18:20] = machine.to_bytes(2, "little")
        base.write_bytes(raw)
    make_torch(make_venv(tmp_path / "env", base, short), version, pre_cxx11=False)
    return tmp_path / "env/bin/python"


def test_a_release_without_a_wheel_for_this_python_is_not_advised(tmp_path: Path) -> None:
    """CPython 3.13 came after torch 2.2.2; the first torch for it was 2.5.0."""
    answer = answer_of(environment(tmp_path, "3.13", "2.9.1+cu128"), DEVICE + "i")
    assert not any("pip install" in command for command in answer["help"])
    assert any("no wheel for Python 3.13" in note for note in answer["notes"])


def test_an_aarch64_python_is_answered_from_its_own_wheels(tmp_path: Path) -> None:
    """On the package index aarch64 turned to the cxx11 flavour with 2.6.0, x86_64 with 2.7.0."""
    python = environment(tmp_path, "3.11", "2.9.1", machine=183)
    answer = answer_of(python, OLD_ERROR)
    assert answer["exported_by"][-1] == "2.5.1"
    other = answer_of(environment(tmp_path / "x86", "3.11", "2.9.1"), OLD_ERROR)
    assert other["exported_by"][-1] == "2.6.0"


def test_a_name_of_torchs_rocm_libraries_means_a_file_for_rocm() -> None:
    answer = answer_of(stub(T24).python, "_ZN3c103hip9SetDeviceEa")
    assert (answer["kind"], answer["owner"]) == ("rocm", "torch/c10_hip")
    assert "no ROCm build" in answer["cause"] and answer["exported_by"] == []


# --- no torch -----------------------------------------------------------------------------------


def test_without_a_torch_the_history_answers(bare: Path) -> None:
    result = run(bare, DEVICE + "i")
    assert (result.code, result.stderr) == (0, "")
    (answer,) = result.document["answers"]
    assert (answer["exported_by"][0], answer["exported_by"][-1]) == ("2.1.0", "2.2.2")
    assert (answer["looked_here"], answer["direction"]) == (False, "unknown")
    assert "older or newer" in answer["cause"] and "in 2.3.0 `int` became" in answer["cause"]
    assert any(note.startswith("Nothing was looked up here: no torch") for note in answer["notes"])
    assert "; here: not looked at" in invoke("why", "--python", bare, DEVICE + "i").stdout


def test_without_a_torch_a_name_of_either_flavour_is_a_matter_of_flavour(bare: Path) -> None:
    answer = answer_of(bare, OLD_ERROR)
    assert (answer["kind"], answer["direction"]) == ("cxx11-abi", "other-flavour")
    assert answer["confidence"] == "medium"


def test_without_a_torch_and_without_a_history_nothing_is_answered(bare: Path) -> None:
    result = run(bare, "_ZN3c1012no_such_nameEv")
    assert result.code == 3 and "no torch in" in one_sentence(result)
    (answer,) = result.document["answers"]
    assert answer["exported_by"] == [] and not answer["looked_here"]


def test_names_that_are_not_torchs_need_none(bare: Path) -> None:
    result = run(bare, "_Z9my_kernelv", "memcpy@GLIBC_2.99")
    assert [a["kind"] for a in result.document["answers"]] == ["own-symbol", "glibc"]
    assert result.code == 0


# --- damaged tables -----------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["absent", "cut", "altered"])
def test_damaged_tables_leave_the_answer_from_what_is_here(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what != "absent":
        for path in Path(SHIPPED).glob("torch.*"):
            raw = bytearray(path.read_bytes())
            raw[len(raw) // 2] ^= 1
            (tmp_path / path.name).write_bytes(raw[:-9] if what == "cut" else raw)
    monkeypatch.setattr(store, "SHIPPED", str(tmp_path))
    answer = answer_of(stub(T24).python, DEVICE + "i")
    assert (answer["kind"], answer["code"]) == ("symbol-drift", "FA201")
    assert not answer["releases_looked_up"] and answer["exported_by"] == []
    assert "c10::cuda::SetDevice(signed char) instead" in answer["cause"]
    assert [o["symbol"] for o in answer["overloads"]] == [DEVICE + "a"]
    (note,) = [n for n in answer["notes"] if n.startswith("Could not look")]
    assert str(tmp_path) in note
    named = invoke("why", "--torch", "2.4.0", DEVICE + "i")
    assert named.code == 3 and str(tmp_path) in one_sentence(named)


# --- the extension's own names ------------------------------------------------------------------

TWIN_OLD = "_ZN18transformer_engine6getenvIiEET_RKSsRKS1_"
TWIN_NEW = (
    "_ZN18transformer_engine6getenvIiEET_RKNSt7__cxx1112basic_string"
    "IcSt11char_traitsIcESaIcEEERKS1_"
)


def package(tmp_path: Path, needs: str, exports: str) -> Path:
    """An environment with a package of two libraries: one needs a name, one exports one."""
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    (site / "te").mkdir()
    (site / "te/ext.so").write_bytes(shared_object((), (needs,)))
    (site / "te/libte.so").write_bytes(shared_object((exports,)))
    files = ["te/ext.so", "te/libte.so"]
    make_distribution(site, "transformer-engine", "1.0", files, requires=["torch"])
    return tmp_path / "env/bin/python"


def test_a_name_of_a_library_of_the_same_package_is_found_there(tmp_path: Path) -> None:
    answer = answer_of(
        package(tmp_path, "nvte_layernorm_bwd", "nvte_layernorm_bwd"), "nvte_layernorm_bwd"
    )
    assert (answer["kind"], answer["code"], answer["direction"]) == ("own-symbol", "FA207", "none")
    assert "te/libte.so of the same package exports it" in answer["cause"]
    assert answer["help"][0].endswith("-c 'import transformer_engine.pytorch'")


def test_an_own_name_in_the_other_flavour_is_a_matter_of_flavour(tmp_path: Path) -> None:
    answer = answer_of(package(tmp_path, TWIN_OLD, TWIN_NEW), TWIN_OLD)
    assert (answer["kind"], answer["direction"]) == ("cxx11-abi", "other-flavour")
    assert "libte.so of the same package" in answer["cause"]


def test_a_left_out_device_link_is_named_with_its_source() -> None:
    symbol = "__cudaRegisterLinkedBinary_ba346c27_12_intranode_cu_6b1dae6a"
    answer = answer_of(stub(T24).python, symbol)
    assert answer["kind"] == "own-symbol" and "intranode.cu was compiled" in answer["cause"]
    assert "device link" in answer["cause"]
