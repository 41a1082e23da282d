"""``why`` over torch's releases: who exported a name when, and where a torch stands in that.

The intervals are those that people established in public threads about these very symbols
(flash-attention, vllm, sglang, mamba, apex, pytorch_scatter and others) or that were read with
``nm -D`` from the real wheels; none was taken from this program.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.inspecting import invoke, one_sentence
from support.material import stub

from fa_forensics.atlas.ages import Ages
from fa_forensics.atlas.store import Atlas

DEVICE = "_ZN3c104cuda9SetDeviceE"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationE"
T22, T24, T26, T29 = "2.2.2+cu121", "2.4.0+cu121", "2.6.0+cu124", "2.9.1+cu128"
CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
SCHEMA = "_ZN5torch3jit17parseSchemaOrNameERK"
OLD_ERROR, NEW_ERROR = (f"_ZN3c105ErrorC2ENS_14SourceLocationE{s}" for s in ("Ss", CXX11))
ZEROS = (
    "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEE"
    "NS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEE"
)
EMPTY = (
    "_ZN2at4_ops19empty_memory_format4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optional"
    "INS2_10ScalarTypeEEENS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEENS6_INS2_12MemoryFormatEEE"
)
SUM_OUT = (
    "_ZN2at4_ops15sum_IntList_out4callERKNS_6TensorEN3c1016OptionalArrayRefIlEEbSt8optional"
    "INS5_10ScalarTypeEERS2_"
)
RECORD = "_ZN3c104cuda20CUDACachingAllocator12recordStreamERKNS_7DataPtrENS0_10CUDAStreamE"
ALWAYS = None

#: (symbol, first minor release that exports it, last one): None is not stated, or no end.
INTERVALS = [
    (DEVICE + "i", "2.1", "2.2"),
    (DEVICE + "a", "2.3", "2.7"),
    (DEVICE + "ab", "2.8", ALWAYS),
    (CHECK + "iPKcS2_ib", "2.0", "2.9"),
    (CHECK + "iPKcS2_jb", "2.10", "2.13"),
    ("_ZN3c1013MessageLoggerC1EPKcii", None, "2.9"),
    ("_ZNK3c106SymInt6sym_neERKS0_", "2.0", "2.8"),
    ("_ZNK2at10TensorBase8data_ptrIdEEPT_v", None, ALWAYS),
    ("_ZNK3c1017SymbolicShapeMeta18init_is_contiguousEv", "2.2", ALWAYS),
    ("_ZN3c1013MessageLogger6streamB5cxx11Ev", "2.10", ALWAYS),
    ("_ZN3c1021throwNullDataPtrErrorEv", "2.4", ALWAYS),
    ("_ZN3c106detail19maybe_wrap_dim_slowEllb", None, "1.13"),
    (SUM_OUT, "2.2", ALWAYS),
    ("_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv", "2.6", ALWAYS),
    (EMPTY, None, "2.1"),
    (ZEROS, None, "2.1"),
    ("_ZN3c104cuda20CUDACachingAllocator9allocatorE", "2.0", ALWAYS),
    (RECORD, None, "1.13"),
    ("_ZN3c1017RegisterOperatorsD1Ev", None, "2.1"),
    ("_ZN3c104cuda14ExchangeDeviceEa", "2.3", ALWAYS),
    ("_ZNK3c105Error4whatEv", "2.4", ALWAYS),
    ("_ZN3c1019UndefinedTensorImpl10_singletonE", None, ALWAYS),
    (OLD_ERROR, None, "2.6"),
    (NEW_ERROR, "2.7", ALWAYS),
    # The thread says 2.2 to 2.5; it was written before 2.6.0, whose wheel on the package index
    # is of the same flavour and exports it too (nm).
    ("_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj", "2.2", "2.6"),
    (f"_ZN3c106detail14torchCheckFailEPKcS2_jRK{CXX11}", "2.7", ALWAYS),
    ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", None, "2.6"),
    ("_ZNK2at10TensorBase4nameB5cxx11Ev", "2.7", ALWAYS),
    ("_ZNK2at10TensorBase4nameEv", None, "2.6"),
]

TYPE_META = "_ZN6caffe28TypeMeta21_typeMetaDataInstanceI"
#: Names of early releases alone: (symbol, first minor, last minor), as read with nm.
EARLY = [
    ("_ZNK3c1010TensorImpl36is_contiguous_nondefault_policy_implENS_12MemoryFormatE", "1.9",
     "1.11"),
    ("_ZN2at19UndefinedTensorImpl10_singletonE", "1.0", "1.0"),
    (TYPE_META + "dEEPKNS_6detail12TypeMetaDataEv", "1.4", "1.7"),
    (TYPE_META + "N3c107complexINS2_4HalfEEEEEPKNS_6detail12TypeMetaDataEv", "1.6", "1.7"),
    ("_ZN3c1012CUDATensorIdEv", "1.0", "1.2"),
    ("_ZN6caffe26detail37_typeMetaDataInstance_preallocated_32E", "1.2", "1.3"),
    ("_ZNK3c104Type14isSubtypeOfExtERKSt10shared_ptrIS0_EPSo", "1.8", "1.10"),
    ("_Z16THPVariable_WrapN2at6TensorE", "1.4", "1.9"),
]  # fmt: skip


def answer_of(symbol: str, *options: str) -> dict[str, Any]:
    result = invoke("why", *options, "--format", "json", "--", symbol)
    assert (result.code, result.stderr) == (0, ""), result.stderr
    (answer,) = result.document["answers"]
    return dict(answer)


def under(version: str, symbol: str) -> dict[str, Any]:
    return answer_of(symbol, "--python", str(stub(version).python))


def minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


@pytest.mark.parametrize(("symbol", "first", "last"), INTERVALS)
def test_intervals_are_those_that_people_found(
    symbol: str, first: str | None, last: str | None
) -> None:
    known = Ages.of(Atlas.open()).releases()
    exported = answer_of(symbol, "--torch", "2.4.0")["exported_by"]
    assert exported == [r for r in known if r in exported], "in the order of the releases"
    assert first is None or minor(exported[0]) == first
    assert minor(exported[-1]) == (last or minor(known[-1]))
    start, end = known.index(exported[0]), known.index(exported[-1])
    assert exported == list(known[start : end + 1]), "without a gap"


@pytest.mark.parametrize(("symbol", "first", "last"), EARLY)
def test_names_of_early_releases_have_their_interval(symbol: str, first: str, last: str) -> None:
    answer = answer_of(symbol, "--torch", "2.4.0")
    exported = answer["exported_by"]
    assert (minor(exported[0]), minor(exported[-1])) == (first, last)
    assert answer["provider"] is None and answer["direction"] == "file-older"


def test_a_name_that_moved_is_given_its_new_place() -> None:
    answer = answer_of("_ZN2at19UndefinedTensorImpl10_singletonE", "--torch", "2.4.0")
    assert answer["direction"] == "file-older"
    assert any("c10::UndefinedTensorImpl::_singleton took its place" in n for n in answer["notes"])
    assert [o["symbol"] for o in answer["overloads"]] == [
        "_ZN3c1019UndefinedTensorImpl10_singletonE"
    ]


@pytest.mark.parametrize(
    ("symbol", "twin"),
    [
        (OLD_ERROR, NEW_ERROR), (NEW_ERROR, OLD_ERROR),
        (SCHEMA + "Ssb", SCHEMA + CXX11 + "b"),
        ("_ZNK2at10TensorBase4nameB5cxx11Ev", "_ZNK2at10TensorBase4nameEv"),
        ("_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEE"
         f"RKNS_14SourceLocationE{CXX11}b",
         "_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEE"
         "RKNS_14SourceLocationESsb"),
    ],
)  # fmt: skip
def test_the_twin_of_the_other_flavour_is_found_without_any_torch(symbol: str, twin: str) -> None:
    """2.4.0 is pre-cxx11 and 2.9.1 is cxx11: under one of them it is the twin that is there."""
    spellings = {twin, twin.replace("C2E", "C1E"), twin.replace("C1E", "C2E")}
    old = symbol.endswith(("Ss", "Ssb", "4nameEv"))
    answer = answer_of(symbol, "--torch", "2.9.1" if old else "2.4.0")
    assert (answer["kind"], answer["direction"]) == ("cxx11-abi", "other-flavour")
    assert spellings & {overload["symbol"] for overload in answer["overloads"]}


# --- where a torch stands -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "symbol", "direction", "torch"),
    [
        (T22, DEVICE + "a", "file-newer", "2.3.0"), (T22, DEVICE + "ab", "file-newer", "2.8.0"),
        (T24, DEVICE + "i", "file-older", "2.2.2"), (T26, DEVICE + "ab", "file-newer", "2.8.0"),
        (T29, DEVICE + "i", "file-older", "2.2.2"), (T29, DEVICE + "a", "file-older", "2.7.1"),
        (T29, CHECK + "iPKcS2_jb", "file-newer", "2.10.0"), (T24, ZEROS, "file-older", "2.1.2"),
        (T22, "_ZN3c1021throwNullDataPtrErrorEv", "file-newer", "2.4.0"),
        (T29, "_ZNK3c106SymInt6sym_neERKS0_", "file-older", "2.8.0"),
    ],
)  # fmt: skip
def test_the_direction_and_the_nearest_torch_that_has_the_name(
    version: str, symbol: str, direction: str, torch: str
) -> None:
    answer = under(version, symbol)
    assert (answer["kind"], answer["code"]) == ("symbol-drift", "FA201")
    assert (answer["direction"], answer["confidence"]) == (direction, "high")
    age = {"file-newer": "newer", "file-older": "older"}[direction]
    assert f"a torch that is {age} than torch {version}" in answer["cause"]
    assert answer["help"][0].endswith(f'-m pip install "torch=={torch}"')
    named = answer_of(symbol, "--torch", version.partition("+")[0])
    assert (named["direction"], named["kind"]) == (direction, "symbol-drift")
    assert named["help"][0] == f'python -m pip install "torch=={torch}"'


def test_the_change_is_told_in_words_with_its_release() -> None:
    answer = under(T24, DEVICE + "i")
    assert "in 2.3.0 `int` became `c10::DeviceIndex` (signed char)" in answer["cause"]
    assert "2.8.0" not in answer["cause"], "that came after this torch"
    later = under(T29, DEVICE + "i")["cause"]
    assert "in 2.3.0 `int` became" in later and "in 2.8.0 the parameter `bool` was add" in later
    rows = {o["symbol"]: o for o in answer["overloads"]}
    assert rows[DEVICE + "ab"]["change"] == "in 2.8.0 the parameter `bool` was added"
    assert rows[DEVICE + "ab"]["exported_by"][0] == "2.8.0"
    assert minor(rows[DEVICE + "a"]["exported_by"][-1]) == "2.7"


def test_a_switch_of_all_optional_parameters_is_called_one() -> None:
    answer = answer_of(ZEROS, "--torch", "2.2.0")
    assert "in 2.2.0 `c10::optional` became `std::optional`" in answer["cause"]
    assert any("every function with an optional parameter" in note for note in answer["notes"])


def test_a_function_that_became_a_template_is_followed() -> None:
    """maybe_wrap_dim_slow(long, long, bool) is a template from 2.0 on (its header in torch)."""
    for text in (
        "_ZN3c106detail19maybe_wrap_dim_slowEllb",
        "c10::detail::maybe_wrap_dim_slow(long, long, bool)",
    ):
        answer = answer_of(text, "--torch", "2.1.0")
        assert answer["symbol"] == "_ZN3c106detail19maybe_wrap_dim_slowEllb"
        assert answer["direction"] == "file-older"
        assert "in 2.0.0 it became a template" in answer["cause"]


def test_a_weak_start_of_a_thread_local_is_not_blamed() -> None:
    answer = answer_of("_ZTHN3c104impl26raw_local_dispatch_key_setE", "--torch", "2.4.0")
    assert "not what stops the load" in answer["cause"]


def test_the_abi_tag_of_a_name_that_has_no_twin_is_not_blamed() -> None:
    """stream() came with 2.10: cxx11 in its name has misled people before."""
    answer = answer_of("_ZN3c1013MessageLogger6streamB5cxx11Ev", "--torch", "2.6.0")
    assert (answer["kind"], answer["direction"]) == ("symbol-drift", "file-newer")
    assert any("flavour is not the cause" in note for note in answer["notes"])


def test_a_name_newer_than_this_torch_in_the_other_flavour_is_first_of_all_newer() -> None:
    symbol = "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj"
    assert answer_of(symbol, "--torch", "2.0.1")["direction"] == "file-newer"
    assert answer_of(symbol, "--torch", "2.9.1")["direction"] == "other-flavour"
    assert answer_of(symbol, "--torch", "2.3.0+cxx11abi")["direction"] == "other-flavour"
    assert answer_of(symbol, "--torch", "2.3.0")["direction"] == "none"


def test_a_release_that_has_the_name_cannot_lack_it() -> None:
    for answer in (under(T22, DEVICE + "i"), answer_of(DEVICE + "i", "--torch", "2.1.2")):
        assert (answer["kind"], answer["direction"]) == ("wrong-torch", "none")
        assert "cannot be missing from torch 2.1.0" in answer["cause"]
        assert "another torch was loaded" in answer["cause"]
        assert "import torch; print(torch.__version__" in answer["help"][0]


# --- requests -----------------------------------------------------------------------------------


def test_a_release_can_be_asked_for_by_its_minor_and_in_the_other_flavour() -> None:
    result = invoke("why", "--torch", "2.9", "--format", "json", DEVICE + "i")
    torch = result.document["torch"]
    assert (torch["requested"], torch["release"], torch["judged_by"]) == ("2.9", "2.9.1", "table")
    assert result.document["environment"] is None
    text = invoke("why", "--torch", "2.9", DEVICE + "i").stdout
    assert text.startswith("torch 2.9.1+cu128 as it was released (torch-2.9.1-cp311")
    assert "; there: nothing" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2.3.9", "torch 2.3.9 is no release that this tool knows"),
        ("99.0.0", "torch 99.0.0 is newer than the table of releases"),
        ("2.5.0a0+ecf3bae", "is a build of its own"),
        ("2.9.0.dev20250801+cu128", "is a build of its own"),
        ("newest", "'newest' names no torch release"),
        ("", "'' names no torch release"),
    ],
)
def test_a_release_that_is_not_on_record_is_never_guessed(text: str, message: str) -> None:
    result = invoke("why", "--torch", text, "--format", "json", DEVICE + "i")
    assert result.code == 2 and result.document["answers"] == []
    assert message in one_sentence(result)


def test_the_nearest_releases_are_offered() -> None:
    assert "2.3.0, 2.3.1" in invoke("why", "--torch", "2.3.9", DEVICE + "i").stderr


def test_a_named_torch_needs_no_environment_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an environment was looked for")

    monkeypatch.setattr("fa_forensics.why.place.find_environment", refuse)
    assert answer_of(DEVICE + "i", "--torch", "2.4.0")["direction"] == "file-older"


def test_the_pythons_of_a_release_are_minded() -> None:
    """torch 2.2.2 has no wheel for CPython 3.13; the tables of the index say so."""
    build = Atlas.open().build("2.2.2")
    assert build is not None and "3.11" in build.pythons and "3.13" not in build.pythons


def test_json_and_text_say_the_same_interval() -> None:
    answer = under(T24, DEVICE + "i")
    assert answer["interval"].startswith("2.1.0") and answer["interval"].endswith("2.2.2")
    text = invoke("why", "--python", str(stub(T24).python), DEVICE + "i").stdout
    assert f"exported by torch {answer['interval']}; here: nothing" in text
    assert json.dumps(answer["exported_by"]) == json.dumps(
        ["2.1.0", "2.1.1", "2.1.2", "2.2.0", "2.2.1", "2.2.2"]
    )
