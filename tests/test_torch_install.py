"""The torch of an environment: its version, its flavour, and which one is taken."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trees import (
    CXX11_ERROR,
    PRE_CXX11_ERROR,
    environ,
    make_distribution,
    make_prefix,
    make_torch,
    make_venv,
    shared_object,
)

from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.torch_install import (
    _has_string_substitution,
    flavour_of,
    release_of,
)
from fa_forensics.resolve.torch_import import _read_preloads

#: What c++filt prints for the substitution Ss.
OLD_STRING = "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"
EXPORTS = Path(__file__).parent.parent / "fixtures" / "torch_exports"


def look(python: str | os.PathLike[str], **variables: str | os.PathLike[str]) -> Environment:
    return find_environment(os.fspath(python), None, environ(**variables))


def libc10_names(release: str) -> list[str]:
    """The names that a real libc10.so defines, as nm listed them."""
    with lzma.open(EXPORTS / f"{release}.json.xz") as stream:
        record = json.load(stream)
    libraries = [library for d in record["distributions"] for library in d["libraries"]]
    c10 = next(library for library in libraries if library["path"].endswith("/libc10.so"))
    return sorted({name.split("@")[0] for names in c10["symbols"].values() for name in names})


@pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt on PATH")
@pytest.mark.parametrize("release", ["2.4.0+cu121", "2.13.0+cpu"])
def test_std_string_is_seen_in_exactly_the_names_where_the_demangler_shows_it(
    release: str,
) -> None:
    """All c10 names of a real build with the letters "Ss" in them."""
    names = [n for n in libc10_names(release) if n.startswith(("_ZN3c10", "_ZNK3c10"))]
    assert len(names) > 300
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True, timeout=60
    )
    shown = [
        n for n, text in zip(names, done.stdout.splitlines(), strict=True) if OLD_STRING in text
    ]
    assert bool(shown) is (release == "2.4.0+cu121")
    assert [name for name in names if _has_string_substitution(name.encode())] == shown


@pytest.mark.parametrize(
    ("release", "cuda", "flavour"),
    [
        ("2.4.0+cu121", "12.1", "pre-cxx11"), ("2.6.0+cu124", "12.4", "pre-cxx11"),
        ("2.9.1+cu128", "12.8", "cxx11"), ("2.13.0+cpu", None, "cxx11"),
    ],
)  # fmt: skip
def test_torch_with_the_names_of_a_real_build_is_recognised(
    tmp_path: Path, release: str, cuda: str | None, flavour: str
) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    torch = make_torch(site, release, cuda)
    (torch / "lib" / "libc10.so").write_bytes(shared_object(tuple(libc10_names(release))))
    found = look(tmp_path / "env").torch
    assert found is not None
    assert (found.version, found.cuda, found.cxx11_abi) == (release, cuda, flavour)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.4.0+cu121", "2.4.0"), ("2.13.0", "2.13.0"), ("2.6.0a0+ecf3bae40a.nv25.01", "2.6.0"),
        ("2.7.0.dev20250310+cu128", "2.7.0"), ("1.13.1+cu117.with.pypi.cudnn", "1.13.1"),
        ("2.5.0a0+gitunknown", "2.5.0"), ("2.4", "2.4.0"), ("weird", "weird"),
    ],
)  # fmt: skip
def test_release_is_the_leading_three_numbers(version: str, release: str) -> None:
    assert release_of(version) == release


@pytest.mark.parametrize("pre_cxx11", [True, False])
def test_torch_is_read_without_being_imported(tmp_path: Path, pre_cxx11: bool) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    path = make_torch(site, pre_cxx11=pre_cxx11)
    found = look(tmp_path / "env")
    torch = found.torch
    assert torch is not None and found.torch_problem is None and "torch" not in sys.modules
    assert (torch.version, torch.release, torch.cuda, torch.hip) == (
        "2.4.0+cu121", "2.4.0", "12.1", None,
    )  # fmt: skip
    assert (torch.path, torch.lib_dir) == (str(path), str(path / "lib"))
    assert torch.git_version == "e4ee3be4063b7c430974252fdf7db42273388d86"
    assert torch.has_cuda_libs and torch.requires == ("filelock",) and not torch.editable
    symbol = PRE_CXX11_ERROR if pre_cxx11 else CXX11_ERROR
    assert torch.cxx11_abi == ("pre-cxx11" if pre_cxx11 else "cxx11")
    assert torch.cxx11_evidence == f"{path}/lib/libc10.so defines {symbol}"


def test_only_names_that_c10_defines_show_the_flavour(tmp_path: Path) -> None:
    """A pre-cxx11 libc10 refers to, and carries, names of the newer flavour all the same."""
    library = tmp_path / "libc10.so"
    foreign = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE10_M_replaceEmmPKcm"
    library.write_bytes(shared_object((PRE_CXX11_ERROR, foreign), (CXX11_ERROR,)))
    assert flavour_of(str(library))[0] == "pre-cxx11"
    library.write_bytes(shared_object(("_ZN3c1011ProcessSssvEv", "_ZN3c106DeviceC1Ev")))
    abi, evidence, problem = flavour_of(str(library))
    assert (abi, problem) == ("unknown", None)
    assert evidence == f"{library} defines 2 c10 names, none with a std::string"


def test_half_installed_torch_is_named_as_such(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    torch = make_torch(site)
    (torch / "lib" / "libc10.so").unlink()
    found = look(tmp_path / "env")
    assert found.torch is not None and found.torch.cxx11_abi == "unknown"
    assert found.torch_problem == f"{torch}/lib/libc10.so is missing: this torch is not whole"
    (torch / "version.py").write_text("__version__ = None\n")
    assert look(tmp_path / "env").torch_problem == (
        f"cannot tell the version of {torch} from its version.py: it assigns no __version__"
    )
    (torch / "version.py").unlink()
    found = look(tmp_path / "env")
    assert found.torch is None
    assert found.torch_problem == (
        f"torch/version.py is missing in {site}: what is there is no whole torch"
    )


def test_pipe_in_place_of_the_version_or_libc10_is_not_waited_for(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    torch = make_torch(site)
    (torch / "lib" / "libc10.so").unlink()
    os.mkfifo(torch / "lib" / "libc10.so")
    assert look(tmp_path / "env").torch_problem == (f"{torch}/lib/libc10.so is not a regular file")
    (torch / "version.py").unlink()
    os.mkfifo(torch / "version.py")
    assert look(tmp_path / "env").torch_problem == (
        f"cannot tell the version of {torch} from its version.py: not a regular file"
    )


def test_list_of_preloads_in_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "__init__.py")
    problems: list[str] = []
    assert _read_preloads(str(tmp_path), problems) == ([], False)
    assert problems == [f"cannot read {tmp_path}/__init__.py: not a regular file"]


def test_no_torch_says_where_was_looked(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    found = look(tmp_path / "env")
    assert found.torch is None
    assert found.torch_problem == f"no torch in {tmp_path / 'env'}; looked in: {site}"


def test_first_torch_on_the_path_wins_and_others_are_listed(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    second = make_torch(site, "2.13.0+cpu", None, pre_cxx11=False)
    first = make_torch(tmp_path / "shadow", "2.4.0+cu121")
    # A leftover directory without __init__.py does not hide a real package.
    (tmp_path / "leftover" / "torch" / "lib").mkdir(parents=True)
    path = os.pathsep.join(str(tmp_path / name) for name in ("leftover", "shadow"))
    found = look(tmp_path / "env", PYTHONPATH=path)
    assert found.torch is not None and found.torch.path == str(first)
    assert found.other_torches == (str(second), str(tmp_path / "leftover" / "torch"))


def test_editable_torch_is_found_through_pth_lines_and_finders(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base")
    source = tmp_path / "pytorch"
    torch = make_torch(source, "2.7.0a0+git1234567", pre_cxx11=False)
    (source / "setup.py").write_text("")
    lines = make_venv(tmp_path / "lines", base)
    (lines / "__editable__.torch-2.7.0a0.pth").write_text(f"{source}\n")
    finder = make_venv(tmp_path / "finder", base)
    (finder / "__editable___torch_2_7_0a0_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'functorch': '/x', 'torch': {str(torch)!r}}}\n"
    )
    for name in ("lines", "finder"):
        found = look(tmp_path / name).torch
        assert found is not None, name
        assert (found.path, found.release, found.editable) == (str(torch), "2.7.0", True)


def test_requirements_come_from_the_dist_info_of_that_version(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    make_torch(site, "2.4.0+cu121")
    make_distribution(site, "torch", "2.1.0", [], requires=["left-over"])
    found = look(tmp_path / "env").torch
    assert found is not None and found.requires == ("filelock",)
