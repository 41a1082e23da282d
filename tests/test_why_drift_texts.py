"""``why`` on names of torch: which package and torch a text names, and what that leaves to type.

The releases are those of ``nm -D`` over torch's wheels; the texts are shortened from reports.
"""

from __future__ import annotations

from support.asking import first, said

VISION = "../third/torchvision/lib/libtorchvision.so: undefined reference to"
CHECK_FAIL = "c10::detail::torchCheckFail(char const*, char const*, unsigned int, char const*)"
RECORD = "at::RecordFunction::RecordFunction(at::RecordScope, bool)"


def test_the_linker_names_the_direction_where_the_torch_is_older_than_the_name() -> None:
    """nm: libc10 has torchCheckFail with these parameters from torch 1.8.0 on."""
    answer = first(f"{VISION} `{CHECK_FAIL}'", "libtorch 1.7.1")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-newer")
    assert "--branch v0.8.2 https://github.com/pytorch/vision" in answer.help[0]
    assert not [text for text in answer.help if "pip install" in text]


def test_a_torch_that_has_the_name_is_not_on_the_link_line() -> None:
    answer = first(f"{VISION} `{CHECK_FAIL}'", "libtorch 1.9.0")
    assert answer.code == "FA210"
    assert "none since 1.8.0 too old" in answer.cause
    assert "one of the two" not in said(answer)


def test_another_name_of_few_releases_tells_that_the_torches_differ() -> None:
    """RecordFunction(RecordScope, bool) is in 1.8.0 to 1.11.0 alone."""
    answer = first(f"{VISION} `{CHECK_FAIL}'\n{VISION} `{RECORD}'")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-newer")


CUT = (
    "4_ops19empty_memory_format4callEN3c108ArrayRefI{0}EENS2_8optionalINS2_10ScalarTypeEEENS5_INS2_"
    "6LayoutEEENS5_INS2_6DeviceEEENS5_IbEE..."
)


def test_dots_behind_a_name_mean_that_it_goes_on() -> None:
    """Of torch's names one alone begins so; nm has it in torch 1.10.0 to 1.12.1."""
    file = "/x/lib/python3.10/site-packages/torchtext/lib/libtorchtext.so"
    linux = first(f"ImportError: {file}: undefined symbol: _ZN2at{CUT.format('l')}")
    mac = first(f"OSError: dlopen({file}, 0x0006): Symbol not found: __ZN2at{CUT.format('x')}")
    for answer in (linux, mac):
        assert answer.interval == "1.10.0 \u2013 1.12.1"
        assert (answer.direction, answer.confidence) == ("file-older", "medium")
        assert "cut off" in said(answer)
    assert "python -m pip install torch==1.12.1 torchtext==0.13.1" in mac.help


SITE = "/x/lib/python3.10/site-packages"
POINTER = "_ZN3c1021throwNullDataPtrErrorEv"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"


def missing(file: str, symbol: str, python: str = "3.10") -> str:
    site = SITE.replace("3.10", python)
    return f"ImportError: {site}/{file}: undefined symbol: {symbol}"


def test_a_wheel_that_names_its_torch_is_taken_with_that_torch() -> None:
    """TensorRT-LLM comes as a wheel alone, each release of which pins torch."""
    text = (
        f'  File "{SITE}/tensorrt_llm/graph.py", line 1, in <module>\nundefined symbol: {POINTER}'
    )
    answer = first(text, "TensorRT-LLM 0.13.0")
    assert answer.direction == "file-newer"
    assert "python -m pip check" in answer.help
    assert any(t.endswith("https://pypi.nvidia.com tensorrt-llm==0.13.0") for t in answer.help)
    assert not [t for t in answer.help if t.startswith("rm -rf build") or '"torch>=' in t]


def test_old_releases_of_torch_xla_are_files_of_the_project() -> None:
    file = "_XLAC.cpython-36m-x86_64-linux-gnu.so"
    answer = first(
        missing(file, "_ZN2at13nanmedian_outERNS_6TensorES1_RKS0_lb", "3.6"), "torch 1.7.0"
    )
    assert answer.direction == "file-newer"
    assert any("/torch_xla-1.7-cp36-cp36m-linux_x86_64.whl" in text for text in answer.help)
    assert "torch-xla==1" not in said(answer)


def test_a_second_top_level_name_leads_to_the_package() -> None:
    file = "tinycudann_bindings/_61_C.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file, "_ZN3c104impl8GPUTrace13gpuTraceStateE"), "torch 1.12.1+cu113")
    assert answer.direction == "file-newer"
    assert "NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch" in answer.help[0]
    assert "rm -rf build" not in said(answer)


def test_sister_packages_come_from_the_address_of_the_torch() -> None:
    name = "_ZN3c106detail12infer_schema20make_function_schemaENS_8ArrayRefINS1_11ArgumentDefEEES4_"
    answer = first(
        missing("torch_sparse/_version_cuda.so", name),
        "pytorch=1.7.0 cudatoolkit=11.0 (conda), pip3 install torch-scatter torch-sparse",
    )
    assert answer.help[0].endswith(
        "torch-sparse torch-scatter -f https://data.pyg.org/whl/torch-1.7.0+cu110.html"
    )


def test_a_file_of_torch_14_is_left_over_where_the_torch_of_the_text_has_the_name() -> None:
    """nm: libtorch_cpu of torch 1.6.0 has it; builds of torch 1.4 list no library of torch."""
    name = "_ZN5torch8autograd4Node20get_next_sequence_nrEv"
    answer = first(missing("torch_scatter/_scatter.so", name), "upgraded torch to the 1.6 versions")
    assert (answer.code, answer.direction) == ("FA607", "file-older")
    assert not [text for text in answer.help if '"torch==' in text]
    assert any("--no-binary torch-scatter" in text for text in answer.help)


def test_a_release_of_flash_attn_leaves_out_torches_it_has_no_wheel_for() -> None:
    """The name is in torch 2.0 to 2.9; flash-attn 2.8.3's wheels begin with torch 2.4."""
    answer = first(
        f"undefined symbol: {CHECK}",
        "The following error occurred when `transformer-engine` imported `flash-attn`:",
        "transformer-engine=2.12.0, flash-attn=2.8.3",
    )
    assert (answer.direction, answer.confidence) == ("file-older", "medium")
    assert "fa-forensics wheels" in answer.help
    assert any("--no-binary flash-attn" in text for text in answer.help)


def test_torchaudio_is_changed_with_torch_where_the_text_has_it() -> None:
    """torchaudio 0.8.1 belongs to torch 1.8.1."""
    answer = first(
        missing("libk2context.so", "_ZNK2at6Tensor7is_cudaEv", "3.8"),
        "torch 1.10.0, torchaudio 0.10.0",
    )
    assert any(text.endswith('"torch==1.8.1" torchaudio==0.8.1') for text in answer.help)
    assert any("github.com/k2-fsa/k2" in text for text in answer.help)


BANNER = "[sgl_kernel] CRITICAL: Could not load any common_ops library!"
FOUND = f"found files: ['{SITE}/sgl_kernel/common_ops.cpython-310-x86_64-linux-gnu.so']"


def test_a_list_of_tries_without_its_errors_is_asked_for_them() -> None:
    """sgl_kernel's load_utils.py prints the errors below the list."""
    text = f"ImportError: \n{BANNER}\n\nAttempted locations:\n2. Fallback pattern: {SITE} - {FOUND}"
    answer = first(text, "torch==2.10.0")
    assert (answer.kind, answer.owner, answer.confidence) == ("wrong-torch", "sgl-kernel", "low")
    assert "no file is missing" in answer.cause
    assert "Error details" in said(answer)
    whole = first(f"{text}\n- ImportError: libnuma.so.1: cannot open shared object file")
    assert whole.kind == "missing-library"


def test_a_build_helps_with_a_torch_1_0_from_source_alone() -> None:
    """cpp_extension.py of torch 1.0: =0 for plain release numbers, no flag for 1.0.0a0+hash."""
    name = "_ZN3c105ErrorC1ENS_14SourceLocationERKSs"
    file = "(...)/KNN_CUDA/knn_cuda/csrc/_ext/knn/knn.so"
    answer = first(f"ImportError: {file}: undefined symbol: {name}", "pytorch 1.0.1")
    assert answer.direction == "other-flavour"
    assert "1.0.1a0+" in said(answer) and "GCC 5" in said(answer)
    assert 'python -m pip install "torch==1.1.0"' in answer.help


def test_an_image_of_nvidia_is_started_again_where_another_torch_lies_over_it() -> None:
    """nm: libc10 has SymInt::sym_ne in torch 2.0.0 to 2.8.0."""
    file = "transformer_engine/transformer_engine_torch.cpython-312-x86_64-linux-gnu.so"
    answer = first(
        missing(file, "_ZNK3c106SymInt6sym_neERKS0_", "3.12"),
        "image nvcr.io/nvidia/nemo:25.09.nemotron_nano_v2_vl plus pip-installed torch",
    )
    assert answer.direction == "file-older"
    assert "start again from the image" in said(answer)
    assert '"torch==' not in said(answer)


NATTEN = "_ZN2at4cuda19getDevicePropertiesEl"
FAILED_IMAGE = "UserWarning: Failed to load image Python extension: "


def test_what_ended_the_program_goes_before_a_warning_and_files_are_counted_apart() -> None:
    """torchvision's warning names another file; natten's name is in torch up to 2.2."""
    site = "/x/lib/python3.10/site-packages"
    answer = first(
        f"{FAILED_IMAGE}'{site}/torchvision/image.so: undefined symbol: "
        "_ZN3c1017RegisterOperatorsD1Ev'If you don't plan on using image functionality, ignore",
        f"ImportError: {site}/natten/libnatten.cpython-310-x86_64-linux-gnu.so: "
        f"undefined symbol: {NATTEN}",
    )
    assert answer.symbol == NATTEN and any("natten" in text for text in answer.help)
    assert not any("names in the text together" in note for note in answer.notes)


def test_a_directory_for_one_gpu_is_of_its_package() -> None:
    file = "/x/lib/python3.8/site-packages/tinycudann_bindings_61/_C.cpython-38-x86_64-linux-gnu.so"
    answer = first(f"ImportError: {file}: undefined symbol: _ZNK2at6Tensor6deviceEv")
    assert any("tiny-cuda-nn/#subdirectory=bindings/torch" in text for text in answer.help)
    assert not any(text.startswith("rm -rf build") for text in answer.help)


def test_a_dialog_of_windows_is_read_over_its_line_ends() -> None:
    """Microsoft's spelling of c10::warn(c10::Warning const&), which c10.dll exports."""
    answer = first(
        "The procedure entry point",
        "?warn@c10@@YAXAEBVWarning@1@@Z could not be",
        "located in the dynamic link library",
        r"D:\sd\venv\Lib\site-packages\xformers\_C.pyd.",
    )
    assert answer.owner == "torch/c10" and "c10::warn" in answer.cause
    assert "xformers" in answer.cause and "c10.dll" in answer.cause


def test_a_symbol_in_words_is_one_of_torch() -> None:
    answer = first(
        "ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!",
        "1. sm100/common_ops.abi3.so - undefined symbol (PyTorch C10 ABI mismatch)",
        "2. No sm121/ directory present",
        "PyTorch 2.12.1+cu130, sglang-kernel 0.4.4+cu130",
    )
    assert answer.owner == "torch" and "2.12.1" in answer.cause
    assert "sglang-kernel 0.4.4" in answer.cause and "not the cause" in answer.cause


def test_files_out_of_a_wheel_of_vllm_are_taken_from_that_of_the_tree() -> None:
    answer = first(
        "VLLM_USE_PRECOMPILED=1 pip install --editable .",
        "undefined symbol: _ZN3c104cuda9SetDeviceEab",
    )
    text = "\n".join(answer.help)
    assert "VLLM_PRECOMPILED_WHEEL_LOCATION=" in text and "env -u VLLM_USE_PRECOMPILED" in text
    assert "--upgrade" not in text and "torch>=" not in text


def test_a_package_that_is_imported_from_its_source_is_built_there() -> None:
    answer = first(
        "~/repo/audio/torchaudio/__init__.py in <module>()",
        "ImportError: /usr/local/lib/python3.5/dist-packages/_torch_sox.cpython-35m-x86_64-linux-"
        "gnu.so: undefined symbol: _ZN2at19UndefinedTensorImpl10_singletonE",
    )
    assert any(text.endswith(" -e ~/repo/audio") for text in answer.help)


def test_a_report_of_a_day_is_most_likely_of_a_torch_of_that_day() -> None:
    """torch 1.7 was out in December 2020, and the name ends with 1.6."""
    file = "/x/lib/python3.6/site-packages/pytorch3d/_C.cpython-36m-x86_64-linux-gnu.so"
    symbol = "_ZN3c104impl23ExcludeDispatchKeyGuardC1ENS_11DispatchKeyE"
    line = f"{file}: undefined symbol: {symbol}"
    assert first(line, "(December 2020)").direction == "file-older"
    assert first(line).direction == "unknown"


def test_an_old_report_gets_the_pair_of_its_time() -> None:
    """README of pytorch/vision: torchvision 0.3.0 is for torch 1.1.0."""
    file = "/x/lib/python3.6/site-packages/torchvision/_C.cpython-36m-x86_64-linux-gnu.so"
    symbol = "_ZN3c1019UndefinedTensorImpl10_singletonE"
    answer = first(
        f"ImportError: {file}: undefined symbol: {symbol}",
        "Python 3.6 (July 2019), repository written for pytorch 1.0",
    )
    text = "\n".join(answer.help)
    assert '"torch==1.1.0" torchvision==0.3.0' in text and "--upgrade" not in text
