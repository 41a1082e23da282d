"""``why`` on names of torch that changed: gaps, pairs of signatures, what a package exists for.

The releases are those of ``nm -D`` over torch's wheels.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.why.torch_names.signature import unlike_parameters

SITE = "/x/lib/python3.{}/site-packages"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize("place", [f"{SITE.format(8)}/q", "/home/a/q/ops"])
def test_many_old_releases_without_a_name_tell_no_direction(place: str) -> None:
    """SetDevice(int) is in 2.1 and 2.2; Python 3.8 has wheels of 1.4 to 2.4."""
    answer = first(missing(f"{place}/_C.cpython-38-x86_64-linux-gnu.so", SET_DEVICE))
    assert (answer.kind, answer.direction) == ("symbol-drift", "unknown")
    assert "older or newer" in answer.cause


def test_a_package_that_came_later_leaves_one_side() -> None:
    """torch_tensorrt came with torch 1.10, and the name ends with 1.9."""
    file = f"{SITE.format(6)}/torch_tensorrt/lib/libtorchtrt.so"
    answer = first(missing(file, "_ZNK2at6Tensor21__dispatch_contiguousEN3c1012MemoryFormatE"))
    assert (answer.direction, answer.confidence) == ("file-older", "medium")
    assert "1.10.0 or later" in answer.cause
    assert not [text for text in answer.help if '"torch' in text]  # none that has both


def test_a_floor_close_to_the_name_is_no_evidence_for_newer() -> None:
    """vllm began with torch 2.0, one minor release before SetDevice(int)."""
    answer = first(missing(".../vllm/ops.cpython-39-x86_64-linux-gnu.so", SET_DEVICE))
    assert answer.direction == "unknown"


NARROW = "_ZNK2at6Tensor6narrowElll"


def test_a_name_that_went_and_came_again_is_missed_by_the_releases_between() -> None:
    """Tensor::narrow(long, long, long) is in 1.0 to 1.9 and from 2.0 on."""
    file = f"{SITE.format(7)}/torch_scatter/_scatter_cuda.so"
    answer = first(missing(file, NARROW), "image: pytorch:1.9.1-cuda11.1")
    assert (answer.kind, answer.code) == ("wrong-torch", "FA607")
    assert "1.13.1, newer than 1.9.1, and the file is older" in answer.cause
    assert 'python -m pip install "torch==1.9.1"' in answer.help
    assert "no release is wrong" not in said(answer)


def test_of_several_signatures_the_like_one_is_the_one_before() -> None:
    answer = first(missing("q.so", "_ZNK2at6Tensor4div_ERKN3c106ScalarE"))
    assert "in 1.9.0 `c10::Scalar` became `c10::Scalar const&`" in answer.cause
    assert "std::string" not in answer.cause


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("f(c10::Scalar)", "f(c10::Scalar const&)", 0),
        ("f(at::Tensor const&, std::string)", "f(c10::Scalar const&)", 3),
        ("f(c10::optional<long>)", "f(std::optional<long>)", 0),
        ("f(int)", "f(int, bool)", 1),
    ],
)
def test_parameters_are_alike_but_for_const_and_the_age_of_templates(
    old: str, new: str, count: int
) -> None:
    assert unlike_parameters(old, new) == count


@pytest.mark.parametrize(
    ("python", "torch", "text"), [("6", "1.6.0", "0.7.0"), ("8", "1.6.0", "0.7.0")]
)
def test_the_pair_of_an_ended_package_is_one_for_the_python(
    python: str, torch: str, text: str
) -> None:
    """The file is newer than torch: the first pair that has the name, with wheels for Python."""
    file = f"{SITE.format(python)}/torchtext/_torchtext.so"
    answer = first(missing(file, "_ZN3c1023_fastEqualsForContainerERKNS_6IValueES2_"))
    assert f"python -m pip install torch=={torch} torchtext=={text}" in answer.help


@pytest.mark.parametrize("package", ["torchaudio", "torchvision", "xformers"])
def test_without_a_torch_in_the_text_both_of_a_pair_are_installed(package: str) -> None:
    """torchaudio 2.11 asks for no torch, so that it alone would bring none along."""
    file = f"{SITE.format(11)}/{package}/lib/lib{package}.so"
    answer = first(missing(file, "torch_library_impl"))
    wanted = f"python -m pip install --upgrade --no-cache-dir torch {package}"
    assert answer.direction == "file-newer" and wanted in answer.help


def test_a_name_of_torch_for_apples_gpus_has_a_way_out() -> None:
    """MPSStream::commit(bool) ends with 2.0.1; no Mac has CUDA."""
    file = f"{SITE.format(9)}/mmcv/_ext.cpython-39-darwin.so"
    line = f"dlopen({file}, 0x0002): symbol not found in flat namespace"
    answer = first(f"ImportError: {line} '__ZN2at3mps9MPSStream6commitEb'")
    assert 'python -m pip install "torch==2.0.1"' in answer.help
    assert any("mmcv" in text for text in answer.help)
    assert "CUDA" not in "\n".join(answer.help)


@pytest.mark.parametrize(
    ("python", "torch", "tag"),
    [("6", "", "@v0.6.1"), ("8", "torch 1.5.1", "@v0.3.0"), ("8", "torch 1.9.0", "@v0.6.1"),
     ("10", "torch 2.4.0", "")],
)  # fmt: skip
def test_a_repository_is_built_at_the_tag_for_an_old_torch(
    python: str, torch: str, tag: str
) -> None:
    file = f"{SITE.format(python)}/pytorch3d/_C.so"
    text = missing(file, "_ZN3c104impl23ExcludeDispatchKeyGuardC1ENS_11DispatchKeyE")
    if torch == "torch 1.5.1":  # which has that name
        text = missing(file, "_ZN2at6mm_outERNS_6TensorERKS0_S3_")
    built = [one for one in first(text, torch).help if "git+" in one]
    assert built and built[0].endswith(f"facebookresearch/pytorch3d{tag}")


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("TPU has started up successfully with version pytorch-1.9", None),
        ("FROM pytorch:1.9.1-cuda11.1-cudnn8-devel", "1.9.1"),
        ("FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel", "2.1.0"),
    ],
)
def test_what_is_no_torch_and_what_is_whole(text: str, torch: str | None) -> None:
    assert read_paste(text).versions.get("torch") == torch


@pytest.mark.parametrize(
    ("stated", "meant"),
    [("1.51", "1.5.1"), ("2.01", "2.0.1"), ("1.101", "1.10.1"), ("2.10", "2.10.0")],
)
def test_a_version_without_its_last_dot(stated: str, meant: str) -> None:
    answer = first(missing("q.so", "_ZN3c1011CPUTensorIdEv"), f"pytorch {stated}")
    assert f"older than torch {meant}" in answer.cause.replace("2.10.0+cu128", "2.10.0")


def test_an_operator_that_is_missing_on_windows_is_not_inspected() -> None:
    lines = (
        r'  File "C:\envs\a\Lib\site-packages\torchvision\__init__.py", line 10, in <module>',
        "RuntimeError: operator torchvision::nms does not exist",
    )
    answer = first(*lines)
    assert "fa-forensics inspect" not in "\n".join(answer.help)
    assert any(text.endswith("torch torchvision") for text in answer.help)


def test_packages_with_a_floor_have_one_on_record() -> None:
    table = json.loads(
        (Path(__file__).parents[1] / "fa_forensics/data/torch_pairs.json").read_text("utf-8")
    )
    for package, pairs in table["packages"].items():
        floor = table["since"].get(package)
        if floor is not None:
            assert all(
                tuple(map(int, torch.split("."))) >= tuple(map(int, floor.split(".")))
                for torch in pairs.values()
            )


EMPTY = "_ZN2at5emptyEN3c108ArrayRefIlEERKNS0_13TensorOptionsENS0_8optionalINS0_12MemoryFormatEEE"


@pytest.mark.parametrize(
    ("python", "versions", "typed"),
    [
        ("37m", "torch 1.8.0+cu111, mmcv-full 1.2.4",
         "mmcv-full==1.2.4 -f https://download.openmmlab.com/mmcv/dist/cu111/torch1.8.0/index.html"),
        ("37m", "", "--no-binary mmcv-full mmcv-full"),  # its torch is 1.6 or 1.7
        ("39", "torch 2.1.0+cu121, mmcv 2.1.0",
         "mmcv==2.1.0 -f https://download.openmmlab.com/mmcv/dist/cu121/torch2.1.0/index.html"),
    ],
)  # fmt: skip
def test_mmcv_by_the_name_of_its_time_and_from_its_own_page(
    python: str, versions: str, typed: str
) -> None:
    file = f".../mmcv/_ext.cpython-{python}-x86_64-linux-gnu.so"
    answer = first(missing(file, EMPTY), versions)
    built = [text for text in answer.help if "mmcv" in text and "install" in text]
    assert len(built) == 1 and built[0].endswith(typed)


def test_mmcv_is_known_by_the_traceback_where_no_file_is_named() -> None:
    frame = '  File "/usr/lib/python3.6/site-packages/mmcv/ops/bbox.py", line 3, in <module>'
    answer = first(frame, f"ImportError: undefined symbol: {EMPTY}")
    assert any(text.endswith("--no-binary mmcv-full mmcv-full") for text in answer.help)


def test_torchs_own_library_is_not_mended_by_an_extension() -> None:
    """libtorch.so.1 itself lacks a name of torch 1.0: two torches are mixed."""
    file = f"{SITE.format(7)}/torch/lib/libtorch.so.1"
    answer = first(missing(file, "_ZTIN2at10TensorImplE"), "PyTorch Version: 1.0")
    assert answer.kind == "wrong-torch" and "mixed" in answer.cause
    assert "A build of the extension" not in said(answer)
    assert "rm -rf build" not in said(answer)


@pytest.mark.parametrize(
    ("torch", "release"), [("2.3.1", "fbgemm-gpu==0.7.0"), ("2.5.1+cu124", "fbgemm-gpu==1.0.0")]
)
def test_a_package_with_a_table_of_its_own_is_taken_by_it(torch: str, release: str) -> None:
    """FBGEMM's page of releases pairs 0.7.0 with torch 2.3 and 1.0.0 with 2.5."""
    symbol = "_ZN3c104cuda9SetDeviceEab"  # 2.8 and later
    answer = first(missing("fbgemm_gpu_py.so", symbol), f"torch {torch}")
    assert answer.direction == "file-newer"
    assert any(text.endswith(f"--no-deps --no-cache-dir {release}") for text in answer.help)


def test_a_file_without_a_package_is_that_of_the_only_one_in_the_text() -> None:
    answer = first(missing("_C.cpython-38-x86_64-linux-gnu.so", SET_DEVICE), "pytorch3d 0.7.4")
    assert any("facebookresearch/pytorch3d" in text for text in answer.help)


ZERO = "_ZNK2at6Tensor5zero_Ev"


@pytest.mark.parametrize(("told", "direction"), [("torch 1.10.0+cu102", "file-older"), ("", "")])
def test_a_weak_copy_of_an_inline_method_is_nothing_that_a_file_was_built_for(
    told: str, direction: str
) -> None:
    """nm -D: zero_() is T in torch 1.3 to 1.9, and W in 1.12, whose headers define it."""
    file = f"{SITE.format(7)}/torch_sparse/_convert_cuda.so"
    answer = first(missing(file, ZERO), told)
    assert "1.12.1" in answer.exported_by
    assert answer.direction == (direction or "unknown")
    assert 'python -m pip install "torch==1.9.1"' in answer.help
    assert "built with torch 1.9.1 or before" in said(answer)


def test_an_instance_of_a_template_is_weak_and_asked_for() -> None:
    """grow_pod of SmallVectorBase<unsigned> is W in every release, and files import it."""
    answer = first(
        missing(f"{SITE.format(8)}/q/_C.so", "_ZN3c1015SmallVectorBaseIjE8grow_podEPvmm")
    )
    assert "weak copy" not in said(answer)


TO_NUMPY = "_ZN5torch5utils15tensor_to_numpyERKN2at6TensorEb"
GET_ITEM = "_ZN5torch8autograd19THPVariable_getitemEP7_objectS2_"


def test_a_function_that_its_library_hides_is_not_had_by_a_rebuild() -> None:
    """pytorch issue 154105: the header of 2.7.0 declares it, libtorch_python does not export it."""
    answer = first(missing("/x/conv.so", TO_NUMPY), "torch 2.7.0")
    assert 'python -m pip install "torch>=2.8.0"' in answer.help
    assert 'python -m pip install "torch==2.6.0"' in answer.help
    assert "is the other way out" not in said(answer) and "lacks it too" in said(answer)
    alone = first(missing("/x/conv.so", TO_NUMPY))
    assert "can be compiled again" not in said(alone)
    assert 'python -m pip install "torch>=2.8.0"' in alone.help


def test_what_is_hidden_since_then_for_good_needs_an_older_torch() -> None:
    answer = first(missing(f"{SITE.format(9)}/foo/_C.so", GET_ITEM), "torch 2.8.0")
    assert answer.direction == "file-older" and "rm -rf build" not in said(answer)
    assert 'python -m pip install "torch==2.6.0"' in answer.help


def test_another_overload_of_the_same_release_is_no_successor() -> None:
    """torch/csrc/jit/frontend/tracer.h: addInputs has one for each type of a parameter."""
    symbol = "_ZN5torch3jit6tracer9addInputsEPNS0_4NodeEPKcRKN3c1013TensorOptionsE"
    answer = first(missing("/x/p.so", symbol), "torch 1.7.0")
    assert answer.direction == "file-older"
    assert "optional<at::Tensor> const&`" not in said(answer)
    assert "`at::TensorOptions const&` became `c10::TensorOptions const&`" in said(
        first(missing("/x/p.so", symbol))
    )


@pytest.mark.parametrize("behind", [",", ";", ".", ")", " "])
def test_the_mark_behind_a_variables_value_is_the_sentences(behind: str) -> None:
    paste = read_paste(f"vllm v0.16.0 (editable, VLLM_USE_PRECOMPILED=1{behind} driver 590)")
    assert paste.versions["env:VLLM_USE_PRECOMPILED"] == "1"
