"""``why`` on names of torch that changed: where the file lies, and which torch the text means.

The releases are those of ``nm -D`` over torch's wheels; the pages of wheels those of data.pyg.org.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.torch_cuda import cuda_builds

SITE = "/x/lib/python3.7/site-packages"
IS_CUDA = "_ZNK2at6Tensor7is_cudaEv"  # 1.6.0 to 1.8.1


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


def test_of_two_torches_the_one_that_lacks_the_name_is_loaded() -> None:
    told = "conda install pytorch==1.8.0, conda install pytorch3d, and pip had torch 1.12.1"
    answer = first(missing(f"{SITE}/pytorch3d/_C.cpython-37m-x86_64-linux-gnu.so", IS_CUDA), told)
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-older")
    assert "older than torch 1.12.1" in answer.cause
    assert "pip uninstall -y torch" in said(answer)
    assert not any(
        "install" in text.replace("uninstall", "") for text in answer.help
    )  # conda has 1.8.0


def test_what_was_a_cure_is_no_second_torch() -> None:
    told = read_paste("torch 1.8.0\ndowngraded, and it works with torch 1.12.1").versions
    assert "torch_also" not in told and "torch_too" not in told


def test_an_unpacked_egg_is_removed_and_built_in_its_checkout() -> None:
    """pkg_resources unpacks a zipped egg below ~/.cache/Python-Eggs, which is no checkout."""
    egg = "/home/a/.cache/Python-Eggs/kaolin-0.2.0-py3.6-linux-x86_64.egg-tmp"
    file = f"{egg}/kaolin/cuda/d.cpython-36m-x86_64-linux-gnu.so"
    answer = first(missing(file, "_ZN3c1011CPUTensorIdEv"), "pytorch 1.3.1")
    assert f"rm -rf {egg}" in answer.help
    assert "python -m pip uninstall kaolin" in answer.help
    assert "-delete" not in said(answer) and "or one above it" not in said(answer)


def test_an_eggs_rebuild_stands_before_another_torch() -> None:
    file = f"{SITE}/MSDA-1.0-py3.8-linux-x86_64.egg/MSDA.cpython-38-x86_64-linux-gnu.so"
    symbol = "_ZNK2at10TensorBase8data_ptrIdEEPT_v"  # 1.10.0 and later
    answer = first(missing(file, symbol), "PyTorch 1.9 and Cuda 11.1")
    built = next(i for i, text in enumerate(answer.help) if text.startswith("rm -rf build dist"))
    torch = next(i for i, text in enumerate(answer.help) if '"torch==1.10.0"' in text)
    assert built < torch and answer.help[torch].endswith("/whl/cu111")


def test_a_release_in_a_directorys_name_is_a_checkout() -> None:
    file = ".../mmdetection3d-0.17.3/mmdet3d/ops/r/r_ext.cpython-38-x86_64-linux-gnu.so"
    answer = first(missing(file, "_ZN3c1015SmallVectorBaseIjE8grow_podEPvmm"), "torch 1.10.0")
    assert "most likely .../mmdetection3d-0.17.3" in said(answer)
    assert any("-delete" in text and text.endswith("-e .") for text in answer.help)


@pytest.mark.parametrize("page", ["data.pyg.org/whl/torch-1.9.0+cu111", "x.com/whl/torch-1.9.0"])
def test_the_page_of_wheels_tells_the_files_torch(page: str) -> None:
    """zero_() is defined in torch 1.3 to 1.9: wheels for 1.9.0 miss it in a later torch."""
    text = f"!pip install -q torch-sparse -f https://{page}.html"
    file = f"{SITE}/torch_sparse/_convert_cuda.so"
    answer = first(text, missing(file, "_ZNK2at6Tensor5zero_Ev"))
    assert answer.direction == "file-older"
    assert "data.pyg.org/whl/torch-X.Y.0+cuXYZ.html" in said(answer)


def test_a_cuda_of_its_own_names_the_page_of_the_wheels() -> None:
    symbol = "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_S2_"  # 1.9.0 and later
    answer = first(
        missing(f"{SITE}/torch_sparse/_version_cuda.so", symbol), "PyTorch 1.5.0, CUDA 10.1"
    )
    assert any(text.endswith("whl/torch-1.5.0+cu101.html") for text in answer.help)


def test_no_note_stands_on_an_index_that_no_command_takes() -> None:
    text = "VLLM_USE_PRECOMPILED=1 pip install --editable ."
    file = "/root/x/vllm-steer/vllm/_C.abi3.so"
    symbol = "_ZN3c104cuda9SetDeviceEab"  # 2.8.0 and later
    answer = first(text, missing(file, symbol), "PyTorch: 2.7.0+cu126, CUDA: 12.6")
    assert not any("--index-url" in text for text in answer.help)
    assert "--index-url" not in said(answer)


@pytest.mark.parametrize(("minor", "cuda"), [("1.10", "11.1"), ("1.5", "10.1"), ("2.5", "12.4")])
def test_builds_of_old_releases_are_on_record(minor: str, cuda: str) -> None:
    """pytorch.org/get-started/previous-versions: torch==1.10.0+cu111, torch==1.5.0+cu101."""
    assert cuda in cuda_builds(minor)


def test_a_crash_of_a_package_for_another_torch_is_told_by_their_releases() -> None:
    """torchao/__init__.py of 0.13.0 lists torch 2.8.0, that of 0.14.1 lists 2.9.0."""
    answer = first(
        '$ python -c "import torchao"\nAborted (core dumped)',
        "torchao 0.13.0+cu128 in an environment with a PyTorch 2.9 nightly",
    )
    assert (answer.code, answer.owner, answer.confidence) == ("FA303", "torchao", "medium")
    assert "built for torch 2.8.0" in answer.cause and "its compiled file is older" in answer.cause
    assert any(text.endswith("torchao==0.14.1") for text in answer.help)
    assert 'python -m pip install "torch==2.8.0"' in answer.help


def test_a_crash_of_a_package_for_that_torch_is_open() -> None:
    answer = first("Aborted (core dumped)", "import torchao", "torchao 0.14.1 with torch 2.9.0")
    assert answer.confidence == "low" and "is built for" not in answer.cause


def test_lmcache_is_compiled_again_where_no_file_is_named() -> None:
    """The wheel of lmcache 0.3.3 has lmcache/c_ops, and its release has a source distribution."""
    answer = first("pip install lmcache==0.3.3", "undefined symbol _ZN3c104cuda9SetDeviceEa")
    assert any("--no-binary lmcache lmcache" in text for text in answer.help)


def test_torchvisions_image_library_is_missed_by_reading_images_alone() -> None:
    file = f"{SITE}/torchvision/image.so"
    symbol = "_ZN3c104impl8GPUTrace13gpuTraceStateE"  # 1.13.0 and later
    answer = first(missing(file, symbol))
    assert answer.direction == "file-newer"
    assert "It is a warning" in said(answer) and "torchvision 0.13.1" in said(answer)


def test_a_change_of_torch_after_which_it_works_is_the_cure() -> None:
    text = "But when I changed pytorch from 1.5 to 1.0. Both of them worked.\npytorch  1.5"
    assert read_paste(text).versions["torch"] == "1.5"


#: torch::autograd::_wrap_outputs of 1.10.0 to 2.0.1; 2.1.0 added a parameter.
WRAP_OUTPUTS = (
    "_ZN5torch8autograd13_wrap_outputsERKSt6vectorIN2at6TensorESaIS3_EERKSt13unordered_setIPN3c1010"
    "TensorImplESt4hashISB_ESt8equal_toISB_ESaISB_EESJ_NS9_8ArrayRefINS9_8optionalIS3_EEEERKSt10"
    "shared_ptrINS0_4NodeEESt8functionIFS5_S5_S5_EE"
)


@pytest.mark.parametrize(("torch", "across"), [("PyTorch 2.1.1", False), ("PyTorch 2.3.0", True)])
def test_a_change_counts_where_the_file_and_torch_lie_on_its_two_sides(
    torch: str, across: bool
) -> None:
    """c10::optional became std::optional in torch 2.2.0."""
    file = "/e/lib/python3.10/site-packages/torch_scatter/_scatter_cuda.so"
    answer = first(missing(file, WRAP_OUTPUTS), torch)
    assert answer.direction == "file-older"
    assert ("In 2.2.0 the name of every function" in said(answer)) is across


def test_a_change_after_the_torch_of_that_day_is_not_told() -> None:
    """TaskMatrix issue 25: March 2023 is before torch 2.2.0 (January 2024)."""
    symbol = (
        "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEENS6_"
        "INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE"
    )
    file = "/usr/local/lib/python3.9/dist-packages/torchtext/lib/libtorchtext.so"
    assert "In 2.2.0 the name" not in said(first(missing(file, symbol), "March 2023"))
    assert "on the two sides of that" in said(first(missing(file, symbol)))


def test_older_torches_without_the_name_in_either_flavour_are_told() -> None:
    """extension-cpp issue 103: parseSchema got its bool in 2.4.0; 2.7.0 is of April 2025."""
    file = "/e/lib/python3.11/site-packages/extension_cpp/_C.cpython-311-x86_64-linux-gnu.so"
    text = missing(file, "_ZN5torch3jit11parseSchemaERKSsb")
    alone = first(text)
    assert alone.kind == "cxx11-abi" and "2.3.1 have it in neither" in alone.cause
    dated = first(text, "October 2024")
    assert (dated.kind, dated.direction) == ("symbol-drift", "file-newer")
    assert "is older than 2.4.0" in dated.cause and "conda-forge's" in said(dated)


def test_the_head_of_a_repository_is_not_for_a_torch_of_years_ago() -> None:
    """pytorch3d's v0.6.1 builds on torch 1.6 to 1.10; apex of 2019 knows --cpp_ext alone."""
    symbol = (
        "_ZN6caffe28TypeMeta21_typeMetaDataInstanceISt7complexIfEEEPKNS_6detail12TypeMetaDataEv"
    )
    file = "/x/lib/python3.8/site-packages/pytorch3d/_C.cpython-38-x86_64-linux-gnu.so"
    answer = first(missing(file, symbol), "August 2020")
    assert any("pytorch3d@v0.6.1" in command for command in answer.help)
    assert "newest source" not in said(answer)
    apex = f"{SITE}/fused_layer_norm_cuda.cpython-37m-x86_64-linux-gnu.so"
    old = first(missing(apex, "_ZN2at7getTypeERKNS_6TensorE"), "pytorch 1.2")
    assert "may not compile on torch 1.2" in said(old) and "--cpp_ext" in said(old)


def test_a_path_without_its_beginning_is_that_of_the_step_that_loads_it() -> None:
    """MapTR issue 135: a module built in place is removed where it lies."""
    tree = "MapTR/mmdetection3d/mmdet3d/ops/bev_pool"
    text = (
        f'  File "/home/user/{tree}/bev_pool.py", line 3, in <module>\n'
        "    from . import bev_pool_ext\n"
    )
    file, symbol = "bev_pool_ext.cpython-38-x86_64-linux-gnu.so", IS_CUDA
    answer = first(text + missing(f".../{tree}/{file}", symbol))
    assert any("-delete" in command and " -e ." in command for command in answer.help)
    assert f"/home/user/{tree}/{file}" in " ".join(answer.help)
    strange = first(text + missing(f".../other/{file}", symbol))
    assert "/home/user" not in " ".join(strange.help)


OLD_SCHEMA = "_ZN5torch3jit17parseSchemaOrNameERKSs"


def test_pygs_channel_and_conda_forge_build_for_two_torches() -> None:
    """pytorch_geometric's issue 6513: the packages of the channel pyg, conda-forge's torch."""
    text = f"conda installation fails with undefined symbol ({OLD_SCHEMA})\n"
    answer = first(text, "pytorch from conda-forge, pyg from its own conda channel")
    assert "conda install -c conda-forge pytorch_scatter pytorch_sparse pytorch_cluster" in (
        answer.help
    )
    assert any("-c pytorch pytorch::pytorch" in text for text in answer.help)
    assert not any("conda update" in text for text in answer.help)


def test_a_module_in_its_projects_clone_is_built_there_again() -> None:
    """The repository of torchaudio is pytorch/audio: ...audio/_torch_sox is no installed file."""
    file = "...audio/_torch_sox.cpython-36m-x86_64-linux-gnu.so"
    answer = first(
        f"ImportError: {file}: undefined symbol: _ZN2at19NonVariableTypeMode10is_enabledEv"
    )
    assert any(text.startswith("rm -rf build") and text.endswith("-e .") for text in answer.help)
    assert not any("--upgrade" in text for text in answer.help)


def test_the_release_of_the_text_is_taken_again_where_its_file_is_another_builds() -> None:
    """xformers 0.0.28.post3 asks for torch 2.5.1; StorageImpl's function is of 2.6 and later."""
    file = "/x/lib/python3.12/site-packages/xformers/_C.so"
    symbol = "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"
    answer = first(
        f"OSError: {file}: undefined symbol: {symbol}", "torch 2.5.1+cu124, xformers 0.0.28.post3"
    )
    assert any(text.endswith("--no-cache-dir xformers==0.0.28.post3") for text in answer.help)


def test_the_texts_system_decides_which_official_wheel_loads() -> None:
    """flash-attn's wheels ask for glibc 2.32 since 2.8.0; Ubuntu 20.04 has 2.31."""
    file = "/x/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    symbol = (
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    text = f"ImportError: {file}: undefined symbol: {symbol}"
    old = first(text, "torch 2.5.1+cu124 flash-attn 2.6.3, Ubuntu 20.04")
    assert any("flash_attn-2.7.4.post1+cu12torch2.5" in command for command in old.help)
    new = first(text, "torch 2.5.1+cu124 flash-attn 2.6.3, Ubuntu 22.04")
    assert any("flash_attn-2.8.3" in command for command in new.help)


def test_the_release_of_the_text_is_built_for_a_torch_that_is_little_newer() -> None:
    file = "/x/lib/python3.8/site-packages/selective_scan_cuda.cpython-38-x86_64-linux-gnu.so"
    text = f"ImportError: {file}: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    near = first(text, "torch 2.3.0, mamba-ssm 2.0.3, Python 3.8")
    assert any(command.endswith("mamba-ssm==2.0.3") for command in near.help)
    assert "MAMBA_FORCE_BUILD=TRUE the command" in said(near)
    far = first(text, "torch 2.8.0, mamba-ssm 2.0.3")
    assert any(command.endswith("--no-binary mamba-ssm mamba-ssm") for command in far.help)


def test_a_name_that_torch_kept_to_itself_is_not_cured_by_the_same_source() -> None:
    """NVIDIA/apex issues 1314 and 1452: a build on 1.8.2 and on 1.10.0 lacks it as well."""
    name = "_ZN2at4cuda4blas19_cublasGetErrorEnumE14cublasStatus_t"
    file = f"{SITE}/fused_weight_gradient_mlp_cuda.cpython-39-x86_64-linux-gnu.so"
    for told in ("", "torch 1.8.2+cu111", "torch 1.10.0+cu113"):
        answer = first(missing(file, name), told)
        assert answer.direction == "unknown" and "kept it to themselves" in answer.cause
        assert "gives the same error" in said(answer)
        assert "One of the two commands is enough" not in said(answer)


def test_a_nightly_that_hides_a_name_is_no_build_of_its_own() -> None:
    """pytorch issue 144302: the name is in the releases from 2.1.0 on."""
    name = "_ZN5torch8autograd29THPCppFunction_next_functionsEP7_objectPv"
    answer = first(missing("libtorch_npu.so", name), "torch 2.7.0.dev20250105+cpu, Python 3.9")
    assert "nightly of another day" in answer.cause and "of its own" not in answer.cause
    assert any('"torch==2.7.0"' in text for text in answer.help)


def test_what_deepspeed_compiled_at_its_first_use_leaves_its_cache() -> None:
    """DeepSpeed's builder.py: jit_load builds below TORCH_EXTENSIONS_DIR."""
    symbol = "undefined symbol: _ZNK3c107SymBool10guard_boolEPKcl"
    answer = first(symbol, "DeepSpeed JIT op transformer_inference, Python 3.8")
    assert any("rm -rf ~/.cache/torch_extensions" in text for text in answer.help)
    assert not any("DS_BUILD_OPS" in text for text in answer.help)


def test_a_programs_own_module_is_built_in_the_directory_that_it_has_for_it() -> None:
    file = f"{SITE}/selective_scan_cuda_core.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file, IS_CUDA))
    assert "VMamba" in said(answer) and "kernels/selective_scan" in said(answer)


def test_a_release_of_a_package_tells_which_torch_its_wheels_are_for() -> None:
    """exllamav2 0.0.5 is of October 2023, torch 2.2 of January 2024."""
    file = "/x/lib/python3.9/site-packages/exllamav2_ext.cpython-39-x86_64-linux-gnu.so"
    answer = first(missing(file, "_ZN3c104cuda9SetDeviceEi"), "exllamav2 0.0.5+cu118")
    torch = next(text for text in answer.help if '"torch==' in text)
    assert '"torch==2.1.2"' in torch and torch.endswith("/cu118")
    assert any(text.endswith("exllamav2@v0.0.5") for text in answer.help)


def test_the_words_behind_two_names_are_of_both() -> None:
    told = read_paste("torch and torch_xla built from master (2023-09)").versions
    assert {"flag:torch-source", "flag:built-from-source:torch-xla"} <= set(told)
    assert read_paste("torch nightly 1.2 (2019-07)").versions["torch"] == "1.2.0.dev"


def test_a_package_in_two_spellings_is_read_alike_in_every_run() -> None:
    """The hash of a text is another one in each run: no order of a set may decide."""
    import subprocess
    import sys

    text = "flash-attn 2.3.1 fails; flash_attn-2.3.0+cu117torch2.0cxx11abiFALSE works"
    code = (
        "from fa_forensics.facts.paste import read_paste; "
        f"print(read_paste({text!r}).versions['pkg:flash-attn'])"
    )
    for seed in "123456":
        run = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout.strip() == "2.3.1"


def test_a_source_tree_is_built_again_where_it_is() -> None:
    """vllm issue 14942: vllm/vllm/_C.abi3.so of a checkout."""
    file, name = ".../vllm/vllm/_C.abi3.so", "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"
    answer = first(missing(file, name), "vLLM source checkout, Mar 2025")
    assert any("--no-build-isolation" in text for text in answer.help)
    assert not any("--upgrade" in text for text in answer.help)
