"""``wheels WHEEL``: a wheel is judged before it is installed, by its name and by its content."""

from __future__ import annotations

import random
import zipfile
from functools import cache
from pathlib import Path

import pytest
from support.inspecting import invoke, one_sentence
from support.material import husk_file, stub
from support.ranges import serving
from support.wheel_runs import codes, judged

#: Real builds, small ones: the first links with torch 2.4.0 - 2.6.0, the other with 2.2 alone. Both
#: are pre-cxx11, for CUDA 12, with code for GPUs until 9.0.
BUILD = "autoawq_kernels-0.0.9:awq_v2_ext.cpython-311-x86_64-linux-gnu.so"
OLDER = "autoawq_kernels-0.0.4:exl_ext.cpython-311-x86_64-linux-gnu.so"


@cache
def husk_bytes(identity: str) -> bytes:
    return husk_file(identity).read_bytes()


def make(path: Path, name: str, identity: str = BUILD, requires: str = "torch") -> Path:
    """A wheel of a real build under a file name of one's choice."""
    path.mkdir(exist_ok=True)
    version, tags = name.split("-", 2)[1], name.removesuffix(".whl").split("-", 2)[2]
    file = path / name
    info = f"flash_attn-{version.partition('+')[0]}.dist-info"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("flash_attn/other.bin", random.Random(1).randbytes(400_000))
        archive.writestr(identity.partition(":")[2], husk_bytes(identity))
        archive.writestr(
            f"{info}/METADATA",
            f"Name: flash-attn\nVersion: {version.partition('+')[0]}\nRequires-Dist: {requires}\n"
            "Requires-Python: >=3.8\n\n",
        )
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tags}\n")
    return file


RIGHT = "flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with that wheel in it."""
    folder = tmp_path_factory.mktemp("wheels")
    make(folder, RIGHT)
    return folder


def test_a_wheel_that_fits_is_said_to_fit(made: Path) -> None:
    found = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python)
    assert (found["verdict"], found["code"]) == ("fits", 0), found["headline"]
    assert set(found["states"].values()) <= {"ok", "note"}, found["states"]
    assert found["official"]["release"] == "2.6.3"
    assert found["targets"][0]["cxx11_abi"] == "pre-cxx11"


def test_the_same_wheel_at_an_address_gets_the_same_judgement(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python)
    with serving({RIGHT: (made / RIGHT).read_bytes()}) as server:
        there = judged(server.url(RIGHT), "--python", stub("2.4.0+cu121").python)
        assert len(server.asked) < 6
    assert there["kind"] == "url" and there["received_bytes"] <= there["size_bytes"]
    for key in ("verdict", "headline", "checks", "findings", "code"):
        assert there[key] == here[key]
    assert list(tmp_path.iterdir()) == []


def test_a_label_over_code_of_the_other_flavour_is_a_finding(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("abiFALSE", "abiTRUE")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    found = judged(tmp_path / name, "--python", stub("2.4.0+cu121").python)
    assert "FA844" in codes(found)
    assert found["states"]["ABI inside"] == "wrong"
    assert found["verdict"] == "fits"  # the code is of torch's flavour: it loads all the same


def test_the_content_decides_against_a_label_that_promises(made: Path) -> None:
    found = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--torch", "2.9.1")
    assert (found["verdict"], found["code"]) == ("does-not-fit", 1)
    assert found["targets"][0]["verdict"] == "fails"


def test_a_wrong_cuda_label_is_a_finding(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("cu123", "cu118")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    found = judged(tmp_path / name, "--python", stub("2.4.0+cu121").python)
    assert "FA842" in codes(found)  # the label; what is inside is for CUDA 12
    assert found["states"]["CUDA inside"] == "wrong"


def test_a_wheel_for_another_torch_does_not_fit(tmp_path: Path) -> None:
    name = "flash_attn-2.5.6+cu122torch2.1cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    wheel = make(tmp_path, name, OLDER)
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert found["verdict"] == "does-not-fit"
    assert "FA201" in [f["code"] for f in found["targets"][0]["findings"]]


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        (RIGHT, None, "cannot-say"),
        (RIGHT.replace("cp311", "cp310"), "FA840", "does-not-fit"),
        (RIGHT.replace("x86_64", "aarch64"), "FA840", "does-not-fit"),
        (RIGHT.replace("torch2.4", "torch2.3"), "FA841", "does-not-fit"),
        (RIGHT.replace("cu123", "cu118"), "FA842", "does-not-fit"),
        (RIGHT.replace("abiFALSE", "abiTRUE"), "FA843", "does-not-fit"),
        ("flash_attn-2.5.9+cu122torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl", "FA845",
         "cannot-say"),
    ],
)  # fmt: skip
def test_a_name_alone_is_judged_by_its_labels(name: str, code: str | None, verdict: str) -> None:
    found = judged(name, "--python", stub("2.4.0+cu121").python)
    assert found["kind"] == "name" and found["verdict"] == verdict
    assert codes(found) == ([code] if code else [])
    assert found["states"]["content"] == "could-not-look"


def test_a_name_that_is_official_offers_the_address_to_read() -> None:
    found = judged(RIGHT, "--python", stub("2.4.0+cu121").python)
    assert found["help"] and found["help"][0].endswith(f'/v2.6.3/{RIGHT}"')


def test_a_release_that_needs_a_newer_glibc_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.confstr", lambda name: "glibc 2.31")
    name = "flash_attn-2.8.3+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    assert codes(judged(name, "--python", stub("2.4.0+cu121").python)) == ["FA846"]


def test_metadata_that_would_change_torch_is_an_error(tmp_path: Path) -> None:
    wheel = make(tmp_path, RIGHT, requires="torch==2.3.0")
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert codes(found) == ["FA850"] and found["verdict"] == "does-not-fit"


def test_a_renamed_wheel_is_told(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("2.6.3", "2.6.1")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    assert "FA847" in codes(judged(tmp_path / name, "--python", stub("2.4.0+cu121").python))


def test_at_an_address_content_is_left_alone_where_the_tags_refuse_it(made: Path) -> None:
    name = RIGHT.replace("cp311", "cp310")
    data = (made / RIGHT).read_bytes()
    with serving({name: data}) as server:
        found = judged(server.url(name), "--python", stub("2.4.0+cu121").python)
        assert found["verdict"] == "does-not-fit" and found["targets"] == []
        assert found["received_bytes"] < len(data) / 2
        asked = judged(server.url(name), "--python", stub("2.4.0+cu121").python, "--content")
        assert len(asked["targets"]) == 1


def test_a_gpu_is_held_against_what_is_inside(made: Path) -> None:
    fits = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--gpu", "RTX 4090")
    assert fits["verdict"] == "fits"
    not_so = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--gpu", "sm_120")
    assert not_so["verdict"] == "does-not-fit"


@pytest.mark.parametrize("where", ["disk", "address"])
@pytest.mark.parametrize("kind", ["missing", "html"])
def test_what_is_no_wheel_is_one_sentence(tmp_path: Path, where: str, kind: str) -> None:
    files = {RIGHT: b"<html></html>"} if kind == "html" else {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with serving(files) as server:
        given = server.url(RIGHT) if where == "address" else str(tmp_path / RIGHT)
        result = invoke("wheels", given, "--python", str(stub("2.4.0+cu121").python))
    assert result.code == 3
    one_sentence(result)


def test_a_pure_wheel_links_with_any_torch(tmp_path: Path) -> None:
    wheel = tmp_path / "einops-0.8.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("einops-0.8.0.dist-info/METADATA", "Name: einops\nVersion: 0.8.0\n\n")
        archive.writestr("einops-0.8.0.dist-info/WHEEL", "Tag: py3-none-any\n")
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert found["verdict"] == "fits" and found["states"]["content"] == "note"


def test_the_text_of_a_judgement_has_one_line_for_each_question(made: Path) -> None:
    text = invoke("wheels", made / RIGHT, "--python", stub("2.4.0+cu121").python).stdout
    assert "ok it fits this environment" in text
    for subject in ("tags", "metadata", "torch label", "CUDA inside", "content"):
        assert f"ok {subject}" in text


def test_hostile_names_cannot_move_the_cursor() -> None:
    text = invoke(
        "wheels", "evil\x1b[2J-1-py3-none-any.whl", "--python", stub("2.4.0+cu121").python
    ).stdout
    assert "\x1b" not in text and "\\x1b" in text


def test_a_file_named_as_an_extension_that_is_none_is_not_said_to_fit(tmp_path: Path) -> None:
    wheel = tmp_path / "kern-1-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("kern/_C.so", b"\0" * 1000)
        archive.writestr("kern-1.dist-info/METADATA", "Name: kern\nVersion: 1\n\n")
        archive.writestr("kern-1.dist-info/WHEEL", "Tag: cp311-cp311-linux_x86_64\n")
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert found["verdict"] == "cannot-say" and found["states"]["content"] == "could-not-look"


def test_a_password_in_an_address_is_not_repeated(made: Path) -> None:
    with serving({RIGHT: (made / RIGHT).read_bytes()}) as server:
        address = (
            server.url(RIGHT).replace("http://", "http://me:hidden-word@") + "?sig=hidden-word"
        )
        for form in ("text", "json"):
            run = invoke(
                "wheels", address, "--python", stub("2.4.0+cu121").python, "--format", form
            )
            assert RIGHT in run.stdout and "hidden-word" not in run.stdout + run.stderr
