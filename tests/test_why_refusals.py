"""``why`` on refusals whose cause the text tells: a limit, a patch release, another system."""

from __future__ import annotations

from support.asking import answers, said

SITE = "/x/lib/python{}/site-packages/torch"


def test_a_bare_soname_that_is_not_mapped_may_be_the_address_spaces_limit() -> None:
    answer = answers("ImportError: libgcc_s.so.1: failed to map segment from shared object")[0]
    assert "ulimit -v" in answer.help[0] and "Two causes" in answer.cause
    assert "findmnt -T libgcc_s.so.1" not in said(answer)


def test_a_name_of_a_patch_release_of_python_is_not_called_present() -> None:
    line = f"ImportError: {SITE.format('3.6')}/_C.so: undefined symbol: PySlice_AdjustIndices"
    assert "3.6.1" in answers(line)[0].cause and "exports it, so" not in answers(line)[0].cause
    told = answers(line, "Python 3.6.0 :: Continuum Analytics, Inc.")[0]
    assert told.direction == "file-newer" and "3.6.0 does not" in told.cause
    other = f"ImportError: {SITE.format('3.5')}/_C.so: undefined symbol: PySlice_Unpack"
    assert "3.5.4" in answers(other)[0].cause


def test_python_2s_names_by_the_width_of_characters_name_the_other_wheel() -> None:
    for width, other in (("4", "cp27m in its"), ("2", "cp27mu in its")):
        line = f"ImportError: {SITE.format('2.7')}/_C.so: undefined symbol: PyUnicodeUCS{width}_X"
        answer = answers(line)[0]
        assert answer.code == "FA402" and other in said(answer)
        assert "sys.maxunicode" in answer.help[0]


def test_openmp_is_judged_by_its_versions() -> None:
    path = (
        f"/opt/conda/lib/libgomp.so.1: version `OACC_2.0' not found (required by {SITE}/lib/x.so)"
    )
    answer = answers(f"ImportError: {path}")[0]
    assert answer.owner == "libgomp" and "_openmp_mutex" in said(answer) and "LLVM" in answer.cause
    bare = answers("ImportError: /x/libTH.so.1: undefined symbol: GOMP_parallel")[0]
    assert "GCC 4.9" in bare.cause and bare.direction == "file-newer"


def test_a_library_for_linux_under_windows_is_no_matter_of_bits() -> None:
    answer = answers(
        r'  File "C:\Python310\lib\site-packages\bitsandbytes\functional.py", line 13, in <module>',
        "    lib = ct.cdll.LoadLibrary(os.path.dirname(__file__) + '/libbitsandbytes.so')",
        "OSError: [WinError 193] %1 is not a valid Win32 application",
    )[0]
    assert "library for Linux" in answer.cause and "0.43.0" in answer.help[0]


def test_two_libraries_without_room_for_tls_are_loaded_together() -> None:
    found = answers(
        "OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS "
        "block",
        f"OSError: {SITE.format('3.6')}/lib/libgomp-d2.so.1: cannot allocate memory in static TLS "
        "block",
    )
    assert len(found) == 1
    assert "libgomp.so.1" in found[0].help[0] and "libgomp-d2.so.1" in found[0].help[0]


def test_another_build_of_one_torch_is_taken_from_its_own_index() -> None:
    line = "xFormers was built for: PyTorch 2.6.0+cu124 with CUDA 1204 (you have 2.6.0+cu126)"
    answer = answers(
        "NotImplementedError: No operator found for `memory_efficient_attention`", line
    )
    assert (
        len(answer) == 1
        and "--index-url https://download.pytorch.org/whl/cu126" in answer[0].help[0]
    )
    assert "/cu126" in said(answer[0]) and "flavours differ" in answer[0].cause


def test_a_schema_that_does_not_fit_is_the_packages_and_not_torchs() -> None:
    line = (
        "RuntimeError: _vllm_fa2_C::varlen_fwd() expected at most 21 argument(s) but received 22 "
    )
    answer = answers(f"{line}argument(s).")[0]
    assert (answer.owner, answer.code) == ("vllm", "FA882") and "older" in answer.cause


def test_harmless_warnings_are_called_so() -> None:
    walked = answers("Tried to instantiate class '__path__._path', but it does not exist!")[0]
    assert walked.code == "FA898" and walked.cause.startswith("Harmless")
    image = answers("UserWarning: Failed to load image Python extension: ")[0]
    assert image.owner == "torchvision" and "torchvision works" in image.cause


def test_what_only_flash_attn_4_leaves_out_is_not_called_old() -> None:
    answer = answers("flash-attn-4==4.0.0b4: ModuleNotFoundError: No module named 'flash_attn.ops'")
    assert answer[0].owner == "flash-attn-4"
    bare = answers("ModuleNotFoundError: No module named 'flash_attn.ops'")[0]
    assert bare.confidence != "high" and "Three causes" in bare.cause


def test_a_package_without_metadata_is_not_installed() -> None:
    answer = answers("PackageNotFoundError: No package metadata was found for flash_attn")[0]
    assert (answer.owner, answer.code) == ("flash-attn", "FA880") and "sdpa" in said(answer)
