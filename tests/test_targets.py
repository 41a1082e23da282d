"""Which files an argument stands for: a file, a directory, a wheel, an installed package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trees import make_distribution, make_wheel, shared_object

from fa_forensics.errors import BrokenWheel, NotAnElfFile, UnreadableFile, UsageError
from fa_forensics.facts import targets as targets_module
from fa_forensics.facts.targets import Targets, concerns, find_targets

MODULE = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def torch_user() -> bytes:
    return shared_object((), ("_ZN2at6Tensor4dataEv",))


def python_module() -> bytes:
    return shared_object(("PyInit_ext",))


def other_library() -> bytes:
    return shared_object(("ordinary",))


def paths(found: Targets) -> list[str]:
    return [target.path for target in found]


def refusal(argument: str | Path, *site_dirs: Path) -> tuple[str, str | None]:
    """The message and the hint of a UsageError."""
    with pytest.raises(UsageError) as caught:
        find_targets(os.fspath(argument), [str(site) for site in site_dirs])
    assert "\n" not in caught.value.message and caught.value.exit_code == 2
    return caught.value.message, caught.value.hint


def test_file_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "anything.so"
    file.write_text("not even ELF: the reader says so")
    (target,) = find_targets(str(file), [])
    assert (target.path, target.member, target.display) == (str(file), None, str(file))


def test_directory_gives_modules_and_users_of_torch_or_cuda_in_order(tmp_path: Path) -> None:
    for name, data in {
        "b/_C.so": torch_user(),
        "a/ext.so": python_module(),
        f"a/{MODULE}": b"damaged",
        "c/libcuda_user.so": shared_object((), ("__cudaRegisterFatBinary",)),
        "c/_core.abi3.so": other_library(),
        "c/libother.so": other_library(),
        "c/libother.so.1": torch_user(),
        "c/script.so": b"INPUT(-lfoo)",
        "c/empty.so": b"",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    expected = ["a/ext.so", f"a/{MODULE}", "b/_C.so", "c/_core.abi3.so", "c/libcuda_user.so"]
    assert paths(find_targets(str(tmp_path), [])) == [str(tmp_path / name) for name in expected]


def test_objects_that_cannot_be_judged_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    stripped = bytearray(other_library())
    stripped[40:48] = bytes(8)  # e_shoff: no section headers
    file.write_bytes(stripped)
    assert concerns(str(file))
    file.write_bytes(b"\x7fELF\1\1" + bytes(100))  # 32 bits
    assert concerns(str(file))
    file.write_bytes(other_library())
    assert not concerns(str(file))


def test_links_may_make_loops_and_give_one_path_each(tmp_path: Path) -> None:
    real = tmp_path / "lib" / "pkg"
    real.mkdir(parents=True)
    (real / "_C.so").write_bytes(torch_user())
    (real / "again").symlink_to("..")
    (tmp_path / "a_lib64").symlink_to("lib")  # listed before "lib", yet not preferred
    (real / "gone.so").symlink_to("removed.so")
    found = find_targets(str(tmp_path), [])
    assert paths(found) == [str(real / "_C.so")]
    assert found.notes == (f"{real}/gone.so is a link to a file that does not exist",)


def test_linked_directory_outside_is_entered(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "_C.so").write_bytes(torch_user())
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "sub").symlink_to(tmp_path / "store")
    assert paths(find_targets(str(tmp_path / "pkg"), [])) == [str(tmp_path / "pkg/sub/_C.so")]


def test_directory_with_nothing_to_inspect_says_what_was_looked_for(tmp_path: Path) -> None:
    looked = "looked for shared objects (*.so) that are Python modules or use torch or CUDA"
    message, _ = refusal(tmp_path)
    assert message == f"{tmp_path} holds nothing to inspect: {looked}"
    (tmp_path / "libother.so").write_bytes(other_library())
    message, _ = refusal(tmp_path)
    assert message.endswith(f"{looked}; 1 other shared objects lie there")


def test_bounds_are_kept_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"m{number}.so").write_bytes(torch_user())
    monkeypatch.setattr(targets_module, "MAX_TARGETS", 3)
    found = find_targets(str(tmp_path), [])
    assert [Path(path).name for path in paths(found)] == ["m0.so", "m1.so", "m2.so"]
    assert found.notes == (f"{tmp_path} holds 5 such files, only the first 3 were taken",)


def test_unlistable_directory_is_noted_and_the_rest_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "_C.so").write_bytes(torch_user())
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path == refused:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    refused = str(tmp_path / "closed")
    found = find_targets(str(tmp_path), [])
    assert paths(found) == [str(tmp_path / "_C.so")]
    assert found.notes == (f"cannot list {tmp_path}/closed: Permission denied",)
    refused = str(tmp_path)
    with pytest.raises(UnreadableFile, match="cannot list .*: Permission denied"):
        find_targets(str(tmp_path), [])


@pytest.mark.parametrize("call", ["open", "lstat"])
def test_unreadable_file_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(torch_user())

    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(UnreadableFile, match=f"cannot read {file}: Permission denied") as caught:
        find_targets(str(file), [])
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("place", ["pipe.so", "pipe.whl", "top_level.txt"])
def test_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, place: str) -> None:
    info = make_distribution(tmp_path, "pkg", "1", ["ext.so"])
    (tmp_path / "ext.so").write_bytes(torch_user())
    pipe = (info if place == "top_level.txt" else tmp_path) / place
    os.mkfifo(pipe)
    if place == "top_level.txt":
        (info / "RECORD").unlink()
        assert "without any compiled extension" in refusal("pkg", tmp_path)[0]
    elif place == "pipe.whl":
        with pytest.raises(UnreadableFile, match="pipe.whl: not a regular file"):
            find_targets(str(pipe), [])
    else:
        assert paths(find_targets(str(pipe), [])) == [str(pipe)]  # the reader says so
        assert not concerns(str(pipe))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_read_permission_is_refused_by_the_system(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(torch_user())
    file.chmod(0)
    with pytest.raises(UnreadableFile, match="Permission denied"):
        find_targets(str(file), [])


def test_dead_link_and_link_to_itself_are_unreadable(tmp_path: Path) -> None:
    (tmp_path / "dead.so").symlink_to("gone.so")
    (tmp_path / "loop.so").symlink_to("loop.so")
    with pytest.raises(UnreadableFile, match="is a link to .*, which does not exist"):
        find_targets(str(tmp_path / "dead.so"), [])
    with pytest.raises(UnreadableFile, match="Too many levels of symbolic links"):
        find_targets(str(tmp_path / "loop.so"), [])


def test_missing_path_gets_its_nearest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MODULE).write_bytes(b"")
    missing = tmp_path / MODULE.replace("attn_2", "atn_2")
    message, hint = refusal(missing)
    assert message == f"{missing} does not exist"
    assert hint == f"did you mean {tmp_path / MODULE}?"
    assert refusal(tmp_path / "no" / "x.so") == (
        f"{tmp_path}/no/x.so does not exist", f"{tmp_path}/no does not exist either",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    make_distribution(tmp_path / "site", "flash-attn", "2.6.3", [])
    message, hint = refusal("flash_atn", tmp_path / "site")
    assert message == (
        "flash_atn is no file or directory here, and no package of that name is installed "
        f"in {tmp_path}/site"
    )
    elsewhere = "name the environment that it is installed in: --python PATH"
    assert hint == f"did you mean flash-attn? If not, {elsewhere}"
    assert refusal("unheard-of", tmp_path / "site")[1] == elsewhere
    assert refusal("")[0] == "an empty argument names no file"
    assert refusal("a\0b")[0] == "a\0b does not exist"


# ---- installed packages


@pytest.mark.parametrize("name", ["flash-attn", "flash_attn", "Flash.Attn"])
def test_package_name_gives_the_files_of_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    site = tmp_path / "site"
    files = [MODULE, "flash_attn/_C.so", "flash_attn.libs/libother.so", "flash_attn/__init__.py"]
    make_distribution(site, "flash-attn", "2.6.3", files)
    (site / "flash_attn.libs").mkdir()
    (site / "flash_attn").mkdir()
    (site / MODULE).write_bytes(python_module())
    (site / "flash_attn" / "_C.so").write_bytes(torch_user())
    (site / "flash_attn.libs" / "libother.so").write_bytes(other_library())
    (site / "stranger.so").write_bytes(torch_user())
    found = find_targets(name, [str(tmp_path / "empty"), str(site)])
    assert paths(found) == [str(site / "flash_attn/_C.so"), str(site / MODULE)]
    assert found.package is not None and found.package.version == "2.6.3"


def test_package_without_its_compiled_part_says_so(tmp_path: Path) -> None:
    make_distribution(tmp_path, "flash-attn", "2.6.3", ["flash_attn/__init__.py"])
    message, hint = refusal("flash-attn", tmp_path)
    assert message == (
        f"flash-attn 2.6.3 is installed in {tmp_path} without any compiled extension (*.so)"
    )
    assert hint is None
    make_distribution(tmp_path, "xformers", "0.0.34", ["xformers/_C.so"])
    message, hint = refusal("xformers", tmp_path)
    assert message.endswith(f": {tmp_path}/xformers/_C.so is listed in RECORD but is not there")
    assert hint == "python -m pip install --force-reinstall --no-deps xformers==0.0.34"


def test_half_installed_package_is_inspected_with_a_note(tmp_path: Path) -> None:
    make_distribution(tmp_path, "x", "1", ["a.so", "b.so"])
    (tmp_path / "a.so").write_bytes(torch_user())
    found = find_targets("x", [str(tmp_path)])
    assert paths(found) == [str(tmp_path / "a.so")]
    assert found.notes == (f"{tmp_path}/b.so is listed in RECORD but is not there",)


def test_module_names_are_found_without_metadata(tmp_path: Path) -> None:
    (tmp_path / "xformers").mkdir()
    (tmp_path / "xformers" / "_C.so").write_bytes(torch_user())
    (tmp_path / "xformers" / "_C_other.so").write_bytes(torch_user())
    (tmp_path / MODULE).write_bytes(python_module())
    site = [str(tmp_path)]
    assert paths(find_targets("xformers", site)) == [
        str(tmp_path / "xformers" / "_C.so"), str(tmp_path / "xformers" / "_C_other.so"),
    ]  # fmt: skip
    assert paths(find_targets("xformers._C", site)) == [str(tmp_path / "xformers" / "_C.so")]
    assert paths(find_targets("flash_attn_2_cuda", site)) == [str(tmp_path / MODULE)]


def test_editable_install_leads_to_its_source_tree(tmp_path: Path) -> None:
    site, source = tmp_path / "site", tmp_path / "src" / "flash_attn"
    source.mkdir(parents=True)
    (source / "_C.so").write_bytes(torch_user())
    finder = "__editable___flash_attn_2_6_3_finder.py"
    make_distribution(site, "flash-attn", "2.6.3", [finder], top_level__txt="flash_attn\n")
    (site / finder).write_text(f"MAPPING = {{'flash_attn': {str(source)!r}}}\n")
    assert paths(find_targets("flash_attn", [str(site)])) == [str(source / "_C.so")]


# ---- wheels


def test_wheel_members_are_unpacked_with_their_siblings_and_removed_again(tmp_path: Path) -> None:
    members = {
        "pkg/_C.so": torch_user(), MODULE: python_module(), "pkg/libplain.so": other_library(),
        "pkg.libs/libcudart-12.so.1": other_library(),
    }  # fmt: skip
    file = str(make_wheel(tmp_path, members))
    with find_targets(file, []) as found:
        assert [(t.member, t.display) for t in found] == [
            (MODULE, f"{file}: {MODULE}"), ("pkg/_C.so", f"{file}: pkg/_C.so"),
        ]  # fmt: skip
        target = found.targets[1]
        sibling = Path(target.path).parent.parent / "pkg.libs" / "libcudart-12.so.1"
        assert Path(target.path).read_bytes() == members["pkg/_C.so"]
        assert sibling.read_bytes() == members["pkg.libs/libcudart-12.so.1"]
        assert found.wheel is not None and found.wheel.requires == ("torch==2.3.0",)
    assert not os.path.exists(target.path) and not sibling.exists()


def test_wheel_members_with_needless_parts_get_their_plain_names(tmp_path: Path) -> None:
    file = str(make_wheel(tmp_path, {"./pkg//_C.so": torch_user()}))
    with find_targets(file, []) as found:
        (target,) = found
        assert (target.member, target.display) == ("pkg/_C.so", f"{file}: pkg/_C.so")
        assert target.path.endswith("/pkg/_C.so")


def test_wheel_for_another_system_or_without_extension_is_refused(tmp_path: Path) -> None:
    windows = make_wheel(tmp_path, {"pkg/_C.pyd": b"MZ"}, "pkg-1.0-cp311-cp311-win_amd64.whl")
    with pytest.raises(NotAnElfFile, match=r"is a wheel for win_amd64: .* \(pkg/_C.pyd …\)"):
        find_targets(str(windows), [])
    pure = make_wheel(tmp_path, {"pkg/a.py": b""}, "pkg-1.0-py3-none-any.whl")
    assert refusal(pure)[0] == f"{pure} holds no extension (ELF file named *.so)"
    library = make_wheel(tmp_path, {"pkg/libx.so.12": other_library()}, "pkg-2.0-py3-none-any.whl")
    assert refusal(library)[0].endswith("only the libraries pkg/libx.so.12 …")


def test_nothing_is_left_behind_when_a_wheel_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    evil = make_wheel(tmp_path, {"../evil.so": torch_user()})
    with pytest.raises(BrokenWheel, match="would leave its directory"):
        find_targets(str(evil), [])
    plain = make_wheel(tmp_path, {"pkg/libplain.so": other_library()})
    assert "1 other shared objects lie in it" in refusal(plain)[0]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_plain_files_import_no_zip_machinery(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(torch_user())
    code = (
        "import sys\n"
        "from fa_forensics.facts.targets import find_targets\n"
        f"print(len(find_targets({str(tmp_path / 'x.so')!r}, [])),\n"
        "      sorted({'zipfile', 'tempfile', 'shutil', 'difflib', 'pathlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], check=False, capture_output=True, text=True,
        timeout=60, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("1 []\n", "")


def test_a_link_that_leads_round_hides_none_of_its_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "own.cpython-311-x86_64-linux-gnu.so"
    file.write_bytes(b"no ELF file")
    for name in ("loop", "loop.so"):
        (tmp_path / name).symlink_to(name)
    assert [target.path for target in find_targets(str(tmp_path), [])] == [str(file)]


def test_a_file_that_may_not_be_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "_C.so"
    file.write_bytes(b"no ELF file")
    assert not concerns(str(file))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert concerns(str(file))


def test_a_package_whose_metadata_cannot_be_read_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "bad-1.0.dist-info" / "METADATA").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        find_targets("bad", [str(tmp_path)])
    assert "bad-1.0.dist-info is there, but no metadata can be read" in str(caught.value.hint)
