"""*Built on* never rules out the pinned release, and says why it rules out the others."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.material import BUILD, require

from benchmarks.built_on import Wheel, place, read_wheel
from fa_forensics.atlas import built as built_module
from fa_forensics.atlas.build.headers import compile_headers
from fa_forensics.atlas.builds import minor_of
from fa_forensics.atlas.built import Built, built_on, judged_together
from fa_forensics.atlas.headers import Headers
from fa_forensics.atlas.store import Atlas
from fa_forensics.atlas.window import TorchSymbol, Window, links_with
from fa_forensics.errors import AtlasDamaged
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import read_facts
from fa_forensics.facts.traces import Traces, read_traces, words_of
from fixtures import husk

#: What wheels whose husks are here were built on: the exact pin of their metadata, or for those
#: without one what their real files carry (assertion lines of 2.5's TensorImpl.h in autoawq 0.0.9).
BUILT_ON = {
    "autoawq_kernels-0.0.4": "2.2.0",
    "autoawq_kernels-0.0.9": "2.5.1",
    "fa3_fwd-0.0.3": "2.11.0",
    "fa3_fwd-0.0.3-aarch64": "2.11.0",
    "torchaudio-2.4.1": "2.4.1",
    "vllm_flash_attn-2.5.6": "2.1.2",
    "vllm_flash_attn-2.6.2": "2.4.0",
    "xformers-0.0.26.post1": "2.3.0",
    "xformers-0.0.34": "2.10.0",
}
REAL = Path(os.environ.get("FA_FORENSICS_REAL_DIR", "/nonexistent"))
NO_TRACES = Traces(frozenset(), frozenset(), frozenset(), (), None, (), None)
#: Exported from 2.3.0 to 2.7.1.
SET_DEVICE = "_ZN3c104cuda9SetDeviceEa"


@cache
def atlas() -> Atlas:
    return Atlas.open()


@cache
def wheel_of_husk(name: str) -> Wheel:
    return read_wheel(husk.unpack(name, BUILD / "husks"), atlas())


def window(*names: str) -> Window:
    wanted = [TorchSymbol(name, "torch/c10") for name in names or (SET_DEVICE,)]
    return links_with(wanted, "x86_64", atlas(), ())


def judge(traces: Traces = NO_TRACES, toolkits: tuple[str, ...] = (), name: str = "") -> Built:
    return built_on(window(), atlas(), traces, toolkits, name)


# --- real files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BUILT_ON))
def test_pin_of_a_husk_is_in_the_window_and_the_guess_names_its_minor(name: str) -> None:
    wheel = wheel_of_husk(name)
    assert wheel.pin in (None, BUILT_ON[name])
    together = judged_together([file.built for file in wheel.files])
    assert together
    for file, joint in zip(wheel.files, together, strict=True):
        assert BUILT_ON[name] in file.built.releases
        assert BUILT_ON[name] in joint.releases
        assert joint.best is not None and minor_of(joint.best) == minor_of(BUILT_ON[name])
        assert joint.evidence


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="FA_FORENSICS_REAL_DIR names no directory")
def test_pins_of_real_wheels_are_never_ruled_out_and_mostly_guessed() -> None:
    wheels = [
        read_wheel(str(path), atlas())
        for path in sorted(REAL.iterdir())
        if path.is_dir() and any(path.glob("*.dist-info"))
    ]
    wheels = [wheel for wheel in wheels if wheel.pin and wheel.files]
    assert wheels
    guesses = []
    for wheel in wheels:
        for joint in judged_together([file.built for file in wheel.files]):
            assert wheel.pin is not None and wheel.pin in joint.releases, wheel.name
            guesses.append(joint.best and minor_of(joint.best) == minor_of(wheel.pin))
    assert sum(map(bool, guesses)) >= 0.95 * len(guesses)


# --- what is read from a file -------------------------------------------------------------------

SOURCE = r"""
extern "C" int torch_library_impl(void*, const char*, void*, unsigned long);
namespace c10 { namespace impl { struct VirtualGuardImpl {
  virtual ~VirtualGuardImpl() {}
  virtual long getNewStream(int) const { return 1; }
}; } }
const char* kept[] = {
  "isTensor() INTERNAL ASSERT FAILED at "
    "\"/opt/env/lib/python3.12/site-packages/torch/include/ATen/core/ivalue.h\":652, please",
  "/opt/env/lib/python3.12/site-packages/torch/include/c10/core/Device.h",
  "/usr/include/c10 is no header", "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__",
};
c10::impl::VirtualGuardImpl* guard() { return new c10::impl::VirtualGuardImpl; }
int run() { return torch_library_impl(0, "x", 0, 0x020e010000000000ul); }
"""


@cache
def compiled() -> Path:
    require("g++")
    path = BUILD / "atlas-tests" / f"traces-{os.getpid()}.so"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["g++", "-O1", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)],
        input=SOURCE, text=True, check=True,
    )  # fmt: skip
    return path


def traces_of(path: Path) -> Traces:
    dynamic = DynamicObject.open(str(path))
    try:
        return read_traces(dynamic, read_facts(dynamic))
    finally:
        dynamic.close()


def test_names_texts_and_the_version_given_to_torch_are_read_from_a_compiled_file() -> None:
    traces = traces_of(compiled())
    assert {"impl", "VirtualGuardImpl", "getNewStream"} <= traces.words
    assert traces.headers == {"ATen/core/ivalue.h", "c10/core/Device.h"}
    assert traces.lines == {("ATen/core/ivalue.h", 652)}
    assert traces.pybind11 == ("__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__",)
    assert traces.python == "3.12"
    assert traces.python_tag is None
    assert any(text.startswith("GCC:") for text in traces.compilers)
    if os.uname().machine == "x86_64":
        assert traces.told == "2.14.1"


def test_version_in_code_for_aarch64_is_a_move_to_the_highest_16_bits() -> None:
    from fa_forensics.facts.traces import _a64_versions

    # As llvm-mc encodes them: nop; movz x3, #0x20b, lsl #48; movz x3, #0x20b, lsl #32.
    code = bytes.fromhex("1f2003d56341e0d26341c0d2")
    assert _a64_versions(code) == {"2.11"}
    assert _a64_versions(b"\0\0" + code) == set()  # not where an instruction begins


def test_words_come_from_plain_names_below_torchs_namespaces_only() -> None:
    assert words_of([b"_ZN3c104cuda9SetDeviceEa"]) == {"cuda", "SetDevice"}
    assert words_of([b"_Z5mineaRKN2at6TensorE"]) == {"Tensor"}
    assert words_of([b"_ZN5mine23c104cuda9SetDeviceEv", b"_ZN4flash6TensorE"]) == set()
    hostile = [b"_ZN3c10" + b"9" * 40, b"_ZN3c1099999abc", b"_ZN3c100x", b"_ZN2at", b"", b"_Z"]
    assert words_of(hostile) == set()


# --- clues and hints ----------------------------------------------------------------------------


def test_every_kind_of_clue_rules_out_and_says_why() -> None:
    imports = judge()
    assert imports.releases[0] == "2.3.0" and imports.releases[-1] == "2.7.1"
    assert imports.best == "2.3.0"
    assert imports.evidence == (
        "torch 2.2.2 and 2.8.0 do not export c10::cuda::SetDevice(signed char), which it needs "
        "(2.3.0 \N{EN DASH} 2.7.1)",
    )  # fmt: skip
    told = judge(NO_TRACES._replace(told="2.6.0"))
    assert told.releases == ("2.6.0",) and told.confidence == "high"
    minor = judge(NO_TRACES._replace(told="2.5"))
    assert minor.releases == ("2.5.0", "2.5.1")
    line = judge(NO_TRACES._replace(lines=frozenset({("c10/core/TensorImpl.h", 1293)})))
    assert line.releases == ("2.5.0", "2.5.1")
    assert "assertion of line 1293 of c10/core/TensorImpl.h" in line.evidence[0]
    word = judge(NO_TRACES._replace(words=frozenset({"synchronizeDevice"})))
    assert word.releases == ("2.6.0", "2.7.0", "2.7.1")
    assert "names" not in word.evidence[0] and "synchronizeDevice" in word.evidence[0]
    cuda = judge(toolkits=("11.8",))
    assert cuda.releases[-1] == "2.7.1" and judge(toolkits=("13.0",)).releases == imports.releases
    python = judge(NO_TRACES._replace(python_tag="cp313"))
    assert python.releases == ("2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1")
    built_in = judge(NO_TRACES._replace(python="3.13", python_tag="abi3"))
    assert built_in.releases == python.releases


def test_hints_choose_and_rule_nothing_out() -> None:
    plain = judge()
    cuda = judge(toolkits=("12.6",))
    assert cuda.releases == plain.releases and cuda.best == "2.7.0"
    assert any("CUDA 12.6" in sentence for sentence in cuda.evidence)
    pybind11 = judge(
        NO_TRACES._replace(pybind11=("__pybind11_internals_v4_gcc_libstdcpp_cxxabi1016__",))
    )
    assert pybind11.releases == plain.releases and pybind11.best == "2.7.0"
    other = judge(NO_TRACES._replace(pybind11=("__pybind11_internals_v4_{x}_{}__",)))
    assert other.best == plain.best and other.evidence == plain.evidence
    compiler = judge(
        NO_TRACES._replace(compilers=("GCC: (GNU) 11.2.1 20220127 (Red Hat 11.2.1-9)",))
    )
    assert compiler.best == "2.7.0"


def test_a_trace_that_contradicts_the_imports_is_set_aside() -> None:
    assert judge(NO_TRACES._replace(told="2.14.0")).releases == judge().releases
    copied = NO_TRACES._replace(headers=frozenset({"torch/csrc/stable/device_struct.h"}))
    assert judge(copied).releases == judge().releases
    assert judge(NO_TRACES._replace(told="2.99.0")).releases == judge().releases


def test_a_build_of_the_other_flavour_is_placed_by_the_twins_of_its_names() -> None:
    # As torch 2.4.0 exports it where it is built with the new std::string (conda-forge, NGC).
    new_string = (
        "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_string"
        "IcSt11char_traitsIcESaIcEEE"
    )
    gone_in_2_6 = "_ZN5torch8autograd12VariableInfoC1ERKN2at6TensorE"
    wanted = window(SET_DEVICE, new_string, gone_in_2_6)
    assert wanted.releases == () and wanted.nowhere == ()
    found = built_on(wanted, atlas(), NO_TRACES)
    assert (found.releases[0], found.releases[-1]) == ("2.3.0", "2.5.1")


def test_a_file_without_torch_names_has_no_answer() -> None:
    nothing = links_with([], "x86_64", atlas(), ())
    found = built_on(nothing, atlas(), NO_TRACES)
    assert found.releases == () and found.best is None


# --- files of one package -----------------------------------------------------------------------


def test_files_of_one_package_narrow_each_other_and_say_which_file_it_was() -> None:
    wide, narrow = judge(name="p/wide.so"), judge(NO_TRACES._replace(told="2.6.0"), name="p/_C.so")
    one, two = judged_together([wide, narrow])
    assert one.releases == two.releases == ("2.6.0",)
    assert (one.name, two.name) == ("p/wide.so", "p/_C.so")
    assert any(sentence.startswith("_C.so's code") for sentence in one.evidence)


def test_files_for_several_torches_stand_alone() -> None:
    old, new = (
        judge(NO_TRACES._replace(told=told), name=name)
        for told, name in (("2.4.0", "a_cu118.so"), ("2.6.0", "a_cu126.so"))
    )
    assert judged_together([old, new]) == (old, new)
    by_folder = [judge(name=f"torch-{minor}/lib/x.so") for minor in ("2.4", "2.5")]
    assert judged_together(by_folder) == tuple(by_folder)


def test_a_file_without_an_answer_does_not_change_the_others() -> None:
    nothing = built_on(links_with([], "x86_64", atlas(), ()), atlas(), NO_TRACES, (), "no.so")
    other = judge(name="p/_C.so")
    assert judged_together([nothing, other]) == (nothing, other)


# --- the table of headers -----------------------------------------------------------------------


def record(release: str, *words: str) -> dict[str, object]:
    path = "c10/core/Device.h"
    return {"release": release, "wheel": f"torch-{release}.whl", "words": list(words),
            "headers": [path], "lines": {path: [len(words)]}}  # fmt: skip


def test_table_says_which_releases_lack_a_key_and_grows_by_one_release(tmp_path: Path) -> None:
    records = [record("2.9.0", "a", "b"), record("2.10.0", "a", "b", "c"), record("2.8.0", "a")]
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    whole.mkdir()
    grown.mkdir()
    compile_headers(records, str(whole))
    compile_headers(records[:2], str(grown))
    compile_headers(records[2:], str(grown), str(grown))
    for name in ("headers.json", "headers.trie"):
        assert (whole / name).read_bytes() == (grown / name).read_bytes()
    table = Headers.open(str(whole))
    assert table.releases == ("2.8.0", "2.9.0", "2.10.0")
    assert set(table.without("c")) == {"2.8.0", "2.9.0"} and set(table.without("b")) == {"2.8.0"}
    assert set(table.without("c10/core/Device.h:2")) == {"2.8.0", "2.10.0"}
    assert not table.without("a") and not table.without("c10/core/Device.h")
    assert not table.without("never seen")


def test_damaged_table_is_refused_and_everything_else_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_headers([record("2.9.0", "a")], str(tmp_path))
    raw = (tmp_path / "headers.trie").read_bytes()
    (tmp_path / "headers.trie").write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(AtlasDamaged, match="headers.trie"):
        Headers.open(str(tmp_path))
    monkeypatch.setattr(built_module, "_shipped_headers", lambda: (None, "it is damaged"))
    found = judge(NO_TRACES._replace(words=frozenset({"synchronizeDevice"})))
    assert found.releases == judge().releases and found.problem == "it is damaged"


def test_shipped_table_has_every_release_of_the_torch_tables() -> None:
    assert Headers.open().releases == atlas().releases()


def test_a_file_of_thousands_of_names_takes_milliseconds() -> None:
    path = Path(husk.unpack("xformers-0.0.26.post1", BUILD / "husks")) / "xformers" / "_C.so"
    times = []
    for _ in range(3):
        found = place(str(path), "_C.so", atlas())
        assert found is not None
        times.append(found.ms)
    # 200 names of torch, 8,300 symbols; 25 ms on a quiet machine.
    assert min(times) < 250
