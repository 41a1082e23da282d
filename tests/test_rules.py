"""Each rule: the facts that make it speak, and the neighbouring facts that leave it silent."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import pytest
from support.contexts import (
    LIB,
    MIXED,
    NEW,
    NEW_STRING,
    NO_STRING,
    OLD,
    PATH,
    SET_DEVICE,
    DependencyMiss,
    Sibling,
    Skipped,
    VersionMiss,
    binding,
    context,
    distribution,
    elf,
    environment,
    gpu,
    lost,
    missing,
    releases,
    resolution,
    torch,
)
from support.fitting import FIT_TABLE
from support.flooring import FLOOR_TABLE

from fa_forensics.report import Finding
from fa_forensics.resolve.resolution import Library
from fa_forensics.rules import abi, atlas, file, gpu_fit, libs, link, own, python
from fa_forensics.rules import gpu as gpu_rules
from fa_forensics.rules.base import Context, Rule
from fa_forensics.rules.every import ALL_RULES
from fa_forensics.rules.verdict import in_loader_order, static_verdict

CPU = environment(
    torch=torch(version="2.13.0+cpu", release="2.13.0", cuda=None, has_cuda_libs=False)
)
CUDA13 = environment(torch=torch(version="2.14.1+cu130", release="2.14.1", cuda="13.0"))
CXX11 = environment(torch=torch(version="2.8.0+cu128", release="2.8.0", cxx11_abi="cxx11"))
NO_TORCH = environment(torch=None, torch_problem="no torch in /env")

UNLINKED = replace(SET_DEVICE, exported_by=f"{LIB}/libc10_cuda.so")
OWN = missing("_Z9my_kernelv", "my_kernel()", "extension")
CUDART = missing("cudaLaunchKernelExC", "cudaLaunchKernelExC", "cudart")
PY = missing("PyType_GetDict", "PyType_GetDict", "python")
CONSEQUENCE = missing("cudaMalloc", "cudaMalloc", "cudart", absent="libcudart.so.12")
GLIBC = VersionMiss(PATH, "libc.so.6", "GLIBC_2.38", "/lib/libc.so.6", ("GLIBC_2.4", "GLIBC_2.36"))
DEPENDENCY = DependencyMiss("/x/libdep.so", "gone", None)
SIBLING = Sibling("libtorchaudio.so", "/x/libtorchaudio.so")
TORCH_MISS = Library("libcudart.so.12", f"{LIB}/libtorch_cuda.so", None, "not found")

FOUND_CUDA13 = resolution(
    libraries=(Library("libcudart.so.13", PATH, "/usr/lib/libcudart.so.13", "ld.so.cache"),)
)

ON_23 = releases(best="2.3.0", built_on=("2.3.0",))

#: (rule, facts with which it speaks, its code and severity, facts with which it is silent)
TABLE: list[tuple[Rule, dict[str, Any], str, list[dict[str, Any]]]] = [
    (file.wrong_machine, {"elf": elf(machine="aarch64")}, "FA101 error",
     [{}, {"elf": elf(machine="aarch64"), "environment": environment(machine="aarch64")},
      {"elf": elf(machine="aarch64"), "environment": None}]),
    (file.cut_short, {"elf": elf(expected_size=2000, loaded_size=1900)}, "FA102 error",
     [{}, {"elf": elf(size=3000)}]),
    (file.cut_short, {"elf": elf(expected_size=2000)}, "FA102 warning", [{}]),
    (file.damaged_tables, {"elf": elf(problems=("the hash table is damaged",))}, "FA103 error",
     [{}, {"elf": elf(problems=("cut short",), expected_size=2000)}]),
    (file.not_loadable, {"elf": elf(refusal="cannot dynamically load executable")}, "FA104 error",
     [{}, {"elf": elf(refusal="x", expected_size=2000, loaded_size=1900)},
      {"elf": elf(refusal="object file has no dynamic section", machine="386")}]),
    (file.static_tls, {"elf": elf(static_tls=True, tls_size=4096)}, "FA107 error",
     [{}, {"elf": elf(tls_size=4096)}, {"elf": elf(static_tls=True, tls_size=512)}]),
    (file.executable_stack, {"elf": elf(executable_stack=True)}, "FA105 warning",
     [{}, {"elf": elf(executable_stack=None)}]),
    (file.no_section_headers, {"elf": elf(has_section_headers=False)}, "FA106 note",
     [{}, {"elf": elf(has_section_headers=False, has_dynamic=False)},
      {"elf": elf(has_section_headers=False, expected_size=2000)}]),
    (link.torch_symbols, {"missing": (SET_DEVICE,)}, "FA201 error",
     [{}, {"missing": (OWN,)}, {"missing": (NEW_STRING,)},
      {"missing": (SET_DEVICE,), "environment": NO_TORCH},
      {"missing": (missing("_ZN3c101fEv", "c10::f()", "torch/c10", absent="libc10.so"),)}]),
    (link.libraries_not_found, {"resolution": lost("libavutil.so.58")}, "FA202 error",
     [{}, {"resolution": None}, {"resolution": lost("libcuda.so.1")},
      {"resolution": lost("libavutil.so.58", problem="it is empty")},
      {"resolution": lost("libcudart.so.12"), "environment": CPU},
      {"resolution": lost("libcudart.so.12"), "environment": CUDA13}]),
    (link.versions, {"resolution": resolution(version_misses=(GLIBC,))}, "FA203 error",
     [{}, {"resolution": None}]),
    (link.library_symbols, {"missing": (CUDART,)}, "FA204 error",
     [{}, {"missing": (OWN, PY, SET_DEVICE)}, {"missing": (CONSEQUENCE,)}]),
    (own.own_symbols, {"missing": (OWN,)}, "FA205 error",
     [{}, {"missing": (CUDART, SET_DEVICE)},
      {"missing": (missing("_Z1fv", "f()", "extension", absent="libmine.so"),)}]),
    (link.dependency_symbols, {"resolution": resolution(dependency_misses=(DEPENDENCY,))},
     "FA206 error", [{}, {"resolution": None}]),
    (link.sibling_libraries, {"resolution": lost("libtorchaudio.so"), "siblings": (SIBLING,)},
     "FA207 error", [{}, {"resolution": lost("libtorchaudio.so")}, {"siblings": (SIBLING,)}]),
    (link.sibling_libraries, {"as_package": True, "siblings": (SIBLING,)}, "FA207 note", [{}]),
    (link.damaged_libraries, {"resolution": lost("libdep.so", problem="it is empty")},
     "FA208 error", [{}, {"resolution": lost("libdep.so")}]),
    (link.driver_libraries, {"resolution": lost("libcuda.so.1")}, "FA209 error",
     [{}, {"resolution": lost("libcudart.so.12")}]),
    (abi.flavour_mismatch, {"environment": CXX11}, "FA301 warning",
     [{}, {"environment": CXX11, "flavour": NEW}, {"environment": CXX11, "flavour": NO_STRING},
      {"environment": CXX11, "resolution": None}, {"environment": NO_TORCH},
      {"environment": environment(torch=torch(cxx11_abi="unknown"))}]),
    (abi.flavour_mismatch, {"flavour": NEW, "missing": (NEW_STRING,)}, "FA301 error",
     [{"flavour": OLD, "missing": (SET_DEVICE,)}]),
    (abi.mixed_flavours, {"flavour": MIXED}, "FA302 warning",
     [{}, {"flavour": NEW}, {"flavour": NO_STRING}]),
    (python.other_python, {"elf": elf(python_tag="cp310")}, "FA401 error",
     [{}, {"elf": elf(python_tag="abi3")}, {"elf": elf(python_tag=None)},
      {"elf": elf(python_tag="cp310"), "environment": None},
      {"elf": elf(python_tag="cp313t"),
       "environment": environment(version_short="3.13", abiflags="t")}]),
    (python.other_python, {"elf": elf(python_tag="cp313"), "environment": environment(
        version_short="3.13", abiflags="t")}, "FA401 error", [{}]),
    (python.python_symbols, {"missing": (PY,)}, "FA402 error", [{}, {"missing": (OWN,)}]),
    (python.module_name, {"elf": elf(init_modules=("other",))}, "FA403 warning",
     [{}, {"elf": elf(init_modules=())}, {"elf": elf(init_modules=("flash_attn_2_cuda", "b"))},
      {"elf": elf(init_modules=("x",), module_name=None)}]),
    (gpu_rules.damaged_container, {"gpu": gpu(problems=("entry 3 leaves the file",))},
     "FA501 warning", [{}, {"gpu": None}]),
    (gpu_rules.witness_disagrees, {"gpu": gpu(witness_status="disagrees")}, "FA502 warning",
     [{}, {"gpu": gpu(witness_status="agrees")}, {"gpu": gpu(witness_status="stopped")},
      {"gpu": None}]),
    (gpu_rules.witness_stopped, {"gpu": gpu(witness_status="stopped")}, "FA503 note",
     [{}, {"gpu": gpu(witness_status="disagrees")}, {"gpu": None}]),
    (libs.cpu_only_torch, {"resolution": lost("libc10_cuda.so"), "environment": CPU},
     "FA601 error", [{}, {"resolution": lost("libc10_cuda.so")},
                     {"resolution": lost("libavutil.so.58"), "environment": CPU},
                     {"environment": CPU}]),
    (libs.other_cuda_major, {"resolution": lost("libcudart.so.12"), "environment": CUDA13},
     "FA602 error", [{}, {"resolution": lost("libcudart.so.12")},
                     {"resolution": lost("libcudnn.so.8"), "environment": CUDA13},
                     {"resolution": lost("libcudart.so.12"), "environment": CPU}]),
    (libs.other_cuda_major, {"resolution": lost("libcudart.so.11.0")}, "FA602 error", [{}]),
    (libs.broken_torch, {"resolution": resolution(torch_misses=(TORCH_MISS,))}, "FA603 error",
     [{}, {"resolution": None}, {"environment": None}]),
    (libs.broken_torch, {"resolution": resolution(problems=("torch/_C is missing in /env",))},
     "FA603 error", [{"environment": NO_TORCH, "resolution": resolution(problems=("x",))}]),
    (link.unlinked_symbols, {"missing": (UNLINKED,)}, "FA210 error",
     [{}, {"missing": (SET_DEVICE,)}, {"missing": (CONSEQUENCE,)}]),
    (link.torch_symbols, {"missing": (UNLINKED, SET_DEVICE)}, "FA201 error",
     [{"missing": (UNLINKED,)}]),
    (abi.other_torch_minor, {"distribution": distribution("x", "1", "torch==2.3.0")},
     "FA303 warning", [{}, {"distribution": distribution("x", "1", "torch==2.4.1")},
                       {"distribution": distribution("x", "1", "torch>=2.3")},
                       {"distribution": distribution("x", "1", "torch==2.3.0"),
                        "stable_abi": True},
                       {"distribution": distribution("x", "1", "torch==2.3.0"),
                        "missing": (SET_DEVICE,)}]),
    (python.other_platform, {"name": "m.cpython-311-aarch64-linux-gnu.so"}, "FA404 warning",
     [{}, {"name": "m.abi3.so"}, {"name": "m.so"},
      {"name": "m.cpython-311-x86_64-linux-gnu.so"}]),
    (python.other_platform, {"name": "m.cpython-311.so"}, "FA404 warning", [{}]),
    (libs.second_cuda_runtime, {"resolution": FOUND_CUDA13}, "FA605 warning",
     [{}, {"resolution": FOUND_CUDA13, "environment": CUDA13},
      {"resolution": FOUND_CUDA13, "environment": CPU}, {"resolution": lost("libcudart.so.13")}]),
    (libs.unmet_requirement, {"distribution": distribution("x", "1", "torch>=2.5.1")},
     "FA606 note", [{}, {"distribution": distribution("x", "1", "torch>=2.4")},
                    {"distribution": distribution("x", "1", "torch"), "environment": CPU},
                    {"distribution": distribution("x", "1", "torch>=2.5.1"),
                     "resolution": lost("libavutil.so.58")}]),
    (abi.other_torch_minor, {"releases": ON_23}, "FA303 warning",
     [{"releases": releases()}, {"releases": ON_23, "stable_abi": True},
      {"releases": releases(best="2.3.0", built_on=("2.3.0", "2.4.0"), confidence="low")},
      {"releases": ON_23, "missing": (SET_DEVICE,)}]),
    (atlas.wrong_claim, {"distribution": distribution("x", "1", "torch>=2.5"),
                         "releases": releases(), "environment": NO_TORCH}, "FA701 warning",
     [{"distribution": distribution("x", "1", "torch>=2.5")},
      {"distribution": distribution("x", "1", "torch"), "releases": releases()},
      {"distribution": distribution("x", "1", "torch==2.4.0"), "releases": releases()},
      {"distribution": distribution("x", "1", "torch>=2.5"),
       "releases": releases(links_with=(), package_links=())},
      {"releases": releases()}]),
    (atlas.wrong_claim, {"distribution": distribution("x", "1", "torch>=2.4"),
                         "releases": releases()}, "FA701 note", [{}]),
]  # fmt: skip

TABLE += [
    (getattr(gpu_fit, rule), {"fit": speaks.fit, "distribution": speaks.distribution}, code,
     [{"fit": facts.fit, "distribution": facts.distribution} for facts in silent])
    for rule, speaks, code, silent in FIT_TABLE
]  # fmt: skip
TABLE += FLOOR_TABLE

CASES = [
    pytest.param(rule, speaks, code, id=f"{code} {rule.__name__} {at}")
    for at, (rule, speaks, code, _silent) in enumerate(TABLE)
]
SILENT = [
    pytest.param(rule, facts, id=f"{rule.__name__} {at}.{number}")
    for at, (rule, _speaks, _code, silent) in enumerate(TABLE)
    for number, facts in enumerate(silent)
]


def findings(ctx: Context) -> tuple[Finding, ...]:
    return in_loader_order([item for rule in ALL_RULES for item in rule(ctx)])


@pytest.mark.parametrize(("rule", "speaks", "code"), CASES)
def test_a_rule_speaks_of_its_facts(rule: Rule, speaks: dict[str, Any], code: str) -> None:
    (judged,) = rule(context(**speaks))
    finding = judged.finding
    assert f"{finding.code} {finding.severity}" == code
    assert finding.confidence in ("high", "medium", "low")
    assert finding.title and "\n" not in finding.title and not finding.title.endswith(".")
    assert finding.evidence or finding.notes
    assert all(entry.text for entry in finding.evidence)
    assert all(note.rstrip('"')[-1] in ".)" for note in finding.notes if note)
    assert "!" not in finding.title + "".join(finding.notes)
    assert finding in findings(context(**speaks)), "it stands in ALL_RULES"


@pytest.mark.parametrize(("rule", "facts"), SILENT)
def test_a_rule_is_silent_without_them(rule: Rule, facts: dict[str, Any]) -> None:
    assert list(rule(context(**facts))) == []


def test_every_rule_stands_in_the_table_with_the_code_its_docstring_names() -> None:
    assert {rule for rule, *_ in TABLE} == set(ALL_RULES)
    for rule, _, code, _ in TABLE:
        match = re.match(r"(FA\d{3}): ", inspect.getdoc(rule) or "")
        assert match is not None and match[1] == code.split()[0]
    codes = {code.split()[0] for _, _, code, _ in TABLE}
    assert len(codes) == len(ALL_RULES), "one code, one rule"


def test_a_healthy_file_has_no_finding() -> None:
    assert findings(context()) == ()


def test_help_holds_commands_and_nothing_else() -> None:
    for _, speaks, _, _ in TABLE:
        ctx = context(
            **{"distribution": distribution("flash-attn", "2.5.8", "torch==2.3.0"), **speaks}
        )
        for finding in findings(ctx):
            for command in finding.help:
                variables = r"([A-Z_]+=('[^']*'|[^ ']+) )*"
                assert re.match(variables + r"(/env/bin/python|python) -(m pip|c) ", command)
                for word in ("LD_PRELOAD", "ln -s", "apt", "glibc"):
                    assert word not in command


# --- what the words say -------------------------------------------------------------------------


def one(ctx: Context, code: str) -> Finding:
    return next(f for f in findings(ctx) if f.code == code)


def test_drift_names_what_is_there_instead() -> None:
    finding = one(context(missing=(SET_DEVICE,)), "FA201")
    assert "c10::cuda::SetDevice(int)" in finding.title
    assert any("SetDevice(signed char)" in note for note in finding.notes)
    assert finding.evidence[0].symbol == "_ZN3c104cuda9SetDeviceEi"
    assert finding.evidence[0].entry == ".dynsym[7]"


def test_a_missing_library_lists_the_places_and_its_consequences() -> None:
    own = missing("_Z1fv", "f()", "extension", absent="libavutil.so.58")
    finding = one(context(resolution=lost("libavutil.so.58"), missing=(own,)), "FA202")
    assert "libavutil.so.58" in finding.title
    text = " ".join(entry.text for entry in finding.evidence)
    assert "RUNPATH /x, /etc/ld.so.cache, default directory /lib" in text
    assert any("1 undefined symbol" in note for note in finding.notes)


def test_an_old_library_is_told_with_both_versions() -> None:
    finding = one(context(resolution=resolution(version_misses=(GLIBC,))), "FA203")
    assert "GLIBC_2.38" in finding.title
    assert any("GLIBC_2.36" in entry.text for entry in finding.evidence)


def test_a_version_that_a_dependency_needs_is_not_laid_at_the_files_door() -> None:
    miss = VersionMiss("/x/libdep.so", "libc.so.6", "GLIBC_2.38", "/lib/libc.so.6", ())
    finding = one(context(resolution=resolution(version_misses=(miss,))), "FA203")
    assert "libdep.so was built with" in finding.title
    assert finding.evidence[0].file == "/x/libdep.so"


def test_the_torch_that_the_metadata_names_is_offered() -> None:
    dist = distribution("flash-attn", "2.5.8", "torch==2.3.0")
    finding = one(context(missing=(SET_DEVICE,), distribution=dist), "FA201")
    assert '/env/bin/python -m pip install "torch==2.3.0"' in finding.help
    assert any("requires torch==2.3.0" in note for note in finding.notes)


def test_a_claim_that_does_not_hold_is_called_one() -> None:
    dist = distribution("autoawq-kernels", "0.0.9", "torch>=2.5.1")
    finding = one(context(missing=(SET_DEVICE,), distribution=dist), "FA201")
    assert any("claims torch>=2.5.1" in note for note in finding.notes)


# --- order and verdict --------------------------------------------------------------------------


def test_what_kills_the_import_first_is_listed_first() -> None:
    ctx = context(
        elf=elf(python_tag="cp310", executable_stack=True),
        resolution=lost("libavutil.so.58", "libcudart.so.11.0"),
        missing=(SET_DEVICE, NEW_STRING, OWN),
        flavour=NEW,
    )
    codes = [finding.code for finding in findings(ctx)]
    assert codes == ["FA202", "FA602", "FA301", "FA205", "FA201", "FA401", "FA105"]


def test_libraries_come_in_the_loaders_order() -> None:
    codes = [f.code for f in findings(context(resolution=lost("libcudart.so.11.0", "libx.so.1")))]
    assert codes == ["FA602", "FA202"]
    codes = [f.code for f in findings(context(resolution=lost("libx.so.1", "libcudart.so.11.0")))]
    assert codes == ["FA202", "FA602"]


VERDICTS: list[tuple[dict[str, Any], str]] = [
    ({}, "links"),
    ({"uses_torch": False}, "loads"),
    ({"uses_torch_names": False}, "loads"),
    ({"stable_abi": True}, "loads"),
    ({"distribution": distribution("flash-attn", "2.5.8", "torch==2.4.0")}, "loads"),
    ({"distribution": distribution("flash-attn", "2.5.8", "torch==2.4.1")}, "loads"),
    ({"distribution": distribution("flash-attn", "2.5.8", "torch==2.5.0")}, "links"),
    ({"distribution": distribution("flash-attn", "2.5.8", "torch>=2.0")}, "links"),
    ({"distribution": distribution("x", "1.0+pt24cu121")}, "loads"),
    ({"missing": (SET_DEVICE,)}, "fails"),
    ({"resolution": lost("libx.so.1")}, "fails"),
    ({"elf": elf(expected_size=2000, loaded_size=1900), "resolution": None}, "fails"),
    ({"resolution": None, "skips": (Skipped("link", "no torch in /env"),)}, "inconclusive"),
    ({"elf": elf(executable_stack=True)}, "links"),
    ({"gpu": gpu(problems=("x",))}, "links"),
]


@pytest.mark.parametrize(("facts", "verdict"), VERDICTS)
def test_verdict(facts: dict[str, Any], verdict: str) -> None:
    ctx = context(**facts)
    found, headline = static_verdict(ctx, findings(ctx))
    assert found == verdict
    assert headline and "\n" not in headline
    if verdict == "inconclusive":
        assert headline == "no torch in /env"


def test_an_inconclusive_file_is_never_called_fine() -> None:
    ctx = context(resolution=None, skips=())
    assert static_verdict(ctx, ())[0] == "inconclusive"


def test_a_symbol_without_a_relocation_is_not_missing() -> None:
    assert not binding("x", order=-1).missing and binding("x", order=0).missing
