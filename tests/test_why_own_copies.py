"""Modules without their start function, and packages that a text installs from a directory."""

from __future__ import annotations

import time

import pytest
from support.asking import first

from fa_forensics.facts.paste import read_paste

NO_INIT = "ImportError: dynamic module does not define module export function (PyInit_{})\n"


def local(text: str) -> dict[str, str]:
    return {k: v for k, v in read_paste(text).versions.items() if k.startswith("local:")}


@pytest.mark.parametrize(
    ("text", "name", "folder"),
    [
        ("pip install -e ./gsplat", "gsplat", "-e ./gsplat"),
        ("pip install submodules/diff-gaussian-rasterization", "diff-gaussian-rasterization",
         "submodules/diff-gaussian-rasterization"),
        ("pip install -r requirements.txt ./my_ops/", "my-ops", "./my_ops/"),
        ("cd kernels/selective_scan && pip install .", "selective-scan", "kernels/selective_scan"),
        ("$ cd DCNv2\n$ python setup.py build develop", "dcnv2", "-e DCNv2"),
    ],
)  # fmt: skip
def test_directories_that_are_installed_from_are_read(text: str, name: str, folder: str) -> None:
    assert local(text) == {f"local:{name}": folder}


@pytest.mark.parametrize(
    "text",
    [
        "pip install gsplat",
        "pip install -r env/requirements.txt",
        "pip install ./flash_attn-2.7.3-cp311-cp311-linux_x86_64.whl",
        "pip install git+https://github.com/x/gsplat.git",
        "pip install torch --index-url https://example.org/whl/cu118",
        "pip install -e .",
    ],
)
def test_what_is_no_directory_is_not_one(text: str) -> None:
    assert local(text) == {}


def test_a_projects_own_copy_is_not_replaced_by_an_indexs() -> None:
    answer = first(NO_INIT.format("gsplat_cuda") + "pip install -e ./gsplat")
    helps = "\n".join(answer.help)
    assert "-e ./gsplat" in helps and "github.com" not in helps and "--upgrade" not in helps
    assert "rm -rf ~/.cache/torch_extensions/*/gsplat_cuda" in helps  # what load() names it


def test_a_name_that_many_projects_have_is_looked_up_where_python_finds_it() -> None:
    step = '  File "/home/u/model/DCNv2/dcn_v2.py", line 13, in <module>\n    import _ext\n'
    answer = first(step + NO_INIT.format("_ext"))
    assert answer.owner == "DCNv2" and 'find_spec("_ext")' in answer.help[0]
    assert any(text.startswith("cd /home/u/model/DCNv2 && rm -rf build") for text in answer.help)


def test_on_windows_a_module_is_linked_without_its_start_function() -> None:
    """MSVC exports what it is told to; nm and .so are of no use there."""
    answer = first(
        "    import flash_attn_3._C\n" + NO_INIT.format("_C") + "a wheel for Windows, Python 3.12"
    )
    said = "\n".join((answer.cause, *answer.help, *answer.notes))
    assert "export" in answer.cause and ".pyd" in said and "EXPORT:PyInit__C" in said
    assert "nm -D" not in said and "--upgrade" not in said and ".so" not in answer.help[0]


def test_spconv_for_a_cuda_is_not_overwritten_by_the_one_for_the_cpu() -> None:
    """README of spconv: one package for each CUDA, all with the module spconv."""
    text = (
        "    import spconv.core_cc as _ext\nImportError: arg(): could not convert default argument "
        "'workspace: tv::Tensor' in method 'x' into a Python object (type not registered yet?)\n"
    )
    told = first(text, "spconv-cu117, Python 3.8")
    assert any(t.endswith("uninstall -y spconv spconv-cu117 cumm cumm-cu117") for t in told.help)
    assert told.help[-1].endswith(" spconv-cu117")
    assert not any(t.endswith(" spconv") for t in (*told.help, *first(text).help))


def test_the_cuda_half_is_left_out_where_no_toolkit_is_found() -> None:
    """setup.py of torch-scatter 1.3.1 makes scatter_cuda where CUDA_HOME is not None."""
    answer = first(
        '  File "/u/lib/python3.6/site-packages/torch_scatter/utils/ext.py", line 5, in <module>\n'
        "    import torch_scatter.scatter_cuda\n"
        "ModuleNotFoundError: No module named 'torch_scatter.scatter_cuda'",
    )
    assert "CUDA_HOME" in answer.cause and "interrupted" not in "\n".join(answer.notes)
    assert any("FORCE_CUDA=1" in t and '"torch-scatter<2"' in t for t in answer.help)


def test_a_caught_import_that_the_text_makes_again_is_decided() -> None:
    use = "NameError: name 'selective_scan_cuda' is not defined\n"
    told = first(use, "import selective_scan_cuda",
                 "-> ModuleNotFoundError: No module named 'selective_scan_cuda'")  # fmt: skip
    assert told.code == "FA880" and "not installed" in told.cause and told.owner == "mamba-ssm"
    assert "--no-deps" not in told.help[0] and "mamba-ssm" in told.help[0]
    assert first(use).code == "FA886"


@pytest.mark.parametrize(
    "line",
    [
        "\u201cBad CRC-32 for file\u201d error still in the air",
        "zipfile.BadZipFile: Bad magic number for file header",
        "zipfile.BadZipFile: File name in directory 'torch/x.py' and header b'y' differ.",
    ],
)
def test_a_damaged_archive_is_named_by_the_line_around(line: str) -> None:
    wheel = "flash_attn-2.7.3+cu11torch2.2cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    answer = first(f"Processing ./{wheel} (from -r requirements.txt (line 3))", line)
    assert answer.kind == "damaged-file" and answer.owner == "flash-attn"
    assert any(t == f"rm ./{wheel}" for t in answer.help) and "cache purge" in answer.help[-1]


def test_names_of_trapped_floating_point_errors_are_of_pythons_with_fpectl() -> None:
    """Python/pyfpe.c of CPython 3.7: the names stay for files that were compiled before."""
    text = "ImportError: pycocotools/_mask.so: undefined symbol: PyFPE_jbuf"
    answer = first(text)
    assert "fpectl" in answer.cause and "since 3.7" not in answer.cause
    assert answer.direction == "file-older" and "Python 2" in answer.cause
    kept = first(text + "\nPython 3.8.10")
    assert "exports it" in kept.cause and "fpectl" not in kept.cause


def test_bitsandbytes_without_any_library_says_nothing_of_the_driver() -> None:
    """get_cuda_specs is None unless torch.cuda.is_available(): the name shows that it was asked."""
    site = "/e/lib/python3.11/site-packages/bitsandbytes"
    answer = first(
        f"Could not find the bitsandbytes CUDA binary at PosixPath('{site}/libbitsandbytes_cuda124"
        f".so')\nCould not load bitsandbytes native library: {site}/libbitsandbytes_cpu.so: cannot "
        "open shared object file: No such file or directory\nbitsandbytes=0.43.2"
    )
    assert "driver" not in answer.cause and "NoneType" in answer.notes[-1]
    assert answer.help[0].endswith("bitsandbytes==0.43.2")


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("Permission denied", "may not be read"),
        ("Too many open files", "too many files open"),
        ("Stale file handle", "file system failed"),
        ("Too many levels of symbolic links", "leads back to itself"),
    ],
)
@pytest.mark.parametrize("file", ["/e/site-packages/vllm/_C.abi3.so", "libcudart.so.12"])
def test_what_errno_says_is_not_taken_for_a_missing_file(file: str, reason: str, says: str) -> None:
    answer = first(f"ImportError: {file}: cannot open shared object file: {reason}")
    assert says in answer.cause and "no such file" not in answer.cause


def test_a_path_through_an_egg_is_not_a_search_that_failed() -> None:
    """ENOTDIR: a part of the path before the last one is a file."""
    answer = first(
        "libnvinfer_plugin_tensorrt_llm.so: cannot open shared object file: Not a directory",
        "tensorrt_llm 0.5.0 installed as tensorrt_llm-0.5.0-py3.10.egg",
    )
    assert answer.owner == "tensorrt-llm" and "py3.10.egg" in answer.cause
    helps = "\n".join(answer.help)
    assert "build_wheel.py" in helps and "ldd" not in helps and "--upgrade" not in helps


def test_a_library_that_the_build_downloads_for_another_processor() -> None:
    answer = first(
        "/usr/bin/ld: ../../_deps/f8-src/lib/libavutil.so.60: error adding symbols: file in wrong "
        "format\nDGX Spark, arm64, building the torchcodec wheel"
    )
    assert answer.kind == "wrong-machine" and answer.owner == "FFmpeg"
    assert "downloaded it" in answer.cause and "x86-64" in answer.cause


def test_an_object_in_the_source_directory_is_removed_there() -> None:
    answer = first("megatron/fused_kernels/x.o: file not recognized: File format not recognized")
    assert "half written" in answer.cause
    assert any("megatron/fused_kernels/*.o" in text for text in answer.help)
    system = first("/usr/lib/crt1.o: file not recognized: File format not recognized")
    assert not any(text.startswith("rm ") for text in system.help)


SHOWN = (
    "KeyError: 'LD_LIBRARY_PATH'\n$ file libbitsandbytes_cpu.so\nlibbitsandbytes_cpu.so: ELF "
    "64-bit LSB shared object, x86-64, version 1 (SYSV), dynamically linked, not stripped\n"
)


def test_a_linux_library_on_a_mac_is_told_by_what_file_prints() -> None:
    """The first wheel of bitsandbytes for macOS is 0.49.0's, macosx_14_0_arm64."""
    mac = first(SHOWN + "macOS, bitsandbytes 0.39.0, Python 3.10")
    assert (mac.kind, mac.owner) == ("wrong-machine", "bitsandbytes") and "macOS" in mac.cause
    assert any("bitsandbytes>=0.49.0" in text for text in mac.help)
    intel = first(SHOWN + "macOS (Intel), bitsandbytes 0.39.0")
    assert not any("--upgrade" in text for text in intel.help)
    assert "for Linux" in first(SHOWN).cause


def test_what_file_prints_on_linux_is_no_failure() -> None:
    shown = SHOWN.partition("\n")[2]
    assert first(shown + "Ubuntu 22.04").kind == "unrecognised"


@pytest.mark.parametrize(
    ("text", "name", "folder"),
    [
        ('  File "/home/u/apex/apex/__init__.py", line 13, in <module>', "apex", "/home/u/apex"),
        ("~/repo/audio/torchaudio/__init__.py in <module>()", "torchaudio", "~/repo/audio"),
        ("File /data/vllm/vllm/__init__.py:7, in <module>", "vllm", "/data/vllm"),
        ("| /data/vllm/vllm/__init__.py:7 in <module> |", "vllm", "/data/vllm"),
        ("/data/vision/torchvision/__init__.py:26: UserWarning: x", "torchvision", "/data/vision"),
        ("ImportError: cannot import name '_C' from 'natten' (/w/NATTEN/natten/__init__.py)",
         "natten", "/w/NATTEN"),
        ('  File "/w/fa/flash_attn/__init__.py", line 3, in <module>', "flash-attn", "/w/fa"),
    ],
)  # fmt: skip
def test_where_python_imports_a_package_from_is_read(text: str, name: str, folder: str) -> None:
    assert local(text) == {f"local:{name}": f"-e {folder}"}


FRAME = '  File "{}/__init__.py", line 13, in <module>'


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/NVIDIA/apex/blob/master/apex/__init__.py",
        "see https://github.com/NVIDIA/apex/blob/master/apex/__init__.py in <module>",
        FRAME.format("https://github.com/NVIDIA/apex/blob/master/apex"),
        FRAME.format("//server/share/apex/apex"),
        FRAME.format("C:/x/apex/apex"),
        "C:/x/apex/apex/__init__.py in <module>()",
        "I looked at /home/u/apex/apex/__init__.py and in the docs",
        "(as in /home/u/apex/apex/__init__.py)",
        "vi /home/u/vllm/vllm/__init__.py",
        FRAME.format("/nix/store/0c5bxyz-python3.11-apex-0.1/apex"),
        FRAME.format("/gnu/store/0c5bxyz-apex-0.1/apex"),
        FRAME.format("/root/.local/share/uv/tools/vllm/vllm"),
        FRAME.format("/opt/share/uv/x/vllm"),
        FRAME.format("/root/.cache/uv/archive-v0/x/torchvision"),
        FRAME.format("/opt/conda/pkgs/torchvision-0.15/torchvision"),
        FRAME.format("/opt/conda/lib/python3.10/site-packages/apex"),
    ],
)
def test_an_address_a_store_or_a_path_in_a_sentence_is_no_checkout(text: str) -> None:
    assert local(text) == {}


SET_DEVICE = "undefined symbol: _ZN3c104cuda9SetDeviceEab"
INSTALLED = "/opt/conda/lib/python3.10/site-packages/{}.cpython-310-x86_64-linux-gnu.so"


@pytest.mark.parametrize("file", [INSTALLED, "{}.cpython-310-x86_64-linux-gnu.so"])
def test_another_packages_editable_install_is_not_the_failing_files(file: str) -> None:
    answer = first(
        "git clone https://github.com/haotian-liu/LLaVA",
        "cd LLaVA",
        "pip install -e .",
        "pip install flash-attn --no-build-isolation",
        f"ImportError: {file.format('flash_attn_2_cuda')}: {SET_DEVICE}",
    )
    assert not [text for text in answer.help if " -delete" in text or text.endswith("-e .")]
    assert any("torch" in text and "install" in text for text in answer.help)
    assert not any("from its source directory" in note for note in answer.notes)


@pytest.mark.parametrize(
    "lines",
    [
        ["pip install -e .", "ImportError: /w/x/x/_C.cpython-310-x86_64-linux-gnu.so: "],
        ["cd vllm", "pip install -e .", f"ImportError: {INSTALLED.format('vllm/_C')}: "],
    ],
)  # fmt: skip
def test_an_editable_install_is_built_again_where_it_is_the_failing_files(lines: list[str]) -> None:
    answer = first(*lines[:-1], lines[-1] + SET_DEVICE)
    assert any(text.endswith(" -e .") and " -delete" in text for text in answer.help)


@pytest.mark.parametrize("unit", ["conda", "mamba", "/envs/", "a/lib/lib", "conda/lib/lib.so.1"])
def test_a_long_path_is_compared_with_condas_in_short_time(unit: str) -> None:
    from fa_forensics.why.ways.other_ways import _IN_CONDA

    text = unit * (20_000 // len(unit)) + "!"
    _IN_CONDA.search("")
    start = time.process_time()
    assert _IN_CONDA.search(text) is None
    assert time.process_time() - start < 0.5
