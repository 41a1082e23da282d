"""Toolkits for builds are found as torch's build helper finds them, and read without a start."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.cuda_wheels import compiled
from support.material import require

from fa_forensics.facts.toolkit import ON_PATH, Toolkit, find_toolkits, read_toolkit

BANNER = "Cuda compilation tools, release {}, V{}"


def program(release: str, version: str) -> bytes:
    """A program that has nvcc's line in it, as nvcc has."""
    text = BANNER.format(release, version)
    source = f'const char *banner(void) {{ return "{text}"; }}'
    return compiled(source, "", ("-O2",)).read_bytes()


def toolkit(root: Path, version: str | None = "12.1.105", header: int | None = 12010) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "include").mkdir()
    if version is not None:
        release = ".".join(version.split(".")[:2])
        (root / "bin" / "nvcc").write_bytes(program(release, version))
        (root / "bin" / "nvcc").chmod(0o755)
    if header is not None:
        (root / "include" / "cuda.h").write_text(f"/* x */\n#define CUDA_VERSION {header}\n")
    return root


def found(**environ: str) -> tuple[Toolkit, ...]:
    return find_toolkits({"PATH": "/nonexistent", **environ}, "/nonexistent/cuda")


def test_the_compiler_says_its_version_in_its_bytes(tmp_path: Path) -> None:
    (one,) = found(CUDA_HOME=str(toolkit(tmp_path / "cuda")))
    assert (one.nvcc_version, one.nvcc_how) == ("12.1.105", "nvcc's own bytes")
    assert (one.header_version, one.release, one.problem) == ("12.1", "12.1", None)


def test_torch_asks_cuda_home_then_cuda_path_then_path_then_the_usual_place(tmp_path: Path) -> None:
    roots = [toolkit(tmp_path / name) for name in ("a", "b", "c", "d")]
    kits = find_toolkits(
        {"CUDA_HOME": str(roots[0]), "CUDA_PATH": str(roots[1]), "PATH": f"{roots[2]}/bin"},
        str(roots[3]),
    )
    assert [kit.root for kit in kits] == [str(root) for root in roots]
    assert [kit.named_by for kit in kits][2] == ON_PATH


def test_a_script_that_starts_an_nvcc_is_followed(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda-13.0", "13.0.88", 13000)
    wrapper = tmp_path / "bin" / "nvcc"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n')
    wrapper.chmod(0o755)
    (one,) = found(PATH=str(wrapper.parent))
    assert (one.named, one.root, one.nvcc_version) == (str(wrapper), str(root), "13.0.88")


@pytest.mark.parametrize(
    "text", ['#!/bin/sh\nexec nvcc-real "$@"\n', "#!/bin/sh\nexec $0\n", "#!/bin/sh\n"]
)
def test_a_script_that_does_not_say_which_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "nvcc").write_text(text)
    (tmp_path / "nvcc").chmod(0o755)
    (one,) = found(PATH=str(tmp_path))
    assert one.nvcc_version is None
    assert one.problem is not None and "script" in one.problem


def test_a_script_that_starts_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "nvcc"
    path.write_text(f'#!/bin/sh\nexec {path} "$@"\n')
    path.chmod(0o755)
    assert found(PATH=str(tmp_path))[0].problem is not None


def test_a_compiler_cache_is_no_nvcc(tmp_path: Path) -> None:
    (tmp_path / "ccache").write_bytes(b"\x7fELF")
    (tmp_path / "ccache").chmod(0o755)
    (tmp_path / "nvcc").symlink_to("ccache")
    (one,) = found(PATH=str(tmp_path))
    assert one.problem is not None and "ccache" in one.problem


def test_the_files_of_a_toolkit_speak_where_nvcc_does_not(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda", None, 12040)
    (root / "bin" / "nvcc").write_bytes(compiled("int x(void) { return 1; }", "", ()).read_bytes())
    assert read_toolkit(str(root)).nvcc_version == "12.4"
    (root / "version.txt").write_text("CUDA Version 12.4.99\n")
    assert read_toolkit(str(root)).nvcc_how == "version.txt"
    parts = {"cuda": {"version": "12.4.1"}, "cuda_nvcc": {"version": "12.4.131"}}
    (root / "version.json").write_text(json.dumps(parts))
    one = read_toolkit(str(root))
    assert (one.nvcc_version, one.nvcc_how) == ("12.4.131", "version.json (cuda_nvcc)")


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"cuda_nvcc": 3}', '{"cuda": {"version": []}}', "[" * 9_999]
)
def test_a_damaged_version_file_is_passed_over(tmp_path: Path, text: str) -> None:
    root = toolkit(tmp_path / "cuda", None, 12040)
    (root / "bin" / "nvcc").write_bytes(b"no program")
    (root / "version.json").write_text(text)
    assert read_toolkit(str(root)).nvcc_version == "12.4"


def test_headers_of_a_conda_toolkit_lie_below_targets(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "conda", "12.6.85", None)
    include = root / "targets" / "x86_64-linux" / "include"
    include.mkdir(parents=True)
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  12060\n")
    assert read_toolkit(str(root)).header_version == "12.6"


def test_what_is_named_and_not_there_is_told(tmp_path: Path) -> None:
    assert found(CUDA_HOME=str(tmp_path / "no"))[0].problem == f"{tmp_path}/no does not exist"
    (tmp_path / "empty").mkdir()
    assert (
        found(CUDA_HOME=str(tmp_path / "empty"))[0].problem == f"{tmp_path}/empty has no bin/nvcc"
    )


def test_nothing_named_is_nothing_found() -> None:
    assert found() == ()


def test_the_version_is_what_a_real_nvcc_prints() -> None:
    nvcc = require("nvcc")
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    printed = re.search(r"release [\d.]+, V([\d.]+)", text)
    assert printed is not None
    kits = find_toolkits({"PATH": str(Path(nvcc).parent)}, "/nonexistent")
    assert kits[0].nvcc_version == printed[1]
