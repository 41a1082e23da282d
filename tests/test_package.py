"""Which distribution owns a file, what its metadata pins, what a version's labels say."""

from __future__ import annotations

import importlib.metadata
import json
import os
import time
from pathlib import Path

import pytest
from trees import make_distribution

from fa_forensics.facts.package import (
    BuildTags,
    build_tags,
    editable_mapping,
    find_distribution,
    headers,
    normalized,
    read_distribution,
    recorded_files,
    satisfies,
    torch_pin,
    torch_requirement,
)


def test_every_installed_distribution_reads_as_importlib_metadata_reads_it() -> None:
    """The standard library is the oracle, over all that is installed beside pytest."""
    site = os.path.dirname(os.path.dirname(pytest.__file__))
    compared = 0
    for theirs in importlib.metadata.distributions(path=[site]):
        info = str(theirs._path)  # type: ignore[attr-defined]
        ours = read_distribution(info)
        assert ours is not None, info
        assert (ours.name, ours.version) == (theirs.metadata["Name"], theirs.version)
        assert list(ours.requires) == (theirs.requires or [])
        assert ours.requires_python == next(
            iter(theirs.metadata.get_all("Requires-Python") or []), None
        )
        assert ours.installer == ((theirs.read_text("INSTALLER") or "").strip() or None)
        files = [str(theirs.locate_file(file)) for file in theirs.files or []]
        assert recorded_files(ours) == [os.path.normpath(file) for file in files]
        compared += 1
    assert compared >= 3


def test_file_is_found_in_record_of_a_distribution_with_another_name(tmp_path: Path) -> None:
    make_distribution(tmp_path, "autoawq-kernels", "0.0.9", ["awq_ext.so", "awq_ext.so.txt"])
    make_distribution(tmp_path, "flash-attn", "2.6.3", ["flash_attn_2_cuda.so", "x/a,b.so"])
    make_distribution(tmp_path, "xformers", "0.0.34", ["xformers/_C.so"])
    cases = {
        "awq_ext.so": "autoawq-kernels",
        "flash_attn_2_cuda.so": "flash-attn",
        "xformers/_C.so": "xformers",
        "x/a,b.so": "flash-attn",
    }
    for file, owner in cases.items():
        found = find_distribution(str(tmp_path / file), [str(tmp_path)])
        assert found is not None and found.name == owner, file
    for file in ("ext.so", "_C.so", "xformers/_C.s", "awq_ext"):
        assert find_distribution(str(tmp_path / file), [str(tmp_path)]) is None, file


def test_all_fields_of_a_distribution_are_read(tmp_path: Path) -> None:
    info = make_distribution(
        tmp_path, "Flash_Attn", "2.5.8", ["flash_attn/_C.so"], requires=["torch", "einops"],
        WHEEL="Wheel-Version: 1.0\n\nTag: cp311-cp311-linux_x86_64\nTag: cp311-abi3-any\n",
        direct_url__json='{"url": "file:///src", "dir_info": {"editable": true}}',
    )  # fmt: skip
    found = find_distribution(str(tmp_path / "flash_attn" / "_C.so"), [str(tmp_path)])
    assert found is not None
    assert (found.name, found.version, found.requires) == (
        "Flash_Attn", "2.5.8", ("torch", "einops"),
    )  # fmt: skip
    assert found.wheel_tags == ("cp311-cp311-linux_x86_64", "cp311-abi3-any")
    assert (found.requires_python, found.installer, found.editable) == (">=3.9", "pip", True)
    assert found.metadata_path == str(info / "METADATA")
    assert found.record_path == str(info / "RECORD")


def test_without_record_top_level_decides(tmp_path: Path) -> None:
    make_distribution(tmp_path, "torch", "2.4.0", None, top_level__txt="torch\nfunctorch\n")
    make_distribution(tmp_path, "triton", "3.0.0", None)
    for file, owner in {"functorch/_C.so": "torch", "triton/_C/libtriton.so": "triton"}.items():
        found = find_distribution(str(tmp_path / file), [str(tmp_path)])
        assert found is not None and found.name == owner
    assert find_distribution(str(tmp_path / "other" / "x.so"), [str(tmp_path)]) is None


def test_eggs_are_distributions_too(tmp_path: Path) -> None:
    egg = tmp_path / "flash_attn-2.0.4-py3.10-linux-x86_64.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Name: flash-attn\nVersion: 2.0.4\n")
    (egg / "EGG-INFO" / "requires.txt").write_text("torch==2.0.1\neinops\n\n[dev]\nninja\n")
    (egg / "EGG-INFO" / "top_level.txt").write_text("flash_attn_2_cuda\n")
    file = egg / "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    found = find_distribution(str(file), [str(tmp_path), str(egg)])
    assert found is not None
    assert (found.name, found.version) == ("flash-attn", "2.0.4")
    assert found.requires == ("torch==2.0.1", "einops")


def test_unpacked_wheel_has_its_metadata_beside_it(tmp_path: Path) -> None:
    make_distribution(tmp_path / "tree", "xformers", "0.0.34", None)
    found = find_distribution(str(tmp_path / "tree" / "xformers" / "fa3" / "_C.so"), [])
    assert found is not None and found.version == "0.0.34"
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "METADATA").write_text("Name: vllm-flash-attn\nVersion: 2.6.2\n")
    found = find_distribution(str(tmp_path / "flat" / "x.so"), [])
    assert found is not None and found.name == "vllm-flash-attn"


def test_neighbour_in_a_shared_directory_is_not_taken_for_the_owner(tmp_path: Path) -> None:
    make_distribution(tmp_path, "numpy", "2.0", ["numpy/x.so"])
    assert find_distribution(str(tmp_path / "mine" / "x.so"), []) is None
    make_distribution(tmp_path, "torch", "2.4.0", None)
    assert find_distribution(str(tmp_path / "mine" / "x.so"), []) is None


def test_broken_metadata_costs_no_more_than_its_fields(tmp_path: Path) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    assert read_distribution(str(info)) is None
    (info / "METADATA").write_bytes(b"\xff\xfe\0garbage\n: no key\nName\n" * 100)
    found = read_distribution(str(info))
    assert found is not None and (found.name, found.version) == ("broken", "1.0")
    assert found.requires == () and recorded_files(found) == []


def test_pipes_in_place_of_metadata_are_not_waited_for(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "x", "1", None, top_level__txt="x\n")
    for name in ("RECORD", "WHEEL", "INSTALLER", "direct_url.json", "requires.txt"):
        (info / name).unlink(missing_ok=True)
        os.mkfifo(info / name)
    os.mkfifo(tmp_path / "__editable___x_finder.py")
    os.mkfifo(tmp_path / "y.egg-info")
    found = find_distribution(str(tmp_path / "x" / "_C.so"), [str(tmp_path)])
    assert found is not None and (found.name, found.record_path) == ("x", None)
    assert recorded_files(found) == [] and editable_mapping(str(tmp_path)) == {}
    assert read_distribution(str(tmp_path / "y.egg-info")) is None
    (info / "METADATA").unlink()
    os.mkfifo(info / "METADATA")
    assert read_distribution(str(info)) is None


def test_link_to_a_site_directory_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    make_distribution(real, "xformers", "0.0.34", ["xformers/_C.so"])
    (tmp_path / "link").symlink_to("real")
    for site, file in (("link", "real"), ("real", "link")):
        (real / "xformers").mkdir(exist_ok=True)
        found = find_distribution(
            str(tmp_path / file / "xformers" / "_C.so"), [str(tmp_path / site)]
        )
        assert found is not None and found.name == "xformers"


def test_finder_of_an_editable_install_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "__editable___flash_attn_2_6_3_finder.py").write_text(
        "raise SystemExit('never run')\n"
        "MAPPING: dict[str, str] = {'flash_attn': '/src/flash_attn', 'ext': '/src/ext.so'}\n"
        "NAMESPACES: dict[str, list[str]] = {'other': ['/x']}\n"
    )
    assert editable_mapping(str(tmp_path)) == {
        "flash_attn": "/src/flash_attn",
        "ext": "/src/ext.so",
    }


@pytest.mark.parametrize(
    ("requirement", "asked", "pin"),
    [
        ("torch ==2.1.2", "==2.1.2", "2.1.2"),
        ("torch (==2.0.1)", "==2.0.1", "2.0.1"),
        ("torch==2.4.0", "==2.4.0", "2.4.0"),
        ("torch===2.4.0+cu121", "===2.4.0+cu121", "2.4.0+cu121"),
        ("Torch[opt-einsum] == 2.3.0 ; python_version >= '3.8'", "==2.3.0", "2.3.0"),
        ("torch<2.5,>=2.4", "<2.5,>=2.4", None),
        ("torch (>=2.1,==2.1.2)", ">=2.1,==2.1.2", "2.1.2"),
        ("torch==2.1.*", "==2.1.*", None),
        ("torch~=2.4.0", "~=2.4.0", None),
        ("torch!=2.4.0", "!=2.4.0", None),
        ("torch", "", None),
        ("torch @ https://example.org/torch.whl", "", None),
        ("torchvision==0.19.0", None, None),
        ("torch-scatter==2.1.2", None, None),
        ("pytorch==2.4.0", None, None),
        ('torch==2.4.0; extra == "test"', None, None),
    ],
)
def test_requirement_on_torch(requirement: str, asked: str | None, pin: str | None) -> None:
    requires = ["einops", requirement, "torchaudio==9.9"]
    assert torch_requirement(requires) == asked
    assert torch_pin(requires) == pin


@pytest.mark.parametrize(
    ("version", "tags"),
    [
        ("2.5.8+cu122torch2.3cxx11abiFALSE", BuildTags("12.2", "2.3", False, None)),
        ("2.8.3+cu12torch2.7cxx11abiTRUE", BuildTags("12", "2.7", True, None)),
        ("2.3.0+cu118torch1.12cxx11abiFALSE", BuildTags("11.8", "1.12", False, None)),
        ("2.8.3+cu13torch2.9cxx11abiTRUE", BuildTags("13", "2.9", True, None)),
        ("2.1.2+pt24cu121", BuildTags("12.1", "2.4", None, None)),
        ("2.1.2+pt210cu128", BuildTags("12.8", "2.10", None, None)),
        ("0.0.28+cu118", BuildTags("11.8", None, None, None)),
        ("2.4.0+rocm6.1", BuildTags(None, None, None, "6.1")),
        ("2.4.0+cpu", BuildTags(None, None, None, None)),
        ("2.6.0a0+ecf3bae40a.nv25.01", BuildTags(None, None, None, None)),
        ("0.0.26.post1", BuildTags(None, None, None, None)),
    ],
)
def test_labels_of_a_local_version(version: str, tags: BuildTags) -> None:
    assert build_tags(version) == tags


def test_names_are_compared_in_their_normal_form() -> None:
    assert {normalized(n) for n in ("flash_attn", "Flash-Attn", "flash.attn", "flash--attn")} == {
        "flash-attn"
    }


def test_headers_end_where_the_description_begins() -> None:
    text = "Name: a\nClassifier: x\nClassifier: y\n  continued: no key\n\nVersion: 9\n"
    assert headers(text) == {"name": ("a",), "classifier": ("x", "y")}
    assert headers(text, whole=True)["version"] == ("9",)


def test_direct_url_is_kept_as_text(tmp_path: Path) -> None:
    url = json.dumps({"url": "https://example.org/x.whl", "archive_info": {}})
    info = make_distribution(tmp_path, "x", "1", [], direct_url__json=url)
    found = read_distribution(str(info))
    assert found is not None and found.direct_url == url and not found.editable


SPECIFIERS = ">=2.5.1 ==2.4.0 ==2.4.* !=2.4.0 ~=2.4.0 ~=2.4 <2.4 <=2.4 >2.4 ==2.4 >=1.13,<3 ~=2.5.0"


@pytest.mark.parametrize("specifier", SPECIFIERS.split())
@pytest.mark.parametrize("release", ["2.4.0", "2.4.1", "2.5.1", "2.10.0"])
def test_specifiers_are_met_as_packaging_says(specifier: str, release: str) -> None:
    specifiers = pytest.importorskip("packaging.specifiers")
    assert satisfies(release, specifier) is specifiers.SpecifierSet(specifier).contains(release)


def test_hostile_metadata_costs_little_time(tmp_path: Path) -> None:
    """Texts that a pattern could try in very many ways, a megabyte each."""
    start = time.process_time()
    assert torch_requirement(["torch" + " " * 1_000_000 + "x"]) is None
    assert torch_requirement(["torch" + " " * 1_000_000 + "==2.4.0"]) == "==2.4.0"
    for text in ("MAPPING\n", "MAPPING={\n", "MAPPING = \n", "'a'"):
        (tmp_path / "__editable___x_finder.py").write_text(text * (1_000_000 // len(text)))
        assert editable_mapping(str(tmp_path)) == {}
    assert satisfies("2.4.0", ">=" + "9" * 5_000) is None
    assert satisfies("9" * 5_000 + ".1.0", ">=2.4") is None
    assert time.process_time() - start < 5


def test_a_specifier_that_is_not_a_plain_release_is_unclear() -> None:
    assert satisfies("2.4.0", "==2.4.0+cu121") is None
    assert satisfies("2.4.0", ">=2.5.dev1") is None
