"""Which copy of a library wins, what it lacks, and the command that cures it.

The environments are made of tiny libraries that load as torch's do; a real dlopen in a child
says what the loader does with the same files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.cuda_wheels import library
from support.torch_trees import NEWER, OLDER, VERSION_12, Tree, build, needing, real_load, variables
from trees import make_prefix

from fa_forensics.copies import copies_lines
from fa_forensics.facts.environment import find_environment
from fa_forensics.pipeline import Options, inspect
from fa_forensics.report import Finding
from fa_forensics.report_env import Line


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return build(tmp_path)


def lines(tree: Tree, environ: Mapping[str, str]) -> dict[str, Line]:
    environment = find_environment(str(tree.prefix), None, environ)
    return {line.subject: line for line in copies_lines(environment, environ)}


def finding(tree: Tree, soname: str = VERSION_12, **environ: str | os.PathLike[str]) -> Finding:
    line = lines(tree, variables(**environ))[soname]
    assert line.finding is not None, line
    return line.finding


def test_a_whole_environment_takes_its_own_copy(tree: Tree) -> None:
    line = lines(tree, variables())[VERSION_12]
    assert (line.state, line.finding) == ("ok", None)
    taken = line.facts["taken"]
    assert isinstance(taken, dict)
    assert taken["path"] == str(tree.nvjitlink)
    assert taken["found_by"] == "RUNPATH"
    assert real_load(tree.global_deps) == ""


def test_an_older_copy_on_library_path_is_named_with_the_one_it_shadows(tree: Tree) -> None:
    found = finding(tree, LD_LIBRARY_PATH=tree.old)
    assert (found.code, found.severity) == ("FA830", "error")
    assert str(tree.old / VERSION_12) in found.title
    assert "(LD_LIBRARY_PATH) goes before torch's own" in found.title
    assert any(e.file == str(tree.nvjitlink) and "has them all" in e.text for e in found.evidence)


def test_the_text_that_torch_would_end_with_is_the_loaders(tree: Tree) -> None:
    found = finding(tree, LD_LIBRARY_PATH=tree.old)
    said = real_load(tree.global_deps, LD_LIBRARY_PATH=str(tree.old))
    assert said.endswith("undefined symbol: __nvJitLinkCreate_12_1, version libnvJitLink.so.12")
    quoted = found.notes[0].partition('"')[2].rpartition('"')[0]
    assert os.path.basename(said.partition(": ")[0]) + ": " + said.partition(": ")[2] == quoted


def test_the_command_keeps_the_other_directories(tree: Tree) -> None:
    found = finding(tree, LD_LIBRARY_PATH=f"/opt/a b:{tree.old}:/opt/c")
    assert found.help[0] == "export LD_LIBRARY_PATH='/opt/a b:/opt/c'"
    assert found.help[1] == f"{tree.python} -c 'import torch'"


def test_the_command_cures(tree: Tree) -> None:
    assert finding(tree, LD_LIBRARY_PATH=tree.old).help[0] == "unset LD_LIBRARY_PATH"
    assert real_load(tree.global_deps) == ""


def test_inspect_says_that_torch_itself_would_not_import(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_library = library("libc10.so", {"": ("own",)})
    shutil.copy(torch_library, tree.site / "torch" / "lib" / "libc10.so")
    path = "$ORIGIN/torch/lib"
    built = needing("ext.so", ["own"], [torch_library], path, "--enable-new-dtags")
    target = shutil.copy(built, tree.site / "ext.so")
    options = Options(python=str(tree.prefix), confirm=False)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert "FA603" not in [f.code for f in inspect([str(target)], options).targets[0].findings]
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tree.old))
    report = inspect([str(target)], options).targets[0]
    found = next(f for f in report.findings if f.code == "FA603")
    assert report.verdict == "fails"
    assert "(LD_LIBRARY_PATH) has no __nvJitLinkCreate_12_1" in found.title
    assert found.help[0] == "unset LD_LIBRARY_PATH"


def test_a_copy_that_has_all_names_is_a_warning_alone(tree: Tree) -> None:
    shutil.copy(library(VERSION_12, {VERSION_12: NEWER}), tree.old / VERSION_12)
    own = library(VERSION_12, {VERSION_12: (*NEWER, "__nvJitLinkCreate_12_9")})
    shutil.copy(own, tree.nvjitlink)
    (info,) = tree.site.glob("nvidia_nvjitlink*")
    shutil.rmtree(info)
    found = finding(tree, LD_LIBRARY_PATH=tree.old)
    assert (found.code, found.severity) == ("FA833", "warning")
    assert real_load(tree.global_deps, LD_LIBRARY_PATH=str(tree.old)) == ""


def test_a_newer_copy_in_front_is_a_note(tree: Tree) -> None:
    newer = library(VERSION_12, {VERSION_12: (*NEWER, "__nvJitLinkCreate_12_9")})
    shutil.copy(newer, tree.old / VERSION_12)
    found = finding(tree, LD_LIBRARY_PATH=tree.old)
    assert (found.code, found.severity) == ("FA833", "note")


def test_the_same_version_in_front_is_fine(tree: Tree) -> None:
    shutil.copy(tree.nvjitlink, tree.old / VERSION_12)
    line = lines(tree, variables(LD_LIBRARY_PATH=tree.old))[VERSION_12]
    assert (line.state, line.finding) == ("ok", None)
    assert "1 other copy" in line.text


def test_an_older_wheel_without_a_better_copy_asks_for_the_pinned_one(tmp_path: Path) -> None:
    tree = build(tmp_path, own=OLDER, pin="12.0.140")
    shutil.rmtree(tree.old)
    metadata = tree.site / "torch-2.4.0+cu121.dist-info" / "METADATA"
    text = metadata.read_text()
    pin = 'Requires-Dist: nvidia-nvjitlink-cu12 (==12.1.105) ; platform_system == "Linux"\n'
    metadata.write_text(text.replace("Requires-Dist: filelock\n", pin))
    found = finding(tree)
    assert found.code == "FA831"
    assert found.help == (
        f'{tree.python} -m pip install --force-reinstall "nvidia-nvjitlink-cu12==12.1.105"',
    )
    assert "undefined symbol" in real_load(tree.global_deps)


def test_a_library_that_is_gone_is_told_with_what_needs_it(tree: Tree) -> None:
    tree.nvjitlink.unlink()
    shutil.rmtree(tree.old)
    found = finding(tree)
    assert (found.code, found.severity) == ("FA834", "error")
    assert "libcusparse.so.12 needs libnvJitLink.so.12" in found.title
    assert "cannot open shared object file" in real_load(tree.global_deps)


def test_a_preloaded_copy_is_taken_out_by_its_own_variable(tree: Tree) -> None:
    old = tree.old / VERSION_12
    found = finding(tree, LD_PRELOAD=f"/opt/libother.so {old}")
    assert found.code == "FA830"
    assert found.help[0] == "export LD_PRELOAD=/opt/libother.so"
    said = real_load(tree.global_deps, LD_PRELOAD=str(old))
    assert "undefined symbol: __nvJitLinkCreate_12_1" in said


def test_a_damaged_copy_in_front_is_told_in_one_line(tree: Tree) -> None:
    (tree.old / VERSION_12).write_bytes(b"\x7fELF" + b"\0" * 10)
    line = lines(tree, variables(LD_LIBRARY_PATH=tree.old))[VERSION_12]
    assert line.finding is not None
    assert line.finding.code == "FA834"
    assert "cannot be used" in line.finding.title
    said = real_load(tree.global_deps, LD_LIBRARY_PATH=str(tree.old))
    assert "file too short" in said


def test_a_copy_under_a_name_of_its_own_is_no_rival(tree: Tree) -> None:
    bundled = tree.site / "torchvision.libs"
    bundled.mkdir()
    shutil.copy(tree.old / VERSION_12, bundled / "libnvJitLink-0123abcd.so.12.0.140")
    line = lines(tree, variables())[VERSION_12]
    assert (line.state, "other cop" in line.text) == ("ok", False)
    others = line.facts["others"]
    assert isinstance(others, list)
    assert [row["places"] for row in others] == [["bundled with a wheel"]]


def test_every_place_of_one_file_is_told_once(tree: Tree) -> None:
    toolkit = tree.prefix.parent / "cuda"
    (toolkit / "lib64").mkdir(parents=True)
    (toolkit / "lib64" / "libcudart.so.99").write_bytes(
        library("libcudart.so.99", {"libcudart.so.99": ("cudaMalloc",)}).read_bytes()
    )
    (toolkit / "lib64" / "libcudart.so").symlink_to("libcudart.so.99")
    environ = variables(CUDA_HOME=toolkit, LD_LIBRARY_PATH=toolkit / "lib64")
    line = lines(tree, environ)["libcudart.so.99"]
    assert line.state == "note"
    taken = line.facts["taken"]
    assert isinstance(taken, dict)
    assert taken["path"] == f"{toolkit}/lib64/libcudart.so.99"
    assert {"LD_LIBRARY_PATH", "CUDA toolkit"} <= set(taken["places"])
    assert line.facts["others"] == []


def test_a_label_that_the_file_contradicts_is_a_warning(tmp_path: Path) -> None:
    tree = build(tmp_path, pin="12.8.93")
    found = finding(tree)
    assert (found.code, found.severity) == ("FA837", "warning")
    assert "labelled 12.8.93" in found.title


@pytest.fixture
def cplusplus(tree: Tree) -> Tree:
    """The environment with a torch that needs GLIBCXX_3.4.30, and older and newer libraries."""
    older = library("libstdc++.so.6", {"GLIBCXX_3.4.9": ("old_name",)})
    newer = library(
        "libstdc++.so.6", {"GLIBCXX_3.4.9": ("old_name",), "GLIBCXX_3.4.30": ("new_name",)}
    )
    shutil.copy(older, tree.old / "libstdc++.so.6")
    (tree.prefix / "lib").mkdir(exist_ok=True)
    shutil.copy(newer, tree.prefix / "lib" / "libstdc++.so.6")
    built = needing("_C.so", ["new_name"], [newer], "$ORIGIN/../../..", "--enable-new-dtags")
    shutil.copy(built, tree.site / "torch" / "_C.cpython-311.so")
    (tree.old / VERSION_12).unlink()
    return tree


def test_an_older_libstdcxx_in_front_is_told_with_what_brings_the_version(cplusplus: Tree) -> None:
    found = finding(cplusplus, "libstdc++.so.6", LD_LIBRARY_PATH=cplusplus.old)
    assert (found.code, found.severity) == ("FA832", "error")
    assert "needs GLIBCXX_3.4.30 of libstdc++.so.6" in found.title
    holder = str(cplusplus.prefix / "lib" / "libstdc++.so.6")
    assert any(e.file == holder and e.text.startswith("has it") for e in found.evidence)
    assert "GCC 12" in found.notes[0]
    assert found.help[0] == "unset LD_LIBRARY_PATH"


def test_the_loader_says_the_same_of_the_older_libstdcxx(cplusplus: Tree) -> None:
    extension = cplusplus.site / "torch" / "_C.cpython-311.so"
    said = real_load(extension, LD_LIBRARY_PATH=str(cplusplus.old))
    assert "version `GLIBCXX_3.4.30' not found" in said
    assert real_load(extension) == ""
    line = lines(cplusplus, variables())["libstdc++.so.6"]
    assert (line.state, line.finding) == ("ok", None)


def test_torch_from_elsewhere_in_front_is_told(tree: Tree) -> None:
    front = tree.prefix.parent / "front"
    front.mkdir()
    own = tree.site / "torch" / "lib"
    shutil.copy(library("libc10.so", {"": ("own",)}), own / "libc10.so")
    shutil.copy(library("libc10.so", {"": ("other",)}), front / "libc10.so")
    built = needing("_C.so", ["own"], [own / "libc10.so"], "$ORIGIN/lib", "--enable-new-dtags")
    shutil.copy(built, tree.site / "torch" / "_C.cpython-311.so")
    environ = variables(LD_LIBRARY_PATH=front)
    line = lines(tree, environ)["torch's libraries"]
    assert line.finding is not None
    assert line.finding.code == "FA830"
    assert "own" in line.finding.title
    said = real_load(tree.site / "torch" / "_C.cpython-311.so", LD_LIBRARY_PATH=str(front))
    assert said.endswith("undefined symbol: own")


def test_torch_of_another_build_in_front_is_one_finding(tree: Tree) -> None:
    front = tree.prefix.parent / "front"
    front.mkdir()
    own = tree.site / "torch" / "lib"
    first = library("libc10.so", {"": ("name",)})
    second = library("libtorch.so", {"": ("other",)})
    for built, place in ((first, own), (second, own)):
        shutil.copy(built, place / ("libc10.so" if built is first else "libtorch.so"))
    flag = "-Wl,--build-id=0x0123456789abcdef"
    shutil.copy(library("libc10.so", {"": ("name",)}, "", flag), front / "libc10.so")
    shutil.copy(library("libtorch.so", {"": ("other",)}, "", flag), front / "libtorch.so")
    built = needing(
        "_C.so", ["name", "other"], [first, second], "$ORIGIN/lib", "--enable-new-dtags"
    )
    shutil.copy(built, tree.site / "torch" / "_C.cpython-311.so")
    line = lines(tree, variables(LD_LIBRARY_PATH=front))["torch's libraries"]
    assert line.finding is not None
    assert (line.finding.code, line.finding.help[0]) == ("FA838", "unset LD_LIBRARY_PATH")
    assert "and 1 other library" in line.finding.title
    same = lines(tree, variables())["torch's libraries"]
    assert (same.state, same.finding) == ("ok", None)


def test_an_environment_without_torch_says_that_it_could_not_look(tmp_path: Path) -> None:
    tree = build(tmp_path)
    shutil.rmtree(tree.site / "torch")
    found = lines(tree, variables())["library copies"]
    assert found.state == "could-not-look"
    assert "no torch" in found.text


def test_a_musl_environment_says_that_it_could_not_look(tmp_path: Path) -> None:
    make_prefix(tmp_path / "musl", loader="/lib/ld-musl-x86_64.so.1")
    environment = find_environment(str(tmp_path / "musl"), None, variables())
    (line,) = copies_lines(environment, variables())
    assert line.state == "could-not-look"
    assert "musl" in line.text


def test_a_directory_that_may_not_be_listed_is_one_line(tree: Tree) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may list every directory")
    tree.old.chmod(0)
    try:
        found = lines(tree, variables(LD_LIBRARY_PATH=tree.old))
    finally:
        tree.old.chmod(0o755)
    assert found["library copies"].state == "could-not-look"
    assert found[VERSION_12].state == "ok"


def test_a_search_path_of_files_and_dead_links_is_passed_over(tree: Tree) -> None:
    junk = tree.prefix.parent / "junk"
    junk.mkdir()
    (junk / VERSION_12).symlink_to("nowhere")
    os.mkfifo(junk / "libcudart.so.12")
    (junk / "libnccl.so.2").mkdir()
    environ = variables(LD_LIBRARY_PATH=f"{junk}:{tree.python}:/nonexistent")
    assert lines(tree, environ)[VERSION_12].state == "ok"
