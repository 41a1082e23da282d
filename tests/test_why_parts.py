"""``why`` where the usual build is none for the reader: parts of a package, nightlies, pairs.

The facts are those of the cited reports, of ``pip index versions`` and of the projects' setup.py.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.python_api import pair_for

SITE = "/x/lib/python3.11/site-packages"
CHECK = (
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
LOGGER = "_ZN3c1013MessageLoggerC1EPKciib"
THE_NEWEST = "_ZN3c1013MessageLoggerC1ENS_14SourceLocationEib"
TENSOR_BASE = "_ZNK2at10TensorBase8data_ptrIdEEPT_v"
SYM_INT = "_ZNK3c106SymInt22maybe_as_int_slow_pathEv"


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize(
    ("told", "wanted"),
    [("torch 2.5.1, Transformer Engine 2.1.0", "==2.1.0"), ("torch 2.5.1", "==X.Y.Z")],
)
def test_a_part_is_built_again_and_not_the_whole(told: str, wanted: str) -> None:
    """TransformerEngine's loader refuses a core and a torch part of two releases (issue 1684)."""
    file = f"{SITE}/transformer_engine/wheel_lib/transformer_engine_torch.cpython-311-x86.so"
    answer = first(missing(file, CHECK), told)
    built = [text for text in answer.help if "--no-build-isolation" in text]
    assert built and built[0].endswith(f"transformer_engine_torch{wanted}")
    assert "git+" not in " ".join(answer.help)


def test_a_part_that_came_with_the_whole_is_built_with_it() -> None:
    file = f"{SITE}/transformer_engine_torch.cpython-311-x86_64-linux-gnu.so"
    assert "git+https" in " ".join(first(missing(file, CHECK), "torch 2.5.1").help)


def test_a_prerelease_wants_the_nightly_that_its_wheel_names() -> None:
    """spark-vllm-docker pull request 141: torch from the cu132 nightlies was the cure."""
    told = "vllm 0.18.1rc1 (prebuilt, cu132), torch nightly cu130"
    answer = first(missing("_C.abi3.so", THE_NEWEST), told)
    typed = " ".join(answer.help)
    assert "--pre" in typed and "/nightly/cu132" in typed
    # A name that torch 2.10 alone had is in no nightly of today, but in that release.
    past = " ".join(first(missing("_C.abi3.so", LOGGER), told).help)
    assert '"torch==2.10.0"' in past and "--pre" not in past
    assert "rm -rf build" not in typed and "no way out" not in said(answer)
    assert "a nightly for cu130" in said(answer)
    released = first(missing("_C.abi3.so", LOGGER), "vllm 0.18.1, torch 2.9.1")
    assert "nightly" not in said(released)


def test_what_setup_py_built_is_built_by_setup_py() -> None:
    """wenet issue 1626: torch 1.11.0 put it right; setup.py runs cmake in its build_temp."""
    zeros = (
        "_ZN2at4_ops5zeros4callEN3c108ArrayRefIlEENS2_8optionalINS2_10ScalarTypeEEENS5_INS2_6Layout"
        "EEENS5_INS2_6DeviceEEENS5_IbEE"
    )
    file = "/home/a/python/build/temp.linux-x86_64-3.8/api/libwenet_api.so"
    answer = first(missing(file, zeros), "torch 1.13.1")
    typed = " ".join(answer.help)
    assert "cd /home/a/python && rm -rf build" in typed and "cmake -S" not in typed
    assert '"torch==1.12.1"' in typed and answer.direction == "file-older"
    own = first(missing("/home/a/cpp/build/libnet.so", zeros), "torch 1.13.1")
    assert "cmake -S" in " ".join(own.help)


def test_a_module_without_a_tag_is_removed_from_its_tree() -> None:
    """kaolin issue 768: what lies in the tree goes before what pip puts elsewhere."""
    answer = first(missing("/home/a/v-main/kaolin/kaolin/_C.so", TENSOR_BASE), "torch 1.9.1")
    assert "-name '_C.so'" in answer.help[0] and answer.help[0].endswith(" -e .")
    assert "most likely /home/a/v-main/kaolin)" in said(answer)
    other = first(missing("/home/a/net/ops/_C.so", TENSOR_BASE), "torch 1.9.1")
    assert "-delete" not in " ".join(other.help)


def test_the_repository_of_the_text_is_what_is_compiled_again() -> None:
    file = f"{SITE}/torch_fpsample/_core.cpython-311-x86_64-linux-gnu.so"
    text = "(with pip3 install git+https://github.com/leonardodalinky/pytorch_fpsample).\n"
    answer = first(text + missing(file, SYM_INT), "torch 2.8.0")
    assert answer.help[0].endswith("git+https://github.com/leonardodalinky/pytorch_fpsample")
    assert "--no-build-isolation" in answer.help[0] and '"torch==2.9.0"' in answer.help[1]
    assert "rm -rf build" not in " ".join(answer.help)


def test_uv_is_told_how_it_builds() -> None:
    """uv issue 12288."""
    name = "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"
    text = missing("[the lib].cpython-312-x86_64-linux-gnu.so", name)
    assert "no-build-isolation-package" in said(first(text, "CUDAExtension built with uv"))
    assert "no-build-isolation-package" not in said(first(text, "CUDAExtension built with pip"))


BANNER = (
    "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
    "    PyTorch {built} with CUDA {cuda} (you have {have})\n"
    "    Python  3.11.9 (you have 3.11.9)\n"
)


def test_xformers_without_kernels_is_replaced_whatever_torch_is_there() -> None:
    """DynamiCrafter issue 86; xformers 0.0.17 to 0.0.19 have wheels up to cp310 and no sdist."""
    text = BANNER.format(built="2.3.0+cu121", cuda="None", have="2.0.0+cu117")
    answer = first(text)
    typed = " ".join(answer.help)
    assert '"torch==2.0.1" "xformers==0.0.22"' in typed and "0.0.19" not in typed
    assert "compiled without CUDA" in answer.cause
    alike = first(BANNER.format(built="2.3.0+cu121", cuda="None", have="2.3.0+cu121"))
    assert "compiled without CUDA" in alike.cause and "xformers==0.0.26.post1" in alike.help[0]
    with_code = first(BANNER.format(built="2.3.0+cu121", cuda="1201", have="2.2.0+cu121"))
    assert "compiled without" not in with_code.cause and "xformers==0.0.24" in with_code.help[0]


def test_a_pair_is_one_that_pip_can_get_for_the_python() -> None:
    assert pair_for("xformers", "2.0.0+cu117", "3.10") == ("0.0.19", "2.0.0")
    found = pair_for("xformers", "2.0.0", "3.11.9")
    assert found is not None and found[1] == "2.0.1"
    assert pair_for("xformers", "2.14.0", "3.11") is None


def test_cuda_alone_parts_two_torches_of_the_stable_interface() -> None:
    """unsloth issue 8580: xformers for torch 2.10 is on torch's stable ABI (0.0.34's notes)."""
    text = BANNER.format(built="2.10.0+cu128", cuda="1208", have="2.11.0+cu130")
    assert "12 against 13" in first(text).cause and "older than torch" not in first(text).cause


@pytest.mark.parametrize(
    ("torch", "told", "wanted"),
    [
        ("1.9.0+cu111", "0.10.0.dev20210902+rocm4.1", '"torchaudio==0.9.0"'),
        (
            "2.4.0+cu121",
            "2.3.0+rocm6.0",
            '"torchaudio==2.4.0" --index-url https://download.pytorch.org/whl/cu121',
        ),
        (
            "2.4.0+cu121",
            "2.4.0+rocm6.1",
            '"torchaudio==2.4.0" --index-url https://download.pytorch.org/whl/cu121',
        ),
    ],
)
def test_the_release_for_torch_takes_the_place_of_a_rocm_build(
    torch: str, told: str, wanted: str
) -> None:
    """audio issue 1749; torchaudio 0.9.0 is for torch 1.9.0 (its metadata), and for every CUDA."""
    text = (
        '  File "e/lib/python3.9/site-packages/torchaudio/__init__.py", line 32, in <module>\n'
        "    from torchaudio import _torchaudio  # noqa\n"
        "ImportError: libtorch_hip.so: cannot open shared object file: No such file or directory\n"
        f"[pip3] torch=={torch}\n[pip3] torchaudio=={told}"
    )
    answer = first(text)
    assert answer.help[0].endswith(wanted)
    assert ("same release" in answer.cause) == told.startswith(torch.partition("+")[0])


def test_several_packages_of_a_text_are_compiled_again_together() -> None:
    """pytorch_scatter issue 173: libtorch_cpu.so is in torch's wheels from 1.5.0 on."""
    text = "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory"
    answer = first(text, "torch 1.3.0, torch-scatter 1.3.2, torch-cluster 1.4.5")
    assert "torch-cluster==1.4.5 torch-scatter==1.3.2" in answer.help[0]
    assert "--no-build-isolation" in answer.help[0]
    assert "torch 1.5.0" in said(first(text))


def test_pip_show_at_a_prompt_tells_the_version() -> None:
    """sdnext issue 3531: torchvision 0.20.1 is for torch 2.5.1 (its metadata)."""
    text = (
        "RuntimeError: operator torchvision::nms does not exist\n"
        "(venv) C:\\...\\automatic>pip show torch\nVersion: 2.4.0+cu121\n"
        "(venv) C:\\...\\automatic>pip show torchvision\nVersion: 0.20.1+cu124\n"
    )
    answer = first(text)
    assert "0.20.1 was built for torch 2.5.1" in answer.cause
    assert '"torchvision==0.19.0" --index-url https://download.pytorch.org/whl/cu121' in " ".join(
        answer.help
    )


def test_an_older_torchcodec_is_the_other_half_of_the_pair() -> None:
    """torchcodec's README: 0.10 is for torch 2.10, 0.9 for 2.9."""
    file = f"{SITE}/torchcodec/libtorchcodec_core8.so"
    answer = first(missing(file, "torch_from_blob"))
    assert "0.9.1 for torch 2.9, 0.10.0 for torch 2.10" in said(answer)
    known = first(missing(file, "torch_from_blob"), "torch 2.9.1")
    assert "torchcodec==0.9.1" in " ".join(known.help)
