"""``why`` on types that pybind11 does not know again, damaged wheels and builds for no system."""

from __future__ import annotations

import pytest
from support.asking import first, said

TAKES = "The following argument types are supported:\n    1. ({}) -> None\n\nInvoked with: {}"


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("model: torch::jit::Module", "<torch._C.ScriptModule object at 0x7fc27d657770>"),
        ("q: aiter_tensor_t, n: int", "<aiter.jit.module_core.aiter_tensor_t object at 0x1>, 3"),
        ("arg0: c10d::Store, arg1: int",
         "<torch.distributed.distributed_c10d.PrefixStore object at 0x7f>, 0"),
    ],
)  # fmt: skip
def test_a_type_that_is_refused_for_itself_is_of_another_pybind11(taken: str, given: str) -> None:
    answer = first(f"TypeError: f(): incompatible function arguments. {TAKES.format(taken, given)}")
    assert (answer.kind, answer.code) == ("python-abi", "FA893")
    assert "pybind11" in answer.cause and answer.confidence == "medium"


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("arg0: at::Tensor, arg1: int", "tensor([1]), 2, 3"),
        ("q: pkg.mod.Box, n: int", "<pkg.mod.Box object at 0x1>, None"),
        ("n: int", "<pkg.mod.Box object at 0x1>"),
    ],
)
def test_other_wrong_arguments_stay_wrong_arguments(taken: str, given: str) -> None:
    answer = first(f"TypeError: f(): incompatible function arguments. {TAKES.format(taken, given)}")
    assert answer.code == "FA882"


def test_a_parameter_without_a_caster_is_mended_in_the_source() -> None:
    answer = first(
        "TypeError: f(): incompatible function arguments. "
        + TAKES.format("arg0: c10::ArrayRef<at::Tensor>", "[tensor([42])]")
    )
    assert "std::vector<torch::Tensor>" in said(answer)


def test_a_cast_that_fails_for_torchs_own_class_asks_for_torchs_pybind11() -> None:
    answer = first(
        "RuntimeError: Unable to cast Python instance of type <class 'torch._C.ScriptModule'> to "
        "C++ type 'torch::jit::script::Module'"
    )
    assert answer.code == "FA893" and "torch/extension.h" in said(answer)
    bare = first(
        "RuntimeError: Unable to cast Python instance to C++ type (compile in debug mode for "
        "details)"
    )
    assert (bare.code, bare.confidence) == ("FA882", "low")


def test_a_member_of_a_wheel_with_a_wrong_checksum_is_a_damaged_download() -> None:
    text = (
        '    raise BadZipFile("Bad CRC-32 for file %r" % self.name)\n'
        "zipfile.BadZipFile: Bad CRC-32 for file 'torch/lib/libtorch_cuda.so'"
    )
    answer = first(text)
    assert (answer.kind, answer.code, answer.owner) == ("damaged-file", "FA102", "torch")
    assert any("cache purge" in command for command in answer.help)
    assert first("BadZipFile: Bad CRC-32 for file 'idna-3.10.dist-info/RECORD'").owner == "idna"


def test_a_kernel_without_a_build_for_aarch64_is_told_by_the_variants_name() -> None:
    answer = first(
        "Kernel at path `/home/u/.cache/huggingface/hub/models--a--flash/snapshots/b4` does not "
        "have build: torch210-cxx11-cu126-aarch64-linux"
    )
    assert (answer.kind, answer.owner) == ("wrong-machine", "a/flash")
    assert "torch 2.10, cu126, aarch64" in answer.cause


def test_the_error_that_was_caught_stands_before_the_name_that_it_left_undefined() -> None:
    answer = first(
        '  File "~/src/vllm/vllm/_custom_ops.py", line 176, in reshape_and_cache\n'
        "NameError: name 'vllm_cache_ops' is not defined (Caught error: No module named 'vllm._C')"
    )
    assert answer.code == "FA880" and "~/src/vllm" in answer.cause
    assert any(command.startswith("cd ~/src/vllm &&") for command in answer.help)


def test_a_bare_name_of_torch_python_is_first_a_matter_of_order() -> None:
    answer = first("undefined symbol: THPVariableClass")
    assert answer.code == "FA210" and "import torch" in said(answer)
    apex = first(
        "ImportError: /opt/conda/lib/python3.7/site-packages/fused_layer_norm_cuda.cpython-37m-"
        "x86_64-linux-gnu.so: undefined symbol: THPVariableClass\nPyTorch 1.6"
    )
    assert apex.direction == "file-older" and any("apex" in line for line in apex.help)


def test_a_text_that_the_linker_reads_as_a_script_is_fetched_with_git_lfs() -> None:
    answer = first(
        "/usr/bin/ld: /src/lib/libbatch_static.a: file format not recognized; treating as linker "
        "script\n/usr/bin/ld:/src/lib/libbatch_static.a:1: syntax error"
    )
    assert answer.kind == "damaged-file" and "git lfs pull" in said(answer)


def test_a_damaged_module_in_a_source_tree_is_built_again_there() -> None:
    answer = first("ImportError: mmdet/ops/utils/info.cpython-36m-x86_64-linux-gnu.so: file too "
                   "short")  # fmt: skip
    assert answer.help[1].startswith("rm mmdet/") and "source tree" in said(answer)


def test_torch_is_put_back_in_the_release_and_for_the_cuda_that_the_text_names() -> None:
    answer = first(
        "ImportError: /e/lib/python3.9/site-packages/torch/lib/libtorch_cpu.so: invalid ELF header"
        "\npytorch 1.12 with cuda 11.3"
    )
    index = "--index-url https://download.pytorch.org/whl/cu113"
    assert any("torch==1.12.1" in c and index in c for c in answer.help)


def test_a_wheels_python_tag_alone_is_held_against_the_python_that_runs() -> None:
    answer = first(
        "Error: xformers cp39-cp39 is not a supported wheel on this platform.\nPython 3.10"
    )
    assert "for Python 3.9, and Python 3.10 runs" in answer.cause


@pytest.mark.parametrize(
    "text",
    [
        "ImportError: cannot import name '_C' from partially initialized module 'adet' (most "
        "likely due to a circular import) (/content/Adel/adet/__init__.py)",
        '  File "/content/Adel/adet/layers/nms.py", line 3, in <module>\n'
        "    from adet import _C\nImportError: cannot import name '_C'",
    ],
)
def test_a_compiled_module_that_a_source_tree_lacks_is_built_in_place(text: str) -> None:
    answer = first(text)
    assert answer.code == "FA880" and "/content/Adel" in answer.cause
    assert any(command.startswith("cd /content/Adel && ") for command in answer.help)


def test_a_file_for_the_running_python_with_a_name_that_went_comes_of_old_c_code() -> None:
    answer = first(
        "ImportError: /usr/lib/python3.10/site-packages/n/n.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _PyGen_Send\nPython 3.10.2"
    )
    assert answer.code == "FA402" and "Cython" in answer.cause
    older = first(
        "ImportError: /usr/lib/python3.10/site-packages/n/n.so: undefined symbol: _PyGen_Send\n"
        "Python 3.10.2"
    )
    assert "compiled for an older Python" in older.cause


def test_an_elf_file_on_a_mac_is_for_another_machine_and_no_linkers_matter() -> None:
    answer = first(
        "ImportError: dlopen(/u/x/_C.cpython-39-darwin.so, 2): no suitable image found.  Did find: "
        "/u/x/_C.cpython-39-darwin.so: unknown file type, first eight bytes: 0x7F 0x45 0x4C 0x46 "
        "0x02 0x01 0x01 0x00"
    )
    assert (answer.kind, answer.code) == ("wrong-machine", "FA101")
    assert "library for Linux" in answer.cause


def test_a_class_of_torch_that_is_registered_twice_is_recognised() -> None:
    answer = first(
        "RuntimeError: Custom class with name __torch__.torch.classes.a.B is already registered. "
        "Ensure that registration with torch::class_ is only called once."
    )
    assert answer.code == "FA893"


def test_the_one_package_of_a_text_owns_the_type_that_is_registered_twice() -> None:
    error = 'ImportError: generic_type: type "QuantType" is already registered!'
    assert first(error, "pytorch 2.9, pybind11 3.0.1, AITER commit 4862870").owner == "aiter"
    assert first(error, "pytorch 2.9, pybind11 3.0.1").owner is None


def test_the_package_whose_import_met_a_type_twice_is_named_by_the_traceback() -> None:
    error = 'ImportError: generic_type: type "CuMesh" is already registered!'
    for path in (
        "/x/lib/python3.12/site-packages/cumesh_vb/remeshing.py",
        "M:\\ComfyUI\\python_embeded\\Lib\\site-packages\\cumesh_vb\\remeshing.py",
    ):
        text = f'File "{path}", line 4, in <module>\n    from . import _C\n{error}'
        assert first(text).owner == "cumesh_vb"
    assert first(error).owner is None
